"""The hand-out: all that a student needs, in the files and in the wheel, and no answer in it."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import yaml

from autograder.authoring import handout as handing
from autograder.authoring.source import read_source
from autograder.commands import checking
from autograder.common.course import Course
from tests.conftest import CHAPTERS, COURSE, ROOT
from tests.test_house import canonical, owners_of_packages, required
from tests.test_release import lines_worth_hiding, regions

LONG = 40  # signs of a line that nobody writes twice by chance
SHORT = 12  # and of one that says nothing
IDLE = ("#", '"""', "from ", "import ", "@")  # lines that are no part of an answer
ANSWER = """
    return scores.softmax(-1)
"""


@pytest.fixture(scope="module")
def handout() -> handing.HandOut:
    """The course's hand-out."""
    return handing.made(COURSE, [checking.__name__])


@pytest.fixture(scope="module")
def folder(handout: handing.HandOut, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """It, written to the disk."""
    place = tmp_path_factory.mktemp("handout") / "course"
    assert handing.write(handout, place)
    return place


@pytest.fixture(scope="module")
def wheel(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its wheel, unpacked as pip does."""
    place = tmp_path_factory.mktemp("wheel")
    source = place / "source"
    shutil.copytree(folder, source)
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "-w", str(place), str(source)], check=True)
    with zipfile.ZipFile(next(place.glob("*.whl"))) as archive:
        archive.extractall(place / "installed")
    return place / "installed"


# Nothing of an answer -----------------------------------------------------------------------------


def lines_of(text: str) -> list[str]:
    """The lines that say something, without what a comment adds."""
    lines = (re.sub(r"  # .*", "", line).strip() for line in text.splitlines())
    return [line for line in lines if len(line) > SHORT and not line.startswith(IDLE)]


def telling(text: str) -> set[tuple[str, ...]]:
    """Long lines, and three that follow each other: what no two write alike by chance."""
    lines = lines_of(text)
    threes = {tuple(lines[at : at + 3]) for at in range(len(lines) - 2)}
    return {(line,) for line in lines if len(line) >= LONG} | threes


def hidden_texts(chapter: str) -> list[str]:
    """What no student may get: answers, hidden tests, and the known answers, right and wrong."""
    source = read_source(COURSE.source(chapter))
    files = (COURSE.misconceptions(chapter), COURSE.variants(chapter))
    kept = [path for path in (*files, ROOT / "tests" / "wrong" / f"{chapter}.py") if path.is_file()]
    return [*regions(source), *(path.read_text(encoding="utf-8") for path in kept)]


def given_text(chapter: str) -> str:
    """What its source gives out on purpose."""
    source = read_source(COURSE.source(chapter))
    text = "\n".join(cell.source for cell in source.cells)
    for region in regions(source):
        text = text.replace(region, "")
    return text


@pytest.fixture(scope="module")
def secrets() -> dict[str, set[str]]:
    """The lines worth hiding, by chapter."""
    found = {}
    for chapter in CHAPTERS:
        given = given_text(chapter)
        lines = {line for text in hidden_texts(chapter) for line in lines_of(text)}
        found[chapter] = {line for line in lines if line not in given}
        found[chapter] |= lines_worth_hiding(read_source(COURSE.source(chapter)))
    return found


@pytest.fixture(scope="module")
def telling_secrets() -> set[tuple[str, ...]]:
    """Of all chapters what tells an answer, also where it stands in a module among other code."""
    hidden = {
        one for chapter in CHAPTERS for text in hidden_texts(chapter) for one in telling(text)
    }
    return hidden - {one for chapter in CHAPTERS for one in telling(given_text(chapter))}


def leaks(
    files: Mapping[str, bytes],
    secrets: Mapping[str, set[str]],
    telling_secrets: set[tuple[str, ...]],
) -> Iterator[tuple[str, object]]:
    """Each file with what of an answer stands in it.

    A notebook may show what another one hides, as an example of the answer to an earlier question.
    A module may have lines such as `model.train()`, but no long one and no three that follow each
    other; any other file has none at all.
    """
    everything = set[str]().union(*secrets.values())
    for path, content in files.items():
        text = content.decode("utf-8", "replace")
        if path.endswith(".py"):
            yield from ((path, one) for one in telling(text) & telling_secrets)
            continue
        lines = secrets.get(Path(path).stem, everything)
        if path.endswith(".ipynb"):
            cells = json.loads(text)["cells"]
            assert not any(cell.get("outputs") or cell.get("attachments") for cell in cells), path
            text = "\n".join("".join(cell["source"]) for cell in cells)
        yield from ((path, line) for line in lines if line in text)


def test_no_line_worth_hiding_is_in_the_files(handout, secrets, telling_secrets):
    assert all(len(lines) > 50 for lines in secrets.values())
    assert len(telling_secrets) > 3000
    assert list(leaks(handout.files, secrets, telling_secrets)) == []


def test_no_line_worth_hiding_is_in_the_wheel(wheel: Path, handout, secrets, telling_secrets):
    files = {
        path.relative_to(wheel).as_posix(): path.read_bytes()
        for path in wheel.rglob("*")
        if path.is_file()
    }
    assert list(leaks(files, secrets, telling_secrets)) == []
    ours = {path: content for path, content in files.items() if ".dist-info/" not in path}
    wanted = [
        path for path in handout.files if path.startswith(("autograder/", "lab/", "trainer/"))
    ]
    assert ours == {path: handout.files[path] for path in wanted}


def test_no_line_worth_hiding_is_in_the_projects_own_packages(secrets, telling_secrets):
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]
    files = {
        path.relative_to(ROOT).as_posix(): path.read_bytes()
        for package in packages["packages"]
        for path in (ROOT / package.replace(".", "/")).glob("*.py")
    }
    assert list(leaks(files, secrets, telling_secrets)) == []


@pytest.mark.parametrize("kind", ["answer", "hidden", "misconceptions", "variants", "assembled"])
def test_each_of_them_would_be_found(kind: str, handout, secrets, telling_secrets):
    chapter = "05_layer_norm"
    cells = read_source(COURSE.source(chapter)).cells
    texts = {
        "answer": next(cell.source for cell in cells if cell.kind == "solution"),
        "hidden": next(cell.source for cell in cells if "BEGIN HIDDEN" in cell.source),
        "misconceptions": COURSE.misconceptions(chapter).read_text(encoding="utf-8"),
        "variants": COURSE.variants(chapter).read_text(encoding="utf-8"),
        "assembled": (ROOT / "solutions" / "transformer.py").read_text(encoding="utf-8"),
    }
    text = texts[kind].encode()
    for path in ("lab/more.py", "README.md", "exercises/more.txt"):
        assert list(leaks({path: text}, secrets, telling_secrets)), path
    name = f"exercises/{chapter}/{chapter}.ipynb"
    content = json.loads(handout.files[name])
    content["cells"].append({"cell_type": "code", "source": text.decode().splitlines(True)})
    changed = {name: json.dumps(content).encode()}
    assert list(leaks(changed, secrets, telling_secrets)) or kind == "assembled"


def test_it_holds_notebooks_modules_and_texts_for_students_and_nothing_else(handout):
    tops = {path.partition("/")[0] for path in handout.files}
    texts = {"Makefile", "README.md", "pyproject.toml", "requirements.txt", "constraints.txt"}
    rooms = {"exercises", "autograder", "lab", "trainer"}
    assert tops == rooms | texts | {"LICENSE", "LICENSE-PROSE", ".github"}
    notebooks = {path for path in handout.files if path.startswith("exercises/")}
    assert notebooks == {f"exercises/{chapter}/{chapter}.ipynb" for chapter in CHAPTERS}
    for chapter in CHAPTERS:
        path = f"exercises/{chapter}/{chapter}.ipynb"
        assert handout.files[path] == (ROOT / path).read_bytes(), "as it is released"
    floors = {Path(path).parts[1] for path in handout.files if path.startswith("autograder/")}
    assert not floors & {"authoring", "classroom"}
    beside = {path for path in handout.files if path.endswith((".js", ".html"))}
    assert beside == {f"lab/page/{path.name}" for path in (ROOT / "lab/page").glob("*.[jh]*")}
    assert handout.files["lab/digits.npz"] == (ROOT / "lab/digits.npz").read_bytes()
    assert not {"lab/answers.py", "trainer/contest.py"} & handout.files.keys()
    rules = [content for path, content in handout.files.items() if path.endswith(".toml")]
    assert not any(b"[late]" in content or b"[files]" in content for content in rules)


# The same bytes -----------------------------------------------------------------------------------


def test_another_folder_gives_the_same_bytes(handout: handing.HandOut, tmp_path: Path):
    skipped = shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints", "*.egg-info")
    for name in (
        "autograder",
        "lab",
        "trainer",
        "solutions",
        "exercises",
        "requirements",
        "handout",
    ):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=skipped, copy_function=shutil.copy)
    for name in ("nbgrader_config.py", "pyproject.toml", "constraints.txt", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    shutil.copy(ROOT / "LICENSE-PROSE", tmp_path)
    (tmp_path / "lab" / "notes.txt").write_text("not for students")
    command = [sys.executable, "-m", "autograder", "handout", "out/one.zip"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert handout.digest in done.stdout
    assert (tmp_path / "out" / "one.zip").read_bytes() == handout.zipped()


# It works -----------------------------------------------------------------------------------------


def alone(wheel: Path, cwd: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python with nothing of ours but what was installed."""
    environment = os.environ | {"PYTHONPATH": str(wheel)}
    environment.pop("PYTHONSAFEPATH", None)
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def answered(content: bytes) -> bytes:
    """The chapter on attention with an answer that works and is not allowed."""
    notebook = json.loads(content)
    cell = next(one for one in notebook["cells"] if one["id"] == "masked-softmax")
    kept = "".join(cell["source"]).partition("    # YOUR CODE HERE")[0]
    cell["source"] = f"{kept.rstrip()}{ANSWER}"
    return json.dumps(notebook).encode()


def test_every_module_can_be_imported_without_the_rest(wheel: Path, tmp_path: Path):
    paths = sorted(path.relative_to(wheel) for path in wheel.rglob("*.py"))
    names = [".".join(path.with_suffix("").parts).removesuffix(".__init__") for path in paths]
    code = (
        "import importlib, sys\n"
        f"for name in {[name for name in names if not name.endswith('__main__')]}:\n"
        "    module = importlib.import_module(name)\n"
        f"    assert module.__file__.startswith({str(wheel)!r}), module.__file__\n"
    )
    done = alone(wheel, tmp_path, "-c", code)
    assert done.returncode == 0, done.stderr
    for room in ("lab", "trainer", "autograder"):
        done = alone(wheel, tmp_path, "-m", room, "--help")
        assert done.returncode == 0, done.stderr
    assert re.findall(r"^    (\w+) ", done.stdout, re.MULTILINE) == ["check"]


def test_a_model_of_ones_own_becomes_a_page_there(wheel: Path, tmp_path: Path):
    module = tmp_path / "my_transformer.py"
    shutil.copy(ROOT / "solutions" / "transformer.py", module)
    for command in (
        ("little", module.name, "--out", "mine", "--steps", "2"),
        ("page", "mine", "--out", "page.html"),
    ):
        done = alone(wheel, tmp_path, "-m", "lab", *command)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "page.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_check_says_there_what_it_says_in_the_course(wheel: Path, handout, tmp_path: Path):
    inside = ROOT / "build" / "checked" / "03_attention.ipynb"
    inside.parent.mkdir(parents=True, exist_ok=True)
    inside.write_bytes(answered(handout.files["exercises/03_attention/03_attention.ipynb"]))
    outside = tmp_path / "03_attention.ipynb"
    shutil.copy(inside, outside)
    there = alone(wheel, tmp_path, "-m", "autograder", "check", outside.name)
    here = alone(ROOT, ROOT, "-m", "autograder", "check", str(inside))
    assert there.stdout == here.stdout and "of 19 visible tests pass" in here.stdout
    assert "your answer calls .softmax (line 9), which this question does not allow" in " ".join(
        there.stdout.split()
    )
    browsers = tmp_path / "03_attention (1).ipynb"
    outside.rename(browsers)
    again = alone(wheel, tmp_path, "-m", "autograder", "check", browsers.name)
    assert again.stdout == there.stdout.replace(outside.name, browsers.name)


def test_check_without_a_name_takes_what_was_begun(folder: Path, tmp_path: Path):
    place = tmp_path / "course"
    shutil.copytree(folder, place)
    done = alone(place, place, "-m", "autograder", "check")
    assert done.returncode == 0
    assert (
        done.stdout
        == "No notebook in exercises/ holds an answer of yours yet: write one, and save.\n"
    )
    path = place / "exercises" / "03_attention" / "03_attention.ipynb"
    path.write_bytes(answered(path.read_bytes()))
    broken = place / "exercises" / "01_embedding" / "01_embedding.ipynb"
    broken.write_text("{")
    done = alone(place, place, "-m", "autograder", "check")
    assert done.returncode == 2 and "01_embedding.ipynb cannot be checked" in done.stderr
    assert "03_attention.ipynb: " in done.stdout and "02_" not in done.stdout
    done = alone(place, tmp_path, "-m", "autograder", "check")
    assert done.returncode == 2 and "There are no notebooks in exercises/ here" in done.stderr


def test_what_it_imports_at_the_top_is_installed(handout: handing.HandOut):
    project = tomllib.loads(handout.files["pyproject.toml"].decode())
    listed = {canonical(name) for name in project["project"]["dependencies"]}
    assert listed == set(required(("students",)))
    known = owners_of_packages()
    needed = {canonical(name) for name in handing.NEEDED}
    for path in (path for path in handout.files if path.endswith(".py")):
        may = needed if path.startswith("autograder/") else listed
        for node in ast.parse(handout.files[path]).body:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            for name in (one.partition(".")[0] for one in names):
                owners = {canonical(one) for one in known.get(name, [])}
                ours = name in {"autograder", "lab", "trainer"} | sys.stdlib_module_names
                assert ours or owners & may, f"{path}: {name}"


def test_a_fork_on_github_checks_what_was_begun(handout: handing.HandOut):
    workflow = yaml.safe_load(handout.files[".github/workflows/check.yml"])
    assert {"push", "workflow_dispatch"} <= workflow[True].keys()  # YAML reads `on` as true
    assert workflow["permissions"] == {"contents": "read"}
    (job,) = workflow["jobs"].values()
    runs = [step["run"] for step in job["steps"] if "run" in step]
    used = [step["uses"] for step in job["steps"] if "uses" in step]
    assert all(re.fullmatch(r"actions/[\w-]+@v\d+", one) for one in used) and len(used) == 2
    (version,) = [step["with"]["python-version"] for step in job["steps"] if "with" in step]
    python = tomllib.loads(handout.files["pyproject.toml"].decode())["project"]["requires-python"]
    low, high = (int(minor) for minor in re.findall(r"3\.(\d+)", python))
    assert version in [f"3.{minor}" for minor in range(low, high)]
    assert job["env"] == {"PIP_EXTRA_INDEX_URL": handing._settings(COURSE).index}
    makefile = handout.files["Makefile"].decode()
    assert runs == ["make setup", ".venv/bin/python -m autograder check"]
    assert "setup: " in makefile and "PY     := .venv/bin/python" in makefile


def test_a_check_that_fails_fails_the_run_on_github(folder: Path, tmp_path: Path):
    """As its last step runs it: 0 where nothing was begun, 1 where a test fails."""
    place = shutil.copytree(folder, tmp_path / "fork")
    command = [sys.executable, "-m", "autograder", "check"]
    assert subprocess.run(command, cwd=place, capture_output=True).returncode == 0
    notebook = place / "exercises" / CHAPTERS[0] / f"{CHAPTERS[0]}.ipynb"
    content = json.loads(notebook.read_text(encoding="utf-8"))
    cell = next(one for one in content["cells"] if "NotImplementedError" in "".join(one["source"]))
    source = "".join(cell["source"])
    cell["source"] = re.sub(r"raise NotImplementedError.*", "return None", source)
    notebook.write_text(json.dumps(content), encoding="utf-8")
    assert subprocess.run(command, cwd=place, capture_output=True).returncode == 1


def test_its_readme_names_commands_that_are_there(handout: handing.HandOut, wheel, tmp_path):
    text, makefile = (handout.files[name].decode() for name in ("README.md", "Makefile"))
    tasks = set(re.findall(r"^(\w+):", makefile, re.MULTILINE))
    named = set(re.findall(r"(?:^ +|`|make )make (\w+)|whl/cpu make (\w+)", text, re.MULTILINE))
    assert {one or other for one, other in named} == {"setup", "check", "open"} < tasks
    for room, command in re.findall(r"-m (lab|trainer|autograder) (\w+)", text):
        done = alone(wheel, tmp_path, "-m", room, command, "--help")
        assert done.returncode == 0, f"{room} {command}"
    for name in re.findall(r"`([\w/.-]+/|[A-Z-]{5,})`", text):
        assert any(path.startswith(name) for path in handout.files), name
    assert "{{" not in text and "{%" not in text


@pytest.mark.parametrize(("number", "more"), [(0, " --allow-root"), (1000, "")])
def test_it_opens_for_root_too_as_in_a_container(
    handout: handing.HandOut, tmp_path: Path, number: int, more: str
):
    (tmp_path / "Makefile").write_bytes(handout.files["Makefile"])
    (program := tmp_path / "id").write_text(f"#!/bin/sh\necho {number}\n")
    program.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["make", "--no-print-directory", "-n", "open", "-o", ".venv/ready"],
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert (
        done.stdout.splitlines()[-1].rstrip() == f".venv/bin/python -m jupyter lab exercises{more}"
    )


def test_the_link_to_the_book_comes_from_one_setting(tmp_path: Path, monkeypatch):
    told = handing._settings(COURSE)
    assert (
        "Your instructor says where it is"
        in handing._texts(COURSE, told, [], {})["README.md"].decode()
    )
    course = Course(tmp_path)
    config = (ROOT / "nbgrader_config.py").read_text(encoding="utf-8")
    config = config.replace('c.HandOut.book = ""', 'c.HandOut.book = "https://example.org/book"')
    (tmp_path / "nbgrader_config.py").write_text(config, encoding="utf-8")
    for name in ("handout", "requirements"):
        shutil.copytree(ROOT / name, tmp_path / name)
    text = handing._texts(course, handing._settings(course), [], {})["README.md"].decode()
    assert "**The book:** [https://example.org/book](https://example.org/book)" in text

"""The command that hands out: where it writes, what it refuses, other courses, hosted services."""

import json
import shutil
import sys
import tomllib
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from autograder.authoring import handout as handing
from autograder.authoring.handout_notebooks import FIRST, _with_first, released
from autograder.authoring.release import release as release_chapter
from autograder.commands import checking
from autograder.common.course import Course
from tests import small_course
from tests.small_course import NAME, RIGHT, hand_in, make_course, run
from tests.test_answers import SOURCE

CHAPTER = "01_sums"
CONFIG = 'c = get_config()\nc.CourseDirectory.release_directory = "out"\n'
NOTEBOOK = f"exercises/{NAME}/numbers.ipynb"
EACH = [("handed.zip",), ("handed",), ("new/handed.zip",), ("new/handed",)]


@pytest.fixture(scope="module")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course of one chapter with a text source, released."""
    root = tmp_path_factory.mktemp("sums")
    (root / "solutions" / CHAPTER).mkdir(parents=True)
    (root / "solutions" / CHAPTER / f"{CHAPTER}.py").write_text(SOURCE, encoding="utf-8")
    (root / "nbgrader_config.py").write_text(CONFIG, encoding="utf-8")
    release_chapter(Course(root), CHAPTER)
    return root


@pytest.fixture
def sums(made_once: Path, tmp_path: Path) -> Course:
    """A copy of it."""
    return Course(shutil.copytree(made_once, tmp_path / "sums"))


@pytest.fixture
def ordinary(tmp_path: Path) -> Course:
    """A course of nbgrader's notebooks, released."""
    course = make_course(tmp_path / "ordinary")
    small_course.release(course.root)
    return course


def everything(folder: Path) -> dict[str, bytes]:
    """All files below a folder."""
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


@pytest.mark.parametrize("name", [one for (one,) in EACH])
def test_it_writes_a_folder_or_a_zip_file(name: str, sums: Course, capsys):
    assert run(sums.root, "handout", name) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"{name}: ") and " files, " in said
    found = handing.made(sums, [checking.__name__])
    place = sums.root / name
    if place.suffix:
        with zipfile.ZipFile(place) as archive:
            names = archive.namelist()
            archive.extractall(sums.root / "unpacked")
        assert names == sorted(names)
        place = sums.root / "unpacked" / found.name
    assert everything(place) == found.files
    assert not [path for path in (sums.root / name).parent.iterdir() if ".part" in path.name]
    assert run(sums.root, "handout", name) == 0
    assert "was there already, the same to the byte" in capsys.readouterr().out


def test_nothing_that_is_there_is_lost(sums: Course, capsys):
    file, folder = sums.root / "notes.zip", sums.root / "mine"
    file.write_text("a file of one's own")
    assert run(sums.root, "handout", "mine") == 0
    (folder / "exercises" / CHAPTER / f"{CHAPTER}.ipynb").write_text("an answer")
    kept = everything(sums.root)
    capsys.readouterr()
    for name in ("notes.zip", "mine", "solutions", "nbgrader_config.py"):
        assert run(sums.root, "handout", name) == 2
        words = capsys.readouterr().err
        assert words.startswith(f"error: {name} is there already and is not this hand-out; nothing")
        assert len(words.splitlines()) == 1
    assert everything(sums.root) == kept
    (sums.root / "empty").mkdir()
    assert run(sums.root, "handout", "empty") == 0


def test_no_folder_is_called_as_an_archive(sums: Course, capsys):
    assert run(sums.root, "handout", "week1.tar.gz") == 2
    assert "only zip files are written" in capsys.readouterr().err
    assert not (sums.root / "week1.tar.gz").exists()


def test_what_is_out_of_date_is_refused(sums: Course, capsys):
    path, source = sums.release(CHAPTER), sums.source(CHAPTER)
    fresh, text = path.read_text(encoding="utf-8"), source.read_text(encoding="utf-8")
    source.write_text(text + "\n# more\n", encoding="utf-8")
    assert run(sums.root, "handout", "new") == 2
    said = capsys.readouterr().err
    assert said.startswith(f"error: out/{CHAPTER}/{CHAPTER}.ipynb is older than solutions/")
    assert said.endswith("; run: make release\n") and len(said.splitlines()) == 1
    source.write_text(text, encoding="utf-8")
    path.write_text(fresh.replace("raise NotImplementedError", "return sum(x) #"), encoding="utf-8")
    assert run(sums.root, "handout", "new") == 2
    assert capsys.readouterr().err == (
        f"error: out/{CHAPTER}/{CHAPTER}.ipynb is not what its source gives today; "
        "run: make release\n"
    )
    path.write_text(fresh, encoding="utf-8")
    shutil.copy(path, path.with_name("more.ipynb"))
    assert run(sums.root, "handout", "new") == 2
    assert (
        capsys.readouterr().err
        == f"error: out/{CHAPTER}/more.ipynb has no source; run: make release\n"
    )
    assert not (sums.root / "new").exists()


def test_an_ordinary_course_is_handed_out_as_it_was_released(ordinary: Course, capsys):
    root = ordinary.root
    rules = '[square]\nforbid = ["pow"]\n[late]\npolicy = "zero"\ndue = 2026-03-01T23:59:00+01:00\n'
    (root / "source" / NAME / "rules.toml").write_text(rules, encoding="utf-8")
    assert run(root, "handout", "handed") == 0
    files = everything(root / "handed")
    assert files[NOTEBOOK] == (root / "release" / NAME / "numbers.ipynb").read_bytes()
    assert b"square(-5)" not in files[NOTEBOOK] and b"HIDDEN" not in files[NOTEBOOK]
    kept = files[f"autograder/checking/released/{NAME}/numbers.toml"].decode()
    assert '["square"]\nforbid = ["pow"]' in kept and "late" not in kept
    assert b'name = "small-handout"' in files["pyproject.toml"]
    assert {"Makefile", "README.md", "requirements.txt", "LICENSE-grader"} <= files.keys()
    assert not any(path.startswith(("lab", "trainer")) for path in files)
    capsys.readouterr()


def test_an_ordinary_course_that_is_not_released_or_not_today_says_so(ordinary: Course, capsys):
    root, source = ordinary.root, ordinary.root / "source" / NAME / "numbers.ipynb"
    text = source.read_text(encoding="utf-8")
    source.write_text(text.replace("square of 3", "square of three"), encoding="utf-8")
    assert run(root, "handout", "new") == 2
    assert capsys.readouterr().err == (
        f"error: release/{NAME}/numbers.ipynb is not what its source gives today; "
        f"run: nbgrader generate_assignment {NAME} --force\n"
    )
    shutil.rmtree(root / "source")
    assert run(root, "handout", "new") == 0
    said = capsys.readouterr().err
    assert said == (
        f"note: release/{NAME} is handed out as it lies there: its source, with which it could be "
        f"compared, is not in source/{NAME}.\n"
    )
    release = root / "release" / NAME / "numbers.ipynb"
    release.write_text(text, encoding="utf-8")
    assert run(root, "handout", "other") == 2
    said = capsys.readouterr().err
    assert said.startswith(f"error: release/{NAME}/numbers.ipynb holds BEGIN SOLUTION, so")
    shutil.rmtree(root / "release")
    assert run(root, "handout", "other") == 2
    assert capsys.readouterr().err == (
        "error: There is nothing to hand out: release/ holds no notebooks; run: "
        "nbgrader generate_assignment NAME\n"
    )


@pytest.mark.parametrize("name", ["old/numbers.ipynb", "numbers.IPYNB", "numbers.py"])
def test_what_was_never_stripped_is_handed_out_to_nobody(name: str, ordinary: Course, capsys):
    source = next((ordinary.root / "source" / NAME).glob("*.ipynb"))
    for folder in ("source", "release"):
        path = ordinary.root / folder / NAME / name
        path.parent.mkdir(exist_ok=True)
        shutil.copy(source, path)
    assert run(ordinary.root, "handout", "handed") != 0
    said = capsys.readouterr().err
    assert f"release/{NAME}/{name} holds BEGIN " in said and "so it is no release" in said
    assert not (ordinary.root / "handed").exists()


def test_the_list_of_who_handed_in_when_is_handed_out_to_nobody(ordinary: Course, capsys):
    late = '[late]\npolicy = "zero"\ndue = 2026-03-01T23:59:00+01:00\ntimes = "times.csv"\n'
    for folder in ("source", "release"):  # as nbgrader generate_assignment copies it
        place = ordinary.root / folder / NAME
        (place / "rules.toml").write_text(late, encoding="utf-8")
        (place / "times.csv").write_text("student,submitted\nada,2026-03-01T12:00:00Z\n")
    assert run(ordinary.root, "handout", "handed") == 2
    said = capsys.readouterr().err
    assert f"release/{NAME}/times.csv tells every student when everybody handed in" in said
    assert f"move source/{NAME}/times.csv" in said and not (ordinary.root / "handed").exists()


def test_settings_that_cannot_be_are_refused_by_name(sums: Course, capsys):
    config = sums.root / "nbgrader_config.py"
    for line, words in (
        ('packages = ["lib"]', "c.HandOut.packages names lib, and the course has no lib/."),
        ("packages = 3", "packages of [c.HandOut] is 3; write a list of names"),
        ('pakages = ["lib"]', "[c.HandOut] has no setting pakages"),
        ('url = "two\\nlines"', "write a text of one line"),
        ('readme = "none.md"', "none.md"),
        ('requirements = "none.txt"', "c.HandOut.requirements names"),
    ):
        config.write_text(f"{CONFIG}c.HandOut.{line}\n", encoding="utf-8")
        assert run(sums.root, "handout", "new") == 2
        assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("path", "content", "words"),
    [
        ("pyproject.toml", b"project = 3", "project should be a table"),
        ("pyproject.toml", b"[tool]\nsetuptools = 3", "setuptools should be a table"),
        ("pyproject.toml", b"version = " + b"9" * 5000, "is no TOML"),
        ("pyproject.toml", b"[tool.setuptools.package-data]\nlab = 3", "a list of patterns"),
        ("pyproject.toml", b'[tool.setuptools.package-data]\nlab = ["/etc/*"]', "a list of"),
        ("pyproject.toml", b'[tool.setuptools.package-data]\nlab = ["../*/*/*"]', "a list of"),
        ("lab/__init__.py", b"def (", "lab/__init__.py is no Python"),
        ("lab/__init__.py", b"\xff", "lab/__init__.py is no Python"),
        ("lab/__init__.py", b"a\0", "lab/__init__.py is no Python"),
        ("needs.txt", b"\xff", "needs.txt is no text in UTF-8"),
    ],
)
def test_a_courses_file_that_cannot_be_read_is_named(
    path: str, content: bytes, words: str, sums: Course, capsys
):
    (sums.root / "lab").mkdir()
    for name in ("lab/__init__.py", "needs.txt"):
        (sums.root / name).touch()
    config = f'{CONFIG}c.HandOut.packages = ["lab"]\nc.HandOut.requirements = "needs.txt"\n'
    (sums.root / "nbgrader_config.py").write_text(config, encoding="utf-8")
    (sums.root / path).write_bytes(content)
    assert run(sums.root, "handout", "new") == 2
    assert words in capsys.readouterr().err


def test_what_lies_beside_a_packages_modules_comes_along_as_pyproject_says(sums: Course):
    for name in ("lab", "other"):
        (sums.root / name).mkdir()
        for file in ("__init__.py", "page.html", "notes.txt"):
            (sums.root / name / file).write_text("", encoding="utf-8")
    config, project = sums.root / "nbgrader_config.py", sums.root / "pyproject.toml"
    config.write_text(f'{CONFIG}c.HandOut.packages = ["lab"]\n', encoding="utf-8")
    told = '"lab" = ["*.html", "*.css"]\n"other" = ["*.html"]\n'
    project.write_text(f"[tool.setuptools.package-data]\n{told}", encoding="utf-8")
    files = handing.made(sums, [checking.__name__]).files
    assert {path for path in files if path.startswith(("lab", "other"))} == {
        "lab/__init__.py",
        "lab/page.html",
    }
    setuptools = tomllib.loads(files["pyproject.toml"].decode())["tool"]["setuptools"]
    assert setuptools["package-data"]["lab"] == ["*.html", "*.css"]
    assert "other" not in setuptools["package-data"]


# A cell for hosted notebook services --------------------------------------------------------------


def test_a_first_cell_installs_what_is_missing_and_the_rest_stays(sums: Course):
    (sums.root / "lab").mkdir()
    (sums.root / "lab" / "__init__.py").write_text('"""Nothing yet."""\n', encoding="utf-8")
    told = 'c.HandOut.packages = ["lab"]\nc.HandOut.url = "https://example.org/course.zip"\n'
    (sums.root / "nbgrader_config.py").write_text(CONFIG + told, encoding="utf-8")
    files = handing.made(sums, [checking.__name__]).files
    name = f"exercises/{CHAPTER}/{CHAPTER}.ipynb"
    first, *rest = json.loads(files[name])["cells"]
    text = "".join(first["source"])
    assert first["id"] == FIRST and first["metadata"] == {}
    assert text.endswith("%pip install --quiet https://example.org/course.zip")
    assert "except ImportError:" in text and "import lab" in text
    assert rest == json.loads(sums.release(CHAPTER).read_text(encoding="utf-8"))["cells"]
    assert "lab/__init__.py" in files


@pytest.mark.skipif(sys.platform != "linux", reason="grading needs Linux")
def test_that_cell_changes_no_grade_and_no_word(ordinary: Course):
    text = (
        "try:\n    import math\nexcept ImportError:\n    %pip install --quiet https://x.org/y.zip"
    )
    for answers, name in ((RIGHT, "ada"), (RIGHT | {"square": "def square(x):\n    pass"}, "bo")):
        path = hand_in(ordinary.root, name, answers)
        one = replace(released(ordinary)[0][0], files={f"{NAME}/x.ipynb": path.read_bytes()})
        other = hand_in(ordinary.root, f"{name}-hosted", answers)
        other.write_bytes(_with_first(one, text).files[f"{NAME}/x.ipynb"])
    assert run(ordinary.root, "grade", NAME) == 0
    kept = (ordinary.root / "gradebook.journal.jsonl").read_text(encoding="utf-8").splitlines()
    results = [json.loads(line)["graded"]["result"] for line in kept if '"graded"' in line[:12]]
    found = {
        one["student"]: [
            (
                two["notes"],
                [(v["test"], v["status"], v["score"], v["told"]) for v in two["verdicts"]],
            )
            for two in one["notebooks"]
        ]
        for one in results
    }
    assert len(found) == 4
    for name in ("ada", "bo"):
        assert found[name] == found[f"{name}-hosted"]
    assert found["ada"] != found["bo"]

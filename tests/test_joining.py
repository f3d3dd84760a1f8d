"""Pages and files that let others join say what is so: passes, limits, paths, contents."""

import ast
import re
import tomllib
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
import yaml

from autograder.authoring.source import read_source
from autograder.bridge import wire
from autograder.judge.passes import PASSES
from autograder.judge.rules import Rules, read_rules
from lab.answers import misconception
from tests.conftest import ROOT
from tests.test_house import FLOORS, tracked

BOOK = ROOT / "book"
COLUMNS = ["name", "environment", "counts for", "told from"]
BUILD_AND_TEACH = ["handbook", "running", "tests", "training", "grader", "trust"]
JOINING = ["CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "CITATION.cff", "README.md"]
ROOMS = ("autograder/", "book/", "exercises/", "lab/", "solutions/", "tests/", ".ci/")
IN_MARKS = re.compile(r"`([\w./-]+)`")
NOT_THERE = re.compile(r"NAME|NN_|_build/")  # what a reader fills in, or builds


def tables(path: Path) -> list[list[list[str]]]:
    """The tables of a page: rows of cells, the first row the heads."""
    found: list[list[list[str]]] = [[]]
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("|"):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if not all(set(cell) <= {"-"} and cell for cell in cells):
                found[-1].append(cells)
        elif found[-1]:
            found.append([])
    return [table for table in found if table]


def headed(path: Path, *heads: str) -> list[list[str]]:
    """The rows of the table of a page that begins with these heads."""
    (table,) = [one for one in tables(path) if one[0][: len(heads)] == list(heads)]
    return table[1:]


def loaded(path: Path) -> dict[Any, Any]:
    """A YAML file's table."""
    found = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def test_the_page_lists_the_passes_as_they_are():
    rows = headed(BOOK / "grader.md", *COLUMNS)
    assert rows == [[one.name, one.environment, one.counts_for, one.told_from] for one in PASSES]


def test_the_page_says_the_limits_of_a_frame():
    rows = headed(BOOK / "grader.md", "limit")
    for name, value in ((re.findall(r"`(\w+)`", row[0])[0], row[1]) for row in rows):
        assert f"{getattr(wire, name):,}" == value, name
    assert len(rows) >= 8


def test_the_page_says_which_floor_may_import_which():
    rows = headed(BOOK / "grader.md", "package")
    named = [re.findall(r"`(\w+)`", row[0])[0] for row in rows]
    assert named == list(FLOORS)
    for (_, _, may), name in zip(rows, named, strict=True):
        if may.startswith("`") or may == "none of them":
            assert {*re.findall(r"`(\w+)`", may)} == FLOORS[name], name
        elif may.startswith("the "):
            above = named[: named.index(name)]
            count = {"three": 3, "four": 4}[may.split()[1]]
            assert {*above} == FLOORS[name] and len(above) == count, name
        else:
            assert {*named} - {*re.findall(r"`(\w+)`", may), name} == FLOORS[name], name


def test_files_that_the_pages_name_are_there():
    for page in ("grader.md", "handbook.md"):
        text = (BOOK / page).read_text(encoding="utf-8")
        for name in re.findall(r"`((?:common|isolation|bridge|judge)/\w+\.py)`", text):
            assert (ROOT / "autograder" / name).is_file(), f"{page}: {name}"


@pytest.mark.parametrize("name", [*JOINING, "book/grader.md", "book/handbook.md"])
def test_paths_that_are_named_are_there(name: str):
    for path in IN_MARKS.findall((ROOT / name).read_text(encoding="utf-8")):
        if path.startswith(ROOMS) and not NOT_THERE.search(path):
            assert (ROOT / path).exists(), f"{name} names {path}"


def test_the_rules_that_the_handbook_shows_are_rules(tmp_path: Path):
    text = (BOOK / "handbook.md").read_text(encoding="utf-8")
    first, late = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    path = tmp_path / "topic" / "rules.toml"
    path.parent.mkdir()
    path.write_text(first, encoding="utf-8")
    rules = read_rules(path, "topic", ["layer-norm"])
    assert replace(rules, questions={}) == Rules()
    path.write_text(late, encoding="utf-8")
    (tmp_path / "times.csv").write_text("student,submitted\n", encoding="utf-8")
    assert read_rules(path, "topic", []).late.policy == "per-day"


def test_the_pages_are_in_the_table_of_contents():
    parts = {part["caption"]: part["chapters"] for part in loaded(BOOK / "_toc.yml")["parts"]}
    files = [chapter["file"] for chapter in parts["For those who build and teach"]]
    assert files == BUILD_AND_TEACH
    for file in files:
        assert (BOOK / f"{file}.md").is_file()


def test_every_page_is_in_the_table_of_contents():
    toc = loaded(BOOK / "_toc.yml")
    chapters = [chapter for part in toc["parts"] for chapter in part["chapters"]]
    below = [page for chapter in chapters for page in chapter.get("sections", [])]
    listed = [page["file"] for page in (*chapters, *below)]
    pages = {path.stem for path in tracked("book/*.md")} - {toc["root"]}
    left_out = pages - {*listed}
    assert not left_out, f"not listed in book/_toc.yml, hence not built: {sorted(left_out)}"


def shown() -> list[str]:
    """The blocks of Python that CONTRIBUTING shows, for a question and a misconception."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    blocks = re.findall(r"(?:^ {7}.*\n|^\n(?= {7}))+", text, re.MULTILINE)
    return [re.sub(r"^ {7}", "", block, flags=re.MULTILINE) for block in blocks]


def test_the_question_that_contributing_shows_is_one(tmp_path: Path):
    question, _ = shown()
    path = tmp_path / "05_topic.py"
    path.write_text(f"# %% setup\nimport torch\n\n{question}", encoding="utf-8")
    source = read_source(path)
    (found,) = source.questions()
    assert found.title == "How large is a token?" and found.points == 1
    assert source.tests_of("token-size") == ["token-size-values"]


def test_the_misconception_that_contributing_shows_is_of_that_question():
    question, mistake = shown()
    (function,) = ast.parse(mistake).body
    assert isinstance(function, ast.FunctionDef) and ast.get_docstring(function)
    (mark,) = function.decorator_list
    assert isinstance(mark, ast.Call) and ast.unparse(mark.func) == "misconception"
    given = [ast.literal_eval(one) for one in mark.args]
    named = {one.arg or "": ast.literal_eval(one.value) for one in mark.keywords}
    signature(misconception).bind(*given, **named)
    assert f'solution="{given[0]}"' in question
    assert all(f'test="{test}"' in question for test in named["fails"])


def test_readme_keeps_an_instructors_first_steps_and_no_more():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    part = text.partition("\n## For instructors\n")[2].partition("\n## ")[0]
    assert len(part.splitlines()) <= 40
    for step in ("make release", "collect", "make grade", "report", "export", "handbook.md"):
        assert step in part, step


def test_every_command_of_the_grader_is_in_the_handbook_or_readme():
    modules = sorted((ROOT / "autograder" / "commands").glob("*.py"))
    commands = [
        node.name
        for module in modules
        for node in ast.parse(module.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef)
        and any(argument.arg == "options" for argument in node.args.args)
        and not node.name.startswith("_")
    ]
    pages = (ROOT / "README.md", BOOK / "handbook.md", BOOK / "running.md")
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    for command in commands:
        assert f"autograder {command}" in text or f"make {command}" in text, command
    assert len(commands) >= 9


def test_the_citation_says_what_the_project_is():
    cited = loaded(ROOT / "CITATION.cff")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert cited["cff-version"] == "1.2.0"
    assert {"message", "title", "authors"} <= cited.keys()
    assert str(cited["version"]) == project["version"]
    assert " AND ".join(cited["license"]) == project["license"]
    licence = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert [one["name"] in licence for one in cited["authors"]] == [True]


def test_the_workflow_runs_ci_on_every_python_that_is_supported():
    workflow = loaded(ROOT / ".github" / "workflows" / "ci.yml")
    job = workflow["jobs"]["run"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    low, high = re.findall(r"3\.(\d+)", project["requires-python"])
    supported = [f"3.{minor}" for minor in range(int(low), int(high))]
    assert job["strategy"]["matrix"]["python"] == supported
    assert "${{ matrix.python }}" in job["container"]["image"]
    assert ".ci/run" in [step.get("run") for step in job["steps"]]
    triggers = workflow.get("on") or workflow[True]  # YAML reads a bare `on` as true
    assert {"push", "pull_request"} <= triggers.keys()


def test_no_machine_is_named():
    here = re.compile(r"/(?:home|root|work|Users)/|/tmp/bash")
    for path in [*(ROOT / name for name in JOINING), *tracked(".github/**"), *tracked("book/*.md")]:
        found = here.search(path.read_text(encoding="utf-8"))
        assert found is None, f"{path}: {found}"

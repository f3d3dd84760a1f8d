"""Instructors' notebooks are read as nbgrader reads them, and what cannot be graded is refused."""

import json
import math
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import nbgrader
import pytest
from nbgrader.utils import find_all_files

from autograder.authoring.release import nbgrader as nbgrader_of
from autograder.authoring.source import notebook, read_source
from autograder.common.course import Course, CourseError
from autograder.common.scopes import facts
from autograder.judge.assignment import Assignment, read_assignment
from autograder.judge.markers import read_markers

EXAMPLE = Path(nbgrader.__file__).parent / "docs" / "source" / "user_guide" / "source"


@pytest.fixture
def example(tmp_path: Path) -> Assignment:
    """The example that nbgrader's quickstart writes."""
    shutil.copytree(EXAMPLE / "ps1", tmp_path / "source" / "ps1")
    shutil.copy(EXAMPLE / "header.ipynb", tmp_path / "source")
    text = 'c = get_config()\nc.IncludeHeaderFooter.header = "source/header.ipynb"\n'
    (tmp_path / "nbgrader_config.py").write_text(text, encoding="utf-8")
    return read_assignment(tmp_path / "source" / "ps1")


def cell(source: str, id: str = "", cell_type: str = "code", **marks) -> dict:
    """A notebook's cell; with an id it gets nbgrader's marks."""
    standard = {"grade": False, "solution": False, "locked": False, "task": False}
    found = {"nbgrader": standard | marks | {"grade_id": id, "schema_version": 3}} if id else {}
    return {"cell_type": cell_type, "metadata": found, "source": source}


def make(folder: Path, *cells: dict, name: str = "a") -> Assignment:
    """Read an assignment of one notebook with these cells."""
    folder.mkdir(exist_ok=True)
    content = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (folder / f"{name}.ipynb").write_text(json.dumps(content), encoding="utf-8")
    return read_assignment(folder)


def answer(source: str, id: str = "f") -> dict:
    """A solution cell."""
    return cell(f"### BEGIN SOLUTION\n{source}\n### END SOLUTION", id, solution=True)


def check(source: str, id: str = "t", points: object = 1) -> dict:
    """A test cell."""
    return cell(source, id, grade=True, points=points)


def nameless(made: dict) -> dict:
    """The same cell, its name taken out of nbgrader's marks."""
    made["metadata"]["nbgrader"]["grade_id"] = ""
    return made


def test_the_list_of_times_lies_in_no_sandbox(tmp_path: Path):
    folder = tmp_path / "a"
    folder.mkdir()
    (folder / "data.csv").write_text("1\n")
    (folder / "times.csv").write_text("student,submitted\nada,2026-03-01T12:00:00Z\n")
    (folder / "rules.toml").write_text('[late]\ntimes = "./times.csv"\n')
    before = make(folder, answer("f = 1"))
    assert [path.name for path in before.files] == ["data.csv"]
    (folder / "times.csv").write_text("student,submitted\nada,2026-03-02T12:00:00Z\n")
    after = make(folder, answer("f = 1"))
    assert after.digest == before.digest  # a grade depends on its own student's time alone
    assert after.rules.late.times != before.rules.late.times


@pytest.mark.parametrize(
    "odd",
    ["x", {"source": None}, {"source": [1]}, {"metadata": []}, {"cell_type": 1}]
    + [{"metadata": {"nbgrader": marks}} for marks in ([1], {"grade_id": None}, {"grade_id": 1})],
)
def test_what_is_no_cell_is_named(tmp_path: Path, odd):
    with pytest.raises(CourseError, match=r"a\.ipynb, cell 2 is no cell") as caught:
        make(tmp_path / "a", cell("1"), odd)
    assert "\n" not in str(caught.value)


def test_a_notebook_without_sound_metadata_is_read_as_pythons(tmp_path: Path):
    for metadata in (None, [], {"kernelspec": None}, {"kernelspec": "python3"}):
        content = {"cells": [cell("1")], "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
        (tmp_path / "a.ipynb").write_text(json.dumps(content), encoding="utf-8")
        assert len(read_assignment(tmp_path).notebooks[0].cells) == 1
    (tmp_path / "a.ipynb").write_text("[" * 100_000, encoding="utf-8")
    with pytest.raises(CourseError, match="is no notebook"):
        read_assignment(tmp_path)


def test_what_is_released_is_what_nbgrader_releases(tmp_path: Path, course: Course, chapter: str):
    path = tmp_path / "source" / chapter / f"{chapter}.ipynb"
    path.parent.mkdir(parents=True)
    path.write_text(notebook(read_source(course.source(chapter))), encoding="utf-8")
    shutil.copy(course.root / "nbgrader_config.py", tmp_path)
    (read,) = read_assignment(path.parent).notebooks
    released = json.loads(course.release(chapter).read_text(encoding="utf-8"))["cells"]
    assert [cell.stub for cell in read.cells] == ["".join(raw["source"]) for raw in released]
    assert [cell.id for cell in read.cells] == [raw["id"] for raw in released]
    assert read.shared_names == {}
    for found in read.of_kind("test"):
        assert found.grade_id.startswith(read.question_of(found.grade_id))
        if found.hidden:
            line = found.source.splitlines()[found.hidden_from - 1]
            assert line == "### BEGIN HIDDEN TESTS"
            assert all(1 < first < last for first, last in found.hidden)
    for found in read.of_kind("solution"):
        assert "BEGIN SOLUTION" not in found.source
        assert read.defines[found.grade_id]


def test_the_quickstart_example_is_read(example: Assignment):
    first, second = example.notebooks
    assert [(c.grade_id, c.kind, c.points) for c in first.cells if c.grade_id] == [
        ("jupyter", "readonly", 0),
        ("squares", "solution", 0),
        ("correct_squares", "test", 1),
        ("squares_invalid_input", "test", 1),
        ("sum_of_squares", "solution", 0),
        ("correct_sum_of_squares", "test", 0.5),
        ("sum_of_squares_uses_squares", "test", 0.5),
        ("sum_of_squares_equation", "manual", 1),
        ("sum_of_squares_application", "manual", 2),
        ("cell-938593c4a215c6cc", "task", 4),
    ]
    assert [c.grade_id for c in second.of_kind("manual")] == ["part-a", "part-b"]
    assert first.cells[1].source.startswith("NAME")  # the header is part of the notebook
    assert first.question_of("sum_of_squares_uses_squares") == ("sum_of_squares",)
    assert first.cell("squares").stub.endswith(
        "    # YOUR CODE HERE\n    raise NotImplementedError()"
    )
    assert first.cell("sum_of_squares_equation").stub == "YOUR ANSWER HERE"
    assert [path.name for path in example.files] == ["jupyter.png"]
    assert first.cell("correct_squares").locked and not first.cell("squares").locked


def test_the_digest_follows_tests_and_rules_and_files(example: Assignment):
    digests = {example.digest, read_assignment(example.folder).digest}
    assert len(digests) == 1
    for name in ("rules.toml", "data.csv"):
        (example.folder / name).write_text("[defaults]\n", encoding="utf-8")
        digests.add(read_assignment(example.folder).digest)
    assert len(digests) == 3


def test_rules_are_found_beside_the_notebooks(example: Assignment):
    (example.folder / "rules.toml").write_text('[squares]\nforbid = ["sum"]', encoding="utf-8")
    assert read_assignment(example.folder).rules.for_question("squares").forbid == ("sum",)
    (example.folder / "rules.toml").write_text('[square]\nforbid = ["sum"]', encoding="utf-8")
    with pytest.raises(CourseError, match="perhaps squares was meant"):
        read_assignment(example.folder)


def test_groups_and_what_their_tests_share(tmp_path: Path):
    read = make(
        tmp_path / "week",
        cell("import math"),
        answer("def f(x): return x"),
        answer("def g(x): return x", "g"),
        check("data = [1]\nassert f(data) == g(data)"),
        check("assert f(2) == 2", "t2"),
        answer("def h(x): return x", "h"),
        check("assert h(data) == data\nfor data in []: pass", "t3"),
        check("def inner(): return other\nother = 3\nassert inner() == 3", "t4"),
        answer("def data(): return 5", "data"),
        check("assert data() == 5", "t5"),
    ).notebooks[0]
    assert [group.tests for group in read.groups] == [("t", "t2"), ("t3", "t4"), ("t5",)]
    assert read.question_of("t2") == ("f", "g")
    assert read.shared_names == {"t3": ("data",)}


def test_regions_in_the_middle_are_cut_as_nbgrader_cuts_them(tmp_path: Path):
    source = "def f():\n  ### BEGIN SOLUTION\n  x = 1\n  ### END SOLUTION\n  return x"
    test = "f()\n### BEGIN HIDDEN TESTS\nf()\n### END HIDDEN TESTS\nf()\n"
    read = make(tmp_path / "week", cell(source, "f", solution=True), check(test)).notebooks[0]
    assert read.cell("f").source == "def f():\n  x = 1\n  return x"
    assert read.cell("f").stub == (
        "def f():\n  # YOUR CODE HERE\n  raise NotImplementedError()\n  return x"
    )
    assert read.cell("t").stub == "f()\nf()\n"
    assert read.cell("t").hidden == ((2, 4),)


def test_a_cell_graded_by_hand_is_handed_out_without_its_hidden_part(tmp_path: Path):
    source = (
        "### BEGIN SOLUTION\nx = 1\n### END SOLUTION\n# BEGIN HIDDEN TESTS\nx\n# END HIDDEN TESTS"
    )
    made = cell(source, "f", solution=True, grade=True, points=1)
    read = make(tmp_path / "week", made).notebooks[0]
    assert read.cell("f").stub == "# YOUR CODE HERE\nraise NotImplementedError()"


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ([check("x = (")], "line 1 is no Python"),
        ([check("nobody()")], "uses nobody, which no cell of the notebook defines"),
        ([check("nobody()")], "mark the cell for that as an answer .* with your own answer in it"),
        ([check("def g():\n  def h(): return nobody\n")], "uses nobody"),
        ([answer("raise NotImplementedError()"), check("f()")], "the solution missing in cell f"),
        ([answer("%time\ndef f():\n  return 1 +"), check("f()")], r"cell f, .* is no Python \(inv"),
        (
            [answer("def f():\n  return 1 +"), check("f()")],
            r"syntax: return 1 \+\); mend that cell",
        ),
        ([cell("f(", "", "code"), check("f()")], "cell 1, which may define it, is no Python"),
        ([nameless(check("pass"))], "cell 1: nbgrader's marks of this cell have no grade_id"),
        ([answer("a = 1"), nameless(answer("a = 1"))], "cell 2: nbgrader's marks .* no grade_id"),
        ([check("[nobody for x in [1]]")], "uses nobody"),
        ([check("f()"), answer("def f(): pass")], "defined only further down, in cell f"),
        ([check("pass"), check("pass")], "the grade_id t is there twice"),
        ([check("pass", points=None)], "points are None"),
        ([check("pass", points=-1)], "points are -1"),
        ([check("pass", points=1e308)], "0 or more and 1,000,000 at most"),
        ([check("pass", points=math.nan)], "points are nan"),
        ([cell("pass", "\ud800")], "the grade_id is no text in UTF-8"),
        ([check("pass", points="1")], "or run nbgrader update"),
        ([check("### AUTOTEST f()")], "AUTOTEST"),
        ([check("### BEGIN HIDDEN TESTS\npass")], "has no END HIDDEN TESTS"),
        ([cell("### BEGIN HIDDEN TESTS\n### END HIDDEN TESTS")], "belong in a test cell"),
        ([cell("### BEGIN SOLUTION\n### END SOLUTION")], "belongs in a solution cell"),
    ],
)
def test_what_cannot_be_graded_is_refused_in_one_sentence(
    tmp_path: Path, cells: list[dict], words: str
):
    with pytest.raises(CourseError, match=words) as caught:
        make(tmp_path / "week", *cells)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("CourseDirectory.ignore = None", "c.CourseDirectory.ignore is None .* a list of texts"),
        ("CourseDirectory.ignore = ['a', 3]", r"ignore is \['a', 3\] in nbgrader's settings"),
        ("ClearSolutions.code_stub = 3", "code_stub is 3 .* should be a text for each language"),
        ("ClearSolutions.code_stub = {'python': 3}", "code_stub is {'python': 3} in"),
        ("ClearSolutions.text_stub = 3", "text_stub is 3 .* should be a text; mend it there"),
        ("ClearHiddenTests.begin_test_delimeter = 3", "begin_test_delimeter is 3 in"),
        ("IncludeHeaderFooter.header = 3", "header is 3 in nbgrader's settings"),
    ],
)
def test_a_setting_of_another_kind_is_named(tmp_path: Path, setting: str, words: str):
    (tmp_path / "nbgrader_config.py").write_text(f"c = get_config()\nc.{setting}\n")
    with pytest.raises(CourseError, match=words):
        read_markers(tmp_path)


def test_settings_that_add_to_nbgraders_own_are_read(tmp_path: Path):
    add = "c.CourseDirectory.ignore.append('x')\nc.ClearSolutions.code_stub.update({'python': '#'})"
    (tmp_path / "nbgrader_config.py").write_text(f"c = get_config()\n{add}\n")
    markers = read_markers(tmp_path)
    assert markers.ignored[-1] == "x" and markers.code_stub == "#"


@pytest.mark.parametrize(
    "cells",
    [
        [cell("%matplotlib inline\nimport math as m"), check("assert m.pi > 3")],
        [cell("from math import *"), check("assert pi > 3")],
        [cell("%%time\nx = 1"), check("assert x")],
        [answer("class A: pass"), check("assert A() and __name__ and len([a for a in 'a'])")],
        [check("def g(n): return n and g(n - 1)\nassert g(3) == 0")],
        [check("import asyncio\nasync def g(): await asyncio.sleep(0)\nasyncio.run(g())")],
        [check("x = 1", "t0"), check("assert x")],
        [cell("def outer():\n    global y\n    y = 1\n"), check("assert y")],
        [cell("match 1:\n    case z: pass"), check("assert z")],
        [cell("with open('f') as f: pass\ntry: pass\nexcept E as e: pass"), check("f, e")],
        [cell("%%html\n<b>no Python</b>"), check("assert True")],
    ],
)
def test_ordinary_tests_are_taken(tmp_path: Path, cells: list[dict]):
    assert make(tmp_path / "week", *cells).notebooks[0].cell("t").kind == "test"


def test_a_folder_without_notebooks_says_what_to_do(tmp_path: Path):
    with pytest.raises(CourseError, match="holds no notebook"):
        read_assignment(tmp_path)
    with pytest.raises(CourseError, match="does not exist"):
        read_assignment(tmp_path / "none")
    (tmp_path / "a.ipynb").write_text("{", encoding="utf-8")
    with pytest.raises(CourseError, match="is no notebook"):
        read_assignment(tmp_path)


def test_what_a_cell_needs_is_told_in_the_order_it_runs():
    assert facts("s = s + 1").needed == {"s"}
    assert facts("s = 1\ns = s + 1").needed == frozenset()
    assert facts("x += 1").needed == {"x"}
    assert facts("def f(): return later\nlater = 1").needed == frozenset()
    assert facts("f = lambda: [x + w for x in y]").needed == {"w", "y"}
    assert facts("class A(B):\n  one = 1\n  two = one\n").needed == {"B"}
    assert facts("def f(a: T = d) -> R: return a").needed == {"T", "d", "R"}
    assert facts("x: int = 1").bound == {"x"}
    assert facts("no python at all").needed == frozenset()


def test_the_digest_tells_folders_apart_but_not_where_the_course_lies(tmp_path: Path):
    digests = []
    for name, folder in (("one", "a"), ("two", "a"), ("two", "b")):
        root = tmp_path / name / folder
        week = root / "source" / "week"
        week.mkdir(parents=True)
        settings = (
            f"c = get_config()\nc.IncludeHeaderFooter.header = {str(root / 'head.ipynb')!r}\n"
        )
        (root / "nbgrader_config.py").write_text(settings, encoding="utf-8")
        for path in (root / "head.ipynb", week / "week.ipynb"):
            path.write_text('{"cells": [], "metadata": {}}', encoding="utf-8")
        (week / folder).mkdir()
        (week / folder / "data.csv").write_text("1", encoding="utf-8")
        digests.append(read_assignment(week).digest)
    assert digests[0] == digests[1] != digests[2]


def test_what_nbgrader_keeps_out_of_the_release_is_for_tests_alone(tmp_path: Path):
    names = ["a.csv", "hidden_a.csv", "key/b.csv", "key/deep/c.csv", "data/d.csv", "data/ref.py"]
    names += ["data/more.ipynb", "feedback/e.csv", "[x].csv", "x.csv", "REF.py"]
    folder = tmp_path / "source" / "a"
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("1\n")
    config = tmp_path / "nbgrader_config.py"
    settings = [
        "",
        'c.CourseDirectory.ignore.append("hidden_*")',
        'c.CourseDirectory.ignore = ["hidden_*", "key", "ref.py", "data/d.csv", "[x].csv"]',
        'c.CourseDirectory.ignore = ["*.c?v"]',
    ]
    digests = set()
    for setting in settings:
        config.write_text(f"c = get_config()\n{setting}\n", encoding="utf-8")
        read = make(folder, answer("f = 1"))
        digests.add(read.digest)
        assert {path.relative_to(folder).as_posix() for path in read.files} == set(names)
        with nbgrader_of(Course(tmp_path)) as api:
            coursedir: Any = api.coursedir
        handed_out = find_all_files(str(folder), [*coursedir.ignore, "*.ipynb"])
        assert sorted(map(str, read.released)) == sorted(handed_out)
        assert 0 < len(handed_out) < len(names)
    assert len(digests) == len(settings)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no file has such a name")
def test_a_notebook_whose_name_is_no_text_is_named(tmp_path: Path):
    make(tmp_path / "week", check("pass"))
    (path,) = (tmp_path / "week").glob("*.ipynb")
    path.rename(path.with_name(os.fsdecode(b"\xfcbung.ipynb")))
    with pytest.raises(CourseError, match="rename the notebook"):
        read_assignment(tmp_path / "week")

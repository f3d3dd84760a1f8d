"""What runs of a notebook, in which order: what an answer needs is there when it is tested."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from autograder.judge import steps
from autograder.judge.assignment import read_assignment
from autograder.judge.intake import read_submission
from tests.intake.handing_in import (
    CHAPTER,
    NAME,
    PLAIN,
    code,
    put,
    ran,
    script,
    small,
    strip_all,
    strip_marks,
)
from tests.test_written import ODD, SPELT


@pytest.mark.parametrize("named", [False, True], ids=["without marks", "with a name alone"])
def test_ordinary_cells_are_the_students(box: Path, tmp_path: Path, named: bool):
    folder = tmp_path / "source" / CHAPTER
    folder.mkdir(parents=True)
    marks = {"grade": False, "locked": False, "solution": True, "schema_version": 3}
    none = {"nbgrader": marks | {"solution": False, "grade_id": "own"}} if named else {}
    text = {"nbgrader": none["nbgrader"] | {"grade_id": "text"}} if named else {}
    cells = [
        {"cell_type": "markdown", "metadata": text, "source": "Names"},
        {"cell_type": "code", "metadata": none, "source": 'NAME = ""'},
        {"cell_type": "code", "metadata": {"nbgrader": marks | {"grade_id": "f"}}, "source": "f=1"},
        {"cell_type": "code", "metadata": {}, "source": "f"},
    ]
    content = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 0}
    (folder / NAME).write_text(json.dumps(content), encoding="utf-8")
    assignment = read_assignment(folder)
    cells[1] = cells[1] | {"source": 'NAME = "Ada"'}
    cells[2] = cells[2] | {"source": "f = 2"}
    found = script(box, assignment, content)
    assert [c.source for c in found.cells] == ["Names", 'NAME = "Ada"', "f = 2", "f"]
    assert found.extra == (("", "code", 'NAME = "Ada"'),)
    cells[:2] = []
    found = script(box, assignment, content)
    assert [c.source for c in found.cells] == ["Names", 'NAME = ""', "f = 2", "f"]


@pytest.mark.parametrize(
    ("own", "left"),
    [
        ("def helper(x):\n    return 2", "LOG = []\nLOG.append(1)\n\n\n\n\n\n\nprint(LOG)"),
        ("LOG = [2]", "\n\n\n\ndef helper(x):\n    return x  # change this\n\n\nprint(LOG)"),
        ("LOG = [2]\nhelper = len\nprint(LOG)", "\n\n\n\n\n\n\n\nprint(LOG)"),
        ("%timeit 1\nscratch = helper", PLAIN),
        ("helper = (", PLAIN),
        ("import math  # again", PLAIN),
    ],
)
@pytest.mark.parametrize("where", ["at the top", "in the cell above", "below"])
def test_a_cell_that_is_not_there_takes_no_name_from_the_students_own(
    box: Path, tmp_path: Path, own: str, left: str, where: str
):
    assignment, content = small(tmp_path, PLAIN)
    cells = content["cells"]
    del cells[1]
    if where == "at the top":
        cells.insert(0, code(own))
    elif where == "in the cell above":
        cells[0]["source"] += f"\n{own}"
    else:  # below its place it runs first, and what is the student's counts
        cells[1]["source"] += f"\n{own}"
        left = PLAIN
    assert left in ran(box, assignment, cells)


def test_every_own_cell_is_read_once_however_many_cells_are_not_there(
    box: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    assignment, content = small(tmp_path, *(f"x{n} = 0" for n in range(60)))
    own = [code(f"x{n} = 1") for n in range(600)]
    read: list[str] = []
    real = steps.made_by_statement
    monkeypatch.setattr(steps, "made_by_statement", lambda text: read.append(text) or real(text))
    put(box, content | {"cells": [content["cells"][0], *own, *content["cells"][61:]]})
    (found,) = read_submission(box, "me", assignment).scripts
    assert [c.source for c in found.cells].count("pass") == 60
    assert len(read) < 3 * (600 + 60)


def test_a_cell_of_which_all_is_the_students_own_does_not_run(box: Path, tmp_path: Path):
    assignment, content = small(tmp_path, "def helper(x): return x\nRATE, LOG = 1, []")
    cells = content["cells"]
    cells[1:2] = [code("def helper(x): return 2 * x"), code("RATE = 2")]
    found = ran(box, assignment, cells)
    assert found[:4] == ["import math", cells[1]["source"], "RATE = 2", "pass"]


def test_a_cell_that_was_deleted_by_mistake_runs(box: Path, tmp_path: Path):
    stub = "%matplotlib inline\nimport random\nrandom.seed(0)\ndata = [1]\ndata.append(2)"
    assignment, content = small(tmp_path, stub)
    own = code("import random\nfor i in data: print(i)")
    cells = [own, *(c for c in content["cells"] if c["source"] != stub)]
    assert stub in ran(box, assignment, cells)


@pytest.mark.parametrize("kind", ["markdown", "raw"])
def test_a_cell_that_has_become_text_by_mistake_runs(box: Path, tmp_path: Path, kind: str):
    stub = "RATE = 1\ndef near(a, b): return a == b"
    assignment, content = small(tmp_path, stub)
    for number, cell in enumerate(content["cells"]):
        cell["id"] = f"cell-{number}"
    content["nbformat_minor"] = 5
    (assignment.folder / NAME).write_text(json.dumps(content), encoding="utf-8")
    assignment = read_assignment(assignment.folder)
    content["cells"][1]["cell_type"] = kind

    def first_two() -> list[str]:
        found = script(box, assignment, content).cells
        return [cell.source for cell in found if cell.cell_type == "code"][:2]

    assert first_two() == ["import math", stub]
    content["cells"][0]["source"] += "\nRATE = 2"  # what is the student's own counts
    assert first_two()[1] == "\ndef near(a, b): return a == b"


@pytest.mark.parametrize("left", ["", "\n  \n", "# RATE = 1\n#def near(a, b): return a == b"])
def test_a_cell_that_was_emptied_by_mistake_runs(box: Path, tmp_path: Path, left: str):
    stub = "RATE = 1\ndef near(a, b): return a == b"
    assignment, content = small(tmp_path, stub)
    content["cells"][1]["source"] = left
    assert stub in ran(box, assignment, content["cells"])


@pytest.mark.parametrize(
    ("theirs", "first"),
    {
        "from google.colab import drive\nimport math\nRATE = 1": ["import math"],
        "import numpy\nRATE = 1": ["import math"],
        "print('a\nimport math": ["import math"],  # cannot be read
        "import math\nRATE = 2": [],
    }.items(),
)
def test_what_a_changed_cell_was_to_import_is_there(
    box: Path, tmp_path: Path, theirs: str, first: list[str]
):
    assignment, content = small(tmp_path, "import math\nRATE = 1")
    content["cells"][1]["source"] = theirs
    found = ran(box, assignment, content["cells"])
    place = found.index(theirs)
    assert found[place - len(first) : place] == first
    assert found.count("import math") == 1 + len(first)  # that of the cell above


def test_what_a_moved_answer_needs_runs_before_it(box: Path, tmp_path: Path):
    stub = "RATE = 1"
    assignment, content = small(tmp_path, stub)
    imports, plain, mean, mean_test, square, square_test = content["cells"]
    mean["source"] = "@twice\ndef mean(x):\n    return square(x)"
    decorator = code("def twice(f):\n    return f if keep and square(RATE) else f")
    keep, scratch = code("keep = True"), code("print(1)")
    cells = [imports, square, plain, square_test, keep, scratch, decorator, mean, mean_test]
    found = ran(box, assignment, cells)
    assert found.index(keep["source"]) < found.index(decorator["source"])
    for needed in (square, decorator):
        assert found.count(needed["source"]) == 1
        assert found.index(needed["source"]) < found.index(mean["source"])
    assert found.index(mean["source"]) < found.index("print(1)")
    assert found.count(stub) == 1 and found.count("pass") == 0


def test_an_ordinary_cell_that_a_moved_answer_needs_runs_once(box: Path, tmp_path: Path):
    assignment, content = small(tmp_path)
    folder = assignment.folder
    cells = content["cells"]
    cells.insert(3, code("LIMIT = 1"))
    (folder / NAME).write_text(json.dumps(content), encoding="utf-8")
    assignment = read_assignment(folder)
    imports, mean, mean_test, limit, square, square_test = cells
    limit["source"], mean["source"] = "LIMIT = 2", "def mean(x, of=LIMIT):\n    return x"
    cells = [imports, limit, square, square_test, mean, mean_test]
    assert [c["source"] for c in (imports, limit, mean)] == ran(box, assignment, cells)[:3]
    assert ran(box, assignment, cells)[3:] == ["pass", square["source"]]


HELPER = "def keep(x):\n    return x\n\n\nLIMIT = keep(3)"
USES = "def square(x):\n    return keep(x) ** 2 + LIMIT"


@pytest.mark.parametrize("change", [list, strip_marks, strip_all])
@pytest.mark.parametrize("place", [2, 4])
def test_a_helper_in_the_place_of_a_test_runs(
    box: Path, tmp_path: Path, place: int, change: Callable
):
    assignment, content = small(tmp_path)
    cells = [cell | {"id": f"c{number}"} for number, cell in enumerate(content["cells"])]
    cells[place] = code(HELPER) | {"id": f"c{place}"}
    cells[3]["source"] = USES
    cells = change(cells)
    found = script(box, assignment, content | {"cells": cells})
    kinds = [(c.kind, c.source) for c in found.cells]
    assert ("extra", HELPER) in kinds and ("answer", USES) in kinds
    assert [c.grade_id for c in found.cells if c.kind == "test"] == ["mean-test", "square-test"]
    after = "mean" if place == 2 else "square"
    assert found.extra == ((after, "code", HELPER),)
    assert "had been deleted" in " ".join(flag.words for flag in found.flags)


@pytest.mark.parametrize("where", [2, 3])
@pytest.mark.parametrize("locked", ["mean-test", "setup"])
def test_a_copy_of_a_locked_cell_that_became_a_helper_runs(
    box: Path, tmp_path: Path, locked: str, where: int
):
    assignment, content = small(tmp_path)
    cells = content["cells"]
    if locked == "setup":
        cells[2] = code("import os", "setup", grade=True)
        cells[2]["metadata"]["nbgrader"]["grade"] = False
        (assignment.folder / NAME).write_text(json.dumps(content))
        assignment = read_assignment(assignment.folder)
    same = [dict(cells[2]), dict(cells[2])]
    cells[3]["source"] = USES
    cells[where:where] = [cells[2] | {"source": HELPER}, *same]
    found = script(box, assignment, content)
    assert [c.source for c in found.cells if c.kind == "extra"] == [HELPER]
    assert found.answers["square"] == USES
    words = " ".join(flag.words for flag in found.flags)
    assert f"The cell {locked} is there 4 times." in words and "was changed" not in words


def test_a_helper_written_into_a_marked_test_runs_and_nothing_else_of_that_cell(
    box: Path, tmp_path: Path
):
    assignment, content = small(tmp_path)
    helper = f"def keep(x):\n    return {SPELT}"
    old = "def mean(x):\n    return 0"
    typed = f"def keep(x):\n    return {ODD}"
    content["cells"][2]["source"] = f"import os\n{typed}\n\n{old}\nmath = None\nprint(mean(1))"
    found = script(box, assignment, content)
    assert [c.source for c in found.cells if c.kind == "extra"] == [f"import os\n{helper}"]
    assert "The test mean-test was changed" in " ".join(flag.words for flag in found.flags)


BETWEEN = ["", "mean([1])", '"""Second attempt:"""', "import os", "print(mean)"]


@pytest.mark.parametrize("between", BETWEEN)
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("def add(x): return sum(x)\ndef mean(x): return 0", "def mean(x): return add(x)"),
        ("import math as m\ndef mean(x): return 0", "def mean(x): return m.fsum(x)"),
        ("def mean(x): return 0", "first = mean\ndef mean(x): return first(x) + 1"),
    ],
)
def test_what_an_answer_needs_of_an_older_one_runs_whatever_stands_between(
    box: Path, tmp_path: Path, first: str, second: str, between: str
):
    assignment, content = small(tmp_path)
    cells = content["cells"]
    cells[1:2] = [code(first, "mean"), code(between), code(second, "mean")]
    found = script(box, assignment, content)
    order = [c.source for c in found.cells]
    assert found.answers["mean"] == second and order.index(first) < order.index(second)


def test_of_older_answers_only_those_run_that_the_last_one_needs(box: Path, tmp_path: Path):
    assignment, content = small(tmp_path)
    attempts = [
        "def mean(x): return add(x)",  # nothing needs this one
        "def add(x): return sum(x)\ndef mean(x): return 0",
        "def share(x): return add(x) / 2\ndef mean(x): return add(x)",
        "def mean(x): return 7",
        "def mean(x): return share(x)",
    ]
    content["cells"][1:2] = [code(source, "mean") for source in attempts]
    order = ran(box, assignment, content["cells"])
    assert [one for one in order if one in attempts] == [attempts[1], attempts[2], attempts[4]]


@pytest.mark.parametrize("test", ["below", "deleted"])
def test_a_helper_below_its_answer_is_there_when_a_test_that_stood_below_both_asks(
    box: Path, tmp_path: Path, test: str
):
    assignment, content = small(tmp_path)
    imports, mean, mean_test, square, square_test = content["cells"]
    mean["source"] = "def mean(x):\n    return inner(x)"
    inner, outer = code("def inner(x):\n    return outer(x)"), code("def outer(x):\n    return x")
    other, acting = code("def other(x):\n    return x"), code("outer = inner = print(1)")
    cells = [imports, mean, outer, square, acting, other, inner, square_test]
    cells += [mean_test] if test == "below" else []
    content["cells"] = cells
    order = [c.grade_id or c.source for c in script(box, assignment, content).cells]
    asked = order[order.index("mean") : order.index("mean-test")]
    assert asked == ["mean", outer["source"], inner["source"]]
    assert [order.count(one["source"]) for one in (inner, other, acting)] == [2, 1, 1]


@pytest.mark.parametrize("helper", ["def helper(x):\n    return x", "print(1)\nhelper = len"])
def test_a_helper_below_an_answer_and_its_test_runs_only_where_it_stands(
    box: Path, tmp_path: Path, helper: str
):
    assignment, content = small(tmp_path)
    cells = content["cells"]
    cells[1]["source"] = "def mean(x):\n    return helper(x)"
    cells.append(code(helper))
    order = [c.grade_id or c.source for c in script(box, assignment, content).cells]
    assert order == ["import math", "mean", "mean-test", "square", "square-test", helper]


def test_a_half_of_an_answer_above_the_cell_that_goes_on_with_it_runs_first(
    box: Path, tmp_path: Path
):
    assignment, content = small(tmp_path, "# Question 2")
    imports, heading, mean, mean_test, square, square_test = content["cells"]
    content["cells"] = [imports, mean, mean_test, heading, square, square_test]
    (assignment.folder / NAME).write_text(json.dumps(content))
    assignment = read_assignment(assignment.folder)
    first, second = (
        square | {"source": "two = 2"},
        code("def square(x, of=two):\n    return x ** of"),
    )
    content["cells"] = [
        imports,
        mean,
        mean_test,
        first,
        code("1 + 1"),
        heading,
        second,
        square_test,
    ]
    order = ran(box, assignment, content["cells"])
    assert order.count("two = 2") == 1 and order.index("two = 2") < order.index(second["source"])


def test_in_the_given_order_everything_stays_where_it_stands(box: Path, tmp_path: Path):
    assignment, content = small(tmp_path, PLAIN)
    cells = [one for cell in content["cells"] for one in (cell, code("helper = mean = print"))]
    wanted = [c["source"] for c in cells if not c["source"].startswith("assert")]
    assert ran(box, assignment, cells) == wanted


def test_what_was_written_into_a_locked_task_is_kept_for_the_grader(box: Path, tmp_path: Path):
    folder = tmp_path / "source" / CHAPTER
    folder.mkdir(parents=True)
    marks = {"grade": False, "locked": True, "solution": False, "task": True, "points": 2}
    marks |= {"grade_id": "task", "schema_version": 3}
    cell = {"cell_type": "markdown", "metadata": {"nbgrader": marks}, "source": "Do it."}
    content = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 0}
    (folder / NAME).write_text(json.dumps(content), encoding="utf-8")
    below = {"cell_type": "markdown", "metadata": {}, "source": "Done below."}
    content["cells"] = [cell | {"source": "Do it. Done."}, below]
    found = script(box, read_assignment(folder), content)
    assert found.extra == (
        ("task", "markdown", "Do it. Done."),
        ("task", "markdown", "Done below."),
    )
    assert found.cells[0].source == "Do it."


def test_what_is_written_into_a_locked_text_is_kept_for_a_person(box: Path, tmp_path: Path):
    folder = tmp_path / "source" / CHAPTER
    folder.mkdir(parents=True)
    marks = {"grade": False, "locked": True, "solution": False, "schema_version": 3}
    metadata = {"nbgrader": marks | {"grade_id": "asks"}}
    cells = [{"cell_type": "markdown", "metadata": metadata, "source": "Why?"}]
    content = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 0}
    (folder / NAME).write_text(json.dumps(content), encoding="utf-8")
    assignment = read_assignment(folder)
    assert script(box, assignment, content).extra == ()
    cells[0] = cells[0] | {"source": "Why? Because."}
    assert script(box, assignment, content).extra == (("asks", "markdown", "Why? Because."),)

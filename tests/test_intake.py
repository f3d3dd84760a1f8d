"""Whatever a student hands in is read within bounds, and ends in answers or in a reason."""

import json
import os
import random
import shutil
import stat
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from autograder.authoring.source import notebook, read_source
from autograder.common.course import Course
from autograder.judge import intake, steps
from autograder.judge.assignment import Assignment, Notebook, checksum_of, read_assignment
from autograder.judge.intake import read_submission
from autograder.judge.parcel import Parcel, Place, at, collect
from autograder.judge.rules import Rules
from autograder.judge.script import Script, Submission

CHAPTER = "03_attention"
NAME = f"{CHAPTER}.ipynb"
posix = pytest.mark.skipif(os.name != "posix", reason="links and pipes are POSIX's")
Cells = list[dict[str, Any]]


@pytest.fixture(scope="module")
def assignment(tmp_path_factory: pytest.TempPathFactory) -> Assignment:
    """A chapter of this course."""
    course = Course.find(Path(__file__).parents[1])
    root = tmp_path_factory.mktemp("course")
    folder = root / "source" / CHAPTER
    folder.mkdir(parents=True)
    text = notebook(read_source(course.source(CHAPTER)))
    (folder / NAME).write_text(text, encoding="utf-8")
    shutil.copy(course.root / "nbgrader_config.py", root)
    return read_assignment(folder)


@pytest.fixture(scope="module")
def week(assignment: Assignment) -> Notebook:
    """Its notebook."""
    return assignment.notebooks[0]


@pytest.fixture
def box(tmp_path: Path) -> Path:
    """A submission's folder."""
    folder = tmp_path / "submitted" / "me" / CHAPTER
    folder.mkdir(parents=True)
    return folder


def released() -> dict[str, Any]:
    """The student's notebook as it is handed out."""
    path = Path(__file__).parents[1] / "exercises" / CHAPTER / NAME
    return json.loads(path.read_text(encoding="utf-8"))


def id_of(cell: dict) -> str:
    """A cell's grade_id."""
    return cell["metadata"].get("nbgrader", {}).get("grade_id", "")


def solved(week: Notebook) -> dict[str, Any]:
    """The student's notebook with the reference's answers."""
    content = released()
    for cell in content["cells"]:
        if id_of(cell) and week.cell(id_of(cell)).kind == "solution":
            cell["source"] = week.cell(id_of(cell)).source.splitlines(keepends=True)
    return content


def put(box: Path, content: object, name: str = NAME) -> None:
    """Hand in a notebook."""
    text = content if isinstance(content, bytes) else json.dumps(content).encode()
    (box / name).write_bytes(text)


def read(box: Path, assignment: Assignment) -> Submission:
    """What is read; reading it again gives the same."""
    found = read_submission(box, "me", assignment)
    assert found == read_submission(box, "me", assignment)
    assert all(len(note) < 400 and note.endswith(".") for note in found.notes), found.notes
    json.dumps([found.notes, found.reason], ensure_ascii=False).encode("utf-8")
    return found


def script(box: Path, assignment: Assignment, content: object) -> Script:
    """The notebook of a submission that can be graded."""
    put(box, content)
    found = read(box, assignment)
    assert found.reason == "" and len(found.scripts) == 1
    return found.scripts[0]


def right(found: Script, week: Notebook) -> bool:
    """Whether every solution cell holds the reference."""
    return all(found.answers[c.grade_id] == c.source for c in week.of_kind("solution"))


def test_a_release_handed_in_untouched_is_recognised(
    box: Path, assignment: Assignment, week: Notebook
):
    found = script(box, assignment, released())
    assert found.untouched == tuple(c.grade_id for c in week.cells if c.answerable)
    assert not (found.notes or found.flags or found.missing or found.extra)
    assert [c.grade_id for c in found.cells if c.kind == "test"] == [
        c.grade_id for c in week.of_kind("test")
    ]
    assert all(not c.source for c in found.cells if c.kind == "test")


def test_an_honest_submission_raises_no_flag(box: Path, assignment: Assignment, week: Notebook):
    content = solved(week)
    content["cells"].insert(5, {"cell_type": "code", "metadata": {}, "source": "print(scores)"})
    content["cells"][4]["outputs"] = [{"output_type": "stream", "text": ["x"], "name": "stdout"}]
    found = script(box, assignment, content)
    assert right(found, week)
    assert not (found.notes or found.flags or found.missing)
    (extra,) = [c for c in found.cells if c.kind == "extra"]
    assert extra.source == "print(scores)"
    assert found.extra == (("scores-additive", "code", "print(scores)"),)
    kinds = [c.kind for c in found.cells]
    assert kinds.index("extra") == 5


def strip_marks(cells: Cells) -> Cells:
    """All of nbgrader's metadata removed."""
    return [cell | {"metadata": {}} for cell in cells]


def strip_all(cells: Cells) -> Cells:
    """No metadata and no ids either."""
    return [{k: v for k, v in c.items() if k != "id"} for c in strip_marks(cells)]


def drop_tests(cells: Cells) -> Cells:
    """All tests deleted."""
    tests = [c for c in cells if c["metadata"].get("nbgrader", {}).get("grade")]
    return [c for c in cells if c not in tests or c["metadata"]["nbgrader"]["solution"]]


def change_tests(cells: Cells) -> Cells:
    """All tests emptied."""
    return [c | {"source": "pass"} if c not in drop_tests([c]) else c for c in cells]


def marks(**values: object) -> Callable[[Cells], Cells]:
    """Other values in nbgrader's metadata of every cell that has some."""

    def change(cells: Cells) -> Cells:
        for cell in cells:
            if "nbgrader" in cell["metadata"]:
                cell["metadata"]["nbgrader"].update(values)
        return cells

    return change


def as_another_release(cells: Cells) -> Cells:
    """All tests emptied, worth a thousand, and with the checksums that nbgrader would give them."""
    cells = change_tests(cells)
    for cell in cells:
        if cell not in drop_tests([cell]):
            own = cell["metadata"]["nbgrader"]
            own["points"] = 1000
            own["checksum"] = checksum_of(cell["source"], cell["cell_type"], own)
    return cells


def metadata(value: object) -> Callable[[Cells], Cells]:
    """Something else in place of nbgrader's metadata."""
    return lambda cells: [cell | {"metadata": {"nbgrader": value}} for cell in cells]


def skipped(cells: Cells) -> Cells:
    """The tag that makes nbgrader skip a test."""
    return [c | {"metadata": c["metadata"] | {"tags": ["skip-execution"]}} for c in cells]


def swapped_tests(cells: Cells) -> Cells:
    """Two tests have changed names."""
    first, second = [c for c in cells if c not in drop_tests([c])][:2]
    one, two = first["metadata"]["nbgrader"], second["metadata"]["nbgrader"]
    one["grade_id"], two["grade_id"] = two["grade_id"], one["grade_id"]
    return cells


def swapped_answers(cells: Cells) -> Cells:
    """Two answers have changed names."""
    by_id = {id_of(c): c["metadata"].get("nbgrader", {}) for c in cells}
    by_id["masks"]["grade_id"], by_id["scores"]["grade_id"] = "scores", "masks"
    return cells


def huge_extra(cells: Cells) -> Cells:
    """A cell too long to be read, beside the answers."""
    return [*cells, {"cell_type": "markdown", "metadata": {}, "source": "x" * 300_000}]


def as_type(kind: str) -> Callable[[Cells], Cells]:
    """Every cell of another type."""
    return lambda cells: [cell | {"cell_type": kind} for cell in cells]


def doubled(cells: Cells) -> Cells:
    """The first half again at the end, as it was handed out."""
    return [*cells, *[c for c in released()["cells"] if id_of(c)]]


def damaged_setup(cells: Cells) -> Cells:
    """The locked setup is another one."""
    cells[1]["source"] = "torch = None"
    return cells


@pytest.mark.parametrize(
    ("change", "flag"),
    [
        (strip_marks, "had lost their grading marks"),
        (strip_all, "had lost their grading marks"),
        (drop_tests, "had been deleted"),
        (change_tests, "was changed"),
        (as_another_release, ""),
        (damaged_setup, "The locked cell setup was changed"),
        (marks(points=1000), "grading marks"),
        (marks(points=-5), "grading marks"),
        (marks(points="many"), "grading marks"),
        (marks(grade=True, points=50), "grading marks"),
        (marks(solution=[1]), "grading marks"),
        (marks(schema_version=99), "grading marks"),
        (marks(schema_version=1), ""),
        (metadata("text"), "had lost their grading marks"),
        (metadata([1, 2]), "had lost their grading marks"),
        (metadata({"grade_id": ["a"]}), "had lost their grading marks"),
        (metadata({"grade_id": {}}), "had lost their grading marks"),
        (skipped, "marked to be skipped"),
        (swapped_tests, "was changed"),
        (swapped_answers, "had lost their grading marks"),
        (huge_extra, ""),
        (as_type("markdown"), ""),
        (as_type("raw"), ""),
        (as_type("nonsense"), ""),
        (doubled, "is there 2 times"),
        (lambda cells: [*cells, *strip_marks(cells)[:2]], ""),
        (lambda cells: [*cells[:4], {"cell_type": "code"}, *cells[4:]], ""),
    ],
)
def test_right_answers_stay_right_whatever_else_was_changed(
    box: Path, assignment: Assignment, week: Notebook, change: Callable, flag: str
):
    content = solved(week)
    content["cells"] = change(content["cells"])
    found = script(box, assignment, content)
    assert right(found, week)
    assert found.missing == ()
    words = " ".join(one.words for one in found.flags)
    assert flag in words and bool(flag) == bool(found.flags), found.flags
    assert all(one.kind == "tampering" for one in found.flags)


def test_of_several_copies_the_last_that_is_an_answer_counts(
    box: Path, assignment: Assignment, week: Notebook
):
    content = solved(week)
    cells = content["cells"]
    place = next(n for n, cell in enumerate(cells) if id_of(cell) == "masks")
    good = "def causal_mask(n): return 1\ndef padding_mask(a, b): return 2\n"
    cells.insert(place + 1, cells[place] | {"source": good})
    cells.append(cells[place] | {"source": "def causal_mask(n: return"})
    cells.append(cells[place] | {"source": "Some prose.", "cell_type": "markdown"})
    cells.append(cells[place] | {"source": ["causal_mask(3)"]})
    cells.append(cells[place] | {"source": ""})
    found = script(box, assignment, content)
    assert found.answers["masks"] == good
    assert "The cell masks is there 6 times; number 2 was graded." in found.notes
    assert "causal_mask(3)" in [c.source for c in found.cells if c.kind == "extra"]
    assert all("padding_mask" not in c.source for c in found.cells if c.kind == "extra")


ROOT = "def causal_mask(n): return 1"
BOTH = f"{ROOT}\ndef padding_mask(a, b): return 2"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (BOTH, "padding_mask = print(padding_mask)"),  # a step further
        (f"{ROOT}\nk = 1", f"{BOTH}\nk += 1"),
        ("SIZE = 3\n" + BOTH, f"{ROOT}\ndef padding_mask(a, b): return SIZE"),
        ("def padding_mask(a, b): return causal_mask(0)\nk = 1", ROOT),
    ],
)
def test_both_halves_of_a_split_cell_run_in_order(
    box: Path, assignment: Assignment, week: Notebook, first: str, second: str
):
    content = solved(week)
    cells = content["cells"]
    place = next(n for n, cell in enumerate(cells) if id_of(cell) == "masks")
    cells[place : place + 1] = [cells[place] | {"source": half} for half in (first, second)]
    found = script(box, assignment, content)
    ran = [c.source for c in found.cells]
    assert ran.index(first) + 1 == ran.index(second)
    assert found.answers["masks"] in (first, second)


@pytest.mark.parametrize(
    "second", [BOTH.replace("2", "3"), BOTH.replace("2", "padding_mask(b, a)")]
)
def test_a_second_answer_is_no_half(box: Path, assignment: Assignment, week: Notebook, second: str):
    content = solved(week)
    cells = content["cells"]
    place = next(n for n, cell in enumerate(cells) if id_of(cell) == "masks")
    cells[place : place + 1] = [cells[place] | {"source": half} for half in (BOTH, second)]
    found = script(box, assignment, content)
    assert found.answers["masks"] == second and BOTH not in [c.source for c in found.cells]


def test_an_answer_in_a_cell_of_its_own_is_found(box: Path, assignment: Assignment, week: Notebook):
    content = released()
    source = week.cell("masked-softmax").source
    content["cells"].insert(9, {"cell_type": "code", "metadata": {}, "source": source})
    found = script(box, assignment, content)
    assert found.answers["masked-softmax"] == source
    assert "masked-softmax" not in found.untouched
    assert "found in another cell" in found.notes[0]
    assert source not in [c.source for c in found.cells if c.kind == "extra"]


def test_a_deleted_answer_is_missing(box: Path, assignment: Assignment, week: Notebook):
    content = solved(week)
    content["cells"] = [cell for cell in content["cells"] if id_of(cell) != "masks"]
    found = script(box, assignment, content)
    assert found.missing == ("masks",) and found.answers["masks"] == ""
    assert not found.flags


@pytest.mark.parametrize("source", [{"a": 1}, 7, None, ["a", 3], "x" * 300_000])
def test_an_unreadable_cell_costs_only_itself(
    box: Path, assignment: Assignment, week: Notebook, source: object
):
    content = solved(week)
    cell = next(cell for cell in content["cells"] if id_of(cell) == "masks")
    cell["source"] = source
    found = script(box, assignment, content)
    assert list(found.damaged) == ["masks"] and "cannot be read" in found.damaged["masks"]
    assert found.answers["scores"] == week.cell("scores").source


@pytest.mark.parametrize(
    ("picture", "kept"),
    [
        (
            "data:image/png;base64," + "iVBO/+" * 50_000,
            "See\n![p](data:image/png;base64,) Because.",
        ),
        (
            "data:image/png;base64,\n" + ("iVBO/+" * 12 + "\r\n") * 4_000 + "iV==",
            "See\n![p](data:image/png;base64,) Because.",
        ),
        (
            "data:image/png;base64," + ("iVBO/+" * 12 + "\n  ") * 4_000 + "Because\nit is",
            "See\n![p](data:image/png;base64,\n  Because\nit is) Because.",
        ),
        ("data:words," + "word\n" * 60_000, ""),
        ("word " * 60_000, ""),
    ],
)
def test_a_written_answer_that_is_too_long_is_said_to_be_and_loses_its_pictures_first(
    box: Path, tmp_path: Path, picture: str, kept: str
):
    folder = tmp_path / "source" / CHAPTER
    folder.mkdir(parents=True)
    marks = {"grade": True, "locked": False, "solution": True, "schema_version": 3, "points": 2}
    metadata = {"nbgrader": marks | {"grade_id": "why"}}
    cells = [{"cell_type": "markdown", "metadata": metadata, "source": "YOUR ANSWER HERE"}]
    content = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 0}
    (folder / NAME).write_text(json.dumps(content), encoding="utf-8")
    assignment = read_assignment(folder)
    cells[0] = cells[0] | {"source": f"See\n![p]({picture}) Because."}
    found = script(box, assignment, content)
    assert found.answers["why"] == kept
    (note,), (flag,) = found.notes, found.flags
    assert flag.words == note and "The cell why" in note and "longer than 200,000" in note


def test_many_pasted_pictures_are_left_out_before_a_notebook_is_too_long(
    box: Path, assignment: Assignment, week: Notebook
):
    content = solved(week)
    picture = "data:image/png;base64," + "iVBO/+" * 31_000
    pasted = {"cell_type": "markdown", "metadata": {}, "source": f"See ![p]({picture})"}
    few = script(box, assignment, {"cells": [*content["cells"], pasted]})
    assert few.extra[-1][2] == pasted["source"] and not few.notes
    found = script(box, assignment, {"cells": [*content["cells"], *[pasted] * 11]})
    assert right(found, week)
    assert [source for _, _, source in found.extra] == ["See ![p](data:image/png;base64,)"] * 11
    assert found.notes[0].endswith("all of them the notebook is longer than 2 million characters.")


def test_a_picture_that_was_pasted_is_said_to_be_only_in_what_was_handed_in(
    box: Path, tmp_path: Path
):
    folder = tmp_path / "source" / CHAPTER
    folder.mkdir(parents=True)
    marks = {"grade": True, "locked": False, "solution": True, "schema_version": 3, "points": 2}
    metadata = {"nbgrader": marks | {"grade_id": "why"}}
    given = {"a task.png": {"image/png": "iVBO"}}
    stub = "![](attachment:a%20task.png)\n### BEGIN SOLUTION\n### END SOLUTION"
    cells: Cells = [{"cell_type": "markdown", "metadata": metadata, "source": stub}]
    cells[0]["attachments"] = given
    content = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}
    (folder / NAME).write_text(json.dumps(content), encoding="utf-8")
    assignment = read_assignment(folder)
    cells[0] = cells[0] | {"source": f"{stub} Because."}
    assert not script(box, assignment, content).notes
    pasted = {f"{number}\x1b\ud800.png": 5 for number in range(5)}
    cells[0] = cells[0] | {"attachments": {**given, "photo.png": {"image/png": "iVBO"}, **pasted}}
    cells.append({"cell_type": "markdown", "metadata": {}, "source": "x", "attachments": given})
    found = script(box, assignment, content)
    (flag,) = found.flags
    assert flag.words.startswith("The cell why: pasted pictures are only in the notebook that was")
    assert "(photo.png, 0" in flag.words and "and 3 more)" in flag.words
    assert flag.words in found.notes
    assert any(note.startswith("Cell 2: pasted pictures") for note in found.notes)


@pytest.mark.parametrize(
    "outputs",
    ["[" * 5000 + "]" * 5000, "[" + "[]," * 1_100_000 + "{}]", '[{"]": "\\"]", "outputs": []}]'],
)
def test_outputs_decide_nothing(box: Path, assignment: Assignment, week: Notebook, outputs: str):
    content = solved(week)
    for cell in content["cells"][:12]:
        cell["outputs"] = ["?"] if cell is content["cells"][9] else []
    text = json.dumps(content).replace('"outputs": ["?"]', f'"outputs" : {outputs}')
    found = script(box, assignment, text.encode())
    assert len(text) > 1 and right(found, week) and not found.notes


@pytest.mark.parametrize("torn", ['"outputs": [', '"outputs": [}', '"outputs": ["'])
def test_outputs_without_an_end_are_no_notebook(box: Path, assignment: Assignment, torn: str):
    put(box, b'{"cells": [{' + torn.encode())
    assert "no JSON text" in read(box, assignment).reason


@pytest.mark.parametrize(
    ("pasted", "meant"),
    [
        ("In [3]: k = [2, 4]", "k = [2, 4]"),
        ("\n\nIn [3]: k = 2\nIn [4]: m = 3\n", "\n\nk = 2\nm = 3\n"),
        ("# pasted\nIn [12]: k = 2", "# pasted\nk = 2"),
        ("In [1]: def f():\n   ...:     return 1\n", "def f():\n    return 1\n"),
        ("In = [0]\nx = In[0]", "In = [0]\nx = In[0]"),
    ],
)
def test_prompts_that_were_pasted_are_left_out_as_jupyter_does(
    box: Path, assignment: Assignment, week: Notebook, pasted: str, meant: str
):
    content = solved(week)
    next(cell for cell in content["cells"] if id_of(cell) == "masks")["source"] = pasted
    assert script(box, assignment, content).answers["masks"] == meant


def test_ordinary_cells_are_the_students(box: Path, tmp_path: Path):
    folder = tmp_path / "source" / CHAPTER
    folder.mkdir(parents=True)
    marks = {"grade": False, "locked": False, "solution": True, "schema_version": 3}
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": "Names"},
        {"cell_type": "code", "metadata": {}, "source": 'NAME = ""'},
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


PLAIN = "LOG = []\nLOG.append(1)\n\n\ndef helper(x):\n    return x  # change this\n\n\nprint(LOG)"
ANSWERS = {"mean": "def mean(x):\n    return x", "square": "def square(x):\n    return helper(x)"}


def small(tmp_path: Path, *ordinary: str) -> tuple[Assignment, dict[str, Any]]:
    """An assignment with ordinary cells, two answers and their tests; and its notebook, solved."""
    folder = tmp_path / "source" / CHAPTER
    folder.mkdir(parents=True)
    cells: Cells = [code("import math"), *map(code, ordinary)]
    for name, source in ANSWERS.items():
        cells += [code(source, name), code(f"assert {name}(1)", f"{name}-test", grade=True)]
    content = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}
    (folder / NAME).write_text(json.dumps(content), encoding="utf-8")
    return read_assignment(folder), json.loads(json.dumps(content))


def code(source: str, grade_id: str = "", *, grade: bool = False) -> dict[str, Any]:
    """A code cell; with a grade_id an answer or a test."""
    marks = {"grade": grade, "solution": not grade, "locked": grade, "schema_version": 3}
    marks = {"nbgrader": marks | {"points": 1, "grade_id": grade_id}} if grade_id else {}
    return {"cell_type": "code", "metadata": marks, "source": source}


def ran(box: Path, assignment: Assignment, cells: Cells) -> list[str]:
    """What runs of these cells, in order, without the tests."""
    content = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}
    return [c.source for c in script(box, assignment, content).cells if c.kind != "test"]


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


def test_a_test_without_marks_of_which_a_word_was_changed_is_still_the_test(
    box: Path, tmp_path: Path
):
    assignment, content = small(tmp_path)
    cells = content["cells"]
    cells[2] = code("assert  mean(1) # ok? I think that this is right, and leave it as it is")
    (assignment.folder / NAME).write_text(
        json.dumps(
            content
            | {"cells": [*cells[:2], code(cells[2]["source"], "mean-test", grade=True), *cells[3:]]}
        )
    )
    assignment = read_assignment(assignment.folder)
    cells[2]["source"] = cells[2]["source"].replace("right", "wrong")
    found = script(box, assignment, content)
    assert not found.extra
    assert "The test mean-test was changed" in " ".join(flag.words for flag in found.flags)


def test_an_answer_and_its_test_in_one_cell_are_the_answer(box: Path, tmp_path: Path):
    assignment, content = small(tmp_path)
    cells = [cell | {"id": f"c{number}"} for number, cell in enumerate(content["cells"])]
    (assignment.folder / NAME).write_text(json.dumps(content | {"cells": cells}))
    assignment = read_assignment(assignment.folder)
    both = "\n".join(cell["source"] for cell in cells[1:3])
    cells[1:3] = [cells[2] | {"source": both}]
    found = script(box, assignment, content | {"cells": strip_marks(cells)})
    assert found.answers["mean"] == both and not found.missing


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
    helper = "def keep(x):\n    return x"
    old = "def mean(x):\n    return 0"
    content["cells"][2]["source"] = f"import os\n{helper}\n\n{old}\nmath = None\nprint(mean(1))"
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


ENCODINGS = ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-be"]


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_every_unicode_encoding_is_read(
    box: Path, assignment: Assignment, week: Notebook, encoding: str
):
    content = json.dumps(solved(week), ensure_ascii=False).encode(encoding)
    found = script(box, assignment, content)
    assert right(found, week)
    assert bool(found.notes) == ("16" in encoding or "32" in encoding)


def test_lone_surrogates_and_stray_bytes_are_replaced_and_noted(
    box: Path, assignment: Assignment, week: Notebook
):
    content = solved(week)
    content["cells"][3]["source"] = "s = 'a\ud800b \ud83d\ude00'"
    found = script(box, assignment, content)
    assert found.answers["scores"] == "s = 'a\ufffdb \U0001f600'"
    assert "surrogates" in found.notes[0]
    text = json.dumps(solved(week)).encode().replace(b"additive_score", b"additive\xe9_score", 1)
    assert "bytes that are no UTF-8" in script(box, assignment, text).notes[0]


def test_other_notebook_formats_are_read(box: Path, assignment: Assignment, week: Notebook):
    content = solved(week)
    assert right(script(box, assignment, content | {"nbformat_minor": 99, "nbformat": 7}), week)
    assert right(script(box, assignment, content | {"metadata": {"kernelspec": "R"}}), week)
    old = [{("input" if k == "source" else k): v for k, v in c.items()} for c in content["cells"]]
    third = {"nbformat": 3, "metadata": {}, "worksheets": [{"cells": old[:9]}, {"cells": old[9:]}]}
    assert right(script(box, assignment, third), week)


def test_json_that_python_reads_leniently_is_read(
    box: Path, assignment: Assignment, week: Notebook
):
    text = json.dumps(solved(week))
    text = text.replace('"grade": false', '"grade": true, "grade": false')
    text = text.replace('"nbformat": 4', f'"nbformat": 4, "n": NaN, "big": {"9" * 5000}')
    assert right(script(box, assignment, text.encode()), week)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is not a notebook (it is no JSON text)"),
        (b"{", "is not a notebook (it is no JSON text)"),
        (b"[]", "it holds no list of cells"),
        (b"{}", "it holds no list of cells"),
        (b'"cells"', "it holds no list of cells"),
        (b'{"cells": {}}', "it holds no list of cells"),
        (b'{"worksheets": [1]}', "it holds no list of cells"),
        (b"PK\x03\x04 a zip", "it is no JSON text"),
        (b"\x00" * 1000, "it is no JSON text"),
        (b"\xff" * 1000, "it is no JSON text"),
        (b'{"a":' * 100_000, "nested too deep or too large"),
        (b"[" * 1_000_000, "nested too deep or too large"),
        (b'{"cells": [' + b"[]," * 1_100_000 + b"0]}", "nested too deep or too large"),
        (b'"' * 200_001, "it is no JSON text"),
        (b'"\\' * 200_000, "it is no JSON text"),
        (b'{"cells": [' + b"0," * 3000 + b"0]}", "holds 3001 cells; at most 2000 are read"),
        (b" " * 20_000_001, "is larger than 20 MB, its outputs included"),
    ],
)
def test_no_notebook_gives_a_reason(box: Path, assignment: Assignment, content: bytes, reason: str):
    put(box, content)
    found = read(box, assignment)
    assert found.reason.startswith(NAME) and reason in found.reason
    assert found.scripts[0].reason == found.reason


def test_too_much_text_gives_a_reason(box: Path, assignment: Assignment):
    cell = {"cell_type": "code", "source": "x" * 190_000, "metadata": {}}
    put(box, {"cells": [cell] * 30})
    assert "2 million characters" in read(box, assignment).reason


def test_a_renamed_notebook_is_taken_if_it_is_the_only_one(
    box: Path, assignment: Assignment, week: Notebook
):
    put(box, solved(week), f"{CHAPTER} (1).ipynb")
    put(box, {"cells": []}, "other.ipynb")
    put(box, b"{", "broken.ipynb")
    found = read(box, assignment)
    assert right(found.scripts[0], week)
    said = " ".join(found.scripts[0].notes)
    assert "(1).ipynb was graded, because no 03_attention.ipynb was handed in." in said
    put(box, solved(week), f"{CHAPTER} (2).ipynb")
    found = read(box, assignment)
    assert "could each be meant; keep one" in found.reason
    put(box, released())
    assert read(box, assignment).reason == ""


FIRST, SECOND = "def first(x):\n    return x", "def second(x):\n    return 2 * x"


@pytest.fixture
def parts(tmp_path: Path) -> Assignment:
    """An assignment of two notebooks."""
    folder = tmp_path / "source" / CHAPTER
    folder.mkdir(parents=True)
    for name, content in (("part1.ipynb", part(FIRST)), ("part2.ipynb", part(SECOND))):
        (folder / name).write_text(json.dumps(content))
    return read_assignment(folder)


def part(answer: str) -> dict[str, Any]:
    """One of two notebooks: a heading, a setup that both have, an answer and its test."""
    name = answer[4:].partition("(")[0]
    head = {"cell_type": "markdown", "metadata": {}, "source": f"# The {name} part"}
    test = code(f"assert {name}(1)", f"{name}-test", grade=True)
    cells = [head, code("k = 5"), code(answer, name), test]
    return {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}


def stripped(content: dict[str, Any]) -> dict[str, Any]:
    """The same without marks."""
    return content | {"cells": strip_all(content["cells"])}


@pytest.mark.parametrize("change", [dict, stripped])
@pytest.mark.parametrize(
    ("handed_in", "taken"),
    [
        ({"part1": FIRST, "part2": SECOND}, ["part1", "part2"]),
        ({"part1": SECOND, "part2": FIRST}, ["part2", "part1"]),
        ({"part1": FIRST, "part2": FIRST, "part2 (1)": SECOND}, ["part1", "part2 (1)"]),
        ({"part1": SECOND, "part2": SECOND, "a": FIRST}, ["a", "part2"]),
        ({"part2": FIRST, "a": SECOND}, ["part2", "a"]),
        ({"part1": SECOND, "part2": "def other(x): return x", "a": FIRST}, ["a", "part1"]),
    ],
)
def test_which_file_is_which_notebook_goes_by_its_cells_before_its_name(
    box: Path, parts: Assignment, handed_in: dict[str, str], taken: list[str], change: Callable
):
    for name, answer in handed_in.items():
        put(box, change(part(answer)), f"{name}.ipynb")
    for found, file, answer in zip(read(box, parts).scripts, taken, (FIRST, SECOND), strict=True):
        assert list(found.answers.values()) == [answer] and not found.missing
        said = f"{file}.ipynb was graded, because "
        assert any(note.startswith(said) for note in found.notes) == (file != found.name)
    expected = {"part1", "part2"}
    left = [f"{name}.ipynb" for name in handed_in if name not in {*expected, *taken}]
    assert all(name in " ".join(read(box, parts).notes) for name in left)


@pytest.mark.parametrize("change", [dict, stripped])
def test_notebooks_with_the_same_marks_are_told_apart_by_what_else_they_hold(
    box: Path, tmp_path: Path, change: Callable
):
    folder = tmp_path / "source" / CHAPTER
    folder.mkdir(parents=True)
    content = json.loads(
        json.dumps([part(FIRST), part(SECOND)])
        .replace('"grade_id": "first', '"grade_id": "q')
        .replace('"grade_id": "second', '"grade_id": "q')
    )
    for number, one in enumerate(content, 1):
        (folder / f"part{number}.ipynb").write_text(json.dumps(one))
    assignment = read_assignment(folder)
    for one, other in ((1, 2), (2, 1)):
        put(box, change(content[one - 1]), "part1.ipynb")
        put(box, change(content[other - 1]), "part2.ipynb")
        answers = [found.answers["q"] for found in read(box, assignment).scripts]
        assert answers == [FIRST, SECOND]


def test_a_notebook_of_another_assignment_does_not_hide_the_true_one(
    box: Path, assignment: Assignment, week: Notebook
):
    put(box, part(FIRST))
    put(box, solved(week), "final.ipynb")
    (found,) = read(box, assignment).scripts
    assert right(found, week)
    assert found.notes == (f"final.ipynb was graded, because {NAME} holds something else.",)
    (box / "final.ipynb").unlink()
    (found,) = read(box, assignment).scripts
    assert found.notes[0] == f"{NAME} was graded and holds something else."


def test_a_notebook_of_its_own_name_without_marks_is_not_left_for_an_older_one(
    box: Path, assignment: Assignment, week: Notebook
):
    mine, older = solved(week), solved(week)
    mine["cells"] = [cell for cell in strip_all(mine["cells"]) if cell["cell_type"] == "code"]
    put(box, mine)
    next(cell for cell in older["cells"] if id_of(cell) == "masks")["source"] = "old = 1"
    put(box, older, f"{CHAPTER} (1).ipynb")
    assert right(read(box, assignment).scripts[0], week)


def test_a_notebook_in_a_folder_of_its_own_is_found(
    box: Path, assignment: Assignment, week: Notebook
):
    (box / CHAPTER).mkdir()
    put(box / CHAPTER, strip_all(solved(week)["cells"]), NAME)
    put(box / CHAPTER, {"cells": strip_all(solved(week)["cells"])}, NAME)
    assert right(read(box, assignment).scripts[0], week)


def test_a_missing_notebook_says_what_was_found(box: Path, assignment: Assignment):
    assert read(box, assignment).reason == (
        f"no file named {NAME} was submitted (the folder is empty)"
    )
    (box / ".ipynb_checkpoints").mkdir()
    (box / ".ipynb_checkpoints" / NAME).write_text("{}", encoding="utf-8")
    assert "(what lies in .ipynb_checkpoints is not what was" in read(box, assignment).reason
    (box / "essay.txt").write_text("x", encoding="utf-8")
    found = read(box, assignment)
    assert found.reason == f"no file named {NAME} was submitted (found essay.txt)"
    shutil.rmtree(box)
    assert "the folder is missing" in read(box, assignment).reason
    box.write_text("a file", encoding="utf-8")
    assert read(box, assignment).reason == "the submission is a file, not a folder"


def test_a_folder_that_lies_too_deep_is_named_and_none_is_called_empty(
    box: Path, assignment: Assignment, week: Notebook
):
    deep = box / "Users" / "ann" / "course"
    deep.mkdir(parents=True)
    put(deep, solved(week), NAME)
    words = "the folder Users/ann/course lies too deep to be looked into"
    found = read(box, assignment)
    assert found.reason == f"no file named {NAME} was submitted ({words})"
    (box / "essay.txt").write_text("x", encoding="utf-8")
    assert read(box, assignment).reason.endswith(f"(found essay.txt; {words})")
    parcel = collect(at(box), assignment)
    assert Parcel.unpack(parcel.pack()).unseen == words
    for number in range(250):
        (box / "Users" / f"{number:03}").mkdir()
    shutil.rmtree(box / "Users" / "ann")
    reason = read(box, assignment).reason
    assert reason.endswith("; the folder Users/198 is one of too many to be looked into)")


def test_a_folder_in_place_of_the_notebook(box: Path, assignment: Assignment, week: Notebook):
    (box / NAME).mkdir()
    found = read(box, assignment)
    assert found.reason == f"{NAME} is a folder, not a file"
    assert [flag.kind for flag in found.flags] == ["file"]
    put(box, solved(week), "other.ipynb")
    assert right(read(box, assignment).scripts[0], week)


@posix
def test_links_pipes_and_sockets_are_left_alone(box: Path, assignment: Assignment, week: Notebook):
    real = box.parent / "real.ipynb"
    put(box.parent, solved(week), real.name)
    (box / NAME).symlink_to(real)
    found = read(box, assignment)
    assert found.reason == f"{NAME} is a link, not a file"
    (box / NAME).unlink()
    os.mkfifo(box / NAME)
    assert read(box, assignment).reason == f"{NAME} is a pipe, not a file"
    (box / NAME).unlink()
    put(box, solved(week))
    os.mkfifo(box / "timestamp.txt")
    (box / "dangling").symlink_to(box / "nothing")
    (box / "passwd").symlink_to("/etc/passwd")
    (box / "up").symlink_to(box.parent)
    found = read(box, assignment)
    assert right(found.scripts[0], week)
    assert sorted(flag.where for flag in found.flags) == [
        "dangling",
        "passwd",
        "timestamp.txt",
        "up",
    ]
    assert found.scripts[0].files == ()


@posix
def test_a_submission_that_is_a_link_is_not_followed(box: Path, assignment: Assignment):
    put(box, released())
    link = box.parent / "link"
    link.symlink_to(box, target_is_directory=True)
    assert read(link, assignment).reason == "the submission is a link, not a folder"


@posix
@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may read all")
def test_a_file_without_permission_gives_a_reason(box: Path, assignment: Assignment):
    put(box, released())
    (box / NAME).chmod(0)
    assert "cannot be opened" in read(box, assignment).reason
    (box / NAME).chmod(stat.S_IRUSR | stat.S_IWUSR)
    box.chmod(0)
    assert "cannot be read" in read(box, assignment).reason
    box.chmod(stat.S_IRUSR)
    assert read(box, assignment).reason == f"{NAME} is not readable"
    box.chmod(stat.S_IRWXU)


def test_only_allowed_files_are_kept(box: Path, assignment: Assignment, week: Notebook):
    put(box, solved(week))
    (box / "data").mkdir()
    for name in ("torch.py", "nbgrader_config.py", "data/a.csv", "bomb.zip", "timestamp.txt"):
        (box / name).write_text("garbage \x00", encoding="utf-8")
    found = read(box, assignment)
    assert found.scripts[0].files == () and found.reason == ""
    assert found.notes == (
        "Files that this assignment does not ask for were left out: "
        "bomb.zip, data/a.csv, nbgrader_config.py, torch.py.",
    )
    allowing = replace(assignment, rules=Rules(files=("data/*",)))
    assert read(box, allowing).scripts[0].files == (("data/a.csv", b"garbage \x00"),)


@pytest.mark.parametrize("pattern", ["gr\u00f6\u00dfe.csv", "*.csv"])
def test_an_allowed_file_is_found_however_a_mac_wrote_its_name(
    box: Path, assignment: Assignment, week: Notebook, pattern: str
):
    one, two = "gr\u00f6\u00dfe.csv", "gro\u0308\u00dfe.csv"
    put(box, solved(week))
    (box / two).write_text("2")
    allowing = replace(assignment, rules=Rules(files=(pattern,)))
    found = read(box, allowing)
    assert found.scripts[0].files == ((one, b"2"),) and not found.notes
    if (box / one).exists():
        return  # such a disk holds one of the two
    (box / one).write_text("1")
    found = read(box, allowing)
    assert found.scripts[0].files == ((one, b"1"),)
    assert [flag.words for flag in found.flags if "lies there twice" in flag.words]


@posix
def test_what_is_no_plain_file_or_too_large_is_not_kept(
    box: Path, assignment: Assignment, week: Notebook, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(intake, "MAX_BESIDE", 6)
    put(box, solved(week))
    (box / "a.csv").write_text("1234")
    (box / "b.csv").write_text("12345")
    (box / "c.csv").write_text("12")
    (box / "d.csv").symlink_to("/etc/hostname")
    os.mkfifo(box / "e.csv")
    found = read(box, replace(assignment, rules=Rules(files=("*.csv",))))
    assert [name for name, _ in found.scripts[0].files] == ["a.csv", "c.csv"]
    said = {flag.where: flag.words for flag in found.flags}
    assert "b.csv" in said and "left out" in said["b.csv"]
    assert {"d.csv", "e.csv"} <= said.keys()


def test_the_key_changes_with_what_matters(box: Path, assignment: Assignment, week: Notebook):
    put(box, solved(week))
    first = read(box, assignment).key
    os.utime(box / NAME, (1, 1))
    assert read(box, assignment).key == first
    (box / "notes.txt").write_text("x", encoding="utf-8")  # the page says that it was left out
    assert read(box, assignment).key != first
    (box / "notes.txt").unlink()
    assert read(box, assignment).key == first
    assert read(box, replace(assignment, digest="other")).key != first
    put(box, released())
    assert read(box, assignment).key != first
    (box / NAME).unlink()
    gone = read(box, assignment).key
    shutil.rmtree(box)
    assert len({first, gone, read(box, assignment).key}) == 3


def test_the_time_is_the_collectors(box: Path, assignment: Assignment):
    before = time.time() - 60
    put(box, released())
    (box / "timestamp.txt").write_text("1999-01-01 00:00:00 UTC", encoding="utf-8")
    for path, when in ((box / NAME, 2e9), (box, 1e9), (box / NAME, 1e9)):
        os.utime(path, (when, when))
    collected = read(box, assignment).collected
    assert collected is not None and before < collected < time.time() + 60
    late = replace(assignment.rules.late, trust_timestamp=True)
    trusting = replace(assignment, rules=replace(assignment.rules, late=late))
    assert read(box, trusting).collected == 915148800
    for spoil in (lambda path: path.write_text("", encoding="utf-8"), Path.unlink):
        spoil(box / "timestamp.txt")
        assert read(box, trusting).collected is None


def test_names_of_files_are_shown_without_control_signs(box: Path, assignment: Assignment):
    if sys.platform != "linux":
        pytest.skip("other systems refuse such names")
    for name in (b"\x1b[2J.ipynb", b"\xff\xfe.txt", b"a" * 200, b"new\nline"):
        (Path(os.fsdecode(os.fsencode(box) + b"/" + name))).write_text("{}", encoding="utf-8")
    found = read(box, assignment)
    assert "\x1b" not in found.reason and "\n" not in found.reason


def test_thousands_of_files_do_not_hide_the_notebook(
    box: Path, assignment: Assignment, week: Notebook
):
    for number in range(700):
        (box / f"0{number}.txt").write_text("", encoding="utf-8")
    put(box, solved(week))
    assert right(read(box, assignment).scripts[0], week)


def test_many_files_in_one_folder_do_not_hide_the_notebook_in_the_next(
    box: Path, assignment: Assignment, week: Notebook
):
    (box / "img" / "deep").mkdir(parents=True)
    for number in range(600):
        (box / "img" / f"{number}.png").write_text("", encoding="utf-8")
    put(box, solved(week), "img/deep/my.ipynb")
    reason = read(box, assignment).scripts[0].reason
    assert reason.endswith("(found img; only 500 files were looked at)")
    (box / "work").mkdir()
    put(box, solved(week), f"work/{NAME}")
    assert right(read(box, assignment).scripts[0], week)


def test_the_key_follows_the_names_of_what_is_only_named(
    box: Path, assignment: Assignment, week: Notebook
):
    def key() -> str:
        return collect(at(box), assignment).key("")

    put(box, solved(week))
    alone = key()
    for name in ("timestamp.txt", "submission_secret.txt"):  # these have words of their own
        (box / name).write_text("", encoding="utf-8")
    (box / "timestamp.txt").unlink()
    assert key() == alone
    put(box, b"Rar!", "work.rar")
    first = key()
    (box / "work.rar").rename(box / "work.docx")
    assert len({alone, first, key()}) == 3
    (box / "work.docx").unlink()
    assert key() == alone


def test_what_an_older_release_held_is_nobodys_own(
    box: Path, assignment: Assignment, week: Notebook
):
    content = solved(week)
    put(box, content)
    plain = read(box, assignment).scripts[0]
    older = [  # a test, one that was written into, a text, and code that answers may need
        ("assert older() == 1", "code", {"grade": True, "locked": True, "points": 2}, ""),
        ("assert mine() == 1", "code", {"grade": True, "locked": True, "points": 2}, "mine = 1\n"),
        ("Why?", "markdown", {"grade": True, "solution": True, "points": 2}, ""),
        ("YOUR ANSWER HERE", "markdown", {"grade": True, "solution": True, "points": 2}, "So. "),
        ("helper = 1", "code", {"locked": True}, ""),
    ]
    for number, (source, kind, signs, added) in enumerate(older):
        marks = {"grade": False, "solution": False, "locked": False, "grade_id": f"old{number}"}
        marks |= signs | {"schema_version": 3}
        marks["checksum"] = checksum_of(source, kind, marks)
        cell = {"cell_type": kind, "metadata": {"nbgrader": marks}, "source": added + source}
        content["cells"].insert(len(content["cells"]) // 2, cell)
    put(box, content)
    found = read(box, assignment).scripts[0]
    own = {"mine = 1\nassert mine() == 1", "So. YOUR ANSWER HERE", "helper = 1"}
    assert {text for *_, text in found.extra} == own | {text for *_, text in plain.extra}
    assert own == {cell.source for cell in found.cells} - {cell.source for cell in plain.cells}
    assert found.flags == plain.flags and found.answers == plain.answers


def random_json(drawn: random.Random, depth: int = 0) -> object:
    """Some JSON that looks a little like a notebook."""
    kind = drawn.randrange(8 if depth < 5 else 5)
    if kind < 5:
        values = [None, True, -1, 1e300, "code", "source", "masks", "def f(): pass", "\ud800", ""]
        return drawn.choice(values)
    if kind == 5:
        return [random_json(drawn, depth + 1) for _ in range(drawn.randrange(5))]
    keys = ["cells", "source", "metadata", "nbgrader", "grade_id", "id", "cell_type", "points"]
    return {drawn.choice(keys): random_json(drawn, depth + 1) for _ in range(drawn.randrange(6))}


def test_nothing_that_is_handed_in_raises(box: Path, assignment: Assignment, week: Notebook):
    drawn = random.Random(7)
    real = json.dumps(solved(week), indent=1).encode()
    for number in range(400):
        kind = number % 4
        if kind == 0:
            content = drawn.randbytes(drawn.randrange(500))
        elif kind == 1:
            cells = [random_json(drawn) for _ in range(drawn.randrange(6))]
            content = json.dumps({"cells": cells}).encode()
        elif kind == 2:
            content = real[: drawn.randrange(len(real))]
        else:
            flipped = bytearray(real)
            for _ in range(drawn.randrange(1, 30)):
                flipped[drawn.randrange(len(real))] ^= 1 << drawn.randrange(8)
            content = bytes(flipped)
        put(box, content)
        found = read(box, assignment)
        assert found.reason or len(found.scripts[0].cells) >= len(week.cells)


def test_cells_changed_at_random_still_fill_every_place(
    box: Path, assignment: Assignment, week: Notebook
):
    drawn = random.Random(11)
    for _ in range(100):
        content = solved(week)
        cells = content["cells"]
        for _ in range(drawn.randrange(1, 12)):
            place = drawn.randrange(len(cells))
            action = drawn.randrange(5)
            if action == 0 and len(cells) > 3:
                cells.pop(place)
            elif action == 1:
                cells.insert(drawn.randrange(len(cells)), dict(cells[place]))
            elif action == 2:
                drawn.shuffle(cells)
            elif action == 3:
                cells[place] = cells[place] | {"metadata": random_json(drawn)}
            else:
                cells[place] = cells[place] | {"source": random_json(drawn)}
        found = script(box, assignment, content)
        places = [c.grade_id for c in found.cells if c.kind == "answer"]
        assert places == [c.grade_id for c in week.cells if c.answerable]
        assert len([c for c in found.cells if c.kind != "extra"]) == len(week.cells)


@pytest.mark.parametrize("beside", ["a{}.txt", "a{}.ipynb", "a{}/x.txt"])
def test_the_notebook_is_found_however_much_lies_beside_it(
    box: Path, assignment: Assignment, beside: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("autograder.judge.parcel.MAX_FILES", 0)  # whichever is listed first
    for number in range(7):
        path = box / beside.format(number)
        path.parent.mkdir(exist_ok=True)
        path.write_text("{}")
    put(box, released())
    found = collect(at(box), assignment)
    assert NAME in found.files
    place = Place(box.parent / CHAPTER, 1, frozenset([NAME]))
    assert list(collect(place, assignment).files) == [NAME]


def test_data_files_do_not_crowd_out_a_misnamed_notebook(box: Path, assignment: Assignment):
    for number in range(12):
        put(box, {}, f"data{number}.json")
    put(box, released(), "my work.ipynb")
    put(box, released(), "saved.ipynb.json")
    assert list(collect(at(box), assignment).files)[:2] == ["my work.ipynb", "saved.ipynb.json"]


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

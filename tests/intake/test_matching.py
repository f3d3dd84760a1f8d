"""Every answer is found in its place, whatever else was changed in the notebook."""

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from autograder.judge.assignment import Assignment, Notebook, checksum_of, read_assignment
from tests.intake.handing_in import (
    NAME,
    PLAIN,
    Cells,
    code,
    id_of,
    marks,
    put,
    random_json,
    read,
    released,
    right,
    script,
    small,
    solved,
    strip_all,
    strip_marks,
)


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


def drop_tests(cells: Cells) -> Cells:
    """All tests deleted."""
    tests = [c for c in cells if c["metadata"].get("nbgrader", {}).get("grade")]
    return [c for c in cells if c not in tests or c["metadata"]["nbgrader"]["solution"]]


def change_tests(cells: Cells) -> Cells:
    """All tests emptied."""
    return [c | {"source": "pass"} if c not in drop_tests([c]) else c for c in cells]


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


def rotated_ids(by: int) -> Callable[[Cells], Cells]:
    """No marks, and every cell has the id of one that stands so many cells on."""

    def changed(cells: Cells) -> Cells:
        ids = [cell["id"] for cell in cells]
        ids = ids[by:] + ids[:by]
        pairs = zip(strip_marks(cells), ids, strict=True)
        return [cell | {"id": one} for cell, one in pairs]

    return changed


def rotated_answers(cells: Cells) -> Cells:
    """No marks, and the answers have each other's ids."""
    answers = [c for c in cells if c["metadata"].get("nbgrader", {}).get("solution")]
    pairs = zip(answers, [*answers[1:], answers[0]], strict=True)
    ids = {id_of(cell): other["id"] for cell, other in pairs}
    named = [c | {"id": ids[id_of(c)]} if id_of(c) in ids else c for c in cells]
    return strip_marks(named)


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
        (rotated_ids(1), "had lost their grading marks"),
        (rotated_ids(-1), "had lost their grading marks"),
        (rotated_ids(5), "had lost their grading marks"),
        (rotated_answers, "had lost their grading marks"),
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


def test_nobody_has_lost_marks_that_the_instructor_has_renamed(box: Path, tmp_path: Path):
    today, content = small(tmp_path, PLAIN)
    (notebook,) = today.notebooks
    for cell in content["cells"]:
        if found := cell["metadata"].get("nbgrader"):
            stub = notebook.cell(found["grade_id"]).stub
            found["grade_id"] = f"old-{found['grade_id']}"
            found["checksum"] = checksum_of(stub, "code", found)
    words = [flag.words for flag in script(box, today, content).flags]
    assert not [one for one in words if "grading marks" in one]

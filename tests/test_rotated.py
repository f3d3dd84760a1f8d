"""What was handed out before the instructor changed points or tests accuses nobody."""

import json
from pathlib import Path
from typing import Any

import pytest

from autograder.judge.assignment import Assignment, read_assignment
from autograder.judge.intake import read_submission
from autograder.judge.script import Submission
from tests.small_course import NAME, RIGHT, hand_in, make_course, release

CHANGES = {
    "square-seen": ("the square of 3", "three times three"),
    "setup": ("import math", "import math, cmath"),
}
POINTS = {"square-seen": 3, "square-hidden": 1, "why": 4, "draw": 1, "task": 2}


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course whose source is changed after ada and mallory have fetched the assignment."""
    root = make_course(tmp_path_factory.mktemp("course")).root
    release(root)
    hand_in(root, "ada", RIGHT)
    path = hand_in(root, "mallory", RIGHT)
    given = json.loads(path.read_text())
    marks_of(given, "square-seen")["points"] = 100
    marks_of(given, "why")["points"] = 100
    path.write_text(json.dumps(given))
    source = root / "source" / NAME / "numbers.ipynb"
    content = json.loads(source.read_text())
    for cell in content["cells"]:
        cell["source"] = "".join(cell["source"]).replace(*CHANGES.get(cell["id"], ("", "")))
        if cell["id"] in POINTS:
            cell["metadata"]["nbgrader"]["points"] = POINTS[cell["id"]]
    source.write_text(json.dumps(content))
    return root


def marks_of(notebook: dict[str, Any], name: str) -> dict[str, Any]:
    """nbgrader's marks of a cell."""
    (marks,) = [cell["metadata"]["nbgrader"] for cell in notebook["cells"] if cell["id"] == name]
    return marks


@pytest.fixture(scope="module")
def assignment(course: Path) -> Assignment:
    """The assignment as it is now."""
    return read_assignment(course / "source" / NAME)


def read(course: Path, student: str, assignment: Assignment) -> tuple[Submission, set[str]]:
    """What was handed in, and which cells are said to be tampered with."""
    found = read_submission(course / "submitted" / student / NAME, student, assignment)
    return found, {
        flag.where.rpartition("/")[2] for flag in found.flags if flag.kind == "tampering"
    }


def test_an_earlier_release_is_no_tampering(course: Path, assignment: Assignment):
    found, flagged = read(course, "ada", assignment)
    assert flagged == set()
    notes = " ".join(found.scripts[0].notes)
    assert "The test square-seen has changed since this was handed out" in notes
    assert "The locked cell setup has changed since" in notes
    assert "was changed" not in notes and "third-values" not in notes


def test_marks_that_no_release_had_are_named(course: Path, assignment: Assignment):
    _, flagged = read(course, "mallory", assignment)
    assert flagged == {"square-seen", "why"}

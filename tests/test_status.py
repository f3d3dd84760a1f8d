"""Formgrader's status of a submission: graded once we have graded it, whatever says when it came.

nbgrader calls a submission graded if its timestamp.txt and the gradebook say the same time.
"""

import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from nbgrader.api import Gradebook
from nbgrader.apps.api import NbGraderAPI
from nbgrader.coursedir import CourseDirectory

from autograder import __main__ as command_line
from autograder.classroom.classes import Class
from autograder.classroom.grade import ODD_TIME
from autograder.classroom.gradebook import time_told
from autograder.classroom.journal import read_journal
from tests.small_course import NAME, RIGHT, hand_in, make_course, nbgrader, release

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="grading needs Linux")
TIMES = {
    "submit": "2026-02-28 11:16:44.123456 UTC",
    "zip": "2026-02-28 11:16:44 +0100",
    "zone": "2026-02-28 11:16:44.5 America/Los_Angeles",
    "iso": "2026-02-28T11:16:44Z",
    "day": "2026-02-28",
    "forged": "2099-12-31 00:00:00 UTC",
    "none": None,
}
ODD = {
    "words": "yesterday",
    "empty": "",
    "path": "2026-02-28 11:16 /etc/passwd",
    "old": "0001-01-01",
}


def stamp(root: Path, student: str, text: str | None) -> None:
    """Hand in, and say when."""
    path = hand_in(root, student, RIGHT).with_name("timestamp.txt")
    path.unlink(missing_ok=True)
    if text is not None:
        path.write_text(text)


@pytest.fixture(scope="module")
def taught(tmp_path_factory: pytest.TempPathFactory) -> Class:
    """A small class; when everybody handed in is said in another way."""
    course = make_course(tmp_path_factory.mktemp("course"), hooks=True)
    release(course.root)
    for student, text in TIMES.items():
        stamp(course.root, student, text)
    return Class(course, course.root)


def asked(taught: Class) -> NbGraderAPI:
    """What formgrader asks."""
    return NbGraderAPI(CourseDirectory(root=str(taught.folder)))


def graded(taught: Class) -> set[str]:
    """Whom formgrader shows as graded."""
    return asked(taught).get_autograded_students(NAME)


@pytest.mark.parametrize("way", ["ours", "nbgrader's"])
def test_what_we_graded_is_graded_in_formgrader(
    taught: Class, way: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(taught.folder)
    for student, text in TIMES.items():  # handed in once more, a day later
        if way != "ours" and text and len(text) > 11:
            stamp(taught.folder, student, text.replace("-28", "-27"))
    assert "submit" not in graded(taught)
    if way == "ours":
        assert command_line.main(["grade", "--no-report"]) == 0
    else:
        nbgrader(taught.folder, "autograde", NAME, "--force")
    assert graded(taught) == set(TIMES)
    shown = {one["student"]: one for one in asked(taught).get_submissions(NAME)}
    assert set(shown) == set(TIMES)
    for one in shown.values():
        assert one["autograded"] and one["needs_manual_grade"], "a task waits for a person"
    assert shown["submit"]["code_score"] == 6


def test_a_gradebook_of_an_older_grader_is_brought_up_to_date(
    taught: Class, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(taught.folder)
    assert command_line.main(["grade", "--no-report"]) == 0
    with Gradebook(taught.database) as book:
        submissions: list[Any] = book.assignment_submissions(NAME)
        for submission in submissions:
            submission.timestamp = datetime(2026, 3, 1)
        book.db.commit()
    assert graded(taught) == set()
    assert command_line.main(["grade", "--no-report"]) == 0
    assert graded(taught) == set(TIMES)


def test_a_file_that_says_no_time_is_named(taught: Class, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(taught.folder)
    for student, text in ODD.items():
        stamp(taught.folder, student, text)
    assert command_line.main(["grade", "--no-report"]) == 0
    said = {who for (who, _), one in read_journal(taught).items() if ODD_TIME in str(one.flags)}
    assert said == set(ODD)
    for student in ODD:
        (taught.submitted / student / NAME / "timestamp.txt").unlink()
    assert command_line.main(["grade", "--no-report"]) == 0
    assert graded(taught) == {*TIMES, *ODD}


@pytest.mark.parametrize("text", [text for text in TIMES.values() if text])
def test_a_time_is_what_nbgrader_makes_of_it(text: str):
    from nbgrader.utils import parse_utc

    assert time_told(text) == parse_utc(text)

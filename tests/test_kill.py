"""A grader that is killed and started again ends where an undisturbed one does."""

import sys
from pathlib import Path

import pytest

from autograder.common.course import Course
from tests.kill_drill import drill, grade_undisturbed, state
from tests.small_course import ANSWERS, NAME, RIGHT, hand_in, make_course, release

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="grading needs Linux")
MORE = 7


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small class, graded without disturbance."""
    folder = tmp_path_factory.mktemp("drill")
    course = make_course(folder / "course")
    release(course.root)
    for student, answers in ANSWERS.items():
        hand_in(course.root, student, answers)
    for number in range(MORE):
        hand_in(course.root, f"more-{number}", RIGHT | {"why": f"Because of {number}."})
    hand_in(course.root, "broken", {}).write_text('{"cells": [')
    (folder / "class").mkdir()
    (course.root / "submitted").rename(folder / "class" / "submitted")
    grade_undisturbed(course, NAME, folder / "class")
    return folder


def test_killed_and_resumed_it_ends_as_if_undisturbed(folder: Path):
    students = len(ANSWERS) + MORE + 1
    drill(course_of(folder), NAME, folder / "class", kills=6, students=students, seed=4)


def test_the_undisturbed_run_graded_everybody(folder: Path):
    found = state(course_of(folder), NAME, folder / "class")
    assert len(found["rows"]) == len(ANSWERS) + MORE + 1
    assert len([name for name in found["files"] if name.endswith(".html")]) == len(found["rows"])


def course_of(folder: Path) -> Course:
    """The course that `folder` made."""
    return Course(folder / "course")

"""Of two courses with one gradebook neither changes the other's grades."""

import contextlib
import sqlite3
import sys
from pathlib import Path

import pytest
from nbgrader.api import Gradebook

from autograder.common.course import Course
from tests.small_course import (
    ANSWERS,
    HOOKS,
    NAME,
    RIGHT,
    hand_in,
    make_course,
    nbgrader,
    release,
    run,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="grading needs Linux")


def course_at(root: Path, setting: str = "") -> Course:
    """A course whose gradebook is a file beside its folder, as that of all here."""
    course = make_course(root)
    with (root / "nbgrader_config.py").open("a") as file:
        file.write(
            HOOKS + f"c.CourseDirectory.db_url = 'sqlite:///{root.parent}/all.db'\n{setting}"
        )
    release(root)
    return course


def scores(folder: Path) -> dict[str, float]:
    """What the gradebook says."""
    with Gradebook(f"sqlite:///{folder}/all.db") as book:
        return {
            str(one.student.id): float(one.score or 0) for one in book.assignment_submissions(NAME)
        }


def test_another_course_with_an_assignment_of_the_same_name_is_refused_and_changes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    first, second = course_at(tmp_path / "first"), course_at(tmp_path / "second")
    hand_in(first.root, "ada", RIGHT)
    hand_in(second.root, "ada", ANSWERS["noor"])
    assert run(first.root, "grade") == 0
    capsys.readouterr()
    assert run(second.root, "grade", "--no-report") == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert "holds the grades of ps1 of another course" in said and str(first.root) in said
    assert "of another course" in nbgrader(second.root, "autograde", NAME, succeeds=False)
    assert scores(tmp_path) == {"ada": 6}
    assert run(first.root, "grade", "--again") == 0  # whose they are stays


def test_a_course_that_moved_or_lost_its_journal_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    first = course_at(tmp_path / "first")
    hand_in(first.root, "ada", RIGHT)
    assert run(first.root, "grade") == 0
    journal = first.root / "gradebook.journal.jsonl"
    kept = journal.read_bytes()
    journal.unlink()
    assert run(first.root, "grade") == 0  # known by its folder
    journal.write_bytes(kept)
    moved = first.root.rename(tmp_path / "moved")
    config = moved / "nbgrader_config.py"
    config.write_text(config.read_text().replace(str(first.root), str(moved)))
    capsys.readouterr()
    assert run(moved, "grade", "--again") == 0
    assert "give each a gradebook of its own" in capsys.readouterr().out  # that journal is older
    assert run(moved, "grade", "--again") == 0
    assert "give each a gradebook of its own" not in capsys.readouterr().out
    with config.open("a") as file:
        file.write('c.CourseDirectory.course_id = "renamed"\n')
    assert run(moved, "grade", "--again") == 0
    assert scores(tmp_path) == {"ada": 6}


def test_a_course_of_another_name_whose_folder_is_not_here_is_another(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    first = course_at(tmp_path / "first")
    hand_in(first.root, "ada", RIGHT)
    assert run(first.root, "grade") == 0
    first.root.rename(tmp_path / "away")
    second = course_at(tmp_path / "second", 'c.CourseDirectory.course_id = "other"\n')
    hand_in(second.root, "ada", ANSWERS["noor"])
    assert run(second.root, "grade") == 2
    assert "'small' in" in capsys.readouterr().err
    assert scores(tmp_path) == {"ada": 6}


@pytest.mark.parametrize("row", [(None, None, None), (1, 2, 3), ("", "", "")])
def test_a_row_that_is_another_programs_says_nothing_of_whose_they_are(
    tmp_path: Path, row: tuple[object, ...]
):
    first = course_at(tmp_path / "first")
    hand_in(first.root, "ada", RIGHT)
    with contextlib.closing(sqlite3.connect(tmp_path / "all.db")) as db:
        db.execute("create table autograder_course(assignment, journal, course_id, root)")
        db.execute("insert into autograder_course values(?, ?, ?, ?)", (NAME, *row))
        db.commit()
    assert run(first.root, "grade") == 0
    assert scores(tmp_path) == {"ada": 6}

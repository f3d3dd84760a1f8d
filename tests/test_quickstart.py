"""The course that `nbgrader quickstart` writes is graded as it is, as stock nbgrader grades it."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbgrader as nbgrader_package
import pytest
from nbgrader.api import Gradebook

from autograder.classroom.classes import Class
from autograder.classroom.grade import grade
from autograder.classroom.journal import read_journal
from autograder.common.course import Course
from tests.small_course import nbgrader

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="grading needs Linux")
GUIDE = Path(nbgrader_package.__file__).parent / "docs" / "source" / "user_guide"
STUDENTS = ["bitdiddle", "hacker"]  # whose work comes with nbgrader's manual


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    """The example course with the example submissions, nothing graded."""
    folder = tmp_path_factory.mktemp("quickstart")
    nbgrader(folder, "quickstart", "course101")
    root = folder / "course101"
    shutil.copytree(GUIDE / "submitted", root / "submitted")
    return Course(root)


@pytest.fixture(scope="module")
def stock(course: Course) -> dict[str, Any]:
    """Stock nbgrader's scores, from a copy of the course."""
    root = course.root.with_name("stock")
    shutil.copytree(course.root, root)
    config = root / "nbgrader_config.py"
    text = config.read_text(encoding="utf-8").replace(str(course.root), str(root))
    config.write_text(text, encoding="utf-8")
    nbgrader(root, "generate_assignment", "ps1", "--force")
    nbgrader(root, "autograde", "ps1")
    return scores(Class(Course(root), root))


def scores(taught: Class) -> dict[str, Any]:
    """Automatic scores, what waits for a person, and comments, by student and notebook."""
    with Gradebook(taught.database) as book:
        return {
            f"{submission.student.id}/{notebook.name}": (
                sorted((g.name, str(g.auto_score), g.needs_manual_grade) for g in notebook.grades),
                sorted((c.name, str(c.auto_comment)) for c in notebook.comments),
            )
            for submission in book.assignment_submissions("ps1")
            for notebook in submission.notebooks
        }


def test_the_example_course_gets_stock_nbgraders_scores(course: Course, stock: dict[str, Any]):
    taught = Class(course, course.root)
    grade(taught, ["ps1"], jobs=2, progress=False)
    assert sorted({who.split("/")[0] for who in stock}) == STUDENTS
    assert sorted(read_journal(taught)) == [(student, "ps1") for student in STUDENTS]
    assert scores(taught) == stock


def test_the_command_grades_it_and_reports(course: Course, stock: dict[str, Any]):
    done = subprocess.run(
        [sys.executable, "-m", "autograder", "grade"],
        cwd=course.root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "bitdiddle" in done.stdout
    assert (course.root / "grades.csv").is_file() and (course.root / "report.html").is_file()

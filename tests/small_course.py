"""A course of one small assignment, as nbgrader's manual has it: no text source, plain Python."""

import atexit
import contextlib
import functools
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from nbgrader.api import Gradebook

from autograder import __main__ as command_line
from autograder.authoring.building import read
from autograder.authoring.rehearsal import rehearse
from autograder.authoring.trials import try_known_mistakes
from autograder.classroom.classes import Class
from autograder.common.course import Course
from autograder.isolation import machine
from autograder.judge import fingerprint
from autograder.judge.assignment import Assignment
from autograder.judge.rules import Rules
from tests.nbgraders_commands import nbgrader

NAME = "ps1"
CONFIG = """c = get_config()
c.CourseDirectory.course_id = "small"
c.CourseDirectory.root = {root!r}
"""
HOOKS = """c.Autograde.exporter_class = "autograder.classroom.hooks.AnySubmission"
c.Autograde.sanitize_preprocessors = ["autograder.classroom.hooks.Rebuild"]
c.Autograde.autograde_preprocessors = ["autograder.classroom.hooks.Grade"]
"""

PAGE = """
c.GenerateFeedback.exporter_class = "autograder.classroom.nbgrader_page.StudentPage"
c.GenerateFeedback.preprocessors = [
    "nbgrader.preprocessors.GetGrades",
    "autograder.classroom.nbgrader_page.ForStudents",
    "nbconvert.preprocessors.CSSHTMLHeaderPreprocessor",
]
"""


def marks(grade_id: str, points: float | None = None, **signs: bool) -> dict[str, Any]:
    """nbgrader's marks of a cell."""
    standard = {"grade": False, "solution": False, "locked": False, "task": False}
    found = {"grade_id": grade_id, "schema_version": 3, **standard, **signs}
    return {"nbgrader": found if points is None else found | {"points": points}}


def cells() -> list[Any]:
    """The instructor's cells: every kind that nbgrader knows."""
    code, text = new_code_cell, new_markdown_cell
    return [
        text("# Numbers", id="head"),
        code("import math", id="setup", metadata=marks("setup", locked=True)),
        code(
            "def square(x):\n    ### BEGIN SOLUTION\n    return x * x\n    ### END SOLUTION",
            id="square",
            metadata=marks("square", solution=True),
        ),
        code(
            "assert square(3) == 9, 'the square of 3 is 9'",
            id="square-seen",
            metadata=marks("square-seen", 1, grade=True, locked=True),
        ),
        code(
            "assert square(2) == 4\n### BEGIN HIDDEN TESTS\nassert square(-5) == 25\n"
            "### END HIDDEN TESTS",
            id="square-hidden",
            metadata=marks("square-hidden", 2, grade=True, locked=True),
        ),
        code(
            "def third(x):\n    ### BEGIN SOLUTION\n    return x / 3\n    ### END SOLUTION",
            id="third",
            metadata=marks("third", solution=True),
        ),
        code(
            "assert math.isclose(third(1), 1 / 3)",
            id="third-values",
            metadata=marks("third-values", 3, grade=True, locked=True),
        ),
        text("Because.", id="why", metadata=marks("why", 2, grade=True, solution=True)),
        code("print(1)", id="draw", metadata=marks("draw", 4, grade=True, solution=True)),
        text(
            f"Draw a picture.\n\n{SCHEME}",
            id="task",
            metadata=marks("task", 5, task=True, locked=True),
        ),
    ]


SCHEME = "### BEGIN MARK SCHEME\n## Axes give a point\n### END MARK SCHEME"


def make_course(root: Path, *, hooks: bool = False) -> Course:
    """Write the course's settings and its assignment, whose tests were rehearsed."""
    _write(root, hooks)
    shutil.copytree(_kept(), root / "build")
    return Course(root)


def _write(root: Path, hooks: bool) -> None:
    """Write the course's settings and its assignment."""
    config = CONFIG.format(root=str(root)) + (HOOKS if hooks else "")
    folder = root / "source" / NAME
    folder.mkdir(parents=True)
    (root / "nbgrader_config.py").write_text(config, encoding="utf-8")
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook = new_notebook(cells=cells(), metadata={"kernelspec": kernel})
    nbformat.write(notebook, folder / "numbers.ipynb")


@functools.cache
def _kept() -> Path:
    """What the grader keeps from one run to the next, of modules and of this assignment's tests."""
    course = Course(_folder())
    _write(course.root, hooks=False)
    if sys.platform == "linux":
        rehearse(course, [NAME])
        able = machine.probe().namespaces
        try_known_mistakes(course, {NAME: read(course, NAME)}, 1, able)
    else:
        fingerprint.of(course, Assignment("", (), "", Rules(), (), ()))
    return course.root / "build"


RIGHT = {
    "square": "def square(x):\n    return x ** 2",
    "third": "def third(x):\n    return x / 3",
    "why": "It is so.",
    "draw": "print(2)",
}
ANSWERS: dict[str, dict[str, str]] = {
    "ada": RIGHT,
    "bela": RIGHT | {"square": "def square(x):\n    return x * abs(x)"},
    "chidi": {"square": RIGHT["square"]},
    "dana": {"third": "def third(x):\n    return 0.3333", "why": "No."},
    "noor": {},
}


def hand_in(root: Path, student: str, answers: dict[str, str]) -> Path:
    """Fill answers into what was released and put it where nbgrader collects it."""
    release = root / "release" / NAME / "numbers.ipynb"
    content = json.loads(release.read_text(encoding="utf-8"))
    for cell in content["cells"]:
        if cell["id"] in answers:
            cell["source"] = answers[cell["id"]]
    path = root / "submitted" / student / NAME / "numbers.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def make_class(root: Path) -> Class:
    """The small class, handed in and not graded."""
    course = make_course(root)
    release(root)
    for student, answers in ANSWERS.items():
        hand_in(course.root, student, answers)
    return Class(course, course.root)


def release(root: Path) -> None:
    """Do what `nbgrader generate_assignment` does in a small course as it was made."""
    shutil.copytree(_released(), root, dirs_exist_ok=True)


@functools.cache
def _released() -> Path:
    """What nbgrader makes of the small assignment: its release, and a gradebook; made once."""
    folder = _folder()
    course = make_course(folder / "course")
    nbgrader(course.root, "generate_assignment", NAME)
    for name in ("release", "gradebook.db"):
        (course.root / name).rename(folder / name)
    shutil.rmtree(course.root)
    return folder


def _folder() -> Path:
    """For what is made once."""
    folder = Path(tempfile.mkdtemp(prefix="small-course-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def at_home(
    home: Path, shared: Path, command: str, student: str, name: str = NAME, course: str = "small"
) -> str:
    """Run one of nbgrader's commands as a student does, by the exchange `shared`."""
    where = [f"--Exchange.root={shared}", f"--Exchange.cache={home / 'cache'}"]
    return nbgrader(home, command, name, f"--course={course}", f"--student={student}", *where)


def exchange(root: Path, shared: Path) -> None:
    """Release the assignment by an exchange; ada fetches it and submits, and it is collected."""
    with (root / "nbgrader_config.py").open("a") as file:
        file.write(f'{PAGE}c.Exchange.root = "{shared}"\n')
    release(root)
    nbgrader(root, "release_assignment", NAME)
    home = root / "homes" / "ada"
    home.mkdir(parents=True)
    at_home(home, shared, "fetch_assignment", "ada")
    written = hand_in(root, "ada", RIGHT)
    written.replace(home / NAME / "numbers.ipynb")
    written.parent.rmdir()
    at_home(home, shared, "submit", "ada")
    nbgrader(root, "collect", NAME)


def run(root: Path, *command: str) -> int:
    """Run one of the grader's commands in a course's root; its exit status."""
    with contextlib.chdir(root):
        return command_line.main([*command])


def by_hand(
    root: Path, student: str, points: float, cell: str = "why", notebook: str = "numbers"
) -> None:
    """Give points for a cell, as a person does in formgrader."""
    with Gradebook(f"sqlite:///{root}/gradebook.db") as book:
        row: Any = book.find_grade(cell, notebook, NAME, student)
        row.manual_score, row.needs_manual_grade = points, False
        book.db.commit()


def scores(taught: Class) -> dict[str, float]:
    """Points by student."""
    with Gradebook(taught.database) as book:
        found: list[Any] = book.assignment_submissions(NAME)
        return {one.student.id: one.score for one in found}

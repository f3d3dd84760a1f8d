"""What the gradebook says of everybody's work: points, lateness, grades and comments by hand."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any

from sqlalchemy import Table, select

from autograder.classroom.counted import Given, Marks, Points
from autograder.common.names import plain
from autograder.common.startup import without_extensions

with without_extensions():
    from nbgrader import api

if TYPE_CHECKING:
    from autograder.classroom.journal_lines import Graded
    from autograder.judge.assignment import Assignment

Seconds = Callable[[str, float], float]  # late, by the gradebook's name and an extension


def table_of(model: Any) -> Table:
    """The table of one of nbgrader's kinds of rows."""
    return model.__table__


ASSIGNMENT, NOTEBOOK, BASE = map(table_of, (api.Assignment, api.Notebook, api.BaseCell))
SUBMISSION, SUBMITTED = map(table_of, (api.SubmittedAssignment, api.SubmittedNotebook))
GRADE, COMMENT = map(table_of, (api.Grade, api.Comment))


def not_told(student: str, extension: float) -> float:
    """How late somebody was, where nobody asks."""
    return 0.0


def lateness(
    assignments: "Mapping[str, Assignment]", results: "Iterable[Graded]"
) -> dict[str, Seconds]:
    """How late students were by the rules of today, by assignment."""
    found: dict[str, dict[str, Graded]] = {name: {} for name in assignments}
    for graded in results:
        result = graded.result
        if result.assignment in found:
            found[result.assignment][plain(result.student)] = replace(
                graded, result=replace(result, notebooks=())
            )
    return {name: partial(_late, assignments[name], known) for name, known in found.items()}


def _late(
    assignment: "Assignment",
    known: "Mapping[str, Graded]",
    student: str,
    extension: float,
) -> float:
    if student not in known:
        return 0.0
    return seconds_late(known[student], assignment, extension)


def seconds_late(graded: "Graded", assignment: "Assignment", extension: float) -> float:
    """How late a work was by the rules of today; a question that came later is no work."""
    earlier = graded.handed_in if graded.only_asked else None
    who, late = graded.result.student, assignment.rules.late
    return late.seconds_late(who, graded.collected, extension, earlier)


def points_of(db: Any, assignment: str, seconds: Seconds = not_told) -> dict[str, Points]:
    """The points of everybody who handed in an assignment, by student; arguments as below."""
    found: dict[str, Points] = {}
    for (student, _), marks in read_marks(db, assignment, seconds).items():
        found[student] = found.get(student, Points()).and_more(marks.points)
    return found


def read_marks(
    db: Any, assignment: str, seconds: Seconds = not_told
) -> dict[tuple[str, str], Marks]:
    """The gradebook's marks of an assignment, by student and notebook.

    Args:
        db: a connection or a session.
        assignment: its name.
        seconds: says how late somebody was; the gradebook's times are what students' files say.
    """
    by_id: dict[str, Marks] = {}
    names: dict[str, tuple[str, str]] = {}
    for row in db.execute(_submitted(assignment)):
        lost = points_in(row.late_submission_penalty) or 0.0
        extension = (row.extension or timedelta()).total_seconds()
        points = Points(0.0, lost, seconds(row.student_id, extension))
        by_id[row.id] = Marks(points, id=row.id, extension=extension)
        names[row.id] = row.student_id, row.name
    grades: dict[str, list[Any]] = {}
    for row in db.execute(_of_cells(GRADE, assignment)):
        grades.setdefault(row.notebook_id, []).append(row)
    said: dict[str, list[Any]] = {}
    for row in db.execute(_of_cells(COMMENT, assignment)):
        said.setdefault(row.notebook_id, []).append(row)
    return {
        names[id]: marked(marks, grades.get(id, ()), said.get(id, ()))
        for id, marks in by_id.items()
    }


def marked(marks: Marks, grades: Iterable[Any], comments: Iterable[Any]) -> Marks:
    """The same with what rows of grades and comments say; each has its cell's name."""
    grades = list(grades)
    cells = {row.name: given(row) for row in grades}
    said = {row.name: text for row in comments if (text := text_in(row.manual_comment).strip())}
    points = replace(marks.points, given=sum(given(row).worth for row in grades))
    return replace(marks, points=points, comments=said, cells=cells)


def given(row: Any) -> Given:
    """What a cell was given, of its grade's row; what is no number there was not given."""
    auto, manual, extra = map(points_in, (row.auto_score, row.manual_score, row.extra_credit))
    stale = bool(row.needs_manual_grade) and manual is not None
    return Given(auto, manual, extra, stale)


def points_in(value: object) -> float | None:
    """A column's points; SQLite holds a text, too, where some other program has put one."""
    points = float(value) if isinstance(value, int | float | Decimal) else math.nan
    return points if math.isfinite(points) else None


def text_in(value: object) -> str:
    """A column's text; SQLite holds bytes, too, where some other program has put them."""
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    return str(text or "")


def _submitted(assignment: str) -> Any:
    """Every notebook that was handed in, with what lateness costs and what extension it has."""
    tables = SUBMITTED.join(NOTEBOOK, SUBMITTED.c.notebook_id == NOTEBOOK.c.id)
    tables = tables.join(SUBMISSION, SUBMITTED.c.assignment_id == SUBMISSION.c.id)
    tables = tables.join(ASSIGNMENT, SUBMISSION.c.assignment_id == ASSIGNMENT.c.id)
    late = SUBMITTED.c.late_submission_penalty, SUBMISSION.c.extension
    who = SUBMITTED.c.id, SUBMISSION.c.student_id, NOTEBOOK.c.name
    asked = select(*who, *late).select_from(tables)
    return asked.where(ASSIGNMENT.c.name == assignment)


def _of_cells(table: Table, assignment: str) -> Any:
    """Every row of grades or comments of an assignment, with its cell's name."""
    tables = table.join(BASE, table.c.cell_id == BASE.c.id)
    tables = tables.join(NOTEBOOK, BASE.c.notebook_id == NOTEBOOK.c.id)
    tables = tables.join(ASSIGNMENT, NOTEBOOK.c.assignment_id == ASSIGNMENT.c.id)
    asked = select(table, BASE.c.name).select_from(tables)
    return asked.where(ASSIGNMENT.c.name == assignment)

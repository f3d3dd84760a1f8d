"""What the gradebook says of everybody's work: points, lateness, grades and comments by hand."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Any

from sqlalchemy import Table, select

from autograder.counted import Marks, Points
from autograder.course import without_extensions

with without_extensions():
    from nbgrader import api


def _table(model: Any) -> Table:
    return model.__table__


ASSIGNMENT, NOTEBOOK, BASE = map(_table, (api.Assignment, api.Notebook, api.BaseCell))
SUBMISSION, SUBMITTED = map(_table, (api.SubmittedAssignment, api.SubmittedNotebook))
GRADE, COMMENT = map(_table, (api.Grade, api.Comment))


def points_of(db: Any, assignment: str) -> dict[str, Points]:
    """The points of everybody who handed in an assignment, by student."""
    found: dict[str, Points] = {}
    for (student, _), marks in read_marks(db, assignment).items():
        found[student] = found.get(student, Points()).and_more(marks.points)
    return found


def read_marks(db: Any, assignment: str) -> dict[tuple[str, str], Marks]:
    """The gradebook's marks of an assignment, by student and notebook.

    Args:
        db: a connection or a session.
        assignment: its name.
    """
    by_id: dict[str, Marks] = {}
    names: dict[str, tuple[str, str]] = {}
    for row in db.execute(_submitted(assignment)):
        lost = row.late_submission_penalty or 0.0
        points = Points(0.0, lost, _seconds(row.timestamp, row.duedate, row.extension))
        extension = (row.extension or timedelta()).total_seconds()
        by_id[row.id] = Marks(points, {}, {}, row.id, extension)
        names[row.id] = row.student_id, row.name
    given: dict[str, list[Any]] = {}
    for row in db.execute(_of_cells(GRADE, assignment)):
        given.setdefault(row.notebook_id, []).append(row)
    said: dict[str, list[Any]] = {}
    for row in db.execute(_of_cells(COMMENT, assignment)):
        said.setdefault(row.notebook_id, []).append(row)
    return {
        names[id]: marked(marks, given.get(id, ()), said.get(id, ())) for id, marks in by_id.items()
    }


def marked(marks: Marks, grades: Iterable[Any], comments: Iterable[Any]) -> Marks:
    """The same with what rows of grades and comments say; each has its cell's name."""
    grades = list(grades)
    by_hand = {row.name: worth(row) for row in grades if _is_persons(row)}
    said = {row.name: text for row in comments if (text := (row.manual_comment or "").strip())}
    given = sum(map(worth, grades))
    return replace(marks, points=replace(marks.points, given=given), by_hand=by_hand, comments=said)


def worth(row: Any) -> float:
    """What a cell's grade counts: a person's word before the test's, and extra credit on top."""
    given = row.auto_score if row.manual_score is None else row.manual_score
    return (given or 0.0) + (row.extra_credit or 0.0)


def _is_persons(row: Any) -> bool:
    return row.manual_score is not None or bool(row.extra_credit)


def _submitted(assignment: str) -> Any:
    """Every notebook that was handed in, with what tells how late it was."""
    tables = SUBMITTED.join(NOTEBOOK, SUBMITTED.c.notebook_id == NOTEBOOK.c.id)
    tables = tables.join(SUBMISSION, SUBMITTED.c.assignment_id == SUBMISSION.c.id)
    tables = tables.join(ASSIGNMENT, SUBMISSION.c.assignment_id == ASSIGNMENT.c.id)
    when = SUBMISSION.c.timestamp, SUBMISSION.c.extension, ASSIGNMENT.c.duedate
    who = SUBMITTED.c.id, SUBMISSION.c.student_id, NOTEBOOK.c.name
    asked = select(*who, SUBMITTED.c.late_submission_penalty, *when).select_from(tables)
    return asked.where(ASSIGNMENT.c.name == assignment)


def _of_cells(table: Table, assignment: str) -> Any:
    """Every row of grades or comments of an assignment, with its cell's name."""
    tables = table.join(BASE, table.c.cell_id == BASE.c.id)
    tables = tables.join(NOTEBOOK, BASE.c.notebook_id == NOTEBOOK.c.id)
    tables = tables.join(ASSIGNMENT, NOTEBOOK.c.assignment_id == ASSIGNMENT.c.id)
    asked = select(table, BASE.c.name).select_from(tables)
    return asked.where(ASSIGNMENT.c.name == assignment)


def _seconds(when: Any, due: Any, extension: Any) -> float:
    if when is None or due is None:
        return 0.0
    return max(0.0, (when - due - (extension or timedelta())).total_seconds())

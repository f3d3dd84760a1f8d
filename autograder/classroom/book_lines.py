"""Every graded cell of every submission, as lines of the gradebook."""

from dataclasses import dataclass
from typing import Any

from nbgrader.api import (
    Assignment,
    BaseCell,
    Grade,
    Gradebook,
    GradeCell,
    Notebook,
    SubmittedAssignment,
    SubmittedNotebook,
    TaskCell,
)

from autograder.classroom.marks import given, table_of


@dataclass(frozen=True)
class Line:
    """One graded cell of one submission, as it stands in the gradebook."""

    student: str
    notebook: str
    cell: str
    score: float  # by hand where that was done, otherwise automatic; with extra credit
    auto: float
    points: float
    waiting: bool  # for a grade by hand
    stale: bool = False  # graded by hand, and changed since


def book_lines(book: Gradebook, assignment: str) -> list[Line]:
    """Every graded cell of every submission of an assignment, by one query."""
    base, graded, tasks = map(table_of, (BaseCell, GradeCell, TaskCell))
    rows = (
        book.db.query(
            SubmittedAssignment.student_id.label("student"),
            Notebook.name.label("notebook"),
            base.c.name.label("cell"),
            Grade.auto_score,
            Grade.manual_score,
            Grade.extra_credit,
            Grade.needs_manual_grade,
            graded.c.max_score.label("points"),
            tasks.c.max_score.label("task_points"),
        )
        .select_from(Grade)
        .join(SubmittedNotebook, Grade.notebook_id == SubmittedNotebook.id)
        .join(Notebook, SubmittedNotebook.notebook_id == Notebook.id)
        .join(SubmittedAssignment, SubmittedNotebook.assignment_id == SubmittedAssignment.id)
        .join(Assignment, SubmittedAssignment.assignment_id == Assignment.id)
        .join(base, Grade.cell_id == base.c.id)
        .outerjoin(graded, graded.c.id == base.c.id)
        .outerjoin(tasks, tasks.c.id == base.c.id)
        .filter(table_of(Assignment).c.name == assignment)
        .all()
    )
    return [_line(row) for row in rows]


def _line(row: Any) -> Line:
    points, cell = row.points if row.points is not None else row.task_points, given(row)
    is_unread = row.manual_score is not None and cell.manual is None
    return Line(
        student=row.student,
        notebook=row.notebook,
        cell=row.cell,
        score=cell.worth,
        auto=cell.auto or 0.0,
        points=points or 0.0,
        waiting=(bool(row.needs_manual_grade) or is_unread) and not cell.stale,
        stale=cell.stale,
    )

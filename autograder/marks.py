"""What the gradebook says of everybody's work: points, lateness, grades and comments by hand."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, timedelta
from typing import TYPE_CHECKING, Any

from sqlalchemy import Table, select

from autograder.counted import Given, Marks, Points
from autograder.course import without_extensions
from autograder.names import plain

with without_extensions():
    from nbgrader import api

if TYPE_CHECKING:
    from autograder.assignment import Assignment
    from autograder.journal import Graded

Times = Mapping[str, float]  # when students handed in, by the gradebook's names
UNKNOWN: Times = {}


def _table(model: Any) -> Table:
    return model.__table__


ASSIGNMENT, NOTEBOOK, BASE = map(_table, (api.Assignment, api.Notebook, api.BaseCell))
SUBMISSION, SUBMITTED = map(_table, (api.SubmittedAssignment, api.SubmittedNotebook))
GRADE, COMMENT = map(_table, (api.Grade, api.Comment))


def times_of(
    assignments: "Mapping[str, Assignment]", results: "Iterable[Graded]"
) -> dict[str, dict[str, float]]:
    """When students handed in, by assignment, as far as something says so that is trusted."""
    found: dict[str, dict[str, float]] = {name: {} for name in assignments}
    for graded in results:
        result = graded.result
        if result.assignment in found:
            late = assignments[result.assignment].rules.late
            when = late.handed_in(result.student, graded.collected)
            if when is not None:
                found[result.assignment][plain(result.student)] = when
    return found


def points_of(db: Any, assignment: str, times: Times = UNKNOWN) -> dict[str, Points]:
    """The points of everybody who handed in an assignment, by student; arguments as below."""
    found: dict[str, Points] = {}
    for (student, _), marks in read_marks(db, assignment, times).items():
        found[student] = found.get(student, Points()).and_more(marks.points)
    return found


def read_marks(db: Any, assignment: str, times: Times = UNKNOWN) -> dict[tuple[str, str], Marks]:
    """The gradebook's marks of an assignment, by student and notebook.

    Args:
        db: a connection or a session.
        assignment: its name.
        times: to say how late somebody was; the gradebook's are what students' files say.
    """
    by_id: dict[str, Marks] = {}
    names: dict[str, tuple[str, str]] = {}
    for row in db.execute(_submitted(assignment)):
        lost = row.late_submission_penalty or 0.0
        extension = (row.extension or timedelta()).total_seconds()
        points = Points(0.0, lost, _seconds(times.get(row.student_id), row.duedate, extension))
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
    cells = {row.name: _given(row) for row in grades}
    by_hand = {name: one.worth for name, one in cells.items() if one.by_hand != (None, 0)}
    said = {row.name: text for row in comments if (text := (row.manual_comment or "").strip())}
    points = replace(marks.points, given=sum(map(worth, grades)))
    return replace(marks, points=points, by_hand=by_hand, comments=said, cells=cells)


def worth(row: Any) -> float:
    """What a cell's grade counts: a person's word before the test's, and extra credit on top."""
    return _given(row).worth


def _given(row: Any) -> Given:
    stale = bool(row.needs_manual_grade) and row.manual_score is not None
    return Given(row.auto_score, row.manual_score, row.extra_credit, stale)


def _submitted(assignment: str) -> Any:
    """Every notebook that was handed in, with what tells how late it was."""
    tables = SUBMITTED.join(NOTEBOOK, SUBMITTED.c.notebook_id == NOTEBOOK.c.id)
    tables = tables.join(SUBMISSION, SUBMITTED.c.assignment_id == SUBMISSION.c.id)
    tables = tables.join(ASSIGNMENT, SUBMISSION.c.assignment_id == ASSIGNMENT.c.id)
    when = SUBMISSION.c.extension, ASSIGNMENT.c.duedate
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


def _seconds(when: float | None, due: Any, extension: float) -> float:
    if when is None or due is None:
        return 0.0
    return max(0.0, when - due.replace(tzinfo=UTC).timestamp() - extension)

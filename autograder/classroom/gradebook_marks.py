"""What the gradebook is to say of one submission: scores, comments, and what people gave before.

Rows are what nbgrader's own SaveAutoGrades would write. What a person entered is never touched.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import Connection, select

from autograder.classroom.asked import besides
from autograder.classroom.counted import Given, Marks
from autograder.classroom.gradebook_cells import KnownCells, cell_again, kinds_of
from autograder.classroom.gradebook_rows import (
    STUDENT,
    add_row,
    fill_row,
    id_of,
    insert_rows,
    row_where,
    rows_by_cell,
    update_rows,
)
from autograder.classroom.journal_lines import Graded, is_same_digest
from autograder.classroom.marks import COMMENT, GRADE, SUBMISSION, SUBMITTED, marked
from autograder.common.results import NotebookResult, Result
from autograder.common.startup import without_extensions
from autograder.judge.assignment import Assignment, Notebook

with without_extensions():
    from nbgrader import api


NO_RESPONSE = "No response."  # nbgrader's words


@dataclass(frozen=True)
class Rows:
    """What the gradebook should say of one notebook, by grade_id."""

    scores: Mapping[str, float | None]  # None: to be graded by hand
    comments: Mapping[str, str | None]


NO_ROWS = Rows({}, {})  # of what the assignment has no more


def by_student(
    marks: Mapping[tuple[str, str], Marks],
) -> dict[str, dict[str, Marks]]:
    """The same marks, by student and then by notebook."""
    found: dict[str, dict[str, Marks]] = {}
    for (student, notebook), one in marks.items():
        found.setdefault(student, {})[notebook] = one
    return found


def all_rows(result: Result, assignment: Assignment) -> Iterator[tuple[str, Rows]]:
    """The same of every notebook of the assignment, by name, also if it was not handed in."""
    found = {notebook.name: notebook for notebook in result.notebooks}
    for notebook in assignment.notebooks:
        outcome = found.get(notebook.name) or NotebookResult(notebook.name, reason="none")
        yield notebook.name, _rows(notebook, outcome, result.reason or outcome.reason)


def _rows(notebook: Notebook, outcome: NotebookResult, reason: str) -> Rows:
    scores: dict[str, float | None] = {}
    comments: dict[str, str | None] = {}
    earned = {verdict.test: verdict.score for verdict in outcome.verdicts}
    own = {after for after, _, text in besides(outcome.extra) if text.strip()}
    for number, cell in enumerate(notebook.cells):
        kinds = set(kinds_of(cell))
        by_hand = "SolutionCell" in kinds or cell.cell_type != "code"
        untouched = outcome.answers.get(cell.grade_id, cell.stub) == cell.stub
        # What a person grades may stand in a cell of the student's own, near its place.
        elsewhere = "GradeCell" in kinds and by_hand and not own.isdisjoint(_near(notebook, number))
        unchanged = bool(reason) or (untouched and not elsewhere)
        if "TaskCell" in kinds:  # nbgrader leaves tasks to people, changed or not
            scores[cell.grade_id] = 0.0 if reason else None
            comments[cell.grade_id] = None
        if "GradeCell" in kinds:
            if by_hand:
                scores[cell.grade_id] = 0.0 if unchanged else None
            else:
                scores[cell.grade_id] = 0.0 if reason else earned.get(cell.grade_id, 0.0)
        if "SolutionCell" in kinds:
            comments[cell.grade_id] = NO_RESPONSE if unchanged else None
    return Rows(scores, comments)


def _near(notebook: Notebook, number: int) -> set[str]:
    """After which cells there stands what belongs to a place: up to the places around it.

    A student's own cells are known by the last cell with a name above them; "" is the beginning.
    """
    cells = notebook.cells
    places = [n for n, cell in enumerate(cells) if kinds_of(cell)]
    first = max((n for n in places if n < number), default=0)
    last = min((n for n in places if n > number), default=len(cells))
    near = {cell.grade_id for cell in cells[first:last] if cell.grade_id}
    return near if any(n < number for n in places) else near | {""}


def unchanged(graded: Graded, before: Graded) -> set[str]:
    """Notebooks of which a person has the same to grade as before: pictures and files, too."""
    old = {notebook.name: notebook for notebook in before.result.notebooks}
    made_of, then = graded.made_of, before.made_of
    handed_in = is_same_digest(made_of.get("work", ""), then.get("work", ""))
    files = made_of.get("files", "")
    had_files = then.get("files", files)  # an older line says nothing of them, nor of pictures
    same_files = files == had_files or is_same_digest(files, had_files)
    return {
        name
        for name, now in ((notebook.name, notebook) for notebook in graded.result.notebooks)
        if (had := old.get(name))
        and (now.answers, besides(now.extra)) == (had.answers, besides(had.extra))
        and (handed_in or (same_files and now.pictures == had.pictures))
    }


def save_notebook(
    db: Connection, submission: str, known: KnownCells, rows: Rows, *, seen: bool = False
) -> Marks:
    """Write grades and comments; returns what both say now, lateness left out.

    What a person has graded waits for that person again, unless its answers were `seen`.
    """
    keys = {"assignment_id": submission, "notebook_id": known.id}
    id = id_of(db, SUBMITTED, **keys) or add_row(db, SUBMITTED, **keys, flagged=False)
    grades = rows_by_cell(db, GRADE, id, known.graded().values())
    now: list[_Given] = []
    changes: list[dict[str, Any]] = []
    fresh: list[dict[str, Any]] = []
    for name, cell in known.graded().items():
        old, auto = grades.get(cell), rows.scores.get(name)
        if name not in rows.scores:
            if not old:
                continue
            auto = None if old.extra_credit is None else 0.0  # by itself nbgrader counts none
        manual = old.manual_score if old else None
        waits = name in rows.scores and (manual is not None or auto is None)
        if old and seen and manual is not None:
            waits = bool(old.needs_manual_grade)
        values = {"auto_score": auto, "needs_manual_grade": waits}
        now.append(_Given(name, auto, manual, old.extra_credit if old else None, waits))
        if old:
            changes.append({"id": old.id, **values})
        else:
            fresh.append({"id": api.new_uuid(), "cell_id": cell, "notebook_id": id, **values})
    update_rows(db, GRADE, changes)
    insert_rows(db, GRADE, fresh)
    said = _save_comments(db, id, known, rows)
    return marked(Marks(id=id), now, said)


class _Given(NamedTuple):
    """A cell's grade, as a row of the gradebook has it."""

    name: str
    auto_score: float | None
    manual_score: float | None
    extra_credit: float | None
    needs_manual_grade: bool


class _Said(NamedTuple):
    """What a person said of a cell, as a row of the gradebook has it."""

    name: str
    manual_comment: str | None


def _save_comments(db: Connection, notebook: str, known: KnownCells, rows: Rows) -> list[_Said]:
    """Write what the grader says of each cell; returns what people said."""
    said: list[_Said] = []
    comments = rows_by_cell(db, COMMENT, notebook, known.commented().values())
    changes: list[dict[str, Any]] = []
    fresh: list[dict[str, Any]] = []
    for name, cell in known.commented().items():
        values = {"auto_comment": rows.comments.get(name)}
        if cell in comments:
            changes.append({"id": comments[cell].id, **values})
            said.append(_Said(name, comments[cell].manual_comment))
        elif name in rows.comments:
            keys = {"cell_id": cell, "notebook_id": notebook}
            fresh.append({"id": api.new_uuid(), **keys, **values})
    update_rows(db, COMMENT, changes)
    insert_rows(db, COMMENT, fresh)
    return said


def add_student(db: Connection, student: str, former: str) -> None:
    """Add a student, or give whom the gradebook has under a former name the present one."""
    row = db.execute(select(STUDENT).where(STUDENT.c.id == former)).first()
    insert_rows(db, STUDENT, [{**(row._mapping if row else {}), "id": student}])
    if row:
        theirs = SUBMISSION.c.student_id == former
        db.execute(SUBMISSION.update().where(theirs).values(student_id=student))
        db.execute(STUDENT.delete().where(STUDENT.c.id == former))


def give_back(db: Connection, notebook: str, known: KnownCells, marks: Marks) -> int:
    """Enter grades and comments by hand where there are none; how many."""
    entered = 0
    for name, given in by_people(marks).items():
        where = row_where(db, GRADE, notebook, cell_again(db, known, "GradeCell", name))
        if given.manual is not None:
            values = {"manual_score": given.manual, "needs_manual_grade": False}
            entered += fill_row(db, GRADE, [*where, GRADE.c.manual_score.is_(None)], values)
        if given.stale:  # whatever word on it the gradebook has
            values = {"needs_manual_grade": True}
            fill_row(db, GRADE, [*where, GRADE.c.manual_score.is_not(None)], values)
        if given.extra is not None:
            values = {"extra_credit": given.extra}
            entered += fill_row(db, GRADE, [*where, GRADE.c.extra_credit.is_(None)], values)
            alone = [GRADE.c.auto_score.is_(None), GRADE.c.manual_score.is_(None)]
            alone.append(GRADE.c.needs_manual_grade.is_(False))  # of a cell that is gone
            fill_row(db, GRADE, [*where, *alone], {"auto_score": 0.0})
    for name, text in marks.comments.items():
        where = row_where(db, COMMENT, notebook, cell_again(db, known, "SolutionCell", name))
        where.append(COMMENT.c.manual_comment.is_(None))
        entered += fill_row(db, COMMENT, where, {"manual_comment": text})
    return entered


def by_people(marks: Marks) -> dict[str, Given]:
    """What people gave, by cell."""
    return {name: given for name, given in marks.cells.items() if given.is_by_hand}

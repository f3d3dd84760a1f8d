"""The one writer: puts results into nbgrader's gradebook and writes the files that belong to them.

Rows are what nbgrader's own SaveAutoGrades would write, in one transaction for each submission.
What a person entered (manual scores, comments, extra credit) is never touched. Files are renamed
into place, so that none is ever seen half written. Saving a result twice changes nothing. What
concerns the whole class (a full disk, a gradebook that is locked or gone) is a CourseError; what
concerns one submission ends with that submission, and is told in `troubles`.
"""

import hashlib
import json
import math
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import Connection, Table, bindparam, event, func, select
from sqlalchemy.engine import Row

from autograder.assignment import Assignment, Cell, Notebook
from autograder.counted import Marks, Points
from autograder.course import CourseError, without_extensions
from autograder.failures import WHOLE_CLASS, in_words, sentence_of, write_whole
from autograder.journal import Graded, bounded, results
from autograder.marks import marked, read_marks
from autograder.names import earlier, plain, readable
from autograder.pages import made_of, stamped
from autograder.rebuild import checksum, rebuild
from autograder.results import NotebookResult, Result, Verdict
from autograder.rules import Late
from autograder.secret import Secrets, made_up

with without_extensions():
    from nbgrader import api
    from nbgrader.dbutil import ALEMBIC_DIR

if TYPE_CHECKING:
    from autograder.taught import Class

_alembics_answer = api.get_alembic_version
NO_RESPONSE = "No response."  # nbgrader's words
# Times that every database, time zone and extension can take; what is beyond them counts as them.
EARLIEST, LATEST = (datetime(year, 1, 1, tzinfo=UTC).timestamp() for year in (1900, 9000))

SECRET = "submission_secret.txt"
NEAR = 1e-6  # sums of the same scores may differ by so much
NO_MARKS: Mapping[str, Marks] = {}  # before there is a gradebook


def _table(model: Any) -> Table:
    return model.__table__


ASSIGNMENT, NOTEBOOK, SOURCE = map(_table, (api.Assignment, api.Notebook, api.SourceCell))
BASE, STUDENT, SUBMISSION = map(_table, (api.BaseCell, api.Student, api.SubmittedAssignment))
SUBMITTED, GRADE, COMMENT = map(_table, (api.SubmittedNotebook, api.Grade, api.Comment))
KINDS = {
    "GradeCell": _table(api.GradeCell),
    "SolutionCell": _table(api.SolutionCell),
    "TaskCell": _table(api.TaskCell),
}


@dataclass
class _Known:
    """A notebook's rows in the gradebook: ids of its cells by type and grade_id."""

    id: str
    cells: dict[tuple[str, str], str] = field(default_factory=dict)

    def graded(self) -> dict[str, str]:
        """Ids of the cells that have a grade, by grade_id."""
        return {name: id for (kind, name), id in self.cells.items() if kind != "SolutionCell"}

    def commented(self) -> dict[str, str]:
        """Ids of the cells that have a comment, by grade_id."""
        return {name: id for (kind, name), id in self.cells.items() if kind != "GradeCell"}


class Store:
    """A class's gradebook and files, open for writing; use as a context manager."""

    def __init__(self, taught: "Class", pages: bool = True):
        """Open the gradebook, or make it.

        Args:
            taught: the class.
            pages: whether to write the graded notebooks and feedback pages too.
        """
        self._taught = taught
        if pages:
            from autograder import feedback

            feedback.prepare()
        api.get_alembic_version = _newest_version
        self._book = open_book(taught)
        if self._book.engine.dialect.name == "sqlite":
            event.listen(self._book.engine, "connect", _write_ahead)
        self._secrets = Secrets(taught) if pages else None
        self._troubles: list[str] = []
        self._known: dict[tuple[str, str], _Known] = {}  # by names of assignment and notebook
        self._ids: dict[str, str] = {}  # of assignments, by name

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the gradebook."""
        self._book.close()

    @property
    def troubles(self) -> list[str]:
        """What could not be written of single submissions."""
        return [*self._troubles, *(self._secrets.sentences() if self._secrets else ())]

    def enter(self, assignment: Assignment) -> None:
        """Make the gradebook know the assignment's cells as they are today.

        Cells may come, go and change between runs. A cell that is gone leaves the gradebook,
        unless a person has graded or commented it.
        """
        with self._writing() as db:
            id = _one(db, ASSIGNMENT, name=assignment.name)
            if id is None:
                id = _add(db, ASSIGNMENT, name=assignment.name, course_id=self._book.course_id)
            if due := assignment.rules.late.due:
                _update(db, ASSIGNMENT, [{"id": id, "duedate": moment(due.timestamp())}])
            self._ids[assignment.name] = id
            for notebook in assignment.notebooks:
                known = _enter_notebook(db, id, notebook)
                self._known[assignment.name, notebook.name] = known
            _forget_notebooks(db, id, [notebook.name for notebook in assignment.notebooks])

    def save(self, graded: Graded, assignment: Assignment) -> None:
        """Put one result where everybody looks for it: in the gradebook, then on the pages.

        Raises CourseError for what concerns the whole class; no submission makes it raise.
        """
        graded = bounded(graded)
        marks: dict[str, Marks] = {}
        try:
            marks = self._enter_result(graded, assignment)
        except CourseError:
            raise
        except Exception as error:  # noqa: BLE001 - no submission may keep the others waiting
            self._give_up(graded, assignment, error)
        if self._secrets:
            with self._writing_files(graded):
                others = self._secrets.take(graded)
                own = replace(graded, secret=self._secrets.own(graded))
                write_files(self._taught, own, assignment, marks)
                for who, secret in others.items():
                    _mend_exchange(self._taught, who, {SECRET: secret})

    def refresh(self, assignments: Mapping[str, Assignment], results: Iterable[Graded]) -> None:
        """See that lateness costs what it costs today, and that pages say what the gradebook says.

        Extensions, grades and comments by hand come when the grader is gone.
        """
        with self._writing() as db:
            held = {name: read_marks(db, name) for name in assignments}
        changed: list[dict[str, Any]] = []
        for graded in results:
            assignment = assignments.get(graded.result.assignment)
            if assignment is None:
                continue
            own = held[assignment.name]
            before = {
                notebook.name: marks
                for notebook in assignment.notebooks
                if (marks := own.get((plain(graded.result.student), notebook.name)))
            }
            today = {name: _as_of_today(m, graded, assignment) for name, m in before.items()}
            changed += [
                {"id": marks.id, "late_submission_penalty": marks.points.lost or None}
                for name, marks in today.items()
                if abs(marks.points.lost - before[name].points.lost) > NEAR
            ]
            if self._secrets and today:
                with self._writing_files(graded):
                    self._secrets.take(graded)
                    own = replace(graded, secret=self._secrets.own(graded))
                    write_pages(self._taught, own, assignment, today, changed_only=True)
        with self._writing() as db:
            _update(db, SUBMITTED, changed)

    @contextmanager
    def _writing_files(self, graded: Graded) -> Iterator[None]:
        """Inside, files are written, unless something stands in the way of these alone."""
        try:
            yield
        except OSError as error:
            self._only_this(error)
            self._tell(graded, "not all of its files could be written", error)
        except Exception as error:  # noqa: BLE001 - the gradebook gets its scores all the same
            self._tell(graded, f"its pages could not be made ({type(error).__name__})", error)

    def _only_this(self, error: OSError) -> None:
        """Raise CourseError if nobody else's files could be written either."""
        if error.errno in WHOLE_CLASS:
            raise CourseError(str(sentence_of(error, str(self._taught.folder)))) from error
        for folder in (self._taught.autograded, self._taught.feedback):
            with in_words(folder):
                folder.mkdir(parents=True, exist_ok=True)
                tempfile.TemporaryFile(dir=folder).close()

    def _give_up(self, graded: Graded, assignment: Assignment, error: Exception) -> None:
        """Store 0 with the reason for a result that cannot be stored."""
        reason = f"its result could not be stored ({type(error).__name__})"
        self._tell(graded, f"{reason}; it is 0 until it is graded again", error)
        nothing = Graded(replace(graded.result, notebooks=(), reason=reason))
        try:
            self._enter_result(nothing, assignment)
        except CourseError:
            raise
        except Exception as second:  # noqa: BLE001 - as above
            self._tell(graded, "not even 0 could be stored for it", second)

    def _tell(self, graded: Graded, what: str, error: Exception) -> None:
        result = graded.result
        why = str(error).partition("\n")[0][:200]
        self._troubles.append(
            f"{readable(plain(result.student))}, {result.assignment}: {what} ({why})."
        )

    def _enter_result(self, graded: Graded, assignment: Assignment) -> dict[str, Marks]:
        """Put one result into the gradebook, all of it or nothing; what it says then."""
        result = graded.result
        late = assignment.rules.late
        found: dict[str, Marks] = {}
        with self._writing() as db:
            submission = self._submission(db, graded, late)
            extension = (submission.extension or timedelta()).total_seconds()
            seconds = late.seconds_late(result.student, graded.collected, extension)
            for name, rows in _all_rows(result, assignment):
                known = self._known[assignment.name, name]
                marks = _save_notebook(db, submission.id, known, rows)
                found[name] = _less_lateness(marks, late, seconds)
                lost = found[name].points.lost or None
                _update(db, SUBMITTED, [{"id": marks.id, "late_submission_penalty": lost}])
        return found

    def held(self, assignment: str) -> dict[tuple[str, str], "Held"]:
        """What the gradebook says of an assignment, by student and notebook."""
        scores = func.count(GRADE.c.auto_score), func.coalesce(func.sum(GRADE.c.auto_score), 0.0)
        named = SUBMISSION.c.student_id, NOTEBOOK.c.name
        rows = SUBMITTED.join(NOTEBOOK, SUBMITTED.c.notebook_id == NOTEBOOK.c.id)
        rows = rows.join(SUBMISSION, SUBMITTED.c.assignment_id == SUBMISSION.c.id)
        rows = rows.outerjoin(GRADE, GRADE.c.notebook_id == SUBMITTED.c.id)
        wanted = SUBMISSION.c.assignment_id == self._ids[assignment]
        query = select(*named, SUBMISSION.c.timestamp, *scores).select_from(rows).where(wanted)
        with self._writing() as db:
            found = db.execute(query.group_by(*named, SUBMISSION.c.timestamp)).all()
        return {
            (student, notebook): Held(when, count, score)
            for student, notebook, when, count, score in found
        }

    def settle(self) -> None:
        """See that what was saved is on the disk, where a power cut cannot lose it."""
        if self._book.engine.dialect.name == "sqlite":
            with in_words(shown_database(self._taught)), self._book.engine.connect() as db:
                db.exec_driver_sql("PRAGMA wal_checkpoint(PASSIVE)")

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        """A transaction; what the database refuses as a whole is a CourseError."""
        with in_words(shown_database(self._taught)), self._book.engine.begin() as db:
            yield db

    def _submission(self, db: Connection, graded: Graded, late: Late) -> Row:
        """The submission's row, made if it is not there, with the time as far as it is known."""
        result = graded.result
        student = plain(result.student)
        if _one(db, STUDENT, id=student) is None:
            _add_student(db, student, earlier(result.student))
        keys = {"assignment_id": self._ids[result.assignment], "student_id": student}
        id = _one(db, SUBMISSION, **keys) or _add(db, SUBMISSION, **keys)
        if when := _when(graded, late):
            _update(db, SUBMISSION, [{"id": id, "timestamp": when}])
        return db.execute(select(SUBMISSION).where(SUBMISSION.c.id == id)).one()


def refresh(taught: "Class", assignments: Mapping[str, Assignment]) -> None:
    """As `Store.refresh`, for everything of these assignments that was graded."""
    with Store(taught) as store:
        store.refresh(assignments, results(taught))


@dataclass(frozen=True)
class Held:
    """What the gradebook says of one notebook that was handed in."""

    when: datetime | None
    count: int  # of scores that the grader gave
    score: float  # those together


def holds(held: Mapping[tuple[str, str], Held], graded: Graded, assignment: Assignment) -> bool:
    """Whether a gradebook says what this result does; it may be an older one that was put back."""
    result = graded.result
    when = _when(graded, assignment.rules.late)
    for name, rows in _all_rows(result, assignment):
        scores = [score for score in rows.scores.values() if score is not None]
        found = held.get((plain(result.student), name))
        if not found or found.count != len(scores) or abs(found.score - sum(scores)) > NEAR:
            return False
        if when and (not found.when or abs((found.when - when).total_seconds()) > 1):
            return False
    return True


def open_book(taught: "Class") -> api.Gradebook:
    """The class's gradebook; CourseError if it cannot be had."""
    with in_words(shown_database(taught)):
        return api.Gradebook(taught.database, taught.course_id)


def shown_database(taught: "Class") -> str:
    """Where the gradebook is, without a password."""
    path = taught.database.removeprefix("sqlite:///").partition("?")[0]
    return re.sub(r"(://[^:/@]*):[^@]*@", r"\1:***@", path)


def moment(seconds: float) -> datetime | None:
    """A time as the gradebook holds it: UTC, without saying so; None if it is none."""
    if math.isnan(seconds):
        return None
    within = min(max(seconds, EARLIEST), LATEST)
    return datetime.fromtimestamp(within, UTC).replace(tzinfo=None)


def _when(graded: Graded, late: Late) -> datetime | None:
    """When it was handed in, as the gradebook is to say it; None if nothing says so."""
    when = late.handed_in(graded.result.student, graded.collected)
    when = graded.collected if when is None else when
    return None if when is None else moment(when)


def _as_of_today(marks: Marks, graded: Graded, assignment: Assignment) -> Marks:
    """The same, with what lateness costs by the rules and the extension of today."""
    late = assignment.rules.late
    seconds = late.seconds_late(graded.result.student, graded.collected, marks.extension)
    return _less_lateness(marks, late, seconds)


def _less_lateness(marks: Marks, late: Late, seconds: float) -> Marks:
    given = marks.points.given
    lost = min(late.penalty(given, seconds), given) if given > 0 else 0.0
    return replace(marks, points=Points(given, lost, seconds))


def write_files(
    taught: "Class", graded: Graded, assignment: Assignment, marks: Mapping[str, Marks] = NO_MARKS
) -> None:
    """Write the graded notebook for the instructor and the page for the student.

    Args:
        taught: the class.
        graded: what came of the submission.
        assignment: what was to be done.
        marks: what the gradebook says of it, by notebook.
    """
    result = graded.result
    for name, text in graded_notebooks(result, assignment):
        write_whole(taught.autograded / result.student / result.assignment / f"{name}.ipynb", text)
    write_pages(taught, graded, assignment, marks)


def _for_the_exchange(graded: Graded) -> dict[str, str]:
    """What `nbgrader release_feedback` wants beside each page: when it was handed in, and a secret.

    By the secret a page is published under a name that its student alone knows (`secret.py`).
    """
    when = None if graded.collected is None else moment(graded.collected)
    return {
        "timestamp.txt": f"{when} UTC\n" if when else "",
        SECRET: graded.secret or made_up(graded.result.key),
    }


def write_pages(
    taught: "Class",
    graded: Graded,
    assignment: Assignment,
    marks: Mapping[str, Marks],
    *,
    changed_only: bool = False,
) -> None:
    """Write the student's pages, and what hands them out; arguments as above.

    With `changed_only`, those that say something else than what there is to say today.
    """
    result = graded.result
    folder = taught.feedback / result.student / result.assignment
    stamps = {
        notebook.name: _stamp(result, marks.get(notebook.name, Marks()))
        for notebook in assignment.notebooks
    }
    paths = {name: folder / f"{name}.html" for name in stamps}
    if changed_only and all(made_of(paths[name]) == stamp for name, stamp in stamps.items()):
        who = result.student, result.assignment
        _mend_exchange(taught, who, _for_the_exchange(graded))
        return
    for name, text in feedback_pages(result, assignment, marks):
        write_whole(paths[name], stamped(text, stamps[name]))
    for folder in (taught.autograded, taught.feedback):
        for name, text in _for_the_exchange(graded).items():
            write_whole(folder / result.student / result.assignment / name, text)


def _mend_exchange(taught: "Class", who: tuple[str, str], wanted: Mapping[str, str]) -> None:
    """See that what lies beside pages says what it should, where it lies there."""
    for folder in (taught.autograded, taught.feedback):
        for name, text in wanted.items():
            path = folder.joinpath(*who, name)
            if path.is_file() and path.read_bytes() != text.encode():
                write_whole(path, text)


def _stamp(result: Result, marks: Marks) -> str:
    """Changes when anything does that a page says."""
    points = marks.points
    by_hand, comments = sorted(marks.by_hand.items()), sorted(marks.comments.items())
    said = result.key, f"{points.given:.6f}", points.late, by_hand, comments
    return hashlib.sha256(repr(said).encode("utf-8", "replace")).hexdigest()


def graded_notebooks(result: Result, assignment: Assignment) -> Iterator[tuple[str, str]]:
    """The graded notebooks by name, as text."""
    for notebook, outcome in _outcomes(result, assignment):
        try:
            text = rebuild(notebook, outcome)
        except Exception as error:  # noqa: BLE001 - the gradebook has the scores all the same
            text = rebuild(notebook, _unshown(outcome, error))
        yield notebook.name, text


def feedback_pages(
    result: Result, assignment: Assignment, marks: Mapping[str, Marks] = NO_MARKS
) -> Iterator[tuple[str, str]]:
    """What the student gets to read, by notebook."""
    from autograder import feedback

    student = readable(plain(result.student))
    for notebook, outcome in _outcomes(result, assignment):
        own = marks.get(notebook.name)
        try:
            text = feedback.page(outcome, notebook, student, marks=own)
        except Exception as error:  # noqa: BLE001 - as above
            text = feedback.page(_unshown(outcome, error), notebook, student, marks=own)
        yield notebook.name, text


def _unshown(outcome: NotebookResult, error: Exception) -> NotebookResult:
    """A notebook of which only the scores can be shown, without a word of the student's."""
    verdicts = tuple(
        Verdict(v.test, v.status, v.score, v.points, hidden=v.hidden) for v in outcome.verdicts
    )
    note = f"This could not be written in full ({type(error).__name__}); the scores are right."
    reason = f"it is 0 and cannot be shown ({type(error).__name__})" if outcome.reason else ""
    return NotebookResult(outcome.name, verdicts, notes=(note,), reason=reason)


def _outcomes(result: Result, assignment: Assignment) -> Iterator[tuple[Notebook, NotebookResult]]:
    """Every notebook of the assignment with what came of it, also if nothing did."""
    found = {notebook.name: notebook for notebook in result.notebooks}
    for notebook in assignment.notebooks:
        reason = result.reason or "no such notebook was handed in"
        yield notebook, found.get(notebook.name) or NotebookResult(notebook.name, reason=reason)


@dataclass(frozen=True)
class _Rows:
    """What the gradebook should say of one notebook, by grade_id."""

    scores: Mapping[str, float | None]  # None: to be graded by hand
    comments: Mapping[str, str | None]


def _all_rows(result: Result, assignment: Assignment) -> Iterator[tuple[str, _Rows]]:
    """The same of every notebook of the assignment, by name, also if it was not handed in."""
    found = {notebook.name: notebook for notebook in result.notebooks}
    for notebook in assignment.notebooks:
        outcome = found.get(notebook.name) or NotebookResult(notebook.name, reason="none")
        yield notebook.name, _rows(notebook, outcome, result.reason or outcome.reason)


def _rows(notebook: Notebook, outcome: NotebookResult, reason: str) -> _Rows:
    scores: dict[str, float | None] = {}
    comments: dict[str, str | None] = {}
    earned = {verdict.test: verdict.score for verdict in outcome.verdicts}
    own = {after for after, _, text in outcome.extra if text.strip()}
    for number, cell in enumerate(notebook.cells):
        kinds = set(_kinds(cell))
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
    return _Rows(scores, comments)


def _near(notebook: Notebook, number: int) -> set[str]:
    """After which cells there stands what belongs to a place: up to the places around it.

    A student's own cells are known by the last cell with a name above them; "" is the beginning.
    """
    cells = notebook.cells
    places = [n for n, cell in enumerate(cells) if _kinds(cell)]
    first = max((n for n in places if n < number), default=0)
    last = min((n for n in places if n > number), default=len(cells))
    near = {cell.grade_id for cell in cells[first:last] if cell.grade_id}
    return near if any(n < number for n in places) else near | {""}


def _save_notebook(db: Connection, submission: str, known: _Known, rows: _Rows) -> Marks:
    """Write grades and comments; returns what both say now, lateness left out."""
    keys = {"assignment_id": submission, "notebook_id": known.id}
    id = _one(db, SUBMITTED, **keys) or _add(db, SUBMITTED, **keys, flagged=False)
    grades = _by_cell(db, GRADE, id, known.graded().values())
    now: list[_Given] = []
    changes: list[dict[str, Any]] = []
    fresh: list[dict[str, Any]] = []
    for name, cell in known.graded().items():
        old, auto = grades.get(cell), rows.scores.get(name)
        manual = old.manual_score if old else None
        values = {"auto_score": auto, "needs_manual_grade": manual is not None or auto is None}
        now.append(_Given(name, auto, manual, old.extra_credit if old else None))
        if old:
            changes.append({"id": old.id, **values})
        else:
            fresh.append({"id": api.new_uuid(), "cell_id": cell, "notebook_id": id, **values})
    _update(db, GRADE, changes)
    _insert(db, GRADE, fresh)
    said = _save_comments(db, id, known, rows)
    return marked(Marks(id=id), now, said)


class _Given(NamedTuple):
    """A cell's grade, as a row of the gradebook has it."""

    name: str
    auto_score: float | None
    manual_score: float | None
    extra_credit: float | None


class _Said(NamedTuple):
    """What a person said of a cell, as a row of the gradebook has it."""

    name: str
    manual_comment: str | None


def _save_comments(db: Connection, notebook: str, known: _Known, rows: _Rows) -> list[_Said]:
    """Write what the grader says of each cell; returns what people said."""
    said: list[_Said] = []
    comments = _by_cell(db, COMMENT, notebook, known.commented().values())
    changes: list[dict[str, Any]] = []
    fresh: list[dict[str, Any]] = []
    for name, cell in known.commented().items():
        values = {"auto_comment": rows.comments.get(name)}
        if cell in comments:
            changes.append({"id": comments[cell].id, **values})
            said.append(_Said(name, comments[cell].manual_comment))
        else:
            keys = {"cell_id": cell, "notebook_id": notebook}
            fresh.append({"id": api.new_uuid(), **keys, **values})
    _update(db, COMMENT, changes)
    _insert(db, COMMENT, fresh)
    return said


def _kinds(cell: Cell) -> list[str]:
    """As which types nbgrader lists this cell."""
    marks = cell.metadata.get("nbgrader", {})
    signs = {"grade": "GradeCell", "solution": "SolutionCell", "task": "TaskCell"}
    return [kind for sign, kind in signs.items() if marks.get(sign)]


def _enter_notebook(db: Connection, assignment: str, notebook: Notebook) -> _Known:
    keys = {"name": notebook.name, "assignment_id": assignment}
    id = _one(db, NOTEBOOK, **keys) or _add(db, NOTEBOOK, **keys)
    kernel = json.dumps(notebook.metadata.get("kernelspec", {}))
    _update(db, NOTEBOOK, [{"id": id, "kernelspec": kernel}])
    wanted = {(kind, cell.grade_id): cell for cell in notebook.cells for kind in _kinds(cell)}
    known = _Known(id, _cells_of(db, id))
    for (kind, name), cell in wanted.items():
        values = {} if kind == "SolutionCell" else _worth(cell)
        if (kind, name) not in known.cells:
            known.cells[kind, name] = _add(db, BASE, name=name, notebook_id=id, type=kind)
            _insert(db, KINDS[kind], [{"id": known.cells[kind, name], **values}])
        elif values:
            _update(db, KINDS[kind], [{"id": known.cells[kind, name], **values}])
    for kind, name in known.cells.keys() - wanted.keys():
        if _forget_cell(db, kind, known.cells[kind, name]):
            del known.cells[kind, name]
    _enter_sources(db, id, notebook)
    return known


def _worth(cell: Cell) -> dict[str, Any]:
    return {"max_score": float(cell.points), "cell_type": cell.cell_type}


def _cells_of(db: Connection, notebook: str) -> dict[tuple[str, str], str]:
    rows = db.execute(select(BASE).where(BASE.c.notebook_id == notebook))
    return {(row.type, row.name): row.id for row in rows}


def _enter_sources(db: Connection, notebook: str, read: Notebook) -> None:
    """The text of every marked cell: nbgrader's own commands put it back where it was changed."""
    rows = db.execute(select(SOURCE).where(SOURCE.c.notebook_id == notebook))
    known = {row.name: row.id for row in rows}
    for cell in read.cells:
        if not (cell.grade_id and (_kinds(cell) or cell.locked)):
            continue
        source = cell.stub if "SolutionCell" in _kinds(cell) else cell.source
        values = {
            "cell_type": cell.cell_type,
            "locked": cell.locked,
            "source": source,
            "checksum": checksum(cell),
        }
        if cell.grade_id in known:
            _update(db, SOURCE, [{"id": known.pop(cell.grade_id), **values}])
        else:
            _add(db, SOURCE, name=cell.grade_id, notebook_id=notebook, **values)
    for id in known.values():
        db.execute(SOURCE.delete().where(SOURCE.c.id == id))


def _forget_cell(db: Connection, kind: str, cell: str) -> bool:
    """Take a cell out of the gradebook; not if a person has graded or commented it."""
    for table, columns in (
        (GRADE, (GRADE.c.manual_score, GRADE.c.extra_credit)),
        (COMMENT, (COMMENT.c.manual_comment,)),
    ):
        for column in columns:
            touched = select(table.c.id).where(table.c.cell_id == cell, column.is_not(None))
            if db.execute(touched.limit(1)).first():
                return False
    for table in (GRADE, COMMENT):
        db.execute(table.delete().where(table.c.cell_id == cell))
    db.execute(KINDS[kind].delete().where(KINDS[kind].c.id == cell))
    db.execute(BASE.delete().where(BASE.c.id == cell))
    return True


def _forget_notebooks(db: Connection, assignment: str, kept: Iterable[str]) -> None:
    """Take out notebooks that the assignment no longer has, unless a person's work is in them."""
    others = NOTEBOOK.c.assignment_id == assignment, NOTEBOOK.c.name.not_in(list(kept))
    for (id,) in db.execute(select(NOTEBOOK.c.id).where(*others)).all():
        gone = [_forget_cell(db, kind, cell) for (kind, _), cell in _cells_of(db, id).items()]
        if all(gone):
            for table in (SOURCE, SUBMITTED):
                db.execute(table.delete().where(table.c.notebook_id == id))
            db.execute(NOTEBOOK.delete().where(NOTEBOOK.c.id == id))


def _by_cell(db: Connection, table: Table, notebook: str, cells: Iterable[str]) -> dict[str, Row]:
    """A submitted notebook's rows; found by their cells, for which the gradebook has an index."""
    where = table.c.notebook_id == notebook, table.c.cell_id.in_(list(cells))
    return {row.cell_id: row for row in db.execute(select(table).where(*where))}


def _one(db: Connection, table: Table, **values: Any) -> str | None:
    """The id of the row with these values."""
    where = [table.c[name] == value for name, value in values.items()]
    return db.execute(select(table.c.id).where(*where)).scalar()


def _add(db: Connection, table: Table, **values: Any) -> str:
    """Add a row; returns its id."""
    row = {"id": api.new_uuid(), **values}
    db.execute(table.insert(), row)
    return row["id"]


def _add_student(db: Connection, student: str, former: str) -> None:
    """Add a student, or give whom the gradebook has under a former name the present one."""
    row = db.execute(select(STUDENT).where(STUDENT.c.id == former)).first()
    _insert(db, STUDENT, [{**(row._mapping if row else {}), "id": student}])
    if row:
        theirs = SUBMISSION.c.student_id == former
        db.execute(SUBMISSION.update().where(theirs).values(student_id=student))
        db.execute(STUDENT.delete().where(STUDENT.c.id == former))


def _insert(db: Connection, table: Table, rows: list[dict[str, Any]]) -> None:
    if rows:
        db.execute(table.insert(), rows)


def _update(db: Connection, table: Table, rows: list[dict[str, Any]]) -> None:
    """Change rows by their id; all name the same columns."""
    if rows:
        change = table.update().where(table.c.id == bindparam("row"))
        db.execute(change, [{"row": row.pop("id"), **row} for row in rows])


def _write_ahead(connection: Any, _: object) -> None:
    """Let formgrader read while we write; a file system that cannot do it goes on as before.

    What is written ahead is brought to the disk by `settle`, not by every transaction.
    """
    (mode,) = connection.execute("PRAGMA journal_mode=WAL").fetchone()
    if mode == "wal":
        connection.execute("PRAGMA synchronous=NORMAL")


def _newest_version() -> str:
    """What nbgrader notes in a new gradebook; to ask alembic takes it a process and two seconds."""
    texts = [
        path.read_text(encoding="utf-8") for path in Path(ALEMBIC_DIR, "versions").glob("*.py")
    ]
    versions = {name for text in texts for name in re.findall(r"^revision = '(\w+)'", text, re.M)}
    older = {name for text in texts for name in re.findall(r"^down_revision = '(\w+)'", text, re.M)}
    newest = versions - older
    return newest.pop() if len(newest) == 1 else _alembics_answer()

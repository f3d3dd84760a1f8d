"""The one writer: puts results into nbgrader's gradebook and writes the files that belong to them.

Rows are what nbgrader's own SaveAutoGrades would write, in one transaction for each submission.
What a person entered (manual scores, comments, extra credit) is never touched. Files are renamed
into place, so that none is ever seen half written. Saving a result twice changes nothing. What
concerns the whole class (a full disk, a gradebook that is locked or gone) is a CourseError; what
concerns one submission ends with that submission, and is told in `troubles`.
"""

import filecmp
import hashlib
import json
import math
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import (
    Column,
    Connection,
    MetaData,
    String,
    Table,
    bindparam,
    event,
    inspect,
    make_url,
    select,
)
from sqlalchemy.engine import Row

from autograder.classroom.counted import NEAR, Given, Marks, Points
from autograder.classroom.journal import Graded, bounded
from autograder.classroom.marks import (
    ASSIGNMENT,
    BASE,
    COMMENT,
    GRADE,
    NOTEBOOK,
    SUBMISSION,
    SUBMITTED,
    marked,
    read_marks,
    table_of,
)
from autograder.classroom.pages import made_of, stamped
from autograder.classroom.rebuild import checksum, rebuild
from autograder.classroom.secret import Secrets, made_up
from autograder.common.course import CourseError
from autograder.common.failures import WHOLE_CLASS, in_words, sentence_of, write_whole
from autograder.common.names import earlier, plain, readable
from autograder.common.results import NotebookResult, Result, Verdict
from autograder.common.startup import without_extensions
from autograder.judge.assignment import Assignment, Cell, Notebook
from autograder.judge.parcel import SECRET_FILE, STAMP

with without_extensions():
    from nbgrader import api
    from nbgrader.dbutil import ALEMBIC_DIR
    from nbgrader.utils import parse_utc

if TYPE_CHECKING:
    from autograder.classroom.classes import Class
    from autograder.classroom.history import Change

_alembics_answer = api.get_alembic_version
NO_RESPONSE = "No response."  # nbgrader's words
# Times that every database, time zone and extension can take; what is beyond them counts as them.
EARLIEST, LATEST = (datetime(year, 1, 1, tzinfo=UTC).timestamp() for year in (1900, 9000))

# as `nbgrader submit` and `zip_collect` write it: a zone is a name or a number, and never a path
TIME = re.compile(
    r"\d{4}-\d\d?-\d\d?([ T]\d\d?:[\d:.]{2,13}( ?Z| ?[+-][\d:]{4,6}| [A-Z][\w/+-]*)?)?", re.ASCII
)
OF_THE_GROUP = 0o2770
NO_MARKS: Mapping[str, Marks] = {}  # before there is a gradebook


SOURCE, STUDENT = map(table_of, (api.SourceCell, api.Student))
KINDS = {
    "GradeCell": table_of(api.GradeCell),
    "SolutionCell": table_of(api.SolutionCell),
    "TaskCell": table_of(api.TaskCell),
}
# Ours, and of no interest to nbgrader: by it a gradebook is known again (`keeper`).
SIGN = Table(
    "autograder_sign",
    MetaData(),
    Column("journal", String(64), primary_key=True),
    Column("assignment", String(128), primary_key=True),
    Column("sign", String(64)),
)


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
        taught.share()
        if pages:
            from autograder.classroom import feedback

            feedback.prepare()
        api.get_alembic_version = _newest_version
        self._book = open_book(taught)
        if taught.is_shared:
            _share_gradebook(taught)
        if self._book.engine.dialect.name == "sqlite":
            event.listen(self._book.engine, "connect", _write_ahead)
        self._secrets = Secrets(taught) if pages else None
        self._troubles: list[str] = []
        self._known: dict[tuple[str, str], _Known] = {}  # by names of assignment and notebook
        self._ids: dict[str, str] = {}  # of assignments, by name
        self._former: dict[str, set[str]] = {}  # notebooks that people graded and that are gone

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
        unless a person has graded or commented it: then it is worth nothing, and what the person
        gave counts on top.
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
            former = _forget_notebooks(db, id, [notebook.name for notebook in assignment.notebooks])
        self._former[assignment.name] = set(former)
        self._known |= {(assignment.name, name): known for name, known in former.items()}

    def save(
        self, graded: Graded, assignment: Assignment, before: Graded | None = None
    ) -> dict[str, Marks]:
        """Put one result where everybody looks for it: in the gradebook, then on the pages.

        Returns what the gradebook says of it then, by notebook; nothing if it could not be stored.
        Raises CourseError for what concerns the whole class; no submission makes it raise.

        Args:
            graded: the result.
            assignment: what was to be done.
            before: the result that it takes the place of; what people said of the same answers
                need not be looked at again.
        """
        graded = bounded(graded)
        marks: dict[str, Marks] = {}
        try:
            marks = self._enter_result(graded, assignment, before)
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
                    _mend_exchange(self._taught, who, {SECRET_FILE: secret})
        return marks

    def refresh(
        self, assignments: Mapping[str, Assignment], results: Iterable[Graded]
    ) -> Iterator[tuple[Graded, dict[str, Marks]]]:
        """See that lateness costs what it costs today, and that pages say what the gradebook says.

        Extensions, grades and comments by hand come when the grader is gone. Gives what the
        gradebook says of each result that it holds; everything is done when all have been taken.
        """
        with self._writing() as db:
            held = {name: _by_student(read_marks(db, name)) for name in assignments}
        changed: list[dict[str, Any]] = []
        for graded in results:
            assignment = assignments.get(graded.result.assignment)
            if assignment is None:
                continue
            before = held[assignment.name].get(plain(graded.result.student), {})
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
            if today:
                yield graded, today
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

    def _enter_result(
        self, graded: Graded, assignment: Assignment, before: Graded | None = None
    ) -> dict[str, Marks]:
        """Put one result into the gradebook, all of it or nothing; what it says then."""
        result = graded.result
        same = _unchanged(result, before.result) if before else ()
        found: dict[str, Marks] = {}
        with self._writing() as db:
            submission = self._submission(db, graded)
            extension = (submission.extension or timedelta()).total_seconds()
            former = [(name, NOTHING) for name in self._former[assignment.name]]
            for name, rows in (*_all_rows(result, assignment), *former):
                known = self._known[assignment.name, name]
                marks = _save_notebook(db, submission.id, known, rows, seen=name in same)
                marks = replace(marks, extension=extension)
                found[name] = _as_of_today(marks, graded, assignment)
                lost = found[name].points.lost or None
                _update(db, SUBMITTED, [{"id": marks.id, "late_submission_penalty": lost}])
        return found

    def give_back(self, before: "Change") -> bool:
        """Enter what people had given where the gradebook has nothing; whether there was any."""
        keys = {"assignment_id": self._ids[before.assignment], "student_id": plain(before.student)}
        with self._writing() as db:
            submission = _one(db, SUBMISSION, **keys)
            if submission is None:
                return False
            gaps = [SUBMISSION.c.id == submission, SUBMISSION.c.extension.is_(None)]
            more = {"extension": timedelta(seconds=before.extension)} if before.extension else {}
            entered = _fill(db, SUBMISSION, gaps, more)
            for name, marks in before.notebooks.items():
                if _by_people(marks) or marks.comments:
                    known = self._known_again(db, before.assignment, name)
                    keys = {"assignment_id": submission, "notebook_id": known.id}
                    notebook = _one(db, SUBMITTED, **keys) or _add(db, SUBMITTED, **keys)
                    entered += _give_back(db, notebook, known, marks)
        return entered > 0

    def _known_again(self, db: Connection, assignment: str, name: str) -> _Known:
        """A notebook's rows; made, if the assignment has it no more and a person graded it."""
        if (assignment, name) not in self._known:
            id = _add(db, NOTEBOOK, name=name, assignment_id=self._ids[assignment])
            self._known[assignment, name] = _Known(id)
            self._former[assignment].add(name)
        return self._known[assignment, name]

    def sign(self, journal: str, assignment: str) -> str:
        """What a grader with this journal left here last; empty if nothing."""
        with self._writing() as db:
            if not inspect(db).has_table(SIGN.name):
                return ""
            where = SIGN.c.journal == journal, SIGN.c.assignment == assignment
            return str(db.execute(select(SIGN.c.sign).where(*where)).scalar() or "")

    def leave_sign(self, journal: str, assignment: str, sign: str) -> None:
        """Leave something by which this gradebook is known again."""
        with self._writing() as db:
            SIGN.create(db, checkfirst=True)
            where = SIGN.c.journal == journal, SIGN.c.assignment == assignment
            db.execute(SIGN.delete().where(*where))
            db.execute(SIGN.insert(), {"journal": journal, "assignment": assignment, "sign": sign})

    def held(self, assignment: str) -> dict[tuple[str, str], "Held"]:
        """What the gradebook says of an assignment, by student and notebook."""
        named = SUBMISSION.c.student_id, NOTEBOOK.c.name, SUBMISSION.c.timestamp
        rows = SUBMITTED.join(NOTEBOOK, SUBMITTED.c.notebook_id == NOTEBOOK.c.id)
        rows = rows.join(SUBMISSION, SUBMITTED.c.assignment_id == SUBMISSION.c.id)
        rows = rows.outerjoin(GRADE, GRADE.c.notebook_id == SUBMITTED.c.id)
        rows = rows.outerjoin(BASE, GRADE.c.cell_id == BASE.c.id)
        wanted = SUBMISSION.c.assignment_id == self._ids[assignment]
        query = select(*named, BASE.c.name, GRADE.c.auto_score).select_from(rows).where(wanted)
        found: dict[tuple[str, str], Held] = {}
        with self._writing() as db:
            for student, notebook, when, cell, score in db.execute(query):
                one = found.setdefault((student, notebook), Held(when))
                if score is not None:
                    one.scores[cell] = score
        return found

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

    def _submission(self, db: Connection, graded: Graded) -> Row:
        """The submission's row, made if it is not there, with the time that its timestamp.txt says.

        Formgrader takes a submission for graded if both say the same. Lateness is not reckoned by
        it: its student may have written that file.
        """
        result = graded.result
        student = plain(result.student)
        if _one(db, STUDENT, id=student) is None:
            _add_student(db, student, earlier(result.student))
        keys = {"assignment_id": self._ids[result.assignment], "student_id": student}
        id = _one(db, SUBMISSION, **keys) or _add(db, SUBMISSION, **keys)
        _update(db, SUBMISSION, [{"id": id, "timestamp": time_told(graded.stamp)}])
        return db.execute(select(SUBMISSION).where(SUBMISSION.c.id == id)).one()


@dataclass(frozen=True)
class Held:
    """What the gradebook says of one notebook that was handed in."""

    when: datetime | None
    scores: dict[str, float] = field(default_factory=dict)  # that the grader gave, by cell


def holds(held: Mapping[tuple[str, str], Held], graded: Graded, assignment: Assignment) -> bool:
    """Whether a gradebook says what this result does; it may be an older one that was put back."""
    result = graded.result
    when = time_told(graded.stamp)
    for name, rows in _all_rows(result, assignment):
        found = held.get((plain(result.student), name))
        if not found or not _same_scores(rows.scores, found.scores):
            return False
        if not _same_time(when, found.when):
            return False
    return True


def _same_scores(given: Mapping[str, float | None], found: Mapping[str, float]) -> bool:
    """Cell by cell: two results may come to the same in sum."""
    scores = {cell: score for cell, score in given.items() if score is not None}
    same = scores.keys() == found.keys()
    return same and all(abs(score - found[cell]) <= NEAR for cell, score in scores.items())


def _same_time(one: datetime | None, other: datetime | None) -> bool:
    if one is None or other is None:
        return one is other
    return abs((one - other).total_seconds()) <= 1


def open_book(taught: "Class") -> api.Gradebook:
    """The class's gradebook; CourseError if it cannot be had."""
    with in_words(shown_database(taught)):
        return api.Gradebook(taught.database, taught.course_id)


@contextmanager
def reading(taught: "Class") -> Iterator[api.Gradebook]:
    """The class's gradebook, to look into; what the database refuses is a CourseError."""
    with in_words(shown_database(taught)), open_book(taught) as book:
        yield book


def shown_database(taught: "Class") -> str:
    """Where the gradebook is, without a password."""
    url = make_url(taught.database)
    if url.get_backend_name() == "sqlite" and url.database:
        return url.database
    return url.set(query={}).render_as_string()


def moment(seconds: float) -> datetime | None:
    """A time as the gradebook holds it: UTC, without saying so; None if it is none."""
    if math.isnan(seconds):
        return None
    within = min(max(seconds, EARLIEST), LATEST)
    return datetime.fromtimestamp(within, UTC).replace(tzinfo=None)


def time_told(text: str) -> datetime | None:
    """The time in a timestamp.txt, as nbgrader reads it; None if it is none or beyond all years."""
    if not TIME.fullmatch(text):
        return None
    try:
        when: datetime = parse_utc(text)
    except (ValueError, OverflowError):
        return None
    return when if EARLIEST <= when.replace(tzinfo=UTC).timestamp() <= LATEST else None


def _as_of_today(marks: Marks, graded: Graded, assignment: Assignment) -> Marks:
    """The same, with what lateness costs by the rules and the extension of today."""
    late = assignment.rules.late
    seconds = late.seconds_late(graded.result.student, graded.collected, marks.extension)
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
    folder = taught.autograded / result.student / result.assignment
    for name, text in graded_notebooks(result, assignment):
        write_whole(folder / f"{name}.ipynb", text)
    for path in assignment.released:
        _copy(path, folder / path.relative_to(assignment.folder))
    write_pages(taught, graded, assignment, marks)


def _copy(path: Path, place: Path) -> None:
    """Put a file of the instructor's, as a picture in the text, where the graded notebook lies."""
    if place.is_file() and filecmp.cmp(path, place, shallow=False):
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    partial = place.with_name(f".{place.name}.part")
    shutil.copyfile(path, partial)
    partial.replace(place)


def _for_the_exchange(graded: Graded) -> dict[str, str]:
    """What `nbgrader release_feedback` wants beside each page: when it was handed in, and a secret.

    By the secret a page is published under a name that its student alone knows (`secret.py`).
    """
    when = None if graded.collected is None else moment(graded.collected)
    collected = f"{when} UTC" if when else ""
    return {
        STAMP: graded.stamp if time_told(graded.stamp) else collected,
        SECRET_FILE: graded.secret or made_up(graded.result.key),
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
        own = folder / result.student / result.assignment
        beside = _for_the_exchange(graded)
        if folder == taught.autograded and not time_told(graded.stamp):
            del beside[STAMP]  # as nbgrader has it where none was handed in
            (own / STAMP).unlink(missing_ok=True)
        for name, text in beside.items():
            write_whole(own / name, text)
        if taught.is_shared:
            _share(own)


def _share_gradebook(taught: "Class") -> None:
    """The same for a gradebook that is a file; nbgrader may have made it."""
    path = Path(shown_database(taught))
    if path.is_file():
        with suppress(PermissionError):
            path.chmod(path.stat().st_mode | 0o060)


def _share(folder: Path) -> None:
    """Let the group write into a submission's folder and those above it, as nbgrader does."""
    for each in (folder, *folder.parents[:2]):
        mode = each.stat().st_mode
        if mode & OF_THE_GROUP != OF_THE_GROUP:
            with suppress(PermissionError):  # another of them has made it
                each.chmod((mode | OF_THE_GROUP) & 0o7777)


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
    from autograder.classroom import feedback

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


NOTHING = _Rows({}, {})  # of what the assignment has no more


def _by_student(
    marks: Mapping[tuple[str, str], Marks],
) -> dict[str, dict[str, Marks]]:
    found: dict[str, dict[str, Marks]] = {}
    for (student, notebook), one in marks.items():
        found.setdefault(student, {})[notebook] = one
    return found


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


def _unchanged(result: Result, before: Result) -> set[str]:
    """Notebooks of which a person has the same to grade as before."""
    old = {notebook.name: (notebook.answers, notebook.extra) for notebook in before.notebooks}
    return {n.name for n in result.notebooks if old.get(n.name) == (n.answers, n.extra)}


def _save_notebook(
    db: Connection, submission: str, known: _Known, rows: _Rows, *, seen: bool = False
) -> Marks:
    """Write grades and comments; returns what both say now, lateness left out.

    What a person has graded waits for that person again, unless its answers were `seen`.
    """
    keys = {"assignment_id": submission, "notebook_id": known.id}
    id = _one(db, SUBMITTED, **keys) or _add(db, SUBMITTED, **keys, flagged=False)
    grades = _by_cell(db, GRADE, id, known.graded().values())
    now: list[_Given] = []
    changes: list[dict[str, Any]] = []
    fresh: list[dict[str, Any]] = []
    for name, cell in known.graded().items():
        old, auto = grades.get(cell), rows.scores.get(name)
        if name not in rows.scores and not old:
            continue
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
    needs_manual_grade: bool


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
        elif name in rows.comments:
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
    """Take a cell out of the gradebook, or what it is worth, if a person graded or commented it."""
    for table, columns in (
        (GRADE, (GRADE.c.manual_score, GRADE.c.extra_credit)),
        (COMMENT, (COMMENT.c.manual_comment,)),
    ):
        for column in columns:
            touched = select(table.c.id).where(table.c.cell_id == cell, column.is_not(None))
            if db.execute(touched.limit(1)).first():
                _make_worthless(db, kind, cell)
                return False
    for table in (GRADE, COMMENT):
        db.execute(table.delete().where(table.c.cell_id == cell))
    db.execute(KINDS[kind].delete().where(KINDS[kind].c.id == cell))
    db.execute(BASE.delete().where(BASE.c.id == cell))
    return True


def _make_worthless(db: Connection, kind: str, cell: str) -> None:
    """Nobody can earn this cell's points any more, and nothing in it waits for anybody."""
    if kind != "SolutionCell":
        _update(db, KINDS[kind], [{"id": cell, "max_score": 0.0}])
        nothing = {"auto_score": None, "needs_manual_grade": False}
        db.execute(GRADE.update().where(GRADE.c.cell_id == cell).values(**nothing))


def _forget_notebooks(db: Connection, assignment: str, kept: Iterable[str]) -> dict[str, _Known]:
    """Take out notebooks that the assignment no longer has; those with a person's work stay."""
    former: dict[str, _Known] = {}
    others = NOTEBOOK.c.assignment_id == assignment, NOTEBOOK.c.name.not_in(list(kept))
    for id, name in db.execute(select(NOTEBOOK.c.id, NOTEBOOK.c.name).where(*others)).all():
        cells = _cells_of(db, id)
        left = {key: cell for key, cell in cells.items() if not _forget_cell(db, key[0], cell)}
        if left:
            former[name] = _Known(id, left)
        else:
            for table in (SOURCE, SUBMITTED):
                db.execute(table.delete().where(table.c.notebook_id == id))
            db.execute(NOTEBOOK.delete().where(NOTEBOOK.c.id == id))
    return former


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


def _give_back(db: Connection, notebook: str, known: _Known, marks: Marks) -> int:
    """Enter grades and comments by hand where there are none; how many."""
    entered = 0
    for name, given in _by_people(marks).items():
        where = _row(db, GRADE, notebook, _cell_again(db, known, "GradeCell", name))
        if given.manual is not None:
            values = {"manual_score": given.manual, "needs_manual_grade": False}
            entered += _fill(db, GRADE, [*where, GRADE.c.manual_score.is_(None)], values)
        if given.stale:  # whatever word on it the gradebook has
            values = {"needs_manual_grade": True}
            _fill(db, GRADE, [*where, GRADE.c.manual_score.is_not(None)], values)
        if given.extra is not None:
            values = {"extra_credit": given.extra}
            entered += _fill(db, GRADE, [*where, GRADE.c.extra_credit.is_(None)], values)
    for name, text in marks.comments.items():
        where = _row(db, COMMENT, notebook, _cell_again(db, known, "SolutionCell", name))
        where.append(COMMENT.c.manual_comment.is_(None))
        entered += _fill(db, COMMENT, where, {"manual_comment": text})
    return entered


def _by_people(marks: Marks) -> dict[str, Given]:
    return {name: given for name, given in marks.cells.items() if given.is_by_hand}


def _cell_again(db: Connection, known: _Known, kind: str, name: str) -> str:
    """A cell's id; made, worth nothing, if the assignment has it no more."""
    found = known.commented() if kind == "SolutionCell" else known.graded()
    if name not in found:
        values = {} if kind == "SolutionCell" else {"max_score": 0.0, "cell_type": "code"}
        found[name] = _add(db, BASE, name=name, notebook_id=known.id, type=kind)
        _insert(db, KINDS[kind], [{"id": found[name], **values}])
        known.cells[kind, name] = found[name]
    return found[name]


def _row(db: Connection, table: Table, notebook: str, cell: str) -> list[Any]:
    """By which a cell's row of a submission is found; made, if there is none."""
    keys = {"notebook_id": notebook, "cell_id": cell}
    if _one(db, table, **keys) is None:
        _add(db, table, **keys, **({"needs_manual_grade": False} if table is GRADE else {}))
    return [table.c[name] == value for name, value in keys.items()]


def _fill(db: Connection, table: Table, where: list[Any], values: dict[str, Any]) -> int:
    """Change the row that is so, if there is one; how many there were."""
    return db.execute(table.update().where(*where).values(**values)).rowcount if values else 0


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

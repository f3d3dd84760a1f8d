"""The one writer: puts results into nbgrader's gradebook and writes the files that belong to them.

Rows are what nbgrader's own SaveAutoGrades would write, in one transaction for each submission.
What a person entered (manual scores, comments, extra credit) is never touched. Files are renamed
into place, so that none is ever seen half written. Saving a result twice changes nothing. What
concerns the whole class (a full disk, a gradebook that is locked or gone) is a CourseError; what
concerns one submission ends with that submission, and is told in `troubles`.
"""

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, event, inspect, select
from sqlalchemy.engine import Row

from autograder.classroom.asked import questions, replies
from autograder.classroom.counted import NEAR, Marks, Points
from autograder.classroom.gradebook import (
    moment,
    open_book,
    share_gradebook,
    shown_database,
    time_told,
    write_ahead,
)
from autograder.classroom.gradebook_cells import KnownCells, enter_notebook, forget_notebooks
from autograder.classroom.gradebook_marks import (
    NO_ROWS,
    add_student,
    all_rows,
    by_people,
    by_student,
    give_back,
    save_notebook,
    unchanged,
)
from autograder.classroom.gradebook_rows import (
    SIGN,
    STUDENT,
    WHOSE,
    add_row,
    fill_row,
    id_of,
    update_rows,
)
from autograder.classroom.journal import read_changes
from autograder.classroom.journal_lines import Graded, Who, bounded
from autograder.classroom.marks import (
    ASSIGNMENT,
    BASE,
    GRADE,
    NOTEBOOK,
    SUBMISSION,
    SUBMITTED,
    read_marks,
    seconds_late,
)
from autograder.classroom.result_files import mend_exchange, write_files, write_pages
from autograder.classroom.secret import Secrets
from autograder.classroom.shown import History, shown
from autograder.classroom.whose import Owner
from autograder.common.course import CourseError
from autograder.common.failures import WHOLE_CLASS, in_words, sentence_of
from autograder.common.names import earlier, plain, readable
from autograder.judge.assignment import Assignment
from autograder.judge.parcel import SECRET_FILE
from autograder.judge.showing import Shown

if TYPE_CHECKING:
    from autograder.classroom.changes import Change
    from autograder.classroom.classes import Class


class Store:
    """A class's gradebook and files, open for writing; use as a context manager."""

    def __init__(self, taught: "Class", pages: bool = True, history: History | None = None):
        """Open the gradebook, or make it.

        Args:
            taught: the class.
            pages: whether to write the graded notebooks and feedback pages too.
            history: how a submission's grades came to be; by default as the journal lies there.
        """
        self._taught = taught
        self._history = history or self._lying_there
        taught.share()
        if pages:
            from autograder.classroom import feedback

            feedback.prepare()
        self._book = open_book(taught)
        if taught.is_shared:
            share_gradebook(taught)
        if self._book.engine.dialect.name == "sqlite":
            event.listen(self._book.engine, "connect", write_ahead)
        self._secrets = Secrets(taught) if pages else None
        self._read: Mapping[Who, Sequence[Mapping[str, Any]]] | None = None  # of the journal
        self._troubles: list[str] = []
        self._known: dict[tuple[str, str], KnownCells] = {}  # by names of assignment and notebook
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
            id = id_of(db, ASSIGNMENT, name=assignment.name)
            if id is None:
                id = add_row(db, ASSIGNMENT, name=assignment.name, course_id=self._book.course_id)
            if due := assignment.rules.late.due:
                update_rows(db, ASSIGNMENT, [{"id": id, "duedate": moment(due.timestamp())}])
            self._ids[assignment.name] = id
            for notebook in assignment.notebooks:
                known = enter_notebook(db, id, notebook)
                self._known[assignment.name, notebook.name] = known
            former = forget_notebooks(db, id, [notebook.name for notebook in assignment.notebooks])
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
                shows = self._shown(graded, assignment, marks)
                write_files(self._taught, own, assignment, marks, shows, self._replies(graded))
                for who, secret in others.items():
                    mend_exchange(self._taught, who, {SECRET_FILE: secret})
        return marks

    def refresh(
        self, assignments: Mapping[str, Assignment], results: Iterable[Graded]
    ) -> Iterator[tuple[Graded, dict[str, Marks]]]:
        """See that lateness costs what it costs today, and that pages say what the gradebook says.

        Extensions, grades and comments by hand come when the grader is gone. Gives what the
        gradebook says of each result that it holds; everything is done when all have been taken.
        """
        with self._writing() as db:
            held = {name: by_student(read_marks(db, name)) for name in assignments}
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
                    shows = self._shown(graded, assignment, today)
                    said = self._replies(graded)
                    write_pages(
                        self._taught, own, assignment, today, shows, said, changed_only=True
                    )
            if today:
                yield graded, today
        with self._writing() as db:
            update_rows(db, SUBMITTED, changed)

    def _shown(self, graded: Graded, assignment: Assignment, marks: Mapping[str, Marks]) -> Shown:
        return shown(graded, assignment, marks.values(), self._history)

    def _replies(self, graded: Graded) -> dict[str, str]:
        """What was answered to a student's questions."""
        result = graded.result
        asked = questions(result)
        if not asked:
            return {}
        return replies(self._history(result.student, result.assignment), asked)

    def _lying_there(self, student: str, assignment: str) -> Sequence[Mapping[str, Any]]:
        if self._read is None:
            self._read = read_changes(self._taught)
        return self._read.get((student, assignment), ())

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
        same = unchanged(graded, before) if before else ()
        found: dict[str, Marks] = {}
        with self._writing() as db:
            submission = self._submission(db, graded)
            extension = (submission.extension or timedelta()).total_seconds()
            former = [(name, NO_ROWS) for name in self._former[assignment.name]]
            for name, rows in (*all_rows(result, assignment), *former):
                known = self._known[assignment.name, name]
                marks = save_notebook(db, submission.id, known, rows, seen=name in same)
                marks = replace(marks, extension=extension)
                found[name] = _as_of_today(marks, graded, assignment)
                lost = found[name].points.lost or None
                update_rows(db, SUBMITTED, [{"id": marks.id, "late_submission_penalty": lost}])
        return found

    def give_back(self, before: "Change") -> bool:
        """Enter what people had given where the gradebook has nothing; whether there was any."""
        keys = {"assignment_id": self._ids[before.assignment], "student_id": plain(before.student)}
        with self._writing() as db:
            submission = id_of(db, SUBMISSION, **keys)
            if submission is None:
                return False
            gaps = [SUBMISSION.c.id == submission, SUBMISSION.c.extension.is_(None)]
            more = {"extension": timedelta(seconds=before.extension)} if before.extension else {}
            entered = fill_row(db, SUBMISSION, gaps, more)
            for name, marks in before.notebooks.items():
                if by_people(marks) or marks.comments:
                    known = self._known_again(db, before.assignment, name)
                    keys = {"assignment_id": submission, "notebook_id": known.id}
                    notebook = id_of(db, SUBMITTED, **keys) or add_row(db, SUBMITTED, **keys)
                    entered += give_back(db, notebook, known, marks)
        return entered > 0

    def _known_again(self, db: Connection, assignment: str, name: str) -> KnownCells:
        """A notebook's rows; made, if the assignment has it no more and a person graded it."""
        if (assignment, name) not in self._known:
            id = add_row(db, NOTEBOOK, name=name, assignment_id=self._ids[assignment])
            self._known[assignment, name] = KnownCells(id)
            self._former[assignment].add(name)
        return self._known[assignment, name]

    def sign(self, journal: str, assignment: str) -> str:
        """What a grader with this journal left here last; empty if nothing."""
        with self._writing() as db:
            if not inspect(db).has_table(SIGN.name):
                return ""
            where = SIGN.c.journal == journal, SIGN.c.assignment == assignment
            return str(db.execute(select(SIGN.c.sign).where(*where)).scalar() or "")

    def owner(self, assignment: str) -> Owner | None:
        """Whose grades of an assignment of this name the gradebook holds; None if nobody's."""
        with self._writing() as db:
            if not inspect(db).has_table(WHOSE.name):
                return None
            row = db.execute(select(WHOSE).where(WHOSE.c.assignment == assignment)).first()
            told = (row.journal, row.course_id, row.root) if row else ()
            is_one = all(isinstance(one, str) for one in told) and all(told[::2])
            return Owner(*told) if told and is_one else None  # else it is another program's row

    def own(self, assignment: str, owner: Owner) -> None:
        """Note whose they are."""
        with self._writing() as db:
            WHOSE.create(db, checkfirst=True)
            db.execute(WHOSE.delete().where(WHOSE.c.assignment == assignment))
            db.execute(WHOSE.insert(), {"assignment": assignment, **asdict(owner)})

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
        if id_of(db, STUDENT, id=student) is None:
            add_student(db, student, earlier(result.student))
        keys = {"assignment_id": self._ids[result.assignment], "student_id": student}
        id = id_of(db, SUBMISSION, **keys) or add_row(db, SUBMISSION, **keys)
        update_rows(db, SUBMISSION, [{"id": id, "timestamp": time_told(graded.stamp)}])
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
    for name, rows in all_rows(result, assignment):
        found = held.get((plain(result.student), name))
        if not found or not _same_scores(rows.scores, found.scores):
            return False
        if not _same_time(when, found.when):
            return False
    return True


def _same_scores(given: Mapping[str, float | None], found: Mapping[str, float]) -> bool:
    """Cell by cell: two results may come to the same in sum. A cell that is gone holds 0."""
    scores = {cell: score for cell, score in given.items() if score is not None}
    there = {cell: score for cell, score in found.items() if score or cell in given}
    same = scores.keys() == there.keys()
    return same and all(abs(score - there[cell]) <= NEAR for cell, score in scores.items())


def _same_time(one: datetime | None, other: datetime | None) -> bool:
    if one is None or other is None:
        return one is other
    return abs((one - other).total_seconds()) <= 1


def _as_of_today(marks: Marks, graded: Graded, assignment: Assignment) -> Marks:
    """The same, with what lateness costs by the rules and the extension of today."""
    late = assignment.rules.late
    seconds = seconds_late(graded, assignment, marks.extension)
    given = marks.points.given
    lost = min(late.penalty(given, seconds), given) if given > 0 else 0.0
    return replace(marks, points=Points(given, lost, seconds))

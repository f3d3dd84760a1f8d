"""Grade a class: every submission ends in a grade with a reason, and none can stop the others.

Submissions are graded side by side by warm processes (`autograder.judge`); this process alone
writes: first the journal, then files and gradebook. What was graded already is not graded again, so
a run that was interrupted, however, is simply started again.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Protocol

from tqdm import tqdm

from autograder.authoring.building import build_changed
from autograder.classroom.asked import with_its_time
from autograder.classroom.classes import Class
from autograder.classroom.journal import Journal
from autograder.classroom.journal_lines import Graded
from autograder.classroom.keeper import Keeper, few, not_written
from autograder.classroom.shards import WHOLE, Shard
from autograder.classroom.warm import MANY, Begun, Task, Warm
from autograder.common.course import CourseError
from autograder.common.names import alike, composed, shown
from autograder.common.results import Flag, Result
from autograder.judge import fingerprint
from autograder.judge.lateness import NO_TIME
from autograder.judge.parcel import NOTEBOOK, Parcel, beside, collect, folders_of
from autograder.judge.received import Refused, received, sent

if TYPE_CHECKING:
    from autograder.classroom.store import Store
    from autograder.common.course import Course
    from autograder.isolation.outcomes import Lost
    from autograder.judge.assignment import Assignment


IN_DOUBT = (
    "in doubt: its process was ended, by its own work or by the machine (is memory short?), and "
    "what was lost counts 0"
)
ODD_TIME = (
    "timestamp.txt says no time as nbgrader writes it: as long as it lies there, formgrader calls "
    "the submission not graded or cannot list the assignment; delete it"
)
GONE = "its folder has gone during the run; grade again when it is back"
DIGITS = 32  # of a digest in the history; of fewer, somebody could make two works of one
SETTLE_SECONDS = 1.0  # what a power cut may cost: it is graded or stored once more


@dataclass
class Summary:
    """What a run of the grader did."""

    graded: int = 0
    kept: int = 0  # graded earlier, and nothing has changed since
    zero: int = 0  # of those graded: 0 as a whole, with a reason
    finished: int = 0  # graded by an interrupted run, stored by this one
    put_back: tuple[str, ...] = ()  # what the gradebook had lost, in sentences
    retried: int = 0  # of those graded: unchanged, but in doubt since the last run
    in_doubt: tuple[str, ...] = ()  # of those graded: the machine may have ended them
    untimed: tuple[str, ...] = ()  # of which assignments nobody knows who is late
    strays: tuple[str, ...] = ()  # what was handed in and belongs to no assignment
    gone: tuple[str, ...] = ()  # what was taken away before its turn came
    troubles: tuple[str, ...] = ()  # what could not be written of single submissions

    def words(self) -> str:
        """One line for the terminal."""
        parts = [f"{self.graded} graded"]
        parts += [f"{self.kept} unchanged"] if self.kept else []
        parts += [f"{self.finished} finished from an interrupted run"] if self.finished else []
        parts += [f"{self.zero} of them 0 as a whole, with the reason"] if self.zero else []
        if self.retried:
            parts.append(f"{self.retried} of them once more, as they were in doubt")
        lines = [", ".join(parts)]
        lines += self.put_back
        lines += few("not graded", (*self.strays, *self.gone))
        lines += few("lateness not known", self.untimed)
        lines += not_written(self.troubles)
        lines += few(IN_DOUBT, self.in_doubt)
        if self.in_doubt:
            lines.append(
                f"Run the command again: it grades what is in doubt ({len(self.in_doubt)}) once "
                "more. If it stays so, try --jobs 1, and read the reasons in the report."
            )
        return "\n".join(lines)


def grade(
    taught: Class,
    chapters: Sequence[str],
    students: Sequence[str] = (),
    jobs: int = 0,
    *,
    sandboxed: bool = True,
    again: bool = False,
    progress: bool = True,
    shard: Shard = WHOLE,
    elsewhere: "Callable[[Course, Mapping[str, Assignment]], Hands] | None" = None,
) -> Summary:
    """Grade what is new or changed.

    Args:
        taught: the class.
        chapters: names of the assignments to grade.
        students: only these; by default everybody.
        jobs: submissions side by side; by default as many as there are cores.
        sandboxed: False runs what students wrote with the rights of the person who grades.
        again: grade what has not changed too.
        progress: whether to show a bar.
        shard: grade only this part of the class.
        elsewhere: makes what grades, if that is not this machine.
    """
    build_changed(taught.course, chapters)
    everybody = taught.students()
    near = alike(everybody)
    students = [who if who in everybody else near.get(composed(who), who) for who in students]
    for student in set(students) - set(everybody):
        raise CourseError(f"There is no student {student!r} in {taught.submitted}.")
    who = [student for student in everybody if not students or student in students]
    who = [student for student in who if shard.holds(student)]
    left_out = taught.excluded(who)
    who = [student for student in who if student not in left_out]
    places = [
        (student, chapter)
        for student in who
        for chapter in chapters
        if taught.place(student, chapter) is not None
    ]
    strays = [stray.words for stray in taught.strays(who)]
    if left_out:
        named = ", ".join(map(shown, left_out))
        strays.append(f"{named}, as c.CourseDirectory.student_id_exclude says")
    summary = Summary(strays=tuple(strays))
    assignments = {chapter: taught.read(chapter) for chapter in chapters}
    many = len(places) >= MANY
    hands = elsewhere or partial(Warm, jobs=jobs, sandboxed=sandboxed, many=many)
    handed_in = {chapter for _, chapter in places}  # what nobody needs is not made ready
    used = {chapter: one for chapter, one in assignments.items() if chapter in handed_in}
    with (
        hands(taught.course, used) as warm,
        Grader(taught, assignments, warm) as grader,
        tqdm(total=len(places), desc="grading", unit="notebook", disable=not progress) as bar,
    ):
        todo = grader.todo(places, again, kept=partial(_count_kept, summary, bar))
        for result in grader.grade(todo):
            summary.graded += 1
            summary.zero += bool(result.reason)
            bar.update()
        summary.untimed = tuple(
            f"{chapter}: {words}"
            for chapter, students in grader.untimed.items()
            if (words := assignments[chapter].rules.late.untimed(students))
        )
        summary.finished = grader.finished
        summary.put_back = tuple(grader.put_back)
        summary.retried = grader.retried
        summary.in_doubt = tuple(grader.in_doubt)
        summary.troubles = tuple(grader.troubles)
        summary.gone = tuple(grader.gone)
    return summary


def _count_kept(summary: Summary, bar: tqdm) -> None:
    summary.kept += 1
    bar.update()


class Hands(Protocol):
    """What grades: the warm processes of this machine, or of others; a context manager."""

    def __enter__(self) -> "Hands": ...

    def __exit__(self, *_: object) -> None: ...

    def start(self) -> None:
        """Begin to make ready."""

    def run(self, tasks: Iterator[Task]) -> "Iterator[tuple[Task, bytes | Lost]]":
        """Grade; what came of each, in any order."""
        ...


class Grader:
    """A class's journal and gradebook, to grade into; use as a context manager."""

    def __init__(self, taught: Class, assignments: Mapping[str, "Assignment"], warm: "Hands"):
        """Take the journal's lock; the gradebook is opened when it is needed."""
        self._taught = taught
        self._assignments = assignments
        self._warm = warm
        self._open = ExitStack()
        self._journal = self._open.enter_context(Journal(taught))
        self._store: Store | None = None
        self._saved: list[Result] = []  # in the gradebook, but perhaps not yet safe on the disk
        self._settled = time.monotonic()
        self._kept: list[tuple[str, str]] = []  # student and assignment of what is unchanged
        self.finished = 0  # results that an interrupted run had left, stored by this one
        self.untimed: dict[str, list[str]] = {name: [] for name in assignments}
        self.keeper: Keeper | None = None
        self.retried = 0  # unchanged ones that were in doubt
        self.in_doubt: list[str] = []  # graded, but the machine may have ended them
        self.gone: list[str] = []  # not graded, as nothing lies there any more, in sentences

    def __enter__(self) -> "Grader":
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._settle()
        finally:
            self._open.close()

    @property
    def troubles(self) -> list[str]:
        """What could not be written of single submissions."""
        return self._store.troubles if self._store is not None else []

    @property
    def put_back(self) -> list[str]:
        """What the gradebook had lost and has again, in sentences."""
        return self.keeper.words() if self.keeper is not None else []

    def open(self) -> Keeper:
        """Open the gradebook, enter the assignments, store what was left over."""
        if self._store is None:
            from autograder.classroom.store import Store

            store = Store(self._taught, history=self._journal.changes)
            self._store = self._open.enter_context(store)
            self.keeper = Keeper(self._taught, self._journal, self._store, self._assignments)
            self.keeper.enter(self._assignments)
            self.keeper.put_back()
            self.finished = self._finish(self.keeper)
            self.keeper.sign()
        assert self.keeper is not None
        return self.keeper

    def todo(
        self,
        places: Iterable[tuple[str, str]],
        again: bool = False,
        kept: Callable[[], None] = lambda: None,
    ) -> Iterator[Task]:
        """The submissions among these that are new, changed or in doubt, one after another.

        Args:
            places: student and chapter of each.
            again: all of them, changed or not.
            kept: is called for each that is left out.
        """
        for student, chapter in places:
            parcel = self._collect(student, chapter)
            if parcel is None:
                self.gone.append(f"{shown(student)}/{chapter}: {GONE}")
                continue
            if self._is_untimed(student, chapter, parcel):
                self.untimed[chapter].append(student)
            key = self._key(student, chapter, parcel)
            in_doubt = self._journal.is_in_doubt(student, chapter)
            if again or in_doubt or key != self._journal.key(student, chapter):
                self.retried += in_doubt
                yield Task(student, chapter, parcel, key)
            else:
                self._kept.append((student, chapter))
                kept()

    def grade(self, tasks: Iterator[Task]) -> Iterator[Result]:
        """Grade and store; results come as they are done, in any order."""
        first = next(tasks, None)
        if first is not None:
            self._warm.start()  # it makes ready while the gradebook is opened
        keeper = self.open()
        for task, outcome in self._warm.run(tasks if first is None else Begun(first, tasks)):
            known = bool(self._journal.key(task.student, task.chapter))
            before = self._journal.last(task.student, task.chapter) if known else None
            graded = with_its_time(self._graded(task, outcome), before)
            self._journal.graded(graded)
            if graded.in_doubt:
                self.in_doubt.append(f"{shown(task.student)}/{task.chapter}")
            self._keep(keeper, graded, before)
            if time.monotonic() > self._settled + SETTLE_SECONDS:
                self._settle()
            yield graded.result
        keeper.restore(self._kept)
        self._kept.clear()
        self.end()

    def adopt(self, graded: Graded) -> str:
        """Store what was graded elsewhere, if it is what this grader would have graded.

        Returns why it was not, in words; empty if it was. The key that both reckon for themselves
        tells: it holds the work, the tests, the grader and the versions of all libraries.
        """
        student, chapter = graded.result.student, graded.result.assignment
        if chapter not in self._assignments:
            return "no such assignment is graded here"
        parcel = self._collect(student, chapter)
        if parcel is None:
            return "nothing like it was handed in here"
        if graded.in_doubt:
            return "it is in doubt there; grade it once more"
        if self._key(student, chapter, parcel) != graded.result.key:
            return self._why_another(graded, parcel)
        try:
            graded = self._checked(graded)
        except Refused as error:
            return str(error)
        keeper = self.open()
        before = None
        if known := self._journal.key(student, chapter):
            before = self._journal.last(student, chapter)
            if known == graded.result.key and not before.in_doubt:
                same = _points_of(before.result) == _points_of(graded.result)
                return "" if same else "it was graded here too, with other points, which stay"
        late = self._assignments[chapter].rules.late
        own = replace(  # by what lies here, whatever the other machine says
            graded,
            collected=parcel.collected,
            secret=parcel.secret,
            made_of=self._made_of(parcel, chapter),
            handed_in=late.handed_in(student, parcel.collected),
            only_asked=False,
        )
        graded = with_its_time(own, before)
        self._journal.graded(graded)
        self._keep(keeper, graded, before)
        return ""

    def _checked(self, graded: Graded) -> Graded:
        """A result as this machine's own would be taken; raises Refused if it is none."""
        told = graded.result
        if not told.notebooks:
            raise Refused("nothing of it could be graded there")
        found = received(sent(told), told.student, told.key, self._assignments[told.assignment])
        if _points_of(found) != _points_of(told):
            raise Refused("it has not the tests and points of here")
        return replace(graded, result=found)

    def _why_another(self, graded: Graded, parcel: Parcel) -> str:
        """In what it differs from what would be graded here."""
        here = self._made_of(parcel, graded.result.assignment)
        if graded.made_of.get("work") != here["work"]:
            return "another work was graded there"
        if graded.made_of.get("tests") != here["tests"]:
            return "other tests or rules graded it there"
        return "another grader, Python or library graded it there"

    def end(self) -> None:
        """Leave the sign of this run; what was stored is safe then."""
        self.open().sign()
        self._settle()

    def _made_of(self, parcel: Parcel, chapter: str) -> dict[str, str]:
        """Digests of what a grade is made of."""
        assignment = self._assignments[chapter]
        folders = folders_of(name for name in parcel.files if NOTEBOOK.search(name))
        digests = {
            "work": parcel.key(""),
            "tests": assignment.digest,
            "files": parcel.digest_of(
                lambda name: any(map(assignment.allowed_files, beside(name, folders)))
            ),
        }
        return {what: digest[:DIGITS] for what, digest in digests.items()}

    def _collect(self, student: str, chapter: str) -> Parcel | None:
        """What lies there now; None if it was taken away since the class was looked through."""
        place = self._taught.place(student, chapter)
        if place is None:
            return None
        parcel = collect(place, self._assignments[chapter])
        return parcel if not parcel.reason or os.path.lexists(place.folder) else None

    def _is_untimed(self, student: str, chapter: str, parcel: Parcel) -> bool:
        """Whether nobody knows when it was handed in."""
        late = self._assignments[chapter].rules.late
        return late.handed_in(student, parcel.collected) is None

    def _key(self, student: str, chapter: str, parcel: Parcel) -> str:
        """Changes when anything does that a grade depends on."""
        assignment = self._assignments[chapter]
        key = parcel.key(assignment.digest)
        course = self._taught.course
        return fingerprint.of_submission(course, assignment, student, key, parcel.collected)

    def _graded(self, task: Task, outcome: "bytes | Lost") -> Graded:
        """What came of one submission; also if its worker was lost."""
        from autograder.classroom.gradebook import time_told

        try:
            if not isinstance(outcome, bytes):
                raise Refused(outcome.reason)
            assignment = self._assignments[task.chapter]
            result = received(outcome, task.student, task.key, assignment)
        except Refused as error:
            flags = (Flag("died", task.chapter, str(error)),)
            reason = f"it could not be graded: {error}"
            result = Result(task.student, task.chapter, task.key, flags=flags, reason=reason)
        late = self._assignments[task.chapter].rules.late
        untimed = self._is_untimed(task.student, task.chapter, task.parcel)
        if untimed and late.trust_timestamp and late.policy != "none":
            flag = Flag("late", task.chapter, f"{NO_TIME}: it counts as in time")
            result = replace(result, flags=(*result.flags, flag))
        stamp = task.parcel.stamp
        if stamp is not None and time_told(stamp) is None:
            stamp = None
            result = replace(result, flags=(*result.flags, Flag("file", task.chapter, ODD_TIME)))
        parcel, in_doubt = task.parcel, _in_doubt(outcome)
        made_of = self._made_of(parcel, task.chapter)
        graded = Graded(result, parcel.collected, parcel.secret, in_doubt, stamp or "", made_of)
        return replace(graded, handed_in=late.handed_in(task.student, parcel.collected))

    def _keep(self, keeper: Keeper, graded: Graded, before: Graded | None = None) -> None:
        keeper.save(graded, before, fresh=True)
        self._saved.append(graded.result)

    def _settle(self) -> None:
        """See that what was saved is safe on the disk, and note that it is."""
        if self._store is not None and self._saved:
            self._journal.settle()
            self._store.settle()
            for result in self._saved:
                self._journal.stored(result)
            self._saved.clear()
        self._settled = time.monotonic()

    def _finish(self, keeper: Keeper) -> int:
        """Store what an interrupted run had graded; returns how many."""
        count = 0
        for graded in self._journal.unstored():
            if graded.result.assignment in self._assignments:
                result = graded.result
                before = self._journal.stored_before(result.student, result.assignment)
                self._keep(keeper, graded, before)
                count += 1
        self._settle()
        return count


def _points_of(result: Result) -> list[tuple[str, str, float]]:
    """What each test gave."""
    return [(one.name, v.test, v.score) for one in result.notebooks for v in one.verdicts]


def _in_doubt(outcome: "bytes | Lost") -> bool:
    """Whether another run may give something else."""
    from autograder.isolation.outcomes import Doubtful

    return isinstance(outcome, Doubtful) or not (isinstance(outcome, bytes) or outcome.its_own)

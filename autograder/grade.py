"""Grade a class: every submission ends in a grade with a reason, and none can stop the others.

Submissions are graded side by side by warm processes (autograder.engine); this process alone
writes: first the journal, then files and gradebook. What was graded already is not graded again, so
a run that was interrupted, however, is simply started again.
"""

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from tqdm import tqdm

from autograder.course import CourseError
from autograder.journal import Graded, Journal, decode, read_journal
from autograder.results import Flag, Result
from autograder.taught import Class, read
from autograder.warm import Warm, grader_version

if TYPE_CHECKING:
    from autograder.assignment import Assignment

__all__ = ["Class", "Grader", "Summary", "grade", "read", "read_journal"]


@dataclass
class Summary:
    """What a run of the grader did."""

    graded: int = 0
    kept: int = 0  # graded earlier, and nothing has changed since
    zero: int = 0  # of those graded: 0 as a whole, with a reason
    finished: int = 0  # graded by an interrupted run, stored by this one

    def words(self) -> str:
        """One line for the terminal."""
        parts = [f"{self.graded} graded"]
        parts += [f"{self.kept} unchanged"] if self.kept else []
        parts += [f"{self.finished} finished from an interrupted run"] if self.finished else []
        parts += [f"{self.zero} of them 0 as a whole, with the reason"] if self.zero else []
        return ", ".join(parts)


class Task(NamedTuple):
    """One submission to grade; crosses to the warm process as a list."""

    student: str
    chapter: str
    folder: str
    key: str  # changes when anything does that the grade depends on
    collected: float | None  # when, by the collector's clock


def grade(
    taught: Class,
    chapters: Sequence[str],
    students: Sequence[str] = (),
    jobs: int = 0,
    *,
    sandboxed: bool = True,
    again: bool = False,
    progress: bool = True,
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
    """
    everybody = taught.students()
    for student in set(students) - set(everybody):
        raise CourseError(f"There is no student {student!r} in {taught.submitted}.")
    who = [student for student in everybody if not students or student in students]
    places = [
        (student, chapter)
        for student in who
        for chapter in chapters
        if os.path.lexists(taught.submission(student, chapter))
    ]
    summary = Summary()
    assignments = {chapter: read(taught.course, chapter) for chapter in chapters}
    with (
        Warm(taught.course, assignments, jobs, sandboxed=sandboxed) as warm,
        Grader(taught, assignments, warm) as grader,
        tqdm(total=len(places), desc="grading", unit="notebook", disable=not progress) as bar,
    ):
        summary.finished = grader.finished
        todo = grader.todo(places, again, kept=partial(_count_kept, summary, bar))
        for result in grader.grade(todo):
            summary.graded += 1
            summary.zero += bool(result.reason)
            bar.update()
    return summary


def _count_kept(summary: Summary, bar: tqdm) -> None:
    summary.kept += 1
    bar.update()


class Grader:
    """A class's journal and gradebook, open to grade into; use as a context manager."""

    def __init__(self, taught: Class, assignments: Mapping[str, "Assignment"], warm: Warm):
        """Take the journal's lock, enter the assignments, store what was left over."""
        from autograder.store import Store

        self._taught = taught
        self._assignments = assignments
        self._warm = warm
        with ExitStack() as opened:
            self._journal = opened.enter_context(Journal(taught))
            self._store = opened.enter_context(Store(taught))
            for assignment in assignments.values():
                self._store.enter(assignment)
            self.finished = self._finish()
            self._open = opened.pop_all()

    def __enter__(self) -> "Grader":
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def todo(
        self,
        places: Iterable[tuple[str, str]],
        again: bool = False,
        kept: Callable[[], None] = lambda: None,
    ) -> Iterator[Task]:
        """The submissions among these that are new or changed, one after another.

        Args:
            places: student and chapter of each.
            again: all of them, changed or not.
            kept: is called for each that is left out.
        """
        for student, chapter in places:
            task = self._task(student, chapter)
            if again or self._journal.key(student, chapter) != task.key:
                yield task
            else:
                kept()

    def grade(self, tasks: Iterator[Task]) -> Iterator[Result]:
        """Grade and store; results come as they are done, in any order."""
        for task, outcome in self._warm.run(tasks):
            graded = Graded(_result(task, outcome), task.collected)
            self._journal.graded(graded)
            self._keep(graded)
            yield graded.result

    def _task(self, student: str, chapter: str) -> Task:
        from autograder.intake import read_submission

        folder = self._taught.submission(student, chapter)
        assignment = self._assignments[chapter]
        found = read_submission(folder, student, assignment)
        parts = [student, chapter, found.key, grader_version()]
        if assignment.rules.late.due:
            parts.append(str(found.collected))
        key = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()
        return Task(student, chapter, str(folder), key, found.collected)

    def _keep(self, graded: Graded) -> None:
        self._store.save(graded, self._assignments[graded.result.assignment])
        self._journal.stored(graded.result)

    def _finish(self) -> int:
        """Store what an interrupted run had graded; returns how many."""
        count = 0
        for graded in self._journal.unstored():
            if graded.result.assignment in self._assignments:
                self._keep(graded)
                count += 1
        return count


def _result(task: Task, outcome: Any) -> Result:
    """What came of one submission; also if its worker was lost."""
    if isinstance(outcome, bytes):
        return replace(decode(outcome), key=task.key)
    return Result(
        task.student,
        task.chapter,
        task.key,
        flags=(Flag("died", task.chapter, outcome.reason),),
        reason=f"it could not be graded: {outcome.reason}",
    )

"""Grade many submissions side by side, each in a fork of a process that has everything imported.

What these processes are, `autograder.authoring.processes` says; here is the pool of them.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from autograder.authoring.processes import (
    State,
    cores,
    fingerprints,
    fork_server_order,
    require_sandbox,
    start_bare,
    start_warm,
    warm_order,
)
from autograder.authoring.trials import try_known_mistakes
from autograder.common.course import Course, private_folders
from autograder.common.names import say
from autograder.judge.parcel import Parcel
from autograder.judge.received import sent

if TYPE_CHECKING:
    from autograder.isolation.parts import Parts
    from autograder.judge.assignment import Assignment


SECONDS = 600  # for one submission; what was found by then counts
GRACE = 120  # more, after which a worker that does not keep to it is ended
MANY = 40  # submissions, from which on what is made ready for many is taken to pay
MEMORY = 6_000_000_000  # bytes of address space that one worker may take on top


class Task(NamedTuple):
    """One submission to grade."""

    student: str
    chapter: str
    parcel: Parcel
    key: str  # changes when anything does that its grade depends on


class Warm:
    """Processes with everything imported, one forked for each submission; a context manager.

    They start with the first submission: a run that has nothing to do costs nothing.
    """

    def __init__(
        self,
        course: Course,
        assignments: Mapping[str, "Assignment"],
        jobs: int = 0,
        *,
        sandboxed: bool = True,
        look_every: float = 3600.0,
        many: bool = True,
    ):
        """Say what will be graded; nothing is started yet.

        Args:
            course: the course.
            assignments: what may be graded.
            jobs: submissions side by side; by default as many as there are cores.
            sandboxed: whether what students wrote runs in a sandbox.
            look_every: seconds after which tasks that had come to an end are asked for more.
            many: whether so many are expected that to make ready for that pays.
        """
        self._course, self._assignments, self._sandboxed = course, assignments, sandboxed
        self._look_every, self._many = look_every, many
        self._jobs = jobs or cores()
        self._pool: Any = None
        self._open = ExitStack()

    def __enter__(self) -> "Warm":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all processes."""
        self._open.close()
        self._pool = None

    def start(self) -> None:
        """Begin to make ready; what follows in this process need not wait for it."""
        if self._pool is None:
            from autograder.isolation import machine
            from autograder.isolation.pool import Pool

            try_known_mistakes(self._course, self._assignments, self._jobs, self._sandboxed)
            prints = fingerprints(self._course, self._assignments)
            arguments = warm_order(self._course, self._assignments, prints, diagnose=True)
            private = private_folders(self._course)
            shut_in, many = self._sandboxed, self._many
            order = fork_server_order(self._assignments.values(), shut_in, private, many=many)
            readable = order["readable"] if shut_in else None
            pool = Pool(
                self._jobs,
                start_warm,
                grade_one,
                arguments,
                start_bare,
                [order],
                pack=_packed,
                readable=readable,
                private=private,
                parts=True,
                look_every=self._look_every,
                many=many,
            )
            self._pool = self._open.enter_context(pool)
            self._pool.start()
            if self._sandboxed:  # the pool finds out the same meanwhile, but not what to do then
                require_sandbox()
                for missing in machine.probe().missing:
                    say(f"note: {missing}", sys.stderr)

    def run(self, tasks: Iterator[Task]) -> Iterator[tuple[Task, Any]]:
        """Grade; what came of each, in the order in which they are done."""
        first = next(tasks, None)
        if first is not None:
            self.start()
            yield from self._pool.run(Begun(first, tasks), SECONDS + GRACE)


class Begun(Iterator[Task]):
    """Tasks of which the first one was taken; after an end there may be more."""

    def __init__(self, first: Task, others: Iterator[Task]) -> None:
        self._first: Task | None = first
        self._others = others

    def __next__(self) -> Task:
        first, self._first = self._first, None
        return next(self._others) if first is None else first


def _packed(task: Task) -> tuple[list[str], bytes]:
    """What crosses to a worker: who and what, and the parcel."""
    return [task.student, task.chapter], task.parcel.pack()


def grade_one(state: State, task: Sequence[str], parcel: bytes, *, parts: "Parts") -> bytes:
    """Grade one submission; runs in a process of its own, forked for it."""
    from autograder.isolation.outcomes import doubted
    from autograder.judge.grading import grade_submission
    from autograder.judge.intake import read_parcel

    bound_memory()
    student, chapter = task
    assignment = state.assignments[chapter]
    found = read_parcel(Parcel.unpack(parcel), student, assignment)
    known = state.known.get(chapter)
    graded = grade_submission(assignment, found, state.fork_server, known, SECONDS, parts)
    return doubted(sent(graded))


def bound_memory() -> None:
    """Let a test that an answer has made to ask for too much fail, not the whole machine."""
    with suppress(ImportError, OSError, ValueError):
        import resource  # `warm_up` has imported it

        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        _, most = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, most))

"""The tasks of one run of the pool: which are to come, which run, and what came of each.

A worker sends messages, each a head (`parts.HEAD`) and a body: which part of its task is under way
("P"), and in the end a result ("R"), one in doubt ("D"), an error ("E") or that the task is to be
done again ("A").
"""

import os
import time
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Generic, TypeVar

from autograder.isolation.limits import ending
from autograder.isolation.outcomes import Doubtful, Lost
from autograder.isolation.parts import HEAD, UNDER_WAY, Progress

T = TypeVar("T")

LARGEST = 64 << 20  # bytes of one result
TOO_LONG = "took longer than"
WORKED_ON = "worked for far longer than it may"
_LONGEST_WORDS = 2000  # bytes of why there is no result
_KILLED = ending(9)
_MOST_PARTS = 5  # of a task that are left out
_MOST_TIMES = 3  # as long as one try may take: after that no further part is left out


@dataclass(frozen=True)
class Entry(Generic[T]):
    """A task that a worker may get."""

    task: T
    tries: int = 0  # before, of which others may have had a part in the end
    first: Doubtful | None = None  # what an earlier try gave
    without: Mapping[str, str] = field(default_factory=dict[str, str])  # parts, see `Parts`
    in_doubt: bool = False  # who has killed it in one of those parts, nobody knows
    spent: float = 0.0  # seconds of all its tries before


@dataclass
class Work(Generic[T]):
    """A task that a worker has."""

    entry: Entry[T]
    pipe: int
    deadline: float
    progress: Progress = field(default_factory=Progress)
    heard: bytearray = field(default_factory=bytearray)
    killed: str = ""  # why, if it was
    fell_back: bool = False  # on what its first try gave
    over: bool = False  # nothing more will come through the pipe
    begun: float = field(default_factory=time.monotonic)

    def hear(self) -> bool:
        """Read what has come; whether it is the beginning of a result."""
        first = not self._sends()
        while not self.over and len(self.heard) <= LARGEST + HEAD.size:
            try:
                part = os.read(self.pipe, 1 << 20)
            except BlockingIOError:
                break
            self.heard += part
            self.over = not part
            self.progress.take_from(self.heard)
        return first and self._sends()

    def _sends(self) -> bool:
        """Whether a result has begun to come."""
        return bool(self.heard) and not self.heard.startswith(UNDER_WAY)

    def may_be_others(self, outcome: bytes | Lost | None, how: str) -> bool:
        """Whether others may have had a part in its loss, who took the processors or the memory."""
        if not isinstance(outcome, Lost) or self.entry.tries:
            return False
        return self._is_late() or (bool(self.progress.name) and self.was_killed(how))

    def blamed(self, how: str) -> tuple[str, str] | None:
        """The part that has certainly ended the worker, now lost, and how; None if none has."""
        name = self.progress.name
        if not name or len(self.entry.without) >= _MOST_PARTS or name in self.entry.without:
            return None
        if how == WORKED_ON and not self.killed:
            return name, "timeout"
        alone = self.entry.tries > 0
        if self.killed or self.heard:
            return (name, "timeout") if self._is_late() and alone else None
        return None if self.was_killed(how) and not alone else (name, "died")

    def _is_late(self) -> bool:
        return self.killed.startswith(TOO_LONG)

    def was_killed(self, how: str) -> bool:
        """Whether it was killed, and not by the pool: by the kernel when memory was short."""
        return how == _KILLED and not self.killed

    def judged(self, outcome: bytes | Lost) -> bytes | Lost:
        """What came of it in the end; in doubt if that may be others' doing."""
        in_doubt = self.fell_back or self.entry.in_doubt
        return Doubtful(outcome) if isinstance(outcome, bytes) and in_doubt else outcome

    def complete(self) -> bool:
        """Whether all of a result has come."""
        if len(self.heard) < HEAD.size:
            return False
        return len(self.heard) == HEAD.size + HEAD.unpack_from(self.heard)[1]

    def result(self, how: str) -> bytes | Lost | None:
        """What the worker, now gone, has left; None if it is to be done again."""
        self.hear()
        whole = not self.killed and self.complete()
        kind = HEAD.unpack_from(self.heard)[0] if whole else b""
        os.close(self.pipe)
        first = self.entry.first
        if kind == b"A" and not self.entry.tries:
            return None
        body = bytes(memoryview(self.heard)[HEAD.size :]) if whole else b""
        if kind == b"D" and first is None:
            return Doubtful(body)
        if kind in (b"R", b"D"):
            return body
        if first is not None:
            self.fell_back = True
            return bytes(first)
        if not whole:
            its_own = bool(self.killed) or how == WORKED_ON
            return Lost(f"the grading process {self.killed or how}", its_own)
        return Lost(f"the grading process {body[:_LONGEST_WORDS].decode(errors='replace')}")


class Batch(Generic[T]):
    """The tasks of one run: still to come, to be tried again, and running."""

    def __init__(self, tasks: Iterator[T], seconds: float) -> None:
        self.tasks = tasks
        self.seconds = seconds
        self.next: deque[Entry[T]] = deque()  # read ahead, or to be tried again
        self.last: deque[Entry[T]] = deque()  # to be tried again when all others are done
        self.running: dict[int, Work[T]] = {}
        self.number = 0

    def take(self) -> "Entry[T] | None":
        """The next task; None if it has to wait.

        What ran when the fork server ended is tried again alone: who ends it is found out so.
        """
        if any(work.entry.tries for work in self.running.values()):
            return None
        self.read_ahead()
        if not self.next or (self.next[0].tries and self.running):
            return None
        return self.next.popleft()

    def read_ahead(self) -> None:
        """Have a task ready for the next worker that gets free."""
        if not self.next:
            self.next.extend(Entry(task) for task in islice(self.tasks, 1))
        if not self.next and self.last and not self.running:
            self.next.append(self.last.popleft())

    def part_blamed(self, work: Work[T], how: str) -> tuple[str, str] | None:
        """The part without which a task is tried again, if all its tries leave time for that."""
        return work.blamed(how) if _spent(work) < _MOST_TIMES * self.seconds else None

    def give_back(self) -> Iterator[tuple[T, bytes | Lost]]:
        """After the end of the fork server: each running task gets one more try."""
        running, self.running = self.running, {}
        for work in running.values():
            work.hear()
            if work.killed or work.entry.tries or work.complete():
                outcome = work.result("ended together with the warm process, twice")
            else:
                os.close(work.pipe)
                outcome = None
            if outcome is None:
                self.again(work)
            else:
                yield work.entry.task, work.judged(outcome)

    def again(self, work: Work[T]) -> None:
        """Try a task once more, from a new fork server."""
        self.next.append(replace(work.entry, tries=work.entry.tries + 1, spent=_spent(work)))

    def later(self, work: Work[T], first: Doubtful | None) -> None:
        """Try a task once more when all others are done."""
        tries = work.entry.tries + 1
        self.last.append(replace(work.entry, tries=tries, first=first, spent=_spent(work)))

    def without(self, work: Work[T], part: tuple[str, str], *, in_doubt: bool) -> None:
        """Try a task once more without the part that has ended its worker."""
        entry = work.entry
        without = dict([*entry.without.items(), part])
        in_doubt = in_doubt or entry.in_doubt
        spent = _spent(work)
        self.next.append(replace(entry, without=without, in_doubt=in_doubt, spent=spent))


def _spent(work: Work[Any]) -> float:
    """Seconds that all tries of a task have taken so far, the last one included."""
    return work.entry.spent + time.monotonic() - work.begun

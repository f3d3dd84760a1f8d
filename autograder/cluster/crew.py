"""The workers of a cluster as the caller sees them, and what each of them has under way."""

import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from autograder.classroom.warm import Task
from autograder.isolation.outcomes import Doubtful

MOST_STRIKES = 3  # things that no worker says, after which one is asked nothing more
AHEAD = 1  # submissions that wait at a worker, so that it need not wait for the next


@dataclass(eq=False)
class Entry:
    """A submission that is being graded, here or there."""

    task: Task
    tries: int = 0  # that gave nothing, by no fault of the scheduler's
    why: str = ""  # the last of them
    first: Doubtful | None = None  # what an earlier try gave, in doubt
    avoid: set[str] = field(default_factory=set)  # workers that gave nothing
    flights: int = 0  # where it is under way
    done: bool = False


@dataclass(eq=False)
class Worker:
    """A worker's process of Dask's."""

    address: str
    slots: int
    state: Literal["new", "asked", "ready", "refused"] = "new"
    load: int = 0
    strikes: int = 0
    why: str = ""  # it was refused

    def strike(self, why: str) -> None:
        """It has said what no worker of this grader says."""
        self.strikes += 1
        if self.strikes >= MOST_STRIKES:
            self.refuse(f"it has failed {self.strikes} times, at last: {why}")

    def refuse(self, why: str) -> None:
        """It is asked nothing more."""
        self.state, self.why = "refused", why


@dataclass(eq=False)
class Flight:
    """Something that a worker was asked."""

    worker: Worker
    entry: Entry | None  # None: what travels once
    future: Any
    fetched: int = 0  # how often its result was asked for, and did not come
    begun: float = field(default_factory=time.monotonic)

    @property
    def age(self) -> float:
        """Seconds since it was sent."""
        return time.monotonic() - self.begun


class Todo:
    """The submissions that are to be graded: read as they are needed, tried again, in doubt."""

    def __init__(self, tasks: Iterator[Task]) -> None:
        """Nothing is read yet."""
        self._tasks = tasks
        self._again: deque[Entry] = deque()
        self._last: deque[Entry] = deque()
        self.exhausted = False

    def take(self, *, alone: bool) -> Entry | None:
        """The next one; those in doubt only once all others are done, one by one."""
        if self._again:
            return self._again.popleft()
        task = None if self.exhausted else next(self._tasks, None)
        if task is not None:
            return Entry(task)
        self.exhausted = True
        return self._last.popleft() if alone and self._last else None

    def again(self, entry: Entry) -> None:
        """Soon, elsewhere if that can be."""
        self._again.append(entry)

    def hopeless(self, tries: int) -> list[Entry]:
        """Those that were tried so often; they are not tried again."""
        found = [entry for entry in self._again if entry.tries >= tries]
        self._again = deque(entry for entry in self._again if entry.tries < tries)
        return found

    def later(self, entry: Entry) -> None:
        """When all others are done."""
        self._last.append(entry)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left to be handed out."""
        return self.exhausted and not self._again and not self._last


class Crew:
    """All workers that are there."""

    def __init__(self) -> None:
        """Nobody yet."""
        self.workers: dict[str, Worker] = {}

    def see(self, members: dict[str, int]) -> list[Worker]:
        """Who is there now; gives those that have gone."""
        gone = [one for where, one in self.workers.items() if where not in members]
        for one in gone:
            del self.workers[one.address]
        for where, slots in members.items():
            self.workers.setdefault(where, Worker(where, slots))
        return gone

    def in_state(self, state: str) -> list[Worker]:
        """The workers in this state."""
        return [one for one in self.workers.values() if one.state == state]

    def for_entry(self, entry: Entry | None, ahead: int = AHEAD) -> Worker | None:
        """The ready worker that has the least to do and room for more; not where it has failed."""
        ready = self.in_state("ready")
        if entry is not None:
            ready = [one for one in ready if one.address not in entry.avoid] or ready
        room = [one for one in ready if one.load < one.slots + ahead]
        return min(room, key=lambda one: one.load / one.slots, default=None)

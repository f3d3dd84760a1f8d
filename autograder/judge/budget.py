"""The time that one submission may take, and the sentence of it that has run out."""

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager

from autograder.bridge.session import Student
from autograder.common.results import Cost
from autograder.isolation.parts import Parts

IN_ALL = "the whole notebook took longer than it may; what was found by then counts"


class Budget:
    """The time that one submission may take in all, and how much of it may go into repetitions.

    What was found when it is over counts. A first look at every question comes before a second one
    at any, so half of the time is kept for it.
    """

    def __init__(self, seconds: float = math.inf) -> None:
        """Start the clock."""
        self.parts = Parts()  # of which nobody is told
        self.until = time.monotonic() + seconds
        self.spare = seconds / 2  # for what was run already
        self.start = time.process_time()
        self.answers, self.calls = 0.0, 0  # see `Cost`
        self._repeats = False

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return max(0.0, self.until - time.monotonic())

    def note(self, process: Student) -> None:
        """Count what a process of answers has taken."""
        self.answers += process.worked()
        self.calls += process.peer.requests

    def cost(self) -> Cost:
        """What has been used so far."""
        return Cost(time.process_time() - self.start, self.answers, self.calls)

    @property
    def may_repeat(self) -> bool:
        """Whether there is time for a second look."""
        return self.spare > 0 and self.left > 0

    @contextmanager
    def repeating(self) -> Iterator[None]:
        """What happens inside was run once already; within another such part it counts once."""
        start, outer, self._repeats = time.monotonic(), self._repeats, True
        try:
            yield
        finally:
            self._repeats = outer
            if not outer:
                self.spare -= time.monotonic() - start

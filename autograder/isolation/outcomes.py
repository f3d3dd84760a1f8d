"""What a task of the pool can come to besides a result."""

from dataclasses import dataclass

from autograder.isolation.clock import doubts


@dataclass(frozen=True)
class Lost:
    """A task that gave no result, and why."""

    reason: str
    its_own: bool = False  # nothing but the task can be why: another run would end so too


class Doubtful(bytes):
    """A result that others may have had a part in, by taking the processors.

    The task is done once more when all others are done, alone; if that fails, this counts. So is
    one that took longer than it may. What comes out of the pool as such may still be others' doing,
    and another run may give something else.
    """


def doubted(result: bytes) -> bytes:
    """The same; in doubt if something ended in this process that others may have held up."""
    return Doubtful(result) if doubts() else result


class Unwell(BaseException):
    """Raised by a task: the fork server cannot serve it. It is done again from a new one, alone."""

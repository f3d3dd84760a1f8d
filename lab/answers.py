"""Marks for known answers: misconceptions (wrong, with the message they earn) and variants (right).

Both are data beside an exercise. A marked function or class stands in for the one a student
writes: it takes the name of the question's own definition, or of `target` where a cell defines
several. The files are read by syntax tree as well, so every argument must be a literal.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Mark:
    """What is known of a marked answer; kept on it as the attribute `mark`."""

    question: str
    target: str | None = None
    id: str | None = None
    fails: tuple[str, ...] = ()
    read: str | None = None


def misconception(
    question: str, *, id: str, fails: Sequence[str], read: str, target: str | None = None
) -> Callable[[T], T]:
    """Mark a wrong answer; its docstring is the one message for the student.

    Args:
        question: id of the solution cell that it answers.
        id: the misconception's own name, such as "ATT4".
        fails: ids of exactly those tests that it must fail.
        read: where in the book to read, as "page#label".
        target: dotted name of the definition it replaces; by default the cell's only one.
    """
    return _marker(Mark(question, target, id, tuple(fails), read))


def variant(question: str, *, target: str | None = None) -> Callable[[T], T]:
    """Mark a right answer that is written differently from the reference."""
    return _marker(Mark(question, target))


def _marker(mark: Mark) -> Callable[[T], T]:
    def attach(answer: T) -> T:
        setattr(answer, "mark", mark)  # noqa: B010  (T has no such attribute to a type checker)
        return answer

    return attach

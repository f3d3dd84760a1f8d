"""What the pages of one submission show of hidden tests: by the rules, and by what came before.

How often somebody has looked is counted in the journal's changes, which are kept for ever: a grader
that is killed and begins again counts the same.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from autograder.classroom.changes import read
from autograder.classroom.counted import Marks
from autograder.classroom.journal_lines import Graded, is_same_digest
from autograder.judge.assignment import Assignment
from autograder.judge.showing import ALL, Shown

History = Callable[[str, str], Sequence[Mapping[str, Any]]]  # changes by student and assignment


def shown(
    graded: Graded, assignment: Assignment, marks: Iterable[Marks], history: History
) -> Shown:
    """What its student may read today.

    Args:
        graded: the result.
        assignment: what was to be done.
        marks: what the gradebook says of its notebooks.
        history: how the grades of the same student came to be.
    """
    rules, result = assignment.rules.feedback, graded.result
    if not rules.is_limited:
        return ALL
    works: list[tuple[datetime, str]] = []
    if rules.looks_a_day is not None:
        works = list(_works(history(result.student, result.assignment)))
    extension = max((one.extension for one in marks), default=0.0)
    work = _work(graded.made_of, result.key)
    works = [(when, work if is_same_digest(work, one) else one) for when, one in works]
    return rules.shown(work, works, now(), extension)


def now() -> datetime:
    """The time."""
    return datetime.now(UTC)


def _works(changes: Iterable[Mapping[str, Any]]) -> Iterable[tuple[datetime, str]]:
    """When each work was graded; what the journal tells unreadably is left out."""
    for change in map(read, changes):
        if change is not None:
            try:
                when = datetime.fromisoformat(change.when).astimezone(UTC)
            except (ValueError, OverflowError):
                continue
            yield when, _work(change.made_of, change.key)


def _work(made_of: Mapping[str, str], key: str) -> str:
    return made_of.get("work", key)

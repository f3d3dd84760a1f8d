"""How grades came to be what they are: which run saw a change, from what to what, and why.

The journal keeps a line for each change (`journal.Journal.changed`): all that somebody has from
then on, and what it was made of; what changed is told by comparing it with the line before. What
people enter in formgrader is noted by the run that reads it next, as nbgrader keeps no name and no
time of it.
"""

import getpass
import math
import re
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from autograder.classroom.counted import NEAR, Given, Marks, Points
from autograder.classroom.journal_lines import is_same_digest

if TYPE_CHECKING:
    from autograder.classroom.journal_lines import Graded


FIRST, BEGINS = "first graded", "the history begins here"
WORK, TESTS = "new submission", "new tests or rules"
GRADER, AGAIN = "new grader or library", "graded once more"
BY_HAND, EXTENSION, LATENESS = "by hand", "extension", "lateness rule"
ANSWERED = "question answered"
EPOCH = datetime(1970, 1, 1)  # without a zone, as SQLite's are
LONGEST_RUN = 200  # characters of a command
PASSWORD = re.compile(r"(://[^\s/:@]*:)\S*@")  # in the address of a database


class Answer(NamedTuple):
    """What a person answered to a student's question about a grade."""

    name: str  # of the question
    asked: str
    said: str


@dataclass(frozen=True)
class Change:
    """A grade from one moment on."""

    student: str
    assignment: str
    notebooks: Mapping[str, Marks]
    key: str = ""  # of the result
    made_of: Mapping[str, str] = field(default_factory=dict)
    why: tuple[str, ...] = ()
    when: str = ""  # UTC, finer than a second: changes of one second keep their order
    run: str = ""  # the command
    user: str = ""
    answer: Answer | None = None  # then nothing else has changed

    @property
    def points(self) -> Points:
        """What it came to."""
        whole = Points()
        for marks in self.notebooks.values():
            whole = whole.and_more(marks.points)
        return whole

    @property
    def extension(self) -> float:
        """Seconds."""
        return max((marks.extension for marks in self.notebooks.values()), default=0.0)

    def cells(self) -> dict[tuple[str, str], Given]:
        """What each cell was given, by notebook and name."""
        return {
            (name, cell): given
            for name, marks in self.notebooks.items()
            for cell, given in marks.cells.items()
        }

    def comments(self) -> dict[tuple[str, str], str]:
        """What people said of each cell."""
        return {
            (name, cell): text
            for name, marks in self.notebooks.items()
            for cell, text in marks.comments.items()
        }

    def stale(self) -> set[tuple[str, str]]:
        """Cells that have changed since a person graded them."""
        return {name for name, given in self.cells().items() if given.stale}

    def is_by_hand(self) -> bool:
        """Whether a person had a part in it."""
        given = any(one.is_by_hand for one in self.cells().values())
        return given or bool(self.comments()) or self.extension != 0


def change(
    graded: "Graded", marks: Mapping[str, Marks], before: Change | None, *, fresh: bool
) -> Change | None:
    """What is to be written down of a grade; None if nothing has changed.

    Args:
        graded: the result.
        marks: what the gradebook says of it, by notebook.
        before: the grade as it was when it was last seen.
        fresh: whether it was graded just now.
    """
    result = graded.result
    now = Change(result.student, result.assignment, marks, result.key, graded.made_of)
    if before is None:
        why = [FIRST if fresh else BEGINS]
    else:
        why = list(_reasons(before, now))
    if not why:
        return None
    when = _now()
    return replace(now, why=tuple(why), when=when, run=_command(), user=_user())


def answered(before: Change, answer: Answer) -> Change:
    """What is to be written down when a person has answered a student's question."""
    when = _now()
    return replace(before, why=(ANSWERED,), when=when, run=_command(), user=_user(), answer=answer)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")


def _reasons(before: Change, now: Change) -> Iterator[str]:
    """Why a grade is another one than before; none if it is not."""
    graded_anew = before.key != now.key
    if _differ(before, now, "work"):
        yield WORK
    if _differ(before, now, "tests"):
        yield TESTS
    known = _differ(before, now, "work") or _differ(before, now, "tests")
    anew = _automatic(before) != _automatic(now) or now.stale() - before.stale()
    if anew and not known:
        yield GRADER if graded_anew else AGAIN
    looked_again = before.stale() - now.stale() and not known
    if _by_hand(before) != _by_hand(now) or before.comments() != now.comments() or looked_again:
        yield BY_HAND
    if before.extension != now.extension:
        yield EXTENSION
    elif _is_lateness_alone(before.points, now.points):
        yield LATENESS


def _differ(before: Change, now: Change, what: str) -> bool:
    """Whether that was another; an older grader did not say what it was."""
    first, second = before.made_of.get(what, ""), now.made_of.get(what, "")
    return bool(first and second) and not is_same_digest(second, first)


def _is_lateness_alone(before: Points, now: Points) -> bool:
    same = abs(before.given - now.given) < NEAR
    return same and abs(before.lost - now.lost) > NEAR


def _automatic(grade: Change) -> dict[tuple[str, str], float]:
    """Points by tests that are not 0."""
    return {name: round(one.auto, 6) for name, one in grade.cells().items() if one.auto}


def _by_hand(grade: Change) -> dict[tuple[str, str], Any]:
    cells = grade.cells().items()
    return {name: one.by_hand for name, one in cells if one.is_by_hand}


def written(grade: Change) -> dict[str, Any]:
    """A change as the journal keeps it."""
    answer = {"answer": list(grade.answer)} if grade.answer else {}
    return answer | {
        "student": grade.student,
        "assignment": grade.assignment,
        "key": grade.key,
        "made_of": dict(grade.made_of),
        "why": list(grade.why),
        "when": grade.when,
        "run": grade.run,
        "user": grade.user,
        "notebooks": {
            name: {
                "lost": marks.points.lost,
                "seconds": marks.points.seconds,
                "extension": marks.extension,
                "cells": {cell: _list(given) for cell, given in marks.cells.items()},
                "comments": dict(marks.comments),
            }
            for name, marks in grade.notebooks.items()
        },
    }


def _list(given: Given) -> list[Any]:
    """Shorter where nothing has changed since a person looked, as lines were before."""
    return list(given if given.stale else given[:3])


def read(content: Any) -> Change | None:
    """A change from what the journal keeps; None if a grader of today cannot read it."""
    try:
        return Change(
            str(content["student"]),
            str(content["assignment"]),
            {name: _marks(one) for name, one in content["notebooks"].items()},
            str(content["key"]),
            dict(content["made_of"]),
            tuple(map(str, content["why"])),
            str(content["when"]),
            str(content["run"]),
            str(content["user"]),
            Answer(*map(str, content["answer"])) if "answer" in content else None,
        )
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError):
        return None


def _marks(content: Any) -> Marks:
    cells = {str(cell): _given(given) for cell, given in content["cells"].items()}
    points = Points(
        sum(one.worth for one in cells.values()), float(content["lost"]), float(content["seconds"])
    )
    comments = {str(cell): str(text) for cell, text in content["comments"].items()}
    extension = float(content["extension"])
    _ = EPOCH + timedelta(seconds=extension)  # as gradebooks hold it
    if not math.isfinite(points.given + points.lost + points.seconds):
        raise ValueError("points or seconds without end")
    return Marks(points, comments=comments, extension=extension, cells=cells)


def _given(content: Any) -> Given:
    auto, manual, extra, *more = content
    return Given(*map(_points, (auto, manual, extra)), stale=any(more))


def _points(value: Any) -> float | None:
    points = None if value is None else float(value)
    if points is not None and not math.isfinite(points):
        raise ValueError("points without end")
    return points


def _command() -> str:
    """This run, as it was called."""
    program = Path(sys.argv[0] or "python")
    name = program.parent.name if program.stem == "__main__" else program.name
    return PASSWORD.sub(r"\1***@", shlex.join([name, *sys.argv[1:]]))[:LONGEST_RUN]


def _user() -> str:
    with suppress(OSError, KeyError, ImportError):
        return getpass.getuser()
    return "unknown"

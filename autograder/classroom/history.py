"""Tell how somebody's grades came to be what they are, run by run, on the terminal."""

import csv
import io
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autograder.classroom.changes import BY_HAND, Change, read
from autograder.classroom.counted import NEAR, Given, number
from autograder.classroom.journal import read_changes, results, unread_in
from autograder.classroom.keeper import refreshed
from autograder.classroom.report_terminal import say_row
from autograder.common.course import CourseError
from autograder.common.failures import in_words
from autograder.common.names import alike, composed, plain, readable, say, shown
from autograder.common.spreadsheet import safe
from autograder.common.whole import write_table

COLUMNS = (
    *("when (UTC)", "student", "assignment", "from", "to", "why", "what changed", "user", "run"),
)

if TYPE_CHECKING:
    from autograder.classroom.classes import Class


def tell(taught: "Class", student: str, chapter: str = "") -> None:
    """Print how somebody's grades came to be what they are.

    Args:
        taught: the class.
        student: the name of a folder in submitted/.
        chapter: only this one.
    """
    who = _known(taught, student)
    _look(taught, who)
    changes = sorted(read_changes(taught).items())
    mine = {name: lines for (one, name), lines in changes if one == who}
    _require_known(chapter, mine, f"{shown(who)}'s ")
    for name, lines in mine.items():
        if chapter in ("", name):
            _tell_one(who, name, [one for line in lines if (one := read(line))])


def tell_all(
    taught: "Class", student: str = "", chapter: str = "", since: str = "", out: Path | None = None
) -> None:
    """Print every change of everybody's grades, oldest first, or write them as a table.

    Args:
        taught: the class.
        student: only this one's.
        chapter: only of this assignment.
        since: a day or a time; what came before is left out.
        out: a file to write.
    """
    start = _moment(since)
    whose = _known(taught, student) if student else ""
    _look(taught, whose)
    told = read_changes(taught)
    _require_known(chapter, sorted({name for _, name in told}))
    rows = [
        (grade.when, _row(before, grade))
        for (who, name), lines in told.items()
        if whose in ("", who) and chapter in ("", name)
        for before, grade in _steps(lines)
        if start is None or (_when(grade) or start) >= start
    ]
    rows.sort(key=lambda row: row[0])
    table = [COLUMNS, *(row for _, row in rows)]
    if out is None:
        _print(table)
        if not rows:
            say("No change of a grade is known there.", sys.stderr)
        return
    with in_words(out), io.StringIO(newline="") as text:
        csv.writer(text).writerows(map(safe, row) for row in table)
        write_table(out, text.getvalue())
    say(f"{len(rows)} changes: {out}")


def _known(taught: "Class", student: str) -> str:
    """A student's name in the journal; CourseError if nobody of that name is there."""
    names = {graded.result.student for graded in results(taught)}
    names |= {who for who, _ in read_changes(taught)}
    who = student if student in names else alike(names).get(composed(student), "")
    who = who or next((name for name in names if readable(plain(name)) == student), "")
    if not who:
        raise CourseError(f"Nothing was graded of a student {student!r}; see report.html for all.")
    return who


def _require_known(chapter: str, known: Collection[str], whose: str = "") -> None:
    if chapter and chapter not in known:
        there = f"there is {', '.join(known)}" if known else "nothing was graded yet"
        raise CourseError(f"Nothing was graded of {whose}{chapter!r}; {there}.")


def _steps(lines: Sequence[Mapping[str, Any]]) -> Iterator[tuple[Change | None, Change]]:
    """Each grade with the one before."""
    before: Change | None = None
    for grade in filter(None, map(read, lines)):
        yield before, grade
        before = grade


def _row(before: Change | None, grade: Change) -> tuple[str, ...]:
    return (
        _shown_time(grade),
        readable(plain(grade.student)),
        grade.assignment,
        number(before.points.counts) if before else "",
        number(grade.points.counts),
        ", ".join(grade.why),
        "; ".join(what_changed(before, grade)) or "no points",
        grade.user,
        grade.run,
    )


def _shown_time(grade: Change) -> str:
    """To the second."""
    return grade.when.partition("+")[0].partition(".")[0].replace("T", " ")


def _when(grade: Change) -> datetime | None:
    with suppress(ValueError, OverflowError):
        return _with_zone(datetime.fromisoformat(grade.when))
    return None


def _moment(text: str) -> datetime | None:
    """A time that somebody wrote; without a zone it is UTC, as all times in the history are."""
    if not text:
        return None
    try:
        return _with_zone(datetime.fromisoformat(text))
    except ValueError as error:
        raise CourseError(
            f"{shown(text)} is no day or time; write 2026-03-01 or 2026-03-01T12:00."
        ) from error


def _with_zone(when: datetime) -> datetime:
    return when if when.tzinfo is not None else when.replace(tzinfo=UTC)


def _look(taught: "Class", student: str) -> None:
    """Note first what people have entered since; where that cannot be, tell what is known."""
    if why := unread_in(taught.journal):
        say(f"note: {why}", sys.stderr)
    try:
        graded = sorted({graded.result.assignment for graded in results(taught)})
        _, gone = refreshed(taught, graded, student=student)
    except CourseError as error:
        gone = {"": str(error)}
    for why in gone.values():
        say(f"note: what was entered since the last run is not known: {why}", sys.stderr)


def _tell_one(student: str, assignment: str, grades: Sequence[Change]) -> None:
    if not grades:
        return
    say(f"{readable(plain(student))}, {assignment}: {number(grades[-1].points.counts)} points")
    table = [("when (UTC)", "points", "why", "what changed", "run")]
    before: Change | None = None
    for grade in grades:
        points = number(grade.points.counts)
        if before:
            points = f"{number(before.points.counts)} → {points}"
        when = _shown_time(grade)
        what = "; ".join(what_changed(before, grade)) or "no points"
        table.append((when, points, ", ".join(grade.why), what, f"{grade.user}: {grade.run}"))
        before = grade
    _print(table)


def _print(table: Sequence[Sequence[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        cells = (f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True))
        say_row("  ".join(cells))


def what_changed(before: Change | None, now: Change) -> list[str]:
    """What is otherwise than before, in words."""
    if now.answer is not None:
        return [f"asked: {_line(now.answer.asked)}", f"answered: {_line(now.answer.said)}"]
    if before is None:
        return [f"{number(now.points.given)} given", *_if(now.points.reckoned)]
    return list(_changed(before, now))


def _changed(before: Change, now: Change) -> list[str]:
    first, second = before.cells(), now.cells()
    several = len(now.notebooks) > 1
    said = []
    for name in dict.fromkeys((*second, *first)):
        old, new = first.get(name, Given()), second.get(name, Given())
        label = "/".join(name) if several else name[1]
        if abs(old.worth - new.worth) > NEAR or old.by_hand != new.by_hand:
            said.append(f"{label} {_said(old)} → {_said(new)}")
        if new.stale and not old.stale:
            said.append(f"{label} has changed since a person graded it")
        elif old.stale and not new.stale and old.by_hand == new.by_hand and BY_HAND in now.why:
            said.append(f"{label} looked at again")
    texts, old_texts = now.comments(), before.comments()
    for name in dict.fromkeys((*texts, *old_texts)):
        if texts.get(name) != old_texts.get(name):
            said.append(f"comment on {name[1]}" + ("" if name in texts else " taken back"))
    if before.extension != now.extension:
        hours = number(before.extension / 3600), number(now.extension / 3600)
        said.append(f"extension {hours[0]} → {hours[1]} hours")
    if abs(before.points.lost - now.points.lost) > NEAR:
        said.append(f"lateness −{number(before.points.lost)} → −{number(now.points.lost)}")
    return said


def _line(text: str) -> str:
    return " ".join(text.split())


def _said(given: Given) -> str:
    if given.auto is None and not given.is_by_hand:
        return "nothing yet"
    return number(given.worth)


def _if(text: str) -> list[str]:
    return [text] if text else []

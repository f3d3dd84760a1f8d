"""When each work arrived in the exchange, as a list that rules.toml may name under [late].

The time is the one that the file system keeps of the last change (ctime) in all that was handed in.
Students cannot set it, so it may say who is late; a timestamp that they hand in may not. What was
noted once of a work stays: a backup that is put back has new times, and so has what somebody gave
another owner. A work is the same if its folder is called the same and holds the same.
"""

import csv
import io
import os
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from autograder.classroom.arrivals import Arrived
from autograder.common.course import CourseError
from autograder.common.failures import in_words
from autograder.common.names import plain, readable
from autograder.common.spreadsheet import safe
from autograder.common.times import moment
from autograder.common.whole import require_file, write_whole
from autograder.judge.lateness import WORK

FILE = "arrivals.csv"
COLUMNS = ("student", "assignment", "submitted")  # as `lateness` reads them
# and WORK, a digest, which lists made earlier lack
DIGEST = re.compile(r"(sha256:[0-9a-f]{32})?")
_HEAD = ",".join([*COLUMNS, f"{WORK}\n"]).encode()


class Times:
    """The list, of which lines are only ever added."""

    def __init__(self, path: Path) -> None:
        """Make it, if it is not there, and read it; CourseError if it is no such list."""
        self.path = path
        self._lines: list[Sequence[str]] = []
        self._read()

    def note(self, arrived: Iterable[Arrived]) -> set[str]:
        """Add what is not in it yet; the assignments of which something was added."""
        if self._state() != self._left:  # somebody has edited it, or moved it away
            self._read()
        rows = {_known_by(row): (row, one.assignment) for one in arrived for row in [_row(one)]}
        new = [found for known_by, found in rows.items() if known_by not in self._known]
        if new:
            with in_words(self.path):
                self._add([row for row, _ in new])
            self._known |= rows.keys()
        return {name for _, name in new}

    def _read(self) -> None:
        with in_words(self.path):
            require_file(self.path)
            had = self.path.read_bytes() if self.path.exists() else b""
            text = _whole_lines(self.path, had or _written(self._lines))
            if text != had:
                write_whole(self.path, text)
            state = self._state()
        # strict: a quote that nobody has closed would take in all that is added below
        rows = _rows(self.path, text, strict=True)
        self._lines = [row for row in rows if row and not _is_head(row)]
        self._known = {_known_by(row) for row in self._lines}
        self._left = state

    def _add(self, rows: Sequence[Sequence[str]]) -> None:
        with self.path.open("ab", buffering=0) as file:
            file.write(_written(rows))
            os.fsync(file.fileno())
        self._lines += rows
        self._left = self._state()

    def _state(self) -> tuple[int, ...]:
        """Changes when somebody else writes it; empty if it is gone."""
        with suppress(FileNotFoundError):
            status = self.path.stat()
            return status.st_ino, status.st_size, status.st_mtime_ns
        return ()


def _written(rows: Iterable[Sequence[str]]) -> bytes:
    with io.StringIO(newline="") as text:
        csv.writer(text, lineterminator="\n").writerows(rows)
        return text.getvalue().encode("utf-8", "backslashreplace")


def _row(one: Arrived) -> tuple[str, ...]:
    when = datetime.fromtimestamp(one.when, UTC).isoformat(timespec="seconds")
    row = safe(readable(plain(one.student))), safe(one.assignment), when
    return (*row, one.work) if one.work else row


def _known_by(row: Sequence[str]) -> tuple[str, ...]:
    """What makes a line the same as another: the work, whenever it came; without one the time."""
    return (*row[:2], row[3]) if len(row) > 3 and row[3] else tuple(row[:3])


def _whole_lines(path: Path, text: bytes) -> bytes:
    """The list with its first line, and without a last one that a power cut has torn."""
    lines = text.splitlines(keepends=True) if text.strip() else []
    if lines and not lines[-1].endswith((b"\n", b"\r")):
        torn = lines.pop()
        last = _rows(path, torn.decode("utf-8", "replace").encode())
        if last and (_is_head(last[0]) or _is_line(last[0])):  # whoever edited it left the end out
            lines.append(torn + b"\n")
    rows = _rows(path, lines[0]) if lines else []
    if not rows or _is_line(rows[0]):
        lines.insert(0, _HEAD)
    elif len(rows[0]) == len(COLUMNS) and _is_head(rows[0]):
        lines[0] = _HEAD
    elif not _is_head(rows[0]):
        raise CourseError(
            f"{path} does not begin with the line {','.join(COLUMNS)}; save it as CSV with commas, "
            "or move it away, and a new one is made of what lies in the exchange."
        )
    return b"".join(lines)


def _rows(path: Path, text: bytes, *, strict: bool = False) -> list[list[str]]:
    try:
        lines = io.StringIO(text.decode("utf-8-sig"), newline="")
        return list(csv.reader(lines, strict=strict))
    except (UnicodeDecodeError, csv.Error) as error:
        raise CourseError(
            f"{path} cannot be read ({error}); save it as CSV in UTF-8, or move it away, and a new "
            "one is made of what lies in the exchange."
        ) from error


def _is_head(row: Sequence[str]) -> bool:
    return tuple(one.strip() for one in row[: len(COLUMNS)]) == COLUMNS  # others may follow


def _is_line(row: Sequence[str]) -> bool:
    try:
        _, _, when, *work = row
        return not work[1:] and all(map(DIGEST.fullmatch, work)) and moment(when) is not None
    except (ValueError, OverflowError):
        return False

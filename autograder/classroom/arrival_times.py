"""When each work arrived in the exchange, as a list that rules.toml may name under [late].

The time is the one that the file system keeps of the last change (ctime) in all that was handed in.
Students cannot set it, so it may say who is late; a timestamp that they hand in may not.
"""

import csv
import io
import os
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from autograder.classroom.arrivals import Arrived
from autograder.common.course import CourseError
from autograder.common.failures import in_words
from autograder.common.names import plain, readable
from autograder.common.spreadsheet import safe
from autograder.common.times import moment
from autograder.common.whole import require_file, write_whole

FILE = "arrivals.csv"
COLUMNS = ("student", "assignment", "submitted")  # as `lateness` reads them


class Times:
    """The list, of which lines are only ever added."""

    def __init__(self, path: Path) -> None:
        """Make it, if it is not there, and read it; CourseError if it is no such list."""
        self.path = path
        with in_words(path):
            require_file(path)
            had = path.read_bytes() if path.exists() else b""
            text = _whole_lines(path, had)
            if text != had:
                write_whole(path, text)
        self._known = {tuple(row) for row in _rows(path, text)}

    def note(self, arrived: Iterable[Arrived]) -> set[str]:
        """Add what is not in it yet; the assignments of which something was added."""
        rows = {_row(one): one.assignment for one in arrived}
        new = {row: name for row, name in rows.items() if row not in self._known}
        if new:
            with in_words(self.path):
                self._add(new)
            self._known |= new.keys()
        return set(new.values())

    def _add(self, rows: Iterable[tuple[str, ...]]) -> None:
        with io.StringIO(newline="") as text:
            csv.writer(text, lineterminator="\n").writerows(rows)
            data = text.getvalue().encode("utf-8", "backslashreplace")
        with self.path.open("ab", buffering=0) as file:
            file.write(data)
            os.fsync(file.fileno())


def _row(one: Arrived) -> tuple[str, ...]:
    when = datetime.fromtimestamp(one.when, UTC).isoformat(timespec="seconds")
    return safe(readable(plain(one.student))), safe(one.assignment), when


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
        lines.insert(0, f"{','.join(COLUMNS)}\n".encode())
    elif not _is_head(rows[0]):
        raise CourseError(
            f"{path} does not begin with the line {','.join(COLUMNS)}; save it as CSV with commas, "
            "or move it away, and a new one is made of what lies in the exchange."
        )
    return b"".join(lines)


def _rows(path: Path, text: bytes) -> list[list[str]]:
    try:
        return list(csv.reader(io.StringIO(text.decode("utf-8-sig"), newline="")))
    except (UnicodeDecodeError, csv.Error) as error:
        raise CourseError(
            f"{path} cannot be read ({error}); save it as CSV in UTF-8, or move it away, and a new "
            "one is made of what lies in the exchange."
        ) from error


def _is_head(row: Sequence[str]) -> bool:
    return tuple(one.strip() for one in row[: len(COLUMNS)]) == COLUMNS  # others may follow


def _is_line(row: Sequence[str]) -> bool:
    try:
        return len(row) == len(COLUMNS) and moment(row[-1]) is not None
    except (ValueError, OverflowError):
        return False

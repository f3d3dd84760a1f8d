"""When each work arrived in the exchange, as a list that rules.toml may name under [late].

The time is the one that the file system keeps of a folder's last change (ctime). Students cannot
set it, so it may say who is late; a timestamp that they hand in may not.
"""

import csv
import io
import os
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from autograder.classroom.arrivals import Arrived
from autograder.classroom.spreadsheet import safe
from autograder.common.failures import in_words
from autograder.common.names import plain, readable

FILE = "arrivals.csv"
COLUMNS = ("student", "assignment", "submitted")  # as `lateness` reads them


class Times:
    """The list, of which lines are only ever added."""

    def __init__(self, path: Path) -> None:
        """Make it, if it is not there, and read what is in it."""
        self.path = path
        with in_words(path):
            if not path.is_file():
                self._add([COLUMNS])
            with path.open(encoding="utf-8", newline="") as file:
                self._known = {tuple(row) for row in csv.reader(file)}
            text = path.read_bytes()
            if not text.endswith(b"\n"):  # a line that a power cut has torn
                os.truncate(path, text.rfind(b"\n") + 1)

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

"""`nbgrader list --inbound`, which nobody who hands in can end.

nbgrader_config.py names the class:

    c.ExchangeFactory.list = "autograder.classroom.listed.SafeList"

nbgrader reads the secret in each submission, or its notebooks, to see whether feedback is there.
What it could not read is named and left out, of the list and of what `--remove` removes.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nbgrader.exchange.default import ExchangeList

from autograder.common.names import clean_log, shown
from autograder.judge.parcel import SECRET_FILE, Unreadable, read_file

LARGEST = 1000  # bytes of a secret
LARGEST_NOTEBOOK = 100_000_000


class SafeList(ExchangeList):
    """Lists what lies in the exchange."""

    def parse_assignments(self) -> list[dict[str, Any]]:
        """What is said of each; of what is handed in, as far as it can be read."""
        clean_log(self.log)
        if self.inbound:
            found = {
                path: _why_not(Path(path)) or self._why_not_alone(path) for path in self.assignments
            }
            odd = {path: why for path, why in found.items() if why}
            for path, why in odd.items():
                self.log.warning("%s was left out: %s", shown(Path(path).name), why)
            self.assignments = [path for path in self.assignments if path not in odd]
        return super().parse_assignments()

    def _why_not_alone(self, path: str) -> str:
        """Why nbgrader, asked for this one alone, cannot read it; empty if it can."""
        everything, self.assignments = self.assignments, [path]
        try:
            if any(Path(path).glob("*.ipynb")):  # else it would say so, here and once more
                with _held(Path(path)):
                    super().parse_assignments()
        except BlockingIOError:
            return "somebody holds a lease on a file in it"
        except Exception as error:  # noqa: BLE001 - whatever it makes of somebody's folder
            return f"nbgrader cannot read it ({type(error).__name__})"
        finally:
            self.assignments = everything
        return ""


def _why_not(folder: Path) -> str:
    """Why a submission cannot be listed; empty if it can."""
    try:
        if not stat.S_ISDIR(folder.lstat().st_mode):
            return "it is no folder"
        notebooks = [*folder.glob("*.ipynb")]
        for path in notebooks:  # whose names nbgrader makes digests of
            path.name.encode("utf-8")
        if (folder / SECRET_FILE).is_file():
            secret = read_file(folder / SECRET_FILE, LARGEST).decode("utf-8")
            return "" if secret else f"its {SECRET_FILE} is empty"
        for path in notebooks:  # without a secret nbgrader reads these
            found = path.lstat()
            if not stat.S_ISREG(found.st_mode) or found.st_size > LARGEST_NOTEBOOK:
                return f"{shown(path.name)} is no plain file, or too large"
    except (OSError, Unreadable, UnicodeDecodeError) as error:
        return str(error)
    except UnicodeEncodeError:
        return "the name of a notebook in it is no text in UTF-8"
    return ""


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """Inside, what nbgrader reads is open: on no such file a lease is taken, by which it waits.

    Raises BlockingIOError where one is held already.
    """
    read = [folder / SECRET_FILE, *folder.glob("*.ipynb")]
    handles: list[int] = []
    try:
        for path in filter(Path.is_file, read):
            handles.append(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
        yield
    finally:
        for handle in handles:
            os.close(handle)

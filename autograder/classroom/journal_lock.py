"""The lock beside a journal: one grader at a time, whatever becomes of it."""

import os
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from autograder.common.course import CourseError
from autograder.common.whole import require_file

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None


_held: set[Path] = set()  # locks of this process: the system's locks do not bind within one


class Busy(CourseError):
    """Another grader is at work."""


class Lock:
    """Held by one grader at a time; the system lets go of it when its process ends, however."""

    def __init__(self, path: Path, folder: Path):
        self._path = path.resolve()
        if self._path in _held:
            raise _taken(folder, os.getpid())
        require_file(self._path)
        self._file = self._path.open("a+b", buffering=0)
        if not _locked(self._file):
            self._file.seek(0)
            holder = self._file.read().decode(errors="replace").strip()
            self._file.close()
            raise _taken(folder, holder)
        _held.add(self._path)
        with suppress(OSError):  # a full disk: it is locked all the same, without saying by whom
            self._file.truncate(0)
            self._file.write(str(os.getpid()).encode())

    def release(self) -> None:
        """Let the next one have it."""
        self._file.close()
        _held.discard(self._path)


def is_held(path: Path) -> bool:
    """Whether somebody holds a lock; nothing is made, and the right to read is enough."""
    path = path.resolve()
    if path in _held:
        return True
    try:
        require_file(path)
        with path.open("rb") as file:
            return not _locked(file, shared=True)
    except OSError:
        return False


def _taken(folder: Path, holder: object) -> Busy:
    which = f" (process {holder})" if holder else ""  # which it writes a moment after it began
    return Busy(
        f"Another grader{which} is at work in {folder}; wait until it is done, or stop it and run "
        "the command again."
    )


def _locked(file: BinaryIO, *, shared: bool = False) -> bool:
    """Lock a file for this process alone: not, as flock would, for all that it forks."""
    try:
        if fcntl:
            fcntl.lockf(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        else:
            import msvcrt

            file.seek(0x7FFFFFFF)  # beyond the text, which others may read
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # pyright: ignore[reportAttributeAccessIssue]
    except OSError:
        return False
    return True

"""What a disk or a gradebook refuses, as one sentence: what, where, what to do."""

import errno
import sqlite3
import sys
import traceback
from collections.abc import Generator
from contextlib import contextmanager

from autograder.common.course import CourseError
from autograder.common.whole import NO_FILE

KEPT = "What was graded is kept; run the same command again then."
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
WHOLE_CLASS = (*FULL, errno.EROFS, errno.EIO, errno.EMFILE, errno.ENFILE)  # no one file's trouble

OF_A_PATH = (errno.EACCES, errno.EPERM, errno.ENAMETOOLONG, errno.ELOOP, NO_FILE)  # asked for


@contextmanager
def in_words(where: object) -> Generator[None]:
    """Inside, what the disk or the gradebook refuses is a CourseError that says so.

    Args:
        where: what is written or read, as the sentence is to name it.
    """
    try:
        yield
    except Exception as error:
        sentence = sentence_of(error, str(where))
        if sentence is None:
            raise
        raise CourseError(sentence) from error


@contextmanager
def ending_in_words() -> Generator[None]:
    """Inside, a CourseError ends a command of nbgrader's, which would show where it was raised."""
    try:
        yield
    except CourseError as error:
        raise SystemExit(f"error: {error}") from error


def sentence_of(error: Exception, where: str) -> str | None:
    """What has happened and what to do; None for an error of another kind."""
    inner = error.__context__
    if type(error).__module__ == "nbgrader.api" and isinstance(inner, Exception):
        error = inner  # nbgrader says what its database refused in an error of its own
    if isinstance(error, OSError):
        return _of_the_disk(error, str(error.filename or where))
    if isinstance(error, ModuleNotFoundError):
        return (
            f"The gradebook {where} needs a database driver that is not installed ({error}); "
            "install it with pip, or name the one that is there in db_url, such as "
            "postgresql+psycopg2://."
        )
    if isinstance(error, ValueError | TypeError) and _is_of_a_row(error):
        return (
            f"The gradebook {where} holds something that is no time where one belongs ({error}): "
            "when an assignment is due, work was handed in, or an extension. Mend it there, or put "
            "a backup in its place."
        )
    text = _databases_words(error)
    return None if text is None else _of_the_gradebook(text, where)


def _is_of_a_row(error: Exception) -> bool:
    """Whether what SQLite holds is not what a column is to hold, as where it is read."""
    frames = traceback.extract_tb(error.__traceback__)
    return (
        bool(frames) and "sqlalchemy" in frames[-1].filename and "processors" in frames[-1].filename
    )


def _of_the_disk(error: OSError, where: str) -> str:
    if error.errno in FULL:
        return f"The disk is full: {where} could not be written. Make room. {KEPT}"
    if error.errno == errno.EROFS:
        return f"{where} lies on a disk that only lets itself be read; make it writable. {KEPT}"
    if error.errno in (errno.ENAMETOOLONG, errno.ELOOP):
        return (
            f"{where[:60]}… is no path that a disk can hold ({error.strerror}); give another one."
        )
    if error.errno in (errno.ENOTDIR, errno.EEXIST):
        return f"{where} cannot be made: a file lies where a folder belongs; move it away. {KEPT}"
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"{where} may not be written or read; give yourself the right to. {KEPT}"
    return f"{where} could not be written or read ({error.strerror or error}). {KEPT}"


def _of_the_gradebook(text: str, where: str) -> str:
    low = text.lower()
    if "locked" in low:
        return (
            f"The gradebook {where} is locked by another program; close it there (formgrader, "
            f"another grader, a database browser). {KEPT}"
        )
    if "is full" in low or "no space left" in low:
        return f"The disk is full: the gradebook {where} could not be written. Make room. {KEPT}"
    if "unable to open" in low:
        return (
            f"The gradebook {where} cannot be opened or made; see that it is no folder, that its "
            f"own folder is there and may be written, and that the disk has room for files. {KEPT}"
        )
    if "disk i/o" in low:
        return (
            f"The disk failed where the gradebook {where} is read or written; see that it is well, "
            "and that what lies beside the gradebook with its name and -wal, -shm or -journal is a "
            f"file. {KEPT}"
        )
    if "readonly" in low or "read-only" in low:
        return f"The gradebook {where} may only be read; make it writable. {KEPT}"
    if "not a database" in low or "malformed" in low:
        return (
            f"{where} is no gradebook that can be read ({text}); put a backup in its place, or "
            "move it away and grade with --again."
        )
    if "no such table" in low or "no such column" in low or "does not exist" in low:
        return (
            f"The gradebook {where} is not what this nbgrader writes ({text}); back it up, then "
            "run `nbgrader db upgrade`."
        )
    return (
        f"The gradebook {where} cannot be reached ({text}); see that db_url is right and its "
        f"server runs. {KEPT}"
    )


def _databases_words(error: Exception) -> str | None:
    """The first line of what a database says that concerns it as a whole, not one row."""
    inner = error
    if "sqlalchemy" in sys.modules:
        from sqlalchemy import exc

        if isinstance(error, exc.ArgumentError | exc.TimeoutError):
            return _first_line(error)
        inner = getattr(error, "orig", None) or error
        if inner is not error and not isinstance(inner, sqlite3.Error):
            concerns_all = isinstance(error, exc.OperationalError | exc.InterfaceError)
            return _first_line(inner) if concerns_all or "does not exist" in str(inner) else None
    concerns_all = type(inner) in (sqlite3.OperationalError, sqlite3.DatabaseError)
    return _first_line(inner) if concerns_all else None


def _first_line(error: object) -> str:
    return str(error).strip().partition("\n")[0][:200]

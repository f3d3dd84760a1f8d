"""Files that a test has written, for the answer to which it hands their names.

The process of an answer has a disk of its own. So what a request names, as a text or a path among
what it hands over, goes with it: regular files below `ROOTS` that came to be or were changed while
a test ran, and folders with such files in them, or into which the answer is to write; and what the
test has removed since is removed there. No link is followed, and nothing is ever read back: what an
answer does to a file, a test does not see.
"""

import hashlib
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PosixPath
from typing import Any

from autograder.bridge.wire import Frame
from autograder.isolation.scratch import ROOTS

MAX_KNOWN = 5000  # files below them; where there are more, none is lent
MAX_FILES = 100  # that go with a request, folders too
MAX_BYTES = 10_000_000  # of them together
MAX_NAMES = 100  # texts of a request that are looked at, and what holds them
MAX_NAME = 1000
MAX_GIVEN = 1000  # names that may be gone later
GONE = False  # in the place of a sign

Sign = tuple[int, int, int]  # tells one state of a file from another, but for a moment's


class Lent:
    """The end of the test."""

    def __init__(self) -> None:
        self.before: dict[Path, Sign] | None = None  # while a test runs, what was there before
        self.made: set[tuple[Path, Sign]] = set()  # by the tests before it
        self.read: dict[str, bytes] = {}  # contents by their digests: some are kept for long
        self.given: dict[str, Path] = {}  # names that were lent, and what lay there

    @contextmanager
    def running(self) -> Iterator[None]:
        """While a test runs."""
        self.before = _files()
        try:
            yield
        finally:
            before, self.before = self.before, None
            if before is not None:
                self.made.update((_files() or {}).items() - before.items())
            self.read.clear()

    def leave(self, frame: Frame, values: Any) -> list[Any]:
        """What goes with a request that hands over these: names, signs and places of contents.

        An answer may change what it was lent, so a file is lent anew only when its sign is new.
        """
        told = self._gone() if self.before is not None else {}
        left = MAX_BYTES
        for name, path in _named_in(values) if self.before is not None else ():
            is_told = name in told and told[name][1] is not GONE  # there may be another one by now
            if is_told or len(told) >= MAX_FILES:
                continue
            sign = _sign(path)
            if sign is None:
                told[name] = [name, None, None]
            elif self._is_tests(path, sign) and sign[1] <= left:
                with suppress(OSError):  # the test may not read it either
                    content, digest = self._read(path)
                    left -= len(content)
                    told[name] = [name, [digest, *sign], frame.add(content)]
            if name in told and len(self.given) < MAX_GIVEN:
                self.given[name] = path
        return [*told.values()]

    def _gone(self) -> dict[str, list[Any]]:
        """What was lent and is there no more: told once, as the answer may write there then."""
        gone = [name for name, path in self.given.items() if not os.path.lexists(path)]
        for name in gone:
            del self.given[name]
        return {name: [name, GONE, None] for name in gone}

    def has_made(self, path: Path) -> bool:
        """Whether a test has made this file what it is."""
        where = path.resolve()
        if self.before is None or not any(Path(root).resolve() in where.parents for root in ROOTS):
            return False
        sign = _sign(where)
        return sign is not None and self._is_tests(where, sign)

    def _is_tests(self, path: Path, sign: Sign) -> bool:
        """Whether a test has made this file what it is."""
        was = (self.before or {}).get(path)
        return was != sign or (path, sign) in self.made

    def _read(self, path: Path) -> tuple[bytes, str]:
        """What a file holds, and a digest of it."""
        content = path.read_bytes()  # no link: nobody but the test writes there
        digest = hashlib.blake2b(content, digest_size=16).hexdigest()
        return self.read.setdefault(digest, content), digest


LENT = Lent()


def _named_in(values: Any) -> Iterator[tuple[str, Path]]:
    """Files and folders that are named among values, in lists and tables too, with their paths."""
    left, seen = [values], 0
    while left and seen < MAX_NAMES:
        one, seen = left.pop(0), seen + 1
        kind = type(one)
        if kind is str or kind is PosixPath:
            yield from _below(str(one))
        elif kind is dict:
            left += [*one.values()][:MAX_NAMES]
        elif kind in (list, tuple):
            left += one[:MAX_NAMES]


def _below(name: str) -> Iterator[tuple[str, Path]]:
    """The file or folder of this name below the roots, and what is in it.

    Of what is not there yet its folder: an answer may be about to write it.
    """
    if not 0 < len(name) <= MAX_NAME:
        return
    given, is_there = Path(name), os.path.lexists(name)
    if not is_there:
        given = given.parent
        if given == Path() or not os.path.lexists(f"{given}/."):
            return
    path = given.parent.resolve() / given.name
    if ".." in given.parts or not any(Path(root).resolve() in path.parents for root in ROOTS):
        return  # in the answer's process, other folders lie above
    if _is_plain(path):
        yield name if is_there else str(given), path
        for here, folders, files in os.walk(path) if is_there else ():
            for inner in (Path(here, one) for one in (*folders, *files)):
                if _is_plain(inner):
                    yield str(given / inner.relative_to(path)), inner


def _is_plain(path: Path) -> bool:
    """Whether this is a regular file or a folder, and no link to one."""
    with suppress(OSError):
        mode = path.lstat().st_mode
        return stat.S_ISREG(mode) or stat.S_ISDIR(mode)
    return False


def _sign(path: Path) -> Sign | None:
    """The state of a regular file; None for anything else."""
    with suppress(OSError):
        found = path.lstat()
        if stat.S_ISREG(found.st_mode):
            return found.st_mtime_ns, found.st_size, found.st_ino
    return None


def _files() -> dict[Path, Sign] | None:
    """The regular files below the roots; None if there are no roots, or too many files."""
    found: dict[Path, Sign] = {}
    for root in ROOTS:
        for here, _, files in os.walk(Path(root).resolve()):
            for path in (Path(here, one) for one in files):
                if (sign := _sign(path)) is not None:
                    found[path] = sign
            if len(found) > MAX_KNOWN:
                return None
    return found if ROOTS else None


# --- the answer's end -----------------------------------------------------------------------------


class Borrowed:
    """The files that tests have lent to this process."""

    def __init__(self) -> None:
        self.signs: dict[str, list[Any]] = {}

    def arrive(self, frame: Frame, told: Any) -> None:
        """Lay what came with a request under the names that it has there, each state of it once."""
        for name, sign, place in told:
            path = Path(name)
            with suppress(OSError):  # something lies there, or the disk is full
                if sign is GONE:
                    self._remove(name, path)
                elif place is None:
                    if name in self.signs and path.is_file():  # there was a file of that name
                        self._remove(name, path)
                    path.mkdir(parents=True, exist_ok=True)
                elif self.signs.get(name) != sign:
                    if path.is_dir():
                        self._remove(name, path)
                    self.signs[name] = sign
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(frame.buffers[place])
                    os.utime(path, ns=(sign[1], sign[1]))

    def _remove(self, name: str, path: Path) -> None:
        self.signs.pop(name, None)
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)

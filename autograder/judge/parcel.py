"""What lies in a submission's folder, as bytes: taken by the one process that may see every folder.

Nothing is parsed here. No link is followed at any level, nothing is opened but plain files, and
size, number and depth are bounded. A parcel goes as it is to the process that reads and grades it,
which sees no folder at all.
"""

import hashlib
import json
import os
import re
import stat
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from autograder.common.names import shown
from autograder.common.times import moment
from autograder.judge.assignment import Assignment

MAX_BYTES = 20_000_000  # of one file
MAX_ALL = 60_000_000  # of all files that are taken
MAX_FILES = 500  # looked at in a submission's folder
MAX_FOLDERS = 200
MAX_CANDIDATES = 10  # notebooks of other names that are taken along
MAX_DEPTH = 2  # of folders in the submission's
LATEST = 253_402_214_400.0  # the last day of the year 9999; what is later cannot be written down
NOTEBOOK = re.compile(r"\.ipynb(\.txt|\.json)?[\s.]*$|\.json$", re.IGNORECASE)
DATA = re.compile(r"(?<!\.ipynb)\.json$", re.IGNORECASE)  # less likely a notebook than others
STAMP, SECRET_FILE = "timestamp.txt", "submission_secret.txt"  # as nbgrader calls them
NOT_EXTRA = (STAMP, SECRET_FILE, ".ipynb_checkpoints", ".DS_Store")
SECRET = re.compile(r"[0-9A-Fa-f-]{16,256}")  # as `nbgrader submit` draws one, or a UUID
HEAD = struct.Struct("!I")
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
_FILE = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_FILE |= getattr(os, "O_BINARY", 0)
BY_HANDLE = os.open in os.supports_dir_fd and os.scandir in os.supports_fd


class Unreadable(Exception):
    """Why a file or a notebook cannot be taken; for the student."""


@dataclass(frozen=True)
class Place:
    """Where a student's work on an assignment lies."""

    folder: Path
    above: int = 2  # folders at the end of the path that the student may have made
    only: frozenset[str] | None = None  # names in it that are meant, if not all
    note: str = ""  # for the student, where it does not lie where it should
    reason: str = ""  # why nothing is taken


@dataclass(frozen=True)
class Parcel:
    """What was handed in."""

    names: tuple[str, ...] = ()  # of the plain files, those in folders with a slash
    files: Mapping[str, bytes] = field(default_factory=dict)  # those that may matter
    refused: Mapping[str, str] = field(default_factory=dict)  # of these, why they were not taken
    special: Mapping[str, str] = field(default_factory=dict)  # what is no plain file, and its kind
    collected: float | None = None  # when it came to lie here, or as `trust_timestamp` says
    stamp: str | None = None  # what timestamp.txt says, which its student may have written
    unseen: str = ""  # of folders into which nobody looked, the first and why
    reason: str = ""  # why there is nothing at all
    note: str = ""  # where it was found, if not where it should have been
    secret: str = ""  # by which its student fetches the feedback; no worker gets to see it

    def key(self, digest: str) -> str:
        """sha256 of what was taken and named, together with the digest of what it is graded by."""
        found = hashlib.sha256(digest.encode())
        said = self.refused, self.special, self.reason, self.note
        named = [name for name in self.names if self._is_only_named(name)]
        said += ({"named": sorted(named)},) if named else ()
        said += (self.secret,) if self.secret else ()
        said += ({"told": self.stamp},) if self.stamp is not None else ()  # so since long ago
        said += ({"unseen": self.unseen},) if self.unseen else ()
        found.update(json.dumps(said, sort_keys=True).encode())
        for name, content in sorted(self.files.items()):
            found.update(json.dumps([name, len(content)]).encode() + content)
        return found.hexdigest()

    def _is_only_named(self, name: str) -> bool:
        """Whether a file counts by its name alone, as one that a page says was found."""
        extra = not any(part in NOT_EXTRA for part in name.split("/"))
        return extra and name not in self.files and name not in self.refused

    def digest_of(self, wanted: Callable[[str], bool]) -> str:
        """sha256 of the files of these names."""
        found = hashlib.sha256()
        for name, content in sorted(self.files.items()):
            if wanted(name):
                found.update(json.dumps([name, len(content)]).encode() + content)
        return found.hexdigest()

    def pack(self) -> bytes:
        """As bytes, for the way to another process."""
        head = json.dumps(
            {
                "names": self.names,
                "sizes": {name: len(content) for name, content in self.files.items()},
                "refused": dict(self.refused),
                "special": dict(self.special),
                "collected": self.collected,
                "unseen": self.unseen,
                "reason": self.reason,
                "note": self.note,
            }
        ).encode()
        return b"".join([HEAD.pack(len(head)), head, *self.files.values()])

    @classmethod
    def unpack(cls, data: bytes) -> "Parcel":
        """What `pack` made."""
        (size,) = HEAD.unpack_from(data)
        at = HEAD.size + size
        head = json.loads(data[HEAD.size : at])
        files = {}
        for name, length in head.pop("sizes").items():
            files[name] = data[at : at + length]
            at += length
        return cls(**{**head, "names": tuple(head["names"]), "files": files})


def folders_of(names: Iterable[str]) -> frozenset[str]:
    """The folders, each with a slash at its end, in which these files were handed in."""
    return frozenset(name[: name.rindex("/") + 1] for name in names if "/" in name)


def beside(name: str, folders: Iterable[str]) -> Iterator[str]:
    """What a file may be called by an answer: in a folder that holds the notebook as beside it."""
    for folder in sorted(folders):
        if name.startswith(folder):
            yield name.removeprefix(folder)
    yield name


def collect(place: Place, assignment: Assignment) -> Parcel:
    """Take what lies in a place; every end of it is a parcel."""
    if place.reason:
        return Parcel(reason=place.reason)
    with ExitStack() as opened:
        try:
            return _Taker(place, assignment, opened).parcel()
        except Unreadable as error:
            return Parcel(reason=str(error), note=place.note)


class _Taker:
    """A submission's folder, listed once and read by handles: nothing is swapped meanwhile."""

    def __init__(self, place: Place, assignment: Assignment, opened: ExitStack) -> None:
        self.place = place
        self.assignment = assignment
        self.opened = opened
        self.folders: dict[str, int | Path] = {"": self._root(place)}
        self.special: dict[str, str] = {}
        self.times: dict[str, float] = {}
        self.looked_at = 0
        self.unseen = ""
        self.passed_over = ""  # a folder of copies that an editor keeps

    def parcel(self) -> Parcel:
        """What is there."""
        self.times[""] = self._stat("").st_ctime
        names = list(self._names())
        folders = folders_of(names)  # what lies in one may be what is meant
        special = {name: kind for name, kind in self.special.items() if f"{name}/" not in folders}
        files: dict[str, bytes] = {}
        refused: dict[str, str] = {}
        left = MAX_ALL
        if self.passed_over and not names and not self.unseen:
            self.unseen = f"what lies in {self.passed_over} is not what was handed in"
        for name in self._wanted(names):
            try:
                files[name] = self._read(name, min(MAX_BYTES, left))
                left -= len(files[name])
            except Unreadable as error:
                refused[name] = str(error)
        return Parcel(
            names=tuple(sorted(names)),
            files=files,
            refused=refused,
            special=special,
            collected=self._collected(files),
            stamp=self._stamp(),
            unseen=self.unseen,
            note=self.place.note,
            secret=self._secret(),
        )

    def _wanted(self, names: list[str]) -> list[str]:
        """The notebooks, files that may be notebooks under other names, and what is allowed."""
        expected = self._expected()
        found = [name for name in expected if name in names]
        others = [name for name in names if name not in expected and NOTEBOOK.search(name)]
        others.sort(key=lambda name: bool(DATA.search(name)))
        folders = folders_of(name for name in names if NOTEBOOK.search(name))
        allowed = [
            name
            for name in names
            if any(map(self.assignment.allowed_files, beside(name, folders)))
            and not {*name.split("/")} & {*NOT_EXTRA}
        ]
        return list(dict.fromkeys([*found, *others[:MAX_CANDIDATES], *allowed]))

    def _expected(self) -> list[str]:
        return [f"{notebook.name}.ipynb" for notebook in self.assignment.notebooks]

    def _first(self, above: str) -> list[str]:
        """What is looked for in a folder by its name, however much lies beside it."""
        wanted = self._expected()
        if not above:
            wanted = [*sorted(self.place.only or wanted), STAMP]
        return [name for name in wanted if self._is_there(above + name)]

    def _is_there(self, name: str) -> bool:
        with suppress(OSError):
            return bool(self._stat(name))
        return False

    def _collected(self, files: Mapping[str, bytes]) -> float | None:
        """When it was handed in, if the rules trust what it says; or when it was written here.

        A file's own time is its student's: who collects by copying copies it too.
        """
        if self.assignment.rules.late.trust_timestamp:
            with suppress(ValueError, OverflowError, OSError):
                return min(max(moment(self._stamp() or ""), 0.0), LATEST)
            return None
        when = max(self.times[name] for name in ("", *files))
        return min(max(when, 0.0), LATEST)

    def _stamp(self) -> str | None:
        """What timestamp.txt says; empty if it is there and cannot be read."""
        with suppress(Unreadable):
            return self._read(STAMP, 1000)[:100].decode("utf-8", "replace").strip()
        return "" if self._is_there(STAMP) else None

    def _secret(self) -> str:
        """What `nbgrader submit` wrote beside the work, if it is of that form."""
        with suppress(Unreadable):
            told = self._read(SECRET_FILE, 1000).decode("ascii", "replace")
            return told if SECRET.fullmatch(told) else ""
        return ""

    def _root(self, place: Place) -> int | Path:
        """The submission's folder, reached without a link among what the student has made."""
        kinds = ("the submission", "the student's folder", "the folder above")
        made = [place.folder, *place.folder.parents][: place.above]
        for folder, kind in zip(made[::-1], kinds[: len(made)][::-1], strict=True):
            try:
                status = os.lstat(folder)
            except OSError as error:
                raise Unreadable("nothing was submitted (the folder is missing)") from error
            if not stat.S_ISDIR(status.st_mode):
                raise Unreadable(f"{kind} is {_kind_of(status.st_mode)}, not a folder")
        if not BY_HANDLE:
            return place.folder
        handle = self._open(made[-1].parent, None, os.O_RDONLY)
        for folder in made[::-1]:
            handle = self._open(folder.name, handle, _FOLDER)
        return handle

    def _open(self, name: str | Path, above: int | None, flags: int) -> int:
        try:
            handle = os.open(name, flags | getattr(os, "O_CLOEXEC", 0), dir_fd=above)
        except OSError as error:
            raise Unreadable(f"the folder cannot be read ({error.strerror})") from error
        self.opened.callback(os.close, handle)
        return handle

    def _names(self) -> Iterator[str]:
        """Names of the plain files, those in folders with a slash; what lies deeper comes later."""
        level = [""]
        for depth in range(MAX_DEPTH + 1):
            inner: list[str] = []
            for above in level:
                for last in self._list(above):
                    if self._is_file(above + last):
                        yield above + last
                    elif self._is_folder(above, last, depth):
                        inner.append(f"{above}{last}/")
            level = inner

    def _list(self, above: str) -> list[str]:
        """Names in a folder, as many as are looked at in all."""
        try:
            with os.scandir(self.folders[above]) as entries:
                found = set(self._first(above))
                for entry in entries:
                    self.looked_at += 1
                    if self.looked_at > MAX_FILES:
                        self.unseen = self.unseen or f"only {MAX_FILES} files were looked at"
                        break
                    found.add(entry.name)
        except OSError as error:
            if not above:
                raise Unreadable(f"the folder cannot be read ({error.strerror})") from error
            return []
        meant = None if above else self.place.only
        return sorted(name for name in found if meant is None or name in meant)

    def _is_file(self, name: str) -> bool:
        """Whether this is a plain file; what is neither that nor a folder is noted."""
        try:
            status = self._stat(name)
        except OSError:
            self.special[name] = "not readable"
            return False
        if stat.S_ISREG(status.st_mode):
            self.times[name] = status.st_ctime
            return True
        if not stat.S_ISDIR(status.st_mode):
            self.special[name] = _kind_of(status.st_mode)
        return False

    def _is_folder(self, above: str, last: str, depth: int) -> bool:
        """Whether this is a folder into which to look; it is open then."""
        name = above + last
        if name in self.special:
            return False
        if last.endswith(".ipynb"):  # as what unpacks numbers.ipynb.zip may call it
            self.special[name] = "a folder"
        if last in NOT_EXTRA:
            self.passed_over = last
        elif depth < MAX_DEPTH and len(self.folders) < MAX_FOLDERS:
            return self._enter(name + "/")
        elif not self.unseen:
            why = "lies too deep" if depth >= MAX_DEPTH else "is one of too many"
            self.unseen = f"the folder {shown(name)} {why} to be looked into"
        return False

    def _enter(self, name: str) -> bool:
        above, last = self._split(name.rstrip("/"))
        if isinstance(above, Path):
            self.folders[name] = above / last
            return True
        try:
            self.folders[name] = self._open(last, above, _FOLDER)
        except Unreadable:
            self.special[name.rstrip("/")] = "not readable"
            return False
        return True

    def _split(self, name: str) -> tuple[int | Path, str]:
        """The folder that holds this, as it can be opened, and the last part of the name."""
        above, slash, last = name.rpartition("/")
        return self.folders[above + slash], last

    def _stat(self, name: str) -> os.stat_result:
        above, last = self._split(name)
        if isinstance(above, Path):
            return os.lstat(above / last)
        if not last:
            return os.fstat(above)
        return os.stat(last, dir_fd=above, follow_symlinks=False)

    def _read(self, name: str, limit: int) -> bytes:
        above, last = self._split(name)
        if isinstance(above, Path):
            return read_file(above / last, limit)
        return read_file(Path(last), limit, above)


def read_file(path: Path, limit: int = MAX_BYTES, above: int | None = None) -> bytes:
    """The bytes of a plain file; raises Unreadable for anything else, links included.

    Args:
        path: the file; its name alone if `above` is given.
        limit: bytes that it may hold.
        above: a handle on the folder that holds it.
    """
    try:
        status = os.stat(path, dir_fd=above, follow_symlinks=False)
        if not stat.S_ISREG(status.st_mode):  # also where the system cannot refuse it below
            raise Unreadable(f"{shown(path.name)} is {_kind_of(status.st_mode)}, not a file")
        handle = os.open(path, _FILE | getattr(os, "O_CLOEXEC", 0), dir_fd=above)
    except OSError as error:
        raise Unreadable(f"{shown(path.name)} cannot be opened ({error.strerror})") from error
    words = ", its outputs included" if path.suffix == ".ipynb" else ""
    too_large = Unreadable(f"{shown(path.name)} is larger than {limit // 1_000_000} MB{words}")
    try:
        with os.fdopen(handle, "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise Unreadable(f"{shown(path.name)} is {_kind_of(status.st_mode)}, not a file")
            if status.st_size > limit:
                raise too_large
            content = file.read(limit + 1)
    except OSError as error:
        raise Unreadable(f"{shown(path.name)} cannot be read ({error.strerror})") from error
    if len(content) > limit:
        raise too_large
    return content


def _kind_of(mode: int) -> str:
    if stat.S_ISREG(mode):
        return "a file"
    if stat.S_ISDIR(mode):
        return "a folder"
    if stat.S_ISLNK(mode):
        return "a link"
    return "a pipe" if stat.S_ISFIFO(mode) else "a device"


def at(folder: Path) -> Place:
    """The place that is this folder."""
    return replace(Place(folder), above=1)

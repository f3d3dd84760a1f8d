"""Unpack one archive that a student or a system made, within bounds and into one folder.

A bad member is left out and told; a bad archive is refused with CourseError, and nothing stays.
Each is read in a process of its own, within a time and a memory.
"""

import bz2
import gzip
import lzma
import os
import re
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path, PurePath, PurePosixPath
from tempfile import TemporaryDirectory
from typing import IO, Any, NamedTuple

from autograder.common.course import CourseError
from autograder.common.failures import WHOLE_CLASS
from autograder.common.names import shown
from autograder.isolation.apart import MEMORY, apart

MAX_FILES = 1000  # of one archive, and of one hand-in
MAX_UNPACKED = 200_000_000  # bytes of one student's
MAX_OF_ONE = 5 * MAX_FILES  # files of one student's, archives in archives too
MAX_RATIO = 100
MAX_PATH = 200  # bytes of one name in a path
MAX_PARTS = 20
MAX_LENGTH = 400  # bytes of a whole path: what looks at one may take the square of it
FOLDER = 4000  # bytes that an empty folder takes on a disk, about
MAX_HEADER = 1 << 14  # bytes of what a tar says of one member
MIN_SECONDS, SLOWEST = 20, 10_000_000  # of processor time for an archive; bytes in a second more
ENCRYPTED = 1  # among a member's flags
DENSEST = 1000  # times its size, to which what packs files takes them
MAX_NESTED = 50_000_000  # bytes of an archive in an archive; whoever prints much needs so many
DRIVE = re.compile(r"[A-Za-z]:/")  # begins a path of Windows that leads elsewhere
PACKERS: dict[str, Callable[[Path], Any]] = {  # of tars, by how their names end
    **dict.fromkeys((".gz", ".tgz"), gzip.open),
    **dict.fromkeys((".bz2", ".tbz2", ".tbz"), bz2.open),
    **dict.fromkeys((".xz", ".txz"), lzma.open),
}
ENDINGS = (".zip", ".gz", ".tar", ".tgz", ".tbz2", ".tbz", ".txz")  # of what can be unpacked
BROKEN = (
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    gzip.BadGzipFile,
)

Whose = Callable[[Path], str]  # who handed in what will lie there; empty if nobody knows


@dataclass
class Bounds:
    """How much may come out of an archive."""

    files: int  # folders too
    size: int  # bytes

    def of(self, archive: Path) -> "Bounds":
        """The same, and not more than 50 MB or 100 times what the archive takes."""
        most = max(MAX_NESTED, archive.stat().st_size * MAX_RATIO)
        return Bounds(self.files, min(self.size, most))


class Full(Exception):
    """There is no room for more."""


@dataclass
class Room:
    """What has come out so far, and how much may."""

    bounds: Bounds
    what: str  # it is room for
    files: int = 0
    size: int = 0

    def lacks(self, files: int, size: int) -> str:
        """What is too much with so much more; empty if nothing is."""
        if self.files + files > self.bounds.files:
            return f"{self.what} holds more than {self.bounds.files} files"
        if self.size + size > self.bounds.size:
            return f"{self.what} would unfold to more than {self.bounds.size / 1e6:.3g} MB"
        return ""

    def take(self, files: int, size: int) -> None:
        """Count what is written."""
        self.files += files
        self.size += size

    def left(self) -> Bounds:
        """How much more may come."""
        return Bounds(self.bounds.files - self.files, self.bounds.size - self.size)


class Rooms:
    """What has come out of an archive so far: in all and, where it is a class's, of each student.

    Nobody's share is smaller for what somebody else has handed in.
    """

    def __init__(
        self, what: str, bounds: Bounds, whose: Callable[[PurePosixPath], str] | None = None
    ):
        self.whole = Room(bounds, what)
        self.whose = whose
        self.shares: dict[str, Room] = {}

    def share(self, student: str) -> Room:
        """One student's."""
        bounds = Bounds(MAX_OF_ONE, MAX_UNPACKED)
        return self.shares.setdefault(student, Room(bounds, "what one student handed in"))

    def of(self, path: PurePosixPath) -> list[Room]:
        """All that have to have room for a file."""
        return [self.whole, *([self.share(self.whose(path))] if self.whose else [])]


def take_room(rooms: list[Room], files: int, size: int) -> None:
    """Count what is about to be written; Full if there is no room for it."""
    for room in rooms:
        if words := room.lacks(files, size):
            raise Full(words)
    for room in rooms:
        room.take(files, size)


class Unpacked(NamedTuple):
    """What came out of an archive."""

    left: list[str]  # out, and why
    files: int  # folders too
    size: int  # bytes
    shares: dict[str, tuple[int, int]]  # the same of each student, where that was asked


class _Header(tarfile.TarInfo):
    """A tar's header, which is read only if it is as long as an honest one may be.

    Python's tarfile looks for a number in it, in time that grows with the square of its length.
    """

    def _proc_member(self, tarfile: tarfile.TarFile) -> Any:
        if not (self.isreg() or self.isdir()) and self.size > MAX_HEADER:
            raise ValueError(f"it has a header of {self.size} bytes")
        return super()._proc_member(tarfile)  # pyright: ignore[reportAttributeAccessIssue]


@dataclass
class _Member:
    """One member of an archive, as it calls itself."""

    name: str
    is_folder: bool
    is_plain: bool  # a file or a folder, no link or device
    size: int  # no more comes out
    open: Callable[[], IO[bytes]]


def safe_unzip(
    archive: Path, target: Path, bounds: Bounds | None = None, whose: Whose | None = None
) -> Unpacked:
    """Unpack a zip or tar of submissions.

    Links, doubled names and members that cannot be read are left out; of a name that leads out of
    the target the last parts count. An archive that would unfold to more than the bounds (by
    default 200 MB, 1000 files or 100 times its size), or that takes too long, is refused with
    CourseError, and nothing stays. Where it is a class's, and `whose` says so of each file, every
    student has bounds of his own; what is beyond them is left out alone.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    if os.path.lexists(target):
        raise CourseError(f"{target} exists; name a folder that does not.")
    bounds = bounds or Bounds(MAX_FILES, MAX_UNPACKED)
    bounds = bounds if whose else bounds.of(archive)
    rooms = Rooms("it", bounds, (lambda path: whose(target / path)) if whose else None)
    seconds = MIN_SECONDS + min(bounds.size, archive.stat().st_size * DENSEST) // SLOWEST
    try:  # in a folder of a name that nobody can have taken
        with TemporaryDirectory(
            prefix=".unpacking-", dir=target.parent, ignore_cleanup_errors=True
        ) as folder:
            content = Path(folder) / "content"
            content.mkdir()
            told = apart(lambda: _told(archive, content, rooms), seconds)
            unpacked = _heard(archive, told, seconds)
            content.replace(target)
    except OSError as error:
        raise _refusal(archive, error) from error
    return unpacked


def _told(archive: Path, target: Path, rooms: Rooms) -> dict[str, Any]:
    """Unpack, and say how it went in a way that can be written to another process."""
    try:
        return {"unpacked": _unpack(archive, target, rooms)}
    except Exception as error:  # noqa: BLE001  (whatever a library makes of somebody's bytes)
        try:
            return {"refused": str(_refusal(archive, error))}
        except OSError as ends:
            return {"ends": [ends.errno, ends.strerror, str(target)]}


def _heard(archive: Path, told: Any, seconds: int) -> Unpacked:
    if told is None:
        raise CourseError(
            f"{archive} cannot be unpacked in {seconds} s and {MEMORY >> 20} MB; it was refused."
        )
    if "ends" in told:
        raise OSError(*told["ends"])
    if "refused" in told:
        raise CourseError(told["refused"])
    return Unpacked(*told["unpacked"])


def _refusal(archive: Path, error: Exception) -> CourseError:
    """An error in words; raised again if it is no one archive's trouble."""
    if isinstance(error, CourseError):
        return error
    if isinstance(error, Full):
        return CourseError(f"{archive} {str(error).removeprefix('it ')}; it was refused.")
    if isinstance(error, BROKEN):
        return CourseError(f"{archive} is no archive that can be read ({error}).")
    if concerns_all(error):
        raise error
    return CourseError(f"{archive} cannot be unpacked ({words_of(error)}).")


def concerns_all(error: Exception) -> bool:
    """Whether an error is no one file's trouble: a full disk, one that only lets itself be read."""
    return isinstance(error, OSError) and error.errno in WHOLE_CLASS


def words_of(error: Exception) -> str:
    """What an error says, in short; its kind if it says nothing that a person would know."""
    if isinstance(error, OSError):
        return shown(error.strerror or str(error))
    known = isinstance(error, (*BROKEN, Full, NotImplementedError, RuntimeError, ValueError))
    return shown(str(error)) if known and str(error) else type(error).__name__


def _unpack(archive: Path, target: Path, rooms: Rooms) -> Unpacked:
    made = {target}
    with _members(archive, target, rooms.whole.bounds) as members:
        placed, left = _placed(members)
        # a large one takes no small one's room
        for path in sorted(placed, key=lambda path: (placed[path].is_folder, placed[path].size)):
            member = placed[path]
            if _is_somebody_elses(member, path, rooms):
                left.append(f"{shown(member.name)} (it names one student, and leads to another)")
                continue
            try:
                _copy(member, target / path, rooms.of(path), made)
            except Exception as error:
                if concerns_all(error) or (isinstance(error, Full) and not rooms.whose):
                    raise
                left.append(f"{shown(member.name)} ({words_of(error)})")
    shares = {student: (room.files, room.size) for student, room in rooms.shares.items()}
    return Unpacked(left, rooms.whole.files, rooms.whole.size, shares)


@contextmanager
def _members(archive: Path, target: Path, bounds: Bounds) -> Iterator[Iterator[_Member]]:
    """The archive's members, whichever kind of archive it is."""
    with ExitStack() as stack:
        if zipfile.is_zipfile(archive):
            file = stack.enter_context(zipfile.ZipFile(archive))
            infos: list[Any] = file.infolist()
            found = (_zipped(file, info) for info in infos)
        else:
            plain = stack.enter_context(_uncompressed(archive, target, bounds))
            tar = stack.enter_context(tarfile.open(plain, "r:", tarinfo=_Header))
            infos = [info for info, _ in zip(tar, range(bounds.files + 1), strict=False)]
            found = (_tarred(tar, info) for info in infos)
        if len(infos) > bounds.files:
            raise Full(f"it holds more than {bounds.files} files")
        yield found


def _zipped(file: zipfile.ZipFile, info: zipfile.ZipInfo) -> _Member:
    mode = info.external_attr >> 16
    plain = not stat.S_IFMT(mode) or stat.S_ISREG(mode) or stat.S_ISDIR(mode)
    is_folder = info.filename.endswith("/")  # what is_dir() asks, but a name may be empty

    def opened() -> IO[bytes]:
        if info.flag_bits & ENCRYPTED:
            raise ValueError("it has a password; ask for a zip file without one")
        return file.open(info)

    return _Member(info.filename, is_folder, plain, info.file_size, opened)


def _tarred(tar: tarfile.TarFile, info: tarfile.TarInfo) -> _Member:
    def opened() -> IO[bytes]:
        found = tar.extractfile(info)
        if found is None:
            raise ValueError("it has no content")
        return found

    return _Member(info.name, info.isdir(), info.isreg() or info.isdir(), info.size, opened)


@contextmanager
def _uncompressed(archive: Path, target: Path, bounds: Bounds) -> Iterator[Path]:
    """A tar on the disk, where its headers cannot name more bytes than there are."""
    unpack = PACKERS.get(PurePath(written(archive.name)).suffix.lower())
    if unpack is None:
        yield archive
        return
    plain, room = target.with_name(f"{target.name}.tar"), Room(bounds, "it")
    try:
        with unpack(archive) as source, plain.open("xb") as copy:
            while piece := source.read(1 << 16):
                take_room([room], 0, len(piece))
                copy.write(piece)
        yield plain
    finally:
        plain.unlink(missing_ok=True)


def _placed(members: Iterator[_Member]) -> tuple[dict[PurePosixPath, _Member], list[str]]:
    """Where each member goes, below the target, and which go nowhere; of one name the first goes.

    Those whose names lead elsewhere go where they would lie if the folder that they share were
    the target.
    """
    found = [(member, _parts(member)) for member in members]
    away = [parts[:-1] for member, parts in found if parts and _leads_elsewhere(member.name)]
    shared = begin_alike(away)
    placed: dict[PurePosixPath, _Member] = {}
    left: list[str] = []
    for member, parts in found:
        path = PurePosixPath(*parts[shared if _leads_elsewhere(member.name) else 0 :])
        before = placed.get(path)
        if not path.parts or (before and not (before.is_folder and member.is_folder)):
            left.append(shown(member.name) or "a member without a name")
        else:
            placed[path] = member
    return placed, left


def _is_somebody_elses(member: _Member, path: PurePosixPath, rooms: Rooms) -> bool:
    """Whether a name begins as one student's and leads, by "..", to where another's work lies.

    A system writes the beginning, and the student the end.
    """
    parts = PurePosixPath(DRIVE.sub("", member.name.replace("\\", "/"), count=1)).parts
    whole = PurePosixPath(*(part for part in parts if part not in ("/", "//", "..")))
    if not rooms.whose or ".." not in parts or whole == path:
        return False
    begins_as = rooms.whose(whole)
    return bool(begins_as) and begins_as != rooms.whose(path)


def begin_alike(sequences: Iterable[Sequence[str]]) -> int:
    """How many of the first items all have."""
    columns = zip(*sequences, strict=False)
    return sum(1 for _ in takewhile(lambda column: len(set(column)) == 1, columns))


def _leads_elsewhere(name: str) -> bool:
    name = name.replace("\\", "/")
    return name.startswith("/") or bool(DRIVE.match(name)) or ".." in name.split("/")


def _parts(member: _Member) -> tuple[str, ...]:
    """The last parts of a name, which lead nowhere else; empty if it may not be so called."""
    name = member.name.replace("\\", "/")
    parts = PurePosixPath(DRIVE.sub("", name, count=1)).parts
    if not member.is_plain or len(parts) > MAX_PARTS or _size(name) > MAX_LENGTH:
        return ()
    last = max((place for place, part in enumerate(parts) if part in ("/", "//", "..")), default=-1)
    parts = parts[last + 1 :]
    return parts if all(is_a_name(part) for part in parts) else ()


def is_a_name(part: str) -> bool:
    """Whether a file may be called so: to Windows, what follows a colon is no part of a name.

    Elsewhere it is a sign like any other, which systems write in times.
    """
    odd = "\0:" if os.name == "nt" else "\0"
    return not any(sign in part for sign in odd) and _size(part) <= MAX_PATH


def written(name: str) -> str:
    """A name without the blanks and dots at its end that nobody sees."""
    return name.rstrip(" \t\r\n.\u00a0")


def _size(name: str) -> int:
    return len(name.encode("utf-8", "surrogatepass"))


def _copy(member: _Member, path: Path, rooms: list[Room], made: set[Path]) -> None:
    """Write one member in pieces, if there is room; keeps whole files only."""
    _make(path if member.is_folder else path.parent, rooms, made)
    if member.is_folder:
        return
    if member.size < 0:  # which would make room for others
        raise ValueError("it says that it is smaller than nothing")
    take_room(rooms, 1, member.size)
    with member.open() as source, path.open("xb") as copy:
        try:
            shutil.copyfileobj(source, copy, 1 << 16)
        except Exception:
            path.unlink()
            raise


def _make(folder: Path, rooms: list[Room], made: set[Path]) -> None:
    """Make a folder and those above it."""
    if folder not in made:
        _make(folder.parent, rooms, made)
        take_room(rooms, 1, FOLDER)
        folder.mkdir(exist_ok=True)
        made.add(folder)

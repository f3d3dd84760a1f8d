"""Unpack what was downloaded from a learning management system; no archive harms another one.

    c.ZipCollectApp.extractor_plugin = "autograder.unzip.SafeExtractor"
    c.ZipCollectApp.collector_plugin = "autograder.unzip.SafeCollector"

`nbgrader zip_collect` would stop for everybody at the first archive with a bad member. Here a bad
member is left out and named in the log, a bad archive is refused alone, and everybody else's work
is collected.
"""

import gzip
import os
import re
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from lzma import LZMAError
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import IO, Any, NamedTuple

from nbgrader.apps.zipcollectapp import ZipCollectApp
from nbgrader.plugins.zipcollect import ExtractorPlugin, FileNameCollectorPlugin
from nbgrader.utils import parse_utc

from autograder.apart import MEMORY, apart
from autograder.course import CourseError
from autograder.failures import WHOLE_CLASS, sentence_of
from autograder.names import clean_log, shown

MAX_FILES = 1000
MAX_UNPACKED = 200_000_000  # bytes
MAX_RATIO = 100
MAX_PATH = 200  # bytes of one name in a path
MAX_PARTS = 20
MAX_LENGTH = 400  # bytes of a whole path: what looks at one may take the square of it
FOLDER = 4000  # bytes that an empty folder takes on a disk, about
LMS_FILES = 100_000  # in what was downloaded: a whole class may be in one archive
MAX_HEADER = 1 << 14  # bytes of what a tar says of one member
MIN_SECONDS, SLOWEST = 20, 10_000_000  # of processor time for an archive; bytes in a second more
MAX_NESTED = 50_000_000  # bytes of an archive in an archive
MAX_INNER = 5000  # archives in an archive
DRIVE = re.compile(r"[A-Za-z]:/")  # begins a path of Windows that leads elsewhere
INNER = ".unpacked"  # ends the name of a folder that was an archive in an archive
BLACKBOARD = re.compile(r"(?P<day>\d{4}-\d\d?-\d\d?)[- ](?P<time>\d\d?-\d\d?(-\d\d?)?)", re.ASCII)
BROKEN = (zipfile.BadZipFile, tarfile.TarError, zlib.error, LZMAError, EOFError, gzip.BadGzipFile)


@dataclass
class Bounds:
    """How much may come out of an archive."""

    files: int  # folders too
    size: int  # bytes

    def of(self, archive: Path) -> "Bounds":
        """The same, and not more than 100 times what the archive takes."""
        return Bounds(
            self.files, min(self.size, max(1_000_000, archive.stat().st_size * MAX_RATIO))
        )


@dataclass
class _Room:
    """What has come out of an archive so far; more than the bounds is CourseError."""

    archive: Path
    bounds: Bounds
    made: set[Path]  # folders
    files: int = 0
    size: int = 0

    def take(self, files: int, size: int) -> None:
        """Count what is about to be written."""
        self.files += files
        self.size += size
        if self.files > self.bounds.files:
            raise _too_many(self.archive, self.bounds)
        if self.size > self.bounds.size:
            raise CourseError(
                f"{self.archive} would unfold to more than {self.bounds.size // 1_000_000} MB; "
                "it was refused."
            )

    def make(self, folder: Path) -> None:
        """Make a folder and those above it."""
        if folder not in self.made:
            self.make(folder.parent)
            self.take(1, FOLDER)
            folder.mkdir(exist_ok=True)
            self.made.add(folder)


class Unpacked(NamedTuple):
    """What came out of an archive."""

    left: list[str]  # out, and why
    files: int  # folders too
    size: int  # bytes


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
    open: Callable[[], IO[bytes]]


def safe_unzip(archive: Path, target: Path, bounds: Bounds | None = None) -> Unpacked:
    """Unpack a zip or tar of submissions.

    Links, names that lead out of the target, doubled names and members that cannot be read are left
    out. An archive that would unfold to more than the bounds (by default 200 MB, 1000 files or 100
    times its size), or that takes too long, is refused with CourseError, and nothing stays.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    if os.path.lexists(target):
        raise CourseError(f"{target} exists; name a folder that does not.")
    bounds = (bounds or Bounds(MAX_FILES, MAX_UNPACKED)).of(archive)
    seconds = MIN_SECONDS + bounds.size // SLOWEST
    try:  # in a folder of a name that nobody can have taken
        with TemporaryDirectory(
            prefix=".unpacking-", dir=target.parent, ignore_cleanup_errors=True
        ) as folder:
            partial = Path(folder) / "content"
            partial.mkdir()
            told = apart(lambda: _told(archive, partial, bounds), seconds)
            unpacked = _heard(archive, told, seconds)
            partial.replace(target)
    except OSError as error:
        raise _refusal(archive, error) from error
    return unpacked


def _told(archive: Path, target: Path, bounds: Bounds) -> dict[str, Any]:
    """Unpack, and say how it went in a way that can be written to another process."""
    try:
        return {"unpacked": _unpack(archive, target, bounds)}
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
    if isinstance(error, BROKEN):
        return CourseError(f"{archive} is no archive that can be read ({error}).")
    if _concerns_all(error):
        raise error
    return CourseError(f"{archive} cannot be unpacked ({_words(error)}).")


def _concerns_all(error: Exception) -> bool:
    return isinstance(error, OSError) and error.errno in WHOLE_CLASS


def _words(error: Exception) -> str:
    """What an error says, in short; its kind if it says nothing that a person would know."""
    if isinstance(error, OSError):
        return shown(error.strerror or str(error))
    known = isinstance(error, (*BROKEN, NotImplementedError, RuntimeError, ValueError))
    return shown(str(error)) if known and str(error) else type(error).__name__


def _unpack(archive: Path, target: Path, bounds: Bounds) -> Unpacked:
    left, room = [], _Room(archive, bounds, {target})
    with _members(archive, target, bounds) as members:
        for member in members:
            path = _inside(target, member)
            if path is None:
                left.append(shown(member.name) or "a member without a name")
                continue
            try:
                _copy(member, path, room)
            except CourseError:
                raise
            except Exception as error:
                if _concerns_all(error):
                    raise
                left.append(f"{shown(member.name)} ({_words(error)})")
    return Unpacked(left, room.files, room.size)


def _too_many(archive: Path, bounds: Bounds) -> CourseError:
    return CourseError(f"{archive} holds more than {bounds.files} files; it was refused.")


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
            raise _too_many(archive, bounds)
        yield found


def _zipped(file: zipfile.ZipFile, info: zipfile.ZipInfo) -> _Member:
    mode = info.external_attr >> 16
    plain = not stat.S_IFMT(mode) or stat.S_ISREG(mode) or stat.S_ISDIR(mode)
    is_folder = info.filename.endswith("/")  # what is_dir() asks, but a name may be empty
    return _Member(info.filename, is_folder, plain, lambda: file.open(info))


def _tarred(tar: tarfile.TarFile, info: tarfile.TarInfo) -> _Member:
    def opened() -> IO[bytes]:
        found = tar.extractfile(info)
        if found is None:
            raise ValueError("it has no content")
        return found

    return _Member(info.name, info.isdir(), info.isreg() or info.isdir(), opened)


@contextmanager
def _uncompressed(archive: Path, target: Path, bounds: Bounds) -> Iterator[Path]:
    """A tar on the disk, where its headers cannot name more bytes than there are."""
    if archive.suffix.lower() not in (".gz", ".tgz"):
        yield archive
        return
    plain = target.with_name(f"{target.name}.tar")
    try:
        with gzip.open(archive) as source:
            whole = _Member(archive.name, is_folder=False, is_plain=True, open=lambda: source)  # pyright: ignore[reportArgumentType]
            _copy(whole, plain, _Room(archive, bounds, {plain.parent}))
        yield plain
    finally:
        plain.unlink(missing_ok=True)


def _inside(target: Path, member: _Member) -> Path | None:
    """Where a member goes; None if that is not below the target or it is no plain file."""
    name = member.name.replace("\\", "/")
    parts = PurePosixPath(name).parts
    if not parts or not member.is_plain or name.startswith("/") or len(parts) > MAX_PARTS:
        return None
    if DRIVE.match(name):
        return None
    if any(part == ".." or not _is_a_name(part) for part in parts) or _size(name) > MAX_LENGTH:
        return None
    path = target.joinpath(*parts)
    return None if path.is_file() else path


def _is_a_name(part: str) -> bool:
    """Whether a file may be called so: to Windows, what follows a colon is no part of a name.

    Elsewhere it is a sign like any other, which systems write in times.
    """
    odd = "\0:" if os.name == "nt" else "\0"
    return not any(sign in part for sign in odd) and _size(part) <= MAX_PATH


def _size(name: str) -> int:
    return len(name.encode("utf-8", "surrogatepass"))


def _copy(member: _Member, path: Path, room: _Room) -> None:
    """Write one member in pieces, as far as there is room; keeps whole files only."""
    room.make(path if member.is_folder else path.parent)
    if member.is_folder:
        return
    room.take(1, 0)
    try:
        with member.open() as source, path.open("xb") as copy:
            while piece := source.read(1 << 16):
                room.take(0, len(piece))
                copy.write(piece)
    except Exception:
        if not path.is_dir():
            path.unlink(missing_ok=True)
        raise


class SafeExtractor(ExtractorPlugin):
    """Unpacks each archive by `safe_unzip`, archives in archives too."""

    def extract(self, archive_path: str, extracted_path: str) -> None:
        """Unpack every archive below one folder into another, and copy the other files."""
        clean_log(self.log)
        source, target = Path(archive_path), Path(extracted_path)
        for path in sorted(source.rglob("*")):
            if path.is_symlink() or not path.is_file():
                continue
            place = target / path.relative_to(source)
            with self._alone(path, target):
                if self._is_archive(path):
                    size = max(MAX_UNPACKED, path.stat().st_size * MAX_RATIO)
                    self._archive(path, _stem(place), Bounds(LMS_FILES, size))
                else:
                    self.log.info("Copying %s", path)
                    place.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(path, place)

    @contextmanager
    def _alone(self, path: Path, target: Path) -> Iterator[None]:
        """Inside, what goes wrong leaves out this one file, named in the log, and no other."""
        try:
            yield
        except Exception as error:
            if _concerns_all(error):
                raise SystemExit(sentence_of(error, str(target))) from error
            words = error if isinstance(error, CourseError) else _words(error)
            self.log.error("%s was left out: %s", path, words)

    def _is_archive(self, path: Path) -> bool:
        return path.suffix.lower() in self.zip_ext

    def _archive(self, path: Path, target: Path, bounds: Bounds) -> None:
        """Unpack one archive and those in it; each that is bad is refused alone."""
        unpacked, inner = self._one(path, target, bounds)
        left = Bounds(bounds.files - unpacked.files, bounds.size - unpacked.size)
        inner.sort(key=lambda found: found.stat().st_size)  # a large one takes no small one's room
        for found in inner[MAX_INNER:]:
            self.log.error("%s was left out: more than %s archives in one", found, MAX_INNER)
        for found in inner[:MAX_INNER]:
            within = Bounds(min(MAX_FILES, left.files), min(MAX_NESTED, left.size))
            place = _stem(found)
            with self._alone(found, target):
                unpacked, more = self._one(found, place.with_name(place.name + INNER), within)
                left = Bounds(left.files - unpacked.files, left.size - unpacked.size)
                for third in more:
                    words = "an archive in an archive in an archive"
                    self.log.error("%s was left out: %s", third, words)

    def _one(self, path: Path, target: Path, bounds: Bounds) -> tuple[Unpacked, list[Path]]:
        """Unpack an archive; also returns the archives that came out of it."""
        while os.path.lexists(target):
            target = target.with_name(f"{target.stem}-2{target.suffix}")
        self.log.info("Unpacking %s", path)
        unpacked = safe_unzip(path, target, bounds)
        for name in unpacked.left:
            self.log.error("%s: left out %s", path, name)
        return unpacked, [found for found in sorted(target.rglob("*")) if self._is_archive(found)]


class SafeCollector(FileNameCollectorPlugin):
    """Skips what would end zip_collect for everybody: doubled files, names that lead elsewhere.

    Nobody hands in for somebody else: the outermost folder or file below the download whose name
    says a student decides, and what was in an archive in an archive is that archive's student's.
    Where the download is one archive, that is the whole class's, whatever it is called.
    """

    def __init__(self, **options: Any):
        """Remember what was collected."""
        super().__init__(**options)
        clean_log(self.log)
        app: Any = self.parent
        known = isinstance(app, ZipCollectApp)
        self._root = Path(app._format_collect_path(app.extracted_directory)) if known else None
        self._given = Path(app._format_collect_path(app.archive_directory)) if known else None
        self._seen: dict[str, _Collected] = {}  # by student
        self._untimed: set[str] = set()  # students of whom a file says no time
        self._hand_ins: dict[Path, int] = {}  # files looked at, by the folder that says whose
        self._said = lru_cache(10_000)(self._asked)

    def collect(self, submitted_file: str) -> dict | None:
        """Student, notebook and time as the file's name says; None to skip it."""
        file = Path(submitted_file)
        if self._is_one_too_many(file):
            self.log.error("%s was left out: more than %s files", submitted_file, MAX_FILES)
            return None
        found = super().collect(submitted_file)
        keys = ("student_id", "file_id")
        if not found or not all(isinstance(found.get(key), str) for key in keys):
            return found
        student, notebook = (found[key] for key in keys)
        if not _stays_inside(student, notebook):
            self.log.error("%s was left out: it names %r, %r", submitted_file, student, notebook)
            return None
        goes_to = _destination(notebook, submitted_file)
        if goes_to.parts[0].casefold() == "timestamp.txt":  # where nbgrader writes it
            self.log.error("%s was left out: nobody says when it was handed in", submitted_file)
            return None
        owner = self._owner(file)
        if owner.student != student:
            whose = "its archive's name says no student"
            whose = f"comes from {owner.student!r}" if owner.student else whose
            self.log.error("%s was left out: it names %r, but %s", submitted_file, student, whose)
            return None
        found.pop("timestamp", None)
        if time := _time(owner.time):
            found["timestamp"] = time
        else:
            self._untimed.add(student)
        seen = self._seen.setdefault(student, _Collected())
        # without times nothing says which is the newer one
        if not seen.take(goes_to, again=student not in self._untimed):
            self.log.error("%s was left out: there is another for %r", submitted_file, student)
            return None
        return found

    def _is_one_too_many(self, file: Path) -> bool:
        """Whether a hand-in had its number of files already; each takes time to look at."""
        if file.suffix not in self.valid_ext:
            return False
        folder = next((above for above in file.parents if above in self._hand_ins), None)
        if folder is None:
            return False
        self._hand_ins[folder] += 1
        return self._hand_ins[folder] > MAX_FILES

    def _owner(self, file: Path) -> "_Said":
        """Who handed in a file, and when, by the outermost name that says so."""
        root, parts = self._below(file)
        said = self._said(file)
        shared = self._shared(parts)
        for place, part in enumerate(parts[:-1]):
            folder = root.joinpath(*parts[:place])
            found = self._named(folder, part, file.suffix, said.start)
            if part.endswith(INNER):
                name = part.removesuffix(INNER)
                whole = self._said(folder / f"{name}{file.suffix}")
                found = self._named(folder, name, file.suffix, len(str(file))) or whole
            elif not found and place >= shared:
                found = self._holding(folder, part, parts[place + 1 :])
            if found:
                self._hand_ins.setdefault(folder / part, 1)
                return found
        return self._named(file.parent, parts[-1], file.suffix, said.start) or said

    def _shared(self, parts: tuple[str, ...]) -> int:
        """How many of the outermost folders are the class's: its archive, a folder called as it."""
        if not self._class_archive or parts[0] != self._class_archive:
            return 0
        return 2 if parts[1:2] == parts[:1] else 1

    @cached_property
    def _class_archive(self) -> str:
        """The folder of the one archive that the download is; empty if it is not one."""
        if self._given is None or self._root is None:
            return ""
        given = [path for path in self._given.iterdir() if not path.name.startswith(".")]
        others = [path for path in given if path.is_dir() or not (self._root / path.name).is_file()]
        return _stem(others[0]).name if len(others) == 1 and others[0].is_file() else ""

    def _holding(self, folder: Path, part: str, below: tuple[str, ...]) -> "_Said | None":
        """What the name of a folder says for a file in it, wherever in it the file lies.

        Folders between the two are left out one by one: one of them may say another student.
        """
        inside = len(str(folder / "x")) - 1
        for start in range(len(below)):
            said = self._said(folder.joinpath(part, *below[start:]))
            if inside <= said.start <= said.end <= inside + len(part):
                return said
        return None

    def _named(self, folder: Path, part: str, suffix: str, before: int) -> "_Said | None":
        """What one part of a path says first on its own, left of where a student is found."""
        inside = len(str(folder / "x")) - 1
        first: _Said | None = None
        for cut in re.finditer(r"(?<=\w)(?!\w)|(?<=_)", part):
            said = self._said(folder / f"{part[: cut.start()]}{suffix}")
            if not inside <= said.start <= said.end <= min(before, inside + cut.start() - 1):
                continue
            if first is None or (first.start, first.end) == (said.start, said.end):
                first = said  # the more there is to the right of a time, the more is it whole
        return first

    def _asked(self, path: Path) -> "_Said":
        """What the regular expression finds in a path."""
        found = re.match(self.named_regexp, str(path))
        if not found or not found["student_id"]:
            return _Said()
        return _Said(
            *found.span("student_id"), found["student_id"], found.groupdict().get("timestamp")
        )

    def _below(self, file: Path) -> tuple[Path, tuple[str, ...]]:
        """The folder of what was unpacked, and the path from there."""
        if self._root and file.is_relative_to(self._root):
            return self._root, file.relative_to(self._root).parts
        return file.parent, (file.name,)


@dataclass
class _Collected:
    """Where the files of one student go, below his folder."""

    files: set[PurePosixPath] = field(default_factory=set)
    folders: set[PurePosixPath] = field(default_factory=set)

    def take(self, file: PurePosixPath, *, again: bool) -> bool:
        """Whether a file may go there: nothing else is there, or there may be one again."""
        if file in self.files:
            return again
        if file in self.folders or any(folder in self.files for folder in file.parents):
            return False
        self.files.add(file)
        self.folders.update(file.parents)
        return True


class _Said(NamedTuple):
    """What a path says by the regular expression."""

    start: int = -1  # of the student's name
    end: int = -1
    student: str = ""  # empty if it names none
    time: str | None = None


def _destination(notebook: str, file: str) -> PurePosixPath:
    """Where nbgrader puts a file, below its student's folder; it counts endings in this way."""
    ending = os.path.splitext(file)[1]  # noqa: PTH122
    return PurePosixPath(os.path.splitext(notebook)[0] + ending)  # noqa: PTH122


def _stays_inside(student: str, notebook: str) -> bool:
    """Whether the names lead to a file in the student's own folder."""
    *folders, last = notebook.split("/")
    names = [student, *folders, last]
    odd = any(sign in student for sign in '<>"`\\')  # markup; no system writes it in file names
    odd = odd or any(not name or name.startswith(".") or not _is_a_name(name) for name in names)
    return not odd and "/" not in student and not any(name.endswith(".ipynb") for name in folders)


def _time(text: str | None) -> str:
    """A time as nbgrader reads it rightly; empty if it is none.

    What Blackboard writes, it takes for a day and an offset.
    """
    if text and (found := BLACKBOARD.fullmatch(text)):
        text = f"{found['day']} {found['time'].replace('-', ':')}"
    with suppress(ValueError, OverflowError, TypeError):
        return text if text and parse_utc(text) is not None else ""
    return ""


def _stem(path: Path) -> Path:
    """Where an archive is unpacked: its own path without the endings."""
    name, dot, _ = path.name.rpartition(".")
    name = name.removesuffix(".tar") if dot else path.name
    return path.with_name(name if name.strip(". ") else "archive")

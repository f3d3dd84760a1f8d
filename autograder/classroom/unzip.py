"""Unpack what was downloaded from a learning management system; no archive harms another one.

    c.ZipCollectApp.extractor_plugin = "autograder.classroom.unzip.SafeExtractor"
    c.ZipCollectApp.collector_plugin = "autograder.classroom.unzip.SafeCollector"

`FromCanvas`, `FromMoodle` and `FromBlackboard` in its place know how these systems name files; for
any other system `c.FileNameCollectorPlugin.named_regexp` says it. A time in a name is taken for
UTC, or for what `c.SafeCollector.time_zone` says.

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
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property, lru_cache, partial
from itertools import takewhile
from lzma import LZMAError
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import IO, Any, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from dateutil.parser import parse
from nbgrader.apps.zipcollectapp import ZipCollectApp
from nbgrader.plugins.zipcollect import ExtractorPlugin, FileNameCollectorPlugin
from nbgrader.utils import find_all_notebooks
from sqlalchemy import make_url
from traitlets import TraitError, Unicode, validate

from autograder.classroom.exports import Person, roster_of
from autograder.classroom.places import NOTEBOOK, students_in
from autograder.common.course import CourseError
from autograder.common.failures import WHOLE_CLASS, sentence_of
from autograder.common.names import clean_log, shown
from autograder.common.times import read_time
from autograder.isolation.apart import MEMORY, apart
from autograder.judge.parcel import STAMP

MAX_FILES = 1000  # of one archive, and of one hand-in
MAX_UNPACKED = 200_000_000  # bytes of one student's
MAX_OF_ONE = 5 * MAX_FILES  # files of one student's, archives in archives too
MAX_OF_ALL = 10_000_000_000  # bytes of what was downloaded: more than honest work of a class takes
MAX_RATIO = 100
MAX_PATH = 200  # bytes of one name in a path
MAX_PARTS = 20
MAX_LENGTH = 400  # bytes of a whole path: what looks at one may take the square of it
FOLDER = 4000  # bytes that an empty folder takes on a disk, about
LMS_FILES = 100_000  # in what was downloaded: a whole class may be in one archive
MAX_HEADER = 1 << 14  # bytes of what a tar says of one member
MIN_SECONDS, SLOWEST = 20, 10_000_000  # of processor time for an archive; bytes in a second more
DENSEST = 1000  # times its size, to which what packs files takes them
MAX_NESTED = 50_000_000  # bytes of an archive in an archive; whoever prints much needs so many
MAX_INNER = 100  # archives of one student's in an archive
DRIVE = re.compile(r"[A-Za-z]:/")  # begins a path of Windows that leads elsewhere
INNER = ".unpacked"  # ends the name of a folder that was an archive in an archive
DASHED = re.compile(r"(?P<day>\d{4}-\d\d?-\d\d?)[- ](?P<time>\d\d?-\d\d?(-\d\d?)?)", re.ASCII)
ATTEMPT = re.compile(r"(-\d+| ?\(\d+\))$")  # ends the name of what was handed in once more
# How systems name what is handed in. `lms_id` tells apart whom they call the same and is a part of
# the name here; where `place` differs they are two people whom nothing tells apart for good. Of two
# files that go to one place the one with the higher `lms_number` was handed in later.
CANVAS_FORM = (
    r"(?:.*/)?(?P<student_id>{})(?:_(?i:late))?_(?P<lms_id>{})_(?P<lms_number>\d+)_"
    r"(?:[^/]+/)?(?P<file_id>.+)"
)
CANVAS = CANVAS_FORM.format(r"[^/]+?", r"\d+")
CANVAS_NUMBERED = CANVAS_FORM.format(r"[^/]+?_\d+", r"\d+")  # the name ends in a number of its own
CANVAS_BLIND = CANVAS_FORM.format("anon", r"[0-9A-Za-z]{5}")
MOODLE = (
    r"(?:.*/)?(?P<student_id>[^/]+?)_(?P<place>\d+)_assignsubmission_file"
    r"(?:_?/(?:[^/]+\.unpacked/)?|_(?:[^/]+/)?)(?P<file_id>.+)"
)
MOODLES = re.compile(r"(.+?)_(\d+)_assignsubmission_")  # begins a name
# what Moodle calls everybody where names are hidden, behind a group's name perhaps
HIDDEN = re.compile(
    r"(?:.+-)?(?:participant[ei]?|partecipante|teilnehmer(?:in)?|deelnemer|uczestnik|"
    r"deltagare|deltaker|deltager|osallistuja)",
    re.IGNORECASE,
)
BLACKBOARD = (
    r"(?:.*/)?(?P<place>[^/]*?)_(?P<student_id>[^/_]+)_attempt_"
    r"(?P<timestamp>\d{4}(?:-\d\d?){5})_(?:[^/]+/)?(?P<file_id>.+)"
)
BLACKBOARDS = re.compile(r"(.+?_[^_]+)_attempt_\d{4}(?:-\d\d?){5}[_.]")  # begins a name
MARKUP = re.compile(r"[<>\"`\\]")  # no system writes it in file names, and pages need none
KEYS = ("student_id", "file_id")
BROKEN = (zipfile.BadZipFile, tarfile.TarError, zlib.error, LZMAError, EOFError, gzip.BadGzipFile)

NO_REGEXP = (
    "Nothing says how files are named: collect with "
    "--collector=autograder.classroom.unzip.FromCanvas, FromMoodle or FromBlackboard, or set "
    "c.FileNameCollectorPlugin.named_regexp."
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


class _Full(Exception):
    """There is no room for more."""


@dataclass
class _Room:
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


class _Rooms:
    """What has come out of an archive so far: in all and, where it is a class's, of each student.

    Nobody's share is smaller for what somebody else has handed in.
    """

    def __init__(
        self, what: str, bounds: Bounds, whose: Callable[[PurePosixPath], str] | None = None
    ):
        self.whole = _Room(bounds, what)
        self.whose = whose
        self.shares: dict[str, _Room] = {}

    def share(self, student: str) -> _Room:
        """One student's."""
        bounds = Bounds(MAX_OF_ONE, MAX_UNPACKED)
        return self.shares.setdefault(student, _Room(bounds, "what one student handed in"))

    def of(self, path: PurePosixPath) -> list[_Room]:
        """All that have to have room for a file."""
        return [self.whole, *([self.share(self.whose(path))] if self.whose else [])]


def _take(rooms: list[_Room], files: int, size: int) -> None:
    """Count what is about to be written; _Full if there is no room for it."""
    for room in rooms:
        if words := room.lacks(files, size):
            raise _Full(words)
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
    rooms = _Rooms("it", bounds, (lambda path: whose(target / path)) if whose else None)
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


def _told(archive: Path, target: Path, rooms: _Rooms) -> dict[str, Any]:
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
    if isinstance(error, _Full):
        return CourseError(f"{archive} {str(error).removeprefix('it ')}; it was refused.")
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
    known = isinstance(error, (*BROKEN, _Full, NotImplementedError, RuntimeError, ValueError))
    return shown(str(error)) if known and str(error) else type(error).__name__


def _unpack(archive: Path, target: Path, rooms: _Rooms) -> Unpacked:
    made = {target}
    with _members(archive, target, rooms.whole.bounds) as members:
        placed, left = _placed(members)
        # a large one takes no small one's room
        for path in sorted(placed, key=lambda path: (placed[path].is_folder, placed[path].size)):
            member = placed[path]
            try:
                _copy(member, target / path, rooms.of(path), made)
            except Exception as error:
                if _concerns_all(error) or (isinstance(error, _Full) and not rooms.whose):
                    raise
                left.append(f"{shown(member.name)} ({_words(error)})")
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
            raise _Full(f"it holds more than {bounds.files} files")
        yield found


def _zipped(file: zipfile.ZipFile, info: zipfile.ZipInfo) -> _Member:
    mode = info.external_attr >> 16
    plain = not stat.S_IFMT(mode) or stat.S_ISREG(mode) or stat.S_ISDIR(mode)
    is_folder = info.filename.endswith("/")  # what is_dir() asks, but a name may be empty
    return _Member(info.filename, is_folder, plain, info.file_size, lambda: file.open(info))


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
    if archive.suffix.lower() not in (".gz", ".tgz"):
        yield archive
        return
    plain, room = target.with_name(f"{target.name}.tar"), _Room(bounds, "it")
    try:
        with gzip.open(archive) as source, plain.open("xb") as copy:
            while piece := source.read(1 << 16):
                _take([room], 0, len(piece))
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
    shared = _begin_alike(away)
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


def _begin_alike(sequences: Iterable[Sequence[str]]) -> int:
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
    return parts if all(_is_a_name(part) for part in parts) else ()


def _is_a_name(part: str) -> bool:
    """Whether a file may be called so: to Windows, what follows a colon is no part of a name.

    Elsewhere it is a sign like any other, which systems write in times.
    """
    odd = "\0:" if os.name == "nt" else "\0"
    return not any(sign in part for sign in odd) and _size(part) <= MAX_PATH


def _size(name: str) -> int:
    return len(name.encode("utf-8", "surrogatepass"))


def _copy(member: _Member, path: Path, rooms: list[_Room], made: set[Path]) -> None:
    """Write one member in pieces, if there is room; keeps whole files only."""
    _make(path if member.is_folder else path.parent, rooms, made)
    if member.is_folder:
        return
    _take(rooms, 1, member.size)
    with member.open() as source, path.open("xb") as copy:
        try:
            shutil.copyfileobj(source, copy, 1 << 16)
        except Exception:
            path.unlink()
            raise


def _make(folder: Path, rooms: list[_Room], made: set[Path]) -> None:
    """Make a folder and those above it."""
    if folder not in made:
        _make(folder.parent, rooms, made)
        _take(rooms, 1, FOLDER)
        folder.mkdir(exist_ok=True)
        made.add(folder)


class SafeExtractor(ExtractorPlugin):
    """Unpacks each archive by `safe_unzip`, archives in archives too."""

    def extract(self, archive_path: str, extracted_path: str) -> None:
        """Unpack every archive below one folder into another, and copy the other files."""
        clean_log(self.log)
        source, target = Path(archive_path), Path(extracted_path)
        given = [one for one in source.rglob("*") if one.is_file() and not one.is_symlink()]
        # archives last: that a file lies beside them says that none is the whole class's
        for path in sorted(given, key=lambda path: (self._is_archive(path), path)):
            place = target / path.relative_to(source)
            with self._alone(path, target):
                if self._is_archive(path):
                    self._archive(path, _stem(place))
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

    def _archive(self, path: Path, target: Path) -> None:
        """Unpack one archive and those in it; each that is bad is refused alone."""
        target = _free(target)
        bounds = Bounds(LMS_FILES, max(MAX_OF_ALL, path.stat().st_size * MAX_RATIO))
        rooms = _Rooms("all of it", bounds)
        whose = partial(self._whose, target)
        unpacked, inner = self._one(path, target, bounds, whose)
        rooms.whole.take(unpacked.files, unpacked.size)
        for student, taken in unpacked.shares.items():
            rooms.share(student).take(*taken)
        inner.sort(key=lambda found: found.stat().st_size)  # a large one takes no small one's room
        looked_at: Counter[str] = Counter()
        for found in inner:
            student = whose(found)
            looked_at[student] += 1
            with self._alone(found, target):
                if looked_at[student] > MAX_INNER:
                    raise CourseError(f"one student handed in more than {MAX_INNER} archives")
                self._inner(found, [rooms.whole, rooms.share(student)])

    def _inner(self, path: Path, rooms: list[_Room]) -> None:
        """Unpack an archive in an archive, as far as its student's share of the whole goes."""
        left = [room.left() for room in rooms]
        files = min(MAX_FILES, *(bounds.files for bounds in left))
        size = min(MAX_NESTED, *(bounds.size for bounds in left))
        place = _stem(path)
        target = _free(place.with_name(place.name + INNER))
        try:
            unpacked, more = self._one(path, target, Bounds(files, size))
        except CourseError as error:
            if files == MAX_FILES and size == MAX_NESTED:
                raise
            most = f"{MAX_OF_ONE} files and {MAX_UNPACKED / 1e6:.3g} MB"
            raise CourseError(f"{error} All of one student's may take {most}.") from error
        _take(rooms, unpacked.files, unpacked.size)
        for third in more:
            self.log.error("%s was left out: an archive in an archive in an archive", third)

    def _one(
        self, path: Path, target: Path, bounds: Bounds, whose: Whose | None = None
    ) -> tuple[Unpacked, list[Path]]:
        """Unpack an archive; also returns the archives that came out of it."""
        self.log.info("Unpacking %s", path)
        unpacked = safe_unzip(path, target, bounds, whose)
        for name in unpacked.left:
            self.log.error("%s: left out %s", path, name)
        return unpacked, [
            found
            for found in sorted(target.rglob("*"))
            if self._is_archive(found) and found.is_file()
        ]

    def _whose(self, target: Path, path: Path) -> str:
        """Who handed in a file, as the collector says; without one, the outermost name."""
        collector: Any = getattr(self.parent, "collector_plugin_inst", None)
        if isinstance(collector, SafeCollector):
            return collector.whose(path, is_archive=self._is_archive(path))
        return path.relative_to(target).parts[0]


def _free(path: Path) -> Path:
    """A path where nothing is, of this name or nearly."""
    while os.path.lexists(path):
        path = path.with_name(f"{path.stem}-2{path.suffix}")
    return path


class SafeCollector(FileNameCollectorPlugin):
    """Skips what would end zip_collect for everybody: doubled files, names that lead elsewhere.

    Nobody hands in for somebody else: the outermost folder or file below the download whose name
    says a student decides, and what was in an archive in an archive is that archive's student's.
    Where the download is one archive, that is the whole class's, whatever it is called.
    """

    doubt = "it names no student"  # why a name that can be read says nobody

    time_zone = Unicode("UTC", help="Of times in files' names, such as Europe/Berlin.").tag(
        config=True
    )

    @validate("time_zone")
    def _is_a_zone(self, proposal: Any) -> str:
        try:
            ZoneInfo(proposal["value"])
        except (ValueError, OSError, ZoneInfoNotFoundError) as error:
            raise TraitError(
                f"SafeCollector.time_zone: there is no time zone {proposal['value']!r}; write one "
                "such as Europe/Berlin."
            ) from error
        return proposal["value"]

    def __init__(self, **options: Any):
        """Remember what was collected."""
        super().__init__(**options)
        clean_log(self.log)
        app: Any = self.parent
        known = isinstance(app, ZipCollectApp)
        self._root = Path(app._format_collect_path(app.extracted_directory)) if known else None
        self._given = Path(app._format_collect_path(app.archive_directory)) if known else None
        self._seen: dict[str, _Collected] = {}  # by student
        self._places: dict[str, str] = {}  # by student
        self._untimed: set[str] = set()  # students of whom a file says no time
        self._unclear: set[str] = set()  # of whom a file says one that nobody can read
        self._hand_ins: dict[Path, int] = {}  # files looked at, by the folder that says whose
        self._plan: dict[Path, dict | None] = {}  # what to say of each file
        self._is_planned = False
        self._said = lru_cache(10_000)(self._asked)
        self._of_folder = lru_cache(1000)(self._learnt)
        if not self.named_regexp:
            self.log.error(NO_REGEXP)

    def collect(self, submitted_file: str) -> dict | None:
        """Student, notebook and time as the file's name says; None to skip it."""
        file = Path(submitted_file)
        if not self._is_planned:
            self._is_planned = True
            self._said.cache_clear()  # now that all files are there, more is known
            self._of_folder.cache_clear()
            self._decide(self._files())
        if file not in self._plan:
            self._decide([file])
        return self._plan[file]

    def whose(self, file: Path, *, is_archive: bool) -> str:
        """Who handed in what will lie there; empty if nobody knows."""
        ending = self.valid_ext[0] if self.valid_ext else ""
        if is_archive:
            file = _stem(file)
            file = file.with_name(file.name + INNER) / f"x{ending}"
        elif file.suffix not in self.valid_ext:
            file = file.with_name(f"{file.stem}{ending}")
        owner = self._owner(file)
        return f"{owner.student}/{owner.place}" if owner.student else ""

    def _files(self) -> list[Path]:
        """All that was unpacked, in nbgrader's order."""
        if not self._root or not self._root.is_dir():
            return []
        found = (Path(folder, name) for folder, _, names in os.walk(self._root) for name in names)
        return sorted(found, key=str)

    def _decide(self, files: list[Path]) -> None:
        """Say of each of these files whether it is collected, and as what, by what is beside it."""
        self._plan |= dict.fromkeys(files)
        readings = [reading for file in files if (reading := self._reading(file))]
        self._name(readings)
        newest = _newest(readings)
        for reading in readings:
            newer = newest[reading.key]
            same = newer.found["file_id"] == reading.found["file_id"]
            if newer.number > reading.number and (same or newer.download != reading.download):
                self.log.error("%s was left out: %s is newer", reading.file, newer.file)
            elif self._is_taken(reading):
                self._plan[reading.file] = reading.found

    def _reading(self, file: Path) -> "_Reading | None":
        """What a file's name says, if that may be collected."""
        ending = self._ending(file)
        if ending is None:
            return None
        if self._is_one_too_many(file):
            self.log.error("%s was left out: more than %s files", file, MAX_FILES)
            return None
        plain = ".ipynb" if NOTEBOOK.fullmatch(ending) else ending
        asked = file.with_name(f"{file.name.removesuffix(ending)}{plain}")
        found = self._match(str(asked))
        if not found or not all(isinstance(found.get(key), str) for key in KEYS):
            self._plan[file] = found
            return None
        said, owner = self._said(asked), self._owner(asked)
        if owner.at:
            self._hand_ins.setdefault(owner.at, 1)
        found |= {"student_id": said.student, "file_id": _ending_in(found["file_id"], ending)}
        if words := self._against(file, said, owner, found["file_id"]):
            self.log.error("%s was left out: %s", file, words)
            return None
        self._set_time(file, found, owner)
        _, parts = self._below(file)
        return _Reading(file, found, said.student, owner, parts[0] if len(parts) > 1 else "")

    def _against(self, file: Path, said: "_Said", owner: "_Said", notebook: str) -> str:
        """Why a file is not collected, in words; empty if nothing is against it."""
        student = said.student
        if not student:
            return self.doubt
        if not _stays_inside(student, notebook):
            return f"it names {student!r}, {notebook!r}"
        if _destination(notebook, str(file)).parts[0].casefold() == STAMP:
            return "nobody says when it was handed in"  # it is where nbgrader writes it
        if not owner.student:
            return f"it names {student!r}, but its archive's name says no student"
        if owner.student != student:
            return f"it names {student!r}, but comes from {owner.student!r}"
        if (place := self._places.setdefault(student, said.place)) != said.place:
            people = f"two people are called {student!r}, at {place!r} and {said.place!r}"
            return f"{people}; collect them by hand"
        return ""

    def _ending(self, file: Path) -> str | None:
        """How a name ends, of a file that may be collected: notebooks get longer ones on phones."""
        ending = NOTEBOOK.search(file.name)
        if ending and ".ipynb" in self.valid_ext:
            return ending[0]
        return file.suffix if file.suffix in self.valid_ext else None

    def _set_time(self, file: Path, found: dict, owner: "_Said") -> None:
        """Put the time in that the outermost name says, if it can be read."""
        found.pop("timestamp", None)
        if time := _time(owner.time, self.time_zone):
            found["timestamp"] = time
            return
        self._untimed.add(owner.student)
        if owner.time:
            self._unclear.add(owner.student)
            words = "%s: it is not known whether it is late, as %r is no time, or of no known zone"
            self.log.error(words, file, owner.time)

    def _name(self, readings: "list[_Reading]") -> None:
        """Take a system's number off a name, where one file alone of a hand-in has that name then.

        Of several, what is a copy of what is for whoever reads them to say.
        """
        for reading in readings:
            reading.shorter = self._without_number(reading.found["file_id"])
        alike = Counter((reading.hand_in, reading.key) for reading in readings)
        for reading in readings:
            if alike[reading.hand_in, reading.key] == 1:
                reading.found["file_id"] = reading.shorter

    def _is_taken(self, reading: "_Reading") -> bool:
        """Whether a file is collected, as nothing else is in its place."""
        if reading.student in self._unclear:
            reading.found.pop("timestamp", None)
        goes_to = _destination(reading.found["file_id"], str(reading.file))
        seen = self._seen.setdefault(reading.student, _Collected())
        # without times nothing says which is the newer one
        if seen.take(goes_to, again=reading.student not in self._untimed):
            return True
        words = "%s was left out: there is another for %r"
        self.log.error(words, reading.file, reading.student)
        return False

    def _match(self, filename: str) -> dict | None:
        match = self._found(filename) if self.named_regexp else None
        return match.groupdict() if match else super()._match(filename)

    def _found(self, path: str) -> "re.Match[str] | None":
        """What the regular expression finds in a path."""
        return re.match(self.named_regexp, path)

    def _learnt(self, folder: str) -> Any:
        """What the names in a folder say together, where a system's names do."""
        return None

    @cached_property
    def _roster(self) -> "Mapping[str, Person]":
        """Who is in the class, if a roster says so; it lies beside submitted/ as for exports."""
        try:
            return roster_of(Path(self._course.root)) or {} if self._course else {}
        except CourseError as error:
            self.log.error("%s", error)
            return {}

    @cached_property
    def _students(self) -> set[str]:
        """Everybody who is known: by the roster, the gradebook, and what was handed in before."""
        if not self._course:
            return set()
        known = set(self._roster)
        with suppress(OSError):
            known.update(students_in(Path(self._course.root) / self._course.submitted_directory))
        try:
            known.update(_in_gradebook(self._course))
        except CourseError as error:  # there is less to know
            self.log.error("%s", error)
        return known

    @property
    def _course(self) -> Any:
        """What nbgrader knows of the course; None where it is not nbgrader that asks."""
        app: Any = self.parent
        return app.coursedir if isinstance(app, ZipCollectApp) else None

    def _who(self, match: "re.Match[str]") -> tuple[str, str]:
        """A student's name, with a number that tells people of one name apart; and where he is."""
        groups = match.groupdict()
        name = "_".join(filter(None, (groups["student_id"], groups.get("lms_id"))))
        return name, groups.get("place") or ""

    def _without_number(self, notebook: str) -> str:
        """The name that was released, where a system has put a number behind it."""
        folder, _, name = notebook.rpartition("/")
        stem = _stem_of(name)
        ending = name[len(stem) :]
        shorter = ATTEMPT.sub("", stem)
        if stem in self._released or shorter not in self._released:
            return notebook
        return f"{folder}/{shorter}{ending}" if folder else f"{shorter}{ending}"

    @cached_property
    def _released(self) -> set[str]:
        """The notebooks of the assignment, without endings; none if they are not known."""
        here = self._course
        if not here:
            return set()
        folder = here.format_path(here.release_directory, ".", here.assignment_id)
        return {str(PurePosixPath(name).with_suffix("")) for name in find_all_notebooks(folder)}

    def _is_one_too_many(self, file: Path) -> bool:
        """Whether a hand-in had its number of files already; each takes time to look at."""
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
                return found._replace(at=folder / part)
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
        match = self._found(str(path)) if self.named_regexp else None
        groups = match.groupdict() if match else {}
        if match is None or not groups.get("student_id"):
            return _Said()
        true, place = self._who(match)
        student = MARKUP.sub("", true).lstrip(". ")
        if student != true:  # which is another one than he who is called so
            place = f"{place} {true}"
        number = groups.get("lms_number") or "-1"
        return _Said(
            *match.span("student_id"), student, place, groups.get("timestamp"), int(number)
        )

    def _below(self, file: Path) -> tuple[Path, tuple[str, ...]]:
        """The folder of what was unpacked, and the path from there."""
        if self._root and file.is_relative_to(self._root):
            return self._root, file.relative_to(self._root).parts
        return file.parent, (file.name,)


class FromCanvas(SafeCollector):
    """For what Canvas gives: `adaminsanne_LATE_123_456_numbers-2.ipynb`; she is adaminsanne_123.

    Canvas takes numbers out of the middle of a name, not from its end: `bo_12_34_56_x.ipynb` is
    bo's or bo_12's. It is his whose number the roster has; or bo's, if what is left of the name is
    a notebook of the assignment. Else it is nobody's: `bo` may call his file `56_x.ipynb`.
    """

    named_regexp = Unicode(CANVAS).tag(config=True)
    doubt = "which number is the student's? A roster.csv with everybody's lms_id says so"

    def _found(self, path: str) -> "re.Match[str] | None":
        if self.named_regexp != CANVAS:
            return super()._found(path)
        forms = (re.match(form, path) for form in (CANVAS, CANVAS_BLIND))
        found = [match for match in forms if match]
        start = max((match.start("student_id") for match in found), default=0)
        found = [match for match in found if match.start("student_id") == start]
        if found and found[-1]["student_id"] == "anon" and self._of_folder(path[:start]):
            return found[-1]  # in a folder where all are
        numbered = re.match(CANVAS_NUMBERED, path)
        if numbered and numbered.end("student_id") in [match.end("lms_id") for match in found]:
            found.append(numbered)
        people = {(match["student_id"], match["lms_id"]): match for match in found}
        return self._meant(list(people.values()), numbered)

    def _meant(
        self, found: "list[re.Match[str]]", numbered: "re.Match[str] | None"
    ) -> "re.Match[str] | None":
        """The one of these ways to read a name that is right; None if nobody knows."""
        listed = [match for match in found if match["lms_id"] in self._numbers]
        named = [match for match in found if match is not numbered and self._is_released(match)]
        return next((ones[0] for ones in (found, listed, named) if len(ones) == 1), None)

    def _is_released(self, match: "re.Match[str]") -> bool:
        """Whether a file that was handed in is called as a notebook of the assignment."""
        name = match.string[match.end("lms_number") + 1 :].partition("/")[0]
        stem = _stem_of(name.removesuffix(INNER))
        return stem in self._released or ATTEMPT.sub("", stem) in self._released

    @cached_property
    def _numbers(self) -> set[str]:
        """The numbers by which Canvas knows those on the roster."""
        return {person.lms_id for person in self._roster.values()}

    def _learnt(self, folder: str) -> bool:
        """Whether nobody's name is in these names."""
        names = _names_in(folder)
        return bool(names) and all(name.startswith("anon_") for name in names)

    def _named(self, folder: Path, part: str, suffix: str, before: int) -> "_Said | None":
        """What a part of a path says; no less than all of it says where the name ends."""
        said = self._said(folder / (part if part.endswith(suffix) else f"{part}{suffix}"))
        inside = len(str(folder / "x")) - 1
        is_here = inside <= said.start <= said.end <= min(before, inside + len(part))
        return said if is_here else None


class FromMoodle(SafeCollector):
    """For what Moodle gives: `Anne Adamins_123_assignsubmission_file_/numbers.ipynb`.

    Where names are hidden everybody is called `Participant`, in the site's language; the number,
    which is of one assignment, is a part of the name then.
    """

    named_regexp = Unicode(MOODLE).tag(config=True)

    def _who(self, match: "re.Match[str]") -> tuple[str, str]:
        name, place = super()._who(match)
        hidden = HIDDEN.fullmatch(name) or self._of_folder(
            match.string[: match.start("student_id")]
        )
        return (f"{name}_{place}", "") if hidden and place else (name, place)

    def _learnt(self, folder: str) -> bool:
        """Whether all of three or more have one name."""
        found = {match.groups() for name in _names_in(folder) if (match := MOODLES.match(name))}
        return len(found) > 2 and len({name for name, _ in found}) == 1


class FromBlackboard(SafeCollector):
    """For what Blackboard gives: `ps1_anne_attempt_2026-01-01-12-00-00_numbers.ipynb`.

    A column's name may hold an underscore, a user's too. Of one download all have the same column:
    that by which most users are known, by roster or gradebook, or else the longest.
    """

    named_regexp = Unicode(BLACKBOARD).tag(config=True)
    doubt = "where does the user's name begin? Put everybody into roster.csv, in the column student"

    def _who(self, match: "re.Match[str]") -> tuple[str, str]:
        name, place = super()._who(match)
        if self.named_regexp != BLACKBOARD:
            return name, place
        column = self._of_folder(match.string[: match.start("place")])
        if column is None:
            return ("", "") if "_" in place else (name, place)
        both = f"{place}_{name}"
        if column and both.startswith(f"{column}_"):
            return both[len(column) + 1 :], column
        return name, place  # nothing is there to compare with

    def _learnt(self, folder: str) -> str | None:
        """The column's name; empty if no file is there to say it, None if nobody knows."""
        found = {match[1] for name in _names_in(folder) if (match := BLACKBOARDS.match(name))}
        if not found:
            return ""
        shared = min(found)[: _begin_alike(found)]
        shortest = min(map(len, found))
        columns = [shared[: cut.start()] for cut in re.finditer("_", shared)]
        columns = [column for column in columns if column and len(column) + 1 < shortest]
        known = [sum(name[len(one) + 1 :] in self._students for name in found) for one in columns]
        best = [one for one, count in zip(columns, known, strict=True) if count == max(known)]
        if best and (len(found) > 1 or len(best) == 1):
            return best[-1]
        name = self._course.assignment_id if self._course else ""
        best = [one for one in columns if name and one.endswith(name)]
        return best[-1] if best else None


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
    place: str = ""
    time: str | None = None
    number: int = -1  # the higher the later
    at: Path | None = None  # the folder whose name says it


@dataclass
class _Reading:
    """What a file is collected as."""

    file: Path
    found: dict
    student: str
    owner: _Said
    download: str  # the outermost folder
    shorter: str = ""  # its name without a system's number

    @property
    def key(self) -> tuple[str, str]:
        """The same for what goes to one place, but for a system's number."""
        return self.student, _stem_of(self.shorter).casefold()

    @property
    def hand_in(self) -> tuple[str, str | None]:
        """The same for what was handed in together."""
        return self.download, self.owner.time

    @property
    def number(self) -> int:
        """The higher the later."""
        return self.owner.number


def _in_gradebook(coursedir: Any) -> list[str]:
    """Everybody whom the gradebook knows; none if there is none, and none is made."""
    from autograder.classroom.hooks import class_of
    from autograder.classroom.store import reading

    taught = class_of(coursedir)
    url = make_url(taught.database)
    if url.get_backend_name() == "sqlite" and not Path(url.database or "").is_file():
        return []
    with reading(taught) as book:
        return [str(student.id) for student in book.students]


def _newest(readings: Iterable[_Reading]) -> dict[tuple[str, str], _Reading]:
    """Of those that go to one place, the one that was handed in last."""
    newest: dict[tuple[str, str], _Reading] = {}
    for reading in readings:
        if reading.key not in newest or newest[reading.key].number < reading.number:
            newest[reading.key] = reading
    return newest


def _names_in(folder: str) -> list[str]:
    """What lies in a folder; none if there is none."""
    with suppress(OSError):
        return [path.name for path in Path(folder).iterdir()]
    return []


def _stem_of(name: str) -> str:
    """A file's name without its ending, which may be a longer one of a notebook."""
    return NOTEBOOK.sub("", name) if NOTEBOOK.search(name) else os.path.splitext(name)[0]  # noqa: PTH122


def _ending_in(notebook: str, ending: str) -> str:
    """A notebook's name with its true ending, if it is another one than it was read with."""
    if not NOTEBOOK.fullmatch(ending) or ending == ".ipynb":
        return notebook
    return f"{notebook.removesuffix('.ipynb')}{ending}"


def _destination(notebook: str, file: str) -> PurePosixPath:
    """Where nbgrader puts a file, below its student's folder; it counts endings in this way."""
    ending = os.path.splitext(file)[1]  # noqa: PTH122
    return PurePosixPath(os.path.splitext(notebook)[0] + ending)  # noqa: PTH122


def _stays_inside(student: str, notebook: str) -> bool:
    """Whether the names lead to a file in the student's own folder."""
    *folders, last = notebook.split("/")
    names = [student, *folders, last]
    odd = bool(MARKUP.search(student))
    odd = odd or any(not name or name.startswith(".") or not _is_a_name(name) for name in names)
    return not odd and "/" not in student and not any(name.endswith(".ipynb") for name in folders)


def _time(text: str | None, zone: str = "UTC") -> str:
    """A time in UTC, as nbgrader reads it rightly; empty if it is none, or of an unknown zone."""
    if not text:
        return ""
    if found := DASHED.fullmatch(text):
        text = f"{found['day']} {found['time'].replace('-', ':')}"
    with suppress(ValueError, OverflowError, TypeError, OSError, ZoneInfoNotFoundError):
        days = datetime(2000, 1, 1), datetime(2001, 2, 2)
        ways = [partial(parse, default=day, tzinfos=_no_zone) for day in days]
        times = {read_time(text, ZoneInfo(zone), way) for way in ways}
        if len(times) == 1:  # else it says no day of its own
            return f"{times.pop().astimezone(UTC).replace(tzinfo=None)} UTC"
    return ""


def _no_zone(name: str | None, offset: int | None) -> None:
    """A zone in the midst of a time is one that nobody can tell."""
    if name or offset is not None:
        raise ValueError(f"no zone is known there: {name or offset}")


def _stem(path: Path) -> Path:
    """Where an archive is unpacked: its own path without the endings."""
    name, dot, _ = path.name.rpartition(".")
    name = name.removesuffix(".tar") if dot else path.name
    return path.with_name(name if name.strip(". ") else "archive")

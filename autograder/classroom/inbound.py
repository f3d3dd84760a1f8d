"""`nbgrader collect`, by which nobody hands in what he may not read and nobody stops the others.

nbgrader_config.py names the class:

    c.ExchangeFactory.collect = "autograder.classroom.inbound.SafeCollect"

The exchange's inbound folder is written by students and copied with the instructor's rights. Here
a link stays a link, whatever it leads to and whenever it was put there: what an entry is, is
decided once, and each folder is held open while its files are copied. What is no file and no
folder is left out, and said. A submission is collected whole or not at all, and the others are in
any case.

Who may hand in for whom the file system says (`c.ExchangeCollect.check_owner`): for a name that is
an account of this machine its owner alone, whoever else has made a later folder. A name that is no
account, as where all students are one user of a JupyterHub, cannot be held against an owner. Its
folders are taken, as nbgrader does, with a sentence; but those of one owner alone: whose folder
has lain there longest, by a time (ctime) that no student can set. Where roster.csv lists that
owner's account, and nobody of the name, it is one that a student has made up, to be graded and
shown what hidden tests found more often than others: its folders are not taken.
"""

import math
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property, lru_cache
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any, NamedTuple

from nbgrader.exchange.default import ExchangeCollect
from nbgrader.utils import ignore_patterns, parse_utc

from autograder.classroom.gradebook import time_told
from autograder.classroom.roster import ROSTER, roster_of
from autograder.common.course import CourseError
from autograder.common.failures import WHOLE_CLASS, sentence_of
from autograder.common.names import clean_log, composed, shown
from autograder.common.times import moment
from autograder.judge.parcel import STAMP, Unreadable, read_file

if sys.platform != "win32":
    import fcntl
    import pwd

DEEPEST = 20  # folders in each other
MOST = 20_000  # files, folders and links of one submission
LONGEST = 1000  # bytes of a path in a submission; what graders put before it needs room, too
CHUNK = 1 << 20
MOST_NAMED = 10
AHEAD = timedelta(days=1)  # by so much a clock may be before ours, or in a zone that is not told
NO_NAME = "its name is not STUDENT+ASSIGNMENT+TIME, as nbgrader submit has it"
BEGUN = ".collecting"  # in a student's place in submitted/, where no name begins with a dot
_SAFE = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_FILE = os.O_RDONLY | _SAFE
_FOLDER = _FILE | getattr(os, "O_DIRECTORY", 0)

Record = dict[str, Any]  # a folder of inbound/: username, filename, timestamp; our status


class _Refused(Exception):
    """Why a submission is not collected at all."""


class _Entry(NamedTuple):
    """A folder or a file of a submission that is being copied, held open."""

    path: str
    inside: str  # its path in the submission
    handle: int


@dataclass
class _Copying:
    """What is the same for all files of a submission that is being copied."""

    owner: int
    most: int  # bytes in all
    most_each: float  # bytes in a file
    left_out: Callable[[str, list[str]], Iterable[str]]  # nbgrader's `ignore` and `include`
    seen: int = 0  # bytes
    entries: int = 0

    def names(self, entries: Iterable[os.DirEntry[str]]) -> Iterator[str]:
        """Those in a folder; raises _Refused where there are too many in all folders."""
        for entry in entries:
            self.entries += 1
            if self.entries > MOST:
                raise _Refused(f"it holds more than {MOST} files")
            yield entry.name

    def count(self, size: int) -> None:
        """Add a file's bytes; raises _Refused where all are too many."""
        self.seen += size
        if self.seen > self.most:
            limit = "CourseDirectory.max_dir_size"
            raise _Refused(f"it is larger than {self.most} bytes ({limit})")


class SafeCollect(ExchangeCollect):
    """Collects what students put into the exchange."""

    def __init__(self, **kwargs: Any):
        """Make it with nbgrader's course directory, authenticator and settings."""
        super().__init__(**kwargs)
        self._found: dict[str, os.stat_result] = {}  # what was looked at, by name in inbound/
        self._unchecked: set[str] = set()  # names that are no accounts
        self._odd: dict[str, list[str]] = {}  # names in inbound/ that are left out, by why

    @property
    def _here(self) -> Any:
        """nbgrader's course directory."""
        return self.coursedir

    def init_src(self) -> None:
        """Find the newest of each student's own; a name that nobody can read is nobody's."""
        clean_log(self.log)
        super().init_src()
        self._tell_odd()
        self.src_records = [record for record in self.src_records if record["username"]]
        if self._unchecked:
            self.log.warning(
                "Whose these folders are cannot be told, as their names are no accounts of this "
                "machine; each name's first owner is taken for the student: %s",
                _listed(self._unchecked),
            )

    def _tell_odd(self) -> None:
        """Say what is left out; of what students can make without end only how many there are."""
        for why, names in self._odd.items():
            told = sorted(filter(self._is_told, names))
            for name in told[:MOST_NAMED]:
                self._not_collected(name, why)
            if more := len(told[MOST_NAMED:]):
                self.log.warning("%d more were not collected: %s", more, why)

    def _path_to_record(self, path: str) -> Record:
        """What a folder's name says; without a student if it is not to be collected."""
        name = Path(path).name
        student, when = read_name(name, self._assignment)
        why = self._why_not(student, name, path) if student and when else NO_NAME
        if when and not why:
            when = _credible(when, self._found[name].st_ctime)
            return {"username": student, "filename": name, "timestamp": when}
        return self._nobodys(name, why)

    def _nobodys(self, name: str, why: str) -> Record:
        self._odd.setdefault(why, []).append(name)
        return {"username": "", "filename": name, "timestamp": datetime.min}

    def _why_not(self, student: str, name: str, path: str) -> str:
        """Why this is not what a student has put there; empty if it may be."""
        try:
            status = self._found[name] = os.lstat(path)
        except OSError as error:
            return error.strerror or "it cannot be read"
        if not stat.S_ISDIR(status.st_mode):
            return "it is a link" if stat.S_ISLNK(status.st_mode) else "it is no folder"
        if not self.check_owner or sys.platform == "win32":
            return ""
        try:
            account = pwd.getpwnam(student).pw_uid
        except KeyError:
            if self._is_made_up(student, status.st_uid):
                return f"{ROSTER} lists {_name_of(status.st_uid)}, whose it is, and no such student"
            self._unchecked.add(student)
            return ""
        if account == status.st_uid:
            return ""
        return (
            f"it is {_name_of(status.st_uid)}'s, not {shown(student)}'s; if students have no "
            "accounts here, set c.ExchangeCollect.check_owner = False"
        )

    def _is_made_up(self, student: str, owner: int) -> bool:
        """Whether a student hands in under a name that is nobody's."""
        listed = self._listed
        return composed(student) not in listed and composed(_name_of(owner)) in listed

    @cached_property
    def _listed(self) -> set[str]:
        """Whom the roster lists, if there is one."""
        try:
            return set(map(composed, roster_of(Path(self._here.root)) or ()))
        except CourseError as error:
            self.log.error("%s", error)
            return set()

    def _sort_by_timestamp(self, records: list[Record]) -> list[Record]:
        """One student's, the newest first; of several owners only the first one's."""
        newest: list[Record] = super()._sort_by_timestamp(records)
        if records[0]["username"] not in self._unchecked:
            return newest
        own = min(
            (self._found[one["filename"]] for one in records), key=lambda one: one.st_ctime_ns
        )
        for record in newest:
            uid = self._found[record["filename"]].st_uid
            if uid != own.st_uid:
                whose = f"it is {_name_of(uid)}'s, and the first of that name is "
                self._not_collected(record["filename"], f"{whose}{_name_of(own.st_uid)}'s")
        return [one for one in newest if self._found[one["filename"]].st_uid == own.st_uid]

    def copy_files(self) -> None:
        """Copy them, each for itself; where another run does so already, this one ends."""
        folder = self._place(BEGUN).parents[1]
        folder.mkdir(parents=True, exist_ok=True)
        with _alone_in(folder) as is_alone:
            if not is_alone:
                self.fail(f"Another nbgrader collect is at work in {folder}; wait until it is done")
            self._copy_all()

    def _copy_all(self) -> None:
        self.log.info("%d students have handed in %s", len(self.src_records), self._assignment)
        for record in self.src_records:
            try:
                self._collect(record)
            except _Refused as error:
                self._not_collected(record["filename"], str(error))
            except OSError as error:
                why = sentence_of(error, record["filename"]) or str(error)
                self._not_collected(record["filename"], why)
        with suppress(OSError):
            self._place(BEGUN).parent.rmdir()

    @property
    def _assignment(self) -> str:
        return str(self._here.assignment_id)

    def _place(self, student: str) -> Path:
        """Where a student's work is put."""
        here = self._here
        return Path(here.format_path(here.submitted_directory, student, self._assignment))

    def _collect(self, record: Record) -> None:
        """Copy one submission, if it is wanted, and put it in its place when all of it is there."""
        student = shown(record["username"])
        there, begun = self._place(record["username"]), self._place(BEGUN)
        if not self._is_wanted(record, there):
            return
        begun.parent.mkdir(parents=True, exist_ok=True)
        try:
            _remove(begun)  # what a run that was killed has left
            self.do_copy(str(Path(self.inbound_path, record["filename"])), str(begun))
            arrived = self._found[record["filename"]].st_ctime_ns
            os.utime(begun, ns=(arrived, arrived))
            there.parent.mkdir(parents=True, exist_ok=True)
            _put(begun, there)
        finally:
            _remove(begun)
        self.log.info("Collected: %s %s", student, self._assignment)

    def _is_wanted(self, record: Record, there: Path) -> bool:
        """Whether a submission is to be put there, as nbgrader's settings say."""
        if there.is_symlink() or not there.is_dir():  # nothing of ours is a link
            return True
        student, had = shown(record["username"]), _time_of(there)
        if self.update and (had is None or record["timestamp"] > had):
            return True
        if self.before_duedate and had != record["timestamp"]:
            return True
        if self.update:
            self.log.info("No newer submission: %s %s", student, self._assignment)
        else:
            self.log.info(
                "%s %s was collected before; --update takes what is newer",
                student,
                self._assignment,
            )
        return False

    def do_copy(self, src: str, dest: str, log: Any = None) -> None:
        """Copy one submission; what of it cannot be read is left out, with a line in the log.

        Raises OSError or _Refused where that is not all of it.
        """
        here = self._here
        try:
            handle = os.open(src, _FOLDER)
        except OSError as error:
            raise _Refused(error.strerror or "it cannot be read") from error
        try:
            status = os.fstat(handle)
            found = self._found.get(Path(src).name, status)
            if not os.path.samestat(found, status) or found.st_uid != status.st_uid:
                raise _Refused("it was exchanged while it was collected")
            left_out = ignore_patterns(here.ignore, here.include, None, self.log)
            most_each = 1000 * here.max_file_size or math.inf  # 0 is no limit, as in nbgrader
            most = 1000 * here.max_dir_size
            copying = _Copying(status.st_uid, most, most_each, left_out)
            self._copy_folder(_Entry(src, "", handle), Path(dest), copying)
        finally:
            os.close(handle)

    def _copy_folder(self, folder: _Entry, target: Path, copying: _Copying) -> None:
        with os.scandir(folder.handle) as entries:
            names = sorted(copying.names(entries))
        out = {*copying.left_out(folder.path, names)}
        target.mkdir()
        self._share(target, 0o2770)
        for name in names:
            if name not in out:
                self._copy_entry(folder, name, target / name, copying)

    def _copy_entry(self, folder: _Entry, name: str, target: Path, copying: _Copying) -> None:
        """Copy what is a file or a folder, make a link of what is one.

        Which of them it is is decided here, once.
        """
        where = f"{folder.inside}/{name}".lstrip("/")
        if len(os.fsencode(where)) > LONGEST:
            self._not_collected(where, "its path is too long")
            return
        try:
            status = os.stat(name, dir_fd=folder.handle, follow_symlinks=False)
            if stat.S_ISLNK(status.st_mode):
                opened = os.readlink(name, dir_fd=folder.handle)
            else:
                is_folder = stat.S_ISDIR(status.st_mode)
                opened = os.open(name, _FOLDER if is_folder else _FILE, dir_fd=folder.handle)
        except OSError as error:
            if error.errno in WHOLE_CLASS:
                raise
            self._not_collected(where, error.strerror or "it cannot be read")
            return
        if isinstance(opened, str):
            self._link(where, opened, target)
            return
        try:
            self._copy_opened(_Entry(f"{folder.path}/{name}", where, opened), target, copying)
        finally:
            os.close(opened)

    def _copy_opened(self, entry: _Entry, target: Path, copying: _Copying) -> None:
        status = os.fstat(entry.handle)
        if stat.S_ISDIR(status.st_mode):
            if entry.inside.count("/") > DEEPEST:
                self._not_collected(entry.inside, "it lies too deep")
            else:
                self._copy_folder(entry, target, copying)
        elif why := _why_left_out(status, copying):
            self._not_collected(entry.inside, why)
        else:
            copying.count(status.st_size)
            _copy_file(entry, status, target)
            self._share(target, 0o660)

    def _link(self, name: str, leads_to: str, target: Path) -> None:
        if target.name == STAMP:  # nbgrader opens it, wherever a link of that name leads
            self._not_collected(name, "it is a link")
            return
        self.log.warning("%s is a link; it stays one, and nothing behind it is read", shown(name))
        target.symlink_to(leads_to)

    def _share(self, path: Path, mode: int) -> None:
        """Let the other instructors write what was made, if nbgrader's settings say so."""
        if self._here.groupshared:
            path.chmod(path.stat().st_mode & 0o7777 | mode)

    def _is_told(self, name: str) -> bool:
        """Whether it is said that this is left out."""
        return True

    def _not_collected(self, name: str, why: str) -> None:
        self.log.warning("%s was not collected: %s", shown(name), why)


@contextmanager
def _alone_in(folder: Path) -> Iterator[bool]:
    """Whether no other run collects there; none begins inside, and the system ends that, too."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        yield _is_locked(handle)
    finally:
        os.close(handle)


def _is_locked(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system that knows no such locks
        return True
    return True


def _why_left_out(status: os.stat_result, copying: _Copying) -> str:
    """Why what is open is not copied; empty if it is."""
    if not stat.S_ISREG(status.st_mode):
        return "it is no file"
    if status.st_nlink > 1 and status.st_uid != copying.owner:
        return "it is a file of somebody else's under a second name"
    if status.st_size > copying.most_each:
        return f"it is larger than {copying.most_each} bytes (CourseDirectory.max_file_size)"
    return ""


def _copy_file(file: _Entry, status: os.stat_result, target: Path) -> None:
    """Copy as many bytes as there were when it was opened; raises _Refused where they are fewer."""
    left = status.st_size
    with target.open("xb") as copy:
        while left > 0 and (chunk := os.read(file.handle, min(CHUNK, left))):
            left -= copy.write(chunk)
    if left:
        raise _Refused(f"{shown(file.inside)} was written to while it was collected")
    os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))


def _put(begun: Path, there: Path) -> None:
    """Put a whole submission in its place; only then does what was there begin to go.

    Of what another instructor has collected not all may let itself be removed.
    """
    aside = Path(mkdtemp(prefix="old-", dir=begun.parent))
    if there.is_symlink() or there.is_dir():
        there.rename(aside / "old")
    begun.rename(there)
    rmtree(aside, ignore_errors=True)


def _remove(path: Path) -> None:
    """Remove a folder or a link; a file is nobody's submission, and stays."""
    if path.is_symlink():
        path.unlink()
    elif path.is_dir():
        rmtree(path)


def _listed(names: Iterable[str]) -> str:
    known = sorted(names)
    more = len(known) - MOST_NAMED
    return ", ".join(map(shown, known[:MOST_NAMED])) + (f" and {more} more" if more > 0 else "")


def _name_of(uid: int) -> str:
    """An account's name; of one that is gone its number."""
    with suppress(KeyError):
        return pwd.getpwuid(uid).pw_name
    return f"user {uid}"


@lru_cache(maxsize=100_000)  # of names without end, only new ones cost time
def read_name(name: str, assignment: str) -> tuple[str, datetime | None]:
    """Who handed in and when, as the name of a folder says it; None if it says no time.

    A + may stand in the student's name and in the time, whose zone may be +04.
    """
    student, _, rest = name.rpartition(f"+{assignment}+")
    for text in (rest.rpartition("+")[0], rest):  # `nbgrader submit` ends it in something drawn
        # a Warning is raised for a time zone that is a path
        with suppress(ValueError, ArithmeticError, LookupError, TypeError, Warning):
            return student, _in_utc(text) or parse_utc(text)
    return student, None


def _time_of(folder: Path) -> datetime | None:
    """When a collected submission says that it was handed in; None if it says no time."""
    with suppress(Unreadable, OSError):
        told = read_file(folder / STAMP, 1000).decode("utf-8", "replace").strip()
        when = _in_utc(told) or time_told(told)
        return when and _credible(when, folder.lstat().st_mtime)
    return None


def _credible(when: datetime, arrived: float) -> datetime:
    """A time that a student's clock has told; of one that is yet to come when the work arrived.

    With the first work of a clock that is ahead none would be newer until that time has come.
    """
    there = datetime.fromtimestamp(arrived, UTC).replace(tzinfo=None)
    return there if when > there + AHEAD else when


def _in_utc(text: str) -> datetime | None:
    """A time as `nbgrader submit` writes it; nbgrader takes the zone +04 for four seconds."""
    with suppress(ValueError, ArithmeticError):
        return datetime.fromtimestamp(moment(text), UTC).replace(tzinfo=None)
    return None

"""nbgrader's exchange as the watcher uses it: what has arrived whole, collected; pages, released.

A folder in inbound/ is written by its student file by file. It is whole once what `nbgrader submit`
writes last is there and it has not changed for a moment; one in which that never comes is taken as
it is after a while. Until then it is not collected, so that no half of a work is ever graded.
"""

import filecmp
import logging
import math
import os
import re
import stat
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from nbgrader.auth import Authenticator
from nbgrader.coursedir import CourseDirectory
from nbgrader.exchange import ExchangeError
from nbgrader.exchange.default import Exchange
from traitlets import TraitError

from autograder.classroom.inbound import DEEPEST, MOST, NO_NAME, SafeCollect, read_name
from autograder.classroom.outbound import SafeRelease
from autograder.common.course import Course, CourseError, read_config
from autograder.common.failures import in_words
from autograder.judge.parcel import SECRET_FILE, STAMP

SETTLED = 1.0  # seconds without a change, after which a whole work is taken
GIVEN_UP = 60.0  # the same, where what is written last does not come
ANYWAY = 30.0  # seconds after which it is looked at, whatever its own time says
MOST_SAID = 10_000  # sentences that are not told twice


class _Look(NamedTuple):
    """What a folder of inbound/ was like."""

    changed: int  # by the file system's own time, which no student sets
    since: float
    has_all: bool


@dataclass(frozen=True)
class Arrived:
    """A work that arrived."""

    student: str
    assignment: str
    when: float  # of the last change in it, by the file system's own time
    is_new: bool  # whether it was not collected before
    folder: str = ""  # its name in the exchange
    work: str = ""  # a digest of that name and of what was collected
    owner: int = -1  # the account that has put it there


class Inbound:
    """The folder in which students' works arrive."""

    def __init__(self, course: Course, names: Collection[str], say: Callable[[str], None]) -> None:
        """Look at nothing yet.

        Args:
            course: the course.
            names: of the assignments that are watched.
            say: is told what was not collected, and why.
        """
        self._course, self._names, self._say = course, names, say
        self._looks: dict[str, _Look] = {}
        self._done: set[str] = set()  # entries that were collected, or found not to be wanted
        self._nobodys: dict[str, str] = {}  # of these the last, with why: they are read once
        self._changed = 0  # of the folder itself, when last looked at
        self._looked = -math.inf
        self._log = _Telling(say)

    def take(self) -> Iterator[Arrived]:
        """Collect what has arrived whole since the last call, each student's newest.

        Raises:
            CourseError: if the exchange cannot be read.
        """
        path = self._path()
        with in_words(path):
            changed, now = path.stat().st_mtime_ns, time.monotonic()
            is_same = changed == self._changed and not self._looks
            if is_same and now < self._looked + ANYWAY:
                return
            self._see(path)
            self._changed, self._looked = changed, now
        whole = {name for name, look in self._looks.items() if self._is_whole(look)}
        for assignment in self._names:
            mine = {name for name in whole if read_name(name, assignment)[1] is not None}
            if mine:
                yield from self._collect(assignment, mine, frozenset(self._looks.keys() - whole))

    def _path(self) -> Path:
        exchange = _made(Exchange, self._course)
        inbound = Path(exchange.root, exchange.coursedir.course_id, "inbound")
        if not exchange.coursedir.course_id or not inbound.is_dir():
            raise CourseError(
                f"There is no {inbound}; release an assignment first, with nbgrader "
                "release_assignment, or mend c.Exchange.root and c.CourseDirectory.course_id."
            )
        return inbound

    def _see(self, path: Path) -> None:
        """Note what is new, and what has changed since it was seen."""
        now = time.monotonic()
        here = set()
        with os.scandir(path) as entries:
            for entry in entries:
                here.add(entry.name)
                if entry.name in self._done:
                    continue
                if self._is_ours(entry.name):
                    self._note(entry, now)
                else:
                    self._done.add(entry.name)
                    self._nobodys[entry.name] = NO_NAME
        self._looks = {name: look for name, look in self._looks.items() if name in here}
        self._done &= here
        self._nobodys = {name: why for name, why in self._nobodys.items() if name in here}

    def _is_ours(self, name: str) -> bool:
        return any(read_name(name, one)[1] is not None for one in self._names)

    def _note(self, entry: os.DirEntry[str], now: float) -> None:
        with suppress(OSError):  # it may go, or may not be looked into: collecting says why
            status = entry.stat(follow_symlinks=False)
            is_folder = stat.S_ISDIR(status.st_mode)
            last = [Path(entry.path, name) for name in (STAMP, SECRET_FILE)] if is_folder else []
            has_all = all(os.path.lexists(path) for path in last)
            before = self._looks.get(entry.name)
            if before is None or before.changed != status.st_ctime_ns:
                self._looks[entry.name] = _Look(status.st_ctime_ns, now, has_all)

    @staticmethod
    def _is_whole(look: _Look) -> bool:
        return time.monotonic() - look.since >= (SETTLED if look.has_all else GIVEN_UP)

    def _collect(
        self, assignment: str, mine: set[str], unready: frozenset[str]
    ) -> Iterator[Arrived]:
        """Collect these folders; what could not be copied whole is tried again after a while."""
        collecting = _made(_Whole, self._course, assignment, self._log)
        collecting.wanted, collecting.unready, collecting.update = mine, unready, True
        collecting.nobodys = self._nobodys
        with _in_words("collected", assignment):
            collecting.start()
        now = time.monotonic()
        for name in mine - collecting.failed:
            del self._looks[name]
        for name in mine & collecting.failed:
            self._looks[name] = _Look(self._looks[name].changed, now, has_all=False)
        self._done |= mine - collecting.failed
        self._nobodys |= {name: why for name, why in collecting.refused.items() if name in mine}
        for record in collecting.src_records:
            student, name = str(record["username"]), record["filename"]
            if name not in collecting.failed:
                when = collecting.changed_last(name)
                is_new, owner = student in collecting.taken, collecting.owner(name)
                yield Arrived(student, assignment, when, is_new, name, owner=owner)


class _Whole(SafeCollect):
    """Collects what is whole, and says whose."""

    wanted: Collection[str] = ()  # folders of inbound/
    unready: Collection[str] = ()
    nobodys: Mapping[str, str] = {}  # what is known to be left out, and why

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.taken: set[str] = set()  # students
        self.failed: set[str] = set()  # folders
        self.refused: dict[str, str] = {}  # folders, with why

    def changed_last(self, name: str) -> float:
        """When anything in a folder was last changed, which no student sets.

        A file that is written to in place changes nothing of the folders above it.
        """
        path = Path(self.inbound_path, name)
        return max([self._found[name].st_ctime, *_changes_in(path)])

    def owner(self, name: str) -> int:
        """Whose a folder is."""
        return self._found[name].st_uid

    def init_src(self) -> None:
        super().init_src()
        self.src_records = [one for one in self.src_records if one["filename"] in self.wanted]

    def _collect(self, record: dict[str, Any]) -> None:
        self.failed.add(record["filename"])
        super()._collect(record)
        self.failed.discard(record["filename"])

    def _why_not(self, student: str, name: str, path: str) -> str:
        return (
            "it is still being written"
            if name in self.unready
            else super()._why_not(student, name, path)
        )

    def _path_to_record(self, path: str) -> dict[str, Any]:
        name = Path(path).name
        why = self.nobodys.get(name)
        return super()._path_to_record(path) if why is None else self._nobodys(name, why)

    def _nobodys(self, name: str, why: str) -> dict[str, Any]:
        self.refused[name] = why
        return super()._nobodys(name, why)

    def _is_told(self, name: str) -> bool:
        return name not in self.unready

    def _is_wanted(self, record: dict[str, Any], there: Path) -> bool:
        wanted = super()._is_wanted(record, there)
        if wanted:
            self.taken.add(str(record["username"]))
        return wanted


def _changes_in(path: Path) -> Iterator[float]:
    """When a folder and all that lies in it were last changed, as far as works are collected."""
    with suppress(OSError):
        yield path.lstat().st_ctime
    left, top = MOST, str(path).count("/")
    for above, folders, files, handle in _walked(path):
        for name in (*folders, *files)[:left]:
            with suppress(OSError):
                yield os.stat(name, dir_fd=handle, follow_symlinks=False).st_ctime
        left -= len(folders) + len(files)
        if left <= 0:
            return
        if above.count("/") - top >= DEEPEST:
            folders.clear()


def _walked(path: Path) -> Iterator[tuple[str, list[str], list[str], int]]:
    """As os.fwalk, which fails where a student takes a folder away meanwhile."""
    with suppress(OSError):
        yield from os.fwalk(path)


class _Changed(SafeRelease):
    """Releases pages that say something else than what was released."""

    only: Collection[str] | None = None  # students; None for all

    def _pages(self) -> Iterable[Path]:
        if self.only is None:
            return super()._pages()
        here: Any = self.coursedir
        folders = (
            Path(here.format_path(here.feedback_directory, one, here.assignment_id))
            for one in self.only
        )
        return [page for folder in folders for page in sorted(folder.glob("*.html"))]

    def _is_out(self, page: Path, copy: Path) -> bool:
        return copy.is_file() and filecmp.cmp(page, copy, shallow=False)


def publish(
    course: Course,
    assignment: str,
    students: Collection[str] | None,
    say: Callable[[str], None],
) -> None:
    """Release pages of an assignment that have changed.

    Args:
        course: the course.
        assignment: its name.
        students: whose; None for everybody's.
        say: is told which page was not released, and why.

    Raises:
        CourseError: if the exchange cannot be written.
    """
    releasing = _made(_Changed, course, assignment, _Telling(say))
    releasing.only = students
    with _in_words("released", assignment):
        releasing.start()


@contextmanager
def _in_words(what: str, assignment: str) -> Iterator[None]:
    """Inside, what the exchange refuses, or the gradebook with due dates, is a CourseError."""
    try:
        with in_words(f"of {assignment}"):
            yield
    except ExchangeError as error:
        raise CourseError(f"{assignment} was not {what}: {error}") from error


class _Telling(logging.Logger):
    """nbgrader's log; warnings are told on, each once, and the rest is not kept."""

    def __init__(self, say: Callable[[str], None]) -> None:
        super().__init__("watch", logging.WARNING)
        self._said: set[str] = set()
        self._tell = say

    def handle(self, record: logging.LogRecord) -> None:
        """Tell what has not been told."""
        if self.filter(record):
            words = record.getMessage().strip()
            if words not in self._said:
                if len(self._said) > MOST_SAID:
                    self._said.clear()
                self._said.add(words)
                self._tell(words)


def _made(kind: Any, course: Course, assignment: str = "", log: Any = None) -> Any:
    """A part of nbgrader's exchange for this course, with its settings."""
    config = read_config(course.root)
    try:
        folder = CourseDirectory(config=config)
        if "root" not in config.get("CourseDirectory", {}):
            folder.root = str(course.root)
        folder.assignment_id = assignment
        who, more = Authenticator(config=config), {} if log is None else {"log": log}
        return kind(coursedir=folder, authenticator=who, config=config, **more)
    except TraitError as error:
        what = re.sub(r" of an? \w+ instance", "", str(error))
        raise CourseError(f"By nbgrader's settings nothing is collected: {what}") from error

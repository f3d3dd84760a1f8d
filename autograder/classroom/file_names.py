"""What the names of files that were handed in say: whose, when, and where each is to go."""

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path, PurePath, PurePosixPath
from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from dateutil.parser import parse

from autograder.classroom.archives import is_a_name
from autograder.classroom.places import NOTEBOOK
from autograder.common.times import read_time

INNER = ".unpacked"  # ends the name of a folder that was an archive in an archive
DASHED = re.compile(r"(?P<day>\d{4}-\d\d?-\d\d?)[- ](?P<time>\d\d?-\d\d?(-\d\d?)?)", re.ASCII)
ATTEMPT = re.compile(r"(-\d+| ?\(\d+\))$")  # ends the name of what was handed in once more
MARKUP = re.compile(r"[<>\"`\\]")  # no system writes it in file names, and pages need none


@dataclass
class Destinations:
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


class Said(NamedTuple):
    """What a path says by the regular expression."""

    start: int = -1  # of the student's name
    end: int = -1
    student: str = ""  # empty if it names none
    place: str = ""
    time: str | None = None
    number: int = -1  # the higher the later
    at: Path | None = None  # the folder whose name says it
    is_own_name: bool = True  # whether he is called so, to the sign


@dataclass
class Reading:
    """What a file is collected as."""

    file: Path
    found: dict
    student: str
    owner: Said
    download: str  # the outermost folder
    place: str = ""
    shorter: str = ""  # its name without a system's number

    @property
    def key(self) -> tuple[str, str]:
        """The same for what goes to one place, but for a system's number."""
        return self.student, stem_of(self.shorter).casefold()

    @property
    def hand_in(self) -> tuple[str, str | None]:
        """The same for what was handed in together."""
        return self.download, self.owner.time

    @property
    def number(self) -> int:
        """The higher the later."""
        return self.owner.number


def newest_of(readings: Iterable[Reading]) -> dict[tuple[str, str], Reading]:
    """Of those that go to one place, the one that was handed in last."""
    newest: dict[tuple[str, str], Reading] = {}
    for reading in readings:
        if reading.key not in newest or newest[reading.key].number < reading.number:
            newest[reading.key] = reading
    return newest


def is_a_systems(path: PurePath) -> bool:
    """Whether a system has put this there for itself, as a Mac does beside each file of a zip."""
    return path.name.startswith(("._", ".DS_Store")) or "__MACOSX" in path.parts


def names_in(folder: str) -> list[str]:
    """What lies in a folder; none if there is none."""
    with suppress(OSError):
        return [path.name for path in Path(folder).iterdir() if not is_a_systems(Path(path.name))]
    return []


def stem_of(name: str) -> str:
    """A file's name without its ending, which may be a longer one of a notebook."""
    return NOTEBOOK.sub("", name) if NOTEBOOK.search(name) else os.path.splitext(name)[0]  # noqa: PTH122


def with_ending(notebook: str, ending: str) -> str:
    """A notebook's name with its true ending, if it is another one than it was read with."""
    if not NOTEBOOK.fullmatch(ending) or ending == ".ipynb":
        return notebook
    return f"{notebook.removesuffix('.ipynb')}{ending}"


def destination(notebook: str, file: str) -> PurePosixPath:
    """Where nbgrader puts a file, below its student's folder; it counts endings in this way."""
    ending = os.path.splitext(file)[1]  # noqa: PTH122
    return PurePosixPath(os.path.splitext(notebook)[0] + ending)  # noqa: PTH122


def stays_inside(student: str, notebook: str) -> bool:
    """Whether the names lead to a file in the student's own folder."""
    *folders, last = notebook.split("/")
    names = [student, *folders, last]
    odd = bool(MARKUP.search(student))
    odd = odd or any(not name or name.startswith(".") or not is_a_name(name) for name in names)
    return not odd and "/" not in student and not any(name.endswith(".ipynb") for name in folders)


def time_in_utc(text: str | None, zone: str = "UTC") -> str:
    """A time in UTC, as nbgrader reads it rightly; empty if it is none, or of an unknown zone."""
    if not text:
        return ""
    if found := DASHED.fullmatch(text):
        text = f"{found['day']} {found['time'].replace('-', ':')}"
    with suppress(ValueError, ArithmeticError, TypeError, OSError, ZoneInfoNotFoundError):
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


def unpacked_at(path: Path) -> Path:
    """Where an archive is unpacked: its own path without the endings."""
    name, dot, _ = path.name.rpartition(".")
    name = name.removesuffix(".tar") if dot else path.name
    return path.with_name(name if name.strip(". ") else "archive")

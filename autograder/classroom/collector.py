"""Which of the files that were downloaded are collected, and as whose: `SafeCollector`.

Who has handed in a file is what the outermost name says, of a file or a folder; see
`autograder.classroom.unzip` for how it is named in nbgrader_config.py.
"""

import os
import re
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property, lru_cache
from pathlib import Path, PurePosixPath
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from nbgrader.apps.zipcollectapp import ZipCollectApp
from nbgrader.plugins.zipcollect import FileNameCollectorPlugin
from nbgrader.utils import find_all_notebooks
from traitlets import TraitError, Unicode, validate

from autograder.classroom.archives import MAX_FILES
from autograder.classroom.file_names import (
    ATTEMPT,
    INNER,
    MARKUP,
    Destinations,
    Reading,
    Said,
    destination,
    is_a_systems,
    newest_of,
    stays_inside,
    stem_of,
    time_in_utc,
    unpacked_at,
    with_ending,
)
from autograder.classroom.places import NOTEBOOK, students_in
from autograder.classroom.roster import Person, roster_of
from autograder.common.course import CourseError
from autograder.common.names import clean_log
from autograder.judge.parcel import STAMP

KEYS = ("student_id", "file_id")

NO_REGEXP = (
    "Nothing says how files are named: collect with "
    "--collector=autograder.classroom.unzip.FromCanvas, FromMoodle or FromBlackboard, or set "
    "c.FileNameCollectorPlugin.named_regexp."
)


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
        self._seen: dict[str, Destinations] = {}  # by student
        self._places: dict[str, set[str]] = {}  # by student; of two places two people are called so
        self._like: dict[str, set[str]] = {}  # the same of those who are called nearly so
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
            file = unpacked_at(file)
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
        readings = self._of_one([one for file in files if (one := self._reading(file))])
        self._name(readings)
        newest = newest_of(readings)
        for reading in readings:
            newer = newest[reading.key]
            same = newer.found["file_id"] == reading.found["file_id"]
            if newer.number > reading.number and (same or newer.download != reading.download):
                self.log.error("%s was left out: %s is newer", reading.file, newer.file)
            elif self._is_taken(reading):
                self._plan[reading.file] = reading.found

    def _reading(self, file: Path) -> "Reading | None":
        """What a file's name says, if that may be collected."""
        root, parts = self._below(file)
        ending = self._ending(file)
        if ending is None or is_a_systems(file.relative_to(root)):
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
        found |= {"student_id": said.student, "file_id": with_ending(found["file_id"], ending)}
        if words := self._against(file, said, owner, found["file_id"]):
            self.log.error("%s was left out: %s", file, words)
            return None
        self._set_time(file, found, owner)
        download = parts[0] if len(parts) > 1 else ""
        return Reading(file, found, said.student, owner, download, said.place)

    def _against(self, file: Path, said: "Said", owner: "Said", notebook: str) -> str:
        """Why a file is not collected, in words; empty if nothing is against it."""
        student = said.student
        if not student:
            return self.doubt
        if not stays_inside(student, notebook):
            return f"it names {student!r}, {notebook!r}"
        if destination(notebook, str(file)).parts[0].casefold() == STAMP:
            return "nobody says when it was handed in"  # it is where nbgrader writes it
        if not owner.student:
            return f"it names {student!r}, but its archive's name says no student"
        if owner.student != student:
            return f"it names {student!r}, but comes from {owner.student!r}"
        places = self._places if said.is_own_name else self._like
        places.setdefault(student, set()).add(said.place)
        return ""

    def _of_one(self, readings: "list[Reading]") -> "list[Reading]":
        """Those of names that are one person's.

        Of two of one name neither is collected: who can choose his name would hand in for another.
        Who is only called nearly so keeps nobody away.
        """
        taken: list[Reading] = []
        for reading in readings:
            student = reading.student
            own, like = self._places.get(student, set()), self._like.get(student, set())
            if len(own or like) == 1 and reading.place in (own or like):
                taken.append(reading)
                continue
            at = " and ".join(map(repr, sorted(own | like)[:2]))
            words = "%s was left out: two people are called %r, at %s; collect them by hand"
            self.log.error(words, reading.file, student, at)
        return taken

    def _ending(self, file: Path) -> str | None:
        """How a name ends, of a file that may be collected: notebooks get longer ones on phones."""
        ending = NOTEBOOK.search(file.name)
        if ending and ".ipynb" in self.valid_ext:
            return ending[0]
        return file.suffix if file.suffix in self.valid_ext else None

    def _set_time(self, file: Path, found: dict, owner: "Said") -> None:
        """Put the time in that the outermost name says, if it can be read."""
        found.pop("timestamp", None)
        if time := time_in_utc(owner.time, self.time_zone):
            found["timestamp"] = time
            return
        self._untimed.add(owner.student)
        if owner.time:
            self._unclear.add(owner.student)
            words = "%s: it is not known whether it is late, as %r is no time, or of no known zone"
            self.log.error(words, file, owner.time)

    def _name(self, readings: "list[Reading]") -> None:
        """Take a system's number off a name, where one file alone of a hand-in has that name then.

        Of several, what is a copy of what is for whoever reads them to say.
        """
        for reading in readings:
            reading.shorter = self._without_number(reading.found["file_id"])
        alike = Counter((reading.hand_in, reading.key) for reading in readings)
        for reading in readings:
            if alike[reading.hand_in, reading.key] == 1:
                reading.found["file_id"] = reading.shorter

    def _is_taken(self, reading: "Reading") -> bool:
        """Whether a file is collected, as nothing else is in its place."""
        if reading.student in self._unclear:
            reading.found.pop("timestamp", None)
        goes_to = destination(reading.found["file_id"], str(reading.file))
        seen = self._seen.setdefault(reading.student, Destinations())
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
        stem = stem_of(name)
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

    def _owner(self, file: Path) -> "Said":
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
        return unpacked_at(others[0]).name if len(others) == 1 and others[0].is_file() else ""

    def _holding(self, folder: Path, part: str, below: tuple[str, ...]) -> "Said | None":
        """What the name of a folder says for a file in it, wherever in it the file lies.

        Folders between the two are left out one by one: one of them may say another student.
        """
        inside = len(str(folder / "x")) - 1
        for start in range(len(below)):
            said = self._said(folder.joinpath(part, *below[start:]))
            if inside <= said.start <= said.end <= inside + len(part):
                return said
        return None

    def _named(self, folder: Path, part: str, suffix: str, before: int) -> "Said | None":
        """What one part of a path says first on its own, left of where a student is found."""
        inside = len(str(folder / "x")) - 1
        first: Said | None = None
        for cut in re.finditer(r"(?<=\w)(?!\w)|(?<=_)", part):
            said = self._said(folder / f"{part[: cut.start()]}{suffix}")
            if not inside <= said.start <= said.end <= min(before, inside + cut.start() - 1):
                continue
            if first is None or (first.start, first.end) == (said.start, said.end):
                first = said  # the more there is to the right of a time, the more is it whole
        return first

    def _asked(self, path: Path) -> "Said":
        """What the regular expression finds in a path."""
        match = self._found(str(path)) if self.named_regexp else None
        groups = match.groupdict() if match else {}
        if match is None or not groups.get("student_id"):
            return Said()
        true, place = self._who(match)
        student = MARKUP.sub("", true).lstrip(". ")
        if student != true:  # which is another one than he who is called so
            place = f"{place} {true}"
        number = int(groups.get("lms_number") or "-1")
        span, time = match.span("student_id"), groups.get("timestamp")
        return Said(*span, student, place, time, number, is_own_name=student == true)

    def _below(self, file: Path) -> tuple[Path, tuple[str, ...]]:
        """The folder of what was unpacked, and the path from there."""
        if self._root and file.is_relative_to(self._root):
            return self._root, file.relative_to(self._root).parts
        return file.parent, (file.name,)


def _in_gradebook(coursedir: Any) -> list[str]:
    """Everybody whom the gradebook knows; none if there is none, and none is made."""
    from autograder.classroom.gradebook import is_there, reading
    from autograder.classroom.nbgrader_course import class_of

    taught = class_of(coursedir)
    if not is_there(taught):
        return []
    with reading(taught) as book:
        return [str(student.id) for student in book.students]

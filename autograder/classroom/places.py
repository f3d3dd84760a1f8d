"""Find where each student's work lies, also where it does not lie where it should.

nbgrader wants submitted/<student>/<assignment>/<notebook>.ipynb. A folder whose name is misspelt
and a notebook beside its folder are found if only one thing can be meant; what is meant for nothing
is named, so that no work is 0 in silence. Nothing is opened but folders, and no link is followed.
"""

import difflib
import errno
import os
import re
import stat
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from autograder.common.names import shown
from autograder.judge.parcel import MAX_DEPTH as PARCEL_DEPTH
from autograder.judge.parcel import NOT_EXTRA, Place

MOST = 500  # entries of one folder that are looked at
MOST_IN_ALL = 5000  # of a folder with all that lies in it
DEEPEST = 20  # folders below a student's in which work is looked for, to name it
ALIKE = 0.8  # how near a misspelt name has to be
COPY = re.compile(r"([ _-]*\(\d+\)|[ _-]+(copy|kopie|final|done|solved)\d*)+$", re.IGNORECASE)
NOTEBOOK = re.compile(r"\.ipynb(\.txt|\.json)?[\s.]*$", re.IGNORECASE)
NOTHING = (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG)  # there is nothing of that name
ARCHIVE = r"\.(zipx?|rar|7z(\.\d+)?|tar(\.\w+)?|ipynb\.(gz|bz2|xz|zst)|tgz|tbz2?|txz)[\s.]*$"
WORK = re.compile(rf"{NOTEBOOK.pattern}|{ARCHIVE}", re.IGNORECASE)
HIDDEN = (*NOT_EXTRA, "__MACOSX", ".git")
SYSTEMS = ("Thumbs.db", "desktop.ini")  # files that a system puts anywhere


class Stray(NamedTuple):
    """Work that nobody will grade."""

    student: str  # whose folder it lies in; empty if in none
    words: str


@dataclass
class Places:
    """Where a class's work lies.

    Args:
        submitted: the folder with a folder for each student.
        notebooks: the course's assignments, each with the names of its notebooks.
    """

    submitted: Path
    notebooks: Mapping[str, Sequence[str]]
    _meant: dict[str, dict[str, list[tuple[str, bool]]]] = field(default_factory=dict)

    def of(self, student: str, assignment: str) -> Place | None:
        """Where this work lies; None if there is none."""
        try:
            return self._place(self.submitted / student, assignment)
        except OSError as error:
            return Place(self.submitted / student, reason=_unread(error))

    def _place(self, folder: Path, assignment: str) -> Place | None:
        above = _kind(folder)
        if above == "link":
            return Place(folder, reason="the student's folder is a link, which is not followed")
        if above != "folder":
            return None
        try:
            found = self._of_student(folder.name).get(assignment, [])
        except OSError:  # what lies there under its true name may be taken all the same
            if not _kind(folder / assignment):
                raise
            found = []
        if self._is_there(folder / assignment, assignment, found):
            return Place(folder / assignment)
        if not found:
            return None
        names = ", ".join(shown(name) for name, _ in found[:5])
        if self._are_parts(assignment, found):
            note = f"{names} was graded; it should lie in the folder {assignment}, not beside it."
            return Place(folder, 1, frozenset(name for name, _ in found), note)
        if len(found) > 1:
            lack = "no work in the" if os.path.lexists(folder / assignment) else "no"
            reason = f"there is {lack} folder {assignment}, and {names} could each be meant; "
            reason += "keep one"
            return Place(folder, reason=reason)
        note = f"The folder {names} was graded as {assignment}, the name that it should have."
        return Place(folder / found[0][0], note=note)

    def _is_there(self, true: Path, assignment: str, others: Sequence[tuple[str, bool]]) -> bool:
        """Whether the folder of the true name counts: not if it is empty, and work lies beside."""
        if not others or _kind(true) != "folder":
            return bool(_kind(true))
        wanted = (true / f"{name}.ipynb" for name in self.notebooks[assignment])
        if any(os.path.lexists(path) for path in wanted):
            return True
        return _holds(true, PARCEL_DEPTH, NOTEBOOK)

    def _are_parts(self, assignment: str, found: Sequence[tuple[str, bool]]) -> bool:
        """Whether these are notebooks, each another one of the assignment's."""
        if len(found) == 1:
            return not found[0][1]
        stems = [_plain(NOTEBOOK.sub("", name)) for name, is_folder in found if not is_folder]
        true = {_plain(name) for name in self.notebooks[assignment]}
        return len(stems) == len(found) == len(set(stems)) and set(stems) <= true

    def strays(self, students: Sequence[str]) -> Iterator[str]:
        """Work that nobody will grade, in words: where it lies, and where it should."""
        return (stray.words for stray in self.found_strays(students))

    def found_strays(self, students: Sequence[str]) -> Iterator[Stray]:
        """The same, with whose it is."""
        for words in self._strays_of_nobody():
            yield Stray("", words)
        for student in students:
            try:
                for words in self._strays_of(student):
                    yield Stray(student, words)
            except OSError as error:
                yield Stray(student, f"{shown(student)}: {_unread(error)}")

    def _strays_of_nobody(self) -> Iterator[str]:
        for name, kind in kinds_in(self.submitted):
            if _is_students(name, kind):
                continue
            if kind == "folder":
                if name not in HIDDEN and _holds(self.submitted / name, DEEPEST, NOTEBOOK):
                    yield f"{shown(name)} is no student's folder: its name begins with a dot"
            elif WORK.search(name) or not (name.startswith(".") or name in SYSTEMS):
                yield f"{shown(name)} lies in no student's folder"

    def _strays_of(self, student: str) -> Iterator[str]:
        folder = self.submitted / student
        if _kind(folder) != "folder":
            return
        meant = self._of_student(student)
        claimed = {name for found in meant.values() for name, _ in found}
        for assignment, found in meant.items():
            if self._is_there(folder / assignment, assignment, found):
                for name, _ in found:
                    words = f"was not graded: {assignment} is there as well"
                    yield f"{shown(student)}/{shown(name)} {words}"
        for name, is_folder in _entries(folder):
            if name in self.notebooks:
                yield from self._strays_in(folder / name)
            if name in claimed or name in self.notebooks or name in HIDDEN:
                continue
            if _holds(folder / name, DEEPEST) if is_folder else WORK.search(name):
                yield f"{shown(student)}/{shown(name)} belongs to no assignment"

    def _strays_in(self, true: Path) -> Iterator[str]:
        """Notebooks of assignments that this student has no folder of, in one of another's."""
        own = {f"{name}.ipynb" for name in self.notebooks[true.name]}
        entries: list[tuple[str, bool]] = []
        with suppress(OSError):  # that it cannot be read is the reason of its own grade
            entries = _entries(true) if _kind(true) == "folder" else []
        for name, is_folder in entries:
            if is_folder or name in own or not NOTEBOOK.search(name):
                continue
            meant = self._called(name)
            if meant not in ("", true.name) and self._place(true.parent, meant) is None:
                where = "/".join(map(shown, (true.parent.name, true.name, name)))
                yield f"{where} was not graded: it should lie in the folder {meant}"

    def _called(self, name: str) -> str:
        """The assignment of which a notebook has the name; empty if it is of none or of several."""
        return _told_apart(self._pairs()).get(_plain(NOTEBOOK.sub("", name)), "")

    def _pairs(self) -> list[tuple[str, str]]:
        """Each name of an assignment, its notebooks' too, with the assignment."""
        pairs = [(one, one) for one in self.notebooks]
        return pairs + [(n, one) for one, names in self.notebooks.items() for n in names]

    def _of_student(self, student: str) -> dict[str, list[tuple[str, bool]]]:
        """Assignment -> entries of a student's folder that are meant for it, and if folders."""
        if student not in self._meant:
            meant: dict[str, list[tuple[str, bool]]] = {}
            deeper: dict[str, list[tuple[str, bool]]] = {}  # counts where nothing is nearer
            for name, is_folder in _entries(self.submitted / student):
                if not (assignment := self._assignment(name, is_folder)):
                    continue
                folder = self.submitted / student / name
                if not is_folder or _holds(folder, 0):
                    meant.setdefault(assignment, []).append((name, is_folder))
                elif _holds(folder, DEEPEST):
                    deeper.setdefault(assignment, []).append((name, is_folder))
            self._meant = {student: deeper | meant}  # they are asked for one after another
        return self._meant[student]

    def _assignment(self, name: str, is_folder: bool) -> str:
        """The assignment that a name is meant for; empty if it is none or one of the true names."""
        if name in self.notebooks or name in HIDDEN or name.startswith("."):
            return ""
        if not is_folder:
            if not NOTEBOOK.search(name):
                return ""
            name = NOTEBOOK.sub("", name)
        wanted = _plain(name)
        known = _told_apart([(n, n) for n in self.notebooks] if is_folder else self._pairs())
        if wanted in known:
            return known[wanted]
        near = [one for one in known if _same_numbers(one, wanted)]
        close = difflib.get_close_matches(wanted, near, 2, ALIKE)
        return known[close[0]] if len({known[one] for one in close}) == 1 else ""


def _same_numbers(one: str, other: str) -> bool:
    """Whether two names hold the same numbers; one may leave out all, or that which begins it."""
    first, second = ([int(digits) for digits in re.findall(r"\d+", n)] for n in (one, other))
    if one[:1].isdecimal() != other[:1].isdecimal():
        longer, shorter = (first, second) if one[:1].isdecimal() else (second, first)
        return not shorter or shorter == longer[1:]
    return not first or not second or first == second


def _told_apart(pairs: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Assignments by what is plain in a name of theirs, where that is the name of one alone."""
    found: dict[str, set[str]] = {}
    for name, one in pairs:
        found.setdefault(_plain(name), set()).add(one)
    return {plain: min(ones) for plain, ones in found.items() if plain and len(ones) == 1}


def _plain(name: str) -> str:
    """A name without what people change in it: case, spaces, dashes, "(1)", "copy"."""
    return re.sub(r"[\W_]", "", COPY.sub("", unicodedata.normalize("NFKD", name[:200])).casefold())


def students_in(submitted: Path) -> list[str]:
    """Everybody with a folder there, or with a link in its place. May raise OSError."""
    return [name for name, kind in kinds_in(submitted) if _is_students(name, kind)]


def kinds_in(folder: Path) -> list[tuple[str, str]]:
    """What lies in a folder, sorted: names, and "folder", "link" or "file". May raise OSError.

    No link is followed: where one leads may be no path that a system can look at.
    """
    with os.scandir(folder) as entries:
        return sorted((entry.name, _kind_of(entry)) for entry in entries)


def _kind_of(entry: os.DirEntry[str]) -> str:
    if entry.is_symlink():
        return "link"
    return "folder" if entry.is_dir(follow_symlinks=False) else "file"


def _is_students(name: str, kind: str) -> bool:
    return kind in ("folder", "link") and not name.startswith(".")


def _kind(path: Path) -> str:
    """As above; empty if there is nothing. Raises OSError if nobody may know."""
    try:
        mode = os.lstat(path).st_mode
    except OSError as error:
        if error.errno in NOTHING:
            return ""
        raise
    if stat.S_ISLNK(mode):
        return "link"
    return "folder" if stat.S_ISDIR(mode) else "file"


def _entries(folder: Path) -> list[tuple[str, bool]]:
    """Names in a folder and whether they are folders; links and pipes are neither, and left out.

    Raises OSError if it cannot be read.
    """
    with os.scandir(folder) as entries:
        found = [
            (entry.name, entry.is_dir(follow_symlinks=False))
            for entry, _ in zip(entries, range(MOST), strict=False)
            if entry.is_dir(follow_symlinks=False) or entry.is_file(follow_symlinks=False)
        ]
    return sorted(found)


def _unread(error: OSError) -> str:
    return f"the folder cannot be read ({error.strerror})"


def _holds(folder: Path, depth: int, wanted: re.Pattern[str] = WORK) -> bool:
    """Whether such a file lies in a folder, so deep at most; or may, as not all can be read."""
    level, left = [folder], MOST_IN_ALL
    for _ in range(depth + 1):
        inner: list[Path] = []
        for one in level:
            try:
                entries = _entries(one)
            except OSError:
                return True
            left -= len(entries)
            if left < 0 or any(wanted.search(name) for name, is_folder in entries if not is_folder):
                return True
            inner += [one / name for name, is_folder in entries if is_folder if name not in HIDDEN]
        level = inner
    return False

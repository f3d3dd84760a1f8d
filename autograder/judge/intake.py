"""Read what a student handed in: whatever a parcel holds, it is read within bounds, never raises.

Of a notebook only the text of the cells counts. The student's answers are put in the places that
the instructor's notebook has for them; metadata, outputs, points, ids and tests of the submission
decide nothing. Whatever is odd becomes a note for the student or a flag for the instructor.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from autograder.common.names import composed, shown
from autograder.common.results import Flag
from autograder.judge.assignment import Assignment, Notebook
from autograder.judge.parcel import (
    NOT_EXTRA,
    NOTEBOOK,
    Parcel,
    Unreadable,
    at,
    beside,
    collect,
    folders_of,
)
from autograder.judge.raw_cells import RawCell, read_cells
from autograder.judge.script import MAX_NOTES, Script, Submission
from autograder.judge.steps import assemble

MAX_BESIDE = 10_000_000  # bytes of all files beside the notebooks that an answer may read
DEFINED = re.compile(r"^(?:def|class) +(\w+)|^(\w+) *=", re.MULTILINE)


def read_submission(folder: Path, student: str, assignment: Assignment) -> Submission:
    """Take what lies in a submission's folder, and read it."""
    return read_parcel(collect(at(folder), assignment), student, assignment)


def read_parcel(parcel: Parcel, student: str, assignment: Assignment) -> Submission:
    """Read what was handed in; every end of it is a submission."""
    if parcel.reason:
        return _nothing(parcel, student, assignment)
    box = _Box(parcel)
    scripts = [_script(box, notebook, assignment) for notebook in assignment.notebooks]
    files = tuple(box.allowed(assignment))
    reasons = [script.reason for script in scripts]
    return Submission(
        student=student,
        assignment=assignment.name,
        key=parcel.key(assignment.digest),
        scripts=tuple(replace(script, files=files) for script in scripts),
        reason=reasons[0] if all(reasons) else "",
        notes=tuple(box.notes(assignment)),
        flags=(*box.flags, *(flag for script in scripts for flag in script.flags))[:MAX_NOTES],
        collected=parcel.collected,
    )


def _nothing(parcel: Parcel, student: str, assignment: Assignment) -> Submission:
    reason = parcel.reason
    scripts = tuple(Script(notebook.name, reason=reason) for notebook in assignment.notebooks)
    return Submission(student, assignment.name, parcel.key(assignment.digest), scripts, reason)


class _Box:
    """A parcel that is being read: what was taken out of it, and what was odd."""

    def __init__(self, parcel: Parcel) -> None:
        self.parcel = parcel
        self.names = parcel.names
        self.special = parcel.special
        self.taken: set[str] = set()
        self.graded: set[str] = set()  # those that were taken for a notebook
        self._read: dict[str, _Read | Unreadable] = {}
        self.flags = [
            Flag("file", shown(name), f"{shown(name)} is {kind}; it was left alone.")
            for name, kind in parcel.special.items()
        ]
        if parcel.note:
            self.flags.append(Flag("file", "", parcel.note))

    def content(self, name: str) -> bytes:
        """The bytes of one of the files."""
        if name in self.parcel.files:
            return self.parcel.files[name]
        if name in self.special:
            raise Unreadable(f"{shown(name)} is {self.special[name]}, not a file")
        raise Unreadable(self.parcel.refused.get(name, f"{shown(name)} was not taken"))

    def read(self, name: str) -> "_Read":
        """One of the files as a notebook; raises Unreadable. Each is read once."""
        if name not in self._read:
            try:
                cells, notes = read_cells(self.content(name), PurePosixPath(name).name)
                self._read[name] = _Read(tuple(cells), tuple(notes))
            except Unreadable as error:
                self._read[name] = error
        found = self._read[name]
        if isinstance(found, Unreadable):
            raise found
        return found

    def candidates(self, assignment: Assignment) -> Iterator[tuple[str, "_Read"]]:
        """Files that may be a notebook of another name; under its own name one may be another."""
        named = {f"{notebook.name}.ipynb": notebook for notebook in assignment.notebooks}
        for name in self.parcel.files:
            if name in self.graded or not NOTEBOOK.search(name):
                continue
            with suppress(Unreadable):
                found = self.read(name)
                if name not in named or _is_other(found, named[name], assignment):
                    yield name, found

    def allowed(self, assignment: Assignment) -> Iterator[tuple[str, bytes]]:
        """The files that the instructor lets students hand in, as far as there is room for them.

        Of two whose names are composed alike the one that is written as it is asked for counts.
        What was handed in as a folder lies beside the notebook in it.
        """
        left, seen = MAX_BESIDE, set[str]()
        folders = folders_of(self.graded)
        here = {
            name: assignment.rules.file_as(asked[0])
            for name in self.parcel.files
            if (asked := [*filter(assignment.allowed_files, beside(name, folders))])
        }
        for name in sorted(here, key=lambda name: here[name] != name):
            if name in self.taken or (here[name] in seen and composed(name) != here[name]):
                continue
            self.taken.add(name)
            size, words = len(self.parcel.files[name]), ""
            if here[name] in seen:
                words = f"{shown(name)} lies there twice, with letters like ö made of one sign and "
                words += "of two; one of the two was left out."
            elif size > left:
                words = f"With {shown(name)}, the files beside the notebook are more than "
                words += f"{MAX_BESIDE // 1_000_000} MB; it was left out."
            seen.add(here[name])
            if words:
                self.flags.append(Flag("file", shown(name), words))
                continue
            left -= size
            yield here[name], self.parcel.files[name]

    def notes(self, assignment: Assignment) -> list[str]:
        """Where it was found, and what was left out of the run."""
        released = (path.relative_to(assignment.folder) for path in assignment.released)
        given = {composed(path.as_posix()) for path in released}
        left = [
            shown(name)
            for name in self.names
            if name not in self.taken
            and composed(name) not in given
            and not any(part in NOT_EXTRA for part in PurePosixPath(name).parts)
        ]
        more = f" and {len(left) - 5} more" if len(left) > 5 else ""
        names = ", ".join(left[:5])
        note = f"Files that this assignment does not ask for were left out: {names}{more}."
        return [*([self.parcel.note] if self.parcel.note else []), *([note] if left else [])]


@dataclass(frozen=True)
class _Read:
    """A file that was read as a notebook."""

    cells: tuple[RawCell, ...]
    notes: tuple[str, ...]

    @cached_property
    def ids(self) -> set[str]:
        """Of the cells, also those of their marks."""
        return {cell.grade_id for cell in self.cells} | {cell.id for cell in self.cells}

    @cached_property
    def names(self) -> set[str]:
        """What its cells define, found without reading them as Python."""
        code = "\n".join(cell.source for cell in self.cells if cell.cell_type != "markdown")
        return {name for names in DEFINED.findall(code) for name in names}

    @cached_property
    def texts(self) -> set[str]:
        """Its cells without layout."""
        return {" ".join(cell.source.split()) for cell in self.cells}

    def assembled(self, notebook: Notebook, *notes: str) -> Script:
        """The answers of this file in the places of a notebook."""
        return assemble(notebook, list(self.cells), [*notes, *self.notes])


class _Shares(NamedTuple):
    """How much of a notebook a file holds, each from 0 to 1; what says most comes first."""

    ids: float  # of answers and tests
    texts: float  # of ordinary cells
    names: float  # that answers define

    @property
    def is_half(self) -> bool:
        """Whether it holds at least half of what is answered, by id or by definition."""
        return max(self.ids, self.names) >= 0.5

    @property
    def is_whole(self) -> bool:
        """Whether it holds all of it, as a file does that several were put together in."""
        return self.ids == self.names == 1 and self.texts > 0.5

    @property
    def is_nothing(self) -> bool:
        """Whether it is something else altogether; some texts stand in many notebooks."""
        return not self.ids and not self.names and self.texts <= 0.5


def _shares(found: _Read, notebook: Notebook) -> _Shares:
    kinds = ("solution", "manual", "test")
    ids = {cell.grade_id for cell in notebook.cells if cell.kind in kinds}
    texts = {" ".join(cell.stub.split()) for cell in notebook.cells if not cell.grade_id} - {""}
    names = {name for names in notebook.defines.values() for name in names}
    pairs = ((ids, found.ids), (texts, found.texts), (names, found.names))
    return _Shares(*(len(wanted & there) / max(1, len(wanted)) for wanted, there in pairs))


def _is_other(found: _Read, notebook: Notebook, assignment: Assignment) -> bool:
    """Whether a file is rather another notebook of the assignment, or nothing of this one."""
    own = _shares(found, notebook)
    shares = (_shares(found, one) for one in assignment.notebooks if one is not notebook)
    return own.is_nothing or any(other > own and other.is_half for other in shares)


def _script(box: _Box, notebook: Notebook, assignment: Assignment) -> Script:
    """Find the notebook, read it and put it together."""
    name = f"{notebook.name}.ipynb"
    reason = ""
    script: Script | None = None
    is_other = False
    if name in box.names or name in box.special:
        box.taken.add(name)
        try:
            own = box.read(name)
            script, is_other = own.assembled(notebook), _is_other(own, notebook, assignment)
        except Unreadable as error:
            reason = str(error)
    if script is not None and not is_other and _has_answers(script):
        return script
    found = list(_matching(box, notebook, assignment)) or list(_whole(box, notebook))
    if script is not None and not (is_other and len(found) == 1):  # is another one finished?
        found = [one for one in found if _has_answers(one[1].assembled(notebook))]
    if len(found) == 1:
        other, read = found[0]
        box.taken.add(other)
        box.graded.add(other)
        why = f"{name} was not usable" if reason else f"no {name} was handed in"
        why = f"{name} holds no answers" if script is not None else why
        why = f"{name} holds something else" if is_other else why
        return read.assembled(notebook, f"{shown(other)} was graded, because {why}.")
    if script is not None:
        names = ", ".join(shown(other) for other, _ in found[:5])
        what = "something else" if is_other else "no answers"
        more = f"; {names} could each be meant. Keep one" if found else ""
        note = f"{name} was graded and holds {what}{more}."
        return replace(script, notes=(note, *script.notes)) if found or is_other else script
    return Script(notebook.name, reason=reason or _absent(box, name, [n for n, _ in found]))


def _has_answers(script: Script) -> bool:
    """Whether any answer was written."""
    given = {piece.grade_id for piece in script.pieces if piece.source.strip()}
    return bool(given - {*script.missing, *script.untouched}) or not script.pieces


def _absent(box: _Box, name: str, several: list[str]) -> str:
    if several:
        names = ", ".join(map(shown, several))
        return f"no file named {name} was submitted, and {names} could each be meant; keep one"
    if name in box.special:
        return f"{name} is {box.special[name]}"
    top = sorted({other.partition("/")[0] for other in (*box.names, *box.special)})
    found = [f"found {', '.join(map(shown, top[:10]))}"] if top else []
    found += [box.parcel.unseen] if box.parcel.unseen else []
    return f"no file named {name} was submitted ({'; '.join(found) or 'the folder is empty'})"


def _matching(box: _Box, notebook: Notebook, assignment: Assignment) -> Iterator[tuple[str, _Read]]:
    """Files of other names whose cells are those of this notebook."""
    for name, found in box.candidates(assignment):
        if name == f"{notebook.name}.ipynb" or _is_other(found, notebook, assignment):
            continue
        if _shares(found, notebook).is_half:
            yield name, found


def _whole(box: _Box, notebook: Notebook) -> Iterator[tuple[str, _Read]]:
    """Files of other names that hold all of this notebook, graded as another one or not."""
    for name in box.parcel.files:
        if name != f"{notebook.name}.ipynb" and NOTEBOOK.search(name):
            with suppress(Unreadable):
                if _shares(box.read(name), notebook).is_whole:
                    yield name, box.read(name)

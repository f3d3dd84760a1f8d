"""Read what a student handed in: whatever a parcel holds, it is read within bounds, never raises.

Of a notebook only the text of the cells counts. The student's answers are put in the places that
the instructor's notebook has for them; metadata, outputs, points, ids and tests of the submission
decide nothing. Whatever is odd becomes a note for the student or a flag for the instructor.
"""

import ast
import bisect
import itertools
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, Literal, NamedTuple
from urllib.parse import quote

from autograder.common.names import composed, shown
from autograder.common.results import Flag
from autograder.common.scopes import facts
from autograder.common.syntax import (
    IMPORTS,
    acts,
    made_by_statement,
    parse,
    top_level_names,
    without_statements,
)
from autograder.judge.assignment import Assignment, Cell, Notebook, checksum_of
from autograder.judge.parcel import NOT_EXTRA, NOTEBOOK, Parcel, Unreadable, at, collect

MAX_DEPTH = 100  # of lists and objects in a notebook's JSON
MAX_CONTAINERS = 1_000_000  # of those together
MAX_PRINTED = 2_000_000  # of those in outputs, which are not read
MAX_CELLS = 2000
MAX_SOURCE = 200_000  # characters of one cell
MAX_TEXT = 2_000_000  # characters of all cells of a notebook
MAX_PARSED = 400_000  # characters of a notebook that are read as Python to match its cells
MAX_BESIDE = 10_000_000  # bytes of all files beside the notebooks that an answer may read
MAX_NOTES = 50
ALIKE = 0.8  # of its words that a changed test or locked cell shares with the one handed out
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
NOTHING = "pass"  # is run where nothing is left of a cell: the instructor's copy goes with it
TOKENS = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)
OUTPUTS = re.compile(r'"outputs"\s*:\s*(?=\[)')
SIGNS, WRAP = r"[\w/+%=-]", r"[ \t]*+\r?\n[ \t]*+"  # of data such as base64
DATA = re.compile(  # such as a pasted photo, on one line or on many long ones
    rf"(data:[\w/+.;=-]{{0,100}},)"
    rf"(?:{SIGNS}{{1000,}}+|{SIGNS}*+(?=(?:{WRAP}{SIGNS}{{40,}}+){{12}}))"
    rf"(?:{WRAP}{SIGNS}{{40,}}+)*+(?:{WRAP}{SIGNS}++(?=[\"')>]))?+"
)
DEFINED = re.compile(r"^(?:def|class) +(\w+)|^(\w+) *=", re.MULTILINE)
PROMPT = re.compile(r"\n*+(.*\n)?In \[\d+\]: ")  # on one of the first two lines, as IPython looks
SURROGATES = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class Piece:
    """What stands in a place for an answer."""

    grade_id: str
    source: str
    cell_type: str


@dataclass(frozen=True)
class ScriptCell:
    """One step of running a submission."""

    kind: Literal["answer", "extra", "skeleton", "test"]
    grade_id: str
    source: str  # empty for a test: tests never come near the student's process
    cell_type: str
    place: int = -1  # of the instructor's cell in its notebook; -1 for one of the student's own


@dataclass(frozen=True)
class Script:
    """A notebook of the submission, put together from the instructor's and the student's cells."""

    name: str
    cells: tuple[ScriptCell, ...] = ()
    pieces: tuple[Piece, ...] = ()
    missing: tuple[str, ...] = ()  # answers that could not be found
    untouched: tuple[str, ...] = ()  # answers that are as they were handed out
    damaged: dict[str, str] = field(default_factory=dict)  # answer -> why it cannot be read
    extra: tuple[tuple[str, str, str], ...] = ()  # (grade_id it follows, cell type, source)
    notes: tuple[str, ...] = ()
    flags: tuple[Flag, ...] = ()
    reason: str = ""  # why this notebook is 0
    files: tuple[tuple[str, bytes], ...] = ()  # that lie in its folder when it runs

    @property
    def answers(self) -> dict[str, str]:
        """grade_id -> source, for every place of an answer."""
        return {piece.grade_id: piece.source for piece in self.pieces}


@dataclass(frozen=True)
class Submission:
    """One student's work on one assignment."""

    student: str
    assignment: str
    key: str  # sha256 of everything here and of the assignment that the grade depends on
    scripts: tuple[Script, ...] = ()
    reason: str = ""  # why the whole submission is 0
    notes: tuple[str, ...] = ()
    flags: tuple[Flag, ...] = ()
    collected: float | None = None  # see `parcel.Parcel`


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
        """
        left, seen = MAX_BESIDE, set[str]()
        here = {name: assignment.rules.file_as(name) for name in self.parcel.files}
        for name in sorted(here, key=lambda name: here[name] != name):
            if name in self.taken or not assignment.allowed_files(name):
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


class _Raw(NamedTuple):
    """A cell as it was handed in."""

    source: str
    cell_type: str
    grade_id: str
    id: str
    marks: dict
    tags: tuple[str, ...]
    damage: str  # why its source cannot be used
    cut: str = ""  # what of it was left out
    pictures: tuple[str, ...] = ()  # names of those pasted into it, which are not read


@dataclass(frozen=True)
class _Read:
    """A file that was read as a notebook."""

    cells: tuple[_Raw, ...]
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
        return _assemble(notebook, list(self.cells), [*notes, *self.notes])


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
    found = list(_matching(box, notebook, assignment))
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


def read_cells(content: bytes, name: str) -> tuple[list[_Raw], list[str]]:
    """The cells of a notebook's bytes and what was odd; raises Unreadable."""
    text, notes = _decode(content)
    data = _json(text, name)
    raw = _cell_list(data)
    if raw is None:
        raise Unreadable(f"{name} is not a notebook (it holds no list of cells)")
    if len(raw) > MAX_CELLS:
        raise Unreadable(f"{name} holds {len(raw)} cells; at most {MAX_CELLS} are read")
    cells = [_raw_cell(cell) for cell in raw if isinstance(cell, dict)]
    if _length(cells) > MAX_TEXT:
        cells = [_without_pictures(cell) for cell in cells]
    if _length(cells) > MAX_TEXT:
        raise Unreadable(f"{name} holds more than {MAX_TEXT // 1_000_000} million characters")
    if len(cells) < len(raw):
        notes.append(f"{len(raw) - len(cells)} entries of {name} are no cells and were left out.")
    if any(SURROGATES.search(cell.source) for cell in cells):
        notes.append("Signs that no text can hold (lone surrogates) were replaced by \ufffd.")
        cells = [cell._replace(source=_whole(cell.source)) for cell in cells]
    return cells, notes


def _decode(content: bytes) -> tuple[str, list[str]]:
    """Text in the encoding that the first bytes show; what cannot be read is replaced."""
    encoding = json.detect_encoding(content)
    text = content.decode(encoding, "replace")
    notes = []
    if encoding not in ("utf-8", "utf-8-sig"):
        notes.append(f"The notebook was saved as {encoding.upper()}; Jupyter writes UTF-8.")
    if "\ufffd" in text and "\ufffd".encode(encoding.removesuffix("-sig")) not in content:
        notes.append("The notebook holds bytes that are no UTF-8; they were replaced by \ufffd.")
    return text.removeprefix("\ufeff"), notes


def _json(text: str, name: str) -> Any:
    try:
        return json.loads(_bounded(text, name), parse_int=_number, strict=False)
    except (ValueError, RecursionError, MemoryError) as error:
        raise Unreadable(f"{name} is not a notebook (it is no JSON text)") from error


def _bounded(text: str, name: str) -> str:
    """The text without what is in cells' outputs, if the rest is neither too deep nor too large."""
    kept: list[str] = []
    depth = count = printed = done = 0  # the text is kept, or left out, up to `done`
    outputs = -1  # where a list of outputs begins
    outside: int | None = None  # the depth around it, while in one
    for token in TOKENS.finditer(text):
        start = token.start()
        sign = text[start]
        if sign in "[{":
            if start == outputs:
                kept.append(text[done:start])
                outside = depth
            depth += 1
            printed += outside is not None
            count += outside is None
        elif sign in "]}":
            depth -= 1
            if depth == outside:
                done, outside = token.end(), None
                kept.append("[]")
        elif outside is None and (found := OUTPUTS.match(text, start)):
            outputs = found.end()
        too_deep = depth > MAX_DEPTH and outside is None
        if too_deep or count > MAX_CONTAINERS or printed > MAX_PRINTED:
            raise Unreadable(f"{name} is not a notebook (its JSON is nested too deep or too large)")
    return "".join([*kept, text[done:]])


def _number(digits: str) -> int:
    return int(digits) if len(digits) < 20 else 0  # nothing of ours is that large


def _cell_list(data: Any) -> list | None:
    """The cells of format 4, or of format 3 with its worksheets."""
    if not isinstance(data, dict):
        return None
    if isinstance(data.get("cells"), list):
        return data["cells"]
    sheets = data.get("worksheets")
    if not isinstance(sheets, list):
        return None
    lists = [sheet.get("cells") for sheet in sheets if isinstance(sheet, dict)]
    return [cell for cells in lists if isinstance(cells, list) for cell in cells] or None


def _raw_cell(cell: dict) -> _Raw:
    metadata = cell.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    marks = metadata.get("nbgrader")
    marks = marks if isinstance(marks, dict) else {}
    tags = metadata.get("tags")
    attached = cell.get("attachments")
    source, damage, cut = _source(cell)
    cell_type = _string(cell.get("cell_type")) or "code"
    return _Raw(
        source=_without_prompts(source) if cell_type == "code" else source,
        cell_type=cell_type,
        grade_id=_string(marks.get("grade_id")),
        id=_string(cell.get("id")),
        marks=marks,
        tags=tuple(tag for tag in tags if isinstance(tag, str)) if isinstance(tags, list) else (),
        damage=damage,
        cut=cut,
        pictures=tuple(map(_whole, itertools.islice(attached, MAX_NOTES)))
        if isinstance(attached, dict)
        else (),
    )


def _source(cell: dict) -> tuple[str, str, str]:
    """A cell's text, why it cannot be used, and what of it was left out."""
    source = cell.get("source", cell.get("input"))
    if isinstance(source, list) and all(isinstance(line, str) for line in source):
        source = "".join(source)
    if not isinstance(source, str):
        return "", "its text is damaged (it is neither a text nor a list of lines)", ""
    if len(source) <= MAX_SOURCE:
        return source, "", ""
    too_long = f"it is longer than {MAX_SOURCE:,} characters"
    without = DATA.sub(r"\1", source) if cell.get("cell_type") != "code" else source
    if len(without) > MAX_SOURCE:
        return "", too_long, ""
    return without, "", f"its pictures were left out: with them {too_long}"


def _length(cells: list[_Raw]) -> int:
    return sum(len(cell.source) for cell in cells)


def _without_pictures(cell: _Raw) -> _Raw:
    """The cell as it can be read where all cells together are too long."""
    without = DATA.sub(r"\1", cell.source) if cell.cell_type != "code" else cell.source
    if without == cell.source:
        return cell
    words = "its pictures were left out: with all of them the notebook is longer than "
    return cell._replace(source=without, cut=f"{words}{MAX_TEXT // 1_000_000} million characters")


def _without_prompts(source: str) -> str:
    """A cell without the prompts that were pasted with it: with them it may be Python, too."""
    if not PROMPT.match(source):
        return source
    from IPython.core.inputtransformer2 import ipython_prompt  # which takes its time

    text = source.lstrip("\n")
    lines = text.splitlines(keepends=True)
    return "\n" * (len(source) - len(text)) + "".join(ipython_prompt(lines))


def _string(value: object) -> str:
    return _whole(value) if isinstance(value, str) and len(value) < 200 else ""


def _whole(text: str) -> str:
    """The text with pairs of surrogates joined and lone ones replaced."""
    if not SURROGATES.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _names_of(raw: _Raw) -> set[str] | None:
    """Names that a cell defines; None if it is no Python."""
    if raw.cell_type == "markdown" and not raw.grade_id:
        return None
    tree = parse(raw.source)
    return top_level_names(tree) if tree else None


def _same(one: str, other: str) -> bool:
    """Whether two texts differ in nothing but white space."""
    return one.split() == other.split()


def _likeness(one: str, other: str) -> float:
    """The share of two texts' words that they have in common; 1 if they are the same words."""
    first, second = Counter(one.split()), Counter(other.split())
    return 2 * (first & second).total() / max(1, first.total() + second.total())


def _assemble(notebook: Notebook, cells: list[_Raw], notes: list[str]) -> Script:
    """Put the student's answers in the places of the instructor's notebook."""
    match = _Match(notebook, cells, notes)
    match.run()
    return match.script()


class _Giver(NamedTuple):
    """A cell that binds names."""

    place: int  # in or after which it runs
    index: int  # of the cell in the submission, if it stands in no place
    source: str
    is_own: bool = False  # the student's own cell


class _Match:
    """Which of the student's cells belongs in which place of the instructor's notebook."""

    def __init__(self, notebook: Notebook, cells: list[_Raw], notes: list[str]) -> None:
        self.notebook = notebook
        self.cells = cells
        self.notes = notes
        self.flags: list[Flag] = []
        self.deleted: list[Cell] = []  # tests and locked cells that are not there
        self.place: dict[int, int] = {}  # index in the notebook -> index in the submission
        self.taken: set[int] = set()  # cells of the submission that do not run as extra ones
        self._names: dict[int, set[str] | None] = {}
        self._budget = self._budget_made = MAX_PARSED
        self._steps_read, self._own_names = 0, set[str]()  # see `_made`
        self.ids = {cell.grade_id for cell in notebook.cells if cell.grade_id}

    def run(self) -> None:
        """Match by grade_id, then by the format's id, then by definitions, then by position."""
        known = [(n, cell) for n, cell in enumerate(self.notebook.cells) if cell.grade_id]
        for place, cell in known:
            self._by_grade_id(place, cell)
        self._put_right([(n, cell) for n, cell in known if cell.kind == "solution"])
        by_id: dict[str, int] = {}
        for index, raw in enumerate(self.cells):
            if index not in self.taken and raw.id and raw.grade_id not in self.ids:
                by_id.setdefault(raw.id, index)
        for place, cell in enumerate(self.notebook.cells):
            index = by_id.get(cell.id)
            if place not in self.place and index is not None and self._may_be(index, cell):
                self._take(place, by_id.pop(cell.id))
        for place, cell in known:
            if cell.kind in ("solution", "manual"):
                self._by_definition(place, cell)
        self._by_text()
        self._by_position()
        self._leave_out_older()
        for place, cell in known:
            self._inspect(place, cell)
        if self.deleted:
            first, count = self.deleted[0], len(self.deleted)
            others = f" and {count - 1} more" if count > 1 else ""
            self._flag(first, f"The locked cell {first.grade_id}{others} had been deleted.")
            self.notes.append(
                f"Locked cells were missing and were put back: {first.grade_id}{others}."
            )
        for index, raw in enumerate(self.cells):
            if index not in self.taken:
                self.notes += _left_out(f"Cell {index + 1}", raw)
        stripped = [
            cell for place, cell in known if place in self.place and not self._marked(place)
        ]
        if stripped:
            self._flag(stripped[0], f"{len(stripped)} cells had lost their grading marks.")

    def _defines(self, index: int, cell: Cell) -> int:
        """How many of the names that an answer should define this cell defines."""
        source = self.cells[index].source
        wanted = [name for name in self._wanted(cell) if name in source]
        return len((self._names_in(index) or set()).intersection(wanted)) if wanted else 0

    def _names_in(self, index: int) -> set[str] | None:
        """Names that a cell defines; None if it is no Python, or there is too much to read."""
        if index not in self._names:
            self._budget -= len(self.cells[index].source)
            self._names[index] = _names_of(self.cells[index]) if self._budget >= 0 else None
        return self._names[index]

    def _needs(self, index: int) -> frozenset[str]:
        """Names that a cell reads and does not define first, as far as it may be read."""
        known = self._names_in(index) is not None
        return facts(self.cells[index].source).needed if known else frozenset()

    def _wanted(self, cell: Cell) -> tuple[str, ...]:
        return self.notebook.defines.get(cell.grade_id, ())

    def _marked(self, place: int) -> bool:
        """Whether the cell in this place carries the grade_id of the place."""
        cell = self.notebook.cells[place]
        return self.cells[self.place[place]].grade_id == cell.grade_id

    def _take(self, place: int, index: int) -> None:
        self.place[place] = index
        self.taken.add(index)

    def _flag(self, cell: Cell, words: str) -> None:
        self.flags.append(Flag("tampering", f"{self.notebook.name}/{cell.grade_id}", words))

    def _by_grade_id(self, place: int, cell: Cell) -> None:
        copies = [n for n, raw in enumerate(self.cells) if raw.grade_id == cell.grade_id]
        if not copies:
            return
        best = copies[0]
        if len(copies) > 1:  # ranking reads them all, which takes its time
            rank = self._rank if cell.answerable else self._rank_given
            best = max(copies, key=lambda index: rank(cell, index))
        self._take(place, best)
        if len(copies) == 1:
            return
        self._flag(cell, f"The cell {cell.grade_id} is there {len(copies)} times.")
        if cell.answerable:
            which = copies.index(best) + 1
            self.notes.append(
                f"The cell {cell.grade_id} is there {len(copies)} times; number {which} was graded."
            )
        parts = self._parts(copies, best, cell) if cell.answerable else set(copies)
        for index in copies:
            if index not in parts or _same(self.cells[index].source, cell.stub):
                self.taken.add(index)

    def _parts(self, copies: Sequence[int], best: int, cell: Cell) -> set[int]:
        """Copies that are no other answer, but scratch work or another part of this one.

        Such is also what a part below needs of an older answer, whatever stands between them.
        """
        wanted = set(self._wanted(cell))
        found = {best}
        needed: frozenset[str] = frozenset()
        for index in reversed(copies):
            mine = self._names_in(index) or set()
            if mine & needed or self._is_half(index, best, wanted):
                found.add(index)
            if index in found:
                needed = needed - mine | self._needs(index)
        return found

    def _is_half(self, index: int, best: int, wanted: set[str]) -> bool:
        """Whether a copy gives nothing that the best one gives, or goes on with what that gives.

        Both may bind a name then, as in two steps to one value.
        """
        mine, others = (self._names_in(n) or set() for n in (index, best))
        if not wanted & mine & others:
            return True
        if index > best and self._needs(index) & others:
            return True
        first, second = (mine, others) if index < best else (others, mine)
        return bool(wanted & first - second) and bool(wanted - first)

    def _put_right(self, solutions: list[tuple[int, Cell]]) -> None:
        """Answers under each other's grade_id go where the names that they define belong."""
        wrong = [
            (place, cell)
            for place, cell in solutions
            if place in self.place
            and self._wanted(cell)
            and not self._defines(self.place[place], cell)
        ]
        better = {
            place: next(
                (self.place[n] for n, _ in wrong if self._defines(self.place[n], cell)),
                self.place[place],
            )
            for place, cell in wrong
        }
        before = {self.place[place] for place in better}
        self.place.update(better)
        self.taken -= before - set(self.place.values())  # what answers nothing runs where it stands

    def _rank(self, cell: Cell, index: int) -> tuple:
        """How good a copy is: readable, changed, Python, of the right kind, then the last."""
        raw = self.cells[index]
        changed = not raw.damage and bool(raw.source.strip()) and not _same(raw.source, cell.stub)
        code = cell.cell_type == "code"
        return (
            changed,
            not code or self._names_in(index) is not None,
            self._defines(index, cell),
            raw.cell_type == cell.cell_type,
            index,
        )

    def _rank_given(self, cell: Cell, index: int) -> tuple:
        """How near a copy is to what was handed out and is not to be changed; then the last."""
        return self._is_given(index, cell), _likeness(self.cells[index].source, cell.stub), index

    def _is_given(self, index: int, cell: Cell) -> bool:
        """Whether a cell is this one of the instructor's, give or take a few words.

        One that binds names of its own is the student's work, which has to run.
        """
        if _same(self.cells[index].source, cell.stub):
            return True
        own = (self._names_in(index) or set()) - self._names_given(cell)
        return not own and _likeness(self.cells[index].source, cell.stub) >= ALIKE

    def _may_be(self, index: int, cell: Cell) -> bool:
        """Whether a cell without marks may stand for this one: whatever is not run must be it."""
        is_own = cell.answerable or not cell.grade_id
        return is_own or self._is_given(index, cell)

    def _names_given(self, cell: Cell) -> set[str]:
        tree = parse(cell.stub) if cell.cell_type == "code" else None
        return top_level_names(tree) if tree else set()

    def _by_definition(self, place: int, cell: Cell) -> None:
        """An answer written in a cell of its own, found by the names that it defines."""
        held = self.place.get(place)
        if held is not None and not _same(self.cells[held].source, cell.stub):
            return
        found = [
            index
            for index, raw in enumerate(self.cells)
            if index not in self.taken
            and raw.grade_id not in self.ids
            and self._defines(index, cell)
        ]
        if not found:
            return
        best = max(
            found, key=lambda n: (self.cells[n].cell_type == "code", self._defines(n, cell), n)
        )
        self._take(place, best)
        self.notes.append(
            f"The answer to {cell.grade_id} was found in another cell, by the names it defines."
        )

    def _by_text(self) -> None:
        """Ordinary cells that were left as they are."""
        free: dict[tuple[str, ...], list[int]] = {}
        for index, raw in enumerate(self.cells):
            if index not in self.taken:
                free.setdefault((raw.cell_type, *raw.source.split()), []).append(index)
        for place, cell in enumerate(self.notebook.cells):
            same = free.get((cell.cell_type, *cell.stub.split()), [])
            if place not in self.place and same:
                self._take(place, same.pop(0))

    def _by_position(self) -> None:
        """Cells between two matched ones, when as many are left here as there."""
        total = len(self.notebook.cells)
        anchors = [(-1, -1), *sorted(self.place.items()), (total, len(self.cells))]
        for (before, first), (after, last) in itertools.pairwise(anchors):
            places = range(before + 1, after)
            free = [index for index in range(first + 1, last) if index not in self.taken]
            if not places or len(free) != len(places):
                continue
            for place, index in zip(places, free, strict=True):
                cell, raw = self.notebook.cells[place], self.cells[index]
                free_to_go = cell.cell_type == raw.cell_type and raw.grade_id not in self.ids
                if free_to_go and self._may_be(index, cell):
                    self._take(place, index)

    def _leave_out_older(self) -> None:
        """Tests and texts of an older release, as handed out: they are nobody's own work.

        Whoever forges one has a cell of his own that does not run. Other code runs as it did: an
        answer may need it.
        """
        for index, raw in enumerate(self.cells):
            is_other = raw.grade_id and raw.grade_id not in self.ids and index not in self.taken
            is_test = raw.marks.get("grade") is True and not raw.marks.get("solution")
            if is_other and (is_test or raw.cell_type != "code") and _is_of_a_release(raw):
                self.taken.add(index)

    def _inspect(self, place: int, cell: Cell) -> None:
        """Look for changes that nobody makes by writing an answer."""
        index = self.place.get(place)
        if index is None:
            if not cell.answerable:
                self.deleted.append(cell)
            return
        raw = self.cells[index]
        earlier = raw.grade_id == cell.grade_id and _is_as_handed_out(raw, cell)
        for words in _left_out(f"The cell {cell.grade_id}", raw, cell) if cell.answerable else ():
            self.notes.append(words)
            self.flags.append(Flag("file", f"{self.notebook.name}/{cell.grade_id}", words))
        if not cell.answerable and not _same(raw.source, cell.stub):
            what = "test" if cell.kind == "test" else "locked cell"
            if earlier:
                self.notes.append(
                    f"The {what} {cell.grade_id} has changed since this was handed out; it was "
                    "graded as it is today."
                )
            else:
                self._flag(cell, f"The {what} {cell.grade_id} was changed.")
                self.notes.append(
                    f"The {what} {cell.grade_id} was changed; it was graded as it was handed out."
                )
        if "skip-execution" in raw.tags:
            self._flag(cell, f"The cell {cell.grade_id} is marked to be skipped.")
        marked = raw.grade_id == cell.grade_id and not earlier
        if marked and _forged(raw.marks, cell.metadata["nbgrader"]):
            self._flag(cell, f"The grading marks of {cell.grade_id} were changed.")
        if cell.answerable and raw.cell_type != cell.cell_type:
            self.notes.append(
                f"The cell {cell.grade_id} had become {shown(raw.cell_type)}; it was graded as "
                f"{cell.cell_type}."
            )

    def script(self) -> Script:
        """The notebook as it will run."""
        after = self._placed_after()
        for_tests = self._needed_by_tests(after)
        places = {index: place for place, index in self.place.items()}
        moved = {places[index] for follows in after.values() for index in follows & places.keys()}
        steps: list[ScriptCell] = []
        extra: list[tuple[str, str, str]] = []
        pieces: list[Piece] = []
        last = ""
        for place in range(-1, len(self.notebook.cells)):
            if place >= 0:
                cell = self.notebook.cells[place]
                step = self._step(place, cell, steps)
                last = cell.grade_id or last
                if step.kind == "answer":
                    pieces.append(Piece(cell.grade_id, step.source, cell.cell_type))
                elif place in self.place and step.source != cell.stub and not cell.grade_id:
                    extra.append((last, step.cell_type, step.source))
                extra += self._written_over(place, cell)
                steps += self._in_its_place(step) if place in moved else [step]
                if added := self._added(place, cell):
                    steps.append(ScriptCell("extra", "", added, "code"))
                    extra.append((last, "code", added))
            for index in sorted(after.get(place, ())):
                if index in places:
                    steps.append(self._early(places[index]))
                    continue
                raw = self.cells[index]
                kind = raw.cell_type if raw.cell_type in ("code", "raw") else "markdown"
                steps.append(ScriptCell("extra", "", raw.source, kind))
                extra.append((last, kind, raw.source))
            for index in sorted(for_tests.get(place, ())):
                steps.append(ScriptCell("extra", "", self.cells[index].source, "code"))
        answers = [(n, cell) for n, cell in enumerate(self.notebook.cells) if cell.answerable]
        return Script(
            name=self.notebook.name,
            cells=tuple(steps),
            pieces=tuple(pieces),
            missing=tuple(cell.grade_id for n, cell in answers if n not in self.place),
            untouched=tuple(
                cell.grade_id
                for n, cell in answers
                if n in self.place and _same(self.cells[self.place[n]].source, cell.stub)
            ),
            damaged=self._damaged(answers),
            extra=tuple(extra),
            notes=tuple(self.notes[:MAX_NOTES]),
            flags=tuple(self.flags[:MAX_NOTES]),
        )

    def _written_over(self, place: int, cell: Cell) -> list[tuple[str, str, str]]:
        """What was written into a locked text instead of below it; a person may want to see it."""
        text = self.cells[self.place[place]].source if place in self.place else ""
        is_text = cell.kind == "task" or cell.cell_type == "markdown"
        lost = is_text and cell.locked and text and not _same(text, cell.stub)
        return [(cell.grade_id, "markdown", text)] if lost else []

    def _added(self, place: int, cell: Cell) -> str:
        """What a student wrote into a cell that was to be left alone and answers may need.

        These are imports and helpers; nothing that takes a name from the cell or from an answer.
        """
        index = self.place.get(place)
        if index is None or cell.answerable or not cell.grade_id or cell.cell_type != "code":
            return ""
        source = self.cells[index].source
        if _same(source, cell.stub) or self._names_in(index) is None:
            return ""
        theirs, given = (parse(text) or ast.Module([], []) for text in (source, cell.source))
        known = {ast.unparse(node) for node in given.body if isinstance(node, IMPORTS)}
        names = top_level_names(given).union(*self.notebook.defines.values())
        added = [
            ast.unparse(node)
            for node in theirs.body
            if isinstance(node, IMPORTS)
            or (isinstance(node, DEFINITIONS) and node.name not in names)
        ]
        return "\n".join(text for text in added if text not in known)

    def _damaged(self, answers: list[tuple[int, Cell]]) -> dict[str, str]:
        found = {}
        for place, cell in answers:
            damage = self.cells[self.place[place]].damage if place in self.place else ""
            if damage:
                found[cell.grade_id] = f"the cell {cell.grade_id} cannot be read: {damage}"
        return found

    def _step(self, place: int, cell: Cell, before: Sequence[ScriptCell]) -> ScriptCell:
        """What runs in a place, after the steps before it."""
        index = self.place.get(place)
        if cell.kind == "test":
            return ScriptCell("test", cell.grade_id, "", cell.cell_type, place)
        if cell.answerable:
            source = self.cells[index].source if index is not None else ""
            return ScriptCell("answer", cell.grade_id, source, cell.cell_type, place)
        if index is None and not cell.grade_id and cell.cell_type == "code":
            source = without_statements(cell.stub, self._made(before)) or NOTHING
            return ScriptCell("skeleton", "", source, "code", place)
        if cell.grade_id or index is None or self.cells[index].damage:
            return ScriptCell("skeleton", cell.grade_id, cell.stub, cell.cell_type, place)
        raw = self.cells[index]  # of which a student may have made code
        kind = raw.cell_type if raw.cell_type in ("code", "raw") else "markdown"
        return ScriptCell("skeleton", "", raw.source, kind, place)

    def _made(self, steps: Sequence[ScriptCell]) -> set[str]:
        """Names that the student's own text in these steps binds, or of whose values it sets parts.

        What the instructor's cells say is nobody's own, and neither are their imports elsewhere.
        Each call gets the steps of the last one and those that have come since.
        """
        for step in steps[self._steps_read :]:
            given = self.notebook.cells[step.place].stub if step.place >= 0 else ""
            if step.kind == "test" or step.cell_type != "code" or step.source == given:
                continue
            self._budget_made -= len(step.source)
            if self._budget_made < 0:
                break
            known = {one.text for one in made_by_statement(given)} | self._imports
            for one in made_by_statement(step.source):
                self._own_names |= one.names if one.text not in known else set()
        self._steps_read = len(steps)
        return self._own_names

    @cached_property
    def _imports(self) -> set[str]:
        """The imports of the instructor's cells."""
        cells = (cell for cell in self.notebook.cells if cell.cell_type == "code")
        found = (one for cell in cells for one in made_by_statement(cell.stub))
        return {one.text for one in found if one.is_import}

    def _early(self, place: int) -> ScriptCell:
        """A cell that has a place and runs before it; tests need the instructor's in its place."""
        cell = self.notebook.cells[place]
        step = self._step(place, cell, ())
        return step if step.kind == "answer" else ScriptCell("extra", "", step.source, "code")

    def _in_its_place(self, step: ScriptCell) -> list[ScriptCell]:
        """What is left to run of a step in its own place, when it has run before."""
        if step.kind == "answer":
            return []
        return [step if step.grade_id else replace(step, source=NOTHING)]

    def _placed_after(self) -> dict[int, set[int]]:
        """Place -> cells of the submission that run after it, besides the one in the next place.

        These are the student's own ones, after the matched cell above them. Where sections were put
        in another order, what a cell needs of those above it runs before that cell.
        """
        order = sorted((index, place) for place, index in self.place.items())
        rows = [index for index, _ in order]
        found: dict[int, int] = {}
        for index, raw in enumerate(self.cells):
            if index in self.taken or not raw.source.strip():
                continue
            above = bisect.bisect_left(rows, index)
            found[index] = order[above - 1][1] if above else -1
        if any(one > other for (_, one), (_, other) in itertools.pairwise(order)):
            found |= self._needed_earlier(found)
        after: dict[int, set[int]] = {}
        for index, place in found.items():
            after.setdefault(place, set()).add(index)
        return after

    def _needed_earlier(self, own: dict[int, int]) -> dict[int, int]:
        """Cell -> place after which it has to run, for those that others below them need earlier.

        Args:
            own: the same for the student's own cells by where they stand.
        """
        places = {index: place for place, index in self.place.items()}
        until: dict[str, int] = {}  # by name: the place after which a cell below needs it
        found: dict[int, int] = {}
        budget = MAX_PARSED
        for index in sorted(own.keys() | places.keys(), reverse=True):
            kind, source = self._runs_as(index, places)
            budget -= len(source)
            if kind != "code" or budget < 0:
                continue
            known = facts(source)
            usual = own[index] if index in own else places[index] - 1
            needed = [until[name] for name in known.bound & until.keys()]
            place = min([usual, *needed])
            if place < usual or (index in places and place in needed):  # cells after it come first
                found[index] = place
            for name in known.bound:
                until.pop(name, None)
            for name in known.needed:
                until[name] = min(place, until.get(name, place))
        return found

    def _needed_by_tests(self, after: dict[int, set[int]]) -> dict[int, set[int]]:
        """Place -> own cells that run after it as well, since what is tested next calls them.

        They may stand below an answer if the student's copy of the test stands below them, too, or
        was deleted. Only cells that do nothing but define are run twice.

        Args:
            after: the student's own cells by the place after which they run.
        """
        tests = [n for n, cell in enumerate(self.notebook.cells) if cell.kind == "test"]
        stands = [self.place.get(n, len(self.cells)) for n in tests]
        lowest = list(itertools.accumulate(stands, max))  # of the tests up to each
        runs = ((bisect.bisect_right(tests, place), min(own)) for place, own in after.items())
        if not any(until and first < lowest[until - 1] for until, first in runs):
            return {}  # no test stands below a cell and runs before it
        givers = self._givers(after)
        found: dict[int, set[int]] = {}
        for test, row in zip(tests, stands, strict=True):
            todo, seen = [*facts(self.notebook.cells[test].source).needed], set[str]()
            while todo:
                if (name := todo.pop()) in seen:
                    continue
                seen.add(name)
                known = givers.get(name, [])[::-1]
                giver = next((one for one in known if one.place < test), None)
                if giver is None:
                    giver = next((one for one in known if one.is_own and one.index < row), None)
                    if giver is None or acts(giver.source):
                        continue
                    found.setdefault(test - 1, set()).add(giver.index)
                todo += facts(giver.source).needed
        return found

    def _givers(self, after: dict[int, set[int]]) -> dict[str, list["_Giver"]]:
        """Name -> cells that bind it, in the order in which they run."""
        places = {index: place for place, index in self.place.items()}
        runs: list[_Giver] = []
        for place in range(-1, len(self.notebook.cells)):
            if place >= 0 and self.notebook.cells[place].kind != "test":
                step = self._step(place, self.notebook.cells[place], ())
                runs += [_Giver(place, -1, step.source)] * (step.cell_type == "code")
            for index in sorted(after.get(place, ())):
                kind, source = self._runs_as(index, places)
                runs += [_Giver(place, index, source, index not in places)] * (kind == "code")
        found: dict[str, list[_Giver]] = {}
        budget = MAX_PARSED
        for giver in runs:
            budget -= len(giver.source)
            for name in facts(giver.source).bound if budget >= 0 else ():
                found.setdefault(name, []).append(giver)
        return found

    def _runs_as(self, index: int, places: dict[int, int]) -> tuple[str, str]:
        """The kind and text of what the student's process runs for a cell of the submission."""
        if index in places:
            step = self._step(places[index], self.notebook.cells[places[index]], ())
            return step.cell_type if step.kind != "test" else "test", step.source
        return self.cells[index].cell_type, self.cells[index].source


def _left_out(name: str, raw: _Raw, cell: Cell | None = None) -> list[str]:
    """What a student and the person who grades should know of a cell, in sentences.

    Args:
        name: what the cell is called.
        raw: the cell.
        cell: the instructor's, whose own pictures nobody misses.
    """
    if raw.damage:
        return [f"{name} was left out: {raw.damage}."]
    found = [f"{name}: {raw.cut}."] if raw.cut else []
    given = cell.stub if cell else ""
    pictures = [one for one in raw.pictures if one not in given and quote(one) not in given]
    if pictures:
        more = f" and {len(pictures) - 3} more" if len(pictures) > 3 else ""
        names = ", ".join(map(shown, pictures[:3]))
        words = f"{name}: pasted pictures are only in the notebook that was handed in, not in the "
        found.append(f"{words}graded one ({names}{more}).")
    return found


def _is_as_handed_out(raw: _Raw, cell: Cell) -> bool:
    """Whether a cell is what some release held, by the checksum that nbgrader put into its marks.

    Of an answer nobody knows what it was; if that was what it is today, the marks can be told.
    Whoever knows nbgrader computes the same: it settles what is said, and never a point.
    """
    if cell.answerable:
        raw = raw._replace(source=cell.stub, cell_type=cell.cell_type)
    return _is_of_a_release(raw)


def _is_of_a_release(raw: _Raw) -> bool:
    """Whether the checksum in a cell's marks is that of its text."""
    with suppress(KeyError, TypeError, ValueError, OverflowError):
        same = raw.marks.get("checksum") == checksum_of(raw.source, raw.cell_type, raw.marks)
        return same and _is_known_schema(raw.marks)
    return False


def _forged(marks: dict, true: dict) -> bool:
    """Whether the grading marks say something else than those handed out."""
    for key in ("grade", "solution", "locked", "task"):
        if marks.get(key, false := bool(true.get(key))) is not false:
            return True
    points, given = marks.get("points", true.get("points")), true.get("points")
    if isinstance(points, bool) or not isinstance(points, int | float | None):
        return True
    if points != given and given is not None:
        return True
    return not _is_known_schema(marks)


def _is_known_schema(marks: dict) -> bool:
    return marks.get("schema_version", 3) in (1, 2, 3)

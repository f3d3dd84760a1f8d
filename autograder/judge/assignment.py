"""Read an instructor's notebooks, as nbgrader knows them, into what grading needs.

Any nbgrader assignment is read: a folder of notebooks with nbgrader's metadata, made by hand or
built from a text source. What the release shows is computed here as nbgrader computes it, from the
settings in nbgrader_config.py. What could not be graded is refused here, not when a class waits.
"""

import ast
import hashlib
import json
import math
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from autograder.common.course import CourseError, course_above
from autograder.common.imports import only_tries_imports
from autograder.common.names import is_text
from autograder.common.scopes import facts
from autograder.common.syntax import IMPORTS, parse, top_level_names
from autograder.common.written import written
from autograder.judge.markers import Markers, read_markers
from autograder.judge.released import versions
from autograder.judge.rules import Rules, read_rules
from autograder.judge.tests_apart import apart

Kind = Literal["markdown", "code", "solution", "test", "manual", "readonly", "task"]
MOST_POINTS = 1_000_000  # of a cell; many of them can still be added
NOT_FILES = ("rules.toml", "nbgrader_config.py", "nbgrader_config.json")


def _is_locked(marks: Mapping[str, Any]) -> bool:
    return not marks.get("solution") and bool(marks.get("grade") or marks.get("locked"))


def checksum_of(source: str, cell_type: str, marks: Mapping[str, Any]) -> str:
    """What nbgrader computes over a cell and its marks; may raise TypeError or ValueError."""
    grade, solution = bool(marks.get("grade")), bool(marks.get("solution"))
    parts = [source, cell_type, str(grade), str(solution), str(_is_locked(marks))]
    parts += [str(marks["grade_id"]), *([str(float(marks["points"]))] if grade else [])]
    text = "".join(parts).encode("utf-8", "replace")
    return hashlib.md5(text, usedforsecurity=False).hexdigest()


@dataclass(frozen=True)
class Cell:
    """One cell of an instructor's notebook."""

    grade_id: str  # empty for an ordinary cell
    kind: Kind
    cell_type: str  # "code", "markdown" or "raw"
    source: str  # the instructor's, as it runs; a solution without its markers, a test with them
    stub: str  # what the release shows
    points: float
    metadata: dict[str, Any]
    id: str  # of the notebook's format
    hidden: tuple[tuple[int, int], ...] = ()  # first and last line of each hidden part, from 1
    text: str = ""  # a test as it is written, where not all of it runs
    cannot: str = ""  # why a test cannot be graded

    @property
    def as_written(self) -> str:
        """The instructor's text, with the magics that are left out where a test runs."""
        return self.text or self.source

    @property
    def answerable(self) -> bool:
        """Whether what the student writes in this cell is taken."""
        return self.kind in ("solution", "manual", "task") and not self.locked

    @property
    def locked(self) -> bool:
        """Whether nbgrader gives this cell back as it was handed out."""
        return _is_locked(self.metadata.get("nbgrader", {}))

    @property
    def hidden_from(self) -> int:
        """The line on which the hidden tests begin; 0 if there are none."""
        return self.hidden[0][0] if self.hidden else 0


@dataclass(frozen=True)
class Group:
    """Solution cells and the tests that follow them: the parts of one question."""

    solutions: tuple[str, ...]
    tests: tuple[str, ...]


@dataclass(frozen=True)
class Notebook:
    """One notebook of an assignment."""

    name: str  # without .ipynb
    cells: tuple[Cell, ...]
    defines: dict[str, tuple[str, ...]]  # solution cell -> top-level names of its reference
    metadata: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def imports(self) -> dict[str, str]:
        """Solution cell -> the imports of its reference, also those that it only tries."""
        return {id: text for id, (text, _) in self._imports.items() if text}

    @cached_property
    def stars(self) -> dict[str, str]:
        """Solution cell -> the imports of * in its reference."""
        return {id: text for id, (_, text) in self._imports.items() if text}

    @cached_property
    def only_imports(self) -> frozenset[str]:
        """Solution cells whose reference defines nothing but what it imports."""
        return frozenset(
            id
            for id, (text, star) in self._imports.items()
            if (text or star) and {*self.defines.get(id, ())} <= {*facts(text).bound, "*"}
        )

    @cached_property
    def brought(self) -> frozenset[str]:
        """What the instructor's cells import: no answer has a part in it."""
        trees = (parse(cell.source) for cell in self.of_kind("readonly", "code"))
        texts = (_importing(tree)[0] for tree in trees if tree is not None)
        return frozenset[str]().union(*(facts(text).bound for text in texts))

    @cached_property
    def _imports(self) -> dict[str, tuple[str, str]]:
        cells = self.of_kind("solution", "manual")
        trees = {c.grade_id: parse(c.source) for c in cells if c.cell_type == "code"}
        return {id: _importing(tree) for id, tree in trees.items() if tree is not None}

    def cell(self, grade_id: str) -> Cell:
        """The cell of this grade_id."""
        return self._by_id[grade_id]

    @cached_property
    def _by_id(self) -> dict[str, Cell]:
        return {cell.grade_id: cell for cell in self.cells if cell.grade_id}

    def of_kind(self, *kinds: str) -> tuple[Cell, ...]:
        """The cells of these kinds, in order."""
        return tuple(cell for cell in self.cells if cell.kind in kinds)

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """The notebook's questions that have tests or a solution, in order."""
        found: list[Group] = []
        for cell in self.of_kind("solution", "test"):
            if not found or (cell.kind == "solution" and found[-1].tests):
                found.append(Group((), ()))
            last = found[-1]
            if cell.kind == "solution":
                found[-1] = Group((*last.solutions, cell.grade_id), last.tests)
            else:
                found[-1] = Group(last.solutions, (*last.tests, cell.grade_id))
        return tuple(found)

    def question_of(self, test_id: str) -> tuple[str, ...]:
        """The solution cells directly before the group of tests to which this one belongs."""
        return next((group.solutions for group in self.groups if test_id in group.tests), ())

    @cached_property
    def shared_names(self) -> dict[str, tuple[str, ...]]:
        """Test -> names that it takes from tests of other groups, which therefore run with it."""
        given: dict[str, int] = {}
        shared: dict[str, tuple[str, ...]] = {}
        for number, group in enumerate(self.groups):
            # an answer's name is the answer's, whoever else has it
            own = {n for solution in group.solutions for n in self.defines.get(solution, ())}
            given = {name: n for name, n in given.items() if name not in own}
            for test in group.tests:
                known = facts(self.cell(test).source)
                names = sorted(n for n in known.needed if given.get(n, number) != number)
                if names:
                    shared[test] = tuple(names)
                given |= dict.fromkeys(known.bound - own, number)
        return shared


@dataclass(frozen=True)
class Assignment:
    """Everything that grading an assignment rests on."""

    name: str
    notebooks: tuple[Notebook, ...]
    digest: str  # changes when tests, rules, files or settings do
    rules: Rules
    files: tuple[Path, ...]  # the instructor's other files
    released: tuple[Path, ...]  # those of them that students get; only tests see the others
    folder: Path = Path()  # in which those files lie
    stand_in: bool = False  # whether the reference stands in for what an earlier question broke

    def notebook(self, name: str) -> Notebook:
        """The notebook of this name."""
        return next(notebook for notebook in self.notebooks if notebook.name == name)

    def name_of(self, notebook: Notebook, test: str) -> str:
        """What a test goes by in the assignment: its grade_id, if no other notebook has it too."""
        return f"{notebook.name}/{test}" if self._times[test] > 1 else test

    @cached_property
    def _times(self) -> Counter[str]:
        return Counter(cell.grade_id for one in self.notebooks for cell in one.of_kind("test"))

    def allowed_files(self, name: str) -> bool:
        """Whether a student's file of this name is kept for the run."""
        return self.rules.allows_file(name)


def _importing(tree: ast.Module) -> tuple[str, str]:
    """The statements of a cell that import, and apart from them those that import *."""
    plain: list[ast.stmt] = []
    stars: list[ast.stmt] = []
    for node in tree.body:
        is_star = isinstance(node, IMPORTS) and any(alias.name == "*" for alias in node.names)
        if is_star or isinstance(node, IMPORTS):
            (stars if is_star else plain).append(node)
        elif isinstance(node, ast.Try) and only_tries_imports(node):
            plain.append(node)
    return written(ast.Module(plain, [])), written(ast.Module(stars, []))


def read_assignment(folder: Path, rules: Path | None = None) -> Assignment:
    """Read the assignment whose notebooks lie in a folder; raises CourseError with what to do.

    Args:
        folder: holds the instructor's notebooks.
        rules: a rules.toml; by default the one in the folder or in solutions/<name>/.
    """
    if not folder.is_dir():
        raise CourseError(f"{folder} does not exist; an assignment's notebooks lie in its folder.")
    folder = folder.resolve()
    root = course_above(folder.parent)
    markers = read_markers(root) if root else Markers()
    paths = sorted(path for path in folder.glob("*.ipynb") if path.is_file())
    if not paths:
        raise CourseError(f"{folder} holds no notebook; put the instructor's .ipynb files there.")
    notebooks = tuple(apart(path, _notebook(path, markers)) for path in paths)
    rules = rules or _rules_path(folder, root)
    questions = [
        cell.grade_id
        for notebook in notebooks
        for cell in notebook.of_kind("solution", "manual")
        if cell.cell_type == "code"
    ]
    read = read_rules(rules, folder.name, questions)
    files = tuple(_other_files(folder, read.late.listed))
    released = tuple(path for path in files if _is_released(folder, path, markers.ignored))
    digest = _digest(markers, folder, [*paths, *_around(markers), *files], rules)
    return Assignment(
        folder.name, notebooks, digest, read, files, released, folder, markers.stand_in
    )


def _rules_path(folder: Path, root: Path | None) -> Path:
    beside = folder / "rules.toml"
    if os.path.lexists(beside) or root is None:
        return beside
    return root / "solutions" / folder.name / "rules.toml"


def _around(markers: Markers) -> list[Path]:
    return [path for path in (markers.header, markers.footer) if path is not None]


def _other_files(folder: Path, times: Path | None) -> Iterator[Path]:
    """What lies beside the notebooks when they run; the list of who handed in when does not."""
    listed = times and times.resolve()
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        private = any(part.startswith((".", "__pycache__")) for part in inside.parts)
        notebook = path.suffix == ".ipynb" and len(inside.parts) == 1
        private = private or path.resolve() == listed
        if path.is_file() and not (private or notebook or path.name in NOT_FILES):
            yield path


def _is_released(folder: Path, path: Path, ignored: Sequence[str]) -> bool:
    """Whether nbgrader puts a file into the release: no part of its path has an ignored name."""
    parts = (folder.name, *path.relative_to(folder).parts)
    return not any(fnmatchcase(part, one) for part in parts for one in (*ignored, "*.ipynb"))


def _digest(markers: Markers, folder: Path, paths: Sequence[Path], rules: Path) -> str:
    """The same wherever the course lies."""
    settings = replace(markers, header=None, footer=None)  # their content is among the files
    digest = hashlib.sha256(repr(settings).encode())
    for path in [*paths, rules]:
        content = path.read_bytes() if path.is_file() else b""
        name = path.relative_to(folder) if path.is_relative_to(folder) else path.name
        digest.update(f"{name} {len(content)}\n".encode("utf-8", "surrogateescape") + content)
    return digest.hexdigest()


def _notebook(path: Path, markers: Markers) -> Notebook:
    if not is_text(path.stem):
        raise CourseError(f"{path} has a name that is no text in UTF-8; rename the notebook.")
    content = _content(path)
    raw = [*_cells_of(markers.header), *content["cells"], *_cells_of(markers.footer)]
    cells = tuple(_cell(path, number, cell, markers) for number, cell in enumerate(raw, 1))
    seen: set[str] = set()
    for cell in cells:
        if cell.grade_id in seen and cell.grade_id:
            raise CourseError(f"{path}: the grade_id {cell.grade_id} is there twice; rename one.")
        seen.add(cell.grade_id)
    defines = {
        cell.grade_id: tuple(sorted(top_level_names(tree)))
        for cell in cells
        if cell.kind in ("solution", "manual") and cell.cell_type == "code"
        if (tree := parse(cell.source)) is not None
    }
    metadata = {key: content["metadata"].get(key) for key in ("kernelspec", "language_info")}
    return Notebook(path.stem, cells, defines, {k: v for k, v in metadata.items() if v})


def _cells_of(path: Path | None) -> list[dict]:
    """Cells of the header or footer that nbgrader puts around every notebook."""
    return _content(path)["cells"] if path else []


def _content(path: Path) -> dict:
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise CourseError(f"{path} is no notebook ({error}); save it again in Jupyter.") from error
    if not isinstance(content, dict) or not isinstance(content.get("cells"), list):
        raise CourseError(
            f"{path} is no notebook of format 4 (it has no list of cells); open it in Jupyter and "
            "save it."
        )
    for number, cell in enumerate(content["cells"], 1):
        if not _is_cell(cell):
            raise CourseError(
                f"{path}, cell {number} is no cell as Jupyter writes it; open it there and save it."
            )
    metadata = content["metadata"] = _table(content.get("metadata"))
    language = _table(metadata.get("kernelspec")).get("language", "python")
    if language != "python":
        raise CourseError(f"{path} is written in {language}; only Python notebooks can be graded.")
    return content


def _table(value: Any) -> dict[str, Any]:
    """A table of a notebook's; what stands in its place counts as none."""
    return value if isinstance(value, dict) else {}


def _is_cell(raw: Any) -> bool:
    """Whether a cell has the parts that are read here, each of its kind."""
    if not isinstance(raw, dict) or not isinstance(raw.get("metadata", {}), dict):
        return False
    source, marks = raw.get("source", ""), raw.get("metadata", {}).get("nbgrader") or {}
    lines = source if isinstance(source, list) else [source]
    names = [raw.get("cell_type", "code"), raw.get("id") or ""]
    named = isinstance(marks, dict) and isinstance(marks.get("grade_id", ""), str)
    return named and all(isinstance(text, str) for text in (*lines, *names))


def _cell(path: Path, number: int, raw: dict, markers: Markers) -> Cell:
    source = raw.get("source", "")
    source = "".join(source) if isinstance(source, list) else source
    metadata = dict(raw.get("metadata", {}))
    marks = metadata.get("nbgrader") or {}
    grade_id = marks.get("grade_id", "")
    cell_type = raw.get("cell_type", "code")
    kind = _kind(marks, cell_type)
    where = f"{path}, cell {grade_id or number}"
    if not grade_id and kind in ("solution", "test", "manual", "task"):
        raise CourseError(
            f"{where}: nbgrader's marks of this cell have no grade_id; give it one in Jupyter, of "
            "letters, digits, - and _."
        )
    if not is_text(grade_id):
        raise CourseError(f"{where}: the grade_id is no text in UTF-8; give the cell another one.")
    if kind in ("code", "markdown"):  # without a part in grading it is the student's to change
        grade_id = ""
    cut, stub, hidden = versions(where, kind, cell_type, source, markers)
    invented = hashlib.sha256(f"{path.stem} {number}".encode()).hexdigest()[:16]
    return Cell(
        grade_id=grade_id,
        kind=kind,
        cell_type=cell_type,
        source=cut,
        stub=stub,
        points=_points(where, marks),
        metadata=metadata,
        id=raw.get("id") or invented,
        hidden=hidden,
    )


def _kind(marks: dict, cell_type: str) -> Kind:
    grade, solution = bool(marks.get("grade")), bool(marks.get("solution"))
    if marks.get("task"):
        return "task"
    if solution and not grade and cell_type == "code":
        return "solution"
    if solution or (grade and cell_type != "code"):
        return "manual"
    if grade:
        return "test"
    if marks.get("locked"):
        return "readonly"
    return "code" if cell_type == "code" else "markdown"


def _points(where: str, marks: dict) -> float:
    if not (marks.get("grade") or marks.get("task")):
        return 0.0
    points = marks.get("points")
    number = float(points) if isinstance(points, int | float) else math.nan
    if 0 <= number <= MOST_POINTS:
        return number
    cure = f"set a number, 0 or more and {MOST_POINTS:,} at most, in Jupyter"
    if isinstance(points, str):  # as an old nbgrader wrote them
        cure += ", or run nbgrader update on this notebook"
    raise CourseError(f"{where}: points are {points!r}; {cure}.")

"""Collect what the notebooks build into one module: the whole Transformer, in a student's own words.

Each chapter's notebook marks some cells with the tag "export". Their functions and classes are
copied here in the book's order, with the imports and helpers that they use and with nothing else.
What is missing or cannot be used is reported and the rest is collected all the same.
"""

import ast
import builtins
import json
import re
import symtable
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

FIRST_LINE = '"""The Transformer that the exercises build, in one module.'

# What the model is made of, by chapter and question: what to miss where a notebook is not there,
# and how to find an answer whose cell has lost its tag.
PARTS: dict[str, dict[str, tuple[str, ...]]] = {
    "01_embedding": {"token-embedding": ("TokenEmbedding",)},
    "02_positional_encoding": {
        "sinusoidal-encoding": ("sinusoidal_encoding",),
        "positional-encoding": ("PositionalEncoding",),
    },
    "03_attention": {
        "scaled-dot-product": ("scaled_dot_product_attention",),
        "masks": ("causal_mask", "padding_mask"),
    },
}

WIDTH = 100
CHAPTER = re.compile(r"(\d\d)_(\w+)")
TITLE = re.compile(r"^# (?:\d+ )?(.+)$", re.MULTILINE)
QUESTION = re.compile(r"^## (\d+\.\d+) ", re.MULTILINE)
MARKER = re.compile(r"^\s*### (BEGIN|END) SOLUTION\s*\n?", re.MULTILINE)
DEFINITION = re.compile(r"^(?:class|def) (\w+)", re.MULTILINE)


@dataclass(frozen=True)
class Assembly:
    """A module's text, and what keeps it from being whole: one line each, in the book's order."""

    text: str
    parts: int
    problems: tuple[str, ...]


@dataclass(frozen=True)
class Cell:
    """A code cell that may hold answers or what they need."""

    source: str
    question: str  # such as "question 3.2", or "" above the first one
    grade_id: str
    export: bool


@dataclass(frozen=True)
class Import:
    """One name that an import binds."""

    module: str
    member: str | None
    alias: str | None

    @property
    def name(self) -> str:
        """The name it binds."""
        return self.alias or self.member or self.module.partition(".")[0]


@dataclass(frozen=True)
class Definition:
    """A function, class or constant of a notebook, with the comment above it."""

    name: str
    source: str
    question: str
    grade_id: str
    export: bool
    constant: bool
    answered: bool

    @property
    def needs(self) -> list[str]:
        """The names it takes from the module around it."""
        return sorted(_outer_names(symtable.symtable(self.source, "cell", "exec")) - {self.name})


@dataclass
class Chapter:
    """What a notebook offers."""

    number: int
    title: str
    definitions: list[Definition] = field(default_factory=list)
    imports: dict[str, list[Import]] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)  # name -> why its cell cannot be read

    def find(self, name: str) -> Definition | None:
        """The definition of a name: the marked one, unless only another one is answered."""
        found = [definition for definition in self.definitions if definition.name == name]
        return min(found, key=lambda one: (not one.answered, not one.export), default=None)


def assemble(directory: Path, out: Path) -> Assembly:
    """Collect the module from the notebooks of a directory.

    Args:
        directory: holds `03_attention/03_attention.ipynb` or `03_attention.ipynb`, and so on.
        out: the file that the text is for; only its header mentions it.

    Raises:
        ValueError: if there is no such directory, or no chapter's notebook in it.
    """
    if not directory.is_dir():
        raise ValueError(f"there is no directory {directory}")
    names = _chapter_names(directory)
    collection = _Collection()
    for name in names:
        collection.add(name, _notebook_path(directory, name))
    return Assembly(_module(collection, directory, out), collection.parts, collection.report())


def write(assembly: Assembly, out: Path) -> None:
    """Write the module.

    Raises:
        ValueError: if the file exists and something else than `assemble` has made it.
    """
    if out.exists() and not out.read_text(encoding="utf-8").startswith(FIRST_LINE):
        raise ValueError(f"{out} exists and is not an assembled module; give another --out")
    out.write_text(assembly.text, encoding="utf-8")


class _Collection:
    """The definitions chosen so far, in order, and the problems met on the way."""

    def __init__(self) -> None:
        self.parts = 0
        self.sections: list[tuple[Chapter, list[Definition], list[str]]] = []
        self.imports: dict[str, Import] = {}
        self.taken: dict[str, tuple[Chapter, Definition]] = {}
        self.problems: list[tuple[int, str]] = []
        self.lost: set[str] = set()
        self.open: list[tuple[Chapter, Definition, str]] = []

    def add(self, name: str, path: Path | None) -> None:
        """Take the parts of a chapter."""
        number = int(name[:2])
        if path is None:
            self.lost.update(part for parts in PARTS[name].values() for part in parts)
            self.problem(number, f"there is no notebook {name}.ipynb")
            return
        try:
            chapter = _read_chapter(path, name)
        except ValueError as error:
            self.lost.update(part for parts in PARTS.get(name, {}).values() for part in parts)
            self.problem(number, f"{path} is no notebook ({error})")
            return
        self.sections.append((chapter, [], []))
        for part in _parts(chapter, PARTS.get(name, {})):
            self.take_part(chapter, part)

    def take_part(self, chapter: Chapter, name: str) -> None:
        """Take one part, with what it needs; or say why not."""
        definition = chapter.find(name)
        if definition is None:
            why = chapter.broken.get(name, f"no cell defines {name}")
            self.lost.add(name)
            self.sections[-1][2].append(f"# {name} is missing: {why}")
            self.problem(chapter.number, why)
            return
        if definition.answered:
            self.parts += 1
        else:
            self.problem(chapter.number, f"{name} is not answered yet", definition.question)
        self.take(chapter, definition)

    def take(self, chapter: Chapter, definition: Definition) -> None:
        """Take a definition after its notebook's helpers and imports that it needs."""
        if definition.name in self.taken:
            owner, other = self.taken[definition.name]
            if owner is not chapter and other.source != definition.source:
                why = f"{definition.name} means something else in chapter {owner.number}; rename it"
                self.problem(chapter.number, why, definition.question)
            return
        self.taken[definition.name] = (chapter, definition)
        for name in definition.needs:
            helper = chapter.find(name)
            if helper is not None:
                self.take(chapter, helper)
            elif name in chapter.imports:
                self.take_import(chapter, definition, name)
            elif not hasattr(builtins, name):
                self.open.append((chapter, definition, name))
        self.sections[-1][1].append(definition)

    def take_import(self, chapter: Chapter, definition: Definition, name: str) -> None:
        """Take an import; what comes from the lab should be a part of the module by now."""
        for found in chapter.imports[name]:
            if found.module.partition(".")[0] == "lab":
                self.open.append((chapter, definition, name))
            elif self.imports.setdefault(_statement(found), found) and self.clashes(found):
                why = f"{name} stands for another import in an earlier chapter; rename it"
                self.problem(chapter.number, why, definition.question)

    def clashes(self, new: Import) -> bool:
        """Whether an import's name was bound to something else before."""
        return any(
            old.name == new.name and (old.member or old.alias or new.member or new.alias)
            for old in self.imports.values()
            if old != new
        )

    def problem(self, number: int, what: str, question: str = "") -> None:
        """Note a problem of a chapter."""
        line = f"chapter {number}{', ' if question else ''}{question}: {what}"
        if (number, line) not in self.problems:
            self.problems.append((number, line))

    def report(self) -> tuple[str, ...]:
        """All problems, undefined names included, by chapter."""
        for chapter, definition, name in self.open:
            if name not in self.taken and name not in self.lost:
                why = f"{definition.name} needs {name}, which the module does not have"
                self.problem(
                    chapter.number, f"{why}; define it in the same cell", definition.question
                )
        return tuple(line for _, line in sorted(self.problems, key=lambda problem: problem[0]))


def _chapter_names(directory: Path) -> list[str]:
    here = {path.name for path in directory.iterdir() if path.is_dir()}
    here |= {path.stem for path in directory.glob("*.ipynb")}
    found = {name for name in here if CHAPTER.fullmatch(name) and _notebook_path(directory, name)}
    if not found:
        raise ValueError(f"{directory} holds no chapter's notebook, such as 03_attention.ipynb")
    return sorted(found | set(PARTS))


def _notebook_path(directory: Path, name: str) -> Path | None:
    paths = directory / name / f"{name}.ipynb", directory / f"{name}.ipynb"
    return next((path for path in paths if path.is_file()), None)


def _read_chapter(path: Path, name: str) -> Chapter:
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        texts = ["".join(cell["source"]) for cell in cells]
    except (KeyError, TypeError) as error:
        raise ValueError("it has no cells") from error
    prose = [
        text for cell, text in zip(cells, texts, strict=True) if cell["cell_type"] == "markdown"
    ]
    title = next((found[1] for text in prose if (found := TITLE.search(text))), name[3:])
    chapter = Chapter(int(name[:2]), title)
    for cell in _code_cells(cells, texts):
        _read_cell(chapter, cell)
    return chapter


def _code_cells(cells: list[dict], texts: list[str]) -> Iterator[Cell]:
    """The code cells that are no tests."""
    question = ""
    for cell, text in zip(cells, texts, strict=True):
        metadata = cell.get("metadata", {})
        if cell["cell_type"] == "markdown" and (found := QUESTION.search(text)):
            question = f"question {found[1]}"
        graded = metadata.get("nbgrader", {})
        if cell["cell_type"] == "code" and not graded.get("grade"):
            export = "export" in metadata.get("tags", [])
            yield Cell(MARKER.sub("", text), question, graded.get("grade_id", ""), export)


def _read_cell(chapter: Chapter, cell: Cell) -> None:
    try:
        tree = ast.parse(cell.source)
    except SyntaxError as error:
        where = f"line {error.lineno} of its cell is no Python ({error.msg})"
        for name in DEFINITION.findall(cell.source):
            chapter.broken[name] = where
        return
    end = 0
    for statement in tree.body:
        start = _start(statement, cell.source, end)
        end = statement.end_lineno or statement.lineno
        source = "\n".join(cell.source.splitlines()[start:end])
        if isinstance(statement, ast.Import | ast.ImportFrom):
            for found in _imports(statement):
                chapter.imports.setdefault(found.name, []).append(found)
        elif name := _defined(statement):
            constant = not isinstance(statement, ast.FunctionDef | ast.ClassDef)
            chapter.definitions.append(
                Definition(
                    name,
                    source,
                    cell.question,
                    cell.grade_id,
                    cell.export,
                    constant,
                    _answered(statement),
                )
            )


def _start(statement: ast.stmt, source: str, previous_end: int) -> int:
    """Index of the statement's first line, its decorators and the comment above included."""
    decorators = getattr(statement, "decorator_list", [])
    start = min([statement.lineno, *(one.lineno for one in decorators)]) - 1
    lines = source.splitlines()
    while start > previous_end and lines[start - 1].startswith("#"):
        start -= 1
    return start


def _imports(statement: ast.Import | ast.ImportFrom) -> list[Import]:
    if isinstance(statement, ast.Import):
        return [Import(alias.name, None, alias.asname) for alias in statement.names]
    return [Import(statement.module or "", alias.name, alias.asname) for alias in statement.names]


def _defined(statement: ast.stmt) -> str | None:
    """The name that a statement defines: a function, a class, or a constant written out."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return statement.name
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target, value = statement.targets[0], statement.value
    elif isinstance(statement, ast.AnnAssign):
        target, value = statement.target, statement.value
    else:
        return None
    calls = value is None or any(isinstance(node, ast.Call) for node in ast.walk(value))
    return target.id if isinstance(target, ast.Name) and not calls else None


def _answered(statement: ast.stmt) -> bool:
    """Whether no function of it runs into the line that stands for a missing answer."""
    functions = [node for node in ast.walk(statement) if isinstance(node, ast.FunctionDef)]
    return not any(_is_stub(function) for function in functions)


def _is_stub(function: ast.FunctionDef) -> bool:
    for statement in function.body:
        if isinstance(statement, ast.Return):
            return False
        if isinstance(statement, ast.Raise) and statement.exc is not None:
            error = statement.exc
            error = error.func if isinstance(error, ast.Call) else error
            return isinstance(error, ast.Name) and error.id == "NotImplementedError"
    return False


def _outer_names(table: symtable.SymbolTable) -> set[str]:
    """Names that the code looks up outside itself."""
    top = table.get_type() == "module"
    own = {
        one.get_name()
        for one in table.get_symbols()
        if one.is_referenced() and (top or one.is_global())
    }
    return own.union(*(_outer_names(child) for child in table.get_children()))


def _parts(chapter: Chapter, known: dict[str, tuple[str, ...]]) -> list[str]:
    """Names of a chapter's parts: those of its marked cells and those that ought to be there."""
    marked = [
        one.name
        for one in chapter.definitions
        if not one.constant and (one.export or one.grade_id in known)
    ]
    return list(dict.fromkeys([*marked, *(part for parts in known.values() for part in parts)]))


def _module(collection: _Collection, directory: Path, out: Path) -> str:
    command = f"python -m lab assemble {directory.as_posix()} --out {out.as_posix()}"
    header = (
        f"{FIRST_LINE}\n\n"
        "A generated file: each part is a copy of the answer in its chapter's notebook, in the book's\n"
        "order. To change a part, change the notebook, then make this file again:\n\n"
        f"    {command}\n"
        '"""\n\n'
    )
    blocks = [header + _import_block(collection.imports.values())]
    for chapter, definitions, missing in collection.sections:
        if not definitions and not missing:
            continue
        rule = f"# Chapter {chapter.number}: {chapter.title} "
        blocks.append("\n".join([rule.ljust(WIDTH, "-"), *missing]))
        blocks += [definition.source for definition in definitions]
    return "\n\n\n".join(blocks) + "\n"


def _import_block(imports: Iterable[Import]) -> str:
    """The imports in the order that isort and ruff keep: standard library first."""
    standard: dict[str, list[str]] = {}
    other: dict[str, list[str]] = {}
    for one in imports:
        group = standard if one.module.partition(".")[0] in sys.stdlib_module_names else other
        if one.member is None:
            group[_statement(one)] = []
        else:
            members = group.setdefault(f"from {one.module} import", [])
            members.append(one.member + (f" as {one.alias}" if one.alias else ""))
    sections = []
    for group in (standard, other):
        lines = [_import_line(key, group[key]) for key in sorted(group, key=_import_order)]
        sections.append("\n".join(lines))
    return "\n\n".join(filter(None, sections))


def _import_order(line: str) -> tuple[bool, str]:
    return line.startswith("from"), line.split()[1].lower()


def _import_line(line: str, members: list[str]) -> str:
    if not members:
        return line
    members = sorted(members, key=_member_order)
    joined = f"{line} {', '.join(members)}"
    if len(joined) <= WIDTH:
        return joined
    return "\n".join([f"{line} (", *(f"    {member}," for member in members), ")"])


def _member_order(name: str) -> tuple[int, str]:
    """Constants, then classes, then the rest."""
    return (0 if name.isupper() and len(name) > 1 else 1 if name[0].isupper() else 2), name


def _statement(one: Import) -> str:
    alias = f" as {one.alias}" if one.alias else ""
    if one.member is None:
        return f"import {one.module}{alias}"
    return f"from {one.module} import {one.member}{alias}"

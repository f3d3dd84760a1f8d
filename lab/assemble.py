"""Collect what the notebooks build into one module: the whole Transformer, as a student wrote it.

Each chapter's notebook marks some cells with the tag "export". Their functions and classes are
copied in the book's order, with the imports and helpers that they use and with nothing else.
What is missing or cannot be used is reported, and the rest is collected all the same.
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

from lab.files import write_text

FIRST_LINE = '"""The Transformer that the exercises build, in one module.'

# What the module is made of, by chapter and question: what to miss where a notebook is not there,
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
    "04_multi_head_attention": {"multi-head": ("MultiHeadAttention",)},
    "05_layer_norm": {"layer-norm": ("LayerNorm",), "feed-forward": ("FeedForward",)},
    "06_encoder": {"encoder-layer": ("EncoderLayer",), "encoder": ("Encoder",)},
    "07_decoder": {
        "decoder-layer": ("DecoderLayer",),
        "decoder": ("Decoder",),
        "generator": ("Generator",),
    },
    "08_teacher_forcing": {
        "teacher-forcing-pair": ("teacher_forcing_pair",),
        "label-smoothed-loss": ("label_smoothed_loss",),
        "learning-rate": ("learning_rate",),
        "scheduled-adam": ("scheduled_adam",),
        "clip-gradients": ("clip_gradients",),
        "train-step": ("train_step",),
    },
    "09_inference": {
        "greedy-decode": ("greedy_decode",),
        "beam-search": ("beam_search",),
        "cached-attention": ("CachedAttention", "use_cache"),
        "bleu": ("bleu",),
    },
    "10_full_model": {
        "transformer": ("Transformer",),
        "initialise": ("initialise",),
        "average-checkpoints": ("average_checkpoints",),
    },
    "12_language_model": {"language-model": ("LanguageModel",)},
    "13_pictures": {
        "patchify": ("patchify",),
        "patch-encoder": ("PatchEncoder",),
        "captioner": ("Captioner",),
    },
}
BEYOND = {  # what a translator does without: not missed where it is not there
    "12_language_model",
    "13_pictures",
}

WIDTH = 100
CHAPTER = re.compile(r"\d\d_\w+")
TITLE = re.compile(r"^# (?:\d+ )?(.+)$", re.MULTILINE)
QUESTION = re.compile(r"^## (\d+\.\d+) ", re.MULTILINE)
TOOLS_LINE = re.compile(
    r"^(?:[ \t]*### (?:BEGIN|END) SOLUTION[ \t]*|# covers: .*)$\n?", re.MULTILINE
)
HEADING = re.compile(r"^(?:class|def) (\w+)", re.MULTILINE)


@dataclass(frozen=True)
class Assembly:
    """A module's text, its parts and how many are answered, and what is wrong, one line each."""

    text: str
    parts: int
    answered: int
    problems: tuple[str, ...]


def assemble(directory: Path, out: Path) -> Assembly:
    """Collect the module from the notebooks of a directory.

    Args:
        directory: holds `03_attention/03_attention.ipynb` or `03_attention.ipynb`, and so on.
        out: the file that the text is for; only the text's header mentions it.

    Raises:
        ValueError: if there is no such directory, or no chapter's notebook in it.
    """
    if not directory.is_dir():
        raise ValueError(f"there is no directory {directory}")
    chapters = _read_chapters(directory)
    collection = _Collection({name for chapter in chapters for name in chapter.parts})
    for chapter in chapters:
        collection.add(chapter)
    collection.look_for_undefined_names()
    problems = sorted(collection.problems, key=lambda line: int(re.findall(r"\d+", line)[0]))
    command = f"python -m lab assemble {directory.as_posix()} --out {out.as_posix()}"
    return Assembly(
        text=_module(chapters, collection, command),
        parts=len(collection.parts),
        answered=collection.answered,
        problems=tuple(problems),
    )


def write(assembly: Assembly, out: Path) -> None:
    """Write the module's text.

    Raises:
        ValueError: if the file exists and was not made by `assemble`.
    """
    if out.exists() and not out.read_text(encoding="utf-8").startswith(FIRST_LINE):
        raise ValueError(f"{out} exists and is no assembled module; name another file with --out")
    write_text(out, assembly.text)


@dataclass(frozen=True)
class _Cell:
    """A code cell that may hold answers, or what they need."""

    source: str
    place: str  # such as "chapter 3, question 3.2"
    marked: bool  # what it defines belongs to the module
    expected: tuple[str, ...]  # what it should define


@dataclass(frozen=True)
class _Import:
    """One name that an import statement binds."""

    module: str
    member: str | None
    alias: str | None

    @property
    def name(self) -> str:
        """The name."""
        return self.alias or self.member or self.module.partition(".")[0]

    @property
    def from_lab(self) -> bool:
        """Whether it stands in for something that the module has, or should not need."""
        return self.module.partition(".")[0] == "lab"

    @property
    def target(self) -> str:
        """What the name stands for."""
        if self.member:
            return f"{self.module}.{self.member}"
        return self.module if self.alias else self.name


@dataclass(frozen=True)
class _Definition:
    """A function, class or constant, with the comment above it."""

    name: str
    source: str
    place: str
    marked: bool
    constant: bool
    answered: bool

    @property
    def needs(self) -> list[str]:
        """The names that it takes from the module around it."""
        names = _outer_names(symtable.symtable(self.source, self.name, "exec")) - {self.name}
        return sorted(name for name in names if not hasattr(builtins, name))


@dataclass
class _Chapter:
    """What a chapter's notebook offers; without a notebook, just its name."""

    name: str
    title: str = ""
    problem: str = ""
    definitions: list[_Definition] = field(default_factory=list)
    imports: dict[str, _Import] = field(default_factory=dict)
    unreadable: dict[str, str] = field(default_factory=dict)  # name -> where, and why

    @property
    def place(self) -> str:
        """How a message names it."""
        return f"chapter {int(self.name[:2])}"

    @property
    def parts(self) -> list[str]:
        """What it adds to the module: what its marked cells define, and what they ought to."""
        marked = [one.name for one in self.definitions if one.marked and not one.constant]
        known = [name for names in PARTS.get(self.name, {}).values() for name in names]
        return list(dict.fromkeys([*marked, *known]))

    def find(self, name: str) -> _Definition | None:
        """The definition of a name: the marked one, unless only another one is answered."""
        found = [one for one in self.definitions if one.name == name]
        return min(found, key=lambda one: (not one.answered, not one.marked), default=None)


class _Collection:
    """The definitions taken so far and the problems met on the way."""

    def __init__(self, parts: set[str]) -> None:
        self.parts = parts
        self.answered = 0
        self.taken: dict[str, _Definition] = {}
        self.sections: dict[str, list[str]] = {}  # chapter's name -> pieces of source
        self.imports: dict[str, _Import] = {}
        self.undefined: list[tuple[_Definition, str]] = []
        self.lost: set[str] = set()
        self.problems: list[str] = []

    def add(self, chapter: _Chapter) -> None:
        """Take a chapter's parts; note those that are missing or not answered."""
        self.sections[chapter.name] = []
        if chapter.problem:
            self.problems.append(f"{chapter.place}: {chapter.problem}")
        for name in chapter.parts:
            part = chapter.find(name)
            if part is not None:
                self.take(chapter, part)
                self.answered += part.answered
                if not part.answered:
                    self.problems.append(f"{part.place}: {name} is not answered yet")
                continue
            self.lost.add(name)
            if not chapter.problem:
                why = chapter.unreadable.get(name, f"{chapter.place}: no cell defines {name}")
                if why not in self.problems:
                    self.problems.append(why)
                self.sections[chapter.name].append(f"# {name} is missing: {why}")

    def take(self, chapter: _Chapter, definition: _Definition) -> None:
        """Take a definition, after those of its notebook's helpers that it needs."""
        name = definition.name
        if name in self.taken:
            other = self.taken[name]
            if other.source != definition.source:
                self.problems.append(
                    f"{definition.place}: {name} means something else in {other.place}; rename one"
                )
            return
        self.taken[name] = definition
        for needed in definition.needs:
            helper, imported = chapter.find(needed), chapter.imports.get(needed)
            if needed in self.parts and needed not in chapter.parts:
                self.undefined.append((definition, needed))  # unless its own chapter defines it
            elif helper is not None:
                self.take(chapter, helper)
            elif imported is not None and not imported.from_lab:
                self.take_import(definition, imported)
            else:
                self.undefined.append((definition, needed))
        self.sections[chapter.name].append(definition.source)

    def take_import(self, definition: _Definition, new: _Import) -> None:
        """Take an import, unless its name is bound already."""
        old = self.imports.setdefault(new.name, new)
        if old.target != new.target:
            self.problems.append(
                f"{definition.place}: {new.name} stands for {new.target}, but in an earlier "
                f"chapter for {old.target}; rename one"
            )

    def look_for_undefined_names(self) -> None:
        """Note what the definitions need and nothing defines, once all chapters are there."""
        for definition, name in self.undefined:
            if name not in self.taken and name not in self.lost:
                self.problems.append(
                    f"{definition.place}: {definition.name} needs {name}, which the module does "
                    "not have; define it in the same cell, as a function, class or constant"
                )


def _read_chapters(directory: Path) -> list[_Chapter]:
    """The chapters in order: those that have a notebook here and those that ought to."""
    here = [path.name for path in directory.iterdir() if path.is_dir()]
    here += [path.stem for path in directory.glob("*.ipynb")]
    found = {name for name in here if CHAPTER.fullmatch(name) and _notebook(directory, name)}
    if not found:
        raise ValueError(f"{directory} holds no chapter's notebook, such as 03_attention.ipynb")
    chapters = []
    for name in sorted(found | set(PARTS) - BEYOND):
        path = _notebook(directory, name)
        try:
            if path is None:
                raise ValueError(f"there is no {name}.ipynb in {directory}")
            chapters.append(_read_chapter(path))
        except ValueError as error:
            chapters.append(_Chapter(name, problem=str(error)))
    return chapters


def _notebook(directory: Path, name: str) -> Path | None:
    paths = directory / name / f"{name}.ipynb", directory / f"{name}.ipynb"
    return next((path for path in paths if path.is_file()), None)


def _read_chapter(path: Path) -> _Chapter:
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        prose = [_text(cell) for cell in cells if cell["cell_type"] == "markdown"]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is no notebook") from error
    titles = [found[1] for text in prose if (found := TITLE.search(text))]
    chapter = _Chapter(path.stem, title=titles[0] if titles else path.stem[3:])
    for cell in _code_cells(chapter, cells):
        _read_cell(chapter, cell)
    return chapter


def _text(cell: dict) -> str:
    return "".join(cell["source"])


def _code_cells(chapter: _Chapter, cells: Iterable[dict]) -> Iterator[_Cell]:
    """The code cells, without tests."""
    place = chapter.place
    for cell in cells:
        metadata = cell.get("metadata", {})
        graded = metadata.get("nbgrader", {})
        if cell["cell_type"] == "markdown" and (found := QUESTION.search(_text(cell))):
            place = f"{chapter.place}, question {found[1]}"
        elif cell["cell_type"] == "code" and not graded.get("grade"):
            expected = PARTS.get(chapter.name, {}).get(graded.get("grade_id", ""), ())
            marked = bool(expected) or "export" in metadata.get("tags", [])
            yield _Cell(TOOLS_LINE.sub("", _text(cell)), place, marked, expected)


def _read_cell(chapter: _Chapter, cell: _Cell) -> None:
    try:
        tree = ast.parse(cell.source)
    except SyntaxError as error:
        why = f"{cell.place}: line {error.lineno} of the cell is no Python ({error.msg})"
        names = [*cell.expected, *HEADING.findall(cell.source)]
        chapter.unreadable.update(dict.fromkeys(names, why))
        return
    lines, end = cell.source.splitlines(), 0
    for statement in tree.body:
        start, end = _start(statement, lines, end), statement.end_lineno or 0
        name = _defined_name(statement, any_value=cell.marked)
        if name:
            definition = _Definition(
                name=name,
                source="\n".join(lines[start:end]),
                place=cell.place,
                marked=cell.marked,
                constant=not isinstance(statement, ast.FunctionDef | ast.ClassDef),
                answered=not any(_is_stub(node) for node in ast.walk(statement)),
            )
            chapter.definitions.append(definition)
        for found in _imports(statement):
            chapter.imports[found.name] = found


def _start(statement: ast.stmt, lines: list[str], previous_end: int) -> int:
    """Index of a statement's first line, decorators and the comment above it included."""
    decorators = getattr(statement, "decorator_list", [])
    start = min([statement.lineno, *(one.lineno for one in decorators)]) - 1
    while start > previous_end and lines[start - 1].startswith("#"):
        start -= 1
    return start


def _defined_name(statement: ast.stmt, *, any_value: bool) -> str | None:
    """The name of a function, a class or a constant; its value written out, or any value."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return statement.name
    if isinstance(statement, ast.Assign):
        target, value = statement.targets[0], statement.value
    elif isinstance(statement, ast.AnnAssign) and statement.value:
        target, value = statement.target, statement.value
    else:
        return None
    plain = any_value or not any(isinstance(node, ast.Call) for node in ast.walk(value))
    return target.id if isinstance(target, ast.Name) and plain else None


def _is_stub(node: ast.AST) -> bool:
    """Whether a function runs into the line that stands for a missing answer."""
    if not isinstance(node, ast.FunctionDef):
        return False
    for statement in node.body:
        if isinstance(statement, ast.Return):
            return False
        if isinstance(statement, ast.Raise):
            error = statement.exc
            error = error.func if isinstance(error, ast.Call) else error
            return isinstance(error, ast.Name) and error.id == "NotImplementedError"
    return False


def _imports(statement: ast.stmt) -> list[_Import]:
    if isinstance(statement, ast.Import):
        return [_Import(one.name, None, one.asname) for one in statement.names]
    if isinstance(statement, ast.ImportFrom):
        return [_Import(statement.module or "", one.name, one.asname) for one in statement.names]
    return []


def _outer_names(table: symtable.SymbolTable) -> set[str]:
    """The names that code looks up outside itself."""
    names = {
        symbol.get_name()
        for symbol in table.get_symbols()
        if symbol.is_referenced() and (table.get_type() == "module" or symbol.is_global())
    }
    return names.union(*map(_outer_names, table.get_children()))


def _module(chapters: Iterable[_Chapter], collection: _Collection, command: str) -> str:
    header = (
        f"{FIRST_LINE}\n\n"
        "A generated file: each part is a copy of the answer in its chapter's notebook, in the\n"
        "book's order. To change a part, change the notebook, then make this file again:\n\n"
        f"    {command}\n"
        '"""\n\n'
    )
    blocks = []
    for chapter in chapters:
        if collection.sections[chapter.name]:
            line = f"# {chapter.place.capitalize()}: {chapter.title} "
            blocks.append(line.ljust(WIDTH, "-"))
            blocks += collection.sections[chapter.name]
    return header + _import_block(collection.imports.values()) + "\n\n\n".join(blocks) + "\n"


def _import_block(imports: Iterable[_Import]) -> str:
    """One import per module, in the order of ruff and isort: standard library first."""
    groups: tuple[dict[str, list[str]], ...] = ({}, {})
    for one in imports:
        group = groups[one.module.partition(".")[0] not in sys.stdlib_module_names]
        alias = f" as {one.alias}" if one.alias else ""
        if one.member is None:
            group[f"import {one.module}{alias}"] = []
        else:
            group.setdefault(f"from {one.module} import ", []).append(one.member + alias)
    sections = ["\n".join(_import_lines(group)) for group in groups if group]
    return "".join(f"{section}\n\n" for section in sections)


def _import_lines(group: dict[str, list[str]]) -> Iterator[str]:
    for statement in sorted(group, key=lambda line: (line.startswith("from"), line.lower())):
        names = sorted(group[statement], key=_member_order)
        line = statement + ", ".join(names)
        if len(line) > WIDTH:
            line = f"{statement}(\n" + "".join(f"    {name},\n" for name in names) + ")"
        yield line


def _member_order(name: str) -> tuple[int, str]:
    """Constants, then classes, then the rest."""
    kind = 0 if name.isupper() and len(name) > 1 else 1 if name[0].isupper() else 2
    return kind, name

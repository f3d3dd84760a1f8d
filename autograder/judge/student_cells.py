"""A student's cells, and the modules that they write, as statements.

Each text is taken apart once for all questions; what is kept is bounded by its length, as a
notebook is.
"""

import ast
import codecs
import io
import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import wraps
from inspect import cleandoc
from pathlib import Path
from tokenize import detect_encoding
from typing import TypeVar

from autograder.common.magics import File as Written
from autograder.common.magics import file_of  # also for `parse`, before there are walls around it
from autograder.common.syntax import parse, read, top_level_names
from autograder.common.trees import walk
from autograder.judge.expressions import text
from autograder.judge.statement import Statement, handed_to_writers

WRITES = re.compile(r"%%(?:writefile|file)\b")
ENCODINGS = ("utf-8", "utf-8-sig", "ascii", "iso8859-1", "iso8859-15", "cp1252")
MOST_KEPT = 500_000  # characters of texts whose statements are kept: a notebook that is read
EACH = 50  # characters that a text counts for, however short it is
EVALUATE_TYPES = ("register", "singledispatch", "beartype")
T = TypeVar("T")


def kept(make: Callable[[str], T]) -> Callable[[str], T]:
    """The same function of a text, which keeps what it made of the last ones."""
    found: dict[str, T] = {}
    size = 0

    @wraps(make)
    def get(text: str) -> T:
        """What was made of it, or is made now."""
        nonlocal size
        if text not in found:
            found[text] = make(text)
            size += len(text) + EACH
            while size > MOST_KEPT and len(found) > 1:
                oldest = next(iter(found))
                del found[oldest]
                size -= len(oldest) + EACH
        return found[text]

    return get


@dataclass(frozen=True)
class Taken:
    """A cell, taken apart."""

    statements: tuple["Statement", ...]
    written: tuple[tuple[str, tuple["Statement", ...]], ...] = ()  # modules that it writes to files
    more: bool = False  # whether there may be more in it than is read


@kept
def cell(source: str) -> Taken | None:
    """A cell's statements; None if it is no Python."""
    tree, more = read(source, aside=True)
    if tree is None:
        return Taken((), more=True) if more else None
    statements = _statements(_with_types(tree, source))
    if not any(statement.handed for statement in statements):
        return Taken(statements, more=more)
    texts = _written([node for node in walk(tree) if isinstance(node, ast.Call)])
    written = ((text.strip(), _defining(text)) for text in texts)
    return Taken(statements, tuple(one for one in written if one[1]), more)


@kept
def module(source: str) -> tuple[Statement, ...]:
    """A module's statements; none if it is no Python."""
    return _statements(_with_types(parse(source) or ast.Module([], []), source))


@dataclass(frozen=True)
class File:
    """A module that a cell writes."""

    name: str
    modules: frozenset[str]  # that it is a part of, by the names to import them
    statements: tuple[Statement, ...]  # none if its text cannot be read, or says nothing
    text: str
    is_dark: bool = False  # whether it cannot be read


@kept
def file(source: str) -> File | None:
    """The module that a cell is there to write."""
    found = module_written(source)
    if found is None:
        return None
    path, text = Path(found.path), module_text(found.text.encode("utf-8", "surrogatepass"))
    names = frozenset({*path.parent.parts, path.stem})
    is_dark = text is None or parse(text) is None
    return File(path.name, names, module(text or ""), found.text.strip(), is_dark)


def module_written(source: str) -> Written | None:
    """Where a cell is there to write a module, and its text; None if it is not."""
    found = file_of(source) if WRITES.search(source) else None
    return found if found and Path(found.path).suffix == ".py" else None


@kept
def texts_shown(source: str) -> tuple[str, ...]:
    """All texts that stand in a cell, written to a file or not, also as `dedent` makes them."""
    found = file_of(source) if WRITES.search(source) else None
    tree = read(source, aside=True)[0]
    values = [node.value for node in walk(tree) if isinstance(node, ast.Constant)] if tree else []
    texts = [found.text] if found else []
    texts += [one.decode("utf-8", "replace") for one in values if isinstance(one, bytes)]
    texts += [one for one in values if isinstance(one, str)]
    long = [text for text in texts if "\n" in text]
    return (*texts, *map(textwrap.dedent, long), *map(cleandoc, long))


def module_text(content: bytes) -> str | None:
    """A module's text in the encoding that it names; None if that is a rare one, or not its own."""
    content = content.replace(b"\r\n", b"\n").replace(b"\r", b"\n")  # before Python looks for one
    try:
        encoding, _ = detect_encoding(io.BytesIO(content).readline)
        return content.decode(encoding) if codecs.lookup(encoding).name in ENCODINGS else None
    except (SyntaxError, UnicodeDecodeError, LookupError):
        return None


def _with_types(tree: ast.Module, source: str) -> ast.Module:
    """Types that are given as texts are read like the rest where something may evaluate them.

    What calls something is read wherever it stands: another cell may hand it to who evaluates it.
    """
    everything = any(word in source for word in EVALUATE_TYPES)
    for node in walk(tree):
        for name in ("annotation", "returns"):
            given = getattr(node, name, None)
            if isinstance(given, ast.expr):
                setattr(node, name, _read_texts(given, everything))
    return tree


def _read_texts(given: ast.expr, everything: bool) -> ast.expr:
    """A type in which what a text says stands in the place of the text."""
    whole = ast.Expr(given)
    for node in walk(whole):
        for name, value in ast.iter_fields(node):
            if isinstance(value, ast.expr):
                setattr(node, name, _read_text(value, everything))
            elif isinstance(value, list):
                value[:] = [
                    _read_text(part, everything) if isinstance(part, ast.expr) else part
                    for part in value
                ]
    return whole.value


def _read_text(given: ast.expr, everything: bool) -> ast.expr:
    spelt = text(given)
    if spelt is None or not (everything or "(" in spelt):
        return given
    body = (parse(spelt) or ast.Module([], [])).body
    if not body or not isinstance(body[0], ast.Expr):
        return given
    for part in walk(body[0]):  # so that its lines are those of the cell
        ast.copy_location(part, given)
    return body[0].value


def _statements(tree: ast.Module) -> tuple[Statement, ...]:
    return tuple(map(Statement, tree.body))


def _defining(text: str) -> tuple[Statement, ...]:
    """The statements of a text that could be a module: it defines something."""
    tree = parse(text)
    return _statements(tree) if tree is not None and top_level_names(tree) else ()


def _written(calls: Sequence[ast.Call]) -> Iterator[str]:
    """Texts that stand in a cell as they are and are written to files."""
    for given in handed_to_writers(calls):
        if (spelt := text(given)) is not None:
            yield spelt
            continue
        for part in walk(given):
            value = part.value if isinstance(part, ast.Constant) else None
            if isinstance(value, bytes):
                yield value.decode("utf-8", "replace")
            elif isinstance(value, str):
                yield value

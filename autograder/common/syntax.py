"""What a cell's statements do, found without running it: what they bind, change and wait for.

The text is often a student's and is read in trusted processes: whatever it is, each function here
gives one of its documented results, in a time and memory that a cell's length bounds.
"""

import ast
from collections.abc import Iterator, Sequence, Set
from functools import lru_cache
from typing import NamedTuple

from autograder.common.plain_python import (
    LINE,
    TooDeep,
    parsed,
    tree_of,
    without_magic_lines,
)
from autograder.common.trees import children, walk

IMPORTS = (ast.Import, ast.ImportFrom)
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
INNER = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda


def parse(source: str) -> ast.Module | None:
    """The syntax tree of what a notebook runs for a cell; None if it is no Python.

    Magics that run code are replaced by that code, all others do nothing.
    """
    return read(source)[0]


def read(source: str, *, aside: bool = False) -> tuple[ast.Module | None, bool]:
    """The same, and whether there may be more in the cell than is read.

    Args:
        source: the cell.
        aside: give what magics do in passing, too: expressions in {}, files that they write.
    """
    try:
        found = tree_of(source)
        if found is not None:
            return found, False
        from autograder.common import magics  # and IPython, which takes its time

        return magics.read(source, aside=aside), False
    except (TooDeep, RecursionError):
        return parsed(without_magic_lines(source)), True


def top_level_names(tree: ast.Module) -> set[str]:
    """Names that a cell binds for the cells below it; any text, however deep, is read."""
    found: set[str] = set()
    todo: list[ast.AST] = [tree]
    while todo:
        node = todo.pop()
        found.update(binds(node))
        if not isinstance(node, SCOPES + INNER):
            todo.extend(children(node))
    return found


@lru_cache(maxsize=500)
def touched(source: str) -> frozenset[str]:
    """Names that a cell binds or deletes at its top level."""
    tree = parse(source)
    if tree is None:
        return frozenset()
    deleted = {
        target.id
        for node in tree.body
        if isinstance(node, ast.Delete)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    return frozenset(top_level_names(tree) | deleted)


ACTING = (ast.Call, ast.Global, ast.Await, ast.Delete, ast.With, ast.AugAssign)


@lru_cache(maxsize=500)
def acts(source: str) -> bool:
    """Whether a cell may do more than define what belongs to it, as far as its text tells.

    Whatever it calls may change what all cells share, and so may setting a part of something,
    taking a name from inside a function, or importing names that nobody can foresee.
    """
    tree = parse(source)
    if tree is None:
        return False
    todo: list[ast.AST] = [*tree.body]
    while todo:
        node = todo.pop()
        if isinstance(node, ACTING):
            return True
        if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
            return True
        is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        unforeseen = any(name == "*" or name.startswith("__") for name in binds(node))
        if unforeseen and not is_function:  # a method is called `__init__`
            return True
        if is_function or isinstance(node, ast.Lambda):
            inside = walk(node)
            if any(isinstance(part, ast.Global) for part in inside):
                return True
            todo.extend(around_body(node))
        else:
            todo.extend(children(node))
    return False


@lru_cache(maxsize=500)
def altered(source: str) -> frozenset[str]:
    """Names of whose values a cell sets, deletes or calls a part: `a` in `a[0] = 1`, `a.add(2)`."""
    return _altered(parse(source) or ast.Module([], []))


def _altered(tree: ast.AST) -> frozenset[str]:
    found: set[str] = set()
    for node in walk(tree):
        if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
            found.add(_root(node))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            found.add(_root(node.func))
    return frozenset(found - {""})


def _root(node: ast.AST) -> str:
    """The name with which an expression like `a.b[0].c()` begins; empty if it is another."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


class Made(NamedTuple):
    """What one statement of a cell makes."""

    text: str
    names: frozenset[str]  # that it binds, or of whose values it changes parts
    lines: range  # of the cell, from 0
    is_import: bool


@lru_cache(maxsize=500)
def made_by_statement(source: str) -> tuple[Made, ...]:
    """The statements of a cell; none if it is no Python."""
    lines, tree = LINE.split(source), parse(source) or ast.Module([], [])
    found: list[Made] = []
    for node in tree.body:
        first = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))])
        where = range(first - 1, node.end_lineno or first)
        names = _altered(node) | top_level_names(ast.Module([node], []))
        text = "\n".join(lines[where.start : where.stop]).strip()
        found.append(Made(text, names, where, isinstance(node, ast.Import | ast.ImportFrom)))
    return tuple(found)


def without_statements(source: str, names: Set[str]) -> str:
    """A cell without the statements that make any of these names; empty if nothing is left."""
    found = made_by_statement(source)
    out = {number for one in found if one.names & names for number in one.lines}
    if not out:
        return source
    left = any(not out.intersection(one.lines) for one in found)
    lines = ("" if number in out else line for number, line in enumerate(LINE.split(source)))
    return "\n".join(lines) if left else ""


BINDING = frozenset(  # kinds of nodes that may bind names themselves
    (
        *(ast.Name, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import),
        *(ast.ImportFrom, ast.ExceptHandler, ast.MatchAs, ast.MatchStar, ast.MatchMapping),
    )
)


def binds(node: ast.AST) -> Iterator[str]:
    """Names that this node itself binds."""
    if isinstance(node, ast.Name):
        if isinstance(node.ctx, ast.Store):
            yield node.id
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Import | ast.ImportFrom):
        for alias in node.names:
            yield alias.asname or alias.name.partition(".")[0]
    elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar):
        if node.name:
            yield node.name
    elif isinstance(node, ast.MatchMapping) and node.rest:
        yield node.rest


def awaits(tree: ast.Module) -> bool:
    """Whether a cell waits at its top level, which only a notebook may do."""
    todo: list[ast.AST] = [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Await | ast.AsyncFor | ast.AsyncWith):
            return True
        if not isinstance(node, SCOPES):
            todo.extend(children(node))
    return False


def around_body(node: Definition) -> Sequence[ast.AST]:
    """The parts of a definition that run where it stands."""
    if isinstance(node, ast.ClassDef):
        return [*node.decorator_list, *node.bases, *node.keywords]
    values = [*node.args.defaults, *(value for value in node.args.kw_defaults if value)]
    if isinstance(node, ast.Lambda):
        return values
    said = [*(one.annotation for one in arguments_of(node)), node.returns]
    return [*node.decorator_list, *values, *filter(None, said)]


def arguments_of(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> list[ast.arg]:
    """All parameters of a function."""
    of = node.args
    named = [*of.posonlyargs, *of.args, *of.kwonlyargs]
    return [*named, *filter(None, [of.vararg, of.kwarg])]

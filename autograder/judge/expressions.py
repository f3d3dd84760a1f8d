"""What expressions say as they stand: dotted names, spelt-out texts, and what names are given.

The text is often a student's: what names stand for is followed within bounds.
"""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, TypeGuard

ASSIGNING = (ast.Assign, ast.For, ast.AnnAssign, ast.NamedExpr)
MOST_DOTS = 20  # of a dotted name that is followed
MOST_ORIGINS = 100  # things that one name is taken to stand for
MOST_FOLLOWED = 100_000  # characters of what names are found to stand for, besides imports


class Dotted(NamedTuple):
    """A dotted name: the name that it begins with, and what of it; perhaps nothing."""

    root: str
    tail: str

    def of(self, origin: str) -> str:
        """Its full name if the root stands for this."""
        return f"{origin}.{self.tail}" if self.tail else origin


class Bindings(NamedTuple):
    """Where names may get a library's things from."""

    imports: tuple[tuple[str, str], ...]  # a name, and what is imported under it
    assigned: tuple[tuple[str, Dotted], ...]  # a name, and the dotted name that it is set to


class TooMuch(Exception):
    """Names stand for more things than are followed."""


def bindings(nodes: Iterable[ast.AST]) -> Bindings:
    """What nodes import, and the names that they give to something."""
    imports: list[tuple[str, str]] = []
    assigned: list[tuple[str, Dotted]] = []
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.partition(".")[0]
                imports.append((alias.asname or first, alias.name if alias.asname else first))
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                origin = f"{node.module or ''}.{alias.name}"
                imports.append((alias.asname or alias.name, origin))
        elif isinstance(node, ASSIGNING):
            assigned += [(name, one) for name, value in _assigned(node) if (one := dotted(value))]
    return Bindings(tuple(imports), tuple(assigned))


def aliases(places: Iterable[Bindings]) -> dict[str, set[str]]:
    """What imported names stand for, and names that such a name was assigned to.

    Raises TooMuch where that is more than is followed: `a = a.b` and `a = a.c` double it.
    """
    found: dict[str, set[str]] = {}
    assigned: list[tuple[str, Dotted]] = []
    for place in places:
        assigned += place.assigned
        for name, origin in place.imports:
            found.setdefault(name, set()).add(origin)
    if any(len(origins) > MOST_ORIGINS for origins in found.values()):
        raise TooMuch
    seen: dict[tuple[str, Dotted], int] = {}
    size = 0
    for _ in range(4):  # a chain of assignments longer than this is left to the run
        before = size
        for pair in assigned:
            name, value = pair
            origins = found.get(value.root)
            if not origins or seen.get(pair) == len(origins):
                continue
            seen[pair] = len(origins)
            new = {value.of(origin) for origin in origins} - found.setdefault(name, set())
            size += sum(map(len, new)) + len(new)
            found[name] |= new
            if size > MOST_FOLLOWED or len(found[name]) > MOST_ORIGINS:
                raise TooMuch
        if size == before:
            break
    return found


def followed(node: ast.AST) -> set[int]:
    """ids of the values in an assignment that go to plain names, and to nothing else."""
    targets = getattr(node, "targets", None) or [getattr(node, "target", None)]
    parts = [p for t in targets for p in (t.elts if isinstance(t, ast.Tuple) else [t])]
    if not all(isinstance(part, ast.Name) for part in parts):
        return set()
    return {id(value) for _, value in _assigned(node)}


def _assigned(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Names that are given the value of a name or attribute."""
    if isinstance(node, ast.Assign):
        pairs = [(target, node.value) for target in node.targets]
    elif isinstance(node, ast.For) and isinstance(node.iter, ast.Tuple | ast.List):
        pairs = [(node.target, value) for value in node.iter.elts]
    elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
        pairs = [(node.target, node.value)]
    else:
        return
    for target, value in pairs:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            inner = zip(target.elts, value.elts, strict=False)
        else:
            inner = [(target, value)]
        for one, given in inner:
            if isinstance(one, ast.Name) and isinstance(given, ast.Name | ast.Attribute):
                yield one.id, given


def dotted(node: ast.AST) -> Dotted | None:
    """The dotted name that this is; None if it is something else, or longer than is followed."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or len(parts) > MOST_DOTS:
        return None
    return Dotted(node.id, ".".join(reversed(parts)))


def last_part(node: ast.AST) -> str:
    """The last part of a dotted name."""
    return getattr(node, "attr", getattr(node, "id", ""))


def tuple_fields(node: ast.Call) -> frozenset[str]:
    """The fields that a call of `namedtuple` names."""
    if called(node) != "namedtuple" or len(node.args) < 2:
        return frozenset()
    spelt = text(node.args[1])
    parts = getattr(node.args[1], "elts", [])
    names = (text(part) or "" for part in parts) if spelt is None else re.split(r"[\s,]+", spelt)
    return frozenset(names)


def begin(node: ast.AST) -> ast.Name | None:
    """The name that an attribute or entry belongs to."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node if isinstance(node, ast.Name) else None


def is_getattr(node: ast.Call) -> bool:
    """Whether this calls `getattr` by its name."""
    return getattr(node.func, "id", "") == "getattr"


def called(node: ast.Call) -> str:
    """The last part of the name that is called."""
    return getattr(node.func, "attr", getattr(node.func, "id", ""))


def text(node: ast.expr, depth: int = 50) -> str | None:
    """The string that an expression of constants spells; None if it is computed otherwise."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and depth:
        left, right = text(node.left, depth - 1), text(node.right, depth - 1)
        return None if left is None or right is None else left + right
    if isinstance(node, ast.JoinedStr):
        parts = [value.value if isinstance(value, ast.Constant) else None for value in node.values]
        return None if None in parts else "".join(map(str, parts))
    return None


def prefix(node: ast.expr) -> str:
    """The constant that a computed text begins with; or empty."""
    if isinstance(node, ast.JoinedStr) and node.values:
        return text(node.values[0]) or ""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):  # something may stand at a %
        return (text(node.left) or "").partition("%")[0]
    if filled := template(node):
        return filled.partition("{")[0]
    return text(node.left) or "" if _is_sum(node) else ""


def suffix(node: ast.expr) -> str:
    """The constant that a computed text ends with; or empty."""
    if isinstance(node, ast.JoinedStr) and node.values:
        return text(node.values[-1]) or ""
    return text(node.right) or "" if _is_sum(node) else ""


def template(node: ast.expr) -> str | None:
    """The text that `format` is asked to fill in; None if this is something else."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    return text(node.func.value) if node.func.attr == "format" else None


def _is_sum(node: ast.expr) -> TypeGuard[ast.BinOp]:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add)


def given_pairs(target: ast.expr, value: ast.expr | None) -> list[tuple[ast.Name, ast.expr]]:
    """The names in a target, each with what it is given; none of those where it does not show."""
    if value is None:
        return []
    if isinstance(target, ast.Name):
        return [(target, value)]
    parts, values = getattr(target, "elts", []), getattr(value, "elts", [])
    starred = any(isinstance(part, ast.Starred) for part in (*parts, *values))
    if starred or len(parts) != len(values) or isinstance(value, ast.Set):
        return []
    return [pair for two in zip(parts, values, strict=True) for pair in given_pairs(*two)]


def each_pair(target: ast.expr, given: ast.expr) -> list[tuple[ast.Name, ast.expr]]:
    """The same for a loop over what is written out, also through `zip` and `enumerate`."""
    parts = getattr(target, "elts", [])
    if isinstance(given, ast.Tuple | ast.List | ast.Set):
        found = [given_pairs(target, value) for value in given.elts]
        starred = any(isinstance(value, ast.Starred) for value in given.elts)
        return [] if starred or not all(found) else [pair for one in found for pair in one]
    if not isinstance(given, ast.Call) or isinstance(given.func, ast.Attribute):
        return []
    if called(given) == "enumerate" and len(parts) == 2 and given.args:
        return each_pair(parts[1], given.args[0])
    if called(given) == "zip" and len(parts) == len(given.args):
        return [pair for two in zip(parts, given.args, strict=True) for pair in each_pair(*two)]
    return []


def is_namespace(node: ast.expr) -> bool:
    """Whether this is the dictionary of names of something: `vars(x)` or `x.__dict__`."""
    if isinstance(node, ast.Call):
        return getattr(node.func, "id", "") == "vars" and len(node.args) == 1
    return isinstance(node, ast.Attribute) and node.attr == "__dict__"


def origins_of(node: ast.expr, aliases: Mapping[str, set[str]]) -> set[str]:
    """Full dotted names that an expression may stand for; empty if its root was not imported."""
    name = dotted(node)
    return {name.of(origin) for origin in aliases.get(name.root, ())} if name else set()


def named_parts(node: ast.Call) -> list[str] | None:
    """The names that `attrgetter` or `methodcaller` are given; None if they do not show."""
    texts = [text(given) for given in node.args]
    if called(node) == "methodcaller":
        texts = texts[:1]
    shown = [part for text in texts if text is not None for part in text.split(".")]
    return shown if texts and None not in texts else None

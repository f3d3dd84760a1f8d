"""What the statements of a notebook hold that rules ask for, found once for all of its questions.

The text is often a student's: what is remembered of it is bounded by its length, as a notebook is.
"""

import ast
import builtins
import codecs
import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, wraps
from pathlib import Path
from tokenize import detect_encoding
from typing import NamedTuple, TypeVar

from autograder.common.magics import file_of  # also for `parse`, before there are walls around it
from autograder.common.syntax import parse, read, top_level_names

SETTERS = frozenset({"setattr", "delattr", "__setattr__", "__delattr__"})
CHANGERS = frozenset({"update", "setdefault", "pop", "clear", "__setitem__", "__delitem__"})
WRITES = re.compile(r"%%(?:writefile|file)\b")
ENCODINGS = ("utf-8", "utf-8-sig", "ascii", "iso8859-1", "iso8859-15", "cp1252")
WRITERS = frozenset({"write", "write_text", "write_bytes", "writelines"})
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
CLASSES = (ast.ClassDef,)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
INNER = (*FUNCTIONS, ast.Lambda, *COMPREHENSIONS)  # in which names may be their own
ASSIGNING = (ast.Assign, ast.For, ast.AnnAssign, ast.NamedExpr)
MOST_DOTS = 20  # of a dotted name that is followed
MOST_ORIGINS = 100  # things that one name is taken to stand for
MOST_FOLLOWED = 100_000  # characters of what names are found to stand for, besides imports
MOST_KEPT = 500_000  # characters of texts whose statements are kept: a notebook that is read
# as the base of a class: nobody forbids their methods
HARMLESS = ("object", "Module", "ABC", "NamedTuple", "Protocol")
EACH = 50  # characters that a text counts for, however short it is
Import = ast.Import | ast.ImportFrom


T = TypeVar("T")
Node = TypeVar("Node", bound=ast.AST)


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


@dataclass(frozen=True)
class Taken:
    """A cell, taken apart."""

    statements: tuple["Statement", ...]
    written: tuple["Statement", ...] = ()  # of modules whose texts it writes to files
    more: bool = False  # whether there may be more in it than is read


def _is_constant(node: ast.expr) -> bool:
    """Whether this is written out: nothing that is called later can be hidden in it."""
    if isinstance(node, ast.Tuple | ast.List):
        return all(map(_is_constant, node.elts))
    return isinstance(node.operand if isinstance(node, ast.UnaryOp) else node, ast.Constant)


class Statement:
    """One statement at the top level of a cell or module."""

    def __init__(self, node: ast.stmt) -> None:
        """Nothing of it is looked at before it is asked for."""
        self.tree = ast.Module([node], [])

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All of it; what encloses comes before what it holds."""
        found: list[ast.AST] = [self.tree]
        for node in found:
            found += _children(node)  # and is gone through as it grows
        return found

    @cached_property
    def _by_kind(self) -> dict[type, list]:
        found: dict[type, list] = {}
        for node in self.nodes:
            found.setdefault(type(node), []).append(node)
        return found

    def of_kind(self, *kinds: type[Node]) -> list[Node]:
        """Its nodes of these kinds."""
        return [node for kind in kinds for node in self._by_kind.get(kind, ())]

    # --- names ---------------------------------------------------------------------------------

    @cached_property
    def top_level(self) -> set[str]:
        """Names that it binds for the cells below it."""
        return top_level_names(self.tree)

    @cached_property
    def names(self) -> frozenset[str]:
        """What it defines or changes."""
        found = self.top_level.union(*(node.names for node in self.of_kind(ast.Global)))
        parts = [*self._parts_set]
        calls = (c for c in self.of_kind(ast.Call) if getattr(c.func, "id", "") == "setattr")
        parts += [one for call in calls for one in call.args[:1]]
        roots = (begin(part) for part in parts)
        return frozenset(found.union(r.id for r in roots if r is not None and id(r) in self.free))

    @cached_property
    def binds(self) -> frozenset[str]:
        """Names that it surely gives another meaning, if it runs to its end."""
        (node,) = self.tree.body
        if isinstance(node, FUNCTIONS + CLASSES):
            return frozenset({node.name})
        if isinstance(node, ast.Import | ast.ImportFrom):
            return frozenset(self.top_level - {"*"})
        targets = getattr(node, "targets", None) or [getattr(node, "target", None)]
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            return frozenset()
        parts = (p for t in targets if t for p in (t.elts if isinstance(t, ast.Tuple) else [t]))
        return frozenset(part.id for part in parts if isinstance(part, ast.Name))

    @cached_property
    def own(self) -> frozenset[str]:
        """Names that are no builtin's, of its top level."""
        return frozenset(name for name in self.top_level if not hasattr(builtins, name))

    @cached_property
    def defines(self) -> bool:
        """Whether there is a function in it, wherever."""
        return bool(self.of_kind(*FUNCTIONS, ast.Lambda))

    @cached_property
    def loses(self) -> frozenset[str]:
        """Names that it deletes, also where an exception's name ends."""
        names = (node.id for node in self.of_kind(ast.Name) if isinstance(node.ctx, ast.Del))
        return frozenset((*names, *(node.name or "" for node in self.of_kind(ast.ExceptHandler))))

    @cached_property
    def plain_class(self) -> ast.ClassDef | None:
        """The class that it is, if nothing but its bases can give it what it does not show."""
        (node,) = self.tree.body
        if not isinstance(node, ast.ClassDef) or node.keywords:
            return None
        makers = (one.func if isinstance(one, ast.Call) else one for one in node.decorator_list)
        return node if all(_last(maker) == "dataclass" for maker in makers) else None

    @cached_property
    def tuple_class(self) -> frozenset[str]:
        """The fields of the tuples whose class it makes by `namedtuple`."""
        (node,) = self.tree.body
        value = node.value if isinstance(node, ast.Assign) else None
        return _fields(value) if isinstance(value, ast.Call) else frozenset()

    @cached_property
    def fields(self) -> frozenset[str]:
        """Members of classes, of named tuples, and what calls are handed by a name."""
        calls = self.of_kind(ast.Call)
        handed = {word.arg for call in calls for word in call.keywords if word.arg}
        return self.members.union(handed, *map(_fields, calls))

    @cached_property
    def givens(self) -> dict[str, list[ast.expr | None]]:
        """What names are set to, in any function of it; None for what does not show."""
        shown: dict[int, list[ast.expr]] = {}
        for node in self.of_kind(ast.Assign, ast.AnnAssign, ast.NamedExpr):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            pairs = (pair for target in targets for pair in _pairs(target, node.value))
            for name, value in pairs:
                shown.setdefault(id(name), []).append(value)
        for node in self.of_kind(ast.For, ast.comprehension):
            for name, value in _each(node.target, node.iter):
                shown.setdefault(id(name), []).append(value)
        found: dict[str, list[ast.expr | None]] = {}
        for node in self.of_kind(ast.Name):
            if not isinstance(node.ctx, ast.Load):
                found.setdefault(node.id, []).extend(shown.get(id(node), [None]))
        for name in self._bound_otherwise:
            found.setdefault(name, []).append(None)
        return found

    @property
    def _bound_otherwise(self) -> Iterator[str]:
        """Names that something else than a node for a name binds."""
        yield from (node.arg for node in self.of_kind(ast.arg))
        yield from (node.name for node in self.of_kind(*FUNCTIONS, *CLASSES))
        for node in self.of_kind(ast.alias):
            yield node.asname or node.name.partition(".")[0]
        named = self.of_kind(ast.ExceptHandler, ast.MatchAs, ast.MatchStar)
        yield from (node.name for node in named if node.name)
        yield from (node.rest for node in self.of_kind(ast.MatchMapping) if node.rest)

    @cached_property
    def members(self) -> frozenset[str]:
        """Methods and attributes of classes."""
        parts = self.of_kind(ast.Attribute)
        found = {node.attr for node in parts if isinstance(node.ctx, ast.Store)}
        bodies = (ast.Module(node.body, []) for node in self.of_kind(ast.ClassDef))
        return frozenset(found.union(*map(top_level_names, bodies)))

    @cached_property
    def free(self) -> dict[int, bool]:
        """ids of the name nodes that no function or comprehension around them binds.

        With each, whether it is read when the statement runs, and not when a function is called.
        """
        return _free(self.tree, bool(self.of_kind(ast.Global)))

    @cached_property
    def uses(self) -> dict[str, bool]:
        """Names that it takes from the cell around it; whether one is read when it runs."""
        found: dict[str, bool] = {}
        for node in self.of_kind(ast.Name):
            if id(node) in self.free:
                found[node.id] = found.get(node.id, False) | self.free[id(node)]
        shared = {name for node in self.of_kind(ast.Global) for name in node.names}
        for node in self.of_kind(ast.AugAssign):  # is read as well
            if isinstance(node.target, ast.Name) and node.target.id in self.top_level | shared:
                found[node.target.id] = True
        return found

    # --- what a search looks at ----------------------------------------------------------------

    @cached_property
    def read(self) -> frozenset[str]:
        """All names that it reads."""
        nodes = self.of_kind(ast.Name)
        return frozenset(node.id for node in nodes if isinstance(node.ctx, ast.Load))

    @cached_property
    def attributes(self) -> frozenset[str]:
        """All attributes that it reads, and those that a pattern takes from an object."""
        nodes = self.of_kind(ast.Attribute)
        found = {node.attr for node in nodes if isinstance(node.ctx, ast.Load)}
        return frozenset(found.union(*(n.kwd_attrs for n in self.of_kind(ast.MatchClass))))

    @cached_property
    def sets(self) -> frozenset[str]:
        """All attributes that it sets or deletes."""
        nodes = self.of_kind(ast.Attribute)
        return frozenset(node.attr for node in nodes if not isinstance(node.ctx, ast.Load))

    @cached_property
    def dotted(self) -> frozenset[Dotted]:
        """All dotted names of more than one part."""
        found = map(dotted, self.of_kind(ast.Attribute))
        return frozenset(one for one in found if one is not None)

    @cached_property
    def getattrs(self) -> list[ast.Call]:
        """Calls of `getattr`."""
        return [call for call in self.of_kind(ast.Call) if is_getattr(call)]

    # --- libraries and modules -----------------------------------------------------------------

    @cached_property
    def bindings(self) -> Bindings:
        """What it imports, and the names that it gives to something."""
        return bindings(self.nodes)

    @cached_property
    def changes(self) -> list[ast.expr]:
        """Nodes that may set something inside a library, and no plain setting."""
        calls = self.of_kind(ast.Call)
        return [*self._parts_set, *(call for call in calls if called(call) in SETTERS | CHANGERS)]

    @cached_property
    def _parts_set(self) -> list[ast.expr]:
        """Attributes and items that it gives something, but for what is written out."""
        written_out = {
            id(target)
            for node in self.of_kind(ast.Assign)
            if _is_constant(node.value)
            for target in node.targets
        }
        parts = self.of_kind(ast.Attribute, ast.Subscript)
        return [n for n in parts if not isinstance(n.ctx, ast.Load) and id(n) not in written_out]

    @cached_property
    def imports(self) -> list[Import]:
        """Its imports, wherever they stand."""
        return self.of_kind(ast.Import, ast.ImportFrom)

    @cached_property
    def packages(self) -> frozenset[str]:
        """First parts of the modules that it imports, not by a dot."""
        names = (alias.name for node in self.of_kind(ast.Import) for alias in node.names)
        froms = (f"{n.module}" for n in self.of_kind(ast.ImportFrom) if not n.level)
        return frozenset(name.partition(".")[0] for name in (*names, *froms))

    @cached_property
    def files(self) -> frozenset[str]:
        """Modules whose files its texts name."""
        texts = (node.value for node in self.of_kind(ast.Constant))
        return frozenset(Path(t).stem for t in texts if isinstance(t, str) and _is_file(t))

    @cached_property
    def handed(self) -> list[ast.expr]:
        """The arguments of all calls that may write a file."""
        return _handed_to_writers(self.of_kind(ast.Call))


@kept
def cell(source: str) -> Taken | None:
    """A cell's statements; None if it is no Python."""
    tree, more = read(source, aside=True)
    if tree is None:
        return Taken((), more=True) if more else None
    statements = _statements(_with_types(tree, source))
    if not any(statement.handed for statement in statements):
        return Taken(statements, more=more)
    texts = _written([node for node in ast.walk(tree) if isinstance(node, ast.Call)])
    return Taken(statements, tuple(one for text in texts for one in _defining(text)), more)


@kept
def module(source: str) -> tuple[Statement, ...]:
    """A module's statements; none if it is no Python."""
    return _statements(_with_types(parse(source) or ast.Module([], []), source))


@dataclass(frozen=True)
class File:
    """A module that a cell writes."""

    name: str
    modules: frozenset[str]  # that it is a part of, by the names to import them
    statements: tuple[Statement, ...]  # none if its text cannot be read


@kept
def file(source: str) -> File | None:
    """The module that a cell is there to write."""
    if not WRITES.search(source):
        return None
    found = file_of(source)
    path = Path(found.path) if found else Path()
    if found is None or path.suffix != ".py":
        return None
    text = module_text(found.text.encode("utf-8", "surrogatepass"))
    return File(path.name, frozenset({*path.parent.parts, path.stem}), module(text or ""))


def module_text(content: bytes) -> str | None:
    """A module's text in the encoding that it names; None if that is a rare one, or not its own."""
    try:
        encoding, _ = detect_encoding(io.BytesIO(content).readline)
        return content.decode(encoding) if codecs.lookup(encoding).name in ENCODINGS else None
    except (SyntaxError, UnicodeDecodeError, LookupError):
        return None


def _with_types(tree: ast.Module, source: str) -> ast.Module:
    """Types that are given as texts are read like the rest where something may evaluate them."""
    if "register" not in source and "singledispatch" not in source:
        return tree
    for node in ast.walk(tree):
        for name in ("annotation", "returns"):
            given = getattr(node, name, None)
            spelt = text(given) if isinstance(given, ast.expr) else None
            body = (parse(spelt) or ast.Module([], [])).body if spelt else []
            if body and isinstance(body[0], ast.Expr):
                setattr(node, name, ast.copy_location(body[0].value, given))  # type: ignore
    return tree


def _statements(tree: ast.Module) -> tuple[Statement, ...]:
    return tuple(map(Statement, tree.body))


def _defining(text: str) -> tuple[Statement, ...]:
    """The statements of a text that could be a module: it defines something."""
    tree = parse(text)
    return _statements(tree) if tree is not None and top_level_names(tree) else ()


def _written(calls: Sequence[ast.Call]) -> Iterator[str]:
    """Texts that stand in a cell as they are and are written to files."""
    for given in _handed_to_writers(calls):
        if (spelt := text(given)) is not None:
            yield spelt
            continue
        for part in ast.walk(given):
            value = part.value if isinstance(part, ast.Constant) else None
            if isinstance(value, bytes):
                yield value.decode("utf-8", "replace")
            elif isinstance(value, str):
                yield value


def _handed_to_writers(calls: Iterable[ast.Call]) -> list[ast.expr]:
    writes = (call for call in calls if getattr(call.func, "attr", "") in WRITERS)
    return [given for call in writes for given in call.args]


def _is_file(text: str) -> bool:
    """Whether a constant may be the name of a module's file."""
    return text.endswith(".py") and " " not in text


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


def _last(node: ast.AST) -> str:
    """The last part of a dotted name."""
    return getattr(node, "attr", getattr(node, "id", ""))


def _fields(node: ast.Call) -> frozenset[str]:
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
    return text(node.left) or "" if isinstance(node, ast.BinOp) else ""


def _pairs(target: ast.expr, value: ast.expr | None) -> list[tuple[ast.Name, ast.expr]]:
    """The names in a target, each with what it is given; none of those where it does not show."""
    if value is None:
        return []
    if isinstance(target, ast.Name):
        return [(target, value)]
    parts, values = getattr(target, "elts", []), getattr(value, "elts", [])
    starred = any(isinstance(part, ast.Starred) for part in (*parts, *values))
    if starred or len(parts) != len(values) or isinstance(value, ast.Set):
        return []
    return [pair for two in zip(parts, values, strict=True) for pair in _pairs(*two)]


def _each(target: ast.expr, given: ast.expr) -> list[tuple[ast.Name, ast.expr]]:
    """The same for a loop over what is written out, also through `zip` and `enumerate`."""
    parts = getattr(target, "elts", [])
    if isinstance(given, ast.Tuple | ast.List | ast.Set):
        found = [_pairs(target, value) for value in given.elts]
        starred = any(isinstance(value, ast.Starred) for value in given.elts)
        return [] if starred or not all(found) else [pair for one in found for pair in one]
    if not isinstance(given, ast.Call) or isinstance(given.func, ast.Attribute):
        return []
    if called(given) == "enumerate" and len(parts) == 2 and given.args:
        return _each(parts[1], given.args[0])
    if called(given) == "zip" and len(parts) == len(given.args):
        return [pair for two in zip(parts, given.args, strict=True) for pair in _each(*two)]
    return []


def _children(node: ast.AST) -> list[ast.AST]:
    """The parts of a node; not whether it reads or sets something."""
    found: list[ast.AST] = []
    for name in node._fields:
        value = getattr(node, name, None)
        if isinstance(value, list):
            found += [part for part in value if isinstance(part, ast.AST)]
        elif isinstance(value, ast.AST) and name != "ctx":
            found.append(value)
    return found


def _free(tree: ast.Module, shares: bool) -> dict[int, bool]:
    """ids of the name nodes that nothing around them binds; whether each is read at once."""
    found: dict[int, bool] = {}
    todo: list[tuple[ast.AST, frozenset[str], bool]] = [(tree, frozenset(), True)]
    while todo:
        node, local, now = todo.pop()
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Load) and node.id not in local:
                found[id(node)] = now
            continue
        children = _children(node)
        if not isinstance(node, INNER):
            own = _handed_on(node) if isinstance(node, ast.ClassDef) else ()
            todo += [(part, local, now) for part in children if id(part) not in own]
            continue
        if isinstance(node, COMPREHENSIONS):
            first = node.generators[0]
            todo.append((first.iter, local, now))
            inside = [part for part in children if part is not first]
            inside += [first.target, *first.ifs]
            bound = _targets(node.generators)
        else:
            inside, bound = _scope(node, shares)
            inner = {id(child) for child in inside}
            todo += [(part, local, now) for part in children if id(part) not in inner]
            now = False
        todo += [(part, local | bound, now) for part in inside]
    return found


def _handed_on(node: ast.ClassDef) -> frozenset[int]:
    """Statements of a class that give a function of its own, written above, another name."""
    found: set[int] = set()
    defined: set[str] = set()
    for part in node.body:
        if isinstance(part, FUNCTIONS):
            defined.add(part.name)
        elif isinstance(part, ast.Assign) and isinstance(part.value, ast.Name):
            found |= {id(part)} if part.value.id in defined else set()
    return frozenset(found)


def _scope(
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, shares: bool
) -> tuple[Sequence[ast.AST], frozenset[str]]:
    """The children of a function that have a scope of their own, and the names bound in it."""
    if isinstance(node, FUNCTIONS):
        body = ast.Module(list(node.body), [])
        given = _parameters(node.args)
        shared = {name for part in node.body for name in _shared(part)} if shares else set()
        return node.body, frozenset((top_level_names(body) | given) - shared)
    return [node.body], _parameters(node.args)


def _parameters(given: ast.arguments) -> frozenset[str]:
    """A function's own parameters, not those of a lambda among its defaults."""
    parts = ast.iter_child_nodes(given)
    return frozenset(part.arg for part in parts if isinstance(part, ast.arg))


def _targets(generators: Sequence[ast.comprehension]) -> frozenset[str]:
    parts = (part for generator in generators for part in ast.walk(generator.target))
    names = (part for part in parts if isinstance(part, ast.Name))
    return frozenset(name.id for name in names if isinstance(name.ctx, ast.Store))


def _shared(node: ast.AST) -> Iterator[str]:
    """Names that a statement declares to be those of the cell."""
    for part in ast.walk(node):
        if isinstance(part, ast.Global):
            yield from part.names

"""What a cell's text defines and what it needs, found without running it.

The text is often a student's and is read in trusted processes: whatever it is, each function here
gives one of its documented results, in a time and memory that a cell's length bounds.
"""

import ast
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal, NamedTuple

MAGIC = re.compile(r"(?P<indent>\s*+)(?P<target>[\w.,\s]+=\s*)?[%!?](?!=)")
TIMERS = re.compile(r"\s*+%{1,2}(time|timeit|prun|capture)\b(?P<rest>.*)")
LINE = re.compile(r"\r\n?|\n")
LONGEST = 200_000  # characters of a text that is read as Python
# Python's parser builds "a", "a.b", "a.b.c", ... for an import, which has no bound of its own.
GAP = r"[ \t\f]*+(?:\\(?:\r\n?|\n)[ \t\f]*+)*+"
DOTTED = re.compile(rf"(?<!\w)(?:\w++{GAP}\.{GAP})++")
MOST_DOTS = 200
PIECE = re.compile(  # of a line, as far as it says whether the next one goes on with it
    r"""(?P<comment>\#.*)|(?P<triple>\"{3}|'{3})|"(?:\\.|[^"\\])*+"?|'(?:\\.|[^'\\])*+'?"""
    r"""|(?P<open>[(\[{])|(?P<close>[)\]}])|(?P<goes_on>\\$)"""
)
IMPORTS = (ast.Import, ast.ImportFrom)
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
INNER = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


@dataclass(frozen=True)
class Facts:
    """Names at a cell's top level."""

    bound: frozenset[str]  # that it defines
    needed: frozenset[str]  # that it reads and does not define first
    star: bool  # it has an import of *, which may define anything


class TooDeep(Exception):
    """A text may be Python, and run, but it is too long or too deep to be read here."""


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
        found = _tree(source)
        if found is not None:
            return found, False
        from autograder.common import magics  # which needs IPython, and this module not always does

        return magics.read(source, _tree, aside=aside), False
    except (TooDeep, RecursionError):
        return _parse(_stripped(source)), True


def without_magics(source: str) -> str:
    """The cell as Python reads it; its magics and shell lines, if it has any, do nothing.

    What is Python as it stands is given back as it stands, so that a line of an expression or a
    text that begins with % or ! is no magic.
    """
    return source if _parse(source) is not None else _stripped(source)


def _stripped(source: str) -> str:
    lines = LINE.split(source)
    first = next((line.strip() for line in lines if line.strip()), "")
    if first.startswith("%%") and not TIMERS.match(first):
        return ""  # another language, or text for a program
    return "\n".join(_plain_lines(lines))


def _plain_lines(lines: Iterable[str]) -> Iterator[str]:
    """Each line as Python, where a statement begins; the others as they are."""
    before, is_magic = _Before(), False
    for line in lines:
        if is_magic:  # which went on
            is_magic = line.endswith("\\")
            yield ""
            continue
        plain = line if before.goes_on else _plain(line)
        is_magic = plain != line and line.endswith("\\")
        if not is_magic:
            before.read(plain)
        yield plain


@dataclass
class _Before:
    """What is open where a line begins."""

    brackets: int = 0
    quotes: str = ""
    backslash: bool = False

    @property
    def goes_on(self) -> bool:
        """Whether the line belongs to the statement before it."""
        return bool(self.brackets or self.quotes or self.backslash)

    def read(self, line: str) -> None:
        """Go on to the next line."""
        place, self.backslash = 0, False
        while place < len(line):
            if self.quotes:
                end = re.compile(rf"(?:\\.|(?!{self.quotes}).)*+{self.quotes}").match(line, place)
                if not end:
                    return
                self.quotes, place = "", end.end()
                continue
            piece = PIECE.search(line, place)
            if not piece:
                return
            self.brackets = max(0, self.brackets + bool(piece["open"]) - bool(piece["close"]))
            self.quotes = piece["triple"] or ""
            self.backslash = bool(piece["goes_on"])
            place = piece.end()


def _plain(line: str) -> str:
    magic = MAGIC.match(line)
    if not magic:
        return re.sub(r"\?{1,2}\s*$", "", line) if re.match(r"\s*[\w.]+\?{1,2}\s*$", line) else line
    if magic["target"]:
        return f"{magic['indent']}{magic['target'].strip()} None"
    timer = TIMERS.match(line)
    rest = timer["rest"].strip() if timer else ""
    return magic["indent"] + (rest if rest and _parse(rest) else "pass")


def _parse(source: str) -> ast.Module | None:
    try:
        return _tree(source)
    except TooDeep:
        return None


def _tree(source: str) -> ast.Module | None:
    """The tree of plain Python; None if it is none."""
    if len(source) > LONGEST:
        raise TooDeep
    if any(name[0].count(".") > MOST_DOTS for name in DOTTED.finditer(source)):
        raise TooDeep
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a doubtful escape is the author's business
            return ast.parse(source)
    except (SyntaxError, ValueError):
        return None
    except (ArithmeticError, RecursionError, MemoryError, SystemError) as error:
        raise TooDeep from error


def top_level_names(tree: ast.Module) -> set[str]:
    """Names that a cell binds for the cells below it; any text, however deep, is read."""
    found: set[str] = set()
    todo: list[ast.AST] = [tree]
    while todo:
        node = todo.pop()
        found.update(_binds(node))
        if not isinstance(node, SCOPES + INNER):
            todo.extend(ast.iter_child_nodes(node))
    return found


def touched(source: str) -> set[str]:
    """Names that a cell binds or deletes at its top level."""
    tree = parse(source)
    if tree is None:
        return set()
    deleted = {
        target.id
        for node in tree.body
        if isinstance(node, ast.Delete)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    return top_level_names(tree) | deleted


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
        if any(name == "*" or name.startswith("__") for name in _binds(node)):
            return not isinstance(node, ast.FunctionDef)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            inside = ast.walk(node)
            if any(isinstance(part, ast.Global) for part in inside):
                return True
            todo.extend(_around(node))
        else:
            todo.extend(ast.iter_child_nodes(node))
    return False


@lru_cache(maxsize=500)
def altered(source: str) -> frozenset[str]:
    """Names of whose values a cell sets, deletes or calls a part: `a` in `a[0] = 1`, `a.add(2)`."""
    return _altered(parse(source) or ast.Module([], []))


def _altered(tree: ast.AST) -> frozenset[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
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
    lines, tree = LINE.split(source), parse(plain := without_magics(source))
    lines = lines if plain == source else plain.split("\n")
    found: list[Made] = []
    for node in tree.body if tree else ():
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


def _binds(node: ast.AST) -> Iterator[str]:
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


@lru_cache(maxsize=2000)
def facts(source: str) -> Facts:
    """What a cell binds and needs; of a cell that is no Python nothing is known."""
    reader = _Reader()
    reader.read(parse(source) or ast.Module([], []))
    needed = reader.needed | (reader.later - reader.bound)
    return Facts(frozenset(reader.bound - {"*"}), frozenset(needed), "*" in reader.bound)


def only_tries_imports(node: ast.Try) -> bool:
    """Whether a `try` does nothing but import, and set names to constants."""
    blocks = [node.body, node.orelse, node.finalbody, *(one.body for one in node.handlers)]
    inside = [one for block in blocks for one in block]
    return any(isinstance(one, IMPORTS) for one in inside) and all(
        isinstance(one, (*IMPORTS, ast.Pass))
        or (isinstance(one, ast.Assign) and isinstance(one.value, ast.Constant))
        for one in inside
    )


@lru_cache(maxsize=2000)
def imports_something(source: str) -> bool:
    """Whether a cell may import anything at its top level; of most tests no more is asked."""
    body = (parse(source) or ast.Module([], [])).body
    return any(isinstance(node, (*IMPORTS, ast.Try)) for node in body)


@lru_cache(maxsize=2000)
def imported_where_missing(
    source: str, needed: frozenset[str], bound: frozenset[str] = frozenset()
) -> str:
    """A cell that imports what another imports at its top level, where a name of that is missing.

    Of what is bound elsewhere a part may be missing: `xml.dom` where there is `import xml`. The
    cell uses no other names, so that nothing else an answer defines has a part in it.
    """
    found: list[str] = []
    for node in (parse(source) or ast.Module([], [])).body:
        if isinstance(node, IMPORTS):
            for alias in node.names:
                is_part = isinstance(node, ast.Import) and "." in alias.name and not alias.asname
                found += _alias_where_missing(node, alias, needed | bound if is_part else needed)
        elif isinstance(node, ast.Try) and only_tries_imports(node):
            names = facts(ast.unparse(node)).bound & needed
            found += [_where_missing(name, ast.unparse(node)) for name in sorted(names)[:1]]
    return "\n".join(found)


def _alias_where_missing(
    node: ast.Import | ast.ImportFrom, alias: ast.alias, needed: frozenset[str]
) -> list[str]:
    names, aliases = {alias.asname or alias.name.partition(".")[0]}, [alias]
    if isinstance(node, ast.ImportFrom):
        names = {*needed} if alias.name == "*" else {alias.asname or alias.name}
        aliases = [ast.alias(name) for name in sorted(names)] if alias.name == "*" else [alias]
    if not names & needed:
        return []
    texts: list[tuple[str, str]] = []
    for one in aliases:
        made = ast.Import([one])
        if isinstance(node, ast.ImportFrom):
            made = ast.ImportFrom(node.module, [one], node.level)
        texts.append((one.asname or one.name, ast.unparse(made)))
    return [_where_missing(name, text) for name, text in texts]


def _where_missing(name: str, text: str) -> str:
    lines = "\n        ".join(text.splitlines())
    lacks = "(NameError, AttributeError)" if "." in name else "NameError"
    return (
        f"try:\n    {name}\nexcept {lacks}:\n    try:\n        {lines}\n"
        "    except ImportError:\n        pass"
    )


def awaits(tree: ast.Module) -> bool:
    """Whether a cell waits at its top level, which only a notebook may do."""
    todo: list[ast.AST] = [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Await | ast.AsyncFor | ast.AsyncWith):
            return True
        if not isinstance(node, SCOPES):
            todo.extend(ast.iter_child_nodes(node))
    return False


@dataclass
class _Scope:
    """Where names live: the cell, or a class, function or comprehension in it."""

    kind: Literal["cell", "class", "function", "comprehension"] = "cell"
    runs_now: bool = True  # when the cell runs, not when a function is called
    fills_cell: bool = True  # whether := binds a name of the cell here
    own: set[str] = field(default_factory=set)  # names that it binds
    outer: set[str] = field(default_factory=set)  # names that it declares global
    before: dict[str, bool] = field(default_factory=dict)  # what could be seen around it


# What is left to do: read a node, go into a scope, leave it (None), bind a name of the cell.
Step = ast.AST | _Scope | None | str


class _Reader:
    """Goes through a cell in the order in which it runs, however deep it is nested.

    Python's own tables of names are not asked: they refuse what its parser takes, and then would
    say nothing of the whole cell.
    """

    def __init__(self) -> None:
        self.bound: set[str] = set()
        self.needed: set[str] = set()
        self.later: set[str] = set()  # read by functions, which are called when all is bound
        self.scopes = [_Scope()]
        self.seen: dict[str, bool] = {}  # names of the functions around this place

    def read(self, tree: ast.Module) -> None:
        """Read it all."""
        todo: list[Step] = [tree]
        while todo:
            step = todo.pop()
            if isinstance(step, ast.AST):
                todo.extend(reversed(list(self._parts(step))))
            elif isinstance(step, _Scope):
                self._enter(step)
            elif isinstance(step, str):
                self.bound.add(step)
            else:
                self.seen |= self.scopes.pop().before

    def _parts(self, node: ast.AST) -> Iterable[Step]:
        """What is to be done for a node, in the order in which it runs."""
        at_top = self.scopes[-1].kind == "cell"
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store):
            self._use(node.id)
        if isinstance(node, SCOPES):
            return self._definition(node)
        if isinstance(node, INNER):
            return self._comprehension(node)
        if at_top:
            self.bound.update(_binds(node))
        if isinstance(node, ast.Assign):
            return [node.value, *node.targets]
        if isinstance(node, ast.AnnAssign):
            return [node.annotation, *([node.value, node.target] if node.value else [])]
        if isinstance(node, ast.AugAssign):
            if isinstance(node.target, ast.Name):
                self._use(node.target.id)
            return [node.value, node.target]
        if isinstance(node, ast.NamedExpr):
            return [node.value, *([node.target.id] if self.scopes[-1].fills_cell else [])]
        if isinstance(node, ast.For | ast.AsyncFor):
            return [node.iter, node.target, *node.body, *node.orelse]
        return ast.iter_child_nodes(node)

    def _use(self, name: str) -> None:
        """A name is read here."""
        scope = self.scopes[-1]
        is_own = scope.kind == "class" and name in scope.own
        if name not in scope.outer and (is_own or self.seen.get(name)):
            return
        if name not in self.bound:
            (self.needed if scope.runs_now else self.later).add(name)

    def _enter(self, scope: _Scope) -> None:
        """Go on in a scope; what is in it sees its names, unless it is a class."""
        self.bound |= scope.outer
        self.scopes.append(scope)
        if scope.kind != "class":
            new = dict.fromkeys(scope.own, True) | dict.fromkeys(scope.outer, False)
            scope.before = {name: self.seen.get(name, False) for name in new}
            self.seen |= new

    def _definition(self, node: Definition) -> Iterable[Step]:
        """A function or class: what runs where it stands, its body, and its name."""
        around = self.scopes[-1]
        is_class = isinstance(node, ast.ClassDef)
        body = [node.body] if isinstance(node, ast.Lambda) else node.body
        own, outer = _names_in(body)
        scope = _Scope("class" if is_class else "function", is_class and around.runs_now, False)
        scope.own, scope.outer = own | _parameters(node), outer
        steps: list[Step] = [*_around(node), scope, *body, None]
        if parameters := getattr(node, "type_params", ()):  # since Python 3.12
            own = {parameter.name for parameter in parameters}
            steps = [_Scope("function", around.runs_now, False, own), *parameters, *steps, None]
        if around.kind == "cell" and not isinstance(node, ast.Lambda):
            steps.append(node.name)
        return steps

    def _comprehension(self, node: Comprehension) -> Iterable[Step]:
        """A comprehension: the first thing that it goes through belongs to what is around it."""
        around, first = self.scopes[-1], node.generators[0]
        own, _ = _names_in(generator.target for generator in node.generators)
        steps: list[Step] = [first.iter]
        steps.append(_Scope("comprehension", around.runs_now, around.fills_cell, own))
        for generator in node.generators:
            steps += [generator.iter] if generator is not first else []
            steps += [generator.target, *generator.ifs]
        steps += [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        return [*steps, None]


def _around(node: Definition) -> Sequence[ast.AST]:
    """The parts of a definition that run where it stands."""
    if isinstance(node, ast.ClassDef):
        return [*node.decorator_list, *node.bases, *node.keywords]
    values = [*node.args.defaults, *(value for value in node.args.kw_defaults if value)]
    if isinstance(node, ast.Lambda):
        return values
    said = [*(one.annotation for one in _arguments(node)), node.returns]
    return [*node.decorator_list, *values, *filter(None, said)]


def _arguments(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> list[ast.arg]:
    of = node.args
    named = [*of.posonlyargs, *of.args, *of.kwonlyargs]
    return [*named, *filter(None, [of.vararg, of.kwarg])]


def _parameters(node: Definition) -> set[str]:
    return set() if isinstance(node, ast.ClassDef) else {one.arg for one in _arguments(node)}


def _names_in(body: Iterable[ast.AST]) -> tuple[set[str], set[str]]:
    """Names that the body of a function or class binds as its own, and those it makes global."""
    own: set[str] = set()
    outer: set[str] = set()
    others: set[str] = set()
    todo = [(node, True) for node in body]
    while todo:
        node, binds = todo.pop()
        if isinstance(node, ast.NamedExpr):
            own.add(node.target.id)
        if binds:
            own.update(_binds(node))
        if binds and isinstance(node, ast.Name) and isinstance(node.ctx, ast.Del):
            own.add(node.id)
        if isinstance(node, ast.Global):
            outer.update(node.names)
        elif isinstance(node, ast.Nonlocal):
            others.update(node.names)
        is_definition = isinstance(node, SCOPES)
        parts = _around(node) if is_definition else ast.iter_child_nodes(node)
        inside = binds and not isinstance(node, INNER)  # there only := binds a name for us
        todo.extend((part, inside) for part in parts)
    return own - outer - others, outer

"""What a cell's text defines and what it needs, found without running it."""

import ast
import re
import symtable
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

MAGIC = re.compile(r"(?P<indent>\s*+)(?P<target>[\w.,\s]+=\s*)?[%!?](?!=)")
TIMERS = re.compile(r"\s*+%{1,2}(time|timeit|prun|capture)\b(?P<rest>.*)")
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
INNER = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(frozen=True)
class Facts:
    """Names at a cell's top level."""

    bound: frozenset[str]  # that it defines
    needed: frozenset[str]  # that it reads and does not define first
    star: bool  # it has an import of *, which may define anything


def parse(source: str) -> ast.Module | None:
    """The cell's syntax tree, its magics taken out; None if it is no Python."""
    return _parse(source) or _parse(without_magics(source))


def without_magics(source: str) -> str:
    """The cell with each magic or shell line made a line that Python reads."""
    lines = source.splitlines()
    first = next((line.strip() for line in lines if line.strip()), "")
    if first.startswith("%%") and not TIMERS.match(first):
        return ""  # another language, or text for a program
    return "\n".join(_plain(line) for line in lines)


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
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a doubtful escape is the author's business
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


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


@lru_cache(maxsize=5000)
def facts(source: str) -> Facts:
    """What a cell binds and needs; of a cell that is no Python nothing is known."""
    tree = parse(source)
    reader = _Reader()
    try:
        reader.visit(tree or ast.Module([], []))
    except RecursionError:
        return Facts(frozenset(), frozenset(), star=True)
    needed = reader.needed | (reader.later - reader.bound)
    return Facts(frozenset(reader.bound), frozenset(needed), reader.star)


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


class _Reader(ast.NodeVisitor):
    """Goes through a cell in the order in which it runs."""

    def __init__(self) -> None:
        self.bound: set[str] = set()
        self.needed: set[str] = set()
        self.later: set[str] = set()  # read by functions, which are called when all is bound
        self.star = False

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Store):
            self.bound.add(node.id)
        elif node.id not in self.bound:
            self.needed.add(node.id)

    def visit_Assign(self, node: ast.Assign) -> None:
        self._in_order(node.value, *node.targets)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self._in_order(node.annotation, *([node.value, node.target] if node.value else []))

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.visit(node.value)
        if isinstance(node.target, ast.Name) and node.target.id not in self.bound:
            self.needed.add(node.target.id)
        self.visit(node.target)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self._in_order(node.value, node.target)

    def visit_For(self, node: ast.For | ast.AsyncFor) -> None:
        self._in_order(node.iter, node.target, *node.body, *node.orelse)

    visit_AsyncFor = visit_For

    def visit_ListComp(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> None:
        self._comprehension(node.generators, node.elt)

    visit_SetComp = visit_GeneratorExp = visit_ListComp

    def visit_DictComp(self, node: ast.DictComp) -> None:
        self._comprehension(node.generators, node.key, node.value)

    def visit_FunctionDef(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    ) -> None:
        self._scope(node)
        self.bound.add(node.name)

    visit_AsyncFunctionDef = visit_ClassDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._scope(node)

    def generic_visit(self, node: ast.AST) -> None:
        names = set(_binds(node))
        self.star = self.star or "*" in names
        self.bound |= names - {"*"}
        super().generic_visit(node)

    def _in_order(self, *nodes: ast.AST) -> None:
        for node in nodes:
            self.visit(node)

    def _comprehension(self, generators: list[ast.comprehension], *results: ast.expr) -> None:
        outside = set(self.bound)
        for generator in generators:
            self._in_order(generator.iter, generator.target, *generator.ifs)
        self._in_order(*results)
        self.bound = outside

    def _scope(self, node: ast.AST) -> None:
        """A function or class: Python's own tables know which of its names are global."""
        table = symtable.symtable(ast.unparse(node), "cell", "exec")
        now = {name.get_name() for name in table.get_symbols() if name.is_referenced()}
        self.needed |= now - self.bound
        for part in ast.walk(node):
            if isinstance(part, ast.Global):
                self.bound.update(part.names)
        for inner in table.get_children():
            runs_now = inner.get_type() == "class"
            for name in _globals(inner):
                if name not in self.bound:
                    (self.needed if runs_now else self.later).add(name)
            for deeper in inner.get_children():
                self.later |= _all_globals(deeper) - self.bound


def _globals(table: symtable.SymbolTable) -> set[str]:
    return {
        name.get_name() for name in table.get_symbols() if name.is_global() and name.is_referenced()
    }


def _all_globals(table: symtable.SymbolTable) -> set[str]:
    return _globals(table).union(*map(_all_globals, table.get_children()))

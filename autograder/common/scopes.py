"""Which names a cell defines and which it needs, by Python's scopes, found without running it."""

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

from autograder.common.syntax import (
    BINDING,
    INNER,
    SCOPES,
    Definition,
    arguments_of,
    around_body,
    binds,
    parse,
)
from autograder.common.trees import children

Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


@dataclass(frozen=True)
class Facts:
    """Names at a cell's top level."""

    bound: frozenset[str]  # that it defines
    needed: frozenset[str]  # that it reads and does not define first
    star: bool  # it has an import of *, which may define anything


@lru_cache(maxsize=2000)
def facts(source: str) -> Facts:
    """What a cell binds and needs; of a cell that is no Python nothing is known."""
    reader = _Reader()
    reader.read(parse(source) or ast.Module([], []))
    needed = reader.needed | (reader.later - reader.bound)
    return Facts(frozenset(reader.bound - {"*"}), frozenset(needed), "*" in reader.bound)


@dataclass
class _Scope:
    """Where names live: the cell, or a class, function or comprehension in it."""

    kind: Literal["cell", "class", "function", "comprehension"] = "cell"
    runs_now: bool = True  # when the cell runs, not when a function is called
    fills_cell: bool = True  # whether := binds a name of the cell here
    own: set[str] = field(default_factory=set[str])  # names that it binds
    outer: set[str] = field(default_factory=set[str])  # names that it declares global
    before: dict[str, bool] = field(default_factory=dict[str, bool])  # what could be seen around it


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
        if at_top and type(node) in BINDING:
            self.bound.update(binds(node))
        return self._in_order(node)

    def _in_order(self, node: ast.AST) -> Iterable[Step]:
        """The parts of what binds names: a value comes before what is set to it."""
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
        if type(node).__name__ == "TypeAlias":  # since Python 3.12
            return self._alias(node)
        return children(node)

    def _alias(self, node: Any) -> Iterable[Step]:
        """The name of a type: its parameters are names of its value alone."""
        own = {parameter.name for parameter in node.type_params}
        scope = _Scope("function", self.scopes[-1].runs_now, False, own)
        return [scope, *node.type_params, node.value, None, node.name]

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
        steps: list[Step] = [*around_body(node), scope, *body, None]
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


def _parameters(node: Definition) -> set[str]:
    return set() if isinstance(node, ast.ClassDef) else {one.arg for one in arguments_of(node)}


def _names_in(body: Iterable[ast.AST]) -> tuple[set[str], set[str]]:
    """Names that the body of a function or class binds as its own, and those it makes global."""
    own: set[str] = set()
    outer: set[str] = set()
    others: set[str] = set()
    todo = [(node, True) for node in body]
    while todo:
        node, is_ours = todo.pop()
        if isinstance(node, ast.NamedExpr):
            own.add(node.target.id)
        if is_ours:
            own.update(binds(node))
        if is_ours and isinstance(node, ast.Name) and isinstance(node.ctx, ast.Del):
            own.add(node.id)
        if isinstance(node, ast.Global):
            outer.update(node.names)
        elif isinstance(node, ast.Nonlocal):
            others.update(node.names)
        is_definition = isinstance(node, SCOPES)
        parts = around_body(node) if is_definition else children(node)
        inside = is_ours and not isinstance(node, INNER)  # there only := binds a name for us
        todo.extend((part, inside) for part in parts)
    return own - outer - others, outer

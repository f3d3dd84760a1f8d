"""What one statement of a notebook holds that rules ask for, found once for all questions."""

import ast
import builtins
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from autograder.common.syntax import top_level_names
from autograder.common.trees import children, walk
from autograder.judge.expressions import (
    ASSIGNING,
    Bindings,
    Dotted,
    begin,
    bindings,
    called,
    dotted,
    each_pair,
    followed,
    given_pairs,
    is_getattr,
    last_part,
    tuple_fields,
)

SETTERS = frozenset({"setattr", "delattr", "__setattr__", "__delattr__"})
CHANGERS = frozenset({"update", "setdefault", "pop", "clear", "__setitem__", "__delitem__"})
WRITERS = frozenset({"write", "write_text", "write_bytes", "writelines"})
SHOWING = (ast.Expr, ast.FormattedValue)  # which do no more with a value than show it
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
CLASSES = (ast.ClassDef,)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
INNER = (*FUNCTIONS, ast.Lambda, *COMPREHENSIONS)  # in which names may be their own
Import = ast.Import | ast.ImportFrom
Node = TypeVar("Node", bound=ast.AST)


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
            found += children(node)  # and is gone through as it grows
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
    def waits(self) -> bool:
        """Whether nothing of it runs before it is called: it is a function, or a class of such."""
        (node,) = self.tree.body
        if not isinstance(node, ast.ClassDef):
            return _waits(node)
        return not node.decorator_list and all(map(_waits, node.body))

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
        return node if all(last_part(maker) == "dataclass" for maker in makers) else None

    @cached_property
    def tuple_class(self) -> frozenset[str]:
        """The fields of the tuples whose class it makes by `namedtuple`."""
        (node,) = self.tree.body
        value = node.value if isinstance(node, ast.Assign) else None
        return tuple_fields(value) if isinstance(value, ast.Call) else frozenset()

    @cached_property
    def fields(self) -> frozenset[str]:
        """Members of classes, of named tuples, and what calls are handed by a name."""
        calls = self.of_kind(ast.Call)
        handed = {word.arg for call in calls for word in call.keywords if word.arg}
        return self.members.union(handed, *map(tuple_fields, calls))

    @cached_property
    def givens(self) -> dict[str, list[ast.expr | None]]:
        """What names are set to, in any function of it; None for what does not show."""
        shown: dict[int, list[ast.expr]] = {}
        for node in self.of_kind(ast.Assign, ast.AnnAssign, ast.NamedExpr):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            pairs = (pair for target in targets for pair in given_pairs(target, node.value))
            for name, value in pairs:
                shown.setdefault(id(name), []).append(value)
        for node in self.of_kind(ast.For, ast.comprehension):
            for name, value in each_pair(node.target, node.iter):
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
    def bases_given(self) -> list[list[ast.expr]]:
        """The bases of each class that it makes by a call, or the expression that gives them."""
        calls = [call for call in self.of_kind(ast.Call) if called(call) in ("type", "new_class")]
        given = [call.args[1] for call in calls if len(call.args) > 1]
        return [getattr(one, "elts", [one]) for one in given]

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
    def values(self) -> list[ast.expr]:
        """Dotted names whose values it hands on: it does no more than look at other ones.

        A name that is followed further is given to a name, and not in a class.
        """
        looked_at = {id(node.value) for node in self.of_kind(ast.Attribute, *SHOWING)}
        looked_at |= {id(call.func) for call in self.of_kind(ast.Call)}
        in_classes = {id(node) for node in _in_classes(self.of_kind(*CLASSES))}
        shown = {id(node.value) for node in self.of_kind(*SHOWING)}
        for node in self.of_kind(*ASSIGNING):
            goes_on = isinstance(node, ast.NamedExpr) and id(node) not in shown
            if id(node) not in in_classes and not goes_on:
                looked_at |= followed(node)
        reads = (n for n in self.of_kind(ast.Name, ast.Attribute) if isinstance(n.ctx, ast.Load))
        return [node for node in reads if id(node) not in looked_at]

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
        return handed_to_writers(self.of_kind(ast.Call))


def _waits(node: ast.stmt) -> bool:
    """Whether this is a function, or in a class a text that explains it, and nothing around it."""
    if not isinstance(node, FUNCTIONS):
        return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    defaults = (one for one in (*node.args.defaults, *node.args.kw_defaults) if one is not None)
    return not node.decorator_list and all(map(_is_constant, defaults))


def handed_to_writers(calls: Iterable[ast.Call]) -> list[ast.expr]:
    """The arguments of those calls that may write a file."""
    writes = (call for call in calls if getattr(call.func, "attr", "") in WRITERS)
    return [given for call in writes for given in call.args]


def _in_classes(classes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """What stands in classes, and in no function of theirs."""
    todo = list(classes)
    for node in todo:
        yield node
        todo += [part for part in children(node) if not isinstance(part, INNER)]


def _is_file(text: str) -> bool:
    """Whether a constant may be the name of a module's file."""
    return text.endswith(".py") and " " not in text


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
        parts = children(node)
        if not isinstance(node, INNER):
            own = _handed_on(node) if isinstance(node, ast.ClassDef) else ()
            todo += [(part, local, now) for part in parts if id(part) not in own]
            continue
        if isinstance(node, COMPREHENSIONS):
            first = node.generators[0]
            todo.append((first.iter, local, now))
            inside = [part for part in parts if part is not first]
            inside += [first.target, *first.ifs]
            bound = _targets(node.generators)
        else:
            inside, bound = _scope(node, shares)
            inner = {id(one) for one in inside}
            todo += [(part, local, now) for part in parts if id(part) not in inner]
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
    parts = children(given)
    return frozenset(part.arg for part in parts if isinstance(part, ast.arg))


def _targets(generators: Sequence[ast.comprehension]) -> frozenset[str]:
    parts = (part for generator in generators for part in walk(generator.target))
    names = (part for part in parts if isinstance(part, ast.Name))
    return frozenset(name.id for name in names if isinstance(name.ctx, ast.Store))


def _shared(node: ast.AST) -> Iterator[str]:
    """Names that a statement declares to be those of the cell."""
    for part in walk(node):
        if isinstance(part, ast.Global):
            yield from part.names

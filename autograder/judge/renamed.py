"""Whether a student's code may give a dataclass's fields other names, by which objects are asked.

`dataclasses.asdict` and the like get from an object what its class's fields name, and the class
made of a dataclass runs a text with these names in it. Each is as the class's text shows it, unless
somebody gets hold of a field itself, which is an object that has its name to be set.
"""

import ast
import builtins
from collections.abc import Collection, Iterator, Mapping, Sequence

from autograder.common.trees import walk
from autograder.judge import expressions
from autograder.judge.expressions import origins_of
from autograder.judge.statement import FUNCTIONS, SETTERS, Statement

Aliases = Mapping[str, set[str]]
FIELDS = frozenset({"dataclasses.fields", "dataclasses.Field", "dataclasses.*"})
OWN = ("self", "cls")
HOOKS = frozenset({"__init_subclass__", "__set_name__"})  # that Python calls with a class it makes
# bases: nobody forbids their methods
HARMLESS = ("object", "Module", "ABC", "NamedTuple", "Protocol")
PLAIN_BASES = ("Generic", "Dataset", "Enum", "IntEnum", "StrEnum")  # no more of these
MOST_ABOVE = 10  # classes of which one is made, one by another


def may_rename_fields(held: Sequence[Statement], aliases: Aliases, kinds: Collection[str]) -> bool:
    """Whether statements may get hold of a field, and also set the name of what may be one.

    Args:
        held: the statements.
        aliases: what names stand for in libraries.
        kinds: names of the student's classes.
    """
    return any(_gets_fields(one, aliases) for one in held) and any(_names(held, kinds))


def _gets_fields(holds: Statement, aliases: Aliases) -> bool:
    """Whether a statement may get hold of a field that is, or is going to be, a dataclass's."""
    if "__dataclass_fields__" in holds.attributes:
        return True
    places = holds.of_kind(ast.Name, ast.Attribute)
    origins = {origin for node in places for origin in origins_of(node, aliases)}
    origins |= {origin for _, origin in holds.bindings.imports if origin.endswith(".*")}
    if not FIELDS.isdisjoint(origins):
        return True
    if "dataclasses.field" not in origins:
        return False
    classes = holds.of_kind(ast.ClassDef)
    lines = [line for node in classes for line in node.body if isinstance(line, ast.AnnAssign)]
    in_place = {id(line.value.func) for line in lines if isinstance(line.value, ast.Call)}
    uses = [node for node in places if origins_of(node, aliases) == {"dataclasses.field"}]
    seen_first = any(len(node.decorator_list) > 1 for node in classes)
    return seen_first or any(id(node) not in in_place for node in uses)


def _names(held: Sequence[Statement], kinds: Collection[str]) -> Iterator[bool]:
    """Whether what may be a field is given a name: not by a method to its own object."""
    methods = {name for one in held for name in _methods_that_name(one)}
    for one in held:
        in_methods = {id(part) for method in _methods(one) for part in walk(method)}
        for node in one.of_kind(ast.Attribute):
            if node.attr in methods and isinstance(node.ctx, ast.Load):
                yield _is_of_class(node.value, kinds)
        yield any(
            id(node) not in in_methods or getattr(target, "id", "") not in OWN
            for node, target in _named(one.nodes)
        )


def _named(nodes: Collection[ast.AST]) -> Iterator[tuple[ast.AST, ast.AST | None]]:
    """Nodes that set a name, and of what; or that may set it in some other way."""
    for node in nodes:
        if isinstance(node, ast.Attribute):
            if node.attr == "name" and isinstance(node.ctx, ast.Store):
                yield node, node.value
            elif node.attr in ("__set__", "__setattr__"):
                yield node, None
        elif isinstance(node, ast.Call) and expressions.called(node) in SETTERS:
            given = [None, None, *node.args[:2]][-2:]
            text = given[1] and expressions.text(given[1])
            begun = given[1] and expressions.prefix(given[1])
            if text == "name" or (text is None and not (begun and begun[:4] not in "name")):
                yield node, given[0]


def _methods(holds: Statement) -> Iterator[ast.AST]:
    for kind in holds.of_kind(ast.ClassDef):
        yield from (part for part in kind.body if isinstance(part, FUNCTIONS))


def _methods_that_name(holds: Statement) -> Iterator[str]:
    """Methods that set a name of what they are called with."""
    for method in _methods(holds):
        if any(True for _ in _named([*walk(method)])):
            yield getattr(method, "name", "")


def _is_of_class(value: ast.expr, kinds: Collection[str]) -> bool:
    """Whether a method may be asked of a class, and not of its object."""
    if isinstance(value, ast.Call):
        return getattr(value.func, "id", "") not in {"super", *kinds}
    return not isinstance(value, ast.Name) or value.id in kinds


def sets_unseen(held: Sequence[Statement], kinds: Collection[str]) -> bool:
    """Whether a class may get what its text does not show before it is made a dataclass.

    Args:
        held: the statements.
        kinds: names of the student's classes.
    """
    return any(_has_hooks(one) or any(_sets_of_class(one, kinds)) for one in held)


def _has_hooks(holds: Statement) -> bool:
    """Whether one is defined, asked for, or spelt out as a text."""
    texts = {node.value for node in holds.of_kind(ast.Constant) if isinstance(node.value, str)}
    named = {getattr(node, "name", "") for node in holds.of_kind(*FUNCTIONS)}
    return not HOOKS.isdisjoint(texts | named | holds.attributes | holds.sets | holds.read)


def _sets_of_class(holds: Statement, kinds: Collection[str]) -> Iterator[bool]:
    """Whether what a class is given has a name that is computed."""
    for call in holds.of_kind(ast.Call):
        if expressions.called(call) in SETTERS and len(call.args) > 1:
            target = getattr(call.args[0], "id", "")
            is_class = target == "cls" or target in kinds
            yield is_class and expressions.text(call.args[1]) is None
        elif expressions.called(call) == "type" and len(call.args) > 2:
            keys = getattr(call.args[2], "keys", [None])
            yield any(key is None or expressions.text(key) is None for key in keys)


def mixes(held: Sequence[Statement], aliases: Aliases) -> bool:
    """Whether a class may be made of a dataclass and of what holds somebody else's methods."""
    nodes = [node for one in held for node in one.of_kind(ast.ClassDef)]
    theirs: set[str] = set()
    for _ in range(MOST_ABOVE):
        before = len(theirs)
        theirs |= {n.name for n in nodes if any(_is_theirs(b, theirs, aliases) for b in n.bases)}
        if len(theirs) == before:
            break
    together = [node.bases for node in nodes] + [given for one in held for given in one.bases_given]
    return any(
        len(bases) > 1 and any(_is_theirs(one, theirs, aliases) for one in bases)
        for bases in together
    )


def _is_theirs(base: ast.expr, theirs: Collection[str], aliases: Aliases) -> bool:
    """Whether a class made of this has methods that rules may forbid."""
    base = base.value if isinstance(base, ast.Subscript) else base
    if origins := origins_of(base, aliases):
        return any(o.rpartition(".")[2] not in (*HARMLESS, *PLAIN_BASES) for o in origins)
    name = getattr(base, "id", "")
    kind = getattr(builtins, name, None)
    if not isinstance(kind, type) or kind is object:
        return name in theirs
    return not issubclass(kind, BaseException)

"""Uses of what leads to names by their text that do no harm: all is shown, or nothing is got."""

import ast
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from autograder.common.trees import walk
from autograder.judge import expressions
from autograder.judge.expressions import is_namespace, named_parts, origins_of
from autograder.judge.forbidden import BY_NAME, DRAWING, LOADERS
from autograder.judge.statement import Statement

Aliases = Mapping[str, set[str]]
# with so many arguments, and none of these, such a function does what it is there for
PLAIN_CALLS: Mapping[str, tuple[int, tuple[str, ...]]] = {
    "functools.wraps": (1, ("assigned", "updated")),
    "functools.update_wrapper": (2, ("assigned", "updated")),
    "dataclasses.make_dataclass": (2, ("bases", "namespace")),
    "torch.utils.data.DataLoader": (5, ("num_workers", "multiprocessing_context")),
    "json.dumps": (1, ("sort_keys", "cls")),
    "json.dump": (2, ("sort_keys", "cls")),
    "pprint.pprint": (1, ("stream",)),
    "pprint.pp": (1, ("stream",)),
}
SHAPE = re.compile(r"(?:\.\.\.|[\w\s*#?+/=-])*")  # of an array, in which no code is hidden
WRITTEN_OUT = (ast.Constant, ast.Dict, ast.List, ast.Tuple, ast.UnaryOp, ast.USub, ast.Load)
AS_TEXT = {"print", "str", "repr", "len", "sorted", "list"}  # of a dictionary: texts or a number
STYLE = re.compile(r"[\w-]+")  # matplotlib's own, no file


def plain_uses(holds: Statement, aliases: Aliases, makes_types: bool) -> Iterator[int]:
    """ids of such nodes in a statement.

    Args:
        holds: the statement.
        aliases: what names stand for in libraries.
        makes_types: whether there may be classes of classes.
    """
    yield from _asked_nothing(holds, aliases, makes_types)
    yield from _drawing(holds, aliases)
    yield from (id(space) for space, _ in own_by_name(holds))
    for part in holds.of_kind(ast.Subscript):  # a type with a shape that is written out
        shape = expressions.text(getattr(part.slice, "elts", [part.slice])[-1])
        if shape is not None and SHAPE.fullmatch(shape):
            origins = origins_of(part.value, aliases)
            if origins and all(origin.startswith("jaxtyping.") for origin in origins):
                yield id(part.value)
    for call in holds.of_kind(ast.Call):
        if is_by_name(call, aliases) or _loads_values(call, aliases):
            yield id(call.func)
        elif expressions.called(call) == "update" and isinstance(call.func, ast.Attribute):
            holder = call.func.value
            of: Any = getattr(holder, "value", None) or [*getattr(holder, "args", ()), None][0]
            if is_namespace(holder) and getattr(of, "id", "") == "self":  # that sets it
                yield id(getattr(holder, "func", holder))


def own_by_name(holds: Statement) -> Iterator[tuple[ast.expr, str]]:
    """Each `self.__dict__` of which one part is asked, or set, by a name that is spelt out."""
    pairs: list[tuple[ast.expr, ast.expr]] = []
    for node in holds.of_kind(ast.Subscript):
        pairs.append((node.value, node.slice))
    for node in holds.of_kind(ast.Compare):
        if len(node.ops) == 1 and isinstance(node.ops[0], ast.In | ast.NotIn):
            pairs.append((node.comparators[0], node.left))
    for call in holds.of_kind(ast.Call):
        if isinstance(call.func, ast.Attribute) and call.func.attr in ("get", "pop") and call.args:
            pairs.append((call.func.value, call.args[0]))
    for space, key in pairs:
        name = expressions.text(key)
        if name is not None and isinstance(space, ast.Attribute) and space.attr == "__dict__":
            yield from [(space, name)] if getattr(space.value, "id", "") == "self" else ()


def is_by_name(node: ast.Call, aliases: Aliases) -> bool:
    """Whether this makes a function that gets or calls what has a name that is spelt out."""
    origins = origins_of(node.func, aliases)
    return bool(origins) and origins <= BY_NAME and named_parts(node) is not None


def _loads_values(node: ast.Call, aliases: Aliases) -> bool:
    """Whether this reads a file of numbers, and no objects: nothing is asked that could."""
    origins = origins_of(node.func, aliases)
    given = [word.value for word in node.keywords if word.arg in (None, "allow_pickle")]
    is_off = all(isinstance(one, ast.Constant) and one.value is False for one in given)
    shown = not any(isinstance(one, ast.Starred) for one in node.args)
    return bool(origins) and origins <= {*LOADERS} and is_off and shown and len(node.args) < 3


def _asked_nothing(holds: Statement, aliases: Aliases, makes_types: bool) -> Iterator[int]:
    """Uses of `forbidden.ASKED` that get nothing by a name, and start no process."""
    for one, below in _decorators(holds):
        called = one.func if isinstance(one, ast.Call) and not one.args else one
        known = all(origins_of(getattr(other, "func", other), aliases) for other in below)
        if known and not makes_types and origins_of(called, aliases) == {"dataclasses.dataclass"}:
            yield id(called)
    for call in holds.of_kind(ast.Call):
        origins = origins_of(call.func, aliases)
        if makes_types and "dataclasses.make_dataclass" in origins:
            continue
        if origins and all(_is_plain(call, origin) for origin in origins):
            yield id(call.func)


def _decorators(holds: Statement) -> Iterator[tuple[ast.expr, list[ast.expr]]]:
    """Decorators of classes, each with those below it: they may make another class of it."""
    for node in holds.of_kind(ast.ClassDef):
        for number, one in enumerate(node.decorator_list):
            yield one, node.decorator_list[number + 1 :]


def _is_plain(call: ast.Call, origin: str) -> bool:
    """Whether a call of one of `ASKED` leaves out what it could be asked."""
    if origin not in PLAIN_CALLS:
        return False
    most, out = PLAIN_CALLS[origin]
    off = {word.arg for word in call.keywords if getattr(word.value, "value", word) == 0}
    given = {word.arg for word in call.keywords} - (off & {"num_workers"})
    starred = any(isinstance(one, ast.Starred) for one in call.args)
    return not starred and len(call.args) <= most and not given & {*out, None}


def _drawing(holds: Statement, aliases: Aliases) -> Iterator[int]:
    """Settings of how pictures look that are written out, and name no function to be called."""
    for node in holds.of_kind(ast.Call):
        words = {word.arg: word.value for word in node.keywords}
        if None not in words and _looks(node.func, [*node.args, *words.values()], aliases):
            yield from () if any("hooks" in f"{word}" for word in words) else (id(node.func),)
    for node in holds.of_kind(ast.Subscript):
        if _looks(node.value, [node.slice], aliases):
            yield id(node.value)


def _looks(of: ast.expr, given: list[ast.expr], aliases: Aliases) -> bool:
    """Whether this is how a picture looks, and nothing else is given by what is written out."""
    origins = [origin.split(".") for origin in origins_of(of, aliases)]
    if not origins or any(
        one[0] != "matplotlib" or {*DRAWING, "rc", "style"}.isdisjoint(one) for one in origins
    ):
        return False
    parts = [part for one in given for part in walk(one)]
    texts = [part.value for part in parts if isinstance(part, ast.Constant)]
    texts = [text for text in texts if isinstance(text, str)]
    if any("style" in one for one in origins) and not all(map(STYLE.fullmatch, texts)):
        return False
    shown = all(isinstance(part, WRITTEN_OUT) for part in parts)
    return shown and not any("hooks" in text for text in texts)


def namespaces_shown(holds: Statement, bound: Collection[str], aliases: Aliases) -> Iterator[int]:
    """Nodes of `vars(x)` and `x.__dict__` of which a text is made at once, and nothing is taken.

    Args:
        holds: the statement.
        bound: names that the student binds anywhere.
        aliases: what names stand for in libraries.
    """
    given: list[ast.expr] = [node.value for node in holds.of_kind(ast.FormattedValue)]
    for call in holds.of_kind(ast.Call):
        if _is_builtin(call, AS_TEXT, bound):
            given += call.args
        elif expressions.template(call) is not None:
            given += (*call.args, *(word.value for word in call.keywords))
    for one in filter(is_namespace, map(_whose_names, given)):
        if isinstance(one, ast.Call) and _is_builtin(one, {"vars"}, bound):
            yield from (id(one.func) for _ in one.args if not origins_of(one.args[0], aliases))
        elif isinstance(one, ast.Attribute) and not origins_of(one.value, aliases):
            yield id(one)


def _whose_names(one: ast.expr) -> ast.expr:
    """What `keys()` is asked of, which gives texts as the whole does; anything else as it is."""
    if not isinstance(one, ast.Call) or not isinstance(one.func, ast.Attribute):
        return one
    return one.func.value if one.func.attr == "keys" else one


def _is_builtin(call: ast.Call, names: Collection[str], bound: Collection[str]) -> bool:
    """Whether this calls one of these builtins, which no name of the student's hides."""
    name = getattr(call.func, "id", "")
    return name in names and name not in bound and "*" not in bound


def states_of_self(
    holds: Statement, last: Collection[str], bound: Collection[str]
) -> Iterator[int]:
    """Nodes of `super().__getstate__()` in a class of the student's that hands it on to none.

    Python refuses it to whatever is no object of that class, and these hold what it has given them.
    """
    (top,) = holds.tree.body
    if getattr(top, "name", "") not in last or len(holds.of_kind(ast.ClassDef)) != 1:
        return
    for call in holds.of_kind(ast.Call):
        asked = call.func.value if isinstance(call.func, ast.Attribute) else None
        if expressions.called(call) != "__getstate__" or not isinstance(asked, ast.Call):
            continue
        is_super = getattr(asked.func, "id", "") == "super" and "super" not in bound
        if is_super and not (call.args or call.keywords or asked.args or asked.keywords):
            yield id(call.func)

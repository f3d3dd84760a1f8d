"""Uses of what leads to names by their text that get nothing by it, as a printed `vars(x)` does."""

import ast
from collections.abc import Collection, Iterator, Mapping

from autograder.judge import expressions
from autograder.judge.expressions import is_namespace, origins_of
from autograder.judge.statement import Statement

AS_TEXT = {"print", "str", "repr", "len", "sorted", "list"}  # of a dictionary: texts or a number


def namespaces_shown(
    holds: Statement, bound: Collection[str], aliases: Mapping[str, set[str]]
) -> Iterator[int]:
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
    for one in filter(is_namespace, given):
        if isinstance(one, ast.Call) and _is_builtin(one, {"vars"}, bound):
            yield from (id(one.func) for _ in one.args if not origins_of(one.args[0], aliases))
        elif isinstance(one, ast.Attribute) and not origins_of(one.value, aliases):
            yield id(one)


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

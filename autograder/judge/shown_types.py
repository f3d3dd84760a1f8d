"""What types and classes say by their text, where Python may evaluate or go through them."""

import ast
import builtins
import re
from collections.abc import Collection, Mapping, Sequence

from autograder.common.trees import walk
from autograder.judge.expressions import origins_of, text

DEEPEST = 5  # names that are set to types, one to another
NAMED = re.compile(r"\w+(?:\.\w+)*")  # a text that calls nothing
MADE_OF = (ast.Constant, ast.Subscript, ast.Tuple, ast.List, ast.Starred, ast.BinOp, ast.UnaryOp)


def is_shown(
    node: ast.expr,
    aliases: Mapping[str, set[str]],
    givens: Mapping[str, Sequence[ast.expr | None]],
    classes: Collection[str],
    deep: int = 0,
) -> bool:
    """Whether a type is made of classes, of what libraries offer, and of texts as they stand.

    Args:
        node: the type.
        aliases: what names stand for in libraries.
        givens: what the student's names are set to.
        classes: names that are classes of the student's.
        deep: names that have led here.
    """
    if isinstance(node, ast.Call):  # such as TypeVar("T"); no builtin's and no student's function
        made = all(isinstance(one, ast.Constant) for one in node.args)
        return made and bool(origins_of(node.func, aliases))
    for part in walk(node):
        if isinstance(part, ast.Name):
            if not _is_shown_name(part.id, aliases, givens, classes, deep):
                return False
        elif isinstance(part, ast.Attribute):
            if not origins_of(part, aliases):
                return False
        elif isinstance(part, ast.Constant) and isinstance(part.value, str):
            if deep and not NAMED.fullmatch(part.value):  # at its place a text is read
                return False
        elif isinstance(part, ast.expr) and not isinstance(part, MADE_OF):
            return False
    joined = (part.op for part in walk(node) if isinstance(part, ast.BinOp))
    return all(isinstance(by, ast.BitOr) for by in joined)


def _is_shown_name(
    name: str,
    aliases: Mapping[str, set[str]],
    givens: Mapping[str, Sequence[ast.expr | None]],
    classes: Collection[str],
    deep: int,
) -> bool:
    if name not in givens:  # the instructor's, or Python's
        return isinstance(getattr(builtins, name, type), type)
    if name in classes or (name in aliases and None in givens[name] and len(givens[name]) == 1):
        return True
    return deep < DEEPEST and all(
        one is not None and is_shown(one, aliases, givens, classes, deep + 1)
        for one in givens[name]
    )


def is_plain_base(node: ast.expr, aliases: Mapping[str, set[str]], givens: Collection[str]) -> bool:
    """Whether a base of a class surely makes no class of classes.

    Args:
        node: the base.
        aliases: what names stand for in libraries.
        givens: the student's names that are not classes alone.
    """
    while isinstance(node, ast.Subscript):
        node = node.value
    if origins := origins_of(node, aliases):
        lasts = {origin.rpartition(".")[2] for origin in origins}
        return not any(last.endswith(("Meta", "EnumType", "type")) for last in lasts)
    return isinstance(node, ast.Name) and node.id != "type" and node.id not in givens


def makes_text(node: ast.expr, aliases: Mapping[str, set[str]]) -> bool:
    """Whether an expression makes a text."""
    if isinstance(node, ast.Call):  # not TypeVar("T"), nor what a library makes
        if isinstance(node.func, ast.Attribute):
            return not origins_of(node.func, aliases)
        return getattr(node.func, "id", "") in ("str", "chr", "format", "repr")
    if isinstance(node, ast.Subscript):
        return text(node.value) is not None
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Add | ast.Mod | ast.Mult)
    return isinstance(node, ast.JoinedStr)

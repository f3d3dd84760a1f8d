"""What the text of a test says of its claims: what may catch them, what they look at."""

import ast
import builtins
import functools
from typing import Any

from autograder.bridge.reference import parts_of
from autograder.common.syntax import parse

STATES = frozenset(("getstate", "get_state", "get_rng_state"))  # what tells of random numbers


def catches_claims(value: Any) -> str:
    """The name of a class in a value by which a test would catch its own claims; or nothing."""
    kinds = [part for part in parts_of(value) if isinstance(part, type)]
    broad = [kind for kind in kinds if kind in AssertionError.__mro__ and kind is not object]
    return broad[0].__name__ if broad else ""


def refuse_broad(name: str, value: Any) -> None:
    """Raise TypeError if a value of an answer's would catch what a test claims."""
    if broad := catches_claims(value):
        raise TypeError(f"your {name} is {broad}; define a class of its own for it")


@functools.lru_cache(maxsize=2000)
def catches_by_value(source: str) -> bool:
    """Whether a test's text has an `except` that names anything but Python's own exceptions."""
    handlers = (n for n in ast.walk(parse(source) or ast.Module([], [])) if _catches(n))
    return any(
        isinstance(part, ast.Attribute | ast.Call)
        or (isinstance(part, ast.Name) and not hasattr(builtins, part.id))
        for one in handlers
        for part in ast.walk(one.type)  # type: ignore[attr-defined]
    )


def _catches(node: ast.AST) -> bool:
    return isinstance(node, ast.ExceptHandler) and node.type is not None


@functools.lru_cache(maxsize=2000)
def looks_for_claims(source: str) -> bool:
    """Whether a test's text looks itself for claims that did not hold.

    It catches them, or hands their class to what does (`assertRaises`, `raises`, `isinstance`), or
    compares with it. To raise one is not to look for one.
    """
    places: list[ast.AST | None] = []
    for node in ast.walk(parse(source) or ast.Module([], [])):
        if isinstance(node, ast.ExceptHandler):
            places.append(node.type)
        elif isinstance(node, ast.Call):
            places += [*node.args, *(word.value for word in node.keywords)]
        elif isinstance(node, ast.Compare):
            places += [node.left, *node.comparators]
    parts = [part for one in places if one for part in getattr(one, "elts", [one])]
    return any(isinstance(one, ast.Name) and one.id == "AssertionError" for one in parts)


@functools.lru_cache(maxsize=2000)
def looks_at_random(source: str) -> bool:
    """Whether a test's text asks for the state of random numbers."""
    return any(
        (node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", None)) in STATES
        for node in ast.walk(parse(source) or ast.Module([], []))
    )

"""Goes through syntax trees as `ast` does, past the fields that never hold anything to look at."""

import ast
from collections import deque
from collections.abc import Iterator
from functools import cache
from typing import Any, cast

# texts and numbers, and whether a name is read or set: of that a node's own `ctx` tells
_PLAIN = frozenset(
    ("ctx", "id", "attr", "kind", "type_comment", "conversion", "level", "module", "simple", "tag")
)


@cache
def _fields(kind: type[ast.AST]) -> tuple[str, ...]:
    """The fields in which a node of this kind may have parts."""
    return tuple(name for name in kind._fields if name not in _PLAIN)


def children(node: ast.AST) -> list[ast.AST]:
    """The parts of a node, in order; not whether it reads or sets something."""
    found: list[ast.AST] = []
    for name in _fields(type(node)):
        value = getattr(node, name, None)
        if isinstance(value, list):
            found += [part for part in cast(list[Any], value) if isinstance(part, ast.AST)]
        elif isinstance(value, ast.AST):
            found.append(value)
    return found


def walk(tree: ast.AST) -> Iterator[ast.AST]:
    """A node and all below it; what encloses comes before what it holds."""
    todo = deque([tree])
    while todo:
        node = todo.popleft()
        todo.extend(children(node))
        yield node

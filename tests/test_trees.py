"""Syntax trees are gone through as `ast` does it: the same nodes, in the same order."""

import ast
from collections.abc import Iterable
from pathlib import Path

import pytest

from autograder.common.trees import children, walk

HERE = Path(__file__).parents[1]
TEXTS = sorted((HERE / "autograder" / "judge").glob("*.py"))
TEXTS += [Path(ast.__file__).with_name(f"{name}.py") for name in ("typing", "enum", "dataclasses")]
RARE = """
match point:
    case {"x": [1, *others], **rest} as whole: ...
    case Point(0, y=None) | "text": ...
async def read(a, /, b: int = 1, *c, d: "str" = 2, **e) -> None:
    async with a as x: print(f"{b!r:>{d}}", b"", ...)
    global g
    return [await i async for i in c if (j := i)]
try: lambda *, k=1: (yield k)
except* ValueError as error: del error.a, error[0:1]
"""


def _seen(nodes: Iterable[ast.AST]) -> list[ast.AST]:
    return [node for node in nodes if not isinstance(node, ast.expr_context)]


def test_every_kind_of_node_is_seen() -> None:
    tree = ast.parse(RARE)
    assert list(walk(tree)) == _seen(ast.walk(tree))


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.stem)
def test_nothing_is_passed_over_but_whether_a_name_is_read(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert list(walk(tree)) == _seen(ast.walk(tree))
    assert all(children(node) == _seen(ast.iter_child_nodes(node)) for node in ast.walk(tree))

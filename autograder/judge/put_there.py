"""In whose places a test's text puts something: `random.random = ...`, `patch("time.sleep")`."""

import ast
import functools
import importlib
import sys
import types
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from autograder.common.syntax import parse
from autograder.judge.guard import HOME

PUTS = ("patch", "object", "setattr")  # the last names of what is called to put something there
OF_SYS = ("stdin", "argv", "exit")  # of its streams for output, `bridge/printed.py` takes care


@functools.lru_cache(maxsize=2000)
def written(source: str) -> tuple[tuple[str, str], ...]:
    """What a text puts something in the place of, as it is written: `np.linalg`, `det`."""
    tree = parse(source)
    if tree is None:
        return ()
    names = _imported(tree)
    found = (pair for node in ast.walk(tree) for pair in places(node))
    return tuple(dict.fromkeys((_told(home, names), name) for home, name in found))


def modules_of(source: str, space: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The modules, by their own names, and the names in them in whose places a test puts things.

    Args:
        source: the test's text.
        space: what names mean when it begins.
    """
    found = []
    for home, name in written(source):
        first, *rest = home.split(".")
        module = dict.get(space, first)  # type: ignore[arg-type]
        module = module if type(module) is types.ModuleType else _loaded(first)
        for part in rest:
            module = vars(module).get(part) if type(module) is types.ModuleType else None
        if type(module) is types.ModuleType and crosses(module, name):
            found.append((module.__name__, name))
    return found


def _loaded(name: str) -> types.ModuleType | None:
    """A module, which a test may be about to import if it is one of Python's own."""
    if name in sys.stdlib_module_names:
        with suppress(ImportError):
            importlib.import_module(name)
    return sys.modules.get(name)


def crosses(module: types.ModuleType, name: str) -> bool:
    """Whether what stands there for a test is to stand there for answers as well."""
    home = module.__name__
    if home == "sys":
        return name in OF_SYS
    is_found = sys.modules.get(home) is module and home != HOME
    return is_found and not (home == "builtins" and name == "input")  # see `bridge/typed.py`


def places(node: ast.AST) -> Iterator[tuple[str, str]]:
    """What a piece of a test puts something in the place of: what holds it, and its name."""
    if isinstance(node, ast.Assign):
        every = [part for one in node.targets for part in getattr(one, "elts", [one])]
        for target in every:
            if isinstance(target, ast.Attribute) and (home := path(target.value)):
                yield home, target.attr
    if not isinstance(node, ast.Call) or not node.args:
        return
    called = path(node.func).rpartition(".")[2]
    first, second = node.args[0], node.args[1] if len(node.args) > 1 else None
    if called not in PUTS:
        return
    if isinstance(first, ast.Constant) and type(first.value) is str:
        home, _, name = first.value.rpartition(".")
        yield home, name
    elif isinstance(second, ast.Constant) and type(second.value) is str and path(first):
        yield path(first), second.value


def path(node: ast.expr) -> str:
    """ "np.linalg" of such a chain of names; nothing of any other expression."""
    if isinstance(node, ast.Attribute):
        before = path(node.value)
        return before and f"{before}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def _imported(tree: ast.AST) -> dict[str, str]:
    """What each name that a text imports stands for."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {one.asname: one.name for one in node.names if one.asname}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {one.asname or one.name: f"{node.module}.{one.name}" for one in node.names}
    return found


def _told(home: str, names: Mapping[str, str]) -> str:
    first, dot, rest = home.partition(".")
    return names.get(first, first) + dot + rest

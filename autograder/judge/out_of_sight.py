"""What a test does in its own process alone: told to the instructor whose reference fails it."""

import ast
from collections.abc import Iterator

from autograder.common.syntax import parse

APART = " An answer runs in a process of its own"
PRINTED = (
    f"{APART}, where print() prints, whatever a name of the test's says: catch what it prints by "
    "contextlib.redirect_stdout, or patch builtins.print."
)
PATCHED = (
    f"{APART}: of what the test puts in another thing's place it meets only what stands in a "
    "module. Set a method of its object, or hand it a function."
)
STATE = (
    f"{APART}, with a folder, figures, a context of decimal and settings for printing of its own. "
    "Let it return what the test is to see."
)
CALLED = f"{APART}, which only the main thread of a test can call."
LENT = f"{APART}, on a disk of its own, where a test's files have neither rights nor links."
DRAWN = (
    " If the answer draws random numbers: that moves the numbers which the test draws after it by "
    "one step. Seed again before the test draws."
)
# what is put in some other thing's place, what is used, and what is to be said
SAID: tuple[tuple[frozenset[str], frozenset[str], str], ...] = (
    (frozenset(("print",)), frozenset(), PRINTED),
    (frozenset(), frozenset(("mock", "patch", "Mock", "MagicMock", "monkeypatch")), PATCHED),
    (frozenset(), frozenset(("Thread", "ThreadPoolExecutor")), CALLED),
    (frozenset(), frozenset(("chdir", "getcwd", "gca", "gcf", "get_fignums")), STATE),
    (frozenset(), frozenset(("localcontext", "getcontext", "setcontext")), STATE),
    (frozenset(), frozenset(("printoptions", "set_printoptions", "collect")), STATE),
    (frozenset(), frozenset(("chmod", "symlink", "symlink_to", "hardlink_to", "link")), LENT),
    (frozenset(), frozenset(("seed", "manual_seed", "set_state", "setstate")), DRAWN),
)


def out_of_sight(source: str) -> str:
    """What a test does that no answer sees, in a sentence or two; nothing if it does none of it."""
    tree = parse(source)
    nodes = [] if tree is None else [*ast.walk(tree)]
    put = {name for node in nodes for name in _put(node)}
    used = {name for node in nodes for name in _used(node)}
    return next((said for places, uses, said in SAID if put & places or used & uses), "")


def _put(node: ast.AST) -> Iterator[str]:
    """Names in whose place something is put, also by a text as `patch("builtins.input")` has it."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        yield node.name
    elif isinstance(node, ast.Assign):
        is_function = isinstance(node.value, ast.Lambda | ast.Name | ast.Attribute)
        for target in node.targets:  # `input = torch.ones(3)` is put in no function's place
            if isinstance(target, ast.Attribute) or (isinstance(target, ast.Name) and is_function):
                yield _last(target)
    elif isinstance(node, ast.Call):
        for one in node.args:
            if isinstance(one, ast.Constant) and isinstance(one.value, str):
                yield one.value.rpartition(".")[2]


def _used(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name | ast.Attribute):
        yield _last(node)
    elif isinstance(node, ast.Import | ast.ImportFrom):
        yield from (one.name.rpartition(".")[2] for one in node.names)


def _last(node: ast.Name | ast.Attribute) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id

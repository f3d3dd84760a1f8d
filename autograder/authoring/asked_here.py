"""What a test asks of the process that it runs in, where the answers run in another one.

Such a claim holds whatever an answer does: nobody loses by it, and nobody is told of a mistake. The
reference passes it too, so trying the tests shows nothing; it is found by reading them.
"""

import ast
import collections
import sys
from collections.abc import Iterator

from autograder.bridge.protocol import LIBRARIES
from autograder.common.syntax import parse
from autograder.judge.assignment import Assignment, Cell
from autograder.judge.put_there import path, places

# By the names that a test uses: what it asks for, and what tells it instead.
ARITHMETIC = "the settings of arithmetic", "Look at the values that come back"
STATE = "the settings", "Ask in a function that the answer gets to call"
MEMORY = "the memory and the living objects", "Count in what the answer is given"
COPIED = "what becomes of a copy", "Give the class no base, and let its objects keep the {base}"
EXAMPLES = "the examples of an answer's own", "Let the stub have those that it is to pass"
PATCHED = "what stands in a function's place", "Forbid the function in rules.toml"
ASKED = {
    "seterrcall": ARITHMETIC,
    **dict.fromkeys(("is_grad_enabled", "get_default_dtype", "get_printoptions"), STATE),
    **dict.fromkeys(("getcwd", "environ", "getenv", "active_count", "get_num_threads"), STATE),
    **dict.fromkeys(("tracemalloc", "getrefcount", "get_objects", "get_referrers"), MEMORY),
    **dict.fromkeys(("weakref", "ru_maxrss"), MEMORY),
    "doctest": EXAMPLES,
}
MODULES = sys.stdlib_module_names | LIBRARIES | {"np"}
CWD = "getcwd"
BASES = {kind.__name__: kind for kind in (list, dict, set, tuple, str, int, float)}
BASES |= {name: getattr(collections, name) for name in ("deque", "OrderedDict", "Counter")}
NOT_ASKED = ("__init__", "__new__", "__repr__", "__str__", "__format__", "__eq__", "__hash__")


def asked_here(assignment: Assignment) -> list[str]:
    """For the instructor: each test that makes such a claim, and what can be done."""
    return [
        f"{assignment.name}/{notebook.name}, test {cell.grade_id} uses {name}. Answers run in a "
        f"process of their own, of which it does not see {what}: any answer passes this. "
        f"{instead}."
        for notebook in assignment.notebooks
        for cell in notebook.of_kind("test")
        for name, (what, instead) in dict(_found(cell)).items()
    ]


def _found(cell: Cell) -> Iterator[tuple[str, tuple[str, str]]]:
    """What a test asks outside of the functions that it gives to answers, each once."""
    tree = parse(cell.source)
    left: list[ast.AST] = [] if tree is None else [tree]  # the rehearsal tells of no Python
    names: list[str] = []
    while left:
        node = left.pop()
        if isinstance(node, ast.ClassDef):
            yield from _counted(node)
        if isinstance(node, ast.Assign | ast.Call):
            yield from _put_in_place(node)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue  # an answer may be what calls it
        if isinstance(node, ast.Name | ast.Attribute):
            names.append(_last(node))
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names += [one.name.rpartition(".")[2] for one in node.names]
        left += ast.iter_child_nodes(node)
    known = (name for name in dict.fromkeys(sorted(names)) if name in ASKED)
    yield from ((name, ASKED[name]) for name in known if name != CWD or _is_claimed(tree))


def _is_claimed(tree: ast.AST | None) -> bool:
    """Whether a claim is about where the process is, and not only a path made of that."""
    every = [] if tree is None else ast.walk(tree)
    claims = (node for node in every if isinstance(node, ast.Assert))
    nodes = (node for claim in claims for node in ast.walk(claim))
    return any(isinstance(node, ast.Attribute | ast.Name) and _last(node) == CWD for node in nodes)


def _last(node: ast.Attribute | ast.Name) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id


def _put_in_place(node: ast.AST) -> Iterator[tuple[str, tuple[str, str]]]:
    """A function that a test puts another one, or nothing, in the place of, and answers miss it."""
    if isinstance(node, ast.Assign) and not _is_no_setting(node.value):
        return
    if isinstance(node, ast.Call) and path(node.func).endswith(("patch.dict", "patch.multiple")):
        yield path(node.func), PATCHED
    for home, name in places(node):
        is_known = home.partition(".")[0] in MODULES or isinstance(node, ast.Call)
        if home and is_known and home != "sys" and not _is_module(home):
            yield f"{home}.{name} = ...", PATCHED


def _is_module(home: str) -> bool:
    """Whether what stands in it for a test stands there for answers, see `judge/put_there.py`."""
    first, dot, rest = home.partition(".")
    home = {"np": "numpy"}.get(first, first) + dot + rest
    return home in sys.stdlib_module_names or home in sys.modules


def _is_no_setting(value: ast.expr) -> bool:
    """Whether this may stand where a function stood: another one, or `None`, which is none."""
    is_none = isinstance(value, ast.Constant) and value.value is None
    return is_none or isinstance(value, ast.Lambda | ast.Name)


def _counted(node: ast.ClassDef) -> Iterator[tuple[str, tuple[str, str]]]:
    """What a class made of one of Python's own counts: answers have copies of its objects."""
    told, instead = COPIED
    for base in (one.id for one in node.bases if isinstance(one, ast.Name) and one.id in BASES):
        methods = (one for one in node.body if isinstance(one, ast.FunctionDef))
        for name in (one.name for one in methods if any(map(_notes, ast.walk(one)))):
            if name not in NOT_ASKED and hasattr(BASES[base], name):
                yield f"{name} of {node.name}({base})", (told, instead.format(base=base))


def _notes(node: ast.AST) -> bool:
    """Whether something outside of a method is counted or set down here."""
    if isinstance(node, ast.AugAssign):
        return isinstance(node.target, ast.Attribute | ast.Subscript)
    called = node.func if isinstance(node, ast.Call) else None
    is_kept = isinstance(called, ast.Attribute) and called.attr in ("append", "add")
    return is_kept or isinstance(node, ast.Global | ast.Nonlocal)

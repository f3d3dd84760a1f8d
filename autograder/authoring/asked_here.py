"""What a test asks of the process that it runs in, where the answers run in another one.

Such a claim holds whatever an answer does: nobody loses by it, and nobody is told of a mistake. The
reference passes it too, so trying the tests shows nothing; it is found by reading them.
"""

import ast
from collections.abc import Iterator

from autograder.common.syntax import parse
from autograder.judge.assignment import Assignment, Cell

# By the names that a test uses: what it asks for, and what tells it instead.
PRINTED = "what is printed", "Let the answer return it, or give it a function to write with"
WARNED = "the warnings and settings of arithmetic", "Look at the values that come back"
STATE = "the settings", "Ask in a function that the answer gets to call"
MEMORY = "the memory and the living objects", "Count in what the answer is given"
PATCHED = "what stands in a function's place", "Forbid the function in rules.toml"
ASKED = {
    **dict.fromkeys(("redirect_stdout", "redirect_stderr", "capture_output"), PRINTED),
    **dict.fromkeys(("catch_warnings", "simplefilter", "filterwarnings", "warns"), WARNED),
    **dict.fromkeys(("errstate", "seterr", "seterrcall"), WARNED),
    **dict.fromkeys(("is_grad_enabled", "get_default_dtype", "get_printoptions"), STATE),
    **dict.fromkeys(("getcwd", "environ", "getenv", "active_count", "get_num_threads"), STATE),
    **dict.fromkeys(("tracemalloc", "getrefcount", "get_objects", "get_referrers"), MEMORY),
    **dict.fromkeys(("weakref", "ru_maxrss"), MEMORY),
    **dict.fromkeys(("mock", "monkeypatch"), PATCHED),
}


def asked_here(assignment: Assignment) -> list[str]:
    """For the instructor: each test that makes such a claim, and what can be done."""
    return [
        f"{assignment.name}/{notebook.name}, test {cell.grade_id} uses {name}. Answers run in a "
        f"process of their own, of which it does not see {what}: any answer passes this. "
        f"{instead}."
        for notebook in assignment.notebooks
        for cell in notebook.of_kind("test")
        for name, (what, instead) in _found(cell)
    ]


def _found(cell: Cell) -> Iterator[tuple[str, tuple[str, str]]]:
    """What a test asks outside of the functions that it gives to answers, each once."""
    tree = parse(cell.source)
    left: list[ast.AST] = [] if tree is None else [tree]  # the rehearsal tells of no Python
    names: list[str] = []
    while left:
        node = left.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue  # an answer may be what calls it
        if isinstance(node, ast.Name | ast.Attribute):
            names.append(node.id if isinstance(node, ast.Name) else node.attr)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names += [one.name.rpartition(".")[2] for one in node.names]
        left += ast.iter_child_nodes(node)
    yield from ((name, ASKED[name]) for name in dict.fromkeys(sorted(names)) if name in ASKED)

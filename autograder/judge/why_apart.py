"""Why the reference may fail a test that runs apart from it, as far as the notebook tells."""

import ast
from collections.abc import Iterator
from typing import TypeGuard

from autograder.common.results import TestRun
from autograder.common.scopes import facts
from autograder.common.syntax import altered, parse
from autograder.judge.assignment import Assignment, Notebook
from autograder.judge.beside import modules
from autograder.judge.given import locked
from autograder.judge.out_of_sight import out_of_sight

SOURCE = frozenset({"getsource", "getsourcelines", "getsourcefile", "findsource", "getcomments"})

REFUSED = (
    " SQL of an answer's attaches no file, makes no virtual table and sets nothing: let a text of "
    "your own cells do that."
)


def why(assignment: Assignment, notebook: Notebook, run: TestRun) -> str:
    """What may be the reason, and what to do; empty where nothing hints at one."""
    return (
        _withheld(assignment, run)
        or _changed_elsewhere(notebook, run)
        or _kept_in_a_module(assignment, notebook, run)
        or _noted_by_a_class(notebook, run)
        or _reads_source(notebook, run)
        or _drawn(notebook, run)
        or (REFUSED if run.message == "not authorized" else "")
        or (out_of_sight(notebook.cell(run.test).source) if run.status != "passed" else "")
    )


def _withheld(assignment: Assignment, run: TestRun) -> str:
    """That an answer lacks a file which its students do not get, if its error names one."""
    for path in assignment.files:
        named = path.stem if path.suffix == ".py" else path.name
        if path not in assignment.released and named in run.message:
            return (
                f" The release does not hold {path.relative_to(assignment.folder)} "
                "(c.CourseDirectory.ignore): only tests can read it, no answer."
            )
    return ""


def _changed_elsewhere(notebook: Notebook, run: TestRun) -> str:
    """That an answer changes what another cell of the instructor's makes, if a test looks at it."""
    given = {name for source in locked(notebook) for name in facts(source).bound}
    changed = {name for cell in notebook.of_kind("solution") for name in altered(cell.source)}
    asked = facts(notebook.cell(run.test).source).needed
    found = sorted(given & changed & asked - notebook.brought)
    if not found:
        return ""
    return (
        f" If an answer's cell changes {found[0]}, which another cell makes: tests have that as "
        "the other cell made it. Let the answer's own cell make it."
    )


def _kept_in_a_module(assignment: Assignment, notebook: Notebook, run: TestRun) -> str:
    """That answers and a test use a module beside the notebook, of which each side has its own."""
    beside = frozenset(modules(assignment, assignment.files))
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    origins = {name: module for source in code for name, module in _imports(source)}
    asked = _of_modules(notebook.cell(run.test).source, origins)
    used = [_of_modules(cell.source, origins) for cell in notebook.of_kind("solution")]
    found = sorted(asked & set[str]().union(*used) & beside)
    if not found:
        return ""
    return (
        f" If an answer changes what {found[0]}, a module beside the notebook, keeps: a test has "
        "that module for itself and does not see it. Let the answer's own cell keep it."
    )


def _noted_by_a_class(notebook: Notebook, run: TestRun) -> str:
    """That a class of the instructor's notes what classes are made of it, if a test looks at it."""
    trees = [parse(source) or ast.Module([], []) for source in locked(notebook)]
    noting = {one.name for tree in trees for one in ast.walk(tree) if _notes_classes(one)}
    found = sorted(noting & facts(notebook.cell(run.test).source).needed)
    if not found:
        return ""
    return (
        f" What {found[0]} notes of the classes that are made of it, each side has for itself: "
        "ask an answer's class, or let the answer's own cell define it."
    )


def _notes_classes(node: ast.AST) -> TypeGuard[ast.ClassDef]:
    if not isinstance(node, ast.ClassDef):
        return False
    has_metaclass = any(one.arg == "metaclass" for one in node.keywords)
    names = [getattr(one, "name", "") for one in node.body]
    return has_metaclass or "__init_subclass__" in names


def _imports(source: str) -> Iterator[tuple[str, str]]:
    """Names that a cell's imports bind, each with the module that it comes from."""
    for node in ast.walk(parse(source) or ast.Module([], [])):
        if isinstance(node, ast.ImportFrom):
            yield from ((one.asname or one.name, node.module or "") for one in node.names)
        elif isinstance(node, ast.Import):
            for one in node.names:
                yield one.asname or one.name.partition(".")[0], one.name


def _of_modules(source: str, origins: dict[str, str]) -> set[str]:
    """The modules whose names a cell uses or imports."""
    names = facts(source)
    return {origins[name] for name in names.needed | names.bound if name in origins}


def _reads_source(notebook: Notebook, run: TestRun) -> str:
    """That a test asks for the text of an answer, which only the answer's process has."""
    found = sorted(_words(notebook.cell(run.test).source) & SOURCE)
    if not found:
        return ""
    return (
        f" {found[0]} finds no text of an answer, which is in another process: test what the "
        "answer does, or forbid what it is not to use in rules.toml."
    )


def _drawn(notebook: Notebook, run: TestRun) -> str:
    """That answers and a test use what other cells draw at random, each side for itself."""
    words = {source: " ".join(_words(source)).lower() for source in locked(notebook)}
    if any("seed" in one for one in words.values()):
        return ""
    drawing = [source for source, one in words.items() if "rand" in one]
    made = {name for source in drawing for name in facts(source).bound}
    used = {name for cell in notebook.of_kind("solution") for name in facts(cell.source).needed}
    found = sorted(made & used & facts(notebook.cell(run.test).source).needed)
    if not found:
        return ""
    return (
        f" If {found[0]} is drawn at random: answers and tests run in processes of their own, and "
        "each draws another one. Let the cell that draws begin with a seed, as random.seed(1)."
    )


def _words(source: str) -> set[str]:
    """The names and attributes that a cell reads or sets."""
    nodes = list(ast.walk(parse(source) or ast.Module([], [])))
    names = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    return names | {node.id for node in nodes if isinstance(node, ast.Name)}

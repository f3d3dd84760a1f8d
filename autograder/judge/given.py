"""What an instructor's notebook says before anything runs: names, operators, imports, texts."""

import ast
import builtins
import collections.abc
import enum
import re
import symtable
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial

from autograder.bridge.reference import INSTEAD as IN_PLACE
from autograder.bridge.stand_ins import FORWARDED, NUMBERS
from autograder.common.scopes import facts
from autograder.common.syntax import altered, parse
from autograder.common.written import written
from autograder.judge.assignment import Assignment, Notebook
from autograder.judge.beside import files_of
from autograder.judge.space import Space

METHOD = re.compile(r"(?<=def )__\w+__|__\w+__(?=\s*=[^=])")
ORDER = ("__lt__", "__le__", "__gt__", "__ge__")
OPERATORS = FORWARDED | {"__hash__"}
INSTEAD = dict(zip(ORDER, ORDER[2:] + ORDER[:2], strict=True)) | IN_PLACE
INSTEAD |= {"__int__": "__index__", "__float__": "__index__", "__complex__": "__float__"}
INSTEAD["__index__"] = "__int__"
OF_NUMBERS = frozenset(("sympy", "mpmath"))  # libraries whose objects are numbers, and no values
CONVERTING = frozenset(f"__{name}__" for name in NUMBERS)


def new_space(notebook: Notebook) -> Space:
    """The names of a notebook's tests, none of them known yet."""
    answers = [cell.source for cell in notebook.of_kind("solution", "manual")]
    live = frozenset(name for source in answers for name in _used_by_functions(source))
    return Space(
        live=live,
        texts=partial(texts_of, [notebook]),
        attributes=_attributes(
            tuple(cell.source for cell in notebook.cells if cell.cell_type == "code")
        ),
        changed=_attributes(tuple(answers)),
        read=_private_reads((*locked(notebook), *answers)),
    )


@lru_cache(maxsize=64)
def _attributes(sources: tuple[str, ...]) -> frozenset[str]:
    """Names of attributes that the instructor's cells set, but for those of `self`."""
    return frozenset(
        node.attr for node in _of_others(sources) if not isinstance(node.ctx, ast.Load)
    )


@lru_cache(maxsize=64)
def _private_reads(sources: tuple[str, ...]) -> frozenset[str]:
    """Names with an underscore that the instructor's cells read of other objects than `self`."""
    return frozenset(node.attr for node in _of_others(sources) if node.attr.startswith("_"))


def _of_others(sources: tuple[str, ...]) -> Iterator[ast.Attribute]:
    """Where cells name an attribute of another object than `self`."""
    for tree in map(parse, sources):
        for node in ast.walk(tree or ast.Module([], [])):
            if isinstance(node, ast.Attribute) and not (
                isinstance(node.value, ast.Name) and node.value.id == "self"
            ):
                yield node


def texts_of(notebooks: Sequence[Notebook]) -> frozenset[str]:
    """The texts that stand in the instructor's cells."""
    given = [cell for one in notebooks for cell in one.of_kind("readonly", "code", "test")]
    return frozenset(text for cell in given for text in texts_in(cell.source))


def texts_and_references_of(notebooks: Sequence[Notebook]) -> frozenset[str]:
    """The same, and those of the references, as their docstrings."""
    given = [cell for one in notebooks for cell in one.cells if cell.cell_type == "code"]
    return frozenset(text for cell in given for text in texts_in(cell.source))


@lru_cache(maxsize=500)
def texts_in(source: str) -> frozenset[str]:
    """The texts that stand in a cell or module of the instructor's."""
    nodes = ast.walk(parse(source) or ast.Module([], []))
    return frozenset(n.value for n in nodes if isinstance(n, ast.Constant) and type(n.value) is str)


@lru_cache(maxsize=500)
def _used_by_functions(source: str) -> frozenset[str]:
    """Global names that the functions and classes of a cell of the instructor's use."""
    tree = parse(source)
    if tree is None:
        return frozenset()
    todo = symtable.symtable(written(tree), "reference", "exec").get_children()
    found: set[str] = set()
    while todo:
        table = todo.pop()
        found |= {name.get_name() for name in table.get_symbols() if name.is_global()}
        todo += table.get_children()
    return frozenset(found)


def locked(notebook: Notebook) -> list[str]:
    """The instructor's cells besides answers and tests."""
    return [cell.source for cell in notebook.of_kind("readonly", "code")]


def _references(notebook: Notebook, solutions: Sequence[str] | None) -> tuple[str, ...]:
    """The reference's answers to some questions, or to all."""
    cells = notebook.of_kind("solution")
    return tuple(c.source for c in cells if solutions is None or c.grade_id in solutions)


def used_by_references(notebook: Notebook, solutions: Sequence[str] | None) -> frozenset[str]:
    """Names that the reference's answers use, and what they use of the instructor's cells does."""
    return _used_by(_references(notebook, solutions), tuple(locked(notebook)))


@lru_cache(maxsize=500)
def _used_by(sources: tuple[str, ...], given: tuple[str, ...]) -> frozenset[str]:
    used: dict[str, set[str]] = {}  # by each function and class of the instructor's
    for source in given:
        for part in (parse(source) or ast.Module([], [])).body:
            if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                used.setdefault(part.name, set()).update(_names(part))
    found: set[str] = set()
    todo = [name for source in sources for name in _names(parse(source) or ast.Module([], []))]
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += used.get(name, ())
    return frozenset(found)


def _names(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def given_texts(assignment: Assignment, notebook: Notebook) -> tuple[str, ...]:
    """The instructor's cells besides answers and tests, and modules beside the notebook."""
    found = files_of(assignment.digest, assignment.folder, assignment.files)
    helpers = [text.decode(errors="replace") for name, text in found if name.endswith(".py")]
    return *locked(notebook), *helpers


def with_helpers(test: str, given: tuple[str, ...]) -> str:
    """A test's text, and that of all it uses of what these texts of the instructor's define."""
    made = _definitions(given)
    texts, seen, todo = [test], set[str](), [*_names_of_any(parse(test))]
    while todo:
        name = todo.pop()
        if name not in seen:
            seen.add(name)
            for text, names in made.get(name, ()):
                texts.append(text)
                todo += names
    return "\n".join(texts)


@lru_cache(maxsize=64)
def _definitions(given: tuple[str, ...]) -> dict[str, list[tuple[str, frozenset[str]]]]:
    """By each name that these texts define, what defines it, with the names in that."""
    found: dict[str, list[tuple[str, frozenset[str]]]] = {}
    for source in given:
        for part in (parse(source) or ast.Module([], [])).body:
            if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                bound = {part.name}
            else:
                bound = {n.id for n in ast.walk(part) if isinstance(n, ast.Name) and _is_set(n)}
            for name in bound:
                found.setdefault(name, []).append((written(part), _names_of_any(part)))
    return found


def _is_set(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)


def _names_of_any(tree: ast.AST | None) -> frozenset[str]:
    """Names, and those of attributes, as of the functions of a module."""
    nodes = ast.walk(tree or ast.Module([], []))
    named = (getattr(node, "id", None) or getattr(node, "attr", None) for node in nodes)
    return frozenset(name for name in named if isinstance(name, str))


def operators(notebook: Notebook, solutions: Sequence[str] | None = None) -> frozenset[str]:
    """Special methods that the reference's classes have, of some questions or of all.

    With each goes the one that Python asks in its place: of the other operand, in place, or for
    the index that a number is. A number of a library's says which one it is.
    """
    references = _references(notebook, solutions)
    own, pythons = _methods(references, _makers(notebook))
    found = own | pythons | (CONVERTING if _has_numbers(references, _makers(notebook)) else set())
    return frozenset(found | {INSTEAD[name] for name in found if name in INSTEAD})


def inherited(notebook: Notebook, solutions: Sequence[str] | None = None) -> frozenset[str]:
    """Those that they have of a class of Python's own."""
    return _methods(_references(notebook, solutions), _makers(notebook))[1]


def _makers(notebook: Notebook) -> tuple[str, ...]:
    """The instructor's cells in which classes are made of which the reference's may be made."""
    return tuple(cell.source for cell in notebook.of_kind("readonly", "code", "solution"))


@lru_cache(maxsize=500)
def _has_numbers(sources: tuple[str, ...], cells: tuple[str, ...]) -> bool:
    """Whether these take something from a library of numbers, or what a cell has made of one."""
    trees = [tree for tree in map(parse, (*cells, *sources)) if tree is not None]
    names = {name for tree in trees for node in ast.walk(tree) for name in _numbers_in(node)}
    for source in cells:
        if facts(source).needed & names:
            names |= facts(source).bound
    return any((facts(source).needed | facts(source).bound) & names for source in sources)


def _numbers_in(node: ast.AST) -> list[str]:
    """The names under which an import has a library of numbers, or what it takes from one."""
    if isinstance(node, ast.Import):
        named = [(one.name, one.asname or one.name.partition(".")[0]) for one in node.names]
    elif isinstance(node, ast.ImportFrom) and node.module:
        named = [(node.module, one.asname or one.name) for one in node.names]
    else:
        named = []
    return [name for module, name in named if module.partition(".")[0] in OF_NUMBERS]


@lru_cache(maxsize=500)
def _methods(
    sources: tuple[str, ...], others: tuple[str, ...]
) -> tuple[frozenset[str], frozenset[str]]:
    """Special methods of classes: their own and those of a decorator; those of Python's bases."""
    made = {kind.name: kind for source in others for kind in _classes(source)}
    found = {name for source in sources for name in METHOD.findall(source)}
    given: set[str] = set()
    todo, seen = [kind for source in sources for kind in _classes(source)], set()
    for source in sources:
        if re.search(r"\bnamedtuple\(", source):
            given |= _operators_of(tuple)
    while todo:
        kind = todo.pop()
        found |= {*METHOD.findall(written(kind))} | _decorated(kind)
        for base in kind.bases:
            name = _last_name(base)
            if name not in made:
                given |= _operators_of(_pythons(name))
            elif name not in seen:
                seen.add(name)
                todo.append(made[name])
    return frozenset(found), frozenset(given)


def _last_name(base: ast.expr) -> str:
    """The name of a base of a class: "Sequence" of `collections.abc.Sequence[int]`."""
    while isinstance(base, ast.Subscript | ast.Call):
        base = base.value if isinstance(base, ast.Subscript) else base.func
    return base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "")


def _pythons(name: str) -> type:
    """A class of Python's own that holds values; `object` if there is none of this name."""
    if name in ("NamedTuple", "namedtuple"):
        return tuple
    homes = (builtins, collections, collections.abc, enum)
    found = next((vars(home)[name] for home in homes if name in vars(home)), object)
    return found if isinstance(found, type) else object


def _operators_of(kind: type) -> set[str]:
    """Special methods that a class of Python's own has, but for those of every object."""
    named = OPERATORS & {name for one in kind.__mro__[:-1] for name in vars(one)}
    return {name for name in named if getattr(kind, name) is not None}


def _classes(source: str) -> list[ast.ClassDef]:
    tree = parse(source)
    return [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)] if tree else []


def _decorated(kind: ast.ClassDef) -> set[str]:
    """Special methods that decorators give a class: `total_ordering`, and those of data classes."""
    said = " ".join(map(written, kind.decorator_list))
    found = set(ORDER) if re.search(r"total_ordering|\border=True", said) else set()
    return found | ({"__hash__"} if re.search(r"\b(frozen|unsafe_hash)=True", said) else set())


def imported(notebook: Notebook) -> tuple[str, ...]:
    """Modules that the instructor's cells import."""
    return _imported(tuple(cell.source for cell in notebook.cells if cell.cell_type == "code"))


@lru_cache(maxsize=64)
def _imported(sources: tuple[str, ...]) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for source in sources:
        for node in ast.walk(parse(source) or ast.Module([], [])):
            if isinstance(node, ast.Import):
                found |= dict.fromkeys(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found[node.module] = None
    return tuple(found)


@lru_cache(maxsize=64)
def _needed_in(sources: tuple[tuple[str, str], ...]) -> frozenset[str]:
    """Names that these cells, each with its kind, take from elsewhere."""
    needed = frozenset[str]()
    while True:  # a cell may be needed for one after it
        wanted = [
            facts(source).needed
            for kind, source in sources
            if kind != "code" or (facts(source).bound | altered(source)) & needed
        ]
        if needed >= (more := needed.union(*wanted)):
            return needed
        needed = more


def needed_here(notebook: Notebook) -> frozenset[str]:
    """Names that the tests and the instructor's locked cells take from elsewhere."""
    cells = notebook.of_kind("test", "readonly", "code")
    return _needed_in(tuple((cell.kind, cell.source) for cell in cells))

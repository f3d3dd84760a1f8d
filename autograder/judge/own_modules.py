"""What the course's own modules offer that reaches names, or runs texts, by what it is handed.

A lab may load a file or get something by a name, for ends of its own; in an answer's hands that is
a way round the rules. Nobody has to list such things: the modules' texts are read, and nothing is
imported for that.
"""

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path

from autograder.common.syntax import parse
from autograder.judge import expressions
from autograder.judge.expressions import origins_of
from autograder.judge.statement import CLASSES, FUNCTIONS, Statement
from autograder.judge.vetted import is_others

RUNNING = frozenset({"eval", "exec", "compile", "__import__"})
ASKING = frozenset({"getattr", "attrgetter", "methodcaller"})
# which run, load or start what they are handed, look into any code, or let all objects be found
LOADING = frozenset({
    "builtins", "cffi", "cloudpickle", "code", "codeop", "ctypes", "dill", "gc", "imp",
    "importlib", "joblib", "marshal", "multiprocessing", "os.popen", "os.system", "pickle",
    "pkgutil", "runpy", "shelve", "subprocess", "torch.hub", "torch.jit", "torch.library",
    "torch.load", "torch.package", "torch.serialization", "torch.utils.cpp_extension",
    "unittest.mock", "zipimport",
})  # fmt: skip


@lru_cache(maxsize=10_000)
def leads_round(origin: str) -> bool:
    """Whether a full dotted name stands for such a thing in a module of the course's own."""
    seen = set[str]()
    todo = [origin]
    while todo:
        one = todo.pop()
        if one in seen:
            continue
        seen.add(one)
        name, part = _split(one)
        if not part:
            continue
        module = _module(name)
        if part in module.direct:
            return True
        todo += (f"{name}.{other}" for other in module.uses.get(part, ()))
        todo += module.origins.get(part, ())
    return False


@lru_cache(maxsize=10_000)
def _split(origin: str) -> tuple[str, str]:
    """The module in a full dotted name, if it is the course's own, and what is asked of it."""
    parts = origin.split(".")
    if not _is_own(parts[0]):
        return "", ""
    for count in range(len(parts) - 1, 0, -1):
        if _file(".".join(parts[:count])) is not None:
            return ".".join(parts[:count]), parts[count]
    return "", ""


@lru_cache(maxsize=1000)
def _is_own(package: str) -> bool:
    """Whether a package lies there, and neither Python nor pip has brought it."""
    if is_others(package):
        return False
    with suppress(ImportError, ValueError):
        return find_spec(package) is not None
    return False


@lru_cache(maxsize=1000)
def _file(name: str) -> Path | None:
    """Where the text of a module lies."""
    first, *rest = name.split(".")
    with suppress(ImportError, ValueError):
        spec = find_spec(first)
        for count in range(len(rest)):
            places = spec.submodule_search_locations if spec else None
            whole = ".".join((first, *rest[: count + 1]))
            spec = PathFinder.find_spec(whole, places) if places else None
        if spec and spec.origin and spec.origin.endswith(".py"):
            return Path(spec.origin)
    return None


@lru_cache(maxsize=500)
def _module(name: str) -> "_Module":
    path = _file(name)
    text = path.read_bytes().decode("utf-8", "replace") if path else ""
    return _Module(parse(text) or ast.Module([], []))


class _Module:
    """What one module defines: which of it leads round by itself, and what the rest uses."""

    def __init__(self, tree: ast.Module) -> None:
        held = [Statement(node) for node in tree.body]
        defined = {name for one in held for name in one.top_level}
        functions = {
            name for one in held if one.of_kind(*FUNCTIONS, *CLASSES) for name in one.binds
        }
        try:
            aliases = expressions.aliases(one.bindings for one in held)
        except expressions.TooMuch:
            aliases = {}
        self.direct: set[str] = set()
        self.uses: dict[str, set[str]] = {}  # by each name others of the module
        self.origins: dict[str, set[str]] = {}  # and what of other modules
        for one in held:
            self._add(one, aliases, defined, functions)

    def _add(
        self,
        one: Statement,
        aliases: Mapping[str, set[str]],
        defined: set[str],
        functions: set[str],
    ) -> None:
        """What a statement binds at the module's top level, and by what."""
        origins = {origin for _, origin in one.bindings.imports}  # also in a function of it
        origins = origins.union(*(origins_of(node, aliases) for node in _taken(one)))
        is_import = isinstance(one.tree.body[0], ast.Import | ast.ImportFrom)
        goes_by_text = any(_goes_by_text(call, functions) for call in one.of_kind(ast.Call))
        for name in one.top_level:
            known = aliases.get(name, set())
            taken = known if is_import else origins | known
            self.uses.setdefault(name, set()).update(one.uses.keys() & defined)
            self.origins.setdefault(name, set()).update(taken)
            if goes_by_text or any(map(_is_loading, taken)):
                self.direct.add(name)


def _taken(holds: Statement) -> Iterator[ast.expr]:
    """Names, and what is asked of names, that nothing in a statement itself binds."""
    for node in holds.of_kind(ast.Name, ast.Attribute):
        root = expressions.begin(node)
        if root is not None and id(root) in holds.free:
            yield node


def _is_loading(origin: str) -> bool:
    parts = origin.split(".")
    return any(".".join(parts[:count]) in LOADING for count in range(1, len(parts) + 1))


def _goes_by_text(call: ast.Call, own: Collection[str]) -> bool:
    """Whether this call runs a text, or gets what a text names that does not show.

    What an object has of its own, it may ask itself for by whatever name.
    """
    pickles = (word.value for word in call.keywords if word.arg == "allow_pickle")
    if any(not (isinstance(one, ast.Constant) and one.value is False) for one in pickles):
        return True
    name = expressions.called(call)
    if name in own or (name in RUNNING and isinstance(call.func, ast.Attribute)):
        return False  # of one's own, or as `re.compile` does
    if name in RUNNING:
        return True
    if name not in ASKING or getattr([*call.args, None][0], "id", "") == "self":
        return False
    names = call.args[1:2] if name == "getattr" else call.args
    return any(expressions.text(one) is None for one in names)


def know(origins: Iterable[str]) -> None:
    """Read once what these are; not what lies beside a notebook, which is there when it runs."""
    for origin in origins:
        with suppress(ImportError, ValueError):
            if find_spec(origin.partition(".")[0]) is not None:
                leads_round(origin)

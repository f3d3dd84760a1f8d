"""What a grade depends on besides the submission, as one short text: all keys come from here.

Whatever was made under another fingerprint (a grade, what known mistakes give, a rehearsal) is made
again; whatever else changes, nothing is. What counts is found by following imports: of this
package, from what grades; of the course's own modules, from what its notebooks import. Of both the
text counts without comments, layout and docstrings; of all other libraries the version does.
"""

import ast
import hashlib
import importlib.util
import json
import platform
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from autograder.common.course import Course
from autograder.common.syntax import parse
from autograder.common.whole import require_file, write_whole

if TYPE_CHECKING:
    from autograder.judge.assignment import Assignment

PACKAGE = Path(__file__).parents[1]
# What decides a score, a status or a text that is kept with them, and all that these import.
FLOORS = ("isolation", "bridge", "judge")
MODULES = (path for floor in FLOORS for path in sorted(PACKAGE.glob(f"{floor}/[a-z]*.py")))
JUDGES = ("authoring.known", *(f"{path.parent.name}.{path.stem}" for path in MODULES))
# These decide too, but what else they import does not.
ALONE = ("authoring.processes", "authoring.rehearsal", "authoring.trials", "classroom.warm")
READS_DATA = {"'__file__", "importlib.resources", "pkgutil"}
MOST_KEPT = 1000


def of(course: Course, assignment: "Assignment") -> str:
    """Changes when anything does that the grades of an assignment depend on.

    What modules say is read once a process, as modules are imported once.
    """
    known = _known(course)
    judges, libraries = _judges(course)
    own = _Modules(known, with_data=True)
    own.follow(known.imported(assignment))
    for path in assignment.files:
        if path.suffix == ".py":
            own.follow(_absolute(known.names(path), ""))
    known.save()
    versions = {name: _version(name) for name in libraries | own.libraries}
    python = platform.python_implementation(), platform.python_version()
    return _digest(assignment.digest, python, judges, own.found, versions)


def of_submission(
    course: Course, assignment: "Assignment", student: str, key: str, collected: float | None
) -> str:
    """Changes when anything does that one grade depends on.

    Args:
        course: the course.
        assignment: what was to be done.
        student: who did it.
        key: of what was handed in, see `script.Submission`.
        collected: when, in seconds since 1970, if that is known.
    """
    late = assignment.rules.late
    when = late.handed_in(student, collected) if late.due else None
    return _digest(student, assignment.name, key, when, of(course, assignment))


@cache
def _judges(course: Course) -> tuple[Mapping[str, str], set[str]]:
    """The modules that grade with a digest of each, and the libraries that they import."""
    top = __name__.partition(".")[0]
    known = _known(course)
    modules = _Modules(known, {top: [PACKAGE]})
    modules.follow(f"{top}.{name}" for name in JUDGES)
    alone = {
        f"{top}.{name}": known.digest(PACKAGE.joinpath(*name.split(".")).with_suffix(".py"))
        for name in ALONE
    }
    return modules.found | alone, modules.libraries


class _Modules:
    """The modules that are reached from some by imports, as far as they were not installed."""

    def __init__(
        self,
        known: "_Known",
        places: Mapping[str, list[Path]] | None = None,
        *,
        with_data: bool = False,
    ) -> None:
        self.found: dict[str, str] = {}  # module -> digest
        self.libraries: set[str] = set()
        self._known = known
        self._places = dict(places or {})
        self._seen: set[str] = set()
        self._with_data = with_data

    def follow(self, names: Iterable[str]) -> None:
        """Take in the modules of these dotted names; the last parts may name what is in one."""
        todo = list(names)
        while todo:
            parts = todo.pop().split(".")
            for name in (".".join(parts[:length]) for length in range(1, len(parts) + 1)):
                if name not in self._seen:
                    self._seen.add(name)
                    todo += self._read(name)

    def _read(self, name: str) -> list[str]:
        """Take in one module, if it is one; what it imports."""
        top, *rest = name.split(".")
        if top not in self._places:
            self._places[top] = [] if top in sys.stdlib_module_names else own_places(top)
            if not self._places[top] and top not in sys.stdlib_module_names:
                self.libraries.add(top)
        for place in self._places[top]:
            path = place.joinpath(*rest)
            for file in (path, path / "__init__.py", path.with_name(f"{path.name}.py")):
                if file.is_file():
                    return self._take(name, file)
        return []

    def _take(self, name: str, file: Path) -> list[str]:
        is_package = file.name == "__init__.py"
        package = name if is_package else name.rpartition(".")[0]
        names = self._known.names(file)
        self.found[name] = self._known.digest(file)
        if self._with_data and package and READS_DATA.intersection(names):
            data = sorted(path for path in file.parent.rglob("*") if _is_data(path))
            self.found[f"{name} data"] = _digest(
                [[path.relative_to(file.parent).as_posix(), _sha(path)] for path in data]
            )
        return list(_absolute(names, package))


def own_places(top: str) -> list[Path]:
    """Where a module or package of this name lies, if it is there and was not installed."""
    spec = None
    with suppress(ValueError, ImportError):
        spec = importlib.util.find_spec(top)
    if spec is None or not (spec.origin or spec.submodule_search_locations):
        return []
    installed = {Path(path).resolve() for path in (sys.prefix, sys.base_prefix)}
    places = [Path(at).resolve() for at in spec.submodule_search_locations or [spec.origin or ""]]
    return [path for path in places if path.exists() and not installed & {*path.parents}]


@cache
def _known(course: Course) -> "_Known":
    return _Known(course.root / "build" / "fingerprints.json")


class _Known:
    """What was read out of texts, kept in a file from one run to the next: reading takes long."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._modules: dict[Path, tuple[str, list[str]]] = {}
        self._maker = _digest(_sha(Path(__file__)), sys.version)
        self._read = self._load()
        self._new = False

    def digest(self, path: Path) -> str:
        """Of a module's text, without what Python does not run."""
        return self._of_module(path)[0]

    def names(self, path: Path) -> list[str]:
        """What a module imports, as `_names` gives it."""
        return self._of_module(path)[1]

    def imported(self, assignment: "Assignment") -> list[str]:
        """What an assignment's notebooks import."""
        key = f"notebooks {assignment.digest}"
        if key not in self._read:
            cells = (cell for notebook in assignment.notebooks for cell in notebook.cells)
            trees = (parse(cell.source) for cell in cells if cell.cell_type == "code")
            names = {name for tree in trees if tree for name in _names(tree)}
            self._keep(key, ["", sorted(_absolute(names, ""))])
        return self._read[key][1]

    def save(self) -> None:
        """Keep what was read for the next run."""
        if self._new:
            kept = dict(list(self._read.items())[-MOST_KEPT:])
            with suppress(OSError):  # then it is read again
                write_whole(self._path, json.dumps([self._maker, kept]))
            self._new = False

    def _of_module(self, path: Path) -> tuple[str, list[str]]:
        if path not in self._modules:
            key = _sha(path)
            if key not in self._read:
                self._keep(key, _read(path) or [key, []])
            digest, names = self._read[key]
            self._modules[path] = digest, names
        return self._modules[path]

    def _keep(self, key: str, found: list) -> None:
        self._read[key] = found
        self._new = True

    def _load(self) -> dict[str, list]:
        with suppress(OSError, ValueError, TypeError):  # missing, or cut off by a crash
            require_file(self._path)
            maker, read = json.loads(self._path.read_text(encoding="utf-8"))
            if maker == self._maker:
                return dict(read)
        return {}


def _read(path: Path) -> list | None:
    """A module's digest, and what it imports; None if it is no Python, which Python will say."""
    tree = parse(path.read_text(encoding="utf-8", errors="replace"))
    if tree is None:
        return None
    names = sorted({*_names(tree)})
    return [_digest(ast.dump(_without_docstrings(tree))), names]


def _names(tree: ast.AST) -> Iterator[str]:
    """What a text imports: dotted names, relative ones with their dots, a guess in quotes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = "." * node.level + (node.module or "")
            yield start
            yield from (f"{start.removesuffix('.')}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Name) and node.id == "__file__":
            yield "'__file__"
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            parts = node.value.split(".")  # a module that is imported by its name
            if len(parts) > 1 and all(map(str.isidentifier, parts)):
                yield f"'{node.value}"


def _absolute(names: Iterable[str], package: str) -> Iterator[str]:
    """These names as they are meant in a package."""
    top = package.partition(".")[0]
    for name in names:
        bare = name.lstrip(".")
        up = len(name) - len(bare) - 1
        if name.startswith("'"):
            if top and name[1:].partition(".")[0] == top:
                yield name[1:]
        elif up < 0:
            yield name
        elif package:  # else a file of the assignment's, and so is what it means
            parts = package.split(".")
            yield ".".join([*parts[: len(parts) - up], *filter(None, [bare])])


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                del node.body[0]
    return tree


def _is_data(path: Path) -> bool:
    return path.suffix not in (".py", ".pyc") and path.is_file()


@cache
def _version(name: str) -> str:
    """Of the library that a module belongs to; empty where there is none."""
    with suppress(metadata.PackageNotFoundError):
        return metadata.version(name)
    with suppress(ValueError, ImportError):
        if importlib.util.find_spec(name) is None:
            return ""
    return " ".join(metadata.version(one) for one in _distributions().get(name, []))


@cache
def _distributions() -> Mapping[str, list[str]]:
    return metadata.packages_distributions()  # takes a while: asked only where names differ


def _sha(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _digest(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

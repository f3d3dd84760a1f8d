"""The code of a hand-out: of some packages, the modules that are imported from where one begins."""

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from autograder.common.course import CourseError


def modules(
    packages: Mapping[str, Path], begins: Sequence[str], cells: Iterable[ast.AST]
) -> dict[str, Path]:
    """The files that a hand-out needs of these packages, by their path in it.

    Args:
        packages: name -> the folder that holds it.
        begins: names of modules that are wanted, besides what `python -m` runs of each package.
        cells: the code of the notebooks.
    """
    found: dict[str, Path] = {}
    todo = [*begins, *(f"{name}.__main__" for name in packages), *packages]
    todo += [name for cell in cells for name in _imported(cell, ())]
    while todo:
        parts = tuple(todo.pop().split("."))
        path = _file(packages, parts)
        if path is None:
            continue
        inside = "/".join(parts) + ("/__init__.py" if path.stem == "__init__" else ".py")
        if inside in found:
            continue
        found[inside] = path
        package = parts if path.stem == "__init__" else parts[:-1]
        todo += _imported(_parsed(path), package)
        todo += [".".join(parts[:end]) for end in range(1, len(parts))]
    return dict(sorted(found.items()))


def _parsed(path: Path) -> ast.AST:
    try:
        return ast.parse(path.read_text(encoding="utf-8-sig"))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        said = str(error).partition("\n")[0]
        raise CourseError(
            f"{path} is no Python ({said}), and notebooks import it; mend it."
        ) from error


def data(root: Path, told: Mapping[str, Sequence[str]]) -> dict[str, Path]:
    """The files beside the modules of some packages, by their path in a hand-out.

    Args:
        root: the course's folder.
        told: package -> patterns, as pyproject.toml has them in [tool.setuptools.package-data].
    """
    return {
        path.relative_to(root).as_posix(): path
        for package, patterns in told.items()
        for pattern in patterns
        for path in root.joinpath(*package.split(".")).glob(pattern)
        if path.is_file()
    }


def _file(packages: Mapping[str, Path], parts: tuple[str, ...]) -> Path | None:
    """The file of a module that belongs to one of the packages."""
    if parts[0] not in packages or not all(part.isidentifier() for part in parts):
        return None
    path = packages[parts[0]].joinpath(*parts)
    return next(filter(Path.is_file, (path / "__init__.py", path.with_suffix(".py"))), None)


def _imported(tree: ast.AST, package: tuple[str, ...]) -> Iterator[str]:
    """Names of what some code imports, wherever it does."""
    for node in _at_run_time(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def _at_run_time(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those that only a type checker reads."""
    for node in ast.iter_child_nodes(tree):
        if not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
            yield node
            yield from _at_run_time(node)

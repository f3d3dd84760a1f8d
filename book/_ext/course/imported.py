"""Which files of the project decide what a page's cells print.

They are found by following imports: from the page's cells to modules of the project, from those to
others. A text in a cell that is the path of a file or folder of the project, as seen from the page,
counts too, because the cell reads what is there.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

CELL = re.compile(r"^(```+)\{code-cell\}[^\n]*\n(.*?)^\1[ ]*$", re.DOTALL | re.MULTILINE)
OPTIONS = re.compile(r"\A(?:---\n.*?^---\n|(?::[^\n]*\n)*)", re.DOTALL | re.MULTILINE)


def decisive_files(page: Path, root: Path) -> list[Path]:
    """Return the project's modules that a page imports, at once or not, and the data it names."""
    found: set[Path] = set()
    names: list[str] = []
    for cell in code_cells(page.read_text(encoding="utf-8")):
        tree = ast.parse(cell, filename=str(page))
        names += imported_names(tree)
        found |= set(named_files(tree, page.parent, root))
    return sorted(found | reached_modules(names, root))


def code_cells(text: str) -> list[str]:
    """Return the code of a page's cells, without their options."""
    return [OPTIONS.sub("", body, count=1) for _, body in CELL.findall(text)]


def imported_names(tree: ast.AST, package: str = "") -> Iterator[str]:
    """Yield the dotted names that code imports; the last part may be what a module holds."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) + 1 - node.level]
            parts = [*(above if node.level else ()), *filter(None, [node.module])]
            yield from (".".join([*parts, alias.name]) for alias in node.names)


def reached_modules(names: list[str], root: Path) -> set[Path]:
    """Return the modules below a root that are reached from these names by imports."""
    found: set[Path] = set()
    seen: set[str] = set()
    todo = list(names)
    while todo:
        parts = todo.pop().split(".")
        for length in range(1, len(parts) + 1):
            name = ".".join(parts[:length])
            if name in seen:
                continue
            seen.add(name)
            place = root.joinpath(*parts[:length])
            for file, package in (
                (place / "__init__.py", name),
                (place.with_name(f"{place.name}.py"), name.rpartition(".")[0]),
            ):
                if file.is_file():
                    found.add(file)
                    todo += imported_names(ast.parse(file.read_text(encoding="utf-8")), package)
    return found


def named_files(tree: ast.AST, folder: Path, root: Path) -> Iterator[Path]:
    """Yield the project's files that a text in the code is the path of, or that lie there."""
    for node in ast.walk(tree):
        text = node.value if isinstance(node, ast.Constant) else None
        if not isinstance(text, str) or not re.fullmatch(r"[\w.-]+(/[\w.-]+)+", text):
            continue
        place = (folder / text).resolve()
        if root.resolve() in place.parents:
            yield from (one for one in [place, *place.rglob("*")] if one.is_file())

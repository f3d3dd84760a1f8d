"""Make tests run apart from their notebook; those that cannot say so, with words on what to do.

A test that needs the notebook's shell costs its own points and no others: it is told of when the
tests are tried, and fails, for whoever hands in, as no fault of theirs. What stands in a test in
any other way that nobody could grade is refused with its notebook.
"""

import ast
import builtins
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from autograder.common.course import CourseError
from autograder.common.plain_python import LINE, without_magic_lines, without_magics
from autograder.common.scopes import facts
from autograder.common.syntax import awaits, parse, top_level_names

if TYPE_CHECKING:
    from autograder.judge.assignment import Cell, Notebook

IN_EVERY_MODULE = frozenset({*dir(builtins), "__name__", "__file__", "__doc__", "__builtins__"})
IN_EVERY_CELL = IN_EVERY_MODULE | {"display"}  # which tests have, as in a notebook
OF_THE_SHELL = frozenset({"get_ipython", "In", "Out", "_", "__", "___", "_i", "_ih", "_oh"})


HARMLESS = re.compile(  # magics without which a test claims the same
    r"\s*+(%(matplotlib|load_ext|reload_ext|autoreload|config|whos?|time|timeit)\b|"
    r"%%(time|timeit)\b|%%capture\s*+$)"
)


def apart(path: Path, notebook: "Notebook") -> "Notebook":
    """The notebook with tests that can run in a process of their own; raises CourseError."""
    known: dict[str, int] = {}  # name -> the first cell that defines it
    anything = False
    for number, cell in enumerate(notebook.cells):
        if cell.cell_type == "code":
            found = facts(cell.source)
            anything = anything or found.star
            for name in found.bound:
                known.setdefault(name, number)
    cells = list(notebook.cells)
    for number, cell in enumerate(cells):
        if cell.kind == "test":
            where = f"{path}, cell {cell.grade_id}"
            runs, cannot = _as_python(where, cell.source)
            if not cannot and not anything:
                cannot = _check_names(where, runs, number, notebook, known)
            if cannot:
                runs = f"raise RuntimeError({cannot!r})"
            if runs != cell.source:
                cells[number] = replace(cell, source=runs, text=cell.source, cannot=cannot)
    return replace(notebook, cells=tuple(cells))


def _as_python(where: str, source: str) -> tuple[str, str]:
    """What runs of a test, as plain Python, and why it cannot; lines keep their numbers."""
    if "### AUTOTEST" in source or "### HASHED AUTOTEST" in source:
        raise CourseError(
            f"{where}: tests that nbgrader writes (AUTOTEST) are not in the source yet; write the "
            "asserts themselves."
        )
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        if parse(source) is None:
            raise CourseError(
                f"{where}: line {error.lineno} is no Python ({error.msg}); mend it."
            ) from error
        return _without_harmless(source, error.lineno or 1)
    if awaits(tree):
        return source, (
            "it waits at its top level, which only a notebook can; call asyncio.run(...) instead."
        )
    return source, ""


def _without_harmless(source: str, first: int) -> tuple[str, str]:
    """A test without those of its magics that do nothing for it; why it cannot, if one does."""
    runs = without_magic_lines(source)
    pairs = list(zip(LINE.split(source), LINE.split(runs), strict=False))
    needed = [n for n, (old, new) in enumerate(pairs, 1) if old != new and not HARMLESS.match(old)]
    try:
        ast.parse(runs)
        is_python = bool(runs.strip())
    except SyntaxError:
        is_python = False
    if is_python and not needed:
        return runs, ""
    return source, (
        f"line {(needed or [first])[0]} is a magic or a shell command, which a test cannot use "
        "because tests run apart from the notebook; write plain Python."
    )


def _is_unsolved(cell: "Cell") -> bool:
    """Whether an answer's cell defines nothing."""
    tree = parse(cell.source) if cell.kind == "solution" else None
    return tree is not None and not top_level_names(tree)


def _check_readable(where: str, name: str, above: Sequence["Cell"]) -> None:
    """Say which cell above a test may define a name and is no Python, if there is one."""
    for number, cell in enumerate(above, 1):
        if cell.cell_type != "code" or parse(cell.source) is not None:
            continue
        try:
            ast.parse(without_magics(cell.source))
        except (SyntaxError, ValueError, RecursionError) as error:
            line = (
                f": {error.text.strip()}" if isinstance(error, SyntaxError) and error.text else ""
            )
            why = error.msg if isinstance(error, SyntaxError) else str(error)
            raise CourseError(
                f"{where}: the test uses {name}, and cell {cell.grade_id or number}, which may "
                f"define it, is no Python ({why}{line}); mend that cell."
            ) from error


BY_STUDENT = (
    "; where a student is to define it, mark the cell for that as an answer (nbgrader's "
    '"Autograded answer"), with your own answer in it'
)


def _check_names(
    where: str, source: str, number: int, notebook: "Notebook", known: dict[str, int]
) -> str:
    """Require that a cell above defines what a test needs; why it cannot have it from a shell."""
    needed = sorted(facts(source).needed - IN_EVERY_CELL)
    for name in needed:
        if name not in known and name not in OF_THE_SHELL:
            _check_readable(where, name, notebook.cells[:number])
            empty = [one.grade_id for one in notebook.cells[:number] if _is_unsolved(one)]
            solved = f", or write the solution missing in cell {empty[-1]}" if empty else BY_STUDENT
            raise CourseError(
                f"{where}: the test uses {name}, which no cell of the notebook defines; import or "
                f"define it in the test or in a cell above{solved}."
            )
        if known.get(name, number) > number:
            below = notebook.cells[known[name]]
            raise CourseError(
                f"{where}: the test uses {name}, which is defined only further down, in cell "
                f"{below.grade_id or known[name] + 1}; move one of the two{BY_STUDENT}."
            )
    shell = [name for name in needed if name not in known]
    return (
        f"it uses {shell[0]}, which a notebook's shell has and a test, run apart from it, has not; "
        "let the answer define a function or a value, and ask for that."
        if shell
        else ""
    )

"""Refuse tests that cannot run apart from their notebook, with words on what to do."""

import ast
import builtins
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from autograder.common.course import CourseError
from autograder.common.plain_python import without_magics
from autograder.common.scopes import facts
from autograder.common.syntax import awaits, parse, top_level_names

if TYPE_CHECKING:
    from autograder.judge.assignment import Cell, Notebook

IN_EVERY_MODULE = frozenset({*dir(builtins), "__name__", "__file__", "__doc__", "__builtins__"})
IN_EVERY_CELL = IN_EVERY_MODULE | {"display"}  # which tests have, as in a notebook
OF_THE_SHELL = frozenset({"get_ipython", "In", "Out", "_", "__", "___", "_i", "_ih", "_oh"})


def check_tests(path: Path, notebook: "Notebook") -> None:
    """Refuse tests that cannot run in a process of their own."""
    known: dict[str, int] = {}  # name -> the first cell that defines it
    anything = False
    for number, cell in enumerate(notebook.cells):
        if cell.cell_type == "code":
            found = facts(cell.source)
            anything = anything or found.star
            for name in found.bound:
                known.setdefault(name, number)
    for number, cell in enumerate(notebook.cells):
        if cell.kind == "test":
            where = f"{path}, cell {cell.grade_id}"
            _check_python(where, cell.source)
            if not anything:
                _check_names(where, cell, number, notebook, known)


def _check_python(where: str, source: str) -> None:
    """A test is plain Python, not the notebook's extension of it."""
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
        raise CourseError(
            f"{where}: line {error.lineno} is a magic or a shell command, which a test cannot use "
            "because tests run apart from the notebook; write plain Python."
        ) from error
    if awaits(tree):
        raise CourseError(
            f"{where}: the test waits at its top level, which only a notebook can; call "
            "asyncio.run(...) instead."
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
    where: str, cell: "Cell", number: int, notebook: "Notebook", known: dict[str, int]
) -> None:
    """Every name that a test needs is defined by a cell above it."""
    for name in sorted(facts(cell.source).needed - IN_EVERY_CELL):
        if name not in known:
            if name in OF_THE_SHELL:
                raise CourseError(
                    f"{where}: the test uses {name}, which a notebook's shell has and a test, run "
                    "apart from it, has not; let the answer define a function or a value, and ask "
                    "for that."
                )
            _check_readable(where, name, notebook.cells[:number])
            empty = [one.grade_id for one in notebook.cells[:number] if _is_unsolved(one)]
            solved = f", or write the solution missing in cell {empty[-1]}" if empty else BY_STUDENT
            raise CourseError(
                f"{where}: the test uses {name}, which no cell of the notebook defines; import or "
                f"define it in the test or in a cell above{solved}."
            )
        if known[name] > number:
            below = notebook.cells[known[name]]
            raise CourseError(
                f"{where}: the test uses {name}, which is defined only further down, in cell "
                f"{below.grade_id or known[name] + 1}; move one of the two{BY_STUDENT}."
            )

"""Read an exercise source (py:percent), refuse what is broken, and write the instructor's notebook.

The short cell headers, in full:

    # %% [markdown]                                 prose
    # %% setup                                      imports; locked for the student
    # %% solution="id" [export]                     a cell the student completes
    # %% test="id-what" points=2                    an autograded test of the solution above
    # %% [markdown] manual="id" points=2            a written answer, graded by hand
    # %%                                            a cell to look around, not graded
"""

import ast
import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder.common.course import CourseError

BEGIN_SOLUTION, END_SOLUTION = "### BEGIN SOLUTION", "### END SOLUTION"
BEGIN_HIDDEN, END_HIDDEN = "### BEGIN HIDDEN TESTS", "### END HIDDEN TESTS"
MARKS = (BEGIN_SOLUTION, END_SOLUTION, BEGIN_HIDDEN, END_HIDDEN)
MEANT_AS_MARK = re.compile(
    r"^[ \t]*(#+[ \t]*(?:BEGIN|END)[ _-]*(?:SOL|HID|TEST).*?)[ \t]*$", re.MULTILINE
)

ID = r'"(?P<id>[^"]*)"'
HEADERS = {
    "text": re.compile(r"# %% \[markdown\]"),
    "setup": re.compile(r"# %% setup"),
    "solution": re.compile(rf"# %% solution={ID}(?P<export> export)?"),
    "test": re.compile(rf"# %% test={ID} points=(?P<points>\S+)"),
    "manual": re.compile(rf"# %% \[markdown\] manual={ID} points=(?P<points>\S+)"),
    "code": re.compile(r"# %%"),
}
GRADE_ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
HEADING = re.compile(
    r"^## (?P<number>\d+\.\d+) (?P<title>.+?)\s+"
    r"\((?P<points>\d+) points?, about (?P<minutes>\d+) minutes, "
    r"difficulty (?P<difficulty>[1-5]) of 5\)$",
    re.MULTILINE,
)


class SourceError(CourseError):
    """A source that cannot be built: file, line, cell and what to do."""


@dataclass(frozen=True)
class Cell:
    """One cell of an exercise source."""

    kind: str  # a key of HEADERS
    source: str
    line: int  # of its header in the file
    id: str = ""
    points: int = 0
    export: bool = False

    @property
    def is_code(self) -> bool:
        """Whether the cell holds code."""
        return self.kind in ("setup", "solution", "test", "code")


@dataclass(frozen=True)
class Question:
    """A heading of an exercise and the cells under it that carry points."""

    number: str
    title: str
    points: int
    minutes: int
    difficulty: int
    solutions: tuple[str, ...]
    graded: tuple[str, ...]  # ids of test and manual cells


@dataclass(frozen=True)
class Source:
    """A chapter's exercise, read and found sound."""

    path: Path
    cells: tuple[Cell, ...]
    digest: str  # of the text; a release carries it, so that a stale one is noticed

    def of_kind(self, *kinds: str) -> list[Cell]:
        """The cells of these kinds, in order."""
        return [cell for cell in self.cells if cell.kind in kinds]

    def solution(self, id: str) -> Cell:
        """The solution cell of this id."""
        return next(cell for cell in self.of_kind("solution") if cell.id == id)

    def tests_of(self, solution: str) -> list[str]:
        """Ids of the test cells that follow a solution cell."""
        current, found = "", []
        for cell in self.cells:
            if cell.kind == "solution":
                current = cell.id
            elif cell.kind == "test" and current == solution:
                found.append(cell.id)
        return found

    def questions(self) -> list[Question]:
        """The exercise's questions, as its headings announce them."""
        return _questions(self.path, self.cells)


def read_source(path: Path, text: str | None = None) -> Source:
    """Read and check a source; raises SourceError with what to do.

    Args:
        path: of the file.
        text: what the file might hold, in place of what it holds.
    """
    text = _text(path) if text is None else text.removeprefix("\ufeff")
    cells = tuple(_cells(path, text))
    for check in (_check_cells, _check_ids, _check_setup, _check_tests, _questions):
        check(path, cells)
    return Source(path, cells, _digest(text))


def digest_of(path: Path) -> str:
    """A fingerprint of a source's text."""
    return _digest(_text(path))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def made_from(path: Path) -> str:
    """The fingerprint of the source that a notebook was made from; empty if it says none."""
    if not path.is_file():
        return ""
    try:
        metadata = json.loads(path.read_text(encoding="utf-8"))["metadata"]
        return metadata.get("autograder", {}).get("source_sha256", "")
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
        return ""  # a merge's marks or half a file: it is made again


def _text(path: Path) -> str:
    if not path.is_file():
        raise SourceError(f"{path} does not exist; a chapter's source has its folder's name.")
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise SourceError(f"{path} is no text in UTF-8 ({error}); save it so.") from error


def notebook(source: Source) -> str:
    """The instructor's notebook as text; the same source gives the same bytes."""
    cells = [_notebook_cell(number, cell) for number, cell in enumerate(source.cells, 1)]
    content = {
        "cells": cells,
        "metadata": {
            "autograder": {"source_sha256": source.digest},
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def fill_in(cell: Cell, answer: str) -> Cell:
    """The same cell with another source."""
    return Cell(cell.kind, answer, cell.line, cell.id, cell.points, cell.export)


def _cells(path: Path, text: str) -> Iterable[Cell]:
    headers = [
        (number, line.rstrip())
        for number, line in enumerate(text.splitlines(), 1)
        if line.startswith("# %%")
    ]
    first = next((n for n, line in enumerate(text.splitlines(), 1) if line.strip()), 0)
    if not headers or headers[0][0] != first:
        raise SourceError(f"{path}, line {first}: a source starts with a cell header '# %% ...'.")
    import jupytext  # takes a second: grading, which only compares digests, does without

    cells = jupytext.reads(text, fmt="py:percent").cells
    if len(cells) != len(headers):
        raise SourceError(
            f"{path}: {len(headers)} cell headers but {len(cells)} cells were read; "
            "look for a header inside a string."
        )
    for (line, header), cell in zip(headers, cells, strict=True):
        yield _cell(path, line, header, cell.source)


def _cell(path: Path, line: int, header: str, source: str) -> Cell:
    kind, match = next(
        ((kind, match) for kind, form in HEADERS.items() if (match := form.fullmatch(header))),
        ("", None),
    )
    if match is None:
        raise SourceError(
            f"{path}, line {line}: cannot read the cell header {header!r}; write one of "
            '[markdown], setup, solution="id" [export], test="id" points=2, '
            '[markdown] manual="id" points=2, or nothing, after "# %%".'
        )
    found = match.groupdict()
    if kind in ("solution", "test", "manual") and not GRADE_ID.fullmatch(found["id"]):
        raise SourceError(
            f"{path}, line {line}: the id {found['id']!r} should be lower-case letters, digits "
            "and single hyphens, such as padding-mask-values."
        )
    points = found.get("points")
    if points is not None and not re.fullmatch(r"[1-9]\d*", points):
        raise SourceError(
            f"{path}, line {line}, cell {found['id']}: points={points} is not a positive whole "
            "number; write points=2."
        )
    return Cell(
        kind, source, line, found.get("id") or "", int(points or 0), bool(found.get("export"))
    )


def _where(path: Path, cell: Cell) -> str:
    return f"{path}, line {cell.line}, cell {cell.id or cell.kind}"


def _check_cells(path: Path, cells: Sequence[Cell]) -> None:
    """Code compiles; markers come in pairs and where they belong."""
    pairs = {"solution": (BEGIN_SOLUTION, END_SOLUTION), "test": (BEGIN_HIDDEN, END_HIDDEN)}
    for cell in cells:
        if cell.is_code:
            _check_compiles(path, cell)
        for mark in MEANT_AS_MARK.findall(cell.source):
            if mark not in MARKS:  # what it should cut out would be released
                raise SourceError(
                    f"{_where(path, cell)}: {mark!r} is no mark; write one of {', '.join(MARKS)}."
                )
        for kind, (begin, end) in pairs.items():
            marks = re.findall(f"{begin}|{end}", cell.source)
            allowed = cell.kind == kind or (kind == "solution" and cell.kind == "manual")
            if marks and not allowed:
                raise SourceError(
                    f"{_where(path, cell)}: {marks[0]!r} belongs in a {kind} cell; give the cell "
                    f"the header {kind}=... or move the marked lines."
                )
            if marks != [begin, end] * (len(marks) // 2):
                raise SourceError(
                    f"{_where(path, cell)}: {begin!r} and {end!r} should alternate; "
                    "add the one that is missing."
                )
        if cell.kind in ("solution", "manual") and BEGIN_SOLUTION not in cell.source:
            raise SourceError(
                f"{_where(path, cell)}: no {BEGIN_SOLUTION!r}; without it the answer would be "
                "released."
            )


def _check_compiles(path: Path, cell: Cell) -> None:
    try:
        tree = ast.parse(cell.source)
    except SyntaxError as error:
        raise SourceError(
            f"{_where(path, cell)}: line {error.lineno} of the cell is no Python ({error.msg})."
        ) from error
    if cell.kind != "test" or not tree.body:
        return
    last = tree.body[-1]
    if isinstance(last, ast.Expr) and not _is_check(last.value):
        raise SourceError(
            f"{_where(path, cell)}: the cell ends in an expression, which nbgrader reads as a "
            "partial score; end it with an assert."
        )


def _is_check(value: ast.expr) -> bool:
    return (
        isinstance(value, ast.Call)
        and isinstance(value.func, ast.Name)
        and (value.func.id.startswith("assert_") or value.func.id == "visible_passed")
    )


def _check_ids(path: Path, cells: Sequence[Cell]) -> None:
    seen: dict[str, int] = {}
    for cell in cells:
        if cell.id in seen and cell.id:
            raise SourceError(
                f"{_where(path, cell)}: the id is used on line {seen[cell.id]} already; "
                "rename one of the two."
            )
        seen[cell.id] = cell.line


def _check_setup(path: Path, cells: Sequence[Cell]) -> None:
    setups = [cell for cell in cells if cell.kind == "setup"]
    if len(setups) != 1:
        raise SourceError(
            f"{path}: {len(setups)} setup cells; a source has exactly one '# %% setup' cell "
            "with its imports."
        )


def _check_tests(path: Path, cells: Sequence[Cell]) -> None:
    """Every solution is tested, every test has a solution above it whose id begins its own."""
    solution: Cell | None = None
    tested = True
    for cell in [*cells, Cell("solution", "", 0)]:
        if cell.kind == "solution":
            if solution is not None and not tested:
                raise SourceError(
                    f"{_where(path, solution)}: a solution without a test; add a cell "
                    f'test="{solution.id}-values" points=... below it.'
                )
            solution, tested = cell, False
        elif cell.kind == "test":
            if solution is None or not cell.id.startswith(solution.id):
                above = solution.id if solution else "none"
                raise SourceError(
                    f"{_where(path, cell)}: a test's id starts with the id of the solution above "
                    f"it ({above}); rename or move it."
                )
            tested = True


def _questions(path: Path, cells: Sequence[Cell]) -> list[Question]:
    """The questions by heading; the points announced are those of the cells below."""
    questions: list[Question] = []
    starts = [n for n, cell in enumerate(cells) if cell.kind == "text" and "## " in cell.source]
    for start, stop in zip(starts, [*starts[1:], len(cells)], strict=True):
        below = [cell for cell in cells[start:stop] if cell.points]
        match = HEADING.search(cells[start].source)
        if not match:
            if below:
                raise SourceError(
                    f"{_where(path, cells[start])}: the heading of {below[0].id} should read "
                    "'## 1.2 Title   (4 points, about 15 minutes, difficulty 2 of 5)'."
                )
            continue
        total = sum(cell.points for cell in below)
        if int(match["points"]) != total:
            raise SourceError(
                f"{_where(path, cells[start])}: question {match['number']} announces "
                f"{match['points']} points, its cells carry {total}; make them agree."
            )
        if match["number"] in [question.number for question in questions]:
            raise SourceError(
                f"{_where(path, cells[start])}: there is a question {match['number']} already; "
                "give this one a number of its own."
            )
        solutions = tuple(cell.id for cell in cells[start:stop] if cell.kind == "solution")
        graded = tuple(cell.id for cell in below)
        question = Question(
            number=match["number"],
            title=match["title"],
            points=total,
            minutes=int(match["minutes"]),
            difficulty=int(match["difficulty"]),
            solutions=solutions,
            graded=graded,
        )
        questions.append(question)
    if sum(question.points for question in questions) != sum(cell.points for cell in cells):
        raise SourceError(f"{path}: a cell with points stands above the first question's heading.")
    return questions


def _notebook_cell(number: int, cell: Cell) -> dict:
    metadata: dict = {}
    if cell.kind in ("setup", "solution", "test", "manual"):
        metadata["nbgrader"] = {
            "grade": cell.kind in ("test", "manual"),
            "grade_id": cell.id or cell.kind,
            "locked": cell.kind in ("setup", "test"),
            "schema_version": 3,
            "solution": cell.kind in ("solution", "manual"),
            "task": False,
        }
        if cell.points:
            metadata["nbgrader"]["points"] = cell.points
    if cell.export:
        metadata["tags"] = ["export"]
    base = {
        "cell_type": "code" if cell.is_code else "markdown",
        "id": cell.id or (cell.kind if cell.kind == "setup" else f"{cell.kind}-{number:02d}"),
        "metadata": metadata,
        "source": cell.source.splitlines(keepends=True),
    }
    return base | {"execution_count": None, "outputs": []} if cell.is_code else base

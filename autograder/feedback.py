"""What a student reads: his answers, what went wrong in words, and of a hidden test its claim only.

`page` writes the page of one notebook from what grading found. `ForStudents` does the same for
stock `nbgrader generate_feedback`, from the outputs that lie in the graded notebook.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from html import escape
from typing import Any, Protocol

from markupsafe import Markup
from nbconvert.preprocessors.sanitize import SanitizeHTML
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell, new_output
from nbgrader.preprocessors import NbGraderPreprocessor

from autograder import pages
from autograder.diagnose import MISSING, UNANSWERED, claim_of, clean
from autograder.pages import inert_page
from autograder.results import NotebookResult, Verdict
from autograder.source import visible_part

ANSI = re.compile(r"\x1b\[[0-9;]*m")
WORTH = re.compile(r"\s*\([^()]*\bpoints?\b[^()]*\)$")  # a heading's "(4 points, ...)"
NOTES = "autograder-notes"  # id of the cell that says what was odd about a submission
PASSED = "Visible tests passed"  # what a notebook prints before its hidden tests begin
TRY_IT = "Run this cell in your notebook to see the details."
HIDDEN = "Your visible tests pass; this is a hidden one, with other sizes or numbers."
LONGEST_SOURCE = 20_000  # characters of an answer
LONGEST_OUTPUT = 2_000  # characters of what an answer printed
STATES = {
    "passed": "passed",
    "failed": "failed",
    "error": "stopped with an error",
    "timeout": "not finished in time",
    "died": "crashed",
    "unanswered": "not answered",
    "forbidden": "not allowed",
    "test-error": "not graded",
}


class PageCell(Protocol):
    """What a page has to know of a cell of the instructor's notebook."""

    @property
    def grade_id(self) -> str:
        """The cell's name; empty if it has none."""
        ...

    @property
    def kind(self) -> str:
        """markdown, code, solution, test, manual, readonly or task."""
        ...

    @property
    def cell_type(self) -> str:
        """code, markdown or raw."""
        ...

    @property
    def source(self) -> str:
        """The instructor's source."""
        ...

    @property
    def points(self) -> float:
        """What it is worth."""
        ...


class PageNotebook(Protocol):
    """What a page has to know of the instructor's notebook."""

    @property
    def cells(self) -> Iterable[PageCell]:
        """Its cells, in order."""
        ...


@dataclass
class Section:
    """One question of the page: its heading and what the student gets to see below it."""

    title: str
    anchor: str
    parts: list[dict[str, Any]] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)

    @property
    def score(self) -> float:
        """Points earned."""
        return sum(verdict.score for verdict in self.verdicts)

    @property
    def points(self) -> float:
        """Points of its automatic tests."""
        return sum(verdict.points for verdict in self.verdicts)


def prepare() -> None:
    """Have ready what every page needs."""
    pages.prepare("feedback.html")
    _styles()


def page(result: NotebookResult, notebook: PageNotebook, student: str, book: str = "") -> str:
    """The feedback page of one notebook, complete in itself.

    Args:
        result: what grading found.
        notebook: the instructor's notebook; gives the headings and the order.
        student: the name at the top.
        book: where the book lies, as a link; empty if students have no copy.
    """
    if result.reason:
        return inert_page(
            "unreadable.html", chapter=result.name, student=student, reason=clean(result.reason)
        )
    sections = _sections(result, notebook, book)
    return inert_page(
        "feedback.html",
        name=result.name,
        student=student,
        sections=sections,
        score=sum(section.score for section in sections),
        points=sum(section.points for section in sections),
        verdicts=[verdict for section in sections for verdict in section.verdicts],
        by_hand=any(part["by_hand"] for section in sections for part in section.parts),
        notes=result.notes,
        styles=Markup(_styles()),
        states=STATES,
        phrases=_phrases,
        hidden=HIDDEN,
    )


def _sections(result: NotebookResult, notebook: PageNotebook, book: str) -> list[Section]:
    """The notebook cut at its headings; those without an answer or a test are left out."""
    verdicts = {verdict.test: verdict for verdict in result.verdicts}
    sections = [Section("", "start")]
    for cell in notebook.cells:
        title = _heading(cell)
        if title:
            sections.append(Section(title, f"question-{len(sections)}"))
        section = sections[-1]
        if cell.kind in ("solution", "manual", "task"):
            section.parts.append(_answer(cell, result))
        elif cell.kind == "test" and cell.grade_id in verdicts:
            section.verdicts.append(verdicts[cell.grade_id])
            section.parts.append(_test(verdicts[cell.grade_id], book))
    return [section for section in sections if section.parts]


def _heading(cell: PageCell) -> str:
    if cell.cell_type != "markdown" or cell.kind not in ("markdown", "readonly", "task"):
        return ""
    lines = (line for line in cell.source.splitlines() if re.match(r"#{1,3} ", line))
    title = next(lines, "").lstrip("#").strip()
    return WORTH.sub("", title)


def _answer(cell: PageCell, result: NotebookResult) -> dict[str, Any]:
    source = result.answers.get(cell.grade_id)
    return {
        "kind": "answer",
        "id": cell.grade_id,
        "by_hand": cell.kind != "solution",
        "points": cell.points,
        "missing": source is None,
        "source": _source(_cut(source or "", LONGEST_SOURCE), is_code=cell.cell_type == "code"),
    }


def _test(verdict: Verdict, book: str) -> dict[str, Any]:
    return {
        "kind": "test",
        "id": verdict.test,
        "by_hand": False,
        "verdict": verdict,
        "read": _place(verdict.read, book),
    }


def _place(read: str, book: str) -> tuple[str, str]:
    """Where to read on: the words, and the link; empty if there is none."""
    name, _, label = read.partition("#")
    if not re.fullmatch(r"[\w-]+", name) or not re.fullmatch(r"[\w-]*", label):
        return "", ""
    words = ", ".join(filter(None, (name.replace("_", " "), label.replace("-", " "))))
    return words, f"{book.rstrip('/')}/{name}.html#{label}" if book else ""


def _phrases(text: str) -> list[tuple[bool, str]]:
    """A sentence cut at its backticks: whether a piece is code, and the piece."""
    return [(bool(i % 2), piece) for i, piece in enumerate(clean(text).split("`"))]


def _cut(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    return f"{text[:longest]}\n… ({len(text) - longest} more characters)"


def _source(source: str, *, is_code: bool) -> str:
    """An answer, escaped; code in colours where pygments is installed."""
    text = clean(source).strip("\n")
    if is_code and _coloured() is not None:
        highlight, lexer, formatter = _coloured()
        return Markup(highlight(text, lexer, formatter))
    return text


@cache
def _coloured() -> Any:
    """Pygments' function, lexer and formatter; None if it is not installed."""
    try:
        from pygments import highlight
        from pygments.formatters import HtmlFormatter
        from pygments.lexers import PythonLexer
    except ImportError:
        return None
    return highlight, PythonLexer(stripnl=False), HtmlFormatter(nowrap=True)


@cache
def _styles() -> str:
    """The colours of code, on light and on dark ground."""
    if _coloured() is None:
        return ""
    from pygments.formatters import HtmlFormatter

    light, dark = (
        "\n".join(HtmlFormatter(style=style).get_token_style_defs(".code"))
        for style in ("default", "github-dark")
    )
    dark = f".code span {{ color: inherit; }}\n{dark}"
    return f"{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}"


class ForStudents(NbGraderPreprocessor):
    """Make a graded notebook into what its student needs: headings, answers, verdicts.

    Runs after nbgrader's GetGrades. Of a hidden test neither source nor input nor value stays, and
    nothing of what a student displayed.
    """

    def preprocess(
        self, nb: NotebookNode, resources: dict[str, Any]
    ) -> tuple[NotebookNode, dict[str, Any]]:
        """Shorten the notebook and put a summary first."""
        tests = [cell for cell in nb.cells if _is_test(cell)]
        said = {cell.metadata.nbgrader.grade_id: verdicts(cell) for cell in tests}
        nb.cells = [shown for cell in nb.cells if (shown := _shown(cell)) is not None]
        nb, resources = SanitizeHTML(parent=self).preprocess(nb, resources)
        nb.cells.insert(0, new_markdown_cell(_summary(nb, said)))
        return nb, resources


def verdicts(cell: NotebookNode) -> list[str]:
    """What a graded test cell says, one sentence for each failure; none if it passed."""
    told = cell.metadata.get("autograder", {}).get("told")
    if told is not None:
        return [told] if told else []
    said = []
    for output in cell.get("outputs", []):
        if output.output_type == "error":
            said.append(_verdict(output, cell.source, _reached_hidden(cell)))
        elif output.output_type == "stream" and output.name == "stderr":
            said.append("Your code printed a warning or an error while it was tested.")
    return said


def _is_test(cell: NotebookNode) -> bool:
    return cell.cell_type == "code" and bool(cell.metadata.get("nbgrader", {}).get("grade"))


def _shown(cell: NotebookNode) -> NotebookNode | None:
    """What of a cell a student gets back: prose by its heading, a test by its verdict."""
    if _is_test(cell):
        cell.outputs = [_told(sentence, _more(cell)) for sentence in verdicts(cell)]
        cell.source = visible_part(cell.source)
        return cell
    if cell.get("id") == NOTES:
        return cell
    if cell.metadata.get("nbgrader", {}).get("solution"):
        if cell.cell_type == "code":
            cell.outputs = []  # it may have printed what a hidden test asked
        return cell
    headings = [line for line in cell.source.splitlines() if line.startswith("## ")]
    if cell.cell_type != "markdown" or not headings:
        return None
    cell.source = headings[0]
    return cell


def _more(cell: NotebookNode) -> str:
    """What a student may do about a failure."""
    marks = cell.metadata.get("autograder", {})
    hidden = marks.get("hidden", _reached_hidden(cell))
    return HIDDEN if hidden else TRY_IT


def _summary(nb: NotebookNode, said: dict[str, list[str]]) -> str:
    """What went wrong, test by test, each with a link to its place on the page."""
    lost = [
        f"- [{name}](#{name}): {escape(' '.join(sentences))}"
        for name, sentences in said.items()
        if sentences
    ]
    by_hand = any(_is_written(cell) for cell in nb.cells)
    end = (
        ["", "Written answers are graded by hand; until then they count as 0 above."]
        if by_hand
        else []
    )
    if not lost:
        return "\n".join(["All tests pass.", *end])
    passed = sum(not sentences for sentences in said.values())
    start = f"{passed} of {len(said)} tests pass. What to look at:"
    return "\n".join([start, "", *lost, *end])


def _is_written(cell: NotebookNode) -> bool:
    marks = cell.metadata.get("nbgrader", {})
    return bool(marks.get("grade") and marks.get("solution"))


def _reached_hidden(cell: NotebookNode) -> bool:
    """Whether the visible tests of a cell passed, as the cell printed."""
    streams = [output for output in cell.get("outputs", []) if output.output_type == "stream"]
    return any(PASSED in output.get("text", "") for output in streams)


def _verdict(output: NotebookNode, source: str, hidden: bool) -> str:
    """One failure in words; of a hidden test only what its author wrote is repeated."""
    name = str(output.get("ename", "error"))
    if _is_ours(output):
        return str(output.evalue)
    message = ANSI.sub("", str(output.get("evalue", ""))).strip()
    first = message.partition("\n")[0]
    if claim := claim_of(message, source, hidden=hidden):
        return claim
    if name == "NotImplementedError" and "not answered yet" in first:
        return UNANSWERED
    if name == "NameError":
        return MISSING
    if name == "AssertionError":
        return "A test failed."
    return (
        f"Your code stopped with {name}." if hidden else f"Your code stopped with {name}: {first}"
    )


def _is_ours(output: NotebookNode) -> bool:
    """Whether this grader wrote the output: what a kernel traces back starts with a ruled line."""
    trace = output.get("traceback") or [""]
    return bool(trace[0]) and trace[0] == output.get("evalue")


def _told(sentence: str, more: str) -> NotebookNode:
    return new_output("error", ename="", evalue="", traceback=[sentence, more])

"""What a student reads: what went wrong, in words, and of a hidden test nothing but its claim."""

import ast
import re
from html import escape
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell, new_output
from nbgrader.preprocessors import NbGraderPreprocessor

from autograder.source import visible_part

ANSI = re.compile(r"\x1b\[[0-9;]*m")
PASSED = "Visible tests passed"  # what a notebook prints before its hidden tests begin
TRY_IT = "Run this cell in your notebook to see the details."
HIDDEN = "Your visible tests pass; this is a hidden one, with other sizes or numbers."


class ForStudents(NbGraderPreprocessor):
    """Make a graded notebook into what its student needs: headings, answers, verdicts.

    Runs after nbgrader's GetGrades. Of a hidden test neither source nor input nor value stays.
    """

    def preprocess(
        self, nb: NotebookNode, resources: dict[str, Any]
    ) -> tuple[NotebookNode, dict[str, Any]]:
        """Shorten the notebook and put a summary first."""
        tests = [cell for cell in nb.cells if _is_test(cell)]
        said = {cell.metadata.nbgrader.grade_id: verdicts(cell) for cell in tests}
        nb.cells = [shown for cell in nb.cells if (shown := _shown(cell)) is not None]
        nb.cells.insert(0, new_markdown_cell(_summary(nb, said)))
        return nb, resources


def _is_test(cell: NotebookNode) -> bool:
    return cell.cell_type == "code" and bool(cell.metadata.get("nbgrader", {}).get("grade"))


def _shown(cell: NotebookNode) -> NotebookNode | None:
    """What of a cell a student gets back: prose by its heading, a test by its verdict."""
    if _is_test(cell):
        more = HIDDEN if _reached_hidden(cell) else TRY_IT
        cell.outputs = [_told(sentence, more) for sentence in verdicts(cell)]
        cell.source = visible_part(cell.source)
        return cell
    if cell.metadata.get("nbgrader", {}).get("solution"):
        return cell
    headings = [line for line in cell.source.splitlines() if line.startswith("## ")]
    if cell.cell_type != "markdown" or not headings:
        return None
    cell.source = headings[0]
    return cell


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


def verdicts(cell: NotebookNode) -> list[str]:
    """What a graded test cell says, one sentence for each failure; none if it passed."""
    said = []
    for output in cell.get("outputs", []):
        if output.output_type == "error":
            said.append(_verdict(output, _claims(cell.source), _reached_hidden(cell)))
        elif output.output_type == "stream" and output.name == "stderr":
            said.append("Your code printed a warning or an error while it was tested.")
    return said


def _reached_hidden(cell: NotebookNode) -> bool:
    """Whether the visible tests of a cell passed, as the cell printed."""
    streams = [output for output in cell.get("outputs", []) if output.output_type == "stream"]
    return any(PASSED in output.get("text", "") for output in streams)


def _verdict(output: NotebookNode, claims: list[list[str]], hidden: bool) -> str:
    """One failure in words; of a hidden test only what its author wrote is repeated."""
    name = str(output.get("ename", "error"))
    first = ANSI.sub("", str(output.get("evalue", ""))).strip().partition("\n")[0]
    for parts in claims:
        if re.fullmatch(".*".join(map(re.escape, parts)), first):
            return " … ".join(part.strip() for part in parts if part.strip()) if hidden else first
    if name == "NotImplementedError" and "not answered yet" in first:
        return "Not answered yet."
    if name == "NameError":
        return "The answer is missing: a name that this test needs is not defined."
    if name == "AssertionError":
        return "A test failed."
    return (
        f"Your code stopped with {name}." if hidden else f"Your code stopped with {name}: {first}"
    )


def _claims(source: str) -> list[list[str]]:
    """First lines of the strings that a test's author wrote, cut where values are put in."""
    claims = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            claims.append([node.value.strip().partition("\n")[0]])
        elif isinstance(node, ast.JoinedStr):
            claims.append(_fixed_parts(node))
    return [parts for parts in claims if len("".join(parts)) > 8]


def _fixed_parts(node: ast.JoinedStr) -> list[str]:
    """The fixed parts of an f-string's first line, one more than it has values."""
    parts = [""]
    for value in node.values:
        text = value.value if isinstance(value, ast.Constant) else None
        if text is None:
            parts.append("")
            continue
        line, end, _ = str(text).partition("\n")
        parts[-1] += line
        if end:
            break
    return parts


def _told(sentence: str, more: str) -> NotebookNode:
    return new_output("error", ename="", evalue="", traceback=[sentence, more])

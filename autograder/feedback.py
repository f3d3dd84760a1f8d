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
TRY_IT = "Run this cell in your notebook to see the details of its visible tests."


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
        cell.outputs = [_told(sentence) for sentence in verdicts(cell)]
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
    if not lost:
        return "All tests pass."
    passed = sum(not sentences for sentences in said.values())
    return "\n".join([f"{passed} of {len(said)} tests pass. What to look at:", "", *lost])


def verdicts(cell: NotebookNode) -> list[str]:
    """What a graded test cell says, one sentence for each failure; none if it passed."""
    said = []
    for output in cell.get("outputs", []):
        if output.output_type == "error":
            said.append(_verdict(output, _claims(cell.source)))
        elif output.output_type == "stream" and output.name == "stderr":
            said.append("Your code printed a warning or an error while it was tested.")
    return said


def _verdict(output: NotebookNode, claims: set[str]) -> str:
    """One failure in words; text that is not the test author's is never repeated."""
    name = str(output.get("ename", "error"))
    first = ANSI.sub("", str(output.get("evalue", ""))).strip().partition("\n")[0]
    if first in claims:
        return first
    if name == "NotImplementedError":
        return "Not answered yet."
    if name == "NameError":
        return "The answer is missing: a name that this test needs is not defined."
    if name == "AssertionError":
        return "A test failed."
    return f"Your code stopped with {name}."


def _claims(source: str) -> set[str]:
    """Every string that a test cell's author wrote, by its first line."""
    strings = (
        node.value
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
    return {text.strip().partition("\n")[0] for text in strings}


def _told(sentence: str) -> NotebookNode:
    return new_output("error", ename="", evalue="", traceback=[sentence, TRY_IT])

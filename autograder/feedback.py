"""What a student reads: failed claims in words, and of a hidden test nothing but its claim."""

import ast
import re
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_output
from nbgrader.preprocessors import NbGraderPreprocessor

from autograder.source import visible_part

ANSI = re.compile(r"\x1b\[[0-9;]*m")
TRY_IT = "Run this cell in your notebook to see the details of its visible tests."


class HideTests(NbGraderPreprocessor):
    """Take the hidden tests' source, inputs and values out of a feedback page."""

    def preprocess_cell(
        self, cell: NotebookNode, resources: dict[str, Any], index: int
    ) -> tuple[NotebookNode, dict[str, Any]]:
        """Strip one test cell: its visible source stays, its outputs become one sentence."""
        marks = cell.metadata.get("nbgrader", {})
        if cell.cell_type == "code" and marks.get("grade"):
            cell.outputs = [_told(said) for said in verdicts(cell)]
            cell.source = visible_part(cell.source)
        return cell, resources


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

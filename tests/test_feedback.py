"""Feedback pages: what of a failed test is told, and what stays with its author."""

import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from autograder.feedback import ForStudents, verdicts

SOURCE = """\
n = 3
assert total([n]) == n, f"the sum of one number is that number\\nYours is {total([n])}."
assert total([]) == 0, f"the sum of {n - 3} numbers is 0"
visible_passed()
### BEGIN HIDDEN TESTS
secret = 12345
assert total([secret]) == secret, f"the sum of {secret} alone is right too"
assert total([1, 2]) == 3, "two numbers are added"
### END HIDDEN TESTS"""


def cell(name: str, value: str, *, hidden: bool) -> NotebookNode:
    """A graded test cell that stopped with this error, before or after its hidden tests began."""
    printed = [new_output("stream", name="stdout", text="Visible tests passed. And so on.")]
    error = new_output("error", ename=name, evalue=value, traceback=["secret 12345"])
    marks = {"nbgrader": {"grade": True, "solution": False, "grade_id": "total-values"}}
    return new_code_cell(SOURCE, metadata=marks, outputs=[*(printed if hidden else []), error])


@pytest.mark.parametrize(
    ("name", "value", "hidden", "said"),
    [
        ("AssertionError", "two numbers are added", True, "two numbers are added"),
        (
            "AssertionError",
            "the sum of one number is that number\nYours is 4.",
            False,
            "the sum of one number is that number",
        ),
        ("AssertionError", "the sum of 0 numbers is 0", False, "the sum of 0 numbers is 0"),
        (
            "AssertionError",
            "the sum of 12345 alone is right too",
            True,
            "the sum of … alone is right too",
        ),
        ("AssertionError", "12345 came in", True, "A test failed."),
        ("ValueError", "12345 came in", True, "Your code stopped with ValueError."),
        ("ValueError", "3 came in", False, "Your code stopped with ValueError: 3 came in"),
        ("NotImplementedError", "not answered yet: replace", False, "Not answered yet."),
        (
            "NotImplementedError",
            "no such kernel",
            False,
            "Your code stopped with NotImplementedError: no such kernel",
        ),
    ],
)
def test_a_failure_is_told_as_far_as_its_author_meant_it(name, value, hidden, said):
    assert verdicts(cell(name, value, hidden=hidden)) == [said]


def shown(*cells: NotebookNode) -> str:
    """Everything that a student gets of these cells."""
    notebook, _ = ForStudents().preprocess(new_notebook(cells=list(cells)), {})
    return str(notebook)


def test_nothing_of_a_hidden_test_but_its_claim_is_shown():
    page = shown(cell("AssertionError", "two numbers are added", hidden=True))
    assert "two numbers are added" in page and "this is a hidden one" in page
    assert "12345" not in page and "HIDDEN" not in page


def test_prose_is_cut_to_its_headings_and_a_summary_comes_first():
    prose = new_markdown_cell("## 1.1 Sums\n\nAdd them up.")
    page = shown(prose, cell("AssertionError", "two numbers are added", hidden=True))
    assert page.index("0 of 1 tests pass") < page.index("## 1.1 Sums")
    assert "Add them up" not in page


def test_a_written_answer_is_said_to_wait():
    marks = {"nbgrader": {"grade": True, "solution": True, "grade_id": "why"}}
    page = shown(new_markdown_cell("Because.", metadata=marks))
    assert "Because." in page and "graded by hand" in page

"""Feedback pages: what of a failed test is told, and what stays with its author."""

import re
from dataclasses import dataclass, replace

import pytest
from bs4 import BeautifulSoup
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from autograder.classroom.feedback import page
from autograder.classroom.nbgrader_page import ForStudents, verdicts
from autograder.common.results import NotebookResult, Verdict

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
        (
            "ValueError",
            "12345 came in",
            True,
            "Your code stopped with an error in a hidden test. "
            "Try it with inputs of your own, edge cases among them.",
        ),
        (
            "NotImplementedError",
            "12345",
            True,
            "A part of your answer is not written yet: your code stopped with NotImplementedError "
            "in a hidden test.",
        ),
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
    for made in notebook.cells:  # a cell's id is drawn, and may hold any digits
        made.id = ""
    return str(notebook)


def test_nothing_of_a_hidden_test_but_its_claim_is_shown():
    page = shown(cell("AssertionError", "two numbers are added", hidden=True))
    assert "two numbers are added" in page and "this is a hidden one" in page
    assert "12345" not in page and "HIDDEN" not in page


def test_prose_is_cut_to_its_headings_and_a_summary_comes_first():
    prose = new_markdown_cell("## 1.1 Sums\n\nAdd them up.")
    page = shown(prose, cell("AssertionError", "two numbers are added", hidden=True))
    assert page.index("0 of 1 tests pass") < page.index("<h2>1.1 Sums</h2>")
    assert "Add them up" not in page


def test_a_written_answer_is_said_to_wait():
    marks = {"nbgrader": {"grade": True, "solution": True, "grade_id": "why"}}
    page = shown(new_markdown_cell("Because.", metadata=marks))
    assert "Because." in page and "graded by hand" in page


def test_what_this_grader_wrote_is_repeated_without_what_is_for_the_instructor():
    said = ["the sum of … alone is right too. You count twice.", "failed: yours 12345"]
    ours = new_output("error", ename="Error", evalue=said[0], traceback=said)
    one = cell("Error", "", hidden=False)
    one.outputs = [ours]
    assert verdicts(one) == [said[0]]
    assert said[0] in shown(one) and "12345" not in shown(one)


def test_verdicts_in_the_metadata_come_first():
    one = cell("AssertionError", "12345", hidden=False)
    one.metadata["autograder"] = {"told": "Half of it is right.", "hidden": True}
    assert verdicts(one) == ["Half of it is right."]
    assert "this is a hidden one" in shown(one) and "12345" not in shown(one)


def test_what_a_student_displayed_is_not_repeated_and_what_he_wrote_cannot_run():
    marks = {"nbgrader": {"grade": False, "solution": True, "grade_id": "total"}}
    rich = {"text/html": "<b>bold</b>", "application/javascript": "alert(3)"}
    outputs = [new_output("display_data", data=rich)]
    code = new_code_cell("1", metadata=marks, outputs=outputs)
    text = new_markdown_cell("a <script>alert(4)</script>", metadata=marks)
    notebook, _ = ForStudents().preprocess(new_notebook(cells=[code, text]), {})
    assert notebook.cells[1].outputs == []
    assert "<script" not in notebook.cells[2].source


# --- the page that this grader writes


@dataclass(frozen=True)
class Cell:
    """A cell of the instructor's notebook."""

    grade_id: str
    kind: str
    stub: str = ""
    cell_type: str = "code"
    points: float = 0.0
    hidden: tuple[object, ...] = ()


@dataclass(frozen=True)
class Notebook:
    """The instructor's notebook."""

    cells: tuple[Cell, ...]


NOTEBOOK = Notebook(
    (
        Cell("", "markdown", "# Sums", "markdown"),
        Cell("setup", "readonly", "import math"),
        Cell("", "markdown", "## 1.1 Totals   (3 points, about 5 minutes)\n\nProse.", "markdown"),
        Cell("total", "solution", "def total(x): return sum(x)"),
        Cell("total-values", "test", SOURCE, points=2.0),
        Cell("total-more", "test", SOURCE, points=1.0),
        Cell("", "markdown", "## 1.2 Why?", "markdown"),
        Cell("why", "manual", "", "markdown", 4.0),
    )
)
RESULT = NotebookResult(
    "01_sums",
    (
        Verdict(
            *("total-values", "failed", 0.0, 2.0),
            told="two numbers are added. You leave out the first (line 1: `x[1:]`).",
            said="yours 12345",
            hidden=True,
            misconception="SUM1",
            read="01_sums#totals",
        ),
        Verdict("total-more", "passed", 1.0, 1.0, stood_in=("halve",)),
    ),
    {"total": "def total(x):\n    return sum(x[1:])", "why": "Because <i>so</i>."},
    {"total": "printed\n"},
    notes=("The notebook was found as `nb (1).ipynb`.",),
)


def text_of(result: NotebookResult, book: str = "") -> str:
    """What a reader of the page sees."""
    soup = BeautifulSoup(page(result, NOTEBOOK, "lena", book), "html.parser")
    for tag in soup(["style"]):
        tag.decompose()
    return " ".join(soup.get_text().split())


def test_the_page_says_first_what_was_earned_and_what_to_look_at():
    text = text_of(RESULT)
    assert "1 of 3 points, 1 of 2 tests pass" in text
    assert text.index("What to look at") < text.index("total-values: failed") < text.index("sum(x[")


def test_the_page_shows_answers_verdicts_and_where_to_read():
    text = text_of(RESULT)
    for part in (
        "1.1 Totals 1 / 3",
        "def total(x): return sum(x[1:])",
        "You leave out the first (line 1: x[1:]).",
        "this is a hidden one",
        "Your own halve did not work here",
        "Read: 01 sums, totals",
        "found as nb (1).ipynb",
        "Because <i>so</i>.",
        "graded by hand, 4 points",
    ):
        assert part in text
    for part in ("12345", "printed", "Prose", "1.1 Totals (3 points"):
        assert part not in text


def test_the_page_is_called_what_its_notebook_is():
    soup = BeautifulSoup(page(RESULT, NOTEBOOK, "lena"), "html.parser")
    assert soup.h1 and soup.h1.text == "Sums"
    assert soup.title and soup.title.text == "Sums: feedback for lena"
    nameless = Notebook(NOTEBOOK.cells[1:])
    soup = BeautifulSoup(page(RESULT, nameless, "lena"), "html.parser")
    assert soup.h1 and soup.h1.text == "01_sums"


def test_an_answer_that_needs_no_look_is_folded():
    passed = replace(RESULT.verdicts[0], status="passed", score=2.0)
    done = replace(RESULT, verdicts=(passed, RESULT.verdicts[1]))
    for result, folded in ((RESULT, 0), (done, 1)):
        soup = BeautifulSoup(page(result, NOTEBOOK, "lena"), "html.parser")
        assert len(soup.select("details pre.code")) == folded
        assert len(soup.select("pre.code")) == 2


def test_the_colours_of_code_are_no_part_of_the_pages_own_dress():
    """A comment in an answer's code once got the bar of a person's comment."""
    html = page(replace(RESULT, answers={"total": "x = 1  # one"}), NOTEBOOK, "lena")
    soup = BeautifulSoup(html, "html.parser")
    classes = {name for tag in soup.select("pre.code [class]") for name in tag["class"]}
    style = "".join(tag.text for tag in soup.find_all("style"))
    assert "comment" in classes
    for name in classes:
        assert not re.search(rf"(?<!\.code )\.{name}\b", style), name


def test_the_page_links_to_the_book_where_there_is_one():
    html = page(RESULT, NOTEBOOK, "lena", "../book/")
    assert 'href="../book/01_sums.html#totals"' in html


def test_links_within_the_page_lead_somewhere():
    soup = BeautifulSoup(page(RESULT, NOTEBOOK, "lena"), "html.parser")
    anchors = {str(tag["id"]) for tag in soup.find_all(id=True)}
    links = [str(tag["href"]) for tag in soup.find_all("a")]
    assert links and all(link.removeprefix("#") in anchors for link in links)


EVIL = "</pre></style><script>alert(1)</script><img src=http://x.example/ onerror=alert(2)>"


def test_nothing_on_the_page_runs_or_is_fetched_whatever_a_student_writes():
    first, second = RESULT.verdicts
    evil = replace(
        RESULT,
        verdicts=(replace(first, told=EVIL, read=f"{EVIL}#x"), replace(second, stood_in=(EVIL,))),
        answers={"total": EVIL + "\ud800\x00", "why": EVIL},
        outputs={"total": f"\x1b[31m{EVIL}\x1b[0m"},
        notes=(EVIL,),
    )
    for html in (
        page(evil, NOTEBOOK, EVIL, "book"),
        page(replace(evil, reason=EVIL), NOTEBOOK, EVIL),
    ):
        html.encode()
        soup = BeautifulSoup(html, "html.parser")
        assert not soup.find_all(["script", "img", "iframe", "link", "object", "base", "form"])
        handlers = [name for tag in soup.find_all(True) for name in tag.attrs if name[:2] == "on"]
        assert handlers == []
        assert "default-src 'none'" in str(soup.find("meta", {"http-equiv": True}))
        assert soup.head is not None and soup.head.find("meta", {"http-equiv": True})
        assert not re.search(r"[\x00-\x08\x1b]", html)


def test_long_answers_and_outputs_are_cut():
    long = replace(RESULT, answers={"total": "x" * 50_000}, outputs={"total": "y" * 50_000})
    assert "more characters" in text_of(long)
    assert len(page(long, NOTEBOOK, "lena")) < 60_000


def test_an_answer_that_is_missing_is_said_to_be():
    assert "There is none in your notebook" in text_of(replace(RESULT, answers={}))


def test_what_was_written_below_a_locked_task_is_shown_and_not_said_to_be_missing():
    task = Cell("draw", "task", "Draw a picture.", "markdown", 5.0)
    notebook = Notebook((*NOTEBOOK.cells, task))
    extra = (("draw", "markdown", "My picture: below"), ("why", "markdown", "not this one"))
    html = page(replace(RESULT, extra=extra), notebook, "lena")
    assert "My picture: below" in html and "not this one" not in html
    assert "There is none" not in html
    html = page(RESULT, notebook, "lena")
    assert "none right below the task" in html and "none in your notebook" not in html


def test_a_notebook_that_could_not_be_graded_gets_the_reason():
    html = page(replace(RESULT, reason="it is not a notebook."), NOTEBOOK, "lena")
    assert "could not be run: it is not a notebook.</p>" in html and "1.1 Totals" not in html

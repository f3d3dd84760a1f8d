"""What the one writing process does with a submission grows no faster than the submission.

Sizes are compared, not seconds: of each text one of n and one of 8 n signs, in this process's own
CPU time, so that a busy machine changes nothing.
"""

import time
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path

import pytest

from autograder.classroom.feedback import page
from autograder.classroom.gradescope import results_json
from autograder.classroom.journal import MAX_LINE
from autograder.classroom.journal_lines import Graded, bounded, line_of
from autograder.classroom.nbgrader_page import _escaped
from autograder.classroom.rebuild import harmless, rebuild
from autograder.classroom.similar import _own_names, _winnowed, flags, tokens
from autograder.common.names import plain, visible
from autograder.common.results import Flag, NotebookResult, Result, Verdict
from autograder.common.scan import coloured
from autograder.common.spreadsheet import safe
from autograder.judge.assignment import Assignment, read_assignment
from autograder.judge.received import sent
from tests.small_course import NAME, make_course

LONG = 24_000
TIMES = 8
SHAPES = {
    "blanks-and-lines": "\n ",
    "assigned-in-a-row": "a=",
    "assigned-on-lines": "a=b=1\n",
    "walrus": "(a:=",
    "opened-thrice": "'''",
    "opened-thrice-and-more": '"""a',
    "prefixed": "rb'''",
    "prefixes": "rb",
    "quotes": "'",
    "quotes-and-escapes": "'\\",
    "escapes": "\\",
    "escaped-lines": "\\\n",
    "brackets": "(",
    "braces": "{[(",
    "closing": ")",
    "f-strings": "f'{",
    "comments": "#\n",
    "one-comment": "# ",
    "decorators": "@a\n",
    "numbers": "1_0.",
    "hex": "0xf",
    "dots": ".",
    "names": "ab ",
    "one-name": "a",
    "def": "def f(a,",
    "lambdas": "lambda a:",
    "for": "for a in ",
    "classes": "class A(",
    "magics": "%a\n",
    "blanks-before-no-magic": " " * 63 + "\n",
    "blanks": " ",
    "tabs": "\t",
    "returns": "\r",
    "escape-starts": "\x1b[",
    "escape-numbers": "\x1b[1;",
    "escape-titles": "\x1b]0;",
    "escape-spaces": "\x1b[1 ",
    "nothing-visible": "\u200b",
    "direction": "\u202e",
    "surrogates": "\ud800",
    "commas": ",;|\t",
    "formulas": ";=",
    "markup": "<&\"'",
    "links": "[a](b",
    "backticks": "`",
    "stars": "**a*",
    "headings": "# ",
    "ideographs": "変数",
    "combining": "e\u0301",
    "nul": "\0",
}


def cost(work: Callable[[str], object], text: str) -> float:
    """The least CPU time of two."""
    found = []
    for _ in range(2):
        begun = time.process_time()
        work(text)
        found.append(time.process_time() - begun)
    return min(found)


def similar(text: str) -> object:
    """As for the report, without what another run has remembered."""
    _winnowed.cache_clear()
    return flags({"ada": {"q": text}, "bo": {"q": f"{text} "}}, {"q": ["def f(): ..."]}, "nb")


PARTS: dict[str, Callable[[str], object]] = {
    "harmless": harmless,
    "coloured": coloured,
    "tokens": tokens,
    "own names": lambda text: _own_names([("name" if t.isalpha() else "mark", t) for t in text]),
    "similar": similar,
    "safe": safe,
    "visible": visible,
    "plain": plain,
    "escaped": _escaped,
}


@pytest.mark.parametrize("part", PARTS)
def test_each_part_is_linear_in_the_text(part: str):
    work = PARTS[part]
    for shape, piece in SHAPES.items():
        whole = (piece * LONG)[:LONG]
        begun = cost(work, whole[: LONG // TIMES])
        ended = cost(work, whole)
        # Linear is 8 times as much, a square 64 times; what costs next to nothing cannot be told.
        assert ended < 0.01 or ended < 24 * max(begun, 0.001), (shape, begun, ended)


@cache
def small(root: Path) -> Assignment:
    """The small assignment."""
    return read_assignment(make_course(root).root / "source" / NAME)


@pytest.fixture(scope="module")
def assignment(tmp_path_factory: pytest.TempPathFactory) -> Assignment:
    """The small assignment."""
    return small(tmp_path_factory.mktemp("growth") / "course")


def result(text: str, assignment: Assignment) -> Result:
    """A result that says this text wherever a student's words may stand."""
    (notebook,) = assignment.notebooks
    verdicts = tuple(
        Verdict(cell.grade_id, "error", 0.0, cell.points, text, text, stood_in=(text,) * 30)
        for cell in notebook.of_kind("test")
    )
    texts = {cell.grade_id: text for cell in notebook.cells if cell.answerable}
    extra = (("square", "code", text), ("", "markdown", text)) * 20
    notes = (text,) * 30
    made = NotebookResult(notebook.name, verdicts, texts, texts, extra, notes)
    return Result("ada", NAME, "key", (made,), (Flag("file", text, text),) * 300)


def written(text: str, assignment: Assignment) -> list[str]:
    """All that is written of one submission."""
    (notebook,) = assignment.notebooks
    graded = bounded(Graded(result(text, assignment)))
    (outcome,) = graded.result.notebooks
    return [
        page(outcome, notebook, "ada"),
        page(replace(outcome, reason=graded.result.flags[0].words), notebook, "ada"),
        rebuild(notebook, outcome),
        sent(graded.result).decode(),
        str(results_json(graded.result, {})),
        *(safe(flag.words) for flag in graded.result.flags),
    ]


@pytest.mark.parametrize("shape", SHAPES)
def test_all_that_is_written_of_a_submission_is_linear_and_bounded(
    shape: str, assignment: Assignment
):
    whole = (SHAPES[shape] * LONG)[:LONG]
    begun = cost(lambda text: written(text, assignment), whole[: LONG // TIMES])
    found: list[list[str]] = []
    ended = cost(lambda text: found.append(written(text, assignment)), whole)
    assert ended < 24 * max(begun, 0.005), (begun, ended)
    one, two, notebook, line, *_ = found[-1]
    assert len(one) < 3_000_000 and len(two) < 50_000
    assert len(notebook) < 30_000_000 and len(line) < MAX_LINE


def test_a_line_of_the_journal_can_be_read_whatever_lies_in_how_many_notebooks():
    text = "\U0001f600" * 200_000  # takes twelve bytes there
    texts = {f"cell-{number}": text for number in range(30)}
    notebook = NotebookResult("n", (), texts, texts, (("", "code", text),) * 30)
    result = Result("ada", NAME, "key", (notebook,) * 5)
    line = line_of({"graded": asdict(bounded(Graded(result)))})
    assert 50_000_000 < len(line) < MAX_LINE


def test_an_ordinary_result_is_not_cut(assignment: Assignment):
    graded = Graded(result("def f(): ...\n", assignment), 5.0)
    (notebook,) = graded.result.notebooks
    few = replace(notebook, extra=notebook.extra[:9], notes=notebook.notes[:9])
    few = replace(few, verdicts=tuple(replace(v, stood_in=("f",)) for v in few.verdicts))
    graded = Graded(replace(graded.result, notebooks=(few,), flags=graded.result.flags[:9]), 5.0)
    assert bounded(graded) == graded

"""The graded notebook: nbgrader reads exactly our scores in it, and nothing in it does harm."""

import json
import math
import re
import shutil
import warnings
from dataclasses import replace
from pathlib import Path

import nbformat
import nbgrader
import pytest
from bs4 import BeautifulSoup, Tag
from nbconvert.exporters import HTMLExporter
from nbgrader.nbgraderformat import MetadataValidator
from nbgrader.server_extensions.formgrader import handlers
from nbgrader.utils import compute_checksum, determine_grade, is_grade

from autograder.authoring.source import notebook, read_source
from autograder.classroom.feedback import _source
from autograder.classroom.rebuild import MODEL, checksum, harmless, inert, rebuild
from autograder.common.course import Course
from autograder.common.results import NotebookResult, Verdict
from autograder.judge.assignment import Assignment, Notebook, read_assignment
from autograder.judge.intake import read_submission

EXAMPLE = Path(nbgrader.__file__).parent / "docs" / "source" / "user_guide" / "source" / "ps1"
HOSTILE = "x = '\x1b[2J\x1b]0;title\x07\ud800\x00\u202e'\n<script>alert(1)</script>\r\n"
ATTACKS = [
    "<script>alert(1)</script>",
    "<ScRiPt\n>alert(1)</sCrIpT>",
    "text <img src=x onerror=alert(1)> text",
    "\\<img src=x onerror=alert(1)>",
    "\\\\<img src=x onerror=alert(1)>",
    "<<img src=x onerror=alert(1)>",
    "<svg/onload=alert(1)>",
    "<!--><img src=x onerror=alert(1)>-->",
    "<?x ?><!DOCTYPE x><![CDATA[ <b> ]]>",
    "</div></div><iframe src=//evil.org>",
    "> <style>@import '//evil.org'</style>",
    "- <form action=//evil.org><button>x",
    "```mermaid\n<img src=x onerror=alert(1)>\n```",
    "~~~ mermaid\ngraph\n~~~",
    "``` \\mermaid\ngraph\n```",
    "```\u00a0mermaid\ngraph\n```",
    "> 1. ~~~\x0cmermaid\n> graph\n> ~~~",
    "```\u2028\u3000mermaid\ngraph\n```",
    "[a](javascript:alert(1))",
    "[a](<javascript:alert(1)>)",
    "[a]( \tJaVaScRiPt:alert(1))",
    "[a](\njavascript:alert(1))",
    "[a](&#106;avascript:alert(1))",
    "[a](java&Tab;script&colon;alert(1))",
    "[a](files/javascript:alert(1))",
    "[a](vbscript:x) [b](data:text/html,x) [c](/api/x) [d](//evil.org)",
    "[a]\n\n[a]: javascript:alert(1)",
    "[a][]\n\n> [a]:\n> <javascript:alert(1)> 'title'",
    "[a](\rjavascript:alert(1))\r\r# correct_squares\r",
    "<javascript:alert(1)> <data:text/html,x>",
    "![a](https://evil.org/x.png) !![a](//evil.org) ![a](data:image/svg+xml,x)",
    "![a][b]\n\n[b]: https://evil.org/x.png",
    "![a](attachment:none.png)",
    r"$\href{javascript:alert(1)}{x}$",
    r"\$\\href{javascript:alert(1)}{x}\$",
    r"&#36;&bsol;hre&#102;{javascript:alert(1)}{x}&dollar;",
    r"$$\require{html}\style{background:url(//evil.org)}{x}\unicode{x}\class{x}{y}\cssId{x}{y}$$",
    r"$\smash{\raise 40em{\rlap{\color{white}{\rule{60em}{60em}}}\text{Score: 9 of 9}}}$",
    r"\begin{align}\mmlToken{mi}[href='javascript:alert(1)']{x}\htmlData{a=b}{x}\end{align}",
    "# correct_squares",
    "#correct_squares",
    "- > 1. ### correct_squares ###",
    "correct_squares\n===",
    "> correct_squares\n> ---",
    "# correct\\_squares",
]


def formgrader(nb: nbformat.NotebookNode) -> Tag:
    """What formgrader makes of the cells of a graded notebook."""
    exporter = HTMLExporter(
        template_name="formgrade", extra_template_basedirs=[handlers.template_path]
    )
    names = ("assignment_id", "submission_id", "notebook_id", "last_name", "first_name", "student")
    resources = dict.fromkeys((*names, "base_url"), "x") | {"index": 0, "total": 1}
    page, _ = exporter.from_notebook_node(nb, resources=resources)
    return BeautifulSoup(page, "html.parser").find_all(id="notebook-container")[0]


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Assignment:
    """nbgrader's own example."""
    folder = tmp_path_factory.mktemp("course") / "source" / "ps1"
    shutil.copytree(EXAMPLE, folder)
    return read_assignment(folder)


@pytest.fixture
def first(example: Assignment) -> Notebook:
    """Its first notebook."""
    return example.notebooks[0]


def read(text: str) -> nbformat.NotebookNode:
    """A notebook that nbformat and nbgrader find valid."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nb = nbformat.reads(text, as_version=4)
        nbformat.validate(nb)
    MetadataValidator().validate_nb(nb)
    return nb


def scores(nb: nbformat.NotebookNode) -> dict[str, tuple]:
    """What nbgrader itself reads in a graded notebook."""
    return {
        cell.metadata.nbgrader.grade_id: determine_grade(cell)
        for cell in nb.cells
        if is_grade(cell)
    }


def result(notebook: Notebook, **given) -> NotebookResult:
    """A result in which every test of a notebook passed."""
    verdicts = tuple(
        Verdict(cell.grade_id, "passed", cell.points, cell.points)
        for cell in notebook.of_kind("test")
    )
    return NotebookResult(**{"name": notebook.name, "verdicts": verdicts} | given)


@pytest.mark.parametrize("share", [0, 1e-300, 0.1, 1 / 3, 0.5, 0.7, 0.9999999999999999, 1.0])
def test_nbgrader_reads_exactly_our_score(first: Notebook, share: float):
    verdicts = [
        Verdict(cell.grade_id, "failed", cell.points * share, cell.points, "told", "said")
        for cell in first.of_kind("test")
    ]
    found = scores(read(rebuild(first, result(first, verdicts=tuple(verdicts)))))
    assert len(verdicts) == 4
    for verdict in verdicts:
        assert found[verdict.test] == (verdict.score, verdict.points)


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf, -1.0])
def test_a_score_that_is_none_is_zero(first: Notebook, score: float):
    test = first.of_kind("test")[0]
    verdict = Verdict(test.grade_id, "error", score, test.points)
    found = scores(read(rebuild(first, result(first, verdicts=(verdict,)))))
    assert found[test.grade_id] == (0, test.points)


def test_a_test_without_points_shows_its_failure(first: Notebook):
    verdict = Verdict("correct_squares", "failed", 0, 0, "told")
    nb = read(rebuild(first, result(first, verdicts=(verdict,))))
    (cell,) = [
        c for c in nb.cells if c.metadata.get("nbgrader", {}).get("grade_id") == verdict.test
    ]
    assert cell.outputs[0].output_type == "error"
    verdict = Verdict("correct_squares", "passed", 0, 0)
    nb = read(rebuild(first, result(first, verdicts=(verdict,))))
    (cell,) = [
        c for c in nb.cells if c.metadata.get("nbgrader", {}).get("grade_id") == verdict.test
    ]
    assert cell.outputs == []


def test_all_tests_are_zero_if_the_notebook_is(first: Notebook):
    reason = "no file named <b>problem1.ipynb was submitted"
    nb = read(rebuild(first, NotebookResult(first.name, reason=reason)))
    assert {score for score, _ in scores(nb).values()} == {0}
    assert "&lt;b&gt;problem1" in nb.cells[0].source
    assert reason in json.dumps(nb)


def test_manual_answers_wait_unless_untouched(first: Notebook):
    answers = {
        "sum_of_squares_equation": "$x^2$",
        "sum_of_squares_application": first.cell("sum_of_squares_application").stub,
    }
    found = scores(read(rebuild(first, result(first, answers=answers))))
    assert found["sum_of_squares_equation"] == (None, 1)
    assert found["sum_of_squares_application"] == (0, 2)
    assert scores(read(rebuild(first, result(first))))["sum_of_squares_equation"] == (0, 1)


def test_tasks_keep_their_text_and_their_answers_stand_below(first: Notebook):
    task = first.of_kind("task")[0]
    extra = ((task.grade_id, "markdown", "my sum"), (task.grade_id, "code", "1 + 1"))
    nb = read(rebuild(first, result(first, extra=extra)))
    assert [cell.source for cell in nb.cells[-3:]] == [task.source, "my sum", "1 + 1"]
    assert nb.cells[-3].metadata.nbgrader.task and nb.cells[-3].metadata.nbgrader.points == 4


def test_checksums_are_nbgraders(tmp_path: Path, course: Course):
    """Against the release that nbgrader itself makes, and against its function."""
    chapter = "03_attention"
    folder = tmp_path / "source" / chapter
    folder.mkdir(parents=True)
    text = notebook(read_source(course.source(chapter)))
    (folder / f"{chapter}.ipynb").write_text(text, encoding="utf-8")
    shutil.copy(course.root / "nbgrader_config.py", tmp_path)
    (week,) = read_assignment(folder).notebooks
    nb = read(rebuild(week, result(week)))
    released = json.loads(course.release(chapter).read_text(encoding="utf-8"))["cells"]
    known = {
        c["metadata"]["nbgrader"]["grade_id"]: c for c in released if "nbgrader" in c["metadata"]
    }
    for cell in nb.cells:
        marks = cell.metadata.get("nbgrader")
        if marks is None:
            continue
        assert marks.checksum == compute_checksum(cell) == checksum(week.cell(marks.grade_id))
        theirs = known[marks.grade_id]["metadata"]
        if not week.cell(marks.grade_id).hidden and not marks.grade:
            assert dict(cell.metadata) == theirs


def test_the_same_result_gives_the_same_bytes(first: Notebook):
    answers = {"squares": "def squares(n): pass"}
    one, two = (
        rebuild(first, result(first, answers=dict(order), outputs={"squares": "hello"}))
        for order in (answers.items(), reversed(answers.items()))
    )
    assert one == two and one.endswith("}\n")
    assert "stream" in one and "hello" in one


def test_hostile_texts_do_no_harm(first: Notebook):
    told = Verdict("correct_squares", "failed", 0, 1, HOSTILE, HOSTILE + "more")
    partial = Verdict("correct_sum_of_squares", "failed", 0.25, 0.5, HOSTILE)
    given = result(
        first,
        verdicts=(told, partial),
        answers={"squares": HOSTILE, "sum_of_squares_equation": HOSTILE},
        outputs={"squares": HOSTILE * 10_000},
        extra=tuple(("squares", "code", HOSTILE) for _ in range(2000)),
        notes=(HOSTILE,),
    )
    text = rebuild(first, given)
    text.encode("utf-8")
    for sign in ("\x1b", "\\u001b", "\\u0000", "\u202e", "\\ud800"):
        assert sign not in text
    nb = read(text)
    assert len(text) < 1_000_000
    assert scores(nb)["correct_squares"] == (0, 1)
    assert scores(nb)["correct_sum_of_squares"] == (0.25, 0.5)
    assert "<script>" not in nb.cells[0].source
    assert len({cell.id for cell in nb.cells}) == len(nb.cells)


def test_harmless_keeps_ordinary_text():
    text = "def f(x):\n\treturn 'é 😀 \\x1b'  # α\r\n"
    assert harmless(text) == text
    assert harmless("\x1b[31mred\x1b[0m \x9b") == "red \ufffd"


@pytest.mark.parametrize("sign", ["\x1b]", "\x1b]8;;", "\x1b[", "\x1b", "\x1b]0;x\x07"])
def test_no_sign_in_code_hides_what_ran_behind_it(first: Notebook, sign: str):
    code = f"def squares(n):  # {sign}\n    s = '{sign}'; ran(s)\n    return 1  # \x07"
    given = result(first, answers={"squares": code}, extra=(("squares", "code", code),))
    nb = read(rebuild(first, given))
    shown = [cell.source for cell in nb.cells if "def squares(n):  #" in cell.source]
    assert len(shown) == 2
    page = BeautifulSoup(f"<pre>{_source(code, is_code=True)}</pre>", "html.parser")
    for source in (*shown, page.text):
        assert source.replace("\ufffd", "") == re.sub("[\x07\x1b]", "", code)


def test_a_command_without_an_end_takes_nothing_of_what_is_below_it():
    assert harmless("one \x1b]0;title\ntwo") == "one 0;title\ntwo"
    assert harmless("one \x1b]0;title\x07 two \x1b]8;;http://x\x1b\\three") == "one  two three"


def test_a_submission_read_and_rebuilt_has_every_cell(example: Assignment, tmp_path: Path):
    shutil.copytree(EXAMPLE, tmp_path / "me")
    found = read_submission(tmp_path / "me", "me", example)
    assert found.reason == "" and found.flags == ()
    for script, week in zip(found.scripts, example.notebooks, strict=True):
        nb = read(rebuild(week, result(week, answers=script.answers, extra=script.extra)))
        own = [cell for cell in nb.cells if MODEL not in cell.source]
        assert len(own) == len(week.cells) + len(script.extra)
        assert [c.cell_type for c in week.cells] == [c.cell_type for c in own]


def shown(first: Notebook, text: str) -> Tag:
    """How formgrader shows a text as a written answer, as Markdown and as a raw cell."""
    answers = {"sum_of_squares_equation": text, "squares": text}
    extra = tuple(("squares", kind, text) for kind in ("markdown", "raw", "code"))
    return formgrader(read(rebuild(first, result(first, answers=answers, extra=extra))))


@pytest.mark.parametrize("attack", ATTACKS)
def test_nothing_that_a_student_wrote_runs_or_is_fetched_in_formgrader(
    first: Notebook, attack: str
):
    clean, page = shown(first, "words"), shown(first, attack)
    bad = ("script", "img", "svg", "iframe", "style", "form", "object", "embed", "link", "meta")
    bad += ("audio", "video", "base", "details")
    models = len(clean.find_all("details"))  # the instructor's, as a picture is
    assert len(page.find_all(bad)) == len(clean.find_all(bad)) == 1 + models
    assert models == 2
    assert len(page.find_all("button")) == len(clean.find_all("button"))
    assert not page.find_all(class_="mermaid")
    assert [str(tag["src"]) for tag in page.find_all(src=True)] == ["jupyter.png"]
    for tag in page.find_all(True):
        assert not any(name.startswith("on") for name in tag.attrs)
        assert str(tag.get("href", "#")).startswith(("#", "https://", "http://", "mailto:"))
    assert len(page.find_all(id="correct_squares")) == 1
    for code in page.find_all(("pre", "code", "textarea")):
        code.decompose()  # MathJax leaves these alone
    commands = ("href", "require", "unicode", "style", "class", "css", "mml", "html")
    for command in (*commands, "smash", "raise", "rlap"):
        assert f"\\{command}" not in page.get_text()


SLOW = {  # in colours, or as Markdown
    "lines": "x" + "\n\t" * 90_000 + "x",
    "dots": "a." * 90_000,
    "blanks": "x" + " " * 190_000 + "x",
    "brackets": "[" * 190_000,
    "slashes": "\\\\(" * 60_000,
}


@pytest.mark.parametrize("slow", SLOW)
def test_no_text_of_a_students_keeps_formgrader_busy(first: Notebook, slow: str):
    """Its server shows nobody anything else meanwhile; here this would not end in minutes."""
    page = shown(first, SLOW[slow])
    assert SLOW[slow][:1000] in page.get_text()
    page = shown(first, f"```python\n{SLOW[slow][:9000]}\n```\n~~~smarty\n{SLOW[slow][:900]}\n~~~")
    assert page.find("code", class_="language-python") is None


def test_many_long_texts_are_not_read_as_markdown(first: Notebook):
    extra = tuple(("squares", "markdown", "**a** " * 1000) for _ in range(40))
    page = formgrader(read(rebuild(first, result(first, extra=extra))))
    assert page.get_text().count("**a** " * 1000) == 40
    page = formgrader(read(rebuild(first, result(first, extra=extra[:10]))))
    assert "**a**" not in page.get_text() and len(page.find_all("strong")) >= 10_000


def test_ordinary_markdown_stays_as_it_is(first: Notebook):
    text = (
        "# A title\n\nWhat *is* `x < y`? See [here](https://x.org/a?b=c&d) and https://y.org:\n\n"
        "- **one** &lt; two\n- $a_1 < b & \\frac{1}{2} \\le \\|v\\|!$\n\n"
        "| a | b |\n|---|---|\n| 1 | 2 |\n\n```python\nx[0] = a <= b < 3 and f(x)[1]\n```\n"
    )
    page = shown(first, text)
    assert inert(text).replace("\u2060", "") == text.replace("```python", "```text python")
    assert page.find(
        "h1", string=lambda words: bool(words) and "A title" in words
    ) or "A title" in [heading.get_text().strip("\u2060¶") for heading in page.find_all("h1")]
    links = {str(link["href"]) for link in page.find_all("a", href=True)}
    assert {"https://x.org/a?b=c&d", "https://y.org"} <= links
    assert page.find("table") and page.find("li") and page.find("em") and page.find("strong")
    assert r"$a_1 < b & \frac{1}{2} \le \|v\|!$" in page.get_text()


def test_an_untouched_answer_is_nbgraders_own_stub(first: Notebook):
    """Whatever the instructor wrote there: its checksum says that nothing was answered."""
    cell = first.cell("sum_of_squares_equation")
    odd = replace(cell, stub="YOUR <b>ANSWER</b> ![here](x.png)")
    notebook = replace(first, cells=tuple(odd if c is cell else c for c in first.cells))
    nb = read(rebuild(notebook, result(notebook, answers={cell.grade_id: odd.stub})))
    (found,) = [c for c in nb.cells if c.source == odd.stub]
    assert compute_checksum(found) == found.metadata.nbgrader.checksum

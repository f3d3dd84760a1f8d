"""nbgrader's own feedback page: scores and comments are on it, nothing runs, nothing is fetched."""

import json
import os
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from bs4 import BeautifulSoup
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from nbgrader.api import Gradebook
from traitlets.config import Config

from autograder.classroom.nbgrader_page import ForStudents, inert
from autograder.classroom.rebuild import inert as as_in_formgrader
from autograder.classroom.rebuild import rebuild
from autograder.common.results import NotebookResult
from autograder.judge.assignment import read_assignment
from tests.small_course import NAME, PAGE, RIGHT, hand_in, make_course, marks, nbgrader

EVIL = (
    "[click](javascript:alert(1)) ![b](http://evil.example/b.png) <http://evil.example> "
    "<img src=x onerror=alert(2)> <script>alert(3)</script> <svg onload=alert(4)> `x` $y$ \n\n"
    "<style>*{background:url(http://evil.example/c)}</style>\n\n# head\n\n- item\n\n"
    "<meta http-equiv=refresh content='0;url=http://evil.example'><base href=//evil.example>\n"
    "<form action=//evil.example><input></form> </pre></div> \\\\(z\\\\) [a]: http://evil.example\n"
    "| a | b |\n|---|---|\n~~~js\nalert(5)\n~~~\n**bold** https://evil.example www.evil.example"
)
RAISES = f"def square(x):\n    raise ValueError({EVIL!r})"
PATTERNS = ["*", "[am]*", "a?a"]  # names that are patterns as well
ODD = [os.fsdecode(b"M\xfcller"), "two\nlines"]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course taken through nbgrader's own commands, with students who write markup."""
    course = make_course(tmp_path_factory.mktemp("course"), hooks=True)
    with (course.root / "nbgrader_config.py").open("a") as file:
        file.write(PAGE)
    nbgrader(course.root, "generate_assignment", NAME)
    hand_in(course.root, "ada", RIGHT)
    path = hand_in(course.root, "mallory", RIGHT | {"square": RAISES, "why": EVIL})
    content = json.loads(path.read_text(encoding="utf-8"))
    for extra in (f"## {EVIL}", EVIL):
        content["cells"].append(
            {
                "cell_type": "markdown",
                "id": f"x{len(content['cells'])}",
                "metadata": {},
                "source": extra,
            }
        )
    path.write_text(json.dumps(content), encoding="utf-8")
    for name in ODD + PATTERNS:
        hand_in(course.root, name, RIGHT | {"why": f"I am {name}."})
    nbgrader(course.root, "autograde", NAME)
    with Gradebook(f"sqlite:///{course.root / 'gradebook.db'}") as book:
        comment: Any = book.find_comment("why", "numbers", NAME, "mallory")
        comment.manual_comment = "Why is it so?"
        book.db.commit()
    nbgrader(course.root, "generate_feedback", NAME, "--force")
    return course.root


def page(root: Path, student: str) -> BeautifulSoup:
    """A student's page."""
    path = root / "feedback" / student / NAME / "numbers.html"
    return BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")


def test_nothing_on_the_page_runs_or_is_fetched(root: Path):
    soup = page(root, "mallory")
    assert not soup.find_all(
        ["script", "img", "iframe", "object", "embed", "base", "form", "link", "svg", "input"]
    )
    links = {str(tag["href"]) for tag in soup.find_all("a", href=True)}
    assert links and all(link.startswith("#") for link in links)
    attributes = [name for tag in soup.find_all(True) for name in tag.attrs]
    assert not [name for name in attributes if name.startswith("on") or name == "src"]
    policy = soup.find("meta", {"http-equiv": True})
    assert policy is not None and "default-src 'none'" in str(policy)
    assert [
        str(tag["http-equiv"]).lower() for tag in soup.find_all("meta", {"http-equiv": True})
    ] == ["content-security-policy"]
    assert "evil.example" not in "".join(str(tag) for tag in soup.find_all("style"))


def test_a_mark_scheme_stays_with_the_person_who_grades(root: Path):
    assert "Axes give" not in page(root, "ada").get_text()
    graded = root / "autograded" / "ada" / NAME / "numbers.ipynb"
    assert "Axes give" in graded.read_text(encoding="utf-8")


def test_what_was_written_is_there_as_it_was_written(root: Path):
    text = " ".join(page(root, "mallory").get_text().split())
    for part in as_in_formgrader(EVIL).split(
        "\n\n"
    ):  # as formgrader gets it, with a space here and there
        assert " ".join(part.split()) in text
    assert "Your code stopped with ValueError: [click](javascript:alert(1))" in text
    assert "Why is it so?" in text and "raise ValueError(" in text
    assert "Score: 3.0 / 17.0" in text, text[:300]
    assert "All tests pass." in page(root, "ada").get_text()


def test_a_student_whom_nbgrader_cannot_name_is_graded_and_has_a_page(root: Path):
    with Gradebook(f"sqlite:///{root / 'gradebook.db'}") as book:
        found: list[Any] = book.assignment_submissions(NAME)
        scores = {one.student.id: one.score for one in found}
    right = dict.fromkeys(["ada", "M\\xfcller", "two\\x0alines", *PATTERNS], 6)
    assert scores == right | {"mallory": 3}
    for name in ODD:
        assert "6 of 6" in page(root, name).get_text()


def test_a_student_whose_name_is_a_pattern_gets_his_own_page(root: Path):
    for name in PATTERNS:
        page = (root / "feedback" / name / NAME / "numbers.html").read_text(encoding="utf-8")
        assert f"I am {name}." in BeautifulSoup(page, "html.parser").get_text()
    ada = (root / "feedback" / "ada" / NAME / "numbers.html").read_text(encoding="utf-8")
    assert RIGHT["why"] in ada


def test_a_page_made_of_a_notebook_that_another_grader_wrote_is_as_safe():
    marks = {"nbgrader": {"grade": True, "solution": True, "grade_id": f"x'>{EVIL[:60]}"}}
    cells = [
        new_markdown_cell(f"<pre>\n{EVIL}\n</pre>", id="autograder-notes"),
        new_markdown_cell(EVIL, metadata={**marks, "tags": [EVIL]}, attachments={"a": {"b": EVIL}}),
        new_code_cell(EVIL, metadata=marks),
        new_markdown_cell(f"## {EVIL}"),
    ]
    nb, _ = ForStudents().preprocess(new_notebook(cells=cells, metadata={"title": EVIL}), {})
    assert [cell.cell_type for cell in nb.cells] == ["markdown", "markdown", "code", "markdown"]
    for cell in nb.cells:
        if cell.cell_type == "markdown":
            assert not re.search(r"[\[\]!$`*]|<(?!/?(div|p|ul|li|pre|h2|code)>)", cell.source)
        assert set(cell.metadata) <= {"nbgrader"}
        assert "<" not in cell.metadata.get("nbgrader", {}).get("grade_id", "")
    assert "title" not in nb.metadata


@pytest.mark.parametrize(
    ("begin", "end", "settings"),
    [
        ("### BEGIN HIDDEN TESTS", "### END HIDDEN TESTS", {}),
        ("# BEGIN HIDDEN TESTS: sizes", "#END HIDDEN TESTS", {}),
        ("# BEGIN HIDDEN TESTS", "", {}),
        ("# secret", "# open", {"begin_test_delimeter": "secret", "end_test_delimeter": "open"}),
        ("# BEGIN HIDDEN TESTS", "# END HIDDEN TESTS", {"begin_test_delimeter": "secret"}),
    ],
)
@pytest.mark.parametrize("ours", [True, False])
def test_a_hidden_test_is_not_on_the_page_whatever_marks_it(
    tmp_path: Path, begin: str, end: str, settings: dict[str, str], ours: bool
):
    source = f"assert f(2) == 4\n{begin}\nassert f(57) == 114\n{end}"
    test = new_code_cell(source, metadata=marks("f-values", 1, grade=True, locked=True))
    if ours and end:
        test = graded_by_us(tmp_path, test, settings)
        settings = {}  # they may be others by now
    config = Config(ClearHiddenTests=settings)
    nb, _ = ForStudents(config=config).preprocess(new_notebook(cells=[test]), {})
    assert "f(2)" in nb.cells[-1].source and "f(57)" not in str(nb)


def graded_by_us(folder: Path, test: Any, settings: dict[str, str]) -> Any:
    """A test cell as it is in a notebook that this grader wrote."""
    lines = [f"c.ClearHiddenTests.{name} = {value!r}" for name, value in settings.items()]
    (folder / "nbgrader_config.py").write_text("\n".join(["c = get_config()", *lines]))
    answer = new_code_cell("def f(x): return 2 * x", metadata=marks("f", solution=True))
    (folder / NAME).mkdir()
    nbformat.write(new_notebook(cells=[answer, test]), folder / NAME / "numbers.ipynb")
    notebook = read_assignment(folder / NAME).notebooks[0]
    return nbformat.reads(rebuild(notebook, NotebookResult("numbers")), 4).cells[-1]


def test_whatever_a_template_loads_is_taken_out():
    html = inert(
        "<html><head><script src=x></script><link href=y></head><body>a<form>b</form></body></html>"
    )
    assert "default-src" in html and "src=x" not in html and "href" not in html


def test_only_what_nobody_has_graded_yet_is_said_to_wait(root: Path):
    wait = "Written answers are graded by hand; until then they count as 0 above."
    names = ["why", "draw", "task"]
    for number in range(len(names) + 1):
        assert (wait in page(root, "mallory").get_text()) == (number < len(names))
        with Gradebook(f"sqlite:///{root / 'gradebook.db'}") as book:
            for name in names[number : number + 1]:
                grade: Any = book.find_grade(name, "numbers", NAME, "mallory")
                grade.manual_score = 1
            book.db.commit()
        nbgrader(root, "generate_feedback", NAME, "--force", "--student=mallory")

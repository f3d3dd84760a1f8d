"""The class report: right numbers, everything escaped, and of a size one can open for any class."""

import csv
import os
import random
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote_to_bytes

import pytest
from bs4 import BeautifulSoup

from autograder.classroom import report as reporting
from autograder.classroom.book_lines import Line
from autograder.classroom.classes import Class
from autograder.classroom.report import write_report
from autograder.classroom.report_data import Look, Report
from autograder.classroom.report_figures import compose
from autograder.classroom.report_page import BANDS, heat_map, render
from autograder.classroom.report_terminal import print_table
from autograder.common.names import plain
from autograder.common.results import Flag, NotebookResult, Result, Verdict
from autograder.judge.rules import Rules
from tests.hostile.pages import FOLDERS
from tests.small_course import NAME, make_course

EVIL = '<img src=x onerror="alert(1)">'
KNOWN = {
    "M1": ("sums over the wrong axis", "03_page#which-axis", "/course/03_page.html#which-axis")
}


NONE = Rules()


@dataclass(frozen=True)
class Cell:
    """What the report asks of an instructor's cell."""

    grade_id: str
    kind: str
    source: str = ""
    stub: str = ""
    points: float = 0
    cell_type: str = "code"


@dataclass(frozen=True)
class Notebook:
    """What the report asks of an instructor's notebook."""

    name: str
    cells: tuple[Cell, ...]

    def question_of(self, test: str) -> tuple[str, ...]:
        """The solution that a test belongs to."""
        return (test.rsplit("-", 1)[0],)


@dataclass(frozen=True)
class Assignment:
    """What the report asks of an assignment."""

    name: str
    notebooks: tuple[Notebook, ...]
    rules: Rules = NONE


def assignment(name: str, questions: int = 3) -> Any:
    """Two tests of 2 points and 1 for each question, and an essay."""
    cells = []
    for n in range(1, questions + 1):
        heading = f"## {name[1]}.{n} Question {n}   (3 points, about 5 minutes)"
        cells += [
            Cell("", "markdown", heading, cell_type="markdown"),
            Cell(f"q{n}", "solution", source=f"def f{n}(): ...", stub="..."),
            Cell(f"q{n}-a", "test", points=2),
            Cell(f"q{n}-b", "test", points=1),
        ]
    cells.append(Cell("essay", "manual", points=5, cell_type="markdown"))
    return Assignment(name, (Notebook(name, tuple(cells)),))


def submission(student: str, name: str, questions: int, draw: random.Random) -> Result:
    """A made-up result; good students pass more."""
    good = draw.random()
    verdicts = []
    for n in range(1, questions + 1):
        for part, points in (("a", 2), ("b", 1)):
            passed = draw.random() < good * 1.4 - n / questions / 2
            verdicts.append(
                Verdict(
                    f"q{n}-{part}",
                    "passed" if passed else draw.choice(["failed", "unanswered", "timeout"]),
                    points if passed else 0,
                    points,
                    told=""
                    if passed
                    else f"Question {n}: the weights of each row should sum to 1.",
                    misconception="" if passed or n % 2 else f"M{n}",
                    read="" if passed else "03_page#which-axis",
                    hidden=draw.random() < 0.3,
                )
            )
    flags = []
    if draw.random() < 0.03:
        flags.append(Flag("timeout", f"{name}/q1", "q1-a took more than 60 s"))
    if draw.random() < 0.01:
        flags.append(Flag("tampering", f"{name}/q2", "the answer replaced the test's own checks"))
    reason = "the file is not a notebook (it is no JSON text)" if draw.random() < 0.02 else ""
    books = () if reason else (NotebookResult(name, tuple(verdicts)),)
    return Result(student, name, "k", books, tuple(flags), reason, seconds=draw.random() / 5)


def lines_of(result: Result) -> list[Line]:
    """What the gradebook holds of a result."""
    return [
        Line(result.student, notebook.name, v.test, v.score, v.score, v.points, False)
        for notebook in result.notebooks
        for v in notebook.verdicts
    ] + [Line(result.student, result.assignment, "essay", 2.0, 0.0, 5.0, True)]


def made_up(students: int, chapters: int = 3, questions: int = 6) -> Report:
    """A class of made-up results."""
    draw = random.Random(0)
    names = [f"student-{n:04}" for n in range(students)]
    asked = {
        f"0{n}_chapter_{n}": assignment(f"0{n}_chapter_{n}", questions) for n in range(chapters)
    }
    journal = {(s, c): submission(s, c, questions, draw) for s in names for c in asked}
    lines = {c: [line for s in names for line in lines_of(journal[s, c])] for c in asked}
    return compose(names, asked, lines, journal, {"M2": ("sums over the wrong axis", "a#b", "")})


def graded(*verdicts: Verdict, student: str = "ada", **more: Any) -> Result:
    """One result of one chapter."""
    return Result(student, "01_one", "k", (NotebookResult("01_one", verdicts),), **more)


def report_on(*results: Result, known: dict | None = None) -> Report:
    """A report on these results of one chapter with one question."""
    names = sorted({result.student for result in results})
    lines = {"01_one": [line for result in results for line in lines_of(result)]}
    journal = {(result.student, "01_one"): result for result in results}
    return compose(names, {"01_one": assignment("01_one", 1)}, lines, journal, known or {})


def text_of(report: Report, folder: Path) -> str:
    """What one reads on the page."""
    return " ".join(BeautifulSoup(render(report, folder), "html.parser").get_text().split())


def test_a_question_is_the_tests_under_its_heading():
    (question,) = report_on(graded()).questions
    assert (question.label, question.title, question.points) == ("1.1", "1.1 Question 1", 3)
    assert question.tests == ("q1-a", "q1-b")


def test_a_chapter_is_called_what_its_notebook_is(tmp_path: Path):
    title = Cell("", "markdown", "# 1 Sums\n\nAbout sums.", cell_type="markdown")
    (notebook,) = assignment("01_one", 1).notebooks
    one = Assignment("01_one", (replace(notebook, cells=(title, *notebook.cells)),))
    report = compose(["ada"], cast(Any, {"01_one": one}), {}, {}, {})
    assert report.titles == {"01_one": "1 Sums"}
    assert 'title="1 Sums">1</abbr>' in render(report, tmp_path)
    assert report_on(graded()).titles == {"01_one": "01_one"}


def test_scores_come_from_the_gradebook_and_those_by_hand_are_apart():
    report = report_on(graded(Verdict("q1-a", "passed", 2, 2), Verdict("q1-b", "failed", 0, 1)))
    score = report.rows[0].scores["01_one"]
    assert (score.auto, score.auto_max, score.written, score.waiting) == (2, 3, 2, 1)


def test_an_item_says_who_passed_and_who_did_not_answer():
    lost = (Verdict("q1-a", "unanswered", 0, 2), Verdict("q1-b", "unanswered", 0, 1))
    results = [
        graded(Verdict("q1-a", "passed", 2, 2), Verdict("q1-b", "passed", 1, 1), student="a"),
        graded(
            Verdict("q1-a", "unanswered", 0, 2, told="Not answered yet."),
            Verdict("q1-b", "unanswered", 0, 1, told="Not answered yet."),
            student="b",
        ),
        Result("c", "01_one", "k", reason="no notebook"),
        replace(graded(), notebooks=(NotebookResult("01_one", lost, reason="broken"),)),
    ]
    question, first, second = report_on(*results).items
    assert (question.passed, question.graded, question.unanswered, question.share) == (1, 2, 1, 0.5)
    assert (first.test, first.passed) == ("q1-a", 1)
    assert second.said == (), "that is in the column beside it"
    assert question.discrimination is None, "two submissions tell nothing"


@pytest.mark.parametrize(
    ("first", "second"),
    [([0.0] * 11 + [1e-170], [0, 1] * 6), ([0.1, 0.2, 0.3, 0.6] * 3, [0.7] * 12)],
)
def test_what_differs_by_less_than_points_do_tells_nothing_apart(
    first: list[float], second: list[float]
):
    results = [
        graded(Verdict("q1-a", "passed", a, 2), Verdict("q1-b", "passed", b, 1), student=f"s{n}")
        for n, (a, b) in enumerate(zip(first, second, strict=True))
    ]
    assert [item.discrimination for item in report_on(*results).items] == [None] * 3


def test_a_test_that_the_strong_pass_tells_apart():
    results = [
        graded(
            Verdict("q1-a", "passed" if n >= 5 else "failed", 2 if n >= 5 else 0, 2),
            Verdict("q1-b", "passed" if n >= 5 else "failed", 1 if n >= 5 else 0, 1),
            student=f"s{n}",
        )
        for n in range(10)
    ]
    _, first, _ = report_on(*results).items
    assert first.discrimination == pytest.approx(1.0)


def test_misconceptions_are_counted_by_student_with_name_and_place():
    wrong: dict[str, Any] = {"misconception": "M1", "read": "03_page#which-axis"}
    results = [
        graded(
            Verdict("q1-a", "failed", 0, 2, **wrong),
            Verdict("q1-b", "failed", 0, 1, **wrong),
            student=name,
        )
        for name in "ab"
    ]
    report = report_on(*results, known=KNOWN)
    (mistake,) = report.mistakes
    assert (mistake.name, mistake.students, mistake.tests) == (KNOWN["M1"][0], 2, ("q1-a", "q1-b"))
    assert 'href="../03_page.html#which-axis"' in render(report, Path("/course/class"))


def test_everything_that_needs_a_look_is_named(tmp_path: Path):
    kinds = ("timeout", "forbidden", "tampering", "file", "died")
    flags = tuple(Flag(kind, f"01_one/{kind}", f"why {kind}") for kind in kinds)
    results = [
        graded(Verdict("q1-a", "test-error", 0, 2, said="NameError in the test"), flags=flags),
        Result("bo", "01_one", "k", reason="the file is empty"),
    ]
    report = report_on(*results)
    text = text_of(report, tmp_path)
    for kind in kinds:
        assert f"why {kind}" in text
    assert "the file is empty" in text
    assert "NameError in the test" in text
    assert {look.kind for look in report.looks} == {*kinds, "ungraded", "test-error"}


def test_broken_tests_of_one_name_in_two_notebooks_are_two():
    broken = Verdict("q1-a", "test-error", 0, 2, said="NameError in the test")
    both = tuple(NotebookResult(name, (broken,)) for name in ("a", "b"))
    result = Result("ada", "01_one", "key", both)
    report = compose(
        ["ada"], {"01_one": assignment("01_one", 1)}, {}, {("ada", "01_one"): result}, {}
    )
    told = [(look.student, look.where) for look in report.looks if look.kind == "test-error"]
    assert told == [("1 students", "01_one/a/q1-a"), ("1 students", "01_one/b/q1-a")]


def test_a_reason_that_stands_for_the_whole_submission_is_told_once(tmp_path: Path):
    reason = "the file is empty"
    books = (NotebookResult("01_one", reason=reason),)
    report = report_on(Result("bo", "01_one", "k", books, reason=reason))
    assert len(report.looks) == 1
    assert report.rows[0].wrong == ("01: the file is empty",)


def test_near_identical_answers_are_named_on_the_page(tmp_path: Path):
    body = "\n".join(f"    x = g{n}(x, {n}) + {n} * x" for n in range(12))
    results = [
        Result(
            student, "01_one", "k",
            (NotebookResult("01_one", answers={"q1": f"def f1({own}):\n{body}\n    return x"}),),
        )
        for student, own in (("ada", "x"), ("bo", "x, y"))
    ]  # fmt: skip
    text = text_of(report_on(*results), tmp_path)
    assert "near-identical to bo's answer in 01_one/q1: have a look" in text


def test_all_that_students_wrote_is_escaped(tmp_path: Path):
    wrong = Verdict("q1-a", "failed", 0, 2, told=EVIL, said=EVIL, misconception=EVIL, read=EVIL)
    result = graded(wrong, student=f'{EVIL}"', flags=(Flag("file", EVIL, EVIL),), reason="")
    page = render(report_on(result), tmp_path)
    soup = BeautifulSoup(page, "html.parser")
    assert not soup.find_all("img") and not soup.find_all("script")
    assert not [tag for tag in soup.find_all(True) if any(k.startswith("on") for k in tag.attrs)]
    assert EVIL not in page and "&lt;img" in page


def test_the_page_needs_nothing_from_elsewhere(tmp_path: Path):
    page = render(made_up(30), tmp_path)
    assert not re.search(r"https?://|<script|<link|url\(|@import", page)


def test_pictures_have_a_text_alternative(tmp_path: Path):
    soup = BeautifulSoup(render(made_up(30), tmp_path), "html.parser")
    pictures = soup.select("svg.map")
    assert len(pictures) == 3
    for picture in pictures:
        assert picture["role"] == "img"
        assert "hardest: " in str(picture["aria-label"])


def test_every_cell_of_the_picture_is_drawn_once():
    report = made_up(24, chapters=1)
    drawn = heat_map(report, report.chapters[0])
    cells = [cell for _, path in drawn.paths for cell in re.findall(r"M\d+ \d+", path)]
    assert len(cells) == len(set(cells)) == len(drawn.names) * len(drawn.columns) == 24 * 6


def test_in_a_large_class_neighbours_share_a_line_and_the_page_stays_small(tmp_path: Path):
    report = made_up(1000, chapters=10, questions=8)
    page = render(report, tmp_path)
    assert len(page.encode()) < 4_000_000
    drawn = heat_map(report, report.chapters[0])
    assert len(drawn.names) == BANDS
    assert page.count("<details") >= 20
    assert "student-0999" in page


def test_an_empty_class_has_a_page_too(tmp_path: Path):
    assert "Nobody has handed anything in yet." in text_of(
        compose([], {"01_one": assignment("01_one")}, {"01_one": []}, {}, {}), tmp_path
    )


def test_the_csv_files_hold_everything_and_no_formula(tmp_path: Path):
    result = graded(
        Verdict("q1-a", "passed", 2, 2),
        Verdict("q1-b", "failed", 0, 1, told="rows sum to 1"),
        student="=cmd|' /C calc'!A0",
        flags=(Flag("timeout", "01_one/q1", "slow"),),
    )
    grades, html = write_report(report_on(result), tmp_path)
    assert (grades.name, html.name) == ("grades.csv", "report.html")
    with grades.open(newline="", encoding="utf-8") as file:
        (row,) = csv.DictReader(file)
    assert row["student"] == "'=cmd|' /C calc'!A0"
    assert [row[name] for name in ("01_one", "total", "max")] == ["4", "4", "8"]
    assert [row[name] for name in ("tests", "tests max", "written")] == ["2", "3", "2"]
    assert row["what went wrong"] == "01: rows sum to 1"
    assert row["needs a look"] == "01_one/q1: slow"
    with (tmp_path / "questions.csv").open(newline="", encoding="utf-8") as file:
        questions = list(csv.reader(file))
    assert questions[1:] == [["(points possible)", "3"], ["'=cmd|' /C calc'!A0", "2"]]
    with (tmp_path / "items.csv").open(newline="", encoding="utf-8") as file:
        items = list(csv.DictReader(file))
    assert [item["test"] for item in items] == ["(question)", "q1-a", "q1-b"]
    assert not list(tmp_path.glob("*.part"))


def test_another_programs_grades_stay_and_ours_lie_beside(tmp_path: Path):
    report = report_on(graded(Verdict("q1-a", "passed", 2, 2)))
    theirs = tmp_path / "grades.csv"
    theirs.write_text("assignment,duedate,timestamp,student_id\n")
    table, html = write_report(report, tmp_path)
    assert table.name == "class_grades.csv" and table.read_text().startswith("student,01_one,")
    assert theirs.read_text().startswith("assignment,")
    assert "is in class_grades.csv" in html.read_text(encoding="utf-8")
    theirs.unlink()
    assert write_report(report, tmp_path) == write_report(report, tmp_path) == [theirs, html]


def test_folders_whose_names_look_the_same_are_named():
    found = list(reporting._alike(["ada", "jo\u0301zef", "j\u00f3zef"]))
    assert [look.student for look in found] == ["jo\u0301zef", "j\u00f3zef"]


def test_who_handed_nothing_in_has_no_points_a_reason_and_no_link(tmp_path: Path):
    (result,) = [graded(Verdict("q1-a", "passed", 2, 2))]
    asked = {"01_one": assignment("01_one", 1)}
    stray = Look("stray", "bo", "submitted", "bo/essay belongs to no assignment")
    report = compose(
        ["ada", "bo"],
        asked,
        {"01_one": lines_of(result)},
        {("ada", "01_one"): result},
        {},
        more=[stray],
    )
    grades, html = write_report(report, tmp_path)
    with grades.open(newline="", encoding="utf-8") as file:
        _, row = csv.DictReader(file)
    assert (row["01_one"], row["what went wrong"]) == ("", "01: no work of this name was graded")
    assert row["needs a look"] == "submitted: bo/essay belongs to no assignment"
    soup = BeautifulSoup(html.read_text(encoding="utf-8"), "html.parser")
    assert [tag["href"] for tag in soup.select("#scores ~ details a")] == [
        "feedback/ada/01_one/01_one.html"
    ]
    assert "bo/essay belongs to no assignment" in soup.get_text()
    assert "nothing was odd" not in soup.get_text()


def test_an_assignment_that_is_gone_is_left_out_and_stray_work_is_named(tmp_path: Path):
    course = make_course(tmp_path)
    for folder in ("ada/no such thing", "bo"):
        (tmp_path / "submitted" / folder).mkdir(parents=True)
    (tmp_path / "submitted" / "ada" / "no such thing" / "x.ipynb").write_text("{}")
    report = reporting.collect(Class(course, tmp_path), ["old", NAME])
    assert report.chapters == (NAME,)
    gone, stray = report.looks
    assert (gone.kind, gone.where) == ("gone", "old") and "does not exist" in gone.words
    assert (stray.kind, stray.student) == ("stray", "ada")
    assert stray.words == "ada/no such thing belongs to no assignment"


def test_names_are_quoted_in_links(tmp_path: Path):
    page = render(report_on(graded(student='zoë #1 "x"')), tmp_path)
    assert 'href="feedback/zo%C3%AB%20%231%20%22x%22/01_one/01_one.html"' in page


def test_the_terminal_table_has_a_line_for_each_student(capsys: pytest.CaptureFixture[str]):
    report = report_on(graded(Verdict("q1-a", "failed", 0, 2, told="rows sum to 1")))
    print_table(report.rows, report.chapters)
    assert "ada" in (said := capsys.readouterr().out)
    assert "2/8  01: rows sum to 1" in said
    assert said.splitlines()[0].split()[1] == "01"


def test_assignments_that_begin_alike_are_told_apart(capsys: pytest.CaptureFixture[str]):
    asked = {name: assignment(name, 1) for name in ("week_1", "week_2", "03_attention")}
    report = compose(["ada"], asked, {name: [] for name in asked}, {}, {})
    print_table(report.rows, report.chapters)
    assert capsys.readouterr().out.split()[1:4] == ["week_1", "week_2", "03"]
    assert report.rows[0].wrong[1:] == tuple(
        f"{name}: no work of this name was graded" for name in ("week_2", "03")
    )


def test_a_student_of_any_name_has_one_row_a_clean_text_and_a_link_to_the_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    names = list(FOLDERS.values())
    made = [graded(Verdict("q1-a", "passed", 2, 2), student=name) for name in names]
    lines = [replace(line, student=plain(line.student)) for r in made for line in lines_of(r)]
    journal = {(result.student, "01_one"): result for result in made}
    report = compose(names, {"01_one": assignment("01_one", 1)}, {"01_one": lines}, journal, {})
    assert [row.total for row in report.rows] == [4] * len(names)
    write_report(report, tmp_path)
    soup = BeautifulSoup((tmp_path / "report.html").read_text(encoding="utf-8"), "html.parser")
    links = {str(tag["href"]) for tag in soup.find_all("a") if str(tag["href"])[0] != "#"}
    ends = b"/01_one/01_one.html"
    assert {unquote_to_bytes(link) for link in links} == {
        b"feedback/" + os.fsencode(name) + ends for name in names
    }
    print_table(report.rows, report.chapters)
    written = [path.read_text(encoding="utf-8") for path in tmp_path.iterdir()]
    for text in (*written, capsys.readouterr().out):
        assert not re.search(r"[\x00-\x08\x0b\x1b\x9b\u202e\u200b]", text)


def test_no_sign_in_what_a_student_wrote_turns_what_the_page_says(tmp_path: Path):
    told = "Your code stopped with ValueError: \u202e\u2066 \x1b[2J\x9b"
    made = [graded(Verdict("q1-a", "failed", 0, 2, told), student=f"s{n}") for n in range(24)]
    write_report(report_on(*made), tmp_path)
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "ValueError" in text and "(24)" in text  # which would read (42) behind such a sign
    assert not re.search(r"[\x00-\x08\x1b\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)

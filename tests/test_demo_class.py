"""The demo class: what each student scores follows from how the work was made, and nothing else."""

import csv
import json
import shutil
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from nbgrader.api import Gradebook

from autograder.authoring.answers import Answer, read_answers
from autograder.authoring.building import build_instructor
from autograder.authoring.source import read_source
from autograder.classroom import demo as demo_class
from autograder.classroom.book_lines import book_lines
from autograder.classroom.classes import Class
from autograder.classroom.grade import grade
from autograder.classroom.journal import read_journal
from autograder.common.course import Course, CourseError
from autograder.common.results import Result, Verdict
from tests.conftest import CHAPTERS
from tests.test_release import lines_worth_hiding

REFUSED: dict[demo_class.Maker, str] = {
    demo_class.wrong_file: "is not a notebook",
    demo_class.cut_off: "is not a notebook",
    demo_class.missing_file: "no file named",
}


@pytest.fixture
def taught(course: Course, demo: Path) -> Class:
    """The graded demo class."""
    return Class(course, demo)


def maker_of(student: str, chapter: str):
    """How a student's work for a chapter was made."""
    return demo_class.maker(demo_class.STUDENTS.index(student), CHAPTERS.index(chapter))


def test_every_grade_is_what_its_making_foretold(taught: Class, chapter: str):
    expected = json.loads((taught.folder / "expected.json").read_text(encoding="utf-8"))
    assert list(expected) == list(demo_class.STUDENTS)
    with Gradebook(taught.database) as book:
        for student in expected:
            lines = book_lines(book, chapter)
            given = {line.cell: line.auto for line in lines if line.student == student}
            wanted = expected[student][chapter]
            assert {test: given[test] for test in wanted} == wanted, student


def test_the_class_has_all_kinds_of_work():
    kinds = {maker_of(student, c) for student in demo_class.STUDENTS for c in CHAPTERS}
    assert kinds == set(demo_class.MAKERS) | {demo_class.missing_file}


def test_three_variants_of_every_answer_are_in_the_class(course: Course, chapter: str):
    source = read_source(course.source(chapter))
    variants = read_answers(course.variants(chapter), source)
    used: dict[str, set[str]] = {}
    for number, maker in enumerate(demo_class.MAKERS):
        if maker is demo_class.variant:
            work = demo_class.Work(source, {"cells": []}, variants, [])
            with pytest.MonkeyPatch.context() as patch:
                chosen: list[Answer] = []
                patch.setattr(work, "write_answers", chosen.extend)
                maker(work, number + CHAPTERS.index(chapter))
            for answer in chosen:
                used.setdefault(answer.question, set()).add(answer.name)
    assert set(used) == {cell.id for cell in source.of_kind("solution")}
    assert min(len(names) for names in used.values()) >= 3


def test_the_reference_gets_everything_and_the_untouched_release_nothing(
    course: Course, demo: Path
):
    expected = json.loads((demo / "expected.json").read_text(encoding="utf-8"))
    for chapter in CHAPTERS:
        tests = {c.id: c.points for c in read_source(course.source(chapter)).of_kind("test")}
        assert expected["ada"][chapter] == tests
        untouched = demo_class.STUDENTS[demo_class.MAKERS.index(demo_class.nothing)]
        assert set(expected[untouched][chapter].values()) == {0}


def test_work_that_cannot_be_run_gets_0_and_the_reason(taught: Class, chapter: str):
    journal = read_journal(taught)
    for student in demo_class.STUDENTS:
        reason = journal[student, chapter].reason
        assert REFUSED.get(maker_of(student, chapter), "") in reason
        assert bool(reason) == (maker_of(student, chapter) in REFUSED)


def lost(result: Result) -> list[Verdict]:
    """The verdicts that cost points."""
    found = [verdict for notebook in result.notebooks for verdict in notebook.verdicts]
    return [verdict for verdict in found if verdict.score < verdict.points]


def test_every_student_gets_a_feedback_page_for_every_chapter(taught: Class, chapter: str):
    journal = read_journal(taught)
    for student in demo_class.STUDENTS:
        page = taught.feedback / student / chapter / f"{chapter}.html"
        text = _plain(page.read_text(encoding="utf-8"))
        result = journal[student, chapter]
        assert result.reason in text
        for verdict in lost(result):
            assert " ".join(verdict.told.replace("`", "").split()) in text.replace("`", ""), page


def test_feedback_shows_nothing_of_a_hidden_test(taught: Class, course: Course, chapter: str):
    source = read_source(course.source(chapter))
    answers = "\n".join(cell.source for cell in source.of_kind("solution", "manual"))
    # claims may be told; code may not. A right answer may well look like the reference.
    secret = {
        line
        for line in lines_worth_hiding(source)
        if line not in answers and not line.startswith(('"', "'", 'f"'))
    }
    assert len(secret) > 10
    for student in demo_class.STUDENTS:
        page = taught.feedback / student / chapter / f"{chapter}.html"
        text = _plain(page.read_text(encoding="utf-8"))
        leaked = {line for line in secret if line in text}
        assert not leaked or not leaked - _handed_in(taught, student, chapter), student


def _handed_in(taught: Class, student: str, chapter: str) -> set[str]:
    """The lines that a student wrote: such a line in the feedback is no leak."""
    path = taught.submitted / student / chapter / f"{chapter}.ipynb"
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return {line.strip() for cell in cells for line in "".join(cell["source"]).splitlines()}


def _plain(html: str) -> str:
    """The text of a page, without its tags."""
    return " ".join(BeautifulSoup(html, "html.parser").get_text().split())


def test_grades_csv_has_a_row_for_every_student(taught: Class):
    with (taught.folder / "grades.csv").open(encoding="utf-8") as file:
        table = {row["student"]: row for row in csv.DictReader(file)}
    assert sorted(table) == sorted(demo_class.STUDENTS)
    expected = json.loads((taught.folder / "expected.json").read_text(encoding="utf-8"))
    for student, row in table.items():
        for chapter in CHAPTERS:
            assert float(row[chapter]) == sum(expected[student][chapter].values())
        lost = float(row["tests"]) < float(row["tests max"])
        assert bool(row["what went wrong"]) == lost


def test_the_report_links_every_feedback_page(taught: Class):
    text = (taught.folder / "report.html").read_text(encoding="utf-8")
    for student in demo_class.STUDENTS:
        for chapter in CHAPTERS:
            assert f'href="feedback/{student}/{chapter}/{chapter}.html"' in text


def test_a_second_run_grades_nothing_again(taught: Class):
    summary = grade(taught, CHAPTERS, progress=False)
    assert summary.graded == 0
    assert summary.kept == len(demo_class.STUDENTS) * len(CHAPTERS)


def test_one_students_broken_work_changes_nobody_elses_grade(course: Course, tmp_path: Path):
    """Two neighbours of a broken submission, graded with and without it."""
    chapter = CHAPTERS[0]
    build_instructor(course, chapter)
    taught = Class(course, tmp_path)
    whole = demo_class.make_class(course, [chapter], tmp_path / "whole")
    for student in ("ada", "tomas", "fatima"):
        shutil.copytree(whole.submitted / student, taught.submitted / student)
    grade(taught, [chapter], progress=False)
    results = {student: result for (student, _), result in read_journal(taught).items()}
    assert results["tomas"].reason
    assert not results["ada"].reason and not lost(results["ada"])
    assert lost(results["fatima"])
    grade(taught, [chapter], students=["fatima"], again=True, progress=False)
    again = read_journal(taught)["fatima", chapter]
    assert [v.told for v in lost(again)] == [v.told for v in lost(results["fatima"])]


def test_a_chapter_that_a_student_did_not_hand_in_is_not_graded(course: Course, tmp_path: Path):
    taught = Class(course, tmp_path)
    whole = demo_class.make_class(course, CHAPTERS[:1], tmp_path / "whole")
    shutil.copytree(whole.submitted / "ada", taught.submitted / "ada")
    (taught.submitted / "amir").mkdir()
    assert grade(taught, CHAPTERS[:1], progress=False).graded == 1
    assert set(read_journal(taught)) == {("ada", CHAPTERS[0])}


def test_an_unknown_student_is_an_error(taught: Class):
    with pytest.raises(CourseError, match="no student 'nobody'"):
        grade(taught, CHAPTERS, students=["nobody"], progress=False)


def test_a_class_without_submissions_is_told_where_they_belong(course: Course, tmp_path: Path):
    with pytest.raises(CourseError, match="does not exist; put each submission at"):
        grade(Class(course, tmp_path), CHAPTERS[:1])

"""The demo class: what each student scores follows from how the work was made, and nothing else.

Less than half of the class is graded here: who does as somebody else does, in this chapter or in
another one, is left out. What each known mistake fails is looked up where all were tried.
"""

import csv
import importlib
import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from nbgrader.api import Gradebook

from autograder.authoring.answers import Answer, read_answers
from autograder.authoring.building import read
from autograder.authoring.processes import fingerprints, known_mistakes
from autograder.authoring.source import read_source
from autograder.classroom import demo as demo_class
from autograder.classroom.book_lines import book_lines
from autograder.classroom.classes import Class
from autograder.classroom.grade import grade
from autograder.classroom.journal import read_journal
from autograder.common.course import Course, CourseError
from autograder.common.results import Result, Verdict
from tests.conftest import CHAPTERS, ROOT
from tests.test_release import lines_worth_hiding

REFUSED: dict[demo_class.Maker, str] = {
    demo_class.wrong_file: "is not a notebook",
    demo_class.cut_off: "is not a notebook",
    demo_class.missing_file: "no file named",
}


# One or more of each kind that depends on what a chapter asks for.
ALWAYS = ("ada", "chidi", "dana", "elif", "fatima", "lena", "noor", "yuki")
BY_TURNS = ("olga", "pablo", "quinn", "ravi", "sofia", "tomas")  # two of them in each chapter
EMPTY = "amir"  # whose folder holds nothing
FOLDER = ROOT / "build" / "demo-tests"
STUDENTS = tuple(student for student in demo_class.STUDENTS if student in ALWAYS + BY_TURNS)


def students(chapter: str) -> list[str]:
    """Whose work for a chapter is graded."""
    first = 2 * CHAPTERS.index(chapter)
    turns = {BY_TURNS[place % len(BY_TURNS)] for place in (first, first + 1)}
    return [student for student in STUDENTS if student in turns.union(ALWAYS)]


Expected = dict[str, dict[str, dict[str, int]]]  # points by student, chapter and test


@pytest.fixture(scope="module")
def expected(course: Course) -> Expected:
    """What each should score; the work lies where `taught` finds it."""
    if {student for student, _ in read_journal(Class(course, FOLDER))} - {*STUDENTS}:
        shutil.rmtree(FOLDER)  # a class that somebody has left since
    shutil.rmtree(FOLDER / "submitted", ignore_errors=True)
    (FOLDER / "submitted" / EMPTY).mkdir(parents=True)
    found: Expected = {student: {} for student in STUDENTS}
    for chapter in CHAPTERS:
        for student, points in hand_in(course, FOLDER, students(chapter), chapter).items():
            found[student][chapter] = points
    return found


def hand_in(
    course: Course, folder: Path, students: Sequence[str], chapter: str
) -> dict[str, dict[str, int]]:
    """Put work for a chapter where a class in this folder has it; what it should score."""
    given, expected = demo_class.Chapter(course, chapter), {}
    for student in students:
        number = demo_class.STUDENTS.index(student) + CHAPTERS.index(chapter)
        work = given.work(maker_of(student, chapter), number)
        demo_class.hand_in(work, folder / "submitted" / student / chapter / f"{chapter}.ipynb")
        expected[student] = work.expected()
    return expected


@pytest.fixture(scope="module")
def taught(course: Course, expected: Expected) -> Class:
    """The graded class; what is as it was when tests ran before is not graded again."""
    command = [sys.executable, "-m", "autograder", "grade", "--folder", str(FOLDER)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return Class(course, FOLDER)


def maker_of(student: str, chapter: str):
    """How a student's work for a chapter was made."""
    return demo_class.maker(demo_class.STUDENTS.index(student), CHAPTERS.index(chapter))


def test_every_grade_is_what_its_making_foretold(taught: Class, expected: Expected, chapter: str):
    with Gradebook(taught.database) as book:
        for student in students(chapter):
            lines = book_lines(book, chapter)
            given = {line.cell: line.auto for line in lines if line.student == student}
            wanted = expected[student][chapter]
            assert {test: given[test] for test in wanted} == wanted, student


def test_every_known_mistake_fails_what_its_making_foretold(
    course: Course, taught: Class, chapter: str
):
    """As submissions are graded, before the class was: all of them, also those it does not have."""
    importlib.import_module("autograder.bridge.tensors")  # which reads tensors that they gave
    version = fingerprints(course, {chapter: read(course, chapter)})[chapter]
    shelf = known_mistakes(course, chapter, version)
    known = [one for question in shelf.places for one in shelf.block(question).known]
    failed = {one.id: {test for test, end in one.ends.items() if end} for one in known}
    assert failed == {one.id: set(one.fails) for one in known}
    source = read_source(course.source(chapter))
    answers = read_answers(course.misconceptions(chapter), source)
    assert sorted(failed) == sorted(answer.id for answer in answers)


def test_the_class_has_all_kinds_of_work():
    kinds = {maker_of(student, chapter) for chapter in CHAPTERS for student in students(chapter)}
    assert kinds == set(demo_class.MAKERS) | {demo_class.missing_file}


def test_three_variants_of_every_answer_are_in_the_class(course: Course, chapter: str):
    source = read_source(course.source(chapter))
    variants = read_answers(course.variants(chapter), source)
    used: dict[str, set[str]] = {}
    for number, maker in enumerate(demo_class.MAKERS):
        if maker is demo_class.variant and demo_class.STUDENTS[number] in students(chapter):
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
    course: Course, expected: Expected
):
    for chapter in CHAPTERS:
        tests = {c.id: c.points for c in read_source(course.source(chapter)).of_kind("test")}
        assert expected["ada"][chapter] == tests
        untouched = demo_class.STUDENTS[demo_class.MAKERS.index(demo_class.nothing)]
        assert set(expected[untouched][chapter].values()) == {0}


def test_work_that_cannot_be_run_gets_0_and_the_reason(taught: Class, chapter: str):
    journal = read_journal(taught)
    for student in students(chapter):
        reason = journal[student, chapter].reason
        assert REFUSED.get(maker_of(student, chapter), "") in reason
        assert bool(reason) == (maker_of(student, chapter) in REFUSED)


def lost(result: Result) -> list[Verdict]:
    """The verdicts that cost points."""
    found = [verdict for notebook in result.notebooks for verdict in notebook.verdicts]
    return [verdict for verdict in found if verdict.score < verdict.points]


def test_every_student_gets_a_feedback_page_for_every_chapter(taught: Class, chapter: str):
    journal = read_journal(taught)
    for student in students(chapter):
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
    for student in students(chapter):
        page = taught.feedback / student / chapter / f"{chapter}.html"
        text = _plain(page.read_text(encoding="utf-8"))
        leaked = {line for line in secret if line in text}
        own = _handed_in(taught, student, chapter) if leaked else ""
        assert {line for line in leaked if line not in own} == set(), student


def _handed_in(taught: Class, student: str, chapter: str) -> str:
    """What a student wrote: what stands there, as a part of a line too, is no leak."""
    path = taught.submitted / student / chapter / f"{chapter}.ipynb"
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return "\n".join("".join(cell["source"]) for cell in cells)


def _plain(html: str) -> str:
    """The text of a page, without its tags."""
    return " ".join(BeautifulSoup(html, "html.parser").get_text().split())


def test_grades_csv_has_a_row_for_every_student(taught: Class, expected: Expected):
    with (taught.folder / "grades.csv").open(encoding="utf-8") as file:
        table = {row["student"]: row for row in csv.DictReader(file)}
    assert sorted(table) == sorted([*STUDENTS, EMPTY])
    for chapter in CHAPTERS:
        for student in students(chapter):
            wanted = sum(expected[student][chapter].values())
            assert float(table[student][chapter]) == wanted
    for row in table.values():
        lost = float(row["tests"]) < float(row["tests max"])
        assert bool(row["what went wrong"]) == lost


def test_the_report_links_every_feedback_page(taught: Class):
    text = (taught.folder / "report.html").read_text(encoding="utf-8")
    for chapter in CHAPTERS:
        for student in students(chapter):
            assert f'href="feedback/{student}/{chapter}/{chapter}.html"' in text


def test_a_second_run_grades_nothing_again(taught: Class):
    summary = grade(taught, CHAPTERS, progress=False)
    assert summary.graded == 0
    assert summary.kept == sum(len(students(chapter)) for chapter in CHAPTERS)


def test_one_students_broken_work_changes_nobody_elses_grade(
    course: Course, taught: Class, tmp_path: Path
):
    """A neighbour of a broken submission, graded with it and alone."""
    chapter = CHAPTERS[0]
    results = read_journal(taught)
    assert results["yuki", chapter].reason
    assert not results["ada", chapter].reason and not lost(results["ada", chapter])
    assert lost(results["fatima", chapter])
    hand_in(course, tmp_path, ["fatima"], chapter)
    grade(alone := Class(course, tmp_path), [chapter], progress=False)
    again = read_journal(alone)["fatima", chapter]
    assert [v.told for v in lost(again)] == [v.told for v in lost(results["fatima", chapter])]


def test_a_chapter_that_a_student_did_not_hand_in_is_not_graded(taught: Class):
    handed_in = {(student, chapter) for chapter in CHAPTERS for student in students(chapter)}
    assert EMPTY in taught.students() and set(read_journal(taught)) == handed_in


def test_an_unknown_student_is_an_error(taught: Class):
    with pytest.raises(CourseError, match="no student 'nobody'"):
        grade(taught, CHAPTERS, students=["nobody"], progress=False)


def test_a_class_without_submissions_is_told_where_they_belong(course: Course, tmp_path: Path):
    with pytest.raises(CourseError, match="does not exist; put each submission at"):
        grade(Class(course, tmp_path), CHAPTERS[:1])

"""The tests are graded too: right answers pass in any words, known mistakes fail as foretold."""

import ast
from collections import Counter

import pytest

from autograder.answers import Answer, read_answers, splice
from autograder.course import Course, CourseError
from autograder.mutants import run_tests, try_answers, unanswered
from autograder.source import Cell, read_source

CELL = Cell(
    "solution",
    "import math\n\ndef area(r):\n    return math.pi * r * r\n\nclass Disc:\n"
    "    def area(self):\n        return 1\n",
    1,
    "area",
)


def test_every_known_answer_comes_out_as_foretold(course: Course, chapter: str):
    surprises = [
        f"{outcome.question}: {outcome.name} fails {sorted(outcome.failed.items())}, "
        f"should fail {sorted(outcome.expected)}"
        for outcome in try_answers(course, chapter)
        if outcome.surprising
    ]
    assert surprises == []


def test_every_question_has_three_variants_and_three_misconceptions(course: Course, chapter: str):
    source = read_source(course.source(chapter))
    for path in (course.variants(chapter), course.misconceptions(chapter)):
        counts = Counter(answer.question for answer in read_answers(path, source))
        for cell in source.of_kind("solution"):
            assert counts[cell.id] >= 3, f"{path.name}: {cell.id}"


def test_every_misconception_points_to_a_heading_of_the_book(course: Course, chapter: str):
    source = read_source(course.source(chapter))
    for answer in read_answers(course.misconceptions(chapter), source):
        page, _, label = answer.read.partition("#")
        text = (course.root / "book" / f"{page}.md").read_text(encoding="utf-8")
        assert f"({label})=" in text, f"{answer.id} points to {answer.read}"


def test_misconceptions_have_names_of_their_own(course: Course, chapter: str):
    source = read_source(course.source(chapter))
    ids = [answer.id for answer in read_answers(course.misconceptions(chapter), source)]
    assert [id for id, count in Counter(ids).items() if count > 1] == []


def test_no_question_depends_on_another_answer(course: Course, chapter: str):
    """Each question, answered alone, gets its points: no cascades."""
    source = read_source(course.source(chapter))
    empty = unanswered(source)
    for cell in source.of_kind("solution"):
        cells = [cell if other.id == cell.id else other for other in empty.cells]
        alone = type(source)(source.path, tuple(cells), source.digest)
        failed = run_tests(alone)
        assert [test for test in source.tests_of(cell.id) if test in failed] == []


@pytest.mark.parametrize(
    ("target", "code", "expected"),
    [
        ("area", "def square(r):\n    return r * r", "def area(r):\n    return r * r"),
        ("Disc.area", "def two(self):\n    return 2", "    def area(self):\n        return 2"),
    ],
)
def test_an_answer_takes_the_place_and_the_name_of_its_target(target, code, expected):
    name = code.split()[1].split("(")[0]
    spliced = splice(CELL, Answer(name, "area", code, target))
    assert expected in spliced.source
    ast.parse(spliced.source)


def test_an_answer_that_calls_itself_is_renamed_throughout():
    code = "def fall(r):\n    return fall(r - 1) if r else 0"
    spliced = splice(CELL, Answer("fall", "area", code, "area"))
    assert "return area(r - 1) if r else 0" in spliced.source


def test_an_answer_to_a_cell_of_several_names_needs_a_target():
    with pytest.raises(CourseError, match="needs target="):
        splice(CELL, Answer("fall", "area", "def fall(r):\n    return 0"))


def test_an_answer_to_a_question_that_is_not_there_is_refused(course: Course, tmp_path):
    source = read_source(course.source(course.chapters()[0]))
    path = tmp_path / "misconceptions.py"
    path.write_text('@variant("nothing")\ndef f():\n    return 1\n', encoding="utf-8")
    with pytest.raises(CourseError, match="there is no solution 'nothing'"):
        read_answers(path, source)

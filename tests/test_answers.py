"""The tests are graded too: right answers pass in any words, known mistakes fail as foretold."""

import ast
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from autograder.authoring.answers import Answer, read_answers, splice
from autograder.authoring.mutants import (
    diagnosed,
    load,
    run_tests,
    save,
    try_answers,
    unanswered,
)
from autograder.authoring.source import Cell, read_source
from autograder.common.course import Course, CourseError
from autograder.common.results import Crossing, TestRun

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
    listed = {row.chapter for row in load(TABLE)}
    if not course.misconceptions(chapter).is_file() and chapter not in listed:
        pytest.skip("an instructor's own chapter need not have known answers")
    for path in (course.variants(chapter), course.misconceptions(chapter)):
        counts = Counter(answer.question for answer in read_answers(path, source))
        few = {cell.id: counts[cell.id] for cell in source.of_kind("solution")}
        few = {question: count for question, count in few.items() if count < 3}
        assert not few, f"{path.relative_to(course.root)} has fewer than three answers to {few}"


def test_every_misconception_points_to_a_heading_of_the_book(course: Course, chapter: str):
    source = read_source(course.source(chapter))
    for answer in read_answers(course.misconceptions(chapter), source):
        page, _, label = answer.read.partition("#")
        text = (course.root / "book" / f"{page}.md").read_text(encoding="utf-8")
        there = f"({label})=" in text  # a plain name: pytest would show the whole page
        assert there, f"{answer.id}: read={answer.read!r}, but no ({label})= in book/{page}.md"


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


WRONG = '''@misconception("total", id="SUM1", fails=["total-values"], read="sums#totals")
def first(x):
    """One."""
    return 1
'''


@pytest.mark.parametrize(
    ("written", "instead", "says"),
    [
        ("total-values", "total-value", "no test of total; its tests are total-values, total-more"),
        ('["total-values"]', '"total-values"', r"a list, \['total-values'\]"),
        (', read="sums#totals"', "", "misconception needs read="),
        ("read=", "reads=", "misconception needs read="),
        ("fails=", 'taget="total", fails=', "misconception has no taget="),
        ("@misconception", "@misconeption", "mark it @misconception"),
        ('    """One."""\n', "", "needs a docstring"),
        ("first(x", "first((x", "misconceptions.py, line 2: no Python"),
        (WRONG, WRONG * 2, "the id 'SUM1' is that of first already"),
    ],
)
def test_an_answer_that_is_not_marked_as_it_should_be_is_refused(
    small: Course, written: str, instead: str, says: str
):
    path = small.misconceptions("01_sums")
    path.write_text(WRONG.replace(written, instead), encoding="utf-8")
    with pytest.raises(CourseError, match=says):
        read_answers(path, read_source(small.source("01_sums")))


# --- the table of mistakes, and what is surprising in it

TABLE = Path(__file__).parents[1] / "book" / "mutants.tsv"


def test_the_books_table_lists_every_misconception_as_it_stands(course: Course, chapter: str):
    source = read_source(course.source(chapter))
    answers = read_answers(course.misconceptions(chapter), source)
    listed = [row for row in load(TABLE) if row.chapter == chapter]
    assert [(a.id, a.name, a.question, a.message) for a in answers] == [
        (row.id, row.name, row.question, row.message) for row in listed
    ], "run: make mutants"
    for answer, row in zip(answers, listed, strict=True):
        assert {test.removesuffix(" (hidden)") for test in row.caught} == set(answer.fails)


def test_nine_of_ten_misconceptions_are_named_and_none_is_taken_for_another():
    rows = load(TABLE)
    assert sum(row.by_name for row in rows) >= 0.9 * len(rows)
    strangers = [row.id for row in rows if not row.by_name and row.id not in row.named.split()]
    assert strangers == []


SOURCE = """\
# %% [markdown]
# # Sums
# %% setup
import math
# %% [markdown]
# ## 1.1 Totals   (3 points, about 5 minutes, difficulty 1 of 5)
# %% solution="total"
def total(x):
    ### BEGIN SOLUTION
    return sum(x)
    ### END SOLUTION
# %% test="total-values" points=1
assert total([1]) == 1, "the sum of one number is that number"
# %% test="total-more" points=2
assert total([1, 2]) == 3, "two numbers are added"
"""
MISTAKE = '''\
@misconception("total", id="{id}", fails=["total-values"], read="sums#totals")
def {name}(x):
    """{name}."""
    return "{name}!"
'''


@pytest.fixture
def small(tmp_path: Path) -> Course:
    """A course of one question with two known mistakes."""
    (tmp_path / "solutions" / "01_sums").mkdir(parents=True)
    (tmp_path / "solutions" / "01_sums" / "01_sums.py").write_text(SOURCE, encoding="utf-8")
    course = Course(tmp_path)
    mistakes = MISTAKE.format(id="SUM1", name="first") + MISTAKE.format(id="SUM2", name="second")
    course.misconceptions("01_sums").write_text(mistakes, encoding="utf-8")
    return course


def as_if(first: object, second: object, *, values: bool = True, more: bool = False):
    """Runs that see these outcomes of the two mistakes, and fail these tests."""

    def run(answers: Mapping[str, str], _: Sequence[str]) -> dict[str, TestRun]:
        answer = answers.get("total", "")
        outcome = first if "first" in answer else second if "second" in answer else 1
        calls = (Crossing("total", (), outcome),)

        def test(name: str, fails: bool) -> TestRun:
            status = "failed" if fails and answer else "passed"
            return TestRun(name, status, 0.0, in_hidden=True, transcript=calls)

        return {t.test: t for t in (test("total-values", values), test("total-more", more))}

    return run


def test_a_mistake_of_its_own_kind_is_named_and_caught_as_foretold(small: Course):
    one, two = diagnosed(small, "01_sums", as_if(2, 3))
    assert (one.caught, one.named, one.surprises) == (("total-values (hidden)",), "by name", ())
    assert two.by_name and not two.surprises


def test_mistakes_that_give_the_same_are_listed_with_both_names(small: Course):
    one, two = diagnosed(small, "01_sums", as_if(2, 2))
    assert one.named == two.named == "as SUM1 or SUM2"
    assert one.surprises == two.surprises == ()


def test_a_mistake_that_no_test_catches_is_a_surprise(small: Course):
    one, _ = diagnosed(small, "01_sums", as_if(2, 3, values=False))
    assert one.surprises == ("no test fails: write one that does",)


def test_a_mistake_that_fails_other_tests_than_foretold_is_a_surprise(small: Course):
    one, _ = diagnosed(small, "01_sums", as_if(2, 3, more=True))
    assert one.surprises == ("should fail total-values by its fails=: correct that, or the tests",)


def test_the_table_is_kept_for_the_book_and_chapters_not_run_keep_their_rows(small: Course):
    path = small.root / "mutants.tsv"
    rows = diagnosed(small, "01_sums", as_if(2, 2))
    other = replace(rows[0], chapter="02_more", message='With a "quote", a tab\tand more.')
    save(path, [other])
    save(path, rows)
    assert load(path) == [*rows, other]

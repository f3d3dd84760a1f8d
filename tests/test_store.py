"""The store writes what nbgrader itself would write, and nothing over what a person wrote."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from nbgrader import api
from nbgrader.api import Gradebook

from autograder.assignment import Assignment, read_assignment
from autograder.course import Course
from autograder.grade import Class
from autograder.journal import Graded
from autograder.results import NotebookResult, Result, Verdict
from autograder.rules import Late, Rules
from autograder.store import Store
from tests.small_course import ANSWERS, NAME, hand_in, make_course, nbgrader

VERSION = cache(api.get_alembic_version)
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Course:
    """The small class, graded by stock nbgrader."""
    course = make_course(tmp_path_factory.mktemp("stock"))
    nbgrader(course.root, "generate_assignment", NAME)
    for student, answers in ANSWERS.items():
        hand_in(course.root, student, answers)
    nbgrader(course.root, "autograde", NAME)
    return course


@pytest.fixture(scope="module")
def assignment(stock: Course) -> Assignment:
    """The small assignment, as grading sees it."""
    return read_assignment(stock.root / "source" / NAME)


@pytest.fixture(autouse=True)
def version_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """nbgrader starts a process for every new gradebook to learn a number that never changes."""
    monkeypatch.setattr(api, "get_alembic_version", VERSION)


@pytest.fixture
def taught(stock: Course, tmp_path: Path) -> Class:
    """An empty class of the same course."""
    return Class(stock, tmp_path)


@pytest.fixture
def store(taught: Class, assignment: Assignment) -> Iterator[Store]:
    """A store that knows the assignment and writes no files."""
    with Store(taught, pages=False) as store:
        store.enter(assignment)
        yield store


def result(student: str, assignment: Assignment, scores: dict[str, float]) -> Result:
    """What the engine would find out, given the scores of the tests."""
    (notebook,) = assignment.notebooks
    verdicts = tuple(
        Verdict(test.grade_id, "passed", scores[test.grade_id], test.points)
        for test in notebook.of_kind("test")
    )
    stubs = {cell.grade_id: cell.stub for cell in notebook.cells if cell.answerable}
    answers = stubs | ANSWERS[student]
    return Result(student, NAME, "key", (NotebookResult(notebook.name, verdicts, answers),))


def cells_of(url: str) -> dict[str, Any]:
    """What a gradebook knows of the assignment."""
    with Gradebook(url) as book:
        found = book.find_assignment(NAME)
        (notebook,) = found.notebooks
        graded = [*notebook.grade_cells, *notebook.task_cells]
        return {
            "course": found.course_id,
            "worth": {(c.type, c.name): (c.max_score, c.cell_type) for c in graded},
            "solutions": sorted(cell.name for cell in notebook.solution_cells),
            "sources": {
                c.name: (c.cell_type, c.locked, c.source, c.checksum) for c in notebook.source_cells
            },
            "kernel": notebook.kernelspec,
        }


def rows_of(url: str, student: str) -> dict[str, Any]:
    """What a gradebook holds of one submission."""
    with Gradebook(url) as book:
        notebook = book.find_submission_notebook("numbers", NAME, student)
        return {
            "grades": {
                (row.cell.type, row.name): (
                    row.auto_score,
                    row.manual_score,
                    row.extra_credit,
                    row.needs_manual_grade,
                )
                for row in notebook.grades
            },
            "comments": {
                (row.cell.type, row.name): (row.auto_comment, row.manual_comment)
                for row in notebook.comments
            },
            "penalty": notebook.late_submission_penalty,
            "score": notebook.score,
            "flagged": notebook.flagged,
        }


def test_the_assignments_rows_are_those_of_stock_nbgrader(
    stock: Course, taught: Class, store: Store
):
    assert cells_of(taught.database) == cells_of(Class(stock, stock.root).database)


@pytest.mark.parametrize("student", ANSWERS)
def test_a_submissions_rows_are_those_of_stock_nbgrader(
    stock: Course, taught: Class, store: Store, assignment: Assignment, student: str
):
    expected = rows_of(Class(stock, stock.root).database, student)
    scores = {name: row[0] for (_, name), row in expected["grades"].items()}
    store.save(Graded(result(student, assignment, scores)), assignment)
    assert rows_of(taught.database, student) == expected


def everything(assignment: Assignment) -> dict[str, float]:
    """Full marks in every test."""
    return {cell.grade_id: cell.points for n in assignment.notebooks for cell in n.of_kind("test")}


def by_hand(url: str) -> None:
    """Grade, reward and comment as a person would in formgrader."""
    with Gradebook(url) as book:
        grade: Any = book.find_grade("why", "numbers", NAME, "ada")
        grade.manual_score, grade.extra_credit, grade.needs_manual_grade = 1.5, 0.5, False
        comment: Any = book.find_comment("why", "numbers", NAME, "ada")
        comment.manual_comment = "Why is it so?"
        book.db.commit()


def test_a_regrade_keeps_what_a_person_entered(taught: Class, store: Store, assignment: Assignment):
    graded = Graded(result("ada", assignment, everything(assignment)))
    store.save(graded, assignment)
    by_hand(taught.database)
    store.save(graded, assignment)
    rows = rows_of(taught.database, "ada")
    assert rows["grades"]["GradeCell", "why"] == (None, 1.5, 0.5, True)
    assert rows["comments"]["SolutionCell", "why"] == (None, "Why is it so?")
    assert rows["score"] == sum(everything(assignment).values()) + 2


def test_saving_twice_changes_nothing(taught: Class, store: Store, assignment: Assignment):
    graded = Graded(result("dana", assignment, everything(assignment)), NOON.timestamp())
    store.save(graded, assignment)
    first = rows_of(taught.database, "dana")
    store.save(graded, assignment)
    assert rows_of(taught.database, "dana") == first


def test_a_submission_that_could_not_be_graded_is_0_and_waits_for_nobody(
    taught: Class, store: Store, assignment: Assignment
):
    store.save(Graded(Result("elif", NAME, "key", reason="no notebook was found")), assignment)
    rows = rows_of(taught.database, "elif")
    assert {row[0] for row in rows["grades"].values()} == {0.0}
    assert not any(row[3] for row in rows["grades"].values())
    assert rows["comments"]["SolutionCell", "why"] == ("No response.", None)


def without(assignment: Assignment, *names: str) -> Assignment:
    """The assignment without some of its cells."""
    (notebook,) = assignment.notebooks
    kept = tuple(cell for cell in notebook.cells if cell.grade_id not in names)
    return replace(assignment, notebooks=(replace(notebook, cells=kept),))


def test_cells_may_come_and_go_between_runs(taught: Class, store: Store, assignment: Assignment):
    smaller = without(assignment, "third", "third-values")
    store.enter(smaller)
    graded = Graded(result("ada", assignment, everything(assignment)))
    store.save(graded, smaller)
    assert ("GradeCell", "third-values") not in rows_of(taught.database, "ada")["grades"]
    by_hand(taught.database)
    store.enter(assignment)
    store.save(graded, assignment)
    rows = rows_of(taught.database, "ada")["grades"]
    assert rows["GradeCell", "third-values"] == (3.0, None, None, False)
    assert rows["GradeCell", "why"][1] == 1.5


def test_a_cell_that_a_person_graded_stays_when_it_goes_from_the_source(
    taught: Class, store: Store, assignment: Assignment
):
    graded = Graded(result("ada", assignment, everything(assignment)))
    store.save(graded, assignment)
    by_hand(taught.database)
    store.enter(without(assignment, "why", "draw"))
    names = {name for _, name in rows_of(taught.database, "ada")["grades"]}
    assert "why" in names and "draw" not in names


@pytest.mark.parametrize(
    ("late", "hours", "penalty"),
    [
        (Late("none", NOON), 5, None),
        (Late("per-day", NOON, rate=0.1), 5, 0.6),
        (Late("per-day", NOON, rate=0.1), 30, 1.2),
        (Late("per-day", NOON, rate=0.1, grace_hours=6), 5, None),
        (Late("zero", NOON), 5, 6.0),
        (Late("zero", NOON), -1, None),
        (Late("zero", NOON, times={"ada": NOON.timestamp() - 60}), 5, None),
    ],
)
def test_lateness_costs_what_the_rules_say(
    taught: Class, store: Store, assignment: Assignment, late: Late, hours: float, penalty: float
):
    strict = replace(assignment, rules=Rules(late=late))
    store.enter(strict)
    when = (NOON + timedelta(hours=hours)).timestamp()
    store.save(Graded(result("ada", strict, everything(strict)), when), strict)
    assert rows_of(taught.database, "ada")["penalty"] == pytest.approx(penalty)


def test_an_extension_in_the_gradebook_counts(taught: Class, store: Store, assignment: Assignment):
    strict = replace(assignment, rules=Rules(late=Late("zero", NOON)))
    store.enter(strict)
    graded = Graded(
        result("ada", strict, everything(strict)), (NOON + timedelta(hours=5)).timestamp()
    )
    store.save(graded, strict)
    with Gradebook(taught.database) as book:
        book.grant_extension(NAME, "ada", hours=6)
    store.save(graded, strict)
    assert rows_of(taught.database, "ada")["penalty"] is None

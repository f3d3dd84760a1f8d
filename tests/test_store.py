"""The store writes what nbgrader itself would write, and nothing over what a person wrote."""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from nbgrader.api import Gradebook

from autograder.classroom import gradebook
from autograder.classroom import store as store_module
from autograder.classroom.classes import Class
from autograder.classroom.gradebook import moment
from autograder.classroom.gradebook_marks import NO_RESPONSE
from autograder.classroom.journal import Journal
from autograder.classroom.journal_lines import Graded
from autograder.classroom.keeper import refresh
from autograder.classroom.result_files import write_files
from autograder.classroom.store import Store
from autograder.common.course import Course, CourseError
from autograder.common.names import earlier, plain
from autograder.common.results import NotebookResult, Result, Verdict
from autograder.judge.assignment import Assignment, read_assignment
from autograder.judge.lateness import Late
from autograder.judge.rules import Rules
from tests.hostile.pages import FOLDERS
from tests.small_course import ANSWERS, NAME, hand_in, make_course, nbgrader, release

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Course:
    """The small class, graded by stock nbgrader."""
    course = make_course(tmp_path_factory.mktemp("stock"))
    release(course.root)
    for student, answers in ANSWERS.items():
        hand_in(course.root, student, answers)
    nbgrader(course.root, "autograde", NAME)
    return course


@pytest.fixture(scope="module")
def assignment(stock: Course) -> Assignment:
    """The small assignment, as grading sees it."""
    return read_assignment(stock.root / "source" / NAME)


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


def test_a_new_gradebook_has_the_version_that_alembic_tells():
    """It is asked here alone: other tests, and the grader, read it in the files of its versions."""
    assert gradebook.newest_version() == gradebook._alembics_answer()


def test_a_gradebook_made_by_looking_into_it_starts_no_process(taught: Class, monkeypatch: Any):
    monkeypatch.setattr(gradebook, "_alembics_answer", pytest.fail)
    monkeypatch.setattr(gradebook.api, "get_alembic_version", pytest.fail)
    with gradebook.reading(taught) as book:
        assert not book.students


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


def test_what_a_person_graded_waits_again_if_its_answers_changed(
    taught: Class, store: Store, assignment: Assignment
):
    graded = Graded(result("ada", assignment, everything(assignment)))
    (notebook,) = graded.result.notebooks
    other = replace(notebook, answers=notebook.answers | {"why": "It is not."})
    changed = replace(graded, result=replace(graded.result, notebooks=(other,)))
    store.save(graded, assignment)
    by_hand(taught.database)
    for now, before, waits in ((graded, graded, False), (changed, graded, True)):
        store.save(now, assignment, before)
        rows = rows_of(taught.database, "ada")["grades"]
        assert rows["GradeCell", "why"] == (None, 1.5, 0.5, waits)
        assert rows["GradeCell", "draw"][3], "nobody has graded it yet"


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


def test_a_written_answer_near_its_place_waits_for_a_person(
    taught: Class, store: Store, assignment: Assignment
):
    (notebook,) = assignment.notebooks
    student = next(iter(ANSWERS))
    found = result(student, assignment, everything(assignment))
    (outcome,) = found.notebooks
    cells = notebook.cells
    marked = [n for n, one in enumerate(cells) if one.points or one.answerable]
    for written in notebook.of_kind("manual"):
        answers = outcome.answers | {written.grade_id: written.stub}
        here = marked.index(cells.index(written))
        before, after = marked[here - 1], [*marked, len(cells)][here + 1]
        ids = {one.grade_id for one in cells if one.grade_id} | {""}
        near = {one.grade_id for one in cells[before:after] if one.grade_id}
        assert written.grade_id in near and len(near) < len(ids)
        for place in sorted(ids):
            for kind in ("markdown", "code", "raw", "blank", ""):
                own = (place, kind.replace("blank", "raw"), " \n" if kind == "blank" else "I say.")
                given = replace(outcome, answers=answers, extra=(own,) if kind else ())
                store.save(Graded(replace(found, notebooks=(given,))), assignment)
                rows = rows_of(taught.database, student)
                grade = rows["grades"]["GradeCell", written.grade_id]
                comment = rows["comments"]["SolutionCell", written.grade_id][0]
                waits = place in near and kind not in ("blank", "")
                expected = (None, True, None) if waits else (0, False, NO_RESPONSE)
                assert (grade[0], grade[3], comment) == expected, (written.grade_id, own)


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
        (Late("none", NOON, trust_timestamp=True), 5, None),
        (Late("per-day", NOON, rate=0.1, trust_timestamp=True), 5, 0.6),
        (Late("per-day", NOON, rate=0.1, trust_timestamp=True), 30, 1.2),
        (Late("per-day", NOON, rate=0.1, grace_hours=6, trust_timestamp=True), 5, None),
        (Late("zero", NOON, trust_timestamp=True), 5, 6.0),
        (Late("zero", NOON, trust_timestamp=True), -1, None),
        (Late("zero", NOON, times={"ada": NOON.timestamp() - 60}), 5, None),
        (Late("zero", NOON, times={"ada": NOON.timestamp() + 60}), -5, 6.0),
        (Late("zero", NOON), 5, None),
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
    strict = replace(assignment, rules=Rules(late=Late("zero", NOON, trust_timestamp=True)))
    store.enter(strict)
    graded = Graded(
        result("ada", strict, everything(strict)), (NOON + timedelta(hours=5)).timestamp()
    )
    store.save(graded, strict)
    with Gradebook(taught.database) as book:
        book.grant_extension(NAME, "ada", hours=6)
    store.save(graded, strict)
    assert rows_of(taught.database, "ada")["penalty"] is None


ODD_NAMES = [*FOLDERS.values(), "\ud800", "x" * 3000]


def students(url: str) -> set[str]:
    """Everybody in a gradebook."""
    with Gradebook(url) as book:
        return {str(student.id) for student in book.students}


def test_a_student_may_have_any_name(taught: Class, store: Store, assignment: Assignment):
    for name in ODD_NAMES:
        made = replace(result("ada", assignment, everything(assignment)), student=name)
        store.save(Graded(made, NOON.timestamp()), assignment)
    assert students(taught.database) == {plain(name) for name in ODD_NAMES}
    assert rows_of(taught.database, plain("M\udcfcller"))["score"] == 6
    assert store.troubles == []


def test_a_student_whom_an_older_version_wrote_otherwise_keeps_all_that_was_given(
    taught: Class, store: Store, assignment: Assignment, monkeypatch: pytest.MonkeyPatch
):
    made = result("ada", assignment, everything(assignment))
    named = [Graded(replace(made, student=name)) for name in (r"DOM\user", 'a"b', "O'Brien")]
    with monkeypatch.context() as then:
        then.setattr(store_module, "plain", earlier)
        for graded in named:
            store.save(graded, assignment)
    assert students(taught.database) == {r"DOM\user", 'a"b', "O'Brien"}
    with Gradebook(taught.database) as book:
        known: Any = book.find_student(r"DOM\user")
        known.first_name = "Uma"
        row: Any = book.find_submission_notebook("numbers", NAME, r"DOM\user").grades[0]
        row.extra_credit = 0.5
        book.db.commit()
    for graded in [*named, *named]:
        store.save(graded, assignment)
    assert students(taught.database) == {r"DOM\x5cuser", r"a\x22b", "O'Brien"}
    assert rows_of(taught.database, r"DOM\x5cuser")["score"] == 6.5
    with Gradebook(taught.database) as book:
        known = book.find_student(r"DOM\x5cuser")
        assert known.first_name == "Uma"
    assert store.troubles == []


@pytest.mark.parametrize("name", FOLDERS.values())
def test_files_lie_in_folders_of_the_students_own_name(
    taught: Class, assignment: Assignment, name: str
):
    made = replace(result("ada", assignment, everything(assignment)), student=name)
    write_files(taught, Graded(made, NOON.timestamp()), assignment)
    for folder, file in ((taught.autograded, "numbers.ipynb"), (taught.feedback, "numbers.html")):
        (only,) = folder.iterdir()
        assert only.name == name
        text = (only / NAME / file).read_text(encoding="utf-8")
        assert not re.search("[\x00-\x08\x1b\x9b\u202e]", text)


def secrets_of(taught: Class, *students: str) -> list[str]:
    """What lies beside the pages of these, the same in both folders."""
    paths = [Path(student, NAME, "submission_secret.txt") for student in students]
    found = [(taught.feedback / path).read_text() for path in paths]
    assert [(taught.autograded / path).read_text() for path in paths] == found
    return found


def test_a_secret_of_two_students_is_nobodys(taught: Class, assignment: Assignment):
    made = {
        name: replace(result("ada", assignment, everything(assignment)), student=name, key=name)
        for name in ("ada", "eve", "mallory")
    }
    for name in made:
        (taught.submitted / name).mkdir(parents=True)
    own, other = "a" * 128, "b" * 128
    with Journal(taught) as journal:

        def hand_in(name: str, secret: str) -> list[str]:
            graded = Graded(made[name], secret=secret)
            with Store(taught) as store:
                store.enter(assignment)
                journal.graded(graded)
                store.save(graded, assignment)
                return store.troubles

        assert hand_in("ada", own) == hand_in("eve", other) == []
        (words,) = hand_in("mallory", own)
        assert "that ada, mallory each handed in" in words
        first, untouched, second = secrets_of(taught, *made)
        assert untouched == other
        assert len({first, second, own, other}) == 4
        assert hand_in("mallory", other) and secrets_of(taught, "ada") == [own]
        assert hand_in("mallory", "") == [] and secrets_of(taught, "eve") == [other]

        # A grader that was ended before it had written everything is made up for.
        journal.graded(Graded(made["mallory"], secret=own))
        refresh(taught, {NAME: assignment})
        assert secrets_of(taught, "ada", "mallory") == [first, second]

        (taught.submitted / "mallory").rename(taught.submitted / "renamed")
        refresh(taught, {NAME: assignment})
        assert secrets_of(taught, "ada") == [own]


@pytest.mark.parametrize(
    ("seconds", "year"),
    [
        (2.0**41, 9000),
        (1e300, 9000),
        (float("inf"), 9000),
        (-1e18, 1900),
        (float("-inf"), 1900),
        (0.0, 1970),
        (253402300799.9, 9000),
    ],
)
def test_a_time_beyond_the_calendar_is_its_end(
    taught: Class, store: Store, assignment: Assignment, seconds: float, year: int
):
    when = moment(seconds)
    assert when is not None and when.year == year
    late = replace(assignment, rules=Rules(late=Late("zero", NOON, trust_timestamp=True)))
    store.enter(late)
    made = result("ada", late, everything(late))
    store.save(Graded(made, seconds), late)
    write_files(taught, Graded(made, seconds), late)
    assert rows_of(taught.database, "ada")["score"] == 6


def test_no_time_is_none(taught: Class, store: Store, assignment: Assignment):
    assert moment(float("nan")) is None
    store.save(Graded(result("ada", assignment, everything(assignment)), float("nan")), assignment)
    assert rows_of(taught.database, "ada")["score"] == 6


def test_an_answer_that_breaks_its_page_costs_its_page_only(
    taught: Class, assignment: Assignment, monkeypatch: pytest.MonkeyPatch
):
    def broken(text: str) -> str:
        if text:
            raise MemoryError
        return text

    monkeypatch.setattr("autograder.classroom.feedback.coloured", broken)
    monkeypatch.setattr(
        "autograder.classroom.rebuild._extra", lambda *_: 1 / 0 if _[0].extra else []
    )
    made = result("ada", assignment, everything(assignment))
    (notebook,) = made.notebooks
    extra = replace(notebook, extra=(("square", "code", "1"),))
    with Store(taught) as store:
        store.enter(assignment)
        store.save(Graded(replace(made, notebooks=(extra,))), assignment)
        assert store.troubles == []
    assert rows_of(taught.database, "ada")["score"] == 6
    page = (taught.feedback / "ada" / NAME / "numbers.html").read_text()
    assert "could not be written in full (MemoryError); the scores are right" in page
    assert "ZeroDivisionError" in (taught.autograded / "ada" / NAME / "numbers.ipynb").read_text()


def test_something_in_the_way_of_ones_files_is_told_and_the_score_is_stored(
    taught: Class, assignment: Assignment
):
    taught.feedback.mkdir()
    (taught.feedback / "ada").write_text("a file where a folder should be")
    with Store(taught) as store:
        store.enter(assignment)
        for name in ("ada", "bela"):
            made = replace(result("ada", assignment, everything(assignment)), student=name)
            store.save(Graded(made), assignment)
        (trouble,) = store.troubles
    assert trouble.startswith(f"ada, {NAME}: not all of its files could be written (")
    assert {rows_of(taught.database, name)["score"] for name in ("ada", "bela")} == {6}
    assert (taught.feedback / "bela" / NAME / "numbers.html").is_file()


def test_something_in_the_way_of_everybodys_files_ends_the_run(
    taught: Class, assignment: Assignment
):
    taught.feedback.write_text("a file where a folder should be")
    with Store(taught) as store, pytest.raises(CourseError, match="feedback"):
        store.enter(assignment)
        store.save(Graded(result("ada", assignment, everything(assignment))), assignment)


def test_rows_that_cannot_be_stored_are_0_with_a_sentence(
    taught: Class, store: Store, assignment: Assignment, monkeypatch: pytest.MonkeyPatch
):
    from autograder.classroom import gradebook_marks as module

    given = module._rows
    monkeypatch.setattr(
        module, "_rows", lambda n, o, reason: given(n, o, reason) if reason else 1 / 0
    )
    store.save(Graded(result("ada", assignment, everything(assignment))), assignment)
    (trouble,) = store.troubles
    assert "could not be stored (ZeroDivisionError); it is 0 until" in trouble
    assert rows_of(taught.database, "ada")["score"] == 0

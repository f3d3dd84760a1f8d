"""nbgrader's own commands and formgrader, used on this course as its manual says."""

import csv
import json
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from nbgrader.api import Gradebook
from nbgrader.coursedir import CourseDirectory

from autograder.authoring.building import build_instructor
from autograder.authoring.rehearsal import Rehearsed
from autograder.authoring.source import read_source
from autograder.classroom import hooks
from autograder.classroom.classes import Class
from autograder.classroom.demo import Work, half, reference
from autograder.classroom.grade import grade
from autograder.classroom.journal import read_journal
from autograder.classroom.warm import Warm
from autograder.common.course import Course
from autograder.isolation.outcomes import Lost
from tests.conftest import CHAPTERS
from tests.kill_drill import state
from tests.serving import Ask, serving
from tests.small_course import ANSWERS, NAME, RIGHT, make_course, nbgrader, release
from tests.small_course import hand_in as small_hand_in

CHAPTER = CHAPTERS[0]


def hand_in(course: Course, root: Path, student: str, maker) -> Path:
    """Put a notebook made from the release where `nbgrader collect` would."""
    source = read_source(course.source(CHAPTER))
    work = Work(source, json.loads(course.release(CHAPTER).read_text(encoding="utf-8")), [], [])
    maker(work, 0)
    path = root / "submitted" / student / CHAPTER / f"{CHAPTER}.ipynb"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(work.notebook), encoding="utf-8")
    return path


def untouched(work: Work, number: int) -> None:
    """Hand in the release as it is."""


@pytest.fixture(scope="module")
def root(course: Course, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course of one chapter and three students, taken through nbgrader's commands."""
    root = tmp_path_factory.mktemp("course")
    shutil.copy(course.root / "nbgrader_config.py", root)
    instructor = build_instructor(course, CHAPTER)
    copy = root / instructor.relative_to(course.root)
    copy.parent.mkdir(parents=True)
    shutil.copy(instructor, copy)
    nbgrader(root, "generate_assignment", CHAPTER)
    for student, maker in (("ada", reference), ("noor", untouched), ("olga", half)):
        hand_in(course, root, student, maker)
    nbgrader(root, "autograde", CHAPTER)
    nbgrader(root, "generate_feedback", CHAPTER)
    nbgrader(root, "export")
    return root


def test_generate_assignment_gives_the_committed_release(course: Course, root: Path):
    made = json.loads((root / "exercises" / CHAPTER / f"{CHAPTER}.ipynb").read_text())
    assert made == json.loads(course.release(CHAPTER).read_text(encoding="utf-8"))


def test_autograde_gives_the_reference_all_and_the_untouched_release_nothing(
    course: Course, root: Path
):
    tests = {cell.id: cell.points for cell in read_source(course.source(CHAPTER)).of_kind("test")}
    with Gradebook(f"sqlite:///{root / 'gradebook.db'}") as book:
        scores = {
            student: {
                row.name: row.auto_score
                for row in book.find_submission_notebook(CHAPTER, CHAPTER, student).grades
                if row.name in tests
            }
            for student in ("ada", "noor", "olga")
        }
    assert scores["ada"] == tests
    assert scores["noor"] == dict.fromkeys(tests, 0)
    assert 0 < sum(scores["olga"].values()) < sum(tests.values())


def test_feedback_and_export_are_written(root: Path):
    for student in ("ada", "noor", "olga"):
        assert (root / "feedback" / student / CHAPTER / f"{CHAPTER}.html").is_file()
    with (root / "grades.csv").open(encoding="utf-8") as file:
        assert [row["student_id"] for row in csv.DictReader(file)] == ["ada", "noor", "olga"]


def test_validate_passes_the_reference(course: Course, root: Path):
    path = root / "submitted" / "ada" / CHAPTER / f"{CHAPTER}.ipynb"
    assert "Success!" in nbgrader(root, "validate", str(path))


def test_validate_tells_a_beginner_what_is_missing(course: Course, root: Path):
    path = root / "submitted" / "noor" / CHAPTER / f"{CHAPTER}.ipynb"
    said = nbgrader(root, "validate", str(path))
    cells = len(read_source(course.source(CHAPTER)).of_kind("test", "manual"))
    assert f"{cells} CELL(S) DO NOT PASS YET" in said.replace("\n", " ")
    assert said.count("not answered yet: replace this line") >= cells - 1
    assert "You did not provide a response." in said


@pytest.fixture(scope="module")
def server(root: Path) -> Iterator[Ask]:
    """A Jupyter server in the course's root; gives a function that asks it for a path."""
    with serving(root) as (_, ask):
        yield ask


def test_the_formgrader_shows_the_class(course: Course, root: Path, server):
    assert "formgrader" in server("formgrader").lower()
    (assignment,) = json.loads(server("formgrader/api/assignments"))
    assert assignment["name"] == CHAPTER
    assert assignment["num_submissions"] == 3
    source = read_source(course.source(CHAPTER))
    assert assignment["max_score"] == sum(cell.points for cell in source.cells)
    (notebook,) = json.loads(server(f"formgrader/api/notebooks/{CHAPTER}"))
    assert notebook["needs_manual_grade"], "the written answers wait for a hand"
    submissions = json.loads(server(f"formgrader/api/submitted_notebooks/{CHAPTER}/{CHAPTER}"))
    page = server(f"formgrader/submissions/{submissions[0]['id']}/?index=0")
    assert "Student's answer" in page


def grades_of(root: Path, student: str) -> dict[str, tuple]:
    """A submission's rows: automatic and manual score, extra credit, comment."""
    with Gradebook(f"sqlite:///{root / 'gradebook.db'}") as book:
        notebook = book.find_submission_notebook(CHAPTER, CHAPTER, student)
        said = {row.name: row.manual_comment for row in notebook.comments}
        return {
            row.name: (row.auto_score, row.manual_score, row.extra_credit, said.get(row.name))
            for row in notebook.grades
        }


def test_the_formgraders_grades_and_comments_outlive_every_regrade(
    course: Course, root: Path, server
):
    submissions = json.loads(server(f"formgrader/api/submitted_notebooks/{CHAPTER}/{CHAPTER}"))
    (id,) = [one["id"] for one in submissions if one["student"] == "ada"]
    given = json.loads(server(f"formgrader/api/grades?submission_id={id}"))
    written = next(grade for grade in given if grade["auto_score"] is None)
    score = {"manual_score": 0.5, "extra_credit": 0.25}
    server(f"formgrader/api/grade/{written['id']}", "PUT", score)
    comments = json.loads(server(f"formgrader/api/comments?submission_id={id}"))
    comment = next(one for one in comments if one["name"] == written["name"])
    server(f"formgrader/api/comment/{comment['id']}", "PUT", {"manual_comment": "Say more."})
    before = grades_of(root, "ada")
    assert before[written["name"]] == (None, 0.5, 0.25, "Say more.")

    answer = server(f"formgrader/api/submission/{CHAPTER}/ada/autograde", "POST", {})
    assert json.loads(answer)["success"], answer
    assert grades_of(root, "ada") == before

    here = Course(root)
    summary = grade(Class(here, root), [CHAPTER], again=True, progress=False)
    assert summary.graded == 3
    assert grades_of(root, "ada") == before
    page = server(f"formgrader/submissions/{id}/?index=0")
    assert "Student's answer" in page


AWKWARD: dict[str, Callable[[Path], object]] = {
    "bom": lambda path: path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes()),
    "no JSON": lambda path: path.write_text('{"cells": ['),
    "other name": lambda path: path.rename(path.with_name("homework (1).ipynb")),
    "schema 99": lambda path: path.write_text(
        path.read_text().replace('"schema_version": 3', '"schema_version": 99')
    ),
    "nothing": lambda path: path.unlink(),
    "text only": lambda path: path.rename(path.with_suffix(".txt")),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
    "pipe": lambda path: os.mkfifo(path.with_name("data.csv")),
    "link": lambda path: path.with_name("passwd").symlink_to("/etc/passwd"),
    "linked by an overlong name": lambda path: (
        shutil.rmtree(path.parent),
        path.parent.symlink_to("n" * 300),
    ),
    "timestamp": lambda path: path.with_name("timestamp.txt").write_text("yesterday"),
    "doubled cell": lambda path: path.write_text(doubled(path.read_text())),
}
LINKED = {"nowhere": "not/there", "overlong": "n" * 300}  # students whose folder is a link


def doubled(text: str) -> str:
    """A notebook with its first answer copied to the end."""
    content = json.loads(text)
    content["cells"].append(content["cells"][2] | {"id": "copied"})
    return json.dumps(content)


@pytest.fixture(scope="module")
def awkward(tmp_path_factory: pytest.TempPathFactory) -> Course:
    """A small class that stock nbgrader could not grade, graded by its own command."""
    course = make_course(tmp_path_factory.mktemp("awkward"), hooks=True)
    release(course.root)
    for student, answers in ANSWERS.items():
        small_hand_in(course.root, student, answers)
    for name, spoil in AWKWARD.items():
        spoil(small_hand_in(course.root, name, RIGHT))
    for name, target in LINKED.items():
        (course.root / "submitted" / name).symlink_to(target)
    said = nbgrader(course.root, "autograde", NAME)
    assert "There was an error" not in said
    return course


def test_nbgraders_own_command_grades_what_it_could_not_read(awkward: Course):
    found = state(awkward, NAME, awkward.root)
    others = {*AWKWARD, *LINKED}
    assert set(found["rows"]) == {*ANSWERS, *others}
    scores = {student: total(rows) for student, rows in found["rows"].items()}
    lost = {"no JSON", "nothing", "text only", "a folder", "linked by an overlong name", *LINKED}
    assert {who: scores[who] for who in others} == {who: 0 if who in lost else 6 for who in others}
    journal = read_journal(Class(awkward, awkward.root))
    assert {student for (student, _), result in journal.items() if result.reason} == lost


def test_both_entrances_leave_the_same(awkward: Course):
    first = state(awkward, NAME, awkward.root)
    summary = grade(Class(awkward, awkward.root), [NAME], again=True, progress=False)
    assert summary.graded == len(ANSWERS) + len(AWKWARD) + len(LINKED)
    assert state(awkward, NAME, awkward.root) == first


def test_nothing_of_a_link_or_a_pipe_is_copied(awkward: Course):
    names = {path.name for path in (awkward.root / "autograded").rglob("*")}
    assert not names & {"passwd", "data.csv"}


def test_what_is_wrong_with_the_tests_is_said_once_a_class(tmp_path: Path):
    course = make_course(tmp_path, hooks=True)
    source = tmp_path / "source" / NAME / "numbers.ipynb"
    text = source.read_text(encoding="utf-8")
    source.write_text(text.replace("assert square(3) == 9", "assert vars(square) == {}"))
    nbgrader(course.root, "generate_assignment", NAME)
    for student in ("ada", "bela"):
        small_hand_in(course.root, student, RIGHT)
    said = nbgrader(course.root, "autograde", NAME)
    told = "WARNING] ps1/numbers, test square-seen: the reference does not pass it"
    assert said.count(told) == 1
    assert said.count("1 of the tests do not run as they should") == 1
    command = [sys.executable, "-m", "nbgrader", "autograde", NAME, "--student", "ada", "--force"]
    shell = ["sh", "-c", 'exec "$@" >&-', "sh", *command]  # nobody reads what is printed
    done = subprocess.run(shell, cwd=tmp_path, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 0 and told in done.stderr


def test_what_the_machine_may_have_ended_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    course = make_course(tmp_path, hooks=True)
    release(course.root)
    small_hand_in(course.root, "ada", RIGHT)
    lost = Lost("the grading process was killed by signal 9 (KILL)")
    monkeypatch.setattr(Warm, "run", lambda self, tasks: ((task, lost) for task in tasks))
    monkeypatch.setattr(hooks, "rehearsed", lambda *_: Rehearsed())
    coursedir = CourseDirectory(root=str(tmp_path), assignment_id=NAME)
    hooks._Run(coursedir, logging.getLogger("autograde")).grade_apart("ada")
    (words,) = caplog.messages
    assert words.startswith("ada/ps1 is in doubt: its process was ended")
    assert words.endswith("nbgrader autograde ps1 --student ada --force")


def total(rows: tuple) -> float:
    """Automatic points of a submission, as `state` shows it."""
    return sum(
        float(auto)
        for _, grades, _ in rows[1].values()
        for _, _, auto, *_ in grades
        if auto != "None"
    )


def test_who_is_called_as_a_pattern_that_finds_somebody_else_is_graded(tmp_path: Path):
    make_course(tmp_path, hooks=True)
    release(tmp_path)
    with (tmp_path / "nbgrader_config.py").open("a") as file:
        file.write(
            'c.GenerateFeedback.exporter_class = "autograder.classroom.nbgrader_page.StudentPage"\n'
        )
    for student in ("[ab]", "a", "b"):
        small_hand_in(tmp_path, student, RIGHT)
    for name in ("[ab]", "a"):
        nbgrader(tmp_path, "autograde", NAME, "--student", name)  # as formgrader's button does
        assert (tmp_path / "autograded" / name / NAME / "numbers.ipynb").is_file()
    nbgrader(tmp_path, "generate_feedback", NAME, "--student", "[ab]")
    assert (tmp_path / "feedback" / "[ab]" / NAME / "numbers.html").is_file()

"""nbgrader's own commands and formgrader, used on this course as its manual says."""

import csv
import json
import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from nbgrader.api import Gradebook

from autograder.course import Course
from autograder.demo import Work, half, reference
from autograder.release import build_instructor
from autograder.source import read_source
from tests.conftest import CHAPTERS

CHAPTER = CHAPTERS[0]


def nbgrader(root: Path, *arguments: str) -> str:
    """Run an nbgrader command in a course's root; returns what it said."""
    done = subprocess.run(
        ["nbgrader", *arguments], cwd=root, capture_output=True, text=True, check=False
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    return said


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


def free_port() -> int:
    """A port nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="module")
def server(root: Path):
    """A Jupyter server in the course's root; gives a function that fetches a path."""
    port = free_port()
    command = [
        *("jupyter", "server", "--no-browser", "--allow-root", f"--port={port}"),
        *("--IdentityProvider.token=t", "--ServerApp.ip=127.0.0.1"),
    ]
    log = (root / "server.log").open("w")
    environment = os.environ | {"JUPYTER_RUNTIME_DIR": str(root / "runtime")}
    process = subprocess.Popen(command, cwd=root, stdout=log, stderr=log, env=environment)

    def get(path: str) -> str:
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/{path}", headers={"Authorization": "token t"}
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.read().decode()

    for _ in range(120):
        try:
            get("api/status")
            break
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.5)
    yield get
    process.terminate()
    process.wait(30)
    log.close()


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

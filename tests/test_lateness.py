"""Who is late, by how much, and what it costs: the same number wherever a grade is shown.

The collector's or the LMS's time counts. Two classes are collected and graded from end to end: one
by nbgrader's exchange, with the LMS's list of times, one from a zip of Blackboard's.
"""

import contextlib
import csv
import io
import json
import os
import re
import sys
import unicodedata
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from nbgrader.api import Gradebook

from autograder.classroom.classes import Class
from autograder.common.course import Course, CourseError
from autograder.common.spreadsheet import safe
from autograder.judge.lateness import read_late
from tests.small_course import NAME, RIGHT, by_hand, hand_in, make_course, nbgrader, release, run

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="grading needs Linux")
DUE = datetime(2026, 1, 10, 12, tzinfo=UTC)
LONG_AGO = datetime(2025, 1, 1, tzinfo=UTC)
RULES = """[late]
policy = "per-day"
rate = 0.1
due = 2026-01-10T12:00:00Z
grace_hours = 2
{}
"""
TESTS, BY_HAND = 6.0, 1.5  # points
ZIP = """
c.ZipCollectApp.extractor_plugin = "autograder.classroom.unzip.SafeExtractor"
c.ZipCollectApp.collector_plugin = "autograder.classroom.unzip.FromBlackboard"
"""
PLACES = (
    *("terminal", "page", "grades.csv", "report.html", "canvas", "moodle"),
    *("nbgrader export", "formgrader", "history"),
)


@dataclass(frozen=True)
class Case:
    """One student."""

    counts: float  # what the grade has to be
    hours: float  # after the due time, as it truly was
    before: int = 0  # hours of extension that are given before grading
    after: int = 0  # and after
    by_hand: bool = False  # whether points are given by hand after grading
    forged: bool = False  # whether everything that a student can set says another time
    first: float | None = None  # hours after the due time of an earlier attempt


BY_EXCHANGE = {
    "in-time": Case(6, -1),
    "in-grace": Case(6, 1.9),
    "late": Case(5.4, 18),
    "extended-before": Case(6, 18, before=24),
    "extended-after": Case(6, 18, after=24),
    "extended-too-little": Case(5.4, 42, after=24),
    "by-hand-after": Case(6.75, 18, by_hand=True),
    "forged-early": Case(5.4, 18, forged=True),
}
BY_ZIP = {
    "in-time": Case(6, -1),
    "late": Case(4.8, 30),
    "extended-before": Case(6, 18, before=24),
    "all-after": Case(6.75, 42, after=24, by_hand=True),
    "forged-early": Case(5.4, 18, forged=True),
    "second-attempt": Case(5.4, 18, first=-20),
}
WAYS = {"exchange": BY_EXCHANGE, "zip": BY_ZIP}
CASES = [(way, student) for way, cases in WAYS.items() for student in cases]


def when(hours: float) -> datetime:
    """A time, by its distance from the due time."""
    return DUE + timedelta(hours=hours)


def work(root: Path) -> bytes:
    """A right notebook; in its metadata stands whatever a student likes."""
    path = hand_in(root, "nobody", RIGHT)
    content = json.loads(path.read_text())
    content["metadata"] |= {"timestamp": str(LONG_AGO), "submitted": str(LONG_AGO)}
    path.unlink()
    path.parent.rmdir()
    path.parent.parent.rmdir()
    return json.dumps(content).encode()


def by_exchange(root: Path) -> None:
    """What students put into the inbound folder, collected by nbgrader; the LMS's list says when.

    There the folder's name, its files' times and timestamp.txt are all the student's.
    """
    inbound = root / "exchange" / "small" / "inbound"
    inbound.mkdir(parents=True)
    with (root / "nbgrader_config.py").open("a") as file:
        file.write(f'c.Exchange.root = "{root}/exchange"\n')
    content = work(root)
    for student, case in BY_EXCHANGE.items():
        said = LONG_AGO if case.forged else when(case.hours)
        name = f"{student}+{NAME}+{said:%Y-%m-%d %H:%M:%S.%f} UTC+abc123"
        folder = inbound / name
        folder.mkdir()
        (folder / "numbers.ipynb").write_bytes(content)
        (folder / "timestamp.txt").write_text(f"{said:%Y-%m-%d %H:%M:%S.%f} UTC")
        for path in (*folder.iterdir(), folder):
            os.utime(path, (said.timestamp(), said.timestamp()))
    listed = [f"{student},{when(case.hours).isoformat()}" for student, case in BY_EXCHANGE.items()]
    (root / "source" / "times.csv").write_text("\n".join(["student,submitted", *listed]))
    rules = RULES.format('times = "../times.csv"')
    (root / "source" / NAME / "rules.toml").write_text(rules)
    nbgrader(root, "collect", NAME, "--ExchangeCollect.check_owner=False")


def by_zip(root: Path) -> None:
    """What Blackboard gives to download; only the outermost names are its own."""
    with (root / "nbgrader_config.py").open("a") as file:
        file.write(ZIP)
    content = work(root)
    folder = root / "downloaded" / NAME / "archive"
    folder.mkdir(parents=True)
    with zipfile.ZipFile(folder / "gradebook_1_ps1.zip", "w") as whole:
        for student, case in BY_ZIP.items():
            for hours in filter(lambda one: one is not None, (case.first, case.hours)):
                attempt = f"gradebook_1_ps1_{student}_attempt_{when(hours or 0):%Y-%m-%d-%H-%M-%S}"
                whole.writestr(f"{attempt}.txt", f"Name: {student}\nDate Submitted: {LONG_AGO}\n")
                if case.forged:
                    whole.writestr(f"{attempt}_work.zip", forged(student, content))
                else:
                    whole.writestr(f"{attempt}_numbers.ipynb", content)
    (root / "source" / NAME / "rules.toml").write_text(RULES.format("trust_timestamp = true"))
    nbgrader(root, "zip_collect", NAME)


def forged(student: str, content: bytes) -> bytes:
    """A student's own zip, in which all says that it is old."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as file:
        own = f"gradebook_1_ps1_{student}_attempt_{LONG_AGO:%Y-%m-%d-%H-%M-%S}_numbers.ipynb"
        for name, text in (
            ("numbers.ipynb", content),
            (own, content),
            ("timestamp.txt", f"{LONG_AGO:%Y-%m-%d %H:%M:%S} UTC".encode()),
        ):
            file.writestr(zipfile.ZipInfo(name, (1990, 1, 1, 0, 0, 0)), text)
    return made.getvalue()


def printed(root: Path, *command: str) -> str:
    """What a command prints that is run in the course's root."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        assert run(root, *command) == 0
    return said.getvalue()


def extend(root: Path, hours: dict[str, int]) -> None:
    """Give these students more time, as an instructor does by nbgrader's API."""
    with Gradebook(f"sqlite:///{root}/gradebook.db", "small") as book, book.db.no_autoflush:
        book.update_or_create_assignment(NAME)
        for student in filter(hours.get, hours):
            book.update_or_create_student(student)
            book.update_or_create_submission(NAME, student)
            book.grant_extension(NAME, student, hours=hours[student])


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], dict[str, dict]]:
    """Every student's grade in every place when all is done, by the way of collecting."""
    return cache(lambda way: graded(way, tmp_path_factory.mktemp(way)))


def graded(way: str, root: Path) -> dict[str, dict[str, float]]:
    """Collect and grade one class; then time and points are given, and it is looked at again."""
    cases = WAYS[way]
    make_course(root, hooks=True)
    release(root)
    {"exchange": by_exchange, "zip": by_zip}[way](root)
    extend(root, {student: case.before for student, case in cases.items()})
    printed(root, "grade", NAME)
    extend(root, {student: case.after for student, case in cases.items()})
    for student in (student for student, case in cases.items() if case.by_hand):
        by_hand(root, student, BY_HAND)
    said = printed(root, *(["report"] if way == "exchange" else ["grade", NAME]))
    return everywhere(root, said, list(cases))


def everywhere(root: Path, said: str, students: list[str]) -> dict[str, dict[str, float]]:
    """What each place shows, by student."""
    printed(root, "export", "canvas")
    printed(root, "export", "moodle")
    nbgrader(root, "export", "--to", str(root / "stock.csv"))
    with Gradebook(f"sqlite:///{root}/gradebook.db", "small") as book:
        rows: list[Any] = book.assignment_submissions(NAME)
        net = {one.student.id: one.score - one.late_submission_penalty for one in rows}
    page = (root / "report.html").read_text()
    found = {}
    for student in students:
        feedback = root / "feedback" / student / NAME / "numbers.html"
        found[student] = {
            "terminal": of(rf"^{student} +([\d.]+)/17", said),
            "page": of(r"Altogether.*?<strong[^>]*>([\d.]+) of 17", feedback.read_text()),
            "grades.csv": column(root / "grades.csv", "student", student, NAME),
            "report.html": of(rf'{student}/{NAME}/numbers.html"[^>]*>([\d.]+) / 17', page),
            "canvas": column(root / "canvas.csv", "Student", student, NAME),
            "moodle": column(
                root / "moodle.csv", "ID number", student, f"Assignment: {NAME} (Real)"
            ),
            "nbgrader export": column(root / "stock.csv", "student_id", student, "score"),
            "formgrader": net[student],
            "history": of(
                rf"^{student}, {NAME}: ([\d.]+) points", printed(root, "history", student)
            ),
        }
    return found


def of(pattern: str, text: str) -> float:
    """The number that stands there."""
    found = re.search(pattern, text, re.MULTILINE | re.DOTALL)
    assert found, f"{pattern} is not in {text[:2000]}"
    return float(found[1])


def column(path: Path, key: str, student: str, name: str) -> float:
    """A student's number in a table."""
    with path.open(newline="", encoding="utf-8") as file:
        (row,) = [row for row in csv.DictReader(file) if row[key] == student]
    return float(row[name])


@pytest.mark.parametrize(("way", "student"), CASES)
def test_a_grade_is_one_number_and_late_is_who_the_collector_or_the_lms_says(
    shown: Callable[[str], dict[str, dict]], way: str, student: str
):
    found = {place: round(points, 4) for place, points in shown(way)[student].items()}
    assert found == dict.fromkeys(PLACES, WAYS[way][student].counts)


def lists(root: Path, rules: str, times: str = "") -> None:
    """How late somebody is here."""
    (root / "source" / NAME / "rules.toml").write_text(RULES.format(rules))
    (root / "source" / "times.csv").write_text(times, encoding="utf-8")


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """The small course, released."""
    make_course(tmp_path)
    release(tmp_path)
    return tmp_path


def test_a_zone_that_nbgrader_submit_writes_is_read_and_one_that_is_unknown_is_said(small: Path):
    lists(small, "trust_timestamp = true")
    for zone in ("UTC", "CET", "CEST"):
        path = hand_in(small, zone.lower(), RIGHT)
        path.with_name("timestamp.txt").write_text(f"2026-01-11 10:00:00.000000 {zone}")
    for _ in range(2):
        said = printed(small, "grade", NAME)
        assert {name: of(rf"^{name} +([\d.]+)/17", said) for name in ("utc", "cet", "cest")} == {
            "utc": 5.4,
            "cet": 5.4,
            "cest": 6.0,
        }
        assert "lateness not known: ps1: timestamp.txt is missing or says no time" in said
        assert "in 1 submissions (cest); they count as in time." in said


def test_a_quote_that_nobody_closed_takes_nobody_off_the_lmss_list(small: Path):
    text = f'student,submitted\n"ada,{when(30).isoformat()}\nbela,{when(30).isoformat()}\n'
    lists(small, 'times = "../times.csv"', text)
    with pytest.raises(CourseError, match=r"times\.csv cannot be read .*every quote closed"):
        Class(Course(small), small).read(NAME)


def test_a_time_in_the_lmss_list_is_for_nobody_whose_name_only_looks_the_same(small: Path):
    one, other = "jo\u0301ze", "j\u00f3ze"
    lists(small, 'times = "../times.csv"', f"student,submitted\n{other},{when(30).isoformat()}")
    hand_in(small, one, RIGHT)
    assert "4.8/17" in printed(small, "grade", NAME)  # the only one who can be meant
    hand_in(small, other, RIGHT)
    said = printed(small, "grade", NAME)
    assert f"of 1 submissions ({one}); they count as in time" in said
    for command in ("grade", "report"):
        said = printed(small, command)
        assert re.search(rf"^{one} +6/17", said, re.MULTILINE)
        assert re.search(rf"^{other} +4.8/17", said, re.MULTILINE)


@pytest.mark.parametrize("name", ["@home", "-1", "Übung 1", "ps1"])
@pytest.mark.parametrize("work", ["", ",work"])
def test_a_line_of_a_list_is_found_whatever_its_assignment_is_called(
    tmp_path: Path, name: str, work: str
):
    said = safe(name) if work else f" {unicodedata.normalize('NFD', name)} "
    head = f"student,assignment,submitted{work}\n"
    lines = [f"ada,{said},2026-01-11T12:00:00Z", "bo,another,2026-01-11T12:00:00Z"]
    (tmp_path / "times.csv").write_text(head + "".join(f"{line}\n" for line in lines), "utf-8")
    late = read_late(tmp_path / "rules.toml", name, {"times": "times.csv"})
    assert [*late.times] == ["ada"]

"""Extensions by a command: the same number everywhere, and a word in the history."""

import csv
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from nbgrader.api import Gradebook

from autograder.classroom.extensions import read_amount, said
from autograder.common.course import CourseError
from tests.small_course import NAME, RIGHT, by_hand, hand_in, make_course, release, run

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="grading needs Linux")
RULES = """[late]
policy = "per-day"
rate = 0.5
due = 2026-03-01T12:00:00+00:00
times = "../times.csv"
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The small course; ada has handed in a day and a half late."""
    make_course(tmp_path)
    release(tmp_path)
    (tmp_path / "source" / NAME / "rules.toml").write_text(RULES)
    (tmp_path / "source" / "times.csv").write_text(
        "student,submitted\nada,2026-03-03T00:00:00+00:00\nbo,2026-03-03T00:00:00+00:00\n"
    )
    hand_in(tmp_path, "ada", RIGHT)
    return tmp_path


def count(root: Path, student: str) -> tuple[float, str]:
    """What a student's grade is in grades.csv and on the page."""
    with (root / "grades.csv").open(encoding="utf-8-sig", newline="") as file:
        (row,) = [row for row in csv.DictReader(file) if row["student"] == student]
    page = (root / "feedback" / student / NAME / "numbers.html").read_text()
    return float(row[NAME]), page


@pytest.mark.parametrize(
    ("text", "hours", "words"),
    [
        ("2d", 48, "2 days"),
        ("36h", 36, "1 day 12 hours"),
        ("1w2d3h4m", 219 + 4 / 60, "9 days 3 hours 4 minutes"),
        ("0", 0, "0 minutes"),
    ],
)
def test_an_amount_is_read_and_said(text: str, hours: float, words: str):
    assert read_amount(text) == timedelta(hours=hours)
    assert said(read_amount(text)) == words


@pytest.mark.parametrize("text", ["", "2", "-2d", "2 d", "d", "2d1w", "9999999999d", "4000d", "٣d"])
def test_what_is_no_amount_is_refused(text: str):
    if text == "٣d":  # a digit all the same
        assert read_amount(text) == timedelta(days=3)
        return
    with pytest.raises(CourseError, match=r"length of time|ten years"):
        read_amount(text)


def test_more_time_counts_wherever_a_grade_stands_also_after_points_by_hand(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    assert run(root, "grade") == 0
    assert count(root, "ada")[0] == 0
    command = ["extend", "ada", NAME, "1d", "--why", "ill"]
    monkeypatch.setattr(sys, "argv", ["autograder/__main__.py", *command])
    assert run(root, *command) == 0
    assert "ada, ps1: has 1 day longer" in capsys.readouterr().out
    assert run(root, "report") == 0
    points, page = count(root, "ada")
    assert points == 3 and "3 taken off" in page
    by_hand(root, "ada", 2)
    assert run(root, "report") == 0
    points, page = count(root, "ada")
    assert points == 4 and "4 taken off" in page
    capsys.readouterr()
    assert run(root, "history", "ada") == 0
    told = capsys.readouterr().out
    assert "extension 0 → 24 hours" in told and f"autograder extend ada {NAME} 1d --why ill" in told
    assert run(root, "extend") == 0
    assert capsys.readouterr().out == "ada, ps1: 1 day\n"
    assert run(root, "extend", "ada", NAME, "0") == 0
    assert "no extension any more" in capsys.readouterr().out
    assert run(root, "report") == 0
    assert count(root, "ada")[0] == 0
    capsys.readouterr()
    assert run(root, "extend") == 0
    assert "Nobody" in capsys.readouterr().out


def test_more_time_may_be_given_before_anything_is_handed_in(root: Path):
    with Gradebook(f"sqlite:///{root}/gradebook.db", "small") as book:
        book.add_student("bo")
    assert run(root, "extend", "bo", NAME, "2d") == 0
    hand_in(root, "bo", RIGHT)
    assert run(root, "grade") == 0
    assert count(root, "bo")[0] == 6 and count(root, "ada")[0] == 0


def test_more_time_for_nothing_handed_in_is_no_grade_and_nothing_waits(
    root: Path, capsys: pytest.CaptureFixture[str]
):
    assert run(root, "grade") == 0
    waits = waiting(root, capsys)
    with Gradebook(f"sqlite:///{root}/gradebook.db", "small") as book:
        book.add_student("bo")
    assert run(root, "extend", "bo", NAME, "2d") == 0
    assert waiting(root, capsys) == waits
    with (root / "canvas.csv").open(newline="") as file:
        (row,) = [row for row in csv.DictReader(file) if row["Student"] == "bo"]
    assert row[NAME] == ""  # an LMS would take 0 for a grade
    hand_in(root, "bo", RIGHT)
    assert run(root, "grade") == 0
    assert count(root, "bo")[0] == 6


def waiting(root: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """What an export says of answers that wait for a person."""
    capsys.readouterr()
    assert run(root, "export", "canvas") == 0
    return [line for line in capsys.readouterr().out.splitlines() if "wait" in line]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (("extend", "ad", NAME, "2d"), "perhaps ada was meant"),
        (("extend", "ada", "ps9", "2d"), "no assignment 'ps9'"),
        (("extend", "ada", NAME), "How much longer?"),
        (("extend", "", NAME, "2d"), "Whose?"),
        (("extend", "ada", NAME, "two days"), "no length of time"),
        (("history", "--since", "yesterday"), "no day or time"),
    ],
)
def test_what_cannot_be_meant_is_one_sentence(
    root: Path, capsys: pytest.CaptureFixture[str], command: tuple[str, ...], words: str
):
    assert run(root, *command) == 2
    said = capsys.readouterr().err
    assert words in said and said.count("\n") == 1


def test_everybodys_history_in_one_list_and_as_a_table(
    root: Path, capsys: pytest.CaptureFixture[str]
):
    hand_in(root, "=1+1", RIGHT | {"square": ""})
    assert run(root, "grade") == 0
    assert run(root, "extend", "ada", NAME, "1d") == 0
    capsys.readouterr()
    assert run(root, "history") == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4 and "extension" in lines[-1]
    assert run(root, "history", "--csv", str(root / "audit.csv"), "--since", "2026-01-01") == 0
    with (root / "audit.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["why"] for row in rows] == ["first graded", "first graded", "extension"]
    assert {row["student"] for row in rows} == {"ada", "'=1+1"}
    assert (rows[-1]["from"], rows[-1]["to"]) == ("0", "3")
    capsys.readouterr()
    assert run(root, "history", "--since", "2999-01-01") == 0
    assert len(capsys.readouterr().out.splitlines()) == 1

"""How grades came to be: each change with its reason, also when the journal is written anew."""

import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from nbgrader.api import Gradebook

from autograder.classroom import changes
from autograder.classroom import journal as journal_module
from autograder.classroom.changes import Change, change, read, written
from autograder.classroom.classes import Class
from autograder.classroom.counted import Given, Marks, Points
from autograder.classroom.history import what_changed
from autograder.classroom.journal import Journal, read_changes
from autograder.classroom.journal_lines import Graded
from autograder.classroom.report_terminal import say_row
from autograder.common.course import Course
from autograder.common.results import Result
from tests.small_course import NAME, RIGHT, by_hand, hand_in, make_course, release, run

GRADED = Graded(Result("ada", NAME, "key"), made_of={"work": "w", "tests": "t"})
CELLS = {"first": Given(2.0), "second": Given(0.0), "why": Given(None)}
BEFORE = {"numbers": Marks(Points(2.0, 0.5, 60.0), cells=CELLS)}


def first() -> Change:
    """What is written down when somebody is graded first."""
    found = change(GRADED, BEFORE, None, fresh=True)
    assert found is not None and found.why == (changes.FIRST,)
    return found


def after(**cells: Given) -> dict[str, Marks]:
    """The same with other grades."""
    now = CELLS | cells
    given = sum(one.worth for one in now.values())
    return {"numbers": Marks(Points(given, 0.5, 60.0), cells=now)}


HAND = after(why=Given(None, 1.5))
LATER = {"numbers": replace(BEFORE["numbers"], extension=7200.0)}
FREE = {"numbers": replace(BEFORE["numbers"], points=Points(2.0))}
WORDS = {"numbers": replace(BEFORE["numbers"], comments={"why": "Why?"})}
NEW = {"work": "w2", "tests": "t"}


@pytest.mark.parametrize(
    ("graded", "marks", "why", "what"),
    [
        (GRADED, BEFORE, None, []),
        (replace(GRADED, made_of=NEW), BEFORE, ["new submission"], []),
        (
            replace(GRADED, made_of=NEW),
            after(first=Given(1.0), second=Given(3.0)),
            ["new submission"],
            ["first 2 → 1", "second 0 → 3"],
        ),
        (
            replace(GRADED, made_of={"work": "w", "tests": "t2"}),
            after(first=Given(1.0)),
            ["new tests or rules"],
            ["first 2 → 1"],
        ),
        (
            Graded(Result("ada", NAME, "other"), made_of=GRADED.made_of),
            after(first=Given(1.0)),
            ["new grader or library"],
            ["first 2 → 1"],
        ),
        (GRADED, after(first=Given(1.0)), ["graded once more"], ["first 2 → 1"]),
        (GRADED, HAND, ["by hand"], ["why nothing yet → 1.5"]),
        (GRADED, after(first=Given(2.0, 2.0)), ["by hand"], ["first 2 → 2"]),
        (GRADED, after(first=Given(2.0, None, 0.5)), ["by hand"], ["first 2 → 2.5"]),
        (GRADED, WORDS, ["by hand"], ["comment on why"]),
        (GRADED, LATER, ["extension"], ["extension 0 → 2 hours"]),
        (GRADED, FREE, ["lateness rule"], ["lateness −0.5 → −0"]),
        (replace(GRADED, made_of=NEW), HAND, ["new submission", "by hand"], None),
    ],
)
def test_each_change_has_its_reason(
    graded: Graded, marks: dict[str, Marks], why: list[str] | None, what: list[str] | None
):
    before = first()
    now = change(graded, marks, before, fresh=True)
    assert (list(now.why) if now else None) == why
    if now and what is not None:
        assert what_changed(before, now) == what


def test_what_is_written_is_read_again():
    given = {"numbers": replace(HAND["numbers"], extension=60.0, comments={"why": "ä\ud800"})}
    now = change(GRADED, given, first(), fresh=False)
    assert now is not None
    again = read(written(now))
    assert again is not None and written(again) == written(now)
    assert change(GRADED, again.notebooks, now, fresh=False) is None
    assert again.points == now.points


@pytest.mark.parametrize("content", [None, 7, [], {}, {"student": "ada"}, {"notebooks": 3}])
def test_what_cannot_be_read_is_nothing(content: Any):
    assert read(content) is None


@pytest.mark.parametrize("key", ["extension", "lost", "seconds", "auto", "manual"])
@pytest.mark.parametrize("value", [float("inf"), float("nan"), -float("inf"), 1e300])
def test_time_and_points_that_no_gradebook_holds_were_not_written(key: str, value: float):
    told = written(first())
    marks = told["notebooks"]["numbers"]
    if key in marks:
        marks[key] = value
    else:
        marks["cells"]["first"][key == "manual"] = value
    assert read(told) is None or (key != "extension" and value == 1e300)


@pytest.mark.parametrize("text", [b"\xff\0noise\n", b'{"graded": 3}\n{"changed": 4}\n'])
def test_a_journal_that_cannot_be_read_has_no_history_without_a_word(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: bytes
):
    make_course(tmp_path)
    (tmp_path / "gradebook.journal.jsonl").write_bytes(text)
    assert run(tmp_path, "history") == 0
    said = capsys.readouterr().err
    many = "1 line of it cannot" if text.count(b"\n") == 1 else "2 lines of it cannot"
    assert many in said and "No change of a grade is known there." in said


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The small class with one student."""
    make_course(tmp_path)
    release(tmp_path)
    hand_in(tmp_path, "ada", {"third": RIGHT["third"], "why": "So."})
    return tmp_path


@pytest.mark.skipif(sys.platform != "linux", reason="grading needs Linux")
def test_history_shows_which_run_changed_what_and_why(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(journal_module, "FEW", 0)  # the journal is written anew again and again
    monkeypatch.setattr(changes, "_user", lambda: "prof")
    monkeypatch.setattr(sys, "argv", ["/x/autograder/__main__.py", "grade", NAME])
    assert run(root, "grade", NAME) == 0
    run(root, "grade", NAME)  # nothing has changed
    hand_in(root, "ada", RIGHT)
    assert run(root, "grade", NAME) == 0
    by_hand(root, "ada", 1.5)
    assert run(root, "report") == 0
    with Gradebook(f"sqlite:///{root}/gradebook.db") as book:
        book.grant_extension(NAME, "ada", hours=6)
    source = root / "source" / NAME / "numbers.ipynb"
    source.write_text(source.read_text().replace("square(-5) == 25", "square(-5) == 26"))
    for again in ((), ("--again",), ("--again",)):
        assert run(root, "grade", NAME, *again) == 0
    capsys.readouterr()
    monkeypatch.setattr(sys, "argv", ["/x/autograder/__main__.py", "history", "ada"])
    assert run(root, "history", "ada", NAME) == 0
    title, _, *lines = capsys.readouterr().out.splitlines()
    assert title == f"ada, {NAME}: 5.5 points"
    for line in lines:
        assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d  ", line) and line.endswith(
            f"prof: autograder grade {NAME}"
        )
    expected = [
        ("3 ", "first graded", "3 given"),
        ("3 → 6 ", "new submission", "square-seen 0 → 1; square-hidden 0 → 2"),
        ("6 → 7.5 ", "by hand", "why nothing yet → 1.5"),
        ("7.5 → 5.5 ", "new tests or rules, extension", "square-hidden 2 → 0; extension 0 → 6"),
    ]
    assert len(lines) == len(expected)
    for line, parts in zip(lines, expected, strict=True):
        assert all(part in line for part in parts), line
    with Journal(Class(Course(root), root)):
        pass
    assert len(read_changes(Class(Course(root), root))["ada", NAME]) == len(expected)


@pytest.mark.skipif(sys.platform != "linux", reason="grading needs Linux")
def test_a_grade_by_hand_is_seen_when_its_history_is_asked_for(
    root: Path, capsys: pytest.CaptureFixture[str]
):
    assert run(root, "grade", NAME, "--no-report") == 0
    by_hand(root, "ada", 2.0)
    capsys.readouterr()
    assert run(root, "history", "ada") == 0
    assert "why nothing yet → 2" in capsys.readouterr().out
    for asked, words in (
        (("history", "nobody"), "Nothing was graded of a student 'nobody'"),
        (("history", "ada", "ps9"), f"there is {NAME}"),
    ):
        assert run(root, *asked) == 2
        assert words in capsys.readouterr().err


@pytest.mark.skipif(sys.platform != "linux", reason="grading needs Linux")
def test_a_name_may_be_typed_in_another_way_than_its_folder(
    root: Path, capsys: pytest.CaptureFixture[str]
):
    folder = "Zoe\u0301"
    hand_in(root, folder, {"third": RIGHT["third"], "why": "So."})
    assert run(root, "grade", NAME, "--no-report") == 0
    by_hand(root, folder, 2.0)
    capsys.readouterr()
    assert run(root, "history", "Zo\u00e9") == 0
    assert "why nothing yet → 2" in capsys.readouterr().out


def test_no_password_of_a_database_is_written_down(monkeypatch: pytest.MonkeyPatch):
    address = "postgresql+psycopg2://ann:s3cr/@t@host/grades"
    monkeypatch.setattr("sys.argv", ["nbgrader", "autograde", NAME, f"--db={address}"])
    kept = f"nbgrader autograde {NAME} --db=postgresql+psycopg2://ann:***@host/grades"
    assert first().run == kept


@pytest.mark.parametrize("filling", [".", "\u2800", "語"])
def test_no_line_that_a_terminal_cuts_passes_for_another_row(
    filling: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("COLUMNS", "80")
    row = "2026-01-01 00:00:00  0 → 17   by hand  all 0 → 17  root: grade"
    for many in range(200):
        say_row(f"2026-11-30 11:08:49  6 → 6   question answered  asked: {filling * many}{row}")
    whole = capsys.readouterr().out.splitlines()
    assert len(whole) == 200
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    for one in whole:
        say_row(one)
        first, *more = capsys.readouterr().out.splitlines()
        assert all(line.startswith("    ") for line in more)
        wide = filling == "語"
        assert max(map(len, (first, *more))) <= (40 if wide else 80)

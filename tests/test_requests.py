"""Questions about a grade: handed in with the notebook, listed, answered, and never a burden."""

import csv
import json
import re
import sys
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from nbformat.v4 import new_markdown_cell
from nbgrader.api import Gradebook

from autograder.classroom.asked import LONGEST, MOST, asked_in, besides, replies
from autograder.classroom.changes import Answer, Change, written
from autograder.classroom.requests import _tell_lines
from autograder.common.results import NotebookResult
from tests.small_course import NAME, RIGHT, by_hand, hand_in, make_course, release, run

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="grading needs Linux")
LATE = """[late]
policy = "per-day"
rate = 0.5
due = 2026-03-01T12:00:00+00:00
times = "../times.csv"
"""
HEAD = "## Question about my grade\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The small course, with nobody in it."""
    make_course(tmp_path)
    release(tmp_path)
    return tmp_path


def ask(root: Path, student: str, text: str, below: str = "third-values", **answers: str) -> None:
    """Hand in right answers and, below a cell, one of the student's own."""
    path = hand_in(root, student, RIGHT | answers)
    content: dict[str, Any] = json.loads(path.read_text())
    place = [cell["id"] for cell in content["cells"]].index(below) + 1
    content["cells"].insert(place, {**new_markdown_cell(text), "id": "mine"})
    path.write_text(json.dumps(content))


def page(root: Path, student: str) -> str:
    """What a student reads."""
    return (root / "feedback" / student / NAME / "numbers.html").read_text()


def listed(root: Path, capsys: pytest.CaptureFixture[str], *more: str) -> str:
    """What `requests` says."""
    capsys.readouterr()
    assert run(root, "requests", *more) == 0
    return capsys.readouterr().out


def asked(source: str, kind: str = "markdown") -> list[str]:
    """The questions of a notebook with one cell of the student's own."""
    notebook = NotebookResult("numbers", extra=(("third", kind, source),))
    return [one.text for one in asked_in(notebook, "ada", NAME)]


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("# Question about my grade\nWhy?", "Why?"),
        (
            "###### question about my GRADE: why 2 of 3?\n\nIt is right.",
            "why 2 of 3?\n\nIt is right.",
        ),
        ("\n# Question about my grade\r\nWhy?\n", "Why?"),
        ("# Question about my grade\n\x1b[2JWhy\x00?", "Why\ufffd?"),
    ],
)
def test_a_question_is_a_cell_with_this_heading(source: str, text: str):
    assert asked(source) == [text]


def test_how_to_answer_names_the_class(root: Path, capsys: pytest.CaptureFixture[str]):
    ask(root, "ada", HEAD + "Why?")
    (root / "a class").mkdir()
    (root / "submitted").rename(root / "a class" / "submitted")
    where = f"--folder '{root / 'a class'}'"
    assert run(root, "grade", NAME, "--folder", "a class") == 0
    assert f"see: python -m autograder requests {where}\n" in capsys.readouterr().out
    shown = listed(root, capsys, "--folder", "a class")
    assert shown.endswith(f'requests ID --answer "..." {where}\n')
    assert run(root, "requests", "none", "--folder", "a class") == 2
    assert capsys.readouterr().err.endswith(f"requests {where}\n")


@pytest.mark.parametrize(
    "source",
    [
        "Question about my grade\nWhy?",
        "# Question about my grades\nWhy?",
        "# Question about my grade\n",
    ],
)
def test_another_cell_is_none(source: str):
    assert asked(source) == []


def test_code_asks_nothing_and_what_is_asked_is_bounded():
    assert asked(HEAD + "Why?", "code") == []
    (text,) = asked(HEAD + "x" * 100_000)
    assert len(text) == LONGEST and text.endswith("…")
    many = tuple(("third", "markdown", f"{HEAD}{n}") for n in range(100))
    assert len(asked_in(NotebookResult("numbers", extra=many), "ada", NAME)) == MOST
    twice = (("third", "markdown", HEAD + "Why?"),) * 2
    assert len(asked_in(NotebookResult("numbers", extra=twice), "ada", NAME)) == 1
    own = (*twice, ("third", "markdown", "My notes"), ("third", "code", HEAD))
    assert besides(own) == own[2:]


def test_a_question_is_listed_until_it_is_answered_and_stays_in_page_and_history(
    root: Path, capsys: pytest.CaptureFixture[str]
):
    ask(root, "ada", HEAD + "Why was <b>that</b> wrong?\nIt is right.")
    hand_in(root, "bo", RIGHT)
    assert run(root, "grade") == 0
    assert "questions:    1 wait for an answer" in capsys.readouterr().out
    said = listed(root, capsys)
    (head,) = re.findall(r"^(\w{10})  ada, ps1, below third-values, 6 points$", said, re.MULTILINE)
    assert "    Why was <b>that</b> wrong?\n    It is right.\n" in said and "bo" not in said
    assert "It was not answered yet." in page(root, "ada")
    assert run(root, "requests", head[:6], "--answer", "Because of <i>rounding</i>.") == 0
    text = page(root, "ada")
    assert "Why was &lt;b&gt;that&lt;/b&gt; wrong?" in text and "<b>that" not in text
    assert "Because of &lt;i&gt;rounding&lt;/i&gt;." in text and "not answered yet" not in text
    assert "No question waits for an answer." in listed(root, capsys)
    assert "  → Because of <i>rounding</i>." in listed(root, capsys, "--answered")
    assert run(root, "requests", head, "--answer", "It counts now.") == 0
    assert "  → It counts now." in listed(root, capsys, head)
    assert "rounding" not in page(root, "ada")
    assert run(root, "history", "--csv", str(root / "audit.csv")) == 0
    with (root / "audit.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["why"] == "question answered"]
    assert [row["student"] for row in rows] == ["ada", "ada"]
    assert "asked: Why was <b>that</b> wrong? It is right." in rows[0]["what changed"]
    assert [row["from"] for row in rows] == [row["to"] for row in rows] == ["6", "6"]
    assert run(root, "grade", "--again") == 0
    assert "It counts now." in page(root, "ada")
    assert "No question waits" in listed(root, capsys)


def test_another_question_is_listed_and_one_that_was_taken_back_is_not(
    root: Path, capsys: pytest.CaptureFixture[str]
):
    ask(root, "ada", HEAD + "Why?")
    assert run(root, "grade") == 0
    first = listed(root, capsys)[:10]
    assert run(root, "requests", first, "--answer", "So.") == 0
    ask(root, "ada", HEAD + "And why not?")
    assert run(root, "grade") == 0
    second = listed(root, capsys)
    assert "And why not?" in second and second[:10] != first
    hand_in(root, "ada", RIGHT)
    assert run(root, "grade") == 0
    assert "No question waits" in listed(root, capsys)


def test_no_answer_stands_below_another_question_whose_name_was_made_to_begin_so(
    root: Path, capsys: pytest.CaptureFixture[str]
):
    """Two texts whose names begin with the same ten digits are found in seconds."""
    first, second = "Is point 776939 right?", "Is point 1400747 right?"
    ask(root, "ada", HEAD + first)
    assert run(root, "grade") == 0
    name = listed(root, capsys)[:10]
    assert run(root, "requests", name, "--answer", "Yes.") == 0
    assert "Yes." in page(root, "ada")
    ask(root, "ada", HEAD + second)
    assert run(root, "grade") == 0
    assert "Yes." not in page(root, "ada")
    waits = listed(root, capsys)
    assert waits.startswith(name) and second in waits


def test_two_questions_of_one_begin_are_answered_by_their_whole_names(
    root: Path, capsys: pytest.CaptureFixture[str]
):
    texts = ["Is point 776939 right?", "Is point 1400747 right?"]
    ask(root, "ada", HEAD + texts[0])
    path = root / "submitted" / "ada" / NAME / "numbers.ipynb"
    content = json.loads(path.read_text())
    (cell,) = [cell for cell in content["cells"] if cell["id"] == "mine"]
    other = {**new_markdown_cell(HEAD + texts[1]), "id": "other"}
    content["cells"].insert(content["cells"].index(cell), other)
    path.write_text(json.dumps(content))
    assert run(root, "grade") == 0
    name = listed(root, capsys)[:10]
    assert run(root, "requests", name, "--answer", "Yes.") == 2
    names = re.findall(rf"{name}\w+", capsys.readouterr().err)
    assert len(names) == 2
    assert run(root, "requests", names[1], "--answer", "Yes.") == 0
    assert listed(root, capsys).count("Is point") == 1


def test_an_answer_that_was_given_when_names_were_shorter_stays():
    (one,) = asked_in(
        NotebookResult("numbers", extra=(("third", "markdown", HEAD + "Why?"),)), "ada", NAME
    )
    grade = Change("ada", NAME, {}, answer=Answer(one.name[:10], "Why?", "So."))
    assert replies([written(grade)], [one]) == {one.name: "So."}
    assert replies([written(grade)], [one._replace(text="Why not?")]) == {}


def test_what_is_no_question_or_no_answer_is_refused(
    root: Path, capsys: pytest.CaptureFixture[str]
):
    ask(root, "ada", HEAD + "Why?")
    assert run(root, "grade") == 0
    name = listed(root, capsys)[:10]
    for command, words in (
        (["zz", "--answer", "So."], "There is no question zz"),
        (["--answer", "So."], "Which question?"),
        ([name, "--answer", " "], "What is the answer"),
        ([name, "--answer", "x" * 4001], "4000 at most"),
    ):
        assert run(root, "requests", *command) != 0
        assert words in capsys.readouterr().err
    assert "Why?" in listed(root, capsys)


def test_asking_later_is_not_handing_in_later(root: Path):
    (root / "source" / NAME / "rules.toml").write_text(LATE)
    times = root / "source" / "times.csv"
    times.write_text("student,submitted\nada,2026-03-01T11:00:00+00:00\nbo,2026-03-01T11:00:00Z\n")
    for student in ("ada", "bo"):
        hand_in(root, student, RIGHT | {"third": "def third(x):\n    return x"})
    assert run(root, "grade") == 0
    by_hand(root, "ada", 2)
    times.write_text("student,submitted\nada,2026-03-02T11:00:00+00:00\nbo,2026-03-02T11:00:00Z\n")
    ask(root, "ada", HEAD + "Why?", third="def third(x):\n    return x")
    ask(root, "bo", HEAD + "Why?")  # with a better answer
    for again in ([], ["--again"]):
        assert run(root, "grade", *again) == 0
        with (root / "grades.csv").open(encoding="utf-8-sig", newline="") as file:
            points = {row["student"]: float(row[NAME]) for row in csv.DictReader(file)}
        assert points == {"ada": 5, "bo": 3}
        assert "taken off" in page(root, "bo") and "taken off" not in page(root, "ada")
    with Gradebook(f"sqlite:///{root}/gradebook.db") as book:
        grade: Any = book.find_grade("why", "numbers", NAME, "ada")
        assert not grade.needs_manual_grade, "asking leaves nothing to grade again"
    # nor is taking the question back
    times.write_text("student,submitted\nada,2026-03-03T11:00:00+00:00\n")
    hand_in(root, "ada", RIGHT | {"third": "def third(x):\n    return x"})
    assert run(root, "grade") == 0
    assert "taken off" not in page(root, "ada")


def test_no_question_of_a_students_runs_or_passes_for_another(
    root: Path, capsys: pytest.CaptureFixture[str]
):
    ask(
        root,
        "ada",
        HEAD
        + "<script>alert(1)</script>{{ 7 * 7 }}\u2028abcdef0123  bo, ps1, 6 points\x1b]0;x\x07",
    )
    assert run(root, "grade") == 0
    text = page(root, "ada")
    assert "<script>alert" not in text and "{{ 7 * 7 }}" in text and "\x1b" not in text
    said = listed(root, capsys)
    heads = [line for line in said.splitlines() if re.match(r"\w{10}  ", line)]
    assert len(heads) == 1 and " ada, " in heads[0] and "\x1b" not in said and "\x07" not in said


@pytest.mark.parametrize("filler", ["x " * 38, "中 " * 25 + "x", "🙂" * 38, "x" * 76])
def test_no_line_that_a_terminal_cuts_passes_for_another_question(
    filler: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("COLUMNS", "80")
    _tell_lines(f"{filler}abcdef0123  bo, ps1, 6 points " * 20, "    ")
    rows = []
    for line in capsys.readouterr().out.splitlines():
        width = 0
        rows.append("")
        for sign in line:
            width += 2 if unicodedata.east_asian_width(sign) == "W" else 1
            if width > 80:
                rows.append("")
                width = 1
            rows[-1] += sign
    assert len(rows) > 5 and all(row.startswith("    ") for row in rows)


ENDS = (  # blanks behind two notebooks, by which 16 digits of their works' digests are the same
    "200d0a0d09090d0a0a200d090a20090d0a0d0a200d090a0a090d202009090a0d",
    "0d0a0a090a200a0d0d09200a0d0d0d200d20200a0d090d0d0d0d0a0d090d0d20",
)


def test_no_work_that_was_made_to_look_like_another_has_its_time(root: Path):
    (root / "source" / NAME / "rules.toml").write_text(LATE.replace("per-day", "zero"))
    path = hand_in(root, "eve", {})
    wrong, ask = ("code", "def square(x):\n    return x"), ("markdown", HEAD[1:] + "Why?")
    right = ("code", "def square(x):\n    return x * x")
    works = [[wrong], [wrong, ask], [right]]
    for work, end, when in zip(works, ("", *ENDS), ("01", "02", "03"), strict=True):
        cells = [{"cell_type": kind, "metadata": {}, "source": text} for kind, text in work]
        content = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
        text = json.dumps(content)
        tail = bytes.fromhex(end).decode() + " " * 23
        path.write_text(text.ljust(337 - 55) + tail if end else text, newline="")
        (root / "source" / "times.csv").write_text(f"student,submitted\neve,2026-{when}-20\n")
        assert run(root, "grade", NAME) == 0
    (root / "source" / "times.csv").write_text("student,submitted\neve,2026-03-20\n")
    with Gradebook(f"sqlite:///{root}/gradebook.db") as book:
        found: Any = book.find_submission(NAME, "eve")
        assert found.score - found.late_submission_penalty == 0

"""One truth about a grade: page, tables, terminal, report and LMS files say the same number."""

import csv
import json
import re
import sqlite3
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from bs4 import BeautifulSoup
from nbgrader.api import Gradebook

from autograder import __main__ as command_line
from autograder.classroom.classes import Class
from autograder.classroom.counted import Points
from tests.small_course import (
    HOOKS,
    NAME,
    PAGE,
    RIGHT,
    by_hand,
    hand_in,
    make_course,
    nbgrader,
    release,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="grading needs Linux")
DUE = '[late]\npolicy = "zero"\ndue = 2026-03-01T00:00:00Z\ntimes = "../times.csv"\n'
TIMES = "student,submitted\nada,2026-03-03T12:00:00Z\nbo,2026-02-28T00:00:00Z\n"


@pytest.fixture
def taught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Class:
    """A small class with a list of times; ada is three begun days late."""
    course = make_course(tmp_path)
    release(tmp_path)
    (tmp_path / "source" / NAME / "rules.toml").write_text(DUE)
    (tmp_path / "source" / "times.csv").write_text(TIMES)
    for name in ("ada", "bo"):
        hand_in(tmp_path, name, RIGHT)
    monkeypatch.chdir(tmp_path)
    return Class(course, tmp_path)


def look_at(taught: Class, student: str) -> None:
    """Grade and comment as a person does in formgrader."""
    by_hand(taught.folder, student, 1.5)
    by_hand(taught.folder, student, 2.0, "third-values")
    with Gradebook(taught.database) as book:
        comment: Any = book.find_comment("why", "numbers", NAME, student)
        comment.manual_comment = "Why <so>?"
        book.db.commit()


def page(taught: Class, student: str) -> str:
    """What a student reads."""
    path = taught.feedback / student / NAME / "numbers.html"
    soup = BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")
    return " ".join(soup.get_text().split())


def cell(path: Path, student: str, column: str) -> str:
    """A cell of a table by its student and column."""
    with path.open(encoding="utf-8", newline="") as file:
        (row,) = [row for row in csv.DictReader(file) if student in row.values()]
    return row[column]


def told(taught: Class, capsys: pytest.CaptureFixture[str], student: str) -> dict[str, float]:
    """A student's points, by who says them."""
    capsys.readouterr()
    assert command_line.main(["report"]) == 0
    (line,) = re.findall(rf"^{student} +(\S+)/17", capsys.readouterr().out, re.MULTILINE)
    for kind in ("canvas", "moodle", "gradescope"):
        assert command_line.main(["export", kind]) == 0
    nbgrader(taught.folder, "export", "--to=stock.csv")
    soup = BeautifulSoup((taught.folder / "report.html").read_text("utf-8"), "html.parser")
    (link,) = soup.find_all("a", href=f"feedback/{student}/{NAME}/numbers.html")
    (own,) = re.findall(r"Altogether(?: so far)?: (\S+) of 17 points", page(taught, student))
    given = {
        "terminal": line,
        "report": link.get_text().split(" / ")[0],
        "page": own,
        "grades.csv": cell(taught.folder / "grades.csv", student, NAME),
        "canvas": cell(taught.folder / "canvas.csv", student, NAME),
        "moodle": cell(taught.folder / "moodle.csv", student, f"Assignment: {NAME} (Real)"),
        "nbgrader": cell(taught.folder / "stock.csv", student, "score"),
    }
    return {who: float(points) for who, points in given.items()}


def gradescope(taught: Class, student: str) -> dict[str, Any]:
    """What Gradescope is sent."""
    path = taught.folder / "gradescope" / student / NAME / "results.json"
    return json.loads(path.read_text(encoding="utf-8"))


def test_everybody_says_the_same_number_and_what_lateness_takes_off(
    taught: Class, capsys: pytest.CaptureFixture[str]
):
    assert command_line.main(["grade"]) == 0
    why = "6 points, 6 taken off: 3 days late"
    assert f"0/17  {NAME}: {why}" in capsys.readouterr().out
    assert set(told(taught, capsys, "ada").values()) == {0}
    assert set(told(taught, capsys, "bo").values()) == {6}
    assert why in page(taught, "ada") and "taken off" not in page(taught, "bo")
    assert why in cell(taught.folder / "grades.csv", "ada", "what went wrong")
    assert (gradescope(taught, "ada")["score"], gradescope(taught, "ada")["output"]) == (0, why)
    assert gradescope(taught, "bo")["score"] == 6


def test_an_extension_and_grades_by_hand_are_reckoned_in_whenever_they_come(
    taught: Class, capsys: pytest.CaptureFixture[str]
):
    rules = taught.course.root / "source" / NAME / "rules.toml"
    rules.write_text(DUE.replace('"zero"', '"per-day"\nrate = 0.2'))
    assert command_line.main(["grade"]) == 0
    assert told(taught, capsys, "ada") == pytest.approx(dict.fromkeys(WHO, 2.4))
    look_at(taught, "ada")
    assert told(taught, capsys, "ada") == pytest.approx(dict.fromkeys(WHO, 2.6))
    assert gradescope(taught, "ada")["score"] == pytest.approx(5 - 3.9)
    with Gradebook(taught.database) as book:
        submission: Any = book.find_submission(NAME, "ada")
        submission.extension = timedelta(days=2)
        book.db.commit()
    assert told(taught, capsys, "ada") == pytest.approx(dict.fromkeys(WHO, 5.2))
    assert "6.5 points, 1.3 taken off: 12 hours late" in page(taught, "ada")
    with Gradebook(taught.database) as book:
        submission = book.find_submission(NAME, "ada")
        submission.extension = timedelta(days=3)
        book.db.commit()
    assert command_line.main(["grade", "--no-report"]) == 0
    assert "taken off" not in page(taught, "ada")
    assert told(taught, capsys, "ada") == pytest.approx(dict.fromkeys(WHO, 6.5))


WHO = ("terminal", "report", "page", "grades.csv", "canvas", "moodle", "nbgrader")


def test_what_a_person_gave_and_said_is_on_the_page_by_nbgraders_steps_and_stays(taught: Class):
    with (taught.folder / "nbgrader_config.py").open("a") as file:
        file.write(HOOKS + PAGE)
    said = re.compile(r"Why\b")  # what stands in <> is taken for markup by nbgrader's own page
    nbgrader(taught.folder, "autograde", NAME)
    look_at(taught, "bo")
    assert not said.search(page(taught, "bo"))
    nbgrader(taught.folder, "generate_feedback", NAME)
    first = page(taught, "bo")
    assert "Why <so>?" in first and "Altogether so far: 6.5 of 17 points" in first
    assert "Tests: 5 of 6 points" in first and "(2 of 3, given by hand)" in first
    assert "graded by hand, 1.5 of 2 points" in first
    nbgrader(taught.folder, "generate_feedback", NAME, "--force")
    assert said.search(page(taught, "bo"))
    for options in ([], ["--again"]):
        assert command_line.main(["grade", "--no-report", *options]) == 0
        assert page(taught, "bo") == first


def test_points_are_never_less_than_none():
    assert Points(3, 5, 60).counts == 0
    assert Points(3, 5, 60).reckoned == "3 points, 3 taken off: 1 hour late"
    assert Points(3, 1).late == "1 taken off: late"


def test_an_answer_that_becomes_a_task_keeps_what_a_person_gave_and_said(
    taught: Class, capsys: pytest.CaptureFixture[str]
):
    path = taught.course.root / "source" / NAME / "numbers.ipynb"
    manual = path.read_text(encoding="utf-8")
    (taught.course.root / "source" / NAME / "rules.toml").unlink()
    assert command_line.main(["grade"]) == 0
    look_at(taught, "bo")
    given = told(taught, capsys, "bo")
    content = json.loads(manual)
    (written,) = (one for one in content["cells"] if one["id"] == "why")
    written["metadata"]["nbgrader"] |= {"grade": False, "solution": False, "task": True}
    for text in (json.dumps(content), manual):
        path.write_text(text, encoding="utf-8")
        assert command_line.main(["grade"]) == 0
        assert told(taught, capsys, "bo") == given
        assert command_line.main(["history", "bo"]) == 0
        assert f"bo, {NAME}: 6.5 points" in capsys.readouterr().out
        (taught.folder / "gradebook.db").unlink()
        assert told(taught, capsys, "bo") == given
        assert "Why <so>?" in page(taught, "bo")


def on_top(taught: Class, student: str, name: str, points: float) -> None:
    """Give extra credit, as a person does in formgrader."""
    with Gradebook(taught.database) as book:
        row: Any = book.find_grade(name, "numbers", NAME, student)
        row.extra_credit = points
        book.db.commit()


def test_what_is_no_number_in_the_gradebook_stops_nobody_and_waits(
    taught: Class, capsys: pytest.CaptureFixture[str]
):
    assert command_line.main(["grade"]) == 0
    with sqlite3.connect(taught.folder / "gradebook.db") as book:
        odd = "manual_score = 'n/a', extra_credit = '?', needs_manual_grade = 0"
        book.execute(f"UPDATE grade SET {odd} WHERE auto_score IS NULL")
    book.close()
    for command in ("report", "export canvas", "export gradescope", "history bo", "grade --again"):
        assert command_line.main(command.split()) == 0, command
        if command == "export canvas":
            assert "6 answers wait for a grade by hand" in capsys.readouterr().out
    assert cell(taught.folder / "grades.csv", "bo", NAME) == "6"


def test_extra_credit_counts_everywhere_once_there_are_points_below_it(
    taught: Class, capsys: pytest.CaptureFixture[str]
):
    (taught.course.root / "source" / NAME / "rules.toml").unlink()
    assert command_line.main(["grade"]) == 0
    on_top(taught, "bo", "why", 0.5)  # nobody has graded this answer yet
    assert told(taught, capsys, "bo") == dict.fromkeys(WHO, 6.0)
    assert "graded by hand, 2 points" in page(taught, "bo")
    by_hand(taught.folder, "bo", 1.0)
    assert told(taught, capsys, "bo") == dict.fromkeys(WHO, 7.5)
    assert "graded by hand, 1.5 of 2 points" in page(taught, "bo")


def test_extra_credit_of_a_test_that_is_gone_counts_everywhere(
    taught: Class, capsys: pytest.CaptureFixture[str]
):
    source = taught.course.root / "source" / NAME
    (source / "rules.toml").unlink()
    assert command_line.main(["grade"]) == 0
    on_top(taught, "bo", "square-seen", 0.5)
    assert command_line.main(["report"]) == 0
    content = json.loads((source / "numbers.ipynb").read_text())
    content["cells"] = [cell for cell in content["cells"] if cell["id"] != "square-seen"]
    (source / "numbers.ipynb").write_text(json.dumps(content))
    for lost in (False, True):
        for path in taught.folder.glob("gradebook.db*") if lost else ():
            path.unlink()
        assert command_line.main(["grade"]) == 0
        for kind in ("canvas", "history"):
            who = ["export", kind] if kind == "canvas" else [kind, "bo", NAME]
            assert command_line.main(who) == 0
        nbgrader(taught.folder, "export", "--to=stock.csv")
        assert cell(taught.folder / "canvas.csv", "bo", NAME) == "5.5"
        assert cell(taught.folder / "stock.csv", "bo", "score") == "5.5"
        capsys.readouterr()
        assert command_line.main(["grade"]) == 0
        assert "not in the gradebook" not in capsys.readouterr().out


def test_tables_say_of_a_test_what_a_person_gave_for_it_as_the_page_does(taught: Class):
    (taught.course.root / "source" / NAME / "rules.toml").unlink()
    assert command_line.main(["grade"]) == 0
    by_hand(taught.folder, "bo", 2.0, "third-values")
    on_top(taught, "bo", "square-seen", 0.5)
    assert command_line.main(["report"]) == 0
    assert "Tests: 5.5 of 6 points" in page(taught, "bo")
    grades, questions = taught.folder / "grades.csv", taught.folder / "questions.csv"
    assert [cell(grades, "bo", name) for name in ("tests", "written", "total")] == [
        "5.5",
        "0",
        "5.5",
    ]
    assert cell(questions, "bo", f"{NAME}: Numbers") == "5.5"
    assert cell(questions, "ada", f"{NAME}: Numbers") == "6"


def test_a_picture_that_is_another_one_than_a_person_graded_waits_for_that_person(taught: Class):
    (taught.course.root / "source" / NAME / "rules.toml").unlink()
    path = hand_in(taught.folder, "bo", RIGHT | {"why": "![](attachment:p.png)"})
    content = json.loads(path.read_text())
    (answer,) = [one for one in content["cells"] if one["id"] == "why"]
    waits = []
    for picture in ("AAAA", "AAAA", "BBBB", "BBBB"):
        answer["attachments"] = {"p.png": {"image/png": picture}}
        content["cells"][0]["metadata"]["seen"] = len(waits)  # the file is another one each time
        path.write_text(json.dumps(content))
        assert command_line.main(["grade", "--no-report"]) == 0
        with Gradebook(taught.database) as book:
            row: Any = book.find_grade("why", "numbers", NAME, "bo")
            waits.append(row.needs_manual_grade)
        by_hand(taught.folder, "bo", 1.0)
    assert waits == [True, False, True, False]

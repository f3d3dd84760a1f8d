"""Exports: what Canvas, Moodle and Gradescope read, and nothing that a spreadsheet would run."""

import csv
import io
import json
import re
import subprocess
import sys
import warnings
from dataclasses import replace
from datetime import datetime
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from nbgrader.api import Gradebook
from nbgrader.plugins.export import CsvExportPlugin
from sqlalchemy import event
from sqlalchemy.exc import SAWarning

from autograder.classroom.book_lines import book_lines
from autograder.classroom.classes import Class
from autograder.classroom.counted import Points, number
from autograder.classroom.exports import Grades, enrol, read_grades, run, write_canvas, write_moodle
from autograder.classroom.grade_table import COLUMNS, GradeTable
from autograder.classroom.gradescope import results_json
from autograder.classroom.roster import Person, read_roster, roster_of
from autograder.common.course import Course, CourseError
from autograder.common.names import plain
from autograder.common.results import NotebookResult, Result, Verdict
from autograder.common.spreadsheet import meant, safe
from tests.conftest import ROOT
from tests.small_course import make_course

EVIL = '=HYPERLINK("http://x","click")'
SECRET = "the secret is 4711"


def fill(book: Any) -> None:
    """Two assignments; ada did both, one of them late, bo one; some of it graded by hand."""
    for name in ("one", "two"):
        book.add_assignment(name)
        book.add_notebook("nb", name)
        book.add_grade_cell("test", "nb", name, max_score=3, cell_type="code")
        book.add_grade_cell("essay", "nb", name, max_score=2, cell_type="markdown")
        book.add_task_cell("task", "nb", name, max_score=1, cell_type="markdown")
    book.add_student("ada", first_name="Ada", last_name="Lovelace", email="ada@x.org")
    book.add_student("bo", lms_user_id="77")
    book.add_student(EVIL)
    for student, name, auto in (("ada", "one", 2.5), ("ada", "two", 3.0), ("bo", "one", 1 / 3)):
        book.add_submission(name, student, timestamp=datetime(2026, 1, 1))
        for row in book.find_submission_notebook("nb", name, student).grades:
            row.needs_manual_grade = row.name == "task"
            row.auto_score = auto if row.name == "test" else None
            row.manual_score = 2.0 if row.name == "essay" and name == "one" else None
            row.extra_credit = 0.5 if row.name == "test" and student == "ada" else None
    book.find_submission_notebook("nb", "two", "ada").late_submission_penalty = 1.0
    book.db.commit()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a gradebook."""
    folder = tmp_path_factory.mktemp("class")
    with Gradebook(f"sqlite:///{folder / 'gradebook.db'}") as book, warnings.catch_warnings():
        warnings.simplefilter("ignore", SAWarning)  # of nbgrader's own way to add a row
        fill(book)
    return folder


@pytest.fixture
def book(folder: Path):
    """The gradebook, open."""
    with Gradebook(f"sqlite:///{folder / 'gradebook.db'}") as book:
        yield book


def table(writer, grades: Grades) -> list[list[str]]:
    """What a writer writes, read back as any CSV reader does."""
    file = io.StringIO(newline="")
    writer(grades, file)
    return list(csv.reader(io.StringIO(file.getvalue(), newline="")))


def test_scores_are_nbgraders_own(book: Gradebook):
    grades = read_grades(book)
    assert grades.points == {"one": 6, "two": 6}
    for (student, name), score in grades.scores.items():
        submission: Any = book.find_submission(name, student)
        assert score == max(0, submission.score - submission.late_submission_penalty)
    assert set(grades.scores) == {("ada", "one"), ("ada", "two"), ("bo", "one")}
    assert grades.waiting == 3


def test_what_changed_after_a_person_graded_it_counts_and_is_said(tmp_path: Path):
    with Gradebook(f"sqlite:///{tmp_path / 'gradebook.db'}") as book, warnings.catch_warnings():
        warnings.simplefilter("ignore", SAWarning)
        fill(book)
        before = read_grades(book)
        grade: Any = book.find_grade("essay", "nb", "one", "ada")
        grade.needs_manual_grade = True  # as after another notebook was handed in
        book.db.commit()
        grades = read_grades(book)
    assert (grades.waiting, grades.stale, grades.scores) == (before.waiting, 1, before.scores)
    assert "1 answer has changed since a person graded it" in enrol(grades, None)[-1]


def test_a_class_is_read_by_one_query_for_each_assignment(book: Gradebook):
    asked: list[str] = []
    event.listen(book.engine, "before_cursor_execute", lambda *given: asked.append(given[2]))
    assert len(book_lines(book, "one")) == 6
    assert len(asked) == 1


def test_canvas_gets_its_columns_points_and_blanks_for_what_is_missing(book: Gradebook):
    head, possible, *rows = table(write_canvas, read_grades(book))
    assert head == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "one", "two"]
    assert possible == ["    Points Possible", "", "", "", "", "6", "6"]
    assert ["Ada Lovelace", "", "", "ada", "", "5", "2.5"] in rows
    assert ["bo", "77", "", "bo", "", "2.3333", ""] in rows


def test_moodle_gets_names_id_mail_and_grades(book: Gradebook):
    head, *rows = table(write_moodle, read_grades(book))
    assert head[:4] == ["First name", "Last name", "ID number", "Email address"]
    assert head[4:] == ["Assignment: one (Real)", "Assignment: two (Real)"]
    assert ["Ada", "Lovelace", "ada", "ada@x.org", "5", "2.5"] in rows


@pytest.mark.parametrize("writer", [write_canvas, write_moodle])
def test_no_cell_is_a_formula(book: Gradebook, writer):
    cells = [cell for row in table(writer, read_grades(book)) for cell in row]
    assert f"'{EVIL}" in cells
    assert not [cell for cell in cells if cell.startswith(("=", "+", "@", "-"))]


FORMULAS = ["=1+1", "+cmd", "-x", "@sum", "＝1", "-1+1", "=cmd|' /C calc'!A0", "＠SUM(A1)", EVIL]


def fields(text: str) -> list[str]:
    """The fields that somebody may get to see, whatever separates them there, without quotes."""
    return [field.strip(' "\u00a0\u200b\ufeff') for field in re.split(r"[,;\t|\r\n\v\f]", text)]


@pytest.mark.parametrize("formula", FORMULAS)
def test_no_field_is_a_formula_wherever_a_cell_is_cut(formula: str):
    starts = ["", " ", "\t", "\n", "\r\n", ";", "a;", "a, ", "a\u00a0|\u00a0"]
    hidden = ["", '"', "\u200b", "\u202e", "\x1b", ' "" ']
    for before, between in product(starts, hidden):
        text = safe(f"{before}{between}{formula}; b")
        assert not [field for field in fields(text) if field.startswith(tuple("=+-@＝＋－＠"))], (
            text
        )
        assert not re.search(r"[\x00-\x08\x1b\u202e]", text)


def test_no_two_texts_become_one_cell_and_a_cell_says_what_was_meant():
    parts = ["", "'", "=", "@", "-", "a", "1", ";", " ", '"', ","]
    texts = {"".join(some) for some in product(parts, repeat=4)}
    cells = {safe(text): text for text in texts}
    assert len(cells) == len(texts)
    assert all(meant(cell) == text for cell, text in cells.items())
    marks = "'" * 100_000
    assert safe(f"\n{marks}a") == f"\n{marks}a"


def test_a_cell_of_the_longest_gap_is_looked_through_once():
    assert safe("\n " * 100_000 + "=1").endswith("'=1")


@pytest.mark.parametrize(
    "text",
    ["-3", "+2.5", "-1e-3", "ada", "a=b", "", "12", "x@y.org", "a - b", "Anne-Marie", "x = 3; y"],
)
def test_numbers_and_words_stay_as_they_are(text: str):
    assert safe(text) == text


def test_points_are_written_as_people_do():
    assert [number(x) for x in (3.0, 2.5, 1 / 3, 0.0, 1234567.0)] == [
        *("3", "2.5", "0.3333", "0", "1234567")
    ]


def test_the_roster_says_who_is_who_and_loses_nobody(book: Gradebook, tmp_path: Path):
    lines = ["student, LMS_ID ,name,email,sis_id,section", "ada,501,,a@lms.org,S1,Lab 2"]
    text = "\n".join([*lines, "zoe,502,Zoe Z,z@x,,", "", ""])
    (tmp_path / "roster.csv").write_text(text, encoding="utf-8-sig")
    grades = read_grades(book)
    said = enrol(grades, roster_of(tmp_path / "nowhere", tmp_path))
    _, _, *rows = table(write_canvas, grades)
    assert ["Ada Lovelace", "501", "S1", "ada", "Lab 2", "5", "2.5"] in rows
    assert ["Zoe Z", "502", "", "zoe", "", "", ""] in rows
    assert ["bo", "77", "", "bo", "", "2.3333", ""] in rows
    (unknown, waiting) = said
    assert unknown.startswith("2 students are not in roster.csv: =HYPER")
    assert waiting.startswith("3 answers wait for a grade by hand")


def test_canvas_has_one_line_of_points_whatever_a_student_is_called():
    names = ["    Points Possible", "Points Possible", "Ann", "points\u00a0possible"]
    people = {
        plain(name): Person(plain(name), name=name if name == "Ann" else "") for name in names
    }
    people["bo"] = Person("bo", name="Bo Points  Possible")
    _, points, *rows = table(write_canvas, Grades({"one": 3.0}, people=people))
    assert points[0] == "    Points Possible" and len(rows) == 5
    assert not [row[0] for row in rows if re.search(r"points\s*possible", row[0], re.IGNORECASE)]


def test_an_lms_gets_the_name_that_it_knows(tmp_path: Path):
    names = ["O'Brien", "DOM\\user", 'a"b', "c"]
    people = {plain(name): Person(plain(name)) for name in names}
    grades = Grades({"one": 3.0}, {(id, "one"): 2.0 for id in people}, people=people)
    for writer, column in ((write_canvas, 3), (write_moodle, 2)):
        rows = table(writer, grades)[-4:]
        assert {row[column]: row[-1] for row in rows} == dict.fromkeys(names, "2")
    text = 'student,lms_id\nDOM\\user,7\nO\'Brien,8\n"a""b",9\nc,10\n'
    (tmp_path / "roster.csv").write_text(text, encoding="utf-8")
    assert enrol(grades, roster_of(tmp_path)) == []
    rows = table(write_canvas, grades)[-4:]
    assert {row[0]: (row[1], row[-1]) for row in rows} == {
        name: (id, "2") for name, id in zip(names, ("8", "7", "9", "10"), strict=True)
    }


NFD, NFC = "jo\u0301zef", "j\u00f3zef"


def test_a_name_that_a_folder_writes_in_another_way_is_that_of_the_roster(tmp_path: Path):
    (tmp_path / "roster.csv").write_text(f"student,lms_id\n{NFC},7\nada,8\n", encoding="utf-8")
    grades = Grades({"one": 3.0}, {(NFD, "one"): 2.0}, people={NFD: Person(NFD)})
    assert enrol(grades, roster_of(tmp_path)) == []
    rows = table(write_canvas, grades)[2:]
    assert [(row[1], row[-1]) for row in rows] == [("8", ""), ("7", "2")]


def test_two_folders_whose_names_look_the_same_stay_two(tmp_path: Path):
    (tmp_path / "roster.csv").write_text(f"student,lms_id\n{NFC},7\n", encoding="utf-8")
    scores = {(NFD, "one"): 2.0, (NFC, "one"): 1.0}
    people = {name: Person(name) for name in (NFD, NFC)}
    grades = Grades({"one": 3.0}, scores, people=people)
    said, more = enrol(grades, roster_of(tmp_path))
    assert said.startswith("1 student is not in roster.csv")
    assert more.startswith(f"{NFD}: an LMS may know somebody else")
    rows = table(write_canvas, grades)[2:]
    assert sorted((row[1], row[-1]) for row in rows) == [("", "2"), ("7", "1")]
    both = f"student,lms_id\n{NFC},7\n{NFD},9\n"
    (tmp_path / "roster.csv").write_text(both, encoding="utf-8")
    grades = Grades({"one": 3.0}, {(NFC, "one"): 1.0}, people={NFC: Person(NFC)})
    assert enrol(grades, roster_of(tmp_path)) == []
    assert {row[1] for row in table(write_canvas, grades)[2:]} == {"7", "9"}


@pytest.mark.parametrize(
    "folder",
    [
        *("4711", "BoLogin", "S1", "bob@x.org", "BOB"),
        *("４７１１", "04711", "4711.0", "4.711e3", "4\u200d711", "bób", "Ｓ１"),
    ],
)
def test_no_folder_goes_by_what_an_lms_calls_somebody_else(tmp_path: Path, folder: str):
    roster = "student,lms_id,email,login,sis_id\nbob,4711,bob@x.org,bologin,S1\n"
    (tmp_path / "roster.csv").write_text(roster, encoding="utf-8")
    people = {name: Person(name) for name in ("bob", "cy", folder)}
    scores = {("bob", "one"): 3.0, ("cy", "one"): 2.0, (folder, "one"): 0.0}
    grades = Grades({"one": 3.0}, scores, people=people)
    _, said = enrol(grades, roster_of(tmp_path))
    assert said.startswith(f"{folder}: an LMS may know somebody else by that number, login or")
    canvas = {row[-1]: row for row in table(write_canvas, grades)[2:]}
    assert canvas["3"][1:5] == ["4711", "S1", "bologin", ""] and canvas["2"][3] == "cy"
    assert canvas["0"] == [f"{folder} (folder)", "", "", "", "", "0"]
    moodle = {row[-1]: row[2:4] for row in table(write_moodle, grades)[1:]}
    assert moodle == {"3": ["4711", "bob@x.org"], "2": ["cy", ""], "0": ["", ""]}


@pytest.mark.parametrize("is_listed", [True, False])
def test_no_cell_of_a_table_is_what_an_lms_calls_somebody_else(is_listed: bool):
    """Which keeps a sign from making a formula is what another may be called."""
    people = {name: Person(name) for name in ("@bob", "'@bob")}
    scores = {("@bob", "one"): 3.0, ("'@bob", "one"): 0.0}
    listed = frozenset(people) if is_listed else frozenset[str]()
    rows = table(write_canvas, Grades({"one": 3.0}, scores, people=people, listed=listed))[2:]
    assert {row[-1]: row[3] for row in rows} == {"3": "", "0": "''@bob"}


def test_whom_the_gradebook_knows_by_a_list_and_by_a_folder_is_one(tmp_path: Path):
    with Gradebook(f"sqlite:///{tmp_path / 'gradebook.db'}") as book, warnings.catch_warnings():
        warnings.simplefilter("ignore", SAWarning)
        book.add_assignment("one")
        book.add_notebook("nb", "one")
        known: Any = book.add_student(NFC)
        known.lms_user_id = "7"
        book.add_student(NFD)
        book.add_submission("one", NFD)
        grades = read_grades(book)
    assert grades.people == {NFD: Person(NFD, "7")}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name,email\nx,y\n", "has no column 'student'"),
        ("", "has no column 'student'"),
        ("student\nada\nada\n", "line 3: ada is there twice"),
        ('student,name\nada,"Ada\nbela,Bela\n', "cannot be read .*; save it as CSV"),
    ],
)
def test_a_roster_that_is_none_is_told(tmp_path: Path, text: str, words: str):
    (tmp_path / "roster.csv").write_text(text)
    with pytest.raises(CourseError, match=words):
        read_roster(tmp_path / "roster.csv")


def test_a_roster_in_another_encoding_is_told(tmp_path: Path):
    (tmp_path / "roster.csv").write_bytes("student,name\nada,Zoë".encode("latin-1"))
    with pytest.raises(CourseError, match="save it as CSV in UTF-8"):
        read_roster(tmp_path / "roster.csv")


def result() -> Result:
    """One submission: passed, failed in its visible part, failed in a hidden one."""
    verdicts = (
        Verdict("a", "passed", 2, 2, said=SECRET),
        Verdict("b", "failed", 0, 1, told="rows sum to 1", said=SECRET),
        Verdict("c", "failed", 0.5, 1, told="also for large values", said=SECRET, hidden=True),
        Verdict("d", "failed", 0, 1, told="all hidden", said=SECRET, hidden=True),
        Verdict("e", "failed", 0, 1, told="all visible", said=SECRET),
    )
    return Result("ada", "one", "k", (NotebookResult("nb", verdicts),), seconds=1.25)


def cell(stub: str, hidden: bool) -> Any:
    """What the export asks of an instructor's test cell."""
    return SimpleNamespace(stub=stub, hidden=((2, 3),) if hidden else ())


CELLS: dict[tuple[str, str], Any] = {("nb", name): cell("assert x", True) for name in "abc"} | {
    ("nb", "d"): cell("", True),
    ("nb", "e"): cell("assert x", False),
}


def test_gradescope_gets_points_and_shows_hidden_tests_only_when_published():
    made = results_json(result(), CELLS)
    assert made["score"] == 2.5
    assert made["stdout_visibility"] == "hidden"
    assert sum(test.get("score", 0) for test in made["tests"]) == 2.5
    assert sum(test.get("max_score", 0) for test in made["tests"]) == 6
    now = {test["name"]: test for test in made["tests"] if test["visibility"] == "visible"}
    assert {name: test["status"] for name, test in now.items()} == {
        "a (visible tests)": "passed",
        "b (visible tests)": "failed",
        "c (visible tests)": "passed",
        "e": "failed",
    }
    assert now["b (visible tests)"]["output"] == "rows sum to 1"
    assert "score" not in now["c (visible tests)"], "the points would give the hidden part away"
    later = [test["name"] for test in made["tests"] if test["visibility"] == "after_published"]
    assert later == ["a", "b", "c", "d"]


def test_a_test_that_goes_by_others_hidden_tests_is_shown_when_published():
    (notebook,) = result().notebooks
    leaning = replace(notebook, verdicts=[replace(one, leans=True) for one in notebook.verdicts])
    tests = results_json(replace(result(), notebooks=(leaning,)), CELLS)["tests"]
    assert {test["visibility"] for test in tests} == {"after_published"}


def test_gradescope_gets_no_time_in_which_an_answer_could_tell_a_hidden_input():
    assert results_json(replace(result(), seconds=57.0), CELLS) == results_json(result(), CELLS)


def test_gradescope_gets_nothing_of_what_is_said_to_the_instructor():
    text = json.dumps(results_json(result(), CELLS))
    assert SECRET not in text


def test_a_test_that_the_instructors_notebook_lacks_counts_as_hidden():
    tests = results_json(result(), {})["tests"]
    assert {test["visibility"] for test in tests} == {"after_published"}


def test_a_submission_that_could_not_be_run_says_why_on_gradescope():
    made = results_json(Result("ada", "one", "k", reason="it is no notebook"), {})
    assert (made["score"], made["output"], made["tests"]) == (0, "it is no notebook", [])


def gone() -> None:
    """As reading an assignment ends that the course no longer has."""
    raise CourseError("source/old does not exist.")


@pytest.fixture
def taught(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A class with that gradebook and one result in its journal."""
    cells = [SimpleNamespace(grade_id=id, kind="test", **vars(c)) for (_, id), c in CELLS.items()]
    notebook = SimpleNamespace(name="nb", cells=cells)
    one = SimpleNamespace(name="one", notebooks=[notebook])
    journal = {("ada", "one"): result(), ("ada", "old"): replace(result(), assignment="old")}
    monkeypatch.setattr("autograder.classroom.gradescope.read_journal", lambda _: journal)
    for module in ("exports", "gradescope"):
        monkeypatch.setattr(f"autograder.classroom.{module}.results", lambda _: ())
    monkeypatch.setattr("autograder.classroom.keeper.refresh", lambda *_: [])
    return SimpleNamespace(
        folder=folder,
        database=f"sqlite:///{folder / 'gradebook.db'}",
        course_id="default_course",
        course=SimpleNamespace(
            root=folder,
            show=str,
            instructor=Course(folder).instructor,
            release=Course(folder).release,
        ),
        submitted=folder / "submitted",
        autograded=folder / "autograded",
        feedback=folder / "feedback",
        read=lambda name: {"one": one}.get(name) or gone(),
    )


@pytest.mark.parametrize("kind", ["canvas", "moodle"])
def test_the_command_writes_beside_the_gradebook_and_says_where(
    taught: Any, capsys: pytest.CaptureFixture[str], kind: str
):
    assert run(taught, kind) == 0
    path = taught.folder / f"{kind}.csv"
    assert path.is_file()
    said = capsys.readouterr().out.splitlines()
    assert said[0] == f"{kind}: {path}"
    assert said[1].startswith("3 answers wait")


def test_the_command_writes_a_results_json_for_each_submission(
    taught: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert run(taught, "gradescope", tmp_path / "out") == 0
    (path,) = (tmp_path / "out").rglob("*.json")
    assert path.relative_to(tmp_path) == Path("out/ada/one/results.json")
    assert json.loads(path.read_text(encoding="utf-8")) == results_json(result(), CELLS)
    said = capsys.readouterr().out.splitlines()[-1]
    assert said.startswith("left out: old was graded once") and "does not exist" in said


def test_gradescope_gets_what_lateness_takes_off():
    made = results_json(result(), CELLS, Points(2.5, 1.0, 3 * 86400.0))
    assert (made["score"], made["output"]) == (1.5, "2.5 points, 1 taken off: 3 days late")


def test_an_unknown_kind_names_those_there_are(taught: Any):
    with pytest.raises(CourseError, match="write canvas, moodle or gradescope"):
        run(taught, "blackboard")


@pytest.mark.parametrize("name", ["Canvas", "Moodle"])
def test_nbgrader_export_takes_the_exporters(folder: Path, tmp_path: Path, name: str):
    command = [
        *(sys.executable, "-m", "nbgrader", "export", "--exporter"),
        *(f"autograder.classroom.exports.{name}Exporter", f"--to={tmp_path / 'out.csv'}"),
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "wait for a grade by hand" in done.stderr
    with (tmp_path / "out.csv").open(newline="", encoding="utf-8") as file:
        assert any("2.3333" in row for row in csv.reader(file))


def test_nbgraders_own_table_has_its_columns_and_no_formula(book: Gradebook, tmp_path: Path):
    paths = {GradeTable: tmp_path / "ours.csv", CsvExportPlugin: tmp_path / "its.csv"}
    for kind, path in paths.items():
        kind(to=str(path)).export(book)
    GradeTable(to=str(tmp_path / "some.csv"), student=["ada"], assignment=["two"]).export(book)
    ours, its = (list(csv.reader(io.StringIO(path.read_text()))) for path in paths.values())
    assert ours[0] == its[0] == [*COLUMNS]
    assert [row for row in ours if "ada" in row] == [row for row in its if "ada" in row]
    assert [row[3] for row in ours[1:] if "HYPERLINK" in row[3]] == [safe(EVIL)] * 2
    assert {len(row) for row in ours} == {len(COLUMNS)}
    assert len((tmp_path / "some.csv").read_text().splitlines()) == 2


def test_the_course_exports_by_it():
    config = (ROOT / "nbgrader_config.py").read_text(encoding="utf-8")
    assert f'c.ExportApp.plugin_class = "{GradeTable.__module__}.{GradeTable.__name__}"' in config


@pytest.mark.parametrize("what", ["folder", "link"])
def test_a_roster_that_is_no_file_is_not_taken_for_none(tmp_path: Path, what: str):
    place = tmp_path / "roster.csv"
    place.mkdir() if what == "folder" else place.symlink_to("nowhere")
    with pytest.raises(CourseError, match=r"roster\.csv cannot be read"):
        roster_of(tmp_path)


@pytest.mark.parametrize("out", ["submitted", "submitted/ada", "source/x/.."])
def test_results_for_gradescope_are_written_to_nobodys_work(tmp_path: Path, out: str):
    taught = Class(make_course(tmp_path), tmp_path)
    with pytest.raises(CourseError, match="no place for results"):
        run(taught, "gradescope", tmp_path / out)

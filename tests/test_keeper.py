"""A gradebook that is deleted, put back, moved or locked: grades stay equal, or it is said."""

import contextlib
import json
import re
import shutil
import sqlite3
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from nbgrader.api import Gradebook

from autograder.classroom.classes import Class
from autograder.classroom.grade import Grader, grade
from autograder.classroom.journal import Journal
from autograder.common.course import Course
from tests.postgres import postgres
from tests.small_course import (
    ANSWERS,
    NAME,
    PAGE,
    RIGHT,
    by_hand,
    hand_in,
    make_course,
    nbgrader,
    release,
    run,
    scores,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="grading needs Linux")
LATE = """[late]
policy = "per-day"
rate = 0.1
due = 2026-01-01T00:00:00Z
times = "../times.csv"
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small class, graded, with grades, comments and an extension by a person."""
    root = tmp_path_factory.mktemp("made")
    course = make_course(root)
    (root / "source" / NAME / "rules.toml").write_text(LATE)
    times = [f"{name},2026-01-0{day}T12:00:00Z" for day, name in enumerate(ANSWERS, 1)]
    (root / "source" / "times.csv").write_text("\n".join(["student,submitted", *times]))
    release(root)
    for student, answers in ANSWERS.items():
        hand_in(root, student, answers)
    taught = Class(course, root)
    grade(taught, [NAME], progress=False)
    (root / "older.db").write_bytes((root / "gradebook.db").read_bytes())
    enter(taught)
    assert run(root, "report") == 0
    return root


def enter(taught: Class) -> None:
    """What a person enters in formgrader."""
    for student, score in (("ada", 1.5), ("dana", 0.5)):
        by_hand(taught.folder, student, score)
    with Gradebook(taught.database) as book:
        row: Any = book.find_grade("draw", "numbers", NAME, "ada")
        row.extra_credit = 0.25
        comment: Any = book.find_comment("why", "numbers", NAME, "bela")
        comment.manual_comment = "Why is it so?"
        submission: Any = book.find_submission(NAME, "chidi")
        submission.extension = timedelta(days=2)
        book.db.commit()


@pytest.fixture
def root(made: Path, tmp_path: Path) -> Path:
    """The same class in a folder of its own."""
    root = tmp_path / "class"
    shutil.copytree(made, root)
    config = root / "nbgrader_config.py"
    config.write_text(config.read_text().replace(str(made), str(root)))
    return root


def rows(root: Path) -> dict[str, Any]:
    """All that a gradebook says of everybody."""
    with Gradebook(Class(Course(root), root).database) as book:
        found: list[Any] = book.assignment_submissions(NAME)
        return {
            one.student.id: (
                one.extension,
                one.notebooks[0].late_submission_penalty,
                sorted(
                    (g.name, g.auto_score, g.manual_score, g.extra_credit)
                    for g in one.notebooks[0].grades
                ),
                sorted(
                    (c.name, c.auto_comment or "", c.manual_comment or "")
                    for c in one.notebooks[0].comments
                ),
            )
            for one in found
        }


def files(root: Path) -> dict[str, bytes]:
    """What students and registries get."""
    pages = [path for path in sorted(root.rglob("*.html")) if path.name != "report.html"]
    return {
        str(path.relative_to(root)): path.read_bytes() for path in [*pages, root / "grades.csv"]
    }


def delete(root: Path) -> None:
    """The gradebook, with what SQLite keeps beside it."""
    for path in root.glob("gradebook.db*"):
        path.unlink()


def put_back(root: Path) -> None:
    """An older copy: nobody had entered anything then."""
    delete(root)
    shutil.copy(root / "older.db", root / "gradebook.db")


def move(root: Path) -> None:
    """To another place, where nothing is yet."""
    set_database(root, f"sqlite:///{root}/elsewhere.db")


def set_database(root: Path, url: str) -> None:
    """Say where the gradebook is."""
    with (root / "nbgrader_config.py").open("a") as file:
        file.write(f"c.CourseDirectory.db_url = {url!r}\n")


LOSSES: dict[str, Callable[[Path], None]] = {"deleted": delete, "older": put_back, "moved": move}
COMMANDS = {"grade": ("grade", NAME), "report": ("report",), "export": ("export", "canvas")}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
@pytest.mark.parametrize("lose", LOSSES.values(), ids=LOSSES)
def test_a_gradebook_that_was_lost_is_filled_again_with_all_that_people_entered(
    root: Path,
    lose: Callable[[Path], None],
    command: tuple[str, ...],
    capsys: pytest.CaptureFixture[str],
):
    assert run(root, *command) == 0
    whole, given = rows(root), files(root)
    exported = (root / "canvas.csv").read_bytes() if "export" in command else b""
    capsys.readouterr()
    lose(root)
    assert run(root, *command) == 0
    said = capsys.readouterr().out
    assert "by hand of 4 submissions" in said
    if lose is not put_back:
        assert "5 of the results were not in the gradebook" in said
    assert rows(root) == whole
    assert files(root) == given
    assert not exported or (root / "canvas.csv").read_bytes() == exported
    assert run(root, *command) == 0
    assert "submissions" not in capsys.readouterr().out
    assert rows(root) == whole


def test_a_journal_that_is_lost_is_said_and_the_report_has_the_gradebooks_points(
    root: Path, capsys: pytest.CaptureFixture[str]
):
    def table() -> dict[str, str]:
        lines = (root / "grades.csv").read_text().splitlines()
        return {line.split(",")[0]: line.split(",")[2] for line in lines}

    whole = table()
    (root / "gradebook.journal.jsonl").unlink()
    capsys.readouterr()
    assert run(root, "report") == 0
    assert "gradebook.journal.jsonl holds no grades, and the gradebook does" in (
        capsys.readouterr().err
    )
    assert table() == whole and len(whole) == 6
    assert run(root, "grade", NAME) == 0
    assert "holds no grades" not in capsys.readouterr().err
    assert table() == whole


def test_what_a_person_takes_back_stays_taken_back(root: Path):
    change_row(root, "why", "ada", manual_score=None)
    for command in COMMANDS.values():
        assert run(root, *command) == 0
        why = [grade for grade in rows(root)["ada"][2] if grade[0] == "why"]
        assert why == [("why", None, None, None)]


def test_what_a_gradebook_that_was_put_back_says_itself_stays(root: Path):
    put_back(root)
    by_hand(root, "ada", 2.0)
    assert run(root, "report") == 0
    found = {name: {g[0]: g[2] for g in row[2]} for name, row in rows(root).items()}
    assert (found["ada"]["why"], found["dana"]["why"]) == (2.0, 0.5)


def test_a_grade_by_hand_waits_for_nobody_when_its_submission_is_graded_again(
    root: Path, capsys: pytest.CaptureFixture[str]
):
    assert run(root, "export", "canvas") == 0
    first = capsys.readouterr().out
    assert run(root, "grade", NAME, "--again", "--no-report") == 0
    capsys.readouterr()
    assert run(root, "export", "canvas") == 0
    assert capsys.readouterr().out == first
    assert re.search(r"\b\d+ answers wait for a grade by hand and count 0 so far", first)


def test_a_grade_by_hand_waits_for_nobody_when_a_run_was_interrupted(
    root: Path, monkeypatch: pytest.MonkeyPatch
):
    def end(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Grader, "_keep", end)
        assert run(root, "grade", NAME, "--again", "--no-report", "--student", "ada") == 130
    assert run(root, "grade", NAME, "--no-report") == 0
    with Gradebook(f"sqlite:///{root}/gradebook.db") as book:
        row: Any = book.find_grade("why", "numbers", NAME, "ada")
        assert (row.manual_score, row.needs_manual_grade) == (1.5, False)


def test_one_submission_graded_anew_brings_back_everybody(root: Path):
    whole = rows(root)
    delete(root)
    hand_in(root, "noor", RIGHT)
    assert run(root, "grade", NAME, "--student", "noor", "--no-report") == 0
    found = rows(root)
    assert found.pop("noor") != whole.pop("noor")
    assert found == whole


def test_a_gradebook_that_was_lost_while_another_grader_works_is_left_to_it(root: Path):
    whole = rows(root)
    delete(root)
    with Journal(Class(Course(root), root)):
        assert run(root, "report") == 0
    assert run(root, "report") == 0
    assert rows(root) == whole


def test_a_locked_gradebook_is_a_sentence_and_everything_is_there_afterwards(
    root: Path, capsys: pytest.CaptureFixture[str]
):
    whole = rows(root)
    set_database(root, f"sqlite:///{root}/gradebook.db?timeout=0.1")
    with contextlib.closing(sqlite3.connect(root / "gradebook.db")) as other:
        other.execute("BEGIN EXCLUSIVE")
        for command in (*COMMANDS.values(), ("grade", NAME, "--again")):
            assert run(root, *command) == 2
            said = capsys.readouterr().err.splitlines()[-1]
            assert said.startswith("error: The gradebook ") and "is locked by another" in said
        assert run(root, "history", "ada") == 0
        told = capsys.readouterr()
        assert "is locked by another" in told.err and "by hand" in told.out
        other.rollback()
    assert run(root, "grade", NAME) == 0
    assert rows(root) == whole


def test_a_gradebook_may_move_to_postgresql_and_back(
    root: Path, capsys: pytest.CaptureFixture[str]
):
    whole, given = rows(root), files(root)
    with postgres() as url:
        set_database(root, url)
        for command in COMMANDS.values():
            assert run(root, *command) == 0
            assert rows(root) == whole
            assert files(root) == given
        delete(root)
        hand_in(root, "noor", RIGHT)
        assert run(root, "grade", NAME) == 0
        more, changed = rows(root), files(root)
        assert more.keys() == whole.keys() and more["noor"] != whole["noor"]
        assert run(root, "history", "noor", NAME) == 0
        assert "new submission" in capsys.readouterr().out
    for command in COMMANDS.values():
        assert run(root, *command) == 2
        assert "cannot be reached" in capsys.readouterr().err.splitlines()[-1]
    assert files(root) == changed
    set_database(root, f"sqlite:///{root}/gradebook.db")
    assert run(root, "report") == 0
    assert rows(root) == more
    assert files(root) == changed


ROSTER = "student,lms_id,name,email\nada,17,Ada Lovelace,ada@x.edu\n"


def test_a_class_in_another_folder_is_graded_by_the_same_settings(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    delete(root)
    (root / "gradebook.journal.jsonl").unlink()
    (root / "roster.csv").write_text(ROSTER)
    found = {}
    for place in (root, tmp_path / "other", root / "build" / "trial"):
        if place != root:
            shutil.copytree(root / "submitted", place / "submitted")
        set_database(root, f"sqlite:///{tmp_path}/{place.name}.db")
        taught = Class(Course(root), place)
        where = () if place == root else ("--folder", str(place))
        assert run(root, "grade", NAME, "--no-report", *where) == 0
        with Gradebook(taught.database) as book:
            book.grant_extension(NAME, "dana", days=2)
        assert run(root, "export", "canvas", *where) == 0
        assert run(root, "report", *where) == 0
        found[place.name] = [(place / name).read_text() for name in ("canvas.csv", "grades.csv")]
        in_build = place.parent.name == "build"
        assert (place / "gradebook.db").is_file() == in_build
        assert (tmp_path / f"{place.name}.db").is_file() != in_build
        assert ("as nbgrader_config.py says" in capsys.readouterr().out) == (place.name == "other")
    assert found["class"] == found["other"] == found["trial"]
    assert "Ada Lovelace,17" in found["other"][0]


WRONG = "def {}(x):\n    return -1"


def test_an_older_gradebook_whose_points_only_come_to_the_same_is_noticed(
    root: Path, capsys: pytest.CaptureFixture[str]
):
    hand_in(root, "dana", RIGHT | {"third": WRONG.format("third")})
    assert run(root, "grade", NAME) == 0
    shutil.copy(root / "gradebook.db", root / "older.db")
    hand_in(root, "dana", RIGHT | {"square": WRONG.format("square")})
    assert run(root, "grade", NAME) == 0
    whole = rows(root)
    put_back(root)
    assert rows(root) != whole
    capsys.readouterr()
    assert run(root, "report") == 0
    assert "1 of the results were not in the gradebook" in capsys.readouterr().out
    assert rows(root) == whole
    assert run(root, "history", "dana", NAME) == 0
    assert "graded once more" not in capsys.readouterr().out


def change_row(root: Path, cell: str, student: str, notebook: str = "numbers", **values: Any):
    """What a person enters in formgrader of one cell."""
    with Gradebook(f"sqlite:///{root}/gradebook.db") as book:
        row: Any = book.find_grade(cell, notebook, NAME, student)
        for name, value in values.items():
            setattr(row, name, value)
        book.db.commit()


def stale(root: Path) -> bool:
    """Whether ada's text waits for somebody to look again."""
    with Gradebook(f"sqlite:///{root}/gradebook.db") as book:
        row: Any = book.find_grade("why", "numbers", NAME, "ada")
        return row.needs_manual_grade


@pytest.mark.parametrize("lose", [delete, put_back])
def test_what_has_changed_since_a_person_graded_it_is_still_said_when_a_gradebook_is_filled_again(
    root: Path, lose: Callable[[Path], None], capsys: pytest.CaptureFixture[str]
):
    shutil.copy(root / "gradebook.db", root / "older.db")
    hand_in(root, "ada", RIGHT | {"why": "It is not so."})
    assert run(root, "grade", NAME) == 0
    assert stale(root)
    lose(root)
    capsys.readouterr()
    assert run(root, "export", "canvas") == 0
    assert "1 answer has changed since a person graded it" in capsys.readouterr().out
    assert stale(root)
    change_row(root, "why", "ada", needs_manual_grade=False)
    assert run(root, "report") == 0
    capsys.readouterr()
    assert run(root, "history", "ada", NAME) == 0
    told = capsys.readouterr().out
    assert "why has changed since a person graded it" in told
    assert re.search(r"by hand +why looked at again", told)
    lose(root)
    assert run(root, "report") == 0
    assert not stale(root) or lose is put_back  # it had another answer then


def test_a_page_that_cannot_be_written_is_said_whichever_command_comes(
    root: Path, capsys: pytest.CaptureFixture[str]
):
    page = root / "feedback" / "ada" / NAME / "numbers.html"
    page.unlink()
    page.mkdir()
    words = f"not written: ada, {NAME}: not all of its files could be written"
    for command in (*COMMANDS.values(), ("export", "gradescope"), ("history", "ada")):
        capsys.readouterr()
        assert run(root, *command) == 0
        assert capsys.readouterr().out.count(words) == 1, command
    with (root / "nbgrader_config.py").open("a") as file:
        file.write(PAGE)
    assert words in nbgrader(root, "generate_feedback", NAME)
    with Journal(Class(Course(root), root)):  # another grader is at work
        assert run(root, "report") == 0
        assert words in capsys.readouterr().out


def test_a_long_comment_comes_back_whole(root: Path):
    with Gradebook(f"sqlite:///{root}/gradebook.db") as book:
        comment: Any = book.find_comment("why", "numbers", NAME, "bela")
        comment.manual_comment = "Why? " * 1000 + "!"
        book.db.commit()
    assert run(root, "report") == 0
    whole = rows(root)
    delete(root)
    assert run(root, "report") == 0
    assert rows(root) == whole


def possible(root: Path) -> tuple[float, float, float]:
    """The most points by formgrader, the class report and Canvas."""
    with Gradebook(f"sqlite:///{root}/gradebook.db") as book:
        found: Any = book.find_assignment(NAME)
        formgrader = found.max_score
    grades = (root / "grades.csv").read_text().splitlines()[1].split(",")
    heads = (root / "grades.csv").read_text().splitlines()[0].split(",")
    canvas = (root / "canvas.csv").read_text().splitlines()[1].split(",")
    return float(formgrader), float(grades[heads.index("max")]), float(canvas[-1])


def earned(root: Path, student: str, said: str) -> tuple[float, ...]:
    """A student's points by history, the class report and Canvas."""
    tables = [(root / name).read_text() for name in ("grades.csv", "canvas.csv")]
    found = [re.search(rf"^{student},.*$", table, re.MULTILINE) for table in tables]
    assert all(found)
    grades, canvas = (one[0].split(",") for one in found if one)
    history = re.search(rf"^{student}, {NAME}: ([\d.]+) points", said, re.MULTILINE)
    assert history
    return float(history[1]), float(grades[1]), float(canvas[-1])


def take_out_a_test(root: Path) -> None:
    """Out of the source."""
    path = root / "source" / NAME / "numbers.ipynb"
    content = json.loads(path.read_text())
    content["cells"] = [cell for cell in content["cells"] if cell["id"] != "square-hidden"]
    path.write_text(json.dumps(content))


def take_out_a_notebook(root: Path) -> None:
    """The second one."""
    (root / "source" / NAME / "more.ipynb").unlink()


GONE = {
    "test": (take_out_a_test, "numbers", 15.0),
    "notebook": (take_out_a_notebook, "more", 17.0),
}


@pytest.mark.parametrize(("take_out", "notebook", "most"), GONE.values(), ids=GONE)
def test_what_a_person_gave_for_a_test_that_is_gone_counts_on_top_everywhere(
    root: Path,
    take_out: Callable[[Path], None],
    notebook: str,
    most: float,
    capsys: pytest.CaptureFixture[str],
):
    (root / "source" / NAME / "rules.toml").unlink()
    if notebook == "more":
        source = root / "source" / NAME
        shutil.copy(source / "numbers.ipynb", source / "more.ipynb")
        assert run(root, "grade", NAME) == 0
    change_row(root, "square-hidden", "ada", notebook, manual_score=1.5)
    assert run(root, "report") == 0
    take_out(root)
    found = []
    for lose in (lambda _: None, delete):
        lose(root)
        assert run(root, "grade", NAME) == 0
        assert run(root, "export", "canvas") == 0
        capsys.readouterr()
        assert possible(root) == (most,) * 3
        points = []
        for student in ("ada", "bela"):
            assert run(root, "history", student, NAME) == 0
            points.append(earned(root, student, capsys.readouterr().out))
            assert len(set(points[-1])) == 1
        found.append(points)
        with Gradebook(f"sqlite:///{root}/gradebook.db") as book:
            row: Any = book.find_grade("square-hidden", notebook, NAME, "ada")
            assert not row.needs_manual_grade
    assert found[0] == found[1]
    tests = 1 + 3 + (2 if notebook == "more" else 0)
    assert found[0][0][0] == tests + 1.5 + 1.5  # what is on top of a cell that waits counts later
    assert found[0][0][0] == scores(Class(Course(root), root))["ada"]

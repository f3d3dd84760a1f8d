"""Works are graded as they arrive, and their feedback is released, whatever happens meanwhile."""

import shutil
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path

import pytest
from nbgrader.api import Gradebook

from autograder.classroom import arrivals, shown, watching
from autograder.classroom.classes import Class
from autograder.classroom.grade import Grader
from autograder.classroom.journal import read_changes, read_journal
from autograder.classroom.journal_lock import Busy, Lock
from autograder.classroom.watching import Watcher
from autograder.common.course import CourseError
from tests import watch_drill
from tests.small_course import NAME, RIGHT, by_hand, nbgrader, run, scores
from tests.watched import Exchange

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="grading needs Linux")
WRONG = RIGHT | {"square": "def square(x):\n    return x * abs(x)"}
CLAIM = "square(-5)"  # of what the hidden test says, nothing is ever shown
NOON = datetime(2026, 2, 1, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Exchange:
    """A course with an exchange in which nothing was handed in."""
    return Exchange(tmp_path_factory.mktemp("made"))


@pytest.fixture
def exchange(made: Exchange, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Exchange:
    """The same for one test; whole works are taken at once."""
    for name in ("course", "exchange"):
        shutil.copytree(made.root.parent / name, tmp_path / name)
    copy = Exchange.__new__(Exchange)
    copy.__dict__.update(made.__dict__)
    copy.root, copy.shared = tmp_path / "course", tmp_path / "exchange"
    copy.course = type(made.course)(copy.root)
    config = copy.root / "nbgrader_config.py"
    config.write_text(config.read_text().replace(str(made.root.parent), str(tmp_path)))
    monkeypatch.setattr(arrivals, "SETTLED", 0.0)
    return copy


@pytest.fixture
def watcher(exchange: Exchange) -> Iterator[Watcher]:
    """A watcher of that course, which looks when it is told to."""
    with Watcher(exchange.course, [], jobs=1, every=1e-6) as watcher:
        yield watcher


def points(exchange: Exchange) -> dict[str, float]:
    """What everybody has, by the gradebook."""
    return scores(Class(exchange.course, exchange.root))


def test_what_arrives_is_graded_and_its_feedback_released(exchange: Exchange, watcher: Watcher):
    assert watcher.look()
    assert points(exchange) == {}
    exchange.submit("ada", RIGHT)
    exchange.submit("bela", WRONG)
    assert watcher.look()
    assert points(exchange) == {"ada": 6.0, "bela": 4.0}
    assert "6 of 6" in exchange.page("ada") and "4 of 6" in exchange.page("bela")
    assert exchange.news()["graded"] == 2 and exchange.news()["state"] == "waiting for works"
    assert "ada" in (exchange.root / "watch.html").read_text()
    before = exchange.page("ada")
    assert watcher.look()
    assert exchange.news()["graded"] == 2 and exchange.page("ada") == before


def test_the_newest_work_of_a_student_is_graded_once(exchange: Exchange, watcher: Watcher):
    for number in range(5):
        exchange.submit("ada", RIGHT | {"third": f"def third(x):\n    return {number}"})
    exchange.submit("ada", RIGHT)
    assert watcher.look()
    assert points(exchange) == {"ada": 6.0}
    assert exchange.news()["graded"] == 1
    assert len(read_changes(Class(exchange.course, exchange.root))[("ada", NAME)]) == 1


def test_no_half_of_a_work_is_graded(
    exchange: Exchange, watcher: Watcher, monkeypatch: pytest.MonkeyPatch
):
    exchange.submit("ada", WRONG)
    folder = exchange.submit("ada", RIGHT, whole=False)
    assert watcher.look()
    assert points(exchange) == {"ada": 4.0}  # the one before is whole
    exchange.finish(folder, "ada")
    assert watcher.look()
    assert points(exchange) == {"ada": 6.0}
    exchange.submit("bela", RIGHT, whole=False)  # by hand, and it stays so
    assert watcher.look()
    assert "bela" not in points(exchange)
    monkeypatch.setattr(arrivals, "GIVEN_UP", 0.0)
    assert watcher.look()
    assert points(exchange)["bela"] == 6.0


def test_a_watcher_that_begins_finds_what_the_last_one_left(exchange: Exchange):
    """Collected and not graded, graded and not released."""
    with Watcher(exchange.course, [], jobs=1) as first:
        exchange.submit("ada", RIGHT)
        first.look()
        exchange.submit("bela", RIGHT)
    nbgrader(exchange.root, "collect", NAME)
    for page in (exchange.shared / "small" / "feedback").glob("*.html"):
        page.unlink()
    with Watcher(exchange.course, [], jobs=1) as second:
        assert second.look()
    assert points(exchange) == {"ada": 6.0, "bela": 6.0}
    assert exchange.page("ada") and exchange.page("bela")


def test_only_so_many_works_a_day_show_what_hidden_tests_found(
    exchange: Exchange, watcher: Watcher, monkeypatch: pytest.MonkeyPatch
):
    exchange.rules("[feedback]\nlooks_a_day = 1\n")
    exchange.submit("ada", RIGHT)
    assert watcher.look()
    assert "Look 1 of 1" in exchange.page("ada") and "6 of 6" in exchange.page("ada")
    exchange.submit("ada", WRONG)
    assert watcher.look()
    page = exchange.page("ada")
    assert points(exchange) == {"ada": 4.0}  # the grade is whole
    assert "is shown after" in page and "square-hidden: visible part passed" in page
    assert "4 of 6" not in page and "Visible tests" in page
    assert "hidden one" not in page
    by_hand(exchange.root, "ada", 2)  # a sum would tell
    assert run(exchange.root, "report") == 0
    assert "Altogether" not in (exchange.root / f"feedback/ada/{NAME}/numbers.html").read_text()
    later = datetime.now(UTC) + timedelta(days=1)
    monkeypatch.setattr(shown, "now", lambda: later)
    assert watcher.look()
    assert "4 of 6" in exchange.page("ada") and "Altogether" in exchange.page("ada")


def test_hidden_results_are_shown_when_it_is_due(
    exchange: Exchange, watcher: Watcher, monkeypatch: pytest.MonkeyPatch
):
    due = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=2)
    exchange.rules(f'[late]\ndue = {due.isoformat()}\n[feedback]\nhidden = "after-due"\n')
    exchange.submit("ada", WRONG)
    exchange.submit("bela", RIGHT | {"square": "def square(x):\n    return x"})
    assert watcher.look()
    for student in ("ada", "bela"):
        assert "is shown after" in exchange.page(student)
    assert "square-seen: <" in exchange.page("bela")  # what fails in sight is shown
    monkeypatch.setattr(shown, "now", lambda: due)
    assert watcher.look()
    assert "is shown after" not in exchange.page("ada") and "4 of 6" in exchange.page("ada")


def test_no_visible_test_tells_what_hidden_ones_found_before_it_may(
    exchange: Exchange, watcher: Watcher, monkeypatch: pytest.MonkeyPatch
):
    """By the words, or the end, of one whose answer goes by another: the reference may stand in."""
    with (exchange.root / "nbgrader_config.py").open("a") as file:
        file.write("c.Autograder.reference_stands_in = True\n")
    due = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=2)
    exchange.rules(f'[late]\ndue = {due.isoformat()}\n[feedback]\nhidden = "after-due"\n')
    squares = {"right": "x * x", "wrong": "x * abs(x)"}
    thirds = {"goes": "x / 3 if square(3) == 9 and not OWN else 0", "fails": "0 * square(x)"}
    for (one, square), (two, third) in product(squares.items(), thirds.items()):
        own = third.replace("OWN", "getattr(square, 'own', 0)")
        answers = {
            "square": f"def square(x):\n    return {square}\nsquare.own = 1",
            "third": f"def third(x):\n    return {own}",
        }
        exchange.submit(f"{one}-{two}", RIGHT | answers)
    assert watcher.look()
    for two in thirds:
        pages = [exchange.page(f"{one}-{two}").partition("<body>")[2] for one in squares]
        assert all("third-values: shown later" in page for page in pages)
        first, second = (
            page.replace(f"{one}-{two}", "").replace("<span", "").partition("(square)")
            for one, page in zip(squares, pages, strict=True)
        )
        assert first[0] == second[0]
        assert first[2].partition("square-seen")[2] == second[2].partition("square-seen")[2]
    monkeypatch.setattr(shown, "now", lambda: due)
    assert watcher.look()
    assert "was graded without that" in exchange.page("right-goes")
    assert "the reference stood in" in exchange.page("wrong-goes")


def test_nbgraders_own_command_writes_no_page_that_shows_more(exchange: Exchange, watcher: Watcher):
    exchange.rules("[feedback]\nlooks_a_day = 1\n")
    exchange.submit("ada", RIGHT)
    assert watcher.look()
    exchange.submit("ada", WRONG)
    assert watcher.look()
    page = exchange.root / "feedback" / "ada" / NAME / "numbers.html"
    before = page.read_text()
    said = nbgrader(exchange.root, "generate_feedback", NAME, "--force")
    assert "the pages that grading wrote stay" in said
    assert page.read_text() == before


def test_when_a_test_was_mended_everybody_is_graded_again(exchange: Exchange, watcher: Watcher):
    exchange.submit("ada", WRONG)
    exchange.submit("bela", RIGHT)
    assert watcher.look()
    source = exchange.root / "source" / NAME / "numbers.ipynb"
    source.write_text(source.read_text().replace("square(-5) == 25", "square(5) == 25"))
    assert watcher.look()
    assert points(exchange) == {"ada": 6.0, "bela": 6.0}
    assert "6 of 6" in exchange.page("ada")
    changes = read_changes(Class(exchange.course, exchange.root))[("ada", NAME)]
    assert [change["why"] for change in changes] == [["first graded"], ["new tests or rules"]]


def test_who_is_late_says_a_time_that_no_student_sets(exchange: Exchange, watcher: Watcher):
    due = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
    late = '[late]\npolicy = "zero"\ntimes = "../../arrivals.csv"\ndue = '
    exchange.rules(f"{late}{due.isoformat()}\n")
    exchange.submit("ada", RIGHT)
    assert watcher.look()
    assert "6 of 6" in exchange.page("ada") and "late" not in exchange.page("ada")
    exchange.rules(f"{late}2026-02-02T00:00:00+00:00\n")  # after what the folder's name says
    exchange.submit("bela", RIGHT)
    assert watcher.look()
    for student in ("ada", "bela"):
        assert "6 taken off" in exchange.page(student)
    exchange.submit("=bela", RIGHT)
    assert watcher.look()
    rows = (exchange.root / "arrivals.csv").read_text().splitlines()
    assert rows[0] == "student,assignment,submitted,work" and len(rows) == 4
    assert rows[-1].startswith("'=bela,")


def test_arrivals_that_were_noted_half_are_noted_whole(exchange: Exchange, watcher: Watcher):
    exchange.submit("ada", RIGHT)
    assert watcher.look()
    path = exchange.root / "arrivals.csv"
    before = path.read_text()
    watcher.__exit__()
    for lost in (1, 9, len(before.splitlines()[1]) - 5):
        path.write_text(before[:-lost])
        with Watcher(exchange.course, [], jobs=1) as second:
            assert second.look()
        assert path.read_text() == before


def test_two_watchers_of_one_course_are_one_too_many(exchange: Exchange, watcher: Watcher):
    with pytest.raises(Busy, match="at work"):
        Watcher(exchange.course, [])


def test_a_name_of_no_assignment_is_told_before_it_watches(exchange: Exchange):
    with pytest.raises(CourseError, match="There is no assignment 'ps9'"):
        Watcher(exchange.course, ["ps9"])


def test_what_stands_in_the_way_is_said_and_loses_nothing(
    exchange: Exchange, watcher: Watcher, capsys: pytest.CaptureFixture[str]
):
    exchange.submit("ada", RIGHT)
    lock = Lock(exchange.root / "gradebook.journal.lock", exchange.root)
    assert not watcher.look()
    assert not watcher.look()
    lock.release()
    assert capsys.readouterr().err.count("Another grader") == 1
    assert watcher.look()
    away = exchange.shared.with_name("away")
    exchange.shared.rename(away)
    assert not watcher.look()
    assert "release an assignment first" in capsys.readouterr().err
    away.rename(exchange.shared)
    exchange.submit("bela", RIGHT)
    assert watcher.look()
    assert points(exchange) == {"ada": 6.0, "bela": 6.0}


def test_a_locked_gradebook_and_a_full_disk_cost_a_second_try(
    exchange: Exchange, watcher: Watcher, monkeypatch: pytest.MonkeyPatch
):
    exchange.submit("ada", RIGHT)
    with (exchange.root / "nbgrader_config.py").open("a") as file:
        file.write('c.CourseDirectory.db_url = "sqlite:///gradebook.db?timeout=1"\n')
    with closing(sqlite3.connect(exchange.root / "gradebook.db", isolation_level=None)) as book:
        book.execute("BEGIN EXCLUSIVE")
        assert not watcher.look()
        book.execute("ROLLBACK")
    keep = Grader._keep

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Grader, "_keep", full)
    assert not watcher.look()
    monkeypatch.setattr(Grader, "_keep", keep)
    assert watcher.look()
    assert points(exchange) == {"ada": 6.0}
    assert exchange.page("ada")
    assert "gradebook" in " ".join(exchange.news()["troubles"])


def test_feedback_that_cannot_be_released_is_released_later(
    exchange: Exchange, watcher: Watcher, monkeypatch: pytest.MonkeyPatch
):
    def refuse(*_: object) -> None:
        raise CourseError("the exchange is read-only")

    monkeypatch.setattr(watching, "publish", refuse)
    exchange.submit("ada", RIGHT)
    assert watcher.look()
    assert points(exchange) == {"ada": 6.0} and not exchange.page("ada")
    monkeypatch.setattr(watching, "publish", arrivals.publish)
    assert watcher.look()
    assert exchange.page("ada")


def test_one_broken_assignment_keeps_no_other_waiting(exchange: Exchange, watcher: Watcher):
    broken = exchange.root / "source" / "ps2"
    broken.mkdir()
    (broken / "numbers.ipynb").write_text("{")
    exchange.submit("ada", RIGHT)
    assert watcher.look()
    assert points(exchange) == {"ada": 6.0}
    assert "ps2 is not graded" in " ".join(exchange.news()["troubles"])


def test_the_status_says_what_is_going_on(
    exchange: Exchange, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def status() -> str:
        capsys.readouterr()
        assert run(exchange.root, "watch", "--status") == 0
        return capsys.readouterr().out

    assert "No watcher has run here" in status()
    with Watcher(exchange.course, [], jobs=1) as watcher:
        exchange.submit("ada", RIGHT)
        exchange.submit("\x1b[2Jo<b>dd", RIGHT)
        assert watcher.look()
        said = status()
        assert "waiting for works" in said and "2 collected, 2 graded" in said
        assert "\x1b" not in said
        assert "<b>dd" not in (exchange.root / "watch.html").read_text()
    assert "none runs" in status()
    (exchange.root / "watch.json").write_text("{")
    assert run(exchange.root, "watch", "--status") == 2
    assert "delete it" in capsys.readouterr().err


def test_who_hands_in_often_keeps_nobody_waiting():
    queue = watching._Queue()
    queue.add(("busy", NAME))
    assert queue.take() == ("busy", NAME)
    queue.add(("busy", NAME))  # a newer work, while the older one is graded
    assert queue.take() is None
    queue.add(("ada", NAME))
    queue.done(("busy", NAME))
    assert queue.take() == ("ada", NAME)
    assert queue.take() == ("busy", NAME)
    queue.give_up()
    assert set(queue.waiting) == {("busy", NAME), ("ada", NAME)}


def test_who_hands_in_under_many_names_keeps_nobody_waiting():
    queue = watching._Queue(owners={"one": 1001, "two": 1001, "three": 1001, "ada": 1002})
    for name in ("one", "two", "three", "ada"):
        queue.add((name, NAME))
    assert [queue.take() for _ in range(2)] == [("one", NAME), ("ada", NAME)]


def test_a_notebook_of_nobody_that_is_watched_is_left_alone(exchange: Exchange, watcher: Watcher):
    (exchange.inbound / "no name at all").mkdir()
    (exchange.inbound / f"ada+{NAME}+2026-02-01 12:00:00 UTC").write_text("no folder")
    (exchange.inbound / f"eve+{NAME}+2026-02-01 12:00:00 UTC").symlink_to(exchange.root)
    exchange.submit("bela", RIGHT)
    assert watcher.look()
    assert watcher.look()
    assert points(exchange) == {"bela": 6.0}
    assert set(read_journal(Class(exchange.course, exchange.root))) == {("bela", NAME)}
    with Gradebook(f"sqlite:///{exchange.root}/gradebook.db") as book:
        assert [one.id for one in book.students] == ["bela"]


def test_a_watcher_that_is_killed_leaves_no_trace(tmp_path: Path):
    watch_drill.drill(tmp_path, kills=3, students=3, seed=1)

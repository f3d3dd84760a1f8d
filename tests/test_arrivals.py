"""When works arrived is known whatever anybody does, and no setting ends a watcher."""

import os
import shutil
import sys
import time
from datetime import datetime
from pathlib import Path

import pytest

from autograder.classroom import arrivals, changes, inbound
from autograder.classroom.arrival_times import Times
from autograder.classroom.arrivals import Arrived
from autograder.classroom.classes import Class
from autograder.classroom.journal import read_changes
from autograder.classroom.journal_lock import Busy
from autograder.classroom.watching import Watcher
from autograder.common.course import CourseError
from autograder.common.spreadsheet import safe
from autograder.judge.lateness import read_late
from tests.small_course import NAME, RIGHT, run, scores
from tests.watched import Exchange

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="grading needs Linux")
LATE = """[late]
policy = "zero"
due = 2026-01-01T00:00:00+00:00
times = "../../arrivals.csv"
"""


@pytest.fixture
def exchange(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Exchange:
    """A course with an exchange; whole works are taken at once."""
    monkeypatch.setattr(arrivals, "SETTLED", 0.0)
    return Exchange(tmp_path)


def points(exchange: Exchange) -> dict[str, float]:
    """What everybody has, by the gradebook, before lateness."""
    return scores(Class(exchange.course, exchange.root))


def lost(exchange: Exchange) -> dict[str, float]:
    """What lateness takes off everybody."""
    told = read_changes(Class(exchange.course, exchange.root))
    last = {who: changes.read(lines[-1]) for (who, _), lines in told.items()}
    return {who: grade.points.lost for who, grade in last.items() if grade}


def test_who_is_late_by_the_list_of_arrivals_is_late_whatever_the_name(exchange: Exchange):
    exchange.rules(LATE)
    names = ["ada", "=eve", "-eve", "@eve", "a,=b"]
    for who in names:
        exchange.submit(who, RIGHT)
    with Watcher(exchange.course, [], jobs=1, every=1e-6) as watcher:
        assert watcher.look()
    assert lost(exchange) == dict.fromkeys(names, 6.0)


@pytest.mark.parametrize("name", ["@eve", "=1+1", "a,=b"])
def test_nobody_is_late_by_the_line_of_another_who_is_called_as_a_cell(tmp_path: Path, name: str):
    times = Times(tmp_path / "arrivals.csv")
    other = safe(name)
    for who, when in ((name, 1.7e9), (other, 1.8e9), (safe(other), 1.9e9)):
        times.note([Arrived(who, NAME, when, is_new=True, work=f"sha256:{'0' * 32}")])
    late = read_late(tmp_path / "rules.toml", NAME, {"times": "arrivals.csv"})
    assert [late.handed_in(who, None) for who in (name, other)] == [1.7e9, 1.8e9]


def test_a_file_that_is_written_to_in_place_arrived_when_it_was(
    exchange: Exchange, monkeypatch: pytest.MonkeyPatch
):
    config = exchange.root / "nbgrader_config.py"
    config.write_text(config.read_text() + "c.CourseDirectory.max_dir_size = 100\n")
    folder = exchange.submit("ada", {})
    folder.joinpath("inner").mkdir()
    large = folder / "inner" / "large"
    large.write_bytes(b" " * 200_000)  # too much to be collected, so it is tried again
    in_time = folder.stat().st_ctime
    monkeypatch.setattr(arrivals, "GIVEN_UP", 0.0)
    with Watcher(exchange.course, [], jobs=1, every=1e-6) as watcher:
        assert watcher.look() and points(exchange) == {}
        while time.time() < in_time + 2:
            time.sleep(0.1)
        large.write_bytes(b"")
        assert folder.stat().st_ctime == in_time
        assert watcher.look() and points(exchange) == {"ada": 0.0}
    (line,) = exchange.root.joinpath("arrivals.csv").read_text().splitlines()[1:]
    assert datetime.fromisoformat(line.split(",")[2]).timestamp() >= int(in_time) + 2


def test_who_takes_a_folder_away_while_it_is_looked_at_stops_nobody(
    exchange: Exchange, monkeypatch: pytest.MonkeyPatch
):
    """Its time is asked for at the end, and nothing is there any more."""
    look = arrivals._Whole.changed_last

    def look_too_late(collecting: arrivals._Whole, name: str) -> float:
        shutil.rmtree(Path(collecting.inbound_path, name), ignore_errors=True)
        return look(collecting, name)

    monkeypatch.setattr(arrivals._Whole, "changed_last", look_too_late)
    for who in ("ada", "bela"):
        exchange.submit(who, RIGHT)
    with Watcher(exchange.course, [], jobs=1, every=1e-6) as watcher:
        assert watcher.look()
    assert points(exchange) == {"ada": 6.0, "bela": 6.0}
    assert len(exchange.root.joinpath("arrivals.csv").read_text().splitlines()) == 3


def test_what_fails_while_others_are_graded_loses_no_work(
    exchange: Exchange, monkeypatch: pytest.MonkeyPatch
):
    exchange.submit("ada", RIGHT)
    with Watcher(exchange.course, [], jobs=1, every=1e-6) as watcher:
        note, grade = watcher._times.note, watcher._grade

        def full(arrived: list[Arrived]) -> set[str]:
            monkeypatch.setattr(watcher._times, "note", note)
            raise CourseError("The disk is full.")

        def grade_while_another_comes() -> None:
            monkeypatch.setattr(watcher, "_grade", grade)
            monkeypatch.setattr(watcher._times, "note", full)
            exchange.submit("bela", RIGHT)
            grade()

        monkeypatch.setattr(watcher, "_grade", grade_while_another_comes)
        assert watcher.look() and "disk is full" in exchange.news()["troubles"][0]
        assert watcher.look()
    assert points(exchange) == {"ada": 6.0, "bela": 6.0}
    assert len(exchange.root.joinpath("arrivals.csv").read_text().splitlines()) == 3


def put_back(exchange: Exchange) -> None:
    """The exchange as a backup has it: all the same, but for the times of the file system."""
    before = max(path.stat().st_ctime for path in exchange.inbound.iterdir())
    while time.time() < before + 2:
        time.sleep(0.1)
    copy = exchange.shared.with_name("copy")
    shutil.copytree(exchange.shared, copy)
    shutil.rmtree(exchange.shared)
    copy.rename(exchange.shared)


def watched(exchange: Exchange) -> str:
    """What the list of arrivals says after a watcher has looked."""
    with Watcher(exchange.course, [], jobs=1, every=1e-6) as watcher:
        assert watcher.look()
    return exchange.root.joinpath("arrivals.csv").read_text()


def test_an_exchange_that_is_put_back_from_a_backup_makes_nobody_late(exchange: Exchange):
    for who in ("ada", "bela"):
        exchange.submit(who, RIGHT)
    noted = watched(exchange)
    put_back(exchange)
    assert watched(exchange) == noted
    shutil.rmtree(exchange.root / "submitted")  # and where that is gone as well
    assert watched(exchange) == noted


def test_what_a_student_puts_in_its_place_is_another_work(exchange: Exchange):
    folder = exchange.submit("ada", RIGHT)
    noted = watched(exchange)
    put_back(exchange)
    exchange.finish(folder, "ada", "2026-02-02 12:00:00.000000 UTC")
    (folder / "numbers.ipynb").write_text((folder / "numbers.ipynb").read_text() + " ")
    shutil.rmtree(exchange.root / "submitted")
    again = watched(exchange)
    assert again.startswith(noted) and len(again.splitlines()) == 3
    exchange.submit("ada", RIGHT)  # the same answers in a folder of another time
    assert len(watched(exchange).splitlines()) == 4


def test_a_time_that_was_mended_by_hand_stays(exchange: Exchange):
    exchange.submit("ada", RIGHT)
    head, line = watched(exchange).splitlines()
    student, name, _, work = line.split(",")
    mended = f"{head}\n{student},{name},2026-01-01T00:00:00+00:00,{work}\n"
    exchange.root.joinpath("arrivals.csv").write_text(mended)
    assert watched(exchange) == mended


def test_a_list_made_by_an_earlier_grader_learns_which_works_they_are(exchange: Exchange):
    exchange.submit("ada", RIGHT)
    lines = watched(exchange).splitlines()
    old = "".join(f"{line.rpartition(',')[0]}\n" for line in lines)
    exchange.root.joinpath("arrivals.csv").write_text(old)
    assert watched(exchange).splitlines() == [lines[0], *old.splitlines()[1:], lines[1]]
    noted = watched(exchange)
    put_back(exchange)
    assert watched(exchange) == noted


OLD_HEAD = "student,assignment,submitted\n"
HEAD, LINE = "student,assignment,submitted,work\n", "bela,ps1,2026-01-01T00:00:00+00:00"


@pytest.mark.parametrize(
    "was, kept",
    [
        ("", ""),
        ("\n", ""),
        ("student,assi", ""),
        (HEAD + LINE, LINE + "\n"),
        (HEAD + LINE + "\nada,p", LINE + "\n"),
        (HEAD + LINE + '\n"a,=b', LINE + "\n"),
        (LINE + "\n", LINE + "\n"),
        (OLD_HEAD + LINE + "\n", LINE + "\n"),
        (HEAD + LINE + ",sha256:ab\n" + LINE + ",sha256:ab", LINE + ",sha256:ab\n"),
        (HEAD + "bela\n" + LINE + "\n", "bela\n" + LINE + "\n"),
        ("\ufeff" + HEAD.strip() + "\r\n" + LINE + "\r\n", LINE + "\r\n"),
    ],
)
def test_a_list_of_arrivals_that_was_torn_or_edited_loses_nobody(
    tmp_path: Path, was: str, kept: str
):
    path = tmp_path / "arrivals.csv"
    path.write_bytes(was.encode())
    ada = Arrived("ada", NAME, 1.8e9, is_new=True)
    assert Times(path).note([ada]) == {NAME}
    text = path.read_bytes().decode("utf-8-sig").replace("\r", "")
    assert text == HEAD + kept.replace("\r", "") + "ada,ps1,2027-01-15T08:00:00+00:00\n"
    assert "ada" in read_late(path, NAME, {"times": path.name}).times
    assert Times(path).note([ada]) == set()


@pytest.mark.parametrize("edited", [None, "", HEAD + LINE, LINE + "\n", HEAD + LINE + "\n", "torn"])
def test_a_list_that_is_edited_or_moved_away_meanwhile_loses_nobody(
    tmp_path: Path, edited: str | None
):
    path = tmp_path / "arrivals.csv"
    path.write_text(HEAD + LINE + "\n")
    times = Times(path)
    ada, chidi = (Arrived(who, NAME, 1.8e9, is_new=True) for who in ("ada", "chidi"))
    assert times.note([ada]) == {NAME}
    if edited is None:
        path.unlink()
    else:
        path.write_text(path.read_text()[:-1] if edited == "torn" else edited)
    assert times.note([chidi]) == {NAME}
    who = {"bela"} if edited and edited != "torn" else {"ada", "bela"}
    assert read_late(path, NAME, {"times": path.name}).times.keys() == who | {"chidi"}
    assert path.read_text().startswith(HEAD)


def test_a_list_that_is_broken_meanwhile_is_said_until_it_is_mended(tmp_path: Path):
    path = tmp_path / "arrivals.csv"
    times, ada = Times(path), Arrived("ada", NAME, 1.8e9, is_new=True)
    path.write_text(HEAD + '"' + LINE + "\n")
    for _ in range(2):
        with pytest.raises(CourseError, match=r"arrivals\.csv"):
            times.note([ada])
    path.write_text(HEAD + LINE + "\n")
    assert times.note([ada]) == {NAME}
    assert read_late(path, NAME, {"times": path.name}).times.keys() == {"ada", "bela"}


@pytest.mark.parametrize(
    "what", ["latin-1", "semicolons", "another order", "an open quote", "a folder", "a pipe"]
)
def test_what_is_no_list_of_arrivals_is_a_sentence(tmp_path: Path, what: str):
    path = tmp_path / "arrivals.csv"
    if what == "latin-1":
        path.write_bytes(HEAD.encode() + "José,ps1,2026-01-01\n".encode("latin-1"))
    elif what == "semicolons":
        path.write_text(HEAD.replace(",", ";"))
    elif what == "an open quote":
        path.write_text(HEAD + '"' + LINE + "\n")
    elif what == "another order":
        path.write_text("submitted,student,assignment\n")
    elif what == "a folder":
        path.mkdir()
    else:
        os.mkfifo(path)
    with pytest.raises(CourseError, match=r"arrivals\.csv"):
        Times(path)


SETTINGS = (
    'ExchangeCollect.update = "banana"',
    "ExchangeCollect.before_duedate = 7",
    "Exchange.timezone = 3",
    "Exchange.root = 5",
    'CourseDirectory.max_file_size = "x"',
    "CourseDirectory.student_id_exclude = 5",
    'CourseDirectory.db_url = "foo://bar"',
    'CourseDirectory.submitted_directory = "source"',
    'CourseDirectory.feedback_directory = "submitted"',
)


def test_a_setting_that_becomes_wrong_is_a_sentence_and_nothing_is_lost(
    exchange: Exchange, capsys: pytest.CaptureFixture[str]
):
    config = exchange.root / "nbgrader_config.py"
    before = config.read_text()
    with Watcher(exchange.course, [], jobs=1, every=1e-6) as watcher:
        assert watcher.look()
        exchange.submit("ada", RIGHT)
        for setting in SETTINGS:
            config.write_text(f"{before}c.{setting}\n")
            assert not watcher.look()
            name = setting.partition(".")[2].partition(" ")[0]
            assert name in capsys.readouterr().err
        config.write_text(before)
        assert watcher.look()
    assert points(exchange) == {"ada": 6.0}
    assert {path.name for path in (exchange.root / "source").iterdir()} == {NAME}


@pytest.mark.parametrize("news", ["[]", '{"slowest": "x"}', '{"grading": 5}', "\xff", "a pipe"])
def test_news_that_cannot_be_read_are_a_sentence(
    exchange: Exchange, news: str, capsys: pytest.CaptureFixture[str]
):
    path = exchange.root / "watch.json"
    os.mkfifo(path) if news == "a pipe" else path.write_bytes(news.encode("latin-1"))
    assert run(exchange.root, "watch", "--status") == 2
    assert "watch.json cannot be read" in capsys.readouterr().err


def test_who_asks_what_a_watcher_does_makes_nothing_and_keeps_nobody_out(exchange: Exchange):
    assert run(exchange.root, "watch", "--status") == 0
    assert not [*exchange.root.glob("watch*")]
    with Watcher(exchange.course, [], jobs=1):
        assert run(exchange.root, "watch", "--status") == 0
        with pytest.raises(Busy):
            Watcher(exchange.course, [])


def test_a_name_that_says_no_time_is_read_once(monkeypatch: pytest.MonkeyPatch):
    read: list[str] = []

    def parse(text: str) -> None:
        read.append(text)
        raise ValueError(text)

    monkeypatch.setattr(inbound, "parse_utc", parse)
    for _ in range(3):  # each new work has all names looked through
        assert inbound.read_name("ada+ps1+no time at all, once", NAME) == ("ada", None)
    assert len(read) == len({*read})


def test_names_that_say_nothing_cost_no_look_after_the_first(
    exchange: Exchange, monkeypatch: pytest.MonkeyPatch
):
    for number in range(20):
        (exchange.inbound / f"a+{NAME}+soon {number}").mkdir()
    read: list[str] = []
    parse = inbound.parse_utc
    with Watcher(exchange.course, [], jobs=1, every=1e-6) as watcher:
        exchange.submit("ada", RIGHT)
        assert watcher.look()
        inbound.read_name.cache_clear()  # as where there are more names than it holds
        monkeypatch.setattr(inbound, "parse_utc", lambda text: read.append(text) or parse(text))
        exchange.submit("bela", RIGHT)
        assert watcher.look()
    assert exchange.news()["graded"] == 2
    assert not [text for text in read if "soon" in text]
    told = [words for words in exchange.news()["troubles"] if "not collected" in words]
    assert len(told) == 11 and sum("10 more were not collected" in words for words in told) == 1

"""`nbgrader collect` of an exchange into which students have put what they like."""

import contextlib
import errno
import logging
import os
import pwd
import shutil
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from nbgrader.coursedir import CourseDirectory
from nbgrader.exchange import ExchangeError

from autograder import __main__ as command_line
from autograder.authoring.building import read
from autograder.classroom import inbound as inbound_module
from autograder.classroom.inbound import SafeCollect
from autograder.common.course import Course
from autograder.judge.intake import read_submission
from tests.small_course import NAME, RIGHT, hand_in, make_course, nbgrader, release

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="nbgrader's exchange and grading")
only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
COLLECT = 'c.ExchangeFactory.collect = "autograder.classroom.inbound.SafeCollect"\n'
WHEN, LATER = "2024-11-23 10:00:00.000000 UTC", "2024-11-24 10:00:00.000000 UTC"
FILE = "numbers.ipynb"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A course with an exchange, its assignment released."""
    root = tmp_path / "course"
    root.mkdir()
    make_course(root, hooks=True)
    shared = tmp_path / "exchange"
    (shared / "small" / "inbound").mkdir(parents=True)
    shared.chmod(0o777)
    with (root / "nbgrader_config.py").open("a") as file:
        file.write(f'{COLLECT}c.Exchange.root = "{shared}"\n')
        file.write("c.CourseDirectory.max_dir_size = 1000\n")
    release(root)
    return root


def inbound(root: Path, name: str = "") -> Path:
    """The folder to which students write, or one in it."""
    return root.parent / "exchange" / "small" / "inbound" / name


def submit(root: Path, student: str, when: str = WHEN) -> Path:
    """A right submission in the exchange, as `nbgrader submit` has it there."""
    folder = inbound(root, f"{student}+{NAME}+{when}+x1")
    written = hand_in(root, student, RIGHT).parent
    shutil.copytree(written, folder)
    shutil.rmtree(written.parent)
    (folder / "timestamp.txt").write_text(when)
    return folder


def reason(root: Path, student: str) -> str:
    """Why a student's work is 0 as a whole."""
    folder = root / "submitted" / student / NAME
    return read_submission(folder, student, read(Course(root), NAME)).reason


def source(root: Path) -> Path:
    """The instructor's notebook, which no student may read."""
    return root / "source" / NAME / FILE


def test_a_link_in_the_exchange_hands_in_nothing_that_lies_behind_it(
    root: Path, monkeypatch: pytest.MonkeyPatch
):
    submit(root, "good")
    folder = submit(root, "mallory")
    (folder / FILE).unlink()
    (folder / FILE).symlink_to(source(root))
    (folder / "more").mkdir()
    (folder / "more" / FILE).symlink_to(source(root))
    (folder / "all").symlink_to(root / "source")
    inbound(root, f"whole+{NAME}+{WHEN}+x1").symlink_to(source(root).parent)
    said = nbgrader(root, "collect", NAME)
    assert said.count("is a link; it stays one") == 3
    assert f"whole+{NAME}+{WHEN}+x1 was not collected: it is a link" in said
    submitted = root / "submitted"
    assert not (submitted / "whole").exists()
    held = [path for path in submitted.rglob("*") if path.is_file() and not path.is_symlink()]
    assert not any(b"BEGIN SOLUTION" in path.read_bytes() for path in held)
    monkeypatch.chdir(root)
    assert command_line.main(["grade", "--no-report"]) == 0
    assert "numbers.ipynb is a link, not a file" in reason(root, "mallory")
    pages = {path.parents[1].name: path for path in (root / "feedback").rglob("*.html")}
    assert "is a link" not in pages["good"].read_text()
    assert "is a link" in pages["mallory"].read_text()


def test_whatever_one_puts_there_the_others_work_is_collected(root: Path):
    for who in ("ada", "zoe"):
        submit(root, who)
    os.mkfifo(submit(root, "bela") / "pipe")
    (submit(root, "chidi") / "large").write_bytes(bytes(2_000_000))
    for name in (
        f"dana+{NAME}+soon+x",
        f"eli+{NAME}+1 2 ..+x",
        f"..+{NAME}+{WHEN}+x",
        f"+{NAME}+{WHEN}+x",
    ):
        inbound(root, name).mkdir()
    inbound(root, f"file+{NAME}+{WHEN}+x1").write_text("no folder")
    inbound(root, f"ada+{NAME}+{LATER}+x1").symlink_to("/nowhere/at/all")
    submit(root, "table.csv")
    (root / "submitted").mkdir(exist_ok=True)
    (root / "submitted" / "table.csv").write_text("the instructor's")
    with contextlib.chdir(submit(root, "fay")):
        for _ in range(20):  # a longer path than the system knows
            Path("d" * 250).mkdir()
            os.chdir("d" * 250)
    deep = submit(root, "eve").joinpath(*["d"] * 200)
    deep.mkdir(parents=True)
    said = nbgrader(root, "collect", NAME)
    collected = {path.parents[1].name for path in (root / "submitted").rglob(FILE)}
    assert collected == {"ada", "bela", "eve", "fay", "zoe"} and not (root / NAME).exists()
    assert {path.name for path in (root / "submitted").iterdir()} == {*collected, "table.csv"}
    assert said.count("STUDENT+ASSIGNMENT+TIME") == 3
    assert "pipe was not collected: it is no file" in said
    assert "file+ps1" in said and "it is no folder" in said
    assert f"ada+{NAME}+{LATER}+x1 was not collected: it is a link" in said
    assert "table.csv cannot be made: a file lies where a folder belongs" in said
    assert "its path is too long" in said and "it lies too deep" in said
    assert "is larger than 1000000 bytes" in said


def test_no_time_in_a_submission_stops_an_update(root: Path):
    (submit(root, "ada") / "timestamp.txt").write_text("soon")
    os.mkfifo(inbound(root, "wait"))
    linked = submit(root, "bela") / "timestamp.txt"
    linked.unlink()
    linked.symlink_to(inbound(root, "wait"))
    inbound(root, f"chidi+{NAME}+{WHEN}+x1").symlink_to(source(root).parent)
    assert "timestamp.txt was not collected: it is a link" in nbgrader(root, "collect", NAME)
    for who in ("ada", "bela", "chidi"):
        (submit(root, who, LATER) / "more.txt").write_text("later")
    nbgrader(root, "collect", NAME, "--update")
    later = {path.parents[1].name for path in (root / "submitted").rglob("more.txt")}
    assert later == {"ada", "bela", "chidi"} and source(root).is_file()
    assert "No newer submission" in nbgrader(root, "collect", NAME, "--update")


def test_a_clock_that_is_ahead_keeps_no_later_work_away(root: Path):
    ahead = "9998-12-31 23:59:59.000000 UTC"
    for who in ("ada", "bela"):
        submit(root, who, ahead)
    nbgrader(root, "collect", NAME)
    now = f"{datetime.now(UTC).replace(tzinfo=None)} UTC"
    (submit(root, "ada", now) / "more.txt").touch()
    assert "No newer submission: bela" in nbgrader(root, "collect", NAME, "--update")
    assert [path.parents[1].name for path in (root / "submitted").rglob("more.txt")] == ["ada"]
    assert "No newer submission: ada" in nbgrader(root, "collect", NAME, "--update")


def given_away(folder: Path, uid: int) -> None:
    """Make a folder in the exchange another user's."""
    for path in (folder, *folder.iterdir()):
        os.chown(path, uid, uid)


@only_root
def test_nobody_hands_in_for_another(root: Path):
    account, other = [one for one in pwd.getpwall() if one.pw_uid][:2]
    taken = {}
    for who in (account.pw_name, "no-account"):
        given_away(submit(root, who), account.pw_uid)
        (forged := submit(root, who, LATER)).joinpath("forged.txt").touch()
        given_away(forged, other.pw_uid)
        taken[who] = root / "submitted" / who / NAME
    said = nbgrader(root, "collect", NAME)
    assert all((folder / FILE).is_file() for folder in taken.values())
    assert not [*(root / "submitted").rglob("forged.txt")]
    assert f"it is {other.pw_name}'s, not {account.pw_name}'s" in said
    assert f"it is {other.pw_name}'s, and the first of that name is {account.pw_name}'s" in said
    assert "first owner is taken for the student: no-account" in said
    nbgrader(root, "collect", NAME, "--update", "--ExchangeCollect.check_owner=False")
    assert len([*(root / "submitted").rglob("forged.txt")]) == 2


@only_root
def test_no_student_of_the_roster_hands_in_under_a_name_that_is_nobodys(root: Path):
    student, other = [one.pw_name for one in pwd.getpwall() if one.pw_uid][:2]
    (root / "roster.csv").write_text(f"student\n{student}\nno-account\n")
    owners = {student: student, "no-account": student, "made-up": student, "unlisted": other}
    for who, owner in owners.items():
        given_away(submit(root, who), pwd.getpwnam(owner).pw_uid)
    said = nbgrader(root, "collect", NAME)
    why = f"roster.csv lists {student}, whose it is, and no such student"
    assert f"made-up+{NAME}+{WHEN}+x1 was not collected: {why}" in said
    collected = {path.parents[1].name for path in (root / "submitted").rglob(FILE)}
    assert collected == owners.keys() - {"made-up"}


def test_of_names_without_end_that_say_nothing_a_few_are_told(root: Path):
    submit(root, "ada")
    for number in range(30):
        inbound(root, f"x+{NAME}+soon {number}").mkdir()
    said = nbgrader(root, "collect", NAME)
    assert said.count("was not collected: its name is not STUDENT+ASSIGNMENT+TIME") == 10
    assert "20 more were not collected: its name is not" in said
    assert (root / "submitted" / "ada" / NAME / FILE).is_file()


@only_root
def test_a_second_name_of_somebody_elses_file_hands_in_nothing(root: Path):
    folder = submit(root, "mallory")
    (folder / FILE).unlink()
    (folder / FILE).hardlink_to(source(root))
    (folder / "own.txt").write_text("own")
    (folder / "again.txt").hardlink_to(folder / "own.txt")
    for path in (folder, folder / "own.txt"):
        os.chown(path, 65534, 65534)
    said = nbgrader(root, "collect", NAME)
    assert f"{FILE} was not collected: it is a file of somebody else's" in said
    there = {path.name for path in (root / "submitted" / "mallory" / NAME).iterdir()}
    assert there == {"again.txt", "own.txt", "timestamp.txt"}


def test_a_file_that_is_swapped_for_a_link_while_it_is_copied_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    given, secret = tmp_path / "given", tmp_path / "secret"
    for folder, text in ((given / "more", "own"), (secret, "secret")):
        folder.mkdir(parents=True)
        (folder / FILE).write_text(text)
    (given / FILE).write_text("own")

    def swapped(_directory: str, names: list[str]) -> list[str]:
        if "more" in names:
            for path, to in ((given / FILE, secret / FILE), (given / "more", secret)):
                path.rename(tmp_path / f"was-{path.name}")
                path.symlink_to(to)
        return []

    monkeypatch.setattr(inbound_module, "ignore_patterns", lambda *_: swapped)
    SafeCollect(coursedir=CourseDirectory()).do_copy(str(given), str(tmp_path / "got"))
    got = [path for path in (tmp_path / "got").rglob("*") if not path.is_symlink()]
    assert all(path.read_text() == "own" for path in got if path.is_file())
    assert (tmp_path / "got" / FILE).is_symlink()


def collector(tmp_path: Path, when: str, **limits: float) -> SafeCollect:
    """What collects ada's submission of that time from tmp_path/inbound."""
    here = CourseDirectory(root=str(tmp_path), **limits)
    here.assignment_id = NAME
    made = SafeCollect(coursedir=here)
    made.update, made.inbound_path = True, str(tmp_path / "inbound")
    made.src_records = [made._path_to_record(str(tmp_path / "inbound" / f"ada+{NAME}+{when}+x"))]
    return made


def put(tmp_path: Path, when: str, **files: str) -> Path:
    """A submission of ada's in tmp_path/inbound."""
    folder = tmp_path / "inbound" / f"ada+{NAME}+{when}+x"
    folder.mkdir(parents=True)
    for name, text in (files | {"timestamp.txt": when}).items():
        (folder / name).write_text(text)
    return folder


def test_a_submission_is_collected_whole_or_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    there = tmp_path / "submitted" / "ada" / NAME
    put(tmp_path, WHEN, work="first")
    collector(tmp_path, WHEN).copy_files()
    put(tmp_path, LATER, more="x", work="second")
    real = inbound_module._copy_file

    def full(file: Any, status: os.stat_result, target: Path) -> None:
        if target.name == "work":
            raise OSError(errno.ENOSPC, "No space left on device", str(target))
        real(file, status, target)

    with monkeypatch.context() as patch:
        patch.setattr(inbound_module, "_copy_file", full)
        collector(tmp_path, LATER).copy_files()
    assert "The disk is full" in caplog.text
    assert {path.name: path.read_text() for path in there.iterdir()}["work"] == "first"
    assert [path.name for path in (tmp_path / "submitted").iterdir()] == ["ada"]
    collector(tmp_path, LATER).copy_files()
    assert (there / "work").read_text() == "second" and (there / "more").is_file()


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({"max_file_size": 1}, "work was not collected: it is larger than 1000 bytes"),
        ({"max_dir_size": 1}, "it is larger than 1000 bytes (CourseDirectory.max_dir_size)"),
    ],
)
def test_limits_hold_for_what_is_put_there_while_it_is_copied(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    limits: dict[str, int],
    said: str,
):
    folder = put(tmp_path, WHEN, work="small")

    def grown(_directory: str, _names: list[str]) -> list[str]:
        os.truncate(folder / "work", 50_000_000)
        return []

    monkeypatch.setattr(inbound_module, "ignore_patterns", lambda *_: grown)
    with caplog.at_level(logging.WARNING):
        collector(tmp_path, WHEN, **limits).copy_files()
    assert said in caplog.text
    assert not [*(tmp_path / "submitted").rglob("work")]
    assert (tmp_path / "submitted" / "ada" / NAME).exists() == ("max_file_size" in limits)


def test_a_folder_that_is_a_link_for_a_moment_is_what_it_was_when_it_was_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folder, aside, secret = put(tmp_path, WHEN), tmp_path / "aside", tmp_path / "secret"
    for path in (folder / "d" / "in", folder / "e", secret):
        path.mkdir(parents=True)

    def swapped(directory: str, _names: list[str]) -> list[str]:
        if Path(directory) == folder:
            (folder / "d").rename(aside)
            (folder / "d").symlink_to(secret)
        elif Path(directory).name == "e":
            (folder / "d").unlink()
            aside.rename(folder / "d")
        return []

    monkeypatch.setattr(inbound_module, "ignore_patterns", lambda *_: swapped)
    collector(tmp_path, WHEN).copy_files()
    there = tmp_path / "submitted" / "ada" / NAME
    assert (there / "d").is_symlink() and (there / "e").is_dir()
    assert not [*secret.iterdir()]


def test_a_folder_that_is_exchanged_after_its_owner_was_looked_at_is_not_collected(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    folder = put(tmp_path, WHEN, work="own")
    made = collector(tmp_path, WHEN)
    folder.rename(tmp_path / "aside")
    put(tmp_path, WHEN, work="another's")
    made.copy_files()
    assert "it was exchanged while it was collected" in caplog.text
    assert not (tmp_path / "submitted" / "ada" / NAME).exists()


def test_files_without_end_in_a_submission_are_not_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(inbound_module, "MOST", 20)
    folder = put(tmp_path, WHEN, work="x")
    for name in ("a", "b"):
        (folder / name).mkdir()
        for number in range(10):
            (folder / name / str(number)).touch()
    collector(tmp_path, WHEN).copy_files()
    assert "it holds more than 20 files" in caplog.text
    assert not list((tmp_path / "submitted").rglob("work"))
    shutil.rmtree(folder / "b")
    collector(tmp_path, WHEN).copy_files()
    assert len(list((tmp_path / "submitted" / "ada" / NAME / "a").iterdir())) == 10


def test_two_that_collect_at_once_mix_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    put(tmp_path, WHEN, one="ada's", two="ada's")
    other = tmp_path / "inbound" / f"bela+{NAME}+{WHEN}+x"
    other.mkdir()
    (other / "three").write_text("bela's")
    second = collector(tmp_path, WHEN)
    second.src_records = [second._path_to_record(str(other))]
    real = inbound_module._copy_file

    def meanwhile(file: Any, status: os.stat_result, target: Path) -> None:
        real(file, status, target)
        if target.name == "one":
            with pytest.raises(ExchangeError):
                second.copy_files()

    with monkeypatch.context() as patch:
        patch.setattr(inbound_module, "_copy_file", meanwhile)
        collector(tmp_path, WHEN).copy_files()
    assert "Another nbgrader collect is at work" in caplog.text
    second.copy_files()
    held = {
        path.parents[1].name: sorted(file.name for file in path.parent.iterdir())
        for path in (tmp_path / "submitted").glob("*/*/t*")
        if path.name != "timestamp.txt"
    }
    assert held == {"ada": ["one", "timestamp.txt", "two"], "bela": ["three"]}


@pytest.mark.parametrize("zone", ["+04", "-0330", "+05:45", "CET", "UTC"])
def test_whoever_hands_in_from_any_zone_is_collected_under_the_own_name(tmp_path: Path, zone: str):
    early, late = (f"2026-11-2{day} 10:00:00.000000 {zone}" for day in (3, 4))
    put(tmp_path, early, work="first")
    collector(tmp_path, early).copy_files()
    put(tmp_path, late, work="second")
    found = collector(tmp_path, late)
    (record,) = found.src_records
    assert record["username"] == "ada"
    shift = record["timestamp"] - datetime(2026, 11, 24, 10)
    hours = {"+04": -4, "-0330": 3.5, "+05:45": -5.75, "CET": -1, "UTC": 0}[zone]
    assert shift == timedelta(hours=hours)
    found.copy_files()
    assert (tmp_path / "submitted" / "ada" / NAME / "work").read_text() == "second"


def test_what_is_for_another_assignment_is_nobodys_here(tmp_path: Path):
    found = collector(tmp_path, WHEN)
    for name, student in (
        (f"ada+{NAME}+other+{WHEN}+x", ""),  # ada+numbers has handed in "other"
        (f"a+b+{NAME}+{WHEN}+x", "a+b"),
    ):
        (tmp_path / "inbound" / name).mkdir(parents=True)
        record = found._path_to_record(str(tmp_path / "inbound" / name))
        assert record["username"] == student


def test_what_cannot_be_removed_of_an_older_submission_keeps_no_newer_one_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    there = tmp_path / "submitted" / "ada" / NAME
    put(tmp_path, WHEN, stays="first", work="first")
    collector(tmp_path, WHEN).copy_files()
    put(tmp_path, LATER, work="second")
    real = os.unlink

    def refused(path: Any, **options: Any) -> None:
        if os.path.basename(path) == "stays":  # noqa: PTH119
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        real(path, **options)

    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", refused)
        collector(tmp_path, LATER).copy_files()
    assert {path.name for path in there.iterdir()} == {"timestamp.txt", "work"}
    assert (there / "work").read_text() == "second"

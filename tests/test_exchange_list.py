"""`nbgrader list --inbound` of an exchange into which students have put what they like."""

import fcntl
import os
import signal
import sys
from pathlib import Path

import pytest
from nbgrader.auth import Authenticator
from nbgrader.coursedir import CourseDirectory
from nbgrader.exchange.default import ExchangeList
from traitlets.config import Config

from autograder.classroom.listed import SafeList
from tests.small_course import NAME, nbgrader

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="nbgrader's exchange")
UNREAD = ("named", "no word", "bytes", "sparse", "linked", "dangling", "folder", "pipe", "huge")
WHEN = "2026-11-23 10:00:00.000000 UTC"


def test_whatever_one_hands_in_the_others_are_listed(tmp_path: Path):
    shared, inbound = tmp_path / "exchange", tmp_path / "exchange" / "small" / "inbound"
    inbound.mkdir(parents=True)
    shared.chmod(0o777)
    (tmp_path / "nbgrader_config.py").write_text(
        f'c = get_config()\nc.CourseDirectory.course_id = "small"\nc.Exchange.root = "{shared}"\n'
        'c.ExchangeFactory.list = "autograder.classroom.listed.SafeList"\n'
    )
    folders = {
        name: inbound / f"{name}+{NAME}+{WHEN}+x1"
        for name in ("ada", "zoe", *UNREAD, "\x1b[2J", "no secret")
    }
    for folder in folders.values():
        folder.mkdir()
        (folder / "numbers.ipynb").write_text("{}")
        (folder / "submission_secret.txt").write_text("a" * 32)
    (folders["named"] / "\udcff.ipynb").write_text("{}")
    (folders["no word"] / "submission_secret.txt").write_text("")
    (folders["bytes"] / "submission_secret.txt").write_bytes(b"\xff\xfe")
    os.truncate(folders["sparse"] / "submission_secret.txt", 1 << 40)
    (folders["linked"] / "submission_secret.txt").unlink()
    (folders["linked"] / "submission_secret.txt").symlink_to(folders["ada"] / "numbers.ipynb")
    (folders["no secret"] / "submission_secret.txt").unlink()
    for name in UNREAD[5:]:  # without a secret their notebooks are read
        (folders[name] / "submission_secret.txt").unlink()
    (folders["dangling"] / "x.ipynb").symlink_to("nowhere")
    (folders["folder"] / "x.ipynb").mkdir()
    os.mkfifo(folders["pipe"] / "x.ipynb")
    os.truncate(folders["huge"] / "numbers.ipynb", 1 << 40)
    (inbound / f"link+{NAME}+{WHEN}").symlink_to(tmp_path)
    (inbound / f"file+{NAME}+{WHEN}").write_text("")
    said = nbgrader(tmp_path, "list", "--inbound")
    for name in ("ada", "zoe", "\\x1b[2J", "no secret"):
        assert f"small {name} {NAME} {WHEN} (no feedback available)" in said, name
    for name in (*UNREAD, "link", "file"):
        assert f"{name}+{NAME}+{WHEN}" in said.partition("Submitted assignments")[0], name
        assert f"small {name} " not in said
    assert "\x1b" not in said
    nbgrader(tmp_path, "list", "--inbound", "--remove")
    left = {path.name.partition("+")[0] for path in inbound.iterdir()}
    assert left == {*UNREAD, "link", "file"}


def test_what_nbgrader_fails_with_in_any_way_is_left_out_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    shared, inbound = tmp_path / "exchange", tmp_path / "exchange" / "small" / "inbound"
    for who in ("ada", "bela"):
        (inbound / f"{who}+{NAME}+{WHEN}").mkdir(parents=True)
        (inbound / f"{who}+{NAME}+{WHEN}" / "numbers.ipynb").write_text("{}")
    config = Config({"CourseDirectory": {"course_id": "small"}, "Exchange": {"root": str(shared)}})
    course = CourseDirectory(config=config)
    listing = SafeList(coursedir=course, authenticator=Authenticator(), config=config, inbound=True)
    parse = ExchangeList.parse_assignment

    def fails(self: ExchangeList, path: str) -> dict:
        assert "+ps1+" in path and "bela" not in path
        return parse(self, path)

    monkeypatch.setattr(ExchangeList, "parse_assignment", fails)
    assert [one["student_id"] for one in listing.start()] == ["ada"]


def test_nobody_waits_for_a_lease_that_a_student_holds(tmp_path: Path):
    folder = tmp_path / f"ada+{NAME}+{WHEN}"
    folder.mkdir()
    (folder / "numbers.ipynb").write_text("{}")
    config = Config({"CourseDirectory": {"course_id": "small"}})
    course = CourseDirectory(config=config)
    listing = SafeList(coursedir=course, authenticator=Authenticator(), config=config, inbound=True)
    listing.assignments = [str(folder)]
    with (folder / "numbers.ipynb").open("r+") as file:
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        began = signal.signal(signal.SIGIO, signal.SIG_IGN)
        try:
            assert "lease" in listing._why_not_alone(str(folder))
        finally:
            signal.signal(signal.SIGIO, began)

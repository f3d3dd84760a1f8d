"""nbgrader's settings are read where nbgrader reads them, and in its order."""

import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest
from nbgrader.api import Gradebook
from nbgrader.apps.dbapp import DbAssignmentListApp
from sqlalchemy import make_url

from autograder import __main__ as command_line
from autograder.classroom.classes import Class, assignments
from autograder.classroom.gradebook import shown_database
from autograder.classroom.warm import Warm
from autograder.common.course import Course, CourseError, _jupyters_files
from autograder.judge.assignment import read_assignment
from tests.small_course import NAME, RIGHT, hand_in, make_course, nbgrader, release

linux = pytest.mark.skipif(sys.platform != "linux", reason="grading needs Linux")
LATE = 'c.LateSubmissionPlugin.penalty_method = "zero"\n'
SETTING = 'c.CourseDirectory.db_url = "{}"\n'


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home folder, and nothing of this machine's own settings."""
    home = tmp_path / "home"
    (home / ".jupyter").mkdir(parents=True)
    (home / "hub").mkdir()
    _jupyters_files.cache_clear()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("JUPYTER_CONFIG_DIR", raising=False)
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", str(home / "hub"))
    yield home
    _jupyters_files.cache_clear()


def nbgraders(folder: Path, *arguments: str) -> str:
    """The db_url by which nbgrader goes."""
    with chdir(folder):
        app = DbAssignmentListApp()
        app.initialize(list(arguments))
    here: Any = app.coursedir
    return here.db_url


def test_the_gradebook_is_nbgraders_wherever_it_is_named(home: Path, tmp_path: Path):
    root = tmp_path / "course"
    taught = Class(make_course(root), root)
    own = f"sqlite:///{root}/gradebook.db"
    assert taught.database.startswith(own) and nbgraders(root) == own
    places = [
        home / ".jupyter" / "jupyter_config.py",
        home / ".jupyter" / "nbgrader_config.py",
        home / "hub" / "nbgrader_config.py",
        home / "hub" / "nbgrader_config.json",
        root / "nbgrader_config.py",
    ]
    for number, path in enumerate(places):
        url = f"sqlite:///{tmp_path}/{number}.db"
        if path.suffix == ".json":
            path.write_text(json.dumps({"CourseDirectory": {"db_url": url}}))
        else:
            with path.open("a") as file:
                file.write(SETTING.format(url))
        _jupyters_files.cache_clear()  # a process looks there once
        assert taught.database == url == nbgraders(root), path


def test_another_folder_of_the_course_goes_by_the_same_settings(home: Path, tmp_path: Path):
    root = tmp_path / "course"
    course, folder = make_course(root), tmp_path / "autumn"
    folder.mkdir()
    own = f"sqlite:///{folder}/gradebook.db"
    taught = Class(course, folder)
    assert taught.database.startswith(own) and nbgraders(root, f"--course-dir={folder}") == own
    for number, path in enumerate((root, folder)):
        url = f"sqlite:///{tmp_path}/{number}.db"
        with (path / "nbgrader_config.py").open("a") as file:
            file.write("c = get_config()\n" + SETTING.format(url))
        assert taught.database == url == nbgraders(root, f"--course-dir={folder}")


def test_a_made_up_class_never_gets_into_the_configured_gradebook(home: Path, tmp_path: Path):
    course = make_course(tmp_path)
    with (tmp_path / "nbgrader_config.py").open("a") as file:
        file.write(SETTING.format("sqlite:///shared.db"))
    folder = tmp_path / "build" / "demo"
    assert Class(course, folder).database.startswith(f"sqlite:///{folder}/gradebook.db")
    assert Class(course, tmp_path).database == f"sqlite:///{tmp_path}/shared.db"


@pytest.mark.parametrize("name", ["course", "What is NLP?", "50%41 off"])
def test_a_relative_path_begins_in_the_courses_root_wherever_a_command_runs(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
):
    root = tmp_path / name
    taught = Class(make_course(root), root)
    with (root / "nbgrader_config.py").open("a") as file:
        file.write(SETTING.format("sqlite:///shared.db?timeout=9"))
    for folder in (root / "source", root):
        monkeypatch.chdir(folder)
        assert make_url(taught.database).database == str(root / "shared.db")
        assert make_url(taught.database).query == {"timeout": "9"}
    with Gradebook(nbgraders(root)) as book:
        book.add_student("ada")
    with Gradebook(taught.database) as book:
        assert [one.id for one in book.students] == ["ada"]


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "postgresql://a:b@host/name"])
def test_an_address_that_names_no_path_stays_as_it_is(home: Path, tmp_path: Path, url: str):
    taught = Class(make_course(tmp_path), tmp_path)
    with (tmp_path / "nbgrader_config.py").open("a") as file:
        file.write(SETTING.format(url))
    assert taught.database == url


REFUSED = {
    "What is NLP? 2026": ("", "in an address, a ? and a % with two digits mean something else"),
    "50%41 off": ("", "mean something else; rename the folder"),
    "course": (
        'c.CourseDirectory.directory_structure = "{nbgrader_step}/{assignment_id}/{student_id}"\n',
        "take the setting out and lay the folders so",
    ),
}


@linux
@pytest.mark.parametrize("name", REFUSED)
def test_a_course_in_which_nbgrader_looks_elsewhere_is_refused_before_anything_is_done(
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
):
    root, (setting, words) = tmp_path / "here" / name, REFUSED[name]
    make_course(tmp_path / "plain")
    release(tmp_path / "plain")
    make_course(root, hooks=True)
    shutil.copytree(tmp_path / "plain" / "release", root / "release")
    work = hand_in(root, "ada", RIGHT)
    with (root / "nbgrader_config.py").open("a") as file:
        file.write(setting)
    if setting:
        work.parent.rename(root / "submitted" / "swapped")
        (root / "submitted" / NAME).mkdir()
        (root / "submitted" / "swapped").rename(root / "submitted" / NAME / "ada")

    def lying_there() -> list[Path]:
        return [path for path in sorted(root.parent.rglob("*")) if path.suffix != ".log"]

    before = lying_there()
    monkeypatch.chdir(root)
    for command in ("grade", "report", "history ada", "export canvas"):
        assert command_line.main(command.split()) == 2
        said = capsys.readouterr().err.splitlines()
        assert len(said) == 1 and words in said[0]
    said = nbgrader(root, "autograde", NAME, succeeds=False)
    assert words in said and "Traceback" not in said
    assert lying_there() == before


def test_an_ordinary_percent_sign_is_none_that_means_something(home: Path, tmp_path: Path):
    root = tmp_path / "100% of it #1"
    taught = Class(make_course(root), root)
    taught.require_usable()
    assert make_url(taught.database).database == str(root / "gradebook.db")


@linux
def test_whom_the_settings_leave_out_is_not_graded_by_either_entrance(
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    make_course(tmp_path, hooks=True)
    release(tmp_path)
    with (tmp_path / "nbgrader_config.py").open("a") as file:
        file.write('c.CourseDirectory.student_id_exclude = "test_student,bela"\n')
        file.write(
            'c.GenerateFeedback.exporter_class = "autograder.classroom.nbgrader_page.StudentPage"\n'
        )
    for student in ("ada", "bela", "test_student", "*", "Kim [exchange]"):
        hand_in(tmp_path, student, RIGHT)
    monkeypatch.chdir(tmp_path)
    nbgrader(tmp_path, "autograde", NAME, "--student", "Kim [exchange]")
    assert {path.name for path in (tmp_path / "autograded").iterdir()} == {"Kim [exchange]"}
    nbgrader(tmp_path, "generate_feedback", NAME, "--student", "Kim [exchange]")
    nbgrader(tmp_path, "autograde", NAME)
    assert command_line.main(["grade", "--again", "--no-report"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("3 graded\n")
    assert "not graded: bela, test_student, as c.CourseDirectory.student_id_exclude says" in said
    graded = {path.name for path in (tmp_path / "autograded").iterdir()}
    assert graded == {"*", "ada", "Kim [exchange]"}


def test_an_outdated_name_counts_as_it_does_for_nbgrader(home: Path, tmp_path: Path):
    taught = Class(make_course(tmp_path), tmp_path)
    with (tmp_path / "nbgrader_config.py").open("a") as file:
        file.write('c.NbGrader.db_url = "sqlite:////tmp/x.db"\n')
    assert taught.database == "sqlite:////tmp/x.db" == nbgraders(tmp_path)


def test_a_course_that_jupyters_settings_name_is_found_from_anywhere(home: Path, tmp_path: Path):
    course = make_course(tmp_path / "course")
    away = tmp_path / "away"
    away.mkdir()
    with pytest.raises(CourseError, match="No course found"):
        Course.find(away)
    path = home / ".jupyter" / "nbgrader_config.py"
    path.write_text(f"c = get_config()\nc.CourseDirectory.root = {str(course.root)!r}\n")
    _jupyters_files.cache_clear()
    assert Course.find(away) == course


INBOUND = "exchange/small/inbound"
HANDED_IN = {  # where what was handed in may lie
    "submitted/ann/ps1": "",
    "downloaded/ps1/extracted/ann": "",
    "2026/submitted/ann": "",
    "work/abgaben/ann/ps1": 'c.CourseDirectory.submitted_directory = "work/abgaben"\n',
    "2026/abgaben/ann/ps1": 'c.CourseDirectory.submitted_directory = "abgaben"\n',
    "lms/ps1/extracted/ann": 'c.ZipCollectApp.downloaded_directory = "lms"\n',
    f"{INBOUND}/ann+ps1+2026-01-01 10:00:00 UTC+abc": "",
    f"{INBOUND}/ann": "",
    "entries/ann": "",
    "entries/ann/deeper": "",
}


@pytest.mark.parametrize("where", HANDED_IN)
def test_settings_that_were_handed_in_are_not_run(home: Path, tmp_path: Path, where: str):
    course = make_course(tmp_path / "course")
    with (course.root / "nbgrader_config.py").open("a") as file:
        file.write(HANDED_IN[where])
    handed_in = course.root / where
    handed_in.mkdir(parents=True)
    if where.startswith("entries"):
        (course.root / "entries" / "contest.json").touch()
    elif where.startswith(INBOUND):
        (course.root / INBOUND).with_name("outbound").mkdir()
    (handed_in / "nbgrader_config.py").write_text("raise SystemExit('a student has come in')")
    assert Course.find(handed_in) == Course.find(handed_in.parent) == course
    assert Class(course, handed_in).course_id == "small"
    inner = make_course(course.root / "2026" / "autumn")  # another one of the instructor's
    assert Course.find(inner.root) == inner


def test_settings_of_a_student_in_no_course_are_none(home: Path, tmp_path: Path):
    handed_in = tmp_path / "inbound" / "ann+ps1+2026-01-01 10:00:00 UTC"
    handed_in.mkdir(parents=True)
    (handed_in / "nbgrader_config.py").write_text("raise SystemExit('a student has come in')")
    with pytest.raises(CourseError, match="may be a student's and is not read"):
        Course.find(handed_in)


@pytest.mark.skipif(sys.platform == "win32" or os.getuid() != 0, reason="gives files away")
def test_settings_that_another_has_put_where_all_may_write_are_none(home: Path, tmp_path: Path):
    course = make_course(tmp_path / "all")
    course.root.chmod(0o1777)
    assert Course.find(course.root) == course
    os.chown(course.root / "nbgrader_config.py", 12345, 12345)
    with pytest.raises(CourseError, match="may be a student's"):
        Course.find(course.root)


SECRETS = {
    "postgresql://me:secret@host/name": "postgresql://me:***@host/name",
    "mysql://me:secret?x@host/name": "mysql://me:***@host/name",
    "postgresql://host/name?user=me&password=secret": "postgresql://host/name",
    "sqlite:////tmp/grades.db?timeout=9": "/tmp/grades.db",
}


@pytest.mark.parametrize("url", SECRETS)
def test_where_the_gradebook_is_is_said_without_a_password(home: Path, tmp_path: Path, url: str):
    taught = Class(make_course(tmp_path), tmp_path)
    with (tmp_path / "nbgrader_config.py").open("a") as file:
        file.write(SETTING.format(url))
    assert shown_database(taught) == SECRETS[url]


def test_a_course_may_have_its_settings_in_json(home: Path, tmp_path: Path):
    root = tmp_path / "course"
    course = make_course(root)
    (root / "nbgrader_config.py").unlink()
    url = f"sqlite:///{tmp_path}/shared.db"
    settings = {"CourseDirectory": {"db_url": url}, "Autograder": {"reference_stands_in": True}}
    (root / "nbgrader_config.json").write_text(json.dumps(settings))
    assert read_assignment(root / "source" / NAME).stand_in
    assert Course.find(root / "source" / NAME) == course
    assert Class(course, root).database == url == nbgraders(root)


def test_a_file_that_cannot_be_read_is_named(home: Path, tmp_path: Path):
    taught = Class(make_course(tmp_path), tmp_path)
    path = home / ".jupyter" / "nbgrader_config.py"
    path.write_text("c = get_config()\nc.CourseDirectory.db_url = nowhere\n")
    _jupyters_files.cache_clear()
    with pytest.raises(CourseError, match=r"jupyter/nbgrader_config\.py cannot be read \(line 2:"):
        assert taught.database


@pytest.mark.parametrize("section", ["3", "null", '["root"]', '"root"'])
def test_a_section_that_is_none_is_named(tmp_path: Path, section: str):
    taught = Class(make_course(tmp_path), tmp_path)
    (tmp_path / "nbgrader_config.json").write_text(f'{{"CourseDirectory": {section}}}')
    with pytest.raises(CourseError, match="CourseDirectory is no section of settings"):
        assert taught.database


@linux
def test_both_entrances_grade_into_the_gradebook_that_is_configured_and_say_what_has_no_effect(
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    root = tmp_path / "course"
    make_course(root, hooks=True)
    url = f"sqlite:///{tmp_path}/shared.db"
    (home / ".jupyter" / "nbgrader_config.py").write_text(
        f"c = get_config()\n{SETTING.format(url)}{LATE}"
    )
    nbgrader(root, "generate_assignment", NAME)
    for student in ("ada", "bela"):
        hand_in(root, student, RIGHT)
    monkeypatch.chdir(root)
    assert command_line.main(["grade", "--student", "ada"]) == 0
    said = nbgrader(root, "autograde", NAME, "--student", "bela")
    words = "c.LateSubmissionPlugin in nbgrader's settings has no effect: what lateness costs"
    assert words in capsys.readouterr().err and said.count(words) == 1
    with Gradebook(url) as book:
        assert {one.id: one.score for one in book.students} == {"ada": 6, "bela": 6}
    assert not (root / "gradebook.db").exists()


def test_what_jupyter_keeps_beside_the_assignments_is_none(tmp_path: Path):
    course = make_course(tmp_path)
    kept = tmp_path / "source" / ".ipynb_checkpoints" / "try-checkpoint.ipynb"
    kept.parent.mkdir()
    kept.write_text("{}")
    assert assignments(course) == [NAME]


def test_a_report_in_a_wrong_folder_leaves_nothing_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    make_course(tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    assert command_line.main(["report", "--folder", "elsewhere"]) == 2
    assert "submitted does not exist" in capsys.readouterr().err
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize(
    "command", ["history", "requests", "extend", "extend ada ps1 2d", "export canvas", "merge ."]
)
def test_a_folder_that_holds_no_class_is_said_and_stays_as_it_is(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
):
    make_course(tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    for folder in ("elsewhere", "misspelt"):
        assert command_line.main([*command.split(), "--folder", folder]) == 2
        assert f"{folder}/submitted does not exist" in capsys.readouterr().err
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert not (tmp_path / "misspelt").exists()


def test_the_root_of_the_disk_can_be_a_class(tmp_path: Path):
    found = Class(make_course(tmp_path), Path("/"))
    found.require_usable()
    assert found.database.startswith("sqlite:////gradebook.db")


@linux
@pytest.mark.parametrize("name", [b"\xfcbung", b"a\nb", b"a\x1b[2Jb"])
def test_an_assignment_whose_folders_name_is_no_text_is_named(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: bytes,
):
    course = make_course(tmp_path)
    (tmp_path / "source" / NAME).rename(tmp_path / "source" / os.fsdecode(name))
    (tmp_path / "submitted" / "ada").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert command_line.main(["grade"]) == 2
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1 and "name not all are signs of a text" in said[0]
    shutil.copytree(course.root / "source" / os.fsdecode(name), tmp_path / "source" / NAME)
    assert assignments(course, [NAME]) == [NAME]


@pytest.mark.parametrize("name", ["autograded", "feedback", "submitted"])
@pytest.mark.parametrize("other", ["submitted", "source", "release/inside", "."])
def test_settings_by_which_work_would_be_written_over_are_refused(
    home: Path, tmp_path: Path, name: str, other: str
):
    taught = Class(make_course(tmp_path), tmp_path)
    taught.require_usable()
    with (tmp_path / "nbgrader_config.py").open("a") as file:
        file.write(f"c.CourseDirectory.{name}_directory = 'x/../{other}'\n")
    if name == other or (other == "." and name != "submitted"):
        taught.require_usable()
        return
    with pytest.raises(CourseError, match="give each a folder of its own"):
        taught.require_usable()


@pytest.mark.parametrize(
    "setting",
    [
        "db_url = 5",
        "course_id = 5",
        "student_id_exclude = ['ada']",
        "groupshared = 'yes'",
        "submitted_directory",
        "submitted_directory = 'a\\0b'",
        "feedback_directory = None",
    ],
)
def test_a_setting_that_nbgrader_would_refuse_is_refused(
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    setting: str,
):
    course = make_course(tmp_path)
    (tmp_path / "submitted" / "ada").mkdir(parents=True)
    with (tmp_path / "nbgrader_config.py").open("a") as file:
        file.write(f"c.CourseDirectory.{setting}\n")
    monkeypatch.chdir(course.root)
    assert command_line.main(["grade"]) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert f"c.CourseDirectory.{setting.partition(' ')[0]} is " in said and "mend it there" in said


@linux
def test_a_root_that_is_another_folder_is_noted(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    course = make_course(tmp_path)
    (tmp_path / "submitted").mkdir()
    monkeypatch.chdir(course.root)
    for root, is_noted in ((".", False), ("..", True)):
        with (tmp_path / "nbgrader_config.py").open("a") as file:
            file.write(f"c.CourseDirectory.root = {root!r}\n")
        assert command_line.main(["grade"]) == 0
        said = capsys.readouterr().err
        assert ("nbgrader's own commands work there" in said) == is_noted


@linux
def test_no_sandbox_of_a_class_is_shown_the_course_or_the_exchange(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    course = make_course(tmp_path / "course")
    with (course.root / "nbgrader_config.py").open("a") as settings:
        settings.write('c.Exchange.root = "/usr/share/exchange"\n')
    private = [str(course.root), "/usr/share/exchange", *([str(home)] if os.geteuid() else [])]
    seen: list[Any] = []

    class Walls(Exception):
        """What a pool was to be made with."""

    def look(*given: Any, private: Any, **_: Any) -> None:
        seen.extend([private, given[5][0]["private"]])
        raise Walls

    monkeypatch.setattr("autograder.isolation.pool.Pool", look)
    monkeypatch.setattr("autograder.classroom.warm.try_known_mistakes", lambda *_: None)
    read = {NAME: read_assignment(course.instructor(NAME).parent)}
    with pytest.raises(Walls), Warm(course, read) as warm:
        warm.start()
    assert seen == [private, private], "for workers, and for answers"

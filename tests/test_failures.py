"""A disk that is full, a gradebook that is locked or gone: one sentence, and nothing is lost."""

import contextlib
import errno
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from nbgrader.api import Gradebook
from sqlalchemy import event, exc

from autograder import __main__ as command_line
from autograder.classroom.classes import Class
from autograder.common.course import CourseError
from autograder.common.failures import in_words
from autograder.common.whole import whole, write_table, write_whole
from tests.nbgraders_commands import own
from tests.small_course import ANSWERS, HOOKS, NAME, hand_in, make_course, nbgrader, release, scores

linux = pytest.mark.skipif(sys.platform != "linux", reason="grading needs Linux")
SCORES = {"ada": 6, "bela": 4, "chidi": 3, "dana": 0, "noor": 0}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Class:
    """The small class, handed in and not graded."""
    course = make_course(tmp_path_factory.mktemp("made"))
    release(course.root)
    for student, answers in ANSWERS.items():
        hand_in(course.root, student, answers)
    return Class(course, course.root)


@pytest.fixture
def taught(made: Class, tmp_path: Path) -> Class:
    """The same submissions in a folder of their own."""
    folder = tmp_path / "class"
    folder.mkdir()
    (folder / "submitted").symlink_to(made.submitted)
    return Class(made.course, folder)


def run(taught: Class, *command: str) -> tuple[int, str]:
    """Run a command on the class; how it ended and what it said as an error."""
    status, said = own(taught.course.root, *command, "--folder", str(taught.folder))
    lines = [line for line in said.splitlines() if not line.startswith(("grading", "\r"))]
    return status, "\n".join(line for line in lines if line)


@linux
def test_a_file_in_the_place_of_the_build_folder_is_named(tmp_path: Path):
    course = make_course(tmp_path)
    release(course.root)
    hand_in(course.root, "ada", ANSWERS["ada"])
    shutil.rmtree(tmp_path / "build")
    (tmp_path / "build").write_text("no folder")
    code, said = run(Class(course, tmp_path), "grade")
    words = "build/rehearsed cannot be made: a file lies where a folder belongs; move it away."
    assert code == 2 and words in said and "Traceback" not in said


COMMANDS = (("grade", NAME), ("report",), ("export", "canvas"))


def one_sentence(ended: tuple[int, str], *words: str) -> None:
    """The command said what is wrong and nothing else."""
    status, said = ended
    assert status == 2, said
    assert said.startswith("error: ") and "\n" not in said, said
    assert "Traceback" not in said
    for word in words:
        assert word in said, said


@linux
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_a_gradebook_that_is_none(taught: Class, command: tuple[str, ...]):
    (taught.folder / "gradebook.db").write_bytes(b"no database at all " * 100)
    one_sentence(run(taught, *command), str(taught.folder / "gradebook.db"), "--again")


@linux
def test_a_gradebook_that_another_program_holds(made: Class, tmp_path: Path):
    course = make_course(tmp_path / "course")
    with (course.root / "nbgrader_config.py").open("a") as file:
        file.write(f'c.CourseDirectory.db_url = "sqlite:///{tmp_path}/book.db?timeout=0.1"\n')
    taught = Class(course, course.root)
    (course.root / "submitted").symlink_to(made.submitted)
    assert run(taught, "grade", NAME, "--no-report")[0] == 0
    with contextlib.closing(sqlite3.connect(tmp_path / "book.db")) as other:
        other.execute("PRAGMA locking_mode=EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        one_sentence(run(taught, "grade", NAME, "--again"), "book.db is locked", "formgrader")
        one_sentence(run(taught, "report"), "book.db is locked")
        one_sentence(run(taught, "export", "moodle"), "book.db is locked")
        other.rollback()
    assert run(taught, "grade", NAME, "--no-report")[0] == 0
    assert scores(taught) == SCORES


@linux
@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("nosuchbase://me:secret@localhost/x", ("db_url",)),
        ("postgresql+pg8000://me:secret@localhost/x", ("pg8000", "pip")),
        ("sqlite:////nowhere/at/all/book.db", ("/nowhere/at/all/book.db",)),
    ],
)
def test_a_database_that_cannot_be_had(made: Class, tmp_path: Path, url: str, words: tuple):
    course = make_course(tmp_path / "course")
    with (course.root / "nbgrader_config.py").open("a") as file:
        file.write(f'c.CourseDirectory.db_url = "{url}"\n')
    taught = Class(course, course.root)
    (course.root / "submitted").symlink_to(made.submitted)
    ended = run(taught, "grade", NAME)
    one_sentence(ended, *words)
    assert "secret" not in ended[1]


@linux
@pytest.mark.parametrize("url", ["sqlite:gradebook.db", "postgresql://me:secret@localhost:x/y"])
def test_an_address_that_is_none_is_a_sentence(made: Class, tmp_path: Path, url: str):
    course = make_course(tmp_path / "course", hooks=True)
    with (course.root / "nbgrader_config.py").open("a") as file:
        file.write(f'c.CourseDirectory.db_url = "{url}"\n')
    shutil.copytree(made.submitted, course.root / "submitted")
    taught = Class(course, course.root)
    for command in (("grade", NAME), ("report",), ("history", "ada"), ("export", "canvas")):
        ended = run(taught, *command)
        one_sentence(ended, "db_url", "is no address of a database")
        assert "secret" not in ended[1]
    said = nbgrader(course.root, "autograde", NAME, succeeds=False)
    assert "is no address of a database" in said and "Traceback" not in said


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """A file system of 3 MB there."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("a small file system can only be mounted by root")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@linux
@pytest.mark.parametrize("left", [0, 200_000])
def test_a_disk_that_is_full_before_or_while_grading(made: Class, tmp_path: Path, left: int):
    with small_disk(tmp_path / "disk"):
        taught = Class(made.course, tmp_path / "disk")
        (taught.folder / "submitted").symlink_to(made.submitted)
        with (taught.folder / "filler").open("wb", buffering=0) as filler, pytest.raises(OSError):
            while True:
                filler.write(bytes(4096))
        os.truncate(taught.folder / "filler", (taught.folder / "filler").stat().st_size - left)
        one_sentence(run(taught, "grade", NAME), "The disk is full", "Make room")
        (taught.folder / "filler").unlink()
        assert run(taught, "grade", NAME) == (0, "")
        assert scores(taught) == SCORES
        assert len(list(taught.feedback.rglob("*.html"))) == len(SCORES)


@linux
def test_nbgrader_autograde_ends_in_the_same_sentence(made: Class, tmp_path: Path):
    course = make_course(tmp_path / "course", hooks=True)
    (course.root / "submitted").symlink_to(made.submitted)
    (course.root / "gradebook.db").write_bytes(b"no database at all " * 100)
    assert HOOKS in (course.root / "nbgrader_config.py").read_text()
    said = nbgrader(course.root, "autograde", NAME, succeeds=False)
    assert "is no gradebook that can be read" in said and "Traceback" not in said


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(errno.ENOSPC, "x"), "The disk is full: the page could not be written"),
        (OSError(errno.EROFS, "x", "/a/b"), "/a/b lies on a disk that only lets itself be read"),
        (PermissionError(errno.EACCES, "x", "/a/b"), "/a/b may not be written"),
        (sqlite3.OperationalError("database or disk is full"), "The disk is full"),
        (sqlite3.OperationalError("unable to open database file"), "see that it is no folder"),
        (sqlite3.OperationalError("attempt to write a readonly database"), "may only be read"),
        (sqlite3.OperationalError("disk I/O error"), "-wal, -shm or -journal is a file"),
        (exc.OperationalError("q", {}, sqlite3.OperationalError("no such table: x")), "upgrade"),
        (
            exc.OperationalError("q", {}, Exception("connection refused\nis it running?")),
            r"cannot be reached \(connection refused\)",
        ),
        (ModuleNotFoundError("No module named 'psycopg'"), "database driver .*psycopg"),
    ],
)
def test_each_refusal_has_its_words(error: Exception, words: str):
    with pytest.raises(CourseError, match=words), in_words("the page"):
        raise error


@pytest.mark.parametrize(
    "error",
    [
        ValueError("x"),
        sqlite3.IntegrityError("x"),
        exc.IntegrityError("q", {}, sqlite3.IntegrityError("x")),
        exc.DataError("q", {}, Exception("value too long for type character varying(128)")),
    ],
)
def test_what_concerns_one_row_alone_stays_what_it_is(error: Exception):
    with pytest.raises(type(error)), in_words("the page"):
        raise error


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path):
    write_whole(tmp_path / "a" / "b", "ä\ud800")
    assert (tmp_path / "a" / "b").read_text(encoding="utf-8") == "ä\\ud800"
    (tmp_path / "c").mkdir()
    with pytest.raises(OSError):
        write_whole(tmp_path / "c", "text")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "c"]


def test_two_writers_of_a_file_mix_nothing(tmp_path: Path):
    path = tmp_path / "table.csv"
    with whole(path) as one:
        one.write(b"first, and ")
        write_whole(path, "second")
        assert path.read_text() == "second"
        one.write(b"whole")
    assert path.read_text() == "first, and whole"
    assert [one.name for one in tmp_path.iterdir()] == ["table.csv"]


@pytest.mark.skipif(sys.platform == "win32", reason="files cannot be held there")
def test_what_a_writer_left_that_was_killed_is_removed_by_the_next(tmp_path: Path):
    path = tmp_path / "table.csv"
    code = "import sys\nfrom pathlib import Path\nfrom autograder.common.whole import whole\n"
    code += f"with whole(Path({str(path)!r})) as file: print(flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        assert writer.stdout
        writer.stdout.readline()
        write_whole(path, "ours")
        assert len([*tmp_path.iterdir()]) == 2  # it is at work
        writer.kill()
    write_whole(path, "ours")
    assert [one.name for one in tmp_path.iterdir()] == ["table.csv"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes are POSIX's")
def test_a_device_or_a_pipe_that_a_person_names_is_written_into_and_stays(tmp_path: Path):
    link, pipe = tmp_path / "null", tmp_path / "pipe"
    link.symlink_to(os.devnull)
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_table(link, "text")
    write_table(pipe, "text")
    assert os.read(reader, 10) == b"text"
    os.close(reader)
    assert link.is_symlink() and pipe.is_fifo()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["null", "pipe"]


@pytest.mark.parametrize("out", [".", "", "submitted"])
def test_an_export_to_a_folder_is_one_sentence(taught: Class, out: str):
    Gradebook(taught.database).close()
    status, said = run(taught, "export", "canvas", "--out", out)
    assert status == 2 and said.startswith("error: ") and "is a folder; name a file" in said


@pytest.mark.parametrize("command", ["demo", "bench"])
def test_a_command_for_text_sources_is_one_sentence_elsewhere(made: Class, command: str):
    words = [sys.executable, "-m", "autograder", command]
    done = subprocess.run(words, cwd=made.course.root, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
    assert "for a course with solutions/, and here is none" in done.stderr


OURS = ["grades.csv", "questions.csv", "items.csv", "report.html", "gradebook.db"]
OURS += ["gradebook.journal.jsonl", "gradebook.journal.lock", "canvas.csv"]


@linux
@pytest.mark.parametrize("name", OURS)
@pytest.mark.parametrize("kind", ["pipe", "socket", "folder"])
def test_what_is_no_file_in_the_place_of_one_is_a_sentence_and_nobody_waits(
    made: Class, tmp_path: Path, name: str, kind: str
):
    (tmp_path / "submitted").symlink_to(made.submitted)
    taught, place = Class(made.course, tmp_path), tmp_path / name
    put_there(place, kind)
    command = ("export", "canvas") if name == "canvas.csv" else ("report",)
    Gradebook(f"sqlite:///{tmp_path}/gradebook.db").close() if name == "canvas.csv" else None
    status, said = run(taught, *command)
    assert status == 2 and said.count("\n") == 0 and str(place) in said, said
    assert "Traceback" not in said and not place.is_file()


def put_there(place: Path, kind: str) -> None:
    """What is no file."""
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "folder":
        place.mkdir()
    else:
        with socket.socket(socket.AF_UNIX) as one, contextlib.chdir(place.parent):
            one.bind(place.name)  # a longer path is none for a socket


@linux
@pytest.mark.parametrize("name", ["numbers.html", "submission_secret.txt", "timestamp.txt"])
def test_a_pipe_in_a_students_feedback_costs_her_page_and_nobody_elses(
    made: Class,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
):
    monkeypatch.chdir(made.course.root)
    (tmp_path / "submitted").symlink_to(made.submitted)
    pipe = tmp_path / "feedback" / "ada" / NAME / name
    pipe.parent.mkdir(parents=True)
    os.mkfifo(pipe)
    assert command_line.main(["grade", "--folder", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert f"ada, {NAME}: not all of its files could be written" in said, said
    assert "it is a named pipe, and a file belongs there" in said
    assert command_line.main(["report", "--folder", str(tmp_path)]) == 0
    assert pipe.is_fifo() and (tmp_path / "feedback" / "bela" / NAME / "numbers.html").is_file()


@linux
@pytest.mark.parametrize("name", ["rehearsed/ps1.json", "fingerprints.json", "known/ps1.bin"])
def test_a_pipe_in_the_build_folder_keeps_nobody_waiting(tmp_path: Path, name: str):
    course = make_course(tmp_path)
    release(course.root)
    hand_in(course.root, "ada", ANSWERS["ada"])
    kept = tmp_path / "build" / name
    assert kept.is_file()
    kept.unlink()
    os.mkfifo(kept)
    status, said = own(tmp_path, "grade")
    assert status in (0, 2) and "Traceback" not in said
    assert status == 0 or "it is a named pipe, and a file belongs there" in said


ODD = {  # what another program may have put into the gradebook, and what is said of it
    "update submitted_assignment set extension = 'soon'": "is no time where one belongs",
    "update submitted_assignment set extension = 5": "is no time where one belongs",
    "update submitted_assignment set timestamp = 'soon'": "is no time where one belongs",
    "update submitted_assignment set timestamp = X'00'": "is no time where one belongs",
    "update assignment set duedate = 'soon'": "is no time where one belongs",
    "update submitted_notebook set late_submission_penalty = 'x'": "",
    "update comment set manual_comment = X'ff00'": "",
    "update base_cell set type = 'Nonsense' where name = 'square-hidden'": "",
}


@linux
@pytest.mark.parametrize("change", ODD)
def test_rows_of_another_kind_are_read_or_named(
    made: Class, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
):
    (tmp_path / "submitted").symlink_to(made.submitted)
    taught = Class(made.course, tmp_path)
    monkeypatch.chdir(made.course.root)
    assert run(taught, "grade", "--student", "ada", "--no-report")[0] == 0
    with contextlib.closing(sqlite3.connect(tmp_path / "gradebook.db")) as db:
        db.execute(change)
        db.commit()
    for command in (("grade", "--student", "ada"), ("export", "canvas")):
        status, said = run(taught, *command)
        assert "Traceback" not in said and status == (2 if ODD[change] and status else 0), said
        assert ODD[change] in said or not status


@linux
def test_a_file_in_the_place_of_a_folder_in_the_build_folder_is_named(tmp_path: Path):
    course = make_course(tmp_path)
    release(course.root)
    hand_in(course.root, "ada", ANSWERS["ada"])
    shutil.rmtree(tmp_path / "build" / "known")
    (tmp_path / "build" / "known").touch()
    status, said = own(tmp_path, "grade")
    assert status == 2 and "known/ps1.bin cannot be written" in said, said
    assert "move away what lies in its place or in that of its folder" in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    "said, words",
    [("database or disk is full", "The disk is full"), ("database is locked", "is locked by")],
)
def test_what_a_database_refused_nbgraders_api_is_a_sentence(said: str, words: str, tmp_path: Path):
    with Gradebook(f"sqlite:///{tmp_path}/gradebook.db") as book:

        def refuse(*_: object) -> None:
            raise sqlite3.OperationalError(said)

        event.listen(book.engine, "do_execute", refuse)
        with pytest.raises(CourseError, match=words), in_words("gradebook.db"):
            book.add_student("ada")
        book.db.rollback()

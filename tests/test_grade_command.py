"""The command that grades a class: how it is stopped, what it refuses, where its words go."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from autograder import __main__ as command_line
from autograder.authoring import processes
from autograder.classroom import warm
from autograder.classroom.classes import Class, assignments
from autograder.classroom.grade import grade
from autograder.classroom.journal import Journal
from autograder.commands import classroom
from autograder.common.course import CourseError
from autograder.isolation import machine
from tests.small_course import NAME, make_class, scores

linux = pytest.mark.skipif(sys.platform != "linux", reason="grading needs Linux")


@pytest.fixture
def taught(tmp_path: Path) -> Class:
    """The small class, handed in and not graded."""
    return make_class(tmp_path)


DEAF = {
    "ignored": "signal.signal(signal.SIGCHLD, signal.SIG_IGN)",
    "blocked": "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})",
}


@linux
@pytest.mark.parametrize("how", DEAF)
def test_a_caller_that_is_not_told_of_its_children_is_served(taught: Class, how: str):
    code = f"import os, signal, sys\n{DEAF[how]}\nos.execv(sys.executable, sys.argv[1:])"
    command = [sys.executable, "-m", "autograder", "grade", NAME, "--student", "ada"]
    command += ["--folder", str(taught.folder)]
    done = subprocess.run(
        [sys.executable, "-c", code, *command],
        capture_output=True,
        text=True,
        cwd=taught.course.root,
        check=False,
    )
    assert (done.returncode, done.stderr.count("Traceback")) == (0, 0), done.stderr
    assert scores(taught) == {"ada": 6}


@linux
def test_ctrl_c_says_how_to_go_on_and_leaves_no_process(taught: Class):
    command = [sys.executable, "-m", "autograder", "grade", NAME, "--no-report"]
    process = subprocess.Popen(
        command,
        cwd=taught.course.root,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    while not taught.journal.is_file() and process.poll() is None:
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    _, said = process.communicate(timeout=60)
    # Where it hits a text that Python runs (a dataclass being made), Python ends by the signal
    # even if it was handled; shells see 130 both times.
    assert process.returncode in (command_line.INTERRUPTED, -signal.SIGINT)
    assert "Stopped. What was graded is kept; the same command grades the rest." in said
    assert "Traceback" not in said
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)
    grade(taught, [NAME], progress=False)
    assert scores(taught)["ada"] == 6


def test_ctrl_c_in_a_destructor_is_not_lost(capsys: pytest.CaptureFixture[str]):
    class Late:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGINT)

    pressed: list[int] = []
    late = Late()
    with pytest.raises(KeyboardInterrupt), command_line._noting_ctrl_c(pressed):
        del late
        time.sleep(60)
    assert set(pressed) == {signal.SIGINT}
    assert capsys.readouterr().err == ""


@linux
def test_only_what_was_handed_in_is_made_ready_and_it_is_said(
    taught: Class, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    root = taught.course.root
    monkeypatch.chdir(root)
    shutil.copytree(root / "source" / NAME, root / "source" / "ps2")
    where = ["--folder", str(taught.folder), "--jobs", "1"]
    assert command_line.main(["grade", *where]) == 0
    assert "are tried" not in capsys.readouterr().err
    made = {path.name.partition(".")[0] for path in (root / "build").rglob("ps*")}
    assert NAME in made and "ps2" not in made
    student = taught.students()[0]
    shutil.copytree(taught.submission(student, NAME), taught.submission(student, "ps2"))
    assert command_line.main(["grade", *where]) == 0
    assert capsys.readouterr().err.count("note: the tests of ps2 are tried with") == 2


@linux
def test_two_graders_do_not_meet(taught: Class):
    with Journal(taught), pytest.raises(CourseError, match="Another grader"):
        grade(taught, [NAME], progress=False)


@linux
def test_a_class_is_graded_by_the_course_as_it_was_read(
    taught: Class, monkeypatch: pytest.MonkeyPatch
):
    """Whoever builds or releases meanwhile changes the next run's tests, and no grade of this."""

    def build(*_: object) -> None:
        path = taught.course.root / "source" / NAME / "numbers.ipynb"
        path.write_text(path.read_text().replace("third-values", "third-of-one"))

    monkeypatch.setattr(warm, "try_known_mistakes", build)
    grade(taught, [NAME], progress=False)
    before = scores(taught)
    assert before["ada"] == 6
    monkeypatch.undo()
    assert grade(taught, [NAME], progress=False).graded == len(before)
    assert scores(taught)["ada"] == 6


def test_without_a_sandbox_it_says_what_is_missing_and_which_flag_names_the_risk(
    taught: Class, monkeypatch: pytest.MonkeyPatch
):
    nothing = machine.Capabilities(False, False, False, missing=("Set kernel.x to 1.",))
    monkeypatch.setattr(machine, "probe", lambda: nothing)
    with pytest.raises(CourseError) as refused:
        grade(taught, [NAME], progress=False)
    assert "Set kernel.x to 1." in str(refused.value)
    assert classroom.RISK_FLAG in str(refused.value)
    assert classroom.RISK_FLAG == processes.RISK_FLAG


@linux
def test_the_flag_grades_without_a_sandbox(taught: Class):
    grade(taught, [NAME], sandboxed=False, progress=False)
    assert scores(taught)["ada"] == 6


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("x = (", "SyntaxError: '(' was never closed"),
        ("import nowhere_at_all", "ModuleNotFoundError: No module named 'nowhere_at_all'"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("raise OSError('a\\nb')", "OSError: a"),
        ("exit()", "SystemExit: None"),
    ],
)
def test_a_mistake_in_the_settings_is_one_sentence(
    taught: Class,
    line: str,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    path = taught.course.root / "nbgrader_config.py"
    lines = len(path.read_text().splitlines())
    path.write_text(f"{path.read_text()}\n{line}\n")
    monkeypatch.chdir(taught.course.root)
    for command in (["grade", NAME], ["report"]):
        assert command_line.main(command) == 2
        said = f"error: {path} cannot be read (line {lines + 2}: {words}); mend it.\n"
        assert capsys.readouterr().err == said


@linux
def test_behind_head_it_ends_quietly(taught: Class):
    read, written = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "autograder"]
    whole = {"cwd": taught.course.root, "text": True, "check": False}
    done = subprocess.run(
        [*command, "grade", NAME], stdout=written, stderr=subprocess.PIPE, **whole
    )
    assert done.returncode == 0 and "Traceback" not in done.stderr
    assert (taught.course.root / "grades.csv").is_file()
    done = subprocess.run(
        [*command, "export", "canvas"], stdout=written, stderr=subprocess.PIPE, **whole
    )
    assert (done.returncode, done.stderr) == (0, "")
    done = subprocess.run(
        [*command, "grade", NAME, "--again"], stdout=subprocess.PIPE, stderr=written, **whole
    )
    assert done.returncode == command_line.UNREAD and done.stdout == ""
    os.close(written)


@linux
@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_where_a_standard_stream_is_closed_it_grades_in_silence(taught: Class, closed: str):
    command = [sys.executable, "-m", "autograder", "grade", NAME, "--student", "ada"]
    shell = ["sh", "-c", f'exec "$@" {closed}', "sh", *command]
    done = subprocess.run(
        shell, cwd=taught.course.root, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert scores(taught) == {"ada": 6}
    assert (taught.folder / "grades.csv").is_file()


def test_an_unknown_assignment_is_named_with_those_that_exist(taught: Class):
    assert assignments(taught.course) == [NAME]
    with pytest.raises(CourseError, match=r"no assignment 'ps9' in .*; the assignments are ps1"):
        assignments(taught.course, ["ps9"])


@pytest.mark.parametrize(
    ("command", "least"),
    [
        ("grade --jobs -3", 0),
        ("watch --jobs 1.5", 0),
        ("mutants --jobs x", 0),
        ("bench --jobs 0", 1),
        ("bench --students 0", 1),
        ("bench --rounds -1", 1),
        (f"grade --jobs {'9' * 5000}", 0),
    ],
)
def test_a_number_of_processes_that_cannot_be_is_refused_before_anything_is_done(
    command: str, least: int, capsys: pytest.CaptureFixture[str]
):
    with pytest.raises(SystemExit, match="2"):
        command_line.main(command.split())
    assert f"write a whole number, {least} at least" in capsys.readouterr().err

"""Grading a class: what is done again and what is not, how it stops, and what it refuses."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from nbgrader.api import Gradebook

from autograder import __main__ as command_line
from autograder.classroom import grade as grading_module
from autograder.classroom import warm
from autograder.classroom.classes import assignments
from autograder.classroom.grade import Class, grade, read_journal
from autograder.classroom.journal import Journal
from autograder.common.course import Course, CourseError
from autograder.common.results import Flag
from autograder.isolation import machine
from autograder.isolation.pool import Doubtful, Lost
from autograder.judge.assignment import Assignment
from autograder.judge.parcel import Parcel, Place, collect
from tests.sandbox.shared import secretive
from tests.small_course import ANSWERS, NAME, RIGHT, hand_in, make_course, nbgrader, scores

linux = pytest.mark.skipif(sys.platform != "linux", reason="grading needs Linux")


@pytest.fixture
def taught(tmp_path: Path) -> Class:
    """The small class, handed in and not graded."""
    course = make_course(tmp_path)
    nbgrader(course.root, "generate_assignment", NAME)
    for student, answers in ANSWERS.items():
        hand_in(course.root, student, answers)
    return Class(course, course.root)


@linux
@pytest.mark.parametrize("when", ["before its turn", "while it is taken"])
def test_a_folder_that_goes_away_during_the_run_is_named_and_the_others_are_graded(
    taught: Class, when: str, monkeypatch: pytest.MonkeyPatch
):
    theirs = taught.submission("bela", NAME)

    def taking(place: Place, assignment: Assignment) -> Parcel:
        if place.folder.parent.name == ("ada" if when == "before its turn" else "bela"):
            theirs.rename(taught.folder / "elsewhere")
        return collect(place, assignment)

    monkeypatch.setattr(grading_module, "collect", taking)
    summary = grade(taught, [NAME], progress=False)
    assert summary.graded == len(ANSWERS) - 1 and not summary.zero
    assert f"not graded: bela/{NAME}: its folder has gone during the run" in summary.words()
    assert set(scores(taught)) == set(ANSWERS) - {"bela"}
    monkeypatch.undo()
    (taught.folder / "elsewhere").rename(theirs)
    assert grade(taught, [NAME], progress=False).graded == 1


@linux
def test_only_what_is_new_or_changed_is_graded(taught: Class):
    assert grade(taught, [NAME], progress=False).graded == len(ANSWERS)
    assert scores(taught) == {"ada": 6, "bela": 4, "chidi": 3, "dana": 0, "noor": 0}
    hand_in(taught.course.root, "noor", RIGHT)
    hand_in(taught.course.root, "tomas", {}).write_text("[", encoding="utf-8")
    summary = grade(taught, [NAME], progress=False)
    assert (summary.graded, summary.kept, summary.zero) == (2, len(ANSWERS) - 1, 1)
    assert summary.words() == "2 graded, 4 unchanged, 1 of them 0 as a whole, with the reason"
    assert scores(taught)["noor"] == 6
    assert grade(taught, [NAME], students=["ada"], again=True, progress=False).graded == 1
    assert grade(taught, [NAME], progress=False).graded == 0


@linux
def test_what_the_gradebook_lost_is_stored_again(taught: Class):
    root = taught.course.root
    who = ["ada", "bela", "dana"]
    grade(taught, [NAME], students=who, progress=False)
    gradebook = taught.folder / "gradebook.db"
    backup = gradebook.read_bytes()
    hand_in(root, "dana", RIGHT)
    hand_in(root, "bela", {"third": RIGHT["third"], "why": "So."})  # which is worth less
    grade(taught, [NAME], progress=False)
    whole = scores(taught)
    for lost in (lambda: gradebook.write_bytes(backup), gradebook.unlink):
        lost()
        summary = grade(taught, [NAME], progress=False)
        assert (summary.graded, summary.kept) == (0, 5) and scores(taught) == whole
        assert "not in the gradebook" in summary.words()
        again = grade(taught, [NAME], progress=False)
        assert not again.put_back and "gradebook" not in again.words()


@linux
def test_a_changed_test_is_enough_to_grade_again(taught: Class):
    grade(taught, [NAME], students=["ada"], progress=False)
    path = taught.course.root / "source" / NAME / "numbers.ipynb"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("square(-5) == 25", "square(-5) == 26"), encoding="utf-8")
    assert grade(taught, [NAME], students=["ada"], progress=False).graded == 1
    assert scores(taught)["ada"] == 4


@linux
def test_an_instructors_umask_holds_for_what_is_written_and_stops_nothing(taught: Class):
    with secretive():
        grade(taught, [NAME], students=["ada"], progress=False)
    assert scores(taught) == {"ada": 6}
    page = taught.feedback / "ada" / NAME / "numbers.html"
    for path in (taught.journal, page, page.parent):
        assert not path.stat().st_mode & 0o077, path


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


LIAR = """class Liar:
    def is_integer(self): return True
def third(x): return Liar()"""


@linux
def test_an_ordinary_course_knows_what_its_reference_gives(taught: Class):
    path = taught.course.root / "source" / NAME / "numbers.ipynb"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("math.isclose(third(1), 1 / 3)", "third(3).is_integer()"))
    hand_in(taught.course.root, "ada", RIGHT | {"third": LIAR})
    grade(taught, [NAME], students=["ada", "bela"], progress=False)
    prints = warm.fingerprints(taught.course, {NAME: warm.read(taught.course, NAME)})
    shelf = warm.known_mistakes(taught.course, NAME, prints[NAME])
    assert {test for test in shelf.questions if shelf.of(test)[0]} == {
        "square-seen",
        "square-hidden",
        "third-values",
    }
    assert scores(taught) == {"ada": 3, "bela": 4}


READS = (
    "def third(x):\n    with open('data/one.txt') as file:\n        return x * float(file.read())"
)


@linux
def test_the_instructors_files_lie_beside_answers_and_tests(taught: Class):
    path = taught.course.root / "source" / NAME / "numbers.ipynb"
    (path.parent / "data").mkdir()
    (path.parent / "data" / "one.txt").write_text(str(1 / 3))
    (path.parent / "beside.py").write_text("def read(name):\n    return float(open(name).read())\n")
    text = path.read_text(encoding="utf-8")
    text = text.replace(
        '"import math"', r'"import math\nimport beside\none = beside.read(\"data/one.txt\")"'
    )
    path.write_text(text.replace("third(1), 1 / 3", "third(1), one"))
    hand_in(taught.course.root, "ada", RIGHT | {"third": READS})
    assert warm.rehearse(taught.course, [NAME]) == []
    grade(taught, [NAME], students=["ada", "noor"], progress=False)
    assert scores(taught) == {"ada": 6, "noor": 0}
    prints = warm.fingerprints(taught.course, {NAME: warm.read(taught.course, NAME)})
    assert warm.known_mistakes(taught.course, NAME, prints[NAME]).of("third-values")[0]


@linux
def test_a_mark_scheme_is_on_no_page(taught: Class):
    grade(taught, [NAME], students=["ada"], progress=False)
    page = taught.feedback / "ada" / NAME / "numbers.html"
    assert "Axes give" not in page.read_text(encoding="utf-8")


@linux
def test_work_that_lies_elsewhere_is_graded_or_named(taught: Class):
    submitted = taught.submitted
    (submitted / "ada" / NAME).rename(submitted / "ada" / "PS_1")
    notebook = submitted / "bela" / NAME / "numbers.ipynb"
    notebook.rename(submitted / "bela" / "numbers (1).ipynb")
    notebook.parent.rmdir()
    (submitted / "chidi" / NAME).rename(submitted / "chidi" / "homework")
    shutil.copytree(submitted / "dana" / NAME, submitted / "dana" / "ps 1")
    (submitted / "dana" / NAME).rename(submitted / "dana" / "ps-1")
    summary = grade(taught, [NAME], progress=False)
    assert scores(taught) == {"ada": 6, "bela": 4, "dana": 0, "noor": 0}
    assert "not graded: chidi/homework belongs to no assignment" in summary.words()
    found = read_journal(taught)
    assert "PS_1 was graded as ps1" in " ".join(found["ada", NAME].notebooks[0].notes)
    assert "beside" in " ".join(found["bela", NAME].notebooks[0].notes)
    assert "ps 1, ps-1 could each be meant" in found["dana", NAME].reason
    assert {flag.kind for who in ("ada", "bela") for flag in found[who, NAME].flags} == {"file"}
    assert grade(taught, [NAME], progress=False).graded == 0


@linux
def test_a_finished_notebook_beside_an_empty_one_is_graded(taught: Class):
    empty = taught.submitted / "noor" / NAME / "numbers.ipynb"
    finished = taught.submitted / "ada" / NAME / "numbers.ipynb"
    shutil.copy(finished, empty.with_name("numbers_done.ipynb"))
    shutil.copy(finished, taught.submitted / "bela" / NAME / "numbers_new.ipynb")
    grade(taught, [NAME], students=["noor", "bela"], progress=False)
    assert scores(taught) == {"noor": 6, "bela": 4}
    found = read_journal(taught)
    assert "numbers_done.ipynb was graded" in " ".join(found["noor", NAME].notebooks[0].notes)
    assert "left out: numbers_new.ipynb" in " ".join(found["bela", NAME].notebooks[0].notes)


@linux
def test_a_students_folder_that_is_a_link_is_0_with_the_reason(taught: Class):
    (taught.submitted / "mallory").symlink_to(taught.submitted / "ada")
    grade(taught, [NAME], students=["ada", "mallory"], progress=False)
    assert scores(taught) == {"ada": 6, "mallory": 0}
    assert "is a link" in read_journal(taught)["mallory", NAME].reason


@linux
def test_a_link_that_cannot_be_followed_stops_nobody(
    taught: Class, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    (taught.submitted / "long").symlink_to("n" * 300)
    (taught.submitted / "eve").mkdir()
    (taught.submitted / "eve" / NAME).symlink_to("n" * 300)
    (taught.submitted / "essay").write_text("I did it.")
    monkeypatch.chdir(taught.course.root)
    assert command_line.main(["grade", "--no-report"]) == 0
    assert scores(taught)["ada"] == 6 and scores(taught)["eve"] == scores(taught)["long"] == 0
    assert "not graded: essay lies in no student's folder" in capsys.readouterr().out
    assert "is a link" in read_journal(taught)["long", NAME].reason
    assert command_line.main(["report"]) == 0


@linux
def test_names_and_times_that_no_text_can_hold_stop_nobody(
    taught: Class, monkeypatch: pytest.MonkeyPatch
):
    shutil.copytree(taught.submitted / "ada", taught.submitted / "M\udcfcller")
    late = taught.submitted / "bela" / NAME
    for path in (late / "numbers.ipynb", late):
        with suppress(OSError):  # not every disk can hold it
            os.utime(path, (2**41, 2**41))
    assert grade(taught, [NAME], progress=False).graded == len(ANSWERS) + 1
    found = scores(taught)
    assert sorted(found.values()) == [0, 0, 3, 4, 6, 6]
    assert grade(taught, [NAME], progress=False).graded == 0
    monkeypatch.chdir(taught.course.root)
    assert command_line.main(["report"]) == 0


@linux
def test_lateness_that_nobody_knows_is_said_and_costs_nothing(
    taught: Class, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    rules = taught.course.root / "source" / NAME / "rules.toml"
    strict = '[late]\npolicy = "zero"\ndue = 2020-01-01T00:00:00Z\n'
    rules.write_text(strict)
    times = rules.with_name("times.csv")
    monkeypatch.chdir(taught.course.root)
    assert command_line.main(["grade"]) == 0
    assert penalties(taught) == dict.fromkeys(ANSWERS)
    words = "no time that its student cannot set is known of 5 submissions (ada, bela, chidi"
    assert f"lateness not known: ps1: {words}" in capsys.readouterr().out
    assert words in (taught.folder / "report.html").read_text(encoding="utf-8")
    stamp = taught.submitted / "ada" / NAME / "timestamp.txt"
    stamp.write_text("2020-01-02 00:00:00 UTC")
    rules.write_text(strict + "trust_timestamp = true\n")
    assert command_line.main(["grade"]) == 0
    assert penalties(taught) == dict.fromkeys(ANSWERS) | {"ada": 6}
    assert {flag.kind for flag in read_journal(taught)["noor", NAME].flags} == {"late"}
    times.write_text("student,submitted\nada,2019-12-31T00:00:00Z\nbela,2020-01-01T00:00:01Z\n")
    rules.write_text(strict + 'times = "times.csv"\n')
    assert command_line.main(["grade"]) == 0
    assert penalties(taught) == dict.fromkeys(ANSWERS) | {"bela": 4}
    words = "times.csv lies in the assignment's folder, and nbgrader generate_assignment hands that"
    assert words in capsys.readouterr().err
    times.rename(times.parents[1] / "times.csv")
    rules.write_text(strict + 'times = "../times.csv"\n')
    assert command_line.main(["grade"]) == 0
    assert penalties(taught) == dict.fromkeys(ANSWERS) | {"bela": 4}
    assert words not in capsys.readouterr().err


def penalties(taught: Class) -> dict[str, float | None]:
    """What each loses for being late."""
    with Gradebook(taught.database) as book:
        found: list[Any] = book.assignment_submissions(NAME)
        return {one.student.id: one.notebooks[0].late_submission_penalty for one in found}


@linux
def test_a_result_that_cannot_be_read_costs_its_own_submission(
    taught: Class, monkeypatch: pytest.MonkeyPatch
):
    real = grading_module.received

    def forged(data: bytes, student: str, *rest: Any) -> Any:
        return real(b"{}" if student == "ada" else data, student, *rest)

    monkeypatch.setattr(grading_module, "received", forged)
    summary = grade(taught, [NAME], progress=False)
    assert (summary.graded, summary.zero) == (len(ANSWERS), 1)
    assert scores(taught) == {"ada": 0, "bela": 4, "chidi": 3, "dana": 0, "noor": 0}
    assert "cannot be read" in read_journal(taught)["ada", NAME].reason


LOST = "the grading process was killed by signal 9 (KILL)"


def lose(patch: pytest.MonkeyPatch, lost: Callable[[bytes], bytes | Lost]) -> None:
    """Have the process lost that grades ada."""
    real = warm.Warm.run

    def run(self: Any, tasks: Any) -> Iterator[Any]:
        for task, outcome in real(self, tasks):
            yield task, lost(outcome) if task.student == "ada" else outcome

    patch.setattr(warm.Warm, "run", run)


@linux
@pytest.mark.parametrize("lost", [lambda _: Lost(LOST), Doubtful], ids=["lost", "doubtful"])
def test_what_the_machine_may_have_ended_is_graded_once_more(
    taught: Class, monkeypatch: pytest.MonkeyPatch, lost: Any
):
    others = {"bela": 4, "chidi": 3, "dana": 0, "noor": 0}
    with pytest.MonkeyPatch.context() as patch:
        lose(patch, lost)
        said = grade(taught, [NAME], progress=False).words()
        assert f"{grading_module.IN_DOUBT}: ada/{NAME}\nRun the command again" in said
        summary = grade(taught, [NAME], progress=False)  # as one that ends it each time
        assert (summary.graded, summary.kept, summary.retried) == (1, 4, 1)
        assert summary.in_doubt == (f"ada/{NAME}",)
        assert scores(taught) | others == scores(taught)
    summary = grade(taught, [NAME], progress=False)
    assert "1 of them once more, as they were in doubt" in summary.words()
    assert not summary.in_doubt and scores(taught) == {"ada": 6, **others}
    assert grade(taught, [NAME], progress=False).words() == "0 graded, 5 unchanged"


@linux
def test_what_ended_by_its_own_work_is_not_graded_once_more(
    taught: Class, monkeypatch: pytest.MonkeyPatch
):
    lose(monkeypatch, lambda _: Lost("took longer than 720 seconds", its_own=True))
    assert grade(taught, [NAME], progress=False).in_doubt == ()
    assert "took longer" in read_journal(taught)["ada", NAME].reason
    assert grade(taught, [NAME], progress=False).kept == len(ANSWERS)


@linux
def test_tests_run_where_nothing_of_the_class_is_to_be_seen(taught: Class):
    path = taught.course.root / "source" / NAME / "numbers.ipynb"
    text = path.read_text(encoding="utf-8")
    look = f"import os; assert not os.path.lexists({str(taught.submitted)!r}), 'it is there'"
    seen = "assert square(3) == 9"
    assert seen in text
    path.write_text(text.replace(seen, f"{look}; {seen}"), encoding="utf-8")
    grade(taught, [NAME], students=["ada"], progress=False)
    assert scores(taught) == {"ada": 6}


@linux
def test_an_answer_on_which_a_test_works_without_end_costs_that_test(taught: Class):
    folder = taught.course.root / "source" / NAME
    (folder / "rules.toml").write_text("[defaults]\nseconds = 1\n", encoding="utf-8")
    text = (folder / "numbers.ipynb").read_text(encoding="utf-8")
    seen, sums = "assert square(3) == 9", "assert sum(range(square(3) + 1)) == 45"
    assert seen in text
    (folder / "numbers.ipynb").write_text(text.replace(seen, sums), encoding="utf-8")
    huge = RIGHT | {"square": "def square(x):\n    return 10**12 if x == 3 else x * x"}
    hand_in(taught.course.root, "ada", huge)
    grade(taught, [NAME], ["ada", "bela"], progress=False)
    assert scores(taught) == {"ada": 5, "bela": 4}
    result = read_journal(taught)["ada", NAME]
    assert Flag("timeout", "numbers/square-seen", "it took too long") in result.flags
    [lost] = [one for one in result.notebooks[0].verdicts if one.status != "passed"]
    assert lost.told == "Your code did not finish in time: it took too long"


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
def test_two_graders_do_not_meet(taught: Class):
    with Journal(taught), pytest.raises(CourseError, match="Another grader"):
        grade(taught, [NAME], progress=False)


def test_without_a_sandbox_it_says_what_is_missing_and_which_flag_names_the_risk(
    taught: Class, monkeypatch: pytest.MonkeyPatch
):
    nothing = machine.Capabilities(False, False, False, missing=("Set kernel.x to 1.",))
    monkeypatch.setattr(machine, "probe", lambda: nothing)
    with pytest.raises(CourseError) as refused:
        grade(taught, [NAME], progress=False)
    assert "Set kernel.x to 1." in str(refused.value)
    assert command_line.RISK_FLAG in str(refused.value)
    assert command_line.RISK_FLAG == warm.RISK_FLAG


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


def test_modules_of_the_course_are_readable_for_students_and_nothing_else(course: Course):
    found = warm.own_modules(["lab", "json", "numpy", "no_such_module"])
    assert found == [course.root / "lab"]


@linux
def test_a_grader_that_cannot_be_rehearsed_says_which_test(taught: Class):
    path = taught.course.root / "source" / NAME / "numbers.ipynb"
    text = path.read_text(encoding="utf-8")
    assert warm.rehearse(taught.course, [NAME]) == []
    path.write_text(text.replace("assert square(3) == 9", "assert True or square(3)"))
    (complaint,) = warm.rehearse(taught.course, [NAME])
    assert "square-seen" in complaint and "untouched release gets 1 points" in complaint
    assert read_journal(taught) == {}

"""Grading a class: what is done again and what is not, how it stops, and what it refuses."""

import importlib.abc
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from nbgrader.api import Gradebook

from autograder import __main__ as command_line
from autograder.classroom import grade as grading_module
from autograder.classroom import warm
from autograder.classroom.classes import Class
from autograder.classroom.grade import grade
from autograder.classroom.journal import read_journal
from autograder.common.results import Flag
from autograder.isolation.outcomes import Doubtful, Lost
from autograder.judge.assignment import Assignment
from autograder.judge.parcel import Parcel, Place, collect
from tests.sandbox.shared import secretive
from tests.small_course import ANSWERS, NAME, RIGHT, by_hand, hand_in, make_class, scores

linux = pytest.mark.skipif(sys.platform != "linux", reason="grading needs Linux")


@pytest.fixture
def taught(tmp_path: Path) -> Class:
    """The small class, handed in and not graded."""
    return make_class(tmp_path)


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


def lose(
    patch: pytest.MonkeyPatch, lost: Callable[[bytes], bytes | Lost], whose: str = "ada"
) -> None:
    """Have the process lost that grades somebody's work."""
    real = warm.Warm.run

    def run(self: Any, tasks: Any) -> Iterator[Any]:
        for task, outcome in real(self, tasks):
            yield task, lost(outcome) if task.student == whose else outcome

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
def test_who_is_in_doubt_writes_no_line_of_his_own(taught: Class, monkeypatch: pytest.MonkeyPatch):
    name = "x\nnot graded: ada"
    hand_in(taught.course.root, name, RIGHT)
    lose(monkeypatch, Doubtful, name)
    said = grade(taught, [NAME], students=[name], progress=False).words()
    assert f"{grading_module.IN_DOUBT}: x\\x0anot graded: ada/{NAME}\nRun" in said


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
@pytest.mark.parametrize("name", ["table.csv", "notes.txt"])
def test_what_a_person_graded_waits_again_if_a_file_that_is_asked_for_changed(
    taught: Class, name: str
):
    (taught.course.root / "source" / NAME / "rules.toml").write_text('[files]\nallow = ["*.csv"]\n')
    beside = taught.submission("ada", NAME) / name
    beside.write_text("1")
    grade(taught, [NAME], progress=False)
    by_hand(taught.course.root, "ada", 1.5)
    beside.write_text("2")
    (beside.parent / "submission_secret.txt").write_text("b" * 32)  # it was handed in once more
    assert grade(taught, [NAME], progress=False).graded == 1
    with Gradebook(taught.database) as book:
        row: Any = book.find_grade("why", "numbers", NAME, "ada")
        assert (row.manual_score, row.needs_manual_grade) == (1.5, name == "table.csv")


GRADE_ONE = warm.grade_one


class _Refuses(importlib.abc.MetaPathFinder):
    """Lets no module of the grader's be imported."""

    def find_spec(self, name: str, *_: object) -> None:
        assert not name.startswith("autograder."), f"{name} was not imported before the fork"


def _grade_and_import_nothing(state: Any, *task: Any, **named: Any) -> bytes:
    sys.meta_path.insert(0, _Refuses())
    return GRADE_ONE(state, *task, **named)


@linux
def test_a_worker_finds_all_that_grades_imported(taught: Class, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(warm, "grade_one", _grade_and_import_nothing)
    assert grade(taught, [NAME], students=["ada"], progress=False).graded == 1
    assert scores(taught) == {"ada": 6}


PAGES = """
import mmap, struct
file, kept = open("/usr/bin/env", "rb"), []
def alone():  # whether each page of a file is this process's alone
    held = mmap.mmap(file.fileno(), 4096 * 8, prot=mmap.PROT_READ)
    [held[4096 * page] for page in range(8)]
    line = [line for line in open("/proc/self/maps") if "/usr/bin/env" in line][-1]
    first = int(line.split("-")[0], 16) // 4096
    with open("/proc/self/pagemap", "rb", 0) as told:
        told.seek(8 * first)
        return [entry >> 56 & 1 for entry in struct.unpack("8Q", told.read(64))]
def square(x):
    for page in range(8) if x == -5 else ():
        if 5 >> page & 1:
            kept.append(mmap.mmap(file.fileno(), 4096, prot=mmap.PROT_READ, offset=4096 * page))
            kept[-1][0]
    return x * x
"""


@linux
def test_no_page_of_a_process_that_met_a_hidden_test_tells_another_what_that_asked(taught: Class):
    third = "def third(x):\n    raise ValueError(alone())"
    hand_in(taught.course.root, "ada", {"square": PAGES, "third": third})
    grade(taught, [NAME], students=["ada"], progress=False)
    (notebook,) = read_journal(taught)["ada", NAME].notebooks
    told = {one.test: one.told for one in notebook.verdicts}["third-values"]
    assert "[0, 1, 0, 1" not in told and "ValueError" in told

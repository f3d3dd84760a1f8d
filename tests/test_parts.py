"""Parts of a task: what is said of them, and what becomes of a test that is not to be run again."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from autograder.common.results import Flag, Result
from autograder.isolation.fork_server import ForkServer
from autograder.isolation.parts import HEAD, LONGEST, MOST, UNDER_WAY, Parts, Progress
from autograder.judge import attempts, grading
from autograder.judge.intake import read_submission
from tests.judge.small_course import SETUP, Task

Grade = Callable[..., Result]

TEST = """\
assert square(3) == 9
### BEGIN HIDDEN TESTS
assert sum(range(square(4) + 1)) == 136
### END HIDDEN TESTS
"""
PARTS = [
    ("setup", SETUP),
    ("square", "def square(x):\n    return x * x"),
    ("t_seen", "assert square(2) == 4", 1),
    ("t_both", TEST, 2),
    ("t_more", "assert square(5) == 25", 4),
    ("look", "table = list(range(square(3)))"),
    ("add", "def add(xs):\n    return sum(xs)"),
    ("t_add", "assert add([1, 2]) == 3", 8),
    ("t_table", "assert add(table) == 36", 16),
]


@pytest.fixture
def grade(tmp_path: Path, open_fork_server: ForkServer, monkeypatch: pytest.MonkeyPatch) -> Grade:
    """grade(without, **answers): the result of these answers without these parts."""
    made = Task(tmp_path, open_fork_server, PARTS, 10.0)

    def without_parts(without: dict[str, str], **answers: str) -> Result:
        def graded(assignment: Any, folder: Path, student: str, *rest: Any) -> Result:
            found = read_submission(folder, student, assignment)
            parts = Parts(None, without)
            return grading.grade_submission(assignment, found, *rest, parts=parts)

        monkeypatch.setattr(grading, "grade", graded)
        return made.grade(**answers)

    return without_parts


def test_what_a_worker_says_of_parts_is_bounded():
    def said(name: bytes) -> bytes:
        return HEAD.pack(UNDER_WAY, len(name)) + name

    progress, heard = Progress(), bytearray(said(b"one") + said(b"two")[:-1])
    progress.take_from(heard)
    assert (progress.name, bytes(heard)) == ("one", said(b"two")[:-1])
    heard += b"o" + HEAD.pack(b"R", 1) + b"x"
    progress.take_from(heard)
    assert (progress.name, bytes(heard)) == ("two", HEAD.pack(b"R", 1) + b"x")
    long = bytearray(said(bytes(LONGEST + 1)))
    progress.take_from(long)
    assert long == said(bytes(LONGEST + 1))
    many = bytearray(said(b"") * (MOST + 10))
    progress.take_from(many)
    assert len(many) == 12 * len(said(b""))


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("timeout", "Your code did not finish in time."),
        ("died", "Your code ended the process in which it was tested."),
    ],
)
def test_a_test_that_is_left_out_costs_itself_alone(grade: Grade, kind: Any, told: str):
    result = grade({"small/t_both": kind})
    verdicts = {one.test: one for one in result.notebooks[0].verdicts}
    lost = verdicts.pop("t_both")
    assert (lost.status, lost.score, lost.hidden, lost.told) == (kind, 0, True, told)
    assert {test: one.said for test, one in verdicts.items()} == dict.fromkeys(verdicts, "")
    assert (kind, "small/t_both") in [(flag.kind, flag.where) for flag in result.flags]


def test_a_test_that_is_left_out_is_run_in_no_other_way_either(
    grade: Grade, monkeypatch: pytest.MonkeyPatch
):
    ran: list[str] = []
    real = attempts.run_test

    def run_test(student: Any, cell: Any, *rest: Any, **named: Any) -> Any:
        ran.append(cell.grade_id)
        return real(student, cell, *rest, **named)

    monkeypatch.setattr(attempts, "run_test", run_test)
    # what else fails is run once more beside a reference that stands in, and a changed module
    wrong = {"square": "def square(x):\n    return 7", "look": "math.pi = 3"}
    result = grade({"small/t_both": "timeout", "small/t_add": "died"}, **wrong)
    scores = {one.test: one.score for one in result.notebooks[0].verdicts}
    assert scores == {"t_seen": 0, "t_both": 0, "t_more": 0, "t_add": 0, "t_table": 16}
    assert ran.count("t_table") > 1
    assert not {"t_both", "t_add"} & set(ran)


def test_a_cell_that_is_left_out_costs_what_needs_it(grade: Grade):
    result = grade({"small/cell 6": "timeout"})
    scores = {one.test: one.score for one in result.notebooks[0].verdicts}
    assert scores == {"t_seen": 1, "t_both": 2, "t_more": 4, "t_add": 8, "t_table": 0}
    words = {one.test: one.told for one in result.notebooks[0].verdicts}["t_table"]
    assert "table is made by a cell that calls your code" in words
    assert Flag("timeout", "small/cell 6", "it took too long") in result.flags

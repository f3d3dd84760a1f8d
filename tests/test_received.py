"""What comes back from the process that read a submission decides its points, and no more."""

import copy
import json
import math
import random
from collections.abc import Callable
from typing import Any

import pytest

from autograder.common.results import Flag, NotebookResult, Result, Verdict
from autograder.judge.assignment import Assignment, read_assignment
from autograder.judge.received import Refused, received, sent
from tests.hostile.course import CHAPTER, POINTS, write_course


@pytest.fixture(scope="module")
def assignment(tmp_path_factory: pytest.TempPathFactory) -> Assignment:
    """A small one."""
    return read_assignment(write_course(tmp_path_factory.mktemp("course") / "c").assignment)


@pytest.fixture
def result() -> Result:
    """A result as it should be."""
    verdicts = tuple(
        Verdict(test, "passed", float(points), float(points), told="well done", seconds=0.5)
        for test, points in POINTS.items()
    )
    notebook = NotebookResult(
        CHAPTER,
        verdicts,
        answers={"square": "def square(x): ..."},
        outputs={"square": "printed"},
        extra=(("square", "code", "1 + 1"),),
        notes=("odd",),
        by_tests=("graded without that",),
    )
    return Result("ada", CHAPTER, "key", (notebook,), (Flag("file", "x", "a link"),), seconds=1.0)


def test_what_was_sent_is_received(assignment: Assignment, result: Result):
    assert received(sent(result), "ada", "key", assignment) == result


def changed(result: Result, change: Callable[[dict[str, Any]], object]) -> bytes:
    """The result's bytes after a change."""
    told = json.loads(sent(result))
    change(told)
    return json.dumps(told).encode()


def test_whose_it_is_and_what_it_is_is_known_here(assignment: Assignment, result: Result):
    lie = {"student": "bob", "assignment": "final", "key": "forged"}
    found = received(changed(result, lambda told: told.update(lie)), "ada", "key", assignment)
    assert (found.student, found.assignment, found.key) == ("ada", CHAPTER, "key")


@pytest.mark.parametrize("score", [1e9, -1, math.nan, math.inf, "2", True, None, [2]])
def test_a_score_beyond_what_can_be_earned_is_refused(
    assignment: Assignment, result: Result, score: Any
):
    def forge(told: dict[str, Any]) -> None:
        told["notebooks"][0]["verdicts"][0] |= {"score": score, "points": 1e9}

    with pytest.raises(Refused):
        received(changed(result, forge), "ada", "key", assignment)


def test_points_are_the_tests(assignment: Assignment, result: Result):
    data = changed(result, lambda told: told["notebooks"][0]["verdicts"][0].update(points=1e9))
    (notebook,) = received(data, "ada", "key", assignment).notebooks
    assert {v.test: v.points for v in notebook.verdicts} == POINTS


def test_a_test_of_which_nothing_came_is_0_and_named(assignment: Assignment, result: Result):
    data = changed(result, lambda told: told["notebooks"][0]["verdicts"].pop())
    (notebook,) = received(data, "ada", "key", assignment).notebooks
    last = notebook.verdicts[-1]
    assert (last.test, last.status, last.score) == ("t_gate", "test-error", 0)
    assert len(notebook.verdicts) == len(POINTS)


def test_tests_and_cells_that_there_are_not_are_left_out(assignment: Assignment, result: Result):
    def forge(told: dict[str, Any]) -> None:
        notebook = told["notebooks"][0]
        notebook["verdicts"].append({**notebook["verdicts"][0], "test": "t_more"})
        notebook["answers"] |= {"../../etc/passwd": "x", "t_square": "x", "": "x"}
        told["notebooks"].append({**notebook, "name": "../other"})

    found = received(changed(result, forge), "ada", "key", assignment)
    assert found == result


@pytest.mark.parametrize(
    "change",
    [
        lambda told: told.update(notebooks={}),
        lambda told: told.update(notebooks=[]),
        lambda told: told.update(flags=[{"kind": "praise", "where": "", "words": ""}]),
        lambda told: told.update(reason=7),
        lambda told: told.update(seconds=10**400),
        lambda told: told["notebooks"][0].update(extra=[["nowhere", "code", "x"]]),
        lambda told: told["notebooks"][0].update(extra=[["square", "html", "x"]]),
        lambda told: told["notebooks"][0].update(notes=[["x"]]),
        lambda told: told["notebooks"][0].update(by_tests=[["x"]]),
        lambda told: told["notebooks"][0].update(answers=["x"]),
        lambda told: told["notebooks"][0]["verdicts"][0].update(status="excellent"),
        lambda told: told["notebooks"][0]["verdicts"][0].update(told={"html": "x"}),
    ],
)
def test_what_is_no_result_is_refused(
    assignment: Assignment, result: Result, change: Callable[[dict[str, Any]], object]
):
    with pytest.raises(Refused):
        received(changed(result, change), "ada", "key", assignment)


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"null", b"[" * 100_000, b"\xff", b'{"a": 1}'])
def test_bytes_that_are_no_result_are_refused(assignment: Assignment, data: bytes):
    with pytest.raises(Refused):
        received(data, "ada", "key", assignment)


def test_long_texts_are_cut_and_labels_are_labels(assignment: Assignment, result: Result):
    def forge(told: dict[str, Any]) -> None:
        told["notebooks"][0]["verdicts"][0] |= {
            "told": "x" * 10**6,
            "read": "javascript:alert(1)//",
        }
        told["notebooks"][0]["answers"]["square"] = "x" * 10**6

    (notebook,) = received(changed(result, forge), "ada", "key", assignment).notebooks
    assert len(notebook.verdicts[0].told) == 20_000
    assert notebook.verdicts[0].read == ""
    assert len(notebook.answers["square"]) == 200_000


def test_long_lists_are_cut_and_cost_nothing(assignment: Assignment, result: Result):
    def forge(told: dict[str, Any]) -> None:
        notebook = told["notebooks"][0]
        notebook |= {"notes": ["odd"] * 100_000, "extra": notebook["extra"] * 3000}
        told["flags"] *= 3000

    found = received(changed(result, forge), "ada", "key", assignment)
    (notebook,) = found.notebooks
    assert len(notebook.notes) == len(notebook.extra) == len(found.flags) == 2000
    assert notebook.verdicts == result.notebooks[0].verdicts


def test_nothing_but_a_result_or_a_refusal_comes_out(assignment: Assignment, result: Result):
    random.seed(1)
    whole = json.loads(sent(result))
    for _ in range(2000):
        told = copy.deepcopy(whole)
        _shake(told)
        try:
            found = received(json.dumps(told).encode(), "ada", "key", assignment)
        except Refused:
            continue
        for verdict in found.notebooks[0].verdicts:
            assert 0 <= verdict.score <= POINTS[verdict.test]


def _shake(told: Any) -> None:
    """Put something else into one place."""
    while True:
        keys = list(told) if isinstance(told, dict) else range(len(told))
        if not keys:
            return
        key = random.choice(list(keys))
        if isinstance(told[key], dict | list) and told[key] and random.random() < 0.8:
            told = told[key]
            continue
        told[key] = random.choice([None, -1, 1e308, "x", [], {}, [[]], True, {"test": "t_gate"}])
        return

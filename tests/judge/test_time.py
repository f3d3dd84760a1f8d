"""One submission's time, and what is told when something breaks."""

import os
import signal
import weakref
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

from autograder.bridge.line import Gone
from autograder.bridge.stand_ins import Remote
from autograder.common.course import CourseError
from autograder.isolation.clock import Clock
from autograder.isolation.outcomes import Unwell
from autograder.judge import attempts, budget, grading, work
from autograder.judge.space import alarm
from tests.judge.small_course import (
    ALL,
    CHAIN,
)


def test_what_was_found_when_the_time_is_over_counts(task: Any, monkeypatch: Any) -> None:
    parts = [
        ("first", "def first():\n    return 1"),
        ("t_first", "assert first() == 1", 1),
        ("second", "def second():\n    return 2"),
        ("t_second", "assert second() == 2", 1),
        ("third", "def third():\n    return 3"),
        ("t_third", "assert third() == 3", 1),
    ]
    made = task(parts)
    short = budget.Budget()
    run = attempts.run_test

    def over_after_the_first(student: Any, cell: Any, *rest: Any, **more: Any) -> Any:
        found = run(student, cell, *rest, **more)
        short.until = 0.0
        return found

    monkeypatch.setattr(attempts, "run_test", over_after_the_first)
    monkeypatch.setattr(grading, "Budget", lambda seconds: short)
    verdicts = made.verdicts()
    assert [verdict.score for verdict in verdicts.values()] == [1, 0, 0]
    assert verdicts["t_third"].status == "timeout"
    assert budget.IN_ALL in verdicts["t_third"].told


def test_what_ran_once_is_not_repeated_when_the_time_for_that_is_spent(
    task: Any, monkeypatch: Any
) -> None:
    made = task(CHAIN)
    spent = budget.Budget(600)
    spent.spare = 0.0
    monkeypatch.setattr(grading, "Budget", lambda seconds: spent)
    spawned = []
    spawn = made.fork_server.spawn
    monkeypatch.setattr(
        made.fork_server, "spawn", lambda **more: spawned.append(1) or spawn(**more)
    )
    wrong = {name: f"def {name}(x):\n    return None" for name in ("square", "total")}
    assert made.scores(**wrong) == {"t_square": 0, "t_norm": 0, "t_total": 0}
    assert len(spawned) == 1


def test_words_that_are_not_found_in_time_cost_no_points(task: Any, monkeypatch: Any) -> None:
    def endless(*_: Any, **__: Any) -> None:
        while True:
            pass

    monkeypatch.setattr(grading, "told", endless)
    monkeypatch.setattr(grading, "WORDS_SECONDS", 0.1)
    verdicts = task(CHAIN).verdicts(square="def square(x):\n    return None")
    assert [one.status for one in verdicts.values()] == ["failed", "passed", "passed"]
    assert verdicts["t_square"].told == "A test failed."


def test_a_question_that_breaks_the_engine_costs_itself_alone(task: Any, monkeypatch: Any) -> None:
    made = task(CHAIN)
    group = work.Work._group

    def broken(self: Any, group_: Any, tests: Any, *rest: Any) -> Any:
        if "t_norm" in tests:
            raise RuntimeError("a slip of ours")
        return group(self, group_, tests, *rest)

    monkeypatch.setattr(work.Work, "_group", broken)
    result = made.grade()
    verdicts = {v.test: v for v in result.notebooks[0].verdicts}
    assert {test: v.score for test, v in verdicts.items()} == ALL | {"t_norm": 0}
    assert verdicts["t_norm"].status == "test-error"
    assert any("a slip of ours" in flag.words for flag in result.flags)


def test_a_sandbox_that_cannot_be_had_is_no_fault_of_the_answers(
    task: Any, monkeypatch: Any
) -> None:
    made = task(CHAIN)

    def gone(**_: Any) -> Any:
        raise CourseError("The warm process for students' code has ended; grade again.")

    monkeypatch.setattr(made.fork_server, "spawn", gone)
    with pytest.raises(Unwell, match="has ended"):
        made.grade()


def test_words_that_cannot_be_found_cost_no_points(task: Any, monkeypatch: Any) -> None:
    def speechless(*_: Any, **__: Any) -> Any:
        raise ValueError("no words")

    monkeypatch.setattr(grading, "told", speechless)
    assert task(CHAIN).scores() == ALL


def _ring(*_: Any) -> None:
    os.kill(os.getpid(), signal.SIGALRM)


def _stand_in() -> tuple[Any, Any]:
    made: Any = object.__new__(Remote)
    made.peer, made.number = SimpleNamespace(drop=_ring), 7
    return made, None


def _watched() -> tuple[Any, Any]:
    made = set[int]()
    return made, weakref.ref(made, _ring)


@pytest.mark.parametrize("make", [_stand_in, _watched])
def test_the_end_of_the_time_is_not_lost_where_something_is_thrown_away(make: Any) -> None:
    told: list[Any] = []
    made, watch = make()
    with mock.patch("sys.unraisablehook", told.append), alarm(Clock(-1)):
        del made  # what is raised here is lost
        with pytest.raises(Gone, match="too long"):
            _ring()
    assert not told
    del watch

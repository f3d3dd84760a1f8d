"""The release tries each test once more with the reference doubted as a student's answer is."""

from dataclasses import replace
from typing import Any

import pytest

from autograder.judge import rehearsal
from autograder.judge.heard import Heard, heard

SUIT = "import enum\nclass Suit(enum.Enum):\n    H = 1\ndef f(): return Suit.H"


def complaints(task: Any, reference: str, test: str) -> list[str]:
    made = task([("own", reference), ("t_own", test, 1)])
    return rehearsal.rehearse(made.assignment, made.fork_server).complaints


def as_values(*of: Any) -> Heard:
    """As if what is kept of the reference took each object for a value."""
    found = heard(*of)
    for test, calls in found.references.items():
        found.references[test] = tuple(replace(call, outcome=1) for call in calls)
    return found


def test_one_that_a_right_answer_would_lose_is_named(
    task: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rehearsal, "heard", as_values)
    (words,) = complaints(task, SUIT, "assert f() is Suit.H")
    assert "test t_own: the reference passes it, and would not as a student's answer" in words
    assert "your code gave a Suit where a value was expected" in words


@pytest.mark.parametrize(
    ("reference", "test"),
    [
        (SUIT, "assert f() is Suit.H"),
        ("n = 0\ndef f():\n    global n\n    n += 1\n    return n", "assert (f(), f()) == (1, 2)"),
        ("import random\ndef f(): return random.random()", "assert 0 <= f() < 1"),
        ("class Box:\n    def __eq__(self, n): return n == 3", "assert Box() == 3"),
        ("import time\ndef f(): return time.time()", "assert f() <= f()"),
    ],
)
def test_what_a_reference_may_do_a_students_may(task: Any, reference: str, test: str) -> None:
    assert complaints(task, reference, test) == []

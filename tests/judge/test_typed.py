"""An answer's `input()` gets what a test's function gives that stands in the place of Python's."""

from typing import Any

import pytest

from autograder.judge import rehearsal
from tests.judge.small_course import rehearsed

ANSWER = """def twice(): return 2 * int(input("n? "))
def total():
    found = 0
    while (line := input()) != "":
        found += int(line)
    return found
def asks():
    print("Hello", input("Who? "))
"""
ANSWERS = {
    "a name of the test's": "input = lambda ask='': '5'\nassert twice() == 10",
    "a function": """lines = iter(["1", "2", ""])
def input(ask=""):
    return next(lines)
assert total() == 3 and next(lines, "all read") == "all read" """,
    "builtins": """import builtins
before, builtins.input = builtins.input, lambda ask="": "7"
try:
    assert twice() == 14
finally:
    builtins.input = before""",
    "a patch": """from unittest.mock import patch
with patch("builtins.input", side_effect=["1", "4", ""]) as asked:
    assert total() == 5
assert asked.call_count == 3""",
    "what was asked": """asked = []
def input(*ask):
    asked.append(ask)
    return "2"
assert twice() == 4 and asked == [("n? ",)]""",
    "with what is printed": """import io
from contextlib import redirect_stdout
input = lambda ask: print(ask, end="") or "Ada"
with redirect_stdout(io.StringIO()) as caught:
    asks()
assert caught.getvalue() == "Who? Hello Ada\\n" """,
}
WRONG = [
    "twice = total = asks = lambda: None",
    "def twice(): return 2 * int(input())\ndef total(): return int(input())\ndef asks(): input()",
    "def twice(): return int(input('n? '))\ntotal = twice\ndef asks(): print('Hello Ada')",
]
PASS = {"a name of the test's": [WRONG[1]], "builtins": [WRONG[1]]}  # where nothing else is asked


@pytest.mark.parametrize("way", ANSWERS)
def test_it_answers_what_an_answer_asks(task: Any, way: str) -> None:
    made = rehearsed(task([("own", ANSWER), ("t_own", ANSWERS[way], 1)]))
    assert made.scores(own=ANSWER) == {"t_own": 1}
    for wrong in WRONG:
        assert made.scores(own=wrong) == {"t_own": wrong in PASS.get(way, [])}


def test_it_is_there_for_that_test_alone(task: Any) -> None:
    first, later = ANSWERS["builtins"], "assert twice() == 14"
    made = task([("own", ANSWER), ("t_one", first, 1), ("t_two", later, 1)])
    (complaint,) = rehearsal.rehearse(made.assignment, made.fork_server).complaints
    assert "test t_two" in complaint and "nobody can answer it" in complaint

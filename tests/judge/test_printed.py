"""What an answer prints is caught by a test that catches it, as in a notebook."""

import io
import sys
from contextlib import redirect_stdout
from typing import Any

import pytest

from autograder.bridge.printed import MAX_SAID, Printed, print_here
from tests.judge.small_course import rehearsed

ANSWER = """import sys
def triangle(n):
    for row in range(1, n + 1):
        print("*" * row)
def warn(): print("careful", file=sys.stderr)
def greet(name, then):
    print("Hello", name, end="")
    then("!")
    print(" Bye")
print("at the top")
"""
CATCHES = {
    "redirect_stdout": """import io
from contextlib import redirect_stdout
with redirect_stdout(io.StringIO()) as caught:
    triangle(3)
assert caught.getvalue() == "*\\n**\\n***\\n", caught.getvalue()""",
    "sys.stdout": """import io
import sys
before, sys.stdout = sys.stdout, io.StringIO()
try:
    triangle(2)
    found = sys.stdout.getvalue()
finally:
    sys.stdout = before
assert found.split() == ["*", "**"]""",
    "stderr": """import io
from contextlib import redirect_stderr, redirect_stdout
with redirect_stderr(io.StringIO()) as caught, redirect_stdout(io.StringIO()) as out:
    warn()
assert (caught.getvalue(), out.getvalue()) == ("careful\\n", "")""",
    "in turn": """import io
from contextlib import redirect_stdout
with redirect_stdout(io.StringIO()) as caught:
    greet("Ada", lambda sign: print(sign, end=""))
assert caught.getvalue() == "Hello Ada! Bye\\n", caught.getvalue()""",
    "IPython's": """from IPython.utils.capture import capture_output
with capture_output() as caught:
    triangle(1)
assert caught.stdout == "*\\n" """,
    "later": """import io
from contextlib import redirect_stdout
triangle(4)
with redirect_stdout(io.StringIO()) as caught:
    triangle(1)
assert caught.getvalue() == "*\\n" """,
}
WRONG = [
    ANSWER.replace("range(1, n + 1)", "range(n)")
    .replace('"careful"', '"care"')
    .replace(" Bye", ""),
    "triangle = warn = greet = lambda *given: None",
    "triangle = warn = greet = lambda *given: '*\\n**\\n***\\n'",
    'def triangle(n): print("*" * n)\nwarn = greet = lambda *given: print("careful")',
]


@pytest.mark.parametrize("way", CATCHES)
def test_a_test_catches_what_is_printed(task: Any, way: str) -> None:
    made = rehearsed(task([("own", ANSWER), ("t_own", CATCHES[way], 1)]))
    assert made.scores(own=ANSWER) == {"t_own": 1}
    rights = WRONG[3:] if way in ("IPython's", "later") else []  # one star is asked there
    for wrong in WRONG:
        assert made.scores(own=wrong) == {"t_own": wrong in rights}


def test_what_is_no_text_is_not_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    odd: list[Any] = [None, 3, "text", [3], [["stdout"]], [["stdin", "x"]], [["stdout", 3]]]
    odd += [{"stdout": "x"}, [["__class__", "x"]], [[["stdout"], "x"]], [["stdout", "x", "y"]]]
    with redirect_stdout(io.StringIO()) as caught:
        for told in odd:
            print_here(told)
        print_here([["stdout", "this"]])
        monkeypatch.setattr(sys, "stderr", None)
        print_here([["stderr", "lost"]])
    assert caught.getvalue() == "this"


def test_no_message_holds_more_than_it_may() -> None:
    printed = Printed()
    for n in range(10_000):
        printed.note(("stdout", "stderr")[n % 2], "0123456789")
    told: dict[str, Any] = {}
    printed.leave(told)
    assert sum(len(text) for _, text in told["said"]) == MAX_SAID
    printed.leave(again := {})
    assert again == {}

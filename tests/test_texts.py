"""No library runs a text of an answer's where the tests run."""

import subprocess
import sys

import pytest

SCRIPT = """
import pickle, timeit, sympy
from autograder.judge.texts import run_no_texts
from autograder.judge.space import BrokenCell

run_no_texts(lambda: ())
run_no_texts(lambda: ["x**2", "pass", "numpy"])
from sympy import parse_expr

x = sympy.Symbol("x")
try:
    found = {call}
except BrokenCell as error:
    found = "refused"
print(found)
"""


@pytest.mark.parametrize(
    ("call", "found"),
    [
        ("sympy.sympify('x**3')", "refused"),
        ("sympy.S('x**3')", "refused"),
        ("sympy.parse_expr('x**3')", "refused"),
        ("parse_expr(s='x**3')", "refused"),
        ("sympy.lambdify('x', 'x**3')(2)", "refused"),
        ("timeit.timeit('print(1)', number=1)", "refused"),
        ("pickle.loads(b'N.')", "refused"),
        ("pickle.Unpickler(open('/dev/null', 'rb'))", "refused"),
        ("type('Own', (pickle.Unpickler,), {})(None)", "refused"),
        ("type('Own', (pickle.Unpickler,), {}).__name__", "Own"),
        ("sympy.sympify('x**2')", "x**2"),
        ("sympy.sympify(4) + x", "x + 4"),
        ("sympy.lambdify(x, x**3, modules='numpy')(2)", "8"),
        ("timeit.timeit('pass', number=1) < 1", "True"),
    ],
)
def test_only_texts_of_the_instructors_are_evaluated(call: str, found: str) -> None:
    command = [sys.executable, "-c", SCRIPT.replace("{call}", call)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == found, done.stderr

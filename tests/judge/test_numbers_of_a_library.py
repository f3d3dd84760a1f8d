"""A number of a library's, as SymPy's, says which number it is where the reference has such."""

from typing import Any

import pytest

from autograder.judge import rehearsal

SYMPY = ("look", "import sympy as sp")
HALF = "def half(n):\n    return sp.Rational(n, 2)"
TABLE = "table = sp.Matrix([[0, 1], [-2, 3]])"
ASKS_HALF = "assert float(half(3)) == 1.5 and int(half(4)) == 2 and abs(complex(half(1))) == 0.5"
ASKS_TABLE = "assert [float(table[i, j]) for i in (0, 1) for j in (0, 1)] == [0, 1, -2, 3]"


@pytest.mark.parametrize(
    ("answer", "test", "wrong"),
    [(HALF, ASKS_HALF, HALF.replace("2)", "3)")), (TABLE, ASKS_TABLE, TABLE.replace("-2", "2"))],
    ids=["a number", "a matrix"],
)
def test_a_number_of_a_librarys_is_turned_into_a_plain_one(
    task: Any, answer: str, test: str, wrong: str
) -> None:
    made = task([SYMPY, ("own", answer), ("t_own", test, 2)])
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    assert made.scores() == {"t_own": 2}
    assert made.scores(own=wrong) == {"t_own": 0}


def test_what_a_cell_has_made_of_the_library_counts_as_well(task: Any) -> None:
    cells = [SYMPY, ("data", "x = sp.Symbol('x')"), ("own", "area = x**2 / 2")]
    made = task([*cells, ("t_own", "assert float(area.subs('x', 3)) == 4.5", 1)])
    assert made.scores() == {"t_own": 1}
    assert made.scores(own="area = x**2") == {"t_own": 0}


DOUBLE = "assert float(double(2)) == 4.0"
LYING = "class Any:\n    def __float__(self):\n        return 4.0\ndef double(n):\n    return Any()"


def test_an_object_is_no_number_where_the_reference_has_none_of_a_librarys(task: Any) -> None:
    other = [("double", "def double(n):\n    return 2 * n"), ("t_double", DOUBLE, 1)]
    made = task([SYMPY, ("own", HALF), ("t_own", ASKS_HALF, 2), *other])
    assert made.scores() == {"t_own": 2, "t_double": 1}
    assert made.scores(double=LYING) == {"t_own": 2, "t_double": 0}

"""A module's name that a student gives to something else: it has to be that, or nothing."""

from typing import Any

import pytest

RIGHT = "def total(xs):\n    found = 0\n    for x in xs: found += x\n    return found"
BY_MODULES = "def total(xs, m=sys):\n    return m.modules['buil' 'tins'].sum(xs)"
IN_LIST = "def total(xs):\n    return [sys][0].modules['builtins'].sum(xs)"
PROGRAM = (
    "def total(xs):\n    return int([os][0].popen(f'expr {xs[0]} + {xs[1]} + {xs[2]}').read())"
)
WITH_OS = "def total(xs):\n    return [sys, os][0].modules['builtins'].sum(xs)"
WITH_SYS = PROGRAM.replace("[os][0]", "[os, sys][0]")
OWN = "def total(xs):\n    found = [sys][0] - 3\n    for x in xs: found += x\n    return found"


@pytest.mark.parametrize(
    ("above", "below", "answer", "points"),
    [
        ("", "raise ValueError\nsys = 3", BY_MODULES, 0),
        ("", "raise ValueError\nsys = 3", IN_LIST, 0),
        ("", "raise ValueError\nos = 3", PROGRAM, 0),
        ("", "sys, os = 1 / 0", WITH_OS, 0),  # two names by one statement
        ("", "sys, os = 1 / 0", WITH_SYS, 0),
        ("", "from time import nothing as sys", IN_LIST, 0),
        ("", "sys = sys.nothing", BY_MODULES, 0),
        ("", "", f"sys = 1 / 0\n{IN_LIST}", 0),
        ("sys = 3", "", IN_LIST, 0),  # and the instructor's import gives it back
        ("sys = 3", "", BY_MODULES, 0),
        ("", "sys = 3", IN_LIST, 0),  # and no other look gives it back
        ("", "sys = 3", OWN, 3),
        ("", "", f"sys = 3\n{OWN}", 3),
        ("", "sys = len(sys.path) * 0 + 3", OWN, 3),
        ("", "from math import tau as sys\nsys = 3", OWN, 3),
        ("", "for sys in (1, 2, 3): pass", OWN, 3),
        ("", "with open('/dev/null'):\n    sys = 3", OWN, 3),
        ("", "if (sys := 3): pass", OWN, 3),
        ("", "first, *(sys, os) = [1, 3, 4]", OWN, 3),
        ("", "try:\n    sys = 3\nfinally:\n    pass", OWN, 3),
        ("", "for sys in (): pass", IN_LIST, 0),
        ("", "while False:\n    sys = 3", IN_LIST, 0),
        ("", "if not sys:\n    os = 3", PROGRAM, 0),
        ("", "for sys in (os.sys,): pass", IN_LIST, 0),
        ("", "for sys in {os.path.os.sys}: pass", IN_LIST, 0),
        ("", "try:\n    1 / 0\nexcept ZeroDivisionError as sys:\n    pass", IN_LIST, 0),
        ("", "", f"if True:\n    1 / 0\n    sys = 3\n{IN_LIST}", 0),
        (
            "",
            "",
            "if True:\n    def total(xs):\n        return [sys][0].modules['buil' 'tins']"
            ".sum(xs)\n    1 / 0\n    sys = 3",
            0,
        ),
    ],
)
def test_a_modules_name_given_away_is_no_way_to_the_module(
    task: Any, above: str, below: str, answer: str, points: float
) -> None:
    made = task(
        [
            ("look", "WANTED = 6"),
            ("star", "import sys\nimport os"),
            ("total", RIGHT),
            ("t_total", "assert total([1, 2, 3]) == WANTED", 3),
        ]
    )
    made.added = {id: cell for id, cell in (("look", above), ("star", below)) if cell}
    assert made.scores(total=answer) == {"t_total": points}

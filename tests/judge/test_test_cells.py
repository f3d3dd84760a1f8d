"""What a cell of tests may do, and how it ends."""

import sys
from typing import Any

import pytest

from autograder.judge import testing
from tests.judge.small_course import (
    CHAIN,
    heard_of,
)

WITH_UNITTEST = """\
import unittest
class Roman(unittest.TestCase):
    def test_one(self):
        self.assertEqual(roman(1), "I")
    def test_four(self):
        with self.subTest(4):
            self.assertEqual(roman(4), "IV")
result = unittest.TestResult()
unittest.defaultTestLoader.loadTestsFromTestCase(Roman).run(result)
assert result.wasSuccessful(), "roman is wrong"
"""


@pytest.mark.parametrize(
    "raised",
    [
        "unittest.SkipTest('later')",
        "unittest.case._ShouldStop()",
        "unittest.case._UnexpectedSuccess()",
        "type('Later', (unittest.SkipTest,), {})()",
        "type('Later', (unittest.SkipTest, ValueError), {})()",
    ],
)
def test_no_answer_ends_a_test_as_its_runner_would(task: Any, raised: str) -> None:
    right = "def roman(n):\n    return {1: 'I', 4: 'IV'}[n]"
    made = task([("roman", right), ("t_roman", WITH_UNITTEST, 2)])
    assert made.scores() == {"t_roman": 2}
    answer = f"import unittest.case\ndef roman(n):\n    raise {raised}"
    assert made.scores(roman=answer) == {"t_roman": 0}


SCALED = """\
out = scale(torch.ones(3))
assert out.shape == (3,)
assert out.allclose(3 * torch.ones(3))
"""


PASSES_FOR = "def scale(x):\n    {}\n    return {}"


HELD = {
    "namespace": ("import types", "types.SimpleNamespace(shape=x.shape, allclose={})"),
    "tuple": (
        "import collections; P = collections.namedtuple('P', 'shape allclose')",
        "P(x.shape, {})",
    ),
    "chain": ("import types", "types.SimpleNamespace(shape=x.shape, allclose=[{}])"),
}


@pytest.mark.parametrize(
    "kind", ["torch.nn.Identity", "list", "dict", "np.float64", "type('A', (), {})"]
)
@pytest.mark.parametrize("way", HELD)
def test_what_holds_a_class_is_no_value(task: Any, way: str, kind: str) -> None:
    made = task([("scale", "def scale(x):\n    return 2 * x + 1"), ("t_scale", SCALED, 2)])
    made.known = heard_of(made)
    assert made.scores() == {"t_scale": 2}
    first, value = HELD[way]
    answer = PASSES_FOR.format(first, value.format(kind))
    assert made.scores(scale=answer) == {"t_scale": 0}


def test_who_fails_what_the_reference_fails_is_not_to_blame(task: Any) -> None:
    made = task(CHAIN)
    made.known = heard_of(made)
    made.known.unable = frozenset({"t_norm"})
    wrong = {"norm": "def norm(xs):\n    return 0", "total": "def total(xs):\n    return 0"}
    verdicts = made.verdicts(**wrong)
    assert verdicts["t_norm"].status == "test-error"
    assert "no fault of yours" in verdicts["t_norm"].told
    assert verdicts["t_total"].status == "failed"
    assert made.verdicts()["t_norm"].status == "passed"


FIELD = "import collections\nField = collections.namedtuple('Field', 'name kind')\n"


def test_a_class_in_a_value_is_the_answers_where_the_reference_gives_one(task: Any) -> None:
    right = FIELD + "def fields():\n    return [Field('age', int), Field('name', str)]"
    test = "assert fields()[0].kind is int and fields()[1].kind('a') == 'a'"
    made = task([("fields", right), ("t_fields", test, 2)])
    assert made.scores() == {"t_fields": 2}
    made.known = heard_of(made)
    assert made.scores() == {"t_fields": 2}


TOTAL = """\
def total(n):
    found = 0
    for x in squares(n): found += x
    return found
"""


TEST_USES = """\
old = squares
del squares
try:
    total(3)
except NameError:
    pass
else:
    raise AssertionError('total does not use squares')
finally:
    squares = old
assert total(4) == 14
"""


def test_a_test_may_take_away_and_replace_what_an_answer_defines(task: Any) -> None:
    made = task(
        [
            ("squares", "def squares(n):\n    return [i * i for i in range(n)]"),
            ("t_squares", "assert squares(3) == [0, 1, 4]", 1),
            ("total", TOTAL),
            ("t_uses", TEST_USES, 2),
            ("t_other", "def squares(n):\n    return [1] * n\nassert total(5) == 5", 2),
        ]
    )
    full = {"t_squares": 1, "t_uses": 2, "t_other": 2}
    assert made.scores() == full
    alone = "def total(n):\n    found = 0\n    for i in range(n): found += i * i\n    return found"
    assert made.scores(total=alone) == full | {"t_uses": 0, "t_other": 0}


def test_tests_may_share_what_they_made(task: Any) -> None:
    made = task(
        [
            ("make", "def make(n):\n    return list(range(n))"),
            ("t_make", "made = make(3)\nassert made == [0, 1, 2]", 1),
            ("grow", "def grow(xs):\n    return xs + [len(xs)]"),
            ("t_grow", "made = grow(made)\nassert made == [0, 1, 2, 3]", 1),
            ("t_again", "assert grow(made)[-1] == 4", 1),
        ]
    )
    assert made.scores() == {"t_make": 1, "t_grow": 1, "t_again": 1}


def test_an_answer_cannot_count_its_calls_across_questions(task: Any) -> None:
    made = task(
        [
            ("f", "def f(x):\n    return x + 1"),
            ("t_f", "assert f(1) == 2", 1),
            ("g", "def g(x):\n    return f(x) * 2"),
            ("t_g", "assert f(1) == 2\nassert g(1) == 4", 1),
        ]
    )
    counting = (
        "calls = []\ndef f(x):\n    calls.append(x)\n    return x + 1 if len(calls) == 1 else 0"
    )
    assert made.scores(f=counting)["t_f"] == 1
    assert made.verdicts(f=counting)["t_g"].score in (0, 1)


def test_calls_of_a_visible_test_give_the_same_in_another_order(task: Any) -> None:
    made = task([("f", "def f(x):\n    return x + 1"), ("t_f", "assert f(1) == 2 == f(2) - 1", 1)])
    listed = "given = iter([2, 3])\ndef f(x):\n    return next(given, 0)"
    assert made.scores(f=listed) == {"t_f": 0}
    assert made.scores(f="seen = {}\ndef f(x):\n    return seen.setdefault(x, x + 1)") == {"t_f": 1}


def test_the_same_submission_gets_the_same_random_numbers(task: Any) -> None:
    made = task(
        [
            ("f", "def f():\n    return [random.random(), float(np.random.rand())]"),
            ("t_f", "x = f() + [random.random()]\nassert False, repr(x)", 1),
        ]
    )
    assert made.verdicts()["t_f"].said == made.verdicts()["t_f"].said


SLOW = """\
import time
class Slow:
    def __str__(self): time.sleep(1000)
    __repr__ = __str__
def f(x): return Slow()
"""


TWO = [
    ("f", "def f(x):\n    return x"),
    ("t_f", "out = f(1)\nassert out == 1, out", 1),
    ("g", "def g(x):\n    return x"),
    ("t_g", "assert g(1) == 1", 1),
]


def test_a_message_that_hangs_does_not_hold_the_grader(
    task: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(testing, "TEXT_SECONDS", 0.5)
    assert task(TWO).scores(f=SLOW) == {"t_f": 0, "t_g": 1}


@pytest.mark.parametrize("inside", ["while True: pass", "import os; os._exit(1)"])
def test_a_locked_cell_that_uses_an_answer_cannot_hang_the_grader(task: Any, inside: str) -> None:
    made = task([*TWO[:2], ("table", "made = f(5)"), *TWO[2:]], seconds=0.7)
    assert made.scores() == {"t_f": 1, "t_g": 1}
    assert made.scores(f=f"def f(x):\n    {inside}") == {"t_f": 0, "t_g": 1}


TEST_CATCHES = """\
for _ in range(10**9):
    pause = sum(range(100_000))
    try:
        f(1)
        break
    except:
        pass
"""


def test_a_test_that_catches_everything_still_ends(task: Any) -> None:
    made = task([("f", "def f(x):\n    return x"), ("t_f", TEST_CATCHES, 1)], seconds=0.7)
    assert made.scores() == {"t_f": 1}
    assert made.scores(f="def f(x):\n    while True: pass")["t_f"] == 0


IMPORTS = """\
import math as helper
def f(x): return helper.sqrt(x)
"""


def test_a_test_may_import_a_module_by_a_name_of_the_answers(task: Any) -> None:
    made = task([("f", IMPORTS), ("t_f", "import numpy as helper\nassert f(4) == 2", 1)])
    assert made.scores() == {"t_f": 1}


def test_main_is_where_a_test_runs(task: Any) -> None:
    case = "import unittest\nclass Case(unittest.TestCase):\n    def test(self): "
    run = "unittest.main(argv=[''], exit=False).result"
    made = task(
        [
            ("look", "from dataclasses import dataclass\n@dataclass\nclass Node:\n    on: 'Node'"),
            ("f", "def f(x): return x.on"),
            ("t_case", f"{case}self.assertEqual(f(Node(2)), 2)\nassert {run}.wasSuccessful()", 1),
            ("t_count", f"{case}f(Node(1))\nassert {run}.testsRun == 1", 1),
            ("t_hints", "import typing\nassert typing.get_type_hints(Node) == {'on': Node}", 1),
            ("t_import", "import __main__\nassert __main__.f(__main__.Node(3)) == 3", 1),
            (
                "t_patch",
                "import __main__\nfrom unittest import mock\n"
                "with mock.patch('__main__.g', 3, create=True):\n    assert __main__.g == 3\n"
                "assert not hasattr(__main__, 'g') and f(Node(3)) == 3",
                1,
            ),
        ]
    )
    before = sys.modules["__main__"]
    tests = ["t_case", "t_count", "t_hints", "t_import", "t_patch"]
    assert made.scores() == dict.fromkeys(tests, 1)
    assert made.scores(f="def f(x): return 1")["t_case"] == 0
    assert sys.modules["__main__"] is before

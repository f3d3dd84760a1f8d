"""What an answer leaves behind is not there for the next question."""

from typing import Any

import pytest

from tests.judge.small_course import (
    HIDDEN_PART,
    heard_of,
)

REGISTER = """class Register:
    def __init__(self):
        self.keys = set()
    def add(self, key):
        self.keys.add(key)
    def pop(self):
        return self.keys.pop() if self.keys else None
    def all(self):
        return sorted(self.keys)
REG, LOG = Register(), [1]
add, take = REG.add, REG.pop"""


def _two(hidden: str, visible: str) -> list[tuple[Any, ...]]:
    """A question whose hidden test hands something over, and another one after it."""
    return [
        ("table", REGISTER),
        ("one", "def one(key, *given):\n    return key"),
        ("t_one", "assert one('a') == 'a'" + HIDDEN_PART.format(hidden), 1),
        ("two", "def two(given):\n    return len(given)"),
        ("t_two", visible, 1),
    ]


LEAKS = "def two(given):\n    raise ValueError(repr(given))"


def test_what_an_answer_adds_by_a_call_back_is_not_there_for_the_next_question(task: Any) -> None:
    parts = _two("assert one('secret', add) == 'secret'", "assert two(REG.all()) == 0")
    tells = "def one(key, *given):\n    for add in given: add('LEAK ' + key)\n    return key"
    told = task(parts).verdicts(one=tells, two=LEAKS)["t_two"]
    assert (told.score, "LEAK" in told.told + told.said) == (0, False)


@pytest.mark.parametrize("end", ["os._exit(1)", "time.sleep(1000)", "raise MemoryError"])
def test_what_an_answer_changes_before_its_end_is_not_there_for_the_next_question(
    task: Any, end: str
) -> None:
    hidden = "assert one('secret', LOG) == 'secret'\nassert one('end') == 'end'"
    parts = _two(hidden, "assert two(LOG) == 1")
    tells = f"""import os, time
def one(key, *given):
    for log in given: log.append(key)
    if key == 'end': {end}
    return key"""
    made = task(parts, seconds=2.0)
    told = made.verdicts(one=tells, two=LEAKS)["t_two"]
    assert (told.score, "secret" in told.told + told.said) == (0, False)
    assert made.scores(one=tells) == {"t_one": 0, "t_two": 1}


def test_what_an_answer_takes_away_by_a_call_back_costs_no_other_question(task: Any) -> None:
    parts = _two("assert one('b', take) == 'b'", "assert two(REG.all()) == 1")
    parts[0] = ("table", REGISTER + "\nadd('always')")
    takes = """def one(key, *given):
    for take in given:
        while take(): pass
    return key"""
    assert task(parts, seconds=1.0).scores(one=takes)["t_two"] == 1


def test_kinds_of_named_tuples_without_end_cost_no_other_question(task: Any) -> None:
    point = "from collections import namedtuple\ndef {0}(x):\n    return namedtuple('P{1}', 'x')(x)"
    parts = [
        ("one", point.format("one", "")),
        ("t_one", "assert all(one(n).x == n for n in range(600))", 1),
        ("two", point.format("two", "Two")),
        ("t_two", "assert two(3).x == 3", 1),
    ]
    many = point.format("one", "' + str(x) + '")
    assert task(parts).scores(one=many) == {"t_one": 0, "t_two": 1}


@pytest.mark.parametrize(
    ("test", "score"),
    [
        ("def f(x):\n    if x > 2: raise AssertionError('too far')\nassert walk(f) == 3", 0),
        ("def f(x):\n    assert x < 3, 'no AssertionError'\nassert walk(f) == 3", 0),
        ("def f(x):\n    assert x < 3\ntry: walk(f)\nexcept (ValueError, AssertionError): pass", 1),
        (
            "import unittest\ndef f(x):\n    assert x < 3\nt = unittest.TestCase()\n"
            "with t.assertRaises(AssertionError):\n    walk(f)\n    f(5)",
            1,
        ),
    ],
)
def test_a_claim_that_an_answer_keeps_to_itself_counts_unless_the_test_looks_for_it(
    task: Any, test: str, score: float
) -> None:
    parts = [
        ("walk", "def walk(f):\n    for x in range(3): f(x)\n    return 3"),
        ("t_walk", "assert walk(abs) == 3", 1),
        ("t_far", test, 1),
    ]
    keeps = """def walk(f):
    for x in range(4):
        try: f(x)
        except Exception: pass
    return 3"""
    assert task(parts).scores(walk=keeps)["t_far"] == score


@pytest.mark.parametrize("kind", ["Exception", "AssertionError", "(ValueError, BaseException)"])
def test_a_name_of_an_answer_catches_no_claim_of_the_test(task: Any, kind: str) -> None:
    raises = "def f(x):\n    if x < 3: raise TooSmall(x)"
    right = f"class TooSmall(ValueError): pass\n{raises}"
    test = "try:\n    f(1)\n    assert False, 'nothing raised'\nexcept TooSmall:\n    pass"
    made = task([("f", right), ("t_f", test, 1)])
    assert made.scores() == {"t_f": 1}
    assert made.scores(f=f"class TooSmall(Exception): pass\n{raises}") == {"t_f": 1}
    assert made.scores(f=f"TooSmall = ValueError\n{raises}") == {"t_f": 1}
    assert made.scores(f=f"TooSmall = {kind}\ndef f(x): pass") == {"t_f": 0}


def test_a_name_that_is_a_broad_class_with_the_reference_is_one_with_an_answer(task: Any) -> None:
    both = "Any = Exception\ndef f(): raise Any"
    test = "try:\n    f()\nexcept Any as e:\n    assert type(e) is Exception"
    made = task([("f", both), ("t_f", test, 1)])
    assert made.scores() == {"t_f": 1}
    assert made.scores(f=both + "(1)") == {"t_f": 1}


def test_an_answer_does_not_choose_by_its_draws_what_a_test_draws(task: Any) -> None:
    plain = "def plain(x):\n    return x"
    noisy = "def noisy(x):\n    return x + random.random()"
    same = (
        "random.seed(1)\ngot = [(plain(0), random.random())[1] for _ in range(5)]\n"
        "random.seed(1)\nassert got == [random.random() for _ in range(5)]"
    )
    on = "random.seed(1)\nnoisy(0)\none = random.random()\nrandom.seed(1)\n"
    on += "assert one != random.random()"
    tests = [HIDDEN_PART.format(claims) for claims in (same, on)]
    parts = [("plain", plain), ("t_plain", tests[0], 1), ("noisy", noisy), ("t_noisy", tests[1], 1)]
    made = task(parts)
    made.known = heard_of(made)
    assert made.scores() == {"t_plain": 1, "t_noisy": 1}
    draws = "def plain(x):\n    if random.random() < 0.5: random.random()\n    return x"
    assert made.scores(plain=draws, noisy="def noisy(x):\n    return x") == made.scores()


ROOT = "def root(x):\n    if x < 0: raise ValueError(x)\n    return x ** 0.5"


CATCHES_ALL = "try:\n    root(-1)\n    raised = False\nexcept:\n    raised = True\nassert raised"


STAYS_OUT = {"died": "os._exit(3)", "timeout": "\n        while True: pass"}


@pytest.mark.parametrize("end", STAYS_OUT)
def test_a_process_that_is_lost_passes_no_test_that_catches_everything(task: Any, end: str) -> None:
    made = task([("root", ROOT), ("t_root", CATCHES_ALL, 1)], 0.7)
    verdict = made.verdicts(root=f"import os\ndef root(x):\n    if x < 0: {STAYS_OUT[end]}")[
        "t_root"
    ]
    assert (verdict.status, verdict.score) == (end, 0)
    assert made.scores() == {"t_root": 1}


RANDOM_STATES = {
    "random.getstate()": "random.random()",
    "random.getstate()[1]": "random.seed(0)",
    "np.random.get_state()[2]": "np.random.random()",
    "torch.get_rng_state().tolist()": "torch.rand(())",
}


@pytest.mark.parametrize("state", RANDOM_STATES)
def test_an_answer_that_draws_leaves_no_state_that_a_test_looks_at(task: Any, state: str) -> None:
    same = f"plain(1)\nbefore = {state}\nassert plain(1) == plain(1)\nassert {state} == before"
    made = task([("plain", "def plain(x):\n    return x"), ("t_plain", same, 1)])
    made.known = heard_of(made)
    assert made.scores() == {"t_plain": 1}
    draws = f"def plain(x):\n    {RANDOM_STATES[state]}\n    return x"
    assert made.scores(plain=draws) == {"t_plain": 0}
    own = "def plain(x):\n    random.Random(1).random(); torch.rand((), generator=G)\n    return x"
    assert made.scores(plain=f"G = torch.Generator()\n{own}") == {"t_plain": 1}


def test_a_module_that_a_cell_calls_beside_a_wrong_answer_is_not_made_by_it(task: Any) -> None:
    parts = [
        ("one", "def one(x):\n    return x + 1"),
        ("t_one", "assert one(1) == 2", 1),
        ("look", "torch.manual_seed(one(0))"),
        ("two", "def two(x):\n    return torch.tensor(x).item()"),
        ("t_two", "assert two(3) == 3", 1),
    ]
    wrong = {
        "one": "def one(x):\n    return x",
        "two": "def two(x):\n    return torch.tensor(x + 1)",
    }
    (result,) = task(parts).grade(**wrong).notebooks
    assert "stand in" not in " ".join((*result.notes, *result.by_tests))
    assert [v.stood_in for v in result.verdicts] == [(), ()]

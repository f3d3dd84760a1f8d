"""Exceptions that a test makes of an answer's classes itself: the answer's own code decides."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from autograder.bridge.wire import WireError
from autograder.isolation.fork_server import ForkServer
from autograder.judge import rehearsal
from tests.bridge.ends import against, replying
from tests.judge.small_course import HIDDEN_PART, SETUP, Task, heard_of


@pytest.fixture
def task(tmp_path: Path, open_fork_server: ForkServer) -> Callable[..., Task]:
    """task(parts) makes an assignment of (id, source) and (id, source, points)."""

    def make(parts: list[tuple[Any, ...]]) -> Task:
        made = Task(tmp_path, open_fork_server, [("setup", SETUP), *parts], 10.0)
        made.known = heard_of(made)
        return made

    return make


OWN = """\
class TooPoor(Exception):
    least = 3
    def __init__(self, have, need):
        super().__init__(f"{need - have} short")
        self.have, self.need = have, need
    def __str__(self): return f"have {self.have}, need {self.need}"
    def short(self): return self.need - self.have
class Odd(TooPoor): pass
class Coded(OSError): pass
class Named(Exception):
    def __getattr__(self, name): return 5
def catches(f):
    try: f()
    except Odd: return "odd"
    except TooPoor as error: return error.need
def told(error): return isinstance(error, TooPoor) and error.have
def expects(kind, f):
    try: f()
    except kind as error: return error
class ignoring:
    def __init__(self, *kinds): self.kinds = kinds
    def __enter__(self): return self
    def __exit__(self, kind, error, trace): return isinstance(error, self.kinds)
def pay(have, need):
    if have < need: raise TooPoor(have, need)
    return have - need
def named(): raise Named()"""
MADE = """\
try:
    raise TooPoor(1, 3)
except TooPoor as error:
    assert str(error) == "have 1, need 3" and error.args == ("2 short",)
    assert error.need == 3 and error.short() == 2
assert TooPoor(1, need=4).need == 4 and f"{TooPoor(2, 3)}" == "have 2, need 3"
assert isinstance(TooPoor(1, 2), TooPoor) and TooPoor.least == 3
assert issubclass(Odd, TooPoor) and not issubclass(TooPoor, Odd)
assert type(Odd(1, 2)).__name__ == "Odd" and vars(Odd(1, 2)) == {"have": 1, "need": 2}
assert Coded(2, "no").errno == 2
try: raise Odd(1, 5) from KeyError("k")
except TooPoor as error: assert error.need == 5 and isinstance(error.__cause__, KeyError)
def fail(): raise TooPoor(1, 7)
def odd(): raise Odd(1, 7)
assert (catches(fail), catches(odd)) == (7, "odd")
assert told(TooPoor(8, 9)) == 8 and expects(TooPoor, fail).need == 7
with ignoring(TooPoor): raise Odd(1, 2)
error = TooPoor(3, 4)
error.need = 6
assert error.short() == 3
try: TooPoor(1)
except TypeError: pass
else: assert False, "one is not enough"
try: pay(1, 2)
except TooPoor as error: assert error.need == 2
class Mine(TooPoor): pass
try: raise Mine(1)
except TooPoor as error: assert error.args == (1,)
try: named()
except Named as error: assert error.args == ()"""
WRONG = [
    ("{need - have} short", "{have - need} short"),
    ("need {self.need}", "want {self.need}"),
    ("self.have, self.need = have, need", "self.have, self.need = need, have"),
    ("need - self.have", "have - self.need"),
    ("have, need):\n        super", "have, need=0):\n        super"),
    ("least = 3", "least = 4"),
    ("class TooPoor(Exception):", "class TooPoor(Exception):\n    def __new__(*a, **k): return 5"),
    ("class TooPoor(Exception):", "class TooPoor(Exception):\n    __new__ = lambda *a: KeyError()"),
]


def test_what_a_test_makes_of_an_answers_exception_is_made_there(task: Any) -> None:
    made = task([("pay", OWN), ("t_pay", HIDDEN_PART.format(MADE), 1)])
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    assert made.scores() == {"t_pay": 1}
    for right, wrong in WRONG:
        assert right in OWN
        assert made.scores(pay=OWN.replace(right, wrong)) == {"t_pay": 0}, wrong


def test_what_such_an_exception_says_is_told_to_nobody(task: Any) -> None:
    test = HIDDEN_PART.format("error = TooPoor(123, 456)\nif pay(5, 2) != 4: raise error")
    made = task([("pay", OWN), ("t_pay", test, 1)])
    found = made.verdicts()["t_pay"]
    assert (found.score, found.status) == (0, "failed")
    assert "123" not in found.told


def test_an_answer_names_no_exception_of_the_tests_as_one_that_it_has() -> None:
    with against(replying({"e": {"made": 1}})) as peer:
        assert peer.give(ValueError("ours")) == 1
        with pytest.raises(WireError):
            peer.ask("name")


CLAIM = 'if pay(5, 2) != 3: raise RuntimeError("too much is left")'
CATCHES = [
    f"try:\n    {CLAIM}\nexcept TooPoor: pass",
    f"import contextlib\nwith contextlib.suppress(TooPoor):\n    {CLAIM}",
    f"try: pay(1, 2)\nexcept TooPoor:\n    try:\n        {CLAIM}\n    except TooPoor: pass",
]
MET = """\
import unittest
try: pay(1, 2)
except TooPoor as error: assert error.args
else: assert False
with unittest.TestCase().assertRaises(TooPoor): pay(1, 2)
try:
    try: pay(1, 2)
    except AttributeError: pass
except TooPoor: pass
def poor(): raise TooPoor(1, 2)
try: poor()
except TooPoor: pass
assert expects(TooPoor, lambda: pay(1, 2)) is not None and expects(TooPoor, poor) is not None
assert issubclass(TooPoor, Exception)"""


def test_a_builtins_name_in_the_place_of_an_own_exception_catches_no_claim(task: Any) -> None:
    """It catches what the answer raises, and what a test raises by that name."""
    tests = [(f"t{n}", HIDDEN_PART.format(one), 1) for n, one in enumerate([*CATCHES, MET])]
    made = task([("pay", OWN), *tests])
    assert made.scores() == dict.fromkeys(("t0", "t1", "t2", "t3"), 1)
    own = OWN[OWN.index("class Odd") :]
    for alias, raises in (
        ("RuntimeError", "TooPoor"),
        ("ArithmeticError, RuntimeError", "RuntimeError"),
        ("RuntimeError", "Odd"),
        ("RuntimeError", "RecursionError"),
    ):
        answer = own.replace("(TooPoor)", "(RuntimeError)").replace("raise Too", f"raise {raises}#")
        answer = f"TooPoor = {alias}\n" + answer.replace(f"{raises}#Poor", raises)
        passed = 1 if "," not in alias else 0  # of several none is made
        wanted = {"t0": 1, "t1": 1, "t2": 1, "t3": passed}
        assert made.scores(pay=answer) == wanted, answer
        greedy = answer.replace("return have - need", "return have")
        assert made.scores(pay=greedy) == {"t0": 0, "t1": 0, "t2": 0, "t3": passed}, greedy

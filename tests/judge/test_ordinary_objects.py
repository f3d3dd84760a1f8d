"""What ordinary tests ask of an answer's generic classes, groups of errors, generators, figures."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib.figure
import pytest

from autograder.bridge import public
from autograder.isolation.fork_server import ForkServer
from autograder.judge import rehearsal
from tests.bridge.ends import against, replying
from tests.judge.small_course import HIDDEN_PART, SETUP, Task, heard_of


@pytest.fixture
def task(tmp_path: Path, open_fork_server: ForkServer) -> Callable[..., Task]:
    """task(solution, *tests) makes an assignment of a question with hidden tests t0, t1, ..."""

    def make(solution: str, *tests: str) -> Task:
        hidden = [(f"t{n}", HIDDEN_PART.format(test), 1) for n, test in enumerate(tests)]
        parts = [("setup", SETUP), ("own", solution), *hidden]
        made = Task(tmp_path, open_fork_server, parts, 10.0)
        made.known = heard_of(made)
        assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
        assert made.scores() == {id: 1 for id, *_ in hidden}
        return made

    return make


GENERIC = """\
from typing import Generic, TypeVar
Kind = TypeVar("Kind")
class Box(Generic[Kind]):
    def __init__(self, value): self.value = value
class Plain: pass
def give(x): return x"""
OF_A_KIND = """\
box = Box[int](3)
assert box.value == 3 and isinstance(box, Box)
for ask in (lambda: Plain[int], lambda: iter(Box), lambda: 3 in Plain):
    try: ask()
    except TypeError: pass
    else: assert False"""


def test_a_generic_class_is_asked_for_objects_of_a_kind(task: Any) -> None:
    made = task(GENERIC, OF_A_KIND)
    for wrong in (
        GENERIC.replace("= value", "= str(value)"),
        GENERIC.replace("Box(Generic[Kind])", "Box"),
        GENERIC.replace("class Plain: pass", "class Plain(Generic[Kind]): pass"),
    ):
        assert made.scores(own=wrong) == {"t0": 0}, wrong


GROUPS = """\
class Bad(Exception): pass
class Mine(ExceptionGroup): pass
def several(xs):
    found = []
    for x in xs:
        try:
            if x < 0: raise Bad(x)
            if x > 9: raise ValueError("big", x)
            if x == 5: raise ExceptionGroup("inside", [KeyError("k"), Bad(5)])
        except Exception as error: found.append(error)
    if found: raise Mine("several", found)
    return len(xs)
def other(f):
    try: f()
    except ZeroDivisionError as error: raise ExceptionGroup("other", [error])"""
CAUGHT = [
    "try: several([-1, 12, 3])\n"
    "except* Bad as group: assert [e.args for e in group.exceptions] == [(-1,)]\n"
    "except* ValueError as group: assert group.exceptions[0].args == ('big', 12)",
    "try: several([-1, 5])\nexcept ExceptionGroup as group:\n"
    "    assert str(group) == 'several (2 sub-exceptions)' and isinstance(group, Mine)\n"
    "    assert len(group.exceptions[1].exceptions) == 2\n"
    "    assert isinstance(group.exceptions[1].exceptions[0], KeyError)\nelse: assert False",
    "try:\n    try: several([5])\n    except* Bad: pass\n"
    "except ExceptionGroup as group: assert group.split(KeyError)[1] is None\nelse: assert False",
    "try: other(lambda: 1 / 0)\nexcept* ZeroDivisionError: pass\nelse: assert False",
]


def test_a_group_of_an_answers_exceptions_is_caught_by_its_members(task: Any) -> None:
    made = task(GROUPS, *CAUGHT)
    wrong = GROUPS.replace("raise Bad(x)", "raise OSError(x)")
    assert made.scores(own=wrong) == {"t0": 0, "t1": 1, "t2": 1, "t3": 1}
    wrong = GROUPS.replace('raise Mine("several", found)', "raise found[0]")
    assert made.scores(own=wrong) == {"t0": 1, "t1": 0, "t2": 1, "t3": 1}
    wrong = GROUPS.replace(
        'raise Mine("several", found)', 'raise BaseExceptionGroup("x", [KeyboardInterrupt()])'
    )
    assert sum(made.scores(own=wrong).values()) == 1


@pytest.mark.parametrize(
    "group", [["m"], ["m", 5], [5, {}], ["m", {"yours": 1}], ["m", *[{}] * 200], "m", {"m": 1}]
)
def test_a_group_that_is_none_is_an_error_of_one(group: Any) -> None:
    told = {"id": 1, "type": "ExceptionGroup", "kinds": ["ExceptionGroup"], "text": "t", "args": []}
    told |= {"home": "builtins:ExceptionGroup", "group": group}
    with against(replying({"e": told})) as peer, pytest.raises(Exception):  # noqa: B017
        peer.ask("name")


COUNT = """\
log = []
def count(n):
    try:
        while n:
            try:
                yield n
            except ValueError as error:
                log.append(error.args)
                yield -n
            n -= 1
    finally:
        log.append("closed")
def logged(): return list(log)"""
THROWN = """\
steps = count(3)
assert next(steps) == 3
assert steps.throw(ValueError("x")) == -3 and logged()[-1] == ("x",)
error = KeyError("q")
try: steps.throw(error)
except KeyError as caught: assert caught is error
else: assert False
assert logged()[-1] == "closed\""""


def test_a_test_throws_its_own_exception_into_an_answers_generator(task: Any) -> None:
    made = task(COUNT, THROWN)
    for right, wrong in (
        ("error.args", "()"),
        ("yield -n", "pass"),
        ("    finally:\n        log", "    except OSError:\n        log"),
    ):
        assert made.scores(own=COUNT.replace(right, wrong)) == {"t0": 0}, wrong


HINTED = "def hinted(a, b=3, *, c: int = 4) -> str: return str(a)"
ASKED = [
    "assert hinted.__defaults__ == (3,) and hinted.__kwdefaults__ == {'c': 4}",
    "import typing\nassert typing.get_type_hints(hinted) == {'c': int, 'return': str}",
    "class Own:\n    call = hinted\nassert Own().call.__func__ is hinted",
]


def test_a_function_tells_as_much_of_itself_in_a_later_test(task: Any) -> None:
    made = task(HINTED, *ASKED, *ASKED)
    wrong = made.scores(own=HINTED.replace("3", "2").replace(": int", ": str"))
    assert wrong == {"t0": 0, "t1": 0, "t2": 1, "t3": 0, "t4": 0, "t5": 1}


def test_a_figure_of_an_answers_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(public, "_OPEN", {*public._OPEN, "matplotlib"})
    figure = matplotlib.figure.Figure
    assert public.class_passed_for(public.public_name(figure), False) is figure
    axes = type(figure().add_subplot())
    assert public.class_passed_for(public.public_name(axes), False) is axes
    assert public.class_passed_for("matplotlib.backend_bases:FigureCanvasBase", False) is None


POINT = """\
import math
from typing import NamedTuple
class Point(NamedTuple):
    x: float
    y: float = 0.0
    def norm(self): return math.hypot(self.x, self.y)"""
REPLACED = """\
point = Point(3, 9)
assert point._replace(y=4).norm() == 5 and point == (3, 9)
assert isinstance(point._replace(x=0), Point) and point._replace(x=0) == (0, 9)"""


def test_a_named_tuple_with_another_part_is_of_the_answers_class(task: Any) -> None:
    made = task(POINT, REPLACED)
    assert made.scores(own=POINT.replace("hypot(self.x, self.y)", "fabs(self.x)")) == {"t0": 0}


DEEP = """\
import sys
before = sys.getrecursionlimit()
sys.setrecursionlimit(6000)
try: assert total(3000) == 4501500
finally: sys.setrecursionlimit(before)
try: assert total(3000) > 0
except RecursionError: pass"""
TOTAL = "def total(n):\n    return sum(range(n + 1))"
RECURSIVE = "def total(n):\n    return n + total(n - 1) if n else 0"


def test_a_test_lets_an_answer_call_itself_as_deep_as_it_says(task: Any) -> None:
    made = task(TOTAL, DEEP, "assert total(3000) == 4501500")
    assert made.scores(own=RECURSIVE) == {"t0": 1, "t1": 0}


VECTOR = """\
class Vector:
    def __init__(self, x): self.x = x
    def __add__(self, other): return Vector(self.x + other.x)
    def __eq__(self, other): return isinstance(other, Vector) and self.x == other.x
    def __repr__(self): return f"Vector({self.x})"
class Twice(Vector):
    def __init__(self, x): super().__init__(2 * x)"""
BY_CLASS = """\
from functools import reduce
assert reduce(Vector.__add__, [Vector(1), Vector(2)]).x == 3
assert not Vector.__eq__(Vector(1), Vector(2)) and Vector.__repr__(Twice(2)) == "Vector(4)"
twice = Twice(1)
Vector.__init__(twice, 9)
assert twice.x == 9 and int.__add__(3, 4) == 7
try: Vector.__sub__(twice, twice)
except AttributeError: pass
else: assert False"""


def test_a_special_method_is_asked_of_an_answers_class(task: Any) -> None:
    made = task(VECTOR, BY_CLASS)
    for right, wrong in (
        ("+ other.x", "- other.x"),
        ("self.x == other.x", "True"),
        ("{self.x}", ""),
    ):
        assert made.scores(own=VECTOR.replace(right, wrong)) == {"t0": 0}, wrong

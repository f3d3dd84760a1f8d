"""What an answer may have changed by calling back."""

import functools
import os
import types
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from autograder.judge.reach import holds_state, may_change
from autograder.judge.space import compiled_cell
from tests.judge.small_course import HIDDEN_PART

CELLS = """
log, counts, limit = [], {"a": 1}, 3
class Box:
    made, all = 0, []
    def __init__(self): self.items = []
    def put(self, x): self.items.append(x)
    def count(self): Box.made += 1
    def keep(self): self.all.append(1)
    def look(self): return limit
class Sets:
    size = 3
    def grow(self): type(self).size = 4
    def force(self): type.__setattr__(type(self), "size", 5)
class Starts:
    def of(self, *, start=0): return start
    def start(self): self.of.__func__.__kwdefaults__["start"] = 1
def counted():
    n = 0
    def count(x):
        nonlocal n
        n += x
        return n
    return count
count = counted()
box, double = Box(), lambda x: x * 2
def write(x): log.append(x)
def around(x): return write(x)
def named(x): globals()["log"].append(x)
def kept(x, seen=[]): seen.append(x)
def steps():
    for one in log: yield one
class Held:
    n, kind = 1, property(lambda self: limit)
    def __init__(self, *, by=2): self.by, self.me = by, __class__
    @staticmethod
    def of(x): return x
    @classmethod
    def one(cls, *, by=3): return cls(by=by)
def local():
    mine = []
    def f(x): mine.append(x)
    return f
"""


@pytest.mark.parametrize(
    ("used", "may"),
    [
        *[("write", True), ("around", True), ("named", True), ("kept", True), ("log", True)],
        *[("log.append", True), ("box.put", True), ("box", True), ("steps()", True)],
        *[
            ("Box.count", True),
            ("Box().count", True),
            ("lambda: box", True),
            ("Box().keep", True),
            ("lambda: Box", True),
        ],
        *[
            ("double", False),
            ("lambda x: double(x)", False),
            ("lambda x: int(x)", False),
            ("local()", False),
            ("len", False),
        ],
        *[("[].append", False), ("lambda: limit", False), ("count", True), ("counted()", False)],
        *[("Sets().grow", True), ("Sets", True), ("Starts().start", True)],
        *[("Sets().force", True), ("lambda: double.__globals__", True)],
        *[("lambda: double.__dict__", True), ("lambda: count.__closure__", True)],
        *[("Held", False), ("Held().n", False), ("lambda: Held()", False)],
    ],
)
def test_what_leads_to_a_value_of_the_instructors_may_have_changed_it(used: str, may: bool) -> None:
    space: dict[str, Any] = {"__name__": "__main__"}
    exec(compiled_cell(CELLS, "cell"), space)  # as the grader runs it
    names = dict(space)
    exec(compiled_cell(f"own = []\nused = {used}", "test"), space)
    assert may_change([space["used"]], names, frozenset()) is may
    assert not may_change([], names, frozenset())


@pytest.mark.parametrize(
    ("cell", "holds"),
    [
        ("limit, rule, names = 3, Callable[[int], list[int]], ('a', 'b')", False),
        (
            "def f(x, *, by=1): return x\nclass A:\n    n = 1\n    def g(self): return super()",
            False,
        ),
        ("@functools.wraps(print)\ndef f(x): return x", False),
        ("def f(x): return x\nf.calls = 0", True),
        ("xs = []", True),
        ("class Shop:\n    sold = []", True),
        ("def keep(x, seen=[]): seen.append(x)", True),
        ("pair = (1, [2])", True),
        ("class Box: pass\nbox = Box()", True),
    ],
)
def test_what_the_instructors_cells_made_is_known_to_change_or_not(cell: str, holds: bool) -> None:
    space: dict[str, Any] = {"__name__": "__main__", "Callable": Callable}
    space["functools"] = functools
    exec(cell, space)
    assert holds_state(space, frozenset()) is holds


WAYS = """
import dataclasses, weakref
import numpy as np
class Meta(type):
    made = {}
    def __call__(cls, *a): return cls.made.setdefault(cls, super().__call__())
class Config(metaclass=Meta):
    tol = 1
class Node: pass
root = Node()
row = np.zeros(4)
Made = dataclasses.make_dataclass("Made", [("x", int)], namespace={"log": []})
plain = [1]
"""


@pytest.mark.parametrize(
    ("used", "may"),
    [
        ("lambda: Config", True),
        ("[weakref.ref(root)]", True),
        ("row[1:]", True),
        ("row.reshape(2, 2)[0]", True),
        ("np.frombuffer(row, dtype='i8')", True),
        ("Made(1)", True),
        ("np.zeros(4)", False),
        ("lambda x: x.plain", False),
        ("[1]", False),
    ],
)
def test_no_way_to_a_value_goes_unseen(used: str, may: bool) -> None:
    space: dict[str, Any] = {"__name__": "__main__"}
    exec(WAYS, space)
    names = dict(space)
    assert may_change([eval(used, space)], names, frozenset()) is may


ASKED = """
class Settings:
    def __getattr__(self, name): raise RuntimeError(name)
class Loud:
    @property
    def base(self): raise RuntimeError
settings, loud, row = Settings(), Loud(), [1]
"""


def test_no_attribute_of_the_instructors_objects_is_asked_for() -> None:
    space: dict[str, Any] = {"__name__": "__main__"}
    exec(ASKED, space)
    assert may_change([space["row"]], dict(space), frozenset()) is True
    assert may_change([len], dict(space), frozenset()) is False


def test_a_helper_that_counts_in_a_name_of_its_own_may_have_changed(monkeypatch: Any) -> None:
    counter = types.ModuleType("counter")
    exec("n = 0\ndef tick(x):\n    global n\n    n += 1\ndef peek(): return n", vars(counter))
    names, helpers = {"counter": counter}, frozenset({"counter"})
    assert may_change([counter.tick], names, helpers) is True
    assert may_change([counter.peek], names, helpers) is False


def test_what_a_hidden_test_left_in_the_instructors_values_is_told_to_nobody(task: Any) -> None:
    cells = [("data", "BOOK = {}\nclass Shop:\n    sold = []")]
    hidden = HIDDEN_PART.format("BOOK['k'] = 7391\nShop.sold.append(7391)\nassert one() == 1")
    first = [("one", "def one():\n    return 1"), ("t_one", f"assert one() == 1{hidden}", 1)]
    asks = "assert two(dict(BOOK), list(Shop.sold)) == 2"
    made = task([*cells, *first, ("two", "def two(*a):\n    return 2"), ("t_two", asks, 2)])
    for stands_in in (True, False):
        made.assignment = replace(made.assignment, stand_in=stands_in)
        found = made.verdicts(two="def two(*a):\n    raise ValueError(str(a))")
        assert [one.score for one in found.values()] == [1, 0]
        assert "7391" not in found["t_two"].told + found["t_two"].said


def test_a_list_of_a_class_that_an_answer_emptied_is_whole_for_the_next_question(task: Any) -> None:
    cells = [("data", "class Shop:\n    sold = [1, 2]")]
    first = [
        ("one", "def one(xs):\n    return len(xs)"),
        ("t_one", "assert one(Shop.sold) == 2", 1),
    ]
    second = ("two", "def two(xs):\n    return sum(xs)"), ("t_two", "assert two(Shop.sold) == 3", 2)
    made = task([*cells, *first, *second])
    empties = "def one(xs):\n    xs.clear()\n    return 0"
    assert made.scores(one=empties) == {"t_one": 0, "t_two": 2}


ONCE = (
    "import os\nos.mkdir('out')\nwith open('notes', 'a') as file:\n    file.write('x')\n"
    "if hasattr(os, '_graded_once'):\n    raise RuntimeError\nos._graded_once = True\n"
    "LIMIT, SEEN = 3, []\ndef note(x):\n    SEEN.append(x)"
)


def test_cells_that_work_but_once_are_run_anew_where_nothing_is_left_of_them(task: Any) -> None:
    each = "def each(f, xs):\n    for x in xs: f(x)"
    first = [("each", each), ("t_each", "each(note, [1])\nassert SEEN == [1]", 1)]
    asks = "assert low(LIMIT) and os.listdir('out') == [] and len(open('notes').read()) == 1"
    second = ("low", "def low(x):\n    return x < 5"), ("t_low", asks, 2)
    made = task([("data", ONCE), *first, *second])
    wrong = "def each(f, xs):\n    for x in [*xs, *xs]: f(x)"
    for answers, score in (({}, 1), ({"each": wrong}, 0)):
        try:
            assert made.scores(**answers) == {"t_each": score, "t_low": 2}
        finally:
            os.__dict__.pop("_graded_once", None)


def test_what_a_test_makes_by_call_backs_a_later_question_finds(task: Any) -> None:
    emit = "def emit(fs, x):\n    for f in fs: f(x)"
    first = [
        ("emit", emit),
        ("t_emit", "emit([note], 'a')\nemit([note], 'b')\nassert len(LOG) == 2", 1),
    ]
    summary = "def summary(xs):\n    return {x: xs.count(x) for x in xs}"
    second = ("summary", summary), ("t_summary", "assert summary(LOG) == {'a': 1, 'b': 1}", 2)
    made = task([("data", "LOG = []\ndef note(x):\n    LOG.append(x)"), *first, *second])
    assert made.scores() == {"t_emit": 1, "t_summary": 2}
    twice = emit.replace("f(x)", "f(x), f(x)")
    assert made.scores(emit=twice) == {"t_emit": 0, "t_summary": 2}
    assert made.scores(summary="def summary(xs):\n    return {}") == {"t_emit": 1, "t_summary": 0}
    gives = "def emit(fs, x):\n    for f in fs: f(x)\nimport collections"
    wrong = "def summary(xs):\n    return {'a': 1}"
    assert made.scores(emit=gives, summary=wrong) == {"t_emit": 1, "t_summary": 0}


def test_who_may_choose_is_not_accused_where_the_test_keeps_a_record(task: Any) -> None:
    keeps = "DRAWN = []\ndef record(x):\n    DRAWN.append(x)"
    asks = "a = draw([1, 2])\nrecord(a)\nb = draw([3, 4])\nrecord(b)\nassert DRAWN == [a, b]"
    first = [("draw", "def draw(xs):\n    return xs[0]"), ("t_draw", asks, 1)]
    made = task([("data", keeps), *first])
    chooses = "import random\ndef draw(xs):\n    return random.SystemRandom().choice(xs)"
    assert all(made.scores(draw=chooses) == {"t_draw": 1} for _ in range(5))

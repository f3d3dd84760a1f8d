"""Objects of the instructor's classes in the hands of an answer: what they hide, how many."""

from typing import Any

import pytest

from autograder.judge import rehearsal
from tests.judge.small_course import Task, heard_of

MONEY = """\
class Money:
    def __init__(self, cents): self._cents = cents
    def __add__(self, other): return Money(self._cents + other._cents)
    def __eq__(self, other): return isinstance(other, Money) and self._cents == other._cents
    def less(self, by): self._cents -= by
"""
TOTAL = "def total_of(ms):\n    t = ms[0]\n    for m in ms[1:]: t = t + m\n    return t"
ADDS = (
    "def total_of(ms): return sum(ms, Money(0))",
    "def total_of(ms):\n    t = Money(0)\n    for m in ms: t += m\n    return t",
)
ADDED = "assert total_of([Money(1), Money(2), Money(3)]) == Money(6)"
WEIGHED = (
    "class Thing:\n    def __init__(self, kg): self._kg = kg\n    def heavy(self): return {}\n"
)
BY_FUNCTION = WEIGHED.format("self._kg > 5") + "def heavier(a, b): return a._kg > b._kg"
HEAVY = "def any_heavy(a, b): return a.heavy() or b.heavy()"
GUARDED = TOTAL.replace("def total_of(ms):\n", "def total_of(ms):\n    ms[0].less(1)\n")
LESS_FIRST = "def total_of(ms):\n    ms[0].less(1)\n    return sum(ms, Money(0))"
LESS = ADDED.replace("Money(6)", "Money(5)")


def _task(task: Any, given: str, reference: str, test: str) -> Task:
    made = task([("look", given), ("asked", reference), ("t_asked", test, 1)])
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    made.known = heard_of(made)
    return made


@pytest.mark.parametrize(
    ("given", "reference", "test", "answers"),
    [
        (MONEY, TOTAL, ADDED, ADDS),
        (MONEY, GUARDED, LESS, [LESS_FIRST]),
        (
            BY_FUNCTION,
            HEAVY,
            "assert any_heavy(Thing(1), Thing(7)) and not any_heavy(Thing(1), Thing(2))",
            ["def any_heavy(a, b): return (a if heavier(a, b) else b).heavy()"],
        ),
    ],
    ids=["values", "changed by methods", "a function of the instructor's"],
)
def test_the_instructors_own_text_reads_what_it_reads_at_home(
    task: Any, given: str, reference: str, test: str, answers: Any
) -> None:
    made = _task(task, given, reference, test)
    for answer in answers:
        verdict = made.verdicts(asked=answer)["t_asked"]
        assert verdict.score == 1, (answer, verdict)


def test_what_an_object_reads_of_itself_alone_is_hidden_from_an_answer(task: Any) -> None:
    safe = WEIGHED.format("self._kg > 5")
    made = _task(task, safe, HEAVY, "assert any_heavy(Thing(1), Thing(7))")
    reads = "def any_heavy(a, b): return max(a._kg, b._kg) > 5"
    assert made.verdicts(asked=reads)["t_asked"].score == 0


def test_each_of_many_objects_that_an_answer_keeps_stays_the_same_object(task: Any) -> None:
    test = (
        "s, ps = Shelf(), [Product(n) for n in range(510)]\nfor p in ps: s.put(p)\n"
        "assert all(s.has(p) for p in ps[::100]) and not s.has(Product(3))\n"
        "assert s.mark(0) is ps[0] and ps[0].seen == 1 == s.mark(509).seen == ps[509].seen"
    )
    shelf = (
        "class Shelf:\n    def __init__(self): self.ps = []\n"
        "    def put(self, p): self.ps.append(p)\n"
        "    def has(self, p): return any(q is p for q in self.ps)\n"
        "    def mark(self, n):\n        self.ps[n].seen += 1\n        return self.ps[n]"
    )
    product = "class Product:\n    def __init__(self, n): self.n, self.seen = n, 0"
    made = _task(task, product, shelf, test)
    assert made.scores() == {"t_asked": 1}
    table = shelf.replace("[]", "{}").replace("ps.append(p)", "ps[p] = len(self.ps)")
    table = table.replace("any(q is p for q in self.ps)", "p in self.ps")
    table = table.replace("self.ps[n]", "[*self.ps][n]")
    assert made.scores(asked=table) == {"t_asked": 1}
    copies = shelf.replace("append(p)", "append(Product(p.n))")
    assert made.scores(asked=copies) == {"t_asked": 0}


WHOSE = """\
class Positive:
    def __set_name__(self, owner, name):
        self.name = "_" + name
    def __get__(self, one, owner=None):
        return getattr(one, self.name)
    def __set__(self, one, value):
        setattr(one, self.name, value)

class Seen:
    def __init__(self):
        self.all = []
    def add(self, one):
        is_new = not any(one is other for other in self.all)
        self.all.append(one)
        return is_new"""
BY_NUMBER = """\
class Positive:
    def __init__(self): self.values = {}
    def __get__(self, one, owner): return self.values[id(one)]
    def __set__(self, one, value): self.values[id(one)] = value

class Seen:
    def __init__(self): self.numbers = set()
    def add(self, one):
        before = len(self.numbers)
        self.numbers.add(id(one))
        return len(self.numbers) > before"""
WEAKLY = """\
import weakref
class Positive:
    def __init__(self): self.values = weakref.WeakKeyDictionary()
    def __get__(self, one, owner): return self.values[one]
    def __set__(self, one, value): self.values[one] = value

class Seen:
    def __init__(self): self.all = weakref.WeakSet()
    def add(self, one):
        before = len(self.all)
        self.all.add(one)
        return len(self.all) > before"""
KNOWS = """\
class Own:
    x = Positive()
a, b = Own(), Own()
a.x, b.x = 3, 4
assert (a.x, b.x) == (3, 4)
seen = Seen()
assert seen.add(a) and seen.add(b) and not seen.add(a)"""


@pytest.mark.parametrize("answer", [BY_NUMBER, WEAKLY], ids=["by id", "weakly"])
def test_an_object_that_a_test_holds_is_the_same_one_in_later_calls(task: Any, answer: str) -> None:
    made = task([("own", WHOSE), ("t_own", KNOWS, 1)])
    assert made.scores() == {"t_own": 1}
    made.known = heard_of(made)
    assert made.scores(own=answer) == {"t_own": 1}


EVENTS = """\
class Events:
    def __init__(self): self.callbacks = []
    def on(self, f): self.callbacks.append(f)
    def off(self, f): self.callbacks.remove(f)
    def emit(self, x):
        for f in self.callbacks: f(x)"""
LISTENED = """\
got, others = [], []
events = Events()
events.on(others.append)
events.on(got.append)
events.emit(1)
events.off(got.append)
events.emit(2)
assert got == [1] and others == [1, 2]"""


def test_a_bound_method_written_in_c_is_the_same_each_time_it_is_handed_over(task: Any) -> None:
    made = task([("events", EVENTS), ("t_events", LISTENED, 1)])
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    made.known = heard_of(made)
    assert made.scores() == {"t_events": 1}
    for wrong in (EVENTS.replace(".remove(f)", ".pop(0)"), EVENTS.replace(".remove(f)", "")):
        assert made.scores(events=wrong) == {"t_events": 0}

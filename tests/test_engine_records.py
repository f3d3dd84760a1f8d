"""Objects of the instructor's own classes: real ones on either side, and no lie earns a point."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from autograder.engine.trusted import Guard, Space
from autograder.engine.zygote import Zygote
from autograder.syntax import facts
from tests.test_engine_peer import answering

GIVEN = """
import copy, dataclasses, enum
from abc import ABC, abstractmethod
from collections import namedtuple
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple
@dataclass
class Item:
    name: str
    price: float = 0.0
    tags: list = field(default_factory=list)
    def label(self): return f"{self.name}: {self.price}"
@dataclass(frozen=True, order=True)
class Point:
    x: float
    y: float = 0.0
@dataclass(slots=True)
class Pair:
    one: object
    two: object = None
class Student:
    def __init__(self, name, grade): self.name, self.grade = name, grade
    def __eq__(self, other): return isinstance(other, Student) and self.name == other.name
    def __hash__(self): return hash(self.name)
    def __lt__(self, other): return self.grade < other.grade
class Node:
    def __init__(self, value, next=None): self.value, self.next = value, next
class Account:
    def __init__(self, owner, balance): self.owner, self._balance, self.log = owner, balance, []
    @property
    def balance(self): return self._balance
    def deposit(self, amount):
        self._balance += amount
        self.log.append(amount)
class Safe:
    def __init__(self, code): self._code, self.tries = code, 0
    def opens(self, code):
        self.tries += 1
        return code == self._code
class Shape(ABC):
    @abstractmethod
    def area(self): ...
class Square(Shape):
    def __init__(self, side): self.side = side
    @cached_property
    def area(self): return self.side ** 2
class Near:
    def __init__(self, value, by): self.value, self.by = value, by
    def __eq__(self, other): return abs(self.value - other) <= self.by
class Any_:
    def __init__(self, **named): self.__dict__.update(named)
City = namedtuple("City", "name people")
class Town(NamedTuple):
    name: str
    people: int = 0
    def double(self): return Town(self.name, 2 * self.people)
class Color(enum.Enum):
    RED = 1
    BLUE = 2
"""


class Sides:
    """A space of tests and a student's process that have run the same cell."""

    def __init__(self, student: Any, answer: str, given: str) -> None:
        self.student, self.space = student, Space(attributes=frozenset({"seen", "color"}))
        student.peer.policy = Guard()
        self.space.student = student
        self.space.prepare(GIVEN, "given")
        assert student.run("given", given, 60).ok
        assert student.run("answer", answer, 60).ok
        self.space.hand_over(facts(answer).bound - facts(GIVEN).bound)

    def test(self, source: str, allowed: Any = None, expected: Any = ()) -> list[Any]:
        """Run a test; what crossed."""
        peer = self.student.peer
        peer.protect, peer.allowed, peer.expected = allowed is not None, allowed or (), expected
        peer.changed_ours = False
        with peer.recording() as crossings:
            exec(compile(source, "<test>", "exec"), self.space, self.space)
        return crossings


@pytest.fixture
def sides(open_zygote: Zygote) -> Iterator[Callable[..., Sides]]:
    """sides(answer) gives both sides of an answer; `given` is the student's copy of the cell."""
    with contextlib.ExitStack() as stack:

        def make(answer: str, given: str = GIVEN) -> Sides:
            return Sides(stack.enter_context(answering(open_zygote, "")), answer, given)

        yield make


ITEM = "i = Item('pen', 2.0, ['blue'])\n"
RIGHT: dict[str, tuple[str, str]] = {
    "replace": (
        "def f(i): return dataclasses.replace(i, price=1.0)",
        ITEM + "j = f(i)\nassert j == Item('pen', 1.0, ['blue']) and i.price == 2.0\n"
        "assert type(j) is Item and j.label() == 'pen: 1.0'",
    ),
    "asdict": (
        "def f(i): return dataclasses.asdict(i), dataclasses.astuple(i)",
        ITEM + "assert f(i) == ({'name': 'pen', 'price': 2.0, 'tags': ['blue']}, "
        "('pen', 2.0, ['blue']))",
    ),
    "fields": (
        "def f(i): return [g.name for g in dataclasses.fields(i)], dict(vars(i)), i.__dict__",
        ITEM + "assert f(i) == (['name', 'price', 'tags'], vars(i), vars(i))",
    ),
    "type": ("def f(i): return type(i)(i.name)", ITEM + "assert f(i) == Item('pen')"),
    "isinstance": (
        "def f(xs): return [isinstance(i, Item) for i in xs], type(xs[0]) is Item",
        ITEM + "assert f([i, Point(1)]) == ([True, False], True)",
    ),
    "match": (
        "def f(i):\n    match i:\n        case Item(name, price): return name, price",
        ITEM + "assert f(i) == ('pen', 2.0)",
    ),
    "copy": (
        "def f(i):\n    a, b = copy.copy(i), copy.deepcopy(i)\n    a.price, b.price = 3.0, 4.0\n"
        "    return a, b",
        ITEM + "assert [x.price for x in f(i)] == [3.0, 4.0] and i.price == 2.0",
    ),
    "keys": (
        "def f(xs): return {s: s.grade > 5 for s in xs}, {s for s in xs}",
        "a, b = Student('a', 7), Student('b', 2)\nd, s = f([a, b])\n"
        "assert d == {a: True, b: False} and list(d)[0] is a and s == {a, b}",
    ),
    "sorted": (
        "def f(xs): return sorted(xs)",
        "a, b = Student('a', 7), Student('b', 2)\nassert f([a, b])[1] is a",
    ),
    "frozen": (
        "def f(p): return {p: 1}, Point(p.x + 1, p.y), p < Point(9)",
        "assert f(Point(1, 2)) == ({Point(1, 2): 1}, Point(2, 2), True)",
    ),
    "slots": (
        "def f(p): p.one = [p.one]; return dataclasses.replace(p, two=5)",
        "p = Pair(1)\nassert f(p) == Pair([1], 5) and p == Pair([1])",
    ),
    "inside": (
        "def f(d): return {k: [v[0], Item(v[0].name)] for k, v in d.items()}",
        ITEM + "d = f({'a': (i, 1)})\nassert d['a'][0] is i and d['a'][1] == Item('pen')",
    ),
    "nested": (
        "def f(p): p.one.one.price = 9; return p.two, p.one",
        ITEM + "q = Pair(i)\np = Pair(q, q)\na, b = f(p)\nassert a is b is q and i.price == 9",
    ),
    "abstract": ("def f(s): return Square(s.side + 1)", "assert f(Square(2)).area == 9"),
    "foreseen by nobody": (
        "def f(a): return Any_(b=a.a)",
        "assert vars(f(Any_(a=[1]))) == {'b': [1]}",
    ),
    "named tuples": (
        "def f(c):\n    match c:\n        case City(name, people): c = City(name, people + 1)\n"
        "    return c, isinstance(c, City), Town('x', 2), c._replace(name='u')",
        "c, yes, t, r = f(City('ulm', 3))\nassert type(c) is type(r) is City and yes\n"
        "assert (c, r) == (City('ulm', 4), ('u', 4)) and t.double() == ('x', 4)",
    ),
    "enumerations": (
        "def f(c): return c is Color.RED, {Color.RED: Color.BLUE}[c], [*Color]",
        "assert f(Color.RED) == (True, Color.BLUE, [*Color])",
    ),
    "a class": (
        "def f(kind, i): return isinstance(i, kind), kind('x'), kind",
        ITEM + "yes, made, kind = f(Item, i)\nassert yes and made == Item('x') and kind is Item",
    ),
    "an unlocked class": (
        "def f(i): return i.name",
        "i = Item(len)\nassert f(Item('a')) == 'a'",
    ),
}


@pytest.mark.parametrize("name", RIGHT)
def test_an_object_of_the_instructors_class_is_one_on_both_sides(sides: Any, name: str) -> None:
    answer, test = RIGHT[name]
    sides(answer).test(test)


def test_a_long_chain_crosses_and_is_turned_around(sides: Any) -> None:
    both = sides(
        "def f(n):\n    last = None\n    while n: n.next, last, n = last, n, n.next\n"
        "    return last\n"
        "def g(n): return 0 if n is None else 1 + g(n.next)\n"
    )
    both.test(
        "first = None\nfor k in range(3000): first = Node(k, first)\n"
        "nodes = []\nn = first\nwhile n: nodes.append(n); n = n.next\n"
        "n = f(first)\nwhile n: assert n is nodes.pop(); n = n.next\nassert not nodes\n"
        "a = Node(1); a.next = a\nassert f(a) is a\n"
        "assert g(Node(1, Node(2))) == 2"
    )


CHANGING = """
kept = []
def change(i): i.price, i.color = 5.0, "red"
def add(i): i.tags.append("x")
def keep(i): kept.append(i)
def give(): return kept[0]
def late(): kept[0].price += 1; kept[0].tags.append("late")
def drop(i): del i.price
def fail(i): i.price = 7.0; raise ValueError("after all")
def tell(i, f): i.price = 8.0; return f(i), i.price
def pay(a, x): a.deposit(x); return a.balance
"""


def test_what_a_call_changes_in_an_object_is_changed(sides: Any) -> None:
    both = sides(CHANGING)
    crossings = both.test(
        ITEM + "change(i)\nassert vars(i) == vars(Item('pen', 5.0, ['blue'])) | {'color': 'red'}\n"
        "tags = i.tags\nadd(i)\nadd(i)\nassert i.tags is tags and tags == ['blue', 'x', 'x']\n"
        "try: fail(i)\nexcept ValueError: pass\nassert i.price == 7.0\n"
        "drop([i][0])\nassert 'price' not in vars(i)\n"
        "a = Account('ann', 1)\nassert pay(a, 5) == 6 and a.balance == 6 and a.log == [5]"
    )
    assert both.student.peer.changed_ours
    assert [c.changed for c in crossings] == [
        ("Item@0",),
        *2 * [("list@0.2",)],
        *2 * [("Item@0",)],
        ("list@0.2", "Account@0"),
    ]


def test_an_object_that_an_answer_keeps_stays_the_same_object(sides: Any) -> None:
    both = sides(CHANGING)
    both.test(
        ITEM + "keep(i)\nassert give() is i and give() is i\n"
        "i.price = 3.0\ni.tags.append('y')\nassert vars(give()) == vars(i)\n"
        "tags = i.tags\nlate()\nassert i.price == 4.0\n"
        "assert i.tags is tags and tags == ['blue', 'y', 'late']\n"
        "i.tags = [1]\nassert give().tags == [1]"
    )
    both.test("assert give().name == 'pen'\ni = Item('b')\nkeep(i)\nassert give() is give()")


def test_a_test_that_is_called_back_sees_what_was_changed(sides: Any) -> None:
    both = sides(CHANGING)
    crossings = both.test(
        ITEM + "def f(j):\n    assert j is i and i.price == 8.0\n    j.price = 9.0\n    return j\n"
        "got, price = tell(i, f)\nassert got is i and price == 9.0 == i.price"
    )
    assert crossings[0].changed == ("Item@0",)


def test_an_object_that_an_answer_made_is_one_object(sides: Any) -> None:
    both = sides(
        "made = Item('a', 1.0)\ndef f(): return made\ndef g(): made.price += 1\n"
        "def price(i): return i.price, i is made"
    )
    both.test(
        "i = f()\nassert i is f() is made\ng()\nassert i.price == 2.0\ni.price = 7.0\n"
        "assert price(i) == (7.0, True)"
    )


def test_protected_objects_stay(sides: Any) -> None:
    both = sides(CHANGING + "def both(i): i.price = 5.0; return i, [i]\n")
    both.test(
        ITEM + "keep(i)\nlate()\nchange(i)\nadd(i)\nassert i == Item('pen', 2.0, ['blue'])\n"
        "j, (k,) = both(i)\nassert j is k is not i and j.price == 5.0 and i.price == 2.0",
        allowed=[("f", ())],
    )
    assert both.student.peer.changed_ours
    both.test(ITEM + "change(i)\nassert i.price == 5.0", allowed=[("change", ("Item@0",))])
    both.test(ITEM + "tell(i, lambda j: 1)\nassert i.price == 2.0", allowed=[("tell", ("Item@1",))])


def test_what_is_no_value_stays_a_stand_in(sides: Any) -> None:
    both = sides(
        "def f(i): return i.name(3), isinstance(i, Item), type(i) is Item\n"
        "def g(s): return type(s) is Safe, s.opens(7), isinstance(s, Safe)\n"
        "class Mine(Item): pass\n"
        "def mine(): return Mine('a')\n"
        "def odd(): return Item(lambda: 3)\n"
        "def safe(): return Safe(3)\n"
    )
    both.test(
        "assert f(Item(lambda x: x)) == (3, True, False)\n"
        "s = Safe(7)\nassert g(s) == (False, True, True) and s.tries == 1\n"
        "assert not isinstance(mine(), Item) and mine().name == 'a'\n"
        "assert odd().name() == 3\n"
        "class Mine(Item): pass\nassert f(Mine(lambda x: x))[0] == 3\n"
        "assert safe().opens(3)"
    )


def test_a_class_that_only_one_side_has_is_as_before(sides: Any) -> None:
    both = sides(
        "def f(i): return i.name\ndef g(c): return c.people\n",
        GIVEN + "del Item\nCity = 3\n",
    )
    both.test("assert f(Item('a')) == 'a'\nassert g(City('ulm', 3)) == 3")


def test_what_a_test_does_between_calls_is_told_to_nobody_in_the_next_test(sides: Any) -> None:
    both = sides(CHANGING + "def price(): return kept[0].price\n")
    both.test(ITEM + "keep(i)")
    both.test("i.price = 77.0\nassert price() == 2.0")


# --- lies ----------------------------------------------------------------------------------------

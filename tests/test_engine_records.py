"""Objects of the instructor's own classes: real ones on either side, and no lie earns a point."""

import contextlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from autograder.bridge.reference import expectations
from autograder.bridge.wire import WireError
from autograder.common.scopes import facts
from autograder.isolation.fork_server import ForkServer
from autograder.judge import old, rehearsal
from autograder.judge.assignment import read_assignment
from autograder.judge.guard import Guard
from autograder.judge.space import Space
from tests.test_engine_peer import answering
from tests.test_engine_worker import SETUP, Task, Transcripts

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
class Person:
    def __init__(self, name): self.__name = name
    def get_name(self): return self.__name
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
class Folder:
    def __init__(self, place): self.place = place
    def __del__(self): shutil.rmtree(self.place)
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
def sides(open_fork_server: ForkServer) -> Iterator[Callable[..., Sides]]:
    """sides(answer) gives both sides of an answer; `given` is the student's copy of the cell."""
    with contextlib.ExitStack() as stack:

        def make(answer: str, given: str = GIVEN) -> Sides:
            return Sides(stack.enter_context(answering(open_fork_server, "")), answer, given)

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
    "getters": (
        "def f(p): return type(p)(p.get_name() + 'x')",
        "assert f(Person('a')).get_name() == 'ax'",
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
        *4 * [("Item@0",)],
        ("Account@0",),
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


def test_a_list_that_is_put_in_the_place_of_another_is_another(sides: Any) -> None:
    both = sides(
        "kept = []\ndef keep(i): kept.append(i)\ndef put(i, xs): i.tags = xs\n"
        "def new(i): i.tags = ['new']\ndef late(): kept[0].tags = ['late']\n"
        "def own(): return kept[0].tags\ndef hold(): kept.append(kept[0].tags)\n"
        "def held(): return kept[1]"
    )
    both.test(
        ITEM + "old, xs = i.tags, [5]\nput(i, xs)\nassert i.tags is xs and old == ['blue']\n"
        "new(i)\nassert i.tags == ['new'] and xs == [5]\nkeep(i)\nnow = i.tags\nlate()\n"
        "assert i.tags == ['late'] and now == ['new'] and own() == ['late']\n"
        "hold()\ni.tags.append(1)\nassert held() == ['late', 1]\ni.tags = [2]\n"
        "assert held() == ['late', 1] and own() == [2]"
    )


def test_an_array_in_an_object_that_an_answer_keeps_is_seen_to_change(sides: Any) -> None:
    both = sides(
        "kept = []\ndef keep(p): kept.append(p)\ndef late(): kept[0].one[0] = 7\n"
        "def now(p): p.one[1] = 8; return p.one\ndef look(): return kept[0].one.tolist()\n"
    )
    both.test(
        "import numpy as np\np = Pair(np.zeros(2))\nkeep(p)\nlate()\nassert p.one[0] == 7\n"
        "assert now(p) is p.one and p.one.tolist() == [7, 8]\np.one[:] = 1\nassert look() == [1, 1]"
    )


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
    for way in ("i.tags.append(1)", "i.tags = [*i.tags, 1]", "i.price = 1; i.tags.append(1)"):
        both = sides(f"def change(n, items):\n    i = items[0]\n    {way}\ndef other(i): {way}")
        crossings = both.test(
            ITEM + "change(0, [i])\nassert i.tags[-1] == 1\nj = Item('j')\nother(j)\n"
            "assert j == Item('j')",
            allowed=[("change", ("Item@1.0",)), ("other", ("Item@1",))],
        )
        assert [c.changed for c in crossings] == [("Item@1.0",), ("Item@0",)]
    both = sides(CHANGING)
    both.test(ITEM + "tell(i, lambda j: 1)\nassert i.price == 2.0", allowed=[("tell", ("Item@1",))])


def test_what_is_no_value_stays_a_stand_in(sides: Any) -> None:
    both = sides(
        "def f(i): return i.name(3), isinstance(i, Item), type(i) is Item\n"
        "def g(s): return type(s) is Safe, s.opens(7), isinstance(s, Safe)\n"
        "class Mine(Item): pass\n"
        "def mine(): return Mine('a')\n"
        "def odd(): return Item(lambda: 3)\n"
        "def safe(): return Safe(3)\n"
        "def g2(i): return [n for n in dir(i) if n == '_expected'], '_expected' in vars(Item)\n"
        "def made(): return Item('m')\n"
    )
    both.test(
        "assert f(Item(lambda x: x)) == (3, True, False)\n"
        "s = Safe(7)\nassert g(s) == (False, True, True) and s.tries == 1\n"
        "assert isinstance(mine(), Item) and mine().name == 'a' and mine() != Item('a')\n"
        "assert odd().name() == 3\n"
        "class Mine(Item): pass\nassert f(Mine(lambda x: x))[0] == 3\n"
        "assert safe().opens(3)\n"
        "i = Item(3)\ni._expected = 7\nassert g2(i) == ([], False)\n"
        "i = made()\ni._expected = 7\nassert g2(i)[0] == []"
    )


def test_a_class_that_only_one_side_has_is_as_before(sides: Any) -> None:
    both = sides(
        "def f(i): return i.name\ndef g(c): return c.people\n",
        GIVEN + "del Item\nCity = 3\n",
    )
    both.test("assert f(Item('a')) == 'a'\nassert g(City('ulm', 3)) == 3")


def test_a_name_that_means_another_class_now_is_no_class_of_both(sides: Any) -> None:
    both = sides("def f(i): return i.name, type(i) is Item\ndef g(): return Item('a')")
    both.test("class Item:\n    name = 5\nassert f(Item()) == (5, False) and g().name == 'a'")
    both = sides("class Item:\n    name = 5\ndef f(): return Item()\n")
    both.space.hand_over(["Item"])
    both.test("assert f().name == 5 == Item().name and isinstance(f(), Item)")


def test_what_a_test_does_between_calls_is_told_to_nobody_in_the_next_test(sides: Any) -> None:
    both = sides(CHANGING + "def price(): return kept[0].price\n")
    both.test(ITEM + "keep(i)")
    both.test("i.price = 77.0\nassert price() == 2.0")


# --- whole submissions --------------------------------------------------------------------------


@pytest.fixture
def course(tmp_path: Any, open_fork_server: ForkServer) -> Callable[..., Task]:
    """course(kind) makes an assignment whose classes stand in a cell of this kind."""

    def make(kind: str, given: str = GIVEN, tests: str = TESTS) -> Task:
        parts = [("setup", SETUP), (kind, given), ("work", WORK), ("t_work", tests, 1)]
        return Task(tmp_path, open_fork_server, parts, 20.0)

    return make


WORK = """
def cheaper(i, factor): return Item(i.name, i.price * factor, list(i.tags))
def raise_by(i, x): i.price += x
def price(i): return i.price
def towns(c): return [c for c in [c] if c.people]
def marked(n): n.seen = True; return n
"""
TESTS = """
i = Item("pen", 2.0, ["blue"])
assert cheaper(i, 0.5) == Item("pen", 1.0, ["blue"]) and i.price == 2.0
raise_by(i, 1)
assert i.price == 3.0 and price(i) == i.price
assert towns(City("ulm", 3))[0].name == "ulm"
assert marked(Node(1)).seen
"""


@pytest.mark.parametrize("kind", ["table", "data"])  # locked, and one that a student may edit
def test_a_question_about_objects_is_graded_as_in_one_process(course: Any, kind: str) -> None:
    made = course(kind)
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    right = WORK.replace(
        "Item(i.name, i.price * factor, list(i.tags))",
        "dataclasses.replace(\n        i, price=factor * vars(i)['price'])",
    ).replace("c.people]", "isinstance(c, City)]")
    assert made.scores(work=right) == {"t_work": 1}
    for wrong in ("i.price = 0; return 0", "i.tags.clear(); return i.price"):
        verdicts = made.verdicts(
            work=WORK.replace("price(i): return i.price", f"price(i): {wrong}")
        )
        assert verdicts["t_work"].score == (0 if "return 0" in wrong else 1)
    lax = GIVEN.replace("def label", "def __eq__(self, o): return True\n    def label")
    edited = {kind: lax, "work": WORK.replace("* factor", "* 7")}
    assert made.scores(**edited) == {"t_work": 0}


ROBOT = """
class Robot:
    def __init__(self, place): self.place, self.moves, self.log = place, 0, []
    def move(self, by): self.place, self.moves = self.place + by, self.moves + 1
    def turn(self): self.log.append("turn")
class Chain:
    def __init__(self): self.first = None
    def put(self, x): self.first = [x, self.first]
"""
DRIVE = """
def drive(r, to):
    while r.place != to: r.move(1 if r.place < to else -1)
def where(r): return r.place
def turn(r): r.turn()
def cut(c): c.first = None
"""
DRIVES = """
r = Robot(0)
drive(r, 3)
assert r.place == 3 and r.moves == 3
assert where(r) == 3
"""
TURNS = "r = Robot(0)\nturn(r)\nassert r.log == ['turn']"
CUTS = "c = Chain()\nc.put(1)\ncut(c)\nassert c.first is None and where(Robot(5)) == 5"


@pytest.mark.parametrize("is_known", [True, False])
def test_what_the_reference_changes_by_methods_alone_an_answer_does_as_well(
    tmp_path: Any, open_fork_server: ForkServer, is_known: bool
) -> None:
    parts = [("table", ROBOT), ("work", DRIVE), ("t_drive", DRIVES, 1), ("t_cut", CUTS, 1)]
    parts += [("t_turn", TURNS, 1)]
    made = Task(tmp_path, open_fork_server, parts, 20.0)
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    if is_known:
        made.known = Transcripts(made)
    assert made.scores(work=DRIVE) == {"t_drive": 1, "t_cut": 1, "t_turn": 1}
    right = DRIVE.replace("while", "assert isinstance(r, Robot)\n    while")
    assert made.scores(work=right) == {"t_drive": 1, "t_cut": 1, "t_turn": 1}
    seen = DRIVE.replace("r.place\n", "vars(r)['place']\n")
    assert made.scores(work=seen)["t_cut"] == 1
    for lie in ("r.place, r.moves = to, 3", "r.__dict__.update(place=to, moves=3)"):
        wrong = (
            f"def drive(r, to): {lie}\ndef where(r): return r.place\ndef cut(c): c.first = None\n"
        )
        wrong += "def turn(r): r.log = ['turn']"
        assert made.scores(work=wrong) == {"t_drive": 0, "t_cut": 1, "t_turn": 0}, lie


@pytest.mark.parametrize("place", ["helper.py", "helper/__init__.py"])
def test_objects_of_a_helpers_classes_cross_as_well(
    course: Any, monkeypatch: Any, place: str
) -> None:
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    monkeypatch.setitem(sys.modules, "helper", sys)  # taken away afterwards, whatever it is then
    del sys.modules["helper"]
    made = course("table", "import dataclasses\nimport helper\nfrom helper import City, Item, Node")
    folder = made.assignment.folder
    (folder / place).parent.mkdir(exist_ok=True)
    (folder / place).write_text(GIVEN)
    made.assignment = replace(read_assignment(folder), stand_in=True)
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    right = WORK.replace("Item(i.name", "helper.Item(i.name").replace(
        "c.people]", "isinstance(c, helper.City)]"
    )
    assert made.scores(work=right) == {"t_work": 1}
    assert made.scores(work=WORK.replace("* factor", "* 7")) == {"t_work": 0}


# --- lies ----------------------------------------------------------------------------------------


LYING = """
from autograder.bridge import outgoing
class Lie:
    def __init__(self, *tree): self.tree = [*tree]
def other(self, value, true=outgoing.ValueEncoder.other):
    return value.tree if type(value) is Lie else true(self, value)
outgoing.ValueEncoder.other = other
def one(path, n=1, theirs=True, **held):
    return Lie("RC", [theirs, n], [[theirs, n, path, list(held), []]], [list(held.values())])
"""
REFUSED = {
    "a class of a module's": "one('copy.deepcopy')",
    "a class of Python's": "one('dataclasses.Field')",
    "a class by a long path": "one('Item.__class__')",
    "a builtin": "one('type')",
    "the space of the tests": "one('Space')",
    "a class of the test's own": "one('Probe', name='a')",
    "a class of the answer's": "one('Own')",
    "an abstract class": "one('Shape')",
    "a class whose objects act when they go": "one('Folder', place='a')",
    "a named tuple as an object": "one('City')",
    "an enumeration as an object": "one('Color', _name_='RED')",
    "an object as a named tuple": "Lie('RN', 'Item', 'a')",
    "a short named tuple": "Lie('RN', 'City', 'a')",
    "a long named tuple": "Lie('RN', 'City', 'a', 1, 2)",
    "a member that is none": "Lie('RE', 'Color', 'GREEN')",
    "a member that is a method": "Lie('RE', 'Color', '__class__')",
    "a member of an object's class": "Lie('RE', 'Item', 'name')",
    "a special name": "one('Item', __class__=1)",
    "no name": "one('Item', **{'a b': 1})",
    "a function in it": "one('Item', name=['H', {'n': 1, 'k': 'function', 'type': 'function'}])",
    "an object in it": "one('Item', name=['L', ['H', {'n': 1, 'k': 'object', 'type': 'x'}]])",
    "a number that nobody gave": "one('Item', 10**6, False, name='a')",
    "a number that is none": "one('Item', -1, name='a')",
    "a number that is a text": "one('Item', 'a', name='a')",
    "a slot that is not there": "one('Pair', one=1, seen=2)",
    "parts that do not fit": "Lie('RC', [True, 1], [[True, 1, 'Item', ['name'], []]], [[1, 2]])",
    "fewer parts than objects": "Lie('RC', [True, 1], [[True, 1, 'Item', [], []]], [])",
    "nothing": "Lie('RC', [True, 1], [], [])",
    "too much": "Lie('RC', [True, 1], [[True, 1, 'Item', [], []]] * 120000, [[]] * 120000)",
    "too much of everything": "Lie('L', *3 * [['RC', [True, 1], 40000 * "
    "[[True, 1, 'Item', [], []]], 40000 * [[]]]])",
    "a hole": "Lie('RR', True, 77)",
    "two classes": "Lie('RC', [True, 1], [[True, 1, 'Item', [], []], "
    "[True, 1, 'Near', [], []]], [[], []])",
    "a key without its hash": "Lie('RC', [True, 1], [[True, 1, 'Student', ['grade'], []]], "
    "[[['S', ['RR', True, 1]]]])",
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_message_makes_nothing_but_objects_of_the_instructors(sides: Any, name: str) -> None:
    both = sides(f"{LYING}class Own: pass\ndef f(): return {REFUSED[name]}")
    with pytest.raises(WireError):
        both.test("class Probe: pass\nf()")
    both.test("assert vars(Item('a')) == {'name': 'a', 'price': 0.0, 'tags': []}")


def test_what_the_text_of_a_class_does_not_set_is_not_believed(sides: Any) -> None:
    both = sides(
        LYING + "def point(): return one('Point', 4, x=1, y=2, other=5)\n"
        "def item(): return one('Item', name='a', price=1.0, label='x', admin=True, seen=1)\n"
        "def account(): return one('Account', 2, owner='a', _balance=3, balance=1000, deposit=5)\n"
        "def square(): return one('Square', 3, side=2, area=1000)\n"
    )
    both.test(
        "assert vars(item()) == {'name': 'a', 'price': 1.0, 'seen': 1}\n"
        "assert item().label() == 'a: 1.0'\n"
        "a = account()\nassert a.balance == 3 and vars(a) == {'owner': 'a', '_balance': 3}\n"
        "assert vars(point()) == {'x': 1, 'y': 2} and square().area == 4"
    )


def test_methods_and_comparisons_are_the_instructors(sides: Any) -> None:
    both = sides(
        "def f(): return Item('wrong')\ndef g(): return {Student('x', 1): 1}\n",
        GIVEN.replace(
            'def label(self): return f"',
            "def __eq__(self, o): return True\n"
            "    def label(self): return 'right'\n    def old(self): return f\"",
        ).replace("return hash(self.name)", "return hash('a')"),
    )
    both.test(
        "assert f() != Item('right') and f().label() == 'wrong: 0.0'\n"
        "assert Student('a', 1) not in g() and Student('x', 1) in g()"
    )


def test_an_object_with_a_dictionary_of_its_own_making_is_what_it_holds(sides: Any) -> None:
    both = sides(
        "class Odd(dict):\n    def __getitem__(self, k): return 5\n    def items(self): return []\n"
        "def f():\n    i = Item('a')\n    i.__dict__ = Odd(name='b', price=1.0, tags=[])\n"
        "    return i\n"
        "class Sub(Item): pass\n"
        "def g():\n    i = Item('a')\n    i.__class__ = Sub\n    return i\n"
    )
    both.test("assert f() == Item('b', 1.0)\nassert g() != Item('a')")


def test_where_a_value_is_due_no_object_is_taken(sides: Any) -> None:
    both = sides(
        LYING
        + "def f(): return Near(0, float('inf'))\ndef g(): return one('Near', value=0, by=1e9)\n"
        "def h(): return [one('Near', value=0, by=1e9)]\ndef same(x): return {x: 1}\n"
        "def town(): return Town('a', 3)\ndef red(): return Color.RED\n"
    )
    names = ("f", "g", "h", "same", "town", "red")
    for name in ("f", "g", "h", "red"):
        with pytest.raises(TypeError, match="where a value was expected"):
            both.test(f"{name}() == 5", expected=[(n, "value") for n in names])
    both.test(
        "i = Student('a', 1)\nassert same(i) == {i: 1} and [*same(i)][0] is i\n"
        "assert town().double().people == 6",
        expected=[(n, "value") for n in names],
    )


CALLING = """
def lack():
    from autograder.bridge.records import Records
    def answer(self, reply, incoming, tree): tree["lacks"] = list(self.classes)
    Records.answer = answer
def pay(a, x): a.deposit(x); return 1
"""
BASKET = """
class Basket:
    def __init__(self, items): self.items, self.by_name, self.inner = list(items), {}, Inner()
    def clear(self): self.items.clear()
    def total(self): return sum(self.items)
    def name(self): self.by_name["x"] = [1]
    def put(self): self.items = [7]
    def deep(self): self.inner.values[0].append(5)
    def fails(self): self.extra = 1; raise KeyError
class Inner:
    __slots__ = ("values",)
    def __init__(self): self.values = [[], (1, [])]
"""
TRIED = """
def f(b):
    try: call(b)
    except KeyError: pass
"""


@pytest.mark.parametrize(
    ("call", "label"),
    [
        ("lambda b: b.clear()", "Basket@0"),
        ("lambda b: (lambda f: f())(b.clear)", "Basket@0"),
        ("lambda b: b.name()", "Basket@0"),
        ("lambda b: b.put()", "Basket@0"),
        ("lambda b: b.deep()", "Inner@0.2"),
        ("lambda b: b.fails()", "Basket@0"),
        ("lambda b: b.total()", None),
    ],
)
@pytest.mark.parametrize("lacks", [False, True])
def test_what_methods_of_the_tests_own_change_for_an_answer_is_a_change(
    sides: Any, call: str, label: str | None, lacks: bool
) -> None:
    both = sides(CALLING)
    both.space.prepare(BASKET, "basket")
    source = f"call = {call}\n{TRIED}" + "lack()\n" * lacks
    assert both.student.run("basket", BASKET + source, 60).ok
    both.space.hand_over(["f"])
    state = "(b.items, b.by_name, b.inner.values, sorted(vars(b)))"
    test = f"b = Basket([1])\nbefore = copy.deepcopy({state})\nf(b)\nchanged = before != {state}"
    changed = both.test(test)[-1].changed
    assert changed == (() if label is None else (label,))
    assert both.space["changed"] is (label is not None)
    both.test(test, allowed=[("f", ())])
    assert both.space["changed"] is False
    if label is not None:
        both.test(test, allowed=[("f", (label,))])
        assert both.space["changed"] is True


def test_private_parts_that_methods_change_are_changes(sides: Any) -> None:
    both = sides(CALLING)
    test = "a = Account('x', 1)\npay(a, 3)"
    assert both.test(test + "\nassert a.balance == 4")[0].changed == ("Account@0",)
    both.test(test + "\nassert a.balance == 1 and a.log == []", allowed=[("pay", ())])
    right = [("pay", ("Account@0",))]
    both.test(test + "\nassert a.balance == 4 and a.log == [3]", allowed=right)
    kept = "class Spy:\n    n = 0\n    def __call__(self, x): self.n += 1; return x\n"
    both.student.run("more", "def g(f): return f(1) + f(2)", 60)
    both.space.hand_over(["g"])
    assert (
        both.test(kept + "s = Spy()\ng(s)\nassert s.n == 2", allowed=[("g", ())])[0].changed == ()
    )


TURNING = """
class Turning:
    n = 0
    def __iter__(self):
        self.n += 1
        return iter([] if self.n == 1 else range(50))
    def __next__(self): raise StopIteration
class Full(Turning):
    def __len__(self): return 15
turning, full, lazy = Turning(), Full(), map(abs, [-1, -2])
def give(): return map(abs, [-1, -2])
"""


def test_a_global_value_that_is_an_iterator_has_the_same_parts_ever_after(sides: Any) -> None:
    both = sides(TURNING)
    both.space.is_value = lambda name: name in ("turning", "full", "lazy", "made")
    both.test(
        "assert list(turning) == list(turning) == [] and not hasattr(turning, 'n')\n"
        "assert [list(lazy), sum(lazy)] == [[1, 2], 3]"
    )
    with pytest.raises(TypeError, match="your full is a Full where a value is expected"):
        both.test("full")
    both.space.prepare("made, other = give(), give()", "made")
    both.test(
        "assert [list(made), sum(made)] == [[1, 2], 3]\n"
        "assert [list(other), list(other)] == [[1, 2], []]"
    )


OWN_CLASSES = """
class Fake(Item):
    def label(self): return "right"
    def more(self): return self.name + "!"
class Slotted(Pair):
    __slots__ = ("more",)
class Own: pass
def fake():
    made = Fake("a", 1.0)
    made.seen = 1
    return made
def several(): return [Fake("a"), {"x": (Fake("b"), Item("c"))}]
def lazy(): return (Fake(n) for n in "ab")
def slotted(): return Slotted(1, Fake("a"))
def town(): return type("Big", (Town,), {"double": lambda self: 5})("a", 3)
def covered():
    made = Item("a")
    made.label = lambda: "right"
    return made
def own(): return Own()
def inside(): return [Item("a"), Own()]
def kind(): return Fake
def plain(): return 5
kept = Fake("kept")
def give(): return kept
def read(i): return i is kept, type(i) is Fake, i.price, i.more()
"""
KNOWN = ("fake", "several", "lazy", "slotted", "town", "covered", "own", "inside", "kind", "plain")


def test_where_an_object_of_the_instructors_is_due_a_real_one_is_taken(sides: Any) -> None:
    both = sides(OWN_CLASSES)
    both.test("assert fake().label() == 'right' and isinstance(fake(), Item)")
    expected = [(name, "known") for name in (*KNOWN, "give")]
    both.test(
        "i = fake()\nassert type(i) is Item and i == Item('a', 1.0) and i.label() == 'a: 1.0'\n"
        "assert not hasattr(i, 'more') and plain() == 5\n"
        "one, more = several()\nassert [one, *more['x']] == [Item('a'), Item('b'), Item('c')]\n"
        "assert list(lazy()) == [Item('a'), Item('b')]\n"
        "assert slotted() == Pair(1, Item('a')) and town().double() == ('a', 6)\n"
        "k = give()\nassert k is give() and read(k) == (True, True, 0.0, 'kept!')\n"
        "k.price = 3.0\nassert read(k) == (True, True, 3.0, 'kept!')",
        expected=expected,
    )
    for name in ("covered", "own", "inside", "kind"):
        with pytest.raises(TypeError, match="where an object of the course's own class"):
            both.test(f"{name}()", expected=expected)


def test_what_is_due_follows_from_what_the_reference_gave(sides: Any) -> None:
    both = sides(OWN_CLASSES + "def item(): return Item('a')\n")
    calls = ("item()", "[*several()]", "own()", "plain()", "inside()", "covered()")
    crossings = [call for one in calls for call in both.test(one)]
    found = dict(expectations(crossings))
    assert {name: found[name] for name in ("item", "plain", "own", "inside", "covered")} == {
        "item": "known",
        "plain": "value",
        **dict.fromkeys(("own", "inside", "covered"), "object"),
    }


SHOP = """
class Basket:
    def __init__(self, items): self.items = list(items)
    def clear(self): self.items.clear()
    def total(self): return sum(self.items)
class Stack:
    def __init__(self): self._items = []
    def push(self, x): self._items.append(x)
    def pop(self): return self._items.pop()
    def size(self): return len(self._items)
"""
SHOP_WORK = """
def bag(xs): return Basket(xs)
def pay(b): return b.total()
def drain(s): return [s.pop() for _ in range(s.size())]
def windows(xs): return [tuple(xs[i:i + 2]) for i in range(len(xs) - 1)]
def walk(t, visit):
    for k, v in t.items(): visit(k, v)
"""
SHOP_TESTS = [
    ("t_bag", "b = bag([1, 2])\nassert isinstance(b, Basket) and b.total() == 3", 1),
    ("t_pay", "for xs in ([5, 7], []):\n    b = Basket(xs)\n    assert pay(b) == b.total()", 1),
    ("t_drain", "s = Stack()\ns.push(1)\ns.push(2)\nassert drain(s) == [2, 1] and not s.size()", 1),
    (
        "t_windows",
        "w = windows([1, 2, 3])\nassert sum(1 for _ in w) == 2\n"
        "assert all(b - a == 1 for a, b in w)",
        1,
    ),
    (
        "t_walk",
        "want, seen = {'x': 1}, []\ndef visit(name, value):\n    seen.append(name)\n"
        "    assert want[name] == value\nwalk({'x': 1}, visit)\nassert len(seen) == 1",
        1,
    ),
]
OTHER_STYLE = """
class Bag(Basket):
    def mean(self): return self.total() / len(self.items)
def bag(xs): return Bag(xs)
def pay(b): return sum(b.items)
def drain(s):
    found = []
    while True:
        try: found.append(s.pop())
        except IndexError: return found
def windows(xs): return zip(xs, xs[1:])
def walk(t, visit): [visit(*pair) for pair in t.items()]
"""
WRONG = """
class Bag(Basket):
    def total(self): return 3
def bag(xs): return Bag([])
from autograder.bridge.records import Records
before = Records.answer
def answer(self, reply, incoming, tree):
    before(self, reply, incoming, tree)
    if "kinds" in incoming.frame.tree: tree["lacks"] = list(self.classes)
Records.answer = answer
def pay(b):
    b.clear()
    return 0
def drain(s): return [2, 1]
def windows(xs): return (n for n in ((1, 3), (1, 4)))
def walk(t, visit):
    for k in t:
        try: visit("zzz", 0)
        except Exception: pass
"""


def test_no_object_of_a_wrong_answer_earns_a_point(
    tmp_path: Any, open_fork_server: ForkServer
) -> None:
    parts = [("table", SHOP), ("work", SHOP_WORK), *SHOP_TESTS]
    made = Task(tmp_path, open_fork_server, parts, 20.0)
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    made.known = Transcripts(made)
    right = {name: 1 for name, *_ in SHOP_TESTS}
    assert made.scores(work=SHOP_WORK) == right
    assert made.scores(work=OTHER_STYLE) == right
    assert made.scores(work=WRONG) == dict.fromkeys(right, 0)


def test_what_is_told_of_another_object_is_a_change_like_all_others(sides: Any) -> None:
    lie = (
        LYING + "def f(i, j): return one('Item', 1, False, name='j', price=9.0)\n"
        "def g(i): return Lie('RC', [False, 1], [[False, 1, 'Near', ['by'], []]], [[1]])\n"
    )
    both = sides(lie)
    source = ITEM + "j = Item('j')\nk = f(i, j)\nassert i.name == 'pen' and k.name == 'j'"
    both.test(source + "\nassert k is not i", allowed=[("f", ())])
    assert both.student.peer.changed_ours
    both = sides(lie)
    with pytest.raises(AssertionError):
        both.test(source)
    with pytest.raises(WireError):
        sides(lie).test(ITEM + "g(i)")


def test_what_modules_hold_is_not_changed_through_an_object(sides: Any, monkeypatch: Any) -> None:
    both = sides("def f(i): i.tags.append('x')\ndef g(i): i.tags = [1]\n")
    words = ["a"]
    monkeypatch.setattr(old, "_numbers", frozenset({id(words)}))
    both.space["words"] = words
    both.test("i = Item('a', 1.0, words)\nf(i)\ng(i)\nf(i)\nassert i.tags == [1, 'x']")
    assert words == ["a"]


def test_lies_about_classes_and_changes_end_in_a_refusal(sides: Any) -> None:
    for lie in ("5", "[5]", "['RC']", "['R', 0]", "{}", "['L', ['RR', True, 'x']]"):
        both = sides(
            "from autograder.bridge.records import Records\n"
            f"def answer(self, reply, incoming, tree): tree['o'], tree['lacks'] = {lie}, [[], 5]\n"
            "def f(i):\n    Records.answer = answer\n    return i\n"
        )
        with contextlib.suppress(WireError):
            both.test(ITEM + "assert f(i) is i\nassert vars(i) == vars(Item('pen', 2.0, ['blue']))")
        assert both.space["Item"]("a").name == "a"


def test_objects_that_hold_each_other_end(sides: Any) -> None:
    both = sides(
        "def f():\n    a, b = Pair(1), Pair(2)\n    a.one, b.one = b, a\n"
        "    a.two = b.two = [a, b]\n    return a\n"
        "def deep():\n    a = []\n    for _ in range(500): a = [a]\n    return Item(a)\n"
        "def wide():\n    a = Pair(1)\n    for _ in range(200): a = Pair(a, a)\n    return a\n"
    )
    both.test(
        "a = f()\nassert a.one.one is a and a.two is a.one.two and a.two[0] is a\n"
        "w = wide()\nassert w.one is w.two"
    )
    with pytest.raises(Exception, match="nested too deeply"):
        both.test("deep().name")

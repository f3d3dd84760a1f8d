"""Objects of classes that an answer has made of Python's own, and their uses."""

import collections
import copy
import json
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from autograder.bridge.based import is_value
from autograder.bridge.stand_ins import remote_of
from autograder.isolation.fork_server import ForkServer
from autograder.judge.guard import Guard
from tests.bridge.based_ends import (
    CLASSES,
)
from tests.bridge.ends import (
    of_tests,
    unbelieving,
)


@pytest.fixture
def answer(open_fork_server: ForkServer) -> Iterator[Callable[[str], Any]]:
    """answer(source) runs it; tests believe no operator of its objects, as where there is none."""
    yield from unbelieving(open_fork_server)


def test_a_list_with_methods_of_its_own_is_one_and_has_them(answer: Any) -> None:
    names = answer(CLASSES)
    s: Any = names.Stack()
    assert s == []
    assert not s
    s.push(1)
    s.push([2])
    assert s == [1, [2]]
    assert [1, [2]] == s  # noqa: SIM300
    assert s != [1]
    assert len(s) == 2
    assert s[0] == 1
    assert s[-1] == s.peek() == [2]
    assert s[:1] == [1]
    assert list(s) == [1, [2]]
    assert [2] in s
    assert 3 not in s
    assert s + [4] == [1, [2], 4]  # noqa: RUF005
    assert isinstance(s, list)
    assert isinstance(s, names.Stack)
    assert repr(s) == str(s) == "[1, [2]]"
    assert s.pop() == [2]
    s.append(5)
    s[0] = 7
    s += [8]
    del s[1]
    assert sorted(s, reverse=True) == [8, 7]
    assert s < [9]
    assert s.index(8) == 1
    assert list(reversed(s)) == [8, 7]
    assert names.double(s) == [7, 8, 7, 8]
    assert names.is_stack(s) == "Stack"
    assert s == names.Stack([7, 8])
    assert s != names.Stack([7])
    assert copy.deepcopy(s) == [7, 8]
    with pytest.raises(AttributeError):
        s.nothing()
    with pytest.raises(IndexError):
        s[5]
    assert np.array(s).tolist() == [7, 8]


def test_a_table_with_methods_of_its_own_is_one_and_has_them(answer: Any) -> None:
    names = answer(CLASSES)
    v = names.Vocab(["a", "b"])
    assert v.lookup("b") == 1
    assert v.lookup("z") == v.unknown == -1
    assert v == {"a": 0, "b": 1}
    assert sorted(v) == ["a", "b"]
    assert dict(v) == {**v} == {"a": 0, "b": 1}
    assert "a" in v
    assert "z" not in v
    assert v.get("z", 5) == 5
    assert list(v.items()) == [("a", 0), ("b", 1)]
    assert v | {"c": 2} == {"a": 0, "b": 1, "c": 2}
    v["c"] = 9
    assert v.lookup("c") == v["c"] == 9
    with pytest.raises(KeyError):
        v["z"]
    assert isinstance(v, dict)
    assert names.Vocab.of("x y").lookup("y") == 1
    assert names.build(["q"]).lookup("q") == 0
    assert names.made.lookup("a") == 0
    assert names.Zero({"a": 1})["b"] == 0
    assert {**names.Zero({"a": 1})} == {"a": 1}


def test_other_kinds_of_containers(answer: Any) -> None:
    names = answer(CLASSES)
    bag = names.Bag("aab")
    assert bag.most() == "a"
    assert bag == {"a": 2, "b": 1}
    assert bag == collections.Counter("aab")
    assert bag["z"] == 0
    graph = names.Graph()
    graph.link(1, 2)
    graph.link(1, 3)
    assert graph == {1: [2, 3]}
    assert graph[5] == []
    assert set(graph) == {1, 5}
    group = names.Group([1])
    group.join(2)
    assert group == {1, 2}
    assert group & {2, 3} == {2}
    assert group | {3} == {1, 2, 3}
    assert group <= {1, 2, 3}
    queue = names.Queue()
    queue.put(1)
    assert queue == collections.deque([1])
    assert queue.popleft() == 1


def test_a_number_or_text_with_methods_of_its_own_is_one_and_has_them(answer: Any) -> None:
    names = answer(CLASSES)
    c = names.Celsius(100.5)
    assert c.to_f() == pytest.approx(212.9)
    assert c == 100.5
    assert c + 1 == 101.5
    assert isinstance(c, float)
    assert isinstance(c, names.Celsius)
    assert json.dumps([c]) == "[100.5]"
    assert f"{c:.0f}" == "100"
    money = names.Money(5)
    assert repr(money) == "5 EUR"
    assert money.unit == "EUR"
    assert money == 5
    assert {money: 1}[5] == 1
    word = names.Word("abe")
    assert word.vowels() == 2
    assert word.upper() == "UPABE"
    assert "".join([word, "x"]) == "abex"
    assert word[0] == "a"
    assert names.double(word) == list("abeabe")


def test_tuples_with_methods_of_their_own(answer: Any) -> None:
    names = answer(CLASSES)
    p: Any = names.Point(3, -4)
    assert (p.x, p.y, p.norm()) == (3, -4, 7)
    assert p._asdict() == {"x": 3, "y": -4}
    assert p == (3, -4)
    assert isinstance(p, tuple)
    assert repr(p) == "Point(x=3, y=-4)"
    v, three = names.Vector(1, 2), (3,)
    assert v + three == (1, 2, 3)  # the sum is believed only where the reference has one
    names._peer.policy = Guard(frozenset(["__add__"]))
    total = v + names.Vector(2, 2)
    assert total == (3, 4)
    assert total.norm() == 5
    names._peer.policy = Guard()
    assert v + three == (1, 2, 3)


def test_members_of_an_enumeration(answer: Any) -> None:
    names = answer(CLASSES)
    one: Any = names.Num.ONE
    assert (one.name, one.value) == ("ONE", 1)
    assert one == 1
    assert one is names.Num.ONE
    assert one + 1 == names.Num.TWO
    assert repr(one) == "<Num.ONE: 1>"
    assert [n.name for n in names.numbers()] == ["ONE", "TWO"]
    assert [n.name for n in names.Num] == ["ONE", "TWO"]
    assert len(names.Num) == 2
    assert names.Num["TWO"] is names.Num(2)
    assert isinstance(one, names.Num)
    assert isinstance(one, int)
    red = names.Color.RED
    assert red is names.Color("r")
    assert red == names.Color.RED
    assert red != names.Color.BLUE
    assert red in names.Color
    assert {red: 1}[names.Color.RED] == 1
    assert names.paint(red) is names.Color.BLUE
    assert isinstance(names.paint(red), names.Color)
    low: Any = names.Level.LOW
    assert low.name == "LOW"
    assert low == "low"
    with pytest.raises(ValueError, match="is not a valid"):
        names.Color("x")


def test_an_object_is_one_of_a_class_that_a_test_meets_later(answer: Any) -> None:
    names = answer("class Thing: pass\nclass More(Thing): pass\ndef make(): return More()\n")
    thing = names.make()
    assert isinstance(thing, names.Thing)
    assert isinstance(thing, names.More)


def public(value: Any) -> set[str]:
    """The names that a test may use of a value."""
    return {name for name in dir(value) if not name.startswith("_")}


IN_PLACE = """
class Row(list):
    def __iadd__(self, other): return Row([*self, *other, 'end'])
class Heap(list):
    def __iadd__(self, other):
        self.extend(sorted(other))
        return self
class Bag(set):
    def __ior__(self, other): return sorted({*self, *other})
"""


def test_a_class_may_give_another_object_where_it_could_change_its_own(answer: Any) -> None:
    names = answer(IN_PLACE)
    row = before = names.Row([1])
    row += [2]
    assert row == [1, 2, "end"]
    assert isinstance(row, names.Row)
    assert before == [1]
    heap = same = names.Heap()
    heap += [3, 2]
    assert heap is same
    assert heap == [2, 3]
    bag = names.Bag("b")
    bag |= {"a"}
    assert bag == ["a", "b"]


COMPARED = """
from typing import NamedTuple
class Polynomial(list):
    def __eq__(self, other): return self.cut() == other.cut()
    def __ne__(self, other): return not self == other
    def cut(self): return [*self][:max((n for n, c in enumerate(self, 1) if c), default=0)]
class Student(NamedTuple):
    name: str
    grade: int
    def __lt__(self, other): return self.grade < other.grade
class Name(str):
    def __eq__(self, other): return self.lower() == other.lower()
    def __hash__(self): return hash(self.lower())
"""


def test_objects_of_one_class_compare_as_it_says(answer: Any) -> None:
    names = answer(COMPARED)
    assert names.Polynomial([1, 0]) == names.Polynomial([1])
    assert not names.Polynomial([1, 0]) != names.Polynomial([1])  # noqa: SIM202
    assert names.Polynomial([1]) != names.Polynomial([2])
    assert names.Polynomial([1, 0]) != [1]  # a plain value is one, and nobody is asked
    assert names.Name("Bo") == names.Name("bo")
    assert names.Name("Bo") != "bo"
    assert hash(names.Name("Bo")) == hash("Bo")
    best, other = names.Student("a", 9), names.Student("b", 2)
    assert best < other  # an order is believed where the reference has one
    names._peer.policy = Guard(frozenset(["__lt__"]))
    assert sorted([best, other]) == [other, best]
    assert other < best
    assert best < ("b", 1)


SAME = """
from typing import NamedTuple
class Card(NamedTuple):
    rank: int
    def show(self): return str(self.rank)
class Money(int):
    def show(self): return f"{int(self)} EUR"
class Hand:
    def take(self, card): self.card = card
def best(cards): return max(cards)
"""


def test_a_number_or_tuple_that_comes_back_is_the_same_one(answer: Any) -> None:
    names = answer(SAME)
    for kind in (names.Card, names.Money):
        low, high, hand = kind(1), kind(2), names.Hand()
        assert names.best([low, high]) is high
        hand.take(low)
        assert hand.card is low
        assert hand.card.show() == low.show()
        assert kind(1) is not low


def test_what_adds_nothing_is_plain_and_what_stands_in_a_list_is_no_more_than_a_value(
    answer: Any,
) -> None:
    names = answer(CLASSES)
    assert type(names.Plain([1])) is list
    plain, word = names.some()
    assert type(plain) is list
    assert isinstance(word, str)
    assert is_value(word)
    assert public(word) == public("")


def test_where_the_reference_gives_a_value_the_same_is_given_plain(answer: Any) -> None:
    names = answer(CLASSES)
    asked = ("build", "Vocab", "Money", "Word", "numbers", "Point")
    names._peer.expected = [(name, "value") for name in asked]
    with names._peer.recording() as crossings:
        assert type(names.build(["a"])) is dict
        assert type(names.Vocab(["a"])) is dict
        money, word, point = names.Money(3), names.Word("a"), names.Point(1)
        assert isinstance(money, int)
        assert isinstance(word, str)
        assert all(isinstance(n, int) and is_value(n) for n in names.numbers())
        assert point._fields == ("x", "y")
        assert all(map(is_value, (money, word, point)))
        assert public(money) == public(3)
    assert [remote_of(call.outcome) for call in crossings] == [None] * 6


OF_THE_LIBRARY = {
    "Fraction": "Fraction(2, 6)",
    "Decimal": "Decimal('1.250')",
    "datetime": "datetime(2024, 2, 29, 12, 30, 1, 5, timezone.utc, fold=1)",
    "date": "date(2024, 2, 29)",
    "time": "time(1, 2, 3, 4)",
    "timedelta": "timedelta(days=-1, microseconds=7)",
    "UUID": "UUID(int=7)",
    "UserList": "UserList([1])",
}


@pytest.mark.parametrize("kind", OF_THE_LIBRARY)
def test_so_it_is_of_numbers_and_dates_of_the_library(answer: Any, kind: str) -> None:
    source = (
        "from fractions import Fraction\nfrom decimal import Decimal\n"
        "from datetime import *\nfrom uuid import UUID\nfrom collections import UserList\n"
    )
    made = OF_THE_LIBRARY[kind]
    more = f"class More({kind}):\n    def more(self): return 'more'\n"
    names = answer(
        f"{source}{more}def one(): return More{made.removeprefix(kind)}\n"
        "def some(): return [one()]\n"
    )
    want: dict[str, Any] = {}
    exec(f"{source}value = {made}", want)
    assert names.one().more() == "more"
    names._peer.expected = [("one", "value"), ("some", "value")]
    with names._peer.recording():
        for got in (names.one(), names.some()[0]):
            assert type(got) is type(want["value"])
            assert (got, repr(got)) == (want["value"], repr(want["value"]))


STOCK = """
from collections.abc import MutableMapping
from collections import UserDict
class Stock(MutableMapping):
    def __init__(self, **held): self.held = held
    def __getitem__(self, key): return self.held[key]
    def __setitem__(self, key, value): self.held[key] = value
    def __delitem__(self, key): del self.held[key]
    def __iter__(self): return iter(self.held)
    def __len__(self): return len(self.held)
class Other(UserDict): pass
def wrapped(): return Other(a=1, b=[2])
"""


def test_so_it_is_of_the_views_of_a_table_that_a_class_makes_up(answer: Any) -> None:
    names = answer(STOCK)
    ways = ("keys", "values", "items")
    names._peer.expected = [
        (f"{one}.{way}", "value") for one in ("Stock", "wrapped") for way in ways
    ]
    with names._peer.recording():
        for stock in (names.Stock(a=1, b=[2]), names.wrapped()):
            assert stock.keys() == {"a", "b"}
            assert list(stock.values()) == [1, [2]]
            assert dict(stock.items()) == {"a": 1, "b": [2]}
            assert "a" in stock.keys()  # noqa: SIM118
            assert len(stock.items()) == 2


def test_contents_are_those_of_now_and_are_asked_for_once(answer: Any) -> None:
    names = answer(CLASSES)
    vocab = names.Vocab([str(n) for n in range(500)])
    before = names._peer.requests
    assert all(str(n) in vocab and vocab[str(n)] == n for n in range(500))
    assert len(vocab) == len(list(vocab)) == 500
    assert names._peer.requests < before + 5
    inner = names.Stack([[1]])
    assert inner == [[1]]
    seen = []
    space = of_tests("def look(): seen.append(list(stack))")
    space |= {"seen": seen, "stack": inner}
    names._student.run("more", "def grow(s, f):\n    s.push(2); f(); s.push(3); f()\n", 60)
    names.grow(inner, space["look"])
    assert seen == [[[1], 2], [[1], 2, 3]]


PATHS = """
import pathlib, tempfile
def save(text):
    path = pathlib.Path(tempfile.mkdtemp()) / 'a' / 'b.txt'
    path.parent.mkdir()
    path.write_text(text)
    return path
def both(): return [pathlib.Path('x/y'), pathlib.PurePosixPath('x/y')]
def name(path): return path.name, type(path).__name__
"""


def test_a_path_is_equal_to_its_like_and_its_file_is_where_the_answer_put_it(answer: Any) -> None:
    names = answer(PATHS)
    path = names.save("so")
    assert path.exists()
    assert path.read_text() == "so"
    assert path.name == "b.txt"
    assert path.parent.is_dir()
    assert (path.parent / "b.txt").read_text() == "so"
    assert path == pathlib.Path(str(path))
    assert isinstance(path, pathlib.Path)
    one, other = names.both()
    assert one == other == pathlib.Path("x/y")
    assert {one: 1}[pathlib.Path("x/y")] == 1
    assert sorted([one, pathlib.Path("a")])[0] == pathlib.Path("a")
    assert repr(one) == "PosixPath('x/y')"
    assert names.name(pathlib.Path("u/v")) == ("v", "PosixPath")
    assert names.name(one) == ("y", "PosixPath")

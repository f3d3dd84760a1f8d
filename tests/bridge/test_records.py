"""Objects of the instructor's own classes: real ones on either side."""

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from autograder.isolation.fork_server import ForkServer
from autograder.judge import rehearsal
from autograder.judge.assignment import read_assignment
from tests.bridge.record_ends import (
    GIVEN,
    ITEM,
)
from tests.judge.small_course import SETUP, Task, heard_of

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
        made.known = heard_of(made)
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

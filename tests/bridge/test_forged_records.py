"""Objects of the instructor's own classes: no lie earns a point."""

import contextlib
from typing import Any

import pytest

from autograder.bridge.reference import expectations
from autograder.bridge.wire import WireError
from autograder.isolation.fork_server import ForkServer
from autograder.judge import old, rehearsal
from autograder.judge.referred import Referred
from tests.bridge.record_ends import (
    GIVEN,
    ITEM,
)
from tests.judge.small_course import Task, heard_of

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
    both.space.referred = Referred(lambda names: dict.fromkeys({*names} - {"other"}, 1))
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
        "inside": "objects",
        **dict.fromkeys(("own", "covered"), "object"),
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
    made.known = heard_of(made)
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

"""Whatever way an answer gives nothing in the place of numbers, it earns nothing by it."""

from typing import Any

import pytest

from autograder.judge.nothing import NO_NUMBERS, NOTHING
from autograder.judge.work import Work
from tests.judge.small_course import heard_of

NO = "np.zeros((0, 1, 1))"
SETUP = """\
import collections
from dataclasses import dataclass
from types import SimpleNamespace
from torch import nn

@dataclass
class Given:
    v: object

x = np.arange(3.0)
"""
MODULE = """\
class M(nn.Module):
    def __init__(self):
        super().__init__()
        {}
    def forward(self, x):
        return x + torch.arange(3.0)"""
BUFFER = MODULE.format("self.register_buffer('t', torch.arange(3.0))")
TWO = "a, b = f(x)\nassert np.allclose(a, x * 2) and np.allclose(b, x + 1)"
EACH = "for i, one in enumerate(f(x)):\n    assert np.allclose(one, x * i)"
ROWS = "def f(x):\n    return [x * i for i in range(3)]"
STEPS = "def f(x):\n    for i in range(3):\n        yield x * i"
ONE = "assert np.allclose(f(x).v, x + 1)"
ITEMS = """\
class Items:
    def __init__(self, given):
        self.given = {}
    def __getitem__(self, n):
        return self.given[n]
    def __len__(self):
        return len(self.given)"""
ITER = "\n    def __iter__(self):\n        return iter(self.given)"
NO_ITER = "\n    def __iter__(self):\n        return iter(())"
WALKED = "assert all(a == b for a, b in zip(Items([1, 2]), [1, 2]))"
COUNTED = "a = Items([5])\nfor n in range(len(a)):\n    assert a[n] == 5"
BY_CALL = "seen = []\nf(seen.append, x)\nassert np.allclose(seen[0], x + 1)"
IN_PLACE = "t = torch.arange(3.0)\nf(t)\nassert torch.allclose(t, torch.tensor([0.0, 2.0, 4.0]))"
PAIR, TABLE = "def f(x):\n    return x * 2, x + 1", "def f(x):\n    return {'b': x, 'a': x + 1}"


def course(task: Any, reference: str, test: str) -> Any:
    """One question, whose reference passes its test."""
    made = task([("look", SETUP), ("asked", reference), ("t_asked", test, 2)])
    assert made.scores() == {"t_asked": 2}
    return made


# the reference, the test, and answers that earn nothing
NOTHINGS = {
    "a list for a pair": (PAIR, TWO, [f"def f(x):\n    return [x * 2, {NO}]"]),
    "a queue": (PAIR, TWO, [f"def f(x):\n    return collections.deque([x * 2, {NO}])"]),
    "steps for a pair": (PAIR, TWO, [f"def f(x):\n    yield x * 2\n    yield {NO}"]),
    "an iterator": (PAIR, TWO, [f"def f(x):\n    return iter([x * 2, {NO}])"]),
    "rows": (
        ROWS,
        EACH,
        [f"def f(x):\n    return (x * 0, {NO})", "def f(x):\n    return iter([])"],
    ),
    "steps": (STEPS, EACH, ["def f(x):\n    return iter(())", f"def f(x):\n    yield {NO}"]),
    "a table": (
        TABLE,
        "assert np.allclose(f(x)['a'], x + 1)",
        [
            f"def f(x):\n    return collections.defaultdict(lambda: {NO}, b=x)",
            f"def f(x):\n    return dict.fromkeys(range(100_001), 1) | {{'a': {NO}}}",
        ],
    ),
    "what can be gone through": (
        ROWS,
        EACH,
        [
            f"def f(x):\n    return {empty}"
            for empty in (
                "set()",
                "frozenset()",
                "''",
                "b''",
                "bytearray()",
                "np.array([], object)",
            )
        ],
    ),
    "no texts": (
        "def f(x):\n    return [str(n) for n in x]",
        "assert all(a == b for a, b in zip(f([1, 2]), '12'))",
        ["def f(x):\n    return []", "def f(x):\n    return iter('')"],
    ),
    "a sequence that is gone through": (ITEMS.format("given"), WALKED, [ITEMS.format("[]")]),
    "what is gone through by steps or by entries": (
        ITEMS.format("given") + ITER,
        WALKED,
        [ITEMS.format("[]"), ITEMS.format("[]") + ITER, ITEMS.format("given") + NO_ITER],
    ),
    "a sequence that has steps": (ITEMS.format("given"), WALKED, [ITEMS.format("given") + NO_ITER]),
    "a sequence of no length": (ITEMS.format("given"), COUNTED, [ITEMS.format("[]")]),
    "a set": (
        "def f(words):\n    return {w.lower() for w in words}",
        "assert f(['A', 'b']) <= {'a', 'b'} and all(map(str.islower, f(['A'])))",
        ["def f(words):\n    return set()", "def f(words):\n    return frozenset()"],
    ),
    "a set that is gone through": (
        "def f(x):\n    return {n * n for n in x}",
        "for n in f([1, 2]):\n    assert n in (1, 4)",
        ["def f(x):\n    return {}.keys()", "def f(x):\n    return iter(set())"],
    ),
    "no truths": (
        "def f(x):\n    return {n: n > 1 for n in x}",
        "assert all(is_so == (n > 1) for n, is_so in f([1, 2]).items())",
        ["def f(x):\n    return {}"],
    ),
    "a name": ("W = np.arange(3.0)", "assert np.allclose(W, [0, 1, 2])", [f"W = {NO}"]),
    "a name's part": ("W = {'a': x}", "assert np.allclose(W['a'], x)", [f"W = {{'a': {NO}}}"]),
    "what a test's function is handed": (
        "def f(g, x):\n    g(x + 1)",
        BY_CALL,
        [f"def f(g, x):\n    g({NO})"],
    ),
    "a change": (
        "def f(rows):\n    rows[0] = rows[0] + 1",
        "rows = [x]\nf(rows)\nassert np.allclose(rows[0], [1, 2, 3])",
        [f"def f(rows):\n    rows[0] = {NO}"],
    ),
    "an object's": (
        "def f(g):\n    g.v = [2, 3]",
        "g = Given(1)\nf(g)\nassert all(a == b for a, b in zip(g.v, [2, 3]))",
        ["def f(g):\n    g.v = []", "def f(g):\n    g.v = ()"],
    ),
    "a tensor": (
        "def f(t):\n    t.mul_(2)",
        IN_PLACE,
        ["def f(t):\n    t.set_(torch.zeros(0, 1))"],
    ),
    "a record": ("def f(x):\n    return Given(x + 1)", ONE, [f"def f(x):\n    return Given({NO})"]),
    "a namespace": (
        "def f(x):\n    return SimpleNamespace(v=x + 1)",
        ONE,
        [f"def f(x):\n    return SimpleNamespace(v={NO})"],
    ),
    "a module's part": (
        BUFFER,
        "assert torch.allclose(M().t, torch.arange(3.0))",
        [
            MODULE.format("self.register_buffer('t', torch.zeros(0, 1))"),
            MODULE.format("self.t = torch.zeros(0, 1)"),
        ],
    ),
}


def test_where_the_reference_is_known_it_is_not_run_with_every_submission(
    task: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    reference, test, answers = NOTHINGS["a module's part"]
    made = course(task, reference, test)
    made.known = heard_of(made)
    monkeypatch.setattr(Work, "_own_runs", None)
    assert made.scores(asked=answers[0]) == {"t_asked": 0}
    monkeypatch.undo()
    made.known.besides.clear()  # too large to be kept
    assert made.scores(asked=answers[0]) == {"t_asked": 0}


@pytest.mark.parametrize("way", NOTHINGS)
def test_nothing_earns_nothing_by_whatever_way_it_comes(task: Any, way: str) -> None:
    reference, test, answers = NOTHINGS[way]
    made = course(task, reference, test)
    for answer in answers:
        found = made.verdicts(asked=answer)["t_asked"]
        assert found.score == 0
        assert found.told.startswith(f"A test failed: {NOTHING}")


# the reference, the test, and right answers in which something has no entries
RIGHT = {
    "parts in another order": (
        "def f(x):\n    return [[n for n in x if n > 1], [n for n in x if n < 1]]",
        "assert sorted(f([3, 5])) == [[], [3, 5]]",
        "def f(x):\n    return [[n for n in x if n < 1], [n for n in x if n > 1]]",
    ),
    "no part of a set where there is one": (
        "def f(x):\n    return {(n,) for n in x}",
        "assert len(f([1, 2])) == 2",
        "def f(x):\n    return {(), (2,)}",
    ),
    "no set": (
        "def f(x):\n    return {n for n in x if n > 1}",
        "assert f([0, 1]) == set() and f([2]) == {2}",
        "def f(x):\n    return frozenset(n for n in x if not n <= 1)",
    ),
    "what is there one after the other": (
        ITEMS.format("given"),
        "a = Items([1, 2])\nassert list(a) == [1, 2]\nwhile len(a): a.given.pop()",
        ITEMS.format("[*given]").replace("len(self.given)", "sum(1 for _ in self.given)"),
    ),
    "none at an index": (
        ITEMS.format("given"),
        "a, b = Items([]), Items([1])\nassert len(a) == 0 and b[0] == len(b) == 1\n"
        "try: a[0]\nexcept IndexError: pass\nelse: assert False",
        ITEMS.format("tuple(given)"),
    ),
    "a last part of many": (
        "def f(g, x):\n    return sum(g(x[i : i + 2]) for i in range(0, len(x), 2))",
        "assert f(sum, [1, 2, 3]) == 6",
        "def f(g, x):\n    return sum(g(x[i : i + 2]) for i in range(0, len(x) + 2, 2))",
    ),
    "a store that a module begins with": (
        BUFFER,
        "assert torch.allclose(M()(torch.zeros(3)), torch.arange(3.0))",
        MODULE.format("self.register_buffer('store', torch.zeros(0, 3))"),
    ),
    "a name that nobody asks for": (
        "W = np.arange(3.0)",
        "assert np.allclose(W, [0, 1, 2])",
        "found = []\nW = [0, 1, 2]",
    ),
    "no text where there is one": (
        "def f(x):\n    return 'none', []",
        "assert len(f(3)) == 2",
        "def f(x):\n    return '', []",
    ),
    "what a table makes of a key that it lacks": (
        "from collections import defaultdict\ndef f(x):\n    made = defaultdict(list)\n"
        "    made[x].append(x)\n    return made",
        "made = f(3)\nassert made[3] == [3] and made[4] == []\n"
        "made[5].append(1)\nassert made[5] == [1]",
        "from collections import defaultdict\ndef f(x):\n    made = defaultdict(lambda: [])\n"
        "    made[x] += [x]\n    return made",
    ),
    "what tables in an object make": (
        "from collections import Counter, defaultdict\nclass A:\n    def __init__(self):\n"
        "        self.seen = defaultdict(Counter)\n        self.seen[1][2] = 3\n"
        "    def both(self):\n        return 1, self.seen",
        "a = A()\nassert a.seen[1] == {2: 3} and a.seen[9] == {}\n"
        "seen = a.both()[1]\nassert seen[1] == {2: 3} and seen['none'] == {}",
        "from collections import Counter, defaultdict\nclass A:\n    def __init__(self):\n"
        "        self.seen = defaultdict(lambda: Counter())\n        self.seen[1].update([2] * 3)\n"
        "    def both(self):\n        return 1, self.seen",
    ),
    "an attribute of its own": (
        "class A:\n    def n(self):\n        return 1",
        "a = A()\nassert not getattr(a, 'more', None) and a.n() == 1",
        "class A:\n    more = ()\n    def n(self):\n        return 1",
    ),
}


@pytest.mark.parametrize("way", RIGHT)
def test_what_has_no_entries_may_be_right(task: Any, way: str) -> None:
    reference, test, answer = RIGHT[way]
    made = course(task, reference, test)
    assert made.scores(asked=answer) == {"t_asked": 2}


NEAR = "assert not (abs(f(x) - x * 2) > 1e-6).any()"
NANS = {
    "a number": ("def f(x):\n    return x * x", "assert not abs(f(3) - 9) > 1e-6", "float('nan')"),
    "an array": ("def f(x):\n    return x * 2", NEAR, "x * np.nan"),
    "an answer beside itself": (
        "def f(x):\n    return x * 2",
        "assert np.array_equal(f(x), f(x), equal_nan=True)",
        "np.full(3, np.nan)",
    ),
}


@pytest.mark.parametrize("what", NANS)
def test_nan_alone_earns_nothing_where_the_reference_gives_numbers(task: Any, what: str) -> None:
    reference, test, given = NANS[what]
    made = course(task, reference, test)
    found = made.verdicts(asked=f"def f(x):\n    return {given}")["t_asked"]
    assert found.score == 0
    assert found.told.startswith(f"A test failed: {NO_NUMBERS}")


def test_nan_may_be_right(task: Any) -> None:
    test = "assert np.isnan(f(x)).all() and len(g(x)) == 2"
    some = "def f(x):\n    return x * np.nan\ndef g(x):\n    return [1.0, 2.0]"
    other = "def f(x):\n    return np.full(3, np.nan)\ndef g(x):\n    return [np.nan, 2.0]"
    made = course(task, some, test)
    assert made.scores(asked=other) == {"t_asked": 2}


COUNTDOWN = """\
class Countdown:
    def __init__(self, n):
        self.n = n
    def __iter__(self):
        return iter(range(self.n, 0, -1))"""
OF_LIST = "class Countdown(list):\n    def __init__(self, n):\n        self.n = n"
FULL = f"{OF_LIST}\n        super().__init__(range(n, 0, -1))"
GOES_THROUGH = "for x in Countdown(3):\n    assert not abs(x - 2) > 1"
STACK = "class Stack:\n    def __init__(self):\n        self.xs = []\n"
STACK += "    def push(self, x):\n        self.xs.append(x)\n"
STACK += "    def __iter__(self):\n        return iter(self.xs)"


@pytest.mark.parametrize("reference", [COUNTDOWN, FULL], ids=["has steps", "is a list"])
def test_an_object_made_of_a_list_that_contains_nothing_earns_nothing(
    task: Any, reference: str
) -> None:
    made = course(task, reference, GOES_THROUGH)
    made.known = heard_of(made)
    assert made.scores(asked=OF_LIST) == {"t_asked": 0}
    assert made.scores(asked=f"{OF_LIST}\n        self.append(math.nan)") == {"t_asked": 0}
    assert made.scores(asked=FULL) == made.scores(asked=COUNTDOWN) == {"t_asked": 2}


def test_an_object_made_of_a_list_may_contain_nothing_at_times(task: Any) -> None:
    test = "s = Stack()\nassert [*s] == []\ns.push(1)\nassert [*s] == [1]"
    made = course(task, STACK, test)
    made.known = heard_of(made)
    assert made.scores(asked="class Stack(list):\n    push = list.append") == {"t_asked": 2}


TIMES = "def make(k):\n    def times(x): return k * x\n    return times"
TIMER = (
    "class make:\n    def __init__(self, k): self.k = k\n    def __call__(self, x): return VALUE"
)


@pytest.mark.parametrize("by_function", [True, False])
def test_nothing_is_nothing_whether_a_class_or_a_function_made_what_gives_it(
    task: Any, by_function: bool
) -> None:
    right = {True: TIMES, False: TIMER.replace("VALUE", "self.k * x")}
    wrong = {True: TIMER, False: "make = lambda k: lambda x: VALUE"}[by_function]
    claim = "assert np.allclose(make(2)(np.ones(3)), [2, 2, 2])"
    loose = "assert not (abs(make(2)(np.ones(3)) - 2) > 1e-9).any()"
    made = task([("make", right[by_function]), ("t_1", claim, 1), ("t_2", loose, 1)])
    made.known = heard_of(made)
    assert made.scores(make=right[not by_function]) == {"t_1": 1, "t_2": 1}
    assert made.scores(make=wrong.replace("VALUE", "np.zeros((0, 1))")) == {"t_1": 0, "t_2": 0}
    odd = "np.where(np.arange(3) > 0, np.nan, 2.0)"  # not a number in places
    assert made.scores(make=wrong.replace("VALUE", odd))["t_2"] == 0


def test_numbers_that_a_test_hands_over_may_be_drawn_one_by_one(task: Any) -> None:
    claim = "want = np.random.default_rng(7).normal(size=3)\n"
    claim += "assert np.allclose(draw(np.random.default_rng(7), 3), want)"
    made = task([("draw", "def draw(rng, n): return rng.normal(size=n)"), ("t_draw", claim, 1)])
    made.known = heard_of(made)
    singly = "def draw(rng, n): return np.array([rng.normal() for _ in range(n)])"
    assert made.scores(draw=singly) == {"t_draw": 1}
    nothing = (
        "def draw(rng, n): return np.array([rng.normal() for _ in range(n)])[:0].reshape(0, 1)"
    )
    assert made.scores(draw=nothing) == {"t_draw": 0}

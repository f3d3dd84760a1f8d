"""What an answer changes in a later call than the one that handed it a list, or gave one."""

from typing import Any

import pytest

from tests.judge.small_course import HIDDEN_PART, rehearsed

ANSWER = """from contextlib import contextmanager
@contextmanager
def tag(out, name):
    out.append(f"<{name}>")
    yield name
    out.append(f"</{name}>")
class Log:
    def __init__(self, out): self.out = out
    def __enter__(self):
        self.out.append("in")
        return self
    def __exit__(self, *a): self.out.append("out")
def steps(out):
    out.append(1)
    yield 1
    out.append(2)
def logged(out):
    def decorate(f):
        def g(*a):
            out.append(a)
            return f(*a)
        return g
    return decorate
def cached(f, table):
    def g(x):
        if x not in table:
            table[x] = f(x)
        return table[x]
    return g
class Cart:
    def __init__(self): self.items = []
    def add(self, x): self.items.append(x)
class Bus:
    def __init__(self): self.heard = []
    def on(self, box): self.heard.append(box)
    def say(self, x):
        for box in self.heard:
            box.append(x)
"""
TESTS = {
    "a context": "out = []\nwith tag(out, 'b') as n:\n    out.append(n)\n"
    "assert out == ['<b>', 'b', '</b>']",
    "a context of a class": "out = []\nwith Log(out):\n    out.append(3)\n"
    "assert out == ['in', 3, 'out']",
    "a generator": "out = []\nassert list(steps(out)) == [1] and out == [1, 2]",
    "a generator's steps": "out = []\ng = steps(out)\nassert out == []\nassert next(g) == 1\n"
    "assert out == [1]\nout.append('x')\nassert next(g, None) is None\nassert out == [1, 'x', 2]",
    "a decorator": "out = []\n@logged(out)\ndef f(x): return x\nassert f(1) + f(2) == 3\n"
    "assert out == [(1,), (2,)]\nout.clear()\nf(3)\nassert out == [(3,)]",
    "a table": "table = {}\nf = cached(lambda x: x * x, table)\nassert f(3) == 9 == f(3)\n"
    "assert table == {3: 9}\ntable[4] = 0\nassert f(4) == 0 and f(2) == 4\n"
    "assert table == {3: 9, 4: 0, 2: 4}",
    "what it gave": "c = Cart()\nitems = c.items\nassert items == []\nc.add('a')\nc.add('b')\n"
    "assert items == ['a', 'b'] == c.items",
    "two lists": "one, two = [], []\nb = Bus()\nb.on(one)\nb.say(1)\nb.on(two)\nb.say(2)\n"
    "assert one == [1, 2] and two == [2]",
    "what holds the test's own": "class Own:\n    pass\none, two = Own(), Own()\nbox = [one]\n"
    "b = Bus()\nb.on(box)\nb.say(two)\nassert box[0] is one and box[1] is two",
}
WRONG = [
    "def tag(out, name): return Log([])\ndef steps(out): yield 1\n"
    "def logged(out): return lambda f: f\ndef cached(f, table): return f\n"
    "class Log:\n    def __init__(self, out): pass\n    def __enter__(self): return 'b'\n"
    "    def __exit__(self, *a): pass\n"
    "class Cart:\n    items = ()\n    def add(self, x): pass\n"
    "class Bus:\n    def on(self, box): pass\n    def say(self, x): pass",
    ANSWER.replace("append(", "insert(0, ").replace("= f(x)", "= x").replace("box.insert(0", "(0"),
]


@pytest.mark.parametrize("way", TESTS)
def test_it_is_done_where_the_test_runs(task: Any, way: str) -> None:
    made = rehearsed(task([("own", ANSWER), ("t_own", TESTS[way], 1)]))
    assert made.scores(own=ANSWER) == {"t_own": 1}
    assert [made.scores(own=wrong)["t_own"] for wrong in WRONG] == [0, 0]


KEEP = "def keep(xs):\n    return len(xs)\ndef square(x):\n    return x * x"
FORGES = (
    "kept = []\ndef keep(xs):\n    kept.append(xs)\n    return len(xs)\n"
    "def square(x):\n    kept[0][:] = [1, 3]\n    return x"
)


def test_what_the_reference_leaves_alone_stays_as_it_is(task: Any) -> None:
    """An answer that makes what is expected like what it gives."""
    test = "want = [1, 9]\nassert keep(want) == 2\nfound = [square(1), square(3)]\n"
    made = rehearsed(task([("own", KEEP), ("t_own", test + "assert found == want", 1)]))
    assert made.scores(own=KEEP) == {"t_own": 1}
    assert made.scores(own=FORGES) == {"t_own": 0}


OWN_USE = """kept = []
def first(xs):
    kept.append(xs)
    return xs[0]
def more(n):
    kept[0].append(n)
    return n + 1
"""


@pytest.mark.parametrize(("end", "points"), [("", 1), (" and xs == [5, 7]", 0)])
def test_what_only_an_answer_changes_counts_where_the_test_looks_at_it(
    task: Any, end: str, points: int
) -> None:
    """As in one process."""
    right = "def first(xs):\n    return xs[0]\ndef more(n):\n    return n + 1"
    test = "xs = [5]\nassert first(xs) == 5\nassert more(1) == 2\nxs.append(7)\n"
    test += "assert more(2) == 3 and more(3) == 4 and first(xs) == 5" + end
    made = rehearsed(task([("own", right), ("t_own", test, 1)]))
    assert made.scores(own=right) == {"t_own": 1}
    verdict = made.verdicts(own=OWN_USE)["t_own"]
    assert verdict.score == points
    assert points or "changed what it was handed (list of an earlier call)" in verdict.told


def test_objects_of_an_answers_are_not_put_there(task: Any) -> None:
    parts = "def log(out):\n    def put(x): out.append({})\n    return put"
    test = "out = []\nput = log(out)\nput(1)\nassert out[0] == 1 and len(out) == 1"
    made = rehearsed(task([("own", parts.format("x")), ("t_own", test, 1)]))
    forged = "class One:\n    def __eq__(self, other): return True\n" + parts.format("One()")
    assert made.scores(own=forged) == {"t_own": 0}
    assert made.scores(own=parts.format("x")) == {"t_own": 1}


REGISTRY = """def register(known):
    def decorate(f):
        known[f.__name__] = f
        return f
    return decorate
"""
WRAPS = """def register(known):
    def decorate(f):
        def g(*given):
            return f(*given)
        known[f.__name__] = g
        return g
    return decorate
"""
ONE = """class One:
    def __call__(self, *given): return self
    def __eq__(self, other): return True
"""


@pytest.mark.parametrize("right", [REGISTRY, WRAPS])
def test_functions_are_put_there_where_the_reference_puts_some(task: Any, right: str) -> None:
    test = "known = {}\n@register(known)\ndef more(x): return x + 1\n"
    test += "assert [*known] == ['more'] and known['more'](3) == 4 == more(3)"
    made = rehearsed(task([("own", right), ("t_own", HIDDEN_PART.format(test), 1)]))
    assert made.scores(own=REGISTRY) == made.scores(own=WRAPS) == {"t_own": 1}
    assert made.scores(own=REGISTRY.replace("= f\n", "= None\n")) == {"t_own": 0}
    lies = ONE + REGISTRY.replace("= f\n", "= One()\n")
    assert made.scores(own=lies) == {"t_own": 0}


def test_objects_are_put_there_where_the_reference_puts_some(task: Any) -> None:
    right = "class Event:\n    def __init__(self, n): self.n = n\nclass Bus:\n"
    right += "    def __init__(self, log): self.log = log\n"
    right += "    def emit(self, n): self.log.append(Event(n))"
    test = "log = []\nbus = Bus(log)\nbus.emit(3)\nbus.emit(4)\n"
    test += "assert [one.n for one in log] == [3, 4] and isinstance(log[0], Event)"
    made = rehearsed(task([("own", right), ("t_own", test, 1)]))
    assert made.scores(own=right) == {"t_own": 1}
    assert made.scores(own=right.replace("Event(n)", "n")) == {"t_own": 0}


LIFE = """class Life:
    def __init__(self, rows): self.rows = rows
    def step(self):
        new = [[1 - x for x in row] for row in self.rows]
        {}
"""
WHOLE = LIFE.format("self.rows[:] = new")
INNER = LIFE.format("for row, now in zip(self.rows, new): row[:] = now")


@pytest.mark.parametrize("right", [WHOLE, INNER])
def test_how_a_list_of_lists_is_changed_is_the_answers_own_affair(task: Any, right: str) -> None:
    test = (
        "rows = [[1, 0], [0, 0]]\nlife = Life(rows)\nlife.step()\nassert rows == [[0, 1], [1, 1]]"
    )
    test += "\nlife.step()\nlife.step()\nassert rows == [[0, 1], [1, 1]]"
    made = rehearsed(task([("own", right), ("t_own", HIDDEN_PART.format(test), 1)]))
    assert made.scores(own=WHOLE) == made.scores(own=INNER) == {"t_own": 1}
    assert made.scores(own=LIFE.format("self.rows = new")) == {"t_own": 0}


def test_another_list_of_the_same_call_is_none_of_it(task: Any) -> None:
    right = "class Log:\n    def __init__(self, out, want): self.out, self.want = out, want\n"
    right += "    def put(self, x): self.out.append(x)"
    test = "out, want = [], [5]\nlog = Log(out, want)\nlog.put(5)\nassert out == want == [5]"
    made = rehearsed(task([("own", right), ("t_own", HIDDEN_PART.format(test), 1)]))
    assert made.scores(own=right) == {"t_own": 1}
    forged = right.replace("append(x)", "append(7); self.want[:] = [7]")
    assert made.scores(own=forged) == {"t_own": 0}


FORGED = [  # what an answer's end could send in a reply: of what was never shared, and worse
    "[[10**6, 0, 0, 1]]",
    "[[1, 0, 0, 'x']]",
    "[[1]]",
    "7",
    "{'a': 1}",
    "[[None, [], 0]]",
    "[[1, 0, 0, ['L', 5]], [1, 0, 0, 10**9]]",
    "[[1, 0, 0, ['H', {'n': 1, 'k': 'object', 'type': 'x'}]]]",
]


@pytest.mark.parametrize("told", FORGED)
def test_a_forged_change_does_no_harm(task: Any, told: str) -> None:
    right = "def log(out):\n    def put(x): out.append(x)\n    return put"
    test = "out = []\nput = log(out)\nput(1)\nassert out == [1]"
    more = "want = [2]\nq = log(want)\nassert want == [2]"
    parts = [("own", right), ("t_own", test, 1), ("t_more", more, 2)]
    made = rehearsed(task(parts))
    forged = (
        "import sys\nlate = sys.modules['autograder.bridge.late_changes']\n"
        f"late.tell = lambda *a: {told}\n" + right
    )
    assert made.scores(own=forged)["t_own"] == 0
    assert made.scores(own=right) == {"t_own": 1, "t_more": 2}
    everywhere = forged.replace(told, "[[n, 0, 0, [1]] for n in range(300)]")
    assert made.scores(own=everywhere) == {"t_own": 1, "t_more": 2}  # as if it had put 1 there

"""Right answers of every ordinary kind get their points; what is told is plain."""

from typing import Any

import pytest

from autograder.judge import rehearsal
from tests.judge.small_course import (
    HIDDEN_PART,
    heard_of,
)

ORDINARY = [  # a question, an answer in other words, a test
    (
        "stack",
        "class Stack(list):\n    def push(self, x): self.append(x)",
        "class Stack(list):\n    def push(self, x):\n        self[len(self):] = [x]",
        "s = Stack()\ns.push(1)\ns.push(2)\nassert s == [1, 2] and len(s) == 2 and s[-1] == 2\n"
        "assert list(s) == [1, 2] and 2 in s and isinstance(s, list)",
    ),
    (
        "vocab",
        "class Vocab(dict):\n    def __init__(self, words):\n"
        "        super().__init__({w: i for i, w in enumerate(words)})\n"
        "    def encode(self, text): return [self[w] for w in text.split()]",
        "class Vocab(dict):\n    def __init__(self, words):\n"
        "        for w in words: self.add(w)\n    def add(self, w): self[w] = len(self)\n"
        "    def encode(self, text): return list(map(self.get, text.split()))",
        "v = Vocab(['a', 'b'])\nassert v.encode('b a') == [1, 0] and v['b'] == 1 and 'z' not in v\n"
        "assert v == {'a': 0, 'b': 1} and sorted(v) == ['a', 'b'] and len(v) == 2",
    ),
    (
        "careful",
        "def careful(): return 1",
        "import faulthandler, subprocess, sys\nfaulthandler.enable()\nfaulthandler.disable()\n"
        "subprocess.run(['true'], stdout=sys.stdout)\ndef careful(): return 1",
        "assert careful() == 1",
    ),
    (
        "table",
        "def table(): return {'a': 1}",
        "class Table(dict):\n    def put(self, k, v): self[k] = v\n"
        "def table():\n    t = Table()\n    t.put('a', 1)\n    return t",
        "t = table()\nassert t == {'a': 1} and type(t) is dict and {**t, 'b': 2}['b'] == 2",
    ),
    (
        "divide",
        "from typing import NamedTuple\nclass Split(NamedTuple):\n    whole: int\n    rest: int\n"
        "def divide(a, b): return Split(*divmod(a, b))",
        "import collections\nSplit = collections.namedtuple('Split', 'whole rest')\n"
        "def divide(a, b): return Split(a // b, rest=a % b)",
        "r = divide(7, 2)\nassert r.whole == 3 and r.rest == 1 and r == (3, 1)\n"
        "assert isinstance(r, Split) and divide(5, 5)._asdict() == {'whole': 1, 'rest': 0}",
    ),
    (
        "due",
        "import datetime as dt\ndef due(day): return day + dt.timedelta(weeks=2)",
        "from datetime import date\ndef due(day): return date.fromordinal(day.toordinal() + 14)",
        "import datetime\nassert due(datetime.date(2024, 2, 20)) == datetime.date(2024, 3, 5)",
    ),
    (
        "home",
        "from pathlib import Path\ndef home(name): return Path('home') / name",
        "import pathlib\ndef home(name): return pathlib.PurePosixPath('home', name)",
        "from pathlib import Path\nassert home('ada') == Path('home/ada')\n"
        "assert home('b').name == 'b'",
    ),
    (
        "count",
        "def count(words):\n    found = {}\n    for w in words: found[w] = found.get(w, 0) + 1\n"
        "    return found",
        "import collections\ncount = collections.Counter",
        "assert count('aab') == {'a': 2, 'b': 1} and count('aab')['a'] == 2",
    ),
    (
        "area",
        "def area(sides): return sides[0] * sides[1]",
        "area = math.prod",
        "assert area([2, 3]) == 6",
    ),
    (
        "take",
        "class Missing(KeyError, ValueError): pass\ndef take(key): raise Missing(key)",
        "class Base(ValueError): pass\nclass Missing(Base, LookupError): pass\n"
        "def take(key): raise Missing(key)",
        "for kind in (ValueError, LookupError, Missing):\n    try:\n        take('a')\n"
        "    except kind as error:\n        assert error.args == ('a',)\n"
        "    else:\n        assert False",
    ),
    (
        "Day",
        "import enum\nclass Day(enum.IntEnum):\n    MON = 1\n    TUE = 2\n"
        "def after(day): return Day(day % 2 + 1)",
        "from enum import IntEnum\nDay = IntEnum('Day', 'MON TUE', module='__main__')\n"
        "def after(day): return Day.TUE if day is Day.MON else Day.MON",
        "assert after(Day.MON) == Day.TUE == 2 and after(Day.TUE).name == 'MON'\n"
        "assert [d.name for d in Day] == ['MON', 'TUE']",
    ),
    (
        "record",
        "def record(): return np.array([(1, 'a')], [('n', 'i4'), ('word', 'U5')])",
        "def record():\n    r = np.zeros(1, [('n', 'i4'), ('word', 'U5')])\n    r['n'] = 1\n"
        "    r['word'] = 'a'\n    return r",
        "assert record()['n'][0] == 1 and (record()['word'] == np.array(['a'])).all()",
    ),
]


@pytest.mark.parametrize("part", ORDINARY, ids=lambda part: part[0])
def test_a_right_answer_of_any_ordinary_kind_gets_its_points(task: Any, part: Any) -> None:
    name, reference, answer, test = part
    made = task([(name, reference), (f"t_{name}", test, 2)])
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    assert made.scores(**{name: answer}) == {f"t_{name}": 2}
    made.known = heard_of(made)
    assert made.scores(**{name: answer}) == {f"t_{name}": 2}


WRAPS = """
import functools
def twice(f):
    @functools.wraps(f)
    def wrapper(x):
        {body}
    return wrapper
"""


ASKS = """
calls = []
def grow(x):
    "One more."
    calls.append(x)
    return x + 1
doubled = twice(grow)
assert doubled(3) == 8 and calls == [3]
assert doubled.__name__ == "grow"
"""


def test_a_decorated_function_of_the_tests_is_the_answers(task: Any) -> None:
    made = task([("twice", WRAPS.format(body="return 2 * f(x)")), ("t_twice", ASKS, 2)])
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    others = [
        "import functools\ndef twice(f):\n    def w(x): return 2 * f(x)\n"
        "    return functools.update_wrapper(w, f)",
        "import functools\ndef twice(f):\n    return functools.wraps(f)(lambda x: f(x) * 2)",
        "import functools\ndef twice(f):\n    f = functools.lru_cache(f)\n"
        "    return functools.wraps(f)(lambda x: f(x) * 2)",
    ]
    for answer in others:
        assert made.scores(twice=answer) == {"t_twice": 2}, answer
    for body in ("f(x)", "raise ValueError", "return f(x)"):
        assert made.scores(twice=WRAPS.format(body=body)) == {"t_twice": 0}, body


ODD = {
    "object": "class Odd: pass\ndef odd(): return Odd()",
    "number": "class Odd(float):\n    def more(self): pass\ndef odd(): return Odd(2)",
    "class": "class Odd: pass\nodd = Odd",
    "sparse": "import torch\ndef odd(): return torch.eye(2).to_sparse()",
    "deep": "def odd():\n    a = []\n    for _ in range(300): a = [a]\n    return a",
    "array": "def odd(): return np.ones(2, dtype='float64')[None].repeat(2, 0)",
    "generator": "def odd(): yield 1",
    "left out": "import torch\nodd = torch.eye(2).to_sparse()",
}


@pytest.mark.parametrize("kind", ODD)
def test_what_is_told_names_nothing_of_the_grader(task: Any, kind: str) -> None:
    tests = [
        ("t_add", "assert odd() + 1 == 2", 1),
        ("t_less", "assert odd() < 2", 1),
        ("t_index", "assert odd()[7:] == [1]", 1),
        ("t_call", "odd()(3)", 1),
        ("t_type", "v = odd()\nassert type(v) is list, f'got {type(v)} {v!r}'", 1),
        ("t_class", "len(odd)\nassert False", 1),
    ]
    made = task([("odd", "def odd(): return 1"), *tests])
    for known in (None, heard_of(made)):
        made.known = known
        result = made.grade(odd=ODD[kind])
        told = [v.told + v.said for v in result.notebooks[0].verdicts]
        told += [*result.notebooks[0].notes, *result.notebooks[0].by_tests]
        told += [flag.words for flag in result.flags]
        for words in told:
            assert "StandIn" not in words
            assert "WireError" not in words
            assert "autograder" not in words, words


def test_an_answer_that_does_not_say_what_its_value_holds_hangs_nobody(task: Any) -> None:
    parts = [
        ("squares", "def squares(n):\n    return [i * i for i in range(n)]"),
        ("table", "TABLE = squares(5)\nsquares(1)"),
        ("t_squares", "assert squares(3) == [0, 1, 4]", 1),
        ("added", "def added(xs):\n    return sum(xs)"),
        ("t_added", "assert added([1, 2]) == 3\nassert added(TABLE) == 30", 1),
    ]
    silent = """
import time
from autograder.bridge.peer import Peer
class Mine(list):
    def more(self): pass
use = Peer._use
Peer._use = lambda self, op, *more: time.sleep(1000) if op == "contents" else use(self, op, *more)
def squares(n):
    return Mine([i * i for i in range(n)])
"""
    made = task(parts, seconds=2.0)
    assert made.scores() == {"t_squares": 1, "t_added": 1}
    assert made.scores(squares=silent) == {"t_squares": 0, "t_added": 1}


RECORDS = "def rows(xs):\n    return np.array(xs, dtype=[('name', 'U9'), ('age', 'i4')])"
NAMES = "assert rows([('ann', 3)])['name'][0] == 'ann'"


def test_an_array_of_objects_is_called_so_where_it_does_not_cross(task: Any) -> None:
    made = task([("rows", RECORDS), ("t_rows", NAMES, 2)])
    made.known = heard_of(made)
    found = made.verdicts(rows=RECORDS.replace("'U9'", "object"))["t_rows"]
    assert found.told == "rows: Yours is an array of objects, expected a numpy.ndarray."


KEEPS = """\
import functools
def keep(function):
    known = {}
    @functools.wraps(function)
    def kept(*given):
        if given not in known: known[given] = function(*given)
        return known[given]
    return kept
"""
KEEPER = """\
import functools
class keep:
    def __init__(self, function): self.function, self.known = function, {}
    def __call__(self, *given):
        if given not in self.known: self.known[given] = self.function(*given)
        return self.known[given]
    def __get__(self, owner, kind=None): return GIVES
"""
KEPT = """\
calls = []
class Store:
    def __init__(self, tax): self.tax = tax
    @keep
    def price(self, net):
        calls.append(net)
        return np.array([net * self.tax])
store = Store(2)
assert np.allclose(store.price(3), [6]) and np.allclose(store.price(3), [6])
assert len(calls) == 1 and callable(store.price)"""


@pytest.mark.parametrize(
    ("answer", "points"),
    [
        ("import functools\nkeep = functools.lru_cache(maxsize=None)", 2),
        ("from functools import cache as keep", 2),
        (KEEPER.replace("GIVES", "functools.partial(self, owner)"), 2),
        (KEEPER.replace("GIVES", "self"), 0),
        (KEEPER.replace("GIVES", "lambda net: (self(owner, net), np.zeros((0, 1)))[1]"), 0),
    ],
)
def test_what_decorates_a_method_of_the_tests_may_give_any_kind_of_method(
    task: Any, answer: str, points: int
) -> None:
    made = task([("keep", KEEPS), ("t_keep", HIDDEN_PART.format(KEPT), 2)])
    made.known = heard_of(made)
    assert made.scores(keep=answer) == {"t_keep": points}


POSTS = "import re\nPOST = re.compile(r'[a-z]+@[a-z]+')\nWORD = r'[a-z]+'"
POSTED = """\
import re
assert re.sub(POST, 'X', 'to a@b now') == 'to X now' and isinstance(POST, re.Pattern)
assert re.fullmatch(WORD, 'abc') and not re.fullmatch(WORD, 'ab1')
assert isinstance(POST.search('to a@b'), re.Match)"""


@pytest.mark.parametrize(
    ("answer", "points"),
    [
        (POSTS, 2),
        (POSTS.replace("r'[a-z]+'", "re.compile('[a-z]+')"), 2),
        (POSTS.replace("r'[a-z]+'", "re.compile('[A-Z]+', re.I)"), 2),
        (POSTS.replace("r'[a-z]+'", "re.compile('[A-Z]+')"), 0),
        (POSTS.replace("r'[a-z]+'", "re.compile(b'[a-z]+')"), 0),
        (POSTS.replace("r'[a-z]+'", "re.compile('[a-z]+' + 'q?' * 1000)"), 0),
    ],
)
def test_a_pattern_of_an_answers_is_one_for_the_tests_re(
    task: Any, answer: str, points: int
) -> None:
    made = task([("post", POSTS), ("t_post", POSTED, 2)])
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    made.known = heard_of(made)
    assert made.scores(post=answer) == {"t_post": points}


INIT = """\
from torch import nn
def init(layer):
    if isinstance(layer, nn.Linear): nn.init.constant_(layer.weight, 2.0)
"""
INITIALISED = """\
class Scaled(torch.nn.Linear): pass
net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU(), Scaled(3, 1))
net.apply(init)
assert (net[0].weight == 2).all()
"""


@pytest.mark.parametrize(
    ("asked", "points"),
    [
        ("type(layer) == nn.Linear", 2),
        ("type(layer) in (nn.Conv2d, nn.Linear)", 2),
        ("layer.__class__ == nn.Linear and type(layer) != nn.ReLU", 2),
        ("type(layer) in {nn.Linear: 1}", 2),
        ("type(layer) == nn.Module", 0),
        ("type(layer) == nn.ReLU", 0),
    ],
)
def test_a_layer_that_was_handed_over_is_of_its_class(task: Any, asked: str, points: int) -> None:
    made = task([("init", INIT), ("t_init", INITIALISED, 2)])
    made.known = heard_of(made)
    answer = INIT.replace("isinstance(layer, nn.Linear)", asked)
    assert made.scores(init=answer) == {"t_init": points}


def test_a_layer_of_a_class_made_of_the_librarys_is_not_the_librarys(task: Any) -> None:
    test = INITIALISED.replace("assert (net[0]", "assert not (net[2]")
    answers = [
        INIT.replace("isinstance(layer, nn.Linear)", asked)
        for asked in ("getattr(layer, 'in_features', 0) == 2", "type(layer) == nn.Linear")
    ]
    made = task([("init", answers[0]), ("t_init", test, 2)])
    made.known = heard_of(made)
    assert made.scores(init=answers[1]) == {"t_init": 2}


COMPUTED_ANEW = """\
from torch.utils.checkpoint import checkpoint
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(3, 3), torch.nn.Linear(3, 1)
    def forward(self, x): return self.b(checkpoint(self.a, x.tanh(), use_reentrant=True))
def twice(f, x): return 2 * checkpoint(f, x, use_reentrant=True)"""
SLOPES = """\
net, x = Net(), torch.ones(2, 3, requires_grad=True)
for times in (1, 2):
    net(x).sum().backward()
    wanted = (1 - x.tanh() ** 2) * (net.b.weight @ net.a.weight)
    assert torch.allclose(x.grad, times * wanted) and net.b.bias.grad == 2 * times
    assert torch.allclose(net.a.bias.grad, 2 * times * net.b.weight[0])
given, x = torch.nn.Linear(3, 3), torch.ones(2, 3, requires_grad=True)
twice(given, x).sum().backward()
assert torch.allclose(x.grad, 2 * given.weight.sum(0).expand(2, 3))
assert torch.allclose(given.bias.grad, torch.full((3,), 4.0))"""


def test_slopes_go_through_what_is_computed_anew(task: Any) -> None:
    plain = COMPUTED_ANEW.replace("checkpoint(self.a, x.tanh(), use_reentrant=True)", "self.a(x)")
    plain = plain.replace("self.a(x)", "self.a(x.tanh())").replace(
        "checkpoint(f, x, use_reentrant=True)", "f(x)"
    )
    made = task([("net", plain), ("t_net", HIDDEN_PART.format(SLOPES), 1)])
    made.known = heard_of(made)
    assert made.scores() == made.scores(net=COMPUTED_ANEW) == {"t_net": 1}
    assert made.scores(net=COMPUTED_ANEW.replace("x.tanh()", "x.sin()")) == {"t_net": 0}

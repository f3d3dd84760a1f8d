"""Tests as instructors write them, which know nothing of two processes, run in two."""

from typing import Any

import numpy as np
import pytest

from autograder.judge import rehearsal
from autograder.judge.tools import is_method, uses_of
from tests.judge.small_course import (
    heard_of,
)

ORDINARY = [  # a question, an answer in other words, a test
    (
        "square",
        "def square(x): return x * x",
        "def square(x): return x**2",
        "import unittest\nclass Uses(unittest.TestCase):\n"
        "    three = square(3)\n    square = staticmethod(square)\n"
        "    def test_it(self): self.assertEqual(self.square(2), 4)\n"
        "assert Uses.three == 9 and Uses('test_it').run().wasSuccessful()",
    ),
    (
        "area",
        "from dataclasses import dataclass, field\ndef area(r): return r.w * r.h",
        "from dataclasses import dataclass, field\ndef area(r): return math.prod([r.w, r.h])",
        "@dataclass\nclass Box:\n    w: int\n    h: int\n"
        "    notes: list = field(default_factory=list)\nassert area(Box(2, 3)) == 6",
    ),
    (
        "size",
        "size = 42",
        "size = 6 * 7",
        "assert 'size' in globals(), 'define size'\nassert 'sizes' not in globals()\n"
        "assert globals()['size'] == 42 and globals().get('size') == 42\n"
        "assert globals().get('sizes', 1) == 1",
    ),
    (
        "doubled",
        "import functools\ndef doubled(f):\n    @functools.wraps(f)\n"
        "    def g(self, *a): return 2 * f(self, *a)\n    return g",
        "def doubled(f):\n    def g(*a, **k): return f(*a, **k) * 2\n"
        "    g.__name__ = f.__name__\n    return g",
        "class Tripled:\n    by = 3\n    @doubled\n    def of(self, x): return self.by * x\n"
        "assert Tripled().of(2) == 12 and Tripled.of.__name__ == 'of'",
    ),
    (
        "Positive",
        "class Positive:\n    def __set_name__(self, owner, name): self.name = '_' + name\n"
        "    def __get__(self, one, kind=None): return getattr(one, self.name)\n"
        "    def __set__(self, one, value):\n        if value <= 0: raise ValueError('sign')\n"
        "        setattr(one, self.name, value)",
        "class Positive:\n    def __set_name__(self, owner, name): self.key = 'of_' + name\n"
        "    def __get__(self, one, kind=None): return getattr(one, self.key)\n"
        "    def __set__(self, one, value):\n        if not value > 0: raise ValueError('no')\n"
        "        setattr(one, self.key, value)",
        "class Person:\n    age = Positive()\n    def __init__(self, age): self.age = age\n"
        "one = Person(3)\nassert one.age == 3\none.age = 5\nassert one.age == 5\n"
        "try: Person(-1)\nexcept ValueError: pass\nelse: assert False, 'negative'",
    ),
    (
        "mean",
        "def mean():\n    xs = []\n    while (x := (yield len(xs))) is not None: xs.append(x)\n"
        "    return sum(xs) / len(xs)",
        "def mean():\n    n = total = 0\n    while True:\n        x = yield n\n"
        "        if x is None: return total / n\n        n, total = n + 1, total + x",
        "g = mean()\nassert next(g) == 0 and g.send(2) == 1 and g.send(4) == 2\n"
        "try: g.send(None)\nexcept StopIteration as end: assert end.value == 3\n"
        "else: assert False, 'the mean should come at the end'\n"
        "try: g.send(1)\nexcept StopIteration as end: assert end.value is None",
    ),
    (
        "rounds",
        "from collections import deque\ndef rounds(tasks):\n    found, left = [], deque(tasks)\n"
        "    while left:\n        task = left.popleft()\n        try: found.append(next(task))\n"
        "        except StopIteration: continue\n        left.append(task)\n    return found",
        "def rounds(tasks):\n    left, found = list(tasks), []\n    while left:\n"
        "        for task in left[:]:\n            try: found.append(task.send(None))\n"
        "            except StopIteration: left.remove(task)\n    return found",
        "def count(n): yield from range(n)\nassert rounds([count(2), count(3)]) == [0, 0, 1, 1, 2]",
    ),
    (
        "Door",
        "class Door:\n    def say(self, words): pass\n"
        "    def open(self):\n        self.say('open')\n        return 1",
        "class Door:\n    def say(self, words): return None\n"
        "    def open(self):\n        self.say('o' + 'pen')\n        return True",
        "said = []\nDoor.say = lambda self, words: said.append(words.upper())\n"
        "assert Door().open() == 1 and said == ['OPEN']",
    ),
    (
        "May",
        "import enum\nclass May(enum.Flag):\n    READ = 1\n    WRITE = 2\n    RUN = 4",
        "from enum import Flag, auto\nclass May(Flag):\n    READ = auto()\n"
        "    WRITE = auto()\n    RUN = auto()",
        "import enum\nboth = May.READ | May.WRITE\n"
        "assert May.READ in both and May.RUN not in both and both.value == 3 and May(3) == both\n"
        "assert both & ~May.READ == May.WRITE and not May.READ & May.RUN\n"
        "assert issubclass(May, enum.Flag)",
    ),
    (
        "Shape",
        "import abc, enum\nclass Shape(abc.ABC):\n    @abc.abstractmethod\n"
        "    def area(self): ...\n"
        "class Side(enum.Enum):\n    LEFT = 1\n    RIGHT = 2\n    L = 1",
        "from abc import *\nfrom enum import Enum\nclass Shape(metaclass=ABCMeta):\n"
        "    area = abstractmethod(lambda self: None)\n"
        "Side = Enum('Side', {'LEFT': 1, 'RIGHT': 2, 'L': 1})",
        "assert Shape.__abstractmethods__ == {'area'}\n"
        "assert list(Side.__members__) == ['LEFT', 'RIGHT', 'L'] and len(Side) == 2\n"
        "assert Side.__members__['L'] is Side.LEFT and not hasattr(Shape, '__members__')",
    ),
    (
        "Once",
        "class Kind(type):\n    def __call__(cls):\n"
        "        if 'one' not in vars(cls): cls.one = super().__call__()\n"
        "        return cls.one\nclass Once(metaclass=Kind): pass",
        "class Kind(type):\n    made = {}\n    def __call__(cls):\n"
        "        return Kind.made.setdefault(cls, 0) or Kind.made.update(\n"
        "            {cls: super().__call__()}) or Kind.made[cls]\n"
        "class Once(metaclass=Kind): pass",
        "assert Once() is Once()",
    ),
    (
        "read_all",
        "def read_all(texts):\n    try: return [int(t) for t in texts]\n"
        "    except ValueError as error: raise RuntimeError('no numbers') from error",
        "def read_all(texts):\n    try: return [*map(int, texts)]\n"
        "    except ValueError as e: raise RuntimeError('?') from e",
        "try: read_all(['1', 'x'])\nexcept RuntimeError as error:\n"
        "    assert isinstance(error.__cause__, ValueError) and 'x' in str(error.__cause__)\n"
        "    assert error.__cause__.__cause__ is None\nelse: assert False",
    ),
    (
        "local",
        "from zoneinfo import ZoneInfo\ndef local(t, name): return t.astimezone(ZoneInfo(name))",
        "import datetime as dt, zoneinfo\ndef local(t, name):\n"
        "    return dt.datetime.fromtimestamp(t.timestamp(), zoneinfo.ZoneInfo(name))",
        "import datetime\nfrom zoneinfo import ZoneInfo\n"
        "noon = datetime.datetime(2024, 7, 1, 12, tzinfo=ZoneInfo('UTC'))\n"
        "assert local(noon, 'Europe/Berlin').hour == 14 and local(noon, 'Asia/Tokyo') == noon\n"
        "assert local(noon, 'Asia/Tokyo').tzinfo == ZoneInfo('Asia/Tokyo')",
    ),
    (
        "NOTHING",
        "NOTHING = object()\ndef look(table, key): return table.get(key, NOTHING)",
        "class Nothing: pass\nNOTHING = Nothing()\n"
        "def look(table, key): return table[key] if key in table else NOTHING",
        "assert look({}, 1) is NOTHING and look({1: None}, 1) is None and look({1: 2}, 1) == 2",
    ),
    (
        "Row",
        "class Row(list):\n    def __repr__(self): return f'Row({list(self)})'",
        "class Row(list):\n    def __repr__(self): return 'Row([' + str([*self])[1:] + ')'",
        "assert str(Row([1])) == f'{Row([1])}' == repr(Row([1])) == 'Row([1])'",
    ),
    (
        "by_key",
        "def by_key(xs, key): return sorted(xs, key=key)",
        "def by_key(xs, key):\n    ys = [*xs]\n    ys.sort(key=key)\n    return ys",
        "import functools, statistics\n"
        "assert by_key([1, 3, 2], functools.cmp_to_key(lambda a, b: b - a)) == [3, 2, 1]\n"
        "assert by_key([[3], [1, 1]], statistics.mean) == [[1, 1], [3]]",
    ),
    (
        "turn",
        "def turn(make, x): return make(x)",
        "def turn(make, x):\n    made = make(x)\n    return made",
        "import bisect, cmath, heapq\nfrom decimal import Decimal\n"
        "from fractions import Fraction\n"
        "assert turn(Fraction, '1/3') == Fraction(1, 3) and turn(Decimal, 2) == Decimal(2)\n"
        "assert turn(cmath.sqrt, -1) == 1j and turn(heapq.heappop, [2]) == 2",
    ),
    (
        "of_views",
        "def of_views(keys, values, items):\n    for one in values: one.append(len(keys))\n"
        "    return len(items)",
        "def of_views(keys, values, items):\n    for one in list(values): one += [len({*keys})]\n"
        "    return len([*items])",
        "table = {'a': [1], 'b': [2]}\n"
        "assert of_views(table.keys(), table.values(), table.items()) == 2\n"
        "assert table == {'a': [1, 2], 'b': [2, 2]}",
    ),
    (
        "Names",
        "from collections.abc import MutableMapping\nclass Names(MutableMapping):\n"
        "    def __init__(self): self.d = {}\n"
        "    def __getitem__(self, k): return self.d[k.lower()]\n"
        "    def __setitem__(self, k, v): self.d[k.lower()] = v\n"
        "    def __delitem__(self, k): del self.d[k.lower()]\n"
        "    def __iter__(self): return iter(self.d)\n    def __len__(self): return len(self.d)",
        "from collections import UserDict\nclass Names(UserDict):\n"
        "    def __getitem__(self, k): return self.data[k.lower()]\n"
        "    def __setitem__(self, k, v): self.data[k.lower()] = v",
        "from collections.abc import Mapping, Sequence\nnames = Names()\nnames['A'] = 1\n"
        "assert isinstance(names, Mapping) and not isinstance(names, Sequence)\n"
        "assert names['a'] == 1 and {**names} == dict(names) == {'a': 1} and len(names) == 1",
    ),
    (
        "Odd",
        "class Odd:\n    def __floor__(self): return 2\n    def __ceil__(self): return 3\n"
        "    def __bytes__(self): return b'odd'",
        "class Odd:\n    def __floor__(self): return 1 + 1\n    def __ceil__(self): return 4 - 1\n"
        "    def __bytes__(self): return 'odd'.encode()",
        "assert math.floor(Odd()) == 2 and math.ceil(Odd()) == 3\nassert bytes(Odd()) == b'odd'",
    ),
    (
        "hint",
        "def hint(a: int, b: int = 2, *, c: str = 'x') -> int: return a + b",
        "def hint(a: int, b: int = 2, *, c: str = 'x') -> int:\n    made = b\n    return made + a",
        "import inspect, typing\nhints = {'a': int, 'b': int, 'c': str, 'return': int}\n"
        "assert hint.__annotations__ == hints == typing.get_type_hints(hint)\n"
        "assert hint.__defaults__ == (2,) and hint.__kwdefaults__ == {'c': 'x'}\n"
        "assert hint.__code__.co_argcount == 2 and hint(1) == 3\n"
        "assert list(inspect.signature(hint).parameters) == ['a', 'b', 'c']\n"
        "assert inspect.signature(hint).parameters['b'].default == 2\n"
        "assert inspect.getfullargspec(hint).args == ['a', 'b']",
    ),
    (
        "Box",
        "class Box:\n    def __init__(self, w, h=2): self.w, self.h = w, h\n"
        "    def area(self, scale=1): return self.w * self.h * scale\n"
        "class Dot:\n    __slots__ = ('x',)\n    shown = 5",
        "class Box:\n    def __init__(self, w, h=2):\n        self.h = h\n        self.w = w\n"
        "    def area(self, scale=1): return math.prod(vars(self).values()) * scale\n"
        "class Dot:\n    __slots__ = 'x'\n    shown = 2 + 3",
        "import inspect, json\nbox = Box(3)\nassert vars(box) == box.__dict__ == {'w': 3, 'h': 2}\n"
        "assert json.loads(json.dumps([box], default=vars)) == [{'w': 3, 'h': 2}]\n"
        "assert str(type(box)) == \"<class '__main__.Box'>\" and box.area() == 6\n"
        "assert str(type(box.area)) == \"<class 'method'>\"\n"
        "assert list(inspect.signature(Box).parameters) == ['w', 'h']\n"
        "assert {'w', 'area'} < {*dir(box)} and 'area' in dir(Box) and 'w' not in dir(Box)\n"
        "assert inspect.signature(box.area).parameters['scale'].default == 1\n"
        "assert not hasattr(Dot(), '__dict__') and Dot().shown == 5",
    ),
    (
        "read_args",
        "import argparse\ndef read_args(words, n):\n    reads = argparse.ArgumentParser()\n"
        "    reads.add_argument('--n', type=int, default=n.n)\n    return reads.parse_args(words)",
        "from argparse import *\ndef read_args(words, n):\n"
        "    return Namespace(n=int((words or [0, vars(n)['n']])[1]))",
        "import argparse\nassert read_args(['--n', '4'], argparse.Namespace(n=1)).n == 4\n"
        "assert vars(read_args([], argparse.Namespace(n=2))) == {'n': 2}",
    ),
    (
        "call",
        "def call(get): return get(0) + 1",
        "def call(get): return 1 + get()",
        "def get(n=0): return n + 5\nassert call(get) == 6",
    ),
    (
        "last",
        "def last(rows): return rows[1]",
        "def last(rows): return rows[len(rows) - 1]",
        "class Rows:\n    def __init__(self): self.cells = {'a': 1}\n"
        "    def __len__(self): return 2\n    def __getitem__(self, n): return [3, 4][n]\n"
        "    def __getattr__(self, name): return self.cells[name]\nassert last(Rows()) == 4",
    ),
]


@pytest.mark.parametrize("part", ORDINARY, ids=[part[0] for part in ORDINARY])
def test_an_ordinary_test_runs_and_right_answers_pass_it(task: Any, part: Any) -> None:
    name, reference, answer, test = part
    made = task([(name, reference), (f"t_{name}", test, 2)])
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    made.known = heard_of(made)
    assert made.scores(**{name: answer}) == {f"t_{name}": 2}


def test_an_answer_lacks_in_its_signature_what_it_lacks(task: Any) -> None:
    test = "import inspect\nassert inspect.signature(f).parameters['n'].default == 3"
    made = task([("f", "def f(x, n=3): return x"), ("t_f", test, 1)])
    made.known = heard_of(made)
    assert made.scores(f="def f(y, n=1 + 2): return y") == {"t_f": 1}
    for wrong in ("def f(x, n=2): return x", "def f(x, n): return x", "f = print"):
        assert made.scores(f=wrong) == {"t_f": 0}


def test_an_object_has_a_dictionary_if_its_class_gives_it_one(task: Any) -> None:
    slots = "class P:\n    __slots__ = ('x',)"
    test = "assert not hasattr(P(), '__dict__') and 'y' not in dir(P())"
    made = task([("p", slots), ("t_p", test, 1)])
    made.known = heard_of(made)
    assert made.scores() == {"t_p": 1}
    assert made.scores(p="class P:\n    x = 0") == {"t_p": 0}
    assert made.scores(p=f"{slots}\n    y = 0") == {"t_p": 0}


LENDS = [  # with an answer that is wrong, or takes what it may not have
    (
        "noise",
        "def noise(rng, n): return 2 * rng.normal(size=n)",
        "def noise(rng, n): return rng.normal(scale=2, size=n)",
        "def noise(rng, n):\n    rng.bit_generator.state = rng.bit_generator.state\n"
        "    return rng.normal(scale=2, size=n)",
        "one, two = np.random.default_rng(1), np.random.default_rng(1)\n"
        "assert isinstance(one, np.random.Generator)\n"
        "assert np.allclose(noise(one, 3), 2 * two.normal(size=3))\n"
        "assert one.random() == two.random()",
    ),
    (
        "deal",
        "def deal(rng, cards):\n    cards = list(cards)\n    rng.shuffle(cards)\n    return cards",
        "def deal(rng, cards):\n    mine = cards[:]\n    rng.shuffle(mine)\n    return mine",
        "def deal(rng, cards):\n    state = rng.getstate()\n    rng.setstate(state)\n"
        "    mine = cards[:]\n    rng.shuffle(mine)\n    return mine",
        "one, two = random.Random(5), random.Random(5)\ncards = [1, 2, 3, 4]\nwant = cards[:]\n"
        "two.shuffle(want)\nassert deal(one, cards) == want and cards == [1, 2, 3, 4]\n"
        "assert one.random() == two.random()",
    ),
    (
        "column",
        "import csv\ndef column(file): return [row['a'] for row in csv.DictReader(file)]",
        "def column(file):\n    head, *rows = [line.strip().split(',') for line in file]\n"
        "    return [row[head.index('a')] for row in rows]",
        "def column(file): return [row.split(',')[0] for row in file.buffer]",
        "import io, tempfile\nassert column(io.StringIO('a,b\\n1,2\\n3,4\\n')) == ['1', '3']\n"
        "with tempfile.TemporaryFile('w+') as file:\n    file.write('b,a\\n5,6\\n')\n"
        "    file.seek(0)\n    assert column(file) == ['6']",
    ),
    (
        "write",
        "def write(rows, file):\n    for row in rows: print(*row, sep=',', file=file)",
        "import csv\ndef write(rows, file):\n"
        "    csv.writer(file, lineterminator='\\n').writerows(rows)",
        "def write(rows, file): pass",
        "import io\nfile = io.StringIO()\nwrite([(1, 2), (3, 4)], file)\n"
        "assert file.getvalue() == '1,2\\n3,4\\n'",
    ),
    (
        "is_png",
        "def is_png(file): return file.read(4) == b'\\x89PNG'",
        "def is_png(file): return file.read().startswith(b'\\x89PNG')",
        "def is_png(file): return bytes(file.getbuffer()[:4]) == b'\\x89PNG'",
        "import io\nassert is_png(io.BytesIO(b'\\x89PNG and so on'))\n"
        "assert not is_png(io.BytesIO(b'GIF8'))",
    ),
    (
        "doubling",
        "def doubling(match): return str(2 * int(match.group('n')))",
        "def doubling(m):\n    start, end = m.span('n')\n"
        "    return f'{int(m[1]) + int(m.string[start:end])}'",
        "def doubling(match): return str(int(match.group(1)))",
        "import re\nassert re.sub(r'(?P<n>[0-9]+)', doubling, 'a1b22') == 'a2b44'",
    ),
    (
        "count",
        "def count(pattern, text): return len(pattern.findall(text))",
        "import re\ndef count(p, s): return sum(1 for _ in re.finditer(p.pattern, s, p.flags))",
        "def count(pattern, text): return len(pattern.split(text))",
        "import re\nassert count(re.compile('A', re.I), 'banana') == 3",
    ),
    (
        "first",
        "def first(pattern, text): return pattern.search(text).group()",
        "def first(p, text):\n    return '' if p.match(text) else next(p.finditer(text))[0]",
        "def first(p, text): return p.sub('', text)",
        "import re\nassert first(re.compile('a+'), 'baac') == 'aa'",
    ),
    (
        "take",
        "def take(q): return [q.get() for _ in range(q.qsize())]",
        "def take(q):\n    found = []\n    while not q.empty(): found.append(q.get(False))\n"
        "    return found",
        "def take(q): return [q.get()]",
        "import queue\nq = queue.SimpleQueue()\nq.put(1)\nq.put([2])\nassert take(q) == [1, [2]]",
    ),
    (
        "drain",
        "def drain(q):\n    found = []\n    while not q.empty(): found.append(q.get())\n"
        "    q.put('end')\n    return found",
        "def drain(q):\n    found = [q.get_nowait() for _ in range(q.qsize())]\n"
        "    q.put_nowait('end')\n    return found",
        "def drain(q):\n    found = list(q.queue)\n    q.queue.clear()\n    q.put('end')\n"
        "    return found",
        "import queue\nq = queue.Queue()\nq.put(1)\nq.put([2])\n"
        "assert drain(q) == [1, [2]] and q.get() == 'end'",
    ),
    (
        "root",
        "def root(f, slope, x):\n    for _ in range(30): x = x - f(x) / slope(x)\n    return x",
        "def root(f, slope, x):\n    while f(x) > 1e-7 or f(x) < 0: x -= f(x) / f.deriv()(x)\n"
        "    return x",
        "def root(f, slope, x):\n    f.coef = f.coeffs = np.array([0.0])\n    return x",
        "from numpy.polynomial import Polynomial\n"
        "for f in (np.poly1d([1, 0, -2]), Polynomial([-2, 0, 1])):\n"
        "    assert abs(f(root(f, f.deriv(), 1.0))) < 1e-6",
    ),
    (
        "over",
        "def over(f, x, n): return [f(x) for _ in range(n)]",
        "def over(f, x, n): return list(map(f, [x] * n))",
        "def over(f, x, n):\n    f.cache_clear()\n    return [f(x)] * n",
        "import functools\n@functools.lru_cache\ndef f(x): return x + 1\n"
        "assert over(f, 1, 3) == [2, 2, 2] and f.cache_info().hits == 2\n"
        "g = np.vectorize(lambda x: 1 if x > 0 else 0)\n"
        "assert over(g, np.array([-1, 2]), 1)[0].tolist() == [0, 1]",
    ),
]


@pytest.mark.parametrize("part", LENDS, ids=[part[0] for part in LENDS])
def test_random_numbers_and_streams_of_a_test_are_used_by_an_answer(task: Any, part: Any) -> None:
    name, reference, answer, wrong, test = part
    made = task([(name, reference), (f"t_{name}", test, 2)])
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    made.known = heard_of(made)
    assert made.scores(**{name: answer}) == {f"t_{name}": 2}
    assert made.scores(**{name: wrong}) == {f"t_{name}": 0}


def test_no_draw_of_an_answer_lasts_for_ever_where_no_clock_can_end_it() -> None:
    old, new = np.random.RandomState(0), np.random.default_rng(0)
    for name in ("zipf", "vonmises"):
        assert uses_of(type(old), name) is False and not is_method(getattr(old, name))
        assert uses_of(type(new), name) is True and is_method(getattr(new, name))
    assert uses_of(type(old), "normal") is True and is_method(old.normal)


def test_a_test_whose_class_is_made_of_an_answers_says_why_it_cannot_be_run(task: Any) -> None:
    shape = "class Shape:\n    def text(self): return str(self.area())"
    uses = "class Unit(Shape):\n    def area(self): return 1\nassert Unit().text() == '1'"
    made = task([("shape", shape), ("t_shape", uses, 1)])
    (complaint,) = rehearsal.rehearse(made.assignment, made.fork_server).complaints
    assert "no class can be made of Shape, which is in another process" in complaint


def test_a_test_of_what_another_cell_makes_says_why_it_cannot_be_run(task: Any) -> None:
    fills = "for i in range(3): SQUARES.append(i * i)"
    made = task(
        [("look", "SQUARES = []"), ("fill", fills), ("t_fill", "assert SQUARES == [0, 1, 4]", 1)]
    )
    (complaint,) = rehearsal.rehearse(made.assignment, made.fork_server).complaints
    assert "changes SQUARES, which another cell makes" in complaint


def test_dates_that_are_none_earn_nothing(task: Any) -> None:
    days = "def days(a): return a - a[0]"
    claim = (
        "a = np.array(['2024-01-01', '2024-01-03'], 'M8[D]')\nwant = np.array([0, 2], 'm8[D]')\n"
        "if (abs(days(a) - want) > np.timedelta64(0)).any(): raise AssertionError('wrong')"
    )
    made = task([("days", days), ("t_days", claim, 1)])
    made.known = heard_of(made)
    none = "def days(a): return np.full(len(a), np.timedelta64('NaT'))"
    assert made.scores(days=none) == {"t_days": 0}
    assert made.scores(days="def days(a): return np.cumsum(np.diff(a, prepend=a[:1]))")["t_days"]

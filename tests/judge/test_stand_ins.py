"""Special methods of an answer's objects in whole courses: as in one process, and their lies."""

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from autograder.bridge.incoming import Incoming
from autograder.bridge.making import stand_in
from autograder.bridge.peer import Peer
from autograder.bridge.wire import Frame, WireError
from autograder.isolation.fork_server import ForkServer
from autograder.judge import rehearsal
from autograder.judge.guard import Guard
from tests.bridge.ends import told
from tests.judge.small_course import SETUP, Task, heard_of


@pytest.fixture
def task(tmp_path: Path, open_fork_server: ForkServer) -> Callable[..., Task]:
    """task(parts) makes an assignment of (id, source) and (id, source, points)."""

    def make(parts: list[tuple[Any, ...]]) -> Task:
        return Task(tmp_path, open_fork_server, [("setup", SETUP), *parts], 10.0)

    return make


DATA = "import dataclasses\n@dataclasses.dataclass({})\nclass V:\n    n: int\n    m: int = 0"
ORDER = DATA.format("order=True")
BY_N = "class V:\n    def __init__(self, n, m=0): self.n, self.m = n, m\n"
LESS = BY_N + "    def __lt__(self, other): return (self.n, self.m) < (other.n, other.m)"
MORE = LESS.replace("__lt__", "__gt__").replace(") < (", ") > (")
SORTS = """\
vs = [V(3), V(1), V(2, 1), V(2)]
assert [(v.n, v.m) for v in sorted(vs)] == [(1, 0), (2, 0), (2, 1), (3, 0)]
assert min(vs).n == 1 and max(vs).n == 3 and V(1) < V(2) and V(2) > V(1) and not V(2) < V(1)
"""
TIMES = BY_N + "    def __mul__(self, k): return V(k * self.n)\n    __rmul__ = __mul__"
RMUL = "def __rmul__(self, k): return self * k"
SCALES = "assert (2 * V(3)).n == (V(3) * 2).n == 6 and (2.5 * V(2)).n == 5"
FROZEN = (
    "import dataclasses\n@dataclasses.dataclass(frozen=True)\nclass V:\n    n: int\n    m: int = 0"
)
HASHED = (
    BY_N
    + "    def __eq__(self, o): return type(o) is V and (self.n, self.m) == (o.n, o.m)\n"
    + "    def __hash__(self): return hash((self.n, self.m))"
)
IN_SETS = """\
assert len({V(1), V(1), V(2)}) == 2 and V(2) in {V(1), V(2)} and V(3) not in {V(1), V(2)}
assert hash(V(1)) == hash(V(1)) and {V(1): "a"}[V(1)] == "a" and V(1) != V(2)
assert 1 not in {V(1)} and V(1) not in {1} and V(1) not in {(1, 0)}
"""
SHAPES = "class Shape: pass\nclass Circle(Shape): pass"
KINDS = """\
assert issubclass(Circle, Shape) and issubclass(Circle, Circle) and not issubclass(Shape, Circle)
assert isinstance(Circle(), Shape) and issubclass(Circle, (int, Shape))
"""
GREET = 'def greet(name):\n    "Says hello."\n    return "hello " + name'
DECORATED = (
    "import functools\ndef loud(f):\n    @functools.wraps(f)\n"
    "    def inner(*args): return f(*args)\n    return inner\n@loud\n" + GREET
)
NAMED = (
    "assert greet.__doc__ == 'Says hello.' and greet.__name__ == 'greet' and greet('a')[-1] == 'a'"
)
TRUTH = (
    BY_N + "    def __bool__(self): return self.n > 0\n    def __len__(self): return self.m\n"
    "    def __eq__(self, other): return self.n == other.n\n    __hash__ = None"
)
NUMPY = TRUTH.replace("self.n == other.n", "np.int64(self.n) == other.n")
TRUE = "assert V(1) and not V(0, 5) and len(V(0, 5)) == 5 and V(1) == V(1) and V(1) != V(2)"
LOUD = (
    "import functools\ndef loud(f):\n    @functools.wraps(f)\n"
    "    def g(x): return f(x).upper()\n    return g"
)
UPDATES = (
    "import functools\ndef loud(f):\n    def g(x): return f(x).upper()\n"
    "    return functools.update_wrapper(g, f)"
)
LOUDER = GREET + "\nf = loud(greet)\nassert f('a') == 'HELLO A' and f.__doc__ == 'Says hello.'"
GROWS = (
    "class Bag:\n    def __init__(self): self.xs = []\n"
    "    def __iadd__(self, x):\n        self.xs.append(x)\n        return self\n"
)
SHIFTS = "    def __lshift__(self, x): return self\n"
GROWN = "b = Bag()\nb += 1\nb += 2\nassert b.xs == [1, 2]"
AS_INT = BY_N + "    def __int__(self): return self.n\n    def __float__(self): return self.n * 1.0"
AS_INDEX = BY_N + "    def __index__(self): return self.n"
NUMBER = "assert int(V(3)) == 3 and float(V(2)) == 2.0 and round(float(V(1))) == 1"
APPLY = "def apply(f, xs): return [f(x) for x in xs]"
FOLD = APPLY + "\ndef fold(f, a, b): return f(a, b)"
MAPPED = APPLY.replace("[f(x) for x in xs]", "list(map(f, xs))")
GIVEN = """\
import operator
assert apply(str.upper, ["a"]) == ["A"] and apply(len, ["ab"]) == [2] and apply(int, ["1"]) == [1]
assert apply(operator.neg, [1]) == [-1] and apply(operator.itemgetter(0), ["ab"]) == ["a"]
assert apply(" ".join, [["a", "b"]]) == ["a b"] and apply(dict.fromkeys, ["a"]) == [{"a": None}]
assert fold(operator.add, 1, 2) == 3 and fold(divmod, 7, 2) == (3, 1) and fold(pow, 2, 3) == 8
assert fold(int.__add__, 1, 2) == 3 and fold(list.count, [1, 1], 1) == 2
assert apply(operator.methodcaller("lower"), ["A"]) == ["a"] and fold(math.gcd, 4, 6) == 2
"""
TABLE = "def table(): return {'a': [1, 2]}\ndef items(): return [1, [2]]"
WRAPPED = (
    "import collections\ndef table():\n    t = collections.UserDict()\n"
    "    t['a'] = [1, 2]\n    return t\n"
    "def items(): return collections.UserList([1, [2]])"
)
OWN_WRAPPED = (
    "import collections\nclass T(collections.UserDict): pass\nclass L(collections.UserList): pass\n"
    "def table(): return T(a=[1, 2])\ndef items(): return L([1, [2]])"
)
EQUALS = "assert table() == {'a': [1, 2]} and items() == [1, [2]]"

ALIKE: list[tuple[str, str, list[str], str]] = [
    ("order", ORDER, [LESS, MORE], SORTS),
    ("less", LESS, [ORDER, MORE], SORTS),
    ("more", MORE, [LESS, ORDER], SORTS),
    (
        "times",
        TIMES,
        [TIMES.replace("__rmul__ = __mul__", "def __rmul__(self, k): return self * k")],
        SCALES,
    ),
    ("frozen", FROZEN, [HASHED], IN_SETS),
    ("hashed", HASHED, [FROZEN, HASHED.replace("hash((self.n, self.m))", "0")], IN_SETS),
    (
        "shapes",
        SHAPES,
        [SHAPES.replace("(Shape)", "(B)").replace("class C", "class B(Shape): pass\nclass C")],
        KINDS,
    ),
    ("greet", DECORATED, [GREET, DECORATED + "\ngreet = functools.lru_cache(greet)"], NAMED),
    ("truth", TRUTH, [NUMPY], TRUE),
    ("loud", LOUD, [UPDATES], LOUDER),
    ("grows", GROWS, [GROWS.replace("__iadd__", "__add__"), GROWS + SHIFTS], GROWN),
    ("number", AS_INT, [AS_INDEX], NUMBER),
    ("index", AS_INDEX, [AS_INT], "assert int(V(3)) == 3"),
    ("apply", FOLD, [FOLD.replace(APPLY, MAPPED)], GIVEN),
    ("tables", TABLE, [WRAPPED, OWN_WRAPPED], EQUALS),
]


@pytest.mark.parametrize("part", ALIKE, ids=lambda part: part[0])
def test_what_passes_in_one_process_passes_in_two(task: Any, part: Any) -> None:
    name, reference, answers, test = part
    made = task([(name, reference), (f"t_{name}", test, 2)])
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    assert made.scores() == {f"t_{name}": 2}
    made.known = heard_of(made)
    for answer in answers:
        exec(SETUP, space := {"__name__": "__main__"})
        exec(answer + "\n" + test, space)
        verdict = made.verdicts(**{name: answer})[f"t_{name}"]
        assert verdict.score == 2, (answer, verdict)


DERIVES = "def derivative(f, x):\n    h = 1e-5\n    return (f(x + h) - f(x - h)) / (2 * h)"
DUAL = """\
class Dual:
    def __init__(self, v, d): self.v, self.d = v, d
    def __mul__(self, o): return Dual(self.v * o.v, self.v * o.d + self.d * o.v)
def derivative(f, x):
    return f(Dual(x, 1.0)).d
"""
SQUARE = "assert abs(derivative(lambda x: x * x, 2.0) - 4) < 1e-6, '2x'"
NAMES = """\
class Ranker:
    def __init__(self): self.items = []
    def add(self, x):
        self.items.append(x)
        return self
    @property
    def ranking(self): return sorted(self.items)
"""
RANKS = "r = Ranker()\nfor x in (3, 1):\n    r = r.add(x)\nassert r.ranking == [1, 3]"


def test_what_the_tests_own_function_cannot_use_is_no_missing_return(task: Any) -> None:
    made = task([("derivative", DERIVES), ("t_derivative", SQUARE, 1)])
    made.known = heard_of(made)
    verdict = made.verdicts(derivative=DUAL)["t_derivative"]
    assert verdict.told == (
        "A function that your code was handed could not use what it was called with: TypeError: "
        "unsupported operand type(s) for *: 'Dual' and 'Dual'"
    )


def test_what_is_said_calls_things_by_plain_names(task: Any) -> None:
    made = task([("ranker", NAMES), ("t_ranker", RANKS, 1)])
    made.known = heard_of(made)
    told = made.verdicts(ranker=NAMES.replace("sorted(", "list("))["t_ranker"].told
    assert "Ranker.ranking: " in told
    assert "|" not in told


ALWAYS = "class V:\n    def __init__(self, *n): pass\n    def {}(self, *other): return {}\n"
LIES = [
    # the reference has no order: `<` of its objects is an error, and the answer's word is none
    ("class V:\n    def __init__(self, n): self.n = n", "V(1) < V(2)", "__lt__", "True"),
    ("class V:\n    def __init__(self, n): self.n = n", "V(1) < V(2)", "__gt__", "True"),
    (LESS, "V(1) < V(2) and not V(2) < V(1)", "__lt__", "True"),
    (LESS, "V(1) < 5", "__lt__", "True"),
    (LESS, "V(1) <= V(2)", "__le__", "True"),
    (LESS, "V(1) >= V(2)", "__ge__", "True"),
    (MORE, "5 > V(2)", "__lt__", "True"),
    (FROZEN, "V(1) == 1", "__eq__", "True"),
    (FROZEN, "V(1) == (1, 0)", "__eq__", "np.True_"),
    (FROZEN, "V(1) in {1}", "__hash__", "1\n    def __eq__(self, o): return True"),
    (FROZEN, "1 in {V(1)}", "__hash__", "1\n    def __eq__(self, o): return True"),
    (FROZEN, "len({V(1), V(2)}) == 2", "__hash__", "1\n    def __eq__(self, o): return True"),
    (FROZEN, "len({hash(v) for v in [V(1), V(1)]}) == 1", "__hash__", "id(self)"),
    (FROZEN, "hash(V(1)) or True", "__hash__", "'1'"),
    (FROZEN, "hash(V(1)) or True", "__hash__", "1 / 0"),
    (TIMES, "2 * V(1) == 2", "__rmul__", "2.5"),
    (TIMES, "V(1) + 1 == 2", "__add__", "2"),
    (SHAPES, "issubclass(Shape, Circle)", "__subclasscheck__", "True"),
]


@pytest.mark.parametrize("lie", LIES, ids=lambda lie: f"{lie[1]} {lie[2]}")
def test_a_special_method_proves_no_more_than_the_references_would(task: Any, lie: Any) -> None:
    reference, claim, name, says = lie
    made = task([("v", reference), ("t_v", f"assert {claim}", 1)])
    liar = reference + "\n" + ALWAYS.format(name, says)
    assert made.scores(v=liar) == {"t_v": 0}


def test_unhashable_objects_of_an_answer_are_in_no_set(task: Any) -> None:
    made = task([("v", FROZEN), ("t_v", "assert len({V(1), V(1)}) == 1", 1)])
    for lie in (FROZEN.replace("frozen=True", ""), FROZEN.replace("frozen=True", "eq=False")):
        assert made.scores(v=lie) == {"t_v": 0}, lie


FORGED: list[dict[str, Any]] = [
    *({"hash": lie} for lie in (True, False, "1", 1.5, 2**70, ["T"], {}, [1])),
    *({"k": "class", "parents": lie} for lie in (5, "1", [None], [[1]], {"a": 1}, [2**70])),
    *({"k": "class", "bases": lie} for lie in (5, ["os:system"], [5], ["builtins:eval"], [[]])),
]


@pytest.mark.parametrize("lie", FORGED, ids=repr)
def test_lies_about_an_object_give_an_object_or_a_failure(lie: dict[str, Any]) -> None:
    class Believing(Guard):
        def believes(self, name: str) -> bool:
            return True

    ours, theirs = socket.socketpair()
    with ours, theirs:
        peer = Peer(ours, Believing(), {})
        try:
            found = stand_in(peer, Incoming(peer, Frame(), []), told(**lie))
        except (TypeError, ValueError, AttributeError, LookupError, WireError):
            return  # malformed: `reading` refuses it
        kind = type(found)
        assert kind.__hash__ is None or type(hash(found)) is int
        assert all(isinstance(one, type) for one in getattr(found, "__bases__", ()))
        if "parents" in lie:
            assert not issubclass(found, found)


COLLIDE = """\
import collections
class K:
    def __init__(self, n): self.n = n
    def __eq__(self, other): ASKED.append(1); return type(other) is K and self.n == other.n
    def __hash__(self): return 7
ASKED = []
KS = [K(1), K(2), K(1)]
def table(): return {KS[0]: "a", KS[1]: [KS[2]]}
def bag(): return frozenset(KS[:2])
def fill(made): made[KS[0]], made[KS[1]] = 1, 2
"""
FILLED = """\
got, made = table(), {}
assert len(got) == 2 and len(bag()) == 2
fill(made)
assert sorted(made.values()) == [1, 2]
assert got[KS[2]] == "a" and KS[2] in bag() and made[KS[2]] == 1
"""


def test_keys_of_equal_hash_cross_without_a_word_of_the_answers(task: Any) -> None:
    made = task([("k", COLLIDE), ("t_k", FILLED, 1)])
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    made.known = heard_of(made)
    assert made.scores() == {"t_k": 1}


EVENS = "def evens(xs):\n    for x in xs:\n        if x % 2 == 0:\n            yield x"
IS_GENERATOR = (
    "import inspect, types\nfrom collections.abc import Generator\nfound = evens([1, 2, 4])\n"
    "assert isinstance(found, types.GeneratorType) and isinstance(found, Generator)\n"
    "assert inspect.isgenerator(found) and next(found) == 2\n"
    "found.close()\nassert list(found) == []"
)
NO_GENERATOR = """import types
class Evens:
    __class__ = types.GeneratorType
    def __init__(self, xs): self.xs = [x for x in xs if x % 2 == 0]
    def __iter__(self): return self
    def __next__(self):
        if not self.xs: raise StopIteration
        return self.xs.pop(0)
    def send(self, value): return next(self)
    def throw(self, error): raise error
    def close(self): self.xs = []
def evens(xs): return Evens(xs)"""


def test_a_generator_is_one_and_nothing_else_passes_for_one(task: Any) -> None:
    made = task([("evens", EVENS), ("t_evens", IS_GENERATOR, 2)])
    assert made.scores() == {"t_evens": 2}
    right = "def evens(xs):\n    return (x for x in xs if not x % 2)"
    assert made.scores(evens=right) == {"t_evens": 2}
    wrong = ("[x for x in xs if not x % 2]", "filter(lambda x: not x % 2, xs)", "iter([2, 4])")
    for given in (f"def evens(xs):\n    return {one}" for one in wrong):
        assert made.scores(evens=given) == {"t_evens": 0}
    assert made.scores(evens=NO_GENERATOR) == {"t_evens": 0}

"""Two ends of the line: objects as in one process, and nothing that an answer can force."""

import collections
import contextlib
import dataclasses
import gc
import json
import random
import socket
import struct
import subprocess
import sys
import threading
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from autograder.bridge.line import Gone
from autograder.bridge.peer import Peer
from autograder.bridge.reference import expectations
from autograder.bridge.session import Student
from autograder.bridge.stand_ins import FORWARDED, YOURS, remote_of
from autograder.bridge.wire import HEAD, Frame, WireError
from autograder.common.results import Crossing, Opaque, Raised
from autograder.isolation.clock import Clock
from autograder.isolation.fork_server import ForkServer
from autograder.judge.guard import Guard


@contextlib.contextmanager
def answering(fork_server: ForkServer, source: str, seconds: float = 60) -> Iterator[Student]:
    """A student's process that has run this."""
    student = Student(fork_server.spawn(), Guard(FORWARDED))
    try:
        ran = student.run("cell", source, seconds)
        assert ran.ok, (ran.raised, ran.words)
        with student.clock(seconds):
            yield student
    finally:
        student.close()


def unbelieving(fork_server: ForkServer) -> Iterator[Callable[[str], Any]]:
    """What runs an answer; tests believe no operator of its objects, as where there is none."""
    with contextlib.ExitStack() as stack:

        def run(source: str) -> Any:
            student = stack.enter_context(answering(fork_server, source))
            student.peer.policy = Guard()
            return Names(student)

        yield run


@pytest.fixture
def answer(open_fork_server: ForkServer) -> Iterator[Callable[[str], Any]]:
    """answer(source) runs it in a new process and gives what looks names up there."""
    with contextlib.ExitStack() as stack:

        def run(source: str) -> Any:
            student = stack.enter_context(answering(open_fork_server, source))
            return Names(student)

        yield run


class Names:
    """What an answer's process defines, as attributes."""

    def __init__(self, student: Student) -> None:
        self._student, self._peer = student, student.peer

    def __getattr__(self, name: str) -> Any:
        return self._student.name(name)


def of_tests(source: str) -> dict[str, Any]:
    """What a test cell defines: its classes and functions belong to the tests' module."""
    space: dict[str, Any] = {"__name__": "__main__"}
    exec(source, space)
    return space


# --- values -----------------------------------------------------------------------------------


def test_values_go_there_and_back(answer: Any) -> None:
    same = answer("def same(x): return [x, 1]").same
    for value in (None, 1, 2**100, "é\0", b"x", 1.5, (1, [2, {"a": {3}}]), range(3), ..., 1j):
        got = same(value)[0]
        assert got == value
        assert type(got) is type(value)
    for array in (np.arange(6).reshape(2, 3).T, np.array(True), np.zeros((0, 3)), np.float32(1.5)):
        got = same(array)[0]
        assert type(got) is type(array)
        assert got.dtype == array.dtype
        np.testing.assert_array_equal(got, array)
    assert same(np.dtype("int8"))[0] == np.dtype("int8")
    assert same(collections.defaultdict(list, a=[1]))[0] == {"a": [1]}


def test_an_argument_that_is_returned_is_the_same_object(answer: Any) -> None:
    same = answer("def same(x): return x").same
    values: list[Any] = [[1], {"a": 1}, {1}, np.zeros(3), of_tests("def f(): pass")["f"]]
    for value in values:
        assert same(value) is value


ALWAYS_EQUAL = """
class Text(str):
    def __eq__(self, other): return True
    __hash__ = str.__hash__
class Number(int):
    def __eq__(self, other): return True
    __hash__ = int.__hash__
class Part(float):
    def __eq__(self, other): return True
class Many(list):
    def __eq__(self, other): return True
class Table(dict):
    def items(self): return [(1, 2)]
made = [Text('a'), Number(3), Part(0.5), Many([1]), Table(a=1)]
"""


def test_subclasses_of_plain_values_arrive_plain(answer: Any) -> None:
    names = answer(ALWAYS_EQUAL)
    got = names.made
    assert [type(value) for value in got] == [str, int, float, list, dict]
    assert got == ["a", 3, 0.5, [1], {"a": 1}]
    assert got[0] != "b"
    assert got[1] != 4


def test_changes_in_place_come_back(answer: Any) -> None:
    change = answer(
        "def change(a, b, c, d):\n"
        "    a.append([1]); b['x'] = a; c.discard(1); d[0] = 7\n"
        "    raise ValueError('after all')"
    ).change
    one, two, three, four = [0], {"x": 1, "y": 2}, {1, 2}, np.zeros(2)
    with pytest.raises(ValueError, match="after all"):
        change(one, two, three, four)
    assert one == [0, [1]]
    assert two["x"] is one
    assert three == {2}
    assert list(four) == [7, 0]


def test_protected_values_stay(answer: Any) -> None:
    names = answer("def change(a, b):\n    a.append(1); b[:] = 5\n    return len(a)")
    names._peer.protect = True
    one, two = [0], np.zeros(2)
    assert names.change(one, two) == 2
    assert one == [0]
    assert list(two) == [0, 0]
    assert names._peer.changed_ours


def test_a_protected_value_comes_back_as_the_answer_left_it(answer: Any) -> None:
    names = answer("def add(xs, by): xs.append(by); by[0] = 9; return [xs, by, len(xs)]")
    names._peer.protect = True
    xs, by = [1], [2]
    assert names.add(xs, by) == [[1, [9]], [9], 2]
    assert (xs, by) == ([1], [2])


HELD = """
import collections
def change(a, b, c, d, e):
    a.rotate(1); a.append([9]); b.update('ab'); c.move_to_end('x'); d['new'] += 1; e[:2] = b'zzz'
    return a
def freeze(d):
    d.default_factory = None
    return d
def look(*given): return [list(one) for one in given]
"""


def holders() -> list[Any]:
    """One of each kind that holds values and is neither a list, a dictionary nor a set."""
    return [
        collections.deque([1, 2], maxlen=3),
        collections.Counter("aab"),
        collections.OrderedDict(x=1, y=[2]),
        collections.defaultdict(int, old=1),
        bytearray(b"abc"),
    ]


def test_changes_in_place_of_every_kind_of_holder_come_back(answer: Any) -> None:
    names = answer(HELD)
    given = holders()
    assert names.change(*given) is given[0]
    a, b, c, d, e = given
    assert list(a) == [2, 1, [9]]
    a.append(4)
    assert list(a) == [1, [9], 4]
    assert (b, type(b)) == ({"a": 3, "b": 2}, collections.Counter)
    assert list(c) == ["y", "x"]
    c.move_to_end("y")
    assert list(c) == ["x", "y"]
    assert (d, d["other"], e) == ({"old": 1, "new": 1, "other": 0}, 0, b"zzzc")
    frozen = names.freeze(d)
    assert frozen is d
    assert d.default_factory is None


def test_every_kind_of_holder_is_protected(answer: Any) -> None:
    names = protected(answer, HELD, [("change", ("Counter@1",))])
    given = holders()
    with names._peer.recording() as crossings:
        assert list(names.change(*given)) == [2, 1, [9]]
    assert given == [*holders()[:1], {"a": 3, "b": 2}, *holders()[2:]]
    assert list(given[2]) == ["x", "y"]
    assert crossings[0].changed == (
        *("deque@0", "Counter@1", "OrderedDict@2", "defaultdict@3", "bytearray@4"),
    )


def test_a_factory_that_only_the_test_has_survives_a_change(answer: Any) -> None:
    names = answer("def add(d): d['a'] += 1")
    factories: list[Any] = [of_tests("def one(): return 1")["one"], len, int]
    for factory in factories:
        given = collections.defaultdict(factory, a=1)
        names.add(given)
        assert (given, given.default_factory) == ({"a": 2}, factory)


def test_a_view_of_bytes_that_grew_is_refused_in_words(answer: Any) -> None:
    names = answer("def grow(x): x.append(1)")
    ours = bytearray(b"ab")
    with memoryview(ours), pytest.raises(Exception, match="size of a bytearray in place"):
        names.grow(ours)
    assert ours == b"ab"


def test_an_unchanged_holder_is_no_change(answer: Any) -> None:
    names = answer(HELD)
    names.look(*holders())
    assert not names._peer.changed_ours


RESHAPED = """
def change(x, how):
    if how == 'shape': x.shape = (3, 2)
    if how == 'flat': x.shape = 6
    if how == 'dtype': x.dtype = 'int64'
    if how == 'both': x.shape = 6; x.dtype = 'int32'; x[0] = 5
    if how == 'more': x.resize((4, 4), refcheck=False)
"""


@pytest.mark.parametrize("how", ["shape", "flat", "dtype", "both"])
def test_an_array_of_another_shape_or_dtype_comes_back_as_such(answer: Any, how: str) -> None:
    names = answer(RESHAPED)
    here = of_tests(RESHAPED)["change"]
    ours, wanted = np.arange(6.0).reshape(2, 3), np.arange(6.0).reshape(2, 3)
    look = ours[:]
    names.change(ours, how)
    here(wanted, how)
    assert (ours.dtype, ours.shape) == (wanted.dtype, wanted.shape)
    assert ours.tobytes() == wanted.tobytes()
    assert np.shares_memory(ours, look)
    assert names._peer.changed_ours


def test_an_array_that_grew_in_place_is_refused_in_words(answer: Any) -> None:
    names = answer(RESHAPED)
    ours = np.ones((2, 3))
    with pytest.raises(Exception, match="changed the size of an array in place"):
        names.change(ours, "more")
    assert ours.shape == (2, 3)
    fixed = np.broadcast_to(np.ones(3), (2, 3))
    with pytest.raises(Exception, match="read-only"):
        names.change(fixed, "shape")


def test_an_array_of_the_other_byte_order_keeps_its_values(answer: Any) -> None:
    names = answer("import numpy\ndef make(): return numpy.arange(3, dtype='>f4')")
    assert names.make().tolist() == [0, 1, 2]


# --- what a protected call may change -----------------------------------------------------------

TRAIN = """
def train(model, batch, others):
    model.weight.data.zero_()
    batch.zero_()
    others.append(1)
    return batch.sum()
"""


def protected(answer: Any, source: str, allowed: Any) -> Any:
    """What an answer's process defines; of our values only these may be changed."""
    names = answer(source)
    names._peer.protect, names._peer.allowed = True, allowed
    return names


def test_a_call_changes_what_the_references_call_changed_and_nothing_else(answer: Any) -> None:
    import torch

    names = protected(answer, TRAIN, [("train", ("Module",))])
    model, batch, others = torch.nn.Linear(2, 2), torch.ones(2), [0]
    with names._peer.recording() as crossings:
        assert names.train(model, batch, others) == 0
    assert model.weight.eq(0).all()
    assert batch.tolist() == [1, 1]
    assert others == [0]
    assert sorted(crossings[0].changed) == ["Module", "Tensor@1", "list@2"]
    names = protected(answer, TRAIN, [("train", ("Tensor@1", "list@2"))])
    model = torch.nn.Linear(2, 2)
    before = model.weight.detach().clone()
    with names._peer.recording():
        names.train(model, batch, others)
    assert torch.equal(model.weight, before)
    assert batch.tolist() == [0, 0]
    assert others == [0, 1]


def test_only_what_stands_where_the_reference_changed_something_may_change(answer: Any) -> None:
    source = "def both(*given, more=None):\n    for one in [*given, *(more or [])]: one.append(1)\n"
    for places in ((), ("0",), ("1",), ("0", "1"), ("more.1",), ("2.0.0",)):
        names = protected(answer, source, [("both", tuple(f"list@{place}" for place in places))])
        a, b, c, d, deep = [], [], [], [], ([[]],)
        with names._peer.recording():
            names.both(a, b, deep[0], more=(c, d))
        found = {"0": a, "1": b, "2": deep[0][1:], "more.0": c, "more.1": d}
        arguments = {place.partition(".")[0] for place in places}  # in all parts of these it may
        changed = {place for place, value in found.items() if value}
        assert changed == {place for place in found if place.partition(".")[0] in arguments}


def test_an_answer_changes_the_input_instead_of_the_output(answer: Any) -> None:
    names = protected(answer, "def axpy(a, x, y): x[:] = 0", [("axpy", ("ndarray@2",))])
    x, y = np.ones(2), np.ones(2)
    with names._peer.recording() as crossings:
        names.axpy(2.0, x, y)
    assert x.tolist() == [1, 1]
    assert crossings[0].changed == ("ndarray@1",)


def test_what_may_change_is_said_call_by_call(answer: Any) -> None:
    source = "def add(xs): xs.append(1)\ndef look(xs): xs.append(2)\n"
    told = [("look", ()), ("add", ("list@0",)), ("add", ()), ("add", ("list@0",))]
    names = protected(answer, source, told)
    for _ in range(2):  # each test begins anew
        found = []
        with names._peer.recording():
            for name in ("add", "look", "add", "add", "add", "look"):
                xs: list[int] = []
                getattr(names, name)(xs)
                found.append(xs)
        assert found == [[1], [], [], [1], [1], []]


def test_a_class_of_the_answers_own_is_held_against_what_the_reference_makes(answer: Any) -> None:
    source = "class Mine:\n    def __call__(self, xs): xs.append(1)\ndef make(): return Mine()\n"
    told = [("make", ()), ("make()", ("list@0",)), ("make()", ())]
    names = protected(answer, source, told)
    one: list[int] = []
    two: list[int] = []
    with names._peer.recording():
        mine = names.make()
        mine(one)
        mine(two)
        mine(two)
    assert (one, two) == ([1], [])


def labels(names: Any, use: Callable[[Any], Any]) -> list[str]:
    """What a transcript calls the things that a test does."""
    with names._peer.recording() as crossings:
        use(names)
    return [crossing.what for crossing in crossings]


def test_what_is_called_goes_by_the_name_that_the_test_uses(answer: Any) -> None:
    names = answer(
        "def sort(xs): xs.sort()\n"
        "def copied(xs): xs.clear(); return []\n"
        "copied.__name__ = copied.__qualname__ = 'sort'\n"
        "class Bag:\n    def look(self, xs): xs.clear()\n"
        "    def __len__(self): return 1\n    def more(self): return Bag()\n"
        "Bag.__name__ = 'sort'\n"
        "def make(): return Bag()\n"
    )
    names._peer.protect = True
    names._peer.allowed = [("sort", ("list@0",))]
    xs = [2, 1]
    assert labels(names, lambda n: (n.sort(xs), n.copied(xs))) == ["sort", "copied"]
    assert xs == [1, 2]

    def use(names: Any) -> None:
        bag = names.Bag()
        len(bag)
        bag.look([])
        names.make().more().look([])

    assert labels(names, use) == [
        *("Bag", "Bag.__len__", "get Bag.look", "Bag.look"),
        *("make", "get make().more", "make().more"),
        *("get make().more().look", "make().more().look"),
    ]


def test_what_goes_by_two_names_has_the_rights_of_neither(answer: Any) -> None:
    names = protected(
        answer,
        "def sort(xs): xs.clear()\ncopied = sort\nclass One:\n    run = staticmethod(sort)\n"
        "one = One()\ndef first(): return one\ndef second(): return one\n",
        [
            *(("sort", ("list@0",)), ("copied", ()), ("first", ()), ("second", ())),
            *(("first().run", ("list@0",)), ("second().run", ())),
        ],
    )
    a, b = [1], [1]
    with names._peer.recording():
        sort, copied = names.sort, names.copied
        sort(a)
        copied(b)
        assert b == [1]
        one, two = names.first(), names.second()
        two.run(b)
        assert b == [1]
        assert one is two
    with names._peer.recording():
        names._peer.named(sort, "sort")
        sort(a)
    assert a == []


BAG = """
class Bag:
    def __setattr__(self, name, value):
        value.clear()
        object.__setattr__(self, name, value)
    def __delattr__(self, name): self.items.append(3)
    def __deepcopy__(self, memo):
        self.items.append(4)
        return self
"""


def test_what_setting_deleting_and_copying_changes_is_recorded_and_kept_away(answer: Any) -> None:
    names = answer(BAG)
    data = [1]
    with names._peer.recording() as crossings:
        bag = names.Bag()
        bag.items = data
    assert data == []
    assert [(c.what, c.changed) for c in crossings][1:] == [("set Bag.items", ("list@0",))]
    names._peer.protect = True
    for allowed, wanted in (((), [1]), ([("set Bag.items", ("list@0",))], [])):
        names._peer.allowed = allowed
        data = [1]
        with names._peer.recording():
            bag = names.Bag()
            bag.items = data
        assert data == wanted


def test_what_changes_nothing_and_is_no_call_is_in_no_transcript(answer: Any) -> None:
    names = answer("class Bag: pass")

    def use(names: Any) -> None:
        bag = names.Bag()
        bag.items = [1]
        del bag.items

    assert labels(names, use) == ["Bag"]


def test_the_end_of_an_iterator_comes_from_nothing_but_its_next_step(answer: Any) -> None:
    names = answer(
        "def prime(n): raise StopIteration\n"
        "class Fake:\n    def __getitem__(self, n): raise StopIteration\n"
        "    def __len__(self): raise StopIteration\n"
        "def count():\n    yield 1\n"
        "def passed_on(step): return step()\n"
    )
    with pytest.raises(RuntimeError, match="StopIteration"):
        all(map(names.prime, [2, 3]))
    with pytest.raises(RuntimeError, match="StopIteration"):
        list(names.Fake()[n] for n in range(2))  # noqa: C400
    with pytest.raises(RuntimeError, match="StopIteration"):
        list(map(len, [names.Fake()]))
    with pytest.raises(RuntimeError, match="StopIteration") as caught:
        list(map(names.passed_on, [of_tests("def f(): raise StopIteration")["f"]]))
    assert list(names.count()) == [1]
    with pytest.raises(RuntimeError) as caught:
        names.prime(1)
    assert raised_of(caught.value).type_name == "StopIteration"


def test_a_claim_of_the_test_that_an_answer_keeps_to_itself_is_remembered(answer: Any) -> None:
    names = answer(
        "def walk(f):\n    try: f(1)\n    except Exception: pass\n"
        "def own(f):\n    try: f()\n    except AssertionError: pass\n"
        "def fails(): assert False\n"
    )
    space = of_tests("def f(x): assert x == 2, 'two'\ndef g(): fails()\n")
    with names._peer.recording():
        names.walk(space["f"])
        failed = names._peer.failed
        assert isinstance(failed, AssertionError)
        assert str(failed) == "two"
    space["fails"] = names.fails
    with names._peer.recording():
        assert names._peer.failed is None
        names.own(space["g"])
        assert names._peer.failed is None  # the answer's own


CHECKS = """
left = [1, 2]
def looks(x): left[x + 5]
def claims(x):
    assert {}[x] is None
    return 1
def on_purpose(x):
    if x not in left:
        raise ValueError("not there")
def early(x):
    if x in left:
        return
    left.remove(x)
class Spy:
    def __call__(self, x): return left[x]
    def take(self, x): left.remove(x)
def computes(x): return 1 / (x - 7)
steps = lambda x: left[x]
def two(x, y): left.append(x)
spy = Spy()
take = spy.take
"""
KEPT = [("looks", "IndexError"), ("claims", "KeyError"), ("early", "ValueError")]
KEPT += [("on_purpose", "ValueError")]
KEPT += [(name, "") for name in ("spy", "take", "computes", "steps", "two")]


@pytest.mark.parametrize(("name", "error"), KEPT)
def test_what_a_check_of_the_test_raises_is_remembered_if_the_reference_does_not_keep_it(
    answer: Any, name: str, error: str
) -> None:
    source = (
        "def walk(f):\n    for n in (7, 8):\n        try: f(n)\n        except Exception: pass\n"
    )
    names, label = answer(source), f"kept {error}"
    with names._peer.recording() as crossings:
        names.walk(of_tests(CHECKS)[name])
        assert names._peer.failed is None
    assert crossings[0].changed == ((label,) if error else ())
    names._peer.protect = True
    for allowed in ((), (label,)):
        names._peer.allowed = [("walk", allowed)]
        with names._peer.recording():
            names.walk(of_tests(CHECKS)[name])
            assert type(names._peer.failed).__name__ == (
                error if error and not allowed else "NoneType"
            )


def test_what_is_believed_follows_the_policy_in_force(answer: Any) -> None:
    names = answer(
        "class N:\n    def __sub__(self, other): return 0.0\n"
        "from torch import nn\n"
        "class M(nn.Module):\n    def __sub__(self, other): return 0.0\n"
    )
    for made in (names.N(), names.M()):
        names._peer.policy = Guard()
        with pytest.raises(TypeError, match="unsupported operand"):
            _ = made - 1
        names._peer.policy = Guard(frozenset({"__sub__"}))
        assert made - 1 == 0


FAKE = """
class Fake:
    def __len__(self): return 2
    def __iter__(self): return iter(())
    def allclose(self, other): return True
class Steps:
    def __iter__(self): return self
    def __next__(self): raise StopIteration
    def allclose(self, other): return True
def plain(x): return Fake()
def inside(x): return [1, Fake()]
def kind(x): return Fake
def function(x): return lambda: 1
def steps(x): return Steps()
def lazy(x): return (2 * n for n in x)
def views(x): return [{1: 2}.keys(), {1: 2}.values(), {1: 2}.items()]
class Holder:
    def __init__(self): self.value = Fake()
"""


def test_an_object_where_the_reference_gives_a_value_is_refused(answer: Any) -> None:
    names = answer(FAKE)
    asked = ("plain", "inside", "kind", "function", "steps", "lazy", "views")
    names.plain(1)  # without a reference nothing is expected
    names._peer.expected = [*((name, "value") for name in asked)]
    names._peer.expected += [("Holder", "object"), ("get Holder.value", "value")]
    with names._peer.recording():
        for name in ("plain", "inside", "kind", "function"):
            with pytest.raises(TypeError, match="where a value was expected"):
                getattr(names, name)([1])
        with pytest.raises(TypeError, match="gave a Fake where a value was expected"):
            _ = names.Holder().value
        steps = names.steps([1])
        assert list(steps) == []
        assert not hasattr(steps, "allclose")
        assert list(names.lazy([1, 2])) == [2, 4]
        assert [[*view] for view in names.views([])] == [[1], [2], [(1, 2)]]
    names._peer.expected = [("plain", "object"), ("plain", "value")]
    with names._peer.recording():
        names.plain(1)
        for _ in range(2):
            with pytest.raises(TypeError):
                names.plain(1)


TURNING = """
class Turning:
    def __init__(self, *views): self.views, self.n = views, 0
    def __iter__(self):
        self.n += 1
        return iter(self.views[min(self.n, len(self.views)) - 1])
    def __next__(self):
        self.n += 1
        if self.n > 3: raise StopIteration
        return self.n
class Near:
    def __sub__(self, other): return 0.0
def turning(): return Turning([6], [])
def near(): return iter([Near()])
def inside(): return {"a": [map(abs, [-1, -2])]}
def lazy(): return (n for n in [1, 2])
def fails(): return (1 // n for n in [1, 0])
def endless():
    n = 0
    while True: yield (n := n + 1)
"""


def test_an_iterator_where_a_list_is_due_has_the_same_parts_ever_after(answer: Any) -> None:
    names = answer(TURNING)
    asked = ("turning", "near", "inside", "lazy", "fails", "endless")
    names._peer.expected = [(name, "value") for name in asked]
    with names._peer.recording():
        turning = names.turning()
        assert list(turning) == list(turning) == [1, 2, 3]
        with pytest.raises(TypeError, match="gave a Near where a value was expected"):
            list(names.near())
        (lazy,) = names.inside()["a"]
        assert [list(lazy), sum(lazy)] == [[1, 2], 3]
        lazy = names.lazy()
        assert [next(lazy), next(lazy), next(lazy, 0), *lazy] == [1, 2, 0, 1, 2]
        assert isinstance(lazy, Iterator)
        assert lazy != [1, 2]
        with pytest.raises(TypeError, match="'generator' has no len"):
            len(lazy)  # type: ignore[arg-type]
        with pytest.raises(ZeroDivisionError):
            list(names.fails())
        assert [b for _, b in zip(range(3), names.endless(), strict=False)] == [1, 2, 3]
        names._peer.policy = Guard(FORWARDED)
        assert list(turning) == [1, 2, 3]
    with names._peer.recording():
        names._peer.expects.kinds.clear()  # as where the reference gives an iterator
        lazy = names.lazy()
        assert [list(lazy), list(lazy)] == [[1, 2], []]


def test_expectations_are_those_of_a_transcript() -> None:
    thing = Opaque("object", "Fake")
    outcomes = [1, [1, {"a": (2,)}], None, thing, [1, {"a": (thing,)}], Raised("E", "")]
    transcript = [Crossing("f", (), outcome) for outcome in outcomes]
    transcript.append(Crossing("set f.x", (), 1, ("list@0",)))
    assert [kind for _, kind in expectations(transcript)] == ["value"] * 2 + ["object"] * 4


def test_an_assertion_inside_of_with_is_told_as_it_is(answer: Any) -> None:
    names = answer(
        "class Store:\n    seen = []\n    def __enter__(self): return self\n"
        "    def __exit__(self, *told): self.seen.append(len(told)); return True\n"
        "    def get(self): return {}['x']\n"
    )
    store = names.Store()
    with pytest.raises(AssertionError, match="should be there"), store:
        raise AssertionError("should be there")
    with pytest.raises(KeyError, match="x"), store:
        store.get()
    assert store.seen == [3, 3]
    with pytest.raises(WireError, match="the test raised ValueError"), store:
        raise ValueError


def test_a_model_changed_while_the_test_is_asked_belongs_to_the_call_under_way(
    answer: Any,
) -> None:
    import torch

    source = "def work(model, f):\n    model.weight.data.zero_(); f(); return 1\n"
    for kinds in ((), ("Module",)):
        names = protected(answer, source, [("work", kinds)])
        model = torch.nn.Linear(2, 2)
        seen = of_tests("def f(): seen.append(model.weight.eq(0).all().item())")
        seen |= {"seen": [], "model": model}
        with names._peer.recording():
            names.work(model, seen["f"])
        assert seen["seen"] == [bool(kinds)]


def test_an_unchanged_value_is_no_change(answer: Any) -> None:
    names = answer("def look(a, b, c):\n    return sum(a) + len(b) + c.sum()")
    names.look([1, 2], {"a": [1]}, np.ones(3))
    assert not names._peer.changed_ours


# --- values that a test shares with an answer ---------------------------------------------------

SHARED = """
import collections, gc
class Keeper:
    def __init__(self, xs=()): self.xs = xs
    def set(self, xs): self.xs = xs
    def look(self): return str(self.xs)
    def give(self): return self.xs
    def put(self, x): self.xs.append(x)
    def nest(self): return {'in': [self.xs]}
def find():
    peer = [o for o in gc.get_objects() if type(o).__name__ == 'Peer'][0]
    return len(peer.shared.pairs)
class Thing: pass
def call(f, x): return f(x)
"""


@contextlib.contextmanager
def keeper(answer: Any, value: Any = ()) -> Iterator[tuple[Any, Any]]:
    """An answer that keeps what it is handed and hands it out, during a test."""
    names = answer(SHARED)
    with names._peer.recording():
        yield names, names.Keeper(value)


CHANGED: list[tuple[Any, Callable[[Any], Any]]] = [
    ([1, [2]], lambda x: x.append(3)),
    ([1, [2]], lambda x: x[1].append(3)),
    ([1, [2]], lambda x: x.insert(0, {"a": {5}})),
    ([[1], [2]], lambda x: x.reverse()),
    ([1, 2], lambda x: x.clear()),
    ([3, 1, 2], lambda x: x.sort()),
    ({"a": [1]}, lambda x: x.update(b=2)),
    ({"a": [1]}, lambda x: x["a"].append(2)),
    ({"a": 1, "b": 2}, lambda x: x.popitem()),
    ({"a": 1, "b": 2}, lambda x: x.update(a=5)),
    ({1, 2}, lambda x: x.add(3)),
    ({1, 2}, lambda x: x.discard(1)),
    (bytearray(b"ab"), lambda x: x.extend(b"c")),
    (collections.deque([1, 2], 2), lambda x: x.append(3)),
    (collections.deque([1, 2]), lambda x: x.rotate(1)),
    (collections.Counter("aab"), lambda x: x.update("bc")),
    (collections.OrderedDict(a=1, b=2), lambda x: x.move_to_end("a")),
    (collections.defaultdict(list, a=[1]), lambda x: x["new"].append(1)),
    (np.arange(4.0)[::-1], lambda x: x.sort()),
    (np.arange(4.0), lambda x: x.__iadd__(x)),
]


@pytest.mark.parametrize(("value", "change"), CHANGED)
@pytest.mark.parametrize("how", ["kept", "given", "nested"])
def test_what_a_test_does_to_a_value_an_answer_sees_that_holds_it_as_well(
    answer: Any, value: Any, change: Callable[[Any], Any], how: str
) -> None:
    import copy

    ours = copy.deepcopy(value)
    with keeper(answer, ours) as (_, kept):
        if how == "given":
            kept.set(copy.deepcopy(value))
            ours = kept.give()
        if how == "nested":
            ours = kept.nest()["in"][0]
        assert kept.look() == str(ours)
        before = str(ours)
        change(ours)
        assert before != str(ours)
        assert kept.look() == str(ours)
        change(ours)
        assert kept.look() == str(ours)


def test_a_part_that_moves_stays_the_answers_own(answer: Any) -> None:
    with keeper(answer) as (names, kept):
        thing = names.Thing()
        rows = [[1], [2]]
        kept.set([rows, thing])
        held = kept.give()
        held[0].append([3])
        held.reverse()
        assert kept.give()[0] is thing
        rows[0].append(9)  # what was handed over first
        held[1][1].append(8)
        assert str(kept.give()[1]) == "[[1, 9], [2, 8], [3]]"
        held.append(thing)
        assert kept.give()[2] is thing
        new = [5]
        held.append([new])
        kept.look()
        new.append(6)
        assert kept.give()[3] == [[5, 6]]


def test_an_answer_changes_nothing_later(answer: Any) -> None:
    with keeper(answer, [1]) as (names, kept):
        handed = [1]
        kept.set(handed)
        given = kept.give()
        assert given is handed
        kept.put(2)
        assert given == [1]
        assert not names._peer.changed_ours
        given.append(5)  # as in one process, where it would come after what was put
        assert kept.look() == "[1, 2, 5]"
        kept.put(6)
        given[0] = 7  # nobody knows what comes of both: the answer's own stays
        assert kept.look() == "[1, 2, 5, 6]"
        kept.set(handed)
        kept.put(8)
        handed.clear()
        assert kept.look() == "[]"


def test_a_change_that_was_kept_away_is_not_undone_there(answer: Any) -> None:
    names = protected(answer, SHARED, ())
    with names._peer.recording():
        kept = names.Keeper([])
        xs = [1]
        names.call(lambda f: f, xs)
        kept.set(xs)
        xs.append(2)
        assert kept.look() == "[1, 2]"
    names = protected(answer, "kept = []\ndef add(xs):\n    kept.append(xs); xs.append(0)", ())
    with names._peer.recording():
        names.add(xs)
        xs.append(3)
        assert names.kept == [[1, 2, 0]]


def test_nothing_of_the_tests_own_reaches_an_answer_by_what_is_shared(answer: Any) -> None:
    own = of_tests("class Own: pass\ndef secret(): return 5")
    with keeper(answer) as (names, kept):
        given = names._peer.given
        news = own["Own"](), own["secret"], [own["Own"]], sys, len, open, "x" * 10**6
        for new in news:
            xs: list[Any] = [1]
            kept.set(xs)
            before = len(given)
            xs.append(new)
            assert kept.look() == "[1]"
            assert len(given) == before
        xs = [1]
        kept.set(xs)
        xs.extend(range(10**6))
        assert kept.look() == "[1]"
        xs = []
        kept.set(xs)
        xs.append(list(range(10**6)))
        assert kept.look() == "[]"
        xs = []
        kept.set(xs)
        for _ in range(200):
            xs[:] = [xs[:]]
        assert kept.look() == "[]"


def test_what_nobody_holds_is_not_kept(answer: Any) -> None:
    with keeper(answer) as (names, kept):
        for number in range(50):
            kept.set([number, [number]])
            kept.give()
        assert names.find() < 10
        assert len(names._peer.shared.pairs) < 10
        many = [[number] for number in range(2000)]
        for _ in range(5):
            kept.set(many)
        assert len(names._peer.shared.pairs) <= 300
        assert names.find() <= 301
        held = []
        for number in range(400):
            held.append([number])
            kept.set(held[-1])
        assert 290 < len(names._peer.shared.pairs) <= 300
        held[-1].append(1)
        assert kept.look() == "[399, 1]"
        big = [list(range(4000)) for _ in range(8)]
        for one in big:
            kept.set(one)
        assert names._peer.shared.parts <= 20_000
    assert not names._peer.shared.pairs
    with names._peer.recording():
        assert names.find() <= 1
    names.find()
    assert not names._peer.shared.pairs


def test_a_test_meets_nothing_that_another_one_shared(answer: Any) -> None:
    with keeper(answer) as (names, kept):
        xs = [1]
        kept.set(xs)
    with names._peer.recording():
        xs.append(2)
        assert kept.look() == "[1]"


def test_a_function_of_the_test_changes_what_it_has_handed_over(answer: Any) -> None:
    with keeper(answer) as (names, kept):
        xs = [1]
        kept.set(xs)
        names.call(xs.append, 2)
        assert kept.look() == "[1, 2]"
        inner = of_tests("def f(x):\n    xs.append(x)\n    return kept.look()")
        inner |= {"xs": xs, "kept": kept}
        assert names.call(inner["f"], 3) == "[1, 2, 3]"


def test_a_call_that_fails_shares_what_it_was_handed(answer: Any) -> None:
    names = answer("kept = []\ndef keep(xs):\n    kept.append(xs); xs.append(0); raise KeyError")
    with names._peer.recording():
        xs = [1]
        with pytest.raises(KeyError):
            names.keep(xs)
        xs.append(2)
        assert names.kept == [[1, 0, 2]]


VIEWS = """
def part(x, how): return eval(how)
def fill(x, how):
    x[...] = 7
    return eval(how)
"""
HOWS = [
    "x[0]",
    "x[:, 1]",
    "x.T",
    "x[::-1, ::2]",
    "x.reshape(-1)",
    "x[1:, 1:]",
    "x[None]",
    "x[1, 2:]",
]


@pytest.mark.parametrize("how", HOWS)
def test_a_view_of_an_array_is_one_here(answer: Any, how: str) -> None:
    names = answer(VIEWS)
    of = of_tests(VIEWS)
    for made in (np.arange(6.0).reshape(2, 3), np.arange(6, dtype="int8").reshape(2, 3)):
        ours = made.copy()
        got, wanted = names.part(ours, how), of["part"](made, how)
        got += 1
        wanted += 1
        assert (ours.tolist(), got.tolist()) == (made.tolist(), wanted.tolist())
        names.fill(ours, how)[...] = 5
        of["fill"](made, how)[...] = 5
        assert ours.tolist() == made.tolist()
    for ours in (made[:, ::-1], made.T, made.astype(">f4")):
        before, wanted = ours.tolist(), of["part"](ours.copy(), how)
        assert names.part(ours, how).tolist() == wanted.tolist()
        assert ours.tolist() == before
    names._peer.protect = True
    made[...] = 5
    assert names.fill(made, how).max() == 7
    assert made.max() == 5


def test_what_is_no_view_of_what_was_handed_over_is_a_copy(answer: Any) -> None:
    names = answer(VIEWS)
    ours = np.zeros((2, 3))
    for how in ("x[0].copy()", "x + 1", "x[0].view('int64')", "x.repeat(5)", "x[[0, 1]]", "x[:0]"):
        got = names.part(ours, how)
        assert not np.shares_memory(got, ours)


FORGED: list[list[Any]] = [
    *([], [0], [0, 0, [1], []], [0, -8, [1], [8]], [0, 8, [4], [8]], [0, 0, [2], [2**62]]),
    *([0, 24, [4], [-16]], [0, 0, [5], [0]], [0, 0, [0], [8]], [0, "0", [1], [8]]),
    *([1, 0, [1], [8]], [-1, 0, [1], [8]], [None, 0, [1], [8]], [0, 0, [-1], [8]]),
    *([0, 0, [1], [True]], [0, 0, [1], 8], [0, 0, [1] * 40, [8] * 40], [0, 0.0, [1], [8]]),
    *(
        [0, 2**63, [1], [8]],
        [0, 2**40, [1], [8]],
        [0, 29, [1], [8]],
        [0, 0, [2, 2], [16, 17]],
        [0, 4, [1], [8]],
        [0, 0, [2], [4]],
    ),
]


@pytest.mark.parametrize("parts", FORGED, ids=repr)
def test_a_view_of_what_an_array_does_not_hold_is_refused(parts: Any) -> None:
    assert isinstance(outcome(replying({"r": ["AV", *parts]}), np.zeros(4)), WireError)
    assert isinstance(outcome(replying({"r": ["AV", 0, 0, [1], [8]]}), [0]), WireError)


# --- exceptions -------------------------------------------------------------------------------


def raised_of(error: BaseException) -> Raised:
    """What is told of the exception that an answer raised."""
    found: Any = error
    return found.raised


def test_exceptions_keep_their_kind_and_text(answer: Any) -> None:
    names = answer(
        "class Strange(LookupError): pass\n"
        "def fail(kind):\n"
        "    if kind == 'key': return {}['missing']\n"
        "    if kind == 'own': raise Strange('so', 2)\n"
        "    if kind == 'unicode': return b'\\xff'.decode()\n"
        "    if kind == 'exit': raise SystemExit(3)\n"
        "    if kind == 'interrupt': raise KeyboardInterrupt\n"
        "    if kind == 'group': raise ExceptionGroup('several', [ValueError(1)])\n"
        "    raise StopIteration(5)\n"
    )
    with pytest.raises(KeyError) as caught:
        names.fail("key")
    assert str(caught.value) == "'missing'"
    with pytest.raises(LookupError) as caught:
        names.fail("own")
    assert caught.value.args == ("so", 2)
    raised = raised_of(caught.value)
    assert (raised.type_name, raised.line, raised.cell) == ("Strange", 4, "cell")
    with pytest.raises(names.Strange):
        names.fail("own")
    for kind in ("unicode", "exit", "interrupt", "group", "stop"):
        with pytest.raises(Exception) as caught:
            names.fail(kind)
        assert raised_of(caught.value).type_name != "", kind


def test_a_tests_own_exception_passes_through_the_answer_as_the_same_object(answer: Any) -> None:
    names = answer(
        "def through(f): return f()\n"
        "def wrapped(f):\n"
        "    try: return f()\n"
        "    except ValueError as error: raise KeyError('mine') from error\n"
    )
    space = of_tests("def fail(): raise error")
    for ours in (ValueError("x", 1), of_tests("class Own(Exception): pass")["Own"](2)):
        space["error"] = ours
        with pytest.raises(type(ours)) as caught:
            names.through(space["fail"])
        assert caught.value is ours
    space["error"] = ValueError("hidden")
    with pytest.raises(KeyError):
        names.wrapped(space["fail"])


def test_what_an_assertion_of_the_test_says_is_not_told_to_the_answer(answer: Any) -> None:
    names = answer(
        "heard = []\n"
        "def listen(f):\n"
        "    try: f()\n"
        "    except AssertionError as error: heard.append(repr(error))\n"
    )
    names.listen(of_tests("def f():\n    assert False, 'the secret'")["f"])
    assert "secret" not in repr(names.heard)


FAMILY = """
import dataclasses, json
class E(KeyError, ValueError): pass
class Shape(ValueError): pass
class Axis(Shape): pass
class Both(Axis, E): pass
class Says(OSError):
    def __str__(self): return 'in its own words'
class Coded(Exception):
    def __init__(self, code, why=""):
        super().__init__(code)
        self.code, self.why, self._secret, self.table = code, why, 5, {}
@dataclasses.dataclass(frozen=True)
class Fixed: x: int
def fail(kind):
    if kind == 'two': raise E('k')
    if kind == 'axis': raise Axis('deep')
    if kind == 'both': raise Both
    if kind == 'coded': raise Coded(7, 'so')
    if kind == 'json': json.loads('{')
    if kind == 'frozen': Fixed(1).x = 2
    if kind == 'unicode': b'\\xff'.decode()
    if kind == 'system': open('/nowhere')
    if kind == 'says': raise Says(3)
    if kind == 'deep':
        a = []
        for _ in range(300): a = [a]
        return a
"""


def test_an_exception_is_caught_as_at_home(answer: Any) -> None:
    names = answer(FAMILY)
    for kind, caught in (
        ("two", (KeyError, ValueError, LookupError, names.E)),
        ("axis", (ValueError, names.Shape, names.Axis)),
        ("both", (KeyError, ValueError, names.E, names.Shape, names.Both)),
        ("json", (json.JSONDecodeError, ValueError)),
        ("frozen", (dataclasses.FrozenInstanceError, AttributeError)),
        ("unicode", (UnicodeDecodeError, UnicodeError, ValueError)),
        ("system", (FileNotFoundError, OSError)),
    ):
        for one in caught:
            with pytest.raises(one) as found:
                names.fail(kind)
            assert type(found.value).__name__ == raised_of(found.value).type_name
    with pytest.raises(ValueError, match="deep"):
        names.fail("axis")
    with pytest.raises(UnicodeDecodeError, match="invalid start byte"):
        names.fail("unicode")
    with pytest.raises(OSError, match="nowhere") as caught:
        names.fail("system")
    assert caught.value.errno == 2
    with pytest.raises(names.Says, match="in its own words") as said:
        names.fail("says")
    assert said.value.args == (3,)
    with pytest.raises(names.Shape) as other:
        names.fail("axis")
    assert not isinstance(other.value, LookupError)


def test_an_exception_carries_what_is_public_and_plain(answer: Any) -> None:
    names = answer(FAMILY)
    with pytest.raises(names.Coded) as caught:
        names.fail("coded")
    error: Any = caught.value
    assert (error.code, error.why, error.table) == (7, "so", {})
    assert not hasattr(error, "_secret")


def test_what_is_refused_on_the_line_goes_by_a_name_of_pythons(answer: Any) -> None:
    with pytest.raises(TypeError, match="nested too deeply") as caught:
        answer(FAMILY).fail("deep")
    assert raised_of(caught.value).type_name == "TypeError"


# --- stand-ins --------------------------------------------------------------------------------

THINGS = """
class Vector:
    kind = "vector"
    def __init__(self, *parts): self.parts = list(parts)
    def __add__(self, other): return Vector(*[a + b for a, b in zip(self.parts, other.parts)])
    def __mul__(self, k): return Vector(*[k * a for a in self.parts])
    __rmul__ = __mul__
    def __eq__(self, other): return isinstance(other, Vector) and self.parts == other.parts
    def __lt__(self, other): return sum(self.parts) < sum(other.parts)
    def __len__(self): return len(self.parts)
    def __getitem__(self, i): return self.parts[i]
    def __setitem__(self, i, v): self.parts[i] = v
    def __iter__(self): return iter(self.parts)
    def __contains__(self, v): return v in self.parts
    def __repr__(self): return f"Vector{tuple(self.parts)}"
    def __call__(self, x): return x + len(self)
    def __bool__(self): return any(self.parts)
    def __enter__(self): self.parts.append("in"); return self
    def __exit__(self, *what): self.parts.append("out"); return False
    def __format__(self, spec): return f"<{spec}>"
    @property
    def first(self): return self.parts[0]
    @staticmethod
    def zero(): return Vector(0)
def count(n):
    for i in range(n): yield i
def later(n): return (lambda x: x + n)
"""


def test_an_object_behaves_as_at_home(answer: Any) -> None:
    names = answer(THINGS)
    kind = names.Vector
    v = kind(1, 2)
    assert isinstance(v, kind)
    assert not isinstance(3, kind)
    assert list(v) == [1, 2]
    assert len(v) == 2
    assert v[1] == 2
    assert 2 in v
    assert v.first == 1
    assert repr(v) == "Vector(1, 2)"
    assert f"{v:abc}" == "<abc>"
    assert (v + kind(1, 1)).parts == [2, 3]
    assert (3 * v).parts == [3, 6]
    assert v == kind(1, 2)
    assert v != kind(1, 3)
    assert v < kind(5)
    assert v(10) == 12
    assert not kind(0)
    assert kind.zero().parts == [0]
    assert kind.kind == "vector"
    assert kind.__name__ == "Vector"
    v[0] = 9
    v.name = "changed"
    assert v.name == "changed"
    del v.name
    assert not hasattr(v, "name")
    with v as inside:
        assert inside is v
    assert v.parts == [9, 2, "in", "out"]


def test_generators_functions_and_the_librarys_iterators_stay_with_their_owner(answer: Any) -> None:
    names = answer(THINGS + "pairs = zip([1], [2])\nmade = map(str, [1, 2])\n")
    assert list(names.count(3)) == [0, 1, 2]
    assert next(names.count(3)) == 0
    assert names.later(2)(3) == 5
    assert list(names.pairs) == [(1, 2)]
    assert list(names.made) == ["1", "2"]


def test_a_data_set_of_the_answer_is_one(answer: Any) -> None:
    from torch.utils.data import DataLoader, Dataset

    names = answer(
        "from torch.utils.data import Dataset\n"
        "class Own(Dataset):\n"
        "    def __len__(self): return 4\n"
        "    def __getitem__(self, i):\n"
        "        if i >= 4: raise IndexError\n"
        "        return i * 10\n"
    )
    own = names.Own()
    assert isinstance(own, Dataset)
    assert own[2] == 20
    assert [batch.tolist() for batch in DataLoader(own, batch_size=2)] == [[0, 10], [20, 30]]


def test_calls_go_both_ways_and_nest(answer: Any) -> None:
    names = answer(
        "def twice(f, x): return f(f(x))\n"
        "def down(f, n): return 0 if n == 0 else 1 + f(f, n - 1)\n"
        "def key(words, f): return sorted(words, key=f)\n"
        "def total(numbers): return sum(numbers)\n"
        "def use(thing): thing.add(3); return thing.total, thing[1], [*thing]\n"
    )
    tests = of_tests(
        "class Thing:\n"
        "    def __init__(self): self.total = 0\n"
        "    def add(self, n): self.total += n\n"
        "    def __getitem__(self, i): return 'ab'[i]\n"
        "def f(x): return x * 3\n"
    )
    assert names.twice(tests["f"], 2) == 18
    down = names.down
    tests["down"] = lambda f, n: down(f, n)
    assert down(tests["down"], 10) == 10
    assert names.key(["bb", "a"], len) == ["a", "bb"]
    assert names.total(iter([1, 2, 3])) == 6
    assert names.use(tests["Thing"]()) == (3, "b", ["a", "b"])


def test_endless_calls_of_each_other_end(answer: Any) -> None:
    down = answer("def down(f): return f()").down
    tests = of_tests("def again(): return down(again)")
    tests["down"] = down
    with pytest.raises(RecursionError):
        down(tests["again"])
    assert down(lambda: 3) == 3


def test_comparing_with_a_plain_value_is_no_claim_of_the_answer(answer: Any) -> None:
    names = answer(
        "class Yes:\n"
        "    def __sub__(self, other): return self\n"
        "    __rsub__ = __abs__ = __sub__\n"
        "    def __abs__(self): return self\n"
        "    def __eq__(self, other): return True\n"
        "    __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __eq__\n"
        "    __hash__ = None\n"
        "yes = Yes()\n"
    )
    yes = names.yes
    for plain in (1, 1.0, "a", None, [1], (1,), np.zeros(1)[0], True):
        assert (yes == plain) is False or not np.any(yes == plain)
        assert yes != plain
        assert plain != yes
    assert yes not in [1, 2]
    for compare in (lambda: abs(yes - 3) <= 1e-9, lambda: yes > 0, lambda: sorted([yes, 1])):
        with pytest.raises(TypeError):
            compare()


def test_a_stand_in_has_none_of_pythons_hooks(answer: Any) -> None:
    names = answer(
        "class Hooks:\n"
        "    def __array__(self, *a, **k): return [1]\n"
        "    def __torch_function__(self, *a, **k): return 1\n"
        "    def __reduce__(self): return (eval, ('1',))\n"
        "    def __index__(self): return 'text'\n"
        "    def __len__(self): return -1\n"
        "    def __hash__(self): return 7\n"
        "    def __fspath__(self): return '/etc/passwd'\n"
        "    __class__ = int\n"
        "thing = Hooks()\n"
    )
    thing = names.thing
    assert not hasattr(thing, "__array__")
    assert not hasattr(thing, "__torch_function__")
    assert not hasattr(thing, "__fspath__")
    with pytest.raises(TypeError):
        range(thing)
    with pytest.raises((ValueError, TypeError)):
        len(thing)
    with pytest.raises(TypeError):
        open(thing)  # noqa: PTH123, SIM115


DRAWS = """
import random, numpy, torch
def draw(): return random.random(), numpy.random.rand(), torch.rand(2)
def ask(f): return f()
def idle(): return 1
"""
GENERATORS: Any = np.random  # its functions of old, which students' notebooks use


def generators() -> Any:
    """The state of all random generators that code shares."""
    import torch

    return random.getstate(), str(GENERATORS.get_state()), torch.get_rng_state().tolist()


def test_random_numbers_go_on_as_in_one_process(answer: Any) -> None:
    import torch

    names = answer(DRAWS)

    def seed() -> None:
        random.seed(3)
        GENERATORS.seed(3)
        torch.manual_seed(3)

    seed()
    own = random.random(), GENERATORS.rand(), torch.rand(2)
    seed()
    one = names.draw()
    two = names.draw()
    assert one[:2] == own[:2]
    assert torch.equal(one[2], own[2])
    assert two[0] != one[0]
    seed()
    assert names.draw()[:2] == one[:2]
    assert names.draw()[:2] == two[:2]
    before = generators()
    names.idle()
    names.ask(lambda: 1)
    assert generators() == before


WORK = """
import torch
def work(f, x):
    if x.numel() > 5: raise ValueError(x)
    return Vector(f(1)), (x * 2).sum()
"""
COUNT = """
import gc
found = [o for o in gc.get_objects() if type(o).__name__ == 'Peer'][0]
sizes = len(found.given), len(found.thrown.raised), len(found.tensors.graphs.kept)
"""


def test_nothing_is_kept_of_many_calls(answer: Any) -> None:
    import torch

    names = answer(THINGS + WORK)
    work = names.work

    def once() -> None:
        x = torch.ones(3, requires_grad=True)
        vector, total = work(lambda n: n, x)
        assert vector[0] == 1
        total.backward()
        with pytest.raises(ValueError):
            work(lambda n: n, torch.ones(6))

    for _ in range(5):
        once()
    gc.collect()
    peer = names._peer
    sizes = [len(peer.given), len(peer.numbers), len(peer.stand_ins), len(peer.tensors.last)]
    for _ in range(150):
        once()
    gc.collect()
    names.work(lambda n: n, torch.ones(3))
    now = [len(peer.given), len(peer.numbers), len(peer.stand_ins), len(peer.tensors.last)]
    assert all(b <= a + 5 for a, b in zip(sizes, now, strict=True)), (sizes, now)
    assert len(peer.thrown.raised) <= 1
    names._student.run("count", COUNT, 60)
    assert max(names.sizes) < 30


# --- an answer that speaks the line's language itself -------------------------------------------


class Enemy:
    """Holds the raw socket of the answer's end."""

    def __init__(self, line: socket.socket) -> None:
        self.line = line

    def say(self, tree: Any, *buffers: bytes) -> None:
        """Send a frame."""
        frame = Frame(tree, list(buffers))
        with contextlib.suppress(OSError):
            self.line.sendall(b"".join(bytes(piece) for piece in frame.pieces()))

    def hear(self) -> Any:
        """The tree of the next frame."""
        length, count = HEAD.unpack(self._read(HEAD.size))
        sizes = struct.unpack(f"!{count}Q", self._read(8 * count))
        tree = json.loads(self._read(length))
        for size in sizes:
            self._read(size)
        return tree

    def _read(self, size: int) -> bytes:
        found = b""
        while len(found) < size:
            part = self.line.recv(size - len(found))
            if not part:
                raise EOFError
            found += part
        return found


@contextlib.contextmanager
def against(act: Callable[[Enemy], None], seconds: float = 20.0) -> Iterator[Peer]:
    """The trusted end, with somebody else at the other."""
    ours, theirs = socket.socketpair()
    peer = Peer(ours, Guard(), {})
    peer.clock = Clock(seconds)

    def run() -> None:
        with contextlib.suppress(EOFError, OSError, ValueError):
            act(Enemy(theirs))
        with contextlib.suppress(OSError):
            theirs.shutdown(socket.SHUT_RDWR)
        theirs.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield peer
    finally:
        ours.close()
        thread.join(20)


def outcome(act: Callable[[Enemy], None], *values: Any, seconds: float = 20.0) -> Any:
    """What a request to this other end gives: a value, or the exception as it is."""
    with against(act, seconds) as peer:
        try:
            return peer.ask("name", *values)
        except Exception as error:  # noqa: BLE001  (any of them only fails the test)
            return error
        except Gone as error:
            return error


def replying(tree: Any, *buffers: bytes) -> Callable[[Enemy], None]:
    """Somebody who replies this to everything."""

    def act(enemy: Enemy) -> None:
        while True:
            enemy.hear()
            enemy.say(tree, *buffers)

    return act


def told(**more: Any) -> dict[str, Any]:
    """An object as a reply describes it."""
    return {"n": 1, "k": "object", "type": "T", "dunders": [], **more}


REPLIES: list[Any] = [
    *([], 1, None, "x", {}, {"r": {}}, {"r": ["?"]}, {"r": ["R", 0]}, {"r": ["R", 99]}),
    *({"c": 1}, {"c": [1]}, {"c": [[0, ["L"]]]}, {"c": [[-1, ["L", 1]]]}, {"c": [["a", 1]]}),
    *({"r": ["Y", 1]}, {"r": ["Y", "x"]}, {"r": ["Y", ["L"]]}, {"r": ["Y"]}),
    *({"r": ["U", 0, 0]}, {"r": ["U", -1, 0]}, {"r": ["U", 0, -1]}, {"r": ["U", 9, 9]}),
    *({"r": ["X", 0]}, {"r": ["A", "float32", [2], 0]}, {"r": ["A", "object", [1], 0]}),
    *({"r": ["DT", "object"]}, {"r": ["DD", 5, 1, 2]}, {"r": ["H", 1]}, {"r": ["H", {}]}),
    *({"r": ["H", told(n="x", k=5, type=7, dunders=5)]}, {"r": ["H", told(public="os:system")]}),
    *({"r": ["H", told(k="class", error=["BaseException", "Gone"])]},),
    *({"r": ["H", told(k="class", error={"type": "E", "kinds": ["ExceptionGroup"]})]},),
    *({"r": ["H", told(k="module")]}, {"r": ["H", told(k="module", base="builtins:eval")]}),
    *({"r": ["O", "Raised", ["L"], ["L"]]}, {"r": ["O", "Opaque", 1, 2]}),
    *({"e": 1}, {"e": {}}, {"e": {"yours": 1}}, {"e": {"yours": ["L"]}}, {"e": None}),
    *({"e": {"kinds": ["KeyboardInterrupt"], "type": "K", "text": "", "args": [], "id": 1}},),
    *({"e": {"kinds": ["SystemExit"], "type": "SystemExit", "text": "", "args": [], "id": 1}},),
    *({"e": {"kinds": ["UnicodeDecodeError"], "type": "X", "text": "", "args": [], "id": 1}},),
    *({"e": {"kinds": ["ExceptionGroup"], "type": "a\0b", "text": "", "args": [], "id": 1}},),
    *({"used": ["torch", "x"], "r": 1}, {"used": 7, "r": 1}, {"drop": 5}, {"drop": [["L"]]}),
    *({"drop": [0, -1, 10**30, None]}, {"t": 1, "r": 1}, {"t": {"m": 1}}, {"t": {"m": [[1]]}}),
    *({"t": {"kids": [[1, 1, []]]}}, {"t": {"mode": [[0, ["L"], 1]]}}, {"x": [1]}, {"x": 1}),
    *({"graph": 1, "r": 1}, {"graph": "x", "x": [], "r": 1}, {"graph": ["L"], "x": [], "r": 1}),
    *({"c": [[0, 5]]}, {"c": [[0]]}, {"c": [[0, ["L"], 1]]}, {"e": {"yours": {}}}),
    *({"c": [[0, ["D", 1, 2]]]}, {"c": [[0, ["DQ", None, 1]]]}, {"c": [[0, ["BA", 0]]]}),
    *(
        {"r": ["DQ", -1]},
        {"r": ["DQ", True]},
        {"r": ["DQ", 2**70]},
        {"r": ["DD", 5]},
        {"c": [[0, []]]},
    ),
    *({"r": ["DD", True, 1, 2]}, {"r": ["DD"]}, {"r": ["BA"]}, {"c": [[0, ["L", ["DD", 5]]]]}),
    *({"r": ["FR", 1, 0]}, {"r": ["DC", "zz"]}, {"r": ["TS", 2**62, 2**62]}, {"r": ["GEN", 5]}),
]


@pytest.mark.parametrize("tree", REPLIES, ids=lambda tree: json.dumps(tree)[:60])
def test_a_reply_of_any_form_gives_plain_values_or_fails_the_test(tree: Any) -> None:
    got = outcome(replying(tree), [1, 2])
    plain = got in (None, 1) or got == [1, 2]
    assert plain or remote_of(got) is not None or isinstance(got, Exception | Gone | type), got
    assert not isinstance(got, KeyboardInterrupt | SystemExit)
    if isinstance(got, Exception):
        assert isinstance(got, WireError) or hasattr(got, "raised"), got
    if isinstance(got, type):
        assert issubclass(got, Exception)


HELD_NODES: list[list[Any]] = [
    *(["L", 5], ["D", 5, 5], ["S", 5], ["DQ", None, 5], ["CN", 5, 5], ["OD", 5, 5]),
    *(["DD", None, 5, 5], ["BA", 0], ["A", "uint8", [1], 0]),
]


@pytest.mark.parametrize("node", HELD_NODES, ids=lambda node: node[0])
def test_a_holder_is_changed_into_none_of_another_kind(node: Any) -> None:
    tags = {"deque": "DQ", "Counter": "CN", "OrderedDict": "OD", "defaultdict": "DD"}
    tags |= {"bytearray": "BA", "list": "L", "dict": "D", "set": "S"}
    for value in [*holders(), [1], {"a": 1}, {1}]:
        before = list(value)
        got = outcome(replying({"c": [[0, node]], "r": 1}, b"\5"), value)
        if tags[type(value).__name__] == node[0]:
            assert got == 1
            assert list(value) == [5]
        else:
            assert isinstance(got, WireError)
            assert list(value) == before


ERRORS: list[dict[str, Any]] = [
    {"family": 5},
    {"family": [5]},
    {"family": [["A", [0]]]},
    {"family": [["A", [-1]], ["B", []]]},
    {"family": [["A", [5]]]},
    {"family": [["A", ["builtins:KeyError"] * 6]]},
    {"family": [["A", ["builtins:KeyError", "builtins:KeyError"]]]},
    {"family": [["A", ["builtins:OSError", "builtins:SyntaxError"]]]},
    {"family": [["A", ["builtins:LookupError", "builtins:KeyError"]]]},
    {"family": [["A", ["builtins:eval", "builtins:SystemExit", "os:system", None, []]]]},
    {"family": [["a\0b", []]]},
    {"family": [[["L"], []]]},
    {"family": [[f"A{n}", []] for n in range(30)]},
    {"home": "autograder.bridge.line:Gone"},
    {"home": "autograder.bridge.wire:WireError"},
    {"home": "builtins:KeyboardInterrupt"},
    {"home": "builtins:ExceptionGroup"},
    {"home": "__main__:AssertionError"},
    {"home": "json:decoder.JSONDecodeError"},
    {"home": 5},
    {"kinds": 5},
    {"carries": {"raised": 1, "through": 1, "__class__": 5, "args": 5, "with_traceback": 1}},
    {"carries": {"a": ["L"], "b" * 200: 1, "c": "x" * 10**5}},
    {"carries": 5},
]


@pytest.mark.parametrize("more", ERRORS, ids=lambda more: repr(more)[:60])
def test_lies_about_an_exception_give_an_exception(more: dict[str, Any]) -> None:
    error = {"id": 1, "type": "E", "kinds": ["ValueError"], "text": "t", "args": ["t"], **more}
    got = outcome(replying({"e": error}))
    assert isinstance(got, WireError if more == {"kinds": 5} else Exception)
    assert not isinstance(got, Gone | KeyboardInterrupt | SystemExit)
    if not isinstance(got, WireError):
        assert isinstance(raised_of(got), Raised)
        assert isinstance(got, ValueError) or more.keys() != {"carries"}
        assert got.__class__ is type(got)
        assert len(str(getattr(got, "c", ""))) < 5000
    kind = outcome(replying({"r": ["H", told(k="class", error=error)]}))
    assert isinstance(kind, WireError) or issubclass(kind, BaseException)
    assert isinstance(kind, WireError) or not issubclass(kind, Gone)


def test_classes_of_exceptions_made_without_end_are_bounded() -> None:
    def act(enemy: Enemy) -> None:
        for n in range(700):
            enemy.hear()
            family = [[f"E{n}", ["builtins:ValueError"]]]
            error = {"id": 1, "type": "E", "kinds": [], "text": "", "args": [], "family": family}
            enemy.say({"e": error})

    with against(act) as peer:
        for _ in range(700):
            with pytest.raises(ValueError):
                peer.ask("name")
        assert len(peer.errors.made) <= 500


PUBLIC = [
    *("os:system", "builtins:eval", "builtins:open", "builtins:getattr", "builtins:__import__"),
    *("builtins:type", "builtins:object", "builtins:print", "torch:load", "torch.hub:load"),
    *("torch:ops", "torch.utils.cpp_extension:load", "numpy:load", "sys:modules", "math:sqrt"),
    *("builtins:Exception.__init__.__globals__", "torch.nn:Module.__init__.__globals__"),
    *("torch.nn.modules.module:torch", "torch.nn.functional:torch", "torch:_inductor", ":", ""),
    *(
        "torch.nn:Module.register_forward_hook",
        "numpy.f2py:main",
        "collections:OrderedDict.fromkeys",
    ),
    *(
        "builtins:str.format",
        "operator:attrgetter",
        "torch.nn.modules.module:warnings",
        "nowhere:x",
    ),
    *("builtins:__build_class__", "torch.nn.init:_no_grad_fill_", "torch.nn:__builtins__"),
]


@pytest.mark.parametrize("name", PUBLIC)
def test_an_answer_can_name_nothing_that_does_something(name: str) -> None:
    import torch  # noqa: F401  (its names are known here)

    for tree in (["PUB", name], ["H", told(public=name)], ["DD", ["PUB", name]]):
        got = outcome(replying({"r": tree}))
        if remote_of(got) is not None:
            assert type(got).__class__ is type
        else:
            assert isinstance(got, Exception), (tree, got)


READY = """
import collections, functools, math, numpy as np, operator, torch
count, Number, Whole, Kind = collections.Counter, np.int64, np.integer, np.dtype
area, mean, size, act, first = math.prod, np.mean, len, torch.relu, operator.itemgetter(0)
power, longest, lib = functools.partial(pow, 2), max, math
table = {"f": math.sqrt, "kinds": [int, np.float32]}
grouped = collections.defaultdict(collections.Counter, a=collections.Counter("aa"))
"""


def test_a_ready_function_or_class_can_be_the_answer(answer: Any) -> None:
    import torch

    names = answer(READY)
    names._peer.policy = Guard()
    assert names.count("aab") == {"a": 2, "b": 1}
    assert isinstance(names.count("a"), names.count)
    assert names.Number(3) == 3
    assert names.Number is np.int64
    assert isinstance(names.Number(3), names.Whole)
    assert not isinstance(3, names.Whole)
    assert names.Kind("int8") == np.dtype("int8")
    assert names.area([2, 3]) == 6
    assert names.mean([1, 3]) == 2
    assert names.size([1]) == 1
    assert names.first([5, 6]) == 5
    assert names.power(3) == 8
    assert names.longest([1, 2], key=of_tests("def f(x): return -x")["f"]) == 1
    assert names.lib.sqrt(4) == 2
    assert names.table["f"](9) == 3
    assert names.table["kinds"] == [int, np.float32]
    assert names.grouped["b"] == {}
    x = torch.tensor([-1.0, 2.0], requires_grad=True)
    names.act(x).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [0, 1]


@pytest.mark.parametrize("name", ["os:system", "builtins:eval", "numpy:load", "builtins:type", 5])
def test_a_class_of_an_answer_has_no_twin_that_is_not_public(name: Any) -> None:
    got = outcome(replying({"r": ["H", told(k="class", twin=name, named=["A", ["x"]])]}))
    assert remote_of(got) is not None
    assert not isinstance(3, got)


FAKES = [
    *("torch.nn:Parameter", "torch.nn:Buffer", "torch.nn.parameter:UninitializedParameter"),
    *("torch.nn.parameter:UninitializedBuffer", "torch:Tensor", "torch._C:TensorBase"),
    *("torch:Size", "torch:dtype", "torch:device", "torch:Generator", "torch:UntypedStorage"),
    *("torch:FloatStorage", "torch.nn.utils.rnn:PackedSequence", "torch.nn:Module"),
    *("torch.nn:Linear", "torch:ScriptObject", "torch._subclasses.fake_tensor:FakeTensor"),
    *("torch.fx:GraphModule", "torch.jit:ScriptModule", "numpy:ndarray", "numpy:float64"),
    *("builtins:int", "builtins:float", "builtins:bool", "builtins:str", "builtins:list"),
    *("builtins:tuple", "builtins:dict", "builtins:type", "collections:Counter"),
]


@pytest.mark.parametrize("name", FAKES)
def test_a_stand_in_passes_for_nothing_that_has_a_memory_of_its_own(name: str) -> None:
    import torch

    got = outcome(replying({"r": ["H", told(public=name)]}))
    assert remote_of(got) is not None
    assert got.__class__ is type(got)
    assert not isinstance(got, torch.Tensor | torch.nn.Module | int | float | tuple | np.ndarray)
    for use in (torch.isfinite, torch.relu, torch.numel, lambda x: torch.stack([x, x])):
        with pytest.raises(TypeError):
            use(got)


@pytest.mark.parametrize("name", ["torch.nn:Parameter", "torch.fx:GraphModule", "torch:Tensor"])
def test_an_answer_gives_no_class_that_c_trusts_or_that_makes_code(name: str) -> None:
    import torch  # noqa: F401

    assert isinstance(outcome(replying({"r": ["PUB", name]})), WireError)


def test_an_optimiser_a_data_set_and_an_exception_may_be_passed_for() -> None:
    import torch

    for name, kind in (
        ("torch.optim:SGD", torch.optim.Optimizer),
        ("torch.utils.data:Dataset", torch.utils.data.Dataset),
        ("builtins:KeyError", LookupError),
    ):
        assert isinstance(outcome(replying({"r": ["H", told(public=name)]})), kind)


@pytest.mark.parametrize("seed", [1, 2])
def test_the_trusted_end_outlives_any_message(seed: int) -> None:
    command = [sys.executable, "-W", "ignore", "-X", "faulthandler", "-m", "tests.line_fuzz"]
    ended = subprocess.run([*command, str(seed), "1000"], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr[-2000:]
    assert json.loads(ended.stdout)["peak_mb"] < 2000


GIVEN = """
class Secret:
    hidden = {"key": 41}
    def __init__(self): self.open = 1; self._closed = 2
    def ask(self): return 5
def function(x=1): return x
thing = Secret()
numbers = iter([1, 2])
log = []
"""
KINDS_GIVEN = (object, type, types.FunctionType, types.MethodType, types.GeneratorType)
WAYS_OUT = [
    *("_closed", "__dict__", "__globals__", "__closure__", "__self__", "__func__", "gi_frame"),
    *("func_globals", "f_globals", "tb_frame", "__wrapped__", "__builtins__", "__module__"),
]
NAMES = sorted({name for kind in KINDS_GIVEN for name in dir(kind)} | {*WAYS_OUT})
FOUND_TYPES = (
    *("Secret", "method", "function", "Linear", "list_iterator", "generator"),
    "builtin_function_or_method",
)


def test_no_attribute_leads_out_of_what_was_handed_over() -> None:
    import torch
    from torch import nn

    tests = of_tests(GIVEN)
    layer = nn.Linear(2, 2)
    optimiser = torch.optim.SGD(layer.parameters(), lr=1)
    handed = [tests["thing"], tests["Secret"], tests["function"], tests["thing"].ask]
    handed += [tests["numbers"], tests["log"].append, (n for n in [1]), layer, optimiser]
    names = [*NAMES, *dir(layer), *(n for n in dir(optimiser) if n.startswith("_"))]
    names = list(dict.fromkeys(names))
    heard: list[tuple[Any, Any, Any]] = []

    def act(enemy: Enemy) -> None:
        asked = enemy.hear()
        numbers = sorted({told["n"] for told in _found(asked)})
        for number in numbers:
            for place, name in enumerate(names):
                change = ("put", ["T", 1]) if place % 2 else ("remove", ["T"])
                for op, values in (("get", ["T"]), change):
                    enemy.say({"op": op, "p": [number, name], "v": values})
                    heard.append((op, name, enemy.hear()))
                if name.startswith("_") and name not in ("__call__",):
                    enemy.say({"op": "call", "p": [number, name], "v": ["T", ["T"], ["D"]]})
                    heard.append(("call", name, enemy.hear()))
            for op in ("copy", "vjp", "ask", "nonsense", None, 5):
                for plain in ([number], [], ["run"], [number, {}], 7, [None, None]):
                    enemy.say({"op": op, "p": plain, "v": ["T"]})
                    heard.append((op, plain, enemy.hear()))
        enemy.say({"r": 1})

    before = [parameter.detach().clone() for parameter in layer.parameters()]
    assert outcome(act, handed) == 1
    assert len(heard) > 3000
    changes = ("put", "remove", "vjp", "ask")
    kept = [one for one in heard if "e" not in one[2] and one[2].get("r") != YOURS]
    done = {(op, name) for op, name, _ in kept if op in changes}
    assert done <= {("put", "in_features"), ("put", "out_features")}  # settings of the layer
    for op, name, reply in heard:
        if "e" in reply or not isinstance(name, str) or reply.get("r") == YOURS:
            continue
        is_text = name == "__doc__" and isinstance(reply["r"], str | None)
        assert not name.startswith("_") or op == "call" or is_text, (op, name, reply)
        for inner in _found(reply.get("r")):
            assert inner["type"] in FOUND_TYPES, (name, inner)
    assert vars(tests["thing"]) == {"open": 1, "_closed": 2} and not vars(tests["function"])
    assert tests["Secret"].hidden == {"key": 41}
    assert not layer._forward_hooks
    assert all(a.equal(b) for a, b in zip(before, layer.parameters(), strict=True))


def _found(node: Any) -> Iterator[dict[str, Any]]:
    """All objects that a tree hands over."""
    if isinstance(node, dict):
        node = [["H", node], *node.values()] if "n" in node and "k" in node else [*node.values()]
    if isinstance(node, list):
        if len(node) == 2 and node[0] == "H" and isinstance(node[1], dict):
            yield node[1]
            node = list(node[1].values())
        for part in node:
            yield from _found(part)


def test_a_forged_number_gives_an_object_that_was_handed_over_or_nothing() -> None:
    tests = of_tests(GIVEN)
    for number in (0, -1, 2, 3, 10**9, True, None, "1", 1.5, ["L"]):
        got = outcome(replying({"r": ["Y", number]}), tests["thing"])
        assert got is tests["thing"] or isinstance(got, Exception)


STATES: list[Any] = [
    *([["torch", 0]], [["python", 1]], [["numpy", 2]], [["numpy", 3]], [["torch", 1]]),
    *([["python", 0]], [["numpy", 0]], [["torch", 9]], 5, [[]], [["other", 0]]),
]


def test_the_numbers_that_a_test_draws_cannot_be_chosen_by_an_answer() -> None:
    import torch

    zeros = torch.get_rng_state()
    zeros[24:-16] = 0
    python = struct.pack("!625I?d", *[0] * 624, 1, False, 0.0)
    numpy = b"\0" * 624 * 4 + struct.pack("!q?d", 10**6, False, 0.0)
    numpy_fine = b"\0" * 624 * 4 + struct.pack("!q?d", 5, False, 0.0)

    def act(enemy: Enemy) -> None:
        enemy.hear()
        for states in STATES:
            asked = {"op": "call", "p": [1, None], "v": ["T", ["T"], ["D"]], "rng": states}
            enemy.say(asked, bytes(zeros.numpy().tobytes()), python, numpy, numpy_fine)
            enemy.hear()
        enemy.say({"r": 1})

    before = generators()
    assert outcome(act, of_tests("def f(): return 1")["f"]) == 1
    assert generators() == before


def test_noise_on_the_line_ends_in_time() -> None:
    draw = random.Random(7)
    for _ in range(60):
        noise = draw.randbytes(draw.randrange(1, 400))

        def act(enemy: Enemy, noise: bytes = noise) -> None:
            enemy.hear()
            enemy.line.sendall(noise)

        assert isinstance(outcome(act), Exception | Gone)


def test_flipped_bits_of_a_real_reply_end_in_a_value_or_a_failure() -> None:
    draw = random.Random(8)
    tree = {"r": ["L", 1, "ab", ["T", ["B", 0]], ["H", told(dunders=["__len__"])]]}
    tree |= {"c": [[0, ["L", 5]]], "used": ["torch"], "drop": [3]}
    tree |= {"t": {"m": [], "kids": []}, "x": []}
    raw = b"".join(bytes(piece) for piece in Frame(tree, [b"xyz"]).pieces())
    for _ in range(300):
        broken = bytearray(raw)
        for _ in range(draw.randrange(1, 4)):
            broken[draw.randrange(8, len(broken))] ^= 1 << draw.randrange(8)

        def act(enemy: Enemy, broken: bytes = bytes(broken)) -> None:
            enemy.hear()
            enemy.line.sendall(broken)

        got = outcome(act, [1])
        assert got is None or isinstance(
            got, list | tuple | str | int | bytes | dict | set | Exception | Gone
        )


@pytest.mark.parametrize(
    "act",
    [
        lambda enemy: enemy.hear(),
        lambda enemy: enemy.line.close(),
        lambda enemy: enemy.line.sendall(HEAD.pack(100, 0) + b"[1"),
        lambda enemy: enemy.line.sendall(HEAD.pack(2**31, 2**31)),
    ],
    ids=["leaves", "closes", "leaves midway", "too long"],
)
def test_an_end_that_goes_is_gone(act: Any) -> None:
    got = outcome(act)
    assert isinstance(got, Gone)
    assert got.kind in ("died", "broken")


def test_an_end_that_keeps_silent_or_dawdles_runs_out_of_time() -> None:
    stop = threading.Event()

    def silent(enemy: Enemy) -> None:
        stop.wait(30)

    def dripping(enemy: Enemy) -> None:
        for byte in HEAD.pack(1000, 0) + b" " * 1000:
            enemy.line.sendall(bytes([byte]))
            if stop.wait(0.2):
                return

    def asking(enemy: Enemy) -> None:
        while not stop.is_set():
            enemy.say({"op": "ask", "p": ["x"], "v": ["T"]})
            enemy.hear()

    def deaf(enemy: Enemy) -> None:
        while not stop.is_set():
            enemy.say({"op": "ask", "p": ["x"], "v": ["T"]})

    for act in (silent, dripping, asking, deaf):
        stop.clear()
        with against(act, seconds=0.7) as peer:
            with pytest.raises(Gone) as caught:
                peer.ask("name", b"x" * 5_000_000)
            stop.set()
        assert caught.value.kind == "timeout", act


def test_requests_within_requests_come_to_an_end() -> None:
    def act(enemy: Enemy) -> None:
        enemy.hear()
        while True:  # each is answered by a question of the test's own function
            enemy.say({"op": "call", "p": [1, None], "v": ["T", ["T"], ["D"]]})
            enemy.hear()

    tests = of_tests("def f(): return peer.ask('name')")
    with against(act, seconds=1.5) as peer:
        tests["peer"] = peer
        with pytest.raises((Exception, Gone)):
            peer.ask("name", tests["f"])


def test_an_answer_copies_objects_of_a_tests_class_and_names_its_functions(answer: Any) -> None:
    names = answer(
        "import copy\ndef twice(x): return copy.deepcopy(x)\n"
        "def called(f): return f.__name__, f.__qualname__\n"
    )
    made = of_tests(
        "class Item:\n    def __init__(self): self.parts = [1]\n    def method(self): pass\n"
        "def function(): pass\nitem = Item()"
    )
    copied = names.twice(made["item"])
    assert type(copied) is made["Item"]
    assert copied is not made["item"]
    assert copied.parts == [1] and copied.parts is not made["item"].parts
    assert names.called(made["function"]) == ("function", "function")
    assert names.called(made["item"].method) == ("method", "Item.method")
    with pytest.raises(Exception, match="may not"):
        names.twice(iter([1]))


MEMO = """
import functools
def memo(f):
    known = {}
    @functools.wraps(f)
    def run(n):
        if n not in known:
            known[n] = f(n)
        return known[n]
    return run
def endless(f): return f(endless)
def deeper(n): return 0 if n == 0 else 1 + deeper(n - 1)
"""


def test_a_recursive_function_of_the_test_is_decorated_by_the_answer(answer: Any) -> None:
    names = answer(MEMO)

    @names.memo
    def fib(n: int) -> int:
        return n if n < 2 else fib(n - 1) + fib(n - 2)

    before = sys.getrecursionlimit()
    assert fib(150) == 9969216677189303386214405760200
    assert sys.getrecursionlimit() == before
    assert names.deeper(800) == 800


def test_calls_into_each_other_without_end_are_an_error_and_nothing_more(answer: Any) -> None:
    names = answer(MEMO)

    def back(g: Any) -> Any:
        return g(back)

    with pytest.raises(RecursionError):
        names.endless(back)
    assert names.deeper(3) == 3


OWN = """
import collections, enum, typing
from enum import IntEnum
class Row(list):
    def total(self): return sum(self)
class Board(list):
    def width(self): return len(self[0])
class Bag(dict):
    def __missing__(self, key): return 0
    def more(self, key): self[key] += 1
class Point(typing.NamedTuple):
    x: int
    y: int
    def older(self): return Point(self.x + 1, self.y)
class Way(str, enum.Enum):
    NORTH = "N"
    EAST = "E"
class Level(IntEnum):
    LOW = 1
    HIGH = 2
class Queue(collections.deque):
    def waiting(self): return len(self)
class Seen(set):
    def has(self, x): return x in self
HELD = []
def row(): HELD.append(Row([1, 2])); return HELD[-1]
def is_held(x): return x is HELD[-1]
def thrice(): return [Row([0])] * 3
ONE = Row()
def same(): return ONE
def push(x, part): x.append(part)
def total(x): return x.total()
def board(): return Board([Row([0] * 2), Row([0] * 2)])
def width(b): return b.width()
def put(b, i, j): b[i][j] = 1; return b[i].total()
def bag(): return Bag()
def more(b, key): b.more(key); return b[key]
def queue(): return Queue()
def join(q, who): q.append(who); return q.waiting()
def seen(): return Seen()
def see(s, x): s.add(x); return s.has(x)
def point(): return Point(1, 2)
def points(): return [Point(n, n) for n in range(3)]
def older(p): return p.older()
def way(): return Way.NORTH
def turned(w): return Way.EAST if w.name == 'NORTH' else Way.NORTH
def levels(): return [[Level.LOW, Level.HIGH]]
def is_low(x): return x is Level.LOW
def plain(): HELD.append([1, [2]]); return HELD[-1]
def change_held(): HELD[-1].append(0)
"""


@pytest.fixture(params=[True, False], ids=["value due", "anything"])
def own(answer: Any, request: pytest.FixtureRequest) -> Iterator[Any]:
    """Functions whose objects are of classes of the answer's own, with and without a value due."""
    names = answer(OWN)
    peer = remote_of(names.row).peer  # type: ignore[union-attr]
    peer.protect = True
    if request.param:
        found = (
            "row",
            "board",
            "thrice",
            "same",
            "bag",
            "queue",
            "seen",
            "point",
            "points",
            "way",
            "levels",
            "plain",
        )
        more = ("older", "turned")
        peer.expected = [(one, "value") for one in (*found, *more)]
    with peer.recording():
        assert (type(names.row()) is list) is request.param
        yield names


def test_what_an_answers_class_makes_one_object_is_one_where_the_test_runs(own: Any) -> None:
    rows = own.thrice()
    rows[0][0] = 1
    assert rows == [[1], [1], [1]]
    board = own.same()
    again = own.same()
    if type(board) is list:  # else it is an object that is asked
        assert board is again
    board.append(1)
    assert again == [1]


def test_an_object_of_an_answers_class_comes_back_to_it_as_that_very_object(own: Any) -> None:
    row = own.row()
    assert own.is_held(row)
    assert own.total(row) == 3
    own.push(row, 4)
    assert row == [1, 2, 4]
    assert own.total(row) == 7
    row.append(10)
    assert own.total(row) == 17
    row[:] = [5]
    assert own.total(row) == 5
    assert own.is_held(row)


def test_objects_in_each_other_come_back_as_well(own: Any) -> None:
    board = own.board()
    assert own.width(board) == 2
    assert own.put(board, 0, 1) == 1
    assert board == [[0, 1], [0, 0]]
    board[1][0] = 5
    assert own.put(board, 1, 1) == 6
    assert board == [[0, 1], [5, 1]]
    assert own.width(board) == 2


def test_tables_queues_and_sets_of_an_answers_classes_come_back(own: Any) -> None:
    bag = own.bag()
    assert [own.more(bag, "a"), own.more(bag, "a"), own.more(bag, "b")] == [1, 2, 1]
    assert bag == {"a": 2, "b": 1}
    bag["b"] = 7
    del bag["a"]
    assert [own.more(bag, "b"), own.more(bag, "a")] == [8, 1]
    queue = own.queue()
    assert [own.join(queue, "x"), own.join(queue, "y")] == [1, 2]
    assert list(queue) == ["x", "y"]
    seen = own.seen()
    assert own.see(seen, 3)
    assert seen == {3}


def test_values_of_an_answers_classes_come_back_and_are_plain_where_the_test_runs(own: Any) -> None:
    import copy

    point = own.point()
    assert point == (1, 2)
    assert point.x == 1
    assert own.older(point) == (2, 2)
    assert own.older(own.older(point)) == (3, 2)
    assert [own.older(p) for p in own.points()] == [(1, 0), (2, 1), (3, 2)]
    assert own.way() == "N"
    assert own.turned(own.way()) == "E"
    assert own.turned(own.turned(own.way())) == "N"
    ((low, high),) = own.levels()
    assert low + high == 3
    assert own.is_low(low)
    assert not own.is_low(high)
    assert copy.deepcopy(own.points()) == own.points()


def test_a_list_of_values_of_an_answers_class_comes_back_and_takes_more(own: Any) -> None:
    rows = own.levels()
    own.push(rows[0], 5)
    own.push(rows, [])
    assert rows == [[1, 2, 5], []]
    assert own.is_low(rows[0][0])
    own.push(rows[0], rows[0][1])
    assert rows == [[1, 2, 5, 2], []]


def test_what_an_answer_has_changed_since_does_not_come_back(own: Any) -> None:
    held = own.plain()
    assert own.is_held(held)
    held[1].append(3)
    assert own.is_held(held)
    own.change_held()
    assert held == [1, [2, 3]]
    assert not own.is_held(held)
    assert held == [1, [2, 3]]


def test_what_an_answer_has_made_it_may_change_and_what_the_test_has_made_it_may_not(
    own: Any,
) -> None:
    ours, theirs = [1], own.plain()
    own.push(ours, 2)
    own.push(theirs, 2)
    own.push(theirs[1], 5)
    assert ours == [1]
    assert theirs == [1, [2, 5], 2]
    mixed = [theirs]
    own.push(mixed, 3)
    assert mixed == [theirs]


def test_an_object_that_is_only_itself_is_handed_over_and_back(answer: Any) -> None:
    names = answer(
        "def same(x): return x\n"
        "def find(items, x, default): return next((i for i in items if i == x), default)\n"
    )
    mark, other = object(), object()
    assert names.same(mark) is mark
    assert names.find([1, 2], 3, mark) is mark
    assert names.find([1, other], mark, None) is None
    assert names.find([1, other], other, None) is other


def test_a_class_of_flags_is_gone_through_like_one_of_names(answer: Any) -> None:
    names = answer(
        "import enum\nclass Way(enum.Enum):\n    UP = 1\n    DOWN = 2\n"
        "class Flags(enum.Flag):\n    UP = 1\n    DOWN = 2\n"
    )
    for kind in (names.Way, names.Flags):
        assert len(kind) == 2
        assert [one.name for one in kind] == ["UP", "DOWN"]
        assert kind["UP"] is kind.UP
        assert kind.DOWN in kind
        assert isinstance(kind.UP, kind)

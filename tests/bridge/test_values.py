"""Plain values, arrays and holders go there and back."""

import collections
import math
from typing import Any

import numpy as np
import pytest

from autograder.bridge.wire import Decoder, Encoder, Frame
from tests.bridge.ends import (
    holders,
    of_tests,
    protected,
)


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


def test_what_says_that_it_equals_everything_equals_its_value_alone(answer: Any) -> None:
    got = answer(ALWAYS_EQUAL).made
    assert got == ["a", 3, 0.5, [1], {"a": 1}]
    for value, other in zip(got, ["b", 4, 0.25, [2], {"a": 2}], strict=True):
        assert value != other
        assert other != value
        assert isinstance(value, type(other))


def test_subclasses_of_plain_values_that_add_nothing_arrive_plain(answer: Any) -> None:
    kinds = [str, int, float, list, dict]
    made = "".join(f"class My{one.__name__}({one.__name__}): pass\n" for one in kinds)
    got = answer(
        f"{made}made = [Mystr('a'), Myint(3), Myfloat(0.5), Mylist([1]), Mydict(a=1)]"
    ).made
    assert [type(value) for value in got] == kinds
    assert got == ["a", 3, 0.5, [1], {"a": 1}]


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
import math
def change(a, b, c, d, e):
    a.rotate(1); a.append([9]); b.update('ab'); c.move_to_end('x'); d['new'] += 1; e[:2] = b'zzz'
    return a
def freeze(d):
    d.default_factory = None
    return d
def look(*given): return [list(one) for one in given]
"""


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


def test_a_number_that_is_none_is_the_one_that_has_a_name() -> None:
    frame = Frame()
    values = [math.nan, np.nan, float("nan")]
    found = Decoder(frame).value(Encoder(frame).node(values))
    assert found[:2] == values[:2] and found[0] is math.nan and found[1] is np.nan
    assert found[2] != found[2] and found[2] is not math.nan

"""Values that a test shares with an answer."""

import collections
import contextlib
import copy
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch

from autograder.bridge.wire import WireError
from tests.bridge.ends import (
    of_tests,
    outcome,
    protected,
    replying,
)

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


def test_an_answer_changes_later_what_it_holds_as_in_one_process(answer: Any) -> None:
    with keeper(answer, [1]) as (names, kept):
        handed = [1]
        kept.set(handed)
        given = kept.give()
        assert given is handed
        kept.put(2)
        assert given == [1, 2] and names._peer.changed_ours
        given.append(5)
        assert kept.look() == "[1, 2, 5]"
        kept.put(6)
        given[0] = 7
        assert kept.look() == "[7, 2, 5, 6]" and given == [7, 2, 5, 6]
        kept.set(handed)
        kept.put(8)
        handed.clear()
        assert kept.look() == "[]"


LATER = [
    ([1, [2]], "x.append(3)"),
    ([1, [2]], "x[1].append(3)"),
    ([1, [2]], "x.insert(0, {'a': {5}})"),
    ([[1], [2]], "x.reverse()"),
    ([1, 2], "x.clear()"),
    ({"a": [1]}, "x.update(b=2); x['a'].append((3, 4))"),
    ({"a": 1, "b": 2}, "x.pop('a'); x['c'] = {}"),
    ({1, 2}, "x.add(3); x.discard(1)"),
    (collections.deque([1, 2], 2), "x.append(3)"),
    (collections.Counter("ab"), "x['a'] += 2; x['c'] = 1"),
    (collections.OrderedDict(a=1, b=2), "x.move_to_end('a')"),
    (collections.defaultdict(list, a=[1]), "x['b'].append(2); x['a'].append(3)"),
    ([torch.zeros(2), np.ones(2)], "x.append(torch.ones(1)); x.append(np.zeros(1))"),
]


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize(("value", "change"), LATER)
def test_a_later_change_of_any_kind_is_done_here(
    answer: Any, value: Any, change: str, place: int
) -> None:
    source = "class Later:\n    def __init__(self, *xs): self.xs = xs\n"
    source += "    def do(self, place, code):\n        import numpy as np, torch\n"
    source += "        exec(code, {'x': self.xs[place], 'np': np, 'torch': torch})"
    ours = [copy.deepcopy(value), copy.deepcopy(value)]
    names = answer(source)
    with names._peer.recording():
        kept = names.Later(*ours)
        for _ in "12":
            expected = copy.deepcopy(ours[place])
            with contextlib.suppress(KeyError):
                exec(change, {"x": expected, "torch": torch, "np": np})
            with contextlib.suppress(KeyError):
                kept.do(place, change)
            assert str(ours[place]) == str(expected) and type(ours[place]) is type(value)
    assert str(ours[1 - place]) == str(value)


def test_an_answer_changes_nothing_later_that_the_reference_does_not(answer: Any) -> None:
    names = protected(answer, SHARED, ())
    with names._peer.recording():
        kept = names.Keeper([1])
        handed = [1]
        kept.set(handed)
        kept.put(2)
        assert handed == [1]
        handed.append(5)  # as in one process, where it would come after what was put
        assert kept.look() == "[1, 2, 5]"
        kept.put(6)
        handed[0] = 7  # nobody knows what comes of both: the answer's own stays
        assert kept.look() == "[1, 2, 5, 6]" and handed == [7, 5]


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

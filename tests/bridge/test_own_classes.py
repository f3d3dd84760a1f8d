"""Objects of an answer's own classes, and functions of the test's that it wraps."""

import sys
from collections.abc import Iterator
from typing import Any

import pytest

from autograder.bridge.stand_ins import remote_of
from tests.bridge.ends import (
    OWN,
    of_tests,
)


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

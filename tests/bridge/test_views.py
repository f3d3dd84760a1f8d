"""Views of what a test handed over, held against one process; none can be forged."""

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from autograder.bridge import views
from autograder.bridge.wire import WireError
from tests.bridge.ends import against
from tests.bridge.torch_ends import (
    VIEWS,
)

HOWS = [
    *("x.detach()", "x[:]", "x.view(-1)", "x.T", "x[0]", "x[:, 1]", "x[1:, ::2]", "x.view(3, 2)"),
    *("x[None]", "x[0, 0]", "x.diagonal()", "x.data", "x.clone()", "x + 0", "x", "x.reshape(6)"),
    *("x.expand(5, 2, 3)", "x.numpy()[0]", "x.repeat(2, 1)"),
]


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("name", ["part", "inside", "of_dict", "fill"])
def test_a_view_of_a_tensor_is_one_here(both: Any, name: str, how: str) -> None:
    def use(of: Any, x: Any) -> Any:
        given = [{"w": x}] if name == "of_dict" else x
        got: Any = of(name)(given, how)
        if name in ("inside", "of_dict"):
            got = got["a"][0] if name == "inside" else got["w"]
        before = got.tolist()
        shares = isinstance(got, Tensor) and (
            got.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
        )
        if "expand" not in how and "numpy" not in how:
            got += 1
            x *= 2
            return before, got.tolist(), x.tolist(), shares, tuple(got.shape), got.stride()
        return before

    both(VIEWS, use, torch.arange(6.0).reshape(2, 3))


LAID: list[Tensor] = [
    torch.arange(6.0).reshape(3, 2).T,
    torch.arange(12.0).reshape(2, 6)[:, ::2],
    torch.arange(24.0).reshape(4, 6)[1:3, 2:5],
    torch.arange(6).reshape(1, 2, 3)[0],
    torch.arange(6.0).reshape(2, 3).requires_grad_(),
    nn.Parameter(torch.arange(6.0).reshape(2, 3)),
]


@pytest.mark.parametrize("ours", LAID, ids=lambda x: f"{tuple(x.stride())}{type(x).__name__}")
@pytest.mark.parametrize("how", ["x.detach()", "x.detach()[0]", "x.detach().T", "x.data[:, 1]"])
def test_whatever_the_layout_of_what_was_handed_over(both: Any, ours: Tensor, how: str) -> None:
    def use(of: Any, x: Any) -> Any:
        got = of("part")(x, how)
        got.mul_(3)
        return x.tolist(), got.tolist(), got.stride()

    both(VIEWS, use, ours)


def test_what_lies_between_the_entries_of_a_tensor_is_not_handed_over(both: Any) -> None:
    big = torch.arange(12.0).reshape(2, 6)
    spread = big[:, ::2]
    for start, shape, steps in ((0, [6], [1]), (1, [1], [1]), (0, [2, 3], [1, 1])):
        assert views.view(spread, [start, shape, steps, [6, 2]]) is None
    same = views.view(spread, [2, [2, 2], [6, 2], [6, 2]])
    assert same is not None
    assert torch.equal(same, spread[:, 1:])
    wide = torch.ones(3).expand(2, 3)
    assert views.view(wide, [0, [3], [1], [0, 1]]) is not None


AROUND = """
class Sub(np.ndarray): pass
KEPT = []
def rows(a, how): return eval(how)
def keep(a, how): KEPT.append(eval(how)); return KEPT[-1]
def look(): return [one.tolist() for one in KEPT]
"""


WAYS_ROUND = [
    *("list(a)", "list(a.view(Sub))", "[np.asarray(r).ravel() for r in a.view(np.matrix)]"),
    *(
        "[r.A1 for r in a.view(np.matrix)]",
        "list(a.view(np.matrix))",
        "[np.asarray(a.view(np.matrix))]",
    ),
    *("[a.view(np.recarray)]", "[r.view(np.recarray) for r in a]", "[a.view(Sub)]", "[a, a[0]]"),
    *("[t.numpy() for t in torch.from_numpy(a)]", "list(torch.from_numpy(a))", "[a.T, a.T[1:]]"),
    *("[np.frombuffer(memoryview(r), r.dtype) for r in a[:, None]]", "[torch.from_numpy(a)]"),
    *("[torch.from_numpy(a), a]", "[np.array(a), a + 0, np.array(a.view(np.matrix))]"),
]


@pytest.mark.parametrize("how", WAYS_ROUND)
@pytest.mark.parametrize("kind", [np.float64, np.int64])
def test_a_view_of_an_array_is_one_here_whatever_lies_between(
    both: Any, how: str, kind: Any
) -> None:
    def use(of: Any, a: Any) -> Any:
        got = of("rows")(a, how)
        got[0][0] = 9
        found = [a.tolist(), [one.tolist() for one in got]]
        a[...] = 5
        return [*found, [(one.tolist(), one.shape) for one in got]]

    both(AROUND, use, np.arange(6, dtype=kind).reshape(2, 3))


@pytest.mark.parametrize("how", ["list(a)", "[a.T]", "[np.asarray(a)]", "list(np.asarray(a))"])
@pytest.mark.parametrize("of", [np.asfortranarray, lambda a: a.view(np.matrix), np.array])
def test_whatever_the_order_or_class_of_what_was_handed_over(both: Any, how: str, of: Any) -> None:
    def use(name: Any, a: Any) -> Any:
        got = name("rows")(a, how)
        got[-1][...] = 9
        return a.tolist(), [one.tolist() for one in got]

    both(AROUND, use, of(np.arange(6.0).reshape(2, 3)))


@pytest.mark.parametrize("how", ["[a.numpy()]", "list(a.numpy())", "[a.T.numpy(), a[0]]"])
def test_an_array_in_the_memory_of_a_tensor_is_one_here(both: Any, how: str) -> None:
    def use(of: Any, a: Any) -> Any:
        got = of("rows")(a, how)
        got[0][...] = 9
        return a.tolist(), [one.tolist() for one in got]

    for ours in (torch.arange(6.0).reshape(2, 3), torch.arange(6).reshape(3, 2).T):
        both(AROUND, use, ours)


@pytest.mark.parametrize("how", ["a.view(Sub)", "a.view(np.matrix)", "a.copy().view(np.recarray)"])
def test_what_a_test_writes_to_an_array_of_another_class_is_seen_there(both: Any, how: str) -> None:
    def use(of: Any, a: Any) -> Any:
        got = of("keep")(a, how)
        got[0, 0] = 9
        return a.tolist(), of("look")()

    both(AROUND, use, np.arange(6.0).reshape(2, 3))


FORGED: list[Any] = [
    *([-1, [1], [1], [3, 1]], [0, [7], [1], [3, 1]], [6, [1], [1], [3, 1]], [5, [2], [1], [3, 1]]),
    *([0, [2], [6], [3, 1]], [0, [2], [-1], [3, 1]], [5, [2], [-1], [3, 1]], [0, [1], [1], [1, 3]]),
    *([0, [2], [2**62], [3, 1]], [2**63, [1], [1], [3, 1]], [0, [1], [1], [1]], [0, [1], [], []]),
    *([0, [0], [1], [3, 1]], [0, [-1], [1], [3, 1]], [0, [True], [1], [3, 1]], [0.0, [1], [1], []]),
    *([0, [1], [True], [3, 1]], [True, [1], [1], [3, 1]], ["0", [1], [1], [3, 1]], [0, 1, 1, 1]),
    *([0, [1] * 40, [1] * 40, [3, 1]], [0, [7], [0], [3, 1]], [0, [1], [1]], 5, "x", {"a": 1}),
]


@pytest.mark.parametrize("part", FORGED, ids=repr)
def test_a_view_of_what_a_tensor_does_not_hold_is_none(part: Any) -> None:
    ours = torch.zeros(12)[3:9].reshape(2, 3)
    with contextlib.suppress(ValueError, TypeError):
        assert views.view(ours, part) is None


CLAIMS: list[Any] = [
    *(1, [], [1], [[1], []], [[[1, 2]], []], [{}, {}], [[[0, ["K", 0], []]]], [[[1, 5, 5]], []]),
    *([[[1, ["K", 0], [part]]], []] for part in FORGED),
    *([[[1, ["K", place], []]], []] for place in (-1, 1, 2, 99, "x", None, [1], True, 2**70)),
    *([[[1, ["E", *key], []]], []] for key in ([], [0, 0], [1, 9], ["x", 1], [[1], 2], [1])),
    *([[[1, ["P", *key], []]], []] for key in ([0, 0, "x"], [1, 1, 1], [5, 5, 5], [[], 0, ""], [])),
    *([[[1, ["X", key], []]], []] for key in (0, 1, -1, "x")),
    *([[], [[entry, ["K", 0], []]]] for entry in (-1, 0, 9, "x", [1], None)),
    *([[], [[0, where, []]]] for where in ([], 1, ["X", 0], ["P", 0, 1, "weight"], ["?", 1])),
    [[[1, ["K", 0], [0, [2, 3], [3, 1], [3, 1]]]], []],
]


def claiming(claim: Any, node: Any, *entries: Any) -> Callable[[Any], None]:
    """An answer's end that gives this, and tells that of it."""

    def act(enemy: Any) -> None:
        while True:
            enemy.hear()
            tree = {"r": node, "c": [], "x": [*entries], "t": None, "as": claim}
            enemy.say(tree, *[np.full(6, 5, "float32").tobytes() for _ in entries])

    return act


@pytest.mark.parametrize("claim", CLAIMS, ids=repr)
def test_no_claim_changes_what_a_test_is_given(claim: Any) -> None:
    ours = torch.zeros(12)[3:9].reshape(2, 3)
    entry = ["float32", [2, 3], None, 0, 2, None]
    act = claiming(claim, ["X", 0], entry)
    with against(act) as peer, peer.recording(), contextlib.suppress(WireError):
        got = peer.ask("name", ours)
        assert got.tolist() == [[5] * 3] * 2
        got += 1
    assert ours.eq(0).all()
    for node, given in ((["L", 1], [1, 2]), (["D", "a", 1], {"b": 1}), (["L", True], [1])):
        with against(claiming([[[1, ["K", 0], []]], []], node)) as peer, peer.recording():
            got = peer.ask("name", given)
            assert got is not given


def test_a_value_that_was_there_before_lies_in_no_result(both: Any, monkeypatch: Any) -> None:
    ours = torch.zeros(2, 3)
    monkeypatch.setattr("autograder.judge.old.is_old", lambda value: value is ours)
    monkeypatch.setattr("autograder.judge.guard.is_old", lambda v: v is ours, raising=False)

    def use(of: Any, x: Any) -> Any:
        of("part")(x, "x[:]").add_(1)
        return True

    both(VIEWS, use, ours)
    assert ours.eq(0).all()

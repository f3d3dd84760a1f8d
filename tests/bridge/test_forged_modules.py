"""What is changed through a module of the other side's is noticed."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from autograder.bridge import dense
from autograder.bridge.wire import WireError
from autograder.isolation.fork_server import ForkServer
from tests.bridge.ends import against, outcome, replying
from tests.bridge.torch_ends import (
    FOUR,
    beside,
    entry,
    module,
    same_bits,
)


@pytest.fixture
def answer(open_fork_server: ForkServer) -> Iterator[Callable[[str], Any]]:
    """answer(source) runs it in a new process; its names there, and the same source run here."""
    yield from beside(open_fork_server)


def forging(*replies: Any) -> Any:
    """The other end gives these replies, one a request, each with a tensor's bytes."""

    def act(enemy: Any) -> None:
        for tree in replies:
            enemy.hear()
            enemy.say(tree, FOUR)

    return act


def test_a_parameter_of_the_test_is_not_changed_through_a_module_of_the_answer() -> None:
    ours = nn.Linear(2, 2, bias=False)
    before = ours.weight.detach().clone()
    news = {"m": [[0, 7, "weight", {"same": [1, 1, "weight"]}], [0, 7, "weight", entry([2, 2])]]}
    theirs = {"params": [["weight", ["X", 0]]]}
    again = {"r": module(7, params=[["weight", ["X", 0]]]), "x": [entry([2, 2], flags=7)]}
    shared = {"m": [[0, 7, "weight", {"same": [1, 1, "weight"]}]]}
    for last in ({"r": 1, "t": news}, again):
        first = {"r": module(7, **theirs), "x": [entry([2, 2], flags=7)]}
        with against(forging(first, {"r": 1, "t": shared}, last)) as peer:
            held = peer.ask("name")
            peer.ask("f", ours)
            assert held.weight is ours.weight
            peer.ask("f")
            assert torch.equal(ours.weight, before)
            assert held.weight is not ours.weight


def calling_back(*requests: dict[str, Any], entries: bytes = FOUR, **reply: Any) -> Any:
    """The other end sends these in the middle of a call, and then a reply."""

    def act(enemy: Any) -> None:
        enemy.hear()
        for tree in requests:
            enemy.say({"op": "get", "p": [0, "x"], "v": ["T"], **tree}, entries, entries)
            enemy.hear()
        enemy.say({"r": 1, **reply}, entries)

    return act


BORROWED = {"v": ["T", module(7, params=[["w", ["PS", 1, 1, "weight"]]])]}


FROM_LIST = {"v": ["T", module(7, params=[["w", ["PS", 1, 0, "0"]]])]}


ANEW = module(7, params=[["w", ["X", 0]]])


ONES = {"m": [[0, 7, "w", entry([2, 2], flags=7)]]}


WITH_GRADIENT = {"m": [[0, 7, "w", entry([2, 2], flags=7, grad=entry([2, 2], place=1))]]}


OTHERS: dict[str, tuple[Any, ...]] = {
    "entries": (BORROWED, {"drop": [1], "t": ONES}),
    "entries of a loose one": (FROM_LIST, {"drop": [0], "t": ONES}),
    "a gradient": (BORROWED, {"drop": [1], "t": WITH_GRADIENT}),
    "another shape": (BORROWED, {"drop": [1], "t": {"m": [[0, 7, "w", entry([4], flags=7)]]}}),
    "described anew": (
        BORROWED,
        {"drop": [1], "v": ["T", ANEW], "x": [entry([2, 2], flags=7)]},
    ),
}


@pytest.mark.parametrize("how", OTHERS)
def test_what_a_test_made_is_changed_through_no_module_of_the_answers_unnoticed(how: str) -> None:
    for protect in (False, True):
        ours: Any = nn.Linear(2, 2, bias=False)
        before, first = ours.weight.detach().clone(), ours.weight.data
        with against(calling_back(*OTHERS[how])) as peer:
            peer.protect = protect
            with peer.recording() as crossings:
                peer.ask("f", [ours.weight] if "loose" in how else ours)
        assert crossings[0].changed == ("Module",)
        assert peer.changed_ours
        if protect:
            assert torch.equal(ours.weight, before)
            assert torch.equal(first, before)
            assert ours.weight.grad is None


def test_nothing_is_written_where_a_module_of_the_answers_was_told_to_lie() -> None:
    ours: Any = nn.Linear(2, 2, bias=False)
    ours.weight.data.fill_(1.0)
    reply = {"r": module(8, params=[["w", ["X", 0]]]), "x": [entry([2, 2], flags=7)]}
    reply["as"] = [[], [[0, ["P", 0, 7, "w"], []]]]
    zeros = {"m": [[0, 8, "w", entry([2, 2], flags=7)]]}
    first, second = calling_back(BORROWED, **reply), calling_back(t=zeros, entries=bytes(16))

    def act(enemy: Any) -> None:
        first(enemy)
        second(enemy)

    with against(act) as peer:
        held = peer.ask("f", ours)
        peer.ask("f")
        assert ours.weight.eq(1).all()
        assert held.w.eq(0).all()


TAKEN = """
class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.zeros(2))
    def forward(self, x): return (x * self.w).sum()
    def train_on(self, x):
        with torch.no_grad(): self.w -= 1.0
def own(): return Layer()
"""


def test_a_tensor_that_a_test_puts_into_a_model_of_the_answers_is_trained_there(
    answer: Any,
) -> None:
    for place in (0, 1):
        layer = answer(TAKEN)("own")[place]()
        layer.w = nn.Parameter(torch.ones(2))
        kept, memory = layer.w, torch.full((2,), 3.0)
        optimiser = torch.optim.SGD([kept], lr=1.0)
        layer(torch.ones(2)).backward()
        optimiser.step()
        layer.train_on(1)
        assert kept.tolist() == [-1, -1]
        assert layer.w is kept
        kept.data = memory
        layer.train_on(1)
        assert memory.tolist() == layer.w.tolist() == [2, 2]


def test_a_tensor_of_the_test_becomes_no_part_of_the_answers_module() -> None:
    for part in ({"params": [["w", ["R", 0]]]}, {"buffers": [["w", ["R", 0], True]]}):
        got = outcome(replying({"r": module(7, **part)}), torch.ones(2))
        assert isinstance(got, WireError)


def _give_up(value: Tensor) -> None:
    value.data.untyped_storage().resize_(0)


CHANGES: dict[str, Callable[[Any], Any]] = {
    "nothing": lambda p: None,
    "an entry through .data": lambda p: p.data[0].fill_(9.0),
    "a zero's sign": lambda p: p.data[0].fill_(-0.0),
    "a NaN's bits": lambda p: p.data[0].view(torch.int64).fill_(0x7FF8000000000001),
    "other memory, same entries": lambda p: setattr(p, "data", p.data.clone()),
    "another layout": lambda p: setattr(p, "data", p.data.t().contiguous().t()),
    "another kind": lambda p: setattr(p, "data", p.data.float()),
    "another shape": lambda p: setattr(p, "data", p.data.reshape(4)),
    "fewer": lambda p: setattr(p, "data", p.data[:1]),
    "none": lambda p: setattr(p, "data", p.data[:0]),
    "memory given up": _give_up,
    "a gradient": lambda p: setattr(p, "grad", torch.ones_like(p)),
    "no gradient wanted": lambda p: p.requires_grad_(False),
}


@pytest.mark.parametrize("later", CHANGES)
@pytest.mark.parametrize("first", CHANGES)
def test_what_is_taken_for_unchanged_without_a_copy_is_so(first: str, later: str) -> None:
    value = nn.Parameter(torch.zeros(2, 2, dtype=torch.float64))
    CHANGES[first](value)
    with contextlib.suppress(WireError):
        told = dense.bits(value)
        with contextlib.suppress(RuntimeError, IndexError):  # it does not fit the one before
            CHANGES[later](value)
        is_same = dense.has_bits(value, told)
        assert not is_same or dense.bits(value) == told
        assert is_same or (first, later) != ("nothing", "nothing")


ODD: dict[str, Callable[[], Tensor]] = {  # made where they are used: jagged ones take a second
    "sparse": lambda: torch.zeros(2, 2).to_sparse(),
    "meta": lambda: torch.zeros(2, 2, device="meta"),
    "conjugate": lambda: torch.view_as_complex(torch.ones(2, 2)).conj(),
    "negative": lambda: torch.view_as_complex(torch.ones(2, 2)).conj().imag,
    "uninitialised": nn.parameter.UninitializedParameter,
    "jagged": lambda: torch.nested.nested_tensor([torch.zeros(2)], layout=torch.jagged),
}


@pytest.mark.parametrize("kind", ODD)
def test_an_odd_tensor_is_never_taken_for_unchanged(kind: str) -> None:
    odd = ODD[kind]()
    told = (odd.dtype, (2, 2), False, b"\0" * 16, None)
    assert not dense.has_bits(odd, told)


USE = """
def use(layer, x):
    return layer(x).sum(), layer.weight
def halved(layer, x):
    layer.weight.data.mul_(0.5)
    return layer(x)
"""


def used_there(answer: Any, layer: nn.Linear, x: Tensor) -> tuple[list[Tensor], bool]:
    """What the answer makes of a layer, with its gradients, and whether it was called here."""
    student, here = answer(USE)("use")
    found, calls = [], []
    for use in (student, here):
        layer.zero_grad()
        work = student._remote.peer.answering.use
        student._remote.peer.answering.use = lambda op, *rest, w=work: (
            calls.append(op),
            w(op, *rest),
        )[1]
        total, weight = use(layer, x)
        student._remote.peer.answering.use = work
        assert weight is layer.weight
        total.backward()
        found.append([total.detach(), layer.weight.grad, x.grad])
        x.grad = None
    for one, two in zip(*found, strict=True):
        same_bits(one, two)
    return found[0], "call" in calls


def test_a_linear_layer_of_a_test_is_computed_where_the_answer_runs(answer: Any) -> None:
    layer, x = nn.Linear(3, 2), torch.randn(4, 3, requires_grad=True)
    assert not used_there(answer, layer, x)[1]
    student, _ = answer(USE)("halved")
    wanted = (0.5 * layer.weight.detach()) @ x.detach().T + layer.bias.detach()[:, None]
    torch.testing.assert_close(student(layer, x).detach().T, wanted)
    with torch.no_grad():
        layer.weight.fill_(1.0)  # and what a test changes later is told
    assert not used_there(answer, layer, x)[1]


class Counted(nn.Linear):
    """A class that a test has made."""


def hooked() -> nn.Linear:
    """A layer whose calls a test counts."""
    layer = nn.Linear(3, 2)
    layer.register_forward_hook(lambda *_: None)
    return layer


def replaced() -> nn.Linear:
    """One with another way to compute."""
    layer: Any = nn.Linear(3, 2)
    layer.forward = lambda x: nn.functional.linear(x, 2 * layer.weight)
    return layer


@pytest.mark.parametrize("made", [lambda: Counted(3, 2), hooked, replaced])
def test_a_layer_that_is_more_than_its_parameters_is_called_where_the_test_runs(
    answer: Any, made: Callable[[], nn.Linear]
) -> None:
    assert used_there(answer, made(), torch.randn(4, 3, requires_grad=True))[1]


def test_a_hook_that_comes_later_is_run(answer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    layer, x = nn.Linear(3, 2), torch.randn(4, 3, requires_grad=True)
    (student, _), seen = answer(USE)("use"), []
    student(layer, x)
    layer.register_forward_pre_hook(lambda *_: seen.append("hook"))
    student(layer, x)
    assert seen == ["hook"]
    second = nn.Linear(3, 2)
    linear = nn.functional.linear
    counted = lambda *args: (seen.append("function"), linear(*args))[1]  # noqa: E731
    monkeypatch.setattr(nn.functional, "linear", counted)
    student(second, x)
    assert seen == ["hook", "function"]

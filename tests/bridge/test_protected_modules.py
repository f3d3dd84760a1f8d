"""What an answer may change in tensors and modules of a test."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn

from autograder.bridge.stand_ins import remote_of
from autograder.isolation.fork_server import ForkServer
from tests.bridge.ends import answering, of_tests
from tests.bridge.module_ends import (
    MODEL,
    leaves,
)
from tests.bridge.torch_ends import (
    X,
    Y,
    beside,
    state,
)


@pytest.fixture
def answer(open_fork_server: ForkServer) -> Iterator[Callable[[str], Any]]:
    """answer(source) runs it in a new process; its names there, and the same source run here."""
    yield from beside(open_fork_server)


@pytest.fixture
def built(answer: Any) -> Any:
    """built(name): the answer's and the same here."""
    return answer(MODEL)


def test_loose_parameters_are_shared(answer: Any) -> None:
    names = answer(
        "w = nn.Parameter(torch.ones(2))\n"
        "def loss(): return (w ** 2).sum()\n"
        "def descend(p, rate):\n    with torch.no_grad(): p -= rate * p.grad\n"
    )
    w, _ = names("w")
    optimiser = torch.optim.SGD([w], lr=0.25)
    names("loss")[0]().backward()
    optimiser.step()
    assert w.tolist() == [0.5, 0.5]
    assert math.isclose(names("loss")[0]().item(), 0.5)
    ours = nn.Parameter(torch.ones(2))
    ours.sum().backward()
    names("descend")[0](ours, 0.5)
    assert ours.tolist() == [0.5, 0.5]


def test_what_an_answer_sets_for_all_code_is_undone(open_fork_server: ForkServer) -> None:
    source = (
        "import torch\ntorch.set_default_dtype(torch.float64)\n"
        "def sneaky():\n"
        "    torch.set_default_dtype(torch.float64); torch.set_grad_enabled(False)\n"
        "    torch.set_default_device('meta')\n"
        "def made(): return torch.ones(2), torch.is_grad_enabled()\n"
    )
    with answering(open_fork_server, source) as student:
        student.name("sneaky")()
        made, grad = student.name("made")()
        assert made.dtype is torch.float32
        assert made.tolist() == [1, 1]
        assert grad
        assert torch.is_grad_enabled()
        assert torch.get_default_dtype() is torch.float32


CHANGING = """
gain = torch.linspace(1, 2, 5, requires_grad=True)
def doubled(x): x *= 2; return x
def centred(x): x -= x.mean(); return x.square() * x.sin()
def weighted(x): x += gain; return (x, x * 2)
def hides(x): x.masked_fill_(x < 0.4, -5.0); return torch.softmax(x, -1)
"""


@pytest.mark.parametrize("name", ["doubled", "centred", "weighted", "hides"])
def test_gradients_go_through_a_value_that_was_changed_in_place(answer: Any, name: str) -> None:
    found = []
    for function in answer(CHANGING)(name):
        leaf = torch.linspace(0, 1, 5, requires_grad=True)
        middle = leaf * 3
        given = leaves(function(middle))
        (sum((part**3).sum() for part in given) + (middle**2).sum()).backward()
        found.append([*given, middle, leaf.grad])
    for one, two in zip(*found, strict=True):
        assert torch.allclose(one, two), (one, two)


@pytest.mark.parametrize("name", ["doubled", "centred", "weighted", "hides"])
def test_a_call_gives_the_same_where_the_tests_values_are_protected(answer: Any, name: str) -> None:
    there, here = answer(CHANGING)(name)
    x = torch.linspace(0, 1, 5)
    before, wanted = x.clone(), leaves(here(x.clone()))
    remote_of(there).peer.protect = True  # type: ignore[union-attr]
    for one, two in zip(leaves(there(x)), wanted, strict=True):
        assert torch.allclose(one, two)
    assert torch.equal(x, before)


PLAIN = """
class Scale(nn.Module):
    def __init__(self): super().__init__(); self.gain = torch.ones(3)
    def forward(self, x): return self.gain * x
"""


def test_a_test_may_change_a_plain_tensor_of_the_answers_module(answer: Any) -> None:
    for kind in answer(PLAIN)("Scale"):
        model = kind()
        model.gain.mul_(4)
        assert model(torch.ones(3)).tolist() == [4, 4, 4]
        kept = model.gain
        for number in (7, 8):
            kept[0] = number
            assert model(torch.ones(3)).tolist() == [number, 4, 4]
        assert list(model.state_dict()) == []


def test_a_protected_model_of_the_test_stays(built: Any) -> None:
    step, _ = built("fit")
    peer = remote_of(step).peer  # type: ignore[union-attr]
    peer.protect = True
    model = nn.Linear(3, 3)
    before = state(model)
    built("close")[0](model)
    step(model, X, Y)
    assert model.training
    assert all(
        torch.equal(a, b) for a, b in zip(before.values(), model.state_dict().values(), strict=True)
    )
    assert peer.changed_ours


SPOILS = """
def total(layer): return layer.weight.sum().item(), layer.training, len(layer)
def spoil(layer):
    layer.eval()
    with torch.no_grad(): layer.weight.zero_()
    layer.weight.grad = None
    layer.append(nn.Linear(1, 1))
def slope(layer): return layer.weight.grad.sum().item()
"""


def test_an_answer_sees_a_protected_model_as_the_test_has_it_and_not_its_own_changes(
    answer: Any,
) -> None:
    total, spoil, slope = (pair[0] for pair in map(answer(SPOILS), ("total", "spoil", "slope")))
    remote_of(total).peer.protect = True  # type: ignore[union-attr]
    layer = nn.Sequential(nn.Linear(1, 1))
    layer.weight = nn.Parameter(torch.ones(2, 2))
    layer.weight.grad = torch.ones(2, 2)
    for _ in range(2):
        assert total(layer) == (4.0, True, 1)
        assert slope(layer) == 4.0
        spoil(layer)
        layer.weight.grad = torch.ones(2, 2)  # as it was: nothing new for the test's end


BACKWARD = """
class Cheat(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, layer):
        ctx.layer = layer
        return x * 2
    @staticmethod
    def backward(ctx, gradient):
        with torch.no_grad():
            for one in ctx.layer.parameters(): one.zero_()
        return gradient * 2, None
def apply(layer, x): return Cheat.apply(x, layer)
"""


METHODS = """
def call(model, name, *args):
    remote = model._remote
    return remote.peer.call(remote.number, name, args, {}, "")
def get(model, name): return model._remote.peer.get(model._remote.number, name, "")
def own(model): return model.halve()
def forward(model, x): return model(x)
def step(optimiser): optimiser.step()
"""


HALVING = """
import torch
class Layer(torch.nn.Linear):
    def halve(self):
        with torch.no_grad(): self.weight /= 2
        self.eval()
"""


def test_an_answer_runs_no_method_of_the_librarys_on_a_model_of_the_test(answer: Any) -> None:
    names = {name: answer(METHODS)(name)[0] for name in ("call", "get")}
    layer, norm = nn.Linear(2, 2), nn.LayerNorm(2)
    for model, name in (
        *((layer, "reset_parameters"), (norm, "reset_parameters"), (layer, "requires_grad_")),
        *((nn.Sequential(layer), "append"), (nn.Sequential(layer), "pop"), (layer, "extra_repr")),
    ):
        with pytest.raises(PermissionError):
            names["call"](model, name)
        with pytest.raises(AttributeError, match="an answer may not use"):
            names["get"](model, name)
    assert names["get"](layer, "in_features") == 2


def test_what_a_method_of_the_tests_model_changes_for_an_answer_is_a_change(answer: Any) -> None:
    found = answer(METHODS)
    for protect in (False, True):
        layer: Any = of_tests(HALVING)["Layer"](2, 2)
        layer.weight.data.fill_(4.0)
        optimiser = torch.optim.SGD(layer.parameters(), lr=1.0)
        peer: Any = remote_of(found("own")[0]).peer  # type: ignore[union-attr]
        peer.protect = protect
        with peer.recording() as crossings:
            found("own")[0](layer)
            assert layer.weight.eq(4 if protect else 2).all()
            assert layer.training is protect
            assert found("forward")[0](layer, torch.ones(1, 2)).shape == (1, 2)
            layer.weight.grad = torch.ones(2, 2)
            found("step")[0](optimiser)
            assert layer.weight.eq(4 if protect else 1).all()
        made = [call.changed for call in crossings if call.what in ("own", "forward", "step")]
        assert made == [("Module",), (), ("Module",)]


def test_what_a_backward_pass_changes_is_recorded_and_kept_away(answer: Any) -> None:
    apply, _ = answer(BACKWARD)("apply")
    peer = remote_of(apply).peer  # type: ignore[union-attr]
    for protect in (False, True):
        peer.protect = protect
        layer, x = nn.Linear(2, 2), torch.ones(2, requires_grad=True)
        with peer.recording() as crossings:
            apply(layer, x).sum().backward()
        assert ("backward pass", ("Module",)) in [(c.what, c.changed) for c in crossings]
        assert bool(layer.weight.eq(0).all()) is not protect

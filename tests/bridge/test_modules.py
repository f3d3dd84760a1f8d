"""Modules on the line, held against plain torch in one process."""

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from autograder.isolation.fork_server import ForkServer
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


def both(built: Any, use: Callable[[Any, Any], Any], **kwargs: Any) -> None:
    """The same use of the answer's model and of one here gives the same."""
    found = []
    for place in (0, 1):
        model = built("build")[place](**kwargs)
        torch.manual_seed(9)
        found.append(use(model, lambda name, place=place: built(name)[place]))
    for one, two in zip(*map(leaves, found), strict=True):
        if isinstance(one, Tensor):
            assert torch.allclose(one, two, atol=1e-6), (one, two)
        else:
            assert one == two


def test_a_model_of_the_answer_has_the_same_parts(built: Any) -> None:
    def use(model: Any, _: Any) -> Any:
        parts: Any = model.parts
        assert isinstance(model, nn.Module)
        return [
            list(state(model)),
            state(model),
            [name for name, _ in model.named_parameters()],
            [name for name, _ in model.named_buffers()],
            [type(m).__name__ for m in model.modules()][1:],
            sum(p.numel() for p in model.parameters()),
            model.width,
            model.scale,
            len(parts),
            model.training,
        ]

    both(built, use)
    both(built, use, tied=True)


def test_gradients_reach_parameters_and_inputs(built: Any) -> None:
    def use(model: Any, _: Any) -> Any:
        model.eval()
        x = X.clone().requires_grad_()
        model(x).pow(2).sum().backward()
        (model(x) + model.helper(x)).sum().backward()
        seen = model.seen.clone()
        return x.grad, [p.grad for p in model.parameters()], seen, model.training

    both(built, use)
    both(built, use, tied=True)


def test_a_loss_of_several_calls_and_of_the_parameters_themselves(built: Any) -> None:
    def use(model: Any, _: Any) -> Any:
        model.eval()
        loss = model(model(X)).sum() + sum((p**2).sum() for p in model.parameters())
        grads = torch.autograd.grad(loss, list(model.parameters()))
        return loss.detach(), grads

    both(built, use)
    both(built, use, tied=True)


def test_an_optimiser_of_the_test_trains_the_answers_model(built: Any) -> None:
    def use(model: Any, name: Any) -> Any:
        optimiser = torch.optim.AdamW(model.parameters(), lr=0.1)
        losses = []
        for _ in range(4):
            optimiser.zero_grad()
            model.eval()
            loss = (model(X) - Y).pow(2).mean()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            assert model.first() is model.one
            losses.append(loss.item())
        return [round(loss, 4) for loss in losses], state(model)

    both(built, use)
    both(built, use, tied=True)


CLIPS = """
def _parts(given): return list(given.parameters() if hasattr(given, "parameters") else given)
def in_place(given, factor):
    for p in _parts(given): p.grad.mul_(factor)
def anew(given, factor):
    for p in _parts(given): p.grad = p.grad * factor
def by_data(given, factor):
    for p in _parts(given): p.grad.data = p.grad.data * factor
class Clipper:
    def __init__(self, given):
        self.given, self.held = given, [p.grad for p in _parts(given)]
    def __call__(self, factor):
        for gradient in self.held: gradient *= factor
"""


@pytest.mark.parametrize("of_a_model", [False, True], ids=["list", "model"])
@pytest.mark.parametrize("name", ["in_place", "anew", "by_data"])
def test_a_gradient_is_changed_in_place_where_the_answer_did_and_only_there(
    answer: Any, name: str, of_a_model: bool
) -> None:
    found = []
    for clip in answer(CLIPS)(name):
        given: Any = nn.ModuleList([nn.Linear(2, 2)]) if of_a_model else None
        given = given or [nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(3))]
        parameters = list(given.parameters() if of_a_model else given)
        for parameter in parameters:
            parameter.grad = torch.ones_like(parameter)
        seen = []
        for factor in (2, 3):
            held = [parameter.grad for parameter in parameters]
            clip(given, factor)
            for before, parameter in zip(held, parameters, strict=True):
                now = parameter.grad
                assert before is not None and now is not None
                seen.append((before is now, before.sum().item(), now.sum().item()))
        found.append(seen)
    assert found[0] == found[1]


def test_a_gradient_that_the_test_changes_in_place_is_the_one_that_the_answer_holds(
    answer: Any,
) -> None:
    found = []
    for clipper in answer(CLIPS)("Clipper"):
        given = nn.Linear(2, 2)
        for parameter in given.parameters():
            parameter.grad = torch.ones_like(parameter)
        clip, held = clipper(given), given.weight.grad
        assert held is not None
        clip(2)
        assert held is given.weight.grad
        seen = held.sum()
        held.fill_(1)
        clip(3)
        found.append([seen, held.sum(), held is given.weight.grad])
    assert found[0] == found[1]


THROUGH = """
def same(x, f): return f(x) is x
def added(x, f):
    out = f(x)
    out += 1
    return out.sum()
def twice(x, f):
    f(x)
    return (x + f(x)).sum()
"""


@pytest.mark.parametrize("name", ["same", "added", "twice"])
@pytest.mark.parametrize(
    "function",
    [
        lambda t: t,
        nn.Identity(),
        nn.Dropout(0.5).eval(),
        torch.clone,
        lambda t: t.mul_(2),
        torch.relu_,
    ],
    ids=["function", "module", "dropout", "copy", "in place", "relu"],
)
def test_a_tensor_of_the_test_that_its_function_hands_back_is_that_very_tensor(
    answer: Any, name: str, function: Any
) -> None:
    found = []
    for answered in answer(THROUGH)(name):
        x = torch.tensor([-1.0, 2.0])
        found.append([answered(x, function), x])
    assert str(found[0]) == str(found[1])


def test_an_answer_trains_a_model_of_the_test(built: Any) -> None:
    found = []
    for place in (0, 1):
        torch.manual_seed(2)
        model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 3))
        optimiser = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        step = built("step")[place]
        losses = [step(model, optimiser, X, Y).item() for _ in range(3)]
        losses += built("fit")[place](model, X, Y)
        found.append([torch.tensor(losses), *state(model).values()])
    for one, two in zip(*found, strict=True):
        assert torch.allclose(one, two, atol=1e-5)


def test_an_answer_trains_its_own_model_that_the_test_holds(built: Any) -> None:
    def use(model: Any, name: Any) -> Any:
        model.drop.p = 0.0
        return name("fit")(model, X, Y)[0] > 0, model.training, len(state(model))

    both(built, use)


def test_modes_weights_and_kinds_set_by_the_test_hold_at_the_answer(built: Any) -> None:
    def use(model: Any, _: Any) -> Any:
        torch.manual_seed(5)
        model.load_state_dict({n: torch.randn(v.shape) for n, v in model.state_dict().items()})
        model.eval()
        one = model(X)
        with torch.no_grad():
            model.one.weight.fill_(0.5)
        two = model(X)
        model.to(torch.float64)
        three = model(X.double())
        for p in model.one.parameters():
            p.requires_grad_(False)
        model(X.double()).sum().backward()
        return one, two, three, model.one.weight.grad is None, model.two.weight.grad

    both(built, use)


def test_a_deep_copy_is_a_model_of_its_own(built: Any) -> None:
    def use(model: Any, _: Any) -> Any:
        model.eval()
        other = copy.deepcopy(model)
        with torch.no_grad():
            other.one.weight.zero_()
        assert other is not model
        return model(X), other(X), model.one.weight.clone()

    both(built, use)


def test_a_module_swapped_by_the_answer_is_swapped_here(built: Any) -> None:
    def use(model: Any, _: Any) -> Any:
        before = model.one
        model.swap()
        assert model.one is not before
        model.eval()
        model(X).sum().backward()
        return list(state(model)), model.one.weight.grad is not None

    both(built, use)
    ours = nn.Sequential()
    ours.one = nn.Linear(3, 5)
    built("replace")[0](ours)
    assert ours.one.weight.shape == (3, 3)


def test_frozen_parameters_and_modes_come_back(built: Any) -> None:
    model = nn.Linear(2, 2)
    built("freeze")[0](model)
    assert not any(p.requires_grad for p in model.parameters())
    built("close")[0](model)
    assert not model.training


def test_the_librarys_own_modules_cross(answer: Any) -> None:
    there, here = answer(
        "def build():\n    torch.manual_seed(0)\n"
        "    return nn.Sequential(nn.Linear(2, 3), nn.LayerNorm(3), nn.Embedding(4, 3))\n"
    )("build")
    one, two = there(), here()
    assert [type(m).__name__ for m in one] == [type(m).__name__ for m in two]
    assert isinstance(one[0], nn.Linear)
    assert torch.equal(one[0].weight, two[0].weight)
    assert torch.allclose(one[1](one[0](torch.ones(2))), two[1](two[0](torch.ones(2))))
    assert torch.equal(one[2](torch.tensor([1, 2])), two[2](torch.tensor([1, 2])))

"""An answer finds slopes of a test's functions by `torch.func`, as it does by autograd."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from autograder.isolation.fork_server import ForkServer
from tests.bridge.torch_ends import beside

SHAPES = ((6, (2, 3)), (12, (3, 4)), (8, (2, 4)))
WAYS = """
def by_vjp(f, x, w, d):
    (out, _), back = torch.func.vjp(f, x, w)
    return (out, *back((d, 0 * d)))

def by_grad(f, x, w, d):
    def loss(x, w):
        out, _ = f(x, w)
        return (out * d).sum(), out
    slopes, out = torch.func.grad(loss, argnums=(0, 1), has_aux=True)(x, w)
    return (out, *slopes)

def of_one(f, x, w, d):
    out, back = torch.func.vjp(lambda x: f(x.sin(), w=w)[0], x)
    return out, back(d)[0], torch.zeros_like(w)

def twice(f, x, w, d):
    _, back = torch.func.vjp(f, x, w)
    back((d, d))
    return by_vjp(f, x, w, d)
"""


@pytest.fixture
def answer(open_fork_server: ForkServer) -> Iterator[Callable[[str], Any]]:
    """answer(source) runs it in a new process; its names there, and the same source run here."""
    yield from beside(open_fork_server)


def part(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    """A test's function of two tensors."""
    return torch.tanh(x @ w), (x @ w).exp()


@pytest.mark.parametrize("way", ["by_vjp", "by_grad", "of_one", "twice"])
def test_slopes_of_a_tests_function_are_found_by_torchs_transforms(answer: Any, way: str) -> None:
    there, here = answer(WAYS)(way)
    given = [torch.linspace(-1, 1, n).double().reshape(shape) for n, shape in SHAPES]
    before = [one.clone() for one in given]
    for one, two in zip(there(part, *given), here(part, *given), strict=True):
        assert torch.allclose(one, two, atol=1e-12) and not one.requires_grad
    assert all(map(torch.equal, given, before))


def test_what_a_function_raises_inside_of_a_transform_is_caught(answer: Any) -> None:
    there, _ = answer(
        "def tried(f, x):\n"
        "    try: return torch.func.vjp(f, x)[0]\n"
        "    except ValueError as error: return str(error)\n"
    )("tried")

    def stops(x: Tensor) -> Tensor:
        raise ValueError("on purpose")

    assert there(stops, torch.ones(2)) == "on purpose"
    assert there(torch.sin, torch.zeros(2)).tolist() == [0, 0]

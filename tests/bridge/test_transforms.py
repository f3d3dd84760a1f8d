"""An answer finds slopes of a test's functions by `torch.func`, as it does by autograd."""

import re
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

# each is a function of a test's function, of x (2, 3) and of w (3, 4)
MANY = """
from torch.autograd.functional import jacobian
from torch.func import functional_call, grad, jacfwd, jacrev, jvp, vjp, vmap

ways = {
    "backward": lambda f, x, w: jacrev(f, argnums=(0, 1))(x, w)[0],
    "in parts": lambda f, x, w: jacrev(f, chunk_size=2)(x, w),
    "forward": lambda f, x, w: jacfwd(f, argnums=1)(x, w),
    "one way": lambda f, x, w: jvp(lambda x: f(x, w), (x,), (x.cos(),)),
    "both": lambda f, x, w: jvp(f, (x, w), (x.cos(), w.sin()))[1],
    "rows": lambda f, x, w: vmap(f, in_dims=(0, None))(x, w),
    "columns": lambda f, x, w: vmap(f, in_dims=(None, 1), out_dims=1)(x, w),
    "rows and columns": lambda f, x, w: vmap(vmap(f, (None, 1)), (0, None))(x, w),
    "a slope for each row": lambda f, x, w: vmap(grad(lambda x: f(x, w)[0].sum()))(x),
    "two for each": lambda f, x, w: vmap(grad(lambda *a: f(*a)[1].sum(), (0, 1)), (0, None))(x, w),
    "a table for each row": lambda f, x, w: vmap(jacrev(f), in_dims=(0, None))(x, w),
    "and forward": lambda f, x, w: vmap(jacfwd(f), in_dims=(0, None))(x, w),
    "table of rows": lambda f, x, w: jacrev(vmap(f, in_dims=(0, None)))(x, w),
    "forward of rows": lambda f, x, w: jacfwd(vmap(f, in_dims=(0, None)))(x, w),
    "older": lambda f, x, w: jacobian(f, (x, w), vectorize=True),
}

def batched(f, x, w):
    x.requires_grad_()
    out, eye = f(x, w)[0], torch.eye(8, dtype=x.dtype).view(8, 2, 4)
    (one,) = torch.autograd.grad(out, x, eye, retain_graph=True, is_grads_batched=True)
    return one, vmap(lambda v: torch.autograd.grad(out, x, v, retain_graph=True)[0])(eye)

def dual(f, x, w):
    with torch.autograd.forward_ad.dual_level():
        two = f(torch.autograd.forward_ad.make_dual(x, x.cos()), w)
        return [torch.autograd.forward_ad.unpack_dual(one) for one in two]

ways["by autograd"], ways["by a dual"] = batched, dual

def flat(name, f, x, w):
    return torch.utils._pytree.tree_flatten(ways[name](f, x, w))[0]
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


EVERY_WAY = [*re.findall('^    "(.+?)":', MANY, re.MULTILINE), "by autograd", "by a dual"]


@pytest.mark.parametrize("way", EVERY_WAY)
def test_a_tests_function_is_asked_for_many_things_side_by_side(answer: Any, way: str) -> None:
    there, here = answer("import torch.utils._pytree\n" + MANY)("flat")
    x, w = (torch.linspace(-1, 1, n).double().reshape(s) for n, s in SHAPES[:2])
    found, wanted = there(way, part, x, w), here(way, part, x.clone(), w.clone())
    assert len(found) == len(wanted) > 0
    for one, two in zip(found, wanted, strict=True):
        assert one.shape == two.shape and torch.allclose(one, two, atol=1e-12)


def test_each_of_those_side_by_side_is_a_call_of_its_own(answer: Any) -> None:
    there, _ = answer("def many(f, x): return torch.vmap(f)(x)\n")("many")
    asked: list[int] = []

    def counted(x: Tensor) -> Tensor:
        asked.append(x.ndim)
        return x + len(asked)

    assert there(counted, torch.zeros(3, 2)).tolist() == [[1, 1], [2, 2], [3, 3]]
    assert asked == [1, 1, 1]


def test_a_way_forward_that_is_too_long_is_refused_in_words(answer: Any) -> None:
    there, _ = answer("def along(f, x): return torch.func.jvp(f, (x,), (x,))[1]\n")("along")
    with pytest.raises(RuntimeError, match="use vjp or jacrev"):
        there(lambda x: x.sin(), torch.zeros(5001))


@pytest.mark.parametrize(
    "asked",
    [
        "torch.autograd.functional.hvp(lambda x: f(x).sum(), x, x)",
        "torch.autograd.functional.hessian(lambda x: f(x).sum(), x)",
        "torch.autograd.functional.jvp(f, x, x)",
        "torch.func.hessian(lambda x: f(x).sum())(x)",
    ],
)
def test_slopes_of_slopes_are_refused_and_not_0(answer: Any, asked: str) -> None:
    there, _ = answer(f"def second(f, x): return {asked}\n")("second")
    with pytest.raises(RuntimeError, match="slopes of slopes"):
        there(lambda x: x.sin() * x, torch.ones(3))


def test_a_graph_of_slopes_that_nobody_goes_back_through_is_fine(answer: Any) -> None:
    there, _ = answer(
        "def first(f, x):\n"
        "    x = x.clone().requires_grad_()\n"
        "    return torch.autograd.grad(f(x).sum(), x, create_graph=True)[0].detach()\n"
    )("first")
    assert there(lambda x: x * x, torch.ones(3)).tolist() == [2, 2, 2]


PART = "def part(x, w): return torch.tanh(x @ w), (x @ w).exp()\n"


@pytest.mark.parametrize("way", EVERY_WAY)
def test_a_test_asks_an_answers_function_in_the_same_ways(answer: Any, way: str) -> None:
    there, here = answer(PART)("part")
    names: dict[str, Any] = {"torch": torch}
    exec("import torch.utils._pytree\n" + MANY, names)
    x, w = (torch.linspace(-1, 1, n).double().reshape(s) for n, s in SHAPES[:2])
    found = names["flat"](way, there, x, w)
    wanted = names["flat"](way, here, x.clone().detach(), w.clone())
    assert len(found) == len(wanted) > 0
    for one, two in zip(found, wanted, strict=True):
        assert one.shape == two.shape and torch.allclose(one, two, atol=1e-12)


def test_who_loses_the_way_back_is_found_out(answer: Any) -> None:
    there, _ = answer("def lost(x): return x.detach() ** 2\n")("lost")
    assert torch.func.grad(lambda x: there(x).sum())(torch.ones(3)).tolist() == [0, 0, 0]


ODD = {  # what an answer may give where a test asks for many things side by side
    "other shapes": "def odd(x, n=[]):\n    n.append(1)\n    return torch.ones(len(n))\n",
    "other kinds": "def odd(x, n=[]):\n    n.append(1)\n    return [x] * len(n)\n",
    "an object": "class One: pass\ndef odd(x): return One()\n",
}


@pytest.mark.parametrize("way", ODD)
def test_what_is_odd_side_by_side_is_an_error_of_the_tests(answer: Any, way: str) -> None:
    there, _ = answer(ODD[way])("odd")
    with pytest.raises(Exception, match=r".") as caught:
        torch.vmap(there)(torch.ones(3, 2))
    assert isinstance(caught.value, RuntimeError | ValueError | TypeError)

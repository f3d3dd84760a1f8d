"""What tests of tensors and modules on the line share."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from autograder.isolation.fork_server import ForkServer
from tests.bridge.ends import answering, of_tests

SOURCE = "import copy, torch\nfrom torch import nn\nimport torch.nn.functional as F\n"


def same_bits(one: Tensor, two: Tensor) -> None:
    """Two tensors that nobody could tell apart."""
    assert (one.dtype, one.shape, one.stride()) == (two.dtype, two.shape, two.stride())
    assert one.requires_grad == two.requires_grad
    a, b = one.detach().contiguous(), two.detach().contiguous()
    if a.numel():
        assert a.reshape(-1).view(torch.uint8).equal(b.reshape(-1).view(torch.uint8))


X, Y = torch.linspace(-1, 1, 12).reshape(4, 3), torch.ones(4, 3)


def state(model: Any) -> dict[str, Tensor]:
    """A copy of a model's state."""
    return {name: value.clone() for name, value in model.state_dict().items()}


def entry(shape: list[int], **more: Any) -> list[Any]:
    """A tensor of float32 as a message lists it."""
    told = {"name": "float32", "strides": None, "place": 0, "flags": 2, "grad": None, **more}
    return [told["name"], shape, told["strides"], told["place"], told["flags"], told["grad"]]


FOUR = np.ones(4, "float32").tobytes()


def module(number: int = 1, /, **more: Any) -> list[Any]:
    """A module as a reply describes it."""
    empty = {"methods": [], "fields": [], "dunders": [], "classes": []}
    empty |= {"params": [], "buffers": [], "children": [], "base": None, "training": True}
    return ["H", {"n": number, "k": "module", "type": "M"} | empty | more]


VIEWS = """
def part(x, how): return eval(how)
def inside(x, how): return {'a': [eval(how)], 'b': (1, x)}
def of_dict(xs, how):
    return {name: part(x, how) for name, x in xs[0].items()}
def fill(x, how):
    x[...] = 7
    return eval(how)
"""


def beside(open_fork_server: ForkServer) -> Iterator[Callable[[str], Any]]:
    """What runs an answer; its names there, and the same source run here."""
    with contextlib.ExitStack() as stack:

        def run(source: str) -> Any:
            student = stack.enter_context(answering(open_fork_server, SOURCE + source))
            here = of_tests(SOURCE + source)
            return lambda name: (student.name(name), here[name])

        yield run

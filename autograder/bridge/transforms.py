"""Calls of an answer inside of `torch.func.vjp` or `torch.func.grad`: they cross as plain tensors.

What such a transform hands to a function is a tensor around another. It is made plain before the
call crosses, and the call is one node of the transform's own graph, as it is one of autograd's.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch._C._functorch import (
    get_unwrapped,
    is_gradtrackingtensor,
    peek_interpreter_stack,
)
from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack
from torch.utils._pytree import tree_flatten, tree_unflatten


def is_inside(args: tuple, kwargs: dict) -> bool:
    """Whether a transform that finds slopes has handed on one of these arguments, or a part."""
    if peek_interpreter_stack() is None:
        return False
    return any(map(_is_traced, tree_flatten((args, kwargs))[0]))


def called(call: Callable[..., Any], args: tuple, kwargs: dict) -> Any:
    """What a call gives that crosses, for arguments that are inside of a transform."""
    parts, shape = tree_flatten((args, kwargs))
    places = [place for place, part in enumerate(parts) if isinstance(part, Tensor)]
    run = _Run(call, parts, shape, places)
    results = _Lifted.apply(run, *(parts[place] for place in places))
    return run.whole(results)


def _is_traced(part: Any) -> bool:
    return isinstance(part, Tensor) and is_gradtrackingtensor(part)


def _plain(tensor: Tensor | None) -> Tensor | None:
    while tensor is not None and is_gradtrackingtensor(tensor):
        tensor = get_unwrapped(tensor)
    return tensor


class _Run:
    """One such call, with its graph."""

    def __init__(self, call: Callable, parts: list[Any], shape: Any, places: list[int]) -> None:
        self.call, self.parts, self.shape, self.places = call, parts, shape, places
        self.leaves: list[Tensor] = []
        self.given: list[Any] = []  # parts of the result
        self.made: list[int] = []  # places of tensors among them
        self.back: Any = None  # what puts the parts together again

    def forward(self, tensors: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """Make the call; the tensors in what it gives, without their history."""
        self.leaves = [one.detach() for one in tensors]
        parts = list(self.parts)
        for place, leaf in zip(self.places, self.leaves, strict=True):
            parts[place] = leaf.requires_grad_(leaf.is_floating_point() or leaf.is_complex())
        args, kwargs = tree_unflatten(parts, self.shape)
        with torch.enable_grad():
            self.given, self.back = tree_flatten(self.call(*args, **kwargs))
        self.made = [n for n, part in enumerate(self.given) if isinstance(part, Tensor)]
        return tuple(self.given[n].detach() for n in self.made)

    def whole(self, tensors: tuple[Tensor, ...]) -> Any:
        """The result, with these tensors in it."""
        parts = list(self.given)
        for place, tensor in zip(self.made, tensors, strict=True):
            parts[place] = tensor
        return tree_unflatten(parts, self.back)

    def backward(self, slopes: tuple[Tensor | None, ...]) -> list[Tensor | None]:
        """The slopes at what the call was handed."""
        outputs = [self.given[n] for n in self.made]
        pairs = [
            (one, _plain(slope))
            for one, slope in zip(outputs, slopes, strict=True)
            if slope is not None and one.requires_grad
        ]
        leaves = [leaf for leaf in self.leaves if leaf.requires_grad]
        if not pairs or not leaves:
            return [None] * len(self.leaves)
        ours, theirs = zip(*pairs, strict=True)
        with temporarily_clear_interpreter_stack():  # inside of it each new tensor is wrapped
            found = iter(torch.autograd.grad(ours, leaves, theirs, True, allow_unused=True))
        return [next(found) if leaf.requires_grad else None for leaf in self.leaves]


class _Lifted(torch.autograd.Function):
    """The call as a node of the transform's graph."""

    @staticmethod
    def forward(run: _Run, *tensors: Tensor) -> tuple[Tensor, ...]:  # type: ignore[override]
        """Make the call."""
        return run.forward(tensors)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: Any) -> None:
        """Keep the call's graph."""
        ctx.run = inputs[0]
        ctx.set_materialize_grads(False)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *slopes: Tensor | None) -> tuple[Any, ...]:  # type: ignore[override]
        """Go back through it."""
        return None, *ctx.run.backward(slopes)

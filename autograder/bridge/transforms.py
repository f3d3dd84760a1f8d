"""Calls of an answer inside of torch's transforms, or with duals: they cross as plain tensors.

What such a transform hands to a function is a tensor around another. It is made plain before the
call crosses, and the call is one node of the transform's own graph, as it is one of autograd's.
Inside of `torch.vmap` each of those that are handed on side by side is a call of its own.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch._C._functorch import (
    is_batchedtensor,
    is_gradtrackingtensor,
    peek_interpreter_stack,
)
from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack
from torch.autograd import forward_ad
from torch.utils._pytree import tree_flatten, tree_unflatten

from autograder.bridge import side_by_side
from autograder.bridge.once import once

MOST_SLOPES = 5000  # of one call, where the way forward is asked: each is a way back
Slopes = Sequence[Tensor | None]


def is_inside(args: tuple, kwargs: dict) -> bool:
    """Whether a transform has handed on one of these arguments, or a part; or it is a dual."""
    if peek_interpreter_stack() is None and forward_ad._current_level < 0:
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
    if not isinstance(part, Tensor):
        return False
    return is_gradtrackingtensor(part) or is_batchedtensor(part) or _is_dual(part)


def _is_dual(part: Tensor) -> bool:
    """Whether a tensor comes with how far it moves."""
    return forward_ad._current_level >= 0 and forward_ad.unpack_dual(part).tangent is not None


class _Run:
    """One such call, with its graph; or several side by side, each with its own."""

    def __init__(self, call: Callable, parts: list[Any], shape: Any, places: list[int]) -> None:
        self.call, self.parts, self.shape, self.places = call, parts, shape, places
        self.leaves: list[Tensor] = []
        self.given: list[Any] = []  # parts of the result
        self.made: list[int] = []  # places of tensors among them
        self.back: Any = None  # what puts the parts together again
        self.others: list[_Run] = []  # those side by side, if there are several
        self.level = 0  # of the transform inside of which these are

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

    def side_by_side(self, size: int, axes: Sequence[Any], tensors: Slopes) -> Any:
        """Make the call for each entry of what is handed on; their results, and along which axis.

        Args:
            size: how many entries there are.
            axes: along which axis of each tensor; None where all get the same.
            tensors: what is handed on.
        """
        below = peek_interpreter_stack()
        self.level = 1 + (0 if below is None else below.level())
        self.others = [_Run(self.call, self.parts, self.shape, self.places) for _ in range(size)]
        found = [
            _Lifted.apply(other, *side_by_side.entries(i, axes, tensors))
            for i, other in enumerate(self.others)
        ]
        first = self.others[0]
        self.given, self.made, self.back = first.given, first.made, first.back
        made = tuple(torch.stack(column) for column in zip(*found, strict=True))
        return made, (0,) * len(made)

    def whole(self, tensors: tuple[Tensor, ...]) -> Any:
        """The result, with these tensors in it."""
        parts = list(self.given)
        for place, tensor in zip(self.made, tensors, strict=True):
            parts[place] = tensor
        return tree_unflatten(parts, self.back)

    def backward(self, slopes: Slopes) -> Slopes:
        """The slopes at what the call was handed."""
        return side_by_side.spread(
            lambda place, parts: self._at(place)._backward(parts), slopes, self._sizes()
        )

    def onward(self, steps: Slopes) -> Slopes:
        """How far what the call gives moves if what it was handed moves so."""
        if not self.others:  # the steps may be any: they are only multiplied
            return self._onward(steps)
        return side_by_side.spread(
            lambda place, parts: self._at(place)._onward(parts), steps, self._sizes()
        )

    def _sizes(self) -> dict[int, int]:
        """How many calls are side by side, by level."""
        below = self.others[0]._sizes() if self.others else {}
        return {self.level: len(self.others)} | below if self.others else {}

    def _at(self, place: Mapping[int, int]) -> "_Run":
        """That of the calls side by side which is at a place."""
        return self.others[place[self.level]]._at(place) if self.others else self

    def _backward(self, slopes: Slopes) -> list[Tensor | None]:
        outputs = [self.given[n] for n in self.made]
        pairs = [
            (one, slope)
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

    def _onward(self, steps: Slopes) -> list[Tensor]:
        found = []
        for place, table in zip(self.made, self._tables, strict=True):
            moved = torch.zeros_like(self.given[place])
            for slopes, step in zip(table, steps, strict=True):
                if slopes is not None and step is not None:
                    moved = moved + (slopes * step).flatten(1).sum(1).reshape(moved.shape)
            found.append(moved)
        return found

    @cached_property
    def _tables(self) -> list[list[Tensor | None]]:
        """For each part of what the call gives, the slopes of its numbers at what it was handed."""
        outputs = [self.given[place] for place in self.made]
        if sum(output.numel() for output in outputs) > MOST_SLOPES:
            raise RuntimeError(
                "the way forward through what a test handed over is too long: use vjp or jacrev"
            )
        with temporarily_clear_interpreter_stack():
            return [self._table(place) for place in range(len(outputs))]

    def _table(self, place: int) -> list[Tensor | None]:
        output, rows = self.given[self.made[place]], []
        for row in torch.eye(output.numel(), dtype=output.dtype):
            slopes: list[Tensor | None] = [None] * len(self.made)
            slopes[place] = row.view(output.shape)
            rows.append(self._backward(slopes))
        if not rows:
            return [None] * len(self.leaves)
        return [side_by_side.stacked(column) for column in zip(*rows, strict=True)]


class _Lifted(torch.autograd.Function):
    """The call as a node of the transform's graph."""

    @staticmethod
    def forward(run: _Run, *tensors: Tensor) -> tuple[Tensor, ...]:  # type: ignore[override]
        """Make the call."""
        return run.forward(tensors)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: Any) -> None:
        """Keep the call's graph."""
        ctx.run, *ctx.handed = inputs
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor | None) -> tuple[Any, ...]:  # type: ignore[override]
        """Go back through it."""
        return None, *once(lambda ctx, slopes: ctx.run.backward(slopes), ctx, slopes)

    @staticmethod
    def jvp(ctx: Any, _: Any, *steps: Tensor | None) -> tuple[Tensor, ...]:  # type: ignore[override]
        """Go forward through it."""
        return tuple(ctx.run.onward(steps))

    @staticmethod
    def vmap(info: Any, axes: tuple, run: _Run, *tensors: Tensor) -> Any:  # type: ignore[override]
        """Make it once for each of those side by side."""
        return run.side_by_side(info.batch_size, axes[1:], tensors)

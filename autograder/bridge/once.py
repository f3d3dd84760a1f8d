"""Slopes that are found once: whoever asks for slopes of these is told that there are none."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

WORDS = "slopes of slopes do not go through a call between a test and an answer"
Some = Sequence[Tensor | None]


def once(find: Callable[[Any, Some], Some], ctx: Any, slopes: Some) -> Some:
    """What is found for a node of a graph; where a graph is made of it, one that ends there.

    Without that, slopes of it would be 0 in silence: torch's own `once_differentiable` leads
    nowhere.

    Args:
        find: finds it.
        ctx: the node's; `handed` is what was handed to it.
        slopes: those that arrive.
    """
    is_graphed = torch.is_grad_enabled()
    with torch.no_grad():
        found = find(ctx, slopes)
    if not is_graphed:
        return found
    ways = [one for one in (*ctx.handed, *slopes) if one is not None and one.requires_grad]
    return [one if one is None else _Ends.apply(one, *ways) for one in found]


class _Ends(torch.autograd.Function):
    """A tensor as it is, through which no slope goes to what it was made of."""

    generate_vmap_rule = True

    @staticmethod
    def forward(found: Tensor, *ways: Tensor) -> Tensor:  # type: ignore[override]
        """The same numbers."""
        return found.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: Any) -> None:
        """Nothing is kept."""

    @staticmethod
    def backward(ctx: Any, *_: Any) -> Any:
        """Refuse."""
        raise RuntimeError(WORDS)

    @staticmethod
    def jvp(ctx: Any, *_: Any) -> Any:
        """Refuse."""
        raise RuntimeError(WORDS)

"""Vectors to hash, a small task of recalling, and a count of what waits for the way back.

Used by the chapter on the Reformer. Students get this file, so no line of it is one of an answer's:
how attention is computed, and how a block is undone, is handed in.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Attend = Callable[[Tensor, Tensor], Tensor]
Part = Callable[[Tensor, Tensor], Tensor]
Undo = Callable[[Part, Part, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor], Sequence[Tensor]]


def pair(cosine: float, width: int) -> Tensor:
    """Two vectors of length 1 with this cosine between them, (2, width)."""
    both = torch.zeros(2, width)
    both[:, 0] = torch.tensor([1.0, cosine])
    both[1, 1] = (1 - cosine**2) ** 0.5
    return both


def grouped(rows: int, length: int, width: int, groups: int, spread: float, seed: int) -> Tensor:
    """Vectors that lie round a few directions, as those of trained models do."""
    generator = torch.Generator().manual_seed(seed)
    centers = F.normalize(torch.randn(groups, width, generator=generator), dim=-1)
    which = torch.randint(groups, (rows, length), generator=generator)
    noise = torch.randn(rows, length, width, generator=generator) / width**0.5
    return 2 * width**0.5 * (centers[which] + spread * noise)


def recalling(rows: int, names: int, values: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Each name comes with a value first, and without one later; what was its value?

    Returns:
        names, the values beside them (`values` stands for none) and as labels the values to be
        recalled, -100 where there is nothing to recall; each (rows, 2 * names).
    """
    generator = torch.Generator().manual_seed(seed)
    first, again = (torch.rand(rows, names, generator=generator).argsort(1) for _ in range(2))
    told = torch.randint(values, (rows, names), generator=generator)
    by_name = torch.empty_like(told).scatter(1, first, told)
    shown = torch.cat([told, torch.full_like(told, values)], dim=1)
    labels = torch.cat([torch.full_like(told, -100), by_name.gather(1, again)], dim=1)
    return torch.cat([first, again], dim=1), shown, labels


class RecallModel(nn.Module):
    """One layer of attention with shared queries and keys, for the task of recalling."""

    def __init__(self, names: int, values: int, width: int = 32) -> None:
        super().__init__()
        self.name, self.value = nn.Embedding(names, width), nn.Embedding(values + 1, width)
        self.shared, self.content = nn.Linear(width, width), nn.Linear(width, width)
        self.out = nn.Linear(width, values)

    def forward(self, names: Tensor, shown: Tensor, attend: Attend) -> Tensor:
        """Logits for each place; `attend` gets shared queries and keys, and values."""
        x = self.name(names) + self.value(shown)
        return self.out(attend(40 * F.normalize(self.shared(x), dim=-1), self.content(x)))


def learn_to_recall(
    model: RecallModel, attend: Attend, steps: int, names: int, values: int
) -> list[float]:
    """Train on recalling; the loss of each step."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    record: list[float] = []
    for step in range(steps):
        ids, shown, labels = recalling(16, names, values, seed=step)
        loss = F.cross_entropy(model(ids, shown, attend).flatten(0, 1), labels.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        record.append(loss.item())
    return record


@torch.no_grad()
def recalled(model: RecallModel, attend: Attend, names: int, values: int) -> float:
    """The share of values that a model recalls, of names that it has not been shown together."""
    ids, shown, labels = recalling(64, names, values, seed=10_000)
    asked = labels >= 0
    right = model(ids, shown, attend).argmax(-1) == labels
    return round(right[asked].double().mean().item(), 3)


def saved_numbers(call: Callable[[], object], weights: Sequence[Tensor] = ()) -> int:
    """How many numbers autograd keeps for the way back, beside weights, which are there anyway."""
    kept: dict[int, Tensor] = {}
    own = {weight.untyped_storage().data_ptr() for weight in weights}

    def keep(tensor: Tensor) -> Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        result = call()
    del result
    return sum(tensor.numel() for place, tensor in kept.items() if place not in own)


class _Reversible(torch.autograd.Function):
    """Blocks whose inputs a function that is handed in computes again from their outputs."""

    @staticmethod
    def forward(
        ctx: Any, undo: Undo, parts: tuple[Part, Part], x1: Tensor, x2: Tensor, *weights: Tensor
    ) -> tuple[Tensor, Tensor]:
        f, g = parts
        for w_f, w_g in zip(weights[::2], weights[1::2], strict=True):
            x1 = x1 + f(x2, w_f)
            x2 = x2 + g(x1, w_g)
        ctx.undo, ctx.parts = undo, parts
        ctx.save_for_backward(x1, x2, *weights)
        return x1, x2

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Any, ...]:
        one, two, *weights = ctx.saved_tensors
        found: list[Tensor] = []
        d1, d2 = slopes
        for w_f, w_g in zip(weights[-2::-2], weights[::-2], strict=True):
            one, two, d1, d2, to_f, to_g = ctx.undo(*ctx.parts, w_f, w_g, one, two, d1, d2)
            found = [to_f, to_g, *found]
        return None, None, d1, d2, *found


def reversible(
    undo: Undo, parts: tuple[Part, Part], x: Tensor, weights: Sequence[Tensor]
) -> Tensor:
    """A stack of reversible blocks that keeps the last block's outputs alone."""
    one, two = _Reversible.apply(undo, parts, x, x, *weights)  # type: ignore[misc]
    return one + two


def kept_by_all(parts: tuple[Part, Part], x: Tensor, weights: Sequence[Tensor]) -> Tensor:
    """The same numbers, by ordinary blocks: each keeps what it needs for the way back."""
    f, g = parts
    one = two = x
    for w_f, w_g in zip(weights[::2], weights[1::2], strict=True):
        one = one + f(two, w_f)
        two = two + g(one, w_g)
    return one + two

"""Tensors that `torch.vmap` hands on side by side, as one: taken apart, and put together again."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import Any

import torch
from torch import Tensor
from torch._C._functorch import (
    _add_batch_dim,
    get_unwrapped,
    is_batchedtensor,
    is_gradtrackingtensor,
    is_legacy_batchedtensor,
    maybe_get_bdim,
    maybe_get_level,
)
from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack

Some = Sequence[Tensor | None]
_functions: Any = torch  # of which not all are told
Place = Mapping[int, int]  # which entry, by the level of the transform that has them side by side


def plain(tensor: Tensor | None) -> Tensor | None:
    """A tensor without what finds its slopes."""
    while tensor is not None and is_gradtrackingtensor(tensor):
        tensor = get_unwrapped(tensor)
    return tensor


def spread(
    do: Callable[[Place, Some], Some], tensors: Some, sizes: Mapping[int, int] | None = None
) -> Some:
    """What is found for these tensors: for each of their entries, where they have some.

    Args:
        do: finds it for plain tensors, which are the entries at a place.
        tensors: that may hold many side by side.
        sizes: how many entries there are at a level, whatever the tensors have.
    """
    if any(one is not None and is_legacy_batchedtensor(one) for one in tensors):
        return _spread_older(do, tensors)
    opened = [_opened(one) for one in tensors]
    sizes = dict(sizes or {})
    for one, levels in opened:
        sizes |= zip(levels, () if one is None else one.shape, strict=False)
    if not sizes:
        return do({}, [one for one, _ in opened])
    order = sorted(sizes)
    with temporarily_clear_interpreter_stack():  # inside of it each new tensor is wrapped
        found = [
            do(place, [_entry(one, levels, place) for one, levels in opened])
            for numbers in product(*(range(sizes[level]) for level in order))
            for place in [dict(zip(order, numbers, strict=True))]
        ]
        columns = [stacked(column) for column in zip(*found, strict=True)]
        shape = [sizes[level] for level in order]
        whole = [one if one is None else one.view(*shape, *one.shape[1:]) for one in columns]
    return [_closed(one, order) for one in whole]


def entries(i: int, axes: Sequence[int | None], tensors: Some) -> list[Tensor | None]:
    """The i-th entry of each tensor along its axis; where that is None, the tensor as it is."""
    pairs = zip(tensors, axes, strict=True)
    return [one if one is None or axis is None else one.select(axis, i) for one, axis in pairs]


def stacked(column: Iterable[Tensor | None]) -> Tensor | None:
    """Tensors as one, with zeros for those that are none; None if all are."""
    column = [*column]
    known = next((one for one in column if one is not None), None)
    if known is None:
        return None
    return torch.stack([torch.zeros_like(known) if one is None else one for one in column])


def _opened(tensor: Tensor | None) -> tuple[Tensor | None, list[int]]:
    """A plain tensor with the entries of each level along an axis, and these levels, in order."""
    tensor = plain(tensor)
    if tensor is None or not is_batchedtensor(tensor):
        return tensor, []
    level, axis = maybe_get_level(tensor), maybe_get_bdim(tensor)
    inner, below = _opened(get_unwrapped(tensor))
    with temporarily_clear_interpreter_stack():
        moved = None if inner is None else inner.movedim(axis + len(below), len(below))
    return moved, [*below, level]


def _entry(tensor: Tensor | None, levels: Sequence[int], place: Place) -> Tensor | None:
    return None if tensor is None else tensor[tuple(place[level] for level in levels)]


def _closed(tensor: Tensor | None, levels: Sequence[int]) -> Tensor | None:
    for level in levels:
        tensor = None if tensor is None else _add_batch_dim(tensor, 0, level)
    return tensor


def _spread_older(do: Callable[[Place, Some], Some], tensors: Some) -> Some:
    """The same where `torch.autograd.grad` has made one of many: `is_grads_batched`."""
    level = torch._C._vmapmode_increment_nesting() - 1
    torch._C._vmapmode_decrement_nesting()
    opened = [_opened_older(one, level) for one in tensors]
    size = next(one.shape[0] for one, axis in opened if one is not None and axis == 0)
    found = [
        do({}, [one if axis is None or one is None else one[i] for one, axis in opened])
        for i in range(size)
    ]
    columns = (stacked(column) for column in zip(*found, strict=True))
    return [one if one is None else _functions._add_batch_dim(one, 0, level) for one in columns]


def _opened_older(tensor: Tensor | None, level: int) -> tuple[Tensor | None, int | None]:
    """A plain tensor, and along which axis its entries are."""
    if tensor is None or not is_legacy_batchedtensor(tensor):
        return tensor, None
    return _functions._remove_batch_dim(tensor, level, 1, 0), 0

"""Tensors that lie in each other's memory: whether they do, where, and views by what is told."""

from math import prod
from typing import Any

import torch
from torch import Tensor
from torch.nn import Parameter

from autograder.bridge.arrays import is_shape

MAX_ROOM = 16_000_000  # entries of memory that are looked at one by one
NOBODY = 2  # uses of a tensor's memory when nothing else uses it: its own and the one to count


def is_tensor(value: Any) -> bool:
    """Whether this is an ordinary tensor or parameter, of those that cross."""
    return (type(value) is Tensor or type(value) is Parameter) and not value.is_inference()


def is_plain(value: Any) -> bool:
    """Whether this is one of any, with entries in memory that are read as they are."""
    return (
        is_tensor(value)
        and value.layout is torch.strided
        and value.is_cpu
        and not (value.is_conj() or value.is_neg())
    )


def is_constant(value: Any) -> bool:
    """Whether this is a tensor that crosses, without history, and no parameter."""
    return type(value) is Tensor and not value.requires_grad and not value.is_inference()


def owner_of(value: Tensor) -> int:
    """What tells whose memory a tensor uses, as long as anything uses it."""
    return value.untyped_storage()._cdata


def span_of(value: Tensor) -> tuple[int, int] | None:
    """The first address of a tensor's entries and the one after the last; None if it has none."""
    start = value.data_ptr()
    if not start or not value.numel():
        return None
    return start, start + _room(value.shape, value.stride()) * value.itemsize


def is_borrowed(value: Tensor) -> bool:
    """Whether a tensor's memory is somebody else's, as an array's."""
    return not value.untyped_storage().resizable()


def of_array(value: Any) -> Tensor | None:
    """A tensor in the memory of an array; None if there is no such one."""
    steps = value.strides if value.flags.writeable and value.dtype.isnative else [-1]
    if min(steps, default=0) < 0:
        return None
    try:
        return torch.from_numpy(value)
    except (TypeError, ValueError):  # of a kind that tensors do not have
        return None


def as_array(value: Tensor) -> Any:
    """An array in the memory of a tensor; None if there is no such one."""
    try:
        return value.detach().numpy() if is_plain(value) else None
    except (TypeError, RuntimeError):  # of a kind that arrays do not have
        return None


def is_used_elsewhere(value: Tensor, but_for: int = 0) -> bool:
    """Whether anything else uses a tensor's memory, but for so many."""
    storage = value.untyped_storage()
    uses: int = torch._C._storage_Use_Count(storage._cdata)  # type: ignore[attr-defined]
    return uses > NOBODY + but_for


def is_looked_at(value: Tensor) -> bool:
    """Whether there are views of a tensor; what it is itself a view of is none."""
    return is_used_elsewhere(value, int(value._is_view()))


def overwrite(value: Tensor, fresh: Tensor) -> bool:
    """Give a tensor the entries of another one, in place; whether they fit."""
    if (value.dtype, value.shape) != (fresh.dtype, fresh.shape):
        return False
    with torch.no_grad():
        value.copy_(fresh)
    return True


def part_of(value: Tensor, whole: Tensor) -> list[Any] | None:
    """Where in another tensor's memory this one lies; None if it does not, or not as such entries.

    It is: the place of its first entry there, its sizes and steps, and the other one's steps.
    """
    if value.dtype is not whole.dtype or not 0 < value.numel() <= whole.numel():
        return None
    if any(one.is_conj() or one.is_neg() for one in (value, whole)):
        return None
    start, rest = divmod(value.data_ptr() - whole.data_ptr(), value.itemsize)
    room, all_room = (_room(one.shape, one.stride()) for one in (value, whole))
    if rest or start < 0 or start + room > all_room:
        return None
    return [start, list(value.shape), list(value.stride()), list(whole.stride())]


def view(whole: Any, told: Any) -> Tensor | None:
    """A view of a tensor of ours, of nothing but its own entries; None if there is no such one."""
    if not is_plain(whole):
        return None
    if not told:
        return whole.detach()
    start, shape, steps, laid = told
    if not is_shape(shape) or not _are_steps(steps, shape) or type(start) is not int:
        return None
    if not _are_steps(laid, whole.shape) or not _is_laid(whole, laid):
        return None
    room = _room(whole.shape, laid)
    if not 0 < prod(shape) <= whole.numel() or not 0 <= start <= room - _room(shape, steps):
        return None
    if not whole.is_contiguous() and not (  # what lies between its entries is somebody else's
        room <= MAX_ROOM and _marks(whole, room).as_strided(shape, steps, start).all()
    ):
        return None
    return whole.detach().as_strided(shape, steps, whole.storage_offset() + start)


def _is_laid(whole: Tensor, steps: list[int]) -> bool:
    """Whether these are the steps that a tensor takes through memory."""
    axes = zip(steps, whole.stride(), whole.shape, strict=True)
    return all(told == step for told, step, size in axes if size > 1)


def _marks(whole: Tensor, room: int) -> Tensor:
    """Of each place in memory between a tensor's first entry and its last, whether it is one."""
    marks = torch.zeros(room, dtype=torch.bool, device="cpu")
    own = marks.as_strided(whole.shape, whole.stride())
    for axis, step in enumerate(whole.stride()):
        own = own.narrow(axis, 0, 1) if step == 0 else own
    own.fill_(True)
    return marks


def _room(shape: Any, steps: Any) -> int:
    return 1 + sum((size - 1) * step for size, step in zip(shape, steps, strict=True))


def _are_steps(steps: Any, shape: Any) -> bool:
    return (
        isinstance(steps, list)
        and len(steps) == len(shape)
        and all(type(step) is int and 0 <= step < 2**40 for step in steps)
    )

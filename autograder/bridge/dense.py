"""Ordinary tensors, with entries in memory: checked, told by their bytes, and made of them."""

import ctypes
from collections.abc import Sequence
from contextlib import nullcontext
from math import prod
from typing import Any

import torch
from torch import Tensor
from torch._C import _len_torch_function_stack as _count_modes
from torch._C._functorch import is_functorch_wrapped_tensor
from torch.nn import Parameter  # by name: an answer may put something else there
from torch.nn.parameter import UninitializedBuffer, UninitializedParameter, is_lazy

from autograder.bridge.wire import WireError

DTYPES = {
    str(kind).removeprefix("torch."): kind
    for kind in (
        *(torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64),
        *(torch.float16, torch.bfloat16, torch.float32, torch.float64),
        *(torch.complex64, torch.complex128),
    )
}
NAMES = {kind: name for name, kind in DTYPES.items()}
MAX_SPREAD = 16  # how much larger than its entries a tensor's memory may be
MAX_LAID = 16_000_000  # entries of memory up to which a tensor may be spread at all
CURE = "give an ordinary (dense) tensor on the CPU"
ORDINARY = (Tensor, Parameter)  # themselves, and no class made of them
# of a lazy layer, until it is called: the other end is told of it when it has entries
EMPTY = frozenset((type(None), UninitializedParameter, UninitializedBuffer))
_STRIDED = torch.strided
_AS_IT_IS = nullcontext()
_memcmp = ctypes.CDLL(None).memcmp
_memcmp.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t)


def check(value: Tensor) -> None:
    """Refuse a tensor that is no ordinary one, or has a gradient that is none, by its name."""
    words = odd(value)
    if words:
        raise WireError(f"{words} cannot be handed over: {CURE}")


def odd(value: Tensor) -> str:
    """What is odd about a tensor or its gradient, in words."""
    words = _oddity(value)
    grad = None if words else gradient_of(value)
    if grad is not None and (said := _oddity(grad)):
        words = f"a tensor whose gradient is {said}"
    return words


def _oddity(value: Tensor) -> str:
    """What is odd about a tensor, in words; empty for entries in memory, of a kind that crosses."""
    if is_lazy(value):
        return "a module whose parameters are uninitialised until the first call"
    if is_functorch_wrapped_tensor(value):
        return "a tensor inside of torch.vmap or torch.func"
    if _dispatch_of(type(value)) is not _dispatch_of(Tensor):
        return f"a tensor of the special class {type(value).__name__[:50]}"
    if value.is_nested:
        return "a nested tensor"
    if value.is_quantized:
        return "a quantized tensor"
    if value.layout is not torch.strided:
        return f"a tensor of the layout {value.layout}"
    if not value.is_cpu:
        return f"a tensor on the device {value.device}"
    if value.dtype not in NAMES:
        return f"a tensor of the kind {value.dtype}"
    return ""


def _dispatch_of(kind: Any) -> Any:
    return kind.__torch_dispatch__


def fits(ours: Tensor, fresh: Tensor) -> bool:
    """Whether a tensor can be written over another: no entries of that share their memory."""
    return ours.shape == fresh.shape and 0 not in ours.stride()


def gradient_of(value: Tensor) -> Tensor | None:
    """A leaf's gradient, if it has one."""
    return value.grad if value.is_leaf and value.requires_grad else None


def is_tensor(value: Any) -> bool:
    """Whether this is a tensor by its memory, not by what it says of itself."""
    return issubclass(type(value), Tensor)


def reform(ours: Tensor, fresh: Tensor) -> None:
    """Give a tensor of ours another shape or dtype in place."""
    alike = ours.dtype == fresh.dtype and ours.numel() == fresh.numel() and ours.is_contiguous()
    if alike:  # the same memory: others may look at it
        ours.as_strided_(fresh.shape, _steps(fresh.shape), ours.storage_offset())
    else:
        ours.data = fresh.detach().clone()


def _steps(shape: Sequence[int]) -> list[int]:
    """The strides of a tensor of this shape without gaps."""
    return [prod(size or 1 for size in shape[axis + 1 :]) for axis in range(len(shape))]


def bits(value: Any) -> Any:
    """What tells whether a tensor, its gradient or a generator was changed."""
    if value is None:
        return None
    if isinstance(value, torch.Generator):
        return bytes_of(value.get_state())
    grad = gradient_of(value)
    return (
        value.dtype,
        tuple(value.shape),
        value.requires_grad,
        bytes_of(value.detach()),
        None if grad is None else bytes_of(grad.detach()),
    )


def has_bits(value: Any, told: Any) -> bool:
    """Whether `bits(value)` is surely this, found out without a copy of the entries."""
    if type(told) is not tuple or len(told) != 5 or type(value) not in ORDINARY:
        return False
    kind, shape, requires_grad, entries, gradient = told
    try:
        if value.requires_grad is not requires_grad or not _has_entries(
            value, kind, shape, entries
        ):
            return False
        grad = value.grad if requires_grad and value.is_leaf else None
        if grad is None or gradient is None:
            return grad is gradient
        return type(grad) in ORDINARY and _has_entries(grad, kind, shape, gradient)
    except RuntimeError:  # of a kind that has no entries in memory: it is looked at in full
        return False


def _has_entries(value: Tensor, kind: torch.dtype, shape: tuple[int, ...], entries: bytes) -> bool:
    """Whether a tensor is of this kind and holds these bytes; not sure of one laid out oddly."""
    if value.dtype is not kind or value.shape != shape:  # a nested one has no shape: it raises
        return False
    plain = value.is_cpu and value.layout is _STRIDED and value.is_contiguous()
    if not plain or value.is_neg() or (kind.is_complex and value.is_conj()):
        return False
    size = len(entries)
    if not size:
        return True
    start = value.storage_offset() * kind.itemsize
    if value.untyped_storage().nbytes() < start + size:  # its memory was given up
        return False
    return _memcmp(value.data_ptr(), entries, size) == 0


def bytes_of(value: Tensor) -> bytes:
    """The entries' bytes in reading order, whatever the layout in memory."""
    if not value.numel():
        return b""
    flat = value.resolve_conj().resolve_neg().contiguous()
    if flat.untyped_storage().nbytes() < flat.nbytes:
        raise WireError("a tensor whose memory was given up cannot be handed over")
    return ctypes.string_at(flat.data_ptr(), flat.nbytes)  # by `numpy()` it could grow no more


def tensor_of(kind: torch.dtype, shape: list[int], strides: Any, data: Any) -> Tensor:
    """A tensor from its bytes, laid out in memory as it was at the other end."""
    count = prod(shape)
    if count * kind.itemsize != len(data):
        raise WireError("a message holds a tensor that does not fit its shape")
    # without a mode it is the CPU, which is much faster than to say so
    with torch.device("cpu") if _count_modes() else _AS_IT_IS:
        if not count:
            return torch.empty(shape, dtype=kind)
        raw = torch.frombuffer(bytearray(data), dtype=torch.uint8 if kind is torch.bool else kind)
    # in memory of its own, which can be resized
    made = (raw != 0 if kind is torch.bool else raw.clone()).reshape(shape)
    return made if strides is None else _laid_out(made, strides)


def is_strides(strides: Any, shape: list[int]) -> bool:
    """Whether this is a list of steps that a tensor of this shape may take through memory."""
    return (
        isinstance(strides, list)
        and len(strides) == len(shape)
        and all(type(step) is int and 0 <= step < 2**40 for step in strides)
    )


def _laid_out(made: Tensor, strides: list[int]) -> Tensor:
    """The same entries with these strides."""
    room = 1 + sum((size - 1) * step for size, step in zip(made.shape, strides, strict=True))
    if room > MAX_SPREAD * made.numel() + 1024 or room > made.numel() + MAX_LAID:
        return made
    if _overlap(made.shape, strides):
        return made
    laid = torch.zeros(room, dtype=made.dtype, device="cpu").as_strided(made.shape, strides)
    fill(laid, made)
    return laid


def fill(target: Tensor, source: Tensor) -> None:
    """Give a tensor the entries of another one; a repeated axis has its entries once."""
    if target.layout is torch.strided:
        for axis, (step, size) in enumerate(zip(target.stride(), target.shape, strict=True)):
            if step == 0 and size > 1:
                target, source = target.narrow(axis, 0, 1), source.narrow(axis, 0, 1)
    target.copy_(source)


def _overlap(shape: Sequence[int], strides: list[int]) -> bool:
    """Whether two entries may share memory, but for those of a repeated axis."""
    reach = 0
    for step, size in sorted(zip(strides, shape, strict=True)):
        if size > 1 and step:
            if step <= reach:
                return True
            reach += (size - 1) * step
    return False


def leafed(tensor: Tensor, flags: int) -> Tensor:
    """What was in the middle of a graph is so here, too."""
    if tensor.requires_grad and not flags & 2 and not flags & 4:
        with torch.enable_grad():
            return tensor.clone()  # not a view: it may be changed in place
    return tensor

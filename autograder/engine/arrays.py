"""NumPy arrays on the line, if NumPy is loaded; and the bits of anything that can be changed."""

import sys
import warnings
from math import prod
from typing import Any

from autograder.engine.wire import MAX_BYTES, Decoder, Encoder, WireError

MAX_AXES = 32
SIZES = {"int": (8, 16, 32, 64), "uint": (8, 16, 32, 64), "float": (16, 32, 64)}
SIZES["complex"] = (64, 128)
KINDS = {"bool", *(f"{kind}{size}" for kind, sizes in SIZES.items() for size in sizes)}


def _numpy() -> Any:
    return sys.modules.get("numpy")


def node(encoder: Encoder, value: Any) -> Any:
    """The node of an array, a NumPy number or dtype; None for anything else."""
    numpy = _numpy()
    if numpy is None:
        return None
    if isinstance(value, numpy.ndarray) and value.dtype.name in KINDS:
        encoder.keep(value)
        return ["A", *_written(encoder, numpy.asarray(value))]
    if isinstance(value, numpy.generic) and value.dtype.name in KINDS:
        return ["AS", *_written(encoder, numpy.asarray(value))]
    if isinstance(value, numpy.dtype) and value.name in KINDS:
        return ["DT", value.name]
    return None


def _written(encoder: Encoder, array: Any) -> list[Any]:
    native = array.astype(array.dtype.newbyteorder("="), copy=False)
    return [array.dtype.name, list(array.shape), encoder.frame.add(native.tobytes())]


def read(decoder: Decoder, parts: list[Any]) -> Any:
    """An array from its node's parts, checked against its buffer."""
    numpy = _numpy()
    name, shape, place = parts
    if numpy is None or name not in KINDS or not is_shape(shape):
        raise WireError("a message holds an array of unknown kind")
    kind = numpy.dtype(name)
    data = decoder.buffer(place)
    if prod(shape) * kind.itemsize != len(data):
        raise WireError("a message holds an array that does not fit its shape")
    if name == "bool":
        return (numpy.frombuffer(data, "uint8") != 0).reshape(shape)
    return numpy.frombuffer(data, kind).reshape(shape).copy()


def dtype(name: Any) -> Any:
    """A dtype by its name."""
    numpy = _numpy()
    if numpy is None or name not in KINDS:
        raise WireError("a message names an unknown dtype")
    return numpy.dtype(name)


def is_shape(shape: Any) -> bool:
    """Whether this is a list of sizes that an array which crosses may have.

    An empty one may claim no sizes that a full one could not have: a test may make a tensor of
    them, and their product may not fit into the numbers that libraries count in.
    """
    return (
        isinstance(shape, list)
        and len(shape) <= MAX_AXES
        and all(type(size) is int and 0 <= size <= MAX_BYTES for size in shape)
        and prod(size or 1 for size in shape) <= MAX_BYTES
    )


def bits(value: Any) -> Any:
    """What tells whether an array, tensor or generator was changed."""
    numpy = _numpy()
    if numpy is not None and isinstance(value, numpy.ndarray):
        return (value.dtype.name, value.shape, value.tobytes())
    from autograder.engine import tensors  # only what is no array comes here

    return tensors.bits(value)


def overwrite(ours: Any, fresh: Any) -> None:
    """Make an array of ours in place what an answer made of its copy: values, shape, dtype."""
    if type(fresh) is not _numpy().ndarray:
        raise WireError("a message puts something else in the place of an array")
    if not ours.flags.writeable:
        raise WireError("the answer changed an array in place that is read-only")
    if ours.nbytes != fresh.nbytes:  # its memory cannot be given up: others may look at it
        raise WireError("the answer changed the size of an array in place; give a new one instead")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        if ours.dtype.name != fresh.dtype.name:
            ours.shape = ours.size
            ours.dtype = fresh.dtype
        if ours.shape != fresh.shape:
            ours.shape = fresh.shape
    ours[...] = fresh


def snapshot(value: Any) -> Any:
    """A copy of an array; anything else as it is."""
    numpy = _numpy()
    return value.copy() if numpy is not None and isinstance(value, numpy.ndarray) else value

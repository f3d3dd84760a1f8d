"""NumPy arrays on the line, if NumPy is loaded; and the bits of anything that can be changed."""

import re
import sys
import warnings
from math import prod
from typing import Any

from autograder.bridge import codecs
from autograder.bridge.wire import MAX_BYTES, Decoder, Encoder, WireError

MAX_AXES = 32
MAX_FIELDS = 100  # of a record
MAX_LETTER = 0x10FFFF
SIZES = {"int": (8, 16, 32, 64), "uint": (8, 16, 32, 64), "float": (16, 32, 64)}
SIZES["complex"] = (64, 128)
KINDS = {"bool", *(f"{kind}{size}" for kind, sizes in SIZES.items() for size in sizes)}
KINDS |= {"longdouble", "clongdouble"}  # both ends are of one machine
FORTRAN, FIXED, MATRIX = "FRM"  # by columns, read-only, a matrix: what an array may be besides
_UNITS = "Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as"
_PLAIN = re.compile(rf"[US][1-9][0-9]{{0,7}}|[Mm]8(\[([1-9][0-9]{{0,5}})?({_UNITS})\])?")


def _numpy() -> Any:
    return sys.modules.get("numpy")


def is_true(value: Any) -> bool:
    """Whether this is NumPy's own word for true."""
    numpy: Any = _numpy()
    return numpy is not None and type(value) is numpy.bool_ and bool(value)


def node(encoder: Encoder, value: Any) -> Any:
    """The node of an array, a NumPy number or dtype; None for anything else."""
    numpy: Any = _numpy()
    if numpy is None:
        return None
    if isinstance(value, numpy.ndarray):
        told = _kind_of(value.dtype)
        if told is None:
            return None
        if isinstance(value, numpy.ma.MaskedArray):
            raise WireError("a masked array does not cross: its mask would be lost; fill it first")
        encoder.keep(value)
        more = _more(value)
        data = encoder.frame.add(_packed(value, told, "F" if FORTRAN in more else "C"))
        return ["A", told, list(value.shape), data, *([more] if more else [])]
    if isinstance(value, numpy.generic) and value.dtype.kind not in "SU":  # those are plain texts
        told = _kind_of(value.dtype)
        return None if told is None else ["AS", told, _packed(value, told).hex()]
    if isinstance(value, numpy.dtype) and _kind_of(value) in (*KINDS,):
        return ["DT", _kind_of(value)]
    return None


def _more(value: Any) -> str:
    """What an array is besides its entries, in letters."""
    flags = value.flags
    found = {
        FORTRAN: flags.f_contiguous and not flags.c_contiguous,
        FIXED: not flags.writeable,
        MATRIX: isinstance(value, _numpy().matrix) and value.ndim == 2,
    }
    return "".join(letter for letter, holds in found.items() if holds)


def _kind_of(kind: Any) -> Any:
    """What tells the other end of a dtype; None for one that does not cross."""
    if kind.name in KINDS:
        return kind.name
    if kind.kind in "fc" and kind.isnative:  # its name tells its size, which machines differ in
        return "longdouble" if kind.kind == "f" else "clongdouble"
    if kind.names is None:
        return kind.str[1:] if _PLAIN.fullmatch(kind.str[1:]) else None
    fields = [kind[name] for name in kind.names]
    parts = [
        [name, _kind_of(field.base), list(field.shape)]
        for name, field in zip(kind.names, fields, strict=True)
    ]
    told = ["rec" if kind.type is _numpy().record else "void", *parts]
    return told if _are_fields(parts) else None


def _packed(value: Any, told: Any, order: Any = "C") -> bytes:
    """The bytes of an array or number, as the other end's dtype has them."""
    return _numpy().asarray(value).astype(_dtype(told), copy=False).tobytes(order)


def _are_fields(parts: list[Any]) -> bool:
    """Whether these are fields of records: public names, each with a plain kind and a shape."""
    return 0 < len(parts) <= MAX_FIELDS and all(
        isinstance(part, list)
        and len(part) == 3
        and isinstance(part[0], str)
        and 0 < len(part[0]) <= 100
        and not part[0].startswith("_")  # by such names libraries ask what its memory is
        and isinstance(part[1], str)
        and (part[1] in KINDS or bool(_PLAIN.fullmatch(part[1])))
        and is_shape(part[2])
        for part in parts
    )


def _dtype(told: Any) -> Any:
    """The dtype that the other end tells of, every part of which is checked."""
    numpy = _numpy()
    if numpy is None:
        raise WireError("a message holds an array of unknown kind")
    if isinstance(told, str) and (told in KINDS or _PLAIN.fullmatch(told)):
        return numpy.dtype(told)
    if not isinstance(told, list) or told[:1] not in (["rec"], ["void"]):
        raise WireError("a message holds an array of unknown kind")
    parts = told[1:]
    if not _are_fields(parts) or len({part[0] for part in parts}) != len(parts):
        raise WireError("a message holds an array of unknown kind")
    made = numpy.dtype([(name, kind, tuple(shape)) for name, kind, shape in parts])
    if made.itemsize > MAX_BYTES:
        raise WireError("a message holds an array of unknown kind")
    return numpy.dtype((numpy.record, made)) if told[0] == "rec" else made


def read(decoder: Decoder, parts: list[Any]) -> Any:
    """An array from its node's parts, checked against its buffer."""
    told, shape, place, *rest = parts
    kind, more = _dtype(told), rest[0] if rest else ""
    if not is_shape(shape) or type(more) is not str or len(rest) > 1:
        raise WireError("a message holds an array of unknown kind")
    made = _made(kind, shape, decoder.buffer(place), "F" if FORTRAN in more else "C")
    if kind.type is _numpy().record:
        made = made.view(_numpy().recarray)
    elif MATRIX in more and len(shape) == 2:
        made = made.view(_numpy().matrix)
    made.flags.writeable = FIXED not in more
    return made


def view_node(value: Any, whole: Any) -> list[Any] | None:
    """Where in the memory of another array, which crossed, this one lies; None if elsewhere.

    What is read there is an ordinary array.
    """
    if value is whole or isinstance(value, _numpy().matrix):
        return None
    return part_of(value, whole)


def part_of(value: Any, whole: Any) -> list[Any] | None:
    """The same of any two arrays."""
    if not value.size or value.size > whole.size:
        return None
    if value.dtype != whole.dtype or not _is_dense(whole) or whole.dtype.names:
        return None
    if value.flags.writeable != whole.flags.writeable:
        return None
    (start, end), (low, high) = span_of(whole), span_of(value)
    steps = [_address(value) - start, *value.strides]
    if low < start or high > end or _between(steps, whole):
        return None
    return [steps[0], list(value.shape), steps[1:]]


def span_of(value: Any) -> Any:
    """The first address of an array's entries and the one after the last; None if it has none."""
    if not value.size:
        return None
    first = _address(value)
    if value.flags.c_contiguous:
        return first, first + value.nbytes
    ends = [step * (size - 1) for step, size in zip(value.strides, value.shape, strict=True)]
    low, high = (first + sum(pick(end, 0) for end in ends) for pick in (min, max))
    return low, high + value.itemsize


def _address(value: Any) -> int:
    return value.__array_interface__["data"][0]


def _is_dense(whole: Any) -> bool:
    """Whether an array's entries lie beside each other, by rows or columns: so they cross."""
    return whole.flags.c_contiguous or whole.flags.f_contiguous


def _between(steps: list[int], whole: Any) -> bool:
    """Whether these lead to where no entry begins."""
    return any(step % whole.itemsize for step in steps)


def read_view(kept: list[Any], parts: list[Any]) -> Any:
    """A view of an array that was handed over, within its memory."""
    place, offset, shape, strides = parts
    if not is_shape(shape) or any(type(one) is not int for one in (place, offset, *strides)):
        raise WireError("a message holds a view that is none")
    whole: Any = kept[place] if 0 <= place < len(kept) else None
    if not has_memory(whole) or not 0 < prod(shape) <= whole.size or whole.dtype.names:
        raise WireError("a message holds a view of something else")
    if _between([offset, *strides], whole):
        raise WireError("a message holds a view of something else")
    if not _is_dense(whole) or not whole.dtype.isnative:
        whole = whole.astype(whole.dtype.newbyteorder("="), order="C")  # as it crossed
    whole = whole if whole.flags.c_contiguous else whole.T
    return _numpy().ndarray(shape, whole.dtype, whole, offset, strides)  # which checks its bounds


def read_number(parts: list[Any]) -> Any:
    """A number of NumPy's from its node's parts."""
    told, text = parts
    return _made(_dtype(told), [], bytes.fromhex(text))[()]


def _made(kind: Any, shape: list[int], data: bytes | memoryview, order: Any = "C") -> Any:
    numpy = _numpy()
    if prod(shape) * kind.itemsize != len(data):
        raise WireError("a message holds an array that does not fit its shape")
    made = numpy.frombuffer(data, kind).reshape(shape, order=order).copy(order)
    for part in [made] if kind.names is None else [made[name] for name in kind.names]:
        _check_entries(part)
    return made


def _check_entries(part: Any) -> None:
    """Flags are made 0 or 1; what should be characters and is none is refused."""
    if part.dtype.kind == "b":
        part[...] = part.view("uint8") != 0
    elif part.dtype.kind == "U" and part.size:
        letters = _numpy().ascontiguousarray(part).view("uint32")
        if letters.max() > MAX_LETTER:
            raise WireError("a message holds an array of texts that are none")


def dtype(name: Any) -> Any:
    """A dtype by its name."""
    numpy = _numpy()
    if numpy is None or name not in KINDS:
        raise WireError("a message names an unknown dtype")
    return numpy.dtype(name)


def is_number_type(kind: type) -> bool:
    """Whether this is NumPy's class of one kind of number or text."""
    numpy = _numpy()
    return numpy is not None and any(
        kind is numpy.dtype(name).type for name in (*KINDS, "U", "S", "M8", "m8")
    )


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


def is_array(value: Any) -> bool:
    """Whether this is an ordinary array."""
    numpy = _numpy()
    return numpy is not None and type(value) is numpy.ndarray


def is_function(value: Any) -> bool:
    """Whether this is one of the library's functions, which are of classes of its own."""
    numpy = _numpy()
    return numpy is not None and type(value) in (numpy.ufunc, type(numpy.mean))


def has_memory(value: Any) -> bool:
    """Whether this is an array, of whatever class, that is nothing but its entries."""
    numpy = _numpy()
    if numpy is None or not issubclass(type(value), numpy.ndarray):
        return False
    return not issubclass(type(value), numpy.ma.MaskedArray)


def bits(value: Any) -> Any:
    """What tells whether an array, tensor or generator was changed."""
    numpy = _numpy()
    if numpy is not None and isinstance(value, numpy.ndarray):
        return (value.dtype.name, value.shape, value.tobytes())
    codec = codecs.registered()  # only what is no array comes here
    if codec is None:
        raise WireError(f"a {type(value).__name__} has no bits to look at")
    return codec.bits(value)


def overwrite(ours: Any, fresh: Any) -> None:
    """Make an array of ours in place what an answer made of its copy: values, shape, dtype."""
    if type(fresh) not in (_numpy().ndarray, _numpy().recarray, _numpy().matrix):
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


def write(ours: Any, fresh: Any) -> bool:
    """Give an array other entries, in place, though nobody else may; whether that can be done."""
    was = ours.flags.writeable
    try:
        ours.flags.writeable = True
    except ValueError:  # its memory is not its own
        return False
    ours[...] = fresh
    ours.flags.writeable = was
    return True


def snapshot(value: Any) -> Any:
    """A copy of an array; anything else as it is."""
    numpy = _numpy()
    return value.copy() if numpy is not None and isinstance(value, numpy.ndarray) else value

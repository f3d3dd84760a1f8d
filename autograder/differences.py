"""Compare what an answer gave with what it should have given, and say the difference in words.

Tensors and arrays are known by what they can do (shape, dtype, tolist), so no library is named and
none is needed. The words are those of the visible checks in a student's own notebook.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from autograder.results import Crossing, Opaque, Raised, Transcript

DOUBLE = 1e-6, 1e-9  # relative and absolute tolerance in double precision
SINGLE = 1e-4, 1e-6
LONGEST = 60  # characters of a value that is shown
DEEPEST = 30
PLAIN = bool, int, float, complex, str, bytes, Opaque, Raised


@dataclass(frozen=True, eq=False)
class Kept:
    """A tensor or array as a transcript keeps it: what is compared, without its library."""

    type_name: str
    dtype: str
    shape: tuple[int, ...]
    gradient: bool  # whether a gradient goes through it
    numbers: Any  # an array of numpy; nested lists where there is none


def keep(transcript: Transcript) -> Transcript:
    """A transcript whose outcomes can be compared and stored."""
    return tuple(replace(call, arguments=(), outcome=kept(call.outcome)) for call in transcript)


def kept(value: Any, depth: int = 0) -> Any:
    """A value as plain data: arrays as Kept, objects of unknown kinds by their names."""
    if value is None or type(value) in (*PLAIN, Kept):
        return value
    if depth > DEEPEST:
        return Opaque("object", type(value).__name__)
    if is_array(value):
        gradient = bool(getattr(value, "requires_grad", False))
        form = _type_name(value), str(value.dtype), tuple(map(int, value.shape)), gradient
        return Kept(*form, _numbers(value))
    if isinstance(value, dict):
        return {_key(key): kept(part, depth + 1) for key, part in value.items()}
    if isinstance(value, list):
        return [kept(part, depth + 1) for part in value]
    if isinstance(value, tuple):
        return tuple(kept(part, depth + 1) for part in value)
    if isinstance(value, set | frozenset):
        return frozenset(map(_key, value))
    text = repr(value)
    return Opaque(text if len(text) < 100 and " at 0x" not in text else "object", _type_name(value))


def is_array(value: Any) -> bool:
    """Whether a value is a tensor, an array or one number of an array."""
    return all(hasattr(value, name) for name in ("shape", "dtype", "tolist"))


def same(theirs: Any, ours: Any) -> bool:
    """Whether two kept outcomes are equal: type, shape, dtype and, within rounding, values."""
    if _is_number(theirs) and _is_number(ours):
        return _close(theirs, ours)
    if type(theirs) is not type(ours):
        return False
    if isinstance(theirs, Kept):
        return _form(theirs) == _form(ours) and _same_numbers(theirs, ours)
    if isinstance(theirs, Raised):
        return theirs.type_name == ours.type_name
    if isinstance(theirs, Opaque):
        return theirs.kind == ours.kind
    if isinstance(theirs, list | tuple):
        return len(theirs) == len(ours) and all(map(same, theirs, ours))
    if isinstance(theirs, dict):
        return theirs.keys() == ours.keys() and all(same(theirs[key], ours[key]) for key in ours)
    return theirs == ours


def same_call(theirs: Crossing, ours: Crossing) -> bool:
    """Whether two calls have the same name, the same outcome and the same effect on arguments."""
    return (
        theirs.what == ours.what
        and sorted(theirs.changed) == sorted(ours.changed)
        and same(theirs.outcome, ours.outcome)
    )


def in_words(theirs: Any, ours: Any) -> str:
    """How the first kept outcome differs from the second, in a sentence; empty if it does not."""
    for where, one, other in _leaves("", theirs, ours):
        if not same(one, other):
            sentence = _sentence(one, other)
            return f"In {where} of the result: {sentence}" if where else sentence
    return ""


def call_in_words(theirs: Crossing, ours: Crossing) -> str:
    """How a call went other than it should, in a sentence."""
    if sorted(theirs.changed) != sorted(ours.changed) and theirs.changed:
        return f"{theirs.what} changed what it was handed ({', '.join(theirs.changed)}) in place."
    return f"{theirs.what}: {in_words(theirs.outcome, ours.outcome)}"


def shown(value: Any) -> str:
    """A plain value as a person would write it, cut if it is long."""
    if isinstance(value, float):
        return f"{value:.6g}"
    text = _type_name(value) if isinstance(value, Kept) else repr(value)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _key(key: Any) -> Any:
    """A key of a dictionary or a member of a set, as something that can be stored."""
    if key is None or type(key) in PLAIN:
        return key
    if type(key) is tuple:
        return tuple(map(_key, key))
    return re.sub(r" at 0x[0-9a-f]+", "", repr(key))


def _type_name(value: Any) -> str:
    if isinstance(value, Kept):
        return value.type_name
    home, name = type(value).__module__, type(value).__name__
    return name if home == "builtins" else f"{home}.{name}"


def _numbers(value: Any) -> Any:
    """An array of numpy with a value's numbers; nested lists where there is no numpy."""
    try:
        import numpy
    except ImportError:
        return value.tolist()
    if hasattr(value, "detach"):
        value = value.detach().cpu().resolve_conj().resolve_neg()
        if value.is_floating_point():
            value = value.double()  # numpy does not know every short float
        return numpy.array(value.numpy())
    array = numpy.array(value)
    if array.dtype.kind not in "biufc":
        return array.tolist()
    return array.astype(numpy.float64) if array.dtype.kind == "f" else array


def _form(value: Kept) -> tuple:
    return value.type_name, value.dtype, value.shape, value.gradient


def _leaves(where: str, theirs: Any, ours: Any) -> Iterator[tuple[str, Any, Any]]:
    """Two outcomes side by side, as far down as both have the same parts."""
    parts: list[tuple[str, Any, Any]] = []
    if type(theirs) is type(ours) and isinstance(theirs, list | tuple) and len(theirs) == len(ours):
        pairs = zip(theirs, ours, strict=True)
        parts = [(f"item {i}", one, other) for i, (one, other) in enumerate(pairs)]
    elif isinstance(theirs, dict) and isinstance(ours, dict) and theirs.keys() == ours.keys():
        parts = [(f"entry {shown(key)}", theirs[key], ours[key]) for key in ours]
    if not parts:
        yield where, theirs, ours
    for name, one, other in parts:
        yield from _leaves(f"{where}, {name}" if where else name, one, other)


def _sentence(theirs: Any, ours: Any) -> str:
    if isinstance(ours, Raised):
        if isinstance(theirs, Raised):
            return f"Expected a {ours.type_name}; your code stopped with {theirs.type_name}."
        return f"Expected a {ours.type_name}; nothing was raised."
    if isinstance(theirs, Raised):
        return f"Your code stopped with {theirs.type_name}."
    if theirs is None:
        return "Yours is None: is a return statement missing?"
    if isinstance(theirs, Kept) and isinstance(ours, Kept) and _kind(theirs) == _kind(ours):
        return _arrays_in_words(theirs, ours)
    if _kind(theirs) != _kind(ours) and not (_is_number(theirs) and _is_number(ours)):
        return f"Yours is {_kind(theirs)}, expected {_kind(ours)}."
    if isinstance(theirs, dict) and isinstance(ours, dict):
        return _keys_in_words(theirs, ours)
    if isinstance(theirs, list | tuple) and isinstance(ours, list | tuple):
        return f"Yours has length {len(theirs)}, expected {len(ours)}."
    return f"Yours is {shown(theirs)}, expected {shown(ours)}."


def _keys_in_words(theirs: dict, ours: dict) -> str:
    for key in ours:
        if key not in theirs:
            return f"Yours lacks the entry {shown(key)}."
    extra = next(key for key in theirs if key not in ours)
    return f"Yours has an entry {shown(extra)} that should not be there."


def _kind(value: Any) -> str:
    """A value's type with its article, a library's type with the library's name."""
    if value is None:
        return "None"
    name = _type_name(value)
    if isinstance(value, Opaque):
        name = value.kind if value.kind in ("function", "class", "module") else value.type_name
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | complex) and not isinstance(value, bool)


def _close(theirs: complex, ours: complex) -> bool:
    if isinstance(theirs, int) and isinstance(ours, int):
        return theirs == ours
    if theirs != theirs or ours != ours:  # NaN is like NaN
        return theirs != theirs and ours != ours
    try:
        return theirs == ours or abs(theirs - ours) <= DOUBLE[0] * abs(ours) + DOUBLE[1]
    except OverflowError:  # an integer too large for a float
        return False


def _same_numbers(theirs: Kept, ours: Kept) -> bool:
    if isinstance(theirs.numbers, list) or isinstance(ours.numbers, list):
        return same(theirs.numbers, ours.numbers)
    return not _wrong(theirs, ours).any()


def _wrong(theirs: Kept, ours: Kept) -> Any:
    """True where two arrays of the same form differ."""
    import numpy

    if theirs.numbers.dtype.kind not in "fc":
        return numpy.asarray(theirs.numbers != ours.numbers)
    relative, absolute = DOUBLE if ours.dtype.endswith(("float64", "complex128")) else SINGLE
    close = numpy.isclose(
        theirs.numbers, ours.numbers, rtol=relative, atol=absolute, equal_nan=True
    )
    return numpy.asarray(~close)


def _arrays_in_words(theirs: Kept, ours: Kept) -> str:
    if theirs.shape != ours.shape:
        return f"Yours has shape {theirs.shape}, expected {ours.shape}.{_transposed(theirs, ours)}"
    if theirs.dtype != ours.dtype:
        return f"Yours has dtype {theirs.dtype}, expected {ours.dtype}."
    if _same_numbers(theirs, ours):
        if theirs.gradient:
            return "The numbers are right, but yours takes part in a gradient and should not."
        return "The numbers are right, but no gradient goes through them (detach or no_grad?)."
    if isinstance(theirs.numbers, list):
        return "Its numbers are not as expected."
    return _values_in_words(theirs, ours)


def _values_in_words(theirs: Kept, ours: Kept) -> str:
    import numpy

    wrong = _wrong(theirs, ours)
    if theirs.numbers.dtype.kind == "f":
        for name, odd in (("NaN (not a number)", numpy.isnan), ("infinite", numpy.isinf)):
            place = numpy.asarray(odd(theirs.numbers) & ~odd(ours.numbers))
            if place.any():
                return f"Yours is {name} {_at(place)}."
    first = tuple(numpy.argwhere(wrong)[0]) if wrong.ndim else ()
    one, other = theirs.numbers[first].item(), ours.numbers[first].item()
    values = f"yours {shown(one)}, expected {shown(other)}"
    if shown(one) == shown(other):  # too close to look different
        values += f", a difference of {one - other:.2g}"
    hints = _factor(theirs.numbers, ours.numbers) + _transposed(theirs, ours)
    return f"First difference {_at(wrong)}: {values}.{hints}"


def _at(place: Any) -> str:
    """Where the first of the marked entries is, and how many there are."""
    if not place.ndim:
        return "(a single number)"
    index = [int(axis[0]) for axis in place.nonzero()]
    return f"at index {index} ({int(place.sum())} of {place.size} entries)"


def _factor(theirs: Any, ours: Any) -> str:
    """Name a constant factor between the two, if there is one worth the name."""
    import numpy

    if theirs.dtype.kind != "f" or not (numpy.isfinite(theirs) & numpy.isfinite(ours)).all():
        return ""
    large = abs(ours) > 1e-6
    if large.sum() < 2:
        return ""
    ratio = theirs[large] / ours[large]
    factor = float(numpy.median(ratio))
    if abs(factor) < 1e-6 or abs(factor - 1) < 1e-3:
        return ""
    if abs(ratio - factor).max() > 1e-6 * abs(factor):
        return ""
    return f" Everything is {factor:.6g} times what it should be."


def _transposed(theirs: Kept, ours: Kept) -> str:
    import numpy

    one, other = theirs.numbers, ours.numbers
    if isinstance(one, list) or len(ours.shape) < 2 or one.dtype.kind not in "fc":
        return ""
    flipped = numpy.swapaxes(other, -2, -1)
    if one.shape != flipped.shape or (
        other.shape == flipped.shape and numpy.allclose(other, flipped, atol=1e-6)
    ):
        return ""
    if numpy.allclose(one, flipped, atol=1e-6):
        return " Yours is the transpose of what it should be (last two axes swapped)."
    return ""

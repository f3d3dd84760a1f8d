"""Compare what an answer gave with what it should have given, and say the difference in words.

Tensors and arrays are known by what they can do (shape, dtype, tolist), so no library is named and
none is needed. The words are those of the visible checks in a student's own notebook.
"""

import cmath
import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from itertools import islice
from math import prod
from pathlib import PurePosixPath, PureWindowsPath
from types import BuiltinFunctionType, WrapperDescriptorType
from typing import Any
from uuid import UUID

from autograder.common.results import INSTANCE, PASSED_ON, Crossing, Opaque, Raised, Transcript

DOUBLE = 1e-6, 1e-9  # relative and absolute tolerance in double precision
SINGLE = 1e-4, 1e-6
LONGEST = 60  # characters of a value that is shown
DEEPEST = 30
MOST_PARTS = 120_000  # of a value that is kept
MOST_NUMBERS = 50_000_000  # of an array that is kept
MOST_SHOWN = 20  # parts of a value that are shown
LONG_NUMBER = 1000  # bits of a whole number that is not shown digit by digit
PLAIN = frozenset((bool, int, float, complex, str, bytes, type(None)))


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


def kept(value: Any) -> Any:
    """A value as plain data: arrays as Kept, objects of unknown kinds by their names.

    Whatever came from an answer has such a form, which is found without running anything of its
    own; what is too large, too deep or a part of itself is named by its kind.
    """
    return _Keeper().kept(value, 0)


class _Keeper:
    """Makes one value plain; of what has too many parts, the last are left out."""

    def __init__(self) -> None:
        self.left = MOST_PARTS
        self.arrays: dict[int, Any] = {}  # by the id of what stands in several places

    def kept(self, value: Any, depth: int) -> Any:
        """A value, or a part of it this deep in it."""
        self.left -= 1
        kind = type(value)  # what a stand-in says of its class is a claim
        if kind in PLAIN or kind is Kept:
            return value
        if kind in (Opaque, Raised):
            return _record(value)
        if depth > DEEPEST or self.left < 0:
            return Opaque("object", kind.__name__)
        if is_array(value):
            if id(value) not in self.arrays:
                self.arrays[id(value)] = _array(value)
            return self.arrays[id(value)]
        if issubclass(kind, dict):
            parts = ((_key(key), self.kept(part, depth + 1)) for key, part in value.items())
            return dict(self._some(parts))
        if issubclass(kind, list | tuple):
            parts = self._some(self.kept(part, depth + 1) for part in value)
            return list(parts) if issubclass(kind, list) else tuple(parts)
        if issubclass(kind, set | frozenset):
            self.left -= len(value)
            made = set if issubclass(kind, set) else frozenset
            return made(map(_key, value)) if self.left >= 0 else Opaque("object", "set")
        text = _text(value)
        return Opaque(text if text and len(text) < 100 else "object", _type_name(value))

    def _some(self, parts: Iterator[Any]) -> Iterator[Any]:
        """The parts, as long as there may be more."""
        for part in parts:
            yield part
            if self.left < 0:
                return


def _record(value: Any) -> Opaque | Raised:
    """A record with the parts that it should have, whatever came in their place."""
    if isinstance(value, Opaque):
        return Opaque(_word(value.kind), _word(value.type_name))
    bases = value.bases if isinstance(value.bases, tuple) else ()
    message = value.message if isinstance(value.message, str) else ""
    line = value.line if type(value.line) is int and 0 <= value.line < 2**31 else 0
    names = tuple(map(_word, bases[:MOST_SHOWN]))
    return Raised(_word(value.type_name), message, line, _word(value.cell), names)


def _word(value: Any) -> str:
    return value[:100] if isinstance(value, str) else ""


def _array(value: Any) -> Any:
    """An array as Kept; by its kind, if it is of one whose numbers cannot be had."""
    name = _type_name(value)
    try:
        shape = tuple(map(int, value.shape))
        if prod(shape) > MOST_NUMBERS:
            return Opaque("object", name)
        gradient = bool(getattr(value, "requires_grad", False))
        return Kept(name, str(value.dtype), shape, gradient, _numbers(value))
    except (TypeError, ValueError, RuntimeError, OverflowError, MemoryError, AttributeError):
        return Opaque("object", name)


def is_array(value: Any) -> bool:
    """Whether a value is a tensor, an array or one number of an array."""
    kind = type(value)  # asked of the value, a stand-in would have to ask the answer
    return all(hasattr(kind, name) for name in ("shape", "dtype", "tolist"))


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
    if isinstance(theirs, dict) and _has_objects(theirs | ours):
        return len(theirs) == len(ours)  # nobody knows which of them is which
    if isinstance(theirs, dict):
        return theirs.keys() == ours.keys() and all(same(theirs[key], ours[key]) for key in ours)
    return theirs == ours


def _has_objects(table: dict) -> bool:
    """Whether keys of a table are objects, of which a transcript has only the kind."""
    return any(type(key) is Opaque for key in table)


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
            return f"In {_cut(where, 200)} of the result: {sentence}" if where else sentence
    return ""


def call_in_words(theirs: Crossing, ours: Crossing) -> str:
    """How a call went other than it should, in a sentence."""
    if sorted(theirs.changed) != sorted(ours.changed) and theirs.changed:
        kinds = [one.partition("@")[0] for one in theirs.changed[:MOST_SHOWN]]  # without places
        changed = _cut(", ".join(kinds), 100)
        return f"{_called(theirs.what)} changed what it was handed ({changed}) in place."
    return f"{_called(theirs.what)}: {in_words(theirs.outcome, ours.outcome)}"


def _called(label: str) -> str:
    """What a person would call this: the first of several ways to an object, and what was used."""
    first, *others = label.removeprefix("get ").split("|")
    used = others[-1].rpartition(")")[2] if others else ""
    return first + "".join(used.rpartition(".")[1:] if "." in used else ())


def shown(value: Any) -> str:
    """A plain value as a person would write it, cut if it is long."""
    return f"{value:.6g}" if isinstance(value, float) else _cut(_spelled(value), LONGEST)


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _spelled(value: Any) -> str:
    """At least the beginning of a plain value as Python writes it."""
    if isinstance(value, Opaque):
        return value.type_name if value.kind in ("object", INSTANCE) else value.kind
    if isinstance(value, Kept):
        return value.type_name
    if type(value) is int and value.bit_length() > LONG_NUMBER:
        return f"a number of about {int(value.bit_length() * 0.30103) + 1} digits"
    if isinstance(value, str | bytes):
        return repr(value[:LONGEST])
    if isinstance(value, tuple | list | set | frozenset | dict):
        parts = [_spelled(part) for part in islice(value, MOST_SHOWN)]
        text = ", ".join([*parts, "…"] if len(value) > len(parts) else parts)
        if isinstance(value, tuple):
            return f"({text},)" if len(value) == 1 else f"({text})"
        return f"[{text}]" if isinstance(value, list) else f"{{{text}}}"
    return repr(value)


def _key(key: Any) -> Any:
    """A key of a dictionary or a member of a set, as something that can be stored."""
    kind: type = type(key)
    if kind is float and key != key:
        return math.nan  # always the same one: NaN equals nothing, but an object equals itself
    if kind in PLAIN:
        return key
    if kind in (Opaque, Raised):
        return _record(key)
    if issubclass(kind, tuple):
        return tuple(map(_key, key))
    if kind is frozenset:
        return frozenset(map(_key, key))
    return _text(key) or _type_name(key)


def _text(value: Any) -> str:
    """How Python writes a value of a kind that runs nothing else for it; empty for all others."""
    kind = type(value)
    if kind in (type, type(...), type(NotImplemented)) or _is_name(kind):
        return repr(value)
    parts = {
        Fraction: lambda: (value.numerator, value.denominator),
        Decimal: lambda: (),
        range: lambda: (value.start, value.stop, value.step),
        slice: lambda: (value.start, value.stop, value.step),
        deque: lambda: islice(value, MOST_SHOWN),
        bytearray: lambda: (),
        date: lambda: (),
        timedelta: lambda: (),
        timezone: lambda: (value.tzname(None),),
        time: lambda: (_zone(value),),
        datetime: lambda: (_zone(value),),
        UUID: lambda: (),
        PurePosixPath: lambda: (str(value),),
        PureWindowsPath: lambda: (str(value),),
    }.get(kind)
    short = parts is not None and all(map(_is_short, parts()))
    fits = len(value) <= MOST_SHOWN if kind in (deque, bytearray) else True
    return repr(value) if short and fits else ""


def _zone(value: time | datetime) -> Any:
    """The name of a time's zone; of a zone of an unknown kind nothing that is short."""
    zone = value.tzinfo
    return value.tzname() if zone is None or type(zone) is timezone else zone


def _is_name(kind: type) -> bool:
    """Whether this is the type of what only names something, such as a dtype or a device."""
    named = any(word in kind.__name__.lower() for word in ("dtype", "device"))
    in_c = type(kind.__repr__) is WrapperDescriptorType and kind.__repr__ is not object.__repr__
    return (named and in_c) or kind is BuiltinFunctionType


def _is_short(value: Any) -> bool:
    if type(value) is int:
        return value.bit_length() <= LONG_NUMBER
    if type(value) in (str, bytes):
        return len(value) <= LONGEST
    return value is None or type(value) in (bool, float, complex)


def _type_name(value: Any) -> str:
    if type(value) is Kept:
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
    if array.dtype.kind in "mM":
        return array.astype("int64")
    if array.dtype.kind not in "biufc":
        return [_Keeper().kept(array.tolist(), 0)]
    if array.dtype.kind == "f":
        return array.astype(numpy.float64)
    return array.astype(numpy.complex128) if array.dtype.kind == "c" else array


def _form(value: Kept) -> tuple:
    return value.type_name, value.dtype, value.shape, value.gradient


def _leaves(where: str, theirs: Any, ours: Any) -> Iterator[tuple[str, Any, Any]]:
    """Two outcomes side by side, as far down as both have the same parts."""
    parts: list[tuple[str, Any, Any]] = []
    if type(theirs) is type(ours) and isinstance(theirs, list | tuple) and len(theirs) == len(ours):
        pairs = zip(theirs, ours, strict=True)
        parts = [(f"item {i}", one, other) for i, (one, other) in enumerate(pairs)]
    elif isinstance(theirs, dict) and isinstance(ours, dict) and theirs.keys() == ours.keys():
        if _has_objects(ours):
            return
        parts = [(f"entry {shown(key)}", theirs[key], ours[key]) for key in ours]
    if not parts:
        yield where, theirs, ours
    for name, one, other in parts:
        yield from _leaves(f"{where}, {name}" if where else name, one, other)


def _sentence(theirs: Any, ours: Any) -> str:
    if words := _ends_in_words(theirs, ours):
        return words
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


def _ends_in_words(theirs: Any, ours: Any) -> str:
    """What to say if one of both is an exception; empty if neither is."""
    if isinstance(ours, Raised):
        if isinstance(theirs, Raised):
            return f"Expected a {ours.type_name}; your code stopped with {theirs.type_name}."
        return f"Expected a {ours.type_name}; nothing was raised."
    if isinstance(theirs, Raised):
        return f"Your code stopped with {theirs.type_name}."
    if isinstance(theirs, Opaque) and theirs.kind == PASSED_ON:
        return f"It stopped with the {theirs.type_name} that the test's own function raised."
    if isinstance(ours, Opaque) and ours.kind == PASSED_ON:
        return f"Expected to stop with the {ours.type_name} that the test's own function raised."
    return ""


def _keys_in_words(theirs: dict, ours: dict) -> str:
    if len(theirs) != len(ours) and _has_objects(theirs | ours):
        return f"Yours has {len(theirs)} entries, expected {len(ours)}."
    for key in ours:
        if key not in theirs:
            return f"Yours lacks the entry {shown(key)}."
    extra = next((key for key in theirs if key not in ours), None)
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
    if theirs == ours:
        return True
    try:
        if not (cmath.isfinite(theirs) and cmath.isfinite(ours)):
            return False  # else everything would be near what is infinite
        return abs(theirs - ours) <= DOUBLE[0] * abs(ours) + DOUBLE[1]
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
    if (
        isinstance(one, list)
        or isinstance(other, list)
        or len(ours.shape) < 2
        or one.dtype.kind not in "fc"
    ):
        return ""
    flipped = numpy.swapaxes(other, -2, -1)
    if one.shape != flipped.shape or (
        other.shape == flipped.shape and numpy.allclose(other, flipped, atol=1e-6)
    ):
        return ""
    if numpy.allclose(one, flipped, atol=1e-6):
        return " Yours is the transpose of what it should be (last two axes swapped)."
    return ""

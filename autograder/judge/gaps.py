"""Results that are no number in places: what a test says of numbers may hold of them as well.

`not (abs(x - y) > allowed).any()` holds wherever x is NaN, and `abs(x - y) <= 1e-9 * abs(x)` where
it is infinite. So what passed with them, and the reference without, has to pass with numbers there
that are far from any: a test that does not look at these places does, and loses nobody a point. Of
what its text names, or that of the instructor's functions that it uses, as NaN, a test may go by
the places; that is left as it is. So it is with dates that are none, and with texts of numbers.
"""

import argparse
import array
import cmath
import collections
import math
import re
import sys
import types
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain
from typing import Any

from autograder.bridge import based
from autograder.bridge.outline import CHANGES, HANDS_OVER, WITH
from autograder.bridge.reference import given_by
from autograder.bridge.shapes import attributes, is_one, shape_of
from autograder.bridge.stand_ins import remote_of
from autograder.common.results import Crossing, Opaque, Transcript
from autograder.judge.differences import Kept
from autograder.judge.nothing import DATES, DECIMAL, NAT, Given, gone_through, with_steps

FAR, FAR_OF_HALF, FAR_DATE = 1e30, 6e4, 2**60
TEXT = re.compile(r"[+-]?(nan|inf|infinity|[0-9][0-9_.e+-]{0,30})", re.IGNORECASE)
WORDS = "Your code gives NaN (not a number) or infinity in places where there should be numbers."
MINDS_NAN = re.compile(
    r"nan(?![a-z])|nan(_|arg|max|mean|median|min|prod|quantile|std|sum|var)|isfin"
    r"|(is|not|drop|fill|skip)na(?![a-z])|(is|not)null(?![a-z])|\bnat\b|isnat"
)
MINDS_INF = re.compile(r"inf(?![a-z])|infinity|infty|isfin")
NUMBERS = (int, float, complex)
CONTAINERS = (list, tuple, dict, set, frozenset)
HOLDERS: dict[type, tuple[Callable[[Any], Any], Callable[[Any, Any], Any]]] = {
    # what each holds, and how another one is made that holds something else
    collections.UserList: (lambda v: v.data, lambda v, made: collections.UserList(made)),
    collections.UserDict: (lambda v: v.data, lambda v, made: collections.UserDict(made)),
    collections.ChainMap: (lambda v: v.maps, lambda v, made: collections.ChainMap(*made)),
    types.MappingProxyType: (dict, lambda v, made: types.MappingProxyType(made)),
    types.SimpleNamespace: (vars, lambda v, made: types.SimpleNamespace(**made)),
    argparse.Namespace: (vars, lambda v, made: argparse.Namespace(**made)),
    array.array: (list, lambda v, made: array.array(v.typecode, made)),
    **{type(view): (list, lambda v, made: made) for view in ({}.keys(), {}.values(), {}.items())},
}
DEEPEST = 20  # that a result is filled


@dataclass(frozen=True)
class Gaps:
    """Places without a number, of the kinds that a test does not name."""

    nan: bool = True
    inf: bool = True

    @classmethod
    def unnamed_in(cls, source: str) -> "Gaps":
        """Those that a test's text does not name."""
        text = source.lower()
        return cls(not MINDS_NAN.search(text), not MINDS_INF.search(text))

    def are_in(self, transcript: Transcript) -> bool:
        """Whether a call gave such a one anywhere; of results as they are kept."""
        return any(self._has(call.outcome) for call in transcript)

    def first(self, theirs: Transcript, ours: Transcript) -> Crossing | None:
        """The first call with one where the reference has a number; both as they are kept.

        An answer may make its calls in another way: then the reference has to have a number there
        in every call of that name, or of a method of that name: what gives itself in the place of
        another object goes by another way.
        """
        theirs, ours = with_steps(theirs), with_steps(ours)
        if [call.what for call in theirs] == [call.what for call in ours]:
            pairs = zip(theirs, ours, strict=True)
            return next((one for one, our in pairs if self._lacks(one.outcome, our.outcome)), None)
        given, by_last = Given(ours), dict[str, list[Any]]()
        for call in ours:
            by_last.setdefault(_last(call.what), []).append(call.outcome)
        for call in theirs:
            known = given.by(call.what) or by_last.get(_last(call.what), ())
            if known and all(self._lacks(call.outcome, our) for our in known):
                return call
        return None

    def first_beside(
        self, theirs: Transcript, ours: Transcript, calls: Transcript
    ) -> Crossing | None:
        """The first note of one in what came otherwise than by calls, if the reference has none.

        Or if it has numbers in a call, where the answer gives them in a way of its own.
        """
        known = {one.what for one in ours}
        known |= {_by_method(what) for what in known if CHANGES in what}
        numbers = (*calls, *gone_through(calls))
        known |= {call.what for call in numbers if self._is_number(call.outcome)}
        kinds = {name for name in ("nan", "inf") if getattr(self, name)}
        for one in theirs:
            whole, _, kind = one.what.rpartition(WITH)
            if kind in kinds and whole in known and one.what not in known:
                return one
        return None

    def filled(self, value: Any) -> Any:
        """A result with numbers far from any in their place; the same object if it has none.

        Objects of the instructor's classes, which are made here for an answer, are so themselves.
        """
        return _Filler(self).of(value, 0)

    def _has(self, value: Any) -> bool:
        if type(value) is Kept:
            return self._lacks_dates(value) or not self._all_sound(value.numbers)
        if type(value) in CONTAINERS:
            return any(map(self._has, _parts(value)))
        value = _number_in(value)
        return type(value) in (float, complex) and not self.is_sound(value)

    def _lacks_dates(self, value: Kept, beside: Kept | None = None) -> bool:
        """Whether one of an array's dates is none, where that beside it has one."""
        if not self.nan or not value.dtype.startswith(DATES):
            return False
        none = value.numbers == NAT
        if beside is not None and beside.dtype.startswith(DATES):
            none = none & (beside.numbers != NAT)
        return bool(none.any())

    def _lacks(self, theirs: Any, ours: Any) -> bool:
        """Whether a result, or a part of it, is no number where the other is one."""
        if type(theirs) in (list, tuple) and type(ours) in (list, tuple):
            return any(map(self._lacks, theirs, ours))
        if type(theirs) is dict and type(ours) is dict:
            return any(self._lacks(theirs[key], ours[key]) for key in theirs.keys() & ours.keys())
        if type(theirs) is Kept and type(ours) is Kept and theirs.shape == ours.shape:
            here = self._lacks_at(theirs.numbers, ours.numbers)
            return here or self._lacks_dates(theirs, beside=ours)
        return self._has(theirs) and self._is_number(ours)

    def _lacks_at(self, theirs: Any, ours: Any) -> bool:
        """Whether an array has no number in a place where another of this shape has one."""
        if isinstance(theirs, list) and isinstance(ours, list):
            return any(map(self._lacks_at, theirs, ours))
        if isinstance(theirs, list) or isinstance(ours, list):
            return False
        return bool((self._sound(ours) & ~self._sound(theirs)).any())

    def _is_number(self, value: Any) -> bool:
        """Whether this is a number, or an array or list of numbers alone."""
        if type(value) is Kept:
            return self._all_sound(value.numbers) and not self._lacks_dates(value)
        if type(value) in CONTAINERS:  # in whose place one of another kind may stand
            parts = value.values() if type(value) is dict else value
            return bool(parts) and all(map(self._is_number, parts))
        value = _number_in(value)
        return type(value) in NUMBERS and self.is_sound(value)

    def _all_sound(self, numbers: Any) -> bool:
        if isinstance(numbers, list):
            return all(map(self._all_sound, numbers))
        return bool(self._sound(numbers).all())

    def _sound(self, numbers: Any) -> Any:
        """True where there is none of them."""
        import numpy  # where there is none, arrays are kept as lists, whose parts are plain

        if getattr(numbers, "dtype", None) is None:
            return numpy.bool_(type(numbers) not in (float, complex) or self.is_sound(numbers))
        if not _has_floats(numbers):
            return numpy.ones(numbers.shape, dtype=bool)
        return ~self.odd(numpy, numbers)

    def odd(self, library: Any, value: Any) -> Any:
        """True where an array, or a tensor, has one of them."""
        if self.nan and self.inf:
            return ~library.isfinite(value)
        return library.isnan(value) if self.nan else library.isinf(value) & self.inf

    def is_sound(self, value: complex) -> bool:
        """Whether a number is none of them."""
        return not (self.nan and cmath.isnan(value)) and not (self.inf and cmath.isinf(value))


class _Filler:
    """Fills one result; an object that stands in many places is filled once."""

    def __init__(self, gaps: Gaps) -> None:
        self.gaps = gaps
        self.seen: set[int] = set()  # objects of the instructor's classes, by id

    def of(self, value: Any, depth: int) -> Any:
        """What stands in the place of a value, or of a part of it this deep in it."""
        kind = type(value)
        if depth > DEEPEST:
            return value
        if kind in (float, complex):
            return value if self.gaps.is_sound(value) else _far(value)
        if kind is str:
            number = _number_in(value)
            return value if number is value or self.gaps.is_sound(number) else str(_far(number))
        if kind is Decimal:
            number = _number_in(value)
            return value if self.gaps.is_sound(number) else Decimal(_far(number))
        if kind in (list, deque, set, frozenset) or _is_tuple(value):
            parts = [self.of(part, depth + 1) for part in value]
            if all(map(_is, parts, value)):
                return value
            return tuple.__new__(kind, parts) if issubclass(kind, tuple) else kind(parts)
        if kind in based.TABLES:
            return self._table(value, depth)
        if kind in HOLDERS:
            return self._held(value, depth)
        if remote_of(value) is not None:
            return self._of_answers(value, depth)
        return self._object(value, depth) if is_one(value) else self._numbers(value)

    def _table(self, value: Any, depth: int) -> Any:
        """The same of a table, whose keys one goes through as through a list."""
        pairs = [(self.of(key, depth + 1), self.of(part, depth + 1)) for key, part in value.items()]
        if all(map(_is, chain(*pairs), chain(*value.items()))):
            return value
        made = value.copy()
        made.clear()
        for key, part in pairs:
            made[key] = part
        return made

    def _held(self, value: Any, depth: int) -> Any:
        """The same of what holds other values in a way of its own."""
        held, make = HOLDERS[type(value)]
        inside = held(value)
        filled = self.of(inside, depth + 1)
        return value if filled is inside else make(value, filled)

    def _of_answers(self, value: Any, depth: int) -> Any:
        """The same of a value of an answer's class that is made of one of Python's own."""
        remote = remote_of(value)
        if remote is None or remote.base not in based.FIXED:
            return value
        plain = based.as_plain(value)
        filled = self.of(plain, depth + 1)
        return value if filled is plain else filled

    def _object(self, value: Any, depth: int) -> Any:
        if id(value) not in self.seen:
            self.seen.add(id(value))
            for name, part in attributes(value, shape_of(type(value))).items():
                made = self.of(part, depth + 1)
                if made is not part:
                    object.__setattr__(value, name, made)
        return value

    def _numbers(self, value: Any) -> Any:
        """The same of an array, of a tensor, of a number of NumPy's, or of none of them."""
        for library, name in (("numpy", "ndarray"), ("torch", "Tensor")):
            module: Any = sys.modules.get(library)
            if module is not None and type(value) is getattr(module, name):
                return self._array(module, value)
        numpy: Any = sys.modules.get("numpy")
        if numpy is None or not issubclass(type(value), numpy.inexact):
            return value
        if self.gaps.is_sound(complex(value)):
            return value
        return type(value)(_far(value, FAR_OF_HALF if value.dtype.itemsize == 2 else FAR))

    def _array(self, library: Any, value: Any) -> Any:
        """A tensor's graph goes on through its numbers."""
        if self.gaps.nan and getattr(value.dtype, "kind", "") in ("m", "M"):
            return _filled_dates(value)
        if not _has_floats(value):
            return value
        odd = self.gaps.odd(library, value)
        if not bool(odd.any()):
            return value
        far = FAR_OF_HALF if value.dtype.itemsize == 2 else FAR
        low = library.where(value == -float("inf"), -far, far)
        made = library.where(odd, low, value)
        return made.astype(value.dtype) if library is sys.modules["numpy"] else made.to(value.dtype)


def _number_in(value: Any) -> Any:
    """The number that a text is, or a Decimal stands for, also as kept; anything else as it is."""
    if type(value) is Decimal:
        return _of_decimal(str(value))
    if type(value) is Opaque and value.kind.startswith(DECIMAL):
        return _of_decimal(value.kind)
    if type(value) is not str or not TEXT.fullmatch(value.strip()[:50]):
        return value
    try:
        return float(value)
    except ValueError:
        return value


def _of_decimal(text: str) -> float:
    """NaN or infinity, if that is what it says; however large another is, it is a number."""
    if "NaN" in text:
        return math.nan
    return 0.0 if "Inf" not in text else -math.inf if "-" in text else math.inf


def _filled_dates(value: Any) -> Any:
    """An array of dates with one far from any in the place of each that is none."""
    none = value.view("int64") == NAT
    if not none.any():
        return value
    made = value.copy()
    made.view("int64")[none] = FAR_DATE
    return made


def _has_floats(value: Any) -> bool:
    if hasattr(value.dtype, "kind"):
        return value.dtype.kind in "fc"
    return value.dtype.is_floating_point or value.dtype.is_complex


def _far(value: Any, far: float = FAR) -> float:
    return -far if value == -float("inf") else far


def _is_tuple(value: Any) -> bool:
    """Whether this is a tuple, also one whose parts have names, and nothing of an answer's."""
    return issubclass(type(value), tuple) and remote_of(value) is None


def _parts(value: Any) -> Iterable[Any]:
    """What one meets who goes through it, and what a table has besides."""
    return [*value, *value.values()] if type(value) is dict else value


def _last(label: str) -> str:
    """The name of a method or attribute alone, with its dot; a label that has none as it is."""
    return label[label.rfind(".") :] if "." in label else label


def _by_method(label: str) -> str:
    """What a change of an object's attribute goes by where the object stays with the test.

    So it does for an answer, where the reference changes it by its methods alone.
    """
    call, _, attribute = label.partition(CHANGES)
    _, gap, kind = attribute.partition(WITH)
    return given_by(call) + HANDS_OVER + gap + kind


def _is(one: Any, other: Any) -> bool:
    return one is other

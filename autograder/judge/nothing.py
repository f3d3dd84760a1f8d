"""Results without a single entry where there should be numbers: they equal whatever one claims.

`np.allclose([], 5.0)` holds, and `(np.zeros((0, 1)) == expected).all()`.
"""

from collections.abc import Iterator
from itertools import groupby, islice
from math import prod
from typing import Any

from autograder.common.results import Crossing, Transcript
from autograder.judge.differences import Kept, is_array

DEEPEST, MOST_PARTS = 2, 20  # of a result that is looked at
NOTHING = "Your code gives a result without entries where there should be numbers."


def gives_nothing(theirs: Transcript, ours: Transcript) -> Crossing | None:
    """The first call that gave nothing where the reference gives numbers; both as they are kept.

    An answer may make its calls in another way: then what counts is whether the reference gives
    nothing in any call of that name.
    """
    asked = [call.what for call in ours]
    if [call.what for call in theirs] == asked:
        pairs = zip(theirs, ours, strict=True)
        return next((one for one, other in pairs if _lacks(one.outcome, other.outcome)), None)
    by_name = sorted(ours, key=lambda call: call.what)
    groups = groupby(by_name, key=lambda call: call.what)
    full = {what for what, calls in groups if all(_is_numbers(call.outcome) for call in calls)}
    return next((one for one in theirs if one.what in full and _is_empty(one.outcome)), None)


def may_give_nothing(transcript: Transcript) -> bool:
    """Whether a call gave something without entries, as far as a short look tells."""
    return any(_is_empty(part) for call in transcript for part in _parts(call.outcome))


def _lacks(theirs: Any, ours: Any) -> bool:
    """Whether a result, or a part of it, is empty where the other is made of numbers."""
    if _is_empty(theirs):
        return _is_numbers(ours)
    if type(theirs) is not type(ours) or not isinstance(ours, list | tuple | dict):
        return False
    if isinstance(ours, dict):
        return any(_lacks(theirs[key], ours[key]) for key in ours.keys() & theirs.keys())
    return len(theirs) == len(ours) and any(map(_lacks, theirs, ours))


def _parts(value: Any, depth: int = 0) -> Iterator[Any]:
    """A value and the first of its parts; neither copied nor asked for anything."""
    yield value
    if depth < DEEPEST and type(value) in (list, tuple, dict):
        for part in islice(value.values() if type(value) is dict else value, MOST_PARTS):
            yield from _parts(part, depth + 1)


def _is_empty(value: Any) -> bool:
    """Whether this, as it came or as it is kept, has no entries."""
    if type(value) is Kept or is_array(value):
        return 0 in tuple(value.shape)
    return type(value) in (list, tuple) and not value


def _is_numbers(value: Any) -> bool:
    """Whether this is an array with entries or a number; a list equals no empty array."""
    if isinstance(value, Kept):
        return prod(value.shape) > 0 and not (value.shape == () and "bool" in value.dtype)
    return type(value) in (int, float, complex)

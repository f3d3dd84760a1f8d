"""Results without a single entry where there should be numbers: they equal whatever one claims.

`np.allclose([], 5.0)` holds, `(np.zeros((0, 1)) == expected).all()` as well, and so does
`np.allclose([[], []], [[1], [2]])`, whatever kind of sequence nothing is in.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from math import prod
from typing import Any

from autograder.common.results import Crossing, Opaque, Transcript
from autograder.judge.differences import Kept, is_array, keep

SEQUENCES = (range, deque)  # which are kept as texts
KEYS = (str, int, float, bool, bytes, type(None))  # which have a hash of Python's own
NOTHING = "Your code gives a result without entries where there should be numbers."


def keep_entries(transcript: Transcript) -> Transcript:
    """A transcript as it is kept, in which any sequence without entries is a list without any."""
    return keep(tuple(replace(call, outcome=_listed(call.outcome)) for call in transcript))


def gives_nothing(theirs: Transcript, ours: Transcript) -> Crossing | None:
    """The first call that gave nothing where the reference gives numbers; both as they are kept.

    An answer may make its calls in another way: then what counts is whether it is nothing beside
    whatever the reference gives in a call of that name.
    """
    asked = [call.what for call in ours]
    if [call.what for call in theirs] == asked:
        pairs = zip(theirs, ours, strict=True)
        return next((one for one, other in pairs if _lacks(one.outcome, other.outcome)), None)
    by_name: dict[str, list[Any]] = {}
    for call in ours:
        by_name.setdefault(call.what, []).append(call.outcome)
    doubtful = (one for one in theirs if one.what in by_name and _may_be_nothing(one.outcome))
    return next(
        (one for one in doubtful if all(_lacks(one.outcome, our) for our in by_name[one.what])),
        None,
    )


def may_give_nothing(transcript: Transcript) -> bool:
    """Whether a call gave something without entries, or with such a part."""
    return any(_may_be_nothing(call.outcome) for call in transcript)


def _may_be_nothing(value: Any) -> bool:
    return any(_is_empty(part) for part in _parts(value))


def _listed(value: Any) -> Any:
    """A value in which sequences without entries are lists."""
    kind = type(value)
    is_empty_array = kind is Opaque and value.kind.startswith("array(")
    if is_empty_array or (kind in SEQUENCES and not len(value)):
        return []
    if kind in (list, tuple):
        return kind(map(_listed, value))
    if kind is dict and all(type(key) in KEYS for key in value):  # another's is not asked for it
        return {key: _listed(part) for key, part in value.items()}
    return value


def _lacks(theirs: Any, ours: Any) -> bool:
    """Whether a result, or a part of it, has no entries where the other is made of numbers."""
    if not any(map(_counts, _parts(theirs))):
        return _is_numbers(ours)
    if type(theirs) is not type(ours) or not isinstance(ours, list | tuple | dict):
        return False
    if isinstance(ours, dict):
        return any(_lacks(theirs[key], ours[key]) for key in ours.keys() & theirs.keys())
    return len(theirs) == len(ours) and any(map(_lacks, theirs, ours))


def _parts(value: Any) -> Iterator[Any]:
    """A value and all its parts, as they are kept."""
    yield value
    if type(value) in (list, tuple, dict):
        for part in value.values() if type(value) is dict else value:
            yield from _parts(part)


def _counts(part: Any) -> bool:
    """Whether this is an entry, or has one of its own."""
    return not _is_empty(part) and type(part) not in (list, tuple, dict)


def _is_empty(value: Any) -> bool:
    """Whether this, as it came or as it is kept, has no entries."""
    if type(value) is Kept or is_array(value):
        return 0 in tuple(value.shape)
    return type(value) in (list, tuple, dict) and not value


def _is_numbers(value: Any) -> bool:
    """Whether this is an array with entries, a number, or made of nothing but such."""
    if isinstance(value, Kept):
        return prod(value.shape) > 0 and not (value.shape == () and "bool" in value.dtype)
    if isinstance(value, list | tuple | dict):
        parts = value.values() if isinstance(value, dict) else value
        return bool(parts) and all(map(_is_numbers, parts))
    return type(value) in (int, float, complex)

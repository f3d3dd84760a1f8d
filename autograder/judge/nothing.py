"""Results without a single entry where there should be numbers: they equal whatever one claims.

`np.allclose([], 5.0)` holds, `(np.zeros((0, 1)) == expected).all()` as well, and so does
`np.allclose([[], []], [[1], [2]])`, whatever kind of sequence nothing is in. And of an array of
nothing but NaN no difference is ever more than what a test allows.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from math import prod
from typing import Any

from autograder.bridge.based import CONTAINS
from autograder.bridge.outline import HANDS_OVER, HOLDS, is_all_nan
from autograder.bridge.reference import path_of
from autograder.common.results import Crossing, Opaque, Raised, Transcript
from autograder.judge.differences import Kept, is_array, keep

SEQUENCES = (range, deque)  # which are kept as texts
OTHERS = (str, bytes, bytearray, set, frozenset)  # which can be gone through as well
GIVEN = "()"  # after a call's label: what it gave
STEP, STEPS = ".__next__", ".__iter__"  # of an iterator, after the label of what gave it
ITEM, LENGTH = ".__getitem__", ".__len__"
KEYS = (str, int, float, bool, bytes, type(None))  # which have a hash of Python's own
NUMBERS = frozenset((int, float, complex, bool, type(None)))  # and what is none
PLAIN = NUMBERS | {str, bytes}
NOTHING = "Your code gives a result without entries where there should be numbers."
NAT = -(2**63)  # as which a date is kept that is none
DECIMAL = "Decimal('"  # begins what is kept of one
EXACT = (DECIMAL, "Fraction(")
DATES = ("datetime64", "timedelta64")
NO_NUMBERS = "Your code gives NaN (not a number) alone where there should be numbers."


def keep_entries(transcript: Transcript) -> Transcript:
    """A transcript as it is kept, in which any sequence that is kept as a text is a list."""
    return keep(tuple(replace(call, outcome=_listed(call.outcome)) for call in transcript))


def gives_nothing(theirs: Transcript, ours: Transcript, beside: Transcript = ()) -> Crossing | None:
    """The first call that gave nothing where the reference gives numbers; both as they are kept.

    An answer may make its calls in another way: then what counts is whether it is nothing beside
    whatever the reference gives in a call of that name, or in the one that a part is of. What the
    reference's tables make of a key that they lack is told beside the calls.
    """
    theirs, ours = with_steps(theirs), with_steps(ours)
    asked = [call.what for call in ours]
    if [call.what for call in theirs] == asked:
        pairs = zip(theirs, ours, strict=True)
        doubtful = ((one, other) for one, other in pairs if not _is_full(one.outcome))
        return next((one for one, other in doubtful if _lacks(one.outcome, other.outcome)), None)
    made = (one for one in beside if one.what.endswith(GIVEN) and _is_empty(one.outcome))
    known = Given((*ours, *made))
    doubtful = (one for one in theirs if _may_be_nothing(one.outcome))
    return next((one for one in doubtful if _is_nothing_beside(one, known)), None)


class Given:
    """What the reference gives, by the names of its calls."""

    def __init__(self, calls: Transcript) -> None:
        self.by_name: dict[str, list[Any]] = {}
        self.values: dict[str, list[Any]] = {}  # by names without what an answer decides
        for call in calls:
            self.by_name.setdefault(call.what, []).append(call.outcome)
            if type(call.outcome) is not Opaque:
                self.values.setdefault(path_of(call.what), []).append(call.outcome)

    def by(self, name: str) -> list[Any]:
        """What it gives under a name; a class may stand in the place of a function, or one of it.

        Of these an object goes by the class's own name, and one that a function gave does not.
        """
        found = self.by_name.get(name, [])
        is_value = any(type(one) is not Opaque for one in found)
        return found if is_value else self.values.get(path_of(name), found)


def _is_nothing_beside(one: Crossing, known: Given) -> bool:
    """Whether a call gave nothing beside each that the reference gives under its name.

    What the reference does not have, as what a table makes of a key that is not there, is held
    against what it would be a part of.
    """
    if found := known.by(one.what):
        return all(_lacks(one.outcome, our) for our in found)
    whole = known.by_name.get(one.what.removesuffix(GIVEN), ())
    return bool(whole) and _is_empty(one.outcome) and all(map(_holds_numbers, whole))


def gives_nothing_beside(
    theirs: Transcript, ours: Transcript, calls: Transcript
) -> Crossing | None:
    """The same of what came otherwise than by calls, beside that and the reference's calls.

    What a function of the test's is handed may be without entries, as a last part of many: it is
    nothing if that is all that it is handed. So it is with what objects of one class contain.
    """
    by_name: dict[str, list[Any]] = {}
    noted = {call.what for call in ours}
    for call in (*ours, *(call for call in calls if call.what not in noted)):
        by_name.setdefault(_held(call.what), []).append(call.outcome)
    for call in gone_through(calls):
        by_name.setdefault(call.what, []).append(call.outcome)
    known = [(one, _held(one.what)) for one in theirs if _held(one.what) in by_name]
    nothing = [(one, at) for one, at in known if all(_lacks(one.outcome, x) for x in by_name[at])]
    many = [(one, at) for one, at in known if at.endswith((HANDS_OVER, CONTAINS))]
    sound = {at for one, at in many if (one, at) not in nothing}
    return next((one for one, at in nothing if at not in sound), None)


def gone_through(calls: Transcript) -> Transcript:
    """What objects that the reference gives contain, as it is noted of one made of a list."""
    found = (call for call in with_steps(calls) if type(call.outcome) is not Opaque)
    return tuple(replace(call, what=call.what + CONTAINS) for call in found)


def attributes_of_its_own(theirs: Transcript, ours: Transcript) -> Transcript:
    """Attributes without entries that the test asked of the answer's objects alone."""
    known = {call.what for call in ours}
    own = (one for one in theirs if one.what.startswith("get ") and one.what not in known)
    return tuple(one for one in own if _may_be_nothing(one.outcome))


def _held(label: str) -> str:
    """What a value goes by that an object may hold as an attribute, a module as its part."""
    is_attribute = label.startswith("get ") and "." in label
    return HOLDS + label.rpartition(".")[2] if is_attribute else label


def with_steps(transcript: Transcript) -> Transcript:
    """A transcript in which an iterator that a test has gone through is the list of its steps."""
    made: list[Crossing] = []
    latest: dict[str, int] = {}  # what gave an iterator or entries, by the label of that
    steps: dict[int, list[Any]] = {}
    items: dict[int, list[Any]] = {}  # of what is gone through by its entries
    for call in transcript:
        source = call.what.removesuffix(STEP).removesuffix(STEPS + GIVEN).removesuffix(STEPS)
        source = source.removesuffix(ITEM)
        at = latest.get(source, -1)
        if call.what.endswith(STEP) and at >= 0:
            found = steps.setdefault(at, [])
            if not isinstance(call.outcome, Raised):
                found.append(call.outcome)
        elif not (call.what.endswith(STEPS) and at >= 0):
            if isinstance(call.outcome, Opaque):
                own = call.what.removeprefix("get ")
                latest[own] = latest[own + GIVEN] = len(made)
            if call.what.endswith(ITEM) and at >= 0:
                items.setdefault(at, []).extend([] if _is_end(call) else [call.outcome])
            made.append(call)
    for at, found in (items | steps).items():
        made[at] = replace(made[at], outcome=found)
    return _with_ends(made)


def _with_ends(calls: Iterable[Crossing]) -> Transcript:
    """Calls in which a length is as many entries, and an object is empty that gives none at all.

    What ends each walk through one of several entries says nothing.
    """
    calls = list(calls)
    full = {call.what for call in calls if call.what.endswith(ITEM) and not _is_end(call)}
    made: list[Crossing] = []
    for call in calls:
        if call.what.endswith(LENGTH) and type(call.outcome) is int:
            made.append(replace(call, outcome=[call.outcome] * (call.outcome > 0)))
        elif not _is_end(call):
            made.append(call)
        elif call.what not in full:
            made.append(replace(call, outcome=[]))
    return tuple(made)


def _is_end(call: Crossing) -> bool:
    """Whether an object of its own said that there is nothing at an index."""
    is_error = isinstance(call.outcome, Raised) and call.outcome.type_name == "IndexError"
    return is_error and call.what.endswith(ITEM)


def may_give_nothing(transcript: Transcript) -> bool:
    """Whether a call gave something without entries, or with such a part."""
    return any(_may_be_nothing(call.outcome) for call in with_steps(transcript))


def _may_be_nothing(value: Any) -> bool:
    parts = list(_parts(value))
    return any(map(_is_empty, parts)) or not any(map(_counts, parts))


def _listed(value: Any) -> Any:
    """A value in which what has no entries, and a sequence of any values, is a list."""
    kind = type(value)
    if kind in NUMBERS:
        return value
    is_empty_array = kind is Opaque and value.kind.startswith("array(")
    is_other = kind in SEQUENCES or issubclass(kind, OTHERS)
    if is_empty_array or (is_other and not len(value)):
        return []
    if kind in (list, tuple, deque):
        made = list if kind is deque else kind
        return made(map(_listed, value))
    if kind is dict and all(type(key) in KEYS for key in value):  # another's is not asked for it
        return {key: _listed(part) for key, part in value.items()}
    return value


def _lacks(theirs: Any, ours: Any) -> bool:
    """Whether a result, or a part of it, has no entries where the other is made of numbers.

    A list may stand in the place of a tuple, and one of them be longer than the other. Parts of
    the reference's list may come in another order.
    """
    if not any(map(_counts, _parts(theirs))):
        return _is_numbers(ours)
    if isinstance(theirs, dict) and isinstance(ours, dict):
        return any(_part_lacks(theirs[key], ours[key]) for key in ours.keys() & theirs.keys())
    if not (isinstance(theirs, list | tuple) and isinstance(ours, list | tuple)):
        return False
    if type(ours) is list and sum(map(_is_empty, theirs)) == sum(map(_is_empty, ours)) > 0:
        return False
    return any(map(_part_lacks, theirs, ours))


def _is_full(value: Any) -> bool:
    """Whether a value, and each list or table in it, has an entry: then it lacks none anywhere."""
    kind = type(value)
    if kind not in (list, tuple, dict):
        return _counts(value)
    has_entry = False
    for part in value.values() if kind is dict else value:
        if type(part) in PLAIN:
            has_entry |= part == part
        elif _is_full(part):
            has_entry = True
        else:
            return False
    return has_entry


def _part_lacks(theirs: Any, ours: Any) -> bool:
    """The same of parts; a single NaN among others may be what a part is."""
    return type(theirs) not in (float, complex) and _lacks(theirs, ours)


def _parts(value: Any) -> Iterator[Any]:
    """A value and all its parts, as they are kept."""
    yield value
    if type(value) in (list, tuple, dict):
        for part in value.values() if type(value) is dict else value:
            yield from _parts(part)


def _counts(part: Any) -> bool:
    """Whether this is an entry, or has one of its own."""
    is_nan = type(part) in (float, complex) and part != part  # alone in a list, it is nothing
    return not is_nan and not _is_empty(part) and type(part) not in (list, tuple, dict)


def _is_empty(value: Any) -> bool:
    """Whether this, as it came or as it is kept, has no entries, or is an array of NaN alone."""
    if type(value) is Kept or is_array(value):
        return 0 in tuple(value.shape) or (type(value) is Kept and _has_no_number(value))
    return type(value) in (list, tuple, dict) and not value


def _has_no_number(value: Kept) -> bool:
    """Whether all of an array's entries are NaN, or dates that are none."""
    if not value.dtype.startswith(DATES) or 0 in value.shape:
        return is_all_nan(value.numbers)
    return bool((value.numbers == NAT).all())


def _holds_numbers(value: Any) -> bool:
    """Whether numbers are in it, and no part is without entries."""
    return not _may_be_nothing(value) and any(map(_is_numbers, _parts(value)))


def _is_numbers(value: Any, is_part: bool = False) -> bool:
    """Whether this is an array with entries, a number, or made of nothing but such, or of texts."""
    if isinstance(value, Kept):
        is_truth = value.shape == () and "bool" in value.dtype
        return prod(value.shape) > 0 and not is_truth and not _has_no_number(value)
    if isinstance(value, (list, tuple, dict, set, frozenset)):
        parts = value.values() if isinstance(value, dict) else value
        return bool(parts) and all(_is_numbers(part, is_part=True) for part in parts)
    if type(value) is Opaque:
        return value.kind.startswith(EXACT) and "NaN" not in value.kind
    kinds = (int, float, complex, bool, str, bytes) if is_part else (int, float, complex)
    return type(value) in kinds and value == value


def words_of(empty: Crossing) -> str:
    """What is told of a call that gave nothing."""
    parts = list(_parts(empty.outcome))
    no_entries = any(_is_empty(one) and 0 in getattr(one, "shape", (0,)) for one in parts)
    return NOTHING if no_entries else NO_NUMBERS

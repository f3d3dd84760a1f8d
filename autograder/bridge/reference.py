"""What the reference's crossings decide of an answer's: what may change, what is due, what goes on.

A call goes by its label, the name by which the test came to what it calls.
"""

import collections
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

from autograder.bridge import library
from autograder.bridge.stand_ins import ARITHMETIC, BINARY, OF_VALUE, ways
from autograder.common.results import INSTANCE, Crossing, Opaque, Raised

INSTEAD = {f"__{name}__": f"__i{name}__" for name in BINARY}
INSTEAD |= {f"__i{name}__": f"__{name}__" for name in BINARY}
VALUE = "value"  # nothing but values
KNOWN = "known"  # values, and objects of the instructor's classes that are real ones here
ENDS = ("StopIteration", "StopAsyncIteration")
DEEPEST = 20  # that lists of objects are looked into
WHOLE = ("deque(", "range(", "bytearray(")  # texts of what holds nothing but values
OBJECTS = "objects"  # a list or table of objects, where one that is also a value is an object


class Allowed:
    """Which of our values the calls of a test may change in place: those that the reference did.

    It is made of the reference's crossings during the same test, in order: the label of the call,
    and each value of ours that it changed, by its kind and where it stood among the arguments
    ("Module", "Tensor@1", "list@0.2", "dict@named", ...); any part of an argument counts as all of
    it. The n-th call of a label may change what the reference's n-th call of it changed; one that
    comes after the reference's last what that one did. A call of a label that the reference does
    not have is held against the reference's call at the same place in the test.

    What is no call (`is_quiet`) is recorded only where it changed something, counted apart, and
    may change nothing if the reference changed nothing under the same label.

    To use it: `peer.protect = True`, and `peer.allowed` the reference's `(crossing.what,
    crossing.changed)` before the test is run; the count begins anew with each `peer.recording()`.
    Without an entry nothing may be changed. What is kept away is still what the call gives.
    """

    def __init__(self, crossings: Iterable[tuple[str, tuple[str, ...]]]) -> None:
        self.calls: list[tuple[str, ...]] = []
        self.by_name: dict[str, list[tuple[str, ...]]] = {}
        for name, changed in crossings:
            self.by_name.setdefault(path_of(name), []).append(changed)
            if not is_quiet(name):
                self.calls.append(changed)
        self.made: collections.Counter[str] = collections.Counter()  # so far, by label
        self.total = 0  # calls so far

    def next(self, name: str) -> collections.Counter[str]:
        """What the call that is made now may change."""
        path = path_of(name)
        own = self.by_name.get(path)
        if own:
            found = own[min(self.made[path], len(own) - 1)]
        else:
            found = self.calls[self.total] if self.total < len(self.calls) else ()
        self.made[path] += 1
        if is_quiet(name):
            return collections.Counter(found if own else ())
        self.total += 1
        return collections.Counter(found)


def argument(label: str) -> str:
    """The argument in which a value that was changed stands: "@0" of "list@0.2".

    How an answer changes what it was handed is its own affair: `d[k] = sorted(d[k])` puts new lists
    into a table, `d[k].sort()` changes those that are there, and a test sees the same.
    """
    what, at, where = label.partition("@")
    return f"@{where.partition('.')[0]}" if at and " " not in what else label


def permits(allowed: collections.Counter[str], label: str) -> bool:
    """Whether a change under this label is among those that the reference makes."""
    return allowed[label] > 0 or argument(label) in map(argument, allowed)


def exceeds(changed: Iterable[str], allowed: collections.Counter[str]) -> bool:
    """Whether a call changed more than the reference's did."""
    left = +allowed
    for label in changed:
        if not permits(left, label):
            return True
        if argument(label) == label:
            left = left - collections.Counter((label,))
    return False


@dataclass(frozen=True, eq=False)
class Places:
    """Where in a tuple or table values are due: by place or key, `VALUE` or again such places."""

    parts: "dict[Any, Due]"
    objects: list[int | str]  # places and keys of objects, and of lists of nothing else


@dataclass(frozen=True, eq=False)
class Each:
    """What each part of a list has to be that stands in the place of an iterator."""

    due: "str | Places"


@dataclass(frozen=True)
class Keyed:
    """What each entry has to be of a table whose keys are objects."""

    due: "Due"


Due = str | Places | Each | Keyed  # what has to be given, a constant; "object" is anything
WITHIN = Places | Keyed  # where parts of what is given have to be something


class Expected:
    """Where a test's calls have to give values, as the reference's did: made like `Allowed`.

    An attribute or a method of an object to which the reference leads no way, as to one in a list
    that is an object of its own, has to give what it gives by this name wherever it is asked for.
    """

    def __init__(self, kinds: Iterable[tuple[str, Due]]) -> None:
        self.kinds: dict[str, list[Due]] = {}
        self.named: dict[str, set[Due]] = {}
        for name, kind in kinds:
            for way in ways(path_of(name)):
                self.kinds.setdefault(way, []).append(kind)
                self.named.setdefault(_last(way), set()).add(kind)
        self.made: collections.Counter[str] = collections.Counter()

    def next(self, name: str) -> Due:
        """What has to be given now; empty for whatever it is."""
        if not self.kinds:
            return ""
        known = ways(path_of(name))
        due = [self._counted(way) for way in known]
        if not any(due):
            last = _last(known[0])
            return VALUE if last and self.named.get(last) == {VALUE} else ""
        places = [kind for kind in due if isinstance(kind, WITHIN)]
        found = next((kind for kind in (VALUE, KNOWN, *places, OBJECTS) if kind in due), "")
        return found or next(filter(None, map(self._each, known)), "")

    def _each(self, way: str) -> Each | None:
        """What each part of a list has to be where the reference gives an iterator."""
        steps = [kind for kind in self.kinds.get(f"{way}.__next__", ()) if kind != "object"]
        if steps and all(kind == VALUE for kind in steps):
            return Each(VALUE)
        places = [kind for kind in steps if isinstance(kind, Places)]
        if not places or len(places) < len(steps):
            return None
        common = set[Any].intersection(*(set(one.parts) for one in places))
        return Each(Places({place: places[0].parts[place] for place in common}, []))

    def _counted(self, way: str) -> Due:
        own = self.kinds.get(way, ())
        self.made[way] += bool(own)
        return own[min(self.made[way], len(own)) - 1] if own else ""


class Left:
    """Which errors of the test's an object is told of that they leave: made like `Allowed`.

    Those of the class of which the reference's is told as it is left for the same time.
    """

    def __init__(self, told: Mapping[str, list[str]] | None) -> None:
        self.told = told  # None: all are told
        self.made: collections.Counter[str] = collections.Counter()  # so far, by object

    def next(self, label: str) -> bool:
        """Whether an object is told of the error, if any, by which it is left now."""
        if self.told is None:
            return True
        parts = [way.partition(".__exit__") for way in ways(path_of(label))]
        known = [(self.told.get(of, [""]), self.made[of], how) for of, _, how in parts]
        self.made.update(of for of, *_ in parts)
        return any(told[min(count, len(told) - 1)] == how for told, count, how in known)


def _last(way: str) -> str:
    """The name of a public attribute or method, without the object that it is of; or nothing."""
    start, _, name = way.rpartition(".")
    own = f"get {name}" if way.startswith("get ") else name
    return own if start and not name.startswith("_") else ""


def expectations(transcript: Iterable[Crossing]) -> list[tuple[str, Due]]:
    """What `peer.expected` holds: of each crossing of the reference, what kind of thing it gave."""
    return [(call.what, _what_is(call.outcome)) for call in transcript if not is_quiet(call.what)]


def comparisons(transcript: Iterable[Crossing]) -> frozenset[str]:
    """What `peer.compared` holds: where the reference's objects compare with plain values."""
    return frozenset(map(reckoned_from, _with_values(transcript)))


def reckoned_from(way: str) -> str:
    """A way without arithmetic: whether `v += 1` changes an object or makes another is the same."""
    parts = (part for part in way.split(".") if part.removesuffix(OF_VALUE) not in ARITHMETIC)
    return ".".join(parts)


def arithmetic(transcript: Iterable[Crossing]) -> frozenset[str]:
    """What `peer.reckoned` holds: what the reference's objects do with plain values, anywhere.

    With each goes what Python does in its place: `v += 1` in place, or by `+`.
    """
    used = (way.rpartition(".")[2] for way in _with_values(transcript))
    names = {name.removesuffix(OF_VALUE) for name in used}
    return frozenset(names | {INSTEAD[name] for name in names if name in INSTEAD})


def _with_values(transcript: Iterable[Crossing]) -> Iterator[str]:
    """The ways of what the reference's objects do with plain values."""
    paths = (path_of(call.what) for call in transcript if OF_VALUE in call.what)
    return (way for path in paths for way in ways(path) if way.endswith(OF_VALUE))


def ends(transcript: Iterable[Crossing]) -> frozenset[str]:
    """What `peer.ends` holds: where the reference says that nothing more comes, as by `g.send`."""
    raised = (call.what for call in transcript if _is_end(call.outcome))
    return frozenset(way for what in raised for way in ways(path_of(what)))


def left_by_errors(transcript: Iterable[Crossing]) -> dict[str, list[str]]:
    """What `peer.left` holds: how each of the reference's objects is left, time by time."""
    found: dict[str, list[str]] = {}
    for way in (way for call in transcript for way in ways(path_of(call.what))):
        of, is_left, how = way.partition(".__exit__")
        if is_left:
            found.setdefault(of, []).append(how)
    return found


def _is_end(outcome: Any) -> bool:
    return type(outcome) is Raised and outcome.type_name in ENDS


def steps(transcript: Iterable[Crossing]) -> Callable[[str], list[str]]:
    """What `peer.random.steps` holds: whose random numbers go on after a call, as the reference's.

    Asked once for each call, in order, with its label.
    """
    calls = [call for call in transcript if not is_quiet(call.what)]
    names = sorted({name for call in calls for name in call.drew})
    drawn = {
        name: Expected((call.what, VALUE if name in call.drew else "") for call in calls)
        for name in names
    }

    def after(label: str) -> list[str]:
        return [] if is_quiet(label) else [name for name in names if drawn[name].next(label)]

    return after


def _what_is(outcome: Any) -> Due:
    """What kind of thing an outcome is. Nothing is none: what is given instead is not looked at."""
    if outcome is None:
        return "object"
    found = [part for part in parts_of(outcome) if not _is_value(part)]
    if not found:
        return VALUE
    known = all(isinstance(part, Opaque) and part.kind == INSTANCE for part in found)
    if known:
        return KNOWN
    if _are_objects(outcome, DEEPEST):
        return OBJECTS
    return _keyed(outcome) or _places_in(outcome) or "object"


def _is_value(part: Any) -> bool:
    """Whether a part of an outcome is a value; of a date or fraction a transcript keeps a text."""
    if type(part) is Opaque:
        return part.type_name in library.KEPT_AS_TEXT or part.kind.startswith(WHOLE)
    return type(part) is not Raised


def _are_objects(outcome: Any, depth: int) -> bool:
    """Whether an outcome is a list or table of objects, or of such lists, and of nothing else."""
    parts = outcome.values() if type(outcome) is dict else outcome
    if not isinstance(parts, Iterable) or type(parts) in library.LEAVES or not depth:
        return False
    return all(
        part is None or type(part) is Opaque or _are_objects(part, depth - 1) for part in parts
    )


def _keyed(outcome: Any) -> Keyed | None:
    """What entries have to be of a table whose keys are objects, as members of enumerations are.

    No place of such a table can be told from another, so all have to be what all are.
    """
    if type(outcome) is not dict or all(map(_is_value, chain(*map(parts_of, outcome)))):
        return None
    kinds = [_what_is(part) for part in outcome.values()]
    return Keyed(kinds[0]) if len(set(kinds)) == 1 and kinds[0] != "object" else None


def _places_in(outcome: Any) -> Places | None:
    """Which parts of an outcome are values, beside others that are objects; None if it has none.

    Those of a list may come in another order.
    """
    items: Iterable[tuple[Any, Any]] = ()
    if issubclass(type(outcome), tuple):
        items = enumerate(outcome)
    elif type(outcome) is dict:
        items = ((key, part) for key, part in outcome.items() if type(key) in (int, str))
    parts = {place: (part, _what_is(part)) for place, part in items}
    due = {p: one for p, (_, one) in parts.items() if one == VALUE or isinstance(one, WITHIN)}
    apart = [
        p
        for p, (part, one) in parts.items()
        if one == OBJECTS or (type(part) is Opaque and one != VALUE)
    ]
    return Places(due, apart) if due else None


def parts_of(value: Any) -> Iterator[Any]:
    """A value and everything in it."""
    seen: set[int] = set()
    left = [value]
    while left:
        part = left.pop()
        if type(part) in library.LEAVES:
            yield part
            continue
        if id(part) in seen:
            continue
        yield part
        if parts := library.parts_of(part):
            seen.add(id(part))
            left += parts


def is_quiet(label: str) -> bool:
    """Whether this is no call: setting, deleting, copying, asking by name, a backward pass."""
    return " " in label and not label.startswith("get ")


def given_by(label: str) -> str:
    """The label of what a call with this label gives."""
    return "|".join(f"{way}()" for way in ways(label))


def path_of(label: str) -> str:
    """A label without what the answer decides: whether a class or a function made an object."""
    return label.replace("()", "")

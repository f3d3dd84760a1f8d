"""What a test does to a list that an answer shares with it: at both ends it is done.

Values cross by copy. In one process an answer that hands out a list of its own, or keeps one that
it was handed, sees what the test does to it later. So both ends remember, for the length of a test,
which of their values are copies of each other, under numbers that both count alike; with each
request the trusted end sends what has changed in its own, and needs nothing of what the other one
makes of it. The other way goes what `late_changes` lets through. That a result is such a value is
told by the answer's end, see `memory`.

What an answer has made comes back to it as its own, if both are alike still: the list that it gave,
or the object of its own class whose plain value was given, which is the value's home.
"""

import collections
import operator
import sys
from collections.abc import Iterable, Mapping
from itertools import chain, islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from autograder.bridge import arrays, based, codecs
from autograder.bridge.spans import Owner, Owners, owner_of
from autograder.bridge.wire import HOLDERS, WireError

if TYPE_CHECKING:
    from autograder.bridge.incoming import Incoming
    from autograder.bridge.outgoing import Outgoing

MAX_SHARED = 300  # values of a test
MAX_OF_ONE = 100  # of them from one message
MAX_PARTS = 20_000  # of all of them together
MAX_EDIT = 10_000  # parts that are new to the other end, in one message
MAX_ARRAY = 8 * MAX_EDIT  # bytes of an array: a changed one is sent in full
BYTES_OF_PART = 4096  # of a tensor's memory count as one part: no copy is made of it
NONE: Mapping[int, Any] = MappingProxyType({})
HELD_HERE = 2  # references to a value that nobody but its pair has: the pair's and one to count

Key = tuple[int, int]  # the number of a request, and a place in it or in its reply


class Pair:
    """A value that was copied, and its parts as they were when both were last alike."""

    def __init__(self, value: Any, parts: Any) -> None:
        self.value = value
        self.parts = parts
        self.owner: Owner = 0  # see `Owners`, at the end that tells of results
        self.home: Any = None  # of whose class it is the plain value, at the end of the answer
        self.label = ""  # of the request by which it came to be shared, where a test runs
        self.told: Any = None  # its parts when a later change was told last, where an answer runs
        self.added: tuple[int, list[Any]] = (0, [])  # by which message, and what was new in it


class Version:
    """Stands for the parts of a tensor, which are not compared: how often it was changed."""

    def __init__(self, value: Any) -> None:
        self.count = value._version
        self.size = value.nbytes // BYTES_OF_PART

    def __len__(self) -> int:
        return self.size


WHOLES = (bytes, Version)  # parts of values that are changed as one


class Shared:
    """The values of one end that the other end has copies of."""

    def __init__(self, tells: bool = False) -> None:
        self.pairs: dict[Key, Pair] = {}
        self.tells = tells  # whether this end tells the other of its results, see `memory`
        self.owners = Owners()
        self.results: dict[int, Key] = {}  # ids of those that an answer has made, where a test runs
        self.inner: dict[int, Any] = {}  # what it has put into them later, by id
        self.homes: dict[int, Key] = {}  # ids of their homes, where an answer runs
        self.parts = 0  # of all of them
        self.lasting: dict[int, Any] = {}  # stand-ins, where an answer runs
        self.taken: list[Key] = []  # whose later changes by an answer were done, see `late_changes`
        self.serial = 0  # of the last request
        self.first = 0  # of those of this test

    def begin(self) -> None:
        """A new test: nothing is shared yet."""
        self._clear()
        self.first = self.serial + 1

    def _clear(self) -> None:
        self.pairs.clear()
        self.owners.clear()
        self.results.clear()
        self.inner.clear()
        self.homes.clear()
        self.lasting.clear()
        self.taken.clear()
        self.parts = 0

    def hold(self, number: int, stand_in: Any) -> None:
        """Have an object be the same one as long as a test holds it; too many end the oldest.

        An answer may know it by its `id`, or in a table that holds it weakly.
        """
        self.lasting[number] = stand_in
        if len(self.lasting) > MAX_SHARED:
            del self.lasting[next(iter(self.lasting))]

    def keep(
        self,
        serial: int,
        values: Iterable[tuple[int, Any, Any]],
        homes: Mapping[int, Any] = NONE,
        label: str = "",
    ) -> None:
        """Remember values by their places, with their parts; too many push out the oldest."""
        for place, value, parts in values:
            pair = self.pairs[serial, place] = Pair(value, parts)
            pair.label = label
            self.parts += _weight(parts)
            if id(value) in homes:
                pair.home = homes[id(value)]
                self.homes[id(pair.home)] = serial, place
            if self.tells:
                pair.owner = owner_of(value)
                self.owners.add(pair.owner, (serial, place))
        while self.parts > MAX_PARTS or len(self.pairs) > MAX_SHARED:
            self.forget(next(iter(self.pairs)))

    def forget(self, key: Key) -> None:
        """This is shared no longer."""
        pair = self.pairs.pop(key, None)
        if pair is not None:
            self.parts -= _weight(pair.parts)
            for table, one in ((self.results, id(pair.value)), (self.homes, id(pair.home))):
                if table.get(one) == key:
                    del table[one]
            if self.tells:
                self.owners.remove(pair.owner, key)

    # --- the end that sends changes -------------------------------------------------------------

    def leave(self, message: "Outgoing") -> dict[str, Any]:
        """What goes with a request: its number, what has changed, and what nobody here holds."""
        self.serial += 1
        message.serial, message.sent = self.serial, first(0, message.encoder.kept)
        for place, value in enumerate(message.encoder.kept):
            key = self.results.get(id(value))
            if key is not None and type(value) in HOLDERS:
                message.returned[place] = key
        gone, edits = [], []
        for key in list(self.pairs):
            pair = self.pairs.get(key)
            if pair is None:  # pushed out meanwhile
                continue
            if is_same(pair.value, pair.parts):
                if sys.getrefcount(pair.value) <= HELD_HERE and not _is_looked_at(pair.value):
                    gone.append(key)
                    self.forget(key)
            else:  # told even if nobody here holds it any more: an answer may
                made, new = edit(message, pair)
                (gone if made is None else edits).append(key if made is None else [*key, *made])
                self._renew(key, pair, made is not None)
                self.keep(self.serial, new, label=message.label)
        own = [[place, *key] for place, key in message.returned.items() if key in self.pairs]
        told = {"n": self.serial, "first": self.first, "edits": edits, "gone": gone, "own": own}
        taken, self.taken = self.taken, []
        return told | {"lost": _held_by_none(message.peer.given), "taken": taken}

    def _renew(self, key: Key, pair: Pair, is_kept: bool) -> None:
        is_result = id(pair.value) in self.results
        self.forget(key)
        if is_kept:
            self.keep(key[0], [(key[1], pair.value, parts_of(pair.value))], label=pair.label)
            if is_result and key in self.pairs:  # else it was pushed out at once
                self.results[id(pair.value)] = key

    def took(self, key: Key, pair: Pair) -> None:
        """An answer's later change was done here as well: both are alike again."""
        self.taken.append(key)
        self._renew(key, pair, is_kept=True)

    def back(self, message: "Outgoing", results: list[Any], returned: list[Any]) -> None:
        """A request was answered: what it handed over and what it gave is shared now.

        Args:
            message: the request.
            results: what it gave, None for what is shared already.
            returned: places of what it handed over that the answer's end has taken for its own.
        """
        count = len(message.encoder.kept)
        home = {place for place in returned if type(place) is int and place in message.returned}
        sent = [
            (place, value, parts_of(value) if place in message.moved else parts)
            for place, value, parts in message.sent
            if place not in message.kept_away and place not in home
        ]
        for place in sorted(home):
            key = message.returned[place]
            if key in self.pairs:
                self._renew(key, self.pairs[key], place not in message.kept_away)
        new = first(count, results)
        self.keep(message.serial, [*sent, *new], label=message.label)
        for place, value, _ in new:
            if (message.serial, place) in self.pairs:
                self.results[id(value)] = message.serial, place

    def put_in_later(self, values: list[Any]) -> None:
        """Remember what an answer has put into a value that it was handed."""
        for value in values[: MAX_SHARED - len(self.inner)]:
            if _is_small(value):
                self.inner[id(value)] = value

    def is_made_there(self, value: Any) -> bool:
        """Whether an answer has given this value in this test: it may do with it what it likes."""
        return id(value) in self.results or id(value) in self.inner

    # --- the end that takes them ------------------------------------------------------------------

    def arrive(self, incoming: "Incoming", told: Any) -> None:
        """Do to our values what a test did to its own, unless they have changed here as well."""
        if not isinstance(told, dict):
            self.lasting.clear()
            return
        if told["first"] != self.first:
            self._clear()
            self.first = told["first"]
        for number in told["lost"]:
            self.lasting.pop(number, None)
        self._were_taken(told["taken"])
        for key in told["gone"]:
            self.forget((key[0], key[1]))
        for serial, place, *edit in told["edits"]:
            pair = self.pairs.get((serial, place))
            self.forget((serial, place))
            if pair is None:
                continue
            try:
                if _take(incoming, pair, *edit):
                    self._keep_again((serial, place), pair)
                if edit[1] is not None:
                    self.keep(told["n"], first(edit[1], incoming.kept))
            except Exception:  # noqa: BLE001  (what cannot be done to it is left)
                continue
            finally:
                incoming.rewind(0)
                incoming.originals.clear()
        incoming.own = {place: tuple(key) for place, *key in told["own"]}

    def _were_taken(self, keys: list[list[int]]) -> None:
        """What was told of later changes here was done there as well."""
        for serial, place in keys:
            pair = self.pairs.get((serial, place))
            if pair is not None and pair.told is not None:
                self.forget((serial, place))
                self.keep(serial, [(place, pair.value, pair.told)])
                self.keep(*pair.added)

    def _keep_again(self, key: Key, pair: Pair) -> None:
        homes = NONE if pair.home is None else {id(pair.value): pair.home}
        self.keep(key[0], [(key[1], pair.value, parts_of(pair.value))], homes)

    def plain_of(self, home: Any, plain: Any) -> Any:
        """The plain value of an object that the other end has already, if it is that still."""
        pair = self.pairs.get(self.homes.get(id(home), (0, 0)))
        if pair is None or pair.home is not home or type(pair.value) is not type(plain):
            return None
        alike = is_same(pair.value, pair.parts) and is_same(plain, pair.parts)
        return pair.value if alike else None

    def answered(self, incoming: "Incoming", reply: "Outgoing", results: list[Any]) -> list[int]:
        """A request was answered here: remember what it handed over and what it is given.

        Args:
            incoming: the request.
            reply: what answers it.
            results: what it gives, None for what is shared already.

        Returns:
            Places of what it handed over that is this end's own.
        """
        told = incoming.frame.tree.get("same")
        if not isinstance(told, dict):
            return []
        handed: list[Any] = [
            None if place in incoming.taken_home else value
            for place, value in enumerate(incoming.kept)
        ]
        for _, key in sorted(incoming.taken_home.items()):
            pair = self.pairs.get(key)
            if pair is not None:
                self.forget(key)
                if pair.home is not None:
                    put_in(pair.value, based.value_of(pair.home))
                self._keep_again(key, pair)
        both = [*first(0, handed), *first(len(handed), results)]
        self.keep(told["n"], both, reply.encoder.homes)
        return list(incoming.taken_home)


def _held_by_none(given: dict[int, Any]) -> list[int]:
    """The numbers of objects that were handed over of late and that nobody here holds any more."""
    late = islice(reversed(given), MAX_SHARED)
    return [number for number in late if sys.getrefcount(given[number]) <= HELD_HERE]


def first(start: int, values: list[Any]) -> list[tuple[int, Any, Any]]:
    """Those of a message's values that are remembered: their places, themselves, their parts."""
    places = enumerate(values[:MAX_OF_ONE], start)
    return [(place, value, parts_of(value)) for place, value in places if _is_small(value)]


def _is_small(value: Any) -> bool:
    if type(value) in HOLDERS:
        return len(value) <= MAX_PARTS // 4
    if arrays.has_memory(value):
        return value.nbytes <= MAX_ARRAY
    return is_tensor(value) and value.nbytes <= MAX_PARTS // 4 * BYTES_OF_PART


def is_tensor(value: Any) -> bool:
    """Whether this is an ordinary tensor without history, and no parameter."""
    views = codecs.memory()
    return views is not None and views.is_constant(value)


def _is_looked_at(value: Any) -> bool:
    """Whether this is a tensor of whose memory somebody here has a view."""
    return is_tensor(value) and codecs.memory().is_looked_at(value)


def _weight(parts: Any) -> int:
    return 1 + (len(parts) // 8 if isinstance(parts, bytes) else len(parts))


def parts_of(value: Any) -> Any:
    """What a value holds now, not looking into it any further."""
    if isinstance(value, dict):
        return (*value, *value.values())
    if isinstance(value, bytearray):
        return bytes(value)
    if type(value) in HOLDERS:
        return tuple(value)
    views = codecs.memory()
    if views is not None and views.is_tensor(value):
        return Version(value)
    return arrays.bits(value)[-1] if arrays.has_memory(value) else tuple(value)


def is_same(value: Any, parts: Any) -> bool:
    """Whether a value holds the same as when these were its parts; asks no object for it."""
    if isinstance(parts, bytes):
        return parts == (value if isinstance(value, bytearray) else value.tobytes())
    if isinstance(parts, Version):
        return parts.count == value._version
    now = chain(value, value.values()) if isinstance(value, dict) else value
    if len(parts) != len(value) * (1 + isinstance(value, dict)):
        return False
    return all(map(operator.is_, parts, now)) or not any(map(other, parts, parts_of(value)))


def other(one: Any, two: Any) -> bool:
    """Whether these may differ: the same object does not, nor does a plain value of its kind."""
    if one is two:
        return False
    plain = (int, float, str, bool, bytes)
    return type(one) is not type(two) or type(one) not in plain or one != two


def edit(message: "Outgoing", pair: Pair) -> tuple[list[Any] | None, list[Any]]:
    """What tells of a change, and the values in it that are shared by it from now on.

    It is: how many parts there were, the place of the first new value, and the parts of now, each
    by its old place or as a node. None if one is no plain value: then the copy stays as it is.
    """
    value, encoder, start = pair.value, message.aliases(), message.added
    encoder.has_objects = message.peer.is_free
    if not _is_small(value):
        return None, []
    old = () if isinstance(value, set) or isinstance(pair.parts, WHOLES) else pair.parts
    places = {id(part): place for place, part in enumerate(old)}
    items = chain.from_iterable(value.items()) if isinstance(value, dict) else value
    try:
        if isinstance(pair.parts, WHOLES):
            return [len(pair.parts), None, encoder.node(value)], []
        now = [places[id(p)] if id(p) in places else [encoder.node(p)] for p in items]
    except WireError:
        return None, []
    message.added -= MAX_OF_ONE
    return [len(pair.parts), start, *now], first(start, encoder.kept)


def _take(incoming: "Incoming", pair: Pair, count: int, _: Any, *now: Any) -> bool:
    """Change our value in place; whether both are alike then."""
    value, parts = pair.value, pair.parts
    if count != len(parts):
        return False
    if isinstance(parts, WHOLES):
        return _overwrite(value, parts, incoming.value(now[0]))
    alike = is_same(value, parts)
    found = [parts[one] if type(one) is int else incoming.value(one[0]) for one in now]
    if alike:
        put_parts(value, found)
        if pair.home is not None and is_same(based.value_of(pair.home), parts):
            based.put_in(pair.home, value)
    elif isinstance(value, list | collections.deque):
        if list(now[:count]) == list(range(count)):  # it was only appended to
            value.extend(found[count:])
        elif not now:
            value.clear()
    return alike


def _overwrite(value: Any, parts: Any, fresh: Any) -> bool:
    of_one_kind = type(value) is type(fresh) or (
        arrays.has_memory(value) and arrays.has_memory(fresh)  # its class may not have crossed
    )
    if not of_one_kind or not is_same(value, parts):
        return False
    if isinstance(value, bytearray):
        value[:] = fresh
    elif is_tensor(fresh):
        return codecs.memory().overwrite(value, fresh)
    elif (value.dtype, value.shape) != (fresh.dtype, fresh.shape):
        return False
    else:
        return arrays.write(value, fresh)
    return True


def put_parts(value: Any, found: list[Any]) -> None:
    """Have a value hold these parts, of a table its keys and values in turn."""
    if isinstance(value, list):
        value[:] = found
    elif isinstance(value, dict):
        put_in(value, dict(zip(found[::2], found[1::2], strict=True)))
    else:
        put_in(value, type(value)(found))


def put_in(ours: Any, fresh: Any) -> None:
    """Have a holder hold what another one of its kind holds."""
    if isinstance(ours, bytearray | list):
        ours[:] = fresh
        return
    if not isinstance(ours, dict):
        ours.clear()
        ours.extend(fresh) if isinstance(ours, collections.deque) else ours.update(fresh)
        return
    if len(ours) != len(fresh) or any(map(operator.is_not, ours, fresh)):
        ours.clear()
    for key, value in fresh.items():  # not `update`: a counter would add, an ordered one forget
        ours[key] = value


def exchange(value: Any, instead: dict[int, Any]) -> None:
    """Have a holder hold other values instead of its own, told by what these are."""

    def of(part: Any) -> Any:
        if type(part) is tuple:
            return tuple(map(of, part))
        return instead.get(id(part), part)

    if isinstance(value, dict):
        put_in(value, {key: of(part) for key, part in value.items()})
    elif isinstance(value, list | collections.deque):
        put_in(value, [of(part) for part in value])

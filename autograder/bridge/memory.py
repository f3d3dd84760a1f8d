"""In whose memory a result lies: an answer's end tells it, ours believes what it sees for itself.

Values cross by copy. A result that is what a test holds already, or a view of it, would come as a
copy, and a wrong answer would pass where something of its own is asked for. So with a reply the
answer's end tells which of its results are values that both ends know, or lie in the memory of one.
The results cross all the same, and ours takes its own value in place of one only if both hold the
same: what is told here decides what else changes with a result, never what a test is given.
"""

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from autograder.bridge import arrays, codecs
from autograder.bridge.aliases import is_same, is_tensor, other, parts_of
from autograder.bridge.spans import Owner, Owners, owner_of
from autograder.bridge.wire import HOLDERS, MALFORMED, WireError

if TYPE_CHECKING:
    from autograder.bridge.incoming import Incoming
    from autograder.bridge.outgoing import Outgoing
    from autograder.bridge.peer import Peer

MAX_TOLD = 1000  # results of a reply, and parameters of modules in it
HELD = "K"  # what stands in a place of the message: it was handed over, or is another result
PAIR = "E"  # what both ends remember under a number, see `aliases`
STATE = "P"  # a parameter or buffer, by its place in a module that both ends know
ENTRY = "X"  # one of a module that is told of in the same reply
DEEP = 20  # tuples in tuples that are compared


# --- the answer's end -----------------------------------------------------------------------------


def tell(peer: "Peer", incoming: "Incoming", reply: "Outgoing") -> tuple[Any, list[Any]]:
    """What is told of the results in a reply, if anything; the results, None for those told of."""
    results, first = list(reply.encoder.kept), len(incoming.kept)
    if not results and not reply.tensors:
        return None, results
    told: list[Any] = []
    entries: list[Any] = []
    with contextlib.suppress(Exception):  # of what is too strange to look into, nothing is told
        known = _Known(peer, incoming, reply)
        for place, value in enumerate(results[:MAX_TOLD], first):
            found = known.find(value, [HELD, place]) if known.may_be(value) else None
            if found is not None:
                told.append([place, *found])
                results[place - first] = None
        for entry, value in known.state():
            found = known.find(value, [ENTRY, entry])
            if found is not None:
                entries.append([entry, *found])
    return [told, entries] if told or entries else None, results


class _Known:
    """What both ends know that a result may be, or lie in; looked for no further than needed."""

    def __init__(self, peer: "Peer", incoming: "Incoming", reply: "Outgoing") -> None:
        self.peer = peer
        self.incoming = incoming
        self.reply = reply
        self.first = len(incoming.kept)  # the place of the first result
        self.met: list[tuple[list[Any], Any]] = []  # where values are known, and they themselves
        self.owners = Owners()  # of these, by their places, the first one last
        self.entries: dict[int, int] = {}  # id of what stands in a module -> its entry
        self.buffers: set[int] | None = None  # what stands in modules, and is no parameter
        self.is_looked = False

    def may_be(self, value: Any) -> bool:
        """Whether a result may be known, or lie in something that is; a look at little of it."""
        if type(value) in HOLDERS:
            return id(value) in self.peer.shared.owners.others
        return arrays.has_memory(value) or is_tensor(value)

    def state(self) -> Iterator[tuple[int, Any]]:
        """Parameters and buffers of modules that the reply tells of, with their entries."""
        if not self.reply.tensors:
            return iter(())
        kept = set(map(id, self.reply.encoder.kept))
        new = [(e, v) for e, v in enumerate(self.reply.tensors[:MAX_TOLD]) if id(v) not in kept]
        self.entries = {id(value): entry for entry, value in new}
        return iter(new)

    def find(self, value: Any, here: list[Any]) -> list[Any] | None:
        """What tells where a value is known, and which part of that it is; None if nowhere."""
        shared, owner = self.peer.shared, owner_of(value)
        for key in shared.owners.of(owner):
            pair = shared.pairs[key]
            part = _part(value, pair.value)
            if part is not None and is_same(pair.value, pair.parts):
                return [[PAIR, *key], part]
        if type(value) in HOLDERS:
            return None
        if self._may_be_elsewhere(value):
            self._look()
        for _, place in self.owners.of(owner):
            where, whole = self.met[-place]
            if here[0] == ENTRY and where[0] == STATE and id(whole) in self.entries:
                where = [ENTRY, self.entries[id(whole)]]  # its module is not known there yet
            part = _part(value, whole)
            if part is not None:
                return None if where == here else [where, part]
        self._meet(here, value, owner)
        return None

    def _meet(self, where: list[Any], value: Any, owner: Owner) -> None:
        """Know a value; before all others, if the call was handed it, else after these."""
        self.owners.add(owner, (where[0] == HELD and where[1] < self.first, -len(self.met)))
        self.met.append((where, value))

    def _may_be_elsewhere(self, value: Any) -> bool:
        """Whether the memory of a value can be that of another one, too."""
        if arrays.has_memory(value):
            return value.base is not None
        if self.buffers is None:
            modules = self.peer.tensors._shared()
            self.buffers = {id(b) for *_, module in modules for b in module._buffers.values()}
        views = codecs.memory()
        is_used = views.is_used_elsewhere(value) or views.is_borrowed(value)
        return is_used or id(value) in self.buffers

    def _look(self) -> None:
        """Find what the call was handed, and what modules hold."""
        if self.is_looked:
            return
        self.is_looked = True
        new = set(map(id, self.reply.tensors))
        held = list(self.peer.tensors.held()) if self.peer.tensors else []
        for side, number, name, value in sorted(held, key=lambda one: id(one[-1]) in new):
            self._meet([STATE, side, number, name], value, owner_of(value))
        for place, value in enumerate(self.incoming.kept):
            if type(value) not in HOLDERS:
                self._meet([HELD, place], value, owner_of(value))


def _part(value: Any, whole: Any) -> list[Any] | None:
    """Which part of another value a value is, empty if all of it; None if it is none."""
    if value is whole:
        return []
    whole = None if type(value) in HOLDERS else _as(value, whole)
    if whole is None:
        return None
    return (arrays if arrays.has_memory(value) else codecs.memory()).part_of(value, whole)


def _as(value: Any, whole: Any) -> Any:
    """The memory of a whole as an array or a tensor, whichever a value is; None if it has none."""
    if arrays.has_memory(value):
        if arrays.has_memory(whole):
            return whole
        views = codecs.memory()
        return views.as_array(whole) if views is not None and views.is_tensor(whole) else None
    return codecs.memory().of_array(whole) if arrays.has_memory(whole) else whole


# --- the end of the test --------------------------------------------------------------------------


def claims_of(told: Any) -> dict[int, Any]:
    """What was told of results, by their places."""
    return {place: (where, part) for place, where, part in told[0][:MAX_TOLD]}


def own_or(incoming: "Incoming", value: Any, where: Any, part: Any) -> Any:
    """The value of ours that a result is told to be, or to lie in; else the result itself."""
    try:
        whole = _found(incoming, *where)
        own = None if whole is None else _of(whole, part, value)
        return value if own is None or not is_alike(own, value) else own
    except (WireError, *MALFORMED):  # it is not as it was told
        return value


def take_state(incoming: "Incoming", told: Any) -> None:
    """Lay parameters and buffers of the other end's modules where they are told to lie."""
    tensors = incoming.peer.tensors
    if told is None or not tensors:
        return
    for entry, where, part in told[1][:MAX_TOLD]:
        with contextlib.suppress(WireError, *MALFORMED):
            value, whole = _found(incoming, ENTRY, entry), _found(incoming, *where)
            if whole is not value:
                is_theirs = where[0] == ENTRY or tensors.is_theirs(whole)
                tensors.lay(value, whole, part, is_theirs)


def _found(incoming: "Incoming", kind: Any, *where: Any) -> Any:
    """What ours has there; None if there is nothing that may be changed."""
    peer, found = incoming.peer, None
    if kind == PAIR:
        pair: Any = peer.shared.pairs.get(where)  # type: ignore[arg-type]
        found = None if pair is None else pair.value
    elif kind == STATE:
        found = peer.tensors.at(*where) if peer.tensors else None
    elif kind in (HELD, ENTRY):
        (place,) = where
        values = incoming.kept if kind == HELD else incoming.tensors
        found = values[place] if type(place) is int and 0 <= place < len(values) else None
    return found if found is None or peer.policy.may_change(found) else None


def _of(whole: Any, part: Any, value: Any) -> Any:
    """A part of a value of ours, or all of it, which has to be of another one's kind."""
    if type(value) in HOLDERS or not part:
        return whole if not part and type(whole) is type(value) else None
    if arrays.has_memory(value):
        return arrays.read_view([_as(value, whole)], [0, *part]).view(type(value))
    return codecs.memory().view(_as(value, whole), part)


def is_alike(own: Any, value: Any) -> bool:
    """Whether only by what else changes with it, a value of ours can be told from a result."""
    if type(own) not in HOLDERS:
        return arrays.bits(own) == arrays.bits(value)
    if _settings(own) != _settings(value):
        return False
    if isinstance(own, set):
        return {(type(one), one) for one in own} == {(type(one), one) for one in value}
    ours, theirs = parts_of(own), parts_of(value)
    if isinstance(ours, bytes):
        return ours == theirs
    return len(ours) == len(theirs) and all(map(_is_one, ours, theirs))


def _settings(value: Any) -> tuple[Any, int]:
    """What a holder has beside its parts."""
    return getattr(value, "maxlen", None), id(getattr(value, "default_factory", None))


def _is_one(ours: Any, theirs: Any, depth: int = 0) -> bool:
    """Whether two parts are the same object, or plain values that are the same."""
    if type(ours) is tuple and type(theirs) is tuple and depth < DEEP:
        return len(ours) == len(theirs) and all(
            _is_one(one, two, depth + 1) for one, two in zip(ours, theirs, strict=True)
        )
    if type(ours) is float and type(theirs) is float:
        return ours == theirs or (ours != ours and theirs != theirs)
    return not other(ours, theirs)

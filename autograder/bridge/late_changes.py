"""What an answer changes in a list that it was handed earlier, or has given: told by its end.

A decorator that writes into a log, a context manager, a generator: each keeps a list that one call
has handed over, and changes it in a later one. Both ends know such values by numbers (`aliases`).
The trusted end does to its own what the same call of the reference does as well, with objects of
the answer's only where the reference puts objects; the next request says which it has done.
"""

from operator import itemgetter
from typing import TYPE_CHECKING, Any

from autograder.bridge.aliases import (
    MAX_OF_ONE,
    MAX_SHARED,
    edit,
    first,
    is_same,
    parts_of,
    put_parts,
)
from autograder.bridge.outline import CHANGES
from autograder.bridge.reference import is_quiet, path_of, permits
from autograder.bridge.reference import parts_of as all_parts_of
from autograder.bridge.stand_ins import remote_of
from autograder.bridge.wire import HOLDERS

if TYPE_CHECKING:
    from autograder.bridge.aliases import Pair
    from autograder.bridge.incoming import Incoming
    from autograder.bridge.outgoing import Outgoing
    from autograder.bridge.peer import Peer

KINDS = frozenset(HOLDERS) - {bytearray}  # what is told part by part
FIRST = -(10**9)  # place of what is new in a change, where no other value has one
EARLIER = " of an earlier call@"  # in what such a change goes by
OF_OBJECTS = " of objects"  # before it, where some that are no values are put there


def tell(peer: "Peer", incoming: "Incoming", reply: "Outgoing") -> list[Any]:
    """Where an answer runs: each change that was not told yet, of values of earlier calls."""
    told = incoming.frame.tree.get("same")
    if not isinstance(told, dict):
        return []
    handed = set(map(id, incoming.kept))  # what becomes of these is told as the call's change
    edits: list[Any] = []
    for key, pair in peer.shared.pairs.items():
        if type(pair.value) not in KINDS or pair.home is not None or id(pair.value) in handed:
            continue
        if is_same(pair.value, pair.parts if pair.told is None else pair.told):
            continue
        reply.added = _start(len(edits))
        made, new = edit(reply, pair)
        if made is not None:
            count, _, *now = made
            edits.append([*key, count, *now])
            pair.told, pair.added = parts_of(pair.value), (told["n"], new)
    return edits


def _start(count: int) -> int:
    """The place of the first of the values that are new in a change, after so many changes."""
    return FIRST - MAX_OF_ONE * count


def take(
    peer: "Peer", incoming: "Incoming", message: "Outgoing", told: list[Any]
) -> tuple[str, ...]:
    """Where tests run: do to our values what the answer did to its own; the kinds of change."""
    names = []
    for number, (serial, place, count, *now) in enumerate(told[:MAX_SHARED]):
        pair = peer.shared.pairs.get((serial, place))
        if pair is None or type(pair.value) not in KINDS:
            continue
        if count != len(pair.parts) or not is_same(pair.value, pair.parts):
            continue  # a test has changed it meanwhile
        found, new, holds = _parts(incoming, pair, now)
        root, where = _root(peer, pair, place)
        kind = f"{type(root.value).__name__}{holds}{EARLIER}{path_of(root.label)} {where}"
        names.append(kind)
        peer.changing.note(kind)
        if _is_kept_away(peer, message, kind, pair.value):
            continue
        put_parts(pair.value, found)
        peer.beside.note(message.label + CHANGES, [pair.value])
        peer.asking.fill(pair.value)
        peer.shared.took((serial, place), pair)
        peer.shared.keep(message.serial, first(_start(number), new), label=message.label)
    return tuple(names)


def _parts(incoming: "Incoming", pair: "Pair", now: list[Any]) -> tuple[list[Any], list[Any], str]:
    """What the value has to hold, which lists and the like of it are new, and if objects are.

    Where the reference puts values no object of an answer's is put; a function of the test's own,
    as a registry holds, may be another one of the answer's.
    """
    before, incoming.kept = incoming.kept, []
    found: list[Any] = []
    holds = ""
    try:
        for one in now:
            if type(one) is int:
                found.append(pair.parts[one])
                continue
            found.append(incoming.value(one[0]))
            if any(remote_of(p) or callable(p) for p in all_parts_of(found[-1])):
                holds = OF_OBJECTS
        return found, incoming.kept, holds
    finally:
        incoming.kept = before


def _root(peer: "Peer", pair: "Pair", place: int) -> tuple["Pair", int]:
    """The outermost value that this one lies in, of those that were shared, and its place.

    How an answer changes what was handed over is its own affair: `rows[:] = new` is a change of the
    same thing as `rows[i][:] = new[i]`.
    """
    for key, one in sorted(peer.shared.pairs.items(), key=itemgetter(0)):
        if one is pair:
            break
        if type(one.value) in KINDS and any(p is pair.value for p in all_parts_of(one.value)):
            return one, key[1]
    return pair, place


def _is_kept_away(peer: "Peer", message: "Outgoing", kind: str, ours: Any) -> bool:
    """Whether the same call of the reference makes no such change."""
    if not peer.policy.may_change(ours):
        return True
    return peer.protect and (is_quiet(message.label) or not permits(message.allowed, kind))

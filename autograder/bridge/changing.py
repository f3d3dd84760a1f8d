"""What an answer's call changes in values of ours: told by its end, done or kept away here."""

import collections
import copy
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from autograder.bridge import arrays, touched
from autograder.bridge.aliases import put_in
from autograder.bridge.incoming import Incoming
from autograder.bridge.line import Gone
from autograder.bridge.originals import AS_BEFORE
from autograder.bridge.reference import argument, is_quiet, permits
from autograder.bridge.wire import HOLDERS, WireError, empty

if TYPE_CHECKING:
    from autograder.bridge.outgoing import Outgoing
    from autograder.bridge.peer import Peer

SET = "set "  # begins what is told of attributes that an answer has set in an object of ours


class Changing:
    """Does, notes and keeps away the changes of values of one end."""

    def __init__(self, peer: "Peer") -> None:
        self.peer = peer
        # objects and modules that were made as copies for the other end, by their ids
        self.copies: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()

    def take(self, incoming: "Incoming", message: "Outgoing", changes: Any) -> tuple[str, ...]:
        """Do to our values what the call did to its copies of them."""
        names = []
        count = len(message.encoder.kept)
        for place, _ in changes:
            if type(place) is not int or not 0 <= place < count:
                raise Gone("broken", "a reply changed something that was not handed over")
            ours = message.encoder.kept[place]
            message.moved.add(place)
            if not self.peer.shared.is_made_there(ours):
                names.append(message.named(place))
                self.note(type(ours).__name__)
            if self.protects(message, message.named(place), ours):
                # what the call gave may still refer to what it changed
                incoming.kept[place] = self.double(ours)
                message.kept_away.add(place)
        for place, node in changes:
            incoming.rewind(count)
            self.change(incoming, incoming.kept[place], node)
            self.peer.shared.put_in_later(incoming.kept[count:])
        return tuple(names)

    def double(self, ours: Any) -> Any:
        """A value that takes the changes in place of ours."""
        if self.peer.tensors and self.peer.tensors.knows(ours):
            return self.peer.tensors.double(ours)
        return copy.copy(ours)

    def note(self, kind: str) -> None:
        """The other end changed something of ours, or would have."""
        self.peer.changed_ours = True
        self.peer.changes[kind] += 1

    def copy(self, value: Any, how: Callable[..., Any]) -> Any:
        """A copy that is asked for; whatever an answer does to that, it does to its own."""
        memo: dict[int, Any] = {}
        made = copy.deepcopy(value, memo) if how is copy.deepcopy else copy.copy(value)
        if made is not value:
            memo[id(value)] = made
        memo.pop(id(memo), None)  # what was copied, which `deepcopy` keeps alive
        for before, one in memo.items():
            if id(one) != before:
                with suppress(TypeError):  # a list, which is told by what holds it
                    self.copies[id(one)] = one
        return made

    def made_by(self, kind: Any, made: Any) -> None:
        """An answer has called this: what a class has made for it is the answer's own."""
        is_plain = isinstance(kind, type) and kind.__new__ is object.__new__
        if is_plain and type(made) is kind and not self.peer.is_free:
            with suppress(TypeError):  # it lets nobody refer to it weakly
                self.copies[id(made)] = made

    def is_copy(self, ours: Any) -> bool:
        """Whether this was made for an answer as a copy, or is a part of one."""
        return self.copies.get(id(ours)) is ours

    def protects(self, call: "Outgoing | None", kind: str, ours: Any) -> bool:
        """Whether a change that a call of ours makes to a value of ours is kept away from it.

        Modules and objects are told as one, however many of their parts were changed; values one
        by one.
        """
        if not self.peer.policy.may_change(ours):
            return True
        if not self.peer.protect or self.peer.shared.is_made_there(ours):
            return False
        if call is not None and is_quiet(call.label) and not call.is_counted:
            call.is_counted, call.allowed = True, self.peer.allows.next(call.label)
        if call is None or not permits(call.allowed, kind):
            return True
        counts = argument(kind) == kind and not kind.startswith(SET)
        if counts and kind not in ("Module", *call.holders.values()):
            call.allowed[kind] -= 1
        return False

    def change(self, incoming: "Incoming", ours: Any, node: Any) -> None:
        """Make a value of ours in place what a node tells."""
        if type(ours) in HOLDERS:
            _refill(incoming, ours, node)
        elif self.peer.tensors and self.peer.tensors.knows(ours):
            self.peer.tensors.overwrite(ours, incoming.value(node))
        else:
            arrays.overwrite(ours, incoming.value(node))

    def put(self, ours: Any, made: Any) -> None:
        """Make a value of ours in place what another one of its kind is."""
        if type(ours) in HOLDERS:
            put_in(ours, made)
        elif self.peer.tensors and self.peer.tensors.knows(ours):
            self.peer.tensors.overwrite(ours, made)
        else:
            arrays.overwrite(ours, made)

    # --- answering ----------------------------------------------------------------------------

    def may_set(self, target: Any) -> bool:
        """Whether an answer's call may set attributes of an object, as the reference's does."""
        if self.is_copy(target):
            return True
        call = self.peer.open[-1].call if isinstance(self.peer.open[-1], Incoming) else None
        if call is None:
            return False
        label = f"{SET}{touched.kind_of(target)}@{call.find().get(id(target), 'kept')}"
        if label not in call.noted:
            call.noted.append(label)
        self.note(label)
        return not self.protects(call, label, target)

    @contextmanager
    def watched(self, target: Any, name: str | None) -> Iterator[None]:
        """What a method of an object of ours changes is changed by the call that it belongs to."""
        holder = None if self.peer.is_free else touched.holder_of(target, name)
        call = self.peer.open[-1].call if isinstance(self.peer.open[-1], Incoming) else None
        if holder is None or call is None:
            yield
            return
        where = call.find()
        before = touched.Before(holder)
        try:
            yield
        finally:
            for one, part in list(before.changed()):
                if self.is_copy(one):
                    continue
                kind = touched.kind_of(one)
                label = kind if kind == touched.MODULE else f"{kind}@{where.get(id(one), 'kept')}"
                if kind != touched.MODULE:
                    label = call.holders.setdefault(id(one), label)
                    call.noted.append(label)
                self.note(kind)
                if self.protects(call, label, one):
                    part.undo()


def _refill(incoming: Incoming, ours: Any, node: Any) -> None:
    """Make a holder of ours in place what a node tells, which has to be of its kind."""
    tag, *parts = node
    if tag != HOLDERS[type(ours)]:
        raise WireError("a message puts something else in the place of a value")
    as_before = tag == "DD" and parts[:1] == [AS_BEFORE]
    fresh = incoming.fill(empty(type(ours), parts), [None, *parts[1:]] if as_before else parts)
    if isinstance(ours, collections.defaultdict) and not as_before:
        ours.default_factory = fresh.default_factory
    try:
        put_in(ours, fresh)
    except BufferError:
        raise WireError(
            "the answer changed the size of a bytearray in place, at which a memoryview looks"
        ) from None

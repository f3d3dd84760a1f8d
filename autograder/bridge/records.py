"""Objects of the instructor's own classes: by value, as real objects of the class of either side.

The instructor's cells run on both sides, so both have these classes. An object whose attributes are
all values crosses as the name of its class and its attributes; a named tuple as its parts; a member
of an enumeration as its name. What is read is made without calling the class. Both ends know such
an object by a number, so that it comes back as itself; with each message goes what has changed.

The trusted end makes objects only of classes that the instructor's cells have made here. Of what an
answer tells it believes values, under names that the class's own text sets. An object that hides
something, behind a name with an underscore that the instructor's text reads of no other object than
`self`, is not told: it stays a stand-in. So does one that the reference changes by its own methods
alone: they run here.
"""

import collections
import enum
import itertools
import types
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from autograder.bridge import arrays, library
from autograder.bridge.aliases import is_same, other, parts_of, put_in
from autograder.bridge.shapes import (
    LEAVES,
    Shape,
    alike,
    attributes,
    dict_of,
    held_in,
    is_one,
    shape_of,
)
from autograder.bridge.wire import HOLDERS, MAX_NODES, WireError

if TYPE_CHECKING:
    from autograder.bridge.incoming import Incoming
    from autograder.bridge.outgoing import Outgoing, ValueEncoder
    from autograder.bridge.peer import Peer

TAGS = frozenset(("RC", "RR", "RE", "RN"))
MAX_KNOWN = 20_000  # objects that are remembered from one message to the next
MAX_WATCHED = 500  # of them, the last that were told: in which changes are looked for
MAX_GROUP = 50_000  # objects that are told at once
MAX_PARTS = 500_000  # of their attributes
MAX_LIST = 5_000  # parts of one in which changes are looked for
WEIGHT = 20  # parts of a message that an object takes the room of
MAX_NAME = 100
MAX_ARRAY = 20_000  # bytes of one in which changes are looked for


@dataclass
class Known:
    """An object that both ends have."""

    value: Any
    key: tuple[bool, int]  # whether it is one of ours, and its number
    state: dict[str, tuple[Any, Any]] = field(default_factory=dict)  # when both were last alike


class Records:
    """The objects of one end that the other end has as well."""

    def __init__(self, peer: "Peer") -> None:
        self.peer = peer
        self.home: Mapping[str, Any] = {}  # the names of the cells
        self.classes: dict[str, type | None] = {}  # by path; the student's end is told of paths
        self.told: tuple[str, ...] = ()  # of which paths the other end knows
        self.ready: frozenset[str] = frozenset()  # those whose class it has
        self.shapes: dict[type, Shape] = {}
        self.known: dict[tuple[bool, int], Known] = {}
        self.by_id: dict[int, Known] = {}
        self.next = 1
        self.guarded: frozenset[str] = frozenset()  # whose objects the reference changes in a test
        self.is_late = False  # whether what is read tells of changes
        self.by_base = False  # whether objects of an answer's classes may cross as the instructor's

    def attach(self, home: Mapping[str, Any], classes: dict[str, type | None]) -> None:
        """Take the classes from here."""
        self.home, self.classes = home, classes

    def begin(self) -> None:
        """A new test: nothing is shared yet."""
        self.known.clear()
        self.by_id.clear()

    def class_of(self, path: Any) -> type | None:
        """The class here to which a path leads that is known to be one of the instructor's."""
        if type(path) is not str or path not in self.classes:
            return None
        first, *rest = path.split(".")
        found: Any = dict.get(self.home, first)  # type: ignore[arg-type]
        for name in rest:
            found = vars(found).get(name) if isinstance(found, types.ModuleType) else None
        own = self.classes[path]
        return found if isinstance(found, type) and own in (None, found) else None

    def path_of(self, kind: type) -> str | None:
        """The path of a class that both ends have; None for all others."""
        name = kind.__name__
        for path in self.classes:
            if path.rpartition(".")[2] == name and self.class_of(path) is kind:
                return path if path in self.ready else None
        return None

    def kind_of(self, value: Any) -> type:
        """The class that an object crosses as.

        Where the reference gives one of the instructor's, an answer's object of a class that it
        has made of that crosses as one of the instructor's: what it holds, and nothing it can do.
        """
        kind = type(value)
        if not self.peer.is_free or not (self.by_base or id(value) in self.by_id):
            return kind
        return next(filter(self.path_of, kind.__mro__), kind)

    def shape(self, kind: type) -> Shape:
        """What objects of a class are made of."""
        if kind not in self.shapes:
            self.shapes[kind] = shape_of(kind)
        return self.shapes[kind]

    # --- which classes both have ------------------------------------------------------------------

    def leave(self, message: "Outgoing", tree: dict[str, Any]) -> None:
        """With a request: of which classes of ours the other end is to know; what has changed."""
        self._trim(message.encoder.declared)
        now = tuple(filter(self.class_of, self.classes))
        runs = tree["op"] == "ask" and tree["p"][0] in ("run", "run_all", "set", "delete")
        if not self.peer.is_free and (now != self.told or runs):
            tree["kinds"] = self.told = now
        if self.known:
            tree["o"] = self._changes(message.aliases())

    def hear(self, incoming: "Incoming", tree: dict[str, Any]) -> None:
        """The same, at the other end."""
        if self.peer.is_free and "kinds" in tree:
            self.classes = dict.fromkeys(tree["kinds"])
            self.ready = frozenset(self.classes)
        self._arrive(incoming, tree.get("o"))

    def answer(self, reply: "Outgoing", incoming: "Incoming", tree: dict[str, Any]) -> None:
        """With a reply: which of the classes are not here, and what has changed."""
        if self.known:
            tree["o"] = self._changes(reply.after(incoming))
        if "kinds" in incoming.frame.tree:
            tree["lacks"] = [path for path in self.classes if self.class_of(path) is None]
        self._trim({})

    def answered(self, incoming: "Incoming", message: "Outgoing", tree: dict[str, Any]) -> None:
        """The same, at the other end."""
        kinds, lacks = message.frame.tree.get("kinds"), tree.get("lacks")
        if kinds is not None and isinstance(lacks, list):
            self.ready = frozenset(kinds).difference(one for one in lacks if type(one) is str)
        elif kinds is not None:
            self.told, self.ready = (), frozenset()  # to be told again
        self._arrive(incoming, tree.get("o"))

    def _arrive(self, incoming: "Incoming", told: Any) -> None:
        if told is None:
            return
        count, self.is_late = len(incoming.kept), True
        try:
            incoming.value(told)
        finally:
            self.is_late = False
        incoming.rewind(count)
        if not incoming.is_reply:
            incoming.originals.clear()

    # --- writing ----------------------------------------------------------------------------------

    def node(self, encoder: "ValueEncoder", value: Any) -> Any:
        """The node of an object of a class that both ends have; None for anything else."""
        self.by_base = self.peer.is_free and encoder.message.is_known
        kind = self.kind_of(value)
        path = self.path_of(kind)
        if path is None or (_is_due(encoder) and not self._is_theirs(value)):
            return None
        if isinstance(kind, enum.EnumMeta):
            return ["RE", path, value._name_]
        if issubclass(kind, tuple):
            return self._named_node(encoder, path, value)
        if id(value) in encoder.declared:
            return ["RR", *encoder.declared[id(value)].key]
        group = self._group([value], encoder.declared)
        return None if group is None else self._group_node(encoder, group, value)

    def _is_theirs(self, value: Any) -> bool:
        """Whether an answer may give this where a value is due: what it was handed, or a tuple."""
        known = self.by_id.get(id(value))
        return isinstance(value, tuple) or (known is not None and not known.key[0])

    def is_made_there(self, value: Any) -> bool:
        """Whether the other end has made this object."""
        known = self.by_id.get(id(value))
        return is_one(value) and (known is None or not known.key[0])

    def _named_node(self, encoder: "ValueEncoder", path: str, value: tuple) -> Any:
        fields = library.fields_of(type(value))
        if fields is None or len(fields[1]) != tuple.__len__(value):
            return None
        return ["RN", path, *map(encoder.node, tuple.__iter__(value))]

    def _group_node(self, encoder: "ValueEncoder", group: list[Any], value: Any) -> Any:
        """Objects that refer to each other, in one node: however long a chain, it is not deep."""
        told = [self._known(one) for one in group]
        encoder.declared |= {id(one.value): one for one in told}
        heads, contents = [], []
        for one in told:
            held, state = attributes(one.value, self.shape(self.kind_of(one.value))), one.state
            same = [n for n, part in held.items() if n in state and part is state[n][0]]
            heads.append([*one.key, self.path_of(self.kind_of(one.value)), list(held), same])
            contents.append([encoder.node(part) for part in held.values()])
            if not state or not self.peer.is_free:  # the student's end takes it as it is told
                one.state = self._state(one.value)
        return ["RC", encoder.declared[id(value)].key, heads, contents]

    def _known(self, value: Any) -> Known:
        """What is known of an object that is told now."""
        known = self.by_id.get(id(value))
        if known is None:
            known = Known(value, (True, self.next))
            self.next += 1
        self._keep(known)
        return known

    def _keep(self, known: Known) -> None:
        before = self.known.pop(known.key, None)
        if before is not None and before.value is not known.value:
            self.by_id.pop(id(before.value), None)
        self.known[known.key] = self.by_id[id(known.value)] = known

    def _forget(self, known: Known) -> None:
        self.known.pop(known.key, None)
        self.by_id.pop(id(known.value), None)

    def _trim(self, declared: Mapping[int, Any]) -> None:
        """Between messages: remember no more than so many, the latest, and what is told now."""
        if len(self.known) > MAX_KNOWN and not self.peer.open:
            for known in list(self.known.values())[:-MAX_KNOWN]:
                if id(known.value) not in declared:
                    self._forget(known)

    def _state(self, value: Any) -> dict[str, tuple[Any, Any]]:
        held = attributes(value, self.shape(self.kind_of(value)))
        return {
            name: (part, parts_of(part) if _can_change(part) else None)
            for name, part in held.items()
        }

    def _group(self, values: Iterable[Any], done: Mapping[int, Any]) -> list[Any] | None:
        """The objects met in values, what one holds before it; None if not all can be told."""
        found: list[Any] = []
        seen: set[int] = set()
        left, count = [(value, False) for value in values], 0
        while left:
            value, is_over = left.pop()
            if is_over:
                found.append(value)
                continue
            if type(value) in LEAVES or id(value) in seen or id(value) in done:
                continue
            seen.add(id(value))
            parts = held_in(value)
            if parts is None and self.path_of(self.kind_of(value)) is not None:
                parts = self._held(value)
                left.append((value, not isinstance(value, enum.Enum)))
            if parts is None or (count := count + len(parts)) > MAX_PARTS:
                return None
            left += [(part, False) for part in parts]
        return found if len(found) <= MAX_GROUP else None

    def _held(self, value: Any) -> list[Any] | None:
        """What an object holds; None if it cannot be told."""
        kind = self.kind_of(value)
        if isinstance(value, enum.Enum):
            return []
        shape = self.shape(kind)
        known = self.by_id.get(id(value))
        is_ours = not self.peer.is_free and (known is None or known.key[0])
        held = attributes(value, shape)
        if not all(map(_is_name, held)) or (is_ours and self._is_guarded(kind, shape)):
            return None
        told = self._shown(shape)
        told = told if is_ours or known is None else {*told, *known.state}
        hides = any(name.startswith("_") and name not in told for name in held)
        return None if hides and not self.peer.is_free else list(held.values())

    def _shown(self, shape: Shape) -> Set[str]:
        """Attributes that are hidden from nobody, also those whose names say so."""
        read: Any = getattr(self.home, "read", frozenset())
        return shape.shown | read

    def shows(self, value: Any, name: Any) -> bool:
        """Whether an answer may read a private attribute of an object that stays here."""
        if self.peer.is_free or type(name) is not str or not is_one(value):
            return False
        shape = self.shape(type(value))
        is_private = name.startswith("_") and not name.startswith("__")
        return is_private and name in self._shown(shape) and name in attributes(value, shape)

    def _is_guarded(self, kind: type, shape: Shape) -> bool:
        """Whether an answer may change such objects by their own methods alone, as the reference.

        These methods then run here, and nothing else is believed of what they change.
        """
        sets: Any = getattr(self.home, "changed", frozenset())
        return kind.__name__ in self.guarded and shape.acts and sets.isdisjoint(shape.names)

    def holders(self, message: "Outgoing", where: Mapping[int, str]) -> dict[int, str]:
        """What changes are named by: of an object's lists it is the object.

        Whether one is put in the place of another, or it is changed itself, is the same to a test.
        """
        found: dict[int, str] = {}
        for number, known in message.encoder.declared.items():
            found[number] = f"{type(known.value).__name__}@{where.get(number, 'kept')}"
            left = self.parts_of(known.value)
            while left:
                part = left.pop()
                if id(part) not in found and type(part) not in LEAVES:
                    found[id(part)] = found[number]
                    left += held_in(part) or ()
        return found

    def parts_of(self, value: Any) -> list[Any]:
        """What an object of such a class holds."""
        return [*attributes(value, self.shape(type(value))).values()] if is_one(value) else []

    def _changes(self, encoder: "ValueEncoder") -> Any:
        """The node of what has changed since both ends were alike, or None."""
        watched = itertools.islice(reversed(self.known.values()), MAX_WATCHED)
        changed = [known for known in watched if self._differs(known)][::-1]
        group = self._group((known.value for known in changed), {})
        if group is None:
            for known in [one for one in changed if self._group([one.value], {}) is None]:
                changed.remove(known)
                self._forget(known)  # what has become of it cannot be told
            group = self._group((known.value for known in changed), {})
        if not changed or group is None:
            return None
        try:
            return self._group_node(encoder, group, changed[0].value)
        except WireError:
            return None
        finally:
            for known in changed:
                known.state = self._state(known.value)

    def _differs(self, known: Known) -> bool:
        held, state = attributes(known.value, self.shape(self.kind_of(known.value))), known.state
        return held.keys() != state.keys() or any(
            other(part, state[name][0])
            or (state[name][1] is not None and not is_same(part, state[name][1]))
            for name, part in held.items()
        )

    # --- reading ----------------------------------------------------------------------------------

    def read(self, incoming: "Incoming", tag: str, parts: list[Any]) -> Any:
        """The value of a node that `node` wrote."""
        if tag == "RR":
            return self.known[not parts[0], parts[1]].value
        if tag == "RC":
            return self._read_group(incoming, *parts)
        kind: Any = self.class_of(parts[0])
        if tag == "RE" and isinstance(kind, enum.EnumMeta):
            return kind.__members__[parts[1]]
        fields = library.fields_of(kind) if tag == "RN" and kind is not None else None
        if fields is None or len(fields[1]) != len(parts) - 1:
            raise WireError("a message holds an object of a class that is not known here")
        return tuple.__new__(kind, incoming.values(parts[1:]))  # type: ignore[arg-type]

    def _read_group(self, incoming: "Incoming", key: Any, heads: Any, contents: Any) -> Any:
        incoming.mind_the_clock()
        incoming.nodes += WEIGHT * len(heads)
        if incoming.nodes > MAX_NODES or len(heads) != len(contents):
            raise WireError("a message holds too many objects")
        met = [self._met(*head) for head in heads]
        for (known, is_new), head, nodes in zip(met, heads, contents, strict=True):
            held = dict(zip(head[3], incoming.values(nodes), strict=True))
            held = self._believed(known, held)
            if is_new or self.peer.is_free:
                self._put(known, held, head[4])
            else:
                self._take(incoming, known, held, head[4])
            known.state = self._state(known.value)
        return self.known[not key[0], key[1]].value

    def _met(self, theirs: Any, number: Any, path: Any, *names: Any) -> tuple[Known, bool]:
        """What is known of an object that is told of, and whether it is new here."""
        kind, key = self.class_of(path), (not theirs, number)
        sure = type(theirs) is bool and type(number) is int and 0 < number < 2**60
        sure = sure and (theirs or number < self.next)
        if kind is None or not sure or issubclass(kind, tuple | enum.Enum):
            raise WireError("a message holds an object of a class that is not known here")
        told, same = names
        if not (isinstance(told, list) and isinstance(same, list) and all(map(_is_name, told))):
            raise WireError("a message holds an object whose attributes have no names")
        known = self.known.get(key)
        if known is not None and self.kind_of(known.value) is kind:
            self._keep(known)  # among the last
            return known, False
        if known is not None and not self.peer.is_free:
            raise WireError("a message makes one object of another")
        known = Known(object.__new__(kind), key)
        self._keep(known)
        return known, True

    def _believed(self, known: Known, told: dict[str, Any]) -> dict[str, Any]:
        """What is taken of an object's attributes; the student's end takes all."""
        if self.peer.is_free:
            return told
        shape = self.shape(type(known.value))
        own = attributes(known.value, shape)
        sets: Any = getattr(self.home, "attributes", frozenset())
        told = {
            name: part
            for name, part in told.items()
            if name in own
            or (
                name not in shape.methods and (shape.is_open or name in shape.names or name in sets)
            )
        }
        if self._group(told.values(), self.by_id) is None:
            raise WireError("a message holds an object whose attributes are no values")
        return told

    def _take(
        self, incoming: "Incoming", known: Known, told: dict[str, Any], same: list[Any]
    ) -> None:
        """Do to an object here what a call of ours did to it, if it may."""
        value, call = known.value, incoming.call
        own = attributes(value, self.shape(type(value)))
        if own.keys() == told.keys() and all(alike(own[name], told[name]) for name in own):
            return
        label = f"{type(value).__name__}@kept"
        if call is not None:
            call.find()
            label = call.holders.setdefault(id(value), label)
            call.noted.append(label)
        self.peer.changing.note(type(value).__name__)
        if self.peer.changing.protects(call, label, value):
            self._forget(known)
            known.value = object.__new__(type(value))
            self._keep(known)
        self.peer.leaving.sets(call, known.value, told)
        self._put(known, told, same)

    def _put(self, known: Known, told: dict[str, Any], same: list[Any]) -> None:
        """Give an object these attributes; what is the same list there is the same one here."""
        value = known.value
        shape = self.shape(self.kind_of(value))
        held = dict_of(value) if shape.has_dict else {}
        own = attributes(value, shape)
        for name, part in told.items():
            fresh = self._kept(own[name], part) if name in own and name in same else part
            if name in shape.slots:
                shape.slots[name].__set__(value, fresh)
            elif shape.has_dict:
                held[name] = fresh
            else:
                raise WireError("a message holds an object with an attribute that it cannot have")
        before = known.state if self.peer.is_free else own
        for name in own.keys() & before.keys() - told.keys():
            if name in shape.slots:
                shape.slots[name].__delete__(value)
            else:
                held.pop(name, None)

    def _kept(self, ours: Any, fresh: Any) -> Any:
        """What stands for an attribute's new contents: the list itself, if it can be made alike."""
        if self.peer.is_free and not self.is_late:
            return fresh  # in which it will be seen what a call changes
        if alike(ours, fresh):
            return ours
        if type(ours) not in HOLDERS or type(fresh) is not type(ours):
            return fresh
        if isinstance(ours, collections.deque | bytearray) or not self.peer.policy.may_change(ours):
            return fresh
        put_in(ours, fresh)
        return ours


def _is_due(encoder: "ValueEncoder") -> bool:
    """Whether this writes what has to be a value."""
    return encoder.message.is_plain and encoder is encoder.message.encoder


def _can_change(value: Any) -> bool:
    """Whether a value is looked at for changes in place."""
    is_small = arrays.is_array(value) and value.nbytes <= MAX_ARRAY
    return is_small or (type(value) in HOLDERS and len(value) <= MAX_LIST)


def _is_name(name: Any) -> bool:
    is_name = type(name) is str and len(name) <= MAX_NAME and name.isidentifier()
    return is_name and not (name.startswith("__") and name.endswith("__"))

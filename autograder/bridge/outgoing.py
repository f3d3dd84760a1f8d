"""A message that is being written: values of ours by copy, by place, or as numbered objects."""

import collections
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from autograder.bridge import arrays, based, errors, library
from autograder.bridge.aliases import MAX_EDIT, MAX_OF_ONE, Key, is_tensor
from autograder.bridge.describing import describe
from autograder.bridge.originals import AS_BEFORE, Original
from autograder.bridge.own_errors import ErrorClass, class_remote, original
from autograder.bridge.public import is_taken, public_name
from autograder.bridge.reference import Due
from autograder.bridge.spans import Owners, owner_of
from autograder.bridge.stand_ins import LEFT_BY, remote_of
from autograder.bridge.wire import HOLDERS, Encoder, Frame, WireError

if TYPE_CHECKING:
    from autograder.bridge.incoming import Incoming
    from autograder.bridge.peer import Peer
    from autograder.bridge.records import Records

THROWN = ".throw"  # ends the label of what throws an error into a generator of an answer's
MAX_VALUES = 1000  # objects of an answer's classes in a message that come back as they are
TABLES = (dict, collections.OrderedDict, collections.defaultdict, collections.Counter)


class Outgoing:
    """A message that is being written."""

    def __init__(self, peer: "Peer") -> None:
        self.peer = peer
        self.frame = Frame()
        self.encoder = ValueEncoder(self.frame, peer, self)
        self.tensors: list[Any] = []  # tensors in it, by place
        self.inputs: list[Any] = []  # those whose gradients the other end may ask for
        self.allowed: collections.Counter[str] = collections.Counter()  # what it may change
        self.is_counted = False  # whether `allowed` was asked for, where it is no call
        self.where: dict[int, str] | None = None  # id of what is handed over -> its path
        self.label = ""  # what is asked, as transcripts call it
        self.origin = ""  # the label of the objects that it gives
        self.expects: Due = ""  # what it has to give, if anything
        self.is_plain = False  # whether this is an answer to what has to give a value
        self.is_known = False  # or real objects of the instructor's classes
        self.objects: Any = None  # or objects: True, all parts of it, or the places of some
        self.apart: set[int] = set()  # the ids of these
        self.result: Any = None  # what a call gives
        self.values: Any = ()
        self.serial = 0  # by which both ends know what is shared by it
        self.sent: list[Any] = []  # what may be shared: place, value, parts
        self.moved: set[int] = set()  # places of what the other end has changed
        self.returned: dict[int, Key] = {}  # places of what the other end itself has made
        self.kept_away: set[int] = set()  # those of them that stay as they are
        self.left = MAX_EDIT  # parts that it may tell of values that were changed
        self.added = -MAX_OF_ONE  # the place of the first that is new among them
        self.holders: dict[int, str] = {}  # labels of objects and their lists, by id
        self.noted: list[str] = []  # objects that the call has changed
        self.set_in: dict[int, tuple[Any, set[str]]] = {}  # these, with names of what it has set

    def aliases(self) -> "PlainEncoder":
        """What writes parts that a test has put into a value that is shared."""
        return PlainEncoder(self.frame, self.peer, self)

    def after(self, incoming: "Incoming") -> "ValueEncoder":
        """What writes values that may refer to what the call was handed."""
        made = ValueEncoder(self.frame, self.peer, self)
        made.memo = {id(kept): place for place, kept in enumerate(incoming.kept)}
        made.answers, made.handed = True, incoming.kept
        return made

    def let_go(self) -> None:
        """It is done with: hold nothing of what it handed over."""
        self.values, self.sent, self.encoder.kept, self.encoder.memo = (), [], [], {}
        self.tensors = []

    def named(self, place: int) -> str:
        """A value handed over: its kind, and where it stood among the arguments."""
        ours = self.encoder.kept[place]
        label = f"{type(ours).__name__}@{self.find().get(id(ours), f'#{place}')}"
        return self.holders.get(id(ours), label)

    def find(self) -> dict[int, str]:
        """Where each value stood among the arguments, before the call has changed them."""
        if self.where is None:
            self.where = _paths(self.values, self.peer.records)
            self.holders = self.peer.records.holders(self, self.where)
        return self.where

    def once(self, changed: tuple[str, ...]) -> tuple[str, ...]:
        """What was changed, each object once, whatever was changed of it."""
        objects, seen = set(self.holders.values()), set[str]()
        return tuple(
            one for one in changed if one not in objects or not (one in seen or seen.add(one))
        )

    def answer(self, incoming: "Incoming", value: Any) -> Any:
        """The node of what a call gave; it may refer to what the call was handed."""
        self.encoder.memo = {id(kept): place for place, kept in enumerate(incoming.kept)}
        self.encoder.answers, self.result = True, value
        self.apart = {id(part) for part in _apart(value, self.objects)}
        self.encoder.handed, self.encoder.referred = incoming.kept, incoming.referred
        try:
            return self.encoder.node(value)
        finally:
            self.result = self.objects = None  # nothing is kept by this
            self.apart.clear()

    def changes(self, incoming: "Incoming") -> list[Any]:
        """What the call changed in place of what it was handed, as (place, node)."""
        memo = {id(kept): place for place, kept in enumerate(incoming.kept)}
        changes = []
        for place in range(len(incoming.kept)):
            if incoming.changed(place):
                self.encoder.memo = dict(memo)
                now, before = incoming.value_at(place), incoming.originals[place]
                changes.append([place, self.encoder.again(now, before)])
        return changes

    def changes_of_ours(self, incoming: "Incoming") -> list[Any]:
        """What a test's function changed of the test's own that an answer has handed back to it."""
        changes = []
        self.encoder.referred = []  # they are told in full
        for place, (value, before) in enumerate(incoming.referred):
            if before.differs(value):
                self.encoder.memo = {id(kept): n for n, kept in enumerate(incoming.kept)}
                changes.append([place, self.encoder.again(value, before)])
        return changes

    def send(self, tree: dict[str, Any]) -> None:
        """Write the tensors and send; a reply that cannot be written tells so."""
        try:
            if self.tensors:
                tree["x"] = [self.peer.tensors.write(self, tensor) for tensor in self.tensors]
            if self.peer.is_free:
                self.peer.printed.leave(tree)
            self.frame.tree = tree
            self.peer.wire.send(self.frame)
        except Exception as error:
            if "op" in tree or isinstance(error, EOFError):
                raise
            self.peer.wire.send(Frame({"e": self.peer.thrown.describe(error)}))


def _paths(values: Any, records: "Records") -> dict[int, str]:
    """Where each value stands among the arguments of a call: the first place, if in several.

    By numbers, but for what is handed over by name: "0", "1.2", "scale".
    """
    args, kwargs = values if len(values) == 2 and type(values[1]) is dict else (values, {})
    found: dict[int, str] = {}
    left = [*((str(n), v) for n, v in enumerate(args)), *kwargs.items()][::-1]
    while left:
        path, value = left.pop()
        if id(value) in found:
            continue
        found[id(value)] = path
        parts = dict.values(value) if type(value) in TABLES else library.parts_of(value)
        parts = parts or records.parts_of(value)
        left += [(f"{path}.{n}", part) for n, part in enumerate(parts)][::-1]
    return found


def _apart(value: Any, places: Any) -> Iterator[Any]:
    """Parts of a result in these places, and the parts of these."""
    for place in places if type(places) is list else ():
        part = library.part_at(value, place)
        yield from (part, *library.parts_of(part))


class ValueEncoder(Encoder):
    """Encodes what is not plain: stand-ins, tensors, arrays, public names, own objects."""

    def __init__(self, frame: Frame, peer: "Peer", message: "Outgoing") -> None:
        super().__init__(frame)
        self.peer = peer
        self.message = message
        self.answers = False  # whether this is a reply, which refers to its own call by place
        self.handed: list[Any] = []  # what that call was handed
        self.owners: Owners | None = None  # of the arrays in it
        self.handed_back: list[Any] = []  # what the other end gave us, in order
        self.referred: list[tuple[Any, Original]] = []  # what the other end so referred to
        self.declared: dict[int, Any] = {}  # objects that were told of, as `Records` knows them
        self.values = 0  # objects in it that are values at the other end
        self.plains: dict[int, Any] = {}  # of objects with contents their plain values, by id
        self.homes: dict[int, Any] = {}  # the objects, by the ids of these

    def again(self, value: Any, before: Original) -> Any:
        """A changed value in full, though it has a place."""
        if type(value) is collections.defaultdict and before.has_factory_of(value):
            return ["DD", AS_BEFORE, *self.contents(dict(value))[1:]]
        if type(value) in HOLDERS:
            return self.contents(value)
        memo, self.memo = self.memo, {}
        try:
            return self.node(value)
        finally:
            self.memo = memo

    def other(self, value: Any) -> Any:  # noqa: C901  (a branch a kind)
        """Everything that is no plain value of Python's own."""
        remote = remote_of(value) or class_remote(value)
        if remote is not None and remote.peer is self.peer:
            return ["Y", remote.number]
        if self.referred and not self.peer.is_free:
            for place, (one, _) in enumerate(self.referred):
                if one is value:
                    return ["W", place]
        place = self._handed_in(value)
        if place is not None:
            self.handed_back.append(value)
            return ["U", *place]
        if self.peer.lacks(type(value)):
            return self._foreign(value)
        if arrays.has_memory(value) and value.base is not None:
            for place in self._owners().of(owner_of(value)):
                view = arrays.view_node(value, self.handed[place])
                if view is not None:
                    return ["AV", place, *view]
        if self.peer.tensors:
            node = self.peer.tensors.node(self, value)
            if node is not None:
                return node
        node = arrays.node(self, value)
        if node is None and self.peer.records.classes:
            node = self.peer.records.node(self, value)
        if node is None and self.peer.is_free:
            node = self._based(value)
        if node is None:
            node = library.node(self, value)
        return self._object(value) if node is None else node

    def _owners(self) -> Owners:
        """Of the arrays that the call was handed, by their places."""
        if self.owners is None:
            self.owners = Owners()
            for place, one in enumerate(self.handed):
                if arrays.has_memory(one):
                    self.owners.add(owner_of(one), place)
        return self.owners

    def _foreign(self, value: Any) -> Any:
        """The node of something of a library that the other end does not have.

        A number is one of Python's own there, an array where a value is due its lists.
        """
        plain = value.tolist() if hasattr(type(value), "tolist") else value
        if plain is value or (isinstance(plain, list) and not self.message.is_plain):
            return self._object(value)
        return self.node(plain if type(plain) is not type(value) else float(value))

    def _based(self, value: Any) -> Any:
        """The node of an object whose class an answer has made of one of Python's own.

        A result is one if there is more to it than to a plain value, and no value is due, and so
        is a part of it where the reference's is an object. What else stands in a list is a value,
        but for paths and the members of enumerations: one that can come back to its own class, and
        has nothing of it where the test runs.
        """
        base = based.base_of(type(value))
        if base is None:
            return None
        if base in based.OPEN and (self.message.is_plain or not self._is_stand_in(value, base)):
            return self._plain(value, base)
        if self.message.is_plain and base in based.PATHS:
            return self.node(based.plain(value, base))
        if not self.message.is_plain and self._is_stand_in(value, base):
            return ["H", describe(self.peer, self, value, base)]
        if self.values < MAX_VALUES and based.has_more(value, base):
            self.values += 1
            return ["H", describe(self.peer, self, value, base) | based.BARE]
        return None

    def _is_stand_in(self, value: Any, base: type) -> bool:
        alone = value is self.message.result or based.is_member(value) or base in based.PATHS
        alone = alone or self.message.objects is True or id(value) in self.message.apart
        return self.peer.knows(value) or (alone and based.has_more(value, base))

    def _plain(self, value: Any, base: type) -> Any:
        """The node of the plain value of an object with contents: one for each object."""
        made = self.plains.get(id(value))
        if made is None:
            made = based.plain(value, base)
            known = self.peer.shared.plain_of(value, made)
            made = self.plains[id(value)] = made if known is None else known
            self.homes[id(made)] = value
        return self.node(made)

    def _handed_in(self, value: Any) -> tuple[int, int] | None:
        """Where in a call under way the other end gave us this very tensor, unchanged."""
        if self.peer.tensors is None or not self.peer.tensors.is_constant(value):
            return None
        for level, call in enumerate(self.peer.open[:-1] if self.answers else self.peer.open):
            if isinstance(call, Outgoing):
                continue
            for place, kept in enumerate(call.kept):
                if kept is value and not call.changed(place):
                    return level, place
        return None

    def _object(self, value: Any) -> Any:
        kind = type(value)
        value = original(value) if kind is ErrorClass else value
        name = public_name(value)
        taken = is_taken(value) and not self.peer.lacks(value) if self.peer.is_free else True
        if name is not None and taken:
            return ["PUB", name]
        if library.is_view(value):
            return library.view_node(self, value)
        if self.message.is_plain and (bare := library.bare(value)) is not None:
            return self.node(bare)
        if self.message.is_plain and type(value) is re.Pattern:
            return library.pattern_node(value) or ["H", describe(self.peer, self, value)]
        for base in (*based.FIXED, list, dict, set):
            if issubclass(kind, base):
                return self.node(_bare(value, base))
        if isinstance(value, BaseException) and self._may_tell(kind):
            return ["ER", self.peer.thrown.describe(value)]
        if not self.peer.policy.may_give(value):
            raise WireError(_refusal(value))
        return ["H", describe(self.peer, self, value)]

    def _may_tell(self, kind: type) -> bool:
        """Whether this hands an error to an `__exit__`, or throws it, of a class both ends have."""
        has_both = bool(errors.name_of(kind)) or self.peer.errors.is_given(kind)
        label = self.message.label
        is_handed = f".{LEFT_BY}" in label or label.endswith(THROWN)
        return is_handed and has_both and not self.peer.is_free


class PlainEncoder(ValueEncoder):
    """Encodes plain values, and objects that are the other end's own; not much.

    None of ours, unless it `has_objects`: see `late_changes.py`.
    """

    has_objects = False

    def node(self, value: Any) -> Any:
        """The tree's node for a value."""
        size = len(value) if type(value) in (str, bytes, bytearray) else 0
        self._count(value.bit_length() if type(value) is int else size)
        return super().node(value)

    def _count(self, size: int) -> None:
        self.message.left -= 1 + size // 64
        if self.message.left < 0:
            raise WireError("too much was changed")

    def other(self, value: Any) -> Any:
        """Arrays, stand-ins, dates and so on."""
        remote = remote_of(value)
        if remote is not None and remote.peer is self.peer:
            return ["Y", remote.number]
        if arrays.is_array(value):
            self._count(8 * value.nbytes)
        if self.peer.tensors and is_tensor(value):
            self._count(8 * value.nbytes)
            return self.peer.tensors.node(self, value)
        known = not self.peer.lacks(type(value))
        node = (arrays.node(self, value) or library.node(self, value)) if known else None
        if node is None and self.peer.records.classes:
            node = self.peer.records.node(self, value)
        if node is None and self.has_objects:
            return super().other(value)
        if node is None:
            raise WireError("what was changed holds an object")
        return node


def _refusal(value: Any) -> str:
    """Why a value of the test's is not handed over."""
    if isinstance(value, BaseException):
        return (
            f"the test raised {type(value).__name__}, and what a test raises is not handed to an "
            "answer: nothing can be said of what the answer would do with it"
        )
    return f"a {type(value).__name__} cannot be handed to an answer"


def _bare(value: Any, base: type) -> Any:
    """The value of a subclass without the names that a tuple may have."""
    made = based.plain(value, base)
    return tuple(made) if base is tuple else made

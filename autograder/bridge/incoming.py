"""A message that is being read: values of the other end, checked and made here."""

from typing import TYPE_CHECKING, Any

from autograder.bridge import arrays, based, library, memory
from autograder.bridge.aliases import Key, is_same
from autograder.bridge.making import stand_in
from autograder.bridge.originals import Original
from autograder.bridge.public import public
from autograder.bridge.records import TAGS
from autograder.bridge.wire import Decoder, Frame, WireError

if TYPE_CHECKING:
    from autograder.bridge.outgoing import Outgoing
    from autograder.bridge.peer import Peer


class Incoming(Decoder):
    """A message that is being read."""

    def __init__(self, peer: "Peer", frame: Frame, kept: list[Any]) -> None:
        super().__init__(frame, list(kept))
        self.peer = peer
        self.tensors: list[Any] = []
        self.inputs: list[Any] = []  # those whose gradients may be asked for
        self.originals: dict[int, Original] = {}
        self.referred: list[tuple[Any, Original]] = []  # what of ours it refers to
        self.is_reply = False  # then nobody asks what was changed in it
        self.call: Outgoing | None = None  # of ours, which it answers or belongs to
        self.origin = ""  # the label of objects that are met in it for the first time
        self.read_once: set[int] = set()  # places of tensors
        self.own: dict[int, Key] = {}  # places of what this end has made, if it is that still
        self.taken_home: dict[int, Key] = {}  # those in whose place our own stands
        self.is_wary = not peer.is_free

    def mind_the_clock(self) -> None:
        """Reading takes time as well."""
        self.peer.mind_the_clock()

    def take_tensors(self, message: "Outgoing | None") -> None:
        """Read the tensors, and bring our modules into the state that is told."""
        tensors = self.peer.tensors
        if tensors:
            tree = self.frame.tree
            graph = tree.get("graph") if message is not None else None
            tensors.in_step.state_in(self, tree.get("t"))
            self.tensors = tensors.read(self, tree.get("x"), graph, message)
            tensors.in_step.structure_in(self, tree.get("t"))

    def begin(self, told: Any) -> None:
        """What is told of the results that are read now; see `memory`."""

    def results(self, first: int) -> list[Any]:
        """What was given places from this one on, None for what is shared already."""
        return self.kept[first:]

    def _tagged(self, node: list[Any]) -> Any:
        if node[0] == "O" and self.is_wary:  # the grader's own records
            raise WireError("an answer gave a record, which cannot be handed to a test")
        place = len(self.kept)
        value = super()._tagged(node)
        if place in self.own and place < len(self.kept) and self.kept[place] is value:
            value = self.kept[place] = self._own_or(value, place)
        return value

    def _own_or(self, value: Any, place: int) -> Any:
        """What an answer has made, in place of the copy that came back, if they are alike."""
        key = self.own.pop(place)
        pair = self.peer.shared.pairs.get(key)
        if pair is None or not memory.is_alike(pair.value, value):
            return value
        if pair.home is not None and not is_same(based.value_of(pair.home), pair.parts):
            return value
        self.taken_home[place] = key
        return pair.value if pair.home is None else pair.home

    def fill(self, made: Any, parts: list[Any]) -> Any:
        """Fill, and remember how it was, so that changes are noticed."""
        place = len(self.kept) - 1
        filled = super().fill(made, parts)
        if place >= 0 and self.kept[place] is made and not self.is_reply:
            self.originals[place] = Original(filled)
        return filled

    def changed(self, place: int) -> bool:
        """Whether what stands in a place was changed since it came."""
        if place not in self.originals:
            return False
        return self.originals[place].differs(self.value_at(place))

    def value_at(self, place: int) -> Any:
        """What stands in a place, without what an answer's class adds to it."""
        value = self.kept[place]
        return based.value_of(value) if place in self.taken_home else value

    def tensor(self, place: Any) -> Any:
        """The tensor at a place; each stands for one part, so that nothing grows beyond it."""
        if type(place) is not int or not 0 <= place < len(self.tensors):
            raise WireError("a message names a tensor that it does not have")
        if place in self.read_once:
            raise WireError("a message names a tensor twice")
        self.read_once.add(place)
        return self.tensors[place]

    def _referred_to(self, value: Any) -> Any:
        """What we gave and is handed to us again: as it is now, so that changes are noticed."""
        if not self.is_reply:
            self.referred.append((value, Original(value)))
        return value

    def rewind(self, count: int) -> None:
        """Each part of a reply gives out places after those of the request."""
        del self.kept[count:]

    def keep(self, value: Any) -> Any:
        """Give an array or tensor its place."""
        if not self.is_reply:
            self.originals[len(self.kept)] = Original(value)
        self.kept.append(value)
        return value

    def other(self, tag: Any, parts: list[Any]) -> Any:  # noqa: C901  (a branch a kind)
        """Objects, arrays, tensors and names of public things."""
        if tag == "Y":  # an object of ours comes back
            return self.peer.given[parts[0]]
        if tag == "U":
            call = self.peer.open[parts[0]]
            if isinstance(call, Incoming) or parts[1] < 0:
                raise WireError("a message refers to nothing")
            return self._referred_to(call.encoder.kept[parts[1]])
        if tag == "W" and self.peer.is_free and self.call is not None:
            return self.call.encoder.handed_back[parts[0]]
        if tag == "H":
            return stand_in(self.peer, self, parts[0])
        if tag == "ER" and self.peer.is_free:
            return self.peer.thrown.error(parts[0])
        if tag == "X":
            return self.keep(self.tensor(parts[0]))
        if tag == "A":
            return self.keep(arrays.read(self, parts))
        if tag == "AV":
            return arrays.read_view(self.kept, parts)
        if tag == "AS":
            return arrays.read_number(parts)
        if tag == "DT":
            return arrays.dtype(parts[0])
        if tag == "PUB":
            return public(parts[0], self.peer.is_free)
        if tag in ("V", "NT"):
            return library.read(self, tag, parts)
        if tag in TAGS:
            return self.peer.records.read(self, tag, parts)
        if self.peer.tensors:
            return self.peer.tensors.other(self, tag, parts)
        return super().other(tag, parts)


class Told(Incoming):
    """A reply in which results are told to be values of ours, or to lie in them."""

    def __init__(self, peer: "Peer", frame: Frame, kept: list[Any]) -> None:
        super().__init__(peer, frame, kept)
        self.claims: dict[int, Any] = {}  # by the places of the results
        self.told: frozenset[int] = frozenset()  # these places

    def begin(self, told: Any) -> None:
        """From now on each place is that of a result."""
        self.claims = memory.claims_of(told)
        self.told = frozenset(self.claims)

    def results(self, first: int) -> list[Any]:
        """What was given places from this one on, None for what is shared already."""
        places = range(first, len(self.kept))
        return [None if place in self.told else self.kept[place] for place in places]

    def _tagged(self, node: list[Any]) -> Any:
        place = len(self.kept)
        value = super()._tagged(node)
        if place in self.claims and place < len(self.kept) and self.kept[place] is value:
            value = self.kept[place] = memory.own_or(self, value, *self.claims.pop(place))
        return value

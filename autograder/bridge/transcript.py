"""What crossed during a test: kept as copies that later changes do not reach, and asked again."""

import collections
from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from autograder.bridge import arrays, based, library
from autograder.bridge.aliases import exchange
from autograder.bridge.reference import given_by, is_quiet
from autograder.bridge.shapes import MADE, is_one
from autograder.bridge.stand_ins import remote_of
from autograder.bridge.wire import Frame
from autograder.common.results import INSTANCE, Crossing, Opaque, Raised

if TYPE_CHECKING:
    from autograder.bridge.peer import Peer

MAX_TRANSCRIPT = 64_000_000  # bytes of what answers gave that are kept to explain a mistake
MAX_SNAPSHOT = 100_000  # parts of one such value
MAX_DEFAULTS = 10  # of its tables
EMPTY = (list, dict, set, tuple, str, collections.Counter, collections.OrderedDict)
EMPTY += (collections.deque,)


@dataclass(frozen=True)
class Asked:
    """A call as it was sent."""

    what: str
    number: int  # of what was called: an object goes by its class's name
    frame: Frame
    kept: list[Any]  # copies of what it handed over


def _is_key(value: Any) -> bool:
    """Whether a copy of a key can be one: of what is made of a list it is a list."""
    try:
        hash(value)
    except TypeError:
        return False
    return True


class Transcript:
    """Keeps what crosses, of one end, while somebody wants it."""

    def __init__(self, peer: "Peer") -> None:
        self.peer = peer
        self.crossings: list[Crossing] | None = None  # None: nobody does
        self.bytes = 0  # kept so far
        self.left = 0  # parts that the copy which is made now may have
        self.is_whole = True  # whether it holds all that the value does
        self.defaults: list[Any] = []  # what tables in it make of a key that they lack, if nothing

    def record(self, label: str, outcome: Any, changed: tuple[str, ...]) -> None:
        """Keep what a call gave, or the exception in which it ended, and what it changed."""
        if self.crossings is not None and (changed or not is_quiet(label)):
            kept = outcome if isinstance(outcome, Raised) else self.snapshot(outcome)
            if not self.is_whole:
                self.peer.beside.note(label, outcome)
            for nothing in self.defaults:
                self.peer.beside.note(given_by(label), nothing)
            drew = self.peer.random.drawn
            self.crossings.append(Crossing(label, (), kept, changed, drew=drew))

    def snapshot(self, value: Any) -> Any:
        """A copy that later changes do not reach; of what is too large only its kind."""
        self.left, self.is_whole, self.defaults = MAX_SNAPSHOT, True, []
        try:
            return self._copied(value, 0)
        except OverflowError:
            self.is_whole = False
            return Opaque("object", type(value).__name__)

    def copies(self, values: list[Any]) -> list[Any]:
        """Copies of what a message handed over, which refer to each other as the values do."""
        made = {id(one): self.peer.changing.double(one) for one in values}
        for one in made.values():
            exchange(one, made)
        return list(made.values())

    def _keep_default(self, table: Any) -> None:
        """Keep what a table makes of a key that it lacks, where that has no entries."""
        factory = table.default_factory if type(table) is collections.defaultdict else None
        is_class = type(factory) is type  # else it may be an answer's, which is not asked
        if is_class and factory in EMPTY and len(self.defaults) < MAX_DEFAULTS:
            self.defaults.append(factory())

    def _table(self, table: dict, depth: int) -> dict:
        """A copy of a table; of keys that are objects only their kinds, each another key."""
        made: dict[Any, Any] = {}
        for key, part in table.items():
            known = key if type(key) in library.LEAVES else self._copied(key, depth)
            if not _is_key(known) or known in made:
                known = Opaque("object", f"key {len(made)}")
            made[known] = self._copied(part, depth)
        return made

    def _copied(self, value: Any, depth: int) -> Any:  # noqa: C901  (a branch a kind)
        self.left -= 1
        if self.left < 0 or self.bytes > MAX_TRANSCRIPT:
            raise OverflowError
        if type(value) in library.LEAVES:
            self.bytes += len(value) if type(value) in (str, bytes) else 0
            return value
        remote = remote_of(value)
        if based.is_value(value):
            return self._copied(based.as_plain(value), depth)
        if remote is not None:
            return Opaque(remote.kind, remote.called)
        if is_one(value):
            self.is_whole = False
            return Opaque(INSTANCE, type(value).__name__)
        if type(value) in library.HOLDERS:  # in whose place an object may stand
            self.is_whole = False
            nothing = type(value) is array and not value
            return Opaque(repr(value) if nothing else "object", type(value).__name__)
        if depth < 20 and issubclass(type(value), tuple):
            return tuple(self._copied(part, depth + 1) for part in value)
        if MADE and isinstance(value, dict | set | frozenset) and any(map(is_one, value)):
            return Opaque("object", type(value).__name__)
        if library.is_view(value):
            return self._copied(list(value), depth)
        if depth < 20 and isinstance(value, dict):
            self._keep_default(value)
            return self._table(value, depth + 1)
        if depth < 20 and type(value) in (list, set, frozenset, collections.deque):
            return type(value)(self._copied(part, depth + 1) for part in value)
        is_text = type(value) is bytearray
        if not isinstance(value, type):  # of which the size is of its objects
            self.bytes += len(value) if is_text else getattr(value, "nbytes", 0)
        if is_text:
            return value[:]
        if self.peer.tensors and self.peer.tensors.knows(value):
            return self.peer.tensors.snapshot(value)
        return arrays.snapshot(value)

"""Values between two processes that do not trust each other: bounded, by value, never pickle.

A frame is a JSON tree and raw buffers. In the tree every list starts with a tag that says what it
is; plain None, booleans, numbers and texts stand for themselves. What is read is checked against
limits before anything is built from it.
"""

import collections
import contextlib
import decimal
import fractions
import json
import math
import re
import struct
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields
from typing import Any

from autograder.common.results import Crossing, Opaque, Raised

HEAD = struct.Struct("!II")  # bytes of the tree, number of buffers
MAX_TREE = 24_000_000
MAX_BUFFERS = 20_000
MAX_BYTES = 256_000_000
MAX_DEPTH = 100
MAX_NODES = 2_000_000
MAX_SPREAD_OUT = 20_000_000  # parts, when what is referred to twice is counted twice
MAX_RANGE = 50_000_000  # length of a range from an answer: a test may make a list of it
MAX_DIGITS = 100_000  # hexadecimal digits of a number
MAX_EXPONENT = 100_000  # of a decimal number from an answer: an integer of it fills memory
MALFORMED = (  # what reading may raise where something else stands than should
    *(TypeError, ValueError, LookupError, AttributeError, ArithmeticError),
    *(RuntimeError, MemoryError, struct.error),
)
# what leads from anything to all names of a test, where that puts a value into such a text
READING = re.compile(
    r"\.(__(globals|builtins|code|closure|(kw)?defaults)__"
    r"|(gi|cr|ag|tb)_(frame|code)|f_(back|builtins|code|globals|locals))\b"
)
HOLDERS: dict[type, str] = {  # values that can be changed in place, by the tag of their nodes
    list: "L",
    dict: "D",
    set: "S",
    collections.Counter: "CN",
    collections.OrderedDict: "OD",
    collections.defaultdict: "DD",
    collections.deque: "DQ",
    bytearray: "BA",
}
KINDS: dict[Any, Any] = {tag: kind for kind, tag in HOLDERS.items()}
# made once; `Encoder` writes no tree that holds itself
_JSON = json.JSONEncoder(separators=(",", ":"), check_circular=False)
_TEXT = json.JSONDecoder()
PLAIN = frozenset((float, bool, type(None)))  # of nodes that are values, as they are
RECORDS = {kind.__name__: kind for kind in (Opaque, Raised, Crossing)}


class WireError(Exception):
    """What came is malformed or too large; said in one sentence."""


@contextlib.contextmanager
def reading() -> Iterator[None]:
    """Whatever is wrong with what is read here is refused as a `WireError`."""
    try:
        yield
    except MALFORMED as error:
        raise _refused(error) from error


def _refused(error: BaseException) -> WireError:
    return WireError(f"a message has a malformed part ({type(error).__name__})")


@dataclass
class Frame:
    """One message, in the making or as it came."""

    tree: Any = None
    buffers: list[bytes | memoryview] = field(default_factory=list)

    def add(self, buffer: bytes | memoryview) -> int:
        """Append a buffer; its place."""
        self.buffers.append(buffer)
        return len(self.buffers) - 1

    def pieces(self) -> list[bytes | memoryview]:
        """The bytes to send, in order."""
        text = _JSON.encode(self.tree).encode("ascii")
        sizes = [memoryview(buffer).nbytes for buffer in self.buffers]
        if len(text) > MAX_TREE or len(sizes) > MAX_BUFFERS or sum(sizes) > MAX_BYTES:
            raise WireError("the value is too large to be handed over")
        head = HEAD.pack(len(text), len(sizes)) + struct.pack(f"!{len(sizes)}Q", *sizes)
        return [head + text, *self.buffers]


def read_frame(read: Callable[[int], bytes]) -> Frame:
    """Read one frame; `read(n)` gives exactly n bytes or raises."""
    length, count = HEAD.unpack(read(HEAD.size))
    if length > MAX_TREE or count > MAX_BUFFERS:
        raise WireError("a message is larger than allowed")
    sizes = struct.unpack(f"!{count}Q", read(8 * count)) if count else ()
    if sum(sizes) > MAX_BYTES:
        raise WireError("a message is larger than allowed")
    text = read(length)
    if text.count(b"[") + text.count(b"{") > 2 * MAX_NODES:  # each takes memory once it is read
        raise WireError("a message has too many parts")
    try:
        tree, end = _TEXT.raw_decode(text.decode("ascii"))
    except (ValueError, RecursionError) as error:
        raise WireError("a message is no readable text") from error
    if end != length:
        raise WireError("a message is no readable text")
    return Frame(tree, [read(size) for size in sizes])


class Encoder:
    """Put values into a frame. What it does not know goes to `other(value)`, which gives a node."""

    def __init__(self, frame: Frame, memo: dict[int, int] | None = None) -> None:
        self.frame = frame
        self.memo = {} if memo is None else memo  # id of a mutable object -> its place
        self.kept: list[Any] = []  # objects given a place here, in order
        self.nodes = 0
        self.depth = 0

    def node(self, value: Any) -> Any:
        """The tree's node for a value."""
        kind = type(value)
        if value is None or kind is bool or kind is str:
            return value
        if kind is float:
            return value if value == value else _nan_node(value)
        if kind is int:
            return value if -(2**63) <= value < 2**63 else ["I", hex(value)]
        self.nodes += 1
        self.depth += 1
        if self.depth > MAX_DEPTH or self.nodes > MAX_NODES:
            raise WireError("the value is nested too deeply or has too many parts")
        try:
            return self._compound(kind, value)
        finally:
            self.depth -= 1

    def keep(self, value: Any) -> bool:
        """Give a mutable object its place; False if it has one already."""
        if id(value) in self.memo:
            return False
        self.memo[id(value)] = len(self.memo)
        self.kept.append(value)
        return True

    def _compound(self, kind: type, value: Any) -> Any:
        if id(value) in self.memo:
            return ["R", self.memo[id(value)]]
        if kind is tuple:
            return ["T", *map(self.node, value)]
        if kind in HOLDERS:
            self.keep(value)
            return self.contents(value)
        writer = _WRITERS.get(kind)
        if writer is not None:
            return writer(self, value)
        if kind.__name__ in RECORDS and kind is RECORDS[kind.__name__]:
            return ["O", kind.__name__, *(self.node(getattr(value, f.name)) for f in fields(value))]
        return self.other(value)

    def contents(self, value: Any) -> Any:
        """A value that can be changed in place as a node, without looking for its place."""
        tag = HOLDERS[type(value)]
        if isinstance(value, bytearray):
            return [tag, self.frame.add(bytes(value))]
        if not isinstance(value, dict):
            limit = [value.maxlen] if tag == "DQ" else []
            return [tag, *limit, *map(self.node, value)]
        is_default = isinstance(value, collections.defaultdict)
        factory = [self.node(value.default_factory)] if is_default else []
        return [tag, *factory, *(self.node(part) for item in value.items() for part in item)]

    def other(self, value: Any) -> Any:
        """A value of a kind that is not known here."""
        raise WireError(f"a {type(value).__name__} cannot be handed over")


def _nan_node(value: float) -> Any:
    """That of no number, by which of those that have a name it is: lists compare by that."""
    numpy: Any = sys.modules.get("numpy")
    known = (math.nan, math.nan if numpy is None else numpy.nan)
    return next((["NA", n] for n, one in enumerate(known) if value is one), value)


def _nan(parts: list[Any]) -> float:
    numpy: Any = sys.modules.get("numpy")
    return math.nan if numpy is None or parts != [1] else numpy.nan


def _nodes(encoder: Encoder, values: Iterable[Any]) -> list[Any]:
    return [encoder.node(value) for value in values]


_WRITERS: dict[type, Callable[[Encoder, Any], Any]] = {
    bytes: lambda e, v: ["B", e.frame.add(v)],
    complex: lambda e, v: ["C", v.real, v.imag],
    frozenset: lambda e, v: ["FS", *_nodes(e, v)],
    range: lambda e, v: ["G", e.node(v.start), e.node(v.stop), e.node(v.step)],
    slice: lambda e, v: ["SL", e.node(v.start), e.node(v.stop), e.node(v.step)],
    type(...): lambda e, v: ["E"],
    type(NotImplemented): lambda e, v: ["NI"],
    fractions.Fraction: lambda e, v: ["FR", e.node(v.numerator), e.node(v.denominator)],
    decimal.Decimal: lambda e, v: ["DC", str(v)],
}


class Decoder:
    """Build values from a frame's tree. Tags it does not know go to `other(tag, parts)`."""

    longest = MAX_TREE  # characters of a text

    def __init__(self, frame: Frame, kept: list[Any] | None = None) -> None:
        self.frame = frame
        self.kept: list[Any] = [] if kept is None else kept
        self.nodes = 0
        self.depth = 0
        self.parts = 0  # with what is referred to again
        self.weights: dict[int, int] = {}  # place -> parts of what stands there
        self.taken: set[int] = set()  # buffers
        self.is_wary = False  # whether values may be made to do harm

    def value(self, node: Any) -> Any:
        """The value of a node."""
        if not isinstance(node, list):
            if isinstance(node, dict):
                raise WireError("a message has a part of unknown form")
            if type(node) is int and not -(2**63) <= node < 2**63:
                raise WireError("a number is too long")
            if self.is_wary and type(node) is str and "{" in node and READING.search(node):
                raise WireError("a text for `format` reads what no answer may")
            return node
        self.nodes += 1
        self.depth += 1
        self._weigh(len(node))
        if self.depth > MAX_DEPTH + 5 or self.nodes > MAX_NODES:
            raise WireError("a message is nested too deeply or has too many parts")
        try:
            return self._tagged(node)
        except MALFORMED as error:
            raise _refused(error) from error
        finally:
            self.depth -= 1

    def values(self, nodes: Iterable[Any]) -> list[Any]:
        """The values of several nodes."""
        longest = self.longest
        return [
            node
            if type(node) in PLAIN
            or (type(node) is str and len(node) <= longest and "{" not in node)
            else self.value(node)
            for node in nodes
        ]

    def buffer(self, place: Any) -> bytes | memoryview:
        """The buffer at a place; each is used once, so that nothing grows beyond what came."""
        if type(place) is not int or not 0 <= place < len(self.frame.buffers):
            raise WireError("a message names a buffer that it does not have")
        if place in self.taken:
            raise WireError("a message names a buffer twice")
        self.taken.add(place)
        found, self.frame.buffers[place] = self.frame.buffers[place], b""
        return found

    def mind_the_clock(self) -> None:
        """Called often while something large is read."""

    def _weigh(self, parts: int) -> None:
        self.parts += parts
        if self.parts > MAX_SPREAD_OUT:
            raise WireError("a message has too many parts")

    def _tagged(self, node: list[Any]) -> Any:
        tag, parts = node[0], node[1:]
        if tag == "R":
            if type(parts[0]) is not int or parts[0] < 0:
                raise WireError("a message refers to nothing")
            self._weigh(self.weights.get(parts[0], 1))
            return self.kept[parts[0]]
        if tag == "T":
            return tuple(self.values(parts))
        if tag in KINDS:
            made = empty(KINDS[tag], parts)
            place, before = len(self.kept), self.parts
            self.kept.append(made)
            self.fill(made, parts)
            self.weights[place] = 1 + self.parts - before + len(parts)
            return made
        reader = _READERS.get(tag)
        return reader(self, parts) if reader is not None else self.other(tag, parts)

    def fill(self, made: Any, parts: list[Any]) -> Any:
        """Put what comes after a node's tag into an empty value of the tag's kind."""
        if isinstance(made, bytearray):
            (place,) = parts
            made += self.buffer(place)
        elif isinstance(made, list | collections.deque):
            made.extend(self.values(parts[1:] if isinstance(made, collections.deque) else parts))
        elif isinstance(made, dict):
            if isinstance(made, collections.defaultdict):
                made.default_factory, parts = _factory(self.value(parts[0])), parts[1:]
            _put(self, made.__setitem__, _pairs(self, parts))
        else:
            _put(self, made.add, [(value,) for value in self.values(parts)])
        return made

    def other(self, tag: Any, parts: list[Any]) -> Any:
        """A node of a kind that is not known here."""
        raise WireError(f"a message has a part of unknown kind {str(tag)[:20]!r}")


def empty(kind: type, parts: list[Any]) -> Any:
    """An empty value of a kind of `HOLDERS`, from what comes after the tag of its node."""
    if kind is not collections.deque:
        return kind()
    limit = parts[0]
    if limit is not None and (type(limit) is not int or not 0 <= limit < 2**63):
        raise WireError("a message holds a queue whose length is none")
    return collections.deque(maxlen=limit)


def _factory(made: Any) -> Any:
    if made is not None and not callable(made):
        raise WireError("a message holds a dictionary whose default is none")
    return made


def _pairs(decoder: Decoder, parts: list[Any]) -> list[tuple[Any, Any]]:
    values = decoder.values(parts)
    return list(zip(values[::2], values[1::2], strict=True))


def _put(decoder: Decoder, put: Callable[..., None], items: list[tuple]) -> None:
    """Put items in one by one: keys made to collide can take hours, and the clock has to run."""
    for count, item in enumerate(items):
        if not count % 256:
            decoder.mind_the_clock()
        put(*item)


def _filled(decoder: Decoder, made: Any, parts: list[Any]) -> Any:
    return Decoder.fill(decoder, made, parts)


def _integer(parts: list[Any]) -> int:
    text = parts[0]
    if not isinstance(text, str) or len(text) > MAX_DIGITS:
        raise WireError("a number is too long")
    return int(text, 16)


def _complex(decoder: Decoder, parts: list[Any]) -> complex:
    real, imaginary = parts
    return complex(real, imaginary)


def _fraction(decoder: Decoder, parts: list[Any]) -> fractions.Fraction:
    decoder.mind_the_clock()  # two long numbers take a while to reduce
    above, below = parts
    return fractions.Fraction(decoder.value(above), decoder.value(below))


def _decimal(decoder: Decoder, parts: list[Any]) -> decimal.Decimal:
    (text,) = parts
    if not isinstance(text, str) or len(text) > MAX_DIGITS:
        raise WireError("a number is too long")
    made = decimal.Decimal(text)
    if decoder.is_wary and made.is_finite() and abs(made.adjusted()) > MAX_EXPONENT:
        raise WireError("a number is too long")
    return made


def _record(decoder: Decoder, parts: list[Any]) -> Any:
    return RECORDS[parts[0]](*decoder.values(parts[1:]))


def _range(decoder: Decoder, parts: list[Any]) -> range:
    start, stop, step = parts
    made = range(decoder.value(start), decoder.value(stop), decoder.value(step))
    if decoder.is_wary and len(made) > MAX_RANGE:
        raise WireError("a range is too long")
    return made


_READERS: dict[Any, Callable[[Decoder, list[Any]], Any]] = {
    "I": lambda d, p: _integer(p),
    "B": lambda d, p: bytes(d.buffer(p[0])),
    "C": _complex,
    "FS": lambda d, p: frozenset(_filled(d, set(), p)),
    "G": _range,
    "SL": lambda d, p: slice(*d.values(p)),
    "E": lambda d, p: ...,
    "NI": lambda d, p: NotImplemented,
    "NA": lambda d, p: _nan(p),
    "FR": _fraction,
    "DC": _decimal,
    "O": _record,
}

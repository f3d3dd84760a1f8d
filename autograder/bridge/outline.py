"""What came from an answer otherwise than as a plain result, in outline: of what it has entries."""

import cmath
import collections
import math
from array import array
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from autograder.bridge import arrays, based, library, shapes
from autograder.bridge.aliases import is_tensor
from autograder.bridge.stand_ins import remote_of
from autograder.common.results import Crossing

if TYPE_CHECKING:
    from autograder.bridge.peer import Peer

MOST = 10_000  # values of one test
MOST_PARTS = 1_000_000  # of one of them
DEEPEST = 20
SMALL = 50  # parts of an object that is told wherever it stands
NUMBERS = (bool, int, float, complex)
KEYS = (str, int, bool, bytes, type(None))
CHANGES, HANDS_OVER = " changes", " hands over"  # after the label of the call that does it
RAISES = " raises "  # before the name of what an exception of it carries
WITH = " with "  # after a label: what its value has in places, "nan" or "inf", in a note of its own
HOLDS = "holds "  # before the name of a module's parameter or buffer
TEXTS = {"nan": {"nan"}, "inf": {"inf"}, "infinity": {"inf"}}  # of a number that is none
SEQUENCES = (list, tuple, set, frozenset, collections.deque)


class Beside:
    """Keeps outlines of values, at the end of the test, while it is recorded what crosses."""

    def __init__(self, peer: "Peer") -> None:
        self.peer = peer
        self.kept: list[Crossing] = []

    def note(self, label: str, value: Any, *, gaps_only: bool = False) -> None:
        """Keep in outline what came from an answer, or only what it has in places."""
        is_wanted = self.peer.transcript.crossings is not None and not self.peer.is_free
        if is_wanted and len(self.kept) < MOST:
            outline = _Outline(self.peer.records.shape)
            made = outline.of(value, 0)
            if made is not None:
                self.kept.append(Crossing(label, (), 1.0 if gaps_only else made))
                gaps = sorted(outline.gaps)
                self.kept += (Crossing(f"{label}{WITH}{gap}", (), 1.0) for gap in gaps)


def outline(value: Any, shape_of: Callable[[type], shapes.Shape]) -> Any:
    """What has entries in a value: of an array a number, or an empty list; None for what has none.

    Tables are dicts, and so is what an object of the instructor's holds; all sequences are lists.
    """
    return _Outline(shape_of).of(value, 0)


def _gaps_in(value: Any) -> set[str]:
    """Of a number, its text, an array or a tensor, whether NaN or infinity stand in it."""
    found = set[str]()
    if type(value) is str:
        return TEXTS.get(value[:20].strip().lower().lstrip("+-"), found)
    if type(value) in (float, complex):
        found |= {"nan"} if cmath.isnan(value) else found
        return found | ({"inf"} if cmath.isinf(value) else found)
    if "float" in str(value.dtype) or "complex" in str(value.dtype):
        with suppress(TypeError, RuntimeError):  # a kind of numbers that nothing compares
            if bool((value != value).any()):
                found.add("nan")
            if bool((abs(value) == math.inf).any()):
                found.add("inf")
    return found


def is_all_nan(numbers: Any) -> bool:
    """Whether an array or tensor, or a list of lists, has numbers that are NaN, all of them."""
    if isinstance(numbers, list):
        return bool(numbers) and all(map(is_all_nan, numbers))
    if isinstance(numbers, float) or getattr(numbers, "shape", None) == ():
        return bool(numbers != numbers)
    if 0 in getattr(numbers, "shape", (0,)):
        return False
    first = numbers[(0,) * len(numbers.shape)]
    return bool(first != first) and bool((numbers != numbers).all())


class _Outline:
    """Makes one; an object that stands in many places is told again if it is small."""

    def __init__(self, shape_of: Callable[[type], shapes.Shape]) -> None:
        self.shape_of = shape_of
        self.gaps = set[str]()  # whether NaN or infinity stand in it
        self.parts = 0  # of what is made, with those that stand in several places
        self.known: dict[int, tuple[Any, int]] = {}  # outlines of objects and their parts, by id

    def of(self, value: Any, depth: int) -> Any:
        """The outline of a value, or a part of it this deep in it."""
        self.parts += 1
        kind = type(value)
        if self.parts > MOST_PARTS or depth > DEEPEST:
            return None
        if kind in NUMBERS or kind is str:
            self.gaps |= _gaps_in(value) if kind in (float, complex, str) else set()
            return None if kind is str else value
        if based.is_value(value):
            return self.of(based.as_plain(value), depth + 1)
        if remote_of(value) is not None:
            return None
        if shapes.is_one(value):
            return self._of_object(value, depth)
        if isinstance(value, dict):
            return self._of_table(value, depth)
        if issubclass(kind, SEQUENCES) or kind in library.HOLDERS:
            found = value if kind is array else library.parts_of(value)
            return [self.of(part, depth + 1) for part in found]
        if not (arrays.has_memory(value) or is_tensor(value)):
            return None
        if 0 in value.shape:
            return []
        self.gaps |= _gaps_in(value)
        return math.nan if is_all_nan(value) else 1.0

    def _of_table(self, table: dict[Any, Any], depth: int) -> dict[Any, Any]:
        return {
            key if type(key) in KEYS else place: self.of(part, depth + 1)
            for place, (key, part) in enumerate(table.items())
        }

    def _of_object(self, value: Any, depth: int) -> Any:
        """What an object of the instructor's holds; nothing of one that holds itself."""
        if id(value) in self.known:
            made, size = self.known[id(value)]
            self.parts += size
            return made if size <= SMALL else None
        self.known[id(value)] = None, 0
        before = self.parts
        shape = self.shape_of(type(value))
        made = self._of_table(shapes.attributes(value, shape), depth)
        self.known[id(value)] = made, self.parts - before
        return made

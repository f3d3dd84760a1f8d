"""Random numbers in two processes as if in one: what the asking end seeded, the answering end uses.

Only the state of the end that asks travels; the answering end cannot choose the other's numbers,
nor when these go on: the reference's calls in the same test say that.
"""

import ctypes
import random
import struct
import sys
from collections.abc import Callable, Iterable
from typing import Any

from autograder.bridge.wire import Frame, WireError

PYTHON = struct.Struct("!625I?d")  # the Mersenne Twister's words, its place, and half a gauss pair
NUMPY = struct.Struct("!q?d")
WORDS = 624
HELD = struct.Struct(f"=i{WORDS}I")  # in memory: the place, then the words
AS_TOLD = struct.Struct(f"={WORDS + 1}I")  # by `getstate`: the words, then the place
# by name, and once: an answer may put something else there
GENERATOR: Any = random.getstate.__self__  # type: ignore[attr-defined]
_getstate = random.getstate
TORCH = struct.Struct("<QiiQ")  # how torch's begins: seed, words left, whether seeded, the next
TORCH_SIZE = 5056


class Follower:
    """Remembers the states last seen, so that only news is sent."""

    def __init__(self) -> None:
        self.seen: dict[str, Any] = {}  # by the end that asks
        self.came: dict[str, Any] = {}  # by the end that answers
        self.drawn: tuple[str, ...] = ()  # whose numbers the last call drew
        # whose numbers go on after a call with this label; if unknown, whose it drew
        self.steps: Callable[[str], Iterable[str]] | None = None
        self.is_looked_at = False  # whether a test asks for the state: then all draws move it

    def leave(self, frame: Frame) -> list[Any]:
        """Before a request: the states that changed since the last one."""
        news = []
        for name, state in _states().items():
            if self.seen.get(name) != state:
                self.seen[name] = state
                news.append([name, frame.add(_packed(name, state))])
        return news

    def back(self, used: Any, label: str) -> None:
        """After a reply: where numbers are drawn, go one step on, much as in one process.

        Where the reference's calls are known, these decide, and not what the answer has drawn: it
        could choose by that the numbers that the test draws next. But a test that claims that
        the state stays as it is has to see what the answer has drawn as well.
        """
        told = set(map(str, used)) if isinstance(used, list) else set()
        self.drawn = tuple(sorted(self.seen.keys() & told))
        due = set(self.drawn)
        if self.steps is not None:
            due = self.seen.keys() & self.steps(label) | (due if self.is_looked_at else set())
        if due:
            for name in sorted(due):
                _step(name)
            if not self.is_looked_at:  # else the next call is told, and one that seeds shows
                self.seen = _states()

    def arrive(self, frame: Frame, news: Any) -> None:
        """Take over the states of a request."""
        for name, place in news or []:
            _set(name, bytes(frame.buffers[place]))
        if news or not self.came:
            self.came = _states()

    def used(self) -> list[str]:
        """Whether numbers were drawn since the request came, and whose."""
        before, self.came = self.came, _states()
        return [name for name, state in self.came.items() if before.get(name) != state]


def _states() -> dict[str, Any]:
    states: dict[str, Any] = {"python": _python_state()}
    if "torch" in sys.modules:
        states["torch"] = sys.modules["torch"].default_generator.get_state().numpy().tobytes()
    if "numpy" in sys.modules:
        states["numpy"] = _numpy_state()
    return states


def _python_state() -> tuple[bytes, Any]:
    """The words of Python's generator and its place, packed, and half of a gauss pair.

    It is looked at before and after each call, and `getstate` makes 625 numbers of it each time.
    """
    if IN_MEMORY:
        return ctypes.string_at(_words_at(), IN_MEMORY.size), GENERATOR.gauss_next
    _, numbers, gauss = _getstate()
    return AS_TOLD.pack(*numbers), gauss


def _words_at() -> int:
    """Where the place and the words of Python's generator lie, if they lie as in CPython's."""
    return id(GENERATOR) + object.__basicsize__


def _layout() -> struct.Struct | None:
    """What lies there; nothing if it is not what `getstate` tells."""
    if sys.implementation.name != "cpython" or GENERATOR.__sizeof__() < HELD.size:
        return None
    place, *words = HELD.unpack(ctypes.string_at(_words_at(), HELD.size))
    return HELD if (*words, place) == _getstate()[1] else None


IN_MEMORY = _layout()
_numpy_last: tuple[bytes, Any] = b"", None


def _numpy_state() -> Any:
    """NumPy's state; it takes long to tell, so it is asked only where the words have changed.

    A kept half of a gauss pair is used up without a change of the words.
    """
    global _numpy_last
    numpy: Any = sys.modules["numpy"]
    generator = numpy.random.get_bit_generator()
    if type(generator).__name__ != "MT19937":
        return _told_by_numpy()
    words = ctypes.string_at(generator.ctypes.state_address, WORDS * 4 + 4)
    before, state = _numpy_last
    if words != before or state[2]:
        state = _told_by_numpy()
        _numpy_last = words, state
    return state


def _told_by_numpy() -> Any:
    numpy: Any = sys.modules["numpy"]
    _, keys, place, *rest = numpy.random.get_state()
    return keys.tobytes(), place, *rest


def _step(name: str) -> None:
    if name == "python":
        random.random()
    elif name == "torch":
        torch: Any = sys.modules["torch"]
        torch.rand((), device="cpu")
    else:
        numpy: Any = sys.modules["numpy"]
        numpy.random.random()


def _packed(name: str, state: Any) -> bytes:
    if name == "torch":
        return state
    if name == "python":
        held, gauss = state
        if IN_MEMORY:
            place, *words = IN_MEMORY.unpack(held)
        else:
            *words, place = AS_TOLD.unpack(held)
        return PYTHON.pack(*words, place, gauss is not None, gauss or 0.0)
    keys, place, has_gauss, cached = state
    return keys + NUMPY.pack(place, bool(has_gauss), cached)


def _set(name: str, packed: bytes) -> None:
    """Take over a state; what is none is refused, before a library believes it."""
    try:
        if name == "torch" and "torch" in sys.modules:
            torch: Any = sys.modules["torch"]
            torch.set_rng_state(torch_state(packed))
        elif name == "python":
            *numbers, has_gauss, gauss = PYTHON.unpack(packed)
            random.setstate((3, tuple(numbers), gauss if has_gauss else None))
        elif name == "numpy" and "numpy" in sys.modules:
            _set_numpy(packed)
    except (ValueError, TypeError, RuntimeError, struct.error) as error:
        raise WireError("a message holds a state of random numbers that is none") from error


def torch_state(packed: bytes | memoryview) -> Any:
    """The state of a generator of torch's, which would read beyond the words of a wrong one."""
    torch: Any = sys.modules["torch"]
    if len(packed) != TORCH_SIZE:
        raise WireError("a message holds a state of random numbers that is none")
    _, left, seeded, place = TORCH.unpack_from(packed)
    fits = left + place == WORDS + 1 or (left, place) == (1, 0)  # the second: none drawn yet
    if seeded != 1 or not 0 < left <= WORDS or not fits:
        raise WireError("a message holds a state of random numbers that is none")
    return torch.frombuffer(bytearray(packed), dtype=torch.uint8)


def _set_numpy(packed: bytes) -> None:
    numpy: Any = sys.modules["numpy"]
    keys = numpy.frombuffer(packed[: WORDS * 4], "uint32")
    place, has_gauss, cached = NUMPY.unpack(packed[WORDS * 4 :])
    if not 0 <= place <= WORDS:  # NumPy would read beyond the words
        raise ValueError
    numpy.random.set_state(("MT19937", keys, place, int(has_gauss), cached))


def draws(kind: type) -> bool:
    """Whether objects of a class are random numbers of their own, of Python's or NumPy's."""
    numpy: Any = sys.modules.get("numpy.random")
    return kind is random.Random or (
        numpy is not None and kind in (numpy.Generator, numpy.RandomState)
    )

"""Random numbers in two processes as if in one: what the asking end seeded, the answering end uses.

Only the state of the end that asks travels; the answering end cannot choose the other's numbers.
"""

import random
import sys
from typing import Any

from autograder.engine.wire import Frame


class Follower:
    """Remembers the states last seen, so that only news is sent."""

    def __init__(self) -> None:
        self.seen: dict[str, Any] = {}  # by the end that asks
        self.came: dict[str, Any] = {}  # by the end that answers

    def leave(self, frame: Frame) -> list[Any]:
        """Before a request: the states that changed since the last one."""
        news = []
        for name, state in _states().items():
            if self.seen.get(name) != state:
                self.seen[name] = state
                news.append([name, frame.add(_packed(name, state))])
        return news

    def back(self, used: Any) -> None:
        """After a reply: where numbers were drawn, go one step on, as in one process."""
        if isinstance(used, list) and used:
            for name in self.seen.keys() & set(map(str, used)):
                _step(name)
            self.seen = _states()

    def arrive(self, frame: Frame, news: Any) -> None:
        """Take over the states of a request."""
        for name, place in news or []:
            _set(name, bytes(frame.buffers[place]))
        self.came = _states()

    def used(self) -> list[str]:
        """Whether numbers were drawn since the request came, and whose."""
        return [name for name, state in _states().items() if self.came.get(name) != state]


def _states() -> dict[str, Any]:
    states: dict[str, Any] = {"python": random.getstate()}
    if "torch" in sys.modules:
        states["torch"] = sys.modules["torch"].get_rng_state().numpy().tobytes()
    if "numpy" in sys.modules:
        numpy: Any = sys.modules["numpy"]
        _, keys, place, *rest = numpy.random.get_state()
        states["numpy"] = (keys.tobytes(), place, *rest)
    return states


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
        _, numbers, gauss = state
        return repr((numbers, gauss)).encode()
    keys, place, has_gauss, cached = state
    return keys + repr((place, has_gauss, cached)).encode()


def _set(name: str, packed: bytes) -> None:
    if name == "torch" and "torch" in sys.modules:
        torch: Any = sys.modules["torch"]
        torch.set_rng_state(torch.frombuffer(bytearray(packed), dtype=torch.uint8))
    elif name == "python":
        import ast

        numbers, gauss = ast.literal_eval(packed.decode())
        random.setstate((3, numbers, gauss))
    elif name == "numpy" and "numpy" in sys.modules:
        import ast

        numpy: Any = sys.modules["numpy"]
        keys = numpy.frombuffer(packed[: 624 * 4], "uint32")
        rest = ast.literal_eval(packed[624 * 4 :].decode())
        numpy.random.set_state(("MT19937", keys, *rest))

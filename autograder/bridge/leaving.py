"""What a call leaves in objects of the instructor's classes, and in what it raises.

It is no result, and a test reads it all the same. So it is noted as results are, and where a look
puts something else in the place of what an answer gives, it does so here as well.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from autograder.bridge.outline import CHANGES, RAISES
from autograder.bridge.shapes import alike, attributes

if TYPE_CHECKING:
    from autograder.bridge.outgoing import Outgoing
    from autograder.bridge.peer import Peer


class Leaving:
    """Notes what calls of one end leave behind, when they are over."""

    def __init__(self, peer: "Peer") -> None:
        self.peer = peer

    def sets(self, call: "Outgoing | None", value: Any, told: Mapping[str, Any]) -> None:
        """A call is about to give an object these attributes."""
        if call is None or self.peer.is_free:
            return
        own = self._held(value)
        names = {
            name for name, part in told.items() if name not in own or not alike(part, own[name])
        }
        _, known = call.set_in.setdefault(id(value), (value, set()))
        known |= names

    def behind(self, call: "Outgoing", label: str) -> None:
        """A call is over: what it has set in objects is what a test finds there."""
        for value, names in call.set_in.values():
            held = self._held(value)
            for name in sorted(names & held.keys()):
                is_number = type(held[name]) in (float, complex)
                self.peer.beside.note(f"{label}{CHANGES}.{name}", held[name], gaps_only=is_number)
                made = self._filled(held[name])
                if made is not held[name]:
                    object.__setattr__(value, name, made)

    def raising(self, label: str) -> Callable[[str, Any], Any]:
        """What a test gets in the place of a part of an exception that a call raises."""
        return partial(self._raised, label)

    def _raised(self, label: str, name: str, value: Any) -> Any:
        self.peer.beside.note(f"{label}{RAISES}{name}", value, gaps_only=True)
        return self._filled(value)

    def _held(self, value: Any) -> dict[str, Any]:
        return attributes(value, self.peer.records.shape(type(value)))

    def _filled(self, value: Any) -> Any:
        fill = self.peer.fill if self.peer.runs_test else None
        return value if fill is None else fill(value)

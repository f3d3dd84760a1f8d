"""Hooks that an answer hangs on a test's modules: they run where the module is called, by its end.

Each is taken off when the call ends in which it was hung, unless the same call of the reference
leaves one as well: else an answer could have a say in what the test works out later.
"""

from typing import TYPE_CHECKING, Any

from torch.nn import Module
from torch.utils.hooks import RemovableHandle

from autograder.bridge.reference import is_quiet, permits
from autograder.bridge.stand_ins import remote_of
from autograder.bridge.touched import HOOKS

if TYPE_CHECKING:
    from autograder.bridge.outgoing import Outgoing
    from autograder.bridge.peer import Peer

KIND = "hook"  # of a change, when one stays


class Hung:
    """Those of one test's calls that are under way."""

    def __init__(self, peer: "Peer") -> None:
        self.peer = peer
        self.handles: list[tuple[Outgoing | None, RemovableHandle]] = []

    def hang(self, target: Any, name: str | None, given: list[Any], made: Any) -> None:
        """An answer has called a method of ours; nothing is done unless that hangs a hook."""
        if name in HOOKS and isinstance(target, Module):
            if not any(remote_of(one) for one in given):
                made.remove()
                raise PermissionError("a hook on a test's module is a function of the answer's")
            self.handles.append((self.peer.open[-1].call, made))  # type: ignore[union-attr]

    def end(self, call: "Outgoing") -> tuple[str, ...]:
        """Take off what a call leaves, if it may leave none; the kinds of change."""
        mine = [handle for by, handle in self.handles if by is call]
        self.handles = [pair for pair in self.handles if pair[0] is not call]
        left = [one for one in mine if one.id in (one.hooks_dict_ref() or ())]
        if not left:
            return ()
        self.peer.changing.note(KIND)
        if self.peer.protect and (is_quiet(call.label) or not permits(call.allowed, KIND)):
            for one in left:
                one.remove()
        return (KIND,)

"""Settings of a test's layers and optimisers, such as a rate, which an answer may set.

Both stay with the test, and an answer has stand-ins for them. What it sets there, or in the list
of an optimiser's groups, it sets at once in the test's own, and that is a change as any other
(`touched.py`). Settings are plain values which the library's own class has given the object
already: what a class of the instructor's keeps, a count of its calls perhaps, no answer sets.
"""

import weakref
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import Module

if TYPE_CHECKING:
    from autograder.bridge.peer import Peer

PLAIN = (bool, int, float, str, type(None))
GROUPS = "param_groups"
MOST_KEPT = 10  # lists of groups
# of a group, what the library's schedulers keep there
KEPT_THERE = frozenset(("initial_lr", "max_lr", "min_lr", "base_momentum", "max_momentum"))


class Settings:
    """What one end knows of them."""

    def __init__(self, peer: "Peer") -> None:
        self.peer = peer
        # lists of groups that an answer has, by the optimiser's number, with the settings in them
        self.groups: list[tuple[int, list[Any], list[dict[str, Any]]]] = []
        self.set_there: list[tuple[weakref.ref[Module], str]] = []
        # of earlier calls, which the answer may have kept, each with the optimiser's stand-in
        self.earlier: list[tuple[int, list[Any], Any]] = []

    # --- where answers run --------------------------------------------------------------------

    def put(self, stand_in: Module, number: int, name: str) -> None:
        """Tell of what was set in the stand-in of a layer."""
        value = stand_in.__dict__[name]
        if self.peer.open and is_plain(value):
            with suppress(PermissionError):  # it is none, and the answer has it for itself
                self.peer.put(number, name, value)
                self.set_there.append((weakref.ref(stand_in), name))

    def keep(self, number: int, name: str, found: Any) -> None:
        """Remember the settings in a list of groups that the answer has got."""
        if name == GROUPS and is_groups(found):
            self.groups.append((number, found, _settings(found)))

    def tell(self) -> None:
        """Tell what the answer has changed in such lists."""
        held, self.groups = self.groups, []
        for number, found, before in held:
            now = _settings(found) if is_groups(found) else before
            if now != before:
                self.peer.put(number, GROUPS, now)
            self.groups.append((number, found, now))

    def again(self) -> None:
        """When a call begins, bring up to date the lists that an earlier one got."""
        earlier, self.earlier = self.earlier, []
        for number, found, stand_in in earlier:
            with suppress(Exception):  # it is gone, or no such list any more
                now = self.peer.asking.request("get", [number, GROUPS], (), f"get {GROUPS}")
                for ours, theirs in zip(found, _settings(now), strict=True):
                    ours |= theirs
                self.groups.append((number, found, _settings(found)))
            del stand_in  # until here it had to be there

    def forget(self) -> None:
        """Once a call has ended, settings are read from the test's own again."""
        for number, found, _ in self.groups[-MOST_KEPT:]:
            self.earlier.append((number, found, self.peer.stand_ins.get(number)))
        self.groups.clear()
        for stand_in, name in self.set_there:
            if (module := stand_in()) is not None:
                module.__dict__.pop(name, None)
        self.set_there.clear()

    # --- where tests run ----------------------------------------------------------------------

    def take(self, target: Any, name: str, value: Any) -> bool:
        """Set what an answer has set, if it is a setting; whether it was."""
        if type(target).__module__.startswith("torch.optim.") and name == GROUPS:
            return _take_groups(target, value)
        library = type(target).__module__.startswith("torch.nn.modules.")
        if not library or not isinstance(target, Module) or not is_plain(value):
            return False
        if name not in vars(target) or name == "training" or not is_plain(vars(target)[name]):
            return False
        target.__dict__[name] = value
        return True


def is_plain(value: Any) -> bool:
    """Whether this is a value that a setting may have."""
    if type(value) is tuple:
        return len(value) <= 10 and all(type(one) in PLAIN for one in value)
    return type(value) in PLAIN


def is_groups(value: Any) -> bool:
    """Whether this is a list of an optimiser's groups."""
    return type(value) is list and all(type(one) is dict for one in value)


def _settings(groups: list[Any]) -> list[dict[str, Any]]:
    return [{k: v for k, v in one.items() if type(k) is str and is_plain(v)} for one in groups]


def _take_groups(optimiser: torch.optim.Optimizer, told: Any) -> bool:
    groups = optimiser.param_groups
    if not is_groups(told) or len(told) != len(groups):
        return False
    for ours, theirs in zip(groups, told, strict=True):
        for name, value in theirs.items():
            is_new = name in KEPT_THERE and name not in ours
            is_one = type(name) is str and name in ours and is_plain(ours[name])
            if (is_new or is_one) and is_plain(value):
                ours[name] = value
    return True

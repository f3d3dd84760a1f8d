"""Modules of a test's whose parameters an answer has kept, as an optimiser that it made does.

The stand-in of such a module is held as long as somebody at the answer's end holds one of its
parameters. So both ends go on telling each other what becomes of them: a gradient that the test has
worked out, and the step that the answer's optimiser makes.
"""

import sys

from torch.nn import Module

OURS = 2  # references to a parameter that its module alone holds, while they are counted


class KeptOn:
    """Those that an answer has asked for their parameters."""

    def __init__(self) -> None:
        self.roots: list[Module] = []

    def add(self, root: Module) -> None:
        """An answer has asked this one."""
        if not any(one is root for one in self.roots):
            self.roots.append(root)

    def look(self) -> None:
        """A call begins: let go of those of whose parameters nobody has kept one."""
        self.roots = [root for root in self.roots if _is_held(root)]


def _is_held(root: Module) -> bool:
    for module in root.modules():
        for name in module._parameters:
            if sys.getrefcount(module._parameters[name]) > OURS:
                return True
    return False

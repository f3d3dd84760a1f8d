"""How values were when they came, so that changes in place are noticed."""

import collections
import copy
from typing import Any

from autograder.bridge import arrays
from autograder.bridge.aliases import other
from autograder.bridge.wire import HOLDERS

AS_BEFORE = True  # stands for the factory of a `defaultdict` that is still the same


class Original:
    """How a value was when it came."""

    def __init__(self, value: Any) -> None:
        self.copy = copy.copy(value) if type(value) in HOLDERS else arrays.bits(value)

    def has_factory_of(self, value: Any) -> bool:
        """Whether the factory of a `defaultdict` is still the same."""
        return self.copy.default_factory is value.default_factory

    def differs(self, value: Any) -> bool:
        """Whether it was changed in place since."""
        if isinstance(self.copy, list | collections.deque):
            return len(self.copy) != len(value) or any(map(other, self.copy, value))
        if isinstance(self.copy, collections.defaultdict) and not self.has_factory_of(value):
            return True
        if isinstance(self.copy, dict):
            return list(self.copy) != list(value) or any(
                map(other, self.copy.values(), value.values())
            )
        if isinstance(self.copy, set | bytearray):
            return self.copy != value
        return arrays.bits(value) != self.copy

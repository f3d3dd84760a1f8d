"""What one end of the line lets the other do with objects of its own."""

from typing import Any


class Policy:
    """What this end lets the other do with objects of its own. The student's end allows all."""

    def may_give(self, value: Any) -> bool:
        """Whether an object may be handed over as a stand-in."""
        return True

    def may_use(self, value: Any, name: str | None) -> bool:
        """Whether the other end may call (name None) an object, or use this attribute of it."""
        return True

    def may_change(self, value: Any) -> bool:
        """Whether a value that was handed over may be changed in place by the other end."""
        return True

    def believes(self, name: str) -> bool:
        """Whether what an object of the other end says in this special method is taken."""
        return True


class Free(Policy):
    """The student's end: the test may do anything with what the answer made."""

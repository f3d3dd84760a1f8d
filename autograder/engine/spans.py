"""Whose memory a value lies in: found by the addresses that it uses, however it was made.

Between a view and the array that it lies in there may be views of other classes, tensors and
buffers; none of them tells reliably what it is a view of.
"""

import bisect
import math
import sys
from typing import Any

from autograder.engine import arrays

Span = tuple[int, int]  # the first address of its entries, and the one after the last


def span_of(value: Any) -> Span | None:
    """Where the entries of an array or tensor lie; None for anything else, or if it has none."""
    if arrays.has_memory(value):
        return arrays.span_of(value)
    views = sys.modules.get("autograder.engine.views")
    return views.span_of(value) if views is not None and views.is_plain(value) else None


class Owners:
    """Values under keys that can be put in order, to be found by the memory that they use."""

    def __init__(self) -> None:
        self.spans: list[tuple[int, int, Any]] = []  # in order
        self.longest = 0
        self.others: dict[int, Any] = {}  # id of a value that has no such memory -> its last key

    def clear(self) -> None:
        """Know none any more."""
        self.spans.clear()
        self.others.clear()
        self.longest = 0

    def add(self, value: Any, key: Any) -> Span | int:
        """Know a value, which has to stay alive; what it is removed by."""
        span = span_of(value)
        if span is None:
            self.others[id(value)] = key
            return id(value)
        bisect.insort(self.spans, (*span, key))
        self.longest = max(self.longest, span[1] - span[0])
        return span

    def remove(self, owner: Span | int, key: Any) -> None:
        """Know a value no longer."""
        if isinstance(owner, int):
            if self.others.get(owner) == key:
                del self.others[owner]
            return
        place = bisect.bisect_left(self.spans, (*owner, key))
        if self.spans[place : place + 1] == [(*owner, key)]:
            del self.spans[place]

    def of(self, value: Any) -> list[Any]:
        """The keys of values in whose memory another one lies, the last first."""
        span = span_of(value)
        if span is None:
            return [self.others[id(value)]] if id(value) in self.others else []
        low, high = span
        place = bisect.bisect_right(self.spans, (low, math.inf))
        found = []
        while place and self.spans[place - 1][0] >= high - self.longest:
            place -= 1
            if self.spans[place][1] >= high:
                found.append(self.spans[place][2])
        return sorted(found, reverse=True)

"""Whose memory a value lies in: found by the addresses that it uses, however it was made.

Between a view and the array that it lies in there may be views of other classes, tensors and
buffers; none of them tells reliably what it is a view of.
"""

import bisect
import math
from typing import Any

from autograder.bridge import arrays, codecs

Owner = tuple[int, int] | int  # the first address and the one after the last, or an id


def owner_of(value: Any) -> Owner:
    """Where the entries of an array or tensor lie; of all else, and if it has none, its id."""
    span = None
    if arrays.has_memory(value):
        span = arrays.span_of(value)
    elif (views := codecs.memory()) and views.is_plain(value):
        span = views.span_of(value)
    return id(value) if span is None else span


class Owners:
    """Keys of values, which can be put in order, to be found by the memory that these use."""

    def __init__(self) -> None:
        self.spans: list[tuple[int, int, Any]] = []  # in order
        self.longest = 0
        self.others: dict[int, Any] = {}  # id of a value that has no such memory -> its last key

    def clear(self) -> None:
        """Know none any more."""
        self.spans.clear()
        self.others.clear()
        self.longest = 0

    def add(self, owner: Owner, key: Any) -> None:
        """Know a value, which has to stay alive."""
        if isinstance(owner, int):
            self.others[owner] = key
        else:
            bisect.insort(self.spans, (*owner, key))
            self.longest = max(self.longest, owner[1] - owner[0])

    def remove(self, owner: Owner, key: Any) -> None:
        """Know a value no longer."""
        if isinstance(owner, int):
            if self.others.get(owner) == key:
                del self.others[owner]
            return
        place = bisect.bisect_left(self.spans, (*owner, key))
        if self.spans[place : place + 1] == [(*owner, key)]:
            del self.spans[place]

    def of(self, owner: Owner) -> list[Any]:
        """The keys of values in whose memory this lies, the last first."""
        if isinstance(owner, int):
            return [self.others[owner]] if owner in self.others else []
        low, high = owner
        place = bisect.bisect_right(self.spans, (low, math.inf))
        found = []
        while place and self.spans[place - 1][0] >= high - self.longest:
            place -= 1
            if self.spans[place][1] >= high:
                found.append(self.spans[place][2])
        return sorted(found, reverse=True)

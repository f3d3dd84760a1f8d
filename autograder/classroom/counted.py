"""The points that count: what tests and people gave, less what lateness costs.

Everything that shows a grade asks `Points`: terminal, tables, report, students' pages, exports.
They are made of what the gradebook says (`marks`), where grades by hand and extensions are too;
`store` keeps its penalties as the rules of today have them.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

HOUR, DAY = 3600, 86400
NEAR = 1e-6  # sums of the same points, or what is written and read again, may differ by so much


@dataclass(frozen=True)
class Points:
    """What somebody has earned, and what of it does not count."""

    given: float = 0.0  # by tests and by hand, with extra credit
    lost: float = 0.0  # for being late
    seconds: float = 0.0  # so late

    @property
    def counts(self) -> float:
        """The grade."""
        return max(0.0, self.given - self.lost)

    @property
    def late(self) -> str:
        """What was taken off and why, in words; empty if nothing was."""
        if self.lost <= 0:
            return ""
        return f"{number(min(self.lost, self.given))} taken off: {_how_late(self.seconds)}"

    @property
    def reckoned(self) -> str:
        """How it comes to be less than what was given, in words; empty if it is not."""
        return f"{number(self.given)} points, {self.late}" if self.late else ""

    def and_more(self, more: "Points") -> "Points":
        """Those of two notebooks that were handed in together."""
        seconds = max(self.seconds, more.seconds)
        return Points(self.given + more.given, self.lost + more.lost, seconds)


class Given(NamedTuple):
    """What one cell was given; None is nothing yet."""

    auto: float | None = None
    manual: float | None = None  # a person's word, which counts before the test's
    extra: float | None = None  # on top
    stale: bool = False  # a person's word on an answer that has changed since

    @property
    def worth(self) -> float:
        """What it counts, as nbgrader reckons: what is on top counts once there are points."""
        points = self.auto if self.manual is None else self.manual
        return 0.0 if points is None else points + (self.extra or 0.0)

    @property
    def by_hand(self) -> tuple[float | None, float]:
        """What people gave."""
        return self.manual, self.extra or 0.0

    @property
    def is_by_hand(self) -> bool:
        """Whether they gave anything."""
        return self.by_hand != (None, 0.0)


@dataclass(frozen=True)
class Marks:
    """What the gradebook says of one notebook that somebody handed in."""

    points: Points = Points()
    comments: Mapping[str, str] = field(default_factory=dict)  # cell -> what a person wrote
    id: str = ""  # of its row
    extension: float = 0.0  # seconds
    cells: Mapping[str, Given] = field(default_factory=dict)  # all that have points

    @cached_property
    def by_hand(self) -> dict[str, float]:
        """Points of the cells to which people gave some; not of one that waits for its own."""
        return {
            name: given.worth
            for name, given in self.cells.items()
            if given.is_by_hand and (given.auto, given.manual) != (None, None)
        }


def number(value: float) -> str:
    """Points as people write them: 3, 2.5, 0.3333."""
    return f"{value:.4f}".rstrip("0").rstrip(".") if value % 1 else f"{value:.0f}"


def _how_late(seconds: float) -> str:
    """As the rules count it: begun days; of the first, begun hours."""
    if seconds <= 0:
        return "late"
    many, what = math.ceil(seconds / HOUR), "hour"
    if seconds > DAY:
        many, what = math.ceil(seconds / DAY), "day"
    return f"{many} {what}{'' if many == 1 else 's'} late"

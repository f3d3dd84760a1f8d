"""When a student may read what hidden tests found: [feedback] of rules.toml.

A look is a work that was handed in and had not been shown before; who hands the same work in once
more sees the same once more, and it is no second look. What goes beyond a day's looks is graded as
any work is, and the last of it shown when the day is over. Of the others each is a look on the day
on which it is handed in once more: else they could all be prepared the day before.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any

from autograder.common.course import CourseError
from autograder.judge.toml_tables import checked, whole

WHEN = ("always", "after-due")
QUARTER = timedelta(minutes=15)


@dataclass(frozen=True)
class Shown:
    """What one page shows of hidden tests.

    Attributes:
        hidden: whether it shows what they found.
        words: what it says of that; empty if there is nothing to say.
        until: when it will, if it does not.
    """

    hidden: bool = True
    words: str = ""
    until: datetime | None = None


ALL = Shown()


@dataclass(frozen=True)
class Showing:
    """The settings of an assignment.

    Attributes:
        hidden: "always", or "after-due".
        looks_a_day: how many works a day show it, of one student; None is no limit.
        due: when the assignment is due; its zone is the one in which days begin.
    """

    hidden: str = "always"
    looks_a_day: int | None = None
    due: datetime | None = None

    @property
    def is_limited(self) -> bool:
        """Whether there is anything that somebody may not read at once."""
        return self.hidden != "always" or self.looks_a_day is not None

    def shown(
        self,
        work: str,
        history: Sequence[tuple[datetime, str]],
        now: datetime,
        extension: float = 0.0,
    ) -> Shown:
        """What a student is shown of a work.

        Args:
            work: by which it is known from another.
            history: when each of the student's works was graded, oldest first; perhaps this one.
            now: the time, with its zone.
            extension: seconds that the student has longer.
        """
        if self.hidden == "after-due" and self.due is not None:
            due = self.due + timedelta(seconds=extension)
            if now < due:
                return Shown(False, f"What hidden tests found is shown after {_said(due)}.", due)
        if self.looks_a_day is None:
            return ALL
        day, over = self._day(now), self._end_of(self._day(now))
        seen = self._seen([*history, (now, work)], self.looks_a_day)
        if work not in seen:
            words = (
                f"You have had {self._looks} at hidden tests on {day}; what they found in this "
                f"work is shown after {_said(over)}."
            )
            return Shown(False, words, over)
        day, look = seen[work]
        if not look:
            return ALL
        return Shown(words=f"Look {look} of {self.looks_a_day} at hidden tests on {day}.")

    def _seen(
        self, handed_in: Iterable[tuple[datetime, str]], most: int
    ) -> dict[str, tuple[date, int]]:
        """The works that were shown: on which day, and as which look; 0 once the day was over."""
        seen: dict[str, tuple[date, int]] = {}
        looks: Counter[date] = Counter()
        last: tuple[date, str] | None = None
        for when, work in handed_in:
            day = self._day(when)
            if last is not None and last[0] < day:  # what was there at the end of that day
                seen.setdefault(last[1], (last[0], 0))
            if work not in seen and looks[day] < most:
                looks[day] += 1
                seen[work] = day, looks[day]
            last = day, work
        return seen

    def next_change(self, now: datetime) -> datetime | None:
        """When somebody may read more than now, though nobody has handed anything in."""
        ends = [self._end_of(self._day(now))] if self.is_limited else []
        if self.hidden == "after-due" and self.due is not None and now < self.due:
            ends.append(self.due)
        elif self.hidden == "after-due":  # whose extension ends when is not known here
            ends.append(now + QUARTER)
        return min(ends, default=None)

    @property
    def _looks(self) -> str:
        return "your look" if self.looks_a_day == 1 else f"your {self.looks_a_day} looks"

    def _day(self, when: datetime) -> date:
        return self._here(when).date()

    def _end_of(self, day: date) -> datetime:
        zone = None if self.due is None else self.due.tzinfo
        return self._here(datetime.combine(day + timedelta(days=1), time(), zone))

    def _here(self, when: datetime) -> datetime:
        """The same moment in the zone in which days begin: the due time's, else the machine's."""
        return when.astimezone(self.due.tzinfo if self.due is not None else None)


def read_showing(path: Path, table: dict, due: datetime | None) -> Showing:
    """What stands under [feedback].

    Args:
        path: of the rules.
        table: the table's content.
        due: what [late] says.
    """
    found = checked(path, "feedback", table, {"hidden": _when, "looks_a_day": whole})
    if found.get("hidden") == "after-due" and due is None:
        raise CourseError(
            f"{path}: [feedback] has hidden after-due, and nothing says when that is; add due = "
            "... under [late]."
        )
    return Showing(**found, due=due)


def _when(value: Any) -> tuple[str | None, str]:
    return value if value in WHEN else None, f"one of {', '.join(WHEN)}"


def _said(when: datetime) -> str:
    return when.strftime("%Y-%m-%d %H:%M %z").strip()

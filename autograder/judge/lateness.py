"""What a late submission loses, and when each was handed in: [late] of rules.toml, the LMS's list.

By which time somebody is late, and why not by another, is told in `rules`.
"""

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from autograder.common.course import CourseError
from autograder.common.names import alike, composed, plain, readable, shown
from autograder.common.spreadsheet import meant, safe
from autograder.common.times import moment
from autograder.judge.toml_tables import DAY, checked, file_name, flag, hours, share, time_with_zone

NAMED = 5  # students in one sentence
WORK = "work"  # a column that the watcher's own list of arrivals has
POLICIES = ("none", "zero", "per-day")
NO_TIME = "timestamp.txt is missing or says no time that can be read"


@dataclass(frozen=True)
class Late:
    """What a late submission loses."""

    policy: str = "none"
    due: datetime | None = None
    rate: float = 0.0
    grace_hours: float = 0.0
    trust_timestamp: bool = False
    times: Mapping[str, float] = field(default_factory=dict)  # student -> when, by the LMS
    listed: Path | None = None  # in which those stand: nothing for students to read
    shared: frozenset[str] = frozenset()  # names, composed, that several folders have

    def handed_in(self, student: str, collected: float | None) -> float | None:
        """When a student handed in, if something says so that is trusted.

        Args:
            student: the name of the folder.
            collected: what the submission says, or the disk on which it lies.
        """
        said = readable(plain(student))
        names = (student, said, safe(said))  # the last as tables of ours have it
        for name in names:
            if name in self.times:
                return self.times[name]
        for name in map(composed, names):  # if it may be no other's
            if name in self._alike and name not in self.shared:
                return self.times[self._alike[name]]
        return collected if self.trust_timestamp else None

    @cached_property
    def _alike(self) -> dict[str, str]:
        return alike(self.times)

    def seconds_late(
        self,
        student: str,
        collected: float | None,
        extension: float = 0.0,
        earlier: float | None = None,
    ) -> float:
        """How long after the due time; 0 within the grace, or if no time is known.

        What counts may have been handed in `earlier` than what was handed in last.
        """
        when = self.handed_in(student, collected)
        if self.due is None or when is None:
            return 0.0
        when = when if earlier is None else min(when, earlier)
        late = when - extension - self.due.timestamp()
        return late if late > self.grace_hours * 3600 else 0.0

    def penalty(self, score: float, seconds_late: float) -> float:
        """Points that a submission with this score loses."""
        if self.policy == "none" or seconds_late <= 0:
            return 0.0
        if self.policy == "zero":
            return score
        return score * min(1.0, self.rate * math.ceil(seconds_late / DAY))

    def unknown(self, students: Iterable[str]) -> str:
        """What to do if lateness costs points and of some students it cannot be known; or empty."""
        if self.trust_timestamp:
            return ""
        return self.untimed([one for one in students if self.handed_in(one, None) is None])

    def untimed(self, students: Sequence[str]) -> str:
        """The same of these students, of whom it is not known."""
        if self.policy == "none" or not students:
            return ""
        named = ", ".join(map(shown, students[:NAMED])) + (", ..." if len(students) > NAMED else "")
        if self.trust_timestamp:
            return f"{NO_TIME} in {len(students)} submissions ({named}); they count as in time."
        return (
            f"no time that its student cannot set is known of {len(students)} submissions ({named})"
            "; they count as in time. Name the LMS's list in rules.toml, as times under [late]."
        )


def read_late(path: Path, assignment: str, table: dict) -> Late:
    """What stands under [late], with the times of the LMS's list if it names one."""
    kinds = {
        "policy": _policy,
        "due": time_with_zone,
        "rate": share,
        "grace_hours": hours,
        "trust_timestamp": flag,
        "times": file_name,
    }
    found = checked(path, "late", table, kinds)
    policy = found.get("policy", "none")
    for key, needed in (("due", policy != "none"), ("rate", policy == "per-day")):
        if needed and key not in found:
            raise CourseError(f"{path}: [late] has policy {policy} but no {key}; add {key} = ....")
    if "times" in found:
        found["listed"] = path.parent / found["times"]
        found["times"] = _times(found["listed"], assignment)
    return Late(**found)


def _times(path: Path, assignment: str) -> dict[str, float]:
    """When each student handed in, as the LMS has it; the last time counts."""
    if not path.is_file():
        raise CourseError(f"{path} is missing; [late] in rules.toml names it under times.")
    times: dict[str, float] = {}
    for number, row in enumerate(_rows(path), 2):
        if not _is_of(row, assignment):
            continue
        try:
            if not (row["submitted"] or "").strip():
                continue  # who handed nothing in: nothing is known of when
            student, when = row["student"], moment(row["submitted"])
            if student is None:
                raise ValueError("a line that is too short")
            student = meant(student.strip()) if WORK in row else student.strip()
            times[student] = max(when, times.get(student, when))
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise CourseError(
                f"{path}, line {number}: expected the columns student and submitted, with "
                "times such as 2026-03-01T23:59:00+01:00."
            ) from error
    return times


def _is_of(row: Mapping[str, str | None], assignment: str) -> bool:
    """Whether a line is of this assignment, as one may write it, and as tables of ours have it."""
    said = row.get("assignment", assignment)
    if said is None:
        return False
    said = said.strip()
    return composed(assignment) in (composed(said), composed(meant(said) if WORK in row else said))


def _rows(path: Path) -> list[dict[str, str | None]]:
    """The lines of a table by its first one; None for what a short line has not."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            # strict: a quote that nobody has closed would take in all who stand below it
            return list(csv.DictReader(file, strict=True))
    except (UnicodeDecodeError, csv.Error) as error:
        raise CourseError(
            f"{path} cannot be read ({error}); save it as CSV in UTF-8, as spreadsheets offer it, "
            "with every quote closed."
        ) from error


def _policy(value: Any) -> tuple[str | None, str]:
    return value if value in POLICIES else None, f"one of {', '.join(POLICIES)}"

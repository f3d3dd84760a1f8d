"""The tables of a rules.toml: each setting of the kind that it asks for, or a word on what to mend.

A kind gives the value that a setting has, or None, and what should be written instead.
"""

import difflib
import re
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

from autograder.common.course import CourseError

DAY = 86400
DOTTED = re.compile(r"any [a-z ]+|\.?[^\W\d]\w*(\.[^\W\d]\w*)*")


def nearest(name: str, known: Iterable[str]) -> str:
    """The end of a sentence on a name that is not known: which one was meant, if one is near."""
    close = difflib.get_close_matches(name, list(known), 1, 0.5)
    return f"; perhaps {close[0]} was meant" if close else ""


def checked(path: Path, table: str, content: dict, kinds: dict) -> dict[str, Any]:
    """The values of a table, each of the kind that its key asks for."""
    for key in content:
        if key not in kinds:
            raise CourseError(
                f"{path}: [{table}] has no setting {key}; it may hold "
                f"{', '.join(kinds)}{nearest(key, kinds)}."
            )
    values = {}
    for key, value in content.items():
        values[key], wanted = kinds[key](value)
        if values[key] is None:
            raise CourseError(f"{path}: {key} of [{table}] is {value!r}; write {wanted}.")
    return values


def names(value: Any) -> tuple[tuple[str, ...] | None, str]:
    """A list of names, none of them empty."""
    good = isinstance(value, list) and all(isinstance(name, str) and name for name in value)
    return tuple(value) if good else None, 'a list of names, such as ["sorted"]'


def dotted(value: Any) -> tuple[tuple[str, ...] | None, str]:
    """A list of names as Python has them, with a dot before a method's."""
    found, _ = names(value)
    good = found is not None and all(map(DOTTED.fullmatch, found))
    return found if good else None, 'a list of names, such as ["sorted", "numpy.sort", ".sort"]'


def positive(value: Any) -> tuple[float | None, str]:
    """A number above 0, of a day's seconds at most."""
    good = isinstance(value, int | float) and not isinstance(value, bool)
    good = good and 0 < value <= DAY
    return value if good else None, "a number above 0, of a day at most"


def whole(value: Any) -> tuple[int | None, str]:
    """A whole number above 0."""
    good = type(value) is int and 0 < value <= 10**9
    return value if good else None, "a whole number above 0"


def hours(value: Any) -> tuple[float | None, str]:
    """A number of hours."""
    good = type(value) in (int, float) and 0 <= value < 1e9
    return value if good else None, "a number of hours, 0 or more"


def share(value: Any) -> tuple[float | None, str]:
    """A share of a score."""
    good = type(value) in (int, float) and 0 <= value <= 1
    return value if good else None, "a share of the score, from 0 to 1"


def time_with_zone(value: Any) -> tuple[datetime | None, str]:
    """A moment: a time with its offset."""
    wanted = "a date, a time and an offset, such as 2026-03-01T23:59:00+01:00"
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return None, wanted
    good = isinstance(value, datetime) and value.tzinfo is not None
    return value if good else None, wanted


def flag(value: Any) -> tuple[bool | None, str]:
    """Yes or no."""
    return value if isinstance(value, bool) else None, "true or false"


def file_name(value: Any) -> tuple[str | None, str]:
    """A file's name."""
    return value if isinstance(value, str) and value else None, "a file's name, such as times.csv"

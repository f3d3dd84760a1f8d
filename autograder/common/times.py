"""Times as the LMS, nbgrader and names of files have them, and what their zones mean.

A zone may be a number (`+01:00`, `UTC+1`), a place (`Europe/Berlin`), or a short name. CEST is the
same everywhere; IST is India's, Israel's or Ireland's, and only a system's own zone says which.
What this machine's zone is plays no part.
"""

import re
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

WRITTEN = re.compile(r"\d{4}-\d\d?-\d\d?(?:[ T]\d\d?:[\d:.]{2,13})?", re.ASCII)
OFFSET = r"([+-])(\d{})(?::?([0-5]\d))?"
ZONED = re.compile(  # up to a time of day, and what stands right behind it
    r"(.*\d:[\d:.]+(?: ?[AaPp][Mm])?)"
    rf"(?: ?(Z|{OFFSET.format('{2}')})| (?:UTC|GMT){OFFSET.format('{1,2}')}"
    r"| (?![AaPp][Mm]\b)([A-Z][\w/+-]*))",
    re.ASCII,
)


def moment(text: str | None) -> float:
    """Seconds since 1970 of a time written as ISO or as nbgrader's timestamp.txt has it.

    ValueError if it is none, or if its time zone is a name that nobody can tell; without one it is
    in UTC.
    """
    return read_time((text or "").strip(), UTC, _written).timestamp()


def read_time(text: str, there: tzinfo, written: Callable[[str], datetime]) -> datetime:
    """A time with its zone; ValueError as above.

    Args:
        text: says it.
        there: the zone of the system that says it, for a time that names none.
        written: reads a time without a zone, if it is not in ISO.
    """
    with suppress(ValueError):
        when = datetime.fromisoformat(text)
        return when if when.tzinfo else when.replace(tzinfo=there)
    found = ZONED.fullmatch(text)
    if not found:
        return written(text).replace(tzinfo=there)
    when = written(found[1])
    return when.replace(tzinfo=_zone(found, when, there))


def _written(text: str) -> datetime:
    """A time as `nbgrader submit` writes it."""
    from dateutil import parser  # nbgrader reads its own with it

    if not WRITTEN.fullmatch(text):
        raise ValueError(f"{text} is no time")
    return parser.parse(text)


def _zone(found: re.Match[str], when: datetime, there: tzinfo) -> tzinfo:
    """What stands behind a time, as a zone."""
    _, number, *parts, name = found.groups()
    if name:
        return _named(name, when, there)
    if number == "Z":
        return UTC
    sign, hours, minutes = parts[:3] if number else parts[3:]
    ahead = timedelta(hours=int(hours), minutes=int(minutes or 0))
    return timezone(-ahead if sign == "-" else ahead)


def _named(name: str, when: datetime, there: tzinfo) -> tzinfo:
    if when.replace(tzinfo=there).tzname() == name:
        return there
    zones = _zones()
    times = [when.replace(tzinfo=zone) for zone in zones.values()]
    offsets = {one.utcoffset() for one in times if one.tzname() == name}
    if not offsets and name in zones:
        return zones[name]
    if len(offsets) != 1 or (offset := offsets.pop()) is None:
        raise ValueError(f"{name} is no time zone, or more than one")
    return timezone(offset)


@lru_cache(maxsize=1)
def _zones() -> dict[str, ZoneInfo]:
    """All that are known, by name; to look for them takes longer than to ask each."""
    return {name: ZoneInfo(name) for name in available_timezones()}

"""Times as the LMS and nbgrader write them, in any zone that can be told."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from autograder.common.times import moment
from autograder.judge.lateness import Late


def test_times_are_read_as_nbgrader_writes_them():
    assert moment("2015-02-02 15:58:23.948203 UTC\n") == moment("2015-02-02T15:58:23.948203+00:00")
    assert Late().penalty(5, 100) == 0


@pytest.mark.parametrize(
    ("told", "hour"),
    [
        *(("2026-03-05 10:00:00.000000 UTC", 10), ("2026-03-05 10:00:00 GMT", 10)),
        *(("2026-03-05 10:00:00.000000 CET", 9), ("2026-03-05 10:00:00 EST", 15)),
        *(("2026-03-05 10:00:00.000000 +0100", 9), ("2026-03-05 10:00:00 +01", 9)),
        *(("2026-03-05 10:00:00 Europe/Berlin", 9), ("2026-03-05 10:00:00 Z", 10)),
        *(("2026-3-5 9:00", 9), ("2026-03-05T10:00:00+01:00", 9)),
        *(("2026-03-05 10:00 UTC+3", 7), ("2026-03-05 10:00:00 GMT-5", 15)),
        *(("2026-03-05 10:00 Etc/GMT-3", 7), ("2026-03-05 10:00 Singapore", 2)),
    ],
)
def test_a_time_is_read_with_any_zone_that_can_be_told(told: str, hour: int):
    assert moment(told) == datetime(2026, 3, 5, hour, tzinfo=UTC).timestamp()


def test_a_short_name_of_a_zone_is_read_where_it_is_one_zones_at_that_time():
    noon = datetime(2026, 7, 5, 12, tzinfo=UTC).timestamp()
    for told in ("2026-07-05 14:00 CEST", "2026-07-05 08:00 EDT", "2026-07-05 05:00 PDT"):
        assert moment(told) == noon
    assert moment("2026-07-05 13:00 CET") == noon  # it says winter's time, as Algiers has it


@pytest.fixture
def in_india(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine whose own zone is called IST."""
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="this system sets no zone for a process")
def test_the_zone_of_the_machine_plays_no_part(in_india: None):
    assert time.localtime().tm_zone == "IST"
    with pytest.raises(ValueError, match="more than one"):
        moment("2026-07-05 12:00 IST")
    assert moment("2026-07-05 12:00") == datetime(2026, 7, 5, 12, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    "told", ["", "yesterday", "10:00", "2026-03-05 10:00:00 CEST", "2026-03-05 10:00:00 ../UTC"]
)
def test_a_time_that_cannot_be_told_is_none(told: str):
    with pytest.raises(ValueError):
        moment(told)

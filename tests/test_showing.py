"""When a student may read what hidden tests found: the settings, and the days."""

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from autograder.common.course import CourseError
from autograder.judge.rules import read_rules
from autograder.judge.showing import ALL, Showing

DUE = datetime.fromisoformat("2026-03-01T23:59:00+01:00")
NOON = datetime.fromisoformat("2026-02-27T12:00:00+01:00")
HOUR = timedelta(hours=1)
DAY = 24 * HOUR


def rules(folder: Path, text: str) -> Showing:
    """What a rules.toml with this text says of feedback."""
    path = folder / "rules.toml"
    path.write_text(text, encoding="utf-8")
    return read_rules(path, "ps1", ["square"]).feedback


def test_without_a_word_everything_is_shown(tmp_path: Path):
    assert rules(tmp_path, "") == Showing()
    assert not Showing().is_limited
    assert Showing().shown("a", [], NOON) == ALL
    assert Showing().next_change(NOON) is None


def test_the_settings_are_read(tmp_path: Path):
    text = f'[late]\ndue = {DUE.isoformat()}\n[feedback]\nhidden = "after-due"\nlooks_a_day = 3\n'
    assert rules(tmp_path, text) == Showing("after-due", 3, DUE)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[feedback]\nlooks = 3", "perhaps looks_a_day was meant"),
        ("[feedback]\nlooks_a_day = 0", "a whole number above 0"),
        ('[feedback]\nhidden = "later"', "one of always, after-due"),
        ('[feedback]\nhidden = "after-due"', "add due = ... under"),
        ("[feedbak]\nlooks_a_day = 3", "perhaps feedback was meant"),
    ],
)
def test_a_setting_that_cannot_be_meant_is_refused(tmp_path: Path, text: str, words: str):
    with pytest.raises(CourseError, match=words):
        rules(tmp_path, text)


def test_after_due_means_after_the_students_own_extension():
    showing = Showing("after-due", None, DUE)
    assert not showing.shown("a", [], DUE - HOUR).hidden
    assert "2026-03-01 23:59 +0100" in showing.shown("a", [], DUE - HOUR).words
    assert showing.shown("a", [], DUE) == ALL
    assert not showing.shown("a", [], DUE + HOUR, extension=2 * 3600).hidden
    assert showing.shown("a", [], DUE + 2 * HOUR, extension=2 * 3600) == ALL
    assert showing.next_change(DUE - HOUR) == DUE
    assert showing.next_change(DUE) == DUE + HOUR / 60  # midnight comes first here
    assert showing.next_change(DUE + HOUR) == DUE + HOUR + HOUR / 4  # for those with an extension


def test_so_many_works_a_day_and_the_last_one_when_the_day_is_over():
    showing = Showing("always", 2, DUE)
    before = [(NOON, "a"), (NOON + HOUR, "b")]
    third = showing.shown("c", before, NOON + 2 * HOUR)
    assert not third.hidden and "2026-02-28 00:00 +0100" in third.words
    assert showing.shown("b", before, NOON + 2 * HOUR).words.startswith("Look 2 of 2")
    after = [*before, (NOON + 2 * HOUR, "c")]
    assert not showing.shown("c", after, NOON + 3 * HOUR).hidden
    assert showing.shown("c", after, NOON + DAY) == ALL
    # what was shown once costs no second look, and a day begins anew
    assert showing.shown("a", after, NOON + DAY).words.startswith("Look 1 of 2")
    assert showing.shown("d", after, NOON + DAY).words.startswith("Look 1 of 2")


def test_works_that_were_prepared_the_day_before_are_looks_of_the_day_that_shows_them():
    showing = Showing("always", 2, DUE)
    history = [(NOON + i * HOUR / 4, work) for i, work in enumerate("abcdefgh")]
    for day in (1, 2):
        for i, work in enumerate("cdefg"):
            history.append((NOON + day * DAY + i * HOUR, work))
        shown = [
            work
            for i, work in enumerate("cdefg", start=len(history) - 5)
            if showing.shown(work, history[: i + 1], history[i][0]).hidden
        ]
        assert shown == (["c", "d"] if day == 1 else ["c", "d", "e", "f", "g"])
        # e and f are looks of the second day; g was there when the first day was over
    assert showing.shown("f", history, NOON + 2 * DAY + HOUR).words.startswith("Look 2 of 2")
    assert showing.shown("h", history[:8], NOON + DAY) == ALL  # the day's last work
    assert showing.shown("h", history, NOON + 3 * DAY) == ALL


def test_a_work_that_is_graded_again_is_the_same_look():
    """Whether the journal holds it already or the grader was killed before it was written."""
    showing = Showing("always", 1, DUE)
    assert showing.shown("a", [], NOON).hidden
    assert showing.shown("a", [(NOON, "a")], NOON + HOUR).hidden
    assert not showing.shown("b", [(NOON, "a")], NOON + HOUR).hidden
    assert not showing.shown("b", [(NOON, "a"), (NOON, "b")], NOON + HOUR).hidden


def test_days_begin_where_the_assignment_is_due():
    showing = Showing("always", 1, DUE)
    late = datetime.fromisoformat("2026-02-27T23:30:00+00:00")  # the 28th there
    shown = showing.shown("b", [(late - HOUR, "a")], late)
    assert shown.hidden and "2026-02-28" in shown.words
    assert showing.next_change(late) == datetime.fromisoformat("2026-03-01T00:00:00+01:00")

"""The rules an instructor sets: read with a clear word; what being late costs."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from autograder.common.course import CourseError
from autograder.common.times import moment
from autograder.judge.broken_rules import broken_rules
from autograder.judge.lateness import Late
from autograder.judge.rules import QuestionRules, read_rules


def write(folder: Path, text: str) -> Path:
    """A rules.toml with this text."""
    path = folder / "rules.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_without_a_file_everything_is_allowed(tmp_path: Path):
    rules = read_rules(tmp_path / "rules.toml", "week", ["squares"])
    assert rules.for_question("squares") == QuestionRules()
    assert rules.late.policy == "none"
    assert not rules.allows_file("data.csv")


def test_a_question_adds_to_the_defaults(tmp_path: Path):
    path = write(
        tmp_path,
        '[defaults]\nforbid = ["eval"]\nseconds = 5\n'
        '["squares"]\nforbid = ["sorted"]\nmemory_mb = 100\n'
        '[files]\nallow = ["*.csv", "data/*"]\n',
    )
    rules = read_rules(path, "week", ["squares", "cubes"])
    assert rules.for_question("squares") == QuestionRules(("eval", "sorted"), (), 5, 100)
    assert rules.for_question("cubes") == QuestionRules(("eval",), (), 5, 4096)
    assert rules.allows_file("a.csv") and rules.allows_file("data/a.txt")
    assert not rules.allows_file("csv.py")


def test_a_files_name_is_compared_as_it_is_composed(tmp_path: Path):
    one, two = "gr\u00f6\u00dfe", "gro\u0308\u00dfe"
    path = write(tmp_path, f'[files]\nallow = ["{one}.csv", "{two}.py", "*.[t\u00f6]xt"]\n')
    rules = read_rules(path, "week", [])
    for name in (one, two):
        assert all(
            rules.allows_file(f"{name}.{kind}") for kind in ("csv", "py", "txt", "o\u0308xt")
        )
        assert rules.file_as(f"{name}.csv") == f"{one}.csv"
        assert rules.file_as(f"{name}.py") == f"{two}.py"
        assert rules.file_as(f"{name}.txt") == f"{one}.txt"
    assert not rules.allows_file("gr\u00f6se.csv")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[", "is no TOML"),
        ("[squars]", "perhaps squares was meant"),
        ("seconds = 3", "should be a table|neither a solution cell"),
        ("[defaults]\nsecond = 3", "no setting second.*perhaps seconds was meant"),
        ("[defaults]\nseconds = '3'", "seconds of .defaults. is '3'; write a number above 0"),
        ("[defaults]\nseconds = true", "write a number above 0"),
        ("[defaults]\nseconds = nan", "write a number above 0"),
        ("[defaults]\nseconds = -1", "write a number above 0"),
        ('[defaults]\nforbid = ["*"]', "write a list of names, such as"),
        ('[defaults]\nforbid = ["."]', "write a list of names, such as"),
        ('[defaults]\nforbid = ["numpy."]', "write a list of names, such as"),
        ('[defaults]\nallow = ["a b"]', "write a list of names, such as"),
        ("[defaults]\nseconds = 1e308", "of a day at most"),
        ("[defaults]\nmemory_mb = 1.5", "whole number"),
        ("a = " + "[" * 3000 + "]" * 3000, "is no TOML"),
        ("a = " + "9" * 5000, "is no TOML"),
        ("[squares]\nforbid = 'sorted'", "a list of names"),
        ("[squares]\nforbid = [1]", "a list of names"),
        ("[late]\npolicy = 'never'", "one of none, zero, per-day"),
        ("[late]\npolicy = 'zero'", "no due"),
        ("[late]\npolicy = 'per-day'\ndue = 2026-03-01T00:00:00Z", "no rate"),
        ("[late]\ndue = 2026-03-01T00:00:00", "an offset"),
        ("[late]\ndue = 'soon'", "an offset"),
        ("[late]\nrate = 2", "from 0 to 1"),
        (f"[late]\ngrace_hours = 1{'0' * 400}", "a number of hours"),
        ("[late]\ntrust_timestamp = 1", "true or false"),
        ("[late]\ntimes = 'nowhere.csv'", "nowhere.csv is missing"),
        ("[files]\nallow = 3", "a list of names"),
    ],
)
def test_a_bad_file_is_refused_in_one_sentence(tmp_path: Path, text: str, words: str):
    with pytest.raises(CourseError, match=words) as caught:
        read_rules(write(tmp_path, text), "week", ["squares"])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", ["link", "folder"])
def test_rules_that_cannot_be_read_are_not_taken_for_none(tmp_path: Path, kind: str):
    path = tmp_path / "rules.toml"
    path.symlink_to(tmp_path / "not-mounted") if kind == "link" else path.mkdir()
    with pytest.raises(CourseError, match="is no file that can be read"):
        read_rules(path, "week", [])


def test_rules_may_begin_with_the_mark_that_some_editors_write(tmp_path: Path):
    write(tmp_path, "").write_bytes(b"\xef\xbb\xbf[defaults]\nseconds = 7\n")
    assert read_rules(tmp_path / "rules.toml", "week", []).defaults.seconds == 7


def test_names_for_the_watcher_of_operations():
    names = ("torch.softmax", "sorted", ".sort", "softmax", "torch.linalg", "torch.softmax")
    rules = QuestionRules(names, ("torch.linalg.norm",))
    called = "collections.Counter.most_common"  # which a counter's text is in order by
    assert rules.operations_forbidden == ("torch.softmax", ".sort", "softmax", called)


def test_pythons_own_classes_in_terms_of_a_forbidden_module_are_forbidden_with_it():
    rules = QuestionRules(forbid=("heapq.heappush",))
    answer = "from queue import PriorityQueue\ndef f(xs):\n    q = PriorityQueue()\n    return q"
    assert broken_rules(answer, rules, (), (), ["f"])
    assert broken_rules(answer.replace("Priority", "Lifo"), rules, (), (), ["f"]) == ()
    allowed = QuestionRules(forbid=("heapq.heappush",), allow=("queue.PriorityQueue",))
    assert broken_rules(answer, allowed, (), (), ["f"]) == ()


def test_lateness_costs_by_the_day_begun(tmp_path: Path):
    text = '[late]\npolicy = "per-day"\nrate = 0.25\ngrace_hours = 2\ndue = 2026-03-01T12:00:00Z\n'
    text += "trust_timestamp = true\n"
    late = read_rules(write(tmp_path, text), "week", []).late
    due = moment("2026-03-01T12:00:00+00:00")
    assert late.seconds_late("a", due + 7200) == 0
    assert late.penalty(8, late.seconds_late("a", due + 7201)) == 2
    assert late.penalty(8, late.seconds_late("a", due + 86401)) == 4
    assert late.penalty(8, late.seconds_late("a", due + 10 * 86400)) == 8
    assert late.penalty(8, late.seconds_late("a", None)) == 0


def test_the_lms_knows_better_than_the_folder(tmp_path: Path):
    rows = "student,assignment,submitted\na,week,2026-03-02T12:00:00+00:00\na,other,2026-04-01\n"
    (tmp_path / "times.csv").write_text(rows, encoding="utf-8")
    text = '[late]\npolicy = "zero"\ndue = 2026-03-01T12:00:00Z\ntimes = "times.csv"\n'
    late = read_rules(write(tmp_path, text), "week", []).late
    assert late.penalty(3, late.seconds_late("a", 0)) == 3
    assert late.penalty(3, late.seconds_late("b", 0)) == 0
    assert late.penalty(3, late.seconds_late("c", 1e12)) == 0  # a disk's clock is no witness
    assert "of 2 submissions (b, c); they count as in time" in late.unknown(["a", "b", "c"])
    assert late.unknown(["a"]) == replace(late, policy="none").unknown(["c"]) == ""
    assert replace(late, trust_timestamp=True).unknown(["c"]) == ""
    (tmp_path / "times.csv").write_text("who,when\na,b\n", encoding="utf-8")
    with pytest.raises(CourseError, match="line 2: expected the columns"):
        read_rules(tmp_path / "rules.toml", "week", [])
    (tmp_path / "times.csv").write_text("submitted,student\n2026-03-02\n", encoding="utf-8")
    with pytest.raises(CourseError, match="line 2: expected the columns"):
        read_rules(tmp_path / "rules.toml", "week", [])
    for content in (rows.replace("a,", "Müller,").encode("latin-1"), b"a," + b"x" * 200_000):
        (tmp_path / "times.csv").write_bytes(content)
        with pytest.raises(CourseError, match="save it as CSV in UTF-8"):
            read_rules(tmp_path / "rules.toml", "week", [])


@pytest.mark.parametrize("line", ["zoe", "zoe,week", "zoe,week, "])
def test_who_has_no_time_in_the_list_is_named_and_the_others_are_graded(tmp_path: Path, line: str):
    rows = f"student,assignment,submitted\n{line}\nada,week,2026-03-02T12:00:00+00:00\n"
    (tmp_path / "times.csv").write_text(rows, encoding="utf-8")
    text = '[late]\npolicy = "zero"\ndue = 2026-03-01T12:00:00Z\ntimes = "times.csv"\n'
    late = read_rules(write(tmp_path, text), "week", []).late
    assert set(late.times) == {"ada"} and "(zoe)" in late.unknown(["ada", "zoe"])


def test_blanks_around_a_name_in_a_list_of_times_are_none_of_it(tmp_path: Path):
    (tmp_path / "times.csv").write_text("student,submitted\n ada ,2026-03-02T12:00:00Z\n")
    text = '[late]\npolicy = "zero"\ndue = 2026-03-01T12:00:00Z\ntimes = "times.csv"\n'
    late = read_rules(write(tmp_path, text), "week", []).late
    assert late.seconds_late("ada", None) == 86400


def test_a_list_of_times_has_names_as_they_are_or_as_people_read_them():
    times = {"DOM\\user": 1.0, "M\\xfcller": 2.0}
    late = Late("zero", datetime(2026, 3, 1, tzinfo=UTC), times=times)
    assert late.handed_in("DOM\\user", None) == 1.0
    assert late.handed_in("M\udcfcller", None) == 2.0
    assert late.handed_in("ada", 3.0) is None


def test_a_list_of_times_may_write_a_name_in_another_way_than_its_folder():
    late = Late("zero", datetime(2026, 3, 1, tzinfo=UTC), times={"j\u00f3zef": 5.0})
    assert late.handed_in("jo\u0301zef", None) == 5.0
    assert late.unknown(["jo\u0301zef"]) == ""
    shared = replace(late, shared=frozenset(["j\u00f3zef"]))  # another folder has it as it is
    assert (shared.handed_in("j\u00f3zef", None), shared.handed_in("jo\u0301zef", None)) == (
        5,
        None,
    )
    both = Late("zero", late.due, times={"j\u00f3zef": 5.0, "jo\u0301zef": 6.0})
    assert (both.handed_in("j\u00f3zef", None), both.handed_in("jo\u0301zef", None)) == (5, 6)

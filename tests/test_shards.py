"""A class graded in parts on several machines is the class graded on one."""

import csv
import json
import shutil
import sys
from pathlib import Path

import pytest

from autograder.classroom.classes import Class
from autograder.classroom.journal import read_journal
from autograder.classroom.shards import Shard
from autograder.common.course import Course, CourseError
from tests.small_course import ANSWERS, NAME, RIGHT, hand_in, make_class, run, scores

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="grading needs Linux")


def test_each_student_belongs_to_one_part():
    names = [*map(str, range(1000)), "a\udcff", "é", "e\u0301", "../x"]
    for many in (1, 2, 7):
        parts = [Shard(number, many) for number in range(many)]
        assert all(sum(part.holds(name) for part in parts) == 1 for name in names)
        sizes = [sum(part.holds(name) for name in names) for part in parts]
        assert min(sizes) > 0.7 * len(names) / many
        # a name that a disk writes in two ways is one
        assert [part.holds("é") for part in parts] == [part.holds("e\u0301") for part in parts]


@pytest.mark.parametrize("text", ["", "1", "2/2", "-1/2", "0/0", "1/2/3", "a/b", "٠/2"])
def test_what_names_no_part_is_refused(text: str):
    with pytest.raises(CourseError, match="0/4, 1/4"):
        Shard.read(text)


@pytest.fixture
def machines(tmp_path: Path) -> list[Path]:
    """The small class on three machines, the first of which is home."""
    home = tmp_path / "home"
    make_class(home)
    others = [tmp_path / "one", tmp_path / "two"]
    for other in others:
        shutil.copytree(home, other)
        config = other / "nbgrader_config.py"
        config.write_text(config.read_text().replace(str(home), str(other)))
    return [home, *others]


def points(root: Path) -> dict[str, float]:
    """Everybody's points."""
    return scores(Class(Course(root), root))


def test_parts_come_together_as_if_one_machine_had_graded_all(machines: list[Path]):
    home, *others = machines
    for number, other in enumerate(others):
        assert run(other, "grade", "--no-report", "--shard", f"{number}/2") == 0
    graded = [read_journal(Class(Course(other), other)).keys() for other in others]
    assert not graded[0] & graded[1]
    assert {student for student, _ in graded[0] | graded[1]} == set(ANSWERS)
    assert run(home, "merge", *map(str, others)) == 0
    alone = home.with_name("alone")
    make_class(alone)
    assert run(alone, "grade", "--no-report") == 0
    assert points(home) == points(alone)
    for student in ANSWERS:
        pages = [root / "feedback" / student / NAME / "numbers.html" for root in (home, alone)]
        assert pages[0].read_text() == pages[1].read_text()
    # once more changes nothing, and nothing is left to grade
    before = (home / "gradebook.journal.jsonl").read_bytes()
    assert run(home, "merge", *map(str, others)) == 0
    assert (home / "gradebook.journal.jsonl").read_bytes() == before


def test_only_what_would_be_graded_so_here_is_taken(
    machines: list[Path], capsys: pytest.CaptureFixture[str]
):
    home, other, _ = machines
    assert run(other, "grade", "--no-report") == 0
    hand_in(home, "ada", RIGHT | {"square": "def square(x):\n    return x"})
    shutil.rmtree(home / "submitted" / "bela")
    journal = other / "gradebook.journal.jsonl"
    lines = journal.read_text().splitlines()
    for place, line in enumerate(lines):
        content = json.loads(line)
        if content.get("graded", {}).get("result", {}).get("student") == "chidi":
            content["graded"]["result"]["key"] = "0" * 64
            lines[place] = json.dumps(content)
        if content.get("graded", {}).get("result", {}).get("student") == "dana":
            lines[place] = line[:-20]
    journal.write_text("\n".join(lines) + "\n")
    capsys.readouterr()
    assert run(home, "merge", str(journal)) == 1
    said = capsys.readouterr().out
    assert "1 result is here" in said
    assert "ada, ps1: another work was graded there" in said
    assert "bela, ps1: nothing like it was handed in here" in said
    assert "chidi, ps1: another grader, Python or library graded it there" in said
    assert set(points(home)) == {"noor"}
    assert run(home, "grade", "--no-report") == 0  # what is missing
    assert set(points(home)) == set(ANSWERS) - {"bela"}


def test_what_is_damaged_of_a_journal_is_said_and_the_rest_is_taken(
    machines: list[Path], capsys: pytest.CaptureFixture[str]
):
    home, other, _ = machines
    for student in ("bela", "noor"):
        assert run(other, "grade", "--no-report", "--student", student) == 0
    journal = other / "gradebook.journal.jsonl"
    text = journal.read_bytes()
    first = text.index(b'{"graded"')
    journal.write_bytes(text[:first] + b"X" + text[first + 1 :])
    capsys.readouterr()
    assert run(home, "merge", str(other)) == 1
    said = capsys.readouterr().out
    assert "1 result is here" in said and "1 line of it cannot be read" in said
    assert set(points(home)) == {"noor"}


def test_what_is_no_journal_is_one_sentence(
    machines: list[Path], capsys: pytest.CaptureFixture[str]
):
    home, other, _ = machines
    for place, words in (
        (other, "There is no journal"),
        (home / "nowhere", "There is no journal"),
    ):
        assert run(home, "merge", str(place)) == 2
        assert words in capsys.readouterr().err
    assert run(home, "grade", "--no-report", "--student", "noor") == 0
    assert run(home, "merge", str(home)) == 2
    assert "the class's own journal" in capsys.readouterr().err
    for other in (home / "nbgrader_config.py", home / "gradebook.db"):
        assert run(home, "merge", str(other)) == 1
        assert "it holds no result; is it a journal?" in capsys.readouterr().out


def test_a_part_or_a_cluster_that_a_variable_left_empty_is_not_the_whole_class(
    machines: list[Path], capsys: pytest.CaptureFixture[str]
):
    for option, words in (("--shard", "is no part of a class"), ("--on", "names no cluster")):
        assert run(machines[0], "grade", "--no-report", option, "") == 2
        assert words in capsys.readouterr().err
    assert not (machines[0] / "autograded").exists()


def _tests(result: dict) -> list[dict]:
    return result["notebooks"][0]["verdicts"]


def _more(result: dict) -> None:
    for one in _tests(result):
        one |= {"score": 100.0, "points": 100.0}


FORGED = {
    "more points": _more,
    "no tests": lambda result: _tests(result).clear(),
    "each test twice": lambda result: _tests(result).extend(_tests(result)[:]),
    "another cell": lambda result: _tests(result)[0].update(test="why"),
    "another status": lambda result: _tests(result)[0].update(status="splendid"),
    "no notebook": lambda result: result.update(notebooks=[], reason="nothing was there"),
}


def test_a_journal_of_elsewhere_has_the_tests_and_points_of_here(
    machines: list[Path], capsys: pytest.CaptureFixture[str]
):
    home, other, _ = machines
    assert run(other, "grade", "--no-report", "--student", "ada") == 0
    (other / "gradebook.journal.jsonl").rename(kept := other / "kept")
    for what, forge in FORGED.items():
        lines = [json.loads(line) for line in kept.read_text().splitlines()]
        for line in lines:
            if "graded" in line:
                forge(line["graded"]["result"])
        (forged := other / "forged").write_text("".join(json.dumps(line) + "\n" for line in lines))
        capsys.readouterr()
        assert run(home, "merge", str(forged)) == 1, what
        assert "0 results are here" in capsys.readouterr().out, what
    assert run(home, "merge", str(kept)) == 0
    assert points(home) == {"ada": 6.0}


def test_no_journal_of_elsewhere_says_that_somebody_was_in_time(machines: list[Path]):
    home, other, _ = machines
    for root in (home, other):
        (root / "source" / NAME / "rules.toml").write_text(
            '[late]\npolicy = "zero"\ndue = 2026-03-01T12:00:00+00:00\ntimes = "../times.csv"\n'
        )
        times = root / "source" / "times.csv"
        times.write_text("student,submitted\nada,2026-03-02T12:00:00+00:00\n")
    assert run(other, "grade", "--no-report", "--student", "ada") == 0
    journal = other / "gradebook.journal.jsonl"
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    for line in lines:
        if "graded" in line:
            line["graded"] |= {"handed_in": 0.0, "only_asked": True, "collected": 0.0}
    journal.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert run(home, "merge", str(journal)) == 0
    assert run(home, "report") == 0
    with (home / "grades.csv").open(encoding="utf-8-sig", newline="") as file:
        counts = {row["student"]: row[NAME] for row in csv.DictReader(file)}
    assert float(counts["ada"]) == 0

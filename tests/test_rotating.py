"""Hidden tests get the numbers of a course's seed, and still tell right from wrong."""

import itertools
import shutil
from pathlib import Path
from typing import Any

import pytest

from autograder import __main__ as command_line
from autograder.authoring import rotating
from autograder.authoring.mutants import Outcome, try_answers
from autograder.authoring.rotating import rotate, with_numbers_of
from autograder.authoring.source import read_source
from autograder.common.course import Course, CourseError
from tests.conftest import ROOT

SOURCE = """\
# %% setup
from lab.check import draw

start = draw((2,), seed=7)

# %% test="sum-values" points=2
x = draw((2, 3), seed=7)
visible_passed()
### BEGIN HIDDEN TESTS
x, y = draw((2, 3), seed=7), draw((2, 3), seed=8)  # „seed=7“ is no number here
g = torch.Generator().manual_seed(7)
for seed in (7, 8):
    z = draw((4,), seed=seed)
### END HIDDEN TESTS

# %% test="sum-name" points=1
visible_passed()
### BEGIN HIDDEN TESTS
assert "seed=7"
### END HIDDEN TESTS

# %%
draw((2,), seed=7)
"""
CHAPTER = "02_positional_encoding"


def changed(before: str, after: str) -> list[tuple[str, str]]:
    """The lines that differ."""
    pairs = zip(before.split("\n"), after.split("\n"), strict=True)
    return [(old, new) for old, new in pairs if old != new]


def test_only_numbers_that_hidden_tests_draw_from_change():
    new, found = with_numbers_of(SOURCE, 2027)
    lines = changed(SOURCE, new)
    assert [old for old, _ in lines] == [
        "x, y = draw((2, 3), seed=7), draw((2, 3), seed=8)  # „seed=7“ is no number here",
        "g = torch.Generator().manual_seed(7)",
    ]
    assert "„seed=7“ is no number here" in lines[0][1]
    assert found.numbers == {"sum-values": 3}
    assert found.without == ["sum-name"]


def test_equal_numbers_stay_equal_and_others_stay_others():
    (_, first), (_, second) = changed(SOURCE, with_numbers_of(SOURCE, 2027)[0])
    seven = second.split("(")[-1].rstrip(")")
    assert first.count(f"seed={seven})") == 1
    assert f"seed={seven}), draw((2, 3), seed=" in first


def test_a_seed_gives_its_numbers_whatever_stood_there_before():
    of = {seed: with_numbers_of(SOURCE, seed)[0] for seed in (2027, 2028)}
    assert of[2027] != of[2028]
    assert with_numbers_of(of[2028], 2027)[0] == of[2027]
    assert with_numbers_of(SOURCE, 2027, {"sum-values": 1})[0] != of[2027]
    assert with_numbers_of(SOURCE, 2027, {"sum-values": rotating.KEPT})[0] == SOURCE


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A course of one of the book's chapters."""
    shutil.copy(ROOT / "nbgrader_config.py", tmp_path)
    shutil.copytree(ROOT / "solutions" / CHAPTER, tmp_path / "solutions" / CHAPTER)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_all_known_answers_come_out_as_before(root: Path, capsys: pytest.CaptureFixture[str]):
    course = Course.find()
    before = course.source(CHAPTER).read_text(encoding="utf-8")
    assert command_line.main(["rotate", "--seed", "2027", CHAPTER]) == 0
    assert "numbers of 7 hidden tests are those of seed 2027" in capsys.readouterr().out
    assert course.source(CHAPTER).read_text(encoding="utf-8") != before
    assert not any(outcome.surprising for outcome in try_answers(course, CHAPTER))


def surprising(test: str) -> Outcome:
    """What comes of an answer that this test fails, and should not."""
    return Outcome(CHAPTER, "q", "reference", "reference", {test: "so"}, ())


def test_a_test_that_takes_no_others_keeps_its_numbers(root: Path, monkeypatch: pytest.MonkeyPatch):
    course = Course.find()
    path = course.source(CHAPTER)
    before = path.read_text(encoding="utf-8")
    test = next(iter(with_numbers_of(before, 1)[1].numbers))
    alone = with_numbers_of(before, 1, {test: rotating.KEPT})[0]

    def tried(*given: Any) -> list[Outcome]:
        return [] if given[-1].digest == read_source(path, alone).digest else [surprising(test)]

    monkeypatch.setattr(rotating, "try_answers", tried)
    assert rotate(course, CHAPTER, 1).kept == [test]
    assert course.source(CHAPTER).read_text(encoding="utf-8") == alone


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_the_source_is_written_once_and_keeps_its_ends_of_lines(root: Path, newline: str):
    course = Course.find()
    path = course.source(CHAPTER)
    path.write_text(path.read_text(encoding="utf-8"), encoding="utf-8", newline=newline)
    rotate(course, CHAPTER, 1)
    assert (b"\r\n" in path.read_bytes()) == (newline == "\r\n")
    assert with_numbers_of(path.read_text(encoding="utf-8"), 1)[0] == path.read_text("utf-8")


@pytest.mark.parametrize("kind", ["numbers", "without"])
def test_a_chapter_that_never_comes_out_right_is_refused(
    root: Path, monkeypatch: pytest.MonkeyPatch, kind: str
):
    course = Course.find()
    before = course.source(CHAPTER).read_bytes()
    tests = itertools.cycle(getattr(with_numbers_of(before.decode(), 1)[1], kind))
    monkeypatch.setattr(rotating, "try_answers", lambda *_: [surprising(next(tests))])
    with pytest.raises(CourseError, match="the file is as it was"):
        rotate(course, CHAPTER, 1)
    assert course.source(CHAPTER).read_bytes() == before

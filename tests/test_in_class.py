"""Known mistakes handed in singly: what is handed in, and what counts as a surprise."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from autograder.authoring.answers import read_answers
from autograder.authoring.source import read_source
from autograder.classroom import in_class
from autograder.classroom.classes import Class
from autograder.classroom.in_class import Found
from autograder.common.course import Course
from autograder.common.results import NotebookResult, Result, Verdict
from tests.conftest import CHAPTERS

CHAPTER = CHAPTERS[0]


def test_each_mistake_is_a_submission_of_its_own(course: Course, tmp_path: Path):
    taught = Class(course, tmp_path)
    made = in_class._hand_in(course, CHAPTER, taught)
    assert len(made) == len(
        read_answers(course.misconceptions(CHAPTER), read_source(course.source(CHAPTER)))
    )
    texts = set()
    for student, mistake in made.items():
        path = taught.submitted / student / CHAPTER / f"{CHAPTER}.ipynb"
        cells = {cell["id"]: cell for cell in json.loads(path.read_text())["cells"]}
        assert mistake.question in cells
        texts.add(json.dumps(cells[mistake.question]["source"]))
    assert len(texts) == len(made)


ODD = {
    "lost more": ({"lost": frozenset({"a", "b"})}, "loses a, b, not a"),
    "lost nothing": ({"lost": frozenset()}, "loses nothing, not a"),
    "another's name": ({"named": frozenset({"X2"})}, "is taken for X2"),
    "a second name": ({"named": frozenset({"X1", "X2"})}, "is taken for X1, X2"),
    "no name": ({"named": frozenset()}, "is not named"),
    "as it should be": ({}, ""),
    "not to be told apart": ({"named": frozenset({"X3"})}, ""),
}


@pytest.mark.parametrize("name", ODD)
def test_what_is_not_as_it_should_be_is_said(course: Course, name: str):
    changes, words = ODD[name]
    source = read_source(course.source(CHAPTER))
    mistake = replace(read_answers(course.misconceptions(CHAPTER), source)[0], id="X1")
    mistake = replace(mistake, fails=("a",))
    found = Found(CHAPTER, mistake, frozenset({"a"}), frozenset({"X1"}), frozenset({"X1", "X3"}))
    assert replace(found, **changes).words == words


def test_the_command_counts_what_the_class_was_graded_like(
    course: Course, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
):
    handed_in: dict = {}

    def results(taught: Class) -> dict:
        return {(who, CHAPTER): one(who, mistake) for who, mistake in handed_in.items()}

    def one(who: str, mistake: in_class.Answer) -> Result:
        score = 1.0 if who == next(iter(handed_in)) else 0.0  # the first one passes
        verdicts = tuple(
            Verdict(test, "failed", score, 1.0, misconception=mistake.id * (not score))
            for test in mistake.fails
        )
        return Result(who, CHAPTER, "key", (NotebookResult(CHAPTER, verdicts),))

    real = in_class._hand_in
    monkeypatch.setattr(
        in_class, "_hand_in", lambda *given: handed_in.update(real(*given)) or handed_in
    )
    monkeypatch.setattr(in_class.grade, "grade", lambda *_: None)
    monkeypatch.setattr(in_class, "read_journal", results)
    assert in_class.command(course, [CHAPTER], 1) == 1
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 2 and "loses nothing" in said[0]
    assert f"{len(handed_in)} mistakes handed in singly: {len(handed_in) - 1} caught" in said[1]
    assert said[1].endswith("1 surprises")

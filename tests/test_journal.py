"""The journal: what was written is found again, whatever happened in between."""

import multiprocessing
from dataclasses import replace
from pathlib import Path

import pytest

from autograder.course import Course, CourseError
from autograder.grade import Class
from autograder.journal import Graded, Journal, decode, encode, read_journal, results
from autograder.results import Flag, NotebookResult, Result, Verdict

RESULT = Result(
    "ada",
    "ps1",
    "key 1",
    (
        NotebookResult(
            "numbers",
            (Verdict("t", "failed", 0.5, 2, "told\n", stood_in=("f",), seconds=0.25),),
            {"q": "def f():\n    return 'ä\ud800'"},
            {"q": "1\n"},
            (("q", "code", "f()"),),
            ("a note",),
        ),
    ),
    (Flag("timeout", "numbers/q", "too long"),),
    seconds=1.5,
)


@pytest.fixture
def taught(tmp_path: Path) -> Class:
    """A class without anything."""
    return Class(Course(tmp_path), tmp_path / "class")


def write(taught: Class, *results: Result, stored: bool = True) -> None:
    """Open the journal, write, and close it."""
    with Journal(taught) as journal:
        for result in results:
            journal.graded(Graded(result, 5.0))
            if stored:
                journal.stored(result)


def test_a_result_comes_back_as_it_was():
    graded = Graded(RESULT, 5.5)
    assert decode(encode(graded)) == graded


def test_the_newest_result_of_each_submission_counts(taught: Class):
    other = replace(RESULT, student="bela")
    newer = replace(RESULT, key="key 2", reason="no notebook")
    write(taught, RESULT, other)
    write(taught, newer)
    assert read_journal(taught) == {("ada", "ps1"): newer, ("bela", "ps1"): other}
    assert {graded.collected for graded in results(taught)} == {5.0}


def test_what_was_graded_and_not_stored_is_told(taught: Class):
    write(taught, RESULT)
    write(taught, replace(RESULT, key="key 2"), stored=False)
    with Journal(taught) as journal:
        assert [graded.result.key for graded in journal.unstored()] == ["key 2"]
        journal.stored(replace(RESULT, key="key 2"))
        assert not list(journal.unstored())
    with Journal(taught) as journal:
        assert not list(journal.unstored())


def test_a_journal_cut_off_anywhere_loses_its_last_line_only(taught: Class):
    other = replace(RESULT, student="bela")
    write(taught, RESULT, other)
    whole = taught.journal.read_bytes()
    lines = whole.splitlines(keepends=True)
    places = range(0, len(whole), 37)
    for place in (*places, *(sum(map(len, lines[:n])) for n in range(len(lines)))):
        taught.journal.write_bytes(whole[:place])
        whole_lines = whole[:place].count(b"\n")
        with Journal(taught) as journal:
            found = {who for who in ("ada", "bela") if journal.key(who, "ps1")}
            assert len(found) == (whole_lines + 1) // 2
            assert len(list(journal.unstored())) == whole_lines % 2
            journal.graded(Graded(replace(RESULT, student="chidi")))
        assert ("chidi", "ps1") in read_journal(taught)


def test_opening_it_drops_what_is_outdated(taught: Class):
    write(taught, RESULT)
    once = taught.journal.read_bytes()
    write(taught, *[replace(RESULT, key=f"key {n}") for n in range(20)])
    write(taught, RESULT)
    with Journal(taught):
        pass
    assert taught.journal.read_bytes() == once


def test_a_class_never_graded_has_an_empty_journal(taught: Class):
    assert read_journal(taught) == {}


def test_a_second_grader_is_told_that_there_is_one(taught: Class):
    with Journal(taught), pytest.raises(CourseError, match=r"Another grader .* is at work in"):
        Journal(taught)
    Journal(taught).close()


def take(folder: str, answers) -> None:
    """Open the journal of a class in another process, and say whether it could."""
    try:
        Journal(Class(Course(Path(folder)), Path(folder) / "class"))
        answers.put("opened")
    except CourseError as error:
        answers.put(str(error))


def test_a_grader_in_another_process_is_told_too_and_the_end_of_one_frees_the_journal(
    taught: Class,
):
    spawn = multiprocessing.get_context("spawn")

    def other() -> str:
        answers = spawn.Queue()
        process = spawn.Process(target=take, args=(str(taught.course.root), answers))
        process.start()
        said = answers.get(timeout=60)
        process.join()
        return said

    with Journal(taught):
        assert "Another grader" in other()
    assert other() == "opened"
    Journal(taught).close()

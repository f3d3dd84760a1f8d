"""The journal: what was written is found again, whatever happened in between."""

import errno
import json
import math
import multiprocessing
import os
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from autograder.classroom import journal as journal_module
from autograder.classroom.classes import Class
from autograder.classroom.journal import CHANGED, Journal, read_changes, read_journal, results
from autograder.classroom.journal_lines import Graded
from autograder.common.course import Course, CourseError
from autograder.common.results import Flag, NotebookResult, Result, Verdict

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


@pytest.mark.parametrize("name", ["stamp", "told"])
def test_what_timestamp_txt_says_is_read_by_its_older_name_too(taught: Class, name: str):
    with Journal(taught) as journal:
        journal.graded(Graded(RESULT, stamp="2026-03-05 10:00:00 UTC"))
    text = taught.journal.read_text().replace('"stamp": ', f'"{name}": ')
    assert f'"{name}": "2026-03-05' in text
    taught.journal.write_text(text)
    assert [graded.stamp for graded in results(taught)] == ["2026-03-05 10:00:00 UTC"]


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


@pytest.mark.parametrize("few", [0, journal_module.FEW])
def test_what_the_gradebook_holds_is_known_until_something_newer_is_stored(
    taught: Class, few: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(journal_module, "FEW", few)
    write(taught, *[replace(RESULT, key=f"key {n}") for n in range(9)])
    for key in ("key 9", "key 10"):
        write(taught, replace(RESULT, key=key), stored=False)
    for _ in range(3):  # also when it was written anew
        with Journal(taught) as journal:
            found = journal.stored_before("ada", "ps1")
            assert found is not None and found.result.key == "key 8"
    with Journal(taught) as journal:
        journal.stored(replace(RESULT, key="key 10"))
        assert journal.stored_before("ada", "ps1") is None


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


def test_opening_it_drops_what_is_outdated_when_that_is_most_of_it(
    taught: Class, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(journal_module, "FEW", 0)
    write(taught, RESULT)
    once = taught.journal.read_bytes()
    write(taught, RESULT)
    twice = taught.journal.read_bytes()
    assert len(twice) == 2 * len(once)
    write(taught, *[replace(RESULT, key=f"key {n}") for n in range(20)])
    write(taught, RESULT)
    with Journal(taught):
        pass
    assert taught.journal.read_bytes() == once


def test_what_changed_and_the_gradebooks_signs_outlive_every_compaction(
    taught: Class, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(journal_module, "FEW", 0)
    odd = CHANGED + b'["of another version"]}\n' + CHANGED + b"torn\n"
    for round_ in range(5):
        with Journal(taught) as journal:
            for who in ("ada", "bela"):
                journal.graded(Graded(replace(RESULT, student=who, key=f"key {round_}")))
                journal.changed({"student": who, "assignment": "ps1", "round": round_})
            journal.signed("me", "ps1", f"sign {round_}")
            journal.signed("me", "ps2", "old")
        if round_ == 2:
            with taught.journal.open("ab") as file:
                file.write(odd)
    with Journal(taught) as journal:
        assert journal.last_change("ada", "ps1") == {
            "student": "ada",
            "assignment": "ps1",
            "round": 4,
        }
        assert (journal.name, journal.sign("ps1"), journal.sign("ps2")) == ("me", "sign 4", "old")
        assert len(list(journal.unstored())) == 2
    content = taught.journal.read_bytes()
    assert content.count(b'{"graded"') < 10  # it was written anew
    assert all(line in content for line in odd.splitlines())
    found = read_changes(taught)
    assert found.keys() == {("ada", "ps1"), ("bela", "ps1")}
    for lines in found.values():
        assert [line["round"] for line in lines] == [0, 1, 2, 3, 4]


def bytes_written() -> int:
    """What this process has handed to the system to be written so far, as Linux counts it."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return int(dict(line.split(": ") for line in lines)["wchar"])


@pytest.mark.skipif(not Path("/proc/self/io").is_file(), reason="Linux counts what is written")
def test_a_start_in_a_large_class_writes_little_and_is_made_up_for_seldom(taught: Class):
    (notebook,) = RESULT.notebooks
    long = replace(RESULT, notebooks=(replace(notebook, outputs={"q": "x" * 8000}),))
    write(taught, *[replace(long, student=f"student-{n}") for n in range(1000)])
    size = taught.journal.stat().st_size
    assert size > 8_000_000
    started = []
    for n in range(5):
        before = bytes_written()
        write(taught, replace(long, student=f"student-{n}", key="new"))
        started.append(bytes_written() - before)
    assert max(started) < 20_000
    before = bytes_written()
    for key in ("2", "3", "4"):  # the whole class, three times
        write(taught, *[replace(long, student=f"student-{n}", key=key) for n in range(1000)])
    with Journal(taught):
        pass
    assert bytes_written() - before < 2.2 * 3 * size  # each line anew once, at most
    assert taught.journal.stat().st_size < 2.2 * size
    assert len(read_journal(taught)) == 1000


def test_a_disk_too_full_to_write_it_anew_leaves_it_as_it_is(
    taught: Class, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(journal_module, "FEW", 0)
    write(taught, *[replace(RESULT, key=f"key {n}") for n in range(20)])
    whole = taught.journal.read_bytes()
    monkeypatch.setattr(os, "fsync", lambda _: full())
    with Journal(taught) as journal:
        assert journal.key("ada", "ps1") == "key 19"
    assert taught.journal.read_bytes() == whole
    assert not taught.journal.with_suffix(".part").exists()


def full() -> None:
    """As a disk without room."""
    raise OSError(errno.ENOSPC, "No space left on device")


def of_today() -> dict[str, Any]:
    """A line as it is written today."""
    return {"graded": json.loads(json.dumps(asdict(Graded(RESULT, 5.0))))}


def changed(**fields: object) -> bytes:
    """The same with other fields of the result."""
    line = of_today()
    line["graded"]["result"] |= fields
    return json.dumps(line).encode()


UNREADABLE = {
    "no JSON": b"{",
    "NUL": b"\0" * 5000,
    "no object": b"7",
    "no result": b'{"graded": {}}',
    "nothing": b'{"graded": null}',
    "deep": b"[" * 200_000,
    "no UTF-8": b'{"graded": "\xff"}',
    "huge number": b'{"graded": {"collected": 1' + b"0" * 6000 + b"}}",
    "a field of another version": changed(colour="red"),
    "a list where a text should be": changed(student=["ada"]),
    "a student whose folder leads elsewhere": changed(student="../../ada"),
    "a student that no folder can be called": changed(student="a\0da"),
    "a student with half a sign": changed(student="\ud83d"),
    "a student with too long a name": changed(student="ä" * 128),
    "nobody": changed(student=""),
    "an assignment that is the folder above": changed(assignment=".."),
    "a flag of another version": changed(flags=[{"kind": "odd", "where": "", "words": ""}]),
    "a text where a list should be": changed(notebooks="none"),
    "a number where a text should be": changed(key=3),
    "a status that is none": json.dumps(of_today()).replace("failed", "splendid").encode(),
    "a doubt that is none": json.dumps(of_today())
    .replace('"in_doubt": false', '"in_doubt": "no"')
    .encode(),
    "a score that is none": json.dumps(of_today()).replace("0.5", '"half"').encode(),
    "a score that is less than none": json.dumps(of_today()).replace("0.5", "-0.5").encode(),
    "a score of more than all points": json.dumps(of_today()).replace("0.5", "2.5").encode(),
    "a score that is no number": json.dumps(of_today()).replace("0.5", "NaN").encode(),
    "a score beyond all": json.dumps(of_today()).replace("0.5", "1" + "0" * 400).encode(),
    "points beyond all": json.dumps(of_today())
    .replace('"points": 2', '"points": 1' + "0" * 400)
    .encode(),
    "a field less": json.dumps(of_today()).replace('"told"', '"tell"').encode(),
    "torn stored": b'{"stored": ["ada"]}',
    "odd stored": b'{"stored": [["ada"], {}, null]}',
}


@pytest.mark.parametrize("stored", [True, False])
@pytest.mark.parametrize("line", UNREADABLE.values(), ids=UNREADABLE)
def test_a_line_that_cannot_be_read_counts_as_not_written(taught: Class, line: bytes, stored: bool):
    other = replace(RESULT, student="bela")
    write(taught, other, stored=stored)
    with taught.journal.open("ab") as file:
        file.write(line + b"\n")
    write(taught, replace(RESULT, student="chidi"))
    assert {who for who, _ in read_journal(taught)} == {"bela", "chidi"}
    with Journal(taught) as journal:
        assert journal.key("ada", "ps1") == ""
        assert [graded.result for graded in journal.unstored()] == [] if stored else [other]


def test_a_name_that_is_no_text_comes_back(taught: Class):
    write(taught, replace(RESULT, student="M\udcfcller\n\x1b"), stored=False)
    with Journal(taught) as journal:
        (graded,) = journal.unstored()
    assert graded.result.student == "M\udcfcller\n\x1b"


@pytest.mark.parametrize("collected", [math.nan, math.inf, -math.inf])
def test_a_time_that_is_none_is_left_out(taught: Class, collected: float):
    with Journal(taught) as journal:
        journal.graded(Graded(replace(RESULT, seconds=collected), collected))
    (graded,) = results(taught)
    assert graded.collected is None and graded.result.seconds == 0


def test_a_full_disk_leaves_whole_lines_and_lets_the_next_one_in(
    taught: Class, monkeypatch: pytest.MonkeyPatch
):
    write(taught, RESULT)

    class Full:
        """A file on a disk that takes seven bytes more."""

        def __init__(self, file: Any):
            self.file, self.left = file, 7

        def write(self, content: memoryview) -> int:
            if not self.left:
                raise OSError(errno.ENOSPC, "No space left on device")
            part, self.left = content[: self.left], 0
            return self.file.write(part)

        def __getattr__(self, name: str) -> Any:
            return getattr(self.file, name)

    with Journal(taught) as journal:
        monkeypatch.setattr(journal, "_file", Full(journal._file))
        with pytest.raises(CourseError, match=r"The disk is full: .*jsonl could not be written"):
            journal.graded(Graded(replace(RESULT, student="bela")))
    whole = taught.journal.read_bytes()
    assert whole.endswith(b"\n") and whole.count(b"\n") == 2
    write(taught, replace(RESULT, student="bela"))
    assert len(read_journal(taught)) == 2


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
        assert "Another grader (process" in other()
        os.truncate(taught.journal.with_suffix(".lock"), 0)  # as it is for a moment at first
        assert "Another grader is at work" in other()
    assert other() == "opened"
    Journal(taught).close()

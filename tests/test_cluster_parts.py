"""The parts of grading on a cluster: what travels, who is fit, what is heard, who is asked next."""

import io
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from autograder.classroom.classes import Class
from autograder.classroom.warm import Task
from autograder.cluster import kit, words
from autograder.cluster.crew import AHEAD, MOST_STRIKES, Crew, Entry, Todo
from autograder.cluster.grading import BEGIN, MOST_TRIES, Cluster, Patience
from autograder.cluster.line import Failed, Line, require_address
from autograder.common.course import CourseError
from autograder.isolation.outcomes import Doubtful, Lost
from autograder.judge.parcel import Parcel
from tests.conftest import ROOT
from tests.small_course import NAME, make_course

SECRETS = ("postgres-password", "a-student-of-the-class", "handed-in-by-her")


@pytest.fixture
def taught(tmp_path: Path) -> Class:
    """A small course with all that must not travel."""
    course = make_course(tmp_path / "course")
    with (course.root / "nbgrader_config.py").open("a", encoding="utf-8") as file:
        file.write("# c.CourseDirectory.db_url = 'postgresql://u:postgres-password@h/d'\n")
    (course.root / "source" / NAME / "data.csv").write_text("1,2\n", encoding="utf-8")
    (course.root / "source" / NAME / "times.csv").write_text(
        "student,submitted\na-student-of-the-class,2026-03-01T23:59:00+01:00\n", encoding="utf-8"
    )
    (course.root / "source" / NAME / "rules.toml").write_text(
        '[late]\npolicy = "zero"\ndue = 2026-03-01T12:00:00+01:00\ntimes = "times.csv"\n',
        encoding="utf-8",
    )
    work = course.root / "submitted" / "a-student-of-the-class" / NAME / "numbers.ipynb"
    work.parent.mkdir(parents=True)
    work.write_text("handed-in-by-her", encoding="utf-8")
    (course.root / "gradebook.db").write_text("a-student-of-the-class", encoding="utf-8")
    return Class(course, course.root)


def assignments(taught: Class) -> dict[str, Any]:
    """What is graded."""
    return {NAME: taught.read(NAME)}


def test_nothing_of_the_class_and_no_setting_travels(taught: Class, tmp_path: Path):
    packed = kit.pack(taught.course, assignments(taught), sandboxed=True)
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        archive.extractall(tmp_path / "there")
        names = archive.namelist()
    texts = [(tmp_path / "there" / name).read_bytes() for name in names]
    for secret in SECRETS:
        assert not [name for name in names if secret in name]
        assert not any(secret.encode() in text for text in texts), secret
    assert not [name for name in names if "nbgrader_config" in name or "gradebook.db" in name]


def test_what_has_arrived_is_what_was_sent(taught: Class, tmp_path: Path):
    read = assignments(taught)
    packed = kit.pack(taught.course, read, sandboxed=True)
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        archive.extractall(tmp_path)
    before = list(sys.path)
    try:
        found = kit.unpacked(tmp_path)
    finally:
        sys.path[:] = before
    assert found.assignments[NAME].notebooks == read[NAME].notebooks
    assert [path.read_text("utf-8") for path in found.assignments[NAME].files] == ["1,2\n"]
    mine = kit.account(taught.course, read)
    assert kit.differences(mine, kit.account(found.course, found.assignments)) == []


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"python": "CPython 3.9.1"}, "Python CPython 3.9.1, and here it is CPython"),
        ({"own": {"autograder": "other"}}, "another version of the grader"),
        ({"libraries": {"numpy": "1.0"}}, "numpy 1.0, and here it is "),
        ({"libraries": {"numpy": None}}, "no numpy"),
        ({}, "something else than here"),
    ],
)
def test_a_difference_is_named(change: dict[str, Any], named: str, taught: Class):
    mine = kit.account(taught.course, assignments(taught))
    mine["first"] = ["numpy"]
    theirs = {**mine, "prints": {NAME: "another"}}
    for part, value in change.items():
        theirs[part] = {**mine[part], **value} if isinstance(value, dict) else value
    assert named in kit.differences(mine, theirs)[0]


@pytest.mark.parametrize("outcome", [b"{}", Doubtful(b"{}"), Lost("it fell"), Lost("own", True)])
def test_an_outcome_is_heard_as_it_was_said(outcome: bytes | Lost):
    heard = words.heard(words.said_of(outcome))
    assert heard == outcome
    assert type(heard) is type(outcome)


@pytest.mark.parametrize("said", [b"", b"X", 7, None, "R{}", [b"R"], object()])
def test_nothing_but_an_outcome_is_heard(said: object):
    with pytest.raises(words.Garbled):
        words.heard(said)


@pytest.mark.parametrize(
    "on",
    [
        *(
            "",
            "10.0.0.5:8786",
            "dask://host",
            "ssh://host:1",
            "dask://:1",
            "tls://h:x",
            "dask://h:0",
        ),
        *("dask://h:99999", "dask://h:٨", f"dask://h:{'9' * 5000}", "dask://a b:1", "dask://\n:1"),
    ],
)
def test_an_address_that_is_none_is_refused(on: str):
    with pytest.raises(CourseError, match="write --on dask://HOST:PORT"):
        require_address(on)


def test_encryption_without_certificates_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DASK_CONFIG", "/nowhere")
    with pytest.raises(CourseError, match="needs certificates, and Dask's settings name none"):
        Line("tls://127.0.0.1:1").connect()


def test_who_does_not_grade_on_a_cluster_imports_no_dask():
    code = (
        "import sys; from autograder.__main__ import main\n"
        "try: main(['grade', '--help'])\nexcept SystemExit: pass\n"
        "import autograder.classroom.grade\n"
        "sys.exit('distributed' in sys.modules or 'dask' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def tasks(number: int) -> list[Task]:
    """So many submissions."""
    return [Task(f"student-{n}", NAME, Parcel(), "key") for n in range(number)]


def test_submissions_are_read_as_they_are_needed_and_those_in_doubt_come_last():
    read: list[str] = []
    todo = Todo(task for task in tasks(3) if not read.append(task.student))
    first = todo.take(alone=True)
    assert first is not None
    assert read == ["student-0"]
    todo.later(first)
    second = todo.take(alone=True)
    assert second is not None
    todo.again(second)
    assert todo.take(alone=True) is second
    assert todo.take(alone=False) is not None
    assert todo.take(alone=False) is None
    assert not todo.is_empty
    assert todo.take(alone=True) is first
    assert todo.is_empty


def test_the_worker_with_the_least_to_do_is_asked_and_none_that_has_failed_on_it():
    crew = Crew()
    assert crew.see({"a": 1, "b": 2}) == []
    assert crew.for_entry(None) is None  # nobody is ready
    for worker in crew.workers.values():
        worker.state = "ready"
    crew.workers["a"].load = 1
    entry = Entry(tasks(1)[0], avoid={"b"})
    free = crew.for_entry(None)
    assert free is not None
    assert free.address == "b"
    other = crew.for_entry(entry)
    assert other is not None
    assert other.address == "a"
    crew.workers["a"].load = 1 + AHEAD
    assert crew.for_entry(entry) is None
    gone = crew.see({"b": 2})
    assert [one.address for one in gone] == ["a"]
    assert crew.for_entry(entry) is crew.workers["b"]  # better than nobody
    for _ in range(MOST_STRIKES):
        crew.workers["b"].strike("nonsense")
    assert crew.for_entry(entry) is None


class Script:
    """A cluster of one worker, in place of the line to a real one: what it says to each request."""

    def __init__(self, says: Any) -> None:
        """`says` is given what was asked, and gives what comes back."""
        self.says, self.on, self.asked = says, "dask://made:1", 0

    def connect(self) -> bool:
        """It is always there."""
        return True

    def members(self) -> dict[str, int]:
        """One worker."""
        return {"tcp://made:2": 1}

    def send(self, worker: str, text: str, names: dict[str, Any], done: Any) -> Any:
        """It is done at once."""
        self.asked += text != BEGIN
        done()
        return text, names

    def fetch(self, future: Any, seconds: float) -> object:
        """What it says."""
        return self.says(*future)

    def forget(self, future: Any) -> None:
        """Nothing is kept."""

    def close(self) -> None:
        """Nothing is open."""


def on_script(
    taught: Class, says: Any, number: int = 2, monkeypatch: Any = None
) -> list[tuple[Task, Any]]:
    """What comes of some submissions where a worker says such things."""
    hands = Cluster("dask://made:1", taught.course, assignments(taught), patience=Patience(1, 1))
    account = kit.account(taught.course, assignments(taught))
    line = Script(lambda text, names: kit_said(account) if text == BEGIN else says(names))
    monkeypatch.setattr("autograder.cluster.grading.try_known_mistakes", lambda *_: None)
    monkeypatch.setattr(hands, "_line", line)
    with hands:
        return list(hands.run(iter(tasks(number))))


def kit_said(account: dict[str, Any]) -> bytes:
    """An account as a hand gives it."""
    import json

    return json.dumps(account).encode()


def test_what_is_tried_in_vain_is_given_up_and_in_doubt(
    taught: Class, monkeypatch: pytest.MonkeyPatch
):
    lost = words.said_of(Lost("the warm process ended 4 times"))
    found = on_script(taught, lambda names: lost, 2, monkeypatch)
    assert len(found) == 2
    for _, outcome in found:
        assert isinstance(outcome, Lost)
        assert not outcome.its_own
        assert f"{MOST_TRIES} tries gave nothing" in outcome.reason


def test_a_worker_that_only_fails_ends_the_run_with_a_sentence(
    taught: Class, monkeypatch: pytest.MonkeyPatch
):
    with pytest.raises(CourseError, match="each of its 1 workers was refused"):
        on_script(taught, lambda names: Failed(), 2, monkeypatch)


def test_a_submission_that_is_lost_by_its_own_doing_is_not_tried_again(
    taught: Class, monkeypatch: pytest.MonkeyPatch
):
    asked: list[int] = []

    def says(names: dict[str, Any]) -> bytes:
        asked.append(1)
        return words.said_of(Lost("it worked for ever", its_own=True))

    found = on_script(taught, says, 3, monkeypatch)
    assert len(found) == len(asked) == 3

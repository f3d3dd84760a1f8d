"""Files that a test writes and an answer reads, each on a disk of its own."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from autograder.bridge import lent
from autograder.bridge.lent import Lent
from autograder.bridge.session import Student
from autograder.bridge.wire import Frame
from autograder.isolation.fork_server import ForkServer
from tests.bridge.ends import answering

READS = """
import os
from pathlib import Path
def read(path): return Path(path).read_text()
def first(paths): return read(paths[0]['in'])
def named(*, path): return read(path)
def add(path, text): open(path, 'a').write(text)
def names(folder): return sorted(str(p.relative_to(folder)) for p in Path(folder).rglob('*'))
"""


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The disk of this process, as within its walls; it stands in it."""
    here = tmp_path / "scratch" / "home"
    here.mkdir(parents=True)
    monkeypatch.setattr(lent, "ROOTS", [str(here.parent)])
    monkeypatch.setattr(tempfile, "tempdir", str(here.parent))  # where cells run
    monkeypatch.setattr(lent, "LENT", made := Lent())
    for module in ("bridge.asking", "judge.testing"):
        monkeypatch.setattr(f"autograder.{module}.LENT", made)
    monkeypatch.chdir(here)
    return here


@contextlib.contextmanager
def running(student: Student) -> Iterator[Any]:
    """While a test runs; what gives the names of the answer."""
    with student.peer.recording(runs_test=True), lent.LENT.running():
        yield student.name


def test_what_a_test_has_written_is_there_under_the_name_that_it_hands_over(
    open_fork_server: ForkServer, scratch: Path
) -> None:
    with answering(open_fork_server, READS) as student, running(student) as of:
        Path("deep/er").mkdir(parents=True)
        for name in ("a.txt", "deep/b", "deep/er/c"):
            Path(name).write_text(f"in {name}")
        assert of("read")("a.txt") == "in a.txt"
        assert of("read")(Path("deep/b")) == "in deep/b"
        assert of("names")("deep") == ["b", "er", "er/c"]
        assert of("read")("deep/er/c") == "in deep/er/c"
        Path("more").write_text("more")
        assert of("first")([{"in": "more"}]) == "more"
        Path("last").write_bytes(b"last")
        assert of("named")(path="last") == "last"
        with pytest.raises(FileNotFoundError):
            of("read")("nowhere")


def test_an_answers_own_changes_stay_until_the_test_writes_anew(
    open_fork_server: ForkServer, scratch: Path
) -> None:
    with answering(open_fork_server, READS) as student:
        with running(student) as of:
            Path("a").write_text("1")
            of("add")("a", "2")
            of("add")("a", "3")
            assert of("read")("a") == "123"
            assert Path("a").read_text() == "1"  # nothing comes back
            Path("a").write_text("4")
            assert of("read")("a") == "4"
        with running(student) as of:
            of("add")("a", "5")
            assert of("read")("a") == "45"
    with answering(open_fork_server, READS) as student, running(student) as of:
        assert of("read")("a") == "4"  # an earlier test has made it


def test_a_folder_is_there_for_what_an_answer_is_to_write_into_it(
    open_fork_server: ForkServer, scratch: Path
) -> None:
    with answering(open_fork_server, READS) as student, running(student) as of:
        folder = Path(tempfile.mkdtemp())
        (folder / "other").write_text("x")
        of("add")(str(folder / "log.txt"), "one")
        of("add")(folder / "log.txt", " two")
        assert of("read")(folder / "log.txt") == "one two"
        assert of("names")(str(folder)) == ["log.txt", "other"]
        Path("sub").mkdir()
        of("add")("sub/new", "1")
        assert of("read")("sub/new") == "1"
        with pytest.raises(FileNotFoundError):
            of("add")("sub/deeper/new", "1")


def test_what_was_there_before_the_tests_is_not_lent(
    open_fork_server: ForkServer, scratch: Path
) -> None:
    Path("data").write_text("the instructor's")
    with answering(open_fork_server, READS) as student:
        with running(student) as of, pytest.raises(FileNotFoundError):
            of("read")("data")
        Path("cell").write_text("made by a cell, which runs there too")
        with running(student) as of:
            with pytest.raises(FileNotFoundError):
                of("read")("cell")
            Path("data").write_text("the test's")
            assert of("read")("data") == "the test's"


def test_what_a_test_has_removed_is_removed_for_the_answer(
    open_fork_server: ForkServer, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with answering(open_fork_server, READS) as student, running(student) as of:
        monkeypatch.chdir(elsewhere := scratch.parent)
        folder = Path(tempfile.mkdtemp())
        for name in ("a", "b", "in/c"):
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(name)
        assert of("names")(str(folder)) == ["a", "b", "in", "in/c"]
        (folder / "a").unlink()
        (folder / "b").rename(folder / "d")
        shutil.rmtree(folder / "in")
        assert of("names")(str(folder)) == ["d"]
        of("add")(str(folder / "a"), "the answer's")  # that it was removed is told once
        assert of("names")(str(folder)) == ["a", "d"]
        Path("here").write_text("1")
        assert of("read")("here") == "1"
        monkeypatch.chdir(folder)  # from where that name leads nowhere
        assert of("read")(str(folder / "d")) == "b"
        monkeypatch.chdir(elsewhere)
        of("add")("here", "2")
        assert of("read")("here") == "12"


def test_a_name_may_be_another_files_or_a_folders_when_it_is_handed_over_again(
    open_fork_server: ForkServer, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = READS + "def kind(path): return 'folder' if os.path.isdir(path) else 'file'\n"
    with answering(open_fork_server, kind) as student, running(student) as of:
        for text in ("one", "two"):
            with tempfile.TemporaryDirectory() as folder:
                monkeypatch.chdir(folder)
                Path("data.txt").write_text(text)
                assert of("read")("data.txt") == text
                monkeypatch.chdir(scratch)
        Path("x").write_text("1")
        assert of("kind")("x") == "file"
        Path("x").unlink()
        Path("x").mkdir()
        Path("x/in").write_text("2")
        assert of("kind")("x") == "folder"
        assert of("read")("x/in") == "2"
        shutil.rmtree("x")
        Path("x").write_text("3")
        assert of("read")("x") == "3"


def test_a_file_is_as_old_as_the_test_says(open_fork_server: ForkServer, scratch: Path) -> None:
    aged = READS + "def age(path): return os.stat(path).st_mtime_ns\n"
    with answering(open_fork_server, aged) as student, running(student) as of:
        Path("a").write_text("1")
        assert of("age")("a") == Path("a").stat().st_mtime_ns
        os.utime("a", (5, 5))
        assert of("age")("a") == 5 * 10**9


def test_nothing_else_is_lent(tmp_path: Path, scratch: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    made = Lent()

    def told(*values: Any) -> list[str]:
        return [name for name, *_ in made.leave(Frame(), (values, {}))]

    with made.running():
        (outside / "key").write_text("x")
        Path("own").write_text("x")
        Path("link").symlink_to("own")
        Path("out").symlink_to(outside)
        Path("in").mkdir()
        Path("in/link").symlink_to(outside / "key")
        os.mkfifo("in/pipe")
        assert told("own", ["own"], {"b": Path("own")}) == ["own"]
        assert told(str(outside), str(outside / "key"), "out", "out/key", "link", "in/pipe") == []
        assert told("in", "in/link") == ["in"]
        assert (
            told("../../outside/key", "in/../own", "..", "/", "", "\0", "\ud800", "x" * 5000) == []
        )
        assert told("in/new", "in/new/er", "own/new", "out/new", "/tmp/new", "../new") == ["in"]
        assert (
            told(str(outside / "new"), "in/../new", "in\0/new", "x/\ud800", "y" * 500 + "/z") == []
        )
        assert told("own\n", b"own", 5, None, "/etc/passwd", str(scratch.parent)) == []
        assert told(*["x"] * 1000, "own") == []
    assert told("own") == []


def test_what_is_lent_is_bounded(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Lent()
    with made.running():
        for n in range(200):
            Path(f"f{n}").write_bytes(bytes(1000))
        assert len(made.leave(Frame(), ".")) == lent.MAX_FILES
        monkeypatch.setattr(lent, "MAX_BYTES", 2500)
        assert len(made.leave(Frame(), ".")) == 3  # the folder, too
    monkeypatch.setattr(lent, "MAX_KNOWN", 100)
    with made.running():
        Path("new").write_text("x")
        assert made.leave(Frame(), "new") == []


FILES = [
    ("longest", "def longest(path):\n    return max(open(path).read().split(), key=len)"),
    (
        "t_longest",
        "with open('words', 'w') as f:\n    f.write('a abc ab')\nassert longest('words') == 'abc'\n"
        "with open('words', 'w') as f:\n    f.write('b')\nassert longest('words') == 'b'\n"
        "### BEGIN HIDDEN TESTS\nopen('more', 'w').write('x xyz')\n"
        "assert longest('more') == 'xyz'\n### END HIDDEN TESTS",
        1,
    ),
]


def test_a_question_about_files(task: Any, scratch: Path) -> None:
    made = task(FILES)
    assert made.scores() == {"t_longest": 1}
    right = "from pathlib import Path\ndef longest(p):\n    with Path(p).open() as f:\n"
    right += "        return sorted(f.read().split(), key=len)[-1]"
    assert made.scores(longest=right) == {"t_longest": 1}
    wrong = "def longest(path):\n    return open(path).read().split()[-1]"
    assert made.scores(longest=wrong) == {"t_longest": 0}

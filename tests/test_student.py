"""The student's end: one process answers, and what is left out is told in the grader's words."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from autograder.bridge import STUDENT
from autograder.bridge.policy import Policy
from autograder.bridge.said import MOST, WORDS, sentences, words_of
from autograder.bridge.session import Student, Unclocked
from autograder.checking import runner
from autograder.isolation.fork_server import ForkServer


@pytest.fixture
def student(open_fork_server: ForkServer) -> Iterator[Student]:
    """A student's process, and the trusted side's handle on it."""
    with open_fork_server.spawn() as spawned:
        yield Student(spawned, Policy())


def _run(student: Student, source: str) -> dict[str, Any]:
    with student.clock(60):
        return student.peer.ask("run", "cell", source)


def _said(student: Student, source: str) -> list[str]:
    outcome = _run(student, source)
    assert outcome["error"] is None, outcome
    return sentences(outcome["notes"])


@pytest.mark.parametrize(
    ("source", "begins"),
    [
        ("%pip install x", "%pip is left out"),
        ("%%bash\nexit 1", "%%bash is left out"),
        ("!ls\n!ls", "Shell commands are left out"),
        ("files = !ls\nassert files == []", "Shell commands are left out"),
        ("import torch\ntorch.set_default_dtype(torch.float64)", "torch.set_default_dtype is set"),
        ("import torch\ntorch.set_default_device('meta')", "torch.set_default_device is set"),
    ],
)
def test_what_is_left_out_of_a_cell_is_told_and_not_printed(
    student: Student, source: str, begins: str
):
    (words,) = _said(student, source)
    assert words.startswith(begins)
    assert _run(student, source)["printed"] == ""
    assert _said(student, "x = 1") == []


def test_what_no_result_needs_is_left_out_in_silence(student: Student):
    assert _said(student, "%matplotlib inline\n%load_ext autoreload\n%time x = 1\nx") == []


def test_a_gpu_that_is_asked_for_is_told_of_in_a_cell_and_in_a_call(student: Student):
    outcome = _run(student, "import torch\ndef f():\n    return torch.ones(1).cuda()\nf()")
    assert outcome["error"] is not None
    assert sentences(outcome["notes"]) == [WORDS["cuda"]]
    with student.clock(60):
        assert student.peer.ask("notes") == []
        with pytest.raises(Exception, match=r"CUDA|NVIDIA|GPU"):
            student.name("f")()
        assert sentences(student.peer.ask("notes")) == [WORDS["cuda"]]
        assert student.peer.ask("notes") == []


def test_torch_knows_the_processor_although_nobody_sees_it():
    """It asks /proc, which is hidden, when an operation wants to know; so some stopped in there."""
    code = "import torch\nprint(dict(torch.cpu.get_capabilities.__wrapped__()))"
    with ForkServer(["torch"], student=STUDENT) as made, made.spawn() as spawned:
        outcome = _run(Student(spawned, Policy()), code)
    assert outcome["printed"].strip() == str(dict(torch.cpu.get_capabilities()))


def test_no_more_is_noted_than_is_read(student: Student):
    outcome = _run(student, "\n".join(f"%magic{n}" for n in range(100)))
    assert len(outcome["notes"]) == MOST


def test_a_file_that_a_cell_writes_can_be_imported(student: Student):
    assert _said(student, "%%writefile mine_a.py\nx = 1\nif x:\n    y = '%s'\n") == []
    assert _said(student, "%%writefile -a mine_a.py\nz = 3\n") == []
    assert _said(student, "import mine_a\nassert (mine_a.y, mine_a.z) == ('%s', 3)") == []
    for n in range(20):  # files so new that the folder's time tells nothing
        _said(student, f"%%writefile mine_{n}.py\nx = {n}")
        assert _said(student, f"import mine_{n}\nassert mine_{n}.x == {n}") == []


FORKS = {
    "fork": "import os\npid = os.fork()",
    "fork and wait": "import os\npid = os.fork()\nif pid:\n    os.waitpid(pid, 0)",
    "a terminal's": "import os\npid, _ = os.forkpty()",
    "the library's": "import ctypes\npid = ctypes.CDLL(None).fork()",
    "one that fails": "import os\npid = os.fork()\nassert pid",
    "one that writes": "import os\npid = os.fork()\nprint(pid)",
    "multiprocessing's": (
        "import multiprocessing\nmade = multiprocessing.get_context('fork').Process(target=print)\n"
        "made.start()\nmade.join()\npid = made.pid"
    ),
}


@pytest.mark.parametrize("way", FORKS)
def test_only_the_process_that_was_made_for_it_answers(student: Student, way: str):
    _said(student, "import os\nhere = os.getpid()")
    assert _said(student, FORKS[way]) == []
    for n in range(5):
        assert _said(student, f"assert os.getpid() == here and pid\nx = {n}") == []
        with student.clock(60):
            assert student.name("x") == n


def test_a_fork_in_a_call_gives_one_answer(student: Student):
    _said(student, "import os\ndef f(x):\n    os.fork()\n    return x")
    with student.clock(60):
        called = student.name("f")
        assert [called(n) for n in range(4)] == [0, 1, 2, 3]


def test_a_fork_does_not_live_on(student: Student):
    _said(student, FORKS["fork"])
    with student.clock(60):
        _said(student, "import os\nassert os.waitpid(pid, 0) == (pid, 0)")


STARTS = {
    "fork": "os.fork()",
    "program": "subprocess.run(['true'])",
    "program by its path": "os.posix_spawn('/bin/true', ['true'], {})",
    "command": "os.system('true')",
    "another program in its place": "os.execv('/bin/true', ['true'])",
    "terminal": "pty.fork()",
    "pool": "multiprocessing.Pool(1)",
    "a library that has a Popen of its own": "_osx_support._read_output('true')",
}


@pytest.fixture(scope="module")
def ruled() -> Iterator[ForkServer]:
    """Where students' processes come from in a course with a rule."""
    with ForkServer([], student=STUDENT, sandboxed=False, watched=["sorted"]) as made:
        yield made


@pytest.mark.parametrize("way", STARTS)
def test_where_an_answer_is_to_be_alone_no_process_is_started(ruled: ForkServer, way: str):
    with ruled.spawn() as spawned:
        _starts_none(Student(spawned, Policy()), way)


def _starts_none(student: Student, way: str) -> None:
    modules = "import _osx_support, multiprocessing, os, pty, subprocess"
    _said(student, f"{modules}\ndef start():\n    {STARTS[way]}")
    with student.clock(60):
        student.peer.ask("watch", [], True)
        with pytest.raises(RuntimeError, match="does not allow to start a program or process"):
            student.name("start")()
        student.peer.ask("seen")
    assert _said(student, "assert subprocess.run(['true']).returncode == 0") == []


def test_a_library_that_asks_a_program_in_passing_does_without(ruled: ForkServer):
    with ruled.spawn() as spawned:
        student = Student(spawned, Policy())
        _said(student, "import platform\ndef named(): return platform.processor()")
        with student.clock(60):
            student.peer.ask("watch", [], True)
            assert student.name("named")() == ""
            assert student.peer.ask("seen") == []


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ([["shell", ""]], [WORDS["shell"]]),
        ([["shell", "anything of his own"]], [WORDS["shell"]]),
        ([["line-magic", "pip"], ("line-magic", "pip")], [words_of("line-magic", "pip")]),
        ([["line-magic", "<b>"], ["line-magic", "a" * 41], ["line-magic", ""]], []),
        ([["line-magic", "a\n"], ["free words", "x"], ["shell"], ["shell", 3], 5, None], []),
        ([[["shell"], "x"], [{}, "x"], "ab"], []),
        ({"shell": ""}, []),
        ("shell", []),
        (None, []),
        ([["shell", ""]] * 10**6, [WORDS["shell"]]),
    ],
)
def test_nothing_but_the_graders_words_is_read(told: object, words: list[str]):
    assert sentences(told) == words


def test_all_words_are_short():
    assert all(len(words_of(code, "a" * 40)) <= 200 for code in WORDS)


def test_the_check_reads_magics_as_the_grader_does():
    run = runner._plain()
    assert run("%who\nx = (31\n    % 24)\nx", "<cell a>") == (7, None)
    assert run("if x:\n    %who\nfiles = !ls\nlen('''\n!ls\n''')", "<cell a>") == (5, None)


def test_nothing_is_asked_of_an_answer_without_a_clock(student: Student):
    with pytest.raises(Unclocked):
        student.name("len")
    with student.clock(60):
        assert student.set("x", 1) is None

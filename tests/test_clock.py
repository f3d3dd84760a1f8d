"""What work takes is counted without waiting for a processor; what hangs ends all the same."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from autograder.bridge import STUDENT
from autograder.bridge.session import Student
from autograder.isolation import clock
from autograder.isolation.clock import HANGS, Clock, Over, Usage, Used
from autograder.isolation.fork_server import ForkServer
from autograder.judge.guard import Guard

HOGS = 7
COUNT = "import time\nstart = time.process_time()\nwhile time.process_time() < start + {}: pass"


class Wall:
    """A clock on the wall that a test moves, and processes that use up what it says."""

    def __init__(self) -> None:
        self.now = 0.0
        self.used = [Used(), Used()]

    def monotonic(self) -> float:
        """The time."""
        return self.now

    def goes(self, seconds: float, *used: Used) -> None:
        """So much time goes by, and then the processes have used this."""
        self.now += seconds
        self.used[: len(used)] = used

    def processes(self) -> list[Any]:
        """The student's and the grader's."""

        class One:
            def __init__(self, read: Any) -> None:
                self.read = read

        return [One(lambda: self.used[0]), One(lambda: self.used[1])]


@pytest.fixture
def wall(monkeypatch: pytest.MonkeyPatch) -> Wall:
    """Time as the test tells it."""
    made = Wall()
    monkeypatch.setattr(clock, "time", made)
    return made


def test_who_works_all_the_time_has_so_much_of_it(wall: Wall):
    one = Clock(10, *wall.processes())
    assert one.left() == 10
    wall.goes(9, Used(9, 0, runs=True))
    assert one.left() == 1
    wall.goes(1.5, Used(10.5, 0, runs=True))
    with pytest.raises(Over):
        one.left()


def test_waiting_for_a_processor_does_not_count(wall: Wall):
    one = Clock(10, *wall.processes())
    wall.goes(10, Used(2, 8, runs=True))
    assert one.left() == 8
    wall.goes(8, Used(3, 15, runs=False))
    assert one.left() == 7
    wall.goes(7, Used(10, 15))
    with pytest.raises(Over):
        one.left()


def test_who_waits_because_his_own_processes_work_has_worked(wall: Wall):
    one = Clock(10, *wall.processes())
    wall.goes(6, Used(0.2, 5.5, runs=True, others=5.4))
    assert 5 < one.used() <= 6
    wall.goes(5, Used(0.4, 10.5, runs=True, others=10.2))
    with pytest.raises(Over):
        one.left()


@pytest.mark.parametrize("runs", [True, False])
def test_who_waits_because_his_own_threads_work_has_worked(wall: Wall, runs: bool):
    one = Clock(10, *wall.processes())
    wall.goes(6, Used(5.6, 5.5, runs))
    assert 5 < one.used() <= 6
    wall.goes(5, Used(10.6, 10.5, runs))
    with pytest.raises(Over):
        one.left()


def test_the_graders_own_waiting_does_not_count_either(wall: Wall):
    one = Clock(10, *wall.processes())
    wall.goes(20, Used(4, 1), Used(2, 12))
    assert one.used() == 7
    assert one.left() == 3


def test_who_sleeps_uses_up_the_time(wall: Wall):
    one = Clock(10, *wall.processes())
    wall.goes(10.5, Used(0.1, 0))
    with pytest.raises(Over):
        one.left()


@pytest.mark.parametrize(("state", "runs"), [("R", True), ("S", False), ("D", False), ("Z", False)])
def test_who_waits_for_a_child_or_a_disk_does_not_run(tmp_path: Path, state: str, runs: bool):
    (tmp_path / "stat").write_text(f"7 (a) R) {state} 1 " + "0 " * 9 + "100 20 3 4 0 0")
    usage = Usage([os.open(tmp_path / "stat", os.O_RDONLY)])
    assert usage.read() == Used(127 / os.sysconf("SC_CLK_TCK"), None, runs)
    usage.close()


def test_time_that_a_machine_took_from_this_one_does_not_count(wall: Wall):
    one = Clock(10, *wall.processes())
    wall.goes(10.5, Used(3, 0, runs=True))  # neither worked nor waited, and not asleep
    assert one.left() == 7


def test_what_hangs_ends_on_the_wall(wall: Wall):
    one = Clock(10, *wall.processes())
    for _ in range(9):
        wall.goes(10, Used(0, wall.now + 10, runs=True))
        assert one.left() > 0
    wall.goes(10 * HANGS - wall.now)
    with pytest.raises(Over):
        one.left()


@pytest.mark.parametrize("used", [None, Used(4, None)])
def test_where_the_kernel_tells_nothing_the_wall_counts(wall: Wall, used: Any):
    wall.used = [used, used]
    one = Clock(10, *wall.processes())
    wall.goes(9)
    assert one.left() == 1
    wall.goes(1)
    with pytest.raises(Over):
        one.left()


def test_a_kernel_that_tells_no_waiting_still_tells_work(wall: Wall):
    wall.used = [Used(0, None), Used(0, None)]
    one = Clock(10, *wall.processes())
    wall.goes(10, Used(2, None, runs=True), Used(1, None, runs=True))
    assert one.left() == 7


def test_this_process_is_read_and_one_that_is_not_there_is_not():
    used = Usage.of("self").read()
    assert used is not None and used.runs
    assert Usage.of(2**30).read() is None
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        usage = Usage.of(child.pid)
        assert usage.read() is not None
    assert usage.read() is None
    usage.close()


@contextmanager
def busy() -> Iterator[None]:
    """This process, and what it starts, on one processor with others that never rest."""
    able = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(able)})
    hogs = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(HOGS)]
    try:
        yield
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()
        os.sched_setaffinity(0, able)


@pytest.mark.parametrize("sandboxed", [True, False])
def test_a_busy_machine_ends_nobody_who_works_and_everybody_who_hangs(sandboxed: bool):
    with busy(), ForkServer([], student=STUDENT, sandboxed=sandboxed) as fork_server:
        student = Student(fork_server.spawn(), Guard())
        assert student.run("a", COUNT.format(0.4), 1.0).ok
        assert student.run("b", COUNT.format(0.4), 1.0).ok  # each has a clock of its own
        assert student.run("c", "while True: pass", 0.5).gone == "timeout"
        student.close()
        student = Student(fork_server.spawn(), Guard())
        assert student.run("d", "import time\ntime.sleep(1000)", 0.5).gone == "timeout"
        student.close()

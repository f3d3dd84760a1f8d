"""How a sandbox and its fork server begin and end, and that nothing of them stays behind."""

import dataclasses
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import pytest

from autograder.common.course import CourseError
from autograder.isolation import fork_server, machine, processes, scratch
from autograder.isolation.fork_server import ForkServer, Spawned
from tests.sandbox.shared import GONE, HERE, ROOT, SMALL, below, run, shut_in, wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is for Linux")


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import os; os._exit(3)", "exited with status 3"),
        ("import os; os.kill(os.getpid(), 9)", "was killed by signal 9 (KILL)"),
        ("import ctypes; ctypes.string_at(0)", "was killed by signal 11 (SEGV)"),
        ("import os; os.abort()", "was killed by signal 6 (ABRT)"),
    ],
)
def test_its_end_is_put_in_words(inside: Spawned, code: str, words: str):
    assert inside.ended() is None
    assert run(inside, code) is None
    assert inside.ended(GONE) == words


DAEMON = """
    import os, time
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            open("ready", "w").close()
            while True:
                time.sleep(0.01)
        os._exit(0)
    os.wait()
    while not os.path.exists("ready"):
        time.sleep(0.01)
    answer = "ready"
"""


def test_a_daemon_dies_with_the_sandbox(box: ForkServer):
    with box.spawn() as spawned:
        assert run(spawned, DAEMON) == "ready"
        assert len(shut_in(box)) == 3  # process 1, the student's, the daemon
    assert shut_in(box) == set()


def test_letting_go_kills(box: ForkServer):
    spawned = box.spawn()
    run(spawned, DAEMON)
    spawned.close()
    wait_until(lambda: not shut_in(box))


def test_kill_is_quick_even_for_a_process_in_c_code(inside: Spawned):
    inside.sock.sendall(json.dumps("sum(range(10**13))").encode() + b"\n")
    started = time.process_time()
    inside.kill()
    assert inside.ended() == "was killed"
    assert time.process_time() - started < 1  # waiting, not spinning
    inside.kill()  # twice is once


def test_all_other_processes_of_a_sandbox_end_when_its_first_is_to_be_alone(inside: Spawned):
    code = """
        import os, subprocess
        from autograder.isolation.processes import end_all_others
        before = end_all_others()
        child = subprocess.Popen(["sleep", "1000"])
        apart = subprocess.Popen(["sleep", "1000"], start_new_session=True)
        after = end_all_others()
        answer = [before, after, child.wait(), apart.wait(), os.getpid()]
    """
    assert run(inside, code) == [False, True, -signal.SIGKILL, -signal.SIGKILL, 2]


def test_outside_of_a_sandbox_nobody_is_ended(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "kill", lambda *_: pytest.fail("these would be a person's"))
    processes.end_all_others()
    monkeypatch.setattr(os, "getppid", lambda: 0)  # as where a container's program runs tests
    processes.end_all_others()


def test_workers_that_were_forked_spawn_at_the_same_time(box: ForkServer):
    code = f"""
        import sys; sys.path.insert(0, {str(ROOT)!r})
        from tests.sandbox import test_life
        test_life.spawn_from_forks()
    """
    program = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(program, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


def spawn_from_forks() -> None:
    """Four forks of a program that holds a fork server, 10 students' processes each."""
    with ForkServer([], [HERE], student="tests.sandbox.shared") as made:
        children = []
        for number in range(4):
            child = os.fork()
            if child == 0:
                for turn in range(10):
                    with made.spawn() as spawned:
                        assert (
                            run(spawned, f"answer = {number * 100 + turn}") == number * 100 + turn
                        )
                os._exit(0)
            children.append(child)
        codes = [os.waitpid(child, 0)[1] for child in children]
        assert codes == [0, 0, 0, 0]


def test_nothing_is_left_when_the_holder_is_killed(who: str):
    code = f"""
        import sys; sys.path.insert(0, {str(ROOT)!r})
        from tests.sandbox import test_life
        test_life.hold()
    """
    program = [sys.executable, "-c", textwrap.dedent(code)]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == "ready\n"
        mine = below(holder.pid)
        assert len(mine) >= 5
        holder.kill()
    wait_until(lambda: not any(Path("/proc", str(pid)).exists() for pid in mine))


def hold() -> None:
    """Be a program with a student's process that has left a daemon, until killed."""
    made = ForkServer([], [HERE], student="tests.sandbox.shared")
    spawned = made.spawn()
    assert run(spawned, DAEMON) == "ready"
    print("ready", flush=True)
    time.sleep(1000)


def test_a_fork_server_made_out_of_a_clean_one(who: str):
    found = json.dumps(dataclasses.asdict(machine.probe()))
    code = f"""
        import sys; sys.path.insert(0, {str(ROOT)!r})
        from tests.sandbox import test_life
        test_life.make_here({found!r})
    """
    program = [sys.executable, "-c", textwrap.dedent(code)]
    with subprocess.Popen(
        program,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        env=processes.clean_environment(),
    ) as maker:
        assert maker.stdout
        told = json.loads(maker.stdout.readline())
        mine = below(maker.pid)
        assert len(mine) >= 6  # around the jail two, supervisor, fork server, monitor, process 1
        maker.kill()
    assert told["before"] is True
    assert told["after"] is False
    assert told["open"] == 5  # its own socket, three times nothing, the folder that is listed
    assert told["rights"] == "0" * 16
    assert told["processes"] == ["1", "2"]
    assert told["course"] == []
    assert told["folder"] == f"{scratch.DISK}/tmp"
    wait_until(lambda: not any(Path("/proc", str(pid)).exists() for pid in mine))


def make_here(found: str) -> None:
    """Be a program that makes a fork server out of itself, then learns more; until killed."""
    machine.remember(machine.Capabilities(**json.loads(found)))
    tempfile.gettempdir()  # where the machine has it
    with Path(__file__).open():  # the fork server must not have it open
        made = ForkServer([], [HERE], student="tests.sandbox.shared", here=True)
        importlib.import_module("fractions")
        made.go_in()
    importlib.import_module("statistics")
    made.wait()
    with made.spawn() as first:
        assert run(first, "answer = 1") == 1
    spawned = made.spawn()
    code = f"""
        import os, sys, tempfile
        status = dict(line.split(":\t") for line in open("/proc/self/status") if ":\t" in line)
        answer = dict(
            before="fractions" in sys.modules,
            after="statistics" in sys.modules,
            open=len(os.listdir("/proc/self/fd")),
            rights=status["CapBnd"].strip(),
            processes=[name for name in os.listdir("/proc") if name.isdigit()],
            course=os.listdir({str(ROOT / "autograder")!r}),
            folder=tempfile.gettempdir(),
        )
    """
    print(json.dumps(run(spawned, code)), flush=True)
    time.sleep(1000)


def test_a_fork_server_made_out_of_a_clean_one_is_closed_with_it():
    if not machine.probe().namespaces:
        pytest.skip("no namespaces")
    with ForkServer([], [HERE], student="tests.sandbox.shared", here=True) as made:
        made.go_in()
        made.wait()
        with made.spawn() as spawned:
            assert run(spawned, "answer = 1") == 1
        started = [process.pid for process in made._processes]
    assert not any(Path("/proc", str(pid)).exists() for pid in started)


def test_a_module_that_cannot_be_imported_is_named(who: str):
    with pytest.raises(CourseError, match="no_such_module"):
        ForkServer(["no_such_module"], [HERE], student="tests.sandbox.shared")


def test_without_a_sandbox_limits_and_words_stay():
    with ForkServer(
        [], [HERE], limits=SMALL, sandboxed=False, student="tests.sandbox.shared"
    ) as made:
        with made.spawn() as spawned:
            assert run(spawned, "import os; answer = os.getcwd() == os.environ['HOME']") is True
            assert "MemoryError" in run(spawned, "x = b'x' * (400 << 20)")
            assert run(spawned, "import os; os._exit(3)") is None
            assert spawned.ended(GONE) == "exited with status 3"
        before = below(made._processes[0].pid)
        with made.spawn() as spawned:
            assert run(spawned, "while True: pass") is None
            assert spawned.ended(GONE) == "used more than 1 second of CPU"
        with made.spawn() as spawned:
            run(spawned, "import os, time; os.fork() or time.sleep(1000); answer = 1")
        wait_until(lambda: below(made._processes[0].pid) <= before)


def test_without_a_sandbox_what_libraries_keep_at_home_is_gone_afterwards():
    with (
        ForkServer(["matplotlib.pyplot"], sandboxed=False, student="tests.sandbox.shared") as made,
        made.spawn() as spawned,
    ):
        home = run(spawned, "import matplotlib; answer = matplotlib.get_configdir()")
        assert Path(home).is_dir()
        assert not home.startswith(scratch.DISK)
    wait_until(lambda: not Path(home).parent.exists())


def test_a_platform_without_fork_is_told(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delattr(os, "fork")
    with pytest.raises(CourseError, match="fork"):
        ForkServer([], student="tests.sandbox.shared")


def test_without_namespaces_the_sandbox_is_refused(monkeypatch: pytest.MonkeyPatch):
    none = machine.Capabilities(False, False, False, missing=("The kernel refuses.",))
    monkeypatch.setattr(fork_server.machine, "probe", lambda: none)
    with pytest.raises(CourseError, match="The kernel refuses"):
        ForkServer([], student="tests.sandbox.shared")

"""What the processes of a sandbox may use, one by one and all together."""

import functools
import json
import os
import resource
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from autograder.isolation import machine, resources, seccomp, supervisor
from autograder.isolation.clock import Clock, Over
from autograder.isolation.fork_server import ForkServer, Spawned
from autograder.isolation.limits import Limits
from tests.sandbox.shared import GONE, HERE, SMALL, become_ordinary, below, level_of, run, ticks_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is for Linux")

TICKS = os.sysconf("SC_CLK_TCK")  # in a second

COUNT = """
    import time
    def used(seconds):
        at, before = time.monotonic(), time.process_time()
        while time.monotonic() < at + seconds:
            pass
        return time.process_time() - before
    used(1)  # until it has been looked at
"""


HOG = """
    import os, time
    for _ in range(30):
        if os.fork() == 0:
            os.setsid()
            while True:
                pass
    answer = 1
"""


CALLED = """
    import ctypes, os, time
    if os.fork() == 0:
        ctypes.CDLL(None).prctl(15, b{name!r}, 0, 0, 0)
        while True:
            pass
    time.sleep(1.5)
    answer = 1
"""


@pytest.mark.parametrize("name", ["NSpid: 1", "NSpid:", "NSpid: 8 9 2", "x\\nNSpid: 1"])
def test_no_process_is_taken_for_another_by_what_it_calls_itself(box: ForkServer, name: str):
    with box.spawn() as spawned:
        assert run(spawned, CALLED.format(name=name)) == 1
        mine = {level_of(pid): pid for pid in below(box._processes[0].pid)}
        (child,) = (pid for level, pid in mine.items() if level not in ("", "1", "2"))
        until = time.monotonic() + 120
        while ticks_of(child) < 0.5 * TICKS or os.getpriority(os.PRIO_PROCESS, child) != 19:
            assert time.monotonic() < until, "it never steps back"
            time.sleep(0.05)
        spawned.kill()
        assert spawned.seconds is not None and spawned.seconds > 0.45  # ticks are coarse


def test_no_process_has_another_sandbox_slowed_by_what_it_calls_itself(box: ForkServer):
    with box.spawn() as other:
        assert run(other, "answer = 1") == 1
        (pid,) = (pid for pid in below(box._processes[0].pid) if level_of(pid) == "2")
        before = os.getpriority(os.PRIO_PROCESS, pid)
        status = Path("/proc", str(pid), "status").read_text()
        number = status.partition("\nNSpid:")[2].split()[1]
        with box.spawn() as spawned:
            assert run(spawned, CALLED.format(name=f"NSpid:{number} 7")) == 1
        assert os.getpriority(os.PRIO_PROCESS, pid) == before


STARVED = """
    import os
    os.sched_setaffinity(0, [max(os.sched_getaffinity(0))])
    for _ in range(4):
        if os.fork() == 0:
            while True:
                pass
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    while True:
        pass
"""


def test_nobody_has_more_time_by_having_others_work_in_its_place(box: ForkServer):
    with box.spawn() as spawned:
        assert run(spawned, "answer = 1") == 1
        clock = Clock(1.0, spawned)
        spawned.sock.sendall(json.dumps(textwrap.dedent(STARVED)).encode() + b"\n")
        with pytest.raises(Over):
            while clock.left():
                time.sleep(0.05)
        assert clock.worked() >= 0.9, "it had not hung for ten times as long"


IN_FLIGHT = """
    import array, os, socket
    held = [socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in range(3)]
    answer = 0
    for ours, _ in held:
        try:
            files = array.array("i", [held[0][0].fileno()] * 253)
            ours.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, files)])
            answer += 253
        except OSError:
            break
"""


def _be_ordinary_with_few_files() -> None:
    become_ordinary()
    resource.setrlimit(resource.RLIMIT_NOFILE, (200, 4096))


def test_files_that_one_sends_and_nobody_takes_keep_no_other_from_its_sandbox(
    monkeypatch: pytest.MonkeyPatch,
):
    """The kernel counts them for each account, and an ordinary user's sandboxes are his."""
    if os.geteuid():
        pytest.skip("needs root")
    few = functools.partial(subprocess.Popen, preexec_fn=_be_ordinary_with_few_files)
    monkeypatch.setattr(subprocess, "Popen", few)
    machine.probe.cache_clear()
    found = machine.probe()
    machine.probe.cache_clear()
    if not found.namespaces:
        pytest.skip(" ".join(found.missing))
    monkeypatch.setattr(machine, "probe", lambda: found)
    with (
        ForkServer([], [HERE], student="tests.sandbox.shared") as made,
        made.spawn() as hostile,
    ):
        assert run(hostile, IN_FLIGHT) == 253
        with made.spawn() as honest:
            assert run(honest, "answer = 'here'") == "here"


def test_who_starts_many_processes_takes_no_more_time_from_others(box: ForkServer):
    pin = f"import os; os.sched_setaffinity(0, [{min(os.sched_getaffinity(0))}]); answer = 1"
    with box.spawn() as hog, box.spawn() as honest:
        assert run(hog, pin) == run(honest, pin) == 1
        assert run(hog, HOG) == 1
        mine = below(box._processes[0].pid)
        hogs = [pid for pid in mine if level_of(pid) not in ("", "1", "2")]
        run(honest, textwrap.dedent(COUNT) + "answer = 1")
        before = sum(map(ticks_of, hogs))
        seconds = run(honest, textwrap.dedent(COUNT) + "answer = used(3)")
        theirs = (sum(map(ticks_of, hogs)) - before) / TICKS
        first = [pid for pid in mine if level_of(pid) == "2"]
        assert len(first) == 2
        ours = os.getpriority(os.PRIO_PROCESS, 0)
        # The one where threads share the processors, the other where sessions do.
        assert {os.getpriority(os.PRIO_PROCESS, pid) for pid in hogs} == {19}
        assert {os.getpriority(os.PRIO_PROCESS, pid) for pid in first} == {ours}
        assert len({os.getsid(pid) for pid in hogs}) == 1
    assert len(hogs) == 30
    assert seconds / (seconds + theirs) > 0.35


def test_a_thread_besides_the_first_steps_back(box: ForkServer):
    code = """
        import os, threading, time
        def wait():
            tid = threading.get_native_id()
            while os.getpriority(os.PRIO_PROCESS, tid) != 19:
                time.sleep(0.01)
        thread = threading.Thread(target=wait)
        thread.start()
        thread.join(20)
        answer = [thread.is_alive(), os.getpriority(os.PRIO_PROCESS, os.getpid())]
    """
    with box.spawn() as spawned:
        assert run(spawned, code) == [False, os.getpriority(os.PRIO_PROCESS, 0)]


def test_where_proc_counts_otherwise_the_right_processes_step_back(contained: ForkServer):
    code = """
        import os, time
        child = os.fork()
        while child == 0:
            time.sleep(0.01)
        until = time.monotonic() + 20
        while os.getpriority(os.PRIO_PROCESS, child) != 19 and time.monotonic() < until:
            time.sleep(0.01)
        answer = [os.getpriority(os.PRIO_PROCESS, one) for one in (child, os.getpid())]
    """
    with contained.spawn() as spawned:
        assert run(spawned, code) == [19, os.getpriority(os.PRIO_PROCESS, 0)]


def test_there_are_no_more_sandboxes_than_a_machine_can_use(monkeypatch: pytest.MonkeyPatch):
    for cores, most in ((1, 64), (16, 64), (100, 400)):
        monkeypatch.setattr(os, "cpu_count", lambda cores=cores: cores)
        assert supervisor.most_at_once() == most


def test_the_disk_is_small(cramped: Spawned):
    code = """
        for n in range(100):
            open(f"{n}", "wb").write(b"x" * (1 << 20))
    """
    assert "File too large" in run(cramped, "open('x', 'wb').truncate(5 << 20)")
    assert "No space left" in run(cramped, code)
    assert "No space left" in run(cramped, "for n in range(10**5): open(f'f{n}', 'w').close()")


@pytest.mark.parametrize("names", [("VmSwap", "SwapPss"), ("HugetlbPages", "Private_Hugetlb")])
def test_what_was_put_on_swap_or_aside_counts_as_memory(
    monkeypatch: pytest.MonkeyPatch, names: tuple[str, str]
):
    """A process can ask for either, and it is as much gone for all others."""
    watch, read = resources.Watch(Limits(memory_mb=300)), resources.Watch._text
    assert watch._too_much([watch._read("self", "self")._replace(ticks=0, kilobytes=0)]) == ""

    def swapped(self: resources.Watch, name: str) -> str:
        lines = read(self, name).splitlines()
        kept = [one for one in lines if not one.startswith(names)]
        return "\n".join([*kept, *(f"{name}:\t400000 kB" for name in names)])

    monkeypatch.setattr(resources.Watch, "_text", swapped)
    own = watch._read("self", "self")._replace(number="self", ticks=0)
    assert own.kilobytes >= 400_000
    assert "memory" in watch._too_much([own])


def test_memory_is_bounded(cramped: Spawned):
    assert "MemoryError" in run(cramped, "x = b'x' * (400 << 20)")
    assert run(cramped, "answer = 1") == 1


TOO_MUCH_TOGETHER = {
    "memory": """
        import os, time
        for _ in range(5):
            if os.fork() == 0:
                x = b"x" * (150 << 20)
                time.sleep(1000)
        time.sleep(1000)
    """,
    "memory of what was sent and nobody reads": """
        import os, socket, time
        from contextlib import suppress
        held = b"x" * (80 << 20)
        for _ in range(8):
            if os.fork() == 0:
                kept = []
                with suppress(OSError):
                    while True:
                        kept += socket.socketpair()
                for one in kept:
                    one.setblocking(False)
                    with suppress(OSError):
                        while True:
                            one.send(b"x" * 65536)
                time.sleep(1000)
        time.sleep(1000)
    """,
    "memory behind a first thread that has ended": """
        import ctypes, os, platform, threading, time
        def fill():
            x = b"x" * (150 << 20)
            time.sleep(1000)
        for _ in range(3):
            if os.fork() == 0:
                threading.Thread(target=fill).start()
                ctypes.CDLL(None).syscall({"x86_64": 60}.get(platform.machine(), 93), 0)
        time.sleep(1000)
    """,
    "time behind a first thread that has ended": """
        import ctypes, os, platform, threading, time
        def burn():
            for _ in range(10):
                if os.fork() == 0:
                    while time.process_time() < 0.6:
                        pass
                    os._exit(0)
                os.wait()
            time.sleep(1000)
        threading.Thread(target=burn).start()
        ctypes.CDLL(None).syscall({"x86_64": 60}.get(platform.machine(), 93), 0)
    """,
    "time": """
        import os, time
        for _ in range(10):
            if os.fork() == 0:
                while time.process_time() < 0.6:
                    pass
                os._exit(0)
            os.wait()
        time.sleep(1000)
    """,
    "time of the dead": """
        import os, time
        for _ in range(6):
            if os.fork() == 0:
                while time.process_time() < 0.6:
                    pass
                os._exit(0)
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
        time.sleep(1000)
    """,
    "time of orphans": """
        import os, time
        for _ in range(10):
            ours, theirs = os.pipe()
            if os.fork() == 0:
                if os.fork() == 0:
                    while time.process_time() < 0.6:
                        pass
                os._exit(0)
            os.close(theirs)
            os.wait()
            os.read(ours, 1)
            os.close(ours)
        time.sleep(1000)
    """,
    "time of those whom the kernel would reap itself": """
        import os, signal, time
        from contextlib import suppress
        with suppress(OSError):
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        for _ in range(10):
            if os.fork() == 0:
                while time.process_time() < 0.6:
                    pass
                os._exit(0)
            with suppress(ChildProcessError):
                os.wait()
        time.sleep(1000)
    """,
    "time of brothers": """
        import ctypes, os, signal, time
        def brother():
            clone = {"x86_64": 56}.get(os.uname().machine, 220)
            return ctypes.CDLL(None).syscall(clone, 0x8000 | signal.SIGCHLD, 0, 0, 0, 0)
        for _ in range(10):
            ours, theirs = os.pipe()
            made = brother()
            while made < 0:  # refused
                pass
            if made == 0:
                while time.process_time() < 0.6:
                    pass
                os._exit(0)
            os.close(theirs)
            os.read(ours, 1)
            os.close(ours)
        time.sleep(1000)
    """,
}


BOUNDS = {"memory": "used more memory than allowed", "time": "used more than 1 second of CPU"}


@pytest.mark.parametrize("what", TOO_MUCH_TOGETHER)
def test_all_processes_together_are_bounded(cramped: Spawned, what: str):
    assert run(cramped, TOO_MUCH_TOGETHER[what]) is None
    assert cramped.ended(GONE) == BOUNDS["time" if "time" in what else "memory"]


@pytest.mark.parametrize("what", TOO_MUCH_TOGETHER)
def test_so_they_are_where_a_sandbox_gets_no_proc_of_its_own(contained: ForkServer, what: str):
    with contained.spawn() as spawned, contained.spawn() as other:
        assert run(spawned, "import os; answer = os.listdir('/proc')") == []
        assert run(spawned, TOO_MUCH_TOGETHER[what]) is None
        assert spawned.ended(GONE) == BOUNDS["time" if "time" in what else "memory"]
        assert run(other, "answer = 1") == 1
        assert other.ended() is None


def test_signals_and_timers_that_wait_are_bounded(cramped: Spawned):
    timers = """
        import ctypes
        libc, timer, answer = ctypes.CDLL("libc.so.6"), ctypes.c_void_p(), 0
        while answer < 5000 and libc.timer_create(1, None, ctypes.byref(timer)) == 0:
            answer += 1
    """
    assert 0 < run(cramped, timers) <= 1000


def test_cpu_is_bounded(cramped: Spawned):
    assert run(cramped, "while True: pass") is None
    assert cramped.ended(GONE) == "used more than 1 second of CPU"


def test_it_is_looked_at_more_often_where_memory_fills_faster(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    assert resources.Watch(Limits()).pause == resources.LONGEST_PAUSE
    monkeypatch.setattr(os, "cpu_count", lambda: 16)
    assert resources.Watch(Limits()).pause == 4 / (16 * 4)
    monkeypatch.setattr(os, "cpu_count", lambda: 1000)
    assert resources.Watch(Limits()).pause == resources.SHORTEST_PAUSE


def test_limits_that_cannot_be_kept_are_said(monkeypatch: pytest.MonkeyPatch):
    if not machine.probe().namespaces:
        pytest.skip("no namespaces")
    monkeypatch.setattr(resources.Watch, "processes", lambda self: [])  # as with hidepid
    monkeypatch.setattr(seccomp, "compile_filter", lambda: b"")
    together, unseen = machine.try_out().missing
    assert "bounded for each process and not for all 64 together; mount /proc without" in together
    assert "memory that no process maps (memfd_create, shmget) is not bounded, nor, in" in unseen


def test_a_fork_bomb_is_bounded(small: ForkServer):
    code = """
        import os, time
        count = 0
        try:
            while count < 1000:
                if os.fork() == 0:
                    time.sleep(1000)
                count += 1
        except BlockingIOError:
            answer = count
    """
    with small.spawn() as bomb, small.spawn() as other:
        assert run(bomb, code) < SMALL.processes
        assert run(other, "import os; os.fork() or os._exit(0); answer = os.wait()[1]") == 0

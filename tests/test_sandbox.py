"""What a student's process can and cannot do, started by root and by an ordinary user."""

import dataclasses
import functools
import importlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from autograder.common.course import CourseError
from autograder.isolation import fork_server, sandbox, supervisor
from autograder.isolation.fork_server import ForkServer, Spawned
from autograder.isolation.sandbox import Limits

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is for Linux")

HERE = Path(__file__).parent
ROOT = HERE.parent
ORDINARY = 12345  # a user id without an account
SMALL = Limits(memory_mb=300, cpu_seconds=1, processes=12, file_mb=4, disk_mb=8)
GONE = 30  # seconds; a machine under load is slow, a hang is for ever


def warm(modules: list[str], watched: list[str]) -> None:
    """Stands for the engine's: import what is asked for."""
    assert not watched
    for module in modules:
        __import__(module)


def serve(sock: socket.socket) -> None:
    """Stands for the engine's: run what comes, a line each, and send back `answer`."""
    stream = sock.makefile("rw")
    for line in stream:
        names: dict[str, Any] = {}
        try:
            exec(json.loads(line), names)
            answer = names.get("answer")
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the test looks at it
            answer = f"{type(error).__name__}: {error}"
        stream.write(json.dumps(answer) + "\n")
        stream.flush()


def run(spawned: Spawned, code: str) -> Any:
    """What `answer` is after the code ran inside; None if the process died of it."""
    spawned.sock.settimeout(GONE)
    spawned.sock.sendall(json.dumps(textwrap.dedent(code)).encode() + b"\n")
    line = b""
    while not line.endswith(b"\n"):
        part = spawned.sock.recv(1 << 16)
        if not part:
            return None
        line += part
    return json.loads(line)


def become_ordinary() -> None:
    """In a child of root: open the way to Python in a private mount namespace, then give up."""
    before = os.umask(0o022)
    sandbox._unshare(sandbox._NEWNS)
    sandbox._mount("", "/", "", sandbox._REC | sandbox._PRIVATE)
    for wanted in {sys.prefix, sys.base_prefix, str(ROOT)}:
        for folder in reversed(Path(wanted).parents):
            if not folder.stat().st_mode & 0o001:
                inside = os.open(wanted, os.O_PATH)
                sandbox._mount("tmpfs", str(folder), "tmpfs", 0, "mode=755")
                Path(wanted).mkdir(parents=True)
                sandbox._mount(f"/proc/self/fd/{inside}", wanted, "", sandbox._BIND)
                break
    os.umask(before)
    os.setgroups([])
    os.setresgid(ORDINARY, ORDINARY, ORDINARY)
    os.setresuid(ORDINARY, ORDINARY, ORDINARY)


def become_ordinary_in_a_container() -> None:
    """The same where part of /proc is covered: the kernel then refuses a new one to a sandbox."""
    sandbox._unshare(sandbox._NEWNS)
    sandbox._mount("", "/", "", sandbox._REC | sandbox._PRIVATE)
    sandbox._mount("tmpfs", "/proc/sys", "tmpfs", sandbox._RDONLY)
    become_ordinary()


@pytest.fixture(scope="module", params=["root", "plain root", "user"])
def who(request: pytest.FixtureRequest) -> Iterator[str]:
    """Every test thrice: started by root, where root alone has namespaces, and by anybody."""
    root = os.geteuid() == 0
    if request.param != "user" and not root:
        pytest.skip("needs root")
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "user" and root:
            ordinary = functools.partial(subprocess.Popen, preexec_fn=become_ordinary)
            patch.setattr(subprocess, "Popen", ordinary)
        before = sandbox.probe
        before.cache_clear()
        found = sandbox.probe()
        if not found.namespaces:
            pytest.skip(" ".join(found.missing))
        assert found.own_uid == (request.param != "user")
        if request.param == "plain root":
            fewer = dataclasses.replace(found, user_namespaces=False)
            patch.setattr(sandbox, "probe", lambda: fewer)
        yield request.param
    before.cache_clear()


@contextmanager
def secretive() -> Iterator[None]:
    """As one whose files no other user may read."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


@pytest.fixture(scope="module")
def box(who: str) -> Iterator[ForkServer]:
    """A warm process with room to move, whoever may read what its starter writes."""
    with secretive():
        made = ForkServer(["fractions"], [HERE], student="tests.test_sandbox")
    with made:
        yield made


@pytest.fixture(scope="module")
def small(who: str) -> Iterator[ForkServer]:
    """A warm process with tight limits."""
    with ForkServer([], [HERE], SMALL, student="tests.test_sandbox") as made:
        yield made


@pytest.fixture(scope="module")
def contained() -> Iterator[ForkServer]:
    """A warm process with tight limits, as an ordinary user of most containers has it."""
    if os.geteuid():
        pytest.skip("needs root")
    with pytest.MonkeyPatch.context() as patch:
        covered = functools.partial(subprocess.Popen, preexec_fn=become_ordinary_in_a_container)
        patch.setattr(subprocess, "Popen", covered)
        sandbox.probe.cache_clear()
        if not sandbox.probe().namespaces:
            pytest.skip(" ".join(sandbox.probe().missing))
        with ForkServer([], [HERE], SMALL, student="tests.test_sandbox") as made:
            yield made
    sandbox.probe.cache_clear()


@pytest.fixture
def inside(box: ForkServer) -> Iterator[Spawned]:
    """A student's process."""
    with box.spawn() as spawned:
        yield spawned


@pytest.fixture
def cramped(small: ForkServer) -> Iterator[Spawned]:
    """A student's process with tight limits."""
    with small.spawn() as spawned:
        yield spawned


def test_modules_are_warm(inside: Spawned):
    assert run(inside, "import sys; answer = 'fractions' in sys.modules")


def test_nothing_of_the_course_is_there(inside: Spawned):
    code = f"""
        from pathlib import Path
        root = Path({str(ROOT)!r})
        answer = sorted(path.name for path in root.iterdir())
    """
    there = run(inside, code)
    assert set(there) <= {"autograder", "tests", Path(sys.prefix).name}
    assert run(inside, f"import os; answer = os.listdir({str(ROOT / 'autograder')!r})") == []


def test_the_machine_has_no_more_folders_than_named(inside: Spawned):
    there = set(run(inside, "import os; answer = os.listdir('/')"))
    named = [ROOT, Path(sys.prefix), Path(sys.base_prefix)]
    allowed = {path.parts[1] for path in named} | {"usr", "bin", "sbin", "lib", "lib32", "lib64"}
    assert there <= allowed | {"libx32", "nix", "etc", "dev", "proc", "sys", "tmp", "scratch"}
    assert set(run(inside, "import os; answer = os.listdir('/etc')")).isdisjoint({"shadow", "ssh"})


def test_no_network(inside: Spawned):
    code = """
        import socket
        try:
            socket.create_connection(("127.0.0.1", 22), timeout=5)
        except OSError as error:
            answer = "refused"
    """
    assert run(inside, code) == "refused"
    cards = run(inside, "import os; answer = open('/proc/net/dev').read().count(':')")
    assert cards == 1  # the loopback, which is down


def test_no_other_process_is_seen(inside: Spawned):
    code = "import os; answer = [name for name in os.listdir('/proc') if name.isdigit()]"
    assert run(inside, code) == ["1", "2"]
    assert run(inside, "import os; os.kill(1, 9); answer = 'still there'") == "still there"
    assert "Permission" in run(inside, "open('/proc/1/mem', 'rb')")


def test_it_cannot_take_back_that_it_goes_first_when_memory_runs_out(inside: Spawned):
    code = """
        import glob, os, threading
        wait = threading.Event()
        threading.Thread(target=wait.wait).start()
        answer = []
        for path in [*glob.glob("/proc/*/oom_*adj"), *glob.glob("/proc/self/task/*/oom_*adj")]:
            try:
                open(path, "w").write("0")
                answer.append(path)
            except OSError:
                pass
        wait.set()
        answer.append(open("/proc/self/oom_score_adj").read().strip())
    """
    assert run(inside, code) == ["1000"]


def test_the_environment_is_bare(monkeypatch: pytest.MonkeyPatch, who: str):
    monkeypatch.setenv("SECRET_OF_THE_TEACHER", "x")
    with (
        ForkServer([], [HERE], student="tests.test_sandbox") as made,
        made.spawn() as spawned,
    ):
        there = run(spawned, "import os; answer = dict(os.environ)")
    assert "SECRET_OF_THE_TEACHER" not in there
    assert there["HOME"] == sandbox.HOME
    assert there["OMP_NUM_THREADS"] == "1"
    assert there["LANG"] == "C.UTF-8"
    assert there["NBGRADER_EXECUTION"] == "autograde", "as nbgrader says to a notebook"


def test_only_its_own_socket_is_open(inside: Spawned):
    code = """
        import os
        answer = sorted(os.readlink(f"/proc/self/fd/{fd}").split(":")[0] for fd in range(4))
        answer.append(len(os.listdir("/proc/self/fd")))
    """
    assert run(inside, code) == ["/dev/null"] * 3 + ["socket", 5]  # the fifth lists the folder


def test_it_can_write_at_home_only(inside: Spawned):
    code = """
        import os, tempfile
        answer = []
        for top, folders, files in os.walk("/"):
            if top == "/proc":
                folders.clear()
                continue
            if top.startswith(("/usr/", "/scratch")) or top.count("/") > 6:
                folders.clear()
            if os.access(top, os.W_OK):
                answer.append(top)
        open("notes.txt", "w").write("x")
        tempfile.NamedTemporaryFile().write(b"x")
    """
    written = run(inside, code)
    assert isinstance(written, list), written
    assert all(path.startswith("/scratch") for path in written), written
    assert run(inside, "import os; answer = os.getcwd()") == sandbox.HOME


def test_the_instructors_umask_stays_outside(inside: Spawned):
    assert run(inside, "import os; answer = os.umask(0o022)") == 0o022
    closed = """
        import os
        answer = []
        for top in ("/", "/etc", "/dev", "/scratch"):
            for name in os.listdir(top):
                if not os.access(os.path.join(top, name), os.R_OK) and name != "full":
                    answer.append(os.path.join(top, name))
    """
    assert run(inside, closed) == []


def test_two_students_share_no_files(box: ForkServer):
    with box.spawn() as one, box.spawn() as two:
        for path in ("notes.txt", "$TMPDIR/x", "/dev/shm/x"):
            made = f"import os; open(os.path.expandvars('{path}'), 'w').write('x'); answer = 1"
            assert run(one, made) == 1
            look = f"import os; answer = os.path.exists(os.path.expandvars('{path}'))"
            assert run(one, look) is True
            assert run(two, look) is False


def test_two_students_share_no_abstract_sockets(box: ForkServer):
    bind = r"import socket, builtins; builtins.s = socket.socket(1); s.bind('\0here'); answer = 1"
    with box.spawn() as one, box.spawn() as two:
        assert run(one, bind) == 1
        assert run(two, bind) == 1


def test_rights_are_gone_for_good(inside: Spawned):
    state = run(inside, "answer = open('/proc/self/status').read()")
    fields = dict(line.split(":\t") for line in state.splitlines() if ":\t" in line)
    assert {fields[name] for name in ("CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
    assert fields["NoNewPrivs"] == "1"
    assert set(map(int, fields["Uid"].split())).isdisjoint({0, ORDINARY})
    libc = "import ctypes, ctypes.util; libc = ctypes.CDLL(None, use_errno=True); "
    for call in ("unshare(0x10000000)", "unshare(0x00020000)", "umount2(b'/scratch', 2)"):
        assert run(inside, f"{libc} answer = libc.{call}") == -1, call
    mount = "answer = libc.mount(b'tmpfs', b'/scratch/tmp', b'tmpfs', 0, None)"
    assert run(inside, libc + mount) == -1


def test_dangerous_calls_are_refused(inside: Spawned):
    if not sandbox.probe().seccomp:
        pytest.skip("libseccomp is not installed")
    assert run(inside, "answer = open('/proc/self/status').read()").count("Seccomp:\t2") == 1
    libc = "import ctypes; libc = ctypes.CDLL(None, use_errno=True); "
    for call in ("ptrace(0, 0, 0, 0)", "shmget(0, 4096, 0o1600)", "memfd_create(b'x', 0)"):
        assert run(inside, f"{libc} libc.{call}; answer = ctypes.get_errno()") == 1, call
    assert "PermissionError" in run(inside, "import socket; socket.socket(socket.AF_INET)")
    assert run(inside, "import socket; socket.socketpair(); answer = 'ok'") == "ok"


MADE = "import ctypes, fcntl, mmap, os, socket, struct; fd = os.open(os.__file__, 0)\n"
CALL = """
def call(name, *arguments):
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*arguments) == -1:
        raise OSError(ctypes.get_errno(), name)
"""
REFUSED = {
    "who locks": "fcntl.fcntl(fd, fcntl.F_GETLK, struct.pack('hhqqi4x', 1, 0, 0, 1, 0))",
    "who locks an open file": "fcntl.fcntl(fd, 36, struct.pack('hhqqi4x', 1, 0, 0, 1, 0))",
    "lease": "fcntl.fcntl(os.open('mine', os.O_CREAT), fcntl.F_SETLEASE, fcntl.F_RDLCK)",
    "command in more bits": "call('syscall', 72, fd, ctypes.c_long(1 << 32 | 1026), 1)",
    "folder's news": "fcntl.fcntl(os.open('/usr', os.O_RDONLY), fcntl.F_NOTIFY, fcntl.DN_ACCESS)",
    "inotify": "call('inotify_init')",
    "inotify with flags": "call('inotify_init1', 0)",
    "only what is in memory": "os.preadv(fd, [bytearray(1)], 0, os.RWF_NOWAIT)",
    "out of memory": "os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)",
    "into memory": "call('readahead', fd, ctypes.c_long(0), ctypes.c_size_t(4096))",
    "what is in memory": "x = mmap.mmap(fd, 4096, prot=mmap.PROT_READ, flags=mmap.MAP_PRIVATE)\n"
    "libc = ctypes.CDLL(None); libc.mmap.restype = ctypes.c_void_p\n"
    "at = libc.mmap(None, ctypes.c_size_t(4096), 1, 2, fd, ctypes.c_long(0))\n"
    "call('mincore', ctypes.c_void_p(at), ctypes.c_size_t(4096), ctypes.create_string_buffer(1))",
    "shared memory without a file": "mmap.mmap(-1, 4096)",
    "shared zeros": "mmap.mmap(os.open('/dev/zero', os.O_RDWR), 4096)",
    "queue": "call('syscall', 206, 8, ctypes.byref(ctypes.c_ulong()))",
    "large pipe": "fcntl.fcntl(os.pipe()[1], 1031, 1 << 20)",
    "buffer to send": "socket.socket(1).setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 17)",
    "buffer to receive": "socket.socket(1).setsockopt(socket.SOL_SOCKET, 8, 1 << 17)",
}


@pytest.mark.parametrize("what", REFUSED)
def test_no_way_to_another_sandbox_nor_to_memory_that_nobody_counts(box: ForkServer, what: str):
    if not sandbox.probe().seccomp:
        pytest.skip("libseccomp is not installed")
    if "syscall" in REFUSED[what] and os.uname().machine != "x86_64":
        pytest.skip("the number is that of another processor")
    refused = ("PermissionError: [Errno 1]", "OSError: [Errno 38]", "OSError: [Errno 95]")  # libc's
    gone = "FileNotFoundError: [Errno 2] No such file or directory: '/dev/zero'"
    with box.spawn() as spawned:
        told = run(spawned, MADE + CALL + REFUSED[what] + "\nanswer = 'done'")
    assert told.startswith((*refused, gone)), told


LOCKS = {
    "flock": "fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)",
    "lock": "fcntl.lockf(fd, fcntl.LOCK_SH | fcntl.LOCK_NB, 1, 1000)",
    "lock of an open file": "fcntl.fcntl(fd, 37, struct.pack('hhqqi4x', 0, 0, 0, 1, 0))",
}


@pytest.mark.parametrize("what", LOCKS)
def test_what_one_locks_no_other_sees(box: ForkServer, what: str):
    if not sandbox.probe().seccomp:
        pytest.skip("libseccomp is not installed")
    with box.spawn() as spawned:
        assert run(spawned, MADE + LOCKS[what] + "\nanswer = os.fstat(fd).st_ino") == (
            Path(os.__file__).stat().st_ino
        )
        locks = Path("/proc/locks").read_text().splitlines()
        held = [line.split()[5].split(":")[2] for line in locks if "->" not in line]
        assert str(Path(os.__file__).stat().st_ino) not in held


USED = {
    "pool": "import multiprocessing\nwith multiprocessing.Pool(1) as p: answer = p.map(abs, [-1])",
    "shared memory": "from multiprocessing import shared_memory as s\n"
    "x = s.SharedMemory(create=True, size=9); x.buf[0] = 1; answer = [x.buf[0]]; x.unlink()",
    "shared array": "from multiprocessing import sharedctypes as s; answer = s.Array('i', [1])[:]",
    "queue": "import multiprocessing as m; q = m.Queue(); q.put(1); answer = [q.get()]",
    "file lock": "import filelock\n"
    "with filelock.FileLock('x', timeout=5) as f: answer = [int(type(f) is filelock.FileLock)]",
    "database": "import sqlite3; c = sqlite3.connect('x.db'); c.execute('create table t(x)')\n"
    "c.execute('insert into t values (1)'); c.commit()\n"
    "answer = list(sqlite3.connect('x.db').execute('select x from t').fetchone())",
    "program": "import subprocess; s = subprocess.run(['true'], start_new_session=True)\n"
    "answer = [1 + s.returncode]",
    "temporary file": "import tempfile\n"
    "with tempfile.TemporaryFile() as f: f.write(b'x'); answer = [f.tell()]",
    "figure": "import matplotlib.pyplot as p; p.plot([1]); p.savefig('x.png'); answer = [1]",
}


@pytest.mark.parametrize("what", USED)
def test_what_libraries_do_still_works(inside: Spawned, what: str):
    assert run(inside, USED[what]) == [1]


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
        theirs = (sum(map(ticks_of, hogs)) - before) / os.sysconf("SC_CLK_TCK")
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


def test_threads_and_programs_may_be_started(inside: Spawned):
    code = """
        import subprocess, sys, threading
        answer = []
        thread = threading.Thread(target=answer.append, args=(1,))
        thread.start()
        thread.join()
        answer.append(subprocess.run([sys.executable, "-c", "print(2)"],
                                     capture_output=True, text=True).stdout)
    """
    assert run(inside, code) == [1, "2\n"]


def test_it_can_fork_and_the_dead_are_buried(inside: Spawned):
    code = """
        import os, time
        for _ in range(5):
            child = os.fork()
            if child == 0:
                if os.fork() == 0:
                    os._exit(0)
                os._exit(7)
            status = os.waitpid(child, 0)[1]
        def count():
            return sum(name.isdigit() for name in os.listdir("/proc"))
        while count() > 2:
            time.sleep(0.01)
        answer = os.waitstatus_to_exitcode(status)
    """
    assert run(inside, code) == 7


def test_the_disk_is_small(cramped: Spawned):
    code = """
        for n in range(100):
            open(f"{n}", "wb").write(b"x" * (1 << 20))
    """
    assert "File too large" in run(cramped, "open('x', 'wb').truncate(5 << 20)")
    assert "No space left" in run(cramped, code)
    assert "No space left" in run(cramped, "for n in range(10**5): open(f'f{n}', 'w').close()")


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


def test_cpu_is_bounded(cramped: Spawned):
    assert run(cramped, "while True: pass") is None
    assert cramped.ended(GONE) == "used more than 1 second of CPU"


def test_it_is_looked_at_more_often_where_memory_fills_faster(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    assert sandbox.Watch(Limits()).pause == sandbox.LONGEST_PAUSE
    monkeypatch.setattr(os, "cpu_count", lambda: 16)
    assert sandbox.Watch(Limits()).pause == 4 / (16 * 4)
    monkeypatch.setattr(os, "cpu_count", lambda: 1000)
    assert sandbox.Watch(Limits()).pause == sandbox.SHORTEST_PAUSE


def test_limits_that_cannot_be_kept_are_said(monkeypatch: pytest.MonkeyPatch):
    if not sandbox.probe().namespaces:
        pytest.skip("no namespaces")
    monkeypatch.setattr(sandbox.Watch, "processes", lambda self: [])  # as with hidepid
    monkeypatch.setattr(sandbox, "compile_filter", lambda: b"")
    together, unseen = sandbox.capabilities().missing
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


def test_workers_that_were_forked_spawn_at_the_same_time(box: ForkServer):
    code = f"""
        import sys; sys.path.insert(0, {str(ROOT)!r})
        from tests import test_sandbox
        test_sandbox.spawn_from_forks()
    """
    program = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(program, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


def spawn_from_forks() -> None:
    """Four forks of a program that holds a warm process, 10 students' processes each."""
    with ForkServer([], [HERE], student="tests.test_sandbox") as made:
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
        from tests import test_sandbox
        test_sandbox.hold()
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
    made = ForkServer([], [HERE], student="tests.test_sandbox")
    spawned = made.spawn()
    assert run(spawned, DAEMON) == "ready"
    print("ready", flush=True)
    time.sleep(1000)


def test_a_warm_process_made_out_of_a_clean_one(who: str):
    found = json.dumps(dataclasses.asdict(sandbox.probe()))
    code = f"""
        import sys; sys.path.insert(0, {str(ROOT)!r})
        from tests import test_sandbox
        test_sandbox.make_here({found!r})
    """
    program = [sys.executable, "-c", textwrap.dedent(code)]
    with subprocess.Popen(
        program,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        env=sandbox.clean_environment(),
    ) as maker:
        assert maker.stdout
        told = json.loads(maker.stdout.readline())
        mine = below(maker.pid)
        assert len(mine) >= 6  # around the jail two, supervisor, warm process, keeper, process 1
        maker.kill()
    assert told["before"] is True
    assert told["after"] is False
    assert told["open"] == 5  # its own socket, three times nothing, the folder that is listed
    assert told["rights"] == "0" * 16
    assert told["processes"] == ["1", "2"]
    assert told["course"] == []
    assert told["folder"] == f"{sandbox.SCRATCH}/tmp"
    wait_until(lambda: not any(Path("/proc", str(pid)).exists() for pid in mine))


def make_here(found: str) -> None:
    """Be a program that makes a warm process out of itself, then learns more; until killed."""
    sandbox.remember(sandbox.Capabilities(**json.loads(found)))
    tempfile.gettempdir()  # where the machine has it
    with Path(__file__).open():  # the warm process must not have it open
        made = ForkServer([], [HERE], student="tests.test_sandbox", here=True)
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


def test_a_warm_process_made_out_of_a_clean_one_is_closed_with_it():
    if not sandbox.probe().namespaces:
        pytest.skip("no namespaces")
    with ForkServer([], [HERE], student="tests.test_sandbox", here=True) as made:
        made.go_in()
        made.wait()
        with made.spawn() as spawned:
            assert run(spawned, "answer = 1") == 1
        started = [process.pid for process in made._processes]
    assert not any(Path("/proc", str(pid)).exists() for pid in started)


def test_a_module_that_cannot_be_imported_is_named(who: str):
    with pytest.raises(CourseError, match="no_such_module"):
        ForkServer(["no_such_module"], [HERE], student="tests.test_sandbox")


def test_without_a_sandbox_limits_and_words_stay():
    with ForkServer([], [HERE], SMALL, sandboxed=False, student="tests.test_sandbox") as made:
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
        ForkServer(["matplotlib.pyplot"], sandboxed=False, student="tests.test_sandbox") as made,
        made.spawn() as spawned,
    ):
        home = run(spawned, "import matplotlib; answer = matplotlib.get_configdir()")
        assert Path(home).is_dir()
        assert not home.startswith(sandbox.SCRATCH)
    wait_until(lambda: not Path(home).parent.exists())


def test_a_platform_without_fork_is_told(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delattr(os, "fork")
    with pytest.raises(CourseError, match="fork"):
        ForkServer([], student="tests.test_sandbox")


def test_without_namespaces_the_sandbox_is_refused(monkeypatch: pytest.MonkeyPatch):
    none = sandbox.Capabilities(False, False, False, missing=("The kernel refuses.",))
    monkeypatch.setattr(fork_server.sandbox, "probe", lambda: none)
    with pytest.raises(CourseError, match="The kernel refuses"):
        ForkServer([], student="tests.test_sandbox")


def shut_in(made: ForkServer) -> set[int]:
    """The processes that are in sandboxes: two namespaces below ours."""
    found = set()
    for pid in below(made._processes[0].pid):
        with suppress(OSError):
            status = Path("/proc", str(pid), "status").read_text()
            levels = status.partition("NSpid:")[2].splitlines()[0].split()
            found |= {pid} if len(levels) == 3 else set()
    return found


def level_of(pid: int) -> str:
    """Its number in a sandbox; empty if it is in none."""
    with suppress(OSError):
        status = Path("/proc", str(pid), "status").read_text()
        numbers = status.partition("NSpid:")[2].splitlines()[0].split()
        return numbers[2] if len(numbers) == 3 else ""
    return ""


def ticks_of(pid: int) -> int:
    """The CPU time that it has used."""
    fields = Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def below(top: int) -> set[int]:
    """All processes below one that live, as the kernel lists them."""
    found: set[int] = set()
    try:
        tasks = list(Path("/proc", str(top), "task").iterdir())
        for task in tasks:
            for child in map(int, (task / "children").read_text().split()):
                state = Path("/proc", str(child), "stat").read_text().rpartition(")")[2].split()[0]
                found |= below(child) | ({child} if state != "Z" else set())
    except (FileNotFoundError, ProcessLookupError):
        pass
    return found


def wait_until(holds: Any) -> None:
    """Until it holds; a failure after a time in which any machine would have managed."""
    deadline = time.monotonic() + GONE
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)

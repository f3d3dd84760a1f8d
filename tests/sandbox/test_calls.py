"""What a student's process may ask the kernel, and what libraries still can."""

import os
import sys
from pathlib import Path

import pytest

from autograder.isolation import machine
from autograder.isolation.fork_server import ForkServer, Spawned
from tests.sandbox.shared import ORDINARY, run

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is for Linux")


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
    if not machine.probe().seccomp:
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
    "what the machine uses": "call('sysinfo', ctypes.create_string_buffer(200))",
    "pages that another holds, too": "call('prctl', 67, 1, 0, 0, 0)",
    "such a page": "at = mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE)\nat.madvise(12)",
    "a processor for itself": "call('prctl', 62, 1, 0, 0, 0)",
    "shared memory without a file": "mmap.mmap(-1, 4096)",
    "shared zeros": "mmap.mmap(os.open('/dev/zero', os.O_RDWR), 4096)",
    "queue": "call('syscall', 206, 8, ctypes.byref(ctypes.c_ulong()))",
    "large pipe": "fcntl.fcntl(os.pipe()[1], 1031, 1 << 20)",
    "buffer to send": "socket.socket(1).setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 17)",
    "buffer to receive": "socket.socket(1).setsockopt(socket.SOL_SOCKET, 8, 1 << 17)",
}


@pytest.mark.parametrize("what", REFUSED)
def test_no_way_to_another_sandbox_nor_to_memory_that_nobody_counts(box: ForkServer, what: str):
    if not machine.probe().seccomp:
        pytest.skip("libseccomp is not installed")
    if "syscall" in REFUSED[what] and os.uname().machine != "x86_64":
        pytest.skip("the number is that of another processor")
    refused = ("PermissionError: [Errno 1]", "OSError: [Errno 38]", "OSError: [Errno 95]")  # libc's
    gone = "FileNotFoundError: [Errno 2] No such file or directory: '/dev/zero'"
    with box.spawn() as spawned:
        told = run(spawned, MADE + CALL + REFUSED[what] + "\nanswer = 'done'")
    assert told.startswith((*refused, gone)), told


def test_what_the_kernel_notes_of_others_is_not_to_be_read(inside: Spawned):
    """Not even where it lets every account read that: who crashes says something there."""
    if not machine.probe().seccomp:
        pytest.skip("libseccomp is not installed")
    told = run(inside, MADE + CALL + "call('klogctl', 3, ctypes.create_string_buffer(9), 9)")
    assert told == "OSError: [Errno 38] klogctl"


def test_it_makes_nobody_write_to_a_disk(inside: Spawned):
    if not machine.probe().seccomp:
        pytest.skip("libseccomp is not installed")
    libc = "import ctypes, os; libc = ctypes.CDLL(None); os.sync(); "
    for call in ("syncfs", "fsync", "fdatasync"):
        assert run(inside, f"{libc}answer = libc.{call}(-1)") == 0, "where there is no such file"


LOCKS = {
    "flock": "fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)",
    "lock": "fcntl.lockf(fd, fcntl.LOCK_SH | fcntl.LOCK_NB, 1, 1000)",
    "lock of an open file": "fcntl.fcntl(fd, 37, struct.pack('hhqqi4x', 0, 0, 0, 1, 0))",
}


@pytest.mark.parametrize("what", LOCKS)
def test_what_one_locks_no_other_sees(box: ForkServer, what: str):
    if not machine.probe().seccomp:
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
    "loader's workers": "import torch; from torch.utils.data import DataLoader\n"
    "answer = [int(x) for x in DataLoader(torch.ones(1), num_workers=1)]",
    "figure": "import matplotlib.pyplot as p; p.plot([1]); p.savefig('x.png'); answer = [1]",
}


@pytest.mark.parametrize("what", USED)
def test_what_libraries_do_still_works(inside: Spawned, what: str):
    assert run(inside, USED[what]) == [1]


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


def test_it_can_fork_and_what_ends_is_reaped(inside: Spawned):
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

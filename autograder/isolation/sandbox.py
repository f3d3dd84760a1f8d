"""The walls around a student's process: what it sees, what it may use, what it may ask the kernel.

The heavy part, a small root directory without the course and without a network, is built once
(`build_jail`). Each student then gets namespaces and a scratch disk of its own (`enter`), which
takes milliseconds, and the student's process is brought into them (`join`), without any right
(`give_up_rights`) and with limits (`limit`).
"""

import ctypes
import functools
import json
import os
import platform
import signal
import site
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

SCRATCH = "/scratch"  # not below /home or /tmp: Python itself may lie there
HOME = f"{SCRATCH}/home"
PACKAGE = Path(__file__).parents[1]  # the autograder itself

_NEWNS, _NEWUTS, _NEWIPC = 0x0002_0000, 0x0400_0000, 0x0800_0000
_NEWUSER, _NEWPID, _NEWNET = 0x1000_0000, 0x2000_0000, 0x4000_0000
_REST = _NEWNS | _NEWUTS | _NEWIPC | _NEWPID | _NEWNET
_RDONLY, _NOSUID, _NODEV, _NOEXEC, _REMOUNT = 1, 2, 4, 8, 32
_BIND, _REC, _PRIVATE, _DETACH = 4096, 16384, 1 << 18, 2
_PR_PDEATHSIG, _PR_DUMPABLE, _PR_SECCOMP, _PR_CAPBSET_DROP, _PR_NO_NEW_PRIVS = 1, 4, 22, 24, 38
_FIRST_UID, _UIDS = 60000, 5000  # where no person's account lies
_INSIDE = 1000  # the uid that a student's process sees as its own
_UMASK = 0o022  # inside; the instructor's may hide from a student's user what the new root holds
_MADV_COLLAPSE = 25
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}

_SYSTEM = ("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "nix")
_ETC = ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "alternatives", "fonts")
_DEVICES = ("null", "full", "random", "urandom")  # "zero", mapped, is memory that nobody counts
_OF_PREFIX = ("bin", "lib", "lib64", "share", "pyvenv.cfg")  # never the whole: it may be the course

_REFUSED = (
    "ptrace process_vm_readv process_vm_writev process_madvise kcmp pidfd_getfd mount umount "
    "umount2 pivot_root chroot mount_setattr open_tree move_mount fsopen fsmount fsconfig "
    "fspick unshare setns keyctl add_key request_key bpf userfaultfd perf_event_open kexec_load "
    "kexec_file_load init_module finit_module delete_module io_uring_setup io_uring_enter "
    "io_uring_register memfd_create memfd_secret shmget msgget semget mq_open quotactl swapon "
    "swapoff reboot acct open_by_handle_at name_to_handle_at fanotify_init lookup_dcookie "
    "vmsplice personality io_setup io_submit io_destroy io_cancel io_getevents io_pgetevents "
)
# What tells one sandbox of another through a file that both can read: watches, and what the kernel
# keeps of it in memory (locks: below). Libraries do without, as where a kernel has none.
_UNKNOWN = (
    "inotify_init inotify_init1 inotify_add_watch inotify_rm_watch preadv2 pwritev2 "
    "fadvise64 readahead mincore cachestat "
)
_F_GET_LOCK, _F_SET_LOCK = (5, 36), (6, 7, 37, 38)  # a process's, an open file's; also: and wait
_F_LEASES = (1024, 1025, 1026)  # set, get, and a folder's: F_NOTIFY
_F_PIPE_SIZE, _F_HINTS = 1031, (1035, 1036, 1037, 1038)  # hints of a file's life
_SOL_SOCKET, _BUFFERS = 1, (7, 8, 32, 33)  # sizes, to send and to receive; the same by force
_INT = 0xFFFF_FFFF  # what the kernel reads of such an argument
_SHARED_ANONYMOUS = 0x21  # flags of mmap; what is dropped of it stays, and no process has it


@dataclass(frozen=True)
class Limits:
    """What one student's sandbox may use, all its processes taken together."""

    memory_mb: int = 4096
    cpu_seconds: int = 120
    processes: int = 64
    file_mb: int = 64  # one file
    disk_mb: int = 128  # home and /tmp, which lie in memory


LONGEST_PAUSE, SHORTEST_PAUSE = 0.5, 0.02  # seconds between two looks at a sandbox
FILLED = 4 << 20  # kilobytes of memory that one core fills in a second, at most
_FIRST = ("1", "2")  # inside: process 1, and the student's first; numbers that none gets again
_LOWEST = 19  # priority
_WORKER_SECONDS, _WORKER_PROCESSES = 900, 64

RARELY = (20_000, 20, 20)  # thresholds of the garbage collector in processes that end soon


@dataclass(frozen=True)
class Capabilities:
    """What this machine offers for a sandbox."""

    namespaces: bool
    own_uid: bool  # each sandbox can have a user id that nobody else has
    seccomp: bool
    user_namespaces: bool = False
    missing: tuple[str, ...] = ()  # a sentence for each thing that is not there


_told: list[Capabilities] = []  # by the process that started this one


def remember(found: Capabilities) -> None:
    """`probe` gives this from now on."""
    _told[:] = [found]


@functools.cache
def probe() -> Capabilities:
    """Find out, by trying in a process of its own, what this machine offers for a sandbox."""
    if _told:
        return _told[0]
    if sys.platform != "linux":
        return capabilities()
    hear_of_children()
    done = subprocess.run(
        python_command("sandbox", "tell_capabilities"), capture_output=True, text=True, check=False
    )
    if done.returncode:
        return Capabilities(False, False, False, missing=(f"The probe failed: {done.stderr}",))
    found = json.loads(done.stdout)
    return Capabilities(**{**found, "missing": tuple(found["missing"])})


def hear_of_children() -> None:
    """Have this process told when one of its own ends, however it was started itself."""
    in_main = threading.current_thread() is threading.main_thread()
    if in_main and signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})


def python_command(module: str, function: str, *arguments: str) -> list[str]:
    """The command that calls a function of this package in a new Python.

    With `-m` the package would have to be installed or the working directory be the course.
    """
    call = f"from autograder.isolation.{module} import {function}; {function}(*sys.argv[1:])"
    code = f"import sys; sys.path.append({str(PACKAGE.parent)!r}); {call}"
    return [sys.executable, "-P", "-c", code, *arguments]


def clean_environment() -> dict[str, str]:
    """The environment of a student's process: nothing of the instructor's."""
    ours = environment_at(HOME) | {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "TMPDIR": f"{SCRATCH}/tmp",
        "OMP_NUM_THREADS": "1",
        "OMP_THREAD_LIMIT": "1",
        "MKL_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MPLBACKEND": "agg",
        "NBGRADER_EXECUTION": "autograde",  # by which a notebook may know that it is graded
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",  # a regrade meets sets in the same order
        "PYTHONIOENCODING": "utf-8",
    }
    if site.ENABLE_USER_SITE:
        ours["PYTHONUSERBASE"] = site.getuserbase()
    return ours


def environment_at(home: str) -> dict[str, str]:
    """The part of an environment that says where a person's files are."""
    return {
        "HOME": home,
        "MPLCONFIGDIR": f"{home}/.matplotlib",
        "IPYTHONDIR": f"{home}/.ipython",
    }


# ---- once, in the warm process ----------------------------------------------------------------


def leave_the_machine(found: Capabilities) -> None:
    """Enter namespaces without network; the next child that is forked is their process 1."""
    uid, gid = os.getuid(), os.getgid()
    _unshare(_REST if found.own_uid else _REST | _NEWUSER)
    if not found.own_uid:
        _map_ids((uid, uid), (gid, gid))
    _mount("", "/", "", _REC | _PRIVATE)


def forget_umask() -> None:
    """What is made from now on can be read by all users, whoever started the grader."""
    os.umask(_UMASK)


def build_jail(readable: Sequence[Path]) -> None:
    """Swap the root directory for a small one with the system, Python and `readable`, read-only.

    Process 1 of the new namespaces calls it. The course is not in it unless it is named.
    """
    forget_umask()
    wanted = {path: path.resolve() for path in [*_python_paths(), PACKAGE, *readable]}
    wanted |= {real: real for real in wanted.values()}  # a path may lead through links
    _mount("tmpfs", "/tmp", "tmpfs", _NOSUID, "mode=755,size=1m")
    Path("/tmp/.host").mkdir()
    _check(_libc().syscall(_pivot_root_number(), b"/tmp", b"/tmp/.host"), "pivot_root")
    os.chdir("/")
    _bind_system()
    for path, real in sorted(wanted.items()):
        if Path(f"/.host{real}").exists():
            _bind(f"/.host{real}", path)
    _make_devices()
    Path("/proc").mkdir()
    try:
        _mount("proc", "/proc", "proc", _NOSUID | _NODEV | _NOEXEC)
    except OSError:  # as in most containers; `lock` hides it from the student's process
        _mount("/.host/proc", "/proc", "", _BIND | _REC)
    _check(_libc().umount2(b"/.host", _DETACH), "umount")
    Path("/.host").rmdir()
    _write_etc()
    with suppress(FileExistsError):  # there if Python lies below /tmp; TMPDIR is what counts
        Path("/tmp").symlink_to(f"{SCRATCH}/tmp")
    Path(SCRATCH).mkdir()
    _make_read_only()
    make_scratch(64)


def make_scratch(megabytes: int, uid: int | None = None) -> None:
    """Mount an empty scratch disk of this size: home, /tmp and /dev/shm."""
    options = f"mode=755,size={megabytes}m,nr_inodes={megabytes * 64 + 1024}"
    _mount("tmpfs", SCRATCH, "tmpfs", _NOSUID | _NODEV, options)
    for name, mode in (("home", 0o755), ("tmp", 0o1777), ("shm", 0o1777)):
        folder = Path(SCRATCH, name)
        folder.mkdir()
        folder.chmod(mode)
        if uid is not None:
            os.chown(folder, uid, uid)
    if uid is not None:  # last: not every root may write to what belongs to somebody else
        os.chown(SCRATCH, uid, uid)


def _python_paths() -> list[Path]:
    """Where this Python and its packages lie."""
    prefixes = {sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix}
    paths = [Path(prefix) / name for prefix in prefixes for name in _OF_PREFIX]
    if site.ENABLE_USER_SITE:
        paths.append(Path(site.getusersitepackages()))
    return [path for path in paths if not path.is_relative_to("/usr") and path.exists()]


def _bind_system() -> None:
    for name in _SYSTEM:
        host, here = Path(f"/.host/{name}"), Path(f"/{name}")
        if host.is_symlink():
            here.symlink_to(host.readlink())
        elif host.is_dir():
            _bind(str(host), here)
    for name in _ETC:
        host = Path(f"/.host/etc/{name}")
        if host.exists() and not host.is_symlink():
            _bind(str(host), Path("/etc", name))
    with suppress(OSError):  # libraries count the processors there
        _bind("/.host/sys/devices/system/cpu", Path("/sys/devices/system/cpu"))


def _make_devices() -> None:
    for name in _DEVICES:
        _bind(f"/.host/dev/{name}", Path("/dev", name))
    Path("/dev/shm").symlink_to(f"{SCRATCH}/shm")
    for name, target in (("fd", "fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")):
        Path("/dev", name).symlink_to(f"/proc/self/{target}")


def _write_etc() -> None:
    etc = Path("/etc")
    etc.mkdir(exist_ok=True)
    (etc / "passwd").write_text(f"student:x:{_INSIDE}:{_INSIDE}::{HOME}:/bin/sh\n")
    (etc / "group").write_text(f"student:x:{_INSIDE}:\n")
    (etc / "hosts").write_text("127.0.0.1 localhost\n")


def _bind(source: str, target: Path) -> None:
    if Path(source).is_dir():
        target.mkdir(parents=True, exist_ok=True)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()
    _mount(source, str(target), "", _BIND | _REC)


def _make_read_only() -> None:
    """Make every mount read-only, each with the flags that it has to keep."""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        point = line.split()[4].encode().decode("unicode_escape")  # a space is \040
        if point != "/proc" and not point.startswith("/proc/"):
            keep = os.statvfs(point).f_flag & (_NOSUID | _NODEV | _NOEXEC)
            _mount("", point, "", _REMOUNT | _BIND | _RDONLY | keep)


def use_large_pages() -> None:
    """Gather this process's memory in large pages: a fork then has far less to copy.

    Measured with a large library imported: 10 ms of CPU a sandbox in place of 16.
    """
    if sys.platform != "linux":
        return
    for line in Path("/proc/self/maps").read_text().splitlines():
        fields = line.split()
        if fields[1] == "rw-p" and fields[4] == "0" and "[stack]" not in line:
            first, last = (int(end, 16) for end in fields[0].split("-"))
            # Linux before 6.1 does not know it and says so; nothing is lost.
            _libc().madvise(ctypes.c_void_p(first), ctypes.c_size_t(last - first), _MADV_COLLAPSE)


# ---- for each student ---------------------------------------------------------------


def enter(found: Capabilities, limits: Limits, slot: int) -> None:
    """Enter a student's own namespaces; the next child that is forked is their process 1."""
    uid = _FIRST_UID + slot % _UIDS
    go_first()
    if found.own_uid and found.user_namespaces:
        _become(uid)
    flags = _REST | _NEWUSER if found.user_namespaces else _REST
    outside = (os.getuid(), os.getgid())
    _unshare(flags)
    if found.user_namespaces:
        _map_ids((_INSIDE, outside[0]), (_INSIDE, outside[1]))
        with suppress(OSError):
            Path("/proc/sys/user/max_user_namespaces").write_text("0")
    make_scratch(limits.disk_mb, None if found.user_namespaces else uid)
    _check(_libc().sethostname(b"student", 7), "sethostname")
    _mount("tmpfs", str(PACKAGE), "tmpfs", _RDONLY | _NOSUID | _NODEV, "size=4k,mode=555")


def hide_processes() -> None:
    """In process 1: /proc shows from now on what is in its namespaces, or nothing.

    Nobody writes there: a process could take back that it goes first when memory runs out.
    """
    flags = _NOSUID | _NODEV | _NOEXEC
    try:
        _mount("proc", "/proc", "proc", flags)
        _mount("", "/proc", "", _REMOUNT | _BIND | _RDONLY | flags)
    except OSError:
        _mount("tmpfs", "/proc", "tmpfs", _RDONLY | _NOSUID | _NODEV, "size=4k,mode=555")


def own_namespaces(*, user: bool) -> list[int]:
    """This process's namespaces as open files: that of users, if wanted, and of processes first."""
    names = [*(["user"] if user else []), "pid", "mnt", "net", "ipc", "uts"]
    return [os.open(f"/proc/self/ns/{name}", os.O_RDONLY | os.O_CLOEXEC) for name in names]


def fork_into(processes: int, back: int | None) -> int:
    """Fork a child into a namespace of processes; `back` is this process's own, if more follow."""
    _set_namespace(processes)
    child = -1
    try:
        child = os.fork()
    finally:
        if child and back is not None:
            _set_namespace(back)
    return child


def fork_apart(own: int) -> int:
    """Fork a child that is process 1 of a new namespace; `own` is this process's own."""
    _unshare(_NEWPID)
    child = -1
    try:
        child = os.fork()
    finally:
        if child:
            _set_namespace(own)
    return child


def own_mounts() -> None:
    """From now on what this process mounts is seen by it alone."""
    _unshare(_NEWNS)


def say_nothing() -> None:
    """What this process writes to its standard streams goes nowhere from now on."""
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    os.close(null)


def limit_worker(megabytes: int, found: Capabilities) -> None:
    """Bound what a trusted process uses: each file that it writes, CPU time, processes."""
    import resource

    _set_limit(resource.RLIMIT_CORE, 0)
    _set_limit(resource.RLIMIT_FSIZE, megabytes << 20)
    _set_limit(resource.RLIMIT_CPU, _WORKER_SECONDS, _WORKER_SECONDS + 1)
    _limit_processes(_WORKER_PROCESSES, alone=found.own_uid)


def join(spaces: Sequence[int]) -> None:
    """Enter these namespaces, that of users first."""
    with suppress(PermissionError):  # an ordinary user's groups are what they are
        os.setgroups([])
    for space in spaces:
        _set_namespace(space)


def give_up_rights(found: Capabilities, slot: int, seccomp: bytes) -> None:
    """Become the student's user, with none of the rights that the namespaces gave, for good."""
    os.chdir(HOME)
    uid = _INSIDE if found.user_namespaces else _FIRST_UID + slot % _UIDS
    keep_no_right(uid if found.own_uid else None, seccomp)


def keep_no_right(uid: int | None, seccomp: bytes) -> None:
    """Become this user, if one is given, and be able to do nothing that any program may not."""
    for capability in range(64):
        if _libc().prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0):
            break
    if uid is not None:
        _become(uid)
    _drop_capabilities()
    _check(_libc().prctl(_PR_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    if seccomp:
        _load_filter(seccomp)


def go_first() -> None:
    """If the machine runs out of memory, this process goes first."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def limit(limits: Limits, found: Capabilities | None) -> None:
    """Set the limits that the kernel checks in each process; `found` is None without a sandbox."""
    import resource

    megabyte = 1 << 20
    _set_limit(resource.RLIMIT_CORE, 0)
    _set_limit(resource.RLIMIT_FSIZE, limits.file_mb * megabyte)
    _set_limit(resource.RLIMIT_NOFILE, 128)
    _set_limit(resource.RLIMIT_CPU, limits.cpu_seconds, limits.cpu_seconds + 1)
    if sys.platform == "linux":  # elsewhere the kernel refuses or ignores these
        _set_limit(resource.RLIMIT_AS, limits.memory_mb * megabyte)
        _set_limit(resource.RLIMIT_MEMLOCK, 0)
        _set_limit(resource.RLIMIT_MSGQUEUE, 0)
    if found:
        _limit_processes(limits.processes, alone=found.own_uid or _counts_inside())


def _counts_inside() -> bool:
    """Whether a namespace's processes count apart; before Linux 5.14 all of a person's did."""
    release = platform.release().split("-")[0].split(".")[:2]
    return tuple(map(int, release)) >= (5, 14)


def _limit_processes(count: int, *, alone: bool) -> None:
    """Where others count too, leave room for them."""
    import resource

    _set_limit(resource.RLIMIT_NPROC, count if alone else count + 1000)


def _set_limit(which: int, soft: int, hard: int | None = None) -> None:
    import resource

    highest = resource.getrlimit(which)[1]
    wanted = soft if hard is None else hard
    if highest != resource.RLIM_INFINITY:
        wanted = min(wanted, highest)
    resource.setrlimit(which, (min(soft, wanted), wanted))


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when its parent ends; nothing where it cannot.

    Where the parent, given by its number, has ended meanwhile, end now. A parent outside of a
    process's namespace has no number in it.
    """
    if sys.platform == "linux":
        _libc().prctl(_PR_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        if os.getppid() not in (parent, 0):
            os._exit(1)


def ending(status: int) -> str:
    """How a process ended, in words, from its wait status."""
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return f"exited with status {code}"
    try:
        name = signal.Signals(-code).name.removeprefix("SIG")
    except ValueError:  # a real-time signal
        return f"was killed by signal {-code}"
    return f"was killed by signal {-code} ({name})"


def too_long(limits: Limits) -> str:
    """The words for a sandbox that has used up its CPU time."""
    seconds = "1 second" if limits.cpu_seconds == 1 else f"{limits.cpu_seconds} seconds"
    return f"used more than {seconds} of CPU"


class Watch:
    """Looks at what the processes of one sandbox use, all taken together.

    What it reads is the /proc from before it was hidden, which shows others too: so it also works
    where the kernel refuses a sandbox a /proc of its own, as in most containers. A process belongs
    to the sandbox if it is in its network namespace, which none can leave and none can conceal: the
    files of each in /proc have inode numbers of their own. One that has ended and was not waited
    for is in no namespace any more; it belongs where its parent does.
    """

    def __init__(self, limits: Limits) -> None:
        """Make it in the sandbox's namespaces, before `hide_processes`."""
        self._limits = limits
        self.pause = self._pause(0, 0.0)  # seconds until the next look
        self._proc = os.open("/proc", os.O_RDONLY | os.O_CLOEXEC)
        self._me = os.readlink("self", dir_fd=self._proc)
        self._network = self._network_of("self") or -1
        self._level = len(self._numbers("self")) - 1  # of this process's numbers, its own

    def look(self) -> str:
        """What they used too much of; empty if nothing."""
        started = time.perf_counter()
        own = self.processes()
        words = self._too_much(own)
        self._step_back(own)
        used = sum(one.kilobytes for one in own)
        self.pause = self._pause(used, time.perf_counter() - started)
        return words

    def _pause(self, used: int, took: float) -> float:
        """So short that all cores together can't fill what is left, and ten times what it costs."""
        room = self._limits.memory_mb * 1024 - used
        soon = max(room / ((os.cpu_count() or 1) * FILLED), SHORTEST_PAUSE)
        return min(max(soon, 10 * took), LONGEST_PAUSE)

    def _step_back(self, own: Sequence["Process"]) -> None:
        """Leave a sandbox one thread, its first; more get what no other sandbox wants.

        A kernel shares the processors among threads: else who starts 60 gets 60 shares.
        """
        for one in own:
            with suppress(OSError):  # it may be gone meanwhile
                for thread in self._names(f"{one.number}/task"):
                    numbers = self._numbers(f"{one.number}/task/{thread}")
                    if numbers[-1] not in _FIRST:
                        os.setpriority(os.PRIO_PROCESS, int(numbers[self._level]), _LOWEST)

    def _numbers(self, thread: str) -> list[str]:
        """Its number in each namespace: first in that of /proc, last in its own."""
        return self._text(f"{thread}/status").partition("NSpid:")[2].splitlines()[0].split()

    def processes(self) -> list["Process"]:
        """The sandbox's processes, also those that have ended and were not waited for."""
        own: list[Process] = []
        ended: list[Process] = []
        for number in filter(str.isdigit, self._names(".")):
            if number != self._me:
                with suppress(OSError):  # it may be gone meanwhile
                    thread = self._living(number)
                    network = self._network_of(thread)
                    if network in (0, self._network):
                        (own if network else ended).append(self._read(number, thread))
        inside = {self._me, *(one.number for one in own)}
        return own + [one for one in ended if one.parent in inside]

    def _living(self, number: str) -> str:
        """A thread of the process that has not ended: the first may have, before the others."""
        if self._network_of(number):
            return number
        threads = (f"{number}/task/{name}" for name in self._names(f"{number}/task"))
        return next(filter(self._network_of, threads), number)

    def _network_of(self, thread: str) -> int:
        """Differs for each namespace; 0 once the thread has ended."""
        with suppress(OSError):
            return os.stat(f"{thread}/net/dev", dir_fd=self._proc).st_ino
        return 0

    def _read(self, number: str, thread: str) -> "Process":
        # What the process calls itself stands in brackets, and may hold any sign.
        fields = self._text(f"{number}/stat").rpartition(")")[2].split()
        memory = _kilobytes(self._text(f"{thread}/status"), "RssAnon", "RssShmem")
        return Process(number, fields[1], sum(map(int, fields[11:15])), memory)

    def _names(self, folder: str) -> list[str]:
        opened = os.open(folder, os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._proc)
        try:
            return os.listdir(opened)  # noqa: PTH208  (a path would lead to what hides it)
        finally:
            os.close(opened)

    def _text(self, name: str) -> str:
        opened = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._proc)
        with os.fdopen(opened, encoding="utf-8", errors="replace") as file:
            return file.read()

    def _too_much(self, own: Sequence["Process"]) -> str:
        if sum(one.ticks for one in own) > self._limits.cpu_seconds * os.sysconf("SC_CLK_TCK"):
            return too_long(self._limits)
        allowed = self._limits.memory_mb * 1024
        # Pages that forks share were counted more than once; only if it matters, count exactly.
        if sum(one.kilobytes for one in own) > allowed and sum(map(self._share, own)) > allowed:
            return "used more memory than allowed"
        return ""

    def _share(self, process: "Process") -> int:
        """Kilobytes of a process, shared pages divided among those who share them."""
        with suppress(OSError):
            return _kilobytes(self._text(f"{process.number}/smaps_rollup"), "Pss_Anon", "Pss_Shmem")
        return process.kilobytes


class Process(NamedTuple):
    """What a process has used, as /proc tells it."""

    number: str
    parent: str
    ticks: int  # of CPU time, its own and of the children it waited for
    kilobytes: int  # of memory that is no file's


def _kilobytes(text: str, *names: str) -> int:
    """The sum of these lines of a file of /proc."""
    fields = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    return sum(int(fields[name].split()[0]) for name in names if name in fields)


# ---- seccomp ----------------------------------------------------------------------------------


class _Comparison(ctypes.Structure):
    """libseccomp's `struct scmp_arg_cmp`."""

    _fields_ = (
        ("arg", ctypes.c_uint),
        ("op", ctypes.c_int),
        ("a", ctypes.c_uint64),
        ("b", ctypes.c_uint64),
    )


class _Program(ctypes.Structure):
    """The kernel's `struct sock_fprog`."""

    _fields_ = (("len", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def compile_filter() -> bytes:
    """The filter of system calls as the kernel wants it; empty where libseccomp is missing."""
    try:
        library = ctypes.CDLL("libseccomp.so.2")
    except OSError:
        return b""
    library.seccomp_init.restype = ctypes.c_void_p
    rules = ctypes.c_void_p(library.seccomp_init(0x7FFF0000))  # allow what no rule names
    pretend = 0x00050000  # do nothing, and say that it is done
    refuse, unknown = pretend | 1, pretend | 38  # EPERM, ENOSYS

    def add(action: int, name: str, *comparisons: tuple[int, int, int, int]) -> None:
        number = library.seccomp_syscall_resolve_name(name.encode())
        if number != -1:  # -1: a call that this libseccomp has not heard of
            array = (_Comparison * len(comparisons))(*(_Comparison(*c) for c in comparisons))
            library.seccomp_rule_add_array(
                rules, ctypes.c_uint32(action), number, len(comparisons), array
            )

    for name in _REFUSED.split():
        add(refuse, name)
    for name in _UNKNOWN.split():
        add(unknown, name)
    for command in (*_F_GET_LOCK, *_F_LEASES, _F_PIPE_SIZE, *_F_HINTS):
        add(refuse, "fcntl", (1, 7, _INT, command))  # 7: equal under a mask
    for buffer in _BUFFERS:
        add(refuse, "setsockopt", (1, 7, _INT, _SOL_SOCKET), (2, 7, _INT, buffer))
    add(pretend, "flock")  # libraries fail without; who is alone need not lock anybody out
    for command in _F_SET_LOCK:
        add(pretend, "fcntl", (1, 7, _INT, command))
    add(pretend, "setsid")  # where the kernel shares the processors among sessions, not threads
    add(refuse, "mmap", (3, 7, _SHARED_ANONYMOUS, _SHARED_ANONYMOUS))
    for flag in (_NEWNS, _NEWUTS, _NEWIPC, _NEWUSER, _NEWPID, _NEWNET, 0x02000000):
        add(refuse, "clone", (0, 7, flag, flag))
    add(unknown, "clone3")  # its flags cannot be read by a filter; libc falls back on clone
    for name in ("socket", "socketpair"):
        add(refuse, name, (0, 1, 1, 0))  # 1: not equal; family 1 is AF_UNIX
    with os.fdopen(os.memfd_create("filter"), "w+b") as file:
        failed = library.seccomp_export_bpf(rules, file.fileno())
        library.seccomp_release(rules)
        file.seek(0)
        return b"" if failed else file.read()


def _load_filter(program: bytes) -> None:
    buffer = ctypes.create_string_buffer(program, len(program))
    header = _Program(len(program) // 8, ctypes.cast(buffer, ctypes.c_void_p))
    _check(_libc().prctl(_PR_SECCOMP, 2, ctypes.byref(header), 0, 0), "seccomp")


# ---- the probe's own process ------------------------------------------------------------------


def tell_capabilities() -> None:
    """Print what `probe` wants to know, as JSON."""
    print(json.dumps(asdict(capabilities())))


def capabilities() -> Capabilities:
    """What this machine offers for a sandbox, found out by forks of this process: a small one."""
    if sys.platform != "linux":
        return Capabilities(False, False, False, missing=("A sandbox needs Linux.",))
    root = os.geteuid() == 0 and _works(lambda: _try_namespaces(_REST))
    own_uid = root and _works(lambda: _become(_FIRST_UID))
    uid = _FIRST_UID if own_uid else None
    users = _works(lambda: _try_namespaces(_REST | _NEWUSER, uid))
    watched = _works(lambda: _try_watching(_REST | _NEWUSER if users else _REST, uid))
    filtered = bool(compile_filter())
    missing = []
    if not own_uid and not users:
        missing.append(
            "The kernel refuses namespaces to this user: allow unprivileged user namespaces "
            "(sysctl kernel.unprivileged_userns_clone=1, or on Ubuntu "
            "kernel.apparmor_restrict_unprivileged_userns=0), run as root, or start the "
            "container with --privileged."
        )
    elif not watched:
        missing.append(
            "/proc does not show the processes of a sandbox: CPU time and memory are bounded for "
            f"each process and not for all {Limits.processes} together; mount /proc without "
            "hidepid, or start the container with --privileged."
        )
    if not filtered:
        missing.append(
            "libseccomp.so.2 is not installed, so the sandbox works without its filter of system "
            "calls: memory that no process maps (memfd_create, shmget) is not bounded, nor, in a "
            "container, what is used in further namespaces; install the package libseccomp2."
        )
    return Capabilities(own_uid or users, own_uid, filtered, users, tuple(missing))


def _try_namespaces(flags: int, uid: int | None = None) -> None:
    if uid is not None:
        _become(uid)
    ids = (os.getuid(), os.getgid())
    _unshare(flags)
    if flags & _NEWUSER:
        _map_ids((_INSIDE, ids[0]), (_INSIDE, ids[1]))
    _mount("", "/", "", _REC | _PRIVATE)
    _mount("tmpfs", "/tmp", "tmpfs")
    _pivot_root_number()


def _try_watching(flags: int, uid: int | None) -> None:
    """Be to a child what a keeper is to the process 1 of a sandbox."""
    if not flags & _NEWUSER:
        uid = None  # where all are in one namespace of users, the keeper stays root
    _try_namespaces(flags, uid)
    watch = Watch(Limits())
    here = os.getpid()
    child = os.fork()
    if child == 0:
        die_with_parent(here)
        hide_from_siblings()
        signal.pause()
    seen = len(watch.processes())
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    if seen != 1:
        raise OSError(f"{seen} processes seen, not 1")


def _works(attempt: Callable[[], None]) -> bool:
    """Whether something that cannot be undone works, tried in a fork."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            attempt()
            code = 0
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1] == 0


# ---- the kernel's own names -------------------------------------------------------------------


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def _set_namespace(space: int) -> None:
    _check(_libc().setns(space, 0), "setns")


def _unshare(flags: int) -> None:
    _check(_libc().unshare(flags), "unshare")


def _mount(source: str, target: str, kind: str, flags: int = 0, options: str = "") -> None:
    result = _libc().mount(
        source.encode(), os.fsencode(target), kind.encode(), ctypes.c_ulong(flags), options.encode()
    )
    _check(result, f"mount {target}")


def _pivot_root_number() -> int:
    machine = platform.machine()
    if machine not in _PIVOT_ROOT:
        raise OSError(f"no sandbox on {machine} processors")
    return _PIVOT_ROOT[machine]


def _map_ids(uid: tuple[int, int], gid: tuple[int, int]) -> None:
    """Tell the new user namespace which one user it has: (inside, outside)."""
    Path("/proc/self/uid_map").write_text(f"{uid[0]} {uid[1]} 1")
    with suppress(FileNotFoundError):
        Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/gid_map").write_text(f"{gid[0]} {gid[1]} 1")


def _become(uid: int) -> None:
    if os.getgroups():
        os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    # Changing the user makes /proc/self root's; its uid_map has to be written yet.
    _check(_libc().prctl(_PR_DUMPABLE, 1, 0, 0, 0), "dumpable")


def _drop_capabilities() -> None:
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)  # version 3 of the call, this process
    _check(_libc().capset(header, (ctypes.c_uint32 * 6)()), "capset")


def hide_from_siblings() -> None:
    """Let no process of the same user look into this one."""
    if sys.platform == "linux":
        _libc().prctl(_PR_DUMPABLE, 0, 0, 0, 0)

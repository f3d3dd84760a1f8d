"""What holds for every process here: how it is started, ends, and stays by itself."""

import ctypes
import os
import signal
import site
import sys
import threading
from contextlib import suppress
from pathlib import Path

from autograder.isolation import kernel, scratch

PACKAGE = Path(__file__).parents[1]  # the autograder itself
RARELY = (20_000, 20, 20)  # thresholds of the garbage collector in processes that end soon
MANY = 1 << 16  # files; a sandbox can have a quarter of that under way
HOST = "student"  # what a sandbox takes for its machine's name
_UMASK = 0o022  # inside; the instructor's may hide from a student's user what the new root holds


def hear_of_children() -> None:
    """Have this process told when one of its own ends, however it was started itself."""
    in_main = threading.current_thread() is threading.main_thread()
    if in_main and signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})


def send_many_files() -> None:
    """Let this process send files while others of its account have many under way.

    The kernel counts them for each account, and refuses who may not have so many open. An ordinary
    user's sandboxes are his: a student's process that sends thousands to nobody kept all from it.
    """
    if sys.platform == "linux":
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = MANY if hard == resource.RLIM_INFINITY else min(MANY, hard)
        if soft != resource.RLIM_INFINITY and soft < most:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def wake(*_: object) -> None:
    """A signal's handler that does nothing, so that a poll wakes up when it comes."""


def python_command(module: str, function: str, *arguments: str) -> list[str]:
    """The command that calls a function of this package in a new Python.

    With `-m` the package would have to be installed or the working directory be the course.
    """
    call = f"from autograder.isolation.{module} import {function}; {function}(*sys.argv[1:])"
    code = f"import sys; sys.path.append({str(PACKAGE.parent)!r}); {call}"
    return [sys.executable, "-P", "-c", code, *arguments]


def clean_environment() -> dict[str, str]:
    """The environment of a student's process: nothing of the instructor's."""
    ours = environment_at(scratch.HOME) | {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "TMPDIR": f"{scratch.DISK}/tmp",
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


def forget_umask() -> None:
    """What is made from now on can be read by all users, whoever started the grader."""
    os.umask(_UMASK)


def use_large_pages() -> None:
    """Gather this process's memory in large pages: a fork then has far less to copy.

    Only many forks gain back the time that it takes: a server that makes few goes without.
    """
    if sys.platform != "linux":
        return
    for line in Path("/proc/self/maps").read_text().splitlines():
        fields = line.split()
        if fields[1] == "rw-p" and fields[4] == "0" and "[stack]" not in line:
            first, last = (int(end, 16) for end in fields[0].split("-"))
            # Linux before 6.1 does not know it and says so; nothing is lost.
            kernel.libc().madvise(
                ctypes.c_void_p(first), ctypes.c_size_t(last - first), kernel.MADV_COLLAPSE
            )


def say_nothing() -> None:
    """What this process writes to its standard streams goes nowhere from now on."""
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    os.close(null)


def go_first() -> None:
    """If the machine runs out of memory, this process goes first."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when its parent ends; nothing where it cannot.

    Where the parent, given by its number, has ended meanwhile, end now. A parent outside of a
    process's namespace has no number in it.
    """
    if sys.platform == "linux":
        kernel.libc().prctl(kernel.PR_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        if os.getppid() not in (parent, 0):
            os._exit(1)


def end_all_others() -> bool:
    """In a sandbox's first process: end all others in it but process 1; whether there were any.

    Elsewhere nothing is done: there these would be all processes of a person's.
    """
    if (os.getpid(), os.getppid(), os.uname().nodename) == (2, 0, HOST):
        with suppress(ProcessLookupError):  # there is no other
            os.kill(-1, signal.SIGKILL)
            return True
    return False


def hide_from_siblings() -> None:
    """Let no process of the same user look into this one."""
    if sys.platform == "linux":
        kernel.libc().prctl(kernel.PR_DUMPABLE, 0, 0, 0, 0)

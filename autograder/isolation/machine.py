"""What this machine offers for a sandbox, found out by trying (`probe`).

Limits are no part of it that control groups (cgroup v2: memory.max, pids.max) would keep. A kernel
delegates them to an ordinary user only where systemd runs a session of that user's, and to root
only where the controllers of memory and processes belong to version 2: in containers the tree is
mostly read-only, and where version 1 holds the controllers, version 2 has none. So what is there
without them has to suffice anyway: limits for each process (`limits`) and, for all processes of a
sandbox together, looks at /proc (`resources`). A group for each sandbox would be one more thing
to make and, after a grader that was killed, to clear away: a directory outlives its processes,
unlike all else here.
"""

import functools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from autograder.isolation import kernel, processes, resources, seccomp
from autograder.isolation.limits import Limits

FIRST_UID = 60000  # of students' processes: where no person's account lies
INSIDE = 1000  # the uid that a student's process sees as its own


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
        return try_out()
    processes.hear_of_children()
    done = subprocess.run(
        processes.python_command("machine", "tell"), capture_output=True, text=True, check=False
    )
    if done.returncode:
        return Capabilities(False, False, False, missing=(f"The probe failed: {done.stderr}",))
    found: dict[str, Any] = json.loads(done.stdout)
    found["missing"] = tuple(found["missing"])
    return Capabilities(**found)


def tell() -> None:
    """Print what `probe` wants to know, as JSON."""
    print(json.dumps(asdict(try_out())))


def try_out() -> Capabilities:
    """What this machine offers for a sandbox, found out by forks of this process: a small one."""
    if sys.platform != "linux":
        return Capabilities(False, False, False, missing=("A sandbox needs Linux.",))
    root = os.geteuid() == 0 and _works(lambda: _try_namespaces(kernel.REST))
    own_uid = root and _works(lambda: kernel.become(FIRST_UID))
    uid = FIRST_UID if own_uid else None
    users = _works(lambda: _try_namespaces(kernel.REST | kernel.NEWUSER, uid))
    watched = _works(
        lambda: _try_watching(kernel.REST | kernel.NEWUSER if users else kernel.REST, uid)
    )
    filtered = bool(seccomp.compile_filter())
    spaces = own_uid or users
    missing = [_NO_NAMESPACES] if not spaces else [] if watched else [_NOT_WATCHED]
    missing += [] if filtered else [_NOT_FILTERED]
    return Capabilities(spaces, own_uid, filtered, users, tuple(missing))


_NO_NAMESPACES = (
    "The kernel refuses namespaces to this user: allow unprivileged user namespaces "
    "(sysctl kernel.unprivileged_userns_clone=1, or on Ubuntu "
    "kernel.apparmor_restrict_unprivileged_userns=0), run as root, or start the "
    "container with --privileged."
)
_NOT_WATCHED = (
    "/proc does not show the processes of a sandbox: CPU time and memory are bounded for "
    f"each process and not for all {Limits.processes} together; mount /proc without "
    "hidepid, or start the container with --privileged."
)
_NOT_FILTERED = (
    "libseccomp.so.2 is not installed, so the sandbox works without its filter of system "
    "calls: memory that no process maps (memfd_create, shmget) is not bounded, nor, in a "
    "container, what is used in further namespaces; install the package libseccomp2."
)


def _try_namespaces(flags: int, uid: int | None = None) -> None:
    if uid is not None:
        kernel.become(uid)
    ids = (os.getuid(), os.getgid())
    kernel.unshare(flags)
    if flags & kernel.NEWUSER:
        kernel.map_ids((INSIDE, ids[0]), (INSIDE, ids[1]))
    kernel.mount("", "/", "", kernel.REC | kernel.PRIVATE)
    kernel.mount("tmpfs", "/tmp", "tmpfs")
    kernel.pivot_root_number()


def _try_watching(flags: int, uid: int | None) -> None:
    """Be to a child what a monitor is to the process 1 of a sandbox."""
    if not flags & kernel.NEWUSER:
        uid = None  # where all are in one namespace of users, the monitor stays root
    _try_namespaces(flags, uid)
    watch = resources.Watch(Limits())
    here = os.getpid()
    child = os.fork()
    if child == 0:
        processes.die_with_parent(here)
        processes.hide_from_siblings()
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

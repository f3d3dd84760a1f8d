"""The limits that the kernel keeps for each process (rlimits), and the words for an end by them.

What all processes of a sandbox use together is watched by `autograder.isolation.resources`.
"""

import os
import platform
import signal
import sys
from dataclasses import dataclass

MOST_FILES = 128  # that a student's process has open
MOST_SIGNALS = 1000  # that wait, timers too; an ordinary user's sandboxes and he have them together
_WORKER_SECONDS, _WORKER_PROCESSES = 900, 64


@dataclass(frozen=True)
class Limits:
    """What one student's sandbox may use, all its processes taken together."""

    memory_mb: int = 4096
    cpu_seconds: int = 120
    processes: int = 64
    file_mb: int = 64  # one file
    disk_mb: int = 128  # home and /tmp, which lie in memory


def limit_worker(megabytes: int, *, own_uid: bool) -> None:
    """Bound what a trusted process uses: each file that it writes, CPU time, processes.

    `own_uid` says whether it has a user id that nobody else has.
    """
    import resource

    _set_limit(resource.RLIMIT_CORE, 0)
    _set_limit(resource.RLIMIT_FSIZE, megabytes << 20)
    _set_limit(resource.RLIMIT_CPU, _WORKER_SECONDS, _WORKER_SECONDS + 1)
    _limit_processes(_WORKER_PROCESSES, alone=own_uid)


def limit(limits: Limits, *, own_uid: bool | None) -> None:
    """Set the limits that the kernel checks in each process of a student's.

    `own_uid` says whether it has a user id that nobody else has; None without a sandbox.
    """
    import resource

    megabyte = 1 << 20
    _set_limit(resource.RLIMIT_CORE, 0)
    _set_limit(resource.RLIMIT_FSIZE, limits.file_mb * megabyte)
    _set_limit(resource.RLIMIT_NOFILE, MOST_FILES)
    _set_limit(resource.RLIMIT_CPU, limits.cpu_seconds, limits.cpu_seconds + 1)
    if sys.platform == "linux":  # elsewhere the kernel refuses or ignores these
        _set_limit(resource.RLIMIT_AS, limits.memory_mb * megabyte)
        _set_limit(resource.RLIMIT_MEMLOCK, 0)
        _set_limit(resource.RLIMIT_MSGQUEUE, 0)
        _set_limit(resource.RLIMIT_SIGPENDING, MOST_SIGNALS)
    if own_uid is not None:
        _limit_processes(limits.processes, alone=own_uid or _counts_inside())


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

"""The sandbox of the trusted processes: they run the tests, and need nothing but that.

Not because it is hostile: what a student wrote is parsed there, and values of a student's arrive
there. Should a student ever get hold of it, it holds one submission and the tests. It sees Python,
the course's own modules and an empty scratch disk, no folder of the class, no network and no other
process, and can change nothing. Its fork server goes in once; each worker then gets a
scratch disk and process numbers of its own and gives up every right before it reads a byte.
"""

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder.isolation import jail, limits, machine, namespaces, processes, scratch
from autograder.isolation.machine import Capabilities
from autograder.isolation.seccomp import compile_filter

_FIRST_UID = 65000  # of workers, where each can have one: neither a person's nor a student's
_UIDS = 400
_SCRATCH_MB = 64


@dataclass(frozen=True)
class Confinement:
    """What a trusted process is shut in with."""

    found: Capabilities
    readable: tuple[str, ...]  # besides the system and Python
    private: tuple[str, ...]  # also where it lies in a folder of the system's
    seccomp: bytes

    @classmethod
    def around(cls, readable: Sequence[str], private: Sequence[str] = ()) -> "Confinement | None":
        """What this machine offers; None if that is nothing."""
        found = machine.probe()
        if not found.namespaces:
            return None
        return cls(found, tuple(readable), tuple(private), compile_filter())

    def leave(self) -> None:
        """In the process that stays outside: the next child that is forked goes in."""
        namespaces.leave_the_machine(self.found)

    def go_in(self) -> "Inside":
        """In that child, its process 1: see nothing of the machine from now on."""
        jail.build_jail([*map(Path, self.readable)], [*map(Path, self.private)])
        os.chdir("/")
        os.environ.update(processes.environment_at(scratch.HOME))
        os.environ["TMPDIR"] = f"{scratch.DISK}/tmp"
        tempfile.tempdir = None  # what was found on the machine is not in here
        return Inside(self)


class Inside:
    """A fork server in its sandbox, which forks workers."""

    def __init__(self, confinement: Confinement) -> None:
        self._confinement = confinement
        self._own = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
        self._count = 0

    def fork(self) -> int:
        """Fork a worker that is the first process of its own namespace."""
        self._count += 1
        return namespaces.fork_apart(self._own)

    def give_up(self) -> None:
        """In a worker, before it reads anything: keep no right, see no other process."""
        os.close(self._own)
        found = self._confinement.found
        uid = _FIRST_UID + self._count % _UIDS if found.own_uid else None
        namespaces.own_mounts()
        jail.make_scratch(_SCRATCH_MB, uid)
        jail.hide_processes()
        os.chdir(scratch.HOME)
        scratch.ROOTS[:] = [scratch.DISK]
        processes.say_nothing()
        limits.limit_worker(_SCRATCH_MB, own_uid=found.own_uid)
        namespaces.keep_no_right(uid, self._confinement.seccomp)
        processes.hide_from_siblings()

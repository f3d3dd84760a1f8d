"""The walls around the trusted process: it runs the tests, and needs nothing but that.

Not because it is hostile: what a student wrote is parsed there, and values of a student's arrive
there. Should a student ever get hold of it, it holds one submission and the tests. It sees Python,
the course's own modules and an empty scratch disk, no folder of the class, no network and no other
process, and can change nothing. It is walled in once; each worker, a fork of it, then gets a
scratch disk and process numbers of its own and gives up every right before it reads a byte.
"""

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder.isolation import sandbox, scratch
from autograder.isolation.sandbox import Capabilities

_FIRST_UID = 65000  # of workers, where each can have one: neither a person's nor a student's
_UIDS = 400
_SCRATCH_MB = 64


@dataclass(frozen=True)
class Walls:
    """What a trusted process is shut in with."""

    found: Capabilities
    readable: tuple[str, ...]  # besides the system and Python
    seccomp: bytes

    @classmethod
    def around(cls, readable: Sequence[str]) -> "Walls | None":
        """The walls that this machine offers; None if it has none."""
        found = sandbox.probe()
        if not found.namespaces:
            return None
        return cls(found, tuple(readable), sandbox.compile_filter())

    def leave(self) -> None:
        """In the process that stays outside: the next child that is forked goes in."""
        sandbox.leave_the_machine(self.found)

    def go_in(self) -> "Inside":
        """In that child, its process 1: see nothing of the machine from now on."""
        sandbox.build_jail([Path(path) for path in self.readable])
        os.chdir("/")
        os.environ.update(sandbox.environment_at(sandbox.HOME))
        os.environ["TMPDIR"] = f"{sandbox.SCRATCH}/tmp"
        tempfile.tempdir = None  # what was found on the machine is not in here
        return Inside(self)


class Inside:
    """A process within its walls, which forks workers."""

    def __init__(self, walls: Walls) -> None:
        self._walls = walls
        self._own = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
        self._count = 0

    def fork(self) -> int:
        """Fork a worker that is the first process of its own namespace."""
        self._count += 1
        return sandbox.fork_apart(self._own)

    def give_up(self) -> None:
        """In a worker, before it reads anything: keep no right, see no other process."""
        os.close(self._own)
        found = self._walls.found
        uid = _FIRST_UID + self._count % _UIDS if found.own_uid else None
        sandbox.own_mounts()
        sandbox.make_scratch(_SCRATCH_MB, uid)
        sandbox.hide_processes()
        os.chdir(sandbox.HOME)
        scratch.ROOTS[:] = [sandbox.SCRATCH]
        sandbox.say_nothing()
        sandbox.limit_worker(_SCRATCH_MB, found)
        sandbox.keep_no_right(uid, self._walls.seccomp)
        sandbox.hide_from_siblings()

"""What all processes of one sandbox use together: read from /proc, held against its limits."""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from autograder.isolation.limits import MOST_FILES, Limits, too_long

LONGEST_PAUSE, SHORTEST_PAUSE = 0.5, 0.02  # seconds between two looks at a sandbox
FILLED = 4 << 20  # kilobytes of memory that one core fills in a second, at most
_FIRST = ("1", "2")  # inside: process 1, and the student's first; numbers that none gets again
_LOWEST = 19  # priority
# Memory that is no file's, in lines of /proc; also what a process has had put on a disk (swap), and
# huge pages that somebody has put aside.
_HELD = ("RssAnon", "RssShmem", "VmSwap", "HugetlbPages")
_SHARE = ("Pss_Anon", "Pss_Shmem", "SwapPss", "Private_Hugetlb")
# Kilobytes that the kernel keeps, for no process, of what was sent and nobody reads; nobody in a
# sandbox can make room for more. Of sockets each holds its own, with what goes beyond the last.
WAITING = {"socket": 256, "pipe": 64}


class Watch:
    """Looks at what the processes of one sandbox use, all taken together.

    What it reads is the /proc from before it was hidden, which shows others too: so it also works
    where the kernel refuses a sandbox a /proc of its own, as in most containers. A process belongs
    to the sandbox if it is in its network namespace, which none can leave and none can conceal: the
    files of each in /proc have inode numbers of their own. One that has ended and was not waited
    for is in no namespace any more; it belongs where its parent does.
    """

    def __init__(self, limits: Limits) -> None:
        """Make it in the sandbox's namespaces, before `jail.hide_processes`."""
        self._limits = limits
        self.pause = self._pause(0, 0.0)  # seconds until the next look
        self._proc = os.open("/proc", os.O_RDONLY | os.O_CLOEXEC)
        self._me = os.readlink("self", dir_fd=self._proc)
        self._network = self._network_of("self") or -1
        self._first = ""  # the number of the student's first process, once it is known
        self.others = 0.0  # seconds of processors of all but that, when it last looked
        self._level = len(self._numbers("self")) - 1  # of this process's numbers, its own

    def look(self) -> str:
        """What they used too much of; empty if nothing."""
        started = time.perf_counter()
        own = self.processes()
        words = self._too_much(own)
        self._step_back(own)
        self.others = self._besides(own)
        used = sum(one.kilobytes for one in own)
        self.pause = self._pause(used, time.perf_counter() - started)
        return words

    def besides(self) -> float:
        """Seconds of processors that all but the student's first have used."""
        return self._besides(self.processes())

    def _besides(self, own: Sequence["Process"]) -> float:
        numbers = {one.number for one in own}
        if self._first not in numbers:
            self._first = next(filter(self._is_first, numbers), "")
        ticks = sum(one.ticks for one in own if one.number != self._first)
        return ticks / os.sysconf("SC_CLK_TCK")

    def _is_first(self, number: str) -> bool:
        with suppress(OSError, IndexError):  # it may be gone meanwhile
            return self._numbers(number)[-1] == _FIRST[1]
        return False

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
        """Its number in each namespace: first in that of /proc, last in its own.

        What it calls itself stands in the first line, with no end of a line in it.
        """
        lines = self._text(f"{thread}/status").partition("\nNSpid:")[2]
        return lines.split("\n", 1)[0].split()

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
        memory = _kilobytes(self._text(f"{thread}/status"), *_HELD)
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
        used = sum(one.kilobytes for one in own)
        # Each of these takes time: what may wait in lines is counted only if it matters, and
        # exactly only then what forks share, of which pages were counted more than once.
        if allowed - used < self._limits.processes * MOST_FILES * WAITING["socket"]:
            waiting = self._waiting(own)
            if used + waiting > allowed and sum(map(self._share, own)) + waiting > allowed:
                return "used more memory than allowed"
        return ""

    def _waiting(self, own: Sequence["Process"]) -> int:
        """Kilobytes that may wait in all sockets and pipes that are open; each counts once."""
        found: set[str] = set()
        for one in own:
            with suppress(OSError):  # it may be gone meanwhile
                for thread in self._names(f"{one.number}/task"):  # some may have files of its own
                    found.update(self._files(f"{one.number}/task/{thread}/fd"))
        return sum(WAITING.get(name.partition(":")[0], 0) for name in found)

    def _files(self, folder: str) -> Iterator[str]:
        """What is open there, such as "socket:[123]"."""
        with suppress(OSError):
            for name in self._names(folder):
                with suppress(OSError):
                    yield os.readlink(f"{folder}/{name}", dir_fd=self._proc)

    def _share(self, process: "Process") -> int:
        """Kilobytes of a process, shared pages divided among those who share them."""
        with suppress(OSError):
            return _kilobytes(self._text(f"{process.number}/smaps_rollup"), *_SHARE)
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

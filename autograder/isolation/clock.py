"""What a piece of work takes, without the time in which it waits for a processor.

A busy machine makes everything take longer; nobody may lose points by that. So a clock does not
count the time during which the kernel had given the processors to others. What is asleep though
(it waits for nothing that comes, or on purpose) uses up its time, and on the wall nothing takes
longer than `HANGS` times what it may.
"""

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

HANGS = 10.0  # times as long as it may take is the most that anything gets on the wall
SOON = 0.05  # seconds between two looks, at least
_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


@dataclass(frozen=True)
class Used:
    """What a process has used since it began, in seconds."""

    cpu: float = 0.0  # of its own and of its children that have ended
    waited: float | None = 0.0  # for a processor; None if the kernel does not tell
    runs: bool = False  # whether it could run now
    others: float = 0.0  # of processors, by all others in its sandbox, as far as that is told


class Usage:
    """Reads what one process has used, from files that were opened where they can be seen."""

    def __init__(self, files: Sequence[int]) -> None:
        """Take over the open files `stat` and `schedstat` of a process, the second if there is."""
        self._files = list(files)

    @classmethod
    def of(cls, process: int | str) -> "Usage":
        """Of a process that is to be seen here; of one that is not, nothing is told."""
        return cls(open_files(process))

    def read(self) -> Used | None:
        """What it has used; None if nobody knows, or once it has ended."""
        try:
            stat, waited = self._text(0), self._waited()
            # What a process calls itself stands in brackets, and may hold any sign.
            fields = stat[stat.rindex(b")") + 2 :].split()
            return Used(sum(map(int, fields[11:15])) / _TICKS, waited, fields[0] == b"R")
        except (OSError, IndexError, ValueError):
            return None

    def close(self) -> None:
        """Close its files."""
        for file in self._files:
            os.close(file)
        self._files = []

    def _waited(self) -> float | None:
        if len(self._files) < 2:
            return None
        return int(self._text(1).split()[1]) / 1e9

    def _text(self, place: int) -> bytes:
        return os.pread(self._files[place], 1000, 0)


def open_files(process: int | str) -> list[int]:
    """The files from which `Usage` reads, as far as they are to be seen here."""
    found: list[int] = []
    with suppress(OSError):
        for name in ("stat", "schedstat"):
            found.append(os.open(f"/proc/{process}/{name}", os.O_RDONLY | os.O_CLOEXEC))
    return found


_here: Usage | None = None


def here() -> Usage:
    """What this process has used; asked first where /proc can be seen."""
    global _here
    if _here is None:
        _here = Usage.of("self")
    return _here


def _be_another() -> None:
    global _here
    _here = None  # the files are those of the process that was forked


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_be_another)


_doubts = 0


def doubt(*, is_certain: bool = False) -> None:
    """Something ended that others may have held up or killed; or certainly by its own work."""
    global _doubts
    _doubts += not is_certain


def doubts() -> int:
    """How often something ended that others may have had a part in."""
    return _doubts


class Readable(Protocol):
    """Knows what a process has used."""

    def read(self) -> Used | None:
        """What it has used; None if nobody knows."""
        ...


class Over(Exception):
    """The time is over."""


class Clock:
    """Counts what a student's process and this one use together: one of them works at a time."""

    def __init__(self, seconds: float, *processes: "Readable") -> None:
        """Start it.

        Args:
            seconds: that the work may take.
            processes: those who do it, the student's first.
        """
        self.seconds = seconds
        self._processes = processes
        self._began = [process.read() for process in processes]
        self._start = time.monotonic()
        self._look_at = self._start + seconds
        self._worked = 0.0
        self.is_over = False  # whether it has told that the time is over

    def left(self) -> float:
        """Seconds on the wall until somebody should ask again; raises Over."""
        now = time.monotonic()
        if now >= self._look_at:
            used, most = self.used(), self._start + HANGS * self.seconds
            if used >= self.seconds or now >= most:
                doubt(is_certain=self._worked >= self.seconds)
                self.is_over = True
                raise Over
            self._look_at = min(now + max(SOON, self.seconds - used), most)
        return self._look_at - now

    def worked(self) -> float:
        """Seconds that processors have worked so far."""
        self.used()
        return self._worked

    def used(self) -> float:
        """Seconds of work, and of sleep, so far."""
        passed = time.monotonic() - self._start
        pairs = [
            (before, now)
            for process, before in zip(self._processes, self._began, strict=True)
            if before and (now := process.read())
        ]
        if not pairs or len(pairs) < len(self._processes):
            return passed
        others = sum(now.others - before.others for before, now in pairs)
        self._worked = worked = others + sum(now.cpu - before.cpu for before, now in pairs)
        waits = [_between(before.waited, now.waited) for before, now in pairs]
        awake = passed - sum(wait for wait in waits if wait is not None)
        # while threads or processes of its own work, a process waits by its own doing
        at_work = min(passed, worked)
        if pairs[0][1].runs:
            return worked if None in waits else at_work
        return passed if None in waits else max(awake, at_work)


def _between(before: float | None, now: float | None) -> float | None:
    return None if before is None or now is None else now - before

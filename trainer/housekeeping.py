"""What a long training needs around its updates: a stopwatch, a stop by signal, and a log."""

import json
import os
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Protocol


class Writer(Protocol):
    """What of TensorBoard's SummaryWriter is used."""

    def add_scalar(self, tag: str, value: float, step: int) -> None:
        """Write one number."""
        ...

    def flush(self) -> None:
        """Write everything to the disk."""
        ...


class Stopwatch:
    """Processor time of this process and time by the clock, while it runs."""

    def __init__(self, cpu: float = 0.0, seconds: float = 0.0) -> None:
        self._cpu, self._seconds = cpu, seconds
        self._since: tuple[float, float] | None = None

    def read(self) -> tuple[float, float]:
        """Seconds of processor time, and by the clock."""
        if self._since is None:
            return self._cpu, self._seconds
        cpu, seconds = self._since
        return self._cpu + time.process_time() - cpu, self._seconds + time.perf_counter() - seconds

    def start(self) -> None:
        """Go on counting."""
        self._since = (time.process_time(), time.perf_counter())

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Count nothing meanwhile."""
        self._cpu, self._seconds = self.read()
        self._since = None
        try:
            yield
        finally:
            self.start()


class Interrupted(Exception):
    """A signal arrived while something ran that may be left at once."""


@dataclass
class Stop:
    """Whether a signal asked to stop; a second one of its kind acts at once."""

    name: str | None = None
    leave_at_once: bool = False

    @contextmanager
    def noticing(self) -> Iterator[None]:
        """Notice Ctrl-C and SIGTERM, in place of dying from them."""
        before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

        def notice(number: int, frame: FrameType | None) -> None:
            self.name = signal.Signals(number).name
            signal.signal(number, signal.SIG_DFL)
            if self.leave_at_once:
                raise Interrupted

        for number in before:
            signal.signal(number, notice)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    @contextmanager
    def leaving_at_once(self) -> Iterator[None]:
        """Leave the block when a signal comes; it must be one that nobody misses."""
        self.leave_at_once = True
        try:
            if self.name is None:
                yield
        except Interrupted:
            pass
        finally:
            self.leave_at_once = False


class Log:
    """The run's log: a JSON object a line, and TensorBoard where it is wanted."""

    def __init__(self, path: Path | None, board: Writer | None = None) -> None:
        self.path, self.board = path, board

    def write(self, kind: str, record: Mapping[str, Any]) -> None:
        """Append a record; its numbers go to TensorBoard, too."""
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"kind": kind, **record}) + "\n")
        if self.board is not None:
            for name, value in record.items():
                if isinstance(value, int | float) and name != "step":
                    self.board.add_scalar(f"{kind}/{name}", value, record["step"])

    def flush(self) -> None:
        """Let the disk have everything that was written."""
        if self.path is not None and self.path.exists():
            with self.path.open("rb") as file:
                os.fsync(file.fileno())
        if self.board is not None:
            self.board.flush()

    def length(self) -> int:
        """Bytes so far."""
        return self.path.stat().st_size if self.path is not None and self.path.exists() else 0

    def cut(self, length: int) -> None:
        """Forget what came after so many bytes.

        Raises:
            ValueError: if the log is shorter than that.
        """
        if self.path is None:
            return
        if self.length() < length:
            raise ValueError(f"{self.path} is cut: it had {length:,} bytes at the checkpoint")
        if length or self.path.exists():
            with self.path.open("r+b") as file:
                file.truncate(length)

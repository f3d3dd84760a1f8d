"""The parts of a task: which one is under way, and which are not to be done again.

A worker that is lost takes all of its task along, unless it has said what it was doing: then the
task can be done once more without that part. It says so through the pipe that its result goes to.
And a part that uses far more of a processor than it may is ended by the kernel, together with the
worker: where C code works without end no handler of Python's runs, and no exception ends it.
"""

import ctypes
import os
import signal
import struct
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress

HEAD = struct.Struct("<cQ")  # what comes through the pipe: its kind, and its length
UNDER_WAY = b"P"  # the kind of such a message: a part's name, or nothing once it is done
LONGEST = 1000  # bytes of a name
MOST = 100_000  # messages of one worker
SPARE = 5.0  # seconds of work more than a part may take, for what can be ended in order
SPENT = int(signal.SIGPROF) if hasattr(signal, "SIGPROF") else 0  # its exit status


class Parts:
    """What a task says of its parts, and is told of them."""

    def __init__(self, pipe: int | None = None, without: Mapping[str, str] | None = None) -> None:
        """Begin with none.

        Args:
            pipe: where to say which part is under way; None if nobody listens.
            without: parts not to be done, and how each ended a worker: "timeout" or "died".
        """
        self.without = dict(without or {})
        self._pipe = pipe
        if pipe is not None:
            _end_when_spent()

    @contextmanager
    def under_way(self, name: str, seconds: float) -> Generator[None]:
        """What happens inside is a part that may use about so many seconds of a processor."""
        if self._pipe is None:
            yield
            return
        self._say(name)
        signal.setitimer(signal.ITIMER_PROF, seconds + SPARE)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            self._say("")

    def _say(self, name: str) -> None:
        assert self._pipe is not None
        body = name.encode(errors="replace")[:LONGEST]
        os.write(self._pipe, HEAD.pack(UNDER_WAY, len(body)) + body)  # so short that it goes whole


class Progress:
    """What the other end of a worker's pipe has heard of parts."""

    def __init__(self) -> None:
        self.name = ""  # of the part under way
        self._count = 0

    def take_from(self, heard: bytearray) -> None:
        """Take the messages about parts away from the beginning of what was heard."""
        start = 0
        while self._count < MOST and len(heard) >= start + HEAD.size:
            kind, length = HEAD.unpack_from(heard, start)
            end = start + HEAD.size + length
            if kind != UNDER_WAY or length > LONGEST or len(heard) < end:
                break
            self.name = heard[start + HEAD.size : end].decode(errors="replace")
            self._count += 1
            start = end
        del heard[:start]


def _end_when_spent() -> None:
    """Let this process end when its timer of work rings, with an exit status that says so.

    By a handler in C, which runs whatever runs here. What a kernel does without a handler, it does
    not to the first process of a namespace, and a worker in its sandbox is one.
    """
    with suppress(OSError, AttributeError):
        libc = ctypes.CDLL(None)
        libc.signal(SPENT, ctypes.cast(libc._exit, ctypes.c_void_p))

"""Tasks side by side, each in a worker: a fresh fork of a trusted process that made ready once.

That process is a fork server (`worker_server`): it only forks, kills and waits for workers, so its
memory does not grow with the number of tasks. The caller reads what a worker sends from a pipe of
the worker's own. Nothing outlives its owner: the fork server ends when its caller is gone, the
workers when the fork server is gone.
"""

import json
import os
import select
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from autograder.common.course import CourseError
from autograder.common.names import open_streams
from autograder.isolation import processes
from autograder.isolation.batch import LARGEST, TOO_LONG, Batch, Entry, Work
from autograder.isolation.outcomes import Doubtful, Lost, Unwell
from autograder.isolation.parts import HEAD
from autograder.isolation.worker_server import FRAME, Task

__all__ = ["Doubtful", "Lost", "Pool", "Unwell"]

T = TypeVar("T")

_RESTARTS = 12  # of the fork server, without a result in between; each task may end it twice
_GRACE = 30.0  # seconds for a killed worker to be waited for


class Pool:
    """Workers that start from the same state.

    `start(*arguments)` runs once in the fork server, `task(state, item)` in a fork of it for
    each item and returns bytes. Both must be functions at the top of an importable module; items
    and arguments must be fit for JSON. If the state has a method `close`, it is called at the end.

    The fork server begins as a new Python that knows nothing of its caller, in a bare environment
    (`processes.clean_environment`). If given, `first(*firsts)` runs in it as it is then, and what
    it returns is `start`'s first argument; the caller's environment and paths come after.

    With `parts`, `task` also gets `parts`, a `Parts`: when a worker is lost while a part is under
    way, its task is done once more without that part.

    Where `many` tasks are expected, more is made ready for them (`processes.use_large_pages`).

    With `pack`, what `task` gets is `pack(item)`: something fit for JSON, and bytes, which the fork
    server itself never sees. With `readable`, the fork server and its workers are in a sandbox once
    it is ready (see `autograder.isolation.confine`), and see nothing but the system and these
    paths, and nothing in the folders that are `private`.
    """

    def __init__(
        self,
        jobs: int,
        start: Callable[..., Any],
        task: Task,
        arguments: Sequence[Any] = (),
        first: Callable[..., Any] | None = None,
        firsts: Sequence[Any] = (),
        pack: Callable[[Any], tuple[Any, bytes]] | None = None,
        readable: Sequence[str] | None = None,
        *,
        private: Sequence[str] = (),
        parts: bool = False,
        look_every: float = 3600.0,
        many: bool = False,
    ) -> None:
        if not hasattr(os, "fork"):
            raise CourseError(
                "Grading side by side needs a system that can fork processes, and this one "
                "cannot; grade on Linux, for example in WSL or in a virtual machine."
            )
        self._jobs = max(1, jobs)
        self._pack = pack
        self._parts = parts
        self._look_every = look_every
        self._orders = (
            {
                "first": first and _dotted(first),
                "arguments": list(firsts),
                "keeps": not sys.dont_write_bytecode,  # the bare environment says no
                "many": many,
            },
            {
                "start": _dotted(start),
                "task": _dotted(task),
                "arguments": list(arguments),
                "readable": None if readable is None else list(readable),
                "private": list(private),
            },
        )
        self._server: _Line | None = None
        self._deaths = 0

    def start(self) -> None:
        """Begin to make ready; `run` waits until it is done."""
        if self._server is None:
            self._server = _Line(self._orders)

    def run(self, tasks: Iterable[T], seconds: float) -> Iterator[tuple[T, bytes | Lost]]:
        """Each task with its result, in the order in which they are done.

        A worker that takes longer than `seconds` is killed. `tasks` is read as workers get free. If
        it comes to an end, it is asked again, every `look_every` seconds, until no worker runs.
        """
        batch = Batch(iter(tasks), seconds)
        try:
            yield from self._hand_out(batch)
            while batch.running:
                batch.read_ahead()
                done = [*self._wait(batch)]
                done += self._hand_out(batch)  # they work while the caller looks at what is done
                yield from done
        finally:
            if batch.running:  # the caller stops before the end
                for work in batch.running.values():
                    os.close(work.pipe)
                self.close()

    def close(self) -> None:
        """End the fork server and all that came from it."""
        if self._server:
            self._server.close()
            self._server = None

    def __enter__(self) -> "Pool":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _hand_out(self, batch: Batch[T]) -> Iterator[tuple[T, Lost]]:
        """Give tasks to workers until as many run as may."""
        while len(batch.running) < self._jobs and (entry := batch.take()):
            while not self._is_ready() and self._deaths <= _RESTARTS:
                self._start_again()
            if self._server is None:
                yield entry.task, Lost(f"the warm process ended {self._deaths} times")
                continue
            read_fd, write_fd = os.pipe()
            os.set_blocking(read_fd, False)
            batch.number += 1
            until = time.monotonic() + batch.seconds
            batch.running[batch.number] = Work(entry, read_fd, until)
            with suppress(ConnectionError):  # if it is dead, `_wait` will see it
                self._hand_over(batch.number, entry, write_fd)
            os.close(write_fd)

    def _hand_over(self, number: int, entry: Entry[Any], pipe: int) -> None:
        """Have a worker forked for this task that writes to this pipe."""
        assert self._server
        without = dict(entry.without) if self._parts else None
        if self._pack is None:
            self._server.hand_out(number, [entry.task, without], [pipe])
            return
        item, data = self._pack(entry.task)
        with tempfile.TemporaryFile() as file:
            file.write(data)
            file.seek(0)
            self._server.hand_out(number, [item, without], [pipe, file.fileno()])

    def _is_ready(self) -> bool:
        return self._server is not None and self._server.ready

    def _start_again(self) -> None:
        try:
            self.start()
            assert self._server
            self._server.wait()
        except CourseError:
            self._server = None
            if self._deaths == 0:  # it has never worked: the person has to mend something
                raise
            self._deaths += 1

    def _wait(self, batch: Batch[T]) -> Iterator[tuple[T, bytes | Lost]]:
        """Wait until something happens, and act on it."""
        assert self._server
        self._hear(batch, _ready(self._server.control, batch, self._look_every))
        reports = self._server.reports()
        if reports is None or not (yield from self._settle(batch, reports)):
            self._deaths += 1
            self.close()
            for task, outcome in batch.give_back():
                if isinstance(outcome, bytes):
                    self._deaths = 1  # it was done before this end
                yield task, outcome
            return
        for number, work in batch.running.items():
            if time.monotonic() >= work.deadline:
                self._stop(number, work, f"{TOO_LONG} {batch.seconds:g} seconds")

    def _hear(self, batch: Batch[T], numbers: Iterable[int]) -> None:
        """Read what these workers have sent."""
        for number in numbers:
            work = batch.running[number]
            if work.hear() and not work.killed:
                work.deadline = time.monotonic() + batch.seconds  # it is done and now sends
            if len(work.heard) > LARGEST + HEAD.size:
                self._stop(number, work, f"sent more than {LARGEST >> 20} MB")

    def _settle(
        self, batch: Batch[T], reports: Iterable[tuple[int, str]]
    ) -> Generator[tuple[T, bytes | Lost], None, bool]:
        """What came of workers that have ended; whether the fork server may be kept."""
        for number, how in reports:
            work = batch.running.pop(number)
            outcome = work.result(how)
            if isinstance(outcome, Lost) and (part := batch.part_blamed(work, how)):
                batch.without(work, part, in_doubt=work.was_killed(how))
            elif isinstance(outcome, Doubtful) or work.may_be_others(outcome, how):
                batch.later(work, outcome if isinstance(outcome, Doubtful) else None)
            elif outcome is None:
                batch.again(work)
                return False  # those that run are tried again with another
            else:
                if isinstance(outcome, bytes):
                    self._deaths = 0
                yield work.entry.task, work.judged(outcome)
        return True

    def _stop(self, number: int, work: Work[T], reason: str) -> None:
        assert self._server
        if work.killed and time.monotonic() >= work.deadline:
            self._server.process.kill()  # it does not even kill any more
        elif not work.killed:
            work.killed = reason
            work.deadline = time.monotonic() + _GRACE
            with suppress(ConnectionError):
                self._server.kill(number)


def _ready(control: socket.socket, batch: Batch[Any], longest: float) -> list[int]:
    """Wait for news or for the next deadline; the numbers of the tasks with news."""
    poll = select.poll()
    poll.register(control, select.POLLIN)
    pipes = {work.pipe: number for number, work in batch.running.items() if not work.over}
    for pipe in pipes:
        poll.register(pipe, select.POLLIN)
    wait = min(work.deadline for work in batch.running.values()) - time.monotonic()
    found = poll.poll(max(0.0, min(wait, longest)) * 1000)
    return [pipes[fd] for fd, _ in found if fd in pipes]


class _Line:
    """The caller's end of the line to the fork server."""

    def __init__(self, orders: tuple[dict[str, Any], dict[str, Any]]) -> None:
        open_streams()  # no line to another process has a number of these
        processes.send_many_files()
        processes.hear_of_children()
        self.control, theirs = socket.socketpair()
        self.ready = False
        self._heard = b""
        with theirs:
            self.process = subprocess.Popen(
                processes.python_command("worker_server", "main", str(theirs.fileno())),
                stdin=subprocess.DEVNULL,
                env=processes.clean_environment(),
                pass_fds=(theirs.fileno(),),
                start_new_session=True,  # a Ctrl-C is for the caller, who then closes the socket
            )
        # A thread that ends takes along the process it started; only the main one lasts.
        lasts = threading.current_thread() is threading.main_thread()
        parent = os.getpid() if lasts else 0
        mine = {"path": sys.path, "environment": dict(os.environ)}
        with suppress(ConnectionError):  # then `wait` says so
            self._send(b"f", 0, {**orders[0], "parent": parent})
            self._send(b"o", 0, {**orders[1], **mine})

    def wait(self) -> None:
        """Return once it is ready."""
        try:
            failed = self._first_line()
        except ConnectionError:
            failed = "it ended"
        except BaseException:  # Ctrl-C while it starts
            self.process.kill()
            self.close()
            raise
        if failed:
            self.close()
            raise CourseError(f"The warm process for grading did not start: {failed}")
        self.ready = True

    def hand_out(self, number: int, order: list[Any], files: Sequence[int]) -> None:
        """Have a worker forked for an item, without some parts if it has any.

        It writes to the first of these files, and may read the second.
        """
        self._send(b"t", number, order, files)

    def kill(self, number: int) -> None:
        """Have the worker of this task killed."""
        self._send(b"k", number, None)

    def reports(self) -> list[tuple[int, str]] | None:
        """Which workers have ended, and how; None if the fork server has ended itself."""
        self.control.setblocking(False)
        try:
            part = self.control.recv(1 << 16)
        except BlockingIOError:
            return []
        except ConnectionError:
            part = b""
        finally:
            self.control.setblocking(True)
        if not part:
            return None
        *lines, self._heard = (self._heard + part).split(b"\n")
        return [(number, how) for number, how in map(json.loads, lines)]

    def close(self) -> None:
        """End it."""
        try:
            with suppress(OSError, subprocess.TimeoutExpired):
                self.control.shutdown(socket.SHUT_WR)
                self.control.settimeout(_GRACE)
                while self.control.recv(1 << 16):  # until the other end is closed as well
                    pass
                self.process.wait(_GRACE)
        finally:  # it hangs, or Ctrl-C was pressed again
            self.control.close()
            self.process.kill()
            self.process.wait()

    def _first_line(self) -> str:
        while b"\n" not in self._heard:
            part = self.control.recv(1 << 16)
            if not part:
                return "it ended"
            self._heard += part
        line, _, self._heard = self._heard.partition(b"\n")
        return json.loads(line)

    def _send(self, kind: bytes, number: int, body: Any, files: Sequence[int] = ()) -> None:
        data = json.dumps(body).encode()
        head = FRAME.pack(kind, number, len(data))
        socket.send_fds(self.control, [head], list(files))
        self.control.sendall(data)


def _dotted(function: Callable[..., Any]) -> tuple[str, str]:
    module, name = function.__module__, function.__qualname__
    if module == "__main__" or "." in name or "<" in name:
        raise ValueError(f"{module}.{name} cannot be imported by another process")
    return module, name

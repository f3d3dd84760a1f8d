"""Tasks side by side, each in a fresh fork of a warm, trusted process that made ready once.

The caller reads each worker's bytes from a pipe of the worker's own; the warm process only forks,
kills and buries, so its memory does not grow with the number of tasks. Nothing outlives its
owner: the warm process ends when its caller is gone, the workers when the warm process is gone.
"""

import gc
import importlib
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Generic, TypeVar

from autograder.common.course import CourseError
from autograder.common.names import open_streams
from autograder.isolation import clock, sandbox
from autograder.isolation.confine import Inside, Walls
from autograder.isolation.parts import HEAD, SPENT, UNDER_WAY, Parts, Progress

OURS = ("_NUM_THREADS", "NBGRADER_EXECUTION")  # variables of the environment
T = TypeVar("T")
Task = Callable[..., bytes]  # of the state, what was packed, and bytes if there are any

_LARGEST = 64 << 20  # bytes of one result
_RESTARTS = 3  # of the warm process, without a result in between
_LONGEST_WORDS = 2000  # bytes of why there is no result
_GRACE = 30.0  # seconds for a killed worker to be buried
_TOO_LONG = "took longer than"
_SPENT = "worked for far longer than it may"
_KILLED = sandbox.ending(9)
_MOST_PARTS = 5  # of a task that are left out
# A worker sends heads (`parts.HEAD`) and bodies: what it does ("P"), and in the end a result ("R"),
# one in doubt ("D"), an error ("E") or that it is to be done again ("A").
_FRAME = struct.Struct("<cQI")  # to the warm process: "t"ask or "k"ill, number, length


@dataclass(frozen=True)
class Lost:
    """A task that gave no result, and why."""

    reason: str
    its_own: bool = False  # nothing but the task can be why: another run would end so too


class Doubtful(bytes):
    """A result that others may have had a part in, by taking the processors.

    The task is done once more when all others are done, alone; if that fails, this counts. So is
    one that took longer than it may. What comes out of the pool as such may still be others' doing,
    and another run may give something else.
    """


class Unwell(BaseException):
    """Raised by a task: the warm process cannot serve it. It is done again in a new one, alone."""


class Pool:
    """Workers that start from the same state.

    `start(*arguments)` runs once in the warm process, `task(state, item)` in a fork of it for
    each item and returns bytes. Both must be functions at the top of an importable module; items
    and arguments must be fit for JSON. If the state has a method `close`, it is called at the end.

    The warm process begins as a new Python that knows nothing of its caller, in a bare
    environment (`sandbox.clean_environment`). If given, `first(*firsts)` runs in it as it is then,
    and what it returns is `start`'s first argument; the caller's environment and paths come after.

    With `parts`, `task` also gets `parts`, a `Parts`: when a worker is lost while a part is under
    way, its task is done once more without that part.

    With `pack`, what `task` gets is `pack(item)`: something fit for JSON, and bytes, which the warm
    process itself never sees. With `readable`, the warm process and its workers are walled in once
    it is ready (see `autograder.isolation.confine`), and see nothing but the system and these
    paths.
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
        parts: bool = False,
    ) -> None:
        if not hasattr(os, "fork"):
            raise CourseError(
                "Grading side by side needs a system that can fork processes, and this one "
                "cannot; grade on Linux, for example in WSL or in a virtual machine."
            )
        self._jobs = max(1, jobs)
        self._pack = pack
        self._parts = parts
        self._orders = (
            {
                "first": first and _dotted(first),
                "arguments": list(firsts),
                "keeps": not sys.dont_write_bytecode,  # the bare environment says no
            },
            {
                "start": _dotted(start),
                "task": _dotted(task),
                "arguments": list(arguments),
                "readable": None if readable is None else list(readable),
            },
        )
        self._warm: _Warm | None = None
        self._deaths = 0

    def start(self) -> None:
        """Begin to make ready; `run` waits until it is done."""
        if self._warm is None:
            self._warm = _Warm(self._orders)

    def run(self, tasks: Iterable[T], seconds: float) -> Iterator[tuple[T, bytes | Lost]]:
        """Each task with its result, in the order in which they are done.

        A worker that takes longer than `seconds` is killed. `tasks` is read as workers get free.
        """
        batch = _Batch(iter(tasks), seconds)
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
        """End the warm process and all that came from it."""
        if self._warm:
            self._warm.close()
            self._warm = None

    def __enter__(self) -> "Pool":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _hand_out(self, batch: "_Batch[T]") -> Iterator[tuple[T, Lost]]:
        """Give tasks to workers until as many run as may."""
        while len(batch.running) < self._jobs and (entry := batch.take()):
            while not self._is_ready() and self._deaths <= _RESTARTS:
                self._start_again()
            if self._warm is None:
                yield entry.task, Lost(f"the warm process ended {self._deaths} times")
                continue
            read_fd, write_fd = os.pipe()
            os.set_blocking(read_fd, False)
            batch.number += 1
            until = time.monotonic() + batch.seconds
            batch.running[batch.number] = _Work(entry, read_fd, until)
            with suppress(ConnectionError):  # if it is dead, `_wait` will see it
                self._hand_over(batch.number, entry, write_fd)
            os.close(write_fd)

    def _hand_over(self, number: int, entry: "_Entry[Any]", pipe: int) -> None:
        """Have a worker forked for this task that writes to this pipe."""
        assert self._warm
        without = dict(entry.without) if self._parts else None
        if self._pack is None:
            self._warm.hand_out(number, [entry.task, without], [pipe])
            return
        item, data = self._pack(entry.task)
        with tempfile.TemporaryFile() as file:
            file.write(data)
            file.seek(0)
            self._warm.hand_out(number, [item, without], [pipe, file.fileno()])

    def _is_ready(self) -> bool:
        return self._warm is not None and self._warm.ready

    def _start_again(self) -> None:
        try:
            self.start()
            assert self._warm
            self._warm.wait()
        except CourseError:
            self._warm = None
            if self._deaths == 0:  # it has never worked: the person has to mend something
                raise
            self._deaths += 1

    def _wait(self, batch: "_Batch[T]") -> Iterator[tuple[T, bytes | Lost]]:
        """Wait until something happens, and act on it."""
        assert self._warm
        for number in _ready(self._warm.control, batch):
            work = batch.running[number]
            if work.hear() and not work.killed:
                work.deadline = time.monotonic() + batch.seconds  # it is done and now sends
            if len(work.heard) > _LARGEST + HEAD.size:
                self._stop(number, work, f"sent more than {_LARGEST >> 20} MB")
        reports = self._warm.reports()
        for number, how in reports or ():
            work = batch.running.pop(number)
            outcome = work.result(how)
            if isinstance(outcome, Lost) and (part := work.blamed(how)):
                batch.without(work, part, in_doubt=work.was_killed(how))
                continue
            if isinstance(outcome, Doubtful) or work.may_be_others(outcome, how):
                batch.later(work, outcome if isinstance(outcome, Doubtful) else None)
                continue
            if outcome is None:
                batch.again(work)
                reports = None  # the warm process is given up, and those that run are tried again
                break
            if isinstance(outcome, bytes):
                self._deaths = 0
            yield work.entry.task, work.judged(outcome)
        if reports is None:
            self._deaths += 1
            self.close()
            yield from batch.give_back()
            return
        for number, work in batch.running.items():
            if time.monotonic() >= work.deadline:
                self._stop(number, work, f"{_TOO_LONG} {batch.seconds:g} seconds")

    def _stop(self, number: int, work: "_Work[T]", reason: str) -> None:
        assert self._warm
        if work.killed and time.monotonic() >= work.deadline:
            self._warm.process.kill()  # it does not even kill any more
        elif not work.killed:
            work.killed = reason
            work.deadline = time.monotonic() + _GRACE
            with suppress(ConnectionError):
                self._warm.kill(number)


@dataclass(frozen=True)
class _Entry(Generic[T]):
    """A task that a worker may get."""

    task: T
    tries: int = 0  # before, of which others may have had a part in the end
    first: Doubtful | None = None  # what an earlier try gave
    without: Mapping[str, str] = field(default_factory=dict)  # parts, see `Parts`
    in_doubt: bool = False  # who has killed it in one of those parts, nobody knows


@dataclass
class _Work(Generic[T]):
    """A task that a worker has."""

    entry: _Entry[T]
    pipe: int
    deadline: float
    progress: Progress = field(default_factory=Progress)
    heard: bytearray = field(default_factory=bytearray)
    killed: str = ""  # why, if it was
    fell_back: bool = False  # on what its first try gave
    over: bool = False  # nothing more will come through the pipe

    def hear(self) -> bool:
        """Read what has come; whether it is the beginning of a result."""
        first = not self._sends()
        while not self.over and len(self.heard) <= _LARGEST + HEAD.size:
            try:
                part = os.read(self.pipe, 1 << 20)
            except BlockingIOError:
                break
            self.heard += part
            self.over = not part
            self.progress.take_from(self.heard)
        return first and self._sends()

    def _sends(self) -> bool:
        """Whether a result has begun to come."""
        return bool(self.heard) and not self.heard.startswith(UNDER_WAY)

    def may_be_others(self, outcome: bytes | Lost | None, how: str) -> bool:
        """Whether others may have had a part in its loss, who took the processors or the memory."""
        if not isinstance(outcome, Lost) or self.entry.tries:
            return False
        return self._is_late() or (bool(self.progress.name) and self.was_killed(how))

    def blamed(self, how: str) -> tuple[str, str] | None:
        """The part that has certainly ended the worker, now lost, and how; None if none has."""
        name = self.progress.name
        if not name or len(self.entry.without) >= _MOST_PARTS or name in self.entry.without:
            return None
        if how == _SPENT and not self.killed:
            return name, "timeout"
        alone = self.entry.tries > 0
        if self.killed or self.heard:
            return (name, "timeout") if self._is_late() and alone else None
        return None if self.was_killed(how) and not alone else (name, "died")

    def _is_late(self) -> bool:
        return self.killed.startswith(_TOO_LONG)

    def was_killed(self, how: str) -> bool:
        """Whether it was killed, and not by the pool: by the kernel when memory was short."""
        return how == _KILLED and not self.killed

    def judged(self, outcome: bytes | Lost) -> bytes | Lost:
        """What came of it in the end; in doubt if that may be others' doing."""
        in_doubt = self.fell_back or self.entry.in_doubt
        return Doubtful(outcome) if isinstance(outcome, bytes) and in_doubt else outcome

    def complete(self) -> bool:
        """Whether all of a result has come."""
        if len(self.heard) < HEAD.size:
            return False
        return len(self.heard) == HEAD.size + HEAD.unpack_from(self.heard)[1]

    def result(self, how: str) -> bytes | Lost | None:
        """What the worker, now gone, has left; None if it is to be done again."""
        self.hear()
        whole = not self.killed and self.complete()
        kind = HEAD.unpack_from(self.heard)[0] if whole else b""
        os.close(self.pipe)
        first = self.entry.first
        if kind == b"A" and not self.entry.tries:
            return None
        body = bytes(memoryview(self.heard)[HEAD.size :]) if whole else b""
        if kind == b"D" and first is None:
            return Doubtful(body)
        if kind in (b"R", b"D"):
            return body
        if first is not None:
            self.fell_back = True
            return bytes(first)
        if not whole:
            its_own = bool(self.killed) or how == _SPENT
            return Lost(f"the grading process {self.killed or how}", its_own)
        return Lost(f"the grading process {body[:_LONGEST_WORDS].decode(errors='replace')}")


class _Batch(Generic[T]):
    """The tasks of one run: still to come, to be tried again, and running."""

    def __init__(self, tasks: Iterator[T], seconds: float) -> None:
        self.tasks = tasks
        self.seconds = seconds
        self.next: deque[_Entry[T]] = deque()  # read ahead, or to be tried again
        self.last: deque[_Entry[T]] = deque()  # to be tried again when all others are done
        self.running: dict[int, _Work[T]] = {}
        self.number = 0

    def take(self) -> "_Entry[T] | None":
        """The next task; None if it has to wait.

        What ran when the warm process ended is tried again alone: who ends it is found out so.
        """
        if any(work.entry.tries for work in self.running.values()):
            return None
        self.read_ahead()
        if not self.next or (self.next[0].tries and self.running):
            return None
        return self.next.popleft()

    def read_ahead(self) -> None:
        """Have a task ready for the next worker that gets free."""
        if not self.next:
            self.next.extend(_Entry(task) for task in islice(self.tasks, 1))
        if not self.next and self.last and not self.running:
            self.next.append(self.last.popleft())

    def give_back(self) -> Iterator[tuple[T, bytes | Lost]]:
        """After the death of the warm process: each running task gets one more try."""
        running, self.running = self.running, {}
        for work in running.values():
            work.hear()
            if work.killed or work.entry.tries or work.complete():
                outcome = work.result("ended together with the warm process, twice")
            else:
                os.close(work.pipe)
                outcome = None
            if outcome is None:
                self.again(work)
            else:
                yield work.entry.task, work.judged(outcome)

    def again(self, work: _Work[T]) -> None:
        """Try a task once more, in a new warm process."""
        self.next.append(replace(work.entry, tries=work.entry.tries + 1))

    def later(self, work: _Work[T], first: Doubtful | None) -> None:
        """Try a task once more when all others are done."""
        self.last.append(replace(work.entry, tries=work.entry.tries + 1, first=first))

    def without(self, work: _Work[T], part: tuple[str, str], *, in_doubt: bool) -> None:
        """Try a task once more without the part that has ended its worker."""
        entry = work.entry
        without = dict([*entry.without.items(), part])
        in_doubt = in_doubt or entry.in_doubt
        self.next.append(replace(entry, without=without, in_doubt=in_doubt))


def _ready(control: socket.socket, batch: _Batch[Any]) -> list[int]:
    """Wait for news or for the next deadline; the numbers of the tasks with news."""
    poll = select.poll()
    poll.register(control, select.POLLIN)
    pipes = {work.pipe: number for number, work in batch.running.items() if not work.over}
    for pipe in pipes:
        poll.register(pipe, select.POLLIN)
    wait = min(work.deadline for work in batch.running.values()) - time.monotonic()
    found = poll.poll(max(0.0, min(wait, 3600.0)) * 1000)
    return [pipes[fd] for fd, _ in found if fd in pipes]


class _Warm:
    """The caller's handle on the warm process."""

    def __init__(self, orders: tuple[dict[str, Any], dict[str, Any]]) -> None:
        open_streams()  # no line to another process has a number of these
        sandbox.hear_of_children()
        self.control, theirs = socket.socketpair()
        self.ready = False
        self._heard = b""
        with theirs:
            self.process = subprocess.Popen(
                sandbox.python_command("pool", "main", str(theirs.fileno())),
                stdin=subprocess.DEVNULL,
                env=sandbox.clean_environment(),
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
        """Return once it is warm."""
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
        """Which workers have ended, and how; None if the warm process has ended itself."""
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
        head = _FRAME.pack(kind, number, len(data))
        socket.send_fds(self.control, [head], list(files))
        self.control.sendall(data)


def _dotted(function: Callable[..., Any]) -> tuple[str, str]:
    module, name = function.__module__, function.__qualname__
    if module == "__main__" or "." in name or "<" in name:
        raise ValueError(f"{module}.{name} cannot be imported by another process")
    return module, name


# ---- the warm process -------------------------------------------------------------------------


def main(control_fd: str) -> None:
    """What the new Python runs: make ready once, then fork a worker for each task."""
    open_streams()
    control = socket.socket(fileno=int(control_fd))
    gc.disable()  # imports make no garbage, only work for its collector
    made = _make(control)
    if made is None:
        return
    state, task, walls = made
    gc.freeze()
    gc.enable()
    gc.set_threshold(*sandbox.RARELY)
    sandbox.use_large_pages()
    try:
        if walls is None:
            _run(control, state, task, None)
        else:
            _run_within(walls, control, state, task)
    finally:
        if hasattr(state, "close"):
            state.close()
        gc.freeze()  # what was imported need not be looked through before the end


def _run(control: socket.socket, state: Any, task: Task, inside: Inside | None) -> None:
    """Fork a worker for each task until nobody gives any more."""
    control.sendall(b'""\n')
    nursery = _Nursery(control, state, task, inside)
    try:
        while nursery.step():
            pass
    finally:
        nursery.end()


def _run_within(walls: Walls, control: socket.socket, state: Any, task: Task) -> None:
    """The same in a child that is walled in; this process waits for its end."""
    here = os.getpid()
    try:
        walls.leave()
        inner = os.fork()
    except OSError as error:
        _refuse(control, f"it could not be walled in: {error}")
        return
    if inner:
        control.close()
        os.waitpid(inner, 0)
        return
    code = 1
    try:
        sandbox.die_with_parent(here)
        _run(control, state, task, walls.go_in())
        code = 0
    except OSError as error:
        _refuse(control, f"it could not be walled in: {error}")
    finally:
        os._exit(code)


def _refuse(control: socket.socket, why: str) -> None:
    with suppress(OSError):
        control.sendall(json.dumps(why).encode() + b"\n")


def _make(control: socket.socket) -> tuple[Any, Task, Walls | None] | None:
    """State, task and walls; None if the caller is gone, or was told what went wrong."""
    try:
        if (frame := _receive(control)) is None:
            return None
        early = json.loads(frame[2])
        if early["parent"]:
            sandbox.die_with_parent(early["parent"])
        sandbox.remember(sandbox.capabilities())
        sys.dont_write_bytecode = not early["keeps"]
        first = [_function(early["first"])(*early["arguments"])] if early["first"] else []
        if (frame := _receive(control)) is None:
            return None
        order = json.loads(frame[2])
        _be_the_callers(order["environment"], order["path"])
        state = _function(order["start"])(*first, *order["arguments"])
        walls = None if order["readable"] is None else Walls.around(order["readable"])
        return state, _function(order["task"]), walls
    except Exception as error:  # noqa: BLE001 - whatever it is, the caller has to say it
        said = str(error) if isinstance(error, CourseError) else f"{type(error).__name__}: {error}"
        _refuse(control, said or "it failed")
        return None


def _be_the_callers(environment: dict[str, str], path: list[str]) -> None:
    """From a bare environment into the caller's, but for what counts threads: forks have one.

    What says that work is graded stays as well.
    """
    kept = {name: value for name, value in os.environ.items() if name.endswith(OURS)}
    os.environ.clear()
    os.environ.update({**environment, **kept})
    sys.path[:] = path
    tempfile.tempdir = None  # it was looked for in the bare one


class _Nursery:
    """Forks workers, kills them when told, and reports how they ended."""

    def __init__(self, control: socket.socket, state: Any, task: Task, inside: Inside | None):
        self.inside = inside
        self.control = control
        self.state = state
        self.task = task
        self.workers: dict[int, int] = {}  # process -> number of its task
        self.woken, waker = socket.socketpair()
        self.waker = waker
        self.woken.setblocking(False)
        waker.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)  # only so that the poll wakes up
        signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)

    def step(self) -> bool:
        """Wait for an order or a death; False when nobody gives orders any more."""
        poll = select.poll()
        poll.register(self.control, select.POLLIN)
        poll.register(self.woken, select.POLLIN)
        ready = dict(poll.poll())
        if self.woken.fileno() in ready:
            self.woken.recv(1 << 16)
            self._report()
        if self.control.fileno() not in ready:
            return True
        frame = _receive(self.control)
        if frame is None:
            return False
        kind, number, body, fds = frame
        if kind == b"t":
            self._fork(number, *json.loads(body), *fds)
            for fd in fds:
                os.close(fd)
        else:
            for worker in [pid for pid, task in self.workers.items() if task == number]:
                _kill_group(worker)
        return True

    def end(self) -> None:
        """Kill the workers and wait until they are gone."""
        signal.set_wakeup_fd(-1)  # deaths from here on wake nobody
        for worker in self.workers:
            _kill_group(worker)
        for worker in self.workers:
            os.waitpid(worker, 0)
        for one in (self.woken, self.waker):
            one.close()

    def _fork(
        self, number: int, item: Any, without: Any, pipe: int, data: int | None = None
    ) -> None:
        here = os.getpid()
        worker = self.inside.fork() if self.inside else os.fork()
        if worker:
            self.workers[worker] = number
            return
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.setpgid(0, 0)
            sandbox.die_with_parent(here)
            for one in (self.control, self.woken, self.waker):
                one.close()
            clock.here()  # while it is to be seen
            if self.inside:
                self.inside.give_up()
            _work(self.task, [self.state, item], without, pipe, data)
            code = 0
        finally:
            os._exit(code)

    def _report(self) -> None:
        for worker, number in list(self.workers.items()):
            pid, status = os.waitpid(worker, os.WNOHANG)
            if pid:
                del self.workers[worker]
                spent = SPENT and os.waitstatus_to_exitcode(status) == SPENT
                report = [number, _SPENT if spent else sandbox.ending(status)]
                with suppress(ConnectionError):
                    self.control.sendall(json.dumps(report).encode() + b"\n")


def _work(
    task: Task, arguments: list[Any], without: Mapping[str, str] | None, pipe: int, data: int | None
) -> None:
    """Do the task and write what came of it."""
    try:
        more = [] if data is None else [_read_all(data)]
        named = {} if without is None else {"parts": Parts(pipe, without)}
        body = task(*arguments, *more, **named)
        kind = b"D" if isinstance(body, Doubtful) else b"R"
        if len(body) > _LARGEST:
            kind, body = b"E", f"gave a result of more than {_LARGEST >> 20} MB".encode()
    except Unwell as error:
        kind, body = b"A", f"found no warm process ({error})".encode(errors="replace")
    except BaseException as error:  # noqa: BLE001 - the caller goes on with the other tasks
        kind, body = (
            b"E",
            f"failed ({type(error).__name__}: {error})"[:2000].encode(errors="replace"),
        )
    with os.fdopen(pipe, "wb") as file:
        file.write(HEAD.pack(kind, len(body)))
        file.write(body)


def _read_all(fd: int) -> bytes:
    with os.fdopen(fd, "rb") as file:
        return file.read()


def _receive(control: socket.socket) -> tuple[bytes, int, bytes, list[int]] | None:
    """One frame and the files that came with it; None if nobody is there any more."""
    try:
        head, fds, _, _ = socket.recv_fds(control, _FRAME.size, 2)
        head += _exactly(control, _FRAME.size - len(head))
        kind, number, length = _FRAME.unpack(head)
        return kind, number, _exactly(control, length), fds
    except (ConnectionError, EOFError):
        return None


def _exactly(control: socket.socket, length: int) -> bytes:
    data = bytearray()
    while len(data) < length:
        part = control.recv(length - len(data))
        if not part:
            raise EOFError
        data += part
    return bytes(data)


def _kill_group(worker: int) -> None:
    for kill in (os.killpg, os.kill):  # it may not have made its group yet
        with suppress(ProcessLookupError, PermissionError):
            kill(worker, signal.SIGKILL)


def _function(dotted: Sequence[str]) -> Callable[..., Any]:
    return getattr(importlib.import_module(dotted[0]), dotted[1])

"""The fork server of the pool: a process that makes ready once, then forks a worker for each task.

`main` is what a new Python runs. It gets two orders (what is imported early, in an environment as
bare as a student's; then what runs in the caller's), says that it is ready, and takes requests
until its caller is gone. Requests come in frames; how a worker ended goes back as a line of JSON.
"""

import gc
import importlib
import json
import os
import select
import signal
import socket
import struct
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from autograder.common.course import CourseError
from autograder.common.names import open_streams
from autograder.isolation import clock, machine, processes
from autograder.isolation.batch import LARGEST, WORKED_ON
from autograder.isolation.confine import Confinement, Inside
from autograder.isolation.limits import ending
from autograder.isolation.outcomes import Doubtful, Unwell
from autograder.isolation.parts import HEAD, SPENT, Parts

Task = Callable[..., bytes]  # of the state, what was packed, and bytes if there are any

OURS = ("_NUM_THREADS", "NBGRADER_EXECUTION")  # variables of the environment
FRAME = struct.Struct("<cQI")  # a request: "t"ask or "k"ill, number, length


def main(control_fd: str) -> None:
    """What the new Python runs: make ready once, then fork a worker for each task."""
    open_streams()
    processes.send_many_files()
    control = socket.socket(fileno=int(control_fd))
    gc.disable()  # imports make no garbage, only work for its collector
    made = _make(control)
    if made is None:
        return
    state, task, sandbox, many = made
    gc.freeze()
    gc.enable()
    gc.set_threshold(*processes.RARELY)
    if many:
        processes.use_large_pages()
    try:
        if sandbox is None:
            _run(control, state, task, None)
        else:
            _run_within(sandbox, control, state, task)
    finally:
        if hasattr(state, "close"):
            state.close()
        gc.freeze()  # what was imported need not be looked through before the end


def _run(control: socket.socket, state: Any, task: Task, inside: Inside | None) -> None:
    """Fork a worker for each task until nobody gives any more."""
    control.sendall(b'""\n')
    server = WorkerServer(control, state, task, inside)
    try:
        while server.step():
            pass
    finally:
        server.end()


def _run_within(sandbox: Confinement, control: socket.socket, state: Any, task: Task) -> None:
    """The same in a child that is in a sandbox; this process waits for its end."""
    here = os.getpid()
    try:
        sandbox.leave()
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
        processes.die_with_parent(here)
        _run(control, state, task, sandbox.go_in())
        code = 0
    except OSError as error:
        _refuse(control, f"it could not be walled in: {error}")
    finally:
        os._exit(code)


def _refuse(control: socket.socket, why: str) -> None:
    with suppress(OSError):
        control.sendall(json.dumps(why).encode() + b"\n")


def _make(control: socket.socket) -> tuple[Any, Task, Confinement | None, bool] | None:
    """State, task, sandbox, whether there are many tasks; None if there is nothing to do.

    Then the caller is gone, or was told what went wrong.
    """
    try:
        if (frame := receive(control)) is None:
            return None
        early = json.loads(frame[2])
        if early["parent"]:
            processes.die_with_parent(early["parent"])
        machine.remember(machine.try_out())
        sys.dont_write_bytecode = not early["keeps"]
        first = [_function(early["first"])(*early["arguments"])] if early["first"] else []
        if (frame := receive(control)) is None:
            return None
        order = json.loads(frame[2])
        _be_the_callers(order["environment"], order["path"])
        state = _function(order["start"])(*first, *order["arguments"])
        shown = order["readable"]
        sandbox = None if shown is None else Confinement.around(shown, order["private"])
        return state, _function(order["task"]), sandbox, early["many"]
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


class WorkerServer:
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
        signal.signal(signal.SIGCHLD, processes.wake)
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
        frame = receive(self.control)
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
            processes.die_with_parent(here)
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
                report = [number, WORKED_ON if spent else ending(status)]
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
        if len(body) > LARGEST:
            kind, body = b"E", f"gave a result of more than {LARGEST >> 20} MB".encode()
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


def receive(control: socket.socket) -> tuple[bytes, int, bytes, list[int]] | None:
    """One frame and the files that came with it; None if nobody is there any more."""
    try:
        head, fds, _, _ = socket.recv_fds(control, FRAME.size, 2)
        head += _exactly(control, FRAME.size - len(head))
        kind, number, length = FRAME.unpack(head)
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

"""The warm process that students' processes are forked from, and the handle on one of them.

    holder (a grading worker) --- control socket ---> warm process (process 1 of a jail)
       |  leash: "kill", how it ended                     | fork
       +------------------------------------------- keeper, who holds the leash
       |                                                  | fork, into namespaces of its own
       |                                              process 1, who only buries the dead
       |  the student's socket                            | fork
       +------------------------------------------- the student's process: serve(socket)

Nobody has to tidy up: when a holder ends, however it ends, its leash closes and the keeper kills
the sandbox; when all holders have ended, the control socket closes and the warm process ends.
"""

import gc
import importlib
import json
import os
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any, NoReturn

from autograder.course import CourseError
from autograder.engine import sandbox
from autograder.engine.sandbox import Capabilities, Limits

Serve = Callable[[socket.socket], None]

_START_SECONDS = 180  # importing a large library from a cold disk
_KILL_SECONDS = 30
_TEST = b"t"
_SPAWN = b"s"
_KILLED = "was killed"
_HALF = 2500  # of the user ids that sandboxes may have
_RECORD = struct.Struct("<idq")  # wait status, seconds of CPU, kilobytes of memory


class Spawned:
    """A student's process. Closing it, or the end of whoever holds it, kills all of it."""

    def __init__(self, sock: socket.socket, leash: socket.socket) -> None:
        self.sock = sock  # the student's end runs `serve`
        self._leash = leash
        self._heard = b""
        self._how: str | None = None

    def ended(self, timeout: float = 0.0) -> str | None:
        """How it ended, in words, or None if it still runs after `timeout` seconds."""
        deadline = time.monotonic() + timeout
        while self._how is None:
            left = max(0.0, deadline - time.monotonic())
            if not _readable(self._leash, left):
                return None
            self._listen()
        return self._how

    def kill(self) -> None:
        """Kill every process in it; they are gone when this returns."""
        if self._leash.fileno() >= 0:
            with suppress(OSError):
                self._leash.sendall(b"k")
            self.ended(_KILL_SECONDS)
        self.close()

    def close(self) -> None:
        """Let go of it without waiting for its end."""
        self.sock.close()
        self._leash.close()

    def __enter__(self) -> "Spawned":
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def _listen(self) -> None:
        try:
            heard = self._leash.recv(4096)
        except ConnectionError:
            heard = b""
        self._heard += heard
        if heard and b"\n" not in self._heard:
            return
        if not heard:
            self._how = "ended together with the grader's warm process"
            return
        report = json.loads(self._heard)
        if "failed" in report:
            raise CourseError(
                f"A sandbox for a student's process could not be set up: {report['failed']}; "
                "grade again, and if it happens again look at the machine's limits."
            )
        self._how = report["ended"]


class Zygote:
    """A warm process, its libraries imported once, from which students' processes are forked.

    Workers that are forked after it was made may all call `spawn`, at the same time too.
    """

    def __init__(
        self,
        modules: Sequence[str],
        readable: Sequence[Path] = (),
        limits: Limits | None = None,
        sandboxed: bool = True,
        student: str = "autograder.engine.student",
        *,
        head: Sequence[tuple[str, str]] = (),
        wait: bool = True,
    ) -> None:
        """Start it.

        Args:
            modules: to be imported.
            readable: what students' processes may read besides the system and Python.
            limits: for each student's process.
            sandboxed: whether it is shut in.
            student: the module whose `serve` runs in it.
            head: cells, each with its name, with which submissions begin: run once, here.
            wait: False if it may make ready meanwhile; then `wait()` comes before `spawn`.
        """
        self.head: tuple[tuple[str, str, str], ...] = ()  # name, text and what it printed
        if not hasattr(os, "fork"):
            raise CourseError(
                "Grading needs a system that can fork processes, and this one cannot; "
                "grade on Linux, for example in WSL or in a virtual machine."
            )
        found = sandbox.probe()
        if sandboxed and not found.namespaces:
            raise CourseError(
                f"Students' code cannot be shut in here. {' '.join(found.missing)} "
                "Only if you trust every submission, grade without the sandbox."
            )
        order = {
            "modules": list(modules),
            "readable": [str(Path(path).absolute()) for path in readable],
            "limits": asdict(limits or Limits()),
            "found": asdict(found) if sandboxed else None,
            "student": student,
            "head": list(head),
        }
        self._wanted = head
        self.capabilities = found
        self._start(order)
        if wait:
            self.wait()

    def spawn(self, *, begun: bool = False) -> Spawned:
        """Fork a student's process, if `begun` one that has run the head; returns at once."""
        return self._ask(_SPAWN, self._begun if begun else self._control)

    def close(self) -> None:
        """End the warm process and every sandbox that came from it."""
        self._control.close()
        self._begun.close()
        if self._owner == os.getpid():
            try:
                self._process.wait(_KILL_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def __enter__(self) -> "Zygote":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def wait(self) -> None:
        """Return once it is warm, and a fork of it can run."""
        with self._said, self._ready:
            failed, printed = _first_answer(self._ready)
            failed = failed or self._fork_test()
            if not failed and printed is not None:
                cells = zip(self._wanted, printed, strict=True)
                self.head = tuple((name, source, said) for (name, source), said in cells)
            if failed:
                self._process.kill()
                self.close()
                raise CourseError(
                    f"The warm process for students' code did not start: {failed}"
                    f"{_tail(self._said)}; mend what it names and grade again."
                )

    def _start(self, order: dict[str, Any]) -> None:
        self._owner = os.getpid()
        self._control, theirs = socket.socketpair()
        self._begun, begun = socket.socketpair()
        self._ready, told = socket.socketpair()
        self._said = tempfile.TemporaryFile()  # noqa: SIM115  (`wait` closes it)
        with theirs, begun, told:
            lines = [one.fileno() for one in (theirs, begun, told)]
            self._process = subprocess.Popen(
                sandbox.python_command("zygote", "main", *map(str, lines)),
                stdin=subprocess.DEVNULL,
                stdout=self._said,
                stderr=self._said,
                cwd="/",
                env=sandbox.clean_environment(),
                pass_fds=lines,
                start_new_session=True,
            )
        with suppress(ConnectionError):  # then `wait` says so
            self._ready.sendall(json.dumps(order).encode())
            self._ready.shutdown(socket.SHUT_WR)

    def _fork_test(self) -> str:
        """Whether a fork of the warm process can run at all; what is wrong, or nothing."""
        with self._ask(_TEST, self._control) as spawned:
            spawned.sock.settimeout(60)
            try:
                answer = spawned.sock.recv(16)
            except TimeoutError:
                return "a process forked from it hangs (did a library start threads?)"
            except ConnectionError:
                answer = b""
            return "" if answer == b"ok" else f"a process forked from it {spawned.ended(5)}"

    def _ask(self, request: bytes, control: socket.socket) -> Spawned:
        ours, theirs = socket.socketpair()
        leash, held = socket.socketpair()
        with theirs, held:
            try:
                socket.send_fds(control, [request], [theirs.fileno(), held.fileno()])
            except OSError as error:
                raise CourseError(
                    "The warm process for students' code has ended; grade again."
                ) from error
        return Spawned(ours, leash)


def _first_answer(ready: socket.socket) -> tuple[str, list[str] | None]:
    """What went wrong, or nothing once it is warm; and what the head printed, if it ran."""
    ready.settimeout(_START_SECONDS)
    answer = b""
    try:
        while part := ready.recv(4096):
            answer += part
    except TimeoutError:
        return f"its imports took longer than {_START_SECONDS} seconds", None
    except ConnectionError:
        return "it ended", None
    if not answer.startswith(b"ok"):
        return answer.decode(errors="replace") or "it ended", None
    return "", json.loads(answer[2:])


def _tail(said: IO[bytes]) -> str:
    """The last line of what a process said, for a message."""
    said.seek(0)
    lines = said.read()[-4000:].decode(errors="replace").strip().splitlines()
    return f" ({lines[-1].strip()})" if lines else ""


# ---- the warm process -------------------------------------------------------------------------


def main(*fds: str) -> None:
    """What the new Python runs: become warm, then fork until nobody holds the other end."""
    control, begun, ready = (socket.socket(fileno=int(fd)) for fd in fds)
    order = json.loads(_read_all(ready))
    found = order["found"] and Capabilities(**order["found"])
    if found is None:
        _Warm(order, None, b"").run(control, begun, ready)
        return
    sandbox.leave_the_machine(found)
    seccomp = sandbox.compile_filter()
    inner = os.fork()
    if inner == 0:
        sandbox.die_with_parent()
        sandbox.build_jail([Path(path) for path in order["readable"]])
        _Warm(order, found, seccomp).run(control, begun, ready)
        os._exit(0)
    for one in (control, begun, ready):
        one.close()
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(inner, 0)[1]))


class _Warm:
    """The warm process itself."""

    def __init__(self, order: dict[str, Any], found: Capabilities | None, seccomp: bytes) -> None:
        self.order = order
        self.found = found
        self.seccomp = seccomp
        self.limits = Limits(**order["limits"])
        self.slots: dict[int, int] = {}  # keeper -> its slot, which stands for a user id
        self.first = struct.unpack("H", os.urandom(2))[0]  # two graders, two ranges

    def run(self, control: socket.socket, begun: socket.socket, ready: socket.socket) -> None:
        gc.disable()  # imports make no garbage, only work for its collector
        student = importlib.import_module(self.order["student"])
        student.warm(list(self.order["modules"]))
        gc.enable()
        gc.set_threshold(*sandbox.RARELY)
        printed = self._begin(student, control, begun, ready) if self.order["head"] else None
        begun.close()
        if printed is None:  # else few submissions will come from here
            self._freeze()
        ready.sendall(b"ok" + json.dumps(printed).encode())
        ready.close()
        self._serve(student, control)

    def _begin(
        self, student: Any, control: socket.socket, begun: socket.socket, ready: socket.socket
    ) -> list[str] | None:
        """Fork a second warm process, which has run the head; what that printed, if it is fit."""
        read_fd, write_fd = os.pipe()
        if os.fork() == 0:
            _never_return(lambda: self._begin_here(student, (control, ready), begun, write_fd))
        os.close(write_fd)
        with os.fdopen(read_fd, "rb") as told:
            return json.loads(told.read() or b"null")

    def _begin_here(
        self, student: Any, others: Sequence[socket.socket], begun: socket.socket, write_fd: int
    ) -> None:
        sandbox.die_with_parent()
        for one in others:
            one.close()
        outcomes = student.begin(self.order["head"])
        if outcomes is None:
            return
        with os.fdopen(write_fd, "wb") as told:
            told.write(json.dumps([outcome["printed"] for outcome in outcomes]).encode())
        self.first += _HALF  # the other half of the user ids
        self._freeze()
        self._serve(student, begun)

    def _freeze(self) -> None:
        gc.freeze()  # a collection in a child must not touch, and so copy, every page
        sandbox.use_large_pages()

    def _serve(self, student: Any, control: socket.socket) -> None:
        jobs: dict[bytes, Serve] = {
            _SPAWN: student.serve,
            _TEST: getattr(student, "selftest", _say_ok),
        }
        while self._take(control, jobs):
            self._bury()

    def _take(self, control: socket.socket, jobs: dict[bytes, Serve]) -> bool:
        """Answer one request, if there is one; False when nobody can ask any more."""
        if not _readable(control, 0.5):
            return True
        try:
            request, fds, _, _ = socket.recv_fds(control, 1, 2)
        except ConnectionError:
            return False
        if len(fds) == 2 and request in jobs:
            slot = self._free_slot()
            keeper = os.fork()
            if keeper == 0:
                _never_return(lambda: self._keep(control, jobs[request], slot, *fds))
            self.slots[keeper] = slot
        for fd in fds:
            os.close(fd)
        return bool(request)

    def _keep(
        self, control: socket.socket, serve: Serve, slot: int, sock_fd: int, leash_fd: int
    ) -> None:
        control.close()
        leash = socket.socket(fileno=leash_fd)
        keeper = _Keeper(self.limits, self.found, slot, self.seccomp, leash)
        try:
            keeper.start(serve, sock_fd)
            report = {"ended": keeper.watch()}
        except OSError as error:
            report = {"failed": str(error)}
        with suppress(OSError):
            leash.sendall(json.dumps(report).encode() + b"\n")

    def _free_slot(self) -> int:
        self._bury()
        taken = set(self.slots.values())
        return next(n for n in range(self.first, self.first + len(taken) + 1) if n not in taken)

    def _bury(self) -> None:
        """Collect the children that have ended, keepers and orphans."""
        with suppress(ChildProcessError):
            while True:
                pid, _ = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                self.slots.pop(pid, None)


class _Keeper:
    """Stands between the warm process and one sandbox: kills it when the leash says so."""

    def __init__(
        self,
        limits: Limits,
        found: Capabilities | None,
        slot: int,
        seccomp: bytes,
        leash: socket.socket,
    ) -> None:
        self.limits = limits
        self.found = found
        self.slot = slot
        self.seccomp = seccomp
        self.leash = leash
        self.folder = ""
        self.process = 0  # process 1 of the sandbox, or what stands for it without one
        self.status_fd = -1

    def start(self, serve: Serve, sock_fd: int) -> None:
        """Fork what is to be kept."""
        sandbox.die_with_parent()
        read_fd, write_fd = os.pipe()
        if self.found:
            sandbox.enter(self.found, self.limits, self.slot)
            sandbox.die_with_parent()  # a change of user has made the kernel forget
        else:
            self.folder = tempfile.mkdtemp(prefix="student-")
        self.process = os.fork()
        if self.process == 0:
            os.close(read_fd)
            self.leash.close()
            sandbox.die_with_parent()
            _never_return(lambda: self._be_first(serve, sock_fd, write_fd))
        os.close(write_fd)
        os.close(sock_fd)
        self.status_fd = read_fd

    def watch(self) -> str:
        """Wait for the end, from within or from without; how it ended."""
        poll = select.poll()
        poll.register(self.leash, select.POLLIN)
        poll.register(self.status_fd, select.POLLIN)  # closes with the last of process 1
        told = ""
        while not told:
            ready = dict(poll.poll(500))
            if self.leash.fileno() in ready:
                told = _KILLED
            elif self.status_fd in ready:
                break
            elif self.found:
                told = sandbox.used(self.limits)
        self._kill()
        os.waitpid(self.process, 0)  # process 1 ends after all the others
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)
        return told or self._words(os.read(self.status_fd, 4096))

    def _kill(self) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(self.process, signal.SIGKILL)
        if not self.found:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process, signal.SIGKILL)

    def _words(self, record: bytes) -> str:
        if record.startswith(b"!"):
            raise OSError(record[1:].decode())
        if len(record) != _RECORD.size:
            return "ended without a word"
        status, seconds, kilobytes = _RECORD.unpack(record)
        return in_words(status, seconds, kilobytes, self.limits)

    def _be_first(self, serve: Serve, sock_fd: int, write_fd: int) -> None:
        """Process 1 of a sandbox: start the student's process, bury the dead, end with it."""
        os.setsid()
        _null_streams()
        try:
            if self.found:
                sandbox.lock(self.found, self.slot, self.seccomp)
            child = os.fork()
        except OSError as error:
            os.write(write_fd, f"!{error}".encode())
            return
        if child == 0:
            os.close(write_fd)
            _never_return(lambda: self._be_student(serve, sock_fd))
        os.close(sock_fd)
        sandbox.hide_from_siblings()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        while True:
            pid, status, usage = os.wait4(-1, 0)
            if pid == child:
                seconds = usage.ru_utime + usage.ru_stime
                os.write(write_fd, _RECORD.pack(status, seconds, usage.ru_maxrss))
                return

    def _be_student(self, serve: Serve, sock_fd: int) -> None:
        if self.folder:
            os.chdir(self.folder)
            os.environ["HOME"] = self.folder
        os.dup2(sock_fd, 3)
        os.closerange(4, os.sysconf("SC_OPEN_MAX"))
        sandbox.limit(self.limits, self.found)
        serve(socket.socket(fileno=3))


def in_words(status: int, seconds: float, kilobytes: int, limits: Limits) -> str:
    """How a process ended, from its wait status and what it used."""
    killed_by = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    if killed_by == signal.SIGXCPU or (killed_by and seconds > limits.cpu_seconds):
        return sandbox.too_long(limits)
    if killed_by == signal.SIGKILL and kilobytes > limits.memory_mb * 1024 * 0.9:
        return "used more memory than allowed"
    return sandbox.ending(status)


def _say_ok(sock: socket.socket) -> None:
    sock.sendall(b"ok")


def _never_return(job: Callable[[], None]) -> NoReturn:
    """Run a forked child's job; whatever happens, the parent's code must not go on in it."""
    code = 1
    try:
        job()
        code = 0
    finally:
        os._exit(code)


def _readable(sock: socket.socket, seconds: float) -> bool:
    poll = select.poll()  # select() itself knows only the first 1024 file descriptors
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


def _null_streams() -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.close(null)


def _read_all(sock: socket.socket) -> bytes:
    parts = []
    while part := sock.recv(1 << 16):
        parts.append(part)
    return b"".join(parts)

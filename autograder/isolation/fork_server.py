"""A fork server for students' processes, as the grader holds it, and one student's process.

Which processes there are behind it says `autograder.isolation.launch`.
"""

import json
import math
import os
import select
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import IO, Any

from autograder.common.course import CourseError
from autograder.common.names import open_streams
from autograder.isolation import machine, processes
from autograder.isolation.clock import Usage, Used
from autograder.isolation.launch import Launch
from autograder.isolation.limits import Limits
from autograder.isolation.order import BEGUN, SPAWN, TEST, Order

_START_SECONDS = 180  # importing a large library from a cold disk
_KILL_SECONDS = 30


class Spawned:
    """A student's process. Closing it, or the end of whoever holds it, kills all of it."""

    def __init__(self, sock: socket.socket, leash: socket.socket) -> None:
        self.sock = sock  # the student's end runs `serve`
        self.seconds: float | None = None  # of processors, of all in it, once it has ended
        self._leash = leash
        self._heard = b""
        self._how: str | None = None
        self._usage: Usage | None = None
        self._others = 0.0  # seconds of processors, of all but its first process

    def read(self) -> Used | None:
        """What its first process has used; nothing before that is to be seen."""
        if self._how is None and _readable(self._leash, 0):
            self._listen()
        found = Used() if self._usage is None else self._usage.read()
        return found and replace(found, others=self._others)

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
        if self._usage is not None:
            self._usage.close()

    def __enter__(self) -> "Spawned":
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def _listen(self) -> None:
        try:
            heard, files, _, _ = socket.recv_fds(self._leash, 4096, 2)
        except ConnectionError:
            heard, files = b"", []
        if files:
            self._usage = Usage(files)
        if not heard:
            self._how = "ended together with the grader's warm process"
            return
        *lines, self._heard = (self._heard + heard).split(b"\n")
        for report in map(json.loads, lines):
            self._take(report)

    def _take(self, report: dict[str, Any]) -> None:
        if "failed" in report:
            raise CourseError(
                f"A sandbox for a student's process could not be set up: {report['failed']}; "
                "grade again, and if it happens again look at the machine's limits."
            )
        self._others = report.get("others", self._others)
        if "ended" in report:
            self._how, self.seconds = report["ended"], report["seconds"]


class ForkServer:
    """A process with its libraries imported once, from which students' processes are forked.

    Workers that are forked after it was made may all call `spawn`, at the same time too.
    """

    def __init__(
        self,
        modules: Sequence[str],
        readable: Sequence[Path | str] = (),
        *,
        limits: Limits | None = None,
        sandboxed: bool = True,
        student: str,
        head: Sequence[tuple[str, str]] = (),
        watched: Sequence[str] = (),
        here: bool = False,
        private: Sequence[Path | str] = (),
        many: bool = False,
    ) -> None:
        """Start it.

        Args:
            modules: to be imported.
            readable: what students' processes may read besides the system and Python: modules,
                which they import from where these lie, after all others.
            limits: for each student's process.
            sandboxed: whether it is shut in.
            student: the module whose `serve` runs in it.
            head: cells, each with its name, with which submissions begin: run once, here.
            watched: names that questions forbid; what they stand for is looked up once.
            here: fork it from this process, which then has to be as clean as a new one: `go_in()`
                and `wait()` come before `spawn`, and what is imported before `go_in` is shared.
            private: folders that students' processes do not see even where the system's hold them.
            many: whether so many will be forked that to make ready for that pays.
        """
        open_streams()  # no line to another process has a number of these
        processes.send_many_files()
        processes.hear_of_children()
        self.head: tuple[tuple[str, str, str], ...] = ()  # name, text and what it printed
        if not hasattr(os, "fork"):
            raise CourseError(
                "Grading needs a system that can fork processes, and this one cannot; "
                "grade on Linux, for example in WSL or in a virtual machine."
            )
        found = machine.probe()
        if sandboxed and not found.namespaces:
            raise CourseError(
                f"Students' code cannot be shut in here. {' '.join(found.missing)} "
                "Only if you trust every submission, grade without the sandbox."
            )
        order = {
            "modules": list(modules),
            "readable": [str(Path(path).absolute()) for path in readable],
            "private": list(map(str, private)),
            "limits": asdict(limits or Limits()),
            "found": asdict(found) if sandboxed else None,
            "student": student,
            "head": list(head),
            "watched": list(watched),
            "many": many,
        }
        self._wanted = head
        self.capabilities = found
        self._owner = os.getpid()
        self._processes: list[_Forked | subprocess.Popen[bytes]] = []
        self._said = tempfile.TemporaryFile()  # noqa: SIM115  (`wait` closes it)
        self._control, control = socket.socketpair()
        self._ready, ready = socket.socketpair()
        self._launch: Launch | None = None
        if here:
            self._launch = Launch(Order.read(order), control, ready)
            self._processes.append(_Forked(self._launch.build(self._said.fileno())))
        else:
            self._start(order, control, ready)
            self.wait()

    def go_in(self) -> None:
        """Fork what will fork, with all that this process has imported."""
        if self._launch is not None:
            self._processes.append(_Forked(self._launch.go_in_apart(self._said.fileno())))
            self._launch = None

    def spawn(self, *, begun: bool = False) -> Spawned:
        """Fork a student's process, if `begun` one that has run the head; returns at once."""
        return self._ask(BEGUN if begun else SPAWN)

    def close(self) -> None:
        """End it and every sandbox that came from it."""
        self._control.close()
        for process in self._processes if self._owner == os.getpid() else ():
            try:
                process.wait(_KILL_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def __enter__(self) -> "ForkServer":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def wait(self) -> None:
        """Return once it is ready, and a fork of it can run."""
        with self._said, self._ready:
            failed, printed = _first_answer(self._ready)
            failed = failed or self._fork_test()
            if not failed and printed is not None:
                cells = zip(self._wanted, printed, strict=True)
                self.head = tuple((name, source, said) for (name, source), said in cells)
            if failed:
                for process in self._processes:
                    process.kill()
                self.close()
                raise CourseError(
                    f"The warm process for students' code did not start: {failed}"
                    f"{_tail(self._said)}; mend what it names and grade again."
                )

    def _start(self, order: dict[str, Any], control: socket.socket, ready: socket.socket) -> None:
        with control, ready:
            lines = [control.fileno(), ready.fileno()]
            process = subprocess.Popen(
                processes.python_command("launch", "main", *map(str, lines)),
                stdin=subprocess.DEVNULL,
                stdout=self._said,
                stderr=self._said,
                cwd="/",
                env=processes.clean_environment(),
                pass_fds=lines,
                start_new_session=True,
            )
        self._processes.append(process)
        with suppress(ConnectionError):  # then `wait` says so
            self._ready.sendall(json.dumps(order).encode())
            self._ready.shutdown(socket.SHUT_WR)

    def _fork_test(self) -> str:
        """Whether a fork of it can run at all; what is wrong, or nothing."""
        with self._ask(TEST) as spawned:
            spawned.sock.settimeout(60)
            try:
                answer = spawned.sock.recv(16)
            except TimeoutError:
                return "a process forked from it hangs (did a library start threads?)"
            except ConnectionError:
                answer = b""
            return "" if answer == b"ok" else f"a process forked from it {spawned.ended(5)}"

    def _ask(self, request: bytes) -> Spawned:
        ours, theirs = socket.socketpair()
        leash, held = socket.socketpair()
        with theirs, held:
            try:
                socket.send_fds(self._control, [request], [theirs.fileno(), held.fileno()])
            except OSError as error:
                raise CourseError(
                    "The warm process for students' code has ended; grade again."
                ) from error
        return Spawned(ours, leash)


class _Forked:
    """A forked process, as far as needed like one of `subprocess`."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._over = False

    def wait(self, timeout: float = math.inf) -> None:
        """Until it has ended."""
        deadline = time.monotonic() + timeout
        while not self._over:
            self._over = os.waitpid(self.pid, os.WNOHANG)[0] == self.pid
            if not self._over and time.monotonic() > deadline:
                raise subprocess.TimeoutExpired("a forked process", timeout)
            time.sleep(0 if self._over else 0.002)

    def kill(self) -> None:
        """Kill it, if it is there."""
        if not self._over:
            os.kill(self.pid, signal.SIGKILL)


def _first_answer(ready: socket.socket) -> tuple[str, list[str] | None]:
    """What went wrong, or nothing once it is ready; and what the head printed, if it ran."""
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


def _readable(sock: socket.socket, seconds: float) -> bool:
    poll = select.poll()  # select() itself knows only the first 1024 file descriptors
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(seconds * 1000))

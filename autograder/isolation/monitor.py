"""The monitor of one sandbox: has it made, bounds what it uses, kills it, says how it ended.

Its holder (a grading worker) has the other end of the leash: a socket pair by which the holder asks
for the end, and is told of it. The holder's own end, of whatever kind, closes the leash, which asks
for the same.
"""

import json
import os
import select
import shutil
import signal
import socket
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from autograder.isolation import jail, namespaces, processes, resources
from autograder.isolation.limits import Limits, ending, too_long
from autograder.isolation.order import ASK, Order, never_return, tell

_KILLED = "was killed"
TOLD = 0.1  # seconds more or less that are worth a line


class Monitor:
    """Stands between the supervisor and one sandbox: kills it when the leash says so."""

    def __init__(
        self, order: Order, slot: int, leash: socket.socket, server: socket.socket
    ) -> None:
        self.order = order
        self.slot = slot
        self.leash = leash
        self.server = server
        self.folder = ""
        self.process = 0  # process 1 of the sandbox, or the student's without one
        self.status_fd = -1
        self.heard = b""
        self.used: resources.Watch | None = None  # without a sandbox nobody looks
        self.seconds: float | None = None  # of processors, once all has ended
        self.told = 0.0  # seconds of processors, of all but the student's first

    def start(self, request: bytes, sock_fd: int) -> None:
        """Have made what is to be kept."""
        ours, theirs = socket.socketpair()
        self.status_fd, write_fd = ours.detach(), theirs.detach()
        if self.order.found:
            here = os.getpid()
            above = os.getppid()
            namespaces.enter(self.order.found, self.order.limits, self.slot)
            processes.die_with_parent(above)  # a change of user has made the kernel forget
            self.used = resources.Watch(self.order.limits)
            self.process = os.fork()
            if self.process == 0:
                never_return(lambda: self._be_first(here, request, sock_fd, write_fd))
        else:
            self.folder = tempfile.mkdtemp(prefix="student-")
            folder = os.open(self.folder, os.O_RDONLY)
            self._ask(request, sock_fd, write_fd, [folder])
            os.close(folder)
        self.server.close()
        os.close(write_fd)
        os.close(sock_fd)

    def watch(self) -> str:
        """Wait for the end, from within or from without; how it ended."""
        poll = select.poll()
        poll.register(self.leash, select.POLLIN)
        poll.register(self.status_fd, select.POLLIN)
        told = ""
        besides: float | None = None
        report: dict[str, Any] | None = None
        while report is None:
            ready = dict(poll.poll(self.used.pause * 1000 if self.used else None))
            if self.status_fd in ready:
                report = self._listen()
            elif self.leash.fileno() in ready:
                told = _KILLED
                poll.unregister(self.leash)
            elif self.used and not told:
                told = self.used.look()
                self._tell_others(self.used.others)
            if told or report is not None:
                if besides is None:
                    besides = self.used.besides() if self.used else 0.0
                self._kill()
        if "seconds" in report:
            self.seconds = report["seconds"] + (besides or 0.0)
        if self.order.found:
            os.waitpid(self.process, 0)  # process 1 ends after all the others
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)
        return told or self._words(report)

    def _listen(self) -> dict[str, Any] | None:
        """What the status pipe says: how the student's process ended, or None if not yet."""
        with socket.fromfd(self.status_fd, socket.AF_UNIX, socket.SOCK_STREAM) as status:
            part, files, _, _ = socket.recv_fds(status, 4096, 2)
        if files:
            self._hand_on(files)
        if not part:
            return {}
        *lines, self.heard = (self.heard + part).split(b"\n")
        for line in map(json.loads, lines):
            if "process" in line and not self.order.found:
                self.process = line["process"]
            elif line.keys() & {"status", "failed"}:
                return line
        return None

    def _hand_on(self, files: Sequence[int]) -> None:
        """The holder reads from these what the student's process uses."""
        with suppress(OSError):
            socket.send_fds(self.leash, [b"{}\n"], files)
        for file in files:
            os.close(file)

    def _tell_others(self, seconds: float) -> None:
        """Tell the holder what others than the first have used; whoever reads nothing is spared."""
        if abs(seconds - self.told) >= TOLD:
            with suppress(OSError):
                line = json.dumps({"others": seconds}).encode() + b"\n"
                self.leash.send(line, socket.MSG_DONTWAIT)
                self.told = seconds

    def _kill(self) -> None:
        with suppress(ProcessLookupError, PermissionError):
            if self.order.found:
                os.kill(self.process, signal.SIGKILL)
            elif self.process:
                os.killpg(self.process, signal.SIGKILL)

    def _words(self, report: dict[str, Any]) -> str:
        if "failed" in report:
            raise OSError(report["failed"])
        if "status" not in report:
            return "ended without a word"
        return in_words(**report, limits=self.order.limits)

    def _ask(self, request: bytes, sock_fd: int, write_fd: int, places: Sequence[int]) -> None:
        socket.send_fds(self.server, [ASK.pack(request, self.slot)], [sock_fd, write_fd, *places])

    def _be_first(self, parent: int, request: bytes, sock_fd: int, write_fd: int) -> None:
        """Process 1 of a sandbox: have the student's process made, and reap all that ends."""
        found = self.order.found
        assert found
        processes.die_with_parent(parent)
        os.setsid()
        processes.say_nothing()
        try:
            spaces = namespaces.own_namespaces(user=found.user_namespaces)
            jail.hide_processes()
            namespaces.give_up_rights(found, self.slot, self.order.seccomp)
            processes.die_with_parent(parent)
            processes.hide_from_siblings()
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
            self._ask(request, sock_fd, write_fd, spaces)
        except OSError as error:
            tell(write_fd, failed=str(error))
            return
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        while True:  # of what the kernel itself reaps, nobody counts the time
            signal.sigwait([signal.SIGCHLD])
            with suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass


def in_words(status: int, seconds: float, kilobytes: int, limits: Limits) -> str:
    """How a process ended, from its wait status and what it used."""
    killed_by = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    if killed_by == signal.SIGXCPU or (killed_by and seconds > limits.cpu_seconds):
        return too_long(limits)
    if killed_by == signal.SIGKILL and kilobytes > limits.memory_mb * 1024 * 0.9:
        return "used more memory than allowed"
    return ending(status)

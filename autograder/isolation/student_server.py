"""The fork server of students' processes: imports once, then forks one into each new sandbox.

If submissions begin with the same cells, the head, it has a second of its kind forked, which has
run them; what that forks begins after the head.
"""

import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from autograder.isolation import limits, namespaces, processes
from autograder.isolation.clock import open_files
from autograder.isolation.order import ASK, MOST_FDS, SPAWN, TEST, Order, never_return, tell

Serve = Callable[[socket.socket], None]


class StudentServer:
    """Makes ready once, then forks students' processes."""

    def __init__(self, order: Order, lines: Sequence[socket.socket], ready: socket.socket) -> None:
        self.order = order
        self.lines = lines
        self.ready = ready
        self.students: dict[int, int] = {}  # process -> where to tell how it ended
        self.own = -1

    def run(self) -> None:
        """Make ready, say so, and serve until nobody asks any more."""
        homes = (str(Path(path).parent) for path in self.order.readable)
        sys.path += [home for home in dict.fromkeys(homes) if home not in sys.path]
        gc.disable()  # imports make no garbage, only work for its collector
        student = importlib.import_module(self.order.student)
        student.warm(list(self.order.modules), self.order.watched)
        with suppress(ImportError):
            importlib.import_module("resource")  # for `limits.limit`
        gc.freeze()  # before the first collection, which would go through all that
        gc.enable()
        gc.set_threshold(*processes.RARELY)
        printed = self._begin(student) if self.order.head else None
        self.lines[1].close()
        if printed is None:  # else few submissions will come from here
            self._freeze()
        self.ready.sendall(b"ok" + json.dumps(printed).encode())
        self.ready.close()
        self._serve(student, self.lines[0])

    def _begin(self, student: Any) -> list[str] | None:
        """Fork a second fork server, which has run the head; what that printed, if it is fit."""
        read_fd, write_fd = os.pipe()
        here = os.getpid()
        if os.fork() == 0:
            never_return(lambda: self._begin_here(here, student, read_fd, write_fd))
        os.close(write_fd)
        with os.fdopen(read_fd, "rb") as told:
            return json.loads(told.read() or b"null")

    def _begin_here(self, parent: int, student: Any, read_fd: int, write_fd: int) -> None:
        processes.die_with_parent(parent)
        os.close(read_fd)
        self.lines[0].close()
        self.ready.close()
        outcomes = student.begin(self.order.head)
        if outcomes is None:
            return
        with os.fdopen(write_fd, "wb") as told:
            told.write(json.dumps([outcome["printed"] for outcome in outcomes]).encode())
        self._freeze()
        self._serve(student, self.lines[1])

    def _freeze(self) -> None:
        gc.freeze()  # a collection in a child must not touch, and so copy, every page
        if self.order.many:
            processes.use_large_pages()

    def _serve(self, student: Any, line: socket.socket) -> None:
        jobs: dict[bytes, Serve] = {
            SPAWN: student.serve,
            TEST: getattr(student, "selftest", _say_ok),
        }
        if self.order.found:
            self.own = os.open("/proc/self/ns/pid", os.O_RDONLY)
        with _deaths() as woken:
            poll = select.poll()
            poll.register(line, select.POLLIN)
            poll.register(woken, select.POLLIN)
            while True:
                ready = dict(poll.poll())
                if woken.fileno() in ready:
                    woken.recv(1 << 16)
                    self._reap()
                if line.fileno() in ready and not self._take(line, jobs):
                    return

    def _take(self, line: socket.socket, jobs: dict[bytes, Serve]) -> bool:
        """Answer one request; False when nobody can ask any more."""
        try:
            asked, fds, _, _ = socket.recv_fds(line, ASK.size, MOST_FDS)
        except ConnectionError:
            return False
        if len(asked) == ASK.size and len(fds) > 2:
            request, slot = ASK.unpack(asked)
            self._fork(jobs[request], slot, *fds)
        else:
            for fd in fds:
                os.close(fd)
        return bool(asked)

    def _fork(self, serve: Serve, slot: int, sock_fd: int, status_fd: int, *places: int) -> None:
        """Fork a student's process into its namespaces, or its folder."""
        here = os.getpid()
        spaces = list(places)
        child = -1
        try:
            if self.order.found:
                at = int(self.order.found.user_namespaces)
                child = namespaces.fork_into(spaces.pop(at), self.own)
            else:
                child = os.fork()
        except OSError as error:
            tell(status_fd, failed=str(error))
        if child == 0:
            never_return(lambda: self._be_student(here, serve, slot, sock_fd, status_fd, spaces))
        for fd in (sock_fd, *places):
            os.close(fd)
        if child > 0:
            self.students[child] = status_fd
            _show_usage(child, status_fd)
        else:
            os.close(status_fd)

    def _be_student(
        self,
        parent: int,
        serve: Serve,
        slot: int,
        sock_fd: int,
        status_fd: int,
        places: Sequence[int],
    ) -> None:
        most = os.sysconf("SC_OPEN_MAX")  # of this server; a student's process may have fewer
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.setsid()
            processes.say_nothing()
            self._enter(slot, status_fd, places)
            processes.die_with_parent(parent)
            found = self.order.found
            limits.limit(self.order.limits, own_uid=found.own_uid if found else None)
        except OSError as error:
            tell(status_fd, failed=str(error))
            return
        os.dup2(sock_fd, 3)
        os.closerange(4, most)
        serve(socket.socket(fileno=3))

    def _enter(self, slot: int, status_fd: int, places: Sequence[int]) -> None:
        """Be where this student's process belongs."""
        if self.order.found:
            processes.go_first()
            namespaces.join(places)
            namespaces.give_up_rights(self.order.found, slot, self.order.seccomp)
        else:
            os.fchdir(places[0])
            os.environ["HOME"] = str(Path.cwd())
            tell(status_fd, process=os.getpid())

    def _reap(self) -> None:
        """Collect the children that have ended, and tell how."""
        with suppress(ChildProcessError):
            while True:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
                if pid == 0:
                    return
                if pid in self.students:
                    status_fd = self.students.pop(pid)
                    seconds = usage.ru_utime + usage.ru_stime
                    tell(status_fd, status=status, seconds=seconds, kilobytes=usage.ru_maxrss)
                    os.close(status_fd)


def _show_usage(process: int, status_fd: int) -> None:
    """Send the files in which stands what a process uses, if they are to be seen here."""
    files = open_files(process)
    if files:
        with suppress(OSError), socket.fromfd(status_fd, socket.AF_UNIX, socket.SOCK_STREAM) as one:
            socket.send_fds(one, [b"{}\n"], files)
    for file in files:
        os.close(file)


@contextmanager
def _deaths() -> Generator[socket.socket]:
    """A socket from which something can be read when a child has ended."""
    woken, waker = socket.socketpair()
    with woken, waker:
        woken.setblocking(False)
        waker.setblocking(False)
        signal.signal(signal.SIGCHLD, processes.wake)
        signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
        yield woken


def _say_ok(sock: socket.socket) -> None:
    sock.sendall(b"ok")

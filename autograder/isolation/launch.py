"""Starts the processes behind a ForkServer: what stands between the grader and a student's process.

    holder (a grading worker) --- control socket ---> supervisor (process 1 of a jail)
       |  leash: "kill", how it ended                     | fork
       +------------------------------------------- monitor, who holds the leash
       |                                                  | fork, into namespaces of its own
       |                                              process 1, who only reaps what has ended
       |                                                  | asks, handing over its namespaces
       |                                              fork server (in the jail)
       |  the student's socket                            | fork, into those namespaces
       +------------------------------------------- the student's process: serve(socket)

Supervisor, monitors and each process 1 are small: to fork them costs little. The fork server is
large, and is forked once a student. Without a sandbox there is no process 1; the monitor asks.

Nobody has to tidy up: when a holder ends, however it ends, its leash closes and the monitor kills
the sandbox; when all holders have ended, the control socket closes, the supervisor ends, and with
process 1 of the jail everything in it.
"""

import json
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from autograder.common.names import open_streams
from autograder.isolation import jail, namespaces, processes
from autograder.isolation.order import MOST_FDS, Order, never_return
from autograder.isolation.student_server import StudentServer
from autograder.isolation.supervisor import Supervisor


def main(control_fd: str, ready_fd: str) -> None:
    """What a new Python runs: the jail first, then the fork server."""
    open_streams()
    processes.send_many_files()
    control, ready = (socket.socket(fileno=int(fd)) for fd in (control_fd, ready_fd))
    launch = Launch(Order.read(json.loads(_read_all(ready))), control, ready)
    launch.build()
    sys.exit(launch.go_in())


class Launch:
    """Makes a jail with its supervisor, then a fork server in it, both forked from this process.

    So what is done between `build` and `go_in`, like importing a library, is done once for the
    fork server and for the one that calls; and the supervisor, forked before, stays small.
    """

    def __init__(self, order: Order, control: socket.socket, ready: socket.socket) -> None:
        self.order = order
        self.control = control
        self.ready = ready
        self.asks, self.answers = zip(socket.socketpair(), socket.socketpair(), strict=True)
        self.spaces, self.tells = socket.socketpair()

    def build(self, said: int | None = None) -> int:
        """Fork what becomes the jail; its number. What it says goes to `said`, if given."""
        parent = os.getpid()
        outer = os.fork()
        if outer == 0:
            never_return(lambda: self._be_outside(parent, said))
        for one in (self.control, self.tells, *self.asks):
            one.close()
        return outer

    def go_in_apart(self, said: int) -> int:
        """Fork a process that goes in; its number. It ends after the jail, with what that holds."""
        apart = os.fork()
        if apart == 0:
            never_return(lambda: self._be_apart(said))
        for one in (self.ready, self.spaces, *self.answers):
            one.close()
        return apart

    def go_in(self) -> int:
        """Fork the fork server, into the jail, and wait; the status with which it ended."""
        spaces = self._jail()
        parent = os.getpid()
        if spaces is None:
            return 1
        folder = ""
        if self.order.found is None:
            folder = tempfile.mkdtemp(prefix="warm-")
            inner = os.fork()
        else:
            if not self.order.found.own_uid:
                namespaces.join([spaces.pop(0)])
            inner = namespaces.fork_into(spaces.pop(0), None)
        if inner == 0:
            never_return(lambda: self._be_server(parent, spaces, folder))
        for one in (self.ready, *self.answers):
            one.close()
        status = os.waitpid(inner, 0)[1]
        if folder:
            shutil.rmtree(folder, ignore_errors=True)
        return os.waitstatus_to_exitcode(status) & 255

    def _jail(self) -> list[int] | None:
        """The namespaces of the jail, once it is built; None if that failed."""
        with self.spaces, suppress(ConnectionError):
            told, fds, _, _ = socket.recv_fds(self.spaces, 1, MOST_FDS)
            return fds if told else None
        return None

    def _be_outside(self, parent: int, said: int | None) -> int:
        """Stand around the jail."""
        processes.die_with_parent(parent)
        lines = [self.control, self.tells, *self.asks]
        if said is not None:
            _keep_only(lines, said)
        else:
            for one in (self.ready, self.spaces, *self.answers):
                one.close()
        if self.order.found is None:
            self.tells.sendall(b"k")
            self.tells.close()
            Supervisor(self.order, self.asks).serve(self.control)
            return 0
        namespaces.leave_the_machine(self.order.found)
        here = os.getpid()
        inner = os.fork()
        if inner == 0:
            never_return(lambda: self._be_supervisor(here))
        for one in lines:
            one.close()
        return os.waitstatus_to_exitcode(os.waitpid(inner, 0)[1]) & 255

    def _be_supervisor(self, parent: int) -> None:
        assert self.order.found
        processes.die_with_parent(parent)
        jail.build_jail([*map(Path, self.order.readable)], [*map(Path, self.order.private)])
        spaces = namespaces.own_namespaces(user=not self.order.found.own_uid)
        socket.send_fds(self.tells, [b"k"], spaces)
        for space in spaces:
            os.close(space)
        self.tells.close()
        Supervisor(self.order, self.asks).serve(self.control)

    def _be_apart(self, said: int) -> int:
        _keep_only([self.ready, self.spaces, *self.answers], said)
        return self.go_in()

    def _be_server(self, parent: int, spaces: Sequence[int], folder: str) -> None:
        processes.die_with_parent(parent)
        processes.forget_umask()
        if folder:  # there is no jail in which the home that libraries want to write to could be
            os.environ.update(processes.environment_at(folder))
        if self.order.found:
            namespaces.join(spaces)
            for space in spaces:
                os.close(space)
            processes.die_with_parent(parent)  # a change of namespaces may make the kernel forget
            os.chdir("/")
        tempfile.tempdir = None  # what was found on the machine is not in the jail
        sys.dont_write_bytecode = True  # most of what is there cannot be written
        StudentServer(self.order, self.answers, self.ready).run()


def _keep_only(lines: Sequence[socket.socket], said: int) -> None:
    """Of all that the process which called has open, keep these lines; speak to `said`."""
    os.chdir("/")
    os.dup2(said, 1)
    os.dup2(said, 2)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    last = 3
    for fd in sorted(line.fileno() for line in lines):
        os.closerange(last, fd)
        last = fd + 1
    os.closerange(last, os.sysconf("SC_OPEN_MAX"))


def _read_all(sock: socket.socket) -> bytes:
    parts: list[bytes] = []
    while part := sock.recv(1 << 16):
        parts.append(part)
    return b"".join(parts)

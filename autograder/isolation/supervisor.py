"""The supervisor, process 1 of a jail: forks a monitor for each sandbox that is asked for."""

import gc
import json
import os
import select
import socket
import struct
from collections.abc import Sequence
from contextlib import suppress

from autograder.isolation import processes
from autograder.isolation.monitor import Monitor
from autograder.isolation.order import BEGUN, SPAWN, TEST, Order, never_return, tell


class Supervisor:
    """Forks a monitor for each request, until nobody can ask any more."""

    def __init__(self, order: Order, asks: Sequence[socket.socket]) -> None:
        self.order = order
        self.asks = asks
        self.slots: dict[int, int] = {}  # monitor -> its slot, which stands for a user id
        self.first = struct.unpack("H", os.urandom(2))[0]  # two graders, two ranges

    def serve(self, control: socket.socket) -> None:
        """Take requests until nobody can make any more, or there is nothing left to fork from."""
        gc.freeze()  # a collection in a child must not touch, and so copy, every page
        poll = select.poll()
        poll.register(control, select.POLLIN)
        poll.register(self.asks[0], 0)  # tells only that the fork server has ended
        while True:
            ready = dict(poll.poll(500))
            self._reap()
            if self.asks[0].fileno() in ready:
                return
            if ready and not self._take(control):
                return

    def _take(self, control: socket.socket) -> bool:
        """Answer one request; False when nobody can ask any more."""
        try:
            request, fds, _, _ = socket.recv_fds(control, 1, 2)
        except ConnectionError:
            return False
        if len(fds) == 2 and request in (SPAWN, BEGUN, TEST):
            self._fork(control, request, *fds)
        for fd in fds:
            os.close(fd)
        return bool(request)

    def _fork(self, control: socket.socket, request: bytes, sock_fd: int, leash_fd: int) -> None:
        slot = self._free_slot()
        here = os.getpid()
        most = most_at_once()
        if len(self.slots) >= most:
            tell(leash_fd, failed=f"more than {most} sandboxes were asked for at once")
            return
        try:
            monitor = os.fork()
        except OSError as error:  # of this request alone
            tell(leash_fd, failed=str(error))
            return
        if monitor == 0:
            never_return(lambda: self._keep(here, control, request, slot, sock_fd, leash_fd))
        self.slots[monitor] = slot

    def _keep(
        self,
        parent: int,
        control: socket.socket,
        request: bytes,
        slot: int,
        sock_fd: int,
        leash_fd: int,
    ) -> None:
        processes.die_with_parent(parent)
        control.close()
        leash = socket.socket(fileno=leash_fd)
        monitor = Monitor(self.order, slot, leash, self.asks[request == BEGUN])
        try:
            monitor.start(TEST if request == TEST else SPAWN, sock_fd)
            report = {"ended": monitor.watch(), "seconds": monitor.seconds}
        except OSError as error:
            report = {"failed": str(error)}
        with suppress(OSError):
            leash.sendall(json.dumps(report).encode() + b"\n")

    def _free_slot(self) -> int:
        self._reap()
        taken = set(self.slots.values())
        return next(n for n in range(self.first, self.first + len(taken) + 1) if n not in taken)

    def _reap(self) -> None:
        """Collect the children that have ended, monitors and orphans."""
        with suppress(ChildProcessError):
            while True:
                pid, _ = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                self.slots.pop(pid, None)


def most_at_once() -> int:
    """How many sandboxes there may be; a grading process holds one or two."""
    return max(64, 4 * (os.cpu_count() or 1))

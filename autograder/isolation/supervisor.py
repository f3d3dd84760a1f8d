"""The processes behind a ForkServer: what stands between the grader and a student's process.

    holder (a grading worker) --- control socket ---> supervisor (process 1 of a jail)
       |  leash: "kill", how it ended                     | fork
       +------------------------------------------- keeper, who holds the leash
       |                                                  | fork, into namespaces of its own
       |                                              process 1, who only buries the dead
       |                                                  | asks, handing over its namespaces
       |                                              warm process (in the jail)
       |  the student's socket                            | fork, into those namespaces
       +------------------------------------------- the student's process: serve(socket)

Supervisor, keepers and each process 1 are small: to fork them costs little. The warm process is
large, and is forked once a student. Without a sandbox there is no process 1; the keeper asks.

Nobody has to tidy up: when a holder ends, however it ends, its leash closes and the keeper kills
the sandbox; when all holders have ended, the control socket closes, the supervisor ends, and with
process 1 of the jail everything in it.
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
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from autograder.common.names import open_streams
from autograder.isolation import sandbox
from autograder.isolation.clock import open_files
from autograder.isolation.sandbox import Capabilities, Limits

Serve = Callable[[socket.socket], None]

SPAWN, BEGUN, TEST = b"s", b"b", b"t"  # what a holder asks for
_ASK = struct.Struct("<cI")  # to a warm process: what is asked for, and the slot
_MOST_FDS = 8
_KILLED = "was killed"


@dataclass(frozen=True)
class Order:
    """What is to be made; the same for all processes."""

    modules: list[str]
    readable: list[str]
    limits: Limits
    found: Capabilities | None  # None without a sandbox
    student: str
    head: list[tuple[str, str]]
    watched: list[str]
    seccomp: bytes

    @classmethod
    def read(cls, told: dict[str, Any]) -> "Order":
        """From what crosses to another process."""
        found = told["found"] and Capabilities(**told["found"])
        limits = Limits(**told["limits"])
        seccomp = sandbox.compile_filter() if found else b""
        return cls(**{**told, "limits": limits, "found": found, "seccomp": seccomp})


def main(control_fd: str, ready_fd: str) -> None:
    """What a new Python runs: the jail first, then the warm process."""
    open_streams()
    control, ready = (socket.socket(fileno=int(fd)) for fd in (control_fd, ready_fd))
    launch = Launch(Order.read(json.loads(_read_all(ready))), control, ready)
    launch.build()
    sys.exit(launch.go_in())


class Launch:
    """Makes a jail with its supervisor, then a warm process in it, both forked from this process.

    So what is done between `build` and `go_in`, like importing a library, is done once for the
    warm process and for the one that calls; and the supervisor, forked before, stays small.
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
            _never_return(lambda: self._be_outside(parent, said))
        for one in (self.control, self.tells, *self.asks):
            one.close()
        return outer

    def go_in_apart(self, said: int) -> int:
        """Fork a process that goes in; its number. It ends after the jail, with what that holds."""
        apart = os.fork()
        if apart == 0:
            _never_return(lambda: self._be_apart(said))
        for one in (self.ready, self.spaces, *self.answers):
            one.close()
        return apart

    def go_in(self) -> int:
        """Fork the warm process, into the jail, and wait; the status with which it ended."""
        jail = self._jail()
        parent = os.getpid()
        if jail is None:
            return 1
        folder = ""
        if self.order.found is None:
            folder = tempfile.mkdtemp(prefix="warm-")
            inner = os.fork()
        else:
            if not self.order.found.own_uid:
                sandbox.join([jail.pop(0)])
            inner = sandbox.fork_into(jail.pop(0), None)
        if inner == 0:
            _never_return(lambda: self._be_warm(parent, jail, folder))
        for one in (self.ready, *self.answers):
            one.close()
        status = os.waitpid(inner, 0)[1]
        if folder:
            shutil.rmtree(folder, ignore_errors=True)
        return os.waitstatus_to_exitcode(status) & 255

    def _jail(self) -> list[int] | None:
        """The namespaces of the jail, once it is built; None if that failed."""
        with self.spaces, suppress(ConnectionError):
            told, fds, _, _ = socket.recv_fds(self.spaces, 1, _MOST_FDS)
            return fds if told else None
        return None

    def _be_outside(self, parent: int, said: int | None) -> int:
        """Stand around the jail."""
        sandbox.die_with_parent(parent)
        lines = [self.control, self.tells, *self.asks]
        if said is not None:
            _keep_only(lines, said)
        else:
            for one in (self.ready, self.spaces, *self.answers):
                one.close()
        if self.order.found is None:
            self.tells.sendall(b"k")
            self.tells.close()
            _Supervisor(self.order, self.asks).serve(self.control)
            return 0
        sandbox.leave_the_machine(self.order.found)
        here = os.getpid()
        inner = os.fork()
        if inner == 0:
            _never_return(lambda: self._be_supervisor(here))
        for one in lines:
            one.close()
        return os.waitstatus_to_exitcode(os.waitpid(inner, 0)[1]) & 255

    def _be_supervisor(self, parent: int) -> None:
        assert self.order.found
        sandbox.die_with_parent(parent)
        sandbox.build_jail([Path(path) for path in self.order.readable])
        spaces = sandbox.own_namespaces(user=not self.order.found.own_uid)
        socket.send_fds(self.tells, [b"k"], spaces)
        for space in spaces:
            os.close(space)
        self.tells.close()
        _Supervisor(self.order, self.asks).serve(self.control)

    def _be_apart(self, said: int) -> int:
        _keep_only([self.ready, self.spaces, *self.answers], said)
        return self.go_in()

    def _be_warm(self, parent: int, spaces: Sequence[int], folder: str) -> None:
        sandbox.die_with_parent(parent)
        sandbox.forget_umask()
        if folder:  # there is no jail in which the home that libraries want to write to could be
            os.environ.update(sandbox.environment_at(folder))
        if self.order.found:
            sandbox.join(spaces)
            for space in spaces:
                os.close(space)
            sandbox.die_with_parent(parent)  # a change of namespaces may make the kernel forget
            os.chdir("/")
        tempfile.tempdir = None  # what was found on the machine is not in the jail
        sys.dont_write_bytecode = True  # most of what is there cannot be written
        _Warm(self.order, self.answers, self.ready).run()


class _Supervisor:
    """Forks a keeper for each request, until nobody can ask any more."""

    def __init__(self, order: Order, asks: Sequence[socket.socket]) -> None:
        self.order = order
        self.asks = asks
        self.slots: dict[int, int] = {}  # keeper -> its slot, which stands for a user id
        self.first = struct.unpack("H", os.urandom(2))[0]  # two graders, two ranges

    def serve(self, control: socket.socket) -> None:
        gc.freeze()  # a collection in a child must not touch, and so copy, every page
        poll = select.poll()
        poll.register(control, select.POLLIN)
        poll.register(self.asks[0], 0)  # tells only that the warm process has ended
        while True:
            ready = dict(poll.poll(500))
            self._bury()
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
            _tell(leash_fd, failed=f"more than {most} sandboxes were asked for at once")
            return
        try:
            keeper = os.fork()
        except OSError as error:  # of this request alone
            _tell(leash_fd, failed=str(error))
            return
        if keeper == 0:
            _never_return(lambda: self._keep(here, control, request, slot, sock_fd, leash_fd))
        self.slots[keeper] = slot

    def _keep(
        self,
        parent: int,
        control: socket.socket,
        request: bytes,
        slot: int,
        sock_fd: int,
        leash_fd: int,
    ) -> None:
        sandbox.die_with_parent(parent)
        control.close()
        leash = socket.socket(fileno=leash_fd)
        keeper = _Keeper(self.order, slot, leash, self.asks[request == BEGUN])
        try:
            keeper.start(TEST if request == TEST else SPAWN, sock_fd)
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


def most_at_once() -> int:
    """How many sandboxes there may be; a grading process holds one or two."""
    return max(64, 4 * (os.cpu_count() or 1))


class _Keeper:
    """Stands between the supervisor and one sandbox: kills it when the leash says so."""

    def __init__(self, order: Order, slot: int, leash: socket.socket, warm: socket.socket) -> None:
        self.order = order
        self.slot = slot
        self.leash = leash
        self.warm = warm
        self.folder = ""
        self.process = 0  # process 1 of the sandbox, or the student's without one
        self.status_fd = -1
        self.heard = b""
        self.used: sandbox.Watch | None = None  # without a sandbox nobody looks

    def start(self, request: bytes, sock_fd: int) -> None:
        """Have made what is to be kept."""
        ours, theirs = socket.socketpair()
        self.status_fd, write_fd = ours.detach(), theirs.detach()
        if self.order.found:
            here = os.getpid()
            above = os.getppid()
            sandbox.enter(self.order.found, self.order.limits, self.slot)
            sandbox.die_with_parent(above)  # a change of user has made the kernel forget
            self.used = sandbox.Watch(self.order.limits)
            self.process = os.fork()
            if self.process == 0:
                _never_return(lambda: self._be_first(here, request, sock_fd, write_fd))
        else:
            self.folder = tempfile.mkdtemp(prefix="student-")
            folder = os.open(self.folder, os.O_RDONLY)
            self._ask(request, sock_fd, write_fd, [folder])
            os.close(folder)
        self.warm.close()
        os.close(write_fd)
        os.close(sock_fd)

    def watch(self) -> str:
        """Wait for the end, from within or from without; how it ended."""
        poll = select.poll()
        poll.register(self.leash, select.POLLIN)
        poll.register(self.status_fd, select.POLLIN)
        told = ""
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
            if told or report is not None:
                self._kill()
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
        socket.send_fds(self.warm, [_ASK.pack(request, self.slot)], [sock_fd, write_fd, *places])

    def _be_first(self, parent: int, request: bytes, sock_fd: int, write_fd: int) -> None:
        """Process 1 of a sandbox: have the student's process made, and let the dead be buried."""
        found = self.order.found
        assert found
        sandbox.die_with_parent(parent)
        os.setsid()
        sandbox.say_nothing()
        try:
            spaces = sandbox.own_namespaces(user=found.user_namespaces)
            sandbox.hide_processes()
            sandbox.give_up_rights(found, self.slot, self.order.seccomp)
            sandbox.die_with_parent(parent)
            sandbox.hide_from_siblings()
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
            self._ask(request, sock_fd, write_fd, spaces)
        except OSError as error:
            _tell(write_fd, failed=str(error))
            return
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        while True:  # bury them: the time of those who bury themselves is nobody's
            signal.sigwait([signal.SIGCHLD])
            with suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass


class _Warm:
    """The warm process: makes ready once, then forks students' processes."""

    def __init__(self, order: Order, lines: Sequence[socket.socket], ready: socket.socket) -> None:
        self.order = order
        self.lines = lines
        self.ready = ready
        self.students: dict[int, int] = {}  # process -> where to tell how it ended
        self.own = -1

    def run(self) -> None:
        """Make ready, say so, and serve until nobody asks any more."""
        gc.disable()  # imports make no garbage, only work for its collector
        student = importlib.import_module(self.order.student)
        student.warm(list(self.order.modules), self.order.watched)
        with suppress(ImportError):
            importlib.import_module("resource")  # for `sandbox.limit`
        gc.enable()
        gc.set_threshold(*sandbox.RARELY)
        printed = self._begin(student) if self.order.head else None
        self.lines[1].close()
        if printed is None:  # else few submissions will come from here
            self._freeze()
        self.ready.sendall(b"ok" + json.dumps(printed).encode())
        self.ready.close()
        self._serve(student, self.lines[0])

    def _begin(self, student: Any) -> list[str] | None:
        """Fork a second warm process, which has run the head; what that printed, if it is fit."""
        read_fd, write_fd = os.pipe()
        here = os.getpid()
        if os.fork() == 0:
            _never_return(lambda: self._begin_here(here, student, read_fd, write_fd))
        os.close(write_fd)
        with os.fdopen(read_fd, "rb") as told:
            return json.loads(told.read() or b"null")

    def _begin_here(self, parent: int, student: Any, read_fd: int, write_fd: int) -> None:
        sandbox.die_with_parent(parent)
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
        sandbox.use_large_pages()

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
                    self._bury()
                if line.fileno() in ready and not self._take(line, jobs):
                    return

    def _take(self, line: socket.socket, jobs: dict[bytes, Serve]) -> bool:
        """Answer one request; False when nobody can ask any more."""
        try:
            asked, fds, _, _ = socket.recv_fds(line, _ASK.size, _MOST_FDS)
        except ConnectionError:
            return False
        if len(asked) == _ASK.size and len(fds) > 2:
            request, slot = _ASK.unpack(asked)
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
                child = sandbox.fork_into(spaces.pop(at), self.own)
            else:
                child = os.fork()
        except OSError as error:
            _tell(status_fd, failed=str(error))
        if child == 0:
            _never_return(lambda: self._be_student(here, serve, slot, sock_fd, status_fd, spaces))
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
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.setsid()
            sandbox.say_nothing()
            self._enter(slot, status_fd, places)
            sandbox.die_with_parent(parent)
            sandbox.limit(self.order.limits, self.order.found)
        except OSError as error:
            _tell(status_fd, failed=str(error))
            return
        os.dup2(sock_fd, 3)
        os.closerange(4, os.sysconf("SC_OPEN_MAX"))
        serve(socket.socket(fileno=3))

    def _enter(self, slot: int, status_fd: int, places: Sequence[int]) -> None:
        """Be where this student's process belongs."""
        if self.order.found:
            sandbox.go_first()
            sandbox.join(places)
            sandbox.give_up_rights(self.order.found, slot, self.order.seccomp)
        else:
            os.fchdir(places[0])
            os.environ["HOME"] = str(Path.cwd())
            _tell(status_fd, process=os.getpid())

    def _bury(self) -> None:
        """Collect the children that have ended, and tell how."""
        with suppress(ChildProcessError):
            while True:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
                if pid == 0:
                    return
                if pid in self.students:
                    status_fd = self.students.pop(pid)
                    seconds = usage.ru_utime + usage.ru_stime
                    _tell(status_fd, status=status, seconds=seconds, kilobytes=usage.ru_maxrss)
                    os.close(status_fd)


def in_words(status: int, seconds: float, kilobytes: int, limits: Limits) -> str:
    """How a process ended, from its wait status and what it used."""
    killed_by = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    if killed_by == signal.SIGXCPU or (killed_by and seconds > limits.cpu_seconds):
        return sandbox.too_long(limits)
    if killed_by == signal.SIGKILL and kilobytes > limits.memory_mb * 1024 * 0.9:
        return "used more memory than allowed"
    return sandbox.ending(status)


def _tell(status_fd: int, **what: Any) -> None:
    """One line to whoever waits for it, if anybody does yet."""
    with suppress(OSError):
        os.write(status_fd, json.dumps(what).encode() + b"\n")


def _show_usage(process: int, status_fd: int) -> None:
    """Send the files in which stands what a process uses, if they are to be seen here."""
    files = open_files(process)
    if files:
        with suppress(OSError), socket.fromfd(status_fd, socket.AF_UNIX, socket.SOCK_STREAM) as one:
            socket.send_fds(one, [b"{}\n"], files)
    for file in files:
        os.close(file)


@contextmanager
def _deaths() -> Iterator[socket.socket]:
    """A socket from which something can be read when a child has ended."""
    woken, waker = socket.socketpair()
    with woken, waker:
        woken.setblocking(False)
        waker.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
        yield woken


def _say_ok(sock: socket.socket) -> None:
    sock.sendall(b"ok")


def _never_return(job: Callable[[], int | None]) -> NoReturn:
    """Run a forked child's job; whatever happens, the parent's code must not go on in it."""
    code = 1
    try:
        code = job() or 0
    except Exception:  # noqa: BLE001  (the holder reads what is said)
        traceback.print_exc()
    finally:
        with suppress(Exception):
            sys.stderr.flush()
        os._exit(code)


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
    parts = []
    while part := sock.recv(1 << 16):
        parts.append(part)
    return b"".join(parts)

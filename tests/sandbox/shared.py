"""What the tests of the sandbox share: a module that runs in it, and a look at processes."""

import json
import os
import socket
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from autograder.isolation import kernel
from autograder.isolation.fork_server import ForkServer, Spawned
from autograder.isolation.limits import Limits

HERE = Path(__file__).parents[1]  # the tests


ROOT = HERE.parent


ORDINARY = 12345  # a user id without an account


SMALL = Limits(memory_mb=300, cpu_seconds=1, processes=12, file_mb=4, disk_mb=8)


GONE = 30  # seconds; a machine under load is slow, a hang is for ever


def warm(modules: list[str], watched: list[str]) -> None:
    """Stands for the engine's: import what is asked for."""
    assert not watched
    for module in modules:
        __import__(module)


def serve(sock: socket.socket) -> None:
    """Stands for the engine's: run what comes, a line each, and send back `answer`."""
    stream = sock.makefile("rw")
    for line in stream:
        names: dict[str, Any] = {}
        try:
            exec(json.loads(line), names)
            answer = names.get("answer")
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the test looks at it
            answer = f"{type(error).__name__}: {error}"
        stream.write(json.dumps(answer) + "\n")
        stream.flush()


def run(spawned: Spawned, code: str) -> Any:
    """What `answer` is after the code ran inside; None if the process died of it."""
    spawned.sock.settimeout(GONE)
    spawned.sock.sendall(json.dumps(textwrap.dedent(code)).encode() + b"\n")
    line = b""
    while not line.endswith(b"\n"):
        part = spawned.sock.recv(1 << 16)
        if not part:
            return None
        line += part
    return json.loads(line)


def become_ordinary() -> None:
    """In a child of root: open the way to Python in a private mount namespace, then give up."""
    before = os.umask(0o022)
    kernel.unshare(kernel.NEWNS)
    kernel.mount("", "/", "", kernel.REC | kernel.PRIVATE)
    for wanted in {sys.prefix, sys.base_prefix, str(ROOT)}:
        for folder in reversed(Path(wanted).parents):
            if not folder.stat().st_mode & 0o001:
                inside = os.open(wanted, os.O_PATH)
                kernel.mount("tmpfs", str(folder), "tmpfs", 0, "mode=755")
                Path(wanted).mkdir(parents=True)
                kernel.mount(f"/proc/self/fd/{inside}", wanted, "", kernel.BIND)
                break
    os.umask(before)
    os.setgroups([])
    os.setresgid(ORDINARY, ORDINARY, ORDINARY)
    os.setresuid(ORDINARY, ORDINARY, ORDINARY)


def become_ordinary_in_a_container() -> None:
    """The same where part of /proc is covered: the kernel then refuses a new one to a sandbox."""
    kernel.unshare(kernel.NEWNS)
    kernel.mount("", "/", "", kernel.REC | kernel.PRIVATE)
    kernel.mount("tmpfs", "/proc/sys", "tmpfs", kernel.RDONLY)
    become_ordinary()


@contextmanager
def secretive() -> Iterator[None]:
    """As one whose files no other user may read."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


def shut_in(made: ForkServer) -> set[int]:
    """The processes that are in sandboxes: two namespaces below ours."""
    found = set()
    for pid in below(made._processes[0].pid):
        with suppress(OSError):
            status = Path("/proc", str(pid), "status").read_text()
            levels = status.partition("NSpid:")[2].splitlines()[0].split()
            found |= {pid} if len(levels) == 3 else set()
    return found


def level_of(pid: int) -> str:
    """Its number in a sandbox; empty if it is in none."""
    with suppress(OSError):
        status = Path("/proc", str(pid), "status").read_text()
        numbers = status.partition("\nNSpid:")[2].splitlines()[0].split()
        return numbers[2] if len(numbers) == 3 else ""
    return ""


def ticks_of(pid: int) -> int:
    """The CPU time that it has used."""
    fields = Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def below(top: int) -> set[int]:
    """All processes below one that live, as the kernel lists them."""
    found: set[int] = set()
    try:
        tasks = list(Path("/proc", str(top), "task").iterdir())
        for task in tasks:
            for child in map(int, (task / "children").read_text().split()):
                state = Path("/proc", str(child), "stat").read_text().rpartition(")")[2].split()[0]
                found |= below(child) | ({child} if state != "Z" else set())
    except (FileNotFoundError, ProcessLookupError):
        pass
    return found


def wait_until(holds: Any) -> None:
    """Until it holds; a failure after a time in which any machine would have managed."""
    deadline = time.monotonic() + GONE
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)

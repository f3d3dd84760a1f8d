"""Two ends of the line: an answer in its process, and one that forges messages."""

import collections
import contextlib
import json
import random
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from autograder.bridge.line import Gone
from autograder.bridge.peer import Peer
from autograder.bridge.session import Student
from autograder.bridge.stand_ins import FORWARDED
from autograder.bridge.wire import HEAD, Frame
from autograder.common.results import Raised
from autograder.isolation.clock import Clock
from autograder.isolation.fork_server import ForkServer
from autograder.judge.guard import Guard


@contextlib.contextmanager
def answering(fork_server: ForkServer, source: str, seconds: float = 60) -> Iterator[Student]:
    """A student's process that has run this."""
    student = Student(fork_server.spawn(), Guard(FORWARDED))
    try:
        ran = student.run("cell", source, seconds)
        assert ran.ok, (ran.raised, ran.words)
        with student.clock(seconds):
            yield student
    finally:
        student.close()


def unbelieving(fork_server: ForkServer) -> Iterator[Callable[[str], Any]]:
    """What runs an answer; tests believe no operator of its objects, as where there is none."""
    with contextlib.ExitStack() as stack:

        def run(source: str) -> Any:
            student = stack.enter_context(answering(fork_server, source))
            student.peer.policy = Guard()
            return Names(student)

        yield run


class Names:
    """What an answer's process defines, as attributes."""

    def __init__(self, student: Student) -> None:
        self._student, self._peer = student, student.peer

    def __getattr__(self, name: str) -> Any:
        return self._student.name(name)


def of_tests(source: str) -> dict[str, Any]:
    """What a test cell defines: its classes and functions belong to the tests' module."""
    space: dict[str, Any] = {"__name__": "__main__"}
    exec(source, space)
    return space


def holders() -> list[Any]:
    """One of each kind that holds values and is neither a list, a dictionary nor a set."""
    return [
        collections.deque([1, 2], maxlen=3),
        collections.Counter("aab"),
        collections.OrderedDict(x=1, y=[2]),
        collections.defaultdict(int, old=1),
        bytearray(b"abc"),
    ]


def protected(answer: Any, source: str, allowed: Any) -> Any:
    """What an answer's process defines; of our values only these may be changed."""
    names = answer(source)
    names._peer.protect, names._peer.allowed = True, allowed
    return names


def raised_of(error: BaseException) -> Raised:
    """What is told of the exception that an answer raised."""
    found: Any = error
    return found.raised


GENERATORS: Any = np.random  # its functions of old, which students' notebooks use


def generators() -> Any:
    """The state of all random generators that code shares."""
    import torch

    return random.getstate(), str(GENERATORS.get_state()), torch.get_rng_state().tolist()


class Enemy:
    """Holds the raw socket of the answer's end."""

    def __init__(self, line: socket.socket) -> None:
        self.line = line

    def say(self, tree: Any, *buffers: bytes) -> None:
        """Send a frame."""
        frame = Frame(tree, list(buffers))
        with contextlib.suppress(OSError):
            self.line.sendall(b"".join(bytes(piece) for piece in frame.pieces()))

    def hear(self) -> Any:
        """The tree of the next frame."""
        length, count = HEAD.unpack(self._read(HEAD.size))
        sizes = struct.unpack(f"!{count}Q", self._read(8 * count))
        tree = json.loads(self._read(length))
        for size in sizes:
            self._read(size)
        return tree

    def _read(self, size: int) -> bytes:
        found = b""
        while len(found) < size:
            part = self.line.recv(size - len(found))
            if not part:
                raise EOFError
            found += part
        return found


@contextlib.contextmanager
def against(act: Callable[[Enemy], None], seconds: float = 20.0) -> Iterator[Peer]:
    """The trusted end, with somebody else at the other."""
    ours, theirs = socket.socketpair()
    peer = Peer(ours, Guard(), {})
    peer.clock = Clock(seconds)

    def run() -> None:
        with contextlib.suppress(EOFError, OSError, ValueError):
            act(Enemy(theirs))
        with contextlib.suppress(OSError):
            theirs.shutdown(socket.SHUT_RDWR)
        theirs.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield peer
    finally:
        ours.close()
        thread.join(20)


def outcome(act: Callable[[Enemy], None], *values: Any, seconds: float = 20.0) -> Any:
    """What a request to this other end gives: a value, or the exception as it is."""
    with against(act, seconds) as peer:
        try:
            return peer.ask("name", *values)
        except Exception as error:  # noqa: BLE001  (any of them only fails the test)
            return error
        except Gone as error:
            return error


def replying(tree: Any, *buffers: bytes) -> Callable[[Enemy], None]:
    """Somebody who replies this to everything."""

    def act(enemy: Enemy) -> None:
        while True:
            enemy.hear()
            enemy.say(tree, *buffers)

    return act


def told(**more: Any) -> dict[str, Any]:
    """An object as a reply describes it."""
    return {"n": 1, "k": "object", "type": "T", "dunders": [], **more}


OWN = """
import collections, enum, typing
from enum import IntEnum
class Row(list):
    def total(self): return sum(self)
class Board(list):
    def width(self): return len(self[0])
class Bag(dict):
    def __missing__(self, key): return 0
    def more(self, key): self[key] += 1
class Point(typing.NamedTuple):
    x: int
    y: int
    def older(self): return Point(self.x + 1, self.y)
class Way(str, enum.Enum):
    NORTH = "N"
    EAST = "E"
class Level(IntEnum):
    LOW = 1
    HIGH = 2
class Queue(collections.deque):
    def waiting(self): return len(self)
class Seen(set):
    def has(self, x): return x in self
HELD = []
def row(): HELD.append(Row([1, 2])); return HELD[-1]
def is_held(x): return x is HELD[-1]
def thrice(): return [Row([0])] * 3
ONE = Row()
def same(): return ONE
def push(x, part): x.append(part)
def total(x): return x.total()
def board(): return Board([Row([0] * 2), Row([0] * 2)])
def width(b): return b.width()
def put(b, i, j): b[i][j] = 1; return b[i].total()
def bag(): return Bag()
def more(b, key): b.more(key); return b[key]
def queue(): return Queue()
def join(q, who): q.append(who); return q.waiting()
def seen(): return Seen()
def see(s, x): s.add(x); return s.has(x)
def point(): return Point(1, 2)
def points(): return [Point(n, n) for n in range(3)]
def older(p): return p.older()
def way(): return Way.NORTH
def turned(w): return Way.EAST if w.name == 'NORTH' else Way.NORTH
def levels(): return [[Level.LOW, Level.HIGH]]
def is_low(x): return x is Level.LOW
def plain(): HELD.append([1, [2]]); return HELD[-1]
def change_held(): HELD[-1].append(0)
"""

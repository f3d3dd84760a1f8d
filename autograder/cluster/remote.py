"""What a worker of Dask's runs for the grader; goes there as text, so no copy need be installed.

`begin` unpacks what travels once (see `kit`) and starts a process of the grader's, a *hand*; `work`
gives a hand one submission and returns what it says. Bytes go through, nobody here looks into
them. Nothing but Python's library and Dask is imported: that a worker has other versions of all
else it can say itself.
"""

import io
import json
import os
import platform
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import types
import zipfile
from contextlib import suppress

FRAME = struct.Struct(">Q")
IDLE = 900.0  # seconds without work after which hands end and what travelled is removed
GONE, FAILED = b"G", b"F"  # there is nothing unpacked here; the hand has ended
START = """import json, struct, sys
sys.path.append(sys.argv[1])
try:
    from autograder.cluster.hand import main
except ImportError as error:
    said = json.dumps({"failed": f"{type(error).__name__}: {error}"}).encode()
    sys.stdout.buffer.write(struct.pack(">Q", len(said)) + said)
    sys.exit(1)
main(*sys.argv[2:])
"""


class Hand:
    """One process that holds a warm pool and grades one submission at a time."""

    def __init__(self, folder):
        """Start it; `folder` holds what has travelled."""
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c", START, f"{folder}/grader", folder, str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=folder,
        )
        assert self.process.stdin and self.process.stdout
        self.orders, self.answers = self.process.stdin, self.process.stdout
        self.report = self.read()

    def ask(self, data):
        """What it says to this."""
        self.orders.write(FRAME.pack(len(data)))
        self.orders.write(data)
        self.orders.flush()
        return self.read()

    def read(self):
        """One message; EOFError if it has ended."""
        head = self.answers.read(FRAME.size)
        data = self.answers.read(*FRAME.unpack(head)) if len(head) == FRAME.size else b""
        if not data:
            raise EOFError(f"the grader's process ended with status {self.process.wait()}")
        return data

    def end(self):
        """End it; what it has started ends with it."""
        for pipe in (self.orders, self.answers):
            with suppress(OSError):
                pipe.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Hands:
    """The hands of one run on this worker, as many as are at work at one time."""

    def __init__(self, folder):
        """None yet."""
        self.folder, self.free, self.all = folder, [], []
        self.lock, self.timer = threading.Lock(), None

    def take(self):
        """A hand that nobody uses."""
        with self.lock:
            if self.timer is not None:
                self.timer.cancel()
            hand = self.free.pop() if self.free else None
        if hand is None:
            hand = Hand(self.folder)
            with self.lock:
                self.all.append(hand)
        return hand

    def give_back(self, hand):
        """It has done its work; without more of that it ends some time later."""
        with self.lock:
            self.free.append(hand)
            if self.timer is not None:
                self.timer.cancel()
            if len(self.free) == len(self.all):
                self.timer = threading.Timer(IDLE, end)
                self.timer.daemon = True
                self.timer.start()

    def drop(self, hand):
        """It has failed."""
        with self.lock:
            self.all.remove(hand)
        hand.end()

    def end(self):
        """End all of them and remove what has travelled."""
        with self.lock:
            hands, self.all, self.free = self.all, [], []
            if self.timer is not None:
                self.timer.cancel()
        for hand in hands:
            hand.end()
        shutil.rmtree(self.folder, ignore_errors=True)


hands = None


def begin(name, kit):
    """Unpack what travels, start a hand; its report, or what went wrong, as JSON."""
    global hands
    folder = tempfile.mkdtemp(prefix="grader-", dir=local_directory())
    try:
        with zipfile.ZipFile(io.BytesIO(kit)) as archive:
            archive.extractall(folder)
        hands = Hands(folder)
        hand = hands.take()
        report = hand.report
        hands.give_back(hand)
    except (EOFError, OSError, ValueError) as error:
        shutil.rmtree(folder, ignore_errors=True)
        python = f"{platform.python_implementation()} {platform.python_version()}"
        return json.dumps({"failed": str(error), "python": python}).encode()
    if name in sys.modules:
        sys.modules[name].end()
    module = types.ModuleType(name)
    vars(module).update(work=work, end=end)
    sys.modules[name] = module
    return report


def work(data):
    """Have one submission graded; the hand's words about it, or that there is none."""
    if hands is None:
        return GONE
    hand = None
    try:
        hand = hands.take()
        said = hand.ask(data)
    except (EOFError, OSError, ValueError) as error:
        if hand is not None:
            hands.drop(hand)
        return FAILED + str(error).encode(errors="replace")
    hands.give_back(hand)
    return said


def end():
    """The run is over, or its caller is gone."""
    global hands
    ended, hands = hands, None
    if ended is not None:
        ended.end()
    return b""


def local_directory():
    """Where this worker may write; Dask tidies up there after a worker that was killed."""
    from distributed import get_worker

    return get_worker().local_directory

"""The line between the two processes: whole frames, in time; and the end of what cannot go on."""

import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from autograder.bridge import loaded
from autograder.bridge.wire import Frame, WireError, read_frame
from autograder.isolation.clock import Clock, Over

if TYPE_CHECKING:
    from autograder.bridge.peer import Peer

MAX_RECEIVED = 4_000_000_000  # bytes from an answer during one test


class Gone(BaseException):
    """The other process hung, died or talked nonsense.

    A test that catches everything catches it as well, so the peer remembers it: see `Peer.gone`.
    """

    def __init__(self, kind: str, words: str) -> None:
        super().__init__(words)
        self.kind = kind  # "timeout", "died" or "broken"


def left_on(clock: Clock) -> float:
    """Seconds until the clock is to be looked at again; raises Gone if the time is over."""
    try:
        return clock.left()
    except Over:
        raise Gone("timeout", "it took too long") from None


class Line:
    """Reads and sends the frames of one end."""

    def __init__(self, peer: "Peer") -> None:
        self.peer = peer
        self.unread = bytearray()
        self.received = 0  # bytes since a test began
        self.sending = threading.RLock()  # other threads than the main one load modules as well

    def read(self) -> Frame:
        """The next message; what an answer's end tells of its modules is heard on the way."""
        while loaded.RAN in (frame := self._next()).tree and not self.peer.is_free:
            self.peer.ran.hear(frame)
        return frame

    def _next(self) -> Frame:
        try:
            frame = read_frame(self._receive)
        except WireError as error:
            raise Gone("broken", str(error)) from error
        if not isinstance(frame.tree, dict):
            raise Gone("broken", "a message was no message")
        return frame

    def _receive(self, size: int) -> bytes:
        """The next bytes; what comes with them is kept for the next time."""
        while len(self.unread) < size:
            self.peer.mind_the_clock()
            try:
                part = self.peer.line.recv(1 << 16)  # more costs a new memory map each time
            except TimeoutError:
                continue  # the clock decides
            except OSError as error:
                raise EOFError from error
            if not part:
                raise EOFError
            self.unread += part
            self.received += len(part)
            if self.received > MAX_RECEIVED and not self.peer.is_free:
                raise Gone("broken", "the answer sent more than a test can hold")
        found = bytes(memoryview(self.unread)[:size])
        del self.unread[:size]
        return found

    def send(self, frame: Frame) -> None:
        """Send one message."""
        pieces = frame.pieces()
        try:
            if sum(len(piece) for piece in pieces) < 1 << 16:
                pieces = [b"".join(pieces)]
            with self.sending:
                for piece in pieces:
                    self._send_all(memoryview(piece).cast("B"))
        except OSError as error:
            raise Gone("died", "the process of the answer ended") from error

    def _send_all(self, piece: memoryview) -> None:
        while len(piece):
            self.peer.mind_the_clock()
            with suppress(TimeoutError):  # the clock decides
                piece = piece[self.peer.line.send(piece) :]

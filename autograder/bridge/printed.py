"""What an answer prints while a test calls it: told with its messages, and printed here as well.

So a test that catches what is printed, by `redirect_stdout` or in `sys.stdout`'s place, catches it
as in a notebook. It is text that an answer has chosen, and nothing else is made of it.
"""

import io
import sys
from contextlib import suppress
from typing import Any

MAX_SAID = 20_000  # characters that go with one message
MAX_PARTS = 2000
STREAMS = ("stdout", "stderr")


class Printed:
    """What waits to be told, at an answer's end."""

    def __init__(self) -> None:
        self.parts: list[list[str]] = []  # each with the name of its stream
        self.left = MAX_SAID

    def note(self, stream: str, text: str) -> None:
        """Something was printed; what is too much for one message is left out."""
        if self.left <= 0:
            return
        kept = text[: self.left]
        self.left -= len(kept)
        if self.parts and (self.parts[-1][0] == stream or len(self.parts) >= MAX_PARTS):
            self.parts[-1][1] += kept
        else:
            self.parts.append([stream, kept])

    def forget(self) -> None:
        """Nothing is to be told of what a cell has printed."""
        self.parts, self.left = [], MAX_SAID

    def leave(self, tree: dict[str, Any]) -> None:
        """Put into a message what waits."""
        if self.parts:
            tree["said"] = self.parts
            self.forget()


def print_here(told: Any) -> None:
    """Print what an answer has printed, to where a test has its streams now."""
    for part in told[: MAX_PARTS + 1] if type(told) is list else ():
        stream, text = part if type(part) is list and len(part) == 2 else ("", "")
        if stream in STREAMS and type(text) is str:
            with suppress(Exception):  # a test's own stream may be closed
                getattr(sys, stream).write(text)


class Telling(io.TextIOBase):
    """A stream of an answer's process: what is written goes on, and is noted."""

    def __init__(self, onward: Any, name: str, printed: Printed) -> None:
        self.onward, self.stream, self.printed = onward, name, printed

    def write(self, text: str) -> int:
        """Write a text."""
        self.printed.note(self.stream, str(text))
        return self.onward.write(text)

    def writable(self) -> bool:
        """It is for writing."""
        return True

    def fileno(self) -> int:
        """That of the stream to which it goes on."""
        return self.onward.fileno()

    def flush(self) -> None:
        """Nothing waits to be written."""

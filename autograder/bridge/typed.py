"""What an answer's `input()` gets where a test has put a function in the place of Python's own.

As any function of a test's that an answer may call, it goes with the test's requests, and works
where the test runs. Without one, a stream that the test has in `sys.stdin`'s place is read.
"""

import builtins
import sys
from collections.abc import Callable
from typing import Any

from autograder.bridge.stand_ins import remote_of

PYTHONS = builtins.input
NOBODY = "remove input(): nobody can answer it when the notebook is graded"


class Typed:
    """At a test's end what it has in the place of `input`; at an answer's what it was told of."""

    def __init__(self) -> None:
        self.own: Callable[[], Any] = lambda: None  # what a test's names say that `input` is
        self.asked: Any = None  # what an answer calls, while a test calls it
        self.put: Any = None
        self.function: Any = None  # what is handed over for that: a function, whatever that is

    def leave(self) -> Callable[..., Any] | None:
        """What an answer is to ask; none where the test has put nothing there."""
        own = self.own()
        put = builtins.input if own is None else own
        if put is PYTHONS or not callable(put) or remote_of(put) is not None:
            return None
        if put is not self.put:

            def answer(*given: Any) -> Any:
                return put(*given)

            self.put, self.function = put, answer
        return self.function

    def input(self, *given: Any) -> Any:
        """In the place of Python's own in a student's process."""
        if self.asked is not None:
            return self.asked(*given)
        if remote_of(sys.stdin) is None:
            raise RuntimeError(NOBODY)
        print(*given, end="")  # as Python does where its input is no terminal
        line = sys.stdin.readline()
        if not line:
            raise EOFError("EOF when reading a line")
        return line.removesuffix("\n")

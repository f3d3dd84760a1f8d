"""What one end awaits and the other end has: a coroutine runs to its end in the process it is of.

Whoever awaits a stand-in of one waits for all of it: what several would do side by side they do one
after another, and give the same. Each process runs what is its own in a loop of its own, which goes
on from one to the next, so that a generator is not ended between two of its steps.
"""

import atexit
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

AWAIT = "__await__"
OF_ASYNC = ("await", "aiter", "anext", "aenter", "aexit")  # special methods, but for their signs

# what `asyncio` looks for where it names a task, as it does in each `run`
UNKNOWN = {"cr_code": None, "gi_code": None, "cr_running": False, "gi_running": False}


def run(awaitable: Any) -> Any:
    """What an awaitable of this end gives; another one may be under way here."""
    import asyncio  # late, as few need it

    async def ended() -> Any:
        return await awaitable

    outer = asyncio._get_running_loop()
    loop = _LOOPS.pop() if _LOOPS else asyncio.new_event_loop()
    asyncio._set_running_loop(None)
    try:
        return loop.run_until_complete(ended())
    finally:
        asyncio._set_running_loop(outer)
        _LOOPS.append(loop)


def is_in_loop() -> bool:
    """Whether a loop of this process runs what asks."""
    events: Any = sys.modules.get("asyncio")
    return events is not None and events._get_running_loop() is not None


@contextmanager
def within(is_running: bool) -> Iterator[None]:
    """While a test's loop runs there, a plain function here finds one too, for its tasks."""
    if not is_running:
        yield
        return
    import asyncio

    if not _LOOPS:
        _LOOPS.append(asyncio.new_event_loop())
    outer = asyncio._get_running_loop()
    asyncio._set_running_loop(_LOOPS[-1])
    try:
        yield
    finally:
        asyncio._set_running_loop(outer)


@atexit.register
def _close() -> None:
    for loop in _LOOPS:
        loop.close()


_LOOPS: list[Any] = []  # of this process, that do not run now


def forwarding(ask: Callable[[Any], Any], is_coroutine: bool) -> dict[str, Any]:
    """What lets a stand-in be awaited, or pass for a coroutine; `ask` asks for its end there."""

    def awaited(self: Any) -> Generator[Any, Any, Any]:
        return ask(self)
        yield

    def send(self: Any, _: Any) -> NoReturn:
        raise StopIteration(ask(self))

    def throw(self: Any, error: Any, *_: Any) -> NoReturn:
        raise error

    def close(self: Any) -> None:
        """It has begun nothing here."""

    if not is_coroutine:
        return {AWAIT: awaited}
    return {AWAIT: awaited, "send": send, "throw": throw, "close": close} | UNKNOWN

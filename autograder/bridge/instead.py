"""What a test has put in the place of a function of a library's, or of `sys.stdin`, for answers.

A patched `random.randint`, `time.sleep` or `print` is to meet the answer as well, whose process has
modules of its own. So a request says what stands where, and there it stands while the call runs. A
function is called where the test runs, as any that a test hands over.
"""

import functools
import importlib
import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from autograder.bridge.stand_ins import remote_of

if TYPE_CHECKING:
    from autograder.bridge.peer import Peer

Place = tuple[str, str]  # a module's name, and a name in it
NOTHING: Any = object()  # where there is none of that name
MOST = 50


class Instead:
    """At a test's end what stands where; at an answer's what is to stand there."""

    def __init__(self, peer: "Peer") -> None:
        self.peer = peer
        self.usual: dict[Place, Any] = {}  # what stood there when the test began
        self.away: dict[Place, Any] = {}  # while something crosses, what else stands there
        self.told: dict[str, Any] = {}  # at an answer's end, by "module:name"

    def begin(self, places: Iterable[Place]) -> None:
        """A test begins which may put something in these places."""
        self.away = {}
        self.usual = {place: _now(place) for place in [*places][:MOST]}

    @contextmanager
    def aside(self) -> Iterator[None]:
        """While something crosses the usual things stand there: what crosses may need them."""
        if self.away:  # something crosses already, and brings this about
            yield
            return
        self.away = {place: _now(place) for place in self.usual}
        _put(self.usual)
        try:
            yield
        finally:
            _put(self.away)
            self.away = {}

    @contextmanager
    def back(self) -> Iterator[None]:
        """But not while an answer calls what the test has handed it."""
        if not self.away:
            yield
            return
        _put(self.away)
        self.away = {}
        try:
            yield
        finally:
            self.away = {place: _now(place) for place in self.usual}
            _put(self.usual)

    def undo(self) -> None:
        """Where a test failed before it could, have all stand there again that stood there."""
        _put(self.usual)

    def leave(self) -> dict[str, Any]:
        """What stands in other places than it did, each as it is handed over."""
        return {
            ":".join(place): now
            for place, now in self.away.items()
            if now is not self.usual[place] and now is not NOTHING and remote_of(now) is None
        }

    def met(self) -> AbstractContextManager[None]:
        """While something of ours is used: all stands where who uses it is to meet it."""
        if self.peer.is_free:
            return self.during() if self.told else nullcontext()
        return self.back() if self.usual else nullcontext()

    # --- the answer's end -------------------------------------------------------------------------

    @contextmanager
    def during(self) -> Iterator[None]:
        """While a call runs, all that was told of stands in its place."""
        told, self.told = self.told, {}
        with ExitStack() as stack:
            for place, put in told.items():
                stack.enter_context(self._standing(place, put))
            yield

    @contextmanager
    def _standing(self, place: str, put: Any) -> Iterator[None]:
        home, name = place.split(":")
        space = vars(importlib.import_module(home))
        usual = space.get(name, NOTHING)
        made = space[name] = self._asking(put, usual)
        try:
            yield
        finally:
            if space.get(name) is made:  # else an answer has put something else there
                _put({(home, name): usual})

    def _asking(self, put: Any, usual: Any) -> Any:
        """A function that asks the test's; what crosses meanwhile has the usual one."""
        remote = remote_of(put)
        if remote is None or remote.kind == "class" or not (callable(put) and callable(usual)):
            return put

        @functools.wraps(usual, updated=())
        def ask(*given: Any, **named: Any) -> Any:
            return (usual if self.peer.is_busy else put)(*given, **named)

        return ask


def _now(place: Place) -> Any:
    home, name = place
    return vars(sys.modules[home]).get(name, NOTHING) if home in sys.modules else NOTHING


def _put(things: dict[Place, Any]) -> None:
    for (home, name), put in things.items():
        space = vars(sys.modules[home]) if home in sys.modules else {}
        if put is not NOTHING:
            space[name] = put
        else:
            space.pop(name, None)

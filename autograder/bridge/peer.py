"""One end of the line between a test and an answer: calls cross, objects stay where they are.

Both ends run this code. Plain values, arrays and tensors cross by value; functions, classes,
modules and other objects stay with their owner, and the other end gets a stand-in that calls back.
The trusted end answers only what `Policy` allows, believes nothing but values, and keeps a clock.
"""

import collections
import socket
import sys
import threading
import types
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from autograder.bridge import based, codecs, errors, rng
from autograder.bridge.aliases import Shared
from autograder.bridge.answering import Answering
from autograder.bridge.asking import Asking
from autograder.bridge.changing import Changing
from autograder.bridge.incoming import Incoming
from autograder.bridge.instead import Instead
from autograder.bridge.leaving import Leaving
from autograder.bridge.lent import Borrowed
from autograder.bridge.line import Gone, Line, left_on
from autograder.bridge.loaded import Ran
from autograder.bridge.logged import Logged
from autograder.bridge.making import class_of, set_class
from autograder.bridge.outgoing import Outgoing
from autograder.bridge.outline import Beside
from autograder.bridge.own_errors import class_remote
from autograder.bridge.policy import Free, Policy
from autograder.bridge.printed import Printed
from autograder.bridge.protocol import FRAMES
from autograder.bridge.records import Records
from autograder.bridge.reference import Allowed, Due, Expected, Left, path_of, reckoned_from
from autograder.bridge.stand_ins import FORWARDED, Held, Remote, remote_of, ways
from autograder.bridge.thrown import Thrown
from autograder.bridge.transcript import Asked, Transcript
from autograder.bridge.typed import Typed
from autograder.bridge.warned import Warned
from autograder.bridge.wire import WireError
from autograder.common.results import Crossing
from autograder.isolation.clock import Clock

BOUND = types.MethodType | types.BuiltinMethodType


class Peer:
    """One end: sends requests, answers those of the other end meanwhile."""

    def __init__(self, line: socket.socket, policy: Policy, services: dict[str, Callable]) -> None:
        self.line = line
        self._policy = policy
        self.is_free = isinstance(policy, Free)  # the student's end
        self.services = services  # what the other end may ask for by name
        self.clock: Clock | None = None
        self.given: dict[int, Any] = {}  # number -> an object of ours that the other end knows
        self.numbers: dict[int, int] = {}  # id of such an object -> its number
        self.methods: dict[tuple[int, int | str], int] = {}  # bound methods, by their parts
        self.next_number = 1
        self.stand_ins: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
        self.remotes: weakref.WeakValueDictionary[int, Remote] = weakref.WeakValueDictionary()
        self.members: dict[int, Any] = {}  # of enumerations: there is one stand-in of each
        self.dropped: list[int] = []
        self.classes: dict[Any, type] = {}
        self.errors = errors.Classes()
        self.thrown = Thrown(self)
        self.requests = 0  # made so far
        self.crossed = 0  # requests of both ends so far
        self.wire = Line(self)
        self.ran = Ran()  # modules that an answer's end has told of
        self.transcript = Transcript(self)
        self.beside = Beside(self)
        self.asked: list[Asked] | None = None  # calls as they were sent, if they are kept
        self.held: dict[int, Any] = {}  # stand-ins kept until what changed in them is sent
        self.protect = False  # whether changes the other end makes to our values are ignored
        self.allowed: Sequence[tuple[str, tuple[str, ...]]] = ()  # but for these; see `Allowed`
        self.allows = Allowed(())
        self.expected: Sequence[tuple[str, Due]] = ()  # where values are due: `expectations`
        self.expects = Expected(())
        # labels of comparisons with plain values that objects of the other end are asked for
        self.compared: frozenset[str] | None = None if self.is_free else frozenset()  # None: all
        # arithmetic with plain values that objects of the other end are asked for
        self.reckoned: frozenset[str] | None = None  # None: all
        self.left: dict[str, list[str]] | None = None  # see `Left`
        self.leaves = Left(None)
        # labels of calls that may end a loop, as an iterator's next step may
        self.ends: frozenset[str] | None = None if self.is_free else frozenset()  # None: all
        self.failed: BaseException | None = None  # of the test, told to an answer that called it
        self.test = 0  # how many recordings have begun
        self.begins = False  # whether a test that runs has asked for nothing yet
        self.changed_ours = False  # whether the other end changed any of our values
        # stand-ins with attributes of an answer's own, by number: as long as it runs, they stay
        self.marked: dict[int, Any] = {}
        self.asking = Asking(self)
        self.answering = Answering(self)
        self.changing = Changing(self)
        self.leaving = Leaving(self)
        self.changes: collections.Counter[str] = collections.Counter()  # how many of each kind
        self.is_busy = False  # with a message, and running nobody's code
        # raises what there is to say against a value that a test is given under a label
        self.look: Callable[[str, Any], None] | None = None
        # what a test gets in the place of a value that an answer gave
        self.fill: Callable[[Any], Any] | None = None
        self.runs_test = False  # whether what an answer raises may be no `Exception`
        self.gone: Gone | None = None  # an answer stayed out: what comes now may belong to it
        self.shared = Shared(self.is_free)  # values of ours that the other end has copies of
        self.records = Records(self)  # objects that it has as well
        self.open: list[Incoming | Outgoing] = []  # calls under way, the same at both ends
        self.thread = threading.get_ident()
        self.random = rng.Follower()
        self.typed = Typed()
        self.warned = Warned(self)
        self.logged = Logged()
        self.instead = Instead(self)
        self.printed = Printed()  # at the student's end
        self.borrowed = Borrowed()  # files, at the student's end
        self._tensors: Any = None
        self.missing: frozenset[str] = frozenset()  # libraries that the other end does not have
        self.told: frozenset[str] | None = None  # those of ours of which it knows

    @property
    def policy(self) -> Policy:
        """What the other end may do; another one holds for what was handed over before as well."""
        return self._policy

    @policy.setter
    def policy(self, policy: Policy) -> None:
        """Stand-ins made under another policy follow this one from now on."""
        self._policy = policy
        for made in list(self.stand_ins.values()):
            if type(made).__base__ is Held and made._remote.base is None:
                set_class(made, class_of(self, made._remote.told))
            elif self.tensors and self.tensors.is_module(made):
                set_class(made, self.tensors.modules.classes.of(made.__dict__["_remote"].told))

    @property
    def tensors(self) -> Any:
        """Handling of tensors, once both ends have the library; None before."""
        if self._tensors is None and codecs.TORCH not in self.missing:
            codec = codecs.of()
            self._tensors = None if codec is None else codec.of_peer(self)
        return self._tensors

    # --- asking -------------------------------------------------------------------------------

    def ask(self, service: str, *values: Any, due: str = "") -> Any:
        """Ask for a service by name, which has to give what is due."""
        name = str(values[0]) if service == "name" and values else ""
        found = self.asking.request("ask", [service], values, f"ask {service}", name, due)
        if name:
            self.named(found, name)
            self.beside.note(name, found)
            if self.runs_test and self.fill is not None:
                return self.fill(found)
        return found

    def named(self, value: Any, name: str) -> None:
        """A test looked this up by a name: what it makes of it goes by this, in this test.

        What goes by two names in one test has the rights of neither.
        """
        remote = remote_of(value) or class_remote(value)
        if remote is not None and not self.is_free:
            if remote.test != self.test:
                remote.test, remote.origins = self.test, ()
            remote.came(name)

    def call(self, number: int, name: str | None, args: tuple, kwargs: dict, label: str) -> Any:
        """Call an object of the other end, or a method of it."""
        if self.tensors and self.tensors.is_inside(args, kwargs):

            def plain(*args: Any, **kwargs: Any) -> Any:
                return self.call(number, name, args, kwargs, label)

            return self.tensors.called_inside(plain, args, kwargs)
        return self.asking.request("call", [number, name], (args, kwargs), label)

    def step(self, remote: Remote, due: str) -> Any:
        """The next step of an iterator of the other end, which has to be what is due."""
        return self.asking.request(
            "call", [remote.number, "__next__"], ((), {}), remote.use("__next__"), due=due
        )

    def get(self, number: int, name: str, label: str) -> Any:
        """An attribute of an object of the other end."""
        found = self.asking.request("get", [number, name], (), f"get {label}")
        if self.is_free and self.tensors:
            self.tensors.settings.keep(number, name, found)
        return found

    def put(self, number: int, name: str, value: Any) -> Any:
        """Set an attribute of an object of the other end; what that says: `YOURS` for keep it."""
        return self.asking.request(
            "put", [number, name], (value,), f"set {self._label(number)}.{name}"
        )

    def compares(self, label: str) -> bool:
        """Whether an object of the other end is asked how it compares with a plain value."""
        found = map(reckoned_from, ways(path_of(label)))
        return self.compared is None or not self.compared.isdisjoint(found)

    def may_end(self, label: str) -> bool:
        """Whether what a call with this label raises may end a loop of who made the call."""
        return self.ends is None or not self.ends.isdisjoint(ways(path_of(label)))

    def remove(self, number: int, name: str) -> None:
        """Delete an attribute of an object of the other end."""
        self.asking.request("remove", [number, name], (), f"delete {self._label(number)}.{name}")

    def duplicate(self, number: int, how: str = "__deepcopy__") -> Any:
        """A copy of an object of the other end, which stays there; a deep one, or `__copy__`."""
        label = self._label(number)
        return self.asking.request("copy", [number, how], (), f"copy {label}", label)

    def contents(self, number: int) -> Any:
        """What an object of the other end holds, as a plain value."""
        found = self.asking.request("contents", [number], (), "ask contents")
        return found if self.fill is None or not self.runs_test else self.fill(found)

    def gradients(self, graph: int, outputs: tuple) -> Any:
        """Vector-Jacobian product of an earlier call."""
        return self.asking.request("vjp", [graph], outputs, "backward pass")

    def _label(self, number: int) -> str:
        remote = self.remote_at(number)
        return "" if remote is None else remote.label

    def remote_at(self, number: int) -> Remote | None:
        """The remote side of the stand-in with this number, if it is in use."""
        return remote_of(self.stand_ins.get(number)) or self.remotes.get(number)

    def repeat(self, function: Any, asked: Asked) -> Any:
        """Send a recorded call once more; a copy of what it gives now, an exception as `Raised`."""
        return self.asking.repeat(function, asked)

    # --- both ways ----------------------------------------------------------------------------

    def serve(self) -> None:
        """Answer requests until the line closes."""
        while True:
            try:
                frame = self.wire.read()
            except EOFError:
                return
            self.answering.answer(frame)

    def is_used(self, number: Any) -> None:
        """The other end is about to use an object of ours, if it has one of this number."""

    @contextmanager
    def opened(self, message: Outgoing | Incoming) -> Iterator[None]:
        """What one end waits for, on the list; a nested one's frames of ours do not count."""
        before = sys.getrecursionlimit()
        wider = before + FRAMES if self.open else max(before, self._let(message))
        self.open.append(message)
        sys.setrecursionlimit(wider)
        try:
            yield
        finally:
            self.open.pop()
            if sys.getrecursionlimit() == wider:  # else an answer has set it to its own
                sys.setrecursionlimit(before)

    def _let(self, message: Outgoing | Incoming) -> int:
        """How deep a test that asks lets calls go; 0 where it says nothing of it."""
        told = message.frame.tree.get("deep") if self.is_free else None
        return told if type(told) is int else 0

    def mind_the_clock(self) -> None:
        """End it if the time is over; else wait no longer than is left."""
        if self.clock is not None:
            self.line.settimeout(left_on(self.clock))

    # --- objects ------------------------------------------------------------------------------

    def knows(self, value: Any) -> bool:
        """Whether the other end has a stand-in for this very object of ours."""
        number = self.numbers.get(id(value))
        return number is not None and self.given.get(number) is value

    def give(self, value: Any) -> int:
        """The number under which the other end knows an object of ours."""
        number = self.numbers.get(id(value), 0)
        if isinstance(value, BOUND):  # each time it is asked for it is another object
            is_own = isinstance(value, types.MethodType)  # else one in C, as a list's `append`
            key = id(value.__self__), id(value.__func__) if is_own else value.__name__
            known = self.given.get(self.methods.setdefault(key, self.next_number))
            if isinstance(known, BOUND) and known.__self__ is value.__self__:
                return self.methods[key]
            self.methods[key] = self.next_number
        if not self.knows(value):
            number = self.next_number
            self.next_number += 1
            self.given[number] = value
            self.numbers[id(value)] = number
        return number

    def forget(self, number: int) -> None:
        """The other end does not need this object of ours any more."""
        if type(number) is not int:
            raise WireError("a message names an object by no number")
        if self.is_free and isinstance(self.given.get(number), type):
            return  # objects of this class go by its number
        value = self.given.pop(number, None)
        self.numbers.pop(id(value), None)
        if self.tensors:
            self.tensors.forget(number)

    def lacks(self, kind: type) -> bool:
        """Whether this is a class of a library that the other end does not have, or made of one."""
        return bool(self.missing) and any(
            one.__module__.partition(".")[0] in self.missing for one in kind.__mro__
        )

    def class_numbers(self, kinds: Iterable[type]) -> list[int]:
        """The numbers of those classes of ours that the other end knows, or may meet later."""
        if self.is_free:
            for kind in kinds:
                if kind.__module__.partition(".")[0] not in based.OTHERS:
                    self.give(kind)
        return [self.numbers[id(kind)] for kind in kinds if id(kind) in self.numbers]

    def unused(self) -> list[int]:
        """Objects of the other end that nobody here uses any more."""
        dropped, self.dropped = self.dropped, []
        known = (self.stand_ins, self.remotes)
        both = ((number, -number) for number in dropped)
        return [two[0] for two in both if not any(one in table for table in known for one in two)]

    def drop(self, number: int) -> None:
        """Tell the other end, at the next occasion, that nobody here uses this object any more."""
        self.dropped.append(number)

    def take_back(self, first: int) -> None:
        """Forget what the other end was given from this number on: it can use it no longer."""
        for number in [number for number in self.given if number >= first]:
            self.forget(number)

    def forwarded(self, told: dict[str, Any]) -> tuple[str, ...]:
        """Special methods of an object of the other end that its stand-in has."""
        names = FORWARDED.intersection(map(str, told.get("dunders") or ()))
        return tuple(sorted(name for name in names if self.policy.believes(name)))

    # --- recording ----------------------------------------------------------------------------

    @contextmanager
    def recording(self, *, runs_test: bool = False) -> Iterator[list[Crossing]]:
        """Keep what crosses; whoever runs a test catches all that an answer may raise."""
        before, self.transcript.crossings = self.transcript.crossings, []
        self.beside.kept = []
        self.runs_test = runs_test
        self.wire.received = self.transcript.bytes = 0
        self.allows, self.expects = Allowed(self.allowed), Expected(self.expected)
        self.leaves = Left(self.left)
        self.failed = None
        self.shared.begin()
        self.records.begin()
        self.test += 1
        self.begins = runs_test
        try:
            yield self.transcript.crossings
        finally:
            self.transcript.crossings, self.runs_test = before, False
            self.shared.begin()
            self.records.begin()

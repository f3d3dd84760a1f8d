"""One end of the line between a test and an answer: calls cross, objects stay where they are.

Both ends run this code. Plain values, arrays and tensors cross by value; functions, classes,
modules and other objects stay with their owner, and the other end gets a stand-in that calls back.
The trusted end answers only what `Policy` allows, believes nothing but values, and keeps a clock.
"""

import abc
import collections
import copy
import importlib
import socket
import sys
import threading
import types
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from autograder.bridge import arrays, based, errors, library, memory, rng, touched
from autograder.bridge.aliases import (
    MAX_EDIT,
    MAX_OF_ONE,
    Key,
    Shared,
    exchange,
    is_same,
    is_tensor,
    other,
    put_in,
)
from autograder.bridge.lent import LENT, Borrowed
from autograder.bridge.records import MADE, TAGS, Records, is_one
from autograder.bridge.spans import Owners, owner_of
from autograder.bridge.stand_ins import (
    FORWARDED,
    HOME,
    MAX_CLASSES,
    OF_CLASSES,
    OF_VALUE,
    YOURS,
    Held,
    Remote,
    StandIn,
    Steps,
    class_name,
    hashing,
    make_class,
    make_class_class,
    make_steps,
    remote_of,
    small,
    ways,
)
from autograder.bridge.wire import (
    HOLDERS,
    Decoder,
    Encoder,
    Frame,
    WireError,
    empty,
    read_frame,
    reading,
)
from autograder.common.results import INSTANCE, PASSED_ON, Crossing, Opaque, Raised
from autograder.isolation.clock import Clock, Over

MAX_TEXT = 4000  # characters of an exception's message
MAX_NESTED = 400  # calls into each other
FRAMES = 30  # of ours, at most, that one such call puts on the stack
MAX_RECEIVED = 4_000_000_000  # bytes from an answer during one test
MAX_TRANSCRIPT = 64_000_000  # bytes of what answers gave that are kept to explain a mistake
MAX_SNAPSHOT = 100_000  # parts of one such value
MAX_LINEAGE = 10  # public classes of which one of an answer's is made
MAX_VALUES = 1000  # objects of an answer's classes in a message that come back as they are
LIBRARIES = frozenset(("numpy", "torch"))  # whose values cross as such

TABLES = (dict, collections.OrderedDict, collections.defaultdict, collections.Counter)
SET = "set "  # begins what is told of attributes that an answer has set in an object of ours


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


class Policy:
    """What this end lets the other do with objects of its own. The student's end allows all."""

    def may_give(self, value: Any) -> bool:
        """Whether an object may be handed over as a stand-in."""
        return True

    def may_use(self, value: Any, name: str | None) -> bool:
        """Whether the other end may call (name None) an object, or use this attribute of it."""
        return True

    def may_change(self, value: Any) -> bool:
        """Whether a value that was handed over may be changed in place by the other end."""
        return True

    def believes(self, name: str) -> bool:
        """Whether what an object of the other end says in this special method is taken."""
        return True


class Allowed:
    """Which of our values the calls of a test may change in place: those that the reference did.

    It is made of the reference's crossings during the same test, in order: the label of the call,
    and each value of ours that it changed, by its kind and where it stood among the arguments
    ("Module", "Tensor@1", "list@0.2", "dict@named", ...). The n-th call of a label may change what
    the reference's n-th call of it changed; one that comes after the reference's last what that
    one did. A call of a label that the reference does not have is held against the reference's
    call at the same place in the test.

    What is no call (`is_quiet`) is recorded only where it changed something, counted apart, and
    may change nothing if the reference changed nothing under the same label.

    To use it: `peer.protect = True`, and `peer.allowed` the reference's `(crossing.what,
    crossing.changed)` before the test is run; the count begins anew with each `peer.recording()`.
    Without an entry nothing may be changed. What is kept away is still what the call gives.
    """

    def __init__(self, crossings: Iterable[tuple[str, tuple[str, ...]]]) -> None:
        self.calls: list[tuple[str, ...]] = []
        self.by_name: dict[str, list[tuple[str, ...]]] = {}
        for name, changed in crossings:
            self.by_name.setdefault(_path(name), []).append(changed)
            if not is_quiet(name):
                self.calls.append(changed)
        self.made: collections.Counter[str] = collections.Counter()  # so far, by label
        self.total = 0  # calls so far

    def next(self, name: str) -> collections.Counter[str]:
        """What the call that is made now may change."""
        path = _path(name)
        own = self.by_name.get(path)
        if own:
            found = own[min(self.made[path], len(own) - 1)]
        else:
            found = self.calls[self.total] if self.total < len(self.calls) else ()
        self.made[path] += 1
        if is_quiet(name):
            return collections.Counter(found if own else ())
        self.total += 1
        return collections.Counter(found)


class Expected:
    """Where a test's calls have to give values, as the reference's did: made like `Allowed`."""

    def __init__(self, kinds: Iterable[tuple[str, str]]) -> None:
        self.kinds: dict[str, list[str]] = {}
        for name, kind in kinds:
            for way in ways(_path(name)):
                self.kinds.setdefault(way, []).append(kind)
        self.made: collections.Counter[str] = collections.Counter()

    def next(self, name: str) -> str:
        """What has to be given now: `VALUE`, `KNOWN`, or empty for whatever it is."""
        if not self.kinds:
            return ""
        due = [self._counted(way) for way in ways(_path(name))]
        return next((kind for kind in (VALUE, KNOWN) if kind in due), "")

    def _counted(self, way: str) -> str:
        own = self.kinds.get(way, ())
        self.made[way] += bool(own)
        return own[min(self.made[way], len(own)) - 1] if own else ""


def expectations(transcript: Iterable[Crossing]) -> list[tuple[str, str]]:
    """What `peer.expected` holds: of each crossing of the reference, what kind of thing it gave."""
    return [(call.what, _what_is(call.outcome)) for call in transcript if not is_quiet(call.what)]


def comparisons(transcript: Iterable[Crossing]) -> frozenset[str]:
    """What `peer.compared` holds: where the reference's objects compare with plain values."""
    labels = (call.what for call in transcript if OF_VALUE in call.what)
    return frozenset(way for label in labels for way in ways(_path(label)))


VALUE = "value"  # nothing but values
KNOWN = "known"  # values, and objects of the instructor's classes that are real ones here


def steps(transcript: Iterable[Crossing]) -> Callable[[str], list[str]]:
    """What `peer.random.steps` holds: whose random numbers go on after a call, as the reference's.

    Asked once for each call, in order, with its label.
    """
    calls = [call for call in transcript if not is_quiet(call.what)]
    names = sorted({name for call in calls for name in call.drew})
    drawn = {
        name: Expected((call.what, VALUE if name in call.drew else "") for call in calls)
        for name in names
    }

    def after(label: str) -> list[str]:
        return [] if is_quiet(label) else [name for name in names if drawn[name].next(label)]

    return after


def _what_is(outcome: Any) -> str:
    """What kind of thing an outcome is. Nothing is none: what is given instead is not looked at."""
    if outcome is None:
        return "object"
    found = [part for part in parts_of(outcome) if isinstance(part, Opaque | Raised)]
    if not found:
        return VALUE
    known = all(isinstance(part, Opaque) and part.kind == INSTANCE for part in found)
    return KNOWN if known else "object"


DATA = ("builtins", "collections", "numpy", "torch", "fractions", "decimal", "datetime")


def is_data(value: Any) -> bool:
    """Whether a value of the reference's is data, and holds nothing else."""
    return all(
        part is not None
        and type(part).__module__ in DATA
        and not callable(part)
        and not hasattr(type(part), "__next__")
        and not isinstance(part, types.ModuleType)
        for part in parts_of(value)
    )


def parts_of(value: Any) -> Iterator[Any]:
    """A value and everything in it."""
    seen: set[int] = set()
    left = [value]
    while left:
        part = left.pop()
        if id(part) in seen:
            continue
        yield part
        if parts := library.parts_of(part):
            seen.add(id(part))
            left += parts


def is_quiet(label: str) -> bool:
    """Whether this is no call: setting, deleting, copying, asking by name, a backward pass."""
    return " " in label and not label.startswith("get ")


def _given_by(label: str) -> str:
    """The label of what a call with this label gives."""
    return "|".join(f"{way}()" for way in ways(label))


def _path(label: str) -> str:
    """A label without what the answer decides: whether a class or a function made an object."""
    return label.replace("()", "")


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
        self.next_number = 1
        self.stand_ins: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
        self.remotes: weakref.WeakValueDictionary[int, Remote] = weakref.WeakValueDictionary()
        self.members: dict[int, Any] = {}  # of enumerations: there is one stand-in of each
        self.dropped: list[int] = []
        self.classes: dict[Any, type] = {}
        self.errors = errors.Classes()
        self.raised: dict[int, BaseException] = {}  # exceptions of ours on their way through
        self.next_raised = 0
        self.requests = 0  # made so far
        self.crossed = 0  # requests of both ends so far
        self.unread = bytearray()
        self.received = 0  # bytes since a test began
        self.kept_bytes = 0  # in the transcript
        self.transcript: list[Crossing] | None = None
        self.asked: list[Asked] | None = None  # calls as they were sent, if they are kept
        self.held: dict[int, Any] = {}  # stand-ins kept until what changed in them is sent
        self.protect = False  # whether changes the other end makes to our values are ignored
        self.allowed: Sequence[tuple[str, tuple[str, ...]]] = ()  # but for these; see `Allowed`
        self.allows = Allowed(())
        self.expected: Sequence[tuple[str, str]] = ()  # where values are due: `expectations`
        self.expects = Expected(())
        # labels of comparisons with plain values that objects of the other end are asked for
        self.compared: frozenset[str] | None = None if self.is_free else frozenset()  # None: all
        self.failed: BaseException | None = None  # of the test, told to an answer that called it
        self.test = 0  # how many recordings have begun
        self.changed_ours = False  # whether the other end changed any of our values
        # stand-ins with attributes of an answer's own, by number: as long as it runs, they stay
        self.marked: dict[int, Any] = {}
        # objects and modules that were made as copies for the other end, by their ids
        self.copies: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
        self.changes: collections.Counter[str] = collections.Counter()  # how many of each kind
        self.is_busy = False  # with a message, and running nobody's code
        # raises what there is to say against a value that a test is given under a label
        self.look: Callable[[str, Any], None] | None = None
        self.runs_test = False  # whether what an answer raises may be no `Exception`
        self.gone: Gone | None = None  # an answer stayed out: what comes now may belong to it
        self.shared = Shared(self.is_free)  # values of ours that the other end has copies of
        self.records = Records(self)  # objects that it has as well
        self.open: list[Incoming | Outgoing] = []  # calls under way, the same at both ends
        self.thread = threading.get_ident()
        self.random = rng.Follower()
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
                _set_class(made, _class_of(self, made._remote.told))
            elif self.tensors and self.tensors.is_module(made):
                _set_class(made, self.tensors.class_of(made.__dict__["_remote"].told))

    @property
    def tensors(self) -> Any:
        """Handling of tensors, once both ends have the library; None before."""
        if self._tensors is None and "torch" not in self.missing:
            module = _tensors_module()
            self._tensors = None if module is None else module.Tensors(self)
        return self._tensors

    # --- asking -------------------------------------------------------------------------------

    def ask(self, service: str, *values: Any) -> Any:
        """Ask for a service by name."""
        name = str(values[0]) if service == "name" and values else ""
        found = self._request("ask", [service], values, f"ask {service}", name)
        if name:
            self.named(found, name)
        return found

    def named(self, value: Any, name: str) -> None:
        """A test looked this up by a name: what it makes of it goes by this, in this test.

        What goes by two names in one test has the rights of neither.
        """
        remote = remote_of(value)
        if remote is not None and not self.is_free:
            if remote.test != self.test:
                remote.test, remote.origins = self.test, ()
            remote.came(name)

    def call(self, number: int, name: str | None, args: tuple, kwargs: dict, label: str) -> Any:
        """Call an object of the other end, or a method of it."""
        return self._request("call", [number, name], (args, kwargs), label)

    def step(self, remote: Remote, due: str) -> Any:
        """The next step of an iterator of the other end, which has to be what is due."""
        return self._request(
            "call", [remote.number, "__next__"], ((), {}), remote.use("__next__"), due=due
        )

    def get(self, number: int, name: str, label: str) -> Any:
        """An attribute of an object of the other end."""
        found = self._request("get", [number, name], (), f"get {label}")
        if self.is_free and self.tensors:
            self.tensors.settings.keep(number, name, found)
        return found

    def put(self, number: int, name: str, value: Any) -> Any:
        """Set an attribute of an object of the other end; what that says: `YOURS` for keep it."""
        return self._request("put", [number, name], (value,), f"set {self._label(number)}.{name}")

    def compares(self, label: str) -> bool:
        """Whether an object of the other end is asked how it compares with a plain value."""
        return self.compared is None or not self.compared.isdisjoint(ways(_path(label)))

    def remove(self, number: int, name: str) -> None:
        """Delete an attribute of an object of the other end."""
        self._request("remove", [number, name], (), f"delete {self._label(number)}.{name}")

    def duplicate(self, number: int, how: str = "__deepcopy__") -> Any:
        """A copy of an object of the other end, which stays there; a deep one, or `__copy__`."""
        label = self._label(number)
        return self._request("copy", [number, how], (), f"copy {label}", label)

    def contents(self, number: int) -> Any:
        """What an object of the other end holds, as a plain value."""
        return self._request("contents", [number], (), "ask contents")

    def gradients(self, graph: int, outputs: tuple) -> Any:
        """Vector-Jacobian product of an earlier call."""
        return self._request("vjp", [graph], outputs, "backward pass")

    def _label(self, number: int) -> str:
        remote = self._remote_at(number)
        return "" if remote is None else remote.label

    def _remote_at(self, number: int) -> Remote | None:
        return remote_of(self.stand_ins.get(number)) or self.remotes.get(number)

    def _request(
        self,
        op: str,
        plain: list,
        values: tuple,
        label: str,
        origin: str | None = None,
        due: str = "",
    ) -> Any:
        before, self.is_busy = self.is_busy, True
        try:
            return self._request_now(op, plain, values, label, origin, due)
        except Gone as gone:
            self.gone = self.gone or gone
            raise
        finally:
            self.is_busy = before

    def _request_now(
        self, op: str, plain: list, values: tuple, label: str, origin: str | None, due: str
    ) -> Any:
        if threading.get_ident() != self.thread:
            raise RuntimeError("only the main thread may call what a test handed over")
        if len(self.open) > MAX_NESTED:
            raise RecursionError("test and answer call each other without end")
        if self.is_free and self.tensors:
            self.tensors.settings.tell()
        self.requests += 1
        self.crossed += 1
        if self.tensors:
            self.tensors.give_back()
            if not self.open:
                self.tensors.tell_again()
        message = Outgoing(self)
        message.label, message.values = label, values
        message.origin = self._origin(op, plain, label) if origin is None else origin
        message.expects = "" if is_quiet(label) else due or self.expects.next(label)
        if self.protect and not is_quiet(label):
            message.allowed = self.allows.next(label)
        tree: dict[str, Any] = {"op": op, "p": plain, "v": message.encoder.node(values)}
        if self.tensors:
            tree["t"] = self.tensors.state_out(message)
        if message.expects:
            tree["plain" if message.expects == VALUE else "known"] = True
        if self.records.classes:
            self.records.leave(message, tree)
        if self.transcript is not None and not self.is_free:
            tree["same"] = self.shared.leave(message)
        if not self.open:
            self.held.clear()
            self.raised.clear()
        if not self.is_free:  # an answer does not choose the numbers that a test draws
            tree["rng"] = self.random.leave(message.frame)
            libraries = frozenset(filter(sys.modules.__contains__, LIBRARIES))
            if libraries != self.told:
                tree["has"], self.told = sorted(libraries), libraries
            if self.runs_test and (files := LENT.leave(message.frame, values)):
                tree["files"] = files
        tree["drop"] = self._unused()
        message.send(tree)
        if self.asked is not None and op == "call" and plain[1] is None:
            kept = self._copies(message.encoder.kept)
            self.asked.append(Asked(label, plain[0], message.frame, kept))
        before = self.changes["Module"]
        with self._opened(message):
            reply = self._answer_until_reply()
        if not self.is_free:
            self.random.back(reply.tree.get("used"), label)
        try:
            return self._reply(message, reply, label, before)
        finally:
            message.let_go()

    @contextmanager
    def _opened(self, message: "Outgoing | Incoming") -> Iterator[None]:
        """What one end waits for, on the list; a nested one's frames of ours do not count."""
        before = sys.getrecursionlimit()
        wider = before + FRAMES if self.open else before
        self.open.append(message)
        sys.setrecursionlimit(wider)
        try:
            yield
        finally:
            self.open.pop()
            if sys.getrecursionlimit() == wider:  # else an answer has set it to its own
                sys.setrecursionlimit(before)

    def _origin(self, op: str, plain: list, label: str) -> str:
        """The label of what a request gives: what a class makes goes by the class's."""
        if op == "get":
            return label.removeprefix("get ")
        remote = self._remote_at(plain[0]) if op == "call" else None
        makes = remote is not None and remote.kind == "class" and plain[1] is None
        return label if makes else _given_by(label)

    def _reply(self, message: "Outgoing", frame: Frame, label: str, before: int) -> Any:
        told = None if self.is_free else frame.tree.get("as")
        incoming = (Incoming if told is None else _Told)(self, frame, message.encoder.kept)
        incoming.is_reply, incoming.call, incoming.origin = True, message, message.origin
        error: BaseException | None = None
        with reading():
            self._take_tensors(incoming, message)
            memory.take_state(incoming, told)
            modules = ("Module",) if self.changes["Module"] > before else ()
            if frame.tree.get("o"):
                message.find()
            changed = modules + self._changes(incoming, message, frame.tree.get("c") or [])
            if self.is_free:
                for place, node in frame.tree.get("w") or []:
                    incoming.rewind(len(message.encoder.kept))
                    self._change(incoming, message.encoder.handed_back[place], node)
            incoming.rewind(len(message.encoder.kept))
            if self.records.classes:
                self.records.answered(incoming, message, frame.tree)
            incoming.begin(told)
            value = incoming.value(frame.tree.get("r"))
            if message.noted or message.holders:
                changed = message.once((*changed, *message.noted))
            if message.serial and "c" in frame.tree:
                results = incoming.results(len(message.encoder.kept))
                self.shared.back(message, results, frame.tree.get("own") or [])
            for number in frame.tree.get("drop") or []:
                self._forget(number)
            if "e" in frame.tree:
                error = self._error(frame.tree["e"])
        if error is not None:
            self._record(label, _raised(error), changed)
            method = (message.frame.tree.get("p") or [None])[-1]
            raise error if method == "__next__" else _no_end(error)
        self._record(label, value, changed)
        if self.runs_test and self.look is not None and not is_quiet(label):
            self.look(label, value)
        if message.expects:
            is_call = not label.startswith("get ")
            _look_for_objects(self, value, is_call, message.expects == KNOWN)
            take_steps(value, message.expects)
        return value

    def _take_tensors(self, incoming: "Incoming", message: "Outgoing | None") -> None:
        """Read a message's tensors, and bring our modules into the state it tells."""
        if self.tensors:
            tree = incoming.frame.tree
            graph = tree.get("graph") if message is not None else None
            self.tensors.state_in(incoming, tree.get("t"))
            incoming.tensors = self.tensors.read(incoming, tree.get("x"), graph, message)
            self.tensors.structure_in(incoming, tree.get("t"))

    def repeat(self, function: Any, asked: "Asked") -> Any:
        """Send a recorded call once more; a copy of what it gives now, an exception as `Raised`."""
        remote = remote_of(function)
        if remote is None:
            return None
        message = Outgoing(self)
        message.encoder.kept = asked.kept
        message.frame.buffers = list(asked.frame.buffers)
        again = {"p": [remote.number, None], "drop": [], "same": None}
        message.send({**asked.frame.tree, **again})
        self.open.append(message)
        try:
            reply = self._answer_until_reply()
        except Gone as gone:
            self.gone = self.gone or gone
            raise
        finally:
            self.open.pop()
        with reading():
            if "e" in reply.tree:
                return _raised(self._error(reply.tree["e"]))
            incoming = Incoming(self, reply, asked.kept)
            incoming.is_reply = True
            if self.tensors:
                incoming.tensors = self.tensors.read(incoming, reply.tree.get("x"), None, None)
            for place, node in reply.tree.get("c") or []:
                incoming.rewind(len(asked.kept))
                self._change(incoming, asked.kept[place], node)
            incoming.rewind(len(asked.kept))
            value = incoming.value(reply.tree.get("r"))
        return self._snapshot(value)

    def _copies(self, values: list[Any]) -> list[Any]:
        """Copies of what a message handed over, which refer to each other as the values do."""
        made = {id(one): self._double(one) for one in values}
        for one in made.values():
            exchange(one, made)
        return list(made.values())

    def _record(self, label: str, outcome: Any, changed: tuple[str, ...]) -> None:
        if self.transcript is not None and (changed or not is_quiet(label)):
            kept = outcome if isinstance(outcome, Raised) else self._snapshot(outcome)
            drew = self.random.drawn
            self.transcript.append(Crossing(label, (), kept, changed, drew=drew))

    def _snapshot(self, value: Any) -> Any:
        """A copy that later changes do not reach; of what is too large only its kind."""
        self.left = MAX_SNAPSHOT
        try:
            return self._copied(value, 0)
        except OverflowError:
            return Opaque("object", type(value).__name__)

    def _copied(self, value: Any, depth: int) -> Any:
        self.left -= 1
        if self.left < 0 or self.kept_bytes > MAX_TRANSCRIPT:
            raise OverflowError
        remote = remote_of(value)
        if based.is_value(value):
            return self._copied(based.as_plain(value), depth)
        if remote is not None:
            return Opaque(remote.kind, remote.type_name)
        if is_one(value):
            return Opaque(INSTANCE, type(value).__name__)
        if type(value) in library.HOLDERS:  # in whose place an object may stand
            return Opaque("object", type(value).__name__)
        if depth < 20 and issubclass(type(value), tuple):
            return tuple(self._copied(part, depth + 1) for part in value)
        if MADE and isinstance(value, dict | set | frozenset) and any(map(is_one, value)):
            return Opaque("object", type(value).__name__)
        if library.is_view(value):
            return self._copied(list(value), depth)
        if depth < 20 and isinstance(value, dict):
            return {key: self._copied(part, depth + 1) for key, part in value.items()}
        if depth < 20 and type(value) in (list, set, frozenset, collections.deque):
            return type(value)(self._copied(part, depth + 1) for part in value)
        texts = type(value) in (str, bytes, bytearray)
        self.kept_bytes += len(value) if texts else getattr(value, "nbytes", 0)
        if type(value) is bytearray:
            return value[:]
        if self.tensors and self.tensors.knows(value):
            return self.tensors.snapshot(value)
        return arrays.snapshot(value)

    def _changes(self, incoming: "Incoming", message: "Outgoing", changes: Any) -> tuple[str, ...]:
        """Do to our values what the call did to its copies of them."""
        names = []
        count = len(message.encoder.kept)
        for place, _ in changes:
            if type(place) is not int or not 0 <= place < count:
                raise Gone("broken", "a reply changed something that was not handed over")
            ours = message.encoder.kept[place]
            message.moved.add(place)
            if not self.shared.is_made_there(ours):
                names.append(message.named(place))
                self.note_change(type(ours).__name__)
            if self.protects(message, message.named(place), ours):
                # what the call gave may still refer to what it changed
                incoming.kept[place] = self._double(ours)
                message.kept_away.add(place)
        for place, node in changes:
            incoming.rewind(count)
            self._change(incoming, incoming.kept[place], node)
            self.shared.put_in_later(incoming.kept[count:])
        return tuple(names)

    def _double(self, ours: Any) -> Any:
        """A value that takes the changes in place of ours."""
        if self.tensors and self.tensors.knows(ours):
            return self.tensors.double(ours)
        return copy.copy(ours)

    def note_change(self, kind: str) -> None:
        """The other end changed something of ours, or would have."""
        self.changed_ours = True
        self.changes[kind] += 1

    def _copy(self, value: Any, how: Callable[..., Any]) -> Any:
        """A copy that is asked for; whatever an answer does to that, it does to its own."""
        memo: dict[int, Any] = {}
        made = copy.deepcopy(value, memo) if how is copy.deepcopy else copy.copy(value)
        if made is not value:
            memo[id(value)] = made
        memo.pop(id(memo), None)  # what was copied, which `deepcopy` keeps alive
        for before, one in memo.items():
            if id(one) != before:
                with suppress(TypeError):  # a list, which is told by what holds it
                    self.copies[id(one)] = one
        return made

    def is_copy(self, ours: Any) -> bool:
        """Whether this was made for an answer as a copy, or is a part of one."""
        return self.copies.get(id(ours)) is ours

    def protects(self, call: "Outgoing | None", kind: str, ours: Any) -> bool:
        """Whether a change that a call of ours makes to a value of ours is kept away from it.

        Modules and objects are told as one, however many of their parts were changed; values one
        by one.
        """
        if not self.policy.may_change(ours):
            return True
        if not self.protect or self.shared.is_made_there(ours):
            return False
        if call is not None and is_quiet(call.label) and not call.is_counted:
            call.is_counted, call.allowed = True, self.allows.next(call.label)
        if call is None or call.allowed[kind] <= 0:
            return True
        if kind not in ("Module", *call.holders.values()) and not kind.startswith(SET):
            call.allowed[kind] -= 1
        return False

    def _change(self, incoming: "Incoming", ours: Any, node: Any) -> None:
        if type(ours) in HOLDERS:
            _refill(incoming, ours, node)
        elif self.tensors and self.tensors.knows(ours):
            self.tensors.overwrite(ours, incoming.value(node))
        else:
            arrays.overwrite(ours, incoming.value(node))

    # --- answering ----------------------------------------------------------------------------

    def serve(self) -> None:
        """Answer requests until the line closes."""
        while True:
            try:
                frame = self.read()
            except EOFError:
                return
            self._answer(frame)

    def _answer_until_reply(self) -> Frame:
        while True:
            try:
                frame = self.read()
            except EOFError as error:
                raise Gone("died", "the process of the answer ended") from error
            if "op" not in frame.tree:
                return frame
            self._answer(frame)

    def read(self) -> Frame:
        """The next message."""
        try:
            frame = read_frame(self._receive)
        except WireError as error:
            raise Gone("broken", str(error)) from error
        if not isinstance(frame.tree, dict):
            raise Gone("broken", "a message was no message")
        return frame

    def _answer(self, frame: Frame) -> None:
        incoming = Incoming(self, frame, [])
        calls = (call for call in reversed(self.open) if isinstance(call, Outgoing))
        incoming.call = next(calls, None)
        incoming.origin = _given_by(incoming.call.label) if incoming.call is not None else ""
        tree = frame.tree
        if self.is_free and "has" in tree:
            self.missing = LIBRARIES.difference(tree["has"])
        reply = Outgoing(self)
        reply.is_plain, reply.is_known = tree.get("plain") is True, tree.get("known") is True
        self.crossed += 1
        mode = self.tensors.mode() if self.tensors else None
        if not self.open:
            self.raised.clear()
        try:
            with self._opened(incoming):
                if len(self.open) > MAX_NESTED:
                    raise RecursionError("test and answer call each other without end")
                answer = self._work(incoming, tree)
                if self.is_free and self.tensors:
                    self.tensors.settings.tell()
                answered: dict[str, Any] = {"r": reply.answer(incoming, answer)}
                told, results = memory.tell(self, incoming, reply) if self.is_free else (None, [])
                if told is not None:
                    answered["as"] = told
        except Gone:
            raise
        except BaseException as error:  # noqa: BLE001  (whatever an answer raises is a result)
            self._note_failure(error, incoming.call)
            reply, results = Outgoing(self), []
            answered = {"e": self._describe(error)}
        finally:
            if mode is not None and self.open:
                self.tensors.set_mode(mode)
        try:
            answered["c"] = reply.changes(incoming)
            if not self.is_free:
                answered["w"] = reply.changes_of_ours(incoming)
            if self.records.classes:
                self.records.answer(reply, incoming, answered)
            if self.tensors:
                answered["t"] = self.tensors.state_out(reply)
            if self.is_free:
                answered["own"] = self.shared.answered(incoming, reply, results)
        except Exception as error:  # noqa: BLE001  (something put there that cannot cross)
            reply = Outgoing(self)
            answered = {"e": self._describe(error)}
        if self.is_free:
            answered["used"] = self.random.used()
        if self.tensors:
            answered["graph"] = self.tensors.remember(incoming, reply)
        if not self.open:
            self.held.clear()
            if self.tensors:
                self.tensors.settings.forget()
        answered["drop"] = self._unused()
        reply.send(answered)

    def _note_failure(self, error: BaseException, call: "Outgoing | None") -> None:
        """Remember what a test's function raised: the answer may keep it to itself.

        A claim that does not hold fails the test; another exception in a function that checks is
        told as a change, and fails it where the reference's call keeps none such to itself.
        """
        if self.is_free or self.failed is not None or hasattr(error, "through"):
            return
        if isinstance(error, AssertionError):
            self.failed = error
        elif call is not None and errors.is_of_check(error):
            label = f"kept {type(error).__name__}"
            if label not in call.noted:
                call.noted.append(label)
                self.note_change(label)
                self.failed = error if self.protects(call, label, error) else None

    def _work(self, incoming: "Incoming", tree: dict) -> Any:
        with reading():
            for number in tree.get("drop") or []:
                self._forget(number)
            if self.is_free:
                self.random.arrive(incoming.frame, tree.get("rng"))
                self.borrowed.arrive(incoming.frame, tree.get("files") or ())
            self._take_tensors(incoming, None)
            if self.is_free:
                self.shared.arrive(incoming, tree.get("same"))
            if "kinds" in tree or "o" in tree:
                self.records.hear(incoming, tree)
            values = incoming.value(tree.get("v"))
            target, *rest = tree.get("p") or []
            op = str(tree.get("op"))
            if op == "ask":
                service, values = self.services[target], tuple(values)
        if op == "ask":
            return service(*values)
        if op == "vjp":
            return self.tensors.vjp(target, values)
        before, self.is_busy = self.is_busy, False
        try:
            return self._use(op, target, rest, values)
        finally:
            self.is_busy = before

    def _use(self, op: str, number: Any, rest: list, values: Any) -> Any:
        with reading():
            target = self.given[number]
            name: Any = rest[0] if rest else None
            if op == "call":
                args, kwargs = values
                args, kwargs = tuple(args), dict(kwargs)
        if op == "copy":
            self._permit(target, "__copy__" if name == "__copy__" else "__deepcopy__")
            return self._copy(target, copy.copy if name == "__copy__" else copy.deepcopy)
        if op == "contents" and self.is_free:
            base = based.base_of(type(target))
            return None if base is None else based.plain(target, base)
        if op == "put" and not self.is_free and touched.is_new(target, name):
            return YOURS
        self._permit(target, name, op)
        if op == "call":
            with self._watched(target, name):
                function = target if name is None else _method(target, name)
                return function(*args, **kwargs)
        if op == "get":
            is_private = type(name) is not str or (name.startswith("_") and name != "__doc__")
            if not self.is_free and is_private:
                raise AttributeError("what begins with an underscore is private")
            return getattr(target, name)
        if not self.is_free and op == "put" and self.tensors:
            with self._watched(target, "__setattr__"):
                taken = self.tensors.settings.take(target, name, values[0])
            if taken:
                return True
        if not self.is_free and op == "put" and touched.is_set(target, name):
            if not self._may_set(target):
                return YOURS
            with self._watched(target, "__setattr__"):
                return setattr(target, name, values[0])
        is_own = self.is_copy(target) and not str(name).startswith("_")
        if not self.is_free and not is_own:
            raise PermissionError("what a test hands over cannot be changed")
        if op == "put":
            return setattr(target, name, values[0])
        return delattr(target, name)

    def _may_set(self, target: Any) -> bool:
        """Whether an answer's call may set attributes of an object, as the reference's does."""
        call = self.open[-1].call if isinstance(self.open[-1], Incoming) else None
        if call is None:
            return False
        label = f"{SET}{touched.kind_of(target)}@{call.find().get(id(target), 'kept')}"
        if label not in call.noted:
            call.noted.append(label)
        self.note_change(label)
        return not self.protects(call, label, target)

    @contextmanager
    def _watched(self, target: Any, name: str | None) -> Iterator[None]:
        """What a method of an object of ours changes is changed by the call that it belongs to."""
        holder = None if self.is_free else touched.holder_of(target, name)
        call = self.open[-1].call if isinstance(self.open[-1], Incoming) else None
        if holder is None or call is None:
            yield
            return
        where = call.find()
        before = touched.Before(holder)
        try:
            yield
        finally:
            for one, part in list(before.changed()):
                if self.is_copy(one):
                    continue
                kind = touched.kind_of(one)
                label = kind if kind == touched.MODULE else f"{kind}@{where.get(id(one), 'kept')}"
                if kind != touched.MODULE:
                    label = call.holders.setdefault(id(one), label)
                    call.noted.append(label)
                self.note_change(kind)
                if self.protects(call, label, one):
                    part.undo()

    def _permit(self, target: Any, name: str | None, op: str = "call") -> None:
        if name is not None and type(name) is not str:
            raise WireError("an attribute's name is a text")
        if not self.policy.may_use(target, name):
            what = "call" if name is None else f"use {name} of"
            words = f"an answer may not {what} this {type(target).__name__}"
            # whoever only asks whether it is there is told that it is not
            raise AttributeError(words) if op == "get" else PermissionError(words)

    # --- objects ------------------------------------------------------------------------------

    def knows(self, value: Any) -> bool:
        """Whether the other end has a stand-in for this very object of ours."""
        number = self.numbers.get(id(value))
        return number is not None and self.given.get(number) is value

    def give(self, value: Any) -> int:
        """The number under which the other end knows an object of ours."""
        number = self.numbers.get(id(value), 0)
        if not self.knows(value):
            number = self.next_number
            self.next_number += 1
            self.given[number] = value
            self.numbers[id(value)] = number
        return number

    def _forget(self, number: int) -> None:
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

    def _unused(self) -> list[int]:
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
            self._forget(number)

    def forwarded(self, told: dict[str, Any]) -> tuple[str, ...]:
        """Special methods of an object of the other end that its stand-in has."""
        names = FORWARDED.intersection(map(str, told.get("dunders") or ()))
        return tuple(sorted(name for name in names if self.policy.believes(name)))

    # --- errors -------------------------------------------------------------------------------

    def _describe(self, error: BaseException) -> dict[str, Any]:
        """An exception of ours, as a message: its type, its text, where in the answer it arose."""
        through = getattr(error, "through", None)  # it came from the other end
        if isinstance(through, int):
            return {"yours": through}
        self.next_raised += 1
        self.raised[self.next_raised] = error
        hide = not self.is_free and isinstance(error, AssertionError)
        try:
            text = "" if hide else str(error)
            args = [text] if hide else errors.told_arguments(error, text, self.lacks)
        except Exception:  # noqa: BLE001  (a text that cannot be made is no text)
            text, args = "", []
        line, cell = _place(error)
        tells = self.is_free or self.errors.is_given(type(error))
        return {
            "id": self.next_raised,
            **errors.told_of(type(error)),
            "text": text[:MAX_TEXT],
            "args": args,
            "carries": errors.attributes(error, self.lacks) if tells else {},
            "line": line,
            "cell": cell,
        }

    def _error(self, told: Any) -> BaseException:
        """The exception to raise here for one that the other end raised."""
        if "yours" in told:
            if told["yours"] not in self.raised:
                raise WireError("a message refers to an exception that is gone")
            return self.raised[told["yours"]]
        kinds = tuple(kind for kind in told["kinds"] if isinstance(kind, str))[:20]
        name, text = str(told["type"])[:100], str(told["text"])[:MAX_TEXT]
        raised = Raised(name, text, small(told.get("line")), str(told.get("cell"))[:100], kinds)
        args = errors.read_arguments(told["args"], text)
        error: Any = self.errors.make(told, args, text, is_tame=not self.runs_test)
        errors.carry(error, told.get("carries"))
        error.__dict__.update(raised=raised, through=told["id"])
        return error

    # --- the line -----------------------------------------------------------------------------

    def _receive(self, size: int) -> bytes:
        """The next bytes; what comes with them is kept for the next time."""
        while len(self.unread) < size:
            self.mind_the_clock()
            try:
                part = self.line.recv(1 << 16)  # more costs a new memory map each time
            except TimeoutError:
                continue  # the clock decides
            except OSError as error:
                raise EOFError from error
            if not part:
                raise EOFError
            self.unread += part
            self.received += len(part)
            if self.received > MAX_RECEIVED and not self.is_free:
                raise Gone("broken", "the answer sent more than a test can hold")
        found = bytes(memoryview(self.unread)[:size])
        del self.unread[:size]
        return found

    def mind_the_clock(self) -> None:
        """End it if the time is over; else wait no longer than is left."""
        if self.clock is not None:
            self.line.settimeout(left_on(self.clock))

    def send(self, frame: Frame) -> None:
        """Send one message."""
        pieces = frame.pieces()
        try:
            if sum(len(piece) for piece in pieces) < 1 << 16:
                pieces = [b"".join(pieces)]
            for piece in pieces:
                self._send_all(memoryview(piece).cast("B"))
        except OSError as error:
            raise Gone("died", "the process of the answer ended") from error

    def _send_all(self, piece: memoryview) -> None:
        while len(piece):
            self.mind_the_clock()
            with suppress(TimeoutError):  # the clock decides
                piece = piece[self.line.send(piece) :]

    @contextmanager
    def recording(self, *, runs_test: bool = False) -> Iterator[list[Crossing]]:
        """Keep what crosses; whoever runs a test catches all that an answer may raise."""
        before, self.transcript = self.transcript, []
        self.runs_test = runs_test
        self.received = self.kept_bytes = 0
        self.allows, self.expects = Allowed(self.allowed), Expected(self.expected)
        self.failed = None
        self.shared.begin()
        self.records.begin()
        self.test += 1
        try:
            yield self.transcript
        finally:
            self.transcript, self.runs_test = before, False
            self.shared.begin()
            self.records.begin()


@dataclass(frozen=True)
class Asked:
    """A call as it was sent."""

    what: str
    number: int  # of what was called: an object goes by its class's name
    frame: Frame
    kept: list[Any]  # copies of what it handed over


class Free(Policy):
    """The student's end: the test may do anything with what the answer made."""


class Outgoing:
    """A message that is being written."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.frame = Frame()
        self.encoder = _Encoder(self.frame, peer, self)
        self.tensors: list[Any] = []  # tensors in it, by place
        self.inputs: list[Any] = []  # those whose gradients the other end may ask for
        self.allowed: collections.Counter[str] = collections.Counter()  # what it may change
        self.is_counted = False  # whether `allowed` was asked for, where it is no call
        self.where: dict[int, str] | None = None  # id of what is handed over -> its path
        self.label = ""  # what is asked, as transcripts call it
        self.origin = ""  # the label of the objects that it gives
        self.expects = ""  # what it has to give, if anything: `VALUE` or `KNOWN`
        self.is_plain = False  # whether this is an answer to what has to give a value
        self.is_known = False  # or real objects of the instructor's classes
        self.result: Any = None  # what a call gives
        self.values: Any = ()
        self.serial = 0  # by which both ends know what is shared by it
        self.sent: list[Any] = []  # what may be shared: place, value, parts
        self.moved: set[int] = set()  # places of what the other end has changed
        self.returned: dict[int, Key] = {}  # places of what the other end itself has made
        self.kept_away: set[int] = set()  # those of them that stay as they are
        self.left = MAX_EDIT  # parts that it may tell of values that were changed
        self.added = -MAX_OF_ONE  # the place of the first that is new among them
        self.holders: dict[int, str] = {}  # labels of objects and their lists, by id
        self.noted: list[str] = []  # objects that the call has changed

    def aliases(self) -> "_PlainEncoder":
        """What writes parts that a test has put into a value that is shared."""
        return _PlainEncoder(self.frame, self.peer, self)

    def after(self, incoming: "Incoming") -> "_Encoder":
        """What writes values that may refer to what the call was handed."""
        made = _Encoder(self.frame, self.peer, self)
        made.memo = {id(kept): place for place, kept in enumerate(incoming.kept)}
        made.answers, made.handed = True, incoming.kept
        return made

    def let_go(self) -> None:
        """It is done with: hold nothing of what it handed over."""
        self.values, self.sent, self.encoder.kept, self.encoder.memo = (), [], [], {}
        self.tensors = []

    def named(self, place: int) -> str:
        """A value handed over: its kind, and where it stood among the arguments."""
        ours = self.encoder.kept[place]
        label = f"{type(ours).__name__}@{self.find().get(id(ours), f'#{place}')}"
        return self.holders.get(id(ours), label)

    def find(self) -> dict[int, str]:
        """Where each value stood among the arguments, before the call has changed them."""
        if self.where is None:
            self.where = _paths(self.values, self.peer.records)
            self.holders = self.peer.records.holders(self, self.where)
        return self.where

    def once(self, changed: tuple[str, ...]) -> tuple[str, ...]:
        """What was changed, each object once, whatever was changed of it."""
        objects, seen = set(self.holders.values()), set[str]()
        return tuple(
            one for one in changed if one not in objects or not (one in seen or seen.add(one))
        )

    def answer(self, incoming: "Incoming", value: Any) -> Any:
        """The node of what a call gave; it may refer to what the call was handed."""
        self.encoder.memo = {id(kept): place for place, kept in enumerate(incoming.kept)}
        self.encoder.answers, self.result = True, value
        self.encoder.handed, self.encoder.referred = incoming.kept, incoming.referred
        try:
            return self.encoder.node(value)
        finally:
            self.result = None  # nothing is kept by this

    def changes(self, incoming: "Incoming") -> list[Any]:
        """What the call changed in place of what it was handed, as (place, node)."""
        memo = {id(kept): place for place, kept in enumerate(incoming.kept)}
        changes = []
        for place in range(len(incoming.kept)):
            if incoming.changed(place):
                self.encoder.memo = dict(memo)
                now, before = incoming.value_at(place), incoming.originals[place]
                changes.append([place, self.encoder.again(now, before)])
        return changes

    def changes_of_ours(self, incoming: "Incoming") -> list[Any]:
        """What a test's function changed of the test's own that an answer has handed back to it."""
        changes = []
        self.encoder.referred = []  # they are told in full
        for place, (value, before) in enumerate(incoming.referred):
            if before.differs(value):
                self.encoder.memo = {id(kept): n for n, kept in enumerate(incoming.kept)}
                changes.append([place, self.encoder.again(value, before)])
        return changes

    def send(self, tree: dict[str, Any]) -> None:
        """Write the tensors and send; a reply that cannot be written tells so."""
        try:
            if self.tensors:
                tree["x"] = [self.peer.tensors.write(self, tensor) for tensor in self.tensors]
            self.frame.tree = tree
            self.peer.send(self.frame)
        except Exception as error:
            if "op" in tree or isinstance(error, EOFError):
                raise
            self.peer.send(Frame({"e": self.peer._describe(error)}))


def _paths(values: Any, records: Records) -> dict[int, str]:
    """Where each value stands among the arguments of a call: the first place, if in several.

    By numbers, but for what is handed over by name: "0", "1.2", "scale".
    """
    args, kwargs = values if len(values) == 2 and type(values[1]) is dict else (values, {})
    found: dict[int, str] = {}
    left = [*((str(n), v) for n, v in enumerate(args)), *kwargs.items()][::-1]
    while left:
        path, value = left.pop()
        if id(value) in found:
            continue
        found[id(value)] = path
        parts = dict.values(value) if type(value) in TABLES else library.parts_of(value)
        parts = parts or records.parts_of(value)
        left += [(f"{path}.{n}", part) for n, part in enumerate(parts)][::-1]
    return found


class Incoming(Decoder):
    """A message that is being read."""

    def __init__(self, peer: Peer, frame: Frame, kept: list[Any]) -> None:
        super().__init__(frame, list(kept))
        self.peer = peer
        self.tensors: list[Any] = []
        self.inputs: list[Any] = []  # those whose gradients may be asked for
        self.originals: dict[int, Original] = {}
        self.referred: list[tuple[Any, Original]] = []  # what of ours it refers to
        self.is_reply = False  # then nobody asks what was changed in it
        self.call: Outgoing | None = None  # of ours, which it answers or belongs to
        self.origin = ""  # the label of objects that are met in it for the first time
        self.read_once: set[int] = set()  # places of tensors
        self.own: dict[int, Key] = {}  # places of what this end has made, if it is that still
        self.taken_home: dict[int, Key] = {}  # those in whose place our own stands
        self.is_wary = not peer.is_free

    def mind_the_clock(self) -> None:
        """Reading takes time as well."""
        self.peer.mind_the_clock()

    def begin(self, told: Any) -> None:
        """What is told of the results that are read now; see `memory`."""

    def results(self, first: int) -> list[Any]:
        """What was given places from this one on, None for what is shared already."""
        return self.kept[first:]

    def _tagged(self, node: list[Any]) -> Any:
        if node[0] == "O" and self.is_wary:  # the grader's own records
            raise WireError("an answer gave a record, which cannot be handed to a test")
        place = len(self.kept)
        value = super()._tagged(node)
        if place in self.own and place < len(self.kept) and self.kept[place] is value:
            value = self.kept[place] = self._own_or(value, place)
        return value

    def _own_or(self, value: Any, place: int) -> Any:
        """What an answer has made, in place of the copy that came back, if they are alike."""
        key = self.own.pop(place)
        pair = self.peer.shared.pairs.get(key)
        if pair is None or not memory.is_alike(pair.value, value):
            return value
        if pair.home is not None and not is_same(based.value_of(pair.home), pair.parts):
            return value
        self.taken_home[place] = key
        return pair.value if pair.home is None else pair.home

    def fill(self, made: Any, parts: list[Any]) -> Any:
        """Fill, and remember how it was, so that changes are noticed."""
        place = len(self.kept) - 1
        filled = super().fill(made, parts)
        if place >= 0 and self.kept[place] is made and not self.is_reply:
            self.originals[place] = Original(filled)
        return filled

    def changed(self, place: int) -> bool:
        """Whether what stands in a place was changed since it came."""
        if place not in self.originals:
            return False
        return self.originals[place].differs(self.value_at(place))

    def value_at(self, place: int) -> Any:
        """What stands in a place, without what an answer's class adds to it."""
        value = self.kept[place]
        return based.value_of(value) if place in self.taken_home else value

    def tensor(self, place: Any) -> Any:
        """The tensor at a place; each stands for one part, so that nothing grows beyond it."""
        if type(place) is not int or not 0 <= place < len(self.tensors):
            raise WireError("a message names a tensor that it does not have")
        if place in self.read_once:
            raise WireError("a message names a tensor twice")
        self.read_once.add(place)
        return self.tensors[place]

    def _referred_to(self, value: Any) -> Any:
        """What we gave and is handed to us again: as it is now, so that changes are noticed."""
        if not self.is_reply:
            self.referred.append((value, Original(value)))
        return value

    def rewind(self, count: int) -> None:
        """Each part of a reply gives out places after those of the request."""
        del self.kept[count:]

    def keep(self, value: Any) -> Any:
        """Give an array or tensor its place."""
        if not self.is_reply:
            self.originals[len(self.kept)] = Original(value)
        self.kept.append(value)
        return value

    def other(self, tag: Any, parts: list[Any]) -> Any:
        """Objects, arrays, tensors and names of public things."""
        if tag == "Y":  # an object of ours comes back
            return self.peer.given[parts[0]]
        if tag == "U":
            call = self.peer.open[parts[0]]
            if not isinstance(call, Outgoing) or parts[1] < 0:
                raise WireError("a message refers to nothing")
            return self._referred_to(call.encoder.kept[parts[1]])
        if tag == "W" and self.peer.is_free and self.call is not None:
            return self.call.encoder.handed_back[parts[0]]
        if tag == "H":
            return stand_in(self.peer, self, parts[0])
        if tag == "X":
            return self.keep(self.tensor(parts[0]))
        if tag == "A":
            return self.keep(arrays.read(self, parts))
        if tag == "AV":
            return arrays.read_view(self.kept, parts)
        if tag == "AS":
            return arrays.read_number(parts)
        if tag == "DT":
            return arrays.dtype(parts[0])
        if tag == "PUB":
            return public(parts[0], self.peer.is_free)
        if tag in ("V", "NT"):
            return library.read(self, tag, parts)
        if tag in TAGS:
            return self.peer.records.read(self, tag, parts)
        if self.peer.tensors:
            return self.peer.tensors.other(self, tag, parts)
        return super().other(tag, parts)


class _Told(Incoming):
    """A reply in which results are told to be values of ours, or to lie in them."""

    def __init__(self, peer: Peer, frame: Frame, kept: list[Any]) -> None:
        super().__init__(peer, frame, kept)
        self.claims: dict[int, Any] = {}  # by the places of the results
        self.told: frozenset[int] = frozenset()  # these places

    def begin(self, told: Any) -> None:
        """From now on each place is that of a result."""
        self.claims = memory.claims_of(told)
        self.told = frozenset(self.claims)

    def results(self, first: int) -> list[Any]:
        """What was given places from this one on, None for what is shared already."""
        places = range(first, len(self.kept))
        return [None if place in self.told else self.kept[place] for place in places]

    def _tagged(self, node: list[Any]) -> Any:
        place = len(self.kept)
        value = super()._tagged(node)
        if place in self.claims and place < len(self.kept) and self.kept[place] is value:
            value = self.kept[place] = memory.own_or(self, value, *self.claims.pop(place))
        return value


def _refill(incoming: Incoming, ours: Any, node: Any) -> None:
    """Make a holder of ours in place what a node tells, which has to be of its kind."""
    tag, *parts = node
    if tag != HOLDERS[type(ours)]:
        raise WireError("a message puts something else in the place of a value")
    as_before = tag == "DD" and parts[:1] == [AS_BEFORE]
    fresh = incoming.fill(empty(type(ours), parts), [None, *parts[1:]] if as_before else parts)
    if isinstance(ours, collections.defaultdict) and not as_before:
        ours.default_factory = fresh.default_factory
    try:
        put_in(ours, fresh)
    except BufferError:
        raise WireError(
            "the answer changed the size of a bytearray in place, at which a memoryview looks"
        ) from None


AS_BEFORE = True  # stands for the factory of a `defaultdict` that is still the same


class Original:
    """How a value was when it came."""

    def __init__(self, value: Any) -> None:
        self.copy = copy.copy(value) if type(value) in HOLDERS else arrays.bits(value)

    def has_factory_of(self, value: Any) -> bool:
        """Whether the factory of a `defaultdict` is still the same."""
        return self.copy.default_factory is value.default_factory

    def differs(self, value: Any) -> bool:
        """Whether it was changed in place since."""
        if isinstance(self.copy, list | collections.deque):
            return len(self.copy) != len(value) or any(map(other, self.copy, value))
        if isinstance(self.copy, collections.defaultdict) and not self.has_factory_of(value):
            return True
        if isinstance(self.copy, dict):
            return list(self.copy) != list(value) or any(
                map(other, self.copy.values(), value.values())
            )
        if isinstance(self.copy, set | bytearray):
            return self.copy != value
        return arrays.bits(value) != self.copy


class _Encoder(Encoder):
    """Encodes what is not plain: stand-ins, tensors, arrays, public names, own objects."""

    def __init__(self, frame: Frame, peer: Peer, message: Outgoing) -> None:
        super().__init__(frame)
        self.peer = peer
        self.message = message
        self.answers = False  # whether this is a reply, which refers to its own call by place
        self.handed: list[Any] = []  # what that call was handed
        self.owners: Owners | None = None  # of the arrays in it
        self.handed_back: list[Any] = []  # what the other end gave us, in order
        self.referred: list[tuple[Any, Original]] = []  # what the other end so referred to
        self.declared: dict[int, Any] = {}  # objects that were told of, as `Records` knows them
        self.values = 0  # objects in it that are values at the other end
        self.plains: dict[int, Any] = {}  # of objects with contents their plain values, by id
        self.homes: dict[int, Any] = {}  # the objects, by the ids of these

    def again(self, value: Any, before: Original) -> Any:
        """A changed value in full, though it has a place."""
        if type(value) is collections.defaultdict and before.has_factory_of(value):
            return ["DD", AS_BEFORE, *self.contents(dict(value))[1:]]
        if type(value) in HOLDERS:
            return self.contents(value)
        memo, self.memo = self.memo, {}
        try:
            return self.node(value)
        finally:
            self.memo = memo

    def other(self, value: Any) -> Any:
        remote = remote_of(value)
        if remote is not None and remote.peer is self.peer:
            return ["Y", remote.number]
        if self.referred and not self.peer.is_free:
            for place, (one, _) in enumerate(self.referred):
                if one is value:
                    return ["W", place]
        place = self._handed_in(value)
        if place is not None:
            self.handed_back.append(value)
            return ["U", *place]
        if self.peer.lacks(type(value)):
            return self._foreign(value)
        if arrays.has_memory(value) and value.base is not None:
            for place in self._owners().of(owner_of(value)):
                view = arrays.view_node(value, self.handed[place])
                if view is not None:
                    return ["AV", place, *view]
        if self.peer.tensors:
            node = self.peer.tensors.node(self, value)
            if node is not None:
                return node
        node = arrays.node(self, value)
        if node is None and self.peer.records.classes:
            node = self.peer.records.node(self, value)
        if node is None and self.peer.is_free:
            node = self._based(value)
        if node is None:
            node = library.node(self, value)
        return self._object(value) if node is None else node

    def _owners(self) -> Owners:
        """Of the arrays that the call was handed, by their places."""
        if self.owners is None:
            self.owners = Owners()
            for place, one in enumerate(self.handed):
                if arrays.has_memory(one):
                    self.owners.add(owner_of(one), place)
        return self.owners

    def _foreign(self, value: Any) -> Any:
        """The node of something of a library that the other end does not have.

        A number is one of Python's own there, an array where a value is due its lists.
        """
        plain = value.tolist() if hasattr(type(value), "tolist") else value
        if plain is value or (isinstance(plain, list) and not self.message.is_plain):
            return self._object(value)
        return self.node(plain if type(plain) is not type(value) else float(value))

    def _based(self, value: Any) -> Any:
        """The node of an object whose class an answer has made of one of Python's own.

        A result is one if there is more to it than to a plain value, and no value is due. What
        stands in a list is a value, but for paths and the members of enumerations: one that can
        come back to its own class, and has nothing of it where the test runs.
        """
        base = based.base_of(type(value))
        if base is None:
            return None
        if base in based.OPEN and (self.message.is_plain or not self._is_stand_in(value, base)):
            return self._plain(value, base)
        if self.message.is_plain and base in based.PATHS:
            return self.node(based.plain(value, base))
        if not self.message.is_plain and self._is_stand_in(value, base):
            return ["H", describe(self.peer, self, value, base)]
        if self.values < MAX_VALUES and based.has_more(value, base):
            self.values += 1
            return ["H", describe(self.peer, self, value, base) | based.BARE]
        return None

    def _is_stand_in(self, value: Any, base: type) -> bool:
        alone = value is self.message.result or based.is_member(value) or base in based.PATHS
        return self.peer.knows(value) or (alone and based.has_more(value, base))

    def _plain(self, value: Any, base: type) -> Any:
        """The node of the plain value of an object with contents: one for each object."""
        made = self.plains.get(id(value))
        if made is None:
            made = based.plain(value, base)
            known = self.peer.shared.plain_of(value, made)
            made = self.plains[id(value)] = made if known is None else known
            self.homes[id(made)] = value
        return self.node(made)

    def _handed_in(self, value: Any) -> tuple[int, int] | None:
        """Where in a call under way the other end gave us this very tensor, unchanged."""
        if self.peer.tensors is None or not self.peer.tensors.is_constant(value):
            return None
        for level, call in enumerate(self.peer.open[:-1] if self.answers else self.peer.open):
            if not isinstance(call, Incoming):
                continue
            for place, kept in enumerate(call.kept):
                if kept is value and not call.changed(place):
                    return level, place
        return None

    def _object(self, value: Any) -> Any:
        kind = type(value)
        name = public_name(value)
        taken = _is_taken(value) and not self.peer.lacks(value) if self.peer.is_free else True
        if name is not None and taken:
            return ["PUB", name]
        if library.is_view(value) and self.peer.is_free:
            return library.view_node(self, value)
        if self.message.is_plain and (bare := library.bare(value)) is not None:
            return self.node(bare)
        for base in (*based.FIXED, list, dict, set):
            if issubclass(kind, base):
                return self.node(_bare(value, base))
        if not self.peer.policy.may_give(value):
            raise WireError(_refusal(value))
        return ["H", describe(self.peer, self, value)]


class _PlainEncoder(_Encoder):
    """Encodes plain values, and objects that are the other end's own; nothing of ours, not much."""

    def node(self, value: Any) -> Any:
        """The tree's node for a value."""
        size = len(value) if type(value) in (str, bytes, bytearray) else 0
        self._count(value.bit_length() if type(value) is int else size)
        return super().node(value)

    def _count(self, size: int) -> None:
        self.message.left -= 1 + size // 64
        if self.message.left < 0:
            raise WireError("too much was changed")

    def other(self, value: Any) -> Any:
        """Arrays, stand-ins, dates and so on."""
        remote = remote_of(value)
        if remote is not None and remote.peer is self.peer:
            return ["Y", remote.number]
        if arrays.is_array(value):
            self._count(8 * value.nbytes)
        if self.peer.tensors and is_tensor(value):
            self._count(8 * value.nbytes)
            return self.peer.tensors.node(self, value)
        known = not self.peer.lacks(type(value))
        node = (arrays.node(self, value) or library.node(self, value)) if known else None
        if node is None and self.peer.records.classes:
            node = self.peer.records.node(self, value)
        if node is None:
            raise WireError("what was changed holds an object")
        return node


def _refusal(value: Any) -> str:
    """Why a value of the test's is not handed over."""
    if _is_exception(value):
        return (
            f"the test raised {type(value).__name__}, and what a test raises is not handed to an "
            "answer: nothing can be said of what the answer would do with it"
        )
    return f"a {type(value).__name__} cannot be handed to an answer"


def _bare(value: Any, base: type) -> Any:
    """The value of a subclass without the names that a tuple may have."""
    made = based.plain(value, base)
    return tuple(made) if base is tuple else made


# --- stand-ins for objects of the other end ---------------------------------------------------


def describe(peer: Peer, encoder: _Encoder, value: Any, base: type | None = None) -> dict[str, Any]:
    """What the other end has to know of an object of ours to make a stand-in."""
    told: dict[str, Any] = {"n": peer.give(value), "type": type(value).__name__}
    if peer.tensors and peer.tensors.is_module(value):
        return told | {"k": "module"} | peer.tensors.describe(encoder, value)
    if isinstance(value, type):
        told |= {"k": "class", "type": value.__name__, "qualified": value.__qualname__}
        if issubclass(value, BaseException):
            told["error"] = errors.told_of(value)
        twin = public_name(value) or peer.records.path_of(value)
        told |= {"named": library.fields_of(value), "twin": twin}
    elif isinstance(value, types.FunctionType | types.MethodType | types.BuiltinFunctionType):
        names = {part: getattr(value, f"__{part}__", "") for part in ("name", "qualname")}
        told |= {"k": "function", "name": names["name"], "qualified": names["qualname"]}
    else:
        told |= {"k": "object", "name": getattr(value, "__name__", None)}
    kinds = type.mro(type(value))
    told["classes"] = peer.class_numbers(kinds)
    if base is not None:
        return told | based.described(encoder, value, base)
    told["dunders"] = [
        name for name in FORWARDED if _has(value, name) and peer.policy.may_use(value, name)
    ]
    told["public"] = next(filter(None, map(public_name, kinds[:-1])), None)
    is_class = isinstance(value, type)
    if told["k"] == "object":
        told["hash"] = _hash_of(value)
    if peer.is_free:
        told |= _lineage(peer, value) if is_class else {}
        above = type.mro(value) if is_class else kinds
        told["homes"] = list(filter(None, map(peer.records.path_of, above)))[:MAX_LINEAGE]
    elif told["public"] is None:
        told["public"] = peer.records.path_of(type(value))
    return told


def _lineage(peer: Peer, kind: type) -> dict[str, Any]:
    """The classes below a class: their numbers, and the names of those that both ends have."""
    kinds = type.mro(kind)
    return {
        "parents": peer.class_numbers(kinds),
        "bases": list(filter(None, map(public_name, kinds)))[:MAX_LINEAGE],
    }


def _method(target: Any, name: str) -> Any:
    """A method; of a class what works on itself, where its objects have one of this name, too."""
    own = getattr(type(target), name, None) if isinstance(target, type) else None
    if own is None or name not in OF_CLASSES:
        return getattr(target, name)
    return types.MethodType(own, target)


def _hash_of(value: Any) -> int | bool | None:
    """What an object's class makes its hash; False if it has none, None if nothing is special."""
    own = type(value).__hash__
    if own is object.__hash__:
        return None
    try:
        return hash(value)
    except Exception:  # noqa: BLE001  (its own, or that of what it holds)
        return False


def _has(value: Any, name: str) -> bool:
    if isinstance(value, type) and getattr(type(value), name, None) is getattr(type, name, None):
        return False
    if name in ("__repr__", "__str__", "__format__", "__eq__", "__ne__"):
        return getattr(type(value), name, None) is not getattr(object, name, None)
    if name in ("__lt__", "__le__", "__gt__", "__ge__"):
        return getattr(type(value), name, None) is not getattr(object, name, None)
    return callable(getattr(type(value), name, None))


def stand_in(peer: Peer, incoming: Incoming, told: dict[str, Any]) -> Any:
    """The stand-in for an object of the other end; the same one while it is in use."""
    if told.get("plain") is not None:
        return _based_stand_in(peer, incoming, told)
    number = small(told["n"])
    known = peer.stand_ins.get(number)
    if known is not None:
        _came(known, incoming.origin)
    if told.get("k") == "module" and peer.tensors:
        made = peer.tensors.stand_in(incoming, told, known)
    elif known is not None:
        return known
    elif told.get("k") == "class":
        made = _class_stand_in(peer, told)
    else:
        made = _object_stand_in(peer, told)
    _came(made, incoming.origin)
    peer.stand_ins[number] = made
    peer.held[number] = made
    return made


def _based_stand_in(peer: Peer, incoming: Incoming, told: dict[str, Any]) -> Any:
    """The same for an object whose class is made of one of Python's own."""
    number, value = small(told["n"]), incoming.value(told.get("body"))
    if told.get("bare") is True:
        number = -number  # it may be known as more than a value, too
    known = peer.members.get(number)
    if known is None:
        known = peer.stand_ins.get(number)
    if known is None:
        remote = peer.remotes.get(number) or Remote(peer, told)
        known = based.stand_in(remote, told, value, peer.classes)
        peer.remotes[number] = remote
        if based.is_open(known):
            peer.stand_ins[number] = known
        elif told.get("member") is True and len(peer.members) < MAX_CLASSES:
            peer.members[number] = known
    _came(known, incoming.origin)
    peer.held[number] = known
    return known


def _came(made: Any, origin: str) -> None:
    remote = remote_of(made)
    if remote is not None:
        remote.came(origin)


def _class_stand_in(peer: Peer, told: dict[str, Any]) -> Any:
    remote = Remote(peer, told)
    if told.get("error"):
        return peer.errors.of(told["error"])
    twins = (_named_tuple(told.get("named")), _named(told.get("twin")))
    twins += (peer.records.class_of(told.get("twin")),)
    remote.twins = tuple(kind for kind in twins if isinstance(kind, type))
    below = [*_homes(peer, told), *map(_named, list(told.get("bases") or ())[:MAX_LINEAGE])]
    remote.bases = tuple(kind for kind in below if isinstance(kind, type))
    names = tuple(name for name in peer.forwarded(told) if name in OF_CLASSES)
    kind = peer.classes.setdefault(("class", names), make_class_class(names))
    cls = object.__new__(kind)
    object.__setattr__(cls, "_remote", remote)
    return cls


def _object_stand_in(peer: Peer, told: dict[str, Any]) -> Any:
    remote = Remote(peer, told)
    made = object.__new__(_class_of(peer, told))
    object.__setattr__(made, "_remote", remote)
    return made


def _class_of(peer: Peer, told: dict[str, Any]) -> type:
    """The class of an object's stand-in, with the special methods that are believed now."""
    names = peer.forwarded(told)
    name = class_name(told, peer.classes)
    hashed = hashing(told, believed=peer.policy.believes("__hash__"))
    homes = _homes(peer, told)
    key = (names, told.get("public"), name, hashed, *homes[:1])
    if key not in peer.classes:
        seen = _seen(told.get("public"), peer.is_free)
        if homes:
            seen = _made_of(homes[0], name)
        if peer.is_free and seen is None:
            seen = peer.records.class_of(told.get("public"))
        peer.classes[key] = make_class(names, seen, name, hashed)
    return peer.classes[key]


def _homes(peer: Peer, told: dict[str, Any]) -> list[type]:
    """The instructor's classes which an answer's class is made of, the nearest first.

    Only those that are Python's alone: C code believes what `__class__` says of a list.
    """
    paths = list(told.get("homes") or ())[:MAX_LINEAGE] if not peer.is_free else []
    found = [kind for kind in map(peer.records.class_of, paths) if kind is not None]
    plain = ("__main__", "abc", "typing")
    return [k for k in found if all(b is object or b.__module__ in plain for b in k.__mro__)]


def _made_of(home: type, name: str) -> type | None:
    """A class below one of the instructor's: an answer's is that, and no more.

    None where the making of a class runs code of the instructor's, as a list of all classes does.
    """
    plain = type(home) in (type, abc.ABCMeta)
    if not plain or any("__init_subclass__" in vars(one) for one in home.__mro__[:-1]):
        return None
    with suppress(Exception):  # of which nothing can be made
        return type(home)(name, (home,), dict(HOME))
    return None


def _set_class(made: Any, kind: type) -> None:
    """Make a stand-in one of another class, whatever class it passes for."""
    if type(made) is not kind:
        vars(object)["__class__"].__set__(made, kind)


def _look_for_objects(peer: Peer, value: Any, is_call: bool, may_be_known: bool) -> None:
    """Refuse an object or class where the reference gives a value; an iterator is only iterated."""
    due = "an object of the course's own class" if may_be_known else "a value"
    for part in parts_of(value):
        remote = remote_of(part)
        if based.is_value(part):
            continue
        if MADE and not may_be_known and peer.records.is_made_there(part):
            raise TypeError(f"your code gave a {type(part).__name__} where {due} was expected")
        if issubclass(type(part), type):  # as a part of another value it passes for a method
            raise TypeError(f"your code gave a class where {due} was expected")
        if remote is None or (part is value and not is_call and remote.kind in ("class", "module")):
            continue
        if not is_iterator(part):
            raise TypeError(f"your code gave a {remote.type_name} where {due} was expected")


def is_iterator(value: Any) -> bool:
    """Whether this stands for an object of the other end's that is an iterator and nothing else."""
    if issubclass(type(value), Steps):
        return True
    remote, names = remote_of(value), set(vars(type(value)))
    if remote is None or remote.base is not None or not issubclass(type(value), StandIn):
        return False
    return "__next__" in names and not names & NO_ITERATORS


def take_steps(value: Any, due: str = VALUE) -> None:
    """What iterators in a value give is what they are from now on, and has to be this."""
    for part in parts_of(value):
        if is_iterator(part) and not issubclass(type(part), Steps):
            remote: Any = remote_of(part)
            remote.is_bare, remote.due = True, due
            key = ("steps", class_name(remote.told, remote.peer.classes))
            _set_class(part, remote.peer.classes.setdefault(key, make_steps(key[1])))


NO_ITERATORS = {"__len__", "__getitem__", "__eq__", "__bool__", "__contains__"}


def _named_tuple(told: Any) -> type | None:
    """The class of named tuples that a class of the other end stands for here."""
    if not isinstance(told, list) or len(told) != 2 or not isinstance(told[1], list):
        return None
    name, names = told
    return library.named_tuple(name, names, len(names))


# --- public things that both ends have --------------------------------------------------------

_OPEN = {"builtins", "collections", "math", "operator", "torch", "numpy"}
_WRITTEN_IN_C = ("torch", "torch.nn.functional", "math", "numpy", "operator")
_METHODS = (types.MethodDescriptorType, types.WrapperDescriptorType)
_DATA = (int, float, bool, str, bytes, complex, list, tuple, dict, set, frozenset, type(None))
_DATA += (range, slice, bytearray, collections.Counter, collections.OrderedDict)
_DATA += (collections.deque, collections.defaultdict)


def open_packages(names: Iterable[str]) -> None:
    """Have functions and classes of these packages, which both ends import, cross by name."""
    _OPEN.update({name.partition(".")[0] for name in names} - set(sys.stdlib_module_names))


def public_name(value: Any) -> str | None:
    """The name by which both ends find a public function or class; None if there is none."""
    if isinstance(value, _METHODS):  # of a class that holds data: `str.upper`
        kind, name = value.__objclass__, value.__name__
        is_public = kind in _DATA and vars(kind).get(name) is value
        return f"{kind.__module__}:{kind.__qualname__}.{name}" if is_public else None
    if isinstance(value, types.BuiltinMethodType) and isinstance(value.__self__, type):
        kind, name = value.__self__, value.__name__
        is_public = kind in _DATA and type(vars(kind).get(name)) is types.ClassMethodDescriptorType
        return f"{kind.__module__}:{kind.__qualname__}.{name}" if is_public else None
    if arrays.is_function(value):
        home = getattr(value, "__module__", None) or "numpy"
        found = _find(home, value.__name__) if home.partition(".")[0] in _OPEN else None
        return f"{home}:{value.__name__}" if found is value else None
    if not isinstance(value, type | types.FunctionType | types.BuiltinFunctionType):
        return None
    places = [(value.__module__, value.__qualname__)]
    if isinstance(value, types.BuiltinFunctionType):  # their own word for it is often wrong
        places += [(module, value.__name__) for module in _WRITTEN_IN_C]
    for module, name in places:
        known = isinstance(module, str) and module.partition(".")[0] in _OPEN
        if known and _find(module, name) is value:
            return f"{module}:{name}"
    return None


def public(name: Any, free: bool) -> Any:
    """The public thing of this name. From an answer only classes that hold data are taken."""
    found = _named(name)
    if found is None:
        raise WireError("a message names something unknown")
    if free or _is_taken(found):
        return found
    raise WireError(f"an answer gave {str(name)[-60:]}, which cannot be handed to a test")


def _seen(name: Any, free: bool) -> Any:
    """The public class that a stand-in passes for; None if it is none that a test may get.

    Only classes without a memory layout of their own: C code believes what `__class__` says.
    """
    found = _named(name) if name else None
    if not isinstance(found, type):
        return None
    return found if free or issubclass(found, Exception) or _may("pass_for", found) else None


def _is_taken(kind: Any) -> bool:
    """Whether a test may get this public class from an answer, and make objects of it."""
    if not isinstance(kind, type):
        return False
    if any(kind is data for data in _DATA) or arrays.is_number_type(kind):
        return True
    return issubclass(kind, Exception) or _may("pass_for", kind) or _may("be_base", kind)


def _may(what: str, kind: type) -> bool:
    tensors = _tensors_module()
    if tensors is None:
        return False
    return tensors.may_pass_for(kind) if what == "pass_for" else tensors.may_be_base(kind)


def _tensors_module() -> Any:
    """What handles tensors, where their library is loaded.

    It cannot be had where an answer has imported the library in a sandbox that was made without.
    """
    if "torch" not in sys.modules:
        return None
    if not _TENSORS:
        try:
            _TENSORS.append(importlib.import_module("autograder.bridge.tensors"))
        except Exception:  # noqa: BLE001  (or has put something else in its place)
            _TENSORS.append(None)
    return _TENSORS[0]


_TENSORS: list[Any] = []


def _named(name: Any) -> Any:
    module, _, path = str(name).partition(":")
    return _find(module, path) if module.partition(".")[0] in _OPEN else None


def _find(module: str, path: str) -> Any:
    kind = found = sys.modules.get(module)
    for part in path.split("."):  # what is there, and nothing imported or made on demand
        kind: Any = found
        found = vars(found).get(part) if isinstance(found, types.ModuleType | type) else None
    return getattr(kind, part) if type(found) is types.ClassMethodDescriptorType else found


# --- small things -----------------------------------------------------------------------------


def _no_end(error: BaseException) -> BaseException:
    """An exception as it leaves a call that is no step of an iterator: it ends no loop outside."""
    if not isinstance(error, StopIteration | StopAsyncIteration):
        return error
    made: Any = RuntimeError(f"a call raised {type(error).__name__}")
    for name in ("raised", "through"):
        if hasattr(error, name):
            setattr(made, name, getattr(error, name))
    made.__cause__ = error
    return made


def _raised(error: BaseException) -> Any:
    """What a call that ended in this has given: an exception of the answer's, or the test's own."""
    return getattr(error, "raised", None) or Opaque(PASSED_ON, errors.said(error))


def _is_exception(value: Any) -> bool:
    return isinstance(value, BaseException)


def _place(error: BaseException) -> tuple[int, str]:
    """Line and cell of the answer in which an exception arose, the innermost one."""
    line, cell = 0, ""
    trace = error.__traceback__
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if name.startswith("<answer ") and name.endswith(">"):
            line, cell = trace.tb_lineno, name[8:-1]
        trace = trace.tb_next
    if isinstance(error, SyntaxError) and not cell:
        line = error.lineno or 0
    return line, cell

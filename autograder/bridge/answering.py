"""What the other end asks of objects of ours: allowed or not, done, and the reply written."""

import copy
import dataclasses
import functools
import inspect
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from autograder.bridge import awaited, based, errors, late_changes, memory, rng, touched
from autograder.bridge.awaited import AWAIT
from autograder.bridge.figures import close_figures
from autograder.bridge.incoming import Incoming
from autograder.bridge.line import Gone
from autograder.bridge.outgoing import Outgoing
from autograder.bridge.outline import HANDS_OVER
from autograder.bridge.own_errors import ErrorClass
from autograder.bridge.printed import print_here
from autograder.bridge.protocol import LIBRARIES, MAX_NESTED
from autograder.bridge.reference import given_by
from autograder.bridge.stand_ins import CODE, DATACLASSES, OF_CLASSES, YOURS
from autograder.bridge.wire import Frame, WireError, reading

if TYPE_CHECKING:
    from autograder.bridge.peer import Peer

# what Python finds out of an object, where others have an attribute
TOLD: dict[str, Callable[[Any], Any]] = {
    "__signature__": inspect.signature,
    "__dir__": dir,
    "__class__": type,  # whatever it says itself
    "__members__": lambda kind: dict(kind.__members__),
    **{f"__{known.__name__}__": known for known in (*CODE, *DATACLASSES, inspect.isabstract)},
}


class Answering:
    """Answers the other end."""

    def __init__(self, peer: "Peer") -> None:
        self.peer = peer

    def serve(self) -> None:
        """Answer requests until the line closes."""
        while True:
            try:
                frame = self.peer.wire.read()
            except EOFError:
                return
            self.answer(frame)

    def until_reply(self) -> Frame:
        """The next reply; what the other end asks before it is answered meanwhile."""
        while True:
            try:
                frame = self.peer.wire.read()
            except EOFError as error:
                raise Gone("died", "the process of the answer ended") from error
            if self.peer.runs_test and "said" in frame.tree:
                print_here(frame.tree["said"])
            if "op" not in frame.tree:
                return frame
            self.answer(frame)

    def answer(self, frame: Frame) -> None:
        """Answer one request."""
        incoming = Incoming(self.peer, frame, [])
        calls = (call for call in reversed(self.peer.open) if isinstance(call, Outgoing))
        incoming.call = next(calls, None)
        incoming.origin = given_by(incoming.call.label) if incoming.call is not None else ""
        if self.peer.is_free and "has" in frame.tree:
            self.peer.missing = LIBRARIES.difference(frame.tree["has"])
        self.peer.crossed += 1
        if not self.peer.open:
            self.peer.thrown.raised.clear()
        answered: dict[str, Any]
        reply, answered, results = self._answered(incoming, frame.tree)
        try:
            self._tell_changes(incoming, reply, answered, results)
        except Exception as error:  # noqa: BLE001  (something put there that cannot cross)
            reply = Outgoing(self.peer)
            answered = {"e": self.peer.thrown.describe(error)}
        if self.peer.is_free:
            answered["used"] = self.peer.random.used()
            self.peer.warned.leave(answered)
            self.peer.logged.leave(answered)
        if self.peer.tensors:
            answered["graph"] = self.peer.tensors.graphs.remember(incoming, reply)
        if not self.peer.open:
            self.peer.held.clear()
            if self.peer.tensors:
                self.peer.tensors.settings.forget()
        answered["drop"] = self.peer.unused()
        reply.send(answered)

    def _answered(
        self, incoming: "Incoming", tree: dict
    ) -> tuple["Outgoing", dict[str, Any], list[Any]]:
        """Do what is asked: the reply, what it says so far, and the results that are shared."""
        reply = Outgoing(self.peer)
        reply.is_plain, reply.is_known = tree.get("plain") is True, tree.get("known") is True
        reply.objects = tree.get("objects")
        mode = self.peer.tensors.mode() if self.peer.tensors else None
        try:
            with self.peer.opened(incoming):
                if len(self.peer.open) > MAX_NESTED:
                    raise RecursionError("test and answer call each other without end")
                if self.peer.is_free and len(self.peer.open) == 1 and self.peer.tensors:
                    self.peer.tensors.kept_on.look()
                    self.peer.tensors.settings.again()
                answer = self._work(incoming, tree)
                if self.peer.is_free and self.peer.tensors:
                    self.peer.tensors.settings.tell()
                answered: dict[str, Any] = {"r": reply.answer(incoming, answer)}
                told, results = (
                    memory.tell(self.peer, incoming, reply) if self.peer.is_free else (None, [])
                )
                if told is not None:
                    answered["as"] = told
        except Gone:
            raise
        except BaseException as error:  # noqa: BLE001  (whatever an answer raises is a result)
            self._note_failure(error, incoming.call)
            reply, results = Outgoing(self.peer), []
            answered = {"e": self.peer.thrown.describe(error)}
        finally:
            if mode is not None and self.peer.open:
                self.peer.tensors.set_mode(mode)
        return reply, answered, results

    def _tell_changes(
        self, incoming: "Incoming", reply: "Outgoing", answered: dict[str, Any], results: list[Any]
    ) -> None:
        """Put into a reply what has changed while it was made."""
        answered["c"] = reply.changes(incoming)
        if self.peer.is_free and (late := late_changes.tell(self.peer, incoming, reply)):
            answered["late"] = late
        if not self.peer.is_free:
            answered["w"] = reply.changes_of_ours(incoming)
        if self.peer.records.classes:
            self.peer.records.answer(reply, incoming, answered)
        if self.peer.tensors:
            answered["t"] = self.peer.tensors.in_step.state_out(reply)
        if self.peer.is_free:
            answered["own"] = self.peer.shared.answered(incoming, reply, results)

    def _note_failure(self, error: BaseException, call: "Outgoing | None") -> None:
        """Remember what a test's function raised: the answer may keep it to itself.

        A claim that does not hold fails the test; another exception in a function that checks is
        told as a change, and fails it where the reference's call keeps none such to itself.
        """
        if self.peer.is_free or self.peer.failed is not None or hasattr(error, "through"):
            return
        if isinstance(type(error), ErrorClass):  # made by the answer's own name for it
            return
        if isinstance(error, AssertionError):
            self.peer.failed = error
        elif call is not None and errors.is_of_check(error):
            label = f"kept {type(error).__name__}"
            if label not in call.noted:
                call.noted.append(label)
                self.peer.changing.note(label)
                self.peer.failed = (
                    error if self.peer.changing.protects(call, label, error) else None
                )

    def _work(self, incoming: "Incoming", tree: dict) -> Any:
        with reading():
            for number in tree.get("drop") or []:
                self.peer.forget(number)
            if self.peer.is_free:
                self._arrive(incoming.frame, tree)
            incoming.take_tensors(None)
            if self.peer.is_free:
                self.peer.shared.arrive(incoming, tree.get("same"))
            if "kinds" in tree or "o" in tree:
                self.peer.records.hear(incoming, tree)
            values = incoming.value(tree.get("v"))
            if self.peer.is_free:
                self.peer.typed.asked = incoming.value(tree.get("input"))
                self.peer.instead.told = incoming.value(tree.get("instead")) or {}
            target, *rest = tree.get("p") or []
            op = str(tree.get("op"))
            if op == "ask":
                service, values = self.peer.services[target], tuple(values)
            elif op == "call":
                values = self._handed(incoming, target, tuple(values[0]), dict(values[1]))
        if op == "ask":
            return service(*values)
        if op == "vjp":
            return self.peer.tensors.graphs.vjp(target, values)
        before, self.peer.is_busy = self.peer.is_busy, False
        try:
            with self._as_a_test_has_it(tree), self.peer.instead.met():
                return self.use(op, target, rest, values)
        finally:
            self.peer.is_busy = before

    @contextmanager
    def _as_a_test_has_it(self, tree: dict) -> Iterator[None]:
        """While something of an answer's runs: warnings, arithmetic and logs as a test has them."""
        tree = tree if self.peer.is_free else {}
        logs = self.peer.logged.during(tree["logs"]) if "logs" in tree else nullcontext()
        with logs, awaited.within(tree.get("loop") is True), self.peer.warned.during(tree):
            yield

    def _arrive(self, frame: Frame, tree: dict) -> None:
        """Let an answer find what is there for it when a test asks."""
        if tree.get("begins") is True:
            close_figures()
        self.peer.random.arrive(frame, tree.get("rng"))
        self.peer.borrowed.arrive(frame, tree.get("files") or ())

    def _handed(self, incoming: "Incoming", target: Any, args: tuple, kwargs: dict) -> Any:
        """What a call of ours is handed, which is noted, as it gets it."""
        handed = [*args, *kwargs.values()]
        if handed or _collects(self.peer.given.get(target)):
            self.peer.beside.note(incoming.origin + HANDS_OVER, handed)
        fill = self.peer.fill if self.peer.runs_test else None
        return (args, kwargs) if fill is None else fill((args, kwargs))

    def use(self, op: str, number: Any, rest: list, values: Any) -> Any:
        """Do what is asked for with an object of ours."""
        self.peer.is_used(number)
        with reading():
            target = self.peer.given[number]
            name: Any = rest[0] if rest else None
            if op == "call":
                args, kwargs = values
                args, kwargs = tuple(args), dict(kwargs)
        if op == "copy":
            self._permit(target, "__copy__" if name == "__copy__" else "__deepcopy__")
            return self.peer.changing.copy(
                target, copy.copy if name == "__copy__" else copy.deepcopy
            )
        if op == "contents" and self.peer.is_free:
            base = based.base_of(type(target))
            return None if base is None else based.plain(target, base)
        if op == "put" and not self.peer.is_free and touched.is_new(target, name):
            return YOURS
        if op == "get" and self.peer.records.shows(target, name):
            return getattr(target, name)
        self._permit(target, name, op)
        if op == "call":
            return self._call(target, name, args, kwargs)
        if op == "get":
            return self._get(target, name)
        if op == "put":
            return self._put(target, name, values[0])
        self._permit_change(target, name)
        return delattr(target, name)

    def _call(self, target: Any, name: Any, args: tuple, kwargs: dict) -> Any:
        with self.peer.changing.watched(target, name):
            function = target if name is None else _method(target, name)
            if name == "__exit__" and self.peer.is_free and isinstance(args[1], BaseException):
                args = type(args[1]), args[1], None
            made = function(*args, **kwargs)
        if not self.peer.is_free and self.peer.tensors:
            self.peer.tensors.hung.hang(target, name, [*args, *kwargs.values()], made)
        if name is None:
            self.peer.changing.made_by(target, made)
        return made

    def _get(self, target: Any, name: Any) -> Any:
        is_private = type(name) is not str or (name.startswith("_") and name != "__doc__")
        if not self.peer.is_free and is_private:
            raise AttributeError("what begins with an underscore is private")
        told = TOLD.get(name)
        return getattr(target, name) if told is None else told(target)

    def _put(self, target: Any, name: Any, value: Any) -> Any:
        if not self.peer.is_free and self.peer.tensors:
            with self.peer.changing.watched(target, "__setattr__"):
                taken = self.peer.tensors.settings.take(target, name, value)
            if taken:
                return True
        if not self.peer.is_free and touched.is_set(target, name):
            if not self.peer.changing.may_set(target):
                return YOURS
            call = getattr(self.peer.open[-1], "call", None)
            self.peer.leaving.sets(call, target, {name: value})
            with self.peer.changing.watched(target, "__setattr__"):
                return setattr(target, name, value)
        self._permit_change(target, name)
        return setattr(target, name, value)

    def _permit_change(self, target: Any, name: Any) -> None:
        is_own = self.peer.changing.is_copy(target) and not str(name).startswith("_")
        if not self.peer.is_free and not is_own:
            raise PermissionError("what a test hands over cannot be changed")

    def _permit(self, target: Any, name: str | None, op: str = "call") -> None:
        if name is not None and type(name) is not str:
            raise WireError("an attribute's name is a text")
        if not self.peer.policy.may_use(target, name):
            what = "call" if name is None else f"use {name} of"
            words = f"an answer may not {what} this {type(target).__name__}"
            # whoever only asks whether it is there is told that it is not
            raise AttributeError(words) if op == "get" else PermissionError(words)


def _collects(target: Any) -> bool:
    """Whether a function may make something of no arguments at all, as of `*numbers`.

    Others are handed nothing where a call leaves them to the values that they have themselves.
    """
    if type(target) is types.BuiltinFunctionType or rng.draws(_owner(target)):
        return False
    function = target.__func__ if type(target) is types.MethodType else target
    if type(function) is not types.FunctionType:  # an object of a test's is asked for nothing
        return True
    return bool(function.__code__.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS))


def _owner(target: Any) -> type:
    """The class of whose objects this is a method; that of anything else."""
    return type(target.__self__) if type(target) is types.MethodType else type(target)


def _method(target: Any, name: str) -> Any:
    """A method; of a class what works on itself, where its objects have one of this name, too."""
    if name == AWAIT:
        return functools.partial(awaited.run, target)
    if name == "__replace__" and not hasattr(type(target), name):  # Python 3.13 has it
        return functools.partial(dataclasses.replace, target)
    own = getattr(type(target), name, None) if isinstance(target, type) else None
    if own is None or name not in OF_CLASSES:
        return getattr(target, name)
    return types.MethodType(own, target)

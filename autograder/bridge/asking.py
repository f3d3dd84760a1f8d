"""Requests of one end: written with all that has changed here, answered, and the reply taken in."""

import sys
import threading
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from autograder.bridge import late_changes, memory
from autograder.bridge.awaited import is_in_loop
from autograder.bridge.due import look
from autograder.bridge.incoming import Incoming, Told
from autograder.bridge.lent import LENT
from autograder.bridge.line import Gone
from autograder.bridge.outgoing import Outgoing
from autograder.bridge.outline import CHANGES
from autograder.bridge.own_errors import class_remote
from autograder.bridge.protocol import LIBRARIES, MAX_NESTED
from autograder.bridge.reference import KNOWN, OBJECTS, VALUE, Places, given_by, is_quiet
from autograder.bridge.stand_ins import remote_of
from autograder.bridge.thrown import no_end, outcome_of
from autograder.bridge.transcript import Asked
from autograder.bridge.wire import Frame, reading

if TYPE_CHECKING:
    from autograder.bridge.peer import Peer

USUAL = sys.getrecursionlimit()
AS_A_WHOLE: dict[Any, str] = {VALUE: "plain", KNOWN: "known", OBJECTS: "objects"}


class Asking:
    """Asks the other end."""

    def __init__(self, peer: "Peer") -> None:
        self.peer = peer

    def request(
        self,
        op: str,
        plain: list,
        values: tuple,
        label: str,
        origin: str | None = None,
        due: str = "",
    ) -> Any:
        """What the other end answers to a request; whatever it raises is raised here."""
        before, self.peer.is_busy = self.peer.is_busy, True
        crosses = self.peer.instead.aside() if self.peer.instead.usual else nullcontext()
        try:
            with crosses:
                return self._request_now(op, plain, values, label, origin, due)
        except Gone as gone:
            self.peer.gone = self.peer.gone or gone
            raise
        finally:
            self.peer.is_busy = before

    def _request_now(
        self, op: str, plain: list, values: tuple, label: str, origin: str | None, due: str
    ) -> Any:
        self._begin()
        message, tree = self._message(op, plain, values, label, origin, due)
        message.send(tree)
        if self.peer.asked is not None and op == "call" and plain[1] is None:
            kept = self.peer.transcript.copies(message.encoder.kept)
            self.peer.asked.append(Asked(label, plain[0], message.frame, kept))
        before = self.peer.changes["Module"]
        with self.peer.opened(message):
            reply = self.peer.answering.until_reply()
        if not self.peer.is_free:
            self.peer.random.back(reply.tree.get("used"), label)
        try:
            return self._reply(message, reply, label, before)
        finally:
            message.let_go()

    def _begin(self) -> None:
        """Refuse what may not ask now; bring what both ends hold up to date."""
        if threading.get_ident() != self.peer.thread:
            raise RuntimeError("only the main thread may call what a test handed over")
        if len(self.peer.open) > MAX_NESTED:
            raise RecursionError("test and answer call each other without end")
        if self.peer.is_free and self.peer.tensors:
            self.peer.tensors.settings.tell()
        self.peer.requests += 1
        self.peer.crossed += 1
        if self.peer.tensors:
            self.peer.tensors.give_back()
            if not self.peer.open:
                self.peer.tensors.tell_again()

    def _message(
        self, op: str, plain: list, values: tuple, label: str, origin: str | None, due: str
    ) -> tuple["Outgoing", dict[str, Any]]:
        """A request, and what it says."""
        if not self.peer.open:
            self.peer.held.clear()
            self.peer.thrown.raised.clear()
        message = Outgoing(self.peer)
        message.label, message.values = label, values
        message.origin = self._origin(op, plain, label) if origin is None else origin
        message.expects = due if due or is_quiet(label) else self.peer.expects.next(label)
        if self.peer.protect and not is_quiet(label):
            message.allowed = self.peer.allows.next(label)
        tree: dict[str, Any] = {"op": op, "p": plain, "v": message.encoder.node(values)}
        if self.peer.tensors:
            tree["t"] = self.peer.tensors.in_step.state_out(message)
        if message.expects in AS_A_WHOLE:
            tree[AS_A_WHOLE[message.expects]] = True
        elif isinstance(message.expects, Places):
            tree["objects"] = message.expects.objects
        if self.peer.records.classes:
            self.peer.records.leave(message, tree)
        if self.peer.transcript.crossings is not None and not self.peer.is_free:
            tree["same"] = self.peer.shared.leave(message)
        if not self.peer.is_free:  # an answer does not choose the numbers that a test draws
            tree["rng"] = self.peer.random.leave(message.frame)
            self._tell_of_ours(tree)
            if self.peer.runs_test:
                self._tell_of_tests(message, tree, values)
        tree["drop"] = self.peer.unused()
        return message, tree

    def _tell_of_ours(self, tree: dict[str, Any]) -> None:
        """Libraries that a test has imported, and how deep calls may go.

        And that it begins, if this is the first that it asks.
        """
        libraries = frozenset(filter(sys.modules.__contains__, LIBRARIES))
        if libraries != self.peer.told:
            tree["has"], self.peer.told = sorted(libraries), libraries
        if not self.peer.open and sys.getrecursionlimit() > USUAL:  # as in one process
            tree["deep"] = sys.getrecursionlimit()
        if self.peer.begins:
            tree["begins"], self.peer.begins = True, False

    def _tell_of_tests(self, message: "Outgoing", tree: dict[str, Any], values: tuple) -> None:
        """What a test has set or put in places where answers meet it, files that it names."""
        self.peer.warned.ask(tree)
        self.peer.logged.ask(tree)
        if is_in_loop():
            tree["loop"] = True
        if (answers := self.peer.typed.leave()) is not None:
            tree["input"] = message.encoder.node(answers)
        if instead := self.peer.instead.leave():
            tree["instead"] = message.encoder.node(instead)
        if files := LENT.leave(message.frame, values):
            tree["files"] = files

    def _origin(self, op: str, plain: list, label: str) -> str:
        """The label of what a request gives: what a class makes goes by the class's.

        So does a method by that of what it was made of: a function is one without being asked.
        """
        if op == "get":
            return label.removeprefix("get ")
        remote = self.peer.remote_at(plain[0]) if op == "call" else None
        if remote is not None and plain[1] == "__get__":
            return remote.label
        makes = remote is not None and remote.kind == "class" and plain[1] is None
        return label if makes else given_by(label)

    def _reply(self, message: "Outgoing", frame: Frame, label: str, before: int) -> Any:
        told = None if self.peer.is_free else frame.tree.get("as")
        incoming = (Incoming if told is None else Told)(self.peer, frame, message.encoder.kept)
        incoming.is_reply, incoming.call, incoming.origin = True, message, message.origin
        error: BaseException | None = None
        with reading():
            incoming.take_tensors(message)
            memory.take_state(incoming, told)
            changed = self._changes(incoming, message, frame.tree, before)
            if message.moved:
                moved = [message.encoder.kept[place] for place in sorted(message.moved)]
                self.peer.beside.note(label + CHANGES, moved)
                self._fill_in(message)
            self.peer.leaving.behind(message, label)
            incoming.begin(told)
            value = incoming.value(frame.tree.get("r"))
            if message.noted or message.holders:
                changed = message.once((*changed, *message.noted))
            if message.serial and "c" in frame.tree:
                results = incoming.results(len(message.encoder.kept))
                self.peer.shared.back(message, results, frame.tree.get("own") or [])
            for number in frame.tree.get("drop") or []:
                self.peer.forget(number)
            if "e" in frame.tree:
                seen = self.peer.leaving.raising(label)
                error = self.peer.thrown.error(frame.tree["e"], seen)
            warned = self.peer.warned.read(frame.tree, label)
        self.peer.logged.hear(frame.tree)
        error = self.peer.warned.issue(warned, error)
        if error is not None:
            self.peer.transcript.record(label, outcome_of(error), changed)
            method = (message.frame.tree.get("p") or [None])[-1]
            may_end = method == "__next__" or self.peer.may_end(label)
            raise error if may_end else no_end(error)
        self.peer.transcript.record(label, value, changed)
        if self.peer.runs_test and self.peer.look is not None and not is_quiet(label):
            self.peer.look(label, value)
        if message.expects:
            is_call = not label.startswith("get ")
            look(self.peer, value, message.expects, is_call)
        if self.peer.runs_test and self.peer.fill is not None and not is_quiet(label):
            return self.peer.fill(value)
        return value

    def _changes(
        self, incoming: "Incoming", message: "Outgoing", tree: dict, before: int
    ) -> tuple[str, ...]:
        """Do to what was handed over what the other end has done; the kinds of change."""
        modules = ("Module",) if self.peer.changes["Module"] > before else ()
        if tree.get("o"):
            message.find()
        changed = modules + self.peer.changing.take(incoming, message, tree.get("c") or [])
        if self.peer.is_free:
            for place, node in tree.get("w") or []:
                incoming.rewind(len(message.encoder.kept))
                self.peer.changing.change(incoming, message.encoder.handed_back[place], node)
        elif "late" in tree:
            changed += late_changes.take(self.peer, incoming, message, tree["late"])
        incoming.rewind(len(message.encoder.kept))
        if self.peer.records.classes:
            self.peer.records.answered(incoming, message, tree)
        if not self.peer.is_free and self.peer.tensors:
            changed += self.peer.tensors.hung.end(message)
        return changed

    def _fill_in(self, message: "Outgoing") -> None:
        """Have what the call has changed hold what a test gets in the place of it."""
        for place in sorted(message.moved - message.kept_away):
            self.fill(message.encoder.kept[place])

    def fill(self, ours: Any) -> None:
        """The same of one value."""
        if self.peer.runs_test and self.peer.fill is not None:
            made = self.peer.fill(ours)
            if made is not ours:
                self.peer.changing.put(ours, made)

    def repeat(self, function: Any, asked: "Asked") -> Any:
        """Send a recorded call once more; a copy of what it gives now, an exception as `Raised`."""
        remote = remote_of(function) or class_remote(function)
        if remote is None:
            return None
        message = Outgoing(self.peer)
        message.encoder.kept = asked.kept
        message.frame.buffers = list(asked.frame.buffers)
        again = {"p": [remote.number, None], "drop": [], "same": None}
        message.send({**asked.frame.tree, **again})
        self.peer.open.append(message)
        try:
            reply = self.peer.answering.until_reply()
        except Gone as gone:
            self.peer.gone = self.peer.gone or gone
            raise
        finally:
            self.peer.open.pop()
        with reading():
            if "e" in reply.tree:
                return outcome_of(self.peer.thrown.error(reply.tree["e"]))
            incoming = Incoming(self.peer, reply, asked.kept)
            incoming.is_reply = True
            if self.peer.tensors:
                incoming.tensors = self.peer.tensors.read(incoming, reply.tree.get("x"), None, None)
            for place, node in reply.tree.get("c") or []:
                incoming.rewind(len(asked.kept))
                self.peer.changing.change(incoming, asked.kept[place], node)
            incoming.rewind(len(asked.kept))
            value = incoming.value(reply.tree.get("r"))
        return self.peer.transcript.snapshot(value)

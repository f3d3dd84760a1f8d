"""Exceptions on their way through the line: told by their kind and text, raised anew."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from autograder.bridge import errors
from autograder.bridge.stand_ins import remote_of, small
from autograder.bridge.wire import WireError
from autograder.common.results import PASSED_ON, Opaque, Raised

if TYPE_CHECKING:
    from autograder.bridge.peer import Peer

MAX_TEXT = 4000  # characters of an exception's message
MAX_MEMBERS = 100  # of a group, and of groups in it
DEEPEST = 5  # groups in a group
MAX_CAUSES = 5  # each of which is the cause of the one before it


class Thrown:
    """Those of one end by numbers: what passes through the other end comes back as itself."""

    def __init__(self, peer: "Peer") -> None:
        self.peer = peer
        self.raised: dict[int, BaseException] = {}
        self.next = 0
        self.left = 0  # members that the groups which are told of now may have

    def describe(self, error: BaseException) -> dict[str, Any]:
        """An exception of ours, as a message: its type, its text, where in the answer it arose."""
        remote = remote_of(error)
        if remote is not None and remote.peer is self.peer:  # a test has made it of an answer's
            return {"made": remote.number}
        through = _came_as(error) if remote is None else None
        if through is not None:
            return {"yours": through}
        self.next += 1
        self.raised[self.next] = error
        hide = not self.peer.is_free and isinstance(error, AssertionError)
        hide |= remote is not None  # of a process that is given up
        try:
            text = "" if hide else str(error)
            args = [text] if hide else errors.told_arguments(error, text, self.peer.lacks)
        except Exception:  # noqa: BLE001  (a text that cannot be made is no text)
            text, args = "", []
        line, cell = _place(error)
        causes = self._causes(error) if self.peer.is_free else []
        context = self._context(error) if self.peer.is_free else None
        tells = self.peer.is_free or (remote is None and self.peer.errors.is_given(type(error)))
        return {
            "id": self.next,
            **errors.told_of(type(error)),
            "text": text[:MAX_TEXT],
            "args": args,
            "carries": errors.attributes(error, self.peer.lacks) if tells else {},
            "line": line,
            "cell": cell,
            "causes": causes,
            "context": context,
            "alone": error.__suppress_context__,
            "group": self._members(error, [MAX_MEMBERS], DEEPEST) if self.peer.is_free else None,
        }

    def _members(self, error: BaseException, left: list[int], depth: int) -> list[Any] | None:
        """What a group is called and holds; None for anything else, or too much."""
        if not isinstance(error, BaseExceptionGroup) or not depth:
            return None
        left[0] -= len(error.exceptions)
        if left[0] < 0:
            return None
        return [error.message, *(self._member(one, left, depth) for one in error.exceptions)]

    def _member(self, error: BaseException, left: list[int], depth: int) -> dict[str, Any]:
        through = _came_as(error)
        if through is not None:
            return {"yours": through}
        told = self._told(error)
        carries = errors.attributes(error, self.peer.lacks)
        return {**told, "carries": carries, "group": self._members(error, left, depth - 1)}

    def _told(self, error: BaseException) -> dict[str, Any]:
        """Kind, text and arguments of one that was not raised last."""
        try:
            text = str(error)[:MAX_TEXT]
            args = errors.told_arguments(error, text, self.peer.lacks)
        except Exception:  # noqa: BLE001  (a text that cannot be made is no text)
            text, args = "", []
        return {**errors.told_of(type(error)), "text": text, "args": args}

    def _causes(self, error: BaseException) -> list[dict[str, Any]]:
        """What an exception was raised from, and that from what."""
        found: list[dict[str, Any]] = []
        cause = error.__cause__
        while cause is not None and len(found) < MAX_CAUSES:
            found.append(self.mention(cause))
            cause = None if "yours" in found[-1] else cause.__cause__
        return found

    def _context(self, error: BaseException) -> dict[str, Any] | bool:
        """What was handled when an exception was raised; True if that is its cause."""
        found = error.__context__
        if found is None or found is error.__cause__:
            return found is not None
        return self.mention(found)

    def mention(self, error: BaseException) -> dict[str, Any]:
        """One that was not raised here last: of the test's own, which it knows, the number."""
        through = _came_as(error)
        if through is not None:
            return {"yours": through}
        return {**self._told(error), "carries": errors.attributes(error, self.peer.lacks)}

    def error(self, told: Any, seen: Callable[[str, Any], Any] = errors.as_told) -> BaseException:
        """The exception to raise here for one that the other end raised.

        Args:
            told: what its end says of it.
            seen: makes of each part of it, which has a name, what it carries here.
        """
        if "yours" in told:
            if told["yours"] not in self.raised:
                raise WireError("a message refers to an exception that is gone")
            return self.raised[told["yours"]]
        if "made" in told and self.peer.is_free:
            return self.peer.given[told["made"]]
        kinds = tuple(kind for kind in told["kinds"] if isinstance(kind, str))[:20]
        name, text = str(told["type"])[:100], str(told["text"])[:MAX_TEXT]
        raised = Raised(name, text, small(told.get("line")), str(told.get("cell"))[:100], kinds)
        args = [
            seen(str(n), one) for n, one in enumerate(errors.read_arguments(told["args"], text))
        ]
        words = seen("text", text)
        self.left = MAX_MEMBERS
        error: Any = self._group(told, words, seen, DEEPEST)
        if error is None:
            error = self.peer.errors.make(told, args, words, is_tame=not self.peer.runs_test)
        errors.carry(error, told.get("carries"), seen)
        error.__dict__.update(raised=raised, through=told["id"])
        self._join(error, told.get("causes"), seen)
        context = told.get("context")
        if context is True or type(context) is dict:
            made = error.__cause__ if context is True else self.mentioned(context, seen)
            BaseException.__context__.__set__(error, made)  # type: ignore[attr-defined]
        if told.get("alone") is True:
            BaseException.__suppress_context__.__set__(error, True)  # type: ignore[attr-defined]
        return error

    def _group(
        self, told: Any, text: str, seen: Callable[[str, Any], Any], depth: int
    ) -> BaseException | None:
        """The group that is told of, if it is one."""
        group = told.get("group")
        if type(group) is not list or not 1 < len(group) <= self.left + 1 or not depth:
            return None
        self.left -= len(group) - 1
        members = [self._member_of(one, seen, depth) for one in group[1:]]
        return self.peer.errors.group(told, str(group[0])[:MAX_TEXT], members, text)

    def _member_of(self, told: Any, seen: Callable[[str, Any], Any], depth: int) -> BaseException:
        if "yours" in told:
            return self.raised.get(told["yours"]) or Exception()
        text = str(told["text"])[:MAX_TEXT]
        words = seen("text", text)
        made = self._group(told, words, seen, depth - 1)
        if made is None:
            args = [seen("group", one) for one in errors.read_arguments(told["args"], text)]
            made = self.peer.errors.make(told, args, words)
        errors.carry(made, told.get("carries"), seen)
        return made

    def _join(self, error: BaseException, causes: Any, seen: Callable[[str, Any], Any]) -> None:
        """Tell an exception, made here, what it was raised from; each of these is made here too."""
        for told in causes[:MAX_CAUSES] if isinstance(causes, list) else ():
            cause = self.mentioned(told, seen)
            BaseException.__cause__.__set__(error, cause)  # type: ignore[attr-defined]
            if "yours" in told:
                break
            error = cause

    def mentioned(self, told: Any, seen: Callable[[str, Any], Any]) -> Any:
        """What is told of by `mention`, made here; of the test's own, itself."""
        if "yours" in told:
            return self.raised.get(told["yours"])
        text = str(told["text"])[:MAX_TEXT]
        args = [seen("cause", one) for one in errors.read_arguments(told["args"], text)]
        made = self.peer.errors.make(told, args, seen("cause", text))
        errors.carry(made, told.get("carries"), lambda _, value: seen("cause", value))
        return made


def _came_as(error: BaseException) -> int | None:
    """The number of an exception that came from the other end, where an answer's may say anything.

    Its class may have a `__getattr__`, or an attribute of this name.
    """
    told = vars(error)
    return told.get("through") if type(told.get("raised")) is Raised else None


def no_end(error: BaseException) -> BaseException:
    """An exception as it leaves a call that may end no loop outside, as an iterator's step may."""
    if not isinstance(error, StopIteration | StopAsyncIteration):
        return error
    made: Any = RuntimeError(f"a call raised {type(error).__name__}")
    for name in ("raised", "through"):
        if hasattr(error, name):
            setattr(made, name, getattr(error, name))
    made.__cause__ = error
    return made


def outcome_of(error: BaseException) -> Any:
    """What a call that ended in this has given: an exception of the answer's, or the test's own."""
    return getattr(error, "raised", None) or Opaque(PASSED_ON, errors.said(error))


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

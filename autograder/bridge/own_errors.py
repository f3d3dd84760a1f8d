"""Exceptions that a test makes of an answer's classes, or is given: they are in its process.

A test has a class of the same name and bases, to catch by. Calling it calls the answer's, and what
comes of that is at once an exception here, which can be raised, and a stand-in: its text, its
`args` and all that its class has of its own are asked for there. So is one that an answer gives.
"""

from typing import Any

from autograder.bridge.stand_ins import (
    DOC,
    HOME,
    OF_OBJECTS,
    Remote,
    StandIn,
    compared,
    forward,
    hashing,
    remote_of,
)
from autograder.common.results import Raised

ASKS = "_asks"  # under which such a class keeps where the answer's is
APART = "_apart_from"  # under which one keeps the class that it stands below
OURS = ("raised", "through")  # by which we know those that an answer has raised


class ErrorClass(type):
    """The class of the classes of exceptions that stand for those of the other end."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        """Make one: in the answer's process, where it is known which class of its that is."""
        remote = class_remote(cls)
        if remote is None:
            return super().__call__(*args, **kwargs)
        return remote.peer.call(remote.number, None, args, kwargs, remote.label)

    def __subclasscheck__(cls, kind: Any) -> bool:
        """Whether a class is made of this, or, if this is Python's own (`Apart`), of that."""
        if type.__subclasscheck__(cls, kind):
            return True
        return APART in vars(cls) and type(kind) is ErrorClass and issubclass(kind, original(cls))

    def __getattr__(cls, name: str) -> Any:
        """What the answer's class holds by a public name."""
        remote = class_remote(cls)
        if remote is None or name.startswith("_"):
            raise AttributeError(f"type object {cls.__name__!r} has no attribute {name!r}")
        return remote.peer.get(remote.number, name, remote.use(name))


def _doc(cls: ErrorClass) -> str | None:
    """What the answer has written to explain its class."""
    remote = class_remote(cls)
    if remote is None:
        return vars(cls).get("__doc__")
    found = remote.peer.get(remote.number, "__doc__", remote.use("__doc__"))
    return found if type(found) is str else None


setattr(ErrorClass, "__doc__", property(_doc))  # noqa: B010  (of its classes, not its own)


def class_remote(value: Any) -> Remote | None:
    """Where the class really is for which a class of exceptions stands, if it stands for one."""
    return vars(value).get(ASKS) if isinstance(value, ErrorClass) else None


def ask_by(kind: type, remote: Remote) -> Remote | None:
    """Have the objects of a class made at the other end from now on; where it really is."""
    if not isinstance(kind, ErrorClass) or issubclass(kind, BaseExceptionGroup):
        return None
    setattr(kind, ASKS, remote)
    return remote


def class_of_errors(name: str, bases: tuple[type, ...], body: dict[str, Any]) -> Any:
    """A class of exceptions that stands for one of the other end."""
    plain = all(type(base) in (type, ErrorClass) for base in bases)
    return (ErrorClass if plain else type)(name, bases, body)


class Apart:
    """Python's exceptions and the instructor's, where the reference has a class of its own.

    An answer that says `TooPoor = RuntimeError` would catch by it what a test raises itself as a
    claim. So a test catches by a class below it, of which is what the answer raises.
    """

    def __init__(self) -> None:
        self.below: dict[type, type] = {}  # such a class for each that an answer has named so
        self.joined: dict[type, type] = {}  # classes of what it raises

    def seen(self, kind: Any, handled: Any) -> Any:
        """The class, or several, by which a test catches.

        Args:
            kind: what the answer has in the place of a class of its own.
            handled: what the test handles just now; it may be the answer's, and be there already.
        """
        if type(kind) is tuple:
            return tuple(self.seen(one, handled) for one in kind)
        if not is_of_both(kind):
            return kind
        if kind not in self.below:
            self.below[kind] = ErrorClass(kind.__name__, (kind,), {APART: kind} | HOME)
            self.joined.clear()
        is_raised = handled is not None and type(vars(handled).get("raised")) is Raised
        return kind if is_raised and isinstance(handled, kind) else self.below[kind]

    def joining(self, kind: type) -> type:
        """The class of what an answer raises of this one: of those by which tests catch, too."""
        found = [one for above, one in self.below.items() if issubclass(kind, above)]
        if not found:
            return kind
        if kind not in self.joined:
            found.sort(key=lambda one: len(one.__mro__), reverse=True)
            own = [] if kind in self.below else [kind]
            self.joined[kind] = class_of_errors(kind.__name__, (*own, *found), dict(HOME))
        return self.joined[kind]


def is_of_both(value: Any) -> bool:
    """Whether this is, or holds, a class of exceptions that stands for none of the other end's."""
    if type(value) is tuple:
        return any(map(is_of_both, value))
    is_error = isinstance(value, type) and issubclass(value, Exception)
    return is_error and not isinstance(value, ErrorClass)


def original(kind: type) -> type:
    """The class that an answer knows, of one by which a test catches."""
    return vars(kind).get(APART, kind)


def error_of(kind: type[BaseException], remote: Remote) -> BaseException | None:
    """An exception that stands for one of the other end's, of this class; None of a group."""
    if issubclass(kind, BaseExceptionGroup):
        return None
    base: Any = next(one for one in kind.__mro__ if one.__module__ == "builtins")
    error = base.__new__(_stand_in_class(kind, remote))
    BaseException.__setattr__(error, "_remote", remote)
    return error


def _stand_in_class(cls: Any, remote: Remote) -> Any:
    """The class of an exception that asks for what it holds and says."""
    peer, told = remote.peer, remote.told
    names = peer.forwarded(told)
    above = peer.errors.apart.joining(cls)
    key = ("error", above, names, told["hash"] is None)
    if key not in peer.classes:
        body: dict[str, Any] = {name: forward(name) for name in (*names, "__str__", "__repr__")}
        body |= {name: _asked(name) for name in _public_parts(cls)} | compared(names)
        body |= OF_OBJECTS | HOME | DOC
        body |= {"__setattr__": _set, "__class__": property(lambda self: cls)}
        body |= dict.fromkeys(OURS)
        body["__hash__"] = hashing(told, believed=peer.policy.believes("__hash__"))
        peer.classes[key] = type(cls)(cls.__name__, (above, StandIn), body)
    return peer.classes[key]


def _public_parts(cls: type) -> set[str]:
    """What Python's own exceptions keep of what they were made with, as `args`."""
    return {
        name
        for kind in cls.__mro__
        if kind.__module__ == "builtins"
        for name, part in vars(kind).items()
        if not name.startswith("_") and hasattr(part, "__set__")
    }


def _asked(name: str) -> property:
    def ask(self: Any) -> Any:
        remote = remote_of(self)
        return None if remote is None else remote.peer.get(remote.number, name, remote.use(name))

    return property(ask)


def _set(self: Any, name: str, value: Any) -> None:
    if name.startswith("__"):  # where it was raised, and from what
        BaseException.__setattr__(self, name, value)
    else:
        StandIn.__setattr__(self, name, value)

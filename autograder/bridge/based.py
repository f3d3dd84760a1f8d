"""Objects of classes that an answer has made of Python's own: `class Stack(list)`, an IntEnum.

Of a number, text or tuple the stand-in is one itself: its value crosses, only what the class adds
calls back. Of a list, set or table it is an object that gives its contents when it is compared or
iterated over. A class that compares in a way of its own is asked of two of its objects, and of a
plain value only where the reference's is: else neither is equal to one by its own word.
"""

import collections
import copy
import operator
import pathlib
import sys
from collections.abc import Callable
from enum import Enum
from typing import Any

from autograder.bridge import library
from autograder.bridge.stand_ins import (
    FORWARDED,
    HOME,
    MAX_CLASSES,
    Held,
    Remote,
    StandIn,
    class_name,
    compared,
    forward,
    may_reckon,
    remote_of,
)
from autograder.bridge.wire import WireError

FIXED = (int, float, complex, str, bytes, tuple, frozenset)
TABLES = (collections.Counter, collections.OrderedDict, collections.defaultdict, dict)
OPEN = (*TABLES, list, set, collections.deque)
PATHS = (pathlib.PosixPath, pathlib.WindowsPath)
BASES = {kind.__name__: kind for kind in (*FIXED, *OPEN, *PATHS)}
CHANGING = ("__setitem__", "__delitem__")
ASKED = ("__getitem__", "__len__", *CHANGING)
# by these a class has attributes that stand nowhere in it
OF_ATTRIBUTES = ("__getattr__", "__getattribute__", "__setattr__", "__delattr__")
IN_PLACE = tuple(f"__i{name}__" for name in ("add", "mul", "or", "and", "sub", "xor"))
COMPARED = ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__")
OTHERS = {"numpy", "torch"} | sys.stdlib_module_names
MAX_OWN = 500  # names that a class adds
CONTAINS = " contains"  # after the label of an object whose contents a test goes through
BARE = {"bare": True, "own": [], "dunders": []}  # what is told of one that is a value there


# --- the end that has the object --------------------------------------------------------------


def base_of(kind: type) -> type | None:
    """Python's own class of which this class of an answer's is one; None for all others."""
    if kind in PATHS:
        return kind
    if kind.__module__.partition(".")[0] in OTHERS:
        return None
    return next((base for base in (*FIXED, *OPEN) if issubclass(kind, base)), None)


def has_more(value: Any, base: type) -> bool:
    """Whether an object has something that a plain value of its base does not have."""
    kind = type(value)
    if kind in PATHS:
        return True
    names = (name for name in dir(kind) if not name.startswith("_"))
    fields = library.fields_of(kind)
    named = () if fields is None else fields[1]
    news = (name for name in (*names, *OF_ATTRIBUTES) if name not in named)
    public = any(_differs(kind, base, name) for name in news)
    kept = any(not str(name).startswith("_") for name in getattr(value, "__dict__", ()))
    return public or kept or bool(overridden(kind, base))


def overridden(kind: type, base: type) -> list[str]:
    """Special methods that a class defines anew."""
    names = {name for name in FORWARDED if _differs(kind, base, name)}
    if issubclass(base, dict) and _differs(kind, base, "__missing__"):
        names.add("__getitem__")
    return sorted(names)


def _differs(kind: type, base: type, name: str) -> bool:
    found = _found(kind, name)
    made = getattr(getattr(found, "__code__", None), "co_filename", "") == collections.__file__
    return found is not _found(base, name) and not made  # what named tuples have is no news


def _found(kind: type, name: str) -> Any:
    """What a class has by this name, as it stands in it or in one below it."""
    return next((vars(one)[name] for one in kind.__mro__ if name in vars(one)), None)


def is_member(value: Any) -> bool:
    """Whether this is one of the members of an enumeration, of which there are only so many."""
    return isinstance(value, Enum)


def described(encoder: Any, value: Any, base: type) -> dict[str, Any]:
    """What the other end has to know besides to make the stand-in."""
    kind = type(value)
    own = [n for n in dir(base) if not n.startswith("_") and _differs(kind, base, n)]
    fixed = base in FIXED + PATHS
    return {
        "plain": base.__name__,
        "own": own[:MAX_OWN],
        "dunders": [] if base in PATHS else overridden(kind, base),
        "body": encoder.node(plain(value, base)) if fixed else None,
        "member": is_member(value),
    }


def plain(value: Any, base: type) -> Any:
    """The value of an object as its base has it, whatever its class overrides."""
    if base in PATHS:
        return (pathlib.PureWindowsPath, pathlib.PurePosixPath)[base is PATHS[0]](str(value))
    if base is tuple:
        fields = library.fields_of(type(value))
        made = library.named_tuple(fields[0], list(fields[1]), len(value)) if fields else tuple
        return tuple.__new__(made, tuple.__iter__(value))
    if issubclass(base, dict):
        table = dict if base is collections.defaultdict else base
        return table(dict(base.items(value)))
    if base is str:
        text = str.__str__(value)
        return text if type(text) is str else "".join(str.__iter__(value))
    if base in (int, float, complex):
        return base.__pos__(value)
    return bytes(memoryview(value)) if base is bytes else base(base.__iter__(value))


def value_of(value: Any) -> Any:
    """The plain value of an object with contents, as it is now."""
    base = base_of(type(value))
    return value if base is None else plain(value, base)


def put_in(value: Any, fresh: Any) -> None:
    """Have an object hold what a plain value of its base does, whatever its class overrides."""
    base: Any = base_of(type(value))
    if base is list:
        list.__setitem__(value, slice(None), fresh)
        return
    base.clear(value)
    if base is collections.deque:
        base.extend(value, fresh)
    elif base is set:
        base.update(value, fresh)
    else:
        for key, part in fresh.items():
            base.__setitem__(value, key, part)


# --- the end that has the stand-in ------------------------------------------------------------


def stand_in(remote: Remote, told: dict[str, Any], value: Any, classes: dict[Any, type]) -> Any:
    """The stand-in of such an object; of what is told nothing is believed but its value.

    Args:
        remote: where the object is.
        told: what `described` gave.
        value: what came as its body.
        classes: those made so far.
    """
    base: Any = BASES.get(told["plain"]) if type(told["plain"]) is str else None
    if base is None or not _fits(base, value):
        raise WireError("a message holds an object whose value is of another kind")
    kind: Any = type(value) if base in FIXED else base
    own = tuple(sorted(set(filter(_is_public, told.get("own") or ()))))[:MAX_OWN]
    new = tuple(sorted(FORWARDED.intersection(filter(_is_text, told.get("dunders") or ()))))
    remote.is_bare = told.get("bare") is True and base in FIXED
    if len(classes) >= MAX_CLASSES or remote.is_bare:
        own = new = ()
    key = ("based", kind, own, new, class_name(told, classes), remote.is_bare)
    if key not in classes:
        classes[key] = _fixed(*key[1:]) if base in FIXED else _open(*key[1:-1])
    remote.base = base
    if base not in FIXED:
        made, remote.body = object.__new__(classes[key]), value
    else:
        made = base.__new__(classes[key], value)
    object.__setattr__(made, "_remote", remote)
    return made


def _fits(base: type, value: Any) -> bool:
    kind = type(value)
    if base in PATHS:
        return kind in (pathlib.PurePosixPath, pathlib.PureWindowsPath)
    if base is tuple and kind.__base__ is tuple:
        return library.fields_of(kind) is not None
    return kind is base if base in FIXED else value is None


def _is_text(name: Any) -> bool:
    return type(name) is str


def _is_public(name: Any) -> bool:
    return type(name) is str and name.isidentifier() and not name.startswith("_")


def is_value(value: Any) -> bool:
    """Whether this is a value and no more, which goes back to the answer as an object of its."""
    remote = remote_of(value)
    return remote is not None and remote.is_bare and remote.base in FIXED


def _copied(value: Any, memo: dict[int, Any]) -> Any:
    return copy.deepcopy(as_plain(value), memo)


def _fixed(
    kind: type, own: tuple[str, ...], new: tuple[str, ...], name: str, is_bare: bool
) -> type:
    """A class of values that do not change: only what is new in it calls back.

    C code goes by the length of a value, and reads its memory; so that is its own.
    """
    body: dict[str, Any] = {one: _attribute(one) for one in own}
    body |= {one: _with_others for one in ("_replace", "__replace__") if hasattr(kind, one)}
    for one in {*new} - {"__len__", *COMPARED}:
        body[one] = _believed(one, getattr(kind, one, None))
    if is_bare:
        body |= {"__copy__": as_plain, "__deepcopy__": _copied}
    if own_way := {one: _compared(one, getattr(kind, one)) for one in COMPARED if one in new}:
        body |= own_way | {"__hash__": kind.__hash__}  # which else goes with the base's equality
    return type(name, (kind, StandIn), body | HOME)


def _attribute(name: str) -> property:
    def ask(self: Any) -> Any:
        remote = self._remote
        return remote.peer.get(remote.number, name, remote.use(name))

    return property(ask)


def _with_others(self: Any, **others: Any) -> Any:
    """A named tuple with other parts: one of the answer's class, which has what that adds."""
    remote = self._remote
    return remote.peer.call(remote.number, "_replace", (), others, remote.use("_replace"))


def _believed(name: str, instead: Any) -> Callable:
    """A special method that asks the other end if it may be believed; else it is the base's."""
    ask = forward(name)

    def method(self: Any, *args: Any) -> Any:
        remote = remote_of(self)
        is_believed = remote is not None and remote.peer.policy.believes(name)
        if remote is not None and is_believed and may_reckon(remote, name, args):
            return ask(self, *args)
        if instead is None:
            return NotImplemented if args else _has_no(self, name)
        return instead(self, *args)

    return method


def _compared(name: str, instead: Callable) -> Callable:
    """A comparison of a class's own, if it may be believed; else it is the base's."""
    ask = compared((name,))[name]

    def method(self: Any, other: Any) -> Any:
        remote = remote_of(self)
        is_believed = remote is not None and remote.peer.policy.believes(name)
        found = ask(self, other) if is_believed else NotImplemented
        return instead(self, other) if found is NotImplemented else found

    return method


def _has_no(value: Any, name: str) -> Any:
    raise TypeError(f"{type(value).__name__!r} object has no {name}")


def _open(base: type, own: tuple[str, ...], new: tuple[str, ...], name: str) -> type:
    """A class of objects with contents: what is not new in it is done with these, here."""
    known = [one for one in (*FORWARDED, *COMPARED) if _is_its_own(base, one)]
    body: dict[str, Any] = {one: _with_contents(one, base) for one in known}
    body |= {one: _believed(one, body.get(one)) for one in {*new} - {*COMPARED}}
    body |= {one: _compared(one, body[one]) for one in COMPARED if one in {*new} & {*body}}
    body |= {one: _changed(one) for one in IN_PLACE if hasattr(base, one)}
    if base in PATHS:
        body |= {"__truediv__": _joined, "__fspath__": lambda self: str(_contents(self))}
        body |= {"__hash__": lambda self: hash(_contents(self)), "__repr__": _shown}
        body.pop("__rtruediv__", None)
    else:
        body["__hash__"] = object.__hash__
    body |= {"__class__": property(lambda self: base), "__slots__": ()}
    return type(name, (Held,), body | HOME)


def _is_its_own(base: type, name: str) -> bool:
    """Whether a class has a special method that not every object has: a list's text is its repr."""
    found = getattr(base, name, None)
    return callable(found) and found is not getattr(object, name, None)


def _with_contents(name: str, base: type) -> Callable:
    """What the base does, with the contents as they are now."""
    ask = forward(name)
    always = name in CHANGING or (base is collections.defaultdict and name == "__getitem__")

    def method(self: Any, *args: Any) -> Any:
        if always or (name in ASKED and not _is_fresh(self._remote)):
            return ask(self, *args)
        if name == "__iter__":
            remote = self._remote
            remote.peer.beside.note(remote.label + CONTAINS, _contents(self))
        others = [_contents(one) if is_open(one) else one for one in args]
        if name in _SWAPPED:
            return _SWAPPED[name](others[0], _contents(self))
        done = vars(operator).get(name) or _METHODS.get(name)
        return done(_contents(self), *others) if done else getattr(_contents(self), name)(*others)

    return method


_BINARY = ("add", "sub", "mul", "or", "and", "xor")
_SWAPPED = {f"__r{name}__": getattr(operator, f"__{name}__") for name in _BINARY}
_METHODS = {"__repr__": repr, "__str__": str, "__iter__": iter, "__format__": format}


def is_open(value: Any) -> bool:
    """Whether this stands for an object that has contents, or for a path."""
    remote = remote_of(value)
    return remote is not None and remote.base in OPEN + PATHS


def as_plain(value: Any) -> Any:
    """A value without what the answer's class adds to it; anything else as it is."""
    remote = remote_of(value)
    if remote is None or remote.base is None:
        return value
    if is_open(value):
        return _contents(value)
    return plain(value, remote.base)


def _is_fresh(remote: Remote) -> bool:
    """Whether the contents are known, and nothing has crossed since."""
    return remote.base in PATHS or remote.fresh == remote.peer.crossed


def _contents(value: Any) -> Any:
    """What an object holds, as a plain value."""
    remote = value._remote
    if not _is_fresh(remote):
        body = remote.peer.contents(remote.number)
        if type(body) is not (dict if remote.base is collections.defaultdict else remote.base):
            raise WireError("a message holds an object whose value is of another kind")
        remote.body, remote.fresh = body, remote.peer.crossed
    return remote.body


def _changed(name: str) -> Callable:
    """What changes an object in place, or gives another: a class may do it either way."""

    def method(self: Any, other: Any) -> Any:
        remote = self._remote
        return remote.peer.call(remote.number, name, (other,), {}, remote.use(name))

    return method


def _joined(self: Any, other: Any) -> Any:
    """A path in a folder of the answer's; nothing but a path comes of it."""
    remote = self._remote
    made = remote.peer.call(remote.number, "joinpath", (other,), {}, remote.use("joinpath"))
    found = remote_of(made)
    if found is None or found.base not in PATHS or found.body != remote.body / str(other):
        raise TypeError("a path that was joined is none")
    return made


def _shown(self: Any) -> str:
    return f"{self._remote.base.__name__}({str(self._remote.body)!r})"

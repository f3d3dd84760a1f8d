"""Stand-ins made from what the other end tells of its objects; their classes are kept."""

import abc
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from autograder.bridge import based, library
from autograder.bridge.own_errors import ask_by, class_remote, error_of
from autograder.bridge.public import class_passed_for, named
from autograder.bridge.stand_ins import (
    HOME,
    MAX_CLASSES,
    MAX_LINEAGE,
    OF_CLASSES,
    Remote,
    class_name,
    hashing,
    make_class,
    make_class_class,
    remote_of,
    small,
)

if TYPE_CHECKING:
    from autograder.bridge.incoming import Incoming
    from autograder.bridge.peer import Peer

# by this a scheduler of torch's knows that it need not put another `step` in an optimiser's place
AS_SCHEDULED = "_wrapped_by_lr_sched"


def stand_in(peer: "Peer", incoming: "Incoming", told: dict[str, Any]) -> Any:
    """The stand-in for an object of the other end; the same one while it is in use."""
    if told.get("plain") is not None:
        return _based_stand_in(peer, incoming, told)
    number = small(told["n"])
    known = peer.stand_ins.get(number)
    if known is not None:
        _came(known, incoming.origin)
    if told.get("k") == "module" and peer.tensors:
        made = peer.tensors.modules.stand_in(incoming, told, known)
    elif known is not None:
        return known
    elif told.get("k") == "class":
        made = _class_stand_in(peer, told)
    else:
        made = _object_stand_in(peer, told)
        if peer.is_free:
            peer.shared.hold(number, made)
    _came(made, incoming.origin)
    peer.stand_ins[number] = made
    peer.held[number] = made
    return made


def _based_stand_in(peer: "Peer", incoming: "Incoming", told: dict[str, Any]) -> Any:
    """The same for an object whose class is made of one of Python's own."""
    number, value = small(told["n"]), incoming.value(told.get("body"))
    if told.get("bare") is True:
        number = -number  # it may be known as more than a value, too
    known = peer.members.get(number)
    if known is None:
        known = peer.stand_ins.get(number)
    remote = peer.remotes.get(number) or Remote(peer, told)
    if known is None:
        known = remote.made
    if known is None:
        known = based.stand_in(remote, told, value, peer.classes)
        peer.remotes[number] = remote
        if based.is_open(known):
            peer.stand_ins[number] = known
        elif told.get("member") is True and len(peer.members) < MAX_CLASSES:
            peer.members[number] = known
        else:
            remote.made = known
    _came(known, incoming.origin)
    peer.held[number] = known
    return known


def _came(made: Any, origin: str) -> None:
    remote = remote_of(made) or class_remote(made)
    if remote is not None:
        remote.came(origin)


def _class_stand_in(peer: "Peer", told: dict[str, Any]) -> Any:
    remote = Remote(peer, told)
    if told.get("error"):
        kind = peer.errors.of(told["error"])
        if not peer.is_free:
            ask_by(kind, remote)
        return kind
    twins = (_named_tuple(told.get("named")), named(told.get("twin")))
    twins += (peer.records.class_of(told.get("twin")),)
    remote.twins = tuple(kind for kind in twins if isinstance(kind, type))
    below = [*_homes(peer, told), *map(named, list(told.get("bases") or ())[:MAX_LINEAGE])]
    remote.bases = tuple(kind for kind in below if isinstance(kind, type))
    names = tuple(name for name in peer.forwarded(told) if name in OF_CLASSES)
    kind = peer.classes.setdefault(("class", names), make_class_class(names))
    cls = object.__new__(kind)
    object.__setattr__(cls, "_remote", remote)
    return cls


def _object_stand_in(peer: "Peer", told: dict[str, Any]) -> Any:
    remote = Remote(peer, told)
    if told.get("error") and not peer.is_free:
        error = error_of(peer.errors.of(told["error"]), remote)
        if error is not None:
            return error
    if peer.is_free and remote.kind == "function" and remote.name == "step":
        remote.own[AS_SCHEDULED] = True
    made = object.__new__(class_of(peer, told))
    object.__setattr__(made, "_remote", remote)
    return made


def class_of(peer: "Peer", told: dict[str, Any]) -> type:
    """The class of an object's stand-in, with the special methods that are believed now."""
    names = peer.forwarded(told)
    name = class_name(told, peer.classes)
    hashed = hashing(told, believed=peer.policy.believes("__hash__"))
    homes = _homes(peer, told)
    what = "function" if told.get("type") == "function" else "callable"
    what = what if told.get("k") == "function" else "object"
    key = (names, told.get("public"), name, hashed, what, *homes[:1])
    if key not in peer.classes:
        seen = class_passed_for(told.get("public"), peer.is_free)
        if homes:
            seen = _made_of(homes[0], name)
        if peer.is_free and seen is None:
            seen = peer.records.class_of(told.get("public"))
        shown = name if what != "object" else _place(told.get("public"), name)
        peer.classes[key] = make_class(names, seen, name, hashed, what, shown)
    return peer.classes[key]


def _place(public: Any, name: str) -> str:
    """The name of a class, with where it is: one that no library has is the notebook's."""
    kind = named(public) if public else None
    if not isinstance(kind, type):
        return f"__main__.{name}"
    return f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")


def _homes(peer: "Peer", told: dict[str, Any]) -> list[type]:
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


def set_class(made: Any, kind: type) -> None:
    """Make a stand-in one of another class, whatever class it passes for."""
    if type(made) is not kind:
        vars(object)["__class__"].__set__(made, kind)


def _named_tuple(told: Any) -> type | None:
    """The class of named tuples that a class of the other end stands for here."""
    if not isinstance(told, list) or len(told) != 2 or not isinstance(told[1], list):
        return None
    name, names = told
    return library.named_tuple(name, names, len(names))

"""Where a test is due values: what an answer gives instead is refused, or taken step by step."""

import types
from typing import TYPE_CHECKING, Any

from autograder.bridge import based, library
from autograder.bridge.making import set_class
from autograder.bridge.reference import KNOWN, OBJECTS, VALUE, Due, Each, Keyed, Places, parts_of
from autograder.bridge.shapes import MADE
from autograder.bridge.stand_ins import Remote, StandIn, Steps, class_name, make_steps, remote_of

if TYPE_CHECKING:
    from autograder.bridge.peer import Peer

NO_ITERATORS = {"__len__", "__getitem__", "__eq__", "__bool__", "__contains__"}
DATA = ("builtins", "collections", "numpy", "torch", "fractions", "decimal", "datetime")


def look(peer: "Peer", value: Any, due: Due, is_call: bool) -> None:
    """Refuse what is not due in a value, or in places of it; an iterator is only iterated."""
    if isinstance(due, Places):
        for place, one in due.parts.items():
            _look_at(peer, library.part_at(value, place), one)
    elif isinstance(due, Keyed):
        tables = library.tables_of(value)
        if not tables:
            look_for_objects(peer, value, is_call, False)
        for part in (part for table in tables for part in table.values()):
            _look_at(peer, part, due.due)
    elif isinstance(due, Each):
        for part in value if type(value) in (list, tuple) else ():
            _look_at(peer, part, due.due)
    elif due != OBJECTS:
        look_for_objects(peer, value, is_call, due == KNOWN)
        take_steps(value, due)


def _look_at(peer: "Peer", part: Any, due: Due) -> None:
    """The same of a part. Members of enumerations are there, and values of an answer's classes."""
    if due != VALUE:
        look(peer, part, due, True)
    else:
        look_for_objects(peer, part, True, False, may_be_more=True)
        take_steps(part)


def look_for_objects(
    peer: "Peer", value: Any, is_call: bool, may_be_known: bool, *, may_be_more: bool = False
) -> None:
    """Refuse an object or class where the reference gives a value.

    But for one that is also a value, if it `may_be_more` than that.
    """
    due = "an object of the course's own class" if may_be_known else "a value"
    for part in parts_of(value):
        if type(part) in library.LEAVES:
            continue
        remote = remote_of(part)
        if based.is_value(part) or (may_be_more and remote is not None and remote.base):
            continue
        if MADE and not may_be_known and peer.records.is_made_there(part):
            raise TypeError(f"your code gave a {type(part).__name__} where {due} was expected")
        if issubclass(type(part), type):  # as a part of another value it passes for a method
            raise TypeError(f"your code gave a class where {due} was expected")
        if remote is None or (part is value and not is_call and remote.kind in ("class", "module")):
            continue
        if not is_iterator(part):
            raise TypeError(f"your code gave {_named(remote)} where {due} was expected")


def _named(remote: Remote) -> str:
    return f"{'an' if remote.called[:1].lower() in (*'aeiou',) else 'a'} {remote.called}"


def is_iterator(value: Any) -> bool:
    """Whether this stands for an object of the other end's that is an iterator and nothing else."""
    if issubclass(type(value), Steps):
        return True
    remote = remote_of(value)
    if remote is None or remote.base is not None or not issubclass(type(value), StandIn):
        return False
    names = set(vars(type(value)))
    return "__next__" in names and not names & NO_ITERATORS


def take_steps(value: Any, due: str = VALUE) -> None:
    """What iterators in a value give is what they are from now on, and has to be this."""
    for part in parts_of(value):
        if is_iterator(part) and not issubclass(type(part), Steps):
            remote: Any = remote_of(part)
            remote.is_bare, remote.due = True, due
            key = ("steps", class_name(remote.told, remote.peer.classes))
            set_class(part, remote.peer.classes.setdefault(key, make_steps(key[1])))


def is_data(value: Any) -> bool:
    """Whether a value of the reference's is data, and holds nothing else."""
    return all(
        part is not None
        and type(part) is not object  # which is nothing but itself
        and type(part).__module__ in DATA
        and not callable(part)
        and not hasattr(type(part), "__next__")
        and not isinstance(part, types.ModuleType)
        for part in parts_of(value)
    )

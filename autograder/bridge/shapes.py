"""The instructor's classes as their text is read: what their objects are made of and hold."""

import collections
import datetime
import decimal
import dis
import enum
import fractions
import inspect
import itertools
import types
import uuid
import weakref
from abc import ABC, ABCMeta
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic

from autograder.bridge import arrays, library
from autograder.bridge.wire import HOLDERS

HOME = "__main__"  # what cells take for their module's name
DEEPEST = 50  # that values are compared
BESIDE = (ABC, Generic, object)  # classes of Python's own that one of these may be made of
SHOWING = ("__repr__", "__str__", "__iter__")  # what these show is hidden from nobody
GETTING = {"RESUME", "LOAD_FAST", "LOAD_FAST_BORROW", "LOAD_ATTR", "RETURN_VALUE"}  # so do these
INITIAL = ("__init__", "__post_init__", "__new__", "__setattr__", "__delattr__", "__setstate__")
SETTING = ("STORE_ATTR", "DELETE_ATTR")
SETTING_PARTS = ("STORE_SUBSCR", "DELETE_SUBSCR", "STORE_SLICE")
OPENING = frozenset(("__dict__", "setattr", "vars"))  # by these names are set that nobody foresees
CHANGING = OPENING | {"delattr", "__setattr__", "__delattr__"}
IN_PLACE = frozenset(
    (
        *("append", "appendleft", "add", "clear", "discard", "extend", "extendleft", "insert"),
        *("pop", "popitem", "popleft", "remove", "reverse", "setdefault", "sort", "update"),
        *("heappush", "heappop", "heapify", "heapreplace", "insort", "shuffle", "fill", "put"),
        *CHANGING,
    )
)
LEAVES = frozenset(  # values that hold no others
    (
        *(type(None), bool, int, float, complex, str, bytes, range, fractions.Fraction),
        *(decimal.Decimal, datetime.date, datetime.timedelta, uuid.UUID),
    )
)
FACTORIES = (int, float, str, bool, list, dict, set, tuple)
TIMES = (datetime.time, datetime.datetime)
MADE: dict[int, "weakref.ref[type]"] = {}  # classes whose objects are no plain values, by id


def is_one(value: Any) -> bool:
    """Whether this is an object, and no value, of a class of the instructor's."""
    found = MADE.get(id(type(value)))
    return found is not None and found() is type(value)


def classes_in(
    space: Mapping[str, Any], names: Iterable[str], helpers: frozenset[str]
) -> dict[str, type]:
    """The classes that cells have bound to these names, by the path that leads to each.

    Args:
        space: the names of the cells.
        names: those that a cell of the instructor's has just bound.
        helpers: modules of the instructor's beside the notebook, which answers have as well.
    """
    found: dict[str, type] = {}
    for name in names:
        made: Any = dict.get(space, name)  # type: ignore[arg-type]
        if isinstance(made, types.ModuleType) and made.__name__ in helpers:
            inside: list[tuple[str, Any]] = [
                (f"{name}.{one}", value) for one, value in vars(made).items()
            ]
        else:
            inside = [(name, made)]
        for path, kind in inside:
            if _is_shared(kind, helpers | {HOME}):
                found[path] = kind
    for kind in found.values():
        if not issubclass(kind, tuple):
            MADE[id(kind)] = weakref.ref(kind, partial(_unmake, id(kind)))
    return found


def _unmake(number: int, _: Any) -> None:
    MADE.pop(number, None)


def _is_shared(kind: Any, homes: frozenset[str]) -> bool:
    """Whether objects of a class can be made anew from what they hold."""
    if not isinstance(kind, type) or kind.__module__ not in homes:
        return False
    if hasattr(kind, "__del__"):  # an answer would choose what it works on
        return False
    if isinstance(kind, enum.EnumMeta):
        return not issubclass(kind, enum.Flag)
    if issubclass(kind, tuple):
        return _is_named(kind)
    plain = (one for one in kind.__mro__ if one not in BESIDE)
    return type(kind) in (type, ABCMeta) and all(one.__module__ in homes for one in plain)


def _is_named(kind: type) -> bool:
    """Whether this is a class of named tuples that are compared and read as tuples are."""
    kept = ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__hash__", "__len__")
    kept += ("__iter__", "__getitem__", "__contains__")
    same = all(getattr(kind, name) is getattr(tuple, name) for name in kept)
    return same and library.fields_of(kind) is not None


@dataclass
class Shape:
    """What objects of a class are made of."""

    slots: dict[str, Any]
    has_dict: bool
    names: set[str]  # attributes that the text of the class sets
    is_open: bool  # whether it sets attributes whose names nobody can foresee
    methods: frozenset[str]  # what an attribute may not stand in front of
    shown: set[str]  # attributes that its functions give away, or read of another object
    acts: bool  # whether methods change an object that is made


def shape_of(kind: type) -> Shape:
    """The same, found by reading the class and the code of its functions."""
    shape = Shape({}, bool(kind.__dictoffset__), set(), False, frozenset(), set(), False)
    methods, in_init = set[str](), set[str]()
    for one in reversed(kind.__mro__[:-1]):
        shape.names |= vars(one).get("__annotations__", {}).keys()
        for name, made in vars(one).items():
            if isinstance(made, types.MemberDescriptorType):
                shape.slots[name] = made
                shape.names.add(name)
                continue
            for code in _codes(made):
                shape.shown |= _read_of_others(code)
                sets = _names_set(code)
                shape.names |= sets
                shape.is_open |= not OPENING.isdisjoint(code.co_names)
                if name in INITIAL:
                    in_init |= sets
                elif one.__module__ not in ("abc", "typing"):
                    shape.acts |= bool(sets) or _changes_parts(code)
                if _shows(name, made, code):
                    shape.shown |= set(code.co_names)
            if callable(made) or hasattr(type(made), "__get__"):
                methods.add(name)
    shape.methods = frozenset(methods - in_init)
    return shape


def _names_set(code: types.CodeType) -> set[str]:
    return {i.argval for i in dis.get_instructions(code) if i.opname in SETTING}


def _changes_parts(code: types.CodeType) -> bool:
    """Whether a function may change a list, or the like, in place."""
    names = {i.opname for i in dis.get_instructions(code)}
    return not IN_PLACE.isdisjoint(code.co_names) or not names.isdisjoint(SETTING_PARTS)


def _shows(name: str, made: Any, code: types.CodeType) -> bool:
    """Whether a function of a class gives away what it reads of an object."""
    if isinstance(made, property) or hasattr(made, "attrname") or name in SHOWING:
        return True
    return code.co_argcount == 1 and {i.opname for i in dis.get_instructions(code)} <= GETTING


def _read_of_others(code: types.CodeType) -> set[str]:
    """Attributes that a function reads of anything but the object whose method it is."""
    steps = list(dis.get_instructions(code))
    return {
        str(step.argval)
        for before, step in itertools.pairwise(steps)
        if step.opname in ("LOAD_ATTR", "LOAD_METHOD") and not _is_self(before, code)
    }


def _is_self(step: dis.Instruction, code: types.CodeType) -> bool:
    """Whether a step of a function gives its first parameter, or that of a function around it."""
    name = step.argval[-1] if isinstance(step.argval, tuple) else step.argval
    first = code.co_varnames[: min(code.co_argcount, 1)]
    return "DEREF" in step.opname or ("FAST" in step.opname and name in first)


def _codes(made: Any) -> Iterator[types.CodeType]:
    """The code of what a class holds, and of the functions inside it."""
    parts = [getattr(made, name, None) for name in ("fget", "fset", "fdel", "func", "__func__")]
    found = [inspect.unwrap(one) for one in (made, *parts) if callable(one)]
    left = [getattr(one, "__code__", None) for one in found]
    while left:
        code = left.pop()
        if isinstance(code, types.CodeType):
            yield code
            left += code.co_consts


def held_in(value: Any) -> list[Any] | None:
    """What a value of Python's own, or an array, holds; None for anything else."""
    kind = type(value)
    if kind in LEAVES or arrays.is_array(value):
        return []
    if kind in TIMES and type(value.tzinfo) in (type(None), datetime.timezone):
        return []
    if kind is collections.defaultdict and value.default_factory not in (None, *FACTORIES):
        return None
    if kind in HOLDERS or kind in (tuple, frozenset) or library.fields_of(kind) is not None:
        return [] if kind is bytearray else library.parts_of(value)
    return [] if kind.__module__ == "numpy" and arrays.is_number_type(kind) else None


def attributes(value: Any, shape: Shape) -> dict[str, Any]:
    """What an object holds, by the names of its attributes."""
    found = {}
    for name, slot in shape.slots.items():
        with suppress(AttributeError):  # nothing stands there
            found[name] = slot.__get__(value)
    return found | dict_of(value) if shape.has_dict else found


def dict_of(value: Any) -> dict[str, Any]:
    """The dictionary in which an object holds what is in no slot."""
    return object.__getattribute__(value, "__dict__")


def alike(one: Any, two: Any, depth: int = 0) -> bool:
    """Whether two values are the same, or plain and hold the same; asks no object for it."""
    kind = type(one)
    if one is two or kind is not type(two) or depth > DEEPEST:
        return one is two
    if kind in LEAVES or kind in TIMES or kind is bytearray:
        return one == two or (one != one and two != two)
    if arrays.is_array(one):
        return arrays.bits(one) == arrays.bits(two)
    first, second = held_in(one), held_in(two)
    if first is None or second is None or len(first) != len(second):
        return False
    if kind in (set, frozenset):
        return all(type(part) in LEAVES for part in (*first, *second)) and one == two
    if not first and kind.__module__ == "numpy":
        return one.tobytes() == two.tobytes()
    return all(alike(*pair, depth + 1) for pair in zip(first, second, strict=True))

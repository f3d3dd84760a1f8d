"""What an answer may have changed by calling back: all that leads from what it used to a value.

What a test hands over as an object stays here, and its functions run here. So a call by an answer
may change whatever they can reach: their own parts, and the names that their text speaks of.
"""

import dis
import gc
import types
from collections.abc import Iterable, Iterator, Mapping, Set
from typing import Any

from autograder.engine.stand_ins import remote_of

HOME = "__main__"  # what tests and the instructor's cells take for their module's name
MOST = 200_000  # parts; of more than that nobody knows
FIXED = (str, bytes, int, float, complex, bool, type(None), range, slice)
FIXED += (types.CodeType, types.FrameType)
BY_NAME = (
    "globals",
    "vars",
    "locals",
    "eval",
    "exec",
    "setattr",
    "delattr",
    "__dict__",
)  # ways to names nobody sees


def may_change(used: Iterable[Any], names: Mapping[str, Any], helpers: Set[str]) -> bool:
    """Whether the use of some objects may have changed what these names stand for.

    Args:
        used: the objects.
        names: what was there before.
        helpers: modules of the instructor's own, whose values these functions share.
    """
    used = list(used)
    if not used:
        return False
    try:
        reached = _reached(used, helpers)
        values = (value for name, value in names.items() if not name.startswith("__"))
        kept = _reached(values, helpers)
    except _Unknown:
        return True
    texts = [one.__code__ for one in reached.values() if type(one) is types.FunctionType]
    if any(name in BY_NAME for text in texts for name in _names(text)):
        return True
    stored = {name for text in texts for name in _stored(text)}
    return any(_is_state(one, stored) for number, one in reached.items() if number in kept)


class _Unknown(Exception):
    """Nobody knows what can be reached."""


def _reached(starts: Iterable[Any], helpers: Set[str]) -> dict[int, Any]:
    """These objects and all that leads on from them, by their ids."""
    found: dict[int, Any] = {}
    left = list(starts)
    while left:
        one = left.pop()
        if id(one) in found or _is_end(one, helpers):
            continue
        found[id(one)] = one
        if len(found) > MOST:
            raise _Unknown
        left += _parts(one, helpers)
    return found


def _is_bound(one: Any) -> bool:
    return not isinstance(one.__self__, types.ModuleType | type(None))


def _is_end(one: Any, helpers: Set[str]) -> bool:
    """Whether nothing leads on from here to a value of the instructor's."""
    kind = type(one)
    if kind is types.BuiltinFunctionType:
        return not _is_bound(one)
    if kind in FIXED or kind is types.ModuleType:
        return kind is not types.ModuleType or one.__name__ not in helpers
    if isinstance(one, type):
        return one.__module__ not in helpers | {HOME}
    return remote_of(one) is not None


def _parts(one: Any, helpers: Set[str]) -> Iterable[Any]:
    if type(one) is types.ModuleType:
        return vars(one).values()
    if type(one) is not types.FunctionType:
        return gc.get_referents(one)
    held = [one.__closure__, one.__defaults__, one.__kwdefaults__, *one.__dict__.values()]
    if one.__module__ not in helpers | {HOME}:
        return held
    names = set(_names(one.__code__))
    return [*held, *(dict.get(one.__globals__, name) for name in names)]


def _names(code: types.CodeType) -> Iterator[str]:
    """Names that a function's text speaks of, and those of the functions in it."""
    yield from code.co_names
    for part in code.co_consts:
        if isinstance(part, types.CodeType):
            yield from _names(part)


def _stored(code: types.CodeType) -> Iterator[str]:
    """Names of attributes that a function's text sets or deletes, in functions in it as well."""
    for step in dis.get_instructions(code):
        if step.opname in ("STORE_ATTR", "DELETE_ATTR"):
            yield str(step.argval)
    for part in code.co_consts:
        if isinstance(part, types.CodeType):
            yield from _stored(part)


def _is_state(one: Any, stored: Set[str]) -> bool:
    """Whether this can become another value and stay the same object."""
    if type(one) is types.FunctionType:
        return bool(one.__dict__)
    if isinstance(one, type):  # what its attributes hold is looked at by itself
        return bool(stored & vars(one).keys())
    return type(one) not in (tuple, frozenset, types.MethodType, types.BuiltinFunctionType)

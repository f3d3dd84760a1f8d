"""What `typing` makes of classes on the line, as `list[int]`, `Optional[str]` or `int | None`.

A name and what it is made of cross: classes, and again such. No text: whoever asks for type hints
would have it evaluated.
"""

import collections
import collections.abc
import functools
import operator
import types
import typing
from typing import Any

from autograder.bridge.wire import Decoder, Encoder, WireError

OF_PYTHON: dict[str, Any] = {
    kind.__name__: kind for kind in (list, dict, tuple, set, frozenset, type)
}
OF_PYTHON |= {kind.__name__: kind for kind in (collections.deque, collections.Counter)}
OF_PYTHON |= {kind.__name__: kind for kind in (collections.defaultdict, collections.OrderedDict)}
OF_PYTHON |= {f"abc.{name}": getattr(collections.abc, name) for name in collections.abc.__all__}
OF_TYPING = {name: getattr(typing, name) for name in typing.__all__ if name[0].isupper()}
KINDS: tuple[Any, ...] = (types.GenericAlias, types.UnionType)
KINDS += (type(typing.List[int]), type(typing.Optional[int]))  # noqa: UP006, UP045
KINDS += (type(typing.Callable[[int], int]), type(collections.abc.Callable[[int], int]))
MAX_ARGS = 50


def parts(encoder: Encoder, value: Any) -> list[Any] | None:
    """What tells the other end of it; None if not all of it can be told."""
    if not is_told(value):
        return None
    args = (None if one is types.NoneType else one for one in typing.get_args(value))
    return [_name_of(value), *map(encoder.node, args)]


def is_told(value: Any) -> bool:
    """Whether this is a class or made of such, with nothing else in it; or a list of such."""
    if type(value) is list:  # what a `Callable` takes
        return len(value) <= MAX_ARGS and all(map(is_told, value))
    if not isinstance(value, KINDS):
        return value is None or value is ... or isinstance(value, type)
    args = typing.get_args(value)
    return bool(_name_of(value)) and 0 < len(args) <= MAX_ARGS and all(map(is_told, args))


def _name_of(value: Any) -> str:
    of: Any = getattr(value, "__origin__", None)
    if isinstance(value, types.GenericAlias):
        return next((name for name, kind in OF_PYTHON.items() if kind is of), "")
    if isinstance(value, types.UnionType):
        return "|"
    return "Union" if of is typing.Union else getattr(value, "_name", None) or ""


def _is_class(value: Any) -> bool:
    """Whether this is a class, or made of such, here; or stands for an answer's class."""
    if type(value) is list:
        return all(map(_is_class, value))
    try:
        remote: Any = object.__getattribute__(value, "_remote")
    except AttributeError:
        return is_told(value)
    return remote.kind == "class"


def reader(kind: type) -> Any:
    """What reads those of one kind; nothing is evaluated."""

    def read(decoder: Decoder, told: list[Any]) -> Any:
        name, *nodes = told
        args: Any = tuple(decoder.values(nodes))
        if not args or not all(map(_is_class, args)) or type(name) is not str:
            raise WireError("an annotation is made of something else than classes")
        if kind is types.UnionType:
            return functools.reduce(operator.or_, args)
        if name in OF_PYTHON:
            return OF_PYTHON[name][args if len(args) > 1 else args[0]]
        return OF_TYPING[name][args if len(args) > 1 else args[0]]

    return read

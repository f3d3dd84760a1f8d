"""What a function takes, as a test may ask it of an answer's without a call.

Of annotations classes cross, and what is made of such (`hints.py`), and no text: whoever asks for
them would have it evaluated.
"""

import builtins
import inspect
import types
from collections.abc import Callable
from typing import Any

from autograder.bridge import hints
from autograder.bridge.wire import Decoder, Encoder, WireError

MAX_PARAMETERS = 100
NONE = inspect.Parameter.empty
ANY = inspect.Signature(
    (
        inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL),
        inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD),
    )
)


def parts_of(encoder: Encoder, value: inspect.Signature) -> list[Any]:
    """What tells the other end of it."""
    told: list[Any] = [_annotation(encoder, value.return_annotation)]
    for one in value.parameters.values():
        default = [] if one.default is NONE else [encoder.node(one.default)]
        told.append([one.name, int(one.kind), default, _annotation(encoder, one.annotation)])
    return told


def _annotation(encoder: Encoder, value: Any) -> list[Any]:
    """A class, or one of Python's own whose name stands there as a text: none is evaluated."""
    value = vars(builtins).get(value, NONE) if type(value) is str else value
    return [encoder.node(value)] if value is not NONE and hints.is_told(value) else []


def read(decoder: Decoder, parts: list[Any]) -> inspect.Signature:
    """The signature that `parts_of` tells; raises ValueError if there can be no such one."""
    gives, *told = parts
    if len(told) > MAX_PARAMETERS:
        raise WireError("a function takes too much")
    made: list[inspect.Parameter] = []
    for name, kind, default, annotation in told:
        if type(name) is not str or type(kind) is not int:
            raise WireError("a function takes something that has no name")
        given: Any = decoder.value(default[0]) if default else NONE
        hint = _read_annotation(decoder, annotation)
        made.append(inspect.Parameter(name, _KINDS[kind], default=given, annotation=hint))
    return inspect.Signature(made, return_annotation=_read_annotation(decoder, gives))


_KINDS = {int(kind): kind for kind in type(inspect.Parameter.VAR_KEYWORD)}  # type: ignore


def checked(found: Any) -> inspect.Signature:
    """What an answer's end gives for one, if it is one; the texts in anything else would be run."""
    if type(found) is not inspect.Signature:
        raise TypeError("your code gave something else where a signature was expected")
    return found


def _read_annotation(decoder: Decoder, told: list[Any]) -> Any:
    value: Any = decoder.value(told[0]) if told else NONE
    return NONE if isinstance(value, str) else value


# --- what Python calls by other names ---------------------------------------------------------


def _annotations(found: inspect.Signature) -> dict[str, Any]:
    hints = {name: one.annotation for name, one in found.parameters.items()}
    return {k: v for k, v in (hints | {"return": found.return_annotation}).items() if v is not NONE}


def _defaults(found: inspect.Signature) -> tuple[Any, ...] | None:
    named = [one for one in found.parameters.values() if one.kind is not one.KEYWORD_ONLY]
    return tuple(one.default for one in named if one.default is not NONE) or None


def _keyword_defaults(found: inspect.Signature) -> dict[str, Any] | None:
    named = [one for one in found.parameters.values() if one.kind is one.KEYWORD_ONLY]
    return {one.name: one.default for one in named if one.default is not NONE} or None


def _code(found: inspect.Signature) -> types.SimpleNamespace:
    """How many parameters there are; of what a function does nothing is told."""
    kinds = [one.kind for one in found.parameters.values()]
    before = kinds.count(inspect.Parameter.POSITIONAL_ONLY)
    return types.SimpleNamespace(
        co_argcount=before + kinds.count(inspect.Parameter.POSITIONAL_OR_KEYWORD),
        co_posonlyargcount=before,
        co_kwonlyargcount=kinds.count(inspect.Parameter.KEYWORD_ONLY),
    )


BY_NAME: dict[str, Callable[[inspect.Signature], Any]] = {
    "__annotations__": _annotations,
    "__defaults__": _defaults,
    "__kwdefaults__": _keyword_defaults,
    "__code__": _code,
}

"""What the other end is told of an object of ours, from which it makes a stand-in."""

import sys
import types
from typing import TYPE_CHECKING, Any

from autograder.bridge import based, errors, library, rng
from autograder.bridge.public import public_name
from autograder.bridge.stand_ins import FORWARDED, MAX_LINEAGE

if TYPE_CHECKING:
    from autograder.bridge.outgoing import ValueEncoder
    from autograder.bridge.peer import Peer


def describe(
    peer: "Peer", encoder: "ValueEncoder", value: Any, base: type | None = None
) -> dict[str, Any]:
    """What the other end has to know of an object of ours to make a stand-in."""
    told: dict[str, Any] = {"n": peer.give(value), "type": type(value).__name__}
    if peer.tensors and peer.tensors.is_module(value):
        return told | {"k": "module"} | peer.tensors.modules.describe(encoder, value)
    if isinstance(value, type):
        told |= {"k": "class", "type": value.__name__, "qualified": value.__qualname__}
        if issubclass(value, BaseException):
            told["error"] = errors.told_of(value)
        twin = public_name(value) or peer.records.path_of(value)
        told |= {"named": library.fields_of(value), "twin": twin}
    elif isinstance(value, types.FunctionType | types.MethodType | types.BuiltinFunctionType):
        names = {part: getattr(value, f"__{part}__", "") for part in ("name", "qualname")}
        told |= {"k": "function", "name": names["name"], "qualified": names["qualname"]}
    else:
        told |= {"k": "object", "name": _name_of(value), "draws": rng.draws(type(value))}
        if peer.is_free and issubclass(type(value), BaseException):
            told["error"] = errors.told_of(type(value))
    kinds = type.mro(type(value))
    told["classes"] = peer.class_numbers(kinds)
    if base is not None:
        return told | based.described(encoder, value, base)
    told["dunders"] = [
        name for name in FORWARDED if _has(value, name) and peer.policy.may_use(value, name)
    ]
    told["public"] = next(filter(None, map(public_name, kinds[:-1])), None)
    is_class = isinstance(value, type)
    if told["k"] == "object":
        told["hash"] = _hash_of(value)
    if peer.is_free:
        told |= _lineage(peer, value) if is_class else {}
        above = type.mro(value) if is_class else kinds
        told["homes"] = list(filter(None, map(peer.records.path_of, above)))[:MAX_LINEAGE]
    elif told["public"] is None:
        told["public"] = peer.records.path_of(type(value))
    return told


def _name_of(value: Any) -> Any:
    """What an object says is its name; a `__getattr__` of its class's own may say anything."""
    try:
        name = getattr(value, "__name__", None)
    except Exception:  # noqa: BLE001  (it is an answer's, and has no name)
        return None
    return name if type(name) is str else None


def _lineage(peer: "Peer", kind: type) -> dict[str, Any]:
    """The classes below a class: their numbers, and the names of those that both ends have."""
    kinds = type.mro(kind)
    return {
        "parents": peer.class_numbers(kinds),
        "bases": list(filter(None, map(public_name, kinds)))[:MAX_LINEAGE],
    }


def _hash_of(value: Any) -> int | bool | None:
    """What an object's class makes its hash; False if it has none, None if nothing is special."""
    own = type(value).__hash__
    mock: Any = sys.modules.get("unittest.mock")
    is_mock = mock is not None and issubclass(type(value), mock.NonCallableMock)
    if own is object.__hash__ or is_mock:  # which would note that it was asked
        return None
    try:
        return hash(value)
    except Exception:  # noqa: BLE001  (its own, or that of what it holds)
        return False


def _has(value: Any, name: str) -> bool:
    if isinstance(value, type) and getattr(type(value), name, None) is getattr(type, name, None):
        return False
    if name in ("__repr__", "__str__", "__format__", "__eq__", "__ne__"):
        return getattr(type(value), name, None) is not getattr(object, name, None)
    if name in ("__lt__", "__le__", "__gt__", "__ge__"):
        return getattr(type(value), name, None) is not getattr(object, name, None)
    return callable(getattr(type(value), name, None))

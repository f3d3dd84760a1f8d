"""Public things that both ends have: functions and classes that cross by their names."""

import collections
import importlib
import re
import sys
import types
from collections.abc import Iterable
from typing import Any

from autograder.bridge import arrays, codecs
from autograder.bridge.wire import WireError

_OPEN = {"builtins", "collections", "math", "operator", "torch", "numpy"}
_PURE = {"bisect", "cmath", "datetime", "decimal", "enum", "fractions", "functools", "heapq"}
_PURE |= {"itertools", "json", "numbers", "re", "statistics", "string"}  # they keep no state
_OPEN |= _PURE
PACKAGES: set[str] = set()  # whose exceptions go by their names; both ends have imported them
# none of those whose exceptions say "skipped", "try another one" or "stop" to what runs tests
_CLOSED = {"pytest", "_pytest", "hypothesis", "ipytest", "nose", "nose2", "testbook", "otter"}
_CLOSED |= {"torch", "numpy", "autograder", "IPython", "trio", "anyio", "pluggy"}
_WRITTEN_IN_C = ("torch", "torch.nn.functional", "math", "numpy", "operator", "bisect", "heapq")
_WRITTEN_IN_C += ("functools",)
_UNNAMED = {  # what no module has under its own name
    "builtins:generator": types.GeneratorType,
    "builtins:coroutine": types.CoroutineType,
}
_IN_PYTHON = (collections.UserDict, collections.UserList, collections.UserString)
_ASKED = (
    types.GeneratorType,
    types.CoroutineType,
    re.Pattern,
    re.Match,
)  # which C code asks as it asks any object
_DRAWN = ("matplotlib.figure:Figure", "matplotlib.axes._axes:Axes")  # written in Python, too
_METHODS = (types.MethodDescriptorType, types.WrapperDescriptorType)
_DATA = (int, float, bool, str, bytes, complex, list, tuple, dict, set, frozenset, type(None))
_DATA += (range, slice, bytearray, collections.Counter, collections.OrderedDict)
_DATA += (collections.deque, collections.defaultdict)


def open_packages(names: Iterable[str]) -> None:
    """Have functions and classes of these packages, which both ends import, cross by name."""
    known = {*sys.stdlib_module_names, "__main__"}  # in which each end has names of its own
    found = {name.partition(".")[0] for name in names} - known
    _OPEN.update(found)
    PACKAGES.update(found - _CLOSED)


def public_name(value: Any) -> str | None:
    """The name by which both ends find a public function or class; None if there is none."""
    if isinstance(value, _METHODS):  # of a class that holds data: `str.upper`
        kind, name = value.__objclass__, value.__name__
        is_public = kind in _DATA and vars(kind).get(name) is value
        return f"{kind.__module__}:{kind.__qualname__}.{name}" if is_public else None
    if isinstance(value, types.BuiltinMethodType) and isinstance(value.__self__, type):
        kind, name = value.__self__, value.__name__
        is_public = kind in _DATA and type(vars(kind).get(name)) is types.ClassMethodDescriptorType
        return f"{kind.__module__}:{kind.__qualname__}.{name}" if is_public else None
    if arrays.is_function(value):
        home = getattr(value, "__module__", None) or "numpy"
        found = _find(home, value.__name__) if home.partition(".")[0] in _OPEN else None
        return f"{home}:{value.__name__}" if found is value else None
    if any(value is kind for kind in _UNNAMED.values()):
        return f"builtins:{value.__name__}"
    if not isinstance(value, type | types.FunctionType | types.BuiltinFunctionType):
        return None
    places = [(value.__module__, value.__qualname__)]
    if isinstance(value, types.BuiltinFunctionType):  # their own word for it is often wrong
        places += [(module, value.__name__) for module in _WRITTEN_IN_C]
    for module, name in places:
        known = isinstance(module, str) and module.partition(".")[0] in _OPEN
        if known and _find(module, name) is value:
            return f"{module}:{name}"
    return None


def public(name: Any, free: bool) -> Any:
    """The public thing of this name. From an answer only classes that hold data are taken."""
    if free and (home := str(name).partition(":")[0]) in _PURE:
        importlib.import_module(home)  # the test's end has it
    found = named(name)
    if found is None:
        raise WireError("a message names something unknown")
    if free or is_taken(found):
        return found
    raise WireError(f"an answer gave {str(name)[-60:]}, which cannot be handed to a test")


def class_passed_for(name: Any, free: bool) -> Any:
    """The public class that a stand-in passes for; None if it is none that a test may get.

    Only classes without a memory layout of their own: C code believes what `__class__` says. Of
    a generator or pattern it does not.
    """
    found = named(name) if name else None
    if not isinstance(found, type):
        return None
    if found in _ASKED:
        return found
    if found.__module__ == "collections.abc" or found in _IN_PYTHON or name in _DRAWN:
        return found
    passes = (
        free or issubclass(found, Exception) or _may("pass_for", found) or _has_no_layout(found)
    )
    return found if passes else None


def _has_no_layout(kind: type) -> bool:
    """Whether this is a package's class that holds what it holds in attributes, as Python's do."""
    of_packages = kind.__module__.partition(".")[0] in PACKAGES
    return of_packages and kind.__basicsize__ <= _Plain.__basicsize__ and type(kind) is type


class _Plain:
    """An object of which no C code knows more than that it has attributes."""


def is_taken(kind: Any) -> bool:
    """Whether a test may get this public class from an answer, and make objects of it."""
    if not isinstance(kind, type):
        return False
    if any(kind is data for data in _DATA) or arrays.is_number_type(kind):
        return True
    return issubclass(kind, Exception) or _may("pass_for", kind) or _may("be_base", kind)


def _may(what: str, kind: type) -> bool:
    codec = codecs.of()
    if codec is None:
        return False
    return codec.may_pass_for(kind) if what == "pass_for" else codec.may_be_base(kind)


def named(name: Any) -> Any:
    """The public thing of this name; None if there is none."""
    if type(name) is str and name in _UNNAMED:
        return _UNNAMED[name]
    module, _, path = str(name).partition(":")
    return _find(module, path) if module.partition(".")[0] in _OPEN else None


def _find(module: str, path: str) -> Any:
    kind = found = sys.modules.get(module)
    for part in path.split("."):  # what is there, and nothing imported or made on demand
        kind: Any = found
        found = vars(found).get(part) if isinstance(found, types.ModuleType | type) else None
    return getattr(kind, part) if type(found) is types.ClassMethodDescriptorType else found

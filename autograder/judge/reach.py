"""What an answer may have changed by calling back: all that leads from what it used to a value.

What a test hands over as an object stays here, and its functions run here. So a call by an answer
may change whatever they can reach: their own parts, and the names that their text speaks of.
"""

import ast
import contextlib
import dis
import functools
import gc
import sys
import types
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Any

from autograder.bridge.stand_ins import remote_of
from autograder.common.syntax import parse
from autograder.judge.class_asked import OWN

HOME = "__main__"  # what tests and the instructor's cells take for their module's name
MOST_KINDS = 2000  # classes of which is remembered what holds of their objects
MOST = 200_000  # parts; of more than that nobody knows
FIXED = (str, bytes, int, float, complex, bool, type(None), range, slice)
FIXED += (types.CodeType, types.FrameType)
HOLDERS = (tuple, frozenset, types.MethodType, types.BuiltinFunctionType, property)
HOLDERS += (staticmethod, classmethod, types.GetSetDescriptorType, types.MemberDescriptorType)
NAMED = {("torch", name) for name in ("dtype", "device", "layout", "memory_format")}
CELLS, GLOBALS = "a cell", "a global name"  # in the place of an attribute's name
WRAPPED = {"__wrapped__"}  # what a decorator sets in a function once and for all
BY_NAME = {"globals", "vars", "locals", "eval", "exec", "setattr", "delattr", "builtins"}
BY_NAME |= {"__builtins__"}  # ways to names nobody sees; as attributes they are something else
BY_PART = {"__dict__", "__defaults__", "__kwdefaults__", "__closure__", "cell_contents"}
BY_PART |= {"__setattr__", "__delattr__", "__globals__", "f_globals", "f_locals"}
BY_NAME |= {OWN + name for name in BY_PART}  # what stands for one in an instructor's text


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
    functions = [one for one in reached.values() if type(one) is types.FunctionType]
    found = [_deeds(one.__code__) for one in functions]
    if any(leads for leads, _ in found):
        return True
    # those of the notebook itself are forgotten after each question
    if any(
        GLOBALS in done and f.__module__ in helpers
        for f, (_, done) in zip(functions, found, strict=True)
    ):
        return True
    stored = frozenset().union(*(names for _, names in found))
    if any(_is_state(one, stored) for number, one in reached.items() if number in kept):
        return True
    places = _memory(reached.values())
    return bool(places and places & _memory(kept.values()))


def holds_state(names: Mapping[str, Any], helpers: Set[str]) -> bool:
    """Whether what these names stand for, or lead to, can become another value.

    Args:
        names: what the instructor's cells have made.
        helpers: modules of the instructor's own.
    """
    try:
        kept = _reached((v for name, v in names.items() if not name.startswith("__")), helpers)
    except _Unknown:
        return True
    return any(_is_state(one, frozenset()) for one in kept.values())


def may_hold(names: Mapping[str, Any], helpers: Set[str], text: str) -> bool:
    """Whether what a test's text does may stay in what these names stand for, or lead to.

    Args:
        names: what the instructor's cells have made.
        helpers: modules of the instructor's own.
        text: the test's.
    """
    try:
        kept = _reached((v for name, v in names.items() if not name.startswith("__")), helpers)
        own = _code_of(text)
    except (_Unknown, SyntaxError, ValueError):
        return True
    functions = [one for one in kept.values() if type(one) is types.FunctionType]
    found = [_deeds(code) for code in (own, *(one.__code__ for one in functions))]
    stored = frozenset().union(*(names for _, names in found))
    if any(leads for leads, _ in found) or any(
        GLOBALS in done and one.__module__ in helpers | {HOME}
        for one, (_, done) in zip(functions, found[1:], strict=True)
    ):
        return True
    return any(_is_state(one, stored) for one in kept.values())


def know_test(text: str) -> None:
    """Find out once what a test does."""
    with contextlib.suppress(SyntaxError, ValueError):
        _deeds(_code_of(text))


def know_cell(text: str, code: types.CodeType, helpers: Set[str]) -> None:
    """Find out once what the functions of an instructor's cell do, and those that it imports."""
    for part in _codes_in(code):
        _deeds(part)
        _names(part)
    with contextlib.suppress(_Unknown):
        for one in _reached(_imported(text), helpers).values():
            if type(one) is types.FunctionType:
                _deeds(one.__code__)


def _imported(text: str) -> Iterator[Any]:
    """What a cell imports by name, as far as it is there."""
    for node in ast.walk(parse(text) or ast.Module([], [])):
        if isinstance(node, ast.ImportFrom) and node.module in sys.modules:
            home = vars(sys.modules[node.module])
            yield from (home.get(alias.name) for alias in node.names)


@functools.lru_cache(maxsize=2000)
def _code_of(text: str) -> types.CodeType:
    """The code of a test; raises SyntaxError or ValueError."""
    return compile(text, "<test>", "exec")


def _codes_in(code: types.CodeType) -> Iterator[types.CodeType]:
    """The functions and classes in a text, and those in them."""
    for part in code.co_consts:
        if isinstance(part, types.CodeType):
            yield part
            yield from _codes_in(part)


def _memory(values: Iterable[Any]) -> set[int]:
    """Where arrays and tensors lie: two of them may share one place."""
    found: set[int] = set()
    for one in values:
        place = _known(type(one)).place
        if place is not None:
            with contextlib.suppress(Exception):  # some hold no memory
                found.add(place(one))
    return found - {0}


@dataclass
class _Kind:
    """What holds of all objects of a class; no object of the instructor's is asked for it."""

    kind: type  # kept, so that nothing else has its id
    place: Callable[[Any], int] | None = None  # where an object's memory lies, if it has some
    is_fixed: bool = False  # whether they are plain values, which lead nowhere
    is_alias: bool = False  # whether they are types in brackets, as annotations are
    may_be_far: bool = True  # whether one may be a stand-in: there is room for what makes it one

    def __post_init__(self) -> None:
        """Look at the class, whatever its own class does."""
        kind = self.kind
        self.is_fixed = kind in FIXED
        self.is_alias = issubclass(kind, types.GenericAlias | types.UnionType)
        with contextlib.suppress(Exception):
            self.is_alias = self.is_alias or kind.__module__ == "typing"
            if hasattr(kind, "untyped_storage"):
                self.place = _place_of_tensor
            elif any(base.__module__ == "numpy" for base in kind.__mro__):
                self.place = _place_of_array
            self.may_be_far = bool(kind.__dictoffset__) or hasattr(kind, "_remote")


def _known(kind: type) -> _Kind:
    found = _kinds.get(id(kind))
    if found is None:
        if len(_kinds) >= MOST_KINDS:
            _kinds.clear()
        found = _kinds[id(kind)] = _Kind(kind)
    return found


_kinds: dict[int, _Kind] = {}  # by id: a class may have a hash of its own


def _place_of_tensor(one: Any) -> int:
    return one.untyped_storage().data_ptr()


def _place_of_array(one: Any) -> int:
    while type(getattr(one, "base", None)).__module__ == "numpy":
        one = one.base
    return one.__array_interface__["data"][0]


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
    known = _known(kind)
    if known.is_fixed:
        return True
    if kind is types.BuiltinFunctionType:
        return not _is_bound(one)
    if kind is types.ModuleType:
        return one.__name__ not in helpers
    if isinstance(one, type):
        return one.__module__ not in helpers | {HOME} and _is_librarys(one)
    return known.is_alias or (known.may_be_far and remote_of(one) is not None)


def _is_librarys(kind: type) -> bool:
    """Whether a class is where it says that it is: others make classes in a library's name."""
    found: Any = sys.modules.get(kind.__module__)
    for name in kind.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is kind


def _is_alias(one: Any) -> bool:
    """Whether this is a type in brackets, as annotations are."""
    return _known(type(one)).is_alias


def _parts(one: Any, helpers: Set[str]) -> Iterable[Any]:
    if type(one) is types.ModuleType:
        return vars(one).values()
    if isinstance(one, type):
        return [*vars(one).values(), *one.__mro__, type(one)]
    if isinstance(one, weakref.ref):
        return [one()]
    if type(one) in (staticmethod, classmethod):
        return [one.__func__]
    if type(one) is not types.FunctionType:
        return gc.get_referents(one)
    held = [*(one.__closure__ or ()), *(one.__defaults__ or ())]
    held += [*(one.__kwdefaults__ or {}).values(), *one.__dict__.values()]
    if one.__module__ not in helpers | {HOME}:
        return held
    return [*held, *(dict.get(one.__globals__, name) for name in _names(one.__code__))]


@functools.lru_cache(maxsize=2000)
def _names(code: types.CodeType) -> frozenset[str]:
    """Names of its module, no attributes, that a function and the functions in it speak of."""
    steps = (step for step in _steps(code) if "GLOBAL" in step.opname or "NAME" in step.opname)
    return frozenset(str(step.argval) for step in steps)


def _steps(code: types.CodeType) -> Iterator[dis.Instruction]:
    """What a function does, and the functions in it."""
    yield from dis.get_instructions(code)
    for part in code.co_consts:
        if isinstance(part, types.CodeType):
            yield from _steps(part)


def _is_way(step: dis.Instruction) -> bool:
    """Whether a step of a function leads where nobody sees."""
    by_name = step.opname in ("LOAD_GLOBAL", "LOAD_NAME", "IMPORT_NAME")
    return step.argval in BY_NAME if by_name else step.argval in BY_PART


@functools.lru_cache(maxsize=2000)
def _deeds(code: types.CodeType) -> tuple[bool, frozenset[str]]:
    """Whether a function leads where nobody sees, and which attributes it sets or deletes.

    Among these is `CELLS` if it binds a name of a function around it, and `GLOBALS` if one of its
    module.
    """
    stored: set[str] = set()
    for step in _steps(code):
        if _is_way(step):
            return True, frozenset()
        if step.opname in ("STORE_ATTR", "DELETE_ATTR"):
            stored.add(str(step.argval))
        elif step.opname in ("STORE_DEREF", "DELETE_DEREF") and step.argval not in code.co_cellvars:
            stored.add(CELLS)
        elif step.opname in ("STORE_GLOBAL", "DELETE_GLOBAL"):
            stored.add(GLOBALS)
    return False, frozenset(stored)


def _is_state(one: Any, stored: Set[str]) -> bool:
    """Whether this can become another value and stay the same object."""
    if type(one) is types.FunctionType:
        return not one.__dict__.keys() <= WRAPPED
    if isinstance(one, type):  # what its attributes hold is looked at by itself
        return bool(stored & vars(one).keys())
    return CELLS in stored if type(one) is types.CellType else not _is_fixed(one)


def _is_fixed(one: Any) -> bool:
    """Whether this stays as it is; what leads on from it may change."""
    kind = type(one)
    is_plain = kind in FIXED or kind in HOLDERS or (kind.__module__, kind.__name__) in NAMED
    return is_plain or _is_alias(one)

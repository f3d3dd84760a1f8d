"""How an object of a test's was, so that what its methods change for an answer is seen and undone.

An answer may call methods of what a test hands it. They run here and are the test's own, yet what
they change is changed by the answer: it is told as if the object had crossed by value.
"""

import copy
import types
import weakref
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from autograder.bridge import arrays, codecs
from autograder.bridge.aliases import is_same, other, parts_of, put_in
from autograder.bridge.library import parts_of as held_by
from autograder.bridge.shapes import HOME, LEAVES, is_one
from autograder.bridge.stand_ins import remote_of
from autograder.bridge.wire import HOLDERS, WireError

MAX_PARTS = 10_000  # of an object in which changes are looked for
MAX_BYTES = 4_000_000  # of an array or a tensor in it
MODULE = "Module"  # what modules, what they hold and optimisers go by
LIBRARYS = ("torch.nn", "torch.optim")
CALLS = (None, "__call__", "__iter__", "__next__")  # what an object is handed over for
HOOKS = tuple(  # what hangs one on a module, see `hung.py`
    f"register_{name}_hook"
    for name in ("forward", "forward_pre", "full_backward", "full_backward_pre")
)


def holder_of(target: Any, name: str | None) -> Any:
    """The object whose method is called; None if this is a plain call, as of a function."""
    if isinstance(target, types.MethodType):
        target, name = target.__self__, target.__name__
    if not _is_object(target) or (name in CALLS and kind_of(target) != MODULE):
        return None
    return None if name in HOOKS and hasattr(target, "_forward_hooks") else target


def kind_of(value: Any) -> str:
    """What changes of an object are named by."""
    return MODULE if _is_librarys(type(value)) else type(value).__name__


def _is_librarys(kind: type) -> bool:
    """Whether this is a class of modules or optimisers."""
    known = _LIBRARYS.get(kind)
    if known is None:
        known = _LIBRARYS[kind] = not hasattr(kind, "requires_grad") and any(
            one.__module__.startswith(LIBRARYS) for one in kind.__mro__
        )
    return known


_LIBRARYS: "weakref.WeakKeyDictionary[type, bool]" = weakref.WeakKeyDictionary()


def _is_object(value: Any) -> bool:
    """Whether this is an object of a class of the instructor's, or a module or optimiser."""
    kind = type(value)
    if kind in HOLDERS or issubclass(kind, type | types.FunctionType):
        return False
    found = is_one(value) or kind.__module__ == HOME or _is_librarys(kind)
    return found and remote_of(value) is None


class Before:
    """What an object holds, however deep, as it is now."""

    def __init__(self, value: Any) -> None:
        self.parts: list[tuple[Any, _Part]] = []  # with the object that holds each
        seen: set[int] = set()
        left = [(value, value)]
        while left and len(seen) < MAX_PARTS:
            holder, part = left.pop()
            if type(part) in LEAVES or id(part) in seen:
                continue
            seen.add(id(part))
            if _is_object(part):
                holder, held = part, list(_attributes(part).values())
            else:
                held = held_by(part)
            left += [(holder, one) for one in held]
            if (made := _looked_at(part)) is not None:
                self.parts.append((holder, made))

    def changed(self) -> Iterator[tuple[Any, "_Part"]]:
        """What has changed since, each with the object that holds it."""
        return ((holder, part) for holder, part in self.parts if part.differs())


class _Part:
    """A list, a table or the like, in an object."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self.copy, self.parts = copy.copy(value), parts_of(value)

    def differs(self) -> bool:
        """Whether it holds something else now."""
        return not is_same(self.value, self.parts)

    def undo(self) -> None:
        """Have it hold again what it did."""
        put_in(self.value, self.copy)


class _Empty(_Part):
    """A list, a table or the like that holds nothing, as most of a module do."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def differs(self) -> bool:
        """Whether it holds something now."""
        return len(self.value) > 0

    def undo(self) -> None:
        """Have it hold nothing again."""
        self.value.clear()


class _Object(_Part):
    """An object itself."""

    def __init__(self, value: Any) -> None:
        self.value, self.held = value, _attributes(value)

    def differs(self) -> bool:
        """Whether an attribute is another one, or gone, or new and not only kept for later."""
        now = _attributes(self.value)
        new = (name for name in now.keys() - self.held.keys() if not _is_cached(self.value, name))
        if any(new) or self.held.keys() - now.keys():
            return True
        return any(other(now[name], part) for name, part in self.held.items())

    def undo(self) -> None:
        """Give it the attributes that it had."""
        for name in _attributes(self.value).keys() - self.held.keys():
            object.__delattr__(self.value, name)
        for name, part in self.held.items():
            object.__setattr__(self.value, name, part)


class _Array(_Part):
    """An array."""

    def __init__(self, value: Any) -> None:
        self.value, self.bits, self.copy = value, arrays.bits(value), value.copy()

    def differs(self) -> bool:
        """Whether an entry is another one."""
        return arrays.bits(self.value) != self.bits

    def undo(self) -> None:
        """Give it the entries that it had."""
        with suppress(WireError):  # its size is another one
            arrays.overwrite(self.value, self.copy)


class _Tensor(_Array):
    """A tensor, with its gradient."""

    def __init__(self, value: Any) -> None:
        self.value, self.bits = value, arrays.bits(value)
        self.copy, self.wants = value.detach().clone(), value.requires_grad
        self.grad = None if not value.is_leaf or value.grad is None else value.grad.clone()

    def undo(self) -> None:
        """Give it the entries that it had, in its own memory if they fit."""
        value = self.value
        if (value.shape, value.dtype) == (self.copy.shape, self.copy.dtype):
            value.data.copy_(self.copy)
        else:
            value.data = self.copy
        if value.is_leaf:
            value.requires_grad_(self.wants).grad = self.grad


def _looked_at(value: Any) -> _Part | None:
    """How a part is now; None if it cannot change, or is too large to look at."""
    if type(value) in HOLDERS:
        return _Part(value) if len(value) else _Empty(value)
    if _is_object(value):
        return _Object(value)
    views = codecs.memory()
    is_tensor = views is not None and views.is_tensor(value)
    if not (arrays.is_array(value) or is_tensor) or value.nbytes > MAX_BYTES:
        return None
    try:
        return _Tensor(value) if is_tensor else _Array(value)
    except (WireError, RuntimeError):  # a tensor of a kind that does not cross
        return None


def _attributes(value: Any) -> dict[str, Any]:
    """What an object holds, by the names of its attributes; none of its code runs."""
    found = {}
    for name, slot in _slots(type(value)):
        try:
            found[name] = slot.__get__(value)
        except AttributeError:  # nothing stands there
            continue
    if type(value).__dictoffset__:
        found |= object.__getattribute__(value, "__dict__")
    return found


def _slots(kind: type) -> list[tuple[str, Any]]:
    """The slots of a class and its bases, by name; looked up once, as no class gets more."""
    known = _SLOTS.get(kind)
    if known is None:
        known = _SLOTS[kind] = [
            (name, slot)
            for one in kind.__mro__
            for name, slot in vars(one).items()
            if type(slot) is types.MemberDescriptorType
        ]
    return known


_SLOTS: "weakref.WeakKeyDictionary[type, list[tuple[str, Any]]]" = weakref.WeakKeyDictionary()


# what a class holds for its objects until they have their own
DEFAULTS = (type(None), bool, int, float, complex, str, bytes, tuple, list, dict, set)


def is_new(target: Any, name: Any) -> bool:
    """Whether an object, or a function, of a test's has nothing of this name; runs none of it."""
    if not (_takes_any(target) or isinstance(target, types.FunctionType)) or type(name) is not str:
        return False
    return _in_class(target, name) is None and name not in _attributes(target)


def is_set(target: Any, name: Any) -> bool:
    """Whether an object of a test's has a public value of this name; runs none of it."""
    if not _takes_any(target) or type(name) is not str or name.startswith("_"):
        return False
    homes = [vars(one) for one in type(target).__mro__ if name in vars(one)]
    if any(hasattr(type(home[name]), "__set__") for home in homes[:1]):
        return False
    return name in _attributes(target) or (bool(homes) and type(homes[0][name]) in DEFAULTS)


def _takes_any(target: Any) -> bool:
    """Whether an object of the instructor's just keeps what it is given as an attribute."""
    kind = type(target)
    plain = kind.__setattr__ is object.__setattr__ and kind.__dictoffset__ != 0
    return plain and _is_object(target) and kind_of(target) != MODULE


def _in_class(target: Any, name: str) -> Any:
    """What the class of an object has of a name; None if nothing."""
    return next((vars(one)[name] for one in type(target).__mro__ if name in vars(one)), None)


def _is_cached(value: Any, name: str) -> bool:
    """Whether a new attribute is what a `cached_property` keeps."""
    return hasattr(getattr(type(value), name, None), "attrname")

"""The classes of stand-ins for modules: the library's layers, whose calls go to the other end."""

import abc
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from torch import Tensor
from torch.nn import Module, Parameter  # by name: an answer may put something else there
from torch.nn.modules.lazy import LazyModuleMixin

from autograder.bridge import layers, watch
from autograder.bridge.dense import ORDINARY
from autograder.bridge.public import public, public_name
from autograder.bridge.stand_ins import ARITHMETIC, compared, forward
from autograder.bridge.touched import HOOKS
from autograder.bridge.wire import WireError

if TYPE_CHECKING:
    from autograder.bridge.peer import Peer

DATA = tuple(f"torch.utils.data.{name}" for name in ("dataset", "dataloader", "sampler"))


class LayerClass(type):
    """The class of an answer's stand-ins for layers that are the library's and no more.

    So `type(layer) == nn.Linear`, by which weights are usually initialised, holds of one.
    """

    def __eq__(cls, other: object) -> bool:
        return cls is other or cls.__base__ is other

    def __hash__(cls) -> int:
        return hash(cls.__base__)


class Classes:
    """The classes that one end has made for stand-ins of modules."""

    def __init__(self, peer: "Peer") -> None:
        self.peer = peer
        self.classes: dict[Any, type] = {}
        self.bases: dict[str, type] = {}  # the library's, by the names that messages have for them

    def of(self, told: dict[str, Any]) -> type:
        """The class of a module's stand-in, with the special methods that are believed now."""
        base = self._base(told.get("base"))
        methods, named = _names(told.get("methods")), _names(told.get("fields"))
        dunders = self.peer.forwarded(told)
        is_exact = told.get("exact") is True and self.peer.is_free and type(base) is type
        key = (base, methods, named, dunders, is_exact)
        if key not in self.classes:
            body: dict[str, Any] = {"__getattr__": _get_attribute, "__setattr__": _set_attribute}
            body |= {"__deepcopy__": _deep_copy, "__repr__": _show, "__hash__": object.__hash__}
            body |= {"__new__": _made_anew(base), "__copy__": _copy}
            body |= {name: property(_remote_value(name)) for name in named}
            body |= {name: _remote_method(name) for name in (*methods, *dunders)}
            body |= {name: forward(name) for name in dunders if name in ARITHMETIC}
            body |= compared(dunders)
            body |= {"named_parameters": _named_parameters} if self.peer.is_free else {}
            # what one end hangs on a part of the other's is run where that is called
            body |= {name: _remote_method(name) for name in HOOKS}
            body["forward"] = _forward if base is layers.Linear else _remote_method(None)
            self.classes[key] = (LayerClass if is_exact else type)(base.__name__, (base,), body)
        return self.classes[key]

    def _base(self, name: Any) -> type:
        """The class of the library's that a stand-in is made of."""
        if type(name) is str and name in self.bases:
            return self.bases[name]
        base = public(name, False) if name else Module
        if not may_be_base(base):
            raise WireError("a message names a module's class that is none")
        if type(name) is str:
            self.bases[name] = base
        return base


def _names(claimed: Any) -> tuple[str, ...]:
    """Names for a stand-in's class: none that Python or the library itself goes by."""
    names = [name for name in claimed or () if isinstance(name, str) and name.isidentifier()]
    return tuple(name for name in names if not name.startswith("_"))[:500]


def may_be_base(kind: Any) -> bool:
    """Whether a stand-in of an answer's module may be of this public class.

    The library's layers, which hold nothing but parameters and settings, and the modules of
    packages that both ends import. None that C++ stands behind, that makes code of what it holds
    or starts processes, and none whose metaclass runs code when a subclass is made.
    """
    if not (isinstance(kind, type) and issubclass(kind, Module)):
        return False
    if type(kind) not in (type, abc.ABCMeta) or issubclass(kind, LazyModuleMixin):
        return False
    where = kind.__module__
    return (
        where.startswith("torch.nn.modules.") or where.partition(".")[0] != "torch"
    ) and public_name(kind) is not None


def may_pass_for(kind: type) -> bool:
    """Whether a stand-in may pass for an object of this class: optimisers and sets of data.

    These are plain objects of Python. Never a tensor, or anything else that C++ reads by its
    layout: it would take the stand-in's memory for one.
    """
    return kind.__module__.startswith("torch.optim.") or kind.__module__ in DATA


def _remote_method(name: str | None) -> Callable:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        remote = self.__dict__["_remote"]
        label = remote.label if name is None else remote.use(name)
        return remote.peer.call(remote.number, name, args, kwargs, label)

    return method


def _forward(self: Any, *args: Any, **kwargs: Any) -> Any:
    """What a layer gives, worked out here if that is all the same."""
    plain = len(args) == 1 and not kwargs and type(args[0]) in ORDINARY
    if plain and self.__dict__["_here"] and watch.stopped().isdisjoint(layers.STEPS):
        return layers.compute(self, args[0])
    return _call(self, *args, **kwargs)


def _named_parameters(self: Any, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Parameter]]:
    """What an answer may keep beyond the call, as an optimiser of its own does."""
    self.__dict__["_remote"].peer.tensors.kept_on.add(self)
    return Module.named_parameters(self, *args, **kwargs)


def _remote_value(name: str) -> Callable:
    def value(self: Any) -> Any:
        remote = self.__dict__["_remote"]
        return remote.peer.get(remote.number, name, remote.use(name))

    return value


_call = _remote_method(None)


def _get_attribute(self: Any, name: str) -> Any:
    for table in ("_parameters", "_buffers", "_modules"):
        if name in self.__dict__.get(table, ()):
            return self.__dict__[table][name]
    if name.startswith("_"):
        raise AttributeError(name)
    remote = self.__dict__["_remote"]
    value = remote.peer.get(remote.number, name, remote.use(name))
    if not remote.peer.is_free:
        remote.peer.tensors.lend(self, remote.number, name, value)
    return value


def _set_attribute(self: Any, name: str, value: Any) -> None:
    known = any(name in self.__dict__[table] for table in ("_parameters", "_buffers", "_modules"))
    if known or name == "training" or isinstance(value, Module | Parameter):
        Module.__setattr__(self, name, value)
    if name == "training" or name.startswith("_"):
        self.__dict__[name] = value
        return
    remote = self.__dict__["_remote"]
    if remote.peer.is_free:  # a test's module keeps what is no parameter to itself
        if not known and not isinstance(value, Module | Parameter):
            self.__dict__[name] = value
            remote.peer.tensors.settings.put(self, remote.number, name)
    elif not isinstance(value, Parameter) and not (known and isinstance(value, Tensor)):
        remote.peer.put(remote.number, name, value)


def _made_anew(base: type) -> Callable:
    """What makes a new object of a stand-in's class, as a slice of it is: one of the library's."""

    def make(cls: type, *args: Any, **kwargs: Any) -> Any:
        if base is Module:
            raise TypeError("make a new one by the name of its class")
        return base(*args, **kwargs)

    return make


def _copy(self: Any) -> Any:
    made = object.__new__(type(self))
    made.__dict__.update(self.__dict__)
    return made


def _deep_copy(self: Any, memo: dict) -> Any:
    remote = self.__dict__["_remote"]
    return remote.peer.duplicate(remote.number)


def _show(self: Any) -> str:
    """What a test that shows a module sees of it: what its own process shows."""
    remote = self.__dict__["_remote"]
    if not remote.peer.is_free:  # a test
        text = remote.peer.call(remote.number, "__repr__", (), {}, remote.use("__repr__"))
        if type(text) is str:
            return text
    return f"<{remote.type_name} of the answer>"

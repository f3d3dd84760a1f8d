"""Keeps libraries from handing on the namespace of a class or module that is none of the student's.

`functools.update_wrapper` copies all that a class holds into an object that may show it, and the
schedulers of torch whose rates are functions save what these hold, also where they are classes. Who
has such a namespace gets anything in it by a text. Who wraps functions, or objects and classes of
their own, notices nothing.
"""

import functools
import sys
import types
from typing import Any

HOME = "__main__"
_before: dict[int, type] = {}  # classes of others' that were there before any student's code


def is_theirs(value: Any) -> bool:
    """Whether this is a module, or a class that no cell has made, whatever the class says since."""
    if isinstance(value, type):
        return id(value) in _before or _is_elsewhere(value)
    return isinstance(value, types.ModuleType)


def _is_elsewhere(kind: type) -> bool:
    return type.__getattribute__(kind, "__module__") != HOME


def _remember() -> None:
    todo: list[type] = [object]
    while todo:
        kind = todo.pop()
        if id(kind) not in _before:
            if _is_elsewhere(kind):
                _before[id(kind)] = kind
            todo += type.__subclasses__(kind)


def keep() -> None:
    """From now on nobody hands on such a namespace; call it before any student's code."""
    _remember()
    code = _update_wrapper.__code__
    consts = tuple(is_theirs if const == "is_theirs" else const for const in code.co_consts)
    functools.update_wrapper.__code__ = code.replace(co_consts=consts)
    schedulers: Any = sys.modules.get("torch.optim.lr_scheduler")
    if schedulers is not None:
        schedulers.LambdaLR.state_dict = _state_of_rates
        schedulers.MultiplicativeLR.state_dict = _state_of_rates
        schedulers.CyclicLR.state_dict = _state_of_cycle


def _update_wrapper(wrapper: Any, wrapped: Any, assigned: Any, updated: Any) -> Any:
    """As Python's, which finds no other global name here."""
    hides: Any = "is_theirs"
    for name in assigned:
        try:
            value = getattr(wrapped, name)
        except AttributeError:
            continue
        setattr(wrapper, name, value)
    for name in updated:
        getattr(wrapper, name).update({} if hides(wrapped) else getattr(wrapped, name, {}))
    wrapper.__wrapped__ = wrapped
    return wrapper


def _state(function: Any) -> dict[str, Any] | None:
    """What is saved of a function by which rates go: nothing, but of an object what it holds."""
    if isinstance(function, types.FunctionType) or is_theirs(function):
        return None
    return function.__dict__.copy()


def _state_of_rates(self: Any) -> dict[str, Any]:
    """As that of `LambdaLR` and `MultiplicativeLR`."""
    out = ("optimizer", "lr_lambdas")
    state = {name: value for name, value in self.__dict__.items() if name not in out}
    return {**state, "lr_lambdas": [*map(_state, self.lr_lambdas)]}


def _state_of_cycle(self: Any) -> dict[str, Any]:
    """As that of `CyclicLR`."""
    out = ("optimizer", "_scale_fn_ref", "_scale_fn_custom")
    state = {name: value for name, value in self.__dict__.items() if name not in out}
    function = self._scale_fn_custom
    return {**state, "_scale_fn_custom": None if function is None else _state(function)}

"""What the test of a question hands over and believes: the policy of its end of the line."""

import collections
import functools
import operator
import sys
import types
from collections.abc import AsyncIterator
from typing import Any

from autograder.bridge.awaited import AWAIT, OF_ASYNC
from autograder.bridge.policy import Policy
from autograder.bridge.stand_ins import FORWARDED
from autograder.judge import mocks
from autograder.judge.old import is_old
from autograder.judge.tools import is_method, is_tool, uses_of


async def _steps() -> AsyncIterator[None]:
    yield


def _kind_of_step() -> type:
    """The class of what `__anext__` of an `async` generator gives, which Python has no name for."""
    step: Any = _steps().__anext__()
    step.close()  # else Python tells that nobody has awaited it
    return type(step)


HOME = "__main__"  # what tests and answers both take for their module's name
PARTS = ("call", "len", "iter", "next", "reversed", "getitem", "setitem", "delitem")
PARTS += ("get",)  # of a decorator that is a class: what it makes of a method
PARTS += OF_ASYNC
SHOWN = ("enter", "exit", "repr", "str", "format", "bool", "eq", "ne")
ACCESS = frozenset(f"__{name}__" for name in (*PARTS, *SHOWN))
COPIED = FORWARDED | {"__copy__", "__deepcopy__"}  # a copy stays here, as what it is of
FUNCTIONS = (types.FunctionType, types.MethodType, functools.partial)
FUNCTIONS += (operator.itemgetter, operator.attrgetter, operator.methodcaller)
HOLDERS = (list, dict, set, collections.deque, collections.Counter)
OF_GENERATORS = ("send", "close")
AWAITED = {  # what a test's `async` functions give, and what may be done with it
    types.CoroutineType: (AWAIT,),
    types.AsyncGeneratorType: ("__aiter__", "__anext__"),
    _kind_of_step(): (AWAIT,),
}
TEXTS = (str, bytes, int, float, tuple, frozenset)  # whose methods change nothing


class Guard(Policy):
    """What an answer may do with what a test hands it: call it, and use its public parts.

    Never with anything by which code, files or other objects of this process could be reached.
    And what an object of the answer's says of itself is no value: unless the reference has such
    objects too, they have no sum, no size and no order here.
    """

    def __init__(
        self, operators: frozenset[str] = frozenset(), helpers: frozenset[str] = frozenset()
    ) -> None:
        self.operators = operators  # special methods that the reference defines
        self.homes = helpers | {HOME}  # modules of the tests' own, and those beside the notebook

    def believes(self, name: str) -> bool:
        """Access to parts, and the operators that the reference defines."""
        return name in ACCESS or name in self.operators

    def may_change(self, value: Any) -> bool:
        """What tests and the instructor's cells have made; nothing that modules hold."""
        return not is_old(value)

    def may_give(self, value: Any) -> bool:
        """Functions, iterators, and objects of the tests' own classes; nothing of the system's."""
        if isinstance(value, FUNCTIONS) or _is_iterator(value) or _is_fixed_method(value):
            return True
        if is_tool(value) or is_method(value) or type(value) in AWAITED or mocks.is_mock(value):
            return True
        kind = value if isinstance(value, type) else type(value)
        if kind is object and value is not object:  # nothing but itself, as what marks an end
            return True
        return kind.__module__ in self.homes or _tensors_allow("may_give", value)

    def may_use(self, value: Any, name: str | None) -> bool:
        """Calls, special methods that do no harm, and public names."""
        if isinstance(value, FUNCTIONS) or _is_fixed_method(value) or is_method(value):
            return name in (None, "__call__", "__doc__")
        if type(value) in AWAITED:
            return name in AWAITED[type(value)]
        if _is_iterator(value):
            return name in ("__next__", "__iter__") or (
                type(value) is types.GeneratorType and name in OF_GENERATORS
            )
        told = uses_of(type(value), name)
        if told is not None:
            return told
        if mocks.is_mock(value):
            return mocks.may_use(value, name, self.homes)
        if "torch" in sys.modules:
            from autograder.bridge import tensors

            told = tensors.may_use(value, name)
            if told is not None:
                return told
        return name is None or name in COPIED or not name.startswith("_")


def _tensors_allow(question: str, value: Any) -> bool:
    if "torch" not in sys.modules:
        return False
    from autograder.bridge import tensors

    return getattr(tensors, question)(value)


def _is_iterator(value: Any) -> bool:
    kind = type(value)
    return hasattr(kind, "__next__") and kind.__module__ in ("builtins", "itertools")


def _is_fixed_method(value: Any) -> bool:
    """Whether this is a method of Python's own that does what it does: of a holder, say."""
    if not isinstance(value, types.BuiltinMethodType):
        return False
    of = type(value.__self__)
    return of in HOLDERS + TEXTS or (of is types.GeneratorType and value.__name__ in OF_GENERATORS)

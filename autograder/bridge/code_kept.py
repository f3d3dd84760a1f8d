"""Where the code of a forbidden function is beside the function: under way, or in a copy of it.

`watch` gives a function other code, for whoever calls it from then on. A call that had begun goes
on with the code that it had, in another thread or in a generator that waits. And a function that is
made of that code, by whatever way somebody came to it, is another function.
"""

import gc
import inspect
import sys
import types
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any

WAITING = {
    types.GeneratorType: "gi_code",
    types.CoroutineType: "cr_code",
    types.AsyncGeneratorType: "ag_code",
}
# what Python tells of: a function is made of code, code of other code, a function is given code
MADE, CHANGED, GIVEN = "function.__new__", "code.__new__", "object.__setattr__"
TOLD = frozenset((MADE, CHANGED, GIVEN))

_known: dict[bytes, list[types.CodeType]] = {}  # by their steps


def know(functions: Iterable[types.FunctionType]) -> None:
    """From now on nobody makes a copy of these functions, if Python tells of it (`copies`)."""
    for function in functions:
        code = function.__code__
        held = _known.setdefault(code.co_code, [])
        if not any(code is one for one in held):
            held.append(code)


def copies(event: str, told: tuple) -> bool:
    """Whether this that Python tells of gives somebody else the code of a forbidden function."""
    if event == MADE:
        return _is_known(told[0])
    if event == CHANGED:
        steps, file, name = told[:3]
        return any(file == one.co_filename or name == one.co_name for one in _known.get(steps, ()))
    return event == GIVEN and told[1] == "__code__" and _is_known(told[2])


def _is_known(code: object) -> bool:
    return isinstance(code, types.CodeType) and code in _known.get(code.co_code, ())


def under_way() -> Iterator[types.CodeType]:
    """The code of every call that has begun: in any thread, and in what waits to go on."""
    for frame in list(sys._current_frames().values()):
        at: types.FrameType | None = frame
        while at is not None:
            yield at.f_code
            at = at.f_back
    for one in gc.get_objects():
        if (name := WAITING.get(type(one))) is not None:
            yield getattr(one, name)


def that_calls(instead: Callable[..., Any], code: types.CodeType) -> types.CodeType:
    """Code for the function that has this code, by which it calls something else.

    Python takes a generator's for that of a generator alone, which calls at its first step.
    """
    is_generator = code.co_flags & inspect.CO_GENERATOR
    new = (_step_into if is_generator else _call).__code__
    consts = tuple(instead if const == "instead" else const for const in new.co_consts)
    # as many names of functions around it as before, or Python refuses
    return new.replace(co_consts=consts, co_freevars=code.co_freevars)


def _call(*args: Any, **kwargs: Any) -> Any:
    call: Any = "instead"
    return call(*args, **kwargs)


def _step_into(*args: Any, **kwargs: Any) -> Generator[Any]:
    call: Any = "instead"
    yield call(*args, **kwargs)

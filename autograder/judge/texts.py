"""Texts and bytes of an answer's are not run where the tests run, whichever library offers to."""

import functools
import pickle
import sys
from collections.abc import Callable, Collection
from typing import Any

from autograder.judge.space import BrokenCell

EVALUATORS = (  # functions of libraries that run a text which they are given
    ("sympy.parsing.sympy_parser", "parse_expr"),
    ("sympy.utilities.lambdify", "lambdify"),
    ("pandas.core.computation.eval", "eval"),
    ("numexpr.necompiler", "evaluate"),
    ("numexpr.necompiler", "validate"),
    ("timeit", "timeit"),
    ("timeit", "repeat"),
)
LOADERS = ("load", "loads", "Unpickler")


class _Refuser(pickle.Unpickler):
    """Stands in the place of `pickle.Unpickler`, of which libraries derive classes of their own."""

    def __init__(self, *_: Any, **__: Any) -> None:
        _refuse()


def run_no_texts(known: Callable[[], Collection[str]]) -> None:
    """From now on this process runs no text but those of `known`, and makes no pickled object.

    Called again, it goes by the newer texts. What is imported later is not looked at.
    """
    for name in LOADERS:
        setattr(pickle, name, _Refuser if name == "Unpickler" else _refuse)
    for module, name in EVALUATORS:
        function = getattr(sys.modules.get(module), name, None)
        if function is not None:
            _replace(module.partition(".")[0], name, function, known)


def _refuse(*_: Any, **__: Any) -> Any:
    raise BrokenCell("pickled bytes may be an answer's own, and are not loaded where tests run")


def _replace(package: str, name: str, function: Any, known: Callable[[], Collection[str]]) -> None:
    """Put a guarded function wherever the package holds this one."""
    runs = getattr(function, "__wrapped_evaluator__", function)

    @functools.wraps(runs)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        texts = [one for one in (*args, *kwargs.values()) if isinstance(one, str)]
        if any(text not in known() for text in texts):
            raise BrokenCell(
                f"{name}() of a text that an answer may have made; compare the values, or give it "
                "a text that stands in your cell"
            )
        return runs(*args, **kwargs)

    guarded.__wrapped_evaluator__ = runs  # type: ignore[attr-defined]
    for place, module in list(sys.modules.items()):
        if place.partition(".")[0] == package and vars(module).get(name) is function:
            setattr(module, name, guarded)

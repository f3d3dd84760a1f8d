"""Objects of Python's library and NumPy's that a test may hand to an answer, and stay the test's.

Random numbers, streams, queues, patterns and their matches, the keys of `cmp_to_key`, polynomials
and functions that remember: what an answer does with one is done here, as in one process. It may
draw the next numbers and not choose them; of a stream or queue it may read and write, and reach
nothing below it.
"""

import functools
import io
import queue
import re
import sys
import types
from typing import Any

from autograder.bridge.rng import draws

KEYS = (type(functools.cmp_to_key(lambda one, two: 0)),)
COMPARING = frozenset(("__call__", "__lt__", "__le__", "__gt__", "__ge__", "__eq__"))
STREAMS = (io.StringIO, io.BytesIO, io.TextIOWrapper, io.BufferedReader, io.BufferedWriter)
STREAMING = frozenset(
    (
        *("read", "readline", "readlines", "write", "writelines", "getvalue", "seek", "tell"),
        *("flush", "close", "closed", "readable", "writable", "seekable"),
        *("__iter__", "__next__", "__enter__", "__exit__"),
    )
)
QUEUES = (queue.Queue, queue.LifoQueue, queue.PriorityQueue, queue.SimpleQueue)
QUEUEING = frozenset(
    ("put", "get", "put_nowait", "get_nowait", "empty", "full", "qsize", "maxsize")
)
QUEUEING |= {"task_done"}
MATCHED = frozenset(
    (
        *("group", "groups", "groupdict", "start", "end", "span", "expand", "__getitem__"),
        *("string", "re", "pos", "endpos", "lastindex", "lastgroup"),
    )
)
MATCHING = frozenset(
    (
        *("match", "search", "fullmatch", "findall", "finditer", "split", "sub", "subn"),
        *("pattern", "flags", "groups", "groupindex"),
    )
)
REMEMBERING = (type(functools.cache(lambda: 0)),)
REMEMBERED = frozenset(("__call__", "cache_info", "__name__", "__doc__"))
CURVES = ("poly1d", "vectorize", "Polynomial", "Chebyshev", "Legendre")  # of NumPy
CURVES += ("Laguerre", "Hermite", "HermiteE")
CURVED = frozenset(
    (
        *("__call__", "deriv", "integ", "roots", "coef", "degree", "domain", "window"),
        *("coeffs", "coefficients", "order", "c", "r", "o", "__len__", "__iter__"),
    )
)
USES = {  # of which classes what may be used
    **dict.fromkeys(REMEMBERING, REMEMBERED),
    **dict.fromkeys(KEYS, COMPARING),
    **dict.fromkeys(STREAMS, STREAMING),
    **dict.fromkeys(QUEUES, QUEUEING),
    re.Match: MATCHED,
    re.Pattern: MATCHING,
}
KEPT = frozenset(("bit_generator", "spawn", "seed"))
KEPT |= {"get_state", "set_state", "getstate", "setstate"}
ENDLESS = frozenset(("zipf", "vonmises"))  # of `RandomState`: with some numbers they draw for ever
# the last: of what is written in C and told its class
METHODS = (types.MethodType, types.BuiltinMethodType, type(re.compile("").search))


def is_tool(value: Any) -> bool:
    """Whether this is one of them."""
    return uses_of(type(value), None) is not None


def is_method(value: Any) -> bool:
    """Whether this is a method of such an object that an answer may use; asks no test's object."""
    if type(value) not in METHODS:
        return False
    owner, name = value.__self__, value.__name__
    return uses_of(type(owner), name) is True and getattr(owner, name, None) == value


def uses_of(kind: type, name: str | None) -> bool | None:
    """Whether an answer may use what has this name, of an object of this class; None if of none.

    Without a name: whether it may be called.
    """
    if kind in USES:
        return (name or "__call__") in USES[kind]
    if _is_curve(kind):
        return (name or "__call__") in CURVED
    if draws(kind):
        stays = KEPT | ENDLESS if _is_old(kind) else KEPT
        return name is not None and not name.startswith("_") and name not in stays
    return None


def _is_curve(kind: type) -> bool:
    """Whether this is a polynomial of NumPy's, or a function that goes through arrays."""
    if kind.__name__ not in CURVES:
        return False
    places = map(sys.modules.get, ("numpy", "numpy.polynomial"))
    return any(getattr(place, kind.__name__, None) is kind for place in places)


def _is_old(kind: type) -> bool:
    """Whether random numbers are of NumPy's first kind, which is left as it is, faults and all."""
    numpy: Any = sys.modules.get("numpy.random")
    return numpy is not None and kind is numpy.RandomState

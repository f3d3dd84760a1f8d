"""Mocks of `unittest.mock` that a test hands to an answer: to be called, and asked for their parts.

What was noted of an answer's calls, and what it is to get, stays the test's.
"""

import sys
import types
from typing import Any

from autograder.bridge.stand_ins import FORWARDED

COPIES = frozenset(("__copy__", "__deepcopy__"))


def is_mock(value: Any) -> bool:
    """Whether this is one; asks no object of an answer's for its class."""
    mock: Any = sys.modules.get("unittest.mock")
    return mock is not None and issubclass(type(value), mock.NonCallableMock)


def may_use(value: Any, name: str | None, homes: frozenset[str]) -> bool:
    """Whether an answer may call a mock (without a name), or use what has this name.

    Args:
        value: the mock.
        name: of a part, or of a special method.
        homes: modules of the tests' own, whose functions may be what a call does.
    """
    if not _is_harmless(vars(value).get("_mock_wraps"), homes):
        return False
    if name in (None, "__call__"):
        return _is_harmless(value.side_effect, homes)
    if name.startswith("_"):
        return name in FORWARDED and name not in COPIES
    return not hasattr(sys.modules["unittest.mock"].Mock, name) and name not in OF_A_MOCK


# what a mock has in itself, and not in its class
OF_A_MOCK = frozenset(("method_calls", "mock_calls", "return_value", "side_effect"))


def _is_harmless(done: Any, homes: frozenset[str]) -> bool:
    """Whether a call that does this runs the test's own text, or gives and raises what it says."""
    if done is None or type(done).__name__ in ("list_iterator", "tuple_iterator"):
        return True
    if isinstance(done, BaseException) or (
        isinstance(done, type) and issubclass(done, BaseException)
    ):
        return True
    return type(done) is types.FunctionType and done.__module__ in homes

"""Tests and the instructor's cells run in silence: what they print and warn of goes nowhere."""

import contextlib
import io
import warnings
from collections.abc import Iterator
from typing import Any

from autograder.judge.guard import HOME

# of which Python itself does not warn, but for the last one in a notebook's own cells
QUIET = (ResourceWarning, ImportWarning, PendingDeprecationWarning, DeprecationWarning)


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """What is printed goes nowhere, and so does what is warned of, unless a test listens."""
    with (
        warnings.catch_warnings(),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        warnings.resetwarnings()
        for kind in QUIET:
            warnings.simplefilter("ignore", kind)
        warnings.filterwarnings("default", "", DeprecationWarning, HOME)
        warnings.showwarning = _show_nowhere
        yield


def _show_nowhere(*_: Any, **__: Any) -> None:
    """In the place of what prints a warning."""

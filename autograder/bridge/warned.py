"""What an answer warns of, for a test that listens; and how a test has NumPy's arithmetic set.

A request of a test which has changed what becomes of warnings says how. The answer's end tells with
its reply what was warned of meanwhile, and that is warned of here once more: recorded or raised, as
the test's own filters have it. It is text, of a class that `errors.py` makes, and nothing else.
"""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from autograder.common.results import Raised

if TYPE_CHECKING:
    from autograder.bridge.peer import Peer

MAX_WARNED = 200  # of one call
MAX_FILTERS = 20
MAX_LINE = 10**6
ACTIONS = ("error", "ignore", "always", "default", "module", "once")
USUAL = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}
SET_SO = ("ignore", "warn", "raise", "print")
HOME = "__main__"  # whose warnings these are, as in a notebook


class Warned:
    """At a test's end what becomes of warnings; at an answer's what it has warned of."""

    def __init__(self, peer: "Peer") -> None:
        self.peer = peer
        self.before: list[Any] | None = None  # filters with which a test began
        self.shows: Any = None  # what showed warnings then
        self.seen: dict[Any, Any] = {}  # by Python: what is to be shown once was shown
        self.caught: list[Any] = []  # at an answer's end, and not told yet

    def begin(self) -> None:
        """A test begins here, which has changed nothing yet."""
        self.before, self.shows = list(warnings.filters), warnings.showwarning
        self.seen = {}

    def ask(self, tree: dict[str, Any]) -> None:
        """Say in a request how the test has set things, if it has."""
        before = self.before
        is_usual = warnings.filters == before and warnings.showwarning is self.shows
        if before is not None and not is_usual:
            new = [one for one in warnings.filters if one not in before]
            tree["warn"] = [_told(*one) for one in new[:MAX_FILTERS]]
        numpy = sys.modules.get("numpy")
        if numpy is not None and (now := numpy.geterr()) != USUAL:
            tree["arithmetic"] = {k: v for k, v in now.items() if v in SET_SO and v != USUAL[k]}

    def read(self, tree: dict[str, Any], label: str) -> list[tuple[Warning, int]]:
        """What a reply to a test tells of a call's warnings: each with its line."""
        told = tree.get("warned") or () if self.peer.runs_test else ()
        if not told:
            return []
        seen = self.peer.leaving.raising(label)
        made = [
            (self.peer.thrown.mentioned(described, seen), line)
            for described, line in told[:MAX_WARNED]
        ]
        return [
            (one, abs(line) % MAX_LINE)
            for one, line in made
            if isinstance(one, Warning) and type(line) is int
        ]

    def issue(
        self, found: list[tuple[Warning, int]], error: BaseException | None
    ) -> BaseException | None:
        """Warn of these here; what the call raises now, where a test has warnings raised.

        `error` is what it has raised anyway.
        """
        for one, line in found:
            try:
                warnings.warn_explicit(one, type(one), "<answer>", line, HOME, self.seen)
            except Warning as raised:
                raised.raised = _as_raised(raised, line)  # type: ignore[attr-defined]
                error = error or raised
        return error

    # --- the answer's end -------------------------------------------------------------------------

    @contextmanager
    def during(self, tree: dict[str, Any]) -> Iterator[None]:
        """While a call runs for a test that listens, or has NumPy's arithmetic set."""
        numpy: Any = sys.modules.get("numpy")
        if "arithmetic" in tree and numpy is not None:
            rest = {key: value for key, value in tree.items() if key != "arithmetic"}
            with numpy.errstate(**tree["arithmetic"]), self.during(rest):
                yield
        elif "warn" in tree:
            with warnings.catch_warnings(record=True) as caught:
                for action, kind in reversed(tree["warn"]):
                    warnings.simplefilter(action, getattr(sys.modules["builtins"], kind))
                try:
                    yield
                finally:
                    self.caught += caught
        else:
            yield

    def leave(self, answered: dict[str, Any]) -> None:
        """Put into a reply what was warned of."""
        caught, self.caught = self.caught[:MAX_WARNED], []
        told = []
        for one in caught:
            with suppress(Exception):  # an answer's own class of warnings may do anything
                told.append([self.peer.thrown.mention(one.message), one.lineno])
        if told:
            answered["warned"] = told


def _told(action: str, text: Any, kind: Any, module: Any, line: int) -> list[str]:
    """A filter, for an answer's end; its words stay here, where it decides once more."""
    is_whole = text is None and module is None and not line and action in ACTIONS
    known = next(one for one in kind.__mro__ if one.__module__ == "builtins")
    return [action if is_whole and known is kind else "always", known.__name__]


def _as_raised(warning: Warning, line: int) -> Raised:
    kinds = tuple(one.__name__ for one in type(warning).__mro__ if one.__module__ == "builtins")
    return Raised(type(warning).__name__, str(warning), line, "", kinds)

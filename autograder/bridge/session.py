"""The trusted side's view of one student's process: run cells, ask for names, end it."""

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from autograder.bridge import late
from autograder.bridge.line import Gone
from autograder.bridge.peer import Peer
from autograder.bridge.policy import Policy
from autograder.bridge.said import sentences
from autograder.common.results import Raised
from autograder.isolation.clock import Clock, doubt, here
from autograder.isolation.limits import ending

MAX_PRINTED = 20_100
VERSIONS = itertools.count()
KILLED = ending(9)

late.offer()


@dataclass(frozen=True)
class CellRun:
    """How one cell of the student's went."""

    ok: bool
    printed: str = ""
    raised: Raised | None = None
    gone: str = ""  # "timeout", "died" or "broken": its process is lost
    words: str = ""  # why
    notes: tuple[str, ...] = ()  # what was left out of it, for the student


class Unclocked(RuntimeError):
    """Something was asked of an answer with no end to the waiting: a mistake of the grader's."""


class Clocked(Peer):
    """The trusted end of a line to a student's process, of which nothing is asked but in time."""

    def __init__(self, line: Any, policy: Policy, services: dict[str, Any]) -> None:
        super().__init__(line, policy, services)
        self.used: dict[int, Any] = {}  # objects of ours that the other end has used, by number

    def is_used(self, number: Any) -> None:
        """Remember what of ours the other end uses."""
        if type(number) is int and number in self.given:
            self.used[number] = self.given[number]

    def mind_the_clock(self) -> None:
        """End it if the time is over; there has to be one."""
        if self.clock is None:
            raise Unclocked("what is asked of an answer has to have a clock")
        super().mind_the_clock()


class Student:
    """A student's process, seen from the trusted side."""

    def __init__(self, spawned: Any, policy: Policy) -> None:
        self.spawned = spawned
        self.peer = Clocked(spawned.sock, policy, {})
        self.version = next(VERSIONS)  # another one when names may have changed

    def run(self, cell: str, source: str, seconds: float) -> CellRun:
        """Run one cell."""
        self.version = next(VERSIONS)
        try:
            with self.clock(seconds):
                told = self.peer.ask("run", cell, source)
        except Gone as gone:
            return CellRun(False, gone=gone.kind, words=self.why(gone))
        except Exception as error:  # noqa: BLE001  (a runner that was tampered with)
            return CellRun(False, raised=getattr(error, "raised", None), words=str(error)[:200])
        return self._account(told)

    def run_all(self, cells: Sequence[tuple[str, str]], seconds: float) -> list[CellRun]:
        """Run cells, each after the other, in all in this time; nothing if they come to no end."""
        self.version = next(VERSIONS)
        try:
            with self.clock(seconds):
                told = self.peer.ask("run_all", *cells)
        except (Gone, Exception):  # noqa: BLE001  (run one by one, each tells its own end)
            return []
        is_whole = isinstance(told, list) and len(told) == len(cells)
        return [*map(self._account, told)] if is_whole else []

    def _account(self, told: Any) -> CellRun:
        """What the student's process tells of a cell."""
        if not isinstance(told, dict):
            return CellRun(False, words="the answer's process gave no account")
        printed = told.get("printed")
        printed = printed[:MAX_PRINTED] if isinstance(printed, str) else ""
        ok, raised = told.get("error") is None, self._raised(told.get("error"))
        return CellRun(ok, printed, raised, notes=tuple(sentences(told.get("notes"))))

    def notes(self, seconds: float) -> list[str]:
        """What was left out while tests called what the cells define."""
        with self.clock(seconds):
            return sentences(self.peer.ask("notes"))

    def name(self, name: str, due: str = "") -> Any:
        """The value of a global name, or a stand-in for it."""
        return self.peer.ask("name", name, due=due)

    def names(self) -> set[str]:
        """What is defined; a claim, good for messages only."""
        told = self.peer.ask("names")
        return {name for name in told if type(name) is str} if isinstance(told, list) else set()

    def set(self, name: str, value: Any) -> None:
        """Define a name there."""
        self.peer.ask("set", name, value)

    def delete(self, name: str) -> None:
        """Undefine a name there."""
        self.peer.ask("delete", name)

    @contextmanager
    def clock(self, seconds: float) -> Iterator[Clock]:
        """Everything inside has to be done in this time."""
        before, self.peer.clock = self.peer.clock, Clock(seconds, self.spawned, here())
        try:
            yield self.peer.clock
        finally:
            self.peer.clock = before
            self.peer.line.settimeout(None)

    def why(self, gone: Gone) -> str:
        """In words, why the process is lost."""
        if gone.kind == "timeout":
            return "it took too long"
        if gone.kind == "broken":
            return "its process sent something unreadable"
        told = self.spawned.ended(0.05) or "its process ended"
        if told == KILLED:  # perhaps by a kernel short of memory, for others' sake
            doubt()
        # the number with which it ended itself could carry what a hidden test asked
        if told.startswith("exited with status"):
            return "it ended its own process"
        return "it crashed" if told.startswith("was killed by signal") else told

    def ask_again(self, calls: list[Any]) -> list[Any]:
        """Make recorded calls once more, in this order; what they give now."""
        with self.peer.recording():
            return [self.peer.repeat(self.name(call.what), call) for call in calls]

    def worked(self) -> float:
        """Seconds of processor time that it has used."""
        used = self.spawned.read()
        return used.cpu if used else 0.0

    def close(self) -> None:
        """End the process and everything it started."""
        self.spawned.kill()

    def _raised(self, told: Any) -> Raised | None:
        if not isinstance(told, dict):
            return None
        try:
            return self.peer.thrown.error(told).raised  # type: ignore[attr-defined]
        except Exception:  # noqa: BLE001  (claims of a runner that was tampered with)
            return Raised("Exception", "")

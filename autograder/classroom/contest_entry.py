"""One entry of a contest: take its files, run it in a sandbox of its own, score what it said.

The entry's process is given the files that were handed in and what the course gives to everybody;
never an answer. What comes back is text, of which so many lines count as there are answers. They
are scored in a process of its own within a time and a memory.
"""

import math
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from autograder.common.names import visible
from autograder.isolation.apart import apart
from autograder.isolation.called import ANSWER, ENTRY, GIVEN, LINES, question
from autograder.isolation.clock import SOON, Clock, Over
from autograder.isolation.fork_server import ForkServer, Spawned
from autograder.isolation.limits import Limits, ending
from autograder.judge.parcel import Unreadable, read_file

LONGEST_LINE = 1000  # characters of a line that count
LARGEST_ANSWER = 16 << 20  # bytes
SCORING = 120  # seconds of a processor
LOOK = 5.0  # seconds between two reports on how far it is
SPARE_MB = 64  # of the scratch disk, beside the files
NO_REASON = "it gave no reason for having no answer"
_KILLED = ending(9)
_FOLDER = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)

Report = Callable[[float], None]  # is told the seconds of a processor that an entry has used so far


class Contest(Protocol):
    """What `begin` of a course's module gives."""

    given: Mapping[str, bytes]  # files for every entry
    right: Sequence[str]  # the right answers, which no entry is given

    def kind(self, names: Sequence[str]) -> str:
        """What an entry with these files is, for the table; ValueError if it is none."""
        ...

    def score(self, said: Sequence[str]) -> Mapping[str, float]:
        """Scores by name, larger ones better; the first decides."""
        ...


class Plug(Protocol):
    """A course's module of contests.

    `begin` runs here and may raise ValueError. `enter(folder, seconds=...)` runs in the sandbox: it
    finds the entry in folder/"entry" and what was given in folder/"given", may train for so many
    seconds of a processor, and returns a line of text for each right answer; a ValueError refuses
    the entry.
    """

    __name__: str
    __file__: str
    PACKAGES: Sequence[str]  # what it imports from the course
    FILES: Sequence[str]  # names of files that an entry may hold

    def begin(self, settings: Mapping[str, Any], root: Path) -> Contest:
        """The contest that the course's settings describe; paths in them begin at its root."""
        ...

    def enter(self, folder: Path, *, seconds: float) -> Sequence[str]:
        """What an entry says."""
        ...


@dataclass(frozen=True)
class Budget:
    """What each entry may use; the same for all."""

    minutes: float = 10.0  # of a processor, to train
    answer_minutes: float = 2.0  # of a processor, for everything else
    memory_mb: int = 4096
    file_mb: int = 100  # of all files that are handed in together

    @property
    def seconds(self) -> float:
        """Of a processor, altogether."""
        return 60 * (self.minutes + self.answer_minutes)


@dataclass(frozen=True)
class Outcome:
    """What came of an entry."""

    kind: str = ""
    scores: Mapping[str, float] = field(default_factory=dict[str, float])
    seconds: float = 0.0  # of a processor
    failed: str = ""  # one sentence, if it failed
    in_doubt: bool = False  # the machine may have ended it: the next run tries again


class Failed(Exception):
    """Why an entry has no score."""


class InDoubt(Failed):
    """The same, where it may have been the machine."""


def take(folder: Path, names: Sequence[str], limit_mb: int) -> dict[str, bytes]:
    """The files of these names in an entry's folder; no link is followed, nothing else looked at.

    Raises:
        Failed: if the folder is none, a file is a link or a pipe, or they are too large.
    """
    try:
        above = os.open(folder, _FOLDER)
    except OSError as error:
        raise Failed(f"its folder is a link or cannot be read ({error.strerror})") from error
    try:
        files: dict[str, bytes] = {}
        for name in names:
            with suppress(FileNotFoundError):
                os.stat(name, dir_fd=above, follow_symlinks=False)
                files[name] = read_file(Path(name), limit_mb * 1_000_000, above)
            if sum(map(len, files.values())) > limit_mb * 1_000_000:
                raise Failed(f"its files are larger than {limit_mb} MB together; hand in less")
        return files
    except (Unreadable, OSError) as error:
        raise Failed(f"{error}; hand it in as a plain file") from error
    finally:
        os.close(above)


@dataclass(frozen=True)
class Arena:
    """Where entries run, by which contest, and what each may use."""

    plug: Plug
    contest: Contest
    readable: Sequence[Path]
    budget: Budget
    private: Sequence[str] = ()  # folders that no entry sees, even among the system's
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])  # the module's own

    def enter(self, files: Mapping[str, bytes], report: Report) -> Outcome:
        """Run one entry and score it; every end of it is an outcome."""
        kind = ""
        try:
            try:
                kind = self.contest.kind(sorted(files))
            except ValueError as error:
                raise Failed(str(error)) from error
            except Exception as error:  # a slip of the module's, which may be about these names
                words = f"{self.plug.__name__} cannot say what it is"
                raise Failed(f"{words} ({type(error).__name__}: {error})") from error
            text, seconds = self._run(files, report)
            scores = self._scored(text)
        except Failed as error:
            words = visible(" ".join(str(error).split())) or NO_REASON  # without one it had won
            return Outcome(kind, failed=words, in_doubt=isinstance(error, InDoubt))
        return Outcome(kind, scores, seconds)

    def _run(self, files: Mapping[str, bytes], report: Report) -> tuple[str, float]:
        """What it said, and the seconds of a processor that it took."""
        packed = {f"{ENTRY}/{name}": content for name, content in files.items()}
        packed |= {f"{GIVEN}/{name}": content for name, content in self.contest.given.items()}
        asked = {
            "module": self.plug.__name__,
            "function": "enter",
            "arguments": {"seconds": 60 * self.budget.minutes},
        }
        megabytes = sum(map(len, packed.values())) // 1_000_000 + SPARE_MB
        limits = Limits(
            memory_mb=self.budget.memory_mb,
            cpu_seconds=max(1, round(self.budget.seconds)),
            file_mb=megabytes,
            disk_mb=megabytes,
        )
        # a warm process of its own: what one entry does to it costs no other
        told = {"student": "autograder.isolation.called", "private": self.private}
        with (
            ForkServer([self.plug.__name__], self.readable, limits=limits, **told) as made,
            made.spawn() as spawned,
        ):
            line = _Line(spawned, self.budget.seconds, report)
            line.send(question(asked, packed))
            kind, size = ANSWER.unpack(line.read(ANSWER.size))
            if size > LARGEST_ANSWER:
                raise Failed("it answered with more text than a contest reads")
            text = line.read(size).decode("utf-8", "replace")
        if kind != LINES:
            raise Failed(text[:500])
        if spawned.seconds is None:
            raise InDoubt("nobody knows what time of a processor it took")
        return text, spawned.seconds

    def _scored(self, text: str) -> dict[str, float]:
        said = [one[:LONGEST_LINE] for one in text.split("\n")]
        if len(said) != len(self.contest.right):
            raise Failed(f"it gave {len(said):,} lines for {len(self.contest.right):,} questions")
        scored = apart(partial(self._score, said), SCORING)
        if not isinstance(scored, dict) or not scored:
            raise Failed("what it said could not be scored")
        for name, value in scored.items():
            if not math.isfinite(value):  # nothing is above or below that
                raise Failed(f"what it said has no score: its {name} is {value}")
        return scored

    def _score(self, said: Sequence[str]) -> dict[str, float]:
        return {name: float(value) for name, value in self.contest.score(said).items()}


class _Line:
    """The line to an entry's process, for as much work as it may do."""

    def __init__(self, spawned: Spawned, seconds: float, report: Report) -> None:
        self.spawned = spawned
        self.clock = Clock(seconds, spawned)
        self.report = report

    def send(self, content: bytes) -> None:
        """Send all of it."""
        rest = memoryview(content)
        while rest:
            rest = rest[self._tried(partial(self.spawned.sock.send, rest)) :]

    def read(self, size: int) -> bytes:
        """So many bytes."""
        found = bytearray()
        while len(found) < size:
            part = self._tried(partial(self.spawned.sock.recv, min(size - len(found), 1 << 16)))
            if not part:
                raise self._gone()
            found += part
        return bytes(found)

    def _tried(self, step: Any) -> Any:
        """What one step gives; waits no longer than is left."""
        while True:
            try:
                self.spawned.sock.settimeout(min(max(self.clock.left(), SOON), LOOK))
                return step()
            except TimeoutError:
                self.report(self.clock.worked())
            except (Over, OSError):
                raise self._gone() from None

    def _gone(self) -> Failed:
        """In words, why nothing more comes."""
        if self.clock.is_over:
            return Failed("it took longer than the budget allows; make it smaller or shorter")
        told = self.spawned.ended(5.0) or "ended without an answer"
        words = f"its process {told}"
        return InDoubt(words) if told == _KILLED else Failed(f"{words}; try it on your machine")

"""The journal beside a gradebook: what was graded, written down before anything else is touched.

One line of JSON for each step, only ever appended: "graded" with the whole result, "stored" once
gradebook and files hold it, "changed" with the grade that somebody has from then on (`changes`),
and "book", by which the gradebook is known again. A grader that is stopped at any moment leaves at
worst a torn last line; the next one stores what was graded and not yet stored, and grades the rest.
A line that cannot be read, for whatever reason, counts as not written: what it said is graded
again. When most of the journal is outdated it is written anew without that; what has changed stays
for ever.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from autograder.classroom.journal_lines import (
    Graded,
    Who,
    bounded,
    graded_of,
    line_of,
    read_graded,
    read_json,
    require_text,
    who_of,
)
from autograder.classroom.journal_lock import Lock
from autograder.common.failures import in_words
from autograder.common.results import Result
from autograder.common.whole import require_file

if TYPE_CHECKING:
    from autograder.classroom.classes import Class


MAX_LINE = 100_000_000  # bytes of one step
FEW = 1_000_000  # bytes of outdated lines that are no reason to write the others again
CHANGED = b'{"changed": '  # begins a line that is never dropped


@dataclass
class _Line:
    key: str
    offset: int  # where the "graded" line begins
    secret: str = ""
    in_doubt: bool = False
    stored: bool = False
    size: int = 0  # bytes of what the journal says of it that is not outdated
    before: "_Line | None" = None  # whose result the gradebook holds until this one is stored

    def follows(self, had: "_Line | None") -> None:
        """Take the place of an earlier line."""
        if had is not None:
            self.before = had if had.stored else had.before

    def store(self) -> None:
        """Note that the gradebook holds it."""
        self.stored, self.before = True, None


@dataclass
class _Index:
    """Where in a journal everything stands that still holds."""

    lines: dict[Who, _Line] = field(default_factory=dict)
    changes: dict[Who, list[int]] = field(default_factory=dict)  # where these lines begin
    name: str = ""  # the journal's own
    signs: dict[str, str] = field(default_factory=dict)  # left in the gradebook, by assignment
    end: int = 0  # of the last whole line
    changed: int = 0  # bytes of those lines
    unread: int = 0  # lines that cannot be read

    @property
    def outdated(self) -> int:
        """Bytes that say what holds no more."""
        return self.end - self.changed - sum(line.size for line in self.lines.values())


class Journal:
    """A class's journal, open for one grader; use as a context manager.

    Only keys and places are held in memory, so a class may be as large as it likes.
    """

    def __init__(self, taught: "Class"):
        """Take the lock, drop what is outdated, and go on at the end."""
        self._path = taught.journal
        taught.share()
        with in_words(self._path):
            taught.folder.mkdir(parents=True, exist_ok=True)
            require_file(self._path)
            self._lock = Lock(self._path.with_suffix(".lock"), taught.folder)
            try:
                self._index = _ready(self._path)
                self._file = self._path.open("ab", buffering=0)
            except BaseException:
                self._lock.release()
                raise

    def __enter__(self) -> "Journal":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let the next grader in."""
        self._file.close()
        self._lock.release()

    def key(self, student: str, assignment: str) -> str:
        """What the last grade of this submission was made from; empty if there is none."""
        line = self._index.lines.get((student, assignment))
        return line.key if line else ""

    def is_in_doubt(self, student: str, assignment: str) -> bool:
        """Whether the last grade of this submission may be the machine's fault."""
        line = self._index.lines.get((student, assignment))
        return line is not None and line.in_doubt

    def graded(self, graded: Graded) -> None:
        """Write a result down, where the end of this process cannot lose it."""
        offset = self._file.tell()
        self._append({"graded": asdict(bounded(graded))})
        line = _Line(graded.result.key, offset, in_doubt=graded.in_doubt)
        line.follows(self._index.lines.get(who_of(graded.result)))
        self._index.lines[who_of(graded.result)] = line

    def settle(self) -> None:
        """See that what was written is on the disk, where a power cut cannot lose it."""
        with in_words(self._path):
            os.fsync(self._file.fileno())

    def stored(self, result: Result) -> None:
        """Note that gradebook and files hold this result."""
        self._append({"stored": [result.student, result.assignment, result.key]})
        self._index.lines[who_of(result)].store()

    def changed(self, content: dict[str, Any]) -> None:
        """Write down the grade that a submission has from now on; it names student, assignment."""
        offset = self._file.tell()
        self._append({"changed": content})
        who = content["student"], content["assignment"]
        self._index.changes.setdefault(who, []).append(offset)

    def last_change(self, student: str, assignment: str) -> dict[str, Any] | None:
        """The newest of those of a submission."""
        offsets = self._index.changes.get((student, assignment))
        if not offsets:
            return None
        with self._path.open("rb") as file:
            file.seek(offsets[-1])
            return read_json(file.readline())["changed"]

    def changes(self, student: str, assignment: str) -> list[dict[str, Any]]:
        """All of them that can be read, oldest first."""
        if not (offsets := self._index.changes.get((student, assignment), ())):
            return []
        with self._path.open("rb") as file:
            return list(_changes_at(file, offsets))

    @property
    def name(self) -> str:
        """By which the gradebook knows this journal; empty before it has left a sign there."""
        return self._index.name

    def sign(self, assignment: str) -> str:
        """What was last left in the gradebook, to know it by again; empty if nothing was."""
        return self._index.signs.get(assignment, "")

    def signed(self, name: str, assignment: str, sign: str) -> None:
        """Note what was left there."""
        self._append({"book": [name, assignment, sign]})
        self._index.name = name
        self._index.signs[assignment] = sign

    def assignments(self) -> set[str]:
        """Those of which something was graded."""
        return {assignment for _, assignment in self._index.lines}

    def results(self) -> Iterator[Graded]:
        """The newest result of every submission, one after another."""
        for who in list(self._index.lines):
            yield self.last(*who)

    def unstored(self) -> Iterator[Graded]:
        """What an interrupted grader wrote down and did not get to store."""
        waiting = [line.offset for line in self._index.lines.values() if not line.stored]
        with self._path.open("rb") as file:
            for offset in waiting:
                yield _graded_at(file, offset)

    def stored_before(self, student: str, assignment: str) -> Graded | None:
        """The result that the gradebook holds while the newest one is not stored, if any."""
        before = self._index.lines[student, assignment].before
        if before is None:
            return None
        with self._path.open("rb") as file:
            return _graded_at(file, before.offset)

    def last(self, student: str, assignment: str) -> Graded:
        """The newest result of a submission that was graded."""
        with self._path.open("rb") as file:
            return _graded_at(file, self._index.lines[student, assignment].offset)

    def _append(self, content: dict[str, Any]) -> None:
        """Write a whole line or, where there is no room for it, nothing."""
        end, rest = self._file.tell(), memoryview(line_of(content))
        with in_words(self._path):
            try:
                while rest:
                    rest = rest[self._file.write(rest) :]
            except OSError:
                self._file.truncate(end)
                raise


def read_journal(taught: "Class") -> dict[Who, Result]:
    """The newest result of every submission graded so far, by student and assignment."""
    return {who_of(graded.result): graded.result for graded in results(taught)}


def results(taught: "Class") -> Iterator[Graded]:
    """The same one after another: a large class does not have to fit into memory."""
    if taught.journal.is_file():
        yield from results_in(taught.journal)


def results_in(path: Path) -> Iterator[Graded]:
    """The same of the journal in a file, wherever it comes from."""
    with in_words(path), path.open("rb") as file:
        for line in sorted(_read_index(file).lines.values(), key=lambda line: line.offset):
            yield _graded_at(file, line.offset)


def unread_in(path: Path) -> str:
    """How much of a journal is damaged, in a sentence; empty if nothing is."""
    if not path.is_file():
        return ""
    with in_words(path), path.open("rb") as file:
        many = _read_index(file).unread
    lines = "1 line of it" if many == 1 else f"{many} lines of it"
    return (
        f"{path}: {lines} cannot be read, damaged or of another version; "
        "what stood there is not known."
        if many
        else ""
    )


def read_changes(taught: "Class") -> dict[Who, list[dict[str, Any]]]:
    """How every grade came to be what it is, oldest first, by student and assignment."""
    if not taught.journal.is_file():
        return {}
    with in_words(taught.journal), taught.journal.open("rb") as file:
        found: dict[Who, list[dict[str, Any]]] = {}
        for who, offsets in _read_index(file).changes.items():
            if changes := list(_changes_at(file, offsets)):
                found[who] = changes
    found.pop(("", ""), None)
    return found


def secrets(taught: "Class") -> dict[Who, tuple[str, str]]:
    """The secret and the key of every submission graded so far, by student and assignment."""
    if not taught.journal.is_file():
        return {}
    with taught.journal.open("rb") as file:
        lines = _read_index(file).lines
        return {who: (line.secret, line.key) for who, line in lines.items()}


def _graded_at(file: BinaryIO, offset: int) -> Graded:
    file.seek(offset)
    return graded_of(file.readline())


def _changes_at(file: BinaryIO, offsets: Iterable[int]) -> Iterator[dict[str, Any]]:
    for offset in offsets:
        file.seek(offset)
        with suppress(ValueError):
            yield read_json(file.readline())["changed"]


def _read_index(file: BinaryIO) -> _Index:
    """Where the newest readable result of each submission stands, and all that changed."""
    index = _Index()
    offset = 0
    whole = True  # whether the text begins where a line does
    while text := file.readline(MAX_LINE):
        ends = text.endswith(b"\n")
        if whole and ends:
            _note(index, text, offset)
        whole = ends
        offset += len(text)
        if ends:
            index.end = offset
    return index


def _note(index: _Index, text: bytes, offset: int) -> None:
    who: Who = "", ""
    try:
        content = read_json(text)
        if "graded" in content:
            graded = read_graded(content["graded"])
            line = _Line(graded.result.key, offset, graded.secret, graded.in_doubt)
            line.size = len(text)
            line.follows(index.lines.get(who_of(graded.result)))
            index.lines[who_of(graded.result)] = line
        elif "stored" in content:
            student, assignment, key = content["stored"]
            line = index.lines.get((student, assignment))
            if line and line.key == key:
                line.size += 0 if line.stored else len(text)
                line.store()
        elif "book" in content:
            name, assignment, sign = content["book"]
            require_text(name, assignment, sign)
            index.name = name
            index.signs[assignment] = sign
        elif "changed" in content:
            changed = content["changed"]
            require_text(changed["student"], changed["assignment"])
            who = changed["student"], changed["assignment"]
    except (KeyError, TypeError, ValueError):  # torn by a power cut, or of another version
        index.unread += 1
    if text.startswith(CHANGED):
        index.changes.setdefault(who, []).append(offset)
        index.changed += len(text)


def _ready(path: Path) -> _Index:
    """See that a journal ends with a whole line and is not mostly outdated; what stands in it."""
    if not path.is_file():
        return _Index()
    with path.open("rb") as file:
        index = _read_index(file)
    if path.stat().st_size > index.end:
        os.truncate(path, index.end)
    if index.outdated > max(index.end - index.outdated, FEW):
        with suppress(OSError):  # a full disk: it stays as it is
            return _compacted(path, index)
    return index


def _live_lines(file: BinaryIO, index: _Index) -> Iterator[bytes]:
    """What of a journal is not outdated, in its order."""
    lines = [(line, who) for who, line in index.lines.items()]
    lines += [(line.before, who) for line, who in lines if line.before is not None]
    places: list[tuple[int, tuple[_Line, Who] | None]] = [(one[0].offset, one) for one in lines]
    places += [(offset, None) for offsets in index.changes.values() for offset in offsets]
    for offset, found in sorted(places, key=lambda place: place[0]):
        file.seek(offset)
        yield file.readline()
        if found and found[0].stored:
            yield line_of({"stored": [*found[1], found[0].key]})
    for assignment, sign in index.signs.items():
        yield line_of({"book": [index.name, assignment, sign]})


def _compacted(path: Path, index: _Index) -> _Index:
    """Write a journal anew without what is outdated; where everything stands then."""
    partial = path.with_suffix(".part")
    try:
        partial.unlink(missing_ok=True)
        with path.open("rb") as old, partial.open("x+b") as new:
            new.writelines(_live_lines(old, index))
            new.flush()
            os.fsync(new.fileno())
            new.seek(0)
            index = _read_index(new)
        partial.replace(path)
    except OSError:
        partial.unlink(missing_ok=True)
        raise
    return index

"""The journal beside a gradebook: what was graded, written down before anything else is touched.

One line of JSON for each step, only ever appended: "graded" with the whole result, "stored" once
gradebook and files hold it, "changed" with the grade that somebody has from then on (`history`),
and "book", by which the gradebook is known again. A grader that is stopped at any moment leaves at
worst a torn last line; the next one stores what was graded and not yet stored, and grades the rest.
A line that cannot be read, for whatever reason, counts as not written: what it said is graded
again. When most of the journal is outdated it is written anew without that; what has changed stays
for ever.
"""

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, get_args

from autograder.common.course import CourseError
from autograder.common.failures import in_words
from autograder.common.results import Cost, Flag, NotebookResult, Result, Status, Verdict

if TYPE_CHECKING:
    from autograder.classroom.classes import Class

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

Who = tuple[str, str]  # student, assignment
MAX_LINE = 100_000_000  # bytes of one step
MAX_NAME = 300  # characters of an id, a place, a name
MAX_SAID = 4000  # characters of one sentence
MAX_NOTES = 100  # sentences of one kind
MAX_SOURCE = 200_000  # characters of one answer
MAX_PRINTED = 20_000  # characters that one cell printed
MAX_EXTRA = 500  # cells of the student's own
MAX_EXTRA_TEXT = 1_000_000  # characters of those together
FEW = 1_000_000  # bytes of outdated lines that are no reason to write the others again
CHANGED = b'{"changed": '  # begins a line that is never dropped
STATUSES = frozenset(get_args(Status))

_held: set[Path] = set()  # locks of this process: the system's locks do not bind within one


@dataclass(frozen=True)
class Graded:
    """A result, and what else is known of the submission."""

    result: Result
    collected: float | None = None  # when, in seconds since 1970
    secret: str = ""  # by which its student fetches the feedback, see `parcel`
    in_doubt: bool = False  # the machine may have ended it: the next run grades it once more
    stamp: str = ""  # what timestamp.txt says, which its student may have written
    made_of: Mapping[str, str] = field(default_factory=dict)  # digests: "work", "tests"


class Busy(CourseError):
    """Another grader is at work."""


@dataclass
class _Line:
    key: str
    offset: int  # where the "graded" line begins
    secret: str = ""
    in_doubt: bool = False
    stored: bool = False
    size: int = 0  # bytes of what the journal says of it that is not outdated


@dataclass
class _Index:
    """Where in a journal everything stands that still holds."""

    lines: dict[Who, _Line] = field(default_factory=dict)
    changes: dict[Who, list[int]] = field(default_factory=dict)  # where these lines begin
    name: str = ""  # the journal's own
    signs: dict[str, str] = field(default_factory=dict)  # left in the gradebook, by assignment
    end: int = 0  # of the last whole line
    changed: int = 0  # bytes of those lines

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
            self._lock = _Lock(self._path.with_suffix(".lock"), taught.folder)
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
        self._index.lines[_who(graded.result)] = line

    def settle(self) -> None:
        """See that what was written is on the disk, where a power cut cannot lose it."""
        with in_words(self._path):
            os.fsync(self._file.fileno())

    def stored(self, result: Result) -> None:
        """Note that gradebook and files hold this result."""
        self._append({"stored": [result.student, result.assignment, result.key]})
        self._index.lines[_who(result)].stored = True

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
            return _json(file.readline())["changed"]

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
                file.seek(offset)
                yield _of_line(file.readline())

    def last(self, student: str, assignment: str) -> Graded:
        """The newest result of a submission that was graded."""
        with self._path.open("rb") as file:
            file.seek(self._index.lines[student, assignment].offset)
            return _of_line(file.readline())

    def _append(self, content: dict[str, Any]) -> None:
        """Write a whole line or, where there is no room for it, nothing."""
        end, rest = self._file.tell(), memoryview(_line(content))
        with in_words(self._path):
            try:
                while rest:
                    rest = rest[self._file.write(rest) :]
            except OSError:
                self._file.truncate(end)
                raise


def read_journal(taught: "Class") -> dict[Who, Result]:
    """The newest result of every submission graded so far, by student and assignment."""
    return {_who(graded.result): graded.result for graded in results(taught)}


def results(taught: "Class") -> Iterator[Graded]:
    """The same one after another: a large class does not have to fit into memory."""
    if not taught.journal.is_file():
        return
    with taught.journal.open("rb") as file:
        for line in sorted(_read_index(file).lines.values(), key=lambda line: line.offset):
            file.seek(line.offset)
            yield _of_line(file.readline())


def read_changes(taught: "Class") -> dict[Who, list[dict[str, Any]]]:
    """How every grade came to be what it is, oldest first, by student and assignment."""
    if not taught.journal.is_file():
        return {}
    with in_words(taught.journal), taught.journal.open("rb") as file:
        found: dict[Who, list[dict[str, Any]]] = {}
        for who, offsets in _read_index(file).changes.items():
            for offset in offsets:
                file.seek(offset)
                with suppress(ValueError):
                    found.setdefault(who, []).append(_json(file.readline())["changed"])
    found.pop(("", ""), None)
    return found


def secrets(taught: "Class") -> dict[Who, tuple[str, str]]:
    """The secret and the key of every submission graded so far, by student and assignment."""
    if not taught.journal.is_file():
        return {}
    with taught.journal.open("rb") as file:
        lines = _read_index(file).lines
        return {who: (line.secret, line.key) for who, line in lines.items()}


def bounded(graded: Graded) -> Graded:
    """The same of a size that every file and page can hold; an ordinary result stays as it is."""
    result, cost = graded.result, graded.result.cost
    collected = graded.collected
    if collected is not None and not math.isfinite(collected):
        collected = None
    flags = tuple(
        replace(flag, where=_cut(flag.where, MAX_NAME), words=_cut(flag.words, MAX_SAID))
        for flag in result.flags[:MAX_NOTES]
    )
    smaller = replace(
        result,
        notebooks=tuple(map(_bounded_notebook, result.notebooks)),
        flags=flags,
        reason=_cut(result.reason, MAX_SAID),
        seconds=_finite(result.seconds),
        cost=Cost(_finite(cost.judge), _finite(cost.answers), cost.calls),
    )
    secret, stamp = _cut(graded.secret, MAX_NAME), _cut(graded.stamp, MAX_NAME)
    return replace(graded, result=smaller, collected=collected, secret=secret, stamp=stamp)


def _bounded_notebook(notebook: NotebookResult) -> NotebookResult:
    return replace(
        notebook,
        verdicts=tuple(map(_bounded_verdict, notebook.verdicts)),
        answers={name: _cut(text, MAX_SOURCE) for name, text in notebook.answers.items()},
        outputs={name: _cut(text, MAX_PRINTED) for name, text in notebook.outputs.items()},
        extra=tuple(_bounded_extra(notebook.extra)),
        notes=tuple(_cut(note, MAX_SAID) for note in notebook.notes[:MAX_NOTES]),
        reason=_cut(notebook.reason, MAX_SAID),
    )


def _bounded_verdict(verdict: Verdict) -> Verdict:
    return replace(
        verdict,
        score=_finite(verdict.score),
        told=_cut(verdict.told, MAX_SAID),
        said=_cut(verdict.said, MAX_SAID),
        misconception=_cut(verdict.misconception, MAX_NAME),
        read=_cut(verdict.read, MAX_NAME),
        stood_in=tuple(_cut(name, MAX_NAME) for name in verdict.stood_in[:MAX_NOTES]),
        seconds=_finite(verdict.seconds),
    )


def _bounded_extra(extra: Sequence[tuple[str, str, str]]) -> Iterator[tuple[str, str, str]]:
    left = MAX_EXTRA_TEXT
    for follows, kind, source in extra[:MAX_EXTRA]:
        if left <= 0:
            return
        yield follows, kind, _cut(source, min(left, MAX_SOURCE))
        left -= len(source)


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _finite(value: float) -> float:
    return value if math.isfinite(value) else 0.0


def _who(result: Result) -> Who:
    return result.student, result.assignment


def _json(text: bytes) -> Any:
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("this JSON is nested too deeply") from error


def _of_line(text: bytes) -> Graded:
    return _graded(_json(text)["graded"])


def _graded(content: Any) -> Graded:
    """A result from what JSON gives; ValueError if a field is missing, odd or of another type."""
    try:
        collected = content["collected"]
        _require(collected is None or _is_number(collected))
        secret = content.get("secret", "")
        stamp = content.get("stamp", content.get("told", ""))  # as it was called before
        _require_text(secret, stamp)
        in_doubt = content.get("in_doubt", False)
        _require(isinstance(in_doubt, bool))
        made_of = content.get("made_of", {})
        _require_text(*made_of.keys(), *made_of.values())
        result = _result(content["result"])
        return bounded(Graded(result, collected, secret, in_doubt, stamp, made_of))
    except (AttributeError, KeyError, OverflowError, TypeError) as error:
        raise ValueError(f"this is not what a grader of today writes: {error}") from error


def _result(content: dict[str, Any]) -> Result:
    notebooks = tuple(_notebook(notebook) for notebook in content["notebooks"])
    flags = tuple(Flag(**flag) for flag in content["flags"])
    cost = Cost(**content.get("cost", {}))
    result = Result(**content | {"notebooks": notebooks, "flags": flags, "cost": cost})
    for flag in flags:
        _require_text(flag.kind, flag.where, flag.words)
    _require_text(result.student, result.assignment, result.key, result.reason)
    _require(all(map(_is_number, (result.seconds, cost.judge, cost.answers, cost.calls))))
    return result


def _notebook(content: dict[str, Any]) -> NotebookResult:
    lists: dict[str, Any] = {
        "verdicts": tuple(_verdict(verdict) for verdict in content["verdicts"]),
        "extra": tuple(tuple(cell) for cell in content["extra"]),
        "notes": tuple(content["notes"]),
    }
    notebook = NotebookResult(**content | lists)
    _require(all(len(cell) == 3 for cell in notebook.extra))
    _require_text(*(part for cell in notebook.extra for part in cell), *notebook.notes)
    _require_text(*notebook.answers.values(), *notebook.outputs.values())
    _require_text(notebook.name, notebook.reason)
    return notebook


def _verdict(content: dict[str, Any]) -> Verdict:
    names: dict[str, Any] = {"stood_in": tuple(content["stood_in"])}
    verdict = Verdict(**content | names)
    _require(verdict.status in STATUSES and isinstance(verdict.hidden, bool))
    _require(all(map(_is_number, (verdict.score, verdict.points, verdict.seconds))))
    _require_text(verdict.test, verdict.told, verdict.said, verdict.misconception, verdict.read)
    _require_text(*verdict.stood_in)
    return verdict


def _require_text(*values: object) -> None:
    _require(all(isinstance(value, str) for value in values))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _require(holds: bool) -> None:
    if not holds:
        raise TypeError("a field has another type")


def _line(content: dict[str, Any]) -> bytes:
    return json.dumps(content).encode() + b"\n"


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
        content = _json(text)
        if "graded" in content:
            graded = _graded(content["graded"])
            line = _Line(graded.result.key, offset, graded.secret, graded.in_doubt)
            line.size = len(text)
            index.lines[_who(graded.result)] = line
        elif "stored" in content:
            student, assignment, key = content["stored"]
            line = index.lines.get((student, assignment))
            if line and line.key == key:
                line.size += 0 if line.stored else len(text)
                line.stored = True
        elif "book" in content:
            name, assignment, sign = content["book"]
            _require_text(name, assignment, sign)
            index.name = name
            index.signs[assignment] = sign
        elif "changed" in content:
            changed = content["changed"]
            _require_text(changed["student"], changed["assignment"])
            who = changed["student"], changed["assignment"]
    except (KeyError, TypeError, ValueError):  # torn by a power cut, or of another version
        pass
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
    places: list[tuple[int, Who | None]] = [(line.offset, who) for who, line in index.lines.items()]
    places += [(offset, None) for offsets in index.changes.values() for offset in offsets]
    for offset, who in sorted(places, key=lambda place: place[0]):
        file.seek(offset)
        yield file.readline()
        if who and index.lines[who].stored:
            yield _line({"stored": [*who, index.lines[who].key]})
    for assignment, sign in index.signs.items():
        yield _line({"book": [index.name, assignment, sign]})


def _compacted(path: Path, index: _Index) -> _Index:
    """Write a journal anew without what is outdated; where everything stands then."""
    partial = path.with_suffix(".part")
    try:
        with path.open("rb") as old, partial.open("w+b") as new:
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


class _Lock:
    """Held by one grader at a time; the system lets go of it when its process ends, however."""

    def __init__(self, path: Path, folder: Path):
        self._path = path.resolve()
        if self._path in _held:
            raise _taken(folder, os.getpid())
        self._file = self._path.open("a+b", buffering=0)
        if not _locked(self._file):
            self._file.seek(0)
            holder = self._file.read().decode(errors="replace").strip()
            self._file.close()
            raise _taken(folder, holder)
        _held.add(self._path)
        with suppress(OSError):  # a full disk: it is locked all the same, without saying by whom
            self._file.truncate(0)
            self._file.write(str(os.getpid()).encode())

    def release(self) -> None:
        self._file.close()
        _held.discard(self._path)


def _taken(folder: Path, holder: object) -> Busy:
    return Busy(
        f"Another grader (process {holder}) is at work in {folder}; wait until it is done, or "
        "stop it and run the command again."
    )


def _locked(file: BinaryIO) -> bool:
    """Lock a file for this process alone: not, as flock would, for all that it forks."""
    try:
        if fcntl:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            import msvcrt

            file.seek(0x7FFFFFFF)  # beyond the text, which others may read
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # pyright: ignore[reportAttributeAccessIssue]
    except OSError:
        return False
    return True

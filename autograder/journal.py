"""The journal beside a gradebook: what was graded, written down before anything else is touched.

One line of JSON for each step, only ever appended: "graded" with the whole result, and "stored"
once gradebook and files hold it. A grader that is stopped at any moment leaves at worst a torn last
line; the next one stores what was graded and not yet stored, and grades the rest.
"""

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from autograder.course import CourseError
from autograder.results import Flag, NotebookResult, Result, Verdict

if TYPE_CHECKING:
    from autograder.taught import Class

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

Who = tuple[str, str]  # student, assignment

_held: set[Path] = set()  # locks of this process: the system's locks do not bind within one


@dataclass(frozen=True)
class Graded:
    """A result and when the submission was collected (seconds since 1970), if that is known."""

    result: Result
    collected: float | None = None


@dataclass
class _Line:
    key: str
    offset: int  # where the "graded" line begins
    stored: bool = False


class Journal:
    """A class's journal, open for one grader; use as a context manager.

    Only keys and places are held in memory, so a class may be as large as it likes.
    """

    def __init__(self, taught: "Class"):
        """Take the lock, drop what is outdated, and go on at the end."""
        taught.folder.mkdir(parents=True, exist_ok=True)
        self._path = taught.journal
        self._lock = _Lock(self._path.with_suffix(".lock"), taught.folder)
        self._index = _compact(self._path)
        self._file = self._path.open("ab")

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
        line = self._index.get((student, assignment))
        return line.key if line else ""

    def graded(self, graded: Graded) -> None:
        """Write a result down, where the end of this process cannot lose it."""
        offset = self._file.tell()
        self._append({"graded": asdict(graded)})
        self._index[_who(graded.result)] = _Line(graded.result.key, offset)

    def settle(self) -> None:
        """See that what was written is on the disk, where a power cut cannot lose it."""
        os.fsync(self._file.fileno())

    def stored(self, result: Result) -> None:
        """Note that gradebook and files hold this result."""
        self._append({"stored": [result.student, result.assignment, result.key]})
        self._index[_who(result)].stored = True

    def unstored(self) -> Iterator[Graded]:
        """What an interrupted grader wrote down and did not get to store."""
        waiting = [line.offset for line in self._index.values() if not line.stored]
        with self._path.open("rb") as file:
            for offset in waiting:
                file.seek(offset)
                yield _graded(json.loads(file.readline())["graded"])

    def _append(self, content: dict[str, Any]) -> None:
        self._file.write(_line(content))
        self._file.flush()


def read_journal(taught: "Class") -> dict[Who, Result]:
    """The newest result of every submission graded so far, by student and assignment."""
    return {_who(graded.result): graded.result for graded in results(taught)}


def results(taught: "Class") -> Iterator[Graded]:
    """The same one after another: a large class does not have to fit into memory."""
    if not taught.journal.is_file():
        return
    with taught.journal.open("rb") as file:
        for line in sorted(_read_index(file).values(), key=lambda line: line.offset):
            file.seek(line.offset)
            yield _graded(json.loads(file.readline())["graded"])


def _who(result: Result) -> Who:
    return result.student, result.assignment


def _graded(content: dict[str, Any]) -> Graded:
    return Graded(_result(content["result"]), content["collected"])


def _result(content: dict[str, Any]) -> Result:
    notebooks = tuple(_notebook(notebook) for notebook in content["notebooks"])
    flags = tuple(Flag(**flag) for flag in content["flags"])
    return Result(**content | {"notebooks": notebooks, "flags": flags})


def _notebook(content: dict[str, Any]) -> NotebookResult:
    verdicts = tuple(
        Verdict(**verdict | {"stood_in": tuple(verdict["stood_in"])})
        for verdict in content["verdicts"]
    )
    lists = {
        "verdicts": verdicts,
        "extra": tuple(tuple(cell) for cell in content["extra"]),
        "notes": tuple(content["notes"]),
    }
    return NotebookResult(**content | lists)


def _line(content: dict[str, Any]) -> bytes:
    return json.dumps(content).encode() + b"\n"


def _read_index(file: BinaryIO) -> dict[Who, _Line]:
    """Where the newest result of each submission stands."""
    index: dict[Who, _Line] = {}
    offset = 0
    for text in file:
        _note(index, text, offset)
        offset += len(text)
    return index


def _note(index: dict[Who, _Line], text: bytes, offset: int) -> None:
    try:
        content = json.loads(text) if text.endswith(b"\n") else {}
    except ValueError:  # torn by a power cut; what it said is done again
        return
    if "graded" in content:
        result = content["graded"]["result"]
        index[result["student"], result["assignment"]] = _Line(result["key"], offset)
    elif "stored" in content:
        student, assignment, key = content["stored"]
        line = index.get((student, assignment))
        if line and line.key == key:
            line.stored = True


def _compact(path: Path) -> dict[Who, _Line]:
    """Keep the newest lines of each submission only; returns where they stand now."""
    if not path.is_file():
        return {}
    partial = path.with_suffix(".part")
    with path.open("rb") as old, partial.open("wb") as new:
        index = _read_index(old)
        for (student, assignment), line in index.items():
            old.seek(line.offset)
            line.offset = new.tell()
            new.write(old.readline())
            if line.stored:
                new.write(_line({"stored": [student, assignment, line.key]}))
        new.flush()
        os.fsync(new.fileno())
    partial.replace(path)
    return index


class _Lock:
    """Held by one grader at a time; the system lets go of it when its process ends, however."""

    def __init__(self, path: Path, folder: Path):
        self._path = path.resolve()
        if self._path in _held:
            raise _taken(folder, os.getpid())
        self._file = self._path.open("a+b")
        if not _locked(self._file):
            self._file.seek(0)
            holder = self._file.read().decode(errors="replace").strip()
            self._file.close()
            raise _taken(folder, holder)
        _held.add(self._path)
        self._file.truncate(0)
        self._file.write(str(os.getpid()).encode())
        self._file.flush()

    def release(self) -> None:
        self._file.close()
        _held.discard(self._path)


def _taken(folder: Path, holder: object) -> CourseError:
    return CourseError(
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

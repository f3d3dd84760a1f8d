"""Where the parts of a course lie: one small map that every other module asks."""

import gc
import importlib.util
import os
import sys
import traceback
import types
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any


class CourseError(Exception):
    """Something the person at the keyboard has to mend; one sentence: what, where, what to do."""


@dataclass(frozen=True)
class Course:
    """A course directory: sources in `solutions/`, notebooks where nbgrader's settings say."""

    root: Path

    @classmethod
    def find(cls, start: Path | None = None) -> "Course":
        """The course that holds `start` (by default the working directory)."""
        try:
            here = (start or Path.cwd()).resolve()
        except FileNotFoundError:
            raise CourseError(
                "The folder in which this command runs was deleted; go to the course."
            ) from None
        for folder in (here, *here.parents):
            if (folder / "nbgrader_config.py").is_file():
                return cls(folder)
        raise CourseError(
            f"No course found: neither {here} nor a folder above it holds nbgrader_config.py; "
            "run the command inside the course."
        )

    def chapters(self) -> list[str]:
        """Names of the chapters that have a source, in order."""
        return sorted(
            folder.name
            for folder in (self.root / "solutions").glob("[0-9][0-9]_*")
            if folder.is_dir()
        )

    def select(self, names: Sequence[str]) -> list[str]:
        """These chapters, or all; a name that is none is an error."""
        known = self.chapters()
        for name in names:
            if name not in known:
                raise CourseError(
                    f"There is no chapter {name!r} in solutions/; the chapters are "
                    f"{', '.join(known) or '(none yet)'}."
                )
        return [name for name in known if not names or name in names]

    def source(self, chapter: str) -> Path:
        """The one text source of a chapter's exercise."""
        return self.root / "solutions" / chapter / f"{chapter}.py"

    def misconceptions(self, chapter: str) -> Path:
        """Known wrong answers, beside the source."""
        return self.root / "solutions" / chapter / "misconceptions.py"

    def variants(self, chapter: str) -> Path:
        """Right answers in other words; they test the tests."""
        return self.root / "tests" / "variants" / f"{chapter}.py"

    def instructor(self, chapter: str) -> Path:
        """The instructor's notebook, built from the source."""
        folder = self.setting("source_directory", "source")
        return self.root / folder / chapter / f"{chapter}.ipynb"

    def release(self, chapter: str) -> Path:
        """The student's notebook, committed."""
        folder = self.setting("release_directory", "release")
        return self.root / folder / chapter / f"{chapter}.ipynb"

    def setting(self, name: str, default: str) -> str:
        """What nbgrader_config.py says of nbgrader's `CourseDirectory`."""
        path = self.root / "nbgrader_config.py"
        changed = path.stat().st_mtime_ns if path.is_file() else 0
        return str(_settings(str(self.root), changed).get(name, default))

    def show(self, path: Path) -> str:
        """A path as a person in the course's root would write it."""
        return str(path.relative_to(self.root)) if path.is_relative_to(self.root) else str(path)


@lru_cache(maxsize=8)
def _settings(root: str, changed: int) -> Mapping[str, Any]:
    if not changed:
        return {}
    return read_config(Path(root)).CourseDirectory


def read_config(root: Path) -> Any:
    """A course's nbgrader_config.py, as nbgrader reads it; raises CourseError if it cannot be."""
    from traitlets.config.loader import PyFileConfigLoader

    path = root / "nbgrader_config.py"
    try:
        return PyFileConfigLoader(path.name, path=str(root)).load_config()
    except (Exception, SystemExit) as error:
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename == str(path)]
        line = error.lineno if isinstance(error, SyntaxError) else (lines or [None])[-1]
        where = f"line {line}: " if line else ""
        said = str(getattr(error, "msg", error)).partition("\n")[0]
        raise CourseError(
            f"{path} cannot be read ({where}{type(error).__name__}: {said}); mend it."
        ) from error


def use_own_tools() -> None:
    """Put this Python's scripts first on PATH: nbgrader calls `alembic` by name."""
    scripts = str(Path(sys.executable).parent)
    paths = os.environ.get("PATH", "").split(os.pathsep)
    if paths[0] != scripts:
        os.environ["PATH"] = os.pathsep.join([scripts, *paths])


def import_quickly() -> None:
    """Spare this process a second or more.

    What checks notebooks reads a grammar of web addresses; no notebook's format needs it, and what
    reads it does without where it is not installed.
    """
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)  # imports make no garbage, only work for its collector
    if "jsonschema" not in sys.modules:
        sys.modules.setdefault("rfc3987_syntax", None)  # pyright: ignore[reportArgumentType]


@contextmanager
def without_extensions() -> Iterator[None]:
    """Inside, parts of nbgrader are imported without its package's own file.

    That imports its extensions of Jupyter's server, and with them the server.
    """
    spec = importlib.util.find_spec("nbgrader") if "nbgrader" not in sys.modules else None
    if spec is None or spec.submodule_search_locations is None:
        yield
        return
    bare = sys.modules["nbgrader"] = types.ModuleType("nbgrader")
    bare.__path__ = spec.submodule_search_locations
    try:
        yield
    finally:
        del sys.modules["nbgrader"]

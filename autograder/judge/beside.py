"""The instructor's files beside a notebook, and the folder of its own in which its tests run."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import takewhile
from pathlib import Path

from autograder.judge.assignment import Assignment

MAX_GIVEN = 20_000_000  # bytes of the instructor's files beside a notebook


def modules(assignment: Assignment, files: Sequence[Path]) -> Iterator[str]:
    """The modules among files that lie beside the notebook."""
    for path in files:
        if path.suffix == ".py":
            name = ".".join(path.relative_to(assignment.folder).with_suffix("").parts)
            yield name.removesuffix(".__init__")  # a package goes by its folder


@lru_cache(maxsize=64)
def files_of(digest: str, folder: Path, files: tuple[Path, ...]) -> tuple[tuple[str, bytes], ...]:
    """The instructor's files beside the notebook, as far as there is room for them."""
    found, left = [], MAX_GIVEN
    for path in files:
        left -= path.stat().st_size
        if left >= 0:
            found.append((path.relative_to(folder).as_posix(), path.read_bytes()))
    return tuple(found)


def released(assignment: Assignment) -> Iterator[tuple[str, bytes]]:
    """Those of them that students have as well."""
    names = {path.relative_to(assignment.folder).as_posix() for path in assignment.released}
    given = files_of(assignment.digest, assignment.folder, assignment.files)
    return (file for file in given if file[0] in names)


class WorkingFolder:
    """A folder of its own where the instructor's files lie, and nothing else."""

    def __init__(self, assignment: Assignment) -> None:
        """Nothing is made yet."""
        self.given = files_of(assignment.digest, assignment.folder, assignment.files)
        self.folder = ""
        self.last = next(reversed(sys.modules))  # to touch them all would copy them into a fork

    def make(self) -> None:
        """Make a new one, and work there from now on."""
        self.folder = tempfile.mkdtemp()
        sys.path.insert(0, self.folder)  # the instructor's own modules
        for name, content in self.given:
            Path(self.folder, name).parent.mkdir(parents=True, exist_ok=True)
            Path(self.folder, name).write_bytes(content)
        os.chdir(self.folder)

    def leave(self) -> None:
        """Be done with it, and with the modules that came from there."""
        if not self.folder:
            return
        sys.path[:] = [path for path in sys.path if path != self.folder]
        new = takewhile(lambda name: name != self.last, reversed(sys.modules))
        for name in list(new):
            if str(getattr(sys.modules[name], "__file__", None)).startswith(self.folder + os.sep):
                del sys.modules[name]
        shutil.rmtree(self.folder, ignore_errors=True)


@contextmanager
def beside(assignment: Assignment) -> Iterator[WorkingFolder]:
    """Run what is inside where the instructor's files lie."""
    before, place = Path.cwd(), WorkingFolder(assignment)
    try:
        place.make()
        yield place
    finally:
        os.chdir(before)
        place.leave()

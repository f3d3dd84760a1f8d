"""nbgrader's own commands as this grader sees them: their class, their folders, how they end.

The folders of submissions that a command of nbgrader is about to go through are put right here, for
names that nbgrader takes for patterns or cannot have.
"""

import fnmatch
import glob
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nbgrader.converters.base import BaseConverter, NbGraderException
from nbgrader.coursedir import CourseDirectory

from autograder.classroom.classes import Class
from autograder.classroom.places import kinds_in, students_in
from autograder.common.course import Course
from autograder.common.names import plain, visible

_found_by_nbgrader = BaseConverter.init_notebooks


def _find_notebooks(self: BaseConverter) -> None:
    """As nbgrader does, but a name that as a pattern finds nobody is found: Kim [exchange]."""
    here: Any = self.coursedir
    folder = Path(self._format_source(here.assignment_id, here.student_id))
    as_pattern = glob.glob(str(folder))  # noqa: PTH207 - what nbgrader finds
    if not as_pattern and (found := _notebooks_in(folder, here.notebook_id)):
        self.assignments, self.notebooks = {str(folder): found}, []
    else:
        _found_by_nbgrader(self)


BaseConverter.init_notebooks = _find_notebooks  # nbgrader asks nobody before


@dataclass(frozen=True)
class _Here(Class):
    """The class whose folders nbgrader was told of, by its settings or on the command line."""

    coursedir: CourseDirectory

    def setting(self, name: str, default: str) -> str:
        """As it holds for this run of nbgrader."""
        return getattr(self.coursedir, name) or default


def class_of(coursedir: CourseDirectory) -> Class:
    """The class whose folders these are; CourseError if they are not laid as nbgrader has it."""
    root = Path(coursedir.root)
    taught = _Here(Course(root), root, coursedir)
    taught.require_usable()
    return taught


def said(converter: BaseConverter, error: BaseException) -> NbGraderException:
    """What to end a run of nbgrader with; its log says it too."""
    converter.log.error(visible(str(error)))
    return NbGraderException(str(error))


def take_out_odd_names(converter: BaseConverter) -> list[str]:
    """Folders of students that nbgrader cannot name, taken out of what it is about to convert.

    One of them would stop it for everybody, or be lost.
    """
    odd = [
        folder
        for folder in converter.assignments
        if plain(student_of(folder)) != student_of(folder)
    ]
    for folder in odd:
        del converter.assignments[folder]
    return odd


def look_in_each_folder(converter: BaseConverter) -> None:
    """Have nbgrader take each student's own notebooks, if the folder's name is a pattern too.

    It took what the pattern finds: of a student named `*` the notebooks of all.
    """
    here: Any = converter.coursedir
    pattern = Path(converter._format_source(here.assignment_id, here.student_id)).absolute()
    above = pattern.parents[1]
    names = students_in(above) if above.is_dir() else []
    for name in called_as(names, here.student_id):
        if glob.escape(name) != name and plain(name) == name:
            folder = above / name / here.assignment_id
            notebooks = _notebooks_in(folder, here.notebook_id)
            if notebooks is not None:
                converter.assignments[str(folder)] = notebooks


def _notebooks_in(folder: Path, pattern: str) -> list[str] | None:
    """A folder's own notebooks of these names, whatever its own name is; None if it is none."""
    with suppress(OSError):  # a link that leads to no path, or nothing at all
        found = [folder / entry for entry, _ in kinds_in(folder)]
        return fnmatch.filter(map(str, found), f"*/{pattern}.ipynb")
    return None


def called_as(names: list[str], pattern: str) -> list[str]:
    """Those that a pattern finds, and the one that is called so, as formgrader asks for him."""
    found = {*fnmatch.filter(names, pattern), pattern}
    return [name for name in names if name in found]


def student_of(folder: str) -> str:
    """Whose a submission's folder is."""
    return Path(folder).parent.name

"""A class that is taught: where its work lies, and what nbgrader_config.py says of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from autograder.course import Course, CourseError
from autograder.failures import in_words
from autograder.parcel import Place
from autograder.places import Places, Stray, students_in

if TYPE_CHECKING:
    from autograder.assignment import Assignment


@dataclass(frozen=True)
class Class:
    """Where one class's work lies: submissions, what grading makes of them, and the gradebook."""

    course: Course
    folder: Path  # holds submitted/, autograded/, feedback/ and gradebook.db

    @property
    def submitted(self) -> Path:
        """submitted/<student>/<chapter>/<chapter>.ipynb"""
        return self.folder / self.setting("submitted_directory", "submitted")

    @property
    def autograded(self) -> Path:
        """The graded notebooks, for the instructor's eyes."""
        return self.folder / self.setting("autograded_directory", "autograded")

    @property
    def feedback(self) -> Path:
        """The pages that students get."""
        return self.folder / self.setting("feedback_directory", "feedback")

    @property
    def database(self) -> str:
        """nbgrader's gradebook; writers of several processes wait for each other."""
        configured = self.setting("db_url", "") if self.folder == self.course.root else ""
        return configured or f"sqlite:///{self.folder / 'gradebook.db'}?timeout=60"

    @property
    def course_id(self) -> str:
        """The course's name in the gradebook."""
        return self.setting("course_id", "default_course")

    @property
    def journal(self) -> Path:
        """What was graded already, and how it ended."""
        return self.folder / "gradebook.journal.jsonl"

    def students(self) -> list[str]:
        """Everybody with a folder in submitted/; a link is refused when it is graded."""
        if not self.submitted.is_dir():
            raise CourseError(
                f"{self.submitted} does not exist; put each submission at "
                "submitted/<student>/<chapter>/<chapter>.ipynb (nbgrader collect does)."
            )
        with in_words(self.submitted):
            return students_in(self.submitted)

    def submission(self, student: str, chapter: str) -> Path:
        """The folder with what a student handed in."""
        return self.submitted / student / chapter

    def place(self, student: str, chapter: str) -> Place | None:
        """Where a student's work on a chapter lies; None if nothing was handed in."""
        return self._places.of(student, chapter)

    def strays(self, students: Sequence[str]) -> list[Stray]:
        """What these students handed in that belongs to no chapter."""
        return list(self._places.found_strays(students))

    @cached_property
    def _places(self) -> Places:
        names = assignments(self.course)
        notebooks = {
            name: [path.stem for path in sorted(source_folder(self.course, name).glob("*.ipynb"))]
            for name in names
        }
        return Places(self.submitted, {n: stems or [n] for n, stems in notebooks.items()})

    def setting(self, name: str, default: str) -> str:
        """A setting of nbgrader's course directory."""
        return self.course.setting(name, default)


def source_folder(course: Course, chapter: str) -> Path:
    """Where the instructor's notebooks of an assignment lie, as nbgrader_config.py says."""
    return course.root / course.setting("source_directory", "source") / chapter


def assignments(course: Course, names: Sequence[str] = ()) -> list[str]:
    """These assignments, or all that the course has; a name that is none is an error.

    A course may keep text sources in solutions/, as this one does, or only nbgrader's notebooks.
    """
    if course.chapters():
        return course.select(names)
    folder = source_folder(course, ".")
    known = sorted(path.parent.name for path in folder.glob("*/*.ipynb"))
    known = list(dict.fromkeys(known))
    for name in names:
        if name not in known:
            raise CourseError(
                f"There is no assignment {name!r} in {course.show(folder)}; the assignments are "
                f"{', '.join(known) or '(none yet)'}."
            )
    return [name for name in known if not names or name in names]


def read(course: Course, chapter: str) -> "Assignment":
    """Read an assignment; built first if it has a text source that has changed."""
    from autograder.assignment import read_assignment
    from autograder.release import build_instructor
    from autograder.source import digest_of, made_from

    source = course.source(chapter)
    if source.is_file() and made_from(course.instructor(chapter)) != digest_of(source):
        build_instructor(course, chapter)
    return read_assignment(source_folder(course, chapter))


def read_those_there(
    course: Course, names: Sequence[str]
) -> "tuple[dict[str, Assignment], dict[str, str]]":
    """Those of these assignments that can be read, and of each other one why not, in words."""
    found: dict[str, Assignment] = {}
    gone: dict[str, str] = {}
    for name in names:
        try:
            found[name] = read(course, name)
        except CourseError as error:
            gone[name] = f"was graded once and is left out now: {error}"
    return found, gone

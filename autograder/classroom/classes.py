"""A class that is taught: where its work lies, and what nbgrader_config.py says of it."""

import os
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from autograder.authoring.building import read, source_folder
from autograder.classroom.places import Places, Stray, students_in
from autograder.common.course import Course, CourseError
from autograder.common.failures import in_words
from autograder.common.names import CONTROL, alike, composed, plain, readable, shown
from autograder.common.whole import require_file
from autograder.judge.parcel import Place

if TYPE_CHECKING:
    from autograder.judge.assignment import Assignment


STRUCTURE = ("{nbgrader_step}", "{student_id}", "{assignment_id}")
FILE = "gradebook.db"
LEFT_OUT = "was graded once and is left out now"
NBGRADERS = "sqlite:///{}"  # as nbgrader has it without a setting


@dataclass(frozen=True)
class Class:
    """Where one class's work lies: submissions, what grading makes of them, and the gradebook."""

    course: Course
    folder: Path  # holds submitted/, autograded/, feedback/ and gradebook.db

    @property
    def option(self) -> str:
        """What names this class in a command; empty for the course's own."""
        where = shlex.quote(str(self.folder))
        return "" if self.folder == self.course.root else f" --folder {where}"

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
        return self.configured_database or f"{_where_nbgrader_has_it(self.folder)}?timeout=60"

    @property
    def configured_database(self) -> str:
        """The gradebook that nbgrader's settings name; empty if none, or if it is not for this.

        What lies in build/ is a trial, as the demo class is: no trial's grades go there. A file's
        path begins in the course's root, wherever a command runs.
        """
        is_trial = self.folder.is_relative_to(self.course.root / "build")
        named = "" if is_trial else self.setting("db_url", "")
        own = named == NBGRADERS.format(self.folder / FILE)
        return "" if own else from_root(named, self.course.root)

    @property
    def has_own_gradebook(self) -> bool:
        """Whether the gradebook is a file in the course or the class: then it is of no other."""
        places = self.folder, self.course.root
        return any(path.is_relative_to(one) for path in self._gradebook() for one in places)

    def require_usable(self) -> None:
        """Refuse, before anything is done, what nbgrader's settings say and cannot be done here."""
        structure = self.setting("directory_structure", str(Path(*STRUCTURE)))
        if Path(structure).parts != STRUCTURE:
            raise CourseError(
                f"c.CourseDirectory.directory_structure is {structure!r} in nbgrader's settings, "
                f"and this grader looks in {'/'.join(STRUCTURE)} alone; take the setting out and "
                "lay the folders so."
            )
        self._require_apart()
        for path in (self.journal, self.journal.with_suffix(".lock"), *self._gradebook()):
            with in_words(path):
                require_file(path)

    def require_there(self) -> None:
        """Refuse a folder that somebody has named and that is no class's, before one is made."""
        kept = self.journal, self.folder / FILE
        if not self.submitted.is_dir() and not any(map(Path.is_file, kept)):
            raise CourseError(
                f"{self.submitted} does not exist, nor is a gradebook beside it; name the folder "
                "of a class, which holds submitted/."
            )

    def _require_apart(self) -> None:
        """Refuse settings by which what is handed in, or handed out, would be written over."""
        course, names = self.course, ("autograded", "feedback", "submitted", "source", "release")
        given = {
            "source": course.root / course.setting("source_directory", "source"),
            "release": course.root / course.setting("release_directory", "release"),
        }
        folders = [given.get(name) or getattr(self, name) for name in names]
        real = [Path(os.path.realpath(folder)) for folder in folders]
        for one, other in ((0, 2), (0, 3), (0, 4), (1, 2), (1, 3), (1, 4), (2, 3), (2, 4), (3, 2)):
            if real[one].is_relative_to(real[other]):
                raise CourseError(
                    f"By nbgrader's settings {names[one]}_directory, {folders[one]}, is or lies in "
                    f"{names[other]}_directory, {folders[other]}, and what is there would be lost "
                    "or taken for something else; give each a folder of its own."
                )

    def _gradebook(self) -> Iterator[Path]:
        """The gradebook, if it is a file."""
        from sqlalchemy import make_url

        url = make_url(self.database)
        if url.get_backend_name() == "sqlite" and url.database:
            yield Path(url.database)

    def excluded(self, students: Iterable[str]) -> list[str]:
        """Those of these students whom nbgrader's settings leave out."""
        named = self.setting("student_id_exclude", "").split(",")
        names = {composed(name.strip()) for name in named}
        return [one for one in students if composed(one) in names]

    @property
    def course_id(self) -> str:
        """The course's name in the gradebook."""
        return self.setting("course_id", "default_course")

    @property
    def journal(self) -> Path:
        """What was graded already, and how it ended."""
        return self.folder / "gradebook.journal.jsonl"

    @property
    def is_shared(self) -> bool:
        """Whether several instructors work on it, each with an account (nbgrader's groupshared)."""
        return str(self.setting("groupshared", "")) == "True"

    def share(self) -> None:
        """Let the group write what this process makes from now on, if the class is shared."""
        if self.is_shared:
            os.umask(os.umask(0o077) & ~0o070)

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

    def handed_in(self, chapters: Sequence[str]) -> list[str]:
        """Those of these assignments to which anybody has handed in."""
        everybody = self.students()
        return [name for name in chapters if any(self.place(who, name) for who in everybody)]

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
        """A setting of nbgrader's course directory; one in the class's own folder comes first."""
        return self.course.setting(name, default, self.folder)

    def read(self, chapter: str) -> "Assignment":
        """Read an assignment as it lies there; no time in the LMS's list is for two students."""
        found = read(self.course, chapter)
        late = replace(found.rules.late, shared=self._shared)
        return replace(found, rules=replace(found.rules, late=late))

    @cached_property
    def _shared(self) -> frozenset[str]:
        """What several students' folders are called, by how names are compared."""
        folders = self.students() if self.submitted.is_dir() else []
        names = [readable(plain(folder)) for folder in folders]
        return frozenset(map(composed, names)) - alike(names).keys()


def from_root(url: str, root: Path) -> str:
    """A database's address, with a file's path from the root on; CourseError if it is none."""
    if not url:
        return ""
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        parts = make_url(url)
    except (ArgumentError, ValueError) as error:  # it may hold a password, so it is not repeated
        raise CourseError(
            "c.CourseDirectory.db_url in nbgrader's settings is no address of a database; write "
            "one such as sqlite:///gradebook.db or postgresql+psycopg2://user:password@host/name."
        ) from error
    name = parts.database or ":memory:"
    if not url.startswith("sqlite") or name.startswith((":", "file:", os.sep)):
        return url
    return parts.set(database=str(root / name)).render_as_string(hide_password=False)


def _where_nbgrader_has_it(folder: Path) -> str:
    """The address of the gradebook in a folder, which nbgrader makes without looking at it."""
    from sqlalchemy import make_url

    url = NBGRADERS.format(folder / FILE)
    found = make_url(url).database
    if found != str(folder / FILE):
        raise CourseError(
            f"nbgrader would have the gradebook of {folder} at {found}: in an address, a ? and a "
            "% with two digits mean something else; rename the folder."
        )
    return url


def assignments(course: Course, names: Sequence[str] = ()) -> list[str]:
    """These assignments, or all that the course has; a name that is none is an error.

    A course may keep text sources in solutions/, as this one does, or only nbgrader's notebooks.
    """
    if course.chapters():
        return course.select(names)
    folder = source_folder(course, ".")
    # what begins with a dot is an editor's: Jupyter's copies of a notebook that lies beside them
    found = {path.parent.name for path in folder.glob("*/*.ipynb")}
    known = sorted(name for name in found if not name.startswith("."))
    for name in names:
        if name not in known:
            raise CourseError(
                f"There is no assignment {name!r} in {course.show(folder)}; the assignments are "
                f"{', '.join(known) or '(none yet)'}."
            )
    chosen = [name for name in known if not names or name in names]
    for name in chosen:
        if CONTROL.search(name):
            raise CourseError(
                f"{course.show(folder)} holds an assignment in the folder {shown(name)}, of whose "
                "name not all are signs of a text in UTF-8; rename the folder."
            )
    return chosen


def read_those_there(
    taught: Class, names: Sequence[str]
) -> "tuple[dict[str, Assignment], dict[str, str]]":
    """Those of these assignments that can be read, and of each other one why not, in words."""
    found: dict[str, Assignment] = {}
    gone: dict[str, str] = {}
    for name in names:
        try:
            found[name] = taught.read(name)
        except CourseError as error:
            gone[name] = str(error)
    return found, gone

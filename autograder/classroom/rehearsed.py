"""What is said when a course that was built elsewhere is graded: it is graded as it is."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from autograder.authoring.asked_here import asked_here
from autograder.classroom import warm
from autograder.common.course import Course
from autograder.judge.markers import read_markers

MOST_COMPLAINTS = 10  # that are shown


@dataclass(frozen=True)
class Rehearsed:
    """How a course's tests went with the reference and with the untouched release."""

    notes: tuple[str, ...] = ()  # a sentence for each test that does not run as it should
    unable: int = 0  # of these, how many give wrong points

    def words(self) -> str:
        """What follows from it for the class; empty if all is well."""
        if not self.unable:
            return ""
        return (
            f"{self.unable} of the tests do not run as they should (see above); whoever fails "
            "one is told that it is no fault of theirs. Mend them and grade again."
        )


def rehearsed(course: Course, chapters: Sequence[str]) -> Rehearsed:
    """Rehearse what has changed since it was rehearsed last."""
    complaints = warm.rehearse(course, chapters)
    notes = [*complaints, *handed_out(course, chapters), *asked_in(course, chapters)]
    return Rehearsed(tuple(notes[:MOST_COMPLAINTS]), len(complaints))


def handed_out(course: Course, chapters: Sequence[str]) -> Iterator[str]:
    """Lists of who handed in when that nbgrader puts into a release, and what to do."""
    ignored = read_markers(course.root).ignored
    for name in chapters:
        one = warm.read(course, name)
        path = one.rules.late.listed
        if path is None or path.resolve().parent != one.folder:
            continue
        if not any(fnmatchcase(path.name, pattern) for pattern in ignored):
            yield (
                f"{course.show(path)} lies in the assignment's folder, and nbgrader "
                "generate_assignment hands that out: every student could read when everybody "
                f'handed in. Move it, and write times = "../{path.name}" in rules.toml.'
            )


def asked_in(course: Course, chapters: Sequence[str]) -> list[str]:
    """Each test that asks something of the wrong process."""
    return [one for name in chapters for one in asked_here(warm.read(course, name))]

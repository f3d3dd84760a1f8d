"""What is said when a course that was built elsewhere is graded: it is graded as it is."""

from collections.abc import Sequence
from dataclasses import dataclass

from autograder import warm
from autograder.asked_here import asked_here
from autograder.course import Course

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
    notes = [*complaints, *asked_in(course, chapters)]
    return Rehearsed(tuple(notes[:MOST_COMPLAINTS]), len(complaints))


def asked_in(course: Course, chapters: Sequence[str]) -> list[str]:
    """Each test that asks something of the wrong process."""
    return [one for name in chapters for one in asked_here(warm.read(course, name))]

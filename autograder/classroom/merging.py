"""What other machines have graded, taken into a class's gradebook and journal.

A journal holds whole results, so it is all that comes back from them. What it says is taken only
where this machine, from the work that lies here, the tests and its own versions, reckons the same
key.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from autograder.authoring.building import build_changed
from autograder.classroom.grade import Grader
from autograder.classroom.journal import results_in, unread_in
from autograder.classroom.keeper import few
from autograder.classroom.warm import Warm
from autograder.common.course import CourseError
from autograder.common.names import plain, readable

if TYPE_CHECKING:
    from autograder.classroom.classes import Class

JOURNAL = "gradebook.journal.jsonl"


@dataclass(frozen=True)
class Merged:
    """What became of the results of other machines."""

    taken: int
    refused: tuple[str, ...]  # in sentences

    def words(self) -> str:
        """Lines for the terminal."""
        said = "1 result is here" if self.taken == 1 else f"{self.taken} results are here"
        return "\n".join([said, *few("not taken", self.refused)])


def merge(taught: "Class", chapters: Sequence[str], places: Sequence[Path]) -> Merged:
    """Bring results of other machines into a class's gradebook and journal.

    Args:
        taught: the class, with all works in submitted/.
        chapters: names of the assignments to take.
        places: folders of graded classes, or their journals.
    """
    journals = [_journal(place, taught) for place in places]
    build_changed(taught.course, chapters)
    assignments = {chapter: taught.read(chapter) for chapter in chapters}
    taken, refused = 0, []
    with (
        Warm(taught.course, assignments) as warm,  # it starts nothing, as nothing is graded
        Grader(taught, assignments, warm) as grader,
    ):
        for journal in journals:
            is_empty = True
            for graded in results_in(journal):
                is_empty = False
                if why := grader.adopt(graded):
                    who = readable(plain(graded.result.student))
                    refused.append(f"{who}, {graded.result.assignment}: {why}")
                else:
                    taken += 1
            if is_empty:
                refused.append(f"{journal}: it holds no result; is it a journal?")
            elif why := unread_in(journal):
                refused.append(why)
        grader.end()
        refused += grader.troubles
    return Merged(taken, tuple(refused))


def _journal(place: Path, taught: "Class") -> Path:
    path = place / JOURNAL if place.is_dir() else place
    if not path.is_file():
        raise CourseError(f"There is no journal {path}; name the folder of a graded class.")
    if path.resolve() == taught.journal.resolve():
        raise CourseError(f"{path} is the class's own journal; name those of the other machines.")
    return path

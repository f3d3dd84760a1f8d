"""Whose grades a gradebook holds: of two courses with one gradebook neither changes the other's.

nbgrader has an assignment's name once in a gradebook, whatever course it is of. So the course whose
grades they are is noted there; another that has an assignment of the same name is refused before
anything is written. A course that has moved is known by its journal, and one that lost its journal
by its folder.
"""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote_to_bytes

from autograder.common.course import is_course
from autograder.common.names import link, shown


@dataclass(frozen=True)
class Owner:
    """A course, as a gradebook knows it."""

    journal: str  # its name
    course_id: str
    root: str  # the folder, in ASCII

    @classmethod
    def of(cls, journal: str, course_id: str, root: Path) -> "Owner":
        """The course in a folder."""
        return cls(journal, course_id, link(str(root)))

    @property
    def folder(self) -> Path:
        """Where the course lay when it last wrote there."""
        return Path(os.fsdecode(unquote_to_bytes(self.root)))

    def is_known(self, other: "Owner") -> bool:
        """Whether both are one course, by its folder or its journal."""
        return self.root == other.root or self.journal == other.journal != ""

    def may_follow(self, other: "Owner") -> bool:
        """Whether this may be the other course, moved here without its journal."""
        return self.course_id == other.course_id and not _is_there(other.folder)


def refusal(assignment: str, gradebook: str, mine: Owner, other: Owner) -> str:
    """Why this course cannot grade into that gradebook, and what to do."""
    return (
        f"The gradebook {gradebook} holds the grades of {shown(assignment)} of another course, "
        f"{_named(other)}; this one, {_named(mine)}, would change them. Give it a gradebook of its "
        "own (c.CourseDirectory.db_url), or rename its assignment. If it takes the other's place, "
        "put the other's gradebook.journal.jsonl beside submitted/ here."
    )


def taken_over(assignment: str, other: Owner) -> str:
    """That the gradebook's grades were written from a folder that is not here."""
    return (
        f"The gradebook's grades of {shown(assignment)} were last written from {other.folder}, "
        "which is not on this machine; if that is another course, give each a gradebook of its own "
        "(c.CourseDirectory.db_url), as they change each other's grades."
    )


def _named(owner: Owner) -> str:
    return f"{shown(owner.course_id)!r} in {owner.folder}"


def _is_there(folder: Path) -> bool:
    """Whether a course still lies there; it does if nobody may know."""
    with suppress(OSError):
        return is_course(folder)
    return True

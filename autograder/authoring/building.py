"""The instructor's notebooks: where they lie, and built where a text source has changed.

Reading never builds. What grades a class or prepares one asks for `build_changed` by its name.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from autograder.authoring.source import digest_of, made_from, notebook, read_source
from autograder.common.course import Course, CourseError
from autograder.common.whole import write_whole

if TYPE_CHECKING:
    from autograder.judge.assignment import Assignment


def source_folder(course: Course, chapter: str) -> Path:
    """Where the instructor's notebooks of an assignment lie, as nbgrader_config.py says."""
    return course.instructor(chapter).parent


def build_instructor(course: Course, chapter: str) -> Path:
    """Check a chapter's source and write the instructor's notebook."""
    text = notebook(read_source(course.source(chapter)))
    path = course.instructor(chapter)
    if not path.is_file() or path.read_bytes() != text.encode():
        write_whole(path, text)
    return path


def build_changed(course: Course, chapters: Iterable[str]) -> None:
    """Build those of these assignments of which the text source has changed since."""
    for chapter in chapters:
        source = course.source(chapter)
        if source.is_file() and made_from(course.instructor(chapter)) != digest_of(source):
            build_instructor(course, chapter)


def read(course: Course, chapter: str) -> "Assignment":
    """Read an assignment as it lies there; CourseError says what to do if it is not there."""
    from autograder.judge.assignment import read_assignment

    path = course.instructor(chapter)
    if course.source(chapter).is_file() and not path.is_file():
        raise CourseError(
            f"{course.show(path)} is not built yet; run: python -m autograder build {chapter}"
        )
    return read_assignment(source_folder(course, chapter))

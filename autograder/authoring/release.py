"""From text source to student notebook: the instructor's notebook is built, nbgrader strips it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from traitlets.config import Config

from autograder.authoring.building import build_instructor
from autograder.authoring.source import digest_of, made_from
from autograder.common.course import Course, CourseError, read_config
from autograder.common.whole import write_whole

if TYPE_CHECKING:
    from nbgrader.apps import NbGraderAPI


def release(course: Course, chapter: str, directory: Path | None = None) -> Path:
    """Generate the student's notebook through nbgrader; returns its path.

    Args:
        course: the course.
        chapter: name of a chapter.
        directory: where to write instead of the course's folder of releases.
    """
    build_instructor(course, chapter)
    target = directory or course.release(chapter).parents[1]
    _require_nothing_else(course, chapter, target / chapter)
    settings = Config()
    settings.CourseDirectory.release_directory = str(target)
    settings.GenerateAssignment.no_database = True
    settings.SaveCells.enabled = False
    with nbgrader(course, settings) as api:
        demand(api.generate_assignment(chapter, force=True), f"release {chapter}")
    path = target / chapter / f"{chapter}.ipynb"
    _tidy(path)
    return path


def _require_nothing_else(course: Course, chapter: str, folder: Path) -> None:
    """Refuse to make anew, as nbgrader does, a folder in which somebody has put something else."""
    source = course.instructor(chapter)
    given = {path.name for path in source.parent.iterdir()} | {source.name}
    found = folder.iterdir() if folder.is_dir() else ()
    others = sorted(
        path.name
        for path in found
        if not path.name.startswith(".") and (path.name not in given or path.is_dir())
    )
    if others:
        raise CourseError(
            f"{course.show(folder)} is made anew with each release, and {', '.join(others)} there "
            "would be lost; move it away."
        )


def require_fresh(course: Course, chapter: str) -> None:
    """Refuse a release that was not made from today's source."""
    path = course.release(chapter)
    if not path.is_file():
        raise CourseError(f"{course.show(path)} is missing; run: make release")
    if made_from(path) != digest_of(course.source(chapter)):
        raise CourseError(
            f"{course.show(path)} is older than {course.show(course.source(chapter))}; "
            "run: make release"
        )


@contextmanager
def nbgrader(course: Course, settings: Config | None = None) -> Iterator["NbGraderAPI"]:
    """nbgrader's Python interface, set up by nbgrader_config.py and these settings on top."""
    from nbgrader.apps import NbGraderAPI
    from nbgrader.coursedir import CourseDirectory

    config = read_config(course.root)
    config.CourseDirectory.root = str(course.root)
    config.merge(settings or Config())
    yield NbGraderAPI(coursedir=CourseDirectory(config=config), config=config)


def demand(result: dict, task: str) -> None:
    """Stop with nbgrader's own words if it did not succeed."""
    if not result["success"]:
        lines = f"{result.get('error', '')}\n{result.get('log', '')}".splitlines()
        errors = [line.strip() for line in lines if "Error:" in line or "MissingEntry:" in line]
        why = errors[-1] if errors else next(filter(None, reversed(lines)), "no reason given")
        raise CourseError(f"nbgrader could not {task}: {why}")


def _tidy(path: Path) -> None:
    """Write the notebook in one fixed form, so that the same source gives the same bytes."""
    content = json.loads(path.read_text(encoding="utf-8"))
    text = json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    write_whole(path, text)
    path.chmod(0o644)

"""A chapter to hand in, and a folder to hand it in to."""

import shutil
from pathlib import Path

import pytest

from autograder.authoring.source import notebook, read_source
from autograder.judge.assignment import Assignment, Notebook, read_assignment
from tests.conftest import COURSE
from tests.intake.handing_in import CHAPTER, NAME


@pytest.fixture(scope="module")
def assignment(tmp_path_factory: pytest.TempPathFactory) -> Assignment:
    """A chapter of this course."""
    course = COURSE
    root = tmp_path_factory.mktemp("course")
    folder = root / "source" / CHAPTER
    folder.mkdir(parents=True)
    text = notebook(read_source(course.source(CHAPTER)))
    (folder / NAME).write_text(text, encoding="utf-8")
    shutil.copy(course.root / "nbgrader_config.py", root)
    return read_assignment(folder)


@pytest.fixture(scope="module")
def week(assignment: Assignment) -> Notebook:
    """Its notebook."""
    return assignment.notebooks[0]


@pytest.fixture
def box(tmp_path: Path) -> Path:
    """A submission's folder."""
    folder = tmp_path / "submitted" / "me" / CHAPTER
    folder.mkdir(parents=True)
    return folder

"""The folder in which tests run, and the modules that come from there."""

import importlib
import sys
from pathlib import Path

import pytest

from autograder.judge.assignment import read_assignment
from autograder.judge.beside import beside
from tests.small_course import NAME, make_course


@pytest.fixture
def assignment(tmp_path: Path):
    """An assignment with a module beside its notebook."""
    folder = make_course(tmp_path / "course").root / "source" / NAME
    (folder / "helper_of_mine.py").write_text("TWO = 2\n", encoding="utf-8")
    return read_assignment(folder)


def test_only_modules_that_came_from_there_are_gone_afterwards(assignment):
    before = dict(sys.modules)
    with beside(assignment):
        for name in ("helper_of_mine", "this"):
            importlib.import_module(name)
    assert "helper_of_mine" not in sys.modules and "this" in sys.modules
    assert before.items() <= sys.modules.items()


def test_no_other_module_is_touched(assignment):
    """Who refers to them all copies the memory of them all into a fork."""
    counted = sys.getrefcount(sys.modules["ast"])
    with beside(assignment):
        now = sys.getrefcount(sys.modules["ast"])
    assert now == counted

"""A course that has nbgrader's notebooks alone hears of its tests before it hands them out."""

import json
import sys
from pathlib import Path

import pytest

from tests.small_course import NAME, make_course, run

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="trying tests needs Linux")


@pytest.mark.parametrize("command", ["build", "release"])
def test_its_tests_are_tried_and_the_next_step_is_said(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], command: str
) -> None:
    course = make_course(tmp_path / "course")
    assert run(course.root, command) == 0
    assert f"{NAME}: its tests run." in capfd.readouterr().out
    assert not (course.root / "release").exists()


def test_a_test_that_cannot_be_run_stops_it(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    course = make_course(tmp_path / "course")
    path = next((course.root / "source" / NAME).glob("*.ipynb"))
    content = json.loads(path.read_text(encoding="utf-8"))
    marks = [one["metadata"].get("nbgrader", {}) for one in content["cells"]]
    number = next(i for i, one in enumerate(marks) if one.get("grade") and not one["solution"])
    content["cells"][number]["source"] = "exec(In[-2])"
    path.write_text(json.dumps(content), encoding="utf-8")
    assert run(course.root, "release", NAME) != 0
    assert "uses In, which a notebook's shell has" in capfd.readouterr().err


def test_an_assignment_that_is_not_there_is_named(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    course = make_course(tmp_path / "course")
    assert run(course.root, "release", "ps9") != 0
    assert f"no assignment 'ps9' in source; the assignments are {NAME}" in capfd.readouterr().err

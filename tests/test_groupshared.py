"""c.CourseDirectory.groupshared: what one instructor's grading makes, another's may go on with."""

import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from autograder import __main__ as command_line
from autograder.classroom.watching import Watcher
from autograder.common.course import Course
from tests.small_course import NAME, RIGHT, hand_in, make_course, nbgrader

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="grading needs Linux")


@pytest.fixture(autouse=True)
def umask() -> Iterator[None]:
    """An ordinary one: the group may not write."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def made(root: Path, shared: bool, monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """The rights of what grading has made, by path, and of the gradebook."""
    make_course(root)
    with (root / "nbgrader_config.py").open("a") as file:
        file.write(f"c.CourseDirectory.groupshared = {shared}\n")
    picture = root / "source" / NAME / "data" / "picture.png"
    picture.parent.mkdir()
    picture.write_bytes(b"a picture")
    nbgrader(root, "generate_assignment", NAME)
    hand_in(root, "ada", RIGHT)
    before = set(root.rglob("*")) - {root / "gradebook.db"}
    monkeypatch.chdir(root)
    assert command_line.main(["grade"]) == 0
    after = set(root.rglob("*")) - before
    return {str(path.relative_to(root)): stat.S_IMODE(path.stat().st_mode) for path in after}


def test_another_instructor_may_write_all_that_grading_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    found = made(tmp_path, True, monkeypatch)
    for folder in ("autograded", "feedback"):
        for path in (folder, f"{folder}/ada", f"{folder}/ada/{NAME}"):
            assert found[path] == 0o2775, path
    files = {path: mode for path, mode in found.items() if (tmp_path / path).is_file()}
    files = {path: mode for path, mode in files.items() if not path.startswith("build")}
    assert {"gradebook.db", "gradebook.journal.jsonl", "gradebook.journal.lock"} <= set(files)
    assert set(files.values()) == {0o664}, files


def test_in_a_course_of_ones_own_the_group_may_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    found = made(tmp_path, False, monkeypatch)
    assert not [path for path, mode in found.items() if mode & 0o022]
    assert found[f"autograded/ada/{NAME}/numbers.ipynb"] == 0o644
    assert found[f"autograded/ada/{NAME}/data/picture.png"] == 0o644, "formgrader shows it"
    assert found[f"feedback/ada/{NAME}/numbers.html"] == 0o644


def test_another_instructor_may_begin_a_watcher_where_one_has_run(tmp_path: Path):
    os.umask(0o077)
    make_course(tmp_path)
    with (tmp_path / "nbgrader_config.py").open("a") as file:
        file.write("c.CourseDirectory.groupshared = True\n")
    with Watcher(Course(tmp_path), []) as watcher:
        assert not watcher.look()  # there is no exchange
    for name in ("watch.lock", "watch.json", "watch.html", "arrivals.csv"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o660, name

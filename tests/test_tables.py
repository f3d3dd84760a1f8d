"""A table that a command writes replaces an older one of its kind, and nothing else."""

import os
import sys
from pathlib import Path

import pytest

from tests.nbgraders_commands import nbgrader
from tests.small_course import RIGHT, hand_in, make_course, release, run

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="grading needs Linux")
COMMANDS = (
    ("history", "--csv"),
    ("export", "canvas", "--out"),
    ("export", "moodle", "--out"),
)
OTHERS = (
    "submitted/ada/ps1/numbers.ipynb",
    "gradebook.db",
    "gradebook.journal.jsonl",
    "nbgrader_config.py",
    "grades.csv",
)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course of one student who was graded."""
    root = tmp_path_factory.mktemp("course")
    make_course(root)
    release(root)
    hand_in(root, "ada", RIGHT)
    assert run(root, "grade") == 0
    return root


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_other_file_is_written_over(
    root: Path, command: tuple[str, ...], capsys: pytest.CaptureFixture[str]
):
    for name in OTHERS:
        before = (root / name).read_bytes()
        assert run(root, *command, name) == 2
        said = capsys.readouterr().err
        assert "another file lies there, which stays; name another place" in said and name in said
        assert (root / name).read_bytes() == before
    table = root / "table.csv"
    table.unlink(missing_ok=True)
    table.touch()
    for _ in range(2):  # the second time an older one of the same kind is there
        assert run(root, *command, table.name) == 0
        assert "ada" in table.read_text()


@pytest.mark.parametrize("out", ["release", "autograded", "feedback", "feedback/x", ".", ".."])
def test_no_results_for_gradescope_are_put_among_what_the_class_holds(
    root: Path, out: str, capsys: pytest.CaptureFixture[str]
):
    assert run(root, "export", "gradescope", "--out", out) == 2
    assert "no place for results" in capsys.readouterr().err
    assert not [*root.rglob("results.json")]


def test_a_history_may_be_written_into_a_pipe(root: Path):
    os.mkfifo(pipe := root / "pipe")
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    assert run(root, "history", "--csv", "pipe") == 0
    assert b"ada" in os.read(reader, 10_000)
    os.close(reader)
    assert pipe.is_fifo()


@pytest.mark.parametrize("asked", [["adda"], ["ada", "ps9"]])
def test_a_history_of_nobody_is_a_sentence_also_as_a_table(
    root: Path, asked: list[str], capsys: pytest.CaptureFixture[str]
):
    for more in ([], ["--since", "2020-01-01"], ["--csv", "nobody.csv"]):
        assert run(root, "history", *asked, *more) == 2
        assert "Nothing was graded of" in capsys.readouterr().err
    assert not (root / "nobody.csv").exists()


@pytest.mark.parametrize(
    "exporter",
    [
        "autograder.classroom.exports.CanvasExporter",
        "autograder.classroom.exports.GradescopeExporter",
        "autograder.classroom.grade_table.GradeTable",
    ],
)
def test_what_nbgraders_command_may_not_write_is_a_sentence(root: Path, exporter: str):
    to = "release" if "Gradescope" in exporter else "nbgrader_config.py"
    said = nbgrader(root, "export", "--exporter", exporter, "--to", to, succeeds=False)
    assert "Traceback" not in said and "name another" in said
    assert "get_config" in (root / "nbgrader_config.py").read_text()

"""An instructor's own chapter, without known mistakes, and one that is taken away again."""

import shutil
import sys
from pathlib import Path

import pytest

from autograder import __main__ as command_line
from tests.conftest import ROOT
from tests.test_answers import SOURCE

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="grading needs Linux")
CHAPTERS = ("01_sums", "02_more")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A course of two small chapters, and nothing else."""
    shutil.copy(ROOT / "nbgrader_config.py", tmp_path)
    for chapter in CHAPTERS:
        folder = tmp_path / "solutions" / chapter
        folder.mkdir(parents=True)
        (folder / f"{chapter}.py").write_text(SOURCE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_command_goes_on_without_known_mistakes_and_after_a_chapter_is_gone(
    root: Path, capsys: pytest.CaptureFixture[str]
):
    def run(*command: str) -> str:
        assert command_line.main(command) == 0, command
        return capsys.readouterr().out

    run("release")
    assert "48 graded" in run("demo")
    assert "0 surprises" in run("mutants")
    said = run("mutants", "--in-class")
    assert "0 mistakes handed in singly" in said
    assert [f"left out: {name} has no misconceptions.py" in said for name in CHAPTERS] == [True] * 2
    shutil.copytree(root / "build" / "demo" / "submitted", root / "submitted")
    assert "48 graded" in run("grade")
    for folder in ("solutions", "exercises", "build/source"):
        shutil.rmtree(root / folder / "02_more")
    for name in ("grades.csv", "report.html"):
        assert "02_more" in (root / name).read_text(encoding="utf-8")
    assert "left out: 02_more was graded once" in run("report")
    assert "left out: 02_more" in run("grade")
    assert "02_more" not in (root / "grades.csv").read_text(encoding="utf-8").splitlines()[0]
    for kind in ("canvas", "moodle", "gradescope"):
        run("export", kind)

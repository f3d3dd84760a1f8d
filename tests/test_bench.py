"""The benchmark: the class it makes, and that both graders grade it the same."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from autograder.classroom import bench
from autograder.common.course import Course
from tests.conftest import CHAPTERS, ROOT

CHAPTER = CHAPTERS[0]
STUDENTS = 1  # who answers as the reference does: it is about the command, not the class


def test_no_two_students_of_the_class_hand_in_the_same(course: Course, tmp_path: Path):
    clean = bench.make_class(course, CHAPTER, 48, tmp_path)
    paths = list(tmp_path.glob(f"submitted/*/{CHAPTER}/{CHAPTER}.ipynb"))
    assert len(paths) == 48
    texts = [path.read_text(encoding="utf-8") for path in paths]
    alike = len(texts) - len(set(texts))
    untouched = 4  # two who wrote nothing, two who sent something else
    assert alike <= untouched
    assert len(clean) >= 36


def test_the_class_has_all_that_stock_nbgrader_survives(course: Course, tmp_path: Path):
    bench.make_class(course, CHAPTER, len(bench.MIXED), tmp_path)
    broken = 0
    for path in tmp_path.glob("submitted/*/*/*.ipynb"):
        try:
            json.loads(path.read_text(encoding="utf-8"))
        except ValueError:
            broken += 1
    assert broken == 2


@pytest.mark.skipif(sys.platform != "linux", reason="grading needs Linux")
def test_the_command_compares_the_scores_and_ends_with_the_ratio():
    command = [sys.executable, "-m", "autograder", "bench", "--students", str(STUDENTS)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"same automatic scores on all {STUDENTS} clean submissions" in done.stderr
    assert re.fullmatch(r"ratio: \d+\.\d", done.stdout.strip().splitlines()[-1])

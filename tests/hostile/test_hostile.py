"""Whatever a student hands in: no point that is not earned, and a grade with a reason.

Nobody else's work, files or grade is touched.
"""

import math
import re
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
import torch

from autograder.judge.space import BadScore
from autograder.judge.testing import partial
from tests.hostile.course import POINTS, QUESTIONS, write_course
from tests.hostile.everybody import HOSTILE
from tests.hostile.klass import VICTIM, Graded
from tests.hostile.rows import LISTED
from tests.hostile.steps import Row


def by_id(row: Row) -> str:
    """A row's name in pytest's list."""
    return row.id


@pytest.mark.parametrize("row", HOSTILE, ids=by_id)
def test_scores_what_is_earned(graded: Graded, row: Row):
    points = graded.points(row.id)
    if row.either and graded.result(row.id).reason:
        assert set(points.values()) == {0.0}, graded.told(row.id)
    else:
        found = {test: points[test] for test in row.scores()}
        assert found == row.scores(), graded.told(row.id)


@pytest.mark.parametrize("row", [row for row in HOSTILE if row.says or row.flag], ids=by_id)
def test_says_why(graded: Graded, row: Row):
    told = graded.told(row.id)
    assert re.search(row.says, told, re.IGNORECASE), told
    kinds = {flag.kind for flag in graded.result(row.id).flags}
    assert not row.flag or row.flag in kinds, told


@pytest.mark.parametrize("row", HOSTILE, ids=by_id)
def test_ends_in_a_grade_for_every_test_and_a_page(graded: Graded, row: Row):
    assert set(graded.points(row.id)) == set(POINTS)
    assert graded.feedback(row.id)
    assert (graded.taught.autograded / row.id / "tiny" / "tiny.ipynb").is_file()


def test_the_listed_rows_are_all_there():
    numbers = {re.match(r"\d+", row.id).group() for row in LISTED}  # pyright: ignore
    assert len(numbers) == 85
    assert len({row.id for row in HOSTILE}) == len(HOSTILE)


def test_an_honest_student_beside_them_keeps_everything(graded: Graded):
    assert graded.points(VICTIM.id) == VICTIM.scores()
    assert not graded.result(VICTIM.id).flags


def test_course_and_submissions_stay_as_they_were(graded: Graded):
    assert graded.after == graded.before


def test_no_process_of_a_student_is_left(graded: Graded):
    assert graded.left == []


def test_no_manual_score_was_entered(graded: Graded):
    assert graded.manual_scores() == {None}


def test_nothing_was_left_outside(graded: Graded):
    places = [Path(tempfile.gettempdir()), Path.home(), Path.cwd(), Path(sys.prefix)]
    places += [graded.tiny.root, *map(Path, sys.path)]
    for place in places:
        for name in ("hostile-left", "hostile_left.pth", "hostile_left.py", "kept", "owned"):
            assert not (place / name).exists(), place / name


def test_what_is_written_stays_small(graded: Graded):
    for folder in (graded.taught.autograded, graded.taught.feedback):
        for path in folder.rglob("*.*"):
            assert path.stat().st_size < 3_000_000, path


@pytest.mark.parametrize("value", [math.nan, math.inf, -1, 3, 1e300, True, np.float64("nan")])
def test_what_is_no_score_is_the_instructors_to_mend(value: float):
    with pytest.raises(BadScore):
        partial(value, 2)


@pytest.mark.parametrize("value", [0.5, np.float64(0.5), np.float32(0.5), torch.tensor(0.5)])
def test_a_score_counts_whatever_its_type(value: float):
    assert partial(value, 2) == 0.5


def test_the_release_shows_no_solution_and_no_hidden_test(tmp_path: Path):
    tiny = write_course(tmp_path / "course")
    release = tiny.handin()
    text = str(release.notebook)
    assert not tiny.canaries.found_in(text)
    for question in QUESTIONS:
        assert "NotImplementedError" in release.cell(question)["source"]

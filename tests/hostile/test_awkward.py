"""Right answers in unusual words or unusual notebooks lose nothing."""

import pytest

from tests.hostile.everybody import RIGHT
from tests.hostile.klass import Graded
from tests.hostile.steps import Row


@pytest.mark.parametrize("row", RIGHT, ids=[row.id for row in RIGHT])
def test_a_right_answer_gets_all_points(graded: Graded, row: Row):
    assert graded.points(row.id) == row.scores(), graded.told(row.id)


def test_there_are_enough_of_them():
    assert len(RIGHT) >= 60

"""The class, graded once for all tests that look at it."""

import pytest

from tests.hostile.everybody import EVERYBODY
from tests.hostile.klass import Graded, grade_class, make_class


@pytest.fixture(scope="session")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Graded:
    """Everybody, in one run on two slots."""
    return grade_class(make_class(tmp_path_factory.mktemp("class") / "course", EVERYBODY))

"""The class, graded once for all tests that look at it."""

import pytest

from tests.hostile.attacks import INVENTED
from tests.hostile.awkward import AWKWARD
from tests.hostile.klass import VICTIM, Graded, grade_class, make_class
from tests.hostile.rows import LISTED
from tests.hostile.rules import AROUND, NEAR

EVERYBODY = [VICTIM, *LISTED, *INVENTED, *AROUND, *AWKWARD, *NEAR]


@pytest.fixture(scope="session")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Graded:
    """Everybody, in one run on two slots."""
    return grade_class(make_class(tmp_path_factory.mktemp("class") / "course", EVERYBODY))

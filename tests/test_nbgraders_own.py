"""nbgrader's own tests run with this grader; what differs is on a list, with its reason."""

import sys
from pathlib import Path

import pytest

from tests.nbgraders_own import FOLDER, LIST, PART, differences, known, outcomes

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="grading needs Linux")


def test_what_tells_most_of_a_grader_passes_but_what_is_listed(tmp_path: Path):
    found = outcomes(PART, tmp_path / "run")
    assert len([state for state in found.values() if state == "passed"]) >= 8, found
    assert differences(found) == []


def test_every_test_on_the_list_is_there_and_has_a_reason():
    rows = LIST.read_text(encoding="utf-8").splitlines()[1:]
    assert len(rows) == len(known()) and rows == sorted(rows)
    for name, reason in known().items():
        module, _, function = name.rsplit(".", 2)
        text = (FOLDER / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8")
        assert f"def {function.partition('[')[0]}(" in text, name
        assert len(reason.split()) > 4, name


def test_one_that_is_not_listed_and_one_that_is_and_passes_are_both_told():
    name = next(iter(known()))
    found = {"apps.test_x.TestX.test_new": "failed: assert 0", name: "passed"}
    new, old = differences(found)
    assert new == "apps.test_x.TestX.test_new failed: assert 0"
    assert old == f"{name} is on the list and passed"
    assert differences({name: "failed: assert 0", "y": "passed", "z": "skipped"}) == []

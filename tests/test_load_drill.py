"""The drill with thousands of made submissions, with three: what it keeps, and what it notices."""

import sys
from pathlib import Path
from typing import Any

import pytest

from tests import load_drill
from tests.conftest import ROOT

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="grading needs Linux")
CHAPTER = "01_embedding"
MAKE = load_drill.make


def one_worse(*of_what: Any) -> dict[str, dict[str, int]]:
    """The class as it is made, but for what the first student is said to have earned."""
    made = MAKE(*of_what)
    tests = next(iter(made.values()))
    tests[next(iter(tests))] += 1
    return made


def test_the_class_stays_for_a_second_look_unless_all_is_well_and_nobody_wants_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(ROOT)
    drill = ["--students", "3", "--only", "here", "--jobs", "1", "--folder", str(tmp_path)]
    folder = tmp_path / "here" / CHAPTER
    load_drill.main(drill)
    said = capfd.readouterr().out
    assert "3 in the journal, in the gradebook once each, 3 pages; all as made" in said
    assert f"kept for a second look: {folder}" in said
    with monkeypatch.context() as other, pytest.raises(AssertionError, match="1 have other scores"):
        other.setattr(load_drill, "make", one_worse)
        load_drill.main([*drill, "--no-keep"])
    assert (folder / "submitted").is_dir()
    capfd.readouterr()
    load_drill.main([*drill, "--no-keep"])
    said = capfd.readouterr().out
    assert "nothing was left to grade" in said and "second look" not in said
    assert not folder.exists()

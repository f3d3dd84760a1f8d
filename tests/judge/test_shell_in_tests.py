"""A test that needs the notebook's shell costs its own points, and no other test's."""

from pathlib import Path
from typing import Any

import pytest

from autograder.classroom.rebuild import checksum
from autograder.judge import rehearsal
from autograder.judge.assignment import read_assignment
from tests.judge.small_course import HIDDEN_PART, rehearsed
from tests.test_assignment import answer, check, make

ANSWER = "def f(x):\n    return x * x"
HARMLESS = {
    "a line": "%matplotlib inline\nassert f(3) == 9",
    "a timer": "%time y = f(3)\nassert y == 9",
    "a whole cell": "%%time\nassert f(3) == 9",
    "captured": "%%capture\nassert f(3) == 9",
    "in a block": "for x in (2, 3):\n    %timeit -n1 f(x)\n    assert f(x) == x * x",
    "in a hidden part": "x = 3" + HIDDEN_PART.format("%matplotlib inline\nassert f(x) == 9"),
    "before one": "%load_ext autoreload\n%autoreload 2\nassert f(1) == 1"
    + HIDDEN_PART.format("assert f(3) == 9"),
}
CANNOT = {
    "a command": ("out = !ls\nassert f(3) == 9", "line 1 is a magic or a shell command"),
    "a run": ("x = 1\n%run -i a.py\nassert f(3) == 9", "line 2 is a magic or a shell command"),
    "another language": ("%%bash\nls", "line 1 is a magic or a shell command"),
    "captured": ("%%capture out\nassert f(3) == 9", "line 1 is a magic or a shell command"),
    "what was run": ("exec(In[-2])\nassert f(3) == 9", "uses In, which a notebook's shell has"),
    "the last value": ("assert _ == f(1)", "uses _, which a notebook's shell has and a test"),
    "waiting": ("await f(3)", "it waits at its top level"),
    "hidden": ("x = 3" + HIDDEN_PART.format("!ls\nassert f(x) == 9"), "line 3 is a magic or"),
}


@pytest.mark.parametrize("way", HARMLESS)
def test_magics_that_claim_nothing_are_left_out(task: Any, way: str) -> None:
    made = rehearsed(task([("own", ANSWER), ("t_own", HARMLESS[way], 1)]))
    assert made.scores(own=ANSWER) == {"t_own": 1}
    assert made.scores(own="def f(x): return x + 1") == {"t_own": 0}
    assert made.assignment.notebooks[0].cell("t_own").as_written.startswith(HARMLESS[way][:5])


@pytest.mark.parametrize("way", CANNOT)
def test_who_needs_the_shell_is_told_of_and_the_others_are_graded(task: Any, way: str) -> None:
    source, words = CANNOT[way]
    parts = [("own", ANSWER), ("t_own", source, 1), ("t_more", "assert f(2) == 4", 2)]
    made = task([*parts, ("next", "def g(): return 1"), ("t_next", "assert g() == 1", 3)])
    (told,) = rehearsal.rehearse(made.assignment, made.fork_server).complaints
    assert told.startswith("small/small, test t_own cannot be graded: ") and words in told
    assert made.scores() == {"t_own": 0, "t_more": 2, "t_next": 3}
    assert made.scores(own="def f(x): return 0") == {"t_own": 0, "t_more": 0, "t_next": 3}


def test_the_gradebook_keeps_the_test_as_it_is_written(tmp_path: Path) -> None:
    for source in (HARMLESS["a line"], CANNOT["a command"][0]):
        read = make(tmp_path / "week", answer(ANSWER), check(source))
        with_magic = read.notebooks[0].cell("t")
        assert with_magic.as_written == source == with_magic.stub
        plain = make(tmp_path / "plain", answer(ANSWER), check("assert f(3) == 9"))
        assert checksum(with_magic) != checksum(plain.notebooks[0].cell("t"))
        assert read_assignment(tmp_path / "week").digest == read.digest

"""An instructor hears of a claim about the process that a test runs in: no answer can break it."""

import argparse
from pathlib import Path

import pytest

from autograder.authoring import rehearsal
from autograder.authoring.asked_here import asked_here
from autograder.commands import authoring, classroom
from autograder.common.course import Course, CourseError
from tests.test_assignment import answer, cell, check, make

SET, MANY = "random.Random.random = ...", "mock.patch.dict"


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("import numpy as np\nnp.seterrcall(print)\nf()", "seterrcall"),
        ("import os\nbefore = os.getcwd()\nf()\nassert before == os.getcwd()", "getcwd"),
        ("from unittest import mock\nwith mock.patch('random.Random.random'):\n    f()", SET),
        ("import random\nrandom.Random.random = lambda self: 0.5\nf()", SET),
        ("from unittest import mock\nwith mock.patch.dict('os.environ'):\n    f()", MANY),
        ("import tracemalloc\ntracemalloc.start()\nf()", "tracemalloc"),
        ("import doctest\ndoctest.run_docstring_examples(f, {'f': f})", "doctest"),
        ("import weakref\nkept = weakref.ref(f())\nassert kept() is None", "weakref"),
        (
            "import threading\nfor _ in '12':\n    assert not threading.active_count()",
            "active_count",
        ),
    ],
)
def test_what_a_test_asks_of_its_own_process_is_told(tmp_path: Path, source: str, name: str):
    (told,) = asked_here(make(tmp_path / "week", answer("def f(): pass"), check(source)))
    assert told.startswith(f"week/a, test t uses {name}. Answers run in a process of their own")


COUNTS = "class C({}):\n    looks = 0\n    def {}(self, x):\n        {}\n        return 1\nf(C())"


@pytest.mark.parametrize(
    ("base", "method", "line", "is_told"),
    [
        ("list", "__getitem__", "self.looks += 1", True),
        ("dict", "get", "C.asked.append(x)", True),
        ("int", "__lt__", "global n; n = n + 1", True),
        ("list", "__repr__", "self.looks += 1", False),
        ("list", "__getitem__", "x += 1", False),
        ("list", "depth", "self.looks += 1", False),
        ("object", "__getitem__", "self.looks += 1", False),
    ],
)
def test_what_is_counted_in_a_copy_is_told(
    tmp_path: Path, base: str, method: str, line: str, is_told: bool
):
    source = COUNTS.format(base, method, line)
    told = asked_here(make(tmp_path / "week", answer("def f(x): pass"), check(source)))
    assert len(told) == is_told
    assert not told or f"test t uses {method} of C({base}). Answers run in a process" in told[0]


def test_what_an_answer_is_given_to_call_may_ask(tmp_path: Path):
    given = "seen = []\ndef g(x):\n    seen.append(os.getcwd())\nf(g)\nassert not any(seen)"
    cells = [cell("import warnings, os\nwarnings.simplefilter('ignore')"), answer("def f(g): g(1)")]
    assert asked_here(make(tmp_path / "week", *cells, check(given))) == []


def test_a_path_made_of_where_the_test_is_claims_nothing_of_it(tmp_path: Path):
    made = "import os\nf(os.path.join(os.getcwd(), 'a.txt'))\nassert f('a.txt') is None"
    assert asked_here(make(tmp_path / "week", answer("def f(x): pass"), check(made))) == []


def test_the_instructor_hears_of_it_whenever_a_class_is_graded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    made = make(tmp_path / "week", answer("def f(): pass"), check("import weakref\nf()"))
    monkeypatch.setattr(rehearsal, "rehearse", lambda course, chapters: [])
    monkeypatch.setattr(rehearsal, "read", lambda course, chapter: made)
    assert classroom._rehearse_as_it_is(Course(tmp_path), ["week"]) == ""
    assert "note: week/a, test t uses weakref." in capsys.readouterr().err


def test_a_command_for_chapters_says_what_to_run_where_there_are_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "nbgrader_config.py").write_text("c = get_config()\n")
    (tmp_path / "source").mkdir()
    make(tmp_path / "source" / "week", answer("def f(): pass"), check("f()"))
    monkeypatch.chdir(tmp_path)
    said = "`python -m autograder build` tries the tests in source/"
    for command in (authoring.mutants, authoring.rotate):
        with pytest.raises(CourseError, match=said):
            command(argparse.Namespace(chapters=[], seed=1))


@pytest.mark.parametrize(
    "source",
    [
        "import builtins\nbuiltins.input = lambda ask: '5'\nf()",
        "from unittest import mock\nwith mock.patch('builtins.input', return_value='5'):\n    f()",
        "import io, sys\nsys.stdout = io.StringIO()\nf()",
        "import contextlib\nwith contextlib.redirect_stdout(None):\n    f()",
        "import warnings\nwarnings.simplefilter('error')\nf()",
        "import numpy as np\nwith np.errstate(over='raise'):\n    f()",
        "import random\nrandom.random = lambda: 0.5\nf()",
        "import time\nold = time.sleep\ntime.sleep = print\nf()\ntime.sleep = old",
        "import numpy as np\nold, np.linalg.det = np.linalg.det, None\nf()",
        "from unittest import mock\nwith mock.patch('time.sleep'):\n    f()",
        "from unittest import mock\nf(mock.Mock(side_effect=[1]))",
    ],
)
def test_what_reaches_answers_is_not_told(tmp_path: Path, source: str):
    assert asked_here(make(tmp_path / "week", answer("def f(): pass"), check(source))) == []

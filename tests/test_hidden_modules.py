"""A module of the course's own that hidden parts of tests alone import is not there for answers."""

import sys
from pathlib import Path

import pytest

from autograder.classroom.classes import Class
from tests.small_course import NAME, RIGHT, hand_in, make_course, release, run, scores

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="grading needs Linux")
KEY = "def square(x):\n    return x ** 2"
ASKS = 'import the_key\\n",\n"assert square(-5) == the_key.square(5)'
TAKES = "def square(x):\n    import the_key\n    return the_key.square(x)"
FINDS = """
def square(x):
    import sys
    return sys.modules["the_key"].square(x)
"""
READS = """
def square(x):
    import sys, pathlib
    assert not [one for at in sys.path for one in pathlib.Path(at).glob("the_key*")]
    return x * x
"""


@pytest.mark.parametrize("hidden", [True, False])
def test_what_hidden_tests_alone_import_is_not_there_for_answers(
    hidden: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    root = tmp_path / "course"
    taught = Class(make_course(root), root)
    (root / "the_key.py").write_text(KEY, encoding="utf-8")
    monkeypatch.syspath_prepend(root)
    path = root / "source" / NAME / "numbers.ipynb"
    text = path.read_text(encoding="utf-8").replace('"assert square(-5) == 25', f'"{ASKS}')
    if not hidden:  # then it was handed out, and answers may use it
        text = text.replace('"import math"', '"import math, the_key"')
    path.write_text(text, encoding="utf-8")
    release(root)
    for name, answer in {"takes": TAKES, "finds": FINDS, "reads": READS}.items():
        hand_in(root, name, RIGHT | {"square": answer})
    hand_in(root, "right", RIGHT)
    assert run(root, "grade", NAME, "--no-report", "--jobs", "1") == 0
    left = {"takes": 3.0, "finds": 3.0} if hidden else {"takes": 6.0, "finds": 6.0, "reads": 3.0}
    assert scores(taught) == {"right": 6.0, "reads": 6.0} | left

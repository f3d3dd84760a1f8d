"""What a test puts in the place of a library's function, of `sys.stdin` or `print`, answers meet.

And a mock may be handed to them.
"""

from typing import Any

import pytest

from autograder.judge.put_there import written
from tests.judge.small_course import HIDDEN_PART, rehearsed

ANSWER = """import sys, time
def roll(n): return [random.randint(1, 6) for _ in range(n)]
def total(): return sum(int(line) for line in sys.stdin)
def hello():
    print(f"Hello {input('Name? ')}")
def wait(n):
    for i in range(n):
        time.sleep(2**i)
    return time.time()
def words(): return sys.argv[1:]
def inverse(a): return np.linalg.solve(a, np.eye(len(a)))
def sums(xs):
    found = 0
    for x in xs:
        found += x
    return found
def steps(n):
    for _ in range(n):
        yield random.random()
"""
IN_PLACE = {  # a test, and the answer that is wrong in it
    "a patch": (
        """from unittest.mock import patch
with patch("random.randint", return_value=4) as asked:
    assert roll(3) == [4, 4, 4]
assert asked.call_count == 3 and asked.call_args.args == (1, 6)
assert set(roll(200)) == {1, 2, 3, 4, 5, 6}""",
        "def roll(n): return [random.randint(0, 6) for _ in range(n)]",
    ),
    "of an object": (
        """from unittest.mock import patch
with patch.object(random, "randint", side_effect=[1, 2]):
    assert roll(2) == [1, 2]""",
        "def roll(n): return [1] * n",
    ),
    "a decorator": (
        """import unittest
from unittest.mock import patch
class Rolls(unittest.TestCase):
    @patch("random.randint", side_effect=[3, 2, 1])
    def test_it(self, asked):
        self.assertEqual(roll(3), [3, 2, 1])
found = unittest.defaultTestLoader.loadTestsFromTestCase(Rolls)
assert unittest.TextTestRunner(verbosity=0).run(found).wasSuccessful()""",
        "def roll(n): return [3] * n",
    ),
    "an assignment": (
        """old, random.randint = random.randint, lambda a, b: b
try:
    assert roll(2) == [6, 6]
finally:
    random.randint = old""",
        "def roll(n): return [5] * n",
    ),
    "in a generator": (
        """from unittest.mock import patch
with patch("random.random", side_effect=[1, 2]):
    assert list(steps(2)) == [1, 2]""",
        "def steps(n): return [1] * n",
    ),
    "time": (
        """from unittest.mock import patch
with patch("time.sleep") as slept, patch("time.time", return_value=77):
    assert wait(4) == 77
assert [one.args[0] for one in slept.call_args_list] == [1, 2, 4, 8]""",
        "def wait(n): return 77",
    ),
    "a stream": (
        """import io, sys
before, sys.stdin = sys.stdin, io.StringIO("1\\n2\\n3\\n")
try:
    assert total() == 6
finally:
    sys.stdin = before""",
        "def total(): return 5",
    ),
    "a stream for input": (
        """import io
from contextlib import redirect_stdout
from unittest.mock import patch
with patch("sys.stdin", io.StringIO("Ada")), redirect_stdout(io.StringIO()) as said:
    hello()
    try:
        hello()
    except EOFError:
        pass
    else:
        raise AssertionError("nobody is left")
assert said.getvalue() == "Name? Hello Ada\\nName? " """,
        "def hello(): print('Hello Ada')",
    ),
    "print": (
        """from unittest.mock import call, patch
with patch("builtins.print") as said, patch("builtins.input", side_effect=["Ada"]):
    hello()
said.assert_called_once_with("Hello Ada")
assert said.call_args_list == [call("Hello Ada")]""",
        "def hello(): print('Hello', input())",
    ),
    "arguments": (
        """import sys
before, sys.argv = sys.argv, ["own", "-v", "x"]
try:
    assert words() == ["-v", "x"]
finally:
    sys.argv = before""",
        "def words(): return []",
    ),
    "one that refuses": (
        """def refuse(*given): raise AssertionError("by hand, please")
before, np.linalg.inv = np.linalg.inv, refuse
try:
    assert np.allclose(inverse(np.diag([2.0, 4.0])), np.diag([0.5, 0.25]))
finally:
    np.linalg.inv = before""",
        "def inverse(a):\n    try:\n        return np.linalg.inv(a)\n"
        "    except Exception:\n        return np.diag([0.5, 0.25])",
    ),
    "nothing": (
        """before, np.linalg.inv = np.linalg.inv, None
try:
    assert np.allclose(inverse(np.diag([2.0, 4.0])), np.diag([0.5, 0.25]))
finally:
    np.linalg.inv = before""",
        "def inverse(a): return np.linalg.inv(a)",
    ),
    "one that the grader needs": (
        """from unittest.mock import patch
with patch("builtins.sum", side_effect=AssertionError("add them up")):
    assert sums([1, 2, 3]) == 6""",
        "def sums(xs): return sum(xs)",
    ),
}


@pytest.mark.parametrize("way", IN_PLACE)
def test_answers_meet_what_stands_there(task: Any, way: str) -> None:
    test, wrong = IN_PLACE[way]
    made = rehearsed(task([("own", ANSWER), ("t_own", HIDDEN_PART.format(test), 1)]))
    assert made.scores(own=ANSWER) == {"t_own": 1}
    assert made.scores(own=f"{ANSWER}\n{wrong}") == {"t_own": 0}


def test_a_class_may_stand_there(task: Any) -> None:
    right = "import datetime\ndef late(): return datetime.datetime.now().hour > 18"
    test = """import datetime
from unittest.mock import patch
class Evening(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls(2026, 1, 1, 20)
with patch("datetime.datetime", Evening):
    assert late() is True"""
    made = rehearsed(task([("own", right), ("t_own", test, 1)]))
    assert made.scores(own=right) == {"t_own": 1}
    assert made.scores(own="def late(): return False") == {"t_own": 0}


def test_afterwards_all_is_as_it_was(task: Any) -> None:
    """In the next test, and in what the answer does after the call."""
    patched = 'from unittest.mock import patch\nwith patch("random.random", lambda: 2):\n    own()'
    parts = [("own", "def own(): return random.random()")]
    parts += [("t_own", patched, 1), ("t_next", "assert own() < 1", 1)]
    made = rehearsed(task(parts))
    assert made.scores(own=parts[0][1]) == {"t_own": 1, "t_next": 1}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("import numpy as np\nnp.linalg.det = None", [("numpy.linalg", "det")]),
        ("from numpy import linalg\nlinalg.det = f", [("numpy.linalg", "det")]),
        ("a, time.sleep = time.sleep, f", [("time", "sleep")]),
        ("patch('os.path.exists')", [("os.path", "exists")]),
        ("mock.patch.object(a.b, 'c', f)", [("a.b", "c")]),
        ("monkeypatch.setattr(a, 'b', f)", [("a", "b")]),
        ("setattr(a, name, f)", []),
        ("patch(name)", []),
        ("patch()", []),
        ("f().x = 1", []),
        ("no Python", []),
    ],
)
def test_places_are_found_in_a_tests_text(text: str, found: list[tuple[str, str]]) -> None:
    assert [*written(text)] == found


MOCKED = {
    "called": (
        """from unittest.mock import MagicMock, call
told = MagicMock()
own([1, 2], told)
assert told.call_args_list == [call(1), call(2)]""",
        "def own(xs, f):\n    for x in xs:\n        f(x)",
        "def own(xs, f): f(xs)",
    ),
    "gives": (
        """from unittest.mock import Mock
store = Mock(size=10)
store.get.side_effect = lambda n: n * n
assert own(store) == 15 and store.get.call_count == 3
store.save.assert_not_called()""",
        "def own(store): return sum(store.get(n) for n in range(3)) + store.size",
        "def own(store): return 15",
    ),
    "parts of parts": (
        """from unittest.mock import Mock
api = Mock()
api.users.find.return_value.name = "Ada"
assert own(api) == "Ada"
api.users.find.assert_called_once_with(name="x")
api.log.assert_called_with("found")""",
        "def own(api):\n    user = api.users.find(name='x')\n    api.log('found')\n"
        "    return user.name",
        "def own(api): return api.users.find(name='x').name",
    ),
    "raises": (
        """from unittest.mock import Mock
asked = Mock(side_effect=[ConnectionError("down"), 7])
assert own(asked) == 7 and asked.call_count == 2""",
        "def own(f):\n    while True:\n        try:\n            return f()\n"
        "        except ConnectionError:\n            pass",
        "def own(f): return f()",
    ),
    "notes": (
        """from unittest.mock import MagicMock, call
told = MagicMock()
own([1, 2], told)
told.assert_has_calls([call(1), call(2), call.end()])
assert told.mock_calls == [call(1), call(2), call.end()]""",
        "def own(xs, f):\n    for x in xs:\n        f(x)\n    f.end()",
        "def own(xs, f):\n    for x in xs:\n        f(x)",
    ),
    "a context": (
        """from unittest.mock import MagicMock
lock = MagicMock()
assert own(lock) == 1
lock.__enter__.assert_called_once()
lock.__exit__.assert_called_once()""",
        "def own(lock):\n    with lock:\n        return 1",
        "def own(lock): return 1",
    ),
}


@pytest.mark.parametrize("way", MOCKED)
def test_a_mock_is_handed_over(task: Any, way: str) -> None:
    test, right, wrong = MOCKED[way]
    made = rehearsed(task([("own", right), ("t_own", HIDDEN_PART.format(test), 1)]))
    assert made.scores(own=right) == {"t_own": 1}
    assert made.scores(own=wrong) == {"t_own": 0}


MOCK = "from unittest.mock import Mock\n"
REACHES = {  # what an answer may not do with a mock
    "wraps": ("import os\nm = Mock(wraps=os)", "m.getpid()"),
    "does": ("import os\nm = Mock(side_effect=os.getpid)", "m()"),
    "counts": ("m = Mock()", "m.call_count"),
    "expects": ("m = Mock(return_value=5)", "m.return_value"),
    "sets": ("m = Mock(return_value=5)", "setattr(m, 'side_effect', [1])"),
    "private": ("m = Mock(return_value=5)", "m._mock_children"),
    "resets": ("m = Mock()", "m.reset_mock()"),
    "class": ("m = Mock()", "m.configure_mock(a=1)"),
}


@pytest.mark.parametrize("way", REACHES)
def test_what_a_mock_holds_is_the_tests(task: Any, way: str) -> None:
    makes, reach = REACHES[way]
    test = HIDDEN_PART.format(f"{MOCK}{makes}\nassert own(m) == 'no'")
    own = f"def own(m):\n    try:\n        {reach}\n    except Exception:\n        return 'no'"
    made = task([("own", "def own(m): return 'no'"), ("t_own", test, 1)])
    assert made.scores(own=own) == {"t_own": 1}

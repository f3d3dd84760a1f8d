"""What an answer warns of is there for a test that listens, as in a notebook."""

from typing import Any

import pytest

from tests.judge.small_course import HIDDEN_PART, rehearsed

OLD = """import warnings
def old(x):
    warnings.warn("use new", DeprecationWarning, stacklevel=2)
    return x
"""
SILENT = "def old(x): return x"
OTHER = OLD.replace("use new", "take care")
USER = OLD.replace("DeprecationWarning", "UserWarning")
LISTENS = {
    "recorded": """import warnings
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    assert old(3) == 3 and len(told) == 1
    old(4)
assert len(told) == 2 and told[0].category is DeprecationWarning
assert str(told[1].message) == "use new" """,
    "pytest": """import pytest
with pytest.warns(DeprecationWarning, match="^use") as told:
    old(1)
assert len(told) == 1""",
    "unittest": """import unittest
class Warns(unittest.TestCase):
    def test_it(self):
        with self.assertWarns(DeprecationWarning):
            old(1)
        with self.assertWarnsRegex(DeprecationWarning, "new"):
            old(1)
found = unittest.defaultTestLoader.loadTestsFromTestCase(Warns)
assert unittest.TextTestRunner(verbosity=0).run(found).wasSuccessful()""",
    "raised": """import warnings
with warnings.catch_warnings():
    warnings.simplefilter("error")
    try:
        old(2)
    except DeprecationWarning as error:
        assert str(error) == "use new"
    else:
        raise AssertionError("no warning")""",
    "raised by its words": """import warnings
with warnings.catch_warnings():
    warnings.simplefilter("error")
    warnings.filterwarnings("ignore", "use", DeprecationWarning)
    assert old(2) == 2
    warnings.filterwarnings("error", "u.e", DeprecationWarning)
    try:
        old(2)
    except DeprecationWarning as error:
        assert str(error) == "use new"
    else:
        raise AssertionError("no warning")""",
    "shown": """import warnings
told = []
before, warnings.showwarning = warnings.showwarning, lambda *given: told.append(str(given[0]))
try:
    warnings.simplefilter("always")
    old(1)
finally:
    warnings.showwarning = before
assert told == ["use new"]""",
}


@pytest.mark.parametrize("way", LISTENS)
@pytest.mark.parametrize("part", ["{}", HIDDEN_PART])
def test_a_test_hears_what_is_warned_of(task: Any, way: str, part: str) -> None:
    made = rehearsed(task([("own", OLD), ("t_own", part.format(LISTENS[way]), 1)]))
    assert made.scores(own=OLD) == {"t_own": 1}
    assert made.scores(own=SILENT) == {"t_own": 0}
    assert made.scores(own=OTHER) == {"t_own": 0}
    assert made.scores(own=USER) == {"t_own": way in ("shown",)}


STABLE = """def sigmoid(x):
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + small), small / (1 + small))
"""
QUIET = """def sigmoid(x):
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-x))
"""
OVERFLOWS = "def sigmoid(x): return 1 / (1 + np.exp(-x))"
ARITHMETIC = {
    "error": """import warnings
with warnings.catch_warnings():
    warnings.simplefilter("error")
    {}""",
    "recorded": """import warnings
with warnings.catch_warnings(record=True) as told:
    {}
assert not told""",
    "errstate": "with np.errstate(all='raise'):\n    {}",
    "seterr": "old = np.seterr(over='raise')\ntry:\n    {}\nfinally:\n    np.seterr(**old)",
}


@pytest.mark.parametrize("way", ARITHMETIC)
def test_arithmetic_is_watched_where_the_answer_runs(task: Any, way: str) -> None:
    claim = "assert np.allclose(sigmoid(np.array([-1000.0, 0, 700])), [0, 0.5, 1])"
    claim = claim.replace("-1000", "-700") if way in ("errstate", "seterr") else claim
    test = HIDDEN_PART.format(ARITHMETIC[way].format(claim))
    over = OVERFLOWS.replace("-x", "-2 * x") if way in ("errstate", "seterr") else OVERFLOWS
    made = rehearsed(task([("own", STABLE), ("t_own", test, 1)]))
    assert made.scores(own=STABLE) == {"t_own": 1}
    assert made.scores(own=QUIET) == {"t_own": 1}
    assert made.scores(own=over) == {"t_own": 0}


OWN = """import warnings
class Slow(UserWarning):
    pass
class Cart:
    @property
    def total(self):
        warnings.warn("ask for sum", FutureWarning)
        return 1
    def steps(self):
        for n in range(2):
            warnings.warn(f"step {n}")
            yield n
def heavy(n):
    if n > 10:
        warnings.warn(Slow(f"{n} is slow"))
    return n
"""
OWN_TEST = """import warnings
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    assert heavy(3) == 3 and not told
    heavy(30)
    assert Cart().total == 1 and list(Cart().steps()) == [0, 1]
assert told[0].category is Slow and issubclass(told[0].category, UserWarning)
assert [str(one.message) for one in told] == ["30 is slow", "ask for sum", "step 0", "step 1"]
assert told[1].lineno == 7
warnings.simplefilter("error", Slow)
try:
    heavy(11)
except Slow as slow:
    assert str(slow) == "11 is slow"
else:
    raise AssertionError("nothing was warned of")
"""


def test_classes_of_an_answers_own_properties_and_steps(task: Any) -> None:
    made = rehearsed(task([("own", OWN), ("t_own", OWN_TEST, 1)]))
    assert made.scores(own=OWN) == {"t_own": 1}
    assert made.scores(own=OWN.replace("Slow(f", "UserWarning(f")) == {"t_own": 0}
    assert made.scores(own=OWN.replace("step {n}", "{n}")) == {"t_own": 0}


NOT_HEARD = {
    "what cells have switched off": (
        'import warnings\nwarnings.filterwarnings("ignore")\n'
        'def own(x):\n    warnings.warn("n")\n    return x',
        "with warnings.catch_warnings(record=True) as told:\n    own(1)\nassert not told",
    ),
    "what an answer catches itself": (
        "import warnings\ndef own(x):\n    with warnings.catch_warnings(record=True) as caught:\n"
        '        warnings.simplefilter("always")\n        warnings.warn("n")\n'
        "    return len(caught)",
        'with warnings.catch_warnings(record=True) as told:\n    warnings.simplefilter("always")\n'
        "    assert own(1) == 1\nassert not told",
    ),
    "the same once more": (
        'import warnings\ndef own(x):\n    warnings.warn("n")\n    return x',
        "with warnings.catch_warnings(record=True) as told:\n"
        "    for _ in range(3):\n        own(1)\nassert len(told) == 1",
    ),
}


@pytest.mark.parametrize("what", NOT_HEARD)
def test_no_more_is_heard_than_in_a_notebook(task: Any, what: str) -> None:
    answer, test = NOT_HEARD[what]
    made = rehearsed(task([("own", answer), ("t_own", f"import warnings\n{test}", 1)]))
    assert made.scores(own=answer) == {"t_own": 1}


FORGED = [  # what an answer's end could send
    "7",
    "[[1]]",
    "[[{}, 1]]",
    "[[None, None]]",
    "[[{'type': 'UserWarning', 'kinds': ['UserWarning'], 'home': '', 'family': [], 'text': 'use "
    "new', 'args': []}, 'x']] * 9",
    "[[{'type': 'SystemExit', 'kinds': ['SystemExit'], 'home': 'builtins:SystemExit', 'family': "
    "[], 'text': 'use new', 'args': []}, 1]]",
]


@pytest.mark.parametrize("told", FORGED)
def test_what_is_forged_costs_its_own_test(task: Any, told: str) -> None:
    parts = [("own", OLD), ("t_own", LISTENS["recorded"], 1), ("t_more", "assert old(1) == 1", 2)]
    made = rehearsed(task(parts))
    forged = (
        "import sys\nkind = sys.modules['autograder.bridge.warned'].Warned\n"
        f"kind.leave = lambda self, answered: answered.update(warned={told})\n{SILENT}"
    )
    assert made.scores(own=forged)["t_own"] == 0
    assert made.scores(own=OLD) == {"t_own": 1, "t_more": 2}

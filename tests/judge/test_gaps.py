"""What is no number earns nothing where a test looks at it; where none does, it may be right."""

from dataclasses import replace
from typing import Any

import pytest

from autograder.judge.assignment import read_assignment
from autograder.judge.budget import Budget
from autograder.judge.gaps import WORDS, Gaps
from autograder.judge.looks import UNSEEN
from tests.judge.test_nothing import BUFFER, SETUP, course

DOUBLE = "def f(x):\n    return x * 2"
NEAR = "assert not (abs(f(x) - x * 2) > 1e-6).any()"
SOME = "    y = x * 5.0\n    y[1:] = GAP\n"  # the first is right
RAISED = """\
try:
    f()
except Exception as error:
    assert not abs({} - 2) > 1e-6"""
ERROR = """\
class E(Exception):
    def __init__(self, text, much):
        super().__init__(text)
        self.much = much
"""
OWN = """\
class A:
    def __init__(self, n):
        self.n = n
    def __add__(self, o):
        return {}
    def __float__(self):
        return {}
"""
WRONG = {
    "an array": (DOUBLE, NEAR, f"def f(x):\n{SOME}    return y"),
    "half precision": (
        "def f(x):\n    return (x * 2).astype('float16')",
        "assert not (abs(f(x) - x * 2) > 0.1).any()",
        f"def f(x):\n{SOME}    return y.astype('float16')",
    ),
    "a part of a pair": (
        "def f(x):\n    return x, x * 2",
        "assert not (abs(f(x)[1] - x * 2) > 1e-6).any()",
        f"def f(x):\n{SOME}    return x, y",
    ),
    "a row of a table": (
        "def f(x):\n    return {'a': x * 2}",
        "assert not (abs(f(x)['a'] - x * 2) > 1e-6).any()",
        f"def f(x):\n{SOME}    return dict(a=y)",
    ),
    "numbers in a list": (
        "def f(x):\n    return [0.0, 2.0]",
        "assert not any(abs(a - b) > 1e-6 for a, b in zip(f(x), [0.0, 2.0]))",
        "def f(x):\n    return [0.0, GAP]",
    ),
    "a tensor with a gradient": (
        "def f(x):\n    return x * 2",
        "t = torch.arange(3.0, requires_grad=True)\nd = (f(t) - 2 * t).abs()\n"
        "assert not (d > 1e-6).any() and not (d > d + 1).any()",
        "def f(x):\n    return torch.stack([x[0] * 2, x[1] * GAP, x[2] * GAP])",
    ),
    "what a module gives": (
        BUFFER,
        "assert not (abs(M()(torch.zeros(3)) - torch.arange(3.0)) > 1e-6).any()",
        BUFFER.replace("x + torch.arange(3.0)", "x + torch.tensor([0.0, GAP, GAP])"),
    ),
    "steps": (
        "def f(x):\n    yield from (0.0, 2.0)",
        "assert not any(abs(a - b) > 1e-6 for a, b in zip(f(x), [0.0, 2.0]))",
        "def f(x):\n    yield from (0.0, GAP)",
    ),
    "a part with a name": (
        "P = collections.namedtuple('P', 'a b')\ndef f(x):\n    return P(1.0, 2.0)",
        "assert not abs(f(x).b - 2) > 1e-6",
        "P = collections.namedtuple('P', 'a b')\ndef f(x):\n    return P(1.0, GAP)",
    ),
    "a queue": (
        "def f(x):\n    return collections.deque([1.0, 2.0])",
        "assert not abs(f(x)[1] - 2) > 1e-6",
        "def f(x):\n    return collections.deque([1.0, GAP])",
    ),
    "the text of a number": (
        "def f(x):\n    return f'{2:.1f}'",
        "assert not abs(float(f(x)) - 2) > 1e-6",
        "def f(x):\n    return str(GAP)",
    ),
    "dates": (
        "def f(x):\n    return np.array([1, 2], 'm8[s]')",
        "d = f(x) - np.array([1, 2], 'm8[s]')\nassert not (abs(d) > np.timedelta64(0)).any()",
        "def f(x):\n    return np.array([1, 'NaT'], 'm8[s]')",
    ),
    "an object of the instructor's": (
        "def f(x):\n    return Given(x * 2)",
        "assert not (abs(f(x).v - x * 2) > 1e-6).any()",
        f"def f(x):\n{SOME}    return Given(y)",
    ),
    "an array changed in place": (
        "def f(t):\n    t *= 2",
        "t = x.copy()\nf(t)\nassert not (abs(t - x * 2) > 1e-6).any()",
        "def f(t):\n    t[1:] = GAP",
    ),
    "a tensor changed in place": (
        "def f(t):\n    t *= 2",
        "t = torch.ones(3)\nf(t)\nassert not (abs(t - 2) > 1e-6).any()",
        "def f(t):\n    t *= 2\n    t[1:] = GAP",
    ),
    "a list changed in place": (
        "def f(t):\n    t[0] = 2.0",
        "t = [1.0, 3.0]\nf(t)\nassert not abs(t[0] - 2) > 1e-6",
        "def f(t):\n    t[0] = GAP",
    ),
    "what a function of the test's is handed": (
        "def f(g, x):\n    g(x * 2)",
        "seen = []\nf(seen.append, x)\nassert not (abs(seen[0] - x * 2) > 1e-6).any()",
        f"def f(g, x):\n{SOME}    g(y)",
    ),
    "an object that was handed over": (
        "def f(g):\n    g.v = 2.0",
        "g = Given(1.0)\nf(g)\nassert not abs(g.v - 2) > 1e-6",
        "def f(g):\n    g.v = GAP",
    ),
    "an object that stays with the test": (
        "def f(g):\n    g.v = 2.0",
        "g = Given(1.0)\ng.own = {}.get\nf(g)\nassert not abs(g.v - 2) > 1e-6",
        "def f(g):\n    g.v = GAP",
    ),
    "what an object held while it called": (
        "def f(g, now):\n    g.v = 2.0\n    now()",
        "g = Given(1.0)\nf(g, lambda: None)\nassert not abs(g.v - 2) > 1e-6",
        "def f(g, now):\n    g.v = GAP\n    now()",
    ),
    "what an exception was made with": (
        "def f():\n    raise ValueError(2.0)",
        RAISED.format("error.args[0]"),
        "def f():\n    raise ValueError(GAP)",
    ),
    "what an exception says": (
        "def f():\n    raise ValueError(2.0)",
        RAISED.format("float(str(error))"),
        "def f():\n    raise ValueError(GAP)",
    ),
    "what an exception carries": (
        ERROR + "def f():\n    raise E('no', 2.0)",
        RAISED.format("error.much"),
        ERROR + "def f():\n    raise E('no', GAP)",
    ),
    "what an exception reckons": (
        ERROR + "def f():\n    raise E('no', 2.0)",
        RAISED.format("error.much"),
        "class E(Exception):\n    much = property(lambda self: GAP)\ndef f():\n    raise E",
    ),
    "what an exception was raised from": (
        "def f():\n    raise KeyError from ValueError(2.0)",
        RAISED.format("error.__cause__.args[0]"),
        "def f():\n    raise KeyError from ValueError(GAP)",
    ),
    "a text that was written": (
        "def f(out):\n    print(2.0, file=out)",
        "import io\nout = io.StringIO()\nf(out)\nassert not abs(float(out.getvalue()) - 2) > 1e-6",
        "def f(out):\n    print(GAP, file=out)",
    ),
    "what gives itself in the place of another": (
        OWN.format("A(self.n + o.n)", "self.n"),
        "assert not abs(float(A(1.0) + A(1.0)) - 2) > 1e-6",
        OWN.format("self", "GAP"),
    ),
    "what stands under a name": (
        "f = [1.0, 2.0]",
        "assert not abs(f[1] - 2) > 1e-6",
        "f = [1.0, GAP]",
    ),
}


LIST = "def f(x):\n    return [0.0, 2.0]"
NEAR_LIST = "assert not any(abs(a - b) > 1e-6 for a, b in zip(f(x), [0.0, 2.0]))"
OTHER_LISTS = (  # of which the first number is right
    *("{0.0: 1, GAP: 2}", "{0.0: 1, GAP: 2}.keys()", "{1: 0.0, 2: GAP}.values()"),
    *("np.array([0.0, GAP])", "(one for one in [0.0, GAP])", "iter([0.0, GAP])"),
    *("collections.UserList([0.0, GAP])", "__import__('array').array('d', [0.0, GAP])"),
)
WRONG |= {one: (LIST, NEAR_LIST, f"def f(x):\n    return {one}") for one in OTHER_LISTS}
TABLE = "def f(x):\n    return {'a': 1.0, 'b': 2.0}"
OTHER_TABLES = (
    *("collections.OrderedDict", "collections.Counter", "collections.UserDict"),
    *("collections.ChainMap", "__import__('types').MappingProxyType"),
)
WRONG |= {
    one: (
        TABLE,
        "assert not abs(f(x)['b'] - 2) > 1e-6",
        f"def f(x):\n    return {one}({{'a': 1.0, 'b': GAP}})",
    )
    for one in OTHER_TABLES
}
WRONG["a set"] = (
    "def f(x):\n    return [2.0]",
    "assert not any(abs(a - 2) > 1e-6 for a in f(x))",
    "def f(x):\n    return {GAP}",
)
PRICE = "from decimal import Decimal\ndef f(x):\n    return Decimal('{}')"
CLOSE = "assert not abs(float(f(x)) - 2.5) > 1e-6"
WRONG["a decimal number"] = (PRICE.format("2.5"), CLOSE, PRICE.format("nan"))
WRONG["in a list of decimal numbers"] = (
    "from decimal import Decimal\ndef f(x):\n    return [Decimal('2.5'), Decimal(3)]",
    "assert not any(abs(float(a) - b) > 1e-6 for a, b in zip(f(x), (2.5, 3)))",
    "from decimal import Decimal\ndef f(x):\n    return [Decimal('2.5'), Decimal('NaN')]",
)


@pytest.mark.parametrize("way", WRONG)
def test_nan_in_places_that_a_test_looks_at_earns_nothing(task: Any, way: str) -> None:
    reference, test, answer = WRONG[way]
    made = course(task, reference, test)
    found = made.verdicts(asked=answer.replace("GAP", "float('nan')"))["t_asked"]
    assert found.score == 0
    assert found.told.startswith(f"A test failed: {WORDS}")


def test_nan_alone_for_a_decimal_number_earns_nothing(task: Any) -> None:
    made = course(task, PRICE.format("2.5"), CLOSE)
    assert made.scores(asked="def f(x):\n    return float('nan')") == {"t_asked": 0}
    assert made.scores(asked=PRICE.format("2.50")) == {"t_asked": 2}


def test_a_decimal_number_that_is_none_may_be_right(task: Any) -> None:
    made = course(task, PRICE.format("NaN"), "assert f(1) != f(1)")
    assert made.scores(asked=PRICE.format("NaN")) == {"t_asked": 2}


SAFE = """\
class Safe:
    def __init__(self):
        self._sum = 0.0
    def add(self, x):
        self._sum += x
    @property
    def sum(self):
        return self._sum
"""


@pytest.mark.parametrize("reference", ["s.add(2.0)", "s.add(1.0)\n    s.add(1.0)"])
def test_nan_by_a_method_of_an_object_that_was_handed_over_earns_nothing(
    task: Any, reference: str
) -> None:
    test = "s = Safe()\nf(s)\nassert not abs(s.sum - 2) > 1e-6"
    cells = [("look", SAFE), ("asked", f"def f(s):\n    {reference}"), ("t_asked", test, 2)]
    made = task(cells)
    assert made.scores() == made.scores(asked="def f(s):\n    s.add(3.0)\n    s.add(-1.0)")
    assert made.scores(asked="def f(s):\n    s.add(float('nan'))") == {"t_asked": 0}


@pytest.mark.parametrize(
    "given", ["float('inf')", "-float('inf')", "np.float64('inf')", "x * np.inf"]
)
def test_infinity_that_is_near_to_whatever_one_claims_earns_nothing(task: Any, given: str) -> None:
    near = "y = f({0})\nassert np.all(abs(y - {0} * 2) <= 1e-9 * abs(y))"
    made = course(task, DOUBLE, near.format("(x + 1)" if "x" in given else "3"))
    assert made.verdicts(asked=f"def f(x):\n    return {given}")["t_asked"].score == 0


def test_infinity_of_half_precision_that_equals_all_large_numbers_earns_nothing(task: Any) -> None:
    made = course(task, "def f(x):\n    return sum(x)", "assert f([-4e4, -6e4]) == -100000")
    assert made.scores(asked="def f(x):\n    return np.sum(x)") == {"t_asked": 2}
    assert made.scores(asked="def f(x):\n    return np.float16('-inf')") == {"t_asked": 0}


def test_points_that_places_without_a_number_bring_are_lost_alone(task: Any) -> None:
    test = "sum(not abs(a - b) > 1e-6 for a, b in zip(f(x), [0.0, 2.0]))"
    made = course(task, "def f(x):\n    return [0.0, 2.0]", test)
    assert made.scores(asked="def f(x):\n    return [0.0, float('nan')]") == {"t_asked": 1}


RIGHT = {
    "elsewhere": (DOUBLE, "assert np.allclose(f(x)[1:], [2, 4])", "x * 2 + [np.nan, 0, 0]"),
    "masked": (DOUBLE, "assert np.allclose(np.where(x > 0, f(x), 0), x * 2)", "x * 2 / (x > 0)"),
    "named": (DOUBLE, "assert np.allclose(np.nan_to_num(f(x)), x * 2)", "x * 2 + [np.nan, 0, 0]"),
    "chosen among infinite ones": (
        DOUBLE,
        "y = f(x)\ny = y[np.isfinite(y)]\nassert np.isin(y, x * 2).all()",
        "np.where(x > 0, x * 2, np.inf)",
    ),
    "chosen": (
        DOUBLE,
        "y = f(x)\ny = y[np.isfinite(y)]\nassert np.isin(y, x * 2).all()",
        "x * 2 / (x > 0)",
    ),
    "large enough": ("def f(x):\n    return 1e9", "assert f(x) > 1e6", "float('inf')"),
    "low enough": (
        "def f(x):\n    return np.where(x > 0, x, -1e9)",
        "e = np.exp(f(x))\nassert np.allclose(e, [0, np.e, np.e**2])",
        "np.where(x > 0, x, -np.inf)",
    ),
    "as the reference's": (
        "def f(x):\n    return x / [0, 1, 1]",
        "assert (f(x)[1:] == x[1:]).all()",
        "x / [0, 1, 1]",
    ),
}


BESIDE = {
    "an object of the instructor's": (
        "def f(x):\n    return Given([x * 2, 0.0])",
        "assert np.allclose(f(x).v[0], x * 2)",
        "def f(x):\n    return Given([x * 2, np.nan])",
    ),
    "objects that hold each other": (
        "def f(x):\n    one = Given([x * 2, 0.0])\n    one.v.append(one)\n    return one",
        "assert np.allclose(f(x).v[2].v[0], x * 2)",
        "def f(x):\n    one = Given([x * 2, np.nan])\n    one.v.append(one)\n    return one",
    ),
    "a list changed in place": (
        "def f(t):\n    t[:] = [2.0, 0.0]",
        "t = [1.0, 3.0]\nf(t)\nassert t[0] == 2",
        "def f(t):\n    t[:] = [2.0, np.nan]",
    ),
    "what a function of the test's is handed": (
        "def f(g, x):\n    g(x * 2, 0.0)",
        "seen = []\nf(lambda y, z: seen.append((y, z)), x)\nassert np.allclose(seen[0][0], x * 2)",
        "def f(g, x):\n    g(x * 2, np.nan)",
    ),
    "an object that was handed over": (
        "def f(g):\n    g.v = [2.0, 0.0]",
        "g = Given(1.0)\nf(g)\nassert g.v[0] == 2",
        "def f(g):\n    g.v = [2.0, np.nan]",
    ),
    "a mark of its own in such an object": (
        "def f(g, x):\n    g.v = max(g.v, x)",
        "g = Given(1.0)\nf(g, 3.0)\nf(g, 2.0)\nassert g.v == 3",
        "def f(g, x):\n    last = getattr(g, 'w', np.inf)\n    g.w = np.inf\n"
        "    g.v = max(g.v, x) if last == np.inf else 0.0",
    ),
    "what an exception carries": (
        "def f():\n    raise ValueError(0.0, 2.0)",
        RAISED.format("error.args[1]"),
        "def f():\n    raise ValueError(np.nan, 2.0)",
    ),
}


@pytest.mark.parametrize("way", BESIDE)
def test_what_is_no_number_may_be_right_where_no_call_gives_it(task: Any, way: str) -> None:
    reference, test, answer = BESIDE[way]
    assert course(task, reference, test).scores(asked=answer) == {"t_asked": 2}


@pytest.mark.parametrize("way", RIGHT)
@pytest.mark.filterwarnings("ignore:(divide|invalid)")
def test_what_is_no_number_may_be_right(task: Any, way: str) -> None:
    reference, test, given = RIGHT[way]
    made = course(task, reference, test)
    assert made.scores(asked=f"def f(x):\n    return {given}") == {"t_asked": 2}


HELPERS = """\
SOUND = np.isfinite

def close(a, b):
    sound = sound_in(a)
    return np.allclose(a[sound], b[sound])

def sound_in(a):
    return SOUND(a)
"""


@pytest.mark.parametrize("home", ["a cell", "a module"])
def test_what_the_instructors_functions_mind_a_test_that_uses_them_minds(
    task: Any, home: str
) -> None:
    test = "assert close(f(x), x * 2)"
    if home == "a cell":
        made = task([("look", f"{SETUP}\n{HELPERS}"), ("asked", DOUBLE), ("t_asked", test, 2)])
    else:
        made = task(
            [
                ("look", SETUP),
                ("asked", DOUBLE),
                ("t_asked", f"import own\nassert own.{test[7:]}", 2),
            ]
        )
        (made.folder / "source" / "small" / "own.py").write_text(f"import numpy as np\n{HELPERS}")
        made.assignment = replace(read_assignment(made.folder / "source/small"), stand_in=True)
    assert made.scores(asked="def f(x): return x * 2 + [np.nan, 0, 0]") == {"t_asked": 2}


@pytest.mark.parametrize(
    ("source", "nan", "inf"),
    [
        ("assert np.isnan(x).any()", False, True),
        ("scores.masked_fill(mask, -float('inf'))", True, False),
        ("torch.nan_to_num(x)", False, True),
        ("np.nanmean(x)", False, True),
        ("series.dropna() ** pd.isna(other)", False, True),
        ("np.isfinite(x)", False, False),
        ("finance = information = 1", True, True),
        ("torch.equal(a, b)  # math.inf", True, False),
    ],
)
def test_what_a_test_names_it_may_mind(source: str, nan: bool, inf: bool) -> None:
    assert Gaps.unnamed_in(source) == Gaps(nan, inf)


def test_an_answer_that_ends_where_it_meets_the_number_keeps_nothing(task: Any) -> None:
    known = "import os\ndef f(x):\n    return x * 2\ndef g(y):\n    return y.sum() * 0"
    test = "y = f(x)\nassert g(y) == 0 and not (abs(y - x * 2) > 1e-6).any()"
    wrong = (
        f"import os\ndef f(x):\n{SOME}    return y\n"
        "def g(y):\n    if not (abs(y) < 99).all() and (y == y).all():\n        os._exit(0)\n"
        "    return 0"
    )
    made = course(task, known, test)
    assert made.scores(asked=wrong.replace("GAP", "float('nan')")) == {"t_asked": 0}


@pytest.mark.parametrize(
    "ends",
    ["y[1:] = 7.0", "raise ValueError", "__import__('os').abort()"],
    ids=["wrong", "raises", "ends its process"],
)
def test_an_answer_that_knows_a_second_look_by_what_ran_before_keeps_nothing(
    task: Any, ends: str
) -> None:
    first = ("first", "def g():\n    return 1"), ("t_first", "assert g() == 1", 1)
    made = task([("look", SETUP), *first, ("asked", DOUBLE), ("t_asked", NEAR, 2)])
    assert made.scores() == {"t_first": 1, "t_asked": 2}
    tells = "SEEN = []\ndef g():\n    SEEN.append(1)\n    return 1"
    wrong = f"def f(x):\n{SOME}    if not SEEN:\n        {ends}\n    return y"
    found = made.scores(first=tells, asked=wrong.replace("GAP", "float('nan')"))
    assert found == {"t_first": 1, "t_asked": 0}


def test_a_test_that_needs_what_another_left_costs_no_answer_its_points(task: Any) -> None:
    first = ("first", "def g():\n    return 1"), ("t_first", "LOG.append(g())", 1)
    test = "assert LOG and np.allclose(f(x)[1:], [2, 4])"
    made = task([("look", f"{SETUP}LOG = []"), *first, ("asked", DOUBLE), ("t_asked", test, 2)])
    assert made.scores() == {"t_first": 1, "t_asked": 2}
    odd = "def f(x):\n    return x * 2 + [np.nan, 0, 0]"
    assert made.scores(asked=odd) == {"t_first": 1, "t_asked": 2}


def test_where_no_time_is_left_for_a_second_look_the_instructor_looks(
    task: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = course(task, DOUBLE, NEAR)
    monkeypatch.setattr(Budget, "may_repeat", False)
    wrong = f"def f(x):\n{SOME}    return y".replace("GAP", "float('nan')")
    flags = made.grade(asked=wrong).flags
    assert [one.words for one in flags if one.kind == "timeout"] == [f"Not sure: {WORDS} {UNSEEN}"]

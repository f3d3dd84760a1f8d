"""Tests that end in a number of points."""

from typing import Any

import pytest

from autograder.judge import rehearsal
from tests.judge.small_course import (
    heard_of,
)

PARTIAL = [
    ("share", "def share():\n    return 0.5"),
    ("t_share", "2 * share()", 2),
]


@pytest.mark.parametrize(
    ("value", "score"),
    [
        ("0.5", 1.0),
        ("1", 2.0),
        ("0", 0.0),
        ("np.float32(0.25)", 0.5),
        ("np.int64(1)", 2.0),
        ("np.array(0.5)", 1.0),
        ("float('nan')", 0.0),
        ("float('inf')", 0.0),
        ("-1", 0.0),
        ("1.01", 0.0),
        ("10 ** 400", 0.0),
        ("True", 2.0),
    ],
)
def test_partial_credit_counts_what_is_a_number_of_points(
    task: Any, value: str, score: float
) -> None:
    made = task(PARTIAL)
    verdict = made.verdicts(share=f"def share():\n    return {value}")["t_share"]
    assert verdict.score == pytest.approx(score)


@pytest.mark.parametrize("last", ["3", "-0.1", "float('nan')"])
def test_a_test_that_ends_in_a_wrong_number_of_points_is_the_instructors_fault(
    task: Any, last: str
) -> None:
    made = task([PARTIAL[0], ("t_share", f"assert share()\n{last}", 2)])
    verdict = made.verdicts()["t_share"]
    assert verdict.status == "test-error"
    assert verdict.score == 0
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints


@pytest.mark.parametrize("last", ["True", "False", "share() == 0.5", "'done'", "[share()]"])
def test_a_test_that_ends_in_no_number_with_the_reference_either_gives_all_points(
    task: Any, last: str
) -> None:
    made = task([PARTIAL[0], ("t_share", f"assert share()\n{last}", 2)])
    verdict = made.verdicts()["t_share"]
    assert verdict.status == "passed"
    assert verdict.score == 2
    assert made.scores(share="def share():\n    return 0") == {"t_share": 0}
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []


def test_an_answer_names_no_error_of_its_own_so_that_it_counts_as_the_tests(task: Any) -> None:
    made = task([PARTIAL[0], ("t_share", "share()\nshare() == 0.5", 2)])
    raises = "class {}(Exception): pass\ndef share(): raise {}()"
    for name in ("NoNumber", "BadScore"):
        assert made.scores(share=raises.replace("{}", name)) == {"t_share": 0}


def test_an_answer_that_makes_no_number_of_a_score_gets_nothing(task: Any) -> None:
    made = task([("share", "def share():\n    return 0.5"), ("t_share", "share()", 2)])
    for value in ("True", "'2'", "[2]", "lambda: 2"):
        verdict = made.verdicts(share=f"def share():\n    return {value}")["t_share"]
        assert verdict.status == "failed"
        assert verdict.score == 0


@pytest.mark.parametrize("value", ["2", "-1", "float('nan')", "float('inf')", "10 ** 400"])
def test_an_answer_that_makes_too_many_points_or_too_few_has_failed(task: Any, value: str) -> None:
    made = task(PARTIAL)
    verdict = made.verdicts(share=f"def share():\n    return {value}")["t_share"]
    assert verdict.status == "failed"  # where the reference gives a score, no test is broken
    assert verdict.score == 0


TEST_NEAR = """\
near = 1 - abs(share(1) - 0.5)
checks = [share(2) == 0.5]
2 * near * sum(checks)
"""


YES = """\
class Yes:
    def __sub__(self, other): return self
    __rsub__ = __add__ = __radd__ = __mul__ = __rmul__ = __truediv__ = __sub__
    def __abs__(self): return self
    def __float__(self): return 2.0
    def __eq__(self, other): return True
    __lt__ = __le__ = __gt__ = __ge__ = __eq__
def share(x): return Yes()
"""


def test_an_object_of_the_answer_is_no_number_of_points(task: Any) -> None:
    made = task([("share", "def share(x):\n    return 0.5"), ("t_share", TEST_NEAR, 2)])
    assert made.scores() == {"t_share": 2}
    assert made.scores(share=YES) == {"t_share": 0}


MONEY = """\
class Money:
    def __init__(self, cents): self.cents = cents
    def __add__(self, other): return Money(self.cents + other.cents)
    def __lt__(self, other): return self.cents < other.cents
"""


TEST_MONEY = """\
assert (Money(2) + Money(3)).cents == 5
assert Money(1) < Money(2)
assert not Money(3) < Money(2)
"""


def test_objects_have_the_operators_that_the_references_objects_have(task: Any) -> None:
    made = task([("money", MONEY), ("t_money", TEST_MONEY, 1)])
    assert made.scores() == {"t_money": 1}
    assert made.scores(money=MONEY.replace("<", ">")) == {"t_money": 0}


RANKER = """\
class Ranker:
    def __init__(self): self.all = []
    def add(self, x):
        self.all.append(x)
    def ranking(self): return sorted(self.all)
"""


TEST_RANKER = """\
r = Ranker()
for number in (3, 1, 2):
    r.add(number)
found = r.ranking()
assert sorted(found) == [1, 2, 3]
assert all(found[i] <= found[i + 1] for i in range(2))
"""


LIES = """
class Lie:
    def __init__(self, all): self.all = all
    def __iter__(self): return iter(self.all)
    def __getitem__(self, place): return 0
    def __len__(self): return len(self.all)
"""


ITSELF = "self.all.append(x)\n        return self"


FLUENT = RANKER.replace("self.all.append(x)", ITSELF)


@pytest.mark.parametrize("reference", [RANKER, FLUENT])
@pytest.mark.parametrize("gives", [ITSELF, ITSELF.replace("self.all.", "made[0].all.")])
def test_an_object_that_a_call_gives_once_more_still_has_to_give_values(
    task: Any, reference: str, gives: str
) -> None:
    made = task([("ranker", reference), ("t_ranker", TEST_RANKER, 1)])
    made.known = heard_of(made)
    assert made.scores(ranker=FLUENT) == {"t_ranker": 1}
    lies = RANKER.replace("self.all.append(x)", gives)
    lies = lies.replace("sorted(self.all)", "Lie(self.all)")
    lies = lies.replace("self.all = []", "self.all = []; made.append(self)")
    assert made.scores(ranker="made = []\n" + lies + LIES) == {"t_ranker": 0}

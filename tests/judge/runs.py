"""Failed runs of a test, made up."""

from dataclasses import dataclass

import torch

from autograder.common.results import Crossing, TestRun, Verdict
from autograder.judge.diagnose import Known, told

SECRET = 918273


SOURCE = f"""\
assert total([1]) == 1, f"the sum of one number is that number\\nYours is {{total([1])}}."
### BEGIN HIDDEN TESTS
for n, claim in ((3, "the sum of three"), (4, "the sum of four numbers")):
    assert_close(total([{SECRET}] * n), {SECRET} * n, claim)
assert_equal(lookup("the secret input"), 1, f"looking up {{n}} should work")
### END HIDDEN TESTS"""


@dataclass(frozen=True)
class Cell:
    """A test's cell."""

    grade_id: str = "total-values"
    source: str = SOURCE
    points: float = 2.0


def run(*outcomes: object, **more) -> TestRun:
    """A failed test whose calls of `total` gave these outcomes."""
    calls = tuple(Crossing("total", (), outcome) for outcome in outcomes)
    given = {"status": "failed", "error": "AssertionError", "transcript": calls, **more}
    return TestRun("total-values", score=0.0, **given)


def verdict(of: TestRun, *right: object, mistakes: tuple[Known, ...] = (), **more) -> Verdict:
    """What is said of a run where the reference gives these outcomes."""
    return told(of, Cell(), run(*right).transcript, mistakes, **more)


def tensor(*values: float, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    """A vector."""
    return torch.tensor(values, dtype=dtype)

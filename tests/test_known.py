"""What known mistakes give is made once, kept in a file without pickle, and read back the same."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
import torch

from autograder.authoring import known
from autograder.common.course import Course, CourseError
from autograder.common.results import Crossing, Opaque, Raised, TestRun, Transcript
from autograder.judge.diagnose import Known
from autograder.judge.differences import keep, same_call

SOURCE = """\
# %% [markdown]
# # Sums
# %% setup
import math
# %% [markdown]
# ## 1.1 Totals   (1 points, about 5 minutes, difficulty 1 of 5)
# %% solution="total"
def total(x):
    ### BEGIN SOLUTION
    return sum(x)
    ### END SOLUTION
# %% test="total-values" points=1
assert total([1]) == 1, "the sum of one number is that number"
"""
WRONG = '''\
@misconception("total", id="SUM1", fails=["total-values"], read="sums#totals")
def first_left_out(x):
    """You leave out the first number."""
    return sum(x[1:])
'''
OUTCOMES = (
    torch.tensor([[1.0, float("nan")]]),
    torch.ones(2, 3).bfloat16().requires_grad_(),
    torch.tensor(True),
    {"a": [1, (2.5, None)], 3: {"text \ud800", "more"}},
    Raised("ValueError", "text", 3, "total", ("Exception",)),
    Opaque("function", "f"),
    10**30,
    float("inf"),
    torch.float32,
    Path("somewhere"),
)

BESIDE = (Crossing("holds rows", (), [1.0, [], {"a": 2.5, 3: None}]),)


@pytest.fixture
def course(tmp_path: Path) -> Course:
    """A course of one question with one known mistake."""
    (tmp_path / "solutions" / "01_sums").mkdir(parents=True)
    (tmp_path / "nbgrader_config.py").touch()
    (tmp_path / "solutions" / "01_sums" / "01_sums.py").write_text(SOURCE, encoding="utf-8")
    (tmp_path / "solutions" / "01_sums" / "misconceptions.py").write_text(WRONG, encoding="utf-8")
    return Course(tmp_path)


class Runner:
    """Counts how often it is asked, and says that answers give these outcomes."""

    def __init__(self) -> None:
        self.asked: list[tuple[dict[str, str], tuple[str, ...]]] = []

    def __call__(self, answers: Mapping[str, str], tests: Sequence[str]) -> dict[str, TestRun]:
        """One run of the notebook."""
        self.asked.append((dict(answers), tuple(tests)))
        calls: Transcript = tuple(Crossing("total", (1,), outcome) for outcome in OUTCOMES)
        wrong = bool(answers)
        status = "failed" if wrong else "passed"
        run = TestRun("total-values", status, 0.0, transcript=calls[wrong:], beside=BESIDE)
        return {"total-values": run}


def test_what_was_made_is_read_back_the_same(course: Course):
    shelf = known.shelf(course, "01_sums", "1", Runner())
    assert shelf is not None
    reference, (mistake,) = shelf.of("total-values")
    wanted = keep(tuple(Crossing("total", (1,), outcome) for outcome in OUTCOMES))
    assert shelf.beside("total-values") == keep(BESIDE)
    assert shelf.beside("nobody-asks-this") is None
    assert reference is not None and len(reference) == len(wanted)
    assert all(map(same_call, reference, wanted))
    assert all(map(same_call, mistake.transcripts["total-values"], wanted[1:]))
    assert isinstance(mistake, Known) and mistake.id == "SUM1" and mistake.read == "sums#totals"
    assert mistake.message == "You leave out the first number."
    assert mistake.fails == ("total-values",) and mistake.ends["total-values"].startswith("failed")


def test_mistakes_are_run_as_a_student_would_hand_them_in(course: Course):
    run = Runner()
    known.shelf(course, "01_sums", "1", run)
    (nothing, _), (answers, tests) = run.asked
    assert nothing == {} and tests == ("total-values",)
    assert "def total(x):\n    return sum(x[1:])" in answers["total"]


def test_a_file_is_made_once_and_anew_when_something_changed(course: Course):
    run = Runner()
    known.shelf(course, "01_sums", "1", run)
    known.shelf(course, "01_sums", "1", run)
    assert len(run.asked) == 2
    known.shelf(course, "01_sums", "2", run)
    assert len(run.asked) == 4
    path = course.misconceptions("01_sums")
    path.write_text(WRONG.replace("leave out", "forget"), encoding="utf-8")
    known.shelf(course, "01_sums", "2", run)
    assert len(run.asked) == 6


@pytest.mark.parametrize("content", [b"", b"no json\n", b"[]\n", b'{"key": "x"}\n', b"\xff\n"])
def test_a_broken_file_is_made_anew(course: Course, content: bytes):
    path = course.root / "build" / "known" / "01_sums.bin"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    shelf = known.shelf(course, "01_sums", "1", Runner())
    assert shelf is not None and shelf.of("total-values")[1][0].id == "SUM1"


def test_a_test_that_no_mistake_is_known_for_has_none(course: Course):
    shelf = known.shelf(course, "01_sums", "1", Runner())
    assert shelf is not None and shelf.of("another") == (None, ())


def test_nothing_is_learnt_from_tests_that_the_reference_fails(course: Course):
    def broken(_: Mapping[str, str], tests: Sequence[str]) -> dict[str, TestRun]:
        return {test: TestRun(test, "failed", 0.0, message="no torch here") for test in tests}

    with pytest.raises(CourseError, match="reference does not pass total-values"):
        known.shelf(course, "01_sums", "1", broken)
    assert not (course.root / "build" / "known" / "01_sums.bin").exists()


def test_it_is_known_which_tests_the_reference_fails(course: Course):
    def run(_: Mapping[str, str], tests: Sequence[str]) -> dict[str, TestRun]:
        ends = {"points": "NoNumber", "fails": "AssertionError"}
        found = {t: TestRun(t, "failed", 0.0, error=ends[t]) for t in tests if t in ends}
        return {t: TestRun(t, "passed", 1.0) for t in tests} | found

    course.misconceptions("01_sums").unlink()
    shelf = known.shelf(course, "01_sums", "1", run, ["total-values", "points", "fails"])
    assert shelf.unable == {"fails"}


@pytest.mark.parametrize("is_plain", [False, True])
def test_where_no_mistake_is_known_the_reference_is(course: Course, is_plain: bool):
    course.misconceptions("01_sums").unlink()
    if is_plain:  # an ordinary nbgrader course has no text source
        course.source("01_sums").unlink()
    shelf = known.shelf(course, "01_sums", "1", Runner(), ["total-values"])
    reference, mistakes = shelf.of("total-values")
    assert reference is not None and len(reference) == len(OUTCOMES)
    assert mistakes == ()
    assert known.shelf(course, "01_sums", "1", Runner()).of("total-values")[0] is not None


def test_tests_without_known_mistakes_have_their_reference_beside_those_with(course: Course):
    def run(answers: Mapping[str, str], tests: Sequence[str]) -> dict[str, TestRun]:
        calls = (Crossing("total", (), len(answers)),)
        return {t: TestRun(t, "passed", 1.0, transcript=calls) for t in tests}

    shelf = known.shelf(course, "01_sums", "1", run, ["total-values", "more"])
    assert shelf.unable == frozenset()
    assert [len(shelf.of(test)[1]) for test in ("total-values", "more")] == [1, 0]
    reference, _ = shelf.of("more")
    assert reference is not None and reference[0].outcome == 0


def test_a_reference_that_is_too_large_to_be_kept_costs_no_other(course: Course):
    course.misconceptions("01_sums").unlink()

    def run(_: Mapping[str, str], tests: Sequence[str]) -> dict[str, TestRun]:
        calls = {"many": (Crossing("total", (), torch.ones(1)),) * 30_000, "few": ()}
        return {t: TestRun(t, "passed", 1.0, transcript=calls[t]) for t in tests}

    shelf = known.shelf(course, "01_sums", "1", run, ["many", "few"])
    assert shelf.of("many") == (None, ()) and shelf.of("few") == ((), ())

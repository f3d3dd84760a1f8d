"""Visible tests once more as in the student's own notebook: answers and tests in one process.

Between two processes a few wrong answers look right: what they share with a test in one memory,
they have as a copy there. So what passes has to pass here as well, with the text of the tests that
the student has. Nothing that this process tells earns a point, and no hidden test comes near it.

An answer runs beside the test, so one that is written to deceive it can. That earns what two
processes would have given, and nothing else. So what failed between two processes and passes here
is for the instructor to look at: it is a right answer that two processes part, or such a one.
"""

import ast
import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar

from autograder.bridge.line import Gone
from autograder.bridge.session import CellRun
from autograder.common.results import Flag, TestRun
from autograder.judge.assignment import Group
from autograder.judge.script import Script, ScriptCell

if TYPE_CHECKING:
    from autograder.judge.work import Work

WORDS = "In one process, as in your notebook, this test fails"
FELL = ("failed", "error")
LACKING = ("NameError", "UnboundLocalError", "AttributeError", "ImportError", "ModuleNotFoundError")
HERE_ONLY = (
    "Not sure: this test passes where answers and tests share a process, as in the student's "
    "notebook, and fails between two processes. Look at it."
)
TOLD = (
    "it passes where answers and tests share a process, as in your notebook, and fails between two "
    "processes; your instructor has been told"
)
MOST_ENDS = 10  # processes that one look may take
POINTS = "_points_here"  # before what a test's last line gives; see `_points_due`
CLOSE = 1e-9


@dataclass(frozen=True)
class Failure:
    """How a test's visible part failed in one process."""

    kind: str  # the name of an exception
    message: str
    place: tuple[str, int]  # the cell and its line in which it began
    ended: Literal["", "timeout", "died"] = ""  # how it ended the process
    score: float = 0.0  # points that the test gives all the same

    @property
    def words(self) -> str:
        """What is told of it."""
        if self.ended:
            return "it takes too long" if self.ended == "timeout" else "it ends the process"
        return f"{self.kind}: {self.message}" if self.message else self.kind

    def same(self, other: "Failure | None") -> bool:
        """Whether this is the same failure, as far as one can tell."""
        mine = (self.kind, self.place, self.ended)
        return other is not None and mine == (other.kind, other.place, other.ended)

    def is_before(self, other: "Failure | None", test: str) -> bool:
        """Whether the test fails before it comes to where it fails with the reference as well."""
        if other is None:
            return True
        (cell, line), (other_cell, other_line) = self.place, other.place
        return cell == other_cell == test and 0 < line < other_line


Failures = dict[str, Failure]  # by test
T = TypeVar("T")


@dataclass
class Seen:
    """How tests ended in one process."""

    failed: Failures = field(default_factory=Failures)
    passed: set[str] = field(default_factory=set)


def as_in_notebook(work: "Work", found: list[TestRun]) -> list[TestRun]:
    """How tests ended, if some of those that passed fail where answer and test meet.

    What is told of a failure comes from the student's notebook as it is: no other run here is free
    of the reference's text.
    """
    if not work.budget.may_repeat:
        return found
    try:
        sure = _sure(work, found)
    except Exception as error:  # noqa: BLE001  (points were found; nobody loses them by this)
        words = f"its tests could not be run in one process ({type(error).__name__}: {error})"
        work.flags.append(Flag("died", work.notebook.name, words[:300]))
        return found
    return [_failing(run, sure[run.test]) if run.test in sure else run for run in found]


def _sure(work: "Work", found: list[TestRun]) -> Failures:
    """The failures that the answers themselves are to blame for.

    They are there in the student's notebook, also where the reference helps out for answers that
    are wrong and for names that are covered or missing; and beside the reference's other answers,
    but for what is missing there; and not with the reference itself.
    """
    passed = {run.test: run.score for run in found if run.status == "passed"}
    lost = {r.test for r in found if r.status in ("timeout", "died") and not r.in_hidden}
    failed = {run.test for run in found if run.status != "passed"}
    asked: Mapping[str, float] = passed
    if lost:  # who uses what hangs would hang as well: first where the reference stands in for it
        helped = _seen(work, work.script_helped(failed, passed), passed, lost).failed
        asked = _of(passed, helped)
    fell = {run.test: 0.0 for run in found if run.test in work.fell and run.status in FELL}
    seen = _seen(work, work.script_that_ran(), {**asked, **fell}, lost)
    _show(work, seen.passed & fell.keys())
    own = _of(seen.failed, asked.keys() & seen.failed.keys())
    if not own:
        return {}
    helped = _seen(work, work.script_helped(failed, own), _of(passed, own), lost).failed
    sure: Failures = {}
    for group in _askers(work, helped):
        left_out = {*lost, *work.questions.not_beside(group)}
        asked = _of(passed, group.tests)
        alone = _seen(work, work.questions.script_of(group), asked, left_out).failed
        asked = {t: s for t, s in asked.items() if _is_there(alone.get(t), helped[t])}
        by_itself = _seen(work, work.questions.script_of(None), asked, left_out).failed
        sure |= {t: own[t] for t in asked if helped[t].is_before(by_itself.get(t), t)}
    stood_in = {run.test for run in found if run.stood_in}
    return {
        t: one if one.same(helped[t]) and t not in stood_in else _untold(one)
        for t, one in sure.items()
    }


def _of(known: Mapping[str, T], tests: Iterable[str]) -> dict[str, T]:
    return {test: known[test] for test in tests}


def _show(work: "Work", tests: Collection[str]) -> None:
    """Point out tests that pass only here, to the instructor, and tell the student so."""
    for test in sorted(tests):
        work.flags.append(Flag("unsure", f"{work.notebook.name}/{test}", HERE_ONLY))
        work.notes.append(f"{test}: {TOLD}")


def _is_there(alone: Failure | None, helped: Failure) -> bool:
    """Whether a failure is there beside the reference's other answers, and not for their sake."""
    return alone is not None and (alone.kind not in LACKING or alone.same(helped))


def _untold(failure: Failure) -> Failure:
    """A failure of which the words say something else than what it was counted for."""
    return replace(failure, kind="AssertionError", message="", ended="")


def _askers(work: "Work", tests: Iterable[str]) -> list[Group]:
    """These tests by the answers that they ask."""
    found: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for test in tests:
        found[work.questions.asked_by(test)].append(test)
    return [Group(solutions, tuple(tests)) for solutions, tests in found.items()]


def _failing(run: TestRun, failure: Failure) -> TestRun:
    """The same test, failed, or with the points that it gives here."""
    words = f"{WORDS}: {failure.words}"
    if failure.score:
        words = f"{WORDS.replace('fails', 'gives')} {failure.score:g} of {run.score:g} points"
        return replace(run, score=min(run.score, failure.score), message=words)
    if failure.ended:
        return replace(run, status=failure.ended, score=0.0, message=words)
    status = "failed" if failure.kind == "AssertionError" else "error"
    return replace(run, status=status, score=0.0, error=failure.kind, message=words)


def _seen(
    work: "Work", script: Script, asked: Mapping[str, float], left_out: Collection[str]
) -> Seen:
    """How tests end where cells and tests are run in order, each as it is visible.

    Args:
        work: the submission's.
        script: the cells.
        asked: the points that each of the tests in question gave between two processes.
        left_out: tests that are not run.
    """
    left = {test: score for test, score in asked.items() if work.questions.visible(test).strip()}
    without = {place for place, c in enumerate(script.cells) if c.grade_id in left_out}
    seen = Seen()
    for _ in range(MOST_ENDS):
        end = _look(work, script, left, without, seen) if left else None
        if end is None:
            break
        without.add(end)
    return seen


def _look(
    work: "Work",
    script: Script,
    left: dict[str, float],
    without: Collection[int],
    seen: Seen,
) -> int | None:
    """Run the cells in a new process, until all that is asked is found; the cell that ended it."""
    plan = _plan(work, script, left, without)
    try:
        outcomes = work.run_beside(script, [(one.cell, one.text) for one in plan])
    except Gone:  # there is no time for it, or no process
        return None
    for one, outcome in zip(plan, outcomes, strict=False):
        failure = _failure(outcome, one.test, left.get(one.test, 0.0) if one.tells else None)
        if one.test in left and failure is not None:
            seen.failed[one.test] = failure
        elif one.test in left:
            seen.passed.add(one.test)
        left.pop(one.test, None)
        if outcome.gone:
            return one.place
    return None


class _Planned(NamedTuple):
    """A cell that runs where answers and tests are in one process."""

    place: int
    cell: ScriptCell
    test: str  # its id, if it is one
    text: str
    tells: bool  # whether the text tells which points its last line gives


def _plan(
    work: "Work", script: Script, left: Mapping[str, float], without: Collection[int]
) -> list[_Planned]:
    """The cells up to the last test that is asked for."""
    planned: list[_Planned] = []
    last = 0
    for place, cell in enumerate(script.cells):
        if place in without:
            continue
        test = cell.grade_id if cell.kind == "test" else ""
        text = work.questions.visible(test) if test else cell.source
        due = _points_due(work, test, left.get(test)) if test else ""
        planned.append(_Planned(place, cell, test, due or text, bool(due)))
        last = len(planned) if test in left else last
    return planned[:last]


def _failure(outcome: CellRun, test: str, due: float | None) -> Failure | None:
    """How a cell failed; one that is asked for points gives fewer than are `due`."""
    if outcome.gone:
        return Failure("", "", (test, 0), "timeout" if outcome.gone == "timeout" else "died")
    raised = outcome.raised
    if raised is None:
        return None
    place = (raised.cell, raised.line)
    is_points = raised.type_name == "AssertionError" and raised.cell == test
    is_points = is_points and raised.message.startswith(POINTS)
    if due is None or not is_points:
        return Failure(raised.type_name, raised.message, place)
    score = _number(raised.message.removeprefix(POINTS))
    if score is None or abs(score - due) < CLOSE:
        return None
    return Failure(raised.type_name, f"{score:g} points", place, score=_fewer(score, due))


def _fewer(score: float, due: float) -> float:
    """The points that a test gives here; none if that is no such number."""
    return score if math.isfinite(score) and 0 < score < due else 0.0


def _number(text: str) -> float | None:
    """The points in what the student's process says; None if they are no number."""
    try:
        return float(text)
    except ValueError:
        return None


def _points_due(work: "Work", test: str, score: float | None) -> str:
    """A test's text that tells what its last line gives; empty where that is not compared."""
    if not score or work.notebook.cell(test).hidden:
        return ""
    text = work.questions.visible(test)
    body = ast.parse(text).body
    if not body or not isinstance(last := body[-1], ast.Expr) or text.rstrip().endswith(";"):
        return ""
    lines = text.encode().split(b"\n")[: last.end_lineno]
    lines[-1] = lines[-1][: last.end_col_offset]
    first = last.lineno - 1
    start = last.col_offset
    lines[first] = lines[first][:start] + f"{POINTS} = (".encode() + lines[first][start:]
    # the points stand in a text that no name of the answer's has a part in
    return b"\n".join(lines).decode() + f")\nassert None, f'{POINTS}{{{POINTS}}}'"

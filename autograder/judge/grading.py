"""Grade one submission: run its cells in a sandbox, the tests here, and put the result together."""

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from autograder.bridge.errors import said
from autograder.bridge.line import Gone
from autograder.common.results import Flag, NotebookResult, Result, TestRun, Verdict
from autograder.isolation.clock import Clock, here
from autograder.isolation.parts import Parts
from autograder.judge.assignment import Assignment, Notebook
from autograder.judge.budget import IN_ALL, Budget
from autograder.judge.cells import ForkServer, Shelf
from autograder.judge.diagnose import told
from autograder.judge.intake import read_submission
from autograder.judge.passes import IN_PRIVATE
from autograder.judge.plain import as_in_notebook
from autograder.judge.script import Script, Submission
from autograder.judge.space import alarm
from autograder.judge.work import Work

WORDS_SECONDS = 5.0  # to find words for how a test ended, whatever an answer gave
MOST_NOTES = 100  # as many as the journal keeps
ENDS = ("failed", "error", "timeout", "died", "unanswered")  # an answer's own


def grade(
    assignment: Assignment,
    folder: Path,
    student: str,
    fork_server: ForkServer,
    known: Shelf | None = None,
) -> Result:
    """Grade one submission; every end of it is a result.

    Args:
        assignment: what was asked.
        folder: holds what the student handed in.
        student: the student's name.
        fork_server: where processes for the student's code come from.
        known: mistakes that can be named; None if there are none.
    """
    return grade_submission(
        assignment, read_submission(folder, student, assignment), fork_server, known
    )


def grade_submission(
    assignment: Assignment,
    submission: Submission,
    fork_server: ForkServer,
    known: Shelf | None = None,
    seconds: float = math.inf,
    parts: Parts | None = None,
) -> Result:
    """Grade what was read of a submission; in all in about so many seconds.

    Its tests, and the instructor's cells, are the `parts`: one that has ended the process in which
    tests run is not run again.
    """
    start = time.monotonic()
    budget = Budget(seconds)
    budget.parts = parts or budget.parts
    graded: list[tuple[NotebookResult, tuple[Flag, ...]]]
    if submission.reason:
        graded = [(_all_lost(one, submission.reason), ()) for one in assignment.notebooks]
    else:
        scripts = submission.scripts
        graded = [_grade_script(assignment, one, fork_server, known, budget) for one in scripts]
    if graded and submission.notes:
        first, flags = graded[0]
        graded[0] = replace(first, notes=(*submission.notes, *first.notes)), flags
    flags = [*submission.flags, *(flag for _, flags in graded for flag in flags)]
    return Result(
        student=submission.student,
        assignment=assignment.name,
        key=submission.key,
        notebooks=tuple(notebook for notebook, _ in graded),
        flags=tuple(dict.fromkeys(flags)),
        reason=submission.reason,
        seconds=time.monotonic() - start,
        cost=budget.cost(),
    )


def _grade_script(
    assignment: Assignment,
    script: Script,
    fork_server: ForkServer,
    known: Shelf | None,
    budget: Budget,
) -> tuple[NotebookResult, tuple[Flag, ...]]:
    try:
        return _graded(assignment, script, fork_server, known, budget)
    except (Gone, Exception) as error:  # noqa: BLE001  (no submission may stay without a grade)
        words = f"it could not be graded ({said(error)}); the instructor has to look"
        flag = Flag("died", script.name, f"{words}: {error}"[:500])
        return _all_lost(assignment.notebook(script.name), words), (*script.flags, flag)


def _graded(
    assignment: Assignment,
    script: Script,
    fork_server: ForkServer,
    known: Shelf | None,
    budget: Budget,
) -> tuple[NotebookResult, tuple[Flag, ...]]:
    notebook = assignment.notebook(script.name)
    if script.reason:
        lost = _all_lost(notebook, script.reason)
        answers = {piece.grade_id: piece.source for piece in script.pieces}
        return replace(lost, answers=answers, notes=script.notes), script.flags
    work = Work(assignment, notebook, script, fork_server, known, budget)
    found = as_in_notebook(work, _in_private(work, work.run()))
    leaning = _leaning(work, found)
    telling = found  # runs by which mistakes are named
    if assignment.rules.feedback.is_limited:  # what hidden tests found may not be told yet
        telling = [r for r in found if not (r.test in leaning or notebook.cell(r.test).hidden)]
    verdicts = [
        replace(_verdict(work, run, telling, known), leans=run.test in leaning) for run in found
    ]
    result = NotebookResult(
        name=script.name,
        verdicts=tuple(verdicts),
        answers=dict(script.answers),
        outputs={id: run.printed for id, run in work.cells.items() if run.printed},
        extra=script.extra,
        pictures=script.pictures,
        notes=_few([*script.notes, *work.left_out]),
        by_tests=_few(work.notes),
    )
    return result, (*script.flags, *work.flags)


def _few(notes: Sequence[str]) -> tuple[str, ...]:
    """As many of these sentences as a result holds; the last one says how many are missing."""
    if len(notes) <= MOST_NOTES:
        return tuple(notes)
    more = len(notes) - MOST_NOTES + 1
    return (*notes[: MOST_NOTES - 1], f"There are {more} more notes of this kind.")


def _in_private(work: "Work", found: list[TestRun]) -> list[TestRun]:
    """How an answer ended after a hidden test ran beside it is not repeated, nor what it gave.

    It may have kept what the hidden test asked, in a file for instance: texts and values could tell
    it, and so could which of several ends it chose. So what is told of a visible failure, and what
    cells print, comes from a new process that has met no hidden test.
    """
    doubtful = [run for run in found if run.status in ENDS and not run.in_hidden]
    doubtful = [run for run in doubtful if run.test in work.met_hidden and not run.stood_in]
    if not doubtful and not work.printed_late:
        return found
    private = work.another(work.script, IN_PRIVATE, work.known)
    wanted = {run.test for run in doubtful}
    again = {run.test: run for run in private.run_visible(wanted)}
    work.cells, work.left_out = private.cells, work.left_out | private.left_out
    return [
        _told_in_private(run, again.get(run.test)) if run.test in wanted else run for run in found
    ]


def _told_in_private(run: TestRun, again: TestRun | None) -> TestRun:
    """The same end of a test, with the words and values of its private run, if there was one."""
    if again is None or again.status not in ENDS:
        return replace(run, status="failed", error="", message="", raised=None, transcript=())
    run = replace(run, status=again.status, error=again.error, message=again.message)
    return replace(run, raised=again.raised, transcript=again.transcript)


def _verdict(work: "Work", run: TestRun, found: Sequence[TestRun], known: Shelf | None) -> Verdict:
    cell = work.notebook.cell(run.test)
    try:
        name = work.assignment.name_of(work.notebook, run.test)
        reference, mistakes = known.of(name) if known is not None else (None, ())
        if known is not None and name in known.unable and run.status in ("failed", "error"):
            words = "the reference does not pass this test here either"
            run = TestRun(run.test, "test-error", run.score, message=words)
        with alarm(Clock(WORDS_SECONDS, here())):
            return told(run, cell, reference, mistakes, answers=work.script.answers, runs=found)
    except (Gone, Exception) as error:  # noqa: BLE001  (words not found cost no points)
        text = f"{run.status}: it could not be explained ({said(error)}: {error})"[:500]
        words = "" if run.status == "passed" else "A test failed."
        return Verdict(run.test, run.status, run.score, cell.points, words, text, run.in_hidden)


def _leaning(work: "Work", found: Sequence[TestRun]) -> set[str]:
    """Tests of which also a visible part may have ended so by what hidden ones found.

    Where the reference may stand in; where the answer lost by what ran in any test of its question;
    and where time was over, or a question could not be graded.
    """
    leans = {group for group in work.notebook.groups if work.questions.leans(group)}
    leaning = {test for group in leans if work.assignment.stand_in for test in group.tests}
    leaning |= {run.test for run in found if run.status == "test-error" or run.message == IN_ALL}
    return leaning | work.lost_by_run


def _all_lost(notebook: Notebook, reason: str) -> NotebookResult:
    """Every test of a notebook at 0, for one reason."""
    verdicts = [
        Verdict(cell.grade_id, "unanswered", 0.0, cell.points, told=reason, said=reason)
        for cell in notebook.of_kind("test")
    ]
    return NotebookResult(notebook.name, tuple(verdicts), reason=reason)

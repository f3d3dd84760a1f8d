"""Test cells in the trusted process: the names of the answers in them are stand-ins."""

import __future__

import ast
import functools
import math
import time
from dataclasses import replace
from itertools import takewhile
from typing import Any

from autograder.bridge.errors import said
from autograder.bridge.figures import close_figures
from autograder.bridge.lent import LENT
from autograder.bridge.line import Gone
from autograder.bridge.session import Student
from autograder.bridge.stand_ins import remote_of
from autograder.common.results import Crossing, Raised, TestRun, Transcript
from autograder.judge.class_asked import of_answers
from autograder.judge.put_there import modules_of
from autograder.judge.quiet import silence
from autograder.judge.space import (
    MAX_MESSAGE,
    TEXT_SECONDS,
    BadScore,
    Space,
    alarm,
    as_main,
)

FUTURE = sum(getattr(__future__, one).compiler_flag for one in __future__.all_feature_names)


class NoNumber(BadScore):
    """It is not even a number; fine if it is none with the reference either."""


def run_test(
    student: Student,
    cell: Any,
    space: Space,
    seconds: float,
    asked: list | None = None,
    *,
    may_fail: bool = False,
) -> TestRun:
    """Run one test cell against what the student's process defines now.

    Args:
        student: the process.
        cell: the test's cell.
        space: the tests' names.
        seconds: that it may take.
        asked: gets the calls that were made, if given.
        may_fail: whether it may pass though a claim of it, called by the answer, did not hold.
    """
    name = f"<test {cell.grade_id}>"
    seen, hidden, last = compiled(cell.source, name, cell.hidden_from)
    start, calls, work = time.monotonic(), student.peer.requests, 0.0
    error: BaseException | None = None
    score, visible = float(cell.points), None
    student.peer.asked = asked
    student.peer.typed.own = lambda: dict.get(space, "input")
    student.peer.instead.begin(modules_of(cell.source, space))
    close_figures()  # of cells above
    with student.peer.recording(runs_test=True) as crossings, silence(), LENT.running():
        beside = student.peer.beside.kept
        student.peer.warned.begin()
        student.peer.logged.begin(cell.source)
        try:
            with student.clock(seconds) as clock, alarm(clock), as_main(space):
                exec(seen, space, space)
                _tell_kept(student, may_fail)
                visible = len(crossings) if cell.hidden else None
                exec(hidden, space, space)
                value = eval(last, space, space) if last is not None else None
                _tell_kept(student, may_fail)
            score, work = partial(value, cell.points), clock.worked()
        except BaseException as caught:  # noqa: BLE001  (every end of a test is a result)
            error = caught
            student.peer.instead.undo()
        student.peer.logged.end()
    if type(error) is KeyboardInterrupt and getattr(error, "raised", None) is None:
        raise error
    return TestRun(
        test=cell.grade_id,
        status=_status(error),
        score=0.0 if error is not None else score,
        error="" if error is None else said(error),
        message="" if error is None else _text(student, error)[:MAX_MESSAGE],
        raised=getattr(error, "raised", None),
        in_hidden=_in_hidden(error, cell, name) if visible is None else error is not None,
        transcript=_marked(crossings, visible),
        beside=tuple(beside),
        seconds=time.monotonic() - start,
        calls=student.peer.requests - calls,
        work=work,
    )


def _tell_kept(student: Student, may_fail: bool) -> None:
    """Raise what ended the process though the test has caught it, as a bare `except` does.

    And the claim that did not hold, and that the answer which met it has kept to itself.
    """
    if student.peer.gone is not None:
        raise student.peer.gone
    if student.peer.clock is not None and student.peer.clock.is_over:
        raise Gone("timeout", "it took too long")
    if student.peer.failed is not None and not may_fail:
        raise student.peer.failed


def partial(value: Any, points: float) -> float:
    """The points that a test cell's last value stands for, as nbgrader counts: none means all."""
    if value is None:
        return float(points)
    if isinstance(value, bool | str | bytes) or remote_of(value) is not None:
        raise NoNumber("the test ends in something that is no number of points")
    try:
        score = float(value)
    except Exception as error:
        raise NoNumber("the test ends in something that is no number of points") from error
    if not math.isfinite(score) or not 0 <= score <= points:
        raise BadScore(f"the test gave {score:g} points of {points:g}")
    return score


@functools.lru_cache(maxsize=2000)
def compiled(source: str, name: str, hidden_from: int) -> tuple[Any, Any, Any]:
    """A cell's code: before its hidden part, from there on, and its last line if it has a value.

    A statement that reaches into the hidden part belongs to it, and so does all that follows.
    """
    tree = of_answers(ast.parse(source))
    last = None
    if tree.body and isinstance(tree.body[-1], ast.Expr) and not source.rstrip().endswith(";"):
        last = ast.Expression(tree.body.pop().value)  # type: ignore[attr-defined]
    ends = [statement.end_lineno or 0 for statement in tree.body]
    count = sum(1 for _ in takewhile(lambda end: end < hidden_from or not hidden_from, ends))
    seen = compile(ast.Module(tree.body[:count], []), name, "exec", dont_inherit=True)
    future = seen.co_flags & FUTURE  # what the cell imports from __future__ holds to its end
    hidden = compile(ast.Module(tree.body[count:], []), name, "exec", future, dont_inherit=True)
    value = None if last is None else compile(last, name, "eval", dont_inherit=True)
    return seen, hidden, value


def _marked(crossings: list[Crossing], visible: int | None) -> Transcript:
    """A test's calls, of which those after the first few were made in its hidden part."""
    if visible is None:
        return tuple(crossings)
    return (*crossings[:visible], *(replace(call, hidden=True) for call in crossings[visible:]))


def _status(error: BaseException | None) -> Any:
    if error is None:
        return "passed"
    if isinstance(error, Gone):
        return "timeout" if error.kind == "timeout" else "died"
    if isinstance(error, BadScore):
        return "test-error"
    return "error" if isinstance(getattr(error, "raised", None), Raised) else "failed"


def _text(student: Student, error: BaseException) -> str:
    if isinstance(error, Gone):
        return student.why(error)
    try:
        with student.clock(TEXT_SECONDS) as clock, alarm(clock):
            return str(error)  # which may ask an object of the answer
    except BaseException:  # noqa: BLE001  (a text that cannot be made is no text)
        return ""


def _in_hidden(error: BaseException | None, cell: Any, name: str) -> bool:
    """Whether a cell ended after its hidden part had begun, or where nobody knows.

    A visible line below a hidden one is as good as hidden: the answer has been asked before it.
    """
    if error is None or not cell.hidden:
        return False
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == name:
            return trace.tb_lineno >= cell.hidden_from
        trace = trace.tb_next
    return True

"""What comes back from the process that graded one submission, checked before anybody uses it.

That process has read what a student wrote. Should a student ever have got hold of it, then what it
says may decide the points of that one submission, and nothing else: whose it is, what can be
earned, and which texts there are, is known here.
"""

import json
import math
import re
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any, get_args, get_type_hints

from autograder.common.results import Cost, Flag, NotebookResult, Result, Status, Verdict
from autograder.judge.assignment import Assignment, Notebook

LONGEST = 20_000  # characters of one sentence or printed output
LONGEST_SOURCE = 200_000  # of a cell
MOST = 2_000  # cells, flags or notes; what is beyond them is cut off
STATUSES = frozenset(get_args(Status))
KINDS = frozenset(get_args(get_type_hints(Flag)["kind"]))
LABEL = re.compile(r"[\w#.:/-]{0,200}")
LOST = "no account of it came back; the instructor has to look"


def sent(result: Result) -> bytes:
    """A result as JSON, for the way from the process that found it to the one that stores it."""
    return json.dumps(asdict(result)).encode()


class Refused(Exception):
    """What came is not the result of grading this assignment."""


def received(data: bytes, student: str, key: str, assignment: Assignment) -> Result:
    """The result that these bytes hold; raises Refused if they hold none.

    Args:
        data: what `sent` wrote.
        student: whose submission it was.
        key: of the submission.
        assignment: what was asked.
    """
    try:
        told = json.loads(data)
        notebooks = {one["name"]: one for one in told["notebooks"]}
        return Result(
            student=student,
            assignment=assignment.name,
            key=key,
            notebooks=tuple(
                _notebook(notebooks[notebook.name], notebook) for notebook in assignment.notebooks
            ),
            flags=tuple(map(_flag, _list(told["flags"]))),
            reason=_text(told["reason"]),
            seconds=_number(told["seconds"], 0.0, math.inf),
            cost=_cost(**told["cost"]),
        )
    except (LookupError, TypeError, ValueError, RecursionError, ArithmeticError) as error:
        raise Refused(f"its result cannot be read ({type(error).__name__}: {error})") from error


def _notebook(told: dict[str, Any], notebook: Notebook) -> NotebookResult:
    tests = {cell.grade_id: cell for cell in notebook.of_kind("test")}
    verdicts = {one["test"]: one for one in _list(told["verdicts"])}
    answerable = {cell.grade_id for cell in notebook.cells if cell.answerable}
    ids = {cell.grade_id for cell in notebook.cells}
    return NotebookResult(
        name=notebook.name,
        verdicts=tuple(
            _verdict(verdicts[id], cell.points)
            if id in verdicts
            else Verdict(id, "test-error", 0.0, cell.points, said=LOST)
            for id, cell in tests.items()
        ),
        answers=_texts(told["answers"], answerable, LONGEST_SOURCE),
        outputs=_texts(told["outputs"], ids, 2 * LONGEST),
        extra=tuple(_extra(one, ids) for one in _list(told["extra"])),
        pictures=_matching(LABEL, told["pictures"]),
        notes=tuple(map(_text, _list(told["notes"]))),
        by_tests=tuple(map(_text, _list(told["by_tests"]))),
        reason=_text(told["reason"]),
    )


def _verdict(told: dict[str, Any], points: float) -> Verdict:
    return Verdict(
        test=_text(told["test"]),
        status=_one_of(told["status"], STATUSES),
        score=_number(told["score"], 0.0, points),
        points=points,
        told=_text(told["told"]),
        said=_text(told["said"]),
        hidden=told["hidden"] is True,
        misconception=_matching(LABEL, told["misconception"]),
        read=_matching(LABEL, told["read"]),
        stood_in=tuple(map(_text, _list(told["stood_in"]))),
        seconds=_number(told["seconds"], 0.0, math.inf),
        leans=told["leans"] is True,
    )


def _cost(judge: Any, answers: Any, calls: Any) -> Cost:
    judge, answers = (_number(seconds, 0.0, math.inf) for seconds in (judge, answers))
    return Cost(judge, answers, int(_number(calls, 0.0, 1e9)))


def _flag(told: dict[str, Any]) -> Flag:
    return Flag(_one_of(told["kind"], KINDS), _text(told["where"]), _text(told["words"]))


def _extra(told: Any, ids: set[str]) -> tuple[str, str, str]:
    follows, kind, source = _list(told)
    kind = _one_of(kind, frozenset(["code", "markdown", "raw"]))
    return _one_of(follows, frozenset([*ids, ""])), kind, _text(source, LONGEST_SOURCE)


def _list(told: Any) -> list[Any]:
    if not isinstance(told, list):
        raise ValueError("a list was expected")
    return told[:MOST]


def _text(told: Any, longest: int = LONGEST) -> str:
    if not isinstance(told, str):
        raise TypeError("a text was expected")
    return told[:longest]


def _texts(told: Any, names: Iterable[str], longest: int) -> dict[str, str]:
    if not isinstance(told, dict):
        raise TypeError("a table was expected")
    return {name: _text(told[name], longest) for name in names if name and name in told}


def _number(told: Any, least: float, most: float) -> float:
    if type(told) not in (int, float) or not least <= told <= most:
        raise ValueError("a number was expected")
    return float(told)  # an integer too large for one is refused as well


def _one_of(told: Any, known: frozenset[str]) -> Any:
    if told not in known:
        raise ValueError("it says something unknown")
    return told


def _matching(pattern: "re.Pattern[str]", told: Any) -> str:
    return told if pattern.fullmatch(_text(told)) else ""

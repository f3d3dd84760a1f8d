"""A line of the journal: what was graded, as JSON and back, of a size that every file can hold.

What a grader of today would not write is a ValueError: a line that cannot be read counts as not
written.
"""

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, get_args, get_type_hints

from autograder.common.results import Cost, Flag, NotebookResult, Result, Status, Verdict

Who = tuple[str, str]  # student, assignment
MAX_NAME = 300  # characters of an id, a place, a name
MAX_SAID = 4000  # characters of one sentence
MAX_NOTES = 100  # sentences of one kind
MAX_SOURCE = 200_000  # characters of one answer
MAX_ANSWERS = 4_000_000  # characters of all together, in all notebooks
MAX_PRINTED = 20_000  # characters that one cell printed
MAX_ALL_PRINTED = 1_000_000  # characters of those together
MAX_EXTRA = 500  # cells of the student's own
MAX_EXTRA_TEXT = 1_000_000  # characters of those together
STATUSES = frozenset(get_args(Status))
FLAGS = frozenset(get_args(get_type_hints(Flag)["kind"]))
SHORT = 16  # digits of a digest in older lines
LONGEST_NAME = 255  # bytes of a folder's name, on any usual disk


@dataclass(frozen=True)
class Graded:
    """A result, and what else is known of the submission."""

    result: Result
    collected: float | None = None  # when, in seconds since 1970
    secret: str = ""  # by which its student fetches the feedback, see `parcel`
    in_doubt: bool = False  # the machine may have ended it: the next run grades it once more
    stamp: str = ""  # what timestamp.txt says, which its student may have written
    made_of: Mapping[str, str] = field(default_factory=dict)  # digests: "work", "tests", "files"
    handed_in: float | None = None  # by what is trusted, when what counts was
    only_asked: bool = False  # since then nothing came but questions, see `asked`


class _Room:
    """How much text of one kind there may still be in a line."""

    def __init__(self, left: int) -> None:
        self.left = left

    def cut(self, text: str, longest: int) -> str:
        """As much of a text as there is room for."""
        short = _cut(text, max(1, min(longest, self.left)))
        self.left = max(0, self.left - len(short))
        return short


def bounded(graded: Graded) -> Graded:
    """The same of a size that every file and page can hold; an ordinary result stays as it is."""
    result, cost = graded.result, graded.result.cost
    collected = graded.collected
    if collected is not None and not math.isfinite(collected):
        collected = None
    handed_in = graded.handed_in
    if handed_in is not None and not math.isfinite(handed_in):
        handed_in = None
    flags = tuple(
        replace(flag, where=_cut(flag.where, MAX_NAME), words=_cut(flag.words, MAX_SAID))
        for flag in result.flags[:MAX_NOTES]
    )
    smaller = replace(
        result,
        notebooks=tuple(_bounded_notebooks(result.notebooks)),
        flags=flags,
        reason=_cut(result.reason, MAX_SAID),
        seconds=_finite(result.seconds),
        cost=Cost(_finite(cost.judge), _finite(cost.answers), cost.calls),
    )
    secret, stamp = _cut(graded.secret, MAX_NAME), _cut(graded.stamp, MAX_NAME)
    times = {"collected": collected, "handed_in": handed_in}
    return replace(graded, result=smaller, secret=secret, stamp=stamp, **times)


def _bounded_notebooks(notebooks: Sequence[NotebookResult]) -> Iterator[NotebookResult]:
    answers, printed, extra = map(_Room, (MAX_ANSWERS, MAX_ALL_PRINTED, MAX_EXTRA_TEXT))
    for notebook in notebooks:
        yield replace(
            notebook,
            verdicts=tuple(map(_bounded_verdict, notebook.verdicts)),
            answers={n: answers.cut(text, MAX_SOURCE) for n, text in notebook.answers.items()},
            outputs={n: printed.cut(text, MAX_PRINTED) for n, text in notebook.outputs.items()},
            extra=tuple(_bounded_extra(notebook.extra, extra)),
            pictures=_cut(notebook.pictures, MAX_NAME),
            notes=_bounded_notes(notebook.notes),
            by_tests=_bounded_notes(notebook.by_tests),
            reason=_cut(notebook.reason, MAX_SAID),
        )


def _bounded_notes(notes: Sequence[str]) -> tuple[str, ...]:
    return tuple(_cut(note, MAX_SAID) for note in notes[:MAX_NOTES])


def _bounded_verdict(verdict: Verdict) -> Verdict:
    return replace(
        verdict,
        score=_finite(verdict.score),
        told=_cut(verdict.told, MAX_SAID),
        said=_cut(verdict.said, MAX_SAID),
        misconception=_cut(verdict.misconception, MAX_NAME),
        read=_cut(verdict.read, MAX_NAME),
        stood_in=tuple(_cut(name, MAX_NAME) for name in verdict.stood_in[:MAX_NOTES]),
        seconds=_finite(verdict.seconds),
    )


def _bounded_extra(
    extra: Sequence[tuple[str, str, str]], room: _Room
) -> Iterator[tuple[str, str, str]]:
    for follows, kind, source in extra[:MAX_EXTRA]:
        if not room.left:
            return
        yield follows, kind, room.cut(source, MAX_SOURCE)


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _finite(value: float) -> float:
    return value if math.isfinite(value) else 0.0


def is_same_digest(now: str, then: str) -> bool:
    """Whether two digests are of one thing, where what was `then` may be an older line's.

    Two works whose digests begin alike can be made on purpose: where that would gain something,
    compare more.
    """
    return bool(then) and (now == then or (len(then) == SHORT and now.startswith(then)))


def who_of(result: Result) -> Who:
    """Whose result this is, and of which assignment."""
    return result.student, result.assignment


def read_json(text: bytes) -> Any:
    """What a line says; ValueError if it is no JSON, or nested too deeply."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("this JSON is nested too deeply") from error


def graded_of(text: bytes) -> Graded:
    """The result that a "graded" line holds; ValueError as above."""
    return read_graded(read_json(text)["graded"])


def read_graded(content: Any) -> Graded:
    """A result from what JSON gives; ValueError if a field is missing, odd or of another type."""
    try:
        collected = content["collected"]
        _require(collected is None or _is_number(collected))
        secret = content.get("secret", "")
        stamp = content.get("stamp", content.get("told", ""))  # as it was called before
        require_text(secret, stamp)
        in_doubt, only_asked = content.get("in_doubt", False), content.get("only_asked", False)
        _require(isinstance(in_doubt, bool) and isinstance(only_asked, bool))
        handed_in = content.get("handed_in")
        _require(handed_in is None or _is_number(handed_in))
        made_of = content.get("made_of", {})
        require_text(*made_of.keys(), *made_of.values())
        result = _result(content["result"])
        more = handed_in, only_asked
        return bounded(Graded(result, collected, secret, in_doubt, stamp, made_of, *more))
    except (AttributeError, KeyError, OverflowError, TypeError) as error:
        raise ValueError(f"this is not what a grader of today writes: {error}") from error


def _result(content: dict[str, Any]) -> Result:
    notebooks = tuple(_notebook(notebook) for notebook in content["notebooks"])
    flags = tuple(Flag(**flag) for flag in content["flags"])
    cost = Cost(**content.get("cost", {}))
    result = Result(**content | {"notebooks": notebooks, "flags": flags, "cost": cost})
    for flag in flags:
        require_text(flag.kind, flag.where, flag.words)
        _require(flag.kind in FLAGS)
    require_text(result.student, result.assignment, result.key, result.reason)
    _require(_is_folders(result.student) and _is_folders(result.assignment))
    _require(all(map(_is_number, (result.seconds, cost.judge, cost.answers, cost.calls))))
    return result


def _notebook(content: dict[str, Any]) -> NotebookResult:
    lists: dict[str, Any] = {
        "verdicts": tuple(_verdict(verdict) for verdict in content["verdicts"]),
        "extra": tuple(tuple(cell) for cell in content["extra"]),
        "notes": tuple(content["notes"]),
        "by_tests": tuple(content.get("by_tests", ())),  # older lines have them among the notes
    }
    notebook = NotebookResult(**content | lists)
    _require(all(len(cell) == 3 for cell in notebook.extra))
    require_text(*(part for cell in notebook.extra for part in cell))
    require_text(*notebook.notes, *notebook.by_tests)
    require_text(*notebook.answers.values(), *notebook.outputs.values())
    require_text(notebook.name, notebook.reason, notebook.pictures)
    return notebook


def _verdict(content: dict[str, Any]) -> Verdict:
    names: dict[str, Any] = {"stood_in": tuple(content["stood_in"])}
    verdict = Verdict(**content | names)
    _require(verdict.status in STATUSES)
    _require(isinstance(verdict.hidden, bool) and isinstance(verdict.leans, bool))
    _require(all(map(_is_number, (verdict.score, verdict.points, verdict.seconds))))
    _require(math.isfinite(verdict.points) and 0 <= verdict.score <= verdict.points)
    require_text(verdict.test, verdict.told, verdict.said, verdict.misconception, verdict.read)
    require_text(*verdict.stood_in)
    return verdict


def require_text(*values: object) -> None:
    """TypeError if one of these is no text."""
    _require(all(isinstance(value, str) for value in values))


def _is_folders(name: str) -> bool:
    """Whether a folder may be called so: files are written below one of this name."""
    return (
        name not in ("", os.curdir, os.pardir)
        and not {"/", "\0", os.sep} & {*name}
        and len(os.fsencode(name)) <= LONGEST_NAME
    )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _require(holds: bool) -> None:
    if not holds:
        raise TypeError("a field has another type")


def line_of(content: dict[str, Any]) -> bytes:
    """A step as a line."""
    return json.dumps(content).encode() + b"\n"

"""Questions about a grade: Markdown cells of a student's own, known by their heading.

A notebook comes in by any way that work comes, so a question does, too. It is read from what the
worker has sent back of the notebook and `received` has checked: nothing is parsed here but lines.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from autograder.classroom.changes import Answer, read
from autograder.classroom.journal_lines import is_same_digest
from autograder.classroom.rebuild import harmless
from autograder.common.results import NotebookResult, Result

if TYPE_CHECKING:
    from autograder.classroom.journal_lines import Graded

HEADING = re.compile(r"\s{0,3}#{1,6}[ \t]+question about my grade\b[ \t]*[:.,]?", re.IGNORECASE)
MOST = 10  # questions in a notebook; more are ordinary cells
LONGEST = 4000  # characters of one
DIGITS = 32  # of a question's name; of fewer, somebody could make two questions of one name
SHOWN = 10  # of these are shown, and all that names had once

Replies = Mapping[str, str]  # what was answered, by the question's name


class Question(NamedTuple):
    """What a student asks, and where."""

    name: str  # by which it is answered
    notebook: str
    below: str  # the cell above it; empty if there is none
    text: str


def questions(result: Result) -> list[Question]:
    """All that somebody asks with one submission."""
    who = result.student, result.assignment
    return [one for notebook in result.notebooks for one in asked_in(notebook, *who)]


def asked_in(notebook: NotebookResult, student: str, assignment: str) -> list[Question]:
    """All that somebody asks in one notebook; the same question twice is one."""
    found: dict[str, Question] = {}
    for below, kind, source in notebook.extra:
        if kind == "markdown" and (text := _text(source)):
            said = repr((student, assignment, notebook.name, below, text))
            name = hashlib.sha256(said.encode("utf-8", "replace")).hexdigest()[:DIGITS]
            found[name] = Question(name, notebook.name, below, text)
    return [*found.values()][:MOST]


def besides(extra: Iterable[tuple[str, str, str]]) -> tuple[tuple[str, str, str], ...]:
    """A student's own cells without questions: asking changes nothing of the work."""
    return tuple(cell for cell in extra if cell[1] != "markdown" or not HEADING.match(cell[2]))


def with_its_time(graded: "Graded", before: "Graded | None") -> "Graded":
    """The same, in time if the work before it was, where nothing but a question has come since.

    Nothing is gained by it: answers, files, pictures and the points of every test are the same.
    """
    if before is None:
        return graded
    if not (before.only_asked if _is_same(graded, before) else _is_only_asked(graded, before)):
        return graded
    times = [one for one in (graded.handed_in, before.handed_in) if one is not None]
    return replace(graded, handed_in=min(times, default=None), only_asked=True)


def _is_same(graded: "Graded", before: "Graded") -> bool:
    """Whether both are one work; an older line has too few digits of its digest to say so alone."""
    now, then = graded.made_of.get("work", ""), before.made_of.get("work", "")
    return now == then or (is_same_digest(now, then) and _texts(graded) == _texts(before))


def _texts(graded: "Graded") -> list[tuple[object, ...]]:
    return [(n.name, n.answers, n.extra, n.pictures) for n in graded.result.notebooks]


def _is_only_asked(graded: "Graded", before: "Graded") -> bool:
    asked, had = ({one.name for one in questions(one.result)} for one in (graded, before))
    return asked != had and _counting(graded) == _counting(before)


def _counting(graded: "Graded") -> tuple[object, ...]:
    """All of a work that a grade may depend on."""
    notebooks = [
        (
            notebook.name,
            notebook.reason,
            dict(notebook.answers),
            besides(notebook.extra),
            notebook.pictures,
            [(verdict.test, verdict.score) for verdict in notebook.verdicts],
        )
        for notebook in graded.result.notebooks
    ]
    return graded.result.reason, graded.made_of.get("files"), notebooks


def replies(changes: Iterable[Mapping[str, Any]], asked: Iterable[Question]) -> dict[str, str]:
    """What was answered to these, as the journal keeps it; of two answers to one the newest."""
    answers, questions = [*_answers(changes)], [*asked]
    return {one.name: answer.said for answer in answers for one in questions if _is_of(answer, one)}


def _is_of(answer: Answer, question: Question) -> bool:
    if len(answer.name) > SHOWN:
        return answer.name == question.name
    return question.name.startswith(answer.name) and question.text == answer.asked


def _answers(changes: Iterable[Mapping[str, Any]]) -> Iterator[Answer]:
    for change in map(read, changes):
        if change is not None and change.answer is not None:
            yield change.answer


def _text(source: str) -> str:
    """What a cell asks; empty if it is no question."""
    found = HEADING.match(source)
    text = harmless(source[found.end() :]).strip() if found else ""
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"

"""What a student reads: his answers, what went wrong in words, and of a hidden test its claim only.

`page` writes the page of one notebook from what grading found.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from markupsafe import Markup

from autograder.classroom import pages
from autograder.classroom.asked import Question
from autograder.classroom.counted import NEAR, Marks, number
from autograder.classroom.pages import inert_page
from autograder.classroom.rebuild import harmless, whole
from autograder.classroom.statuses import STATUSES
from autograder.common import headings
from autograder.common.results import NotebookResult, Verdict
from autograder.common.scan import coloured
from autograder.judge.showing import ALL, Shown

HIDDEN = "Your visible tests pass; this is a hidden one, with other sizes or numbers."
WORTH_POINTS = ("test", "manual", "task")  # kinds of cells
LONGEST_SOURCE = 20_000  # characters of an answer


class PageCell(Protocol):
    """What a page has to know of a cell of the instructor's notebook."""

    @property
    def grade_id(self) -> str:
        """The cell's name; empty if it has none."""
        ...

    @property
    def kind(self) -> str:
        """markdown, code, solution, test, manual, readonly or task."""
        ...

    @property
    def cell_type(self) -> str:
        """code, markdown or raw."""
        ...

    @property
    def stub(self) -> str:
        """Its text in the release: without what only the person who grades may read."""
        ...

    @property
    def points(self) -> float:
        """What it is worth."""
        ...

    @property
    def hidden(self) -> Sequence[object]:
        """The parts of a test that students do not see; none if it has none."""
        ...


class PageNotebook(Protocol):
    """What a page has to know of the instructor's notebook."""

    @property
    def cells(self) -> Iterable[PageCell]:
        """Its cells, in order."""
        ...


@dataclass
class Section:
    """One question of the page: its heading and what the student gets to see below it."""

    title: str
    anchor: str
    parts: list[dict[str, Any]] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)

    @property
    def is_done(self) -> bool:
        """Whether all of it passed, and no person has given or written anything."""
        said = any(part["comment"] or part["given"] is not None for part in self.parts)
        by_hand = any(part["by_hand"] or part["kind"] == "withheld" for part in self.parts)
        return not said and not by_hand and all(one.status == "passed" for one in self.verdicts)

    @property
    def score(self) -> float:
        """Points earned."""
        return sum(verdict.score for verdict in self.verdicts)

    @property
    def points(self) -> float:
        """Points of its automatic tests."""
        return sum(verdict.points for verdict in self.verdicts)


def prepare() -> None:
    """Have ready what every page needs."""
    pages.prepare("feedback.html")


def page(
    result: NotebookResult,
    notebook: PageNotebook,
    student: str,
    book: str = "",
    marks: Marks | None = None,
    shown: Shown = ALL,
    asked: Sequence[tuple[Question, str]] = (),
) -> str:
    """The feedback page of one notebook, complete in itself.

    Args:
        result: what grading found.
        notebook: the instructor's notebook; gives the headings and the order.
        student: the name at the top.
        book: where the book lies, as a link; empty if students have no copy.
        marks: what the gradebook says, with grades and comments by hand; None if there is none.
        shown: what of hidden tests. A sum that holds what they found is not shown without them.
        asked: the student's questions, each with its answer; empty if there is none yet.
    """
    said = marks or Marks()
    if result.reason:
        return inert_page(
            "unreadable.html",
            chapter=result.name,
            student=student,
            reason=harmless(result.reason),
            whole=said.points,
            number=number,
            comments=list(map(harmless, said.comments.values())),
        )
    sections = _sections(result, notebook, book, said, shown, asked)
    score = sum(section.score for section in sections)
    parts = [part for section in sections for part in section.parts if part["by_hand"]]
    more = bool(parts) or bool(said.points.late) or abs(said.points.given - score) > NEAR
    return inert_page(
        "feedback.html",
        name=result.name,
        title=_title(notebook) or result.name,
        student=student,
        sections=sections,
        score=score,
        whole=said.points if marks and more and shown.hidden else None,
        shown=shown,
        most=sum(cell.points for cell in notebook.cells if cell.kind in WORTH_POINTS),
        points=sum(section.points for section in sections),
        verdicts=[verdict for section in sections for verdict in section.verdicts],
        waiting=any(part["given"] is None for part in parts),
        notes=(*result.notes, *(result.by_tests if shown.hidden else ())),
        states={name: words.state for name, words in STATUSES.items()},
        phrases=_phrases,
        hidden=HIDDEN,
        number=number,
    )


def _sections(
    result: NotebookResult,
    notebook: PageNotebook,
    book: str,
    marks: Marks,
    shown: Shown,
    asked: Sequence[tuple[Question, str]],
) -> list[Section]:
    """The notebook cut at its headings; those without an answer or a test are left out."""
    verdicts = {
        verdict.test: replace(verdict, score=marks.by_hand.get(verdict.test, verdict.score))
        for verdict in result.verdicts
    }
    sections = [Section("", "start", parts=_asked(asked, ""))]
    for cell in notebook.cells:
        title = _heading(cell)
        if title:
            sections.append(Section(title, f"question-{len(sections)}"))
        section = sections[-1]
        if cell.kind in ("solution", "manual", "task"):
            section.parts.append(_answer(cell, result, marks))
        elif cell.kind == "test" and cell.grade_id in verdicts:
            verdict = verdicts[cell.grade_id]
            if shown.hidden or _is_seen(cell, verdict, marks):
                section.verdicts.append(verdict)
                section.parts.append(_test(verdict, book, marks))
            else:
                section.parts.append(_withheld(cell, verdict, marks))
        if cell.grade_id:
            section.parts += _asked(asked, cell.grade_id)
    return [section for section in sections if section.parts]


def _is_seen(cell: PageCell, verdict: Verdict, marks: Marks) -> bool:
    """Whether what became of a test says nothing of a hidden part."""
    failed_before = verdict.status != "passed" and not verdict.hidden
    tells_nothing = not verdict.leans and (not cell.hidden or failed_before)
    return tells_nothing or cell.grade_id in marks.by_hand


def _withheld(cell: PageCell, verdict: Verdict, marks: Marks) -> dict[str, Any]:
    return {
        "kind": "withheld",
        "leans": verdict.leans,
        "id": cell.grade_id,
        "by_hand": False,
        "points": cell.points,
        "given": None,
        "comment": harmless(marks.comments.get(cell.grade_id, "")),
    }


def _asked(asked: Sequence[tuple[Question, str]], below: str) -> list[dict[str, Any]]:
    """What was asked below a cell, and answered."""
    return [
        {
            "kind": "question",
            "id": one.name,
            "by_hand": False,
            "given": None,
            "comment": "",
            "text": harmless(one.text),
            "reply": harmless(reply),
        }
        for one, reply in asked
        if one.below == below
    ]


def _title(notebook: PageNotebook) -> str:
    return headings.of_notebook(c.stub for c in notebook.cells if c.cell_type == "markdown")


def _heading(cell: PageCell) -> str:
    if cell.cell_type != "markdown" or cell.kind not in ("markdown", "readonly", "task"):
        return ""
    return headings.title(cell.stub, deepest=3)


def _answer(cell: PageCell, result: NotebookResult, marks: Marks) -> dict[str, Any]:
    source = result.answers.get(cell.grade_id)
    if source is None and cell.kind == "task":  # a locked one: the answer stands below it
        below = [text for follows, _, text in result.extra if follows == cell.grade_id]
        source = "\n\n".join(below) or None
    return {
        "kind": "answer",
        "id": cell.grade_id,
        "by_hand": cell.kind != "solution",
        "points": cell.points,
        "given": marks.by_hand.get(cell.grade_id),
        "comment": harmless(marks.comments.get(cell.grade_id, "")),
        "missing": source is None,
        "task": cell.kind == "task",
        "source": _source(cut(source or "", LONGEST_SOURCE), is_code=cell.cell_type == "code"),
    }


def _test(verdict: Verdict, book: str, marks: Marks) -> dict[str, Any]:
    return {
        "kind": "test",
        "id": verdict.test,
        "by_hand": False,
        "given": marks.by_hand.get(verdict.test),
        "comment": harmless(marks.comments.get(verdict.test, "")),
        "verdict": verdict,
        "read": _place(verdict.read, book),
    }


def _place(read: str, book: str) -> tuple[str, str]:
    """Where to read on: the words, and the link; empty if there is none."""
    name, _, label = read.partition("#")
    if not re.fullmatch(r"[\w-]+", name) or not re.fullmatch(r"[\w-]*", label):
        return "", ""
    words = ", ".join(filter(None, (name.replace("_", " "), label.replace("-", " "))))
    return words, f"{book.rstrip('/')}/{name}.html#{label}" if book else ""


def _phrases(text: str) -> list[tuple[bool, str]]:
    """A sentence cut at its backticks: whether a piece is code, and the piece."""
    return [(bool(i % 2), piece) for i, piece in enumerate(harmless(text).split("`"))]


def cut(text: str, longest: int) -> str:
    """The start of a text, and how much more there is."""
    if len(text) <= longest:
        return text
    return f"{text[:longest]}\n… ({len(text) - longest} more characters)"


def _source(source: str, *, is_code: bool) -> str:
    """An answer, escaped; code in colours."""
    text = whole(source).strip("\n")
    return Markup(coloured(text)) if is_code else text

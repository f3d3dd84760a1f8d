"""Write the graded notebook: the instructor's cells, the student's answers, verdicts as outputs.

nbgrader reads a score from a test cell's outputs: an error is 0, a number that the cell ends in is
partial credit, anything else is full marks. The outputs written here say in that way exactly what
was found, so that the formgrader and every other tool of nbgrader see the same score.
"""

import copy
import json
import math
import re
from html import escape
from typing import Any

from autograder.classroom.statuses import STATUSES
from autograder.common.results import NotebookResult, Verdict
from autograder.judge.assignment import Cell, Notebook, checksum_of

NOTES = "autograder-notes"  # id of the cell that says what was odd about a submission
MAX_OUTPUT = 10_000  # characters printed by one cell that are kept
MAX_BY_LINES = 20_000  # characters of a cell that are written line by line
LONGEST_MARKDOWN = 10_000  # characters of a text that is read as such: it takes a square of them
SHORTER, MUCH_MARKDOWN = 1000, 200_000  # the same where all of a student's are more than these
MAX_EXTRA = 500  # cells of the student's own that are kept
# one that has no end, as a title may, takes nothing of what is below it
ANSI = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(\x07|\x1b\\)|.)?")
UNSAFE = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]")
TAGS = re.compile(r"<(?=[^\s\d=<-])")  # what may begin a tag, a comment, an address in brackets
ENTITIES = re.compile(r"&(?!(?:lt|gt|nbsp);)(?=#|[^\s<&#;]{1,32};)")  # they spell what is below
PICTURES = re.compile(r"!(?=\[)")
WEB = r"(?:https?://|mailto:)"
TARGETS = re.compile(rf"\](?=\((?!{WEB})|:(?![ \t]*{WEB}))", re.IGNORECASE)
COMMANDS = re.compile(  # of formulas, that link, fetch, style or name elements, or cover others
    r"\\(?=href|url|html|css|class|style|id|data|mml|unicode|require|bbox|img|include|action"
    r"|smash|[lr]lap|raise|lower|move)",
    re.IGNORECASE,
)
INSIDE = r"^((?:[ \t>]|[-*+:][ \t]|\d{1,9}[.)][ \t])*"  # quotes and lists, at a line's begin
LANGUAGES = re.compile(rf"{INSIDE}(?:`{{3,}}|~{{3,}}))(?![`~])(?=[ \t]*[^ \t\n])", re.MULTILINE)
HEADINGS = re.compile(rf"{INSIDE}#{{1,6}})(?!#)[ \t]*(?=[^ \t\n])", re.MULTILINE)
UNDERLINES = re.compile(r"^(?=[ \t>]*(?:=+|-+)[ \t]*$)", re.MULTILINE)
JOINER = "\u2060"  # is not seen
MODEL = "Model answer (students never see it)"
VALID_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def rebuild(notebook: Notebook, result: NotebookResult) -> str:
    """The graded notebook as text; the same result gives the same bytes."""
    verdicts = {verdict.test: verdict for verdict in result.verdicts}
    longest = _longest_markdown(result)
    cells = _said(result)
    cells += _extra(result, "", longest)
    for cell in notebook.cells:
        cells.append(_cell(cell, result, verdicts.get(cell.grade_id), longest))
        cells += _model(cell)
        if cell.grade_id:
            cells += _extra(result, cell.grade_id, longest)
    _number(cells)
    # no colours in formgrader: those of a short answer may take its server hours
    language = {"name": "python", **notebook.metadata.get("language_info", {})}
    content = {
        "cells": cells,
        "metadata": notebook.metadata | {"language_info": language | {"pygments_lexer": "text"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def harmless(text: str) -> str:
    """Text without terminal commands, control signs and lone surrogates."""
    return UNSAFE.sub("\ufffd", ANSI.sub("", text))


def whole(source: str) -> str:
    """What a student wrote, of which nothing is left out; signs that command become \ufffd.

    Whoever reads code has to see all that ran, also behind what would command a terminal.
    """
    return UNSAFE.sub("\ufffd", source)


def inert(text: str) -> str:
    """A student's Markdown, of which nothing runs or is fetched where formgrader shows it.

    formgrader puts what Markdown makes of a cell into a page that may do all that its reader may.
    So a space is put wherever HTML, a picture, a link to anything but the web or a formula's
    command that does more than typeset where it stands would begin: in whatever stands around it,
    code and formulas too, this is read as text. A heading gives its element a name, by which the
    page finds the fields for scores: no heading is just one of those names. And a block of code
    names no language: one is drawn as a diagram, and in the colours of many a short text takes
    hours.
    """
    clean = whole(text).replace("\r\n", "\n").replace("\r", "\n")
    for begins in (TAGS, ENTITIES, PICTURES, TARGETS, COMMANDS):
        clean = begins.sub(r"\g<0> ", clean)
    clean = LANGUAGES.sub(r"\1text ", clean)
    clean = UNDERLINES.sub("\n", clean)
    return HEADINGS.sub(rf"\1 {JOINER}", clean)


def checksum(cell: Cell) -> str:
    """What nbgrader computes over a cell as it was handed out; it tells an untouched answer."""
    marks = cell.metadata.get("nbgrader", {}) | {"grade_id": cell.grade_id, "points": cell.points}
    return checksum_of(
        cell.stub if marks.get("solution") else cell.as_written, cell.cell_type, marks
    )


def _longest_markdown(result: NotebookResult) -> int:
    """How long a student's text may be to be read as Markdown where formgrader shows it."""
    texts = [*result.answers.values(), *(text for _, kind, text in result.extra if kind != "code")]
    return LONGEST_MARKDOWN if sum(map(len, texts)) <= MUCH_MARKDOWN else SHORTER


def _cell(
    cell: Cell, result: NotebookResult, verdict: Verdict | None, longest: int
) -> dict[str, Any]:
    source = cell.as_written if cell.kind not in ("solution", "manual", "task") else cell.stub
    outputs: list[dict] = []
    if cell.kind == "test":
        outputs = _outputs(verdict or _not_run(cell, result))
    elif cell.kind == "task" and cell.locked:
        source = cell.source  # with its mark scheme, which the person who grades needs
    elif cell.answerable:
        source = _written(result.answers.get(cell.grade_id, cell.stub), cell, longest)
        outputs = _printed(result.outputs.get(cell.grade_id, ""))
    metadata = _metadata(cell)
    if cell.kind == "task":
        metadata["autograder"] = {"released": harmless(cell.stub)}
    if verdict is not None:  # the feedback page says it from here
        metadata["autograder"] = {"told": harmless(verdict.told), "hidden": verdict.hidden}
    if cell.kind == "test" and cell.hidden:
        metadata.setdefault("autograder", {})["released"] = harmless(cell.stub)
    return _node(cell.cell_type, cell.id, source, metadata, outputs)


def _written(answer: str, cell: Cell, longest: int) -> str:
    """An answer as it is shown; one that is untouched stays so, as nbgrader's checksum tells it."""
    if answer == cell.stub or cell.cell_type == "code":
        return whole(answer)
    return _markdown(answer, longest)


def _metadata(cell: Cell) -> dict[str, Any]:
    """The instructor's metadata, with nbgrader's marks as its format 3 wants them."""
    metadata = copy.deepcopy(cell.metadata)
    if not cell.grade_id:
        metadata.pop("nbgrader", None)
        return metadata
    given = metadata.get("nbgrader", {})
    marks = {key: bool(given.get(key)) for key in ("grade", "solution", "task")}
    metadata["nbgrader"] = marks | {
        "cell_type": cell.cell_type,
        "checksum": checksum(cell),
        "grade_id": cell.grade_id,
        "locked": cell.locked,
        "schema_version": 3,
    }
    if marks["grade"] or marks["task"]:
        metadata["nbgrader"]["points"] = cell.points
    metadata["deletable"] = False
    if cell.locked:
        metadata["editable"] = False
    return metadata


def _not_run(cell: Cell, result: NotebookResult) -> Verdict:
    why = result.reason or "This test was not run."
    return Verdict(cell.grade_id, "test-error", 0.0, cell.points, why)


def _outputs(verdict: Verdict) -> list[dict]:
    """Outputs from which nbgrader reads exactly this verdict's score."""
    score = verdict.score if math.isfinite(verdict.score) else 0.0
    words = [harmless(part) for part in (verdict.told, verdict.said) if part]
    words = list(dict.fromkeys(words))
    if score >= verdict.points and (verdict.points > 0 or verdict.status == "passed"):
        return _printed("\n".join(words))
    if score <= 0:
        return [
            {
                "output_type": "error",
                "ename": STATUSES[verdict.status].error,
                "evalue": words[0] if words else "This test did not pass.",
                "traceback": words or ["This test did not pass."],
            }
        ]
    result = {
        "output_type": "execute_result",
        "data": {"text/plain": [repr(float(score))]},
        "execution_count": None,
        "metadata": {},
    }
    return [*_printed("\n".join(words)), result]


def _printed(text: str) -> list[dict]:
    """What a cell printed, as far as it is kept."""
    clean = harmless(text[: 2 * MAX_OUTPUT])
    if len(clean) > MAX_OUTPUT or len(text) > 2 * MAX_OUTPUT:
        clean = clean[:MAX_OUTPUT] + "\n... (the rest was cut off)\n"
    if not clean:
        return []
    return [{"output_type": "stream", "name": "stdout", "text": _lines(clean)}]


def _model(cell: Cell) -> list[dict]:
    """The course's own answer, below one that a person grades; only that person sees it.

    No student can write one that looks so: of their Markdown no tag is left. Pages for students
    leave out what is "extra".
    """
    if cell.kind != "manual" or cell.source.strip() in ("", cell.stub.strip()):
        return []
    text = harmless(cell.source)
    if cell.cell_type == "code":
        fence = "`" * max(3, *(len(run) + 1 for run in ("", *re.findall("`+", text))))
        text = f"{fence}\n{text}\n{fence}"
    shown = f"<details><summary>{MODEL}</summary>\n\n{text}\n\n</details>"
    return [_node("markdown", f"model-{cell.id}"[:64], shown, {"autograder": {"extra": True}}, [])]


def _extra(result: NotebookResult, follows: str, longest: int) -> list[dict]:
    """The student's own cells below the cell with this grade_id."""
    return [
        _node(
            "code" if kind == "code" else "markdown",
            f"extra-{number:03d}",
            _own(kind, source, longest),
            {"autograder": {"extra": True}},
            [],
        )
        for number, (after, kind, source) in enumerate(result.extra[:MAX_EXTRA], 1)
        if after == follows
    ]


def _own(kind: str, source: str, longest: int) -> str:
    """The source of a student's own cell; a raw one would be taken for HTML."""
    if kind == "code":
        return whole(source)
    return _markdown(source, 0 if kind == "raw" else longest)


def _markdown(source: str, longest: int) -> str:
    """A student's text for formgrader; one that is too long to be read as Markdown as it is."""
    if len(source) <= longest:
        return inert(source)
    return _preformatted(whole(source).splitlines())


def _preformatted(lines: list[str]) -> str:
    # nbconvert looks for links of its own in the whole page, from each bracket to the line's end
    text = escape("\n".join(lines)).replace("[", "&#91;")
    return f"<pre>\n{text}\n</pre>"


def _said(result: NotebookResult) -> list[dict]:
    """A first cell with what was odd about the submission, for the person who grades."""
    lines = [f"Graded 0: {result.reason}."] if result.reason else []
    lines += (*result.notes, *result.by_tests)
    if not lines:
        return []
    text = _preformatted([harmless(line).replace("\n", " ") for line in lines])
    return [_node("markdown", NOTES, text, {}, [])]


def _node(cell_type: str, id: str, source: str, metadata: dict, outputs: list[dict]) -> dict:
    node = {
        "cell_type": cell_type,
        "id": id,
        "metadata": metadata,
        "source": _lines(source),
    }
    return node | {"execution_count": None, "outputs": outputs} if cell_type == "code" else node


def _lines(text: str) -> str | list[str]:
    """A text as notebooks hold it: by lines, or whole if a list of them would be all overhead."""
    return text.splitlines(keepends=True) if len(text) <= MAX_BY_LINES else text


def _number(cells: list[dict]) -> None:
    """Count the code cells as a run from top to bottom would, and make each id the only one."""
    seen: set[str] = set()
    count = 0
    for place, cell in enumerate(cells):
        if cell["id"] in seen or not VALID_ID.fullmatch(cell["id"]):
            cell["id"] = f"cell-{place:04d}-{len(seen)}"
        seen.add(cell["id"])
        if cell["cell_type"] == "code":
            count += 1
            cell["execution_count"] = count
            for output in cell["outputs"]:
                if output["output_type"] == "execute_result":
                    output["execution_count"] = count

"""The page that stock `nbgrader generate_feedback` makes: scores and comments by hand are on it.

nbgrader_config.py names two classes of this module:

    c.GenerateFeedback.exporter_class = "autograder.classroom.nbgrader_page.StudentPage"
    c.GenerateFeedback.preprocessors = [..., "autograder.classroom.nbgrader_page.ForStudents", ...]

Nothing that a student wrote is read as Markdown, HTML or a formula there: it is escaped text, and
the page may neither run nor fetch anything.
"""

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from html import escape
from pathlib import Path
from typing import Any

from bs4 import BeautifulSoup
from nbconvert.exporters import HTMLExporter
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output
from nbgrader.api import Gradebook
from nbgrader.converters.base import BaseConverter
from nbgrader.preprocessors import NbGraderPreprocessor

from autograder.classroom.classes import read_those_there
from autograder.classroom.feedback import HIDDEN, LONGEST_SOURCE, cut
from autograder.classroom.keeper import refreshed
from autograder.classroom.nbgrader_course import (
    class_of,
    look_in_each_folder,
    said,
    student_of,
    take_out_odd_names,
)
from autograder.classroom.pages import COLOURS, POLICY
from autograder.classroom.rebuild import NOTES, harmless, whole
from autograder.common.course import CourseError
from autograder.common.headings import heading
from autograder.common.names import clean_log, shown
from autograder.common.scan import coloured
from autograder.judge.diagnose import UNANSWERED, claim_of, stopped_unseen
from autograder.judge.markers import Markers, markers_of_hidden
from autograder.judge.missing import MISSING
from autograder.judge.parcel import STAMP
from autograder.judge.released import visible_part

PASSED = "Visible tests passed"  # what a notebook prints before its hidden tests begin
TRY_IT = "Run this cell in your notebook to see the details."
LONGEST_MESSAGE = 300  # characters of an exception's text
LOADING = ("script", "link", "base", "iframe", "object", "embed", "form")
NOTED = re.compile(r"<pre>\n[^<>]*\n</pre>")  # as rebuild writes it
SPECIAL = frozenset("<>&\"'[](){}!*_`#|~:$^\\\n\r")
STYLES = f"""<style>
.highlight .comment {{ color: {COLOURS["soft"]}; font-style: italic; }}
.highlight .string {{ color: {COLOURS["good"]}; }}
.highlight .number {{ color: {COLOURS["fair"]}; }}
.highlight .word {{ color: {COLOURS["accent"]}; font-weight: 600; }}
</style>"""


class StudentPage(HTMLExporter):
    """nbgrader's feedback page without anything that runs or is fetched."""

    def __init__(self, **options: Any):
        """Take our own colours: nbconvert's take a square of an answer's length."""
        super().__init__(**options)
        filters: Any = self.filters
        self.filters = filters | {"highlight_code": _highlighted}
        if isinstance(self.parent, BaseConverter):
            clean_log(self.parent.log)
            for folder in take_out_odd_names(self.parent):
                self.parent.log.warning("%s: the page that grading wrote stays.", shown(folder))
            look_in_each_folder(self.parent)
            refresh_pages(self.parent)
            leave_limited(self.parent)
            set_permissions(self.parent)

    def from_notebook_node(
        self, nb: NotebookNode, resources: dict[str, Any] | None = None, **options: Any
    ) -> tuple[str, dict[str, Any]]:
        """Convert, then take out what loads something, and forbid it."""
        html, resources = super().from_notebook_node(nb, resources, **options)
        if isinstance(self.parent, BaseConverter) and "nbgrader" in resources:
            _be_releasable(self.parent, resources["nbgrader"])
        return inert(html), resources


def inert(html: str) -> str:
    """A whole page without scripts, links to files and forms, and with our pages' policy."""
    soup = BeautifulSoup(html, "html.parser")
    for tag in soup.find_all(LOADING):
        tag.decompose()
    return str(soup).replace("<head>", f"<head>\n{POLICY}\n{STYLES}", 1)


class ForStudents(NbGraderPreprocessor):
    """Make a graded notebook into what its student needs: headings, answers, verdicts.

    Runs after nbgrader's GetGrades. Of a hidden test neither source nor input nor value stays, and
    nothing of what a student displayed.
    """

    def preprocess(
        self, nb: NotebookNode, resources: dict[str, Any]
    ) -> tuple[NotebookNode, dict[str, Any]]:
        """Shorten the notebook and put a summary first."""
        said = {_name(cell): verdicts(cell) for cell in nb.cells if _is_test(cell)}
        waiting = any(_is_written(cell) for cell in nb.cells) and _is_waiting(resources)
        marks = (markers_of_hidden(self.config), Markers().hidden)
        cells = [shown for cell in nb.cells if (shown := _shown(cell, marks)) is not None]
        nb.cells = [new_markdown_cell(_summary(said, waiting=waiting)), *cells]
        nb.metadata = NotebookNode({"language_info": {"name": "python"}})
        return nb, resources


def verdicts(cell: NotebookNode) -> list[str]:
    """What a graded test cell says, one sentence for each failure; none if it passed."""
    told = cell.metadata.get("autograder", {}).get("told")
    if told is not None:
        return [harmless(str(told))] if told else []
    said = []
    for output in cell.get("outputs", []):
        if output.output_type == "error":
            said.append(harmless(_verdict(output, cell.source, _reached_hidden(cell))))
        elif output.output_type == "stream" and output.name == "stderr":
            said.append("Your code printed a warning or an error while it was tested.")
    return said


def refresh_pages(converter: BaseConverter) -> None:
    """Have the pages that grading wrote, and that stay, say what people have entered since."""
    here: Any = converter.coursedir
    try:
        taught = class_of(here)
        if taught.journal.is_file():
            _, gone = refreshed(taught, [here.assignment_id], converter.log.warning)
            for why in gone.values():
                converter.log.warning("The pages that grading wrote stay as they are: %s", why)
    except CourseError as error:
        raise said(converter, error) from error


def leave_limited(converter: BaseConverter) -> None:
    """Leave all pages as grading wrote them, where rules say what of hidden tests is shown when."""
    here: Any = converter.coursedir
    there, _ = read_those_there(class_of(here), [here.assignment_id])
    if any(one.rules.feedback.is_limited for one in there.values()):
        converter.log.warning(
            "%s: the pages that grading wrote stay, as [feedback] in rules.toml limits what they "
            "show.",
            shown(here.assignment_id),
        )
        converter.assignments.clear()


def _be_releasable(converter: BaseConverter, where: Mapping[str, str]) -> None:
    """`nbgrader release_feedback` ends where a page has no time beside it: better an empty one."""
    path = Path(converter._format_dest(where["assignment"], where["student"])) / STAMP
    if path.parent.is_dir() and not os.path.lexists(path):
        path.touch()


def set_permissions(converter: BaseConverter) -> None:
    """Pages that stay as grading wrote them have the permissions that nbgrader was told, too."""
    here: Any = converter.coursedir
    for folder in converter.assignments:
        student = student_of(folder)
        if Path(converter._format_dest(here.assignment_id, student)).is_dir():
            with suppress(OSError):  # another instructor's, who has given them
                converter.set_permissions(here.assignment_id, student)


def _highlighted(source: str, **_: Any) -> str:
    """A code cell's source as nbconvert's template wants it."""
    return f'<div class="highlight"><pre>{coloured(source)}</pre></div>'


def _name(cell: NotebookNode) -> str:
    return escape(str(cell.metadata.get("nbgrader", {}).get("grade_id", "")))


def _is_test(cell: NotebookNode) -> bool:
    marks = cell.metadata.get("nbgrader", {})
    return cell.cell_type == "code" and bool(marks.get("grade")) and not marks.get("solution")


def _is_written(cell: NotebookNode) -> bool:
    marks = cell.metadata.get("nbgrader", {})
    return bool(marks.get("grade") and marks.get("solution"))


def _is_waiting(resources: Mapping[str, Any]) -> bool:
    """Whether the gradebook lacks points for an answer; one that was left empty has them."""
    where = resources.get("nbgrader")
    if where is None:
        return True
    with Gradebook(where["db_url"]) as book:
        names = where["notebook"], where["assignment"], where["student"]
        grades: Any = book.find_submission_notebook(*names).grades
        return any(one.manual_score is None and one.auto_score is None for one in grades)


def _shown(cell: NotebookNode, hidden: tuple[tuple[str, str], ...]) -> NotebookNode | None:
    """What of a cell a student gets back: prose by its heading, a test by its verdict."""
    if cell.metadata.get("autograder", {}).get("extra"):
        return None
    marks = cell.metadata.get("nbgrader", {})
    if _is_test(cell):
        more = _more(cell)
        outputs = [_told(sentence, more) for sentence in verdicts(cell)]
        # what was handed out; a notebook that another grader wrote does not say it
        source = str(cell.metadata.get("autograder", {}).get("released", cell.source))
        return _code(visible_part(source, *hidden), marks, outputs)
    if cell.get("id") == NOTES:
        return _text(cell.source, {}) if NOTED.fullmatch(cell.source) else None
    if marks.get("solution"):
        source = cut(whole(cell.source), LONGEST_SOURCE)
        # What a code cell printed is left out: it may have printed what a hidden test asked.
        if cell.cell_type == "code":
            return _code(source, marks, [])
        return _text(f"<pre>{_escaped(source)}</pre>", marks)
    return _heading(cell)


def _heading(cell: NotebookNode) -> NotebookNode | None:
    if cell.cell_type != "markdown":
        return None
    # of a task's text a part may be for the person who grades alone
    source = str(cell.metadata.get("autograder", {}).get("released", cell.source))
    level, title = heading(source)
    if level < 2:  # the notebook's own title
        return None
    pieces = harmless(title).split("`")
    words = [
        f"<code>{_escaped(piece)}</code>" if place % 2 else _escaped(piece)
        for place, piece in enumerate(pieces)
    ]
    return _text(f"<h2>{''.join(words)}</h2>", {})


def _code(source: str, marks: Any, outputs: list[NotebookNode]) -> NotebookNode:
    return new_code_cell(source, metadata=_marks(marks), outputs=outputs)


def _text(source: str, marks: Any) -> NotebookNode:
    return new_markdown_cell(source, metadata=_marks(marks))


def _marks(marks: Any) -> dict[str, Any]:
    """nbgrader's marks alone: a template prints what else lies in a cell as it is."""
    if not marks:
        return {}
    return {"nbgrader": {**marks, "grade_id": escape(str(marks.get("grade_id", "")))}}


def _escaped(text: str) -> str:
    """Text that neither HTML nor Markdown nor a formula's reader takes for its own; one line."""
    return "".join(f"&#{ord(sign)};" if sign in SPECIAL else sign for sign in text)


def _more(cell: NotebookNode) -> str:
    """What a student may do about a failure."""
    marks = cell.metadata.get("autograder", {})
    hidden = marks.get("hidden", _reached_hidden(cell))
    return HIDDEN if hidden else TRY_IT


def _summary(said: dict[str, list[str]], *, waiting: bool) -> str:
    """What went wrong, test by test, each with a link to its place on the page; HTML, one line."""
    lost = [
        f'<li><a href="#{name}">{_escaped(name)}</a>: {_escaped(" ".join(sentences))}</li>'
        for name, sentences in said.items()
        if sentences
    ]
    start = "All tests pass."
    if lost:
        passed = len(said) - len(lost)
        start = f"{passed} of {len(said)} tests pass. What to look at:"
    hand = "Written answers are graded by hand; until then they count as 0 above."
    parts = [f"<p>{start}</p>", *([f"<ul>{''.join(lost)}</ul>"] if lost else [])]
    return f"<div>{''.join(parts)}{f'<p>{hand}</p>' if waiting else ''}</div>"


def _reached_hidden(cell: NotebookNode) -> bool:
    """Whether the visible tests of a cell passed, as the cell printed."""
    streams = [output for output in cell.get("outputs", []) if output.output_type == "stream"]
    return any(PASSED in output.get("text", "") for output in streams)


def _verdict(output: NotebookNode, source: str, hidden: bool) -> str:
    """One failure in words; of a hidden test only what its author wrote is repeated."""
    name = str(output.get("ename", "error"))
    if _is_ours(output):
        return str(output.evalue)[:LONGEST_MESSAGE]
    message = harmless(str(output.get("evalue", "")))[:LONGEST_MESSAGE].strip()
    first = message.partition("\n")[0]
    if claim := claim_of(message, source, hidden=hidden):
        return claim
    if name == "AssertionError":
        return "A test failed."
    if hidden:
        return stopped_unseen([name], hidden=True)
    if name == "NotImplementedError" and "not answered yet" in first:
        return UNANSWERED
    return MISSING if name == "NameError" else f"Your code stopped with {name}: {first}"


def _is_ours(output: NotebookNode) -> bool:
    """Whether this grader wrote the output: what a kernel traces back starts with a ruled line."""
    trace = output.get("traceback") or [""]
    return bool(trace[0]) and trace[0] == output.get("evalue")


def _told(sentence: str, more: str) -> NotebookNode:
    return new_output("error", ename="", evalue="", traceback=[sentence, more])

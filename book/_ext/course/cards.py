"""The card at the head of a chapter and the card of its exercise notebook.

    ```{chapter-card}
    - first thing the reader will be able to do
    - second
    - third
    ```

shows the list, a link to the page as a notebook, and the time: the words of its prose at 180 a
minute, a minute for each code cell and its output, and the lines of code in sight at 30 a minute.
These numbers were chosen so that the time comes to what readers of chapters 3 and 6 reported. A
formula in running text counts as one word; displayed formulas, folded code, directive lines,
comments and front matter for none.

    ```{exercise-card} 03_attention
    ```

reads exercises/03_attention/03_attention.ipynb and shows the questions, the points (by test and by
hand), the minutes, and a link that serves the very bytes of that file. Questions are second-level
headings of the form `## 3.2 Title (4 points, about 15 minutes, difficulty 2 of 5)`.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.util.docutils import SphinxDirective

WORDS_A_MINUTE = 180
LINES_A_MINUTE = 30
MINUTES_A_CELL = 1

CELL = re.compile(
    r"^(?P<fence>```+)\{code-cell\}[^\n]*\n(?:---\n(?P<options>.*?)\n---\n)?"
    r"(?P<code>.*?)^(?P=fence)[ ]*$",
    re.DOTALL | re.MULTILINE,
)
FOLDED = re.compile(r"(?:hide|remove)-(?:input|cell)")

NOT_READ = (
    re.compile(r"^(```+)\{(?:code-cell|anywidget)\}.*?^\1[ ]*$", re.DOTALL | re.MULTILINE),
    re.compile(r"^(```+)\w+.*?^\1[ ]*$", re.DOTALL | re.MULTILINE),  # listings
    re.compile(r"\$\$.*?\$\$(?:[ ]*\([\w-]+\))?", re.DOTALL),  # displayed formulas
    re.compile(r"^(?:%|:\w[\w-]*:|`{3,}|:{3,}|\([\w-]+\)=).*$", re.MULTILINE),  # marks of MyST
)
HEADING = re.compile(
    r"^##[ ]+(?P<number>\d+\.\d+)[ ]+(?P<title>.+?)[ ]+"
    r"\((?P<points>\d+) points?, about (?P<minutes>\d+) minutes?, "
    r"difficulty (?P<difficulty>[1-5]) of 5\)[ ]*$",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Reading:
    """What a page asks of its reader."""

    words: int
    cells: int
    lines: int  # of code in sight

    @property
    def minutes(self) -> int:
        """Minutes to work through the page, rounded to the nearest five, at least five."""
        words, lines = self.words / WORDS_A_MINUTE, self.lines / LINES_A_MINUTE
        return max(5, 5 * round((words + lines + self.cells * MINUTES_A_CELL) / 5))


@dataclass(frozen=True)
class Question:
    """One question of an exercise notebook, as its heading states it."""

    number: str
    title: str
    points: int
    minutes: int
    difficulty: int


@dataclass(frozen=True)
class Exercise:
    """An exercise notebook: its questions, and the points given by tests and by hand."""

    questions: list[Question]
    tested: int
    by_hand: int

    @property
    def minutes(self) -> int:
        """Minutes for all questions together."""
        return sum(question.minutes for question in self.questions)


def reading(source: str) -> Reading:
    """Count the words, the code cells and the lines of code in sight of a page in MyST Markdown."""
    text = re.sub(r"\A---\n.*?\n---\n", "", source, flags=re.DOTALL)
    cells = list(CELL.finditer(text))
    shown = [cell["code"] for cell in cells if not FOLDED.search(cell["options"] or "")]
    lines = sum(bool(line.strip()) for code in shown for line in code.splitlines())
    for pattern in NOT_READ:
        text = pattern.sub("", text)
    text = re.sub(r"\$[^$\n]+\$", "formula", text)
    words = re.findall(r"[^\W_]+(?:['’.-][^\W_]+)*", text)
    return Reading(words=len(words), cells=len(cells), lines=lines)


def read_exercise(path: Path) -> Exercise:
    """Read an exercise notebook. Raises ValueError when the file has no question."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    prose = "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    questions = [
        Question(m["number"], m["title"], int(m["points"]), int(m["minutes"]), int(m["difficulty"]))
        for m in HEADING.finditer(prose)
    ]
    if not questions:
        raise ValueError(
            f"{path.name} has no question; give each one a heading such as "
            "'## 3.2 Title (4 points, about 15 minutes, difficulty 2 of 5)'"
        )
    marks = [cell["metadata"].get("nbgrader", {}) for cell in cells]
    graded = [mark for mark in marks if mark.get("grade")]
    return Exercise(
        questions=questions,
        tested=sum(int(mark["points"]) for mark in graded if not mark.get("solution")),
        by_hand=sum(int(mark["points"]) for mark in graded if mark.get("solution")),
    )


def exercise_of(root: Path, chapter: str) -> Exercise | None:
    """Return a chapter's notebook; None where it has none of its own."""
    notebook = root / "exercises" / chapter / f"{chapter}.ipynb"
    return read_exercise(notebook) if notebook.is_file() else None


class ChapterCard(SphinxDirective):
    """What a chapter teaches (a list) and how long it takes to read."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the card."""
        page = reading(Path(self.env.doc2path(self.env.docname)).read_text(encoding="utf-8"))
        card = nodes.container(classes=["course-card", "chapter-card"])
        card += label("After this chapter you can")
        self.state.nested_parse(self.content, self.content_offset, card)
        time = (
            nodes.strong("", f"About {page.minutes} minutes"),
            nodes.Text(
                f" with all its cells: {page.words:,} words at {WORDS_A_MINUTE} a minute, "
                f"{page.lines} lines of code at {LINES_A_MINUTE}, and a minute for "
                f"{each_of(page.cells)}. "
            ),
        )
        more = [self._as_notebook()] if page.cells else []
        card += nodes.paragraph("", "", *time, *more, classes=["card-note"])
        return [card]

    def _as_notebook(self) -> addnodes.download_reference:
        executed = Path(self.env.mystnb_config.output_folder, f"{self.env.docname}.ipynb")  # type: ignore[attr-defined]
        return addnodes.download_reference(
            "",
            "",
            nodes.Text("Download it as a notebook"),
            reftarget=f"/{os.path.relpath(executed, self.env.srcdir)}",
            refdoc=self.env.docname,
            refdomain="",
            reftype="download",
        )


class ExerciseCard(SphinxDirective):
    """What an exercise notebook holds, and the link to download it."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the card; a missing or unreadable notebook is one build error."""
        name = self.arguments[0]
        relative = Path("exercises", name, f"{name}.ipynb")
        path = Path(self.env.srcdir).parent / relative
        if not path.is_file():
            raise self.error(
                f"exercise-card: there is no {relative}; "
                f"run 'python -m autograder release {name}' to write it, then build again"
            )
        try:
            exercise = read_exercise(path)
        except (KeyError, ValueError) as error:
            raise self.error(f"exercise-card: cannot read {relative}: {error}") from error
        return [self._card(relative, exercise)]

    def _card(self, relative: Path, exercise: Exercise) -> nodes.container:
        card = nodes.container(classes=["course-card", "exercise-card"])
        card += label("Exercise")
        card += facts(exercise)
        card += questions_list(exercise.questions)
        card += nodes.paragraph("", "", self._download(relative), classes=["card-action"])
        card += nodes.paragraph(
            "",
            "",
            nodes.Text("The same file lies in your copy of the course, in "),
            nodes.literal("", relative.parent.as_posix()),
            nodes.Text(". Work on a copy of it: open that one with "),
            nodes.literal("", "jupyter lab"),
            nodes.Text(" and run its cells from the top."),
            classes=["card-note"],
        )
        return card

    def _download(self, relative: Path) -> addnodes.download_reference:
        return addnodes.download_reference(
            "",
            "",
            nodes.Text(f"Download {relative.name}"),
            reftarget=f"/../{relative.as_posix()}",
            refdoc=self.env.docname,
            refdomain="",
            reftype="download",
        )


def label(text: str) -> nodes.paragraph:
    """Return the small heading of a card, which takes no part in the table of contents."""
    return nodes.paragraph("", text, classes=["card-label"])


def facts(exercise: Exercise) -> nodes.bullet_list:
    """Return the numbers of an exercise as a short list."""
    lines = [
        (f"{len(exercise.questions)}", "questions"),
        (f"{exercise.tested + exercise.by_hand}", "points"),
        (f"{exercise.tested}", "by tests"),
        (f"{exercise.by_hand}", "by hand"),
        (f"{exercise.minutes}", "minutes or so"),
    ]
    items = [
        nodes.list_item("", nodes.paragraph("", "", nodes.strong("", n), nodes.Text(f" {what}")))
        for n, what in lines
    ]
    return nodes.bullet_list("", *items, classes=["card-facts"])


def questions_list(questions: list[Question]) -> nodes.bullet_list:
    """Return the titles of the questions, each with its points and difficulty."""
    items = [
        nodes.list_item(
            "",
            nodes.paragraph(
                "",
                "",
                nodes.Text(f"{q.number} {q.title} "),
                nodes.inline(
                    "",
                    f"{counted(q.points, 'point')}, difficulty {q.difficulty} of 5",
                    classes=["card-aside"],
                ),
            ),
        )
        for q in questions
    ]
    return nodes.bullet_list("", *items, classes=["card-questions"])


def counted(number: int, noun: str) -> str:
    """Return a number and its noun, in the plural where it belongs."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def each_of(cells: int) -> str:
    """Return how a sentence speaks of a number of code cells."""
    return "its one code cell" if cells == 1 else f"each of {cells} code cells"

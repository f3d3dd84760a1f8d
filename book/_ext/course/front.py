"""What the first page shows: cards of the chapters, what a wrong answer hears, and how much it is.

    ```{chapters}
    01_embedding: from a sentence to a matrix of vectors
    relative_positions: distances in the place of positions
    ```

shows a card a chapter: its number, title and promise, the minutes to read it, the questions and
points of its notebook, and its picture, images/chapters/NAME.svg.

    ```{heard} 03_attention mask_after_softmax
    ```

shows a known mistake, under the name that the question asks for, beside what its student is told
(solutions/*/misconceptions.py, mutants.tsv).

    ```{numbers}
    ```

counts questions, known mistakes, words to read and errors found. All of it is read at each build.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from .cards import counted, exercise_of, reading
from .coverage import page_link
from .documents import NO_ERRORS, read_documents
from .fresh import always_read_again
from .mutants import BY_NAME, Mutant, read_mutants, with_code
from .titles import numbered

LISTED = re.compile(r"file: (\d\d_\w+)")


class Chapters(SphinxDirective):
    """Cards that lead to the chapters."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the cards; a line that names no page is an error with file and line."""
        always_read_again(self.env)
        grid = nodes.container(classes=["chapters"])
        for line in self.content:
            name, _, promise = line.partition(": ")
            page = Path(self.env.srcdir, f"{name}.md")
            picture = Path(self.env.srcdir, "images", "chapters", f"{name}.svg")
            for path in (page, picture):
                if not path.is_file():
                    raise self.error(f"chapters: there is no {path.relative_to(self.env.srcdir)}")
            grid += self._card(page, picture.read_text(encoding="utf-8"), promise)
        return [grid]

    def _card(self, page: Path, picture: str, promise: str) -> nodes.container:
        card = nodes.container(classes=["chapter-link"])
        card += nodes.raw("", picture.replace("<svg ", '<svg aria-hidden="true" '), format="html")
        card += nodes.paragraph(
            "", "", page_link(page.stem, numbered(page)), classes=["chapter-title"]
        )
        card += nodes.paragraph("", promise, classes=["chapter-promise"])
        card += nodes.paragraph("", self._size(page), classes=["card-note"])
        return card

    def _size(self, page: Path) -> str:
        read = f"{reading(page.read_text(encoding='utf-8')).minutes} min to read"
        exercise = exercise_of(Path(self.env.srcdir).parent, page.stem)
        if exercise is None:
            return read
        points = exercise.tested + exercise.by_hand
        size = f"{read} · {counted(len(exercise.questions), 'question')} · {points} points"
        return re.sub(r"(?<=\d) ", "\N{NO-BREAK SPACE}", size)  # a line breaks between the three


class Heard(SphinxDirective):
    """A known mistake, and what its student is told."""

    required_arguments = 2

    def run(self) -> list[nodes.Node]:
        """Return the two side by side; an unknown mistake is an error with file and line."""
        always_read_again(self.env)
        chapter, name = self.arguments
        root = Path(self.env.srcdir).parent
        known = [one for one in read_mutants(root) if (one.chapter, one.name) == (chapter, name)]
        if not known or known[0].named != BY_NAME:
            raise self.error(f"heard: mutants.tsv has no {name} of {chapter} that is told by name")
        code = without_docstring(root / "solutions" / chapter / "misconceptions.py", name)
        code = code.replace(name, known[0].question.replace("-", "_"), 1)
        box = nodes.container(classes=["heard"])
        box += nodes.literal_block(code, code, language="python", classes=["heard-code"])
        box += self._told(known[0])
        return [box]

    def _told(self, mistake: Mutant) -> nodes.container:
        told = nodes.container(classes=["heard-told"])
        words = (nodes.strong("", "Not yet right."), nodes.Text(" "), with_code(mistake.message))
        told += nodes.paragraph("", "", *words)
        tests = counted(len(mistake.caught), "test")
        told += nodes.paragraph("", f"Caught by {tests}, and told by name.", classes=["card-note"])
        return told


def without_docstring(module: Path, name: str) -> str:
    """Return a function of a module as it stands there, without decorators and docstring."""
    text = module.read_text(encoding="utf-8")
    for part in ast.parse(text).body:
        if isinstance(part, ast.FunctionDef) and part.name == name:
            lines = text.splitlines()
            start = part.body[1].lineno if ast.get_docstring(part) else part.body[0].lineno
            head = lines[part.lineno - 1 : part.body[0].lineno - 1]
            return "\n".join([*head, *lines[start - 1 : part.end_lineno]])
    raise ValueError(f"{module} has no function {name}")


class Numbers(SphinxDirective):
    """How much there is, in four numbers."""

    def run(self) -> list[nodes.Node]:
        """Return the numbers, each with what it counts."""
        always_read_again(self.env)
        root = Path(self.env.srcdir).parent
        facts = (*self._to_do(root), self._mistakes(root), self._errors(root))
        return [
            nodes.bullet_list(
                "",
                *(
                    nodes.list_item(
                        "",
                        nodes.paragraph("", "", nodes.strong("", number), nodes.Text(f" {what}")),
                    )
                    for number, what in facts
                ),
                classes=["front-numbers"],
            )
        ]

    def _to_do(self, root: Path) -> list[tuple[str, str]]:
        listed = LISTED.findall((root / "book" / "_toc.yml").read_text(encoding="utf-8"))
        exercises = [one for one in (exercise_of(root, name) for name in listed) if one]
        questions = sum(len(one.questions) for one in exercises)
        hours = sum(one.minutes for one in exercises) / 60
        texts = [(root / "book" / f"{name}.md").read_text(encoding="utf-8") for name in listed]
        to_read = sum(reading(text).minutes for text in texts) / 60
        return [
            (f"{to_read:.0f} hours", f"to read {len(listed)} chapters, every cell of them run"),
            (f"{questions}", f"questions, graded at once: some {hours:.0f} hours"),
        ]

    def _mistakes(self, root: Path) -> tuple[str, str]:
        mistakes = read_mutants(root)
        named = sum(one.named == BY_NAME for one in mistakes)
        return f"{len(mistakes):,}", f"known mistakes that the tests must catch; {named:,} by name"

    def _errors(self, root: Path) -> tuple[str, str]:
        found = [one for document in read_documents(root) for one in document.errors]
        errors = sum(one.kind not in NO_ERRORS for one in found)
        return f"{errors}", "errors found in what people read about the Transformer"

"""What a chapter shows in boxes and folds of its own.

    ```{trap} A mask can multiply the scores by 0
    :errata: E2.22 EX.5
    What one often reads, and what is so. The cell below the box decides.
    ```

is a misconception, with the documents in which it was met. The ids stay out of sight.

    ```{quiz} Which of these lets a decoder see the future?
    - [ ] An answer
      : Why it is not the one.
    - [x] Another
      : Why it is.
    ```

shows all answers; each unfolds to its verdict, with a click or a key, without any script.

    ```{five}
    How the five documents tell what the chapter teaches.
    ```

is a fold at a chapter's end.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.writers.html5 import HTML5Translator

from .documents import Document, read_documents
from .lines import reference

OPTION = re.compile(r"- \[([ x])\] (.+)")
VERDICT = re.compile(r"  : (.+)")
SAID = re.compile(r"^(?:Right|Yes|No|Wrong)[.:,]\s+")  # the fold itself says so
FIVE = "How the five tell it"


class fold(nodes.General, nodes.Element):
    """A part of a page that unfolds; its first child is the line that is always in sight."""


class fold_line(nodes.General, nodes.TextElement):
    """The line of a fold that is always in sight."""


def open_fold(writer: HTML5Translator, node: fold) -> None:
    """Begin the HTML of a fold."""
    begun = writer.starttag(node, "details", CLASS="")
    writer.body.append(begun.replace("<details", "<details open", 1) if node.get("open") else begun)


def close_fold(writer: HTML5Translator, node: fold) -> None:
    """End the HTML of a fold."""
    writer.body.append("</details>\n")


def open_line(writer: HTML5Translator, node: fold_line) -> None:
    """Begin the HTML of a fold's line."""
    writer.body.append(writer.starttag(node, "summary", suffix="", CLASS=""))


def close_line(writer: HTML5Translator, node: fold_line) -> None:
    """End the HTML of a fold's line."""
    writer.body.append("</summary>\n")


def fold_tests(_app: Sphinx, doctree: nodes.document, _page: str) -> None:
    """Put the tests that a row of a table names into a fold, which a phone closes (course.js)."""
    for entry in list(doctree.findall(nodes.entry)):
        named = list(entry.findall(nodes.literal))
        between = entry.astext()
        for one in named:
            between = between.replace(one.astext(), "", 1)
        if not named or between.strip(" ,") or "::" not in named[0].astext():
            continue
        shown = fold(classes=["tests"], open=True)
        shown += fold_line("", f"{len(named)} tests" if len(named) > 1 else "1 test")
        shown += entry.children
        entry.children = []
        entry += shown


@dataclass
class Option:
    """One answer of a quiz, and why it is right or wrong."""

    right: bool
    text: str
    verdict: str
    line: int


def read_options(lines: list[str]) -> list[Option]:
    """Read the answers of a quiz. Raises ValueError for what is not written as above."""
    options: list[Option] = []
    for number, line in enumerate(lines):
        if match := OPTION.fullmatch(line):
            options.append(Option(match[1] == "x", match[2], "", number))
        elif not options:
            raise ValueError(f"{line!r} stands before the first answer, '- [ ] ...'")
        elif match := VERDICT.fullmatch(line):
            if options[-1].verdict:
                raise ValueError(f"{line!r} is a second verdict; go on with four blanks")
            options[-1].verdict = match[1]
        elif line.startswith("    ") and options[-1].verdict:
            options[-1].verdict += " " + line.strip()
        elif line.strip():
            raise ValueError(
                f"{line!r} is neither an answer, '- [ ] ...', nor a verdict, '  : ...'"
            )
    if len(options) < 2 or sum(option.right for option in options) != 1:
        raise ValueError("it needs at least two answers, exactly one marked '- [x]'")
    if silent := [option.text for option in options if not option.verdict]:
        raise ValueError(f"the answer {silent[0]!r} has no verdict, '  : ...' below it")
    return options


class Quiz(SphinxDirective):
    """A question with its answers in sight."""

    required_arguments = 1
    final_argument_whitespace = True
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the question; a list that is not written as it should be is a build error."""
        try:
            options = read_options(list(self.content))
        except ValueError as error:
            raise self.error(f"quiz: {error}") from error
        quiz = nodes.container(classes=["quiz"])
        quiz += nodes.paragraph("", "", *self._inline(self.arguments[0]), classes=["quiz-question"])
        quiz += [self._option(option) for option in options]
        return [quiz]

    def _option(self, option: Option) -> fold:
        shown = fold(classes=["quiz-option", "quiz-right" if option.right else "quiz-wrong"])
        shown += fold_line("", "", *self._inline(option.text))
        said = nodes.strong("", "Right. " if option.right else "No. ")
        verdict = self._inline(SAID.sub("", option.verdict))
        shown += nodes.paragraph("", "", said, *verdict, classes=["quiz-verdict"])
        return shown

    def _inline(self, text: str) -> list[nodes.Node]:
        return self.state.inline_text(text, self.lineno)[0]


class Five(SphinxDirective):
    """The fold that says how the five documents tell it."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the fold."""
        shown = fold(classes=["five"])
        shown += fold_line("", FIVE)
        self.state.nested_parse(self.content, self.content_offset, shown)
        return [shown]


class Trap(SphinxDirective):
    """A misconception, with the documents in which it was met."""

    required_arguments = 1
    final_argument_whitespace = True
    has_content = True
    option_spec: ClassVar[dict[str, Any]] = {"errata": str.split}

    def run(self) -> list[nodes.Node]:
        """Return the box; an id that no document has is an error with file and line."""
        box = nodes.admonition(classes=["trap"])
        title, _ = self.state.inline_text(self.arguments[0], self.lineno)
        box += nodes.title(self.arguments[0], "", *title)
        self.state.nested_parse(self.content, self.content_offset, box)
        if ids := self.options.get("errata"):
            box += self._met(ids)
        return [box]

    def _met(self, ids: list[str]) -> nodes.paragraph:
        documents = read_documents(Path(self.env.srcdir).parent)
        found = [(id, of_error(documents, id.rstrip(","))) for id in ids]
        if unknown := [id for id, document in found if document is None]:
            raise self.error(f"trap: no file of book/documents has the error {unknown[0]!r}")
        met = nodes.paragraph("", "Met in: ", classes=["card-note"])
        names: dict[str, str] = {}
        for id, document in found:
            names.setdefault(document.name if document else "", id.rstrip(","))
        for place, (name, id) in enumerate(names.items()):
            met += [nodes.Text(", ")] if place else []
            met += reference(id, name)
        return met


def of_error(documents: list[Document], id: str) -> Document | None:
    """Return the document that has an error."""
    return next((one for one in documents if any(e.id == id for e in one.errors)), None)

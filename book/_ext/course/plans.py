"""Ways through the book, with the time that each step takes.

    ```{plan} evening
    07_decoder: read
    08_teacher_forcing: read, work
    ```

shows a table with a row a line: the step (the argument and its number, if there are several), the
page, the minutes to read it and, where it says `work`, those of its notebook; the last row adds
them up. The minutes are those of the chapter's and the exercise's own card, read at each build.
"""

from __future__ import annotations

from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from .cards import exercise_of, reading
from .coverage import page_link
from .fresh import always_read_again
from .mutants import table
from .titles import numbered

STEPS = ({"read"}, {"read", "work"}, {"work"})


def clock(minutes: int) -> str:
    """A time as people say it."""
    hours, rest = divmod(minutes, 60)
    parts = [f"{hours} h" if hours else "", f"{rest} min" if rest else ""]
    return " ".join(filter(None, parts)).replace(" ", "\N{NO-BREAK SPACE}") or "–"


class Plan(SphinxDirective):
    """A table of steps with their times."""

    has_content = True
    optional_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the table; a line that says something else is an error with file and line."""
        always_read_again(self.env)
        rows, total = [], [0, 0]
        for number, line in enumerate(self.content, 1):
            page, _, what = line.partition(": ")
            if {part.strip() for part in what.split(",")} not in STEPS:
                raise self.error(f"plan: {line!r} should be like '03_attention: read, work'")
            minutes = self._minutes(page, what)
            total = [sum(both) for both in zip(total, minutes, strict=True)]
            rows.append(self._row(number, page, minutes))
        rows.append(self._last(total))
        head = ("Page", "To read", "Its notebook", "Together")
        if self.arguments:
            head = (self.arguments[0].capitalize(), *head)
        widths = (1,) * len(head)
        return [table(head, widths, rows)]

    def _minutes(self, name: str, what: str) -> list[int]:
        page = Path(self.env.srcdir, f"{name}.md")
        if not page.is_file():
            raise self.error(f"plan: there is no page {name}")
        read = reading(page.read_text(encoding="utf-8")).minutes if "read" in what else 0
        exercise = exercise_of(page.parents[1], name) if "work" in what else None
        if "work" in what and exercise is None:
            raise self.error(f"plan: {name} has no notebook")
        return [read, exercise.minutes if exercise else 0]

    def _row(self, number: int, page: str, minutes: list[int]) -> list[nodes.Node]:
        link = page_link(page, numbered(Path(self.env.srcdir, f"{page}.md")))
        step = [nodes.Text(str(number))] if self.arguments else []
        return [*step, link, *(nodes.Text(clock(each)) for each in (*minutes, sum(minutes)))]

    def _last(self, total: list[int]) -> list[nodes.Node]:
        step = [nodes.Text("")] if self.arguments else []
        sums = (nodes.strong("", clock(each)) for each in (*total, sum(total)))
        return [*step, nodes.strong("", "All of it"), *sums]

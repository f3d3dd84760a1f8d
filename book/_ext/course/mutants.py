"""The table of known mistakes: which test catches each, and whether its student is told its name.

    ```{mutants} counts
    ```

says in a sentence how many there are and how many are caught and named; `summary` shows a row a
chapter; `all` shows every mistake, folded by chapter. All of it is read from book/mutants.tsv,
which `make mutants` writes.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from html import escape
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from .departures import entry
from .fresh import always_read_again
from .titles import numbered

BY_NAME = "by name"
HIDDEN = " (hidden)"
KINDS = ("counts", "summary", "all")


@dataclass(frozen=True)
class Mutant:
    """One known mistake, as `make mutants` found it."""

    chapter: str
    question: str
    id: str
    name: str
    message: str
    caught: tuple[str, ...]
    named: str

    @property
    def visibly(self) -> bool:
        """Whether a student can see a test fail before handing in."""
        return any(not test.endswith(HIDDEN) for test in self.caught)


def read_mutants(root: Path) -> list[Mutant]:
    """Return all known mistakes of a project, in the order of its chapters."""
    with (root / "book" / "mutants.tsv").open(encoding="utf-8", newline="") as file:
        return [
            Mutant(**{**row, "caught": tuple(filter(None, row["caught"].split(", ")))})
            for row in csv.DictReader(file, delimiter="\t")
        ]


def by_chapter(mutants: Iterable[Mutant]) -> dict[str, list[Mutant]]:
    """Return the mistakes by chapter."""
    found: dict[str, list[Mutant]] = {}
    for mutant in mutants:
        found.setdefault(mutant.chapter, []).append(mutant)
    return found


def counts(mutants: list[Mutant]) -> str:
    """Return how many there are, and how many are caught and named, in two sentences."""
    caught = [mutant for mutant in mutants if mutant.caught]
    hidden = [mutant for mutant in caught if not mutant.visibly]
    named = sum(mutant.named == BY_NAME for mutant in mutants)
    every = "All" if len(caught) == len(mutants) else f"{len(caught):,}"
    return (
        f"There are {len(mutants):,} of them. {every} fail at least one test, {len(hidden):,} only "
        f"a hidden one. {named:,} are told apart from all others and named."
    )


class Mutants(SphinxDirective):
    """The counts, the table of chapters or that of all mistakes."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return what was asked for; an unknown kind is an error with file and line."""
        kind = self.arguments[0]
        if kind not in KINDS:
            raise self.error(f"mutants: {kind!r} should be one of {', '.join(KINDS)}")
        always_read_again(self.env)
        mutants = read_mutants(Path(self.env.srcdir).parent)
        if kind == "counts":
            return [nodes.paragraph("", counts(mutants))]
        if kind == "summary":
            return [summary(mutants, self._title)]
        chapters = by_chapter(mutants).items()
        return [part for name, some in chapters for part in folded(self._title(name), some)]

    def _title(self, chapter: str) -> str:
        return numbered(Path(self.env.srcdir, f"{chapter}.md"))


def summary(mutants: list[Mutant], title: Callable[[str], str]) -> nodes.table:
    """Return a table with one row a chapter."""
    head = ("Notebook", "Mistakes", "Fail a visible test", "Fail a hidden test only", "Named")
    rows = [
        [
            nodes.Text(title(chapter)),
            nodes.Text(str(len(some))),
            nodes.Text(str(sum(mutant.visibly for mutant in some))),
            nodes.Text(str(sum(bool(m.caught) and not m.visibly for m in some))),
            nodes.Text(str(sum(mutant.named == BY_NAME for mutant in some))),
        ]
        for chapter, some in by_chapter(mutants).items()
    ]
    return table(head, (30, 15, 20, 20, 15), rows)


def folded(title: str, mutants: list[Mutant]) -> list[nodes.Node]:
    """Return one chapter's table, folded under its name."""
    head = ("Mistake", "What its student reads", "Fails", "Told")
    rows = [
        [
            nodes.Text(f"{mutant.id} {mutant.name.replace('_', ' ')}"),
            with_code(mutant.message),
            nodes.Text(", ".join(mutant.caught)),
            nodes.Text(mutant.named),
        ]
        for mutant in mutants
    ]
    words = escape(f"{title}: {len(mutants)} mistakes")
    return [
        nodes.raw("", f'<details class="mutants"><summary>{words}</summary>', format="html"),
        table(head, (25, 40, 25, 10), rows),
        nodes.raw("", "</details>", format="html"),
    ]


def with_code(text: str) -> nodes.inline:
    """Return a text in which what stands between backticks is code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:  # a backtick without its partner
        return nodes.inline("", text)
    return nodes.inline(
        "",
        "",
        *(
            nodes.literal("", part) if number % 2 else nodes.Text(part)
            for number, part in enumerate(parts)
            if part
        ),
    )


def table(
    head: Iterable[str], widths: Iterable[int], rows: Iterable[list[nodes.Text]]
) -> nodes.table:
    """Return a table."""
    widths = list(widths)
    group = nodes.tgroup(
        "",
        *(nodes.colspec(colwidth=width) for width in widths),
        nodes.thead("", nodes.row("", *(entry(nodes.Text(text)) for text in head))),
        nodes.tbody("", *(nodes.row("", *map(entry, row)) for row in rows)),
        cols=len(widths),
    )
    return nodes.table("", group)

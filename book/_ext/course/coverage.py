"""Where each item of the five documents, and each error found in them, is treated.

book/documents/*.toml lists them (documents.py). Pages carry lines `% covers: S0.7, E2.1`, exercise
sources `# covers: S0.7`; what is tagged is treated there. So is what a box or an entry of a page
names: `:errata: E2.22` of a trap, and the entry of an error on its document's page.

    ```{coverage}
    ```

shows for each document how many of its items are treated, and its errors by kind, with links.
`make sources` prints how many are treated and which are missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.util.docutils import SphinxDirective

from .departures import entry
from .documents import NO_ERRORS, Document, Entry, read_documents
from .fresh import always_read_again
from .titles import numbered

TAG = re.compile(r"^\s*(?:[%#] covers:|:errata:|```+\{erratum\})(.*)$", re.MULTILINE)


def read_tagged(root: Path) -> list[Document]:
    """Return the documents of a project, each entry with the places that its tags name."""
    documents = read_documents(root)
    entries = {e.id: e for one in documents for e in (*one.items, *one.errors)}
    for path, id in tags(root):
        if id not in entries:
            raise ValueError(f"{path}: covers {id!r}, which no file of book/documents lists")
        places = entries[id].pages if path.suffix == ".md" else entries[id].exercises
        if path.stem not in places:
            places.append(path.stem)
    return documents


def tags(root: Path) -> Iterable[tuple[Path, str]]:
    """Return each tagged id with the file that carries it, in reading order."""
    files = [*sorted((root / "book").glob("*.md")), *sorted((root / "solutions").glob("*/*.py"))]
    for path in files:
        for line in TAG.findall(path.read_text(encoding="utf-8")):
            for id in re.split(r"[,\s]+", line.strip()):
                yield path, id


class Coverage(SphinxDirective):
    """How many items and errors of each document are treated, read from the tags at each build."""

    def run(self) -> list[nodes.Node]:
        """Return the table."""
        always_read_again(self.env)
        return [table([self._row(one) for one in read_tagged(Path(self.env.srcdir).parent)])]

    def _row(self, one: Document) -> nodes.row:
        written = [error for error in one.errors if error.counts]
        cells = [
            str(len(one.items) or "–"),
            str(sum(item.treated for item in one.items) if one.items else "–"),
            str(len(written)),
            *(str(sum(e.kind == kind for e in one.errors) or "–") for kind in NO_ERRORS),
        ]
        named = nodes.entry("", nodes.paragraph("", "", page_link(one.page, one.name)))
        return nodes.row("", named, *(entry(nodes.Text(cell)) for cell in cells))


def table(rows: list[nodes.row]) -> nodes.table:
    """Return a table with one row a document."""
    head = ("Document", "Items", "of them treated", "Errors", "Lost in copying", "Withdrawn")
    group = nodes.tgroup(
        "",
        *(nodes.colspec(colwidth=width) for width in (25, 15, 15, 15, 15, 15)),
        nodes.thead("", nodes.row("", *(entry(nodes.Text(text)) for text in head))),
        nodes.tbody("", *rows),
        cols=len(head),
    )
    return nodes.table("", group)


def page_link(page: str, text: str) -> addnodes.pending_xref:
    """Return a link to a page."""
    return addnodes.pending_xref(
        "",
        nodes.inline("", text),
        refdomain="std",
        reftype="doc",
        reftarget=f"/{page}",
        refexplicit=True,
    )


def places(item: Entry, book: Path, besides: str = "") -> list[nodes.Node]:
    """Return links to the pages that treat an item, but for one, and the names of the exercises."""
    shown: list[nodes.Node] = []
    for page in item.pages:
        if page != besides:
            shown += [nodes.Text(", ")] if shown else []
            shown.append(page_link(page, numbered(book / f"{page}.md")))
    for exercise in item.exercises:
        shown.append(nodes.Text(f"{', ' if shown else ''}exercise {int(exercise[:2])}"))
    if not item.treated:
        shown.append(nodes.Text(f"to come: {item.later}" if item.later else "not yet"))
    return shown


def main(root: Path) -> int:
    """Print the counts and what is missing; 1 if anything is that should not be."""
    documents = read_tagged(root)
    items = [item for one in documents for item in one.items]
    errors = [error for one in documents for error in one.errors]
    missing = [one for one in (*items, *errors) if not one.treated]
    for one in missing:
        print(f"{one.id:6} {one.what} ({f'to come: {one.later}' if one.later else 'MISSING'})")
    print(f"inventory {counted(items)}, errata {counted(errors)}")
    apart = [f"{sum(e.kind == kind for e in errors)} {kind}" for kind in NO_ERRORS]
    print(f"of the errata {sum(e.counts for e in errors)} are errors; {', '.join(apart)}")
    return 1 if any(not one.later for one in missing) else 0


def counted(listed: list[Entry]) -> str:
    """Return how many of all are treated."""
    return f"{sum(one.treated for one in listed)}/{len(listed)}"

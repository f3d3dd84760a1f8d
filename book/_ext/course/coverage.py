"""Where each item of the five documents, and each error found in them, is treated.

book/inventory.tsv lists them: id, a few words, and for some the chapter still to come. Pages carry
lines `% covers: S0.7, E2.1`, exercise sources `# covers: S0.7`; what is tagged is treated there.

    ```{coverage} inventory
    ```

shows the table of the items (`errata` that of the errors), with a link to every place.
`make sources` prints how many are treated and which are missing.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.util.docutils import SphinxDirective

from .departures import entry
from .fresh import always_read_again

TAG = re.compile(r"^\s*[%#] covers:(.*)$", re.MULTILINE)
ID = re.compile(r"[SE][0-9VX]\.\d+")
KINDS = {"inventory": "S", "errata": "E"}


@dataclass
class Item:
    """One item of the documents or one error, and where it is treated."""

    id: str
    what: str
    later: str = ""  # the chapter still to come, for what belongs there
    pages: list[str] = field(default_factory=list)
    exercises: list[str] = field(default_factory=list)

    @property
    def treated(self) -> bool:
        """Whether any page or exercise treats it."""
        return bool(self.pages or self.exercises)


def read_items(root: Path) -> dict[str, Item]:
    """Return all items of a project by id, with the places that its tags name."""
    with (root / "book" / "inventory.tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, ("id", "what", "later"), delimiter="\t", restval=""))
    items = {row["id"]: Item(row["id"], row["what"], row["later"]) for row in rows}
    for path, id in tags(root):
        if id not in items:
            raise ValueError(f"{path}: covers {id!r}, which inventory.tsv does not list")
        places = items[id].pages if path.suffix == ".md" else items[id].exercises
        if path.stem not in places:
            places.append(path.stem)
    return items


def tags(root: Path) -> Iterable[tuple[Path, str]]:
    """Return each tagged id with the file that carries it, in reading order."""
    files = [*sorted((root / "book").glob("*.md")), *sorted((root / "solutions").glob("*/*.py"))]
    for path in files:
        for line in TAG.findall(path.read_text(encoding="utf-8")):
            for id in re.split(r"[,\s]+", line.strip()):
                yield path, id


def of_kind(items: dict[str, Item], kind: str) -> list[Item]:
    """Return the items of one kind, "inventory" or "errata", in the documents' order."""
    return [item for item in items.values() if item.id.startswith(KINDS[kind])]


class Coverage(SphinxDirective):
    """The table of items or of errors, read from the tags at each build."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the table; a name that is no kind is an error with file and line."""
        kind = self.arguments[0]
        if kind not in KINDS:
            raise self.error(f"coverage: {kind!r} should be one of {', '.join(KINDS)}")
        always_read_again(self.env)
        return [table(of_kind(read_items(Path(self.env.srcdir).parent), kind))]


def table(items: list[Item]) -> nodes.table:
    """Return a table with one row an item."""
    head = [entry(nodes.Text(text)) for text in ("Number", "What", "Treated in")]
    rows = [
        nodes.row(
            "",
            entry(nodes.Text(item.id)),
            entry(nodes.Text(item.what)),
            nodes.entry("", places(item)),
        )
        for item in items
    ]
    group = nodes.tgroup(
        "",
        *(nodes.colspec(colwidth=width) for width in (10, 60, 30)),
        nodes.thead("", nodes.row("", *head)),
        nodes.tbody("", *rows),
        cols=3,
    )
    return nodes.table("", group)


def places(item: Item) -> nodes.paragraph:
    """Return links to the pages that treat an item, and the names of the exercises."""
    shown = nodes.paragraph()
    for page in item.pages:
        link = addnodes.pending_xref(
            "",
            nodes.inline("", page.replace("_", " ")),
            refdomain="std",
            reftype="doc",
            reftarget=f"/{page}",
            refexplicit=True,
        )
        shown += [nodes.Text(", ")] if shown.children else []
        shown += link
    for exercise in item.exercises:
        shown += nodes.Text(f"{', ' if shown.children else ''}exercise {exercise[:2]}")
    if not shown.children:
        shown += nodes.Text(f"to come: {item.later}" if item.later else "not yet")
    return shown


def main(root: Path) -> int:
    """Print the counts and what is missing; 1 if anything is that should not be."""
    items = read_items(root)
    counts, missing = [], []
    for kind in KINDS:
        listed = of_kind(items, kind)
        counts.append(f"{kind} {sum(item.treated for item in listed)}/{len(listed)}")
        missing += [item for item in listed if not item.treated]
    for item in missing:
        print(f"{item.id:6} {item.what} ({f'to come: {item.later}' if item.later else 'MISSING'})")
    print(", ".join(counts))
    return 1 if any(not item.later for item in missing) else 0

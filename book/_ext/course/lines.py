"""A document's page: its errors one by one, and the table of what it contains.

    ```{erratum} E0.3
    ```

shows an error as book/documents has it (documents.py): what, where and in which words, what is so,
and links to the chapters that treat it. It is the target of {ref}`any words <E0.3>`.

    ```{inventory} S0
    ```

shows the items of a document in their order, with links to where they are treated.
"""

from __future__ import annotations

from pathlib import Path
from typing import cast

from docutils import nodes
from docutils.statemachine import StringList
from sphinx import addnodes
from sphinx.domains.std import StandardDomain
from sphinx.util.docutils import SphinxDirective

from .coverage import places, read_tagged
from .departures import entry
from .documents import KINDS, Document, Entry
from .fresh import always_read_again


class FromDocuments(SphinxDirective):
    """A directive that shows something of the documents' data."""

    required_arguments = 1

    def documents(self) -> list[Document]:
        """Return the documents; the page is read again at each build, as tags may have changed."""
        always_read_again(self.env)
        return read_tagged(Path(self.env.srcdir).parent)

    def parsed(self, text: str) -> list[nodes.Node]:
        """Return a text of the data as the nodes that its Markdown means."""
        holder = nodes.Element()
        self.state.nested_parse(StringList([text], "book/documents"), self.content_offset, holder)
        return holder.children

    def line(self, text: str, *before: nodes.Node, kind: str = "") -> list[nodes.Node]:
        """Return a text with some words before it; nothing for an empty text."""
        if not text:
            return []
        found = self.parsed(text)
        first = cast(nodes.Element, found[0])
        for node in reversed(before):
            first.insert(0, node)
        first["classes"] += [kind] if kind else []
        return found


class Erratum(FromDocuments):
    """One error of a document."""

    def run(self) -> list[nodes.Node]:
        """Return the entry; an id that no document has is an error with file and line."""
        id = self.arguments[0]
        errors = {error.id: error for one in self.documents() for error in one.errors}
        if id not in errors:
            raise self.error(f"erratum: no file of book/documents has the error {id!r}")
        return [self._shown(errors[id])]

    def _shown(self, error: Entry) -> nodes.container:
        shown = nodes.container(classes=["erratum", f"erratum-{error.kind}"])
        shown["ids"].append(error.id.lower().replace(".", "-"))
        self._name(error, shown)
        head = [
            nodes.inline("", error.id, classes=["erratum-id"]),
            nodes.inline("", KINDS[error.kind], classes=["erratum-kind"]),
        ]
        shown += self.line(error.what, *head, kind="erratum-what")
        where = nodes.emphasis("", f"{error.place}: " if error.quote else error.place)
        if error.quote:
            shown += self.line(f"“{error.quote}”", where, kind="erratum-quote")
        elif error.place:
            shown += nodes.paragraph("", "", where, classes=["erratum-quote"])
        shown += self.line(error.right, kind="erratum-right")
        shown += self.line(error.effect, kind="erratum-effect")
        if treated := places(error, Path(self.env.srcdir), self.env.docname):
            before = nodes.Text("See also: ")
            shown += nodes.paragraph("", "", before, *treated, classes=["card-note"])
        return shown

    def _name(self, error: Entry, target: nodes.Element) -> None:
        """Let {ref} find the entry by the error's id."""
        name = error.id.lower()
        target["names"].append(name)
        domain = cast(StandardDomain, self.env.get_domain("std"))
        domain.note_hyperlink_target(name, self.env.docname, target["ids"][0], error.what)


class Inventory(FromDocuments):
    """The items of one document."""

    def run(self) -> list[nodes.Node]:
        """Return the table; a label that no document has is an error with file and line."""
        label = self.arguments[0]
        found = [one for one in self.documents() if one.label == label and one.items]
        if not found:
            raise self.error(f"inventory: no file of book/documents has the label {label!r}")
        return [self._table(found[0].items)]

    def _table(self, items: list[Entry]) -> nodes.table:
        head = [entry(nodes.Text(text)) for text in ("Number", "What", "Treated in")]
        rows = [
            nodes.row(
                "",
                entry(nodes.Text(item.id)),
                nodes.entry("", *self.parsed(item.what)),
                nodes.entry("", nodes.paragraph("", "", *self._where(item))),
            )
            for item in items
        ]
        group = nodes.tgroup(
            "",
            *(nodes.colspec(colwidth=width) for width in (10, 55, 35)),
            nodes.thead("", nodes.row("", *head)),
            nodes.tbody("", *rows),
            cols=3,
        )
        return nodes.table("", group)

    def _where(self, item: Entry) -> list[nodes.Node]:
        """Where else an item is treated; here, if nowhere else."""
        return places(item, Path(self.env.srcdir), self.env.docname) or [nodes.Text("this page")]


def reference(id: str, text: str) -> addnodes.pending_xref:
    """Return a link to the entry of an error."""
    return addnodes.pending_xref(
        "",
        nodes.inline("", text),
        refdomain="std",
        reftype="ref",
        reftarget=id.lower(),
        refexplicit=True,
        refwarn=True,
    )

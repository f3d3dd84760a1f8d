"""Folded code stands below what it shows: one reads the picture, and may ask how it was made."""

from __future__ import annotations

from docutils import nodes
from sphinx.application import Sphinx


def put_below(_app: Sphinx, doctree: nodes.document, _page: str) -> None:
    """Put the folded code of a page's cells behind their output."""
    for fold in list(doctree.findall(nodes.Element)):
        if "above-input" not in fold.get("classes", []):
            continue
        shown = fold.next_node(siblings=True, descend=False)
        if isinstance(shown, nodes.Element) and shown.get("nb_element") == "cell_code_output":
            cell = shown.parent
            cell.remove(fold)
            cell.insert(cell.index(shown) + 1, fold)
            fold["classes"] = ["below-output"]
        elif shown is None:
            join_next(fold)


def join_next(fold: nodes.Element) -> None:
    """Put the code of a cell that shows nothing into the fold of the next cell, if it has one."""
    cell = fold.parent
    after = cell.next_node(siblings=True, descend=False)
    if not isinstance(after, nodes.Element) or after.get("nb_element") != "cell_code":
        return
    for other in after.children:
        if isinstance(other, nodes.Element) and "above-input" in other.get("classes", []):
            other.children = [*fold.children, *other.children]
            for code in fold.children:
                code.parent = other
            cell.parent.remove(cell)
            return

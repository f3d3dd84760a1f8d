"""Folded code stands below what it shows: one reads the picture, and may ask how it was made."""

from __future__ import annotations

from docutils import nodes
from sphinx.application import Sphinx

FOLDED = {"above-input", "below-output"}  # where a fold stands: as it was made, or put below


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
            join(fold)


def join(fold: nodes.Element) -> None:
    """Put the code of a cell that shows nothing into the fold of the next cell, or of the last."""
    cell = fold.parent
    siblings, place = cell.parent.children, cell.parent.index(cell)
    if place + 1 < len(siblings) and (other := fold_of(siblings[place + 1])):
        other[:0] = fold.children
    elif place and (other := fold_of(siblings[place - 1])):
        other += fold.children
    else:
        return
    cell.parent.remove(cell)


def fold_of(cell: nodes.Node) -> nodes.Element | None:
    """The folded code of a cell, if that is what it is and it has any."""
    if not isinstance(cell, nodes.Element) or cell.get("nb_element") != "cell_code":
        return None
    for child in cell.children:
        if isinstance(child, nodes.Element) and not FOLDED.isdisjoint(child.get("classes", [])):
            return child
    return None

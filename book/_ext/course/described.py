"""What a page says of itself to search engines, and to those to whom a link to it is sent."""

from __future__ import annotations

from html import escape
from typing import Any

from docutils import nodes
from markupsafe import Markup
from sphinx.application import Sphinx

SHORTEST, LONGEST = 60, 200  # letters; what is longer is cut off anyway


def description(page: nodes.document) -> str:
    """A page's first sentences, as many as fit; of one that is too long, its start."""
    words = ""
    for paragraph in page.findall(nodes.paragraph):
        if isinstance(paragraph.parent, nodes.section) and len(words) < SHORTEST:
            words = " ".join(f"{words} {paragraph.astext()}".split())
    if len(words) <= LONGEST:
        return words
    start, full_stop, _ = words[:LONGEST].rpartition(". ")
    return start + full_stop.strip() if start else words[:LONGEST].rpartition(" ")[0] + " …"


def describe(
    app: Sphinx, _page: str, _template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Put a page's description into its head, and its title as a card shows it."""
    if doctree is None:
        return
    said = {
        "description": description(doctree),
        "og:description": description(doctree),
        "og:title": Markup(context.get("title", "")).striptags(),
        "og:site_name": app.config.project,
        "og:type": "article",
    }
    lines = [
        f'<meta {"property" if ":" in name else "name"}="{name}" content="{escape(text)}" />'
        for name, text in said.items()
        if text
    ]
    context["metatags"] = "\n".join([context.get("metatags", ""), *lines])

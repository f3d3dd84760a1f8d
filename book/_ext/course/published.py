"""What a published site needs beside its pages, from two settings of _config.yml.

`html_baseurl`, the address of the site: then pages name their canonical address (Sphinx does), the
search engines get a sitemap, and the page for what is not there leads back from any address.
`course_repository`: then every page has a link to report an error. Both are empty until there is
such a place. When a page was changed last is known from git, and not said where there is none.
"""

from __future__ import annotations

import subprocess
from functools import cache
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

from docutils import nodes
from sphinx.application import Sphinx

NOT_FOUND = "404"
UNLISTED = {NOT_FOUND, "genindex", "search"}  # no reader comes for these
ICON = '<link rel="apple-touch-icon" href="_static/touch-icon.png" />'


@cache
def last_change(page: Path) -> str:
    """The day of a page's last commit, "2026-11-25"; empty where git does not know it."""
    asked = ["git", "log", "-1", "--format=%cs", "--", page.name]
    try:
        done = subprocess.run(asked, cwd=page.parent, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip()


def say_when(
    app: Sphinx, page: str, _template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Tell the page's footer what it says, and the head what a phone shows for it."""
    context["metatags"] = "\n".join([context.get("metatags", ""), ICON])
    if page == NOT_FOUND and app.config.html_baseurl:
        base = f'<base href="{escape(app.config.html_baseurl)}" />'
        context["metatags"] = "\n".join([base, context["metatags"]])
    day = last_change(Path(app.srcdir, f"{page}.md")) if doctree is not None else ""
    context["course_changed"] = f"Version {app.config.release}, changed on {day}." if day else ""
    where = app.config.course_repository
    title = quote(f"{context.get('title', page)}: ")
    context["course_report"] = f"{where.rstrip('/')}/issues/new?title={title}" if where else ""


def list_pages(app: Sphinx, exception: Exception | None) -> None:
    """Write the sitemap, where the site has an address."""
    if exception is not None or app.builder.format != "html" or not app.config.html_baseurl:
        return
    root = app.config.html_baseurl.rstrip("/")
    pages = sorted(page for page in app.env.all_docs if page not in UNLISTED)
    lines = [f"<url><loc>{escape(f'{root}/{page}.html')}</loc></url>" for page in pages]
    text = "\n".join(
        [
            '<?xml version="1.0" encoding="utf-8"?>',
            '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">',
            *lines,
            "</urlset>\n",
        ]
    )
    Path(app.outdir, "sitemap.xml").write_text(text, encoding="utf-8")

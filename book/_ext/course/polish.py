"""What happens to pages after Sphinx: a check of pictures, and small repairs of the theme's work.

A picture without alternative text is a warning with file and line, so the build (which runs with
-W) fails. A picture that says nothing has no place in the book, so an empty text is refused too.

The repairs are a table of exact replacements, each with its reason. They do nothing the second
time. tests/test_book.py checks the finished pages, so a new theme that escapes them is noticed.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging

logger = logging.getLogger(__name__)

THEME = """ {
    const asked = (name) => { try { return localStorage.getItem(name); } catch { return null; } };
    const dark = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    const { dataset } = document.documentElement;
    dataset.mode = asked("mode") || "auto";
    dataset.theme = dataset.mode === "auto" ? dark : dataset.mode;
  } """

REPAIRS = (
    # without a script there is the light theme, and with one the right theme from the first paint
    (r'(<html [^>]*data-theme=")auto"', r'\1light"'),
    (
        r'(<script data-cfasync="false">)\s*document\.documentElement\.dataset\.mode = [^<]*'
        r"dataset\.theme = [^<]*(</script>)",
        rf"\1{THEME}\2",
    ),
    # 1.5 MB that draw the icons a second time; the icon font of the style sheet draws them already
    (
        r"\s*<!-- So that users can add custom icons -->"
        r"\s*<script defer[^>]*fontawesome\.js[^>]*></script>",
        "",
    ),
    # the words of all pages and what searches them; the page of the search asks for them again
    (
        r'(?:\s*<script src="(?:_static/searchtools|_static/language_data|searchindex)\.js">'
        r"</script>){3}(\s*</head>)",
        r"\1",
    ),
    # a name that differs from the visible text cannot be spoken to a voice control
    (r'(<button class="btn search-button-field[^>]*?) aria-label="Search"', r"\1"),
    (r'(<summary) aria-label="Toggle hidden content"', r"\1"),
    # buttons whose only content is an icon need a name
    (
        r'(<button class="sidebar-toggle[^>]*?) title="([^"]+)"(?! aria-label)',
        r'\1 title="\2" aria-label="\2"',
    ),
    (r'<summary>(<span class="toctree-toggle")', r'<summary aria-label="Pages below">\1'),
    # the sidebar's logo stands outside every landmark
    (
        r'(<div id="pst-primary-sidebar" class="[^"]*")>',
        r'\1 role="complementary" aria-label="This book">',
    ),
    # roles of the bibliography: one that is no longer known, and a list without items
    (r' role="doc-(?:biblioentry|backlink|bibliography)"', ""),
    (r'<div role="list" class="citation-list">', '<div class="citation-list">'),
)
# The theme measures all boxes of a page, what is off the screen, too, to see which have to be
# scrolled; course.js does it when one comes near.
MEASURING = re.compile(
    r"\b(\w+)\.tabIndex=\1\.scrollWidth>\1\.clientWidth\|\|\1\.scrollHeight>\1\.clientHeight\?0:-1"
)
TABLE = re.compile(r"<table.*?</table>", re.DOTALL)
SHEET = re.compile(r'[ \t]*<link [^>]*rel="stylesheet"')
STATIC = re.compile(r'href="([^"]*_static/)course\.css')
NUMBER = re.compile(r'<h1>(<span class="section-number">[^<]*</span>)')
PRINTED = re.compile(r'(<div id="jb-print-docs-body"[^>]*>\s*<h1>)(?!<span)')
# letters of a page's first lines, and what shows that it has them; style sheets name them too late
LETTERS = {
    "<p": "fonts/source-serif-4-latin-wght-normal",
    'class="katex': "katex/fonts/KaTeX_Main-Regular",
    "mathnormal": "katex/fonts/KaTeX_Math-Italic",
}
# One task of all that scripts do once a page is read would keep a reader's first click waiting.
SPREAD = """<script data-spread>{
    const add = document.addEventListener;
    document.addEventListener = function (type, listener, ...rest) {
      const once = type === "DOMContentLoaded" && typeof listener === "function";
      const later = (event) => setTimeout(() => listener.call(this, event));
      add.call(this, type, once ? later : listener, ...rest);
    };
  }</script>
"""
# a browser forbids it to a page that is opened as a file
EARLY = """<script data-early-letters>if (location.protocol !== "file:") {
    for (const name of %s) {
      const href = `%s${name}.woff2`;
      const given = { rel: "preload", as: "font", type: "font/woff2", crossOrigin: "", href };
      document.head.append(Object.assign(document.createElement("link"), given));
    }
  }</script>
"""
NAME = re.compile(r'(<span class="pre">)([^<]+)(</span>)')
JOINT = re.compile(r"(?<=[A-Za-z0-9)])(_(?=[A-Za-z0-9])|[./](?=\w))")
COMPILED = tuple((re.compile(pattern), replacement) for pattern, replacement in REPAIRS)


def require_alternative_text(app: Sphinx, doctree: nodes.document, page: str) -> None:
    """Warn about every picture of a page without real alternative text."""
    for image in doctree.findall(nodes.image):
        if not is_real(image.get("alt", ""), image["uri"]):
            logger.warning(
                "the picture %s has no alternative text; say in a sentence what it shows "
                "(in a code cell: mystnb: {image: {alt: ...}})",
                image["uri"],
                location=image if image.line else page,
                type="course",
            )


def is_real(alternative: str, uri: str) -> bool:
    """Say whether a text can stand for a picture: some words, and not its file name."""
    words = alternative.strip()
    return len(words.split()) >= 3 and words not in (uri, Path(uri).name)


def breakable(table: str) -> str:
    """Let the names in a table break at their joints, so that none widens its column too far."""
    return NAME.sub(lambda name: name[1] + JOINT.sub(r"\1<wbr>", name[2]) + name[3], table)


def with_first_scripts(html: str) -> str:
    """Spread its scripts' work, and ask for its letters before its style sheets: lines stay put."""
    sheet, static = SHEET.search(html), STATIC.search(html)
    if "data-early-letters" in html or sheet is None or static is None:
        return html
    names = [name for sign, name in LETTERS.items() if sign in html]
    early = SPREAD + EARLY % (json.dumps(names), static[1])
    return html[: sheet.start()] + early + html[sheet.start() :]


def with_printed_number(html: str) -> str:
    """Print a chapter under its number, as it is read: the theme's title for paper has none."""
    number = NUMBER.search(html)
    return PRINTED.sub(lambda title: title[1] + number[1], html) if number else html


def repair(html: str) -> str:
    """Return a page with the theme's faults repaired."""
    for pattern, replacement in COMPILED:
        html = pattern.sub(replacement, html)
    html = with_printed_number(with_first_scripts(html))
    return TABLE.sub(lambda table: breakable(table[0]), html)


def polish_pages(app: Sphinx, exception: Exception | None) -> None:
    """Repair every page of a finished HTML build and drop the files that no page asks for."""
    if exception is not None or app.builder.format != "html":
        return
    out = Path(app.outdir)
    for page in sorted(out.rglob("*.html")):
        before = page.read_text(encoding="utf-8")
        after = repair(before)
        if after != before:
            page.write_text(after, encoding="utf-8")
    static = out / "_static"
    for script in static.glob("scripts/pydata-sphinx-theme.js"):
        script.write_text(MEASURING.sub("", script.read_text(encoding="utf-8")), encoding="utf-8")
    for extra in {*static.glob("scripts/fontawesome.js*"), *static.rglob("*.map")}:
        extra.unlink()

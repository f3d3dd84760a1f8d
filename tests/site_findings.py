"""What a review of the book as a site found in November 2026, and what is found now.

Each row of the review's first table is measured anew, in a real browser, by
`python -m tests.site_table`. Only the time without a theme depends on the machine.
"""

import json
import re
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from tests.browsing import WHOLE, Page
from tests.searching import FOUND, first_hits, leads

COMPUTED = "--enable-blink-features=ComputedAccessibilityInfo"  # names as a screen reader has them
WIDTHS = (320, 360, 768, 1280, 1920)
LOADED = """document.readyState === "complete" && document.fonts.status === "loaded"
  && performance.getEntriesByType("paint").length > 0"""
# before anything of a page runs: what its console says, and when it has its colours
WATCH = """
  window.courseWatched = { said: [], dressed: null };
  addEventListener("error", (one) => courseWatched.said.push(String(one.message)));
  const say = (...all) => courseWatched.said.push(all.join());
  Object.assign(console, { error: say, warn: say });
  const dress = () => {
    const theme = document.documentElement?.dataset.theme;
    if (["light", "dark"].includes(theme)) courseWatched.dressed ??= performance.now();
    else requestAnimationFrame(dress);
  };
  dress();
  addEventListener("DOMContentLoaded", dress);
"""
# letters of a line: the median of paragraphs that fill four or more; the last line is half full
LETTERS = """(() => {
  const height = (one) => one.getBoundingClientRect().height;
  const fit = (one) => height(one) / parseFloat(getComputedStyle(one).lineHeight);
  const long = [...document.querySelectorAll(".bd-article section > p")]
    .map((one) => [one, Math.round(fit(one))])
    .filter(([one, lines]) => lines >= 4 && !one.querySelector(".math"))
    .map(([one, lines]) => one.textContent.length / (lines - 0.5)).sort((a, b) => a - b);
  return long.length ? long[long.length >> 1] : null;
})()"""
SEEN = """JSON.stringify((() => {
  const all = (what) => [...document.querySelectorAll(what)];
  const ids = all("[id]").map((one) => one.id);
  const controls = all(".anywidget :is(input, select, textarea, button)");
  const article = document.querySelector(".bd-article") ?? document.body;
  const height = (one) => one.getBoundingClientRect().height;
  const tall = (what) => all(what).filter((one) => one.checkVisibility())
    .reduce((sum, one) => sum + height(one), 0);
  const first = document.querySelector(".bd-article .anywidget")?.getBoundingClientRect().top;
  const [paint] = performance.getEntriesByType("paint");
  const top = article.getBoundingClientRect().top;
  return {
    outside: performance.getEntriesByType("resource").map((one) => one.name)
      .filter((one) => !one.startsWith(location.origin)).length,
    said: courseWatched.said,
    bare: Math.max(0, (courseWatched.dressed ?? Infinity) - paint.startTime),
    noAlt: all("img:not([alt])").length,
    doubled: ids.length - new Set(ids).size,
    controls: controls.length,
    nameless: controls.filter((one) => !one.computedName).length,
    height: article.scrollHeight,
    code: tall(".bd-article .cell pre"),
    prose: tall(".bd-article section > :is(p, ul, ol)"),
    traps: all(".admonition.trap").length,
    letters: LETTERS,
    figure: first === undefined ? null : first - top,
  };
})())""".replace("LETTERS", LETTERS)
WIDER = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
AXE = """axe.run({ resultTypes: ["violations"] }).then((found) => {
  window.courseAxe = JSON.stringify(found.violations.map((one) => [one.id, one.nodes.length]));
}) && true"""
SCREEN = 900  # pixels


def broken_links(html: Path) -> tuple[int, int]:
    """How many links within the built book lead nowhere, and how many there are."""
    texts = {page.name: page.read_text(encoding="utf-8") for page in html.glob("*.html")}
    places = {name: set(re.findall(r'\bid="([^"]+)"', text)) for name, text in texts.items()}
    links = [
        (name, *link.partition("#")[::2])
        for name, text in texts.items()
        for link in re.findall(r'<a [^>]*href="([^":]*)"', text)
    ]
    broken = [
        (name, page, place)
        for name, page, place in links
        if not (html / unquote(page or name)).exists()
        or (place and (page or name) in places and unquote(place) not in places[page or name])
    ]
    return len(broken), len(links)


def span(values: list[float | None], form: str = "{:.0f}") -> str:
    """The least and the largest of some numbers; None is a page that has none."""
    known = [one for one in values if one is not None]
    return " to ".join(form.format(one) for one in (min(known), max(known))) if known else "-"


Rows = Iterator[tuple[str, str, str]]


def rows(window: Page, address: str, html: Path, axe: str) -> Rows:
    """Each finding: what it is, the review's number, and today's.

    Args:
        window: A browser's page; the browser has to be started with `COMPUTED`.
        address: Where the built book is served.
        html: The built book.
        axe: The text of axe-core's script, or "".
    """
    pages = sorted(f"{address}/{page.name}" for page in html.glob("*.html"))
    window.first = WATCH + WHOLE
    seen = {page: json.loads(window.show(page, LOADED, SEEN, 1440)) for page in pages}
    window.first = WHOLE
    yield from faults(list(seen.values()))
    yield "broken links and fragments", "0 of 2,702", "{} of {:,}".format(*broken_links(html))
    wider = [window.show_in(page, LOADED, WIDER, WIDTHS) for page in pages]
    over = " / ".join(str(sum(one[i] > 0 for one in wider)) for i in range(len(WIDTHS)))
    yield "pages wider than 320 / 360 / 768 / 1280 / 1920", "2 / 0 / 0 / 0 / 0", over
    window.first = ""
    found = first_hits(window, html)
    right = sum(leads(typed, found[typed]) for typed in FOUND)
    yield "searches whose first hit is right", "16 of 20", f"{right} of {len(FOUND)}"
    yield from reading([one for page, one in seen.items() if re.search(r"/\d\d_", page)])
    yield "axe: light, dark; 1280, 360", "1 rule, 11 nodes", by_axe(window, pages, axe)


def faults(seen: list[dict[str, Any]]) -> Rows:
    """What is wrong with no reader in mind, in all pages together."""

    def total(key: str) -> int:
        return sum(one[key] for one in seen)

    yield "pages", "19", str(len(seen))
    yield "outside requests", "0", str(total("outside"))
    yield "errors, warnings in the console", "0", str(sum(len(one["said"]) for one in seen))
    yield "pictures without alt, doubled ids", "0, 0", f"{total('noAlt')}, {total('doubled')}"
    named = f"{total('nameless')} of {total('controls')}"
    yield "controls of figures without a name", "23 of 59", named
    bare = max(one["bare"] for one in seen)
    yield "milliseconds painted without a theme", "900", f"{bare:.0f}"


def reading(chapters: list[dict[str, Any]]) -> Rows:
    """What a reader of a chapter meets, in a window 1440 wide."""
    code = span([100 * one["code"] / one["height"] for one in chapters])
    yield "code and output, % of a chapter's height", "28 to 42", code
    prose = span([100 * one["prose"] / one["height"] for one in chapters])
    yield "prose, % of a chapter's height", "13 to 20", prose
    letters = span([one["letters"] for one in chapters])
    yield "letters of a line, window of 1440", "93", letters
    traps = str(sum(one["traps"] for one in chapters[:10]))
    yield "boxes on errors, chapters 1 to 10", "80", traps
    screens = span([one["figure"] / SCREEN for one in chapters], "{:.1f}")
    yield "screens down to a chapter's first figure", "7 to 25", screens
    shares = [100 * one["figure"] / one["height"] for one in chapters]
    yield "... in % of the chapter, median", "81", f"{statistics.median(shares):.0f}"


def by_axe(window: Page, pages: list[str], axe: str) -> str:
    """What axe-core finds in two themes and two widths."""
    if not axe:
        return "not measured: --axe PATH of axe.min.js"
    found: dict[str, int] = {}
    for page in pages:
        for theme in ("light", "dark"):
            window.first = f"localStorage.mode = localStorage.theme = '{theme}'; {WHOLE} {axe}"
            until = f"{LOADED} && (window.courseAsked ??= {AXE}) && window.courseAxe"
            for width in (1280, 360):
                for rule, nodes in json.loads(window.show(page, until, "courseAxe", width)):
                    found[rule] = found.get(rule, 0) + nodes
    window.first = ""
    return f"{len(found)} rules, {sum(found.values())} nodes {' '.join(found)}".strip()

"""What each page of the book costs a reader: `python -m tests.site_table`.

A row a page, from a real browser on its first visit: requests, kilobytes as a server that
compresses sends them, elements, words for each picture, how far the layout shifts, and for how many
milliseconds the page cannot answer (total blocking time) on a processor four times as slow. The
last two are the machine's too; tests/test_book_browser.py holds the pages to the others.
"""

import gzip
import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tests.browsing import BROWSER, Page, browsing
from tests.serving import served

HTML = Path(__file__).parents[1] / "book" / "_build" / "html"
PACKED = {".woff", ".woff2", ".png", ".webp"}  # a server sends them as they are
STARTED = """(() => {
  if (window.courseSeen) return true;
  const seen = (window.courseSeen = { shift: 0, blocked: 0 });
  const each = (type, act) => new PerformanceObserver((list) => list.getEntries().forEach(act))
    .observe({ type, buffered: true });
  each("layout-shift", (one) => (seen.shift += one.hadRecentInput ? 0 : one.value));
  each("longtask", (one) => (seen.blocked += Math.max(0, one.duration - 50)));
  return true;
})()"""
LOADED = f"""{STARTED} && document.readyState === "complete" && document.fonts.status === "loaded"
  && performance.getEntriesByType("paint").length > 0"""
SEEN = """JSON.stringify({
  asked: performance.getEntriesByType("resource").map((one) => one.name),
  elements: document.querySelectorAll("*").length,
  words: document.querySelector("main").innerText.split(/\\s+/).length,
  pictures: document.querySelectorAll(
    ".bd-article :is(svg.drawn, figure img, .cell_output img, .anywidget, svg.translator-picture)"
  ).length,
  ...window.courseSeen,
})"""


@dataclass(frozen=True)
class Cost:
    """What a page costs."""

    requests: int
    kilobytes: float
    elements: int
    words: int
    pictures: int
    shift: float
    blocked: float  # milliseconds


def sent(path: Path) -> int:
    """Bytes that a server sends for a file."""
    raw = path.read_bytes()
    return len(raw) if path.suffix in PACKED else len(gzip.compress(raw, 6))


def cost(window: Page, address: str, page: Path) -> Cost:
    """Visit a page that is served at an address."""
    seen = json.loads(window.show(f"{address}/{page.name}", LOADED, SEEN))
    asked = {page, *(page.parent / unquote(urlsplit(one).path)[1:] for one in seen.pop("asked"))}
    return Cost(requests=len(asked), kilobytes=sum(map(sent, asked)) / 1000, **seen)


def row(one: Cost) -> str:
    """A row of the table, without the page's name."""
    rate = f"{one.words / one.pictures:.0f}" if one.pictures else "-"
    return (
        f"{one.requests:8}  {one.kilobytes:6.0f}  {one.elements:8}  {rate:>15}  "
        f"{one.shift:5.3f}  {one.blocked:10.0f} "
    )


def main() -> int:
    """Print the table; 2 if there is no browser or no book."""
    if BROWSER is None or not (HTML / "index.html").is_file():
        print("site_table: it needs Chromium and a built book (make book)", file=sys.stderr)
        return 2
    print("requests      kB  elements  words a picture  shift  blocked ms  page")
    with (
        served(HTML) as address,
        tempfile.TemporaryDirectory() as profile,
        browsing(Path(profile), {}) as window,
    ):
        window.slowness = 4
        for page in sorted(HTML.glob("*.html")):
            print(row(cost(window, address, page)), page.stem)
    return 0


if __name__ == "__main__":
    sys.exit(main())

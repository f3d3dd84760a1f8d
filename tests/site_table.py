"""The book as a site, when it was reviewed and now: `python -m tests.site_table [--axe PATH]`.

First the review's own table (tests/site_findings.py). Then a row a page, from a real browser on its
first visit: requests, kilobytes as a server that compresses sends them, elements, words of prose
for each picture, how far the layout shifts, and for how many milliseconds the page cannot answer
(total blocking time) on a processor four times as slow; in brackets what the review measured. The
last two are the machine's too; tests/test_book_browser.py holds the pages to the others.

PATH is axe-core's axe.min.js, which is no part of the project.
"""

import argparse
import gzip
import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tests.browsing import BROWSER, WHOLE, Page, browsing
from tests.serving import served
from tests.site_findings import COMPUTED, rows

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
SEEN = f"""(() => {{
  const seen = {{ ...window.courseSeen }}; // to lay out all of the page costs time, too
  {WHOLE}
  return JSON.stringify({{
    asked: performance.getEntriesByType("resource").map((one) => one.name),
    elements: document.querySelectorAll("*").length,
    words: [...document.querySelectorAll(".bd-article section > :is(p, ul, ol, dl, h2, h3)")]
      .map((one) => one.innerText.trim().split(/\\s+/).length).reduce((a, b) => a + b, 0),
    pictures: document.querySelectorAll(
      ".bd-article :is(svg.drawn, figure img, .cell_output img, .anywidget, .translator-picture)"
    ).length,
    ...seen,
  }});
}})()"""

# the review's numbers: requests, kilobytes, elements, shift and blocked milliseconds at 4x
BEFORE: dict[str, tuple[float, float, float | None, float | None, float | None]] = {
    "index": (31, 394, 387, 0.067, 0),
    "01_embedding": (39, 688, 7032, 0.034, 488),
    "02_positional_encoding": (40, 752, 11603, 0.029, 323),
    "03_attention": (43, 995, 10899, 0.040, 812),
    "04_multi_head_attention": (40, 819, 11387, 0.037, 795),
    "05_layer_norm": (41, 751, 10806, 0.007, 359),
    "06_encoder": (40, 751, 11424, 0.059, 505),
    "07_decoder": (40, 814, 7738, 0.010, 540),
    "08_teacher_forcing": (37, 622, 9186, 0.071, 550),
    "09_inference": (39, 676, 5966, 0.020, 539),
    "10_full_model": (37, 737, 6420, 0.027, 882),
    "training": (33, 570, 3253, 0.086, 1144),
    "coverage": (0, 405, 4780, 0.055, 336),
}


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


def row(one: Cost, page: str) -> str:
    """A row of the table; in brackets what the review measured of the page."""
    before = BEFORE.get(page)
    old = [f"({value:g})" if value else "" for value in before] if before else [""] * 5
    rate = f"{one.words / one.pictures:.0f}" if one.pictures else "-"
    cells = (
        (f"{one.requests}", old[0], 5, 5),
        (f"{one.kilobytes:.0f}", old[1], 4, 6),
        (f"{one.elements}", old[2], 6, 8),
        (rate, "", 15, 0),
        (f"{one.shift:.3f}", old[3], 6, 8),
        (f"{one.blocked:.0f}", old[4], 8, 7),
    )
    return " ".join(f"{now:>{wide}} {then:>{room}}" for now, then, wide, room in cells) + f" {page}"


def main() -> int:
    """Print both tables; 2 if there is no browser or no book."""
    parser = argparse.ArgumentParser(prog="python -m tests.site_table", description=__doc__)
    parser.add_argument("--axe", type=Path, help="axe-core's axe.min.js")
    given = parser.parse_args()
    if BROWSER is None or not (HTML / "index.html").is_file():
        print("site_table: it needs Chromium and a built book (make book)", file=sys.stderr)
        return 2
    axe = given.axe.read_text(encoding="utf-8") if given.axe else ""
    with (
        served(HTML) as address,
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile,
        browsing(Path(profile), {}, COMPUTED) as window,
    ):
        for what, then, now in rows(window, address, HTML, axe):
            print(f"{what:50} {then:>18}  {now}", flush=True)
    print("\nrequests          kB        elements words a picture   shift         blocked ms  page")
    with (
        served(HTML) as address,
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile,
        browsing(Path(profile), {}) as window,
    ):
        window.slowness = 4
        for page in sorted(HTML.glob("*.html")):
            print(row(cost(window, address, page), page.stem), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

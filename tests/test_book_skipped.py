"""What is off the screen is not laid out, no script asks for its size, and links still land."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.book_code import polish
from tests.browsing import BROWSER, WHOLE, Page
from tests.conftest import ROOT
from tests.serving import served
from tests.test_book import CHAPTERS

SECTIONS = 30
LONG = "wide " * 60
PART = f"""<section id=s%d><h2>Part</h2><p>Text</p><pre>{LONG}</pre>
<div class=pst-scrollable-table-container><table class=table><thead><tr><th>a</th><th>b</th></tr>
</thead><tbody><tr><td>{"x" * 80}</td><td>{"y" * 80}</td></tr></tbody></table></div>
<div style="height: 900px"></div></section>"""
PAGE = f"""<!doctype html><html data-theme=light><meta charset=utf-8><title>A page</title>
<meta name=viewport content="width=device-width"><link rel=stylesheet href=course.css>
<style>:is(pre, div) {{ max-width: 100%; overflow: auto }}</style><script src=course.js></script>
<body><div class=bd-article><section id=top><h1>Title</h1>
{"".join(PART % i for i in range(SECTIONS))}</section></div>
"""
# parts of the article that a script asks for their size while they are skipped, which lays them out
WATCH = """
window.courseAsked = [];
const laid = (one) => !one.closest(".bd-article") || !one.checkVisibility()
  || one.checkVisibility({ contentVisibilityAuto: true });
const look = (one) => laid(one) || courseAsked.push(one.outerHTML.slice(0, 80));
for (const name of ["scrollWidth", "scrollHeight", "clientWidth", "clientHeight"]) {
  const { get } = Object.getOwnPropertyDescriptor(Element.prototype, name);
  Object.defineProperty(Element.prototype, name, { get() { look(this); return get.call(this); } });
}
for (const name of ["offsetWidth", "offsetHeight", "offsetTop", "offsetLeft"]) {
  const { get } = Object.getOwnPropertyDescriptor(HTMLElement.prototype, name);
  Object.defineProperty(HTMLElement.prototype, name,
    { get() { look(this); return get.call(this); } });
}
for (const name of ["getBoundingClientRect", "getClientRects"]) {
  const asked = Element.prototype[name];
  Element.prototype[name] = function () { look(this); return asked.call(this); };
}
"""
# ... and a second more, in which the frames after loading are drawn
READY = """document.readyState == 'complete' && document.fonts.status == 'loaded'
  && (window.courseSince ??= performance.now()) + 1000 < performance.now()"""
SKIPPED = """[...document.querySelectorAll(".bd-article section section")]
  .filter((one) => !one.firstElementChild.checkVisibility({ contentVisibilityAuto: true }))"""
ALL = "document.querySelectorAll('.bd-article section section').length"
ASKED = f"JSON.stringify([courseAsked, {SKIPPED}.length, {ALL}])"
AT = "document.getElementById('{}').getBoundingClientRect().top"

pytestmark = pytest.mark.skipif(BROWSER is None, reason="no chromium on this machine")


@pytest.fixture
def address(tmp_path: Path) -> str:
    """A long page with the book's own script and style sheet."""
    for name in ("course.js", "course.css"):
        (tmp_path / name).symlink_to(ROOT / "book" / "_static" / name)
    (tmp_path / "page.html").write_text(PAGE, encoding="utf-8")
    return (tmp_path / "page.html").as_uri()


@pytest.fixture
def watched(window: Page) -> Iterator[Page]:
    """A page that notes what its scripts ask of what is not laid out."""
    window.first = WATCH
    yield window
    window.first = ""


@pytest.mark.parametrize("width", [390, 1280])
def test_the_books_script_measures_nothing_that_is_off_the_screen(
    width: int, address: str, watched: Page
):
    asked, skipped, of = json.loads(watched.show(address, READY, ASKED, width))
    assert of == SECTIONS
    assert skipped > SECTIONS / 2
    assert asked == []


def test_what_comes_near_is_marked(address: str, window: Page):
    """Far below, where nothing was laid out: a stop with a name, a table row by row."""
    far = f"document.getElementById('s{SECTIONS - 3}')"
    go = f"(window.gone ??= ({far}.scrollIntoView(), true))"
    until = f"{READY} && {go} && {far}.querySelector('pre').tabIndex === 0"
    told = f"""[{far}.querySelector("pre").ariaLabel, {far}.querySelector(".row-by-row") !== null,
      document.querySelector("#s{SECTIONS // 2} .row-by-row") !== null].join()"""
    assert window.show(address, until, told, 390) == "Code, scrolls sideways,true,false"


# what is to be drawn next waits half a second, as on a busy machine
LATE = """
const soon = requestAnimationFrame;
window.requestAnimationFrame = (act) => setTimeout(() => soon(act), 500);
"""


def test_what_has_gone_off_the_screen_before_its_turn_is_marked_when_it_comes_back(
    address: str, watched: Page
):
    far = f"document.getElementById('s{SECTIONS - 3}')"
    marked = f"{far}.querySelector('pre').tabIndex === 0"
    near = f"{far}.querySelector('pre').checkVisibility({{ contentVisibilityAuto: true }})"
    watched.first = LATE + WATCH
    glance = f"""{far}.scrollIntoView(); soon(() => soon(() => soon(() => {{
      window.courseNear = {near};
      scrollTo(0, 0);
    }})))"""
    watched.walk(
        address,
        [
            ("", READY),
            (glance, f"window.courseNear && !{near}"),
            ("window.courseSince = performance.now()", READY),
            ("window.courseThen = JSON.stringify(courseAsked)", f"courseThen === '[]' && !{near}"),
            (f"{far}.scrollIntoView()", marked),
        ],
        390,
    )


def test_a_page_can_be_asked_as_a_whole(address: str, window: Page):
    window.first = WHOLE
    try:
        assert window.show(address, READY, f"{SKIPPED}.length") == 0
    finally:
        window.first = ""


def test_paper_has_all_of_it(address: str):
    style = (ROOT / "book" / "_static" / "course.css").read_text("utf-8")
    (block,) = re.findall(r"@supports \(content-visibility[^{]*\{\s*@media (\w+)", style)
    assert block == "screen"
    assert style.count("content-visibility: auto") == 2, "asked for, and used, once"


@pytest.mark.parametrize("page", CHAPTERS)
def test_no_script_of_a_chapter_measures_what_is_off_the_screen(
    page: str, book_html: Path, watched: Page
):
    until = f"{READY} && !document.querySelector('.anywidget-fallback')"
    address = (book_html / f"{page}.html").as_uri()
    asked, skipped, of = json.loads(watched.show(address, until, ASKED))
    assert asked == []
    assert skipped > of / 2


def test_a_figure_that_computes_long_does_not_hold_its_page_up(book_html: Path, window: Page):
    drawn = "document.querySelector('.dep-both') !== null"
    loaded = f"() => {{ window.courseDrawn = {drawn}; }}"
    window.first = f"document.addEventListener('DOMContentLoaded', {loaded})"
    try:
        address = (book_html / "05_layer_norm.html").as_uri()
        assert window.show(address, f"{READY} && {drawn}", "courseDrawn") is False
    finally:
        window.first = ""


def test_a_link_lands_where_it_leads_and_the_contents_follow(book_html: Path, window: Page):
    current = "document.querySelector('.bd-sidebar-secondary .nav-link.active')"
    with served(book_html) as address:
        for width, name in [(1280, "causal-mask"), (1280, "check-yourself"), (390, "causal-mask")]:
            told = f"JSON.stringify([{AT.format(name)}, {current}?.getAttribute('href')])"
            page = f"{address}/03_attention.html?{width}#{name}"
            top, active = json.loads(window.show(page, READY, told, width))
            assert 0 <= top < 100
            assert active.removeprefix("#").endswith(name)


LOADED = "document.readyState === 'complete' && document.fonts.status === 'loaded'"
ANEW = f"!window.coursePassed && {LOADED}"


def seen(name: str) -> str:
    """Whether the heading of a section stands at the top of the window, or all below it in it."""
    at = AT.format(name)
    end = "Math.ceil(scrollY + innerHeight) >= document.documentElement.scrollHeight"
    return f"{at} >= 0 && ({at} < 200 || {end} && {at} < innerHeight)"


def leaving(act: str) -> str:
    """Something that leads to another page, or to this one anew."""
    return f"window.coursePassed = true; {act}"


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize(
    ("page", "deep", "other"),
    [
        ("03_attention", "where-it-goes-wrong", "which-axis-sums-to-1"),
        ("03_attention", "sources", "causal-mask"),
        ("relative_positions", "today", "none-at-all"),
        ("report", "what-it-contains", "encoder"),
        ("trust", "what-is-left", "around-the-sandbox"),
    ],
)
def test_a_heading_stays_found(
    page: str, deep: str, other: str, width: int, book_html: Path, window: Page
):
    """From another page, again, within the page, and there and back in the browser's history."""
    with served(book_html) as address:
        steps = [
            ("", f"{LOADED} && {seen(deep)}"),
            (leaving("location.reload()"), f"{ANEW} && {seen(deep)}"),
            (f"location.hash = '{other}'", seen(other)),
            ("history.back()", f"location.hash === '#{deep}' && {seen(deep)}"),
            ("history.forward()", f"location.hash === '#{other}' && {seen(other)}"),
            ("history.back()", f"location.hash === '#{deep}' && {seen(deep)}"),
            (leaving("location.href = 'index.html'"), f"{LOADED} && !location.hash"),
            ("history.back()", f"{LOADED} && location.hash === '#{deep}' && {seen(deep)}"),
        ]
        window.walk(f"{address}/{page}.html#{deep}", steps, width)


def test_what_is_passed_on_the_way_to_a_heading_is_no_place_to_come_back_to(
    book_html: Path, window: Page
):
    """On a busy machine the way takes long, and somebody may go on before it has ended."""
    stop = "window.paint = requestAnimationFrame; window.requestAnimationFrame = () => 0"
    with served(book_html) as address:
        steps = [
            ("", f"{LOADED} && {seen('sources')}"),
            (f"{stop}; location.hash = 'causal-mask'", seen("causal-mask")),
            ("scrollTo({ top: 0, behavior: 'instant' })", "history.state?.place === null"),
            ("window.requestAnimationFrame = paint", "scrollY === 0"),
            ("history.back()", f"location.hash === '#sources' && {seen('sources')}"),
            ("history.forward()", f"location.hash === '#causal-mask' && {seen('causal-mask')}"),
        ]
        window.walk(f"{address}/03_attention.html#sources", steps)


@pytest.mark.parametrize("width", [1280, 390])
def test_a_reader_goes_on_where_they_were(width: int, book_html: Path, window: Page):
    """Without a # in the address, in the middle of a section."""
    at = AT.format("causal-mask")
    scroll = "document.getElementById('causal-mask').scrollIntoView()"
    there = f"Math.abs({at} + 300) < 5"
    with served(book_html) as address:
        steps = [
            ("", LOADED),
            (scroll, seen("causal-mask")),
            (
                f"scrollBy(0, {at} + 300)",
                f"{there} && history.state?.place?.section === 'the-causal-mask'",
            ),
            (leaving("location.reload()"), f"{ANEW} && {there}"),
            (leaving("location.href = 'index.html'"), f"{ANEW} && scrollY === 0"),
            ("history.back()", f"{LOADED} && {there}"),
        ]
        window.walk(f"{address}/03_attention.html", steps, width)


def test_a_chapter_that_was_read_to_its_end_is_marked(book_html: Path, window: Page):
    marked = "[...document.querySelectorAll('.chapter-read')].length === 1"
    read = "JSON.parse(localStorage.getItem('course-reading') ?? '{}').read"
    hide = "dispatchEvent(new Event('pagehide'))"
    with served(book_html) as address:
        half = "document.getElementById('causal-mask').scrollIntoView()"
        last = "location.hash = 'sources'"
        steps = [
            ("", LOADED),
            (half, seen("causal-mask")),
            (hide, f"{read}?.length === 0"),
            (last, seen("sources")),
            (hide, f"{read}?.length === 1"),
            ("location.href = 'index.html'", f"{LOADED} && {marked}"),
        ]
        window.walk(f"{address}/03_attention.html", steps)


def test_the_theme_leaves_measuring_to_the_book(book_html: Path):
    wide, tall = "e.scrollWidth>e.clientWidth", "e.scrollHeight>e.clientHeight"
    script = f"boxes.forEach(e=>{{e.tabIndex={wide}||{tall}?0:-1}})"
    assert polish.MEASURING.sub("", script) == "boxes.forEach(e=>{})"
    theme = book_html / "_static" / "scripts" / "pydata-sphinx-theme.js"
    assert "scrollWidth" not in theme.read_text(encoding="utf-8")

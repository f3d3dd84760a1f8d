"""The book in a real browser, opened as files, with every other host out of reach."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from bs4 import BeautifulSoup, Tag

from tests.browsing import BROWSER, WHOLE, Page, browsing
from tests.conftest import ROOT
from tests.searching import FOUND, first_hits, leads
from tests.serving import served
from tests.site_findings import LETTERS
from tests.site_table import cost
from tests.test_book import CHAPTERS, LISTED

EXPLORERS = [
    page for page in LISTED if "{anywidget}" in (ROOT / "book" / f"{page}.md").read_text("utf-8")
]
CHATTER = ("[PST]:", "[togglebutton]:")  # the theme's notes on its own work

LABELABLE = ("button", "input", "meter", "output", "progress", "select", "textarea")

LAID_OUT = "document.readyState == 'complete' && document.fonts.status == 'loaded'"
# what begins a line and belongs to the formula before it; parts of formulas are boxes
FORSAKEN = """[...document.querySelectorAll(".bd-article span.math")].filter((formula) => {
  const text = formula.nextSibling;
  if (text?.nodeType !== Node.TEXT_NODE || !/^[.,;:!?)\\]’”]/.test(text.data)) return false;
  const sign = document.createRange();
  sign.setStart(text, 0);
  sign.setEnd(text, 1);
  const [at] = sign.getClientRects();
  const last = [...formula.querySelectorAll(".base")].at(-1).getBoundingClientRect();
  return at && at.left < last.right - 3;
}).map((formula) => formula.parentElement.textContent.slice(0, 80))"""
OUTSIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
# folds are opened, and in each width some frames drawn, in which the page lays out and marks itself
OPENED = """(() => {
  const drawn = (left) => requestAnimationFrame(() => {
    if (left) drawn(left - 1);
    else window.ready = innerWidth;
  });
  if (window.asked !== innerWidth) {
    window.asked = innerWidth;
    for (const fold of document.querySelectorAll(".bd-article details:not([open])")) {
      fold.open = fold.dataset.closed = true;
    }
    drawn(4);
  }
  return window.ready === innerWidth;
})()"""
# what has to be scrolled sideways, in folds, too; fields that one writes in and whole figures apart
SCROLLED = """(() => {
  const found = [...document.querySelectorAll(".bd-article *")].filter((one) =>
    one.scrollWidth > one.clientWidth + 1 && !one.matches("input, textarea, select, .anywidget")
    && /auto|scroll/.test(getComputedStyle(one).overflowX));
  for (const fold of document.querySelectorAll("[data-closed]")) {
    fold.open = false;
    delete fold.dataset.closed;
  }
  return found.map((one) => one.outerHTML.slice(0, 80));
})()"""
CUT = """[...document.querySelectorAll(".prev-next-area a")]
  .filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.textContent)"""
TALL = """[...document.querySelectorAll("svg.drawn")].map((one) => one.clientHeight)
  .filter((height) => innerWidth > 767 && height > 0.86 * innerHeight)"""
NAMELESS = """[...document.querySelectorAll(".bd-article [tabindex='0']")]
  .filter((one) => !one.role || !one.ariaLabel).map((one) => one.outerHTML.slice(0, 80))"""

# how far a figure is wider than its frame; parts that scroll by themselves are not
WIDER = """JSON.stringify([...document.querySelectorAll(".anywidget:not(.translator)")]
  .map((host) => host.scrollWidth - host.clientWidth))"""
TOUCHED = ".bd-article :is(summary, button, select, input), .genindex-jumpbox a"
SMALL = f"""[...document.querySelectorAll("{TOUCHED}")].filter((one) => {{
  const box = one.getBoundingClientRect();
  const seen = box.width > 0 && one.checkVisibility() && !one.closest("label");
  return seen && Math.min(box.width, box.height) < 23.5;
}}).map((one) => one.outerHTML.slice(0, 80))"""

DOM = "document.documentElement.outerHTML"
# a <word> that was to be read and became an element, of which nothing is seen
UNKNOWN = """[...document.querySelectorAll("*")].filter((one) => one instanceof HTMLUnknownElement)
  .map((one) => one.localName)"""

pytestmark = pytest.mark.skipif(BROWSER is None, reason="no chromium on this machine")


@pytest.fixture
def whole(window: Page) -> Iterator[Page]:
    """The same, with all of a page laid out, which else is skipped off the screen."""
    window.first = WHOLE
    yield window
    window.first = ""


@dataclass(frozen=True)
class Visit:
    """A page as the browser built it, and what was seen of it."""

    dom: BeautifulSoup
    console: list[str]  # what it complained of
    unknown: list[str]  # elements that HTML does not have; see UNKNOWN
    wider: dict[int, list[int]]  # in windows so wide; see WIDER


class Visits:
    """A browser for all pages of the book, each opened once, for everything that is asked of it."""

    def __init__(self, html: Path, window: Page) -> None:
        self._html, self.window = html, window
        self._done: dict[str, Visit] = {}

    def __call__(self, page: str, query: str = "") -> Visit:
        """A page of the book, when five seconds of its own time have passed."""
        if page + query not in self._done:
            address = (self._html / f"{page}.html").as_uri() + query
            widths = [320, 768, 1920] if page in EXPLORERS else []
            unknown = f"JSON.stringify({UNKNOWN})"
            asked = [(360, DOM), (360, unknown), *((width, WIDER) for width in widths)]
            said, (dom, unknown, *wider) = self.window.look(address, asked)
            console = [line for line in said if not line.startswith(CHATTER)]
            told = dict(zip(widths, map(json.loads, wider), strict=True))
            shown = BeautifulSoup(dom, "html.parser")
            self._done[page + query] = Visit(shown, console, json.loads(unknown), told)
        return self._done[page + query]


@pytest.fixture(scope="module")
def visits(book_html: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visits]:
    """The book's pages in a browser of their own."""
    with browsing(tmp_path_factory.mktemp("visits"), {}) as page:
        page.first = WHOLE
        yield Visits(book_html, page)


COMPLAINING = """<!doctype html><meta charset=utf-8><script>
console.log("[PST]: a note"); console.error("one that is written", 1); Promise.reject(Error("two"));
setTimeout(() => console.warn("three, late"), 4900);</script>
<script>throw Error("four");</script><script src=five.js></script>"""


def test_whatever_a_page_complains_of_is_heard(tmp_path: Path, visits: Visits):
    (tmp_path / "page.html").write_text(COMPLAINING, encoding="utf-8")
    (tmp_path / "next.html").write_text("<!doctype html><p>Well", encoding="utf-8")
    said, _ = visits.window.look((tmp_path / "page.html").as_uri(), [(800, "1")])
    assert sum(line.startswith(CHATTER) for line in said) == 1 and len(said) == 6
    for words in ("one that is written 1", "two", "three, late", "four", "five.js"):
        assert words in "\n".join(said)
    assert visits.window.look((tmp_path / "next.html").as_uri(), [(800, "1")]) == ([], [1])


@pytest.mark.parametrize("page", LISTED)
def test_a_page_opens_from_the_file_system_without_complaint(page: str, visits: Visits):
    visit = visits(page)
    assert not visit.console
    assert visit.unknown == [], "write it as code: `<word>`"
    assert visit.dom.select("article h1")


def nameless(host: Tag) -> list[str]:
    """The controls of a figure that no label, text or aria-label gives a name."""
    return [
        str(control)
        for control in host.select("input, select, button")
        if not (
            control.get("aria-label")
            or control.get("aria-labelledby")
            or control.find_parent("label")
            or (control.get("id") and host.find("label", attrs={"for": control["id"]}))
            or (control.name == "button" and control.get_text(strip=True))
        )
    ]


@pytest.mark.parametrize(
    ("html", "named"),
    [
        ('<input type="range">', False),
        ('<label>Scores <input type="range"></label>', True),
        ('<label for="a">Scores</label><input id="a">', True),
        ('<input aria-label="Scores">', True),
        ("<button></button>", False),
        ("<button>Next</button>", True),
    ],
)
def test_a_control_without_a_name_is_found(html: str, named: bool):
    assert bool(nameless(BeautifulSoup(html, "html.parser"))) is not named


@pytest.mark.parametrize("page", EXPLORERS)
def test_the_interactive_figures_are_drawn(page: str, visits: Visits):
    hosts = visits(page).dom.select(".anywidget")
    assert hosts
    for host in hosts:
        assert not host.select(".anywidget-fallback"), "render() has drawn nothing"
        assert host.select("input, button, select"), "nothing to touch"
        assert host.select("table, svg, ol"), "nothing to see: a table, an svg or a list"
        assert host.select("[aria-live], output"), "changes are not announced: aria-live"
        assert not nameless(host), "give it a label, or an aria-label"


def test_the_figures_are_one_family():
    """One frame with one title and one live region; the page's colours and no other."""
    for path in sorted((ROOT / "book" / "explorers").glob("[0-9]*.mjs")):
        text = path.read_text("utf-8")
        assert len(re.findall(r"\bframe\(", text)) == 1, path.name
        assert "aria-live" not in text and "<output" not in text, path.name
        assert not re.findall(r"#[0-9a-f]{3,8}\b|rgba?\(\d", text), path.name


@pytest.mark.parametrize("page", EXPLORERS)
def test_a_figure_fits_its_frame(page: str, visits: Visits):
    assert visits(page).dom.select(".anywidget .fig")
    for width in (320, 768, 1920):
        assert all(one <= 0 for one in visits(page).wider[width])


# what a reader does with a figure, and what it then says; ACT is a row's own part
DRIVE = """(() => {
  const fig = document.querySelector(".anywidget .fig");
  const control = (name) => [...fig.querySelectorAll("label")]
    .find((one) => one.textContent.startsWith(name)).querySelector("input, select, textarea");
  const set = (name, value) => {
    const one = control(name);
    one.value = value;
    for (const kind of ["input", "change"]) one.dispatchEvent(new Event(kind));
  };
  const key = (name) => fig.querySelector(".at-plane")
    .dispatchEvent(new KeyboardEvent("keydown", { key: name }));
  ACT
  return fig.querySelector(".fig-said").textContent;
})()"""
ANSWERS = [
    ("01_embedding", "", "22 of 24 entries are real, 2 are padding"),
    ("01_embedding", 'set("max_len", 6);', "0 are padding. Words lost: 4."),
    ("03_attention", 'set("temperature", 2);', "with 0.56"),
    ("03_attention", 'for (let i = 0; i < 3; i += 1) key("ArrowLeft");', "Query (1.0, 1.5)"),
    ("04_multi_head_attention", "", "3 of 3 heads noticed"),
    ("04_multi_head_attention", 'set("order", "slices");', "1 of 3 heads noticed"),
    ("04_multi_head_attention", 'set("heads", 4);', "4 cannot share 6 columns evenly"),
    ("05_layer_norm", "", "with 3 others: mean 2.50, variance 1.25"),
    ("05_layer_norm", 'set("norm", "batch");', "shares its mean with 5 others"),
    ("06_encoder", "", "moved: 0 after layer 1, 4 after layer 2"),
    ("06_encoder", 'set("padding is", "all");', "0 after layer 6"),
    ("07_decoder", 'set("layers", 3);', "But Je, vis and à reach it too"),
    ("07_decoder", 'set("layers", 4);', "But Je, vis, à and Paris reach it too"),
    ("07_decoder", 'set("layers", 1);', "After 1 layer 4 of 5 rows see the future."),
    ("15_reformer", 'set("length of a chunk", 5);', "In round 1, in 3 chunks of 5, token 11"),
    ("08_teacher_forcing", "", "of which smoothing adds 0.268. Mean over 5 places"),
    ("09_inference", "", "Best finished: J' habite, score"),
    ("09_inference", 'set("length penalty", 0.2);', "Best finished: J' habite, score"),
    ("09_inference", 'set("length penalty", 0.3);', "Best finished: J' habite à Paris, score"),
    ("09_inference", 'set("beam size", 1);', "Best finished: Je vis à Paris, score"),
    ("10_full_model", "", "All attentions: 18,874,368. Embeddings and output: 18,944,000."),
    ("11_your_translator", "", "stops at record 7; the weights of record 3 are kept"),
    ("11_your_translator", 'set("patience", 5);', "the weights of record 9 are kept"),
    ("12_language_model", 'set("top-p", 0.75);', "3 of 8 words"),
    ("12_language_model", 'set("top-p", 0.75); set("temperature", 2);', "4 of 8 words"),
]


@pytest.mark.parametrize(("page", "act", "says"), ANSWERS)
def test_a_figure_says_what_its_answer_says(
    page: str, act: str, says: str, book_html: Path, window: Page
):
    address = (book_html / f"{page}.html").as_uri()
    drawn = "document.querySelector('.anywidget .fig')"
    assert says in window.show(address, drawn, DRIVE.replace("ACT", act))


def test_chapter_5_says_what_the_stack_of_random_layers_does(book_html: Path, window: Page):
    said = "document.querySelector('.fig:has(.dep-both) .fig-said').textContent"
    address = (book_html / "05_layer_norm.html").as_uri()
    told = window.show(address, "document.querySelector('.dep-both')", said)
    assert "added size above 100, alike 1.00; post-norm size 1.00, alike 1.00" in told
    assert told.endswith("alike 0.88.")


SECOND = [  # figures that are not their page's first: a part of theirs, what is done, what is said
    ("08_teacher_forcing", ".war-picture", "", "The peak is 0.00099, at step 2,000."),
    (
        "08_teacher_forcing",
        ".war-picture",
        'set("warm-up", 8000);',
        "The peak is 0.00049, at step 8,000. At step 20,000 the rate is 0.00031.",
    ),
    ("09_inference", ".ble-picture", "", "quadruples 1 of 5; brevity penalty 1.00: BLEU 50.0."),
    ("09_inference", ".ble-picture", 'press("milk for water");', "BLEU 84.1."),
    ("09_inference", ".ble-picture", 'press("two words");', "quadruples 0 of 5"),
    ("09_inference", ".ble-picture", 'set("translation", "");', "Words 0 of 0"),
]


@pytest.mark.parametrize(("page", "part", "act", "says"), SECOND)
def test_a_second_figure_says_what_its_answer_says(
    page: str, part: str, act: str, says: str, book_html: Path, window: Page
):
    press = """const press = (name) => [...fig.querySelectorAll("button")]
      .find((one) => one.textContent === name).click();"""
    drive = DRIVE.replace(".anywidget .fig", f".fig:has({part})").replace("ACT", press + act)
    address = (book_html / f"{page}.html").as_uri()
    assert says in window.show(address, f"document.querySelector('{part} svg')", drive)


def test_beam_search_is_a_tree_that_grows(book_html: Path, window: Page):
    act = """(() => {
      const seen = [];
      const count = (kind) => document.querySelectorAll(`.bs-tree .${kind} .bs-word`).length;
      const look = () => ["bs-live", "bs-dropped", "bs-finished"].map(count);
      const press = (name) => [...document.querySelectorAll(".fig button")]
        .find((one) => one.textContent === name).click();
      press("Start again");
      for (let step = 0; step < 3; step += 1) { seen.push(look()); press("Next step"); }
      return JSON.stringify([...seen, look()]);
    })()"""
    address = (book_html / "09_inference.html").as_uri()
    drawn = "document.querySelector('.bs-tree svg')"
    grown = [[1, 0, 0], [3, 1, 0], [5, 4, 0], [6, 8, 1]]
    assert json.loads(window.show(address, drawn, act)) == grown


def test_every_chapter_has_an_interactive_figure():
    assert set(CHAPTERS) <= set(EXPLORERS)


def test_search_finds_a_chapter_from_the_file_system(visits: Visits):
    visit = visits("search", "?q=softmax")
    assert not visit.console
    found = " ".join(str(link.get("href")) for link in visit.dom.select("ul.search a"))
    assert "03_attention.html" in found


def test_search_finds_the_section_that_treats_a_word(book_html: Path, window: Page):
    """Twenty words of a first review and twenty more."""
    assert len(FOUND) >= 40
    found = first_hits(window, book_html)
    assert [f"{typed}: {found[typed]}" for typed in FOUND if not leads(typed, found[typed])] == []


def test_what_a_search_quotes_is_text_that_fits(book_html: Path, window: Page):
    quoted = "[...document.querySelectorAll('ul.search p.context')]"
    section = "document.querySelector('ul.search a[href*=\"#\"] ~ p.context').dataset.section"
    found = f"JSON.stringify([{OUTSIDE}, {quoted}.map((one) => one.textContent), {section}])"
    whole = "document.querySelector('.search-summary')?.textContent"
    all_there = f"{whole} && {quoted}.length === document.querySelectorAll('ul.search li').length"
    with served(book_html) as address:
        page = f"{address}/search.html?q=softmax"
        outside, texts, section = json.loads(window.show(page, all_there, found, 360))
    assert outside <= 0
    assert section == "The softmax, with care" and not texts[0].startswith(section)
    assert len(texts) > 20
    marked = [one for one in texts if "\\" in one or "Show the code" in one]
    assert marked == [], "a formula is quoted as it was typed, or a fold by its name"


def labels(control: Tag) -> list[Tag]:
    """The labels of a control, by HTML's rule: a label around several names the first."""
    around = [label for label in control.find_parents("label") if label.find(LABELABLE) is control]
    return [*around, *control.find_parents("body")[0].select(f'label[for="{control.get("id")}"]')]


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_control_of_a_figure_has_a_name(chapter: str, visits: Visits):
    dom = visits(chapter).dom
    nameless = [
        str(control)
        for control in dom.select(".anywidget :is(input, select, textarea)")
        if not control.get("aria-label") and not labels(control)
    ]
    assert nameless == []


def test_a_button_keeps_the_keyboard_when_it_can_do_no_more(book_html: Path, whole: Page):
    press = """(() => {
      const all = [...document.querySelectorAll(".anywidget button")];
      const button = all.find((one) => one.textContent === "To the end");
      button.focus();
      button.click();
      return [document.activeElement === button, button.getAttribute("aria-disabled")].join();
    })()"""
    drawn = """[...document.querySelectorAll(".anywidget button")]
      .some((one) => one.textContent === "To the end")"""
    address = (book_html / "09_inference.html").as_uri()
    assert whole.show(address, drawn, press) == "true,true"


@pytest.mark.parametrize("page", [*LISTED, "genindex"])
def test_a_page_fits_its_window(page: str, book_html: Path, whole: Page):
    parts = (OUTSIDE, FORSAKEN, SCROLLED, SMALL, NAMELESS, TALL, CUT)
    seen = f"JSON.stringify([{', '.join(parts)}])"
    address = (book_html / f"{page}.html").as_uri()
    widths, until = (360, 1280), f"{LAID_OUT} && {OPENED}"
    for width, found in zip(widths, whole.show_in(address, until, seen, widths), strict=True):
        outside, forsaken, scrolled, small, unnamed, tall, cut = json.loads(found)
        assert outside <= 0, f"the page is wider than its window of {width}"
        assert forsaken == [], f"a line begins with what follows a formula, {width} wide"
        tables = [one for one in scrolled if "pst-scrollable-table" in one]
        assert (tables if width < 1280 else scrolled) == [], "what does not fit has to be scrolled"
        assert cut == [], "the way to a next page is cut off"
        assert tall == [], "a picture is taller than the window"
        assert unnamed == [], "a stop for the keyboard has no name or role"
        assert small == [], "what is pressed has less than 24 pixels"


def test_a_line_is_as_long_as_one_reads_well(book_html: Path, whole: Page):
    """In letters, the median of paragraphs that fill four lines or more."""
    for page in ("03_attention", "09_inference", "handbook", "trust"):
        address = (book_html / f"{page}.html").as_uri()
        for found in whole.show_in(address, LAID_OUT, LETTERS, (1280, 1440, 1920)):
            assert 66 <= found <= 80, page


def test_a_picture_follows_the_theme(book_html: Path, window: Page):
    """Its letters are dark on a light page and light on a dark one; so is the page behind it."""
    colors = """
        (() => {
            const { dataset } = document.documentElement;
            const ink = getComputedStyle(document.querySelector("svg.drawn text"));
            const paper = getComputedStyle(document.body);
            return JSON.stringify(["light", "dark"].map((theme) => {
                dataset.theme = theme;
                return [ink.fill, paper.backgroundColor];
            }));
        })()
    """
    address = (book_html / "03_attention.html").as_uri()
    shown = window.show(address, "document.querySelector('svg.drawn')", colors)
    light, dark = json.loads(shown)
    assert light == ["rgb(28, 33, 38)", "rgb(255, 255, 255)"]
    assert dark == ["rgb(230, 232, 238)", "rgb(20, 22, 29)"]


def test_paper_is_light_and_shows_what_is_folded_and_the_screen_is_as_before(
    book_html: Path, window: Page
):
    counted = """(() => {
      const { dataset } = document.documentElement;
      dataset.theme = "dark";
      const folded = () => document.querySelectorAll("details:not(.hide, [open])").length;
      const before = folded();
      window.dispatchEvent(new Event("beforeprint"));
      const printed = [folded(), dataset.theme];
      window.dispatchEvent(new Event("afterprint"));
      return [before > 0, ...printed, folded() === before, dataset.theme].join();
    })()"""
    address = (book_html / "03_attention.html").as_uri()
    assert window.show(address, LAID_OUT, counted) == "true,0,light,true,dark"


def test_the_first_page_knows_where_a_reader_was(book_html: Path, window: Page):
    leave = """(() => {
      document.getElementById("causal-mask").scrollIntoView();
      window.dispatchEvent(new Event("pagehide"));
      return localStorage.getItem("course-reading");
    })()"""
    window.show((book_html / "03_attention.html").as_uri(), LAID_OUT, leave)
    last = "document.querySelector('.front-doors a:nth-of-type(3)')"
    link = f"JSON.stringify([{last}.getAttribute('href'), {last}.textContent])"
    front = (book_html / "index.html").as_uri()
    page, text = json.loads(window.show(front, last, link))
    assert page.startswith("03_attention.html#")
    assert text.startswith("Go on with 3 Attention: ")


def test_a_first_visit_is_light(book_html: Path, window: Page):
    """In kilobytes, as a server sends them that compresses."""
    with served(book_html) as address:
        for page in ("index", *CHAPTERS):
            found = cost(window, address, book_html / f"{page}.html")
            assert found.requests > 20, "what a page loads was not seen"
            assert found.kilobytes <= (250 if page == "index" else 450), page


def test_the_books_name_stays_in_sight_beside_a_late_chapter(book_html: Path, window: Page):
    sidebar = "document.querySelector('.bd-sidebar-primary')"
    told = window.show(
        (book_html / "16_bug_hunt.html").as_uri(),
        # the theme puts back how far a reader had scrolled it on the page before: not asked here
        f"({sidebar}.scrollTop = 300) && {sidebar}.scrollTop > 100",
        f"{sidebar}.querySelector('.logo__title').getBoundingClientRect().top",
    )
    assert 0 <= told < 100

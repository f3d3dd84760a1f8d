"""The translator in the book's pages: a picture first, the model when it is asked for."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from bs4 import BeautifulSoup

from lab.page import numbers, writing
from tests.book_code import lenses, translator
from tests.browsing import BROWSER, Page
from tests.conftest import ROOT
from tests.test_book_browser import nameless
from tests.test_lab_page import BOOKS

WRITTEN = re.compile(
    r"^```\{translator\} (.+)\n(?::focus: (\w+)\n)?(?::word: (.+)\n)?", re.MULTILINE
)
ALL = {  # sentence, focus and word of each page's translator
    path.stem: found.groups(default="")
    for path in sorted((ROOT / "book").glob("*.md"))
    if (found := WRITTEN.search(path.read_text("utf-8")))
}
LENSES = {page: told for page, told in ALL.items() if told[1] in lenses.POSTERS}
PAGES = {page: told for page, told in ALL.items() if page not in LENSES}
POSTER = 2_000  # bytes that a picture adds to a page, compressed

in_a_browser = pytest.mark.skipif(BROWSER is None, reason="no chromium on this machine")


@pytest.fixture(scope="module")
def model() -> dict:
    """What the book's file of weights holds."""
    return numbers.read_file(BOOKS.read_text(encoding="utf-8"))


def test_the_first_page_has_it():
    assert "index" in PAGES


def test_the_focuses_are_those_of_the_code():
    view = (writing.HERE / "view.js").read_text(encoding="utf-8")
    table = view[view.index("const FOCUSES") :].split("};")[0]
    assert tuple(re.findall(r"^  (\w+): \{ parts", table, re.MULTILINE)) == translator.FOCUSES
    opened = (writing.HERE / "opened.js").read_text(encoding="utf-8")
    assert re.findall(r"^  (\w+): \w+Lens,", opened, re.MULTILINE) == list(lenses.POSTERS)


def test_each_chapter_of_the_machine_has_a_part_of_it():
    assert {page[:2] for page in ALL} >= {f"{n:02}" for n in range(1, 11)}


def test_a_poster_tells_what_the_model_wrote(model: dict):
    opening = model["openings"][0]
    html = translator.poster("one", "_static/translator/", model, opening["sentence"], "all")
    page = BeautifulSoup(html, "html.parser")
    assert [span.contents[0] for span in page.select(".translator-french span")] == [
        word for word in opening["french"] if word != "<eos>"
    ]
    words = [text.get_text() for text in page.select("svg text")]
    assert words == [*opening["english"], *opening["french"]]
    assert page.select("svg[role=img]")[0]["aria-label"]
    assert writing.gzipped(html) < POSTER


@pytest.mark.parametrize("page", LENSES)
def test_a_smaller_figures_poster_is_small_and_told(page: str, model: dict):
    sentence, focus, word = LENSES[page]
    html = translator.poster("one", "", model, sentence, focus, word)
    assert BeautifulSoup(html, "html.parser").select("svg[role=img]")[0]["aria-label"]
    assert writing.gzipped(html) < POSTER


def test_a_sentence_without_a_picture_is_refused(model: dict):
    with pytest.raises(ValueError, match="shows no 'the cat'; write one of"):
        translator.poster("one", "", model, "the cat", "all")


def test_sentences_to_try_were_not_trained_on(model: dict):
    from lab import little
    from lab.five_minutes import grammar_data

    data = grammar_data(little.PAIRS, little.SEED)
    assert not {english for english, _ in data.train} & {*model["examples"]}


ASKED = "JSON.stringify([...document.scripts].map((one) => one.src))"
OPENED = 'document.querySelector(".translator :is(.tr-said button, .tr-drawn *)")'
# opens it as a reader does, when the page is there and the button in sight (what is off the screen
# is not laid out, and may not keep the keyboard), and is true when it has drawn
OPENING = f"""(() => {{
  const button = document.querySelector(".translator-open button");
  if (document.readyState === "complete" && button && !button.ariaDisabled) {{
    if (button.checkVisibility({{ contentVisibilityAuto: true }})) button.click();
    else button.scrollIntoView({{ block: "center", behavior: "instant" }});
  }}
  return {OPENED};
}})()"""


@in_a_browser
@pytest.mark.parametrize("page", ALL)
def test_nothing_is_loaded_before_it_is_asked_for(page: str, book_html: Path, window: Page):
    address = (book_html / f"{page}.html").as_uri()
    ready = 'document.readyState === "complete"'
    assert "static/translator" not in window.show(address, ready, ASKED)


@in_a_browser
@pytest.mark.parametrize("page", PAGES)
def test_it_opens_from_a_file_with_what_the_picture_shows(
    page: str,
    book_html: Path,
    window: Page,
    model: dict,
):
    address = (book_html / f"{page}.html").as_uri()
    told = """JSON.stringify({
      html: document.querySelector(".translator").outerHTML,
      held: document.activeElement.closest(".translator") !== null,
      wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    })"""
    told = json.loads(window.show(address, OPENING, told, width=360))
    host = BeautifulSoup(told["html"], "html.parser")
    opening = next(one for one in model["openings"] if one["sentence"] == PAGES[page][0])
    assert [word.get_text() for word in host.select(".tr-said .tr-word")] == opening["french"]
    assert told["held"], "the keyboard is lost"
    assert told["wide"] <= 0, "the page is wider than its window"
    assert not nameless(host)
    assert host.select("[aria-live]")


# where a figure and its poster show the same numbers or words, and how many
SHOWN = {
    "word": (".tr-rows .tr-share:last-child", "text.translator-faint", 6),
    "order": (".tr-orders :is(.tr-with, .tr-without)", "text[x='10']", 4),
    "layer": (".tr-way .tr-share", "text.translator-faint", 7),
    "stack": (".tr-keys .tr-share", "text.translator-faint", 10),
    "forced": (".tr-bars .tr-share", "text.translator-faint[text-anchor=end]", 4),
}


@in_a_browser
@pytest.mark.parametrize("page", LENSES)
@pytest.mark.parametrize("width", [320, 1280])
def test_a_smaller_figure_opens_with_the_numbers_of_its_poster(
    page: str,
    width: int,
    book_html: Path,
    window: Page,
    model: dict,
):
    told = """JSON.stringify({
      html: document.querySelector(".translator").outerHTML,
      held: document.activeElement.closest(".translator") !== null,
      wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    })"""
    address = (book_html / f"{page}.html").as_uri()
    told = json.loads(window.show(address, OPENING, told, width))
    host = BeautifulSoup(told["html"], "html.parser")
    sentence, focus, word = LENSES[page]
    live, drawn, count = SHOWN[focus]
    poster = BeautifulSoup(
        translator.poster("one", "", model, sentence, focus, word), "html.parser"
    )
    shown, said = (
        [one.get_text().removeprefix("size ") for one in place.select(where)][:count]
        for place, where in ((host, live), (poster, drawn))
    )
    assert len(shown) == count and shown == said
    assert told["held"], "the keyboard is lost"
    assert told["wide"] <= 0, "the page is wider than its window"
    assert not nameless(host)
    assert len(host.select("[aria-live]")) == 1


@in_a_browser
def test_words_that_change_places_keep_the_keyboard(book_html: Path, window: Page):
    act = """(() => {
      const chips = () => [...document.querySelectorAll(".tr-tokens button")];
      const words = () => chips().map((one) => one.textContent).join(" ");
      const seen = [words()];
      for (const place of [0, 2]) { chips()[place].focus(); chips()[place].click(); }
      seen.push(words(), chips().indexOf(document.activeElement));
      return JSON.stringify(seen);
    })()"""
    address = (book_html / "02_positional_encoding.html").as_uri()
    assert json.loads(window.show(address, OPENING, act)) == [
        *("the king helps the queen .", "helps king the the queen .", 2)
    ]


# what a test does with an open translator; ACT is its own part
PLAY = """(() => {
  const all = (places) => [...document.querySelectorAll(places)];
  const of = (text) => all(".tr button").find((one) => one.textContent === text);
  const label = (text) => all(".tr label").find((one) => one.textContent.startsWith(text));
  const named = (text) => document.getElementById(label(text).htmlFor);
  const said = () => all(".tr-said .tr-word").map((one) => one.textContent).join(" ");
  const check = (text) => {
    named(text).checked = true;
    named(text).dispatchEvent(new Event("change"));
  };
  ACT
})()"""


def play(window: Page, book_html: Path, act: str) -> Any:
    """Open the first page's translator, act, and return what came of it."""
    address = (book_html / "index.html").as_uri()
    return json.loads(window.show(address, OPENING, PLAY.replace("ACT", act)))


@in_a_browser
def test_a_part_that_is_off_breaks_it_and_comes_back(book_html: Path, window: Page):
    act = """
      const whole = said();
      check("the positions");
      const broken = said(), marked = all(".tr-said .tr-changed").length;
      const line = document.querySelector(".tr-line").textContent;
      of("All on again").click();
      return JSON.stringify([whole, broken, marked, line, said()]);"""
    whole, broken, marked, line, after = play(window, book_html, act)
    assert whole == after != broken
    assert marked > 0
    assert f"“{whole.removesuffix(' <eos>')}”" in line


@in_a_browser
def test_words_come_one_by_one_and_the_button_keeps_the_keyboard(
    book_html: Path,
    window: Page,
):
    act = """
      const whole = said().split(" ").length;
      const back = of("One word back");
      back.focus();
      const seen = [];
      for (let i = 0; i < whole + 1; i += 1) { back.click(); seen.push(said().split(" ").length); }
      return JSON.stringify([whole, seen, document.activeElement === back, back.ariaDisabled]);"""
    whole, seen, held, disabled = play(window, book_html, act)
    assert seen == [max(whole - n, 1) for n in range(1, whole + 2)]
    assert held and disabled == "true"


@in_a_browser
def test_a_chosen_word_keeps_the_keyboard_and_shows_what_could_come(
    book_html: Path,
    window: Page,
):
    act = """
      const second = all(".tr-said button")[1];
      second.focus();
      second.click();
      const now = all(".tr-said button")[1];
      return JSON.stringify([
        document.activeElement === now, now.ariaPressed, now.querySelector(".tr-word").textContent,
        document.querySelector(".tr-bars .tr-taken .tr-word").textContent,
      ]);"""
    held, pressed, word, taken = play(window, book_html, act)
    assert held and pressed == "true" and word == taken


@in_a_browser
def test_each_choice_is_said(book_html: Path, window: Page):
    act = """
      const line = () => document.querySelector(".tr-line").textContent;
      const seen = [line()];
      all(".tr-layer button")[0].click();
      seen.push(line());
      all(".tr-said button")[0].click();
      seen.push(line());
      const size = document.querySelector(".tr-search input");
      size.value = 2;
      size.dispatchEvent(new Event("input"));
      seen.push(line());
      return JSON.stringify(seen);"""
    opened, head, word, beam = play(window, book_html, act)
    assert len({opened, head, word, beam}) == 4
    assert "Layer 1, head 1: “" in head and "Layer 1, head 1: “le” looks most at" in word
    assert beam.startswith("Beam size 2: best is “")


@in_a_browser
def test_strange_words_and_long_sentences_are_said(book_html: Path, window: Page):
    act = """
      const line = () => document.querySelector(".tr-line").textContent;
      const ask = (text, words) => {
        document.querySelector(".tr-form input").value = text;
        document.querySelector(".tr-form button").click();
        for (let i = 0; i < words; i += 1) of("Next word").click();
        return line();
      };
      return JSON.stringify([
        ask("the zebra sleeps", 40), ask("cat ".repeat(60), 0), ask(" ", 0),
      ]);"""
    strange, long, empty = play(window, book_html, act)
    assert "never seen zebra" in strange
    assert "at most" in long
    assert "Write an English sentence" in empty

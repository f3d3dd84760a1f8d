"""A reader without a mouse: keys that a figure needs, a focus that stays, changes that are said."""

import json
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path

import pytest
import sphinx

from tests.book_code import anywidget, polish
from tests.browsing import BROWSER, Page
from tests.conftest import ROOT
from tests.serving import served

[THEME] = entry_points(group="sphinx.html_themes", name="sphinx_book_theme")
SCRIPTS = {
    "doctools.js": Path(sphinx.__file__).parent / "themes/basic/static/doctools.js",
    "theme.js": Path(THEME.load().__file__).parent
    / "theme/sphinx_book_theme/static/scripts/sphinx-book-theme.js",
    "course.js": ROOT / "book" / "_static" / "course.js",
}
OPTIONS = {"NAVIGATION_WITH_KEYS": True, "ENABLE_SEARCH_SHORTCUTS": False, "LOCALE": "en"}
NARROW = "width: 200px; overflow: auto"
PAGE = f"""<!doctype html><meta charset=utf-8><title>A page</title>
{polish.SPREAD}<script>const DOCUMENTATION_OPTIONS = {json.dumps(OPTIONS)};</script>
{"".join(f"<script src={name}></script>" for name in SCRIPTS)}
<link rel=next href=next.html>
<body>
<button class=theme-switch-button>Color mode</button>
<svg tabindex=0 role=application></svg>
<div class=bd-article><pre tabindex=0 style="{NARROW}">{"wide " * 99}</pre></div>
<details><summary>fold</summary></details>
<div id=search-results></div>
"""
READY = "document.readyState == 'complete'"
# does an arrow key that is pressed in a part reach the document, where the theme waits for it?
REACHES = """((at) => {
  let seen = false;
  const theme = () => { seen = true; };
  document.addEventListener("keydown", theme);
  document.querySelector(at).focus();
  const pressed = { key: "ArrowRight", bubbles: true, cancelable: true };
  document.activeElement.dispatchEvent(new KeyboardEvent("keydown", pressed));
  document.removeEventListener("keydown", theme);
  return seen;
})"""
THUMB = """(() => {
  const plane = document.querySelector(".at-plane");
  const said = () => document.querySelector(".fig-said").textContent;
  const box = plane.getBoundingClientRect();
  const at = { clientX: box.left + 40, clientY: box.top + 40, pointerId: 1, bubbles: true };
  const touch = (where) =>
    where.dispatchEvent(new PointerEvent("pointerdown", { ...at, pointerType: "touch" }));
  plane.setPointerCapture = (id) => { plane.hasPointerCapture = (one) => one === id; };
  const seen = [said()];
  touch(plane);
  seen.push(said());
  plane.dispatchEvent(new MouseEvent("click", at));
  seen.push(said());
  Object.assign(at, { clientX: box.left + 90 });
  touch(plane.querySelector(".at-grip"));
  seen.push(said());
  const back = new KeyboardEvent("keydown", { key: "ArrowLeft", altKey: true, cancelable: true });
  const held = getComputedStyle(plane).touchAction;
  return JSON.stringify({ seen, back: plane.dispatchEvent(back), held });
})()"""
SAID = "document.querySelector('[role=status]').textContent"

pytestmark = pytest.mark.skipif(BROWSER is None, reason="no chromium on this machine")


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """A page with the scripts of the book, of Sphinx and of the theme, and one after it."""
    for name, script in SCRIPTS.items():
        (tmp_path / name).symlink_to(script)
    for name in ("page", "next"):
        (tmp_path / f"{name}.html").write_text(PAGE, encoding="utf-8")
    with served(tmp_path) as at:
        yield f"{at}/page.html"


def test_what_scripts_do_with_a_page_that_was_read_leaves_room_for_a_click(
    address: str, window: Page
):
    """Each of it is a task of its own, in the old order; no other event waits."""
    then = """(() => {
      const seen = window.seen = [];
      for (const type of ["DOMContentLoaded", "click"]) {
        const note = (n) => document.addEventListener(type, (event) => seen.push(event.type + n));
        [1, 2].forEach(note);
        document.dispatchEvent(new Event(type));
        seen.push("then");
      }
    })()"""
    done = f"{READY} && (window.seen ? window.seen.length == 6 : ({then}, false))"
    wanted = ["then", "click1", "click2", "then", "DOMContentLoaded1", "DOMContentLoaded2"]
    assert window.show(address, done, "window.seen.join()") == ",".join(wanted)


def test_the_arrow_keys_turn_the_page_where_nothing_else_needs_them(address: str, window: Page):
    event = "new KeyboardEvent('keydown', { key: 'ArrowRight', bubbles: true })"
    press = f"document.body.dispatchEvent({event})"
    until = f"{READY} && (location.pathname == '/next.html' || !{press})"
    assert window.show(address, until, "location.pathname") == "/next.html"


@pytest.mark.parametrize("part", ["svg", "pre", "summary"])
def test_a_part_that_has_the_keyboard_keeps_its_arrow_keys(part: str, address: str, window: Page):
    assert window.show(address, READY, f"{REACHES}('{part}')") is False


def test_what_has_to_be_scrolled_shows_that_it_goes_on(address: str, window: Page):
    fades = "document.querySelector('pre').classList.contains('goes-on')"
    to_the_end = "document.querySelector('pre').scrollLeft = 9999"
    act = f"{READY} && (window.begun || (window.begun = {fades} && ({to_the_end}))) && !({fades})"
    assert window.show(address, act, fades) is False


def test_a_pressed_button_of_the_bar_keeps_the_keyboard(address: str, window: Page):
    act = """(() => {
      const button = document.querySelector("button");
      button.focus();
      button.click();
      return document.activeElement === button;
    })()"""
    assert window.show(address, READY, act)


def test_new_colours_are_said(address: str, window: Page):
    act = "document.documentElement.dataset.mode = 'dark'"
    told = window.show(address, f"{READY} && ({act}) && {SAID}", SAID)
    assert told == "Color mode: dark"


def test_what_a_search_found_is_said(address: str, window: Page):
    act = """document.getElementById("search-results").innerHTML =
      "<h2>Results</h2><p class=search-summary>found 3 pages</p><ul></ul>" """
    told = window.show(address, f"{READY} && ({act}) && {SAID}", SAID)
    assert told == "found 3 pages"


def test_a_thumb_scrolls_over_the_plane_and_holds_the_querys_tip(tmp_path: Path, window: Page):
    folder = ROOT / "book" / "explorers"
    keys = [{"word": "red", "at": [1.6, 0.5], "rgb": [214, 60, 50]}]
    figure = anywidget.inline(
        "figure",
        (folder / "03_attention.mjs").read_text(encoding="utf-8"),
        {"keys": keys, "query": [1.3, 1.5]},
        (folder / anywidget.SHARED).read_text(encoding="utf-8"),
    )
    page = tmp_path / "figure.html"
    page.write_text(f"<!doctype html><meta charset=utf-8>{figure}", encoding="utf-8")
    drawn = f"{READY} && document.querySelector('.at-head')"
    found = json.loads(window.show(page.as_uri(), drawn, THUMB))
    before, begun, tapped, dragged = found["seen"]
    assert before == begun and len({before, tapped, dragged}) == 3
    assert found["held"] == "auto", "the page cannot be scrolled by it"
    assert found["back"], "the browser's own key is taken away"

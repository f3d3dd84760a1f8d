"""The book in a real browser, opened as files, with every other host out of reach."""

import re
import subprocess
from pathlib import Path

import pytest
from bs4 import BeautifulSoup, Tag

from tests.browsing import BROWSER, OPTIONS
from tests.conftest import ROOT
from tests.test_book import CHAPTERS, LISTED

EXPLORERS = [
    page for page in LISTED if "{anywidget}" in (ROOT / "book" / f"{page}.md").read_text("utf-8")
]
CHATTER = ("[PST]:", "[togglebutton]:")  # the theme's notes on its own work

pytestmark = pytest.mark.skipif(BROWSER is None, reason="no chromium on this machine")


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh browser profile."""
    return tmp_path_factory.mktemp("chromium")


def open_page(address: str, profile: Path) -> tuple[BeautifulSoup, list[str]]:
    """Return a page as the browser built it, and what its console complained of."""
    done = subprocess.run(
        [str(BROWSER), *OPTIONS, f"--user-data-dir={profile}", address],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    said = re.findall(r"CONSOLE[^\]]*\] \"(.*)", done.stderr)
    console = [line for line in said if not line.startswith(CHATTER)]
    return BeautifulSoup(done.stdout, "html.parser"), console


@pytest.mark.parametrize("page", LISTED)
def test_a_page_opens_from_the_file_system_without_complaint(
    page: str, book_html: Path, profile: Path
):
    dom, console = open_page((book_html / f"{page}.html").as_uri(), profile)
    assert not console
    assert dom.select("article h1")


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
def test_the_interactive_figures_are_drawn(page: str, book_html: Path, profile: Path):
    dom, _ = open_page((book_html / f"{page}.html").as_uri(), profile)
    hosts = dom.select(".anywidget")
    assert hosts
    for host in hosts:
        assert not host.select(".anywidget-fallback"), "render() has drawn nothing"
        assert host.select("input, button, select"), "nothing to touch"
        assert host.select("table, svg, ol"), "nothing to see: a table, an svg or a list"
        assert host.select("[aria-live], output"), "changes are not announced: aria-live"
        assert not nameless(host), "give it a label, or an aria-label"


def test_every_chapter_has_an_interactive_figure():
    assert set(CHAPTERS) <= set(EXPLORERS)


def test_search_finds_a_chapter_from_the_file_system(book_html: Path, profile: Path):
    dom, console = open_page(f"{(book_html / 'search.html').as_uri()}?q=softmax", profile)
    assert not console
    found = " ".join(str(link.get("href")) for link in dom.select("ul.search a"))
    assert "03_attention.html" in found

"""The finished book: nothing leads nowhere, nothing comes from outside, nothing lacks a name."""

import json
import re
from collections import Counter
from functools import lru_cache
from pathlib import Path
from statistics import median
from urllib.parse import unquote, urlsplit

import pytest
from bs4 import BeautifulSoup, Tag
from fontTools.ttLib import TTFont

from tests.book_code import indexed
from tests.conftest import ROOT

LISTED = re.findall(r"(?:root|file): (\S+)", (ROOT / "book" / "_toc.yml").read_text("utf-8"))
CHAPTERS = [page for page in LISTED if page[0].isdigit()]
LOADS = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
LOADED_LINKS = {"stylesheet", "icon", "preload", "shortcut", "modulepreload", "prefetch"}


@pytest.fixture(scope="module")
def pages(book_html: Path) -> dict[Path, BeautifulSoup]:
    """All pages of the book."""
    return {path: soup(path) for path in sorted(book_html.glob("*.html"))}


@lru_cache
def soup(path: Path) -> BeautifulSoup:
    """A parsed page."""
    return BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")


@lru_cache
def ids(path: Path) -> list[str]:
    """All ids of a page."""
    return [str(tag["id"]) for tag in soup(path).find_all(id=True)]


def name(tag: Tag, attribute: str) -> str:
    """An attribute as one string."""
    value = tag.get(attribute) or ""
    return value if isinstance(value, str) else " ".join(value)


def test_every_page_of_the_table_of_contents_is_there(pages: dict[Path, BeautifulSoup]):
    assert {f"{page}.html" for page in LISTED} <= {path.name for path in pages}


def test_links_and_fragments_lead_somewhere(pages: dict[Path, BeautifulSoup]):
    broken = []
    for path, page in pages.items():
        for link in page.find_all("a", href=True):
            target = urlsplit(name(link, "href"))
            if target.scheme in ("http", "https", "mailto"):
                continue
            file = path.parent / unquote(target.path) if target.path else path
            if not file.is_file():
                broken.append(f"{path.name}: {target.path}")
            elif file.suffix == ".html" and unquote(target.fragment or "#") not in {
                "#",
                *ids(file),
            }:
                broken.append(f"{path.name}: {target.path}#{target.fragment}")
    assert not broken


def test_ids_are_unique_in_each_page(pages: dict[Path, BeautifulSoup]):
    doubled = {p.name: [i for i, n in Counter(ids(p)).items() if n > 1] for p in pages}
    assert not {page: found for page, found in doubled.items() if found}


def test_a_link_to_a_page_goes_by_the_books_name(pages: dict[Path, BeautifulSoup]):
    found = {
        name(one, "content")
        for p in pages.values()
        for one in p.select("[property='og:site_name']")
    }
    assert found == {"The Graded Transformer"}


def test_the_index_has_one_line_for_one_thing(pages: dict[Path, BeautifulSoup], book_html: Path):
    lines = [
        line.find(string=True).strip()  # type: ignore[union-attr]
        for line in pages[book_html / "genindex.html"].select(
            "table.genindextable > tr > td > ul > li"
        )
    ]
    assert {"cross-attention", "bos", "LSH"} <= {*lines}
    assert len({indexed.alike(line) for line in lines}) == len(lines) > 200
    assert indexed.alike("layer normalisation") == indexed.alike("Layer-normalizations")
    assert indexed.alike("mems") != indexed.alike("mem")


def test_a_chapter_is_printed_under_its_number(pages: dict[Path, BeautifulSoup], book_html: Path):
    printed = pages[book_html / "04_multi_head_attention.html"].select_one("#jb-print-docs-body h1")
    assert printed is not None
    assert printed.get_text() == "4 Multi-head attention"


def test_a_card_names_its_page_in_words_alone(pages: dict[Path, BeautifulSoup]):
    titles = {
        path.stem: name(one, "content")
        for path, page in pages.items()
        for one in page.select("[property='og:title']")
    }
    assert titles["04_multi_head_attention"] == "4 Multi-head attention"
    assert not {page: title for page, title in titles.items() if "<" in title or "&" in title}


def test_code_can_be_copied_and_what_it_prints_is_no_stop_for_the_keyboard(book_html: Path):
    script = (book_html / "_static" / "copybutton.js").read_text(encoding="utf-8")
    selector = re.findall(r"COPYBUTTON_SELECTOR = '(.*)'", script)[0]
    page = soup(book_html / "03_attention.html")
    with_button = page.select(selector)
    assert set(map(id, page.select(".cell_input pre"))) <= set(map(id, with_button))
    assert not [pre for pre in with_button if pre.find_parent(class_="output")]


PHONE = 296  # pixels that a picture has in a window of 360


def test_letters_of_a_picture_can_be_read_on_a_phone(pages: dict[Path, BeautifulSoup]):
    tiny = []
    for path, page in pages.items():
        for picture in page.select("svg.drawn"):
            sizes = [float(one) for one in re.findall(r"font-size:\s*([\d.]+)p[tx]", str(picture))]
            wide = float(name(picture, "viewbox").split()[2])
            if sizes and median(set(sizes)) * PHONE / wide < 6:
                tiny.append(f"{path.name}: {name(picture, 'aria-label')[:60]}")
    assert not tiny


def test_a_command_below_a_list_is_a_command(pages: dict[Path, BeautifulSoup]):
    """Four spaces below a list's item make a paragraph of the item, not code."""
    command = re.compile(r"\s*(\.venv/|python -m |make \w|pip |sudo )")
    prose = [p for page in pages.values() for p in page.select("article p") if not p.find("code")]
    assert [p.get_text() for p in prose if command.match(p.get_text())] == []


def test_every_picture_says_what_it_shows(pages: dict[Path, BeautifulSoup]):
    for path, page in pages.items():
        for picture in page.select("article img"):
            assert len(name(picture, "alt").split()) >= 3, f"{path.name}: {picture}"
            assert "_images" not in name(picture, "alt"), f"{path.name}: {picture}"
        for drawing in page.select("svg.drawn"):
            assert len(name(drawing, "aria-label").split()) >= 3, path.name


def test_nothing_is_loaded_from_another_host(pages: dict[Path, BeautifulSoup]):
    outside = [
        f"{path.name}: {address}"
        for path, page in pages.items()
        for tag, attribute in LOADS.items()
        for loaded in page.find_all(tag)
        if (address := name(loaded, attribute)).startswith(("http:", "https:", "//"))
        and (tag != "link" or LOADED_LINKS & set(name(loaded, "rel").split()))
    ]
    assert not outside


def test_style_sheets_load_nothing_from_another_host(book_html: Path):
    for sheet in book_html.rglob("*.css"):
        text = sheet.read_text(encoding="utf-8")
        assert not re.findall(r"""(?:url\(|@import)\s*["']?(?:https?:)?//[^)]*""", text), sheet


def test_what_a_page_loads_is_part_of_the_book(pages: dict[Path, BeautifulSoup]):
    for path, page in pages.items():
        for tag, attribute in LOADS.items():
            for loaded in page.find_all(tag):
                address = urlsplit(name(loaded, attribute))
                if address.path and not address.scheme:
                    assert (path.parent / unquote(address.path)).is_file(), f"{path.name}: {loaded}"


def test_formulas_are_drawn_already(pages: dict[Path, BeautifulSoup]):
    drawn = 0
    for path, page in pages.items():
        for formula in page.select("span.math, div.math"):
            assert formula.select(".katex"), f"{path.name}: {formula.get_text()[:60]}"
            drawn += 1
        assert not page.select(".katex-error"), path.name
        for text in page.select("article p"):
            assert not re.search(r"\$\$|\\[(\[]", text.get_text()), f"{path.name}: {text}"
    assert drawn > 100


def test_the_heavy_icon_script_is_gone(book_html: Path, pages: dict[Path, BeautifulSoup]):
    assert not list(book_html.rglob("fontawesome.js"))
    assert not [
        path for path, page in pages.items() if page.find("script", src=re.compile("fontawesome"))
    ]


def test_every_icon_is_in_the_font_and_few_others(
    book_html: Path, pages: dict[Path, BeautifulSoup]
):
    static = book_html / "_static"
    sheet = (static / "styles" / "pydata-sphinx-theme.css").read_text(encoding="utf-8")
    (font,) = (static / "vendor").rglob("fa-solid-900.*")
    kept = TTFont(font).getBestCmap() or {}
    shown = {
        name
        for page in pages.values()
        for icon in page.select("[class*='fa-']")
        for name in icon["class"]
        if name.startswith("fa-") and name not in ("fa-solid", "fa-lg")
    }
    numbers = {
        name: re.findall(rf'\.{name}:before[^{{]*{{content:"\\([0-9a-f]+)"', sheet)
        for name in shown
    }
    assert [name for name, found in numbers.items() if int(found[0], 16) not in kept] == []
    assert 0xF071 in kept, "the sign of a trap"
    assert len(shown) <= len(kept) < 40
    assert font.name in sheet


def test_only_the_page_of_the_search_loads_the_words_of_all(pages: dict[Path, BeautifulSoup]):
    loading = [
        path.name
        for path, page in pages.items()
        for _ in page.find_all("script", src=re.compile("searchindex|searchtools|language_data"))
    ]
    assert loading == ["search.html"] * 3


def test_every_control_has_a_name(pages: dict[Path, BeautifulSoup]):
    for path, page in pages.items():
        for button in page.select("button"):
            label, text = name(button, "aria-label"), button.get_text(" ", strip=True)
            assert label or text, f"{path.name}: {button}"
            assert not (label and text) or text.startswith(label), f"{path.name}: {button}"
        for summary in page.select("summary"):
            text, label = summary.get_text(strip=True), name(summary, "aria-label")
            assert bool(text) != bool(label), f"{path.name}: {summary}"


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_has_its_cards_and_serves_its_notebook(chapter: str, book_html: Path):
    page = soup(book_html / f"{chapter}.html")
    assert len(page.select(".chapter-card li")) == 3
    assert "minutes" in page.select(".chapter-card")[0].get_text()
    (link,) = page.select(".exercise-card a.download")
    served = book_html / unquote(name(link, "href"))
    original = ROOT / "exercises" / chapter / f"{chapter}.ipynb"
    assert served.read_bytes() == original.read_bytes()


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_has_an_interactive_figure_with_a_fallback(chapter: str, book_html: Path):
    page = soup(book_html / f"{chapter}.html")
    assert page.select(".anywidget > .anywidget-fallback")
    assert page.select('script[type="module"]:not([src])')


def test_the_licence_stands_on_every_page(pages: dict[Path, BeautifulSoup]):
    for path, page in pages.items():
        footers = " ".join(footer.get_text() for footer in page.select("footer"))
        assert "CC BY 4.0" in footers and "MIT" in footers, path.name


def test_no_markup_is_left_in_sight(pages: dict[Path, BeautifulSoup]):
    left = re.compile(r"```|:::|\{(?:term|ref|doc|eq|cite[:\w]*)\}`")
    seen = {
        path.name: found for path, page in pages.items() if (found := left.findall(page.get_text()))
    }
    assert not seen


def test_every_page_says_what_it_is_about(pages: dict[Path, BeautifulSoup]):
    for path, page in pages.items():
        if path.name in ("404.html", "search.html", "genindex.html"):
            continue
        told = page.select_one('meta[name="description"]')
        assert told is not None, path.name
        assert 40 <= len(str(told["content"])) <= 210, path.name


def test_a_page_has_its_theme_before_it_is_painted(pages: dict[Path, BeautifulSoup]):
    for path, page in pages.items():
        root = page.html
        assert root is not None and root["data-theme"] == "light", path.name  # without any script
        first = page.select("head script, head link[rel=stylesheet]")[0]
        assert "prefers-color-scheme" in first.text, path.name


def test_folded_code_stands_below_what_it_shows(pages: dict[Path, BeautifulSoup]):
    folds = [fold for page in pages.values() for fold in page.select("div.cell > details.hide")]
    assert len(folds) >= 40
    for fold in folds:
        assert fold.find_next_sibling("div", class_="cell_output") is None


def test_code_that_shows_nothing_is_in_the_fold_of_the_picture_it_is_for(
    pages: dict[Path, BeautifulSoup],
):
    for path, page in pages.items():
        folded, alone = "div.cell:has(> details.hide)", "div.cell:has(> details.hide:only-child)"
        assert not page.select(f"{alone} + {folded}, {folded} + {alone}"), path.name


def test_the_tests_that_a_row_names_are_in_a_fold_that_begins_open(
    pages: dict[Path, BeautifulSoup],
):
    trust = next(page for path, page in pages.items() if path.name == "trust.html")
    folds = trust.select("td > details.tests[open] > summary")
    assert len(folds) >= 45
    assert all(re.fullmatch(r"1 test|\d+ tests", fold.text) for fold in folds)


def test_a_drawing_of_its_own_has_its_colours_in_both_themes():
    text = (ROOT / "book" / "_static" / "grader.svg").read_text(encoding="utf-8")
    light, dark = text.split("@media (prefers-color-scheme: dark)")
    assert not re.findall(r'(?:fill|stroke)="#', text)
    for name in set(re.findall(r'class="([\w-]+)"', text)):
        assert f".{name} {{" in light and f".{name} {{" in dark, name


def test_a_chapter_has_the_number_of_its_file(pages: dict[Path, BeautifulSoup]):
    for path, page in pages.items():
        number = page.select_one(".bd-article h1 > .section-number")
        expected = f"{int(path.name[:2])} " if path.stem in CHAPTERS else None
        assert (number.text.replace("\xa0", " ") if number else None) == expected, path.name


def test_the_first_page_leads_to_every_chapter(pages: dict[Path, BeautifulSoup]):
    front = next(page for path, page in pages.items() if path.name == "index.html")
    cards = front.select(".chapter-link")
    assert {name(card.select("a")[0], "href") for card in cards} >= {f"{c}.html" for c in CHAPTERS}
    for card in cards:
        assert card.select_one("svg[aria-hidden]") is not None
        assert "min" in card.select(".card-note")[0].text
    assert len(front.select(".front-numbers strong")) == 4
    assert front.select_one(".heard pre") and front.select_one(".heard-told strong")


def test_the_way_of_a_course_has_every_chapter(pages: dict[Path, BeautifulSoup]):
    paths = next(page for path, page in pages.items() if path.name == "paths.html")
    last = paths.find_all("table")[-1]
    linked = [name(link, "href").removesuffix(".html") for link in last.select("td a")]
    assert linked == CHAPTERS
    minutes = [
        sum(int(n) * (60 if unit == "h" else 1) for n, unit in re.findall(r"(\d+)\s(h|min)", text))
        for text in (cell.text for cell in last.select("tr > td:last-child"))
    ]
    assert sum(minutes[:-1]) == minutes[-1] > 0


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_can_be_had_as_a_notebook(chapter: str, book_html: Path):
    link = soup(book_html / f"{chapter}.html").select_one(".chapter-card a.download")
    assert link is not None
    cells = json.loads((book_html / name(link, "href")).read_text(encoding="utf-8"))["cells"]
    assert sum(cell["cell_type"] == "code" for cell in cells) > 5


def test_a_page_says_when_it_was_changed(pages: dict[Path, BeautifulSoup]):
    if (ROOT / ".git").exists():
        for chapter in ("index", *CHAPTERS):
            page = next(page for path, page in pages.items() if path.stem == chapter)
            footer = " ".join(part.text for part in page.select(".bd-footer-content"))
            assert re.search(r"Version [\d.]+, changed on \d{4}-", footer), chapter

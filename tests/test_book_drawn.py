"""Pictures that become a part of their page: both themes, the page's letters, no names twice."""

import io
import itertools
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle

from lab import diagrams, plots
from tests.book_code import drawn
from tests.conftest import ROOT
from tests.test_lab_plots import COLOR_BLIND, contrast, lab, linear

STYLE = (ROOT / "book" / "_static" / "course.css").read_text(encoding="utf-8")
NIGHT = re.search(r'data-theme="dark".*?--pst-color-background: (#\w{6})', STYLE, re.DOTALL)
ALTERNATIVE = 'Two lines, "train" & "test", fall'


@pytest.fixture(autouse=True)
def style() -> Iterator[None]:
    with mpl.rc_context():
        plots.use()
        yield
    plt.close("all")


def picture() -> str:
    """A matrix and lines, as a cell's picture is written."""
    figure, (left, right) = plt.subplots(1, 2)
    plots.heatmap([[0.25, 0.75], [1, 0]], ["the", "cat"], title="weights", ax=left)
    plots.lines([0, 1, 2], {"train": [3, 2, 1], "test": [3, 3, 2]}, ax=right)
    written = io.StringIO()
    figure.savefig(written, format="svg", metadata={"Date": None})
    return written.getvalue()


def names(text: str) -> list[str]:
    return [name for one in ET.fromstring(text).iter() if (name := one.get("id"))]


def test_the_same_picture_has_the_same_bytes():
    assert picture() == picture()


def test_letters_stay_letters_without_a_typeface_of_their_own():
    text = drawn.inline(picture(), ALTERNATIVE, "p1-")
    assert ">weights</text>" in text
    assert ">0.75</text>" in text
    assert "font-family" not in text


def test_a_picture_says_what_it_shows_and_takes_its_width():
    root = ET.fromstring(drawn.inline(picture(), ALTERNATIVE, "p1-"))
    assert (root.get("role"), root.get("aria-label")) == ("img", ALTERNATIVE)
    assert root.get("width") is None
    width = float(root.get("viewBox", "").split()[2])
    assert root.get("style") == f"width: {width * 100 / 72:.0f}px"


def test_a_picture_has_no_element_that_says_nothing_and_lines_alike_are_one():
    figure, ax = plt.subplots()
    for place in range(5):
        look = {"fc": "#0341bb", "alpha": 0.5, "lw": 0}
        ax.add_patch(Rectangle((place / 5, 0), 0.3, 0.3, **look))  # each over the one before
    for place in range(5):
        ax.add_patch(Rectangle((place / 5, 0.5), 0.1, 0.1, fc="none", ec="#e67206"))
    written = io.StringIO()
    figure.savefig(written, format="svg", metadata={"Date": None})
    root = ET.fromstring(drawn.inline(written.getvalue(), ALTERNATIVE, "p1-"))
    assert all(group.attrib for group in root.iter("g"))
    paths = [path for path in root.iter("path") if "#" in path.get("style", "")]
    seen_through = [path for path in paths if "opacity" in path.get("style", "")]
    assert len(seen_through) == 5
    edges = [path for path in paths if path.get("stroke") == "#e67206"]
    assert [path.get("d", "").count("M") for path in edges] == [5]
    assert paths.index(seen_through[-1]) < paths.index(edges[0])
    (clipped,) = [group for group in root.iter("g") if group.get("clip-path")]
    assert [*clipped] == [*seen_through, *edges]
    assert not any(part.get("clip-path") for part in clipped)


def test_names_in_two_pictures_of_a_page_differ_and_lead_where_they_did():
    one, two = (drawn.inline(picture(), ALTERNATIVE, f"p{n}-") for n in (1, 2))
    assert names(one)
    assert {*names(one)}.isdisjoint(names(two))
    asked = {*re.findall(r"url\(#(.*?)\)", one), *re.findall(r'href="#(.*?)"', one)}
    assert asked == {*names(one)}


def test_nothing_in_a_picture_holds_for_the_rest_of_the_page():
    text = drawn.inline(picture(), ALTERNATIVE, "p1-")
    assert "<style" not in text
    assert "<metadata" not in text


def test_every_colour_has_one_for_each_theme():
    text = drawn.inline(picture(), ALTERNATIVE, "p1-")
    colors = re.findall(r"(?:fill|stroke):(#\w+|light-dark\((#\w+), [^)]+\)?\))", text)
    assert colors
    assert all(whole.startswith("light-dark") for whole, _ in colors)
    assert {light for _, light in colors} >= {plots.INK, *plots.COLORS[:2]}


def test_a_matrix_is_there_for_each_theme():
    root = ET.fromstring(drawn.inline(picture(), ALTERNATIVE, "p1-"))
    images = [one for one in root.iter() if one.tag.endswith("image")]
    assert [one.get("class") for one in images] == ["day", "night"]
    assert images[0].get("href") != images[1].get("href")
    assert images[0].get("transform") == images[1].get("transform")
    for name in ("day", "night"):
        assert f"svg.drawn .{name}" in STYLE


def test_what_is_a_picture_of_something_stays_as_it_is():
    figure, ax = plt.subplots()
    ax.imshow([[[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]]], gid=drawn.AS_IT_IS)
    file = io.StringIO()
    figure.savefig(file, format="svg")
    plt.close(figure)
    root = ET.fromstring(drawn.inline(file.getvalue(), ALTERNATIVE, "p1-"))
    assert [one.get("class") for one in root.iter() if one.tag.endswith("image")] == [None]


def test_the_colours_of_lines_can_be_told_from_the_dark_page():
    assert NIGHT
    assert {*plots.COLORS, plots.INK, plots.PAPER, plots.BLANK} <= {*drawn.DARK}
    for color in plots.COLORS:
        assert contrast(drawn.dark(color), NIGHT[1]) >= 3
    assert contrast(drawn.dark(plots.INK), NIGHT[1]) >= 4.5


@pytest.mark.parametrize("color", plots.COLORS)
def test_letters_in_the_colour_of_a_line_can_be_read_in_both_themes(color: str):
    assert NIGHT and NIGHT[1] == drawn.NIGHT
    figure = plt.figure()
    figure.text(0.5, 0.5, "letters", color=color)
    written = io.StringIO()
    figure.savefig(written, format="svg")
    text = drawn.inline(written.getvalue(), ALTERNATIVE, "p1-")
    found = re.search(r"<text[^>]*light-dark\((#\w{6}), (#\w{6})\)", text)
    assert found
    assert contrast(found[1], drawn.PAPER) >= 4.5
    assert contrast(found[2], drawn.NIGHT) >= 4.5


def test_grey_letters_can_be_read_in_a_grey_cell_in_both_themes():
    assert contrast(diagrams.GREY, plots.BLANK) >= 4.5
    assert contrast(drawn.dark(diagrams.GREY), drawn.dark(plots.BLANK)) >= 4.5


@pytest.mark.parametrize("kind", COLOR_BLIND)
def test_the_colours_of_lines_stay_apart_on_the_dark_page(kind: str):
    colors = [drawn.dark(color) for color in plots.COLORS]
    seen = [lab(np.array(COLOR_BLIND[kind]) @ linear(color)) for color in colors]
    distances = [np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2)]
    assert min(distances) >= 20


@pytest.mark.parametrize("colors", [plots.SEQUENTIAL, plots.DIVERGING], ids=["one", "two"])
def test_numbers_in_cells_can_be_read_on_a_dark_page(colors):
    other = {"#ffffff": "#000000", "#000000": "#ffffff"}
    for value in np.linspace(0, 1, 65):
        ink = other[plots.ink_on(colors(value))]
        assert contrast(ink, drawn.dark(to_hex(colors(value)))) >= 4.4


def test_white_letters_turn_black_and_white_paper_turns_into_the_page():
    figure = plt.figure()
    figure.text(0.5, 0.5, "letters", color="white", backgroundcolor=plots.COLORS[0])
    written = io.StringIO()
    figure.savefig(written, format="svg")
    text = drawn.inline(written.getvalue(), ALTERNATIVE, "p1-")
    assert "fill:light-dark(#ffffff, #000000)" in text
    assert drawn.DARK[plots.PAPER] == "var(--pst-color-background)"


def test_a_box_that_leads_to_a_page_is_one_link_and_the_picture_does_not_hide_it():
    figure, ax = plt.subplots()
    for y, page in enumerate(["03_attention.html", "05_layer_norm.html#layer-norm"]):
        diagrams.box(ax, (0, y), f"{page[:2]}\nhere", plots.COLORS[y], link=page)
    diagrams.box(ax, (0, 2), "none", plots.COLORS[2])
    written = io.StringIO()
    figure.savefig(written, format="svg")
    root = ET.fromstring(drawn.inline(written.getvalue(), ALTERNATIVE, "p1-"))
    links = [one for one in root.iter() if one.tag.endswith("a")]
    found = [(one.get("href"), "".join(one.itertext()).strip()) for one in links]
    assert found == [("03_attention.html", "03here"), ("05_layer_norm.html#layer-norm", "05here")]
    assert [one.get("target") for one in links] == [None, None]
    assert root.get("role") == "group"


def test_the_drawing_of_the_whole_model_leads_to_the_chapters(book_html: Path):
    page = (book_html / "10_full_model.html").read_text(encoding="utf-8")
    (drawing,) = re.findall(r'<svg[^>]*class="drawn" role="group".*?</svg>', page, re.DOTALL)
    chapters = {path.name for path in book_html.glob("0*.html")} - {
        "08_teacher_forcing.html",  # how it is trained, and how it is used
        "09_inference.html",
    }
    assert {*re.findall(r'<a href="([^"#]+)', drawing)} == chapters


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ("01_embedding", ["N, columns of the batch", "without <eos>, in percent"]),
        ("02_positional_encoding", ["pair", "wavelength, in positions", "a text of 8,192 tokens"]),
        ("03_attention", ["query", "key", "value", "softmax"]),
        ("04_multi_head_attention", ["(N, d_k)", "(d_k, M)", "(N, M)", "(M, d_k)", "weights"]),
        ("05_layer_norm", ["size", "alike", "layers", "post-norm", "pre-norm", "added", "alone"]),
        ("06_encoder", ["tokens of the vocabulary, in thousands", "big: 213 M"]),
        ("06_encoder", ["tokens", "share, in percent", "scores + mix", "feed-forward"]),
        ("08_teacher_forcing", ["lead of the label's logit", "loss", "smoothing 0.1"]),
        ("08_teacher_forcing", ["loss", "honest floor", "share right", "no shift"]),
        ("11_your_translator", ["difference in BLEU", "300 less 275 steps,", "not paired"]),
        ("11_your_translator", ["reads (keys)", "writes", "<bos>", "<eos>"]),
        ("12_language_model", ["words of text", "loss of a word", "training", "held out"]),
    ],
)
def test_a_picture_that_carries_the_argument_names_its_axes(
    book_html: Path, page: str, said: list[str]
):
    text = (book_html / f"{page}.html").read_text(encoding="utf-8")
    drawings = re.findall(r'<svg[^>]*class="drawn".*?</svg>', text, re.DOTALL)
    found = [{*map(unescape, re.findall(r">([^<>]+)<", one))} for one in drawings]
    assert any({*said} <= words for words in found)


def test_no_picture_of_a_cell_is_left_apart_from_its_page(book_html: Path):
    pages = {path: path.read_text(encoding="utf-8") for path in book_html.glob("*.html")}
    assert sum(text.count('class="drawn"') for text in pages.values()) >= 40
    for path, text in pages.items():
        assert not re.search(r'src="_images/[0-9a-f]{64}\.', text), path
        ids = re.findall(r'\sid="(p\d+-[^"]+)"', text)
        assert len(ids) == len({*ids}), path

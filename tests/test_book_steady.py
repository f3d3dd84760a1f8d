"""What has been drawn stays where it is while the rest of a page, and its letters, arrive."""

import json
from pathlib import Path

import pytest

from tests.browsing import BROWSER, browsing
from tests.conftest import ROOT
from tests.serving import served

SAMPLE = (
    "Attention takes a mean of values, and the weights of that mean are what the tokens decide."
)
CUTS = ("normal 400", "italic 400", "normal 620")
LINES = "".join(f"""<p style='font:{cut} 20px "Source Serif 4"'>{SAMPLE}""" for cut in CUTS)
PAGE = f"""<!doctype html><meta charset=utf-8><link rel=stylesheet href=course.css>
{{filled}}{LINES}"""
READY = "document.readyState == 'complete' && document.fonts.status == 'loaded'"
FORMULAS = {  # letters as often as formulas have them
    "normal KaTeX_Main": "(),0123456789=+BNMHDexpmaxminsoftmaxlogsin",
    "italic KaTeX_Math": "NNDDddkkvvHHWWQQKKVVXXxxiijjnnhhPpaeyzqsABLmMT",
}
LETTERS = """<link rel=stylesheet href=katex/katex.min.css><div class=bd-article>
<span class=katex>a<span class=mathnormal>b</span></span></div>"""
ENTRIES = f"Object.entries({json.dumps(FORMULAS)})"
FORMULA_WIDTHS = f"""JSON.stringify({ENTRIES}.map(([cut, text], i) => {{
  const pen = document.createElement("canvas").getContext("2d");
  const [style, own] = cut.split(" ");
  const used = getComputedStyle(document.querySelector(i ? ".mathnormal" : ".katex")).fontFamily;
  return [own, '"Formulas as wide"', used, '"Times as wide"', "monospace"].map((family) => {{
    pen.font = `${{style}} 100px ${{family}}, monospace`;
    return pen.measureText(text).width;
  }});
}}))"""
WIDTHS = f"""JSON.stringify({json.dumps(CUTS)}.map((cut) => {{
  const pen = document.createElement("canvas").getContext("2d");
  return ['"Source Serif 4"', '"Times as wide"', "monospace"].map((family) => {{
    pen.font = `${{cut}} 100px ${{family}}, monospace`;
    return pen.measureText({json.dumps(SAMPLE)}).width;
  }});
}}))"""

pytestmark = pytest.mark.skipif(BROWSER is None, reason="no chromium on this machine")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A short and a long page with the book's style sheet."""
    static = ROOT / "book" / "_static"
    style = (static / "course.css").read_text(encoding="utf-8")
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "course.css").write_text(style, encoding="utf-8")
    for name in ("fonts", "katex"):
        (folder / name).symlink_to(static / name)
    tall = "<div style='height: 4000px'></div>"
    for name, filled in (("short", ""), ("long", tall), ("formulas", LETTERS)):
        (folder / f"{name}.html").write_text(PAGE.format(filled=filled), encoding="utf-8")
    return folder


def test_lines_are_as_wide_before_the_rest_of_the_page_has_come(site: Path, tmp_path: Path):
    with served(site) as address, browsing(tmp_path / "profile", {}) as window:
        wide = "document.documentElement.getBoundingClientRect().width"
        found = {window.show(f"{address}/{name}.html", READY, wide) for name in ("short", "long")}
    assert len(found) == 1


def test_letters_that_stand_in_are_as_wide_as_those_that_come(site: Path, tmp_path: Path):
    with served(site) as address, browsing(tmp_path / "profile", {}) as window:
        load = "window.asked ??= document.fonts.load('20px \"Times as wide\"') && "
        load += "document.fonts.load('italic 20px \"Times as wide\"') && "
        load += "document.fonts.load('620 20px \"Times as wide\"')"
        found = json.loads(window.show(f"{address}/short.html", f"({load}) && {READY}", WIDTHS))
    if any(stand_in == plain for _, stand_in, plain in found):
        pytest.skip("no Times, Liberation Serif or Tinos on this machine")
    for cut, (real, stand_in, _) in zip(CUTS, found, strict=True):
        assert stand_in == pytest.approx(real, rel=0.02), cut


def test_formulas_keep_their_width_when_their_letters_come(site: Path, tmp_path: Path):
    with served(site) as address, browsing(tmp_path / "profile", {}) as window:
        load = "window.asked ??= document.fonts.load('20px \"Formulas as wide\"') && "
        load += "document.fonts.load('italic 20px \"Formulas as wide\"') && "
        load += "document.fonts.load('20px \"Times as wide\"')"
        page = f"{address}/formulas.html"
        found = json.loads(window.show(page, f"({load}) && {READY}", FORMULA_WIDTHS))
    if found[0][3] == found[0][4]:
        pytest.skip("no Times, Liberation Serif or Tinos on this machine")
    for cut, (real, stand_in, used, *_) in zip(FORMULAS, found, strict=True):
        assert stand_in == pytest.approx(real, rel=0.02), cut
        assert used == pytest.approx(real), cut

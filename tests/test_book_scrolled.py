"""What is wider than its place: scrolled with a name and a stop, wrapped, or laid row by row."""

import json

import pytest

from tests.browsing import BROWSER, Page
from tests.conftest import ROOT

LONG = "wide " * 60
CELLS = "".join(f"<td>{'unbreakable' * 2}</td>" for _ in range(4))
PAGE = f"""<!doctype html><html data-theme=light><meta charset=utf-8><title>A page</title>
<meta name=viewport content="width=device-width"><link rel=stylesheet href=course.css>
<style>:is(pre, div) {{ max-width: 100%; overflow: auto }}</style><script src=course.js></script>
<body><div class=bd-article><section>
<pre id=code>{LONG}</pre><pre id=short tabindex=0>short</pre>
<div class=cell_output><pre id=printed>{LONG}</pre></div>
<div class=math-scroll id=formula tabindex=0><span class=katex-display>{"x" * 400}</span></div>
<details id=fold><summary>more</summary><pre id=folded>{LONG}</pre></details>
<div id=own role=region tabindex=0 aria-label="The tree"><svg width=40 height=9></svg></div>
<div class=pst-scrollable-table-container id=table><table class=table>
<thead><tr><th>what</th><th>one</th>
<th><span class=katex><span class=katex-mathml>n n</span>
<span class=katex-html>n&#8203;</span></span></th><th>three</th></tr></thead>
<tbody><tr>{CELLS}</tr></tbody></table></div>
<div class=pst-scrollable-table-container id=odd><table class=table>
<thead><tr><th colspan=2>what</th><th>one</th><th>two</th></tr></thead>
<tbody><tr>{CELLS}</tr></tbody></table></div>
<details class=tests open><summary>2 tests</summary>names</details>
</section></div>
"""
READY = "document.readyState == 'complete' && document.fonts.status == 'loaded'"
TOLD = """JSON.stringify(Object.fromEntries([...document.querySelectorAll("[id]")].map((one) =>
  [one.id, [one.tabIndex, one.getAttribute("role"), one.getAttribute("aria-label")]])))"""
STILL = [-1, None, None]

pytestmark = pytest.mark.skipif(BROWSER is None, reason="no chromium on this machine")


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A page with the book's own script and style sheet."""
    folder = tmp_path_factory.mktemp("page")
    for name in ("course.js", "course.css"):
        (folder / name).symlink_to(ROOT / "book" / "_static" / name)
    (folder / "page.html").write_text(PAGE, encoding="utf-8")
    return (folder / "page.html").as_uri()


def test_a_box_that_has_to_be_scrolled_says_what_it_is_and_another_is_no_stop(
    address: str, window: Page
):
    found = json.loads(window.show(address, READY, TOLD, 360))
    assert found["code"] == [0, "group", "Code, scrolls sideways"]
    assert found["printed"] == [0, "group", "Output, scrolls sideways"]
    assert found["formula"] == [0, "group", "Formula, scrolls sideways"]
    assert found["odd"] == [0, "group", "Table, scrolls sideways"]
    assert found["short"] == STILL
    assert found["own"] == [-1, "region", "The tree"]


def test_long_lines_of_code_are_wrapped_where_there_is_room_for_most(address: str, window: Page):
    boxes = "[...document.querySelectorAll('pre:not(#folded)')]"
    seen = f"JSON.stringify({boxes}.map((one) => one.scrollWidth - one.clientWidth))"
    assert json.loads(window.show(address, READY, seen, 1280)) == [0, 0, 0]


def test_what_was_folded_is_a_stop_once_it_is_open(address: str, window: Page):
    opened = "(document.getElementById('fold').open = true)"
    until = f"{READY} && {opened} && document.getElementById('folded').tabIndex === 0"
    told = "document.getElementById('folded').getAttribute('aria-label')"
    assert window.show(address, until, told, 360) == "Code, scrolls sideways"


def test_a_figure_that_grows_becomes_a_stop(address: str, window: Page):
    grow = "document.querySelector('#own').innerHTML = '<svg width=4000 height=9></svg>'"
    until = f"{READY} && (window.grown ??= {grow}) && document.getElementById('own').tabIndex === 0"
    assert (
        window.show(address, until, "document.getElementById('own').ariaLabel", 360) == "The tree"
    )


def test_a_table_that_does_not_fit_a_phone_stands_row_by_row_and_is_still_a_table(
    address: str, window: Page
):
    told = """(() => {
      const box = document.getElementById("table");
      const [row] = box.querySelector("tbody").rows;
      const shown = [1, 2].map((i) => getComputedStyle(row.cells[i], "::before").content).join();
      const roles = [box.firstElementChild, row, ...row.cells].map((one) => one.role).join();
      return JSON.stringify([box.classList.contains("row-by-row"),
        box.scrollWidth <= box.clientWidth, shown, roles, box.tabIndex]);
    })()"""
    narrow, wide = (json.loads(one) for one in window.show_in(address, READY, told, (360, 1280)))
    roles = "table,row,cell,cell,cell,cell"
    assert narrow == [True, True, '"one: ","n: "', roles, -1]
    assert wide[:3] == [False, True, "none,none"]


def test_names_of_tests_are_folded_on_a_phone_and_come_back(address: str, window: Page):
    told = """(() => { const one = document.querySelector(".tests");
      return [one.open, one.firstElementChild.checkVisibility()].join(); })()"""
    assert window.show_in(address, READY, told, (360, 1280)) == ["false,true", "true,false"]

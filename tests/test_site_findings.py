"""What the table of the site measures, on pages whose faults are known."""

import json
from pathlib import Path

import pytest

from tests.browsing import BROWSER, browsing
from tests.serving import served
from tests.site_findings import COMPUTED, LOADED, SEEN, WATCH, broken_links, faults, reading

PAGE = """<!doctype html><html data-theme=auto><meta charset=utf-8><title>A page</title>
<article class=bd-article><section><h1 id=a>Title</h1><p id=a>Text</p>
<div class="admonition trap">A box</div><div class=cell><pre>code</pre></div>
<div class=anywidget style="margin-top: 1000px">
  <label><span>d = <output>4</output></span><input type=range></label>
  <label>width <input type=range></label>
</div><img src="data:,"></section></article>
<script>console.error("a complaint");
setTimeout(() => { document.documentElement.dataset.theme = "dark"; }, 300);</script>
"""


def test_links_that_lead_nowhere_are_counted(tmp_path: Path):
    (tmp_path / "a.html").write_text('<p id="here"><a href="#here"></a><a href="b.html#there"></a>')
    (tmp_path / "b.html").write_text('<a href="a.html#gone"></a><a href="c.html"></a>')
    (tmp_path / "b.html").write_text((tmp_path / "b.html").read_text() + '<p id="there">')
    assert broken_links(tmp_path) == (2, 4)


@pytest.mark.skipif(BROWSER is None, reason="no chromium on this machine")
def test_the_faults_of_a_page_are_seen(tmp_path: Path):
    site = tmp_path / "site"
    site.mkdir()
    (site / "page.html").write_text(PAGE, encoding="utf-8")
    with served(site) as address, browsing(tmp_path / "profile", {}, COMPUTED) as window:
        window.first = WATCH
        ready = f"{LOADED} && courseWatched.dressed"
        seen = json.loads(window.show(f"{address}/page.html", ready, SEEN))
    found = {what: now for what, _, now in faults([seen])}
    assert found["errors, warnings in the console"] == "1"
    assert found["pictures without alt, doubled ids"] == "1, 1"
    assert found["controls of figures without a name"] == "1 of 2", "a label names its first part"
    assert int(found["milliseconds painted without a theme"]) > 0
    read = {what: now for what, _, now in reading([seen])}
    assert read["boxes on errors, chapters 1 to 10"] == "1"
    assert read["screens down to a chapter's first figure"].startswith("1.")

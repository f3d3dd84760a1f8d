"""What a published site needs beside its pages: dates, a way to report errors, a sitemap."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from docutils.utils import new_document

from tests.book_code import published
from tests.conftest import ROOT


def site(**settings: str) -> Any:
    """What a page's footer and the sitemap ask of Sphinx."""
    defaults = {"html_baseurl": "", "course_repository": "", "release": "0.1.0"}
    config = SimpleNamespace(**{**defaults, **settings})
    return SimpleNamespace(
        config=config, srcdir=ROOT / "book", builder=SimpleNamespace(format="html")
    )


def test_a_page_says_when_it_was_changed_and_where_to_report_an_error():
    context: dict[str, Any] = {"title": "3 Attention"}
    published.say_when(site(), "03_attention", "", context, new_document("page"))
    assert re.fullmatch(
        r"(Version 0\.1\.0, changed on \d{4}-\d\d-\d\d\.)?", context["course_changed"]
    )
    assert context["course_report"] == ""
    public = site(course_repository="https://x.example/y/")
    published.say_when(public, "03_attention", "", context, new_document("page"))
    assert context["course_report"] == "https://x.example/y/issues/new?title=3%20Attention%3A%20"


def test_what_no_git_knows_has_no_day(tmp_path: Path):
    (tmp_path / "a.md").write_text("# A")
    assert published.last_change(tmp_path / "a.md") == ""


def test_a_sitemap_lists_the_pages_where_the_site_has_an_address(tmp_path: Path):
    app = site(html_baseurl="https://x.example/book/")
    app.outdir, app.env = tmp_path, SimpleNamespace(all_docs={"index": 0, "a&b": 0, "404": 0})
    published.list_pages(app, None)
    found = re.findall("<loc>(.*?)</loc>", (tmp_path / "sitemap.xml").read_text())
    assert found == ["https://x.example/book/a&amp;b.html", "https://x.example/book/index.html"]
    app.config.html_baseurl = ""
    (tmp_path / "sitemap.xml").unlink()
    published.list_pages(app, None)
    assert not (tmp_path / "sitemap.xml").exists()

"""Of hidden tests, of the machine and of other students nothing reaches a student or a log."""

import json
from html.parser import HTMLParser

import pytest

from tests.hostile.everybody import EVERYBODY
from tests.hostile.klass import VICTIM, VICTIM_WORDS, Graded
from tests.hostile.steps import Row


@pytest.mark.parametrize("row", EVERYBODY, ids=[row.id for row in EVERYBODY])
def test_a_student_learns_nothing_of_hidden_tests(graded: Graded, row: Row):
    for what, text in graded.shown(row.id).items():
        assert not graded.tiny.canaries.found_in(text), (what, text[:2000])
        assert "root:x:0" not in text, what
        assert row is VICTIM or VICTIM_WORDS not in text, what


@pytest.mark.parametrize("row", EVERYBODY, ids=[row.id for row in EVERYBODY])
def test_no_page_runs_what_a_student_wrote(graded: Graded, row: Row):
    page = Page()
    page.feed(graded.feedback(row.id))
    assert not page.hostile


@pytest.mark.parametrize("row", EVERYBODY, ids=[row.id for row in EVERYBODY])
def test_graded_notebooks_show_no_terminal_codes_and_no_foreign_markup(graded: Graded, row: Row):
    path = graded.taught.autograded / row.id / "tiny" / "tiny.ipynb"
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        for output in cell.get("outputs", []):
            assert set(output.get("data", {})) <= {"text/plain"}, cell["source"][:200]
            assert "\x1b[2J" not in json.dumps(output, ensure_ascii=False)


def test_logs_hold_nothing_of_hidden_tests(graded: Graded):
    assert not graded.tiny.canaries.found_in(graded.said), graded.said[-2000:]
    assert VICTIM_WORDS not in graded.said


class Page(HTMLParser):
    """Notes what of a page a browser would run or fetch and that a student wrote."""

    def __init__(self) -> None:
        super().__init__()
        self.hostile: list[str] = []
        self.inside = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An element's name and attributes."""
        self.inside = tag
        for name, value in attrs:
            text = (value or "").lower()
            if "hostile" in text or "javascript:" in text or "data:text" in text:
                self.hostile.append(f"<{tag} {name}={value}>")

    def handle_endtag(self, tag: str) -> None:
        """The end of an element."""
        self.inside = ""

    def handle_data(self, data: str) -> None:
        """Text, or what a script or a style sheet holds."""
        if self.inside in ("script", "style") and "hostile" in data:
            self.hostile.append(f"<{self.inside}>{data[:200]}")

"""What of the documents is treated, counted from tags and data."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.book_code import coverage, documents
from tests.conftest import ROOT

DATA = """
name = "the report"
label = "S0"
[[item]]
id = "S0.1"
what = "adding"
[[item]]
id = "S0.2"
what = "counting"
later = "images"
[[error]]
id = "E0.1"
kind = "wrong"
what = "a wrong sum"
"""


@pytest.fixture
def tagged(tmp_path: Path) -> Path:
    """A small project: three items, of which a page treats one and an exercise another."""
    (tmp_path / "book").mkdir()
    (tmp_path / "solutions" / "01_sums").mkdir(parents=True)
    (tmp_path / "book" / "documents").mkdir()
    (tmp_path / "book" / "documents" / "report.toml").write_text(DATA, encoding="utf-8")
    (tmp_path / "book" / "01_sums.md").write_text("% covers: S0.1\n", encoding="utf-8")
    source = "# %% [markdown]\n# covers: E0.1, S0.1\n"
    (tmp_path / "solutions" / "01_sums" / "01_sums.py").write_text(source, encoding="utf-8")
    return tmp_path


def listed(root: Path, kind: str) -> dict[str, Any]:
    """All "items" or "errors" of a project by id, with their places."""
    return {one.id: one for found in coverage.read_tagged(root) for one in getattr(found, kind)}


def test_coverage_says_where_an_item_is_treated(tagged: Path):
    items = listed(tagged, "items")
    assert items["S0.1"].pages == ["01_sums"] and items["S0.1"].exercises == ["01_sums"]
    assert not items["S0.2"].treated and items["S0.2"].later == "images"
    error = listed(tagged, "errors")["E0.1"]
    assert error.treated and not error.pages


def test_where_it_is_treated_is_called_as_everywhere(tagged: Path):
    page = tagged / "book" / "01_sums.md"
    page.write_text("% covers: S0.1\n\n# Sums and more\n", encoding="utf-8")
    item = listed(tagged, "items")["S0.1"]
    named = [one.astext() for one in coverage.places(item, page.parent)]
    assert named == ["1 Sums and more", ", exercise 1"]


@pytest.mark.parametrize(
    "line", ["% covers: E0.1", "```{erratum} E0.1", "````{trap} A sum\n:errata: E0.1"]
)
def test_a_trap_and_an_entry_treat_an_error_as_a_tag_does(tagged: Path, line: str):
    (tagged / "book" / "02_more.md").write_text(line + "\n", encoding="utf-8")
    assert listed(tagged, "errors")["E0.1"].pages == ["02_more"]


def test_coverage_counts_and_names_what_is_missing(tagged: Path, capsys):
    assert coverage.main(tagged) == 0
    assert capsys.readouterr().out.splitlines() == [
        "S0.2   counting (to come: images)",
        "inventory 1/2, errata 1/1",
        "of the errata 1 are errors; 0 extraction, 0 withdrawn",
    ]
    (tagged / "solutions" / "01_sums" / "01_sums.py").unlink()
    assert coverage.main(tagged) == 1
    assert "E0.1   a wrong sum (MISSING)" in capsys.readouterr().out


def test_a_tag_that_names_nothing_is_refused(tagged: Path):
    (tagged / "book" / "02_more.md").write_text("% covers: S9.9\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"02_more\.md: covers 'S9\.9', which no file"):
        coverage.read_tagged(tagged)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('kind = "wrong"', 'kind = "bad"', "E0.1 has the kind 'bad', not one of"),
        ('what = "a wrong sum"', "", "E0.1 has no what"),
        ('what = "adding"', 'what = "adding"\nwhere = "there"', "S0.1 has where; known are"),
        ('name = "the report"', "name = the report", "report.toml is no TOML"),
    ],
)
def test_data_of_a_document_is_checked(tagged: Path, old: str, new: str, says: str):
    text = DATA.replace(old, new)
    (tagged / "book" / "documents" / "report.toml").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=re.escape(says)):
        documents.read_documents(tagged)


def test_everything_in_the_documents_is_treated_or_has_its_chapter_to_come():
    items, errors = listed(ROOT, "items"), listed(ROOT, "errors")
    assert len(items) == 307 and len(errors) == 158
    assert [i for i, one in {**items, **errors}.items() if not one.treated and not one.later] == []


def test_readme_counts_the_errors_that_somebody_made():
    made = sum(error.counts for error in listed(ROOT, "errors").values())
    assert f"with {made} errors, gaps and contradictions" in (ROOT / "README.md").read_text("utf-8")

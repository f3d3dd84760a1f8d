"""What the pages say: one voice, one notation, every trap once, every term explained."""

import json
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.book_code import boxes, documents
from tests.conftest import ROOT

BOOK = ROOT / "book"
PARTS = sorted(BOOK.glob("[0-9][0-9]_*.md"))  # the chapters that have a notebook
CHAPTERS = [*PARTS, BOOK / "relative_positions.md"]
TEACHING = [*CHAPTERS, BOOK / "training.md", BOOK / "index.md"]
NOTEBOOKS = sorted((ROOT / "exercises").glob("*/*.ipynb"))
DOCUMENTS = [one for one in documents.read_documents(ROOT) if one.items]
UNSEEN = re.compile(r"^% .*$|^:errata:.*$|<E[0-9XV]\.\d+>", re.MULTILINE)
CODE = re.compile(r"\b[SE][0-9XV]\.\d+|\bS[0-4]\b|\bdocuments? disagree", re.IGNORECASE)
TRAP = re.compile(r"^```+\{trap\} (.+)\n(?::errata:.*\n)?((?:.*\n)*?)```", re.MULTILINE)
QUIZ = re.compile(r"^```+\{quiz\} .+\n((?:.*\n)*?)```", re.MULTILINE)
TERM = re.compile(r"\{term\}`([^`]+)`")


def text(path: Path) -> str:
    """A page as it is written."""
    return path.read_text(encoding="utf-8")


def prose(path: Path) -> str:
    """All that a page or the prose of a notebook shows."""
    if path.suffix == ".md":
        return UNSEEN.sub("", text(path))
    cells = json.loads(text(path))["cells"]
    return "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")


def named(paths: Iterable[Path]) -> list[object]:
    """Parameters of a test that go by the names of files."""
    return [pytest.param(path, id=path.stem) for path in paths]


@pytest.mark.parametrize("page", named([*TEACHING, *NOTEBOOKS]))
def test_no_chapter_speaks_in_codes_or_quarrels_with_documents(page: Path):
    assert [line for line in prose(page).splitlines() if CODE.search(line)] == []


@pytest.mark.parametrize("page", named(CHAPTERS))
def test_a_chapter_has_few_traps_and_each_is_short(page: Path):
    traps = TRAP.findall(text(page))
    assert len(traps) <= 4
    assert [title for title, said in traps if len(said.split()) > 70] == []


def test_a_trap_stands_once_in_the_book():
    titles = Counter(title for page in TEACHING for title, _ in TRAP.findall(text(page)))
    assert [title for title, times in titles.items() if times > 1] == []
    assert 20 <= len(titles) <= 52  # three or four a chapter


@pytest.mark.parametrize("page", named(CHAPTERS))
def test_a_chapter_ends_with_today_with_questions_and_with_the_five(page: Path):
    found = [text(page).find(mark) for mark in ("\n## Today", "\n## Check yourself", "```{five}")]
    assert -1 not in found and found == sorted(found)


@pytest.mark.parametrize("page", named(CHAPTERS))
def test_the_right_answer_has_no_fixed_place(page: Path):
    quizzes = [boxes.read_options(one.splitlines()) for one in QUIZ.findall(text(page))]
    places = Counter([option.right for option in quiz].index(True) for quiz in quizzes)
    assert len(quizzes) >= 4
    assert max(places.values()) <= 0.6 * len(quizzes)


@pytest.mark.parametrize("page", named(sorted(BOOK.glob("*.md"))))
def test_no_box_is_lost_by_a_backtick_in_its_title(page: Path):
    # Markdown: such a line opens no box, and what follows is read as code up to the next fence.
    lost = re.findall(r"^```+\{[\w-]+\}.*`.*$", text(page), re.MULTILINE)
    assert not lost, f"{page.name}: say it without backticks: {lost}"


@pytest.mark.parametrize("one", [pytest.param(one, id=one.page) for one in DOCUMENTS])
def test_a_documents_page_has_each_of_its_errors_once(one: Any):
    shown = re.findall(r"^```+\{erratum\} (\S+)", text(BOOK / f"{one.page}.md"), re.MULTILINE)
    assert Counter(shown) == Counter(error.id for error in one.errors)
    assert [error.id for error in one.errors if not error.right] == []


def test_every_term_is_used_where_it_is_taught():
    defined = set(re.findall(r"^(?!#|```|The |what )(\S.*)$", glossary(), re.MULTILINE))
    used = {
        re.sub(r"^.*<(.+)>$", r"\1", term) for page in CHAPTERS for term in TERM.findall(text(page))
    }
    assert used - defined == set()
    assert defined - used == set()


def glossary() -> str:
    """The terms and what they mean."""
    return text(BOOK / "glossary.md").partition("```{glossary}")[2]


BROKEN = {
    "bold letters": r"\\mathbf|\\boldsymbol",
    "weights with a small letter below": r"\bW_\{?[qkvo]\b(?=[^`\n]*\$)(?<=\$W_[qkvo])",
    "heads from 1": r"\bh\s*=\s*1\b|\\sum_\{h=1\}|_1, *\\l?dots, *[A-Za-z^]*_[hH]\b",
    "a vocabulary that is called like the values": r"\|V\||\\lvert V \\rvert",
}


@pytest.mark.parametrize("what", BROKEN)
@pytest.mark.parametrize("page", named([*TEACHING, *NOTEBOOKS]))
def test_one_notation_for_all_pages(page: Path, what: str):
    pattern = re.compile(BROKEN[what])
    assert [line for line in prose(page).splitlines() if pattern.search(line)] == []

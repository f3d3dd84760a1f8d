"""Formgrader in a real browser: what an instructor sees before and after grading by hand."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from autograder import __main__ as command_line
from tests.browsing import BROWSER, Page, browsing
from tests.serving import HEADERS, Ask, serving
from tests.small_course import NAME, RIGHT, at_home, exchange, hand_in, make_course

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="grading needs Linux")
OLDEST = "/usr/bin/python3.11"  # Debian's own is 3.11.2, whose regular expressions know less
BY_HAND = {"why": 1.5, "draw": 3.0, "task": 4.0}
COMMENT = "Why is it so?"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The exchange."""
    return tmp_path_factory.mktemp("exchange")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory, shared: Path) -> Path:
    """A course of which ada's work came by the exchange, and bela's without a time."""
    root = make_course(tmp_path_factory.mktemp("course"), hooks=True).root
    exchange(root, shared)
    hand_in(root, "bela", RIGHT)
    return root


@pytest.fixture(scope="module")
def formgrader(root: Path) -> Iterator[tuple[int, Ask]]:
    """A server with formgrader."""
    with serving(root) as served:
        yield served


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A browser's page."""
    with browsing(tmp_path_factory.mktemp("chromium"), HEADERS) as page:
        yield page


def shown(port: int, page: Page) -> dict[str, tuple[str, ...]]:
    """Status and score of every student, as the browser shows the list of submissions."""
    address = f"http://127.0.0.1:{port}/formgrader/manage_submissions/{NAME}"
    there = "document.querySelectorAll('td.status span').length == 2"
    soup = BeautifulSoup(page.show(address, there), "html.parser")
    found = {}
    for row in soup.select("#main-table tr"):
        who, *told = (row.select(f"td.{kind}") for kind in ("student-id", "status", "score"))
        found[who[0].get_text()] = tuple(cell.get_text(strip=True) for (cell,) in told)
    return found


def grade_by_hand(ask: Ask, student: str) -> None:
    """Enter points and a comment as formgrader's page does."""
    submissions = json.loads(ask(f"formgrader/api/submitted_notebooks/{NAME}/numbers"))
    (id,) = [one["id"] for one in submissions if one["student"] == student]
    for grade in json.loads(ask(f"formgrader/api/grades?submission_id={id}")):
        if grade["name"] in BY_HAND:
            points = {"manual_score": BY_HAND[grade["name"]], "extra_credit": None}
            ask(f"formgrader/api/grade/{grade['id']}", "PUT", points)
    for comment in json.loads(ask(f"formgrader/api/comments?submission_id={id}")):
        if comment["name"] == "why":
            ask(f"formgrader/api/comment/{comment['id']}", "PUT", {"manual_comment": COMMENT})


@pytest.mark.skipif(BROWSER is None, reason="no chromium on this machine")
def test_the_status_is_right_at_every_step_and_what_was_given_by_hand_stays(
    root: Path,
    shared: Path,
    formgrader: tuple[int, Ask],
    page: Page,
    monkeypatch: pytest.MonkeyPatch,
):
    port, ask = formgrader
    monkeypatch.chdir(root)
    needs = "needs autograding"
    assert {who: status for who, (status, _) in shown(port, page).items()} == {
        "ada": needs,
        "bela": needs,
    }
    assert command_line.main(["grade", "--no-report"]) == 0
    before = shown(port, page)
    assert before == dict.fromkeys(("ada", "bela"), ("needs manual grading", "6 / 17"))
    grade_by_hand(ask, "ada")
    by_hand = before | {"ada": ("graded", "14.5 / 17")}
    assert shown(port, page) == by_hand
    answer = ask(f"formgrader/api/submission/{NAME}/ada/autograde", "POST", {})
    assert json.loads(answer)["success"], answer
    assert shown(port, page) == by_hand
    assert command_line.main(["grade", "--no-report", "--again"]) == 0
    assert shown(port, page) == by_hand
    for command in ("generate_feedback", "release_feedback"):
        answer = ask(f"formgrader/api/assignment/{NAME}/{command}", "POST", {})
        assert json.loads(answer)["success"], answer
    home = root / "homes" / "ada"
    at_home(home, shared, "fetch_feedback", "ada")
    (path,) = (home / NAME / "feedback").rglob("numbers.html")
    soup = BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")
    text = " ".join(soup.get_text().split())
    assert "(Score: 14.5 / 17.0)" in text and "Score: 1.5 / 2.0" in text and COMMENT in text


@pytest.mark.skipif(
    sys.version_info[:2] != (3, 11) or not Path(OLDEST).is_file(),
    reason="no other Python 3.11 on this machine that could use the same packages",
)
def test_a_submission_is_shown_by_the_oldest_python_that_readme_promises(
    root: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(root)
    assert command_line.main(["grade", "--no-report"]) == 0
    with serving(root, OLDEST) as (_, ask):
        submissions = json.loads(ask(f"formgrader/api/submitted_notebooks/{NAME}/numbers"))
        page = ask(f"formgrader/submissions/{submissions[0]['id']}/?index=0")
        assert "Student's answer" in page

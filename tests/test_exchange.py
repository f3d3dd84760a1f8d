"""nbgrader's exchange from end to end, from the release to the feedback that is fetched."""

import hashlib
import os
import sys
from pathlib import Path

import pytest

from autograder import __main__ as command_line
from tests.small_course import (
    NAME,
    RIGHT,
    at_home,
    exchange,
    hand_in,
    make_class,
    make_course,
    nbgrader,
    run,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="grading needs Linux")
RELEASE = 'c.ExchangeFactory.release_feedback = "autograder.classroom.outbound.SafeRelease"\n'
STRANGE = ["", "../../x", "g" * 128, "a" * 300, "ab\n" * 40]  # what is no secret


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course of which ada has fetched and submitted the assignment, and others sent odd files."""
    root = tmp_path_factory.mktemp("course")
    make_course(root, hooks=True)
    shared = tmp_path_factory.mktemp("exchange")
    exchange(root, shared)
    for number, text in enumerate(STRANGE):
        path = hand_in(root, f"odd{number}", RIGHT).with_name("submission_secret.txt")
        path.write_text(text)
    secret = hand_in(root, "linked", RIGHT).with_name("submission_secret.txt")
    secret.symlink_to(root / "submitted" / "ada" / NAME / "submission_secret.txt")
    os.mkfifo(hand_in(root, "piped", RIGHT).with_name("submission_secret.txt"))
    hand_in(root, "empty", RIGHT).write_text("")
    return root


def released(root: Path, student: str) -> str:
    """The page that a student fetches, once feedback has been released."""
    nbgrader(root, "release_feedback", NAME)
    config = (root / "nbgrader_config.py").read_text()
    shared = Path(config.split('c.Exchange.root = "')[1].split('"')[0])
    home = root / "homes" / student
    at_home(home, shared, "fetch_feedback", student)
    (page,) = (home / NAME / "feedback").rglob("numbers.html")
    return page.read_text(encoding="utf-8")


def test_feedback_comes_back_by_the_exchange_however_it_was_graded(
    root: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(root)
    for way in ("ours", "forced page", "nbgrader's"):
        if way == "ours":
            assert command_line.main(["grade", "--no-report", "--again"]) == 0
        elif way == "forced page":
            nbgrader(root, "generate_feedback", NAME, "--force")
        else:
            nbgrader(root, "autograde", NAME, "--force")
        page = root / "feedback" / "ada" / NAME / "numbers.html"
        assert released(root, "ada") == page.read_text(encoding="utf-8"), way


def test_no_secret_of_a_students_is_written_but_one_of_that_form(root: Path):
    for folder in ("autograded", "feedback"):
        secrets = {
            path.parents[1].name: path.read_text()
            for path in (root / folder).rglob("submission_secret.txt")
        }
        stamped = {path.parents[1].name for path in (root / folder).rglob("timestamp.txt")}
        assert stamped == (set(secrets) if folder == "feedback" else {"ada"})
        given = root / "submitted" / "ada" / NAME / "submission_secret.txt"
        assert secrets["ada"] == given.read_text()
        assert len(set(secrets.values())) == len(secrets) == 1 + len(STRANGE) + 3
        assert {len(secret) for secret in secrets.values()} == {128}
        assert set("".join(secrets.values())) <= set("0123456789abcdef")


def test_a_secret_that_another_has_taken_fetches_no_page(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(root)
    own = root / "submitted" / "ada" / NAME / "submission_secret.txt"
    assert command_line.main(["grade", "--no-report"]) == 0
    nbgrader(root, "release_feedback", NAME)
    hand_in(root, "mallory", RIGHT).with_name(own.name).write_text(own.read_text())
    before = pages(root)
    capsys.readouterr()
    for way in ("ours", "nbgrader's"):
        if way == "ours":
            assert command_line.main(["grade", "--no-report"]) == 0
            assert "that ada, mallory each handed in, the same" in capsys.readouterr().out
        else:
            nbgrader(root, "autograde", NAME, "--student=mallory", "--force")
        for folder in ("autograded", "feedback"):
            written = [root / folder / who / NAME / own.name for who in ("ada", "mallory")]
            assert len({path.read_text() for path in (own, *written)}) == 3, way
    nbgrader(root, "release_feedback", NAME)
    after = pages(root)
    assert after | before == after and len(after) == len(before) + 2


def test_every_page_is_released_and_no_name_commands_the_terminal(
    root: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(root)
    odd = ("new\nline", "bell\x1b]0;mine\x07", "[a]da", "b\udcff")
    for student in odd:
        hand_in(root, student, RIGHT)
    assert command_line.main(["grade", "--no-report"]) == 0
    secret = root / "feedback" / "empty" / NAME / "submission_secret.txt"
    secret.unlink()
    before = pages(root)
    with (root / "nbgrader_config.py").open("a") as file:
        file.write(RELEASE)
    said = nbgrader(root, "release_feedback", NAME)
    assert "\x1b" not in said and "empty/numbers.html was not released" in said
    for student in odd:
        own = root / "feedback" / student / NAME
        text = (own / "submission_secret.txt").read_text() + "numbers"
        name = hashlib.md5(text.encode()).hexdigest()
        assert f"{name}.html" not in before
        assert pages(root)[f"{name}.html"] == (own / "numbers.html").read_bytes()
    assert not any(name.endswith("-tmp.html") for name in pages(root))


def test_a_page_that_is_a_link_publishes_nothing(root: Path, tmp_path: Path):
    if RELEASE not in (root / "nbgrader_config.py").read_text():
        with (root / "nbgrader_config.py").open("a") as file:
            file.write(RELEASE)
    page = root / "feedback" / "ada" / NAME / "numbers.html"
    (tmp_path / "private").write_text("the instructor's own")
    page.unlink()
    page.symlink_to(tmp_path / "private")
    said = nbgrader(root, "release_feedback", NAME)
    assert "ada/numbers.html was not released: it is a link" in said
    assert not any(b"the instructor's own" in content for content in pages(root).values())


def test_a_folder_that_was_renamed_shares_no_secret_with_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    taught = make_class(tmp_path)
    secret = taught.submission("ada", NAME) / "submission_secret.txt"
    secret.write_text("a" * 32)
    assert run(tmp_path, "grade") == 0
    (taught.submitted / "ada").rename(taught.submitted / "ada lee")
    assert (
        run(tmp_path, "grade") == run(tmp_path, "report") == run(tmp_path, "export", "moodle") == 0
    )
    assert "each handed in" not in capsys.readouterr().out
    beside = {who: taught.feedback / who / NAME / secret.name for who in ("ada", "ada lee")}
    assert (beside["ada lee"].read_text() == "a" * 32) != (beside["ada"].read_text() == "a" * 32)


def pages(root: Path) -> dict[str, bytes]:
    """What is published, by name."""
    shared = (root / "nbgrader_config.py").read_text().split('c.Exchange.root = "')[1]
    found = Path(shared.partition('"')[0], "small", "feedback").glob("*.html")
    return {path.name: path.read_bytes() for path in found}

"""The exchange from the release to the feedback, by an instructor and three students.

Each is a system user without any other's rights; only root can make such, see `users`.
"""

import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from bs4 import BeautifulSoup

from tests.small_course import NAME, PAGE, RIGHT, make_course
from tests.users import Users

if sys.platform != "linux" or os.geteuid():
    pytest.skip("only root on Linux can be other users", allow_module_level=True)

COLLECT = 'c.ExchangeFactory.collect = "autograder.classroom.inbound.SafeCollect"\n'
PROF, STUDENTS = "iprof", ("ada", "bela", "chidi")
WRONG = {"square": "def square(x):\n    return x * abs(x)"}
BY_HAND = f"""
from nbgrader.api import Gradebook
with Gradebook("sqlite:///gradebook.db") as book:
    grade = book.find_grade("why", "numbers", "{NAME}", "ada")
    grade.manual_score, grade.needs_manual_grade = 1.5, False
    book.find_comment("why", "numbers", "{NAME}", "ada").manual_comment = "Why <so>?"
    book.db.commit()
"""
STATUS = f"""
import json, os
from nbgrader.apps.api import NbGraderAPI
from nbgrader.coursedir import CourseDirectory
shown = NbGraderAPI(CourseDirectory(root=os.getcwd())).get_submissions("{NAME}")
print("shown", json.dumps([[one["student"], one["autograded"], one["score"]] for one in shown]))
"""


@pytest.fixture(scope="module")
def users() -> Iterator[Users]:
    """Who takes part, with an exchange that everybody may write to."""
    with temporary() as folder, Users(folder, 41000, (PROF, *STUDENTS)) as users:
        status, said = users.run(
            "ada", "python", "import autograder.classroom.grade, torch, nbgrader"
        )
        if status:
            pytest.skip(f"ordinary users cannot be made or read this course here: {said[-300:]}")
        (folder / "exchange").mkdir()
        (folder / "exchange").chmod(0o777)
        course = users.home(PROF) / "course"
        make_course(course, hooks=True)
        with (course / "nbgrader_config.py").open("a") as file:
            file.write(f'{PAGE}{COLLECT}c.Exchange.root = "{folder / "exchange"}"\n')
        own(course, users.home(PROF))
        for who in STUDENTS:
            config = f'c = get_config()\nc.Exchange.root = "{folder / "exchange"}"\n'
            (users.home(who) / "nbgrader_config.py").write_text(config)
        yield users


@contextmanager
def temporary() -> Iterator[Path]:
    """A folder that everybody may read, gone when all is done or skipped."""
    folder = Path(tempfile.mkdtemp(prefix="exchange-"))
    try:
        folder.chmod(0o755)
        yield folder
    finally:
        shutil.rmtree(folder)


def own(path: Path, like: Path) -> None:
    """Give a folder with all that lies in it to whom another belongs."""
    for each in (path, *path.rglob("*")):
        os.chown(each, like.stat().st_uid, like.stat().st_gid)


def prof(users: Users, *command: str) -> str:
    """Run a command as the instructor, in the course."""
    status, said = users.run(PROF, *command, where="course")
    assert status == 0, said
    return said


def student(users: Users, who: str, command: str, *more: str) -> str:
    """Run one of nbgrader's commands as a student, at home."""
    status, said = users.run(who, "nbgrader", command, NAME, "--course=small", *more)
    assert status == 0, said
    return said


def hand_in(users: Users, who: str, answers: dict[str, str]) -> None:
    """Write these answers into what was fetched, and submit it."""
    path = users.home(who) / NAME / "numbers.ipynb"
    content = json.loads(path.read_text())
    for cell in content["cells"]:
        cell["source"] = answers.get(cell["id"], cell["source"])
    path.write_text(json.dumps(content))
    student(users, who, "submit")


def status(users: Users) -> dict[str, Any]:
    """What formgrader shows the instructor: whether it was graded, and points."""
    shown = json.loads(prof(users, "python", STATUS).split("shown ")[1])
    return {who: [graded, points] for who, graded, points in shown}


def fetched(users: Users, who: str) -> list[str]:
    """The pages that a student has fetched, the oldest first."""
    student(users, who, "fetch_feedback")
    pages = sorted((users.home(who) / NAME / "feedback").rglob("numbers.html"))
    assert {page.stat().st_uid for page in pages} == {users.home(who).stat().st_uid}
    soups = [BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser") for page in pages]
    return [" ".join(soup.get_text().split()) for soup in soups]


def points(page: str) -> float:
    """What a page says of all points."""
    (found,) = re.findall(r"Altogether(?: so far)?: (\S+) of 17 points", page)
    return float(found)


@pytest.fixture(scope="module")
def first_round(users: Users) -> Users:
    """Released, fetched, submitted, collected, graded, one answer by hand; feedback released."""
    prof(users, "nbgrader", "generate_assignment", NAME)
    prof(users, "nbgrader", "release_assignment", NAME)
    for who in STUDENTS:
        assert NAME in student(users, who, "list")
        student(users, who, "fetch_assignment")
    for who, answers in zip(STUDENTS, (RIGHT, RIGHT | WRONG, {}), strict=True):
        hand_in(users, who, answers)
    prof(users, "nbgrader", "collect", NAME)
    prof(users, "autograder", "grade", "--no-report")
    assert status(users) == {"ada": [True, 6], "bela": [True, 4], "chidi": [True, 0]}
    prof(users, "python", BY_HAND)
    prof(users, "nbgrader", "autograde", NAME, "--force")
    prof(users, "nbgrader", "generate_feedback", NAME)
    prof(users, "nbgrader", "release_feedback", NAME)
    return users


def test_each_student_fetches_the_own_page_with_what_was_given_by_hand(first_round: Users):
    (ada,), (bela,), (chidi,) = (fetched(first_round, who) for who in STUDENTS)
    assert [points(page) for page in (ada, bela, chidi)] == [7.5, 4, 0]
    assert "Why <so>?" in ada and "Why <so>?" not in bela
    assert status(first_round) == {"ada": [True, 7.5], "bela": [True, 4], "chidi": [True, 0]}


def test_what_is_handed_in_once_more_is_graded_and_fetched_once_more(first_round: Users):
    hand_in(first_round, "chidi", RIGHT)
    prof(first_round, "nbgrader", "collect", NAME, "--update")
    assert status(first_round)["chidi"] == [False, 0]
    assert "1 graded, 2 unchanged" in prof(first_round, "autograder", "grade", "--no-report")
    assert status(first_round)["chidi"] == [True, 6]
    prof(first_round, "nbgrader", "release_feedback", NAME)
    assert points(fetched(first_round, "chidi")[-1]) == 6
    assert len(fetched(first_round, "ada")) == 1


def test_no_student_reads_what_is_anothers(first_round: Users):
    users = first_round
    shared = users.home(PROF).parent / "exchange" / "small"
    inbound = [str(path) for path in (shared / "inbound").iterdir() if "ada+" in path.name]
    (page,) = (users.home("ada") / NAME / "feedback").rglob("numbers.html")
    look = "import os, sys\nfor path in {!r}:\n    print(os.listdir(path))"
    closed = [users.home(PROF) / "course", users.home("ada"), shared / "inbound"]
    for path in [*map(str, closed), str(shared / "feedback")]:
        code, said = users.run("bela", "python", look.format([path]))
        assert code and "PermissionError" in said, path
    assert inbound and page.is_file()


def test_no_student_hands_in_for_another(first_round: Users):
    users, when = first_round, "2099-01-01 10:00:00.000000 UTC"
    inbound = users.home(PROF).parent / "exchange" / "small" / "inbound"
    forge = (
        "import os, pathlib\n"
        f"folder = pathlib.Path({str(inbound)!r}, 'ada+{NAME}+{when}+x')\n"
        "folder.mkdir(); folder.joinpath('forged.txt').touch(); folder.chmod(0o755)\n"
    )
    assert users.run("bela", "python", forge)[0] == 0
    said = prof(users, "nbgrader", "collect", NAME, "--update")
    assert f"ada+{NAME}+{when}+x was not collected: it is bela's, not ada's" in said
    there = users.home(PROF) / "course" / "submitted" / "ada" / NAME
    assert (there / "numbers.ipynb").is_file() and not (there / "forged.txt").exists()

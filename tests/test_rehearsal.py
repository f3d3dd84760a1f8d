"""A course's own tests are tried before anybody is graded: reference, release, known answers."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from autograder.authoring import known, processes, rehearsal, trials
from autograder.authoring.building import read
from autograder.authoring.rehearsal import rehearse
from autograder.authoring.trials import runner
from autograder.classroom.classes import Class
from autograder.classroom.grade import grade
from autograder.classroom.journal import read_journal
from autograder.common.course import Course
from autograder.isolation import clock
from autograder.isolation.clock import doubt
from autograder.isolation.outcomes import Doubtful
from autograder.judge import rehearsal as rehearsing
from tests.small_course import NAME, RIGHT, hand_in, make_class, scores

linux = pytest.mark.skipif(sys.platform != "linux", reason="grading needs Linux")


@pytest.fixture
def taught(tmp_path: Path) -> Class:
    """The small class, handed in and not graded."""
    return make_class(tmp_path)


LIAR = """class Liar:
    def is_integer(self): return True
def third(x): return Liar()"""


@linux
def test_an_ordinary_course_knows_what_its_reference_gives(taught: Class):
    path = taught.course.root / "source" / NAME / "numbers.ipynb"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("math.isclose(third(1), 1 / 3)", "third(3).is_integer()"))
    hand_in(taught.course.root, "ada", RIGHT | {"third": LIAR})
    grade(taught, [NAME], students=["ada", "bela"], progress=False)
    prints = processes.fingerprints(taught.course, {NAME: read(taught.course, NAME)})
    shelf = processes.known_mistakes(taught.course, NAME, prints[NAME])
    assert {test for test in shelf.questions if shelf.of(test)[0]} == {
        "square-seen",
        "square-hidden",
        "third-values",
    }
    assert scores(taught) == {"ada": 3, "bela": 4}


@linux
def test_what_two_notebooks_tests_of_one_name_give_is_known_apart(taught: Class):
    path = taught.course.root / "source" / NAME / "numbers.ipynb"
    text = path.read_text(encoding="utf-8").replace("x * x", "x ** 3")
    text = text.replace("square(3) == 9, 'the square of 3 is 9'", "square(3) == 27")
    text = text.replace("square(2) == 4", "square(2) == 8").replace("square(-5) == 25", "False")
    path.with_name("cubes.ipynb").write_text(text, encoding="utf-8")
    handed_in = hand_in(taught.course.root, "ada", RIGHT | {"third": "def third(x):\n    return 0"})
    shutil.copy(handed_in, handed_in.with_name("cubes.ipynb"))
    grade(taught, [NAME], students=["ada"], progress=False)
    for notebook in read_journal(taught)["ada", NAME].notebooks:
        told = {verdict.test: verdict.told for verdict in notebook.verdicts}
        assert told["third-values"] == "third: Yours is 0, expected 0.333333."
        if notebook.name == "cubes":
            assert told["square-seen"] == "square: Yours is 9, expected 27."
            assert "no fault of yours" in told["square-hidden"]
        else:
            assert told["square-seen"] == told["square-hidden"] == ""


LENDS = (
    "import tempfile; path = tempfile.mkdtemp() + '/three'; open(path, 'w').write('abc'); "
    "assert third(path) == 3"
)


@linux
def test_it_is_known_what_the_reference_gives_where_a_test_hands_over_a_file(taught: Class):
    path = taught.course.root / "source" / NAME / "numbers.ipynb"
    text = path.read_text(encoding="utf-8").replace("return x / 3", "return len(open(x).read())")
    path.write_text(text.replace("assert math.isclose(third(1), 1 / 3)", LENDS))
    hand_in(taught.course.root, "ada", RIGHT | {"third": "def third(x):\n    return 2"})
    grade(taught, [NAME], students=["ada"], progress=False)
    (verdict,) = (
        one
        for one in read_journal(taught)["ada", NAME].notebooks[0].verdicts
        if one.test == "third-values"
    )
    assert verdict.told == "third: Yours is 2, expected 3."


READS = (
    "def third(x):\n    with open('data/one.txt') as file:\n        return x * float(file.read())"
)


@linux
def test_the_instructors_files_lie_beside_answers_and_tests(taught: Class):
    path = taught.course.root / "source" / NAME / "numbers.ipynb"
    (path.parent / "data").mkdir()
    (path.parent / "data" / "one.txt").write_text(str(1 / 3))
    (path.parent / "beside.py").write_text("def read(name):\n    return float(open(name).read())\n")
    text = path.read_text(encoding="utf-8")
    text = text.replace(
        '"import math"', r'"import math\nimport beside\none = beside.read(\"data/one.txt\")"'
    )
    path.write_text(text.replace("third(1), 1 / 3", "third(1), one"))
    hand_in(taught.course.root, "ada", RIGHT | {"third": READS})
    assert rehearse(taught.course, [NAME]) == []
    grade(taught, [NAME], students=["ada", "noor"], progress=False)
    assert scores(taught) == {"ada": 6, "noor": 0}
    prints = processes.fingerprints(taught.course, {NAME: read(taught.course, NAME)})
    assert processes.known_mistakes(taught.course, NAME, prints[NAME]).of("third-values")[0]


def test_modules_of_the_course_are_readable_for_students_and_nothing_else(course: Course):
    found = processes.own_modules(["lab", "json", "numpy", "no_such_module"])
    assert found == [course.root / "lab"]


@linux
def test_a_grader_that_cannot_be_rehearsed_says_which_test(taught: Class):
    path = taught.course.root / "source" / NAME / "numbers.ipynb"
    text = path.read_text(encoding="utf-8")
    assert rehearse(taught.course, [NAME]) == []
    path.write_text(text.replace("assert square(3) == 9", "assert True or square(3)"))
    (complaint,) = rehearse(taught.course, [NAME])
    assert "square-seen" in complaint and "untouched release gets 1 points" in complaint
    assert read_journal(taught) == {}


@linux
def test_cells_may_ask_whether_they_are_graded_where_known_answers_are_tried(taught: Class):
    path = taught.course.root / "source" / NAME / "numbers.ipynb"
    text = path.read_text(encoding="utf-8")
    asked = r'"import math\nimport os\ngraded = os.environ.get(\"NBGRADER_EXECUTION\")"'
    text = text.replace('"import math"', asked)
    path.write_text(
        text.replace("assert square(3) == 9", "assert graded == 'autograde' and square(3) == 9")
    )
    before = os.environ.get("NBGRADER_EXECUTION")
    with runner(taught.course, NAME) as run:
        (went,) = run({}, ["square-seen"]).values()
    assert went.status == "passed"
    assert os.environ.get("NBGRADER_EXECUTION") == before


@pytest.mark.parametrize("busy", [True, False])
def test_what_a_busy_machine_may_have_ended_is_tried_once_more(
    course: Course, monkeypatch: pytest.MonkeyPatch, busy: bool
):
    chapter = "01_embedding"
    monkeypatch.setattr(clock, "_doubts", 0)

    def ended(*_: object) -> bytes:
        doubt(is_certain=not busy)
        return b"some test did not end in time"

    def rehearsed(*_: object) -> rehearsing.Rehearsal:
        doubt(is_certain=not busy)
        return rehearsing.Rehearsal()

    monkeypatch.setattr(known, "learnt", ended)
    monkeypatch.setattr(rehearsing, "rehearse", rehearsed)
    state = processes.State(course, {chapter: read(course, chapter)}, None, {chapter: "today's"})
    assert isinstance(trials.try_one(state, chapter), Doubtful) is busy
    assert isinstance(rehearsal.rehearse_one(state, chapter), Doubtful) is busy

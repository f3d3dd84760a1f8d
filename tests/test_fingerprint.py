"""Grades are made again when anything changes that they depend on, and when nothing else does."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell

from autograder.common.course import Course
from autograder.judge import fingerprint
from autograder.judge.assignment import Assignment, read_assignment
from tests.conftest import ROOT
from tests.small_course import NAME, make_course

LAB = {
    "__init__.py": '"""A course\'s own package."""\n',
    "check.py": "from .near import TOLERANCE\n\n\ndef close(a, b):\n    return a - b < TOLERANCE\n",
    "near.py": '"""How near is near."""\n\nTOLERANCE = 1e-10  # small\n',
    "words.py": 'from pathlib import Path\n\nWORDS = Path(__file__).with_name("words.txt")\n',
    "words.txt": "one two\n",
    "bench.py": "import lab.check\n",
}
PRINT = """
from pathlib import Path
from autograder.judge import fingerprint
from autograder.judge.assignment import read_assignment
from autograder.common.course import Course
print(fingerprint.of(Course(Path.cwd()), read_assignment(Path("source", "ps1"))))
"""
JUDGES = [
    *("common.results", "common.syntax", "common.scopes", "isolation.confine", "isolation.pool"),
    *("isolation.machine", "isolation.supervisor", "bridge.arrays", "bridge.peer"),
    *("bridge.session", "bridge.student", "bridge.tensors", "bridge.wire", "judge.assignment"),
    *("judge.diagnose", "judge.differences", "judge.intake", "judge.parcel", "judge.received"),
    *("judge.rules", "judge.search", "judge.steps", "judge.testing", "judge.work", "judge.looks"),
    *("authoring.answers", "authoring.known", "authoring.processes", "authoring.rehearsal"),
    *("authoring.source", "authoring.trials", "classroom.warm"),
]
NO_JUDGES = [
    *(
        "__main__",
        "commands.authoring",
        "commands.classroom",
        "common.headings",
        "authoring.building",
        "authoring.mutants",
    ),
    *("authoring.release", "checking.check"),
    *("classroom.bench", "classroom.classes", "classroom.demo", "classroom.exports"),
    *("classroom.feedback", "classroom.grade", "classroom.hooks", "classroom.journal"),
    *("classroom.pages", "classroom.rebuild", "classroom.report", "classroom.similar"),
    *("classroom.keeper", "classroom.report_figures", "classroom.result_files", "classroom.store"),
]
MORE = "\nONE_MORE = 1\n"


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small course with a package of its own, and a copy of the grader beside it."""
    root = tmp_path_factory.mktemp("fingerprint") / "course"
    make_course(root)
    shutil.move(root / "source" / NAME, root / "source" / "ps1")
    path = root / "source" / "ps1" / "numbers.ipynb"
    notebook = nbformat.read(path, 4)
    imports = "%matplotlib inline\nfrom lab import words\nfrom lab.check import close"
    notebook.cells.insert(0, new_code_cell(imports, id="imports"))
    nbformat.write(notebook, path)
    (root / "lab").mkdir()
    for name, text in LAB.items():
        (root / "lab" / name).write_text(text, encoding="utf-8")
    without = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "autograder", root / "autograder", ignore=without)
    return root


@pytest.fixture(scope="module")
def before(original: Path) -> str:
    """Its fingerprint."""
    return told(original)


@pytest.fixture
def box(original: Path, before: str, tmp_path: Path) -> Path:
    """A copy to change."""
    return shutil.copytree(original, tmp_path / "course")


def told(root: Path, code: str = PRINT) -> str:
    """What a new process of the grader that lies there makes of the course that lies there."""
    environment = os.environ | {"PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def add(path: str, text: str = MORE) -> Callable[[Path], None]:
    """Something more at the end of a file."""

    def change(root: Path) -> None:
        with (root / path).open("a", encoding="utf-8") as file:
            file.write(text)

    return change


def swap(path: str, old: str, new: str) -> Callable[[Path], None]:
    """Other words in a file."""

    def change(root: Path) -> None:
        before = (root / path).read_text(encoding="utf-8")
        assert old in before
        (root / path).write_text(before.replace(old, new, 1), encoding="utf-8")

    return change


MATTERS = {
    "what a notebook's import imports": swap("lab/near.py", "1e-10", "1e10"),
    "what a notebook imports": swap("lab/check.py", "a - b", "abs(a - b)"),
    "the package of what it imports": add("lab/__init__.py"),
    "a data file beside what it imports": add("lab/words.txt"),
    "a test": swap("source/ps1/numbers.ipynb", "1 / 3", "2 / 6"),
    "a rule": add("source/ps1/rules.toml", "[late]\npolicy = 'none'\n"),
    "a file in a folder": lambda root: (
        (root / "source/ps1/data").mkdir() or (root / "source/ps1/data/a.csv").write_text("1")
    ),
    "a package beside the notebook that imports its own parts": lambda root: (
        (root / "source/ps1/tools").mkdir()
        or (root / "source/ps1/tools/__init__.py").write_text("from . import a\nfrom .a import b\n")
    ),
    "a setting": add("nbgrader_config.py", "\nc.Autograder.reference_stands_in = True\n"),
    "what a mistake is told": add("autograder/judge/diagnose.py"),
    "what runs in the sandbox": add("autograder/bridge/student.py"),
    "what a submission may take": swap(
        "autograder/classroom/warm.py", "SECONDS = ", "SECONDS = 1 + "
    ),
}
DOES_NOT = {
    "a comment, a docstring and layout": lambda root: [
        change(root)
        for change in (
            swap("lab/near.py", "# small", "# tiny"),
            swap("lab/near.py", '"""How near is near."""\n', '"""Near."""\n\n\n\n'),
            add("autograder/judge/diagnose.py", "\n\n# A last word.\n"),
            swap("autograder/judge/looks.py", '"""', '"""So: '),
        )
    ],
    "what no notebook imports": add("lab/bench.py"),
    "where it lies": lambda root: root.rename(root.with_name("moved")),
    "a file that cannot be read": lambda root: (root / "build/fingerprints.json").write_text("[{"),
    "no file": lambda root: (root / "build/fingerprints.json").unlink(),
    "a report or whatever else grades nothing": lambda root: [
        add(f"autograder/{name}.py")(root) for name in NO_JUDGES
    ],
}


@pytest.mark.parametrize("what", MATTERS)
def test_it_changes_with_what_a_grade_depends_on(before: str, box: Path, what: str):
    MATTERS[what](box)
    assert told(box) != before


@pytest.mark.parametrize("what", DOES_NOT)
def test_it_does_not_change_with_anything_else(before: str, box: Path, what: str):
    DOES_NOT[what](box)
    assert told(box if box.exists() else box.with_name("moved")) == before


def test_what_grades_is_found_by_its_imports(example: tuple[Course, Assignment]):
    judges, libraries = fingerprint._judges(example[0])
    assert {f"autograder.{name}" for name in JUDGES} <= judges.keys()
    assert judges.keys().isdisjoint(f"autograder.{name}" for name in NO_JUDGES)
    assert {"torch", "numpy", "IPython"} <= libraries
    assert libraries.isdisjoint({"tqdm", "nbgrader", "sqlalchemy", "pygments"})


def test_what_was_read_once_is_not_read_again(original: Path, before: str):
    never = (
        "from autograder.judge import fingerprint\nfingerprint._read = fingerprint._names = None\n"
    )
    assert told(original, never + PRINT) == before


@pytest.fixture
def example(tmp_path: Path) -> tuple[Course, Assignment]:
    """The small course, read here."""
    course = make_course(tmp_path)
    return course, read_assignment(tmp_path / "source" / NAME)


def test_versions_count_of_python_and_of_the_libraries(
    example: tuple[Course, Assignment], monkeypatch: pytest.MonkeyPatch
):
    found = {fingerprint.of(*example)}
    monkeypatch.setattr(fingerprint, "_version", lambda name: "0")
    found.add(fingerprint.of(*example))
    monkeypatch.setattr(fingerprint.platform, "python_version", lambda: "3.99.0")
    found.add(fingerprint.of(*example))
    assert len(found) == 3


def test_a_library_is_found_under_the_name_that_it_is_imported_by():
    assert fingerprint._version("torch") and fingerprint._version("IPython")
    assert fingerprint._version("dateutil")  # of the distribution python-dateutil
    assert fingerprint._version("no_such_library") == ""


def test_a_late_time_counts_for_whose_it_is(example: tuple[Course, Assignment]):
    course, assignment = example
    late = replace(assignment.rules.late, due=datetime(2026, 3, 1, tzinfo=UTC), times={"ada": 5.0})
    other = replace(late, times={"ada": 6.0})

    def key(student: str, late: object, collected: float) -> str:
        ruled = replace(assignment, rules=replace(assignment.rules, late=late))
        return fingerprint.of_submission(course, ruled, student, "bytes", collected)

    assert key("ada", late, 1.0) != key("ada", other, 1.0)
    assert key("ada", late, 1.0) == key("ada", late, 2.0)  # the LMS knows
    assert key("bela", late, 1.0) == key("bela", other, 1.0)
    assert key("bela", late, 1.0) == key("bela", late, 2.0)  # nobody knows
    trusted = replace(late, trust_timestamp=True)
    assert key("bela", trusted, 1.0) != key("bela", trusted, 2.0)
    never = replace(late, due=None)
    assert key("bela", never, 1.0) == key("bela", never, 2.0)


def test_a_class_is_graded_again_when_it_has_changed_and_only_then(box: Path):
    swap("source/ps1/numbers.ipynb", "math.isclose(third(1), 1 / 3)", "close(third(1), 0)")(box)
    place = box / "submitted" / "ada" / "ps1"
    place.mkdir(parents=True)
    shutil.copy(box / "source" / "ps1" / "numbers.ipynb", place)
    command = "import sys; from autograder.__main__ import main; sys.exit(main(['grade']))"
    assert "1 graded" in told(box, command)
    add("autograder/classroom/report.py")(box)
    assert "1 unchanged" in told(box, command)
    swap("lab/near.py", "1e-10", "1e10")(box)
    assert "1 graded" in told(box, command)
    assert "1 unchanged" in told(box, command)

"""Grade a class: every submission ends in a grade with a reason, and none can stop the others.

Tests run as nbgrader runs them, in a kernel of their own for each submission. A submission that
nbgrader cannot take is graded 0; a journal beside the gradebook remembers what was graded, so that
an interrupted run goes on where it stopped.
"""

import hashlib
import json
import multiprocessing
import os
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path

import nbformat
from nbformat.warnings import MissingIDFieldWarning
from nbgrader.api import Gradebook, MissingEntry
from sqlalchemy.exc import OperationalError, SAWarning
from tqdm import tqdm
from traitlets.config import Config

from autograder.course import Course, CourseError
from autograder.feedback import verdicts
from autograder.pages import page
from autograder.release import build_instructor, demand, nbgrader
from autograder.source import read_source

MAX_BYTES = 20_000_000
ATTEMPTS = 5


@dataclass(frozen=True)
class Class:
    """Where one class's work lies: submissions, what grading makes of them, and the gradebook."""

    course: Course
    folder: Path  # holds submitted/, autograded/, feedback/ and gradebook.db

    @property
    def submitted(self) -> Path:
        """submitted/<student>/<chapter>/<chapter>.ipynb"""
        return self.folder / "submitted"

    @property
    def autograded(self) -> Path:
        """The graded notebooks, for the instructor's eyes."""
        return self.folder / "autograded"

    @property
    def feedback(self) -> Path:
        """The pages that students get."""
        return self.folder / "feedback"

    @property
    def database(self) -> str:
        """nbgrader's gradebook; writers of several processes wait for each other."""
        return f"sqlite:///{self.folder / 'gradebook.db'}?timeout=60"

    @property
    def journal(self) -> Path:
        """What was graded already, and how it ended."""
        return self.folder / "gradebook.journal.json"

    def settings(self) -> Config:
        """nbgrader's settings for these folders."""
        settings = Config()
        settings.CourseDirectory.submitted_directory = str(self.submitted)
        settings.CourseDirectory.autograded_directory = str(self.autograded)
        settings.CourseDirectory.feedback_directory = str(self.feedback)
        settings.CourseDirectory.db_url = self.database
        return settings

    def students(self) -> list[str]:
        """Everybody with a folder in submitted/."""
        if not self.submitted.is_dir():
            raise CourseError(
                f"{self.submitted} does not exist; put each submission at "
                "submitted/<student>/<chapter>/<chapter>.ipynb (nbgrader collect does)."
            )
        return sorted(folder.name for folder in self.submitted.iterdir() if folder.is_dir())


@dataclass(frozen=True)
class Result:
    """How grading one submission ended."""

    student: str
    chapter: str
    key: str  # of everything the grade depends on
    reason: str = ""  # why it is 0 as a whole; empty if the tests ran
    failures: tuple[tuple[str, str], ...] = ()  # test id, what it said


def grade(
    taught: Class, chapters: Sequence[str], students: Sequence[str] = (), jobs: int = 2
) -> list[Result]:
    """Grade what is new or changed; returns the results of all submissions asked for."""
    for student in set(students) - set(taught.students()):
        raise CourseError(f"There is no student {student!r} in {taught.submitted}.")
    for chapter in chapters:
        _enter_assignment(taught, chapter)
    journal = read_journal(taught)
    wanted = [
        (student, chapter, _key(taught, student, chapter))
        for student in taught.students()
        for chapter in chapters
        if (not students or student in students)
    ]
    todo = [task for task in wanted if (old := journal.get(task[:2])) is None or old.key != task[2]]
    for result in _work(taught, todo, jobs):
        journal[result.student, result.chapter] = result
        _write_journal(taught, journal)
    return [journal[student, chapter] for student, chapter, _ in wanted]


def read_journal(taught: Class) -> dict[tuple[str, str], Result]:
    """Results so far, by student and chapter."""
    if not taught.journal.is_file():
        return {}
    rows = json.loads(taught.journal.read_text(encoding="utf-8"))
    results = [
        Result(**row | {"failures": tuple((test, said) for test, said in row["failures"])})
        for row in rows
    ]
    return {(result.student, result.chapter): result for result in results}


def unreadable(path: Path) -> str:
    """Why nbgrader could not take this submission; empty if it can."""
    if not path.is_file():
        others = sorted(p.name for p in path.parent.glob("*")) if path.parent.is_dir() else []
        found = f"found {', '.join(others)}" if others else "the folder is empty"
        return f"no file named {path.name} was submitted ({found})"
    if path.stat().st_size > MAX_BYTES:
        return f"{path.name} is larger than {MAX_BYTES // 1_000_000} MB"
    try:
        content = json.loads(path.read_bytes().decode("utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError):
        return f"{path.name} is not a notebook (it is no JSON text)"
    cells = content.get("cells") if isinstance(content, dict) else None
    if not isinstance(cells, list) or not all(isinstance(cell, dict) for cell in cells):
        return f"{path.name} is not a notebook (it holds no list of cells)"
    ids = Counter(str(_grade_id(cell)) for cell in cells if _grade_id(cell) is not None)
    doubled = [id for id, count in ids.items() if count > 1]
    if doubled:
        return f"the cell {doubled[0]} is there twice; keep one of the two"
    return ""


def _grade_id(cell: dict) -> object:
    metadata = cell.get("metadata")
    marks = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    return marks.get("grade_id") if isinstance(marks, dict) else None


def _notebook(taught: Class, student: str, chapter: str) -> Path:
    return taught.submitted / student / chapter / f"{chapter}.ipynb"


def _key(taught: Class, student: str, chapter: str) -> str:
    """Changes when the submission, the tests or the settings do."""
    parts = [
        _notebook(taught, student, chapter),
        taught.course.instructor(chapter),
        taught.course.root / "nbgrader_config.py",
    ]
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.read_bytes() if part.is_file() else b"missing")
    return digest.hexdigest()


def _enter_assignment(taught: Class, chapter: str) -> None:
    """Make the gradebook know the chapter's cells as its source has them today."""
    build_instructor(taught.course, chapter)
    taught.folder.mkdir(parents=True, exist_ok=True)
    marker = taught.folder / "release" / f"{chapter}.sha256"
    digest = read_source(taught.course.source(chapter)).digest
    if marker.is_file() and marker.read_text(encoding="utf-8") == digest:
        return
    settings = taught.settings()
    settings.CourseDirectory.release_directory = str(marker.parent)
    with nbgrader(taught.course, settings) as api:
        demand(api.generate_assignment(chapter, force=True), f"enter {chapter} in the gradebook")
    marker.write_text(digest, encoding="utf-8")


def _work(taught: Class, todo: Sequence[tuple[str, str, str]], jobs: int) -> Iterable[Result]:
    """Grade in `jobs` processes, with a progress bar; results as they come."""
    if not todo:
        return
    context = multiprocessing.get_context("spawn")
    with (
        ProcessPoolExecutor(max_workers=min(jobs, len(todo)), mp_context=context) as pool,
        tqdm(total=len(todo), desc="grading", unit="notebook") as bar,
    ):
        for done in as_completed([pool.submit(_grade_one, taught, *task) for task in todo]):
            bar.update()
            yield done.result()


def _grade_one(taught: Class, student: str, chapter: str, key: str) -> Result:
    warnings.filterwarnings("ignore", category=MissingIDFieldWarning)  # of tests brought back
    warnings.filterwarnings("ignore", category=SAWarning)  # of nbgrader's own way to add a row
    reason = unreadable(_notebook(taught, student, chapter)) or _autograde(taught, student, chapter)
    if reason:
        _enter_zero(taught, student, chapter)
        _explain(taught, student, chapter, reason)
        return Result(student, chapter, key, reason)
    with nbgrader(taught.course, taught.settings()) as api:
        demand(api.generate_feedback(chapter, student, force=True), f"write {student}'s feedback")
    return Result(student, chapter, key, "", tuple(_failures(taught, student, chapter)))


def _autograde(taught: Class, student: str, chapter: str) -> str:
    """Let nbgrader grade one submission; why it could not, or nothing."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # kernels side by side share the cores
    log = ""
    for _ in range(ATTEMPTS):
        with nbgrader(taught.course, taught.settings()) as api:
            result = api.autograde(chapter, student, force=True, create=True)
        if result["success"]:
            return ""
        log = f"{result.get('error', '')}\n{result.get('log', '')}"
        if "database is locked" not in log:
            break
    kinds = {
        "DeadKernelError": "the notebook's process died while it ran",
        "UnresponsiveKernelError": "the notebook hung and could not be interrupted",
        "Timeout waiting for IOPub": "the notebook hung and could not be interrupted",
        "Schema": "the notebook's grading marks were changed",
        "MissingEntry": "the notebook's grading marks were changed",
        "ValidationError": "the notebook's format was damaged",
    }
    for sign, words in kinds.items():
        if sign in log:
            return words
    lines = [line for line in log.strip().splitlines() if "Error" in line]
    return f"nbgrader could not run the notebook ({lines[-1].strip() if lines else 'unknown'})"


def _failures(taught: Class, student: str, chapter: str) -> Iterable[tuple[str, str]]:
    path = taught.autograded / student / chapter / f"{chapter}.ipynb"
    for cell in nbformat.read(path, as_version=4).cells:
        marks = cell.metadata.get("nbgrader", {})
        if cell.cell_type == "code" and marks.get("grade"):
            yield from ((marks["grade_id"], said) for said in verdicts(cell))


def _enter_zero(taught: Class, student: str, chapter: str) -> None:
    """A grade row of 0 for each cell that the tests would have graded."""
    for attempt in range(ATTEMPTS):
        try:
            with Gradebook(taught.database) as book:
                book.update_or_create_student(student)
                book.update_or_create_submission(chapter, student)
                submission = book.find_submission_notebook(chapter, chapter, student)
                for row in submission.grades:
                    row.auto_score, row.needs_manual_grade = 0, False
                book.db.commit()
            return
        except (OperationalError, MissingEntry):
            if attempt == ATTEMPTS - 1:
                raise


def _explain(taught: Class, student: str, chapter: str, reason: str) -> None:
    """A feedback page for a submission that could not be run."""
    folder = taught.feedback / student / chapter
    folder.mkdir(parents=True, exist_ok=True)
    text = page("unreadable.html", student=student, chapter=chapter, reason=reason)
    (folder / f"{chapter}.html").write_text(text, encoding="utf-8")


def _write_journal(taught: Class, journal: dict[tuple[str, str], Result]) -> None:
    partial = taught.journal.with_suffix(".part")
    rows = [asdict(journal[key]) for key in sorted(journal)]
    partial.write_text(json.dumps(rows, indent=1, ensure_ascii=False), encoding="utf-8")
    partial.replace(taught.journal)

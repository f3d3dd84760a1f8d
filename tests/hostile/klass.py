"""The class of everybody who tries something, graded once, and what became of it."""

import hashlib
import os
import sqlite3
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from autograder.classroom.classes import Class
from autograder.classroom.grade import grade
from autograder.classroom.journal import read_journal
from autograder.common.course import Course
from autograder.common.names import plain
from autograder.common.results import Result
from tests.hostile.course import CHAPTER, POINTS, Tiny, write_course
from tests.hostile.steps import FULL, Row, extra, prefix, right, row

VICTIM_WORDS = "own words of the victim 8841"
VICTIM = row(
    "victim",
    right(),
    prefix("square", f"# {VICTIM_WORDS}\nprint('{VICTIM_WORDS}')\n"),
    extra("square(3)"),
    expected=FULL,
)
SECRET_VARIABLE = "COURSE_SECRET"


@dataclass
class Graded:
    """What grading the class gave."""

    tiny: Tiny
    taught: Class
    results: dict[str, Result]
    said: str  # everything on standard output and error
    before: dict[str, str]  # digests of what grading has to leave alone
    after: dict[str, str]
    left: list[str] = field(default_factory=list)  # processes of students that still run

    def result(self, student: str) -> Result:
        """What became of one submission."""
        return self.results[student]

    def told(self, student: str) -> str:
        """All that is told of a submission, to the student or the instructor."""
        result = self.result(student)
        texts = [result.reason, *(f"{flag.kind}: {flag.words}" for flag in result.flags)]
        for notebook in result.notebooks:
            texts += [notebook.reason, *notebook.notes, *notebook.by_tests]
            texts += [f"{v.test}: {v.status}: {v.told} {v.said}" for v in notebook.verdicts]
        return "\n".join(filter(None, texts))

    def feedback(self, student: str) -> str:
        """The pages that a student gets."""
        folder = self.taught.feedback / student
        return "\n".join(
            path.read_text(encoding="utf-8", errors="surrogateescape")
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        )

    def shown(self, student: str) -> dict[str, str]:
        """Everything of a result that a student may get, by where it stands."""
        result = self.result(student)
        told = [result.reason]
        printed = []
        for notebook in result.notebooks:
            told += [notebook.reason, *notebook.notes, *notebook.by_tests]
            told += [v.told for v in notebook.verdicts]
            printed += notebook.outputs.values()
        flags = "\n".join(flag.words for flag in result.flags)
        return {
            "feedback": self.feedback(student),
            "told": "\n".join(told),
            "outputs": "\n".join(printed),
            "flags": flags,
        }

    def points(self, student: str) -> dict[str, float | None]:
        """The gradebook's automatic scores of a student, by test."""
        return self._points[plain(student)]

    @cached_property
    def _points(self) -> dict[str, dict[str, float | None]]:
        found: dict[str, dict[str, float | None]] = defaultdict(dict)
        for who, test, score in self._ask("select student_id, cell_name, auto_score"):
            if test in POINTS:
                found[who][test] = score
        return found

    def manual_scores(self) -> set[float | None]:
        """All manual scores in the gradebook."""
        return {score for (score,) in self._ask("select distinct manual_score")}

    def _ask(self, select: str) -> list[tuple]:
        book = sqlite3.connect(self.taught.folder / "gradebook.db")
        try:
            return book.execute(f"with grades as ({GRADES}) {select} from grades").fetchall()
        finally:
            book.close()


GRADES = """
    select submitted_assignment.student_id as student_id, base_cell.name as cell_name,
        grade.auto_score as auto_score, grade.manual_score as manual_score
    from grade
    join base_cell on base_cell.id = grade.cell_id
    join submitted_notebook on submitted_notebook.id = grade.notebook_id
    join submitted_assignment on submitted_assignment.id = submitted_notebook.assignment_id
"""


def make_class(root: Path, rows: Sequence[Row]) -> Tiny:
    """Write the course and one submission for each row, named after it."""
    tiny = write_course(root)
    for row_ in rows:
        handin = row_.make(tiny.handin())
        handin.write(root / "submitted" / row_.id / CHAPTER, root)
    return tiny


def grade_class(tiny: Tiny, jobs: int = 2) -> Graded:
    """Grade everybody in one run."""
    taught = Class(Course(tiny.root), tiny.root)
    before = digests(tiny.root)
    log = tiny.root.parent / f"{tiny.root.name}.log"
    os.environ[SECRET_VARIABLE] = tiny.canaries.word
    with log.open("w+b") as file, _redirected(file.fileno()):
        try:
            grade(taught, [CHAPTER], jobs=jobs, progress=False)
        finally:
            del os.environ[SECRET_VARIABLE]
    results = {student: result for (student, _), result in read_journal(taught).items()}
    said = log.read_text(encoding="utf-8", errors="replace")
    return Graded(tiny, taught, results, said, before, digests(tiny.root), survivors())


def digests(root: Path) -> dict[str, str]:
    """What lies in the course and in submitted/, by content."""
    found = {}
    for place in ("source", "submitted"):
        for folder, folders, names in os.walk(root / place):
            for name in [*folders, *names]:
                path = Path(folder) / name
                content = "folder"
                if path.is_symlink():
                    content = str(path.readlink())
                elif path.is_file():
                    content = hashlib.sha256(path.read_bytes()).hexdigest()
                found[os.fsdecode(os.path.relpath(path, root))] = content
    found["nbgrader_config.py"] = (root / "nbgrader_config.py").read_text(encoding="utf-8")
    return found


def survivors() -> list[str]:
    """Processes that students started and that still run."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if b"3177" in words:
            found.append(b" ".join(words).decode("utf-8", "replace"))
    return found


class _redirected:
    """Standard output and error of this process and its children go to a file."""

    def __init__(self, target: int) -> None:
        self.target = target

    def __enter__(self) -> None:
        self.kept = [os.dup(1), os.dup(2)]
        os.dup2(self.target, 1)
        os.dup2(self.target, 2)

    def __exit__(self, *_: object) -> None:
        for number, kept in zip((1, 2), self.kept, strict=True):
            os.dup2(kept, number)
            os.close(kept)

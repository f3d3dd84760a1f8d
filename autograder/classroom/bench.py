"""How fast this grader is beside stock nbgrader: both grade the same class, in turn.

Or every chapter by this grader alone, with what each kind of process takes.

Both are run as a person runs them, as commands in processes of their own, from nothing graded to
everything graded; the clock on the wall counts. Stock nbgrader has its standard settings: it runs
each notebook in a kernel, one after another. What each makes once for a chapter, whatever the size
of the class, is made before: the release by stock, the known mistakes' outcomes by ours.
"""

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, median

from nbgrader.api import Gradebook

from autograder.authoring.building import build_changed, build_instructor, read
from autograder.authoring.source import read_source
from autograder.authoring.trials import try_known_mistakes
from autograder.classroom import demo
from autograder.classroom.classes import Class
from autograder.classroom.journal import read_journal
from autograder.common.course import Course, CourseError
from autograder.common.results import Cost

CONFIG = """c = get_config()
c.CourseDirectory.course_id = "bench"
c.CourseDirectory.root = {root!r}
"""
# Stock nbgrader stops at a doubled cell and grades nobody after it: it could not be timed.
MIXED = tuple(maker for maker in demo.MAKERS if maker is not demo.doubled_cell)
# On these both have to agree to the point. The others stock nbgrader cannot grade, or cannot help
# losing a test that was deleted.
CLEAN = (demo.reference, demo.variant, demo.one_mistake, demo.two_mistakes, demo.nothing, demo.half)
POLL = 2.0  # seconds between two looks at the memory; each look takes time from the run


@dataclass(frozen=True)
class Used:
    """What all processes of a command have used."""

    seconds: float  # on the wall
    peak_mb: float = 0.0  # memory at a time; 0 if the system does not tell


@dataclass
class Run:
    """One command that graded a class."""

    who: str
    students: int
    used: Used
    scores: dict[str, dict[str, float | None]] = field(default_factory=dict)  # student -> test
    costs: list[Cost] = field(default_factory=list)

    @property
    def per_minute(self) -> float:
        """Submissions a minute."""
        return 60 * self.students / self.used.seconds


def bench(
    course: Course, chapter: str, students: int = 100, rounds: int = 1, jobs: int = 2
) -> float:
    """Grade a class with both, say how it went, and return how many times faster ours is."""
    runs: list[Run] = []
    _try_known_mistakes(course, [chapter], jobs)
    clean = make_class(course, chapter, students, _folder(course))
    for number in range(rounds):
        say(f"round {number + 1} of {rounds}: {students} submissions of {chapter}")
        runs.append(run_stock(course, chapter, students))
        say(_line(runs[-1]))
        runs.append(run_ours(course, chapter, students, jobs))
        say(_line(runs[-1]))
        _compare(runs[-2], runs[-1], clean)
    print_table(runs)
    took = {who: median(r.used.seconds for r in runs if r.who == who) for who in ("stock", "ours")}
    ratio = took["stock"] / took["ours"]
    print(f"ratio: {ratio:.1f}")
    return ratio


def bench_sizes(course: Course, chapter: str, sizes: Sequence[int], jobs: int = 2) -> list[Run]:
    """Grade a small and a large class with ours: cost and memory of both."""
    runs: list[Run] = []
    _try_known_mistakes(course, [chapter], jobs)
    for students in sizes:
        make_class(course, chapter, students, _folder(course))
        runs.append(run_ours(course, chapter, students, jobs))
        say(_line(runs[-1]))
    print_table(runs)
    first, *others = runs
    for run in others:
        print(
            f"{run.students} cost {run.used.seconds / first.used.seconds:.2f} times what "
            f"{first.students} cost, and {run.used.peak_mb - first.used.peak_mb:+.0f} MB"
        )
    return runs


def bench_chapters(
    course: Course, chapters: Sequence[str], students: int = 100, rounds: int = 1, jobs: int = 2
) -> None:
    """Grade a class in every chapter with ours: how fast, and who has worked for how long."""
    _try_known_mistakes(course, chapters, jobs)
    runs: dict[str, list[Run]] = {chapter: [] for chapter in chapters}
    for number in range(rounds):
        say(f"round {number + 1} of {rounds}: {students} submissions of each chapter")
        for chapter in chapters:
            make_class(course, chapter, students, _folder(course))
            runs[chapter].append(run_ours(course, chapter, students, jobs))
            say(f"{chapter}: {_line(runs[chapter][-1])}")
    print(f"{'chapter':<24} {'per minute':>10} {'tests':>9} {'answers':>9} {'messages':>9}")
    for chapter, found in runs.items():
        print(_chapter_line(chapter, sorted(found, key=lambda run: run.per_minute)[rounds // 2]))
    print(
        "tests, answers: processor time per submission where tests run, and where answers run;\n"
        "start, forks and files are not in it. Messages: from tests to answers."
    )
    print(
        f"slowest: {min(median(r.per_minute for r in one) for one in runs.values()):.0f} a minute"
    )


def _try_known_mistakes(course: Course, chapters: Sequence[str], jobs: int) -> None:
    """What they give is made before the clock runs, chapter by chapter."""
    build_changed(course, chapters)
    for chapter in chapters:
        try_known_mistakes(course, {chapter: read(course, chapter)}, jobs, sandboxed=True)


def _chapter_line(chapter: str, run: Run) -> str:
    tests = 1000 * sum(cost.judge for cost in run.costs) / run.students
    answers = 1000 * sum(cost.answers for cost in run.costs) / run.students
    milliseconds = (f"{one:.0f} ms" for one in (tests, answers))
    words = " ".join(f"{one:>9}" for one in milliseconds)
    calls = mean(cost.calls for cost in run.costs)
    return f"{chapter:<24} {run.per_minute:>10.0f} {words} {calls:>9.0f}"


def make_class(course: Course, chapter: str, students: int, folder: Path) -> list[str]:
    """Write a class's submissions, no two alike; returns those that both graders can grade."""
    shutil.rmtree(folder, ignore_errors=True)
    clean = []
    given = demo.Chapter(course, chapter)
    for number in range(students):
        student = f"student-{number + 1:04d}"
        maker = MIXED[number % len(MIXED)]
        work = given.work(maker, number)
        _sign(work, student)
        demo.hand_in(work, folder / "submitted" / student / chapter / f"{chapter}.ipynb")
        if maker in CLEAN:
            clean.append(student)
    return clean


def run_stock(course: Course, chapter: str, students: int) -> Run:
    """Grade a copy of the class with `nbgrader autograde`."""
    root = _copy(course, "stock")
    (root / "nbgrader_config.py").write_text(CONFIG.format(root=str(root)), encoding="utf-8")
    instructor = build_instructor(course, chapter)
    shutil.copytree(instructor.parent, root / "source" / chapter)
    nbgrader = [sys.executable, "-m", "nbgrader"]
    _command([*nbgrader, "generate_assignment", chapter], root, root / "generate.log")
    command = [*nbgrader, "autograde", chapter]
    used = _command(
        command, root, root / "bench.log", must_succeed=False
    )  # some of the class cannot be read
    database = f"sqlite:///{root / 'gradebook.db'}"
    return Run("stock", students, used, _scores(database, course, chapter))


def run_ours(course: Course, chapter: str, students: int, jobs: int) -> Run:
    """Grade a copy of the class with `python -m autograder grade`."""
    root = _copy(course, "ours")
    command = [*(sys.executable, "-m", "autograder", "grade", chapter), "--no-report"]
    command += ["--folder", str(root), "--jobs", str(jobs)]
    used = _command(command, course.root, root / "bench.log")
    taught = Class(course, root)
    costs = [result.cost for result in read_journal(taught).values()]
    return Run("ours", students, used, _scores(taught.database, course, chapter), costs)


def print_table(runs: Sequence[Run]) -> None:
    """One line for each run."""
    print(
        f"{'grader':<8} {'students':>8} {'seconds':>9} {'per minute':>11} {'each':>9} {'memory':>9}"
    )
    for run in runs:
        each = f"{1000 * run.used.seconds / run.students:.0f} ms"
        print(
            f"{run.who:<8} {run.students:>8} {run.used.seconds:>9.1f} {run.per_minute:>11.1f} "
            f"{each:>9} {run.used.peak_mb:>6.0f} MB"
        )
    print(
        "memory: the most that all processes of a run, warm ones and students' included, had at a\n"
        f"time, looked at every {POLL:g} seconds (PSS: a page that several share counts once)"
    )


def say(text: str) -> None:
    """Progress, apart from the table."""
    print(text, file=sys.stderr, flush=True)


def _line(run: Run) -> str:
    return f"{run.who}: {run.used.seconds:.1f} s, {run.per_minute:.1f} submissions a minute"


def _folder(course: Course) -> Path:
    return course.root / "build" / "bench" / "class"


def _copy(course: Course, name: str) -> Path:
    root = course.root / "build" / "bench" / name
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(_folder(course), root)
    return root


def _sign(work: demo.Work, student: str) -> None:
    """Make this student's answers differ from everybody else's by a comment."""
    for cell in work.notebook["cells"]:
        if cell["cell_type"] == "code" and cell["id"] in work.answered:
            cell["source"] = f"# written by {student}\n{''.join(cell['source'])}"


def _command(
    command: Sequence[str], folder: Path, log_path: Path, *, must_succeed: bool = True
) -> Used:
    """Run a command; what its processes used."""
    # Neither with settings that the person at this machine has for nbgrader.
    environment = os.environ | {"OMP_NUM_THREADS": "1", "JUPYTER_NO_CONFIG": "1"}
    if hasattr(os, "sync"):
        os.sync()  # neither waits for the disk to take what the run before it has written
    with log_path.open("wb") as log:
        began = time.monotonic()
        process = subprocess.Popen(
            command, cwd=folder, stdout=log, stderr=subprocess.STDOUT, env=environment
        )
        watch = _Watch(process.pid)
        status = process.wait()
        seconds = time.monotonic() - began
    peak = watch.stop()
    if status and must_succeed:
        said = log_path.read_text(encoding="utf-8", errors="replace")
        raise CourseError(f"{' '.join(command)} failed: {said.strip()[-500:]}")
    return Used(seconds, peak)


class _Watch:
    """Looks at the memory of a process and all below it until it is stopped (Linux only)."""

    def __init__(self, pid: int):
        self._pid = pid
        self._peak = 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def stop(self) -> float:
        self._over.set()
        self._thread.join()
        return self._peak

    def _look(self) -> None:
        while not self._over.wait(POLL):
            self._peak = max(self._peak, sum(_megabytes(pid) for pid in _tree(self._pid)))


def _tree(pid: int) -> Iterator[int]:
    """A process and its descendants."""
    yield pid
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = path.read_text().split()
        except OSError:  # it has just ended
            continue
        for child in children:
            yield from _tree(int(child))


def _megabytes(pid: int) -> float:
    """A process's memory; what it shares with others is divided among them."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def _scores(database: str, course: Course, chapter: str) -> dict[str, dict[str, float | None]]:
    """Automatic scores by student and test."""
    tests = {cell.id for cell in read_source(course.source(chapter)).of_kind("test")}
    with Gradebook(database) as book:
        return {
            submission.student.id: {
                grade.name: grade.auto_score
                for notebook in submission.notebooks
                for grade in notebook.grades
                if grade.name in tests
            }
            for submission in book.assignment_submissions(chapter)
        }


def _compare(stock: Run, ours: Run, clean: Sequence[str]) -> None:
    """Both have to give every clean submission the same."""
    differing = [who for who in clean if stock.scores.get(who) != ours.scores.get(who)]
    if differing:
        first = differing[0]
        words = json.dumps({"stock": stock.scores.get(first), "ours": ours.scores.get(first)})
        raise CourseError(
            f"{len(differing)} of {len(clean)} clean submissions have other scores; {first} has "
            f"{words}"
        )
    say(f"same automatic scores on all {len(clean)} clean submissions")

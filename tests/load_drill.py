"""Grade thousands of made submissions, on this machine and on a cluster of which parts are killed.

    python -m tests.load_drill [--students 10000] [--chapter C] [--workers 2] [--kills 20]
                               [--only here|cluster] [--plot PATH] [--no-keep]

The class is the demo class's mix (right answers in many words, known mistakes, broken and missing
files) and some who attack. Each way of grading is checked against how the submissions were made:
nobody lost, nobody twice, every score as it was made. Started again, it goes on where it was
stopped: what was made is not made again, what was graded is not graded again. The class stays for a
second look; with `--no-keep` it goes once all has come out as it was made, and what has not stays.
"""

import argparse
import gzip
import random
import resource
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from nbgrader.api import Gradebook
from tqdm import tqdm

from autograder.authoring.building import build_changed, read
from autograder.authoring.release import require_fresh
from autograder.authoring.trials import try_known_mistakes
from autograder.classroom import demo
from autograder.classroom.classes import Class
from autograder.classroom.journal import results
from autograder.common.course import Course
from autograder.common.startup import use_own_tools
from tests.dask_cluster import LocalCluster
from tests.kill_drill import done_in, forget_grades

LOOK = 1.0  # seconds between two looks at the caller
WAYS = ("here", "cluster")
PLANNED = 100_000  # submissions for which it is reckoned what they would take


def quits(work: demo.Work, number: int) -> None:
    """Right answers, and one cell that ends its process as soon as it runs."""
    work.write_answers()
    cell = _first(work)
    work.cell(cell)["source"] = "import os\nos._exit(0)\n" + work.cell(cell)["source"]
    work.lose_question(cell)


def rewrites_tests(work: demo.Work, number: int) -> None:
    """Nothing answered; the tests say that all is well, and are worth more."""
    demo.nothing(work, number)
    for cell in work.notebook["cells"]:
        marks = cell["metadata"].get("nbgrader", {})
        if marks.get("grade"):
            cell["source"], marks["points"] = "pass", 1000


def floods(work: demo.Work, number: int) -> None:
    """Right answers, and far more printed than anybody reads."""
    work.write_answers()
    cell = work.cell(_first(work))
    cell["source"] += "\n\nfor _ in range(20):\n    print('x' * 100_000)\n"


def breaks_in(work: demo.Work, number: int) -> None:
    """Right answers, and a look for what is none of theirs, and a try to change it."""
    work.write_answers()
    cell = work.cell(_first(work))
    cell["source"] += (
        "\n\nimport glob\nfor _place in glob.glob('/home/*/**/gradebook.db', recursive=True):\n"
        "    open(_place, 'w').write('')\n"
    )


def _first(work: demo.Work) -> str:
    return work.source.of_kind("solution")[0].id


HOSTILE: tuple[demo.Maker, ...] = (quits, rewrites_tests, floods, breaks_in)
MIX = (*demo.MAKERS, *HOSTILE)


@dataclass
class Measured:
    """What one way of grading took."""

    way: str
    graded: int = 0
    seconds: float = 0.0
    over_time: list[tuple[float, int, float]] = field(default_factory=list)  # s, graded, MB


def name_of(number: int) -> str:
    """A student of the class."""
    return f"student-{number + 1:06d}"


def make(course: Course, chapter: str, students: int, folder: Path) -> dict[str, dict[str, int]]:
    """Write what is missing of the class's submissions; what each should score, by test."""
    given, expected = demo.Chapter(course, chapter), {}
    for number in tqdm(range(students), desc="making", unit="notebook"):
        work = given.work(MIX[number % len(MIX)], number)
        student = name_of(number)
        for cell in work.notebook["cells"]:  # no two are alike
            if cell["cell_type"] == "code" and cell["id"] in work.answered:
                cell["source"] = f"# written by {student}\n{''.join(cell['source'])}"
        path = folder / "submitted" / student / chapter / f"{chapter}.ipynb"
        if not path.parent.is_dir():
            demo.hand_in(work, path)
        expected[student] = work.expected()
    return expected


def grade(course: Course, chapter: str, folder: Path, options: Sequence[str]) -> Measured:
    """Run `grade` as a person does, and watch it."""
    command = [sys.executable, "-m", "autograder", "grade", chapter, "--no-report"]
    command += ["--folder", str(folder), *options]
    before, began = done_in(folder), time.monotonic()
    found = Measured("cluster" if "--on" in options else "here")
    process = subprocess.Popen(command, cwd=course.root)
    while process.poll() is None:
        now = time.monotonic() - began
        found.over_time.append((now, done_in(folder) - before, memory_of(process.pid)))
        time.sleep(LOOK)
    assert process.returncode == 0, f"the grader ended with status {process.returncode}"
    found.seconds, found.graded = time.monotonic() - began, done_in(folder) - before
    return found


def memory_of(pid: int) -> float:
    """Megabytes of a process that nobody else has."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text("ascii").splitlines()
    except OSError:  # it has just ended
        return 0.0
    kinds = ("Private_Clean:", "Private_Dirty:")
    return sum(int(line.split()[1]) for line in lines if line.startswith(kinds)) / 1024


class Trouble(threading.Thread):
    """Kills workers at random, as many times as was asked, and the scheduler once in the middle."""

    def __init__(
        self, cluster: LocalCluster, folder: Path, todo: int, kills: int, workers: int, seed: int
    ) -> None:
        """Nothing is killed yet."""
        super().__init__(daemon=True)
        self._cluster, self._folder, self._workers = cluster, folder, workers
        self._dice, self._over = random.Random(seed), threading.Event()
        self._first = done_in(folder)
        # spread over the run, each where it has come to something since the one before
        self._at = [(number + 1) * todo / (kills + 2) for number in range(kills)]
        self._scheduler_at = todo / 2 if kills else None
        self.killed = self.restarted = 0

    def run(self) -> None:
        """Until the run is over."""
        while not self._over.wait(0.2):
            done = done_in(self._folder) - self._first
            if self._scheduler_at is not None and done >= self._scheduler_at:
                self._scheduler_at = None
                self._cluster.kill_scheduler()
                self._over.wait(self._dice.uniform(0, 2))
                self._cluster.restart_scheduler()
                self.restarted += 1
            elif self._at and done >= self._at[0] and len(self._cluster.workers) > 0:
                self._at.pop(0)
                self._cluster.kill_worker(self._dice.randrange(len(self._cluster.workers)))
                self.killed += 1
            self._cluster.tend(self._workers)

    def stop(self) -> None:
        """The run is over."""
        self._over.set()
        self.join()


def on_cluster(
    course: Course, chapter: str, folder: Path, options: argparse.Namespace, todo: int
) -> Measured:
    """Grade on several workers' processes, some of which are killed on the way."""
    with LocalCluster(folder.with_name("workers"), options.workers) as cluster:
        trouble = Trouble(cluster, folder, todo, options.kills, options.workers, options.seed)
        trouble.start()
        try:
            found = grade(course, chapter, folder, ["--on", cluster.on])
        finally:
            trouble.stop()
    print(f"killed: {trouble.killed} workers; scheduler restarted: {trouble.restarted} time(s)")
    return found


def check(course: Course, chapter: str, folder: Path, expected: dict[str, dict[str, int]]) -> str:
    """Nobody lost, nobody twice, every score as it was made; what there is to say of it."""
    taught = Class(course, folder)
    told = Counter(one.result.student for one in results(taught))
    assert told == Counter(expected.keys()), "somebody is lost, or there twice, in the journal"
    wrong = {}
    for who, found in scores(taught, chapter):
        made = expected.pop(who)
        if (given := {test: found.get(test) for test in made}) != made:
            wrong[who] = {test: score for test, score in given.items() if score != made[test]}
    assert not expected, f"{len(expected)} are not in the gradebook"
    first = list(wrong.items())[:3]
    assert not wrong, f"{len(wrong)} have other scores than they were made for: {first}"
    pages = sum(1 for _ in taught.feedback.glob(f"*/{chapter}/*.html"))
    return f"{told.total()} in the journal, in the gradebook once each, {pages} pages; all as made"


def scores(taught: Class, chapter: str) -> Iterator[tuple[str, dict[str, float]]]:
    """Points by test, student by student."""
    with Gradebook(taught.database) as book:
        for submission in book.assignment_submissions(chapter):
            yield (
                submission.student.id,
                {
                    grade.name: grade.auto_score or 0
                    for notebook in submission.notebooks
                    for grade in notebook.grades
                },
            )


def disk(folder: Path, students: int) -> str:
    """Kilobytes a submission, by what they are for."""
    parts = []
    for name in ("submitted", "autograded", "feedback", "gradebook.journal.jsonl", "gradebook.db"):
        place = folder / name
        files = place.rglob("*") if place.is_dir() else [place]
        size = sum(path.stat().st_size for path in files if path.is_file())
        parts.append(f"{name} {size / 1024 / students:.1f}")
    return f"kB a submission: {', '.join(parts)}; a page packed by gzip {packed(folder):.1f}"


def packed(folder: Path, most: int = 200) -> float:
    """Kilobytes that a page of feedback takes when it is compressed, by some of them."""
    pages = [*islice((folder / "feedback").rglob("*.html"), most)]
    sizes = [len(gzip.compress(page.read_bytes())) for page in pages]
    return sum(sizes) / 1024 / max(1, len(sizes))


def summary(found: Measured) -> list[str]:
    """What was measured, in lines."""
    if not found.graded:
        return [f"{found.way}: nothing was left to grade"]
    each = found.seconds / found.graded
    lines = [
        f"{found.way}: {found.graded} graded in {found.seconds:.0f} s, {1000 * each:.0f} ms each, "
        f"{60 / each:.0f} a minute"
    ]
    quarters = [
        [
            megabytes
            for _, done, megabytes in found.over_time
            if low <= done < low + found.graded / 4
        ]
        for low in (found.graded * n / 4 for n in range(4))
    ]
    most = [f"{max(one):.0f}" if one else "-" for one in quarters]
    lines.append(
        f"{found.way}: memory of the caller, the most in each quarter: {' '.join(most)} MB"
    )
    lines.append(
        f"{found.way}: {PLANNED} would take {PLANNED * each / 3600:.1f} hours at this rate"
    )
    return lines


def plot(runs: Sequence[Measured], path: Path) -> None:
    """Cost against size: seconds and the caller's memory against how many are graded."""
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt

    figure, (above, below) = plt.subplots(2, 1, sharex=True, figsize=(7, 6))
    for run in runs:
        seconds, done, megabytes = zip(*run.over_time, strict=True)
        above.plot(done, seconds, label=run.way)
        below.plot(done, megabytes, label=run.way)
    above.set_ylabel("seconds")
    below.set_ylabel("memory of the caller, MB")
    below.set_xlabel("submissions graded")
    above.legend()
    figure.savefig(path, bbox_inches="tight")
    print(f"plot: {path}")


def read_options(words: Sequence[str] | None = None) -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--students", type=int, default=10_000)
    parser.add_argument("--chapter", default="01_embedding")
    parser.add_argument("--jobs", type=int, default=0, help="on this machine; by default all cores")
    parser.add_argument("--workers", type=int, default=2, help="processes of the cluster")
    parser.add_argument("--kills", type=int, default=20, help="of workers, and one scheduler's")
    parser.add_argument("--only", choices=WAYS, help="by default both ways")
    parser.add_argument("--plot", type=Path, help="write cost against size to this picture")
    parser.add_argument("--anew", action="store_true", help="forget what was graded before")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument(
        "--keep",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="the class for a second look; where something came out wrong it stays in any case",
    )
    parser.add_argument(
        "--folder", type=Path, default=Path("build", "load"), help="where classes lie"
    )
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> None:
    """Drill as the command line says."""
    options = read_options(words)
    use_own_tools()
    course = Course.find()
    chapter = course.select([options.chapter])[0]
    require_fresh(course, chapter)
    build_changed(course, [chapter])
    try_known_mistakes(course, {chapter: read(course, chapter)}, 1, sandboxed=True)
    print(f"{options.students} submissions of {chapter}, seed {options.seed}", flush=True)
    runs = []
    for way in [options.only] if options.only else WAYS:
        folder = course.root / options.folder / way / chapter
        if options.anew and folder.is_dir():
            forget_grades(folder)
        expected = make(course, chapter, options.students, folder)
        if way == "here":
            runs.append(grade(course, chapter, folder, ["--jobs", str(options.jobs)]))
        else:
            todo = max(0, options.students - done_in(folder))
            runs.append(on_cluster(course, chapter, folder, options, todo))
        print(f"{way}: {check(course, chapter, folder, expected)}")
        print(*summary(runs[-1]), f"{way}: {disk(folder, options.students)}", sep="\n", flush=True)
        if options.keep:
            print(f"{way}: kept for a second look: {folder}", flush=True)
        else:
            shutil.rmtree(folder)
            shutil.rmtree(folder.with_name("workers"), ignore_errors=True)  # their logs
    print(f"this command itself: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10} MB")
    if options.plot:
        plot(runs, options.plot)


if __name__ == "__main__":
    main()

"""Grade a class with three of the worst in it, on a machine that eight other processes keep busy.

    python -m tests.busy_drill [--chapter 03_attention] [--others 8] [--seconds 3]
    python -m tests.busy_drill --right 30

The demo class of one chapter is graded alone, and once more beside a submission that takes over
every name that tests use, one that loops in every cell, and one whose folder, times and texts no
ordinary file has. The run has to end with status 0, everybody with a grade, and all others with
the grade that they had alone.

A test may take 3 seconds of work in both runs, a tenth of what the course allows: what loops is
ended sooner, and who is right has less to spare, so the drill asks more and takes less.

With --right, the demo class of every chapter is graded, and so many right submissions in each,
beside the same others: every grade has to be the one that its making foretold.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from autograder.authoring.release import require_fresh
from autograder.classroom import demo
from autograder.classroom.classes import Class
from autograder.classroom.journal import read_journal
from autograder.common.course import Course
from autograder.common.names import plain
from autograder.common.startup import use_own_tools

TAKES_OVER = """\
import sys
for name in ("torch", "math", "assert_close", "assert_shape", "draw"):
    globals()[name] = __import__("sys")
try:
    import autograder.judge.attempts as a
    a.run_test = lambda student, cell, *_, **__: a.TestRun(cell.grade_id, "passed", 9.0)
except Exception:
    pass
"""
LOOPS = "while True:\n    pass\n"
LONG = "a" + "=a" * 60_000 + "=1\n" + "\n " * 20_000
SPIN = "while True: pass"
Scores = dict[str, dict[str, float]]


def main() -> int:
    """Run the drill; 0 if everything came out as it should."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chapter", default="03_attention")
    parser.add_argument("--others", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--right", type=int, default=0)
    options = parser.parse_args()
    use_own_tools()
    course = Course.find()
    if options.right:
        with tempfile.TemporaryDirectory() as folder:
            return drill_right(course, options.right, options.others, Path(folder))
    require_fresh(course, options.chapter)
    with tempfile.TemporaryDirectory() as folder:
        hurried = hurry(course, options.chapter, options.seconds, Path(folder) / "course")
        return drill(hurried, options.chapter, options.others, Path(folder))


def hurry(course: Course, chapter: str, seconds: float, folder: Path) -> Course:
    """A copy of the course whose tests may take no more than so many seconds each."""
    folder.mkdir()
    shutil.copy(course.root / "nbgrader_config.py", folder)
    for path in (course.source(chapter), course.instructor(chapter), course.release(chapter)):
        copy = folder / path.relative_to(course.root)
        shutil.copytree(path.parent, copy.parent)
    variants = course.variants(chapter).relative_to(course.root)
    (folder / variants).parent.mkdir(parents=True)
    shutil.copy(course.root / variants, folder / variants)
    rules = folder / "solutions" / chapter / "rules.toml"
    limits = f"[defaults]\nseconds = {seconds}\n\n"
    rules.write_text(limits + rules.read_text(encoding="utf-8"), encoding="utf-8")
    return Course(folder)


def drill(course: Course, chapter: str, others: int, folder: Path) -> int:
    """Grade both classes and compare."""
    taught = demo.make_class(course, [chapter], folder / "class")
    names = sorted(taught.students())
    worst, rest = names[:3], names[3:]
    alone = Class(course, folder / "alone")
    shutil.copytree(taught.submitted, alone.submitted)
    for student in worst:
        shutil.rmtree(alone.submitted / student, ignore_errors=True)
    print(f"grading {len(rest)} alone", flush=True)
    grade(course, chapter, alone)
    for student, spoil in zip(worst, (take_over, loop, be_odd), strict=True):
        spoil(course, chapter, taught.submitted / student)
    print(f"grading {len(names)}, three of them the worst, beside {others} others", flush=True)
    with busy(others):
        grade(course, chapter, taught)
    before, after = scores(alone), scores(taught)
    wrong = [name for name in rest if before.get(name) != after.get(name)]
    graded = len(read_journal(taught))
    print(f"{graded} of {len(names)} graded; {len(rest) - len(wrong)} of {len(rest)} as alone")
    for name in wrong:
        print(f"{name}: {before.get(name)} alone, {after.get(name)} beside the others")
    return int(bool(wrong) or graded < len(names))


def drill_right(course: Course, count: int, others: int, folder: Path) -> int:
    """Grade the demo class and right submissions of every chapter; compare with what is due."""
    chapters = course.chapters()
    taught = demo.make_class(course, chapters, folder / "class")
    due: dict = json.loads((taught.folder / "expected.json").read_text(encoding="utf-8"))
    given = {chapter: demo.Chapter(course, chapter) for chapter in chapters}
    for number in range(count):
        student = f"right-{number:03d}"
        due[student] = {}
        for chapter in chapters:
            maker = demo.variant if number % 2 else demo.reference
            work = given[chapter].work(maker, number // 2)
            demo.hand_in(work, taught.submitted / student / chapter / f"{chapter}.ipynb")
            due[student][chapter] = work.expected()
    with busy(others):
        grade(course, None, taught)
    found = read_journal(taught)
    wrong = 0
    for student, by_chapter in due.items():
        for chapter, points in by_chapter.items():
            result = found.get((student, chapter))
            got = (
                {v.test: v.score for one in result.notebooks for v in one.verdicts}
                if result
                else {}
            )
            if got != points:
                wrong += 1
                print(f"{student}, {chapter}: {got}, due {points}")
    number = sum(map(len, due.values()))
    print(f"{number - wrong} of {number} grades as foretold, beside {others} others")
    return int(bool(wrong))


def grade(course: Course, chapter: str | None, taught: Class) -> None:
    """Grade as an instructor does; anything but status 0 ends the drill."""
    command = [sys.executable, "-m", "autograder", "grade", *([chapter] if chapter else [])]
    command += ["--folder", str(taught.folder)]
    subprocess.run(command, cwd=course.root, check=True)


def scores(taught: Class) -> Scores:
    """Each student's points, test by test."""
    return {
        student: {v.test: v.score for one in result.notebooks for v in one.verdicts}
        for (student, _), result in read_journal(taught).items()
        if student == plain(student)
    }


def take_over(course: Course, chapter: str, folder: Path) -> None:
    """Bind every name that tests use, in every ordinary cell, and answer nothing."""
    _hand_in(course, chapter, folder, TAKES_OVER, answers=False)


def loop(course: Course, chapter: str, folder: Path) -> None:
    """Loop for ever in every cell."""
    _hand_in(course, chapter, folder, LOOPS, answers=True)


def be_odd(course: Course, chapter: str, folder: Path) -> None:
    """Texts that are slow to look at, in a folder of no name, from the year 71654."""
    _hand_in(course, chapter, folder, LONG, answers=True)
    odd = folder.with_name("\x1b[2Jodd\udcfc=1+1")
    folder.rename(odd)
    for path in (odd / chapter / f"{chapter}.ipynb", odd / chapter):
        with suppress(OSError):
            os.utime(path, (2**41, 2**41))


def _hand_in(course: Course, chapter: str, folder: Path, text: str, *, answers: bool) -> None:
    notebook = json.loads(course.release(chapter).read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        marks = cell["metadata"].get("nbgrader", {})
        is_answer = marks.get("solution") and not marks.get("grade")
        if cell["cell_type"] == "code" and (is_answer if answers else not marks):
            cell["source"] = text
    shutil.rmtree(folder, ignore_errors=True)
    path = folder / chapter / f"{chapter}.ipynb"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(notebook), encoding="utf-8")


@contextmanager
def busy(count: int) -> Iterator[None]:
    """Other processes that take all the time they can get."""
    spinning = [subprocess.Popen([sys.executable, "-c", SPIN]) for _ in range(count)]
    try:
        yield
    finally:
        for process in spinning:
            process.kill()
            process.wait()


if __name__ == "__main__":
    sys.exit(main())

"""Kill the grader again and again while it grades a class; in the end nothing may tell.

    python -m tests.kill_drill [--kills 50] [--students 60] [--chapter C]

Each run is killed with SIGKILL, now the main process alone, now the whole group, some while it
starts, some as soon as a few more results are in the journal. What stands in gradebook and files
when a last run was left alone must be what an undisturbed run gives.
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from nbgrader.api import Gradebook

from autograder.authoring.release import require_fresh
from autograder.classroom.bench import make_class
from autograder.classroom.classes import Class
from autograder.common.course import Course
from autograder.common.startup import use_own_tools

PATIENCE = 300  # seconds until a run that was not killed yet counts as hung


def command(course: Course, chapter: str, folder: Path) -> list[str]:
    """What is run, killed and run again."""
    grade = [sys.executable, "-m", "autograder", "grade", chapter, "--no-report", "--jobs", "2"]
    return [*grade, "--folder", str(folder)]


def grade_undisturbed(course: Course, chapter: str, folder: Path) -> None:
    """Grade a class from beginning to end, or from where it was left."""
    done = subprocess.run(
        command(course, chapter, folder), cwd=course.root, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def drill(course: Course, chapter: str, folder: Path, kills: int, students: int, seed: int) -> int:
    """Kill the grader this often in a class that is graded over and over; the number of rounds.

    Args:
        folder: the class, graded once without disturbance.
    """
    dice = random.Random(seed)
    left, rounds = kills, 0
    expected = state(course, chapter, folder)
    while left:
        rounds += 1
        forget_grades(folder)
        while left and done_in(folder) < students:
            left -= kill_once(course, chapter, folder, dice, students / kills)
        grade_undisturbed(course, chapter, folder)
        assert state(course, chapter, folder) == expected
    return rounds


def kill_once(course: Course, chapter: str, folder: Path, dice: random.Random, pace: float) -> bool:
    """Start a grader and kill it at a random moment; False if it was done before that."""
    process = subprocess.Popen(
        command(course, chapter, folder),
        cwd=course.root,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    if dice.random() < 0.2:  # while it starts
        time.sleep(dice.uniform(0, 3))
    else:
        wanted = done_in(folder) + dice.uniform(0.5, 2 * pace)
        deadline = time.monotonic() + PATIENCE
        while process.poll() is None and done_in(folder) < wanted:
            assert time.monotonic() < deadline, "the grader hangs"
            time.sleep(0.002)
        time.sleep(dice.uniform(0, 0.02))
    if process.poll() is None:
        kill = dice.choice([os.kill, os.killpg])
        kill(process.pid, signal.SIGKILL)
    status = process.wait()
    wait_for_end_of_group(process.pid)
    assert status in (0, -signal.SIGKILL), f"the grader ended with status {status}"
    return status != 0


def wait_for_end_of_group(group: int) -> None:
    """What the killed process had started has to end by itself."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.01)
    raise AssertionError("processes of the killed grader live on")


_counted: dict[Path, tuple[int, int]] = {}  # of a journal: bytes read, results in them


def done_in(folder: Path) -> int:
    """How many results the journal holds; only what is new of it is read."""
    path = Class(Course(folder), folder).journal
    if not path.is_file():
        return 0
    size, (read, count) = path.stat().st_size, _counted.get(path, (0, 0))
    if size < read:  # begun anew
        read, count = 0, 0
    with path.open("rb") as file:
        file.seek(read)
        lines = file.read(size - read).rpartition(b"\n")[0]
    count += lines.count(b'{"graded"')
    _counted[path] = (read + len(lines), count)
    return count


def forget_grades(folder: Path) -> None:
    """The same class again, not graded yet; the files that were handed in keep their times."""
    _counted.clear()
    for path in folder.iterdir():
        if path.is_dir() and path.name != "submitted":
            shutil.rmtree(path)
        elif not path.is_dir():
            path.unlink()


def state(course: Course, chapter: str, folder: Path) -> dict[str, Any]:
    """All that grading left: every row about a submission, and every file."""
    taught = Class(course, folder)
    with Gradebook(taught.database) as book:
        rows = {
            submission.student.id: (
                str(submission.timestamp),
                {
                    notebook.name: (
                        notebook.late_submission_penalty,
                        sorted(map(_grade, notebook.grades)),
                        sorted(map(_comment, notebook.comments)),
                    )
                    for notebook in submission.notebooks
                },
            )
            for submission in book.assignment_submissions(chapter)
        }
    files = {
        str(path.relative_to(folder)): path.read_bytes()
        for place in (taught.autograded, taught.feedback)
        for path in place.rglob("*")
        if path.is_file()
    }
    return {"rows": rows, "files": files}


def _grade(row: Any) -> tuple[str, ...]:
    scores = row.auto_score, row.manual_score, row.extra_credit, row.needs_manual_grade
    return row.cell.type, row.name, *map(str, scores)


def _comment(row: Any) -> tuple[str, ...]:
    return row.cell.type, row.name, str(row.auto_comment), str(row.manual_comment)


def main() -> None:
    """Drill as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--students", type=int, default=60)
    parser.add_argument("--chapter")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    use_own_tools()
    course = Course.find()
    chapter = course.select([options.chapter] if options.chapter else [])[0]
    require_fresh(course, chapter)
    folder = course.root / "build" / "drill"
    make_class(course, chapter, options.students, folder)
    grade_undisturbed(course, chapter, folder)
    print(f"seed {options.seed}; an undisturbed run is done", flush=True)
    rounds = drill(course, chapter, folder, options.kills, options.students, options.seed)
    print(
        f"killed {options.kills} times while grading {options.students} submissions ({rounds} "
        "rounds): scores, comments and files are those of an undisturbed run"
    )


if __name__ == "__main__":
    main()

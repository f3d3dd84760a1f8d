"""Kill the watcher again and again while works arrive; in the end nothing may tell.

    python -m tests.watch_drill [--kills 50] [--students 12]

Each watcher is killed with SIGKILL, alone or with all its processes, at a moment that is drawn:
while it starts, collects, grades or releases. Works go on arriving. After a last watcher that is
left alone everybody has to have the points of the newest work, each work stands in the history
once, and what was released is what grading wrote.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from autograder.classroom.classes import Class
from autograder.classroom.journal import read_changes
from autograder.common.startup import use_own_tools
from tests.small_course import NAME, RIGHT, scores
from tests.watched import Exchange

ANSWERS = {  # and what each is worth by its tests
    "right": (RIGHT, 6.0),
    "half": (RIGHT | {"square": "def square(x):\n    return x * abs(x)"}, 4.0),
    "none": ({}, 0.0),
    "broken": (RIGHT | {"third": "def third(x:"}, 3.0),
}
PATIENCE = 300.0  # seconds until a watcher that is left alone counts as hung


def drill(folder: Path, kills: int, students: int, seed: int) -> int:
    """Run it; the number of works that were handed in."""
    dice = random.Random(seed)
    exchange = Exchange(folder)
    due: dict[str, float] = {}
    works: dict[str, int] = {}

    def hand_in() -> None:
        student = f"student-{dice.randrange(students):02d}"
        answers, due[student] = ANSWERS[dice.choice([*ANSWERS])]
        works[student] = works.get(student, 0) + 1
        # a comment, so that each work is another
        more = {"draw": f"print({works[student]})"}
        exchange.submit(student, {**answers, **more} if answers else more)

    for number in range(kills):
        hand_in()
        watcher = start(exchange)
        end = time.monotonic() + dice.uniform(0.3, 6.0)
        while time.monotonic() < end:
            time.sleep(dice.uniform(0.1, 1.0))
            if dice.random() < 0.5:
                hand_in()
        if dice.random() < 0.5:
            watcher.kill()
        else:
            os.killpg(watcher.pid, signal.SIGKILL)
        watcher.wait()
        print(f"\rkilled {number + 1} of {kills}", end="", flush=True)
    finish(exchange, due)
    check(exchange, due, works)
    print(f"\r{sum(works.values())} works of {len(works)} students, {kills} kills: ", end="")
    return sum(works.values())


def start(exchange: Exchange) -> "subprocess.Popen[bytes]":
    """A watcher as an instructor starts it."""
    command = [sys.executable, "-m", "autograder", "watch", "--jobs", "2", "--every", "0.2"]
    place = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    quiet = subprocess.DEVNULL
    return subprocess.Popen(
        command, cwd=exchange.root, env=place, stdout=quiet, stderr=quiet, start_new_session=True
    )


def finish(exchange: Exchange, due: dict[str, float]) -> None:
    """Let a last watcher do what is left, until it waits; then ask it to end."""
    watcher = start(exchange)
    deadline = time.monotonic() + PATIENCE
    taught = Class(exchange.course, exchange.root)
    while scores(taught) != due or not is_out(exchange):
        assert time.monotonic() < deadline, f"it hangs: {scores(taught)}, due {due}"
        assert watcher.poll() is None, "it ended by itself"
        time.sleep(0.5)
    watcher.terminate()
    assert watcher.wait(60) == 0


def is_out(exchange: Exchange) -> bool:
    """Whether every page that grading wrote is what its student fetches."""
    pages = (exchange.root / "feedback").glob(f"*/{NAME}/numbers.html")
    return all(page.read_text() == exchange.page(page.parents[1].name) for page in pages)


def check(exchange: Exchange, due: dict[str, float], works: dict[str, int]) -> None:
    """Compare the end with what was handed in."""
    taught = Class(exchange.course, exchange.root)
    assert scores(taught) == due
    histories = read_changes(taught)
    assert {student for student, _ in histories} == due.keys()
    for (student, _), changes in histories.items():
        seen = [change["made_of"]["work"] for change in changes]
        assert len(seen) == len(set(seen)) <= works[student], f"{student}: {changes}"
    left = [path.name for path in exchange.root.rglob("*.part")]
    assert not left, left


def main() -> int:
    """Run the drill; 0 if nothing tells that anything was killed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--students", type=int, default=12)
    parser.add_argument("--seed", type=int, default=random.randrange(2**31))
    options = parser.parse_args()
    use_own_tools()
    print(f"seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        drill(Path(folder), options.kills, options.students, options.seed)
    print("all have the points of their newest work, and their pages are out")
    return 0


if __name__ == "__main__":
    sys.exit(main())

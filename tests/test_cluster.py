"""Grading on a cluster: the same grades to the byte, whoever is killed, cut off, old or hostile."""

import gc
import os
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import dask.config
import pytest

from autograder.classroom.classes import Class
from autograder.classroom.grade import Grader
from autograder.classroom.journal import results
from autograder.cluster.grading import Cluster, Patience
from autograder.cluster.line import Line
from autograder.common.course import CourseError
from autograder.common.results import Cost, Result
from tests.conftest import ROOT
from tests.dask_cluster import LocalCluster, stop
from tests.kill_drill import forget_grades, state
from tests.sandbox.shared import wait_until
from tests.small_course import ANSWERS, NAME, RIGHT, hand_in, make_course, release, run, scores

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="grading needs Linux")
MORE = 5
SOON = Patience(scheduler=5, workers=30)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """A scheduler and two workers."""
    with LocalCluster(tmp_path_factory.mktemp("cluster"), workers=2) as found:
        yield found


@pytest.fixture(autouse=True)
def lost_sockets() -> Iterator[None]:
    """Dask's client connects anew by itself when its scheduler dies.

    It loses that socket when it is closed meanwhile: it ends here, and not as the warning of
    another test, of this file or one after it.
    """
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture
def two(cluster: LocalCluster) -> LocalCluster:
    """The same, with two workers whatever the last test has done to them."""
    cluster.tend(2)
    cluster.wait_for_workers(2)
    return cluster


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Class, dict[str, Any], list[Result]]:
    """A class that was graded by this machine's own processes: what that left."""
    root = tmp_path_factory.mktemp("small") / "course"
    course = make_course(root)
    release(root)
    for student, answers in ANSWERS.items():
        hand_in(root, student, answers)
    for number in range(MORE):
        hand_in(root, f"more-{number}", RIGHT | {"why": f"Because of {number}."})
    hand_in(root, "broken", {}).write_text('{"cells": [')
    folder = root / "class"
    folder.mkdir()
    (root / "submitted").rename(folder / "submitted")
    taught = Class(course, folder)
    assert run(root, "grade", NAME, "--no-report", "--jobs", "2", "--folder", str(folder)) == 0
    return taught, state(course, NAME, folder), told(taught)


def told(taught: Class) -> list[Result]:
    """All results in the journal, but for what they took."""
    found = [one.result for one in results(taught)]
    timeless = [replace(one, seconds=0.0, cost=Cost(), notebooks=_timeless(one)) for one in found]
    return sorted(timeless, key=lambda one: one.student)


def _timeless(result: Result) -> tuple[Any, ...]:
    return tuple(
        replace(one, verdicts=tuple(replace(verdict, seconds=0.0) for verdict in one.verdicts))
        for one in result.notebooks
    )


def on_cluster(
    taught: Class,
    on: str,
    at: Callable[[int], None] = lambda number: None,
    patience: Patience = SOON,
) -> list[Result]:
    """Grade a class anew on a cluster; `at` is called after each result, with its number."""
    forget_grades(taught.folder)
    return go_on(taught, on, at, patience)


def go_on(
    taught: Class,
    on: str,
    at: Callable[[int], None] = lambda number: None,
    patience: Patience = SOON,
) -> list[Result]:
    """Grade what is not graded yet."""
    assignments = {NAME: taught.read(NAME)}
    with (
        Cluster(on, taught.course, assignments, patience=patience) as hands,
        Grader(taught, assignments, hands) as grader,
    ):
        found = []
        places = [(student, NAME) for student in taught.students()]
        for number, result in enumerate(grader.grade(grader.todo(places))):
            found.append(result)
            at(number)
        assert not grader.in_doubt
    return found


def is_as_on_one_machine(taught: Class, left: dict[str, Any], results: list[Result]) -> bool:
    """Whether rows, files and results are those of a run without a cluster."""
    return state(taught.course, NAME, taught.folder) == left and told(taught) == results


def test_grades_pages_and_results_are_those_of_one_machine_to_the_byte(
    graded: tuple[Class, dict[str, Any], list[Result]], two: LocalCluster
):
    taught, left, found = graded
    forget_grades(taught.folder)
    command = ["grade", NAME, "--no-report", "--on", two.on, "--folder", str(taught.folder)]
    assert run(taught.course.root, *command) == 0
    assert is_as_on_one_machine(taught, left, found)


def test_what_lies_beside_the_course_can_be_imported_by_answers_there_as_here(
    two: LocalCluster, tmp_path: Path
):
    """It is not installed, and lies neither beside the notebook nor beside the grader."""
    root = tmp_path / "course"
    course = make_course(root)
    (root / "beside_it.py").write_text("def triple(x):\n    return 3 * x\n")
    paths = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, (root, ROOT)))}
    notebook = root / "source" / NAME / "numbers.ipynb"
    text = notebook.read_text(encoding="utf-8")
    notebook.write_text(text.replace('"import math"', '"import math, beside_it"'), encoding="utf-8")
    release(root)
    hand_in(root, "ada", RIGHT | {"third": "def third(x):\n    return beside_it.triple(x) / 9"})
    taught, found = Class(course, root), []
    for where in (["--jobs", "1"], ["--on", two.on]):
        command = [sys.executable, "-m", "autograder", "grade", NAME, "--no-report", "--again"]
        subprocess.run([*command, *where], cwd=root, env=paths, check=True)
        found.append((scores(taught), [one.result.cost.calls for one in results(taught)]))
    assert found[0] == found[1]
    assert found[0][0] == {"ada": 6.0}  # all there are


def test_nothing_stays_with_a_worker_and_nothing_of_a_class_is_sent_but_its_work(
    graded: tuple[Class, dict[str, Any], list[Result]], two: LocalCluster
):
    taught, _, _ = graded
    seen: list[bytes] = []

    def look(number: int) -> None:
        if number == 0:
            seen.extend(
                path.read_bytes() for path in _files(two.folder) if path.name == "order.json"
            )
            for path in _files(two.folder):
                found = path.read_bytes()
                assert not any(one in found for one in (b"more-1", b"Because of 1"))

    on_cluster(taught, two.on, look)
    assert len(seen) == 2  # what travels, once for each worker
    assert not [path for path in _files(two.folder) if "grader-" in str(path)]
    for worker in two.workers:
        assert not Path(f"/proc/{worker.pid}/task/{worker.pid}/children").read_text().strip()


def _files(folder: Path) -> list[Path]:
    """What lies at the workers."""
    return [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".log"]


def test_a_worker_that_is_killed_costs_a_try(
    graded: tuple[Class, dict[str, Any], list[Result]], two: LocalCluster
):
    taught, left, found = graded
    on_cluster(taught, two.on, lambda number: two.kill_worker() if number == 1 else None)
    assert is_as_on_one_machine(taught, left, found)


def test_a_worker_that_hangs_costs_a_try_and_the_others_grade_on(
    graded: tuple[Class, dict[str, Any], list[Result]], two: LocalCluster
):
    taught, left, found = graded
    hung = two.workers[0]
    try:
        patience = replace(SOON, slow=0.5)
        on_cluster(taught, two.on, lambda number: stop(hung) if number == 1 else None, patience)
    finally:
        hung.kill()
    assert is_as_on_one_machine(taught, left, found)


def test_a_scheduler_that_comes_back_costs_nothing(
    graded: tuple[Class, dict[str, Any], list[Result]], two: LocalCluster
):
    taught, left, found = graded

    def restart(number: int) -> None:
        if number == 1:
            two.kill_scheduler()
            for worker in two.workers:
                worker.kill()  # as they end, soon after
            two.restart_scheduler()
            two.tend(2)

    on_cluster(taught, two.on, restart, Patience(scheduler=60, workers=60))
    assert is_as_on_one_machine(taught, left, found)


def test_a_scheduler_that_stays_away_ends_the_run_and_the_next_goes_on(
    graded: tuple[Class, dict[str, Any], list[Result]], tmp_path: Path
):
    taught, left, found = graded
    with LocalCluster(tmp_path, workers=2) as mine:
        with pytest.raises(CourseError, match="does not answer; what was graded is kept"):
            on_cluster(
                taught,
                mine.on,
                lambda number: mine.kill_scheduler() if number == 2 else None,
                Patience(scheduler=1),
            )
        kept = len(told(taught))
        assert 3 <= kept < len(found)
        mine.restart_scheduler()
        for worker in mine.workers:
            worker.kill()
            worker.wait()
        mine.tend(2)
        assert len(go_on(taught, mine.on)) == len(found) - kept
    assert is_as_on_one_machine(taught, left, found)


def test_a_worker_of_another_version_is_refused_by_name(
    graded: tuple[Class, dict[str, Any], list[Result]],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
):
    taught, left, found = graded
    (tmp_path / "numpy" / "numpy-1.0.dist-info").mkdir(parents=True)
    metadata = tmp_path / "numpy" / "numpy-1.0.dist-info" / "METADATA"
    metadata.write_text("Metadata-Version: 2.1\nName: numpy\nVersion: 1.0\n", encoding="utf-8")
    shutil.copytree(ROOT / "autograder", tmp_path / "other" / "autograder")
    changed = tmp_path / "other" / "autograder" / "judge" / "grading.py"
    changed.write_text(changed.read_text(encoding="utf-8") + "\nADDED = 1\n", encoding="utf-8")
    with LocalCluster(tmp_path / "cluster") as mine:
        mine.add_worker(path=[tmp_path / "numpy"])
        mine.wait_for_workers(1)
        with pytest.raises(CourseError, match="each of its 1 workers was refused"):
            on_cluster(taught, mine.on)
        assert "grades nothing: it has numpy 1.0, and here it is " in capfd.readouterr().err
        mine.add_worker(path=[tmp_path / "other"])
        mine.add_worker()
        mine.wait_for_workers(3)
        on_cluster(taught, mine.on)
        said = capfd.readouterr().err
        assert "grades nothing: it has another version of the grader" in said
        assert "numpy 1.0" in said
    assert is_as_on_one_machine(taught, left, found)


HOSTILE = """
import builtins, pathlib, sys
true, said = eval, [b"", b"R" + bytes(range(256)), b"R{}", b"X" * 1000, 7, None]
class Evil:
    def __reduce__(self):
        return pathlib.Path.touch, (pathlib.Path('MARKER'),)
said.insert(1, Evil())
def say(text, *names):
    if not (isinstance(text, str) and ".work(data)" in text):
        above = sys._getframe(1)
        return true(text, *(names or (above.f_globals, above.f_locals)))
    said.append(said.pop(0))
    return said[-1]
say.__module__, say.__name__, say.__qualname__ = "builtins", "eval", "eval"
def dask_setup(worker):
    builtins.eval = say
"""


def test_what_a_hostile_worker_says_is_refused_and_tried_elsewhere(
    graded: tuple[Class, dict[str, Any], list[Result]],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
):
    taught, left, found = graded
    marker = tmp_path / "unpickled"
    script = tmp_path / "hostile.py"
    script.write_text(HOSTILE.replace("MARKER", str(marker)), encoding="utf-8")
    with LocalCluster(tmp_path / "cluster") as mine:
        mine.add_worker("--preload", str(script))
        mine.wait_for_workers(1)
        mine.add_worker()
        mine.wait_for_workers(2)
        on_cluster(taught, mine.on)
    assert "grades nothing: it has failed 3 times" in capfd.readouterr().err
    assert not marker.exists()
    assert is_as_on_one_machine(taught, left, found)


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")  # Dask's, as above, but later
def test_nothing_that_was_sent_stays_in_memory(two: LocalCluster):
    line = Line(two.on)
    assert line.connect()
    (worker, *_) = line.members() or {}
    for _ in range(3):
        done: SimpleQueue[None] = SimpleQueue()
        future = line.send(
            worker, "b'R' * len(data)", {"data": b"y" * 60_000}, partial(done.put, None)
        )
        done.get(timeout=60)
        assert line.fetch(future, 60) == b"R" * 60_000
        line.forget(future)
        del future
    wait_until(_holds_nothing_large)  # the line's own thread may be at its last message still
    line.close()


def _holds_nothing_large() -> bool:
    gc.collect()
    held = [one for one in gc.get_objects() if isinstance(one, list | tuple)]
    return not any(_is_large(part) for one in held for part in one)


def _is_large(part: object) -> bool:
    try:
        return isinstance(part, bytes | bytearray | memoryview) and len(part) == 60_000
    except ValueError:  # a view that was released holds nothing
        return False


def test_the_pages_commands_make_certificates_by_which_a_cluster_grades(
    graded: tuple[Class, dict[str, Any], list[Result]], tmp_path: Path
):
    taught, left, found = graded
    text = (ROOT / "book" / "running.md").read_text(encoding="utf-8")
    commands = [line for line in text.splitlines() if line.startswith("openssl ")]
    assert len(commands) == 3
    for command in commands:
        subprocess.run(command.split(), cwd=tmp_path, check=True, capture_output=True)
    places = {name: str(tmp_path / f"{name}.pem") for name in ("authority", "cert", "key")}
    options = ["--tls-ca-file", places["authority"]]
    options += ["--tls-cert", places["cert"], "--tls-key", places["key"]]
    exported = [line.removeprefix("export DASK_") for line in text.splitlines()]
    settings = {
        name.lower().replace("__", ".").replace("_", "-"): str(tmp_path / value)
        for name, _, value in (line.partition("=") for line in exported)
        if name.startswith("DISTRIBUTED__") and value.endswith(".pem")
    }
    assert len(settings) == 3
    with dask.config.set(settings), LocalCluster(tmp_path, 1, options) as mine:
        with pytest.raises(CourseError, match="does not answer"):
            on_cluster(taught, mine.on.replace("tls", "dask"), patience=Patience(scheduler=0))
        on_cluster(taught, mine.on)
    assert is_as_on_one_machine(taught, left, found)

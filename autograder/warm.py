"""Warm processes: what grading needs is imported once, and each submission gets a fork of that.

A trusted process, which runs the tests, and one for students' code, from which each submission's
sandbox is forked. Nothing is computed in either, so that a fork of them can do anything.
"""

import ast
import hashlib
import importlib.util
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autograder.course import Course, CourseError
from autograder.journal import encode
from autograder.results import TestRun
from autograder.syntax import parse
from autograder.taught import read, source_folder

if TYPE_CHECKING:
    from autograder.assignment import Assignment

RISK_FLAG = "--without-sandbox-i-know-the-risk"
SECONDS = 600  # for one submission; its own limits are lower and bind first
REHEARSAL = 1800  # for all tests of a chapter, the reference and the untouched release


@dataclass
class State:
    """What the warm process holds for all submissions."""

    assignments: Mapping[str, "Assignment"]
    zygote: Any
    known: dict[str, Any] = field(default_factory=dict)


class Warm:
    """Processes with everything imported, one forked for each submission; a context manager.

    They start with the first submission: a run that has nothing to do costs nothing.
    """

    def __init__(
        self,
        course: Course,
        assignments: Mapping[str, "Assignment"],
        jobs: int = 0,
        *,
        sandboxed: bool = True,
    ):
        """Say what will be graded; nothing is started yet."""
        if sandboxed:
            require_sandbox()
        self._arguments = [str(course.root), list(assignments), sandboxed, True]
        self._jobs = jobs or cores()
        self._pool: Any = None
        self._open = ExitStack()

    def __enter__(self) -> "Warm":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all processes."""
        self._open.close()
        self._pool = None

    def run(self, tasks: Iterator[Task]) -> Iterator[tuple[Task, Any]]:
        """Grade; what came of each, in the order in which they are done."""
        first = next(tasks, None)
        if first is None:
            return
        if self._pool is None:
            from autograder.engine.pool import Pool

            pool = Pool(self._jobs, start_warm, grade_one, self._arguments)
            self._pool = self._open.enter_context(pool)
        yield from self._pool.run(chain([first], tasks), SECONDS)


def cores() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def can_fork() -> bool:
    """Whether this system can grade at all."""
    return hasattr(os, "fork")


def require_sandbox() -> None:
    """Refuse to run students' code where it cannot be shut in."""
    from autograder.engine import sandbox

    able = sandbox.probe()
    if not able.namespaces:
        raise CourseError(
            f"This machine cannot shut in what students hand in. {' '.join(able.missing)} Put "
            f"that right, or grade with {RISK_FLAG}: their code then runs with your rights, and "
            "can read, change and send away whatever you can."
        )


@lru_cache(maxsize=1)
def grader_version() -> str:
    """Changes when the grader itself does."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def start_warm(root: str, chapters: Sequence[str], sandboxed: bool, diagnose: bool) -> State:
    """Make ready what every submission needs; runs once, in the process that is kept warm."""
    from autograder.assignment import read_assignment

    course = Course(Path(root))
    assignments = {name: read_assignment(source_folder(course, name)) for name in chapters}
    zygote = open_zygote(list(assignments.values()), sandboxed)
    state = State(assignments, zygote)
    warm_up(assignments.values())
    if diagnose:
        state.known = {
            name: known_mistakes(course, one, zygote) for name, one in assignments.items()
        }
    return state


def warm_up(assignments: Iterable["Assignment"]) -> None:
    """Import what the notebooks import: the tests need it in every fork of this process."""
    for name in sorted({name for assignment in assignments for name in imports(assignment)}):
        with suppress(ImportError):  # the notebook's own line will say it
            importlib.import_module(name)
    for notebook in (notebook for one in assignments for notebook in one.notebooks):
        assert notebook.shared_names is not None  # found out once, not in every fork


def known_mistakes(course: Course, assignment: "Assignment", zygote: Any) -> Any:
    """What the known mistakes of a chapter give in its tests; made the first time."""
    from autograder.known import engine_version, shelf

    run = partial(run_answers, assignment, zygote)
    make = partial(shelf, course, assignment.name, engine_version(), run)
    apart(make)  # nothing may be computed in a process that is forked later
    kept = make()
    if kept is not None:
        for question in kept.places:
            kept.block(question)
    return kept


def run_answers(
    assignment: "Assignment", zygote: Any, answers: Mapping[str, str], tests: Sequence[str]
) -> Mapping[str, TestRun]:
    """How these tests go with these answers, by solution cell, and the reference elsewhere."""
    from autograder.engine.worker import runs

    asked = [
        solution
        for notebook in assignment.notebooks
        for test in tests
        for solution in notebook.question_of(test)
    ]
    found = runs(assignment, answers, zygote, asked)
    return {test: found[test] for test in tests if test in found}


@contextmanager
def runner(course: Course, chapter: str) -> Iterator[Callable[..., Mapping[str, TestRun]]]:
    """Run a chapter's tests on answers of the course's own, as a submission's are run."""
    from autograder.engine import sandbox

    assignment = read(course, chapter)
    with open_zygote([assignment], sandbox.probe().namespaces) as zygote:
        yield partial(run_answers, assignment, zygote)


def apart(job: Callable[[], object]) -> None:
    """Do something in a fork of this process, for what it leaves on the disk."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            job()
            status = 0
        finally:
            sys.stderr.flush()
            os._exit(status)
    if os.waitpid(child, 0)[1]:
        raise CourseError("The known mistakes could not be tried; run: make mutants")


def open_zygote(assignments: Sequence["Assignment"], sandboxed: bool) -> Any:
    """The process that students' processes are forked from, with what their notebooks import."""
    from autograder.engine.sandbox import Limits
    from autograder.engine.zygote import Zygote

    modules = sorted({name for assignment in assignments for name in imports(assignment)})
    rules = [assignment.rules for assignment in assignments]
    each = [one for rule in rules for one in (rule.defaults, *rule.questions.values())]
    memory = max([Limits.memory_mb, *(one.memory_mb for one in each)])
    return Zygote(modules, own_modules(modules), Limits(memory_mb=memory), sandboxed)


def imports(assignment: "Assignment") -> set[str]:
    """Modules that the instructor's notebooks import, by their first names."""
    found: set[str] = set()
    for notebook in assignment.notebooks:
        for cell in notebook.cells:
            if cell.cell_type == "code" and (tree := parse(cell.source)):
                found.update(_imported(tree))
    return found


def _imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def own_modules(names: Iterable[str]) -> list[Path]:
    """Where those of these modules lie that were not installed; students' processes read them."""
    places = {Path(path).resolve() for path in (sys.prefix, sys.base_prefix)}
    found = []
    for name in names:
        spec = importlib.util.find_spec(name)
        if spec is None or not (spec.origin or spec.submodule_search_locations):
            continue
        folders = spec.submodule_search_locations or [spec.origin or ""]
        paths = [Path(folder).resolve() for folder in folders]
        found += [path for path in paths if path.exists() and not places & {*path.parents}]
    return found


def grade_one(state: State, task: Sequence[Any]) -> bytes:
    """Grade one submission; runs in a process of its own, forked for it."""
    from autograder.engine.worker import grade as grade_submission

    student, chapter, folder, *_ = task
    assignment = state.assignments[chapter]
    known = state.known.get(chapter)
    return encode(grade_submission(assignment, Path(folder), student, state.zygote, known))


def rehearse(course: Course, chapters: Sequence[str]) -> list[str]:
    """Grade the reference and the untouched release; what does not come out as it should.

    What was rehearsed once is not again until the chapter or the grader changes.
    """
    from autograder.engine import sandbox
    from autograder.engine.pool import Pool

    if not can_fork():
        return []  # nothing can be graded here, so nothing can be tried
    digests = {name: f"{read(course, name).digest} {grader_version()}" for name in chapters}
    marks = {name: course.root / "build" / "rehearsed" / name for name in chapters}
    todo = [n for n in chapters if not marks[n].is_file() or marks[n].read_text() != digests[n]]
    complaints: list[str] = []
    arguments = [str(course.root), todo, sandbox.probe().namespaces, False]
    with Pool(cores(), start_warm, rehearse_one, arguments) as pool:
        for name, outcome in pool.run(iter(todo), REHEARSAL):
            said = json.loads(outcome) if isinstance(outcome, bytes) else [outcome.reason]
            complaints += [one if name in one else f"{name}: {one}" for one in said]
            if not said:
                marks[name].parent.mkdir(parents=True, exist_ok=True)
                marks[name].write_text(digests[name])
    return complaints


def rehearse_one(state: State, chapter: str) -> bytes:
    """Rehearse one chapter; runs in a process of its own."""
    from autograder.engine import worker

    return json.dumps(worker.rehearse(state.assignments[chapter], state.zygote)).encode()



"""Warm processes: what grading needs is imported once, and each submission gets a fork of that.

A trusted process, which runs the tests, and one for students' code, from which each submission's
sandbox is forked. Nothing is computed in either, so that a fork of them can do anything.
"""

import ast
import importlib
import json
import math
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import chain, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from autograder.bridge import STUDENT
from autograder.classroom.classes import read, source_folder
from autograder.common.course import Course, CourseError
from autograder.common.failures import in_words, write_whole
from autograder.common.names import say
from autograder.common.results import TestRun
from autograder.common.startup import import_quickly
from autograder.common.syntax import parse
from autograder.isolation.limits import Limits
from autograder.judge import fingerprint
from autograder.judge.parcel import Parcel
from autograder.judge.received import sent

if TYPE_CHECKING:
    from autograder.classroom.grade import Task
    from autograder.isolation.parts import Parts
    from autograder.judge.assignment import Assignment, Notebook

RISK_FLAG = "--without-sandbox-i-know-the-risk"
SECONDS = 600  # for one submission; what was found by then counts
GRACE = 120  # more, after which a worker that does not keep to it is ended
MEMORY = 6_000_000_000  # bytes of address space that one worker may take on top
REHEARSAL = 1800  # for all tests of a chapter, the reference and the untouched release


@dataclass
class State:
    """What the warm process holds for all submissions."""

    course: Course
    assignments: Mapping[str, "Assignment"]
    fork_server: Any
    prints: Mapping[str, str]  # by chapter: what its grades depend on, see `fingerprint`
    known: dict[str, Any] = field(default_factory=dict)

    def close(self) -> None:
        """End what was started for it."""
        self.fork_server.close()


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
        self._course, self._assignments, self._sandboxed = course, assignments, sandboxed
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

    def start(self) -> None:
        """Begin to make ready; what follows in this process need not wait for it."""
        if self._pool is None:
            from autograder.isolation import machine
            from autograder.isolation.pool import Pool

            try_known_mistakes(self._course, self._assignments, self._jobs, self._sandboxed)
            prints = fingerprints(self._course, self._assignments)
            arguments = [str(self._course.root), prints, True]
            firsts = [fork_server_order(self._assignments.values(), self._sandboxed)]
            readable = firsts[0]["readable"] if self._sandboxed else None
            pool = Pool(
                self._jobs,
                start_warm,
                grade_one,
                arguments,
                start_bare,
                firsts,
                pack=_packed,
                readable=readable,
                parts=True,
            )
            self._pool = self._open.enter_context(pool)
            self._pool.start()
            if self._sandboxed:  # the pool finds out the same meanwhile, but not what to do then
                require_sandbox()
                for missing in machine.probe().missing:
                    say(f"note: {missing}", sys.stderr)

    def run(self, tasks: Iterator[Any]) -> Iterator[tuple[Any, Any]]:
        """Grade; what came of each, in the order in which they are done."""
        first = next(tasks, None)
        if first is not None:
            self.start()
            yield from self._pool.run(chain([first], tasks), SECONDS + GRACE)


def _packed(task: "Task") -> tuple[list[str], bytes]:
    """What crosses to a worker: who and what, and the parcel."""
    return [task.student, task.chapter], task.parcel.pack()


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
    from autograder.isolation import machine

    able = machine.probe()
    if not able.namespaces:
        raise CourseError(
            f"This machine cannot shut in what students hand in. {' '.join(able.missing)} Put "
            f"that right, or grade with {RISK_FLAG}: their code then runs with your rights, and "
            "can read, change and send away whatever you can."
        )


def start_bare(order: Mapping[str, Any]) -> Any:
    """Make the process for students' code out of this one, while it knows nothing of the course.

    What takes long to import, and depends on no setting of the instructor's, is imported once for
    both.
    """
    from autograder.isolation import processes
    from autograder.isolation.fork_server import ForkServer
    from autograder.judge.preload import shared

    fork_server = ForkServer(**{**order, "limits": Limits(**order["limits"])}, here=True)
    for name in shared(order["modules"]):
        with suppress(ImportError):  # it is imported again where it is needed
            importlib.import_module(name)
    processes.use_large_pages()  # here once, not in either after the fork
    fork_server.go_in()
    return fork_server


def start_warm(fork_server: Any, root: str, prints: Mapping[str, str], diagnose: bool) -> State:
    """Make ready what every submission needs; runs once, in the process that is kept warm."""
    from autograder.judge import old
    from autograder.judge.assignment import read_assignment

    import_quickly()
    course = Course(Path(root))
    assignments = {name: read_assignment(source_folder(course, name)) for name in prints}
    warm_up(assignments.values())
    state = State(course, assignments, fork_server, prints)
    for name in prints if diagnose else ():
        with suppress(_Unmade):
            state.known[name] = known_mistakes(course, name, prints[name])
            for question in state.known[name].places:
                state.known[name].block(question)
    old.remember()
    fork_server.wait()
    return state


def warm_up(assignments: Iterable["Assignment"]) -> None:
    """Import what the notebooks import: the tests need it in every fork of this process."""
    from autograder.judge.rehearsal import prepare

    assignments = list(assignments)
    modules = {name for assignment in assignments for name in imports(assignment)}
    for name in sorted(modules | {"resource"}):  # the last for `bound_memory`
        with suppress(ImportError):  # the notebook's own line will say it
            importlib.import_module(name)
    for assignment in assignments:
        prepare(assignment)


class _Unmade(Exception):
    """What the known mistakes give has not been found out yet."""


def known_mistakes(course: Course, chapter: str, version: str) -> Any:
    """What reference and known mistakes give in a chapter's tests; raises _Unmade before that."""
    from autograder.authoring.known import kept_shelf

    found = kept_shelf(course, chapter, version)
    if found is None:
        raise _Unmade
    return found


def fingerprints(course: Course, assignments: Mapping[str, "Assignment"]) -> dict[str, str]:
    """What the grades of each assignment depend on."""
    return {name: fingerprint.of(course, one) for name, one in assignments.items()}


def try_known_mistakes(
    course: Course, assignments: Mapping[str, "Assignment"], jobs: int, sandboxed: bool
) -> None:
    """Find out what known mistakes give in the tests, if that was not done for this grader yet.

    Where it fails, submissions are graded all the same, and mistakes are not named.
    """
    from autograder.isolation.outcomes import Lost
    from autograder.isolation.pool import Pool

    prints = fingerprints(course, assignments)
    todo = {name: made for name, made in prints.items() if not _is_made(course, name, made)}
    if not todo:
        return
    if sandboxed:
        require_sandbox()
    firsts = [fork_server_order([assignments[name] for name in todo], sandboxed)]
    arguments = [str(course.root), todo, False]
    with (
        Pool(min(jobs, len(todo)), start_warm, try_one, arguments, start_bare, firsts) as pool,
        tqdm(
            total=len(todo),
            desc="trying known mistakes",
            unit="chapter",
            leave=False,
            disable=None,  # where nobody watches
        ) as bar,
    ):
        for chapter, outcome in pool.run(iter(todo), REHEARSAL):
            bar.update()
            if isinstance(outcome, Lost):
                bar.write(f"{chapter}: mistakes will not be named ({outcome.reason})", sys.stderr)


def _is_made(course: Course, chapter: str, version: str) -> bool:
    try:
        known_mistakes(course, chapter, version)
    except _Unmade:
        return False
    return True


def try_one(state: State, chapter: str) -> bytes:
    """Try the known mistakes of one chapter; runs in a process of its own."""
    from autograder.authoring.known import shelf

    run = partial(run_answers, state.assignments[chapter], state.fork_server)
    shelf(state.course, chapter, state.prints[chapter], run, _tests(state.assignments[chapter]))
    return b""


def _tests(assignment: "Assignment") -> list[str]:
    """The tests of answers; of two notebooks' tests of one name nothing is known."""
    groups = [group for notebook in assignment.notebooks for group in notebook.groups]
    found = Counter(test for group in groups if group.solutions for test in group.tests)
    return [test for test, times in found.items() if times == 1]


def run_answers(
    assignment: "Assignment", fork_server: Any, answers: Mapping[str, str], tests: Sequence[str]
) -> Mapping[str, TestRun]:
    """How these tests go with these answers, by solution cell, and the reference elsewhere."""
    from autograder.judge.rehearsal import runs

    asked = [
        solution
        for notebook in assignment.notebooks
        for test in tests
        for solution in notebook.question_of(test)
    ]
    found = runs(assignment, answers, fork_server, asked)
    return {test: found[test] for test in tests if test in found}


@contextmanager
def runner(course: Course, chapter: str) -> Iterator[Callable[..., Mapping[str, TestRun]]]:
    """Run a chapter's tests on answers of the course's own, as a submission's are run."""
    from autograder.isolation import machine

    assignment = read(course, chapter)
    with open_fork_server([assignment], machine.probe().namespaces) as fork_server:
        yield partial(run_answers, assignment, fork_server)


def open_fork_server(assignments: Sequence["Assignment"], sandboxed: bool) -> Any:
    """The process that students' processes are forked from, with what their notebooks import."""
    from autograder.isolation.fork_server import ForkServer

    order = fork_server_order(assignments, sandboxed)
    return ForkServer(**{**order, "limits": Limits(**order["limits"])})


def fork_server_order(assignments: Iterable["Assignment"], sandboxed: bool) -> dict[str, Any]:
    """What a `ForkServer` for these assignments is made with, fit for JSON."""
    assignments = list(assignments)
    modules = sorted({name for assignment in assignments for name in imports(assignment)})
    rules = [assignment.rules for assignment in assignments]
    each = [one for rule in rules for one in (rule.defaults, *rule.questions.values())]
    memory = max([Limits.memory_mb, *(one.memory_mb for one in each)])
    cpu = max([Limits.cpu_seconds, *map(longest, assignments)])
    notebooks = [notebook for assignment in assignments for notebook in assignment.notebooks]
    # without a sandbox nobody could tell what the head leaves behind
    head = beginning(notebooks[0]) if sandboxed and len(notebooks) == 1 else []
    watched = sorted({name for rule in each for name in rule.operations_forbidden})
    return {
        "modules": modules,
        "student": STUDENT,
        "readable": [str(path) for path in own_modules(modules)],
        "limits": asdict(Limits(memory_mb=memory, cpu_seconds=cpu)),
        "sandboxed": sandboxed,
        "head": head,
        "watched": watched,
    }


def beginning(notebook: "Notebook") -> list[tuple[str, str]]:
    """The code before the first answer, which most students leave as it is: name and text."""
    from autograder.judge.questions import YOURS

    given = takewhile(lambda cell: cell.kind in ("markdown", "readonly", "code"), notebook.cells)
    code = [cell for cell in given if cell.cell_type == "code" and cell.source.strip()]
    return [(cell.grade_id or YOURS, cell.source) for cell in code]


def longest(assignment: "Assignment") -> int:
    """Seconds that a submission may take if each of its cells and tests takes what it may."""
    rules = assignment.rules
    cells = [cell for one in assignment.notebooks for cell in one.cells if cell.cell_type == "code"]
    return math.ceil(sum(rules.for_question(cell.grade_id).seconds for cell in cells))


def imports(assignment: "Assignment") -> set[str]:
    """Modules that the instructor's notebooks import, at once or when they use something."""
    from autograder.judge.preload import late_modules, late_parts

    found: set[str] = set()
    for notebook in assignment.notebooks:
        for cell in notebook.cells:
            if cell.cell_type == "code" and (tree := parse(cell.source)):
                found.update(_imported(tree), late_modules(cell.source))
    return found.union(late_parts(found))


def _imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


def own_modules(names: Iterable[str]) -> list[Path]:
    """Where those of these modules lie that were not installed; students' processes read them."""
    tops = sorted({name.partition(".")[0] for name in names})
    return [path for top in tops for path in fingerprint.own_places(top)]


def grade_one(state: State, task: Sequence[str], parcel: bytes, *, parts: "Parts") -> bytes:
    """Grade one submission; runs in a process of its own, forked for it."""
    from autograder.isolation.clock import doubts
    from autograder.isolation.outcomes import Doubtful
    from autograder.judge.grading import grade_submission
    from autograder.judge.intake import read_parcel

    bound_memory()
    student, chapter = task
    assignment = state.assignments[chapter]
    found = read_parcel(Parcel.unpack(parcel), student, assignment)
    known = state.known.get(chapter)
    graded = grade_submission(assignment, found, state.fork_server, known, SECONDS, parts)
    result = sent(graded)
    return Doubtful(result) if doubts() else result


def bound_memory() -> None:
    """Let a test that an answer has made to ask for too much fail, not the whole machine."""
    with suppress(ImportError, OSError, ValueError):
        import resource  # `warm_up` has imported it

        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        _, most = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, most))


def rehearse(course: Course, chapters: Sequence[str]) -> list[str]:
    """Grade the reference and the untouched release; what does not come out as it should.

    What was rehearsed once is not again until something changes that grades depend on.
    """
    from autograder.isolation import machine
    from autograder.isolation.pool import Pool

    if not can_fork():
        return []  # nothing can be graded here, so nothing can be tried
    assignments = {name: read(course, name) for name in chapters}
    prints = fingerprints(course, assignments)
    todo = {name: prints[name] for name in chapters if _rehearsed(course, name)[0] != prints[name]}
    if not todo:
        return []
    complaints: list[str] = []
    able = machine.probe().namespaces
    firsts = [fork_server_order([assignments[name] for name in todo], able)]
    arguments = [str(course.root), todo, False]
    readable = firsts[0]["readable"] if able else None
    pool = Pool(cores(), start_warm, rehearse_one, arguments, start_bare, firsts, readable=readable)
    with pool:
        for name, outcome in pool.run(iter(todo), REHEARSAL):
            lost = {"complaints": [getattr(outcome, "reason", "")], "costs": {}}
            found = json.loads(outcome) if isinstance(outcome, bytes) else lost
            said = found["complaints"]
            complaints += [one if name in one else f"{name}: {one}" for one in said]
            if not said:
                mark = _mark(course, name)
                with in_words(mark):
                    write_whole(mark, json.dumps([prints[name], found["costs"]]))
    return complaints


def costs(course: Course, chapter: str) -> dict[str, tuple[int, float]]:
    """Of each test, when it was rehearsed: the calls that it made, and seconds of work."""
    found = _rehearsed(course, chapter)[1]
    return {test: (int(calls), float(work)) for test, (calls, work) in found.items()}


def _mark(course: Course, chapter: str) -> Path:
    return course.root / "build" / "rehearsed" / f"{chapter}.json"


def _rehearsed(course: Course, chapter: str) -> tuple[str, dict[str, list[float]]]:
    """What a chapter was rehearsed with, and what its tests cost; nothing if it was not."""
    try:
        made, found = json.loads(_mark(course, chapter).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return "", {}
    return made, found


def rehearse_one(state: State, chapter: str) -> bytes:
    """Rehearse one chapter; runs in a process of its own."""
    from autograder.judge import rehearsal

    return json.dumps(
        asdict(rehearsal.rehearse(state.assignments[chapter], state.fork_server))
    ).encode()

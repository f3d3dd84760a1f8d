"""The processes in which a course's tests run, with everything imported, and forked for each run.

A trusted process, which runs the tests, and one for students' code, from which each submission's
sandbox is forked. Nothing is computed in either, so that a fork of them can do anything.
"""

import ast
import base64
import importlib
import math
import os
import pickle
import sys
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autograder.bridge import STUDENT
from autograder.bridge.processor import know_processor
from autograder.common.course import Course, CourseError
from autograder.common.names import say
from autograder.common.startup import import_quickly
from autograder.common.syntax import parse
from autograder.isolation.limits import Limits
from autograder.judge import fingerprint

if TYPE_CHECKING:
    from autograder.judge.assignment import Assignment, Notebook
    from autograder.judge.rules import QuestionRules


RISK_FLAG = "--without-sandbox-i-know-the-risk"
GRADES = ("autograder.judge.grading", "autograder.judge.intake")  # imported once, not in each fork
MOST_NAMED = 3  # assignments in a sentence
REHEARSAL = 1800  # seconds for all tests of a chapter, with the answers of the course's own


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
    if order["many"]:
        processes.use_large_pages()  # here once, not in either after the fork
    fork_server.go_in()
    return fork_server


def warm_order(
    course: Course,
    assignments: Mapping[str, "Assignment"],
    prints: Mapping[str, str],
    *,
    diagnose: bool = False,
) -> list[Any]:
    """What `start_warm` is told, fit for JSON.

    The assignments as they were read: on the disk there may be others by now, as after a build.
    """
    read = pickle.dumps({name: assignments[name] for name in prints})
    return [str(course.root), base64.b64encode(read).decode(), prints, diagnose]


def start_warm(
    fork_server: Any, root: str, read: str, prints: Mapping[str, str], diagnose: bool
) -> State:
    """Make ready what every submission needs; runs once, in the process that is kept warm."""
    from autograder.judge import old

    import_quickly()
    for name in GRADES:
        importlib.import_module(name)
    course = Course(Path(root))
    assignments = pickle.loads(base64.b64decode(read))
    warm_up(assignments.values())
    state = State(course, assignments, fork_server, prints)
    for name in prints if diagnose else ():
        with suppress(Unmade):
            state.known[name] = known_mistakes(course, name, prints[name])
            for question in state.known[name].places:
                state.known[name].block(question)
    old.remember()
    fork_server.wait()
    return state


def warm_up(assignments: Iterable["Assignment"]) -> None:
    """Import what the notebooks import: the tests need it in every fork of this process."""
    from autograder.bridge.watch import is_seen
    from autograder.judge.rehearsal import prepare

    assignments = list(assignments)
    modules = {name for assignment in assignments for name in imports(assignment)}
    for name in sorted(modules | {"resource"}):  # the last for `bound_memory`
        with suppress(ImportError):  # the notebook's own line will say it
            importlib.import_module(name)
    know_processor()
    # a test's, by an answer to which it was handed
    warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)
    for assignment in assignments:
        prepare(assignment)
        for name in forbidden(assignment):
            is_seen(name)  # what a library imports only when it is asked for it comes in here


class Unmade(Exception):
    """What the known mistakes give has not been found out yet."""


def known_mistakes(course: Course, chapter: str, version: str) -> Any:
    """What reference and known mistakes give in a chapter's tests; raises Unmade before that."""
    from autograder.authoring.known import kept_shelf

    found = kept_shelf(course, chapter, version)
    if found is None:
        raise Unmade
    return found


def tell_trying(names: Collection[str], answers: str) -> None:
    """Say what is about to take a while, of which assignments, and that it is not always so."""
    few = len(names) <= MOST_NAMED
    which = ", ".join(names) if few else f"{len(names)} assignments"
    say(
        f"note: the tests of {which} are tried with {answers}, which takes a while; it is done "
        "again only when tests or grader have changed",
        sys.stderr,
    )


def fingerprints(course: Course, assignments: Mapping[str, "Assignment"]) -> dict[str, str]:
    """What the grades of each assignment depend on."""
    return {name: fingerprint.of(course, one) for name, one in assignments.items()}


def open_fork_server(
    assignments: Sequence["Assignment"], sandboxed: bool, private: Sequence[str] = ()
) -> Any:
    """The process that students' processes are forked from, with what their notebooks import."""
    from autograder.isolation.fork_server import ForkServer

    order = fork_server_order(assignments, sandboxed, private)
    return ForkServer(**{**order, "limits": Limits(**order["limits"])})


def fork_server_order(
    assignments: Iterable["Assignment"],
    sandboxed: bool,
    private: Sequence[str] = (),
    *,
    many: bool = True,
) -> dict[str, Any]:
    """What a `ForkServer` for these assignments is made with, fit for JSON.

    No student's process is shown the folders that are `private`; it makes more ready for `many`.
    """
    assignments = list(assignments)
    modules = sorted({name for assignment in assignments for name in imports(assignment)})
    shown = {name for assignment in assignments for name in imports(assignment, hidden=False)}
    secret = {*own_tops(modules)} - {*own_tops(shown)}  # as a key that hidden tests go by
    modules = [name for name in modules if name.partition(".")[0] not in secret]
    each = [one for assignment in assignments for one in of_questions(assignment)]
    memory = max([Limits.memory_mb, *(one.memory_mb for one in each)])
    cpu = max([Limits.cpu_seconds, *map(longest, assignments)])
    notebooks = [notebook for assignment in assignments for notebook in assignment.notebooks]
    # without a sandbox nobody could tell what the head leaves behind
    head = beginning(notebooks[0]) if sandboxed and len(notebooks) == 1 else []
    watched = sorted({name for assignment in assignments for name in forbidden(assignment)})
    return {
        "modules": modules,
        "student": STUDENT,
        "readable": [str(path) for path in own_modules(modules)],
        "private": list(private),
        "limits": asdict(Limits(memory_mb=memory, cpu_seconds=cpu)),
        "sandboxed": sandboxed,
        "head": head,
        "watched": watched,
        "many": many,
    }


def beginning(notebook: "Notebook") -> list[tuple[str, str]]:
    """The code before the first answer, which most students leave as it is: name and text."""
    from autograder.judge.questions import YOURS

    given = takewhile(lambda cell: cell.kind in ("markdown", "readonly", "code"), notebook.cells)
    code = [cell for cell in given if cell.cell_type == "code" and cell.source.strip()]
    return [(cell.grade_id or YOURS, cell.source) for cell in code]


def of_questions(assignment: "Assignment") -> list["QuestionRules"]:
    """What holds for its questions: where nothing else is said, then for each that is named."""
    return [assignment.rules.defaults, *assignment.rules.questions.values()]


def forbidden(assignment: "Assignment") -> set[str]:
    """All names that its questions forbid, and what is stopped beside these."""
    each = of_questions(assignment)
    return {name for rules in each for name in (*rules.forbid, *rules.operations_forbidden)}


def longest(assignment: "Assignment") -> int:
    """Seconds that a submission may take if each of its cells and tests takes what it may."""
    rules = assignment.rules
    cells = [cell for one in assignment.notebooks for cell in one.cells if cell.cell_type == "code"]
    return math.ceil(sum(rules.for_question(cell.grade_id).seconds for cell in cells))


def imports(assignment: "Assignment", hidden: bool = True) -> set[str]:
    """Modules that the instructor's notebooks import, at once or when they use something.

    Args:
        assignment: whose notebooks these are.
        hidden: whether what hidden parts of tests import counts.
    """
    from autograder.judge.preload import late_modules, late_parts

    found: set[str] = set()
    for notebook in assignment.notebooks:
        for cell in notebook.cells:
            if cell.cell_type == "code" and (tree := parse(cell.source)):
                out = () if hidden else cell.hidden
                found.update(_imported(tree, out), late_modules(cell.source))
    return found.union(late_parts(found))


def _imported(tree: ast.AST, out: Collection[tuple[int, int]]) -> Iterator[str]:
    """Modules that a cell imports, but for what lies between these lines."""
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        if any(first <= line <= last for first, last in out):
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


def own_tops(names: Iterable[str]) -> list[str]:
    """The first parts of the names of those of these modules that were not installed."""
    tops = sorted({name.partition(".")[0] for name in names})
    return [top for top in tops if fingerprint.own_places(top)]


def own_modules(names: Iterable[str]) -> list[Path]:
    """Where those of these modules lie that were not installed; students' processes read them."""
    return [path for top in own_tops(names) for path in fingerprint.own_places(top)]

"""Try known mistakes, and other answers of the course's own, as submissions are tested."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from autograder.authoring.building import read
from autograder.authoring.processes import (
    REHEARSAL,
    State,
    Unmade,
    fingerprints,
    fork_server_order,
    known_mistakes,
    open_fork_server,
    require_sandbox,
    start_bare,
    start_warm,
    tell_trying,
    warm_order,
)
from autograder.common.course import Course, private_folders
from autograder.common.results import TestRun

if TYPE_CHECKING:
    from autograder.judge.assignment import Assignment


def try_known_mistakes(
    course: Course, assignments: Mapping[str, "Assignment"], jobs: int, sandboxed: bool
) -> None:
    """Find out what known mistakes give in the tests, if that was not done for this grader yet.

    Where it fails, submissions are graded all the same, and mistakes are not named.
    """
    from autograder.authoring.known import parts, put_on_shelf
    from autograder.isolation.pool import Pool

    prints = fingerprints(course, assignments)
    todo = {name: made for name, made in prints.items() if not _is_made(course, name, made)}
    if not todo:
        return
    if sandboxed:
        require_sandbox()
    tell_trying(todo, "known right and wrong answers")
    private = private_folders(course)
    firsts = [fork_server_order([assignments[name] for name in todo], sandboxed, private)]
    arguments = warm_order(course, assignments, todo)
    asked = [str(path) for name in todo for path in parts(course, name) if path.is_file()]
    # walled in as where a class is graded: only there a test can lend its files to an answer
    readable = [*firsts[0]["readable"], *asked] if sandboxed else None
    jobs, walls = min(jobs, len(todo)), {"readable": readable, "private": private}
    with (
        Pool(jobs, start_warm, try_one, arguments, start_bare, firsts, **walls) as pool,
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
            if isinstance(outcome, bytes):
                put_on_shelf(course, chapter, outcome)
            else:
                bar.write(f"{chapter}: mistakes will not be named ({outcome.reason})", sys.stderr)


def _is_made(course: Course, chapter: str, version: str) -> bool:
    try:
        known_mistakes(course, chapter, version)
    except Unmade:
        return False
    return True


def try_one(state: State, chapter: str) -> bytes:
    """Try the known mistakes of one chapter; runs in a process of its own."""
    from autograder.authoring.known import learnt
    from autograder.isolation.outcomes import doubted

    assignment = state.assignments[chapter]
    run = partial(run_answers, assignment, state.fork_server)
    return doubted(learnt(state.course, chapter, state.prints[chapter], run, _tests(assignment)))


def _tests(assignment: "Assignment") -> list[str]:
    """The tests of answers, each by the name that it has in the assignment."""
    return [
        assignment.name_of(notebook, test)
        for notebook in assignment.notebooks
        for group in notebook.groups
        for test in (group.tests if group.solutions else ())
    ]


def run_answers(
    assignment: "Assignment", fork_server: Any, answers: Mapping[str, str], tests: Sequence[str]
) -> Mapping[str, TestRun]:
    """How these tests go with these answers, by solution cell, and the reference elsewhere."""
    from autograder.judge.rehearsal import runs

    found: dict[str, TestRun] = {}
    for notebook in assignment.notebooks:
        ids = [cell.grade_id for cell in notebook.of_kind("test")]
        own = {assignment.name_of(notebook, test): test for test in ids}
        own = {name: test for name, test in own.items() if name in tests}
        asked = [solution for test in own.values() for solution in notebook.question_of(test)]
        went = runs(assignment, answers, fork_server, asked, notebook)
        found |= {name: went[test] for name, test in own.items() if test in went}
    return {name: found[name] for name in tests if name in found}


@contextmanager
def runner(course: Course, chapter: str) -> Iterator[Callable[..., Mapping[str, TestRun]]]:
    """Run a chapter's tests on answers of the course's own, as a submission's are run."""
    from autograder.isolation import machine

    assignment = read(course, chapter)
    able, private = machine.probe().namespaces, private_folders(course)
    with open_fork_server([assignment], able, private) as fork_server:
        yield partial(run_answers, assignment, fork_server)

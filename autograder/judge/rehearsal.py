"""The tests of an assignment tried with the instructor's own answers, and with none."""

import importlib
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from autograder.bridge.public import open_packages
from autograder.common.imports import imports_something
from autograder.common.results import TestRun
from autograder.common.scopes import facts
from autograder.common.syntax import acts, altered
from autograder.judge.assignment import Assignment, Notebook
from autograder.judge.attempts import is_no_number
from autograder.judge.beside import files_of, modules
from autograder.judge.budget import Budget
from autograder.judge.cells import NAMELESS, ForkServer
from autograder.judge.claims import catches_by_value, looks_at_random, looks_for_claims
from autograder.judge.examples import run_no_examples
from autograder.judge.given import (
    given_texts,
    imported,
    locked,
    needed_here,
    new_space,
    operators,
    texts_and_references_of,
    texts_of,
    used_by_references,
    with_helpers,
)
from autograder.judge.heard import Heard, heard
from autograder.judge.looks import COUNTS
from autograder.judge.own_modules import know
from autograder.judge.passes import REFERENCE, STEADY
from autograder.judge.questions import own_script
from autograder.judge.reach import know_cell, know_test
from autograder.judge.read_answer import locked_names
from autograder.judge.space import BrokenCell, compiled_cell
from autograder.judge.testing import compiled
from autograder.judge.texts import run_no_texts, run_sql_within_bounds
from autograder.judge.vetted import is_others
from autograder.judge.why_apart import why
from autograder.judge.work import Work

DATABASES = frozenset(("sqlite3", "pandas", "sqlalchemy", "peewee", "polars"))  # by SQLite


def prepare(assignment: Assignment) -> None:
    """Find out once, before workers are forked, what every submission needs."""
    files_of(assignment.digest, assignment.folder, assignment.files)  # while they can be read
    helpers = frozenset(modules(assignment, assignment.files))
    used = {name.partition(".")[0] for one in assignment.notebooks for name in imported(one)}
    own = {name for name in used if not is_others(name)} | {n.partition(".")[0] for n in helpers}
    run_no_texts(texts_of(assignment.notebooks), own)
    beside = (path for path in assignment.files if path.suffix == ".py")
    if used & DATABASES or any(b"sqlite3" in path.read_bytes() for path in beside):
        run_sql_within_bounds()
    run_no_examples(texts_and_references_of(assignment.notebooks))
    if "torch" in sys.modules:
        importlib.import_module("autograder.bridge.tensors")
    for notebook in assignment.notebooks:
        open_packages(imported(notebook))
        needed_here(notebook)
        bound, _ = locked_names(tuple(locked(notebook)))
        know({origin for one in bound for _, origin in one.imports})
        new_space(notebook)
        for id, imports in (*notebook.imports.items(), *notebook.stars.items()):
            facts(imports)
            compiled_cell(imports, id)
        for solutions in (None, *(group.solutions for group in notebook.groups)):
            operators(notebook, solutions)
            used_by_references(notebook, solutions)
        assert notebook.shared_names is not None
        given = given_texts(assignment, notebook)
        for cell in notebook.cells:
            if cell.kind == "test":
                with_helpers(cell.source, given)
                compiled(cell.source, f"<test {cell.grade_id}>", cell.hidden_from)
                for look in (looks_for_claims, looks_at_random, catches_by_value, know_test):
                    look(cell.source)
                imports_something(cell.stub)
            elif cell.cell_type == "code":
                facts(cell.source)
                acts(cell.source)
                altered(cell.source)
                with suppress(SyntaxError):  # it is said where it runs
                    code = compiled_cell(cell.source, cell.grade_id or NAMELESS)
                    know_cell(cell.source, code, helpers)


def runs(
    assignment: Assignment,
    answers: Mapping[str, str],
    fork_server: ForkServer,
    questions: Sequence[str],
    only: Notebook | None = None,
    known: Heard | None = None,
) -> dict[str, TestRun]:
    """How the tests of some questions go with these answers, the reference elsewhere.

    Args:
        assignment: what was asked.
        answers: source by grade_id of a solution cell.
        fork_server: where processes come from.
        questions: grade_ids of solution cells whose tests are run.
        only: the notebook they are in; another one may have cells of the same grade_ids.
        known: what the reference gives, if the answers are to be doubted as a student's are.
    """
    purpose = REFERENCE if known is None else STEADY
    found: dict[str, TestRun] = {}
    for notebook in assignment.notebooks if only is None else (only,):
        wanted = {t for g in notebook.groups if set(g.solutions) & set(questions) for t in g.tests}
        if not wanted:
            continue
        script = own_script(notebook, answers, wanted)
        work = Work(assignment, notebook, script, fork_server, known, Budget(), purpose)
        with as_graded():
            found |= {run.test: run for run in work.run() if run.test in wanted}
    return found


@contextmanager
def as_graded() -> Iterator[None]:
    """Cells of the instructor's run here as in a worker, where nbgrader's variable says so."""
    name = "NBGRADER_EXECUTION"
    before = os.environ.get(name)
    os.environ[name] = "autograde"
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


@dataclass
class Rehearsal:
    """What came of trying an assignment's tests."""

    complaints: list[str] = field(default_factory=list)  # what keeps them from being run
    costs: dict[str, tuple[int, float]] = field(default_factory=dict)  # by test: calls and work


def rehearse(assignment: Assignment, fork_server: ForkServer) -> Rehearsal:
    """Try the tests with the reference, and with the untouched release, as they will be run."""
    found = Rehearsal()
    complaints = found.complaints
    for notebook in assignment.notebooks:
        solutions = [cell.grade_id for cell in notebook.of_kind("solution")]
        first = runs(assignment, {}, fork_server, solutions, notebook)
        known = heard(assignment, notebook, first)
        again = runs(assignment, {}, fork_server, solutions, notebook, known)
        for run in first.values():
            found.costs[run.test] = run.calls, run.work
            if is_no_number(run):
                continue  # nbgrader gives full points then, and so do we
            points = notebook.cell(run.test).points
            if run.status != "passed" or run.score != points:
                words = _complaint(assignment, notebook, run)
                complaints.append(f"{assignment.name}/{notebook.name}, {words}")
            elif _is_lost(again.get(run.test)):
                words = _as_a_students(again[run.test])
                complaints.append(f"{assignment.name}/{notebook.name}, {words}")
        stubs = {id: notebook.cell(id).stub for id in solutions}
        for run in runs(assignment, stubs, fork_server, solutions, notebook).values():
            if run.score:
                complaints.append(
                    f"{assignment.name}/{notebook.name}, test {run.test}: the untouched release "
                    f"gets {run.score:g} points; let the test fail without an answer."
                )
    return found


def _complaint(assignment: Assignment, notebook: Notebook, run: TestRun) -> str:
    """Why a test cannot be used, for the instructor."""
    cell, first = notebook.cell(run.test), run.message.partition("\n")[0] or run.error
    if cell.cannot:
        return f"test {run.test} cannot be graded: {cell.cannot}"
    if run.status == "passed":
        said = f"the reference gets {run.score:g} of {cell.points:g} points."
    elif run.error == BrokenCell.__name__:
        said = f"{first}; tests run in a process of their own, so mend the cell."
    else:
        said = (
            "the reference does not pass it when tests and answers run in two processes "
            f"({run.error}: {first})."
        )
    return f"test {run.test}: {said}{why(assignment, notebook, run)}"


def _is_lost(run: TestRun | None) -> bool:
    """Whether a test that passed does not when the answer is doubted.

    One that goes by the order in which it is asked is let go on as the reference does.
    """
    return run is not None and run.status != "passed" and run.message != COUNTS


def _as_a_students(run: TestRun) -> str:
    """That the reference loses a test when it is doubted as what a student hands in."""
    first = run.message.partition("\n")[0] or run.error
    return (
        f"test {run.test}: the reference passes it, and would not as a student's answer "
        f"({run.error}: {first})."
    )

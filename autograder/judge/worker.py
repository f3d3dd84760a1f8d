"""Grade one submission: run its cells in a sandbox, the tests here, and put the result together."""

import ast
import builtins
import collections.abc
import importlib
import math
import os
import random
import re
import shutil
import symtable
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any, Literal, Protocol

from autograder.bridge import library
from autograder.bridge.due import is_data
from autograder.bridge.errors import said
from autograder.bridge.line import Gone
from autograder.bridge.public import open_packages
from autograder.bridge.reference import Allowed, comparisons, expectations, parts_of, steps
from autograder.bridge.session import CellRun, Student
from autograder.bridge.stand_ins import BINARY, FORWARDED
from autograder.common.course import CourseError
from autograder.common.names import shown
from autograder.common.results import (
    Cost,
    Crossing,
    Flag,
    NotebookResult,
    Opaque,
    Raised,
    Result,
    TestRun,
    Transcript,
    Verdict,
)
from autograder.common.syntax import (
    acts,
    altered,
    facts,
    imported_where_missing,
    imports_something,
    parse,
    touched,
)
from autograder.isolation.clock import doubt
from autograder.isolation.parts import Parts
from autograder.isolation.pool import Unwell
from autograder.judge.assignment import Assignment, Cell, Group, Notebook
from autograder.judge.diagnose import CHANGED, told
from autograder.judge.differences import kept
from autograder.judge.differences import same as alike
from autograder.judge.intake import Script, ScriptCell, Submission, read_submission
from autograder.judge.plain import as_in_notebook
from autograder.judge.reach import holds_state, may_change, may_hold
from autograder.judge.rules import (
    ALL,
    Place,
    QuestionRules,
    broken_rules,
    locked_names,
    module_cell,
    statements,
    unread,
)
from autograder.judge.texts import run_no_texts
from autograder.judge.trusted import (
    BrokenCell,
    Guard,
    NoNumber,
    Prepared,
    Space,
    catches_by_value,
    catches_claims,
    compiled,
    compiled_cell,
    looks_at_random,
    looks_for_claims,
    refuse_broad,
    remotes_in,
    run_test,
)

METHOD = re.compile(r"(?<=def )__\w+__|__\w+__(?=\s*=[^=])")
ORDER = ("__lt__", "__le__", "__gt__", "__ge__")
OPERATORS = FORWARDED | {"__hash__"}
INSTEAD = dict(zip(ORDER, ORDER[2:] + ORDER[:2], strict=True))
INSTEAD |= {f"__{name}__": f"__i{name}__" for name in BINARY}
INSTEAD |= {f"__i{name}__": f"__{name}__" for name in BINARY}


class ForkServer(Protocol):
    """Where students' processes come from."""

    head: tuple[tuple[str, str, str], ...]  # cells that are run already: name, text, what it said

    def spawn(self, *, begun: bool = False) -> Any:
        """A new process; one in which the head has run, if it is `begun`."""
        ...


class Shelf(Protocol):
    """What is known of an assignment's tests."""

    unable: frozenset[str]  # tests that the reference does not pass either, in two processes

    def of(self, test: str) -> tuple[Transcript | None, tuple[Any, ...]]:
        """What the reference gives in a test, and the mistakes known for its question."""
        ...


def grade(
    assignment: Assignment,
    folder: Path,
    student: str,
    fork_server: ForkServer,
    known: Shelf | None = None,
) -> Result:
    """Grade one submission; every end of it is a result.

    Args:
        assignment: what was asked.
        folder: holds what the student handed in.
        student: the student's name.
        fork_server: where processes for the student's code come from.
        known: mistakes that can be named; None if there are none.
    """
    return grade_submission(
        assignment, read_submission(folder, student, assignment), fork_server, known
    )


def grade_submission(
    assignment: Assignment,
    submission: Submission,
    fork_server: ForkServer,
    known: Shelf | None = None,
    seconds: float = math.inf,
    parts: Parts | None = None,
) -> Result:
    """Grade what was read of a submission; in all in about so many seconds.

    Its tests, and the instructor's cells, are the `parts`: one that has ended the process in which
    tests run is not run again.
    """
    start = time.monotonic()
    budget = Budget(seconds)
    budget.parts = parts or budget.parts
    graded: list[tuple[NotebookResult, tuple[Flag, ...]]]
    if submission.reason:
        graded = [(_all_lost(one, submission.reason), ()) for one in assignment.notebooks]
    else:
        scripts = submission.scripts
        graded = [_grade_script(assignment, one, fork_server, known, budget) for one in scripts]
    if graded and submission.notes:
        first, flags = graded[0]
        graded[0] = replace(first, notes=(*submission.notes, *first.notes)), flags
    flags = [*submission.flags, *(flag for _, flags in graded for flag in flags)]
    return Result(
        student=submission.student,
        assignment=assignment.name,
        key=submission.key,
        notebooks=tuple(notebook for notebook, _ in graded),
        flags=tuple(dict.fromkeys(flags)),
        reason=submission.reason,
        seconds=time.monotonic() - start,
        cost=budget.cost(),
    )


def prepare(assignment: Assignment) -> None:
    """Find out once, before workers are forked, what every submission needs."""
    _given(assignment.digest, assignment.folder, assignment.files)  # while they can be read
    run_no_texts(partial(_texts, assignment.notebooks))
    if "torch" in sys.modules:
        importlib.import_module("autograder.bridge.tensors")
    for notebook in assignment.notebooks:
        open_packages(imported(notebook))
        _needed_here(notebook)
        locked_names(tuple(_locked(notebook)))
        _space(notebook)
        for id, imports in (*notebook.imports.items(), *notebook.stars.items()):
            facts(imports)
            compiled_cell(imports, id)
        for solutions in (None, *(group.solutions for group in notebook.groups)):
            _operators(notebook, solutions)
            _used(notebook, solutions)
        assert notebook.shared_names is not None
        for cell in notebook.cells:
            if cell.kind == "test":
                compiled(cell.source, f"<test {cell.grade_id}>", cell.hidden_from)
                for look in (looks_for_claims, looks_at_random, catches_by_value):
                    look(cell.source)
            elif cell.cell_type == "code":
                facts(cell.source)
                acts(cell.source)
                altered(cell.source)
                with suppress(SyntaxError):  # it is said where it runs
                    compiled_cell(cell.source, cell.grade_id or NAMELESS)


def runs(
    assignment: Assignment,
    answers: Mapping[str, str],
    fork_server: ForkServer,
    questions: Sequence[str],
    only: Notebook | None = None,
) -> dict[str, TestRun]:
    """How the tests of some questions go with these answers, the reference elsewhere.

    Args:
        assignment: what was asked.
        answers: source by grade_id of a solution cell.
        fork_server: where processes come from.
        questions: grade_ids of solution cells whose tests are run.
        only: the notebook they are in; another one may have cells of the same grade_ids.
    """
    found: dict[str, TestRun] = {}
    for notebook in assignment.notebooks if only is None else (only,):
        wanted = {t for g in notebook.groups if set(g.solutions) & set(questions) for t in g.tests}
        if not wanted:
            continue
        script = _own_script(notebook, answers, wanted)
        work = Work(assignment, notebook, script, fork_server, None, own=True)
        found |= {run.test: run for run in work.run() if run.test in wanted}
    return found


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
        for run in runs(assignment, {}, fork_server, solutions, notebook).values():
            found.costs[run.test] = run.calls, run.work
            if _is_no_number(run):
                continue  # nbgrader gives full points then, and so do we
            points = notebook.cell(run.test).points
            if run.status != "passed" or run.score != points:
                words = _complaint(run, points) + _withheld(assignment, run)
                complaints.append(f"{assignment.name}/{notebook.name}, {words}")
        stubs = {id: notebook.cell(id).stub for id in solutions}
        for run in runs(assignment, stubs, fork_server, solutions, notebook).values():
            if run.score:
                complaints.append(
                    f"{assignment.name}/{notebook.name}, test {run.test}: the untouched release "
                    f"gets {run.score:g} points; let the test fail without an answer."
                )
    return found


def _complaint(run: TestRun, points: float) -> str:
    """Why a test cannot be used, for the instructor."""
    if run.status == "passed":
        return f"test {run.test}: the reference gets {run.score:g} of {points:g} points."
    first = run.message.partition("\n")[0] or run.error
    if run.error == BrokenCell.__name__:
        return f"test {run.test}: {first}; tests run in a process of their own, so mend the cell."
    return (
        f"test {run.test}: the reference does not pass it when tests and answers run in two "
        f"processes ({run.error}: {first})."
    )


def _withheld(assignment: Assignment, run: TestRun) -> str:
    """That an answer lacks a file which its students do not get, if its error names one."""
    for path in assignment.files:
        named = path.stem if path.suffix == ".py" else path.name
        if path not in assignment.released and named in run.message:
            return (
                f" The release does not hold {path.relative_to(assignment.folder)} "
                "(c.CourseDirectory.ignore): only tests can read it, no answer."
            )
    return ""


def _grade_script(
    assignment: Assignment,
    script: Script,
    fork_server: ForkServer,
    known: Shelf | None,
    budget: "Budget",
) -> tuple[NotebookResult, tuple[Flag, ...]]:
    try:
        return _graded(assignment, script, fork_server, known, budget)
    except (Gone, Exception) as error:  # noqa: BLE001  (no submission may stay without a grade)
        words = f"it could not be graded ({said(error)}); the instructor has to look"
        flag = Flag("died", script.name, f"{words}: {error}"[:500])
        return _all_lost(assignment.notebook(script.name), words), (*script.flags, flag)


def _graded(
    assignment: Assignment,
    script: Script,
    fork_server: ForkServer,
    known: Shelf | None,
    budget: "Budget",
) -> tuple[NotebookResult, tuple[Flag, ...]]:
    notebook = assignment.notebook(script.name)
    if script.reason:
        lost = _all_lost(notebook, script.reason)
        answers = {piece.grade_id: piece.source for piece in script.pieces}
        return replace(lost, answers=answers, notes=script.notes), script.flags
    work = Work(assignment, notebook, script, fork_server, known, budget)
    found = as_in_notebook(work, _in_private(work, work.run()))
    verdicts = [_verdict(work, run, found, known) for run in found]
    result = NotebookResult(
        name=script.name,
        verdicts=tuple(verdicts),
        answers=dict(script.answers),
        outputs={id: run.printed for id, run in work.cells.items() if run.printed},
        extra=script.extra,
        notes=_few([*script.notes, *work.notes, *work.left_out]),
    )
    return result, (*script.flags, *work.flags)


def _few(notes: Sequence[str]) -> tuple[str, ...]:
    """As many of these sentences as a result holds; the last one says how many are missing."""
    if len(notes) <= MOST_NOTES:
        return tuple(notes)
    more = len(notes) - MOST_NOTES + 1
    return (*notes[: MOST_NOTES - 1], f"There are {more} more notes of this kind.")


MAX_BEGINNING = 60  # characters of a cell by which a student knows it
ENDS = ("failed", "error", "timeout", "died", "unanswered")  # an answer's own


def _in_private(work: "Work", found: list[TestRun]) -> list[TestRun]:
    """How an answer ended after a hidden test ran beside it is not repeated, nor what it gave.

    It may have kept what the hidden test asked, in a file for instance: texts and values could tell
    it, and so could which of several ends it chose. So what is told of a visible failure, and what
    cells print, comes from a new process that has met no hidden test.
    """
    doubtful = [run for run in found if run.status in ENDS and not run.in_hidden]
    doubtful = [run for run in doubtful if run.test in work.met_hidden and not run.stood_in]
    if not doubtful and not work.printed_late:
        return found
    private = Work(
        work.assignment,
        work.notebook,
        work.script,
        work.fork_server,
        work.known,
        work.budget,
        private=True,
    )
    wanted = {run.test for run in doubtful}
    again = {run.test: run for run in private.run_visible(wanted)}
    work.cells, work.left_out = private.cells, work.left_out | private.left_out
    return [
        _told_in_private(run, again.get(run.test)) if run.test in wanted else run for run in found
    ]


def _told_in_private(run: TestRun, again: TestRun | None) -> TestRun:
    """The same end of a test, with the words and values of its private run, if there was one."""
    if again is None or again.status not in ENDS:
        return replace(run, status="failed", error="", message="", raised=None, transcript=())
    run = replace(run, status=again.status, error=again.error, message=again.message)
    return replace(run, raised=again.raised, transcript=again.transcript)


def _verdict(work: "Work", run: TestRun, found: Sequence[TestRun], known: Shelf | None) -> Verdict:
    cell = work.notebook.cell(run.test)
    try:
        reference, mistakes = known.of(run.test) if known is not None else (None, ())
        if known is not None and run.test in known.unable and run.status in ("failed", "error"):
            words = "the reference does not pass this test here either"
            run = TestRun(run.test, "test-error", run.score, message=words)
        return told(run, cell, reference, mistakes, answers=work.script.answers, runs=found)
    except Exception as error:  # noqa: BLE001  (words that cannot be found cost no points)
        text = f"{run.status}: it could not be explained ({said(error)}: {error})"[:500]
        words = "" if run.status == "passed" else "A test failed."
        return Verdict(run.test, run.status, run.score, cell.points, words, text, run.in_hidden)


def _all_lost(notebook: Notebook, reason: str) -> NotebookResult:
    """Every test of a notebook at 0, for one reason."""
    verdicts = [
        Verdict(cell.grade_id, "unanswered", 0.0, cell.points, told=reason, said=reason)
        for cell in notebook.of_kind("test")
    ]
    return NotebookResult(notebook.name, tuple(verdicts), reason=reason)


def _own_script(notebook: Notebook, answers: Mapping[str, str], tests: set[str]) -> Script:
    """The instructor's own notebook as a submission, some answers replaced."""
    cells = []
    for place, cell in enumerate(notebook.cells):
        if cell.kind == "test":
            if cell.grade_id in tests:
                cells.append(ScriptCell("test", cell.grade_id, "", "code", place))
        elif cell.cell_type == "code":
            kind = "answer" if cell.kind in ("solution", "manual") else "skeleton"
            source = answers.get(cell.grade_id, cell.source) if cell.grade_id else cell.source
            cells.append(ScriptCell(kind, cell.grade_id, source, "code", place))
    return Script(notebook.name, tuple(cells))


class Budget:
    """The time that one submission may take in all, and how much of it may go into repetitions.

    What was found when it is over counts. A first look at every question comes before a second one
    at any, so half of the time is kept for it.
    """

    def __init__(self, seconds: float = math.inf) -> None:
        """Start the clock."""
        self.parts = Parts()  # of which nobody is told
        self.until = time.monotonic() + seconds
        self.spare = seconds / 2  # for what was run already
        self.start = time.process_time()
        self.answers, self.calls = 0.0, 0  # see `Cost`
        self._repeats = False

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return max(0.0, self.until - time.monotonic())

    def note(self, process: Student) -> None:
        """Count what a process of answers has taken."""
        self.answers += process.worked()
        self.calls += process.peer.requests

    def cost(self) -> Cost:
        """What has been used so far."""
        return Cost(time.process_time() - self.start, self.answers, self.calls)

    @property
    def may_repeat(self) -> bool:
        """Whether there is time for a second look."""
        return self.spare > 0 and self.left > 0

    @contextmanager
    def repeating(self) -> Iterator[None]:
        """What happens inside was run once already; within another such part it counts once."""
        start, outer, self._repeats = time.monotonic(), self._repeats, True
        try:
            yield
        finally:
            self._repeats = outer
            if not outer:
                self.spare -= time.monotonic() - start


@dataclass
class Done:
    """A cell that has run, and runs again where a new process takes the place of an old one."""

    name: str
    source: str
    given: Cell | None = None  # the instructor's, if it was prepared here and asked the answers


@dataclass(frozen=True)
class Lacks:
    """What an answer is run without, to see whether it needs that."""

    out: frozenset[tuple[int, int]] = frozenset()  # statements: the place of a cell, and which
    modules: frozenset[str] = frozenset()
    meant: frozenset[tuple[int, int, str]] = frozenset()  # builtins, up to these statements


class Before:
    """What there was when a question's tests began."""

    def __init__(self, student: Student, space: Space) -> None:
        student.peer.used.clear()
        self.handed = student.peer.next_number
        self.changes = student.peer.changes.total()
        self.names = dict(space)


@dataclass
class Aside:
    """The process in which all tests so far have run, while others look again at a question."""

    process: Student
    space: Space
    values: dict[str, Any] | None = None  # what stood there when another began; None before
    hidden_ran: bool = False


@dataclass
class Work:
    """Running one notebook of a submission."""

    assignment: Assignment
    notebook: Notebook
    script: Script
    fork_server: ForkServer
    known: Shelf | None
    budget: Budget = field(default_factory=Budget)
    own: bool = False  # whether these are the instructor's own answers
    private: bool = False  # whether hidden tests are left out
    met_hidden: set[str] = field(default_factory=set)  # tests run after a hidden one had run
    deadly: set[str] = field(default_factory=set)  # tests that have ended a process
    passed: set[str] = field(default_factory=set)  # tests that have passed with no reference
    hidden_ran: bool = False  # in the present process, or the reference stood in there
    hidden_kept: bool = False  # whether values of the instructor's may hold something of one
    printed_late: bool = False  # whether a cell printed something after a hidden test
    checking: bool = False  # whether the reference is tried as a student's answer
    isolated: bool = False  # whether the reference stands in the place of all other answers
    alone: bool = False  # whether what could not be read is left out
    goes_on: bool = False  # whether later tests find what answers have done to values of ours
    space: Space = field(init=False)
    cells: dict[str, CellRun] = field(default_factory=dict)  # how each answer's cell went
    done: list[Done] = field(default_factory=list)
    broken: set[str] = field(default_factory=set)  # names that failed their own tests
    notes: list[str] = field(default_factory=list)
    left_out: dict[str, None] = field(default_factory=dict)  # of cells and calls, in sentences
    flags: list[Flag] = field(default_factory=list)
    asked: dict[str, list[Any]] = field(default_factory=dict)  # calls of tests that passed
    ran: dict[Group, set[str]] = field(default_factory=dict)  # forbidden operations
    read_alone: dict[Lacks, dict[str, TestRun]] = field(default_factory=dict)  # see `_read_alone`
    made: list[Cell | tuple[ScriptCell, frozenset[str]]] = field(default_factory=list)
    unwatched: bool = False  # whether an answer is known to run nothing that it may not
    losses: int = 0  # processes that had to be ended since the present question began
    references: dict[Group, dict[str, TestRun]] = field(default_factory=dict)
    restored: frozenset[str] = frozenset()  # names that get their usual meaning back
    starred: dict[str, frozenset[str]] = field(default_factory=dict)  # by cell that asks for them
    usual: dict[str, frozenset[str]] = field(default_factory=dict)  # those by test, where it helped
    used: bool = False  # whether tests have run in the present process
    aside: Aside | None = None  # to which the next question goes back
    spoilt: bool = False  # whether an answer may have changed what the instructor's cells made
    was_anew: bool = False  # whether these were made anew, and what earlier tests made is not there
    tainted: bool = False  # whether that was so where tests share things, and it stays as it is
    process: Student | None = None
    place: "_Place | None" = None  # where the instructor's cells and the tests run
    values: dict[str, bool] = field(default_factory=dict)  # by name: whether it stands for values
    begun: tuple[str, ...] = ()  # what the cells printed that are run already in new processes

    def __post_init__(self) -> None:
        """Find out whether the submission begins as most do."""
        self.space = self._new_space()
        own = [(c.grade_id or YOURS, c.source) for c in self.script.cells if _is_run(c)]
        head = self.fork_server.head
        same = own[: len(head)] == [(name, source) for name, source, _ in head]
        if same and not (
            self.script.files or self.assignment.files
        ):  # which lie there before any cell runs
            self.begun = tuple(printed for _, _, printed in head)

    def _new_space(self) -> Space:
        space = _space(self.notebook)
        space.helpers = frozenset(_modules(self.assignment, self.assignment.released))
        if not self.own:
            space.is_value, space.may_catch = self._is_value, self._may_catch
        return space

    @property
    def _helpers(self) -> frozenset[str]:
        """The instructor's modules beside the notebook, those that tests alone see too."""
        return frozenset(_modules(self.assignment, self.assignment.files))

    def _is_value(self, name: str) -> bool:
        """Whether what goes by a name is nothing but values with the reference."""
        if name not in self.values:
            made = self._reference({name})
            self.values[name] = name in made and is_data(made[name])
        return self.values[name]

    def _may_catch(self, name: str) -> bool:
        """Whether what goes by a name with the reference catches what a test claims."""
        return bool(catches_claims(self._reference({name}).get(name)))

    def run(self) -> list[TestRun]:
        """Run all cells and tests in order."""
        return self._in_order(self._tests)

    def run_visible(self, wanted: Collection[str]) -> list[TestRun]:
        """Run all cells, and the visible part of some tests under the same conditions."""
        before = {test: self._visible_before(test) for test in wanted}
        told = {test for test, earlier in before.items() if earlier is not None}
        needed = told.union(*(before[test] or () for test in told))

        def tests(batch: Sequence[str]) -> list[TestRun]:
            found: list[TestRun] = []
            for group in self.notebook.groups:
                here = [test for test in group.tests if test in batch and test in needed]
                if not here:
                    continue
                with suppress(Gone, Exception):  # what cannot be told in private is not told
                    runs = self._group(group, here, {})
                    found += [self._explained(group, run) for run in runs if run.test in told]
            return found

        return self._in_order(tests)

    # --- what `plain` asks for ----------------------------------------------------------------

    def visible(self, test: str) -> str:
        """What a student sees of a test."""
        return self.notebook.cell(test).stub

    def script_that_ran(self) -> Script:
        """The submission's cells, without those that have ended their process."""
        ran = {(step.name, step.source) for step in self.done}
        names = [(cell, cell.grade_id or YOURS) for cell in self.script.cells]
        cells = (c for c, name in names if c.kind == "test" or (name, c.source) in ran)
        return replace(self.script, cells=tuple(cells))

    def script_helped(self, failed: Collection[str], asked: Collection[str]) -> Script:
        """The submission's cells, with all that stands in where these tests are graded.

        Args:
            failed: tests that failed; where the reference may stand in, it does for their answers.
            asked: tests before which names are as the question finds them.
        """
        stood_in: set[str] = set()
        if self.assignment.stand_in:
            groups = (group for group in self.notebook.groups if {*group.tests} & {*failed})
            stood_in = {id for group in groups for id in group.solutions}
        cells: list[ScriptCell] = []
        for cell in self.script_that_ran().cells:
            if cell.kind == "test" and cell.grade_id in asked:
                cells += self._usual(cell.grade_id)
            cells.append(cell)
            if cell.kind == "answer" and cell.grade_id in stood_in:
                source = self.notebook.cell(cell.grade_id).source
                cells.append(ScriptCell("skeleton", "", source, "code"))
        return replace(self.script, cells=tuple(cells))

    def _usual(self, test: str) -> Iterator[ScriptCell]:
        """Cells after which names mean what a test's question finds: covered ones, missing ones."""
        ids = self.asked_by(test)
        covered = sorted(self._shadowed(Group(ids, (test,))))
        text = "\n".join(UNCOVER.format(name) for name in covered if hasattr(builtins, name))
        yield ScriptCell("skeleton", "", text, "code")
        for cell in self.notebook.of_kind("readonly", "code"):
            if {*covered} & facts(cell.source).bound:
                yield ScriptCell("skeleton", "", cell.stub, "code")
        yield self._imports_of(ids, [test])

    def _imports_of(self, ids: Collection[str], tests: Collection[str]) -> ScriptCell:
        """A cell that makes what references import and tests use, where answers lack it."""
        texts = [self.notebook.imports.get(id, "") for id in ids]
        texts += [self.notebook.stars.get(id, "") for id in ids]
        needed = frozenset().union(*(facts(self.visible(test)).needed for test in tests))
        source = imported_where_missing("\n".join(texts), needed)
        return ScriptCell("skeleton", "", source, "code")

    def asked_by(self, test: str) -> tuple[str, ...]:
        """The solution cells that a test asks: of its question, or others that it is about."""
        group = next(group for group in self.notebook.groups if test in group.tests)
        asked = facts(self.notebook.cell(test).source).needed
        makers = {id for id, names in self.notebook.defines.items() if asked.intersection(names)}
        if not self._is_about_others(group, test):
            makers = makers.intersection(group.solutions) or {*group.solutions}
        return tuple(cell.grade_id for cell in self.notebook.cells if cell.grade_id in makers)

    def not_beside(self, group: Group) -> set[str]:
        """Tests that cannot run beside `script_of` a question: what they ask is not there."""
        if self.assignment.stand_in:
            return set()
        tests = {cell.grade_id for cell in self.notebook.of_kind("test")}
        here = (one.tests for one in self.notebook.groups if {*one.tests} & {*group.tests})
        return tests.difference(*here)

    def script_of(self, group: Group | None) -> Script:
        """The instructor's notebook with the student's answers to a question alone, or to none.

        Where the reference may not stand in, what the question uses of other answers is there.
        """
        tests = {cell.grade_id for cell in self.notebook.of_kind("test")}
        if group is None:
            return _own_script(self.notebook, {}, tests)
        wanted: Collection[str] = group.solutions
        others: dict[str, str] = {}
        if not self.assignment.stand_in:
            wanted = self._needed_by(group)
            others = {cell.grade_id: "" for cell in self.notebook.of_kind("solution", "manual")}
        answers = {id: self.script.answers[id] for id in wanted if id in self.script.answers}
        script = _own_script(self.notebook, others | answers, tests)
        brought, cells = self._imports_of(group.solutions, group.tests), list(script.cells)
        for place, cell in reversed(list(enumerate(cells))):
            if cell.grade_id in group.tests:
                cells.insert(place, brought)
        return replace(script, cells=tuple(cells), files=self.script.files)

    def _needed_by(self, group: Group) -> set[str]:
        """The solution cells of a question, and those that make names which it uses."""
        found, used = set(group.solutions), self._used(group)
        while (
            more := {id for id, names in self.notebook.defines.items() if used.intersection(names)}
            - found
        ):
            found |= more
            used |= {n for id in more for n in facts(self.script.answers.get(id, "")).needed}
        return found

    @contextmanager
    def beside(self, script: Script) -> Iterator[Callable[[ScriptCell, str], CellRun]]:
        """What runs the cells of a script, and texts of tests among them, in a new process."""
        work = Work(self.assignment, self.notebook, script, self.fork_server, None, self.budget)
        begun = iter(work.begun)  # what these printed has been printed

        def run(cell: ScriptCell, text: str) -> CellRun:
            if cell.cell_type != "code" or not text.strip():
                return CellRun(True)
            if cell.kind != "test" and (printed := next(begun, None)) is not None:
                return CellRun(True, printed)
            seconds = self._seconds(cell.grade_id)
            if cell.kind == "test":  # which works there as well
                limit = max(map(self._seconds, self.asked_by(cell.grade_id)), default=seconds)
                seconds = min(2 * limit, self.budget.left)
            return work._student().run(cell.grade_id or YOURS, text, seconds)

        try:
            with self.budget.repeating():
                yield run
        finally:
            work._renew()

    def _visible_before(self, test: str) -> list[str] | None:
        """Tests whose visible parts give names to this one's; None if a hidden part gives one."""
        order = [cell.grade_id for cell in self.notebook.of_kind("test")]
        group = next(g for g in self.notebook.groups if test in g.tests)
        shared = set(self.notebook.shared_names.get(test, ()))
        needed = facts(self._test_cell(test, visible=True).source).needed
        found: list[str] = []
        for earlier in reversed(order[: order.index(test)]):
            wanted = needed if earlier in group.tests else needed & shared
            given = wanted & facts(self.notebook.cell(earlier).source).bound
            seen = facts(self._test_cell(earlier, visible=True).source)
            if given - seen.bound:
                return None
            if given:
                found.append(earlier)
                needed = (needed - given) | seen.needed
                shared |= set(self.notebook.shared_names.get(earlier, ()))
        return found

    def _in_order(self, tests: Callable[[Sequence[str]], list[TestRun]]) -> list[TestRun]:
        """Run the cells, and after them, batch by batch, the tests that follow them."""
        open_packages(imported(self.notebook))
        found: list[TestRun] = []
        needed = _needed_here(self.notebook)
        with _beside(self.assignment) as self.place:
            try:
                for batch, cells in _batches(self.script):
                    for cell in cells:
                        self._attempt_step(cell, needed)
                    found += tests(batch)
            finally:
                self._renew()
        return found

    # --- cells --------------------------------------------------------------------------------

    def _student(self) -> Student:
        """The student's process; after a loss a new one that has run the same cells."""
        while self.process is None:
            if self.losses > MOST_LOSSES:
                raise Gone("died", "its process ended again and again")
            if not self.budget.left:
                doubt()
                raise Gone("timeout", IN_ALL)
            try:
                spawned = self.fork_server.spawn(begun=bool(self.begun))
            except CourseError as error:
                raise Unwell(str(error)) from error
            self.process = Student(spawned, self._guard())
            self._trust(self.process)
            self._lay_out(self.process)
            with self.budget.repeating():
                if not self._run_all_again(self.process):
                    self._lose()
        return self.process

    def _guard(self, solutions: Sequence[str] | None = None) -> Guard:
        return Guard(_operators(self.notebook, solutions), self.space.helpers)

    def _trust(self, student: Student, solutions: Sequence[str] | None = None) -> None:
        """Believe of answers what the reference's, of some questions or of all, could do."""
        student.peer.policy = self._guard(solutions)
        used = _used(self.notebook, solutions)

        def given(name: str) -> type | None:
            kind = self.space.raisable.get(name)
            found = kind is not None and not used.isdisjoint((name, kind.__module__))
            return kind if found else None

        student.peer.errors.given = given

    def _lay_out(self, student: Student) -> None:
        """Put what was handed in, and over it what was handed out, where the student's cells run.

        Files that the release does not hold are for tests alone: an answer could read them here.
        """
        for name, content in (*self.script.files, *_released(self.assignment)):
            try:
                with student.clock(START_SECONDS):
                    student.peer.ask("put", name, content)
            except Exception:  # noqa: BLE001  (the disk is full, or something lies there)
                self.left_out[f"The file {shown(name)} could not be put beside the notebook."] = (
                    None
                )

    def _run_all_again(self, student: Student) -> bool:
        """Run what has run before; False if that ended the process."""
        return all(self._run_again(student, step) for step in self.done[len(self.begun) :])

    def _run_again(self, student: Student, step: Done) -> bool:
        """Run a cell once more; False if that ended the process, and the cell is then left out."""
        self.space.student = student
        given, step.given = step.given, None
        if given is not None:
            if self._prepare(given).gone:
                return False
            step.given = given
        if student.run(step.name, step.source, self._seconds(step.name)).gone:
            self.done.remove(step)
            return False
        return True

    def _lose(self) -> None:
        """Give up a process that was killed or tampered with, and what tests hold of it."""
        self.losses += self.process is not None
        if self.aside is None or self._is_first():
            self.aside = None
            self._forget_objects()
        self._renew()

    def _forget_objects(self) -> None:
        """Nothing that tests share leads to a process that is given up."""
        shared = {name for names in self.notebook.shared_names.values() for name in names}
        for name in shared & self.space.keys():
            if remotes_in(self.space[name], all_of_them=True):
                self.space.pop(name)

    def _renew(self) -> None:
        """Go on in a new process; the one in which tests have run so far may wait for its turn."""
        process, self.process = self.process, None
        if self.aside is not None and self.aside.process is process:
            self.aside.values, self.aside.hidden_ran = dict(self.space), self.hidden_ran
        elif process is not None:
            self._close(process)
        self.space.student = None
        self.used = False
        # what hidden tests have made for later ones is still there
        self.hidden_ran = self.hidden_ran and bool(self.notebook.shared_names)

    def _close(self, process: Student) -> None:
        self.budget.note(process)
        try:
            process.close()
        except CourseError as error:  # it had never been made
            raise Unwell(str(error)) from error

    def _is_first(self) -> bool:
        """Whether the present process is the one to which the next question goes back."""
        return self.aside is not None and self.aside.process is self.process

    def _stay(self) -> None:
        """Go on in the present process after all."""
        aside, self.aside = self.aside, None
        if aside is not None and aside.process is not self.process:
            self._forget_objects()
            self._close(aside.process)

    @contextmanager
    def _coming_back(self) -> Iterator[None]:
        """Whatever is looked at in new processes, in the end go on in the present one.

        In it are the answers' own objects as earlier tests have left them.
        """
        with suppress(Gone):  # whoever needs one is told why there is none
            self.aside = Aside(self._student(), self.space)
        try:
            yield
        finally:
            aside, self.aside = self.aside, None
            if aside is not None and aside.process is not self.process:
                self._go_back(aside)

    def _go_back(self, aside: Aside) -> None:
        made_anew = self.space is not aside.space and any(step.given for step in self.done)
        if aside.process.peer.gone or aside.values is None or made_anew:
            self._close(aside.process)
            return
        self._renew()
        if self.space is aside.space:
            self.space.forget_all_but(aside.values)
        self.process = self.space.student = aside.process
        self.used, self.hidden_ran = True, aside.hidden_ran

    def _attempt_step(self, cell: ScriptCell, needed: frozenset[str]) -> None:
        """Run one cell; whatever happens, the others run as well."""
        try:
            self._step(cell, needed)
        except (Gone, Exception) as error:  # noqa: BLE001  (this cell alone is left out)
            self._lose()
            words = str(error) if isinstance(error, Gone) else f"{said(error)}: {error}"
            self._leave_out(cell, CellRun(False, gone="died", words=words[:200]))

    def _step(self, cell: ScriptCell, needed: frozenset[str]) -> None:
        """Run one cell on the student's side; the instructor's also here, if tests need it."""
        self._make_anew_if_spoilt()
        given = self._given(cell, needed)
        prepared = None
        if given is not None:
            self.space.student = self._student()
            prepared = self._prepare(given)
            self.made.append(given)
            if prepared.gone:
                self._lose()
        if cell.kind == "answer":
            self._hand_over(cell, needed)
            self.made.append((cell, needed))
        if not _is_run(cell):
            return
        step = Done(cell.grade_id or YOURS, cell.source)
        if prepared is not None and prepared.crossed and not prepared.gone:
            step.given = given
        outcome = self._first_run(step)
        self.printed_late |= self.hidden_ran and bool(outcome.printed or outcome.notes)
        if not self.hidden_ran:  # what comes after a hidden test could repeat what that asked
            self.left_out |= dict.fromkeys((*outcome.notes, *self._stopped(cell, outcome)))
        if cell.grade_id:
            self.cells[cell.grade_id] = outcome
        if outcome.gone:
            self._lose()
            self._leave_out(cell, outcome)
        else:
            self.done.append(step)

    def _stopped(self, cell: ScriptCell, outcome: CellRun) -> list[str]:
        """In words, that a cell which answers nothing, as the student has left it, ran in part."""
        is_given = cell.place >= 0 and cell.source == self.notebook.cells[cell.place].source
        if cell.kind == "answer" or is_given or outcome.raised is None:
            return []
        kind, line = outcome.raised.type_name, outcome.raised.line
        begins = shown(cell.source.strip().partition("\n")[0][:MAX_BEGINNING])
        where = f" in line {line}" if line else ""
        return [
            f"Your cell that begins with {begins} stopped with {kind}{where}: what comes after "
            "that in it did not run, and what other cells take from there is missing."
        ]

    def _hand_over(self, cell: ScriptCell, needed: frozenset[str]) -> None:
        """What an answer defines is the student's; what the reference imports is imported here."""
        id, notebook = cell.grade_id, self.notebook
        imports, star = notebook.imports.get(id, ""), notebook.stars.get(id, "")
        imported, names = facts(imports).bound, set(notebook.defines.get(id, ()))
        asks, seconds = id in notebook.only_imports, self._seconds(id)
        self.space.hand_over(names if asks else names - imported)
        if asks and imported & needed:
            self.space.bring_in(imports, id, seconds, asks)
        elif imported & needed:
            self.space.prepare(imports, id)
        if star:
            brought = self.space.bring_in(star, id, seconds, asks)
            self.starred[id] = brought if asks else frozenset()

    def _first_run(self, step: Done) -> CellRun:
        """How a cell goes; where tests may be to blame for its end, in a new process."""
        if len(self.done) < len(self.begun):
            return CellRun(True, self.begun[len(self.done)])
        seconds = self._seconds(step.name)
        outcome = self._student().run(step.name, step.source, seconds)
        if self.used and not outcome.ok and self.budget.may_repeat:
            with self._coming_back(), self.budget.repeating():
                if outcome.gone:  # nothing is left of it
                    self.aside = None
                    self._forget_objects()
                self._renew()
                outcome = self._student().run(step.name, step.source, seconds)
                if outcome.ok:
                    self._stay()
        return outcome

    def _leave_out(self, cell: ScriptCell, outcome: CellRun) -> None:
        """Say that a cell was left out, and why."""
        if cell.grade_id:
            self.cells[cell.grade_id] = outcome
        where = f"{self.notebook.name}/{cell.grade_id or 'a cell of the student'}"
        kind = "timeout" if outcome.gone == "timeout" else "died"
        self.flags.append(Flag(kind, where, outcome.words))
        self.notes.append(f"A cell was left out when the notebook was run: {outcome.words}.")

    def _given(self, cell: ScriptCell, needed: frozenset[str]) -> Cell | None:
        """The instructor's cell in this place, if tests need it.

        Its text alone is run here, whatever the student has made of it.
        """
        if cell.kind != "skeleton" or cell.cell_type != "code":
            return None
        given = self.notebook.cells[cell.place]
        found = facts(given.source)
        makes = found.bound | altered(given.source)
        wanted = given.kind == "readonly" or found.star or needed & makes
        return given if wanted and given.source.strip() else None

    def _prepare(self, given: Cell) -> Prepared:
        part = self._part(given.grade_id or f"cell {self.notebook.cells.index(given) + 1}")
        if part in self.budget.parts.without:
            return self._unprepared(given, part)
        seconds = self._seconds(given.grade_id)
        with self.budget.parts.under_way(part, seconds):
            return self.space.prepare(given.source, given.grade_id or NAMELESS, seconds)

    def _unprepared(self, given: Cell, part: str) -> Prepared:
        """Leave out a cell that has ended the grader's process: what it makes is not there."""
        kind, words = self._ended(part)
        self.flags.append(Flag(kind, part, words))
        self.space.take_over(facts(given.source).bound)
        self.space.unmade |= facts(given.source).bound
        return Prepared(gone=False, crossed=True)

    def _part(self, id: str) -> str:
        """The name that a test, or a cell of the instructor's, has among the submission's parts."""
        return f"{self.notebook.name}/{id}"

    def _ended(self, part: str) -> tuple[Literal["timeout", "died"], str]:
        """How a part ended that has ended the grader's process, and in words."""
        if self.budget.parts.without[part] == "timeout":
            return "timeout", "it took too long"
        return "died", "what it gave made the process of the tests crash"

    def _seconds(self, grade_id: str) -> float:
        return min(self.assignment.rules.for_question(grade_id).seconds, self.budget.left)

    # --- tests --------------------------------------------------------------------------------

    def _tests(self, batch: Sequence[str]) -> list[TestRun]:
        """Run neighbouring tests, group by group."""
        found: list[TestRun] = []
        for group in self.notebook.groups:
            tests = [test for test in group.tests if test in batch]
            if not tests:
                continue
            ended = self._attempt_question(group, tests)
            found += ended
            for run in ended:
                if run.score < self.notebook.cell(run.test).points:
                    self.broken |= self._blamed(group, run.test)
        return found

    def _blamed(self, group: Group, test: str) -> set[str]:
        """Names of answers that are broken if this test fails."""
        if not self._is_about_others(group, test):
            return self._defined(group)
        others = {name for names in self.notebook.defines.values() for name in names}
        return others.intersection(facts(self.notebook.cell(test).source).needed)

    def _attempt_question(self, group: Group, tests: Sequence[str]) -> list[TestRun]:
        """How a question's tests end; what goes wrong with it goes wrong with it alone."""
        if not self.budget.left:
            doubt()
            ended = [TestRun(test, "timeout", 0.0, message=IN_ALL) for test in tests]
            return [self._explained(group, run) for run in ended]
        try:
            return self._question(group, tests)
        except (Gone, Exception) as error:  # noqa: BLE001  (the other questions go on)
            self._lose()
            words = f"the question could not be graded ({said(error)}: {error})"[:500]
            self.flags.append(Flag("died", f"{self.notebook.name}/{tests[0]}", words))
            kind = said(error)
            return [TestRun(test, "test-error", 0.0, kind, words) for test in tests]

    def _question(self, group: Group, tests: Sequence[str]) -> list[TestRun]:
        start, self.losses = time.monotonic(), 0
        ended = self._forbidden(group, tests)
        if ended is None:
            self._make_anew_if_spoilt()
            with self._coming_back():
                ended = self._again(group, self._group(group, tests, {}))
                ended = self._apart(group, ended)
                ended = [self._asked_twice(group, run) for run in ended]
                ended = [self._without_score(group, run) for run in ended]
        ended = [self._explained(group, run) for run in ended]
        ended, took = self._without_forbidden(group, ended), time.monotonic() - start
        return self._without_unread(group, ended, took)

    def _group(
        self, group: Group, tests: Sequence[str], instead: Mapping[str, Any], protect: bool = False
    ) -> list[TestRun]:
        """Run a question's tests; what kills the process costs only its own test.

        Points may be earned in a process in which other questions' tests have run. Whatever costs
        points is found again in a new one that has run the cells alone.
        """
        found: list[TestRun] = []
        changed, before = False, set[str]()  # whether values of ours were; what failed before
        while left := tests[len(found) :]:
            was_used, deadly = self.used, len(self.deadly)
            runs, changes, words = self._attempt(group, left, instead, protect)
            if not runs and len(self.deadly) > deadly:
                continue  # it was one of those before them
            if was_used and self._doubtful(group, runs, left):
                passed = {r.test for r in runs if r.score >= self.notebook.cell(r.test).points}
                with self.budget.repeating():
                    runs = self._found_again(group, runs, left, instead, protect)
                if not runs:
                    before |= {*left} - passed
                    self._renew()
                    continue
            found += runs or [TestRun(left[0], "died", 0.0, message=words)]
            changed |= changes
        turned = {run.test: run for run in found if run.test in before}
        with self.budget.repeating():
            worse = self._confirmed(group, turned, instead) if not protect else {}
        found = [worse.get(run.test, run) for run in found]
        if changed and not protect and not self.own:
            return self._protected(group, found, instead)
        return found

    def _confirmed(
        self, group: Group, found: Mapping[str, TestRun], instead: Mapping[str, Any]
    ) -> dict[str, TestRun]:
        """A third look, in a new process, at tests that failed at the first and now pass.

        An answer that goes by the clock, or by chance, has a chance for each look.
        """
        passed = [test for test, run in found.items() if run.status == "passed"]
        if not passed or self.own or self.notebook.shared_names:
            return {}
        self._renew()
        again = {run.test: run for run in self._group(group, passed, instead)}
        return {test: run for test, run in again.items() if run.status != "passed"}

    def _doubtful(self, group: Group, runs: Sequence[TestRun], tests: Sequence[str]) -> bool:
        """Whether tests of other questions may be to blame for how these ended."""
        if not self.budget.may_repeat:
            return False
        if self.private or self.notebook.shared_names:  # points were found; tests share things
            return not runs or runs[0].status == "died"
        empty = set(group.solutions) <= {*self.script.untouched, *self.script.missing}
        if empty and group.solutions and not self.script.extra:
            return False  # without an answer there is nothing to blame
        return len(runs) < len(tests) or any(
            run.score < self.notebook.cell(run.test).points for run in runs
        )

    def _found_again(
        self,
        group: Group,
        runs: Sequence[TestRun],
        tests: Sequence[str],
        instead: Mapping[str, Any],
        protect: bool,
    ) -> list[TestRun]:
        """The same runs, if what failed fails as well in a new process, without hidden tests.

        Then it is told in the words of that run: the answer has met no hidden test in it.
        """
        failed = {r.test for r in runs if r.score < self.notebook.cell(r.test).points}
        told = [r for r in runs if r.status in ("failed", "error") and not r.in_hidden]
        if self.own or len(runs) < len(tests) or failed != {run.test for run in told}:
            return []
        self._renew()
        runs_again, _, _ = self._attempt(group, tests, instead, protect, visible=True)
        again = {run.test: run for run in runs_again if run.status in ("failed", "error")}
        if not failed <= again.keys():
            return []
        if not self.hidden_kept:
            self.met_hidden -= failed
        return [again[run.test] if run.test in failed else run for run in runs]

    def _attempt(
        self,
        group: Group,
        tests: Sequence[str],
        instead: Mapping[str, Any],
        protect: bool,
        *,
        visible: bool = False,
    ) -> tuple[list[TestRun], bool, str]:
        """Run tests, or their visible parts, until one of them kills the process.

        Returns how they went, whether the answer changed values of ours, and, if there was no
        process to run the first one in, why.
        """
        runs: list[TestRun] = []
        changed = False
        try:
            for run, changes in self._in_process(group, tests, instead, protect, visible):
                runs.append(run)
                changed |= changes
        except (Gone, Exception) as error:  # noqa: BLE001  (the runner was tampered with)
            self._lose()
            return runs, changed, str(error) if isinstance(error, Gone) else TAMPERED
        finally:
            self.space.stand_back()
        return runs, changed, ""

    def _in_process(
        self,
        group: Group,
        tests: Sequence[str],
        instead: Mapping[str, Any],
        protect: bool,
        visible: bool,
    ) -> Iterator[tuple[TestRun, bool]]:
        """Run tests until one of them kills the process; each with whether it changed values."""
        self._make_anew_if_spoilt()
        student = self._student()
        self.used = True
        before = Before(student, self.space)
        every = self._with_makers(group, tests)
        try:
            for run, changes in self._in_this(
                student, before, group, every, instead, protect, visible
            ):
                if run.status in ("timeout", "died"):
                    self.deadly.add(run.test)
                elif run.status == "passed" and not instead:
                    self.passed.add(run.test)
                if run.test in tests:
                    yield run, changes
        finally:
            self._leave(student, before, group)
        if self.process is student and not self.notebook.shared_names:
            student.peer.take_back(before.handed)
            if instead or self.restored or self.space.replaced:
                if self._is_first():
                    self.aside = None
                self._renew()  # what later questions meet has to be the student's own

    def _with_makers(self, group: Group, tests: Sequence[str]) -> list[str]:
        """Tests of a question, with those before them that make names which they take.

        What has ended a process is not run for that.
        """
        found: list[str] = []
        needed: set[str] = set()
        for test in reversed(group.tests[: 1 + max(map(group.tests.index, tests))]):
            known = facts(self.notebook.cell(test).source)
            if test in tests or (needed & known.bound and test not in self.deadly):
                found.append(test)
                needed = (needed - known.bound) | known.needed
        return found[::-1]

    def _leave(self, student: Student, before: "Before", group: Group) -> None:
        """However a question's tests ended: nothing of them stays in what later ones begin with."""
        if not self.notebook.shared_names:
            self.space.forget_all_but(before.names)
        changed = student.peer.changes.total() > before.changes
        spoilt = changed and holds_state(before.names, self._helpers)
        used = list(student.peer.used.values())
        student.peer.used.clear()
        spoilt = spoilt or may_change(used, before.names, self._helpers)
        own = {piece.grade_id for piece in self.script.pieces}
        is_reference = self.own or (self.isolated and own.isdisjoint(group.solutions))
        # what that changes, later tests may go by
        spoilt = spoilt and not (is_reference or self.goes_on)
        if self.notebook.shared_names:
            self.tainted |= spoilt
        else:
            self.spoilt |= spoilt

    def _in_this(
        self,
        student: Student,
        before: "Before",
        group: Group,
        tests: Sequence[str],
        instead: Mapping[str, Any],
        protect: bool,
        visible: bool,
    ) -> Iterator[tuple[TestRun, bool]]:
        """Run tests in this process until one of them kills it."""
        self._trust(student, group.solutions)
        student.peer.protect = protect
        self.space.replaced, self.space.asked_for = False, self._asked_for(group)
        with student.clock(START_SECONDS):
            self._restore(student, self.restored)
            self._stand_in(student, instead)
            self.hidden_ran |= bool(instead)  # what it gives may stand in a hidden test
            watched = self._watch(student, group)
        for test in tests:
            if ended := self._not_again(test):
                yield ended, False
                continue
            supplied = self._supply(student, test, visible=visible)
            self._reseed(student, test)
            library.forget()
            student.peer.changed_ours = False
            allowed = self._of_reference(group, test) if protect else ()
            student.peer.allowed = _changes(allowed)
            known = self._known_reference(test) or ()
            student.peer.expected = expectations(known)
            student.peer.compared = None if self.own else comparisons(known)
            student.peer.random.steps = self._steps(test)
            student.peer.records.guarded = self._guarded(group, test)
            cell = self._test_cell(test, visible)
            self._bring_in_for(student, test)
            if self.hidden_ran or self.hidden_kept or self.tainted or protect:
                self.met_hidden.add(test)
            asked: list[Any] | None = None if cell.hidden or visible or self.own else []
            may_fail = looks_for_claims(cell.source)
            student.peer.look = self._look(group, test)
            student.peer.random.is_looked_at = looks_at_random(cell.source)
            seconds = self._limit(group)
            with self.budget.parts.under_way(self._part(test), seconds):
                run = run_test(student, cell, self.space, seconds, asked, may_fail=may_fail)
            reached = run.in_hidden or run.status in ("passed", "timeout", "died")
            self.hidden_ran |= bool(cell.hidden) and reached
            if cell.hidden and reached and not self.hidden_kept:
                self.hidden_kept = may_hold(before.names, self._helpers, cell.source)
            if asked and run.status == "passed" and not self.space.replaced:
                self.asked[test] = asked
            stood_in = (*instead, *sorted(supplied))
            yield replace(run, stood_in=stood_in), student.peer.changed_ours
            if run.status in ("timeout", "died") or student.peer.gone:
                self._lose()
                return
        if watched:
            self._report(group, student)
        if not (self.hidden_ran or self.hidden_kept):
            with suppress(Exception):  # what it cannot tell is not told
                self.left_out |= dict.fromkeys(student.notes(START_SECONDS))

    def _bring_in_for(self, student: Student, test: str) -> None:
        """Import for answers what they use and this or an earlier test imports.

        In the notebook it is there as soon as that test has begun. No hidden line is run there.
        """
        for cell in self.notebook.of_kind("test"):
            imports = imports_something(cell.stub)
            text = imported_where_missing(cell.stub, *self.needed) if imports else ""
            step = Done(YOURS, text)
            if text and step not in self.done:
                student.run(step.name, step.source, START_SECONDS)
                if len(self.done) >= len(self.begun):
                    self.done.append(step)
            if cell.grade_id == test:
                break

    @cached_property
    def needed(self) -> tuple[frozenset[str], frozenset[str]]:
        """Names that the submission's cells use, and that they bind."""
        cells = [facts(cell.source) for cell in self.script.cells if cell.cell_type == "code"]
        needed, bound = [cell.needed for cell in cells], [cell.bound for cell in cells]
        return frozenset[str]().union(*needed), frozenset[str]().union(*bound)

    def _supply(
        self, student: Student, test: str, *, visible: bool, tried: frozenset[str] = frozenset()
    ) -> set[str]:
        """Make what a test takes from others, if those ended before they had made it.

        They run once more: where they had passed, and a process was lost since, as they are, and
        have to pass; else with the reference in the place of all answers, where it may stand in.
        Returns the names for which it stood in.
        """
        instead: set[str] = set()
        for name in self.notebook.shared_names.get(test, ()):
            maker = None if name in self.space else self._maker(name, test)
            if maker is None or maker in tried or self._part(maker) in self.budget.parts.without:
                continue
            if not (maker in self.passed or self.assignment.stand_in):
                continue
            tried |= {maker}
            instead |= self._supply(student, maker, visible=visible, tried=tried)
            before, ids = dict(self.space), self._before(maker) * (maker not in self.passed)
            names = {n for id in ids for n in self.notebook.defines.get(id, ())}
            cell, seconds = self._test_cell(maker, visible), self._seconds(maker)
            instead |= names
            self.hidden_ran |= bool(cell.hidden) or bool(names)
            self.space.stand_in(self._reference(names) if names else {})
            try:
                with (
                    self.budget.repeating(),
                    self.budget.parts.under_way(self._part(maker), seconds),
                ):
                    run = run_test(student, cell, self.space, seconds)
            finally:
                self.space.stand_back()
            made = {n: self.space[n] for n in self._bound(maker) if n in self.space}
            self.space.forget_all_but((made if names or run.status == "passed" else {}) | before)
        return instead

    def _maker(self, name: str, test: str) -> str | None:
        """The last test before this one that makes a name."""
        order = [cell.grade_id for cell in self.notebook.of_kind("test")]
        earlier = reversed(order[: order.index(test)])
        return next((one for one in earlier if name in self._bound(one)), None)

    def _bound(self, test: str) -> frozenset[str]:
        return facts(self.notebook.cell(test).source).bound

    def _before(self, test: str) -> list[str]:
        """The solution cells before a test."""
        cells = self.notebook.of_kind("solution", "test")
        ids = [cell.grade_id for cell in cells[: cells.index(self.notebook.cell(test))]]
        return [id for id in ids if self.notebook.cell(id).kind == "solution"]

    def _asked_for(self, group: Group) -> frozenset[str]:
        """Names that a question asks to be imported, and nothing else: its tests look at them."""
        asks = self.notebook.only_imports.intersection(group.solutions)
        plain = (facts(self.notebook.imports.get(id, "")).bound for id in asks)
        return frozenset[str]().union(*plain, *(self.starred.get(id, ()) for id in asks))

    def _not_again(self, test: str) -> TestRun | None:
        """How a test ended that has ended the grader's process, too; it is not run again."""
        part = self._part(test)
        if part not in self.budget.parts.without:
            return None
        status, words = self._ended(part)
        in_hidden = bool(self.notebook.cell(test).hidden)  # perhaps: nobody knows
        return TestRun(test, status, 0.0, message=words, in_hidden=in_hidden)

    def _make_anew_if_spoilt(self) -> None:
        """Run the instructor's cells here once more, if an answer may have changed their values."""
        if not self.spoilt:
            return
        self._renew()
        before, self.space = self.space, self._new_space()
        for name in self._helpers:
            sys.modules.pop(name, None)
        if self.place is not None:  # what cells have written is not there for them again
            self.place.leave()
            self.place.make()
        for step in self.made:
            if isinstance(step, Cell):
                self.space.student = self._student()
                if self._prepare(step).gone:
                    self._lose()
                self.space.keep_of(before, facts(step.source).bound)
            else:
                self._hand_over(*step)
        self.spoilt, self.hidden_kept, self.was_anew = False, False, True

    def _test_cell(self, test: str, visible: bool) -> Cell:
        cell = self.notebook.cell(test)
        if not ((visible or self.private) and cell.hidden):
            return cell
        lines = cell.source.splitlines()[: cell.hidden_from - 1]
        return replace(cell, source="\n".join(lines), hidden=())

    def _protected(
        self, group: Group, found: list[TestRun], instead: Mapping[str, Any]
    ) -> list[TestRun]:
        """An answer changed what it was handed: what passes has to pass without that as well.

        But for what the reference changes in the same call, because the question asks for it.
        """
        doubtful = [
            run.test
            for run in found
            if run.status == "passed" and self._goes_too_far(group, run.test, run.transcript)
        ]
        if not doubtful:
            return found
        if self._is_first():
            self._renew()
        again = {r.test: r for r in self._group(group, doubtful, instead, protect=True)}
        return [
            replace(again[run.test], message=CHANGED, error="AssertionError", raised=None)
            if run.test in again and again[run.test].status != "passed"
            else run
            for run in found
        ]

    def _goes_too_far(self, group: Group, test: str, transcript: Transcript) -> bool:
        """Whether a call changed more of what it was handed than the reference's call did."""
        allowed = Allowed(_changes(self._of_reference(group, test)))
        pairs = [(Counter(call.changed), allowed.next(call.what)) for call in transcript]
        return any(not changed <= most for changed, most in pairs)

    def _asked_twice(self, group: Group, run: TestRun) -> TestRun:
        """Where no hidden test asks anew: the same calls, the last first, must do as well."""
        calls = self.asked.pop(run.test, [])[:MOST_CALLS]
        if len(calls) < 2 or run.stood_in or run.status != "passed" or not self.budget.may_repeat:
            return run
        first = [crossing for crossing in run.transcript if crossing.what == calls[0].what]
        of_one = {(call.what, call.number) for call in calls}
        if len(first) < len(calls) or len(of_one) > 1:
            return run
        try:
            with self.budget.repeating():
                again = self._ask_again(group, run, calls[::-1])
        except Gone:
            self._lose()
            return self._inconstant(group, run) if self.budget.left else run
        except Exception:  # noqa: BLE001  (calls that cannot be made again prove nothing)
            self._lose()
            return run
        pairs = [
            (kept(now), kept(crossing.outcome))
            for now, crossing in zip(again[::-1], first, strict=False)
        ]
        same = all(  # objects, and what is too large to keep, prove nothing
            alike(now, before) for now, before in pairs if Opaque not in (type(now), type(before))
        )
        if same or self._passes_with(group, run, first, again[::-1]):
            return run
        if self._goes_by_state(run.test):  # a second run of it finds what the first one left
            return run
        return self._inconstant(group, run)

    def _goes_by_state(self, test: str) -> bool:
        """Whether a test uses values of the instructor's that it may change itself."""
        needed = facts(self.notebook.cell(test).source).needed
        names = {name: dict.get(self.space, name) for name in needed}
        return holds_state(names, self._helpers)

    def _passes_with(
        self, group: Group, run: TestRun, first: Sequence[Crossing], again: Sequence[Any]
    ) -> bool:
        """Whether a test passes as well with what the answer gives when it is asked again.

        Then the answer is free to choose, and does not go by the order in which it is asked.
        """
        given = [*again, *(crossing.outcome for crossing in first[len(again) :])]
        if any(isinstance(one, Opaque | Raised) for one in given):
            return False
        left, cell = iter(given), self.notebook.cell(run.test)
        student, names, seconds = self._student(), dict(self.space), self._limit(group)
        student.peer.protect, student.peer.expected, student.peer.look = False, (), None
        self.space.student = student
        *makers, _ = self._with_makers(group, [run.test])
        try:
            with (
                self.budget.repeating(),
                self.budget.parts.under_way(self._part(run.test), seconds),
            ):
                for maker in makers:
                    made = self._test_cell(maker, visible=False)
                    self.hidden_ran |= bool(made.hidden)
                    run_test(student, made, self.space, seconds)
                self.space.stand_in({first[0].what: lambda *args, **kwargs: next(left)})
                self._reseed(student, run.test)
                found = run_test(student, cell, self.space, seconds)
        finally:
            self.space.stand_back()
            self.space.forget_all_but(names)
            if student.peer.gone:
                self._lose()
        return found.status == "passed" and found.score >= run.score

    def _ask_again(self, group: Group, run: TestRun, calls: list[Any]) -> list[Any]:
        """What these calls give in a process in which no test has run."""
        if not self.notebook.shared_names:
            self._renew()
        student, self.used = self._student(), True
        with student.clock(self._limit(group)):
            self._restore(student, self.usual.get(run.test, frozenset()))
            again = student.ask_again(calls)
        if run.test in self.usual:
            self._renew()
        return again

    def _inconstant(self, group: Group, run: TestRun) -> TestRun:
        """A test that passed, for an answer that goes by the order in which it is asked.

        Unless the reference does so as well.
        """
        if not (self.checking or self._reference_is_steady(run.test)):
            return run
        return replace(run, status="failed", score=0.0, error="AssertionError", message=COUNTS)

    def _without_score(self, group: Group, run: TestRun) -> TestRun:
        """A test whose last line is no number with the reference either counts as nbgrader does.

        Where it is one with the reference, the answer has failed.
        """
        if self.own or not _is_no_number(run):
            return run
        reference = self._own_runs(group).get(run.test)
        if reference is not None and reference.status == "passed":
            return replace(run, status="failed", error="AssertionError", message=NO_POINTS)
        if reference is None or not _is_no_number(reference):
            return run
        points = float(self.notebook.cell(run.test).points)
        return replace(run, status="passed", score=points, error="", message="")

    def _own_runs(self, group: Group) -> dict[str, TestRun]:
        """How a question's tests go with the reference."""
        return runs(self.assignment, {}, self.fork_server, group.solutions, self.notebook)

    def _reference_is_steady(self, test: str) -> bool:
        """Whether the reference gives the same when it is asked in another order."""
        script = _own_script(self.notebook, {}, {test})
        work = Work(self.assignment, self.notebook, script, self.fork_server, None, checking=True)
        return all(run.status == "passed" for run in work.run())

    def _of_reference(self, group: Group, test: str) -> Transcript:
        """What the reference gives and changes in a test, call by call; nothing if nobody knows."""
        reference = self._known_reference(test)
        if reference is None:
            if group not in self.references:
                self.references[group] = self._own_runs(group)
            run = self.references[group].get(test)
            return run.transcript if run is not None else ()
        return reference

    def _look(self, group: Group, test: str) -> Callable[[str, Any], None] | None:
        """What refuses a class by which a test would catch its own claims, as an attribute or so.

        Unless the reference has such a one there.
        """
        if self.own or not catches_by_value(self.notebook.cell(test).source):
            return None
        calls = self._of_reference(group, test)  # now: it may have to be run
        broad = {call.what for call in calls if _is_broad(call.outcome)}

        def look(label: str, value: Any) -> None:
            if label not in broad:
                refuse_broad(label.removeprefix("get "), value)

        return look

    def _guarded(self, group: Group, test: str) -> frozenset[str]:
        """Classes of the instructor's whose objects the reference changes in a test."""
        if self.own or not self.space.classes:
            return frozenset()
        labels = (label for call in self._of_reference(group, test) for label in call.changed)
        return frozenset(label.partition("@")[0] for label in labels)

    def _steps(self, test: str) -> Callable[[str], list[str]] | None:
        """After which calls of a test random numbers go on; None if the answer's own show it."""
        if self.own or self.known is None:
            return None
        return steps(self._known_reference(test) or ())

    def _known_reference(self, test: str) -> Transcript | None:
        return self.known.of(test)[0] if self.known is not None else None

    def _again(self, group: Group, found: list[TestRun]) -> list[TestRun]:
        """Run what failed once more, without what was broken in other cells.

        The reference stands in for what failed its own tests before, and a name that the answer
        uses has the meaning that Python or the instructor gave it.
        """
        failed = [run.test for run in found if run.status != "passed"]
        failed = [test for test in failed if not self._is_about_others(group, test)]
        if self.own or not (self.assignment.stand_in and failed and self.budget.may_repeat):
            return found
        used, own = self._used(group), self._defined(group)
        broken = used & (self._made_of(self.broken - own) - self._made_of(own))
        shadowed = used & self._shadowed(group)
        if not broken and not shadowed:
            return found
        instead = self._reference(broken)
        self.restored = frozenset(shadowed)
        try:
            with self.budget.repeating():
                if shadowed or self.notebook.shared_names or self._is_first():
                    self._renew()
                again = {run.test: run for run in self._group(group, failed, instead)}
                again |= self._confirmed(group, again, instead)
        finally:
            self.restored = frozenset()
            if self.notebook.shared_names:  # the reference may still stand there
                self._renew()
        passed = [test for test, run in again.items() if run.status == "passed"]
        self.usual |= dict.fromkeys(passed, frozenset(shadowed))
        if shadowed and passed:
            names = ", ".join(sorted(shadowed)[:5])
            self.notes.append(
                f"Another cell of yours gives {names} another meaning; {group.solutions[0]} was "
                "graded with the usual one."
            )
        better = {t: r for t, r in again.items() if r.status == "passed" or r.status == "failed"}
        return [better.get(run.test, run) if run.status != "passed" else run for run in found]

    def _apart(self, group: Group, found: list[TestRun]) -> list[TestRun]:
        """Run what failed once more with the reference in the place of the student's other cells.

        Whatever else these may have done to what all cells share, it costs no other question.
        """
        failed = [run.test for run in found if run.status != "passed"]
        failed = [test for test in failed if not self._is_about_others(group, test)]
        answers = {
            id: self.script.answers[id] for id in group.solutions if id in self.script.answers
        }
        if self.own or self.private or self.isolated or self.alone or not (failed and answers):
            return found
        if not self.assignment.stand_in:
            better = self._as_left if self.was_anew and self.budget.may_repeat else {}
            return [better.get(run.test, run) if run.test in failed else run for run in found]
        matter = self.budget.may_repeat and self._others_matter(group)
        if not (matter or (self.budget.may_repeat and self.was_anew)):
            return found
        for _ in range(2):  # an answer that goes by the clock had a second chance: a third look
            with self.budget.repeating():
                better = self._alone(answers, failed) if failed else {}
            failed = list(better)
        if failed and matter:
            self.notes.append(
                f"Another cell of yours changes what {group.solutions[0]} uses; it was graded "
                "without that."
            )
        return [better.get(run.test, run) for run in found]

    @cached_property
    def _as_left(self) -> dict[str, TestRun]:
        """What passes where each test finds the instructor's values as those before have left them.

        As in the student's own notebook: where no reference stands in, nothing is made anew.
        """
        found: dict[str, TestRun] = {}
        for look in range(2):  # an answer that goes by chance has no chance more
            work = Work(
                self.assignment,
                self.notebook,
                self.script,
                self.fork_server,
                self.known,
                self.budget,
            )
            work.checking, work.isolated, work.goes_on = self.checking, True, True
            with self.budget.repeating():
                passed = {run.test: run for run in work.run() if run.status == "passed"}
            found = {test: run for test, run in passed.items() if not look or test in found}
        return found

    def _alone(self, answers: Mapping[str, str], tests: Sequence[str]) -> dict[str, TestRun]:
        """Those of the tests that pass with these answers and the reference elsewhere."""
        every = {cell.grade_id for cell in self.notebook.of_kind("test")}
        script = _own_script(self.notebook, answers, every if self.was_anew else set(tests))
        pieces = tuple(piece for piece in self.script.pieces if piece.grade_id in answers)
        script = replace(script, pieces=pieces, files=self.script.files)
        work = Work(
            self.assignment, self.notebook, script, self.fork_server, self.known, self.budget
        )
        work.checking, work.isolated = self.checking, True
        found = {run.test: run for run in work.run() if run.status == "passed"}
        return {test: run for test, run in found.items() if test in tests}

    def _others_matter(self, group: Group) -> bool:
        """Whether the student's other cells may have had a part in how a question ended."""
        others = [cell for cell in self.script.cells if self._is_own(cell)]
        others = [cell for cell in others if cell.grade_id not in group.solutions]
        own = self._defined(group)
        takes = {name for names in self.notebook.defines.values() for name in names}
        for cell in others:
            foreign = takes - set(self.notebook.defines.get(cell.grade_id, ()))
            if acts(cell.source) or foreign & touched(cell.source):
                return True
        used = self._used(group)
        while more := {
            name
            for cell in [*others, *self.notebook.of_kind("readonly", "code")]
            if facts(cell.source).bound & used
            for name in facts(cell.source).needed - used
        }:
            used |= more
        return bool(used & (takes - own))

    def _is_about_others(self, group: Group, test: str) -> bool:
        """Whether a test asks other answers than those that it stands behind, and not these."""
        asked = facts(self.notebook.cell(test).source).needed
        own = self._made_of(self._defined(group))
        others = {name for names in self.notebook.defines.values() for name in names} - own
        return bool(asked & others) and not asked & own

    def _used(self, group: Group) -> set[str]:
        """Names that a question's answer, its reference or its tests use."""
        sources = [self.notebook.cell(id).source for id in (*group.solutions, *group.tests)]
        sources += [self.script.answers.get(id, "") for id in group.solutions]
        return {name for source in sources for name in facts(source).needed} - self._defined(group)

    def _defined(self, group: Group) -> set[str]:
        """Names that a question's answer should define."""
        return {name for id in group.solutions for name in self.notebook.defines.get(id, ())}

    def _made_of(self, names: set[str]) -> set[str]:
        """These names, and those that the instructor's cells make of them."""
        found = set(names)
        for cell in self.notebook.of_kind("readonly", "code"):
            known = facts(cell.source)
            if cell.cell_type == "code" and known.needed & found:
                found |= known.bound | altered(cell.source)
        return found

    def _shadowed(self, group: Group) -> set[str]:
        """Names of Python's or the instructor's that the student's other cells bind or delete."""
        given = [cell.source for cell in self.notebook.of_kind("readonly", "code")]
        known = set(dir(builtins)).union(*(facts(source).bound for source in given))
        others = [cell for cell in self.script.cells if self._is_own(cell)]
        texts = [cell.source for cell in others if cell.grade_id not in group.solutions]
        return known & {name for text in texts for name in touched(text)}

    def _restore(self, student: Student, names: frozenset[str]) -> None:
        """Give names that other cells have taken the meaning back that they had."""
        for name in names:
            if hasattr(builtins, name):
                with suppress(NameError):
                    student.delete(name)
        for cell in self.notebook.of_kind("readonly", "code"):
            if names & facts(cell.source).bound:
                student.run(cell.grade_id or YOURS, cell.stub, self._seconds(cell.grade_id))

    def _reference(self, names: set[str]) -> dict[str, Any]:
        """The reference's objects of these names, made here."""
        space, wanted = Space(), set(names)
        cells: list[Cell] = []
        for cell in reversed(self.notebook.of_kind("readonly", "code", "solution")):
            known = facts(cell.source)
            makes = known.bound | altered(cell.source)
            if cell.cell_type == "code" and (
                cell.kind == "readonly" or known.star or makes & wanted
            ):
                cells.append(cell)
                wanted |= known.needed
        for cell in reversed(cells):
            space.prepare(cell.source, cell.grade_id or NAMELESS)
        return {name: space[name] for name in sorted(names) if name in space}

    def _stand_in(self, student: Student, instead: Mapping[str, Any]) -> None:
        self.space.student = student
        self.space.stand_in(instead)
        for name, value in instead.items():
            try:
                student.set(name, value)
            except Exception:  # noqa: BLE001  (then the answer has to do with what it has)
                self.notes.append(f"The reference's {name} could not stand in for yours.")

    def _limit(self, group: Group) -> float:
        return max([self._seconds(id) for id in group.solutions] or [self._seconds("")])

    def _reseed(self, student: Student, name: str) -> None:
        """The same random numbers for the same test in every run; only the tests' text says which.

        An answer that knew them could hold what a test is going to draw.
        """
        random.seed(f"{name} {self.assignment.digest}")
        if "torch" in sys.modules:
            torch: Any = sys.modules["torch"]
            # torch.manual_seed would first write down where it was called from, for CUDA
            torch.default_generator.manual_seed(random.getrandbits(31))
        if "numpy" in sys.modules:
            numpy: Any = sys.modules["numpy"]
            numpy.random.seed(random.getrandbits(31))
        student.peer.random.seen = {}

    # --- rules and reasons --------------------------------------------------------------------

    def _forbidden(self, group: Group, tests: Sequence[str]) -> list[TestRun] | None:
        """What an answer calls though it may not; its tests are not run then."""
        if self.alone:  # read before a part of it was taken out
            return None
        solutions = self._with_rules(group)
        words = [b.words for id in solutions for b in broken_rules(*self._texts(id)[0])]
        if not words:
            return None
        where = f"{self.notebook.name}/{group.solutions[0]}"
        self.flags.append(Flag("forbidden", where, words[0]))
        return [TestRun(test, "forbidden", 0.0, message=words[0]) for test in tests]

    def _texts(
        self, solution: str
    ) -> tuple[
        tuple[str, QuestionRules, list[str], list[str], Sequence[str], Place | None], list[int]
    ]:
        """What is read to see whether an answer keeps to its rules; and where its cells stand.

        The places are those of the student's other cells, and last that of the answer's own.
        """
        modules = self._modules
        cells = list(enumerate(self.script.cells))
        others = [(n, c) for n, c in cells if c.grade_id != solution and self._is_own(c)]
        here = [n for n, c in cells if c.grade_id == solution]
        tests = {test for g in self.notebook.groups if solution in g.solutions for test in g.tests}
        tested = [n for n, c in cells if c.kind == "test" and c.grade_id in tests]
        read = (
            self.script.answers.get(solution, ""),
            self.assignment.rules.for_question(solution),
            [*(cell.source for _, cell in others), *modules],
            _locked(self.notebook),
            self.notebook.defines.get(solution, ()),
            Place(
                sum(n < here[-1] for n, _ in others),
                sum(n < max(tested[-1], here[-1]) for n, _ in others),
            )
            if here and tested
            else None,
        )
        places = [*(number for number, _ in others), *(-1 for _ in modules)]
        return read, [*places, *(here[-1:] or [-1])]

    def _with_rules(self, group: Group) -> list[str]:
        """The group's questions that forbid something; of the others nothing is read."""
        rules = self.assignment.rules
        return [id for id in group.solutions if rules.for_question(id).forbidden]

    @cached_property
    def _modules(self) -> list[str]:
        """The modules that were handed in, as cells that write them."""
        return [
            module_cell(name, content)
            for name, content in self.script.files
            if name.endswith(".py")
        ]

    def _without_unread(self, group: Group, found: list[TestRun], took: float) -> list[TestRun]:
        """An answer may need nothing that could not be read: then it earns as much without that.

        Only an answer that was seen to fail without it loses points; what stays open, as when the
        time is over, is for the instructor to look at.
        """
        earned = [run for run in found if run.score > 0]
        if self.own or self.private or self.alone or self.checking or not earned:
            return found
        lacks, words = self._unread(group)
        if lacks == Lacks():
            return found
        again = self._read_alone(lacks)
        less = [r for r in earned if r.test not in again or again[r.test].score < r.score - 1e-6]
        if not less:
            return found
        where = f"{self.notebook.name}/{group.solutions[0]}"
        sure = {"failed", "error", "unanswered", "forbidden"}
        sure |= {"timeout"} if took < self._limit(group) / 2 else set()  # it waits for what is out
        if not any(run.test in again and again[run.test].status in sure for run in less):
            self.flags.append(Flag("forbidden", where, f"Not sure: {words}. Look at it."))
            return found
        self.flags.append(Flag("forbidden", where, words))
        return [TestRun(run.test, "forbidden", 0.0, message=words) for run in found]

    def _unread(self, group: Group) -> tuple[Lacks, str]:
        """What no answer of the group shows; and in words."""
        found: list[tuple[Lacks, str]] = []
        for solution in self._with_rules(group):
            read, places = self._texts(solution)
            if places[-1] >= 0:
                one = unread(*read)
                out = frozenset((places[cell], number) for cell, number in one.statements)
                meant = frozenset((places[cell], number, name) for cell, number, name in one.meant)
                found.append((Lacks(out, one.modules, meant), one.words))
        if not found:
            return Lacks(), ""
        outs, modules, meant = zip(*((o.out, o.modules, o.meant) for o, _ in found), strict=True)
        both = frozenset.intersection
        words = next((words for _, words in found if words), "")
        return Lacks(both(*outs), both(*modules), frozenset().union(*meant)), words

    def _read_alone(self, lacks: Lacks) -> dict[str, TestRun]:
        """How the tests end if these statements do not run and these modules are not there."""
        if lacks not in self.read_alone and self.budget.may_repeat:
            runs: list[TestRun] = []
            script = replace(self.script, cells=tuple(_read_cells(self.script, lacks)))
            with self.budget.repeating(), suppress(Gone, Exception):  # what is lost proves nothing
                work = Work(
                    self.assignment,
                    self.notebook,
                    script,
                    self.fork_server,
                    self.known,
                    self.budget,
                    alone=True,
                )
                runs = work.run()
            self.read_alone[lacks] = {run.test: run for run in runs}
        return self.read_alone.get(lacks, {})

    def _is_own(self, cell: ScriptCell) -> bool:
        """Whether a cell's text is the student's."""
        changed = cell.kind == "skeleton" and cell.source != self.notebook.cells[cell.place].stub
        return cell.kind in ("extra", "answer") or changed

    def _watch(self, student: Student, group: Group) -> bool:
        """Have operations that are not allowed noted while the answer runs."""
        names = [] if self.unwatched else self._forbidden_operations(group)
        if names:
            student.peer.ask("watch", sorted(names))
        return bool(names)

    def _forbidden_operations(self, group: Group) -> list[str]:
        """Names in the order in which the rules have them."""
        rules = [self.assignment.rules.for_question(id) for id in group.solutions]
        return [*dict.fromkeys(name for rule in rules for name in rule.operations_forbidden)]

    def _report(self, group: Group, student: Student) -> None:
        """Note which of the operations that are not allowed the answer has run."""
        try:
            with student.clock(START_SECONDS):
                seen = student.peer.ask("seen")
        except (Gone, Exception):  # noqa: BLE001  (what cannot be asked proves nothing)
            return
        if isinstance(seen, list):  # its own words are not repeated, only names of the rules
            known = self._forbidden_operations(group)
            self.ran.setdefault(group, set()).update(
                name for name in seen if type(name) is str and name in known
            )

    def _without_forbidden(self, group: Group, found: list[TestRun]) -> list[TestRun]:
        """A forbidden operation costs the question, however it was called."""
        if not self.ran.get(group):
            return found
        if (others := self._asked_of_others(group)) and self.budget.may_repeat:
            apart = self._ran_by_others(group, found, others)
            if apart is not None:
                return apart
        seen = ", ".join(sorted(self.ran[group])[:5])[:100]
        where = f"{self.notebook.name}/{group.solutions[0]}"
        self.flags.append(Flag("forbidden", where, f"The answer runs {seen}."))
        # which of them could carry what a hidden test asked: all answers read the same
        rules = ", ".join(self._forbidden_operations(group)[:3])
        words = (
            "your answer runs an operation that this question does not allow, such as "
            f"{rules}; write it yourself"
        )
        return [TestRun(run.test, "forbidden", 0.0, message=words) for run in found]

    def _asked_of_others(self, group: Group) -> set[str]:
        """Names of other answers that a question's tests use, if its own answer uses none."""
        takes = {name for names in self.notebook.defines.values() for name in names}
        asked = {name for id in group.tests for name in facts(self.notebook.cell(id).source).needed}
        used = {n for id in group.solutions for n in facts(self.script.answers.get(id, "")).needed}
        own = [cell for cell in self.script.cells if self._is_own(cell)]
        while more := {
            name
            for cell in own
            if (facts(cell.source).bound | altered(cell.source)) & used
            for name in facts(cell.source).needed - used
        }:
            used |= more
        others = (asked & takes) - self._made_of(self._defined(group))
        return set() if self.own or self.alone or others & used else others

    def _ran_by_others(
        self, group: Group, found: list[TestRun], others: set[str]
    ) -> list[TestRun] | None:
        """How tests end if it was another answer that ran what this question does not allow.

        With the reference in the place of others, the answer runs nothing of it; None if it does.
        """
        tests, before = [run.test for run in found], self.ran.pop(group)
        with self.budget.repeating():
            self._renew()
            without = {r.test: r for r in self._group(group, tests, self._reference(others))}
            if self.ran.get(group):
                return None
            self.ran[group] = before
            self.unwatched = True
            try:
                self._renew()
                again = self._group(group, tests, {})
            finally:
                self.unwatched = False
        del self.ran[group]
        return [r if without[r.test].score >= r.score - 1e-6 else without[r.test] for r in again]

    def _explained(self, group: Group, run: TestRun) -> TestRun:
        """Why a test failed, if the answer's own cell tells it better than the test."""
        if run.status not in ("failed", "error", "timeout", "died"):
            return run
        where = f"{self.notebook.name}/{run.test}"
        if run.status in ("timeout", "died"):
            self.flags.append(
                Flag("timeout" if run.status == "timeout" else "died", where, run.message)
            )
            return run
        answers = set(group.solutions)
        damaged = [self.script.damaged[id] for id in group.solutions if id in self.script.damaged]
        if damaged:
            return replace(run, status="unanswered", message=damaged[0], error="", raised=None)
        if answers & {*self.script.untouched, *self.script.missing}:
            return replace(run, status="unanswered")
        for id in group.solutions:
            outcome = self.cells.get(id)
            if outcome is not None and outcome.gone:
                status = "timeout" if outcome.gone == "timeout" else "died"
                return replace(run, status=status, error="", raised=None, message=outcome.words)
            if outcome is not None and isinstance(outcome.raised, Raised) and _is_missing(run):
                raised = outcome.raised
                return replace(
                    run,
                    status="error",
                    error=raised.type_name,
                    message=raised.message,
                    raised=raised,
                    stood_in=(),  # not in that cell
                )
        return run


YOURS = "of yours"
UNCOVER = "globals().pop({!r}, None)"
NAMELESS = "without a name"  # as cells of the instructor's may be
MAX_GIVEN = 20_000_000  # bytes of the instructor's files beside a notebook
MOST_CALLS = 100
MOST_LOSSES = 30
MOST_NOTES = 100  # as many as the journal keeps
START_SECONDS = 20.0
TAMPERED = "its process was changed"
NOT_THERE = "import sys\nsys.modules.update(dict.fromkeys({}))"
NOT_PYTHONS = "def {}(*_, **__):\n    raise RuntimeError('this is not to be used')"
IN_ALL = "the whole notebook took longer than it may; what was found by then counts"
NO_POINTS = "The points of this test cannot be worked out from what your code gave."
COUNTS = "Your code answers the same question differently when it is asked in another order."


def _is_no_number(run: TestRun) -> bool:
    """Whether all claims held, and the last line was no number: not by an error's name alone."""
    return run.status == "test-error" and run.error == NoNumber.__name__


def _is_missing(run: TestRun) -> bool:
    return run.error == "NameError"


def _is_run(cell: ScriptCell) -> bool:
    return cell.kind != "test" and cell.cell_type == "code" and bool(cell.source.strip())


def _space(notebook: Notebook) -> Space:
    """The names of a notebook's tests, none of them known yet."""
    answers = [cell.source for cell in notebook.of_kind("solution", "manual")]

    live = frozenset(name for source in answers for name in _used_by_functions(source))
    return Space(
        live=live,
        texts=partial(_texts, [notebook]),
        attributes=_attributes(
            tuple(cell.source for cell in notebook.cells if cell.cell_type == "code")
        ),
        changed=_attributes(tuple(answers)),
    )


@lru_cache(maxsize=64)
def _attributes(sources: tuple[str, ...]) -> frozenset[str]:
    """Names of attributes that the instructor's cells set, but for those of `self`."""
    trees = [parse(source) for source in sources]
    nodes = (node for tree in trees if tree is not None for node in ast.walk(tree))
    return frozenset(
        node.attr
        for node in nodes
        if isinstance(node, ast.Attribute)
        and not isinstance(node.ctx, ast.Load)
        and not (isinstance(node.value, ast.Name) and node.value.id == "self")
    )


def _modules(assignment: Assignment, files: Sequence[Path]) -> Iterator[str]:
    """The modules among files that lie beside the notebook."""
    for path in files:
        if path.suffix == ".py":
            name = ".".join(path.relative_to(assignment.folder).with_suffix("").parts)
            yield name.removesuffix(".__init__")  # a package goes by its folder


@lru_cache(maxsize=64)
def _given(digest: str, folder: Path, files: tuple[Path, ...]) -> tuple[tuple[str, bytes], ...]:
    """The instructor's files beside the notebook, as far as there is room for them."""
    found, left = [], MAX_GIVEN
    for path in files:
        left -= path.stat().st_size
        if left >= 0:
            found.append((path.relative_to(folder).as_posix(), path.read_bytes()))
    return tuple(found)


def _released(assignment: Assignment) -> Iterator[tuple[str, bytes]]:
    """Those of them that students have as well."""
    names = {path.relative_to(assignment.folder).as_posix() for path in assignment.released}
    given = _given(assignment.digest, assignment.folder, assignment.files)
    return (file for file in given if file[0] in names)


class _Place:
    """A folder of its own where the instructor's files lie, and nothing else."""

    def __init__(self, assignment: Assignment) -> None:
        """Nothing is made yet."""
        self.given = _given(assignment.digest, assignment.folder, assignment.files)
        self.folder = ""
        self.before = dict(sys.modules)

    def make(self) -> None:
        """Make a new one, and work there from now on."""
        self.folder = tempfile.mkdtemp()
        sys.path.insert(0, self.folder)  # the instructor's own modules
        for name, content in self.given:
            Path(self.folder, name).parent.mkdir(parents=True, exist_ok=True)
            Path(self.folder, name).write_bytes(content)
        os.chdir(self.folder)

    def leave(self) -> None:
        """Be done with it, and with the modules that came from there."""
        if not self.folder:
            return
        sys.path[:] = [path for path in sys.path if path != self.folder]
        new = [n for n, module in sys.modules.items() if self.before.get(n) is not module]
        for name in new:
            if str(getattr(sys.modules[name], "__file__", None)).startswith(self.folder + os.sep):
                del sys.modules[name]
        shutil.rmtree(self.folder, ignore_errors=True)


@contextmanager
def _beside(assignment: Assignment) -> Iterator[_Place]:
    """Run what is inside where the instructor's files lie."""
    before, place = Path.cwd(), _Place(assignment)
    try:
        place.make()
        yield place
    finally:
        os.chdir(before)
        place.leave()


def _texts(notebooks: Sequence[Notebook]) -> frozenset[str]:
    """The texts that stand in the instructor's cells."""
    given = [cell for one in notebooks for cell in one.of_kind("readonly", "code", "test")]
    return frozenset(text for cell in given for text in _constants(cell.source))


def _is_broad(outcome: Any) -> bool:
    """Whether an outcome of the reference's, as it is kept, is a class that catches claims."""
    kinds = AssertionError.__mro__[:-1]
    parts = list(parts_of(outcome))
    told = [part.kind for part in parts if isinstance(part, Opaque)]
    return any(any(part is kind for part in parts) or repr(kind) in told for kind in kinds)


def _changes(transcript: Transcript) -> list[tuple[str, tuple[str, ...]]]:
    """What each call of a transcript changes."""
    return [(crossing.what, crossing.changed) for crossing in transcript]


@lru_cache(maxsize=500)
def _constants(source: str) -> frozenset[str]:
    """The texts that stand in a cell of the instructor's."""
    nodes = ast.walk(parse(source) or ast.Module([], []))
    return frozenset(n.value for n in nodes if isinstance(n, ast.Constant) and type(n.value) is str)


@lru_cache(maxsize=500)
def _used_by_functions(source: str) -> frozenset[str]:
    """Global names that the functions and classes of a cell of the instructor's use."""
    tree = parse(source)
    if tree is None:
        return frozenset()
    todo = symtable.symtable(ast.unparse(tree), "reference", "exec").get_children()
    found: set[str] = set()
    while todo:
        table = todo.pop()
        found |= {name.get_name() for name in table.get_symbols() if name.is_global()}
        todo += table.get_children()
    return frozenset(found)


def _locked(notebook: Notebook) -> list[str]:
    """The instructor's cells besides answers and tests."""
    return [cell.source for cell in notebook.of_kind("readonly", "code")]


def _references(notebook: Notebook, solutions: Sequence[str] | None) -> tuple[str, ...]:
    """The reference's answers to some questions, or to all."""
    cells = notebook.of_kind("solution")
    return tuple(c.source for c in cells if solutions is None or c.grade_id in solutions)


def _used(notebook: Notebook, solutions: Sequence[str] | None) -> frozenset[str]:
    """Names that the reference's answers use, and what they use of the instructor's cells does."""
    return _used_by(_references(notebook, solutions), tuple(_locked(notebook)))


@lru_cache(maxsize=500)
def _used_by(sources: tuple[str, ...], given: tuple[str, ...]) -> frozenset[str]:
    used: dict[str, set[str]] = {}  # by each function and class of the instructor's
    for source in given:
        for part in (parse(source) or ast.Module([], [])).body:
            if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                used.setdefault(part.name, set()).update(_names(part))
    found: set[str] = set()
    todo = [name for source in sources for name in _names(parse(source) or ast.Module([], []))]
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += used.get(name, ())
    return frozenset(found)


def _names(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def _operators(notebook: Notebook, solutions: Sequence[str] | None = None) -> frozenset[str]:
    """Special methods that the reference's classes have, of some questions or of all."""
    others = tuple(cell.source for cell in notebook.of_kind("readonly", "code", "solution"))
    return _methods(_references(notebook, solutions), others)


@lru_cache(maxsize=500)
def _methods(sources: tuple[str, ...], others: tuple[str, ...]) -> frozenset[str]:
    """Special methods that classes have: their own, those of a decorator, those of their bases.

    With each goes the one that Python asks in its place: of the other operand, or in place.
    """
    made = {kind.name: kind for source in others for kind in _classes(source)}
    found = {name for source in sources for name in METHOD.findall(source)}
    todo, seen = [kind for source in sources for kind in _classes(source)], set()
    for source in sources:
        if re.search(r"\bnamedtuple\(", source):
            found |= _operators_of(tuple)
    while todo:
        kind = todo.pop()
        found |= {*METHOD.findall(ast.unparse(kind))} | _decorated(kind)
        for base in kind.bases:
            name = _last_name(base)
            if name not in made:
                found |= _operators_of(_pythons(name))
            elif name not in seen:
                seen.add(name)
                todo.append(made[name])
    return frozenset(found | {INSTEAD[name] for name in found if name in INSTEAD})


def _last_name(base: ast.expr) -> str:
    """The name of a base of a class: "Sequence" of `collections.abc.Sequence[int]`."""
    while isinstance(base, ast.Subscript | ast.Call):
        base = base.value if isinstance(base, ast.Subscript) else base.func
    return base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "")


def _pythons(name: str) -> type:
    """A class of Python's own that holds values; `object` if there is none of this name."""
    if name in ("NamedTuple", "namedtuple"):
        return tuple
    homes = (builtins, collections, collections.abc)
    found = next((vars(home)[name] for home in homes if name in vars(home)), object)
    return found if isinstance(found, type) else object


def _operators_of(kind: type) -> set[str]:
    """Special methods that a class of Python's own has, but for those of every object."""
    named = {name: getattr(kind, name) for one in kind.__mro__[:-1] for name in vars(one)}
    return {name for name, made in named.items() if name in OPERATORS and made is not None}


def _classes(source: str) -> list[ast.ClassDef]:
    tree = parse(source)
    return [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)] if tree else []


def _decorated(kind: ast.ClassDef) -> set[str]:
    """Special methods that decorators give a class: `total_ordering`, and those of data classes."""
    said = " ".join(map(ast.unparse, kind.decorator_list))
    found = set(ORDER) if re.search(r"total_ordering|\border=True", said) else set()
    return found | ({"__hash__"} if re.search(r"\b(frozen|unsafe_hash)=True", said) else set())


def imported(notebook: Notebook) -> tuple[str, ...]:
    """Modules that the instructor's cells import."""
    return _imported(tuple(cell.source for cell in notebook.cells if cell.cell_type == "code"))


@lru_cache(maxsize=64)
def _imported(sources: tuple[str, ...]) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for source in sources:
        for node in ast.walk(parse(source) or ast.Module([], [])):
            if isinstance(node, ast.Import):
                found |= dict.fromkeys(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found[node.module] = None
    return tuple(found)


@lru_cache(maxsize=64)
def _needed_in(sources: tuple[tuple[str, str], ...]) -> frozenset[str]:
    """Names that these cells, each with its kind, take from elsewhere."""
    needed = frozenset[str]()
    while True:  # a cell may be needed for one after it
        wanted = [
            facts(source).needed
            for kind, source in sources
            if kind != "code" or (facts(source).bound | altered(source)) & needed
        ]
        if needed >= (more := needed.union(*wanted)):
            return needed
        needed = more


def _needed_here(notebook: Notebook) -> frozenset[str]:
    """Names that the tests and the instructor's locked cells take from elsewhere."""
    cells = notebook.of_kind("test", "readonly", "code")
    return _needed_in(tuple((cell.kind, cell.source) for cell in cells))


def _read_cells(script: Script, lacks: Lacks) -> Iterator[ScriptCell]:
    """A script's cells without some statements, modules and builtins.

    A cell that loses one runs statement by statement: one that needed it stops alone.
    """
    if lacks.modules:
        yield ScriptCell("extra", "", NOT_THERE.format(sorted(lacks.modules)), "code")
    for place, cell in enumerate(script.cells):
        lost = {number for at, number in lacks.out if at == place}
        meant = {number: name for at, number, name in lacks.meant if at == place}
        yield replace(cell, source="") if lost or meant else cell
        for number, text in statements(cell.source) if lost or meant else ():
            if number in meant:
                yield ScriptCell("extra", "", NOT_PYTHONS.format(meant[number]), "code")
            if not lost & {number, ALL}:
                yield ScriptCell("extra", "", text, "code")


def _batches(script: Script) -> Iterable[tuple[list[str], list[ScriptCell]]]:
    """Cells to run, then the tests that follow them directly; and so on."""
    tests: list[str] = []
    cells: list[ScriptCell] = []
    for cell in script.cells:
        if cell.kind == "test":
            tests.append(cell.grade_id)
            continue
        if tests:
            yield tests, cells
            tests, cells = [], []
        cells.append(cell)
    yield tests, cells

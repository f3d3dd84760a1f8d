"""Tests of a question run once, in the process of the tests, on answers in another one."""

import builtins
import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from autograder.bridge import library
from autograder.bridge.line import Gone
from autograder.bridge.reference import (
    arithmetic,
    comparisons,
    ends,
    expectations,
    left_by_errors,
    parts_of,
    steps,
)
from autograder.bridge.session import Student
from autograder.common.imports import imported_where_missing, imports_something
from autograder.common.results import Opaque, TestRun, Transcript
from autograder.common.scopes import facts
from autograder.judge.assignment import Cell, Group
from autograder.judge.budget import Budget
from autograder.judge.cells import START_SECONDS, Cells, Done
from autograder.judge.claims import (
    catches_by_value,
    looks_at_random,
    looks_for_claims,
    refuse_broad,
)
from autograder.judge.given import inherited
from autograder.judge.own_files import Loaded
from autograder.judge.passes import REFERENCE
from autograder.judge.questions import YOURS, own_script, visible_part
from autograder.judge.reach import holds_state, may_change, may_hold
from autograder.judge.space import BadScore, Space
from autograder.judge.testing import NoNumber, run_test

TAMPERED = "its process was changed"
ENDED = (
    "Processes that your cells had started were ended before the tests of a question with rules: "
    "an answer to it has to do without them."
)


class Before:
    """What there was when a question's tests began."""

    def __init__(self, student: Student, space: Space) -> None:
        student.peer.used.clear()
        self.handed = student.peer.next_number
        self.changes = student.peer.changes.total()
        self.names = dict(space)


def is_no_number(run: TestRun) -> bool:
    """Whether all claims held, and the last line was no number: not by an error's name alone."""
    return run.status == "test-error" and run.error == NoNumber.__name__


def is_no_score(run: TestRun) -> bool:
    """Whether all claims held, and the last line was no number from 0 to the test's points."""
    return is_no_number(run) or (run.status == "test-error" and run.error == BadScore.__name__)


def is_broad(outcome: Any) -> bool:
    """Whether an outcome of the reference's, as it is kept, is a class that catches claims."""
    kinds = AssertionError.__mro__[:-1]
    parts = list(parts_of(outcome))
    told = [part.kind for part in parts if isinstance(part, Opaque)]
    return any(any(part is kind for part in parts) or repr(kind) in told for kind in kinds)


def changes(transcript: Transcript) -> list[tuple[str, tuple[str, ...]]]:
    """What each call of a transcript changes."""
    return [(crossing.what, crossing.changed) for crossing in transcript]


@dataclass
class Attempts(Cells):
    """Tests of a question, run once; what passes, what fails, and what is left behind by them."""

    met_hidden: set[str] = field(default_factory=set)  # tests run after a hidden one had run
    deadly: set[str] = field(default_factory=set)  # tests that have ended a process
    passed: set[str] = field(default_factory=set)  # tests that have passed with no reference
    asked: dict[str, list[Any]] = field(default_factory=dict)  # calls of tests that passed
    ran: dict[Group, set[str]] = field(default_factory=dict)  # forbidden operations
    loaded: set[Loaded] = field(default_factory=set)  # students' modules that ran
    silent: set[Group] = field(default_factory=set)  # whose processes ended before they told of it
    unwatched: bool = False  # whether an answer is known to run nothing that it may not
    references: dict[Group, dict[str, TestRun]] = field(default_factory=dict)
    restored: frozenset[str] = frozenset()  # names that get their usual meaning back
    fill: Callable[[Any], Any] | None = None  # what tests get in the place of what answers give
    tainted: bool = False  # whether values were spoilt where tests share things, and stay so

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
        every = self._with_earlier(group, tests)
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

    def _with_earlier(self, group: Group, tests: Sequence[str]) -> list[str]:
        """Tests of a question, and those before them, which go on where these ended.

        What has ended a process is not run for that.
        """
        every = group.tests[: 1 + max(map(group.tests.index, tests))]
        here = {cell.grade_id for cell in self.script.cells if cell.kind == "test"}
        return [one for one in every if one in tests or one in here - self.deadly]

    def _leave(self, student: Student, before: "Before", group: Group) -> None:
        """However a question's tests ended: nothing of them stays in what later ones begin with."""
        self.loaded |= student.peer.ran.found.keys()
        if not self.notebook.shared_names:
            self.space.forget_all_but(before.names)
        used = list(student.peer.used.values())
        student.peer.used.clear()
        own = {piece.grade_id for piece in self.script.pieces}
        beside = self.purpose.beside_reference and own.isdisjoint(group.solutions)
        is_reference = beside or not self.purpose.doubted
        if is_reference or self.purpose.goes_on:
            return  # what that changes, later tests may go by
        changed = student.peer.changes.total() > before.changes
        spoilt = changed and holds_state(before.names, self._helpers)
        spoilt = spoilt or may_change(used, before.names, self._helpers)
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
        self.space.replaced = False
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
            cell = self._test_cell(test, visible)
            self._settle(student, group, cell, protect)
            self._bring_in_for(student, test)
            if self.hidden_ran or self.hidden_kept or self.tainted or protect:
                self.met_hidden.add(test)
            asked: list[Any] | None = None
            if self.purpose.doubted and not (cell.hidden or visible):
                asked = []
            may_fail = looks_for_claims(cell.source)
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

    def _settle(self, student: Student, group: Group, cell: Cell, protect: bool) -> None:
        """Expect of answers what this test's reference gives, and begin with its random numbers."""
        peer, test = student.peer, cell.grade_id
        self._trust(student, group.solutions)
        self.space.asked_for = self._asked_for(group)
        library.forget()
        known = self._known_reference(test) or ()
        peer.protect, peer.changed_ours = protect, False
        peer.allowed = changes(self._of_reference(group, test) if protect else ())
        peer.expected = expectations(known)
        peer.compared = comparisons(known) if self.purpose.doubted else None
        peer.left = left_by_errors(known) if self.purpose.doubted else None
        peer.ends = ends(known) if self.purpose.doubted else None
        peer.reckoned = self._reckoned(group, test)
        peer.records.guarded = self._guarded(group, test)
        peer.look, peer.fill = self._look(group, test), self.fill
        peer.random.steps = self._steps(test)
        peer.random.is_looked_at = looks_at_random(cell.source)
        self._reseed(student, test)  # last: to ask the reference may have drawn numbers

    def _reckoned(self, group: Group, test: str) -> frozenset[str] | None:
        """Arithmetic with plain values that an answer's objects are asked for in a test.

        What the reference's have of a class of Python's own does not cross.
        """
        known = self._known_reference(test) if self.purpose.doubted else None
        if known is None:
            return None
        return arithmetic(known) | inherited(self.notebook, group.solutions)

    def _bring_in_for(self, student: Student, test: str) -> None:
        """Import for answers what they use and this or an earlier test imports.

        In the notebook it is there as soon as that test has begun. No hidden line is run there.
        """
        for cell in self.notebook.of_kind("test"):
            imports = imports_something(cell.stub)
            text = imported_where_missing(cell.stub, *self.questions.needed) if imports else ""
            step = Done(YOURS, text)
            if text and step not in self.done:
                student.run(step.name, step.source, START_SECONDS)
                if len(self.done) >= len(self.begun):
                    self.done.append(step)
            if cell.grade_id == test:
                break

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
            maker = None if self.space.has(name) else self.questions.maker(name, test)
            if maker is None or maker in tried or self._part(maker) in self.budget.parts.without:
                continue
            if not (maker in self.passed or self.assignment.stand_in):
                continue
            tried |= {maker}
            instead |= self._supply(student, maker, visible=visible, tried=tried)
            before, ids = (
                dict(self.space),
                self.questions.before(maker) * (maker not in self.passed),
            )
            names = {n for id in ids for n in self.notebook.defines.get(id, ())}
            cell, seconds = self._test_cell(maker, visible), self._seconds(maker)
            instead |= names
            self.hidden_ran |= bool(cell.hidden) or bool(names)
            self.space.stand_in(self._reference(names) if names else {})
            own = next(group for group in self.notebook.groups if maker in group.tests)
            self._settle(student, own, cell, protect=False)
            try:
                with (
                    self.budget.repeating(),
                    self.budget.parts.under_way(self._part(maker), seconds),
                ):
                    run = run_test(student, cell, self.space, seconds)
            finally:
                self.space.stand_back()
            made = {n: self.space[n] for n in self.questions.bound(maker) if self.space.has(n)}
            self.space.forget_all_but((made if names or run.status == "passed" else {}) | before)
        return instead

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

    def _test_cell(self, test: str, visible: bool) -> Cell:
        cell = self.notebook.cell(test)
        return visible_part(cell) if visible or not self.purpose.with_hidden else cell

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

    def _restore(self, student: Student, names: frozenset[str]) -> None:
        """Give names that other cells have taken the meaning back that they had."""
        for name in names:
            if hasattr(builtins, name):
                with suppress(NameError):
                    student.delete(name)
        for cell in self.notebook.of_kind("readonly", "code"):
            if names & facts(cell.source).bound:
                student.run(cell.grade_id or YOURS, cell.stub, self._seconds(cell.grade_id))

    def _stand_in(self, student: Student, instead: Mapping[str, Any]) -> None:
        self.space.student = student
        self.space.stand_in(instead)
        for name, value in instead.items():
            try:
                student.set(name, value)
            except Exception:  # noqa: BLE001  (then the answer has to do with what it has)
                self.notes.append(f"The reference's {name} could not stand in for yours.")

    def _own_runs(self, group: Group) -> dict[str, TestRun]:
        """How a question's tests go with the reference."""
        groups = (g for g in self.notebook.groups if {*g.solutions} & {*group.solutions})
        wanted = {test for one in groups for test in one.tests}
        script = own_script(self.notebook, {}, wanted)
        found = self.another(script, REFERENCE, budget=Budget()).run() if wanted else []
        return {run.test: run for run in found}

    def _of_reference(self, group: Group, test: str) -> Transcript:
        """What the reference gives and changes in a test, call by call; nothing if nobody knows."""
        reference = self._known_reference(test)
        if reference is None:
            run = self._own_run(group, test)
            return run.transcript if run is not None else ()
        return reference

    def _own_run(self, group: Group, test: str) -> TestRun | None:
        """How a test ends with the reference; it is run once for each submission."""
        if group not in self.references:
            self.references[group] = self._own_runs(group)
        return self.references[group].get(test)

    def _known_reference(self, test: str) -> Transcript | None:
        name = self.assignment.name_of(self.notebook, test)
        return self.known.of(name)[0] if self.known is not None else None

    def _look(self, group: Group, test: str) -> Callable[[str, Any], None] | None:
        """What refuses a class by which a test would catch its own claims, as an attribute or so.

        Unless the reference has such a one there.
        """
        if not self.purpose.doubted or not catches_by_value(self.notebook.cell(test).source):
            return None
        calls = self._of_reference(group, test)  # now: it may have to be run
        broad = {call.what for call in calls if is_broad(call.outcome)}

        def look(label: str, value: Any) -> None:
            if label not in broad:
                refuse_broad(label.removeprefix("get "), value)

        return look

    def _guarded(self, group: Group, test: str) -> frozenset[str]:
        """Classes of the instructor's whose objects the reference changes in a test."""
        if not self.purpose.doubted or not self.space.classes:
            return frozenset()
        labels = (label for call in self._of_reference(group, test) for label in call.changed)
        return frozenset(label.partition("@")[0] for label in labels)

    def _steps(self, test: str) -> Callable[[str], list[str]] | None:
        """After which calls of a test random numbers go on; None if the answer's own show it."""
        if not self.purpose.doubted or self.known is None:
            return None
        return steps(self._known_reference(test) or ())

    def _watch(self, student: Student, group: Group) -> bool:
        """Have operations that are not allowed noted while the answer runs, and runs alone."""
        if self.unwatched or not self.questions.with_rules(group):
            return False
        names = self.questions.forbidden_operations(group)
        ended = student.peer.ask("watch", sorted(names), not self.questions.may_start(group))
        if ended is True and not (self.hidden_ran or self.hidden_kept):
            self.left_out[ENDED] = None
        return True

    def _report(self, group: Group, student: Student) -> None:
        """Note which of the operations that are not allowed the answer has run."""
        try:
            with student.clock(START_SECONDS):
                seen = student.peer.ask("seen")
        except (Gone, Exception):  # noqa: BLE001  (what cannot be asked proves nothing)
            self.silent.add(group)
            return
        if isinstance(seen, list):  # its own words are not repeated, only names of the rules
            known = self.questions.forbidden_operations(group)
            self.ran.setdefault(group, set()).update(
                name for name in seen if type(name) is str and name in known
            )

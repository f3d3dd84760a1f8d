"""One notebook of a submission through one pass: cells, questions in order, rules, reasons."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import takewhile

from autograder.bridge.errors import said
from autograder.bridge.line import Gone
from autograder.bridge.session import CellRun
from autograder.common.results import Flag, Raised, TestRun
from autograder.common.scopes import facts
from autograder.isolation.clock import doubt
from autograder.judge.assignment import Group
from autograder.judge.beside import released
from autograder.judge.broken_rules import broken_rules
from autograder.judge.budget import IN_ALL
from autograder.judge.diagnose import CHANGED
from autograder.judge.looks import Looks
from autograder.judge.own_files import UNSHOWN, packages_shown, unshown
from autograder.judge.passes import IN_ONE_PROCESS, READ_ALONE
from autograder.judge.questions import YOURS, Lacks, read_cells
from autograder.judge.script import Script, ScriptCell

ENDS = (
    "your code ends its process when the tests are over, before it can be asked what it has run; "
    "let nothing of it end the process"
)

TELLING = frozenset(("failed", "error", "unanswered", "forbidden", "died"))  # a need, each of them


@dataclass
class Work(Looks):
    """Running one notebook of a submission: what `grading` and `plain` ask for."""

    read_alone: dict[Lacks, dict[str, TestRun]] = field(default_factory=dict)  # see `_read_alone`
    lost_by_run: set[str] = field(default_factory=set)  # tests, by what ran while others did, too
    fell: set[str] = field(default_factory=set)  # tests whose visible parts failed as they are

    def run_visible(self, wanted: Collection[str]) -> list[TestRun]:
        """Run all cells, and the visible part of some tests under the same conditions."""
        before = {test: self.questions.visible_before(test) for test in wanted}
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
        if not self.questions.is_about_others(group, test):
            return self.questions.defined(group)
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
        self.losses = 0
        ended = self._forbidden(group, tests)
        if ended is None:
            self._make_anew_if_spoilt()
            with self._coming_back():
                ended = self._again(group, self._group(group, tests, {}))
                ended = self._apart(group, ended)
                self.fell |= {r.test for r in ended if _fails_visibly(r)}
                ended = [self._asked_twice(group, run) for run in ended]
                ended = [self._without_score(group, run) for run in ended]
                ended = [self._not_by_nothing(group, run) for run in ended]
                ended = self._heard(group, tests, ended)
        ended = [self._explained(group, run) for run in ended]
        return self._without_unread(group, self._without_forbidden(group, ended))

    # --- what `plain` asks for ----------------------------------------------------------------

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
                cells += self.questions.usual(cell.grade_id)
            cells.append(cell)
            if cell.kind == "answer" and cell.grade_id in stood_in:
                source = self.notebook.cell(cell.grade_id).source
                cells.append(ScriptCell("skeleton", "", source, "code"))
        return replace(self.script, cells=tuple(cells))

    def run_beside(self, script: Script, cells: Sequence[tuple[ScriptCell, str]]) -> list[CellRun]:
        """Run cells of a script, and texts of tests among them, in order, in a new process.

        All are told of that ran, up to one that ended the process.
        """
        work = self.another(script, IN_ONE_PROCESS)
        found, begun = dict[int, CellRun](), iter(work.begun)  # what these printed has been printed
        for place, (cell, text) in enumerate(cells):
            if cell.cell_type != "code" or not text.strip():
                found[place] = CellRun(True)
            elif cell.kind != "test" and (printed := next(begun, None)) is not None:
                found[place] = CellRun(True, printed)
        todo = {place: cells[place] for place in range(len(cells)) if place not in found}
        try:
            with self.budget.repeating():
                found |= work._all_at_once(todo) or work._one_by_one(todo)
        finally:
            work._renew()
        told = takewhile(found.__contains__, range(len(cells)))
        return [found[place] for place in told]

    def _all_at_once(self, cells: Mapping[int, tuple[ScriptCell, str]]) -> dict[int, CellRun]:
        """How they went, asked in one message; nothing if one of them ended its process."""
        seconds = 2 * max((self._seconds_for(cell) for cell, _ in cells.values()), default=0.0)
        texts = [(cell.grade_id or YOURS, text) for cell, text in cells.values()]
        runs = self._student().run_all(texts, min(seconds, self.budget.left)) if texts else []
        return dict(zip(cells, runs, strict=False))

    def _one_by_one(self, cells: Mapping[int, tuple[ScriptCell, str]]) -> dict[int, CellRun]:
        """The same, one message each, up to one that ended its process."""
        self._renew()
        found: dict[int, CellRun] = {}
        for place, (cell, text) in cells.items():
            seconds = self._seconds_for(cell)
            found[place] = self._student().run(cell.grade_id or YOURS, text, seconds)
            if found[place].gone:
                break
        return found

    def _seconds_for(self, cell: ScriptCell) -> float:
        """How long a cell may take where answers and tests run in one process."""
        seconds = self._seconds(cell.grade_id)
        if cell.kind != "test":
            return seconds
        asked = self.questions.asked_by(cell.grade_id)  # which work there as well
        limit = max(map(self._seconds, asked), default=seconds)
        return min(2 * limit, self.budget.left)

    # --- rules and reasons --------------------------------------------------------------------

    def _forbidden(self, group: Group, tests: Sequence[str]) -> list[TestRun] | None:
        """What an answer calls though it may not; its tests are not run then."""
        if not self.purpose.whole:  # read before a part of it was taken out
            return None
        solutions = self.questions.with_rules(group)
        words = [b.words for id in solutions for b in broken_rules(*self.questions.texts(id)[0])]
        if not words:
            return None
        where = f"{self.notebook.name}/{group.solutions[0]}"
        self.flags.append(Flag("forbidden", where, words[0]))
        return [TestRun(test, "forbidden", 0.0, message=words[0]) for test in tests]

    def _without_unread(self, group: Group, found: list[TestRun]) -> list[TestRun]:
        """An answer may need nothing that could not be read: then it earns as much without that.

        Only an answer that was seen to fail without it loses points; what stays open, as when the
        time is over, is for the instructor to look at.
        """
        earned = [run for run in found if run.score > 0]
        if not (self.purpose.looks_without and earned):
            return found
        more, dark = self._unshown(group)
        if any(broken_rules(*self.questions.texts(id, more)[0]) for id in group.solutions if more):
            return self._not_allowed(group, found, UNSHOWN)
        lacks, words = self.questions.unread(group, more, packages_shown(self.loaded, dark))
        if more or dark:  # by the words nobody tells which: its name may be what a test has asked
            lacks, words = replace(lacks, modules=lacks.modules | dark), UNSHOWN
        if lacks == Lacks():
            return found
        less = self._less(earned, lacks, self._limit(group))
        if not less:
            return found
        where = f"{self.notebook.name}/{group.solutions[0]}"
        if not any(less):
            self.flags.append(Flag("forbidden", where, f"Not sure: {words}. Look at it."))
            return found
        return self._not_allowed(group, found, words)

    def _less(self, earned: list[TestRun], lacks: Lacks, limit: float) -> set[str]:
        """How tests end that earn less without these things; "" where that says nothing of a need.

        A process may have been ended by the machine: who ends it each time needs what is missing.
        """
        less = self._ends_without(earned, lacks, limit)
        if "died" in less:
            del self.read_alone[lacks]
            less = self._ends_without(earned, lacks, limit)
        return less

    def _ends_without(self, earned: list[TestRun], lacks: Lacks, limit: float) -> set[str]:
        again = self._read_alone(lacks)
        found = set[str]()
        for run in earned:
            other = again.get(run.test, replace(run, status="test-error", score=0.0))
            if other.score < run.score - 1e-6:
                waits = run.seconds < limit / 2 and self.budget.left > 0  # for what is not there
                told = other.status in TELLING or (other.status == "timeout" and waits)
                found.add(other.status if told else "")
        return found

    def _not_allowed(self, group: Group, found: list[TestRun], words: str) -> list[TestRun]:
        """A question whose answer needs what it may not use."""
        where = f"{self.notebook.name}/{group.solutions[0]}"
        self.flags.append(Flag("forbidden", where, words))
        self.lost_by_run |= {run.test for run in found}
        return [TestRun(run.test, "forbidden", 0.0, message=words) for run in found]

    def _unshown(self, group: Group) -> tuple[list[str], frozenset[str]]:
        """Modules that ran, and that whoever reads the student's cells has not seen."""
        if not self.questions.with_rules(group):
            return [], frozenset()
        files = [*self.script.files, *released(self.assignment)]
        return unshown(self.loaded, [cell.source for cell in self.script.cells], files)

    def _read_alone(self, lacks: Lacks) -> dict[str, TestRun]:
        """How the tests end if these statements do not run and these modules are not there."""
        if lacks not in self.read_alone and self.budget.may_repeat:
            runs: list[TestRun] = []
            script = replace(self.script, cells=tuple(read_cells(self.script, lacks)))
            with self.budget.repeating(), suppress(Gone, Exception):  # what is lost proves nothing
                runs = self.another(script, READ_ALONE, self.known).run()
            self.read_alone[lacks] = {run.test: run for run in runs}
        return self.read_alone.get(lacks, {})

    def _heard(self, group: Group, tests: Sequence[str], found: list[TestRun]) -> list[TestRun]:
        """Points of an answer that can be asked what it ran; where its process ended, once more."""
        if group not in self.silent or not any(run.score > 0 for run in found):
            return found
        self.silent.discard(group)
        if not self.budget.may_repeat:
            where = f"{self.notebook.name}/{group.solutions[0]}"
            self.flags.append(Flag("forbidden", where, f"Not sure: {ENDS}. Look at it."))
            return found
        with self.budget.repeating():
            self._renew()
            again = {run.test: run for run in self._group(group, tests, {})}
        if group in self.silent:
            return self._not_allowed(group, found, ENDS)
        others = [again.get(run.test, run) for run in found]
        return [min(pair, key=lambda one: one.score) for pair in zip(found, others, strict=True)]

    def _without_forbidden(self, group: Group, found: list[TestRun]) -> list[TestRun]:
        """A forbidden operation costs the question, however it was called."""
        if not self.ran.get(group):
            return found
        may_help = self.purpose.doubted and self.purpose.whole and self.budget.may_repeat
        if may_help and (others := self.questions.asked_of_others(group)):
            apart = self._ran_by_others(group, found, others)
            if apart is not None:
                return apart
        seen = ", ".join(sorted(self.ran[group])[:5])[:100]
        where = f"{self.notebook.name}/{group.solutions[0]}"
        self.flags.append(Flag("forbidden", where, f"The answer runs {seen}."))
        self.lost_by_run |= {run.test for run in found}
        # which of them could carry what a hidden test asked: all answers read the same
        rules = ", ".join(self.questions.forbidden_operations(group)[:3])
        words = (
            "your answer runs an operation that this question does not allow, such as "
            f"{rules}; write it yourself"
        )
        return [TestRun(run.test, "forbidden", 0.0, message=words) for run in found]

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


def _fails_visibly(run: TestRun) -> bool:
    """Whether it is the test itself that failed, and not another look, and in what is visible."""
    return run.status in ("failed", "error") and not run.in_hidden and run.message != CHANGED


def _is_missing(run: TestRun) -> bool:
    return run.error == "NameError"

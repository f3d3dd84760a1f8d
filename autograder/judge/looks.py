"""What is looked at again, and what it may change of how a test ended."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from autograder.bridge.line import Gone
from autograder.bridge.outline import WITH
from autograder.bridge.reference import Allowed, exceeds
from autograder.common.results import Crossing, Flag, Opaque, Raised, TestRun, Transcript
from autograder.common.scopes import facts
from autograder.judge.assignment import Group
from autograder.judge.attempts import Attempts, changes, is_no_number, is_no_score
from autograder.judge.budget import Budget
from autograder.judge.diagnose import CHANGED
from autograder.judge.differences import kept
from autograder.judge.differences import same as alike
from autograder.judge.gaps import WORDS as NO_NUMBERS
from autograder.judge.gaps import Gaps
from autograder.judge.given import given_texts, with_helpers
from autograder.judge.nothing import (
    attributes_of_its_own,
    gives_nothing,
    gives_nothing_beside,
    keep_entries,
    may_give_nothing,
    words_of,
)
from autograder.judge.passes import STEADY
from autograder.judge.questions import own_script
from autograder.judge.reach import holds_state
from autograder.judge.testing import run_test

MOST_CALLS = 100
NO_POINTS = "The points of this test cannot be worked out from what your code gave."
UNSEEN = "There was no time to see whether the test holds with any number there. Look at it."
COUNTS = "Your code answers the same question differently when it is asked in another order."


@dataclass
class Looks(Attempts):
    """A question's tests, and every further look at them."""

    broken: set[str] = field(default_factory=set)  # names that failed their own tests
    usual: dict[str, frozenset[str]] = field(default_factory=dict)  # those by test, where it helped

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
            runs, changed_now, words = self._attempt(group, left, instead, protect)
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
            changed |= changed_now
        turned = {run.test: run for run in found if run.test in before}
        with self.budget.repeating():
            worse = self._confirmed(group, turned, instead) if not protect else {}
        found = [worse.get(run.test, run) for run in found]
        if changed and not protect and self.purpose.doubted:
            return self._protected(group, found, instead)
        return found

    def _confirmed(
        self, group: Group, found: Mapping[str, TestRun], instead: Mapping[str, Any]
    ) -> dict[str, TestRun]:
        """A third look, in a new process, at tests that failed at the first and now pass.

        An answer that goes by the clock, or by chance, has a chance for each look.
        """
        passed = [test for test, run in found.items() if run.status == "passed"]
        if not passed or not self.purpose.doubted or self.notebook.shared_names:
            return {}
        self._renew()
        again = {run.test: run for run in self._group(group, passed, instead)}
        return {test: run for test, run in again.items() if run.status != "passed"}

    def _doubtful(self, group: Group, runs: Sequence[TestRun], tests: Sequence[str]) -> bool:
        """Whether tests of other questions may be to blame for how these ended."""
        if not self.budget.may_repeat:
            return False
        if self.notebook.shared_names or not self.purpose.with_hidden:  # points were found
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
        if (
            not self.purpose.doubted
            or len(runs) < len(tests)
            or failed != {run.test for run in told}
        ):
            return []
        self._renew()
        runs_again, _, _ = self._attempt(group, tests, instead, protect, visible=True)
        again = {run.test: run for run in runs_again if run.status in ("failed", "error")}
        if not failed <= again.keys():
            return []
        if not (self.hidden_kept or self.hidden_ran):
            self.met_hidden -= failed
        return [again[run.test] if run.test in failed else run for run in runs]

    def _protected(
        self, group: Group, found: list[TestRun], instead: Mapping[str, Any]
    ) -> list[TestRun]:
        """An answer changed what it was handed: what passes has to pass without that as well.

        But for what the reference changes in the same call, because the question asks for it.
        """
        passed = [run for run in found if run.status == "passed"]
        # what a test takes from another question's would be as this test has left it
        alone = [run for run in passed if run.test not in self.notebook.shared_names]
        far = [run for run in alone if self._goes_too_far(group, run.test, run.transcript)]
        doubtful = [run.test for run in far]
        if not doubtful:
            return found
        if not self.notebook.shared_names or self._is_first():
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
        allowed = Allowed(changes(self._of_reference(group, test)))
        pairs = [(call.changed, allowed.next(call.what)) for call in transcript]
        return any(exceeds(changed, most) for changed, most in pairs)

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

    def _not_by_nothing(self, group: Group, run: TestRun) -> TestRun:
        """A result without entries passes whatever is claimed of its numbers, and earns nothing."""
        if not self.purpose.doubted or run.score <= 0:
            return run
        theirs = keep_entries(run.transcript)
        ours = keep_entries(self._of_reference(group, run.test)) if may_give_nothing(theirs) else ()
        empty = gives_nothing(theirs, ours)
        if empty is not None:
            empty = gives_nothing(theirs, ours, self._beside_of_reference(group, run.test))
        in_hidden = empty.hidden if empty else bool(self.notebook.cell(run.test).hidden)
        if empty is None:
            beside = (*run.beside, *attributes_of_its_own(theirs, ours))
            empty = self._nothing_beside(group, run.test, beside)
        if empty is None:
            return self._not_by_gaps(group, run, theirs)
        run = replace(
            run, status="failed", score=0.0, error="AssertionError", message=words_of(empty)
        )
        return replace(run, in_hidden=in_hidden)

    def _not_by_gaps(self, group: Group, run: TestRun, theirs: Transcript) -> TestRun:
        """A result that is no number in places passes if the test holds with any number there.

        Also without these numbers it has to pass once more: an answer may know a second look by
        what has not run before it, and fail there to be let go.
        """
        gaps, found = self._gap(group, run, theirs)
        if found is None:
            return run
        if not self.budget.may_repeat:
            where = f"{self.notebook.name}/{run.test}"
            self.flags.append(Flag("timeout", where, f"Not sure: {NO_NUMBERS} {UNSEEN}"))
            return run
        again = self._as_good_as(group, run)
        if again is not None and again.score >= run.score:
            again = self._once_more(group, run, gaps.filled)
        if again is None or not self.budget.left or again.score >= run.score:
            return run
        hidden = found.hidden or again.in_hidden
        lost = replace(run, score=again.score, in_hidden=hidden)
        if again.status == "passed":
            return lost
        return replace(lost, status="failed", error="AssertionError", message=NO_NUMBERS)

    def _gap(self, group: Group, run: TestRun, theirs: Transcript) -> tuple[Gaps, Crossing | None]:
        """The first call that gave what is no number where the reference gives one, if any did."""
        beside = any(WITH in one.what for one in run.beside)
        if not (beside or Gaps().are_in(theirs)):
            return Gaps(), None
        given = given_texts(self.assignment, self.notebook)
        gaps = Gaps.unnamed_in(with_helpers(self.notebook.cell(run.test).source, given))
        found = None
        if gaps.are_in(theirs):
            found = gaps.first(theirs, keep_entries(self._of_reference(group, run.test)))
        if found is None and beside:
            ours = keep_entries(self._of_reference(group, run.test))
            known = self._beside_of_reference(group, run.test)
            found = gaps.first_beside(run.beside, known, ours)
        return gaps, found

    def _as_good_as(self, group: Group, run: TestRun) -> TestRun | None:
        """How a test ends in a new process: if it is worse there, the better of two looks.

        None if nobody can tell, as where the test needs what those before it leave behind.
        """
        again = self._once_more(group, run)
        if again is None or again.score >= run.score:
            return again
        own, other = self._own_run(group, run.test), self._once_more(group, run)
        if own is None or own.status != "passed" or other is None:
            return None
        return max(again, other, key=lambda one: one.score)

    def _once_more(
        self, group: Group, run: TestRun, fill: Callable[[Any], Any] | None = None
    ) -> TestRun | None:
        """How a test ends in a new process, with what stood in for other answers.

        Args:
            group: the question's tests.
            run: how it ended before.
            fill: makes of what answers give what the test gets.
        """
        instead = self._reference({*run.stood_in}) if run.stood_in else {}
        self.restored, self.fill = self.usual.get(run.test, frozenset()), fill
        try:
            with self.budget.repeating():
                self._renew()
                again = {one.test: one for one in self._group(group, [run.test], instead)}
        finally:
            self.restored, self.fill = frozenset(), None
        return again.get(run.test)

    def _nothing_beside(self, group: Group, test: str, theirs: Transcript) -> Crossing | None:
        """The first thing without entries of what an answer gives otherwise than by calls."""
        if not may_give_nothing(theirs):
            return None
        ours = keep_entries(self._of_reference(group, test))
        return gives_nothing_beside(theirs, self._beside_of_reference(group, test), ours)

    def _beside_of_reference(self, group: Group, test: str) -> Transcript:
        """What comes from the reference otherwise than by calls; nothing if nobody knows."""
        name = self.assignment.name_of(self.notebook, test)
        known = self.known.beside(name) if self.known is not None else None
        if known is not None:
            return known
        run = self._own_run(group, test)
        return () if run is None else run.beside

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
        student.peer.reckoned = None
        self.space.student = student
        *earlier, _ = self._with_earlier(group, [run.test])
        try:
            with (
                self.budget.repeating(),
                self.budget.parts.under_way(self._part(run.test), seconds),
            ):
                for test in earlier:
                    before = self._test_cell(test, visible=False)
                    self.hidden_ran |= bool(before.hidden)
                    run_test(student, before, self.space, seconds)
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
        if not (self.purpose.tries_reference or self._reference_is_steady(run.test)):
            return run
        return replace(run, status="failed", score=0.0, error="AssertionError", message=COUNTS)

    def _without_score(self, group: Group, run: TestRun) -> TestRun:
        """A test whose last line is no number with the reference either counts as nbgrader does.

        Where it gives points with the reference and none that it may give here, the answer failed.
        """
        if not self.purpose.doubted or not is_no_score(run):
            return run
        reference = self._own_runs(group).get(run.test)
        if reference is not None and reference.status == "passed":
            return replace(run, status="failed", error="AssertionError", message=NO_POINTS)
        if reference is None or not (is_no_number(run) and is_no_number(reference)):
            return run
        points = float(self.notebook.cell(run.test).points)
        return replace(run, status="passed", score=points, error="", message="")

    def _reference_is_steady(self, test: str) -> bool:
        """Whether the reference gives the same when it is asked in another order."""
        script = own_script(self.notebook, {}, {test})
        tried = self.another(script, STEADY, budget=Budget()).run()
        return all(run.status == "passed" for run in tried)

    def _again(self, group: Group, found: list[TestRun]) -> list[TestRun]:
        """Run what failed once more, without what was broken in other cells.

        The reference stands in for what failed its own tests before, and a name that the answer
        uses has the meaning that Python or the instructor gave it.
        """
        failed = [run.test for run in found if run.status != "passed"]
        failed = [test for test in failed if not self.questions.is_about_others(group, test)]
        may_help = self.purpose.doubted and self.assignment.stand_in
        if not (may_help and failed and self.budget.may_repeat):
            return found
        used, own = self.questions.used(group), self.questions.defined(group)
        broken = used & (self.questions.made_of(self.broken - own) - self.questions.made_of(own))
        shadowed = used & self.questions.shadowed(group)
        if shadowed:  # not what the answer may hand on because it is no module any more
            shadowed -= {name for *_, name in self.questions.unread(group)[0].instead}
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
        failed = [test for test in failed if not self.questions.is_about_others(group, test)]
        answers = {
            id: self.script.answers[id] for id in group.solutions if id in self.script.answers
        }
        if not (self.purpose.looks_apart and failed and answers):
            return found
        if not self.assignment.stand_in:
            better = self._as_left if self.was_anew and self.budget.may_repeat else {}
            return [better.get(run.test, run) if run.test in failed else run for run in found]
        if not any(map(self.questions.is_begun, answers.items())):
            return found  # no other cell's fault, and a run of all cells for each would take long
        matter = self.budget.may_repeat and self.questions.others_matter(group)
        if not (matter or (self.budget.may_repeat and self.was_anew)):
            return found
        for _ in range(2):  # an answer that goes by the clock had a second chance: a third look
            with self.budget.repeating():
                better = self._alone(group, answers, failed) if failed else {}
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
            work = self.another(self.script, self.purpose.as_left(), self.known)
            with self.budget.repeating():
                passed = {run.test: run for run in work.run() if run.status == "passed"}
            found = {test: run for test, run in passed.items() if not look or test in found}
        return found

    def _alone(
        self, group: Group, answers: Mapping[str, str], tests: Sequence[str]
    ) -> dict[str, TestRun]:
        """Those of the tests that pass with these answers and the reference elsewhere."""
        every = {cell.grade_id for cell in self.notebook.of_kind("test")}
        if not self.was_anew:  # those of a question go on where those before them ended
            every = {*self._with_earlier(group, tests)}
        script = own_script(self.notebook, answers, every)
        pieces = tuple(piece for piece in self.script.pieces if piece.grade_id in answers)
        script = replace(script, pieces=pieces, files=self.script.files)
        work = self.another(script, self.purpose.apart(), self.known)
        found = {run.test: run for run in work.run() if run.status == "passed"}
        return {test: run for test, run in found.items() if test in tests}

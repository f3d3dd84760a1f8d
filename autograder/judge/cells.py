"""Cells of a submission run in a process of students', and the instructor's where tests run."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, Self

from autograder.bridge.errors import said
from autograder.bridge.line import Gone
from autograder.bridge.public import open_packages
from autograder.bridge.session import CellRun, Student
from autograder.common.course import CourseError
from autograder.common.names import shown
from autograder.common.results import Flag, TestRun, Transcript
from autograder.common.scopes import facts
from autograder.common.syntax import altered
from autograder.isolation.clock import doubt
from autograder.isolation.outcomes import Unwell
from autograder.judge.assignment import Assignment, Cell, Notebook
from autograder.judge.beside import WorkingFolder, beside, modules, released
from autograder.judge.budget import IN_ALL, Budget
from autograder.judge.given import imported, needed_here, new_space, operators, used_by_references
from autograder.judge.guard import Guard
from autograder.judge.passes import GRADE, Pass
from autograder.judge.questions import YOURS, Questions, batches, is_run
from autograder.judge.referred import Referred
from autograder.judge.script import Script, ScriptCell
from autograder.judge.space import Prepared, Space, remotes_in

NAMELESS = "without a name"  # as cells of the instructor's may be
MAX_BEGINNING = 60  # characters of a cell by which a student knows it
MOST_LOSSES = 30
START_SECONDS = 20.0


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

    def beside(self, test: str) -> Transcript | None:
        """What comes from the reference otherwise than by calls; None if nobody knows."""
        ...


@dataclass
class Done:
    """A cell that has run, and runs again where a new process takes the place of an old one."""

    name: str
    source: str
    given: Cell | None = None  # the instructor's, if it was prepared here and asked the answers


@dataclass
class Aside:
    """The process in which all tests so far have run, while others look again at a question."""

    process: Student
    space: Space
    values: dict[str, Any] | None = None  # what stood there when another began; None before
    hidden_ran: bool = False


@dataclass
class Cells:
    """Running one notebook of a submission: its process, and its cells.

    The tests are `Attempts`, above this; what is looked at again is `Looks`, above that.
    """

    assignment: Assignment
    notebook: Notebook
    script: Script
    fork_server: ForkServer
    known: Shelf | None
    budget: Budget = field(default_factory=Budget)
    purpose: Pass = GRADE
    space: Space = field(init=False)
    questions: Questions = field(init=False)
    cells: dict[str, CellRun] = field(default_factory=dict)  # how each answer's cell went
    done: list[Done] = field(default_factory=list)
    made: list[Cell | tuple[ScriptCell, frozenset[str]]] = field(default_factory=list)
    starred: dict[str, frozenset[str]] = field(default_factory=dict)  # by cell that asks for them
    notes: list[str] = field(default_factory=list)
    left_out: dict[str, None] = field(default_factory=dict)  # of cells and calls, in sentences
    flags: list[Flag] = field(default_factory=list)
    process: Student | None = None
    place: WorkingFolder | None = None  # where the instructor's cells and the tests run
    begun: tuple[str, ...] = ()  # what the cells printed that are run already in new processes
    referred: Referred = field(init=False)  # what names stand for with the reference
    used: bool = False  # whether tests have run in the present process
    aside: Aside | None = None  # to which the next question goes back
    losses: int = 0  # processes that had to be ended since the present question began
    hidden_ran: bool = False  # in the present process, or the reference stood in there
    hidden_kept: bool = False  # whether values of the instructor's may hold something of one
    printed_late: bool = False  # whether a cell printed something after a hidden test
    spoilt: bool = False  # whether an answer may have changed what the instructor's cells made
    was_anew: bool = False  # whether these were made anew, and what earlier tests made is not there

    def __post_init__(self) -> None:
        """Find out whether the submission begins as most do."""
        self.questions = Questions(self.assignment, self.notebook, self.script)
        self.referred = Referred(self._reference)
        self.space = self._new_space()
        own = [(c.grade_id or YOURS, c.source) for c in self.script.cells if is_run(c)]
        head = self.fork_server.head
        same = own[: len(head)] == [(name, source) for name, source, _ in head]
        files = self.script.files or self.assignment.files  # which lie there before any cell runs
        if same and not files:
            self.begun = tuple(printed for _, _, printed in head)

    def run(self) -> list[TestRun]:
        """Run all cells and tests in order."""
        return self._in_order(self._tests)

    def another(
        self,
        script: Script,
        purpose: Pass,
        known: Shelf | None = None,
        budget: Budget | None = None,
    ) -> Self:
        """A run of this notebook for another purpose, in processes of its own."""
        return type(self)(
            self.assignment,
            self.notebook,
            script,
            self.fork_server,
            known,
            self.budget if budget is None else budget,
            purpose,
        )

    def _tests(self, batch: Sequence[str]) -> list[TestRun]:
        """Run neighbouring tests, question by question."""
        raise NotImplementedError

    def _new_space(self) -> Space:
        space = new_space(self.notebook)
        space.helpers = frozenset(modules(self.assignment, self.assignment.released))
        if self.purpose.doubted:
            space.referred = self.referred
        return space

    @property
    def _helpers(self) -> frozenset[str]:
        """The instructor's modules beside the notebook, those that tests alone see too."""
        return frozenset(modules(self.assignment, self.assignment.files))

    def _in_order(self, tests: Callable[[Sequence[str]], list[TestRun]]) -> list[TestRun]:
        """Run the cells, and after them, batch by batch, the tests that follow them."""
        open_packages(imported(self.notebook))
        found: list[TestRun] = []
        needed = needed_here(self.notebook)
        with beside(self.assignment) as self.place:
            try:
                for batch, cells in batches(self.script, self.notebook.groups):
                    for cell in cells:
                        self._attempt_step(cell, needed)
                    found += tests(batch)
            finally:
                self._renew()
        return found

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
        return Guard(operators(self.notebook, solutions), self.space.helpers)

    def _trust(self, student: Student, solutions: Sequence[str] | None = None) -> None:
        """Believe of answers what the reference's, of some questions or of all, could do."""
        student.peer.policy = self._guard(solutions)
        used = used_by_references(self.notebook, solutions)

        def given(name: str) -> type | None:
            kind = self.space.raisable.get(name)
            found = kind is not None and not used.isdisjoint((name, kind.__module__))
            return kind if found else None

        student.peer.errors.given = given

    def _lay_out(self, student: Student) -> None:
        """Put what was handed in, and over it what was handed out, where the student's cells run.

        Files that the release does not hold are for tests alone: an answer could read them here.
        """
        for name, content in (*self.script.files, *released(self.assignment)):
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
        waits = self.aside and self.aside.hidden_ran  # /proc tells of its pages
        self.hidden_ran &= bool(self.notebook.shared_names or waits)  # what hidden tests have made

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
        if not is_run(cell):
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
        return {name: space[name] for name in sorted(names) if space.has(name)}

"""What the texts of a submission and its notebook say of each question: names, rules, scripts."""

import builtins
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from autograder.common.imports import imported_where_missing
from autograder.common.scopes import facts
from autograder.common.syntax import acts, altered, touched
from autograder.judge.assignment import Assignment, Cell, Group, Notebook
from autograder.judge.broken_rules import ALL, module_cell, statements, unread
from autograder.judge.forbidden import leads_to_programs
from autograder.judge.given import locked
from autograder.judge.made_of import Place
from autograder.judge.rules import QuestionRules
from autograder.judge.script import Script, ScriptCell

YOURS = "of yours"
UNCOVER = "globals().pop({!r}, None)"
NOT_THERE = "import sys\nsys.modules.update(dict.fromkeys({}))"
NOT_PYTHONS = "def {}(*_, **__):\n    raise RuntimeError('this is not to be used')"
# after a statement that was to give a module's name away: it may have failed, or an import of the
# instructor's below may have given it back
NO_MODULE = """\
def given_away():
    import sys as given_away  # a module of which no student's cell has changed the kind
    global {0}
    if given_away.__class__ in {0}.__class__.__mro__:
        def {0}(*_, **__): raise RuntimeError('this is not to be used')
given_away()
del given_away"""


def own_script(notebook: Notebook, answers: Mapping[str, str], tests: set[str]) -> Script:
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


def is_run(cell: ScriptCell) -> bool:
    """Whether a cell runs where answers run."""
    return cell.kind != "test" and cell.cell_type == "code" and bool(cell.source.strip())


def batches(
    script: Script, groups: Sequence[Group]
) -> Iterator[tuple[list[str], list[ScriptCell]]]:
    """Cells to run, then the tests that follow them directly; and so on.

    A question's tests stay together, as if they were one: a cell of the student's own between two
    of them runs before the first, and text between them is no cell. A cell of the instructor's
    stays where it is: it may go on where the tests before it have ended.
    """
    number = {test: place for place, group in enumerate(groups) for test in group.tests}
    tests: list[str] = []
    cells: list[ScriptCell] = []  # before these tests
    after: list[ScriptCell] = []
    for cell in script.cells:
        if cell.kind != "test":
            if cell.cell_type == "code":
                after.append(cell)
            continue
        id = cell.grade_id
        parts = tests and number.get(tests[-1]) != number.get(id)
        if after and tests and (parts or any(one.kind != "extra" for one in after)):
            yield tests, cells
            tests, cells = [], []
        cells, after = [*cells, *after], []
        tests.append(id)
    yield tests, cells
    if after:
        yield [], after


@dataclass(frozen=True)
class Lacks:
    """What an answer is run without, to see whether it needs that."""

    out: frozenset[tuple[int, int]] = frozenset()  # statements: the place of a cell, and which
    modules: frozenset[str] = frozenset()
    meant: frozenset[tuple[int, int, str]] = frozenset()  # builtins, up to these statements
    instead: frozenset[tuple[int, int, str]] = frozenset()  # modules, from these statements on


def read_cells(script: Script, lacks: Lacks) -> Iterator[ScriptCell]:
    """A script's cells without some statements, modules and builtins.

    A cell that loses one runs statement by statement: one that needed it stops alone.
    """
    if lacks.modules:
        yield ScriptCell("extra", "", NOT_THERE.format(sorted(lacks.modules)), "code")
    away: dict[str, ScriptCell] = {}
    for place, cell in enumerate(script.cells):
        lost = {number for at, number in lacks.out if at == place}
        meant = [(number, name) for at, number, name in sorted(lacks.meant) if at == place]
        gone = [(number, name) for at, number, name in sorted(lacks.instead) if at == place]
        apart = bool(lost or meant or gone)
        yield replace(cell, source="") if apart else cell
        for number, text in statements(cell.source) if apart else ():
            for name in (name for at, name in meant if at == number):
                yield ScriptCell("extra", "", NOT_PYTHONS.format(name), "code")
            if not lost & {number, ALL}:
                yield ScriptCell("extra", "", text, "code")
            for name in (name for at, name in gone if at == number):
                away[name] = ScriptCell("extra", "", NO_MODULE.format(name), "code")
            yield from away.values()
        if not apart and is_run(cell):
            yield from away.values()


def visible_part(cell: Cell) -> Cell:
    """A test without what is hidden from students."""
    if not cell.hidden:
        return cell
    lines = cell.source.splitlines()[: cell.hidden_from - 1]
    return replace(cell, source="\n".join(lines), hidden=())


@dataclass(frozen=True)
class Questions:
    """One submission's answers beside the notebook's: all that can be told without running them."""

    assignment: Assignment
    notebook: Notebook
    script: Script

    def visible(self, test: str) -> str:
        """What a student sees of a test."""
        return self.notebook.cell(test).stub

    def asked_by(self, test: str) -> tuple[str, ...]:
        """The solution cells that a test asks: of its question, or others that it is about."""
        group = next(group for group in self.notebook.groups if test in group.tests)
        asked = facts(self.notebook.cell(test).source).needed
        makers = {id for id, names in self.notebook.defines.items() if asked.intersection(names)}
        if not self.is_about_others(group, test):
            makers = makers.intersection(group.solutions) or {*group.solutions}
        return tuple(cell.grade_id for cell in self.notebook.cells if cell.grade_id in makers)

    def is_about_others(self, group: Group, test: str) -> bool:
        """Whether a test asks other answers than those that it stands behind, and not these."""
        asked = facts(self.notebook.cell(test).source).needed
        own = self.made_of(self.defined(group))
        others = {name for names in self.notebook.defines.values() for name in names} - own
        return bool(asked & others) and not asked & own

    def defined(self, group: Group) -> set[str]:
        """Names that a question's answer should define."""
        return {name for id in group.solutions for name in self.notebook.defines.get(id, ())}

    def used(self, group: Group) -> set[str]:
        """Names that a question's answer, its reference or its tests use."""
        sources = [self.notebook.cell(id).source for id in (*group.solutions, *group.tests)]
        sources += [self.script.answers.get(id, "") for id in group.solutions]
        return {name for source in sources for name in facts(source).needed} - self.defined(group)

    def made_of(self, names: set[str]) -> set[str]:
        """These names, and those that the instructor's cells make of them."""
        found = set(names)
        for cell in self.notebook.of_kind("readonly", "code"):
            known = facts(cell.source)
            if cell.cell_type == "code" and known.needed & found:
                found |= known.bound | altered(cell.source) - self.notebook.brought
        return found

    def is_own(self, cell: ScriptCell) -> bool:
        """Whether a cell's text is the student's."""
        changed = cell.kind == "skeleton" and cell.source != self.notebook.cells[cell.place].stub
        return cell.kind in ("extra", "answer") or changed

    def is_begun(self, answer: tuple[str, str]) -> bool:
        """Whether an answer, the name of its cell and its text, is not what was handed out."""
        id, text = answer
        return text.split() != self.notebook.cell(id).stub.split()

    def leans(self, group: Group) -> bool:
        """Whether a question uses what the reference may stand in for, as hidden tests decide."""
        cells = {id for g in self.notebook.groups if self._has_hidden(g) for id in g.solutions}
        own = self.defined(group)
        others = {name for id in cells for name in self.notebook.defines.get(id, ())} - own
        return bool(self.used(group) & (self.made_of(others) - self.made_of(own)))

    def _has_hidden(self, group: Group) -> bool:
        return any(self.notebook.cell(test).hidden for test in group.tests)

    def others_matter(self, group: Group) -> bool:
        """Whether the student's other cells may have had a part in how a question ended."""
        others = [cell for cell in self.script.cells if self.is_own(cell)]
        others = [cell for cell in others if cell.grade_id not in group.solutions]
        own = self.defined(group)
        used = self.used(group)
        if used & self.shadowed(group):  # as in an annotation, which no later meaning of it mends
            return True
        takes = {name for names in self.notebook.defines.values() for name in names}
        for cell in others:
            foreign = takes - set(self.notebook.defines.get(cell.grade_id, ()))
            if acts(cell.source) or foreign & touched(cell.source):
                return True
        while more := {
            name
            for cell in [*others, *self.notebook.of_kind("readonly", "code")]
            if facts(cell.source).bound & used
            for name in facts(cell.source).needed - used
        }:
            used |= more
        return bool(used & (takes - own))

    def shadowed(self, group: Group) -> set[str]:
        """Names of Python's or the instructor's that the student's other cells bind or delete."""
        given = [cell.source for cell in self.notebook.of_kind("readonly", "code")]
        known = set(dir(builtins)).union(*(facts(source).bound for source in given))
        others = [cell for cell in self.script.cells if self.is_own(cell)]
        texts = [cell.source for cell in others if cell.grade_id not in group.solutions]
        return known & {name for text in texts for name in touched(text)}

    def usual(self, test: str) -> Iterator[ScriptCell]:
        """Cells after which names mean what a test's question finds: covered ones, missing ones."""
        ids = self.asked_by(test)
        covered = sorted(self.shadowed(Group(ids, (test,))))
        text = "\n".join(UNCOVER.format(name) for name in covered if hasattr(builtins, name))
        yield ScriptCell("skeleton", "", text, "code")
        for cell in self.notebook.of_kind("readonly", "code"):
            if {*covered} & facts(cell.source).bound:
                yield ScriptCell("skeleton", "", cell.stub, "code")
        yield self.imports_of(ids, [test])

    def imports_of(self, ids: Collection[str], tests: Collection[str]) -> ScriptCell:
        """A cell that makes what references import and tests use, where answers lack it."""
        texts = [self.notebook.imports.get(id, "") for id in ids]
        texts += [self.notebook.stars.get(id, "") for id in ids]
        needed = frozenset().union(*(facts(self.visible(test)).needed for test in tests))
        source = imported_where_missing("\n".join(texts), needed)
        return ScriptCell("skeleton", "", source, "code")

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
            return own_script(self.notebook, {}, tests)
        wanted: Collection[str] = group.solutions
        others: dict[str, str] = {}
        if not self.assignment.stand_in:
            wanted = self.needed_by(group)
            others = {cell.grade_id: "" for cell in self.notebook.of_kind("solution", "manual")}
        answers = {id: self.script.answers[id] for id in wanted if id in self.script.answers}
        script = own_script(self.notebook, others | answers, tests)
        brought, cells = self.imports_of(group.solutions, group.tests), list(script.cells)
        for place, cell in reversed(list(enumerate(cells))):
            if cell.grade_id in group.tests:
                cells.insert(place, brought)
        return replace(script, cells=tuple(cells), files=self.script.files)

    def needed_by(self, group: Group) -> set[str]:
        """The solution cells of a question, and those that make names which it uses."""
        found, used = set(group.solutions), self.used(group)
        while (
            more := {id for id, names in self.notebook.defines.items() if used.intersection(names)}
            - found
        ):
            found |= more
            used |= {n for id in more for n in facts(self.script.answers.get(id, "")).needed}
        return found

    def visible_before(self, test: str) -> list[str] | None:
        """Tests whose visible parts give names to this one's; None if a hidden part gives one."""
        order = [cell.grade_id for cell in self.notebook.of_kind("test")]
        group = next(g for g in self.notebook.groups if test in g.tests)
        shared = set(self.notebook.shared_names.get(test, ()))
        needed = facts(visible_part(self.notebook.cell(test)).source).needed
        found: list[str] = []
        for earlier in reversed(order[: order.index(test)]):
            wanted = needed if earlier in group.tests else needed & shared
            given = wanted & facts(self.notebook.cell(earlier).source).bound
            seen = facts(visible_part(self.notebook.cell(earlier)).source)
            if given - seen.bound:
                return None
            if given:
                found.append(earlier)
                needed = (needed - given) | seen.needed
                shared |= set(self.notebook.shared_names.get(earlier, ()))
        return found

    @cached_property
    def needed(self) -> tuple[frozenset[str], frozenset[str]]:
        """Names that the submission's cells use, and that they bind."""
        cells = [facts(cell.source) for cell in self.script.cells if cell.cell_type == "code"]
        needed, bound = [cell.needed for cell in cells], [cell.bound for cell in cells]
        return frozenset[str]().union(*needed), frozenset[str]().union(*bound)

    def maker(self, name: str, test: str) -> str | None:
        """The last test before this one that makes a name."""
        order = [cell.grade_id for cell in self.notebook.of_kind("test")]
        earlier = reversed(order[: order.index(test)])
        return next((one for one in earlier if name in self.bound(one)), None)

    def bound(self, test: str) -> frozenset[str]:
        """Names that a test binds."""
        return facts(self.notebook.cell(test).source).bound

    def before(self, test: str) -> list[str]:
        """The solution cells before a test."""
        cells = self.notebook.of_kind("solution", "test")
        ids = [cell.grade_id for cell in cells[: cells.index(self.notebook.cell(test))]]
        return [id for id in ids if self.notebook.cell(id).kind == "solution"]

    def with_rules(self, group: Group) -> list[str]:
        """The group's questions that forbid something; of the others nothing is read."""
        rules = self.assignment.rules
        return [id for id in group.solutions if rules.for_question(id).forbidden]

    def forbidden_operations(self, group: Group) -> list[str]:
        """Names in the order in which the rules have them."""
        rules = [self.assignment.rules.for_question(id) for id in group.solutions]
        return [*dict.fromkeys(name for rule in rules for name in rule.operations_forbidden)]

    def may_start(self, group: Group) -> bool:
        """Whether the rules of a question let answers start programs or processes."""
        rules = [self.assignment.rules.for_question(id) for id in group.solutions]
        return any(map(leads_to_programs, (name for rule in rules for name in rule.allow)))

    @cached_property
    def modules(self) -> list[str]:
        """The modules that were handed in, as cells that write them."""
        return [
            module_cell(name, content)
            for name, content in self.script.files
            if name.endswith(".py")
        ]

    def texts(
        self, solution: str, more: Sequence[str] = ()
    ) -> tuple[
        tuple[str, QuestionRules, list[str], list[str], Sequence[str], Place | None], list[int]
    ]:
        """What is read to see whether an answer keeps to its rules; and where its cells stand.

        The places are those of the student's other cells, and last that of the answer's own. What
        ran besides, and was not handed in so, is read as `more` cells.
        """
        modules = [*self.modules, *more]
        cells = list(enumerate(self.script.cells))
        others = [(n, c) for n, c in cells if c.grade_id != solution and self.is_own(c)]
        here = [n for n, c in cells if c.grade_id == solution]
        tests = {test for g in self.notebook.groups if solution in g.solutions for test in g.tests}
        tested = [n for n, c in cells if c.kind == "test" and c.grade_id in tests]
        read = (
            self.script.answers.get(solution, ""),
            self.assignment.rules.for_question(solution),
            [*(cell.source for _, cell in others), *modules],
            locked(self.notebook),
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

    def unread(
        self, group: Group, more: Sequence[str] = (), ran: Collection[str] = ()
    ) -> tuple[Lacks, str]:
        """What no answer of the group shows; and in words.

        For `more` see `texts`; `ran` are packages of which all that ran was read.
        """
        found: list[tuple[Lacks, str]] = []
        for solution in self.with_rules(group):
            read, places = self.texts(solution, more)
            if places[-1] >= 0:
                one = unread(*read, ran)
                out = frozenset((places[cell], number) for cell, number in one.statements)
                meant = frozenset((places[cell], number, name) for cell, number, name in one.meant)
                gone = frozenset((places[cell], number, name) for cell, number, name in one.instead)
                found.append((Lacks(out, one.modules, meant, gone), one.words))
        if not found:
            return Lacks(), ""
        outs, modules = zip(*((lacks.out, lacks.modules) for lacks, _ in found), strict=True)
        meant = frozenset[tuple[int, int, str]]().union(*(lacks.meant for lacks, _ in found))
        gone = frozenset[tuple[int, int, str]]().union(*(lacks.instead for lacks, _ in found))
        both = frozenset.intersection
        words = next((words for _, words in found if words), "")
        return Lacks(both(*outs), both(*modules), meant, gone), words

    def asked_of_others(self, group: Group) -> set[str]:
        """Names of other answers that a question's tests use, if its own answer uses none."""
        takes = {name for names in self.notebook.defines.values() for name in names}
        asked = {name for id in group.tests for name in facts(self.notebook.cell(id).source).needed}
        used = {n for id in group.solutions for n in facts(self.script.answers.get(id, "")).needed}
        own = [cell for cell in self.script.cells if self.is_own(cell)]
        while more := {
            name
            for cell in own
            if (facts(cell.source).bound | altered(cell.source)) & used
            for name in facts(cell.source).needed - used
        }:
            used |= more
        others = (asked & takes) - self.made_of(self.defined(group))
        return set() if others & used else others

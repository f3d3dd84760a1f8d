"""What runs of a notebook, and in which order: the student's answers in the instructor's places."""

import ast
import bisect
import hashlib
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

from autograder.common.scopes import facts
from autograder.common.syntax import (
    IMPORTS,
    acts,
    made_by_statement,
    parse,
    top_level_names,
    without_statements,
)
from autograder.common.written import written
from autograder.judge.assignment import Cell, Notebook
from autograder.judge.matching import MAX_PARSED, Match, same
from autograder.judge.odd_cells import Inspection
from autograder.judge.raw_cells import RawCell
from autograder.judge.script import MAX_NOTES, Piece, Script, ScriptCell

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
NOTHING = "pass"  # is run where nothing is left of a cell: the instructor's copy goes with it


def assemble(notebook: Notebook, cells: list[RawCell], notes: list[str]) -> Script:
    """Put the student's answers in the places of the instructor's notebook."""
    match = Match(notebook, cells, notes)
    match.run()
    Inspection(match).tell()
    return Steps(match).script()


class _Giver(NamedTuple):
    """A cell that binds names."""

    place: int  # in or after which it runs
    index: int  # of the cell in the submission, if it stands in no place
    source: str
    is_own: bool = False  # the student's own cell


class Steps:
    """The steps of running a notebook whose cells have their places."""

    def __init__(self, match: Match) -> None:
        """What was odd is in the match."""
        self.match, self.notebook, self.cells = match, match.notebook, match.cells
        self.place, self.notes, self.flags = match.place, match.notes, match.flags
        self._budget_made = MAX_PARSED
        self._steps_read, self._own_names = 0, set[str]()  # see `_made`
        self.steps: list[ScriptCell] = []
        self.pieces: list[Piece] = []
        self.extra: list[tuple[str, str, str]] = []  # see `Script.extra`
        self._last = ""  # the grade_id above

    def script(self) -> Script:
        """The notebook as it will run."""
        after = self._placed_after()
        for_tests = self._needed_by_tests(after)
        places = {index: place for place, index in self.place.items()}
        moved = {places[index] for follows in after.values() for index in follows & places.keys()}
        for place in range(-1, len(self.notebook.cells)):
            if place >= 0:
                self._run_place(place, has_run=place in moved)
            for index in sorted(after.get(place, ())):
                self._run_own(index, places)
            for index in sorted(for_tests.get(place, ())):
                self.steps.append(ScriptCell("extra", "", self.cells[index].source, "code"))
        answers = [(n, cell) for n, cell in enumerate(self.notebook.cells) if cell.answerable]
        return Script(
            name=self.notebook.name,
            cells=tuple(self.steps),
            pieces=tuple(self.pieces),
            missing=tuple(cell.grade_id for n, cell in answers if n not in self.place),
            untouched=tuple(
                cell.grade_id
                for n, cell in answers
                if n in self.place and same(self.cells[self.place[n]].source, cell.stub)
            ),
            damaged=self._damaged(answers),
            extra=tuple(self.extra),
            pictures=self._pictures(),
            notes=tuple(self.notes[:MAX_NOTES]),
            flags=tuple(self.flags[:MAX_NOTES]),
        )

    def _pictures(self) -> str:
        """A digest of all pictures, in whatever cells they are."""
        drawn = sorted(raw.drawn for raw in self.cells if raw.drawn)
        return hashlib.sha256(" ".join(drawn).encode()).hexdigest() if drawn else ""

    def _run_place(self, place: int, *, has_run: bool) -> None:
        """Add what runs in one of the notebook's places."""
        cell = self.notebook.cells[place]
        step = self._step(place, cell, self.steps)
        if imports := self._imported_first(cell, step):
            self.steps.append(ScriptCell("extra", "", imports, "code"))
        self._last = cell.grade_id or self._last
        if step.kind == "answer":
            self.pieces.append(Piece(cell.grade_id, step.source, cell.cell_type))
        elif place in self.place and step.source != cell.stub and not cell.grade_id:
            self.extra.append((self._last, step.cell_type, step.source))
        self.extra += self._written_over(place, cell)
        self.steps += self._in_its_place(step) if has_run else [step]
        if added := self._added(place, cell):
            self.steps.append(ScriptCell("extra", "", added, "code"))
            self.extra.append((self._last, "code", added))

    def _run_own(self, index: int, places: Mapping[int, int]) -> None:
        """Add a cell that runs below its neighbour: the student's own, or one that was moved."""
        if index in places:
            self.steps.append(self._early(places[index]))
            return
        raw = self.cells[index]
        kind = raw.cell_type if raw.cell_type in ("code", "raw") else "markdown"
        self.steps.append(ScriptCell("extra", "", raw.source, kind))
        self.extra.append((self._last, kind, raw.source))

    def _written_over(self, place: int, cell: Cell) -> list[tuple[str, str, str]]:
        """What was written into a locked text instead of below it; a person may want to see it."""
        text = self.cells[self.place[place]].source if place in self.place else ""
        is_text = cell.kind == "task" or cell.cell_type == "markdown"
        lost = is_text and cell.locked and text and not same(text, cell.stub)
        return [(cell.grade_id, "markdown", text)] if lost else []

    def _added(self, place: int, cell: Cell) -> str:
        """What a student wrote into a cell that was to be left alone and answers may need.

        These are imports and helpers; nothing that takes a name from the cell or from an answer.
        """
        index = self.place.get(place)
        if index is None or cell.answerable or not cell.grade_id or cell.cell_type != "code":
            return ""
        source = self.cells[index].source
        if same(source, cell.stub) or self.match.names_in(index) is None:
            return ""
        theirs, given = (parse(text) or ast.Module([], []) for text in (source, cell.source))
        known = {written(node) for node in given.body if isinstance(node, IMPORTS)}
        names = top_level_names(given).union(*self.notebook.defines.values())
        added = [
            written(node)
            for node in theirs.body
            if isinstance(node, IMPORTS)
            or (isinstance(node, DEFINITIONS) and node.name not in names)
        ]
        return "\n".join(text for text in added if text not in known)

    def _damaged(self, answers: list[tuple[int, Cell]]) -> dict[str, str]:
        found = {}
        for place, cell in answers:
            damage = self.cells[self.place[place]].damage if place in self.place else ""
            if damage:
                found[cell.grade_id] = f"the cell {cell.grade_id} cannot be read: {damage}"
        return found

    def _step(self, place: int, cell: Cell, before: Sequence[ScriptCell]) -> ScriptCell:
        """What runs in a place, after the steps before it."""
        index = self.place.get(place)
        if cell.kind == "test":
            return ScriptCell("test", cell.grade_id, "", cell.cell_type, place)
        if cell.answerable:
            source = self.cells[index].source if index is not None else ""
            return ScriptCell("answer", cell.grade_id, source, cell.cell_type, place)
        is_missing = index is None or not _is_begun(self.cells[index])
        if is_missing and not cell.grade_id and cell.cell_type == "code":
            source = without_statements(cell.stub, self._made(before)) or NOTHING
            return ScriptCell("skeleton", "", source, "code", place)
        if cell.grade_id or index is None or self.cells[index].damage:
            return ScriptCell("skeleton", cell.grade_id, cell.stub, cell.cell_type, place)
        raw = self.cells[index]  # of which a student may have made code
        kind = raw.cell_type if raw.cell_type in ("code", "raw") else "markdown"
        return ScriptCell("skeleton", "", raw.source, kind, place)

    def _imported_first(self, cell: Cell, step: ScriptCell) -> str:
        """What a changed ordinary cell of the instructor's was to import, should it fail."""
        is_changed = step.kind == "skeleton" and not cell.grade_id and step.cell_type == "code"
        if not is_changed or step.source in (cell.stub, NOTHING):
            return ""
        due = [written(node) for node in _body(cell.stub) if isinstance(node, IMPORTS)]
        theirs = map(written, _body(step.source))
        head = {*itertools.takewhile(due.__contains__, theirs)}  # nothing can fail before these
        left = (one for one in due if one not in head and not one.startswith("from __future__"))
        return without_statements("\n".join(left), self._made(self.steps))

    def _made(self, steps: Sequence[ScriptCell]) -> set[str]:
        """Names that the student's own text in these steps binds, or of whose values it sets parts.

        What the instructor's cells say is nobody's own, and neither are their imports elsewhere.
        Each call gets the steps of the last one and those that have come since.
        """
        for step in steps[self._steps_read :]:
            given = self.notebook.cells[step.place].stub if step.place >= 0 else ""
            if step.kind == "test" or step.cell_type != "code" or step.source == given:
                continue
            self._budget_made -= len(step.source)
            if self._budget_made < 0:
                break
            known = {one.text for one in made_by_statement(given)} | self._imports
            for one in made_by_statement(step.source):
                self._own_names |= one.names if one.text not in known else set()
        self._steps_read = len(steps)
        return self._own_names

    @cached_property
    def _imports(self) -> set[str]:
        """The imports of the instructor's cells."""
        cells = (cell for cell in self.notebook.cells if cell.cell_type == "code")
        found = (one for cell in cells for one in made_by_statement(cell.stub))
        return {one.text for one in found if one.is_import}

    def _early(self, place: int) -> ScriptCell:
        """A cell that has a place and runs before it; tests need the instructor's in its place."""
        cell = self.notebook.cells[place]
        step = self._step(place, cell, ())
        return step if step.kind == "answer" else ScriptCell("extra", "", step.source, "code")

    def _in_its_place(self, step: ScriptCell) -> list[ScriptCell]:
        """What is left to run of a step in its own place, when it has run before."""
        if step.kind == "answer":
            return []
        return [step if step.grade_id else replace(step, source=NOTHING)]

    def _placed_after(self) -> dict[int, set[int]]:
        """Place -> cells of the submission that run after it, besides the one in the next place.

        These are the student's own ones, after the matched cell above them. Where sections were put
        in another order, what a cell needs of those above it runs before that cell.
        """
        order = sorted((index, place) for place, index in self.place.items())
        rows = [index for index, _ in order]
        found: dict[int, int] = {}
        for index, raw in enumerate(self.cells):
            if index in self.match.taken or not raw.source.strip():
                continue
            above = bisect.bisect_left(rows, index)
            found[index] = order[above - 1][1] if above else -1
        if any(one > other for (_, one), (_, other) in itertools.pairwise(order)):
            found |= self._needed_earlier(found)
        after: dict[int, set[int]] = {}
        for index, place in found.items():
            after.setdefault(place, set()).add(index)
        return after

    def _needed_earlier(self, own: dict[int, int]) -> dict[int, int]:
        """Cell -> place after which it has to run, for those that others below them need earlier.

        Args:
            own: the same for the student's own cells by where they stand.
        """
        places = {index: place for place, index in self.place.items()}
        until: dict[str, int] = {}  # by name: the place after which a cell below needs it
        found: dict[int, int] = {}
        budget = MAX_PARSED
        for index in sorted(own.keys() | places.keys(), reverse=True):
            kind, source = self._runs_as(index, places)
            budget -= len(source)
            if kind != "code" or budget < 0:
                continue
            known = facts(source)
            usual = own[index] if index in own else places[index] - 1
            needed = [until[name] for name in known.bound & until.keys()]
            place = min([usual, *needed])
            if place < usual or (index in places and place in needed):  # cells after it come first
                found[index] = place
            for name in known.bound:
                until.pop(name, None)
            for name in known.needed:
                until[name] = min(place, until.get(name, place))
        return found

    def _needed_by_tests(self, after: dict[int, set[int]]) -> dict[int, set[int]]:
        """Place -> own cells that run after it as well, since what is tested next calls them.

        They may stand below an answer if the student's copy of the test stands below them, too, or
        was deleted. Only cells that do nothing but define are run twice.

        Args:
            after: the student's own cells by the place after which they run.
        """
        tests = [n for n, cell in enumerate(self.notebook.cells) if cell.kind == "test"]
        stands = [self.place.get(n, len(self.cells)) for n in tests]
        lowest = list(itertools.accumulate(stands, max))  # of the tests up to each
        runs = ((bisect.bisect_right(tests, place), min(own)) for place, own in after.items())
        if not any(until and first < lowest[until - 1] for until, first in runs):
            return {}  # no test stands below a cell and runs before it
        givers = self._givers(after)
        found: dict[int, set[int]] = {}
        for test, row in zip(tests, stands, strict=True):
            todo, seen = [*facts(self.notebook.cells[test].source).needed], set[str]()
            while todo:
                if (name := todo.pop()) in seen:
                    continue
                seen.add(name)
                known = givers.get(name, [])[::-1]
                giver = next((one for one in known if one.place < test), None)
                if giver is None:
                    giver = next((one for one in known if one.is_own and one.index < row), None)
                    if giver is None or acts(giver.source):
                        continue
                    found.setdefault(test - 1, set()).add(giver.index)
                todo += facts(giver.source).needed
        return found

    def _givers(self, after: dict[int, set[int]]) -> dict[str, list["_Giver"]]:
        """Name -> cells that bind it, in the order in which they run."""
        places = {index: place for place, index in self.place.items()}
        runs: list[_Giver] = []
        for place in range(-1, len(self.notebook.cells)):
            if place >= 0 and self.notebook.cells[place].kind != "test":
                step = self._step(place, self.notebook.cells[place], ())
                runs += [_Giver(place, -1, step.source)] * (step.cell_type == "code")
            for index in sorted(after.get(place, ())):
                kind, source = self._runs_as(index, places)
                runs += [_Giver(place, index, source, index not in places)] * (kind == "code")
        found: dict[str, list[_Giver]] = {}
        budget = MAX_PARSED
        for giver in runs:
            budget -= len(giver.source)
            for name in facts(giver.source).bound if budget >= 0 else ():
                found.setdefault(name, []).append(giver)
        return found

    def _runs_as(self, index: int, places: dict[int, int]) -> tuple[str, str]:
        """The kind and text of what the student's process runs for a cell of the submission."""
        if index in places:
            step = self._step(places[index], self.notebook.cells[places[index]], ())
            return step.cell_type if step.kind != "test" else "test", step.source
        return self.cells[index].cell_type, self.cells[index].source


def _is_begun(raw: RawCell) -> bool:
    """Whether anything is left in a cell that runs: neither text, nor emptied or commented out."""
    lines = (line.strip() for line in raw.source.splitlines())
    return raw.cell_type == "code" and any(line and not line.startswith("#") for line in lines)


def _body(source: str) -> list[ast.stmt]:
    """The statements of a cell; none of what cannot be read."""
    tree = parse(source)
    return tree.body if tree else []

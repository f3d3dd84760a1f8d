"""Which of a student's cells belongs in which place of the instructor's notebook."""

import itertools
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache

from autograder.common.results import Flag
from autograder.common.scopes import facts
from autograder.common.syntax import parse, top_level_names
from autograder.judge.assignment import Cell, Notebook, checksum_of
from autograder.judge.raw_cells import RawCell

MAX_PARSED = 400_000  # characters of a notebook that are read as Python to match its cells
ALIKE = 0.8  # of its words that a changed test or locked cell shares with the one handed out


class Match:
    """Which of the student's cells belongs in which place of the instructor's notebook."""

    def __init__(self, notebook: Notebook, cells: list[RawCell], notes: list[str]) -> None:
        self.notebook = notebook
        self.cells = cells
        self.notes = notes
        self.flags: list[Flag] = []
        self.place: dict[int, int] = {}  # index in the notebook -> index in the submission
        self.taken: set[int] = set()  # cells of the submission that do not run as extra ones
        self._names: dict[int, set[str] | None] = {}
        self._budget = MAX_PARSED
        self.ids = {cell.grade_id for cell in notebook.cells if cell.grade_id}
        self._handed_out = _words(tuple(cell.stub for cell in notebook.cells))

    def run(self) -> None:
        """Match by grade_id, then by the format's id, then by definitions, then by position."""
        known = [(n, cell) for n, cell in enumerate(self.notebook.cells) if cell.grade_id]
        for place, cell in known:
            self._by_grade_id(place, cell)
        self._put_right([(n, cell) for n, cell in known if cell.kind == "solution"])
        self._by_format_id()
        for place, cell in known:
            if cell.kind in ("solution", "manual"):
                self._by_definition(place, cell)
        self._by_text()
        self._by_position()
        self._leave_out_older()

    def _by_format_id(self) -> None:
        """Cells that lost their marks and kept the id that the notebook's format gives them.

        An editor may give ids anew, and to other cells: what an answer's cell defines says more.
        """
        by_id: dict[str, int] = {}
        for index in self._unmarked():
            if self.cells[index].id:
                by_id.setdefault(self.cells[index].id, index)
        pairs = [
            (place, cell, by_id[cell.id])
            for place, cell in enumerate(self.notebook.cells)
            if place not in self.place and cell.id in by_id
        ]
        answers = [pair for pair in pairs if pair[1].kind == "solution" and self._wanted(pair[1])]
        for place, cell, index in answers:
            if self._defines(index, cell):
                self._take(place, index)
        for place, cell, _ in answers:
            if place not in self.place:
                self._by_definition(place, cell)
        for place, cell, index in pairs:
            is_free = place not in self.place and index not in self.taken
            if is_free and self._may_be(index, cell) and not self._is_anothers(index, cell):
                self._take(place, index)

    def _unmarked(self) -> list[int]:
        """Cells that are in no place yet and carry none of the notebook's marks."""
        every = enumerate(self.cells)
        return [n for n, raw in every if n not in self.taken and raw.grade_id not in self.ids]

    def _is_anothers(self, index: int, cell: Cell) -> bool:
        """Whether a cell holds, word for word, what was handed out in another place than this."""
        words = tuple(self.cells[index].source.split())
        return words in self._handed_out and words != tuple(cell.stub.split())

    def _defines(self, index: int, cell: Cell) -> int:
        """How many of the names that an answer should define this cell defines."""
        source = self.cells[index].source
        wanted = [name for name in self._wanted(cell) if name in source]
        return len((self.names_in(index) or set()).intersection(wanted)) if wanted else 0

    def names_in(self, index: int) -> set[str] | None:
        """Names that a cell defines; None if it is no Python, or there is too much to read."""
        if index not in self._names:
            self._budget -= len(self.cells[index].source)
            self._names[index] = _names_of(self.cells[index]) if self._budget >= 0 else None
        return self._names[index]

    def _needs(self, index: int) -> frozenset[str]:
        """Names that a cell reads and does not define first, as far as it may be read."""
        known = self.names_in(index) is not None
        return facts(self.cells[index].source).needed if known else frozenset()

    def _wanted(self, cell: Cell) -> tuple[str, ...]:
        return self.notebook.defines.get(cell.grade_id, ())

    def is_marked(self, place: int) -> bool:
        """Whether the cell in this place carries the grade_id of the place."""
        cell = self.notebook.cells[place]
        return self.cells[self.place[place]].grade_id == cell.grade_id

    def _take(self, place: int, index: int) -> None:
        self.place[place] = index
        self.taken.add(index)

    def flag(self, cell: Cell, words: str) -> None:
        """Tell the instructor of a cell."""
        self.flags.append(Flag("tampering", f"{self.notebook.name}/{cell.grade_id}", words))

    def _by_grade_id(self, place: int, cell: Cell) -> None:
        copies = [n for n, raw in enumerate(self.cells) if raw.grade_id == cell.grade_id]
        if not copies:
            return
        best = copies[0]
        if len(copies) > 1:  # ranking reads them all, which takes its time
            rank = self._rank if cell.answerable else self._rank_given
            best = max(copies, key=lambda index: rank(cell, index))
        self._take(place, best)
        if len(copies) == 1:
            return
        self.flag(cell, f"The cell {cell.grade_id} is there {len(copies)} times.")
        if cell.answerable:
            which = copies.index(best) + 1
            self.notes.append(
                f"The cell {cell.grade_id} is there {len(copies)} times; number {which} was graded."
            )
        parts = self._parts(copies, best, cell) if cell.answerable else set(copies)
        for index in copies:
            if index not in parts or same(self.cells[index].source, cell.stub):
                self.taken.add(index)

    def _parts(self, copies: Sequence[int], best: int, cell: Cell) -> set[int]:
        """Copies that are no other answer, but scratch work or another part of this one.

        Such is also what a part below needs of an older answer, whatever stands between them.
        """
        wanted = set(self._wanted(cell))
        found = {best}
        needed: frozenset[str] = frozenset()
        for index in reversed(copies):
            mine = self.names_in(index) or set()
            if mine & needed or self._is_half(index, best, wanted):
                found.add(index)
            if index in found:
                needed = needed - mine | self._needs(index)
        return found

    def _is_half(self, index: int, best: int, wanted: set[str]) -> bool:
        """Whether a copy gives nothing that the best one gives, or goes on with what that gives.

        Both may bind a name then, as in two steps to one value.
        """
        mine, others = (self.names_in(n) or set() for n in (index, best))
        if not wanted & mine & others:
            return True
        if index > best and self._needs(index) & others:
            return True
        first, second = (mine, others) if index < best else (others, mine)
        return bool(wanted & first - second) and bool(wanted - first)

    def _put_right(self, solutions: list[tuple[int, Cell]]) -> None:
        """Answers under each other's grade_id go where the names that they define belong."""
        wrong = [
            (place, cell)
            for place, cell in solutions
            if place in self.place
            and self._wanted(cell)
            and not self._defines(self.place[place], cell)
        ]
        better = {
            place: next(
                (self.place[n] for n, _ in wrong if self._defines(self.place[n], cell)),
                self.place[place],
            )
            for place, cell in wrong
        }
        before = {self.place[place] for place in better}
        self.place.update(better)
        self.taken -= before - set(self.place.values())  # what answers nothing runs where it stands

    def _rank(self, cell: Cell, index: int) -> tuple:
        """How good a copy is: readable, changed, Python, of the right kind, then the last."""
        raw = self.cells[index]
        changed = not raw.damage and bool(raw.source.strip()) and not same(raw.source, cell.stub)
        code = cell.cell_type == "code"
        return (
            changed,
            not code or self.names_in(index) is not None,
            self._defines(index, cell),
            raw.cell_type == cell.cell_type,
            index,
        )

    def _rank_given(self, cell: Cell, index: int) -> tuple:
        """How near a copy is to what was handed out and is not to be changed; then the last."""
        return self._is_given(index, cell), _likeness(self.cells[index].source, cell.stub), index

    def _is_given(self, index: int, cell: Cell) -> bool:
        """Whether a cell is this one of the instructor's, give or take a few words.

        One that binds names of its own is the student's work, which has to run.
        """
        if same(self.cells[index].source, cell.stub):
            return True
        own = (self.names_in(index) or set()) - self._names_given(cell)
        return not own and _likeness(self.cells[index].source, cell.stub) >= ALIKE

    def _may_be(self, index: int, cell: Cell) -> bool:
        """Whether a cell without marks may stand for this one: whatever is not run must be it."""
        is_own = cell.answerable or not cell.grade_id
        return is_own or self._is_given(index, cell)

    def _names_given(self, cell: Cell) -> set[str]:
        tree = parse(cell.stub) if cell.cell_type == "code" else None
        return top_level_names(tree) if tree else set()

    def _by_definition(self, place: int, cell: Cell) -> None:
        """An answer written in a cell of its own, found by the names that it defines."""
        held = self.place.get(place)
        if held is not None and not same(self.cells[held].source, cell.stub):
            return
        found = [index for index in self._unmarked() if self._defines(index, cell)]
        if not found:
            return
        best = max(
            found, key=lambda n: (self.cells[n].cell_type == "code", self._defines(n, cell), n)
        )
        self._take(place, best)
        self.notes.append(
            f"The answer to {cell.grade_id} was found in another cell, by the names it defines."
        )

    def _by_text(self) -> None:
        """Ordinary cells that were left as they are."""
        free: dict[tuple[str, ...], list[int]] = {}
        for index, raw in enumerate(self.cells):
            if index not in self.taken:
                free.setdefault((raw.cell_type, *raw.source.split()), []).append(index)
        for place, cell in enumerate(self.notebook.cells):
            same = free.get((cell.cell_type, *cell.stub.split()), [])
            if place not in self.place and same:
                self._take(place, same.pop(0))

    def _by_position(self) -> None:
        """Cells between two matched ones, when as many are left here as there."""
        total = len(self.notebook.cells)
        anchors = [(-1, -1), *sorted(self.place.items()), (total, len(self.cells))]
        for (before, first), (after, last) in itertools.pairwise(anchors):
            places = range(before + 1, after)
            free = [index for index in range(first + 1, last) if index not in self.taken]
            if not places or len(free) != len(places):
                continue
            for place, index in zip(places, free, strict=True):
                cell, raw = self.notebook.cells[place], self.cells[index]
                free_to_go = cell.cell_type == raw.cell_type and raw.grade_id not in self.ids
                if free_to_go and self._may_be(index, cell):
                    self._take(place, index)

    def _leave_out_older(self) -> None:
        """Tests and texts of an older release, as handed out: they are nobody's own work.

        Whoever forges one has a cell of his own that does not run. Other code runs as it did: an
        answer may need it.
        """
        for index, raw in enumerate(self.cells):
            is_other = raw.grade_id and raw.grade_id not in self.ids and index not in self.taken
            is_test = raw.marks.get("grade") is True and not raw.marks.get("solution")
            if is_other and (is_test or raw.cell_type != "code") and is_of_a_release(raw):
                self.taken.add(index)


@lru_cache(maxsize=64)
def _words(texts: tuple[str, ...]) -> set[tuple[str, ...]]:
    """The words of each text that has any."""
    return {tuple(text.split()) for text in texts} - {()}


def same(one: str, other: str) -> bool:
    """Whether two texts differ in nothing but white space."""
    return one.split() == other.split()


def _likeness(one: str, other: str) -> float:
    """The share of two texts' words that they have in common; 1 if they are the same words."""
    first, second = Counter(one.split()), Counter(other.split())
    return 2 * (first & second).total() / max(1, first.total() + second.total())


def _names_of(raw: RawCell) -> set[str] | None:
    """Names that a cell defines; None if it is no Python."""
    if raw.cell_type == "markdown" and not raw.grade_id:
        return None
    tree = parse(raw.source)
    return top_level_names(tree) if tree else None


def is_of_a_release(raw: RawCell) -> bool:
    """Whether the checksum in a cell's marks is that of its text."""
    with suppress(KeyError, TypeError, ValueError, OverflowError):
        same = raw.marks.get("checksum") == checksum_of(raw.source, raw.cell_type, raw.marks)
        return same and is_known_schema(raw.marks)
    return False


def is_known_schema(marks: dict) -> bool:
    """Whether marks are of a form that nbgrader has had."""
    return marks.get("schema_version", 3) in (1, 2, 3)

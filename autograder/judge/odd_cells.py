"""What in a submission's cells nobody makes by writing an answer: told in notes and flags.

Nothing of it costs a point: what was changed is graded as it was handed out.
"""

from urllib.parse import quote

from autograder.common.names import shown
from autograder.common.results import Flag
from autograder.judge.assignment import Cell
from autograder.judge.matching import Match, is_known_schema, is_of_a_release, same
from autograder.judge.raw_cells import RawCell


class Inspection:
    """Looks through the cells of a submission that have their places."""

    def __init__(self, match: Match) -> None:
        """What is found is added to the notes and flags of the match."""
        self.match, self.notebook, self.cells = match, match.notebook, match.cells
        self.place, self.notes, self.flags = match.place, match.notes, match.flags
        self.deleted: list[Cell] = []  # tests and locked cells that are not there

    def tell(self) -> None:
        """Note and flag what is odd, in the order of the notebook."""
        known = [(n, cell) for n, cell in enumerate(self.notebook.cells) if cell.grade_id]
        for place, cell in known:
            self._inspect(place, cell)
        self._tell_deleted()
        for index, raw in enumerate(self.cells):
            if index not in self.match.taken:
                self.notes += _left_out(f"Cell {index + 1}", raw)
        stripped = [cell for n, cell in known if n in self.place and self._is_stripped(n, cell)]
        if stripped:
            self.match.flag(stripped[0], f"{len(stripped)} cells had lost their grading marks.")

    def _is_stripped(self, place: int, cell: Cell) -> bool:
        """Whether a cell has lost its marks; one that was handed out with other marks has not."""
        raw = self.cells[self.place[place]]
        if self.match.is_marked(place):
            return False
        has_others = bool(raw.grade_id) and raw.grade_id not in self.match.ids
        return not (has_others and _is_as_handed_out(raw, cell))

    def _tell_deleted(self) -> None:
        if not self.deleted:
            return
        first, count = self.deleted[0], len(self.deleted)
        others = f" and {count - 1} more" if count > 1 else ""
        self.match.flag(first, f"The locked cell {first.grade_id}{others} had been deleted.")
        self.notes.append(f"Locked cells were missing and were put back: {first.grade_id}{others}.")

    def _inspect(self, place: int, cell: Cell) -> None:
        """Look for changes that nobody makes by writing an answer."""
        index = self.place.get(place)
        if index is None:
            if not cell.answerable:
                self.deleted.append(cell)
            return
        raw = self.cells[index]
        earlier = raw.grade_id == cell.grade_id and _is_as_handed_out(raw, cell)
        for words in _left_out(f"The cell {cell.grade_id}", raw, cell) if cell.answerable else ():
            self.notes.append(words)
            self.flags.append(Flag("file", f"{self.notebook.name}/{cell.grade_id}", words))
        if not cell.answerable and not same(raw.source, cell.stub):
            what = "test" if cell.kind == "test" else "locked cell"
            if earlier:
                self.notes.append(
                    f"The {what} {cell.grade_id} has changed since this was handed out; it was "
                    "graded as it is today."
                )
            else:
                self.match.flag(cell, f"The {what} {cell.grade_id} was changed.")
                self.notes.append(
                    f"The {what} {cell.grade_id} was changed; it was graded as it was handed out."
                )
        if "skip-execution" in raw.tags:
            self.match.flag(cell, f"The cell {cell.grade_id} is marked to be skipped.")
        marked = raw.grade_id == cell.grade_id and not earlier
        if marked and _forged(raw.marks, cell.metadata["nbgrader"]):
            self.match.flag(cell, f"The grading marks of {cell.grade_id} were changed.")
        if cell.answerable and raw.cell_type != cell.cell_type:
            self.notes.append(
                f"The cell {cell.grade_id} had become {shown(raw.cell_type)}; it was graded as "
                f"{cell.cell_type}."
            )


def _left_out(name: str, raw: RawCell, cell: Cell | None = None) -> list[str]:
    """What a student and the person who grades should know of a cell, in sentences.

    Args:
        name: what the cell is called.
        raw: the cell.
        cell: the instructor's, whose own pictures nobody misses.
    """
    if raw.damage:
        return [f"{name} was left out: {raw.damage}."]
    found = [f"{name}: {raw.cut}."] if raw.cut else []
    given = cell.stub if cell else ""
    pictures = [one for one in raw.pictures if one not in given and quote(one) not in given]
    if pictures:
        more = f" and {len(pictures) - 3} more" if len(pictures) > 3 else ""
        names = ", ".join(map(shown, pictures[:3]))
        words = f"{name}: pasted pictures are only in the notebook that was handed in, not in the "
        found.append(f"{words}graded one ({names}{more}).")
    return found


def _is_as_handed_out(raw: RawCell, cell: Cell) -> bool:
    """Whether a cell is what some release held, by the checksum that nbgrader put into its marks.

    Of an answer nobody knows what it was; if that was what it is today, the marks can be told.
    Whoever knows nbgrader computes the same: it settles what is said, and never a point.
    """
    if cell.answerable:
        raw = raw._replace(source=cell.stub, cell_type=cell.cell_type)
    return is_of_a_release(raw)


def _forged(marks: dict, true: dict) -> bool:
    """Whether the grading marks say something else than those handed out."""
    for key in ("grade", "solution", "locked", "task"):
        if marks.get(key, false := bool(true.get(key))) is not false:
            return True
    points, given = marks.get("points", true.get("points")), true.get("points")
    if isinstance(points, bool) or not isinstance(points, int | float | None):
        return True
    if points != given and given is not None:
        return True
    return not is_known_schema(marks)

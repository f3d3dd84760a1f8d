"""What is handed over to grading: a submission as the cells to run, notes and flags."""

from dataclasses import dataclass, field
from typing import Literal

from autograder.common.results import Flag

MAX_NOTES = 50


@dataclass(frozen=True)
class Piece:
    """What stands in a place for an answer."""

    grade_id: str
    source: str
    cell_type: str


@dataclass(frozen=True)
class ScriptCell:
    """One step of running a submission."""

    kind: Literal["answer", "extra", "skeleton", "test"]
    grade_id: str
    source: str  # empty for a test: tests never come near the student's process
    cell_type: str
    place: int = -1  # of the instructor's cell in its notebook; -1 for one of the student's own


@dataclass(frozen=True)
class Script:
    """A notebook of the submission, put together from the instructor's and the student's cells."""

    name: str
    cells: tuple[ScriptCell, ...] = ()
    pieces: tuple[Piece, ...] = ()
    missing: tuple[str, ...] = ()  # answers that could not be found
    untouched: tuple[str, ...] = ()  # answers that are as they were handed out
    damaged: dict[str, str] = field(default_factory=dict)  # answer -> why it cannot be read
    extra: tuple[tuple[str, str, str], ...] = ()  # (grade_id it follows, cell type, source)
    pictures: str = ""  # see `NotebookResult`
    notes: tuple[str, ...] = ()
    flags: tuple[Flag, ...] = ()
    reason: str = ""  # why this notebook is 0
    files: tuple[tuple[str, bytes], ...] = ()  # that lie in its folder when it runs

    @property
    def answers(self) -> dict[str, str]:
        """grade_id -> source, for every place of an answer."""
        return {piece.grade_id: piece.source for piece in self.pieces}


@dataclass(frozen=True)
class Submission:
    """One student's work on one assignment."""

    student: str
    assignment: str
    key: str  # sha256 of everything here and of the assignment that the grade depends on
    scripts: tuple[Script, ...] = ()
    reason: str = ""  # why the whole submission is 0
    notes: tuple[str, ...] = ()
    flags: tuple[Flag, ...] = ()
    collected: float | None = None  # see `parcel.Parcel`

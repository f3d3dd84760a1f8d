"""What a report on a class says: students, questions, tests, mistakes, who needs a look."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from autograder.classroom.counted import Points

KINDS = {  # in the order of the page
    "gone": "Left out of this report",
    "stray": "Work that fits no assignment",
    "ungraded": "Graded 0 as a whole",
    "test-error": "Tests that are broken themselves",
    "tampering": "Tampering",
    "forbidden": "Calls that are not allowed",
    "unsure": "Fails between two processes only",
    "similar": "Near-identical answers",
    "timeout": "Took too long",
    "died": "Process ended",
    "late": "Nobody knows whether it was late",
    "file": "Odd files and folders",
}


@dataclass(frozen=True)
class Score:
    """One student's points in one chapter."""

    auto: float  # points of the tests; a person's word on one counts before its own
    auto_max: float
    written: float  # points given by hand so far
    waiting: int  # answers still to be graded by hand
    points: Points  # all of it, less what lateness costs
    most: float  # of all points
    graded: bool  # whether anything was

    @property
    def share(self) -> float:
        """Part of the autograded points that was earned, 0 to 1."""
        return self.auto / self.auto_max if self.auto_max else 0.0


@dataclass(frozen=True)
class Row:
    """One student in the report."""

    student: str  # the name as it can be read
    scores: dict[str, Score]  # by chapter
    wrong: tuple[str, ...]  # what went wrong, one sentence each
    folder: str = ""  # the name of the student's folders, if it is another one

    @property
    def total(self) -> float:
        """Points of all chapters, as they count."""
        return sum(score.points.counts for score in self.scores.values())

    @property
    def total_lost(self) -> float:
        """Points of all chapters that lateness takes off."""
        return sum(score.points.given - score.points.counts for score in self.scores.values())

    @property
    def share(self) -> float:
        """Part of all autograded points that was earned, 0 to 1."""
        most = sum(score.auto_max for score in self.scores.values())
        return sum(score.auto for score in self.scores.values()) / most if most else 0.0


@dataclass(frozen=True)
class Question:
    """The tests that stand under one heading of a notebook."""

    chapter: str
    notebook: str
    label: str  # "3.2", or the heading itself
    title: str
    tests: tuple[str, ...]
    points: float  # of its tests


@dataclass(frozen=True)
class Item:
    """One test, or one question's tests together, over all submissions that could be run."""

    chapter: str
    question: str
    test: str  # empty for a question
    points: float
    share: float  # of the points that were earned
    passed: int
    graded: int
    unanswered: int
    discrimination: float | None  # correlation with the rest of the chapter; None if unknown
    said: tuple[tuple[str, int], ...] = ()  # the most frequent failures and how often


@dataclass(frozen=True)
class Mistake:
    """A known misconception and how many gave an answer that agrees with it."""

    chapter: str
    id: str
    name: str
    tests: tuple[str, ...]
    students: int
    read: str  # "page#label" in the book
    link: str  # to it, if the book is built


@dataclass(frozen=True)
class Look:
    """Something a person should look at."""

    kind: str  # a key of KINDS
    student: str
    where: str
    words: str


@dataclass(frozen=True)
class Times:
    """How long grading took, in seconds."""

    total: float
    median: float
    slowest: tuple[tuple[float, str, str], ...]  # seconds, student, chapter


@dataclass(frozen=True)
class Report:
    """All that the page and the CSV files say."""

    chapters: tuple[str, ...]
    rows: tuple[Row, ...]
    questions: tuple[Question, ...]
    shares: dict[tuple[str, str], tuple[float | None, ...]]  # (student, chapter) -> by question
    items: tuple[Item, ...]
    mistakes: tuple[Mistake, ...]
    looks: tuple[Look, ...]
    times: Times
    notebooks: dict[str, tuple[str, ...]]  # names, by chapter
    titles: Mapping[str, str] = field(default_factory=dict)  # in words, by chapter
    graded: int = 0  # submissions
    feedback: Path = Path("feedback")  # the students' pages


def short_names(chapters: Iterable[str]) -> dict[str, str]:
    """What each is called where room is short: 03 of 03_name, if no other begins so."""
    heads = {chapter: chapter.partition("_")[0] for chapter in chapters}
    known = Counter(heads.values())
    return {chapter: head if known[head] == 1 else chapter for chapter, head in heads.items()}


def one_line(text: str, longest: int) -> str:
    """A text on one line, cut where it is too long."""
    line = " ".join(text.split())
    return line if len(line) <= longest else line[: longest - 1].rstrip() + "…"

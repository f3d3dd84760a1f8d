"""Report on a class: a table for the terminal, grades.csv, and one static HTML page."""

import csv
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nbgrader.api import Gradebook, MissingEntry

from autograder.grade import Class, Result, read_journal
from autograder.pages import page
from autograder.source import Source, read_source

WIDEST = 60  # characters of "what went wrong" in the terminal


@dataclass(frozen=True)
class Score:
    """One student's points in one chapter."""

    auto: float
    auto_max: float
    written: float  # points given by hand so far
    waiting: int  # answers still to be graded by hand

    @property
    def share(self) -> float:
        """Part of the autograded points that was earned, 0 to 1."""
        return self.auto / self.auto_max if self.auto_max else 0.0


@dataclass(frozen=True)
class Row:
    """One student in the report."""

    student: str
    scores: dict[str, Score]  # by chapter
    wrong: tuple[str, ...]  # what went wrong, one sentence each

    @property
    def total(self) -> float:
        """Autograded points of all chapters."""
        return sum(score.auto for score in self.scores.values())


@dataclass(frozen=True)
class Item:
    """One test over the whole class."""

    chapter: str
    question: str
    test: str
    points: int
    passed: int
    graded: int
    said: tuple[tuple[str, int], ...]  # the most frequent failures and how often


def rows(taught: Class, chapters: Sequence[str]) -> list[Row]:
    """One row for each student with a submission, in alphabetical order."""
    journal = read_journal(taught)
    sources = {chapter: read_source(taught.course.source(chapter)) for chapter in chapters}
    with Gradebook(taught.database) as book:
        return [_row(book, student, sources, journal) for student in taught.students()]


def grades(book: Gradebook, chapter: str, student: str) -> dict[str, float]:
    """Automatic points by test id, as they stand in the gradebook."""
    submission = book.find_submission_notebook(chapter, chapter, student)
    return {row.name: row.auto_score or 0.0 for row in submission.grades}


def items(taught: Class, chapters: Sequence[str]) -> list[Item]:
    """How each test went over all submissions that could be run."""
    journal = read_journal(taught)
    found = []
    for chapter in chapters:
        results = [r for (_, name), r in journal.items() if name == chapter and not r.reason]
        source = read_source(taught.course.source(chapter))
        for question in source.questions():
            for cell in source.of_kind("test"):
                if cell.id in question.graded:
                    found.append(_item(chapter, question.number, cell.id, cell.points, results))
    return found


def write(taught: Class, chapters: Sequence[str], folder: Path) -> list[Path]:
    """Write grades.csv and report.html; returns their paths."""
    table = rows(taught, chapters)
    csv_path, html_path = folder / "grades.csv", folder / "report.html"
    with csv_path.open("w", newline="", encoding="utf-8") as file:
        _write_csv(csv.writer(file), table, chapters)
    links = {
        (row.student, chapter): f"feedback/{row.student}/{chapter}/{chapter}.html"
        for row in table
        for chapter in chapters
    }
    text = page(
        "report.html",
        rows=table,
        chapters=chapters,
        items=items(taught, chapters),
        links=links,
        unread=[r for r in read_journal(taught).values() if r.reason],
    )
    html_path.write_text(text, encoding="utf-8")
    return [csv_path, html_path]


def print_table(table: Sequence[Row], chapters: Sequence[str]) -> None:
    """The class as a short table: student, score by chapter, what went wrong."""
    width = max([7, *(len(row.student) for row in table)])
    short = [chapter[:2] for chapter in chapters]
    print(
        f"{'student':<{width}}  " + "  ".join(f"{name:>7}" for name in short) + "  what went wrong"
    )
    for row in table:
        scores = "  ".join(f"{_points(row.scores[chapter]):>7}" for chapter in chapters)
        more = f" (+{len(row.wrong) - 1})" if len(row.wrong) > 1 else ""
        first = row.wrong[0] if row.wrong else ""
        if len(first) > WIDEST:
            first = first[: WIDEST - 1].rstrip() + "…"
        print(f"{row.student:<{width}}  {scores}  {first}{more}")


def _points(score: Score) -> str:
    return f"{score.auto:g}/{score.auto_max:g}"


def _row(
    book: Gradebook,
    student: str,
    sources: dict[str, Source],
    journal: dict[tuple[str, str], Result],
) -> Row:
    scores, wrong = {}, []
    for chapter, source in sources.items():
        scores[chapter] = _score(book, student, chapter, source)
        result = journal.get((student, chapter))
        if result is None:
            continue
        if result.reason:
            wrong.append(f"{chapter[:2]}: {result.reason}")
        wrong += [f"{chapter[:2]}: {said}" for _, said in result.failures]
    return Row(student, scores, tuple(dict.fromkeys(wrong)))


def _score(book: Gradebook, student: str, chapter: str, source: Source) -> Score:
    tests = {cell.id: cell.points for cell in source.of_kind("test")}
    try:
        given = {
            row.name: row for row in book.find_submission_notebook(chapter, chapter, student).grades
        }
    except MissingEntry:  # not asked for yet
        given = {}
    by_hand = [row for name, row in given.items() if name not in tests]
    return Score(
        auto=sum(given[name].auto_score or 0.0 for name in tests if name in given),
        auto_max=sum(tests.values()),
        written=sum(row.manual_score or 0.0 for row in by_hand),
        waiting=sum(bool(row.needs_manual_grade) for row in by_hand),
    )


def _item(chapter: str, question: str, test: str, points: int, results: Sequence[Result]) -> Item:
    said = [words for r in results for name, words in r.failures if name == test]
    return Item(
        chapter,
        question,
        test,
        points,
        passed=len(results) - len(said),
        graded=len(results),
        said=tuple(Counter(said).most_common(3)),
    )


def _write_csv(writer, table: Sequence[Row], chapters: Sequence[str]) -> None:
    writer.writerow(
        ["student", *chapters, "total", "max", "written", "waiting for a hand", "what went wrong"]
    )
    for row in table:
        scores = [row.scores[chapter] for chapter in chapters]
        writer.writerow(
            [
                row.student,
                *(f"{score.auto:g}" for score in scores),
                f"{row.total:g}",
                f"{sum(score.auto_max for score in scores):g}",
                f"{sum(score.written for score in scores):g}",
                sum(score.waiting for score in scores),
                " | ".join(row.wrong),
            ]
        )

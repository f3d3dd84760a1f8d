"""The report on a class as CSV files: grades, questions, items."""

import csv
import io
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from autograder.classroom.counted import number
from autograder.classroom.report_data import Question, Report
from autograder.common.spreadsheet import safe
from autograder.common.whole import require_file

OURS = b"student,"  # how our table of grades begins


def name_of_table(folder: Path) -> str:
    """grades.csv, unless another program's lies there: `nbgrader export` calls its own so."""
    try:
        require_file(folder / "grades.csv")
        with (folder / "grades.csv").open("rb") as file:
            begin = file.read(len(OURS))
    except OSError:
        begin = b""
    return "grades.csv" if begin in (b"", OURS) else "class_grades.csv"


def grades_table(report: Report) -> Iterable[list[str]]:
    """A row for each student: points by chapter, what went wrong, what needs a look."""
    needs: dict[str, list[str]] = defaultdict(list)
    for look in report.looks:
        needs[look.student].append(f"{look.where}: {look.words}")
    yield [
        *("student", *report.chapters, "total", "max", "tests", "tests max", "written"),
        *("taken off", "waiting for a hand", "what went wrong", "needs a look"),
    ]
    for row in report.rows:
        scores = [row.scores[chapter] for chapter in report.chapters]
        yield [
            row.student,
            *(number(score.points.counts) if score.graded else "" for score in scores),
            number(row.total),
            number(sum(score.most for score in scores)),
            number(sum(score.auto for score in scores)),
            number(sum(score.auto_max for score in scores)),
            number(sum(score.written for score in scores)),
            number(row.total_lost),
            str(sum(score.waiting for score in scores)),
            " | ".join(row.wrong),
            " | ".join(needs[row.student]),
        ]


def questions_table(report: Report) -> Iterable[list[str]]:
    """A row for each student: points by question."""
    yield ["student", *(f"{q.chapter}: {q.title}" for q in report.questions)]
    yield ["(points possible)", *(number(q.points) for q in report.questions)]
    places: dict[str, list[Question]] = defaultdict(list)
    for question in report.questions:
        places[question.chapter].append(question)
    for row in report.rows:
        line = [row.student]
        for chapter, questions in places.items():
            shares = report.shares.get((row.student, chapter), (None,) * len(questions))
            for question, share in zip(questions, shares, strict=True):
                line.append("" if share is None else number(share * question.points))
        yield line


def items_table(report: Report) -> Iterable[list[str]]:
    """A row for each question and each of its tests: how they went."""
    yield [
        *("chapter", "question", "test", "points", "share of points", "passed", "graded"),
        *("unanswered", "discrimination", "said most often"),
    ]
    for item in report.items:
        discrimination = "" if item.discrimination is None else f"{item.discrimination:.2f}"
        yield [
            *(item.chapter, item.question, item.test or "(question)", number(item.points)),
            *(f"{item.share:.3f}", str(item.passed), str(item.graded), str(item.unanswered)),
            *(discrimination, " | ".join(f"{said} ({times})" for said, times in item.said)),
        ]


def as_csv(table: Iterable[Sequence[str]]) -> str:
    """A table as the text of a file; no cell of it is a formula."""
    text = io.StringIO(newline="")
    csv.writer(text).writerows([safe(cell) for cell in row] for row in table)
    return text.getvalue()

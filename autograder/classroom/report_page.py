"""The report on a class as one static HTML page."""

import os
import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from urllib.parse import quote

from autograder.classroom.counted import number
from autograder.classroom.pages import page
from autograder.classroom.report_data import KINDS, Item, Look, Mistake, Question, Report, one_line
from autograder.classroom.report_figures import SAID
from autograder.classroom.report_tables import name_of_table
from autograder.common import headings
from autograder.common.names import link

LONGEST = 160  # characters of one such sentence on the page
BANDS = 50  # most rows of the heat map
LISTED = 100  # most rows of one kind of "who needs a look" on the page
ROWS = 2000  # most students in the table of scores on the page
BLOCK = 50  # students that open and close together there


def render(report: Report, folder: Path) -> str:
    """The report's page; links are relative to the folder it will lie in."""

    def book(mistake: Mistake) -> str:
        path, _, label = mistake.link.partition("#")
        return f"{link(*_way(folder, Path(path)))}#{quote(label)}" if path else ""

    pages = _way(folder, folder / report.feedback)
    listed = min(len(report.rows), ROWS)
    return page(
        "report.html",
        report=report,
        table=name_of_table(folder),
        summary=_summary(report),
        maps=[heat_map(report, chapter) for chapter in report.chapters],
        tests=[(chapter, _by_question(report, chapter)) for chapter in report.chapters],
        kinds=_kinds(report.looks),
        named=[(mistake, book(mistake)) for mistake in report.mistakes],
        feedback=lambda row, chapter: [
            (name, link(*pages, row.folder or row.student, chapter, f"{name}.html"))
            for name in report.notebooks[chapter]
        ],
        title=lambda chapter: report.titles.get(chapter, chapter),
        label=headings.label,
        has_page=lambda row, chapter: (row.student, chapter) in report.shares,
        number=number,
        cut=one_line,
        clock=_clock,
        said=SAID,
        longest=LONGEST,
        listed=LISTED,
        blocks=[report.rows[start : start + BLOCK] for start in range(0, listed, BLOCK)],
        left_out=len(report.rows) - listed,
    )


def _way(folder: Path, path: Path) -> tuple[str, ...]:
    """The names on the way from a folder to a path."""
    return Path(os.path.relpath(path, folder)).parts


def _clock(seconds: float) -> str:
    """A duration as people say it."""
    if seconds < 60:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def _summary(report: Report) -> list[tuple[str, str]]:
    """The numbers that head the page: what, how much."""
    shares = [row.share for row in report.rows]
    people = {look.student for look in report.looks} & {row.student for row in report.rows}
    waiting = sum(score.waiting for row in report.rows for score in row.scores.values())
    return [
        ("students", str(len(report.rows))),
        ("submissions graded", str(report.graded)),
        ("median of the tests' points", f"{statistics.median(shares):.0%}" if shares else "none"),
        ("students to look at", str(len(people))),
        ("answers to grade by hand", str(waiting)),
        ("time spent grading", _clock(report.times.total)),
    ]


def _kinds(looks: Sequence[Look]) -> list[tuple[str, list[Look]]]:
    """What needs a look, by kind; kinds without any are left out."""
    by_kind = {kind: [look for look in looks if look.kind == kind] for kind in KINDS}
    return [(KINDS[kind], found) for kind, found in by_kind.items() if found]


def _by_question(report: Report, chapter: str) -> list[tuple[Item, list[Item]]]:
    """Each question's item with those of its tests."""
    found: list[tuple[Item, list[Item]]] = []
    for item in report.items:
        if item.chapter == chapter and not item.test:
            found.append((item, []))
        elif item.chapter == chapter:
            found[-1][1].append(item)
    return found


@dataclass(frozen=True)
class HeatMap:
    """Students times questions of one chapter, as a picture and in words."""

    chapter: str
    columns: tuple[tuple[str, str], ...]  # label, title
    names: tuple[str, ...]  # of the rows: a student, or the ranks of several
    paths: tuple[tuple[int, str], ...]  # level 0 to 4, or 5 for "not run"; SVG path
    students: int
    words: str  # what the picture shows


def heat_map(report: Report, chapter: str) -> HeatMap:
    """The chapter's heat map: the best on top; in a large class neighbours share a row."""
    questions = [q for q in report.questions if q.chapter == chapter]
    blank: tuple[float | None, ...] = (None,) * len(questions)
    ranked = sorted(
        (row.student for row in report.rows if (row.student, chapter) in report.shares),
        key=lambda student: (-_mean(report.shares[student, chapter]), student),
    )
    bands = min(BANDS, len(ranked)) or 1
    cuts = [round(len(ranked) * n / bands) for n in range(bands + 1)]
    spans = [(a, b) for a, b in pairwise(cuts) if b > a]
    groups = [ranked[a:b] for a, b in spans]
    cells: dict[int, list[str]] = defaultdict(list)
    for y, group in enumerate(groups):
        shares = [report.shares.get((student, chapter), blank) for student in group]
        for x in range(len(questions)):
            cells[_level([each[x] for each in shares])].append(f"M{x} {y}h1v1h-1z")
    return HeatMap(
        chapter=chapter,
        columns=tuple((q.label, q.title) for q in questions),
        names=tuple(ranked[a] if b - a == 1 else f"{a + 1} to {b}" for a, b in spans),
        paths=tuple((level, "".join(cells[level])) for level in sorted(cells)),
        students=len(ranked),
        words=_in_words(questions, [report.shares[student, chapter] for student in ranked]),
    )


def _mean(shares: Sequence[float | None]) -> float:
    return statistics.fmean(share or 0.0 for share in shares) if shares else 0.0


def _level(shares: Sequence[float | None]) -> int:
    """0 for nothing, 4 for all, 5 if nothing was run."""
    known = [share for share in shares if share is not None]
    if not known:
        return 5
    mean = statistics.fmean(known)
    return 0 if mean <= 0 else 4 if mean >= 0.999 else 1 + min(2, int(mean * 3))


def _in_words(questions: Sequence[Question], shares: Sequence[Sequence[float | None]]) -> str:
    """What one sees in the heat map: how many have all, the easiest and the hardest question."""
    ran = [each for each in shares if any(share is not None for share in each)]
    columns = [_mean([each[x] for each in ran]) for x in range(len(questions))]
    if not columns or not ran:
        return "Nothing could be run."
    easy, hard = columns.index(max(columns)), columns.index(min(columns))
    full = sum(all(share == 1 for share in each) for each in ran)
    none = sum(not any(each) for each in ran)
    left = f", {len(shares) - len(ran)} could not be run" if len(ran) < len(shares) else ""
    return (
        f"{full} of {len(shares)} have all points, {none} have none{left}. "
        f"Easiest: {questions[easy].title} ({columns[easy]:.0%} of its points); "
        f"hardest: {questions[hard].title} ({columns[hard]:.0%})."
    )

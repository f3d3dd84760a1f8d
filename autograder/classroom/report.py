"""Report on a class: a table for the terminal, CSV files, and one static HTML page.

Scores are read from the gradebook, where grades given by hand are too; what went wrong, and how
long it took, from the journal.
"""

import csv
import io
import os
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from nbgrader.api import Gradebook

from autograder.authoring.answers import read_answers
from autograder.authoring.source import read_source
from autograder.classroom import similar
from autograder.classroom.counted import Points, number
from autograder.classroom.exports import Line, book_lines, safe
from autograder.classroom.marks import lateness, points_of
from autograder.classroom.pages import page
from autograder.common import headings
from autograder.common.course import Course
from autograder.common.failures import in_words, write_whole
from autograder.common.names import alike, composed, link, plain, readable, say
from autograder.common.results import Flag, Result, Verdict

if TYPE_CHECKING:
    from autograder.classroom.grade import Class
    from autograder.judge.assignment import Assignment, Notebook

WIDEST = 60  # characters of "what went wrong" in the terminal
LONGEST = 160  # characters of one such sentence on the page
SAID = 3  # sentences of what went wrong for one student on the page
BANDS = 50  # most rows of the heat map
LISTED = 100  # most rows of one kind of "who needs a look" on the page
ROWS = 2000  # most students in the table of scores on the page
BLOCK = 50  # students that open and close together there
DISCRIMINATES = 10  # submissions from which on a correlation says something
OURS = b"student,"  # how our table of grades begins
STATUS = {
    "failed": "The test failed.",
    "error": "The answer raised an error.",
    "timeout": "The answer took too long.",
    "died": "The answer's process ended.",
    "unanswered": "Not answered yet.",
    "forbidden": "A rule was broken.",
    "test-error": "The test itself is broken.",
}
KINDS = {  # in the order of the page
    "gone": "Left out of this report",
    "stray": "Work that fits no assignment",
    "ungraded": "Graded 0 as a whole",
    "test-error": "Tests that are broken themselves",
    "tampering": "Tampering",
    "forbidden": "Calls that are not allowed",
    "similar": "Near-identical answers",
    "timeout": "Took too long",
    "died": "Process ended",
    "late": "Nobody knows whether it was late",
    "file": "Odd files and folders",
}


@dataclass(frozen=True)
class Score:
    """One student's points in one chapter."""

    auto: float
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
    graded: int = 0  # submissions
    feedback: Path = Path("feedback")  # the students' pages
    blocks: list[tuple[Row, ...]] = field(default_factory=list)


def rows(taught: "Class", chapters: Sequence[str]) -> list[Row]:
    """One row for each student with a submission, in alphabetical order."""
    return list(collect(taught, chapters).rows)


def grades(book: Gradebook, chapter: str, student: str) -> dict[str, float]:
    """Automatic points by test id, as they stand in the gradebook."""
    return {line.cell: line.auto for line in book_lines(book, chapter) if line.student == student}


def items(taught: "Class", chapters: Sequence[str]) -> list[Item]:
    """How each question and test went over all submissions that could be run."""
    return list(collect(taught, chapters).items)


def collect(taught: "Class", chapters: Sequence[str], tell: Callable[[str], None] = say) -> Report:
    """Everything there is to report on a class.

    An assignment that the course no longer has is left out, and the report says so.

    Args:
        taught: the class.
        chapters: what was graded once.
        tell: is told what was put back, and what could not be written.
    """
    from autograder.classroom.journal import results
    from autograder.classroom.keeper import refreshed
    from autograder.classroom.store import reading

    assignments, gone = refreshed(taught, chapters, tell)
    late = lateness(assignments, results(taught))
    with reading(taught) as book:
        lines = {name: book_lines(book, name) for name in assignments}
        points = {name: points_of(book.db, name, late[name]) for name in assignments}
    students = taught.students()
    more = [Look("gone", "everybody", name, words) for name, words in gone.items()]
    more += [
        Look("stray", readable(plain(stray.student)) or "nobody", "submitted", stray.words)
        for stray in taught.strays(students)
    ]
    more += _alike(students)
    journal = {(g.result.student, g.result.assignment): g.result for g in results(taught)}
    known = catalogue(taught.course, assignments)
    found = compose(students, assignments, lines, journal, known, points, more)
    return replace(found, feedback=taught.feedback)


def in_gradebook(taught: "Class") -> list[str]:
    """Assignments of which the gradebook holds grades, whether or not the journal does."""
    from autograder.classroom.store import reading

    with reading(taught) as book:
        return sorted(str(one.name) for one in book.assignments if book_lines(book, str(one.name)))


def _alike(students: Sequence[str]) -> Iterable[Look]:
    """Folders of which a person could think that they are one."""
    once = alike(students)
    for student in students:
        if composed(student) not in once:
            words = "several folders have names that look the same; each is graded for itself"
            yield Look("file", readable(plain(student)), "submitted", words)


def compose(
    students: Sequence[str],
    assignments: Mapping[str, "Assignment"],
    lines: Mapping[str, Sequence[Line]],
    journal: Mapping[tuple[str, str], Result],
    known: Mapping[str, tuple[str, str, str]],
    points: Mapping[str, Mapping[str, Points]] | None = None,
    more: Sequence[Look] = (),
) -> Report:
    """Put the report together from what was read.

    Args:
        students: everybody with a submission.
        assignments: the instructor's, by chapter.
        lines: the gradebook's, by chapter.
        journal: results by student and chapter.
        known: the name, place to read and link of each misconception, by id.
        points: what counts, by chapter and student; else the gradebook's lines do.
        more: what else a person should look at.
    """
    results = {
        name: [
            replace(result, student=readable(plain(result.student)))
            for (_, chapter), result in sorted(journal.items())
            if chapter == name
        ]
        for name in assignments
    }
    asked = {name: _questions(found) for name, found in assignments.items()}
    looks = [look for name in assignments for look in _looks(assignments[name], results[name])]
    looks += more
    table = tuple(_rows(students, assignments, lines, journal, points or {}))
    seconds = [(r.seconds, r.student, r.assignment) for found in results.values() for r in found]
    return Report(
        chapters=tuple(assignments),
        rows=table,
        questions=tuple(question for found in asked.values() for question in found),
        shares={
            (result.student, name): _shares(result, asked[name])
            for name, found in results.items()
            for result in found
        },
        items=tuple(item for name in assignments for item in _items(asked[name], results[name])),
        mistakes=tuple(
            sorted(
                (m for name in assignments for m in _mistakes(name, results[name], known)),
                key=lambda mistake: (-mistake.students, mistake.chapter, mistake.id),
            )
        ),
        looks=tuple(sorted(looks, key=lambda look: list(KINDS).index(look.kind))),
        times=_times(seconds),
        notebooks={
            name: tuple(notebook.name for notebook in found.notebooks)
            for name, found in assignments.items()
        },
        graded=len(seconds),
        blocks=[table[start : start + BLOCK] for start in range(0, min(len(table), ROWS), BLOCK)],
    )


def catalogue(course: Course, chapters: Iterable[str]) -> dict[str, tuple[str, str, str]]:
    """Their misconceptions by id: name, where to read, and a link if the book is built."""
    found = {}
    for chapter in chapters:
        path = course.misconceptions(chapter)
        if not (path.is_file() and course.source(chapter).is_file()):
            continue
        for answer in read_answers(path, read_source(course.source(chapter))):
            file, _, label = answer.read.partition("#")
            built = course.root / "book" / "_build" / "html" / f"{file}.html"
            link = f"{built}#{label}" if file and built.is_file() else ""
            found[answer.id] = (answer.name.replace("_", " "), answer.read, link)
    return found


def write(taught: "Class", chapters: Sequence[str], folder: Path) -> list[Path]:
    """Write report.html and, beside it, grades, questions and items as CSV; paths of the first two.

    Returns the table of grades and report.html.
    """
    return write_report(collect(taught, chapters), folder)


def write_report(report: Report, folder: Path) -> list[Path]:
    """As `write`, from a report that is put together."""
    table, html = folder / _name_of_table(folder), folder / "report.html"
    _write_csv(table, _grades_table(report))
    _write_csv(folder / "questions.csv", _questions_table(report))
    _write_csv(folder / "items.csv", _items_table(report))
    _place(html, render(report, folder))
    return [table, html]


def _name_of_table(folder: Path) -> str:
    """grades.csv, unless another program's lies there: `nbgrader export` calls its own so."""
    try:
        with (folder / "grades.csv").open("rb") as file:
            begin = file.read(len(OURS))
    except OSError:
        begin = b""
    return "grades.csv" if begin in (b"", OURS) else "class_grades.csv"


def render(report: Report, folder: Path) -> str:
    """The report's page; links are relative to the folder it will lie in."""

    def book(mistake: Mistake) -> str:
        path, _, label = mistake.link.partition("#")
        return f"{link(*_way(folder, Path(path)))}#{quote(label)}" if path else ""

    pages = _way(folder, folder / report.feedback)
    return page(
        "report.html",
        report=report,
        table=_name_of_table(folder),
        summary=_summary(report),
        maps=[_heat_map(report, chapter) for chapter in report.chapters],
        tests=[(chapter, _by_question(report, chapter)) for chapter in report.chapters],
        kinds=_kinds(report.looks),
        named=[(mistake, book(mistake)) for mistake in report.mistakes],
        feedback=lambda row, chapter: [
            (name, link(*pages, row.folder or row.student, chapter, f"{name}.html"))
            for name in report.notebooks[chapter]
        ],
        has_page=lambda row, chapter: (row.student, chapter) in report.shares,
        number=number,
        cut=_cut,
        clock=_clock,
        said=SAID,
        longest=LONGEST,
        listed=LISTED,
        left_out=max(0, len(report.rows) - ROWS),
    )


def _way(folder: Path, path: Path) -> tuple[str, ...]:
    """The names on the way from a folder to a path."""
    return Path(os.path.relpath(path, folder)).parts


def print_table(table: Sequence[Row], chapters: Sequence[str]) -> None:
    """The class as a short table: student, score by chapter, what went wrong."""
    width = max([7, *(min(len(row.student), WIDEST) for row in table)])
    short = [chapter[:2] for chapter in chapters]
    say(f"{'student':<{width}}  " + "  ".join(f"{name:>7}" for name in short) + "  what went wrong")
    for row in table:
        scores = "  ".join(f"{_points(row.scores[chapter]):>7}" for chapter in chapters)
        more = f" (+{len(row.wrong) - 1})" if len(row.wrong) > 1 else ""
        first = _cut(row.wrong[0] if row.wrong else "", WIDEST)
        say(f"{_cut(row.student, WIDEST):<{width}}  {scores}  {first}{more}")


def _points(score: Score) -> str:
    return f"{number(score.points.counts)}/{number(score.most)}" if score.graded else "-"


def _cut(text: str, longest: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= longest else line[: longest - 1].rstrip() + "…"


def _clock(seconds: float) -> str:
    """A duration as people say it."""
    if seconds < 60:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def _questions(assignment: "Assignment") -> list[Question]:
    """The questions of an assignment: tests under one heading belong together."""
    found = []
    for notebook in assignment.notebooks:
        groups: dict[str, list] = {}
        heading = ""
        for cell in notebook.cells:
            if cell.cell_type == "markdown" and cell.kind in ("markdown", "readonly"):
                heading = headings.title(cell.source) or heading
            elif cell.kind == "test":
                groups.setdefault(heading or _asked(notebook, cell.grade_id), []).append(cell)
        for title, cells in groups.items():
            found.append(
                Question(
                    chapter=assignment.name,
                    notebook=notebook.name,
                    label=headings.label(title),
                    title=title,
                    tests=tuple(cell.grade_id for cell in cells),
                    points=sum(cell.points for cell in cells),
                )
            )
    return found


def _asked(notebook: "Notebook", test: str) -> str:
    """What a test without any heading above it is about."""
    return " and ".join(notebook.question_of(test)) or test


def _rows(
    students: Sequence[str],
    assignments: Mapping[str, "Assignment"],
    lines: Mapping[str, Sequence[Line]],
    journal: Mapping[tuple[str, str], Result],
    points: Mapping[str, Mapping[str, Points]],
) -> Iterable[Row]:
    tests = {
        name: {
            (notebook.name, cell.grade_id): cell.points
            for notebook in found.notebooks
            for cell in notebook.cells
            if cell.kind == "test"
        }
        for name, found in assignments.items()
    }
    by_hand = {
        name: sum(
            cell.points
            for notebook in found.notebooks
            for cell in notebook.cells
            if cell.kind in ("manual", "task")
        )
        for name, found in assignments.items()
    }
    own: dict[tuple[str, str], list[Line]] = defaultdict(list)
    for name, found in lines.items():
        for line in found:
            own[line.student, name].append(line)
    for folder in sorted(students):
        student = plain(folder)
        counted = {name: points.get(name, {}).get(student) for name in assignments}
        scores = {
            name: _score(own[student, name], tests[name], by_hand[name], counted[name])
            for name in assignments
        }
        found = {name: journal.get((folder, name)) for name in assignments}
        wrong = dict.fromkeys(
            sentence for name in assignments for sentence in _wrong(name, scores[name], found[name])
        )
        yield Row(readable(student), scores, tuple(wrong), folder)


def _score(
    lines: Sequence[Line],
    tests: Mapping[tuple[str, str], float],
    by_hand_max: float,
    points: Points | None,
) -> Score:
    by_hand = [line for line in lines if (line.notebook, line.cell) not in tests]
    return Score(
        auto=sum(line.auto for line in lines if (line.notebook, line.cell) in tests),
        auto_max=sum(tests.values()),
        written=sum(line.score for line in by_hand),
        waiting=sum(line.waiting for line in by_hand),
        points=points or Points(sum(line.score for line in lines)),
        most=sum(tests.values()) + by_hand_max,
        graded=bool(lines),
    )


def _wrong(chapter: str, score: Score, result: Result | None) -> Iterable[str]:
    """What went wrong in one submission, in sentences."""
    start = _short(chapter)
    if score.points.late:
        yield f"{start}: {score.points.reckoned}"
    if result is None:
        if not score.graded:
            yield f"{start}: no work of this name was graded"
        return
    reasons = dict.fromkeys([result.reason, *(notebook.reason for notebook in result.notebooks)])
    yield from (f"{start}: {reason}" for reason in reasons if reason)
    yield from (f"{start}: {_said(v)}" for v in _verdicts(result) if v.status != "passed")


def _short(chapter: str) -> str:
    return chapter.split("_")[0]


def _said(verdict: Verdict) -> str:
    return verdict.told or verdict.said or STATUS.get(verdict.status, verdict.status)


def _verdicts(result: Result) -> list[Verdict]:
    return [verdict for notebook in result.notebooks for verdict in notebook.verdicts]


def _ran(result: Result) -> bool:
    return not result.reason and bool(_verdicts(result))


def _earned(result: Result, question: Question) -> float | None:
    """Points that a submission got for a question; None if its notebook was not run."""
    for notebook in result.notebooks:
        if notebook.name == question.notebook and not notebook.reason and not result.reason:
            return sum(v.score for v in notebook.verdicts if v.test in question.tests)
    return None


def _shares(result: Result, questions: Sequence[Question]) -> tuple[float | None, ...]:
    earned = ((_earned(result, question), question.points) for question in questions)
    return tuple(None if e is None else e / points if points else 1.0 for e, points in earned)


def _items(questions: Sequence[Question], results: Sequence[Result]) -> Iterable[Item]:
    """Each question, followed by its tests."""
    ran = [result for result in results if _ran(result)]
    totals = [sum(verdict.score for verdict in _verdicts(result)) for result in ran]
    verdicts = [
        {(n.name, v.test): v for n in result.notebooks for v in n.verdicts} for result in ran
    ]
    for question in questions:
        keys = [(question.notebook, test) for test in question.tests]
        yield _item(question, "", question.points, keys, verdicts, totals)
        if len(keys) > 1:
            for key in keys:
                given = [found[key].points for found in verdicts if key in found]
                points = given[0] if given else 0.0
                yield _item(question, key[1], points, [key], verdicts, totals)


def _item(
    question: Question,
    test: str,
    points: float,
    keys: Sequence[tuple[str, str]],
    verdicts: Sequence[Mapping[tuple[str, str], Verdict]],
    totals: Sequence[float],
) -> Item:
    found = [
        ([given[key] for key in keys if key in given], total)
        for given, total in zip(verdicts, totals, strict=True)
        if any(key in given for key in keys)
    ]
    scores = [sum(verdict.score for verdict in given) for given, _ in found]
    rest = [total - score for score, (_, total) in zip(scores, found, strict=True)]
    failed = [v for given, _ in found for v in given if v.status not in ("passed", "unanswered")]
    return Item(
        chapter=question.chapter,
        question=question.title,
        test=test,
        points=points,
        share=statistics.fmean(scores) / points if scores and points else 0.0,
        passed=sum(all(v.status == "passed" for v in given) for given, _ in found),
        graded=len(found),
        unanswered=sum(all(v.status == "unanswered" for v in given) for given, _ in found),
        discrimination=_correlation(scores, rest),
        said=tuple(Counter(_said(v) for v in failed).most_common(SAID)),
    )


def _correlation(scores: Sequence[float], rest: Sequence[float]) -> float | None:
    """Point-biserial (Pearson's) correlation of an item with the rest; None if it says nothing."""
    if len(scores) < DISCRIMINATES or len(set(scores)) < 2 or len(set(rest)) < 2:
        return None
    return statistics.correlation(scores, rest)


def _mistakes(
    chapter: str, results: Sequence[Result], known: Mapping[str, tuple[str, str, str]]
) -> list[Mistake]:
    """The chapter's misconceptions and how many gave an answer that agrees with each."""
    who: dict[str, set[str]] = defaultdict(set)
    tests: dict[str, dict[str, None]] = defaultdict(dict)
    read: dict[str, str] = {}
    for result in results:
        for verdict in _verdicts(result):
            if verdict.misconception:
                who[verdict.misconception].add(result.student)
                tests[verdict.misconception][verdict.test] = None
                read[verdict.misconception] = verdict.read
    found = []
    for id, students in who.items():
        name, place, link = known.get(id, ("", "", ""))
        found.append(
            Mistake(chapter, id, name, tuple(tests[id]), len(students), place or read[id], link)
        )
    return found


def _looks(assignment: "Assignment", results: Sequence[Result]) -> Iterable[Look]:
    """Who, or which test, should be looked at."""
    for result in results:
        place = assignment.name
        if result.reason:
            yield Look("ungraded", result.student, place, result.reason)
        for notebook in result.notebooks:
            if notebook.reason and notebook.reason != result.reason:
                where = place if notebook.name == place else f"{place}/{notebook.name}"
                yield Look("ungraded", result.student, where, notebook.reason)
        for flag in result.flags:
            yield Look(flag.kind, result.student, flag.where, flag.words)
    yield from _broken(assignment.name, results)
    if words := assignment.rules.late.unknown(result.student for result in results):
        yield Look("late", f"{len(results)} students", assignment.name, words)
    for student, flags in similar_flags(assignment, results).items():
        for flag in flags:
            yield Look(flag.kind, student, flag.where, flag.words)


def similar_flags(assignment: "Assignment", results: Sequence[Result]) -> dict[str, list[Flag]]:
    """Near-identical answers within an assignment, by student."""
    found: dict[str, list[Flag]] = defaultdict(list)
    for notebook in assignment.notebooks:
        asked = {c.grade_id: (c.source, c.stub) for c in notebook.cells if c.kind == "solution"}
        answers = {
            result.student: {name: text for name, text in own.answers.items() if name in asked}
            for result in results
            for own in result.notebooks
            if own.name == notebook.name
        }
        for student, flags in similar.flags(answers, asked, notebook.name).items():
            found[student] += flags
    return dict(found)


def _broken(chapter: str, results: Sequence[Result]) -> Iterable[Look]:
    """Tests that could not be run: one line each, whoever they hit."""
    hit: dict[str, list[str]] = defaultdict(list)
    words: dict[str, str] = {}
    for result in results:
        for verdict in _verdicts(result):
            if verdict.status == "test-error":
                hit[verdict.test].append(result.student)
                words.setdefault(verdict.test, verdict.said or verdict.told)
    for test, students in hit.items():
        yield Look("test-error", f"{len(students)} students", f"{chapter}/{test}", words[test])


def _times(seconds: Sequence[tuple[float, str, str]]) -> Times:
    spent = [each for each, _, _ in seconds]
    return Times(
        total=sum(spent),
        median=statistics.median(spent) if spent else 0.0,
        slowest=tuple(sorted(seconds, reverse=True)[:3]),
    )


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


def _heat_map(report: Report, chapter: str) -> HeatMap:
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


def _grades_table(report: Report) -> Iterable[list[str]]:
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


def _questions_table(report: Report) -> Iterable[list[str]]:
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


def _items_table(report: Report) -> Iterable[list[str]]:
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


def _write_csv(path: Path, table: Iterable[Sequence[str]]) -> None:
    text = io.StringIO(newline="")
    csv.writer(text).writerows([safe(cell) for cell in row] for row in table)
    _place(path, text.getvalue())


def _place(path: Path, text: str) -> None:
    with in_words(f"{path} (if a program holds it open, close it)"):
        write_whole(path, text)

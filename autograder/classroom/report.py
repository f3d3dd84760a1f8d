"""Report on a class: a table for the terminal, CSV files, and one static HTML page.

Scores are read from the gradebook, where grades given by hand are too; what went wrong, and how
long it took, from the journal.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from autograder.authoring.answers import read_answers
from autograder.authoring.source import read_source
from autograder.classroom.book_lines import book_lines
from autograder.classroom.classes import LEFT_OUT
from autograder.classroom.gradebook import is_there, reading
from autograder.classroom.journal import results
from autograder.classroom.keeper import refreshed
from autograder.classroom.marks import lateness, points_of
from autograder.classroom.report_data import Look, Report
from autograder.classroom.report_figures import compose
from autograder.classroom.report_page import render
from autograder.classroom.report_tables import (
    as_csv,
    grades_table,
    items_table,
    name_of_table,
    questions_table,
)
from autograder.common.course import Course
from autograder.common.failures import in_words
from autograder.common.names import alike, composed, plain, readable, say
from autograder.common.whole import write_whole

if TYPE_CHECKING:
    from autograder.classroom.classes import Class


def collect(taught: "Class", chapters: Sequence[str], tell: Callable[[str], None] = say) -> Report:
    """Everything there is to report on a class.

    An assignment that the course no longer has is left out, and the report says so.

    Args:
        taught: the class.
        chapters: what was graded once.
        tell: is told what was put back, and what could not be written.
    """
    students = taught.students()
    assignments, gone = refreshed(taught, chapters, tell)
    late = lateness(assignments, results(taught))
    with reading(taught) as book:
        lines = {name: book_lines(book, name) for name in assignments}
        points = {name: points_of(book.db, name, late[name]) for name in assignments}
    more = [Look("gone", "everybody", name, f"{LEFT_OUT}: {why}") for name, why in gone.items()]
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
    if not is_there(taught):
        return []
    with reading(taught) as book:
        return sorted(str(one.name) for one in book.assignments if book_lines(book, str(one.name)))


def _alike(students: Sequence[str]) -> Iterable[Look]:
    """Folders of which a person could think that they are one."""
    once = alike(students)
    for student in students:
        if composed(student) not in once:
            words = "several folders have names that look the same; each is graded for itself"
            yield Look("file", readable(plain(student)), "submitted", words)


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


def write_report(report: Report, folder: Path) -> list[Path]:
    """Write report.html and, beside it, grades, questions and items as CSV.

    Returns the paths of the table of grades and of report.html.
    """
    table, html = folder / name_of_table(folder), folder / "report.html"
    _place(table, as_csv(grades_table(report)))
    _place(folder / "questions.csv", as_csv(questions_table(report)))
    _place(folder / "items.csv", as_csv(items_table(report)))
    _place(html, render(report, folder))
    return [table, html]


def _place(path: Path, text: str) -> None:
    with in_words(f"{path} (if a program holds it open, close it)"):
        write_whole(path, text)

"""Grades for a learning management system: Canvas and Moodle as CSV, Gradescope's results.json.

`python -m autograder export canvas|moodle|gradescope`, or through nbgrader:
`nbgrader export --exporter autograder.classroom.exports.CanvasExporter`. A roster beside submitted/
(roster.csv: student, lms_id, name, email, and if wanted sis_id, login, section) says who is who
there; without one nbgrader's own table of students does.
"""

import csv
import io
import re
import sys
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from pathlib import Path
from typing import Any

from nbgrader.api import Gradebook, Student
from nbgrader.plugins.export import ExportPlugin

from autograder.classroom.book_lines import book_lines
from autograder.classroom.classes import Class
from autograder.classroom.counted import number
from autograder.classroom.gradebook import reading
from autograder.classroom.gradescope import write_gradescope
from autograder.classroom.journal import results
from autograder.classroom.keeper import refreshed
from autograder.classroom.marks import points_of
from autograder.classroom.roster import ROSTER, Person, known_as, merged, roster_of
from autograder.common.course import Course, CourseError
from autograder.common.failures import ending_in_words, in_words
from autograder.common.names import alike, composed, readable, say, visible
from autograder.common.spreadsheet import NUMBER, safe
from autograder.common.whole import write_table

POINTS_ROW = re.compile(r"(points)\s+(possible)", re.IGNORECASE)  # Canvas: no student's line
FOLDER = " (folder)"  # behind a folder's name, by which Canvas is to take nobody for its student

UNWEIGHED = ("Mn", "Me", "Cf")  # signs that count nothing where names are compared loosely
NUMBERS = Context(prec=200, Emax=MAX_EMAX, Emin=MIN_EMIN)  # each as it is, 007 and 7 the same


@dataclass
class Grades:
    """What is to be exported: points by student and assignment."""

    points: dict[str, float] = field(default_factory=dict)  # assignment -> its most points
    scores: dict[tuple[str, str], float] = field(default_factory=dict)  # (student, assignment)
    waiting: int = 0  # answers that nobody graded by hand yet
    stale: int = 0  # those that somebody did, and that have changed since
    people: dict[str, Person] = field(default_factory=dict)
    listed: frozenset[str] = frozenset()  # students whom the roster names

    def known_by_folder(self) -> dict[str, str]:
        """By student: the folder's name, by which an LMS may look for a person.

        Empty where another person goes by it there, or by what a table has in its place: each
        would get the grade of whose line is last.
        """
        owners: dict[str, set[str]] = {}
        nearly: dict[str, set[str]] = {}
        folders: dict[str, set[str]] = {}
        graded = {student for student, _ in self.scores}
        for one in self.people.values():
            folder = readable(one.student)
            folders.setdefault(_looked_up(folder), set()).add(one.student)
            own = folder if one.student in self.listed else ""
            for name in filter(None, (one.lms_id, one.sis_id, one.login, one.email, own)):
                owners.setdefault(_looked_up(name), set()).add(one.student)
                nearly.setdefault(_loosely(name), set()).add(one.student)

        def is_free(student: str, name: str) -> bool:
            cell = safe(name)
            is_listed = student in self.listed
            ways = (
                [(owners, _looked_up)] if is_listed else [(owners, _looked_up), (nearly, _loosely)]
            )
            found = (known.get(key(one), set()) for known, key in ways for one in (name, cell))
            there = set[str]().union(*found)
            there |= folders.get(_looked_up(cell), set()) if cell != name else set()
            if not is_listed and student in graded:
                there |= folders[_looked_up(name)] & graded
            return there <= {student}

        names = {student: readable(student) for student in self.people}
        return {one: name if is_free(one, name) else "" for one, name in names.items()}


def run(taught: Class, kind: str, out: Path | None = None) -> int:
    """Write one kind of export for a class and say where it lies."""
    writers = {"canvas": write_canvas, "moodle": write_moodle}
    if kind == "gradescope":
        return write_gradescope(taught, out or taught.folder / "gradescope")
    if kind not in writers:
        raise CourseError(f"There is no export {kind!r}; write canvas, moodle or gradescope.")
    path = out or taught.folder / f"{kind}.csv"
    _refresh(taught)
    with reading(taught) as book:
        grades = read_grades(book)
    said = enrol(grades, roster_of(taught.folder, taught.course.root))
    _open_and_write(path, writers[kind], grades, is_named=out is not None)
    say(f"{kind}: {taught.course.show(path)}")
    for sentence in said:
        say(sentence)
    return 0


def read_grades(
    book: Gradebook, assignments: Sequence[str] = (), students: Sequence[str] = ()
) -> Grades:
    """The points of a class from nbgrader's gradebook; late penalties are taken off."""
    grades = Grades()
    for person in map(_person, book.db.query(Student).all()):
        if not students or person.student in students:
            grades.people[person.student] = person
    most = {str(found.name): found.max_score for found in book.assignments}
    for name in sorted(most):
        if assignments and name not in assignments:
            continue
        grades.points[name] = float(most[name] or 0)  # pyright: ignore[reportArgumentType]
        for line in book_lines(book, name):
            asked = not students or line.student in students
            grades.waiting += line.waiting and asked
            grades.stale += line.stale and asked
        for student, points in points_of(book.db, name).items():
            if student in grades.people:
                grades.scores[student, name] = points.counts
    _without_doubles(grades)
    return grades


def enrol(grades: Grades, roster: Mapping[str, Person] | None) -> list[str]:
    """Put the roster's names on the grades; returns what a person should know, in sentences."""
    said = []
    if roster is not None:
        roster = {person.student: person for person in known_as(grades.people, roster.values())}
        unknown = sorted(set(grades.people) - set(roster))
        if unknown:
            said.append(
                f"{_count(len(unknown), 'student is', 'students are')} not in {ROSTER}: "
                f"{_shortened([readable(name) for name in unknown])}; their rows carry only what "
                "the gradebook knows, add them to the roster or match them by hand."
            )
        known, grades.listed = grades.people, frozenset(roster)
        grades.people = {student: merged(known.get(student), roster[student]) for student in roster}
        grades.people |= {student: known[student] for student in unknown}
    said += _without_shared(grades)
    names = grades.known_by_folder()
    if others := sorted(
        who for who, name in names.items() if not name and who not in grades.listed
    ):
        said.append(
            f"{_shortened([readable(name) for name in others])}: an LMS may know somebody else by "
            "that number, login or address; the rows leave it out, match them by hand."
        )
    if grades.waiting:
        said.append(
            f"{_count(grades.waiting, 'answer waits', 'answers wait')} for a grade by hand and "
            f"count{'s' if grades.waiting == 1 else ''} 0 so far; grade in the formgrader, then "
            "export again."
        )
    if grades.stale:
        said.append(
            f"{_count(grades.stale, 'answer has', 'answers have')} changed since a person graded "
            "it: the points that were given count until somebody looks again in the formgrader."
        )
    return said


def write_canvas(grades: Grades, file: Any) -> None:
    """Canvas's gradebook CSV: its five columns on the student, then one for each assignment."""
    writer = csv.writer(file)
    head = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section"]
    writer.writerow([*head, *map(safe, grades.points)])
    writer.writerow(["    Points Possible", "", "", "", "", *map(number, grades.points.values())])
    names, shown = grades.known_by_folder(), _shown(grades)
    for person in _in_order(grades):
        login = person.login or names[person.student]
        row = [
            POINTS_ROW.sub(r"\1-\2", shown[person.student]),
            person.lms_id,
            person.sis_id,
            login,
            person.section,
        ]
        writer.writerow([*map(safe, row), *_scores(grades, person)])


def write_moodle(grades: Grades, file: Any) -> None:
    """Moodle's grade import CSV: map "Email address" or "ID number", then each assignment."""
    writer = csv.writer(file)
    head = ["First name", "Last name", "ID number", "Email address"]
    writer.writerow([*head, *(safe(f"Assignment: {name} (Real)") for name in grades.points)])
    names = grades.known_by_folder()
    for person in _in_order(grades):
        first, _, last = person.name.rpartition(" ")
        row = [first, last, person.lms_id or names[person.student], person.email]
        writer.writerow([*map(safe, row), *_scores(grades, person)])


class CanvasExporter(ExportPlugin):
    """Writes canvas.csv: `--exporter autograder.classroom.exports.CanvasExporter`."""

    def export(self, gradebook: Gradebook) -> None:
        """Write Canvas's gradebook CSV to --to."""
        _export(self, gradebook, write_canvas, "canvas.csv")


class MoodleExporter(ExportPlugin):
    """Writes moodle.csv: `--exporter autograder.classroom.exports.MoodleExporter`."""

    def export(self, gradebook: Gradebook) -> None:
        """Write Moodle's grade import CSV to --to."""
        _export(self, gradebook, write_moodle, "moodle.csv")


class GradescopeExporter(ExportPlugin):
    """Writes a folder: `--exporter autograder.classroom.exports.GradescopeExporter`."""

    def export(self, gradebook: Gradebook) -> None:
        """Write results.json for each submission that this grader graded, below --to."""
        with ending_in_words():
            course = Course.find()
            folder = Path(self.to or "gradescope")
            write_gradescope(Class(course, course.root), folder, self.student, self.assignment)


@ending_in_words()
def _export(plugin: ExportPlugin, book: Gradebook, writer: Any, default: str) -> None:
    with suppress(CourseError):  # a gradebook that lies in no course of ours
        course = Course.find()
        _refresh(Class(course, course.root))
    grades = read_grades(book, list(map(str, plugin.assignment)), list(map(str, plugin.student)))
    roster = roster_of(Path.cwd())
    if roster is not None and plugin.student:
        wanted = {composed(str(name)) for name in plugin.student}
        roster = {name: who for name, who in roster.items() if composed(name) in wanted}
    said = enrol(grades, roster)
    path = Path(plugin.to or default)
    _open_and_write(path, writer, grades, is_named=bool(plugin.to))
    plugin.log.info("Exporting grades to %s", path)
    for sentence in said:
        plugin.log.warning(visible(sentence))


def _refresh(taught: Class) -> None:
    """See that lateness costs what it costs by the rules and extensions of today."""
    names = sorted({graded.result.assignment for graded in results(taught)})
    for name, why in refreshed(taught, names)[1].items():
        say(f"note: {name} is exported as the last run left it: {why}", sys.stderr)


def _person(row: Any) -> Person:
    names = [str(part) for part in (row.first_name, row.last_name) if part]
    lms_id, email = str(row.lms_user_id or ""), str(row.email or "")
    return Person(str(row.id), lms_id, " ".join(names), email)


def _without_doubles(grades: Grades) -> None:
    """Take out whom the gradebook was told of, and graded under a name that only looks the same."""
    graded = {student for student, _ in grades.scores}
    near = alike(graded)
    for student in sorted(grades.people.keys() - graded):
        if twin := near.get(composed(student)):
            grades.people[twin] = merged(grades.people.pop(student), grades.people[twin])


def _without_shared(grades: Grades) -> list[str]:
    """Take out by what an LMS would give one student another's points for the same assignment."""
    did: dict[str, set[str]] = {}
    for student, assignment in grades.scores:
        did.setdefault(student, set()).add(assignment)
    said = []
    for kind in ("lms_id", "sis_id", "login", "email"):
        known: dict[str, list[Person]] = {}
        for person in grades.people.values():
            if value := getattr(person, kind):
                known.setdefault(_looked_up(value), []).append(person)
        for people in known.values():
            done = [did.get(person.student, set()) for person in people]
            if sum(map(len, done)) == len(set[str]().union(*done)):
                continue
            grades.people |= {one.student: replace(one, **{kind: ""}) for one in people}
            names = _shortened([readable(one.student) for one in people])
            said.append(
                f"{names}: all have the same {kind}; the rows leave it out, mend the roster."
            )
    return said


def _looked_up(name: str) -> str:
    """A name as an LMS compares it, at least: without case, and as it is composed."""
    return composed(composed(name).casefold()).strip()


def _loosely(name: str) -> str:
    """The same as a database may compare it that knows no accents and widths, or a spreadsheet.

    In a name that a roster lists it is taken as it is: two of a class may be Muller and Müller.
    """
    signs = unicodedata.normalize("NFKD", name)
    plain_signs = (sign for sign in signs if unicodedata.category(sign) not in UNWEIGHED)
    key = "".join(plain_signs).casefold().strip()
    with suppress(ArithmeticError, ValueError):
        key = str(NUMBERS.normalize(Decimal(key))) if NUMBER.fullmatch(key) else key
    return key


def _shown(grades: Grades) -> dict[str, str]:
    """By student: what stands in Canvas's column of names.

    Where a row's number and login find nobody, Canvas takes whoever has this name, or has it with
    the last name first. So it is no folder's whom nobody has listed where a roster says who is who,
    nor one that is called as somebody else.
    """
    owners: dict[tuple[str, ...], set[str]] = {}
    for one in filter(lambda one: one.name, grades.people.values()):
        owners.setdefault(_words(one.name), set()).add(one.student)
    shown = {one.student: one.name or readable(one.student) for one in grades.people.values()}
    for one in filter(lambda one: not one.name, grades.people.values()):
        is_others = not owners.get(_words(shown[one.student]), set()) <= {one.student}
        is_known = not grades.listed or one.student in grades.listed or one.lms_id
        if is_others or not is_known:
            shown[one.student] += FOLDER
    return shown


def _words(name: str) -> tuple[str, ...]:
    """A name by its words, in whatever order."""
    return tuple(sorted(_loosely(name).replace(",", " ").split()))


def _in_order(grades: Grades) -> list[Person]:
    return sorted(grades.people.values(), key=lambda person: person.student)


def _scores(grades: Grades, person: Person) -> Iterable[str]:
    """One cell for each assignment; empty, which changes nothing there, if nothing was graded."""
    found = (grades.scores.get((person.student, name)) for name in grades.points)
    return ["" if score is None else number(score) for score in found]


def _open_and_write(path: Path, writer: Any, grades: Grades, *, is_named: bool) -> None:
    if path.is_dir():
        raise CourseError(f"{path} is a folder; name a file, such as {path / 'export.csv'}.")
    text = io.StringIO(newline="")
    writer(grades, text)
    with in_words(path):
        write_table(path, text.getvalue(), is_named=is_named)


def _count(many: int, one: str, more: str) -> str:
    return f"{many} {one if many == 1 else more}"


def _shortened(names: Sequence[str], most: int = 10) -> str:
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")

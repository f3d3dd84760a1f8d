"""Grades for a learning management system: Canvas and Moodle as CSV, Gradescope's results.json.

`python -m autograder export canvas|moodle|gradescope`, or through nbgrader:
`nbgrader export --exporter autograder.classroom.exports.CanvasExporter`. A roster beside submitted/
(roster.csv: student, lms_id, name, email, and if wanted sis_id, login, section) says who is who
there; without one nbgrader's own table of students does.
"""

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nbgrader.api import (
    Assignment,
    BaseCell,
    Grade,
    Gradebook,
    GradeCell,
    Notebook,
    Student,
    SubmittedAssignment,
    SubmittedNotebook,
    TaskCell,
)
from nbgrader.plugins.export import ExportPlugin

from autograder.classroom.counted import Points, number
from autograder.classroom.marks import Seconds, given, lateness, points_of, table_of
from autograder.common.course import Course, CourseError
from autograder.common.failures import in_words, write_whole
from autograder.common.names import alike, composed, plain, readable, say, visible
from autograder.common.results import NotebookResult, Result, Verdict

if TYPE_CHECKING:
    from autograder.classroom.grade import Class
    from autograder.judge.assignment import Assignment as Read
    from autograder.judge.assignment import Cell

ROSTER = "roster.csv"
COLUMNS = {  # field -> headings that mean it, lower case
    "student": ("student", "student_id", "student id", "id number", "username"),
    "lms_id": ("lms_id", "lms id", "lms_user_id", "canvas_id", "id"),
    "name": ("name", "full name", "student name"),
    "email": ("email", "email address", "e-mail"),
    "sis_id": ("sis_id", "sis user id"),
    "login": ("login", "sis login id"),
    "section": ("section", "group"),
}
NUMBER = re.compile(r"[-+]?\d+(\.\d+)?([eE][-+]?\d+)?")
# Where a field begins for somebody: at the start, or after what separates fields in some country,
# with quotes and blanks between; and the sign that would make a formula of it. A gap is taken
# whole, so that looking for them is linear.
BEGINNING = re.compile(r"([\s\"“”„,;|，；｜]+)([=+\-@＝＋－＠﹦﹢﹣﹫]?)")
POINTS_ROW = re.compile(r"(points)\s+(possible)", re.IGNORECASE)  # Canvas: no student's line
SEPARATOR = re.compile(r"[\n\r\v\f\t,;|，；｜]")


@dataclass(frozen=True)
class Person:
    """One student as the learning management system knows them."""

    student: str
    lms_id: str = ""
    name: str = ""
    email: str = ""
    sis_id: str = ""
    login: str = ""
    section: str = ""


@dataclass(frozen=True)
class Line:
    """One graded cell of one submission, as it stands in the gradebook."""

    student: str
    notebook: str
    cell: str
    score: float  # by hand where that was done, otherwise automatic; with extra credit
    auto: float
    points: float
    waiting: bool  # for a grade by hand
    stale: bool = False  # graded by hand, and changed since


@dataclass
class Grades:
    """What is to be exported: points by student and assignment."""

    points: dict[str, float] = field(default_factory=dict)  # assignment -> its most points
    scores: dict[tuple[str, str], float] = field(default_factory=dict)  # (student, assignment)
    waiting: int = 0  # answers that nobody graded by hand yet
    stale: int = 0  # those that somebody did, and that have changed since
    people: dict[str, Person] = field(default_factory=dict)


def run(taught: "Class", kind: str, out: Path | None = None) -> int:
    """Write one kind of export for a class and say where it lies."""
    from autograder.classroom.store import reading

    writers = {"canvas": write_canvas, "moodle": write_moodle}
    if kind == "gradescope":
        return _run_gradescope(taught, out or taught.folder / "gradescope")
    if kind not in writers:
        raise CourseError(f"There is no export {kind!r}; write canvas, moodle or gradescope.")
    path = out or taught.folder / f"{kind}.csv"
    _refresh(taught)
    with reading(taught) as book:
        grades = read_grades(book)
    said = enrol(grades, roster_of(taught.folder, taught.course.root))
    _open_and_write(path, writers[kind], grades)
    say(f"{kind}: {taught.course.show(path)}")
    for sentence in said:
        say(sentence)
    return 0


def book_lines(book: Gradebook, assignment: str) -> list[Line]:
    """Every graded cell of every submission of an assignment, by one query."""
    base, graded, tasks = map(table_of, (BaseCell, GradeCell, TaskCell))
    rows = (
        book.db.query(
            SubmittedAssignment.student_id.label("student"),
            Notebook.name.label("notebook"),
            base.c.name.label("cell"),
            Grade.auto_score,
            Grade.manual_score,
            Grade.extra_credit,
            Grade.needs_manual_grade,
            graded.c.max_score.label("points"),
            tasks.c.max_score.label("task_points"),
        )
        .select_from(Grade)
        .join(SubmittedNotebook, Grade.notebook_id == SubmittedNotebook.id)
        .join(Notebook, SubmittedNotebook.notebook_id == Notebook.id)
        .join(SubmittedAssignment, SubmittedNotebook.assignment_id == SubmittedAssignment.id)
        .join(Assignment, SubmittedAssignment.assignment_id == Assignment.id)
        .join(base, Grade.cell_id == base.c.id)
        .outerjoin(graded, graded.c.id == base.c.id)
        .outerjoin(tasks, tasks.c.id == base.c.id)
        .filter(table_of(Assignment).c.name == assignment)
        .all()
    )
    return [_line(row) for row in rows]


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


def roster_of(*folders: Path) -> dict[str, Person] | None:
    """The roster in the first of these folders that has one."""
    for folder in folders:
        if (folder / ROSTER).is_file():
            return read_roster(folder / ROSTER)
    return None


def read_roster(path: Path) -> dict[str, Person]:
    """Who is who in the learning management system, by student."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            table = list(csv.reader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise CourseError(f"{path} cannot be read ({error}); save it as CSV in UTF-8.") from error
    headings = [heading.strip().lower() for heading in table[0]] if table else []
    places = {
        field_: next(headings.index(name) for name in names if name in headings)
        for field_, names in COLUMNS.items()
        if any(name in headings for name in names)
    }
    if "student" not in places:
        raise CourseError(
            f"{path} has no column 'student'; its first line should read "
            "student,lms_id,name,email (sis_id, login and section if you need them)."
        )
    people: dict[str, Person] = {}
    for line, row in enumerate(table[1:], 2):
        values = {
            name: row[place].strip() if place < len(row) else "" for name, place in places.items()
        }
        student = values["student"]
        if student in people:
            raise CourseError(f"{path}, line {line}: {student} is there twice; keep one line.")
        if student:
            people[student] = Person(**values)
    return people


def enrol(grades: Grades, roster: Mapping[str, Person] | None) -> list[str]:
    """Put the roster's names on the grades; returns what a person should know, in sentences."""
    said = []
    if roster is not None:
        roster = {person.student: person for person in _known_as(grades.people, roster.values())}
        unknown = sorted(set(grades.people) - set(roster))
        if unknown:
            said.append(
                f"{_count(len(unknown), 'student is', 'students are')} not in {ROSTER}: "
                f"{_shortened([readable(name) for name in unknown])}; their rows carry only what "
                "the gradebook knows, add them to the roster or match them by hand."
            )
        known = grades.people
        grades.people = {
            student: _merged(known.get(student), roster[student]) for student in roster
        }
        grades.people |= {student: known[student] for student in unknown}
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
    for person in _in_order(grades):
        name = readable(person.student)
        login = person.login or name
        shown = POINTS_ROW.sub(r"\1-\2", person.name or name)
        row = [shown, person.lms_id, person.sis_id, login, person.section]
        writer.writerow([*map(safe, row), *_scores(grades, person)])


def write_moodle(grades: Grades, file: Any) -> None:
    """Moodle's grade import CSV: map "Email address" or "ID number", then each assignment."""
    writer = csv.writer(file)
    head = ["First name", "Last name", "ID number", "Email address"]
    writer.writerow([*head, *(safe(f"Assignment: {name} (Real)") for name in grades.points)])
    for person in _in_order(grades):
        first, _, last = person.name.rpartition(" ")
        row = [first, last, person.lms_id or readable(person.student), person.email]
        writer.writerow([*map(safe, row), *_scores(grades, person)])


def gradescope(
    result: Result, cells: Mapping[tuple[str, str], "Cell"], points: Points | None = None
) -> dict[str, Any]:
    """Gradescope's results.json for one submission.

    A test's visible part is shown at once; its points, and that it has a hidden part at all, only
    after the grades are published. No time is told: an answer could sleep for as many seconds as a
    hidden test's input says. `cells` are the instructor's, by (notebook, grade_id); `points` are
    those of the tests as the gradebook has them, with what lateness takes off.
    """
    tests: list[dict[str, Any]] = []
    for notebook in result.notebooks:
        several = len(result.notebooks) > 1
        for verdict in notebook.verdicts:
            cell = cells.get((notebook.name, verdict.test))
            tests += _cases(notebook if several else None, verdict, cell)
    reasons = [result.reason, *(f"{n.name}: {n.reason}" for n in result.notebooks if n.reason)]
    score = sum(verdict.score for n in result.notebooks for verdict in n.verdicts)
    points = points or Points(score)
    return {
        "score": round(points.counts, 6),
        "output": "\n".join(reason for reason in [*reasons, points.reckoned] if reason),
        "output_format": "text",
        "test_output_format": "text",
        "test_name_format": "text",
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "tests": tests,
    }


def safe(value: str) -> str:
    """A cell that no spreadsheet takes for a formula, wherever it is cut; numbers stay numbers."""
    text = visible(value)
    if NUMBER.fullmatch(text):
        return text
    return BEGINNING.sub(_quoted, f"\n{text}")[1:]


def _quoted(found: re.Match[str]) -> str:
    gap, sign = found.groups()
    return f"{gap}'{sign}" if sign and SEPARATOR.search(gap) else found[0]


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
        from autograder.classroom.classes import Class

        course = Course.find()
        folder = Path(self.to or "gradescope")
        _run_gradescope(Class(course, course.root), folder, self.student, self.assignment)


def _export(plugin: ExportPlugin, book: Gradebook, writer: Any, default: str) -> None:
    from autograder.classroom.classes import Class

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
    _open_and_write(path, writer, grades)
    plugin.log.info("Exporting grades to %s", path)
    for sentence in said:
        plugin.log.warning(visible(sentence))


def _refresh(taught: "Class") -> None:
    """See that lateness costs what it costs by the rules and extensions of today."""
    from autograder.classroom.journal import results
    from autograder.classroom.keeper import refreshed

    refreshed(taught, sorted({graded.result.assignment for graded in results(taught)}))


def _run_gradescope(
    taught: "Class", folder: Path, students: Sequence[str] = (), assignments: Sequence[str] = ()
) -> int:
    from autograder.classroom.journal import read_journal, results
    from autograder.classroom.keeper import refreshed
    from autograder.classroom.store import reading

    wanted = {
        (student, name): result
        for (student, name), result in sorted(read_journal(taught).items())
        if (not students or student in students) and (not assignments or name in assignments)
    }
    there, gone = refreshed(taught, sorted({name for _, name in wanted}))
    late = lateness(there, results(taught))
    with reading(taught) as book:
        points = {name: _of_tests(book, found, late[name]) for name, found in there.items()}
    known = {name: _cells_by_name(found) for name, found in there.items()}
    written = 0
    for (student, name), result in wanted.items():
        if name not in there:
            continue
        path = folder / student / name / "results.json"
        made = gradescope(result, known[name], points[name].get(plain(student)))
        with in_words(path):
            write_whole(path, json.dumps(made, indent=1, ensure_ascii=False))
        written += 1
    shown = taught.course.show(folder)
    say(f"gradescope: {shown}/<student>/<assignment>/results.json, {written} submissions")
    say("Answers graded by hand are not in them; Gradescope has its own place for those.")
    for name, words in gone.items():
        say(f"left out: {name} {words}")
    return 0


def _cells_by_name(assignment: "Read") -> dict[tuple[str, str], "Cell"]:
    return {
        (notebook.name, cell.grade_id): cell
        for notebook in assignment.notebooks
        for cell in notebook.cells
        if cell.grade_id
    }


def _of_tests(book: Gradebook, assignment: "Read", seconds: Seconds) -> dict[str, Points]:
    """What everybody's tests gave, by student, with what lateness takes off."""
    tests = {key for key, cell in _cells_by_name(assignment).items() if cell.kind == "test"}
    earned: dict[str, float] = {}
    for line in book_lines(book, assignment.name):
        if (line.notebook, line.cell) in tests:
            earned[line.student] = earned.get(line.student, 0.0) + line.score
    return {
        student: replace(points, given=earned[student])
        for student, points in points_of(book.db, assignment.name, seconds).items()
        if student in earned
    }


def _cases(
    notebook: NotebookResult | None, verdict: Verdict, cell: "Cell | None"
) -> list[dict[str, Any]]:
    """One test cell as Gradescope shows it: at once what is visible, later what is not."""
    name = f"{notebook.name}: {verdict.test}" if notebook else verdict.test
    earned = {"score": round(verdict.score, 6), "max_score": verdict.points}
    passed = verdict.status == "passed"
    case = {"name": name, "status": "passed" if passed else "failed", "output": verdict.told}
    if cell is not None and not cell.hidden:
        return [case | earned | {"visibility": "visible"}]
    later = case | earned | {"visibility": "after_published"}
    if cell is None or not cell.stub.strip():
        return [later]
    if passed or verdict.hidden:
        now = {"name": f"{name} (visible tests)", "status": "passed", "output": ""}
    else:
        now = case | {"name": f"{name} (visible tests)"}
    return [now | {"visibility": "visible"}, later]


def _line(row: Any) -> Line:
    points, cell = row.points if row.points is not None else row.task_points, given(row)
    return Line(
        student=row.student,
        notebook=row.notebook,
        cell=row.cell,
        score=cell.worth,
        auto=cell.auto or 0.0,
        points=points or 0.0,
        waiting=bool(row.needs_manual_grade) and not cell.stale,
        stale=cell.stale,
    )


def _person(row: Any) -> Person:
    names = [str(part) for part in (row.first_name, row.last_name) if part]
    lms_id, email = str(row.lms_user_id or ""), str(row.email or "")
    return Person(str(row.id), lms_id, " ".join(names), email)


def _known_as(known: Mapping[str, Person], listed: Iterable[Person]) -> Iterator[Person]:
    """A roster's people under the gradebook's names: it lists their folders, or what was graded."""
    names = {readable(name): name for name in known}
    people = list(listed)
    # a name that the roster writes in another way than its folder, and no other line writes as that
    near = alike(names.keys() - {person.student for person in people})
    own = alike(person.student for person in people)
    for person in people:
        what = composed(person.student)
        twin = near.get(what, "") if what in own else ""
        name = names.get(person.student) or names.get(twin) or plain(person.student)
        yield replace(person, student=name)


def _without_doubles(grades: Grades) -> None:
    """Take out whom the gradebook was told of, and graded under a name that only looks the same."""
    graded = {student for student, _ in grades.scores}
    near = alike(graded)
    for student in sorted(grades.people.keys() - graded):
        if twin := near.get(composed(student)):
            grades.people[twin] = _merged(grades.people.pop(student), grades.people[twin])


def _merged(known: Person | None, listed: Person) -> Person:
    """The roster's line, with what only the gradebook knows filled in."""
    if known is None:
        return listed
    gaps = {name: value for name, value in vars(known).items() if not getattr(listed, name)}
    return replace(listed, **gaps)


def _in_order(grades: Grades) -> list[Person]:
    return sorted(grades.people.values(), key=lambda person: person.student)


def _scores(grades: Grades, person: Person) -> Iterable[str]:
    """One cell for each assignment; empty, which changes nothing there, if nothing was graded."""
    found = (grades.scores.get((person.student, name)) for name in grades.points)
    return ["" if score is None else number(score) for score in found]


def _open_and_write(path: Path, writer: Any, grades: Grades) -> None:
    if path.is_dir():
        raise CourseError(f"{path} is a folder; name a file, such as {path / 'export.csv'}.")
    text = io.StringIO(newline="")
    writer(grades, text)
    with in_words(path):
        write_whole(path, text.getvalue())


def _count(many: int, one: str, more: str) -> str:
    return f"{many} {one if many == 1 else more}"


def _shortened(names: Sequence[str], most: int = 10) -> str:
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")

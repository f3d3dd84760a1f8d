"""Who is who in the learning management system: roster.csv beside submitted/."""

import csv
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from autograder.common.course import CourseError
from autograder.common.names import alike, composed, plain, readable
from autograder.common.whole import require_file

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


def roster_of(*folders: Path) -> dict[str, Person] | None:
    """The roster in the first of these folders that has one."""
    for folder in folders:
        if os.path.lexists(folder / ROSTER):
            return read_roster(folder / ROSTER)
    return None


def read_roster(path: Path) -> dict[str, Person]:
    """Who is who in the learning management system, by student."""
    try:
        require_file(path)
        with path.open(newline="", encoding="utf-8-sig") as file:
            # strict: a quote that nobody has closed would take in all who stand below it
            table = list(csv.reader(file, strict=True))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise CourseError(
            f"{path} cannot be read ({error}); save it as CSV in UTF-8, with every quote closed."
        ) from error
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


def known_as(known: Mapping[str, Person], listed: Iterable[Person]) -> Iterator[Person]:
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


def merged(known: Person | None, listed: Person) -> Person:
    """The roster's line, with what only the gradebook knows filled in."""
    if known is None:
        return listed
    gaps = {name: value for name, value in vars(known).items() if not getattr(listed, name)}
    return replace(listed, **gaps)

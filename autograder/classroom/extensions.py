"""More time for one student: given, listed and taken back where nbgrader keeps it.

What an extension does to a grade is reckoned where all grades are (`counted`, `store`); the journal
notes it as it notes every change, with the command that made it.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from sqlalchemy import select

from autograder.classroom.gradebook import reading
from autograder.classroom.gradebook_rows import STUDENT, add_row, id_of
from autograder.classroom.keeper import refreshed
from autograder.classroom.marks import ASSIGNMENT, SUBMISSION
from autograder.common.course import CourseError
from autograder.common.names import alike, composed, plain, readable, say, shown
from autograder.judge.toml_tables import nearest

if TYPE_CHECKING:
    from nbgrader.api import Gradebook

    from autograder.classroom.classes import Class

UNITS = {"w": "weeks", "d": "days", "h": "hours", "m": "minutes"}
AMOUNT = re.compile(r"(?:(\d+)w)?(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?")
LONGEST = timedelta(days=3650)


def extend(taught: "Class", student: str, chapter: str, amount: str) -> None:
    """Give a student so much longer for an assignment, in place of what was given before.

    Args:
        taught: the class.
        student: by the name in the gradebook or of a folder in submitted/.
        chapter: the assignment.
        amount: such as 2d, 36h or 1w2d; 0 takes it back.
    """
    more = read_amount(amount)
    if not student:
        raise CourseError("Whose? Write STUDENT CHAPTER AMOUNT, such as ada homework1 2d.")
    refreshed(taught, [chapter], student=_folder(taught, student))  # whose gradebook is it?
    with reading(taught) as book, book.db.no_autoflush:
        who = _known(taught, book, student)
        book.update_or_create_assignment(chapter)
        book.update_or_create_student(who)
        _require_row(book, chapter, who)
        book.grant_extension(chapter, who, minutes=round(more.total_seconds() / 60))
    refreshed(taught, [chapter], student=_folder(taught, who))
    much = f"has {said(more)} longer" if more else "has no extension any more"
    say(f"{readable(who)}, {chapter}: {much}")


def tell(taught: "Class", students: Sequence[str] = ()) -> None:
    """Print all extensions, or those of some students."""
    with reading(taught) as book:
        wanted = {_known(taught, book, one) for one in students}
        found = [row for row in _given(book) if not wanted or row[0] in wanted]
    for who, chapter, more in sorted(found):
        say(f"{readable(who)}, {chapter}: {said(more)}")
    if not found:
        say("Nobody has an extension." if not wanted else "No extension was given there.")


def read_amount(text: str) -> timedelta:
    """How long an amount is, such as 2d, 36h or 1w2d; 0 is nothing."""
    found = AMOUNT.fullmatch(text)
    if text == "0":
        return timedelta()
    if not text or found is None:
        raise CourseError(
            f"{shown(text)} is no length of time; write weeks, days, hours and minutes, such as "
            "2d, 36h or 1w2d, or 0 to take an extension back."
        )
    parts = zip(UNITS.values(), found.groups(), strict=True)
    try:
        more = timedelta(**{unit: int(number) for unit, number in parts if number})
    except (OverflowError, ValueError):
        more = timedelta.max
    if more > LONGEST:
        raise CourseError(f"{shown(text)} is more than ten years; write less.")
    return more


def said(more: timedelta) -> str:
    """A length of time in words."""
    minutes, words = round(more.total_seconds() / 60), []
    for unit, size in (("day", 1440), ("hour", 60), ("minute", 1)):
        many, minutes = divmod(minutes, size)
        if many:
            words.append(f"{many} {unit}{'' if many == 1 else 's'}")
    return " ".join(words) or "0 minutes"


def _known(taught: "Class", book: "Gradebook", student: str) -> str:
    """A student's name in the gradebook; CourseError if there is nobody of that name."""
    names = {str(id) for id in book.db.execute(select(STUDENT.c.id)).scalars()}
    if taught.submitted.is_dir():
        names |= set(map(plain, taught.students()))
    by_name = {readable(name): name for name in names} | {name: name for name in names}
    found = by_name.get(student) or by_name.get(alike(by_name).get(composed(student), ""))
    if found is None:
        raise CourseError(
            f"There is no student {shown(student)} in the gradebook or in submitted/"
            f"{nearest(student, by_name)}. Who has handed in nothing yet is entered by: nbgrader "
            "db student add NAME"
        )
    return found


def _require_row(book: "Gradebook", chapter: str, who: str) -> None:
    """See that there is a row for the extension, and no more: nbgrader's own way would make one of
    each cell too, by which a student who has handed in nothing has 0 and answers that wait.
    """
    db = book.db.connection()
    keys = {"assignment_id": id_of(db, ASSIGNMENT, name=chapter), "student_id": who}
    if id_of(db, SUBMISSION, **keys) is None:
        add_row(db, SUBMISSION, **keys)


def _folder(taught: "Class", who: str) -> str:
    """The folder of a student of that name; the name itself if there is none."""
    folders = taught.students() if taught.submitted.is_dir() else []
    return next((folder for folder in folders if plain(folder) == who), who)


def _given(book: "Gradebook") -> Iterator[tuple[str, str, timedelta]]:
    tables = SUBMISSION.join(ASSIGNMENT, SUBMISSION.c.assignment_id == ASSIGNMENT.c.id)
    asked = select(SUBMISSION.c.student_id, ASSIGNMENT.c.name, SUBMISSION.c.extension)
    for who, chapter, more in book.db.execute(asked.select_from(tables)):
        if more:
            yield str(who), str(chapter), more

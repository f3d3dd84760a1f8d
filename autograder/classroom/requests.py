"""Questions about grades for the person who grades: listed, answered, and kept in the history.

An answer is a line of the journal, as every change of a grade is; the student reads it on the
feedback page, below the question.
"""

import shutil
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from autograder.classroom import changes
from autograder.classroom.asked import SHOWN, Question, questions, replies
from autograder.classroom.changes import Answer, Change
from autograder.classroom.counted import number
from autograder.classroom.journal import Journal, read_changes, results
from autograder.classroom.keeper import refreshed
from autograder.classroom.report_terminal import pieces
from autograder.common.course import CourseError
from autograder.common.names import plain, readable, say, shown

if TYPE_CHECKING:
    from autograder.classroom.classes import Class
    from autograder.classroom.journal_lines import Who
    from autograder.common.results import Result

LONGEST_REPLY = 4000  # characters
WIDTH = 96


class Request(NamedTuple):
    """A question, whose it is, and what was answered."""

    student: str
    assignment: str
    asked: Question
    reply: str  # empty if there is none yet
    grade: Change | None  # as it was last seen

    @property
    def head(self) -> str:
        """Which it is, in a line."""
        points = f", {number(self.grade.points.counts)} points" if self.grade else ""
        below = f", below {self.asked.below}" if self.asked.below else ""
        who = readable(plain(self.student))
        return f"{self.asked.name[:SHOWN]}  {who}, {self.assignment}{below}{points}"


def tell(taught: "Class", *, answered: bool = False) -> None:
    """Print the questions that wait for an answer, oldest first; or those that have one."""
    found = [one for one in _requests(taught) if bool(one.reply) == answered]
    for one in sorted(found, key=lambda one: one.grade.when if one.grade else ""):
        _tell_one(one)
    if not found:
        say("No question was answered." if answered else "No question waits for an answer.")
    elif not answered:
        say(f'Answer one with: python -m autograder requests ID --answer "..."{taught.option}')


def tell_one(taught: "Class", name: str) -> None:
    """Print one question, with its answer."""
    _tell_one(_named(taught, name))


def answer(taught: "Class", name: str, text: str) -> None:
    """Answer a question, in place of what was answered before.

    Args:
        taught: the class.
        name: of the question, as `tell` shows it, or how it begins.
        text: what its student is to read.
    """
    said = text.strip()
    if not name:
        raise CourseError(
            "Which question? Write its id before --answer; list them with: "
            f"python -m autograder requests{taught.option}"
        )
    if not said:
        raise CourseError(f"What is the answer to {shown(name)}? Write it after --answer.")
    if len(said) > LONGEST_REPLY:
        raise CourseError(f"The answer has {len(said)} characters; {LONGEST_REPLY} at most.")
    one = _named(taught, name)
    if one.grade is None:  # graded before there was a history
        refreshed(taught, [one.assignment], student=one.student)
    with Journal(taught) as journal:
        grade = changes.read(journal.last_change(one.student, one.assignment))
        if grade is None:
            raise CourseError(f"Nothing is known of that grade; grade {one.assignment} first.")
        reply = Answer(one.asked.name, one.asked.text, said)
        journal.changed(changes.written(changes.answered(grade, reply)))
        journal.settle()
    _, gone = refreshed(taught, [one.assignment], student=one.student)
    who = f"{readable(plain(one.student))}, {one.assignment}"
    if one.assignment in gone:
        say(f"{who}: answered; the page is not written yet, as {gone[one.assignment]}")
    else:
        say(f"{who}: answered, on the feedback page.")


def waiting(taught: "Class", asking: Iterable["Result"]) -> int:
    """How many questions of these results wait for an answer."""
    asked = [((one.student, one.assignment), found) for one in asking if (found := questions(one))]
    told = read_changes(taught) if asked else {}
    return sum(len(found) - len(replies(told.get(who, ()), found)) for who, found in asked)


def _requests(taught: "Class") -> Iterator[Request]:
    """All questions of the newest works."""
    told: Mapping[Who, list[dict]] | None = None
    for result in (graded.result for graded in results(taught)):
        asked = questions(result)
        if not asked:
            continue
        if told is None:
            told = read_changes(taught)
        lines = told.get((result.student, result.assignment), [])
        said, grade = replies(lines, asked), changes.read(lines[-1]) if lines else None
        for one in asked:
            reply = said.get(one.name, "")
            yield Request(result.student, result.assignment, one, reply, grade)


def _named(taught: "Class", name: str) -> Request:
    """The question of that name; CourseError if there is none, or more than one."""
    found = [one for one in _requests(taught) if name and one.asked.name.startswith(name)]
    if not found:
        raise CourseError(
            f"There is no question {shown(name)}; list them with: "
            f"python -m autograder requests{taught.option}"
        )
    if len(found) > 1:
        names = ", ".join(one.asked.name for one in found[:10])
        raise CourseError(f"{shown(name)} begins several questions: {names}; write more of one.")
    return found[0]


def _tell_one(one: Request) -> None:
    say(one.head)
    _tell_lines(one.asked.text, "    ")
    if one.reply:
        _tell_lines(one.reply, "  → ")


def _tell_lines(text: str, margin: str) -> None:
    """A text below a head, indented all through: no line of it passes for a head.

    Nor does a part of a line, which a terminal would show where its next line begins.
    """
    columns = min(WIDTH, shutil.get_terminal_size((WIDTH + len(margin), 0)).columns - len(margin))
    for line in text.splitlines():
        for piece in pieces(line, columns) or [""]:
            say(margin + piece)

"""A demo class: 24 made-up students, of whom it is known beforehand what each should score.

Their work is built from the release.
Answers are the reference, variants of it, known misconceptions, nothing, or something broken.
"""

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from autograder.authoring.answers import Answer, answered, read_answers
from autograder.authoring.source import Source, read_source
from autograder.classroom.classes import Class
from autograder.common.course import Course

STUDENTS = (
    *("ada", "amir", "bela", "carlos", "chidi", "dana", "elif", "emeka"),
    *("fatima", "grace", "hana", "ivan", "jana", "kofi", "lena", "mei"),
    *("noor", "olga", "pablo", "quinn", "ravi", "sofia", "tomas", "yuki"),
)


@dataclass
class Work:
    """One student's notebook for one chapter, in the making."""

    source: Source
    notebook: dict
    variants: list[Answer]
    misconceptions: list[Answer]
    lost: set[str] = field(default_factory=set)  # tests that will fail
    text: str | None = None  # what the file holds if it is no notebook
    refused: bool = False  # it cannot be run, so all points are lost
    missing: bool = False  # no file at all
    answered: set[str] = field(default_factory=set)  # cells that were filled in

    def write_answers(
        self, answers: Sequence[Answer] = (), only: Sequence[str] | None = None
    ) -> None:
        """Fill in the reference, with some questions answered by `answers`, or `only` these."""
        filled = answered(self.source, answers)
        for cell in filled.of_kind("solution", "manual"):
            if only is None or cell.id in only:
                self.cell(cell.id)["source"] = _unmarked(cell.source)
                self.answered.add(cell.id)
        for answer in answers:
            self.lost |= set(answer.fails)

    def cell(self, id: str) -> dict:
        """The notebook's cell with this id."""
        return next(cell for cell in self.notebook["cells"] if cell["id"] == id)

    def lose_question(self, solution: str) -> None:
        """All tests of this solution will fail."""
        self.lost |= set(self.source.tests_of(solution))

    def expected(self) -> dict[str, int]:
        """Points by test id, as they should come out."""
        return {
            cell.id: 0 if self.refused or cell.id in self.lost else cell.points
            for cell in self.source.of_kind("test")
        }


Maker = Callable[[Work, int], None]  # the number varies what is done from student to student


def reference(work: Work, number: int) -> None:
    """Everything as in the reference."""
    work.write_answers()


def variant(work: Work, number: int) -> None:
    """Everything right, in other words; students in a row have different ones."""
    by_question: dict[str, list[Answer]] = {}
    for answer in work.variants:
        by_question.setdefault(answer.question, []).append(answer)
    work.write_answers([answers[number % len(answers)] for answers in by_question.values()])


def one_mistake(work: Work, number: int) -> None:
    """One known misconception, the rest right."""
    work.write_answers(_rotated(work.misconceptions, number)[:1])


def two_mistakes(work: Work, number: int) -> None:
    """Known misconceptions in two questions."""
    mistakes = _rotated(work.misconceptions, number)
    second = [answer for answer in mistakes if answer.question != mistakes[0].question]
    work.write_answers([*mistakes[:1], *second[:1]])


def nothing(work: Work, number: int) -> None:
    """The release as it was given out."""
    for cell in work.source.of_kind("solution"):
        work.lose_question(cell.id)


def half(work: Work, number: int) -> None:
    """The first half of the questions, then time ran out."""
    questions = [cell.id for cell in work.source.of_kind("solution")]
    done = questions[: len(questions) // 2]
    work.write_answers(only=done)
    for question in questions[len(done) :]:
        work.lose_question(question)


def syntax_error(work: Work, number: int) -> None:
    """One cell that Python cannot read."""
    work.write_answers()
    cell = _pick(work, number)
    work.cell(cell)["source"] = work.cell(cell)["source"] + "\n\ndef unfinished(:\n"
    work.lose_question(cell)


def deleted_answer(work: Work, number: int) -> None:
    """One solution cell is gone."""
    work.write_answers()
    cell = _pick(work, number)
    work.notebook["cells"].remove(work.cell(cell))
    work.lose_question(cell)


def deleted_test(work: Work, number: int) -> None:
    """One test cell is gone; the answers are right, and the test comes back when graded."""
    work.write_answers()
    tests = work.source.tests_of(_pick(work, number))
    work.notebook["cells"].remove(work.cell(tests[0]))


def doubled_cell(work: Work, number: int) -> None:
    """One solution cell was copied, marks and all, and the copy is the one that was mended."""
    work.write_answers()
    cell = work.cell(_pick(work, number))
    work.notebook["cells"].append(cell | {"id": "copied"})
    cell["source"] = f"# a first try, left behind\n{cell['source']}\n\nraise ValueError('old')\n"


def wrong_file(work: Work, number: int) -> None:
    """Something that is no notebook, under the right name."""
    work.text = "Here is my homework, sorry for the format.\n"
    work.refused = True


def cut_off(work: Work, number: int) -> None:
    """A notebook of which only the first part arrived."""
    work.write_answers()
    text = json.dumps(work.notebook)
    work.text = text[: len(text) // 2]
    work.refused = True


def missing_file(work: Work, number: int) -> None:
    """An empty folder."""
    work.missing = work.refused = True


MAKERS: tuple[Maker, ...] = (
    *(reference,) * 4,
    *(variant,) * 4,
    *(one_mistake,) * 6,
    *(two_mistakes,) * 2,
    nothing,
    half,
    syntax_error,
    deleted_answer,
    deleted_test,
    doubled_cell,
    wrong_file,
    cut_off,
)


class Chapter:
    """What students' work for a chapter is made from, read once for all of them."""

    def __init__(self, course: Course, chapter: str) -> None:
        """Read the chapter's source, its release and the known answers to it."""
        self._source = read_source(course.source(chapter))
        self._release = course.release(chapter).read_text(encoding="utf-8")
        self._variants = read_answers(course.variants(chapter), self._source)
        self._misconceptions = read_answers(course.misconceptions(chapter), self._source)

    def work(self, maker: Maker, number: int) -> Work:
        """What one student hands in, made in this way from the release."""
        notebook = json.loads(self._release)
        made = Work(self._source, notebook, self._variants, self._misconceptions)
        maker(made, number)
        return made


def make_class(course: Course, chapters: Sequence[str], folder: Path) -> Class:
    """Write the class's submissions and, beside them, what each should score (expected.json)."""
    taught = Class(course, folder)
    expected: dict[str, dict[str, dict[str, int]]] = {student: {} for student in STUDENTS}
    shutil.rmtree(taught.submitted, ignore_errors=True)
    for place, chapter in enumerate(chapters):
        given = Chapter(course, chapter)
        for number, student in enumerate(STUDENTS):
            work = given.work(maker(number, place), number + place)
            hand_in(work, taught.submitted / student / chapter / f"{chapter}.ipynb")
            expected[student][chapter] = work.expected()
    (folder / "expected.json").write_text(json.dumps(expected, indent=1), encoding="utf-8")
    return taught


def maker(number: int, place: int) -> Maker:
    """The last student hands in a broken file of another kind in each chapter."""
    if MAKERS[number] is cut_off:
        return (cut_off, missing_file)[place % 2]
    return MAKERS[number]


def hand_in(work: Work, path: Path) -> None:
    """Put a student's work where `nbgrader collect` would."""
    path.parent.mkdir(parents=True)
    if not work.missing:
        text = work.text if work.text is not None else json.dumps(work.notebook)
        path.write_text(text, encoding="utf-8")


def _unmarked(source: str) -> str:
    """An answer as a student would leave it: without the instructor's marker lines."""
    lines = (line for line in source.splitlines() if "### BEGIN" not in line)
    return "\n".join(line for line in lines if "### END" not in line)


def _rotated(answers: Sequence[Answer], number: int) -> list[Answer]:
    """The answers from another start for each student, in steps that mix the questions."""
    start = 5 * number % max(1, len(answers))
    return [*answers[start:], *answers[:start]]


def _pick(work: Work, number: int) -> str:
    solutions = work.source.of_kind("solution")
    return solutions[number % len(solutions)].id

"""Every known mistake as a submission of its own, graded as any class is: which are caught, named.

`mutants` tries the mistakes beside the engine; here each goes the whole way that a student's work
goes, files, processes and journal included.
"""

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from autograder.authoring import mutants
from autograder.authoring.answers import Answer, read_answers
from autograder.authoring.source import read_source
from autograder.classroom import demo, grade
from autograder.classroom.classes import Class
from autograder.classroom.journal import read_journal
from autograder.common.course import Course
from autograder.common.results import Result


@dataclass(frozen=True)
class Found:
    """What came of one mistake."""

    chapter: str
    mistake: Answer
    lost: frozenset[str]  # tests
    named: frozenset[str]  # ids of mistakes that its student reads of
    shares: frozenset[str]  # ids of those from which it cannot be told, see `mutants`

    @property
    def words(self) -> str:
        """What is not as it should be; empty if nothing is."""
        meant = set(self.mistake.fails)
        if self.lost != meant:
            return f"loses {', '.join(sorted(self.lost)) or 'nothing'}, not {', '.join(meant)}"
        if self.named - self.shares - {self.mistake.id}:
            return f"is taken for {', '.join(sorted(self.named))}"
        return "" if self.named else "is not named"


def command(course: Course, chapters: Sequence[str], jobs: int) -> int:
    """Grade the class, print what is not as it should be and the counts; 1 if anything is."""
    folder = course.root / "build" / "in-class"
    shutil.rmtree(folder, ignore_errors=True)
    taught = Class(course, folder)
    taught.submitted.mkdir(parents=True)
    made = {chapter: _hand_in(course, chapter, taught) for chapter in chapters}
    for chapter, mistakes in made.items():
        if not mistakes:
            print(f"left out: {chapter} has no misconceptions.py")
    grade.grade(taught, chapters, (), jobs)
    found = list(_found(course, made, read_journal(taught)))
    for one in found:
        if one.words:
            print(f"?? {one.chapter} {one.mistake.id} {one.mistake.name}: {one.words}")
    odd = sum(bool(one.words) for one in found)
    caught = sum(bool(one.lost) for one in found)
    named = sum(one.mistake.id in one.named for one in found)
    shared = sum(bool(one.named) for one in found) - named
    print(
        f"{len(found)} mistakes handed in singly: {caught} caught, {named} named, "
        f"{shared} named as one that cannot be told from it; {odd} surprises"
    )
    return 1 if odd else 0


def _hand_in(course: Course, chapter: str, taught: Class) -> dict[str, Answer]:
    """Write a submission for each mistake of a chapter; the mistakes by student."""
    source = read_source(course.source(chapter))
    mistakes = read_answers(course.misconceptions(chapter), source)
    made = {}
    given = demo.Chapter(course, chapter)
    for mistake in mistakes:
        student = mistake.id.lower()
        work = given.work(lambda work, _, only=mistake: work.write_answers([only]), 0)
        demo.hand_in(work, taught.submitted / student / chapter / f"{chapter}.ipynb")
        made[student] = mistake
    return made


def _found(
    course: Course,
    made: dict[str, dict[str, Answer]],
    graded: dict[tuple[str, str], Result],
) -> Iterator[Found]:
    """What came of every mistake, from the journal."""
    table = course.root / "book" / "mutants.tsv"
    alike = {
        (row.chapter, row.id): row.named.removeprefix("as ").split(" or ")
        for row in (mutants.load(table) if table.is_file() else ())
    }
    for chapter, mistakes in made.items():
        for student, mistake in mistakes.items():
            notebooks = graded[student, chapter].notebooks
            verdicts = [verdict for notebook in notebooks for verdict in notebook.verdicts]
            lost = frozenset(one.test for one in verdicts if one.score < one.points)
            named = frozenset(one.misconception for one in verdicts if one.misconception)
            yield Found(
                chapter, mistake, lost, named, frozenset(alike.get((chapter, mistake.id), ()))
            )

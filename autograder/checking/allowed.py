"""What a broken rule would cost a student who checks a notebook before handing it in.

The rules are those beside the notebook, of the course around it, or of the hand-out. Only texts are
read here, as grading reads them; what shows while an answer runs is found when it is graded.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

from autograder.common import handed_out
from autograder.common.course import Course, CourseError
from autograder.common.scopes import facts
from autograder.judge.broken_rules import broken_rules
from autograder.judge.made_of import Place
from autograder.judge.parcel import Unreadable, read_file
from autograder.judge.raw_cells import read_cells
from autograder.judge.rules import Rules, read_rules


class Cell(Protocol):
    """A code cell of the student's notebook."""

    @property
    def name(self) -> str:
        """Its grade_id."""
        ...

    @property
    def kind(self) -> str:
        """ "solution", "test", or what else it is."""
        ...

    @property
    def source(self) -> str:
        """Its text."""
        ...


def not_allowed(path: Path, cells: Sequence[Cell]) -> tuple[dict[str, str], str]:
    """The tests whose points a broken rule costs, with its words; and why no rule was read."""
    course, chapter = _course_of(path)
    handed = handed_out.find(path)
    beside = path.resolve().parent / "rules.toml"
    if course:
        elsewhere = course.source(chapter).parent / beside.name
    else:
        elsewhere = handed.rules if handed else beside
    names = [cell.name for cell in cells if cell.kind == "solution"]
    try:
        rules = read_rules(beside if os.path.lexists(beside) else elsewhere, chapter, names)
    except CourseError as error:
        return {}, f"What the questions do not allow was not looked for: {error}"
    return dict(_broken(cells, rules, released_texts(path))), ""


def released_texts(path: Path) -> set[str]:
    """Digests of the texts of all cells as they were handed out; none where nobody knows."""
    course, chapter = _course_of(path)
    if course:
        return _released(course, chapter)
    handed = handed_out.find(path)
    return handed.texts() if handed else set[str]()


def _broken(cells: Sequence[Cell], rules: Rules, given: set[str]) -> Iterator[tuple[str, str]]:
    """Each test of a question that breaks a rule; cells with a text in `given` are no student's."""
    texts = [cell for cell in cells if cell.kind != "test"]
    theirs = [cell for cell in texts if handed_out.digest(cell.source) not in given]
    imports = [cell.source for cell in cells if cell.kind not in ("test", "solution")]
    for solutions, tests in _questions(cells):
        needed = {name for test in tests for name in facts(test.source).needed}
        for cell in solutions:
            others = [other.source for other in theirs if other is not cell]
            names = sorted(needed & facts(cell.source).bound)
            place = _place(cell, tests, cells, theirs)
            question = rules.for_question(cell.name)
            found = broken_rules(cell.source, question, others, imports, names, place)
            yield from ((test.name, found[0].words) for test in tests if found)


def _place(
    cell: Cell, tests: Sequence[Cell], cells: Sequence[Cell], theirs: Sequence[Cell]
) -> Place:
    """Where an answer stands among the student's cells, and its tests."""
    order = {id(one): number for number, one in enumerate(cells)}
    others = [order[id(other)] for other in theirs if other is not cell]
    last = max(order[id(one)] for one in [cell, *tests])
    return Place(
        sum(number < order[id(cell)] for number in others), sum(number < last for number in others)
    )


def _questions(cells: Sequence[Cell]) -> list[tuple[list[Cell], list[Cell]]]:
    """Solution cells, and the tests that follow them."""
    found: list[tuple[list[Cell], list[Cell]]] = []
    for cell in cells:
        if cell.kind == "solution":
            if not found or found[-1][1]:
                found.append(([], []))
            found[-1][0].append(cell)
        elif cell.kind == "test" and found:
            found[-1][1].append(cell)
    return found


def _course_of(path: Path) -> tuple[Course | None, str]:
    """The course in which a notebook lies, and the chapter whose name its own begins with."""
    try:
        course = Course.find(path.parent)
    except CourseError:
        return None, path.stem
    named = [chapter for chapter in course.chapters() if path.stem.startswith(chapter)]
    return (course, named[-1]) if named else (None, path.stem)


def _released(course: Course, chapter: str) -> set[str]:
    """Digests of a release's texts; none where it cannot be read."""
    path = course.release(chapter)
    try:
        cells, _ = read_cells(read_file(path), path.name)
    except (Unreadable, CourseError, OSError):
        return set()
    return {handed_out.digest(cell.source) for cell in cells}

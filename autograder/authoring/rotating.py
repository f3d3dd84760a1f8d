"""Other numbers for the hidden tests, drawn from a course's seed: the same seed gives the same.

What rotates is where hidden tests draw from: whole numbers that are written as `seed=7` or
`manual_seed(7)` between BEGIN HIDDEN TESTS and END HIDDEN TESTS. Equal ones within a test stay
equal. Then every known answer is tried. A test with which one comes out otherwise gets other
numbers once more, and in the end keeps those that it had.
"""

import ast
import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from autograder.authoring.mutants import try_answers
from autograder.authoring.source import BEGIN_HIDDEN, END_HIDDEN, HEADERS, read_source
from autograder.common.course import Course, CourseError
from autograder.common.whole import write_whole

TRIES = 5  # how often a test gets other numbers
LEAST, MOST = 100, 9_999  # of the numbers that are drawn
KEPT = -1  # this test keeps the numbers that it had


@dataclass
class Rotated:
    """What became of a chapter."""

    numbers: Counter[str] = field(default_factory=Counter)  # changed, by test
    without: list[str] = field(default_factory=list)  # hidden tests that draw from no number
    kept: list[str] = field(default_factory=list)  # tests that would not take others


def rotate(course: Course, chapter: str, seed: int) -> Rotated:
    """Give a chapter's hidden tests the numbers of a seed; its source is written anew, at the end.

    Raises:
        CourseError: if a known answer comes out otherwise than it should, whatever the numbers.
    """
    path = course.source(chapter)
    before = path.read_bytes().decode("utf-8")
    again: dict[str, int] = {}
    for _ in range(TRIES + 1):
        new, found = with_numbers_of(before.replace("\r\n", "\n"), seed, again)
        surprised = _surprised(course, chapter, new)
        if not surprised:
            write_whole(path, new.replace("\n", "\r\n") if "\r\n" in before else new)
            found.kept = sorted(test for test, times in again.items() if times == KEPT)
            return found
        for test in surprised & {*found.numbers}:
            again[test] = again.get(test, 0) + 1 if again.get(test, 0) < TRIES - 1 else KEPT
    raise CourseError(
        f"{course.show(path)}: a known answer comes out otherwise than it should, whatever the "
        f"numbers; the file is as it was. python -m autograder mutants {chapter} says which."
    )


def _surprised(course: Course, chapter: str, text: str) -> set[str]:
    """Tests that say something else of a known answer than they should, with this source."""
    return {
        test
        for outcome in try_answers(course, chapter, read_source(course.source(chapter), text))
        for test in {*outcome.failed} ^ {*outcome.expected}
    }


def with_numbers_of(text: str, seed: int, again: Mapping[str, int] = {}) -> tuple[str, Rotated]:
    """A source with the numbers of a seed.

    Args:
        text: of the source.
        seed: the course's.
        again: how often a test has got other numbers, or KEPT.
    """
    lines, found = text.split("\n"), Rotated()
    for test, start, end in _hidden(lines):
        block = "\n".join(lines[start:end])
        places = [] if again.get(test) == KEPT else list(_places(block))
        if not places and again.get(test) != KEPT:
            found.without.append(test)
        found.numbers[test] += len(places)
        drawn = _drawn(f"{seed}:{test}:{again.get(test, 0)}", [value for value, *_ in places])
        rows = [row.encode("utf-8") for row in block.split("\n")]
        for value, row, left, right in reversed(places):
            rows[row] = rows[row][:left] + str(drawn[value]).encode() + rows[row][right:]
        lines[start:end] = [row.decode("utf-8") for row in rows]
    found.numbers += Counter()  # without those that are 0
    return "\n".join(lines), found


def _hidden(lines: Sequence[str]) -> Iterator[tuple[str, int, int]]:
    """Each test with hidden lines: its name, and where they begin and end."""
    test, start = "", 0
    for number, line in enumerate(lines):
        if line.startswith("# %%"):
            header = HEADERS["test"].match(line)
            test = header["id"] if header else ""
        elif test and line.strip() == BEGIN_HIDDEN:
            start = number + 1
        elif test and line.strip() == END_HIDDEN:
            yield test, start, number


def _places(block: str) -> Iterator[tuple[int, int, int, int]]:
    """Numbers to draw from: value, row, and the bytes where it stands; in reading order."""
    found = [
        (node.value, node.lineno - 1, node.col_offset, node.end_col_offset or 0)
        for call in ast.walk(ast.parse(block))
        if isinstance(call, ast.Call)
        for node in _seeds(call)
        if isinstance(node, ast.Constant) and type(node.value) is int
    ]
    return iter(sorted(found, key=lambda place: place[1:]))


def _seeds(call: ast.Call) -> Iterator[ast.expr]:
    yield from (keyword.value for keyword in call.keywords if keyword.arg == "seed")
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    if name == "manual_seed" and len(call.args) == 1:
        yield call.args[0]


def _drawn(key: str, values: Sequence[int]) -> dict[int, int]:
    """A number for each of the values, other ones for other values."""
    drawn: dict[int, int] = {}
    for value in dict.fromkeys(values):
        times = 0
        while value not in drawn:
            text = f"{key}:{len(drawn)}:{times}"
            number = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
            number = LEAST + number % (MOST - LEAST + 1)
            if number not in drawn.values():
                drawn[value] = number
            times += 1
    return drawn

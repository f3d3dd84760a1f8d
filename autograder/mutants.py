"""Grade the tests: the reference and every variant must pass them, every misconception must fail.

Cells run in this process, so only for answers of the course's own.
"""

import contextlib
import io
import warnings
from collections.abc import Iterable
from dataclasses import dataclass

from autograder.answers import Answer, answered, read_answers
from autograder.course import Course, CourseError
from autograder.source import BEGIN_SOLUTION, END_SOLUTION, Source, fill_in, read_source

STUB = "raise NotImplementedError"


@dataclass(frozen=True)
class Outcome:
    """What the tests said of one answer."""

    chapter: str
    question: str
    name: str
    kind: str  # reference, stub, variant or misconception
    failed: dict[str, str]  # test id -> first line of what it said
    expected: tuple[str, ...]  # ids of the tests that should fail

    @property
    def surprising(self) -> bool:
        """Whether other tests failed than should."""
        return set(self.failed) != set(self.expected)


def run_tests(source: Source) -> dict[str, str]:
    """Run all code cells in order; the tests that failed, with the first line of their message."""
    namespace: dict = {"__name__": "__main__"}
    failed: dict[str, str] = {}
    for cell in source.cells:
        if not cell.is_code:
            continue
        said = _run(cell.source, f"<{cell.id or cell.kind}>", namespace)
        if said is not None and cell.kind == "setup":
            raise CourseError(f"{source.path}: the setup cell stops with {said}; mend it first.")
        if said is not None and cell.kind == "test":
            failed[cell.id] = said
    return failed


def try_answers(course: Course, chapter: str) -> Iterable[Outcome]:
    """Every known answer of a chapter, and what came of it."""
    source = read_source(course.source(chapter))
    tests = tuple(cell.id for cell in source.of_kind("test"))
    yield Outcome(chapter, "all", "reference", "reference", run_tests(source), ())
    yield Outcome(chapter, "all", "untouched", "stub", run_tests(unanswered(source)), tests)
    variants = read_answers(course.variants(chapter), source)
    for answer in [*variants, *read_answers(course.misconceptions(chapter), source)]:
        yield _outcome(chapter, source, answer)


def unanswered(source: Source) -> Source:
    """The source as a student first gets it, hidden tests included."""
    cells = [
        fill_in(cell, stub(cell.source)) if cell.kind == "solution" else cell
        for cell in source.cells
    ]
    return Source(source.path, tuple(cells), source.digest)


def alone(source: Source, solution: str) -> Source:
    """The source with one question only; the others do not touch its tests."""
    kept = {solution, *source.tests_of(solution)}
    cells = [cell for cell in source.cells if cell.kind == "setup" or cell.id in kept]
    return Source(source.path, tuple(cells), source.digest)


def stub(source: str) -> str:
    """A solution cell with each marked region replaced by an error."""
    lines: list[str] = []
    inside = False
    for line in source.splitlines():
        if line.strip() == BEGIN_SOLUTION:
            inside = True
            lines.append(line.replace(BEGIN_SOLUTION, STUB))
        elif line.strip() == END_SOLUTION:
            inside = False
        elif not inside:
            lines.append(line)
    return "\n".join(lines)


def _outcome(chapter: str, source: Source, answer: Answer) -> Outcome:
    kind = "misconception" if answer.is_wrong else "variant"
    name = f"{answer.id} {answer.name}".strip()
    failed = run_tests(answered(alone(source, answer.question), [answer]))
    return Outcome(chapter, answer.question, name, kind, failed, answer.fails)


def _run(code: str, name: str, namespace: dict) -> str | None:
    """Run one cell; None, or what went wrong. As in nbgrader, output on stderr is a failure."""
    output = io.StringIO()
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("always")
        with contextlib.redirect_stderr(output):
            try:
                exec(compile(code, name, "exec"), namespace)
            except Exception as error:  # noqa: BLE001  (whatever the answer raises is a result)
                return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    said = output.getvalue().strip()
    return f"printed on stderr: {said.splitlines()[0]}" if said else None

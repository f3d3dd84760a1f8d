"""Grade the tests: the reference and every variant must pass them, every misconception must fail.

`try_answers` runs the cells in this process, so only for answers of the course's own; it says what
fails. `diagnosed` runs the misconceptions as grading does and says what their students would read.
"""

import contextlib
import csv
import io
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from autograder.authoring.answers import Answer, answered, read_answers
from autograder.authoring.known import Block, Run, blocks, run_all
from autograder.authoring.source import (
    BEGIN_SOLUTION,
    END_SOLUTION,
    Source,
    fill_in,
    read_source,
)
from autograder.common.course import Course, CourseError
from autograder.common.results import TestRun
from autograder.common.whole import write_whole
from autograder.judge.diagnose import first_difference, name_misconception
from autograder.judge.differences import keep
from autograder.judge.rehearsal import as_graded

STUB = "raise NotImplementedError"
OWN, DIFFERENCE, NOTHING = "by name", "by the first difference", "not at all"
COLUMNS = ("chapter", "question", "id", "name", "message", "caught", "named")


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


@dataclass(frozen=True)
class Row:
    """One misconception in the table: what catches it, and what its student reads."""

    chapter: str
    question: str
    id: str
    name: str
    message: str
    caught: tuple[str, ...]  # tests, those that fail in their hidden part with " (hidden)"
    named: str  # OWN, "as ID or ID", "as ID" (wrong), DIFFERENCE or NOTHING
    surprises: tuple[str, ...] = ()  # what is not as it should be, in words

    @property
    def by_name(self) -> bool:
        """Whether its student reads the message that is meant for it, and no other."""
        return self.named == OWN


def command(course: Course, chapters: Sequence[str], run_for: Any = None) -> int:
    """Print the table, chapter by chapter, and keep it for the book; 1 if there is a surprise.

    Args:
        course: the course.
        chapters: names of chapters.
        run_for: `run_for(chapter)` gives a context manager that enters as a `known.Run`; without
            it the tests run in this process and nothing is diagnosed.
    """
    surprises, found = 0, []
    for chapter in chapters:
        for outcome in try_answers(course, chapter):
            if outcome.kind != "misconception" or run_for is None:
                surprises += _print_outcome(outcome)
        if run_for is not None:
            with run_for(chapter) as run:
                rows = diagnosed(course, chapter, run)
            surprises += sum(map(_print_row, rows))
            found += rows
    if found:
        save(course.root / "book" / "mutants.tsv", found)
        print(_counts(found))
    print(f"{surprises} {'surprise' if surprises == 1 else 'surprises'}")
    return 1 if surprises else 0


def diagnosed(course: Course, chapter: str, run: Run) -> list[Row]:
    """Hand in every misconception of a chapter, and see what catches it and what is said of it."""
    source = read_source(course.source(chapter))
    answers = read_answers(course.misconceptions(chapter), source)
    references, went = run_all(source, answers, run)
    made = blocks(answers, references, went)
    return [_row(chapter, answer, made[answer.question], went[answer.id]) for answer in answers]


def save(path: Path, rows: Sequence[Row]) -> None:
    """Write the table for the book; chapters that were not run keep their rows."""
    run = {row.chapter for row in rows}
    kept = [row for row in load(path) if row.chapter not in run] if path.is_file() else []
    table = sorted([*kept, *rows], key=lambda row: row.chapter)  # stable: in the files' order
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter="\t", lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in table:
        caught = ", ".join(row.caught)
        fields = row.chapter, row.question, row.id, row.name, row.message, caught, row.named
        writer.writerow(fields)
    write_whole(path, text.getvalue())


def load(path: Path) -> list[Row]:
    """Read the table that `save` wrote."""
    with path.open(newline="", encoding="utf-8") as file:
        return [
            Row(**{**fields, "caught": tuple(filter(None, fields["caught"].split(", ")))})
            for fields in csv.DictReader(file, delimiter="\t")
        ]


def run_tests(source: Source) -> dict[str, str]:
    """Run all code cells in order; the tests that failed, with the first line of their message."""
    namespace: dict = {"__name__": "__main__"}
    failed: dict[str, str] = {}
    for cell in source.cells:
        if not cell.is_code:
            continue
        with as_graded():
            said = _run(cell.source, f"<{cell.id or cell.kind}>", namespace)
        if said is not None and cell.kind == "setup":
            raise CourseError(f"{source.path}: the setup cell stops with {said}; mend it first.")
        if said is not None and cell.kind == "test":
            failed[cell.id] = said
    return failed


def try_answers(course: Course, chapter: str, source: Source | None = None) -> Iterable[Outcome]:
    """Every known answer of a chapter, and what came of it; by default with the source it has."""
    source = source or read_source(course.source(chapter))
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
    cells = [c for c in source.cells if c.kind in ("setup", "code") or c.id in kept]
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


def _row(chapter: str, answer: Answer, block: Block, runs: Mapping[str, TestRun]) -> Row:
    failed = [run for run in runs.values() if run.status != "passed"]
    caught = tuple(run.test + " (hidden)" * run.in_hidden for run in failed)
    named = _named(answer, failed, block, tuple(runs.values()))
    surprises = []
    if not failed:
        surprises.append("no test fails: write one that does")
    elif {run.test for run in failed} != set(answer.fails):
        surprises.append(
            f"should fail {', '.join(answer.fails)} by its fails=: correct that, or the tests"
        )
    if named.startswith("as ") and answer.id not in named.split():
        surprises.append("is taken for another mistake: a test should tell the two apart")
    row = Row(chapter, answer.question, answer.id, answer.name, answer.message, caught, named)
    return replace(row, surprises=tuple(surprises))


def _named(answer: Answer, failed: Sequence[TestRun], block: Block, runs: Sequence[TestRun]) -> str:
    """What the failed tests together say of a misconception."""
    found = [
        name_misconception(run, block.known, block.references.get(run.test), runs) for run in failed
    ]
    ids = {one.id: None for named in found if named for one in (named.known, *named.others)}
    if list(ids) == [answer.id]:
        return OWN
    if ids:
        return f"as {' or '.join(ids)}"
    pairs = [first_difference(keep(run.transcript), block.references[run.test]) for run in failed]
    return DIFFERENCE if any(pairs) else NOTHING


def _print_row(row: Row) -> bool:
    """Print a misconception's line; whether it is surprising."""
    mark = "??" if row.surprises else "ok"
    caught = ", ".join(row.caught) or "nothing"
    print(f"{mark} {row.question:<24} {row.id:<7} {row.name:<40} {row.named:<24} {caught}")
    for surprise in row.surprises:
        print(f"   {row.id} {surprise}")
    return bool(row.surprises)


def _print_outcome(outcome: Outcome) -> bool:
    """Print another answer's line; whether it is surprising."""
    mark = "??" if outcome.surprising else "ok"
    says = ", ".join(outcome.failed) or "passes"
    print(f"{mark} {outcome.question:<24} {outcome.kind:<7} {outcome.name:<40} {says}", flush=True)
    if outcome.surprising:
        print(f"   expected to fail: {', '.join(outcome.expected) or 'nothing'}")
        for test, message in outcome.failed.items():
            print(f"   {test}: {message}")
    return outcome.surprising


def _counts(rows: Sequence[Row]) -> str:
    caught = sum(bool(row.caught) for row in rows)
    named = sum(row.by_name for row in rows)
    return f"{len(rows)} misconceptions: {caught} caught, {named} diagnosed by name"


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

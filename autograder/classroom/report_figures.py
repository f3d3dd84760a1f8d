"""Work out what a report on a class says, from what was read: nothing is read or written here."""

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from autograder.classroom import similar
from autograder.classroom.book_lines import Line
from autograder.classroom.counted import NEAR, Points
from autograder.classroom.report_data import (
    KINDS,
    Item,
    Look,
    Mistake,
    Question,
    Report,
    Row,
    Score,
    Times,
    short_names,
)
from autograder.classroom.statuses import STATUSES
from autograder.common import headings
from autograder.common.names import plain, readable
from autograder.common.results import Flag, Result, Verdict

if TYPE_CHECKING:
    from autograder.judge.assignment import Assignment, Notebook


SAID = 3  # sentences of what went wrong for one student on the page
DISCRIMINATES = 10  # submissions from which on a correlation says something


def compose(
    students: Sequence[str],
    assignments: Mapping[str, "Assignment"],
    lines: Mapping[str, Sequence[Line]],
    journal: Mapping[tuple[str, str], Result],
    known: Mapping[str, tuple[str, str, str]],
    points: Mapping[str, Mapping[str, Points]] | None = None,
    more: Sequence[Look] = (),
) -> Report:
    """Put the report together from what was read.

    Args:
        students: everybody with a submission.
        assignments: the instructor's, by chapter.
        lines: the gradebook's, by chapter.
        journal: results by student and chapter.
        known: the name, place to read and link of each misconception, by id.
        points: what counts, by chapter and student; else the gradebook's lines do.
        more: what else a person should look at.
    """
    results = {
        name: [
            replace(result, student=readable(plain(result.student)))
            for (_, chapter), result in sorted(journal.items())
            if chapter == name
        ]
        for name in assignments
    }
    asked = {name: _questions(found) for name, found in assignments.items()}
    looks = [look for name in assignments for look in _looks(assignments[name], results[name])]
    looks += more
    counted = {name: _counted(lines.get(name, ())) for name in assignments}
    table = tuple(_rows(students, assignments, lines, journal, points or {}))
    seconds = [(r.seconds, r.student, r.assignment) for found in results.values() for r in found]
    return Report(
        chapters=tuple(assignments),
        rows=table,
        questions=tuple(question for found in asked.values() for question in found),
        shares={
            (result.student, name): _shares(result, asked[name], counted[name])
            for name, found in results.items()
            for result in found
        },
        items=tuple(item for name in assignments for item in _items(asked[name], results[name])),
        mistakes=tuple(
            sorted(
                (m for name in assignments for m in _mistakes(name, results[name], known)),
                key=lambda mistake: (-mistake.students, mistake.chapter, mistake.id),
            )
        ),
        looks=tuple(sorted(looks, key=lambda look: list(KINDS).index(look.kind))),
        times=_times(seconds),
        notebooks={
            name: tuple(notebook.name for notebook in found.notebooks)
            for name, found in assignments.items()
        },
        titles={name: _title(found) for name, found in assignments.items()},
        graded=len(seconds),
    )


def _title(assignment: "Assignment") -> str:
    """A notebook's own title, where an assignment is one notebook; else the assignment's name."""
    if len(assignment.notebooks) > 1:
        return assignment.name
    cells = [cell for notebook in assignment.notebooks for cell in notebook.cells]
    words = headings.of_notebook(cell.source for cell in cells if cell.cell_type == "markdown")
    return words or assignment.name


def _questions(assignment: "Assignment") -> list[Question]:
    """The questions of an assignment: tests under one heading belong together."""
    found = []
    for notebook in assignment.notebooks:
        groups: dict[str, list] = {}
        heading = ""
        for cell in notebook.cells:
            if cell.cell_type == "markdown" and cell.kind in ("markdown", "readonly"):
                heading = headings.title(cell.source) or heading
            elif cell.kind == "test":
                groups.setdefault(heading or _asked(notebook, cell.grade_id), []).append(cell)
        for title, cells in groups.items():
            found.append(
                Question(
                    chapter=assignment.name,
                    notebook=notebook.name,
                    label=headings.label(title),
                    title=title,
                    tests=tuple(cell.grade_id for cell in cells),
                    points=sum(cell.points for cell in cells),
                )
            )
    return found


def _asked(notebook: "Notebook", test: str) -> str:
    """What a test without any heading above it is about."""
    return " and ".join(notebook.question_of(test)) or test


def _rows(
    students: Sequence[str],
    assignments: Mapping[str, "Assignment"],
    lines: Mapping[str, Sequence[Line]],
    journal: Mapping[tuple[str, str], Result],
    points: Mapping[str, Mapping[str, Points]],
) -> Iterable[Row]:
    tests = {
        name: {
            (notebook.name, cell.grade_id): cell.points
            for notebook in found.notebooks
            for cell in notebook.cells
            if cell.kind == "test"
        }
        for name, found in assignments.items()
    }
    by_hand = {
        name: sum(
            cell.points
            for notebook in found.notebooks
            for cell in notebook.cells
            if cell.kind in ("manual", "task")
        )
        for name, found in assignments.items()
    }
    own: dict[tuple[str, str], list[Line]] = defaultdict(list)
    for name, found in lines.items():
        for line in found:
            own[line.student, name].append(line)
    short = short_names(assignments)
    for folder in sorted(students):
        student = plain(folder)
        counted = {name: points.get(name, {}).get(student) for name in assignments}
        scores = {
            name: _score(own[student, name], tests[name], by_hand[name], counted[name])
            for name in assignments
        }
        found = {name: journal.get((folder, name)) for name in assignments}
        wrong = dict.fromkeys(
            sentence
            for name in assignments
            for sentence in _wrong(short[name], scores[name], found[name])
        )
        yield Row(readable(student), scores, tuple(wrong), folder)


def _score(
    lines: Sequence[Line],
    tests: Mapping[tuple[str, str], float],
    by_hand_max: float,
    points: Points | None,
) -> Score:
    by_hand = [line for line in lines if (line.notebook, line.cell) not in tests]
    return Score(
        auto=sum(line.score for line in lines if (line.notebook, line.cell) in tests),
        auto_max=sum(tests.values()),
        written=sum(line.score for line in by_hand),
        waiting=sum(line.waiting for line in by_hand),
        points=points or Points(sum(line.score for line in lines)),
        most=sum(tests.values()) + by_hand_max,
        graded=bool(lines),
    )


def _wrong(start: str, score: Score, result: Result | None) -> Iterable[str]:
    """What went wrong in one submission, in sentences."""
    if score.points.late:
        yield f"{start}: {score.points.reckoned}"
    if result is None:
        if not score.graded:
            yield f"{start}: no work of this name was graded"
        return
    reasons = dict.fromkeys([result.reason, *(notebook.reason for notebook in result.notebooks)])
    yield from (f"{start}: {reason}" for reason in reasons if reason)
    yield from (f"{start}: {_said(v)}" for v in _verdicts(result) if v.status != "passed")


def _said(verdict: Verdict) -> str:
    return verdict.told or verdict.said or STATUSES[verdict.status].sentence


def _verdicts(result: Result) -> list[Verdict]:
    return [verdict for notebook in result.notebooks for verdict in notebook.verdicts]


def _ran(result: Result) -> bool:
    return not result.reason and bool(_verdicts(result))


def _counted(lines: Iterable[Line]) -> dict[tuple[str, str, str], float]:
    """What cells count, by student, notebook and name: a person's word on a test comes first."""
    return {(readable(line.student), line.notebook, line.cell): line.score for line in lines}


def _earned(
    result: Result, question: Question, counted: Mapping[tuple[str, str, str], float]
) -> float | None:
    """Points that a submission got for a question; None if its notebook was not run."""
    for notebook in result.notebooks:
        if notebook.name == question.notebook and not notebook.reason and not result.reason:
            own = result.student, notebook.name
            found = (v for v in notebook.verdicts if v.test in question.tests)
            return sum(counted.get((*own, v.test), v.score) for v in found)
    return None


def _shares(
    result: Result, questions: Sequence[Question], counted: Mapping[tuple[str, str, str], float]
) -> tuple[float | None, ...]:
    earned = ((_earned(result, question, counted), question.points) for question in questions)
    return tuple(None if e is None else e / points if points else 1.0 for e, points in earned)


def _items(questions: Sequence[Question], results: Sequence[Result]) -> Iterable[Item]:
    """Each question, followed by its tests."""
    ran = [result for result in results if _ran(result)]
    totals = [sum(verdict.score for verdict in _verdicts(result)) for result in ran]
    verdicts = [
        {(n.name, v.test): v for n in result.notebooks if not n.reason for v in n.verdicts}
        for result in ran
    ]
    for question in questions:
        keys = [(question.notebook, test) for test in question.tests]
        yield _item(question, "", question.points, keys, verdicts, totals)
        if len(keys) > 1:
            for key in keys:
                given = [found[key].points for found in verdicts if key in found]
                points = given[0] if given else 0.0
                yield _item(question, key[1], points, [key], verdicts, totals)


def _item(
    question: Question,
    test: str,
    points: float,
    keys: Sequence[tuple[str, str]],
    verdicts: Sequence[Mapping[tuple[str, str], Verdict]],
    totals: Sequence[float],
) -> Item:
    found = [
        ([given[key] for key in keys if key in given], total)
        for given, total in zip(verdicts, totals, strict=True)
        if any(key in given for key in keys)
    ]
    scores = [sum(verdict.score for verdict in given) for given, _ in found]
    rest = [total - score for score, (_, total) in zip(scores, found, strict=True)]
    failed = [v for given, _ in found for v in given if v.status not in ("passed", "unanswered")]
    return Item(
        chapter=question.chapter,
        question=question.title,
        test=test,
        points=points,
        share=statistics.fmean(scores) / points if scores and points else 0.0,
        passed=sum(all(v.status == "passed" for v in given) for given, _ in found),
        graded=len(found),
        unanswered=sum(all(v.status == "unanswered" for v in given) for given, _ in found),
        discrimination=_correlation(scores, rest),
        said=tuple(Counter(_said(v) for v in failed).most_common(SAID)),
    )


def _correlation(scores: Sequence[float], rest: Sequence[float]) -> float | None:
    """Point-biserial (Pearson's) correlation of an item with the rest; None if it says nothing."""
    if len(scores) < DISCRIMINATES or _are_alike(scores) or _are_alike(rest):
        return None
    return statistics.correlation(scores, rest)


def _are_alike(values: Sequence[float]) -> bool:
    """Whether they differ by no more than sums of the same points may."""
    return max(values) - min(values) <= NEAR


def _mistakes(
    chapter: str, results: Sequence[Result], known: Mapping[str, tuple[str, str, str]]
) -> list[Mistake]:
    """The chapter's misconceptions and how many gave an answer that agrees with each."""
    who: dict[str, set[str]] = defaultdict(set)
    tests: dict[str, dict[str, None]] = defaultdict(dict)
    read: dict[str, str] = {}
    for result in results:
        for verdict in _verdicts(result):
            if verdict.misconception:
                who[verdict.misconception].add(result.student)
                tests[verdict.misconception][verdict.test] = None
                read[verdict.misconception] = verdict.read
    found = []
    for id, students in who.items():
        name, place, link = known.get(id, ("", "", ""))
        found.append(
            Mistake(chapter, id, name, tuple(tests[id]), len(students), place or read[id], link)
        )
    return found


def _looks(assignment: "Assignment", results: Sequence[Result]) -> Iterable[Look]:
    """Who, or which test, should be looked at."""
    for result in results:
        place = assignment.name
        if result.reason:
            yield Look("ungraded", result.student, place, result.reason)
        for notebook in result.notebooks:
            if notebook.reason and notebook.reason != result.reason:
                where = place if notebook.name == place else f"{place}/{notebook.name}"
                yield Look("ungraded", result.student, where, notebook.reason)
        for flag in result.flags:
            yield Look(flag.kind, result.student, flag.where, flag.words)
    yield from _broken(assignment.name, results)
    if words := assignment.rules.late.unknown(result.student for result in results):
        yield Look("late", f"{len(results)} students", assignment.name, words)
    for student, flags in similar_flags(assignment, results).items():
        for flag in flags:
            yield Look(flag.kind, student, flag.where, flag.words)


def similar_flags(assignment: "Assignment", results: Sequence[Result]) -> dict[str, list[Flag]]:
    """Near-identical answers within an assignment, by student."""
    found: dict[str, list[Flag]] = defaultdict(list)
    for notebook in assignment.notebooks:
        asked = {c.grade_id: (c.source, c.stub) for c in notebook.cells if c.kind == "solution"}
        answers = {
            result.student: {name: text for name, text in own.answers.items() if name in asked}
            for result in results
            for own in result.notebooks
            if own.name == notebook.name
        }
        for student, flags in similar.flags(answers, asked, notebook.name).items():
            found[student] += flags
    return dict(found)


def _broken(chapter: str, results: Sequence[Result]) -> Iterable[Look]:
    """Tests that could not be run: one line each, whoever they hit."""
    hit: dict[str, list[str]] = defaultdict(list)
    words: dict[str, str] = {}
    for result in results:
        for notebook in result.notebooks:
            within = chapter if notebook.name == chapter else f"{chapter}/{notebook.name}"
            for verdict in notebook.verdicts:
                if verdict.status == "test-error":
                    where = f"{within}/{verdict.test}"
                    hit[where].append(result.student)
                    words.setdefault(where, verdict.said or verdict.told)
    for where, students in hit.items():
        yield Look("test-error", f"{len(students)} students", where, words[where])


def _times(seconds: Sequence[tuple[float, str, str]]) -> Times:
    spent = [each for each, _, _ in seconds]
    return Times(
        total=sum(spent),
        median=statistics.median(spent) if spent else 0.0,
        slowest=tuple(sorted(seconds, reverse=True)[:3]),
    )

"""Grades for Gradescope: a results.json for each submission that this grader graded."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nbgrader.api import Gradebook

from autograder.authoring.building import source_folder
from autograder.classroom.book_lines import book_lines
from autograder.classroom.classes import LEFT_OUT
from autograder.classroom.counted import Points
from autograder.classroom.gradebook import reading
from autograder.classroom.journal import read_journal, results
from autograder.classroom.keeper import refreshed
from autograder.classroom.marks import Seconds, lateness, points_of
from autograder.common.course import CourseError
from autograder.common.failures import in_words
from autograder.common.names import plain, say
from autograder.common.results import NotebookResult, Result, Verdict
from autograder.common.whole import write_whole

if TYPE_CHECKING:
    from autograder.classroom.classes import Class
    from autograder.judge.assignment import Assignment as Read
    from autograder.judge.assignment import Cell


def results_json(
    result: Result, cells: Mapping[tuple[str, str], "Cell"], points: Points | None = None
) -> dict[str, Any]:
    """Gradescope's results.json for one submission.

    A test's visible part is shown at once; its points, and that it has a hidden part at all, only
    after the grades are published; so it is with all of a test that may go by what hidden tests of
    other questions found. No time is told: an answer could sleep for as many seconds as a
    hidden test's input says. `cells` are the instructor's, by (notebook, grade_id); `points` are
    those of the tests as the gradebook has them, with what lateness takes off.
    """
    tests: list[dict[str, Any]] = []
    for notebook in result.notebooks:
        several = len(result.notebooks) > 1
        for verdict in notebook.verdicts:
            cell = cells.get((notebook.name, verdict.test))
            tests += _cases(notebook if several else None, verdict, cell)
    reasons = [result.reason, *(f"{n.name}: {n.reason}" for n in result.notebooks if n.reason)]
    score = sum(verdict.score for n in result.notebooks for verdict in n.verdicts)
    points = points or Points(score)
    return {
        "score": round(points.counts, 6),
        "output": "\n".join(reason for reason in [*reasons, points.reckoned] if reason),
        "output_format": "text",
        "test_output_format": "text",
        "test_name_format": "text",
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "tests": tests,
    }


def write_gradescope(
    taught: "Class", folder: Path, students: Sequence[str] = (), assignments: Sequence[str] = ()
) -> int:
    """Write a class's files below a folder, of these students and assignments or all; returns 0."""
    given = [taught.submitted, taught.autograded, taught.feedback]
    given += [source_folder(taught.course, "."), taught.course.release(".").parent]
    for kept in (path.resolve() for path in given):
        place = folder.resolve()
        if place.is_relative_to(kept) or kept.is_relative_to(place):
            where = "lies in" if place.is_relative_to(kept) else "holds"
            raise CourseError(f"{folder} {where} {kept}, no place for results; name another one.")
    wanted = {
        (student, name): result
        for (student, name), result in sorted(read_journal(taught).items())
        if (not students or student in students) and (not assignments or name in assignments)
    }
    there, gone = refreshed(taught, sorted({name for _, name in wanted}))
    late = lateness(there, results(taught))
    with reading(taught) as book:
        points = {name: _of_tests(book, found, late[name]) for name, found in there.items()}
    known = {name: _cells_by_name(found) for name, found in there.items()}
    written = 0
    for (student, name), result in wanted.items():
        if name not in there:
            continue
        path = folder / student / name / "results.json"
        made = results_json(result, known[name], points[name].get(plain(student)))
        with in_words(path):
            write_whole(path, json.dumps(made, indent=1, ensure_ascii=False))
        written += 1
    shown = taught.course.show(folder)
    say(f"gradescope: {shown}/<student>/<assignment>/results.json, {written} submissions")
    say("Answers graded by hand are not in them; Gradescope has its own place for those.")
    for name, why in gone.items():
        say(f"left out: {name} {LEFT_OUT}: {why}")
    return 0


def _cells_by_name(assignment: "Read") -> dict[tuple[str, str], "Cell"]:
    return {
        (notebook.name, cell.grade_id): cell
        for notebook in assignment.notebooks
        for cell in notebook.cells
        if cell.grade_id
    }


def _of_tests(book: Gradebook, assignment: "Read", seconds: Seconds) -> dict[str, Points]:
    """What everybody's tests gave, by student, with what lateness takes off."""
    tests = {key for key, cell in _cells_by_name(assignment).items() if cell.kind == "test"}
    earned: dict[str, float] = {}
    for line in book_lines(book, assignment.name):
        if (line.notebook, line.cell) in tests:
            earned[line.student] = earned.get(line.student, 0.0) + line.score
    return {
        student: replace(points, given=earned[student])
        for student, points in points_of(book.db, assignment.name, seconds).items()
        if student in earned
    }


def _cases(
    notebook: NotebookResult | None, verdict: Verdict, cell: "Cell | None"
) -> list[dict[str, Any]]:
    """One test cell as Gradescope shows it: at once what is visible, later what is not."""
    name = f"{notebook.name}: {verdict.test}" if notebook else verdict.test
    earned = {"score": round(verdict.score, 6), "max_score": verdict.points}
    passed = verdict.status == "passed"
    case = {"name": name, "status": "passed" if passed else "failed", "output": verdict.told}
    if cell is not None and not cell.hidden and not verdict.leans:
        return [case | earned | {"visibility": "visible"}]
    later = case | earned | {"visibility": "after_published"}
    if cell is None or not cell.stub.strip() or verdict.leans:
        return [later]
    if passed or verdict.hidden:
        now = {"name": f"{name} (visible tests)", "status": "passed", "output": ""}
    else:
        now = case | {"name": f"{name} (visible tests)"}
    return [now | {"visibility": "visible"}, later]

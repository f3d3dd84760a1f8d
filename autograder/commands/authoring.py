"""The commands for those who write a course: build, release, mutants, rotate, handout."""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from autograder.commands import checking
from autograder.commands.parsers import Commands, add_chapters, add_command, add_jobs
from autograder.common.course import Course, CourseError
from autograder.common.names import say

MOST_CALLS = 300  # of one test, and
MOST_WORK = 2.0  # seconds that processors work for it: more is said


def add(commands: Commands) -> None:
    """Add them to the command line."""
    for run in (build, release, mutants, rotate):
        command = add_command(commands, run)
        add_chapters(command)
        if run is mutants:
            _add_mutants(command)
        if run is rotate:
            command.add_argument(
                "--seed", type=int, required=True, help="the course's, such as the year"
            )
    command = add_command(commands, handout)
    command.add_argument(
        "target", type=Path, metavar="DIR|ZIP", help="a new folder, or a file that ends in .zip"
    )


def build(options: argparse.Namespace) -> int:
    """Check the sources, write the instructor's notebooks to build/source, try all tests.

    In an ordinary nbgrader course, whose notebooks you write yourself, it tries the tests alone.
    """
    from autograder.authoring.building import build_instructor
    from autograder.authoring.source import read_source

    course = Course.find()
    if not course.chapters():
        return _try_notebooks(course, options.chapters)
    chapters = course.select(options.chapters)
    for chapter in chapters:
        path = build_instructor(course, chapter)
        source = read_source(course.source(chapter))
        points = sum(cell.points for cell in source.cells)
        minutes = sum(question.minutes for question in source.questions())
        say(f"{course.show(path)}: {points} points, about {minutes} minutes")
    _rehearse(course, chapters)
    return 0


def release(options: argparse.Namespace) -> int:
    """Try all tests, then make the students' notebooks in exercises/ through nbgrader."""
    from autograder.authoring import release as releasing
    from autograder.authoring.building import build_instructor

    course = Course.find()
    if not course.chapters():
        return _try_notebooks(course, options.chapters)
    chapters = course.select(options.chapters)
    for chapter in chapters:
        build_instructor(course, chapter)
    _rehearse(course, chapters)
    for chapter in chapters:
        path = releasing.release(course, chapter)
        say(f"{course.show(path)}: {path.stat().st_size // 1024} kB")
    _try_known_mistakes(course, chapters)
    return 0


def _try_notebooks(course: Course, names: Sequence[str]) -> int:
    """Try the tests of a course that has nbgrader's notebooks alone, which nbgrader hands out."""
    from autograder.classroom.classes import assignments

    chosen = assignments(course, names)
    if not chosen:
        raise CourseError(
            "There is nothing to try: solutions/ holds no chapter, and "
            f"{course.setting('source_directory', 'source')}/ no assignment."
        )
    _rehearse(course, chosen)
    for name in chosen:
        say(f"{name}: its tests run. To hand it out: nbgrader generate_assignment {name}")
    return 0


def _try_known_mistakes(course: Course, chapters: Sequence[str]) -> None:
    """What they give is known before the first class is graded, where one can be graded here."""
    from autograder.authoring import trials
    from autograder.authoring.building import read
    from autograder.authoring.processes import can_fork
    from autograder.isolation import machine

    if can_fork() and machine.probe().namespaces:
        assignments = {chapter: read(course, chapter) for chapter in chapters}
        trials.try_known_mistakes(course, assignments, os.cpu_count() or 1, sandboxed=True)


def mutants(options: argparse.Namespace) -> int:
    """Try every known answer against the tests; 1 if one does not come out as it should."""
    from autograder.authoring import mutants as mutation
    from autograder.authoring import trials
    from autograder.authoring.building import build_changed
    from autograder.authoring.processes import can_fork

    course = Course.find()
    chapters = course.select(options.chapters)
    build_changed(course, chapters)
    if options.in_class:
        from autograder.classroom import in_class

        return in_class.command(course, chapters, options.jobs)
    run_for = partial(trials.runner, course) if can_fork() else None
    return mutation.command(course, chapters, run_for)


def rotate(options: argparse.Namespace) -> int:
    """Give the hidden tests other numbers, drawn from a seed, and try all known answers."""
    from autograder.authoring import rotating

    course = Course.find()
    for chapter in course.select(options.chapters):
        found = rotating.rotate(course, chapter, options.seed)
        say(
            f"{chapter}: {found.numbers.total()} numbers of {len(found.numbers)} hidden tests are "
            f"those of seed {options.seed}; all known answers come out as they should."
        )
        for tests, why in (
            (found.without, "draw from no seed; change their numbers by hand"),
            (found.kept, "keep their numbers: with others a known answer came out otherwise"),
        ):
            if tests:
                say(f"note: {', '.join(tests)}: they {why}.")
    say("Next: python -m autograder release, and mutants for the table of the book.")
    return 0


def handout(options: argparse.Namespace) -> int:
    """Write what a student gets, and nothing else, into a new folder or zip file."""
    from autograder.authoring import handout as handing

    course = Course.find()
    found = handing.made(course, [checking.__name__])
    for note in found.notes:
        say(f"note: {note}", sys.stderr)
    is_new = handing.write(found, options.target)
    size = sum(map(len, found.files.values())) // 1024
    there = "" if is_new else " was there already, the same to the byte"
    say(f"{options.target}{there}: {len(found.files)} files, {size} kB, digest {found.digest}")
    return 0


def _rehearse(course: Course, chapters: Sequence[str]) -> None:
    """Stop if a test says something else when it runs apart from the answers."""
    from autograder.authoring.rehearsal import asked_in, costs, rehearse

    complaints = rehearse(course, chapters)
    if complaints:
        raise CourseError("\n".join(complaints))
    for note in asked_in(course, chapters):
        say(f"note: {note}", sys.stderr)
    for chapter in chapters:
        for line in costly(chapter, costs(course, chapter)):
            say(line)


def costly(chapter: str, costs: Mapping[str, tuple[int, float]]) -> list[str]:
    """What a chapter's tests cost, and which of them cost more than a class should pay."""
    if not costs:
        return []
    calls, work = (sum(each) for each in zip(*costs.values(), strict=True))
    most = max(costs, key=lambda test: costs[test])
    lines = [
        f"{chapter}: {len(costs)} tests make {calls} calls and work {work:.1f} s with the "
        f"reference; {most} makes {costs[most][0]}"
    ]
    for test, (calls, work) in costs.items():
        if calls > MOST_CALLS or work > MOST_WORK:
            lines.append(
                f"note: {chapter}, test {test} makes {calls} calls and works {work:.1f} s with the "
                f"reference; at most {MOST_CALLS} and {MOST_WORK:g} s keep a class fast, so ask "
                "less often for more."
            )
    return lines


def _add_mutants(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--in-class", action="store_true", help="each known mistake as a submission of its own"
    )
    add_jobs(command)

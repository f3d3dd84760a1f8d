"""The command line: python -m autograder build | release | mutants | grade | demo."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from autograder import demo as demo_class
from autograder import grade as grading
from autograder import mutants as mutation
from autograder import release as releasing
from autograder import report
from autograder.course import Course, CourseError, use_own_tools
from autograder.source import read_source


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; errors that a person can mend are one sentence on stderr."""
    options = _parser().parse_args(arguments)
    use_own_tools()
    try:
        return options.run(Course.find(), options)
    except CourseError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def build(course: Course, options: argparse.Namespace) -> int:
    """Check the sources and write the instructor's notebooks to build/source."""
    for chapter in course.select(options.chapters):
        path = releasing.build_instructor(course, chapter)
        source = read_source(course.source(chapter))
        points = sum(cell.points for cell in source.cells)
        minutes = sum(question.minutes for question in source.questions())
        print(f"{course.show(path)}: {points} points, about {minutes} minutes")
    return 0


def release(course: Course, options: argparse.Namespace) -> int:
    """Make the students' notebooks in exercises/ through nbgrader."""
    for chapter in course.select(options.chapters):
        path = releasing.release(course, chapter)
        print(f"{course.show(path)}: {path.stat().st_size // 1024} kB")
    return 0


def mutants(course: Course, options: argparse.Namespace) -> int:
    """Try every known answer against the tests; 1 if one does not come out as it should."""
    surprises = 0
    for chapter in course.select(options.chapters):
        for outcome in mutation.try_answers(course, chapter):
            surprises += outcome.surprising
            mark = "??" if outcome.surprising else "ok"
            says = ", ".join(outcome.failed) or "passes"
            print(f"{mark} {chapter} {outcome.question:<28} {outcome.name:<44} {says}", flush=True)
            if outcome.surprising:
                print(f"   expected to fail: {', '.join(outcome.expected) or 'nothing'}")
                for test, message in outcome.failed.items():
                    print(f"   {test}: {message}")
    print(f"{surprises} surprises")
    return 1 if surprises else 0


def grade(course: Course, options: argparse.Namespace) -> int:
    """Grade what lies in submitted/ and write feedback, grades.csv and the class report."""
    taught = grading.Class(course, options.folder or course.root)
    _grade(taught, course.select(options.chapters), options)
    return 0


def demo(course: Course, options: argparse.Namespace) -> int:
    """Make the demo class in build/demo and grade it."""
    chapters = course.select(options.chapters)
    for chapter in chapters:
        releasing.require_fresh(course, chapter)
    taught = demo_class.make_class(course, chapters, course.root / "build" / "demo")
    _grade(taught, chapters, options)
    return 0


def _grade(taught: grading.Class, chapters: Sequence[str], options: argparse.Namespace) -> None:
    course = taught.course
    for chapter in chapters:
        releasing.require_fresh(course, chapter)
    grading.grade(taught, chapters, options.student, options.jobs)
    graded = sorted({chapter for _, chapter in grading.read_journal(taught)})
    report.print_table(report.rows(taught, graded), graded)
    table, page = report.write(taught, graded, taught.folder)
    print(f"\ngrades:       {course.show(table)}")
    print(f"feedback:     {course.show(taught.feedback)}/<student>/<chapter>/<chapter>.html")
    print(f"class report: {course.show(page)}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m autograder", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for run in (build, release, mutants, grade, demo):
        command = commands.add_parser(run.__name__, help=run.__doc__, description=run.__doc__)
        command.add_argument("chapters", nargs="*", metavar="CHAPTER", help="by default all")
        command.set_defaults(run=run)
        if run in (grade, demo):
            command.add_argument("--student", action="append", default=[], help="only this student")
            command.add_argument("--jobs", type=int, default=2, help="notebooks side by side")
        if run is grade:
            command.add_argument("--folder", type=Path, help="holds submitted/; by default here")
    return parser


if __name__ == "__main__":
    sys.exit(main())

"""The commands for those who grade a class: from grade to contest."""

import argparse
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from autograder.commands.parsers import Commands, add_chapters, add_command, add_folder
from autograder.common.course import Course, CourseError, read_config, without_effect
from autograder.common.names import say

if TYPE_CHECKING:
    from autograder.classroom.classes import Class
    from autograder.cluster.grading import Cluster

RISK_FLAG = "--without-sandbox-i-know-the-risk"


def add(commands: Commands) -> None:
    """Add them to the command line."""
    for run in (grade, demo):
        command = add_command(commands, run)
        add_chapters(command)
        _add_grading(command)
        if run is grade:
            add_folder(command)
    add_folder(add_command(commands, report))
    command = add_command(commands, history)
    command.add_argument("student", metavar="STUDENT", help="the name of a folder in submitted/")
    command.add_argument("chapter", nargs="?", default="", metavar="CHAPTER", help="by default all")
    add_folder(command)
    command = add_command(commands, export)
    command.add_argument("kind", choices=("canvas", "moodle", "gradescope"))
    command.add_argument("--out", type=Path, help="where to write; by default beside the grades")
    add_folder(command)
    command = add_command(commands, contest)
    command.set_defaults(stopped="What was scored is kept; the same command scores the rest.")
    command.add_argument("folder", type=Path, metavar="FOLDER", help="holds the entries")
    command.add_argument("--again", action="store_true", help="also what has not changed")
    _add_bench(add_command(commands, bench))


def grade(options: argparse.Namespace) -> int:
    """Grade what lies in submitted/ and write feedback, grades.csv and the class report."""
    from autograder.classroom.classes import assignments

    taught = _taught(options)
    _grade(taught, assignments(taught.course, options.chapters), options)
    return 0


def demo(options: argparse.Namespace) -> int:
    """Make the demo class in build/demo and grade it."""
    from autograder.authoring import release as releasing
    from autograder.classroom import demo as demo_class

    course = Course.find()
    chapters = _of_text_sources(course, options.chapters)
    for chapter in chapters:
        releasing.require_fresh(course, chapter)
    taught = demo_class.make_class(course, chapters, course.root / "build" / "demo")
    _grade(taught, chapters, options)
    return 0


def report(options: argparse.Namespace) -> int:
    """Write grades.csv and the class report again, from what was graded."""
    _report(_taught(options))
    return 0


def export(options: argparse.Namespace) -> int:
    """Write the grades as an LMS wants them."""
    from autograder.classroom import exports

    return exports.run(_taught(options), options.kind, options.out)


def history(options: argparse.Namespace) -> int:
    """Show how a student's grades came to be: which run changed what, and why."""
    from autograder.classroom import history as telling

    telling.tell(_taught(options), options.student, options.chapter)
    return 0


def contest(options: argparse.Namespace) -> int:
    """Score what students handed in with one budget for all, and write a leaderboard.

    FOLDER holds a folder for each student. What is scored, and how, says the course's module that
    c.Contest.module in nbgrader_config.py names.
    """
    from autograder.classroom import contest as scoring

    scoring.run(Course.find(), options.folder.resolve(), again=options.again)
    return 0


def bench(options: argparse.Namespace) -> int:
    """Grade one class with stock nbgrader and with this grader, and compare."""
    from autograder.authoring import release as releasing
    from autograder.classroom import bench as timing

    course = Course.find()
    chapter = _of_text_sources(course, [options.chapter] if options.chapter else [])[0]
    chapters = course.chapters() if options.every_chapter else [chapter]
    for one in chapters:
        releasing.require_fresh(course, one)
    if options.every_chapter:
        students = (options.students or [100])[0]
        timing.bench_chapters(course, chapters, students, options.rounds, options.jobs)
    elif options.only_ours:
        timing.bench_sizes(course, chapter, options.students or [100, 1000], options.jobs)
    else:
        students = (options.students or [100])[0]
        timing.bench(course, chapter, students, options.rounds, options.jobs)
    return 0


def _of_text_sources(course: Course, names: Sequence[str]) -> list[str]:
    """These chapters, or all; a course without any is an error."""
    chapters = course.select(names)
    if not chapters:
        raise CourseError(
            "This command makes a class from the chapters in solutions/, and there are none; "
            "grade what was handed in with: python -m autograder grade"
        )
    return chapters


def _taught(options: argparse.Namespace) -> "Class":
    """The class in the folder that was named, or in the course itself."""
    from autograder.classroom.classes import Class

    course = Course.find()
    taught = Class(course, options.folder.resolve() if options.folder else course.root)
    taught.require_usable()
    return taught


def _grade(taught: "Class", chapters: Sequence[str], options: argparse.Namespace) -> None:
    from autograder.authoring import release as releasing
    from autograder.classroom import grade as grading

    course, after = taught.course, ""
    for words in without_effect(read_config(course.root)):
        say(f"note: {words}", sys.stderr)
    if course.chapters():
        for chapter in chapters:
            releasing.require_fresh(course, chapter)
    elif not options.without_sandbox:
        after = _rehearse_as_it_is(course, chapters)
    summary = grading.grade(
        taught,
        chapters,
        options.student,
        options.jobs,
        sandboxed=not options.without_sandbox,
        again=options.again,
        elsewhere=_elsewhere(options),
    )
    say(summary.words())
    if not options.no_report:
        _report(taught, summary.words().splitlines(), partial(_build, course))
    if after:
        say(f"note: {after}", sys.stderr)


def _elsewhere(options: argparse.Namespace) -> "Callable[..., Cluster] | None":
    """What grades if not this machine's processes do."""
    if not options.on:
        return None
    from autograder.cluster.grading import Cluster

    return partial(Cluster, options.on, sandboxed=not options.without_sandbox)


def _build(course: Course, chapters: Sequence[str]) -> None:
    """Build what the report is to read; it leaves out, and says, what cannot be read then."""
    from autograder.authoring.building import build_changed

    for chapter in chapters:
        with suppress(CourseError):
            build_changed(course, [chapter])


def _report(
    taught: "Class",
    said: Sequence[str] = (),
    prepare: Callable[[Sequence[str]], None] = lambda chapters: None,
) -> None:
    """Write the report.

    Args:
        taught: the class.
        said: lines that are not said again.
        prepare: is given what was graded once, before it is read.
    """
    from autograder.classroom import report as reporting
    from autograder.classroom.gradebook import shown_database
    from autograder.classroom.journal import results
    from autograder.classroom.report_terminal import print_table

    course = taught.course
    graded = sorted({graded.result.assignment for graded in results(taught)})
    if not graded and (graded := reporting.in_gradebook(taught)):
        say(
            f"{course.show(taught.journal)} holds no grades, and the gradebook does: the points "
            "are those, and what went wrong is not known. Put the journal back, or grade again.",
            sys.stderr,
        )
    prepare(graded)
    found = reporting.collect(taught, graded, lambda line: None if line in said else say(line))
    print_table(found.rows, found.chapters)
    for look in found.looks:
        if look.kind == "gone":
            say(f"left out: {look.where} {look.words}")
    table, page = reporting.write_report(found, taught.folder)
    say(f"\ngrades:       {course.show(table)}")
    if table.name != "grades.csv":
        say("              (grades.csv is another program's, such as `nbgrader export`; it stays)")
    say(f"feedback:     {course.show(taught.feedback)}/<student>/<chapter>/<notebook>.html")
    say(f"class report: {course.show(page)}")
    if taught.folder != course.root and taught.configured_database:
        say(f"gradebook:    {shown_database(taught)}, as nbgrader_config.py says")


def _rehearse_as_it_is(course: Course, chapters: Sequence[str]) -> str:
    """Say what of the course does not run as it should; what there is to say after grading."""
    from autograder.authoring.rehearsal import rehearsed

    found = rehearsed(course, chapters)
    for note in found.notes:
        say(f"note: {note}", sys.stderr)
    return found.words()


def _add_grading(command: argparse.ArgumentParser) -> None:
    command.set_defaults(stopped="What was graded is kept; the same command grades the rest.")
    command.add_argument("--student", action="append", default=[], help="only this student")
    command.add_argument("--jobs", type=int, default=0, help="side by side; by default all cores")
    command.add_argument(
        "--on",
        default="",
        metavar="dask://HOST:PORT",
        help="grade on a cluster of Dask's, named by its scheduler; with certificates tls://...",
    )
    command.add_argument("--again", action="store_true", help="also what has not changed")
    command.add_argument("--no-report", action="store_true", help="grades only, no class report")
    command.add_argument(
        RISK_FLAG,
        dest="without_sandbox",
        action="store_true",
        help="run students' code with your own rights, where no sandbox can be had: it can read, "
        "change and send away whatever you can",
    )


def _add_bench(command: argparse.ArgumentParser) -> None:
    command.add_argument("--students", type=int, action="append", help="by default 100")
    command.add_argument("--chapter", help="by default the first")
    command.add_argument("--rounds", type=int, default=1, help="how often, in turn")
    command.add_argument("--jobs", type=int, default=2, help="of ours; stock has one")
    command.add_argument(
        "--only-ours", action="store_true", help="compare two sizes, by default 100 and 1000"
    )
    command.add_argument(
        "--every-chapter", action="store_true", help="ours in each chapter, and who works there"
    )

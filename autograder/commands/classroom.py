"""The commands for those who grade a class: from grade to contest."""

import argparse
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from autograder.commands.parsers import (
    Commands,
    add_chapters,
    add_command,
    add_folder,
    add_jobs,
    at_least,
)
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
            command.add_argument(
                "--shard", metavar="K/N", help="only part K of N of the class, counted from 0"
            )
            add_folder(command)
    command = add_command(commands, merge)
    command.add_argument("places", nargs="+", type=Path, metavar="FOLDER")
    add_folder(command)
    command = add_command(commands, watch)
    add_chapters(command)
    command.set_defaults(stopped="What was graded is kept and released; begin again at any time.")
    add_jobs(command)
    command.add_argument(
        "--every", type=float, default=1.0, metavar="SECONDS", help="between two looks (default 1)"
    )
    command.add_argument("--status", action="store_true", help="say what the watcher is doing")
    add_folder(add_command(commands, report))
    command = add_command(commands, history)
    command.add_argument(
        "student",
        nargs="?",
        default="",
        metavar="STUDENT",
        help="the name of a folder in submitted/; without it, everybody's, newest last",
    )
    command.add_argument("chapter", nargs="?", default="", metavar="CHAPTER", help="by default all")
    command.add_argument("--since", metavar="TIME", help="only what came later, such as 2026-03-01")
    command.add_argument("--csv", type=Path, metavar="FILE", help="write a table there instead")
    add_folder(command)
    command = add_command(commands, extend)
    command.add_argument("student", nargs="?", default="", metavar="STUDENT")
    command.add_argument("chapter", nargs="?", default="", metavar="CHAPTER")
    command.add_argument("amount", nargs="?", default="", metavar="AMOUNT", help="2d, 36h, 1w2d, 0")
    command.add_argument("--why", metavar="TEXT", help="kept in the history")
    add_folder(command)
    command = add_command(commands, requests)
    command.add_argument("id", nargs="?", default="", metavar="ID", help="this one alone")
    command.add_argument("--answer", metavar="TEXT", help="what the student is to read")
    command.add_argument("--answered", action="store_true", help="list those with an answer")
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


def merge(options: argparse.Namespace) -> int:
    """Take what other machines have graded: FOLDER holds a graded class, or is its journal."""
    from autograder.classroom import merging
    from autograder.classroom.classes import assignments

    taught = _taught(options)
    merged = merging.merge(taught, assignments(taught.course), options.places)
    say(merged.words())
    return 1 if merged.refused else 0


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


def watch(options: argparse.Namespace) -> int:
    """Collect, grade and give feedback as soon as work arrives in nbgrader's exchange."""
    from autograder.classroom.classes import Class

    course = Course.find()
    if options.status:
        from autograder.classroom import watch_board

        watch_board.tell(Class(course, course.root))
        return 0
    if not 0 < options.every <= 3600:
        raise CourseError(f"--every is {options.every:g}; write seconds above 0, 3600 at most.")
    from autograder.classroom import watching

    with suppress(watching.Stopped):
        watching.run(course, options.chapters, options.jobs, options.every)
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
    """Show how a student's or everybody's grades came to be: which run changed what, and why."""
    from autograder.classroom import history as telling

    taught = _taught(options)
    if options.student and not (options.since or options.csv):
        telling.tell(taught, options.student, options.chapter)
    else:
        telling.tell_all(taught, options.student, options.chapter, options.since or "", options.csv)
    return 0


def extend(options: argparse.Namespace) -> int:
    """Give a student longer for an assignment; without an AMOUNT, list who has how much longer."""
    from autograder.classroom import extensions
    from autograder.classroom.classes import assignments

    taught = _taught(options)
    if not options.amount:
        if options.chapter or options.why:
            raise CourseError("How much longer? Write STUDENT CHAPTER AMOUNT, such as 2d or 36h.")
        extensions.tell(taught, [options.student] if options.student else [])
        return 0
    (chapter,) = assignments(taught.course, [options.chapter])
    extensions.extend(taught, options.student, chapter, options.amount)
    return 0


def requests(options: argparse.Namespace) -> int:
    """List students' questions about their grades that wait for an answer, or answer one."""
    from autograder.classroom import requests as asking

    taught = _taught(options)
    if options.answer is not None:
        asking.answer(taught, options.id, options.answer)
    elif options.id:
        asking.tell_one(taught, options.id)
    else:
        asking.tell(taught, answered=options.answered)
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
    if options.folder:
        taught.require_there()
    return taught


def _grade(taught: "Class", chapters: Sequence[str], options: argparse.Namespace) -> None:
    from autograder.authoring import release as releasing
    from autograder.classroom import grade as grading
    from autograder.classroom.shards import WHOLE, Shard

    course, after = taught.course, ""
    for words in without_effect(read_config(course.root), course.root):
        say(f"note: {words}", sys.stderr)
    if course.chapters():
        for chapter in chapters:
            releasing.require_fresh(course, chapter)
    elif not options.without_sandbox:
        after = _rehearse_as_it_is(course, options.chapters or taught.handed_in(chapters))
    shard = getattr(options, "shard", None)
    summary = grading.grade(
        taught,
        chapters,
        options.student,
        options.jobs,
        shard=WHOLE if shard is None else Shard.read(shard),
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
    if options.on is None:
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
    from autograder.classroom.asked import questions
    from autograder.classroom.gradebook import shown_database
    from autograder.classroom.journal import results
    from autograder.classroom.report_terminal import print_table
    from autograder.classroom.requests import waiting

    course, asking = taught.course, []
    known: set[str] = set()
    for one in results(taught):
        known.add(one.result.assignment)
        if questions(one.result):
            asking.append(one.result)
    graded = sorted(known)
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
    if asked := waiting(taught, asking):
        see = f"python -m autograder requests{taught.option}"
        say(f"questions:    {asked} wait for an answer; see: {see}")
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
    add_jobs(command)
    command.add_argument(
        "--on",
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
    command.add_argument("--students", type=at_least(1), action="append", help="by default 100")
    command.add_argument("--chapter", help="by default the first")
    command.add_argument("--rounds", type=at_least(1), default=1, help="how often, in turn")
    command.add_argument("--jobs", type=at_least(1), default=2, help="of ours; stock has one")
    command.add_argument(
        "--only-ours", action="store_true", help="compare two sizes, by default 100 and 1000"
    )
    command.add_argument(
        "--every-chapter", action="store_true", help="ours in each chapter, and who works there"
    )

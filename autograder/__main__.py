"""The command line: python -m autograder COMMAND, see --help.

Each command imports what it needs and no more, so that `check` works where grading does not.
"""

import _thread
import argparse
import gc
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from autograder.common.course import Course, CourseError, read_config, without_effect
from autograder.common.failures import OF_A_PATH, WHOLE_CLASS, sentence_of
from autograder.common.names import is_read, open_streams, say, silence
from autograder.common.startup import import_quickly, use_own_tools

if TYPE_CHECKING:
    from autograder.classroom.classes import Class

RISK_FLAG = "--without-sandbox-i-know-the-risk"
MOST_CALLS = 300  # of one test, and
MOST_WORK = 2.0  # seconds that processors work for it: more is said
INTERRUPTED = 130  # what shells use for Ctrl-C
UNREAD = 141  # and for a pipe that nobody reads any more


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; errors that a person can mend are one sentence on stderr.

    Whatever is printed commands no terminal, however a student's folder is named.
    """
    open_streams()
    options = _parser().parse_args(arguments)
    use_own_tools()
    import_quickly()
    pressed: list[int] = []
    try:
        with _noting_ctrl_c(pressed):
            status = _run(options)
    except CourseError as error:
        if not pressed:  # else it only says that what Ctrl-C ended has ended
            say(f"error: {error}", sys.stderr)
        status = 2
    except KeyboardInterrupt:
        status = INTERRUPTED
    if pressed:
        say(f"\nStopped. {options.stopped}", sys.stderr)
        return INTERRUPTED
    return status


def _run(options: argparse.Namespace) -> int:
    """Run the command; a disk that is full or may not be written is for a person to mend."""
    try:
        status = options.run(options)
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        unread = [stream for stream in (sys.stdout, sys.stderr) if not is_read(stream)]
        if not unread:
            raise
        for stream in unread:
            silence(stream)
        return UNREAD
    except OSError as error:
        if error.errno not in (*WHOLE_CLASS, *OF_A_PATH):
            raise
        raise CourseError(sentence_of(error, "what this command makes")) from error


@contextmanager
def _noting_ctrl_c(pressed: list[int]) -> Iterator[None]:
    """Remember Ctrl-C: what it interrupts may be code from which no exception comes out."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def note(number: int, frame: object) -> None:
        pressed.append(number)
        raise KeyboardInterrupt

    def note_lost(unraisable: "sys.UnraisableHookArgs") -> None:
        """Where it hit a destructor, from which no exception comes out: once more, soon."""
        if not isinstance(unraisable.exc_value, KeyboardInterrupt):
            show(unraisable)
            return
        again = threading.Timer(0.01, _interrupt)
        again.daemon = True
        again.start()

    before, show = signal.signal(signal.SIGINT, note), sys.unraisablehook
    sys.unraisablehook = note_lost
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        sys.unraisablehook = show


def _interrupt() -> None:
    """As Ctrl-C does: whatever the main thread waits for, it waits no longer."""
    main_thread = threading.main_thread().ident
    if hasattr(signal, "pthread_kill") and main_thread is not None:
        signal.pthread_kill(main_thread, signal.SIGINT)
    else:
        _thread.interrupt_main()


def build(options: argparse.Namespace) -> int:
    """Check the sources, write the instructor's notebooks to build/source, try all tests."""
    from autograder.authoring.building import build_instructor
    from autograder.authoring.source import read_source

    course = Course.find()
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
    chapters = course.select(options.chapters)
    for chapter in chapters:
        build_instructor(course, chapter)
    _rehearse(course, chapters)
    for chapter in chapters:
        path = releasing.release(course, chapter)
        say(f"{course.show(path)}: {path.stat().st_size // 1024} kB")
    _try_known_mistakes(course, chapters)
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


def check(options: argparse.Namespace) -> int:
    """Run the visible tests of one's own notebook, and say what is wrong in words."""
    from autograder.checking import check as checking

    return checking.run(options.notebook)


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
    )
    say(summary.words())
    if not options.no_report:
        _report(taught, summary.words().splitlines(), partial(_build, course))
    if after:
        say(f"note: {after}", sys.stderr)


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


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m autograder", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for run in (build, release, mutants, grade, demo):
        command = _command(commands, run)
        command.add_argument("chapters", nargs="*", metavar="CHAPTER", help="by default all")
        if run in (grade, demo):
            _add_grading(command)
        if run is grade:
            _add_folder(command)
        if run is mutants:
            _add_mutants(command)
    command = _command(commands, check)
    command.add_argument("notebook", type=Path, help="your notebook")
    _add_folder(_command(commands, report))
    command = _command(commands, history)
    command.add_argument("student", metavar="STUDENT", help="the name of a folder in submitted/")
    command.add_argument("chapter", nargs="?", default="", metavar="CHAPTER", help="by default all")
    _add_folder(command)
    command = _command(commands, export)
    command.add_argument("kind", choices=("canvas", "moodle", "gradescope"))
    command.add_argument("--out", type=Path, help="where to write; by default beside the grades")
    _add_folder(command)
    command = _command(commands, contest)
    command.set_defaults(stopped="What was scored is kept; the same command scores the rest.")
    command.add_argument("folder", type=Path, metavar="FOLDER", help="holds the entries")
    command.add_argument("--again", action="store_true", help="also what has not changed")
    _add_bench(_command(commands, bench))
    return parser


def _command(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
    run: Callable[[argparse.Namespace], int],
) -> argparse.ArgumentParser:
    command = commands.add_parser(run.__name__, help=run.__doc__, description=run.__doc__)
    command.set_defaults(run=run, stopped="Nothing was left half done.")
    return command


def _add_grading(command: argparse.ArgumentParser) -> None:
    command.set_defaults(stopped="What was graded is kept; the same command grades the rest.")
    command.add_argument("--student", action="append", default=[], help="only this student")
    command.add_argument("--jobs", type=int, default=0, help="side by side; by default all cores")
    command.add_argument("--again", action="store_true", help="also what has not changed")
    command.add_argument("--no-report", action="store_true", help="grades only, no class report")
    command.add_argument(
        RISK_FLAG,
        dest="without_sandbox",
        action="store_true",
        help="run students' code with your own rights, where no sandbox can be had: it can read, "
        "change and send away whatever you can",
    )


def _add_folder(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--folder",
        type=Path,
        help="holds submitted/; by default here. All settings are the course's, db_url too, but "
        "not for what lies in build/",
    )


def _add_mutants(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--in-class", action="store_true", help="each known mistake as a submission of its own"
    )
    command.add_argument("--jobs", type=int, default=0, help="side by side; by default all cores")


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


if __name__ == "__main__":
    ended = main()
    gc.freeze()  # what was imported need not be looked through before the end
    sys.exit(ended)

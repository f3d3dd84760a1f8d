"""The command line: python -m autograder COMMAND, see --help.

What a student is handed out has `check` alone.
"""

import _thread
import argparse
import gc
import importlib
import importlib.util
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from autograder.common.course import CourseError
from autograder.common.failures import OF_A_PATH, WHOLE_CLASS, sentence_of
from autograder.common.names import is_read, open_streams, say, silence
from autograder.common.startup import import_quickly, use_own_tools

WHOSE = ("authoring", "classroom", "checking")  # modules of commands, as far as they are there
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


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m autograder", description="Release, grade and report on notebooks."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name in (f"autograder.commands.{whose}" for whose in WHOSE):
        if importlib.util.find_spec(name):
            importlib.import_module(name).add(commands)
    return parser


if __name__ == "__main__":
    ended = main()
    gc.freeze()  # what was imported need not be looked through before the end
    sys.exit(ended)

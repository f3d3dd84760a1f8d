"""Commands, nbgrader's and ours, each in a process forked from one that has imported nbgrader."""

import multiprocessing
import os
import sys
import tempfile
from pathlib import Path
from typing import IO

from autograder import __main__ as command_line
from autograder.common.startup import import_quickly

import_quickly()

from nbgrader import api  # noqa: E402
from nbgrader.apps.nbgraderapp import main  # noqa: E402

from autograder.classroom.gradebook import newest_version  # noqa: E402

# the same answer without a process of alembic's for each new gradebook; tests/test_store.py asks it
api.get_alembic_version = newest_version


def nbgrader(root: Path, *arguments: str, succeeds: bool = True) -> str:
    """Run an nbgrader command in a course's root; returns what it said."""
    with tempfile.NamedTemporaryFile() as said:
        status = _forked(root, ("nbgrader", *arguments), said, said)
        words = Path(said.name).read_text(encoding="utf-8")
    assert (status == 0) == succeeds, words
    return words


def own(root: Path, *arguments: str) -> tuple[int, str]:
    """Run one of the grader's commands in a course's root; how it ended, and what was an error."""
    with tempfile.NamedTemporaryFile() as said, tempfile.NamedTemporaryFile() as failed:
        status = _forked(root, ("autograder", *arguments), said, failed)
        return status, Path(failed.name).read_text(encoding="utf-8")


def _forked(root: Path, command: tuple[str, ...], said: IO[bytes], failed: IO[bytes]) -> int:
    """Run a command in a process that is forked from one that has imported it and run nothing."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, "nbconvert.exporters"])
    os.umask(mask := os.umask(0))
    told = (str(root), command, said.name, failed.name, dict(os.environ), mask)
    process = context.Process(target=_run, args=told)
    process.start()
    process.join()
    assert process.exitcode is not None
    return process.exitcode


def _run(
    root: str,
    command: tuple[str, ...],
    said: str,
    failed: str,
    environment: dict[str, str],
    mask: int,
) -> None:
    """What `python -m` does with a command, in the process that is to end with it."""
    os.chdir(root)
    os.umask(mask)
    os.environ.clear()
    os.environ.update(environment)
    for stream, name in ((1, said), (2, failed)):
        os.dup2(os.open(name, os.O_WRONLY | os.O_APPEND), stream)
    sys.argv = [*command]
    if command[0] == "nbgrader":
        main()
    else:
        sys.exit(command_line.main())

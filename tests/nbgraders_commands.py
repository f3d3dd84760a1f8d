"""nbgrader's commands, each in a process of its own that need not import nbgrader first."""

import multiprocessing
import os
import sys
import tempfile
from pathlib import Path

from nbgrader.apps.nbgraderapp import main


def nbgrader(root: Path, *arguments: str, succeeds: bool = True) -> str:
    """Run an nbgrader command in a course's root; returns what it said.

    Its process is forked from one that has imported nbgrader, which takes seconds, and has run
    nothing.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, "nbconvert.exporters"])
    os.umask(mask := os.umask(0))
    with tempfile.NamedTemporaryFile() as said:
        told = (str(root), arguments, said.name, dict(os.environ), mask)
        process = context.Process(target=_run, args=told)
        process.start()
        process.join()
        words = Path(said.name).read_text(encoding="utf-8")
    assert (process.exitcode == 0) == succeeds, words
    return words


def _run(
    root: str, arguments: tuple[str, ...], said: str, environment: dict[str, str], mask: int
) -> None:
    """What `python -m nbgrader` does, in the process that is to end with it."""
    os.chdir(root)
    os.umask(mask)
    os.environ.clear()
    os.environ.update(environment)
    file = os.open(said, os.O_WRONLY)
    os.dup2(file, 1)
    os.dup2(file, 2)
    sys.argv = ["nbgrader", *arguments]
    main()

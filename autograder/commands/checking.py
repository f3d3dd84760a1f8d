"""The command for students: check."""

import argparse
import sys
from pathlib import Path

from autograder.commands.parsers import Commands, add_command
from autograder.common.course import CourseError
from autograder.common.names import say


def add(commands: Commands) -> None:
    """Add it to the command line."""
    command = add_command(commands, check)
    command.add_argument(
        "notebooks",
        nargs="*",
        type=Path,
        metavar="NOTEBOOK",
        help="by default those in exercises/ that you have begun",
    )


def check(options: argparse.Namespace) -> int:
    """Run the visible tests of one's own notebooks, and say what is wrong in words."""
    from autograder.checking.begun import begun

    notebooks = options.notebooks or begun(Path("exercises"))
    if not notebooks:
        say("No notebook in exercises/ holds an answer of yours yet: write one, and save.")
    return max((_checked(notebook, len(notebooks) > 1) for notebook in notebooks), default=0)


def _checked(notebook: Path, is_one_of_several: bool) -> int:
    """Check one; where it is one of several, no other waits for it to be mended."""
    from autograder.checking import check as checking

    try:
        status = checking.run(notebook)
    except CourseError as error:
        if not is_one_of_several:
            raise
        say(f"error: {error}", sys.stderr)
        status = 2
    if is_one_of_several:
        say("")
    return status

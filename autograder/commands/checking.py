"""The command for students: check."""

import argparse
from pathlib import Path

from autograder.commands.parsers import Commands, add_command


def add(commands: Commands) -> None:
    """Add it to the command line."""
    command = add_command(commands, check)
    command.add_argument("notebook", type=Path, help="your notebook")


def check(options: argparse.Namespace) -> int:
    """Run the visible tests of one's own notebook, and say what is wrong in words."""
    from autograder.checking import check as checking

    return checking.run(options.notebook)

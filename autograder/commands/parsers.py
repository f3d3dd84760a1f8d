"""How a command is added to the command line, and the arguments that several have."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

LONGEST = 9  # digits of a number


def add_command(
    commands: Commands,
    run: Callable[[argparse.Namespace], int],
) -> argparse.ArgumentParser:
    """Add a command that is called and described as its function is."""
    command = commands.add_parser(run.__name__, help=run.__doc__, description=run.__doc__)
    command.set_defaults(run=run, stopped="Nothing was left half done.")
    return command


def add_chapters(command: argparse.ArgumentParser) -> None:
    """Add the chapters' names, of which none means all."""
    command.add_argument("chapters", nargs="*", metavar="CHAPTER", help="by default all")


def add_jobs(command: argparse.ArgumentParser) -> None:
    """Add the option that says how many run at once."""
    text = "side by side; by default all cores"
    command.add_argument("--jobs", type=at_least(0), default=0, help=text)


def at_least(least: int) -> Callable[[str], int]:
    """What reads a whole number that is not less."""

    def number(text: str) -> int:
        if not text.isdecimal() or len(text) > LONGEST or int(text) < least:
            raise argparse.ArgumentTypeError(f"write a whole number, {least} at least")
        return int(text)

    return number


def add_folder(command: argparse.ArgumentParser) -> None:
    """Add the option that names another folder of submissions."""
    command.add_argument(
        "--folder",
        type=Path,
        help="holds submitted/; by default here. All settings are the course's, db_url too, but "
        "not for what lies in build/",
    )

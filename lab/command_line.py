"""What every `python -m` of the course does alike: subcommands, errors in a sentence, Ctrl-C."""

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence


def run_command(
    room: str,
    description: str | None,
    commands: Iterable[Callable[[argparse._SubParsersAction], None]],
    arguments: Sequence[str] | None = None,
) -> int:
    """Run the subcommand of `python -m room` that the arguments name.

    Each of the commands adds a parser whose default `run` takes the options and returns the exit
    status. Returns 2 if that raises a ValueError, which is printed, and 130 after Ctrl-C.
    """
    who = f"python -m {room}"
    parser = argparse.ArgumentParser(prog=who, description=description)
    subparsers = parser.add_subparsers(dest="command", required=True)
    for add in commands:
        add(subparsers)
    try:
        options = parser.parse_args(arguments)
        who += f" {options.command}"
        return options.run(options)
    except ValueError as error:
        print(f"{who}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"{who}: stopped", file=sys.stderr)
        return 130

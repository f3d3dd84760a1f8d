"""Command line of the trainer: train an assembled module by a recipe, and use what came of it."""

import argparse
import sys
from collections.abc import Sequence

from trainer.commands import average, evaluate, plot, train, translate


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one subcommand; return its exit status: 2 if an argument is wrong, 130 after Ctrl-C."""
    who = "python -m trainer"
    try:
        options = _parser().parse_args(arguments)
        who += f" {options.command}"
        return options.run(options)
    except ValueError as error:
        print(f"{who}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"{who}: stopped", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m trainer", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for command in (train, translate, evaluate, average, plot):
        command.add(commands)
    return parser


if __name__ == "__main__":
    sys.exit(main())

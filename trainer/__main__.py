"""Command line of the trainer: train an assembled module by a recipe, and use what came of it."""

import sys
from collections.abc import Sequence

from lab.command_line import run_command
from trainer.commands import average, errors, evaluate, plot, talk, tasks, train, translate


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one subcommand; return its exit status: 2 if an argument is wrong, 130 after Ctrl-C."""
    commands = (
        train.add,
        talk.add,
        translate.add,
        evaluate.add,
        errors.add,
        average.add,
        plot.add,
        tasks.add_language,
        tasks.add_write,
        tasks.add_captions,
        tasks.add_describe,
    )
    return run_command("trainer", __doc__, commands, arguments)


if __name__ == "__main__":
    sys.exit(main())

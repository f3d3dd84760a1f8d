"""Command line of the benchmarks."""

import argparse
import sys
from collections.abc import Sequence

from benchmarks import ablations, training
from lab.command_line import run_command


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one benchmark; return its exit status: 2 if an argument is wrong, 130 after Ctrl-C."""
    return run_command("benchmarks", __doc__, (_add_training, _add_ablations), arguments)


def _add_training(commands: argparse._SubParsersAction) -> None:
    command = commands.add_parser(
        "training",
        help="speed of our model and of other libraries', on the same work",
        description="Train and decode the same work with our model, torch.nn.Transformer, "
        "x-transformers and MarianMT, as far as they are installed.",
    )
    training.add_arguments(command)
    command.set_defaults(run=training.run)


def _add_ablations(commands: argparse._SubParsersAction) -> None:
    command = commands.add_parser(
        "ablations",
        help="what each technique buys in quality",
        description="Train a recipe as it is and with one thing changed, several seeds each, and "
        "compare the translations of the validation set.",
    )
    ablations.add_arguments(command)
    command.set_defaults(run=ablations.run)


if __name__ == "__main__":
    sys.exit(main())

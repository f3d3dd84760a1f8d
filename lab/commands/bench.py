"""`python -m lab bench`: our model beside other libraries', on the same work."""

import argparse

from lab.bench import add_arguments, run


def add(commands: argparse._SubParsersAction) -> None:
    """Add the subcommand and its flags."""
    command = commands.add_parser(
        "bench",
        help="speed of our model and of other libraries', on the same work",
        description="Train and decode the same work with our model, torch.nn.Transformer, "
        "x-transformers and MarianMT, as far as they are installed.",
    )
    add_arguments(command)
    command.set_defaults(run=run)

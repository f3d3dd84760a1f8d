"""Command line of the benchmarks."""

import argparse
import sys
from collections.abc import Sequence

from benchmarks import training


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one benchmark; return its exit status: 2 if an argument is wrong, 130 after Ctrl-C."""
    who = "python -m benchmarks"
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
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser(
        "training",
        help="speed of our model and of other libraries', on the same work",
        description="Train and decode the same work with our model, torch.nn.Transformer, "
        "x-transformers and MarianMT, as far as they are installed.",
    )
    training.add_arguments(command)
    command.set_defaults(run=training.run)
    return parser


if __name__ == "__main__":
    sys.exit(main())

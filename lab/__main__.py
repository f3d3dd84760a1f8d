"""Command line of the lab: `python -m lab corpus` prints sentence pairs."""

import argparse
import sys
from collections.abc import Sequence

from lab.corpus import sentence_pairs


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one subcommand; return 0, or 2 after printing what is wrong with the arguments."""
    options = _parser().parse_args(arguments)
    try:
        options.run(options)
    except ValueError as error:
        print(f"python -m lab {options.command}: {error}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m lab", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    _add_corpus(commands)
    return parser


def _add_corpus(commands: argparse._SubParsersAction) -> None:
    command = commands.add_parser("corpus", help="print English sentences with their French")
    command.add_argument("--pairs", type=int, default=10, metavar="N", help="how many (default 10)")
    command.add_argument("--seed", type=int, default=0, help="which ones (default 0)")
    command.set_defaults(run=_corpus)


def _corpus(options: argparse.Namespace) -> None:
    rows = [("English", "French"), *sentence_pairs(options.pairs, options.seed)]
    width = max(len(english) for english, _ in rows)
    for english, french in rows:
        print(f"{english:<{width}}  {french}")


if __name__ == "__main__":
    sys.exit(main())

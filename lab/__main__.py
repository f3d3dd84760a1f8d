"""Command line of the lab: sentence pairs, the assembled model, small trainings, and a page."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from lab import little, tell_command, train_command
from lab.assemble import assemble, write
from lab.command_line import run_command
from lab.corpus import sentence_pairs
from lab.page import command as page_command


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one subcommand; return its exit status: 2 if an argument is wrong, 130 after Ctrl-C."""
    commands = (
        _add_corpus,
        _add_assemble,
        train_command.add,
        tell_command.add,
        little.add,
        page_command.add,
    )
    return run_command("lab", __doc__, commands, arguments)


def _add_corpus(commands: argparse._SubParsersAction) -> None:
    command = commands.add_parser("corpus", help="print English sentences with their French")
    command.add_argument("--pairs", type=int, default=10, metavar="N", help="how many (default 10)")
    command.add_argument("--seed", type=int, default=0, help="which ones (default 0)")
    command.set_defaults(run=_corpus)


def _corpus(options: argparse.Namespace) -> int:
    rows = [("English", "French"), *sentence_pairs(options.pairs, options.seed)]
    width = max(len(english) for english, _ in rows)
    for english, french in rows:
        print(f"{english:<{width}}  {french}")
    return 0


def _add_assemble(commands: argparse._SubParsersAction) -> None:
    command = commands.add_parser(
        "assemble",
        help="collect the answers of the notebooks in one module",
        description="Collect what the notebooks build in one module, in the book's order.",
        epilog="Exit status: 0 if the module is whole; 1 if it was written, but something in it "
        "is missing or wrong (each is named); 2 if it was not written.",
    )
    command.add_argument(
        "directory",
        nargs="?",
        default="exercises",
        type=Path,
        metavar="DIR",
        help="where the notebooks lie, each in a folder of its name or not (default exercises)",
    )
    command.add_argument(
        "--out",
        default="my_transformer.py",
        type=Path,
        metavar="FILE",
        help="the module to write (default my_transformer.py)",
    )
    command.set_defaults(run=_assemble)


def _assemble(options: argparse.Namespace) -> int:
    assembly = assemble(options.directory, options.out)
    write(assembly, options.out)
    lines = len(assembly.text.splitlines())
    print(f"{options.out}: {assembly.answered} of {assembly.parts} parts, {lines} lines")
    if not assembly.problems:
        return 0
    print(*assembly.problems, sep="\n", file=sys.stderr)
    print(
        "Answer or mend these in the notebooks, save them, and run this command again.",
        file=sys.stderr,
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())

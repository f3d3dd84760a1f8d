"""`python -m trainer translate`: translate sentences with a trained run."""

import argparse
import sys
from pathlib import Path

from trainer.commands.decoder import Decoder, add_decoding


def add(commands: argparse._SubParsersAction) -> None:
    """Add the subcommand and its flags."""
    command = commands.add_parser(
        "translate",
        help="translate sentences with a trained run",
        description="Translate one sentence a line, from a file or standard input, to standard "
        "output. The sentences must look as the corpus does: for Multi30k's tokenised files, "
        "lower-case, with spaces around punctuation.",
    )
    add_decoding(command)
    command.add_argument(
        "file", nargs="?", type=Path, metavar="FILE", help="sentences (default standard input)"
    )
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Translate; the exit status."""
    if options.file is not None and not options.file.is_file():
        raise ValueError(f"there is no file {options.file}")
    decoder = Decoder(options)
    for note in decoder.run.notes:
        print(f"note: {note}", file=sys.stderr)
    if options.file is None and sys.stdin.isatty():
        for line in sys.stdin:
            print(decoder.translate([line.strip()])[0], flush=True)
        return 0
    text = sys.stdin.read() if options.file is None else _read(options.file)
    lines = text.splitlines()
    if lines:
        print(*decoder.translate(lines, progress=sys.stderr.isatty()), sep="\n")
    return 0


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is no UTF-8 text ({error})") from error

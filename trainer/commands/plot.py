"""`python -m trainer plot`: curves of a training run, and where its attention goes."""

import argparse
from pathlib import Path

from trainer.commands.decoder import add_run


def add(commands: argparse._SubParsersAction) -> None:
    """Add the subcommand and its flags."""
    command = commands.add_parser(
        "plot",
        help="curves of a run, or attention maps of one sentence",
        description="Draw loss, learning rate and BLEU over the steps, from the run's log; or, "
        "with --attention, which source token each target token attends to.",
    )
    add_run(command)
    command.add_argument(
        "--attention", metavar="SENTENCE", help="translate this and draw the cross-attention"
    )
    command.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="ends in .svg or .png (default RUN/curves.svg or RUN/attention.svg)",
    )
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Draw; the exit status."""
    from trainer import curves

    default = "curves.svg" if options.attention is None else "attention.svg"
    out = options.out or options.directory / default
    if out.suffix not in (".svg", ".png"):
        raise ValueError(f"--out {out} must end in .svg or .png")
    if not out.parent.is_dir():
        raise ValueError(f"there is no directory {out.parent} for --out")
    if options.attention is None:
        curves.draw_curves(options.directory / "log.jsonl", out)
    else:
        curves.draw_attention(options.directory, options.attention, out)
    print(out)
    return 0

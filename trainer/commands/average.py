"""`python -m trainer average`: the mean of a run's last checkpoints, as a file."""

import argparse
from pathlib import Path

from trainer.commands.decoder import add_run


def add(commands: argparse._SubParsersAction) -> None:
    """Add the subcommand and its flags."""
    command = commands.add_parser(
        "average",
        help="mean of a run's last checkpoints",
        description="Take the mean of the last checkpoints' weights (by the module's own "
        "average_checkpoints where it is answered), for `--weights` of translate and evaluate.",
    )
    add_run(command)
    command.add_argument(
        "--last", type=int, required=True, metavar="K", help="how many checkpoints"
    )
    command.add_argument(
        "--out", type=Path, metavar="FILE", help="default RUN/average-of-K.safetensors"
    )
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Average; the exit status."""
    from lab.weights import write_tensors
    from trainer.runs import open_run

    out = options.out or options.directory / f"average-of-{options.last}.safetensors"
    if not out.parent.is_dir():
        raise ValueError(f"there is no directory {out.parent} for --out")
    weights = open_run(options.directory).weights(average=options.last)
    write_tensors(out, weights.tensors, {"what": weights.what})
    print(f"{out}: {weights.what}")
    return 0

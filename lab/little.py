"""The recipe of the little translator that runs in the book's pages, and `python -m lab little`.

Corpus, sizes, seeds and the number of steps are fixed, and one thread computes, so that the same
module gives the same weights on the same machine. The rate rises, then falls in a straight line to
zero, which makes the most of few steps.
"""

import argparse
import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lab.five_minutes import Progress, Recipe

PAIRS = 60_000
STEPS = 6_000
PEAK = 4e-3  # of the learning rate
SEED = 0
LITTLE = Path("runs/little")
REPORTS = 12


def add(commands: argparse._SubParsersAction) -> None:
    """Add the subcommand and its flags."""
    command = commands.add_parser(
        "little",
        help="train the little translator of the book's pages",
        description="Train a Transformer small enough to be sent with a page: corpus, sizes, seeds "
        "and steps are fixed. One thread, some minutes. Then: python -m lab page RUN.",
    )
    command.add_argument("module", type=Path, metavar="MODULE", help="such as my_transformer.py")
    command.add_argument(
        "--steps", type=int, default=STEPS, metavar="N", help=f"updates (default {STEPS})"
    )
    command.add_argument(
        "--pairs", type=int, default=PAIRS, metavar="N", help=f"sentences (default {PAIRS})"
    )
    command.add_argument(
        "--out", type=Path, default=LITTLE, metavar="RUN", help=f"folder (default {LITTLE})"
    )
    command.set_defaults(run=run)


def little_recipe() -> "Recipe":
    """Sizes and batches: post-norm as in the paper; no dropout, since six epochs are few."""
    from lab.five_minutes import Recipe

    return Recipe(d_model=64, d_ff=256, dropout=0.0, warmup=400)


def cooled(step: int, warmup: int, steps: int) -> float:
    """The rate of a step, counted from 1: up to PEAK in `warmup` steps, then down to zero."""
    if step <= warmup:
        return PEAK * step / warmup
    return PEAK * max(steps + 1 - step, 0) / (steps + 1 - warmup)


def run(options: argparse.Namespace) -> int:
    """Train, keep the run, and count the held-out sentences that come out right."""
    # Here, so that a look at the help need not wait for torch.
    from lab.assembled import load_module
    from lab.five_minutes import find_functions, grammar_data, grammar_model, measure, train
    from lab.kept import Keeper, refuse_taken
    from lab.own import one_thread

    refuse_taken(options.out)
    module, recipe = load_module(options.module), little_recipe()
    warmup = min(recipe.warmup, max(options.steps // 10, 1))
    data = grammar_data(options.pairs, SEED)
    keeper = Keeper(options.out, options.module, data, recipe, options.pairs, SEED)
    every = max(options.steps // REPORTS, 1)

    def report(progress: "Progress") -> None:
        if progress.steps % every == 0:
            print(f"step {progress.steps:,}, loss {progress.loss:.3f}", flush=True)

    with one_thread():
        model = grammar_model(module, data, recipe, SEED)
        functions = replace(
            find_functions(module),
            learning_rate=lambda step, _width, _warmup: cooled(step, warmup, options.steps),
        )
        last = train(
            model,
            functions,
            data,
            recipe,
            minutes=math.inf,
            steps=options.steps,
            seed=SEED,
            report=report,
        )
        keeper.keep(model, last)
        found = measure(module, model, data)
    print(
        f"trained      {last.steps:,} steps, {last.cpu_minutes:.1f} minutes of CPU time\n"
        f"exact match  {found.exact} of {found.sentences} held-out sentences\n"
        f"kept in {options.out}; put it into a page: python -m lab page {options.out}"
    )
    return 0

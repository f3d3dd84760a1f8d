"""`python -m lab train`: five minutes of training by the module's own loss, schedule and step."""

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lab.five_minutes import Progress

BAR = 20  # characters


def add(commands: argparse._SubParsersAction) -> None:
    """Add the subcommand and its flags."""
    command = commands.add_parser(
        "train",
        help="five minutes of training on the grammar's sentences",
        description="Train the Transformer of a module that `assemble` made to translate the "
        "grammar's sentences, by the module's own loss, schedule, optimiser and step; then count "
        "the held-out sentences that it translates exactly. Nothing is kept.",
        epilog="By a recipe, on any corpus, with checkpoints: python -m trainer train.",
    )
    command.add_argument("module", type=Path, metavar="MODULE", help="such as my_transformer.py")
    command.add_argument(
        "--minutes", type=float, default=5.0, metavar="M", help="by the clock (default 5)"
    )
    command.add_argument(
        "--pairs",
        type=int,
        default=60_000,
        metavar="N",
        help="sentences of the grammar (default 60000)",
    )
    command.add_argument("--seed", type=int, default=0, metavar="S", help="default 0")
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Train on the grammar's sentences, and count those that are translated exactly."""
    # Here, so that a look at the help need not wait for torch.
    from lab.assembled import load_module
    from lab.five_minutes import Recipe, find_functions, grammar_data, grammar_model, measure, train

    module, recipe = load_module(options.module), Recipe()
    data = grammar_data(options.pairs, options.seed)
    print(
        f"corpus       {options.pairs:,} pairs: {len(data.train):,} to train on, "
        f"{len(data.held_out):,} held out, no sentence on both sides\n"
        f"vocabulary   {len(data.source)} English and {len(data.target)} French tokens"
    )
    model = grammar_model(module, data, recipe, options.seed)
    functions = find_functions(module)
    print(
        f"model        {sum(p.numel() for p in model.parameters()):,} parameters: d_model "
        f"{recipe.d_model}, {recipe.num_layers} + {recipe.num_layers} layers, {recipe.num_heads} "
        f"heads, d_ff {recipe.d_ff}, {'pre' if recipe.norm_first else 'post'}-norm\n"
        f"your own     {', '.join(('Transformer', *functions.own))}"
    )
    if functions.stand_ins:
        print(f"not yet      {', '.join(functions.stand_ins)}; simple ones of torch's stand in")
    bar = _Bar(options.minutes)
    cpu = time.process_time()
    progress = train(
        model, functions, data, recipe, minutes=options.minutes, seed=options.seed, report=bar.draw
    )
    cpu = (time.process_time() - cpu) / 60
    bar.end()
    print(
        f"training     {progress.minutes:.1f} minutes ({cpu:.1f} of CPU time), "
        f"{progress.steps:,} steps, {progress.epochs:.1f} epochs, loss {progress.loss:.3f}"
    )
    result = measure(module, model, data)
    print(
        f"exact match  {result.exact / result.sentences:.1%} of {result.sentences:,} held-out "
        f"sentences, {'with' if result.decoded else 'judged without'} greedy_decode"
    )
    for english, french, said in result.examples:
        print(f"\n  {english}\n  {said}" + ("" if said == french else f"\n  right: {french}"))
    return 0


class _Bar:
    """A progress bar on stderr; where that is no terminal, a line for each tenth of the time."""

    def __init__(self, minutes: float) -> None:
        self.minutes = minutes
        self.moving = sys.stderr.isatty()
        self.next_share = 0.0

    def draw(self, progress: "Progress") -> None:
        """Draw the bar over the one before."""
        share = min(progress.minutes / self.minutes, 1.0)
        if not self.moving and share < self.next_share:
            return
        self.next_share += 0.1
        filled = round(BAR * share)
        line = (
            f"[{'#' * filled}{'.' * (BAR - filled)}] {progress.minutes:.1f} of {self.minutes:g} "
            f"min, step {progress.steps:,}, loss {progress.loss:.3f}, {progress.rate:,.0f} tokens/s"
        )
        start, end = ("\r", "") if self.moving else ("", "\n")
        print(f"{start}{line:<80}", end=end, file=sys.stderr, flush=True)

    def end(self) -> None:
        """Leave the last bar standing."""
        if self.moving:
            print(file=sys.stderr)

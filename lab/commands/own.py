"""Five minutes of training by the module's own loss, schedule, optimiser and step."""

import argparse
import sys
import time

from lab.training import (
    Progress,
    Recipe,
    find_functions,
    load_module,
    make_model,
    measure,
    prepare,
    save_checkpoint,
    train,
)

BAR = 20  # characters


def train_own(options: argparse.Namespace) -> int:
    """Train on the grammar's sentences, and count those that are translated exactly."""
    if options.module is None:
        raise ValueError("which module? give its path, such as my_transformer.py")
    minutes = 5.0 if options.minutes is None else options.minutes
    pairs = 60_000 if options.pairs is None else options.pairs
    seed = options.seed or 0
    if options.out is not None and not options.out.parent.is_dir():
        raise ValueError(f"there is no directory {options.out.parent} for --out")
    module, recipe = load_module(options.module), Recipe()
    data = prepare(pairs, seed)
    print(
        f"corpus       {pairs:,} pairs: {len(data.train):,} to train on, "
        f"{len(data.held_out):,} held out, no sentence on both sides\n"
        f"vocabulary   {len(data.source)} English and {len(data.target)} French tokens"
    )
    model = make_model(module, data, recipe, seed)
    functions = find_functions(module)
    print(
        f"model        {sum(p.numel() for p in model.parameters()):,} parameters: d_model "
        f"{recipe.d_model}, {recipe.num_layers} + {recipe.num_layers} layers, {recipe.num_heads} "
        f"heads, d_ff {recipe.d_ff}, {'pre' if recipe.norm_first else 'post'}-norm\n"
        f"your own     {', '.join(('Transformer', *functions.own))}"
    )
    if functions.stand_ins:
        print(f"not yet      {', '.join(functions.stand_ins)}; simple ones of torch's stand in")
    bar = _Bar(minutes)
    cpu = time.process_time()
    progress = train(model, functions, data, recipe, minutes=minutes, seed=seed, report=bar.draw)
    cpu = (time.process_time() - cpu) / 60
    bar.end()
    print(
        f"training     {progress.minutes:.1f} minutes ({cpu:.1f} of CPU time), "
        f"{progress.steps:,} steps, {progress.epochs:.1f} epochs, loss {progress.loss:.3f}"
    )
    if options.out is not None:
        save_checkpoint(options.out, model, data, recipe)
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

    def draw(self, progress: Progress) -> None:
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

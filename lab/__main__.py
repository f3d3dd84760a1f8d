"""Command line of the lab: print sentence pairs, assemble the exercises' model, train it."""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from lab.assemble import assemble, write
from lab.corpus import sentence_pairs
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


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one subcommand; return its exit status, 2 if something is wrong with the arguments."""
    options = _parser().parse_args(arguments)
    try:
        return options.run(options)
    except ValueError as error:
        print(f"python -m lab {options.command}: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m lab", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    _add_corpus(commands)
    _add_assemble(commands)
    _add_train(commands)
    return parser


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


def _add_train(commands: argparse._SubParsersAction) -> None:
    command = commands.add_parser(
        "train",
        help="train an assembled module's Transformer on the grammar's sentences",
        description="Train the Transformer of a module that `assemble` made to translate, on a "
        "CPU, and count how many held-out sentences it translates exactly.",
    )
    command.add_argument("module", type=Path, metavar="MODULE", help="such as my_transformer.py")
    command.add_argument("--minutes", type=float, default=5.0, metavar="M", help="default 5")
    command.add_argument("--pairs", type=int, default=60_000, metavar="N", help="default 60000")
    command.add_argument("--seed", type=int, default=0, metavar="S", help="default 0")
    command.add_argument("--out", type=Path, metavar="CHECKPOINT", help="where to keep the model")
    command.set_defaults(run=_train)


def _train(options: argparse.Namespace) -> int:
    if options.out is not None and not options.out.parent.is_dir():
        raise ValueError(f"there is no directory {options.out.parent} for --out")
    module, recipe = load_module(options.module), Recipe()
    data = prepare(options.pairs, options.seed)
    print(
        f"corpus       {options.pairs:,} pairs: {len(data.train):,} to train on, "
        f"{len(data.held_out):,} held out, no sentence on both sides\n"
        f"vocabulary   {len(data.source)} English and {len(data.target)} French tokens"
    )
    model = make_model(module, data, recipe, options.seed)
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


if __name__ == "__main__":
    sys.exit(main())

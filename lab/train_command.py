"""`python -m lab train`: five minutes of training by the module's own loss, schedule and step."""

import argparse
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import nn

    from lab.five_minutes import Functions, GrammarData, Measurement, Progress, Recipe
    from lab.kept import Keeper

BAR = 20  # characters
MINE = Path("runs/mine")
STAGES = (0.5, 1.0, 2.0, 5.0)  # minutes after which the model is kept as it is then
SAMPLES_EVERY = 0.5  # minutes
EXAMPLES = 5


def add(commands: argparse._SubParsersAction) -> None:
    """Add the subcommand and its flags."""
    command = commands.add_parser(
        "train",
        help="five minutes of training on the grammar's sentences",
        description="Train the Transformer of a module that `assemble` made to translate the "
        "grammar's sentences, by the module's own loss, schedule, optimiser and step; show every "
        "half minute what it makes of the same four sentences; then count the held-out sentences "
        "that it translates exactly. The model is kept: python -m trainer talk RUN.",
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
    command.add_argument(
        "--out",
        type=Path,
        metavar="RUN",
        help=f"folder to keep the model in (default {MINE}, or the next that is free: {MINE}-2)",
    )
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Train on the grammar's sentences, and count those that are translated exactly."""
    # Here, so that a look at the help need not wait for torch.
    from lab.assembled import load_module
    from lab.five_minutes import Recipe, find_functions, grammar_data, grammar_model, measure
    from lab.kept import Keeper, free_place, refuse_taken

    if options.out is not None:
        refuse_taken(options.out)
    module, recipe = load_module(options.module), Recipe()
    data = grammar_data(options.pairs, options.seed)
    model = grammar_model(module, data, recipe, options.seed)
    functions = find_functions(module)
    _describe(options, data, model, functions, recipe)
    out = options.out or free_place(MINE)
    keeper = Keeper(out, options.module, data, recipe, options.pairs, options.seed)
    watch = Watch(module, model, data, keeper, options.minutes)
    if not _train(options, model, functions, data, recipe, watch):
        return 130
    _report(measure(module, model, data), watch)
    print(f"\nkept in {out}; talk to it: python -m trainer talk {out}")
    return 0


def _describe(
    options: argparse.Namespace,
    data: "GrammarData",
    model: "nn.Module",
    functions: "Functions",
    recipe: "Recipe",
) -> None:
    print(
        f"corpus       {options.pairs:,} pairs: {len(data.train):,} to train on, "
        f"{len(data.held_out):,} held out, no sentence on both sides\n"
        f"vocabulary   {len(data.source)} English and {len(data.target)} French tokens\n"
        f"model        {sum(p.numel() for p in model.parameters()):,} parameters: d_model "
        f"{recipe.d_model}, {recipe.num_layers} + {recipe.num_layers} layers, {recipe.num_heads} "
        f"heads, d_ff {recipe.d_ff}, {'pre' if recipe.norm_first else 'post'}-norm\n"
        f"your own     {', '.join(('Transformer', *functions.own))}"
    )
    if functions.stand_ins:
        print(f"not yet      {', '.join(functions.stand_ins)}; simple ones of torch's stand in")


def _train(
    options: argparse.Namespace,
    model: "nn.Module",
    functions: "Functions",
    data: "GrammarData",
    recipe: "Recipe",
    watch: "Watch",
) -> bool:
    """Train and keep what came of it; whether it came to its end, and not to Ctrl-C."""
    from lab.five_minutes import train

    sizes = {"minutes": options.minutes, "seed": options.seed}
    watch.begin()
    try:
        train(model, functions, data, recipe, **sizes, report=watch.look)
    except KeyboardInterrupt:
        watch.end("stopped     ")
        print(f"kept in {watch.keeper.path}")
        return False
    watch.end("training    ")
    return True


def _report(result: "Measurement", watch: "Watch") -> None:
    from lab.phenomena import shares_right

    print(
        f"exact match  {result.exact / result.sentences:.1%} of {result.sentences:,} held-out "
        f"sentences, {'with' if result.decoded else 'judged without'} greedy_decode"
    )
    watch.keeper.log("measured", {"exact": result.exact, "sentences": result.sentences})
    for english, french, said in result.translations[:EXAMPLES]:
        print(f"\n  {english}\n  {said}" + ("" if said == french else f"\n  right: {french}"))
    if result.decoded:
        print("\nright where the grammar asks for it")
        pairs = ((french, said) for _, french, said in result.translations)
        for phenomenon, (right, there) in shares_right(pairs).items():
            share = f"{right / there:.0%} of {there:,}" if there else "never there"
            print(f"  {phenomenon:<32} {share}")


class Watch:
    """What happens while a model trains: a bar, translations on the way, weights on the disk.

    Args:
        module: the module of the model.
        model: what trains.
        data: where the sentences that are watched come from.
        keeper: the run's folder.
        minutes: how long the training will take.
    """

    def __init__(
        self,
        module: ModuleType,
        model: "nn.Module",
        data: "GrammarData",
        keeper: "Keeper",
        minutes: float,
    ) -> None:
        from lab.phenomena import telling_pairs

        self.module, self.model, self.data, self.keeper = module, model, data, keeper
        self.pairs = telling_pairs(data.held_out)
        self.bar = _Bar(minutes)
        self.stages = [minute for minute in STAGES if minute < minutes]
        self.next_sample = SAMPLES_EVERY
        self.last: Progress | None = None

    def begin(self) -> None:
        """Show the sentences that will be watched, if the module can translate yet."""
        if self._said() is None:
            return
        for number, (english, french) in enumerate(self.pairs):
            head = "watched      " if number == 0 else 13 * " "
            print(f"{head}{number} {english}\n{15 * ' '}{french}")

    def look(self, progress: "Progress") -> None:
        """Draw the bar; translate and keep when it is time."""
        self.last = progress
        self.bar.draw(progress)
        record = {"loss": progress.loss, "rate": progress.learning_rate}
        self.keeper.log("train", {"step": progress.steps, **record})
        if progress.minutes >= self.next_sample:
            self.next_sample = SAMPLES_EVERY * (progress.minutes // SAMPLES_EVERY + 1)
            self._sample(progress)
        passed = [minute for minute in self.stages if progress.minutes >= minute]
        if passed:
            self.stages = self.stages[len(passed) :]
            self.keeper.keep(self.model, progress)

    def end(self, how: str) -> None:
        """Leave the bar standing, keep the model as it is now, and say how far it came."""
        self.bar.end()
        if self.last is None:
            print(f"{how} before the first report")
            return
        last = self.last
        self.keeper.keep(self.model, last)
        print(
            f"{how} {last.minutes:.1f} minutes ({last.cpu_minutes:.1f} of CPU time), "
            f"{last.steps:,} steps, {last.epochs:.1f} epochs, loss {last.loss:.3f}"
        )

    def _said(self) -> list[str] | None:
        from lab.five_minutes import translate

        return translate(self.module, self.model, self.data, [english for english, _ in self.pairs])

    def _sample(self, progress: "Progress") -> None:
        said = self._said()
        if said is None:
            return
        self.bar.end()
        for number, sentence in enumerate(said):
            head = f"{progress.minutes:.1f} min" if number == 0 else ""
            print(f"{head:<13}{number} {sentence}", flush=True)
        record: dict[str, Any] = {"minutes": round(progress.minutes, 3), "translations": said}
        self.keeper.log("sample", {"step": progress.steps, **record})


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

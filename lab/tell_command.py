"""`python -m lab tell`: your language model learns to tell stories, and tells one."""

import argparse
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import nn

    from lab.five_minutes import Functions
    from lab.stories import Stories

WIDTH, LAYERS = 64, 2
WARMUP = 100  # steps
WORDS = 200_000  # to train on
EVERY = 100  # steps between two reports


def add(commands: argparse._SubParsersAction) -> None:
    """Add the subcommand and its flags."""
    command = commands.add_parser(
        "tell",
        help="train a module's LanguageModel on stories, and let it tell one",
        description="Train the LanguageModel of a module that `assemble` made on small stories, by "
        "the module's own loss, schedule, optimiser and step; measure it beside the best possible "
        "loss; then let it write, by chance and greedily.",
    )
    command.add_argument("module", type=Path, metavar="MODULE", help="such as my_transformer.py")
    command.add_argument("--steps", type=int, default=400, metavar="N", help="default 400")
    command.add_argument(
        "--temperature", type=float, default=0.8, metavar="T", help="of what is drawn (default 0.8)"
    )
    command.add_argument("--words", type=int, default=50, metavar="N", help="to tell (default 50)")
    command.add_argument("--seed", type=int, default=0, metavar="S", help="default 0")
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Train, measure and tell."""
    # Here, so that a look at the help need not wait for torch.
    import torch

    from lab.assembled import Incomplete, load_module
    from lab.five_minutes import find_functions
    from lab.language_model import Sourceless, new_model
    from lab.stories import Stories

    if options.steps < 1 or options.temperature <= 0 or options.words < 1:
        raise ValueError("--steps and --words must be at least 1, --temperature above 0")
    torch.set_num_threads(1)  # small matrices: one core is fastest
    module, source = load_module(options.module), Stories()
    functions = find_functions(module)
    make = getattr(module, "LanguageModel", None)
    if make is None:
        raise Incomplete(f"{options.module} has no LanguageModel; it is question 12.2")
    # one id more than words: that of padding, of which there is none here
    model = new_model(
        len(source) + 1, WIDTH, LAYERS, make=make, longest=options.words + 40, seed=options.seed
    )
    print(
        f"model        {sum(p.numel() for p in model.parameters()):,} parameters\n"
        f"your own     {', '.join(('LanguageModel', *functions.own))}"
    )
    if functions.stand_ins:
        print(f"not yet      {', '.join(functions.stand_ins)}; simple ones of torch's stand in")
    _train(options, Sourceless(model), functions, source)
    _measure(model, source)
    _tell(options, model, source)
    return 0


def _train(
    options: argparse.Namespace, model: "nn.Module", functions: "Functions", source: "Stories"
) -> None:
    from lab.assembled import answers_needed
    from lab.language_model import batches

    optimizer, scheduler = functions.scheduled_adam(
        model.parameters(), lambda step: functions.learning_rate(step, WIDTH, WARMUP)
    )
    stream = source.draw(WORDS, options.seed)
    for done, windows in enumerate(batches(stream, options.steps, options.seed), start=1):
        with answers_needed():
            loss = functions.train_step(
                model,
                windows[:, :1],  # a source that nobody looks at
                windows,
                optimizer,
                len(source),
                functions.label_smoothed_loss,
            )
        scheduler.step()
        if done % EVERY == 0 or done == options.steps:
            print(f"step {done:<7} loss {loss:.3f}", flush=True)


def _measure(model: "nn.Module", source: "Stories") -> None:
    from lab.language_model import WINDOW, losses_of

    windows = source.draw(500 * (WINDOW + 1), seed=1_000_003).view(-1, WINDOW + 1)
    found = float(losses_of(model, windows).mean())
    best = float(source.best_losses(windows)[:, 1:].mean())
    print(f"held out     loss {found:.3f} a word; the best possible is {best:.3f}")


def _tell(options: argparse.Namespace, model: "nn.Module", source: "Stories") -> None:
    import torch

    from lab.language_model import Remembering

    remembering = Remembering(model)
    generator = torch.Generator().manual_seed(options.seed)
    new, words = source.encode("<new>")[None], [0]
    with torch.no_grad():
        for offset in range(options.words):
            logits = remembering(new, offset)[:, -1, : len(source)] / options.temperature
            new = torch.multinomial(logits.softmax(-1), 1, generator=generator)
            words.append(int(new))
    print(f"\n{fill(source.decode(words), 76)}")

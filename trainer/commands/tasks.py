"""`python -m trainer language`, `write`, `captions`, `describe`: other uses of the same parts."""

import argparse
import sys
from pathlib import Path
from typing import Any

from trainer.configs import settings

SHADES = "▀"  # upper half in one colour, lower half in another: two pixels


def add_language(commands: argparse._SubParsersAction) -> None:
    """Add the subcommand and its flags."""
    command = commands.add_parser(
        "language",
        help="train an assembled module's LanguageModel on stories, or on a text of yours",
        description="Train the LanguageModel of a module that `python -m lab assemble` made to "
        "say what comes next. The stories come from a source whose entropy is known: the least "
        "loss that any model could have stands beside the model's.",
    )
    command.add_argument(
        "--data", default="stories", metavar="DATA", help="stories (default), or a text file"
    )
    _add_training(command, "runs/language")
    command.set_defaults(run=language)


def add_captions(commands: argparse._SubParsersAction) -> None:
    """Add the subcommand and its flags."""
    command = commands.add_parser(
        "captions",
        help="train an assembled module's Captioner on drawings",
        description="Train the Captioner of a module that `python -m lab assemble` made to say "
        "what small drawings show. They are made here, so it is known which captions are true.",
    )
    _add_training(command, "runs/captions")
    command.set_defaults(run=captions)


def _add_training(command: argparse.ArgumentParser, out: str) -> None:
    command.add_argument("module", type=Path, metavar="MODULE", help="such as my_transformer.py")
    command.add_argument("--steps", type=int, metavar="N", help="updates")
    command.add_argument("--seed", type=int, metavar="S", help="default 0")
    command.add_argument(
        "--set",
        action="append",
        metavar="FIELD=VALUE",
        help="any other field of the recipe, such as d_model=128 or peak_rate=0.001",
    )
    command.add_argument("--device", default="auto", metavar="NAME", help="auto, cpu, cuda or mps")
    command.add_argument(
        "--out",
        type=Path,
        metavar="RUN",
        help=f"the run's folder (by default {out})",
    )
    command.set_defaults(out_of=Path(out))


def add_write(commands: argparse._SubParsersAction) -> None:
    """Add the subcommand and its flags."""
    command = commands.add_parser(
        "write",
        help="let a trained language model go on with a text",
        description="Go on with a text, token by token, by a run of `python -m trainer language`.",
    )
    command.add_argument("path", type=Path, metavar="RUN")
    command.add_argument("text", nargs="?", default="", metavar="TEXT", help="how it begins")
    command.add_argument("--count", type=int, default=60, metavar="N", help="tokens (default 60)")
    command.add_argument("--temperature", type=float, default=1.0, metavar="T")
    command.add_argument("--top-k", type=int, default=0, metavar="K")
    command.add_argument("--top-p", type=float, default=1.0, metavar="P")
    command.add_argument("--seed", type=int, default=0, metavar="S")
    command.set_defaults(run=write)


def add_describe(commands: argparse._SubParsersAction) -> None:
    """Add the subcommand and its flags."""
    command = commands.add_parser(
        "describe",
        help="let a trained captioner say what new drawings show",
        description="Show drawings that were never trained on, and what a run of "
        "`python -m trainer captions` says of them.",
    )
    command.add_argument("path", type=Path, metavar="RUN")
    command.add_argument("--count", type=int, default=3, metavar="N", help="drawings (default 3)")
    command.add_argument("--seed", type=int, default=1000, metavar="S", help="of the drawings")
    command.set_defaults(run=describe)


def language(options: argparse.Namespace) -> int:
    """Train a language model; the exit status."""
    from trainer.tasks import STORIES, Language, Recipe, read_text

    recipe = _recipe(Recipe(), options)
    data = options.data if options.data == STORIES else str(Path(options.data).absolute())
    status, out = _train(options, Language(recipe, read_text(data, recipe)), data)
    print(f"next         python -m trainer write {out}")
    return status


def captions(options: argparse.Namespace) -> int:
    """Train a captioner; the exit status."""
    from trainer.tasks import Captions, Recipe

    recipe = _recipe(Recipe(d_model=32, d_ff=128, batch=64, examples=4000, steps=1500), options)
    status, out = _train(options, Captions(recipe), "")
    print(f"next         python -m trainer describe {out}")
    return status


def _recipe(recipe: Any, options: argparse.Namespace) -> Any:
    given = {"steps": options.steps, "seed": options.seed}
    return recipe.with_fields(
        settings(options.set or ()) | {k: v for k, v in given.items() if v is not None}
    )


def _train(options: argparse.Namespace, task: Any, data: str) -> tuple[int, Path]:
    from lab.assembled import load_module
    from lab.kept import free_place
    from trainer import task_runs
    from trainer.distributed import find_device

    device = find_device(options.device)
    model = task.build(load_module(options.module))
    out = options.out or free_place(options.out_of)
    task_runs.begin(out, options.module, task, data)
    print(f"data         {task.about}")
    print(f"model        {sum(p.numel() for p in model.parameters()):,} parameters, {device}")
    bar = _Bar(task.recipe.steps)
    try:
        stop = task_runs.train(out, task, model, device, bar.show)
    finally:
        bar.close()
    print(f"saved        in {out}" + (f", stopped by {stop.name}" if stop.name else ""))
    return {None: 0, "SIGINT": 130, "SIGTERM": 143}[stop.name], out


class _Bar:
    """A progress bar on a terminal; what was measured is printed in any case."""

    def __init__(self, steps: int) -> None:
        self.bar = None
        if sys.stderr.isatty():
            from tqdm import tqdm

            self.bar = tqdm(total=steps, unit=" steps", leave=False)

    def show(self, progress: Any) -> None:
        """Show how far training is."""
        if self.bar is not None:
            self.bar.update(progress.step - self.bar.n)
            said = f"loss {progress.loss:.3f}, {progress.tokens_per_second:,.0f} tokens/s"
            self.bar.set_postfix_str(said, refresh=False)
        if progress.measured:
            named = (f"{name} {value:.3f}" for name, value in progress.measured.items())
            self._say(f"step {progress.step:>6,}  held out: {', '.join(named)}")
            for line in progress.sample:
                self._say(*(f"             {part}" for part in line.splitlines()))

    def _say(self, *lines: str) -> None:
        for line in lines:
            if self.bar is not None:
                self.bar.write(line, file=sys.stdout)
            else:
                print(line, flush=True)

    def close(self) -> None:
        """Take the bar away."""
        if self.bar is not None:
            self.bar.close()


def write(options: argparse.Namespace) -> int:
    """Go on with a text; the exit status."""
    if options.count < 0:
        raise ValueError(f"--count {options.count} must be at least 0")
    opened = _open(options.path, "language")
    settings = {"temperature": options.temperature, "top_k": options.top_k, "top_p": options.top_p}
    text, count, seed = options.text, options.count, options.seed
    print(opened.task.write(opened.model, text, count, **settings, seed=seed))
    return 0


def describe(options: argparse.Namespace) -> int:
    """Show drawings and captions; the exit status."""
    if options.count < 1:
        raise ValueError(f"--count {options.count} must be at least 1")
    opened = _open(options.path, "captions")
    for picture, said in opened.task.describe(opened.model, options.count, options.seed):
        print(f"{_shown(picture) if sys.stdout.isatty() else _letters(picture)}\n{said}\n")
    return 0


def _open(path: Path, task: str) -> Any:
    from trainer.task_runs import open_task_run

    opened = open_task_run(path)
    if opened.task.name != task:
        raise ValueError(f"{path} is a run of python -m trainer {opened.task.name}, not of {task}")
    for note in opened.notes:
        print(f"note: {note}", file=sys.stderr)
    return opened


def _shown(picture: Any) -> str:
    """A picture in a terminal's colours, two rows of pixels in a line."""
    pixels = (255 * picture.clamp(0, 1)).int().permute(1, 2, 0).tolist()
    lines = []
    for upper, lower in zip(pixels[::2], pixels[1::2], strict=True):
        pairs = zip(upper, lower, strict=True)
        cells = (
            f"\033[38;2;{r};{g};{b}m\033[48;2;{x};{y};{z}m{SHADES}"
            for (r, g, b), (x, y, z) in pairs
        )
        lines.append("".join(cells) + "\033[0m")
    return "\n".join(lines)


def _colour(ground: int, red: int, green: int, blue: int) -> str:
    return f"\033[{ground};2;{red};{green};{blue}m"


def _letters(picture: Any) -> str:
    """A picture as letters, for what is no terminal: r, g and b, and dots around them."""
    most, which = picture.max(dim=0)
    rows = zip(most.tolist(), which.tolist(), strict=True)
    return "\n".join(
        "".join("rgb"[w] if m > 0.5 else "." for m, w in zip(*row, strict=True)) for row in rows
    )

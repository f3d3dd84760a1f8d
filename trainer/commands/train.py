"""`python -m trainer train`: train an assembled module's Transformer by a recipe."""

import argparse
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trainer.configs import CONFIGS, TrainConfig, differences, find_config, settings


def add(commands: argparse._SubParsersAction) -> None:
    """Add the subcommand and its flags."""
    command = commands.add_parser(
        "train",
        help="train an assembled module's Transformer",
        description="Train the Transformer of a module that `python -m lab assemble` made to "
        "translate: by a recipe, on any corpus, with checkpoints.",
        epilog="On several GPUs: python -m torch.distributed.run --nproc-per-node 2 -m trainer "
        "train ... Exit status: 0 if the training is done; 2 if something is wrong; 130 or 143 if "
        "Ctrl-C or SIGTERM stopped it, after saving.",
    )
    command.add_argument(
        "module", nargs="?", type=Path, metavar="MODULE", help="such as my_transformer.py"
    )
    command.add_argument(
        "--model", type=Path, metavar="MODULE", help="the same as MODULE on its own"
    )
    command.add_argument(
        "--config",
        metavar="NAME",
        help=f"the recipe: {', '.join(CONFIGS)}, or a .json file with such a one",
    )
    command.add_argument("--seed", type=int, metavar="S", help="default the recipe's")
    command.add_argument(
        "--out",
        type=Path,
        metavar="RUN",
        help="the run's directory (default runs/DATA-LANGUAGES-CONFIG)",
    )
    _add_corpus(command.add_argument_group("what to train on"))
    _add_settings(command.add_argument_group("how to train"))
    command.set_defaults(run=run)


def _add_corpus(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--data",
        metavar="DATA",
        help="grammar (default), multi30k, wmt14, or a path to line-aligned files: a folder with "
        "train.en, train.fr, valid.en, ..., or their common beginning",
    )
    group.add_argument(
        "--languages", metavar="FROM-TO", help="such as en-de (default en-fr), as files are named"
    )
    group.add_argument(
        "--data-dir", type=Path, metavar="DIR", help="where multi30k's files lie (else downloaded)"
    )
    group.add_argument(
        "--raw",
        action="store_true",
        default=None,
        help="multi30k as written, not its tokenised, lower-cased files",
    )
    group.add_argument(
        "--pairs", type=int, metavar="N", help="sentences of the grammar (default 60000)"
    )


def _add_settings(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--steps", type=int, metavar="N", help="stop after N updates")
    group.add_argument(
        "--cpu-minutes",
        type=float,
        metavar="M",
        help="stop after M minutes of processor time (validation does not count)",
    )
    group.add_argument(
        "--max-tokens", type=int, metavar="N", help="ids of a micro-batch, on either side"
    )
    group.add_argument("--precision", choices=("fp32", "bf16"), help="numbers of the model")
    group.add_argument(
        "--compile",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="use torch.compile (needs a C++ compiler or a GPU)",
    )
    group.add_argument(
        "--set",
        action="append",
        metavar="FIELD=VALUE",
        help="any other field of the recipe, such as warmup=800 or model.dropout=0.2",
    )
    group.add_argument(
        "--own",
        action="store_true",
        help="with nothing but the module's own loss, rate, optimiser and step; no --resume",
    )
    group.add_argument("--device", metavar="NAME", help="auto (default), cpu, cuda, cuda:1 or mps")
    group.add_argument(
        "--threads", type=int, metavar="N", help="of torch, on the CPU (default the recipe's)"
    )
    group.add_argument(
        "--resume",
        action="store_true",
        default=None,
        help="go on with the run in --out from its last checkpoint",
    )
    group.add_argument(
        "--tensorboard",
        action="store_true",
        default=None,
        help="also write RUN/tb (needs the package tensorboard)",
    )


def run(options: argparse.Namespace) -> int:
    """Train by the recipe that is asked for; the exit status."""
    if options.model is not None and options.module is not None:
        raise ValueError(f"two modules given, {options.module} and {options.model}; give one")
    options.module = options.module or options.model
    if options.module is None and not options.resume:
        raise ValueError("which module? give its path, such as my_transformer.py")
    if options.config is None and not options.resume:
        raise ValueError(
            "which recipe? add --config, such as --config cpu10; the five minutes that need none "
            "are python -m lab train"
        )
    from trainer.distributed import Ranks, find_device, together

    ranks = Ranks.from_environment()
    device = find_device(options.device or "auto", ranks.local)
    if options.own:
        if options.resume or options.tensorboard or ranks.world > 1:
            raise ValueError("--own is one process that keeps no optimiser: no --resume, no others")
        return _train_own(options, device)
    with together(ranks, device):
        return _train_together(options, ranks, device)


def _train_together(options: argparse.Namespace, ranks: Any, device: Any) -> int:
    from trainer.distributed import wait_for_all
    from trainer.fused.process import prepare_process
    from trainer.loop import Trainer
    from trainer.preparation import encode_corpus
    from trainer.runs import RecipeRun

    out = _out(options)
    if options.resume:
        config = RecipeRun(out).config
    else:
        config = _config(options, find_config(options.config))
    process = prepare_process(config.threads)  # first, for a run says on how many it was begun
    if ranks.main:
        if options.resume:
            _check_same(options, out)
        else:
            _begin(options, config, out, {"device": str(device), "processes": ranks.world})
    wait_for_all(ranks)
    opened = RecipeRun(out)
    data = encode_corpus(opened.corpus(), opened.tokenizers, opened.config)
    board = _board(out) if options.tensorboard and ranks.main else None
    trainer = Trainer(
        opened.module, data, opened.config, device, ranks, out, opened.identity(), board
    )
    resumed = trainer.resume()
    if ranks.main:
        for note in (*opened.notes, *data.corpus.notes):
            print(f"note         {note}")
        _describe(trainer, process)
        if resumed:
            print(f"resumed      at step {trainer.position.step:,}")
        elif options.resume:
            print("resumed      from the beginning: there was no checkpoint yet")
    bar = Bar(opened.config) if ranks.main else None
    try:
        outcome = trainer.train(bar.show if bar else lambda progress: None)
    finally:
        if bar:
            bar.close()
    return _report(outcome, out) if ranks.main else _status(outcome)


def _train_own(options: argparse.Namespace, device: Any) -> int:
    from lab.assembled import load_module
    from trainer.fused.process import prepare_process
    from trainer.own import TRAINED_WITH, OwnTrainer, own_config, refuse_incomplete
    from trainer.preparation import encode_corpus
    from trainer.runs import RecipeRun

    refuse_incomplete(load_module(options.module))  # before a folder is made
    config, out = own_config(_config(options, find_config(options.config))), _out(options)
    process = prepare_process(config.threads)
    _begin(options, config, out, {"device": str(device), "processes": 1, "own": True})
    opened = RecipeRun(out)
    data = encode_corpus(opened.corpus(), opened.tokenizers, config)
    trainer = OwnTrainer(opened.module, data, config, device, out, opened.identity())
    print(f"all yours    {', '.join(TRAINED_WITH)}")
    _describe(trainer, process)
    bar = Bar(config)
    try:
        outcome = trainer.train(bar.show)
    finally:
        bar.close()
    return _report(outcome, out, own=True)


def _out(options: argparse.Namespace) -> Path:
    if options.out is not None:
        return options.out
    if options.resume:
        raise ValueError("--resume needs the run's directory: --out RUN")
    data = Path(options.data or "grammar").name
    return Path("runs") / f"{data}-{options.languages or 'en-fr'}-{Path(options.config).stem}"


def _begin(
    options: argparse.Namespace, config: TrainConfig, out: Path, machine: dict[str, Any]
) -> None:
    """Write the directory of a new run."""
    from lab.assembled import load_module
    from trainer import runs
    from trainer.preparation import learn_tokenizers

    if (out / "config.json").exists():
        raise ValueError(
            f"{out} holds a run already; go on with it by --resume, or choose another --out"
        )
    if out.exists() and not out.is_dir():
        raise ValueError(f"--out {out} is a file; a run needs a directory")
    load_module(options.module)  # so that a wrong one is refused before the corpus is read
    source = _source(options, runs.Source("grammar"))
    corpus = source.load()
    tokenizers = learn_tokenizers(corpus, config)
    runs.begin(out, config, source, corpus, options.module, tokenizers, machine)


def _check_same(options: argparse.Namespace, out: Path) -> None:
    """Refuse to resume a run with other settings than it was begun with."""
    from lab.files import digest
    from trainer.runs import RecipeRun

    opened = RecipeRun(out)
    began = opened.config if options.config is None else find_config(options.config)
    differ = differences(opened.config, _config(options, began))
    if differ:
        raise ValueError(
            f"{out} was begun by another recipe: its {differ[0]}; leave the flag out to go on "
            "with it, or begin another run"
        )
    if _source(options, opened.source) != opened.source:
        raise ValueError(f"{out} was begun on another corpus, {opened.source.data}")
    if options.module is not None:
        if not options.module.is_file():
            raise ValueError(f"there is no module {options.module}")
        text = options.module.read_text(encoding="utf-8")
        if digest(text) != opened.content["sha256"]["module"]:
            raise ValueError(
                f"{options.module} is not the module that {out} was begun with; leave it out to "
                "go on with the run's own copy"
            )


def _config(options: argparse.Namespace, config: TrainConfig) -> TrainConfig:
    """The recipe with what the flags change."""
    changes = settings(options.set or ())
    for name in ("max_tokens", "seed", "precision", "compile", "threads"):
        if getattr(options, name) is not None:
            changes[name] = getattr(options, name)
    if options.steps is not None or options.cpu_minutes is not None:
        changes |= {"steps": options.steps, "cpu_minutes": options.cpu_minutes}
    return config.with_fields(changes) if changes else config


def _source(options: argparse.Namespace, source: Any) -> Any:
    """Which corpus, with what the flags change."""
    from dataclasses import replace

    from trainer.datasets import NAMES

    changes: dict[str, Any] = {}
    if options.data is not None:
        known = options.data in NAMES
        changes["data"] = options.data if known else str(Path(options.data).absolute())
    if options.languages is not None:
        first, dash, second = options.languages.partition("-")
        if not (first and dash and second):
            raise ValueError(f"--languages {options.languages} must be of the form en-fr")
        changes |= {"source": first, "target": second}
    if options.data_dir is not None:
        changes["data_dir"] = str(options.data_dir.absolute())
    if options.raw is not None:
        changes["raw"] = options.raw
    if options.pairs is not None:
        changes["pairs"] = options.pairs
    return replace(source, **changes)


def _board(out: Path) -> Any:
    """TensorBoard's writer."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise ValueError("--tensorboard needs the package: pip install tensorboard") from error
    return SummaryWriter(str(out / "tb"))


# What is printed ----------------------------------------------------------------------------------


def _describe(trainer: Any, process: Sequence[str]) -> None:
    import torch

    config, data, sizes = trainer.config, trainer.data, trainer.config.model
    corpus = data.corpus
    dropped = f", {data.train.dropped:,} too long" if data.train.dropped else ""
    print(
        f"corpus       {corpus.name}, {corpus.source_language} to {corpus.target_language}: "
        f"{len(data.train):,} pairs to train on{dropped}, {len(corpus.valid):,} to validate\n"
        f"vocabulary   {_vocabulary(data.tokenizers)}\n"
        f"batches      {config.max_tokens * config.accumulate * trainer.ranks.world:,} ids an "
        f"update on either side, {data.padding:.1%} padding\n"
        f"model        {sum(p.numel() for p in trainer.model.parameters()):,} parameters: "
        f"d_model {sizes.d_model}, {sizes.num_layers} + {sizes.num_layers} layers, "
        f"{sizes.num_heads} heads, d_ff {sizes.d_ff}, "
        f"{'pre' if sizes.norm_first else 'post'}-norm, dropout {sizes.dropout}"
    )
    if trainer.unused:
        print(f"unused       {', '.join(trainer.unused)}: the loss does not depend on them")
    for drop_in in trainer.drop_ins:
        used = "stands in" if drop_in.used else "not used "
        print(f"{used}    {drop_in.name}: {drop_in.reason}")
    if trainer.decoding:
        print(f"decoding     without a cache: {trainer.decoding}")
    where = torch.cuda.get_device_name(trainer.device) if trainer.device.type == "cuda" else ""
    processes = f", {trainer.ranks.world} processes" if trainer.ranks.world > 1 else ""
    print(
        f"device       {trainer.device} {where}{processes}, {config.precision}"
        f"{', compiled' if config.compile else ''}"
        + "".join(f"; {said}" for said in process if trainer.device.type == "cpu")
    )


def _vocabulary(tokenizers: Any) -> str:
    source, target = (f"{len(each):,}" for each in (tokenizers.source, tokenizers.target))
    if tokenizers.joint:
        return f"{target} joint subwords"
    return f"{source} subwords of the source's language, {target} of the target's"


class Bar:
    """A progress bar on stderr; where that is no terminal, a line for each twentieth."""

    def __init__(self, config: TrainConfig) -> None:
        self.config = config
        self.next_share = 0.0
        self.bar = None
        if sys.stderr.isatty():
            from tqdm import tqdm

            self.bar = tqdm(total=100, unit="%", bar_format="{l_bar}{bar}| {elapsed}{postfix}")

    def show(self, progress: Any) -> None:
        """Show how far training is."""
        said = f"step {progress.step:,}"
        if not math.isnan(progress.loss):
            said += f", loss {progress.loss:.3f}"
        if progress.valid_loss is not None:
            said += f", valid {progress.valid_loss:.3f}"
        if progress.bleu is not None:
            said += f", BLEU {progress.bleu:.1f}"
        said += f", {progress.tokens_per_second:,.0f} tokens/s"
        if self.bar is not None:
            self.bar.set_postfix_str(said, refresh=False)
            self.bar.update(100 * progress.share - self.bar.n)
            return
        if progress.share >= self.next_share:
            self.next_share = progress.share + 0.05 if progress.share < 0.95 else 1.0
            print(f"{progress.share:>4.0%}  {said}", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Leave the last bar standing."""
        if self.bar is not None:
            self.bar.close()


def _report(outcome: Any, out: Path, own: bool = False) -> int:
    position = outcome.position
    print(
        f"training     {position.cpu_seconds / 60:.2f} minutes of processor time, "
        f"{position.seconds / 60:.2f} by the clock, {position.step:,} steps, "
        f"{position.tokens:,} target tokens"
    )
    if own:
        print(f"saved        in {outcome.saved}; next: python -m trainer evaluate --own {out}")
    elif outcome.stopped:
        print(
            f"stopped      by {outcome.stopped}; saved in {outcome.saved}; go on with\n"
            f"             python -m trainer train --resume --out {out}"
        )
    elif outcome.saved is None:
        print(f"saved        before; the budget is used up; next: python -m trainer evaluate {out}")
    else:
        print(f"saved        in {outcome.saved}; next: python -m trainer evaluate {out}")
    return _status(outcome)


def _status(outcome: Any) -> int:
    """128 and the signal's number, as shells count, if one stopped the training."""
    return {None: 0, "SIGINT": 130, "SIGTERM": 143}[outcome.stopped]

"""A training run on disk, opened again: its recipe, corpus, module, tokeniser and weights."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from lab.assembled import load_module, own
from lab.text import Tokenizer
from trainer import checkpoints, datasets, records
from trainer.checkpoints import Position
from trainer.configs import TrainConfig
from trainer.datasets import Corpus
from trainer.preparation import configured_model, corpus_digest


@dataclass(frozen=True)
class Source:
    """Which corpus, as `trainer.datasets.load` takes it."""

    data: str
    source: str = "en"
    target: str = "fr"
    data_dir: str | None = None
    raw: bool = False
    pairs: int = 60_000

    def load(self) -> Corpus:
        """The corpus itself."""
        return datasets.load(
            self.data,
            self.source,
            self.target,
            data_dir=None if self.data_dir is None else Path(self.data_dir),
            raw=self.raw,
            pairs=self.pairs,
        )


@dataclass(frozen=True)
class Run:
    """What a run directory holds, apart from the checkpoints.

    Attributes:
        path: the directory.
        config: the recipe.
        source: which corpus.
        module: the run's own copy of the module.
        tokenizer: joint subwords.
        content: all of `config.json`.
        notes: what somebody who uses the run should know, in sentences.
    """

    path: Path
    config: TrainConfig
    source: Source
    module: ModuleType
    tokenizer: Tokenizer
    content: Mapping[str, Any]
    notes: tuple[str, ...]

    def corpus(self) -> Corpus:
        """The run's corpus.

        Raises:
            ValueError: if it cannot be loaded, or its training part is no longer the same.
        """
        corpus = self.source.load()
        if corpus_digest(corpus) != self.content["corpus_sha256"]:
            raise ValueError(
                f"the training sentences of {self.source.data} have changed since {self.path} began"
            )
        return corpus

    def identity(self) -> dict[str, Any]:
        """What a checkpoint of this run says of itself."""
        digests = {f"{name}'s SHA-256": value for name, value in self.content["sha256"].items()}
        corpus = {"corpus's SHA-256": self.content["corpus_sha256"]}
        return {"recipe": self.content["recipe"], **digests, **corpus}


@dataclass(frozen=True)
class Weights:
    """Weights to decode with, what they are in words, and how much training they took."""

    tensors: Mapping[str, Tensor]
    what: str
    position: Position


def begin(
    path: Path,
    config: TrainConfig,
    source: Source,
    corpus: Corpus,
    module_path: Path,
    tokenizer: Tokenizer,
    machine: Mapping[str, Any],
) -> None:
    """Write the directory of a new run; `machine` says where it was begun, for records."""
    content = {
        "recipe": config.to_json(),
        "data": asdict(source),
        "module": str(module_path),
        "corpus_sha256": corpus_digest(corpus),
        "training": {**records.head(), **machine},
    }
    text = module_path.read_text(encoding="utf-8")
    checkpoints.write_run(path, content, text, tokenizer.to_json())


def open_run(path: Path) -> Run:
    """Open a run directory.

    Raises:
        ValueError: if there is none, or one of its files is damaged or was changed.
    """
    content = checkpoints.read_run(path)
    try:
        config = TrainConfig.from_json(content["recipe"])
        source = Source(**content["data"])
        original = Path(content["module"])
    except (KeyError, TypeError, ValueError) as error:
        file = path / "config.json"
        raise ValueError(f"{file} is damaged or of another version ({error})") from error
    notes = []
    if original.is_file():
        text = original.read_text(encoding="utf-8")
        if checkpoints.digest(text) != content["sha256"]["module"]:
            notes.append(f"{original} has changed since; the run's own copy of it is used")
    tokenizer = Tokenizer.from_json((path / "tokenizer.json").read_text(encoding="utf-8"))
    module = load_module(path / "module.py")
    return Run(path, config, source, module, tokenizer, content, tuple(notes))


def decoding_weights(run: Run, average: int | None = None, file: Path | None = None) -> Weights:
    """The weights that a run is decoded with.

    Args:
        run: the run.
        average: how many of the last checkpoints to take the mean of; by default the moving
            average if the recipe has one, else the mean of as many as the recipe says.
        file: what `python -m trainer average` wrote, in place of checkpoints.

    Raises:
        ValueError: if there is no checkpoint, or there are fewer than `average`.
    """
    paths = checkpoints.checkpoint_paths(run.path)
    if not paths:
        raise ValueError(f"{run.path} has no checkpoint yet")
    position = checkpoints.read_position(paths[-1])
    if file is not None:
        return Weights(checkpoints.read_single(file)[0], f"weights of {file}", position)
    if average is None and run.config.ema:
        tensors = checkpoints.read_weights(paths[-1], ema=True)
        return Weights(tensors, f"moving average at step {position.step:,}", position)
    count = average if average is not None else min(run.config.average, len(paths))
    if not 1 <= count <= len(paths):
        raise ValueError(
            f"{run.path} has {len(paths)} checkpoints; the mean of {count} cannot be taken"
        )
    if count == 1:
        tensors = checkpoints.read_weights(paths[-1])
        return Weights(tensors, f"weights at step {position.step:,}", position)
    tensors = mean(run.module, [checkpoints.read_weights(path) for path in paths[-count:]])
    what = f"mean of {count} checkpoints, steps {paths[-count].name[5:]} to {paths[-1].name[5:]}"
    return Weights(tensors, what, position)


def mean(module: ModuleType, states: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    """The mean of checkpoints, by the module's `average_checkpoints` where it is answered."""
    trial = [{"x": torch.zeros(2)}, {"x": torch.ones(2)}]
    answered = own(module, "average_checkpoints", trial)
    return answered(states) if answered else checkpoints.mean_of(states)


def decoder(run: Run, weights: Weights, device: torch.device, max_len: int = 0) -> nn.Module:
    """The run's model with these weights, ready to decode.

    Args:
        run: the run.
        weights: its weights.
        device: where to.
        max_len: ids of the longest sentence, if that is longer than the recipe's.
    """
    rows = max(max_len, run.config.model.max_len)
    model = configured_model(run.module, run.tokenizer, run.config, rows)
    checkpoints.load_weights(model, weights.tensors, weights.what)
    return model.to(device).eval()

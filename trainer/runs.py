"""A training run on disk, opened again, of whichever kind: by a recipe, or of five minutes.

Every command that uses a run asks it for the same: its module, the tokenisers of both sides, its
corpus, weights, and the model with weights. `open_run` finds out which kind it is.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from lab.assembled import load_module, own
from lab.kept import Kept, Stage, changed, is_kept, read_kept
from lab.text import SPECIALS, Tokenizer
from lab.weights import load_weights, read_tensors
from trainer import checkpoints, datasets, records
from trainer.checkpoints import Position
from trainer.configs import TrainConfig
from trainer.datasets import Corpus
from trainer.preparation import Tokenizers, configured_model, corpus_digest
from trainer.task_runs import is_task_run


@dataclass(frozen=True)
class Source:
    """Which corpus, as `trainer.datasets.load` takes it."""

    data: str
    source: str = "en"
    target: str = "fr"
    data_dir: str | None = None
    raw: bool = False
    pairs: int = 60_000
    seed: int = 0

    @property
    def tokenised(self) -> bool:
        """Whether its sentences are lower case, with spaces around punctuation, for certain."""
        return self.data == "grammar" or (self.data == "multi30k" and not self.raw)

    def load(self) -> Corpus:
        """The corpus itself."""
        return datasets.load(
            self.data,
            self.source,
            self.target,
            data_dir=None if self.data_dir is None else Path(self.data_dir),
            raw=self.raw,
            seed=self.seed,
            pairs=self.pairs,
        )


@dataclass(frozen=True)
class Weights:
    """Weights to decode with, what they are in words, and how much training they took."""

    tensors: Mapping[str, Tensor]
    what: str
    position: Position


class Run(ABC):
    """What a run directory holds, apart from weights.

    Attributes:
        path: the directory.
        source: which corpus.
        module: the run's own copy of the module.
        source_tokenizer: of the language to translate from.
        target_tokenizer: of the other; may be the same.
        max_len: ids in the longest sentence it was made for, <bos> and <eos> included.
        beam_size: hypotheses a sentence, unless others are asked for.
        length_penalty: the same.
        notes: what somebody who uses the run should know, in sentences.
    """

    path: Path
    source: Source
    module: ModuleType
    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    max_len: int
    beam_size: int
    length_penalty: float
    notes: tuple[str, ...]

    @abstractmethod
    def corpus(self) -> Corpus:
        """The run's corpus.

        Raises:
            ValueError: if it cannot be loaded, or its training part is no longer the same.
        """

    def words(self) -> list[str]:
        """The words that its training sentences are made of, in the language to translate from."""
        return sorted({word for source, _ in self.corpus().train for word in source.split()})

    @abstractmethod
    def weights(self, average: int | None = None, file: Path | None = None) -> Weights:
        """The weights that the run is decoded with.

        Args:
            average: how many of the last checkpoints to take the mean of; by default what the run
                itself says.
            file: what `python -m trainer average` wrote, in place of checkpoints.

        Raises:
            ValueError: if there are none yet, or fewer than `average`.
        """

    @abstractmethod
    def on_the_way(self) -> list[Weights]:
        """The weights at all moments that were kept, oldest first."""

    @abstractmethod
    def model(self, weights: Weights, max_len: int = 0) -> nn.Module:
        """The run's model with these weights, ready to decode.

        Args:
            weights: its weights.
            max_len: ids of the longest sentence, if that is longer than the run's.
        """

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """What a record says of the training."""


class RecipeRun(Run):
    """A run of `python -m trainer train`.

    Attributes:
        config: the recipe.
        content: all of `config.json`.
        tokenizers: of both languages.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.content = content = checkpoints.read_run(path)
        try:
            self.config = TrainConfig.from_json(content["recipe"])
            self.source = Source(**content["data"])
            original = Path(content["module"])
        except (KeyError, TypeError, ValueError) as error:
            file = path / "config.json"
            raise ValueError(f"{file} is damaged or of another version ({error})") from error
        self.notes = changed(original, content["sha256"]["module"])
        text = (path / "tokenizer.json").read_text(encoding="utf-8")
        self.tokenizers = Tokenizers.from_json(text)
        self.source_tokenizer = self.tokenizers.source
        self.target_tokenizer = self.tokenizers.target
        self.module = load_module(path / "module.py")
        self.max_len = self.config.model.max_len
        self.beam_size, self.length_penalty = self.config.beam_size, self.config.length_penalty

    def corpus(self) -> Corpus:
        """The run's corpus; its training part must be the same as when the run began."""
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

    def weights(self, average: int | None = None, file: Path | None = None) -> Weights:
        """By default the moving average if the recipe has one, else the mean that it says."""
        paths = self._checkpoints()
        position = checkpoints.read_position(paths[-1])
        if file is not None:
            return Weights(read_tensors(file)[0], f"weights of {file}", position)
        if average is None and self.config.ema:
            tensors = checkpoints.read_weights(paths[-1], ema=True)
            return Weights(tensors, f"moving average at step {position.step:,}", position)
        count = average if average is not None else min(self.config.average, len(paths))
        if not 1 <= count <= len(paths):
            raise ValueError(
                f"{self.path} has {len(paths)} checkpoints; the mean of {count} cannot be taken"
            )
        if count == 1:
            return _at(paths[-1])
        tensors = mean(self.module, [checkpoints.read_weights(path) for path in paths[-count:]])
        first, last = paths[-count].name[5:], paths[-1].name[5:]
        return Weights(tensors, f"mean of {count} checkpoints, steps {first} to {last}", position)

    def on_the_way(self) -> list[Weights]:
        """The checkpoints that are still there."""
        return [_at(path) for path in self._checkpoints()]

    def model(self, weights: Weights, max_len: int = 0) -> nn.Module:
        """In the recipe's sizes."""
        rows = max(max_len, self.max_len)
        model = configured_model(self.module, self.tokenizers, self.config, rows)
        load_weights(model, weights.tensors, weights.what)
        return model.eval()

    def facts(self) -> dict[str, Any]:
        """Corpus, recipe, machine."""
        data = self.content["data"]
        return {
            # where the files lie is this machine's business
            "data": {**data, "data": Path(data["data"]).name, "data_dir": None},
            "module_sha256": self.content["sha256"]["module"],
            "recipe": self.content["recipe"],
            "seed": self.config.seed,
            "training": dict(self.content["training"]),
        }

    def _checkpoints(self) -> list[Path]:
        paths = checkpoints.checkpoint_paths(self.path)
        if not paths:
            raise ValueError(f"{self.path} has no checkpoint yet")
        return paths


class FiveMinuteRun(Run):
    """A run of `python -m lab train`, on the grammar's sentences."""

    beam_size, length_penalty = 5, 1.0

    def __init__(self, path: Path) -> None:
        self.path = path
        self.kept: Kept = read_kept(path)
        self.module, self.notes = self.kept.module, self.kept.notes
        self.source_tokenizer, self.target_tokenizer = self.kept.source, self.kept.target
        content = self.kept.content
        self.source = Source("grammar", pairs=content["pairs"], seed=content["seed"])
        self.max_len = content["max_len"]

    def corpus(self) -> Corpus:
        """The grammar's sentences, which the run's numbers make again."""
        return self.source.load()

    def words(self) -> list[str]:
        """Its tokeniser knows nothing but words."""
        tokens = self.source_tokenizer.tokens(range(len(self.source_tokenizer)))
        return sorted(token for token in tokens if token not in SPECIALS)

    def weights(self, average: int | None = None, file: Path | None = None) -> Weights:
        """Those at the end."""
        if average is not None or file is not None:
            raise ValueError(
                f"{self.path} is a run of python -m lab train, which keeps no checkpoints to take "
                "the mean of; leave the flag out"
            )
        return self.on_the_way()[-1]

    def on_the_way(self) -> list[Weights]:
        """The model after half a minute, one, two, and at the end."""
        stages = self.kept.stages()
        if not stages:
            raise ValueError(f"{self.path} has no weights yet")
        return [Weights(stage.tensors(), _words(stage), _position(stage)) for stage in stages]

    def model(self, weights: Weights, max_len: int = 0) -> nn.Module:
        """In the sizes of the five minutes."""
        return self.kept.model(weights.tensors, weights.what, max_len)

    def facts(self) -> dict[str, Any]:
        """Corpus and sizes."""
        content = self.kept.content
        return {
            "data": asdict(self.source),
            "module_sha256": content["sha256"]["module"],
            "recipe": {"name": "five minutes", **content["recipe"]},
            "seed": content["seed"],
            "training": {"device": "cpu"},
        }


def open_run(path: Path) -> Run:
    """Open a run directory of either kind.

    Raises:
        ValueError: if there is none, or one of its files is damaged or was changed.
    """
    if is_task_run(path):
        raise ValueError(
            f"{path} holds no translator: python -m trainer write or describe use such a run"
        )
    return FiveMinuteRun(path) if is_kept(path) else RecipeRun(path)


def begin(
    path: Path,
    config: TrainConfig,
    source: Source,
    corpus: Corpus,
    module_path: Path,
    tokenizers: Tokenizers,
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
    checkpoints.write_run(path, content, text, tokenizers.to_json())


def mean(module: ModuleType, states: Sequence[dict[str, Tensor]]) -> dict[str, Tensor]:
    """The mean of checkpoints, by the module's `average_checkpoints` where it is answered."""
    trial = [{"x": torch.zeros(2)}, {"x": torch.ones(2)}]
    answered = own(module, "average_checkpoints", trial)
    return answered(states) if answered else checkpoints.mean_of(states)


def _at(checkpoint: Path) -> Weights:
    position = checkpoints.read_position(checkpoint)
    tensors = checkpoints.read_weights(checkpoint)
    return Weights(tensors, f"weights at step {position.step:,}", position)


def _words(stage: Stage) -> str:
    return f"weights after {stage.minutes:.1f} minutes, step {stage.steps:,}"


def _position(stage: Stage) -> Position:
    return Position(
        step=stage.steps,
        tokens=stage.tokens,
        cpu_seconds=60 * stage.cpu_minutes,
        seconds=60 * stage.minutes,
    )

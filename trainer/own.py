"""Train, search and score with nothing but the module's own functions: `--own`.

Corpus, vocabulary, batches and sizes are the recipe's. What the module has not answered is refused,
and nothing stands in for it.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn
from tqdm import tqdm

from lab.assembled import Incomplete, answers_needed, own
from lab.batching import collate
from lab.five_minutes import find_functions
from lab.text import Tokenizer
from lab.weights import weights_of
from trainer import checkpoints
from trainer.checkpoints import Checkpoint, Position
from trainer.configs import TrainConfig
from trainer.distributed import Ranks
from trainer.housekeeping import Log, Stop, Stopwatch
from trainer.loop import LOG_EVERY, MicroBatches, Outcome, RunProgress
from trainer.preparation import EncodedCorpus, configured_model

TRAINED_WITH = (
    "Transformer",
    "initialise",
    "label_smoothed_loss",
    "learning_rate",
    "scheduled_adam",
    "train_step",
)
SCORED_WITH = ("beam_search", "bleu")


def own_config(config: TrainConfig) -> TrainConfig:
    """The recipe without what only the trainer does; a step gets all that accumulates as one batch.

    Raises:
        ValueError: if a single batch cannot hold it in what the recipe asks for.
    """
    changes = {"ema": 0.0, "fused": False, "compile": False, "precision": "fp32", "accumulate": 1}
    changes |= {"first_embeddings": "drawn", "max_tokens": config.max_tokens * config.accumulate}
    return config.with_fields(changes)


class OwnTrainer:
    """Trains the module's model by its own step, on one device.

    Args:
        module: the assembled module.
        data: what to train on.
        config: what `own_config` returns.
        device: where to compute.
        run: the run's directory, for log and checkpoints.
        identity: what the checkpoints say of the run.

    Attributes:
        model: the module's Transformer, trained in place.
        position: how far training is.

    Raises:
        Incomplete: if the module lacks one of TRAINED_WITH.
    """

    drop_ins: tuple[Any, ...] = ()
    unused: tuple[str, ...] = ()
    decoding = ""

    def __init__(
        self,
        module: ModuleType,
        data: EncodedCorpus,
        config: TrainConfig,
        device: torch.device,
        run: Path,
        identity: Mapping[str, Any],
    ) -> None:
        refuse_incomplete(module)
        self.module, self.data, self.config, self.device = module, data, config, device
        self.run, self.identity, self.ranks = run, identity, Ranks()
        self.functions = find_functions(module)
        self.model = configured_model(module, data.tokenizers, config).to(device)
        self.position = Position()

    def train(self, report: Callable[[RunProgress], None] = lambda progress: None) -> Outcome:
        """Train until the budget is used up or a signal asks to stop; then save.

        Raises:
            ValueError: if the loss is no longer a number; the checkpoints stay as they are.
            Incomplete: if a part that the model is made of is not answered yet.
        """
        config, functions, pad_id = self.config, self.functions, self.data.tokenizers.pad_id
        optimizer, scheduler = functions.scheduled_adam(
            self.model.parameters(),
            lambda step: functions.learning_rate(step, config.model.d_model, config.warmup),
        )
        stream, stop, clock = MicroBatches(self.data.train, config), Stop(), Stopwatch()
        log = Log(self.run / "log.jsonl")
        losses: list[float] = []
        saved = None
        with stop.noticing():
            clock.start()
            while not stop.name and self._used() < 1:
                (indices,) = stream.take(1)
                batch = collate(self.data.train, indices, pad_id, config.multiple)
                rate = optimizer.param_groups[0]["lr"]
                with answers_needed():
                    loss = functions.train_step(
                        self.model,
                        batch.source.to(self.device),
                        batch.target.to(self.device),
                        optimizer,
                        pad_id,
                        functions.label_smoothed_loss,
                    )
                scheduler.step()
                losses.append(loss)
                self._move(int((batch.target_lengths - 1).sum()), *clock.read())
                over = bool(stop.name) or self._used() >= 1
                if over or self.position.step % LOG_EVERY == 0:
                    report(self._write_line(log, losses, rate))
                    losses.clear()
                if over or self.position.step % config.save_every == 0:
                    saved = self._save(log)
        return Outcome(self.position, stop.name, saved)

    def _used(self) -> float:
        """Share of the budget."""
        if self.config.steps is not None:
            return self.position.step / self.config.steps
        return self.position.cpu_seconds / (60 * (self.config.cpu_minutes or math.inf))

    def _move(self, tokens: int, cpu: float, seconds: float) -> None:
        self.position = replace(
            self.position,
            step=self.position.step + 1,
            tokens=self.position.tokens + tokens,
            cpu_seconds=cpu,
            seconds=seconds,
        )

    def _write_line(self, log: Log, losses: Sequence[float], rate: float) -> RunProgress:
        position, loss = self.position, sum(losses) / len(losses)
        if not math.isfinite(loss):
            raise ValueError(
                f"training broke down: the loss is {loss} near step {position.step}; try a longer "
                f"warmup ({self.config.warmup}), which lowers your rate's peak"
            )
        speed = position.tokens / max(position.seconds, 1e-9)
        record = {
            "step": position.step,
            "loss": loss,
            "rate": rate,
            "tokens": position.tokens,
            "cpu_seconds": round(position.cpu_seconds, 3),
            "seconds": round(position.seconds, 3),
            "tokens_per_second": round(speed, 1),
        }
        log.write("train", record)
        return RunProgress(position.step, min(self._used(), 1.0), loss, rate, speed)

    def _save(self, log: Log) -> Path:
        log.flush()
        kept = Checkpoint(self.position, weights_of(self.model), {}, {})
        return checkpoints.save(self.run, kept, self.config.keep, self.identity)


def refuse_incomplete(module: ModuleType, names: Sequence[str] = TRAINED_WITH) -> None:
    """Refuse a module that lacks one of these answers.

    Raises:
        Incomplete: that names them.
    """
    answered = {*find_functions(module).own, *_answered(module)}
    missing = [name for name in names if name not in answered]
    if missing:
        raise Incomplete(f"--own takes nothing but your functions; missing: {', '.join(missing)}")


def _answered(module: ModuleType) -> set[str]:
    """Which of the others are answered; the model's parts say so themselves when it is built."""
    trials: dict[str, tuple[Any, ...]] = {
        "initialise": (nn.Linear(2, 2),),
        "beam_search": (_Silent(), torch.tensor([[1, 2]]), 1, 2, 1, 1),
        "bleu": ([["a"]], [["a"]]),
    }
    return {"Transformer", *(name for name, trial in trials.items() if own(module, name, *trial))}


class _Silent(nn.Module):
    """A model that ends at once."""

    def encode(self, source: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """No memory to speak of."""
        return torch.zeros(len(source), 2, 2), torch.ones(len(source), 1, 2, dtype=torch.bool)

    def decode(self, target: torch.Tensor, *given: Any, **named: Any) -> torch.Tensor:
        """The end (2) is likeliest."""
        return torch.eye(4)[2].expand(*target.shape, 4)


def search(
    module: ModuleType,
    model: nn.Module,
    sentences: Sequence[str],
    tokenizers: tuple[Tokenizer, Tokenizer],
    beam_size: int,
    length_penalty: float,
    progress: bool = False,
) -> list[str]:
    """Translate by the module's `beam_search`, one sentence after the other."""
    source, target = tokenizers
    device = next(model.parameters()).device
    said = []
    for ids in tqdm(source.encode_all(sentences), unit="sentence", disable=not progress):
        given = torch.tensor([ids], device=device), target.bos_id, target.eos_id
        found = module.beam_search(model, *given, 2 * len(ids) + 20, beam_size, length_penalty)
        said.append(target.decode(found[0]))
    return said

"""Train any module's Transformer by a recipe: in exact steps that can be killed and resumed.

What an update computes depends on the recipe, the corpus and the module alone. The gradient is
that of the loss's sum over the real target tokens of all micro-batches, divided by their number,
however the micro-batches are shared out over accumulation and processes. Every micro-batch has its
own random numbers, drawn from (seed, its number), so that neither a restart nor another number of
processes changes what dropout drops.
"""

import math
import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from lab.assembled import answers_needed
from lab.batching import Encoded, collate, token_batches
from lab.weights import load_weights, weights_of
from trainer import checkpoints
from trainer.checkpoints import Checkpoint, Position
from trainer.configs import TrainConfig
from trainer.cooccurrence import set_embeddings
from trainer.decoding import translate
from trainer.distributed import Ranks, largest, total, wait_for_all
from trainer.fused.adoption import adopt
from trainer.housekeeping import Log, Stop, Stopwatch, Writer
from trainer.objective import Objective, cross_entropy
from trainer.optimisers import Optimiser, rate_share
from trainer.preparation import EncodedCorpus, configured_model, way_of
from trainer.scoring import bleu

LOG_EVERY = 10  # updates; on a GPU, the loss is looked at only then


@dataclass(frozen=True)
class RunProgress:
    """How far training is, for those who wait."""

    step: int
    share: float  # of the budget
    loss: float  # mean a token since the last line of the log, label smoothing included
    rate: float  # the learning rate
    tokens_per_second: float  # real target tokens, by the clock
    valid_loss: float | None = None  # of the last validation, a token, without label smoothing
    bleu: float | None = None


@dataclass(frozen=True)
class Outcome:
    """How a training ended."""

    position: Position
    stopped: str | None  # name of the signal that ended it early
    saved: Path | None


class MicroBatches:
    """The micro-batches of all epochs, one after the other, from any place on."""

    def __init__(self, encoded: Encoded, config: TrainConfig, epoch: int = 0, index: int = 0):
        self.encoded, self.config = encoded, config
        self.epoch, self.index = epoch, index
        self._made: tuple[int, list[list[int]]] = (-1, [])  # of one epoch

    def take(self, count: int) -> list[list[int]]:
        """The next ones, each as the indices of its pairs."""
        taken = []
        while len(taken) < count:
            batches = self._epoch()
            if self.index == len(batches):
                self.epoch, self.index = self.epoch + 1, 0
                continue
            taken.append(batches[self.index])
            self.index += 1
        return taken

    @property
    def epochs(self) -> float:
        """How many epochs are done."""
        return self.epoch + self.index / len(self._epoch())

    def _epoch(self) -> list[list[int]]:
        if self._made[0] != self.epoch:
            config = self.config
            batches = token_batches(
                self.encoded,
                config.max_tokens,
                seed=config.seed,
                epoch=self.epoch,
                multiple=config.multiple,
            )
            self._made = (self.epoch, batches)
        return self._made[1]


class Trainer:
    """Trains one model by one recipe on one device, alone or with other processes.

    Args:
        module: the assembled module; only its model and, where answered, its `initialise` and
            decoding are used.
        data: what to train on.
        config: the recipe.
        device: where to compute; the CPU by default.
        ranks: this process among those that train together; alone by default.
        run: directory for log and checkpoints; None to keep nothing.
        identity: what a checkpoint must share with this run to be resumed from.
        board: TensorBoard's writer, if it is wanted.

    Attributes:
        model: the module's Transformer, trained in place.
        drop_ins: what stands in for the module's own parts, and what does not.
        decoding: why decoding is slower than it could be, in words; "" if it is not.
        unused: parameters that the loss does not depend on; they stay as they are.
        position: how far training is.

    Raises:
        Incomplete: if a part that the model is made of is not answered yet.
    """

    def __init__(
        self,
        module: ModuleType,
        data: EncodedCorpus,
        config: TrainConfig,
        device: torch.device | None = None,
        ranks: Ranks | None = None,
        run: Path | None = None,
        identity: Mapping[str, Any] | None = None,
        board: Writer | None = None,
    ) -> None:
        self.module, self.data, self.config = module, data, config
        self.device, self.ranks = device or torch.device("cpu"), ranks or Ranks()
        self.run, self.identity = run, identity or {}
        self._clock = Stopwatch()
        self.model = configured_model(module, data.tokenizers, config).to(self.device)
        if config.first_embeddings == "cooccurrence":
            self._clock.start()  # what is learnt here is part of the budget
            set_embeddings(self.model, data.train, config.seed)
            self._clock = Stopwatch(*self._clock.read())
        # decoding changes the model it is given, so it gets one of its own
        self._scored = data.corpus.valid[: config.bleu_sentences]
        sources = data.tokenizers.source.encode_all([source for source, _ in self._scored])
        rows = max([config.model.max_len, *(len(ids) for ids in sources)])
        self.decoder = configured_model(module, data.tokenizers, config, rows).to(self.device)
        self.decoder.eval()
        self.decoding = way_of(module, self.decoder)
        with answers_needed():
            self.unused = self._freeze_unused()
            self.drop_ins = adopt(self.module, self.model) if config.fused else ()
        objective = Objective(self.model, config, self.data.tokenizers.pad_id)
        self._together: DistributedDataParallel | None = None
        if self.ranks.world > 1:
            self._together = DistributedDataParallel(objective)
        self._objective: nn.Module = self._together or objective
        self._trained = {n: p for n, p in self.model.named_parameters() if p.requires_grad}
        self._optimiser = Optimiser(config, self._trained)
        self._ema: dict[str, Tensor] = {}
        self._loss = torch.zeros((), device=self.device, dtype=_precise(self.device))
        self._stream = MicroBatches(self.data.train, config)
        path = self.run / "log.jsonl" if self.run is not None and self.ranks.main else None
        self._log = Log(path, board)
        self._stop = Stop()
        self._used = 0.0  # share of the budget, the same in all processes
        self._rate, self._norm = 0.0, torch.zeros(())  # of the last update
        self._shown = RunProgress(0, 0.0, math.nan, 0.0, 0.0)
        self.position = Position()

    def resume(self) -> bool:
        """Go on from the last checkpoint; False if there is none yet.

        Raises:
            ValueError: if it is damaged, foreign or of another run.
        """
        if self.run is not None and self.ranks.main:
            checkpoints.sweep(self.run)
        wait_for_all(self.ranks)
        paths = checkpoints.checkpoint_paths(self.run) if self.run is not None else []
        if not paths:
            self._log.cut(0)  # what an earlier attempt wrote before its first checkpoint
            return False
        kept = checkpoints.read(paths[-1], self.identity)
        load_weights(self.model, kept.model, str(paths[-1]))
        self._optimiser.load(kept.optimizer)
        self._ema = {name: tensor.to(self.device) for name, tensor in kept.ema.items()}
        self.position = position = kept.position
        self._stream = MicroBatches(self.data.train, self.config, position.epoch, position.index)
        self._clock = Stopwatch(position.cpu_seconds, position.seconds)
        self._loss.fill_(position.loss_sum if self.ranks.main else 0.0)
        self._agree()
        self._log.cut(position.log_bytes)
        return True

    def train(self, report: Callable[[RunProgress], None] = lambda progress: None) -> Outcome:
        """Train until the budget is used up or a signal asks to stop; then save.

        Args:
            report: called in the main process every few updates and after each validation.

        Raises:
            ValueError: if the loss is no longer a number; the checkpoints stay as they are.
            Incomplete: if a part that the model is made of is not answered yet.
        """
        saved = None
        with self._stop.noticing():
            self._clock.start()
            while not self._over():
                self._update()
                step = self.position.step
                self._agree()
                finished = self._used >= 1
                if finished or _due(step, LOG_EVERY):
                    self._write_line(report)
                if finished or _due(step, self.config.validate_every):
                    self._validate(report)
                if self._over() or _due(step, self.config.save_every):
                    saved = self._save()
        return Outcome(self.position, self._stop.name, saved)

    def weights(self) -> dict[str, Tensor]:
        """The weights to decode with: their moving average if the recipe has one."""
        return {**weights_of(self.model), **self._ema}

    # one update -----------------------------------------------------------------------------------

    def _update(self) -> None:
        """One update of the weights, on the next micro-batches of all processes."""
        config, ranks = self.config, self.ranks
        first = self.position.micro_batches
        group = self._stream.take(config.accumulate * ranks.world)
        real = self._real_tokens(group)
        self.model.train()
        self._optimiser.zero_grad()
        for number in range(ranks.rank, len(group), ranks.world):
            self._seed(first + number)
            with self._alone(unless=number + ranks.world >= len(group)):
                loss = self._loss_of(group[number])
                # DDP takes the mean over processes; the sum is wanted
                (loss * (ranks.world / real)).backward()
            self._loss += loss.detach()
        self._rate = rate_share(config, self.position.step + 1, self._used)
        self._norm = nn.utils.clip_grad_norm_(self._trained.values(), config.clip or math.inf)
        if self.device.type == "cpu":
            self._check_finite()
        self._optimiser.step(self._rate)
        self._average(self.position.step + 1)
        cpu, seconds = self._clock.read()
        self.position = replace(
            self.position,
            step=self.position.step + 1,
            epoch=self._stream.epoch,
            index=self._stream.index,
            micro_batches=first + len(group),
            tokens=self.position.tokens + real,
            loss_tokens=self.position.loss_tokens + real,
            cpu_seconds=cpu,
            seconds=seconds,
        )

    def _loss_of(self, indices: Sequence[int]) -> Tensor:
        batch = collate(self.data.train, indices, self.data.tokenizers.pad_id, self.config.multiple)
        source, target = (
            ids.to(self.device, non_blocking=True) for ids in (batch.source, batch.target)
        )
        with answers_needed():
            return self._objective(source, target)

    def _real_tokens(self, group: Sequence[Sequence[int]]) -> int:
        """Labels that are no padding; every process knows them of every other one's batches."""
        chosen = [i for indices in group for i in indices]
        return int(self.data.train.target.lengths[chosen].sum()) - len(chosen)

    def _alone(self, *, unless: bool) -> Any:
        """No exchange of gradients before a process's last micro-batch."""
        return nullcontext() if unless or self._together is None else self._together.no_sync()

    def _seed(self, number: int) -> None:
        """Give micro-batch `number` its own random numbers."""
        drawn = random.Random(f"{self.config.seed} {number}").getrandbits(32)
        torch.manual_seed(drawn)

    def _average(self, step: int) -> None:
        """Move the average of the weights towards them; faster at the beginning."""
        if not self.config.ema:
            return
        now = weights_of(self.model)
        if not self._ema:
            self._ema = {name: tensor.clone() for name, tensor in now.items()}
            return
        decay = min(self.config.ema, (1 + step) / (10 + step))
        floats = [name for name, tensor in now.items() if tensor.is_floating_point()]
        averages = [self._ema[name] for name in floats]
        # one pass over all tensors; the same as a loop over lerp_
        torch._foreach_lerp_(  # pyright: ignore[reportPrivateImportUsage]
            averages, [now[name] for name in floats], 1 - decay
        )

    def _check_finite(self) -> None:
        if bool(torch.isfinite(self._norm)):
            return
        kept = checkpoints.checkpoint_paths(self.run) if self.run is not None else []
        back = f"the last checkpoint is {kept[-1]}" if kept else "there is no checkpoint yet"
        raise ValueError(
            f"training broke down: the gradients' norm is {float(self._norm)} at step "
            f"{self.position.step + 1}; {back}; try a lower "
            f"peak_rate ({self.config.peak_rate:g}) or a longer warmup ({self.config.warmup})"
        )

    # between updates ------------------------------------------------------------------------------

    def _agree(self) -> None:
        """Let all processes know of a signal that one of them got, and use the same time."""
        position, config = self.position, self.config
        if config.steps is not None:
            used = position.step / config.steps
        else:
            used = position.cpu_seconds / (60 * (config.cpu_minutes or math.inf))
        stop = 1.0 if self._stop.name else 0.0
        self._used, stop = largest(self.ranks, [used, stop], self.device)
        if stop and self._stop.name is None:
            self._stop.name = "SIGTERM"  # another process got it, and has said so

    def _over(self) -> bool:
        return self._used >= 1 or self._stop.name is not None

    def _write_line(self, report: Callable[[RunProgress], None]) -> None:
        position = self.position
        self._check_finite()
        loss = float(total(self.ranks, self._loss)) / max(position.loss_tokens, 1)
        self._loss.zero_()
        self.position = replace(position, loss_tokens=0)
        rate = self.config.peak_rate * self._rate
        speed = position.tokens / max(position.seconds, 1e-9)
        if not self.ranks.main:
            return
        self._log.write(
            "train",
            {
                "step": position.step,
                "epoch": round(self._stream.epochs, 3),
                "loss": loss,
                "rate": rate,
                "norm": float(self._norm),
                "tokens": position.tokens,
                "cpu_seconds": round(position.cpu_seconds, 3),
                "seconds": round(position.seconds, 3),
                "tokens_per_second": round(speed, 1),
            },
        )
        self._shown = replace(
            self._shown,
            step=position.step,
            share=min(self._used, 1.0),
            loss=loss,
            rate=rate,
            tokens_per_second=speed,
        )
        report(self._shown)

    def _validate(self, report: Callable[[RunProgress], None]) -> None:
        """Loss and BLEU of the validation set, in the main process; their time does not count."""
        if not self.config.validate_every or not self.ranks.main:
            return
        with self._clock.paused(), self._stop.leaving_at_once():
            load_weights(self.decoder, self.weights(), "the model")
            found = {"valid_loss": self._valid_loss()}
            if self.config.bleu_sentences:
                found["bleu"] = self._valid_bleu()
            position = self.position
            times = {
                "cpu_seconds": round(position.cpu_seconds, 3),
                "seconds": round(position.seconds, 3),
            }
            self._log.write("valid", {"step": position.step, **found, **times})
            share = min(self._used, 1.0)
            self._shown = replace(self._shown, step=position.step, share=share, **found)
            report(self._shown)

    @torch.no_grad()
    def _valid_loss(self) -> float:
        """Cross-entropy a real token, without label smoothing."""
        encoded, pad_id = self.data.valid, self.data.tokenizers.pad_id
        loss, real = 0.0, 0
        for indices in token_batches(encoded, self.config.max_tokens, seed=0, epoch=0):
            batch = collate(encoded, indices, pad_id)
            source, target = batch.source.to(self.device), batch.target.to(self.device)
            logits = self.decoder(source, target[:, :-1])
            loss += float(cross_entropy(logits, target[:, 1:], pad_id, 0.0))
            real += int((batch.target_lengths - 1).sum())
        return loss / real

    def _valid_bleu(self) -> float:
        """BLEU of the first validation sentences, decoded greedily."""
        tokenizers = self.data.tokenizers
        said = translate(
            self.module,
            self.decoder,
            [source for source, _ in self._scored],
            tokenizers.source,
            tokenizers.target,
            beam_size=1,
            max_tokens=self.config.max_tokens,
            device=self.device,
            progress=False,
        )
        references = [target for _, target in self._scored]
        return bleu(said, references, tokenised=self.data.corpus.tokenised).bleu

    def _save(self) -> Path | None:
        """Write a checkpoint, in the main process; all others wait until it is there."""
        self._check_finite()
        self._loss = total(self.ranks, self._loss)
        if not self.ranks.main:
            self._loss.zero_()
        path = None
        if self.run is not None and self.ranks.main:
            self._log.flush()
            position = replace(
                self.position, loss_sum=float(self._loss), log_bytes=self._log.length()
            )
            kept = Checkpoint(position, weights_of(self.model), self._optimiser.state(), self._ema)
            path = checkpoints.save(self.run, kept, self.config.keep, self.identity)
        wait_for_all(self.ranks)
        return path

    # set-up ---------------------------------------------------------------------------------------

    def _freeze_unused(self) -> tuple[str, ...]:
        """Names of parameters that the loss does not depend on; DDP would wait for them."""
        pad_id = self.data.tokenizers.pad_id
        batch = collate(self.data.train, [0], pad_id)
        objective = Objective(self.model, replace(self.config, compile=False), pad_id)
        objective(batch.source.to(self.device), batch.target.to(self.device)).backward()
        unused = []
        for name, parameter in self.model.named_parameters():
            if parameter.grad is None:
                parameter.requires_grad_(False)
                unused.append(name)
            parameter.grad = None
        return tuple(unused)


def _due(step: int, every: int) -> bool:
    return bool(every) and step % every == 0


def _precise(device: torch.device) -> torch.dtype:
    return torch.float32 if device.type == "mps" else torch.float64

"""Train an assembled module's Transformer on the grammar's sentences, on a CPU, and measure it.

The model is the module's own. So are the loss, the schedule, the optimiser, the training step, the
initialisation and the decoding where they are answered; simple ones of torch's stand in for the
others, so that a model can be trained early.
"""

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice
from time import monotonic, process_time
from types import ModuleType
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim.lr_scheduler import ConstantLR, LRScheduler

from lab.assembled import answers_needed, build, own
from lab.batching import Batch, batches, pad_ids
from lab.corpus import sentence_pairs, split_pairs
from lab.text import Tokenizer

HELD_OUT = 0.05  # share of the pairs
MEASURED = 1000  # held-out sentences to translate, at most
REPORT_EVERY = 20  # steps


@dataclass(frozen=True)
class Recipe:
    """Sizes of a model and its training; the defaults are for a few minutes on two cores."""

    d_model: int = 128
    num_layers: int = 2
    num_heads: int = 4
    d_ff: int = 256
    dropout: float = 0.1
    norm_first: bool = False
    batch_size: int = 64
    warmup: int = 800

    def sizes(self) -> dict[str, Any]:
        """What the model's constructor takes."""
        names = ("d_model", "num_layers", "num_heads", "d_ff", "dropout", "norm_first")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class GrammarData:
    """Pairs to train on, pairs to measure with, and the vocabularies of both languages."""

    train: Sequence[tuple[str, str]]
    held_out: Sequence[tuple[str, str]]
    source: Tokenizer
    target: Tokenizer
    max_len: int  # ids in the longest sentence, <bos> and <eos> included


Loss = Callable[[Tensor, Tensor, int], Tensor]  # of logits, labels and pad_id
Optimiser = tuple[torch.optim.Optimizer, LRScheduler]


@dataclass(frozen=True)
class Functions:
    """What training calls, as chapter 8 defines it; stand-ins where it is not answered yet."""

    label_smoothed_loss: Loss
    learning_rate: Callable[[int, int, int], float]  # of step, d_model and warmup
    scheduled_adam: Callable[[Iterable[nn.Parameter], Callable[[int], float]], Optimiser]
    train_step: Callable[[nn.Module, Tensor, Tensor, torch.optim.Optimizer, int, Loss], float]
    own: tuple[str, ...] = ()  # names of those that are the module's
    stand_ins: tuple[str, ...] = ()  # names of the others


@dataclass(frozen=True)
class Progress:
    """How far training is."""

    steps: int
    epochs: float
    minutes: float
    loss: float  # mean of the last 100 steps
    rate: float  # target tokens a second
    learning_rate: float  # of the step that was taken last
    tokens: int  # real target tokens so far
    cpu_minutes: float  # processor time so far


@dataclass(frozen=True)
class Measurement:
    """How many held-out sentences were translated word for word as the corpus has them."""

    exact: int
    sentences: int
    translations: tuple[tuple[str, str, str], ...]  # English, French, the model's French
    decoded: bool  # by greedy_decode, or judged without it


def grammar_data(pairs: int, seed: int = 0) -> GrammarData:
    """Make the corpus, hold some of it out, and learn the vocabularies from the rest.

    The two sides share no sentence, neither English nor French.
    """
    train, held_out = split_pairs(sentence_pairs(pairs, seed), HELD_OUT, seed)
    sentences = [sentence for pair in [*train, *held_out] for sentence in pair]
    return GrammarData(
        train,
        held_out,
        source=Tokenizer.train(english for english, _ in train),
        target=Tokenizer.train(french for _, french in train),
        max_len=max(len(sentence.split()) for sentence in sentences) + 2,
    )


def grammar_model(
    module: ModuleType, data: GrammarData, recipe: Recipe, seed: int = 0
) -> nn.Module:
    """Build the module's Transformer, and initialise it if the module says how.

    Raises:
        Incomplete: if a part that the model is made of is not answered yet.
    """
    vocabularies = (len(data.source), len(data.target))
    return build(module, vocabularies, data.max_len, data.target.pad_id, recipe.sizes(), seed)


def find_functions(module: ModuleType | None) -> Functions:
    """The module's own functions for training where they are answered, else stand-ins."""
    tiny = _Tiny()
    ids = torch.tensor([[1, 2]])
    rate = 1e-3
    stand_ins: dict[str, Callable[..., Any]] = {
        "label_smoothed_loss": torchs_loss,
        "learning_rate": plain_rate,
        "scheduled_adam": plain_adam,
        "train_step": torchs_step,
    }
    trials: dict[str, tuple[Any, ...]] = {
        "label_smoothed_loss": (tiny(ids, ids), ids, 0),
        "learning_rate": (1, 16, 10),
        "scheduled_adam": (tiny.parameters(), lambda step: rate),
        "train_step": (tiny, ids, ids, torch.optim.SGD(tiny.parameters(), rate), 0, torchs_loss),
    }
    found = {name: own(module, name, *trial) for name, trial in trials.items()}
    return Functions(
        **{name: function or stand_ins[name] for name, function in found.items()},
        own=tuple(name for name, function in found.items() if function),
        stand_ins=tuple(name for name, function in found.items() if not function),
    )


def torchs_loss(logits: Tensor, labels: Tensor, pad_id: int) -> Tensor:
    """Torch's cross-entropy, smoothed by 0.1: the mean over tokens that are no padding."""
    return F.cross_entropy(
        logits.flatten(0, 1), labels.flatten(), ignore_index=pad_id, label_smoothing=0.1
    )


def plain_rate(step: int, d_model: int, warmup: int) -> float:
    """A rate that rises to the size that suits the model, and stays there."""
    return min(step / warmup, 1.0) / math.sqrt(d_model * warmup)


def plain_adam(parameters: Iterable[nn.Parameter], rate: Callable[[int], float]) -> Optimiser:
    """Torch's Adam at a small constant rate, whatever the schedule."""
    optimizer = torch.optim.Adam(parameters, lr=1e-3)
    return optimizer, ConstantLR(optimizer, factor=1.0)


def torchs_step(
    model: nn.Module,
    source: Tensor,
    target: Tensor,
    optimizer: torch.optim.Optimizer,
    pad_id: int,
    loss_function: Loss,
) -> float:
    """One update of the weights, with gradients clipped to norm 1; returns the loss."""
    model.train()
    given, wanted = target[:, :-1], target[:, 1:]
    loss = loss_function(model(source, given), wanted, pad_id)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss.item()


def train(
    model: nn.Module,
    functions: Functions,
    data: GrammarData,
    recipe: Recipe,
    *,
    minutes: float,
    steps: int | None = None,
    seed: int = 0,
    report: Callable[[Progress], None] = lambda progress: None,
) -> Progress:
    """Train until the time is over, or after so many steps.

    Args:
        model: the Transformer, changed in place.
        functions: loss, schedule, optimiser and step.
        data: what to train on; the held-out pairs are not looked at.
        recipe: sizes of batches and steps.
        minutes: how long, by the clock.
        steps: at most this many; None for no limit.
        seed: decides the order of the batches.
        report: called with the progress every few steps and at the end.

    Raises:
        ValueError: if there is no time, or no step to take.
        Incomplete: if a part that the model is made of is not answered yet.
    """
    if minutes <= 0:
        raise ValueError(f"minutes ({minutes:g}) must be above 0")
    optimizer, scheduler = functions.scheduled_adam(
        model.parameters(),
        lambda step: functions.learning_rate(step, recipe.d_model, recipe.warmup),
    )
    step, loss, pad_id = functions.train_step, functions.label_smoothed_loss, data.target.pad_id
    losses: deque[float] = deque(maxlen=100)
    tokens = 0
    start, cpu_start = monotonic(), process_time()
    for done, batch in enumerate(islice(_endless_batches(data, recipe, seed), steps), start=1):
        learning_rate = optimizer.param_groups[0]["lr"]
        with answers_needed():
            losses.append(step(model, batch.source, batch.target, optimizer, pad_id, loss))
        scheduler.step()
        tokens += int((batch.target_lengths - 1).sum())
        seconds = monotonic() - start
        progress = Progress(
            steps=done,
            epochs=done * recipe.batch_size / len(data.train),
            minutes=seconds / 60,
            loss=sum(losses) / len(losses),
            rate=tokens / seconds,
            learning_rate=learning_rate,
            tokens=tokens,
            cpu_minutes=(process_time() - cpu_start) / 60,
        )
        over = seconds >= 60 * minutes or done == steps
        if over or done % REPORT_EVERY == 0:
            report(progress)
        if over:
            return progress
    raise ValueError(f"steps ({steps}) must be at least 1")


@torch.no_grad()
def measure(module: ModuleType, model: nn.Module, data: GrammarData) -> Measurement:
    """Count the held-out sentences that the model translates exactly as the corpus does.

    The module's `greedy_decode` translates. Where it is not answered yet, one parallel pass over
    the right translation tells the same: decoding greedily gives all of its words if and only if
    each word is the likeliest after the right words before it.
    """
    model.eval()
    pairs = data.held_out[:MEASURED]
    said = translate(module, model, data, [english for english, _ in pairs])
    if said is None:
        return Measurement(sum(_exact_in_parallel(model, data, pairs)), len(pairs), (), False)
    translations = tuple((*pair, own) for pair, own in zip(pairs, said, strict=True))
    exact = sum(french == own for _, french, own in translations)
    return Measurement(exact, len(pairs), translations, True)


@torch.no_grad()
def translate(
    module: ModuleType, model: nn.Module, data: GrammarData, sentences: Sequence[str]
) -> list[str] | None:
    """What the model makes of English sentences, by the module's `greedy_decode`.

    The model is left as it was, in training mode or not. None if greedy_decode is not answered.
    """
    bos, eos = data.target.bos_id, data.target.eos_id
    training = model.training
    model.eval()
    try:
        if not own(module, "greedy_decode", model, torch.tensor([[bos, eos]]), bos, eos, 1):
            return None
        return [
            data.target.decode(ids)
            for start in range(0, len(sentences), 100)
            for ids in module.greedy_decode(
                model, _source(data, sentences[start : start + 100]), bos, eos, data.max_len - 1
            )
        ]
    finally:
        model.train(training)


def _endless_batches(data: GrammarData, recipe: Recipe, seed: int) -> Iterator[Batch]:
    for epoch in count():
        yield from batches(data.train, data.source, data.target, recipe.batch_size, seed + epoch)


def _source(data: GrammarData, sentences: Sequence[str]) -> Tensor:
    return pad_ids(data.source.encode_all(sentences), data.source.pad_id)[0]


def _exact_in_parallel(
    model: nn.Module, data: GrammarData, pairs: Sequence[tuple[str, str]]
) -> Iterator[bool]:
    for batch in batches(pairs, data.source, data.target, batch_size=100):
        labels = batch.target[:, 1:]
        right = model(batch.source, batch.target[:, :-1]).argmax(-1) == labels
        yield from (right | (labels == data.target.pad_id)).all(-1).tolist()


class _Tiny(nn.Module):
    """The smallest model there is, to find out whether a training step is answered."""

    def __init__(self) -> None:
        super().__init__()
        self.logits = nn.Embedding(3, 3)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Logits that depend on the token alone."""
        return self.logits(target)

"""Train an assembled module's Transformer on the grammar's sentences, on a CPU, and measure it.

The model is the module's own. So are the loss, the schedule, the optimiser, the training step, the
initialisation and the decoding where they are answered; simple ones of torch's stand in for the
others, so that a model can be trained early.
"""

import importlib.util
import json
import math
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import count, islice
from pathlib import Path
from time import monotonic
from types import ModuleType, TracebackType
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim.lr_scheduler import ConstantLR, LRScheduler

from lab.batching import Batch, batches, pad_ids
from lab.checkpoints import digest, load_weights, read_single, save_single, weights_of
from lab.corpus import sentence_pairs, split_pairs
from lab.text import Tokenizer

HELD_OUT = 0.05  # share of the pairs
MEASURED = 1000  # held-out sentences to translate, at most
REPORT_EVERY = 20  # steps
EXAMPLES = 5
HEADER = "graded-transformer"  # where a checkpoint says what is no tensor


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


@dataclass(frozen=True)
class Data:
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


@dataclass(frozen=True)
class Measurement:
    """How many held-out sentences were translated word for word as the corpus has them."""

    exact: int
    sentences: int
    examples: tuple[tuple[str, str, str], ...]  # English, French, the model's French
    decoded: bool  # by greedy_decode, or judged without it


class Incomplete(ValueError):
    """The module lacks something that training cannot do without."""


def load_module(path: Path) -> ModuleType:
    """Import a module file such as `my_transformer.py`.

    Raises:
        Incomplete: if the file is not there, cannot be imported or has no Transformer.
    """
    name = f"{path.stem}_{digest(str(path.resolve()))[:8]}"  # its own, whatever others are called
    spec = importlib.util.spec_from_file_location(name, path) if path.is_file() else None
    if spec is None or spec.loader is None:
        raise Incomplete(f"there is no module {path}; python -m lab assemble makes one")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # where torch.compile looks for it
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise Incomplete(f"{path} cannot be imported ({type(error).__name__}: {error})") from error
    for name in ("Transformer", "sinusoidal_encoding"):
        if not hasattr(module, name):
            raise Incomplete(f"{path} has no {name}; python -m lab assemble says what is missing")
    return module


def prepare(pairs: int, seed: int = 0) -> Data:
    """Make the corpus, hold some of it out, and learn the vocabularies from the rest.

    The two sides share no sentence, neither English nor French.
    """
    train, held_out = split_pairs(sentence_pairs(pairs, seed), HELD_OUT, seed)
    sentences = [sentence for pair in [*train, *held_out] for sentence in pair]
    return Data(
        train,
        held_out,
        source=Tokenizer.train(english for english, _ in train),
        target=Tokenizer.train(french for _, french in train),
        max_len=max(len(sentence.split()) for sentence in sentences) + 2,
    )


def make_model(module: ModuleType, data: Data, recipe: Recipe, seed: int = 0) -> nn.Module:
    """Build the module's Transformer, and initialise it if the module says how.

    Raises:
        Incomplete: if a part that the model is made of is not answered yet.
    """
    names = ("d_model", "num_layers", "num_heads", "d_ff", "dropout", "norm_first")
    sizes = {name: getattr(recipe, name) for name in names}
    vocabularies = (len(data.source), len(data.target))
    return build(module, vocabularies, data.max_len, data.target.pad_id, sizes, seed)


def build(
    module: ModuleType,
    vocabularies: tuple[int, int],
    max_len: int,
    pad_id: int,
    sizes: Mapping[str, Any],
    seed: int,
) -> nn.Module:
    """Build the module's Transformer, and initialise it if the module says how.

    Args:
        module: an assembled module.
        vocabularies: numbers of ids of source and target.
        max_len: rows of the table of positions.
        pad_id: id of padding, in both languages.
        sizes: further arguments of the constructor: d_model, num_layers and the like.
        seed: decides the first weights.

    Raises:
        Incomplete: if a part that the model is made of is not answered yet.
    """
    torch.manual_seed(seed)
    with answers_needed():
        encoding = module.sinusoidal_encoding(max_len, sizes["d_model"])
        model = module.Transformer(*vocabularies, encoding, pad_id=pad_id, **sizes)
    if own(module, "initialise", nn.Linear(2, 2)):
        module.initialise(model)
    return model


def find_functions(module: ModuleType) -> Functions:
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
    loss = loss_function(model(source, target[:, :-1]), target[:, 1:], pad_id)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss.item()


def train(
    model: nn.Module,
    functions: Functions,
    data: Data,
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
    start = monotonic()
    for done, batch in enumerate(islice(_endless_batches(data, recipe, seed), steps), start=1):
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
        )
        over = seconds >= 60 * minutes or done == steps
        if over or done % REPORT_EVERY == 0:
            report(progress)
        if over:
            return progress
    raise ValueError(f"steps ({steps}) must be at least 1")


@torch.no_grad()
def measure(module: ModuleType, model: nn.Module, data: Data) -> Measurement:
    """Count the held-out sentences that the model translates exactly as the corpus does.

    The module's `greedy_decode` translates. Where it is not answered yet, one parallel pass over
    the right translation tells the same: decoding greedily gives all of its words if and only if
    each word is the likeliest after the right words before it.
    """
    model.eval()
    pairs = data.held_out[:MEASURED]
    bos, eos = data.target.bos_id, data.target.eos_id
    if not own(module, "greedy_decode", model, torch.tensor([[bos, eos]]), bos, eos, 1):
        return Measurement(sum(_exact_in_parallel(model, data, pairs)), len(pairs), (), False)
    said = [
        data.target.decode(ids)
        for start in range(0, len(pairs), 100)
        for ids in module.greedy_decode(
            model, _source(data, pairs[start : start + 100]), bos, eos, data.max_len - 1
        )
    ]
    exact = sum(french == own for (_, french), own in zip(pairs, said, strict=True))
    examples = [(*pair, own) for pair, own in zip(pairs[:EXAMPLES], said, strict=False)]
    return Measurement(exact, len(pairs), tuple(examples), True)


def save_checkpoint(path: Path, model: nn.Module, data: Data, recipe: Recipe) -> None:
    """Write the weights, the recipe and the vocabularies, all that translating needs.

    One safetensors file; what is no tensor stands in its header, as JSON.
    """
    words = {
        "recipe": asdict(recipe),
        "source": data.source.to_json(),
        "target": data.target.to_json(),
        "max_len": data.max_len,
    }
    save_single(path, weights_of(model), {HEADER: json.dumps(words)})


def load_checkpoint(path: Path, module: ModuleType) -> tuple[nn.Module, Data, Recipe]:
    """Read what `save_checkpoint` wrote, with no sentences; the module has to be the same.

    Raises:
        ValueError: if the file is missing, cut or foreign, or of another module's model.
    """
    weights, header = read_single(path)
    if HEADER not in header:
        raise ValueError(f"{path} was not written by python -m lab train")
    words = json.loads(header[HEADER])
    source, target = (Tokenizer.from_json(words[name]) for name in ("source", "target"))
    data = Data((), (), source, target, words["max_len"])
    recipe = Recipe(**words["recipe"])
    model = make_model(module, data, recipe)
    load_weights(model, weights, str(path))
    return model.eval(), data, recipe


def own(module: ModuleType, name: str, *trial: Any) -> Callable[..., Any] | None:
    """The module's function of this name, if it is there and answers a trial call."""
    function = getattr(module, name, None)
    try:
        if function is not None:
            function(*trial)
    except NotImplementedError:
        return None
    return function


@contextmanager
def answers_needed() -> Iterator[None]:
    """Say which answer is missing where a stub stops the work."""
    try:
        yield
    except NotImplementedError as error:
        raise Incomplete(f"{_origin(error.__traceback__)} is not answered yet") from error


def _endless_batches(data: Data, recipe: Recipe, seed: int) -> Iterator[Batch]:
    for epoch in count():
        yield from batches(data.train, data.source, data.target, recipe.batch_size, seed + epoch)


def _source(data: Data, pairs: Sequence[tuple[str, str]]) -> Tensor:
    return pad_ids([data.source.encode(english) for english, _ in pairs], data.source.pad_id)[0]


def _exact_in_parallel(
    model: nn.Module, data: Data, pairs: Sequence[tuple[str, str]]
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


def _origin(traceback: TracebackType | None) -> str:
    """Name of the function that raised an error."""
    name = ""
    while traceback is not None:
        name, traceback = traceback.tb_frame.f_code.co_qualname, traceback.tb_next
    return name

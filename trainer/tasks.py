"""What else an assembled module can be trained for: to go on with a text, and to caption drawings.

A task knows its data, builds the module's model for it, says what a training step minimises, and
measures what has been learnt on data that was held out.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any, Self

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from lab import drawings
from lab.assembled import Incomplete, answers_needed, own
from lab.pictures import captions_of
from lab.stories import NEW, Stories
from lab.text import Tokenizer
from trainer.configs import checked

STORIES = "stories"
HELD_OUT = 0.05  # of a text's lines
LEAST_LINES = 20
HELD_OUT_STORIES = 4000  # words
HELD_OUT_DRAWINGS = 500
PATCH = 4  # pixels


@dataclass(frozen=True)
class Recipe:
    """Sizes of the model, and how it is trained."""

    d_model: int = 64
    num_layers: int = 2
    num_heads: int = 4
    d_ff: int = 256
    dropout: float = 0.0
    steps: int = 1500  # updates
    batch: int = 32  # windows of a text, or drawings, an update
    window: int = 64  # tokens that a language model reads at once
    examples: int = 50_000  # words of the stories, or drawings, that are made to train on
    vocab_size: int = 4000  # at most; subwords of a text
    peak_rate: float = 3e-3
    warmup: int = 50  # updates
    clip: float = 1.0  # largest norm of the gradients; 0 to leave them as they are
    look_every: int = 250  # updates, between two measurements
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse what cannot be meant, by name."""
        whole = [f for f, kind in self.__annotations__.items() if kind is int and f != "seed"]
        for name in whole:
            if getattr(self, name) < 1:
                raise ValueError(f"{name} ({getattr(self, name)}) must be at least 1")
        if self.d_model % self.num_heads or self.d_model % 2:
            raise ValueError(
                f"d_model ({self.d_model}) must be even, and divisible by num_heads "
                f"({self.num_heads})"
            )
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout ({self.dropout}) must be at least 0 and below 1")
        if not 0 < self.peak_rate < math.inf or self.clip < 0 or self.seed < 0:
            raise ValueError("peak_rate must be above 0, clip and seed at least 0")

    def with_fields(self, changes: Mapping[str, Any]) -> Self:
        """The same with some fields changed.

        Raises:
            ValueError: that names the field that is unknown, of a wrong type or out of range.
        """
        return type(self)(**checked(type(self), asdict(self) | dict(changes), "the recipe"))

    def rate(self, step: int) -> float:
        """The learning rate of an update, counted from 1: up in a line, down in a line to 0."""
        left = 1 - max(0, step - self.warmup) / max(1, self.steps - self.warmup + 1)
        return self.peak_rate * min(step / self.warmup, left)


class Task(ABC):
    """What a model is trained for.

    Attributes:
        name: the task's, as a run keeps it.
        recipe: sizes and training.
        about: what it is trained on, in words.
    """

    name: str
    recipe: Recipe
    about: str

    @abstractmethod
    def build(self, module: ModuleType) -> nn.Module:
        """The module's model for this task, with first weights by the recipe's seed.

        Raises:
            Incomplete: if the module lacks a part of it.
        """

    @abstractmethod
    def batches(self) -> Iterator[tuple[Tensor, ...]]:
        """What the updates are made on, one after the other, without end."""

    @abstractmethod
    def loss(self, model: nn.Module, *batch: Tensor) -> Float[Tensor, ""]:
        """The mean loss of a token, in nats."""

    @abstractmethod
    def measure(self, model: nn.Module) -> dict[str, float]:
        """What the model knows of data that was held out, by name."""

    @abstractmethod
    def sample(self, model: nn.Module) -> list[str]:
        """Something that it writes."""


def _part(module: ModuleType, name: str) -> Any:
    """A class of the module's.

    Raises:
        Incomplete: if it is not there.
    """
    if not hasattr(module, name):
        raise Incomplete(
            f"the module has no {name}: it comes from a later chapter; answer it, then assemble "
            "the module again"
        )
    return getattr(module, name)


def _begun(module: ModuleType, model: nn.Module) -> nn.Module:
    """The model with first weights as the module says, if it says how; else as they are."""
    if own(module, "initialise", nn.Linear(2, 2)):
        module.initialise(model)
    return model


# A text -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Text:
    """A text as ids, and what they stand for.

    Attributes:
        train: the ids to train on, one after the other.
        valid: those that were held out.
        size: bytes of what was held out, in UTF-8.
        tokenizer: of subwords; None for the stories, which know their words themselves.
    """

    name: str
    train: Int[Tensor, "n"]
    valid: Int[Tensor, "m"]
    size: int
    tokenizer: Tokenizer | None

    @cached_property
    def stories(self) -> Stories:
        """The source of the stories."""
        return Stories()

    def __len__(self) -> int:
        """How many different ids there are."""
        return len(self.stories) if self.tokenizer is None else len(self.tokenizer)

    def encode(self, text: str) -> list[int]:
        """The ids of a text's beginning, whatever a text begins with first.

        Raises:
            ValueError: if the stories do not know one of its words.
        """
        if self.tokenizer is not None:
            return self.tokenizer.encode(text)[:-1]  # without <eos>: it goes on
        words = text if text.split()[:1] == [NEW] else f"{NEW} {text}"
        return self.stories.encode(words).tolist()

    def decode(self, ids: list[int]) -> str:
        """The text of these ids; a line or a story ends where the next begins."""
        if self.tokenizer is None:
            return self.stories.decode(ids).replace(f" {NEW} ", "\n").removeprefix(f"{NEW} ")
        lines: list[list[int]] = [[]]
        for number in ids:
            lines[-1].append(number)
            if number == self.tokenizer.eos_id:
                lines.append([])
        return "\n".join(self.tokenizer.decode(line) for line in lines).rstrip("\n")


def read_text(data: str, recipe: Recipe) -> Text:
    """The stories, or a file's text, cut into what is learnt and what is held out.

    Args:
        data: "stories", or a file of UTF-8 text; a line is what begins and ends.
        recipe: how much of the stories, or how many subwords of the text.

    Raises:
        ValueError: if the file is not there, no text, or too short.
    """
    if data == STORIES:
        source = Stories()
        valid = source.draw(HELD_OUT_STORIES, seed=recipe.seed + 1)
        size = int(source.sizes[valid[1:]].sum())
        train = source.draw(recipe.examples, seed=recipe.seed)
        return _long_enough(Text(data, train, valid, size, None), recipe)
    path = Path(data)
    if not path.is_file():
        raise ValueError(f"there is no file {path}; --data is {STORIES}, or a text")
    try:
        lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is no UTF-8 text ({error})") from error
    if len(lines) < LEAST_LINES:
        raise ValueError(f"{path} has {len(lines)} lines; at least {LEAST_LINES} are needed")
    cut = len(lines) - max(1, round(HELD_OUT * len(lines)))
    made = Tokenizer.train_subwords(lines[:cut], recipe.vocab_size)
    streams = [
        torch.tensor([number for ids in made.encode_all(part) for number in ids])
        for part in (lines[:cut], lines[cut:])
    ]
    size = sum(len(f"{line}\n".encode()) for line in lines[cut:])
    return _long_enough(Text(str(path), streams[0], streams[1], size, made), recipe)


def vocabulary(data: str, tokenizer: Tokenizer | None) -> Text:
    """What is needed of a text to write on: its words, and nothing that was learnt from."""
    none = torch.empty(0, dtype=torch.int64)
    return Text(data, none, none, 0, tokenizer)


def _long_enough(text: Text, recipe: Recipe) -> Text:
    for part, stream in (("to train on", text.train), ("held out", text.valid)):
        if len(stream) <= recipe.window:
            raise ValueError(
                f"{text.name} has {len(stream)} tokens {part}, the window {recipe.window}; take "
                "a longer text, or --set window=N"
            )
    return text


class Language(Task):
    """To say what comes next in a text.

    Args:
        recipe: sizes and training.
        text: what is read.
    """

    name = "language"

    def __init__(self, recipe: Recipe, text: Text) -> None:
        self.recipe, self.text = recipe, text
        self.about = f"{text.name}, {len(text.train):,} tokens; {len(text):,} different ones"

    def build(self, module: ModuleType) -> nn.Module:
        """The module's `LanguageModel`, its table of positions as long as a window."""
        sizes, make = self.recipe, _part(module, "LanguageModel")
        torch.manual_seed(sizes.seed)
        with answers_needed():
            table = module.sinusoidal_encoding(sizes.window, sizes.d_model)
            rest = sizes.num_layers, sizes.num_heads, sizes.d_ff, sizes.dropout
            return _begun(module, make(len(self.text), table, *rest))

    def batches(self) -> Iterator[tuple[Tensor, ...]]:
        """Windows from anywhere, each one token longer than the model reads."""
        sizes, stream = self.recipe, self.text.train
        generator = torch.Generator().manual_seed(sizes.seed)
        reach = torch.arange(sizes.window + 1)
        while True:
            begins = (sizes.batch, 1)
            starts = torch.randint(len(stream) - sizes.window, begins, generator=generator)
            yield (stream[starts + reach],)

    def loss(self, model: nn.Module, *batch: Tensor) -> Float[Tensor, ""]:
        """The cross-entropy of each token, given those before it in its window."""
        (windows,) = batch
        logits = model(windows[:, :-1])
        return F.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten())

    def measure(self, model: nn.Module) -> dict[str, float]:
        """Loss, perplexity and bits a byte of what was held out; the stories' least loss."""
        losses = torch.cat([self._losses(model, one) for one in self._valid_windows()])
        found = {
            "loss": losses.mean().item(),
            "perplexity": losses.mean().exp().item(),
            "bits a byte": losses.sum().item() / math.log(2) / self.text.size,
        }
        if self.text.tokenizer is None:
            found["least loss"] = self._least
        return found

    @cached_property
    def _least(self) -> float:
        best = [self.text.stories.best_losses(one)[:, 1:] for one in self._valid_windows()]
        return torch.cat([one.flatten() for one in best]).mean().item()

    def _valid_windows(self) -> Iterator[Int[Tensor, "1 n"]]:
        """What was held out, window by window: each token but the first is said once."""
        stream, window = self.text.valid, self.recipe.window
        for start in range(0, len(stream) - 1, window):
            yield stream[None, start : start + window + 1]

    def _losses(self, model: nn.Module, window: Tensor) -> Float[Tensor, "n"]:
        window = window.to(next(model.parameters()).device)
        logits = model(window[:, :-1])
        return F.cross_entropy(logits[0], window[0, 1:], reduction="none").cpu().double()

    def sample(self, model: nn.Module) -> list[str]:
        """A few tokens, drawn as they come."""
        return [self.write(model, "", 24, seed=self.recipe.seed)]

    @torch.no_grad()
    def write(
        self,
        model: nn.Module,
        text: str,
        count: int,
        *,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        seed: int = 0,
    ) -> str:
        """Go on with a text by so many tokens.

        Args:
            model: in evaluation mode.
            text: the beginning; may be empty.
            count: tokens to write.
            temperature: of the softmax; 0 takes the likeliest token each time.
            top_k: how many tokens are drawn from at most; 0 for all.
            top_p: the fewest tokens that hold this share are drawn from.
            seed: decides what is drawn.

        Raises:
            ValueError: if a word or a setting cannot be.
        """
        if temperature < 0 or top_k < 0 or not 0 < top_p <= 1:
            raise ValueError(
                "temperature and top-k must be at least 0, top-p above 0 and at most 1"
            )
        ids, device = self.text.encode(text), next(model.parameters()).device
        generator = torch.Generator().manual_seed(seed)
        for _ in range(count):
            read = torch.tensor([ids[-self.recipe.window :]], device=device)
            logits = model(read)[0, -1].double().cpu()
            ids.append(_drawn(logits, temperature, top_k, top_p, generator))
        return self.text.decode(ids)


def _drawn(
    logits: Float[Tensor, "V"], temperature: float, top_k: int, top_p: float, generator: Any
) -> int:
    if temperature == 0:
        return int(logits.argmax())
    shares, order = torch.softmax(logits / temperature, dim=0).sort(descending=True)
    before = shares.cumsum(0) - shares
    kept = shares.where(before < top_p, torch.zeros(()).double())
    kept = kept[:top_k] if top_k else kept
    return int(order[torch.multinomial(kept, 1, generator=generator)])


# Drawings -----------------------------------------------------------------------------------------


class Captions(Task):
    """To say what a drawing shows.

    Args:
        recipe: sizes and training.
    """

    name = "captions"

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self.about = (
            f"{recipe.examples:,} drawings of {drawings.HEIGHT} x {drawings.WIDTH} pixels, in "
            f"patches of {PATCH} x {PATCH}"
        )

    @cached_property
    def train(self) -> drawings.Drawings:
        """The drawings to learn from."""
        return drawings.drawings(self.recipe.examples, seed=self.recipe.seed)

    @cached_property
    def valid(self) -> drawings.Drawings:
        """Drawings that were held out."""
        return drawings.drawings(HELD_OUT_DRAWINGS, seed=self.recipe.seed + 1)

    def build(self, module: ModuleType) -> nn.Module:
        """The module's `Captioner` on its `PatchEncoder`; both have as many layers."""
        sizes = self.recipe
        encoder, make = _part(module, "PatchEncoder"), _part(module, "Captioner")
        self._patchify = _part(module, "patchify")
        torch.manual_seed(sizes.seed)
        count = drawings.HEIGHT * drawings.WIDTH // PATCH**2
        rest = sizes.num_layers, sizes.num_heads, sizes.d_ff, sizes.dropout
        with answers_needed():
            self.patches_of(self.valid)
            table = module.sinusoidal_encoding(drawings.LENGTH, sizes.d_model)
            sees = encoder(3 * PATCH**2, count, sizes.d_model, *rest)
            return _begun(module, make(sees, len(drawings.WORDS), table, *rest))

    def patches_of(self, some: drawings.Drawings) -> Float[Tensor, "B N P"]:
        """The drawings cut into patches, by the module's own function."""
        return self._patchify(some.pictures, PATCH)

    def batches(self) -> Iterator[tuple[Tensor, ...]]:
        """Drawings and their captions, drawn by chance."""
        generator = torch.Generator().manual_seed(self.recipe.seed)
        patches, size = self.patches_of(self.train), (self.recipe.batch,)
        while True:
            chosen = torch.randint(len(patches), size, generator=generator)
            yield patches[chosen], self.train.captions[chosen]

    def loss(self, model: nn.Module, *batch: Tensor) -> Float[Tensor, ""]:
        """The cross-entropy of each word, given the drawing and the words before it."""
        patches, captions = batch
        logits = model(patches, captions[:, :-1])
        return F.cross_entropy(logits.transpose(1, 2), captions[:, 1:])

    def measure(self, model: nn.Module) -> dict[str, float]:
        """The mean loss of a word, and the share of captions that say what is so."""
        device = next(model.parameters()).device
        patches, captions = self.patches_of(self.valid).to(device), self.valid.captions.to(device)
        said = captions_of(model, patches)
        right = [drawings.is_true(one, number, self.valid) for number, one in enumerate(said)]
        loss = self.loss(model, patches, captions).item()
        return {"loss": loss, "true captions": sum(right) / len(right)}

    def sample(self, model: nn.Module) -> list[str]:
        """Captions of three drawings."""
        return [said for _, said in self.describe(model, 3, seed=self.recipe.seed + 2)]

    @torch.no_grad()
    def describe(self, model: nn.Module, count: int, seed: int) -> list[tuple[Tensor, str]]:
        """New drawings, and what the model says of each."""
        some = drawings.drawings(count, seed=seed)
        device = next(model.parameters()).device
        said = captions_of(model, self.patches_of(some).to(device)) if count else []
        return list(zip(some.pictures, said, strict=True))

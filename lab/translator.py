"""A small translator for the last notebook: from your assembled module, or from the lab's blocks.

The lab's own can be built with one thing missing, to see what becomes of it.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import LambdaLR

from lab.assembled import Incomplete, build, load_module, own
from lab.batching import batches, pad_ids
from lab.blocks import (
    Decoder,
    DecoderLayer,
    Encoder,
    EncoderLayer,
    Generator,
    PositionalEncoding,
    TokenEmbedding,
    causal_mask,
    padding_mask,
)
from lab.five_minutes import Functions, GrammarData, find_functions, grammar_data
from lab.own import one_thread
from lab.small_runs import greedy

MODULE = "my_transformer.py"
MISSING = ("positions", "causal mask", "residuals")
LONGEST = 7  # words of a sentence, in either language
SIZES = {"d_model": 64, "num_layers": 1, "num_heads": 4, "d_ff": 128, "dropout": 0.0}


class Translator(nn.Module):
    """The whole model, of the lab's blocks.

    Args:
        source_vocab: number of ids of the source language.
        target_vocab: number of ids of the target language.
        max_len: rows of the table of positions.
        pad_id: id of padding, in both languages.
        without: one of MISSING, or "" for the whole model.

    Raises:
        ValueError: if `without` names something else.
    """

    def __init__(
        self, source_vocab: int, target_vocab: int, max_len: int, pad_id: int, without: str = ""
    ) -> None:
        super().__init__()
        if without and without not in MISSING:
            raise ValueError(f"without ({without!r}) must be one of {', '.join(MISSING)}")
        self.pad_id = pad_id
        self.sees_all = without == "causal mask"
        width, layers = SIZES["d_model"], SIZES["num_layers"]
        sizes = (width, SIZES["num_heads"], SIZES["d_ff"], SIZES["dropout"])
        plain = without == "residuals"
        encoder_layer = _PlainEncoderLayer if plain else EncoderLayer
        decoder_layer = _PlainDecoderLayer if plain else DecoderLayer
        table = sinusoids(max_len, width)
        self.source_embedding = TokenEmbedding(source_vocab, width)
        self.target_embedding = TokenEmbedding(target_vocab, width)
        self.positional_encoding = PositionalEncoding(
            torch.zeros_like(table) if without == "positions" else table
        )
        self.encoder = Encoder(lambda: encoder_layer(*sizes), layers)
        self.decoder = Decoder(lambda: decoder_layer(*sizes), layers)
        self.generator = Generator(width, target_vocab)
        self.generator.tie(weight=self.target_embedding.weight)
        for matrix in (one for one in self.parameters() if one.dim() == 2):
            nn.init.xavier_uniform_(matrix)
        for embedding in (self.source_embedding, self.target_embedding):
            nn.init.normal_(embedding.weight, std=width**-0.5)

    def encode(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """Memory (B, M, d_model), and where the source is no padding (B, 1, M)."""
        mask = padding_mask(source, self.pad_id)
        return self.encoder(self._placed(self.source_embedding(source)), mask), mask

    def decode(
        self, target: Tensor, memory: Tensor, memory_mask: Tensor, offset: int = 0
    ) -> Tensor:
        """Logits (B, N, target_vocab)."""
        mask = padding_mask(target, self.pad_id)
        if not self.sees_all:
            mask = mask & causal_mask(target.shape[1])
        x = self._placed(self.target_embedding(target), offset)
        out = self.decoder(x, memory, mask, memory_mask)
        return self.generator(out)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Logits; the target is the decoder's input as it is."""
        memory, mask = self.encode(source)
        return self.decode(target, memory, mask)

    def _placed(self, vectors: Tensor, offset: int = 0) -> Tensor:
        return self.positional_encoding(math.sqrt(vectors.shape[-1]) * vectors, offset)


class _PlainEncoderLayer(EncoderLayer):
    """Without residual connections: torch's layer adds x, so x is taken off before."""

    def _sa_block(self, x: Tensor, *given: Any, **named: Any) -> Tensor:
        return super()._sa_block(x, *given, **named) - x

    def _ff_block(self, x: Tensor) -> Tensor:
        return super()._ff_block(x) - x


class _PlainDecoderLayer(DecoderLayer):
    """Without residual connections."""

    def _sa_block(self, x: Tensor, *given: Any, **named: Any) -> Tensor:
        return super()._sa_block(x, *given, **named) - x

    def _mha_block(self, x: Tensor, *given: Any, **named: Any) -> Tensor:
        return super()._mha_block(x, *given, **named) - x

    def _ff_block(self, x: Tensor) -> Tensor:
        return super()._ff_block(x) - x


def sinusoids(n: int, d_model: int) -> Tensor:
    """The paper's table of positions, (n, d_model)."""
    rates = 10000 ** (-torch.arange(0, d_model, 2) / d_model)
    angles = torch.arange(n).unsqueeze(1) * rates
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)


# What trains it, yours as far as you have assembled it --------------------------------------------

Search = Callable[..., Any]


@dataclass(frozen=True)
class Workshop:
    """Short sentences, a way to make a new model, and what trains, decodes and scores it."""

    data: GrammarData
    new_model: Callable[[], nn.Module]
    functions: Functions
    greedy_decode: Callable[..., list[list[int]]]
    beam_search: Search | None  # only where the module has one
    bleu: Callable[[Sequence[Sequence[str]], Sequence[Sequence[str]]], float]
    own: tuple[str, ...]  # names of what is the module's
    stand_ins: tuple[str, ...]  # names of what is not

    def stream(self, steps: int, seed: int = 0) -> Iterator[tuple[Tensor, Tensor]]:
        """So many batches of 64 pairs (source, target) to train on."""
        for epoch in range(steps):
            pairs, seen = self.data.train, (self.data.source, self.data.target)
            for batch in batches(pairs, *seen, batch_size=64, seed=seed + epoch):
                if steps == 0:
                    return
                steps -= 1
                yield batch.source, batch.target

    def optimiser(self, model: nn.Module, peak: float = 5e-3, warmup: int = 60) -> Any:
        """What `scheduled_adam` makes; the rate rises to `peak` and falls as the paper's."""
        rate = self.functions.learning_rate
        largest = rate(warmup, 64, warmup)
        make = self.functions.scheduled_adam
        if "scheduled_adam" in self.stand_ins:  # what stands in there has one rate for all
            make = _scheduled
        return make(model.parameters(), lambda step: peak * rate(step, 64, warmup) / largest)

    def update(self, peak: float = 5e-3) -> Callable[[nn.Module, Tensor, Tensor], float]:
        """A function of model, source and target that takes one step and returns the loss."""
        kept: WeakKeyDictionary[nn.Module, Any] = WeakKeyDictionary()

        def step(model: nn.Module, source: Tensor, target: Tensor) -> float:
            if model not in kept:
                kept[model] = self.optimiser(model, peak)
            optimizer, scheduler = kept[model]
            functions, pad_id = self.functions, self.data.target.pad_id
            loss = functions.train_step(
                model, source, target, optimizer, pad_id, functions.label_smoothed_loss
            )
            scheduler.step()
            return loss

        return step

    @torch.no_grad()
    def held_out_loss(self, model: nn.Module) -> float:
        """Mean cross-entropy of the held-out sentences' real tokens, without smoothing."""
        total, real, pad_id = 0.0, 0, self.data.target.pad_id
        for batch in batches(self.data.held_out, self.data.source, self.data.target, 100):
            labels = batch.target[:, 1:]
            log_p = model(batch.source, batch.target[:, :-1]).log_softmax(-1)
            chosen = log_p.gather(-1, labels[..., None])[..., 0]
            total -= float(chosen[labels != pad_id].sum())
            real += int((labels != pad_id).sum())
        return total / real

    @one_thread()
    def translate(self, model: nn.Module, sentences: Sequence[str]) -> list[str]:
        """What the model makes of English sentences, by `greedy_decode`."""
        source, target = self.data.source, self.data.target
        ids, _ = pad_ids(source.encode_all(sentences), source.pad_id)
        said = self.greedy_decode(model, ids, target.bos_id, target.eos_id, 3 * LONGEST)
        return [target.decode(row) for row in said]

    @one_thread()
    def search(self, model: nn.Module, sentences: Sequence[str], width: int = 4) -> list[str]:
        """The same by the module's `beam_search`.

        Raises:
            ValueError: if there is none.
        """
        if self.beam_search is None:
            raise ValueError(f"{MODULE} has no beam_search; it is question 9.2")
        source, target = self.data.source, self.data.target
        ends = target.bos_id, target.eos_id
        return [
            target.decode(
                self.beam_search(model, torch.tensor([ids]), *ends, 3 * LONGEST, width)[0]
            )
            for ids in source.encode_all(sentences)
        ]


def _scheduled(parameters: Iterable[nn.Parameter], rate: Callable[[int], float]) -> Any:
    optimizer = torch.optim.Adam(parameters, 1.0, (0.9, 0.98), 1e-9)
    return optimizer, LambdaLR(optimizer, lambda done: rate(done + 1))


def workshop(folder: Path | None = None) -> Workshop:
    """Sentences and parts: those of my_transformer.py, if it is here or up to two folders up.

    Args:
        folder: where to look; by default the working directory.
    """
    here = folder or Path.cwd()
    module = None
    for path in (place / MODULE for place in (here, *here.parents[:2])):
        if path.is_file():
            try:
                module = load_module(path)
                break
            except Incomplete as error:
                print(f"{error}; the lab's model stands in")
    return _with(module)


def lab_workshop() -> Workshop:
    """The same with nothing of yours, as the book uses it."""
    return _with(None)


def _with(module: Any) -> Workshop:
    whole = grammar_data(20_000)
    train, held_out = (
        [pair for pair in pairs if all(len(side.split()) <= LONGEST for side in pair)]
        for pairs in (whole.train, whole.held_out)
    )
    data = replace(whole, train=train, held_out=held_out)
    vocabularies, pad_id = (len(data.source), len(data.target)), data.target.pad_id

    def lab_model() -> nn.Module:
        return Translator(*vocabularies, data.max_len, pad_id)

    def own_model() -> nn.Module:
        return build(module, vocabularies, data.max_len, pad_id, SIZES, torch.initial_seed())

    new_model = lab_model
    if module is not None:
        try:
            own_model()
            new_model = own_model
        except Incomplete as error:
            print(f"{error}; the lab's model stands in")
    functions = find_functions(module)
    model, ids = new_model(), torch.tensor([[data.source.bos_id, data.source.eos_id]])
    ends = data.target.bos_id, data.target.eos_id
    searches = {
        "greedy_decode": own(module, "greedy_decode", model, ids, *ends, 1),
        "beam_search": own(module, "beam_search", model, ids, *ends, 1, 1),
        "bleu": own(module, "bleu", [["a"]], [["a"]]),
    }
    found = ["Transformer"] if new_model is own_model else []
    found += [*functions.own, *(name for name, search in searches.items() if search)]
    names = ("Transformer", *functions.own, *functions.stand_ins, *searches)
    return Workshop(
        data,
        new_model,
        functions,
        searches["greedy_decode"] or greedy,
        searches["beam_search"],
        searches["bleu"] or _bleu,
        tuple(found),
        tuple(name for name in names if name not in found),
    )


def _bleu(hypotheses: Sequence[Sequence[str]], references: Sequence[Sequence[str]]) -> float:
    """Sacrebleu's, of lists of tokens."""
    from sacrebleu.metrics.bleu import BLEU

    said, wanted = ([" ".join(tokens) for tokens in side] for side in (hypotheses, references))
    return BLEU(tokenize="none", force=True).corpus_score(said, [wanted]).score

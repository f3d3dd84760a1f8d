"""The work that all models of a benchmark share: sizes, batches and sentences, and its cost."""

import argparse
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainer.configs import ModelConfig

SENTENCES = 64  # to decode at once
VOCAB = 10_000
MAX_TOKENS = 4096  # of a batch, on either side
STEPS = 64  # tokens to decode for each sentence

# Tokens of 100 pairs of Multi30k, English to French (10,000 subwords): every 290th of the training
# set, sorted by the French length. Sources from <bos> to <eos>, targets without <bos>.
SOURCES = (
    "10 9 11 10 10 11 10 10 11 12 12 9 11 11 12 12 13 13 14 10 11 12 12 13 13 14 15 10 12 12 13 13 "
    "14 14 15 15 17 12 13 13 14 14 15 15 16 17 11 13 14 14 15 15 16 17 18 13 14 15 16 16 17 18 19 "
    "14 15 16 17 17 19 13 15 16 17 18 19 14 17 18 19 20 15 18 19 21 16 19 21 24 19 22 19 22 19 23 "
    "22 21 21 23 23 28"
)
TARGETS = (
    "7 8 8 9 9 9 10 10 10 10 10 11 11 11 11 11 11 11 11 12 12 12 12 12 12 12 12 13 13 13 13 13 13 "
    "13 13 13 13 14 14 14 14 14 14 14 14 14 15 15 15 15 15 15 15 15 15 16 16 16 16 16 16 16 16 17 "
    "17 17 17 17 17 18 18 18 18 18 18 19 19 19 19 19 20 20 20 20 21 21 21 21 22 22 23 23 24 24 25 "
    "26 27 28 30 34"
)
PAIRS = 29_000  # as many as Multi30k has


@dataclass(frozen=True)
class Setup:
    """What all models share."""

    model: "ModelConfig"
    vocab: int
    max_tokens: int
    device: str
    precision: str
    compile: bool
    threads: int
    batches: list[tuple[list[list[int]], list[list[int]]]]
    sources: list[list[int]]  # to decode
    steps: int  # tokens to decode for each of them
    sentence: str


def set_up(options: argparse.Namespace) -> Setup:
    """The sizes, batches and sentences that the command's flags ask for.

    Raises:
        ValueError: if an option cannot be used, or the module has no Transformer.
    """
    for name in ("rounds", "batches", "threads"):
        if getattr(options, name) < 1:
            raise ValueError(f"--{name} ({getattr(options, name)}) must be at least 1")
    if options.record is not None and not options.record.parent.is_dir():
        raise ValueError(f"there is no directory {options.record.parent} for --record")
    from lab.assembled import load_module
    from lab.batching import EncodedPairs, token_batches
    from trainer.configs import ModelConfig, find_config
    from trainer.distributed import find_device

    load_module(Path(options.model))
    model = ModelConfig(
        d_model=128, num_layers=4, num_heads=4, d_ff=256, dropout=0.3, norm_first=True
    )
    vocab, max_tokens = VOCAB, MAX_TOKENS
    if options.config is not None:
        config = find_config(options.config)
        model, vocab, max_tokens = config.model, config.vocab_size, config.max_tokens
    device = str(find_device(options.device))
    on_gpu = device.startswith("cuda")
    precision = options.precision or ("bf16" if on_gpu else "fp32")
    compiled = on_gpu if options.compile is None else options.compile
    pairs, origin = _pairs(options.data_dir, vocab)
    multiple = 8 if compiled else 1
    encoded = EncodedPairs.of(pairs)
    planned = token_batches(encoded, max_tokens, seed=1, epoch=0, multiple=multiple)
    chosen = planned[: options.batches]
    batches = [_sides([pairs[index] for index in batch], multiple) for batch in chosen]
    place = "GPU" if on_gpu else f"{options.threads} thread{'s' if options.threads > 1 else ''}"
    time = "the processor's time" if device == "cpu" and options.threads == 1 else "the clock"
    sentence = (
        f"{model.num_layers} + {model.num_layers} layers, d_model {model.d_model}, d_ff "
        f"{model.d_ff}, {model.num_heads} heads, {'pre' if model.norm_first else 'post'}-norm, "
        f"vocabulary {vocab:,}, batches of {max_tokens} tokens ({origin}), "
        f"dropout {model.dropout}, {device}, {place}, {precision}"
        f"{', compiled' if compiled else ''}{', all by oneDNN' if options.onednn else ''}; "
        f"{options.rounds} rounds of {len(batches)} batches, "
        f"by {time}"
    )
    sources = [source for source, _ in pairs[:: max(len(pairs) // SENTENCES, 1)]][:SENTENCES]
    return Setup(
        model,
        vocab,
        max_tokens,
        device,
        precision,
        compiled,
        options.threads,
        batches,
        sources,
        STEPS,
        sentence,
    )


def _sides(
    pairs: Sequence[tuple[list[int], list[int]]], multiple: int
) -> tuple[list[list[int]], list[list[int]]]:
    """Sources and targets of a batch, the longest filled up so that widths are multiples."""
    sources, targets = [list(source) for source, _ in pairs], [list(target) for _, target in pairs]
    for side, extra in ((sources, 0), (targets, 1)):
        longest = max(side, key=len)
        width = len(longest) - extra
        longest.extend([0] * (-width % multiple))
    return sources, targets


def _pairs(data_dir: Path | None, vocab: int) -> tuple[list[tuple[list[int], list[int]]], str]:
    """Encoded pairs, and where they come from: Multi30k's, or random ids in its lengths."""
    if data_dir is not None:
        from lab.batching import encode_pairs
        from lab.text import Tokenizer
        from trainer.datasets import load

        corpus = load("multi30k", data_dir=data_dir)
        sentences = [sentence for pair in corpus.train for sentence in pair]
        tokenizer = Tokenizer.train_subwords(sentences, vocab)
        pairs = encode_pairs(corpus.train, tokenizer, tokenizer, 128)
        return pairs[:], "Multi30k"
    rng = random.Random(1)
    lengths = list(zip(map(int, SOURCES.split()), map(int, TARGETS.split()), strict=True))
    pairs = []
    for _ in range(PAIRS):
        source, target = rng.choice(lengths)
        # <bos> words <eos>; words are any ids but the four special ones
        words = [rng.randrange(4, vocab) for _ in range(source + target - 3)]
        pairs.append(([2, *words[: source - 2], 3], [2, *words[source - 2 :], 3]))
    return pairs, "random ids in Multi30k's lengths"


def flops(setup: Setup) -> float:
    """Floating-point operations of training on a round's batches, by closed form.

    A product of matrices (r, a) and (a, b) takes 2 r a b; backwards takes twice as much again.
    With d = d_model, f = d_ff, L layers a side, S source and T target places a sentence, an
    encoder layer has 4 d^2 + 2 d f weights a source place; a decoder layer 6 d^2 + 2 d f a target
    place and 2 d^2 a source place (keys and values of the memory); the output layer d V a target
    place. Attention adds 2 S d a source place and 2 (T + S) d a target place and layer. Padding
    counts (it is computed), except at the output layer, which our trainer computes for real
    tokens only. Norms, softmax and the optimiser are left out.
    """
    model = setup.model
    d, f, layers = model.d_model, model.d_ff, model.num_layers
    total = 0
    for sources, targets in setup.batches:
        rows, s = len(sources), max(map(len, sources))
        t = max(map(len, targets)) - 1
        real = sum(len([i for i in target if i]) - 1 for target in targets)
        encoder = rows * s * layers * (4 * d * d + 2 * d * f + 2 * s * d)
        decoder = rows * t * layers * (6 * d * d + 2 * d * f + 2 * (t + s) * d)
        memory = rows * s * layers * 2 * d * d
        total += encoder + decoder + memory + real * d * setup.vocab
    return 3 * 2.0 * total

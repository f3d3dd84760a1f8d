"""Batches of sentence pairs: ids padded to one length, similar lengths together."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Int64
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from lab.text import Tokenizer


@dataclass(frozen=True)
class Batch:
    """B sentence pairs; every sentence runs from <bos> to <eos>, then padding."""

    source: Int64[Tensor, "B N"]
    source_lengths: Int64[Tensor, "B"]
    target: Int64[Tensor, "B M"]
    target_lengths: Int64[Tensor, "B"]


def pad_ids(
    sequences: Sequence[Sequence[int]], pad_id: int
) -> tuple[Int64[Tensor, "B N"], Int64[Tensor, "B"]]:
    """Stack lists of ids into one tensor, padded on the right; also return their lengths.

    Raises:
        ValueError: if there is no sequence.
    """
    if not sequences:
        raise ValueError("0 sequences given; a batch needs at least 1")
    rows = [torch.tensor(ids, dtype=torch.int64) for ids in sequences]
    lengths = torch.tensor([len(row) for row in rows])
    return pad_sequence(rows, batch_first=True, padding_value=pad_id), lengths


def batches(
    pairs: Sequence[tuple[str, str]],
    tokenizer_src: Tokenizer,
    tokenizer_tgt: Tokenizer,
    batch_size: int,
    seed: int = 0,
) -> Iterator[Batch]:
    """Yield every pair once, in batches of similar lengths that come in random order.

    The same seed gives the same batches; another seed per epoch shuffles anew. Only the last
    batch of the sorted pairs may hold fewer than `batch_size`.

    Raises:
        ValueError: if `batch_size` is below 1.
    """
    if batch_size < 1:
        raise ValueError(f"batch_size ({batch_size}) must be at least 1")
    return _batches(pairs, tokenizer_src, tokenizer_tgt, batch_size, random.Random(seed))


def _batches(
    pairs: Sequence[tuple[str, str]],
    tokenizer_src: Tokenizer,
    tokenizer_tgt: Tokenizer,
    batch_size: int,
    rng: random.Random,
) -> Iterator[Batch]:
    encoded = [(tokenizer_src.encode(src), tokenizer_tgt.encode(tgt)) for src, tgt in pairs]
    rng.shuffle(encoded)  # so that pairs of equal length meet in other batches each epoch
    encoded.sort(key=lambda pair: (len(pair[0]), len(pair[1])))
    starts = list(range(0, len(encoded), batch_size))
    rng.shuffle(starts)
    for start in starts:
        sources, targets = zip(*encoded[start : start + batch_size], strict=True)
        yield Batch(
            *pad_ids(sources, tokenizer_src.pad_id), *pad_ids(targets, tokenizer_tgt.pad_id)
        )

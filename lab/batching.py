"""Batches of sentence pairs: ids padded to one length, similar lengths together.

`batches` makes batches of so many sentences. For serious training `encode_pairs` encodes a corpus
once, `token_batches` plans an epoch in batches of so many tokens, `collate` makes each of them.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias, overload

import numpy as np
import torch
from jaxtyping import Int32, Int64
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from tqdm import tqdm

from lab.text import Tokenizer

IdPair: TypeAlias = tuple[list[int], list[int]]  # source and target, each from <bos> to <eos>
Encoded: TypeAlias = Sequence[IdPair]

CHUNK = 10_000  # pairs to encode at once


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


@dataclass(frozen=True, eq=False)
class Ragged:
    """T lists of ids one after another; as lists they would take ten times the memory."""

    ids: Int32[np.ndarray, "ids"]
    starts: Int64[np.ndarray, "T"]
    lengths: Int64[np.ndarray, "T"]

    @classmethod
    def of(cls, lists: Sequence[Sequence[int]]) -> "Ragged":
        """The same ids in this form."""
        lengths = np.array([len(ids) for ids in lists], dtype=np.int64)
        ids = np.fromiter((i for ids in lists for i in ids), np.int32, count=int(lengths.sum()))
        return cls(ids, lengths.cumsum() - lengths, lengths)

    @classmethod
    def joined(cls, parts: Sequence["Ragged"]) -> "Ragged":
        """All the lists of the parts, in their order."""
        lengths = np.concatenate([part.lengths for part in parts])
        ids = np.concatenate([part.ids for part in parts])
        return cls(ids, lengths.cumsum() - lengths, lengths)

    def __getitem__(self, index: int) -> list[int]:
        start = self.starts[index]
        return self.ids[start : start + self.lengths[index]].tolist()

    def padded(
        self, indices: Int64[np.ndarray, "B"], pad_id: int, width: int
    ) -> tuple[Int64[Tensor, "B width"], Int64[Tensor, "B"]]:
        """Some of the lists as rows of a tensor, padded on the right, and their lengths."""
        lengths = self.lengths[indices]
        rows = np.full((len(indices), width), pad_id, dtype=np.int64)
        real = np.arange(width) < lengths[:, None]  # (B, width)
        # Row-major order of the real places is that of the ids, list after list.
        within = np.arange(lengths.sum()) - np.repeat(lengths.cumsum() - lengths, lengths)
        rows[real] = self.ids[np.repeat(self.starts[indices], lengths) + within]
        return torch.from_numpy(rows), torch.from_numpy(lengths)


class EncodedPairs(Sequence[IdPair]):
    """The pairs that `encode_pairs` kept; `dropped` says how many were too long."""

    def __init__(self, source: Ragged, target: Ragged, dropped: int = 0) -> None:
        self.source, self.target, self.dropped = source, target, dropped

    @classmethod
    def of(cls, encoded: Encoded) -> "EncodedPairs":
        """Any sequence of encoded pairs in this form."""
        if isinstance(encoded, EncodedPairs):
            return encoded
        return cls(
            Ragged.of([pair[0] for pair in encoded]), Ragged.of([pair[1] for pair in encoded])
        )

    def __len__(self) -> int:
        return len(self.source.lengths)

    @overload
    def __getitem__(self, index: int) -> IdPair: ...
    @overload
    def __getitem__(self, index: slice) -> list[IdPair]: ...
    def __getitem__(self, index: int | slice) -> IdPair | list[IdPair]:
        """Source and target ids of one pair, or of each pair of a slice."""
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        return self.source[index], self.target[index]


def encode_pairs(
    pairs: Sequence[tuple[str, str]], source: Tokenizer, target: Tokenizer, max_len: int
) -> EncodedPairs:
    """Encode a corpus, without the pairs that are too long.

    Args:
        pairs: source and target sentences.
        source: tokeniser of the source sentences.
        target: tokeniser of the target sentences.
        max_len: a pair with more ids than this on a side, <bos> and <eos> included, is dropped.

    Raises:
        ValueError: if every pair is too long, or there is none.
    """
    kept: list[EncodedPairs] = []
    with tqdm(total=len(pairs), desc="encoding", disable=len(pairs) < 10 * CHUNK) as bar:
        for start in range(0, len(pairs), CHUNK):
            chunk = pairs[start : start + CHUNK]
            sources = source.encode_all([pair[0] for pair in chunk])
            targets = target.encode_all([pair[1] for pair in chunk])
            both = zip(sources, targets, strict=True)
            fitting = [pair for pair in both if max(map(len, pair)) <= max_len]
            kept.append(EncodedPairs.of(fitting))
            bar.update(len(chunk))
    count = sum(len(part) for part in kept)
    if not count:
        raise ValueError(f"none of the {len(pairs)} pairs has at most max_len ({max_len}) tokens")
    return EncodedPairs(
        Ragged.joined([part.source for part in kept]),
        Ragged.joined([part.target for part in kept]),
        dropped=len(pairs) - count,
    )


def token_batches(
    encoded: Encoded, max_tokens: int, *, seed: int, epoch: int, multiple: int = 1
) -> list[list[int]]:
    """Plan an epoch: indices of pairs, every pair once, in batches of similar lengths.

    What the model sees counts: a batch has at most `max_tokens` places for source ids and as many
    for labels, padding included. Which pairs of equal length meet, and the order of the batches,
    depend on `seed` and `epoch` alone.

    Args:
        encoded: the pairs.
        max_tokens: rows times width, on either side.
        seed: of the training.
        epoch: whose batches.
        multiple: widths are rounded up to multiples of this, as `collate` does.

    Raises:
        ValueError: if there are no pairs, or one alone is longer than `max_tokens`.
    """
    if not len(encoded):
        raise ValueError("0 pairs given; an epoch needs at least 1")
    data = EncodedPairs.of(encoded)
    sources, labels = _widths(data.source.lengths, data.target.lengths, multiple)
    longest = int(max(sources.max(), labels.max()))
    if longest > max_tokens:
        raise ValueError(
            f"max_tokens ({max_tokens}) has no room for a pair of {longest} tokens; raise it, or "
            "drop long pairs by a lower max_len"
        )
    rng = random.Random(f"{seed} {epoch}")  # its own, so that nothing else depends on it
    shuffled = list(range(len(data)))
    rng.shuffle(shuffled)
    order = np.array(shuffled)
    order = order[_by_length(sources[order], labels[order], multiple)]
    planned = _cut(order.tolist(), sources[order].tolist(), labels[order].tolist(), max_tokens)
    rng.shuffle(planned)
    return planned


def collate(encoded: Encoded, indices: Sequence[int], pad_id: int, multiple: int = 1) -> Batch:
    """The batch of the pairs with these indices.

    The source is as wide as its longest sentence, rounded up to a multiple of `multiple`; the
    target is one wider than such a multiple, since decoder input and labels are one shorter.

    Raises:
        ValueError: if there are no indices.
    """
    if not len(indices):
        raise ValueError("0 pairs given; a batch needs at least 1")
    if not isinstance(encoded, EncodedPairs):
        encoded, indices = EncodedPairs.of([encoded[i] for i in indices]), range(len(indices))
    rows = np.asarray(indices, dtype=np.int64)
    sources, labels = _widths(encoded.source.lengths[rows], encoded.target.lengths[rows], multiple)
    return Batch(
        *encoded.source.padded(rows, pad_id, int(sources.max())),
        *encoded.target.padded(rows, pad_id, int(labels.max()) + 1),
    )


def padding_share(encoded: Encoded, batches: Sequence[Sequence[int]], multiple: int = 1) -> float:
    """The share of padding among all places that the model sees, source and decoder input."""
    data = EncodedPairs.of(encoded)
    places = 0
    real = 0
    for indices in batches:
        lengths = data.source.lengths[indices], data.target.lengths[indices]
        sources, labels = _widths(*lengths, multiple)
        places += len(indices) * int(sources.max() + labels.max())
        real += int(lengths[0].sum() + lengths[1].sum()) - len(indices)
    return 1 - real / places


def _widths(
    source_lengths: Int64[np.ndarray, "n"], target_lengths: Int64[np.ndarray, "n"], multiple: int
) -> tuple[Int64[np.ndarray, "n"], Int64[np.ndarray, "n"]]:
    """How many places each source and its labels take, rounded up."""
    both = source_lengths, target_lengths - 1  # <bos> is no label, <eos> no decoder input
    first, second = (-(-lengths // multiple) * multiple for lengths in both)
    return first, second


def _by_length(
    sources: Int64[np.ndarray, "n"], labels: Int64[np.ndarray, "n"], multiple: int
) -> Int64[np.ndarray, "n"]:
    """An order in which neighbours are alike on both sides; equal pairs stay as they stand."""
    # Sources rise and fall by turns, so that they do not jump where a longer label count begins.
    turns = np.where(labels // multiple % 2 == 0, sources, -sources)
    return np.lexsort((turns, labels))


def _cut(
    order: Sequence[int], sources: Sequence[int], labels: Sequence[int], max_tokens: int
) -> list[list[int]]:
    """Cut the order where one more pair would not fit."""
    planned: list[list[int]] = []
    batch: list[int] = []
    widest = 0
    for index, source, label in zip(order, sources, labels, strict=True):
        widest = max(widest, source, label)
        if widest * (len(batch) + 1) > max_tokens:
            planned.append(batch)
            batch, widest = [], max(source, label)
        batch.append(index)
    return [*planned, batch]

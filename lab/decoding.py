"""Greedy and beam search for many sentences at once, with the exercises' own key-value cache.

The cache is that of the student's module (`use_cache`, chapter 9). Before it is used, its logits
step by step are compared with those of the whole target at once, at every position; where they
differ, decoding goes on without it and says so. The model comes out as it went in.
"""

import math
import warnings
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any, cast

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from tqdm import tqdm

from lab.batching import pad_ids
from lab.fused import FAILURES, linear, subclass, unwrapped
from lab.text import Tokenizer

AGREE = 1e-4  # largest difference of logits, relative to their size, between step by step and whole
LIVE_SHARE = 0.8  # rows move together when fewer than this share of them is unfinished
ROOM = 16  # tokens for which a cache grows at a time
BLOCK = 64  # classes; the k best lie in the k blocks with the largest maxima


@dataclass(frozen=True)
class Way:
    """How a model decodes: with a cache or not, with which, and why not with a better one."""

    cached: bool
    fused: bool  # whether the cache is kept in place, a stand-in for the module's own
    reason: str


# Searches -----------------------------------------------------------------------------------------


def greedy(
    module: ModuleType,
    model: nn.Module,
    source: Int[Tensor, "B M"],
    bos_id: int,
    eos_id: int,
    max_len: int,
    *,
    cache: bool = True,
) -> list[list[int]]:
    """Write each sentence by always choosing the likeliest token; at most max_len of them.

    Padding is never chosen. Returns the ids without bos_id and eos_id.

    Args:
        module: the module of the model, whose use_cache is used.
        model: has encode and decode, as the Transformer of chapter 10.
        source: sentences, padded on the right.
        bos_id: begins every target.
        eos_id: ends every target.
        max_len: the largest number of tokens, eos_id included.
        cache: keep keys and values between steps, if the module can.
    """
    written = torch.full((len(source), 0), eos_id, device=source.device)
    with _decoding(module, model, cache=cache) as steps:
        steps.begin(source)
        rows = torch.arange(len(source), device=source.device)  # of `written`, still unfinished
        last = torch.full((len(source), 1), bos_id, device=source.device)
        for _ in range(_fitting(model, max_len)):
            chosen = top(steps.logits(last), 1)[1].squeeze(1)  # (rows,)
            column = torch.full((len(source), 1), eos_id, device=source.device)
            column[rows, 0] = chosen
            written = torch.cat([written, column], dim=1)
            last = chosen.unsqueeze(1)
            going = (written[rows] != eos_id).all(-1)
            live = int(going.sum())
            if live == 0:
                break
            if live < LIVE_SHARE * len(rows):
                kept = going.nonzero().squeeze(1)
                steps.branch(kept, kept)
                rows, last = rows[kept], last[kept]
    return [_until(row, eos_id) for row in written.tolist()]


def beam(
    module: ModuleType,
    model: nn.Module,
    source: Int[Tensor, "B M"],
    bos_id: int,
    eos_id: int,
    max_len: int,
    beam_size: int = 5,
    length_penalty: float = 1.0,
) -> list[list[int]]:
    """Write each sentence, keeping its beam_size most probable unfinished hypotheses at each step.

    A hypothesis of n tokens, eos_id included, scores log-probability / ((5 + n) / 6) **
    length_penalty (Wu et al. 2016, section 7). A sentence is done once beam_size hypotheses of it
    have finished, or no unfinished one can beat its best; the best finished one is returned, or
    the best unfinished one where none has finished within max_len tokens.

    Args:
        module: the module of the model, whose use_cache is used.
        model: has encode and decode, as the Transformer of chapter 10.
        source: sentences, padded on the right.
        bos_id: begins every target.
        eos_id: ends every target.
        max_len: the largest number of tokens, eos_id included.
        beam_size: hypotheses a sentence; 1 is greedy search.
        length_penalty: 0 for none; larger favours longer sentences.

    Raises:
        ValueError: if beam_size is below 1.
    """
    if beam_size < 1:
        raise ValueError(f"beam_size ({beam_size}) must be at least 1")
    max_len = _fitting(model, max_len)
    with _decoding(module, model, cache=True) as steps:
        steps.begin(source)
        search = _Beams(len(source), beam_size, length_penalty, max_len, eos_id, source.device)
        last = torch.full((len(source), 1), bos_id, device=source.device)
        for _ in range(max_len):
            origins, last, kept = search.advance(steps.logits(last))
            if not len(kept):
                break
            steps.branch(origins, kept)
    return search.results()


class _Beams:
    """The unfinished hypotheses of the unfinished sentences, and every sentence's best."""

    def __init__(
        self,
        sentences: int,
        size: int,
        length_penalty: float,
        max_len: int,
        eos_id: int,
        device: torch.device,
    ) -> None:
        self.size, self.eos_id, self.max_len = size, eos_id, max_len
        self.length_penalty = length_penalty
        self.rows = list(range(sentences))  # the numbers of the S unfinished sentences
        self.finished = [0] * sentences
        self.best: list[tuple[float, list[int]]] = [(-float("inf"), [])] * sentences
        self.ids = torch.zeros(sentences, 1, 0, dtype=torch.int64, device=device)  # (S, k, n)
        self.log_probs = torch.zeros(sentences, 1, device=device)  # (S, k); k is 1 at the start

    def advance(
        self, logits: Float[Tensor, "S*k V"]
    ) -> tuple[Int[Tensor, "S*size"], Int[Tensor, "S*size 1"], Int[Tensor, "S"]]:
        """Take one step.

        Returns, for every new hypothesis of a sentence that goes on, the row of `logits` that it
        continues and its last token; and which of the sentences go on.
        """
        s, k = self.log_probs.shape
        best, tokens = top(logits, min(2 * self.size, logits.shape[1]))  # (S k, c) each
        best = best - _log_sum_exp(logits)
        totals = self.log_probs.unsqueeze(2) + best.view(s, k, -1)  # (S, k, c)
        # 2 size candidates hold size ones that go on: at most one for each of size ends in eos_id
        totals, numbers = totals.flatten(1).topk(min(2 * self.size, totals[0].numel()))
        parents = numbers // best.shape[1]  # (S, c), among 0 .. k - 1
        tokens = tokens.view(s, -1).gather(1, numbers)  # (S, c)
        n = self.ids.shape[2] + 1
        ended = tokens == self.eos_id
        self._finish(ended[:, : self.size], totals, parents, n)
        # unfinished candidates first, in order; the sort is stable
        order = ended.to(torch.int8).sort(dim=1, stable=True).indices[:, : self.size]
        parents, tokens = parents.gather(1, order), tokens.gather(1, order)
        self.log_probs = totals.masked_fill(ended, -float("inf")).gather(1, order)
        old = self.ids.gather(1, parents.unsqueeze(2).expand(-1, -1, n - 1))
        self.ids = torch.cat([old, tokens.unsqueeze(2)], dim=2)  # (S, size, n)
        return self._drop_done(parents, tokens, k, n)

    def results(self) -> list[list[int]]:
        """The best hypothesis of every sentence."""
        for row, ids, log_probs in zip(self.rows, self.ids, self.log_probs, strict=True):
            if not self.finished[row]:
                self.best[row] = (0.0, ids[log_probs.argmax()].tolist())
        return [ids for _, ids in self.best]

    def _penalty(self, n: int) -> float:
        return ((5 + n) / 6) ** self.length_penalty

    def _finish(
        self,
        ended: Bool[Tensor, "S size"],
        totals: Float[Tensor, "S c"],
        parents: Int[Tensor, "S c"],
        n: int,
    ) -> None:
        for sentence, candidate in ended.nonzero().tolist():
            row = self.rows[sentence]
            score = totals[sentence, candidate].item() / self._penalty(n)
            if score == -float("inf"):
                continue
            self.finished[row] += 1
            if score > self.best[row][0]:
                self.best[row] = (score, self.ids[sentence, parents[sentence, candidate]].tolist())

    def _drop_done(
        self, parents: Int[Tensor, "S size"], tokens: Int[Tensor, "S size"], k: int, n: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        longest = self._penalty(self.max_len if self.length_penalty > 0 else n + 1)
        hopes = (self.log_probs.amax(-1) / longest).tolist()  # scores that cannot be exceeded
        going = [
            sentence
            for sentence, (row, hope) in enumerate(zip(self.rows, hopes, strict=True))
            if self.finished[row] < self.size and hope > self.best[row][0]
        ]
        kept = torch.tensor(going, dtype=torch.int64, device=parents.device)
        self.rows = [self.rows[sentence] for sentence in going]
        self.ids, self.log_probs = self.ids[kept], self.log_probs[kept]
        origins = (kept.unsqueeze(1) * k + parents[kept]).flatten()
        return origins, tokens[kept].reshape(-1, 1), kept


def top(x: Float[Tensor, "R V"], k: int) -> tuple[Float[Tensor, "R k"], Int[Tensor, "R k"]]:
    """The k largest numbers of each row, largest first, and where they are.

    Rows are looked at in blocks: the k largest numbers lie in the k blocks of the largest maxima.
    """
    blocks = x.shape[1] // BLOCK
    if blocks <= 2 * k:
        return x.topk(k, dim=-1)
    whole = x[:, : blocks * BLOCK].unflatten(1, (blocks, BLOCK))  # (R, blocks, BLOCK)
    chosen = whole.amax(-1).topk(k, dim=-1).indices  # (R, k)
    inside = whole.gather(1, chosen.unsqueeze(2).expand(-1, -1, BLOCK)).flatten(1)  # (R, k BLOCK)
    candidates = torch.cat([inside, x[:, blocks * BLOCK :]], dim=1)
    offsets = torch.arange(BLOCK, device=x.device)
    columns = (chosen.unsqueeze(2) * BLOCK + offsets).flatten(1)
    rest = torch.arange(blocks * BLOCK, x.shape[1], device=x.device).expand(len(x), -1)
    values, places = candidates.topk(k, dim=-1)
    return values, torch.cat([columns, rest], dim=1).gather(1, places)


def _log_sum_exp(x: Float[Tensor, "R V"]) -> Float[Tensor, "R 1"]:
    """As torch's, but by powers of 2, which torch computes faster than those of e."""
    x = x / math.log(2)
    largest = x.amax(-1, keepdim=True)
    return (x.sub_(largest).exp2_().sum(-1, keepdim=True).log2() + largest) * math.log(2)


def _until(ids: list[int], end: int) -> list[int]:
    return ids[: ids.index(end)] if end in ids else ids


def _fitting(model: nn.Module, max_len: int) -> int:
    """At most as many tokens as the model's table has positions."""
    table = getattr(getattr(unwrapped(model), "positional_encoding", None), "encoding", None)
    return min(max_len, len(table)) if isinstance(table, Tensor) else max_len


# Text ---------------------------------------------------------------------------------------------


def translate(
    module: ModuleType,
    model: nn.Module,
    sentences: Sequence[str],
    source_tok: Tokenizer,
    target_tok: Tokenizer,
    *,
    beam_size: int = 5,
    length_penalty: float = 1.0,
    max_tokens: int = 4096,
    device: torch.device | str = "cpu",
    progress: bool = False,
) -> list[str]:
    """Translate sentences, similar lengths together; the order stays.

    Args:
        module: the module of the model.
        model: the Transformer, on `device`.
        sentences: as the source tokeniser was trained on.
        source_tok: their tokeniser.
        target_tok: the tokeniser of what is returned.
        beam_size: 1 is greedy search.
        length_penalty: see `beam`.
        max_tokens: source tokens of a batch, padding included, times beam_size.
        device: where the model is.
        progress: show a bar.

    Raises:
        ValueError: if a sentence has more tokens than the model has positions.
    """
    encoded = [source_tok.encode(sentence) for sentence in sentences]
    for number, ids in enumerate(encoded, start=1):
        if len(ids) > _fitting(model, len(ids)):
            raise ValueError(
                f"sentence {number} has {len(ids)} tokens, more than the model's "
                f"{_fitting(model, len(ids))} positions; shorten or split it"
            )
    said = [""] * len(sentences)
    with tqdm(total=len(sentences), unit="sentence", disable=not progress) as bar:
        for numbers in _batches(encoded, max_tokens // beam_size):
            source, lengths = pad_ids([encoded[number] for number in numbers], source_tok.pad_id)
            limit = 2 * int(lengths.max()) + 20
            ends = target_tok.bos_id, target_tok.eos_id, limit
            ids = (
                greedy(module, model, source.to(device), *ends)
                if beam_size == 1
                else beam(module, model, source.to(device), *ends, beam_size, length_penalty)
            )
            for number, row in zip(numbers, ids, strict=True):
                said[number] = target_tok.decode(row)
            bar.update(len(numbers))
    return said


def _batches(encoded: Sequence[Sequence[int]], max_tokens: int) -> Iterator[list[int]]:
    """Numbers of sentences, longest first, so that lack of memory shows at once."""
    batch: list[int] = []
    for number in sorted(range(len(encoded)), key=lambda number: -len(encoded[number])):
        if batch and len(encoded[batch[0]]) * (len(batch) + 1) > max_tokens:
            yield batch
            batch = []
        batch.append(number)
    if batch:
        yield batch


# Steps --------------------------------------------------------------------------------------------

_ways: "weakref.WeakKeyDictionary[nn.Module, Way]" = weakref.WeakKeyDictionary()


def way(module: ModuleType, model: nn.Module) -> Way:
    """How this model decodes, found out by trying once; a fall-back is warned of once."""
    model = unwrapped(model)
    if model not in _ways:
        _ways[model] = _find_way(module, model)
        if not _ways[model].cached:
            warnings.warn(f"decoding without a cache: {_ways[model].reason}", stacklevel=3)
    return _ways[model]


def _find_way(module: ModuleType, model: nn.Module) -> Way:
    if not hasattr(module, "use_cache"):
        return Way(False, False, "the module has no use_cache")
    for fused in (False, True):  # the module's own first: it must be right before it is replaced
        try:
            difference = _stepwise_difference(module, model, fused=fused)
        except (*FAILURES, NotImplementedError) as error:
            reason = f"use_cache fails ({type(error).__name__}: {error})"
        else:
            reason = (
                f"logits step by step differ by {difference:.1g} from those of the whole target"
            )
            if difference <= AGREE:
                continue
        return Way(fused, False, reason)
    return Way(True, True, "")


@contextmanager
def _decoding(module: ModuleType, model: nn.Module, *, cache: bool) -> Iterator["_Steps"]:
    """The model ready to write, in evaluation mode; afterwards it is as it was."""
    model = unwrapped(model)
    found = way(module, model) if cache else Way(False, False, "")
    with _as_it_was(model), torch.no_grad():
        yield _Steps(module, model, found)


@contextmanager
def _as_it_was(model: nn.Module) -> Iterator[None]:
    """Evaluation mode inside; afterwards all parts are back in their places and modes."""
    parts = [(part, part.training, dict(part._modules)) for part in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for part, training, children in parts:
            part.training = training
            part._modules.update(children)


class _Steps:
    """A model that is asked for the next token again and again, for R rows at once.

    The rows belong to S sources, k of them to each. A cache of the module's own, and a model
    without a cache, have every source k times; the caches in place have it once.
    """

    def __init__(self, module: ModuleType, model: nn.Module, found: Way) -> None:
        self.model = cast(Any, model)
        self.cached, self.fused = found.cached, found.fused
        self.caches: list[Any] = module.use_cache(model) if found.cached else []
        if found.cached and not self.caches:
            raise ValueError("use_cache found no attention of a decoder layer")
        if found.fused:
            for cache in self.caches:
                _keep_in_place(cache)

    def begin(self, source: Int[Tensor, "S M"]) -> None:
        """Read the sources; each has one row, still empty."""
        self.memory, self.mask = self.model.encode(source)
        self.ids = torch.zeros(len(source), 0, dtype=torch.int64, device=source.device)  # (R, n)
        self.width = 1  # k

    def logits(self, last: Int[Tensor, "R 1"]) -> Float[Tensor, "R V"]:
        """Append a token to every row; return the logits of the next ones. Padding gets -inf."""
        offset = self.ids.shape[1]
        self.ids = torch.cat([self.ids, last], dim=1)
        if self.cached:
            logits = self.model.decode(last, self.memory, self.mask, offset)
        else:
            logits = self.model.decode(self.ids, self.memory, self.mask)
        logits = logits[:, -1].float()
        logits[:, self.model.pad_id] = -float("inf")
        return logits

    def branch(self, origins: Int[Tensor, "S*k"], kept: Int[Tensor, "S"]) -> None:
        """Go on with k rows for each source that is kept; its old rows may come in any order.

        Args:
            origins: for every new row, the old row that it continues.
            kept: the sources that go on, among those that were there.
        """
        k, sources = len(origins) // len(kept), len(self.ids) // self.width
        same_sources = (len(kept), k) == (sources, self.width)
        self.ids, self.width = self.ids[origins], k
        of_sources = kept if self.fused else origins
        if not same_sources:
            self.memory, self.mask = self.memory[of_sources], self.mask[of_sources]
        for cache in self.caches:
            if cache.grows or not same_sources:
                rows = origins if cache.grows else of_sources
                if self.fused:
                    cache.select(rows)
                else:
                    cache.kept = tuple(tensor[rows] for tensor in cache.kept)


def _stepwise_difference(module: ModuleType, model: nn.Module, *, fused: bool) -> float:
    """How far logits step by step are from those of the whole target at once, relatively.

    Halfway, two of three sources go on, with two rows each that change places.
    """
    weights = cast(Any, model)
    device = next(model.parameters()).device
    generator = torch.Generator().manual_seed(1)
    classes = len(weights.target_embedding.weight)
    target = torch.randint(classes - 1, (4, 6), generator=generator)
    target += target >= weights.pad_id  # no real token is padding
    source = torch.randint(len(weights.source_embedding.weight) - 1, (3, 5), generator=generator)
    source += source >= weights.pad_id
    source[1, 3:] = weights.pad_id
    kept, origins = torch.tensor([1, 2]), torch.tensor([1, 1, 2, 2])
    swapped = torch.tensor([1, 0, 2, 2])  # the last source goes on with one of its rows twice
    target[:2, :3], target[2:, :3] = target[0, :3], target[2, :3]
    target, source = target.to(device), source.to(device)
    kept, origins, swapped = kept.to(device), origins.to(device), swapped.to(device)
    with _as_it_was(model), torch.no_grad(), torch.autocast(device.type, enabled=False):
        memory, mask = weights.encode(source)
        whole = weights.decode(target, memory[origins], mask[origins]).float()
        steps = _Steps(module, model, Way(True, fused, ""))
        steps.begin(source)
        first = torch.stack([target[0], target[0], target[2]])
        differences = []
        for place in range(6):
            if place < 3:
                logits = steps.logits(first[:, place : place + 1])[origins]
            else:
                logits = steps.logits(target[:, place : place + 1])
            wanted = whole[:, place].clone()
            wanted[:, weights.pad_id] = logits[:, weights.pad_id] = 0.0
            differences.append((logits - wanted).abs().max() / wanted.abs().max())
            if place == 2:
                steps.branch(origins, kept)
            if place == 4:
                steps.branch(swapped, torch.arange(2, device=device))
                whole, target = whole[swapped], target[swapped]
    return torch.stack(differences).max().item()


# The cache in place -------------------------------------------------------------------------------


def _keep_in_place(cache: Any) -> None:
    """Give a CachedAttention, still empty, a faster way to keep its keys and values."""
    widths = [cache.w_q.weight, cache.w_k.weight, cache.w_v.weight]
    if any(part.bias is not None for part in (cache.w_q, cache.w_k, cache.w_v)):
        raise ValueError("the projections have biases")
    cache.__class__ = subclass(_GrowingCache if cache.grows else _FixedCache, type(cache))
    cache.wide = torch.cat(widths if cache.grows else widths[1:])
    cache.length, cache.keys, cache.values = 0, None, None


class _InPlace:
    """What both kinds share: keys and values (R, H, room, d_k), of which `length` are filled."""

    num_heads: int
    w_q: nn.Linear
    w_o: nn.Linear
    wide: Tensor
    length: int
    keys: Tensor
    values: Tensor

    def select(self, rows: Int[Tensor, "R"]) -> None:
        """Go on with these rows."""
        self.keys = self.keys.index_select(0, rows)
        self.values = self.values.index_select(0, rows)

    def _split(
        self, x: Float[Tensor, "B n d"], parts: int
    ) -> tuple[Float[Tensor, "B H n d_k"], ...]:
        return x.unflatten(-1, (parts, self.num_heads, -1)).permute(2, 0, 3, 1, 4).unbind(0)

    def _attend(
        self, q: Float[Tensor, "B H n d_k"], mask: Bool[Tensor, "B 1 1 m"] | None
    ) -> Float[Tensor, "B n d_model"]:
        keys, values = self.keys[:, :, : self.length], self.values[:, :, : self.length]
        scores = q @ keys.transpose(-2, -1) / q.shape[-1] ** 0.5  # (B, H, n, m)
        if mask is not None:
            scores.masked_fill_(~mask, torch.finfo(scores.dtype).min)
        weights = scores.softmax(-1)
        if mask is not None:
            weights.masked_fill_(~mask, 0.0)  # matters only for a row without visible keys
        heads = (weights @ values).transpose(1, 2).flatten(-2)
        return linear(heads, self.w_o.weight, self.w_o.bias)


class _GrowingCache(_InPlace):
    """Self-attention of one new token a row, to all that is kept; no copy while there is room."""

    def forward(
        self,
        query: Float[Tensor, "R 1 d"],
        key: Float[Tensor, "R 1 d"],
        value: Float[Tensor, "R 1 d"],
        mask: Bool[Tensor, "... 1 1"] | None = None,  # not looked at: no token is padding
    ) -> tuple[Float[Tensor, "R 1 d"], None]:
        """Keep the token's key and value, and return its output."""
        q, k, v = self._split(linear(query, self.wide), 3)  # (R, H, 1, d_k) each
        if self.length == 0:
            self.keys, self.values = (F.pad(new, (0, 0, 0, ROOM - 1)) for new in (k, v))
        elif self.length == self.keys.shape[2]:
            self.keys, self.values = (
                F.pad(old, (0, 0, 0, ROOM)) for old in (self.keys, self.values)
            )
        self.keys[:, :, self.length], self.values[:, :, self.length] = k.squeeze(2), v.squeeze(2)
        self.length += 1
        return self._attend(q, None), None


class _FixedCache(_InPlace):
    """Cross-attention; the rows of one source ask together, as if they were its queries."""

    def forward(
        self,
        query: Float[Tensor, "S*k 1 d"],
        key: Float[Tensor, "S m d"],
        value: Float[Tensor, "S m d"],
        mask: Bool[Tensor, "S 1 m"] | None = None,  # True = may attend
    ) -> tuple[Float[Tensor, "S*k 1 d"], None]:
        """Attend to the memory that the first call brought."""
        if self.length == 0:
            new = self._split(linear(key, self.wide), 2)  # (S, H, m, d_k) each
            self.keys, self.values = (tensor.contiguous() for tensor in new)
            self.length = key.shape[1]
        together = query.reshape(len(self.keys), -1, query.shape[-1])  # (S, k, d)
        (q,) = self._split(linear(together, self.w_q.weight), 1)
        heads = self._attend(q, None if mask is None else mask.unsqueeze(1))
        return heads.reshape(query.shape), None

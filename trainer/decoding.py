"""Greedy and beam search for many sentences at once, and the translation of texts by them."""

import math
from collections.abc import Iterator, Sequence
from types import ModuleType

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from tqdm import tqdm

from lab.batching import pad_ids
from lab.text import Tokenizer
from trainer.fused.loss import unwrapped
from trainer.stepping import ready_to_write

LIVE_SHARE = 0.8  # rows move together when fewer than this share of them is unfinished
BLOCK = 64  # classes; the k best lie in the k blocks with the largest maxima

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
    with ready_to_write(module, model, cache=cache) as steps:
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
    with ready_to_write(module, model, cache=True) as steps:
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

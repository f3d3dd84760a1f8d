"""Right answers to exercise 1, written differently from the reference; all must get full marks."""

# pyright: reportUndefinedVariable=false
# Answers use names that other cells of their notebook define.

import math
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from lab.answers import variant


@variant("build-vocabulary")
def plain_dictionary_of_counts(sentences, specials, min_freq=1):
    counts = {}
    for sentence in sentences:
        for word in sentence.split():
            counts[word] = counts.get(word, 0) + 1
    vocabulary = {}
    for token in specials:
        vocabulary[token] = len(vocabulary)
    for word in sorted(sorted(counts), key=counts.__getitem__, reverse=True):
        if counts[word] >= min_freq and word not in vocabulary:
            vocabulary[word] = len(vocabulary)
    return vocabulary


@variant("build-vocabulary")
def sorted_then_most_common(sentences, specials, min_freq=1):
    counts = Counter(sorted(" ".join(sentences).split()))
    words = [word for word, n in counts.most_common() if n >= min_freq]
    tokens = list(specials) + [word for word in words if word not in specials]
    return dict(zip(tokens, range(len(tokens)), strict=True))


@variant("build-vocabulary")
def repeated_minimum(sentences, specials, min_freq=1):
    every = [word for sentence in sentences for word in sentence.split()]
    left = {word for word in every if every.count(word) >= min_freq} - set(specials)
    tokens = list(specials)
    while left:
        best = min(left, key=lambda word: (-every.count(word), word))
        left.remove(best)
        tokens.append(best)
    return {token: tokens.index(token) for token in tokens}


@variant("encode")
def loop_with_membership_test(sentence, vocabulary, max_len=None):
    if max_len is not None and max_len < 2:
        raise ValueError(f"max_len is {max_len}, too small for <bos> and <eos>")
    ids = [vocabulary["<bos>"]]
    for word in sentence.split():
        if max_len is not None and len(ids) == max_len - 1:
            break
        ids.append(vocabulary[word] if word in vocabulary else vocabulary["<unk>"])
    ids.append(vocabulary["<eos>"])
    return ids


@variant("encode")
def cut_then_put_eos_back(sentence, vocabulary, max_len=None):
    if max_len is not None and max_len <= 1:
        raise ValueError("max_len must be 2 or more, got max_len=" + str(max_len))
    tokens = ["<bos>", *sentence.split(), "<eos>"]
    if max_len is not None and len(tokens) > max_len:
        tokens = tokens[:max_len]
        tokens[-1] = "<eos>"
    return [vocabulary.get(token, vocabulary["<unk>"]) for token in tokens]


@variant("encode")
def exception_for_unknown_words(sentence, vocabulary, max_len=None):
    limit = math.inf if max_len is None else max_len
    if limit < 2:
        raise ValueError(f"max_len ({max_len}) must be >= 2")

    def look_up(word):
        try:
            return vocabulary[word]
        except KeyError:
            return vocabulary["<unk>"]

    ids = list(map(look_up, sentence.split()))
    while len(ids) + 2 > limit:
        ids.pop()
    return [vocabulary["<bos>"]] + ids + [vocabulary["<eos>"]]  # noqa: RUF005  (a plain sum)


@variant("pad-batch")
def lists_then_tensors(sequences, pad_id, max_len=None):
    N = max(map(len, sequences)) if max_len is None else max_len
    rows = [list(s[:N]) + [pad_id] * (N - len(s)) for s in sequences]
    return torch.tensor(rows), torch.tensor([len(s[:N]) for s in sequences])


@variant("pad-batch")
def entry_by_entry(sequences, pad_id, max_len=None):
    longest = 0
    for sequence in sequences:
        longest = max(longest, len(sequence))
    N = longest if max_len is None else max_len
    ids = torch.empty(len(sequences), N, dtype=torch.long)
    lengths = torch.zeros(len(sequences), dtype=torch.long)
    for b in range(len(sequences)):
        for n in range(N):
            real = n < len(sequences[b])
            ids[b, n] = sequences[b][n] if real else pad_id
            lengths[b] += real
    return ids, lengths


@variant("pad-batch")
def torchs_own_padding(sequences, pad_id, max_len=None):
    cut = [torch.tensor(s[:max_len], dtype=torch.int64) for s in sequences]
    lengths = torch.tensor([len(row) for row in cut])
    ids = nn.utils.rnn.pad_sequence(cut, batch_first=True, padding_value=pad_id)
    if max_len is not None:
        ids = nn.functional.pad(ids, (0, max_len - ids.shape[1]), value=pad_id)
    return ids, lengths


@variant("valid-mask")
def broadcast_by_unsqueeze(lengths, N):
    return lengths.unsqueeze(1).gt(torch.arange(N, device=lengths.device))


@variant("valid-mask")
def row_by_row(lengths, N):
    mask = torch.zeros(len(lengths), N, dtype=torch.bool)
    for row, length in zip(mask, lengths, strict=True):
        row[:length] = True
    return mask


@variant("valid-mask")
def list_of_comparisons(lengths, N):
    return torch.tensor([[n < length for n in range(N)] for length in lengths.tolist()])


@variant("valid-mask")
def counting_down(lengths, N):
    left = lengths[:, None] - torch.ones(len(lengths), N, dtype=lengths.dtype).cumsum(1)
    return ~(left < 0)


@variant("token-embedding", target="TokenEmbedding")
class InitialisedInPlace(nn.Module):
    def __init__(self, vocab_size: int, d_model: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocab_size, d_model))
        nn.init.normal_(self.weight, std=d_model**-0.5)

    def forward(self, ids: Tensor) -> Tensor:
        return nn.functional.embedding(ids, self.weight) * self.weight.shape[1] ** 0.5


@variant("token-embedding", target="TokenEmbedding")
class OneHotProduct(nn.Module):
    def __init__(self, vocab_size: int, d_model: int) -> None:
        super().__init__()
        std = 1 / math.sqrt(d_model)
        self.scale = math.sqrt(d_model)
        self.weight = nn.Parameter(torch.normal(0.0, std, size=(vocab_size, d_model)))

    def forward(self, ids: Tensor) -> Tensor:
        one_hot = nn.functional.one_hot(ids, len(self.weight)).to(self.weight.dtype)
        return torch.einsum("bnv,vd->bnd", one_hot, self.weight * self.scale)


@variant("token-embedding", target="TokenEmbedding")
class SharedWithAPart(nn.Module):
    def __init__(self, vocab_size: int, d_model: int) -> None:
        super().__init__()
        self.table = nn.ParameterList([torch.randn(vocab_size, d_model)])
        with torch.no_grad():
            self.table[0].mul_(d_model**-0.5)
        self.weight = self.table[0]
        self.root = d_model**0.5

    def forward(self, ids: Tensor) -> Tensor:
        return self.root * self.table[0].index_select(0, ids.flatten()).unflatten(0, ids.shape)


@variant("token-embedding", target="TokenEmbedding.forward")
def one_id_at_a_time(self, ids):
    rows = [torch.stack([self.weight[int(i)] for i in row]) for row in ids]
    return torch.stack(rows) * torch.tensor(self.d_model, dtype=torch.float64).sqrt()


@variant("token-embedding", target="TokenEmbedding.forward")
def index_select_then_view(self, ids):
    chosen = self.weight.index_select(0, ids.reshape(-1))
    return (chosen * math.sqrt(self.d_model)).view(*ids.shape, -1)


@variant("decode")
def cut_at_eos_first(ids, vocabulary):
    ids = list(ids)
    if vocabulary["<eos>"] in ids:
        ids = ids[: ids.index(vocabulary["<eos>"])]
    silent = {vocabulary["<bos>"], vocabulary["<pad>"]}
    token_of = dict(zip(vocabulary.values(), vocabulary.keys(), strict=True))
    return " ".join(token_of[i] for i in ids if i not in silent)


@variant("decode")
def search_for_each_id(ids, vocabulary):
    text = ""
    for i in ids:
        token = next(token for token, number in vocabulary.items() if number == i)
        if token == "<eos>":
            return text.strip()
        if token != "<bos>" and token != "<pad>":
            text += " " + token
    return text.strip()


@variant("decode")
def table_as_a_list(ids: Sequence[int], vocabulary: dict[str, int]) -> str:
    tokens = sorted(vocabulary, key=vocabulary.__getitem__)
    words = iter([tokens[i] for i in ids] + ["<eos>"])
    return " ".join(w for w in iter(lambda: next(words), "<eos>") if w not in ("<bos>", "<pad>"))


@variant("merges", target="join")
def looks_back_at_letters(pieces, pair):
    joined, fresh = [], False
    for piece in pieces:
        if joined and not fresh and (joined[-1], piece) == tuple(pair):
            joined[-1] += piece
            fresh = True
        else:
            joined.append(piece)
            fresh = False
    return joined


@variant("merges", target="join")
def by_a_recursion(pieces, pair):
    if len(pieces) < 2:
        return list(pieces)
    if (pieces[0], pieces[1]) == tuple(pair):
        return [pieces[0] + pieces[1], *by_a_recursion(pieces[2:], pair)]
    return [pieces[0], *by_a_recursion(pieces[1:], pair)]


@variant("merges", target="learn_merges")
def sorted_pairs_of_tuples_of_pieces(counts, n):
    words = [(list(word), times) for word, times in counts.items()]
    merges = []
    while len(merges) < n:
        places = {}
        for pieces, times in words:
            for i in range(len(pieces) - 1):
                pair = pieces[i], pieces[i + 1]
                places[pair] = places.get(pair, 0) + times
        if not places:
            return merges
        most = max(places.values())
        best = sorted(pair for pair in places if places[pair] == most)[0]
        merges.append(best)
        words = [(join(pieces, best), times) for pieces, times in words]
    return merges


@variant("merges", target="split_word")
def earliest_merge_that_is_there(word, merges):
    rank = {tuple(pair): i for i, pair in enumerate(merges)}
    pieces = list(word)
    while True:
        pairs = [pair for pair in pairwise(pieces) if pair in rank]
        if not pairs:
            return pieces
        pieces = join(pieces, min(pairs, key=lambda pair: rank[pair]))


@variant("predicted-neighbour")
def beside_it():
    return "a word that often stands beside it, such as 'the'"


@variant("predicted-neighbour")
def by_its_letters():
    return NEIGHBOURS[2]


@variant("predicted-neighbour")
def as_drawn():
    return NEIGHBOURS[-1]


@variant("likeliest")
def forwards_from_each_start(word, log_p):
    end = len(word)
    best = [-math.inf] * (end + 1)
    best[0] = 0.0
    back: list[Any] = [None] * (end + 1)
    terms = [[] for _ in range(end + 1)]
    terms[0] = [0.0]
    total = [-math.inf] * (end + 1)
    for i in range(end + 1):
        if terms[i]:
            total[i] = torch.tensor(terms[i], dtype=torch.float64).logsumexp(0).item()
            for piece, score in log_p.items():
                j = i + len(piece)
                if word.startswith(piece, i):
                    terms[j].append(total[i] + score)
                    if best[i] + score > best[j]:
                        best[j], back[j] = best[i] + score, piece
    if not terms[end]:
        return None, -math.inf
    pieces = []
    while end:
        pieces.append(back[end])
        end -= len(back[end])
    return pieces[::-1], total[-1]


@variant("likeliest")
def from_the_end_backwards(word, log_p):
    longest = max(map(len, log_p), default=1)
    best: dict[int, Any] = {len(word): (0.0, None)}
    total = {len(word): 0.0}
    for i in reversed(range(len(word))):
        for j in range(i + 1, min(len(word), i + longest) + 1):
            score = log_p.get(word[i:j])
            if score is None or j not in best:
                continue
            term, old = score + total[j], total.get(i, -math.inf)
            top = max(term, old)
            total[i] = top + math.log(math.exp(term - top) + math.exp(old - top))
            if i not in best or score + best[j][0] > best[i][0]:
                best[i] = score + best[j][0], j
    if 0 not in best:
        return None, -math.inf
    pieces, i = [], 0
    while i < len(word):
        pieces.append(word[i : best[i][1]])
        i = best[i][1]
    return pieces, total[0]


@variant("likeliest")
def in_numpy_by_logaddexp(word, log_p):
    import numpy as np

    best, total = (np.full(len(word) + 1, -np.inf) for _ in range(2))
    best[0] = total[0] = 0.0
    start = np.zeros(len(word) + 1, dtype=int)
    longest = max(map(len, log_p), default=0)
    for end in range(1, len(word) + 1):
        for begin in range(max(0, end - longest), end):
            score = log_p.get(word[begin:end], -np.inf)
            total[end] = np.logaddexp(total[end], total[begin] + score)
            if best[begin] + score > best[end]:
                best[end], start[end] = best[begin] + score, begin

    def backwards(end):
        while end:
            yield word[start[end] : end]
            end = start[end]

    pieces = None if np.isneginf(best[-1]) else [*backwards(len(word))][::-1]
    return pieces, total[-1]


@variant("likeliest")
def by_log1p(word, log_p):
    table: list[Any] = [([], 0.0, 0.0)]
    for end in range(1, len(word) + 1):
        found, best, total = None, -math.inf, -math.inf
        for piece, score in log_p.items():
            if not word.endswith(piece, 0, end):
                continue
            before, points, mass = table[end - len(piece)]
            if before is None:
                continue
            if points + score > best:
                found, best = (before, piece), points + score
            high, low = max(total, mass + score), min(total, mass + score)
            total = high + math.log1p(math.exp(low - high))
        table.append((found, best, total))
    pieces, cell = [], table[-1][0]
    if cell is None:
        return None, -math.inf
    while cell:
        cell, piece = cell
        pieces.append(piece)
    return pieces[::-1], table[-1][2]

"""Right answers to exercise 1, written differently from the reference; all must get full marks."""

import math
from collections import Counter
from collections.abc import Sequence

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


@variant("merges", target="learn_merges")
def on_counted_words(words, count):
    table = Counter(words)
    pieces = {word: tuple(word) for word in table}
    merges = []
    for _ in range(count):
        pairs = Counter()
        for word, times in table.items():
            for pair in zip(pieces[word], pieces[word][1:], strict=False):
                pairs[pair] += times
        if not pairs:
            return merges
        most = max(pairs.values())
        best = sorted(pair for pair in pairs if pairs[pair] == most)[0]
        merges.append(best)
        for word, parts in pieces.items():
            pieces[word] = tuple(split(word, [*merges])) if len(parts) > 1 else parts
    return merges


@variant("merges", target="learn_merges")
def by_index(words, count):
    texts, merges = [list(word) for word in words], []
    while len(merges) < count:
        pairs = {}
        for text in texts:
            for i in range(len(text) - 1):
                pairs[text[i], text[i + 1]] = pairs.get((text[i], text[i + 1]), 0) + 1
        if len(pairs) == 0:
            break
        (first, second), _ = sorted(pairs.items(), key=lambda item: (-item[1], item[0]))[0]
        merges += [(first, second)]
        for text in texts:
            i = 0
            while i < len(text) - 1:
                if text[i] == first and text[i + 1] == second:
                    text[i : i + 2] = [first + second]
                i += 1
    return merges


@variant("merges", target="split")
def in_place(word, merges):
    pieces = list(word)
    for first, second in merges:
        i = 0
        while i + 1 < len(pieces):
            if pieces[i] == first and pieces[i + 1] == second:
                pieces[i] = first + second
                del pieces[i + 1]
            i += 1
    return pieces


@variant("predicted-neighbour")
def the_one_beside():
    return "one that often stands right beside it"


@variant("predicted-neighbour")
def by_letters():
    return "one that is spelled like it"


@variant("predicted-neighbour")
def no_order():
    return "any: there is no order in it"


@variant("unseen-share")
def one_left_out(tokens):
    tokens = list(tokens)
    return sum(tokens[i] not in tokens[:i] + tokens[i + 1 :] for i in range(len(tokens))) / len(
        tokens
    )


@variant("unseen-share")
def by_counting(tokens):
    return len([token for token in tokens if list(tokens).count(token) == 1]) / len(tokens)


@variant("unseen-share")
def in_two_sets(tokens):
    once, more = set(), set()
    for token in tokens:
        (more if token in once or token in more else once).add(token)
    return len(once - more) / len(tokens)

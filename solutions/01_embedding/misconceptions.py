"""Wrong answers to exercise 1, tokens and embedding, that people really give, as data.

Each docstring is the message the student gets; each mark says which tests must fail.
"""

# pyright: reportUndefinedVariable=false
# Answers use names that other cells of their notebook define.

import math
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from lab.answers import misconception


@misconception(
    "build-vocabulary",
    id="TOK16",
    fails=["build-vocabulary-order"],
    read="01_embedding#building-the-vocabulary",
)
def ties_in_order_of_appearance(sentences, specials, min_freq=1):
    """Words that occur equally often stand in the order in which they first appear; sort them by
    spelling, so that the order of the sentences makes no difference."""
    counts = Counter(word for sentence in sentences for word in sentence.split())
    words = [w for w, n in counts.most_common() if n >= min_freq and w not in specials]
    return {token: i for i, token in enumerate([*specials, *words])}


@misconception(
    "build-vocabulary",
    id="TOK17",
    fails=["build-vocabulary-order"],
    read="01_embedding#special-tokens",
)
def specials_at_the_end(sentences, specials, min_freq=1):
    """Your special tokens come after the words; they should come first, so that their ids do not
    depend on the sentences."""
    counts = Counter(word for sentence in sentences for word in sentence.split())
    words = [word for word, n in counts.items() if n >= min_freq and word not in specials]
    words.sort(key=lambda word: (-counts[word], word))
    return {token: i for i, token in enumerate([*words, *specials])}


@misconception(
    "build-vocabulary",
    id="TOK18",
    fails=["build-vocabulary-order", "build-vocabulary-min-freq"],
    read="01_embedding#building-the-vocabulary",
)
def more_often_than_min_freq(sentences, specials, min_freq=1):
    """You drop words that occur exactly min_freq times; only words that occur fewer times should
    go."""
    counts = Counter(word for sentence in sentences for word in sentence.split())
    words = [word for word, n in counts.items() if n > min_freq and word not in specials]
    words.sort(key=lambda word: (-counts[word], word))
    return {token: i for i, token in enumerate([*specials, *words])}


@misconception(
    "build-vocabulary",
    id="TOK19",
    fails=["build-vocabulary-order"],
    read="01_embedding#building-the-vocabulary",
)
def rarest_word_first(sentences, specials, min_freq=1):
    """Your rarest words come first; the most frequent should."""
    counts = Counter(word for sentence in sentences for word in sentence.split())
    words = [word for word, n in counts.items() if n >= min_freq and word not in specials]
    words.sort(key=lambda word: (counts[word], word))
    return {token: i for i, token in enumerate([*specials, *words])}


@misconception(
    "build-vocabulary",
    id="TOK20",
    fails=["build-vocabulary-order", "build-vocabulary-min-freq"],
    read="01_embedding#special-tokens",
)
def specials_are_counted_too(sentences, specials, min_freq=1):
    """You count special tokens like words, so a rare one is left out and one that occurs in a
    sentence loses its place; they always stay in front, each once."""
    counts = Counter(specials)
    counts.update(word for sentence in sentences for word in sentence.split())
    words = [word for word, n in counts.items() if n >= min_freq]
    words.sort(key=lambda word: (word not in specials, -counts[word], word))
    return {token: i for i, token in enumerate(words)}


@misconception(
    "build-vocabulary",
    id="TOK21",
    fails=["build-vocabulary-order"],
    read="01_embedding#special-tokens",
)
def special_in_a_sentence_gets_a_second_id(sentences, specials, min_freq=1):
    """A special token that occurs in a sentence is numbered again as a word; it should keep its
    first id, and no id may be skipped."""
    counts = Counter(word for sentence in sentences for word in sentence.split())
    words = [word for word, n in counts.items() if n >= min_freq]
    words.sort(key=lambda word: (-counts[word], word))
    return {token: i for i, token in enumerate([*specials, *words])}


@misconception(
    "build-vocabulary",
    id="TOK39",
    fails=["build-vocabulary-order"],
    read="01_embedding#building-the-vocabulary",
)
def words_in_lower_case(sentences, specials, min_freq=1):
    """You turn the words into lower case; here a word is what stands between blanks, as it is
    written."""
    counts = Counter(word for sentence in sentences for word in sentence.lower().split())
    words = [word for word, n in counts.items() if n >= min_freq and word not in specials]
    words.sort(key=lambda word: (-counts[word], word))
    return {token: i for i, token in enumerate([*specials, *words])}


@misconception(
    "build-vocabulary",
    id="TOK48",
    fails=["build-vocabulary-order"],
    read="01_embedding#building-the-vocabulary",
)
def split_at_every_blank(sentences, specials, min_freq=1):
    """Two blanks in a row make an empty word in your vocabulary; split() takes any number of them
    as one."""
    counts = Counter(word for sentence in sentences for word in sentence.split(" "))
    words = [word for word, n in counts.items() if n >= min_freq and word not in specials]
    words.sort(key=lambda word: (-counts[word], word))
    return {token: i for i, token in enumerate([*specials, *words])}


@misconception(
    "build-vocabulary",
    id="TOK52",
    fails=["build-vocabulary-order"],
    read="01_embedding#building-the-vocabulary",
)
def punctuation_taken_off(sentences, specials, min_freq=1):
    """You take punctuation off the words; here a word is what stands between blanks, as it is
    written."""
    counts = Counter(word.strip(".,;:!?") for s in sentences for word in s.split())
    words = [word for word, n in counts.items() if n >= min_freq and word not in specials]
    words.sort(key=lambda word: (-counts[word], word))
    return {token: i for i, token in enumerate([*specials, *words])}


@misconception(
    "build-vocabulary",
    id="TOK53",
    fails=["build-vocabulary-order"],
    read="01_embedding#special-tokens",
)
def every_word_in_angle_brackets_is_special(sentences, specials, min_freq=1):
    """You leave out every word in angle brackets; only the special tokens that are handed in are
    special, and another word may look like them."""
    counts = Counter(word for sentence in sentences for word in sentence.split())
    words = [word for word, n in counts.items() if n >= min_freq and not word.startswith("<")]
    words.sort(key=lambda word: (-counts[word], word))
    return {token: i for i, token in enumerate([*specials, *words])}


@misconception(
    "encode", id="TOK8", fails=["encode-words"], read="01_embedding#building-the-vocabulary"
)
def unknown_word_raises(sentence, vocabulary, max_len=None):
    """A word that is not in the vocabulary raises a KeyError; it should get the id of <unk>."""
    if max_len is not None and max_len < 2:
        raise ValueError(f"max_len ({max_len}) must be at least 2")
    words = sentence.split()
    if max_len is not None:
        words = words[: max_len - 2]
    return [vocabulary["<bos>"], *[vocabulary[word] for word in words], vocabulary["<eos>"]]


@misconception("encode", id="TOK8b", fails=["encode-words"], read="01_embedding#special-tokens")
def unknown_word_becomes_padding(sentence, vocabulary, max_len=None):
    """A word that is not in the vocabulary gets the id of <pad>, so the model will not even see
    that a word stood there; give it the id of <unk>."""
    if max_len is not None and max_len < 2:
        raise ValueError(f"max_len ({max_len}) must be at least 2")
    words = sentence.split()
    if max_len is not None:
        words = words[: max_len - 2]
    ids = [vocabulary.get(word, vocabulary["<pad>"]) for word in words]
    return [vocabulary["<bos>"], *ids, vocabulary["<eos>"]]


@misconception("encode", id="TOK8c", fails=["encode-words"], read="01_embedding#special-tokens")
def unknown_word_is_dropped(sentence, vocabulary, max_len=None):
    """A word that is not in the vocabulary disappears from the sentence; it should leave an <unk>
    in its place."""
    if max_len is not None and max_len < 2:
        raise ValueError(f"max_len ({max_len}) must be at least 2")
    words = sentence.split()
    if max_len is not None:
        words = words[: max_len - 2]
    ids = [vocabulary[word] for word in words if word in vocabulary]
    return [vocabulary["<bos>"], *ids, vocabulary["<eos>"]]


@misconception(
    "encode",
    id="TOK9",
    fails=["encode-words", "encode-truncation"],
    read="01_embedding#special-tokens",
)
def without_bos_and_eos(sentence, vocabulary, max_len=None):
    """Your ids are those of the words alone; <bos> belongs before them and <eos> after them."""
    if max_len is not None and max_len < 2:
        raise ValueError(f"max_len ({max_len}) must be at least 2")
    ids = [vocabulary.get(word, vocabulary["<unk>"]) for word in sentence.split()]
    return ids if max_len is None else ids[:max_len]


@misconception(
    "encode", id="TOK9b", fails=["encode-truncation"], read="01_embedding#padding-and-truncation"
)
def truncation_cuts_off_eos(sentence, vocabulary, max_len=None):
    """A sentence that is too long loses its <eos>: you cut after adding it. Drop words instead, so
    that the last id is always <eos>."""
    if max_len is not None and max_len < 2:
        raise ValueError(f"max_len ({max_len}) must be at least 2")
    ids = [vocabulary.get(word, vocabulary["<unk>"]) for word in sentence.split()]
    ids = [vocabulary["<bos>"], *ids, vocabulary["<eos>"]]
    return ids if max_len is None else ids[:max_len]


@misconception(
    "encode", id="TOK9c", fails=["encode-truncation"], read="01_embedding#padding-and-truncation"
)
def max_len_counts_the_words_only(sentence, vocabulary, max_len=None):
    """You keep max_len words and then add <bos> and <eos>, two ids too many; the limit is for the
    whole list."""
    if max_len is not None and max_len < 2:
        raise ValueError(f"max_len ({max_len}) must be at least 2")
    words = sentence.split()[:max_len]
    ids = [vocabulary.get(word, vocabulary["<unk>"]) for word in words]
    return [vocabulary["<bos>"], *ids, vocabulary["<eos>"]]


@misconception(
    "encode", id="TOK40", fails=["encode-truncation"], read="01_embedding#padding-and-truncation"
)
def no_limit_for_max_len_0(sentence, vocabulary, max_len=None):
    """You ask `if max_len`, which takes 0 for no limit at all; ask `is not None`."""
    if max_len and max_len < 2:
        raise ValueError(f"max_len ({max_len}) must be at least 2")
    words = sentence.split()
    if max_len:
        words = words[: max_len - 2]
    ids = [vocabulary.get(word, vocabulary["<unk>"]) for word in words]
    return [vocabulary["<bos>"], *ids, vocabulary["<eos>"]]


@misconception(
    "encode", id="TOK54", fails=["encode-words"], read="01_embedding#building-the-vocabulary"
)
def encodes_an_empty_word(sentence, vocabulary, max_len=None):
    """Two blanks in a row make an empty word, which becomes <unk>; split() takes any number of them
    as one."""
    if max_len is not None and max_len < 2:
        raise ValueError(f"max_len ({max_len}) must be at least 2")
    words = sentence.split(" ") if sentence else []
    if max_len is not None:
        words = words[: max_len - 2]
    ids = [vocabulary.get(word, vocabulary["<unk>"]) for word in words]
    return [vocabulary["<bos>"], *ids, vocabulary["<eos>"]]


@misconception(
    "encode", id="TOK55", fails=["encode-words"], read="01_embedding#building-the-vocabulary"
)
def looks_up_without_punctuation(sentence, vocabulary, max_len=None):
    """You take punctuation off before you look a word up; here a word is what stands between
    blanks, as it is written."""
    if max_len is not None and max_len < 2:
        raise ValueError(f"max_len ({max_len}) must be at least 2")
    words = [word.strip(".,;:!?") for word in sentence.split()]
    if max_len is not None:
        words = words[: max_len - 2]
    ids = [vocabulary.get(word, vocabulary["<unk>"]) for word in words]
    return [vocabulary["<bos>"], *ids, vocabulary["<eos>"]]


@misconception(
    "pad-batch", id="TOK10", fails=["pad-batch-ids"], read="01_embedding#padding-and-truncation"
)
def pads_with_zero(sequences, pad_id, max_len=None):
    """You pad with 0; the id of the padding token is pad_id, and 0 may be a word."""
    N = max(len(sequence) for sequence in sequences) if max_len is None else max_len
    rows = [list(s[:N]) + [0] * (N - len(s)) for s in sequences]
    return torch.tensor(rows), torch.tensor([min(len(s), N) for s in sequences])


@misconception(
    "pad-batch", id="TOK10b", fails=["pad-batch-ids"], read="01_embedding#padding-and-truncation"
)
def pads_in_front(sequences, pad_id, max_len=None):
    """Your padding stands in front of the real ids; in this course it stands after them, so that
    positions 0 to length - 1 are real."""
    N = max(len(sequence) for sequence in sequences) if max_len is None else max_len
    rows = [[pad_id] * (N - len(s)) + list(s[:N]) for s in sequences]
    return torch.tensor(rows), torch.tensor([min(len(s), N) for s in sequences])


@misconception(
    "pad-batch", id="TOK22", fails=["pad-batch-lengths"], read="01_embedding#valid-lengths"
)
def lengths_before_the_cut(sequences, pad_id, max_len=None):
    """You return the lengths from before the cut, some larger than N; a valid length is
    min(length,     N)."""
    N = max(len(sequence) for sequence in sequences) if max_len is None else max_len
    rows = [list(s[:N]) + [pad_id] * (N - len(s)) for s in sequences]
    return torch.tensor(rows), torch.tensor([len(s) for s in sequences])


@misconception(
    "pad-batch", id="TOK23", fails=["pad-batch-lengths"], read="01_embedding#valid-lengths"
)
def lengths_with_padding(sequences, pad_id, max_len=None):
    """All your lengths equal N: they were taken after padding. A valid length counts the real ids
    only."""
    N = max(len(sequence) for sequence in sequences) if max_len is None else max_len
    rows = [list(s[:N]) + [pad_id] * (N - len(s)) for s in sequences]
    return torch.tensor(rows), torch.tensor([len(row) for row in rows])


@misconception(
    "pad-batch", id="TOK41", fails=["pad-batch-lengths"], read="01_embedding#valid-lengths"
)
def lengths_count_what_is_no_padding(sequences, pad_id, max_len=None):
    """You count the entries that differ from pad_id; take the lengths from the sequences, which
    know them whatever their ids are."""
    N = max(len(sequence) for sequence in sequences) if max_len is None else max_len
    rows = [list(s[:N]) + [pad_id] * (N - len(s)) for s in sequences]
    ids = torch.tensor(rows)
    return ids, (ids != pad_id).sum(1)


@misconception(
    "pad-batch", id="TOK24", fails=["pad-batch-ids"], read="01_embedding#padding-and-truncation"
)
def keeps_the_last_ids(sequences, pad_id, max_len=None):
    """A sequence that is too long loses its beginning; its first N ids should stay."""
    N = max(len(sequence) for sequence in sequences) if max_len is None else max_len
    rows = [list(s[max(len(s) - N, 0) :]) + [pad_id] * (N - len(s)) for s in sequences]
    return torch.tensor(rows), torch.tensor([min(len(s), N) for s in sequences])


@misconception(
    "pad-batch", id="TOK25", fails=["pad-batch-ids"], read="01_embedding#padding-and-truncation"
)
def pads_the_callers_lists(sequences, pad_id, max_len=None):
    """You append the padding to the caller's own lists, which are longer afterwards; build new
    lists."""
    N = max(len(sequence) for sequence in sequences) if max_len is None else max_len
    lengths = torch.tensor([min(len(s), N) for s in sequences])
    for sequence in sequences:
        sequence += [pad_id] * (N - len(sequence))
    return torch.tensor([sequence[:N] for sequence in sequences]), lengths


@misconception(
    "pad-batch", id="TOK26", fails=["pad-batch-ids"], read="01_embedding#padding-and-truncation"
)
def ids_are_floats(sequences, pad_id, max_len=None):
    """Your ids are floating-point numbers; an id is the number of a row, an integer."""
    N = max(len(sequence) for sequence in sequences) if max_len is None else max_len
    ids = torch.ones(len(sequences), N) * pad_id
    for row, sequence in zip(ids, sequences, strict=True):
        row[: len(sequence)] = torch.tensor(sequence[:N])
    return ids, torch.tensor([min(len(s), N) for s in sequences])


@misconception(
    "pad-batch", id="TOK27", fails=["pad-batch-ids"], read="01_embedding#padding-and-truncation"
)
def max_len_is_only_an_upper_limit(sequences, pad_id, max_len=None):
    """With max_len above every length your batch is as wide as its longest sequence; N should be
    max_len exactly."""
    N = max(len(sequence) for sequence in sequences)
    N = N if max_len is None else min(N, max_len)
    rows = [list(s[:N]) + [pad_id] * (N - len(s)) for s in sequences]
    return torch.tensor(rows), torch.tensor([min(len(s), N) for s in sequences])


@misconception(
    "pad-batch",
    id="TOK49",
    fails=["pad-batch-ids", "pad-batch-lengths"],
    read="01_embedding#padding-and-truncation",
)
def longest_length_for_max_len_0(sequences, pad_id, max_len=None):
    """You ask `if not max_len` or `max_len or ...`, which takes 0 for no max_len at all; ask
    `is None`."""
    N = max_len or max(len(sequence) for sequence in sequences)
    rows = [list(s[:N]) + [pad_id] * (N - len(s)) for s in sequences]
    return torch.tensor(rows), torch.tensor([min(len(s), N) for s in sequences])


@misconception(
    "valid-mask", id="TOK28", fails=["valid-mask-values"], read="01_embedding#valid-lengths"
)
def true_means_padding(lengths, N):
    """Your mask is the wrong way round: True marks the padding; it should mark the real tokens."""
    return torch.arange(N)[None, :] >= lengths[:, None]


@misconception(
    "valid-mask", id="TOK29", fails=["valid-mask-values"], read="01_embedding#valid-lengths"
)
def one_position_too_many(lengths, N):
    """Each row has one True too many: positions start at 0, so the real ones are those below the
    length."""
    return torch.arange(N)[None, :] <= lengths[:, None]


@misconception(
    "valid-mask", id="TOK30", fails=["valid-mask-values"], read="01_embedding#valid-lengths"
)
def mask_of_numbers(lengths, N):
    """Your mask holds numbers; it should hold booleans (torch.bool)."""
    return (torch.arange(N)[None, :] < lengths[:, None]).float()


@misconception(
    "valid-mask", id="TOK31", fails=["valid-mask-values"], read="01_embedding#valid-lengths"
)
def positions_in_rows(lengths, N):
    """Your mask is (positions, sequences); each row should belong to one sequence."""
    return torch.arange(N)[:, None] < lengths[None, :]


@misconception(
    "token-embedding",
    id="TOK1",
    target="TokenEmbedding.forward",
    fails=["token-embedding-values"],
    read="01_embedding#embedding-scale",
)
def without_the_scale(self, ids):
    """Your vectors are rows of weight as they are; multiply them by sqrt(d_model)."""
    return self.weight[ids]


@misconception(
    "token-embedding",
    id="TOK2",
    target="TokenEmbedding.forward",
    fails=["token-embedding-values"],
    read="01_embedding#embedding-scale",
)
def divided_by_the_scale(self, ids):
    """You divide by sqrt(d_model); the rows start small and are to be multiplied by it."""
    return self.weight[ids] / math.sqrt(self.d_model)


@misconception(
    "token-embedding",
    id="TOK3",
    target="TokenEmbedding.forward",
    fails=["token-embedding-values"],
    read="01_embedding#embedding-scale",
)
def times_d_model(self, ids):
    """You multiply by d_model; the scale is its square root."""
    return self.weight[ids] * self.d_model


@misconception(
    "token-embedding",
    id="TOK3b",
    target="TokenEmbedding.forward",
    fails=["token-embedding-values"],
    read="01_embedding#embedding-scale",
)
def times_root_of_vocab_size(self, ids):
    """Your scale is the square root of vocab_size; it depends on d_model, the length of one row,
    alone."""
    return self.weight[ids] * math.sqrt(self.weight.shape[0])


@misconception(
    "token-embedding",
    id="TOK32",
    target="TokenEmbedding",
    fails=["token-embedding-parameters", "token-embedding-values"],
    read="01_embedding#embedding-scale",
)
class ScaleInTheStart(nn.Module):
    """Your weight starts with standard deviation 1 and nothing is multiplied later; weight should
    start small, and the scale belongs to forward."""

    def __init__(self, vocab_size: int, d_model: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(vocab_size, d_model))

    def forward(self, ids: Tensor) -> Tensor:
        return self.weight[ids]


@misconception(
    "token-embedding",
    id="TOK42",
    target="TokenEmbedding.__init__",
    fails=["token-embedding-parameters"],
    read="01_embedding#embedding-scale",
)
def uniform_start(self, vocab_size, d_model):
    """Your weight starts with uniform draws; they should be normal ones, of which a few lie far
    out."""
    super(type(self), self).__init__()
    self.d_model = d_model
    bound = math.sqrt(3 / d_model)
    self.weight = nn.Parameter(torch.empty(vocab_size, d_model).uniform_(-bound, bound))


@misconception(
    "token-embedding",
    id="TOK15",
    target="TokenEmbedding",
    fails=[
        "token-embedding-parameters",
        "token-embedding-values",
        "token-embedding-gradients",
    ],
    read="01_embedding#look-up-table",
)
class TableOnItsSide(nn.Module):
    """Your weight is (d_model, vocab_size); it should have one row for each id, (vocab_size,
    d_model)."""

    def __init__(self, vocab_size: int, d_model: int) -> None:
        super().__init__()
        self.d_model = d_model
        self.weight = nn.Parameter(torch.randn(d_model, vocab_size) / math.sqrt(d_model))

    def forward(self, ids: Tensor) -> Tensor:
        return self.weight.T[ids] * math.sqrt(self.d_model)


@misconception(
    "token-embedding",
    id="TOK33",
    target="TokenEmbedding",
    fails=[
        "token-embedding-parameters",
        "token-embedding-values",
        "token-embedding-gradients",
    ],
    read="01_embedding#learned-rows",
)
class PlainTensor(nn.Module):
    """Your weight is a plain tensor, so no optimiser will find it and it never learns; make it an
    nn.Parameter."""

    def __init__(self, vocab_size: int, d_model: int) -> None:
        super().__init__()
        self.d_model = d_model
        self.weight = torch.randn(vocab_size, d_model) / math.sqrt(d_model)

    def forward(self, ids: Tensor) -> Tensor:
        return self.weight[ids] * math.sqrt(self.d_model)


@misconception(
    "token-embedding",
    id="TOK34",
    target="TokenEmbedding.forward",
    fails=["token-embedding-gradients"],
    read="01_embedding#learned-rows",
)
def look_up_without_gradient(self, ids):
    """Your look-up goes through .data (or .detach()), so no gradient comes back and the table
    never     learns; index weight itself."""
    return self.weight.data[ids] * math.sqrt(self.d_model)


@misconception(
    "token-embedding",
    id="TOK35",
    target="TokenEmbedding.forward",
    fails=["token-embedding-gradients"],
    read="01_embedding#learned-rows",
)
def row_zero_never_learns(self, ids):
    """Row 0 gets no gradient, as if id 0 were padding (padding_idx=0); which id is padding is not
    known here, and every row that is looked up should learn."""
    return nn.functional.embedding(ids, self.weight, padding_idx=0) * math.sqrt(self.d_model)


@misconception(
    "token-embedding",
    id="TOK50",
    target="TokenEmbedding.__init__",
    fails=["token-embedding-parameters"],
    read="01_embedding#look-up-table",
)
def row_zero_starts_at_zero(self, vocab_size, d_model):
    """Your row 0 starts with zeros, as if id 0 were padding (padding_idx=0); which id is padding is
    not known here, and every row starts with draws."""
    super(type(self), self).__init__()
    self.d_model = d_model
    self.weight = nn.Parameter(torch.randn(vocab_size, d_model) / math.sqrt(d_model))
    with torch.no_grad():
        self.weight[0] = 0


@misconception(
    "token-embedding",
    id="TOK36",
    target="TokenEmbedding.forward",
    fails=["token-embedding-values", "token-embedding-gradients"],
    read="01_embedding#look-up-table",
)
def one_hot_in_single_precision(self, ids):
    """Your vectors are always float32, whatever weight is; the one-hot rows should take the dtype
    of weight."""
    one_hot = nn.functional.one_hot(ids, self.weight.shape[0]).float()
    return one_hot @ self.weight.float() * math.sqrt(self.d_model)


@misconception("decode", id="TOK37", fails=["decode-end"], read="01_embedding#special-tokens")
def reads_on_after_eos(ids, vocabulary):
    """You leave <eos> out but read on behind it; the sentence is over at the first <eos>."""
    tokens = {i: token for token, i in vocabulary.items()}
    words = [tokens[i] for i in ids if tokens[i] not in ("<bos>", "<eos>", "<pad>")]
    return " ".join(words)


@misconception(
    "decode",
    id="TOK14",
    fails=["decode-words", "decode-end"],
    read="01_embedding#special-tokens",
)
def special_tokens_stay_in_the_text(ids, vocabulary):
    """Your sentence contains <bos>, <eos> or <pad>; they are for the model and do not belong to
    the     text."""
    tokens = {i: token for token, i in vocabulary.items()}
    return " ".join(tokens[i] for i in ids)


@misconception("decode", id="TOK14b", fails=["decode-words"], read="01_embedding#special-tokens")
def unknown_words_vanish(ids, vocabulary):
    """You leave <unk> out, so the reader cannot see that a word is missing; keep it."""
    tokens = {i: token for token, i in vocabulary.items()}
    words = []
    for i in ids:
        if tokens[i] == "<eos>":
            break
        if tokens[i] not in ("<bos>", "<pad>", "<unk>"):
            words.append(tokens[i])
    return " ".join(words)


@misconception(
    "decode", id="TOK38", fails=["decode-end"], read="01_embedding#padding-and-truncation"
)
def first_and_last_are_cut_off(ids: Sequence[int], vocabulary: dict[str, int]) -> str:
    """You drop the first and the last id by their place; after padding the last id is not <eos>,
    and an unfinished sentence has none. Go by the token instead."""
    tokens = {i: token for token, i in vocabulary.items()}
    return " ".join(tokens[i] for i in ids[1:-1])


@misconception("decode", id="TOK51", fails=["decode-words"], read="01_embedding#special-tokens")
def every_word_in_angle_brackets_left_out(ids, vocabulary):
    """You leave out every token in angle brackets; only <bos> and <pad> are left out, and another
    token may look like them.
    """
    tokens = {i: token for token, i in vocabulary.items()}
    words = []
    for i in ids:
        if tokens[i] == "<eos>":
            break
        if tokens[i] == "<unk>" or not tokens[i].startswith("<"):
            words.append(tokens[i])
    return " ".join(words)


@misconception(
    "merges",
    id="TOK60",
    target="join",
    fails=["merges-join"],
    read="01_embedding#embedding-today",
)
def joins_what_was_joined(pieces, pair):
    """You join a piece that has just been joined once more; go on behind it, so that `a a a`
    becomes `aa a`."""
    joined = []
    for piece in pieces:
        if joined and joined[-1].endswith(pair[0]) and piece == pair[1]:
            joined[-1] += piece
        else:
            joined.append(piece)
    return joined


@misconception(
    "merges",
    id="TOK61",
    target="join",
    fails=["merges-join", "merges-learn", "merges-split"],
    read="01_embedding#embedding-today",
)
def joins_the_first_place_only(pieces, pair):
    """You join the pair at its first place only; it is joined wherever it stands."""
    for i in range(len(pieces) - 1):
        if (pieces[i], pieces[i + 1]) == pair:
            return [*pieces[:i], pair[0] + pair[1], *pieces[i + 2 :]]
    return list(pieces)


@misconception(
    "merges",
    id="TOK62",
    target="join",
    fails=["merges-join"],
    read="01_embedding#embedding-today",
)
def joins_in_place(pieces, pair):
    """You change the list that you are given; return a new one."""
    i = 0
    while i < len(pieces) - 1:
        if (pieces[i], pieces[i + 1]) == pair:
            pieces[i : i + 2] = [pair[0] + pair[1]]
        i += 1
    return pieces


@misconception(
    "merges",
    id="TOK63",
    target="learn_merges",
    fails=["merges-learn"],
    read="01_embedding#embedding-today",
)
def each_word_counts_once(counts, n):
    """You count each word once; a place counts as often as its word occurs."""
    words, merges = {word: list(word) for word in counts}, []
    for _ in range(n):
        places = Counter(p for pieces in words.values() for p in pairwise(pieces))
        if not places:
            break
        merges.append(min(places, key=lambda pair: (-places[pair], pair)))
        words = {word: join(pieces, merges[-1]) for word, pieces in words.items()}
    return merges


@misconception(
    "merges",
    id="TOK64",
    target="learn_merges",
    fails=["merges-learn"],
    read="01_embedding#embedding-today",
)
def counts_once_for_all(counts, n):
    """You count the pairs once, on letters, and take the n most frequent; after each merge the
    neighbours are others, so count again."""
    places = Counter()
    for word in counts:
        for pair in pairwise(word):
            places[pair] += counts[word]
    return sorted(places, key=lambda pair: (-places[pair], pair))[:n]


@misconception(
    "merges",
    id="TOK65",
    target="learn_merges",
    fails=["merges-learn"],
    read="01_embedding#embedding-today",
)
def ties_by_the_first_met(counts, n):
    """Of pairs that are counted equally often you take the one that you met first; take the first
    in the order of tuples."""
    words, merges = {word: list(word) for word in counts}, []
    for _ in range(n):
        places = Counter()
        for word, pieces in words.items():
            for pair in pairwise(pieces):
                places[pair] += counts[word]
        if not places:
            break
        merges.append(max(places, key=lambda pair: places[pair]))
        words = {word: join(pieces, merges[-1]) for word, pieces in words.items()}
    return merges


@misconception(
    "merges",
    id="TOK66",
    target="learn_merges",
    fails=["merges-learn"],
    read="01_embedding#embedding-today",
)
def ties_by_the_last_in_order(counts, n):
    """Of pairs that are counted equally often you take the last in the order of tuples; take the
    first."""
    words, merges = {word: list(word) for word in counts}, []
    for _ in range(n):
        places = Counter()
        for word, pieces in words.items():
            for pair in pairwise(pieces):
                places[pair] += counts[word]
        if not places:
            break
        merges.append(max(places, key=lambda pair: (places[pair], pair)))
        words = {word: join(pieces, merges[-1]) for word, pieces in words.items()}
    return merges


@misconception(
    "merges",
    id="TOK67",
    target="split_word",
    fails=["merges-split"],
    read="01_embedding#embedding-today",
)
def longest_piece_first(word, merges):
    """You take the longest known piece at each place; join the merges instead, in the order in
    which they were learned."""
    known, pieces = {left + right for left, right in merges}, []
    while word:
        end = max([1, *(len(piece) for piece in known if word.startswith(piece))])
        pieces.append(word[:end])
        word = word[end:]
    return pieces


@misconception(
    "merges",
    id="TOK68",
    target="split_word",
    fails=["merges-split"],
    read="01_embedding#embedding-today",
)
def last_merge_first(word, merges):
    """You join the merges in reverse order; the one that was learned first comes first."""
    pieces = list(word)
    for pair in reversed(merges):
        pieces = join(pieces, pair)
    return pieces


@misconception(
    "predicted-neighbour",
    id="TOK69",
    fails=["predicted-neighbour-made"],
    read="01_embedding#learned-rows",
)
def no_prediction():
    """You have not predicted anything: return one of the texts in NEIGHBOURS."""
    return


@misconception(
    "predicted-neighbour",
    id="TOK70",
    fails=["predicted-neighbour-made"],
    read="01_embedding#learned-rows",
)
def the_number_of_a_choice():
    """Your prediction is a number; return one of the texts in NEIGHBOURS."""
    return 1


@misconception(
    "predicted-neighbour",
    id="TOK71",
    fails=["predicted-neighbour-made"],
    read="01_embedding#learned-rows",
)
def a_word_of_ones_own():
    """Your prediction is none of the four; return one of the texts in NEIGHBOURS as it stands
    there."""
    return "dog"


@misconception(
    "likeliest",
    id="TOK72",
    fails=["likeliest-cut"],
    read="01_embedding#embedding-today",
)
def longest_piece_at_each_place(word, log_p):
    """You take the longest piece at each place; the cut with the largest product may begin with a
    shorter one."""
    total = [0.0]
    for end in range(1, len(word) + 1):
        ways = [i for i in range(max(0, end - 40), end) if word[i:end] in log_p]
        terms = [total[i] + log_p[word[i:end]] for i in ways]
        top = max(terms, default=-math.inf)
        mass = sum(math.exp(term - top) for term in terms if top > -math.inf)
        total.append(top + math.log(mass) if mass else -math.inf)
    pieces, start = [], 0
    while start < len(word):
        fits = [piece for piece in log_p if word.startswith(piece, start)]
        if not fits:
            return None, -math.inf
        pieces.append(max(fits, key=len))
        start += len(pieces[-1])
    return pieces, total[-1]


@misconception(
    "likeliest",
    id="TOK73",
    fails=["likeliest-cut"],
    read="01_embedding#embedding-today",
)
def fewest_pieces(word, log_p):
    """You take the cut with the fewest pieces; take that with the largest product of
    probabilities."""
    cuts: list[Any] = [[]]
    total = [0.0]
    for end in range(1, len(word) + 1):
        ways = [i for i in range(max(0, end - 40), end) if word[i:end] in log_p]
        ways = [i for i in ways if cuts[i] is not None]
        terms = [total[i] + log_p[word[i:end]] for i in ways]
        top = max(terms, default=0.0)
        mass = sum(math.exp(term - top) for term in terms)
        total.append(top + math.log(mass) if ways else -math.inf)
        found = [[*cuts[i], word[i:end]] for i in ways]
        cuts.append(min(found, key=len, default=None))
    return cuts[-1], total[-1]


@misconception(
    "likeliest",
    id="TOK74",
    fails=["likeliest-sum"],
    read="01_embedding#embedding-today",
)
def best_in_place_of_all(word, log_p):
    """Your second number is the logarithm of the best cut's probability; add the probabilities of
    all cuts."""
    best: list[Any] = [(0.0, [])]
    for end in range(1, len(word) + 1):
        ways = [
            i
            for i in range(max(0, end - 40), end)
            if word[i:end] in log_p and best[i][1] is not None
        ]
        scored = [(best[i][0] + log_p[word[i:end]], i) for i in ways]
        if scored:
            score, i = max(scored)
            best.append((score, [*best[i][1], word[i:end]]))
        else:
            best.append((-math.inf, None))
    return best[-1][1], best[-1][0]


@misconception(
    "likeliest",
    id="TOK75",
    fails=["likeliest-sum"],
    read="01_embedding#embedding-today",
)
def probabilities_that_vanish(word, log_p):
    """You add probabilities as they are, and those of a long word are too small for a float; add
    them as logarithms, the largest taken out."""
    best: list[Any] = [(0.0, [])]
    total = [1.0]
    for end in range(1, len(word) + 1):
        ways = [
            i
            for i in range(max(0, end - 40), end)
            if word[i:end] in log_p and best[i][1] is not None
        ]
        total.append(sum(total[i] * math.exp(log_p[word[i:end]]) for i in ways))
        if ways:
            score, i = max((best[i][0] + log_p[word[i:end]], i) for i in ways)
            best.append((score, [*best[i][1], word[i:end]]))
        else:
            best.append((-math.inf, None))
    return best[-1][1], math.log(total[-1]) if total[-1] > 0 else -math.inf


@misconception(
    "likeliest",
    id="TOK76",
    fails=["likeliest-cut", "likeliest-sum"],
    read="01_embedding#embedding-today",
)
def no_cut_of_nothing(word, log_p):
    """You say that the word without letters has no cut. It has one, the empty list, of probability
    1: the logarithm is 0."""
    best: list[Any] = [(0.0, [])]
    total = [0.0]
    for end in range(1, len(word) + 1):
        ways = [
            i
            for i in range(max(0, end - 40), end)
            if word[i:end] in log_p and best[i][1] is not None
        ]
        if ways:
            logs = [total[i] + log_p[word[i:end]] for i in ways]
            total.append(max(logs) + math.log(sum(math.exp(log - max(logs)) for log in logs)))
            score, i = max((best[i][0] + log_p[word[i:end]], i) for i in ways)
            best.append((score, [*best[i][1], word[i:end]]))
        else:
            total.append(-math.inf)
            best.append((-math.inf, None))
    return (best[-1][1], total[-1]) if word else (None, -math.inf)

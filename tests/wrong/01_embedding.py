"""Wrong answers to exercise 1 that nobody gets a name for; all must lose points."""

# pyright: reportUndefinedVariable=false
# Answers use names that other cells of their notebook define.

import math
from collections import Counter
from itertools import pairwise

import torch
from torch import nn

from lab.answers import variant


@variant("build-vocabulary")
def ties_by_length_first(sentences, specials, min_freq=1):
    counts = Counter(word for sentence in sentences for word in sentence.split())
    words = [word for word, n in counts.items() if n >= min_freq and word not in specials]
    words.sort(key=lambda word: (-counts[word], len(word), word))
    return {token: i for i, token in enumerate([*specials, *words])}


@variant("build-vocabulary")
def accents_after_their_letter(sentences, specials, min_freq=1):
    import unicodedata

    counts = Counter(word for sentence in sentences for word in sentence.split())
    words = [word for word, n in counts.items() if n >= min_freq and word not in specials]
    words.sort(key=lambda word: (-counts[word], unicodedata.normalize("NFD", word)))
    return {token: i for i, token in enumerate([*specials, *words])}


@variant("build-vocabulary")
def counts_sorted_as_text(sentences, specials, min_freq=1):
    counts = Counter(word for sentence in sentences for word in sentence.split())
    words = sorted(word for word, n in counts.items() if n >= min_freq and word not in specials)
    words.sort(key=lambda word: str(counts[word]), reverse=True)
    return {token: i for i, token in enumerate([*specials, *words])}


@variant("build-vocabulary")
def counts_above_nine_are_nine(sentences, specials, min_freq=1):
    counts = Counter(word for sentence in sentences for word in sentence.split())
    words = [word for word, n in counts.items() if n >= min_freq and word not in specials]
    words.sort(key=lambda word: (-min(counts[word], 9), word))
    return {token: i for i, token in enumerate([*specials, *words])}


@variant("pad-batch")
def at_least_one_column(sequences, pad_id, max_len=None):
    N = max(1, *map(len, sequences)) if max_len is None else max_len
    rows = [list(s[:N]) + [pad_id] * (N - len(s)) for s in sequences]
    return torch.tensor(rows), torch.tensor([min(len(s), N) for s in sequences])


@variant("pad-batch")
def lengths_not_cut_by_max_len_0(sequences, pad_id, max_len=None):
    N = max(len(sequence) for sequence in sequences) if max_len is None else max_len
    rows = [list(s[:N]) + [pad_id] * (N - len(s)) for s in sequences]
    return torch.tensor(rows), torch.tensor([min(len(s), N or len(s)) for s in sequences])


@variant("pad-batch")
def lengths_by_pad_id_with_max_len(sequences, pad_id, max_len=None):
    N = max(len(sequence) for sequence in sequences) if max_len is None else max_len
    ids = torch.tensor([list(s[:N]) + [pad_id] * (N - len(s)) for s in sequences])
    lengths = torch.tensor([len(s) for s in sequences])
    return ids, lengths if max_len is None else (ids != pad_id).sum(1)


@variant("pad-batch")
def as_wide_as_the_widest_so_far(sequences, pad_id, max_len=None):
    widest = max(len(sequence) for sequence in sequences)
    widest = max(widest, getattr(as_wide_as_the_widest_so_far, "before", 0))
    as_wide_as_the_widest_so_far.before = widest
    N = widest if max_len is None else max_len
    rows = [list(s[:N]) + [pad_id] * (N - len(s)) for s in sequences]
    return torch.tensor(rows), torch.tensor([min(len(s), N) for s in sequences])


@variant("pad-batch")
def ids_of_16_bits(sequences, pad_id, max_len=None):
    N = max(len(sequence) for sequence in sequences) if max_len is None else max_len
    rows = [list(s[:N]) + [pad_id] * (N - len(s)) for s in sequences]
    ids = torch.tensor([[(i + 2**15) % 2**16 - 2**15 for i in row] for row in rows])
    return ids, torch.tensor([min(len(s), N) for s in sequences])


@variant("pad-batch")
def one_length_without_its_axis(sequences, pad_id, max_len=None):
    N = max(len(sequence) for sequence in sequences) if max_len is None else max_len
    rows = [list(s[:N]) + [pad_id] * (N - len(s)) for s in sequences]
    return torch.tensor(rows), torch.tensor([min(len(s), N) for s in sequences]).squeeze()


@variant("valid-mask")
def axes_of_length_1_vanish(lengths, N):
    return (torch.arange(N)[None, :] < lengths[:, None]).squeeze()


@variant("valid-mask")
def one_sequence_without_its_axis(lengths, N):
    return (torch.arange(N)[None, :] < lengths[:, None]).squeeze(0)


@variant("valid-mask")
def always_five_columns(lengths, N):
    return torch.arange(5)[None, :] < lengths[:, None]


@variant("valid-mask")
def lengths_get_another_axis(lengths, N):
    return torch.arange(N)[None, :] < lengths.unsqueeze_(1)


@variant("token-embedding", target="TokenEmbedding.forward")
def gradients_divided_by_the_count(self, ids):
    found = nn.functional.embedding(ids, self.weight, scale_grad_by_freq=True)
    return found * math.sqrt(self.d_model)


@variant("decode")
def bos_left_out_in_front_only(ids, vocabulary):
    tokens = {i: token for token, i in vocabulary.items()}
    words = []
    for i in ids:
        if tokens[i] == "<eos>":
            break
        if tokens[i] != "<pad>" and (words or tokens[i] != "<bos>"):
            words.append(tokens[i])
    return " ".join(words)


@variant("token-embedding", target="TokenEmbedding.__init__")
def rows_of_length_1(self, vocab_size, d_model):
    super(type(self), self).__init__()
    self.d_model = d_model
    rows = torch.randn(vocab_size, d_model)
    self.weight = nn.Parameter(nn.functional.normalize(rows, dim=-1))


@variant("token-embedding", target="TokenEmbedding.__init__")
def cut_at_three_deviations(self, vocab_size, d_model):
    super(type(self), self).__init__()
    self.d_model, far = d_model, 3 / math.sqrt(d_model)
    weight = torch.empty(vocab_size, d_model)
    self.weight = nn.Parameter(nn.init.trunc_normal_(weight, std=far / 3, a=-far, b=far))


@variant("token-embedding", target="TokenEmbedding.__init__")
def laplace_draws(self, vocab_size, d_model):
    super(type(self), self).__init__()
    self.d_model = d_model
    draws = torch.distributions.Laplace(0.0, 1 / math.sqrt(2 * d_model))
    self.weight = nn.Parameter(draws.sample((vocab_size, d_model)))


@variant("decode")
def a_word_twice_is_read_once(ids, vocabulary):
    tokens = {i: token for token, i in vocabulary.items()}
    words = []
    for i in ids:
        if tokens[i] == "<eos>":
            break
        if tokens[i] not in ("<bos>", "<pad>") and (
            i == vocabulary["<unk>"] or [tokens[i]] != words[-1:]
        ):
            words.append(tokens[i])
    return " ".join(words)


@variant("merges", target="learn_merges")
def stops_at_pairs_counted_once(counts, n):
    words, merges = {word: list(word) for word in counts}, []
    for _ in range(n):
        places = Counter()
        for word, pieces in words.items():
            for pair in pairwise(pieces):
                places[pair] += counts[word]
        if not places or max(places.values()) < 2:
            break
        merges.append(min(places, key=lambda pair: (-places[pair], pair)))
        words = {word: join(pieces, merges[-1]) for word, pieces in words.items()}
    return merges


@variant("merges", target="learn_merges")
def joins_words_in_the_counts(counts, n):
    words, merges = {word: list(word) for word in counts}, []
    for _ in range(n):
        places = Counter()
        for word in list(counts):
            for pair in pairwise(words[word]):
                places[pair] += counts[word]
        if not places:
            break
        merges.append(min(places, key=lambda pair: (-places[pair], pair)))
        words = {word: join(pieces, merges[-1]) for word, pieces in words.items()}
    counts.clear()
    return merges


@variant("likeliest")
def a_start_that_leads_nowhere(word, log_p):
    pieces, total = [], 0.0
    while word:
        fits = [piece for piece in log_p if word.startswith(piece)]
        if not fits:
            return None, -math.inf
        pieces.append(max(fits, key=log_p.get))
        word, total = word[len(pieces[-1]) :], total + log_p[pieces[-1]]
    return pieces, total


@variant("merges", target="join")
def gives_back_the_list_it_got(pieces, pair):
    if not any(p == tuple(pair) for p in pairwise(pieces)):
        return pieces
    out, i = ([], 0)
    while i < len(pieces):
        if i + 1 < len(pieces) and (pieces[i], pieces[i + 1]) == tuple(pair):
            out.append(pieces[i] + pieces[i + 1])
            i += 2
        else:
            out.append(pieces[i])
            i += 1
    return out


@variant("likeliest")
def longest_of_no_pieces(word, log_p):
    longest = max(len(p) for p in log_p)
    n = len(word)
    best, start, total = ([0.0] + [-math.inf] * n, [0] * (n + 1), [0.0] + [-math.inf] * n)
    for end in range(1, n + 1):
        terms = []
        for begin in range(max(0, end - longest), end):
            p = log_p.get(word[begin:end])
            if p is None or best[begin] == -math.inf:
                continue
            terms.append(total[begin] + p)
            if best[begin] + p > best[end]:
                best[end], start[end] = (best[begin] + p, begin)
        if terms:
            top = max(terms)
            total[end] = top + math.log(sum(math.exp(t - top) for t in terms))
    if best[n] == -math.inf:
        return (None, -math.inf)
    pieces, end = ([], n)
    while end:
        pieces.append(word[start[end] : end])
        end = start[end]
    return (pieces[::-1], total[n])


@variant("likeliest")
def begins_where_nothing_ends(word, log_p):
    longest = max(map(len, log_p), default=0)
    best, start, total = [0.0], [0], [0.0]
    for end in range(1, len(word) + 1):
        ways = [i for i in range(max(0, end - longest), end) if word[i:end] in log_p]
        scores = [best[i] + log_p[word[i:end]] for i in ways]
        terms = [total[i] + log_p[word[i:end]] for i in ways]
        best.append(max(scores, default=-math.inf))
        start.append(ways[scores.index(best[-1])] if ways else -1)
        top = max(terms, default=0.0)
        mass = sum(math.exp(term - top) for term in terms)
        total.append(top + math.log(mass) if ways else -math.inf)
    if total[-1] == -math.inf:
        return None, -math.inf
    pieces, end = [], len(word)
    while end > 0:
        pieces.append(word[start[end] : end])
        end = start[end]
    return pieces[::-1], total[-1]


@variant("likeliest")
def smallest_term_taken_off(word, log_p):
    best, start, total = [0.0], [0], [0.0]
    for end in range(1, len(word) + 1):
        ways = [i for i in range(end) if word[i:end] in log_p and total[i] > -math.inf]
        scores = [best[i] + log_p[word[i:end]] for i in ways]
        terms = [total[i] + log_p[word[i:end]] for i in ways]
        best.append(max(scores, default=-math.inf))
        start.append(ways[scores.index(best[-1])] if ways else -1)
        low = min(terms, default=0.0)
        mass = sum(math.exp(term - low) for term in terms)
        total.append(low + math.log(mass) if ways else -math.inf)
    if total[-1] == -math.inf:
        return None, -math.inf
    pieces, end = [], len(word)
    while end > 0:
        pieces.append(word[start[end] : end])
        end = start[end]
    return pieces[::-1], total[-1]


@variant("likeliest")
def starts_in_front_of_the_word(word, log_p):
    longest = max(map(len, log_p), default=0)
    best, start, total = [0.0], [0], [0.0]
    for end in range(1, len(word) + 1):
        ways = [i for i in range(min(0, end - longest), end) if word[i:end] in log_p]
        ways = [i for i in ways if total[i] > -math.inf]
        scores = [best[i] + log_p[word[i:end]] for i in ways]
        terms = [total[i] + log_p[word[i:end]] for i in ways]
        best.append(max(scores, default=-math.inf))
        start.append(ways[scores.index(best[-1])] if ways else -1)
        top = max(terms, default=0.0)
        mass = sum(math.exp(term - top) for term in terms)
        total.append(top + math.log(mass) if ways else -math.inf)
    if total[-1] == -math.inf:
        return None, -math.inf
    pieces, end = [], len(word)
    while end > 0:
        pieces.append(word[start[end] : end])
        end = start[end]
    return pieces[::-1], total[-1]


@variant("likeliest")
def pieces_of_ten_letters_at_most(word, log_p):
    best, start, total = [0.0], [0], [0.0]
    for end in range(1, len(word) + 1):
        ways = [i for i in range(max(0, end - 10), end) if word[i:end] in log_p]
        ways = [i for i in ways if total[i] > -math.inf]
        scores = [best[i] + log_p[word[i:end]] for i in ways]
        terms = [total[i] + log_p[word[i:end]] for i in ways]
        best.append(max(scores, default=-math.inf))
        start.append(ways[scores.index(best[-1])] if ways else -1)
        top = max(terms, default=0.0)
        mass = sum(math.exp(term - top) for term in terms)
        total.append(top + math.log(mass) if ways else -math.inf)
    if total[-1] == -math.inf:
        return None, -math.inf
    pieces, end = [], len(word)
    while end > 0:
        pieces.append(word[start[end] : end])
        end = start[end]
    return pieces[::-1], total[-1]


@variant("encode")
def names_what_max_len_may_be(sentence, vocabulary, max_len=None):
    if max_len is not None and max_len < 2:
        raise ValueError("max_len must be at least 2, and neither 1, 0 nor -1")
    words = sentence.split()[: None if max_len is None else max_len - 2]
    ids = [vocabulary.get(word, vocabulary["<unk>"]) for word in words]
    return [vocabulary["<bos>"], *ids, vocabulary["<eos>"]]

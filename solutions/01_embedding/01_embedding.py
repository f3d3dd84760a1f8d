# %% [markdown]
# # 1 Tokens and embedding
#
# A Transformer computes with matrices of numbers. Here you build the way from sentences to such
# matrices: a **vocabulary**, the **ids** of a sentence, a **padded batch** with its **valid
# lengths**, the pieces of words that leave none unknown, and the **embedding** that turns each id into
# a vector. You go back from ids to words, and see what training makes of the vectors.
#
# **How to work.** Run the cells from top to bottom (Shift + Enter). Write your answer where a
# cell says `# YOUR CODE HERE`, in place of the `raise`, then run the test cell below it. A test that fails says
# in its last lines what is wrong, first in words. The tests you see are not all the tests: more
# run when the notebook is graded, with other sizes and other numbers. The questions do not depend
# on one another; if one does not work, go on with the next.
#
# **Where to read.** The chapter *Tokens and embedding* of the book explains every step on one
# sentence with NumPy; here you write it in PyTorch for whole batches. You need Python lists and
# dictionaries, and tensors: indexing, broadcasting, shapes.
#
# | symbol | meaning |
# | --- | --- |
# | $B$ | sentences in a batch |
# | $N$ | tokens in each row of a batch, padding included |
# | $\lvert\mathcal V\rvert$, `vocab_size` | tokens in the vocabulary |
# | $d_{model}$, `d_model` | numbers in the vector of one token |

# %% setup
import itertools
import math
from collections import Counter
from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from lab.battery import assert_sound
from lab.check import (
    assert_close,
    assert_dtype,
    assert_raises,
    assert_shape,
    draw,
    parameters_of,
    visible_passed,
)
from lab.corpus import sentence_pairs, split_pairs
from lab.predict import compare, predicted, watched

SPECIALS = ("<pad>", "<unk>", "<bos>", "<eos>")

# %% [markdown]
# ## Look around: the sentences
#
# These are the kind of sentence that the translation model at the end of the course learns from.
# Words are lower case and separated by blanks, so `sentence.split()` gives the tokens. Some pairs
# are held out: nobody may look at them while the model is being built.

# %%
training, held_out = split_pairs(sentence_pairs(200))
for english, french in training[:3]:
    print(f"{english}  ->  {french}")
print(f"{len(training)} training pairs, {len(held_out)} held out")

# %% [markdown]
# ## 1.1 A vocabulary   (3 points, about 10 minutes, difficulty 2 of 5)
#
# **Objective.** Give every token a fixed integer, its id, in an order that anybody who has the
# same sentences would find again.
#
# Write `build_vocabulary(sentences, specials, min_freq)`. It returns a dictionary from token to
# id; the ids are 0, 1, 2, ... without a gap.
#
# * A word is what stands between blanks, one or several, as it is written: `The` and `the` are two
#   words.
# * The special tokens come first, in the order in which they are given.
# * Then come the words of the sentences, the most frequent first. Words that occur equally often
#   stand in alphabetical order (Python's order of strings).
# * A word that occurs fewer than `min_freq` times is left out. Special tokens always stay.
# * A special token that also happens to occur in a sentence keeps its one id.
# * What is handed in stays as it is.
#
# <details><summary>Hint 1: a question</summary>
#
# Two things decide the place of a word: how often it occurs, and its spelling. What would you
# sort by, so that *large* counts but *small* letters come first?
#
# </details>
#
# <details><summary>Hint 2: a sketch</summary>
#
# Count all words of all sentences. Keep those that are frequent enough and are not special. Sort
# them. Put the special tokens in front, then number the whole list.
#
# </details>
#
# <details><summary>Help by symptom</summary>
#
# * Words of equal frequency stand in the order of the text: the sort knows the count only.
# * The rarest word comes first: the sort runs upwards.
# * A word is missing that occurs exactly `min_freq` times: look at `>` and `>=`.
# * There is a gap in the ids, or `<unk>` has a late one: a special token was counted as a word.
#
# </details>


# %% solution="build-vocabulary"
def build_vocabulary(
    sentences: Sequence[str], specials: Sequence[str], min_freq: int = 1
) -> dict[str, int]:
    """Number the special tokens and the words of these sentences.

    Args:
        sentences: the training sentences; blanks separate the words.
        specials: tokens such as "<pad>" that get the first ids, in this order.
        min_freq: a word that occurs fewer times than this is left out.

    Returns:
        Dictionary from token to id: specials first, then words by falling frequency; words of
        equal frequency in alphabetical order.
    """
    ### BEGIN SOLUTION
    counts = Counter(word for sentence in sentences for word in sentence.split())
    words = [word for word, n in counts.items() if n >= min_freq and word not in specials]
    words.sort(key=lambda word: (-counts[word], word))
    return {token: i for i, token in enumerate([*specials, *words])}
    ### END SOLUTION


# %% test="build-vocabulary-order" points=2
sentences = ["the cat sees the dog", "a dog sees a cat", "the bird"]
vocabulary = build_vocabulary(sentences, SPECIALS)
assert isinstance(vocabulary, dict), (
    f"build_vocabulary returns a dictionary from token to id\nYours is a {type(vocabulary).__name__}."
)
by_id = sorted(vocabulary, key=lambda token: vocabulary[token])
assert by_id[:4] == list(SPECIALS), (
    f"the special tokens come first, in the given order\nYour first four are {by_id[:4]}."
)
assert by_id[4:5] == ["the"], (
    f"the most frequent word comes right after the special tokens\nYours is {by_id[4:5]}."
)
assert by_id[5:] == ["a", "cat", "dog", "sees", "bird"], (
    "words come by falling frequency, and alphabetically where they occur equally often\n"
    f"After 'the' yours are {by_id[5:]}, expected ['a', 'cat', 'dog', 'sees', 'bird']."
)
assert sorted(vocabulary.values()) == list(range(10)), (
    f"ten tokens have the ids 0 to 9\nYour ids are {sorted(vocabulary.values())}."
)
assert all(type(i) is int for i in vocabulary.values()), (
    f"an id is a whole number (int)\nYour ids are {sorted(vocabulary.values())}."
)
visible_passed()
### BEGIN HIDDEN TESTS
text, special = ["zoo yak yak zoo zoo", "ant yak bee zoo ant", "bee owl"], ["<unk>", "<pad>"]
found = build_vocabulary(text, special)
assert found == {"<unk>": 0, "<pad>": 1, "zoo": 2, "yak": 3, "ant": 4, "bee": 5, "owl": 6}, (
    "two special tokens are followed by the words: by falling frequency, then alphabetically\n"
    f"For {text} yours is {found}."
)
assert len(text) == 3 and len(special) == 2, (
    "build_vocabulary leaves the sentences and the special tokens as they were"
)
assert build_vocabulary(text[::-1], ("<unk>", "<pad>")) == found, (
    "the order of the sentences makes no difference to the vocabulary"
)
marked = build_vocabulary(["<s> ran ran", "<unk> <s>"], ("<unk>", "<s>"))
assert marked == {"<unk>": 0, "<s>": 1, "ran": 2}, (
    "a special token that occurs in a sentence keeps its one id and leaves no gap\n"
    f"For ['<s> ran ran', '<unk> <s>'] yours is {marked}."
)
text = ["Paris b. paris <s> zoo été, oui! vas-tu ?"]
words = ["<s>", "?", "Paris", "b.", "oui!", "paris", "vas-tu", "zoo", "été,"]
written = build_vocabulary(text, ("<unk>",))
assert written == {"<unk>": 0} | {word: i for i, word in enumerate(words, 1)}, (
    "words stay as they are written, with capitals, accents and punctuation, and words that occur "
    "equally often stand in Python's order of strings\n"
    f"For {text} yours is {written}."
)
often = build_vocabulary(["ah " * 9 + "oh " * 10], ())
assert often == {"oh": 0, "ah": 1}, (
    "a word that occurs ten times comes before one that occurs nine times: counts are numbers\n"
    f"Yours is {often}."
)
spaced = build_vocabulary(["a   b", "b"], ("<unk>",))
assert spaced == {"<unk>": 0, "b": 1, "a": 2}, (
    "several blanks separate words as one does, and there is no empty word\n"
    f"For ['a   b', 'b'] yours is {spaced}."
)
assert build_vocabulary([], SPECIALS) == {"<pad>": 0, "<unk>": 1, "<bos>": 2, "<eos>": 3}, (
    "without any sentence the vocabulary holds just the special tokens"
)
### END HIDDEN TESTS

# %% test="build-vocabulary-min-freq" points=1
frequent = build_vocabulary(
    ["the cat sees the dog", "a dog sees a cat", "the bird"], SPECIALS, min_freq=2
)
assert "bird" not in frequent, (
    "with min_freq=2 a word that occurs once is left out\n'bird' is in your vocabulary."
)
assert {"a", "cat", "dog", "sees", "the"} <= set(frequent), (
    "with min_freq=2 a word that occurs exactly twice stays in\n"
    f"Your words are {sorted(set(frequent) - set(SPECIALS))}."
)
assert set(SPECIALS) <= set(frequent), (
    "special tokens stay, however rare they are\n"
    f"Missing: {[token for token in SPECIALS if token not in frequent]}."
)
visible_passed()
### BEGIN HIDDEN TESTS
rare = build_vocabulary(["b b b a a", "c c", "a d", "d", "d"], ("<unk>", "<pad>"), min_freq=3)
assert set(rare) == {"<unk>", "<pad>", "a", "b", "d"}, (
    "with min_freq=3 words that occur three times stay and words that occur twice go\n"
    f"For ['b b b a a', 'c c', 'a d', 'd', 'd'] yours holds {sorted(rare)}."
)
### END HIDDEN TESTS

# %% [markdown]
# ## 1.2 From words to ids   (3 points, about 10 minutes, difficulty 2 of 5)
#
# **Objective.** Turn any sentence into a list of ids that the model can use, also a sentence with
# words that nobody has seen before, also one that is too long.
#
# Write `encode(sentence, vocabulary, max_len)`.
#
# * The list starts with the id of `<bos>` (beginning of sequence) and ends with that of `<eos>`
#   (end of sequence).
# * As in 1.1, a word is what stands between blanks, one or several. One that is not in the
#   vocabulary gets the id of `<unk>` (unknown).
# * If `max_len` is given, the list has at most `max_len` ids, `<bos>` and `<eos>` among them. Words
#   at the end of the sentence are dropped to make it so; `<eos>` never is.
# * `max_len` below 2 leaves no room for both: raise a `ValueError` that names `max_len`, its value
#   and the rule.
#
# The ids of the special tokens may be any: look them up in the vocabulary.
#
# <details><summary>Hint 1: a question</summary>
#
# How many *words* may stay when the whole list may have `max_len` ids?
#
# </details>
#
# <details><summary>Hint 2: a sketch</summary>
#
# Check `max_len`. Split the sentence; shorten the list of words, if asked; only then look the words
# up; put the two special ids around them.
#
# </details>
#
# <details><summary>Help by symptom</summary>
#
# * `KeyError`: a word is not in the vocabulary. Dictionaries have a way to look up with a fallback.
# * The list is longer than `max_len`: `<bos>` and `<eos>` count too.
# * A shortened list does not end with `<eos>`: it was cut after `<eos>` had been added.
#
# </details>


# %% solution="encode"
def encode(sentence: str, vocabulary: dict[str, int], max_len: int | None = None) -> list[int]:
    """Turn a sentence into ids, from <bos> to <eos>.

    Args:
        sentence: words separated by blanks.
        vocabulary: token to id; holds "<bos>", "<eos>" and "<unk>", with any ids.
        max_len: most ids in the result, <bos> and <eos> included; None for no limit.

    Returns:
        List of ids; words that are not in the vocabulary have the id of "<unk>".

    Raises:
        ValueError: if max_len is below 2.
    """
    ### BEGIN SOLUTION
    if max_len is not None and max_len < 2:
        raise ValueError(f"max_len ({max_len}) must be at least 2, for <bos> and <eos>")
    words = sentence.split()
    if max_len is not None:
        words = words[: max_len - 2]
    unknown = vocabulary["<unk>"]
    ids = [vocabulary.get(word, unknown) for word in words]
    return [vocabulary["<bos>"], *ids, vocabulary["<eos>"]]
    ### END SOLUTION


# %% test="encode-words" points=2
vocabulary = {"the": 0, "<eos>": 1, "cat": 2, "<pad>": 3, "<unk>": 4, "sleeps": 5, "<bos>": 6}
ids = encode("the cat sleeps", vocabulary)
assert ids is not None, "encode returns a list of ids\nYours is None: is a return missing?"
assert list(ids[:1]) == [6] and list(ids[-1:]) == [1], (
    f"the ids start with that of <bos> (6) and end with that of <eos> (1)\nYours are {ids}."
)
assert list(ids) == [6, 0, 2, 5, 1], (
    f"'the cat sleeps' has the ids [6, 0, 2, 5, 1]\nYours are {ids}."
)
assert all(type(i) is int for i in ids), f"an id is a whole number (int)\nYours are {ids}."
try:
    ids = encode("the dog sleeps", vocabulary)
except KeyError as error:
    raise AssertionError(
        f"a word that is not in the vocabulary gets the id of <unk>\nYours raised KeyError: {error}."
    ) from None
assert list(ids) == [6, 0, 4, 5, 1], (
    f"'dog' is not in the vocabulary and gets the id of <unk> (4)\nYours are {ids}."
)
visible_passed()
### BEGIN HIDDEN TESTS
other = {"<pad>": 5, "<unk>": 2, "<bos>": 7, "<eos>": 0, "vois": 1, "je": 3, "chat": 4, "le": 6}
assert list(encode("je vois le chat", other)) == [7, 3, 1, 6, 4, 0], (
    "another vocabulary gives other ids, those of <bos> and <eos> too"
)
assert list(encode("Je vois  un chat, le chat.", other)) == [7, 2, 1, 2, 2, 6, 2, 0], (
    "every unknown word in a sentence gets the id of <unk>, a known one with punctuation too, and "
    "two blanks separate words as one does"
)
assert list(encode("", other)) == [7, 0], "an empty sentence still has <bos> and <eos>"
assert len(other) == 8, "encode leaves the vocabulary as it was"
### END HIDDEN TESTS

# %% test="encode-truncation" points=1
vocabulary = {"the": 0, "<eos>": 1, "cat": 2, "<pad>": 3, "<unk>": 4, "sleeps": 5, "<bos>": 6}
ids = encode("the cat sleeps", vocabulary, max_len=4)
assert len(ids) == 4, (
    "with max_len=4 a sentence of three words gives 4 ids: <bos>, two words, <eos>\n"
    f"You have {len(ids)}: {ids}."
)
assert list(ids) == [6, 0, 2, 1], (
    "a sentence that is too long loses its last words and keeps its <eos>\n"
    f"With max_len=4, 'the cat sleeps' gives [6, 0, 2, 1]; yours is {ids}."
)
ids = encode("the cat", vocabulary, max_len=6)
assert list(ids) == [6, 0, 2, 1], (
    f"a sentence that is short enough stays as it is\nWith max_len=6, 'the cat' gives {ids}."
)
visible_passed()
### BEGIN HIDDEN TESTS
long = "je vois le chat"
other = {"<pad>": 5, "<unk>": 2, "<bos>": 7, "<eos>": 0, "vois": 1, "je": 3, "chat": 4, "le": 6}
assert list(encode(long, other, max_len=6)) == [7, 3, 1, 6, 4, 0], (
    "a sentence that fits exactly loses no word"
)
assert list(encode(long, other, max_len=5)) == [7, 3, 1, 6, 0], (
    "a sentence that is one token too long loses one word"
)
assert list(encode(long, other, max_len=2)) == [7, 0], (
    "with max_len=2 there is room for <bos> and <eos> only"
)
assert_raises(
    ValueError,
    lambda: encode(long, other, max_len=1),
    "max_len below 2 raises a ValueError that names max_len and its value",
    mentions=["max_len", "1"],
)
assert_raises(
    ValueError,
    lambda: encode(long, other, max_len=0),
    "max_len = 0 is a limit too, and too small: a ValueError that names max_len and its value",
    mentions=["max_len", "0"],
)
assert_raises(
    ValueError,
    lambda: encode(long, other, max_len=-1),
    "a negative max_len is below 2: a ValueError that names max_len and its value",
    mentions=["max_len", "-1"],
)
### END HIDDEN TESTS

# %% [markdown]
# ## 1.3 A padded batch   (4 points, about 15 minutes, difficulty 2 of 5)
#
# **Objective.** Put lists of different lengths into one rectangular tensor, and remember which
# entries are real.
#
# Write `pad_batch(sequences, pad_id, max_len)`. It returns `ids` of shape $(B, N)$ and `lengths` of
# shape $(B,)$, both `torch.int64`.
#
# * Without `max_len`, $N$ is the length of the longest sequence. With `max_len`, $N$ = `max_len`
#   exactly, even if all sequences are shorter, and even if it is 0.
# * A short sequence is filled up with `pad_id` at its end; a long one is cut at its end.
# * `lengths` holds the **valid length** of each row: how many of its entries are real,
#   $\min(\text{length of the sequence}, N)$, whatever these ids are.
# * The caller's lists stay as they are.
#
# <details><summary>Hint 1: a question</summary>
#
# A row has $N$ entries. How many come from the sequence, and how many are padding?
#
# </details>
#
# <details><summary>Hint 2: a sketch</summary>
#
# Decide on $N$ first. For each sequence build a new list: the first $N$ ids, then as many pads as
# are missing. Then make tensors of the lists and of the valid lengths.
#
# </details>
#
# <details><summary>Help by symptom</summary>
#
# * `expected sequence of length ...`: the rows differ in length when the tensor is made.
# * A length is larger than $N$: it was taken before the sequence was cut.
# * Zeros where `pad_id` should be: the tensor was made of zeros.
# * `float32`: say which `dtype` you want.
# * `too many values to unpack`: two tensors are wanted, ids and lengths.
#
# </details>


# %% solution="pad-batch"
def pad_batch(
    sequences: Sequence[Sequence[int]], pad_id: int, max_len: int | None = None
) -> tuple[Int[Tensor, "B N"], Int[Tensor, "B"]]:
    """Put id lists of different lengths into one tensor, padded at the end.

    Args:
        sequences: B lists of ids, at least one of them; a list may be empty.
        pad_id: the id that fills up short rows; not always 0.
        max_len: the number of columns N; None for the length of the longest sequence.

    Returns:
        ids (B, N) and valid lengths (B,), both int64; a valid length is min(length, N).
    """
    ### BEGIN SOLUTION
    N = max(len(sequence) for sequence in sequences) if max_len is None else max_len
    ids = torch.full((len(sequences), N), pad_id)  # (B, N)
    lengths = torch.tensor([min(len(sequence), N) for sequence in sequences])  # (B,)
    for row, sequence, length in zip(ids, sequences, lengths.tolist(), strict=True):
        row[:length] = torch.tensor(sequence[:length], dtype=torch.int64)
    return ids, lengths
    ### END SOLUTION


# %% test="pad-batch-ids" points=2
sequences = [[6, 1, 4, 2], [6, 2], [6, 5, 2]]
ids, _ = pad_batch(sequences, pad_id=3)
assert_shape(ids, (3, 4), "ids is (sequences, length of the longest)")
assert_dtype(ids, torch.int64, "ids are integers (torch.int64)")
expected = torch.tensor([[6, 1, 4, 2], [6, 2, 3, 3], [6, 5, 2, 3]])
assert_close(ids, expected, "short rows are filled up with pad_id (3) at their end")
assert sequences == [[6, 1, 4, 2], [6, 2], [6, 5, 2]], (
    f"pad_batch leaves the caller's lists as they were\nAfter the call they are {sequences}."
)
ids, _ = pad_batch(sequences, pad_id=3, max_len=3)
expected = torch.tensor([[6, 1, 4], [6, 2, 3], [6, 5, 2]])
assert_close(ids, expected, "with max_len=3 a row keeps its first 3 ids")
visible_passed()
### BEGIN HIDDEN TESTS
assert sequences == [[6, 1, 4, 2], [6, 2], [6, 5, 2]], (
    "pad_batch leaves the caller's lists as they were, with max_len too"
)
ids, _ = pad_batch([[1, 2], [], [4, 4, 1]], pad_id=0, max_len=5)
expected = torch.tensor([[1, 2, 0, 0, 0], [0, 0, 0, 0, 0], [4, 4, 1, 0, 0]])
assert_close(ids, expected, "with max_len above every length all rows are padded to max_len")
assert_dtype(ids, torch.int64, "ids are integers (torch.int64), with max_len too")
ids, lengths = pad_batch([[5, 0, 8, 3, 2]], pad_id=9)
assert_close(ids, torch.tensor([[5, 0, 8, 3, 2]]), "a batch of one sequence has no padding")
assert_shape(lengths, (1,), "a batch of one sequence has one valid length, of shape (1,)")
ids, _ = pad_batch([[5, 2], [7]], pad_id=9, max_len=0)
assert_shape(ids, (2, 0), "max_len = 0 is a number of columns too: N is 0, not the longest length")
ids, _ = pad_batch([[], []], pad_id=9)
assert_shape(ids, (2, 0), "N is the length of the longest sequence: 0 where all of them are empty")
ids, _ = pad_batch([[70000], [70000, 300]], pad_id=40000)
assert_shape(ids, (2, 2), "N is the length of this batch's longest sequence, not of earlier ones")
expected = torch.tensor([[70000, 40000], [70000, 300]])
assert_close(ids, expected, "ids may be as large as a vocabulary needs them")
### END HIDDEN TESTS

# %% test="pad-batch-lengths" points=2
_, lengths = pad_batch([[6, 1, 4, 2], [6, 2], [6, 5, 2]], pad_id=3)
assert_shape(lengths, (3,), "there is one valid length for each sequence")
assert_dtype(lengths, torch.int64, "valid lengths are integers (torch.int64)")
assert_close(lengths, torch.tensor([4, 2, 3]), "a valid length counts the real ids of its row")
_, lengths = pad_batch([[6, 1, 4, 2], [6, 2], [6, 5, 2]], pad_id=3, max_len=3)
assert_close(
    lengths, torch.tensor([3, 2, 3]), "the valid length of a row that was cut is N, not more"
)
visible_passed()
### BEGIN HIDDEN TESTS
_, lengths = pad_batch([[1, 5], [], [5, 4, 5], [7] * 9], pad_id=5, max_len=6)
assert_close(
    lengths,
    torch.tensor([2, 0, 3, 6]),
    "valid lengths are min(length, N), 0 for an empty sequence, and ids equal to pad_id count",
)
_, none = pad_batch([[5, 2], [7]], pad_id=9, max_len=0)
assert_close(none, torch.tensor([0, 0]), "with max_len = 0 nothing is left: all lengths are 0")
_, marked = pad_batch([[2, 5, 5], [5]], pad_id=5)
assert_close(
    marked,
    torch.tensor([3, 1]),
    "a valid length is that of the sequence, whatever its ids: one may be equal to pad_id",
)
assert_dtype(lengths, torch.int64, "valid lengths are integers (torch.int64), with max_len too")
### END HIDDEN TESTS

# %% [markdown]
# ## 1.4 Merges   (4 points, about 25 minutes, difficulty 3 of 5)
#
# **Objective.** Learn pieces of words from words, so that none is unknown.
#
# A vocabulary of whole words meets words that it does not know. Most models cut words into pieces that were learned by
# **byte pair encoding**: begin with single characters, and merge the pair of neighbours that is most frequent, again and
# again.
#
# `learn_merges(words, count)` gets a list of words (one that occurs often stands in it often) and returns the merges in the
# order in which they were made, at most `count` of them, each a pair of pieces:
#
# 1. Each word is a list of pieces; in the beginning, of its characters.
# 2. Count all pairs of neighbouring pieces in all words. Take the most frequent; of several that are equally frequent
#    the one that comes first in the order of Python's tuples of texts, such as `("a", "b")` before `("a", "c")`.
# 3. In every word, from left to right, replace this pair by the one piece that both make together. (`"aaa"` with the pair
#    `("a", "a")` becomes `"aa"`, `"a"`.) Go on with 2.
#
# Stop early when there is no pair any more. `split(word, merges)` cuts a word, known or not, by the same merges in the same
# order, and returns its pieces. Put together they are the word.
#
# <details><summary>Hint 1: a question</summary>
#
# Both functions have to replace a pair in a list of pieces. What would a function for that get and return?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# A walk through the pieces with an index: at a pair, append the merged piece and go on by two; else append one piece
# and go on by one. For the choice: the largest count first, then the smallest pair, in one `min` with a key.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# * The second merge differs: are pairs counted anew after each merge, on the merged pieces?
# * Right but for ties: the count has to be largest and the pair smallest, so one of the two needs a minus.
# * `"aaaa"` comes out as `"a", "aa", "a"`: go from left to right, and past what was merged.
# * Known words come out in other pieces than while learning: use the merges in their order.
#
# </details>


# %% solution="merges"
def learn_merges(words: Sequence[str], count: int) -> list[tuple[str, str]]:
    """The pairs that byte pair encoding merges, in order, at most `count`.

    Source: Sennrich et al. (2016), section 3.2, without their mark for the end of a word.
    """
    ### BEGIN SOLUTION
    split_words = [list(word) for word in words]
    merges: list[tuple[str, str]] = []
    while len(merges) < count:
        pairs = Counter(pair for pieces in split_words for pair in itertools.pairwise(pieces))
        if not pairs:
            break
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        merges.append(best)
        split_words = [merged(pieces, best) for pieces in split_words]
    return merges
    ### END SOLUTION


def split(word: str, merges: Sequence[tuple[str, str]]) -> list[str]:
    """The pieces of a word after these merges, in their order."""
    ### BEGIN SOLUTION
    pieces = list(word)
    for pair in merges:
        pieces = merged(pieces, pair)
    return pieces


def merged(pieces: list[str], pair: tuple[str, str]) -> list[str]:
    """The pieces with this pair made one wherever it stands, from left to right."""
    found, i = [], 0
    while i < len(pieces):
        if tuple(pieces[i : i + 2]) == pair:
            found.append(pieces[i] + pieces[i + 1])
            i += 2
        else:
            found.append(pieces[i])
            i += 1
    return found
    ### END SOLUTION


# %% test="merges-learned" points=2
words = ["low"] * 8 + ["lower"] * 2 + ["newest"] * 6 + ["widest"] * 3
found = [tuple(pair) for pair in learn_merges(words, 4)]
assert found[:1] == [("l", "o")], (
    "l+o and o+w are the most frequent pairs, ten times each, and l+o comes first in order\n"
    f"Yours begins with {found[:1]}."
)
assert found == [("l", "o"), ("lo", "w"), ("e", "s"), ("es", "t")], (
    f"four merges should be l+o, lo+w, e+s, es+t\nYours are {found}."
)
visible_passed()
### BEGIN HIDDEN TESTS
words = ["banana", "bandana", "band", "ananas", "aaaa", "b"]
before = list(words)
found = [tuple(pair) for pair in learn_merges(words, 50)]
wanted = [
    ("a", "n"),
    ("a", "a"),
    ("an", "a"),
    ("b", "an"),
    ("ban", "d"),
    ("aa", "aa"),
    ("an", "ana"),
    ("anana", "s"),
    ("ban", "ana"),
    ("band", "ana"),
]
assert found == wanted, (
    "merges go on until every word is one piece; after each, pairs are counted anew, and of equally "
    f"frequent ones the first in order is taken\nYours are {found}."
)
assert words == before, "the words should stay as they were"
assert learn_merges(["a", "b"], 3) == [], "words of one character have no pairs, so no merges"
assert learn_merges(words, 0) == [], "no merges were asked for"
### END HIDDEN TESTS

# %% test="merges-split" points=2
merges = [("e", "s"), ("es", "t"), ("l", "o"), ("lo", "w")]
assert list(split("lowest", merges)) == ["low", "est"], "lowest should be low and est"
assert list(split("slow", merges)) == ["s", "low"], "slow should be s and low"
visible_passed()
### BEGIN HIDDEN TESTS
for word, wanted in (
    ("aaaaa", ["aaaa", "a"]),
    ("banana", ["banana"]),
    ("anna", ["an", "n", "a"]),
    ("x", ["x"]),
    ("", []),
):
    table = [("a", "n"), ("a", "a"), ("aa", "aa"), ("b", "an"), ("an", "a"), ("ban", "ana")]
    pieces = list(split(word, table))
    assert "".join(pieces) == word, "the pieces of a word, put together, should be the word"
    assert pieces == wanted, (
        "merges should be made in their order, each from left to right all over the word\n"
        f"{word!r}: yours is {pieces}, expected {wanted}."
    )
pieces = list(split("abc", [("a", "b"), ("b", "c"), ("a", "bc")]))
assert pieces == ["ab", "c"], (
    "with a+b, b+c and a+bc, in this order, abc should be ab and c: the first merge takes the b\n"
    f"Yours is {pieces}."
)
assert table[0] == ("a", "n") and len(table) == 6, "the merges should stay as they were"
### END HIDDEN TESTS

# %% [markdown]
# ## 1.5 The embedding   (4 points, about 15 minutes, difficulty 3 of 5)
#
# **Objective.** Give every id a vector that training can change.
#
# Write the module `TokenEmbedding(vocab_size, d_model)`.
#
# * It has one parameter, `weight`, of shape (`vocab_size`, `d_model`): row $i$ is the vector of id
#   $i$. Its entries start as independent draws from a normal distribution with mean 0 and standard
#   deviation $1/\sqrt{d_{model}}$.
# * `forward(ids)` takes ids of shape $(B, N)$ and returns
#   $\sqrt{d_{model}}\; \text{weight}[\text{ids}]$, of shape $(B, N, d_{model})$ and with the dtype
#   of `weight`.
#
# The model at the end of the course uses this module, for both languages. Build it on
# `nn.Parameter`: `nn.Embedding` would hide what this question is about and is not allowed here, nor
# is `lab.blocks.TokenEmbedding`, which is made of it.
#
# <details><summary>Hint 1: a question</summary>
#
# What does `weight[ids]` give when `ids` is a tensor with two axes? Try it on a small one.
#
# </details>
#
# <details><summary>Hint 2: a sketch</summary>
#
# A parameter made in `__init__`, one look-up and one product in `forward`. A look-up that PyTorch
# sees sends gradients back to exactly the rows that were used.
#
# </details>
#
# <details><summary>Help by symptom</summary>
#
# * `Everything is 0.25 times what it should be`: the scale is missing (here $d_{model} = 16$).
# * `weight` is not among the parameters: a plain tensor was stored.
# * A row starts with zeros: no id is special here; keep padding out by masks.
# * `does not require grad`: the look-up went through `.data`, `.detach()` or a new tensor.
# * dtype differs: something was converted with `.float()`.
#
# </details>


# %% solution="token-embedding" export
class TokenEmbedding(nn.Module):
    """Look up one learned vector per id, times sqrt(d_model) (Vaswani et al., section 3.4)."""

    def __init__(self, vocab_size: int, d_model: int) -> None:
        """Make `weight` (vocab_size, d_model), normal with standard deviation d_model**-0.5."""
        super().__init__()
        ### BEGIN SOLUTION
        self.d_model = d_model
        self.weight = nn.Parameter(torch.randn(vocab_size, d_model) / math.sqrt(d_model))
        ### END SOLUTION

    def forward(self, ids: Int[Tensor, "B N"]) -> Float[Tensor, "B N d_model"]:
        """Return the scaled vectors of these ids, shape (B, N, d_model)."""
        ### BEGIN SOLUTION
        return self.weight[ids] * math.sqrt(self.d_model)
        ### END SOLUTION


# %% test="token-embedding-parameters" points=1
torch.manual_seed(0)
embedding = TokenEmbedding(2000, 16)
names = [name for name, _ in parameters_of(embedding)]
assert "weight" in names, (
    f"weight is a parameter of the module (nn.Parameter)\nIts parameters are {names}."
)
assert_shape(embedding.weight, (2000, 16), "weight is (vocab_size, d_model): one row for each id")
count = sum(parameter.numel() for _, parameter in parameters_of(embedding))
assert count == 2000 * 16, (
    f"the module has vocab_size * d_model = 32000 numbers to learn\nYours has {count}."
)
weight = embedding.weight.detach()
assert_close(
    weight.std().item(),
    0.25,
    "the entries of weight start with standard deviation 1 / sqrt(d_model)",
    atol=0.01,
)
assert_close(weight.mean().item(), 0.0, "the entries of weight start with mean 0", atol=0.01)
farthest = weight.abs().max().item() / 0.25
assert farthest > 3.2, (  # which normal draws fail once in 10**19 times
    "the entries of weight start as normal draws: a few lie far out, beyond 3.2 deviations\n"
    f"Of your 32000 the farthest lies {farthest:.2f} deviations from 0."
)
visible_passed()
### BEGIN HIDDEN TESTS
torch.manual_seed(1)
weight = TokenEmbedding(700, 100).weight.detach()
assert_shape(weight, (700, 100), "weight is (vocab_size, d_model) for other sizes too")
assert_close(
    weight.std().item(),
    0.1,
    "the standard deviation of weight at the start depends on d_model alone",
    atol=0.004,
)
spread = torch.cat([weight.std(0), weight.std(1)])
assert ((spread > 0.05) & (spread < 0.15)).all(), (
    "every row and every column of weight starts as normal draws, the row of id 0 too\n"
    f"The deviations of yours run from {spread.min():.3g} to {spread.max():.3g}; expected about 0.1."
)
near = (weight.abs() < 0.1).double().mean().item()
assert_close(
    near,
    0.683,
    "the entries of weight start as normal draws: 68 % of them lie within one deviation",
    atol=0.02,  # eleven deviations of such a share
)
lengths = weight.norm(dim=1)
assert lengths.std() > 0.01, (
    "the entries of weight are drawn independently, so its rows differ in length\n"
    f"Yours are {lengths.min():.4f} to {lengths.max():.4f} long."
)
assert not torch.equal(weight, TokenEmbedding(700, 100).weight), (
    "two embeddings that are made one after the other start with different numbers"
)
### END HIDDEN TESTS

# %% test="token-embedding-values" points=2
embedding = TokenEmbedding(11, 16).double()
table = draw((11, 16))
assert_shape(embedding.weight, (11, 16), "weight is (vocab_size, d_model)")
with torch.no_grad():
    embedding.weight.copy_(table)
ids = torch.tensor([[3, 10, 0, 7, 3], [5, 5, 1, 2, 8]])
vectors = embedding(ids)
assert_shape(vectors, (2, 5, 16), "the output is (batch, tokens, d_model)")
assert_dtype(vectors, torch.float64, "the output has the dtype of weight")
expected = torch.stack([torch.stack([4.0 * table[int(i)] for i in row]) for row in ids])
assert_close(vectors, expected, "the vector of id i is row i of weight, times sqrt(d_model)")
visible_passed()
### BEGIN HIDDEN TESTS
embedding = TokenEmbedding(7, 9).double()
table = draw((7, 9), seed=1)
assert_shape(embedding.weight, (7, 9), "weight is (vocab_size, d_model) = (7, 9)")
with torch.no_grad():
    embedding.weight.copy_(table)
before = embedding.weight.detach().clone()
ids = torch.tensor([[0, 2, 5], [6, 2, 1]])
assert_close(
    embedding(ids),
    torch.stack([torch.stack([3.0 * table[int(i)] for i in row]) for row in ids]),
    "the look-up and the scale hold for other sizes",
)
assert_close(embedding.weight, before, "a look-up leaves weight as it was")
assert_close(ids, torch.tensor([[0, 2, 5], [6, 2, 1]]), "a look-up leaves the ids as they were")
embedding = TokenEmbedding(5, 6)
expected = embedding.weight.detach()[[4, 0, 4]][None] * 6**0.5
assert_close(
    embedding(torch.tensor([[4, 0, 4]])),
    expected,
    "with d_model = 6 the scale is the square root of 6, in float32",
)
### END HIDDEN TESTS

# %% test="token-embedding-gradients" points=1
embedding = TokenEmbedding(9, 4)
vectors = embedding(torch.tensor([[2, 5, 2], [0, 2, 7]]))
assert vectors.requires_grad, (
    "gradients flow from the output back to weight\nYour output is cut off from weight."
)
vectors.sum().backward()
gradient = embedding.weight.grad
assert gradient is not None, "after backward, weight has a gradient\nYours has none."
touched = gradient.abs().sum(1).nonzero().flatten().tolist()
assert touched == [0, 2, 5, 7], (
    "gradients reach the rows that were looked up, and only those\n"
    f"The ids were 0, 2, 5 and 7; gradients reached the rows {touched}."
)
assert_close(
    gradient[2],
    3 * gradient[5],
    "the gradients of an id that occurs three times add up",
)
embedding = TokenEmbedding(8, 5).double()
assert_sound(
    embedding,
    [torch.tensor([[2, 0, 7, 2], [1, 1, 6, 3], [5, 4, 0, 2]])],
    says="training and evaluation give the same, in the dtype of weight, and nothing is changed",
)
visible_passed()
### BEGIN HIDDEN TESTS
embedding = TokenEmbedding(6, 3)
signal = draw((2, 4, 3), dtype=torch.float32)
ids = torch.tensor([[1, 4, 4, 0], [4, 1, 5, 5]])
(embedding(ids) * signal).sum().backward()
assert embedding.weight.grad is not None, "after backward, weight has a gradient"
rows = [signal[ids == i].sum(0) for i in range(6)]
factor = embedding.weight.grad[0] / rows[0]
assert_close(
    embedding.weight.grad,
    torch.stack(rows) * factor,
    "the gradient of a row is the sum of the gradients at every place where its id stands",
)
### END HIDDEN TESTS

# %% [markdown]
# ## 1.6 From ids back to words   (2 points, about 10 minutes, difficulty 2 of 5)
#
# **Objective.** Read what a model has written.
#
# Write `decode(ids, vocabulary)`. It returns one string, its words separated by single blanks.
#
# * Reading stops at the first `<eos>`; what comes after it does not count.
# * `<bos>` and `<pad>` are left out, and nothing else. `<unk>` is kept, as the text `<unk>`: the
#   reader should see that a word is missing.
#
# <details><summary>Hint 1: a question</summary>
#
# The dictionary leads from token to id. You need the other direction: what does each of its items
# tell you?
#
# </details>
#
# <details><summary>Hint 2: a sketch</summary>
#
# Turn the dictionary round. Walk through the ids: stop, skip, or keep the token. Join what you have
# kept.
#
# </details>
#
# <details><summary>Help by symptom</summary>
#
# * `KeyError` for a number: the id was looked up in the dictionary of tokens.
# * Words appear after the end of the sentence: `<eos>` was skipped, not obeyed.
# * There are two blanks in a row: something that was left out still got its blank.
#
# </details>


# %% solution="decode"
def decode(ids: Sequence[int], vocabulary: dict[str, int]) -> str:
    """Turn ids back into a sentence.

    Args:
        ids: ids of tokens, all in the vocabulary.
        vocabulary: token to id; holds "<pad>", "<bos>" and "<eos>", with any ids.

    Returns:
        The tokens before the first <eos>, without <bos> and <pad>, separated by blanks.
    """
    ### BEGIN SOLUTION
    tokens = {i: token for token, i in vocabulary.items()}
    words = []
    for i in ids:
        if tokens[i] == "<eos>":
            break
        if tokens[i] not in ("<bos>", "<pad>"):
            words.append(tokens[i])
    return " ".join(words)
    ### END SOLUTION


# %% test="decode-words" points=1
vocabulary = {"the": 0, "<eos>": 1, "cat": 2, "<pad>": 3, "<unk>": 4, "sleeps": 5, "<bos>": 6}
sentence = decode([6, 0, 2, 5, 1], vocabulary)
assert sentence == "the cat sleeps", (
    f"the ids [6, 0, 2, 5, 1] read 'the cat sleeps'\nYours reads {sentence!r}."
)
sentence = decode([6, 0, 4, 5, 1], vocabulary)
assert sentence == "the <unk> sleeps", (
    f"an unknown word stays visible: 'the <unk> sleeps'\nYours reads {sentence!r}."
)
visible_passed()
### BEGIN HIDDEN TESTS
other = {"<pad>": 5, "<unk>": 2, "<bos>": 7, "<eos>": 0, "vois": 1, "je": 3, "<s>": 4, "le": 6}
sentence = decode([7, 3, 3, 1, 6, 4, 0], other)
assert sentence == "je je vois le <s>", (
    "another vocabulary gives other words, only <bos> and <pad> are left out, and a word that "
    f"stands twice is read twice: 'je je vois le <s>'\nYours reads {sentence!r}."
)
sentence = decode([7, 2, 2, 0], other)
assert sentence == "<unk> <unk>", (
    f"two unknown words in a row are both shown\nYours reads {sentence!r}."
)
assert len(other) == 8, "decode leaves the vocabulary as it was"
### END HIDDEN TESTS

# %% test="decode-end" points=1
vocabulary = {"the": 0, "<eos>": 1, "cat": 2, "<pad>": 3, "<unk>": 4, "sleeps": 5, "<bos>": 6}
sentence = decode([6, 0, 2, 1, 3, 3], vocabulary)
assert sentence == "the cat", (
    f"padding after the end is not read: 'the cat'\nYours reads {sentence!r}."
)
sentence = decode([6, 0, 2, 1, 5, 0], vocabulary)
assert sentence == "the cat", (
    f"reading stops at the first <eos>, whatever follows: 'the cat'\nYours reads {sentence!r}."
)
visible_passed()
### BEGIN HIDDEN TESTS
sentence = decode([6, 3, 2, 3, 5], vocabulary)
assert sentence == "cat sleeps", (
    "padding inside a row is left out, and a row without <eos> is read to its end\n"
    f"Yours reads {sentence!r}."
)
assert decode([6, 1, 2], vocabulary) == "", "a sentence without words is the empty string"
ids = [6, 2, 6, 5, 1]
sentence = decode(ids, vocabulary)
assert sentence == "cat sleeps", (
    f"<bos> is left out wherever it stands, not only in front\nYours reads {sentence!r}."
)
assert ids == [6, 2, 6, 5, 1], "decode leaves the ids as they were"
### END HIDDEN TESTS

# %% [markdown]
# ## 1.7 What becomes of the numbers   (1 point, about 10 minutes, difficulty 1 of 5)
#
# **Objective.** Predict which words end up with similar vectors, then train some.
#
# The cell below takes **your** vocabulary, ids and `TokenEmbedding`, and trains the vectors for some seconds on a plain task:
# from one word, guess the words to its left and right. Then it compares words by the cosine of their vectors. Which word will be
# most like a given one? Predict, then run.

# %%
NEIGHBOURS = (
    "one that often stands right beside it",
    "one that stands in the same places",
    "one that is spelled like it",
    "any: there is no order in it",
)


# %% solution="predicted-neighbour"
def predicted_neighbour() -> str:
    """What you expect: one of NEIGHBOURS."""
    ### BEGIN SOLUTION
    return "one that stands in the same places"
    ### END SOLUTION


# %% test="predicted-neighbour-made" points=1
neighbour = predicted_neighbour()
assert isinstance(neighbour, str), "a prediction is one of the texts in NEIGHBOURS"
assert neighbour in NEIGHBOURS, f"a prediction is one of NEIGHBOURS\nYours is {neighbour!r}."
visible_passed()

# %%
if watched():  # not while the notebook is graded
    import matplotlib.pyplot as plt

    from lab import plots

    prediction = predicted(predicted_neighbour, NEIGHBOURS)
    english = [one for one, _ in sentence_pairs(4000)]
    vocabulary = build_vocabulary(english, SPECIALS, min_freq=20)
    pairs = [
        (ids[i], ids[j])
        for ids in (encode(sentence, vocabulary) for sentence in english)
        for i in range(1, len(ids) - 1)
        for j in (i - 1, i + 1)
    ]
    words, beside = torch.tensor(pairs).T
    torch.manual_seed(0)
    embedding, guess = TokenEmbedding(len(vocabulary), 24), nn.Linear(24, len(vocabulary))
    optimizer = torch.optim.Adam([*embedding.parameters(), *guess.parameters()], lr=0.02)
    for step in range(1, 301):
        batch = torch.randint(len(words), (1024,))
        loss = nn.functional.cross_entropy(guess(embedding(words[batch])), beside[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(f"step {step}: loss {loss.item():.2f}")
    vectors = nn.functional.normalize(embedding.weight.detach(), dim=1)
    tokens = list(vocabulary)
    chosen = ["the", "this", "my", "cat", "dog", "book", "sees", "reads", "loves", "old", "tired"]
    shown = [word for word in chosen if word in vocabulary]
    alike = vectors @ vectors.T
    for word in shown:
        best = alike[vocabulary[word]].topk(4).indices[1:].tolist()
        print(f"{word:6} is most like {', '.join(tokens[i] for i in best)}")
    rows = torch.tensor([vocabulary[word] for word in shown])
    plots.use()
    plots.heatmap(alike[rows][:, rows], rows=shown, columns=shown, title="cosine of your vectors")
    compare(prediction, "look at the lists: words of one kind, which stand in the same places")
    plt.show()

# %% [markdown]
# <details><summary>What happened</summary>
#
# Two words get the same guesses if their vectors are alike, and they need the same guesses if the same words stand beside them.
# So what comes close together is what can stand in the same place: verbs with verbs, nouns with nouns. Words that stand side by
# side are not alike at all: what follows "the" is hardly what follows "cat". And the spelling never came in: to the model a word is a
# number.
#
# </details>

# %% [markdown]
# ## 1.8 How much will be unknown?   (2 points, about 25 minutes, difficulty 5 of 5)
#
# **Objective.** Estimate from the training text alone what share of new text it does not cover. (This one is a
# bonus: nothing in the model needs it.)
#
# Think of a text as $n$ independent draws from a distribution over words that you do not know. Some words
# were never drawn. What is their **share**: the probability that the next draw is a word that is not in the text?
#
# Return an estimate, made of nothing but the text, with this property: its mean over all texts of $n$ draws is exactly the mean, over all
# texts of $n - 1$ draws, of the share that is not in them. (One draw more or less makes little difference.) `tokens` is a list
# of at least one word.
#
# <details><summary>Hint 1: a question</summary>
#
# Take one token out of the text. When is it unknown to the rest?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# A text of $n$ tokens is $n$ experiments at once: each time one token is the new draw and the $n - 1$ others are the text.
# How many of these experiments meet an unknown word?
#
# </details>
# <details><summary>Help by symptom</summary>
#
# * The share comes out above 1: what do you divide by?
# * A text in which all words differ: how many of the experiments meet an unknown word?
#
# </details>


# %% solution="unseen-share"
def unseen_share(tokens: Sequence[str]) -> float:
    """Estimate the probability that the next token is a word that is not among these.

    Source: Good (1953), section 3, who gives the credit to Turing.
    """
    ### BEGIN SOLUTION
    return sum(count == 1 for count in Counter(tokens).values()) / len(tokens)
    ### END SOLUTION


# %% test="unseen-share-values" points=1
share = unseen_share(["the", "cat", "sees", "the", "dog"])
assert isinstance(share, float), "the share should be a Python float"
assert 0 <= share <= 1, f"a share lies between 0 and 1\nYours is {share}."
assert unseen_share(["a", "a", "a", "a"]) == 0, (
    "no experiment with a, a, a, a meets an unknown word"
)
visible_passed()
### BEGIN HIDDEN TESTS
for text, wanted in (("a b c d", 1.0), ("a a b b c", 0.2), ("a", 1.0), ("a b a b", 0.0)):
    share = unseen_share(text.split())
    assert abs(share - wanted) < 1e-9, (
        f"{text!r}: of all experiments that leave one token out, the share that meets an unknown word "
        f"is {wanted}\nYours is {share}."
    )
### END HIDDEN TESTS


# %% test="unseen-share-mean" points=1
def means(chances: dict[str, float], n: int) -> tuple[float, float]:
    """The mean estimate over all texts of n draws; the mean unseen share over all of n - 1."""
    estimate = missing = 0.0
    for text in itertools.product(chances, repeat=n):
        estimate += math.prod(chances[word] for word in text) * unseen_share(list(text))
    for text in itertools.product(chances, repeat=n - 1):
        unseen = sum(chance for word, chance in chances.items() if word not in text)
        missing += math.prod(chances[word] for word in text) * unseen
    return estimate, missing


estimate, missing = means({"a": 0.5, "b": 0.3, "c": 0.2}, 2)
assert abs(estimate - missing) < 1e-9, (
    "over all 9 texts of two draws, the mean estimate should be the mean share that texts of one "
    f"draw do not cover, {missing:.3f}\nYours is {estimate:.3f}."
)
visible_passed()
### BEGIN HIDDEN TESTS
for chances, n in (({"a": 0.7, "b": 0.2, "c": 0.1}, 3), ({"a": 0.6, "b": 0.4}, 3)):
    estimate, missing = means(chances, n)
    assert abs(estimate - missing) < 1e-9, (
        "with other words and lengths, too, the mean estimate should be the mean unseen share\n"
        f"Yours is {estimate:.4f}, it should be {missing:.4f}."
    )
### END HIDDEN TESTS

# %% [markdown]
# ## 1.9 Which sentences?   (2 points, about 5 minutes, difficulty 2 of 5)
#
# **Objective.** Say why the vocabulary is built from the training sentences alone.
#
# A colleague builds the vocabulary from all sentences, the held-out ones too, "so that the model
# never meets `<unk>`". In three to five sentences: what would the rows of `weight` for words that
# occur only in held-out sentences look like after training, and what would go wrong with the result
# measured on the held-out sentences? Would either be different if the words were cut into pieces, as in 1.4, with
# merges learned from all sentences?
#
# <details><summary>Hint 1: a question</summary>
#
# Which rows get a gradient in 1.5?
#
# </details>
#
# <details><summary>Hint 2: a sketch</summary>
#
# What do the held-out sentences stand for? For the pieces: which of them would never be looked up in training?
#
# </details>
#
# <details><summary>Help by symptom</summary>
#
# * Unsure about the measurement: how many unknown words are there on paper, and how many in a really new text?
#
# </details>

# %% [markdown] manual="why-training-only" points=2
# ### BEGIN SOLUTION
# Gradients reach only the rows that are looked up. A word that occurs in no training sentence is
# never looked up in training, so after training its row is still the random one it started with
# (if the table is not shared with the output layer). The model gets a vector that means nothing to
# it. Without these words in the vocabulary it gets the vector of `<unk>` instead. That one is trained
# if rare training words are left out as well (`min_freq` of 2 or more); if none is, it is random too.
#
# The held-out sentences stand for sentences that nobody has seen. If their words were used to build
# the vocabulary, the measurement is made on data that were known in advance: the share of unknown
# words is zero on paper, and on really new sentences it is not.
#
# With pieces it is milder and the same in kind: nearly all pieces occur in training words too, so few rows stay
# random; but merges made for held-out words (a whole name as one piece) are known in advance, and such a piece is never
# looked up in training.
#
# One point for the rows, one for the measurement; half of either for a sentence on pieces that says the same.
# ### END SOLUTION

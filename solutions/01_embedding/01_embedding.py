# %% [markdown]
# # 1 Tokens and embedding
#
# A Transformer computes with matrices of numbers. Here you build the way from sentences to such
# matrices: a **vocabulary**, the **ids** of a sentence, a **padded batch** with its **valid
# lengths** and **mask**, **merges** that cut words into pieces, and the **embedding** that turns each
# id into a vector. At the end you go back from ids to words, and look at a table that has learned.
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
import math
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from lab.battery import assert_sound
from lab.check import (
    assert_close,
    assert_dtype,
    assert_raises,
    assert_shape,
    draw,
    expect_no_error,
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
# ## 1.2 From words to ids   (2 points, about 10 minutes, difficulty 2 of 5)
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


# %% test="encode-words" points=1
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
    lambda: encode(long, other, max_len=-37),
    "a negative max_len is below 2: a ValueError that names max_len and its value",
    mentions=["max_len", "-37"],
)
### END HIDDEN TESTS

# %% [markdown]
# ## 1.3 A padded batch and its mask   (4 points, about 20 minutes, difficulty 2 of 5)
#
# **Objective.** Put lists of different lengths into one rectangular tensor, and remember which
# entries are real.
#
# First write `pad_batch(sequences, pad_id, max_len)`. It returns `ids` of shape $(B, N)$ and `lengths`
# of shape $(B,)$, both `torch.int64`.
#
# * Without `max_len`, $N$ is the length of the longest sequence. With `max_len`, $N$ = `max_len`
#   exactly, even if all sequences are shorter, and even if it is 0.
# * A short sequence is filled up with `pad_id` at its end; a long one is cut at its end.
# * `lengths` holds the **valid length** of each row: how many of its entries are real,
#   $\min(\text{length of the sequence}, N)$, whatever these ids are.
# * The caller's lists stay as they are.
#
# Then write `valid_mask(lengths, N)`, which says of every entry whether it is real: booleans of shape
# $(B, N)$, `True` where a real token stands, `False` where there is padding. All masks of this course
# mean the same: `True` may be looked at.
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
# are missing. Then make tensors of the lists and of the valid lengths. For the mask, ask the same of
# all positions of all rows at once: broadcasting makes $(B, N)$ of a row and a column.
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
# * `The size of tensor a ... must match`: positions or lengths need another axis.
# * One `True` too many in each row of the mask: positions start at 0.
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

# %% test="pad-batch-lengths" points=1
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


# %% solution="valid-mask"
def valid_mask(lengths: Int[Tensor, "B"], N: int) -> Bool[Tensor, "B N"]:
    """Mark the real tokens of a padded batch.

    Args:
        lengths: (B,) valid lengths, each from 0 to N.
        N: number of columns of the batch.

    Returns:
        (B, N) booleans, True = real token, False = padding.
    """
    ### BEGIN SOLUTION
    positions = torch.arange(N)  # (N,)
    return positions[None, :] < lengths[:, None]  # (B, N)
    ### END SOLUTION


# %% test="valid-mask-values" points=1
mask = valid_mask(torch.tensor([3, 1, 4]), 5)
assert_shape(mask, (3, 5), "the mask is (sequences, positions)")
assert_dtype(mask, torch.bool, "the mask is boolean (torch.bool)")
assert_close(
    mask.sum(1), torch.tensor([3, 1, 4]), "each row has as many True as its valid length says"
)
expected = torch.tensor([[1, 1, 1, 0, 0], [1, 0, 0, 0, 0], [1, 1, 1, 1, 0]], dtype=torch.bool)
assert_close(mask, expected, "True stands at the first positions of each row, for real tokens")
visible_passed()
### BEGIN HIDDEN TESTS
lengths = torch.tensor([1, 9, 0, 9, 1, 9])[::2]
mask = valid_mask(lengths, 1)
assert_shape(mask, (3, 1), "the mask has as many columns as N says, a single one too")
expected = torch.tensor([[True], [False], [True]])
assert_close(mask, expected, "a row of length 0 is all False, a row of length N is all True")
assert_dtype(mask, torch.bool, "the mask is boolean (torch.bool) for every batch")
assert_close(lengths, torch.tensor([1, 0, 1]), "valid_mask leaves the lengths as they were")
expected = torch.tensor([[True, True, False]])
single = "the mask of a single sequence is (1, N)"
assert_close(valid_mask(torch.tensor([2]), 3), expected, single)
### END HIDDEN TESTS

# %% [markdown]
# ## 1.4 Words in pieces   (4 points, about 30 minutes, difficulty 3 of 5)
#
# **Objective.** Learn from words how to cut them, so that a word that nobody has seen is no
# unknown one: byte-pair encoding, here with letters in place of bytes.
#
# A word is cut into **pieces**, at first into its letters. A **merge** is a pair of pieces that are to
# be joined wherever they are neighbours. Write three functions; the second and the third may call the
# first.
#
# * `join(pieces, pair)` returns a new list in which each such pair is one piece. It goes from left to
#   right, and what has been joined is not joined again: `a a a` with the pair `(a, a)` becomes `aa a`.
# * `learn_merges(counts, n)` returns up to `n` merges, in the order in which they are found. `counts` says
#   how often each word occurs. One step: count every place at which two pieces are neighbours, as
#   often as its word occurs (`a a a` holds two such places); take the pair that is counted most often;
#   join it in all words. **Ties**: of pairs that are counted equally often, the first in Python's
#   order of tuples is taken. A pair that is counted once may be taken too. Where no word has two
#   pieces any more, there are fewer than `n` merges. `counts` stays as it is.
# * `split_word(word, merges)` cuts a word, known or not: from its letters on, it joins each of the
#   merges, in their order. The pieces of a word, put together, are the word.
#
# <details><summary>Hint 1: a question</summary>
#
# After the first merge, which pairs of neighbours have disappeared, and which are new?
#
# </details>
#
# <details><summary>Hint 2: a sketch</summary>
#
# Keep for each word the list of its pieces. Each step counts afresh over all these lists, chooses,
# and replaces every list by its joined one. What a tie should do can be said by what you sort or
# maximise by.
#
# </details>
#
# <details><summary>Help by symptom</summary>
#
# * A rare word decides: was each place counted once, and not as often as its word?
# * The first merges are right, later ones are not: are the lists of pieces those after the last merge?
# * The pair is right unless there is a tie: `max` takes the first it meets; which is the first then?
# * An unseen word falls into too many pieces: is every merge tried, in the order of learning?
# * `max() ... empty`: all words are one piece.
#
# </details>


# %% solution="merges"
def join(pieces: Sequence[str], pair: tuple[str, str]) -> list[str]:
    """Join two pieces wherever they are neighbours, from left to right."""
    ### BEGIN SOLUTION
    joined: list[str] = []
    i = 0
    while i < len(pieces):
        step = 2 if tuple(pieces[i : i + 2]) == tuple(pair) else 1
        joined.append("".join(pieces[i : i + step]))
        i += step
    return joined
    ### END SOLUTION


def learn_merges(counts: dict[str, int], n: int) -> list[tuple[str, str]]:
    """Find up to n pairs of pieces to join, the most frequent first.

    Args:
        counts: word to number of times it occurs.
        n: most merges in the result.

    Returns:
        Pairs in the order in which they were found; of pairs that were counted equally often, the
        first in Python's order of tuples.
    """
    ### BEGIN SOLUTION
    words = {word: list(word) for word in counts}
    merges: list[tuple[str, str]] = []
    for _ in range(n):
        places: Counter[tuple[str, str]] = Counter()
        for word, pieces in words.items():
            for pair in pairwise(pieces):
                places[pair] += counts[word]
        if not places:
            break
        merges.append(min(places, key=lambda pair: (-places[pair], pair)))
        words = {word: join(pieces, merges[-1]) for word, pieces in words.items()}
    return merges
    ### END SOLUTION


def split_word(word: str, merges: Sequence[tuple[str, str]]) -> list[str]:
    """Cut a word into pieces: its letters, then all merges in their order."""
    ### BEGIN SOLUTION
    pieces = list(word)
    for pair in merges:
        pieces = join(pieces, pair)
    return pieces
    ### END SOLUTION


# %% test="merges-join" points=1
pieces = list("banana")
joined = join(pieces, ("a", "n"))
assert isinstance(joined, list), f"join returns a list\nYours is a {type(joined).__name__}."
assert joined == ["b", "an", "an", "a"], (
    "every such pair is joined: 'b a n a n a' with the pair (a, n) becomes 'b an an a'\n"
    f"Yours is {joined}."
)
assert pieces == list("banana"), "join returns a new list and leaves the pieces as they were"
joined = join(list("aaa"), ("a", "a"))
assert joined == ["aa", "a"], (
    "joining goes from left to right, and what has been joined is not joined again: 'a a a' with the "
    f"pair (a, a) becomes 'aa a'\nYours is {joined}."
)
visible_passed()
### BEGIN HIDDEN TESTS
joined = join(["th", "e", "the", "t", "he"], ("th", "e"))
assert joined == ["the", "the", "t", "he"], (
    "pieces are compared, not letters: 't he' is not the pair (th, e)\n"
    f"For 'th e the t he' and the pair (th, e) yours is {joined}."
)
joined = join(list("aaaab"), ("a", "a"))
assert joined == ["aa", "aa", "b"], (
    f"four in a row make two pairs: 'a a a a b' becomes 'aa aa b'\nYours is {joined}."
)
for few in ([], ["a"], ["b", "a"], ["ba", "b"], ["a", "ba"]):
    assert join(few, ("a", "b")) == few, (
        f"where the pair does not stand, nothing is joined\nFor {few} and the pair (a, b) yours is "
        f"{join(few, ('a', 'b'))}."
    )
pieces = ["b", "a"]
join(pieces, ("a", "b")).append("c")
assert pieces == ["b", "a"], (
    "join returns a new list, also where nothing is joined\nYours gave back the very list that it "
    "was handed: who adds to the result adds to the pieces."
)
### END HIDDEN TESTS

# %% test="merges-learn" points=2
counts = {"low": 5, "lower": 2, "newest": 6, "widest": 3}
merges = learn_merges(counts, 4)
assert merges is not None, (
    "learn_merges returns a list of pairs\nYours is None: a return is missing"
)
merges = [tuple(pair) for pair in merges]
assert merges[:1] == [("e", "s")], (
    "(e, s) and (s, t) are neighbours nine times each, in 'newest' and 'widest'; the first in order is "
    f"(e, s)\nYour first merge is {merges[:1]}."
)
assert merges[1:2] == [("es", "t")], (
    "after the first merge 'es' and 't' are neighbours nine times\n"
    f"Your second merge is {merges[1:2]}."
)
assert merges == [("e", "s"), ("es", "t"), ("l", "o"), ("lo", "w")], (
    "four merges from 'low' (5), 'lower' (2), 'newest' (6) and 'widest' (3): e s, es t, l o, lo w\n"
    f"Yours are {merges}."
)
visible_passed()
### BEGIN HIDDEN TESTS
assert counts == {"low": 5, "lower": 2, "newest": 6, "widest": 3}, (
    "learn_merges leaves the counts as they were"
)


def assert_learns(counts: dict[str, int], n: int, wanted: list[str], says: str) -> None:
    """Fail unless these merges are learned, each written 'left right'."""
    found = [" ".join(pair) for pair in learn_merges(counts, n)]
    assert found == wanted, f"{says}\nFor {counts} and n = {n} expected {wanted}, yours {found}."


assert_learns(
    {"zy": 1, "xy": 1, "ab": 1}, 3, ["a b", "x y", "z y"], "ties go by the order of tuples"
)
assert_learns(
    {"abc": 3, "bd": 3, "ab": 2},
    3,
    ["a b", "ab c", "b d"],
    "ties go by the order of tuples, whenever their pieces were found: (ab, c) is before (b, d)",
)
assert_learns({"zo": 2, "ab": 10}, 2, ["a b", "z o"], "a pair counts as often as its words occur")
assert_learns(
    {"pq": 2, "xq": 1, "xr": 1, "xs": 1, "x": 9}, 1, ["p q"], "pairs are counted, not pieces"
)
assert_learns(
    {"aaa": 2, "bc": 3},
    1,
    ["a a"],
    "every place is counted: 'aaa', twice, has four places of (a, a)",
)
assert_learns(
    {"abab": 3}, 5, ["a b", "ab ab"], "where all words are one piece, there are no further merges"
)
assert_learns({"ab": 1, "cd": 1}, 1, ["a b"], "no more than n merges are learned")
assert_learns({"ba": 4, "ab": 4, "b": 3}, 2, ["a b", "b a"], "(a, b) and (b, a) are two pairs")
assert_learns(
    {"abc": 3, "bc": 2, "abd": 4}, 2, ["a b", "ab d"], "counts are those after each merge"
)
assert_learns({"": 4, "x": 2}, 3, [], "words of one letter or none have no pairs")
assert_learns({"ab": 2}, 0, [], "with n = 0 nothing is learned")
### END HIDDEN TESTS

# %% test="merges-split" points=1
merges = [("e", "s"), ("es", "t"), ("l", "o"), ("lo", "w")]
before = list(merges)
pieces = split_word("lowest", merges)
assert merges == before, "split_word should leave the list of merges as it is"
assert pieces is not None, "split_word returns a list of pieces\nYours is None: a return is missing"
pieces = list(pieces)
assert "".join(pieces) == "lowest", (
    f"the pieces of a word, put together, are the word\nThose of 'lowest' are {pieces}."
)
assert pieces == ["low", "est"], (
    f"'lowest' is in no word of the four, and is cut into 'low' and 'est'\nYours is {pieces}."
)
visible_passed()
### BEGIN HIDDEN TESTS


def assert_splits(word: str, merges: list[tuple[str, str]], wanted: list[str], says: str) -> None:
    """Fail unless the word is cut so."""
    found = list(split_word(word, merges))
    assert found == wanted, (
        f"{says}\nFor {word!r} and {merges} yours is {found}, expected {wanted}."
    )


assert_splits("xyz", [], ["x", "y", "z"], "without merges a word falls into its letters")
assert_splits("", [("a", "b")], [], "a word without letters has no pieces")
assert_splits(
    "abc", [("b", "c"), ("a", "b")], ["a", "bc"], "the merge that was learned first is joined first"
)
assert_splits(
    "abcd",
    [("b", "c"), ("a", "b"), ("ab", "c")],
    ["a", "bc", "d"],
    "merges decide, not the longest piece that fits",
)
assert_splits(
    "ababcab", [("a", "b"), ("ab", "c")], ["ab", "abc", "ab"], "a merge is made at all its places"
)
assert_splits(
    "été!", [("t", "é")], ["é", "té", "!"], "letters that nobody has seen stay themselves"
)
### END HIDDEN TESTS

# %% [markdown]
# **Look at yours.** The cell learns merges from the words of the training sentences, with your
# functions, and cuts sentences with them. Write one of your own, with words that do not exist.

# %%
if watched():  # not while the notebook is graded
    counts = dict(Counter(word for english, _ in training for word in english.split()))
    learned = learn_merges(counts, 120)
    print("first merges:", *["".join(pair) for pair in learned[:12]])
    for sentence in ("the teacher sees the dog .", "the teaching of unseen doglets"):
        print(" | ".join("·".join(split_word(word, learned)) for word in sentence.split()))

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
# ## 1.7 What is near in a table   (1 point, about 10 minutes, difficulty 2 of 5)
#
# **Objective.** Predict what the rows of a table have learned; then train yours and look.
#
# The cell below trains **your** `TokenEmbedding` for some seconds on one task: from the two words at the
# sides of a word, guess the word. Nobody says what a word means or to what kind it belongs. Then it asks which row
# points most nearly in the direction of that of `cat` (by the cosine of the angle between them).
# Which one will it be? Let `predicted_neighbour` return one of `NEIGHBOURS`; there is a point for
# having predicted, not for being right. Then run.

# %%
NEIGHBOURS = (
    "a word that often stands beside it, such as 'the'",
    "a word that can stand in its place, such as 'dog'",
    "a word that begins like it, such as 'can'",
    "none: all angles stay about as they were drawn",
)


# %% solution="predicted-neighbour"
def predicted_neighbour() -> str:
    """What you expect: one of NEIGHBOURS."""
    ### BEGIN SOLUTION
    return "a word that can stand in its place, such as 'dog'"
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
    texts = [english.split() for english, _ in sentence_pairs(2000)]
    known = sorted({word for text in texts for word in text})
    number = {word: i for i, word in enumerate(known)}
    threes = [text[i : i + 3] for text in texts for i in range(len(text) - 2)]
    ids = torch.tensor([[number[word] for word in three] for three in threes])
    torch.manual_seed(0)
    table, output = TokenEmbedding(len(known), 16), nn.Linear(16, len(known))
    optimizer = torch.optim.Adam([*table.parameters(), *output.parameters()], lr=0.01)
    for step in range(1, 401):
        batch = ids[torch.randint(len(ids), (256,))]
        logits = output(table(batch[:, [0, 2]]).mean(1))
        loss = nn.functional.cross_entropy(logits, batch[:, 1])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(f"step {step}: loss {loss.item():.2f}")
    rows = nn.functional.normalize(table(torch.arange(len(known))).detach(), dim=-1)
    nearest = (rows @ rows[number["cat"]]).topk(4).indices.tolist()[1:]
    compare(prediction, ", ".join(known[i] for i in nearest))
    # These may be any words of the corpus: choose your own.
    shown = ["cat", "dog", "horse", "girl", "sees", "loves", "the", "my", "big", "black", "in"]
    chosen = rows[[number[word] for word in shown]]
    plots.use()
    plots.heatmap(chosen @ chosen.T, shown, shown, "cosines of your rows", signed=True)
    plt.show()

# %% [markdown]
# <details><summary>What happened</summary>
#
# The nearest rows are those of words that can stand in the same place. Two words with the same
# neighbours are asked to do the same work, so gradients move their rows the same way. *the* and
# *cat* stand side by side all the time, but do different work. Spelling plays no part: an id does not
# know its letters. The picture shows kinds of words as blocks, and nobody has named a kind.
#
# </details>

# %% [markdown]
# ## 1.8 Which sentences?   (2 points, about 20 minutes, difficulty 3 of 5)
#
# **Objective.** Judge what leaks when a tokenizer has seen the held-out sentences.
#
# Two colleagues have seen all sentences, the held-out ones too. The first builds the vocabulary of 1.1 from
# all of them, the second learns the merges of 1.4 from all of them; both train on the training sentences
# alone. In four to eight sentences: (a) which words' or pieces' rows stay untrained in each case, and
# how could you find them from `weight` at the start and at the end of training, without any sentence?
# (b) Compare the results that the two measure on the held-out sentences with what they would find on new
# ones. Which of the two misleads in what way, and how would an honest colleague do it?
#
# <details><summary>Hint 1: a question</summary>
#
# Which rows does a gradient reach (1.5)? In how many words does a piece occur, and in how many a word?
#
# </details>
#
# <details><summary>Hint 2: a sketch</summary>
#
# Take one word that occurs only in a held-out sentence. Follow it through both systems: its ids, their
# rows, what the model can do with them. Then follow a word that occurs in no sentence at all.
#
# </details>
#
# <details><summary>Help by symptom</summary>
#
# * Both seem equally bad: is a word that nobody has seen `<unk>` in both?
# * Nothing seems to leak: which number of the report is better than it would be on new sentences, such as the
#   share of unknown words or the number of pieces in a sentence?
#
# </details>

# %% [markdown] manual="why-training-only" points=2
# ### BEGIN SOLUTION
# (a) Gradients reach only the rows that are looked up. A word of held-out sentences alone is never
# looked up in training: its row stays as it was drawn (if the table is not shared with the output, and
# nothing else such as weight decay moves it). One finds it by comparing `weight` before and after: the
# difference is exactly 0. A piece occurs in many words, so nearly all pieces are looked up in training words, at
# least single letters; untrained are only pieces of which the words are all held out (or that inside training
# words are always part of a larger piece).
#
# (b) The first reports no unknown word, though on new sentences there are some; and the model reads random
# rows in place of `<unk>`'s (which is trained only if rare training words are `<unk>` as well), so the
# quality can even be worse than with the honest vocabulary. The report's share of unknown words is what misleads.
# The second has no unknown words on new sentences either (if all letters are known); but held-out words
# are cut into fewer, longer pieces than new ones will be, so lengths look a little too good. The honest
# way is to learn both from the training sentences alone and to measure once.
#
# One point for the rows and how to find them, one for a comparison that says of each what misleads.
# ### END SOLUTION

# %% [markdown]
# ## 1.9 Bonus: the likeliest pieces   (2 points, about 30 minutes, difficulty 5 of 5)
#
# **Objective.** Cut a word in the best of all ways, out of more ways than anybody can list.
#
# Some tokenizers have no merges: each piece has a probability $p$, and a word is cut so that the product
# of its pieces' probabilities is as large as it can be. Nothing in the model needs this question.
#
# Write `likeliest(word, log_p)`. `log_p` is a dictionary from piece to $\log p$ (below 0, not always
# adding up to 1). Return a pair:
#
# * the pieces of the best cut, a list of strings (in the tests no two cuts are equally good);
# * the logarithm of the sum, **over all cuts**, of the product of probabilities: how likely the word is,
#   however it is cut.
#
# If there is no cut, return `(None, -math.inf)`. The word without letters has one cut, `[]`, of probability 1.
# Words of 2000 letters should take well under a second, and their probability is far smaller than
# any number that a computer holds, so work with logarithms throughout.
#
# <details><summary>Hint 1: a question</summary>
#
# Suppose you know the best cut and the sum for each shorter beginning of the word. What can the last piece be?
#
# </details>
#
# <details><summary>Hint 2: a sketch</summary>
#
# One table over the ends $0, 1, ..., $ of the beginnings: the best score, where its last piece starts, and the logarithm
# of the sum. Pieces are at most as long as the longest in `log_p`. Follow the starts back from the end.
#
# </details>
#
# <details><summary>Help by symptom</summary>
#
# * A longer piece than the best cut has: the longest piece was taken at each place.
# * `math domain error`, or the logarithm is `-inf` for a long word: probabilities were multiplied.
# * The sum equals the best score: was the largest taken, where all should be added?
# * It never ends: each beginning is cut again and again.
#
# </details>


# %% solution="likeliest"
def likeliest(word: str, log_p: dict[str, float]) -> tuple[list[str] | None, float]:
    """Return the likeliest cut of a word, and the log-probability of the word over all cuts."""
    ### BEGIN SOLUTION
    longest = max(map(len, log_p), default=0)
    best, start, total = [0.0], [0], [0.0]
    for end in range(1, len(word) + 1):
        ways = [i for i in range(max(0, end - longest), end) if word[i:end] in log_p]
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
    ### END SOLUTION


# %% test="likeliest-cut" points=1
log_p = {piece: math.log(0.1) for piece in ("ab", "abc", "cde", "d", "e")}
before = dict(log_p)
pieces, _ = likeliest("abcde", log_p)
assert log_p == before, "likeliest should leave the dictionary log_p as it is"
assert pieces is not None, "'abcde' can be cut\nYou say that there is no cut."
assert list(pieces) == ["ab", "cde"], (
    "of 'abc d e' (0.001) and 'ab cde' (0.01) the second is the likeliest cut of 'abcde'\n"
    f"Yours is {list(pieces)}."
)
log_p = {piece: math.log(p) for piece, p in {"a": 0.1, "b": 0.2, "ab": 0.1, "abb": 0.01}.items()}
pieces, _ = likeliest("abb", log_p)
assert pieces is not None, "'abb' can be cut\nYou say that there is no cut."
assert list(pieces) == ["ab", "b"], (
    "of 'abb' (0.01), 'a b b' (0.004) and 'ab b' (0.02) the last is the likeliest cut\n"
    f"Yours is {list(pieces)}."
)
pieces, total = likeliest("abc", log_p)
assert pieces is None and total == -math.inf, (
    f"no piece holds a 'c', so 'abc' has no cut: (None, -inf)\nYours is ({pieces}, {total})."
)
visible_passed()
### BEGIN HIDDEN TESTS
log_p = {"a": -1.0, "b": -1.0, "c": -1.0, "abc": -4.0, "ab": -1.5, "bcd": -0.5, "d": -3.0}
cuts = {"abcd": ["a", "bcd"], "abc": ["ab", "c"], "bcdabc": ["bcd", "ab", "c"]}
for word, wanted in cuts.items():
    pieces, _ = likeliest(word, log_p)
    assert pieces is not None and list(pieces) == wanted, (
        f"the cut with the largest product is wanted, neither the longest piece nor the fewest pieces\n"
        f"For {word!r} expected {wanted}, yours is {pieces}."
    )
pieces, _ = likeliest("", log_p)
assert pieces is not None and list(pieces) == [], (
    f"the word without letters has one cut, []\nYours is {pieces}."
)
pieces, _ = likeliest("xyxyz", {"xy": -1.0, "xyx": -0.5, "yz": -2.0, "xyz": -3.0})
assert pieces == ["xyx", "yz"], f"'xyxyz' is cut into 'xyx yz' (-2.5)\nYours is {pieces}."
pieces, _ = likeliest("xyxyz", {"xy": -1.0, "xyx": -0.5, "z": -2.0})
assert pieces == ["xy", "xy", "z"], (
    "a good beginning that leads nowhere is given up: 'xyx' cannot be continued\n"
    f"For 'xyxyz' yours is {pieces}."
)
pieces, _ = likeliest("ab" * 1000, {"a": -2.0, "b": -3.0, "ab": -4.0, "ba": -9.0})
assert pieces == ["ab"] * 1000, "a word of 2000 letters is cut into its 1000 best pieces"
long = "abcdefghijklmnopqrstuvwxyz"
pieces, _ = likeliest(long + "a", {long: -9.0, "a": -1.0})
assert pieces == [long, "a"], "a piece may be as long as the longest in log_p, whatever that is"
for word, log_p, wanted in (
    ("ab", {}, None),
    ("", {}, []),
    ("cab", {"ab": -1.0, "b": -1.0}, None),
    ("ab", {"a": -1.0, "b": -1.0, "abab": -1.0, "bababab": -1.0}, ["a", "b"]),
):
    with expect_no_error(
        "a dictionary without pieces, or with pieces longer than the word, should be no error"
    ):
        pieces, total = likeliest(word, log_p)
    assert pieces == wanted and (total == -math.inf) == (wanted is None), (
        "without any pieces, with pieces that begin nowhere and with pieces longer than the word, the "
        f"cuts are those that there are\nFor {word!r} and the pieces {sorted(log_p)} expected "
        f"{wanted}, yours is ({pieces}, {total})."
    )
### END HIDDEN TESTS

# %% test="likeliest-sum" points=1
log_p = {piece: math.log(p) for piece, p in {"a": 0.1, "b": 0.2, "ab": 0.1, "abb": 0.01}.items()}
_, total = likeliest("abb", log_p)
assert_close(
    math.exp(total), 0.034, "the three cuts of 'abb' have 0.01, 0.004 and 0.02, together 0.034"
)
visible_passed()
### BEGIN HIDDEN TESTS
_, total = likeliest("", {"a": -1.0})
assert_close(
    float(total), 0.0, "the word without letters has one cut, of probability 1: logarithm 0"
)
_, total = likeliest("aaa", {"a": -1.0, "aa": -1.0, "aaa": -2.0})
wanted = math.log(math.exp(-3.0) + 3 * math.exp(-2.0))
assert_close(float(total), wanted, "all cuts of 'aaa' are added: a a a, a aa, aa a and aaa")
with expect_no_error("cuts of very different probabilities should be no error"):
    _, total = likeliest("ab", {"a": -500.0, "b": -500.0, "ab": -1.0})
assert_close(float(total), -1.0, "a cut that is far less likely than another adds nothing to it")
_, total = likeliest("ab" * 1000, {"a": -2.0, "b": -3.0, "ab": -4.0})
wanted = 1000 * math.log(math.exp(-5.0) + math.exp(-4.0))
assert_close(
    float(total),
    wanted,
    "a word of 2000 letters has a finite logarithm: 1000 times that of 'ab'",
    atol=1e-6,
)
### END HIDDEN TESTS

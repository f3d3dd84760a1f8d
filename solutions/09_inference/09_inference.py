# %% [markdown]
# # 9 Inference
#
# In this notebook you make a trained model write: greedily, with a beam of several hypotheses, and
# by chance. You give its decoder a memory, so that it need not read its own words again at every
# step, and you measure what it wrote. What you write here carries over: `greedy_decode`,
# `beam_search` and `use_cache` work on the finished model.
#
# **How to work.** Run the cells from top to bottom. Replace each `# YOUR CODE HERE` and the `raise`
# below it by your answer, then run the test cells that follow; their messages say what is wrong.
# The visible tests are not all tests: hidden ones, with other sizes and numbers, run when the
# notebook is graded. Each question is tested on its own, so you may leave one open and go on.
# Before you hand in, restart the kernel and run all cells.
#
# **Where to read.** The book's page *Inference* explains all of it on small examples.
#
# **Conventions.** The batch comes first. $B$ counts sentences, $M$ source tokens, $V$ the tokens of
# the vocabulary. A mask is boolean, and **True means: may attend**. A **model** is an `nn.Module`
# with two methods:
#
# - `model.encode(source)`, for ids $(B, M)$, returns `memory` $(B, M, d_\text{model})$ and
#   `memory_mask` $(B, 1, M)$: the encoder's output, and which source tokens are real.
# - `model.decode(target, memory, memory_mask)`, for target ids $(B, N)$, returns logits
#   $(B, N, V)$. Those at position $i$ are about the token that comes **after** target token $i$,
#   and depend on target tokens $0$ to $i$ only. `target`, `memory` and `memory_mask` have the same
#   number of rows.
#
# Every target begins with the token `bos_id` and should end with `eos_id`. The tests often use a
# model of the class `Scripted` below, which looks its logits up and takes notes of how it is used.

# %% setup
import copy
import itertools
import math
import string
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from lab.blocks import (
    Decoder,
    DecoderLayer,
    MultiHeadAttention,
    PositionalEncoding,
    TokenEmbedding,
    scaled_dot_product_attention,
)
from lab.check import (
    assert_close,
    assert_dtype,
    assert_raises,
    assert_shape,
    draw,
    expect_no_error,
    visible_passed,
)

Rule = Callable[[list[int], list[int]], list[float]]  # source ids, target ids so far -> logits


class Notes:
    """What was asked of a model."""

    def __init__(self) -> None:
        self.encoded = 0  # how often `encode` was called
        self.longest = 0  # most target tokens that `decode` was ever given in one row
        self.started: set[int] = set()  # first tokens of all rows that `decode` was given
        self.recorded = False  # whether autograd was on


class Scripted(nn.Module):
    """A stand-in for a trained model: a rule says the logits of the token that comes next.

    Like a real one it gives other answers in training mode, and records a graph if it is let.
    """

    def __init__(self, rule: Rule, pad_id: int = 9) -> None:
        super().__init__()
        self.rule, self.pad_id = rule, pad_id
        self.gain = nn.Parameter(torch.ones((), dtype=torch.float64))
        notes = Notes()
        self._kept = lambda: notes  # its copies write into the same ones
        self.eval()

    @property
    def notes(self) -> Notes:
        """What was asked of it so far; who changes that changes a copy."""
        return copy.deepcopy(self._kept())

    def encode(self, source: Int[Tensor, "B M"]) -> tuple[Tensor, Bool[Tensor, "B 1 M"]]:
        self._kept().encoded += 1
        memory = self.gain * source.unsqueeze(-1).expand(-1, -1, 2)
        self._kept().recorded |= memory.requires_grad
        return memory, (source != self.pad_id).unsqueeze(1)

    def decode(self, target: Tensor, memory: Tensor, memory_mask: Tensor) -> Tensor:
        if not len(target) == len(memory) == len(memory_mask):
            raise ValueError(
                f"target has {len(target)} rows, memory {len(memory)}, memory_mask "
                f"{len(memory_mask)}; all three must have as many"
            )
        rows = []
        for ids, words, real in zip(target.tolist(), memory, memory_mask[:, 0], strict=True):
            source = [round(word) for word in words[real, 0].tolist()]
            rows.append([self.rule(source, ids[: i + 1]) for i in range(len(ids))])
            self._kept().started.add(ids[0])
        self._kept().longest = max(self._kept().longest, target.shape[1])
        logits = self.gain * torch.tensor(rows, dtype=torch.float64)  # (B, N, V)
        self._kept().recorded |= logits.requires_grad
        return -logits if self.training else logits


def recite(answers: dict[tuple[int, ...], list[int]], vocab_size: int = 11) -> Rule:
    """A rule that prefers the next token of an answer, as long as all before it is right."""

    def rule(source: list[int], ids: list[int]) -> list[float]:
        answer, n = answers.get(tuple(source), []), len(ids) - 1
        token = answer[n] if n < len(answer) and ids[1:] == answer[:n] else 0
        return [3.0 if i == token else 0.1 * i for i in range(vocab_size)]

    return rule


def babble(vocab_size: int, seed: int = 0) -> Rule:
    """A rule whose logits look random, but are always the same for the same ids."""
    known: dict[int, list[float]] = {}

    def rule(source: list[int], ids: list[int]) -> list[float]:
        number = seed
        for token in [*source, vocab_size, *ids]:
            number = (31 * number + token + 1) % 1_000_003
        if number not in known:
            known[number] = draw((vocab_size,), seed=number).tolist()
        return known[number]

    return rule


class TinyModel(nn.Module):
    """A small model with random weights, in double precision; only its decoder has layers."""

    def __init__(self, vocab_size: int, pad_id: int, num_layers: int = 2, seed: int = 0) -> None:
        super().__init__()
        self.pad_id = pad_id
        self.embedding = TokenEmbedding(vocab_size, 12)
        self.position = PositionalEncoding(draw((20, 12), seed=seed))
        self.decoder = Decoder(lambda: DecoderLayer(12, 4, 20, dropout=0.0), num_layers)
        self.double()
        with torch.no_grad():
            for i, parameter in enumerate(self.parameters()):
                parameter.copy_(0.7 * draw(tuple(parameter.shape), seed=100 * seed + i))

    def encode(self, source: Tensor) -> tuple[Tensor, Tensor]:
        return self.position(self.embedding(source)), (source != self.pad_id).unsqueeze(1)

    def decode(
        self, target: Tensor, memory: Tensor, memory_mask: Tensor, offset: int = 0
    ) -> Tensor:
        """`offset` is the position of the first token of `target`; each sees itself and those before."""
        n = target.shape[1]
        x = self.position(self.embedding(target), offset)  # (B, N, 12)
        causal = torch.ones(n, n, dtype=torch.bool).tril()  # (N, N)
        return F.linear(self.decoder(x, memory, causal, memory_mask), self.embedding.weight)


# %% [markdown]
# ## 9.1 Greedy decoding   (4 points, about 25 minutes, difficulty 2 of 5)
#
# **Objective.** Write a batch of sentences, at every step the likeliest token.
#
# `greedy_decode` gets source ids $(B, M)$ and returns $B$ lists of ids. The rules:
#
# - Encode the whole batch **once**. Then decode step by step: row by row, the target begins as
#   `[bos_id]`, and each step appends the token with the largest logit at the **last** position.
# - A sentence is over when `eos_id` is chosen. Rows end at different steps; the others go on. When all
#   have ended, no further step is made.
# - At most `max_len` tokens are chosen for each row, `eos_id` included. With `max_len=0` all lists are empty.
# - The lists contain neither the first `bos_id` nor `eos_id` nor anything that came after it.
# - The model is in evaluation mode while you use it, and afterwards in the mode in which you found
#   it (`model.training` tells). No gradients are recorded.
#
# `trainer.decoding`, `lab.small_runs` and `lab.translator`, which have ready searches, are not allowed here.
#
# <details><summary>Hint 1: a question</summary>
#
# In a batch, one row has ended and another has not. The tensor of targets stays a rectangle: what may
# stand in the ended row from now on, and when do you remove it?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# One loop of at most `max_len` rounds around a tensor of ids that grows by one column each time, and a boolean per
# row that remembers whether the row has ended. Cut the lists when the loop is over.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - Nonsense from the second token on: whose logits do you look at, and did you hand on the whole target?
# - Nonsense everywhere, differing from what you expect in every token: in which mode is the model?
# - A row is too short: it stopped because another one did. Too long: it went on after its end.
# - One token too many or too few: count the rounds for `max_len=1`.
# - *target has 3 rows, memory 2*: the rows of the three arguments belong together.
#
# </details>


# %% solution="greedy-decode" export
def greedy_decode(
    model,  # an nn.Module with encode and decode
    source: Int[Tensor, "B M"],
    bos_id: int,
    eos_id: int,
    max_len: int,
) -> list[list[int]]:
    """Write each sentence by always choosing the likeliest token; at most max_len of them.

    Returns the ids without bos_id and eos_id.
    """
    ### BEGIN SOLUTION
    was_training = model.training
    model.eval()
    with torch.no_grad():
        memory, memory_mask = model.encode(source)
        ids = torch.full((len(source), 1), bos_id, device=source.device)
        ended = torch.zeros(len(source), dtype=torch.bool, device=source.device)
        for _ in range(max_len):
            logits = model.decode(ids, memory, memory_mask)[:, -1]  # (B, V)
            chosen = logits.argmax(-1)  # (B,)
            ids = torch.cat([ids, chosen.unsqueeze(1)], dim=1)
            ended |= chosen == eos_id
            if ended.all():
                break
    model.train(was_training)
    # rows that ended early went on beside the others; what they wrote since then does not count
    rows = ids[:, 1:].tolist()
    return [row[: row.index(eos_id)] if eos_id in row else row for row in rows]
    ### END SOLUTION


# %% test="greedy-decode-values" points=2
model = Scripted(recite({(5, 6): [3, 4, 7], (8,): [2, 7, 1, 1]}))
source = torch.tensor([[5, 6], [8, 9]])  # 9 is padding here
written = greedy_decode(model, source, bos_id=10, eos_id=7, max_len=5)
assert isinstance(written, list) and len(written) == 2, "two sentences in, two lists out"
assert written[1] == [2], (
    "the second sentence should be [2]: it ends when 7 is chosen, and what comes later does not "
    f"count\nYours is {written[1]}."
)
assert written[0] == [3, 4], (
    "the first sentence should be [3, 4]: it goes on after the second has ended\n"
    f"Yours is {written[0]}."
)
assert model.notes.started == {10}, "every target handed to decode should begin with bos_id"
visible_passed()
### BEGIN HIDDEN TESTS
model = Scripted(babble(11, seed=4))
source = torch.tensor([[5, 6, 2], [3, 9, 9], [4, 8, 9], [1, 9, 9], [6, 6, 6]])
before = source.clone()
written = greedy_decode(model, source, bos_id=10, eos_id=7, max_len=12)
for row, got in zip(source.tolist(), written, strict=True):
    ids = [10]
    while len(ids) <= 12 and ids[-1] != 7:
        scores = babble(11, seed=4)([token for token in row if token != 9], ids)
        ids.append(scores.index(max(scores)))
    wanted = [token for token in ids[1:] if token != 7]
    assert list(got) == wanted, (
        "in a batch of padded sources, each sentence should hold the likeliest token of each step, "
        "whichever it is, until the first end token, as it would alone"
        f"\nSource {row}: yours is {got}, expected {wanted}."
    )
assert torch.equal(source, before), "greedy_decode should leave the source unchanged"
model = Scripted(recite({(5,): [3, 0, 0, 4], (8,): [0, 7]}))
cut = greedy_decode(model, torch.tensor([[5], [8]]), bos_id=10, eos_id=7, max_len=4)
assert [list(row) for row in cut] == [[3, 0, 0, 4], [0]], (
    "0 is a token like any other, also in a sentence that is cut at max_len: expected [3, 0, 0, 4] "
    f"and [0]\nYours are {cut}."
)
everything = [token for row in written for token in row]
assert all(isinstance(token, int) for token in everything), "the lists should hold Python integers"
### END HIDDEN TESTS

# %% test="greedy-decode-stops" points=1
model = Scripted(recite({(5,): [3, 4, 7, 2, 2], (8,): [7, 1, 1, 1]}))
greedy_decode(model, torch.tensor([[5], [8]]), bos_id=10, eos_id=7, max_len=9)
assert model.notes.longest == 3, (
    "when all sentences have ended, decoding should stop: here bos, 3, 4 is the longest target "
    f"that decode needs\nYours went on to {model.notes.longest} tokens."
)
visible_passed()
### BEGIN HIDDEN TESTS
for max_len in (0, 2, 5):
    model = Scripted(recite({(5,): [3, 4, 2, 7], (8,): [6, 5, 4, 3, 2, 1]}))
    written = greedy_decode(model, torch.tensor([[5], [8]]), 10, 7, max_len)
    wanted = [[3, 4, 2][:max_len], [6, 5, 4, 3, 2, 1][:max_len]]
    assert written == wanted, (
        f"with max_len={max_len}, a sentence that has not ended by then should have exactly "
        f"{max_len} tokens\nYours are {written}, expected {wanted}."
    )
    assert model.notes.longest <= max_len, f"max_len={max_len} should mean at most {max_len} steps"
### END HIDDEN TESTS

# %% test="greedy-decode-economy" points=1
model = Scripted(recite({(5,): [3, 4, 7]}))
model.train()
written = greedy_decode(model, torch.tensor([[5]]), bos_id=10, eos_id=7, max_len=5)
assert written == [[3, 4]], "the model should be in evaluation mode while it writes"
assert model.notes.encoded == 1, (
    f"the source should be encoded once, not {model.notes.encoded} times"
)
visible_passed()
### BEGIN HIDDEN TESTS
assert model.training, "a model found in training mode should be left in training mode"
other = Scripted(recite({(6,): [8, 7]}))
written = greedy_decode(other, torch.tensor([[6]]), bos_id=10, eos_id=7, max_len=5)
assert written == [[8]] and other.notes.encoded == 1, (
    "another source should be written in its own words, and be encoded once, too"
)
for is_training, max_len in ((False, 1), (True, 1), (True, 0)):
    model.train(is_training)
    greedy_decode(model, torch.tensor([[5]]), 10, 7, max_len)
    assert model.training is is_training, (
        f"a model found in {'training' if is_training else 'evaluation'} mode should be left in it, "
        f"also where max_len={max_len} cuts the sentence off"
    )
assert not model.notes.recorded, "no gradients should be recorded while the model writes"
### END HIDDEN TESTS

# %% [markdown]
# ## 9.2 Beam search   (6 points, about 40 minutes, difficulty 4 of 5)
#
# **Objective.** Keep several hypotheses alive, and find a sentence with a better score than the
# greedy one.
#
# One sentence at a time: `source` is $(1, M)$. A **hypothesis** is a target that starts with
# `bos_id`, together with its log-probability: the sum of the logs of the probabilities of all its
# tokens after `bos_id`. In the beginning there is one live hypothesis, `bos_id` alone. In each of at
# most `max_len` steps:
#
# 1. Extend every live hypothesis by every token of the vocabulary.
# 2. Of all these extensions together, keep the `beam_size` with the largest log-probability (all, if
#    there are fewer).
# 3. Of those kept, the ones that end in `eos_id` are **finished**: put them aside for good. The
#    others are the live ones of the next step. If none is left, stop.
#
# With `max_len=0` there is no step: no ids, and score 0.
#
# The winner is the finished hypothesis with the largest **score**; the unfinished ones count only if
# none has finished at all. The score is that of Wu et al. (2016), which Vaswani et al. used with
# $\alpha = 0.6$ and four hypotheses:
#
# $$\text{score} = \frac{\log P}{\text{lp}(n)} \qquad\qquad \text{lp}(n) = \left(\frac{5 + n}{6}\right)^{\alpha}$$
#
# Here $n$ counts the tokens after `bos_id`, **with** `eos_id`, and $\alpha$ is `length_penalty`. Return the
# winner's ids, without `bos_id` and `eos_id`, and its score, a Python float. Encode once, treat modes
# and gradients as in 9.1, and write the function so that it stands alone. There are no ties in the tests, and logits may be so large
# that $e$ to their power is no float.
# `trainer.decoding`, `lab.small_runs` and `lab.translator` are not allowed here.
#
# <details><summary>Hint 1: a question</summary>
#
# With $k$ live hypotheses you have a table of $k \times V$ log-probabilities and want its largest
# entries, wherever they are. If you number the entries row by row, which row and which column has entry
# number 17?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Keep a tensor of ids $(k, n)$ and one of log-probabilities $(k)$. Decode all $k$ rows at once; the
# one sentence's memory and mask must be repeated to $k$ rows. Turn the last position's logits into logs of
# probabilities, add each row's own total, flatten, and take the largest. Each entry has a parent (row)
# and a token (column): the new ids are the parent's ids and the token.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - *selected index k out of range*: in the first step there are only $V$ extensions.
# - The first step gives `beam_size` equal hypotheses: it should start from one, not from many.
# - The score is positive: logits are no log-probabilities.
# - Beam size 1 differs from greedy: with one hypothesis, one ending is the end.
# - Sentences are mixed from two hypotheses: whose ids do you extend?
# - The right sentence, another score: does $n$ count the end token? Is the penalty used once, for the
#   whole sentence?
# - The result contains tokens after an end, or is too short to be the best: what happens to finished
#   hypotheses, and when do you compare them?
#
# </details>


# %% solution="beam-search" export
def beam_search(
    model,  # an nn.Module with encode and decode
    source: Int[Tensor, "1 M"],
    bos_id: int,
    eos_id: int,
    max_len: int,
    beam_size: int = 4,
    length_penalty: float = 0.6,
) -> tuple[list[int], float]:
    """Write one sentence, keeping the beam_size most probable hypotheses at each step.

    Returns the best finished one's ids, without bos_id and eos_id, and its score:
    log-probability / ((5 + n) / 6) ** length_penalty (Wu et al. 2016, section 7).
    """
    ### BEGIN SOLUTION
    was_training = model.training
    model.eval()
    finished: list[tuple[float, list[int]]] = []  # score, ids
    with torch.no_grad():
        memory, memory_mask = model.encode(source)
        live = torch.full((1, 1), bos_id, device=source.device)  # (k, n + 1)
        log_probs = torch.zeros(1, device=source.device)  # (k,)
        penalty = 1.0
        for n in range(1, max_len + 1):
            penalty = ((5 + n) / 6) ** length_penalty
            k = len(live)
            repeated = memory.expand(k, -1, -1), memory_mask.expand(k, -1, -1)
            logits = model.decode(live, *repeated)[:, -1]  # (k, V)
            totals = log_probs.unsqueeze(1) + logits.log_softmax(-1)  # (k, V)
            log_probs, numbers = totals.flatten().topk(min(beam_size, totals.numel()))
            tokens = numbers % totals.shape[1]
            live = torch.cat([live[numbers // totals.shape[1]], tokens.unsqueeze(1)], dim=1)
            ended = tokens == eos_id
            for ids, log_prob in zip(live[ended].tolist(), log_probs[ended].tolist(), strict=True):
                finished.append((log_prob / penalty, ids[1:-1]))
            live, log_probs = live[~ended], log_probs[~ended]
            if not len(live):
                break
        if not finished:
            cut_off = zip(live.tolist(), log_probs.tolist(), strict=True)
            finished = [(log_prob / penalty, ids[1:]) for ids, log_prob in cut_off]
    model.train(was_training)
    score, ids = max(finished)
    return ids, score
    ### END SOLUTION


# %% test="beam-search-exhaustive" points=2
after = {  # what comes next, as probabilities of tokens 0 (the end), 1, 2 and 3 (the beginning)
    (3,): [0.01, 0.57, 0.41, 0.01],
    (3, 1): [0.05, 0.47, 0.45, 0.03],
    (3, 2): [0.01, 0.03, 0.95, 0.01],
}


def toy(source: list[int], ids: list[int]) -> list[float]:
    """Two tokens, then the end; logits are logs of probabilities, plus a constant."""
    return [math.log(p) + 1.5 for p in after.get(tuple(ids), [0.97, 0.01, 0.01, 0.01])]


ids, score = beam_search(Scripted(toy), torch.tensor([[5]]), 3, 0, 4, 2, length_penalty=0.0)
assert ids == [2, 2], (
    "the first step's likeliest token is 1, but [2, 2] is the likelier sentence: 0.41 x 0.95 x "
    f"0.97 = 0.378 against 0.57 x 0.47 x 0.97 = 0.260\nYours is {ids}."
)
assert_close(
    score,
    math.log(0.41 * 0.95 * 0.97),
    "without length penalty, the score should be the log of the sentence's probability",
    atol=1e-5,
)
visible_passed()
### BEGIN HIDDEN TESTS
for seed, alpha in ((0, 0.0), (1, 0.6), (4, 2.0)):
    rule, totals = babble(4, seed=seed), {}
    for n in range(1, 5):
        for words in itertools.product((1, 2, 3), repeat=n - 1):
            ids = [3, *words, 0]
            totals[words] = sum(
                torch.tensor(rule([5], ids[:i]), dtype=torch.float64).log_softmax(0)[ids[i]].item()
                for i in range(1, n + 1)
            )
    scores = {ids: total / ((6 + len(ids)) / 6) ** alpha for ids, total in totals.items()}
    best = max(scores, key=lambda ids: scores[ids])
    ids, score = beam_search(
        Scripted(rule), torch.tensor([[5]]), 3, 0, 4, beam_size=256, length_penalty=alpha
    )
    assert ids == list(best), (
        "a beam as large as the number of all sentences (4 tokens, at most 4 steps) should find "
        f"the best finished one of all\nYours is {ids}, expected {list(best)}."
    )
    assert_close(
        score,
        scores[best],
        "the best sentence's score should be its log-probability divided by the penalty",
        atol=1e-5,
    )
### END HIDDEN TESTS

# %% test="beam-search-greedy" points=1
model = Scripted(recite({(5, 6): [3, 4, 7, 1]}))
model.train()
ids, score = beam_search(model, torch.tensor([[5, 6, 9]]), 10, 7, max_len=6, beam_size=1)
assert ids == [3, 4], (
    f"a beam of one hypothesis should write what greedy decoding writes, here [3, 4]\nYours is {ids}."
)
assert model.notes.encoded == 1, (
    f"the source should be encoded once, not {model.notes.encoded} times"
)
assert model.notes.started == {10}, "every hypothesis handed to decode should begin with bos_id"
visible_passed()
### BEGIN HIDDEN TESTS
assert model.training and not model.notes.recorded, (
    "beam search should leave the model in the mode in which it was, and record no gradients"
)
for seed, alpha in ((0, 0.6), (1, 12.0), (2, 12.0), (3, 0.6)):
    model, source = Scripted(babble(6, seed=seed)), torch.tensor([[2, 4, 3]])
    model.train()
    got, _ = beam_search(model, source, 5, 0, max_len=7, beam_size=1, length_penalty=alpha)
    assert model.training, (
        "beam search should leave the model in training mode if it was in it, also where max_len "
        "cuts the sentence off"
    )
    assert source.tolist() == [[2, 4, 3]], "beam search should leave the source unchanged"
    ids = [5]
    while len(ids) <= 7 and ids[-1] != 0:
        scores = babble(6, seed=seed)([2, 4, 3], ids)
        ids.append(scores.index(max(scores)))
    wanted = [token for token in ids[1:] if token != 0]
    assert got == wanted, (
        "a beam of one hypothesis should write exactly what greedy decoding writes, until the end "
        f"token or max_len, with any length penalty\nYours is {got}, expected {wanted}."
    )
### END HIDDEN TESTS

# %% test="beam-search-length" points=2
probabilities = {(3,): [0.45, 0.54, 0.005, 0.005], (3, 1): [0.8, 0.1, 0.05, 0.05]}


def short_or_long(source: list[int], ids: list[int]) -> list[float]:
    """The empty sentence has probability 0.45; the sentence [1] has 0.54 x 0.8 = 0.432."""
    return [math.log(p) for p in probabilities.get(tuple(ids), [0.97, 0.01, 0.01, 0.01])]


wanted = {0.0: ([], math.log(0.45)), 1.0: ([1], math.log(0.432) / (7 / 6))}
for alpha, (sentence, value) in wanted.items():
    ids, score = beam_search(
        Scripted(short_or_long), torch.tensor([[5]]), 3, 0, 4, 3, length_penalty=alpha
    )
    assert ids == sentence, (
        f"with length_penalty={alpha}, the winner should be {sentence}: log-probabilities "
        f"{math.log(0.45):.4f} for [] and {math.log(0.432):.4f} for [1], divided by "
        f"((5 + n) / 6) ** {alpha} with n = 1 and 2\nYours is {ids}."
    )
    assert_close(
        score, value, f"with length_penalty={alpha}, the winner's score is wrong", atol=1e-5
    )
visible_passed()
### BEGIN HIDDEN TESTS
recited = recite({(5,): [3, 4, 6, 2, 7]})


def line(source: list[int], ids: list[int]) -> list[float]:
    """Large logits: the exponential of one is no float."""
    return [logit + 800 for logit in recited(source, ids)]


ids, score = beam_search(Scripted(line), torch.tensor([[5]]), 10, 7, 6, 2, length_penalty=1.3)
total = sum(
    torch.tensor(line([5], [10, 3, 4, 6, 2][: i + 1]), dtype=torch.float64)
    .log_softmax(0)[token]
    .item()
    for i, token in enumerate([3, 4, 6, 2, 7])
)
assert ids == [3, 4, 6, 2], (
    "a sentence that is by far the likeliest should win with any penalty, and with large logits"
)
assert_close(
    score,
    total / ((5 + 5) / 6) ** 1.3,
    "for four words and the end token, the score should be log P / ((5 + 5) / 6) ** alpha",
    atol=1e-5,
)
rare = [-200.0, 0.0, 1.0, 0.5]  # the end token is the first
_, score = beam_search(Scripted(lambda _, ids: rare), torch.tensor([[5]]), 3, 0, 1, 4, 0.0)
assert_close(
    score,
    torch.tensor(rare, dtype=torch.float64).log_softmax(0)[0].item(),
    "the log-probability of a token that is next to impossible should count as it is, with nothing added",
    atol=1e-3,
)
### END HIDDEN TESTS

# %% test="beam-search-rules" points=1
model = Scripted(babble(5, seed=2))
ids, score = beam_search(model, torch.tensor([[3, 1]]), 4, 0, max_len=6, beam_size=3)
assert isinstance(ids, list) and isinstance(score, float), "return a list of ids and a float"
assert all(type(i) is int for i in ids), f"an id is a whole number (int)\nYours are {ids}."
assert 0 not in ids and len(ids) <= 6, (
    "the ids should hold no end token, and at most max_len tokens"
)
assert math.isfinite(score) and score < 0, "the score of a sentence should be finite and negative"
visible_passed()
### BEGIN HIDDEN TESTS
for seed in range(10):
    beam_size, max_len = (2, 3, 5)[seed % 3], (2, 5)[seed % 2] if seed else 0
    alpha = (0.0, 0.6, 3.0)[seed // 2 % 3]
    rule = babble(5, seed=seed)
    live, done = [(0.0, [4])], []
    for _ in range(max_len):
        extended = []
        for total, ids in live:
            logs = torch.tensor(rule([3, 1], ids), dtype=torch.float64).log_softmax(0).tolist()
            extended += [(total + log, [*ids, token]) for token, log in enumerate(logs)]
        kept = sorted(extended, reverse=True)[:beam_size]
        done += [pair for pair in kept if pair[1][-1] == 0]
        live = [pair for pair in kept if pair[1][-1] != 0]
    scored = [(total / ((4 + len(ids)) / 6) ** alpha, ids) for total, ids in done or live]
    value, ids = max(scored)
    wanted = [token for token in ids[1:] if token != 0]
    model = Scripted(rule).train(max_len == 0)
    got, score = beam_search(model, torch.tensor([[3, 1]]), 4, 0, max_len, beam_size, alpha)
    assert model.training is (max_len == 0), (
        "beam search should leave the model in the mode in which it was, also with max_len=0"
    )
    assert got == wanted, (
        "beam search should follow its three steps: keep the likeliest extensions of all live "
        "hypotheses, put the finished ones aside for good, compare scores at the very end\n"
        f"beam_size={beam_size}, max_len={max_len}, length_penalty={alpha}: yours is {got}, "
        f"expected {wanted}."
    )
    assert_close(score, value, "the score should be that of the sentence returned", atol=1e-5)
    assert isinstance(score, float), "the score should be a float, finished or not"
after = {(3,): [0.3, 0.4, 0.29, 0.01], (3, 1): [0.34, 0.35, 0.3, 0.01]}
after |= {(3, 1, 1): [0.01, 0.98, 0.005, 0.005], (3, 1, 1, 1): [0.98, 0.01, 0.005, 0.005]}
ids, _ = beam_search(Scripted(toy), torch.tensor([[5]]), 3, 0, 6, 2, length_penalty=3.0)
assert ids == [1, 1, 1], (
    "the search goes on as long as a live hypothesis is left, however many have finished"
)
### END HIDDEN TESTS

# %% [markdown]
# ## 9.3 When may the search stop?   (2 points, about 15 minutes, difficulty 3 of 5)
#
# **Objective.** Stop a beam search as soon as its winner is certain, and not earlier.
#
# The search of 9.2 goes on until no live hypothesis is left. Often the winner has been found long
# before. After a step, `best` is the score of the best finished hypothesis, `log_probs` are the
# log-probabilities of the live ones, each of `n` tokens after `bos_id`. They may still grow, to at most
# `max_len` tokens, `eos_id` included; `n` is less than `max_len`. Return True if **none** of them can end with a score
# above `best`, whatever the model says in the steps to come, and False if one could. (A model can be as good
# as certain, so allow a token to cost nothing.)
#
# The score is that of 9.2, $\log P / \text{lp}(n)$ with $\text{lp}(n) = ((5 + n) / 6)^\alpha$. `length_penalty` is
# $\alpha$ and may be any number: above 0 it favours long sentences, below 0 short ones.
#
# <details><summary>Hint 1: a question</summary>
#
# A live hypothesis has the log-probability $-4$. What can it be in the end, at best? Which final length makes
# most of it?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# The same log-probability divided by the largest penalty that can still come: which length has that, if $\alpha$ is
# above 0, and which if it is below? The best of the live hypotheses decides.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - It stops too early: a negative number divided by a larger one is a larger number.
# - Right for $\alpha \ge 0$ only: where $\alpha$ is below 0, lp falls with the length.
# - Off by one there: the next token that a hypothesis gets counts as well, be it the end.
#
# </details>


# %% solution="may-stop"
def may_stop(
    best: float, log_probs: Sequence[float], n: int, max_len: int, length_penalty: float
) -> bool:
    """Whether no live hypothesis can still end with a score above that of the best finished one.

    Args:
        best: score of the best finished hypothesis.
        log_probs: of the live hypotheses.
        n: how many tokens each of them has so far.
        max_len: how many a finished one may have, the end token included.
        length_penalty: exponent of the length penalty; any number.
    """
    ### BEGIN SOLUTION
    length = max_len if length_penalty > 0 else n + 1
    largest = ((5 + length) / 6) ** length_penalty
    return all(log_prob / largest <= best for log_prob in log_probs)
    ### END SOLUTION


# %% test="may-stop-long" points=1
live = [-2.5, -3.0]
assert may_stop(-2.0, live, 3, 9, length_penalty=0.0) is True, (
    "without penalty, hypotheses at -2.5 and -3 cannot come above a finished one at -2"
)
assert live == [-2.5, -3.0], "may_stop should leave the list of log-probabilities as it is"
assert may_stop(-2.0, [-2.5, -1.5], 3, 9, length_penalty=0.0) is False, (
    "without penalty, the hypothesis at -1.5 can still come above -2, though the other cannot"
)
assert may_stop(-2.0, [-2.5], 3, 9, length_penalty=1.0) is False, (
    "alpha 1: with one more token lp is 9 / 6, so -2.5 can become -1.67, above -2"
)
assert may_stop(-2.0, [-4.0, -5.0], 3, 9, length_penalty=1.0) is False, (
    "alpha 1, at most 9 tokens: lp is 14 / 6, so -4 can still become -1.71, above -2"
)
visible_passed()
### BEGIN HIDDEN TESTS
for best, log_probs, n, max_len, alpha, wanted in (
    (-2.0, [-1.5], 3, 9, 0.0, False),
    (-2.0, [-5.0, -4.7], 3, 9, 1.0, True),
    (-2.0, [-5.0, -4.6], 3, 9, 1.0, False),  # -4.667 is the bound
    (-2.0, [-4.6, -5.0], 8, 9, 1.0, False),
    (-1.0, [-2.4], 2, 30, 0.6, False),  # lp is 2.907
    (-1.0, [-3.0, -4.0], 2, 30, 0.6, True),
    (-2.0, [-2.0], 1, 5, 0.0, True),
):
    answer = may_stop(best, log_probs, n, max_len, alpha)
    assert bool(answer) == wanted, (
        "the search may stop when the best live hypothesis, at the length that suits it best, scores "
        f"no more than the best finished one\nbest={best}, log_probs={log_probs}, n={n}, "
        f"max_len={max_len}, length_penalty={alpha}: yours is {answer}, expected {wanted}."
    )
### END HIDDEN TESTS

# %% test="may-stop-short" points=1
assert may_stop(-2.0, [-1.9], 3, 9, length_penalty=-1.0) is True, (
    "alpha -1 makes short sentences better: -1.9 can become -1.9 x 9 / 6 = -2.85 at best"
)
visible_passed()
### BEGIN HIDDEN TESTS
for best, log_probs, n, max_len, alpha, wanted in (
    (-2.0, [-1.3], 3, 9, -1.0, False),  # -1.95 with the very next token
    (-2.0, [-1.4, -1.34], 3, 9, -1.0, True),  # -2.01
    (-3.0, [-2.0, -1.0], 1, 20, -2.0, False),
    (-3.0, [-2.3], 1, 20, -2.0, True),
):
    answer = may_stop(best, log_probs, n, max_len, alpha)
    assert bool(answer) == wanted, (
        "with alpha below 0, the shortest sentence that a live hypothesis can become scores best: "
        f"n + 1 tokens\nbest={best}, log_probs={log_probs}, n={n}, length_penalty={alpha}: yours is "
        f"{answer}, expected {wanted}."
    )
### END HIDDEN TESTS

# %% [markdown]
# ## 9.4 A cache for keys and values   (6 points, about 45 minutes, difficulty 4 of 5)
#
# **Objective.** Let a decoder read only the new token at each step, and still give the logits that it
# would give for the whole target.
#
# A `CachedAttention` takes the place of an attention, with **the same** weights, and remembers keys and values
# between calls. `forward` gets the same arguments as before and returns the same pair, output and
# weights; only that `query`, `key` and `value` now stand for the **new** tokens.
#
# - With `grows=True` it takes the place of a self-attention. The new tokens are projected, and their keys and
#   values go **behind** those of all earlier calls. The queries of the new tokens meet all of them. `mask`
#   broadcasts to $(B, n, n)$ and says which *new* tokens the $n$ new ones may attend to; all earlier
#   ones may be attended to. (None hides nothing.) $n$ may be more than 1, at the start and later.
# - With `grows=False` it takes the place of a cross-attention. The first call projects `key` and `value`
#   (the source) and keeps the result; later calls use what was kept and do not look at `key` and `value`.
#   The mask is about the source and is used as it comes, at each call.
# - What comes out is what counts. Who keeps the tokens, and projects all of them anew at each call, gets the same
#   numbers and full points, but saves less: try it with a long target and a clock.
# - `reset()` forgets everything: the next call is the first of a new sentence.
#
# `use_cache(model)` puts a `CachedAttention` in the place of `self_attention` and `cross_attention` of every
# `DecoderLayer` in the model (ask with `isinstance`), and returns them all in a list. Where one is in
# place already, it is reset and not wrapped again. The names of the model's parameters do not change. From then on,
# `model.decode(new, memory, memory_mask, offset=t)` gets the ids of the new tokens only, and `t`, the position of the
# first of them.
#
# From the class `MultiHeadAttention` you inherit `split` $(B, n, d_\text{model}) \to (B, H, n, d_k)$ and
# `merge`, which undoes it; `__init__` is given. You may use `scaled_dot_product_attention(q, k, v, mask)`,
# which returns output and weights.
#
# <details><summary>Hint 1: a question</summary>
#
# Two tokens are new and three are old. How many queries are there, how many keys, and which of the
# $2 \times 5$ pairs are forbidden? Which of them does the mask that you get tell you about?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Project and split the queries always; keys and values only where something new is to be kept. Join old
# and new along the axis of the tokens. In front of the mask's columns, put one column of True for
# each old key. A mask $(B, n, m)$ needs an axis for the heads; a mask $(n, m)$ does not mind one.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - *Sizes of tensors must match except in dimension 2*, *Expected size ... but got size ...*: heads and tokens are
#   two axes; which of them grows? Or: an old sentence is still there.
# - *The size of tensor a must match ... at non-singleton dimension 3*: the mask knows the new tokens only.
# - *... at non-singleton dimension 1*: a mask with a batch axis, and no axis for the heads; or,
#   without a mask, keys joined along the heads.
# - Single steps right, several new tokens wrong: what does the mask say, and about which columns?
# - The first sentence right, the second wrong: what is left of the first?
# - The output right, the weights in another order: new keys belong behind the old ones.
#
# </details>


# %% solution="cached-attention" export
class CachedAttention(MultiHeadAttention):
    """Attention that keeps projected keys and values between calls.

    Args:
        attention: the one whose place it takes; its weights are shared.
        grows: True for self-attention, where each call adds tokens; False for cross-attention,
            where the first call brings them all.
    """

    def __init__(self, attention: MultiHeadAttention, *, grows: bool) -> None:
        nn.Module.__init__(self)  # no new weights
        self.num_heads = attention.num_heads
        self.w_q, self.w_k = attention.w_q, attention.w_k
        self.w_v, self.w_o = attention.w_v, attention.w_o
        self.grows = grows
        self.reset()

    def reset(self) -> None:
        """Forget all keys and values: a new sentence begins."""
        ### BEGIN SOLUTION
        self.kept: tuple[Tensor, Tensor] | None = None  # keys and values, (B, H, m, d_k) each
        ### END SOLUTION

    def forward(
        self,
        query: Float[Tensor, "B n d_model"],
        key: Float[Tensor, "B m d_model"],
        value: Float[Tensor, "B m d_model"],
        mask: Bool[Tensor, "... #n m"] | None = None,  # True = may attend
    ) -> tuple[Float[Tensor, "B n d_model"], Float[Tensor, "B H n all_keys"]]:
        """Attend from the new tokens to all that is kept; return the output and the weights."""
        ### BEGIN SOLUTION
        if self.kept is None or self.grows:
            new = self.split(self.w_k(key)), self.split(self.w_v(value))  # (B, H, m, d_k) each
            if self.kept is not None:
                if mask is not None:
                    # a column of True for each old key: nothing that was written is hidden
                    mask = F.pad(mask, (self.kept[0].shape[2], 0), value=True)
                new = (
                    torch.cat([self.kept[0], new[0]], dim=2),
                    torch.cat([self.kept[1], new[1]], dim=2),
                )
            self.kept = new
        heads = None if mask is None else mask.unsqueeze(-3)  # an axis for the heads
        q = self.split(self.w_q(query))  # (B, H, n, d_k)
        output, weights = scaled_dot_product_attention(q, *self.kept, heads)
        return self.w_o(self.merge(output)), weights
        ### END SOLUTION


def use_cache(model: nn.Module) -> list[CachedAttention]:
    """Give every decoder layer of the model attentions with caches; return them, empty."""
    ### BEGIN SOLUTION

    def cached(attention: MultiHeadAttention, grows: bool) -> CachedAttention:
        if not isinstance(attention, CachedAttention):
            return CachedAttention(attention, grows=grows)
        attention.reset()
        return attention

    caches = []
    for layer in list(model.modules()):  # a list, because the loop changes the model
        if isinstance(layer, DecoderLayer):
            layer.self_attention = cached(layer.self_attention, grows=True)
            layer.cross_attention = cached(layer.cross_attention, grows=False)
            caches += [layer.self_attention, layer.cross_attention]
    return caches
    ### END SOLUTION


# %% test="cached-attention-steps" points=1
attention = MultiHeadAttention(6, 2).double()
x = draw((2, 3, 6))
wanted, expected_weights = attention(x, x, x, torch.ones(3, 3, dtype=torch.bool).tril())
cached = CachedAttention(attention, grows=True)
for t in range(3):
    new = x[:, t : t + 1]
    output, weights = cached(new, new, new)
    assert_shape(output, (2, 1, 6), "one new token should give one output: (batch, 1, d_model)")
    assert_shape(weights, (2, 2, 1, t + 1), "its weights should cover all tokens so far")
    assert_close(output[:, 0], wanted[:, t], f"the output at step {t} should be as without cache")
visible_passed()
### BEGIN HIDDEN TESTS
attention = MultiHeadAttention(20, 4).double()
x = draw((2, 3, 20), seed=1)
lower = torch.ones(3, 3, dtype=torch.bool).tril()
wanted, expected_weights = attention(x, x, x, lower)
cached, before = CachedAttention(attention, grows=True), x.clone()
for t in range(3):
    new = x[:, t : t + 1]
    mask = torch.ones(1, 1, dtype=torch.bool) if t % 2 else torch.ones(2, 1, 1, dtype=torch.bool)
    output, weights = cached(new, new, new, mask)
    assert_close(
        output[:, 0], wanted[:, t], "with a mask of the one new token, a step should be the same"
    )
    assert_close(
        weights[:, :, 0],
        expected_weights[:, :, t, : t + 1],
        "the weights should be in the order of the tokens, the new one last",
    )
assert torch.equal(x, before), "the attention should leave its input unchanged"
cached = CachedAttention(attention, grows=True)
with torch.no_grad():
    for matrix in (attention.w_q, attention.w_k, attention.w_v, attention.w_o):
        matrix.weight.mul_(1.5)
wanted, _ = attention(x[:, :1], x[:, :1], x[:, :1])
output, _ = cached(x[:, :1], x[:, :1], x[:, :1])
assert_close(output, wanted, "a changed weight should change the cached attention: they are shared")
values, cached = draw((2, 3, 20), seed=6), CachedAttention(attention, grows=True)
cached(x[:, :2], x[:, :2], values[:, :2])
output, _ = cached(x[:, 2:], x[:, 2:], values[:, 2:])
wanted, _ = attention(x[:, 2:], x, values)
assert_close(output, wanted, "values should be made of `value`, where it is not `key`, too")
### END HIDDEN TESTS

# %% test="cached-attention-prefill" points=2
attention = MultiHeadAttention(6, 2).double()
x = draw((3, 5, 6), seed=2)
wanted, _ = attention(x, x, x, torch.ones(5, 5, dtype=torch.bool).tril())
cached = CachedAttention(attention, grows=True)
first, _ = cached(x[:, :3], x[:, :3], x[:, :3], torch.ones(3, 3, dtype=torch.bool).tril())
assert_close(first, wanted[:, :3], "three tokens in one first call should be as without cache")
then, weights = cached(x[:, 3:], x[:, 3:], x[:, 3:], torch.ones(2, 2, dtype=torch.bool).tril())
assert_shape(weights, (3, 2, 2, 5), "two new tokens after three: weights (batch, heads, 2, 5)")
assert_close(then, wanted[:, 3:], "two more tokens in one call should be as without cache")
visible_passed()
### BEGIN HIDDEN TESTS
attention = MultiHeadAttention(12, 4).double()
x = draw((2, 5, 12), seed=3)
last_only = torch.tensor([[False, True]])  # one row for both
for cuts, own in (
    ((0, 2, 3, 5), torch.ones(2, 2, dtype=torch.bool).tril()),
    ((0, 3, 5), last_only),
    ((0, 3, 5), torch.zeros(2, 2, dtype=torch.bool)),  # of the new ones none
):
    cached = CachedAttention(attention, grows=True).eval()  # as where it is used
    for start, stop in itertools.pairwise(cuts):
        new, n = x[:, start:stop], stop - start
        mask = own if n == 2 else torch.ones(n, n, dtype=torch.bool).tril()
        before = mask.clone()
        output, weights = cached(new, new, new, mask.expand(2, -1, -1) if start else mask)
        seen = F.pad(mask, (start, 0), value=True)
        wanted, expected_weights = attention(new, x[:, :stop], x[:, :stop], seen)
        assert_close(
            output,
            wanted,
            "several new tokens at once should see all old tokens, and of the new ones those that "
            "the mask allows, whether it has a batch axis or not, and one row for all or one for each",
        )
        assert_close(
            weights,
            expected_weights,
            "the weights of several new tokens should be as without cache",
        )
        assert torch.equal(mask, before), "the mask handed in should stay unchanged"
### END HIDDEN TESTS

# %% test="cached-attention-cross" points=1
attention = MultiHeadAttention(6, 2).double()
x, memory, other = draw((3, 4, 6), (3, 5, 6), (3, 5, 6), seed=4)
mask = torch.tensor([[[True] * 5], [[True, True, True, False, False]], [[True] * 4 + [False]]])
wanted, _ = attention(x, memory, memory, mask)
cached = CachedAttention(attention, grows=False)
output, _ = cached(x[:, :1], memory, memory, mask)
assert_close(output, wanted[:, :1], "the first step should attend to the source as without cache")
output, weights = cached(x[:, 1:3], memory, memory, mask)
assert_shape(weights, (3, 2, 2, 5), "the source does not grow: weights (batch, heads, 2, 5)")
assert_close(output, wanted[:, 1:3], "the next steps should attend to the same source")
visible_passed()
### BEGIN HIDDEN TESTS
output, _ = cached(x[:, 3:], other, other, mask)
assert_close(
    output,
    wanted[:, 3:],
    "after its first call, cross-attention should use what it kept and not look at key and value",
)
wanted, _ = attention(x[:, 3:], memory, memory, mask.roll(1, 0))
output, _ = cached(x[:, 3:], memory, memory, mask.roll(1, 0))
assert_close(output, wanted, "the mask of each call should be used, not that of the first")
wanted, _ = attention(x, memory, memory)
output, _ = cached(x, other[:, :2], other[:, :2])
assert_close(
    output,
    wanted,
    "without a mask, cross-attention should see the whole source that it kept, however long the key "
    "of a later call is",
)
### END HIDDEN TESTS

# %% test="cached-attention-reset" points=1
attention = MultiHeadAttention(6, 2).double()
x, y = draw((3, 4, 6), (2, 5, 6), seed=5)
for grows in (True, False):
    wanted, _ = attention(y, y, y)
    cached = CachedAttention(attention, grows=grows)
    cached(x, x, x)
    cached.reset()
    output, weights = cached(y, y, y)
    assert_shape(weights, (2, 2, 5, 5), "after reset(), a call should see its own tokens only")
    assert_close(output, wanted, "after reset(), a call should be the first of a new sentence")
visible_passed()
### BEGIN HIDDEN TESTS
new = draw((3, 1, 6), seed=6)
both = torch.cat([x, new], dim=1)
wanted, for_new = attention(x, x, x)[0], attention(new, both, both)[0]
one, two = CachedAttention(attention, grows=True), CachedAttention(attention, grows=True)
one(x, x, x)
output, _ = two(x, x, x)
assert_close(output, wanted, "two caches should not share what they keep")
two.reset()
output, _ = one(new, new, new)
assert_close(output, for_new, "resetting one cache should not empty another one")
### END HIDDEN TESTS

# %% test="cached-attention-model" points=1
plain = TinyModel(vocab_size=11, pad_id=9)
source = torch.tensor([[1, 2, 3, 4], [5, 6, 9, 9], [7, 8, 1, 9]])
target = torch.tensor([[10, 3], [10, 8], [10, 2]])
memory, memory_mask = plain.encode(source)
wanted = plain.decode(target, memory, memory_mask)
cached_model = copy.deepcopy(plain)
caches = use_cache(cached_model)
assert len(caches) == 4, "two decoder layers should have four caches, two each"
for t in range(2):
    logits = cached_model.decode(target[:, t : t + 1], memory, memory_mask, offset=t)
    assert_close(
        logits[:, 0],
        wanted[:, t],
        f"step {t}: the logits for one new token should be those of the whole target",
    )
visible_passed()
### BEGIN HIDDEN TESTS
deep: Any = TinyModel(vocab_size=13, pad_id=2, seed=1)
deep.other = DecoderLayer(12, 4, 20)  # another place where a decoder layer may stand
layers = [*deep.decoder.layers, deep.other]
names = list(deep.state_dict())
source = torch.tensor([[1, 4, 3, 5, 2], [6, 2, 2, 2, 2]])
target = torch.tensor([[12, 3, 5, 10, 6], [12, 8, 8, 1, 4]])
memory, memory_mask = deep.encode(source)
wanted = deep.decode(target, memory, memory_mask)
caches = use_cache(deep)
assert list(deep.state_dict()) == names, "the names of the model's parameters should stay"
kinds = [(one.self_attention, one.cross_attention) for one in layers]
assert all(isinstance(one, CachedAttention) for pair in kinds for one in pair), (
    "both attentions of every decoder layer, wherever it stands, should be a CachedAttention"
)
assert {id(one) for one in caches} == {id(one) for pair in kinds for one in pair}, (
    "use_cache should return all the caches in the model"
)
for start, stop in ((0, 3), (3, 5)):
    logits = deep.decode(target[:, start:stop], memory, memory_mask, offset=start)
    assert_close(
        logits,
        wanted[:, start:stop],
        "several tokens first and then some more should give the logits of the whole target",
    )
memory, memory_mask = deep.encode(source.flip(0)[:1])
again = use_cache(deep)
assert {id(one) for one in again} == {id(one) for one in caches}, (
    "calling use_cache a second time should wrap nothing again"
)
assert list(deep.state_dict()) == names, "a second use_cache should not change the names either"
logits = deep.decode(target[1:], memory, memory_mask)
assert_close(
    logits, wanted[1:], "a second use_cache should empty the caches: a new sentence begins"
)
### END HIDDEN TESTS

# %% [markdown]
# ## 9.5 Sampling   (2 points, about 15 minutes, difficulty 2 of 5)
#
# **Objective.** Choose the next token by chance, more or less daringly.
#
# `logits` is $(B, V)$, one row per sentence. With temperature $T > 0$, row $b$ draws token $i$ with
# probability
#
# $$p_i = \frac{e^{z_i / T}}{\sum_j e^{z_j / T}}$$
#
# with $z$ the row's logits. With `top_k`, only the `top_k` largest logits of each row take part, in the
# sum too (of several that tie for the last place, any or all may); a `top_k` above $V$ is as good as
# $V$. Temperature 0 means the limit: always the likeliest token. Close to 0, $e^{z_i / T}$ is too large for a float, and the draw should still be right.
# A negative temperature and a `top_k` below 1 raise a `ValueError` that names the argument.
# Return the ids, shape $(B)$. All chance comes from `generator`, if there is one: `torch.multinomial`
# takes a generator. `trainer.tasks`, which draws in this way, is not allowed here.
#
# <details><summary>Hint 1: a question</summary>
#
# Which logit gives the probability 0 exactly?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Errors first, then the special case of temperature 0. Then divide, hide what is not among the largest,
# normalise, draw one per row, remove the axis that is left over.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - The temperature has no effect: what you divide after the softmax is normalised again.
# - Fewer tokens than `top_k` occur: compare the smallest logit that is kept with itself.
# - *probability tensor contains either inf, nan or element < 0*: something was divided by 0.
# - The shape is $(B, 1)$: one draw per row still has an axis.
#
# </details>


# %% solution="sample"
def sample(
    logits: Float[Tensor, "B V"],
    temperature: float = 1.0,
    top_k: int | None = None,
    generator: torch.Generator | None = None,
) -> Int[Tensor, "B"]:
    """Draw one token per row from softmax(logits / temperature), if asked among the top_k only.

    Raises ValueError for a negative temperature and for top_k below 1. Temperature 0 is argmax.
    """
    ### BEGIN SOLUTION
    if temperature < 0:
        raise ValueError(f"temperature ({temperature}) must not be negative")
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k ({top_k}) must be at least 1")
    if temperature == 0:
        return logits.argmax(-1)
    kept, ids = logits.topk(min(top_k or logits.shape[-1], logits.shape[-1]))  # (B, k)
    drawn = torch.multinomial((kept / temperature).softmax(-1), 1, generator=generator)  # (B, 1)
    return ids.gather(-1, drawn).squeeze(-1)
    ### END SOLUTION


# %% test="sample-temperature" points=1
logits = torch.tensor([1.0, 0.0, 2.0, -1.0], dtype=torch.float64)
ids = sample(logits.expand(10_000, 4), generator=torch.Generator().manual_seed(1))
assert_shape(ids, (10_000,), "10,000 rows of logits should give 10,000 ids")
shares = torch.bincount(ids, minlength=4) / 10_000
assert_close(
    shares,
    logits.softmax(0).float(),
    "with temperature 1, tokens should be drawn as often as the softmax says",
    atol=0.027,
)
assert sample(logits[None], temperature=0.0).tolist() == [2], "temperature 0 should give the argmax"
visible_passed()
### BEGIN HIDDEN TESTS
logits = draw((3, 6), seed=1)
logits[1, 4] = -60
before = logits.clone()
for temperature, given in ((0.004, (logits / 100 + 5).float()), (1.7, logits)):
    generator = torch.Generator().manual_seed(2)
    state = torch.get_rng_state()
    with expect_no_error(
        "a temperature close to 0 should work: what is exponentiated is large then"
    ):
        ids = sample(given.repeat(10_000, 1), temperature, generator=generator)
    assert torch.equal(torch.get_rng_state(), state), (
        "with a generator, torch's global random state should not be touched"
    )
    for row in range(3):
        shares = torch.bincount(ids[row::3], minlength=6) / 10_000
        assert_close(
            shares,
            (given[row] / temperature).softmax(0).float(),
            "each row should be drawn from the softmax of its own logits divided by the temperature, "
            "however low that is",
            atol=0.027,
        )
    assert not (ids[1::3] == 4).any(), "a token with a probability of almost 0 is never drawn"
ids = sample(logits.repeat(100, 1), generator=generator.manual_seed(2))
again = sample(logits.repeat(100, 1), generator=generator.manual_seed(2))
assert torch.equal(ids, again), "the same seed should give the same tokens"
later = sample(logits.repeat(100, 1), generator=generator)
third = sample(logits.repeat(100, 1), generator=generator)
assert not torch.equal(later, again) and not torch.equal(third, later), (
    "one generator should give other tokens at each call"
)
ids = sample(torch.zeros(10_000, 2, dtype=torch.float64), generator=generator)
for far in (1, 2, 3, 5):
    assert_close(
        (ids[far:] == ids[:-far]).double().mean(),
        0.5,
        "each row should be drawn by itself: what one of two even tokens gives says nothing of the next",
        atol=0.027,
    )
assert sample(logits, 0.0, top_k=3).tolist() == logits.argmax(-1).tolist(), (
    "temperature 0 should give the likeliest token of each row"
)
assert_shape(sample(logits[:1], 2.0, 3), (1,), "one row of logits should give ids of shape (1,)")
spread = torch.arange(50.0).expand(10, 50)
ids = sample(spread, 1e6)
assert not torch.equal(sample(spread, 1e6), ids), (
    "without a generator, each call should draw other tokens"
)
assert (ids < 40).any(), "without top_k, every token of the vocabulary can be drawn"
assert torch.equal(logits, before), "sample should leave the logits unchanged"
assert_dtype(ids, torch.int64, "ids should be int64")
assert_raises(
    ValueError,
    lambda: sample(logits, temperature=-1.0),
    "a negative temperature should raise a ValueError",
    mentions=["temperature"],
)
### END HIDDEN TESTS

# %% test="sample-top-k" points=1
logits = torch.tensor([1.0, 0.0, 2.0, -1.0, 1.5], dtype=torch.float64)
ids = sample(logits.expand(10_000, 5), top_k=2, generator=torch.Generator().manual_seed(3))
assert set(ids.tolist()) == {2, 4}, (
    "with top_k=2 both of the two largest logits, and no other, occur"
)
visible_passed()
### BEGIN HIDDEN TESTS
logits = draw((2, 7), seed=2)
before = logits.clone()
for top_k in (1, 3, 12):
    generator = torch.Generator().manual_seed(4)
    state = torch.get_rng_state()
    ids = sample(logits.repeat(10_000, 1), 0.8, top_k, generator)
    assert torch.equal(torch.get_rng_state(), state), (
        "with top_k, too, all chance should come from the generator"
    )
    for row in range(2):
        largest = logits[row].argsort(descending=True)[:top_k]
        wanted = torch.zeros(7).double()
        wanted[largest] = (logits[row, largest] / 0.8).softmax(0)
        shares = torch.bincount(ids[row::2], minlength=7) / 10_000
        assert_close(
            shares,
            wanted.float(),
            "with top_k, the softmax should run over the row's top_k largest logits only, divided by "
            "the temperature; a top_k above V is as good as V",
            atol=0.027,
        )
        assert not shares[wanted == 0].any(), "a token outside the top_k should never be drawn"
assert torch.equal(logits, before), "sample should leave the logits unchanged"
for top_k in (0, -1):
    assert_raises(
        ValueError,
        lambda top_k=top_k: sample(logits, top_k=top_k),
        "a top_k below 1 should raise a ValueError",
        mentions=["top_k"],
    )
low_and_high = torch.stack([logits[0], logits[0] + 100]).repeat(5000, 1)
ids = sample(low_and_high, 1.0, 2, torch.Generator().manual_seed(6))
assert set(ids.tolist()) == set(logits[0].topk(2).indices.tolist()), (
    "the top_k largest logits should be those of each row, however large those of another are"
)
assert_raises(
    ValueError,
    lambda: sample(logits, 0.0, 0),
    "a top_k below 1 should raise a ValueError at temperature 0, too",
    mentions=["top_k"],
)
### END HIDDEN TESTS

# %% [markdown]
# ## 9.6 BLEU   (3 points, about 25 minutes, difficulty 3 of 5)
#
# **Objective.** Measure a corpus of translations with the number that the papers report.
#
# A hypothesis is what the model wrote, a reference what a person wrote; both are lists of tokens, one
# reference per hypothesis. An $n$-gram is $n$ tokens in a row. For each order $n$ from 1 to `max_order`:
#
# - A hypothesis may count each different $n$-gram at most as often as it occurs in **its own**
#   reference (clipping). These are its matches.
# - $p_n$ is the number of matches of the **whole corpus**, divided by the number of all $n$-grams in all
#   hypotheses.
#
# With $c$ the number of tokens in all hypotheses and $r$ that in all references,
#
# $$\text{BLEU} = 100 \cdot \text{BP} \cdot \exp\Big(\frac{1}{k} \sum_{n=1}^{k} \log p_n\Big)
# \qquad\qquad \text{BP} = \begin{cases} 1 & \text{if } c \ge r \\ e^{1 - r/c} & \text{if } c < r \end{cases}$$
#
# with $k$ = `max_order`. If any $p_n$ is 0, or there are no $n$-grams of that order, BLEU is 0. Tokens are compared as they
# are: `The` is not `the`, and a token may hold any sign, a blank too. If there are more hypotheses than references, or fewer, raise a `ValueError`.
# Write it out, with no package for it: `sacrebleu` and `trainer.scoring` are not allowed here.
#
# <details><summary>Hint 1: a question</summary>
#
# "the the the" against "the cat": how many of the three unigrams does the reference account for?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Two counters per order, matches and totals, that run through the whole corpus; only after the last sentence
# is anything divided. Count the $n$-grams of both sides; a `Counter` (imported above) is a
# dictionary that counts.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - Above 100, or too much for repeated words: clipping.
# - Right for one sentence, wrong for several: what is divided, sentences or sums? Whose reference clips?
# - Too much for short translations: the brevity penalty. Too little for long ones: it is never above 1.
# - *math domain error*: the logarithm of 0.
#
# </details>


# %% solution="bleu" export
def bleu(
    hypotheses: Sequence[Sequence[str]],
    references: Sequence[Sequence[str]],
    max_order: int = 4,
) -> float:
    """BLEU of a corpus, from 0 to 100, with one reference each (Papineni et al. 2002).

    Raises ValueError if there are not as many references as hypotheses.
    """
    ### BEGIN SOLUTION
    if len(hypotheses) != len(references):
        raise ValueError(
            f"{len(hypotheses)} hypotheses and {len(references)} references: there must be as many"
        )
    matches, totals = [0] * max_order, [0] * max_order
    for pair in zip(hypotheses, references, strict=True):
        for n in range(1, max_order + 1):
            written, wanted = (
                Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1))
                for tokens in pair
            )
            matches[n - 1] += sum(min(count, wanted[gram]) for gram, count in written.items())
            totals[n - 1] += sum(written.values())
    if not all(matches):
        return 0.0
    logs = [math.log(match / total) for match, total in zip(matches, totals, strict=True)]
    ratio = sum(map(len, references)) / sum(map(len, hypotheses))
    return 100 * math.exp(min(0.0, 1 - ratio) + sum(logs) / max_order)
    ### END SOLUTION


# %% test="bleu-corpus" points=1
reference = ["the", "cat", "sat", "on", "the", "mat", "."]
assert_close(
    float(bleu([reference], [reference])), 100.0, "a perfect translation should have 100", atol=1e-3
)
hypothesis = ["the", "cat", "sat", "on", "a", "mat", "."]
value = bleu([hypothesis], [reference])
wanted = 100 * (6 / 7 * 4 / 6 * 2 / 5 * 1 / 4) ** 0.25
assert_close(
    float(value),
    wanted,
    "6 of 7 words, 4 of 6 pairs, 2 of 5 triples and 1 of 4 quadruples match: BLEU should be their "
    "geometric mean",
    atol=1e-3,
)
visible_passed()
### BEGIN HIDDEN TESTS
from sacrebleu.metrics.bleu import BLEU

words = ["a", "b", "c", "A", "B", "d."]
generator = torch.Generator().manual_seed(5)
for max_order in (2, 4):
    pairs = []
    for i in range(7):
        wanted = [words[j] for j in torch.randint(6, (9 + i % 3,), generator=generator).tolist()]
        written = [*wanted[:7], *(words[(i + j) % 6] for j in range(4))]
        pairs.append((written, wanted))
    written, wanted = [list(side) for side in zip(*pairs, strict=True)]
    oracle = BLEU(tokenize="none", smooth_method="none", max_ngram_order=max_order, force=True)
    expected = oracle.corpus_score(
        [" ".join(line) for line in written], [[" ".join(line) for line in wanted]]
    ).score
    assert_close(
        float(bleu(written, wanted, max_order)),
        expected,
        f"on a corpus of seven sentences with max_order={max_order}, BLEU should be what the package "
        "sacrebleu says: counts of the whole corpus, then one geometric mean",
        atol=1e-3,
    )
assert bleu([["The", "cat."]], [["the", "cat"]], 1) == 0, "tokens should be compared as they are"
assert_raises(
    ValueError,
    lambda: bleu([["a"], ["b"]], [["a"]]),
    "two hypotheses and one reference should raise a ValueError",
)
assert_raises(
    ValueError,
    lambda: bleu([["a"]], [["a"], ["b"]]),
    "one hypothesis and two references should raise a ValueError",
)
### END HIDDEN TESTS

# %% test="bleu-clipping" points=1
value = bleu([["the"] * 4], [["the", "cat", "sat", "down"]], max_order=1)
assert_close(
    float(value),
    25.0,
    "'the' stands once in the reference, so of four only one should count: BLEU of order 1 is 25",
    atol=1e-3,
)
visible_passed()
### BEGIN HIDDEN TESTS
written = [list("abab"), list("ccac")]
wanted = [list("abcc"), list("acba")]
assert_close(
    float(bleu(written, wanted, 1)),
    100 * (2 + 2) / 8,
    "each sentence should be clipped by its own reference, not by those of the others",
    atol=1e-3,
)
assert_close(
    float(bleu(written, wanted, 2)),
    100 * (4 / 8 * 2 / 6) ** 0.5,
    "pairs of words should be clipped as single words are",
    atol=1e-3,
)
assert bleu([list("abcd")], [list("dcba")]) == 0, "no matching pair should give 0"
glues = ["", ", ", "__", "||", "|||", "<sep>", "\0", "\x1f", "\u2581", *string.printable]
glued = [["x", f"a{glue}b", "c"] for glue in glues], [["x", "a", f"b{glue}c"] for glue in glues]
assert bleu(*glued, 2) == 0, (
    "tokens should be compared one by one: ab c and a bc are two pairs, and a token may hold a blank "
    "or any other sign"
)
assert bleu([list("abc")], [list("abc")]) == 0, (
    "three words have no four-gram, so BLEU of order 4 should be 0"
)
for written, wanted in (([[]], [["a"]]), ([], [])):
    claim = "an empty translation and an empty corpus should have 0, and no error"
    with expect_no_error(claim):
        assert bleu(written, wanted) == 0, claim
assert_close(
    float(bleu([["a"], list("abcd")], [["a"], list("abcd")], 3)),
    100.0,
    "a translation of one word has no pair and no triple: it should change neither number",
    atol=1e-3,
)
### END HIDDEN TESTS

# %% test="bleu-brevity" points=1
value = bleu([list("abc")], [list("abcde")], max_order=2)
assert_close(
    float(value),
    100 * math.exp(1 - 5 / 3),
    "all of 3 words match, but 5 were wanted: BLEU should be 100 exp(1 - 5/3)",
    atol=1e-3,
)
visible_passed()
### BEGIN HIDDEN TESTS
written = [list("abc"), list("abcdefg")]
wanted = [list("abcde"), list("abcdef")]
assert_close(
    float(bleu(written, wanted, 1)),
    100 * 9 / 10 * math.exp(1 - 11 / 10),
    "the brevity penalty should compare the lengths of the whole corpus, not of each sentence",
    atol=1e-3,
)
assert_close(
    float(bleu([list("abcd")], [list("abc")], 1)),
    75.0,
    "a translation that is too long should get no penalty and no bonus beyond its precision",
    atol=1e-3,
)
### END HIDDEN TESTS

# %% [markdown]
# ## 9.7 Drafts that change nothing   (3 points, about 30 minutes, difficulty 5 of 5)
#
# **Objective.** Let a small model draft, and still draw exactly as the large one would. (This one is
# a bonus: nothing in the model needs it.)
#
# A small model has drawn a token for each row, from its own probabilities `small` $(B, V)$. The large one has
# looked at the drafts, many of them in one pass, and says what it would have drawn from, `large` $(B, V)$. Decide
# for each row: **keep** the draft, or **replace** it by a token that you draw yourself. Do it such that the
# token that comes out
#
# - has exactly the distribution `large`, whatever `small` was (each row of both adds up to 1; a draft has a
#   probability above 0 in `small`);
# - is the draft as often as that allows.
#
# Return the tokens $(B)$ and a boolean tensor $(B)$, True where the draft was kept. All chance comes from
# `generator`. With $B$ in the thousands, a loop over rows is too slow.
#
# <details><summary>Hint 1: a question</summary>
#
# One token has probability 0.6 in `small` and 0.3 in `large`. If you kept every draft, how often would it come
# out? How often must you refuse it? And one with 0.2 in `small` and 0.3 in `large`?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Keep the draft $x$ with the probability $\min(1, \text{large}_x / \text{small}_x)$. Kept drafts then give each token
# the smaller of its two probabilities. What is missing up to `large`, token by token, is what a
# replacement must be drawn from.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - Tokens that both models like come out too often: replacements are not drawn from `large` itself.
# - *probability tensor contains either inf, nan or element < 0*: where both models agree nothing is missing. Such
#   rows keep their drafts, and still need weights that can be drawn from.
# - Kept too rarely: a draft that the large model likes better is always kept.
#
# </details>


# %% solution="keep-or-replace"
def keep_or_replace(
    drafts: Int[Tensor, "B"],
    small: Float[Tensor, "B V"],
    large: Float[Tensor, "B V"],
    generator: torch.Generator | None = None,
) -> tuple[Int[Tensor, "B"], Bool[Tensor, "B"]]:
    """Tokens with the distribution `large`, made of drafts with the distribution `small`.

    Source: Leviathan et al. (2023), section 2.3.

    Returns:
        The tokens, and where the draft was kept.
    """
    ### BEGIN SOLUTION
    ratio = large / small.clamp(min=torch.finfo(small.dtype).tiny)
    accept = ratio.gather(1, drafts.unsqueeze(1)).squeeze(1)  # (B,)
    kept = torch.rand(len(drafts), generator=generator, dtype=large.dtype) < accept
    missing = (large - small).clamp(min=0)  # (B, V)
    nothing = missing.sum(1, keepdim=True) <= 0
    weights = torch.where(nothing, large, missing)
    others = torch.multinomial(weights, 1, generator=generator).squeeze(1)
    return torch.where(kept, drafts, others), kept
    ### END SOLUTION


# %% test="keep-or-replace-distribution" points=2
small = torch.tensor([0.6, 0.2, 0.1, 0.1], dtype=torch.float64)
large = torch.tensor([0.3, 0.3, 0.4, 0.0], dtype=torch.float64)
drafts = torch.multinomial(small, 20_000, True, generator=torch.Generator().manual_seed(1))
tokens, kept = keep_or_replace(
    drafts, small.expand(20_000, 4), large.expand(20_000, 4), torch.Generator().manual_seed(2)
)
assert_shape(tokens, (20_000,), "20,000 drafts should give 20,000 tokens")
shares = torch.bincount(tokens, minlength=4) / 20_000
assert_close(shares, large.float(), "tokens should come out as often as `large` says", atol=0.02)
visible_passed()
### BEGIN HIDDEN TESTS
before = small.clone(), large.clone(), drafts.clone()
rows = draw((2, 3, 6), seed=5).softmax(-1)  # small and large, three kinds of rows
rows[1, 0] = rows[0, 0]  # both models agree
rows[0, 2, 3:] = 0
rows[0, 2] /= rows[0, 2].sum()
drafts = torch.multinomial(rows[0], 10_000, True, generator=torch.Generator().manual_seed(3)).T
small, large = (one.repeat(10_000, 1) for one in rows)
with expect_no_error("a row in which both models agree should be no error"):
    tokens, kept = keep_or_replace(drafts.flatten(), small, large, torch.Generator().manual_seed(4))
assert_dtype(tokens, torch.int64, "tokens should be int64")
for row in range(3):
    shares = torch.bincount(tokens[row::3], minlength=6) / 10_000
    assert_close(
        shares,
        rows[1, row].float(),
        "in each row tokens should come out as often as its own `large` says, also those that "
        "`small` never drafts",
        atol=0.027,
    )
assert torch.equal(large[:3], rows[1]), "the probabilities should stay unchanged"
small, large = torch.zeros(2, 4000, 80, dtype=torch.float64)
small[:, :40], large[:, 1:41] = 1 / 40, 1 / 40  # token 40 is missing, and nothing else
drafts = torch.arange(4000) % 40
tokens, _ = keep_or_replace(drafts, small, large, torch.Generator().manual_seed(9))
assert large.gather(1, tokens[:, None]).all(), (
    "a token that `large` never gives should never come out, also where little is missing"
)
### END HIDDEN TESTS

# %% test="keep-or-replace-often" points=1
small = torch.tensor([[0.5, 0.3, 0.2]], dtype=torch.float64).expand(10_000, 3)
large = torch.tensor([[0.1, 0.3, 0.6]], dtype=torch.float64).expand(10_000, 3)
drafts = torch.multinomial(small[0], 10_000, True, generator=torch.Generator().manual_seed(5))
tokens, kept = keep_or_replace(drafts, small, large, torch.Generator().manual_seed(6))
assert_dtype(kept, torch.bool, "the second result should be boolean")
assert torch.equal(tokens[kept], drafts[kept]), "where `kept` is True the token is the draft"
assert kept[drafts > 0].all(), (
    "a draft that the large model likes at least as well as the small one should always be kept"
)
visible_passed()
### BEGIN HIDDEN TESTS
for token, wanted in ((0, 0.2), (1, 1.0), (2, 1.0)):
    share = kept[drafts == token].double().mean()
    assert_close(
        share, wanted, "a draft should be kept as often as large / small, at most always", atol=0.04
    )
again, _ = keep_or_replace(drafts, small, large, torch.Generator().manual_seed(6))
assert torch.equal(tokens, again), "the same seed should give the same tokens"
one, other = torch.zeros(2, 400, 500, dtype=torch.float64)
one[:, :400], other[:, 1:401] = 1 / 400, 1 / 400  # token 400 is missing, and nothing else
replaced, _ = keep_or_replace(torch.zeros(400).long(), one, other, torch.Generator().manual_seed(9))
assert replaced.eq(400).all(), (
    "what is refused should be replaced by what is missing, however little that is"
)
_, kept = keep_or_replace(torch.zeros_like(drafts), small, large, torch.Generator().manual_seed(8))
for far in (1, 2, 3, 5):
    assert_close(
        (kept[far:] & kept[:-far]).double().mean(),
        0.2**2,
        "each draft should be kept or not by a chance of its own",
        atol=0.015,
    )
state = torch.get_rng_state()
same = small.clone()
_, kept = keep_or_replace(drafts, same, same, torch.Generator().manual_seed(7))
assert kept.all(), "where both models agree, every draft should be kept"
assert torch.equal(torch.get_rng_state(), state), "all chance should come from the generator"
### END HIDDEN TESTS

# %% [markdown]
# ## 9.8 What may be kept?   (2 points, about 15 minutes, difficulty 3 of 5)
#
# **Objective.** Explain when a cache is right.
#
# In three to six sentences: (a) Why do the keys and values that a decoder layer computed for an old token
# stay right when a new token is appended, in the second layer too and not only in the first? (b) A friend wants to
# use the same cache in the *encoder*, to append a word to a source sentence that has been encoded. What goes
# wrong? (c) Another friend uses the cache right but calls `decode` with `offset=0` at every step. Does it raise
# an error? Which steps are wrong, and why?
#
# <details><summary>Hint 1: a question</summary>
#
# What goes into the key of an old token in layer 2? Follow it down to the embeddings.
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# For (a) and (b), compare who may attend to whom. For (c), ask which row of the table of positions each new
# token gets.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - Unsure about (a): write down which tokens the output of layer 1 at position 2 depends on.
# - Unsure about (c): with one token a step, what does `offset` change at step 0, and at step 1?
#
# </details>

# %% [markdown] manual="what-may-be-kept" points=2
# ### BEGIN SOLUTION
# (a) Under the causal mask, the output of layer 1 at position $i$ depends on tokens $0$ to $i$ only, so a new
# token at the end does not change it. It is the input of layer 2 at position $i$, so the keys and values of layer 2
# do not change either, and so on upwards. Norms and feed-forward networks work on each position alone.
#
# (b) In the encoder every token attends to every other one. The new word changes the outputs of
# layer 1 at all old positions, so the keys and values kept in layer 2 (and the encoder's old outputs themselves) are those of another sentence. Only
# the first layer's would still be right.
#
# (c) No error: every shape is right. Step 0 is right, since its offset is 0. From step 1 on every new token gets
# the encoding of position 0, so the model sees a sentence whose words all stand in the first place; their wrong keys stay in the
# cache, too.
#
# Marking: 1 point for (a) with its step from layer to layer; 1 point for (b) and (c) together (half for each; in (c)
# it must be said that nothing raises an error).
# ### END SOLUTION

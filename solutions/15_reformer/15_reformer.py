# %% [markdown]
# # 15 Reformer
#
# Attention compares each token with each other one, and a stack of layers keeps what every layer made until the way back.
# Both grow dear with long texts. In this notebook you take up both as the Reformer does: a hash says which tokens are worth a comparison,
# and layers that can be undone keep nothing. Then you find out what has become of the two ideas.
#
# **How to work.** Run the cells from top to bottom. Replace each `# YOUR CODE HERE` and the `raise`
# below it by your answer, then run the test cells that follow; their messages say what is wrong.
# The visible tests are not all tests: hidden ones, with other sizes and numbers, run when the
# notebook is graded. Each question is tested on its own, so you may leave one open and go on.
# Before you hand in, restart the kernel and run all cells.
#
# **Where to read.** The book's page *Reformer* does all of it, with pictures.
#
# **Conventions.** The batch comes first. $B$ counts rows, $n$ tokens, $R$ rounds of hashing, $b$ buckets; $d$ is the width of queries, which are
# keys as well, and $d_v$ that of values. There is one head; more of them are more rows. A token's **place** is where it stands
# in the text, whatever it is sorted by.
#
# The cells marked *Try it* run some seconds, and do nothing while the notebook is graded.

# %% setup
import math
from collections.abc import Callable
from typing import Any

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from lab import plots
from lab.battery import assert_sound_function
from lab.check import (
    assert_close,
    assert_dtype,
    assert_shape,
    draw,
    expect_no_error,
    visible_passed,
)
from lab.predict import compare, predicted, watched
from lab.reformer import (
    RecallModel,
    kept_by_all,
    learn_to_recall,
    pair,
    recalled,
    reversible,
    saved_numbers,
)

# %% [markdown]
# ## 15.1 A hash for directions   (2 points, about 15 minutes, difficulty 2 of 5)
#
# **Objective.** Give vectors that point the same way the same number.
#
# An ordinary hash takes care that similar things get different numbers. This one does the opposite. `hash_buckets(x, turns)` gets vectors
# $(B, n, d)$ and $R$ drawn matrices $(d, R, b/2)$, and returns for each round and token the number of a bucket, $(B, R, n)$, from 0 to
# $b - 1$: with $W_r$ for the matrix of round $r$, the place of the largest entry of
#
# $$[\,x W_r;\; -x W_r\,],$$
#
# which are $b$ numbers, those of $x W_r$ first.
#
# <details><summary>Hint 1: a question</summary>
#
# Where do $x$ and $-x$ end up? And $x$ and $2x$?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# One `einsum` for all rounds, put its negative beside it, look for the place of the largest.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - Only half of the buckets are in use: the negative numbers are missing.
# - A wrong shape: rounds come before tokens in what is returned, and after the width in `turns`.
#
# </details>


# %% solution="hash-buckets"
def hash_buckets(
    x: Float[Tensor, "B n d"], turns: Float[Tensor, "d R half"]
) -> Int[Tensor, "B R n"]:
    """Return each token's bucket in each round: which of 2 * half directions it is nearest to."""
    ### BEGIN SOLUTION
    turned = torch.einsum("bnd,drh->brnh", x, turns)
    return torch.cat([turned, -turned], dim=-1).argmax(-1)
    ### END SOLUTION


# %% test="hash-buckets-values" points=1
x = torch.tensor([[[2.0, 0.5], [-0.1, 3.0], [-1.0, 0.2], [0.3, -0.4]]]).double()
straight = torch.eye(2).double()[:, None]
assert_close(
    hash_buckets(x, straight),
    torch.tensor([[[0, 1, 2, 3]]]),
    "with one matrix that turns nothing, the buckets are right, up, left, down",
)
visible_passed()


### BEGIN HIDDEN TESTS
def hashed_by_loops(x: Tensor, turns: Tensor) -> Tensor:
    """The same, one number after the other."""
    found = torch.zeros(x.shape[0], turns.shape[1], x.shape[1], dtype=torch.long)
    for row in range(x.shape[0]):
        for r in range(turns.shape[1]):
            for i in range(x.shape[1]):
                ahead = [float(x[row, i] @ turns[:, r, h]) for h in range(turns.shape[2])]
                both = ahead + [-one for one in ahead]
                found[row, r, i] = both.index(max(both))
    return found


for shape, rounds, half in (((3, 7, 5), 4, 2), ((1, 9, 3), 1, 6), ((2, 4, 6), 3, 1)):
    x, turns = draw(shape, (shape[2], rounds, half), seed=12)
    kept = x.clone(), turns.clone()
    assert_close(
        hash_buckets(x, turns),
        hashed_by_loops(x, turns),
        "each round should hash each token by a matrix of its own",
    )
    assert torch.equal(kept[0], x) and torch.equal(kept[1], turns), (
        "what is handed in should be left unchanged"
    )
### END HIDDEN TESTS

# %% test="hash-buckets-directions" points=1
x, turns = draw((2, 30, 6), (6, 5, 4), seed=11)
buckets = hash_buckets(x, turns)
assert_shape(buckets, (2, 5, 30), "there is a bucket for each row, round and token")
assert_dtype(buckets, torch.int64, "the number of a bucket is a whole number")
assert buckets.max() == 7 and buckets.min() == 0, "matrices with 4 columns make 8 buckets, 0 to 7"
visible_passed()
### BEGIN HIDDEN TESTS
x, turns = draw((2, 30, 6), (6, 5, 4), seed=13)
buckets = hash_buckets(x, turns)
both = hash_buckets(torch.cat([3.7 * x, -x], dim=1), turns)
assert_close(both[..., :30], buckets, "how long a vector is should not matter")
assert_close(
    both[..., 30:], (buckets + 4) % 8, "the opposite vector should be in the opposite bucket"
)
### END HIDDEN TESTS

# %% [markdown]
# ## 15.2 How often do two meet?   (2 points, about 15 minutes, difficulty 2 of 5)
#
# **Objective.** Predict how well such a hash finds what is similar, then measure it.
#
# Two vectors have a cosine of 0.5, so there are 60 degrees between them. They are hashed once, into one of 8 buckets. How probable is it that both
# are in the same one? Let `predicted_meeting` return one of the texts in `CHANCES`; the point is for having predicted.
#
# Then run the cell and let `measured_meetings` return what it prints last: for each cosine, how often two vectors met in one
# round, and in at least one of four rounds. It uses your `hash_buckets` of 15.1.
#
# <details><summary>Hint 1: a question</summary>
#
# What would the number be for a hash that looks at nothing? And for vectors with cosine 1?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# With two buckets, on both sides of a line, it would be $1 - 60/180$. With eight there are more borders to be parted by.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - *predict first*: `predicted_meeting` returns nothing yet, or none of the texts.
# - Your numbers are refused: return all of one run, as they were printed.
#
# </details>

# %%
CHANCES = ("about 1 in 8", "about 1 in 3", "about 1 in 2", "about 3 in 4")


# %% solution="predicted-meeting"
def predicted_meeting() -> str:
    """What you expect: one of CHANCES."""
    ### BEGIN SOLUTION
    return "about 1 in 2"
    ### END SOLUTION


# %% test="predicted-meeting-made" points=1
chance = predicted_meeting()
assert isinstance(chance, str), "a prediction is one of the texts in CHANCES"
assert chance in CHANCES, f"a prediction is one of the texts {CHANCES}\nYours is {chance!r}."
visible_passed()

# %%
if watched():  # not while the notebook is graded
    prediction = predicted(predicted_meeting, CHANCES)
    turns = torch.randn(16, 20_000, 4, generator=torch.Generator().manual_seed(0))
    once, four = {}, {}
    for cosine in (-1.0, -0.5, 0.0, 0.5, 0.75, 0.9, 1.0):
        one, other = hash_buckets(pair(cosine, 16)[None], turns)[0].unbind(-1)
        met = (one == other).double()
        once[cosine] = round(met.mean().item(), 3)
        four[cosine] = round(met.view(-1, 4).amax(1).mean().item(), 3)
    compare(prediction, once[0.5])
    shares = {"one round": list(once.values()), "one of four": list(four.values())}
    plots.lines(list(once), shares, "How often two vectors meet", "cosine", "share")
    plt.show()
    print({"once": once, "four": four})


# %% solution="measured-meetings"
def measured_meetings() -> dict[str, Any]:
    """What the cell printed last."""
    ### BEGIN SOLUTION
    return {
        "once": {-1.0: 0.0, -0.5: 0.03, 0.0: 0.124, 0.5: 0.315, 0.75: 0.485, 0.9: 0.657, 1.0: 1.0},
        "four": {-1.0: 0.0, -0.5: 0.115, 0.0: 0.412, 0.5: 0.779, 0.75: 0.93, 0.9: 0.987, 1.0: 1.0},
    }
    ### END SOLUTION


# %% test="measured-meetings-consistent" points=1
found = measured_meetings()
assert isinstance(found, dict), "measured_meetings should return a dict"
assert sorted(found) == ["four", "once"], "the measurements are called 'once' and 'four'"
for shares in found.values():
    assert sorted(shares) == [-1.0, -0.5, 0.0, 0.5, 0.75, 0.9, 1.0], (
        "there is a share for each cosine"
    )
visible_passed()
### BEGIN HIDDEN TESTS
once, four = (
    [float(shares[cosine]) for cosine in (-1.0, -0.5, 0.0, 0.5, 0.75, 0.9, 1.0)]
    for shares in (found["once"], found["four"])
)
assert once[0] == four[0] == 0, "opposite vectors never meet"
assert once[-1] == four[-1] == 1, "a vector always meets itself"
assert abs(once[2] - 0.125) < 0.03, (
    "vectors at right angles know nothing of each other: they should meet as often as by chance"
)
assert sorted(once) == once and sorted(four) == four, "the nearer two are, the oftener they meet"
assert abs(once[3] - 0.313) < 0.04 and abs(once[5] - 0.657) < 0.04, (
    "for cosines of 0.5 and 0.9 the shares should be those of eight buckets"
)
assert all(abs(b - 1 + (1 - a) ** 4) < 0.05 for a, b in zip(once, four, strict=True)), (
    "to miss each other in four rounds, two have to do so four times, each time anew"
)
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>What happened</summary>
#
# A cosine of 0.5 is no small one, yet two out of three times the hash parts such a pair. One has to go up to 0.75 to meet every second time. What helps
# is another try: with a chance of $p$ in one round, two meet in at least one of four with $1 - (1 - p)^4$. That raises the curve where it
# should be high, but also at right angles, where nobody wants it: more rounds find more, and compare more for nothing.
#
# </details>

# %% [markdown]
# ## 15.3 One vector asks and answers   (4 points, about 25 minutes, difficulty 3 of 5)
#
# **Objective.** Let queries be keys as well, and keep a token from admiring itself.
#
# A hash that sends queries and keys to buckets of their own kind leaves some buckets with queries only. So the Reformer has one vector for both.
# `shared_attention(qk, v, causal)` gets such vectors $(B, n, d)$ and values $(B, n, d_v)$. With $q_i$ for a shared vector, key $j$ is $k_j = q_j / |q_j|$, of length 1,
# and scores are $s_{ij} = q_i \cdot k_j / \sqrt d$. A token looks
#
# - with `causal`, at tokens in earlier places; without, at tokens in all places;
# - but **at itself only if there is no other** that it may look at.
#
# It returns two tensors: the mean of the values, weighed by softmax, $(B, n, d_v)$; and the **log-sum**, $(B, n)$: the logarithm of the sum of
# $e^{s_{ij}}$ over the keys that token $i$ looks at, which 15.5 needs. Compute in the dtype that comes in: in float64 the tests look at ten digits. Scores may be large.
#
# <details><summary>Hint 1: a question</summary>
#
# Among vectors of one length, which one has the largest product with $q_i$?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# A boolean matrix of pairs of two different tokens, without those ahead. Rows in which all is false get their own token back.
# The rest is masking, softmax and `logsumexp`.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - `nan` in the first row: with `causal` the first token has nothing but itself.
# - Right but for the scale: queries keep their length, keys lose it.
# - Wrong with large scores: $e^{1000}$ is too large for any dtype; see `torch.logsumexp`.
#
# </details>


# %% solution="shared-attention"
def shared_attention(
    qk: Float[Tensor, "B n d"], v: Float[Tensor, "B n d_v"], causal: bool
) -> tuple[Float[Tensor, "B n d_v"], Float[Tensor, "B n"]]:
    """Return outputs and log-sums of attention whose queries are its keys."""
    ### BEGIN SOLUTION
    n = qk.shape[1]
    scores = qk @ F.normalize(qk, dim=-1).mT / math.sqrt(qk.shape[-1])
    itself = torch.eye(n, dtype=torch.bool)
    seen = torch.ones(n, n, dtype=torch.bool).tril(-1) if causal else ~itself
    seen = seen | (itself & ~seen.any(-1, keepdim=True))
    scores = scores.masked_fill(~seen, -math.inf)
    return scores.softmax(-1) @ v, scores.logsumexp(-1)
    ### END SOLUTION


# %%
def look(qk: Tensor, v: Tensor, keys: list[list[list[int]]]) -> tuple[Tensor, Tensor]:
    """For the tests: each token of each row looks at the keys that are listed for it."""
    rows, sums = [], []
    for b, listed in enumerate(keys):
        k = qk[b] / qk[b].square().sum(-1, keepdim=True).sqrt()
        for i, places in enumerate(listed):
            scores = k[places] @ qk[b, i] / qk.shape[-1] ** 0.5
            top = scores.max()
            parts = (scores - top).exp()
            rows.append((parts[:, None] * v[b, places]).sum(0) / parts.sum())
            sums.append(top + parts.sum().log())
    return torch.stack(rows).view(v.shape), torch.stack(sums).view(v.shape[:2])


# %% test="shared-attention-values" points=2
qk, v = draw((2, 4, 3), (2, 4, 5), seed=21)
earlier = [[0], [0], [0, 1], [0, 1, 2]]
output, log_sum = shared_attention(qk, v, True)
wanted, sums = look(qk, v, [earlier, earlier])
assert_shape(output, (2, 4, 5), "there should be a vector of values' width for each token")
assert_shape(log_sum, (2, 4), "there should be a log-sum for each token")
assert_close(
    output[:, 1:],
    wanted[:, 1:],
    "a token should look at those before it, and not at itself",
    atol=1e-10,
)
assert_close(
    log_sum, sums, "the log-sum should be the logarithm of the sum of all weights", atol=1e-10
)
visible_passed()
### BEGIN HIDDEN TESTS
others = [[j for j in range(6) if j != i] for i in range(6)]
qk, v = draw((3, 6, 2), (3, 6, 4), seed=22)
output, log_sum = shared_attention(qk, v, False)
wanted, sums = look(qk, v, [others] * 3)
claim = "without causal, a token should look at all others, and not at itself"
assert_close(output, wanted, claim, atol=1e-10)
assert_close(log_sum, sums, "the log-sum should be right without causal, too", atol=1e-10)
qk[:, 2] *= 3000
output, log_sum = shared_attention(qk, v, False)
wanted, sums = look(qk, v, [others] * 3)
assert_close(output, wanted, "scores may be large")
assert_close(log_sum, sums, "the log-sum should be right with large scores, too")
qk[:, 1] = -1e6 * qk[:, 0]
output, _ = shared_attention(qk, v, True)
assert_close(
    output[:, 1], v[:, 0], "who may look at one token looks at it, however small its score is"
)
earlier = [list(range(i)) or [0] for i in range(5)]
assert_sound_function(
    lambda qk, v: shared_attention(qk, v, True),
    [*draw((2, 5, 4), (2, 5, 3), seed=23, dtype=torch.float32)],
    like=lambda qk, v: look(qk, v, [earlier, earlier]),
    claim="in float32, too, a token should look at those before it",
    says="the function should behave like any function, and gradients flow from both results",
)
### END HIDDEN TESTS

# %% test="shared-attention-alone" points=2
qk, v = draw((2, 3, 4), (2, 3, 5), seed=24)
with expect_no_error("a token that has no other one should be no error"):
    output, log_sum = shared_attention(qk, v, True)
assert_close(output[:, 0], v[:, 0], "the first token has no other: it should look at itself")
visible_passed()
### BEGIN HIDDEN TESTS
qk, v = draw((2, 3, 4), (2, 3, 5), seed=25)
length = qk[:, 0].square().sum(-1).sqrt()
_, log_sum = shared_attention(qk, v, True)
assert_close(
    log_sum[:, 0], length / 2, "a token that looks at itself should do so with its own score"
)
for causal in (True, False):
    with expect_no_error("a text of one token should be no error"):
        output, log_sum = shared_attention(qk[:, :1], v[:, :1], causal)
    assert_close(output, v[:, :1], "in a text of one token, it should look at itself")
    assert_close(
        log_sum, length[:, None] / 2, "in a text of one token the log-sum is its own score"
    )
output, _ = shared_attention(qk[:, :2], v[:, :2], False)
assert_close(
    output, v[:, :2].flip(1), "two tokens that may look anywhere should look at each other"
)
### END HIDDEN TESTS

# %% [markdown]
# ## 15.4 Sort, cut, look back   (6 points, about 60 minutes, difficulty 4 of 5)
#
# **Objective.** Attend within buckets, at a cost that grows with the length and not with its square.
#
# `lsh_round(qk, v, buckets, length)` gets shared vectors and values as 15.3 does, the tokens' buckets in one round, $(B, n)$, whole numbers of 0 and more, and
#
# - sorts the tokens by bucket and, within a bucket, by place;
# - cuts the sorted row into chunks of `length` tokens; the last may be shorter;
# - lets each token look at the tokens of **its own chunk and the one before it** that are in **its bucket** and in an
#   **earlier place of the text**; at itself only if there is none. The first chunk has none before it;
# - returns outputs $(B, n, d_v)$ and log-sums $(B, n)$ as in 15.3, in the order of the text.
#
# No tensor of $n \times n$ is needed, though the tests do not look for one. Compute in the dtype that comes in: in float64 the tests look at ten digits.
#
# <details><summary>Hint 1: a question</summary>
#
# After sorting, neighbours are not in the order of the text any more. What has to be sorted beside `qk` and `v`, so that you still know who is ahead of whom?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# `torch.sort(..., stable=True)` gives the order; the order's own `argsort` undoes it. Pad to whole chunks with a bucket that is nobody's. `unflatten` into
# chunks, and put the chunks, moved by one, in front of themselves: keys, values, buckets and places alike.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - Right for one bucket only: compare buckets, chunks may hold several.
# - A later token changes an earlier one: in the sorted row, who stands before another need not come earlier in the text.
# - Right but in a wrong order: sorting twice is not undoing. `argsort` of the order is.
# - Wrong in the first chunk: what stands before it must not be the last one.
#
# </details>


# %% solution="lsh-round"
def lsh_round(
    qk: Float[Tensor, "B n d"],
    v: Float[Tensor, "B n d_v"],
    buckets: Int[Tensor, "B n"],
    length: int,
) -> tuple[Float[Tensor, "B n d_v"], Float[Tensor, "B n"]]:
    """Return outputs and log-sums of causal attention within buckets, chunk by chunk."""
    ### BEGIN SOLUTION
    n = qk.shape[1]
    order = torch.sort(buckets, dim=1, stable=True).indices
    missing = -n % length

    def chunked(x: Tensor, filling: int) -> Tensor:
        """A row of each token's numbers, sorted and cut."""
        x = x.gather(1, order[..., None].expand(-1, -1, x.shape[-1]))
        return F.pad(x, (0, 0, 0, missing), value=filling).unflatten(1, (-1, length))

    def with_previous(x: Tensor, filling: int) -> Tensor:
        """Each chunk with the one before it."""
        before = torch.cat([torch.full_like(x[:, :1], filling), x[:, :-1]], dim=1)
        return torch.cat([before, x], dim=2)

    places = torch.arange(n).expand(len(qk), n)[..., None]
    q, place, bucket = chunked(qk, 0), chunked(places, n), chunked(buckets[..., None], -1)
    k = with_previous(chunked(F.normalize(qk, dim=-1), 0), 0)
    values = with_previous(chunked(v, 0), 0)
    places, others = with_previous(place, n), with_previous(bucket, -2)
    seen = (bucket == others.mT) & (places.mT < place)
    seen = seen | ((places.mT == place) & (bucket == others.mT) & ~seen.any(-1, keepdim=True))
    scores = (q @ k.mT / math.sqrt(qk.shape[-1])).masked_fill(~seen, -math.inf)
    back = order.argsort(1)
    output = (scores.softmax(-1) @ values).flatten(1, 2)
    log_sum = scores.logsumexp(-1).flatten(1)
    return output.gather(1, back[..., None].expand(-1, -1, v.shape[-1])), log_sum.gather(1, back)
    ### END SOLUTION


# %%
def keys_of(buckets: list[int], length: int) -> list[list[int]]:
    """For the tests: the places that each token of a row looks at."""
    order = sorted(range(len(buckets)), key=lambda i: (buckets[i], i))
    chunk = {i: at // length for at, i in enumerate(order)}
    keys = []
    for i, bucket in enumerate(buckets):
        near = [j for j in range(i) if buckets[j] == bucket and chunk[i] - chunk[j] <= 1]
        keys.append(near or [i])
    return keys


# %% test="lsh-round-one" points=1
qk, v = draw((2, 7, 3), (2, 7, 4), seed=31)
whole = torch.zeros(2, 7, dtype=torch.long)
output, log_sum = lsh_round(qk, v, whole, 7)
wanted, sums = look(qk, v, [[list(range(i)) or [0] for i in range(7)]] * 2)
assert_close(
    output,
    wanted,
    "with one bucket and one chunk, it should be causal attention with shared queries and keys",
    atol=1e-10,
)
assert_close(
    log_sum, sums, "with one bucket and one chunk the log-sums are those of 15.3", atol=1e-10
)
visible_passed()
### BEGIN HIDDEN TESTS
qk, v = draw((2, 7, 3), (2, 7, 4), seed=36)
wanted, sums = look(qk, v, [[list(range(i)) or [0] for i in range(7)]] * 2)
for length, dtype, atol in ((7, torch.float32, 1e-5), (11, torch.float64, 1e-10)):
    output, log_sum = lsh_round(qk.to(dtype), v.to(dtype), whole + 3, length)
    claim = "with one bucket and one chunk, whatever its length, nothing should be lost"
    assert_close(output, wanted.to(dtype), claim, atol=atol)
    assert_close(log_sum, sums.to(dtype), claim, atol=atol)
output, _ = lsh_round(qk, v, whole + torch.arange(7), 2)
assert_close(output, v, "where each token has a bucket of its own, each should look at itself")
### END HIDDEN TESTS

# %% test="lsh-round-buckets" points=2
qk, v = draw((1, 8, 3), (1, 8, 4), seed=32)
buckets = torch.tensor([[1, 0, 1, 0, 2, 1, 0, 1]])
output, log_sum = lsh_round(qk, v, buckets, 8)
wanted, sums = look(qk, v, [keys_of(buckets[0].tolist(), 8)])
assert_close(
    output,
    wanted,
    "one chunk of three buckets: a token should see the earlier ones of its own bucket",
    atol=1e-10,
)
visible_passed()
### BEGIN HIDDEN TESTS
assert_close(log_sum, sums, "one chunk of three buckets: the log-sums should be right", atol=1e-10)
qk, v = draw((3, 12, 4), (3, 12, 2), seed=33)
buckets = (draw((3, 12), seed=34) * 2).long().abs()
output, log_sum = lsh_round(qk, v, buckets, 12)
wanted, sums = look(qk, v, [keys_of(row, 12) for row in buckets.tolist()])
assert_close(output, wanted, "rows may have different buckets, and each its own order", atol=1e-10)
again = qk.clone()
again[:, 11] += 1.0
moved, _ = lsh_round(again, v, buckets, 12)
assert_close(
    moved[:, :11], output[:, :11], "a later token should change no earlier one", atol=1e-10
)
### END HIDDEN TESTS

# %% test="lsh-round-chunks" points=3
qk, v = draw((1, 8, 3), (1, 8, 4), seed=35)
buckets = torch.tensor([[1, 0, 1, 0, 1, 1, 0, 1]])
output, log_sum = lsh_round(qk, v, buckets, 2)
wanted, sums = look(qk, v, [keys_of(buckets[0].tolist(), 2)])
assert_close(
    output,
    wanted,
    "chunks of 2: a token should see its bucket in its own chunk and in the one before",
    atol=1e-10,
)
visible_passed()
### BEGIN HIDDEN TESTS
assert_close(log_sum, sums, "chunks of 2: the log-sums should be right", atol=1e-10)
for n, length in ((11, 3), (9, 4), (6, 1), (10, 5)):
    qk, v = draw((2, n, 3), (2, n, 5), seed=37)
    buckets = (draw((2, n), seed=38) * 1.5).long().abs()
    with expect_no_error("the last chunk may be shorter"):
        output, log_sum = lsh_round(qk, v, buckets, length)
    wanted, sums = look(qk, v, [keys_of(row, length) for row in buckets.tolist()])
    claim = "with any length of text and chunks, tokens should see their bucket in two chunks"
    assert_close(output, wanted, claim, atol=1e-10)
    assert_close(log_sum, sums, claim, atol=1e-10)
names = buckets.clone()
assert_sound_function(
    lambda qk, v: lsh_round(qk, v, buckets, 3),
    [qk.float(), v.float()],
    like=lambda qk, v: look(qk, v, [keys_of(row, 3) for row in names.tolist()]),
    claim="in float32, too, tokens should see their bucket in two chunks",
    says="the function should behave like any function, and gradients flow from both results",
)
assert torch.equal(buckets, names), "the buckets should be left unchanged"
### END HIDDEN TESTS

# %% [markdown]
# ## 15.5 Several rounds, one answer   (2 points, about 15 minutes, difficulty 3 of 5)
#
# **Objective.** Put together what several rounds have found, each as much as it weighs.
#
# Round $r$ gave a token the output $o_r$, a mean over the keys that it met there, and the log-sum $z_r = \log \sum_j e^{s_{j}}$ over these keys. Rounds that met good
# keys have large sums. `combined(outputs, log_sums)` gets $(R, B, n, d_v)$ and $(R, B, n)$, and returns outputs $(B, n, d_v)$ and log-sums $(B, n)$ of
# all rounds: exactly what one softmax over the keys of all rounds together would give. (A key that was met twice then counts twice.) Log-sums may be large, and $-\infty$ for a round
# that met nothing, as long as another one met something. Compute in the dtype that comes in: in float64 the tests look at ten digits.
#
# <details><summary>Hint 1: a question</summary>
#
# $e^{z_r} o_r$ is a sum over the keys of round $r$. Of what?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# The sum of these sums, divided by the sum of all $e^{z_r}$. That is a mean whose weights are a softmax.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - Right for equal log-sums only: rounds do not weigh the same.
# - `nan`: $e^{1000}$. Let softmax do it.
#
# </details>


# %% solution="combined"
def combined(
    outputs: Float[Tensor, "R B n d_v"], log_sums: Float[Tensor, "R B n"]
) -> tuple[Float[Tensor, "B n d_v"], Float[Tensor, "B n"]]:
    """Return outputs and log-sums as if the keys of all rounds had been met at once."""
    ### BEGIN SOLUTION
    shares = log_sums.softmax(0)
    return (shares[..., None] * outputs).sum(0), log_sums.logsumexp(0)
    ### END SOLUTION


# %% test="combined-values" points=2
scores, v = 2 * draw((1, 3, 6), seed=41), draw((6, 4), seed=42)
parts = [scores[..., :1], scores[..., 1:4], scores[..., 4:]]
values = [v[:1], v[1:4], v[4:]]
outputs = torch.stack([s.softmax(-1) @ x for s, x in zip(parts, values, strict=True)])
log_sums = torch.stack([s.exp().sum(-1).log() for s in parts])
output, log_sum = combined(outputs, log_sums)
assert_close(
    output,
    scores.softmax(-1) @ v,
    "three rounds with 1, 3 and 2 keys should give what one softmax over all 6 gives",
    atol=1e-10,
)
visible_passed()


### BEGIN HIDDEN TESTS
def pooled(outputs: Tensor, log_sums: Tensor) -> tuple[Tensor, Tensor]:
    """The same with sums of exponentials; for log-sums that are not large."""
    sums = log_sums.exp()
    return (sums[..., None] * outputs).sum(0) / sums.sum(0)[..., None], sums.sum(0).log()


assert_close(
    log_sum, scores.exp().sum(-1).log(), "the log-sum should be that of all keys", atol=1e-10
)
outputs, log_sums = draw((4, 2, 3, 5), (4, 2, 3), seed=43)
wanted, sums = pooled(outputs, log_sums)
far = log_sums + torch.tensor([[[1000.0, -1000.0, 3.0]]]).double()
output, log_sum = combined(outputs, far)
assert_close(output, wanted, "large log-sums should change nothing but the log-sum")
assert_close(log_sum, sums + far[0] - log_sums[0], "the log-sum should be right where it is large")
missed = log_sums.clone()
missed[2, :, 1] = -math.inf
output, log_sum = combined(outputs, missed)
wanted, sums = pooled(outputs, missed)
assert_close(output, wanted, "a round that met nothing should count nothing")
assert_close(log_sum, sums, "a round that met nothing should add nothing to the log-sum")
assert_sound_function(
    combined,
    [outputs.float(), log_sums.float()],
    like=pooled,
    claim="in float32, too, rounds should count as much as they weigh",
    says="the function should behave like any function, and gradients flow from both results",
)
### END HIDDEN TESTS

# %% [markdown]
# **Try it: how many rounds does it take?** A model with full attention learns to recall which value a name had; then it recalls with hashes. Some 10 seconds; it uses your answers of
# 15.1, 15.3, 15.4 and 15.5.

# %%
if watched():  # not while the notebook is graded
    torch.set_num_threads(1)  # small matrices: one core is fastest
    torch.manual_seed(0)
    model = RecallModel(names=24, values=16)

    def full(qk, v):
        """Attention to all tokens before."""
        return shared_attention(qk, v, True)[0]

    def hashing(rounds, buckets=8, length=4):
        """Attention within buckets, in several rounds."""
        generator = torch.Generator().manual_seed(1)

        def attend(qk, v):
            turns = torch.randn(qk.shape[-1], rounds, buckets // 2, generator=generator)
            which = hash_buckets(qk, turns)
            found = [lsh_round(qk, v, which[:, r], length) for r in range(rounds)]
            outputs, log_sums = zip(*found, strict=True)
            return combined(torch.stack(outputs), torch.stack(log_sums))[0]

        return attend

    losses = learn_to_recall(model, full, steps=100, names=24, values=16)
    print(f"loss: {losses[0]:.2f} at first, {losses[-1]:.4f} at last")
    print("recalled by full attention:", recalled(model, full, 24, 16))
    rounds = (1, 2, 4, 8, 16)
    shares = {"hashed": [recalled(model, hashing(r), 24, 16) for r in rounds]}
    print(shares)
    plots.lines(rounds, shares, "Recalled, of 24 values", "rounds", "share")
    plt.show()

# %% [markdown]
# <details><summary>What happened</summary>
#
# The model did not know of any hash when it learned. With one round it finds little more than half; with each round the others
# get another chance. Full attention compares 48 tokens with 48. A round compares each with 8, so with 6 rounds nothing is saved: at this length hashing
# cannot pay. It pays where $n$ is much larger than rounds times two chunks.
#
# </details>

# %% [markdown]
# ## 15.6 Four mistakes that learn   (2 points, about 20 minutes, difficulty 3 of 5)
#
# **Objective.** Find mistakes under which the loss falls all the same.
#
# A friend's version of 15.4 and 15.5 is in the next cell; `attend` runs all rounds. A model that uses it learns. You tried things out, and found
# four symptoms:
#
# - `"long"`: a token whose vector is doubled gets more weight from all that look at it;
# - `"strangers"`: in one chunk with two buckets, a token looks at those of the other bucket as well;
# - `"mixed"`: with one bucket all is well. With several, the outputs of a round are right, but many are another token's; the log-sums are
#   all right;
# - `"rounds"`: a round in which a token met only keys that do not fit counts as much as one in which it met the best.
#
# Say which line is behind each.
#
# <details><summary>Hint 1: a question</summary>
#
# For each symptom: is it a question of who is seen, of how much a key weighs, or of where something is put?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Take six tokens with buckets 1, 0, 1, 0, 1, 0, write down `order` and `back`, and go through lines 5 to 10 by hand.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - Unsure about `"mixed"`: what does sorting twice give?
# - Unsure about `"rounds"`: what does the softmax in it get to see?
#
# </details>


# %%
def friends_round(qk, v, buckets, length):
    n = qk.shape[1]  # line 1
    order = torch.sort(buckets, dim=1, stable=True).indices  # line 2: places, sorted
    back = order.argsort(1)  # line 3
    rows = torch.arange(len(qk))[:, None]  # line 4
    chunk = torch.arange(n) // length  # line 5
    bucket = buckets[rows, order].div(2, rounding_mode="floor")  # line 6
    near = (chunk[:, None] - chunk >= 0) & (chunk[:, None] - chunk <= 1)  # line 7
    seen = near & (bucket[:, :, None] == bucket[:, None])  # line 8
    seen = seen & (order[:, None] < order[:, :, None])  # line 9
    seen = seen | (torch.eye(n).bool() & ~seen.any(-1, keepdim=True))  # line 10
    scores = qk[rows, order] @ qk[rows, order].mT / qk.shape[-1] ** 0.5  # line 11
    scores = scores.masked_fill(~seen, -torch.inf)  # line 12
    outputs = (scores.softmax(-1) @ v[rows, order])[rows, order]  # line 13
    log_sums = scores.logsumexp(-1)[rows, back]  # line 14
    return outputs, log_sums  # line 15


def friends_attend(qk, v, buckets, length):
    found = [friends_round(qk, v, one, length) for one in buckets.unbind(1)]  # line 16
    outputs = torch.stack([output for output, _ in found])  # line 17
    log_sums = torch.stack([log_sum for _, log_sum in found])  # line 18
    shares = log_sums.isfinite().to(qk.dtype).softmax(0)  # line 19
    return (shares[..., None] * outputs).sum(0)  # line 20


# %% solution="hash-leaks"
def hash_leaks() -> dict[str, int]:
    """By symptom ("long", "strangers", "mixed", "rounds"), the line that is behind it."""
    ### BEGIN SOLUTION
    return {"long": 11, "strangers": 6, "mixed": 13, "rounds": 19}
    ### END SOLUTION


# %% test="hash-leaks-keys" points=1
lines = hash_leaks()
assert isinstance(lines, dict), "hash_leaks should return a dict, from symptoms to lines"
assert sorted(lines) == ["long", "mixed", "rounds", "strangers"], (
    "the four symptoms are 'long', 'strangers', 'mixed' and 'rounds'"
)
assert all(line in range(1, 21) for line in lines.values()), (
    f"lines have the numbers 1 to 20\nYours are {list(lines.values())}."
)
visible_passed()
### BEGIN HIDDEN TESTS
assert lines["long"] == 11, "the line behind 'long' is another one"
assert lines["strangers"] == 6, "the line behind 'strangers' is another one"
### END HIDDEN TESTS

# %% test="hash-leaks-outputs" points=1
lines = hash_leaks()
assert isinstance(lines, dict), "hash_leaks should return a dict, from symptoms to lines"
visible_passed()
### BEGIN HIDDEN TESTS
assert lines["mixed"] == 13, "the line behind 'mixed' is another one"
assert lines["rounds"] == 19, "the line behind 'rounds' is another one"
### END HIDDEN TESTS

# %% [markdown]
# ## 15.7 There and back   (4 points, about 30 minutes, difficulty 4 of 5)
#
# **Objective.** Go back through a block that has kept nothing.
#
# A **reversible block** has two streams. From $x_1, x_2$ it makes
#
# $$y_1 = x_1 + f(x_2),\qquad y_2 = x_2 + g(y_1),$$
#
# where $f$ is attention and $g$ the feed-forward network. Both have weights: they are called as `f(x, w_f)` and `g(x, w_g)`. Training needs
# the slopes of the loss with respect to what went in. An ordinary block keeps what it needs for that; this one keeps nothing, since the next one's inputs are its outputs.
#
# `undo(f, g, w_f, w_g, y1, y2, dy1, dy2)` gets a block's outputs and the slopes of the loss with respect to them. It returns six tensors: $x_1$, $x_2$, and the slopes of the loss with respect to
# $x_1$, $x_2$, $w_f$ and $w_g$. None of them has a history. Call `f` and `g` as often as you need; use `torch.autograd.grad` for the slopes through one call of them.
#
# <details><summary>Hint 1: a question</summary>
#
# $x_1$ and $x_2$: which of them can be found from $y_1$ and $y_2$ alone, with one call?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Call $g$ at $y_1$, with gradients on. Its value gives $x_2$, and with `dy2` as `grad_outputs` it gives what reaches $y_1$ through $g$ and what reaches
# $w_g$. Now the loss's whole slope at $y_1$ is known: two ways lead there. Then the same for $f$ at $x_2$.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - $x_2$ is right and $x_1$ is not: $f$ has to be called at $x_2$, not at $y_2$.
# - Slopes at $w_f$ are too small: $y_1$ goes into $y_2$ as well.
# - *does not require grad*: make a detached copy that does, before the call.
#
# </details>


# %% solution="undo"
def undo(
    f: Callable[[Tensor, Tensor], Tensor],
    g: Callable[[Tensor, Tensor], Tensor],
    w_f: Tensor,
    w_g: Tensor,
    y1: Tensor,
    y2: Tensor,
    dy1: Tensor,
    dy2: Tensor,
) -> tuple[Tensor, ...]:
    """Return a block's inputs, and the slopes at its inputs and weights, from its outputs."""
    ### BEGIN SOLUTION
    with torch.enable_grad():
        at, weights = y1.detach().requires_grad_(), w_g.detach().requires_grad_()
        added = g(at, weights)
    through_g, dw_g = torch.autograd.grad(added, (at, weights), dy2)
    x2, dx1 = y2.detach() - added.detach(), dy1 + through_g
    with torch.enable_grad():
        at, weights = x2.clone().requires_grad_(), w_f.detach().requires_grad_()
        added = f(at, weights)
    through_f, dw_f = torch.autograd.grad(added, (at, weights), dx1)
    return y1.detach() - added.detach(), x2, dx1, dy2 + through_f, dw_f, dw_g
    ### END SOLUTION


# %%
def bent(x: Tensor, w: Tensor) -> Tensor:
    """For the tests: a part of a block that mixes features."""
    return torch.tanh(x @ w)


def spread(x: Tensor, w: Tensor) -> Tensor:
    """For the tests: a part of a block that mixes tokens and features."""
    return torch.softmax(x @ x.mT, -1) @ x @ w


# %% test="undo-inputs" points=1
x1, x2, w_f, w_g = draw((2, 3, 4), (2, 3, 4), (4, 4), (4, 4), seed=51)
y1 = x1 + spread(x2, w_f)
y2 = x2 + bent(y1, w_g)
slopes = draw((2, 3, 4), (2, 3, 4), seed=52)
found = undo(spread, bent, w_f, w_g, y1, y2, *slopes)
assert len(found) == 6, "undo should return six tensors"
assert_close(found[1], x2, "x2 should be what went into the block", atol=1e-10)
assert_close(found[0], x1, "x1 should be what went into the block", atol=1e-10)
visible_passed()


### BEGIN HIDDEN TESTS
def there(streams: list[Tensor], blocks: list[tuple[Tensor, Tensor]]) -> list[Tensor]:
    """The outputs of a stack of blocks."""
    one, two = streams
    for w_f, w_g in blocks:
        one = one + bent(two, w_f)
        two = two + spread(one, w_g)
    return [one, two]


blocks = [tuple(draw((3, 3), (3, 3), seed=seed)) for seed in (53, 54, 55)]
streams = list(draw((1, 5, 3), (1, 5, 3), seed=56))
back = there(streams, blocks)
for weights in blocks[::-1]:
    back = list(undo(bent, spread, *weights, *back, *back)[:2])
for one, other in zip(back, streams, strict=True):
    assert_close(one, other, "three blocks should be undone one after the other", atol=1e-10)
### END HIDDEN TESTS

# %% test="undo-slopes" points=3
leaves = [one.requires_grad_() for one in draw((2, 3, 4), (2, 3, 4), (4, 4), (4, 4), seed=57)]
y1 = leaves[0] + spread(leaves[1], leaves[2])
y2 = leaves[1] + bent(y1, leaves[3])
slopes = draw((2, 3, 4), (2, 3, 4), seed=58)
wanted = torch.autograd.grad([y1, y2], leaves, slopes)
given = [one.detach().clone() for one in (leaves[2], leaves[3], y1, y2, *slopes)]
found = undo(spread, bent, *given)
assert_close(found[5], wanted[3], "the slope at g's weights should be that of autograd", atol=1e-10)
assert_close(found[2], wanted[0], "the slope at x1 should be that of autograd", atol=1e-10)
assert not any(one.requires_grad for one in given), (
    "what is handed in should be left as it is: make detached copies, and let these require gradients"
)
visible_passed()
### BEGIN HIDDEN TESTS
leaves = [one.requires_grad_() for one in draw((2, 3, 4), (2, 3, 4), (4, 4), (4, 4), seed=59)]
y1 = leaves[0] + spread(leaves[1], leaves[2])
y2 = leaves[1] + bent(y1, leaves[3])
slopes = draw((2, 3, 4), (2, 3, 4), seed=60)
wanted = torch.autograd.grad([y1, y2], leaves, slopes)
given = [one.detach().clone() for one in (leaves[2], leaves[3], y1, y2, *slopes)]
found = undo(spread, bent, *given)
assert_close(found[3], wanted[1], "the slope at x2 should be that of autograd", atol=1e-10)
assert_close(found[4], wanted[2], "the slope at f's weights should be that of autograd", atol=1e-10)
assert all(not one.requires_grad for one in found), "what is returned should have no history"
before = (leaves[2], leaves[3], y1, y2, *slopes)
assert all(torch.equal(one, other) for one, other in zip(given, before, strict=True)), (
    "what is handed in should be left unchanged"
)
with torch.no_grad(), expect_no_error("on the way back autograd is off: turn it on for each call"):
    found = undo(bent, spread, *[one.float() for one in given])
assert all(one.dtype == torch.float32 for one in found), "float32 in should give float32 out"
### END HIDDEN TESTS

# %% [markdown]
# ## 15.8 The same dice   (3 points, about 20 minutes, difficulty 3 of 5)
#
# **Objective.** Repeat what was left to chance, and see what cannot be repeated.
#
# With dropout in $f$, the second call draws another mask, and $y_1 - f(x_2)$ is not $x_1$. So the state of the generator is kept before the first call. `replay(f, x, state)` gets a function that may draw
# from torch's generator, and the state `torch.get_rng_state()` from before its first call. It returns what `f(x)` gave then,
# and **leaves the generator as if nothing had been drawn**, also where `f` stops with an error.
#
# Rounding cannot be repeated: in floating point, $(x + a) - a$ is not always $x$. 48 blocks in float32 are run, then undone, from the last to the first. The inputs are numbers of about 1. By how much
# does what comes back differ from them at most? Let `predicted_drift` return one of `DRIFTS`; the point is for having predicted.
#
# <details><summary>Hint 1: a question</summary>
#
# After you have set the state and called `f`: who else draws numbers next, and from where?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Keep the state, set the other, call, set the kept one. `try` and `finally`; or `torch.random.fork_rng`.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - The same result each time, and the next draws are the same as well: the old state has to come back.
#
# </details>


# %% solution="replay"
def replay(f: Callable[[Tensor], Tensor], x: Tensor, state: Tensor) -> Tensor:
    """Return f(x) with the generator in this state, and leave the generator as it was."""
    ### BEGIN SOLUTION
    now = torch.get_rng_state()
    torch.set_rng_state(state)
    try:
        return f(x)
    finally:
        torch.set_rng_state(now)
    ### END SOLUTION


# %%
class Dropping:
    """For the tests: a part of a block that leaves numbers out by chance."""

    def __init__(self, *rates: float) -> None:
        self.rates = rates

    def __call__(self, x: Tensor) -> Tensor:
        """Some of the numbers, by chance, and larger for it; once for each rate."""
        for rate in self.rates:
            x = F.dropout(x, rate)
        return x


# %% test="replay-same" points=2
dropped = Dropping(0.5)
torch.manual_seed(61)
x = draw((4, 6), seed=62)
state = torch.get_rng_state()
first = dropped(x)
torch.rand(3)  # others draw as well
assert_close(replay(dropped, x, state), first, "the same numbers should be dropped again")
visible_passed()
### BEGIN HIDDEN TESTS
torch.manual_seed(63)
x = draw((4, 6), seed=64)
state = torch.get_rng_state()
first = dropped(x)
torch.rand(3)
for _ in range(2):
    assert_close(replay(dropped, x, state), first, "the same again, as often as one likes")
torch.rand(2)  # else the state would be the one that a replay ends in
now = torch.get_rng_state()
second = torch.rand(4)
torch.set_rng_state(now)
again = replay(dropped, x, state)
assert_close(torch.rand(4), second, "what is drawn next should be as if nothing had been drawn")
assert_close(again, first, "whatever was drawn in between, the same numbers should be dropped")
leaf = x.clone().requires_grad_()
(slope,) = torch.autograd.grad(replay(dropped, leaf, state).sum(), leaf)
assert_close(slope, (first != 0) * 2.0, "gradients should flow through what is repeated")
now = torch.get_rng_state()
second = torch.rand(4)
torch.set_rng_state(now)
stopped = False
try:
    replay(Dropping(0.5, 2.0), x, state)  # draws, then stops: no share is above 1
except ValueError:
    stopped = True
assert stopped, "an error in f should be handed on"
assert_close(torch.rand(4), second, "after an error, too, the generator should be as it was")
### END HIDDEN TESTS

# %%
DRIFTS = ("not at all", "by about 1e-7", "by about 1e-4", "by about 1")


# %% solution="predicted-drift"
def predicted_drift() -> str:
    """What you expect: one of DRIFTS."""
    ### BEGIN SOLUTION
    return "by about 1e-7"
    ### END SOLUTION


# %% test="predicted-drift-made" points=1
drift = predicted_drift()
assert isinstance(drift, str), "a prediction is one of the texts in DRIFTS"
assert drift in DRIFTS, f"a prediction is one of the texts {DRIFTS}\nYours is {drift!r}."
visible_passed()

# %% [markdown]
# **Try it: what is kept, and what drifts.** It uses your `undo` of 15.7.

# %%
if watched():  # not while the notebook is graded
    prediction = predicted(predicted_drift, DRIFTS)
    width, depths = 64, (1, 3, 6, 12, 24, 48)

    def part(x, w):
        """What a block adds."""
        return F.layer_norm(x, x.shape[-1:]) @ w

    def drawn(depth, dtype):
        """Inputs, and two matrices for each block."""
        torch.manual_seed(1)
        weights = torch.randn(2 * depth, width, width, dtype=torch.float64) / 8
        x = torch.randn(1, 16, width, dtype=torch.float64)
        return x.to(dtype), [w.to(dtype).requires_grad_() for w in weights]

    drifts = {"float32": [], "float64": []}
    kept = {"ordinary": [], "reversible": []}
    for depth in depths:
        for name in drifts:
            x, weights = drawn(depth, getattr(torch, name))
            one = two = x
            with torch.no_grad():
                for w_f, w_g in zip(weights[::2], weights[1::2], strict=True):
                    one = one + part(two, w_f)
                    two = two + part(one, w_g)
            for w_f, w_g in zip(weights[-2::-2], weights[::-2], strict=True):
                one, two, *_ = undo(part, part, w_f, w_g, one, two, x, x)
            drifts[name].append((one - x).abs().max().item())
        x, weights = drawn(depth, torch.float32)
        ways = {
            "ordinary": lambda x=x, w=weights: kept_by_all((part, part), x, w),
            "reversible": lambda x=x, w=weights: reversible(undo, (part, part), x, w),
        }
        for name, way in ways.items():
            kept[name].append(saved_numbers(way, weights))
    compare(prediction, drifts["float32"][-1])
    print({name: [f"{drift:.0e}" for drift in found] for name, found in drifts.items()})
    print("numbers kept for the way back:", kept)
    ax = plots.lines(depths, kept, "Kept for the way back", "blocks", "numbers")
    plt.show()

# %% [markdown]
# <details><summary>What happened</summary>
#
# Ordinary blocks keep what grows with their number. The reversible ones keep two streams, whatever the depth. The price is one more call of $f$ and $g$ in each block,
# and rounding: each block back adds errors of about $10^{-7}$ of its numbers, which are larger in later blocks, and what a block gets wrong the one before it takes for its input. After 48 blocks some $10^{-5}$ to
# $10^{-4}$ are off. That is little beside the noise of training; in half precision it would not be.
#
# </details>

# %% [markdown]
# ## 15.9 Where does it pay?   (2 points, about 15 minutes, difficulty 3 of 5)
#
# **Objective.** Say which of the two ideas you would use, and for what.
#
# Somebody trains a model with 12 layers on texts of 4,096 tokens. One accelerator's memory does not suffice, and a colleague proposes a Reformer: 8 rounds, chunks of 64 tokens. In three to six
# sentences: (a) How many keys is a token compared with, in full causal attention on average and with the hash? What else does each round have to do, which does not show in this number? (b) Which of
# the two ideas would you advise, if any, and how would you find out within a day whether your advice was right?
#
# <details><summary>Hint 1: a question</summary>
#
# What takes the memory: the scores, or what layers keep? And who says that scores have to be kept?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Two chunks in each round. For (b), name a number that you would measure, and with what you would compare it.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - Unsure about (a): half of all tokens lie ahead.
# - Unsure about (b): a method that saves time and costs quality has not been measured by its time.
#
# </details>

# %% [markdown] manual="where-it-pays" points=2
# ### BEGIN SOLUTION
# (a) In full attention with about 2,048 on average, of 4,096 scores computed if nothing is skipped; with the hash with 8 times 128 = 1,024, of which most are hidden by bucket or place. Each
# round hashes, sorts, gathers keys and values in another order and puts outputs back, which is slow on accelerators: it moves memory about instead of multiplying.
#
# (b) A factor of two in scores will not pay for the sorting, and costs quality; exact attention in blocks needs no memory for scores and loses nothing. If it is the layers'
# memory that does not suffice, undoing or recomputing layers helps, for about a third more computing. I would measure peak memory, tokens per second and the loss after the same time for exact attention in blocks with recomputing, and for the
# hash, on the same texts.
#
# Marking: 1 point for (a), half each for the two numbers (1,024 against about 2,048, or 4,096) and for sorting and gathering. 1 point for (b): advice with a reason, half; a comparison that looks at quality and cost together, half.
# ### END SOLUTION

# %% [markdown]
# ## 15.10 Bonus: exact, in blocks   (3 points, about 40 minutes, difficulty 5 of 5)
#
# **Objective.** Write the way back of what is used today: exact attention that never holds all scores. Nothing else needs it.
#
# With 15.5, exact attention can be computed block by block of keys: each block gives an output and a log-sum, and they are combined. What remains is the way back, without having kept a single weight.
# For one head: queries $q$ $(n, d)$, one **block** of keys $k$ $(m, d)$ and values $v$ $(m, d_v)$, the outputs $o$ $(n, d_v)$ and log-sums $z$ $(n)$ over **all** keys, and the slope of the loss at the outputs, $do$ $(n, d_v)$.
# Scores are $s_{ij} = q_i \cdot k_j / \sqrt d$, and all keys are seen.
#
# `block_slopes(q, k, v, o, z, do)` returns three tensors: what this block adds to the slope at $q$, $(n, d)$; the slopes at $k$, $(m, d)$, and at $v$, $(m, d_v)$. By hand: autograd (`torch.autograd.grad`, `backward`) is not allowed here, nor is torch's ready way back through attention or softmax. Scores may be large, and in float64 the tests look at thirteen places after the point: a formula has them, differences of two calls do not.
#
# <details><summary>Hint 1: a question</summary>
#
# A weight is $e^{s_{ij}}$ divided by a sum over all keys, of which most are in other blocks. Which number that you have stands for the sum?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# With $p_{ij} = e^{s_{ij} - z_i}$, the slope at a weight is $do_i \cdot v_j$. Through the softmax: $ds_{ij} = p_{ij} (do_i \cdot v_j - \sum_{j'} p_{ij'}\, do_i \cdot v_{j'})$, with the sum over all
# keys. Move $do_i$ out of that sum: what is left in it?
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - Right if there is one block: a sum over all keys is not one over the block.
# - Right but for a factor: $\sqrt d$ counts on the way back, too.
#
# </details>


# %% solution="block-slopes"
def block_slopes(
    q: Float[Tensor, "n d"],
    k: Float[Tensor, "m d"],
    v: Float[Tensor, "m d_v"],
    o: Float[Tensor, "n d_v"],
    z: Float[Tensor, "n"],
    do: Float[Tensor, "n d_v"],
) -> tuple[Tensor, Tensor, Tensor]:
    """Return what a block of keys adds to the slope at q, and the slopes at its keys and values."""
    ### BEGIN SOLUTION
    size = math.sqrt(q.shape[-1])
    p = (q @ k.mT / size - z[:, None]).exp()
    ds = p * (do @ v.mT - (do * o).sum(-1, keepdim=True)) / size
    return ds @ k, ds.mT @ q, p.mT @ do
    ### END SOLUTION


# %%
def softly(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """For the tests: attention to all keys, and its log-sums."""
    scores = q @ k.mT / q.shape[-1] ** 0.5
    return scores.softmax(-1) @ v, scores.logsumexp(-1)


# %% test="block-slopes-whole" points=1
q, k, v, do = draw((3, 4), (5, 4), (5, 2), (3, 2), seed=71)
leaves = [one.requires_grad_() for one in (q, k, v)]
o, z = softly(*leaves)
wanted = torch.autograd.grad(o, leaves, do)
found = block_slopes(q.detach(), k.detach(), v.detach(), o.detach(), z.detach(), do)
assert len(found) == 3, "block_slopes should return three tensors"
assert_close(found[2], wanted[2], "one block with all keys: the slope at the values", atol=1e-10)
assert_close(found[1], wanted[1], "one block with all keys: the slope at the keys", atol=1e-10)
assert_close(found[0], wanted[0], "one block with all keys: the slope at the queries", atol=1e-10)
visible_passed()
### BEGIN HIDDEN TESTS
q, k, v, do = draw((3, 4), (5, 4), (5, 2), (3, 2), seed=73)
leaves = [one.requires_grad_() for one in (q, k, v)]
o, z = softly(*leaves)
wanted = torch.autograd.grad(o, leaves, do)
single = [one.detach().float() for one in (q, k, v, o, z, do)]
kept = [one.clone() for one in single]
found = block_slopes(*single)
for one, other in zip(found, wanted, strict=True):
    assert_close(one, other.float(), "in float32 slopes should be in float32", atol=1e-5)
assert all(torch.equal(one, other) for one, other in zip(single, kept, strict=True)), (
    "what is handed in should be left unchanged"
)
### END HIDDEN TESTS

# %% test="block-slopes-blocks" points=2
q, k, v, do = draw((4, 3), (7, 3), (7, 5), (4, 5), seed=72)
leaves = [one.requires_grad_() for one in (q, k, v)]
o, z = softly(*leaves)
wanted = torch.autograd.grad(o, leaves, do)
q, k, v, o, z = (one.detach() for one in (q, k, v, o, z))
found = [block_slopes(q, k[at], v[at], o, z, do) for at in (slice(0, 3), slice(3, 7))]
assert_close(
    found[0][0] + found[1][0],
    wanted[0],
    "two blocks together should give the slope at the queries",
    atol=1e-10,
)
assert_close(
    torch.cat([found[0][1], found[1][1]]),
    wanted[1],
    "each block should give the slopes at its own keys",
    atol=1e-10,
)
visible_passed()
### BEGIN HIDDEN TESTS
q, k, v, do = draw((4, 3), (7, 3), (7, 5), (4, 5), seed=74)
leaves = [one.requires_grad_() for one in (q, k, v)]
o, z = softly(*leaves)
wanted = torch.autograd.grad(o, leaves, do)
q, k, v, o, z = (one.detach() for one in (q, k, v, o, z))
found = [block_slopes(q, k[at], v[at], o, z, do) for at in (slice(0, 4), slice(4, 7))]
assert_close(
    torch.cat([found[0][2], found[1][2]]),
    wanted[2],
    "each block should give the slopes at its own values",
    atol=1e-10,
)
# a formula has all digits, and what is taken from differences of two calls has not
claim = "slopes at queries and keys should have all digits of float64"
assert_close(found[0][0] + found[1][0], wanted[0], claim, atol=1e-13)
assert_close(torch.cat([found[0][1], found[1][1]]), wanted[1], claim, atol=1e-13)
# no one step serves features of all sizes, if what is asked for is taken from calls
sizes = torch.tensor([0.001, 1.0, 1000.0], dtype=torch.float64)
leaves = [one.clone().requires_grad_() for one in (q * sizes, k / sizes, v)]
o, z = softly(*leaves)
for_q, for_k, _ = torch.autograd.grad(o, leaves, do)
found = [
    block_slopes(q * sizes, k[at] / sizes, v[at], o.detach(), z.detach(), do)
    for at in (slice(0, 2), slice(2, 7))
]
claim = "small features and large ones: slopes should have all digits for each"
assert_close((found[0][0] + found[1][0]) * sizes, for_q * sizes, claim, atol=1e-12)
assert_close(torch.cat([found[0][1], found[1][1]]) / sizes, for_k / sizes, claim, atol=1e-12)
q = 2000 * q
leaves = [one.clone().requires_grad_() for one in (q, k, v)]
o, z = softly(*leaves)
wanted = torch.autograd.grad(o, leaves, do)
found = [
    block_slopes(q, k[at], v[at], o.detach(), z.detach(), do) for at in (slice(0, 2), slice(2, 7))
]
assert_close(
    torch.cat([found[0][2], found[1][2]]), wanted[2], "scores may be large, in one block or another"
)
assert_close(found[0][0] + found[1][0], wanted[0], "slopes at the queries with large scores")
### END HIDDEN TESTS

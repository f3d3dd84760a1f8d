# %% [markdown]
# # 3 Attention
#
# In this notebook you build attention in PyTorch: two ways to score, a softmax that can leave keys
# out, scaled dot-product attention and the two masks of the Transformer. You set the weights of a head
# by hand, find out attentions that look ahead, and join attention from blocks of keys. What you write
# here carries over: the finished model calls `scaled_dot_product_attention`, `causal_mask` and `padding_mask` from this notebook.
#
# **How to work.** Run the cells from top to bottom. Replace each `# YOUR CODE HERE` and the `raise`
# below it by your answer, then run the test cells that follow; their messages say what is wrong. The visible tests
# are not all tests: hidden ones, with other sizes and numbers, run when the notebook is graded.
# Each question is tested on its own, so you may leave one open and go on. Before you hand in,
# restart the kernel and run all cells.
#
# **Where to read.** The book's page *Attention* teaches the same ideas with NumPy on one sequence.
#
# **Conventions.** Rows are tokens, the batch comes first. $n$ counts queries, $m$ counts keys.
# A mask is boolean, and **True means: may attend**. A type such as `Float[Tensor, "... n d_k"]`
# reads: a tensor of floating-point numbers with shape $(\ldots, n, d_k)$. The dots stand for any
# number of leading axes, such as a batch axis, or none; `#n` stands for $n$ or 1. An axis may have
# length 1 and stays all the same; what comes out has the dtype of what goes in.

# %% setup
import math
from collections.abc import Callable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lab.check import (
    assert_close,
    assert_dtype,
    assert_gradients,
    assert_shape,
    draw,
    expect_no_error,
    visible_passed,
)
from lab.predict import compare, predicted, watched

# %% [markdown]
# ## 3.1 Two ways to score   (3 points, about 15 minutes, difficulty 2 of 5)
#
# **Objective.** Turn one decoder state and $m$ encoder states into $m$ scores.
#
# Before the Transformer, a translation model had one state $s$ with $d_2$ numbers (what am
# I about to say?) and $m$ source states $h_i$ with $d_1$ numbers each. Two common scores are
#
# $$\text{additive:}\quad e_i = v^\top \tanh(W_1 h_i + W_2 s)
# \qquad\qquad \text{multiplicative:}\quad e_i = s^\top W\, h_i$$
#
# with $W_1$ of shape $(d_3, d_1)$, $W_2$ of shape $(d_3, d_2)$, $v$ of
# shape $(d_3)$ and $W$ of shape $(d_2, d_1)$. In these two formulas vectors are columns;
# in your tensors each state is a row: `h` is $(m, d_1)$ and `s` is $(d_2)$, both perhaps with a
# batch axis in front: `h` is $(B, m, d_1)$ and `s` is $(B, d_2)$. Return the scores themselves,
# no softmax: shape $(m)$ or $(B, m)$. Gradients should be able to flow back to all that is handed in,
# here and in every question of this chapter.
#
# <details><summary>Hint 1: a question</summary>
#
# `s` is one vector for all $m$ states. Which axis does it lack next to `h`, and where does that
# axis belong?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Additive: project all states at once, project the one state, give the latter an axis of length 1
# for the $m$ positions, add, squash, and weigh the $d_3$ numbers of each position with `v`.
# Multiplicative: first take `s` into the space of the states, then take one dot product per state.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - *mat1 and mat2 shapes cannot be multiplied*: rows times a matrix given as (out, in) needs that
#   matrix transposed.
# - *The size of tensor a must match the size of tensor b*, only with a batch: `s` needs its extra
#   axis **before** the last one.
# - A shape with a stray 1 at the end: a matrix product left an axis that should go.
# - A batch of one sentence loses its axis: `squeeze()` takes away every axis of length 1.
#
# </details>


# %% solution="scores"
def additive_score(
    s: Float[Tensor, "... d_2"],
    h: Float[Tensor, "... m d_1"],
    w1: Float[Tensor, "d_3 d_1"],
    w2: Float[Tensor, "d_3 d_2"],
    v: Float[Tensor, "d_3"],
) -> Float[Tensor, "... m"]:
    """Score m states h against the state s by a small network (Bahdanau et al. 2015, A.1.2)."""
    ### BEGIN SOLUTION
    query = s @ w2.T  # (..., d_3)
    hidden = torch.tanh(h @ w1.T + query.unsqueeze(-2))  # (..., m, d_3)
    return hidden @ v  # (..., m)
    ### END SOLUTION


def multiplicative_score(
    s: Float[Tensor, "... d_2"],
    h: Float[Tensor, "... m d_1"],
    w: Float[Tensor, "d_2 d_1"],
) -> Float[Tensor, "... m"]:
    """Score m states h against the state s by a bilinear form (Luong et al. 2015, section 3.1)."""
    ### BEGIN SOLUTION
    query = s @ w  # (..., d_1)
    return (h @ query.unsqueeze(-1)).squeeze(-1)  # (..., m)
    ### END SOLUTION


# %% test="scores-additive" points=2
s = torch.tensor([1.0, 2.0], dtype=torch.float64)
h = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], dtype=torch.float64)
eye, v = torch.eye(2, dtype=torch.float64), torch.tensor([1.0, -1.0], dtype=torch.float64)
scores = additive_score(s, h, eye, eye, v)
assert_shape(scores, (3,), "one additive score per state: three states should give shape (3,)")
wanted = torch.tensor([0.0, -0.233461, -0.031027], dtype=torch.float64)
assert_close(scores, wanted, "additive score on the book's numbers is wrong", atol=1e-6)

s, h, w1, w2, v = draw((2, 4), (2, 3, 6), (5, 6), (5, 4), (5,))
scores = additive_score(s, h, w1, w2, v)
assert_shape(scores, (2, 3), "additive scores of a batch should be (batch, states)")
assert_dtype(scores, torch.float64, "additive scores should have the dtype of the states")
visible_passed()
### BEGIN HIDDEN TESTS
inputs = [t.requires_grad_() for t in draw((2, 4), (2, 3, 6), (5, 6), (5, 4), (5,), seed=1)]
s, h, w1, w2, v = inputs
before = s.detach().clone(), h.detach().clone()
scores = additive_score(s, h, w1, w2, v)
for b in range(2):
    for i in range(3):
        wanted = (v * torch.tanh(w1 @ h[b, i] + w2 @ s[b])).sum()
        assert_close(
            scores[b, i],
            wanted,
            "each additive score should be v . tanh(W1 h + W2 s) of its own state and batch entry",
        )
single = additive_score(s[:1], h[:1, :1], w1, w2, v)
assert_shape(single, (1, 1), "additive scores of one sentence with one state should be (1, 1)")
single = additive_score(*(t.float() for t in (s[0], h[0, :1], w1, w2, v)))
assert_shape(single, (1,), "the additive score of one state, without a batch, should be (1,)")
assert_dtype(single, torch.float32, "additive scores of float32 states should be float32")
assert torch.equal(s, before[0]) and torch.equal(h, before[1]), (
    "additive_score should leave the tensors handed to it unchanged"
)
assert_gradients(
    scores,
    torch.tanh(h @ w1.T + (s @ w2.T)[:, None]) @ v,
    dict(zip(("s", "h", "w1", "w2", "v"), inputs, strict=True)),
    "the gradients of s, h, w1, w2 and v should be those of the additive score",
)
### END HIDDEN TESTS

# %% test="scores-multiplicative" points=1
s = torch.tensor([1.0, 2.0], dtype=torch.float64)
h = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], dtype=torch.float64)
w = torch.tensor([[1.0, 2.0], [0.0, 1.0]], dtype=torch.float64)
scores = multiplicative_score(s, h, w)
assert_shape(scores, (3,), "one multiplicative score per state: three states should give (3,)")
wanted = torch.tensor([1.0, 4.0, 5.0], dtype=torch.float64)
assert_close(scores, wanted, "multiplicative score on the book's numbers is wrong")

s, h, w = draw((2, 4), (2, 3, 6), (4, 6))
scores = multiplicative_score(s, h, w)
assert_shape(scores, (2, 3), "multiplicative scores of a batch should be (batch, states)")
assert_dtype(scores, torch.float64, "multiplicative scores should have the dtype of the states")
visible_passed()
### BEGIN HIDDEN TESTS
s, h, w = (t.requires_grad_() for t in draw((2, 4), (2, 3, 6), (4, 6), seed=1))
before = s.detach().clone(), h.detach().clone(), w.detach().clone()
scores = multiplicative_score(s, h, w)
for b in range(2):
    for i in range(3):
        wanted = sum(s[b, j] * w[j, c] * h[b, i, c] for j in range(4) for c in range(6))
        assert_close(
            scores[b, i],
            wanted,
            "each multiplicative score should be s . W h of its own state and batch entry",
        )
single = multiplicative_score(s[:1], h[:1, :1], w)
assert_shape(
    single, (1, 1), "multiplicative scores of one sentence with one state should be (1, 1)"
)
single = multiplicative_score(s[0].float(), h[0, :1].float(), w.float())
assert_shape(single, (1,), "the multiplicative score of one state, without a batch, should be (1,)")
assert_dtype(single, torch.float32, "multiplicative scores of float32 states should be float32")
assert all(torch.equal(t, b) for t, b in zip((s, h, w), before, strict=True)), (
    "multiplicative_score should leave the tensors handed to it unchanged"
)
assert_gradients(
    scores,
    torch.einsum("bj,jc,bic->bi", s, w, h),
    {"s": s, "h": h, "w": w},
    "the gradients of s, h and w should be those of the multiplicative score",
)
### END HIDDEN TESTS

# %% [markdown]
# ## 3.2 A softmax that can leave keys out   (4 points, about 20 minutes, difficulty 3 of 5)
#
# **Objective.** Turn scores into weights over the keys, in such a way that a key that may not be
# seen gets weight 0, and that no finite scores can produce a NaN.
#
# `scores` has shape $(\ldots, n, m)$: one row per query, one column per key. Each row becomes
#
# $$a_{ij} = \frac{e^{s_{ij} - c_i}}{\sum_{j'} e^{s_{ij'} - c_i}}$$
#
# with both the sum and the largest value $c_i$ taken over the keys of row $i$ that may be seen.
# Write it with exp and sum, so that you meet its two traps. No ready softmax is allowed here: not
# `torch.softmax` or `log_softmax`, by whatever name, and nothing that runs one, such as
# `scaled_dot_product_attention`. The traps are:
#
# - exp overflows for large scores. Subtracting a constant per row changes nothing mathematically
#   and everything numerically.
# - A row in which **no** key may be seen (a padded sentence, say) has nothing to share out. Which
#   finite numbers you put there is up to you. But they must be finite, so must the gradient, and
#   the other rows must not notice.
#
# `mask` is boolean, True = may attend, and broadcasts to the shape of the scores; None hides
# nothing. Leave the caller's tensors as they are. Scores in half precision (float16) should work
# too.
#
# <details><summary>Hint 1: a question</summary>
#
# What is $-\infty - (-\infty)$? And where would that appear in a row without visible keys?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# First give the hidden scores a very low value. Then take each row's maximum, keeping the axis so
# that it broadcasts back; subtract; exponentiate; divide by the row's sum. The most negative
# *finite* number of the dtype is a safer "very low value" than minus infinity.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - The columns sum to 1, not the rows: look at the axis.
# - A hidden key keeps some weight: what does exp make of the value that you gave it?
# - Rows sum to less than 1 under a mask: you hid keys after normalising.
# - NaN for large scores: the maximum is missing, or it is one maximum for all rows, or it was
#   taken before the hidden scores were lowered.
# - NaN for the row without keys: see hint 1.
# - Finite weights but a NaN gradient: a NaN that is repaired afterwards still reaches the gradient
#   of an addition.
#
# </details>


# %% solution="masked-softmax"
def masked_softmax(
    scores: Float[Tensor, "... n m"],
    mask: Bool[Tensor, "... #n m"] | None = None,  # True = may attend
) -> Float[Tensor, "... n m"]:
    """Share out each query's weight over the keys it may see (last axis).

    Rows sum to 1. A row that may see no key has finite weights and a finite gradient.
    """
    ### BEGIN SOLUTION
    if mask is not None:
        # the lowest finite number: minus infinity would give NaN in a row without visible keys
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = torch.exp(scores - scores.amax(-1, keepdim=True))  # (..., n, m), each at most 1
    weights = weights / weights.sum(-1, keepdim=True)
    return weights if mask is None else weights.masked_fill(~mask, 0.0)
    ### END SOLUTION


# %% test="masked-softmax-values" points=1
weights = masked_softmax(torch.tensor([[14.0, 12.0]], dtype=torch.float64))
wanted = torch.tensor([[0.880797, 0.119203]], dtype=torch.float64)
assert_close(weights.sum(-1), 1, "the weights of one query should sum to 1 over its keys")
assert_close(weights, wanted, "scores 14 and 12 should give weights 0.8808 and 0.1192", atol=1e-6)

weights = masked_softmax(draw((2, 3, 5)))
assert_shape(weights, (2, 3, 5), "weights should have the shape of the scores")
assert_dtype(weights, torch.float64, "weights should have the dtype of the scores")
assert_close(weights.sum(-1), 1, "each query's weights should sum to 1 over the keys")
visible_passed()
### BEGIN HIDDEN TESTS
for shape in ((4, 7), (2, 3, 5), (2, 3, 4, 5)):
    scores = draw(shape, seed=2)
    before, wanted = scores.clone(), torch.softmax(scores, -1)
    with expect_no_error("scores may have any number of leading axes, and no mask"):
        weights = masked_softmax(scores)
    assert torch.equal(scores, before), (
        "without a mask too, masked_softmax should leave the scores handed to it unchanged"
    )
    assert_close(
        weights,
        wanted,
        "without a mask the weights should be the softmax of each row, whatever the leading axes",
    )
scores = draw((3, 4), seed=2, dtype=torch.float32)
weights = masked_softmax(scores)
assert_dtype(weights, torch.float32, "float32 scores should give float32 weights")
wanted = torch.softmax(scores, -1)
assert_close(weights, wanted, "the weights should be right in float32 too")
half = "the weights should be right in half precision (float16) without a mask too"
with expect_no_error(half):
    weights = masked_softmax(scores.half())
assert_close(weights.float(), wanted, half, atol=2e-3)
assert_dtype(weights, torch.float16, "float16 scores should give float16 weights")
### END HIDDEN TESTS

# %% test="masked-softmax-mask" points=1
scores = torch.tensor([[2.0, 1.0, -1.0, 0.5]], dtype=torch.float64)
mask = torch.tensor([[True, True, False, False]])
weights = masked_softmax(scores, mask)
wanted = torch.tensor([[0.731059, 0.268941, 0.0, 0.0]], dtype=torch.float64)
assert_close(weights[:, 2:], 0, "a key whose mask is False should get weight 0")
assert_close(weights.sum(-1), 1, "the visible keys' weights should sum to 1 under a mask")
assert_close(weights, wanted, "weights on the book's masked row are wrong", atol=1e-6)
visible_passed()
### BEGIN HIDDEN TESTS
scores = draw((2, 3, 5), seed=3)
masks = (
    torch.tensor([[True, False, True, True, False], [True] * 5, [False, True, False, False, True]]),
    torch.tensor([[[True, True, False, True, False]], [[False, False, True, True, True]]]),
)
for mask in masks:  # the same for the whole batch; then one per batch entry for all queries
    handed_in, mask_before = scores.clone(), mask.clone()
    weights = masked_softmax(handed_in, mask)
    wanted = torch.softmax(torch.where(mask, scores, -math.inf), -1)
    assert_close(
        weights,
        wanted,
        "under a mask each row should be the softmax over its visible keys, the mask broadcasting",
    )
    assert torch.equal(handed_in, scores) and torch.equal(mask, mask_before), (
        "masked_softmax should leave the scores and the mask handed to it unchanged"
    )
scores = torch.tensor([[2.0, 1.0, 3.0]], dtype=torch.float16)
weights = masked_softmax(scores, torch.tensor([[True, True, False]]))
wanted = torch.tensor([[0.731059, 0.268941, 0.0]])
assert_close(weights.float(), wanted, "the mask should work for float16 scores too", atol=2e-3)
### END HIDDEN TESTS

# %% test="masked-softmax-stability" points=1
scores = torch.tensor([[1000.0, 1001.0], [-1000.0, -1002.0]], dtype=torch.float64)
weights = masked_softmax(scores)
wanted = torch.softmax(scores, -1)
assert_close(weights, wanted, "rows with very large and very small scores should stay finite")
visible_passed()
### BEGIN HIDDEN TESTS
scores = torch.tensor([[-800.0, -801.0, 900.0], [5.0, 6.0, 7.0]], dtype=torch.float64)
mask = torch.tensor([[True, True, False], [True, True, True]])
wanted = torch.softmax(torch.where(mask, scores, -math.inf), -1)
assert_close(
    masked_softmax(scores, mask),
    wanted,
    "a hidden key with a huge score should not disturb the keys that may be seen",
)
scores = torch.tensor([[-2000000.0, -2000001.0, 0.0]], dtype=torch.float64)
mask = torch.tensor([[True, True, False]])
assert_close(
    masked_softmax(scores, mask),
    torch.tensor([[0.73105858, 0.26894142, 0.0]], dtype=torch.float64),
    "however low the scores of the keys that may be seen are, a hidden key should get weight 0",
)
### END HIDDEN TESTS

# %% test="masked-softmax-empty-rows" points=1
scores = draw((3, 4))
mask = torch.tensor([[True, True, False, True], [False] * 4, [True, False, False, True]])
weights = masked_softmax(scores, mask)
assert torch.isfinite(weights).all(), "a row that may see no key should be finite, without NaN"
visible_passed()
### BEGIN HIDDEN TESTS
scores, upstream = draw((2, 3, 5), (2, 3, 5), seed=4)
mask = torch.ones(2, 3, 5, dtype=torch.bool)
mask[1] = False
mask[0, 1, 2:] = False
scores.requires_grad_()
weights = masked_softmax(scores * 1, mask)
others = torch.softmax(torch.where(mask[0], scores[0], -math.inf), -1)
assert_close(weights[0], others, "a row without visible keys should not change the other rows")
assert torch.isfinite(weights).all(), "rows that may see no key should be finite, without NaN"
(gradient,) = torch.autograd.grad((weights * upstream).sum(), scores)
assert torch.isfinite(gradient).all(), "the gradient should be finite too when a row may see no key"
(wanted,) = torch.autograd.grad((others * upstream[0]).sum(), scores)
assert_close(gradient[0], wanted[0], "the gradient of the other rows should be the softmax's")
### END HIDDEN TESTS

# %% [markdown]
# ## 3.3 Scaled dot-product attention   (5 points, about 25 minutes, difficulty 3 of 5)
#
# **Objective.** Weigh the values by how well each query matches each key:
#
# $$\text{Attention}(Q, K, V) =
# \text{softmax}\!\left(\frac{QK^\top}{\sqrt{d_k}}\right)V$$
#
# Queries `q` are $(\ldots, n, d_k)$, keys `k` are $(\ldots, m, d_k)$, values `v` are
# $(\ldots, m, d_v)$. Return both the output $(\ldots, n, d_v)$ and the weights $(\ldots, n, m)$.
# The mask is as in 3.2: boolean, True = may attend, broadcasting over the leading axes and
# perhaps over the queries; a query that may see no key must give a finite output and a finite
# gradient; gradients flow through the weights as well. Here you may use `torch.softmax`. Write it so that it stands alone (the assembled
# model takes this cell without the one of 3.2). `torch.nn.functional` has a function for the
# output, but it does not return the weights. `lab.blocks.scaled_dot_product_attention` does, and is
# not allowed here.
#
# <details><summary>Hint 1: a question</summary>
#
# In a product of shape $(n, m)$, which two axes of `k` have to change places, however many axes
# stand before them?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Products of all queries with all keys; divide by the square root of their common length; lower
# what the mask hides; softmax over the keys; weights times values. Consider what your softmax does
# with a row in which everything is hidden.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - All is right up to a factor in the scores: which of $d_k$, $d_v$, $n$ and $m$ stands under the
#   root?
# - Right for one sequence, an error for a batch: `.T` turns all axes around.
# - The weights' rows do not sum to 1: the axis, or a mask applied after the softmax.
# - Nothing changes with the mask: `masked_fill` returns a new tensor.
# - NaN in one row only: that row may see no key.
#
# </details>


# %% solution="scaled-dot-product" export
def scaled_dot_product_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... m d_k"],
    v: Float[Tensor, "... m d_v"],
    mask: Bool[Tensor, "... #n m"] | None = None,  # True = may attend
) -> tuple[Float[Tensor, "... n d_v"], Float[Tensor, "... n m"]]:
    """Attend from n queries to m keys (Vaswani et al. 2017, section 3.2.1).

    Returns the output and the weights; both are finite for a query that may see no key.
    """
    ### BEGIN SOLUTION
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (..., n, m)
    if mask is not None:
        # departs: hidden scores get the lowest finite number, not minus infinity, which would
        # give NaN for a query that may see no key. paper: test_minus_infinity_hides_as_well
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = torch.softmax(scores, dim=-1)  # (..., n, m), over the keys
    if mask is not None:
        weights = weights.masked_fill(~mask, 0.0)  # matters only for a row without visible keys
    return weights @ v, weights  # (..., n, d_v), (..., n, m)
    ### END SOLUTION


# %% test="scaled-dot-product-values" points=2
q = torch.ones(1, 64, dtype=torch.float64)
k = torch.tensor([[1.75], [1.5]], dtype=torch.float64).expand(2, 64)  # q . k is 112 and 96
v = torch.tensor([[1.0, 0.0, 2.0], [0.0, 1.0, 4.0]], dtype=torch.float64)
output, weights = scaled_dot_product_attention(q, k, v)
wanted = torch.tensor([[0.880797, 0.119203]], dtype=torch.float64)
assert_close(weights.sum(-1), 1, "the weights of one query should sum to 1 over its keys")
assert_close(
    weights,
    wanted,
    "products 112 and 96, divided by sqrt(d_k) = 8, should give weights 0.8808 and 0.1192",
    atol=1e-6,
)
wanted = torch.tensor([[0.880797, 0.119203, 2.238406]], dtype=torch.float64)
assert_close(
    output, wanted, "the output should be the values weighted 0.8808 and 0.1192", atol=1e-6
)

q, k, v = draw((2, 5, 8), (2, 7, 8), (2, 7, 6))
before = q.clone(), k.clone(), v.clone()
output, weights = scaled_dot_product_attention(q, k, v)
assert_shape(weights, (2, 5, 7), "weights should be (batch, queries, keys)")
assert_shape(output, (2, 5, 6), "output should be (batch, queries, d_v)")
assert_dtype(output, torch.float64, "output should have the dtype of q, k and v")
assert_close(weights.sum(-1), 1, "each query's weights should sum to 1 over the keys")
assert all(torch.equal(t, b) for t, b in zip((q, k, v), before, strict=True)), (
    "scaled_dot_product_attention should leave the q, k and v handed to it unchanged"
)
visible_passed()
### BEGIN HIDDEN TESTS
q, k, v = draw((2, 4, 3), (2, 5, 3), (2, 5, 6), seed=5)
output, weights = scaled_dot_product_attention(q, k, v)
for b in range(2):
    for i in range(4):
        row = torch.stack([(q[b, i] * k[b, j]).sum() / 3**0.5 for j in range(5)]).softmax(0)
        assert_close(
            weights[b, i], row, "weights should be softmax(q . k / sqrt(d_k)) over the keys"
        )
        assert_close(
            output[b, i],
            sum(row[j] * v[b, j] for j in range(5)),
            "each output should be the sum of all values, each times its key's weight",
        )

q, k, v = draw((2, 3, 4, 5), (2, 3, 6, 5), (2, 3, 6, 7), seed=6)
output, weights = scaled_dot_product_attention(q, k, v)
wanted = torch.nn.functional.scaled_dot_product_attention(q, k, v)
assert_close(output, wanted, "attention should work with two leading axes as it does with one")

q, k, v = draw((2, 4, 3), (2, 4, 5), (2, 5, 6), seed=7, dtype=torch.float32)
q, k = q.transpose(-2, -1), k.transpose(-2, -1)  # (2, 3, 4), (2, 5, 4): not contiguous
inputs = {"q": q.requires_grad_(), "k": k.requires_grad_(), "v": v.requires_grad_()}
output, weights = scaled_dot_product_attention(q, k, v)
assert_dtype(output, torch.float32, "float32 inputs should give a float32 output")
assert_dtype(weights, torch.float32, "float32 inputs should give float32 weights")
wanted = torch.nn.functional.scaled_dot_product_attention(q, k, v)
assert_close(output, wanted, "attention should hold in float32 and for transposed inputs")
wanted_weights = torch.softmax(q @ k.transpose(-2, -1) / 2, -1)
assert_gradients(
    [output, weights],
    [wanted, wanted_weights],
    inputs,
    "the gradients of q, k and v should be those of attention, through output and weights",
)
### END HIDDEN TESTS

# %% test="scaled-dot-product-mask" points=2
q, k, v = draw((2, 5, 8), (2, 7, 8), (2, 7, 6), seed=8)
mask = torch.ones(2, 5, 7, dtype=torch.bool)
mask[0, :, 4:] = False  # the first sequence has 4 keys, the second all 7
output, weights = scaled_dot_product_attention(q, k, v, mask)
assert_close(weights[0, :, 4:], 0, "a key whose mask is False should get weight 0")
assert_close(weights.sum(-1), 1, "the visible keys' weights should sum to 1 under a mask")
short, _ = scaled_dot_product_attention(q[:1], k[:1, :4], v[:1, :4])
assert_close(output[:1], short, "hiding keys should give the same output as leaving them out")
visible_passed()
### BEGIN HIDDEN TESTS
q, k, v = draw((2, 3, 6), (2, 4, 6), (2, 4, 5), seed=9)
keep = torch.tensor([[True, False, True, True], [False, True, True, False]])  # (B, m)
each = torch.tensor(
    [[True, False, False, True], [True, True, False, True], [False, True, True, True]]
)
for mask, claim in (
    (keep[:, None], "a mask of shape (batch, 1, keys) should broadcast: hidden keys are absent"),
    (each, "a mask of shape (queries, keys) should broadcast: hidden keys are absent"),
):
    before = mask.clone()
    with expect_no_error(claim):
        output, weights = scaled_dot_product_attention(q, k, v, mask)
    for b in range(2):
        for i in range(3):
            row = mask.expand(2, 3, 4)[b, i]
            alone, _ = scaled_dot_product_attention(q[b, i : i + 1], k[b, row], v[b, row])
            assert_close(output[b, i], alone[0], claim)
    assert torch.equal(mask, before), "the mask handed in should stay unchanged"
q, k, v = draw((2, 3, 4, 5), (2, 3, 6, 5), (2, 3, 6, 7), seed=6)
mask = torch.arange(6) < torch.tensor([3, 5])[:, None, None, None]  # (2, 1, 1, 6)
claim = "with two leading axes a mask of shape (batch, 1, 1, keys) should broadcast over them"
with expect_no_error(claim):
    output, _ = scaled_dot_product_attention(q, k, v, mask)
short, _ = scaled_dot_product_attention(q[:1], k[:1, :, :3], v[:1, :, :3])
assert_close(output[:1], short, claim)
q = torch.full((1, 2, 4), 1e5, dtype=torch.float64)
k = torch.tensor([-15.0, 15.0, -20.0], dtype=torch.float64)[:, None].expand(1, 3, 4)
_, weights = scaled_dot_product_attention(q, k, k, torch.tensor([[True, False, True]]))
wanted = torch.tensor([1.0, 0.0, 0.0], dtype=torch.float64)  # of the scores -3e6, 3e6 and -4e6
assert_close(
    weights,
    wanted.expand(1, 2, 3),
    "a hidden key gets weight 0 however large its score is and however low those of the others are",
)
### END HIDDEN TESTS

# %% test="scaled-dot-product-empty-rows" points=1
q, k, v = draw((2, 3, 4), (2, 5, 4), (2, 5, 6), seed=10)
mask = torch.ones(2, 3, 5, dtype=torch.bool)
mask[1] = False  # an empty sentence
output, weights = scaled_dot_product_attention(q, k, v, mask=mask)
assert torch.isfinite(output).all(), "queries that may see no key should give a finite output"
visible_passed()
### BEGIN HIDDEN TESTS
inputs = [t.requires_grad_() for t in draw((2, 3, 4), (2, 5, 4), (2, 5, 6), seed=10)]
output, weights = scaled_dot_product_attention(*(t * 1 for t in inputs), mask=mask)
assert torch.isfinite(weights).all(), "queries that may see no key should have finite weights"
wanted, _ = scaled_dot_product_attention(*(t[:1] * 1 for t in inputs))
assert_close(output[:1], wanted, "an empty sentence should not change the others in its batch")
gradients = torch.autograd.grad(output.sum(), inputs, allow_unused=True, retain_graph=True)
assert all(gradient is None or torch.isfinite(gradient).all() for gradient in gradients), (
    "the gradients of q, k and v should be finite when a query may see no key"
)
assert_gradients(
    output[:1],
    wanted,
    dict(zip("qkv", inputs, strict=True)),
    "an empty sentence should not change the gradients of the others in its batch",
)
### END HIDDEN TESTS

# %% [markdown]
# ## 3.4 Two masks   (3 points, about 15 minutes, difficulty 2 of 5)
#
# **Objective.** Say who may look at whom, in two reusable masks.
#
# - `causal_mask(n)` is $(n, n)$: query $i$ may attend to key $j$ when $j \le i$, that is to the
#   earlier positions **and to itself**.
# - `padding_mask(ids, pad_id)` takes token ids $(B, N)$ and gives $(B, 1, N)$: True where the
#   **key** is a real token, for every query alike. The axis of length 1 broadcasts over the
#   queries.
#
# Both are boolean tensors, so `causal_mask(N) & padding_mask(ids, pad_id)` is the mask of a
# decoder: $(B, N, N)$. The ready masks are not allowed here: `causal_mask` and `padding_mask` of
# `lab.blocks`, and torch's `generate_square_subsequent_mask`.
#
# <details><summary>Hint 1: a question</summary>
#
# Rows are queries. Which triangle of the matrix, the lower or the upper, holds the pairs with
# $j \le i$? Is the diagonal in it?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Causal: keep one triangle of a square of True. Padding: compare every id with `pad_id`, then put
# the missing axis between the two that you have.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - The first row is all False: the diagonal is missing.
# - The last row is False except at its end: the wrong triangle.
# - The combined mask has the padding along the rows: the new axis stands at the end.
# - Right with one pad id and wrong with another: a number is written out where `pad_id` belongs.
#
# </details>


# %% solution="masks" export
def causal_mask(n: int) -> Bool[Tensor, "n n"]:
    """Let each of n positions attend to itself and to those before it (True = may attend)."""
    ### BEGIN SOLUTION
    return torch.ones(n, n, dtype=torch.bool).tril()
    ### END SOLUTION


def padding_mask(ids: Int[Tensor, "B N"], pad_id: int) -> Bool[Tensor, "B 1 N"]:
    """Let every position attend to real tokens only (True = may attend); the 1 is the queries'."""
    ### BEGIN SOLUTION
    return (ids != pad_id).unsqueeze(1)
    ### END SOLUTION


# %% test="masks-causal" points=1
mask = causal_mask(3)
assert_shape(mask, (3, 3), "the causal mask should be (queries, keys)")
assert_dtype(mask, torch.bool, "the causal mask should be boolean")
assert mask.diagonal().all(), "each position may attend to itself"
assert not mask[0, 1:].any(), "the first position may not attend to later ones"
assert mask[2].all(), "the last position may attend to all"
visible_passed()
### BEGIN HIDDEN TESTS
assert_shape(causal_mask(1), (1, 1), "the causal mask of a single position should be (1, 1)")
mask = causal_mask(6)
for i in range(6):
    for j in range(6):
        assert mask[i, j].item() is (j <= i), (
            "in the causal mask of 6 positions, query i should see key j where j <= i, nowhere else"
        )
### END HIDDEN TESTS

# %% test="masks-padding" points=1
ids = torch.tensor([[5, 7, 2, 0, 0], [3, 4, 9, 8, 2]])
mask = padding_mask(ids, pad_id=0)
assert_shape(mask, (2, 1, 5), "the padding mask should be (batch, 1, keys)")
assert_dtype(mask, torch.bool, "the padding mask should be boolean")
assert mask[0, 0].tolist() == [True, True, True, False, False], (
    "ids 5 7 2 0 0 with pad id 0: the first three keys may be attended to, the last two not"
)
visible_passed()
### BEGIN HIDDEN TESTS
ids = torch.tensor([[4, 1, 6, 0, 1, 1], [0, 5, 2, 3, 8, 9], [1, 1, 1, 1, 1, 1]])
before = ids.clone()
mask = padding_mask(ids, pad_id=1)
assert_shape(mask, (3, 1, 6), "the padding mask of 3 sequences of 6 ids should be (3, 1, 6)")
single = "the padding mask of a single sequence of 6 ids should be (1, 1, 6)"
assert_shape(padding_mask(ids[:1], pad_id=1), (1, 1, 6), single)
wanted = [[[i != 1 for i in row]] for row in ids.tolist()]
assert mask.tolist() == wanted, "with pad id 1, the ids equal to 1 should be hidden, and no others"
assert torch.equal(ids, before), "padding_mask should leave the ids unchanged"
### END HIDDEN TESTS

# %% test="masks-together" points=1
ids = torch.tensor([[5, 7, 2, 2], [5, 7, 9, 4]])
causal, padding = causal_mask(4), padding_mask(ids, pad_id=2)
assert_dtype(causal, torch.bool, "a causal mask to be combined with & should be boolean")
assert_shape(padding, (2, 1, 4), "a padding mask to be combined with & should be (batch, 1, keys)")
mask = causal & padding
assert_shape(mask, (2, 4, 4), "causal and padding mask together should be (batch, queries, keys)")
visible_passed()
### BEGIN HIDDEN TESTS
for b in range(2):
    for i in range(4):
        for j in range(4):
            may = j <= i and ids[b, j].item() != 2
            assert mask[b, i, j].item() is may, (
                "both masks together: query i should see key j where j <= i and key j is not padding, "
                "and nowhere else"
            )
### END HIDDEN TESTS

# %% [markdown]
# ## 3.5 Design a head   (3 points, about 25 minutes, difficulty 4 of 5)
#
# **Objective.** Set a head's weights by hand, so that each token looks at the token before it.
#
# The head is `self_attention` of the cell below; it is causal. Its input `x` is made for reading: each token is
# a row of `vocab + max_len` numbers, a 1 at its word (column `word`), a 1 at its position (column `vocab + i` for
# the token at position $i$), 0 elsewhere. `tokens(words, vocab, max_len)` makes such rows.
#
# Return `w_q`, `w_k` (both `(vocab + max_len, d_k)`, with a `d_k` of your choice) and `w_v`
# `(vocab + max_len, vocab)`, in float64, such that for every sequence of at most `max_len` words the output at
# each position but the first is 1 at the word of the token before and 0 elsewhere, to three
# digits. What comes out at position 0, which has no token before it, is not looked at.
#
# No training: you know what each number should do. Somewhere in a trained model of two layers there is a
# head like this one; with a second one above it, a model finishes sentences by looking up how they went the
# last time.

#
# <details><summary>Hint 1: a question</summary>
#
# The score of query $i$ with key $j$ is a dot product. Which vectors for "I am at position 5 and look for 4" and
# "I am at position 4" have a large one, while those of all other pairs have none?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# `w_q` and `w_k` only read the columns of positions, `w_v` only those of words. Let a key be the one-hot vector of
# its own position, and a query that of the position before.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - The right token gets the largest weight, but not nearly 1: scores of 1 are no match for many of 0.
#   How large must the gap be, after the division by the root of $d_k$?
# - Each token finds itself, or the one after it: which of the two matrices did you shift, and to which side?
# - Right for short sequences only: is each position up to `max_len` covered?
#
# </details>


# %%
def tokens(words: list[int], vocab: int, max_len: int) -> Float[Tensor, "N vocab+max_len"]:
    """One row for each word: a 1 at the word, a 1 at its position."""
    x = torch.zeros(len(words), vocab + max_len, dtype=torch.float64)
    for i, word in enumerate(words):
        x[i, word] = x[i, vocab + i] = 1.0
    return x


def self_attention(
    x: Float[Tensor, "N D"],
    w_q: Float[Tensor, "D d_k"],
    w_k: Float[Tensor, "D d_k"],
    w_v: Float[Tensor, "D d_v"],
) -> tuple[Float[Tensor, "N d_v"], Float[Tensor, "N N"]]:
    """A causal head with its own weights: its output, and what each token attends to."""
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    later = torch.ones(len(x), len(x), dtype=torch.bool).triu(1)
    scores = (q @ k.T / math.sqrt(q.shape[-1])).masked_fill(later, -math.inf)
    weights = scores.softmax(-1)
    return weights @ v, weights


# %% solution="previous-token-head"
def previous_token_head(vocab: int, max_len: int) -> tuple[Tensor, Tensor, Tensor]:
    """Weights w_q, w_k and w_v of a head in which each token reads the word before it."""
    ### BEGIN SOLUTION
    width = vocab + max_len
    w_q, w_k = torch.zeros(2, width, max_len, dtype=torch.float64)
    w_v = torch.zeros(width, vocab, dtype=torch.float64)
    gap = 30 * math.sqrt(max_len)  # so that the scores differ by 30
    for i in range(max_len):
        w_k[vocab + i, i] = gap
        if i > 0:
            w_q[vocab + i, i - 1] = 1.0
    w_v[:vocab] = torch.eye(vocab, dtype=torch.float64)
    return w_q, w_k, w_v
    ### END SOLUTION


# %% test="previous-token-head-reads" points=2
def assert_reads_before(vocab: int, max_len: int, sentences: list[list[int]]) -> None:
    """Fail unless each token gets the word before it."""
    weights = previous_token_head(vocab, max_len)
    w_q, w_k, w_v = weights
    assert_shape(w_v, (vocab + max_len, vocab), "w_v should be (vocab + max_len, vocab)")
    assert w_q.shape == w_k.shape and len(w_q) == vocab + max_len, (
        "w_q and w_k should have the same shape, (vocab + max_len, d_k)"
    )
    for words in sentences:
        output, _ = self_attention(tokens(words, vocab, max_len), w_q, w_k, w_v)
        wanted = torch.zeros(len(words) - 1, vocab, dtype=torch.float64)
        wanted[range(len(words) - 1), words[:-1]] = 1.0
        assert_close(
            output[1:],
            wanted,
            f"each token but the first should get the word before it; words {words}",
            atol=5e-4,
        )


assert_reads_before(vocab=4, max_len=6, sentences=[[2, 0, 3], [1, 1, 3, 0, 2, 2]])
visible_passed()
### BEGIN HIDDEN TESTS
longest = [(7 * i * i + i) % 11 for i in range(40)]
assert_reads_before(vocab=11, max_len=40, sentences=[[5, 9], longest, [3] * 12])
### END HIDDEN TESTS

# %% test="previous-token-head-looks" points=1
w_q, w_k, w_v = previous_token_head(5, 8)
_, looks = self_attention(tokens([4, 4, 4, 4], 5, 8), w_q, w_k, w_v)
assert_close(
    looks[range(1, 4), range(3)],
    1.0,
    "each token should look at the one before it, also where all words are the same",
    atol=5e-4,
)
visible_passed()
### BEGIN HIDDEN TESTS
_, looks = self_attention(tokens([0, 3, 1, 2, 3, 0, 1, 4], 5, 8), w_q, w_k, w_v)
_, others = self_attention(tokens([2, 2, 4, 0, 0, 1, 3, 3], 5, 8), w_q, w_k, w_v)
assert_close(looks, others, "where a token looks should depend on positions alone, not on words")
assert_close(looks[range(1, 8), range(7)], 1.0, "up to the last position", atol=5e-4)
### END HIDDEN TESTS

# %% [markdown]
# ## 3.6 Yours and a learned one   (1 point, about 10 minutes, difficulty 2 of 5)
#
# **Objective.** Predict what training makes of the same task, then look.
#
# The cell below lets gradient descent find `w_q`, `w_k` and `w_v` for the same task, from random numbers, in a few
# seconds, with **your** `scaled_dot_product_attention` and `causal_mask`. It reaches it. Will it be the same head
# as yours? Predict, run, look at both maps.

# %%
HEADS = (
    "the same map of weights, by the same matrices",
    "the same map of weights, by other matrices",
    "another map of weights",
)


# %% solution="predicted-head"
def predicted_head() -> str:
    """What you expect: one of HEADS."""
    ### BEGIN SOLUTION
    return "the same map of weights, by other matrices"
    ### END SOLUTION


# %% test="predicted-head-made" points=1
head = predicted_head()
assert isinstance(head, str), "a prediction is one of the texts in HEADS"
assert head in HEADS, f"a prediction is one of HEADS\nYours is {head!r}."
visible_passed()

# %%
if watched():  # not while the notebook is graded
    import matplotlib.pyplot as plt

    from lab import plots

    prediction = predicted(predicted_head, HEADS)
    vocab, max_len = 6, 8
    made = previous_token_head(vocab, max_len)
    torch.manual_seed(0)
    learned = [torch.nn.Parameter(0.3 * torch.randn(w.shape, dtype=torch.float64)) for w in made]
    optimizer = torch.optim.Adam(learned, lr=0.03)
    for step in range(1, 201):
        words = torch.randint(vocab, (16, max_len))
        x = torch.stack([tokens(row, vocab, max_len) for row in words.tolist()])
        q, k, v = (x @ w for w in learned)
        output, _ = scaled_dot_product_attention(q, k, v, causal_mask(max_len))
        loss = (output[:, 1:] - x[:, :-1, :vocab]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step in (1, 25, 50, 100, 200):
            print(f"step {step:3}: mean squared error {loss.item():.4f}")
    plots.use()
    sentence = tokens([2, 0, 5, 1, 1, 3, 4, 2], vocab, max_len)
    _, (left, right) = plt.subplots(1, 2, figsize=(7, 3.2), layout="constrained")
    for ax, weights, name in ((left, made, "yours"), (right, learned, "learned")):
        with torch.no_grad():
            _, looks = self_attention(sentence, *weights)
        plots.heatmap(looks, ax=ax, title=name)
    apart = (made[0] @ made[1].T - (learned[0] @ learned[1].T).detach()).abs().max()
    compare(prediction, f"w_q w_k^T of the two differ by up to {apart:.0f}; the maps are above")
    plt.show()

# %% [markdown]
# <details><summary>What happened</summary>
#
# The maps are the same; the matrices are not. Only $W^Q (W^K)^\top$ enters the
# scores, so any invertible matrix may stand between the two; and even their product is not fixed, since adding the same number
# to all scores of a query changes no weight, and a gap of 10 is nearly as good as one of 30. That is why one looks at what a
# head does, and not at its numbers, to find out what it is for.
#
# </details>

# %% [markdown]
# ## 3.7 Find the leak   (3 points, about 25 minutes, difficulty 3 of 5)
#
# **Objective.** Prove that an attention looks ahead, by the smallest example there is.
#
# `attend` is somebody's causal self-attention, which you cannot look into: it takes `x` $(N, 4)$ in float64, $N$ from
# 1 to 8, and returns as many rows. In a right one, row $i$ of the result depends on the rows $0$ to $i$ of `x` only. Some
# leak: a row depends on a later one as well, which need not be the next one or the last.
#
# Return `(n, i)`, where $n$ is the smallest number of tokens with which a leak shows, and $i$ is the first row
# that leaks then; or `None` if nothing leaks with up to 8 tokens. A leak moves a result by more than $10^{-6}$,
# rounding by less than $10^{-12}$. (Right and wrong ones have weights of their own; there are no tricks: what
# depends on a token does so for nearly all numbers.) Call `attend` at most 60 times.
#
# <details><summary>Hint 1: a question</summary>
#
# Which rows of the result may change when row $j$ of `x` does?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# For each number of tokens, beginning with the smallest that can leak: one input, and for each token but the first the same
# with another token in its place. Compare all rows before that one.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - A right attention is found guilty: the row of the changed token may change.
# - A leak from the middle is missed: with $n$ tokens, is the last one the only one that a row can
#   depend on? What looks from the end backwards finds another one there.
# - `i` is too large: the first row that changes is asked for.
#
# </details>


# %% solution="smallest-leak"
def smallest_leak(attend: Callable[[Tensor], Tensor]) -> tuple[int, int] | None:
    """The least number of tokens with which a row depends on a later one, and the first such row.

    Args:
        attend: takes tokens (N, 4), N from 1 to 8, and gives N rows.
    """
    ### BEGIN SOLUTION
    generator = torch.Generator().manual_seed(0)
    for n in range(2, 9):
        x = torch.randn(n, 4, generator=generator, dtype=torch.float64)
        base, rows = attend(x), []
        for j in range(1, n):
            other = x.clone()
            other[j] += 1.0
            moved = (attend(other) - base).abs().amax(-1) > 1e-9  # (n,)
            rows += [i for i in range(j) if moved[i]]
        if rows:
            return n, min(rows)
    return None
    ### END SOLUTION


# %% test="smallest-leak-one-ahead" points=1
def looking(seed: int, ahead: int = 0, first: int = 0) -> Callable[[Tensor], Tensor]:
    """An attention in which tokens from `first` on see so many tokens ahead."""
    w_q, w_k, w_v = draw((4, 4), (4, 4), (4, 4), seed=seed)

    def attend(x: Tensor) -> Tensor:
        n = len(x)
        late = torch.ones(n, n, dtype=torch.bool).triu(1 + ahead)
        late[:first] = torch.ones(n, n, dtype=torch.bool).triu(1)[:first]
        scores = (x @ w_q @ (x @ w_k).T / 2).masked_fill(late, -math.inf)
        return scores.softmax(-1) @ x @ w_v

    return attend


def found(attend: Callable[[Tensor], Tensor]) -> tuple[int, int] | None:
    """What smallest_leak says; fail if it asks too often."""
    asked = []

    def counted(x):
        asked.append(len(x))
        return attend(x)

    answer = smallest_leak(counted)
    assert len(asked) <= 60, f"attend may be called 60 times; yours did {len(asked)} times"
    return None if answer is None else (answer[0], answer[1])


assert found(looking(1)) is None, (
    "nothing leaks here, and None should be returned: a token may change its own row"
)
assert found(looking(2, ahead=1)) == (2, 0), (
    "here each token sees the next: with two tokens, row 0 depends on token 1: (2, 0)"
)
visible_passed()
### BEGIN HIDDEN TESTS
assert found(looking(3, ahead=1, first=2)) == (4, 2), (
    "here only tokens from 2 on see the next: the smallest example has 4 tokens, and row 2 leaks"
)
late = looking(12, ahead=1, first=6)
assert found(lambda x: late(x / 3)) == (8, 6), (  # of small tokens no weight is nearly 0
    "here only tokens from 6 on see the next: the smallest example has 8 tokens, and row 6 leaks"
)
### END HIDDEN TESTS


# %% test="smallest-leak-others" points=2
def centred(seed: int) -> Callable[[Tensor], Tensor]:
    """A right attention, but of tokens from which their mean was taken."""
    right = looking(seed)
    return lambda x: right(x - x.mean(0))


assert found(centred(4)) == (2, 0), (
    "here the mean of all tokens is taken from each first: with two, row 0 depends on token 1"
)
visible_passed()
### BEGIN HIDDEN TESTS


def masked_too_late(seed: int) -> Callable[[Tensor], Tensor]:
    """The mask comes after the softmax, so a later token is in the sum below the line."""
    w_q, w_k, w_v = draw((4, 4), (4, 4), (4, 4), seed=seed)

    def attend(x: Tensor) -> Tensor:
        weights = (x @ w_q @ (x @ w_k).T / 2).softmax(-1)
        return weights.tril() @ x @ w_v

    return attend


def skipping(seed: int) -> Callable[[Tensor], Tensor]:
    """Each token sees the one three ahead, and none between."""
    w_q, w_k, w_v = draw((4, 4), (4, 4), (4, 4), seed=seed)

    def attend(x: Tensor) -> Tensor:
        n = len(x)
        seen = torch.ones(n, n, dtype=torch.bool).tril()
        seen |= torch.ones(n, n, dtype=torch.bool).triu(3).tril(3)
        scores = (x @ w_q @ (x @ w_k).T / 2).masked_fill(~seen, -math.inf)
        return scores.softmax(-1) @ x @ w_v

    return attend


def from_the_end(seed: int) -> Callable[[Tensor], Tensor]:
    """With five tokens or more, the token before the last is seen by the first."""
    right = looking(seed)

    def attend(x: Tensor) -> Tensor:
        y = right(x).clone()
        if len(x) >= 5:
            y[0] += x[-2]
        return y

    return attend


assert found(masked_too_late(5)) == (2, 0), (
    "here the mask comes after the softmax: with two tokens, row 0 depends on token 1"
)
assert found(skipping(6)) == (4, 0), (
    "here each token sees the one three ahead, and none between: with four, row 0 sees token 3"
)
assert found(from_the_end(7)) == (5, 0), (
    "here, with five tokens, row 0 depends on token 3, and on no other later one"
)


def crossing(seed: int) -> Callable[[Tensor], Tensor]:
    """With four tokens or more, row 1 sees token 2, and row 0 sees token 3."""
    right = looking(seed)

    def attend(x: Tensor) -> Tensor:
        y = right(x).clone()
        if len(x) >= 4:
            y[0], y[1] = y[0] + x[3], y[1] + x[2]
        return y

    return attend


def faint(seed: int) -> Callable[[Tensor], Tensor]:
    """One number of each row has a little of the next row's token."""
    right = looking(seed)

    def attend(x: Tensor) -> Tensor:
        y = right(x).clone()
        y[:-1, 2] += 1e-4 * x[1:, 1]
        return y

    return attend


assert found(crossing(10)) == (4, 0), (
    "here, with four tokens, row 1 depends on token 2, and row 0 on token 3: the first row is asked for"
)
assert found(faint(11)) == (2, 0), (
    "here one number of each row depends a little on the next token: it moves by about 1e-4"
)
assert found(looking(8)) is None, "here nothing leaks; None should be returned"
assert found(looking(9, ahead=2, first=1)) == (3, 1), (
    "here tokens from 1 on see two ahead: with three tokens, row 1 depends on token 2"
)
### END HIDDEN TESTS

# %% [markdown]
# ## 3.8 Attention in blocks   (3 points, about 25 minutes, difficulty 5 of 5)
#
# **Objective.** Join two softmaxes over parts of the keys to the one over all. (This one is a bonus: nothing in
# the model needs it. The attention that runs on GPUs today is made of it.)
#
# $n$ queries have looked at a block of keys, and kept three things for each query: `top` $(n)$, the largest
# score in the block; `total` $(n)$, the sum of $e^{s - \text{top}}$ over the block's scores $s$; and `summed`
# $(n, d_v)$, the values of the block, each times its $e^{s - \text{top}}$, added up. So `summed / total` is the attention's
# output, if there are no other keys. `block(scores, v)` in the cell below makes these three.
#
# `merge(first, second)` gets the three things of two blocks, each as a tuple, and returns those of both
# together. No score is there any more, only what was kept. Scores may be as large as 1000 and as low as $-1000$; a
# block may be **empty**: `top` is then $-\infty$, `total` and `summed` are 0; both may be. What is returned
# holds no NaN, and what is handed in stays unchanged.

#
# <details><summary>Hint 1: a question</summary>
#
# A sum of $e^{s - 3}$ is there, and a sum of $e^{s - 5}$ is wanted. By what do you multiply?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# The larger of the two tops is the top of both. Each block's other two things were made for its own top: multiply
# them by one factor a query, at most 1, and add.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - Infinite for large scores: a factor above 1 was used; take the larger top for both.
# - NaN with an empty block: $-\infty$ minus $-\infty$. What should the factor of an empty block be?
# - Right for one query only: factors of shape $(n)$ meet `summed` of shape $(n, d_v)$.
#
# </details>


# %%
def block(
    scores: Float[Tensor, "n m"], v: Float[Tensor, "m d_v"]
) -> tuple[Float[Tensor, "n"], Float[Tensor, "n"], Float[Tensor, "n d_v"]]:
    """What is kept of a block of m keys, which may be none."""
    if scores.shape[1] == 0:
        nothing = scores.new_zeros(len(scores), v.shape[1])
        return scores.new_full((len(scores),), -math.inf), nothing.sum(1), nothing
    top = scores.amax(-1)
    parts = torch.exp(scores - top.unsqueeze(-1))
    return top, parts.sum(-1), parts @ v


# %% solution="merge"
def merge(
    first: tuple[Tensor, Tensor, Tensor], second: tuple[Tensor, Tensor, Tensor]
) -> tuple[Tensor, Tensor, Tensor]:
    """What would have been kept of both blocks together: top (n), total (n) and summed (n, d_v).

    Source: Milakov and Gimelshein (2018), section 3.1, here with values.
    """
    ### BEGIN SOLUTION
    top = torch.maximum(first[0], second[0])
    finite = torch.where(torch.isinf(top), 0.0, top)  # where both are empty
    one, other = torch.exp(first[0] - finite), torch.exp(second[0] - finite)
    total = one * first[1] + other * second[1]
    summed = one.unsqueeze(-1) * first[2] + other.unsqueeze(-1) * second[2]
    return top, total, summed
    ### END SOLUTION


# %% test="merge-values" points=2
scores, v = draw((3, 8), (8, 4), seed=31)
top, total, summed = merge(block(scores[:, :5], v[:5]), block(scores[:, 5:], v[5:]))
assert_shape(top, (3,), "top should have one number for each query")
assert_shape(summed, (3, 4), "summed should be (queries, d_v)")
wanted = scores.softmax(-1) @ v
assert_close(summed / total.unsqueeze(-1), wanted, "blocks of 5 and 3 keys, joined: other output")
visible_passed()
### BEGIN HIDDEN TESTS
scores, v = 1000 * draw((5, 12), seed=32).clamp(-1, 1), draw((12, 3), seed=33)
scores[0, 0], scores[1, 11], scores[2] = 1000.0, 1000.0, -12000.0
parts = [block(scores[:, i : i + 3], v[i : i + 3]) for i in range(0, 12, 3)]
before = [[one.clone() for one in part] for part in parts]
joined = merge(merge(parts[0], parts[1]), merge(parts[2], parts[3]))
whole = block(scores, v)
for name, one, other in zip(("top", "total", "summed"), joined, whole, strict=True):
    assert_close(
        one, other, f"four blocks with scores far from 0 joined in pairs: other {name}", atol=1e-10
    )
assert all(
    torch.equal(one, other)
    for part, kept in zip(parts, before, strict=True)
    for one, other in zip(part, kept, strict=True)
), "what is handed in should stay unchanged"
### END HIDDEN TESTS

# %% test="merge-empty" points=1
scores, v = draw((2, 4), (4, 3), seed=34)
empty, full = block(scores[:, :0], v[:0]), block(scores, v)
for name, one, other in zip(("top", "total", "summed"), merge(empty, full), full, strict=True):
    assert_close(one, other, f"joined with an empty block, {name} should be the other block's")
visible_passed()
### BEGIN HIDDEN TESTS
for name, one, other in zip(("top", "total", "summed"), merge(full, empty), full, strict=True):
    assert_close(one, other, f"an empty block as the second: {name} should be the first block's")
top, total, summed = merge(empty, empty)
assert (top == -math.inf).all(), "two empty blocks are an empty one: top is minus infinity"
assert_close(total, 0.0, "two empty blocks are an empty one: total is 0")
assert_close(summed, 0.0, "two empty blocks are an empty one: summed is 0")
### END HIDDEN TESTS

# %% [markdown]
# ## 3.9 One matrix, all the same   (2 points, about 15 minutes, difficulty 3 of 5)
#
# **Objective.** Use what you know of weights and masks to get round a restriction.
#
# A layer must use one matrix for queries and keys: the scores are $(XW)(XW)^\top$. So in "the animal was
# tired because it was late" the score of *it* for *animal* is that of *animal* for *it*. Nevertheless *it* shall look
# mostly at *animal*, and *animal* hardly at *it*. In four to eight sentences: (a) say why different **weights** are
# possible at all with equal scores; (b) name two things that you could change or add elsewhere in the layer, not in
# $W$, which bring it about, and say for each why it works and what it costs.
#
# <details><summary>Hint 1: a question</summary>
#
# By what is each row of scores divided on its way to weights? Which scores of *animal* may be larger?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Look at all that stands between scores and weights, in this notebook: what is added to scores, what is hidden.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - Only one thing found: which of the two words comes first?
# - Unsure what it costs: whom else does it affect, in this sentence or in others?
#
# </details>

# %% [markdown] manual="symmetric-similarity" points=2
# ### BEGIN SOLUTION
# (a) Each row is divided by its own sum. If *animal* has larger scores with other words (with itself above
# all: entry (i, i) is a squared length), the same score gives a small weight in its row and a large one in
# the row of *it*.
#
# (b) Any two that work, for instance:
# - A causal mask: *it* comes later, so *animal* cannot look at it. It costs every look ahead, in all sentences.
# - A number added to each score that depends on $j - i$ (a relative position): looking back may be made cheaper than
#   looking ahead. It holds for all pairs at that distance, whatever the words.
# - A number added for each key, computed from the key's token alone: nouns become attractive to all, pronouns to
#   none. *animal* then attracts everybody, not just *it*.
# - Longer vectors $x_jW$ for nouns: *animal* scores so high with itself that little is left for others. Then it
#   also mixes in less of its own surroundings.
# - A second layer or head that puts right what this one mixes up. It costs parameters and time.
#
# Marking: half a point for the normaliser of the row in (a), half for saying whose scores are larger. Half a point
# for each of two things in (b) with reason and cost; a change of $W$ or a second matrix counts nothing.
# ### END SOLUTION

# %% [markdown]
# # 3 Attention
#
# In this notebook you build one head of attention in PyTorch: two ways to score, a softmax that
# can leave keys out, scaled dot-product attention, the two masks of the Transformer, and a
# self-attention head with its own weights. What you write here carries over: the finished model
# calls `scaled_dot_product_attention`, `causal_mask` and `padding_mask` from this notebook.
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
            f"causal mask of 6: query {i} should {'see' if j <= i else 'not see'} key {j}"
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
                f"ids {ids[b].tolist()} with pad id 2, both masks: "
                f"query {i} should {'see' if may else 'not see'} key {j}"
            )
### END HIDDEN TESTS

# %% [markdown]
# ## 3.5 A self-attention head   (3 points, about 15 minutes, difficulty 2 of 5)
#
# **Objective.** Let a sequence attend to itself: $Q = XW^Q$,
# $K = XW^K$, $V = XW^V$, then scaled
# dot-product attention. Return the output.
#
# `x` is $(B, N, D)$, `w_q` and `w_k` are $(D, d_k)$, `w_v` is $(D, d_v)$, the output is
# $(B, N, d_v)$. $D$, $d_k$ and $d_v$ all differ in the tests. The mask is as before; every query
# in these tests may see at least one key. For the attention itself you may call your own function
# of 3.3 or PyTorch's `torch.nn.functional.scaled_dot_product_attention` (its boolean `attn_mask`
# has the same meaning as ours), or write it out once more.
#
# <details><summary>Hint 1: a question</summary>
#
# How many components do a query and a key have *after* the projection? That number goes under the
# root.
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Three products with `x` on the left; then attention with the mask handed on.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - The last axis is $D$ and not $d_v$: the values were not projected.
# - Weights too even: the root is that of $D$.
# - A later token changes an earlier output although the mask is causal: is the mask handed on?
#
# </details>


# %% solution="self-attention"
def self_attention(
    x: Float[Tensor, "B N D"],
    w_q: Float[Tensor, "D d_k"],
    w_k: Float[Tensor, "D d_k"],
    w_v: Float[Tensor, "D d_v"],
    mask: Bool[Tensor, "... #N N"] | None = None,  # True = may attend
) -> Float[Tensor, "B N d_v"]:
    """Let the tokens of each sequence attend to one another (Vaswani et al. 2017, section 3.2)."""
    ### BEGIN SOLUTION
    q, k, v = x @ w_q, x @ w_k, x @ w_v  # (B, N, d_k), (B, N, d_k), (B, N, d_v)
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (B, N, N)
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return torch.softmax(scores, dim=-1) @ v  # (B, N, d_v)
    ### END SOLUTION


# %% test="self-attention-values" points=2
x, w_q, w_k, w_v = draw((2, 5, 8), (8, 3), (8, 3), (8, 4))
output = self_attention(x, w_q, w_k, w_v)
assert_shape(output, (2, 5, 4), "the output should be (batch, tokens, d_v)")
assert_dtype(output, torch.float64, "the output should have the dtype of x")
zero = torch.zeros(8, 3, dtype=torch.float64)
even = self_attention(x, zero, zero, w_v)
wanted = (x @ w_v).mean(1, keepdim=True).expand(2, 5, 4)
assert_close(even, wanted, "with all scores 0 every output should be the mean of the values")
visible_passed()
### BEGIN HIDDEN TESTS
x, w_q, w_k, w_v = draw((2, 4, 7), (7, 3), (7, 3), (7, 5), seed=11)
output = self_attention(x, w_q, w_k, w_v)
for b in range(2):
    for i in range(4):
        q = x[b, i] @ w_q
        row = torch.stack([(q * (x[b, j] @ w_k)).sum() / 3**0.5 for j in range(4)]).softmax(0)
        assert_close(
            output[b, i],
            sum(row[j] * (x[b, j] @ w_v) for j in range(4)),
            "self-attention should weigh the values x w_v by softmax((x w_q) . (x w_k) / sqrt(d_k))",
        )
before = x.clone()
inputs = {"x": x, "w_q": w_q, "w_k": w_k, "w_v": w_v}
for tensor in inputs.values():
    tensor.requires_grad_()
wanted = torch.softmax((x @ w_q) @ (x @ w_k).transpose(1, 2) / 3**0.5, -1) @ (x @ w_v)
assert_gradients(
    self_attention(x, w_q, w_k, w_v),
    wanted,
    inputs,
    "the gradients of x, w_q, w_k and w_v should be those of self-attention",
)
assert torch.equal(x, before), "self_attention should leave x unchanged"
### END HIDDEN TESTS

# %% test="self-attention-mask" points=1
x, w_q, w_k, w_v = draw((2, 5, 8), (8, 3), (8, 3), (8, 4), seed=12)
mask = torch.ones(5, 5, dtype=torch.bool).tril()
output = self_attention(x, w_q, w_k, w_v, mask)
short = self_attention(x[:, :3], w_q, w_k, w_v, mask[:3, :3])
assert_close(
    output[:, :3], short, "under a causal mask, adding tokens should not change earlier outputs"
)
visible_passed()
### BEGIN HIDDEN TESTS
keep = torch.tensor([[True, True, True, False, False], [True, True, True, True, True]])
padded = self_attention(x, w_q, w_k, w_v, keep[:, None, :])
other = x.clone()
other[0, 3:] = 9.0
assert_close(
    self_attention(other, w_q, w_k, w_v, keep[:, None, :])[0, :3],
    padded[0, :3],
    "what stands in the padding should never reach the outputs of the real tokens",
)
assert_close(
    padded[0, :3],
    self_attention(x[:1, :3], w_q, w_k, w_v)[0],
    "a padded sequence should give its real tokens the same outputs as the sequence alone",
)
x32, q32, k32, v32 = (t.float() for t in (x, w_q, w_k, w_v))
together = self_attention(x32, q32, k32, v32, mask & keep[:, None])  # (B, N, N)
assert_dtype(together, torch.float32, "float32 inputs should give a float32 output")
assert_close(
    together[keep],
    output[keep].float(),
    "under a causal and a padding mask together, (B, N, N), every real token should get the output "
    "that it gets under the causal mask alone",
)
# queries are 1e5 and keys -30, 30 and -40, so that the scores are -3e6, 3e6 and -4e6
x = torch.tensor([[[1.0, -30.0], [1.0, 30.0], [1.0, -40.0]]], dtype=torch.float64)
w_q, w_k = torch.tensor([[[1e5], [0.0]], [[0.0], [1.0]]], dtype=torch.float64)
w_v = draw((2, 4), seed=13)
hidden = self_attention(x, w_q, w_k, w_v, torch.tensor([[True, False, True]]))
assert torch.isfinite(hidden).all(), "very low and very high scores should give finite outputs"
assert_close(
    hidden[:, [0, 2]],
    self_attention(x[:, [0, 2]], w_q, w_k, w_v),
    "a hidden key gets weight 0 however large its score is and however low those of the others are",
)
### END HIDDEN TESTS

# %% [markdown]
# ## 3.6 Why two projections?   (2 points, about 10 minutes, difficulty 3 of 5)
#
# **Objective.** Explain in your own words what the second projection buys.
#
# Suppose that a layer used one matrix for both: scores $(XW)(XW)^\top$
# in place of $(XW^Q)(XW^K)^\top$. In three to six sentences: (a) which
# property would the matrix of scores then always have, and why? (b) Give a relation between two
# words of a sentence that a layer could not score well because of it. (c) Would the matrix of
# *weights* have the same property? Say why or why not.
#
# <details><summary>Hint 1: a question</summary>
#
# Compare the score of query $i$ with key $j$ and that of query $j$ with key $i$.
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Think of pronouns, or of adjectives and nouns: who looks for whom? For (c), look at what each row
# is divided by.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - Unsure about (a): write out entry $(i, j)$ for a matrix $W$ with a single column.
# - Unsure about (c): take three tokens with the scores 0, 1 and 2 somewhere and normalise two rows.
#
# </details>

# %% [markdown] manual="symmetric-similarity" points=2
# ### BEGIN SOLUTION
# (a) The scores would be symmetric: entry (i, j) is the dot product of $x_iW$ and
# $x_jW$, and a dot product does not care about the order of its factors. Besides,
# entry (i, i) is a squared length, so tokens tend to score high with themselves.
#
# (b) Any one-sided relation: in "the animal was tired because it ...", "it" needs "animal" to know
# what it stands for, while "animal" has no such need of "it". With symmetric scores the score of
# "it" for "animal" is that of "animal" for "it". With two matrices, what a token asks for (query)
# and what it offers (key) can differ.
#
# (c) No. Each row is divided by its own sum, and the sums differ, so $a_{ij} \ne a_{ji}$ in general
# even where $s_{ij} = s_{ji}$. But the weights are still tied to symmetric scores: only the two
# normalisers tell the directions apart, not the tokens' roles.
#
# Marking: 1 point for (a) with its reason; 1 point for (b) and (c) together (half of each is enough
# for a one-sided relation or for the row-wise normaliser alone).
# ### END SOLUTION

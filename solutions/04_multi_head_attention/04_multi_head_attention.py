# %% [markdown]
# # 4 Multi-head attention
#
# In this notebook you build multi-head attention in PyTorch: several small attentions side by side,
# each with its own projections. Then you take it apart again, into a sum over heads, measure which head
# matters, set the weights of two layers by hand, and count what it all costs. What you write here carries over: the finished model uses your `MultiHeadAttention` in
# its encoder and twice in each layer of its decoder.
#
# **How to work.** Run the cells from top to bottom. Replace each `# YOUR CODE HERE` and its `raise` by
# your answer, then run the test cell below it; its message says what is wrong. The visible tests
# are not all tests: hidden ones, with other sizes and numbers, run when the notebook is graded.
# Each question is tested on its own, so you may leave one open and go on. Before you hand in,
# restart the kernel and run all cells.
#
# **Where to read.** The book's page *Multi-head attention* teaches the same ideas with NumPy on one
# sequence.
#
# **Conventions.** Rows are tokens, the batch comes first. $B$ counts sentences, $n$ queries, $m$
# keys and $H$ heads; $D$ is `d_model` and $d_k = D / H$ the width of one head. A mask is boolean,
# and **True means: may attend**. What comes out has the dtype of what goes in.

# %% setup
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from lab.battery import assert_sound, assert_sound_function
from lab.blocks import scaled_dot_product_attention
from lab.check import (
    assert_close,
    assert_dtype,
    assert_gradients,
    assert_raises,
    assert_shape,
    assert_whole,
    draw,
    expect_no_error,
    unchanged,
    visible_passed,
)
from lab.predict import compare, predicted, watched

MATRICES = ("w_q", "w_k", "w_v", "w_o")


def with_drawn_weights(layer: nn.Module, d_model: int, seed: int = 0, dtype=torch.float64):
    """Fill the four matrices of a layer with drawn numbers, so that tests can compare."""
    matrices = draw(*[(d_model, d_model)] * 4, seed=seed)
    for name, drawn in zip(MATRICES, matrices, strict=True):
        linear = getattr(layer, name, None)
        assert isinstance(linear, nn.Linear), f"the layer should have an nn.Linear named {name}"
        assert_shape(linear.weight, (d_model, d_model), f"{name} should be from d_model to d_model")
        with torch.no_grad():
            linear.weight.copy_(1.5 * drawn / d_model**0.5)
            if linear.bias is not None:
                linear.bias.zero_()
    return layer.to(dtype)


def torch_layer(layer: nn.Module, num_heads: int) -> nn.MultiheadAttention:
    """PyTorch's own layer with the weights of yours, to compare with."""
    w_q, w_k, w_v, w_o = (getattr(layer, name).weight for name in MATRICES)
    d_model = len(w_o)
    theirs = nn.MultiheadAttention(
        d_model, num_heads, bias=False, batch_first=True, dtype=w_o.dtype
    )
    theirs.load_state_dict({"in_proj_weight": torch.cat([w_q, w_k, w_v]), "out_proj.weight": w_o})
    return theirs


# %% [markdown]
# ## 4.1 Split and merge   (2 points, about 10 minutes, difficulty 2 of 5)
#
# **Objective.** Cut the projected tokens into heads, and put heads side by side again.
#
# - `split_heads`: $(B, n, D)$ to $(B, H, n, d_k)$. Head 0 gets the first $d_k$ columns of each token,
#   head 1 the next $d_k$, and so on. $D$ is divisible by $H$. The number of tokens may be any, and the
#   memory of `x` may be laid out in any way.
# - `merge_heads`: the way back, $(B, H, n, d_k)$ to $(B, n, D)$, heads **side by side**.
#
# Both leave `x` as it is, and gradients flow back through both. `lab.blocks.MultiHeadAttention`, which
# has both as methods, is not allowed here.
#
# <details><summary>Hint 1: a question</summary>
#
# `x.reshape(B, H, n, d_k)` has the right shape. Which token does its entry `[0, 0, 1]` come from,
# for $H = 2$?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Split in two steps: first cut the last axis in two, heads before columns; then let heads and
# tokens change places. Merge does the same two steps backwards.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - *view size is not compatible*: after axes have changed places, a view may be impossible;
#   `reshape` copies where it must.
# - Shapes fit, numbers do not: axes were reshaped that should have been exchanged.
#
# </details>


# %% solution="split-heads"
def split_heads(x: Float[Tensor, "B n d_model"], num_heads: int) -> Float[Tensor, "B H n d_k"]:
    """Give head 0 the first d_k columns of every token, head 1 the next d_k, and so on."""
    ### BEGIN SOLUTION
    return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)  # (B, n, H, d_k) on the way
    ### END SOLUTION


def merge_heads(x: Float[Tensor, "B H n d_k"]) -> Float[Tensor, "B n d_model"]:
    """Put the heads side by side again."""
    ### BEGIN SOLUTION
    return x.transpose(1, 2).flatten(-2)  # (B, n, H, d_k) on the way
    ### END SOLUTION


# %% test="split-heads-split" points=1
x = torch.arange(2 * 5 * 12, dtype=torch.float64).reshape(2, 5, 12)
heads = split_heads(x, 3)
assert_shape(heads, (2, 3, 5, 4), "split should give (batch, heads, tokens, d_k)")
assert_close(heads[0, 0, 0], x[0, 0, :4], "head 0 should get the first 4 columns of token 0")
assert_close(heads[0, 0, 1], x[0, 1, :4], "head 0 should get the first 4 columns of token 1")
assert_close(heads[0, 2, 1], x[0, 1, 8:], "head 2 of 3 should get the last 4 columns of token 1")
visible_passed()
### BEGIN HIDDEN TESTS
for shape, num_heads in (((2, 3, 10), 5), ((3, 4, 8), 4), ((2, 7, 6), 1)):
    x = draw(shape, seed=1)
    before = x.clone()
    heads = split_heads(x, num_heads)
    d_k = shape[-1] // num_heads
    assert_shape(heads, (shape[0], num_heads, shape[1], d_k), "split: (batch, heads, tokens, d_k)")
    for h in range(num_heads):
        assert_close(
            heads[:, h],
            x[:, :, h * d_k : (h + 1) * d_k],
            "each head should get its own d_k neighbouring columns of every token",
        )
    assert torch.equal(x, before), "split should leave x unchanged"
turned = draw((2, 12, 5), seed=2, dtype=torch.float32).transpose(1, 2)  # (2, 5, 12)
assert_sound_function(
    split_heads,
    [turned, 3],
    like=lambda x, num_heads: torch.stack(x.chunk(num_heads, -1), 1),
    claim="split should work whatever the memory layout of x",
    says="split should leave x unchanged, keep its dtype and let gradients back to it",
)
### END HIDDEN TESTS

# %% test="split-heads-merge" points=1
heads = draw((2, 3, 5, 4), seed=3)
merged = merge_heads(heads)
assert_shape(merged, (2, 5, 12), "merge should give (batch, tokens, d_model)")
assert_close(merged[0, 1, :4], heads[0, 0, 1], "the first 4 columns of token 1 should be head 0's")
assert_close(merged[0, 1, 8:], heads[0, 2, 1], "the last 4 columns of token 1 should be head 2's")
visible_passed()
### BEGIN HIDDEN TESTS
for shape in ((2, 5, 3, 2), (3, 4, 4, 2), (2, 1, 7, 6), (1, 3, 2, 4)):
    heads = draw(shape, seed=4)
    merged = merge_heads(heads)
    wanted = torch.cat([heads[:, h] for h in range(shape[1])], dim=-1)
    assert_shape(
        merged, wanted.shape, "merge should give (batch, tokens, d_model), also for a batch of 1"
    )
    assert_close(merged, wanted, "merge should put the heads side by side, head 0 first")
turned = draw((2, 5, 3, 4), seed=5, dtype=torch.float32).transpose(1, 2)  # (2, 3, 5, 4)
assert_sound_function(
    merge_heads,
    [turned],
    like=lambda x: torch.cat(x.unbind(1), -1),
    claim="merge should work whatever the memory layout of x",
    says="merge should leave x unchanged, keep its dtype and let gradients back to it",
)
### END HIDDEN TESTS

# %% [markdown]
# ## 4.2 Multi-head attention   (6 points, about 30 minutes, difficulty 4 of 5)
#
# **Objective.** Let $H$ heads attend side by side, each in its own $d_k$ columns:
#
# $$\text{head}_h = \text{Attention}(QW^Q_h, KW^K_h,
# VW^V_h), \qquad
# \text{MultiHead} = [\,\text{head}_0 \mid \dots \mid \text{head}_{H-1}\,]\,W^O$$
#
# Here $Q$, $K$, $V$ are what the layer is given (in self-attention,
# three times the same tokens), $(n, D)$, $(m, D)$ and $(m, D)$, and each $W^Q_h$ is
# $(D, d_k)$. The $H$ small matrices side by side make one $(D, D)$ matrix, so all heads are
# projected at once and the **result** is split. Four methods:
#
# - `__init__`: four linear maps `w_q`, `w_k`, `w_v`, `w_o`, each an `nn.Linear` from `d_model` to
#   `d_model` without bias, as in the paper; and `num_heads`. If `d_model` cannot be shared out
#   evenly, raise a `ValueError` whose message gives both numbers, such as
#   `d_model (10) must be divisible by num_heads (4)`.
# - `split` and `merge`: what you have written in 4.1, called from here in a line each. (If you left that
#   open, write it here.) Chapter 9 needs them as methods.
# - `forward`: project, split, attend, merge, project. Return the output $(B, n, D)$ and the weights
#   of every head, $(B, H, n, m)$; gradients flow through both. `mask` is None, or boolean, $(n, m)$, $(B, 1, m)$ or $(B, n, m)$,
#   and holds for all heads alike.
#
# `scaled_dot_product_attention(q, k, v, mask)` is there from chapter 3: it takes any number of
# leading axes, scales by the square root of the width it is given, lets the mask broadcast, and
# returns output and weights. A query that may see no key gets 0, not NaN, so an empty sentence in
# the batch does no harm. Ready layers are not allowed here: `lab.blocks.MultiHeadAttention`,
# `nn.MultiheadAttention` and `multi_head_attention_forward`.
#
# <details><summary>Hint 1: a question</summary>
#
# Next to scores of shape $(B, H, n, m)$, which axis would a mask of shape $(B, n, m)$ line up with
# the heads?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# One line for each of the five steps. The mask lacks one axis, of length 1, just before its last two.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - Right for one head, wrong for several: does the scale use the width of a head?
# - Right without a mask, an error or mixed-up sentences with one: the axis for the heads.
# - Right for self-attention only: which of the three inputs is each projection applied to?
# - The weights have shape $(B, n, m)$: they are the mean over the heads; each head's own are
#   wanted.
#
# </details>


# %% solution="multi-head" export
class MultiHeadAttention(nn.Module):
    """Attend with several heads at once (Vaswani et al. 2017, section 3.2.2).

    Args:
        d_model: width of queries, keys, values and output.
        num_heads: number of heads; each has width d_k = d_model / num_heads.

    Raises:
        ValueError: if `d_model` is not divisible by `num_heads`.
    """

    def __init__(self, d_model: int, num_heads: int) -> None:
        super().__init__()
        ### BEGIN SOLUTION
        if d_model % num_heads:
            raise ValueError(f"d_model ({d_model}) must be divisible by num_heads ({num_heads})")
        self.num_heads = num_heads
        # no biases, as in the paper; the columns of all heads lie side by side in each matrix
        self.w_q = nn.Linear(d_model, d_model, bias=False)
        self.w_k = nn.Linear(d_model, d_model, bias=False)
        self.w_v = nn.Linear(d_model, d_model, bias=False)
        self.w_o = nn.Linear(d_model, d_model, bias=False)
        ### END SOLUTION

    def split(self, x: Float[Tensor, "B n d_model"]) -> Float[Tensor, "B H n d_k"]:
        """Give head 0 the first d_k columns of every token, head 1 the next d_k, and so on."""
        ### BEGIN SOLUTION
        return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)  # (B, n, H, d_k) on the way
        ### END SOLUTION

    def merge(self, x: Float[Tensor, "B H n d_k"]) -> Float[Tensor, "B n d_model"]:
        """Put the heads side by side again."""
        ### BEGIN SOLUTION
        return x.transpose(1, 2).flatten(-2)  # (B, n, H, d_k) on the way
        ### END SOLUTION

    def forward(
        self,
        query: Float[Tensor, "B n d_model"],
        key: Float[Tensor, "B m d_model"],
        value: Float[Tensor, "B m d_model"],
        mask: Bool[Tensor, "... #n m"] | None = None,  # True = may attend
    ) -> tuple[Float[Tensor, "B n d_model"], Float[Tensor, "B H n m"]]:
        """Attend from n queries to m keys; return the output and the weights of every head."""
        ### BEGIN SOLUTION
        q = self.split(self.w_q(query))  # (B, H, n, d_k)
        k = self.split(self.w_k(key))  # (B, H, m, d_k)
        v = self.split(self.w_v(value))  # (B, H, m, d_k)
        if mask is not None:
            mask = mask.unsqueeze(-3)  # (..., 1, n, m): the same for every head
        heads, weights = scaled_dot_product_attention(q, k, v, mask)
        return self.w_o(self.merge(heads)), weights
        ### END SOLUTION


# %% test="multi-head-init" points=1
torch.manual_seed(0)
layer = MultiHeadAttention(12, 3)
for name in MATRICES:
    linear = getattr(layer, name, None)
    assert isinstance(linear, nn.Linear), f"the layer should have an nn.Linear named {name}"
    assert_shape(linear.weight, (12, 12), f"{name} should be from d_model to d_model: (12, 12)")
    assert linear.bias is None, f"{name} should have no bias"
assert_raises(
    ValueError,
    lambda: MultiHeadAttention(10, 4),
    "10 columns cannot be shared out over 4 heads: a ValueError that gives both numbers",
    mentions=("10", "4"),
)
visible_passed()
### BEGIN HIDDEN TESTS
torch.manual_seed(1)
layer = MultiHeadAttention(20, 4)
count = sum(parameter.numel() for parameter in layer.parameters())
assert count == 4 * 20 * 20, (
    f"the layer should have 4 * d_model * d_model = 1600 numbers to learn\nYours has {count}."
)
matrices = [getattr(layer, name).weight for name in MATRICES]
for i, one in enumerate(matrices):
    for j in range(i):
        assert not torch.equal(one, matrices[j]), (
            f"{MATRICES[i]} and {MATRICES[j]} should start with different random numbers"
        )
assert getattr(layer, "num_heads", None) == 4, "num_heads should be kept under that name"
assert_raises(
    ValueError,
    lambda: MultiHeadAttention(6, 9),
    "6 columns cannot be shared out over 9 heads: a ValueError that gives both numbers",
    mentions=("6", "9"),
)
x = draw((2, 3, 20), seed=5)
wanted = torch.stack([x[:, :, 5 * h : 5 * h + 5] for h in range(4)], 1)
before = wanted.clone()
assert_close(layer.split(x), wanted, "the method split should do what split_heads does")
assert_close(layer.merge(wanted), x, "the method merge should undo split, heads side by side")
assert torch.equal(wanted, before), "the method merge should leave x unchanged"
### END HIDDEN TESTS

# %% test="multi-head-self" points=2
layer = with_drawn_weights(MultiHeadAttention(12, 3), 12)
x = draw((2, 5, 12), seed=6)
wanted, wanted_weights = torch_layer(layer, 3)(x, x, x, average_attn_weights=False)
output, weights = layer(x, x, x)
assert_shape(output, (2, 5, 12), "the output should be (batch, queries, d_model)")
assert_shape(weights, (2, 3, 5, 5), "the weights should be (batch, heads, queries, keys)")
assert_close(weights.sum(-1), 1, "in every head, each query's weights should sum to 1")
assert_close(
    weights, wanted_weights, "each head's weights should be PyTorch's: softmax(q . k / sqrt(d_k))"
)
assert_close(output, wanted, "the output should be that of PyTorch's own layer, weights copied")
visible_passed()
### BEGIN HIDDEN TESTS
for d_model, num_heads, seed in ((8, 2, 7), (10, 5, 8), (6, 1, 9), (4, 4, 10)):
    layer = with_drawn_weights(MultiHeadAttention(d_model, num_heads), d_model, seed)
    x = draw((3, 7, d_model), seed=seed)
    before = x.clone()
    wanted, wanted_weights = torch_layer(layer, num_heads)(x, x, x, average_attn_weights=False)
    output, weights = layer(x, x, x)
    assert_close(weights, wanted_weights, "with other sizes, the weights should be PyTorch's too")
    assert_close(output, wanted, "with other sizes, the output should be PyTorch's too")
    assert torch.equal(x, before), "forward should leave its inputs unchanged"

layer = with_drawn_weights(MultiHeadAttention(12, 4), 12, seed=11)
x = draw((2, 12, 5), seed=12).transpose(1, 2).requires_grad_()  # not contiguous
theirs = torch_layer(layer, 4)
wanted, wanted_weights = theirs(x, x, x, average_attn_weights=False)
output, weights = layer(x, x, x)
total, wanted = (
    a.square().sum() + b.square().sum() for a, b in ((output, weights), (wanted, wanted_weights))
)
own = [getattr(layer, name).weight for name in MATRICES]
gradients = torch.autograd.grad(total, [x, *own], allow_unused=True)
packed = [theirs.in_proj_weight, theirs.out_proj.weight]
for_x, for_in, for_out = torch.autograd.grad(wanted, [x, *packed])
expected = [for_x, *for_in.split(12), for_out]
assert all(gradient is not None for gradient in gradients), (
    "x, w_q, w_k, w_v and w_o should all get a gradient"
)
for gradient, right in zip(gradients, expected, strict=True):
    assert_close(
        gradient,
        right,
        "the gradients of x and of the four matrices should be PyTorch's, by output and weights",
        atol=1e-5 * right.abs().max().item(),  # sums of many terms
    )

layer = with_drawn_weights(MultiHeadAttention(12, 3), 12, dtype=torch.float32)
x = draw((2, 5, 12), seed=13, dtype=torch.float32)
wanted, _ = torch_layer(layer, 3)(x, x, x)
output, _ = layer(x, x, x)
assert_dtype(output, torch.float32, "float32 inputs should give a float32 output")
assert_close(output, wanted, "the output should hold in float32 too")
### END HIDDEN TESTS

# %% test="multi-head-mask" points=2
layer = with_drawn_weights(MultiHeadAttention(12, 3), 12)
x = draw((2, 5, 12), seed=14)
mask = torch.ones(2, 1, 5, dtype=torch.bool)
mask[0, :, 3:] = False  # the first sentence has 3 tokens, the second all 5
with unchanged(layer):
    output, weights = layer(x, x, x, mask)
assert_shape(weights, (2, 3, 5, 5), "under a mask too, weights are (batch, heads, queries, keys)")
assert_close(weights[0, :, :, 3:], 0, "in every head, a key whose mask is False gets weight 0")
alone, _ = layer(x[:1, :3], x[:1, :3], x[:1, :3])
assert_close(output[0, :3], alone[0], "hiding the padding should equal leaving it out")
other = x.clone()
other[0, 2] = x[0, 1]  # a token that the mask shows
assert not torch.allclose(layer(other, other, other, mask)[0][0, 0], output[0, 0]), (
    "a token whose mask is True should reach the other tokens of its sentence"
)
visible_passed()
### BEGIN HIDDEN TESTS
causal = torch.ones(5, 5, dtype=torch.bool).tril()
with (
    expect_no_error("a mask of shape (n, m) should hold for all sentences and heads"),
    unchanged(layer),
):
    output, _ = layer(x, x, x, causal)
    early, _ = layer(x[:, :2], x[:, :2], x[:, :2], causal[:2, :2])  # as many tokens as sentences
assert_close(output[:, :2], early, "a mask of shape (n, m) should hold for all sentences and heads")
for batch, size in ((2, 1.0), (3, 3000.0)):  # with 3 sentences and 3 heads no shape would complain
    x = size * draw((batch, 5, 12), seed=15)
    mask = torch.rand(batch, 5, 5, generator=torch.Generator().manual_seed(16)) < 0.6
    mask |= torch.eye(5, dtype=torch.bool)
    before = mask.clone()
    output, weights = layer(x, x, x, mask)
    for b in range(batch):
        alone, alone_weights = layer(x[b : b + 1], x[b : b + 1], x[b : b + 1], mask[b])
        assert_close(
            output[b], alone[0], "a mask of shape (B, n, m): each sentence should get its own"
        )
        assert_close(weights[b], alone_weights[0], "each sentence's own mask, in every head")
        claim = "in every head, a hidden key gets weight 0, however low the others' scores are"
        assert_close(weights[b][:, ~mask[b]], 0, claim)
    assert torch.equal(mask, before), "the mask handed in should stay unchanged"
mask = torch.ones(3, 1, 5, dtype=torch.bool)
mask[1] = False  # an empty sentence
output, _ = layer(x, x, x, mask)
assert torch.isfinite(output).all(), "an empty sentence should give a finite output"
assert_close(output[0], layer(x[:1], x[:1], x[:1])[0][0], "it should not change the others")
### END HIDDEN TESTS

# %% test="multi-head-cross" points=1
layer = with_drawn_weights(MultiHeadAttention(12, 3), 12)
query, memory = draw((2, 4, 12), (2, 7, 12), seed=17)
wanted, _ = torch_layer(layer, 3)(query, memory, memory)
output, weights = layer(query, memory, memory)
assert_shape(output, (2, 4, 12), "4 queries and 7 keys: one output for each query")
assert_shape(weights, (2, 3, 4, 7), "4 queries and 7 keys: weights (batch, heads, 4, 7)")
assert_close(output, wanted, "from 4 queries to 7 keys, the output should be PyTorch's")
shown = torch.tensor([5, 7])[:, None, None] > torch.arange(7)  # (2, 1, 7)
assert_sound(
    layer,
    [query, memory, memory, shown],
    says="the layer gives the same in training and in evaluation, mask included, in the dtype of "
    "its matrices; gradients reach all of them and all inputs, and nothing is changed",
)
visible_passed()
### BEGIN HIDDEN TESTS
query, key, value = draw((3, 1, 12), (3, 5, 12), (3, 5, 12), seed=18)
wanted, wanted_weights = torch_layer(layer, 3)(query, key, value, average_attn_weights=False)
output, weights = layer(query, key, value)
assert_close(weights, wanted_weights, "the weights should come from query and key")
assert_close(output, wanted, "keys and values may come from different tensors")
mask = torch.ones(3, 1, 5, dtype=torch.bool)
mask[2, :, 2:] = False
output, _ = layer(query, key, value, mask)
short, _ = layer(query[2:], key[2:, :2], value[2:, :2])
assert_close(output[2], short[0], "hidden keys of the other sequence should count as absent")
### END HIDDEN TESTS

# %% [markdown]
# ## 4.3 A sum over heads   (3 points, about 20 minutes, difficulty 3 of 5)
#
# **Objective.** Take the layer apart into one contribution per head.
#
# Side by side, then times $W^O$: that is a sum. Head $h$ meets only its own $d_k$ **rows**
# of $W^O$, and its values come from its own $d_k$ **columns** of $W^V$. With
# $A_h$ for the head's weights, the output is
#
# $$Y = \sum_{h=0}^{H-1} A_h\, X\, W^{VO}_h, \qquad
# W^{VO}_h = W^V_h W^O_h$$
#
# - `value_output_maps`: from $W^V$ and $W^O$, both $(D, D)$, make the $H$ maps
#   $W^{VO}_h$, stacked to $(H, D, D)$. $D$ is divisible by $H$.
# - `head_contributions`: from `x` $(B, m, D)$, the weights $(B, H, n, m)$ and the maps $(H, D, D)$
#   make all terms of the sum, $(B, H, n, D)$. A query that may see no key has weights 0.
#
# Here matrices act on rows, as on the page: $XW^V$ is `x @ w_v`. (An `nn.Linear`
# keeps the transpose of that.) Gradients flow back to all that is handed in.
#
# <details><summary>Hint 1: a question</summary>
#
# What shape has a block of $d_k$ columns of $W^V$ times a block of $d_k$ rows of
# $W^O$? What rank can the product have?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Maps: a loop over heads is fine; cut, multiply, stack. Contributions: every head needs the same
# tokens, mixed by its weights, then mapped. Give `x` and the maps axes of length 1 where the
# weights have an axis that they lack, and two matrix products do it all.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - The maps have shape $(H, d_k, d_k)$: the blocks were multiplied the other way around.
# - All right for one head only: both blocks must belong to the same head; columns of one, rows of
#   the other.
# - *must match the size of tensor*, only if $B \ne H$: an axis for the heads is missing or in the
#   wrong place.
# - Everything is $H$ times too large: the sum over heads was taken, or heads were mixed, too early.
#
# </details>


# %% solution="heads-as-sum"
def value_output_maps(
    w_v: Float[Tensor, "D D"], w_o: Float[Tensor, "D D"], num_heads: int
) -> Float[Tensor, "H D D"]:
    """For every head, its columns of w_v times its rows of w_o (compare Turner 2023, MHSA)."""
    ### BEGIN SOLUTION
    columns = w_v.chunk(num_heads, dim=1)  # H blocks (D, d_k)
    rows = w_o.chunk(num_heads, dim=0)  # H blocks (d_k, D)
    return torch.stack([column @ row for column, row in zip(columns, rows, strict=True)])
    ### END SOLUTION


def head_contributions(
    x: Float[Tensor, "B m D"],
    weights: Float[Tensor, "B H n m"],
    maps: Float[Tensor, "H D D"],
) -> Float[Tensor, "B H n D"]:
    """What every head adds to the output: its weights times the tokens times its map."""
    ### BEGIN SOLUTION
    return weights @ x.unsqueeze(1) @ maps  # (B, H, n, m), (B, 1, m, D), (H, D, D)
    ### END SOLUTION


# %% test="heads-as-sum-maps" points=1
w_v, w_o = draw((6, 6), (6, 6), seed=19)
wanted = w_v[:, :2] @ w_o[:2]
maps = value_output_maps(w_v, w_o, 3)
assert_shape(maps, (3, 6, 6), "3 heads and d_model 6: the maps should be (3, 6, 6)")
assert_dtype(maps, torch.float64, "the maps should have the dtype of w_v and w_o")
assert_close(maps[0], wanted, "the first map: the first 2 columns of w_v, the first 2 rows of w_o")
ranks = torch.linalg.matrix_rank(maps, rtol=1e-4)
assert ranks.tolist() == [2, 2, 2], (
    f"each map should have rank d_k = 2\nYours have ranks {ranks.tolist()}."
)
visible_passed()
### BEGIN HIDDEN TESTS
double, single = torch.float64, torch.float32
for d_model, num_heads, dtype in ((12, 4, double), (10, 2, single), (5, 5, double), (7, 1, double)):
    drawn = draw(*[(d_model, d_model)] * 2, seed=20, dtype=dtype)
    w_v, w_o = (t.requires_grad_() for t in drawn)
    before = w_v.detach().clone(), w_o.detach().clone()
    maps = value_output_maps(w_v, w_o, num_heads)
    assert_dtype(maps, dtype, "the maps should have the dtype of w_v and w_o, float32 too")
    d_k = d_model // num_heads
    assert_shape(
        maps, (num_heads, d_model, d_model), "there should be one (D, D) map for each head"
    )
    for h in range(num_heads):
        wanted = sum(w_v[:, c : c + 1] @ w_o[c : c + 1] for c in range(h * d_k, (h + 1) * d_k))
        assert_close(
            maps[h], wanted, "each map should join the head's columns of w_v to its rows of w_o"
        )
    assert torch.equal(w_v, before[0]) and torch.equal(w_o, before[1]), (
        "value_output_maps should leave its inputs unchanged"
    )
    blocks = [slice(h * d_k, (h + 1) * d_k) for h in range(num_heads)]
    assert_gradients(
        maps,
        torch.stack([w_v[:, block] @ w_o[block] for block in blocks]),
        {"w_v": w_v, "w_o": w_o},
        "the gradients of w_v and w_o should be those of the maps",
    )
### END HIDDEN TESTS

# %% test="heads-as-sum-contributions" points=2
x = torch.tensor([[[1.0, 2.0], [3.0, 4.0]]], dtype=torch.float64)
weights = torch.tensor([[[[0.5, 0.5]], [[0.0, 1.0]], [[1.0, 0.0]]]], dtype=torch.float64)
maps = torch.tensor(
    [[[1.0, 0.0], [0.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]], [[0.0, 0.0], [2.0, 0.0]]],
    dtype=torch.float64,
)
parts = head_contributions(x, weights, maps)
assert_shape(parts, (1, 3, 1, 2), "contributions should be (batch, heads, queries, d_model)")
assert_dtype(parts, torch.float64, "contributions should have the dtype of the tokens")
wanted = torch.tensor([[[[2.0, 0.0]], [[4.0, 3.0]], [[4.0, 0.0]]]], dtype=torch.float64)
assert_close(parts, wanted, "three heads on tokens (1, 2) and (3, 4) add (2, 0), (4, 3) and (4, 0)")
visible_passed()
### BEGIN HIDDEN TESTS
for seed, (batch, num_heads) in enumerate(((2, 3), (3, 3), (4, 1)), 21):
    d_model, dtype = 6, torch.float64 if num_heads > 1 else torch.float32
    x, scores, w_v, w_o = draw(
        (batch, 7, d_model),
        (batch, num_heads, 5, 7),
        (d_model, d_model),
        (d_model, d_model),
        seed=seed,
        dtype=dtype,
    )
    weights = scores.softmax(-1)
    weights[0, :, 2] = 0.0  # a query that may see no key
    d_k = d_model // num_heads
    blocks = [slice(h * d_k, (h + 1) * d_k) for h in range(num_heads)]
    maps = torch.stack([w_v[:, block] @ w_o[block] for block in blocks])
    before = x.clone(), weights.clone(), maps.clone()
    inputs = {"x": x, "weights": weights, "maps": maps}
    for tensor in inputs.values():
        tensor.requires_grad_()
    handed = [tensor * 1 for tensor in inputs.values()]
    parts = head_contributions(*handed)
    assert_shape(parts, (batch, num_heads, 5, d_model), "one contribution per head and query")
    assert_dtype(parts, dtype, "contributions should have the dtype of the tokens, float32 too")
    assert_close(parts[0, :, 2], 0, "where the weights of a query are 0, no head adds anything")
    values = torch.stack([(x @ w_v)[:, :, block] for block in blocks], 1)
    side_by_side = torch.cat((weights @ values).unbind(1), -1)
    assert_close(
        parts.sum(1), side_by_side @ w_o, "the contributions should add up to the layer's output"
    )
    for h in range(num_heads):
        assert_close(
            parts[:, h],
            weights[:, h] @ x @ maps[h],
            "each contribution should use the weights and the map of its own head",
        )
    assert all(torch.equal(t, b) for t, b in zip(handed, before, strict=True)), (
        "head_contributions should leave its inputs unchanged"
    )
    assert_gradients(
        parts,
        torch.einsum("bhnm,bmd,hde->bhne", weights, x, maps),
        inputs,
        "the gradients of x, weights and maps should be those of the contributions",
    )
### END HIDDEN TESTS

# %% [markdown]
# ## 4.4 Which head matters?   (3 points, about 25 minutes, difficulty 3 of 5)
#
# **Objective.** Measure what each head is good for: switch it off, and see what is lost.
#
# The next cell makes a small layer of four heads, by hand instead of by training. A token asks *who acts?*
# Each of 200 sentences has one right answer. `PARTS`, $(200, 4, D)$, holds what every head adds to the
# output for the token that asks (the terms of 4.3), and `who_acts(output)` says for which share of the
# sentences the answer that one reads off the output $(200, D)$ is right. `LOOKS` are the heads' mean
# weights on the four tokens; the second one is who acts.
#
# - `predicted_cost()`: predict first. Two of the four heads cost about 0.05 of the right answers each, if that one alone is
#   switched off. What do these two cost, off together? One of the texts in `PAIR_COSTS`; there is a point for having predicted, not
#   for being right.
# - `ablation_costs(parts, share_right)`: for `parts` $(B, H, D)$ return an $(H, H)$ tensor, float64. Entry
#   $[i, j]$ is the share of right answers that is **lost**, against all heads, if heads $i$ and $j$ are
#   switched off; $[i, i]$, if head $i$ alone is. A head that is off adds nothing. `share_right` takes an
#   output $(B, D)$ and returns a float.
# - `findings()`: what you have measured on `PARTS` with `who_acts`, as a dictionary:
#   - `"costs"`: what each of the four heads costs alone, a list of four floats;
#   - `"pair"`: the two heads, smaller number first, that **stand in** for each other: off together they
#     cost more than what they cost one by one, added up, by the most;
#   - `"pair_cost"`: what these two cost together;
#   - `"idle"`: the head that looks at who acts and is good for nothing here.
#
#   Numbers to two decimals or more. You may write down numbers or compute them.
#
# <details><summary>Hint 1: a question</summary>
#
# The output is a sum over heads. What does it become without two of its terms?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# One call of `share_right` with all heads, one for each pair. Then print the table for `PARTS`,
# and next to it what each pair's two single costs add up to.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - All entries are near 1 where they should be near 0: you return what is right, not what is lost.
# - The diagonal is 0: head $i$ with itself is head $i$ alone, switched off.
# - A pair costs exactly what its heads cost one by one: it was computed, not measured.
#
# </details>


# %%
WHERE = torch.tensor(  # what four heads look at: <bos>, who acts, the verb, to whom
    [
        [0.05, 0.90, 0.02, 0.03],
        [0.1, 0.62, 0.06, 0.22],
        [0.14, 0.05, 0.21, 0.6],
        [0.05, 0.55, 0.2, 0.2],
    ]
).double()


def four_heads():
    """What four heads made by hand add to an output, and a function that scores the output."""
    drawn, noise = draw((200, 4, 12), (200, 4, 4), seed=44)
    persons = drawn[:, :, 0].argsort(0) % 5  # each token's person, of five
    x = torch.cat([F.one_hot(persons, 5).double(), drawn[..., 5:]], -1)
    x[:, [0, 2], :5] = 0.0  # <bos> and the verb are no persons
    weights = (WHERE.log() + 0.3 * noise).softmax(-1)  # (200, H, 4)
    maps = torch.zeros(4, 12, 12, dtype=torch.float64)
    maps[:, :5, :5] = torch.tensor([0.0, 1.0, -0.5, 1.0])[:, None, None] * torch.eye(5)
    maps[:, 5:, :5] = 0.07 * draw((4, 7, 5), seed=41)
    maps[0] *= 0.1
    parts = torch.einsum("bhm,bmd,hde->bhe", weights, x, maps)
    return (
        parts,
        weights.mean(0),
        lambda y: (y[:, :5].argmax(-1) == persons[:, 1]).double().mean().item(),
    )


PARTS, LOOKS, who_acts = four_heads()
print(LOOKS)
print("right, with all heads:", who_acts(PARTS.sum(1)))
PAIR_COSTS = ("about 0.05", "about 0.1", "about 0.4", "about 0.9")


# %% solution="predicted-cost"
def predicted_cost() -> str:
    """What you expect the two to cost together: one of PAIR_COSTS."""
    ### BEGIN SOLUTION
    return "about 0.1"
    ### END SOLUTION


# %% test="predicted-cost-made" points=1
cost = predicted_cost()
assert isinstance(cost, str), "a prediction is one of the texts in PAIR_COSTS"
assert cost in PAIR_COSTS, f"a prediction is one of {', '.join(PAIR_COSTS)}\nYours is {cost!r}."
visible_passed()


# %% solution="ablation"
def ablation_costs(
    parts: Float[Tensor, "B H D"], share_right: Callable[[Tensor], float]
) -> Float[Tensor, "H H"]:
    """The share of right answers that is lost without heads i and j, for each pair of heads."""
    ### BEGIN SOLUTION
    total, heads = parts.sum(1), parts.unbind(1)
    right = share_right(total)
    costs = torch.zeros(len(heads), len(heads), dtype=torch.float64)
    for i, one in enumerate(heads):
        for j, other in enumerate(heads[: i + 1]):
            left = total - one - other if i != j else total - one
            costs[i, j] = costs[j, i] = right - share_right(left)
    return costs
    ### END SOLUTION


def findings() -> dict[str, Any]:
    """What was measured on PARTS: "costs", "pair", "pair_cost" and "idle"."""
    ### BEGIN SOLUTION
    return {"costs": [0.0, 0.055, 0.01, 0.045], "pair": (1, 3), "pair_cost": 0.86, "idle": 0}
    ### END SOLUTION


# %% test="ablation-costs" points=1
parts = torch.tensor([[[1.0, 0.0], [0.0, 2.0]], [[3.0, 0.0], [0.0, 4.0]]], dtype=torch.float64)
costs = ablation_costs(parts, lambda y: y.sum().item() / 10)
assert_shape(costs, (2, 2), "two heads: the costs should be (2, 2)")
assert_dtype(costs, torch.float64, "the costs should be float64")
wanted = torch.tensor([[0.4, 1.0], [1.0, 0.6]], dtype=torch.float64)
assert_close(costs, wanted, "a score of 1.0, of which one head brings 0.4 and the other 0.6")
visible_passed()
### BEGIN HIDDEN TESTS
for batch, num_heads, seed in ((3, 4, 20), (4, 3, 21), (2, 1, 22)):
    parts = draw((batch, num_heads, 5), seed=seed)
    before = parts.clone()
    right = lambda y: y.square().mean().item()  # noqa: E731  (a score that is no sum over heads)
    costs = ablation_costs(parts, right)
    assert_shape(costs, (num_heads, num_heads), "there should be one entry for each pair of heads")
    for i in range(num_heads):
        for j in range(num_heads):
            left = [h for h in range(num_heads) if h not in (i, j)]
            assert_close(
                costs[i, j],
                right(parts.sum(1)) - right(parts[:, left].sum(1)),
                "each entry should be the score of all heads less that without heads i and j",
            )
    assert torch.equal(parts, before), "ablation_costs should leave parts unchanged"
### END HIDDEN TESTS

# %% test="ablation-findings" points=1
found = findings()
assert isinstance(found, dict) and sorted(found) == ["costs", "idle", "pair", "pair_cost"], (
    'findings should return a dictionary with "costs", "pair", "pair_cost" and "idle"'
)
own = ablation_costs(PARTS, who_acts)
single, pair = list(found["costs"]), tuple(found["pair"])
assert len(single) == 4, "there should be one single cost for each of the four heads"
assert len(pair) == 2 and 0 <= pair[0] < pair[1] < 4, (
    f"the pair should be two of the heads 0 to 3, the smaller number first\nYours is {pair}."
)
for h in range(4):
    assert abs(single[h] - own[h, h]) < 0.006, "costs should be those that your own table has"
assert abs(found["pair_cost"] - own[pair]) < 0.006, "pair_cost should be what your own table has"
visible_passed()
### BEGIN HIDDEN TESTS
for h, cost in enumerate((0.0, 0.055, 0.01, 0.045)):
    assert abs(single[h] - cost) < 0.006, "on PARTS the four single heads cost something else"
assert pair == (1, 3), "these two do not stand in for each other the most"
assert abs(found["pair_cost"] - 0.86) < 0.006, "on PARTS the pair costs something else"
assert found["idle"] == 0, "the idle head looks most at who acts and costs nothing"
### END HIDDEN TESTS

# %%
if watched():  # not while the notebook is graded
    prediction = predicted(predicted_cost, PAIR_COSTS)
    compare(prediction, f"{findings()['pair_cost']:.2f}")

# %% [markdown]
# <details><summary>What happened</summary>
#
# Both heads hand over the same thing. With one of them off, the other still brings it, and the output is hardly worse: each looks
# as if it did not matter. With both off nobody brings it. Costs of single heads do not add up, and "each can be removed" does not mean "all can". In trained
# models such spare heads are common, which is one reason why many heads can be removed one by one.
#
# </details>

# %% [markdown]
# **Your own heads.** So much for heads made by hand. The next cell trains one layer of yours for a few
# seconds: `<bos>` asks *who*, *did what*, *to whom* about sentences such as the one below. Then it shows where your heads look, and
# what is still right with each of them switched off. Which head is good for what, and does the picture tell? Change the seed and
# run it again. (It is not graded, and runs in a notebook only.)

# %%
if watched():  # not while the notebook is graded
    from lab import plots
    from lab.own import Reader

    torch.manual_seed(0)
    reader = Reader(MultiHeadAttention(24, 3))
    reader.learn()
    read_words, looks = reader.looks("the old king helps this queen .")
    plots.use()
    plots.heatmap(looks.T, read_words, ["head 0", "head 1", "head 2"], "Your heads, asked by <bos>")
    print("right on held-out sentences: who, did what, to whom")
    print("  all heads     ", reader.right())
    for head in range(3):
        print(f"  without head {head}", reader.right(off=head))

# %% [markdown]
# ## 4.5 An induction head by hand   (3 points, about 45 minutes, difficulty 5 of 5)
#
# **Objective.** Set the weights of two layers so that they go on with what they have seen: after
# *A B ... A* they answer *B*, for any words and at any distance. No training: you decide what every
# column means. In large models such heads come about by themselves (Olsson et al. 2022).
#
# A sentence begins with `<bos>`, which is word 0 and stands nowhere else. The tokens have
# $D = 3V + P$ columns, with $V$ words and $P$ places:
#
# | columns | at the start |
# | --- | --- |
# | `word`: the first $V$ | 1 in the column of the token's word, else 0 |
# | `place`: the next $P$ | 1 in the column of its place, counted from 0 |
# | `before`: the next $V$ | 0; your **first** layer writes here which word stands before the token |
# | `answer`: the last $V$ | 0; your **second** layer writes here which word came after earlier ones like it |
#
# `two_layers` in the next cell runs them. Each layer has one head with causal mask, and adds its result to
# what it was given: $x + \text{softmax}(xW^Q (xW^K)^\top / \sqrt d)\, x\, W^{VO}$, where $d$, the number of columns of
# $W^Q$ and $W^K$, is yours to choose. $W^{VO}$ is $(D, D)$, one map as in 4.3.
#
# Return for each layer `(w_q, w_k, w_vo)`, float64. After the first one, `before` of each token but `<bos>` should be 1 in the
# column of the word before it, else 0. After the second one, look at a token whose word has stood in the sentence
# before: `answer` should be 1 in the column of the word that came next; if it has stood there several times, the mean over them all.
# An error of 0.001 is allowed, with a hundred words and places too. What other tokens have in `answer` does not matter.
#
# <details><summary>Hint 1: a question</summary>
#
# Layer 1: a token at place $p$ asks for place $p - 1$. Which matrix maps each place to the one before? Layer 2: a token
# asks for its own word; in which columns of which tokens does it have to be found, if what counts is the token *after* the earlier one?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# All six matrices are 0 but for one block each, and that block is an identity, or one that is moved by one row. A softmax
# looks at one key alone if that key's score is far above all others: multiply one of the two blocks by a large number.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - `before` holds a bit of everything: the scores are too close to each other; how large are they after the division by $\sqrt d$?
# - `before` holds the token's own word: does it ask for the place after it, which the mask hides?
# - `answer` holds the token's own word: layer 2 has found the earlier *A*, or the word before *B*; it should find *B*, and take its word.
# - Right for few places only: a matrix was made for one size.
#
# </details>


# %%
def two_layers(ids, words, places, layers):
    """Run two layers on one sentence; return the tokens and the weights after each of them."""
    x = torch.zeros(len(ids), 3 * words + places, dtype=torch.float64)
    for i, word in enumerate(ids):
        x[i, word] = x[i, words + i] = 1.0
    future = torch.ones(len(ids), len(ids), dtype=torch.bool).triu(1)
    steps = []
    for w_q, w_k, w_vo in layers:
        scores = (x @ w_q) @ (x @ w_k).T / w_q.shape[1] ** 0.5
        weights = scores.masked_fill(future, -torch.inf).softmax(-1)
        x = x + weights @ x @ w_vo
        steps.append((x, weights))
    return steps


# %% solution="induction"
def induction_weights(words: int, places: int) -> list[tuple[Tensor, Tensor, Tensor]]:
    """For each of two layers w_q (D, d), w_k (D, d) and w_vo (D, D), with D = 3 words + places."""
    ### BEGIN SOLUTION
    width = 3 * words + places
    word, place = slice(words), slice(words, words + places)
    before, answer = slice(words + places, width - words), slice(width - words, width)
    one = torch.eye(words, dtype=torch.float64)
    sharp = 100.0  # what is left of it after the division by sqrt(d), whatever d is

    w_q, w_k, w_vo = (torch.zeros(width, n, dtype=torch.float64) for n in (places, places, width))
    w_q[place] = sharp * places**0.5 * torch.diag(torch.ones(places - 1), -1)  # p to p - 1
    w_k[place] = torch.eye(places)
    w_vo[word, before] = one
    first = (w_q, w_k, w_vo)

    w_q, w_k, w_vo = (torch.zeros(width, n, dtype=torch.float64) for n in (words, words, width))
    w_q[word] = sharp * words**0.5 * one
    w_k[before] = one
    w_vo[word, answer] = one
    return [first, (w_q, w_k, w_vo)]
    ### END SOLUTION


# %% test="induction-previous" points=1
def ran(ids, words, places):
    """The tokens after each layer of the student's, if its matrices have the right shapes."""
    layers = induction_weights(words, places)
    width = 3 * words + places
    assert len(layers) == 2, "there should be two layers of three matrices"
    for w_q, w_k, w_vo in layers:
        assert_dtype(w_q, torch.float64, "w_q should be float64")
        assert_shape(w_q, (width, w_q.shape[-1]), "w_q should have one row for each of D columns")
        assert_shape(w_k, w_q.shape, "w_k should have the shape of w_q")
        assert_shape(w_vo, (width, width), "w_vo should be (D, D)")
    return [x for x, _ in two_layers(ids, words, places, layers)]


PREVIOUS = "after layer 1, `before` should hold the word that stands before the token"
ids = [0, 3, 1, 4, 3]
first, _ = ran(ids, 5, 8)
assert_close(first[1:, 13:18], torch.eye(5).double()[ids[:-1]], PREVIOUS, atol=1e-3)
visible_passed()
### BEGIN HIDDEN TESTS
for words, places, length in ((4, 6, 6), (7, 120, 60), (3, 9, 2), (12, 5, 5)):
    ids = [
        0,
        *torch.randint(1, words, (length - 1,), generator=torch.Generator().manual_seed(length)),
    ]
    first, _ = ran(ids, words, places)
    start = words + places
    wanted = torch.eye(words, dtype=torch.float64)[torch.tensor(ids[:-1])]
    assert_close(
        first[1:, start : start + words],
        wanted,
        "with other words, places and lengths too, `before` should hold the word before the token",
        atol=1e-3,
    )
### END HIDDEN TESTS

# %% test="induction-answer" points=2
ids = [0, 3, 1, 4, 3]
_, second = ran(ids, 5, 8)
claim = "A B C A: after layer 2 the `answer` of the second A should be B"
assert_close(second[4, 18:], torch.eye(5).double()[1], claim, atol=1e-3)
visible_passed()
### BEGIN HIDDEN TESTS
for words, places, length, seed in ((4, 12, 12, 1), (6, 30, 25, 2), (3, 7, 7, 3), (20, 40, 40, 4)):
    drawn = torch.randint(1, words, (length - 1,), generator=torch.Generator().manual_seed(seed))
    ids = [0, *drawn.tolist()]
    _, second = ran(ids, words, places)
    for i, word in enumerate(ids):
        followers = [ids[j + 1] for j in range(i) if ids[j] == word]
        if followers:
            assert_close(
                second[i, -words:],
                torch.eye(words, dtype=torch.float64)[followers].mean(0),
                "`answer` should be the mean over the words that came after earlier ones like it",
                atol=1e-3,
            )
### END HIDDEN TESTS

# %% [markdown]
# **Your two layers at work.** Rows ask, columns are asked. (Not graded.)

# %%
if watched():  # not while the notebook is graded
    from lab import plots

    names = ["<bos>", "the", "old", "king", "helps", "queen"]
    story = [0, 1, 2, 3, 4, 1, 2, 5, 1, 2]  # which word comes next?
    ran_through = two_layers(story, 6, 12, induction_weights(6, 12))
    plots.use()
    for number, (_, looked_at) in enumerate(ran_through, start=1):
        said = [names[word] for word in story]
        plots.heatmap(looked_at, said, said, f"Layer {number}", annotate=False)
    answers = ran_through[1][0][-1, -6:]
    print(
        "after the last word:",
        {n: round(a, 2) for n, a in zip(names, answers.tolist(), strict=True)},
    )

# %% [markdown]
# ## 4.6 What it costs   (3 points, about 20 minutes, difficulty 3 of 5)
#
# **Objective.** Count multiply-adds: an $(a, b)$ matrix times a $(b, c)$ matrix takes
# $a \cdot b \cdot c$ of them. Softmax, scaling and masks are left out; there is no batch.
#
# - `attention_cost` looks at one multi-head layer with $n$ queries and $m$ keys and values; each
#   head is $d_k = D / H$ wide. It returns three whole numbers: the cost of the four **projections**
#   (how many rows does each of them handle?), of all heads' **scores** $QK^\top$,
#   and of all heads' **mixing** of values.
# - `writing_cost`: a model writes a text of $T$ tokens one after the other. Token $t$ attends to itself and to
#   all before it, $t$ tokens in all ($t = 1, \dots, T$). Return what one layer costs in the whole, a whole number. With
#   `kept=False` every step runs the layer anew, as self-attention of all $t$ tokens. With `kept=True` the keys and values of earlier tokens
#   have been kept, and only what belongs to the new token is computed.
#
# <details><summary>Hint 1: a question</summary>
#
# Which of the four projections handle the $n$ rows of the queries, which the $m$ rows of keys and
# values? How many queries, and how many new keys, does a step have if keys and values are kept?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Count one head's scores with its $d_k$, then all heads'. What becomes of $H$? For the text, add up over $t$; a loop will do.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - Right for $n = m$ only: one of the projections counts the wrong rows.
# - The cost grows with the number of heads: each head is narrower, the more of them there are.
# - With `kept=True` it is right for one token only: the new token's query meets all keys, the kept ones too.
#
# </details>


# %% solution="attention-cost"
def attention_cost(n: int, m: int, d_model: int, num_heads: int) -> tuple[int, int, int]:
    """Multiply-adds of projections, scores and mixing (compare Vaswani et al. 2017, table 1)."""
    ### BEGIN SOLUTION
    d_k = d_model // num_heads
    projections = (2 * n + 2 * m) * d_model * d_model  # queries and output: n; keys and values: m
    scores = num_heads * n * d_k * m
    mixing = num_heads * n * m * d_k
    return projections, scores, mixing
    ### END SOLUTION


def writing_cost(length: int, d_model: int, kept: bool) -> int:
    """Multiply-adds of one layer while a text is written token by token."""
    ### BEGIN SOLUTION
    queries = [1 if kept else t for t in range(1, length + 1)]  # rows that a step computes
    products = sum(2 * n * t * d_model for t, n in enumerate(queries, start=1))
    return 4 * sum(queries) * d_model**2 + products
    ### END SOLUTION


# %% test="attention-cost-values" points=1
cost = attention_cost(10, 10, 512, 8)
assert cost[0] == 10 * 1048576, (
    f"10 tokens through four 512 x 512 projections: 10485760\nYours is {cost[0]}."
)
assert cost[1] == 51200, f"8 heads, each (10, 64) times (64, 10): 51200\nYours is {cost[1]}."
assert cost[2] == 51200, f"8 heads, each (10, 10) times (10, 64): 51200\nYours is {cost[2]}."
assert all(type(part) is int for part in cost), (
    f"the three costs are whole numbers (int), not floats\nYours are {tuple(cost)}."
)
visible_passed()
### BEGIN HIDDEN TESTS
for n, m, d_model, num_heads in ((3, 7, 12, 4), (20, 5, 8, 2), (1, 9, 6, 1), (1, 9, 6, 6)):
    cost, d_k = attention_cost(n, m, d_model, num_heads), d_model // num_heads
    assert len(cost) == 3, "the cost should have three parts: projections, scores, mixing"
    both = [(n, d_model, d_model)] * 2 + [(m, d_model, d_model)] * 2
    for yours, products, claim in (
        (cost[0], both, "the projections should cost what their n and m rows take, no more"),
        (cost[1], [(n, d_k, m)] * num_heads, "the scores of all heads together are miscounted"),
        (cost[2], [(n, m, d_k)] * num_heads, "the mixing of all heads together is miscounted"),
    ):
        assert_whole(yours, sum(a * b * c for a, b, c in products), claim)
### END HIDDEN TESTS

# %% test="attention-cost-writing" points=2
assert_whole(
    writing_cost(1, 4, kept=True),
    72,
    "one token, d_model 4: four projections of 16, two products of 4",
)
assert_whole(
    writing_cost(2, 4, kept=False),
    72 + 160,
    "two tokens, nothing kept: 72 for the first step; the second has two rows and costs 160",
)
visible_passed()
### BEGIN HIDDEN TESTS
for length, d_model in ((2, 4), (3, 5), (10, 64), (100, 7)):
    steps = range(1, length + 1)
    assert_whole(
        writing_cost(length, d_model, kept=False),
        sum(4 * t * d_model**2 + 2 * t * t * d_model for t in steps),
        "with nothing kept, each step costs what self-attention of all its tokens does",
    )
    assert_whole(
        writing_cost(length, d_model, kept=True),
        sum(4 * d_model**2 + 2 * t * d_model for t in steps),
        "with keys and values kept, a step projects one token, and its query meets all keys",
    )
### END HIDDEN TESTS

# %% [markdown]
# ## 4.7 Fewer keys than queries   (2 points, about 20 minutes, difficulty 4 of 5)
#
# **Objective.** Let several query heads share one head of keys and values, as many of today's models do.
# (This one is a bonus: nothing in the model needs it.)
#
# - `grouped_attention`: queries $(B, H, n, d_k)$, keys and values $(B, G, m, d_k)$, where $G$ divides $H$. The first
#   $H / G$ query heads share key head 0, the next $H / G$ key head 1, and so on. Return the heads' results $(B, H, n, d_k)$ and all weights
#   $(B, H, n, m)$. The mask is one that `scaled_dot_product_attention` takes: None, or boolean and such that it
#   lines up with $(B, H, n, m)$; it may have a heads' axis of length 1 or $H$.
# - `pooled_heads`: turn a trained layer into a grouped one. From a matrix of keys or values $(D, D)$, which acts on rows
#   ($x W^K$) and holds $H$ heads side by side, make one $(D, G d_k)$: each new head is the **mean** of the $H / G$
#   heads that it takes the place of (Ainslie et al. 2023, section 2.1). Gradients flow back through both.
#
# <details><summary>Hint 1: a question</summary>
#
# $H = 4$, $G = 2$: which key heads do query heads 0, 1, 2, 3 use? Does `repeat` put copies in that order, or `repeat_interleave`?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Either give every query head its copy of keys and values, or cut the heads' axis of the queries in two, $(G, H / G)$. For the
# pooling, cut the columns in three: groups, heads of a group, columns of a head. One of these goes away.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - Right for $G = 1$ and for $G = H$ only: heads and groups are paired in another order.
# - The pooled matrix mixes columns of one head: the mean runs over the wrong axis.
#
# </details>


# %% solution="grouped-attention"
def grouped_attention(
    q: Float[Tensor, "B H n d_k"],
    k: Float[Tensor, "B G m d_k"],
    v: Float[Tensor, "B G m d_k"],
    mask: Bool[Tensor, "..."] | None = None,
) -> tuple[Float[Tensor, "B H n d_k"], Float[Tensor, "B H n m"]]:
    """Attend with H heads of queries and G of keys and values (Ainslie et al. 2023)."""
    ### BEGIN SOLUTION
    shared = q.shape[1] // k.shape[1]
    k, v = (t.repeat_interleave(shared, dim=1) for t in (k, v))  # (B, H, m, d_k)
    return scaled_dot_product_attention(q, k, v, mask)
    ### END SOLUTION


def pooled_heads(
    matrix: Float[Tensor, "D D"], num_heads: int, groups: int
) -> Float[Tensor, "D G_d_k"]:
    """One matrix of G heads, each the mean of the heads that it stands for."""
    ### BEGIN SOLUTION
    cut = matrix.unflatten(1, (groups, num_heads // groups, -1))  # (D, G, H / G, d_k)
    return cut.mean(2).flatten(1)
    ### END SOLUTION


# %% test="grouped-attention-values" points=1
q, k, v = draw((2, 4, 3, 5), (2, 2, 6, 5), (2, 2, 6, 5), seed=50)
heads, weights = grouped_attention(q, k, v)
assert_shape(heads, (2, 4, 3, 5), "4 query heads: the results should be (batch, 4, queries, d_k)")
assert_shape(weights, (2, 4, 3, 6), "the weights should be (batch, 4, queries, keys)")
first, _ = scaled_dot_product_attention(q[:, 0], k[:, 0], v[:, 0])
assert_close(heads[:, 0], first, "query head 0 should use key head 0")
last, _ = scaled_dot_product_attention(q[:, 3], k[:, 1], v[:, 1])
assert_close(heads[:, 3], last, "query head 3 of 4 should use key head 1 of 2")
visible_passed()
### BEGIN HIDDEN TESTS
for batch, num_heads, groups, dtype in (
    (2, 6, 3, torch.float64),
    (3, 6, 2, torch.float32),
    (2, 4, 1, torch.float64),
    (1, 3, 3, torch.float64),
):
    shapes = (batch, num_heads, 4, 5), (batch, groups, 7, 5), (batch, groups, 7, 5)
    inputs = {
        name: t.requires_grad_()
        for name, t in zip("qkv", draw(*shapes, seed=51, dtype=dtype), strict=True)
    }
    before = [t.detach().clone() for t in inputs.values()]
    generator = torch.Generator().manual_seed(52)
    shown = torch.rand(batch, num_heads, 4, 7, generator=generator) < 0.7
    shown[..., 0] = True
    for mask in (None, shown, shown[:, :1]):
        heads, weights = grouped_attention(inputs["q"], inputs["k"], inputs["v"], mask)
        each = [
            scaled_dot_product_attention(
                inputs["q"][:, own],
                inputs["k"][:, own * groups // num_heads],
                inputs["v"][:, own * groups // num_heads],
                None if mask is None else mask[:, own % mask.shape[1]],
            )
            for own in range(num_heads)
        ]
        wanted, tables = (torch.stack(part, 1) for part in zip(*each, strict=True))
        claim = (
            "neighbouring query heads should share a key head"
            if mask is None
            else "under a mask, a key for which it is False should have no part in a head's result"
        )
        assert_close(heads, wanted, claim)
        claim = "each query head's weights should come from its own group's keys, under its mask"
        assert_close(weights, tables, claim)
    assert_dtype(heads, dtype, "the heads' results should have the dtype of q, k and v")
    assert_dtype(weights, dtype, "the weights should have the dtype of q, k and v")
    assert_gradients(
        (heads, weights),
        (wanted, tables),
        inputs,
        "the gradients of q, k and v should be those of the heads and of their weights",
    )
    assert all(torch.equal(t, b) for t, b in zip(inputs.values(), before, strict=True)), (
        "grouped_attention should leave its inputs unchanged"
    )
### END HIDDEN TESTS

# %% test="grouped-attention-pooled" points=1
matrix = torch.arange(16, dtype=torch.float64).reshape(4, 4)
pooled = pooled_heads(matrix, 4, 2)
assert_shape(pooled, (4, 2), "4 heads of width 1 in 2 groups: the pooled matrix should be (4, 2)")
assert_close(
    pooled[0], torch.tensor([0.5, 2.5]).double(), "columns 0 and 1, and 2 and 3, are pooled"
)
visible_passed()
### BEGIN HIDDEN TESTS


def pooled_one_by_one(matrix, num_heads, groups):
    """The same by a loop over the new heads."""
    blocks, each = matrix.chunk(num_heads, dim=1), num_heads // groups
    means = [torch.stack(blocks[g * each : (g + 1) * each]).mean(0) for g in range(groups)]
    return torch.cat(means, dim=1)


for d_model, num_heads, groups in ((12, 6, 3), (12, 6, 2), (8, 4, 1), (6, 3, 3), (12, 4, 2)):
    dtype = torch.float32 if groups == 1 else torch.float64
    assert_sound_function(
        pooled_heads,
        [draw((d_model, d_model), seed=53, dtype=dtype), num_heads, groups],
        like=pooled_one_by_one,
        claim="each new head should be the mean of the heads of its group",
        says="pooled_heads should leave the matrix unchanged, keep its dtype and let gradients back "
        "to it: those of the mean",
    )
### END HIDDEN TESTS

# %% [markdown]
# ## 4.8 What is not supported?   (2 points, about 20 minutes, difficulty 3 of 5)
#
# **Objective.** Read a table of weights and an ablation with care.
#
# Somebody has trained one layer of three heads to answer *who?*, *did what?* and *to whom?* The table has
# the heads' mean weights on each role in held-out sentences. Beside it stands what was right with this head switched off
# (0.97, 0.99 and 0.96 with all heads).
#
# | head | weight on who | did what | to whom | others | right without it: who | did what | to whom |
# | --- | --- | --- | --- | --- | --- | --- | --- |
# | 0 | 0.88 | 0.04 | 0.03 | 0.05 | 0.95 | 0.99 | 0.95 |
# | 1 | 0.07 | 0.71 | 0.12 | 0.10 | 0.93 | 0.31 | 0.94 |
# | 2 | 0.41 | 0.02 | 0.52 | 0.05 | 0.28 | 0.98 | 0.22 |
#
# The abstract says: (1) *Head 1 attends mostly to the verb, and without it the model does not know the verb.* (2) *Head 0 attends to
# the subject, and this is how the model knows who acts.* (3) *Head 2 serves two questions at once.* (4) *Removing heads 0 and 1 together
# would cost the verb and nothing else.* (5) *Three heads of a layer like this specialise as Who, Did what and To whom.*
#
# In four to seven sentences: (a) Which of the five are **not** supported? For each of them, say which number contradicts it or which
# experiment is missing. (b) What must be so in head 0's $A_h X W^{VO}_h$, if it looks at the subject and hardly matters? Give two possibilities that this
# table cannot tell apart, and an experiment that can.
#
# <details><summary>Hint 1: a question</summary>
#
# For each sentence: is it about weights, about one head off, about two, or about other models?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# (a) Three of them go beyond what was measured. (b) A large weight times something small; or something
# that comes by another way as well.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - Unsure about (4): think of your table in 4.4.
# - Unsure about (5): what happens to a sum if its terms change places, and how many models were trained?
#
# </details>

# %% [markdown] manual="head-tables" points=2
# ### BEGIN SOLUTION
# (a) Not supported are (2), (4) and (5). (2): without head 0 *who* is still right in 0.95 of the cases, against 0.97; without head 2
# it falls to 0.28. So the model knows who acts by head 2. (4) was not measured: heads off one by one do not tell what two cost, since one
# may stand in for the other. (5): there is no such split here (head 2 serves *who* and *to whom*, head 0 hardly anything), it is one trained model, and the order
# of heads means nothing, since a sum has none.
#
# (b) Either $W^{VO}_0$ maps the subject's vector to nearly nothing, or drops what tells one subject from another: the weight has no
# effect. Or head 0 carries the subject and the rest of the model has it from elsewhere, too (head 2): it is a spare. Switching heads 0 and 2 off together does not tell
# more than 2 alone if 0 is idle; to tell, look at the size of head 0's contribution, or keep head 0 and switch off the others, or exchange the subject in head 0's input alone and
# see whether its contribution changes.
#
# Marking: 1 point for (a), with reasons for at least two of the three; 1 point for (b), two possibilities and one experiment.
# ### END SOLUTION

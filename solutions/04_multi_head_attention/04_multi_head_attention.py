# %% [markdown]
# # 4 Multi-head attention
#
# In this notebook you build multi-head attention in PyTorch: several small attentions side by side,
# each with its own projections. Then you take it apart again, into a sum over heads, and count what
# it costs. What you write here carries over: the finished model uses your `MultiHeadAttention` in
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
import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from lab.battery import assert_sound
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
# ## 4.1 Multi-head attention   (9 points, about 45 minutes, difficulty 4 of 5)
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
# - `split`: $(B, n, D)$ to $(B, H, n, d_k)$. Head 0 gets the first $d_k$ columns of each token,
#   head 1 the next $d_k$, and so on. The number of tokens may be any, and the memory of `x` may be
#   laid out in any way.
# - `merge`: the way back, $(B, H, n, d_k)$ to $(B, n, D)$, heads **side by side**.
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
# `x.reshape(B, H, n, d_k)` has the right shape. Which token does its entry `[0, 0, 1]` come from,
# for $H = 2$? And for the mask: next to scores of shape $(B, H, n, m)$, which axis would a mask of
# shape $(B, n, m)$ line up with the heads?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Split in two steps: first cut the last axis in two, heads before columns; then let heads and
# tokens change places. Merge does the same two steps backwards. In `forward`, the mask lacks one
# axis, of length 1, just before its last two.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - *view size is not compatible*: after axes have changed places, a view may be impossible;
#   `reshape` copies where it must.
# - Shapes fit, numbers do not: axes were reshaped that should have been exchanged, in `split` or in
#   `merge`.
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
### END HIDDEN TESTS

# %% test="multi-head-split" points=1
layer = MultiHeadAttention(12, 3)
x = torch.arange(2 * 5 * 12, dtype=torch.float64).reshape(2, 5, 12)
heads = layer.split(x)
assert_shape(heads, (2, 3, 5, 4), "split should give (batch, heads, tokens, d_k)")
assert_close(heads[0, 0, 0], x[0, 0, :4], "head 0 should get the first 4 columns of token 0")
assert_close(heads[0, 0, 1], x[0, 1, :4], "head 0 should get the first 4 columns of token 1")
assert_close(heads[0, 2, 1], x[0, 1, 8:], "head 2 of 3 should get the last 4 columns of token 1")
visible_passed()
### BEGIN HIDDEN TESTS
for shape, num_heads in (((2, 3, 10), 5), ((3, 4, 8), 4), ((2, 7, 6), 1)):
    x = draw(shape, seed=1)
    before = x.clone()
    heads = MultiHeadAttention(shape[-1], num_heads).split(x)
    d_k = shape[-1] // num_heads
    assert_shape(heads, (shape[0], num_heads, shape[1], d_k), "split: (batch, heads, tokens, d_k)")
    for h in range(num_heads):
        assert_close(
            heads[:, h],
            x[:, :, h * d_k : (h + 1) * d_k],
            "each head should get its own d_k neighbouring columns of every token",
        )
    assert torch.equal(x, before), "split should leave x unchanged"
turned = draw((2, 12, 5), seed=2).transpose(1, 2)  # (2, 5, 12), not contiguous
heads = layer.split(turned)
assert_close(heads[:, 1], turned[:, :, 4:8], "split should work whatever the memory layout of x")
### END HIDDEN TESTS

# %% test="multi-head-merge" points=1
layer = MultiHeadAttention(12, 3)
heads = draw((2, 3, 5, 4), seed=3)
merged = layer.merge(heads)
assert_shape(merged, (2, 5, 12), "merge should give (batch, tokens, d_model)")
assert_close(merged[0, 1, :4], heads[0, 0, 1], "the first 4 columns of token 1 should be head 0's")
assert_close(merged[0, 1, 8:], heads[0, 2, 1], "the last 4 columns of token 1 should be head 2's")
visible_passed()
### BEGIN HIDDEN TESTS
for shape in ((2, 5, 3, 2), (3, 4, 4, 2), (2, 1, 7, 6)):
    heads = draw(shape, seed=4)
    merged = MultiHeadAttention(shape[1] * shape[3], shape[1]).merge(heads)
    wanted = torch.cat([heads[:, h] for h in range(shape[1])], dim=-1)
    assert_close(merged, wanted, "merge should put the heads side by side, head 0 first")
turned = draw((2, 5, 3, 4), seed=5).transpose(1, 2)  # (2, 3, 5, 4), not contiguous
wanted = torch.cat([turned[:, h] for h in range(3)], dim=-1)
assert_close(layer.merge(turned), wanted, "merge should work whatever the memory layout")
### END HIDDEN TESTS

# %% test="multi-head-self" points=3
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
# ## 4.2 A sum over heads   (4 points, about 25 minutes, difficulty 3 of 5)
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


# %% test="heads-as-sum-maps" points=2
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
# ## 4.3 What it costs   (3 points, about 15 minutes, difficulty 2 of 5)
#
# **Objective.** Count multiply-adds: an $(a, b)$ matrix times a $(b, c)$ matrix takes
# $a \cdot b \cdot c$ of them. Softmax, scaling and masks are left out; there is no batch.
#
# - `attention_cost` looks at one multi-head layer with $n$ queries and $m$ keys and values; each
#   head is $d_k = D / H$ wide. It returns three whole numbers: the cost of the four **projections**
#   (how many rows does each of them handle?), of all heads' **scores** $QK^\top$,
#   and of all heads' **mixing** of values.
# - `even_length` returns the number $N$ of tokens for which, in self-attention ($n = m = N$),
#   scores and mixing together cost exactly as much as the four projections.
#
# <details><summary>Hint 1: a question</summary>
#
# Which of the four projections handle the $n$ rows of the queries, which the $m$ rows of keys and
# values?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Count one head's scores with its $d_k$, then all heads'. What becomes of $H$? For the even length,
# write both costs with $N$ and $D$ and solve.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - Right for $n = m$ only: one of the projections counts the wrong rows.
# - The cost grows with the number of heads: each head is narrower, the more of them there are.
# - The even length is half of what it should be: scores **and** mixing, against **four**
#   projections.
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


def even_length(d_model: int) -> int:
    """Length at which scores and mixing cost as much as the projections, in self-attention."""
    ### BEGIN SOLUTION
    return 2 * d_model  # 2 N^2 D = 4 N D^2
    ### END SOLUTION


# %% test="attention-cost-values" points=2
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

# %% test="attention-cost-even-length" points=1
for d_model in (4, 512):
    length = even_length(d_model)
    mixing, projections = 2 * length * length * d_model, 4 * length * d_model * d_model
    assert type(length) is int, f"the even length is a whole number (int)\nYours is {length!r}."
    assert length > 0, "the even length should be positive"
    assert mixing == projections, (
        f"d_model = {d_model}: at the even length both sides should cost the same\n"
        f"At your {length} tokens: {mixing} and {projections}."
    )
visible_passed()
### BEGIN HIDDEN TESTS
for d_model in (7, 96, 1024):
    assert_whole(
        even_length(d_model), 2 * d_model, "the even length is where 2 N N D equals 4 N D D"
    )
### END HIDDEN TESTS

# %% [markdown]
# ## 4.4 Four descriptions, four layers   (2 points, about 15 minutes, difficulty 2 of 5)
#
# **Objective.** Tell apart layers that are easily taken for one, by counting what they learn. There
# are no biases, $d_k = D / H$ is a whole number, and all four take $(N, D)$ to $(N, D)$:
#
# - `"paper"`: every head has its own $W^Q$, $W^K$, $W^V$ from $D$ to
#   $d_k$. The heads stand side by side and go through $W^O$, $(D, D)$.
# - `"slices"`: the **input** is cut into $H$ slices of $d_k$ columns. Head $h$ sees its slice only,
#   and has its own three matrices $(d_k, d_k)$. Then as above.
# - `"shared"`: first one $W^Q$, $W^K$, $W^V$ from $D$ to $d_k$ for all
#   heads together; then every head has three matrices $(d_k, d_k)$ of its own behind them. Then as
#   above.
# - `"full"`: every head has $W^Q$, $W^K$ from $D$ to $d_k$ and **one** full value
#   map $(D, D)$. The heads' outputs are added; there is no $W^O$.
#
# Return a dictionary with these four keys and the number of learned numbers of each layer.
#
# <details><summary>Hint 1: a question</summary>
#
# How many matrices of which shape does each description name? Which of them exist once, which once
# per head?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# One line per layer: once-only matrices plus $H$ times the matrices of one head.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - `"paper"` changes with the number of heads: each head's matrices are $D$ by $d_k$.
# - `"full"` does not change with the number of heads: its value maps are not split.
#
# </details>


# %% solution="parameter-counts"
def parameter_counts(d_model: int, num_heads: int) -> dict[str, int]:
    """How many numbers four layers learn: keys "paper", "slices", "shared", "full"."""
    ### BEGIN SOLUTION
    d_k = d_model // num_heads
    output = d_model * d_model
    return {
        "paper": num_heads * 3 * d_model * d_k + output,
        "slices": num_heads * 3 * d_k * d_k + output,
        "shared": 3 * d_model * d_k + num_heads * 3 * d_k * d_k + output,
        "full": num_heads * (2 * d_model * d_k + d_model * d_model),
    }
    ### END SOLUTION


# %% test="parameter-counts-values" points=2
counts = parameter_counts(512, 8)
assert sorted(counts) == ["full", "paper", "shared", "slices"], (
    f"the keys should be paper, slices, shared and full\nYours are {sorted(counts)}."
)
for layer, wanted in {"paper": 1048576, "full": 2621440}.items():
    assert counts[layer] == wanted, (
        f"{layer!r} with d_model 512 and 8 heads should have {wanted} numbers to learn"
        f"\nYours is {counts[layer]}."
    )
assert all(type(count) is int for count in counts.values()), (
    f"numbers to learn are whole numbers (int), not floats\nYours are {counts}."
)
visible_passed()
### BEGIN HIDDEN TESTS
for d_model, num_heads in ((512, 8), (512, 1), (12, 3), (10, 5)):
    d_k = d_model // num_heads
    narrow, small, square = (d_model, d_k), (d_k, d_k), (d_model, d_model)
    counts = parameter_counts(d_model, num_heads)
    for layer, matrices, claim in (
        ("paper", [narrow] * 3 * num_heads + [square], "the count of 'paper' is wrong"),
        ("slices", [small] * 3 * num_heads + [square], "the count of 'slices' is wrong"),
        (
            "shared",
            [narrow] * 3 + [small] * 3 * num_heads + [square],
            "the count of 'shared' is wrong: some of its matrices exist once, some once per head",
        ),
        (
            "full",
            [narrow] * 2 * num_heads + [square] * num_heads,
            "the count of 'full' is wrong: it has no w_o, and its value maps are not split",
        ),
    ):
        wanted = sum(rows * columns for rows, columns in matrices)
        assert_whole(counts[layer], wanted, claim)
### END HIDDEN TESTS

# %% [markdown]
# ## 4.5 What does a head's table show?   (2 points, about 10 minutes, difficulty 3 of 5)
#
# **Objective.** Read a picture of attention weights with care.
#
# Somebody trains a model, finds that in head 3 the verb puts weight 0.9 on its subject, and writes:
# "Head 3 is the head that finds out *who*; the model uses it to know who acts." In four to seven
# sentences: (a) Why does a weight of 0.9 alone not show that the subject reaches the output? Use
# the sum of question 4.2. (b) Name one experiment that would tell. (c) They train again from other
# random numbers. Why should nobody expect that it is head 3 again?
#
# <details><summary>Hint 1: a question</summary>
#
# Which matrices stand behind the weights in a head's term of the sum?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# (a) A large weight times something small. (b) Change one thing, look at the answers. (c) What
# happens to a sum if its terms change places?
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - Unsure about (a): what would the output be if this head's rows of $W^O$ were all 0?
# - Unsure about (c): exchange two heads' columns in three matrices, and their rows in the fourth.
#
# </details>

# %% [markdown] manual="head-tables" points=2
# ### BEGIN SOLUTION
# (a) The head adds $A_h X W^{VO}_h$ to the output. The weight 0.9 is an entry
# of $A_h$ only. If $W^{VO}_h = W^V_h W^O_h$ maps the
# subject's vector to almost nothing, or drops what tells one subject from another, the weight has
# no effect. Other heads may carry the same information as well.
#
# (b) Switch the head off, for instance by setting its rows of $W^O$ to 0 (or replace its
# weights by even ones), and see whether answers about the subject get worse while others stay; or
# change the subject and see whether the head's contribution changes the answer.
#
# (c) The output is a sum over heads, and a sum does not care about order. Exchanging two heads'
# columns in $W^Q$, $W^K$, $W^V$ and their rows in $W^O$ gives
# the same function, so other random starting numbers may put the job into any head, or share it
# among several.
#
# Marking: 1 point for (a) with the value and output maps; 1 point for (b) and (c) together (half of
# each is enough for a sound experiment or for the symmetry alone).
# ### END SOLUTION

# %% [markdown]
# # 7 Decoder
#
# In this notebook you build the half of the Transformer that writes: its two masks, a decoder layer
# with its three sub-layers, the stack of layers, and the output layer that turns a vector into one
# number for each token of the vocabulary. You also write the test that finds a leak. What you write
# here carries over: the finished model is put together from your `DecoderLayer`, `Decoder` and
# `Generator`.
#
# **How to work.** Run the cells from top to bottom. Replace each `# YOUR CODE HERE` and its `raise` by
# your answer, then run the test cells below it; a message says what is wrong. The visible tests
# are not all tests: hidden ones, with other sizes and numbers, run when the notebook is graded.
# Each question is tested on its own, so you may leave one open and go on. Before you hand in,
# restart the kernel and run all cells.
#
# **Where to read.** The book's page *Decoder* explains all of it with NumPy on one sentence.
#
# **Conventions.** Rows are tokens, the batch comes first. The target (what is written) has $N$
# tokens, the source (what is read) has $M$; the two lengths differ. A mask is boolean, and **True
# means: may attend**. It broadcasts to (B, queries, keys).

# %% setup
import itertools
import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from lab import blocks
from lab.battery import assert_share, assert_sound, assert_sound_function, shaken
from lab.blocks import FeedForward, LayerNorm, MultiHeadAttention
from lab.check import (
    assert_close,
    assert_dtype,
    assert_raises,
    assert_shape,
    draw,
    parameters_of,
    unchanged,
    visible_passed,
)
from lab.predict import watched


def torch_twin(layer: Any, num_heads: int, norm_first: bool = False) -> nn.TransformerDecoderLayer:
    """PyTorch's own decoder layer with the numbers of yours: what the tests compare with."""
    d_ff, d_model = layer.feed_forward.inner.weight.shape
    twin: Any = nn.TransformerDecoderLayer(
        d_model, num_heads, d_ff, 0.0, batch_first=True, norm_first=norm_first, dtype=torch.float64
    )
    attentions = {"self_attention": twin.self_attn, "cross_attention": twin.multihead_attn}
    with torch.no_grad():
        for name, theirs in attentions.items():
            yours = getattr(layer, name)
            matrices = [yours.w_q.weight, yours.w_k.weight, yours.w_v.weight]
            theirs.in_proj_weight.copy_(torch.cat(matrices))
            theirs.out_proj.weight.copy_(yours.w_o.weight)
            theirs.in_proj_bias.zero_()
            theirs.out_proj.bias.zero_()
        twin.linear1.load_state_dict(layer.feed_forward.inner.state_dict())
        twin.linear2.load_state_dict(layer.feed_forward.outer.state_dict())
        for name in ("norm1", "norm2", "norm3"):
            getattr(twin, name).weight.copy_(getattr(layer, name).gain)
            getattr(twin, name).bias.copy_(getattr(layer, name).bias)
    return twin


# %% [markdown]
# ## 7.1 The decoder's two masks   (3 points, about 15 minutes, difficulty 2 of 5)
#
# **Objective.** Say which tokens the decoder may look at, in each of its two attentions.
#
# `decoder_masks` gets a batch of target ids $(B, N)$ and a batch of source ids $(B, M)$, both
# padded on the right, each with its own padding id. It returns two boolean masks:
#
# - `target_mask` $(B, N, N)$, for the attention of the target to itself: query $i$ may attend to
#   key $j$ when $j \le i$ **and** token $j$ is not padding.
# - `memory_mask` $(B, 1, M)$, for the attention of the target to the source: every query may attend
#   to every source token that is not padding. The axis of length 1 broadcasts over the queries.
#
# Nothing else is hidden: a query that is padding itself still gets its row. Write the function so
# that it uses no helper of `lab` and no other cell.
# (`causal_mask` and `padding_mask` of `lab.blocks` are not allowed here.)
#
# <details><summary>Hint 1: a question</summary>
#
# Two conditions on a pair (query, key): one depends on the positions only, the other on the key's
# id only. Which shapes do they have, and what combines "both must hold" elementwise?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# One triangle of True, for all sentences alike. One row of "is real" per sentence, with an axis of
# length 1 where the queries are. Broadcasting does the rest. The source needs the second kind only.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - *The size of tensor a must match the size of tensor b*: ids are (B, N), a mask needs an axis for
#   the queries too, in the right place.
# - A row is all False: is the diagonal in? Does padding hide rows in place of columns?
# - The target mask shows padding: were the two conditions joined by "or"?
# - Right when both languages have the same padding id, wrong otherwise: which id is compared with
#   which tensor?
# - The memory mask is a triangle: the whole source has been read before the first word is written.
#
# </details>


# %% solution="decoder-masks"
def decoder_masks(
    target: Int[Tensor, "B N"],
    source: Int[Tensor, "B M"],
    *,
    target_pad_id: int,
    source_pad_id: int,
) -> tuple[Bool[Tensor, "B N N"], Bool[Tensor, "B 1 M"]]:
    """Which tokens each target position may attend to (True = may attend).

    Source: Vaswani et al. (2017), section 3.2.3.

    Returns:
        target_mask: key at or before the query, and a real token.
        memory_mask: a real source token; the axis of length 1 stands for all queries.
    """
    ### BEGIN SOLUTION
    n = target.shape[1]
    not_later = torch.ones(n, n, dtype=torch.bool, device=target.device).tril()
    real = (target != target_pad_id).unsqueeze(1)  # (B, 1, N)
    return not_later & real, (source != source_pad_id).unsqueeze(1)
    ### END SOLUTION


# %% test="decoder-masks-target" points=2
target = torch.tensor([[1, 5, 7, 2, 0], [1, 6, 0, 0, 0]])
source = torch.tensor([[4, 8, 9, 2], [3, 2, 0, 0]])
target_mask, _ = decoder_masks(target, source, target_pad_id=0, source_pad_id=0)
assert_shape(target_mask, (2, 5, 5), "the target mask should be (batch, queries, keys)")
assert_dtype(target_mask, torch.bool, "the target mask should be boolean")
assert target_mask[:, 0, 0].all(), "the first target token may attend to itself"
assert not target_mask[0, 0, 1:].any(), "the first target token may not attend to later ones"
assert target_mask[0, 3].tolist() == [True] * 4 + [False], (
    "with four real tokens, the fourth may attend to all four and not to the padding"
)
assert not target_mask[1, :, 2:].any(), "no target token may attend to padding"
visible_passed()
### BEGIN HIDDEN TESTS
target = torch.tensor([[4, 7, 3, 9, 8, 3], [3, 5, 1, 1, 1, 1], [1, 3, 2, 8, 1, 1]])
source = torch.tensor([[5, 1, 9, 3], [7, 4, 2, 3], [8, 3, 3, 3]])
before = target.clone(), source.clone()
target_mask, _ = decoder_masks(target, source, target_pad_id=1, source_pad_id=3)
assert_shape(target_mask, (3, 6, 6), "three targets of six ids should give a mask (3, 6, 6)")
for b in range(3):
    for i in range(6):
        for j in range(6):
            may = j <= i and target[b, j].item() != 1
            assert target_mask[b, i, j].item() is may, (
                "with target_pad_id=1 and source_pad_id=3, query i may attend to target key j where "
                "j <= i and key j is not 1, and nowhere else"
            )
assert torch.equal(target, before[0]) and torch.equal(source, before[1]), (
    "decoder_masks should leave the ids unchanged"
)
### END HIDDEN TESTS

# %% test="decoder-masks-memory" points=1
target = torch.tensor([[1, 5, 7, 2, 0], [1, 6, 0, 0, 0]])
source = torch.tensor([[4, 8, 9, 2], [3, 2, 0, 0]])
_, memory_mask = decoder_masks(target, source, target_pad_id=0, source_pad_id=0)
assert_shape(memory_mask, (2, 1, 4), "the memory mask should be (batch, 1, source tokens)")
assert_dtype(memory_mask, torch.bool, "the memory mask should be boolean")
assert memory_mask[0, 0].all(), "every target token may attend to every real source token"
assert memory_mask[1, 0].tolist() == [True, True, False, False], (
    "source ids 3 2 0 0 with padding id 0: two tokens may be attended to, two not"
)
visible_passed()
### BEGIN HIDDEN TESTS
target = torch.tensor([[4, 7, 3, 9, 8], [3, 5, 1, 1, 1], [6, 3, 2, 8, 1]])
source = torch.tensor([[5, 1, 9, 1, 6, 3], [7, 4, 2, 3, 3, 3], [8, 3, 3, 3, 3, 3]])
_, memory_mask = decoder_masks(target, source, target_pad_id=1, source_pad_id=3)
wanted = [[[token != 3 for token in row]] for row in source.tolist()]
assert memory_mask.tolist() == wanted, (
    "with target_pad_id=1 and source_pad_id=3, exactly the source ids equal to 3 should be hidden"
)
### END HIDDEN TESTS

# %% [markdown]
# ## 7.2 A decoder layer   (6 points, about 35 minutes, difficulty 3 of 5)
#
# **Objective.** Put the parts together: three sub-layers, each with a residual connection, dropout
# and a layer norm of its own.
#
# 1. **Masked self-attention**: the target looks at itself, under `target_mask`.
# 2. **Cross-attention**: queries from the target as it now stands, keys and values from `memory`,
#    the encoder's output, under `memory_mask`.
# 3. **Feed-forward network**, for each position alone.
#
# With $\text{Sub}$ for a sub-layer, the two orders of norm and sum are
#
# $$\text{post-norm (the paper's):}\quad \text{LayerNorm}(x +
# \text{dropout}(\text{Sub}(x)))
# \qquad
# \text{pre-norm:}\quad x + \text{dropout}(\text{Sub}(\text{LayerNorm}(x)))$$
#
# and `norm_first=True` means pre-norm. There, only what comes from the target is normalised;
# `memory` comes in ready. `x` is $(B, N, d_\text{model})$, `memory` is $(B, M, d_\text{model})$, and
# the result has the shape of `x`.
#
# The parts are imported: `MultiHeadAttention(d_model, num_heads)`, called as
# `attention(query, key, value, mask)`, returns a **pair**, the output and the weights;
# `LayerNorm(d_model)`; `FeedForward(d_model, d_ff)`. The tests look for these attributes:
# `self_attention`, `cross_attention`, `feed_forward`, `norm1`, `norm2`, `norm3` (in the order of the
# sub-layers) and `dropout`, one `nn.Dropout` that serves all three and drops single numbers of what
# each returns, chosen anew for every token. Both masks may be None, and both go on to the attentions
# just as they come.
#
# The ready layers, `DecoderLayer` of `lab.blocks` and `nn.TransformerDecoderLayer`, are not allowed
# here.
#
# <details><summary>Hint 1: a question</summary>
#
# Which of the three sub-layers sees the source? Take its inputs apart: what of them comes from the
# target, what from the source, and which length does the result have?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Three times the same pattern: some input, a sub-layer, dropout, plus the sub-layer's input, and a
# norm before or after. Each time, the sum starts from what the sub-layer before has left, not from
# the layer's input.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - *must be Tensor, not tuple* or *unsupported operand ... 'tuple'*: an attention
#   returns two things.
# - *mask has shape ...; it must broadcast to*: the masks belong to different attentions.
# - The output has the length of the source: which of the two asks?
# - Post-norm right, pre-norm wrong: is the sum taken with the normalised input? Is `memory` left as
#   it is?
# - Right without dropout, wrong with it: it belongs to what a sub-layer returns, before the sum.
# - *a leaf Variable that requires grad is being used in an in-place operation*: make new tensors.
#
# </details>


# %% solution="decoder-layer" export
class DecoderLayer(nn.Module):
    """One layer of the decoder: masked self-attention, cross-attention, feed-forward.

    Args:
        d_model: width of the tokens, and of `memory`.
        num_heads: number of heads of either attention.
        d_ff: width inside the feed-forward network.
        dropout: probability of dropping an entry of what a sub-layer returns.
        norm_first: normalise before each sub-layer (pre-norm) in place of after the sum.

    Source: Vaswani et al. (2017), sections 3.1 and 5.4.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int,
        dropout: float = 0.1,
        norm_first: bool = False,
    ) -> None:
        super().__init__()
        ### BEGIN SOLUTION
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1 = LayerNorm(d_model)
        self.norm2 = LayerNorm(d_model)
        self.norm3 = LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)
        # departs: the paper normalises after each sum only; the other order is here as a choice,
        # because most later models use it. paper: test_decoder_layers_normalise_after_each_sum
        self.norm_first = norm_first
        ### END SOLUTION

    def forward(
        self,
        x: Float[Tensor, "B N d_model"],
        memory: Float[Tensor, "B M d_model"],
        target_mask: Bool[Tensor, "... #N N"] | None = None,  # True = may attend
        memory_mask: Bool[Tensor, "... #N M"] | None = None,  # True = may attend
    ) -> Float[Tensor, "B N d_model"]:
        """Return the target's tokens, informed by their past and by the whole source."""
        ### BEGIN SOLUTION
        if self.norm_first:
            own = self.norm1(x)
            x = x + self.dropout(self.self_attention(own, own, own, target_mask)[0])
            asked = self.norm2(x)
            x = x + self.dropout(self.cross_attention(asked, memory, memory, memory_mask)[0])
            return x + self.dropout(self.feed_forward(self.norm3(x)))
        x = self.norm1(x + self.dropout(self.self_attention(x, x, x, target_mask)[0]))
        x = self.norm2(x + self.dropout(self.cross_attention(x, memory, memory, memory_mask)[0]))
        return self.norm3(x + self.dropout(self.feed_forward(x)))
        ### END SOLUTION


# %% test="decoder-layer-parts" points=1
layer: Any = DecoderLayer(8, 2, 20, dropout=0.3)
for name in ("self_attention", "cross_attention", "feed_forward", "norm1", "norm2", "norm3"):
    assert isinstance(getattr(layer, name, None), nn.Module), (
        f"the layer should have a module named {name}"
    )
assert isinstance(getattr(layer, "dropout", None), nn.Dropout) and layer.dropout.p == 0.3, (
    "the layer should have an nn.Dropout named dropout, with the probability handed in"
)
assert layer.self_attention is not layer.cross_attention, (
    "self-attention and cross-attention should have weights of their own"
)
visible_passed()
### BEGIN HIDDEN TESTS
layer = DecoderLayer(12, 3, 20)
count = sum(parameter.numel() for parameter in layer.parameters())
assert count == 1736, (
    "a layer (12, 3 heads, 20) should have 1,736 numbers to learn: two attentions, one feed-forward "
    f"network, three norms\nYours has {count:,}."
)
norms = {id(norm) for norm in (layer.norm1, layer.norm2, layer.norm3)}
assert len(norms) == 3, "each of the three sub-layers should have a norm of its own"
assert_raises(
    ValueError,
    lambda: DecoderLayer(10, 4, 20),
    "d_model that is not divisible by num_heads should raise a ValueError",
)
### END HIDDEN TESTS

# %% test="decoder-layer-post-norm" points=2
layer = shaken(DecoderLayer(8, 2, 20, dropout=0.0))
assert_sound(
    layer,
    draw((3, 5, 8), (3, 7, 8)),
    like=torch_twin(layer, num_heads=2),
    claim="the layer should equal PyTorch's with the same weights",
)
visible_passed()
### BEGIN HIDDEN TESTS
layer = DecoderLayer(12, 3, 30, dropout=0.0)
x, memory = draw((6, 2, 12), (4, 2, 12), seed=2, dtype=torch.float32)
x, memory = x.transpose(0, 1), memory.transpose(0, 1)  # not contiguous
wanted = torch_twin(layer, num_heads=3)(x.double(), memory.double()).float()
assert_close(layer(x, memory), wanted, "the layer should hold in float32 and for transposed input")
### END HIDDEN TESTS

# %% test="decoder-layer-pre-norm" points=1
layer = shaken(DecoderLayer(8, 2, 20, dropout=0.0, norm_first=True), seed=2)
x, memory = draw((3, 5, 8), (3, 7, 8), seed=3)
wanted = torch_twin(layer, num_heads=2, norm_first=True)(x, memory)
with unchanged(layer, x, memory):
    out = layer(x, memory)
assert_close(
    out,
    wanted,
    "with norm_first=True the layer should equal PyTorch's pre-norm layer",
)
visible_passed()
### BEGIN HIDDEN TESTS
layer = shaken(DecoderLayer(12, 3, 30, 0.4, True), seed=3)
twin = torch_twin(layer, num_heads=3, norm_first=True)
own = torch.ones(6, 6, dtype=torch.bool).tril() & (torch.arange(6) < torch.tensor([[[6]], [[4]]]))
seen = torch.arange(4) <= torch.tensor([[[2]] * 6, [[0], [1], [2], [3], [3], [1]]])
assert_sound(
    layer,
    draw((2, 6, 12), (2, 4, 12), seed=4),
    {"target_mask": own, "memory_mask": seen},
    like=lambda x, memory, target_mask, memory_mask: twin(
        x, memory, *(~mask.repeat_interleave(3, 0) for mask in (target_mask, memory_mask))
    ),
    claim="under both masks, each sentence's and query's its own, a pre-norm layer should equal "
    "PyTorch's",
    rate=0.4,
)
### END HIDDEN TESTS

# %% test="decoder-layer-masks" points=1
layer = shaken(DecoderLayer(8, 2, 20, dropout=0.0), seed=4)
x, memory, junk = draw((5, 8), (7, 8), (3, 8), seed=5)
late = torch.cat([x[:4], junk[:1]])  # another last token
spoilt = torch.cat([memory[:4], junk])  # another end of the source
seen = torch.ones(3, 1, 7, dtype=torch.bool)
seen[2, :, 4:] = False
causal = torch.ones(5, 5, dtype=torch.bool).tril()
with unchanged(layer, seen, causal):
    out = layer(
        torch.stack([x, late, x]),
        torch.stack([memory, memory, spoilt]),
        target_mask=causal,
        memory_mask=seen,
    )
assert_close(
    out[1, :4],
    out[0, :4],
    "under a causal target mask, a later target token should not change the outputs before it",
)
assert not torch.allclose(out[:, 4], out[:, 3]), "outputs should depend on the target's tokens"
assert_close(
    out[2],
    layer(x[None], memory[None, :4], causal)[0],
    "source tokens that memory_mask hides should count as absent",
)
visible_passed()
### BEGIN HIDDEN TESTS
real = torch.tensor([[True] * 6, [True] * 4 + [False] * 2])  # target tokens
seen = torch.tensor([[True] * 3 + [False], [True] * 4])  # source tokens
target_mask = torch.ones(6, 6, dtype=torch.bool).tril() & real[:, None]
layer = shaken(DecoderLayer(12, 3, 30, 0.4), seed=5).eval()
twin = torch_twin(layer, num_heads=3)
x, memory = draw((2, 6, 12), (2, 4, 12), seed=7)
wanted = twin(x, memory, ~target_mask.repeat_interleave(3, 0), memory_key_padding_mask=~seen)
assert_close(
    layer(x, memory, target_mask, seen[:, None]),
    wanted,
    "with both masks, in evaluation too, the layer should equal PyTorch's: the target's mask is "
    "for the self-attention, the memory's for the cross-attention",
)
### END HIDDEN TESTS

# %% test="decoder-layer-dropout" points=1
x, memory = draw((3, 5, 8), (3, 7, 8), seed=10)
layer = shaken(DecoderLayer(8, 2, 20, dropout=1.0, norm_first=True), seed=6)
with unchanged(layer):
    output = layer(x, memory)
assert_close(output, x, "with dropout 1, a pre-norm layer in training should return its input")
layer = shaken(DecoderLayer(8, 2, 20, dropout=1.0), seed=6)
twin = torch_twin(layer, num_heads=2)
with unchanged(layer):
    output = layer(x, memory)
assert_close(
    output,
    twin.norm3(twin.norm2(twin.norm1(x))),
    "with dropout 1, a post-norm layer in training should just normalise its input three times",
)
assert_close(layer.eval()(x, memory), twin(x, memory), "in evaluation nothing should be dropped")
visible_passed()
### BEGIN HIDDEN TESTS
torch.manual_seed(0)
x, memory = draw((5, 8), (3, 8), seed=12)
keeps = torch.cartesian_prod(*[torch.tensor([0.0, 1.0], dtype=torch.float64)] * 8)  # of a row
kinds = itertools.product(range(3), (True, False))
for (part, norm_first), rate in zip(kinds, (0.5, 0.25, 0.25, 0.5, 0.5, 0.25), strict=True):
    layer = shaken(DecoderLayer(8, 2, 20, dropout=rate, norm_first=norm_first), seed=12)
    lasts = layer.self_attention.w_o, layer.cross_attention.w_o, layer.feed_forward.outer
    with torch.no_grad():  # one sub-layer at a time; the others return zeros
        for silent in (*lasts[:part], *lasts[part + 1 :]):
            for parameter in silent.parameters():
                parameter.zero_()
        given = layer(x.expand(40, 5, 8), memory.expand(40, 3, 8)).unsqueeze(2)
    twin = torch_twin(layer, num_heads=2)
    norms = [twin.norm1, twin.norm2, twin.norm3]
    start = x
    for norm in norms[: 0 if norm_first else part]:
        start = norm(start)
    read = norms[part](start) if norm_first else start
    if part == 2:
        returned = twin.linear2(twin.linear1(read).relu())
    elif part == 1:
        returned, _ = twin.multihead_attn(read, memory, memory)
    else:
        returned, _ = twin.self_attn(read, read, read)
    possible = start[:, None] + keeps / (1 - rate) * returned[:, None]  # (5, 256, 8)
    for norm in [] if norm_first else norms[part:]:
        possible = norm(possible)
    off, which = (given - possible).abs().amax(-1).min(-1)
    assert_close(
        off,
        0,
        "in training, each number that a sub-layer returns should be dropped or divided by 1 - "
        "dropout, then added; what goes into a sub-layer, memory too, should stay",
        atol=1e-5,
    )
    dropped = keeps[which] == 0  # (40, 5, 8)
    assert_share(
        dropped,
        rate,
        "dropout is the share that is dropped of what each of the three sub-layers returns",
    )
    assert all((dropped.any(axis) & ~dropped.all(axis)).any() for axis in (0, 1)), (
        "dropout should drop single numbers, not the same ones of every token or sentence"
    )
### END HIDDEN TESTS

# %% [markdown]
# ## 7.3 The stack   (2 points, about 15 minutes, difficulty 2 of 5)
#
# **Objective.** Put layers on top of each other, all reading the same encoder output.
#
# `Decoder(make_layer, num_layers, norm=None)` calls the function `make_layer` once for every layer,
# so that each has weights of its own, and keeps the layers as `layers`. In `forward` the target
# runs through them in order; each gets the same `memory` and the same two masks. Call a layer as
# `layer(x, memory, target_mask, memory_mask)`. If a module `norm` was handed in (a stack of
# pre-norm layers needs one at its end), it is applied once, to what leaves the last layer.
#
# The tests use small layers of their own, not your `DecoderLayer`.
#
# The ready stacks, `Decoder` and `Encoder` of `lab.blocks` and `nn.TransformerDecoder`, are not allowed here.
#
# <details><summary>Hint 1: a question</summary>
#
# A function that makes layers is handed in, and not a layer. Why?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# A container that PyTorch knows about, so that the layers' parameters are found; one loop over it;
# one step after the loop, if there is a norm.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - No parameters are found: a plain Python list hides the layers from PyTorch.
# - All layers learn the same: how often was `make_layer` called?
# - Two layers wrong although one is right: does the second get the first one's output as `x`, and
#   still the encoder's output as `memory`?
#
# </details>


# %% solution="decoder" export
class Decoder(nn.Module):
    """A stack of decoder layers, all of which attend to the same memory.

    Args:
        make_layer: called once for every layer.
        num_layers: how many.
        norm: applied after the last layer; None for post-norm layers.

    Source: Vaswani et al. (2017), section 3.1.
    """

    def __init__(
        self, make_layer: Callable[[], nn.Module], num_layers: int, norm: nn.Module | None = None
    ) -> None:
        super().__init__()
        ### BEGIN SOLUTION
        self.layers = nn.ModuleList(make_layer() for _ in range(num_layers))
        self.norm = norm
        ### END SOLUTION

    def forward(
        self,
        x: Float[Tensor, "B N d_model"],
        memory: Float[Tensor, "B M d_model"],
        target_mask: Bool[Tensor, "... #N N"] | None = None,  # True = may attend
        memory_mask: Bool[Tensor, "... #N M"] | None = None,  # True = may attend
    ) -> Float[Tensor, "B N d_model"]:
        """Pass the target through all layers, then through the norm, if there is one."""
        ### BEGIN SOLUTION
        for layer in self.layers:
            x = layer(x, memory, target_mask, memory_mask)
        return x if self.norm is None else self.norm(x)
        ### END SOLUTION


# %% test="decoder-layers" points=1
made = []


def make_small() -> nn.Module:
    made.append(nn.Linear(4, 4))
    return made[-1]


stack: Any = Decoder(make_small, 3)
assert len(made) == 3, f"make_layer should be called once a layer: 3 times, not {len(made)}"
count = sum(parameter.numel() for parameter in stack.parameters())
assert count == 3 * 20, (
    "the stack should own the parameters of all its layers (3 times 20 here), each layer its own"
    f"\nYours has {count}."
)
visible_passed()
### BEGIN HIDDEN TESTS
made.clear()
stack = Decoder(make_small, 2, LayerNorm(4))
assert [id(layer) for layer in stack.layers] == [id(layer) for layer in made], (
    "layers should hold what make_layer returned, in order"
)
assert not torch.equal(stack.layers[0].weight, stack.layers[1].weight), (
    "the layers should start with different weights"
)
count = sum(parameter.numel() for parameter in stack.parameters())
assert count == 2 * 20 + 8, (
    "the stack should own the parameters of the norm handed in, once, besides its layers'"
    f"\nTwo layers of 20 and a norm of 8 make 48, yours has {count}."
)
### END HIDDEN TESTS

# %% test="decoder-forward" points=1


class SmallLayer(nn.Module):
    """Mixes x with the mean of the memory, as far as the masks let it see."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(0.5 * torch.randn(4, 4, dtype=torch.float64))

    def forward(self, x: Tensor, memory: Tensor, target_mask: Any = None, memory_mask: Any = None):
        if target_mask is not None:
            x = target_mask.to(x.dtype) @ x
        if memory_mask is not None:
            memory = memory_mask.transpose(1, 2) * memory
        return torch.tanh(x @ self.weight + memory.mean(1, keepdim=True))


def one_by_one(stack: Any) -> Callable[..., Any]:
    """What the stack should do, on its own layers."""
    layers = list(stack.layers)
    assert all(isinstance(layer, SmallLayer) for layer in layers), (
        "layers should hold what make_layer returned"
    )

    def run(x: Tensor, *others: Any) -> Tensor:
        for layer in layers:
            x = layer(x, *others)
        return x

    return run


torch.manual_seed(0)
stack = Decoder(SmallLayer, 2)
x, memory = draw((2, 5, 4), (2, 7, 4))
assert_close(
    stack(x, memory),
    one_by_one(stack)(x, memory),
    "each layer should get the output of the one before, and the same memory as all others",
)
visible_passed()
### BEGIN HIDDEN TESTS
norm = LayerNorm(4).double()
stack = Decoder(SmallLayer, 3, norm)
shaken(norm, seed=1)  # after it was handed in: a copy of it has other numbers now
right = one_by_one(stack)
seen = torch.arange(7) < torch.tensor([3, 7])[:, None]
assert_sound(
    stack,
    (x, memory, torch.ones(5, 5, dtype=torch.bool).tril(), seen[:, None]),
    like=lambda *inputs: norm(right(*inputs)),
    claim="every layer should get the memory and both masks, the target's first, and the very norm "
    "that was handed in should come once, after the last layer",
)
### END HIDDEN TESTS

# %% [markdown]
# ## 7.4 A layer that learns, and is wrong   (3 points, about 20 minutes, difficulty 3 of 5)
#
# **Objective.** Find mistakes that a falling loss does not show.
#
# A friend's decoder layer, post-norm and without dropout, is in the next cell. `parts` holds its parts as functions: `"self_attention"` and `"cross_attention"`, called
# as `f(query, key, value, mask)`, which return the output alone; `"feed_forward"`; and `"norm1"`, `"norm2"`, `"norm3"`. The model trains, and its loss is
# even lower than expected. But:
#
# - `"future"`: an early output changes when a later token of the target changes;
# - `"padding"`: outputs change when what stands in the source's padding changes;
# - `"forgets"`: if the cross-attention returns zeros, all tokens come out the same;
# - `"idle"`: one norm's gain never gets a gradient.
#
# Say which line is behind each symptom. Then write the layer as it should be: it leaves what it is handed as it is, gives float32 for float32, and
# gradients flow back to `x` and to `memory`.
#
# <details><summary>Hint 1: a question</summary>
#
# Which rows and columns does each mask have, and which of the two attentions needs which?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Write the three sub-layers as three lines, each `norm(x + sublayer)`, and lay the friend's code beside them.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - Values differ at one place only: every sub-layer has its own norm.
# - Right without masks, wrong with them: the one is for the target's tokens, the other for the source's.
#
# </details>


# %%
def friends_layer(x, memory, target_mask, memory_mask, parts):
    y = parts["self_attention"](x, x, x, target_mask.transpose(-2, -1))  # line 1
    x = parts["norm1"](x + y)  # line 2
    y = parts["cross_attention"](x, memory, memory, None)  # line 3
    x = parts["norm2"](y)  # line 4
    y = parts["feed_forward"](x)  # line 5
    return parts["norm2"](x + y)  # line 6


# %% solution="layer-causes"
def layer_causes() -> dict[str, int]:
    """By symptom ("future", "padding", "forgets", "idle"), the line that is behind it."""
    ### BEGIN SOLUTION
    return {"future": 1, "padding": 3, "forgets": 4, "idle": 6}
    ### END SOLUTION


# %% test="layer-causes-lines" points=1
causes = layer_causes()
assert isinstance(causes, dict), "layer_causes should return a dict, from symptoms to lines"
assert sorted(causes) == ["forgets", "future", "idle", "padding"], (
    "the four symptoms are 'future', 'padding', 'forgets' and 'idle'"
)
assert all(type(line) is int and 1 <= line <= 6 for line in causes.values()), (
    f"lines have the numbers 1 to 6, whole numbers (int)\nYours are {list(causes.values())}."
)
visible_passed()
### BEGIN HIDDEN TESTS
assert causes["future"] == 1, "the line behind 'future' is another one"
assert causes["padding"] == 3, "the line behind 'padding' is another one"
assert causes["forgets"] == 4, "the line behind 'forgets' is another one"
assert causes["idle"] == 6, "the line behind 'idle' is another one"
### END HIDDEN TESTS


# %% solution="layer-mended"
def layer_mended(
    x: Float[Tensor, "B N D"],
    memory: Float[Tensor, "B M D"],
    target_mask: Bool[Tensor, "... #N N"],
    memory_mask: Bool[Tensor, "... #N M"],
    parts: dict[str, Callable[..., Tensor]],
) -> Float[Tensor, "B N D"]:
    """The decoder layer as it should be, post-norm."""
    ### BEGIN SOLUTION
    x = parts["norm1"](x + parts["self_attention"](x, x, x, target_mask))
    x = parts["norm2"](x + parts["cross_attention"](x, memory, memory, memory_mask))
    return parts["norm3"](x + parts["feed_forward"](x))
    ### END SOLUTION


# %% test="layer-mended-values" points=2
def made_parts(width: int, seed: int) -> tuple[nn.ModuleDict, dict[str, Callable[..., Tensor]]]:
    """Modules with drawn numbers, and the functions that a layer is made of."""
    names = ("self_attention", "cross_attention", "feed_forward", "norm1", "norm2", "norm3")
    modules = [MultiHeadAttention(width, 2), MultiHeadAttention(width, 2)]
    modules += [FeedForward(width, 7), LayerNorm(width), LayerNorm(width), LayerNorm(width)]
    held = shaken(nn.ModuleDict(dict(zip(names, modules, strict=True))), seed)
    held.requires_grad_(False)
    parts: dict[str, Callable[..., Tensor]] = {name: held[name] for name in names[2:]}
    for name in names[:2]:
        parts[name] = lambda query, key, value, mask, attend=held[name]: attend(
            query, key, value, mask
        )[0]
    return held, parts


def as_it_should_be(x: Tensor, memory: Tensor, seen: Tensor, shown: Tensor, held: Any) -> Tensor:
    """The same by another road: one sub-layer's sum after the other."""
    total = x + held["self_attention"](x, x, x, seen)[0]
    x = held["norm1"](total)
    total = x + held["cross_attention"](x, memory, memory, shown)[0]
    x = held["norm2"](total)
    return held["norm3"](x + held["feed_forward"](x))


held, parts = made_parts(4, seed=1)
held.float()
x, memory = draw((2, 5, 4), (2, 7, 4), seed=40, dtype=torch.float32)
seen = torch.ones(5, 5, dtype=torch.bool).tril()
shown = (torch.arange(7) < torch.tensor([[4], [7]]))[:, None]
assert_sound_function(
    layer_mended,
    [x, memory, seen, shown, parts],
    like=lambda x, memory, seen, shown, _: as_it_should_be(x, memory, seen, shown, held),
    claim="the output should be that of three sub-layers, each with sum and norm of its own",
    says="the layer should leave all that it is handed as it is, give float32 for float32, and let "
    "gradients back to x and to memory",
)
visible_passed()
### BEGIN HIDDEN TESTS
held, parts = made_parts(6, seed=2)
x, memory = draw((3, 4, 6), (3, 2, 6), seed=41)
seen = torch.ones(4, 4, dtype=torch.bool).tril()
shown = (torch.arange(2) < torch.tensor([[1], [2], [1]]))[:, None]
before = x.clone()
assert_close(
    layer_mended(x, memory, seen, shown, parts),
    as_it_should_be(x, memory, seen, shown, held),
    "with other sizes and masks, the output should be the right layer's too",
)
assert torch.equal(x, before), "layer_mended should leave x unchanged"
### END HIDDEN TESTS

# %% [markdown]
# ## 7.5 From vectors to words   (4 points, about 20 minutes, difficulty 2 of 5)
#
# **Objective.** Turn each output vector into one score for each token of the vocabulary, and let
# the output layer share its matrix with an embedding.
#
# `Generator(d_model, vocab_size)` has one parameter, `weight`, of shape
# (vocab_size, $d_\text{model}$): one row for each token, and no bias. Its entries start random, with
# mean 0 and a standard deviation of about $1/\sqrt{d_\text{model}}$ (half of that is fine too).
#
# - `forward(x)` returns the **logits**, $(B, N, \text{vocab\_size})$: the dot product of each
#   vector of `x` with each row of `weight`. No softmax: the loss takes logits.
# - `tie(weight)` makes a `Parameter` that comes from elsewhere, such as an embedding's `weight`,
#   the generator's own: not its numbers, but the very object, so that both learn as one. A weight
#   of another shape raises a `ValueError` that names both shapes, and the generator keeps its own.
#
# An embedding that is shared in this way is multiplied by $\sqrt{d_\text{model}}$ where ids are looked
# up. The generator does not repeat that factor.
#
# `lab.blocks.Generator` is not allowed here: write your own.
#
# <details><summary>Hint 1: a question</summary>
#
# After `a = b`, how many objects are there? After `a = b.clone()`? After `a = nn.Parameter(b)`?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# `forward` is one product, with `weight` turned round. `tie` compares shapes, then gives the
# attribute a new value: a module accepts a Parameter there and forgets its old one.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - Logits sum to 1: they are probabilities already.
# - Logits too large by one constant factor: the embedding's scale got in.
# - Equal numbers after `tie`, and yet not the same `Parameter`: the numbers were copied, or wrapped
#   in a new Parameter.
# - Two parameters where one is expected: see above.
#
# </details>


# %% solution="generator" export
class Generator(nn.Module):
    """The output layer: logits over the vocabulary, without a bias.

    Args:
        d_model: width of the tokens.
        vocab_size: number of tokens in the target's vocabulary.

    Source: Vaswani et al. (2017), section 3.4; tied as there.
    """

    def __init__(self, d_model: int, vocab_size: int) -> None:
        """Make `weight` (vocab_size, d_model)."""
        super().__init__()
        ### BEGIN SOLUTION
        self.weight = nn.Parameter(torch.randn(vocab_size, d_model) / math.sqrt(d_model))
        ### END SOLUTION

    def forward(self, x: Float[Tensor, "B N d_model"]) -> Float[Tensor, "B N vocab_size"]:
        """Return the logits."""
        ### BEGIN SOLUTION
        return x @ self.weight.T
        ### END SOLUTION

    def tie(self, weight: nn.Parameter) -> None:
        """Use this very Parameter from now on.

        Raises:
            ValueError: if its shape is not (vocab_size, d_model).
        """
        ### BEGIN SOLUTION
        if weight.shape != self.weight.shape:
            raise ValueError(
                f"weight has shape {tuple(weight.shape)}; it must have the generator's, "
                f"(vocab_size, d_model) = {tuple(self.weight.shape)}"
            )
        self.weight = weight
        ### END SOLUTION


# %% test="generator-logits" points=2
generator: Any = Generator(6, 11)
names = [name for name, _ in parameters_of(generator)]
assert names == ["weight"], f"the generator has one parameter, weight, and no bias; yours: {names}"
assert_shape(generator.weight, (11, 6), "weight has one row for each token: (vocab_size, d_model)")
assert_sound(
    generator.double(),
    (draw((2, 5, 6)),),
    like=lambda x: F.linear(x, generator.weight),
    claim="the logit of token 7 should be the dot product of x with row 7 of weight, and so for "
    "all: (batch, tokens, vocab_size)",
)
visible_passed()
### BEGIN HIDDEN TESTS
torch.manual_seed(0)
narrow, wide = Generator(16, 500), Generator(256, 100)
for width, weight in ((16, narrow.weight), (256, wide.weight)):
    about, spread = width**-0.5, weight.std().item()
    assert 0.3 * about < spread < 1.3 * about, (
        "weight should start with a standard deviation of about 1 / sqrt(d_model), whatever the "
        f"width\nWith {width}, {about:.4f} is expected; yours starts with {spread:.4f}."
    )
    assert abs(weight.mean().item()) < 0.1 * about, (
        "weight should start with as many negative numbers as positive ones: mean 0"
    )
x = draw((256, 3, 2), seed=2).transpose(0, 2)  # (2, 3, 256), not contiguous
assert_close(
    wide.double()(x),
    F.linear(x, wide.weight),
    "logits should be x times the transposed weight, with other sizes and a transposed input too",
)
### END HIDDEN TESTS

# %% test="generator-tie" points=2
torch.manual_seed(0)
embedding, generator = nn.Embedding(9, 4), Generator(4, 9)
trained = embedding.weight.detach().clone()
generator.tie(embedding.weight)
assert generator.weight is embedding.weight, (
    "after tie, the generator's weight should be the same Parameter as the embedding's"
)
count = sum(p.numel() for p in nn.ModuleList([embedding, generator]).parameters())
assert count == 36, f"an embedding and a generator that share 9 x 4 numbers have 36\nYours: {count}"
visible_passed()
### BEGIN HIDDEN TESTS
assert torch.equal(embedding.weight, trained), (
    "tie should leave the numbers of the weight as they are: the embedding may have learned already"
)
x = draw((2, 3, 4), dtype=torch.float32)
with torch.no_grad():
    nn.init.xavier_uniform_(embedding.weight)
ids = torch.tensor([[1, 2, 3], [1, 0, 5]])
inside = (embedding(ids) + x).detach()
wanted = F.linear(inside, embedding.weight).detach()
scores = generator(inside)
assert_close(
    scores,
    wanted,
    "after tie, logits should follow when the embedding's numbers are set anew",
)
parameters = nn.ModuleList([embedding, generator])
optimiser = torch.optim.SGD(parameters.parameters(), lr=0.1)
F.cross_entropy(scores.flatten(0, 1), ids.flatten()).backward()
gradient = embedding.weight.grad
assert gradient is not None and gradient[8].any(), (
    "after tie, the gradient of the logits should reach the embedding, in rows of tokens that were "
    "not looked up too"
)
optimiser.step()
assert torch.equal(embedding.weight, generator.weight), (
    "after tie, one step of the optimiser should leave embedding and generator equal"
)
other: Any = Generator(4, 9)
assert other.weight is not generator.weight, (
    "generators that were not tied have weights of their own"
)
for shape in ((4, 9), (9, 5), (8, 4), (1, 1), (9,), (9, 4, 2)):
    assert_raises(
        ValueError,
        lambda shape=shape: other.tie(nn.Parameter(torch.zeros(shape))),
        "tie should raise a ValueError that names both shapes when they differ",
        mentions=[*map(str, shape), "9", "4"],
    )
assert_shape(other.weight, (9, 4), "after tie has refused a weight, the generator keeps its own")
### END HIDDEN TESTS

# %% [markdown]
# ## 7.6 The test that finds a leak   (3 points, about 15 minutes, difficulty 3 of 5)
#
# **Objective.** Measure whether a model keeps its old outputs when a token is added.
#
# A decoder is *incremental* if its output for the first $n$ tokens does not depend on what follows.
# Write $f$ for any function from $(B, N, D)$ to $(B, N, D)$. For every shorter length
# $n = 1, \dots, N - 1$ compare $f$ of the first $n$ tokens alone with the first $n$ rows of
# $f(x)$. Return the largest absolute difference over all lengths, sentences, rows and
# components, as a number:
#
# $$\max_{1 \le n < N} \; \max \, \bigl| f(x_{:, :n}) - f(x)_{:, :n} \bigr|$$
#
# It is 0 (up to rounding) if nothing leaks. `x` has at least two tokens; leave it as it is.
#
# <details><summary>Hint 1: a question</summary>
#
# Which of the axes of `x` does a prefix shorten? And why is one length not enough?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Run $f$ on everything once. Then, for each shorter length, run it on the prefix, subtract the
# matching rows, and keep the largest size seen so far.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - A leaky function gets 0: only one length is tried, or differences with different signs are
#   mixed before their size is taken.
# - A function that does not leak gets a large number: rows of different positions are compared.
# - *The size of tensor a must match*: the two have different numbers of rows, or of sentences.
#
# </details>


# %% solution="incremental-error"
def incremental_error(f: Callable[[Tensor], Tensor], x: Float[Tensor, "B N D"]) -> float:
    """Largest change of an output when later tokens are taken away; 0 if nothing leaks."""
    ### BEGIN SOLUTION
    whole = f(x)  # (B, N, D)
    lengths = range(1, x.shape[1])
    return max((f(x[:, :n]) - whole[:, :n]).abs().max().item() for n in lengths)
    ### END SOLUTION


# %% test="incremental-error-values" points=1


def mean_so_far(x: Tensor) -> Tensor:
    """Each row: the mean of the tokens up to and including it; nothing leaks."""
    counts = torch.arange(1, x.shape[1] + 1, dtype=x.dtype)
    return x.cumsum(1) / counts[:, None]


def mean_of_all(x: Tensor) -> Tensor:
    """Every row: the mean of the whole sentence; the future leaks."""
    return x.mean(1, keepdim=True).expand(x.shape)


x = torch.tensor([[[1.0], [2.0], [6.0]]], dtype=torch.float64)
error = float(incremental_error(mean_so_far, x))
assert_close(error, 0.0, "a running mean does not leak: its error should be 0")
error = float(incremental_error(mean_of_all, x))
assert_close(error, 2.0, "the mean of 1, 2, 6 is 3, that of the first token 1: the error is 2")
x = torch.tensor([[[3.0], [1.0], [5.0]]], dtype=torch.float64)
error = float(incremental_error(mean_of_all, x))
assert_close(error, 1.0, "the mean of 3, 1, 5 is 3, that of the first two 2: the error is 1")
visible_passed()
### BEGIN HIDDEN TESTS
x = draw((3, 4, 2))
before = x.clone()
error = float(incremental_error(mean_of_all, x))
wanted = max((x[:, :n].mean(1) - x.mean(1)).abs().max().item() for n in range(1, 4))
assert_close(error, wanted, "the error should be the largest over all lengths and sentences")
assert torch.equal(x, before), "incremental_error should leave x as it was"
falling = torch.tensor([[[6.0], [2.0]], [[-1.0], [0.0]]], dtype=torch.float64)
for tokens in (falling, -falling):
    error = float(incremental_error(mean_of_all, tokens))
    assert_close(error, 2.0, "a change downwards should count as much as one upwards")
assert_close(
    float(incremental_error(lambda x: x - x.mean(0, keepdim=True), x)),
    0.0,
    "f should be given all sentences at once: what it takes from other sentences is no leak",
)
### END HIDDEN TESTS

# %% test="incremental-error-leaks" points=2
q, k, v = draw((4, 4), (4, 4), (4, 4), seed=1)


def attend(x: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(x @ q, x @ k, x @ v, is_causal=True)


def zeroed_too_late(x: Tensor) -> Tensor:
    """Attention whose weights are set to 0 after the softmax."""
    weights = torch.softmax((x @ q) @ (x @ k).transpose(1, 2) / 2, -1)
    return weights.tril() @ (x @ v)


x = draw((2, 3, 4), seed=2)
error = float(incremental_error(attend, x))
assert_close(error, 0.0, "causal attention does not leak: its error should be 0")
error = float(incremental_error(zeroed_too_late, x))
assert error > 0.01, "weights set to 0 after the softmax leak: the error should not be 0"
visible_passed()
### BEGIN HIDDEN TESTS


def peek(row: int) -> Callable[[Tensor], Tensor]:
    """A function of which one row sees one token ahead, if there is one."""

    def f(x: Tensor) -> Tensor:
        ahead = torch.zeros_like(x)
        ahead[:, row : row + 1] = x[:, row + 1 : row + 2] if row + 1 < x.shape[1] else 0
        return x + ahead

    return f


x = draw((2, 6, 3), seed=3)
for row in range(5):
    wanted = x[:, row + 1].abs().max().item()
    assert_close(
        float(incremental_error(peek(row), x)),
        wanted,
        f"where row {row} of 6 sees one token ahead, the error should be the largest "
        "entry of the token that it sees",
    )


def second_shows_last(x: Tensor) -> Tensor:
    """The tokens, but for the second row, which shows the last of them."""
    shown = x.clone()
    shown[:, 1:2] = x[:, -1:]
    return shown


back = torch.tensor([[[2.0], [1.0], [5.0], [1.0]]], dtype=torch.float64)
assert_close(
    float(incremental_error(second_shows_last, back)),
    4.0,
    "where the second row shows the last token, 2 1 5 1 differ at that row for length 3 only: all rows "
    "count",
)
quiet = torch.zeros(3, 4, 2, dtype=torch.float64)
quiet[2, 3, 1] = -5.0
assert_close(
    float(incremental_error(mean_of_all, quiet)),
    1.25,
    "a leak in one sentence of a batch, in one component, should be found",
)
### END HIDDEN TESTS

# %% [markdown]
# **Your decoder's map.** The next cell trains one of your layers in your stack for a few seconds: it reads six digits
# and writes them backwards. Then it shows where one head of the cross-attention looks while it writes 5 4 3 2 1 0. Rows are the decoder's **inputs**, columns the
# source. Before you run it: at which digit will the row of the input 5 look? (Not graded, but the next question is about it.)

# %%
if watched():  # not while the notebook is graded
    from lab import plots
    from lab.own import reversing_map

    torch.manual_seed(0)
    mine = Decoder(lambda: DecoderLayer(32, 2, 64, dropout=0.0), 1)
    share_right, head_maps = reversing_map(mine)
    print(f"right digits at the end: {share_right:.2f}")
    plots.use()
    inputs = ["<bos>", "5", "4", "3", "2", "1"]
    plots.heatmap(head_maps[0], inputs, list("012345"), "Head 0", xlabel="source", ylabel="input")

# %% [markdown]
# ## 7.7 Reading a map of cross-attention   (2 points, about 10 minutes, difficulty 3 of 5)
#
# **Objective.** Say what the axes of an attention map are, and what may be hidden in it.
#
# A colleague sends you the weights of one cross-attention head as an array of shape (5, 4) without
# any labels. The sentence pair was *I live in Paris* and *Je vis à Paris*, with a start token in
# front of the decoder's input. In four to seven sentences: (a) Which axis is the target? Give one
# reason from the shape, and one check that would also work if both sentences had five tokens.
# (b) The row of the decoder's input "Je" has most of its weight on "live". Is "Je" a translation of
# "live", then? What is this row about to predict? (c) The colleague suggests hiding the part
# of this map above the diagonal, "as in the rest of the decoder". What would that do to the first
# word that is written?
#
# <details><summary>Hint 1: a question</summary>
#
# Which tokens ask, and which are asked? What do the weights of one query sum to?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# For (b), write the decoder's input and, shifted by one, what each row has to predict. For (c),
# count how many source tokens the first row would still see.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - Unsure about (a): make a random map of two different lengths, and look at the sums of its rows
#   and of its columns.
# - Unsure about (c): think of a language that puts the verb last, and of a translation that starts
#   with it.
#
# </details>

# %% [markdown] manual="attention-map" points=2
# ### BEGIN SOLUTION
# (a) The first axis, of length 5, is the target: the decoder's input has 5 tokens (the start token
# and four words), the source has 4. With equal lengths the sums still tell: each query shares out
# a weight of 1 over the keys, and the queries come from the target. So each target token's line of
# weights sums to 1, here each row; the columns, one for each source token, do not in general.
#
# (b) No. The row belongs to the input "Je", and what it predicts is the next token, "vis", for which
# "live" is the right place to look. Inputs and predictions are shifted by one.
#
# (c) Row 0 would see the first source token only, row 1 the first two, and so on. The first word would
# have to be written knowing just "I". The source is known in full before writing starts, so nothing
# in it is "the future": only padding is hidden in cross-attention.
#
# Marking: 1 point for (a) with both reasons; 1 point for (b) and (c) together (half of each if one
# is missing or lacks its reason).
# ### END SOLUTION

# %% [markdown]
# ## 7.8 Bonus: many sentences in one row   (3 points, about 30 minutes, difficulty 5 of 5)
#
# **Objective.** Train without padding: let several sentence pairs share one row, and none of them see another. (A bonus: nothing in the
# model needs it.)
#
# Short sentences leave much padding in a batch. So large models are trained on *packed* rows: sentences one after the other until a row is full. Here every
# row of the target holds several sentences, and the same row of the source their originals, maybe in another order. Two tensors say who is who: `target_pairs` $(B, N)$ and `source_pairs` $(B, M)$ hold for each token the **number of its pair**, and −1 for padding.
# In a row, a pair's tokens stand side by side; its numbers are 0 or more, in any order, and mean nothing beyond their row.
#
# - `packed_masks` returns `target_mask` $(B, N, N)$ and `memory_mask` $(B, N, M)$, boolean. With them, every real token of the decoder comes out **as if its pair were alone**. Padding is seen by nobody and sees nothing.
# - `places_within(pairs)` returns whole numbers of the shape of `pairs`: the place of each token **in its sentence**, from 0, which is what the position encoding has to be given. Padding gets 0. No loop over tokens is needed, and none over sentences.
#
# <details><summary>Hint 1: a question</summary>
#
# A token's place in its row, less something, is its place in its sentence. Less what, and how does a token know it of the sentence it is in?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# For the masks: three conditions on a pair of a query and a key (same pair, real, not later), two of them for the memory. For the places: mark where a sentence begins, write there the place in the row, 0 elsewhere, and
# let each token take the largest number so far (`cummax`).
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - Padding sees padding: −1 equals −1.
# - Right for one row, wrong for more: the first token of a row begins a sentence, whatever stood at the end of the row above.
# - Right while the numbers rise, wrong when they do not: they are names, no counts.
# - A token sees the next sentence's beginning in the source: is there a triangle in the memory mask? It needs none.
#
# </details>


# %% solution="packed-masks"
def packed_masks(
    target_pairs: Int[Tensor, "B N"],
    source_pairs: Int[Tensor, "B M"],
) -> tuple[Bool[Tensor, "B N N"], Bool[Tensor, "B N M"]]:
    """Which tokens each target position may attend to where pairs share a row (True = may attend).

    Returns:
        target_mask: a key of the same pair, at or before the query.
        memory_mask: a source token of the same pair.
    """
    ### BEGIN SOLUTION
    asks = torch.where(target_pairs < 0, -2, target_pairs).unsqueeze(-1)  # (B, N, 1), equals no -1
    n = target_pairs.shape[1]
    not_later = torch.ones(n, n, dtype=torch.bool, device=target_pairs.device).tril()
    return not_later & (asks == target_pairs.unsqueeze(1)), asks == source_pairs.unsqueeze(1)
    ### END SOLUTION


# %% test="packed-masks-few" points=1
target_pairs = torch.tensor([[0, 0, 1, 1, -1]])
source_pairs = torch.tensor([[1, 0, 0, -1]])
target_mask, memory_mask = packed_masks(target_pairs, source_pairs)
assert_shape(target_mask, (1, 5, 5), "the target mask should be (batch, queries, keys)")
assert_shape(memory_mask, (1, 5, 4), "the memory mask should be (batch, queries, source tokens)")
assert_dtype(target_mask, torch.bool, "the target mask should be boolean")
assert_dtype(memory_mask, torch.bool, "the memory mask should be boolean")
for i, wanted, claim in (
    (1, [True, True, False, False, False], "token 1 sees its own sentence so far"),
    (2, [False, False, True, False, False], "token 2 begins a sentence and sees only itself"),
    (4, [False] * 5, "padding sees nothing"),
):
    assert target_mask[0, i].tolist() == wanted, f"{claim}\nYours says {target_mask[0, i].tolist()}"
assert memory_mask[0, 0].tolist() == [False, True, True, False], (
    "a token of pair 0 sees all source tokens of pair 0 and no other, no padding either"
)
visible_passed()
### BEGIN HIDDEN TESTS
target_pairs = torch.tensor([[3, 3, 3, 0, 7, 7, -1], [0, 5, 5, 5, 5, -1, -1], [-1] * 7])
source_pairs = torch.tensor([[7, 7, 3, 0, 0, 3], [5, 5, 0, -1, -1, -1], [-1] * 6])
source_pairs[0, 5] = -1
before = target_pairs.clone(), source_pairs.clone()
target_mask, memory_mask = packed_masks(target_pairs, source_pairs)
assert_shape(memory_mask, (3, 7, 6), "three rows of 7 target and 6 source tokens")
for b, i in itertools.product(range(3), range(7)):
    own = int(target_pairs[b, i])
    sees = [own >= 0 and own == p and j <= i for j, p in enumerate(target_pairs[b].tolist())]
    reads = [own >= 0 and own == p for p in source_pairs[b].tolist()]
    assert target_mask[b, i].tolist() == sees, (
        "with pairs in any order, a target token should see what its own sentence has so far, and "
        "padding nothing"
    )
    assert memory_mask[b, i].tolist() == reads, (
        "with pairs in any order, a target token should see its own source sentence, all of it, and "
        "padding nothing"
    )
assert torch.equal(target_pairs, before[0]) and torch.equal(source_pairs, before[1]), (
    "packed_masks should leave what it is handed unchanged"
)
### END HIDDEN TESTS

# %% test="packed-masks-alone" points=1
decoder = shaken(blocks.Decoder(lambda: blocks.DecoderLayer(8, 2, 16, dropout=0.0), 2), seed=40)
target_pairs = torch.tensor([[0, 0, 0, 1, 1, -1]])
source_pairs = torch.tensor([[0, 0, 1, 1, 1]])
x, memory = draw((1, 6, 8), (1, 5, 8), seed=40)
packed = decoder(x, memory, *packed_masks(target_pairs, source_pairs))
alone = decoder(x[:, 3:5], memory[:, 2:], torch.ones(2, 2, dtype=torch.bool).tril())
assert_close(packed[:, 3:5], alone, "in a packed row, pair 1 should come out as if it were alone")
visible_passed()
### BEGIN HIDDEN TESTS
decoder = shaken(blocks.Decoder(lambda: blocks.DecoderLayer(12, 3, 8, dropout=0.0), 3), seed=41)
target_pairs = torch.tensor([[4, 4, 1, 1, 1, 1, 0, -1], [2, 0, 0, 0, 0, 0, 9, 9]])
source_pairs = torch.tensor([[1, 1, 4, 4, 4, 0, 0], [0, 0, 0, 9, 2, 2, -1]])
x, memory = draw((2, 8, 12), (2, 7, 12), seed=41)
packed = decoder(x, memory, *packed_masks(target_pairs, source_pairs))
for b, pair in ((0, 4), (0, 1), (0, 0), (1, 2), (1, 0), (1, 9)):
    ours, theirs = target_pairs[b] == pair, source_pairs[b] == pair
    triangle = torch.ones(int(ours.sum()), int(ours.sum()), dtype=torch.bool).tril()
    assert_close(
        packed[b, ours],
        decoder(x[b, None, ours], memory[b, None, theirs], triangle)[0],
        "through three layers, each pair of a packed row should come out as if it were alone",
    )
### END HIDDEN TESTS


# %% solution="places-within"
def places_within(pairs: Int[Tensor, "B N"]) -> Int[Tensor, "B N"]:
    """The place of each token within its own sentence, from 0; 0 for padding (-1)."""
    ### BEGIN SOLUTION
    places = torch.arange(pairs.shape[1], device=pairs.device)
    begins = torch.ones_like(pairs, dtype=torch.bool)  # (B, N)
    begins[:, 1:] = pairs[:, 1:] != pairs[:, :-1]
    first = torch.where(begins, places, 0).cummax(1).values
    return torch.where(pairs < 0, 0, places - first)
    ### END SOLUTION


# %% test="places-within-values" points=1
found = places_within(torch.tensor([[0, 0, 0, 1, 1, -1, -1]]))
assert_shape(found, (1, 7), "there is one place for each token")
assert found.tolist() == [[0, 1, 2, 0, 1, 0, 0]], (
    f"a sentence of three, one of two and padding\nYours says {found.tolist()[0]}."
)
visible_passed()
### BEGIN HIDDEN TESTS
pairs = torch.tensor(
    [
        [5, 0, 0, 0, 2, 2, 9, 9],
        [9, 9, 9, 9, 1, -1, -1, -1],
        [-1] * 8,
        [3] * 8,
        [3, 7, 6, 5, 4, 2, 1, 0],
    ]
)
before = pairs.clone()
found = places_within(pairs)
assert found.tolist() == [
    [0, 0, 1, 2, 0, 1, 0, 1],
    [0, 1, 2, 3, 0, 0, 0, 0],
    [0] * 8,
    list(range(8)),
    [0] * 8,
], (
    "in any rows, each sentence should be counted from 0, and each row should begin anew"
    f"\nYours says {found.tolist()}."
)
assert not torch.is_floating_point(found), "places are whole numbers"
assert torch.equal(pairs, before), "places_within should leave what it is handed unchanged"
### END HIDDEN TESTS

# %%
if watched():  # not while the notebook is graded
    from lab import plots
    from lab.corpus import sentence_pairs

    lengths = [len(french.split()) + 1 for _, french in sentence_pairs(256)]
    padded = max(lengths) * len(lengths)
    room, width = [], 4 * max(lengths)  # what is free in each row; how long a row is
    for length in sorted(lengths, reverse=True):  # each into the first row that has room
        row = next((i for i, free in enumerate(room) if free >= length), len(room))
        if row == len(room):
            room.append(width)
        room[row] -= length
    print(f"one sentence a row: {len(lengths)} rows, {1 - sum(lengths) / padded:.0%} padding")
    print(f"rows four times as long, packed: {len(room)}, {sum(room) / (width * len(room)):.1%}")
    row = torch.tensor([[0] * 4 + [1] * 2 + [2] * 5 + [-1]])
    plots.use()
    plots.heatmap(
        packed_masks(row, row)[0][0].float(),
        [str(place) for place in places_within(row)[0].tolist()],
        title="Three sentences and padding in a row",
        xlabel="keys",
        ylabel="queries, by place in the sentence",
        annotate=False,
    )

# %% [markdown]
# <details><summary>What happened</summary>
#
# One sentence a row, and two fifths of all work go into padding, since every row is as long as the longest. Packed into rows four times as long, hardly anything is left over: the same tokens, with the
# same result for each. The map shows what is paid for it: along the diagonal stands one triangle for each sentence, and what lies between them is computed for nothing, unless the
# attention knows how to skip blocks that are hidden as a whole.
#
# </details>

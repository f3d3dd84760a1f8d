# %% [markdown]
# # 6 Encoder
#
# In this notebook you build the half of the Transformer that reads: one encoder layer, and a stack
# of them. Then you proofread a published one, pool what it returns into one vector per sentence,
# write the test that finds an encoder which looks at padding, and see how far a word sees. What you write here carries
# over: the finished model is put together from your `EncoderLayer` and `Encoder`.
#
# **How to work.** Run the cells from top to bottom. Replace each `# YOUR CODE HERE` and its `raise` by
# your answer, then run the test cells below it; a message says what is wrong. The visible tests
# are not all tests: hidden ones, with other sizes and numbers, run when the notebook is graded.
# Each question is tested on its own, so you may leave one open and go on. Before you hand in,
# restart the kernel and run all cells.
#
# **Where to read.** The book's page *Encoder* explains all of it with NumPy on one sentence.
#
# **Conventions.** Rows are tokens, the batch comes first: a batch of $B$ sentences, filled up to
# $N$ tokens each, is $(B, N, d_\text{model})$. A mask is boolean, and **True means: may attend**. It
# broadcasts to (B, queries, keys); a padding mask is $(B, 1, N)$.

# %% setup
import itertools
from collections.abc import Callable
from typing import Any

import torch
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
    unchanged,
    visible_passed,
)
from lab.predict import compare, predicted, watched


def torch_twin(layer: Any, num_heads: int, norm_first: bool = False) -> nn.TransformerEncoderLayer:
    """PyTorch's own encoder layer with the numbers of yours: what the tests compare with."""
    d_ff, d_model = layer.feed_forward.inner.weight.shape
    twin: Any = nn.TransformerEncoderLayer(
        d_model, num_heads, d_ff, 0.0, batch_first=True, norm_first=norm_first, dtype=torch.float64
    )
    yours = layer.self_attention
    with torch.no_grad():
        matrices = [yours.w_q.weight, yours.w_k.weight, yours.w_v.weight]
        twin.self_attn.in_proj_weight.copy_(torch.cat(matrices))
        twin.self_attn.in_proj_bias.zero_()
        twin.self_attn.out_proj.weight.copy_(yours.w_o.weight)
        twin.self_attn.out_proj.bias.zero_()
        twin.linear1.load_state_dict(layer.feed_forward.inner.state_dict())
        twin.linear2.load_state_dict(layer.feed_forward.outer.state_dict())
        for name in ("norm1", "norm2"):
            getattr(twin, name).weight.copy_(getattr(layer, name).gain)
            getattr(twin, name).bias.copy_(getattr(layer, name).bias)
    return twin


# %% [markdown]
# ## 6.1 An encoder layer   (6 points, about 30 minutes, difficulty 3 of 5)
#
# **Objective.** Put the parts together: two sub-layers, each with dropout, a residual connection
# and a layer norm of its own.
#
# 1. **Self-attention**: queries, keys and values all come from the sentence itself.
# 2. **Feed-forward network**, for each position alone.
#
# With $\text{Sub}$ for a sub-layer, the two orders of norm and sum are
#
# $$\text{post-norm (the paper's):}\quad \text{LayerNorm}(x +
# \text{dropout}(\text{Sub}(x)))
# \qquad
# \text{pre-norm:}\quad x + \text{dropout}(\text{Sub}(\text{LayerNorm}(x)))$$
#
# and `norm_first=True` means pre-norm. `x` is $(B, N, d_\text{model})$, and so is the result.
#
# The parts are imported: `MultiHeadAttention(d_model, num_heads)`, called as
# `attention(query, key, value, mask)`, returns a **pair**, the output and the weights;
# `LayerNorm(d_model)`; `FeedForward(d_model, d_ff)`. The tests look for these attributes:
# `self_attention`, `feed_forward`, `norm1`, `norm2` (in the order of the sub-layers) and
# `dropout`, one `nn.Dropout` that serves both sub-layers and drops single numbers of what each
# returns, chosen anew for every token. The mask may be None, and goes on to the attention just as it
# comes.
#
# The ready layers, `EncoderLayer` and `DecoderLayer` of `lab.blocks`, `nn.TransformerEncoderLayer` and
# `nn.TransformerDecoderLayer`, are not allowed here.
#
# <details><summary>Hint 1: a question</summary>
#
# The second sub-layer has an input of its own. Which tensor is it, and which tensor is added to
# what the second sub-layer returns?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Twice the same pattern: some input, a sub-layer, dropout, plus the sub-layer's input, and a norm
# before or after. The second sum starts from what the first sub-layer has left, not from the
# layer's input. Where the norm comes first, the sum takes the tensor as it was before that norm.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - *unsupported operand type(s) ... 'tuple'*, or *dropout(): argument 'input' must be Tensor, not
#   tuple*: attention returns two things.
# - Post-norm right, pre-norm wrong: is the sum taken with the normalised input?
# - All is right except with dropout: it belongs to what a sub-layer returns, before the sum.
# - A sentence changes with its padding: does the mask reach the attention?
# - *a leaf Variable that requires grad is being used in an in-place operation*, or a complaint that
#   `x` changed: make new tensors (`x = x + ...`, not `x += ...`).
#
# </details>


# %% solution="encoder-layer" export
class EncoderLayer(nn.Module):
    """One layer of the encoder: self-attention, then a feed-forward network.

    Args:
        d_model: width of the tokens.
        num_heads: number of attention heads.
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
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1 = LayerNorm(d_model)
        self.norm2 = LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)
        # departs: the paper normalises after each sum only; the other order is here as a choice,
        # because most later models use it. paper: test_encoder_layers_normalise_after_each_sum
        self.norm_first = norm_first
        ### END SOLUTION

    def forward(
        self,
        x: Float[Tensor, "B N d_model"],
        mask: Bool[Tensor, "... #N N"] | None = None,  # True = may attend
    ) -> Float[Tensor, "B N d_model"]:
        """Return the tokens, each informed by those that it may attend to."""
        ### BEGIN SOLUTION
        if self.norm_first:
            normed = self.norm1(x)
            x = x + self.dropout(self.self_attention(normed, normed, normed, mask)[0])
            return x + self.dropout(self.feed_forward(self.norm2(x)))
        x = self.norm1(x + self.dropout(self.self_attention(x, x, x, mask)[0]))
        return self.norm2(x + self.dropout(self.feed_forward(x)))
        ### END SOLUTION


# %% test="encoder-layer-parts" points=1
layer: Any = EncoderLayer(8, 2, 20, dropout=0.3)
for name in ("self_attention", "feed_forward", "norm1", "norm2"):
    assert isinstance(getattr(layer, name, None), nn.Module), (
        f"the layer should have a module named {name}"
    )
assert isinstance(getattr(layer, "dropout", None), nn.Dropout) and layer.dropout.p == 0.3, (
    "the layer should have an nn.Dropout named dropout, with the probability handed in"
)
assert layer.norm1 is not layer.norm2, "each sub-layer should have a norm of its own"
visible_passed()
### BEGIN HIDDEN TESTS
layer = EncoderLayer(12, 3, 20)
count = sum(parameter.numel() for parameter in layer.parameters())
assert count == 1136, (
    "a layer (12, 3 heads, 20) should have 1,136 numbers to learn: one attention, one feed-forward "
    f"network, two norms\nYours has {count:,}."
)
assert_raises(
    ValueError,
    lambda: EncoderLayer(10, 4, 20),
    "10 features cannot be shared out among 4 heads: a ValueError that names both",
    mentions=("10", "4"),
)
### END HIDDEN TESTS

# %% test="encoder-layer-values" points=1
layer = shaken(EncoderLayer(8, 2, 20, dropout=0.0))
assert_sound(
    layer,
    (draw((3, 5, 8), seed=1),),
    like=torch_twin(layer, 2),
    claim="without mask and dropout, a post-norm layer should equal PyTorch's on the same weights",
)
visible_passed()
### BEGIN HIDDEN TESTS
layer = shaken(EncoderLayer(12, 3, 10, dropout=0.0), seed=2)
x = draw((2, 12, 7), seed=3).transpose(1, 2)  # (2, 7, 12), not contiguous
wanted = torch_twin(layer, 3)(x)
assert_close(layer(x), wanted, "a post-norm layer should equal PyTorch's for other sizes too")
### END HIDDEN TESTS

# %% test="encoder-layer-pre-norm" points=1
layer = shaken(EncoderLayer(8, 2, 20, dropout=0.0, norm_first=True))
x = draw((3, 5, 8), seed=5)
wanted = torch_twin(layer, 2, norm_first=True)(x)
with unchanged(layer, x):
    output = layer(x)
assert_close(
    output,
    wanted,
    "with norm_first=True the layer should equal PyTorch's pre-norm layer on the same weights",
)
visible_passed()
### BEGIN HIDDEN TESTS
layer = shaken(EncoderLayer(12, 3, 10, dropout=0.4, norm_first=True), seed=6)
twin = torch_twin(layer, 3, norm_first=True)
keep = torch.tensor([[True] * 7, [True] * 4 + [False] * 3])
assert_sound(
    layer,
    (draw((2, 7, 12), seed=6), keep[:, None, :]),
    like=lambda x, mask: twin(x, src_key_padding_mask=~mask[:, 0]),
    claim="in evaluation, under a padding mask too, a pre-norm layer should equal PyTorch's",
    rate=0.4,
)
### END HIDDEN TESTS

# %% test="encoder-layer-mask" points=1
layer = shaken(EncoderLayer(8, 2, 20, dropout=0.0))
full, short, junk = draw((5, 8), (5, 8), (5, 8), seed=7)
late = torch.cat([full[:4], junk[4:]])  # another last token
other = torch.cat([short[:2], junk[2:]])  # other padding
real = torch.tensor([[True] * 5, [True] * 5, [True] * 2 + [False] * 3, [True] * 2 + [False] * 3])
with unchanged(layer, real):
    output = layer(torch.stack([full, late, short, other]), real[:, None, :])
assert_close(
    output[3, :2], output[2, :2], "what stands in the padding should never reach a real token"
)
assert_close(
    output[2, :2],
    layer(short[None, :2])[0],
    "a padded sentence should give its real tokens the same outputs as the sentence alone",
)
assert not torch.allclose(output[1, 0], output[0, 0]), (
    "the last token of a full sentence should reach the first: an encoder looks both ways"
)
visible_passed()
### BEGIN HIDDEN TESTS
layer = shaken(EncoderLayer(12, 3, 10, dropout=0.4), seed=8).eval()
twin = torch_twin(layer, 3)
x = draw((4, 6, 12), seed=8)
keep = torch.arange(6) < torch.tensor([3, 6, 1, 5])[:, None]  # (4, 6)
mask = (draw((6, 6), seed=9) > -0.3) & keep[:, None, :] | torch.eye(6, dtype=torch.bool)
assert_close(
    layer(x, mask),
    twin(x, src_mask=~mask.repeat_interleave(3, 0)),
    "a mask (batch, queries, keys) should say which keys each query may attend to, in evaluation "
    "too",
)
### END HIDDEN TESTS

# %% test="encoder-layer-dropout" points=2
layer = shaken(EncoderLayer(8, 2, 20, dropout=1.0))
x = draw((3, 5, 8), seed=10)
twin = torch_twin(layer, 2)
wanted, in_evaluation = twin.norm2(twin.norm1(x)), twin(x)
with unchanged(layer, x):
    output = layer(x)
assert_close(
    output,
    wanted,
    "if all is dropped, a post-norm layer in training should just normalise its input twice",
)
layer.eval()
assert_close(layer(x), in_evaluation, "in evaluation nothing should be dropped")
visible_passed()
### BEGIN HIDDEN TESTS
torch.manual_seed(12)
x = draw((5, 8), seed=12)
keeps = torch.cartesian_prod(*[torch.tensor([0.0, 1.0], dtype=torch.float64)] * 8)  # of a row
kinds = itertools.product((True, False), repeat=2)
for (attends, norm_first), rate in zip(kinds, (0.5, 0.25, 0.25, 0.5), strict=True):
    layer = shaken(EncoderLayer(8, 2, 20, dropout=rate, norm_first=norm_first), seed=12)
    silent = layer.feed_forward.outer if attends else layer.self_attention.w_o
    with torch.no_grad():  # one sub-layer at a time; the other one returns zeros
        for parameter in silent.parameters():
            parameter.zero_()
        given = layer(x.expand(40, 5, 8)).unsqueeze(2)
    twin = torch_twin(layer, 2)
    start = x if attends or norm_first else twin.norm1(x)
    read = (twin.norm1 if attends else twin.norm2)(start) if norm_first else start
    if attends:
        returned, _ = twin.self_attn(read, read, read)
    else:
        returned = twin.linear2(twin.linear1(read).relu())
    possible = start[:, None] + keeps / (1 - rate) * returned[:, None]  # (5, 256, 8)
    if not norm_first:
        possible = twin.norm2(twin.norm1(possible) if attends else possible)
    off, which = (given - possible).abs().amax(-1).min(-1)
    assert_close(
        off,
        0,
        "in training, each number that a sub-layer returns should be dropped or divided by 1 - "
        "dropout, then added; what goes into a sub-layer should stay",
        atol=1e-5,
    )
    dropped = keeps[which] == 0  # (40, 5, 8)
    assert_share(
        dropped,
        rate,
        "dropout is the share that is dropped of what each of the two sub-layers returns",
    )
    assert all((dropped.any(axis) & ~dropped.all(axis)).any() for axis in (0, 1)), (
        "dropout should drop single numbers, not the same ones of every token or sentence"
    )
### END HIDDEN TESTS

# %% [markdown]
# ## 6.2 The stack   (4 points, about 20 minutes, difficulty 2 of 5)
#
# **Objective.** Put layer on layer: each one reads what the one below has written.
#
# `make_layer` is a function without arguments that makes **one new layer**, such as
# `lambda: EncoderLayer(512, 8, 2048)`. The stack calls it once per layer, so that every layer has
# its own weights. It keeps the layers in `.layers`, and `.norm`, a module or None, comes once after
# the last one. (Post-norm layers end with a norm already and need none; a pre-norm stack hands in
# one.) Every layer is called as `layer(x, mask)` and sees the same mask.
#
# Any layers will do: the tests bring their own.
#
# The ready stacks, `Encoder` and `Decoder` of `lab.blocks` and `nn.TransformerEncoder`, are not allowed here.
#
# <details><summary>Hint 1: a question</summary>
#
# How does `stack.parameters()`, which the optimiser will be given, find the weights of the layers?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# `nn.ModuleList` is a list whose modules are known to the module around it. Fill it with as many
# *calls* as there are layers; then walk through it and hand each layer the output of the one
# before.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - *too few parameters*: a plain Python list hides them, or one layer stands in several places.
# - *expected m1 and m2 to have the same dtype*: the same cause. The tests turn the stack to float64,
#   and layers that it does not know of stay behind.
# - Depth makes no difference: what does the second layer read?
# - Right for one layer, wrong for two or more: what do the others get, input and mask?
# - *'NoneType' object is not callable*: the norm may be None.
#
# </details>


# %% solution="encoder" export
class Encoder(nn.Module):
    """A stack of encoder layers.

    Args:
        make_layer: called once per layer; makes a new layer, to be called as layer(x, mask).
        num_layers: how many layers.
        norm: comes once after the last layer, if there is one; pre-norm stacks need it.

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
        mask: Bool[Tensor, "... #N N"] | None = None,  # True = may attend
    ) -> Float[Tensor, "B N d_model"]:
        """Pass the tokens through all layers, and through the norm if there is one."""
        ### BEGIN SOLUTION
        for layer in self.layers:
            x = layer(x, mask)
        return x if self.norm is None else self.norm(x)
        ### END SOLUTION


# %% test="encoder-layers" points=2
made = []


def make_layer() -> nn.Module:
    """A new layer; `made` remembers it."""
    made.append(blocks.EncoderLayer(8, 2, 12))
    return made[-1]


stack: Any = Encoder(make_layer, 3)
assert len(made) == 3, f"make_layer should be called once per layer, 3 times, not {len(made)}"
assert len(stack.layers) == 3, "layers should hold the three layers"
count = sum(parameter.numel() for parameter in stack.parameters())
alone = sum(parameter.numel() for parameter in made[0].parameters())
assert count == 3 * alone, (
    f"three layers of {alone} numbers each should have {3 * alone} numbers to learn"
    f"\nThe stack knows of {count}."
)
visible_passed()
### BEGIN HIDDEN TESTS
made = []
stack = Encoder(make_layer, 2, nn.LayerNorm(8))
assert all(yours is new for yours, new in zip(stack.layers, made, strict=True)), (
    "layers should hold what make_layer made, in the order of the calls"
)
count = sum(parameter.numel() for parameter in stack.parameters())
assert count == 2 * alone + 16, "the final norm's numbers should be learned as well"
### END HIDDEN TESTS


# %% test="encoder-forward" points=2
def one_by_one(stack: Any, norm_first: bool = False) -> Callable[..., Any]:
    """What the stack should do, on copies of its layers."""
    copies = []
    for layer in stack.layers:
        copies.append(blocks.EncoderLayer(8, 2, 12, dropout=0.0, norm_first=norm_first).double())
        copies[-1].load_state_dict(layer.state_dict())

    def run(x: Tensor, mask: Tensor | None = None) -> Tensor:
        for copied in copies:
            x = copied(x, mask)
        return x

    return run


stack = shaken(Encoder(lambda: blocks.EncoderLayer(8, 2, 12, dropout=0.0), 2))
right = one_by_one(stack)
x = draw((2, 5, 8), seed=2)
assert_close(stack(x), right(x), "each layer should read what the layer before it has written")
mask = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])[:, None, :]
assert_close(
    stack(x, mask)[1, :3],
    right(x[1:, :3])[0],
    "a padded sentence should give its real tokens the same outputs as the sentence alone",
)
visible_passed()
### BEGIN HIDDEN TESTS
norm = shaken(nn.LayerNorm(8), seed=3)
stack = shaken(
    Encoder(lambda: blocks.EncoderLayer(8, 2, 12, dropout=0.0, norm_first=True), 3, norm), seed=4
)
right = one_by_one(stack, norm_first=True)
lengths = torch.tensor([6, 2, 4])
assert_sound(
    stack,
    (draw((3, 6, 8), seed=4), (torch.arange(6) < lengths[:, None])[:, None, :]),
    like=lambda x, mask: norm(right(x, mask)),
    claim="the norm should come once, after the last layer, and every layer should get the mask",
)
### END HIDDEN TESTS

# %% [markdown]
# ## 6.3 Proofread an encoder   (3 points, about 25 minutes, difficulty 4 of 5)
#
# **Objective.** Find slips in a published algorithm that runs, and trains, and is wrong.
#
# The cell below is an encoder layer with one head, post-norm, without dropout, after an algorithm of a chapter on the web (its gains and
# biases of the norms are left out). Every shape is as it should be. Somebody has noticed:
#
# - `"queries"`: real tokens change when what stands in the padding changes, even with line 4 as it should be;
# - `"hidden"`: even with line 1 as it should be, a key that is hidden gets a weight that is not 0;
# - `"spread"`: after line 7 the variance of a token is not 1, though nothing but $\varepsilon$ is in the way;
# - `"lost"`: if the network returns zeros, the output is the input, normalised; what attention brought is gone.
#
# Which line is behind each of them? Then write the layer as it should be. A padding key gets weight 0, whatever its score is; outputs at the padding do not matter.
# What is handed in stays as it is, what comes out has the dtype of `x`, and gradients flow back to `x` and to all matrices and biases.
#
# <details><summary>Hint 1: a question</summary>
#
# The mask is $(B, N, N)$ next to the scores, queries before keys. Along which axis does line 1 say *may not*? And what is $e^0$?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# For each symptom, say what the layer should do there (6.1 has the formulas), and follow the variable from the line where it is made to the one where it is used.
# Variables with nearly the same name are a good place to look.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - NaN at the padding only: that is allowed, nobody reads it; NaN at real tokens is not.
# - Right without padding, wrong with it: lines 1 and 4.
#
# </details>


# %%
def web_layer(x, lengths, p, eps=1e-5):
    real = (torch.arange(x.shape[1]) < lengths[:, None])[:, :, None]  # line 1
    q, k, v = x @ p["w_q"], x @ p["w_k"], x @ p["w_v"]  # line 2
    scores = q @ k.transpose(1, 2) / k.shape[-1] ** 0.5  # line 3
    weights = torch.softmax(scores * real, -1)  # line 4
    z = x + weights @ v @ p["w_o"]  # line 5
    mean, variance = z.mean(-1, keepdim=True), x.var(-1, correction=0, keepdim=True)  # line 6
    y = (z - mean) / torch.sqrt(variance + eps)  # line 7
    hidden = torch.relu(y @ p["w_1"] + p["b_1"])  # line 8
    z = x + hidden @ p["w_2"] + p["b_2"]  # line 9
    mean, variance = z.mean(-1, keepdim=True), z.var(-1, correction=0, keepdim=True)  # line 10
    return (z - mean) / torch.sqrt(variance + eps)  # line 11


# %% solution="slip-lines"
def slip_lines() -> dict[str, int]:
    """By symptom ("queries", "hidden", "spread", "lost"), the line that is behind it."""
    ### BEGIN SOLUTION
    return {"queries": 1, "hidden": 4, "spread": 6, "lost": 9}
    ### END SOLUTION


# %% test="slip-lines-found" points=1
lines = slip_lines()
assert isinstance(lines, dict), "slip_lines should return a dict, from symptoms to lines"
assert sorted(lines) == ["hidden", "lost", "queries", "spread"], (
    "the four symptoms are 'queries', 'hidden', 'spread' and 'lost'"
)
assert all(type(line) is int and 1 <= line <= 11 for line in lines.values()), (
    f"lines have the numbers 1 to 11, whole numbers (int)\nYours are {list(lines.values())}."
)
visible_passed()
### BEGIN HIDDEN TESTS
assert lines["queries"] == 1, "the line behind 'queries' is another one"
assert lines["hidden"] == 4, "the line behind 'hidden' is another one"
assert lines["spread"] == 6, "the line behind 'spread' is another one"
assert lines["lost"] == 9, "the line behind 'lost' is another one"
### END HIDDEN TESTS


# %% solution="mended-layer"
def mended_layer(
    x: Float[Tensor, "B N D"], lengths: Int[Tensor, "B"], p: dict[str, Tensor], eps: float = 1e-5
) -> Float[Tensor, "B N D"]:
    """The layer as it should be: one head, post-norm, padding keys hidden."""
    ### BEGIN SOLUTION
    real = (torch.arange(x.shape[1]) < lengths[:, None])[:, None, :]  # (B, 1, N): keys
    q, k, v = x @ p["w_q"], x @ p["w_k"], x @ p["w_v"]
    scores = q @ k.transpose(1, 2) / k.shape[-1] ** 0.5
    weights = torch.softmax(scores.masked_fill(~real, -torch.inf), -1)
    z = x + weights @ v @ p["w_o"]
    mean, variance = z.mean(-1, keepdim=True), z.var(-1, correction=0, keepdim=True)
    y = (z - mean) / torch.sqrt(variance + eps)
    z = y + torch.relu(y @ p["w_1"] + p["b_1"]) @ p["w_2"] + p["b_2"]
    mean, variance = z.mean(-1, keepdim=True), z.var(-1, correction=0, keepdim=True)
    return (z - mean) / torch.sqrt(variance + eps)
    ### END SOLUTION


# %% test="mended-layer-sentence" points=1
def numbers(width: int, hidden: int, seed: int) -> dict[str, Tensor]:
    """Drawn numbers for the layer; all scores are of unit size."""
    sizes = dict.fromkeys(("w_q", "w_k", "w_v", "w_o"), (width, width))
    sizes |= {"w_1": (width, hidden), "b_1": (hidden,), "w_2": (hidden, width), "b_2": (width,)}
    drawn = draw(*sizes.values(), seed=seed)
    return {name: one / one.shape[0] ** 0.5 for name, one in zip(sizes, drawn, strict=True)}


def right_layer(x: Tensor, p: dict[str, Tensor], eps: float = 1e-5) -> Tensor:
    """The layer on one sentence without padding, by PyTorch's parts."""
    attended = nn.functional.scaled_dot_product_attention(x @ p["w_q"], x @ p["w_k"], x @ p["w_v"])
    y = nn.functional.layer_norm(x + attended @ p["w_o"], x.shape[-1:], eps=eps)
    change = torch.relu(y @ p["w_1"] + p["b_1"]) @ p["w_2"] + p["b_2"]
    return nn.functional.layer_norm(y + change, x.shape[-1:], eps=eps)


def with_numbers(x: Tensor, lengths: Tensor, *drawn: Tensor) -> Tensor:
    """Your layer with these numbers, of which it should neither lose nor add any."""
    p = dict(zip(NAMES, drawn, strict=True))
    output = mended_layer(x, lengths, p)
    assert list(p) == NAMES, "mended_layer should leave the dictionary p as it is"
    return output


p, x = numbers(4, 6, seed=30), draw((2, 5, 4), seed=31, dtype=torch.float32)
NAMES = list(p)
assert_sound_function(
    with_numbers,
    [x, torch.tensor([5, 5]), *(one.float() for one in p.values())],
    like=lambda x, _, *drawn: right_layer(x, dict(zip(NAMES, drawn, strict=True))),
    claim="without padding, the output should be the right layer's",
    says="the layer should leave all that it is handed as it is, give float32 for float32, and let "
    "gradients back to x and to all matrices and biases",
)
visible_passed()
### BEGIN HIDDEN TESTS
for width, hidden, eps in ((6, 10, 1e-5), (8, 5, 0.5)):
    p, x = numbers(width, hidden, seed=32), 3.0 * draw((3, 4, width), seed=33) + 1.0
    before = x.clone()
    output = mended_layer(x, torch.tensor([4, 4, 4]), p, eps)
    claim = "with other sizes and another eps, the output should be the right layer's too"
    assert_close(output, right_layer(x, p, eps), claim)
    assert torch.equal(x, before), "mended_layer should leave x unchanged"
### END HIDDEN TESTS

# %% test="mended-layer-padding" points=1
p, x = numbers(4, 6, seed=34), draw((2, 5, 4), seed=35)
output = mended_layer(x, torch.tensor([3, 5]), p)
claim = "hiding the padding of a sentence should equal leaving it out"
assert_close(output[0, :3], right_layer(x[:1, :3], p)[0], claim)
visible_passed()
### BEGIN HIDDEN TESTS
p, x = numbers(6, 9, seed=36), draw((4, 7, 6), seed=37)
x[0, 3:] *= 1000.0
real_lengths = [3, 7, 1, 5]
output = mended_layer(x, torch.tensor(real_lengths), p)
for b, length in enumerate(real_lengths):
    assert_close(
        output[b, :length],
        right_layer(x[b : b + 1, :length], p)[0],
        "each sentence of a batch, however long its padding and large what stands there, should "
        "come out as it does alone",
    )
p["w_q"] = -3e4 * p["w_k"]
output = mended_layer(x, torch.tensor(real_lengths), p)
for b, length in enumerate(real_lengths):
    assert_close(
        output[b, :length],
        right_layer(x[b : b + 1, :length], p)[0],
        "a padding key should get weight 0 also where the scores of all real tokens are far below 0",
    )
### END HIDDEN TESTS

# %% [markdown]
# ## 6.4 One vector per sentence   (3 points, about 15 minutes, difficulty 2 of 5)
#
# **Objective.** Pool what the encoder returns: the mean of each sentence's real tokens.
#
# `x` is $(B, N, D)$, what an encoder returned; `lengths` is $(B)$ and holds how many tokens of each
# sentence are real. Padding stands at the end; every sentence has at least one real token. The
# result is $(B, D)$. Whatever stands in the padding must not matter, **not even NaN or infinity**,
# which some encoders leave there, and it gets no gradient. In a real token infinity counts: the mean
# shows it.
#
# <details><summary>Hint 1: a question</summary>
#
# What is $0 \cdot \infty$? What is $0 \cdot \text{NaN}$?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Compare the positions $0, 1, \dots$ with the lengths: True for real tokens, $(B, N)$. Put zeros
# where it is False, *replacing* what stands there, sum over the tokens, and divide each sentence
# by its own length.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - Short sentences come out too small: divided by $N$.
# - NaN, though no real token is NaN: see hint 1.
# - *The size of tensor a must match the size of tensor b*: lengths need an axis of length 1 for
#   the features.
# - All entries of a row equal: summed over the wrong axis.
#
# </details>


# %% solution="masked-mean"
def masked_mean(x: Float[Tensor, "B N D"], lengths: Int[Tensor, "B"]) -> Float[Tensor, "B D"]:
    """The mean of each sentence's first `lengths` tokens; padding, NaN or not, does not count."""
    ### BEGIN SOLUTION
    positions = torch.arange(x.shape[1], device=x.device)
    padded = positions >= lengths[:, None]  # (B, N)
    total = x.masked_fill(padded[..., None], 0).sum(1)  # (B, D)
    return total / lengths[:, None]
    ### END SOLUTION


# %% test="masked-mean-values" points=2
x = torch.tensor(
    [[[1.0, 10.0, 0.0], [3.0, 20.0, 6.0]], [[5.0, 7.0, 9.0], [80.0, 90.0, 70.0]]],
    dtype=torch.float64,
)
pooled = masked_mean(x, torch.tensor([2, 1]))
assert_shape(pooled, (2, 3), "one vector per sentence: (batch, features)")
wanted = torch.tensor([[2.0, 15.0, 3.0], [5.0, 7.0, 9.0]], dtype=torch.float64)
assert_close(pooled, wanted, "each sentence should give the mean of its real tokens")
visible_passed()
### BEGIN HIDDEN TESTS
lengths = torch.tensor([3, 5, 1, 4])
for dtype, width in ((torch.float64, 6), (torch.float32, 1)):
    x = draw((4, width, 5), seed=1, dtype=dtype).transpose(1, 2)  # (4, 5, width), not contiguous
    before, lengths_before = x.clone(), lengths.clone()
    pooled = masked_mean(x, lengths)
    assert_dtype(pooled, dtype, "the mean should have the dtype of the tokens")
    wanted = torch.stack([x[b, : int(lengths[b])].mean(0) for b in range(4)])
    assert_close(pooled, wanted, "each sentence should be averaged over its own length")
    assert torch.equal(x, before) and torch.equal(lengths, lengths_before), (
        "masked_mean should leave what is handed to it unchanged"
    )
### END HIDDEN TESTS

# %% test="masked-mean-padding" points=1
x = draw((3, 5, 4), seed=2)
lengths = torch.tensor([4, 2, 5])
pooled = masked_mean(x, lengths)
spoilt = x.clone()
spoilt[0, 4:], spoilt[1, 2:] = torch.nan, torch.inf
assert_close(
    masked_mean(spoilt, lengths), pooled, "NaN or infinity in the padding should not matter"
)
visible_passed()
### BEGIN HIDDEN TESTS
longer = torch.cat([spoilt, draw((3, 3, 4), seed=3)], dim=1)
longer[2, 0, 1], longer[0, 3, 2], wanted = torch.inf, -torch.inf, pooled.clone()
wanted[2, 1], wanted[0, 2] = torch.inf, -torch.inf
longer.requires_grad_()
upstream = draw((3, 4), seed=4)
mean = masked_mean(longer, lengths)
claim = (
    "more padding should not change the mean, and infinity in a real token, of either sign, should "
    "show in it"
)
assert_close(mean, wanted, claim)
(gradient,) = torch.autograd.grad((mean * upstream).sum(), longer)
for b, length in enumerate(lengths.tolist()):
    assert_close(
        gradient[b, :length],
        (upstream[b] / length).expand(length, 4),
        "each real token should get 1 / length of the gradient",
    )
    assert_close(gradient[b, length:], 0, "padding should get gradient 0, even where it is NaN")
### END HIDDEN TESTS

# %% [markdown]
# ## 6.5 A test that finds the leak   (3 points, about 20 minutes, difficulty 3 of 5)
#
# **Objective.** Write the check that you would run on somebody else's encoder: does padding reach
# the real tokens?
#
# `padding_leak(encode, x, lengths)` gets a function `encode(x, mask)`, a batch `x` of
# $(B, N, D)$ and the lengths $(B)$ of its sentences, padding at the end. It
#
# 1. makes the padding mask $(B, 1, N)$, True at real tokens, and runs the encoder on `x`;
# 2. runs it again, with the same mask, on a batch that differs from `x` **in the padding only**;
# 3. returns, as a `float`, the largest absolute difference between the two results **at the real
#    tokens**, 0.0 for an encoder without a leak.
#
# Outputs *at* the padding may differ, nobody reads them. What you put into the padding is up to
# you, with two things to think of: an encoder with layer norms does not notice everything, and the
# padding may be zero to begin with. Leave `x` as it is. At least one token of each sentence is real.
#
# <details><summary>Hint 1: a question</summary>
#
# A pre-norm layer normalises each token before the attention sees it. Which changes of a token does
# a layer norm undo?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Random numbers, different for each feature, in place of the padding; `torch.where` chooses between
# them and `x`. Two calls, the difference, only the rows of real tokens, the largest, `.item()`.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - A sound encoder is accused: are the outputs at the padding among those you compare? Did a NaN
#   or an infinity go in? Did the mask change between the two calls?
# - A leak is missed in the pre-norm encoder: a layer norm removes what is the same for all features.
# - A leak is missed when the padding is zero: did the padding change at all?
# - *a Tensor with more than one element cannot be converted*: the largest is one number.
#
# </details>


# %% solution="padding-leak"
def padding_leak(
    encode: Callable[[Tensor, Tensor], Tensor],
    x: Float[Tensor, "B N D"],
    lengths: Int[Tensor, "B"],
) -> float:
    """How far the outputs of real tokens move when what stands in the padding is replaced.

    Args:
        encode: called as encode(x, mask), the mask (B, 1, N) boolean, True = may attend.
        x: a batch of sentences, padding at the end.
        lengths: how many tokens of each sentence are real.
    """
    ### BEGIN SOLUTION
    real = torch.arange(x.shape[1], device=x.device) < lengths[:, None]  # (B, N)
    changed = torch.where(real[..., None], x, torch.randn_like(x))
    mask = real[:, None, :]
    difference = encode(x, mask) - encode(changed, mask)
    return difference[real].abs().max().item()
    ### END SOLUTION


# %% test="padding-leak-sound" points=1
encoder: Any = shaken(blocks.Encoder(lambda: blocks.EncoderLayer(8, 2, 12, dropout=0.0), 2))
encoder.requires_grad_(False)
x = draw((3, 5, 8), seed=1)
lengths = torch.tensor([3, 5, 2])
before = x.clone()
leak = padding_leak(encoder, x, lengths)
assert isinstance(leak, float), "the result should be a float"
assert leak < 1e-5, f"an encoder that hides the padding should have no leak\nYours finds {leak}."
assert torch.equal(x, before), "padding_leak should leave x unchanged"
visible_passed()
### BEGIN HIDDEN TESTS
norm = shaken(nn.LayerNorm(6))
pre_norm = shaken(
    blocks.Encoder(lambda: blocks.EncoderLayer(6, 3, 10, dropout=0.0, norm_first=True), 3, norm)
)
pre_norm.requires_grad_(False)
full = padding_leak(
    lambda x, mask: x - x.mean(1, keepdim=True), draw((2, 4, 6)), torch.tensor([4, 4])
)
assert full == 0, "without any padding there is nothing to leak"
calls = []


def spy(x, mask):
    """A sound encoder that remembers how it was called."""
    calls.append((x.clone(), mask.clone()))
    return pre_norm(x.double(), mask)


x = draw((3, 5, 6), seed=5, dtype=torch.float32)
leak = padding_leak(spy, x, torch.tensor([2, 5, 4]))
assert leak < 1e-5, f"a sound pre-norm encoder should have no leak\nYours finds {leak}."
real = torch.tensor([[True, True, False, False, False], [True] * 5, [True] * 4 + [False]])
for handed, mask in calls:
    assert_dtype(mask, torch.bool, "the mask should be boolean")
    assert_dtype(handed, torch.float32, "both calls should get a batch of the dtype of x")
    assert torch.equal(mask.expand(3, 5, 5), real[:, None, :].expand(3, 5, 5)), (
        "the mask should be True exactly at the real tokens, for every query"
    )
    assert torch.equal(handed[real], x[real]), "the real tokens should be the same in both calls"
### END HIDDEN TESTS

# %% test="padding-leak-found" points=2
outputs, masks = [], []


def recorded(encode: Callable[[Tensor, Any], Tensor]) -> Callable[..., Tensor]:
    """The encoder, whose outputs are kept in `outputs`, and the masks that it gets in `masks`."""
    outputs.clear()

    def run(x: Tensor, mask: Tensor | None = None) -> Tensor:
        masks.append(mask)
        outputs.append(encode(x, mask))
        return outputs[-1]

    return run


def is_the_largest(leak: float) -> bool:
    """Whether it is how far one number of a real token has moved at most."""
    moved = (outputs[-1] - outputs[0])[torch.arange(5) < lengths[:, None]].abs().max().item()
    return abs(leak - moved) <= 1e-5 * moved


encoder = shaken(blocks.Encoder(lambda: blocks.EncoderLayer(8, 2, 12, dropout=0.0), 2))
encoder.requires_grad_(False)
x = draw((3, 5, 8), seed=2)
lengths = torch.tensor([3, 5, 2])
leak = padding_leak(recorded(lambda x, mask: encoder(x)), x, lengths)
assert all(mask is not None for mask in masks), "the encoder should be called as encode(x, mask)"
assert leak > 1e-3, f"an encoder that ignores the mask leaks\nYours finds {leak}."
assert is_the_largest(leak), (
    "the result should be the largest of the absolute differences at the real tokens, neither "
    f"their mean nor that of a part\nYours finds {leak}."
)
visible_passed()
### BEGIN HIDDEN TESTS
first, second = encoder.layers
leak = padding_leak(lambda x, mask: second(first(x, mask)), x, lengths)
assert leak > 1e-3, f"an encoder that masks in its first layer only leaks\nYours finds {leak}."
pre_norm = shaken(
    blocks.Encoder(lambda: blocks.EncoderLayer(8, 2, 12, dropout=0.0, norm_first=True), 2), seed=1
)
pre_norm.requires_grad_(False)
for layer in pre_norm.layers:
    layer.norm1.gain.fill_(1)
leak = padding_leak(lambda x, mask: pre_norm(x), x, lengths)
assert leak > 1e-3, f"a leak through a layer norm should be found\nYours finds {leak}."
zeros = torch.where(torch.arange(5)[:, None] < lengths[:, None, None], x, 0.0)
leak = padding_leak(lambda x, mask: pre_norm(x), zeros, lengths)
assert leak > 1e-3, (
    "a leak through a layer norm should be found, where the padding is zero, too"
    f"\nYours finds {leak}."
)


def one_place(sign: int) -> Callable[[Tensor, Tensor], Tensor]:
    """Leaks from the middle of the last sentence's padding to that sentence's first token."""

    def encode(x: Tensor, mask: Tensor) -> Tensor:
        moved = x.clone()
        moved[-1, 0] += 0.5 * sign * x[-1, 3].abs()
        return moved

    return recorded(encode)


for sign in (1, -1):
    leak = padding_leak(one_place(sign), zeros, lengths)
    assert leak > 1e-3, (
        "a leak from one place of the padding should be found, where the padding is zero, too"
        f"\nYours finds {leak}."
    )
    assert is_the_largest(leak), (
        f"the difference should be absolute, whatever its sign\nYours finds {leak}."
    )
spoilt = padding_leak(
    lambda x, mask: pre_norm(x, mask).masked_fill(~mask.transpose(1, 2), torch.nan), x, lengths
)
assert spoilt < 1e-5, f"outputs at the padding should not count, even if NaN\nYours finds {spoilt}."
### END HIDDEN TESTS

# %% [markdown]
# ## 6.6 How far does a word see?   (4 points, about 30 minutes, difficulty 3 of 5)
#
# **Objective.** Say after how many layers one token can know of another one, if a layer's mask does not let it look
# everywhere. (Long texts are often read so: each token looks at its neighbours and a few others.)
#
# `rounds(mask)` gets a mask $(N, N)$, True where token $i$ (row) may attend to token $j$ (column); all layers use the same. Return a tensor of whole numbers
# $(N, N)$: in $[i, j]$ the **fewest layers** after which the output of token $i$ can depend on the input of token $j$. Each layer has residual connections, so a token
# always knows itself: 0 on the diagonal, and what has once been known stays. Where no number of layers is enough, write −1.
#
# Then predict. Encoders of 1, 2 and 3 of your layers learn which digit stood **two** places before each digit, but each token may attend only to itself and
# its **direct** neighbours. Which of them can learn it? Let `predicted_depths` return one of the texts in `DEPTHS`: there is a point for having
# predicted, not for being right. The run below takes about ten seconds, and uses **your** encoder.
#
# <details><summary>Hint 1: a question</summary>
#
# If token $i$ may look at token $k$, and $k$ knew $j$ after two layers, when does $i$ know $j$?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Keep a matrix of who knows whom; at the start each token knows itself. One layer adds to what $i$ knows all that those know whom $i$ may look at: a matrix product, and
# what is above 0. Note the number of the layer where an entry becomes True for the first time; stop when nothing changes.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - Rows and columns exchanged: row $i$ asks; knowledge flows from $j$ to $i$, not back.
# - The loop does not end: some entries never become True.
# - A token that may not look at itself forgets: think of the residual connection.
#
# </details>


# %% solution="rounds"
def rounds(mask: Bool[Tensor, "N N"]) -> Int[Tensor, "N N"]:
    """The fewest layers after which token i can depend on token j; -1 where it never does."""
    ### BEGIN SOLUTION
    sees = mask.double()
    known = torch.eye(len(mask), dtype=torch.bool)
    found = torch.where(known, 0, -1)
    for layer in range(1, len(mask)):
        known = known | (sees @ known.double() > 0)
        found[known & (found < 0)] = layer
    return found
    ### END SOLUTION


# %% test="rounds-few" points=1
chain = torch.tensor([[True, False, False], [True, True, False], [False, True, True]])
found = rounds(chain)
assert_shape(found, (3, 3), "there is one number for each pair of tokens")
assert found.tolist()[2] == [2, 1, 0], (
    f"token 2 looks at 1, and 1 at 0: it knows 0 after two layers\nYours says {found.tolist()[2]}."
)
assert found.tolist()[0] == [0, -1, -1], (
    f"token 0 looks at itself only and never knows the others\nYours says {found.tolist()[0]}."
)
visible_passed()
### BEGIN HIDDEN TESTS
alone = torch.zeros(4, 4, dtype=torch.bool)
wanted = torch.where(torch.eye(4, dtype=torch.bool), 0, -1)
assert torch.equal(rounds(alone).long(), wanted), "who may look at nobody still knows itself"
whole = torch.ones(4, 4, dtype=torch.bool)
wanted = 1 - torch.eye(4, dtype=torch.int64)
assert torch.equal(rounds(whole).long(), wanted), "who may look at all knows all after one layer"
assert not torch.is_floating_point(rounds(whole)), "the numbers of layers are whole numbers"
### END HIDDEN TESTS

# %% test="rounds-any" points=2
near = (torch.arange(7)[:, None] - torch.arange(7)).abs() <= 2
before = near.clone()
found = rounds(near)
assert found[6].tolist() == [3, 3, 2, 2, 1, 1, 0], (
    f"with two neighbours on either side, token 6 of 0 to 6 needs 3 layers to know token 0"
    f"\nYours says {found[6].tolist()}."
)
assert torch.equal(near, before), "rounds should leave the mask unchanged"
visible_passed()
### BEGIN HIDDEN TESTS


def paths(mask: Tensor) -> list[list[int]]:
    """By search from each token, breadth first."""
    table = []
    for start in range(len(mask)):
        steps, border = {start: 0}, [start]
        while border:
            here = border.pop(0)
            for other in mask[here].nonzero().flatten().tolist():
                if other not in steps:
                    steps[other] = steps[here] + 1
                    border.append(other)
        table.append([steps.get(j, -1) for j in range(len(mask))])
    return table


for count, share, seed in ((6, 0.2, 1), (9, 0.15, 2), (12, 0.1, 3), (12, 0.3, 4), (1, 0.0, 5)):
    mask = torch.rand(count, count, generator=torch.Generator().manual_seed(seed)) < share
    before = mask.clone()
    assert rounds(mask).tolist() == paths(mask), (
        "for any mask, each entry should be the fewest layers by which what j knows gets to i"
    )
    assert torch.equal(mask, before), "rounds should leave the mask unchanged, its diagonal too"
ring = torch.eye(30, dtype=torch.bool).roll(1, dims=1)
assert rounds(ring).max() == 29, "in a ring of 30 tokens one has to wait for 29 layers"
### END HIDDEN TESTS

# %%
DEPTHS = ("all three", "2 and 3 layers", "3 layers only", "none of them")


# %% solution="predicted-depths"
def predicted_depths() -> str:
    """Which encoders you expect to learn it: one of DEPTHS."""
    ### BEGIN SOLUTION
    return "2 and 3 layers"
    ### END SOLUTION


# %% test="predicted-depths-made" points=1
depths = predicted_depths()
assert isinstance(depths, str), "a prediction is one of the texts in DEPTHS"
assert depths in DEPTHS, f"a prediction is one of {', '.join(DEPTHS)}\nYours is {depths!r}."
visible_passed()

# %%
if watched():  # not while the notebook is graded
    from lab import plots
    from lab.own import learning_curve

    prediction = predicted(predicted_depths, DEPTHS)
    neighbours = (torch.arange(12)[:, None] - torch.arange(12)).abs() <= 1
    learned = {}
    for depth in (1, 2, 3):
        torch.manual_seed(0)
        my_encoder = Encoder(lambda: EncoderLayer(32, 4, 64, dropout=0.0, norm_first=True), depth)
        learned[f"{depth} deep"] = learning_curve(
            lambda x, parts: parts[0](x, neighbours), nn.ModuleList([my_encoder]), steps=300
        )
    compare(prediction, [name for name, losses in learned.items() if losses[-1] < 1])
    plots.use()
    plots.lines(range(1, 301), learned, "Two places back, by neighbours", "step", "loss")
    plots.heatmap(rounds(neighbours), title="Layers until i (row) knows j", xlabel="j", ylabel="i")

# %% [markdown]
# <details><summary>What happened</summary>
#
# One layer cannot, however long it learns: two places back is out of its sight, and the loss stays at $\ln 10 = 2.3$. Two layers are just enough: the first tells
# each token its neighbour's digit, the second reads it there. That two layers *can* does not mean that they find it soon: at the beginning neither layer knows what the other is for, and
# for a hundred steps or more nothing seems to happen. A third layer, of which the task has no need, makes it faster.
#
# </details>

# %% [markdown]
# ## 6.7 Herbivores eat plants   (2 points, about 10 minutes, difficulty 3 of 5)
#
# **Objective.** Say what a stack of encoder layers can know about order.
#
# A colleague encodes "herbivores eat plants" and "plants eat herbivores": embedding, six encoder
# layers, no position encoding, no mask. Then he takes the mean over the tokens and gets the same
# vector twice, up to the last digits. In three to six sentences: (a) why must that be so, whatever
# the weights? Name what each of the two sub-layers does when two tokens change places. (b) He
# repairs it in one of two ways: positions added to the embeddings before the first layer, or a
# causal mask in every layer. Does each of them tell the two sentences apart, and why?
#
# <details><summary>Hint 1: a question</summary>
#
# In $\sum_j a_{ij} v_j$, what happens to the sum if the terms are written in another order?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Follow the token "eat" through one layer, in both sentences: what does it see, and does it know
# where it sees it? Then what the mean makes of the three outputs.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - Unsure about (b): under a causal mask, which tokens does the first word see in each sentence?
#
# </details>

# %% [markdown] manual="order-of-words" points=2
# ### BEGIN SOLUTION
# (a) Self-attention computes each output as a sum over the set of keys, with weights that depend on
# what the tokens are and not on where they stand; another order of the terms gives the same sum.
# The feed-forward network, the norms and the residual connections treat each token alone. So one
# layer, and hence any stack, is permutation equivariant: exchange two tokens, and their outputs are
# exchanged. The mean adds up the same three vectors in another order and is therefore the same.
#
# (b) Both do. With positions, "herbivores" at place 0 is another vector than "herbivores" at place
# 2, so the layers get different inputs. With a causal mask the first word sees only itself and the
# last one sees all, so the sets of visible keys differ although the embeddings carry no position:
# the layer is no longer equivariant. (For an encoder a causal mask is a bad cure: early words could
# not see what follows.)
#
# Marking: 1 point for (a), with attention as a sum over a set and the token-wise rest; 1 point for
# (b), half for each cure with its reason. "Attention has no order" without a reason earns half of
# (a).
# ### END SOLUTION

# %% [markdown]
# ## 6.8 Bonus: every way up   (3 points, about 35 minutes, difficulty 5 of 5)
#
# **Objective.** Take the output of a stack apart, into one term for each way by which something can come up through it. (A bonus:
# nothing in the model needs it.)
#
# Take a stack of $L$ layers with nothing but attention: no norm, no feed-forward network. With $x^{(0)}$ the input, layer $l$ adds to each token what its $H$ heads write:
#
# $$x^{(l+1)} = x^{(l)} + \sum_{h=0}^{H-1} A_{lh}\; x^{(l)}\; W_{lh}$$
#
# $A_{lh}$ is the head's attention map, $(N, N)$, rows are queries; $W_{lh}$, $(d_\text{model}, d_\text{model})$, is its value matrix times its part of the output matrix. **Hold the maps fixed**, as numbers.
# Then the output is linear in the input, and all brackets can be multiplied out. Each term of the result has taken one *way* through the layers: past layer 0 or
# through one of its heads, past layer 1 or through one of its heads, and so on.
#
# `path_terms(x, maps, w_ov)` returns all terms in one tensor of shape $(H+1, \dots, H+1, B, N, d_\text{model})$, with one axis of $H+1$ for **each layer**, layer 0 first. On each of them, index 0
# means past the layer, by the residual connection alone, and index $1 + h$ means through head $h$. So for two layers, `terms[0, 0]` is `x` itself, `terms[1, 0]` is what head 0 of layer 0 writes into
# the output, and `terms[1, 2]` is what head 1 of layer 1 makes of that. The sum over all ways is the stack's output. Any number of layers is possible, also none: then the result is `x`.
#
# <details><summary>Hint 1: a question</summary>
#
# A layer does the same to every term that arrives. How many terms does it make of one, and which?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Begin with one term, `x`. For each layer, send all terms so far through each of its heads at once: the product with $A_{lh}$ acts on the axis of the tokens, that with $W_{lh}$ on the features, and
# any number of axes may stand before these. Stack "as it was" and the heads' results as a new axis. It has to come behind the axes of the layers below, and before those of batch, token and feature.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - All terms are there but in other places: layer 0 has the first axis; past comes before the heads.
# - The sum is right for one layer, wrong for two: the heads of layer 1 read all that layer 0 has left, what its heads wrote too.
# - The sum is too large: a term through a head is what the head writes, without what it has read.
# - Shapes clash from the second layer on: the maps $(B, N, N)$ have to meet the batch axis, whatever stands before it.
#
# </details>


# %% solution="path-terms"
def path_terms(
    x: Float[Tensor, "B N d_model"],
    maps: Float[Tensor, "B L H N N"],  # rows are queries
    w_ov: Float[Tensor, "L H d_model d_model"],
) -> Float[Tensor, "... B N d_model"]:
    """Return what comes up through a stack of attention, one term for each way.

    The result has an axis of H + 1 for each layer, layer 0 first: index 0 is past the layer,
    1 + h is through its head h.

    Source: Elhage et al. (2021), "A Mathematical Framework for Transformer Circuits".
    """
    ### BEGIN SOLUTION
    terms = x
    for layer, heads in enumerate(w_ov):
        through = [maps[:, layer, h] @ terms @ w for h, w in enumerate(heads)]
        terms = torch.stack([terms, *through], -4)  # (..., 1 + H, B, N, d_model)
    return terms
    ### END SOLUTION


# %% test="path-terms-few" points=1
x = torch.tensor([[[1.0], [3.0]]])  # one sentence of two tokens with one feature each
maps = torch.tensor([[[[[0.0, 1.0], [1.0, 0.0]]], [[[0.0, 1.0], [0.0, 1.0]]]]])  # 2 layers, 1 head
w_ov = torch.tensor([[[[2.0]]], [[[10.0]]]])
terms = path_terms(x, maps, w_ov)
assert_shape(terms, (2, 2, 1, 2, 1), "two layers of one head: two axes of past or through")
for way, wanted, claim in (
    ((0, 0), (1.0, 3.0), "past both layers comes x as it is"),
    ((1, 0), (6.0, 2.0), "through layer 0 alone: the tokens exchange places, times 2"),
    ((0, 1), (30.0, 30.0), "through layer 1 alone: both tokens read token 1 of x, times 10"),
    ((1, 1), (20.0, 20.0), "through both: layer 1 reads what layer 0 has made of token 1"),
):
    assert_close(terms[way].flatten(), torch.tensor(wanted), claim)
visible_passed()
### BEGIN HIDDEN TESTS
x, w_ov = draw((2, 3, 4), (1, 3, 4, 4), seed=30)
maps = draw((2, 1, 3, 3, 3), seed=31).softmax(-1)
terms = path_terms(x, maps, w_ov)
assert_shape(terms, (4, 2, 3, 4), "one layer of three heads: past it, or through one of three")
assert_close(terms[0], x, "index 0 should be past the layer: x as it is")
for h in range(3):
    assert_close(
        terms[1 + h], maps[:, 0, h] @ x @ w_ov[0, h], "index 1 + h should be what head h writes"
    )
nothing = path_terms(x, maps[:, :0], w_ov[:0])
assert_shape(nothing, (2, 3, 4), "without any layer the result should be x, with no further axis")
### END HIDDEN TESTS

# %% test="path-terms-sum" points=1
x, w_ov = draw((2, 5, 4), (2, 3, 4, 4), seed=32)
maps = draw((2, 2, 3, 5, 5), seed=33).softmax(-1)
stream = x
for layer in range(2):
    stream = stream + sum(maps[:, layer, h] @ stream @ w_ov[layer, h] for h in range(3))
terms = path_terms(x, maps, w_ov)
assert_close(
    terms.sum((0, 1)), stream, "the sum over all ways should be what comes out of the stack"
)
visible_passed()
### BEGIN HIDDEN TESTS
x, w_ov = draw((3, 5, 6), (4, 2, 6, 6), seed=34)
maps = draw((3, 4, 2, 5, 5), seed=35).softmax(-1)
stream = x
for layer in range(4):
    stream = stream + sum(maps[:, layer, h] @ stream @ w_ov[layer, h] for h in range(2))
terms = path_terms(x, maps, w_ov)
assert_shape(terms, (3, 3, 3, 3, 3, 5, 6), "four layers of two heads: four axes of three")
assert_close(
    terms.sum((0, 1, 2, 3)), stream, "with four layers too, all ways should add up to the output"
)
### END HIDDEN TESTS

# %% test="path-terms-each" points=1
x, w_ov = draw((2, 4, 3), (3, 2, 3, 3), seed=36)
maps = draw((2, 3, 2, 4, 4), seed=37).softmax(-1)
terms = path_terms(x, maps, w_ov)
last = maps[:, 2, 1] @ x @ w_ov[2, 1]
assert_close(terms[0, 0, 2], last, "past layers 0 and 1, through head 1 of layer 2")
visible_passed()
### BEGIN HIDDEN TESTS


def every_way(x: Tensor, maps: Tensor, w_ov: Tensor) -> Tensor:
    """Way by way, each from the bottom to the top."""
    layers, heads = w_ov.shape[:2]
    terms = []
    for way in itertools.product(range(heads + 1), repeat=layers):
        term = x
        for layer, step in enumerate(way):
            if step:
                term = maps[:, layer, step - 1] @ term @ w_ov[layer, step - 1]
        terms.append(term)
    return torch.stack(terms).reshape(*[heads + 1] * layers, *x.shape)


for seed, (batch, n, d, layers, heads) in {38: (2, 4, 3, 3, 2), 40: (1, 6, 2, 2, 4)}.items():
    x, w_ov = draw((batch, n, d), (layers, heads, d, d), seed=seed)
    maps = draw((batch, layers, heads, n, n), seed=seed + 1).softmax(-1)
    assert_close(
        path_terms(x, maps, w_ov),
        every_way(x, maps, w_ov),
        "each term should have gone its own way: layer 0 on the first axis, then the others",
    )
x, w_ov = draw((2, 4, 6), (1, 4, 6, 6), seed=42, dtype=torch.float32)
assert_sound_function(
    path_terms,
    (x, draw((2, 1, 4, 4, 4), seed=43, dtype=torch.float32).softmax(-1), w_ov),
    like=every_way,
    claim="each term should be as if its way had been gone alone, in single precision too",
)
### END HIDDEN TESTS

# %%
if watched():  # not while the notebook is graded
    from lab import plots

    torch.manual_seed(0)
    width, heads, depth = 32, 4, 4
    words = torch.randn(1, 8, width)
    looks = (2 * torch.randn(1, depth, heads, 8, 8)).softmax(-1)
    writes = torch.randn(depth, heads, width, width) / (width * heads) ** 0.5
    ways = path_terms(words, looks, writes)  # 625 ways
    through = torch.cartesian_prod(*[torch.arange(heads + 1)] * depth).count_nonzero(-1)
    each = ways.reshape(-1, *words.shape)
    count = [int((through == k).sum()) for k in range(depth + 1)]
    size = [float(each[through == k].sum(0).norm()) for k in range(depth + 1)]
    for k in range(depth + 1):
        print(f"through {k} heads: {count[k]:3} ways, together of length {size[k]:.1f}")
    plots.use()
    plots.lines(
        range(depth + 1), {"length of their sum": size}, "All ways up", "heads on the way", "length"
    )

# %% [markdown]
# <details><summary>What happened</summary>
#
# Four layers of four heads, with weights drawn at random: 625 ways. Only one of them passes all heads, and 256 go through a head in each layer; but each head that only averages makes its term shorter,
# so that many long ways together weigh less than few short ones. This is why a deep stack can often be read as if it were shallow. What the maps are has been held fixed: which tokens are looked at is itself decided by the ways
# that lead to queries and keys.
#
# </details>

# %% [markdown]
# # 14 Longer context
#
# A window ends, and what stood before it is gone. In this notebook you carry a memory from one segment of a text to the
# next, as Transformer-XL does, find out how far back a token then hears, give attention distances in the place of positions, and
# turn a table of distances without an index. Then you let each head learn how far it looks (adaptive span), and
# cut off what no head can see. The last question, a bonus, lets a loss teach an old segment what to write into its memory.
#
# **How to work.** Run the cells from top to bottom. Replace each `# YOUR CODE HERE` and the `raise`
# below it by your answer, then run the test cells that follow; their messages say what is wrong.
# The visible tests are not all tests: hidden ones, with other sizes and numbers, run when the
# notebook is graded. Each question is tested on its own, so you may leave one open and go on.
# Before you hand in, restart the kernel and run all cells.
#
# **Where to read.** The book's page *Longer context* does all of it, with pictures.
#
# **Conventions.** The batch comes first. $B$ counts rows, $H$ heads, $n$ the tokens of a segment, $m$ those of a memory; $D$ is the width.
# The memory stands **before** the segment: of the $K = m + n$ keys, key $j$ is in place $j$, and query $i$ is
# the token in place $m + i$. Their **distance** is $m + i - j$, and a query sees keys at distances of 0 and more.
#
# The cells marked *Try it* run some seconds, and do nothing while the notebook is graded.

# %% setup
import math
from collections.abc import Callable, Sequence
from typing import Any

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from lab import plots
from lab.battery import assert_sound, shaken
from lab.check import (
    assert_close,
    assert_dtype,
    assert_gradients,
    assert_shape,
    assert_whole,
    draw,
    expect_no_error,
    visible_passed,
)
from lab.longer_context import SpanModel, floored, learn_relay, learn_spans
from lab.predict import compare, predicted, watched

# %% [markdown]
# ## 14.1 What is kept   (2 points, about 10 minutes, difficulty 1 of 5)
#
# **Objective.** Carry the last tokens' vectors over to the next segment.
#
# `next_memory(memory, hidden, length)` gets the memory so far, $(B, m, D)$, and the segment's vectors, $(B, n, D)$, which come after
# it. It returns the last `length` vectors of both together, or all of them where there are fewer. With `length` 0 nothing is
# kept: $(B, 0, D)$. The memory is **cut off** from the gradient: what is learned in a later segment does not
# flow back into an earlier one. The number of vectors in a segment has nothing to do with the number that is kept.
#
# <details><summary>Hint 1: a question</summary>
#
# In Python, what is `x[-0:]`?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Put both together along the tokens, say where the part to keep begins, cut, detach.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - Wrong with short segments only: a memory may be older than one segment.
# - Wrong with `length` 0: count from the front.
#
# </details>


# %% solution="next-memory"
def next_memory(
    memory: Float[Tensor, "B m D"], hidden: Float[Tensor, "B n D"], length: int
) -> Float[Tensor, "B kept D"]:
    """Return the last `length` vectors of memory and segment, without their history."""
    ### BEGIN SOLUTION
    both = torch.cat([memory, hidden], dim=1)
    return both[:, max(0, both.shape[1] - length) :].detach()
    ### END SOLUTION


# %% test="next-memory-values" points=1
memory, hidden = draw((2, 3, 4), (2, 2, 4), seed=1)
kept = next_memory(memory, hidden, 4)
assert_shape(kept, (2, 4, 4), "of 3 + 2 vectors 4 should be kept")
assert_close(kept[:, 2:], hidden, "the segment's vectors come last")
assert_close(kept[:, :2], memory[:, 1:], "before them should come the last of the old memory")
visible_passed()
### BEGIN HIDDEN TESTS
for m, n, length in ((0, 3, 2), (0, 3, 3), (4, 2, 9), (5, 3, 3), (5, 3, 1), (3, 4, 0), (2, 5, 6)):
    memory, hidden = draw((3, m, 2), (3, n, 2), seed=m)
    whole = [*memory.unbind(1), *hidden.unbind(1)]
    wanted = whole[len(whole) - min(length, len(whole)) :]
    with expect_no_error("any sizes should do, also an empty memory and nothing to keep"):
        kept = next_memory(memory, hidden, length)
    assert_shape(kept, (3, len(wanted), 2), "as many vectors should be kept as asked for, or all")
    if wanted:
        assert_close(
            kept, torch.stack(wanted, 1), "the last vectors should be kept, in their order"
        )
assert_dtype(kept, torch.float64, "the memory should have the dtype of what it is made of")
kept = next_memory(memory.float(), hidden.float(), 3)
assert_dtype(kept, torch.float32, "the memory should have the dtype of what it is made of")
### END HIDDEN TESTS

# %% test="next-memory-cut" points=1
memory, hidden = (x.requires_grad_() for x in draw((2, 3, 4), (2, 2, 4), seed=2))
kept = next_memory(memory, hidden, 4)
assert not kept.requires_grad, "no gradient should flow back through what is kept"
visible_passed()
### BEGIN HIDDEN TESTS
before = memory.detach().clone(), hidden.detach().clone()
for length in (1, 7):
    assert not next_memory(memory, hidden, length).requires_grad, (
        "no gradient should flow back through what is kept, however much it is"
    )
assert hidden.requires_grad, "the segment itself should keep its gradient"
assert not torch.equal(next_memory(memory + 1, hidden + 1, 4), kept), (
    "other vectors should give another memory"
)
assert torch.equal(before[0], memory) and torch.equal(before[1], hidden), (
    "what is handed in should be left unchanged"
)
### END HIDDEN TESTS

# %% [markdown]
# ## 14.2 Segment by segment   (4 points, about 25 minutes, difficulty 3 of 5)
#
# **Objective.** Run a stack of layers over a long text, in segments, each layer with a memory of its own.
#
# A layer is a function: `layer(x, memory)` gets a segment's vectors $(B, n, D)$ and a memory $(B, m, D)$, where $m$ may be 0, and
# returns the segment's new vectors $(B, n, D)$. `run_segments(layers, x, length, mem_len)` gets a text's vectors $(B, N, D)$ and
#
# - cuts it into segments of `length` tokens; the last one may be shorter;
# - runs each through all layers. The memory of a layer holds the last `mem_len` vectors that **this layer was
#   given** in the segments before, without gradient. In the first segment it is empty;
# - returns the last layer's vectors for the whole text, $(B, N, D)$.
#
# <details><summary>Hint 1: a question</summary>
#
# A layer makes keys of memory and segment alike. What has to be in the memory, if both are to be made from the same
# kind of vector: what the layer was given, or what it returned?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# A list of memories, one per layer. Two loops: over segments, and in it over layers. Before the segment's vectors are
# replaced by the layer's, they go into that layer's next memory, as in 14.1.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - One layer is right, two are not: whose vectors are remembered?
# - Right unless `mem_len` is larger than `length`: the memory is made of the old memory, too.
# - Gradients are too large: the memory is detached.
#
# </details>


# %% solution="run-segments"
def run_segments(
    layers: Sequence[Callable[[Tensor, Tensor], Tensor]],
    x: Float[Tensor, "B N D"],
    length: int,
    mem_len: int,
) -> Float[Tensor, "B N D"]:
    """Run layers over a text in segments; each layer remembers what it was given."""
    ### BEGIN SOLUTION
    memories = [x[:, :0] for _ in layers]
    outputs = []
    for segment in x.split(length, dim=1):
        for i, layer in enumerate(layers):
            given = torch.cat([memories[i], segment], dim=1).detach()
            segment = layer(segment, memories[i])
            memories[i] = given[:, max(0, given.shape[1] - mem_len) :]
        outputs.append(segment)
    return torch.cat(outputs, dim=1)
    ### END SOLUTION


# %% test="run-segments-whole" points=1
def made_layer(width: int, seed: int) -> Callable[[Tensor, Tensor], Tensor]:
    """A layer of causal attention with one head and drawn numbers."""
    w_q, w_k, w_v = 0.5 * draw((3, width, width), seed=seed)

    def layer(x: Tensor, memory: Tensor) -> Tensor:
        whole = torch.cat([memory, x], dim=1)
        n, keys = x.shape[1], whole.shape[1]
        seen = torch.ones(n, keys, dtype=torch.bool).tril(keys - n)
        scores = (x @ w_q) @ (whole @ w_k).mT
        return x + scores.masked_fill(~seen, -math.inf).softmax(-1) @ (whole @ w_v).sin()

    return layer


x = draw((2, 10, 4), seed=11)
layers = [made_layer(4, seed) for seed in (12, 13, 14)]
whole = x
for layer in layers:
    whole = layer(whole, x[:, :0])
assert_close(
    run_segments(layers, x, 4, 10),
    whole,
    "with a memory as long as the text, three layers should give what one pass over the whole text "
    "gives",
    atol=1e-10,
)
visible_passed()
### BEGIN HIDDEN TESTS
x = draw((3, 7, 4), seed=15)
layers = [made_layer(4, seed) for seed in (16, 17)]
whole = x
for layer in layers:
    whole = layer(whole, x[:, :0])
for length in (1, 3, 9):
    assert_close(
        run_segments(layers, x, length, 7),
        whole,
        "with a memory as long as the text, segments of any length should give the same as one pass",
        atol=1e-10,
    )
### END HIDDEN TESTS


# %% test="run-segments-window" points=2
def windowed(depth: int, x: Tensor, length: int, mem_len: int, seed: int) -> Tensor:
    """One token after the other over the whole text; a window takes the place of the memory."""
    for layer in [made_layer(x.shape[-1], seed + i) for i in range(depth)]:
        new = []
        for i in range(x.shape[1]):
            start = max(0, i - i % length - mem_len)
            new.append(layer(x[:, i : i + 1], x[:, start:i]))
        x = torch.cat(new, dim=1)
    return x


x = draw((2, 9, 4), seed=21)
for depth in (1, 2):
    assert_close(
        run_segments([made_layer(4, 22 + i) for i in range(depth)], x, 3, 2),
        windowed(depth, x, 3, 2, seed=22),
        f"depth {depth}, segments of 3, a memory of 2: each token should see its own segment up to "
        "itself, and the last 2 vectors before it",
    )
visible_passed()
### BEGIN HIDDEN TESTS
x = draw((1, 9, 4), seed=25)
before = x.clone()
for depth, length, mem_len in ((2, 2, 5), (3, 3, 4), (2, 4, 0), (2, 1, 2)):
    assert_close(
        run_segments([made_layer(4, 26 + i) for i in range(depth)], x, length, mem_len),
        windowed(depth, x, length, mem_len, seed=26),
        "with other sizes each token should see its own segment up to itself, and as many vectors "
        "before it as the memory holds",
    )
assert torch.equal(x, before), "the text should be left unchanged"
single = run_segments([lambda x, memory: x * 2], x.float(), 5, 7)
assert_dtype(single, torch.float32, "vectors in float32 should stay so")
seen = []


def noted(x: Tensor, memory: Tensor) -> Tensor:
    seen.append((x.shape[1], memory.shape[1]))
    return x * 2


run_segments([noted], x, 4, 6)
assert seen == [(4, 0), (4, 4), (1, 6)], (
    "a layer should be given each segment once, and beside it the memory, never longer than mem_len"
)
### END HIDDEN TESTS

# %% test="run-segments-gradient" points=1
x = draw((1, 6, 4), seed=31).requires_grad_()
output = run_segments([made_layer(4, 32)], x, 3, 3)
(gradient,) = torch.autograd.grad(output[:, 3:].square().sum(), x)
assert_close(gradient[:, :3], torch.zeros(1, 3, 4), "no gradient should flow into a memory")
visible_passed()
### BEGIN HIDDEN TESTS
assert gradient[:, 3:].abs().min() > 0, "a segment's own tokens should get a gradient"
x = draw((1, 6, 4), seed=33).requires_grad_()
layers = [made_layer(4, 34), made_layer(4, 35)]
own = x[:, 3:]
old = [x[:, :3].detach(), layers[0](x[:, :3], x[:, :0]).detach()]
for layer, memory in zip(layers, old, strict=True):
    own = layer(own, memory)
first = x[:, :3]
for layer in layers:
    first = layer(first, x[:, :0])
assert_gradients(
    run_segments(layers, x, 3, 3),
    torch.cat([first, own], dim=1),
    {"x": x},
    "each segment's gradient should reach its own tokens through all layers, and no others",
)
### END HIDDEN TESTS

# %% [markdown]
# ## 14.3 How far back?   (3 points, about 20 minutes, difficulty 3 of 5)
#
# **Objective.** Predict what a memory changes, then measure how far back a token hears.
#
# Take a text that is run by 14.2, and of it the **last segment**, of 4 tokens, with a memory of 4. Beside it, three other ways to
# compute the same tokens. Are their vectors the same? Let `predicted_same` return a dictionary with `"same"` or
# `"different"` for each name in `WAYS`; the point is for having predicted.
#
# - `"one layer, read anew"`: one layer, and one pass over the last 8 tokens alone;
# - `"two layers, read anew"`: the same with two layers;
# - `"two layers, whole text"`: two layers, the memory as long as the text, beside one pass over the whole text;
# - `"its gradient"`: as before, but compared is the gradient that reaches the text's first token.
#
# Then write the instrument. `reach(run, x)` gets a function that turns vectors $(B, N, D)$ into vectors of the same shape, and texts
# for it, all of which it treats alike. It returns, as a whole number, the largest distance at which a token still changes the **last** token's vector: with $d$ returned,
# something changes when token $N - 1 - d$ does, and nothing when an earlier one does. In `run`, things may be detached.
# The last token always depends on itself.
#
# <details><summary>Hint 1: a question</summary>
#
# A memory is cut off from the gradient. Are its numbers cut off, too?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Change one token at a time, the first one first, and stop at the first that matters. Add random numbers: the same number added to
# all features is invisible to a layer norm.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - Too small with a memory: you look at gradients.
# - Too small with holes: a token that does not matter may stand after one that does.
#
# </details>

# %%
WAYS: dict[str, tuple[str, ...]] = dict.fromkeys(
    ("one layer, read anew", "two layers, read anew", "two layers, whole text", "its gradient"),
    ("same", "different"),
)


# %% solution="predicted-same"
def predicted_same() -> dict[str, str]:
    """What you expect: "same" or "different" for each name in WAYS."""
    ### BEGIN SOLUTION
    return {
        "one layer, read anew": "same",
        "two layers, read anew": "different",
        "two layers, whole text": "same",
        "its gradient": "different",
    }
    ### END SOLUTION


# %% test="predicted-same-made" points=1
guess = predicted_same()
assert isinstance(guess, dict), "a prediction is a dictionary"
assert sorted(guess) == sorted(WAYS), "there should be a prediction for each name in WAYS"
assert all(word in ("same", "different") for word in guess.values()), (
    f"each prediction is 'same' or 'different'\nYours are {list(guess.values())}."
)
visible_passed()


# %% solution="reach"
def reach(run: Callable[[Tensor], Tensor], x: Float[Tensor, "B N D"]) -> int:
    """Return the largest distance at which a token changes the last one's vector."""
    ### BEGIN SOLUTION
    last = x.shape[1] - 1
    noise = torch.randn(x.shape[-1], generator=torch.Generator().manual_seed(0)).to(x)
    before = run(x)[:, -1]
    for i in range(last):
        changed = x.clone()
        changed[:, i] += noise
        if not torch.equal(run(changed)[:, -1], before):
            return last - i
    return 0
    ### END SOLUTION


# %% test="reach-values" points=2
def window_mean(size: int) -> Callable[[Tensor], Tensor]:
    """Each token becomes the mean of itself and the `size` tokens before it."""

    def run(x: Tensor) -> Tensor:
        rows = [x[:, max(0, i - size) : i + 1].mean(1) for i in range(x.shape[1])]
        return torch.stack(rows, dim=1)

    return run


x = draw((2, 9, 4), seed=41)
assert_whole(reach(window_mean(3), x), 3, "a mean over 3 tokens before the last reaches 3 back")
assert_whole(reach(window_mean(0), x), 0, "where each token sees itself alone, the reach is 0")
visible_passed()
### BEGIN HIDDEN TESTS
before = x.clone()
assert_whole(
    reach(lambda x: window_mean(2)(window_mean(3)(x)), x),
    5,
    "two layers reach as far as both together",
)
assert_whole(reach(window_mean(20), x), 8, "more than all tokens before the last cannot be reached")
assert_whole(
    reach(lambda x: x + x.roll(6, 1) * 0.01, x),
    6,
    "tokens without influence may stand after one that has some",
)
assert_whole(
    reach(lambda x: x + x.detach().roll(4, 1), x),
    4,
    "what is detached is cut off from the gradient; its numbers still count",
)


def normed(x: Tensor) -> Tensor:
    """A mean over all tokens, after a layer norm."""
    return window_mean(5)(F.layer_norm(x, x.shape[-1:]))


assert_whole(reach(normed, x), 5, "also after a layer norm the reach should be found")
assert_whole(
    reach(lambda x: x + x.roll(5, 1)[..., [3]] ** 2, x),
    5,
    "also a token of which one feature counts should be found",
)
assert_whole(
    reach(lambda x: torch.cat([x[..., :3], x[..., 3:] + x.roll(6, 1)[..., :1]], -1), x),
    6,
    "one feature of the last vector that changes counts, whichever it is",
)
assert_whole(
    reach(lambda x: x + x.roll(7, 1) * 1e-4, x), 7, "a token of little influence counts, too"
)
assert_whole(
    reach(lambda x: x + x[:, [0]] * (torch.arange(9) < 8)[:, None] + x.roll(2, 1), x),
    2,
    "only the last token's vector should be looked at",
)
silent = before.clone()
silent[:, 5] = 0
assert_whole(
    reach(window_mean(3), silent),
    3,
    "a token of zeros counts, too: another one in its place is heard",
)
assert torch.equal(x, before), "the text should be left unchanged"
### END HIDDEN TESTS

# %% [markdown]
# **Try it: what is the same, and how far one hears.** It uses your `run_segments` of 14.2.


# %%
def attending(width: int, seed: int) -> Callable[[Tensor, Tensor], Tensor]:
    """A layer of causal attention, with drawn numbers and torch's own code."""
    torch.manual_seed(seed)
    weights = torch.randn(3, width, width, dtype=torch.float64) / width**0.5

    def layer(x, memory):
        """New vectors for x, which also sees what is remembered."""
        whole = torch.cat([memory, x], dim=1)
        q, k, v = x @ weights[0], whole @ weights[1], whole @ weights[2]
        seen = torch.ones(x.shape[1], whole.shape[1], dtype=torch.bool).tril(memory.shape[1])
        return x + F.scaled_dot_product_attention(q, k, v, seen)

    return layer


if watched():  # not while the notebook is graded
    prediction = predicted(predicted_same, WAYS)
    torch.manual_seed(0)
    text = torch.randn(1, 32, 8, dtype=torch.float64, requires_grad=True)
    layers = [attending(8, seed) for seed in range(4)]

    def last_of(depth, part, length, mem_len):
        """The last 4 tokens' vectors, of a text that is run in segments."""
        return run_segments(layers[:depth], part, length, mem_len)[:, -4:]

    def alike(one, other):
        """Say whether two tensors are the same."""
        return "same" if (one - other).abs().max() < 1e-10 else "different"

    def slope(outputs):
        """The gradient that reaches the first token."""
        return torch.autograd.grad(outputs.sum(), text)[0][:, 0]

    measured = {
        f"{name}, read anew": alike(last_of(depth, text, 4, 4), last_of(depth, text[:, -8:], 8, 0))
        for name, depth in (("one layer", 1), ("two layers", 2))
    }
    kept, once = last_of(2, text, 4, 32), last_of(2, text, 32, 0)
    measured |= {
        "two layers, whole text": alike(kept, once),
        "its gradient": alike(slope(kept), slope(once)),
    }
    compare(prediction, measured)
    depths = range(1, 5)
    text = text.detach()
    found = {
        f"memory of {mem_len}": [
            reach(lambda x, d=depth, m=mem_len: run_segments(layers[:d], x, 4, m), text)
            for depth in depths
        ]
        for mem_len in (0, 2, 4)
    }
    print(found)
    plots.lines(depths, found, "How far the last token hears", "layers", "tokens back")
    plt.show()

# %% [markdown]
# <details><summary>What happened</summary>
#
# One layer reads its memory as it is: vectors of tokens, the same ones that a new pass would read. The second layer's memory holds
# what the first one made of old tokens **when they were new**, and that depended on tokens which lie before the last 8. So it
# knows more than a new pass, and each layer adds a segment's length to the reach, also where the memory holds only half a segment: its oldest token has
# heard of its own segment's beginning, and of that one's memory. With a memory as long as the text
# nothing is missing, so the numbers are those of one pass. The gradient is not: it ends where the segment begins.
#
# </details>

# %% [markdown]
# ## 14.4 Content and distance   (5 points, about 45 minutes, difficulty 4 of 5)
#
# **Objective.** Build the attention of Transformer-XL, whose score has four terms and no positions.
#
# `RelativeAttention(encoding, num_heads)` gets a table $R$ (max_len, $D$), whose row $d$ is the vector of the **distance** $d$. It has the attributes
#
# - `w_q`, `w_k`, `w_v`, `w_r`, `w_o`: `nn.Linear(D, D)` without bias. Head $h$ has columns $h d_k$ to $(h + 1) d_k - 1$ of
#   what the first four return;
# - `u` and `v`: the content bias and the position bias, `nn.Parameter`s $(H, d_k)$ of zeros;
# - `encoding`: a buffer that holds $R$.
#
# `forward(x, memory)`, for $(B, n, D)$ and $(B, m, D)$, returns $(B, n, D)$. Queries are made from `x`; keys and values from memory and
# `x`. For a query in place $m + i$ and a key in place $j \le m + i$ the score in each head is
#
# $$s_{ij} = \frac{q_i \cdot k_j + q_i \cdot r_{m+i-j} + u \cdot k_j + v \cdot r_{m+i-j}}{\sqrt{d_k}},\qquad r_d = W_r R_d .$$
#
# Then softmax over $j$, a weighted mean of the values, heads side by side, `w_o`. Use the memory as it comes; it is detached elsewhere. Compute in the
# dtype that comes in: in float64 the tests look at ten digits.
#
# <details><summary>Hint 1: a question</summary>
#
# The four terms are two products. Which two vectors are multiplied with $k_j$, and which two with $r$?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# `(q + u) @ k.mT` gives the terms with content. A matrix of distances, $(n, K)$, says which row of $R$ each pair needs; where a key lies ahead, take any
# row, the mask hides it. `torch.einsum` or `gather` does the rest.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - Right without memory, wrong with one: query $i$ stands in place $m + i$, for the distance and for the mask.
# - Small differences everywhere: are all four terms divided?
# - No gradient for `u`: it stands beside the query, not beside the key.
#
# </details>


# %% solution="relative-attention"
class RelativeAttention(nn.Module):
    """Attention by content and distance over a memory and a segment.

    Args:
        encoding: a vector for each distance, (max_len, d_model).
        num_heads: number of heads; it divides d_model.
    """

    encoding: Tensor

    def __init__(self, encoding: Float[Tensor, "max_len D"], num_heads: int) -> None:
        super().__init__()
        ### BEGIN SOLUTION
        d_model = encoding.shape[1]
        self.num_heads = num_heads
        self.w_q = nn.Linear(d_model, d_model, bias=False)
        self.w_k = nn.Linear(d_model, d_model, bias=False)
        self.w_v = nn.Linear(d_model, d_model, bias=False)
        self.w_r = nn.Linear(d_model, d_model, bias=False)
        self.w_o = nn.Linear(d_model, d_model, bias=False)
        self.u = nn.Parameter(torch.zeros(num_heads, d_model // num_heads))
        self.v = nn.Parameter(torch.zeros(num_heads, d_model // num_heads))
        self.register_buffer("encoding", encoding)
        ### END SOLUTION

    def forward(
        self, x: Float[Tensor, "B n D"], memory: Float[Tensor, "B m D"]
    ) -> Float[Tensor, "B n D"]:
        """Return new vectors for x, whose tokens come after those of the memory."""
        ### BEGIN SOLUTION
        whole = torch.cat([memory, x], dim=1)
        m, total = memory.shape[1], whole.shape[1]
        q = self.w_q(x).unflatten(-1, (self.num_heads, -1))  # (B, n, H, d_k)
        k = self.w_k(whole).unflatten(-1, (self.num_heads, -1))
        values = self.w_v(whole).unflatten(-1, (self.num_heads, -1))
        distances = torch.arange(m, total)[:, None] - torch.arange(total)  # (n, K)
        r = self.w_r(self.encoding[:total]).unflatten(-1, (self.num_heads, -1))
        r = r[distances.clamp(min=0)]  # (n, K, H, d_k)
        scores = torch.einsum("bihd,bjhd->bhij", q + self.u, k)
        scores = scores + torch.einsum("bihd,ijhd->bhij", q + self.v, r)
        scores = (scores / q.shape[-1] ** 0.5).masked_fill(distances < 0, -math.inf)
        mixed = torch.einsum("bhij,bjhd->bihd", scores.softmax(-1), values)
        return self.w_o(mixed.flatten(2))
        ### END SOLUTION


# %% test="relative-attention-parts" points=1
table = draw((9, 6), seed=51, dtype=torch.float32)
module: Any = RelativeAttention(table, 3)
for name in ("w_q", "w_k", "w_v", "w_r", "w_o"):
    assert isinstance(getattr(module, name, None), nn.Linear), f"{name} should be an nn.Linear"
assert_shape(module.u, (3, 2), "u has a vector of d_k numbers for each head")
assert_shape(module.v, (3, 2), "v has a vector of d_k numbers for each head")
assert_close(module.encoding, table, "encoding should hold the table of distances")
visible_passed()
### BEGIN HIDDEN TESTS
count = sum(p.numel() for p in RelativeAttention(draw((5, 8)), 2).parameters())
assert count == 5 * 64 + 2 * 8, (
    "what is learned should be five matrices without bias, and u and v; the table is a buffer\n"
    f"Yours learns {count} numbers, expected {5 * 64 + 2 * 8}."
)
assert "encoding" in dict(module.named_buffers()), (
    "the table should be a buffer, so that it goes where the module goes"
)
assert_close(module.u.detach(), torch.zeros(3, 2), "u should begin with zeros")
assert_close(module.v.detach(), torch.zeros(3, 2), "v should begin with zeros")
### END HIDDEN TESTS


# %% test="relative-attention-values" points=3
def by_loops(module: Any, table: Tensor, heads: int, x: Tensor, memory: Tensor) -> Tensor:
    """The same, one pair of tokens after the other."""
    d_k, m = x.shape[-1] // heads, memory.shape[1]
    rows = []
    for b in range(x.shape[0]):
        whole = torch.cat([memory[b], x[b]])
        for i in range(x.shape[1]):
            mixed = []
            for h in range(heads):
                own = slice(h * d_k, (h + 1) * d_k)
                w_q, w_k, w_v, w_r = (
                    getattr(module, name).weight[own] for name in ("w_q", "w_k", "w_v", "w_r")
                )
                q, scores = w_q @ x[b, i], []
                for j in range(m + i + 1):
                    k, r = w_k @ whole[j], w_r @ table[m + i - j].to(x)
                    scores.append(q @ k + q @ r + module.u[h] @ k + module.v[h] @ r)
                weights = (torch.stack(scores) / d_k**0.5).softmax(0)
                mixed.append(weights @ (whole[: m + i + 1] @ w_v.T))
            rows.append(module.w_o.weight @ torch.cat(mixed))
    return torch.stack(rows).view(x.shape)


table = draw((9, 6), seed=52)
module = shaken(RelativeAttention(table, 2))
x, memory = draw((2, 3, 6), (2, 4, 6), seed=53)
assert_close(
    module(x, memory).detach(),
    by_loops(module, table, 2, x, memory).detach(),
    "segment of 3, memory of 4, two heads: the output should be that of the four terms, pair by pair",
    atol=1e-10,
)
visible_passed()
### BEGIN HIDDEN TESTS
table = draw((12, 6), seed=54)
module = shaken(RelativeAttention(table, 3), seed=1)
x, memory = draw((2, 4, 6), (2, 2, 6), seed=55)
assert_sound(
    module,
    [x, memory],
    like=lambda x, memory: by_loops(module, table, 3, x, memory),
    claim="with other sizes the output should be that of the four terms, pair by pair",
    says="the module should behave like any module, and its score have all four terms",
)
### END HIDDEN TESTS

# %% test="relative-attention-segments" points=1
table = draw((8, 4), seed=56)
module = shaken(RelativeAttention(table, 2), seed=2)
x = draw((1, 8, 4), seed=57)
whole = module(x, x[:, :0]).detach()
later = module(x[:, 5:], x[:, :5]).detach()
assert_close(
    later,
    whole[:, 5:],
    "a memory that holds all before should give what one pass gives",
    atol=1e-10,
)
visible_passed()
### BEGIN HIDDEN TESTS
for start in (1, 4, 7):
    assert_close(
        module(x[:, start:], x[:, :start]).detach(),
        whole[:, start:],
        "wherever the segment begins, a memory that holds all before should give what one pass gives",
        atol=1e-10,
    )
again = module(x[:, 5:], x[:, 2:5]).detach()
assert (again - later).abs().max() > 1e-3, "tokens should see the memory, the oldest part of it too"
moved = module(torch.cat([x[:, 5:], x[:, :1]], dim=1), x[:, 2:5]).detach()
assert_close(moved[:, :3], again, "a token should not see one that comes after it", atol=1e-10)
module.float()
assert_close(
    module(x[:, 5:].float(), x[:, :5].float()).detach(),
    whole[:, 5:].float(),
    "in float32, too, segments should give what one pass gives",
    atol=1e-5,
)
### END HIDDEN TESTS

# %% [markdown]
# ## 14.5 Distances without an index   (2 points, about 25 minutes, difficulty 4 of 5)
#
# **Objective.** Turn scores by distance into scores by key, with no table of indices.
#
# The products $(q_i + v) \cdot r_d$, for all distances at once, are one matrix product: $(\dots, n, K)$. In the customary order column $c$ belongs to
# distance $K - 1 - c$: the largest distance first. `rel_shift(scores)` returns a tensor of the same shape whose entry $(i, j)$ is that of the
# distance between query $i$, in place $K - n + i$, and key $j$: of $K - n + i - j$. Where the key lies ahead, return any finite numbers; a
# mask hides them. There may be any number of axes in front, and $n \le K$; gradients flow back to `scores`.
#
# Try to do it with padding and a change of shape alone: row $i$ has to move left by $n - 1 - i$ columns.
#
# <details><summary>Hint 1: a question</summary>
#
# Write the rows one after the other into one long line. What does one more entry in front of each row do to the rows
# that follow, if you cut the line into the old lengths?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# A column of zeros on the left: $(n, K + 1)$. The same numbers as $(K + 1, n)$. Leave the first row out, and read the rest as $(n, K)$.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - All rows are off by the same number of columns: which end is left out?
# - Right for $n = K$ only: the shift depends on $n$, the width on $K$.
#
# </details>


# %% solution="rel-shift"
def rel_shift(scores: Float[Tensor, "... n K"]) -> Float[Tensor, "... n K"]:
    """Turn columns by distance, the largest first, into columns by key."""
    ### BEGIN SOLUTION
    *front, n, keys = scores.shape
    padded = F.pad(scores, (1, 0)).reshape(*front, keys + 1, n)
    return padded[..., 1:, :].reshape(scores.shape)
    ### END SOLUTION


# %% test="rel-shift-square" points=1
def shifted_by_loops(scores: Tensor) -> Tensor:
    """The same, entry by entry, with 0 where the key lies ahead."""
    n, keys = scores.shape[-2:]
    wanted = torch.zeros_like(scores)
    for i in range(n):
        for j in range(keys - n + i + 1):
            distance = keys - n + i - j
            wanted[..., i, j] = scores[..., i, keys - 1 - distance]
    return wanted


by_distance = torch.tensor([[2.0, 1.0, 0.0]] * 3) + 10 * torch.arange(3.0)[:, None]
shifted = rel_shift(by_distance)
assert_shape(shifted, (3, 3), "the shape should stay as it is")
assert torch.isfinite(shifted).all(), "also where the key lies ahead, numbers should be finite"
assert_close(
    shifted.tril(),
    torch.tensor([[0.0, 0.0, 0.0], [11.0, 10.0, 0.0], [22.0, 21.0, 20.0]]),
    "three queries, three keys: on the diagonal should stand distance 0, left of it 1, then 2",
)
visible_passed()
### BEGIN HIDDEN TESTS
for shape in ((1, 1), (5, 5), (2, 3, 4, 4)):
    scores = draw(shape, seed=61)
    before = scores.clone()
    assert_close(
        rel_shift(scores).tril(),
        shifted_by_loops(scores),
        "with any number of axes in front, each row should move by its own number of columns",
    )
    assert torch.equal(scores, before), "the scores should be left unchanged"
### END HIDDEN TESTS

# %% test="rel-shift-memory" points=1
scores = draw((2, 3, 5), seed=62)
shifted = rel_shift(scores)
assert_shape(shifted, (2, 3, 5), "the shape should stay as it is")
assert_close(
    shifted.tril(2),
    shifted_by_loops(scores),
    "three queries after two remembered tokens: query 0 stands in place 2",
)
visible_passed()
### BEGIN HIDDEN TESTS
for shape in ((1, 6), (2, 7), (3, 2, 4, 9)):
    n, keys = shape[-2:]
    scores = draw(shape, seed=63, dtype=torch.float32).requires_grad_()
    shifted = rel_shift(scores)
    wanted = shifted_by_loops(scores)
    assert_close(
        shifted.tril(keys - n), wanted, "with a longer memory, each key should get its own distance"
    )
    assert_gradients(
        shifted.tril(keys - n), wanted, {"scores": scores}, "gradients should find their way back"
    )
    assert_dtype(shifted, torch.float32, "the dtype should stay as it is")
### END HIDDEN TESTS

# %% [markdown]
# ## 14.6 Four leaks in a memory   (2 points, about 20 minutes, difficulty 3 of 5)
#
# **Objective.** Find mistakes under which the loss falls all the same.
#
# Two functions of a friend's are in the next cell. A model that uses them learns. You tried things out, and found four
# symptoms:
#
# - `"grows"`: each step of training takes longer, and more storage, the more segments a text has;
# - `"mixes"`: with a memory as long as the text, two layers do not give what one pass gives. With layers that return what they
#   are given, all is as it should be;
# - `"ages"`: the token right before a query has distance 1 in the first segment; in the second one, with a memory of 4, it has distance $-3$;
# - `"forgets"`: in each segment, a query sees one token fewer than it should.
#
# Say which line is behind each.
#
# <details><summary>Hint 1: a question</summary>
#
# Which of the lines treat a token of the memory and a token of the segment differently?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Write the two small matrices down for $n = 2$, $m = 1$: the distances, and what is seen.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - Unsure about `"mixes"`: what was layer 1 given, and what is in its memory?
# - Unsure about `"forgets"`: may a token see itself?
#
# </details>


# %%
def friends_segments(layers, x, length, mem_len):
    memories = [x[:, :0] for _ in layers]  # line 1
    outputs = []  # line 2
    for segment in x.split(length, dim=1):  # line 3
        for i, layer in enumerate(layers):  # line 4
            made = layer(segment, memories[i])  # line 5
            both = torch.cat([memories[i], made.detach()], dim=1)  # line 6
            memories[i], segment = both[:, max(0, both.shape[1] - mem_len) :], made  # line 7
        outputs.append(segment)  # line 8
    return torch.cat(outputs, dim=1)  # line 9


def friends_weights(q, k, r, memories):  # line 10
    n, keys = q.shape[1], k.shape[1]  # line 11
    memories.append(k)  # line 12: to look at them later
    distances = torch.arange(n)[:, None] - torch.arange(keys)  # line 13
    scores = q @ k.mT + (q[:, :, None] * r[distances.abs()]).sum(-1)  # line 14
    seen = torch.ones(n, keys, dtype=torch.bool).tril(keys - n - 1)  # line 15
    seen[0, 0] = True  # line 16: so that the first query sees something
    return scores.masked_fill(~seen, -torch.inf).softmax(-1)  # line 17


# %% solution="leak-lines"
def leak_lines() -> dict[str, int]:
    """By symptom ("grows", "mixes", "ages", "forgets"), the line that is behind it."""
    ### BEGIN SOLUTION
    return {"grows": 12, "mixes": 6, "ages": 13, "forgets": 15}
    ### END SOLUTION


# %% test="leak-lines-memory" points=1
lines = leak_lines()
assert isinstance(lines, dict), "leak_lines should return a dict, from symptoms to lines"
assert sorted(lines) == ["ages", "forgets", "grows", "mixes"], (
    "the four symptoms are 'grows', 'mixes', 'ages' and 'forgets'"
)
assert all(line in range(1, 18) for line in lines.values()), (
    f"lines have the numbers 1 to 17\nYours are {list(lines.values())}."
)
visible_passed()
### BEGIN HIDDEN TESTS
assert lines["grows"] == 12, "the line behind 'grows' is another one"
assert lines["mixes"] == 6, "the line behind 'mixes' is another one"
### END HIDDEN TESTS

# %% test="leak-lines-distance" points=1
lines = leak_lines()
assert isinstance(lines, dict), "leak_lines should return a dict, from symptoms to lines"
visible_passed()
### BEGIN HIDDEN TESTS
assert lines["ages"] == 13, "the line behind 'ages' is another one"
assert lines["forgets"] == 15, "the line behind 'forgets' is another one"
### END HIDDEN TESTS

# %% [markdown]
# ## 14.7 A span that can be learned, and be cut off   (5 points, about 40 minutes, difficulty 3 of 5)
#
# **Objective.** Let each head's weights end at a distance that has a gradient, and turn short spans into saved time.
#
# `span_weights(scores, z, ramp)` gets scores $(B, H, n, K)$ of all pairs, the spans $z$ $(H)$, none of them negative, and the length $R > 0$ of the
# ramp. With $d$ for the distance of query $i$, in place $K - n + i$, and key $j$, weights are
#
# $$a_{ij} = \frac{m(d_{ij})\, e^{s_{ij}}}{\sum_{j'} m(d_{ij'})\, e^{s_{ij'}}},\qquad m(d) = \operatorname{clamp}\left(\frac{R + z - d}{R},\, 0,\, 1\right),$$
#
# where the sum runs over the keys that are not ahead, the token itself among them; keys ahead get 0. So each
# row has the sum 1, and with a span as long as the text it is the causal softmax. Scores may be large, also
# where $m$ is 0. Compute in the dtype that comes in: in float64 the tests look at ten digits. `lab.longer_context`, where something like it
# stands, is not allowed here.
#
# A factor of 0 saves nothing: the score has been computed by then. So write `trimmed(memory, z, ramp)` as well. It returns the last part of the memory, $(B, m, D)$ to
# $(B, m', D)$: exactly those vectors that at least one query of the segment can weigh in at least one head. A key counts where its distance is **smaller** than $R + z$.
# The segment begins right after the memory. Gradients, where there are any, flow back to what is kept.
#
# <details><summary>Hint 1: a question</summary>
#
# A factor in front of $e^{s}$: as what can it be written inside the exponent? And where it is 0? For `trimmed`: which query of the
# segment stands nearest to the memory, and at which distance from it is the memory's last vector?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Distances $(n, K)$, factors $(H, n, K)$, a boolean mask of pairs whose factor is above 0 and which are not ahead. Hide the others, then take the largest score off,
# or add the logarithm of the factor and let softmax do it. For `trimmed`, count the whole numbers $d \ge 1$ with $d < R + \max z$, and take no
# more than there are. Mind a count of 0.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - The sum is below 1: the factor belongs into the denominator, too.
# - `nan` with large scores, or in the gradient: $\log 0$, or $e^{1000}$. Hide these pairs first.
# - No gradient for $z$: it stays a tensor, not rounded.
# - `trimmed` keeps one too many where $R + z$ is whole: at this distance the factor is 0.
# - It keeps all where nothing is needed: `x[:, -0:]`.
#
# </details>


# %% solution="span-weights"
def span_weights(
    scores: Float[Tensor, "B H n K"], z: Float[Tensor, "H"], ramp: float
) -> Float[Tensor, "B H n K"]:
    """Return causal weights that fade, in each head, beyond its span."""
    ### BEGIN SOLUTION
    n, keys = scores.shape[-2:]
    distances = torch.arange(keys - n, keys)[:, None] - torch.arange(keys)
    factors = ((ramp + z[:, None, None] - distances) / ramp).clamp(0, 1)  # (H, n, K)
    seen = (factors > 0) & (distances >= 0)
    bent = scores + torch.where(seen, factors, 1.0).log()
    return bent.masked_fill(~seen, -math.inf).softmax(-1)
    ### END SOLUTION


# %% test="span-weights-values" points=2
z = torch.tensor([1.0, 0.0], dtype=torch.float64)
weights = span_weights(torch.zeros(1, 2, 1, 5, dtype=torch.float64), z, 2.0)
assert_shape(weights, (1, 2, 1, 5), "there should be a weight for each score")
assert_close(
    weights[0, 0, 0],
    torch.tensor([0.0, 0.0, 0.2, 0.4, 0.4]).double(),
    "equal scores, span 1, ramp 2: the token itself and the one before count 1, the next counts a half",
)
assert_close(
    weights[0, 1, 0],
    torch.tensor([0.0, 0.0, 0.0, 1 / 3, 2 / 3]).double(),
    "the second head, with span 0, should count the token before half, and no other",
)
visible_passed()


### BEGIN HIDDEN TESTS
def spanned_by_loops(scores: Tensor, z: Tensor, ramp: float) -> Tensor:
    """The same, row by row."""
    rows = torch.zeros_like(scores)
    n, keys = scores.shape[-2:]
    for h in range(scores.shape[1]):
        for i in range(n):
            age = keys - n + i
            factors = [torch.clamp((ramp + z[h] - (age - j)) / ramp, 0, 1) for j in range(age + 1)]
            near = [j for j in range(age + 1) if factors[j] > 0]
            top = scores[:, h, i, near].max(-1).values
            parts = {j: factors[j] * (scores[:, h, i, j] - top).exp() for j in near}
            for j in near:
                rows[:, h, i, j] = parts[j] / sum(parts.values())
    return rows


for n, keys, ramp in ((4, 4, 2.0), (4, 9, 3.0), (1, 6, 1.5), (6, 6, 0.5)):
    scores = draw((2, 3, n, keys), seed=71).requires_grad_()
    z = torch.tensor([0.3, 4.4, 1.7], dtype=torch.float64, requires_grad=True)
    weights = span_weights(scores, z, ramp)
    wanted = spanned_by_loops(scores, z, ramp)
    assert_close(
        weights,
        wanted,
        "each head should have a span of its own, measured back from each query",
        atol=1e-10,
    )
    if ramp > 0.5:
        assert_gradients(
            weights,
            wanted,
            {"scores": scores, "z": z},
            "a span should learn from the keys on its ramp, and the scores from all that are seen",
        )
large = draw((1, 3, 4, 7), seed=72)
large[..., 0] += 1000.0
large[..., 6] += 900.0
z = torch.tensor([0.0, 1.0, 2.5], dtype=torch.float64)
kept = large.clone()
with expect_no_error("large scores should be no error"):
    weights = span_weights(large, z, 2.0)
assert_close(
    weights,
    spanned_by_loops(large, z, 2.0),
    "a large score that is out of reach, or ahead, should change nothing",
)
assert torch.equal(large, kept), "the scores should be left unchanged"
single = span_weights(large.float(), z.float(), 2.0)
assert_dtype(single, torch.float32, "scores in float32 should give weights in float32")
### END HIDDEN TESTS

# %% test="span-weights-ends" points=1
scores = draw((1, 1, 5, 5), seed=73)
hidden = torch.ones(5, 5, dtype=torch.bool).triu(1)
causal = scores.masked_fill(hidden, -math.inf).softmax(-1)
z = torch.full((1,), 4.0, dtype=torch.float64)
assert_close(
    span_weights(scores, z, 2.0),
    causal,
    "with a span as long as the text, the weights should be those of the causal softmax",
    atol=1e-10,
)
visible_passed()
### BEGIN HIDDEN TESTS
for dtype, atol in ((torch.float32, 1e-5), (torch.float64, 1e-10)):
    span = torch.full((1,), 4.0, dtype=dtype)
    assert_close(
        span_weights(scores.to(dtype), span, 3.0),
        causal.to(dtype),
        "with a span as long as the text, the weights should be those of the causal softmax",
        atol=atol,
    )
scores = draw((1, 3, 2, 6), seed=74)
z = torch.tensor([9.0, 1.5, 0.25], dtype=torch.float64, requires_grad=True)
weights = span_weights(scores, z, 1.0)
(pull,) = torch.autograd.grad((weights * draw((1, 3, 2, 6), seed=75)).sum(), z)
assert_close(pull[0], torch.tensor(0.0).double(), "beyond the text a span has no slope")
assert pull[1].abs() > 1e-3 and pull[2].abs() > 1e-3, (
    "a span whose ramp has a key on it should have a gradient"
)
whole = torch.tensor([1.0, 0.0], dtype=torch.float64, requires_grad=True)  # the ramp ends at a key
weights = span_weights(draw((1, 2, 3, 6), seed=77), whole, 2.0)
(pull,) = torch.autograd.grad((weights * draw((1, 2, 3, 6), seed=78)).sum(), whole)
assert torch.isfinite(pull).all(), (
    "a key at the very distance at which the factor becomes 0 should leave the gradient of z finite"
    f"\nYours is {pull.tolist()}."
)
assert_close(
    span_weights(draw((1, 1, 3, 3), seed=76), z[2:].detach() * 0, 1.0)[0, 0],
    torch.eye(3).double(),
    "span 0 and ramp 1 leave each token itself alone",
)
### END HIDDEN TESTS


# %% solution="trimmed"
def trimmed(
    memory: Float[Tensor, "B m D"], z: Float[Tensor, "H"], ramp: float
) -> Float[Tensor, "B needed D"]:
    """Return the part of a memory that some query can weigh in some head."""
    ### BEGIN SOLUTION
    needed = max(0, math.ceil(ramp + z.max().item()) - 1)
    return memory[:, max(0, memory.shape[1] - needed) :]
    ### END SOLUTION


# %% test="trimmed-count" points=2
memory = draw((2, 9, 3), seed=81)
rest = trimmed(memory, torch.tensor([0.5, 4.3]).double(), 2.0)
assert_shape(rest, (2, 6, 3), "spans 0.5 and 4.3, ramp 2: distances 1 to 6 are below 6.3")
assert_close(rest, memory[:, 3:], "what is left should be the memory's last vectors")
rest = trimmed(memory, torch.tensor([1.0]).double(), 2.0)
assert_shape(rest, (2, 2, 3), "span 1, ramp 2: at distance 3 the factor is 0")
visible_passed()
### BEGIN HIDDEN TESTS
for m, ramp in ((0, 2.25), (6, 0.5), (30, 1.0), (30, 2.25)):
    memory = draw((1, m, 2), seed=82).requires_grad_()
    for spans in ([0.0], [0.0, 7.0], [3.5, 3.6, 1.0], [28.75]):
        z = torch.tensor(spans, dtype=torch.float64)
        wanted = sum(1 for d in range(1, m + 1) if d < ramp + max(spans))
        with expect_no_error("any spans should do, also ones that need no memory"):
            rest = trimmed(memory, z, ramp)
        assert z.tolist() == spans, "the spans should be left unchanged"
        assert_shape(
            rest,
            (1, wanted, 2),
            f"a memory of {m}, spans {spans}, ramp {ramp}: all that is weighed should stay, and "
            "no more",
        )
        if wanted:
            assert_close(rest, memory[:, m - wanted :], "the last vectors should stay")
assert_gradients(rest, memory, {"memory": memory}, "nothing should be cut off")
assert_dtype(rest, torch.float64, "vectors should stay as they are")
single = trimmed(memory.float(), z.float(), 1.0)
assert_dtype(single, torch.float32, "vectors in float32 should stay so")
### END HIDDEN TESTS

# %% [markdown]
# ## 14.8 What heads learn to see   (2 points, about 15 minutes, difficulty 2 of 5)
#
# **Objective.** Predict which spans are learned, then measure them.
#
# The task: *at each place, say which token stood 12 places ago*. The model has one layer with two heads. Each head's span begins at 40,
# its largest value, and its ramp is 4 long. The loss gets a price: 0.02 times the mean span. Where do the two spans end? Let
# `predicted_spans` return one of the texts in `ENDS`; the point is for having predicted.
#
# Then run the cell, some 10 seconds, and let `measured_spans` return what it prints last: the two spans with the price, the
# two without one, and the loss at the end with the price, as a dictionary with the names `"priced"`, `"free"` and `"loss"`. It uses your
# `span_weights` of 14.7; where it is not answered yet, the lab's stands in.
#
# <details><summary>Hint 1: a question</summary>
#
# How many heads does the task need? And how large has the factor at distance 12 to be, if scores may be as large as they like?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# The factor at distance 12 is above 0 as long as $z > 12 - 4$.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - *predict first*: `predicted_spans` returns nothing yet, or none of the texts.
# - Your numbers are refused: return all of one run, as they were printed.
#
# </details>

# %%
ENDS = (
    "both a little above 12",
    "one a little above 12, the other at 0",
    "one between 8 and 12, the other near 0",
    "both near 0",
)


# %% solution="predicted-spans"
def predicted_spans() -> str:
    """What you expect: one of ENDS."""
    ### BEGIN SOLUTION
    return "one a little above 12, the other at 0"
    ### END SOLUTION


# %% test="predicted-spans-made" points=1
ends = predicted_spans()
assert isinstance(ends, str), "a prediction is one of the texts in ENDS"
assert ends in ENDS, f"a prediction is one of the texts {ENDS}\nYours is {ends!r}."
visible_passed()

# %%
if watched():  # not while the notebook is graded
    prediction = predicted(predicted_spans, ENDS)
    torch.set_num_threads(1)  # small matrices: one core is fastest
    weigh = span_weights
    try:
        weigh(torch.zeros(1, 1, 1, 1), torch.zeros(1), 1.0)
    except NotImplementedError:
        weigh = floored
    runs = {}
    for name, price in (("free", 0.0), ("priced", 0.02)):
        torch.manual_seed(0)
        runs[name] = learn_spans(SpanModel(weigh=weigh), back=12, steps=300, price=price)
    compare(prediction, [round(z, 1) for z in runs["priced"][-1][1]])
    paths = {
        f"head {h}, {name}": [spans[h] for _, spans in runs[name]] for name in runs for h in (0, 1)
    }
    ax = plots.lines(range(300), paths, "Spans that are learned", "step", "span")
    ax.axhline(12, color=plots.INK, linewidth=1)
    plt.show()
    ends = {name: [round(z, 2) for z in run[-1][1]] for name, run in runs.items()}
    print({**ends, "loss": round(runs["priced"][-1][0], 4)})


# %% solution="measured-spans"
def measured_spans() -> dict[str, Any]:
    """What the cell printed last."""
    ### BEGIN SOLUTION
    return {"free": [12.02, 12.15], "priced": [0.0, 10.3], "loss": 0.0001}
    ### END SOLUTION


# %% test="measured-spans-consistent" points=1
found = measured_spans()
assert isinstance(found, dict), "measured_spans should return a dict"
assert sorted(found) == ["free", "loss", "priced"], (
    "the measurements are called 'free', 'priced' and 'loss'"
)
assert len(found["free"]) == 2 and len(found["priced"]) == 2, "there are two spans in each run"
visible_passed()
### BEGIN HIDDEN TESTS
short, long = sorted(float(z) for z in found["priced"])
free = [float(z) for z in found["free"]]
assert short >= 0 and long <= 40 and all(0 <= z <= 40 for z in free), "spans lie between 0 and 40"
assert 8 < long < 13, (
    "to see distance 12 at all, one span has to be above 12 minus the ramp; a price lets it be no "
    "longer than it must"
)
assert max(free) > long, "without a price, the longest span should be longer than with one"
assert 8 < max(free) < 30, (
    "keys that are too far back disturb, so spans shrink without a price, too"
)
assert 0 <= float(found["loss"]) < 0.2, "with the price, too, the task should be learned"
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>What happened</summary>
#
# One head is enough, and the price lets the other fall to 0. The head that copies does not need the factor to be 1 at
# distance 12: it needs it not to be 0. Scores can make up for a small factor, so the span moves down towards $12 - R = 8$, where
# the ramp ends. Without the price, spans shrink as well, as long as keys on the ramp disturb; once the task is learned nothing pulls
# any more, and both heads end a little above 12. With other seeds the second head takes longer to fall.
#
# </details>

# %% [markdown]
# ## 14.9 Memory, span or window   (2 points, about 10 minutes, difficulty 2 of 5)
#
# **Objective.** Say which of the two ways is for what.
#
# In three to six sentences: (a) What can a memory give that a longer window of the same cost cannot, and what does it not give? Think of
# reach and of gradients. (b) A model has eight heads to a layer; seven spans are short, one is long. When does that save
# time, and when does it not?
#
# <details><summary>Hint 1: a question</summary>
#
# Whose work is done again when a window slides? And what is computed before a weight is multiplied by 0?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# For (a) compare layers times length with length, in 14.3, and what 14.1 cuts off. For (b) see the second half of 14.7.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - Unsure about (a): which part of a model would have to change, to write into the memory what is needed later?
# - Unsure about (b): who decides how much is cut off for all heads together?
#
# </details>

# %% [markdown] manual="memory-or-span" points=2
# ### BEGIN SOLUTION
# (a) A memory costs no more keys than a window of segment and memory together, but it reaches further: about layers times length, since old vectors were computed when they
# were new. And nothing is computed twice. It does not give a gradient to what lies before the segment: the model learns to use what is kept, and not to keep what will be useful.
#
# (b) It saves time where the short heads' keys are cut off before the scores are computed, head by head. If all heads of a layer are one tensor, the longest
# span decides and nothing is saved; and a factor of 0 alone never saves anything.
#
# Marking: 1 point for (a), half each for reach and gradient. 1 point for (b): that the longest head decides, or that keys must be cut off before the scores.
# ### END SOLUTION

# %% [markdown]
# ## 14.10 Bonus: learn what to write   (3 points, about 35 minutes, difficulty 5 of 5)
#
# **Objective.** Let a loss reach back through a few memories, and no further. (A bonus: nothing in the chapter's models needs it.)
#
# In 14.2 the gradient ends where the segment begins. So what a layer put into its memory was never asked for by the loss of a later segment: a model learns to read what happens
# to be there. Recurrent networks go back some steps, then stop: *truncated backpropagation through time*.
#
# `run_back(layers, x, length, mem_len, back)` returns the same numbers as `run_segments` of 14.2. The gradient of segment $t$'s vectors reaches **all that was computed in the
# segments $t - \text{back}$ to $t$, and nothing that was computed before**:
#
# - their tokens, through any number of memories in between;
# - the layers' weights, for their work in these segments. The same weights worked in older segments, too; that does not count.
#
# Each segment counts back from itself: with `back` 1, segment 3 reaches segment 2, and segment 2 reaches segment 1. With `back` 0 everything is as in 14.2; with a `back` as large as the text nothing
# is cut off. A layer may be called more than once for a segment: that is the price.
#
# <details><summary>Hint 1: a question</summary>
#
# Segment 2 has to give a gradient when segment 3 asks, and none when segment 4 does. Can both be had from one and the same run over segment 2?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# For segment $t$, begin again at segment $s = \max(0, t - \text{back})$ with the memories that the layers had there, as numbers without history. Run on from $s$ to $t$ and detach nothing. Keep only the
# last segment's vectors. Where do the memories at the beginning of $s + 1$ come from? They were computed on the way.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - Right for $t \le$ `back` only: the run that begins again needs a memory, not an empty one.
# - The gradient reaches too far with a large `back`, and hardly anywhere right behind a cut: each segment counts from itself.
# - Tokens are right, weights are not: where the tokens alone are cut off, old work still counts for the weights.
# - The gradient runs on through a memory that you cut at an age: its younger vectors remember, too.
#
# </details>


# %% solution="run-back"
def run_back(
    layers: Sequence[Callable[[Tensor, Tensor], Tensor]],
    x: Float[Tensor, "B N D"],
    length: int,
    mem_len: int,
    back: int,
) -> Float[Tensor, "B N D"]:
    """Run layers over a text in segments; gradients reach back through so many of them.

    Source: Williams & Peng (1990), "An Efficient Gradient-Based Algorithm for On-Line Training of
    Recurrent Network Trajectories".
    """
    ### BEGIN SOLUTION
    segments = x.split(length, dim=1)
    starts = [[x[:, :0] for _ in layers]]  # the memories with which each segment begins
    outputs = []
    for t in range(len(segments)):
        first = max(0, t - back)
        memories = starts[first]
        for now in segments[first : t + 1]:
            moving, later = now, []
            for layer, memory in zip(layers, memories, strict=True):
                given = torch.cat([memory, moving], dim=1)
                later.append(given[:, max(0, given.shape[1] - mem_len) :])
                moving = layer(moving, memory)
            memories = later
            if len(starts) == first + 1:
                starts.append([memory.detach() for memory in memories])
        outputs.append(moving)
    return torch.cat(outputs, dim=1)
    ### END SOLUTION


# %% test="run-back-numbers" points=1
class Looking(nn.Module):
    """A layer of causal attention with one head; `mix` makes queries, keys and values."""

    def __init__(self, width: int, seed: int) -> None:
        super().__init__()
        self.mix = nn.Parameter(0.5 * draw((width, 3 * width), seed=seed))

    def forward(self, x: Tensor, memory: Tensor) -> Tensor:
        """New vectors for x, which also sees the memory."""
        whole = torch.cat([memory, x], dim=1)
        q, k, v = (whole @ self.mix).chunk(3, dim=-1)
        ahead = torch.ones(len(whole[0]), len(whole[0]), dtype=torch.bool).triu(1)
        weights = (q @ k.mT).masked_fill(ahead, -math.inf).softmax(-1)
        return x + (weights @ v.sin())[:, memory.shape[1] :]


x = draw((2, 7, 4), seed=91)
layers = [Looking(4, seed).requires_grad_(False) for seed in (92, 93)]
whole = x
for layer in layers:
    whole = layer(whole, x[:, :0])
for back in (0, 1, 9):
    assert_close(
        run_back(layers, x, 3, 7, back),
        whole,
        f"back {back}, a memory as long as the text: the numbers should be those of one pass",
        atol=1e-10,
    )
visible_passed()


### BEGIN HIDDEN TESTS
def by_windows(layers: Sequence[nn.Module], x: Tensor, length: int, mem_len: int) -> Tensor:
    """Layer by layer; a window over what the layer was given takes the place of its memory."""
    for layer in layers:
        starts = range(0, x.shape[1], length)
        new = [layer(x[:, s : s + length], x[:, max(0, s - mem_len) : s]) for s in starts]
        x = torch.cat(new, dim=1)
    return x


x = draw((1, 7, 4), seed=94)
before = x.clone()
for depth, length, mem_len, back in (
    (2, 3, 3, 1),
    (2, 2, 5, 2),
    (3, 2, 1, 1),
    (1, 4, 0, 1),
    (2, 2, 3, 20),
):
    layers = [Looking(4, seed).requires_grad_(False) for seed in range(95, 95 + depth)]
    assert_close(
        run_back(layers, x, length, mem_len, back),
        by_windows(layers, x, length, mem_len),
        "the numbers should be those of 14.2, however far back the gradient goes",
        atol=1e-10,
    )
assert torch.equal(x, before), "the text should be left unchanged"
single = run_back([lambda x, memory: x * 2], x.float(), 5, 7, 1)
assert_dtype(single, torch.float32, "vectors in float32 should stay so")
### END HIDDEN TESTS


# %% test="run-back-tokens" points=1
def reached(run: Callable[[Tensor], Tensor], x: Tensor, length: int) -> list[list[int]]:
    """For each segment, from which segments its vectors have a gradient."""
    leaf = x.detach().clone().requires_grad_()
    found = []
    for part in run(leaf).split(length, dim=1):
        (slope,) = torch.autograd.grad(part.sin().sum(), leaf, retain_graph=True)
        sizes = [piece.abs().max() for piece in slope.split(length, dim=1)]
        found.append([number for number, size in enumerate(sizes) if size > 0])
    return found


x = draw((1, 6, 4), seed=101)
layers = [Looking(4, seed) for seed in (102, 103)]
for back, wanted in (
    (0, [[0], [1], [2]]),
    (2, [[0], [0, 1], [0, 1, 2]]),
    (1, [[0], [0, 1], [1, 2]]),
):
    found = reached(lambda x, back=back: run_back(layers, x, 2, 4, back), x, 2)
    assert found == wanted, (
        f"back {back}: the vectors of segments 0, 1 and 2 should have gradients from {wanted}"
        f"\nYours have them from {found}."
    )
visible_passed()
### BEGIN HIDDEN TESTS
for depth, length, mem_len, back in ((2, 2, 5, 1), (2, 2, 3, 2), (3, 3, 9, 9), (1, 1, 7, 4)):
    layers = [Looking(4, seed).requires_grad_(False) for seed in range(104, 104 + depth)]
    x = draw((1, 7, 4), seed=108).requires_grad_()
    kept = whole = x
    for layer in layers:  # one pass, with nothing cut off
        starts = range(0, 7, length)
        new = [layer(whole[:, s : s + length], whole[:, max(0, s - mem_len) : s]) for s in starts]
        whole = torch.cat(new, dim=1)
    pull, wanted = draw(x.shape, seed=109), torch.zeros_like(x)
    for start in range(0, 7, length):
        part = slice(start, start + length)
        (one,) = torch.autograd.grad((whole * pull)[:, part].sum(), x, retain_graph=True)
        one[:, : max(0, start - back * length)] = 0
        wanted += one
    (found,) = torch.autograd.grad((run_back(layers, x, length, mem_len, back) * pull).sum(), x)
    assert_close(
        found,
        wanted,
        "tokens of the segments that are reached should get the whole gradient, through all "
        "memories in between, and older ones none",
        atol=1e-10,
    )
### END HIDDEN TESTS


# %% test="run-back-weights" points=1
def in_copies(layers: Sequence[Any], x: Tensor, length: int, mem_len: int) -> tuple[Tensor, list]:
    """A run with nothing cut off, in which each segment has weights of its own; both."""
    memories = [x[:, :0] for _ in layers]
    outputs, copies = [], []
    for segment in x.split(length, dim=1):
        own = [layer.mix.detach().clone().requires_grad_() for layer in layers]
        for i, (layer, mix) in enumerate(zip(layers, own, strict=True)):
            given = torch.cat([memories[i], segment], dim=1)
            segment = torch.func.functional_call(layer, {"mix": mix}, (segment, memories[i]))
            memories[i] = given[:, max(0, given.shape[1] - mem_len) :]
        outputs.append(segment)
        copies.append(own)
    return torch.cat(outputs, dim=1), copies


def weights_pulled(
    layers: Sequence[Any], x: Tensor, sizes: tuple[int, int, int], pull: Tensor
) -> tuple[Tensor, Tensor]:
    """Gradients for the layers' weights, all segments' together: found, and wanted."""
    length, mem_len, back = sizes
    mixes = [layer.mix for layer in layers]
    whole, copies = in_copies(layers, x, length, mem_len)
    wanted = [torch.zeros_like(mix) for mix in mixes]
    for t in range(len(copies)):
        part = slice(t * length, (t + 1) * length)
        used = [mix for own in copies[max(0, t - back) : t + 1] for mix in own]
        each = torch.autograd.grad((whole * pull)[:, part].sum(), used, retain_graph=True)
        for i, slope in enumerate(each):
            wanted[i % len(layers)] += slope
    output = run_back(layers, x, length, mem_len, back)
    found = torch.autograd.grad((output * pull).sum(), mixes)
    return torch.stack(found), torch.stack(wanted)


x = draw((1, 6, 4), seed=111)
layers = [Looking(4, seed) for seed in (112, 113, 114)]
pull = torch.zeros_like(x)
pull[:, 4:] = draw((1, 2, 4), seed=115)
found, wanted = weights_pulled(layers, x, (2, 2, 1), pull)
assert_close(
    found,
    wanted,
    "back 1: segment 2's gradient for the layers' weights should be that of their work in segments "
    "1 and 2",
    atol=1e-10,
)
visible_passed()
### BEGIN HIDDEN TESTS
for depth, sizes in (
    (2, (2, 2, 0)),
    (3, (2, 5, 1)),
    (2, (2, 3, 2)),
    (3, (3, 3, 9)),
):
    layers = [Looking(4, seed) for seed in range(116, 116 + depth)]
    x = draw((1, 7, 4), seed=119)
    found, wanted = weights_pulled(layers, x, sizes, draw(x.shape, seed=120))
    assert_close(
        found,
        wanted,
        "weights should get the gradient of their work in the segments that are reached, and of no "
        "other work of theirs",
        atol=1e-10,
    )
### END HIDDEN TESTS

# %% [markdown]
# **Try it: what is nobody's errand.** A model with two layers is to say which token stood 8 places ago. Its segments have 4 tokens, its memories 4. So the token is out of sight for both
# layers: layer 0 has to put it into vectors that layer 1 then remembers, and layer 1 to pick it up there one segment later. It takes some 10 seconds.

# %%
if watched():  # not while the notebook is graded
    torch.set_num_threads(1)
    curves = {f"back {back}": learn_relay(run_back, back, steps=120) for back in (0, 1)}
    ax = plots.lines(range(120), curves, "Which token stood 8 ago?", "step", "loss")
    ax.axhline(math.log(8), color=plots.INK, linewidth=1)
    plt.show()
    print({name: round(losses[-1], 3) for name, losses in curves.items()})

# %% [markdown]
# <details><summary>What happened</summary>
#
# With `back` 0 the loss stays where guessing one of eight tokens is, at $\ln 8 \approx 2.08$. The way is there: by 14.3's measure the last token hears further than 8 back. But layer 0 would have to
# write into its vectors what is of use in the *next* segment alone, and no loss of the next segment reaches it. With `back` 1 it does, and within a hundred steps the errand is learned. In real text
# what is useful later is mostly useful now as well, which is why Transformer-XL learns with `back` 0.
#
# </details>

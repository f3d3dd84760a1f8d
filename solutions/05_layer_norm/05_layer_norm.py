# %% [markdown]
# # 5 Residuals, LayerNorm and the feed-forward network
#
# Attention mixes tokens. In this notebook you build everything else that a Transformer layer is
# made of: layer normalisation, the addition that lets a token pass by each sub-layer, and the
# small network that works on every token alone. What you write here carries over: the finished
# model is made of your `LayerNorm` and your `FeedForward`.
#
# **How to work.** Run the cells from top to bottom. Replace each `# YOUR CODE HERE` and its `raise` by
# your answer, then run the test cell below it; its message says what is wrong. The visible tests
# are not all tests: hidden ones, with other sizes and numbers, run when the notebook is graded.
# Each question is tested on its own, so you may leave one open and go on. Before you hand in,
# restart the kernel and run all cells.
#
# **Where to read.** The book's page *Residuals, LayerNorm and the feed-forward network* teaches
# the same ideas with NumPy on one sequence.
#
# **Conventions.** Rows are tokens, the batch comes first: `x` is $(B, N, d_\text{model})$, that is
# $B$ sentences of $N$ tokens with $d_\text{model}$ features each. Three dots in a shape stand for
# any number of leading axes, or none. What comes out has the dtype of what goes in.

# %% setup
from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from lab.battery import assert_sound
from lab.check import (
    assert_close,
    assert_dtype,
    assert_gradients,
    assert_raises,
    assert_shape,
    assert_whole,
    draw,
    expect_no_error,
    parameters_of,
    unchanged,
    visible_passed,
)

# %% [markdown]
# ## 5.1 Layer normalisation   (5 points, about 25 minutes, difficulty 3 of 5)
#
# **Objective.** Bring every token to mean 0 and variance 1 over its own features, then let the
# model choose another scale and level for each feature (Ba et al. 2016).
#
# For one token $x$ with $d = d_\text{model}$ features
#
# $$\mu = \frac1d \sum_{j=1}^{d} x_j, \qquad
# v = \frac1d \sum_{j=1}^{d} (x_j - \mu)^2, \qquad
# y_j = g_j \, \frac{x_j - \mu}{\sqrt{v + \varepsilon}} + b_j$$
#
# - The gain $g$ and the bias $b$ are parameters with $d$ numbers each, named
#   `gain` and `bias`. At the start they change nothing.
# - `eps` is $\varepsilon$; keep it as an attribute of that name. It stands *inside* the root.
# - The variance divides by $d$, not by $d - 1$. Take it from the differences $x_j - \mu$, as above:
#   it should be right in float32 too where all features lie far from 0.
# - `x` may have any number of leading axes, or none. Leave it as it is.
# - Training and evaluation make no difference: every call looks at its own `x` alone.
#
# Write the formula out. Ready norms are not allowed here: `F.layer_norm`, `nn.LayerNorm`, the same
# by way of `group_norm`, `instance_norm`, `batch_norm`, `rms_norm` or their layers, and
# `lab.blocks.LayerNorm`.
#
# <details><summary>Hint 1: a question</summary>
#
# For an input of shape (2, 5, 6), how many different means are there? Which shape must they have
# to be subtracted from the input?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# A parameter of a module is a tensor wrapped in `nn.Parameter` and set as an attribute in
# `__init__`; make one of ones and one of zeros. In `forward`: mean of the last axis, kept as an axis
# of length 1; the mean of the squared differences likewise; then the formula from left to right.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - *The size of tensor a must match the size of tensor b*: a mean lost its axis.
# - Everything is a constant factor off, the more so the smaller $d$ is: your variance divides by
#   $d - 1$. Which one does `Tensor.var` or `Tensor.std` compute by default?
# - Right with the small default `eps`, wrong with a large one: look where it is added.
# - NaN for a token whose features are all equal: `eps` is missing.
# - Inexact, or NaN, for large features only: the mean of the squares less the square of the mean is
#   the difference of two large numbers that are almost equal.
# - A token's output changes with its neighbours: look at the axis.
# - Right values, wrong gradients: something was detached, or computed without gradients.
#
# </details>


# %% solution="layer-norm" export
class LayerNorm(nn.Module):
    """Normalise each token over its features, then scale and shift (Ba et al. 2016, section 3).

    Attributes:
        gain: (d_model,) scale of each feature, a parameter, 1 at the start.
        bias: (d_model,) level of each feature, a parameter, 0 at the start.
        eps: added to the variance, inside the root.
    """

    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        """Make the two parameters."""
        super().__init__()
        ### BEGIN SOLUTION
        self.gain = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))
        self.eps = eps
        ### END SOLUTION

    def forward(self, x: Float[Tensor, "... d_model"]) -> Float[Tensor, "... d_model"]:
        """Return x with every token normalised, scaled and shifted; the same shape."""
        ### BEGIN SOLUTION
        centred = x - x.mean(-1, keepdim=True)  # (..., d_model)
        variance = centred.square().mean(-1, keepdim=True)  # (..., 1), divided by d_model
        # departs: the two papers print no epsilon; without it a token whose features are all
        # equal gives 0 / 0. paper: test_layer_norm_without_epsilon
        return self.gain * centred / torch.sqrt(variance + self.eps) + self.bias
        ### END SOLUTION


# %% test="layer-norm-parameters" points=1
norm = LayerNorm(6)
names = sorted(name for name, _ in parameters_of(norm))
assert names == ["bias", "gain"], (
    f"the module has two parameters, gain and bias (nn.Parameter)\nYours has {names}."
)
assert_shape(norm.gain, (6,), "gain has one number for each of the d_model features")
assert_shape(norm.bias, (6,), "bias has one number for each of the d_model features")
assert_close(norm.gain, 1, "gain is 1 at the start, so that it changes nothing")
assert_close(norm.bias, 0, "bias is 0 at the start, so that it changes nothing")
assert norm.eps == 1e-5, f"eps is 1e-5 unless told otherwise\nYours is {norm.eps}."
norm = LayerNorm(9, eps=0.25)
assert norm.eps == 0.25, f"the eps handed in is kept as the attribute eps\nYours is {norm.eps}."
visible_passed()
### BEGIN HIDDEN TESTS
count = sum(parameter.numel() for _, parameter in parameters_of(norm))
assert count == 18, f"LayerNorm(9) has 2 * 9 = 18 numbers to learn\nYours has {count}."
### END HIDDEN TESTS

# %% test="layer-norm-values" points=1
norm = LayerNorm(4, eps=1e-5).double()
x = torch.tensor([[[1.0, 2.0, 3.0, 4.0], [10.0, 10.0, 10.0, 50.0]]], dtype=torch.float64)
output = norm(x)
assert_shape(output, (1, 2, 4), "the output has the shape of the input")
wanted = torch.tensor([-1.341635, -0.447212, 0.447212, 1.341635], dtype=torch.float64)
# what eps does is looked at in the next test, hence the wider tolerance here
assert_close(output[0, 0], wanted, "the token 1, 2, 3, 4 is normalised wrongly", atol=1e-4)
with torch.no_grad():
    norm.gain.copy_(torch.tensor([2.0, 2.0, 1.0, -1.0]))
    norm.bias.copy_(torch.tensor([1.0, 0.0, 0.0, 5.0]))
wanted = torch.tensor([-1.683270, -0.894424, 0.447212, 3.658365], dtype=torch.float64)
assert_close(norm(x)[0, 0], wanted, "gain should multiply and bias be added last", atol=1e-4)
visible_passed()
### BEGIN HIDDEN TESTS
for shape in ((3, 7), (2, 3, 5), (2, 3, 4, 6)):
    d = shape[-1]
    x, gain, bias = draw(shape, (d,), (d,), seed=1)
    norm = LayerNorm(d, eps=1e-5).double()
    with torch.no_grad():
        norm.gain.copy_(gain)
        norm.bias.copy_(bias)
    x = 5.0 * x
    before = x.clone()
    assert_close(
        norm(x),
        F.layer_norm(x, (d,), gain, bias),
        "each token should be normalised over its features, whatever the leading axes",
        atol=1e-4,
    )
    assert torch.equal(x, before), "LayerNorm should leave the tensor handed to it unchanged"
    assert_close(norm(x + 3.0), norm(x), "a level added to all features should change nothing")
single = "one token without any leading axis should be normalised too"
with expect_no_error(single):
    output = norm(x[0, 0, 0])
assert_close(output, F.layer_norm(x[0, 0, 0], (6,), gain, bias), single, atol=1e-4)
x = draw((2, 8, 5), seed=2, dtype=torch.float32).transpose(1, 2)  # (2, 5, 8), not contiguous
x = 5.0 * x + 500.0
output = LayerNorm(8)(x)
assert_dtype(output, torch.float32, "float32 in gives float32 out")
wanted = F.layer_norm(x.double(), (8,))
claim = "LayerNorm should hold in float32, for a transposed input and for features far from 0"
assert_close(output, wanted, claim, atol=1e-4)
### END HIDDEN TESTS

# %% test="layer-norm-epsilon" points=1
norm = LayerNorm(3).double()
with torch.no_grad():
    norm.bias.copy_(torch.tensor([4.0, 5.0, 6.0]))
flat = torch.full((1, 2, 3), 7.0, dtype=torch.float64)
wanted = torch.tensor([4.0, 5.0, 6.0], dtype=torch.float64).expand(1, 2, 3)
assert_close(norm(flat), wanted, "a token whose features are all equal should give the bias")
token = torch.tensor([[1.0, 2.0, 3.0, 4.0]], dtype=torch.float64)
assert_close(
    LayerNorm(4, eps=3.0).double()(token),
    torch.tensor([[-0.727607, -0.242536, 0.242536, 0.727607]], dtype=torch.float64),
    "with eps = 3 and variance 1.25, the token 1, 2, 3, 4 should be divided by the root of 4.25",
)
visible_passed()
### BEGIN HIDDEN TESTS
for eps in (0.1, 2.0):
    x = draw((2, 3, 5), seed=3)
    mean = x.mean(-1, keepdim=True)
    variance = ((x - mean) ** 2).mean(-1, keepdim=True)
    assert_close(
        LayerNorm(5, eps=eps).double()(x.clone()),
        (x - mean) / (variance + eps) ** 0.5,
        "a large eps should be added to the variance, inside the root",
    )
only = "a token with a single feature is its own mean, so that the bias should come out"
assert_close(LayerNorm(1).double()(flat[..., :1]), 0, only)
flat.requires_grad_()
(gradient,) = torch.autograd.grad(LayerNorm(3).double()(1.0 * flat)[0, 0, 0], flat)
assert torch.isfinite(gradient).all(), (
    "the gradient of a token whose features are all equal should be finite"
)
### END HIDDEN TESTS

# %% test="layer-norm-own-token" points=1
x = draw((3, 4, 5), seed=4)
norm = LayerNorm(5).double()
with unchanged(norm):
    output = norm(x)
others = x.clone()
others[1:] *= 3.0
assert_close(norm(others)[0], output[0], "other sentences of the batch should not matter")
later = x.clone()
later[:, 2:] += draw((3, 2, 5), seed=5)
moved = norm(later)
assert_close(moved[:, :2], output[:, :2], "other tokens of the sentence should not matter")
assert not torch.allclose(moved[:, 2:], output[:, 2:]), "a token's own numbers should matter"
visible_passed()
### BEGIN HIDDEN TESTS
for b in range(3):
    for i in range(4):
        assert_close(
            norm(x[b : b + 1, i : i + 1]),
            output[b : b + 1, i : i + 1],
            "a token alone should give the same output as inside its batch",
        )
norm(3.0 * x + 1.0)
assert_close(norm.eval()(x), output, "a call should look at its own x alone, in evaluation too")
### END HIDDEN TESTS

# %% test="layer-norm-gradients" points=1
x, upstream = draw((2, 3, 5), (2, 3, 5), seed=6)
x.requires_grad_()
norm = LayerNorm(5).double()
(norm(1.0 * x) * upstream).sum().backward()
assert x.grad is not None, "gradients should flow back to the input\nYours has none."
assert norm.gain.grad is not None, "gain should get a gradient\nYours has none."
assert norm.bias.grad is not None, "bias should get a gradient\nYours has none."
assert_close(
    x.grad.sum(-1),
    0,
    "a level added to all features of a token changes nothing, so its gradients should sum to 0",
)
assert_sound(
    norm,
    [x.detach()],
    says="the norm gives the same in training and in evaluation, in the dtype of its parameters; "
    "gradients reach all of them, and nothing is changed",
)
visible_passed()
### BEGIN HIDDEN TESTS
x, gain, bias = draw((2, 4, 6), (6,), (6,), seed=7)
norm = LayerNorm(6, eps=1e-5).double()
assert_shape(norm.gain, (6,), "gain has one number for each of the d_model features")
assert_shape(norm.bias, (6,), "bias has one number for each of the d_model features")
with torch.no_grad():
    norm.gain.copy_(gain)
    norm.bias.copy_(bias)
x = (5.0 * x).requires_grad_()
wanted = F.layer_norm(x, (6,), norm.gain, norm.bias)
assert_gradients(
    norm(1.0 * x),
    wanted,
    {"the input": x, "gain": norm.gain, "bias": norm.bias},
    "the gradients of the input, of gain and of bias should be those of LayerNorm",
)
### END HIDDEN TESTS

# %% [markdown]
# ## 5.2 Whose mean?   (4 points, about 20 minutes, difficulty 3 of 5)
#
# **Objective.** Tell three normalisations apart by what each of them averages over.
#
# All three subtract a mean and divide by $\sqrt{v + \varepsilon}$, where $v$ is the variance of
# the same group of numbers (divided by their count, and taken from the differences, as in 5.1). They
# differ in the groups. For `x` of shape $(B, N, D)$, `kind` says:
#
# - `"layer"`: the features of one token form a group.
# - `"batch"`: all values of one feature form a group, those of every token of every sentence.
# - `"instance"`: the values of one feature within one sentence form a group.
#
# There is no gain and no bias here. The output has the shape of `x`, and gradients flow back to it. For any other `kind` raise a
# `ValueError` whose message names it.
#
# <details><summary>Hint 1: a question</summary>
#
# How many groups are there in each of the three, for $B = 2$ sentences of $N = 3$ tokens with
# $D = 4$ features, and how many numbers are in each?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# A mean can run over several axes at once: `x.mean((0, 2), keepdim=True)`, for instance, has shape
# $(1, N, 1)$. The axes that a mean runs over are the ones along which a group extends. Find them
# for each kind; everything after that is the same.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - Everything is a constant factor off: the variance divides by the count less 1.
# - `"batch"` is right for $N = 1$ only: the groups are too small; positions are pooled too.
# - `"instance"` changes with the other sentences, or `"batch"` does not: the two are mixed up.
# - Shapes do not fit after the mean: `keepdim`.
# - *KeyError* for an unknown kind: check the word before you look it up, and raise a `ValueError`.
#
# </details>


# %% solution="normalise"
def normalise(x: Float[Tensor, "B N D"], kind: str, eps: float = 1e-5) -> Float[Tensor, "B N D"]:
    """Normalise over the groups of LayerNorm, BatchNorm or InstanceNorm; no gain, no bias.

    Args:
        x: the tokens.
        kind: "layer", "batch" or "instance".
        eps: added to the variance, inside the root.

    Raises:
        ValueError: if kind is none of the three.

    Sources: Ba et al. (2016), section 3, for "layer"; Ioffe and Szegedy (2015) for "batch".
    """
    ### BEGIN SOLUTION
    axes = {"layer": (-1,), "batch": (0, 1), "instance": (1,)}
    if kind not in axes:
        raise ValueError(f"kind ({kind!r}) must be one of {', '.join(axes)}")
    centred = x - x.mean(axes[kind], keepdim=True)  # (B, N, D)
    variance = centred.square().mean(axes[kind], keepdim=True)
    return centred / torch.sqrt(variance + eps)
    ### END SOLUTION


# %% test="normalise-layer" points=1
x = draw((2, 3, 5))
output = normalise(x, "layer", eps=1e-5)
assert_shape(output, (2, 3, 5), "the output has the shape of the input")
assert_dtype(output, torch.float64, "the output has the dtype of the input")
assert_close(output.mean(-1), 0, '"layer": each token should have mean 0 over its features')
# eps takes a little off, hence the wider tolerance
assert_close(output.square().mean(-1), 1, '"layer": each token should have variance 1', atol=1e-3)
visible_passed()
### BEGIN HIDDEN TESTS
x = (3.0 * draw((4, 3, 6), seed=8) + 2.0).requires_grad_()
before = x.detach().clone()
output, wanted = normalise(x, "layer", eps=1e-5), F.layer_norm(x, (6,))
assert_close(output, wanted, '"layer" should normalise each token over its features')
assert_gradients(output, wanted, {"x": x}, '"layer": the gradient of x should be LayerNorm\'s')
assert_close(
    normalise(x, "layer", eps=0.5),
    F.layer_norm(x, (6,), eps=0.5),
    '"layer" should add eps to the variance, inside the root',
)
small = 0.01 * draw((1, 1, 5), seed=8)
assert_close(
    normalise(small, "layer"),
    F.layer_norm(small, (5,), eps=1e-5),
    "eps is 1e-5 unless told otherwise, and is added to the variance, inside the root",
)
claim = '"layer": a token with a single feature is its own mean, so that 0 should come out'
assert_close(normalise(x[..., :1], "layer"), 0, claim)
assert torch.equal(x, before), "normalise should leave the tensor handed to it unchanged"
### END HIDDEN TESTS

# %% test="normalise-batch" points=1
x = draw((4, 3, 5))
output = normalise(x, "batch")
assert_shape(output, (4, 3, 5), "the output has the shape of the input")
wanted = '"batch": each feature should have mean 0 over all tokens of all sentences'
assert_close(output.mean((0, 1)), 0, wanted)
spread = output.square().mean((0, 1))
assert_close(spread, 1, '"batch": each feature should have variance 1', atol=1e-3)
visible_passed()
### BEGIN HIDDEN TESTS
x = (3.0 * draw((4, 3, 6), seed=9, dtype=torch.float32) + 300.0).requires_grad_()
for eps in (1e-5, 0.5):
    columns = x.double().transpose(1, 2)
    wanted = F.batch_norm(columns, None, None, training=True, eps=eps).transpose(1, 2)
    output = normalise(x, "batch", eps=eps)
    assert_dtype(output, torch.float32, "the output has the dtype of the input, float32 too")
    assert_close(
        output,
        wanted,
        '"batch" should normalise each feature over all tokens of all sentences together, in '
        "float32 and far from 0 too",
        atol=1e-4,  # what float32 leaves of differences between numbers around 300
    )
    assert_gradients(output, wanted, {"x": x}, '"batch": the gradient of x is not that of its norm')
### END HIDDEN TESTS

# %% test="normalise-instance" points=1
x = draw((4, 3, 5))
output = normalise(x, "instance")
assert_shape(output, (4, 3, 5), "the output has the shape of the input")
wanted = '"instance": each feature should have mean 0 over the tokens of each sentence'
assert_close(output.mean(1), 0, wanted)
spread = output.square().mean(1)
assert_close(spread, 1, '"instance": each feature should have variance 1', atol=1e-3)
visible_passed()
### BEGIN HIDDEN TESTS
x = (3.0 * draw((4, 3, 6), seed=10) + 2.0).requires_grad_()
for eps in (1e-5, 0.5):
    wanted = F.instance_norm(x.transpose(1, 2), eps=eps).transpose(1, 2)
    output = normalise(x, "instance", eps=eps)
    assert_close(
        output,
        wanted,
        '"instance" should normalise each feature over the tokens of each sentence alone',
    )
    claim = '"instance": the gradient of x is not that of its norm'
    assert_gradients(output, wanted, {"x": x}, claim)
### END HIDDEN TESTS

# %% test="normalise-unknown" points=1
assert_raises(
    ValueError,
    lambda: normalise(draw((2, 3, 4)), "token"),
    "an unknown kind should be refused with a ValueError that names it",
    mentions=("token",),
)
visible_passed()
### BEGIN HIDDEN TESTS
for kind in ("", "Layer", "layernorm", " layer "):
    assert_raises(
        ValueError,
        lambda kind=kind: normalise(draw((2, 3, 4)), kind),
        "every other kind should be refused with a ValueError that names it",
        mentions=(kind,),
    )
assert_shape(normalise(draw((2, 3, 4)), "batch"), (2, 3, 4), "the three kinds are accepted")
### END HIDDEN TESTS

# %% [markdown]
# ## 5.3 Around a sub-layer   (3 points, about 15 minutes, difficulty 2 of 5)
#
# **Objective.** Wrap a sub-layer in its residual connection and its normalisation, in both orders
# that are in use.
#
# - `norm_first=False`, **post-norm**, the order of the paper: add the input of the sub-layer to its
#   output, then normalise the sum.
# - `norm_first=True`, **pre-norm**: normalise what goes into the sub-layer; what comes out is added
#   to the input as it was.
#
# `sublayer` and `norm` are functions (or modules) that take and return a tensor of the shape of
# `x`. Call each of them once, and leave `x` itself as it is: the caller may still need it.
#
# <details><summary>Hint 1: a question</summary>
#
# Suppose that the sub-layer returns zeros. What should come out in either order?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Draw both as a straight line from `x` to the end with a detour through the sub-layer. In one
# drawing the norm sits on the line, behind the place where the detour comes back; in the other it
# sits on the detour.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - Post-norm outputs whose mean is not 0: the norm is not the last step.
# - A sub-layer of zeros gives zeros, or twice the input: the line past the sub-layer is missing, or
#   leads through it.
# - Pre-norm, a sub-layer of zeros: the input comes back normalised. Then the norm sits on the line.
# - *a leaf Variable that requires grad is being used in an in-place operation*, or an input that has
#   changed: write `x + ...`, not `x += ...`.
#
# </details>


# %% solution="sublayer-connection"
def sublayer_connection(
    x: Float[Tensor, "B N d_model"],
    sublayer: Callable[[Tensor], Tensor],
    norm: Callable[[Tensor], Tensor],
    norm_first: bool = False,
) -> Float[Tensor, "B N d_model"]:
    """Let x pass through a sub-layer and past it (Vaswani et al. 2017, section 3.1).

    Args:
        x: the tokens.
        sublayer: such as attention or a feed-forward network; keeps the shape.
        norm: such as layer normalisation; keeps the shape.
        norm_first: normalise the sub-layer's input (Xiong et al. 2020) instead of the sum.
    """
    ### BEGIN SOLUTION
    if norm_first:
        return x + sublayer(norm(x))
    return norm(x + sublayer(x))
    ### END SOLUTION


# %% test="sublayer-connection-post" points=1
x, w = draw((2, 3, 5), (5, 5))
output = sublayer_connection(
    x.clone(), lambda t: torch.tanh(t @ w), lambda t: F.layer_norm(t, (5,))
)
assert_shape(output, (2, 3, 5), "the output has the shape of the input")
assert_close(output.mean(-1), 0, "post-norm: the norm comes last, so every token has mean 0")
visible_passed()
### BEGIN HIDDEN TESTS
x, w, gain, bias = draw((2, 4, 6), (6, 6), (6,), (6,), seed=11)
wanted = F.layer_norm(x + torch.relu(x @ w), (6,), gain, bias)
output = sublayer_connection(
    x.clone(),
    lambda t: torch.relu(t @ w),
    lambda t: F.layer_norm(t, (6,), gain, bias),
    norm_first=False,
)
assert_close(output, wanted, "post-norm should normalise the sum of x and sublayer(x)")
### END HIDDEN TESTS

# %% test="sublayer-connection-pre" points=1
x, w = draw((2, 3, 5), (5, 5))
norm = nn.LayerNorm(5, elementwise_affine=False)
output = sublayer_connection(x.clone(), lambda t: torch.tanh(t @ w), norm, norm_first=True)
assert_shape(output, (2, 3, 5), "the output has the shape of the input")
same = sublayer_connection(2.0 * x, lambda t: torch.tanh(t @ w), norm, norm_first=True)
# eps is not scaled with the input, hence the wider tolerance
claim = "pre-norm: with a doubled input, only what bypasses the sub-layer should double"
assert_close(same - output, x, claim, atol=1e-3)
visible_passed()
### BEGIN HIDDEN TESTS
x, w, gain, bias = draw((2, 4, 6), (6, 6), (6,), (6,), seed=12)
wanted = x + torch.relu(F.layer_norm(x, (6,), gain, bias) @ w)
output = sublayer_connection(
    x.clone(),
    lambda t: torch.relu(t @ w),
    lambda t: F.layer_norm(t, (6,), gain, bias),
    norm_first=True,
)
assert_close(output, wanted, "pre-norm should be x + sublayer(norm(x)), the x added as it was")
### END HIDDEN TESTS

# %% test="sublayer-connection-path" points=1
x = draw((2, 3, 5), seed=13)
before = x.clone()
for norm_first in (False, True):
    sublayer_connection(x, torch.tanh, lambda t: F.layer_norm(t, (5,)), norm_first)
    assert torch.equal(x, before), "sublayer_connection should leave x unchanged"
visible_passed()


### BEGIN HIDDEN TESTS
def silent(t: Tensor) -> Tensor:
    """A sub-layer that adds nothing."""
    calls.append(1)
    return torch.zeros_like(t)


def counted_norm(t: Tensor) -> Tensor:
    """A norm that counts its calls."""
    norms.append(1)
    return F.layer_norm(t, (5,))


for norm_first, wanted, claim in (
    (False, F.layer_norm(x, (5,)), "post-norm: a sub-layer of zeros should leave the normalised x"),
    (True, x, "pre-norm: a sub-layer of zeros should leave x itself"),
):
    calls, norms = [], []
    output = sublayer_connection(x, silent, counted_norm, norm_first)
    assert_close(output, wanted, claim)
    assert len(calls) == 1, "in either order the sub-layer should be called exactly once"
    assert len(norms) == 1, "in either order the norm should be called exactly once"
leaf = x.clone().requires_grad_()
output = sublayer_connection(leaf, silent, lambda t: F.layer_norm(t, (5,)), norm_first=True)
claim = "pre-norm: past a silent sub-layer the gradient should arrive untouched"
assert_gradients(output, leaf, {"x": leaf}, claim)
single = x.float()
for norm_first in (False, True):
    output = sublayer_connection(single, nn.Identity(), lambda t: F.layer_norm(t, (5,)), norm_first)
    assert_dtype(output, torch.float32, "the output has the dtype of the input, float32 too")
    assert torch.equal(single, before.float()), (
        "x stays as it is even where the sub-layer returns x itself"
    )
for norm_first, wanted in (
    (False, torch.sin(leaf + leaf**2)),
    (True, leaf + torch.sin(leaf) ** 2),
):
    assert_gradients(
        sublayer_connection(leaf, torch.square, torch.sin, norm_first),
        wanted,
        {"x": leaf},
        "the gradient should reach x both past the sub-layer and through it, in either order",
    )
### END HIDDEN TESTS

# %% [markdown]
# ## 5.4 The feed-forward network   (4 points, about 20 minutes, difficulty 2 of 5)
#
# **Objective.** Build the network that each token passes alone (Vaswani et al., section 3.3):
#
# $$\text{FFN}(x) = \max(0,\, xW_1 + b_1)\,W_2 + b_2$$
#
# $W_1$ is $(d_\text{model}, d_\text{ff})$ and $W_2$ is
# $(d_\text{ff}, d_\text{model})$, with $d_\text{ff}$ usually four times $d_\text{model}$. Make the
# two linear maps `nn.Linear` modules with biases, named `inner` (the first) and `outer` (the second).
# (`nn.LazyLinear` has no sizes before its first call, and the tests look at them.) There
# is no dropout here; it comes in with the layer that holds this network.
# `lab.blocks.FeedForward` is not allowed here: write it yourself.
#
# <details><summary>Hint 1: a question</summary>
#
# Which axis of its input does `nn.Linear` work on, and what does it do to the axes before that one?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Widen, cut off what is negative, come back to $d_\text{model}$. Nothing follows the second map.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - No output is negative: the cut stands behind the second map.
# - With both biases 0, $-x$ gives exactly minus the output of $x$: the cut is missing.
# - *mat1 and mat2 shapes cannot be multiplied*: the sizes of the two maps are swapped.
# - Another answer in every run: the maps are made in `forward`, or something random is left in.
#
# </details>


# %% solution="feed-forward" export
class FeedForward(nn.Module):
    """Two linear maps with a ReLU between, for every token alone (Vaswani et al., section 3.3).

    Attributes:
        inner: nn.Linear from d_model to d_ff, with a bias.
        outer: nn.Linear from d_ff to d_model, with a bias.
    """

    def __init__(self, d_model: int, d_ff: int) -> None:
        """Make the two linear maps."""
        super().__init__()
        ### BEGIN SOLUTION
        self.inner = nn.Linear(d_model, d_ff)
        self.outer = nn.Linear(d_ff, d_model)
        ### END SOLUTION

    def forward(self, x: Float[Tensor, "... d_model"]) -> Float[Tensor, "... d_model"]:
        """Return the network's output for every token; the same shape."""
        ### BEGIN SOLUTION
        hidden = torch.relu(self.inner(x))  # (..., d_ff)
        return self.outer(hidden)  # (..., d_model)
        ### END SOLUTION


# %% test="feed-forward-parameters" points=1
network = FeedForward(4, 10)
assert_shape(network.inner.weight, (10, 4), "inner maps d_model = 4 features to d_ff = 10")
assert_shape(network.outer.weight, (4, 10), "outer maps d_ff = 10 features to d_model = 4")
assert_shape(network.inner.bias, (10,), "inner has a bias with d_ff = 10 numbers")
assert_shape(network.outer.bias, (4,), "outer has a bias with d_model = 4 numbers")
visible_passed()
### BEGIN HIDDEN TESTS
network = FeedForward(6, 5)
count = sum(parameter.numel() for parameter in network.parameters())
assert count == 6 * 5 + 5 + 5 * 6 + 6, (
    f"FeedForward(6, 5) has two matrices and two biases: 71 numbers to learn\nYours has {count}."
)
assert isinstance(network.inner, nn.Linear) and isinstance(network.outer, nn.Linear), (
    "inner and outer are nn.Linear modules"
)
### END HIDDEN TESTS

# %% test="feed-forward-values" points=2
network = FeedForward(2, 3).double()
with torch.no_grad():
    network.inner.weight.copy_(torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]))
    network.inner.bias.copy_(torch.tensor([0.0, 0.0, -1.0]))
    network.outer.weight.copy_(torch.tensor([[1.0, 1.0, -2.0], [0.0, -1.0, 0.0]]))
    network.outer.bias.copy_(torch.tensor([0.0, 0.5]))
x = torch.tensor([[[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]], dtype=torch.float64)
output = network(x)
assert_shape(output, (1, 4, 2), "the output has the shape of the input")
wanted = torch.tensor([[0.0, 0.5], [1.0, 0.5], [1.0, -0.5], [0.0, -0.5]], dtype=torch.float64)
assert_close(output[0], wanted, "the network of the book's example gives other numbers")
visible_passed()
### BEGIN HIDDEN TESTS
x, w_1, b_1, w_2, b_2 = draw((2, 3, 4), (7, 4), (7,), (4, 7), (4,), seed=14)
network = FeedForward(4, 7).double()
for parameter, value in zip(
    (network.inner.weight, network.inner.bias, network.outer.weight, network.outer.bias),
    (w_1, b_1, w_2, b_2),
    strict=True,
):
    assert_shape(parameter, value.shape, "inner and outer should have the sizes of the question")
    with torch.no_grad():
        parameter.copy_(value)
x = 10.0 * x  # so that some hidden numbers are large
before = x.clone()
x.requires_grad_()
wanted = torch.clamp(x @ w_1.T + b_1, min=0) @ w_2.T + b_2
output = network(x)
assert_close(output, wanted, "the output should be max(0, x W1 + b1) W2 + b2")
assert torch.equal(x, before), "FeedForward should leave the tensor handed to it unchanged"
assert_gradients(output, wanted, {"x": x}, "the gradient of the input should be the network's")

network = FeedForward(6, 5)
x = draw((2, 6, 3), seed=15, dtype=torch.float32).transpose(1, 2)  # (2, 3, 6), not contiguous
hidden = F.linear(x, network.inner.weight, network.inner.bias)
wanted = F.linear(F.relu(hidden), network.outer.weight, network.outer.bias)
output = network(x)
assert_dtype(output, torch.float32, "float32 in gives float32 out")
assert_close(output, wanted, "the network should hold in float32 and for a transposed input")
### END HIDDEN TESTS

# %% test="feed-forward-own-token" points=1
torch.manual_seed(0)
network = FeedForward(5, 9).double()
x = draw((2, 4, 5), seed=16)
with unchanged(network):
    output = network(x)
changed = x.clone()
changed[:, 3] = 9.0
moved = network(changed)
assert_close(moved[:, :3], output[:, :3], "other tokens should not matter")
assert not torch.allclose(moved[:, 3], output[:, 3]), "a token's own numbers should matter"
assert_sound(
    network,
    [x],
    says="the network gives the same in training and in evaluation, in the dtype of its maps; "
    "gradients reach its input and all its numbers, and nothing is changed",
)
visible_passed()
### BEGIN HIDDEN TESTS
square = FeedForward(5, 9).double()
x = draw((3, 5, 5), seed=17)  # as many tokens as features: the wrong axis would fit as well
with unchanged(square):
    output = square(x)
order = torch.tensor([3, 0, 4, 2, 1])
assert_close(square(x[:, order]), output[:, order], "tokens in another order: outputs likewise")
for i in range(5):
    assert_close(square(x[1, i]), output[1, i], "a token alone should give the same output")
### END HIDDEN TESTS

# %% [markdown]
# ## 5.5 What it costs   (2 points, about 10 minutes, difficulty 2 of 5)
#
# **Objective.** Give the size and the work of a feed-forward network in closed form.
#
# For a sentence of $n$ tokens return two whole numbers:
#
# 1. the numbers to learn in `FeedForward(d_model, d_ff)`, biases included;
# 2. the multiplications in its matrix products (adding, the biases and the ReLU do not count).
#
# Make no module: the tests ask for sizes, too, of which none can be made. Both numbers are exact,
# however large.
#
# <details><summary>Hint 1: a question</summary>
#
# Which of the two depends on $n$, and why only that one?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# A product of an $(a, b)$ matrix with a $(b, c)$ matrix takes $a\,b\,c$ multiplications.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - Off by $d_\text{ff} + d_\text{model}$: the biases, in one of the two numbers.
# - Off by a factor 2: there are two matrices.
# - A float instead of a whole number: use `*` and `+` on whole numbers only.
#
# </details>


# %% solution="feed-forward-cost"
def feed_forward_cost(n: int, d_model: int, d_ff: int) -> tuple[int, int]:
    """Count the parameters of a feed-forward network, and its multiplications for n tokens."""
    ### BEGIN SOLUTION
    matrices = 2 * d_model * d_ff
    return matrices + d_ff + d_model, n * matrices
    ### END SOLUTION


# %% test="feed-forward-cost-parameters" points=1
parameters, _ = feed_forward_cost(10, 512, 2048)
assert_whole(
    parameters,
    2099712,
    "the paper's base model (512, 2048) has 2 099 712 numbers in each feed-forward network",
)
visible_passed()
### BEGIN HIDDEN TESTS
for n, d_model, d_ff in ((1, 3, 5), (7, 6, 4), (50, 1024, 4096)):
    with torch.device("meta"):  # sizes only, no memory
        network = nn.Sequential(nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model))
    count = sum(parameter.numel() for parameter in network.parameters())
    parameters, _ = feed_forward_cost(n, d_model, d_ff)
    claim = "the numbers to learn are those of two matrices and two biases, whatever n is"
    assert_whole(parameters, count, claim)
large = "the numbers should follow from the sizes, also from those of which no module can be made"
with expect_no_error(large):
    parameters, _ = feed_forward_cost(1, 8, 3 * 10**17 + 1)
assert_whole(parameters, 51 * 10**17 + 25, large)
### END HIDDEN TESTS

# %% test="feed-forward-cost-multiplications" points=1
_, multiplications = feed_forward_cost(10, 512, 2048)
claim = "10 tokens through (512, 2048) take 20 971 520 multiplications"
assert_whole(multiplications, 20971520, claim)
visible_passed()
### BEGIN HIDDEN TESTS
for n, d_model, d_ff in ((1, 3, 5), (7, 6, 4), (50, 1024, 4096)):
    _, multiplications = feed_forward_cost(n, d_model, d_ff)
    assert_whole(
        multiplications,
        n * d_model * d_ff + n * d_ff * d_model,
        "the multiplications are those of both matrix products, for every token",
    )
large = "the multiplications should be exact, also for sizes of which no module can be made"
with expect_no_error(large):
    _, multiplications = feed_forward_cost(1, 8, 3 * 10**17 + 1)
assert_whole(multiplications, 48 * 10**17 + 16, large)
### END HIDDEN TESTS

# %% [markdown]
# ## 5.6 The path past the sub-layers   (2 points, about 10 minutes, difficulty 3 of 5)
#
# **Objective.** Say what the place of the norm does to a deep stack.
#
# A stack has $M$ sub-layers $f_1, \dots, f_M$, each wrapped as in 5.3, all in the same order. Answer in
# four to eight sentences: (a) Write the output of the pre-norm stack as the stack's input plus a
# sum, and say from it why some of the gradient reaches the input without passing any sub-layer.
# (b) Why can the post-norm stack not be written so? (c) Why is one more LayerNorm put behind a
# pre-norm stack, and not behind a post-norm one?
#
# <details><summary>Hint 1: a question</summary>
#
# What do you get when you write out $x_2$ from $x_1$, and $x_1$ from
# $x_0$?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# For (a), differentiate a sum. For (b), look for what stands between one addition and the next. For
# (c), ask what the size of the sum does as $M$ grows, and who reads it.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - Unsure about (c): the book's figure of both orders shows where the last norm sits in each.
#
# </details>

# %% [markdown] manual="norm-placement" points=2
# ### BEGIN SOLUTION
# (a) $x_M = x_0 + \sum_{m=1}^{M} f_m(\text{LN}(x_{m-1}))$. The derivative of
# the first term with respect to $x_0$ is the identity, whatever the sub-layers do. So the
# gradient at the output arrives at the input as it is, plus what comes through the sub-layers; it
# cannot be lost on the way just because they have small derivatives.
#
# (b) There each sum is normalised before the next sub-layer adds to it:
# $x_m = \text{LN}(x_{m-1} + f_m(x_{m-1}))$. Even the path past all
# sub-layers goes through $M$ norms, each of which rescales what passes (and removes the mean), so no
# plain $x_0$ is left in the output.
#
# (c) In pre-norm nothing normalises the sum itself; it grows with every term, so the deeper the
# stack the larger what the output layer would read. One norm at the end brings it back to a known
# scale. In post-norm the last step of the last sub-layer is a norm already.
#
# Marking: 1 point for (a), formula with reason; 1 point for (b) and (c), half each.
# ### END SOLUTION

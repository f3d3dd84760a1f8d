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
    draw,
    expect_no_error,
    parameters_of,
    unchanged,
    visible_passed,
)
from lab.predict import compare, predicted, watched

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
eps = LayerNorm(3, eps=0.0).eps
assert eps == 0.0, f"an eps of 0 is an eps, too, and is kept\nYours is {eps}."
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
assert not torch.allclose(output, x), "a token should be normalised, not handed back as it came"
nothing = norm(0.0 * x)
assert not torch.allclose(norm(3.0 * x) - nothing, 3.0 * (output - nothing)), (
    "a token should be normalised: three times as large, it should not give three times as much"
)
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
# ## 5.2 Whose mean?   (4 points, about 25 minutes, difficulty 3 of 5)
#
# **Objective.** Tell normalisations apart by what each of them averages over, and by whether it subtracts a mean.
#
# Three of them subtract a mean and divide by $\sqrt{v + \varepsilon}$, where $v$ is the variance of
# the same group of numbers (divided by their count, and taken from the differences, as in 5.1). They
# differ in the groups. For `x` of shape $(B, N, D)$, `kind` says:
#
# - `"layer"`: the features of one token form a group.
# - `"batch"`: all values of one feature form a group, those of every token of every sentence.
# - `"instance"`: the values of one feature within one sentence form a group.
#
# The fourth, `"rms"`, has the groups of `"layer"` and subtracts nothing: it divides by the root of the **mean square** plus
# $\varepsilon$ (Zhang and Sennrich 2019).
#
# There is no gain and no bias here. The output has the shape of `x`, and gradients flow back to it. For any other `kind` raise a
# `ValueError` whose message names it.
#
# <details><summary>Hint 1: a question</summary>
#
# How many groups are there in each kind, for $B = 2$ sentences of $N = 3$ tokens with
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
    """Normalise as LayerNorm, BatchNorm, InstanceNorm or RMSNorm do; no gain, no bias.

    Args:
        x: the tokens.
        kind: "layer", "batch", "instance" or "rms".
        eps: added to the variance, inside the root.

    Raises:
        ValueError: if kind is none of the four.

    Sources: Ba et al. (2016), section 3, for "layer"; Ioffe and Szegedy (2015) for "batch";
    Zhang and Sennrich (2019) for "rms".
    """
    ### BEGIN SOLUTION
    axes = {"layer": (-1,), "batch": (0, 1), "instance": (1,), "rms": (-1,)}
    if kind not in axes:
        raise ValueError(f"kind ({kind!r}) must be one of {', '.join(axes)}")
    centred = x if kind == "rms" else x - x.mean(axes[kind], keepdim=True)  # (B, N, D)
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

# %% test="normalise-rms" points=1
x = torch.tensor([[[3.0, 4.0], [0.0, 1.0]]], dtype=torch.float64)
wanted = torch.tensor([[[0.848528, 1.131371], [0.0, 1.414214]]], dtype=torch.float64)
claim = '"rms": the token (3, 4) has the mean square 12.5, and nothing is subtracted'
assert_close(normalise(x, "rms"), wanted, claim, atol=1e-4)
assert_raises(
    ValueError,
    lambda: normalise(x, "token"),
    "an unknown kind should be refused with a ValueError that names it",
    mentions=("token",),
)
visible_passed()
### BEGIN HIDDEN TESTS
x = (3.0 * draw((4, 3, 6), seed=11) + 2.0).requires_grad_()
for eps in (1e-5, 0.5):
    wanted = F.rms_norm(x, (6,), eps=eps)
    output = normalise(x, "rms", eps=eps)
    assert_close(output, wanted, '"rms" should divide each token by the root of its mean square')
    assert_gradients(output, wanted, {"x": x}, '"rms": the gradient of x is not that of its norm')
for kind in ("", "Layer", "layernorm", " layer "):
    assert_raises(
        ValueError,
        lambda kind=kind: normalise(draw((2, 3, 4)), kind),
        "every other kind should be refused with a ValueError that names it",
        mentions=(kind,),
    )
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
# ## 5.4 The feed-forward network   (3 points, about 15 minutes, difficulty 2 of 5)
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

# %% test="feed-forward-values" points=1
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
# ## 5.5 A gate, at the same size   (3 points, about 20 minutes, difficulty 3 of 5)
#
# **Objective.** Build the feed-forward network of many of today's models (Shazeer 2020), just as large as the
# one that it takes the place of:
#
# $$\text{SwiGLU}(x) = \big(\text{SiLU}(x W_1) \odot x W_3\big)\, W_2, \qquad \text{SiLU}(z) = \frac{z}{1 + e^{-z}}$$
#
# The modules are `gate` ($W_1$), `inner` ($W_3$) and `outer` ($W_2$), each an `nn.Linear` **without** bias.
#
# `GatedFeedForward(d_model, d_ff)` is told the hidden width of the *plain* network of 5.4. Its own hidden width is the
# largest one with which it has **no more numbers to learn** than `FeedForward(d_model, d_ff)`, biases of that one included.
#
# <details><summary>Hint 1: a question</summary>
#
# How many numbers does the plain network have? How many more does the gated one get if its hidden width grows by 1?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# A whole number of widths fits into the plain network's size: divide, and round down. Then it is one line: one map through the curve, times the
# other, then back.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - Nearly right, off by 1 in the width for some sizes: the biases count, too; or you have rounded 2/3 of `d_ff`.
# - Shapes fit, values do not: which of the two maps goes through the curve?
#
# </details>


# %% solution="gated-feed-forward"
class GatedFeedForward(nn.Module):
    """A feed-forward network with a gate (Shazeer 2020), no larger than the plain one.

    Attributes:
        gate: nn.Linear from d_model to the hidden width, without bias; it passes the curve.
        inner: the same; what the gate lets through.
        outer: nn.Linear from the hidden width to d_model, without bias.
    """

    def __init__(self, d_model: int, d_ff: int) -> None:
        """Make the three maps; d_ff is the hidden width of the plain network."""
        super().__init__()
        ### BEGIN SOLUTION
        plain = 2 * d_model * d_ff + d_ff + d_model
        width = plain // (3 * d_model)
        self.gate = nn.Linear(d_model, width, bias=False)
        self.inner = nn.Linear(d_model, width, bias=False)
        self.outer = nn.Linear(width, d_model, bias=False)
        ### END SOLUTION

    def forward(self, x: Float[Tensor, "... d_model"]) -> Float[Tensor, "... d_model"]:
        """Return the network's output for every token; the same shape."""
        ### BEGIN SOLUTION
        return self.outer(F.silu(self.gate(x)) * self.inner(x))
        ### END SOLUTION


# %% test="gated-feed-forward-size" points=1
network = GatedFeedForward(6, 9)  # the plain one has 123 numbers to learn
assert_shape(network.gate.weight, (6, 6), "(6, 9): 123 numbers are enough for a hidden width of 6")
assert_shape(network.inner.weight, (6, 6), "inner is as wide as the gate")
assert_shape(network.outer.weight, (6, 6), "outer leads back from the hidden width")
visible_passed()
### BEGIN HIDDEN TESTS
for d_model, d_ff in ((4, 16), (3, 12), (8, 5), (16, 64), (2, 10), (5, 1)):
    network = GatedFeedForward(d_model, d_ff)
    plain = 2 * d_model * d_ff + d_ff + d_model
    names = sorted(name for name, _ in parameters_of(network))
    assert names == ["gate.weight", "inner.weight", "outer.weight"], (
        f"there are three matrices, gate, inner and outer, and no bias\nYours has {names}."
    )
    count = sum(parameter.numel() for _, parameter in parameters_of(network))
    assert count <= plain, "the gated network should have no more numbers than the plain one"
    assert count + 3 * d_model > plain, "a wider gated network would still have been small enough"
### END HIDDEN TESTS

# %% test="gated-feed-forward-values" points=2
network = GatedFeedForward(4, 7).double()  # hidden width 5
drawn = draw(*[tuple(parameter.shape) for _, parameter in parameters_of(network)], seed=20)
with torch.no_grad():
    for (_, parameter), numbers in zip(parameters_of(network), drawn, strict=True):
        parameter.copy_(numbers)
x = draw((2, 3, 4), seed=21)
gate, inner = (x @ linear.weight.T for linear in (network.gate, network.inner))
wanted = gate / (1 + torch.exp(-gate)) * inner @ network.outer.weight.T
assert_close(network(x), wanted, "the output should be (SiLU(x W1) * x W3) W2")
assert_sound(
    network,
    [x],
    says="the network gives the same in training and in evaluation, in the dtype of its maps; "
    "gradients reach its input and all its numbers, and nothing is changed",
)
visible_passed()
### BEGIN HIDDEN TESTS
x = draw((2, 4, 3), seed=22, dtype=torch.float32).transpose(1, 2)  # (2, 3, 4), not contiguous
gate, inner = (x @ linear.weight.T for linear in (network.float().gate, network.inner))
wanted = gate * torch.sigmoid(gate) * inner @ network.outer.weight.T  # before the answer's turn
output = network(x)
assert_dtype(output, torch.float32, "float32 in gives float32 out")
assert_close(output, wanted, "the gated network should hold in float32 too", atol=1e-4)
assert_close(network(x[0, 1]), wanted[0, 1], "a token alone should give the same output", atol=1e-4)
### END HIDDEN TESTS

# %% [markdown]
# ## 5.6 What is broken?   (4 points, about 30 minutes, difficulty 4 of 5)
#
# **Objective.** Find out from outside what is wrong with a stack that runs without an error.
#
# A *stack* is a function. It takes the tokens of one sentence, $(N, D)$, of about unit size, and returns the tokens after
# each of its layers (6 or more), a list of $(N, D)$; the last entry is its output. Inside are pre-norm layers with random weights: attention with causal mask, then a
# feed-forward network, and at the end one more norm. At most one of three things is wrong:
#
# - `"no residual"`: what a sub-layer returns takes the place of its input;
# - `"no last norm"`: the output is the sum as it stands;
# - `"leaky norm"`: mean and variance are those of the whole sentence, future tokens included.
#
# Write two functions:
#
# - `curves(outputs)`: for each layer, the **size** of its tokens (the root of the mean square of all numbers) and how
#   **alike** they are (the mean cosine of two *different* tokens). Two tensors of as many numbers as there are layers.
# - `diagnose(stack, x)`: one of the three words above, or `"nothing"`. Call the stack as often as you need, up to ten times; you may hand it other tokens than `x`.
#
# The cell before your answer makes such stacks, so that you can look at the curves of each fault before you decide what to ask for. The tests use
# other weights, depths and widths.
#
# <details><summary>Hint 1: a question</summary>
#
# Which fault shows in the size, which in alikeness, and at which layer? Which shows in neither, and what would you change in `x` to see it?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# The earlier tokens of a causal stack do not know the later ones. Ask the stack twice, with two different last tokens. For the other two faults, print
# the curves of ten seeds and take thresholds from the middle of the gap.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - Every stack leaks: you compare the token that you have changed; or you change one that others may see.
# - `"no last norm"` for sound stacks: within a pre-norm stack the sum grows; only the output has been normalised.
# - Tokens that are all equal come out less alike than 1: is each token compared with itself as well, or the length not divided out?
#
# </details>


# %%
def random_stack(fault, seed, depth=8, width=16):
    """A stack of random pre-norm layers; fault is one of the three, or "nothing"."""
    sizes = [(width, width)] * 3 + [(width, 4 * width), (4 * width, width)]
    layers = [draw(*sizes, seed=100 * seed + i) for i in range(depth)]
    scale = width**-0.5

    def norm(x):
        return F.layer_norm(x, x.shape if fault == "leaky norm" else x.shape[-1:])

    def attention(x, w_q, w_k, w_v):
        q, k, v = (x @ w * scale for w in (w_q, w_k, w_v))
        return F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)[0]

    def stack(x):
        outputs = []
        for *three, up, down in layers:
            change = attention(norm(x), *three)
            x = change if fault == "no residual" else x + change
            change = torch.relu(norm(x) @ up * scale * 2**0.5) @ down * scale / 2
            x = change if fault == "no residual" else x + change
            outputs.append(x)
        return [*outputs[:-1], x if fault == "no last norm" else norm(x)]

    return stack


# %% solution="diagnose"
def curves(
    outputs: list[Float[Tensor, "N D"]],
) -> tuple[Float[Tensor, "layers"], Float[Tensor, "layers"]]:
    """For each layer the size of its tokens, and the mean cosine of two different ones."""
    ### BEGIN SOLUTION
    tokens = torch.stack(list(outputs))  # (layers, N, D)
    sizes = tokens.square().mean((1, 2)).sqrt()
    rows, count = F.normalize(tokens, dim=-1), tokens.shape[1]
    alike = ((rows @ rows.mT).sum((1, 2)) - count) / (count * (count - 1))
    return sizes, alike
    ### END SOLUTION


def diagnose(
    stack: Callable[[Float[Tensor, "N D"]], list[Float[Tensor, "N D"]]], x: Float[Tensor, "N D"]
) -> str:
    """Say what is wrong: "no residual", "no last norm", "leaky norm" or "nothing"."""
    ### BEGIN SOLUTION
    outputs = stack(x)
    sizes, alike = curves(outputs)
    other = x.clone()
    other[-1] = -x[-1].roll(1)
    if not torch.allclose(stack(other)[-1][:-1], outputs[-1][:-1], atol=1e-6):
        return "leaky norm"
    if alike[-1] > 0.97:
        return "no residual"
    return "no last norm" if sizes[-1] > 1.3 else "nothing"
    ### END SOLUTION


# %% test="diagnose-curves" points=1
outputs = [torch.tensor([[3.0, 0.0], [0.0, 3.0]]), torch.tensor([[1.0, 1.0], [2.0, 2.0]])]
sizes, alike = curves(outputs)
wanted = torch.tensor([4.5**0.5, 2.5**0.5])
assert_close(sizes, wanted, "the size is the root of the mean square of all numbers of a layer")
wanted = torch.tensor([0.0, 1.0])
assert_close(alike, wanted, "tokens at a right angle are alike by 0, those in one direction by 1")
for curve in (sizes, alike):
    assert_dtype(curve, torch.float32, "tokens in float32 should have curves in float32")
visible_passed()
### BEGIN HIDDEN TESTS
outputs = [2.0 * draw((5, 3), seed=23) + 1.0, draw((5, 3), seed=24), 0.1 * draw((5, 3), seed=25)]
before = [one.clone() for one in outputs]
sizes, alike = curves(outputs)
for layer, tokens in enumerate(before):
    claim = "with other tokens too, the size is the root of the mean square"
    assert_close(sizes[layer], (tokens**2).mean() ** 0.5, claim)
    cosines = [
        F.cosine_similarity(tokens[i], tokens[j], dim=0)
        for i in range(5)
        for j in range(5)
        if i != j
    ]
    claim = "alike is the mean cosine of two different tokens, whatever their lengths"
    assert_close(alike[layer], torch.stack(cosines).mean(), claim)
assert all(torch.equal(one, other) for one, other in zip(outputs, before, strict=True)), (
    "curves should leave the outputs unchanged"
)
for curve in (sizes, alike):
    assert_dtype(curve, torch.float64, "tokens in float64 should have curves in float64")
### END HIDDEN TESTS

# %% test="diagnose-stacks" points=3
for fault in ("no last norm", "nothing"):
    found = diagnose(random_stack(fault, seed=1), draw((6, 16), seed=26))
    assert found == fault, (
        f"a stack of which {fault!r} is true should be diagnosed so\nYours says {found!r}."
    )
visible_passed()
### BEGIN HIDDEN TESTS
for seed, (depth, width, count) in enumerate(((6, 16, 5), (8, 24, 7), (10, 12, 9)), start=2):
    x = draw((count, width), seed=27 + seed)
    for fault, claim in {
        "nothing": "a sound stack is diagnosed as broken",
        "no residual": "a stack without residual connections is not diagnosed",
        "no last norm": "a stack without the last norm is not diagnosed",
        "leaky norm": "a stack whose norms leak is not diagnosed",
    }.items():
        before = x.clone()
        assert diagnose(random_stack(fault, seed, depth, width), x) == fault, claim
        assert torch.equal(x, before), "diagnose should leave x unchanged"
asked = []


def counted(x):
    """A sound stack that counts how often it is called."""
    asked.append(len(x))
    return random_stack("nothing", 6)(x)


diagnose(counted, draw((14, 16), seed=31))
assert len(asked) <= 10, (
    "the stack may be called up to ten times, also with a sentence of 14 tokens"
    f"\nYours calls it {len(asked)} times."
)
### END HIDDEN TESTS

# %% [markdown]
# **What you have measured.** Your `curves`, for stacks with each of the faults. (Not graded.)

# %%
if watched():  # not while the notebook is graded
    import matplotlib.pyplot as plt

    from lab import plots

    plots.use()
    profile_of = {
        fault: curves(random_stack(fault, seed=3)(draw((6, 16), seed=4)))
        for fault in ("nothing", "no residual", "no last norm", "leaky norm")
    }
    _, panels = plt.subplots(2, 1, figsize=(5.4, 6.4), layout="constrained")
    for which, (panel, title) in enumerate(zip(panels, ("size", "alike"), strict=True)):
        shown = {fault: both[which] for fault, both in profile_of.items()}
        plots.lines(range(1, 9), shown, title, "layer", ax=panel)
    panels[0].get_legend().remove()
    plt.show()

# %% [markdown]
# ## 5.7 The way back through LayerNorm   (2 points, about 40 minutes, difficulty 5 of 5)
#
# **Objective.** Work out by hand what `backward` does with your LayerNorm. (This one is a bonus: nothing in the model
# needs it.)
#
# For $y_j = g_j\, \hat x_j + b_j$ with $\hat x_j = (x_j - \mu) / s$ and $s = \sqrt{v + \varepsilon}$, you are given $x$, the gain and
# $\partial L / \partial y$. Return $\partial L / \partial x$ (the shape of `x`), $\partial L / \partial g$ and $\partial L / \partial b$ ($d$ numbers each). `x` has any number of leading axes.
#
# Work it out on paper and write the formula. Automatic differentiation (`backward`, `torch.autograd.grad`) is not
# allowed here, nor is a ready norm (`F.layer_norm`, `nn.LayerNorm`, `lab.blocks.LayerNorm`) or its gradient. In float64 the
# tests look at twelve places after the point: a formula has them, differences of two calls do not.
#
# <details><summary>Hint 1: a question</summary>
#
# By how many ways does $x_i$ reach $y_j$? Through which ones does $x_i$ reach the *other* features of its token?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Let $u_j = g_j\, \partial L / \partial y_j$, the gradient that arrives at $\hat x_j$. The direct way gives $u_i / s$. The way through $\mu$ takes the mean of all
# $u$ away, the way through $s$ takes away what lies along $\hat x$. Gain and bias serve all tokens, so their gradients are sums over all of these.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - The entries of $\partial L / \partial x$ of a token do not sum to 0: the mean is missing. A level added to all features changes nothing.
# - Right for a large $\varepsilon$ only, or for a small one only: $s$ contains it, wherever it stands.
# - Gradients of gain or bias have too many axes: add up over all tokens.
#
# </details>


# %% solution="norm-backward"
def norm_backward(
    x: Float[Tensor, "... d"],
    gain: Float[Tensor, "d"],
    upstream: Float[Tensor, "... d"],
    eps: float = 1e-5,
) -> tuple[Float[Tensor, "... d"], Float[Tensor, "d"], Float[Tensor, "d"]]:
    """The gradients of x, gain and bias of a LayerNorm, from that of its output."""
    ### BEGIN SOLUTION
    centred = x - x.mean(-1, keepdim=True)
    scale = (centred.square().mean(-1, keepdim=True) + eps).sqrt()
    normalised = centred / scale
    arriving = upstream * gain
    along = (arriving * normalised).mean(-1, keepdim=True) * normalised
    for_x = (arriving - arriving.mean(-1, keepdim=True) - along) / scale
    axes = tuple(range(x.ndim - 1))
    if not axes:
        return for_x, upstream * normalised, upstream.clone()
    return for_x, (upstream * normalised).sum(axes), upstream.sum(axes)
    ### END SOLUTION


# %% test="norm-backward-input" points=1
x = torch.tensor([[1.0, 2.0, 3.0, 4.0]], dtype=torch.float64)
ones = torch.ones(4, dtype=torch.float64)
for_x, for_gain, for_bias = norm_backward(x, ones, torch.tensor([[1.0, 0.0, 0.0, 0.0]]).double())
assert_shape(for_x, (1, 4), "the gradient of x has the shape of x")
wanted = torch.tensor([[0.268329, -0.357770, -0.089443, 0.178884]], dtype=torch.float64)
assert_close(
    for_x, wanted, "x = (1, 2, 3, 4), a gradient that arrives at feature 0 alone", atol=1e-4
)
visible_passed()
### BEGIN HIDDEN TESTS
for shape, eps in (((3, 5), 1e-5), ((2, 3, 6), 0.5), ((5, 2, 3, 4), 2.0), ((7,), 0.25)):
    x, upstream, gain = draw(shape, shape, shape[-1:], seed=28)
    before = x.clone(), gain.clone(), upstream.clone()
    handed = x.clone().requires_grad_()
    output = F.layer_norm(handed, shape[-1:], gain, eps=eps)
    (wanted,) = torch.autograd.grad(output, handed, upstream)
    for_x, _, _ = norm_backward(x, gain, upstream, eps)
    # a formula has all digits, and what is taken from differences of two calls has not
    claim = (
        "the gradient of x should be that of LayerNorm, whatever eps is, to all digits of float64"
    )
    assert_close(for_x, wanted, claim, atol=1e-12)
    assert all(torch.equal(t, b) for t, b in zip((x, gain, upstream), before, strict=True)), (
        "norm_backward should leave its inputs unchanged"
    )
# no one step serves tokens of all sizes, if what is asked for is taken from calls
x, upstream, gain = draw((4, 6), (4, 6), (6,), seed=28)
sizes = torch.tensor([0.01, 1.0, 100.0, 10000.0], dtype=torch.float64)[:, None]
handed = (x * sizes).requires_grad_()
output = F.layer_norm(handed, (6,), gain)
(wanted,) = torch.autograd.grad(output, handed, upstream)
for_x, _, _ = norm_backward(x * sizes, gain, upstream)
claim = "small tokens and large ones in one call: the gradient of x should have all digits for each"
assert_close(for_x * sizes, wanted * sizes, claim, atol=1e-12)
### END HIDDEN TESTS

# %% test="norm-backward-parameters" points=1
x, upstream, gain = draw((2, 3, 4), (2, 3, 4), (4,), seed=29, dtype=torch.float32)
for_x, for_gain, for_bias = norm_backward(x, gain, upstream)
assert_shape(for_gain, (4,), "gain has one gradient for each feature")
assert_close(for_bias, upstream.sum((0, 1)), "the bias is added to every token alike")
for gradient in (for_x, for_gain, for_bias):
    assert_dtype(gradient, torch.float32, "inputs in float32 should have gradients in float32")
visible_passed()
### BEGIN HIDDEN TESTS
for shape, eps in (((3, 5), 1e-5), ((2, 3, 6), 0.5), ((7,), 0.1)):
    x, upstream, gain = draw(shape, shape, shape[-1:], seed=30)
    bias = torch.zeros_like(gain)
    parameters = gain.clone().requires_grad_(), bias.requires_grad_()
    output = F.layer_norm(x, shape[-1:], *parameters, eps=eps)
    wanted_gain, wanted_bias = torch.autograd.grad(output, parameters, upstream)
    _, for_gain, for_bias = norm_backward(x, gain, upstream, eps)
    assert_close(
        for_gain, wanted_gain, "the gradient of gain should be LayerNorm's, all tokens added up"
    )
    assert_close(
        for_bias, wanted_bias, "the gradient of bias should be LayerNorm's, all tokens added up"
    )
### END HIDDEN TESTS

# %% [markdown]
# ## 5.8 Twelve layers of yours   (1 point, about 10 minutes, difficulty 2 of 5)
#
# **Objective.** Predict what a deep stack of your own parts can learn, then look.
#
# All your parts together: twelve layers learn which digit stood two places before each digit, with your norm, your network and
# your connection in both orders, and once with the sub-layers alone, no sum and no norm. Guessing costs $\ln 10 = 2.3$. After 150 steps, which of the
# three are **still guessing** (a loss above 2)? Let `predicted_loss` return one of the texts in `STUCK`: there is a point for having
# predicted, not for being right. Then run the cell below (ten seconds or so).
#
# <details><summary>Hint 1: a question</summary>
#
# What did your curves of 5.6 say about tokens in a stack without residual connections?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Whoever is to learn has to tell the tokens apart, and the gradient has to get down to the first layer.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - *predict first*: the run wants one of the texts in `STUCK`, word for word.
#
# </details>

# %%
STUCK = ("none of them", "sub-layers alone", "sub-layers alone and post-norm", "all three")


# %% solution="predicted-loss"
def predicted_loss() -> str:
    """Which of the three stacks you expect to be still guessing: one of STUCK."""
    ### BEGIN SOLUTION
    return "sub-layers alone"
    ### END SOLUTION


# %% test="predicted-loss-made" points=1
stuck = predicted_loss()
assert isinstance(stuck, str), "a prediction is one of the texts in STUCK"
assert stuck in STUCK, f"a prediction is one of {', '.join(STUCK)}\nYours is {stuck!r}."
visible_passed()

# %%
if watched():  # not while the notebook is graded
    from lab import plots
    from lab.blocks import MultiHeadAttention
    from lab.own import learning_curve

    prediction = predicted(predicted_loss, STUCK)

    def layer_of_mine():
        """Attention, your network and two of your norms."""
        attention, network = MultiHeadAttention(32, 4), FeedForward(32, 64)
        return nn.ModuleList([attention, network, LayerNorm(32), LayerNorm(32)])

    def stacked(wrap):
        """A stack in which each sub-layer is wrapped in this way."""

        def stack(x, layers):
            for attention, network, first, second in layers:
                x = wrap(x, lambda t, attend=attention: attend(t, t, t)[0], first)
                x = wrap(x, network, second)
            return x

        return stack

    ways = {
        "sub-layers alone": lambda x, f, norm: f(x),
        "post-norm": lambda x, f, norm: sublayer_connection(x, f, norm, norm_first=False),
        "pre-norm": lambda x, f, norm: sublayer_connection(x, f, norm, norm_first=True),
    }
    falling = {}
    for way, wrap in ways.items():
        torch.manual_seed(0)
        falling[way] = learning_curve(
            stacked(wrap), nn.ModuleList(layer_of_mine() for _ in range(12))
        )
    for way, losses in falling.items():
        print(f"{way:17} loss of the last ten steps: {sum(losses[-10:]) / 10:.2f}")
    compare(prediction, [way for way, losses in falling.items() if losses[-1] > 2])
    plots.use()
    plots.lines(range(1, 151), falling, "Your twelve layers", "step", "loss")

# %% [markdown]
# <details><summary>What happened</summary>
#
# The bare sub-layers make all tokens of a sentence one and the same within a few layers, so nobody behind them can tell which digit
# stood where; and hardly any gradient gets through to the layers that could change that. The loss stays at $\ln 10$. Both orders of your connection learn. Pre-norm is
# faster here: its gradient reaches every layer past all others, and at this depth and without a warm-up post-norm starts slowly. With
# other seeds and rates the distance changes, the bare stack's failure does not.
#
# </details>

# %% [markdown]
# ## 5.9 The path past the sub-layers   (2 points, about 15 minutes, difficulty 3 of 5)
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

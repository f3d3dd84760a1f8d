"""Wrong answers to the exercise on LayerNorm and its surroundings, and what each one shows."""

import torch
import torch.nn.functional as F
from torch import nn

from lab.answers import misconception

# 5.1 Layer normalisation


@misconception(
    "layer-norm",
    target="LayerNorm.forward",
    id="LN1",
    fails=["layer-norm-values", "layer-norm-epsilon", "layer-norm-gradients"],
    read="05_layer_norm#biased-variance",
)
def unbiased_variance(self, x):
    """Your variance divides by d_model - 1, which is what Tensor.var and Tensor.std do unless told
    otherwise; LayerNorm divides by d_model.
    """
    variance = x.var(-1, keepdim=True)
    return self.gain * (x - x.mean(-1, keepdim=True)) / torch.sqrt(variance + self.eps) + self.bias


@misconception(
    "layer-norm",
    target="LayerNorm.forward",
    id="LN15",
    fails=["layer-norm-epsilon"],
    read="05_layer_norm#biased-variance",
)
def unbiased_variance_put_right(self, x):
    """You take the variance with d_model - 1 and multiply it right afterwards: with a single
    feature that is 0 / 0, NaN. Divide by d_model in the first place.
    """
    d = x.shape[-1]
    variance = x.var(-1, keepdim=True) * (d - 1) / d
    return self.gain * (x - x.mean(-1, keepdim=True)) / torch.sqrt(variance + self.eps) + self.bias


@misconception(
    "layer-norm",
    target="LayerNorm.forward",
    id="LN2",
    fails=["layer-norm-epsilon"],
    read="05_layer_norm#epsilon",
)
def epsilon_outside_the_root(self, x):
    """You add eps to the standard deviation; it belongs inside the root, added to the variance.
    With a small eps the difference hardly shows.
    """
    deviation = x.std(-1, keepdim=True, unbiased=False)
    return self.gain * (x - x.mean(-1, keepdim=True)) / (deviation + self.eps) + self.bias


@misconception(
    "layer-norm",
    target="LayerNorm.forward",
    id="LN3",
    fails=["layer-norm-epsilon"],
    read="05_layer_norm#epsilon",
)
def epsilon_added_to_the_count(self, x):
    """You add eps to the number of features; it belongs to the variance, or a token whose features
    are all equal still divides by 0.
    """
    centred = x - x.mean(-1, keepdim=True)
    variance = centred.square().sum(-1, keepdim=True) / (x.shape[-1] + self.eps)
    return self.gain * centred / torch.sqrt(variance) + self.bias


@misconception(
    "layer-norm",
    target="LayerNorm.forward",
    id="LN4",
    fails=["layer-norm-values", "layer-norm-epsilon", "layer-norm-gradients"],
    read="05_layer_norm#layer-norm",
)
def divided_by_the_variance(self, x):
    """You divide by the variance; divide by its square root, or the output still depends on the
    input's scale.
    """
    centred = x - x.mean(-1, keepdim=True)
    return self.gain * centred / (centred.square().mean(-1, keepdim=True) + self.eps) + self.bias


@misconception(
    "layer-norm",
    target="LayerNorm.forward",
    id="LN5",
    fails=[
        "layer-norm-values",
        "layer-norm-epsilon",
        "layer-norm-own-token",
        "layer-norm-gradients",
    ],
    read="05_layer_norm#whose-mean",
)
def over_the_batch(self, x):
    """You average over the first axis, the sentences of the batch, so they change one another;
    average over the features of each token, the last axis.
    """
    centred = x - x.mean(0, keepdim=True)
    variance = centred.square().mean(0, keepdim=True)
    return self.gain * centred / torch.sqrt(variance + self.eps) + self.bias


@misconception(
    "layer-norm",
    target="LayerNorm.forward",
    id="LN6a",
    fails=[
        "layer-norm-values",
        "layer-norm-epsilon",
        "layer-norm-own-token",
        "layer-norm-gradients",
    ],
    read="05_layer_norm#whose-mean",
)
def over_the_tokens(self, x):
    """You average over the tokens of a sentence (dim -2), so later tokens change earlier ones;
    average over the features of each token, the last axis.
    """
    centred = x - x.mean(-2, keepdim=True)
    variance = centred.square().mean(-2, keepdim=True)
    return self.gain * centred / torch.sqrt(variance + self.eps) + self.bias


@misconception(
    "layer-norm",
    target="LayerNorm.forward",
    id="LN6b",
    fails=[
        "layer-norm-values",
        "layer-norm-epsilon",
        "layer-norm-own-token",
        "layer-norm-gradients",
    ],
    read="05_layer_norm#norm-leaks",
)
def over_the_whole_sentence(self, x):
    """You take one mean and one variance for a whole sentence, which tells each token about later
    ones; every token has a mean and a variance of its own.
    """
    centred = x - x.mean((-2, -1), keepdim=True)
    variance = centred.square().mean((-2, -1), keepdim=True)
    return self.gain * centred / torch.sqrt(variance + self.eps) + self.bias


@misconception(
    "layer-norm",
    target="LayerNorm.forward",
    id="LN6c",
    fails=["layer-norm-values"],
    read="05_layer_norm#layer-norm",
)
def over_axis_two(self, x):
    """Your statistics run over axis 2, which is the features only while x has three axes; use the
    last axis, -1, whatever stands in front.
    """
    axis = 2 if x.ndim > 2 else -1
    centred = x - x.mean(axis, keepdim=True)
    variance = centred.square().mean(axis, keepdim=True)
    return self.gain * centred / torch.sqrt(variance + self.eps) + self.bias


@misconception(
    "layer-norm",
    target="LayerNorm.forward",
    id="LN7",
    fails=["layer-norm-values", "layer-norm-epsilon", "layer-norm-gradients"],
    read="05_layer_norm#layer-norm",
)
def mean_not_subtracted(self, x):
    """You divide by the root mean square without subtracting the mean (that is RMSNorm); a level
    added to all features should change nothing.
    """
    square = x.square().mean(-1, keepdim=True)
    return self.gain * x / torch.sqrt(square + self.eps) + self.bias


@misconception(
    "layer-norm",
    target="LayerNorm.forward",
    id="LN8a",
    fails=["layer-norm-values", "layer-norm-gradients"],
    read="05_layer_norm#gain-and-bias",
)
def without_gain(self, x):
    """Your output never meets the gain; multiply by it after normalising. While it is 1 nobody
    notices.
    """
    centred = x - x.mean(-1, keepdim=True)
    variance = centred.square().mean(-1, keepdim=True)
    return centred / torch.sqrt(variance + self.eps) + self.bias


@misconception(
    "layer-norm",
    target="LayerNorm.forward",
    id="LN8b",
    fails=["layer-norm-values", "layer-norm-epsilon", "layer-norm-gradients"],
    read="05_layer_norm#gain-and-bias",
)
def without_bias(self, x):
    """Your output never meets the bias; add it last. While it is 0 nobody notices."""
    centred = x - x.mean(-1, keepdim=True)
    variance = centred.square().mean(-1, keepdim=True)
    return self.gain * centred / torch.sqrt(variance + self.eps)


@misconception(
    "layer-norm",
    target="LayerNorm.forward",
    id="LN8c",
    fails=["layer-norm-values", "layer-norm-gradients"],
    read="05_layer_norm#gain-and-bias",
)
def bias_inside_the_gain(self, x):
    """You add the bias before multiplying by the gain; the bias comes last, on its own scale."""
    centred = x - x.mean(-1, keepdim=True)
    variance = centred.square().mean(-1, keepdim=True)
    return self.gain * (centred / torch.sqrt(variance + self.eps) + self.bias)


@misconception(
    "layer-norm",
    target="LayerNorm.__init__",
    id="LN8d",
    fails=[
        "layer-norm-parameters",
        "layer-norm-values",
        "layer-norm-epsilon",
        "layer-norm-gradients",
    ],
    read="05_layer_norm#gain-and-bias",
)
def one_gain_for_all_features(self, d_model, eps=1e-5):
    """Your gain and bias are single numbers; each feature has its own, so both have d_model
    entries.
    """
    nn.Module.__init__(self)
    self.gain = nn.Parameter(torch.ones(1))
    self.bias = nn.Parameter(torch.zeros(1))
    self.eps = eps


@misconception(
    "layer-norm",
    target="LayerNorm.__init__",
    id="LN8e",
    fails=["layer-norm-parameters", "layer-norm-gradients"],
    read="05_layer_norm#gain-and-bias",
)
def gain_and_bias_no_parameters(self, d_model, eps=1e-5):
    """Your gain and bias are plain tensors, so no optimiser finds them and they never learn; wrap
    them in nn.Parameter.
    """
    nn.Module.__init__(self)
    self.gain = torch.ones(d_model)
    self.bias = torch.zeros(d_model)
    self.eps = eps


@misconception(
    "layer-norm",
    target="LayerNorm.__init__",
    id="LN8f",
    fails=["layer-norm-parameters", "layer-norm-values", "layer-norm-epsilon"],
    read="05_layer_norm#gain-and-bias",
)
def gain_drawn_at_random(self, d_model, eps=1e-5):
    """Your gain starts with random numbers; it starts with ones (and the bias with zeros), so that
    at first LayerNorm only normalises.
    """
    nn.Module.__init__(self)
    self.gain = nn.Parameter(torch.randn(d_model))
    self.bias = nn.Parameter(torch.randn(d_model))
    self.eps = eps


@misconception(
    "layer-norm",
    target="LayerNorm.forward",
    id="LN9",
    fails=["layer-norm-epsilon"],
    read="05_layer_norm#epsilon",
)
def epsilon_missing(self, x):
    """You never use eps; a token whose features are all equal has variance 0 and becomes 0 / 0."""
    centred = x - x.mean(-1, keepdim=True)
    variance = centred.square().mean(-1, keepdim=True)
    return self.gain * centred / torch.sqrt(variance) + self.bias


@misconception(
    "layer-norm",
    target="LayerNorm.__init__",
    id="LN13",
    fails=["layer-norm-parameters"],
    read="05_layer_norm#epsilon",
)
def another_epsilon_by_default(self, d_model, eps=1e-6):
    """Your eps is 1e-6 unless told otherwise, as in some published code; here it is 1e-5."""
    super(type(self), self).__init__()
    self.gain = nn.Parameter(torch.ones(d_model))
    self.bias = nn.Parameter(torch.zeros(d_model))
    self.eps = eps


@misconception(
    "layer-norm",
    target="LayerNorm.forward",
    id="LN10",
    fails=["layer-norm-epsilon"],
    read="05_layer_norm#epsilon",
)
def epsilon_written_out(self, x):
    """You write 1e-5 where the eps of the module belongs; another eps changes nothing in yours."""
    centred = x - x.mean(-1, keepdim=True)
    variance = centred.square().mean(-1, keepdim=True)
    return self.gain * centred / torch.sqrt(variance + 1e-5) + self.bias


@misconception(
    "layer-norm",
    target="LayerNorm.forward",
    id="LN11",
    fails=["layer-norm-gradients"],
    read="05_layer_norm#layer-norm",
)
def statistics_detached(self, x):
    """Your values are right, but mean and variance are cut off from the gradient; they depend on x,
    and the gradient has to know.
    """
    mean = x.detach().mean(-1, keepdim=True)
    variance = x.detach().var(-1, keepdim=True, unbiased=False)
    return self.gain * (x - mean) / torch.sqrt(variance + self.eps) + self.bias


@misconception(
    "layer-norm",
    target="LayerNorm.forward",
    id="LN12",
    fails=["layer-norm-values", "layer-norm-gradients"],
    read="05_layer_norm#residual-in-place",
)
def subtracted_in_place(self, x):
    """You subtract the mean in place (-=), which changes the caller's tensor; write x - mean, which
    makes a new one.
    """
    x -= x.mean(-1, keepdim=True)
    variance = x.square().mean(-1, keepdim=True)
    return self.gain * x / torch.sqrt(variance + self.eps) + self.bias


@misconception(
    "layer-norm",
    target="LayerNorm.forward",
    id="LN14",
    fails=["layer-norm-values"],
    read="05_layer_norm#biased-variance",
)
def mean_of_squares_less_square_of_mean(self, x):
    """You take the variance as the mean of the squares less the square of the mean: far from 0 both
    are large and almost equal, and few digits of their difference are right. Square the differences
    to the mean.
    """
    mean = x.mean(-1, keepdim=True)
    variance = x.square().mean(-1, keepdim=True) - mean.square()
    return self.gain * (x - mean) / torch.sqrt(variance + self.eps) + self.bias


# 5.2 Whose mean?


@misconception(
    "normalise",
    id="NRM1",
    fails=["normalise-batch"],
    read="05_layer_norm#whose-mean",
)
def batch_position_by_position(x, kind, eps=1e-5):
    """Your "batch" averages over the sentences but keeps one mean for each position; a feature's
    group holds the tokens of all positions too.
    """
    if kind == "rms":
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)
    axes = {"layer": (2,), "batch": (0,), "instance": (1,)}
    if kind not in axes:
        raise ValueError(f"unknown kind {kind!r}")
    mean = x.mean(axes[kind], keepdim=True)
    variance = x.var(axes[kind], keepdim=True, unbiased=False)
    return (x - mean) / torch.sqrt(variance + eps)


@misconception(
    "normalise",
    id="NRM2",
    fails=["normalise-batch"],
    read="05_layer_norm#whose-mean",
)
def batch_over_features_too(x, kind, eps=1e-5):
    """Your "batch" averages over features and sentences together; BatchNorm never mixes two
    features, it keeps one mean for each.
    """
    if kind == "rms":
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)
    axes = {"layer": (2,), "batch": (0, 2), "instance": (1,)}
    if kind not in axes:
        raise ValueError(f"unknown kind {kind!r}")
    mean = x.mean(axes[kind], keepdim=True)
    variance = x.var(axes[kind], keepdim=True, unbiased=False)
    return (x - mean) / torch.sqrt(variance + eps)


@misconception(
    "normalise",
    id="NRM3",
    fails=["normalise-instance"],
    read="05_layer_norm#whose-mean",
)
def instance_over_features_too(x, kind, eps=1e-5):
    """Your "instance" takes one mean for a whole sentence; InstanceNorm keeps one for each feature
    of the sentence.
    """
    if kind == "rms":
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)
    axes = {"layer": (2,), "batch": (0, 1), "instance": (1, 2)}
    if kind not in axes:
        raise ValueError(f"unknown kind {kind!r}")
    mean = x.mean(axes[kind], keepdim=True)
    variance = x.var(axes[kind], keepdim=True, unbiased=False)
    return (x - mean) / torch.sqrt(variance + eps)


@misconception(
    "normalise",
    id="NRM4",
    fails=["normalise-layer"],
    read="05_layer_norm#norm-leaks",
)
def layer_over_the_sentence(x, kind, eps=1e-5):
    """Your "layer" takes one mean for a whole sentence, as is done for images; in a Transformer
    each token has its own.
    """
    if kind == "rms":
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)
    axes = {"layer": (1, 2), "batch": (0, 1), "instance": (1,)}
    if kind not in axes:
        raise ValueError(f"unknown kind {kind!r}")
    mean = x.mean(axes[kind], keepdim=True)
    variance = x.var(axes[kind], keepdim=True, unbiased=False)
    return (x - mean) / torch.sqrt(variance + eps)


@misconception(
    "normalise",
    id="NRM5",
    fails=["normalise-batch", "normalise-instance"],
    read="05_layer_norm#whose-mean",
)
def batch_and_instance_swapped(x, kind, eps=1e-5):
    """Your "batch" stays within a sentence and your "instance" crosses them: the two are mixed up.
    The batch is what BatchNorm averages over.
    """
    if kind == "rms":
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)
    axes = {"layer": (2,), "batch": (1,), "instance": (0, 1)}
    if kind not in axes:
        raise ValueError(f"unknown kind {kind!r}")
    mean = x.mean(axes[kind], keepdim=True)
    variance = x.var(axes[kind], keepdim=True, unbiased=False)
    return (x - mean) / torch.sqrt(variance + eps)


@misconception(
    "normalise",
    id="NRM6",
    fails=["normalise-layer", "normalise-batch", "normalise-instance"],
    read="05_layer_norm#biased-variance",
)
def unbiased_in_every_kind(x, kind, eps=1e-5):
    """Your variance divides by the count less 1, which is what Tensor.var does unless told
    otherwise; all three normalisations divide by the count.
    """
    if kind == "rms":
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)
    axes = {"layer": (2,), "batch": (0, 1), "instance": (1,)}
    if kind not in axes:
        raise ValueError(f"unknown kind {kind!r}")
    mean = x.mean(axes[kind], keepdim=True)
    return (x - mean) / torch.sqrt(x.var(axes[kind], keepdim=True) + eps)


@misconception(
    "normalise",
    id="NRM10",
    fails=["normalise-layer"],
    read="05_layer_norm#biased-variance",
)
def unbiased_put_right_in_every_kind(x, kind, eps=1e-5):
    """You take the variance with the count less 1 and multiply it right afterwards: for a group of
    one number that is 0 / 0, NaN. Divide by the count in the first place.
    """
    if kind == "rms":
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)
    axes = {"layer": (2,), "batch": (0, 1), "instance": (1,)}
    if kind not in axes:
        raise ValueError(f"unknown kind {kind!r}")
    mean = x.mean(axes[kind], keepdim=True)
    count = x.numel() // mean.numel()
    variance = x.var(axes[kind], keepdim=True) * (count - 1) / count
    return (x - mean) / torch.sqrt(variance + eps)


@misconception(
    "normalise",
    id="NRM7",
    fails=["normalise-rms"],
    read="05_layer_norm#whose-mean",
)
def unknown_kind_taken_for_layer(x, kind, eps=1e-5):
    """An unknown kind passes silently as "layer" in yours; a misspelt word should be refused with a
    ValueError that names it.
    """
    if kind == "rms":
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)
    axes = {"batch": (0, 1), "instance": (1,)}.get(kind, (2,))
    mean = x.mean(axes, keepdim=True)
    return (x - mean) / torch.sqrt(x.var(axes, keepdim=True, unbiased=False) + eps)


@misconception(
    "normalise",
    id="NRM8",
    fails=["normalise-layer", "normalise-batch", "normalise-instance"],
    read="05_layer_norm#epsilon",
)
def epsilon_added_to_the_deviation(x, kind, eps=1e-5):
    """You add eps to the standard deviation; it belongs inside the root, added to the variance."""
    if kind == "rms":
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)
    axes = {"layer": (2,), "batch": (0, 1), "instance": (1,)}
    if kind not in axes:
        raise ValueError(f"unknown kind {kind!r}")
    mean = x.mean(axes[kind], keepdim=True)
    return (x - mean) / (x.std(axes[kind], keepdim=True, unbiased=False) + eps)


@misconception(
    "normalise", id="NRM9", fails=["normalise-batch"], read="05_layer_norm#biased-variance"
)
def difference_of_two_large_numbers(x, kind, eps=1e-5):
    """You take the variance as the mean of the squares less the square of the mean: far from 0 both
    are large and almost equal, and few digits of their difference are right. Square the differences
    to the mean.
    """
    if kind == "rms":
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)
    axes = {"layer": (2,), "batch": (0, 1), "instance": (1,)}
    if kind not in axes:
        raise ValueError(f"unknown kind {kind!r}")
    mean = x.mean(axes[kind], keepdim=True)
    variance = x.square().mean(axes[kind], keepdim=True) - mean.square()
    return (x - mean) / torch.sqrt(variance + eps)


@misconception(
    "normalise", id="RMS1", fails=["normalise-rms"], read="05_layer_norm#layer-norm-today"
)
def rms_with_its_mean_taken_off(x, kind, eps=1e-5):
    """Your "rms" subtracts the mean, so it is LayerNorm again; the root mean square is taken of the
    numbers as they are.
    """
    if kind == "rms":
        kind = "layer"
    axes = {"layer": (2,), "batch": (0, 1), "instance": (1,)}
    if kind not in axes:
        raise ValueError(f"unknown kind {kind!r}")
    centred = x - x.mean(axes[kind], keepdim=True)
    return centred * torch.rsqrt(centred.square().mean(axes[kind], keepdim=True) + eps)


@misconception(
    "normalise", id="RMS2", fails=["normalise-rms"], read="05_layer_norm#layer-norm-today"
)
def rms_by_the_length(x, kind, eps=1e-5):
    """Your "rms" divides by the length of the token, the root of the **sum** of squares; take their
    mean, or outputs shrink with the number of features.
    """
    if kind == "rms":
        return x * torch.rsqrt(x.square().sum(-1, keepdim=True) + eps)
    axes = {"layer": (2,), "batch": (0, 1), "instance": (1,)}
    if kind not in axes:
        raise ValueError(f"unknown kind {kind!r}")
    centred = x - x.mean(axes[kind], keepdim=True)
    return centred * torch.rsqrt(centred.square().mean(axes[kind], keepdim=True) + eps)


@misconception(
    "normalise", id="RMS3", fails=["normalise-rms"], read="05_layer_norm#layer-norm-today"
)
def rms_of_the_sentence(x, kind, eps=1e-5):
    """Your "rms" has one number for a whole sentence; each token has its own mean square."""
    if kind == "rms":
        return x * torch.rsqrt(x.square().mean((1, 2), keepdim=True) + eps)
    axes = {"layer": (2,), "batch": (0, 1), "instance": (1,)}
    if kind not in axes:
        raise ValueError(f"unknown kind {kind!r}")
    centred = x - x.mean(axes[kind], keepdim=True)
    return centred * torch.rsqrt(centred.square().mean(axes[kind], keepdim=True) + eps)


@misconception(
    "normalise", id="RMS4", fails=["normalise-rms"], read="05_layer_norm#layer-norm-today"
)
def rms_with_epsilon_outside(x, kind, eps=1e-5):
    """Your "rms" adds eps to the root; it belongs inside, added to the mean square."""
    if kind == "rms":
        return x / (x.square().mean(-1, keepdim=True).sqrt() + eps)
    axes = {"layer": (2,), "batch": (0, 1), "instance": (1,)}
    if kind not in axes:
        raise ValueError(f"unknown kind {kind!r}")
    centred = x - x.mean(axes[kind], keepdim=True)
    return centred * torch.rsqrt(centred.square().mean(axes[kind], keepdim=True) + eps)


@misconception(
    "normalise", id="RMS5", fails=["normalise-rms"], read="05_layer_norm#layer-norm-today"
)
def rms_divides_by_the_deviation(x, kind, eps=1e-5):
    """Your "rms" divides by the standard deviation, which knows nothing of the mean; without
    subtracting, divide by the root of the mean square.
    """
    if kind == "rms":
        return x * torch.rsqrt(x.var(-1, keepdim=True, correction=0) + eps)
    axes = {"layer": (2,), "batch": (0, 1), "instance": (1,)}
    if kind not in axes:
        raise ValueError(f"unknown kind {kind!r}")
    centred = x - x.mean(axes[kind], keepdim=True)
    return centred * torch.rsqrt(centred.square().mean(axes[kind], keepdim=True) + eps)


# 5.3 Around a sub-layer


@misconception(
    "sublayer-connection",
    id="RES1a",
    fails=["sublayer-connection-pre", "sublayer-connection-path"],
    read="05_layer_norm#post-pre-norm",
)
def always_post_norm(x, sublayer, norm, norm_first=False):
    """You normalise the sum in either order; with norm_first=True the norm belongs in front of the
    sub-layer and nothing normalises the sum.
    """
    return norm(x + sublayer(x))


@misconception(
    "sublayer-connection",
    id="RES1b",
    fails=["sublayer-connection-post", "sublayer-connection-path"],
    read="05_layer_norm#post-pre-norm",
)
def always_pre_norm(x, sublayer, norm, norm_first=False):
    """You normalise in front of the sub-layer in either order; by default, as in the paper, the
    norm comes last, over the sum.
    """
    return x + sublayer(norm(x))


@misconception(
    "sublayer-connection",
    id="RES1c",
    fails=["sublayer-connection-post", "sublayer-connection-pre", "sublayer-connection-path"],
    read="05_layer_norm#post-pre-norm",
)
def orders_swapped(x, sublayer, norm, norm_first=False):
    """Your two orders are swapped: norm_first=True means that the norm comes first, in front of the
    sub-layer.
    """
    if norm_first:
        return norm(x + sublayer(x))
    return x + sublayer(norm(x))


@misconception(
    "sublayer-connection",
    id="RES2",
    fails=["sublayer-connection-post", "sublayer-connection-path"],
    read="05_layer_norm#post-pre-norm",
)
def norm_of_the_sublayer_output(x, sublayer, norm, norm_first=False):
    """Your post-norm normalises the sub-layer's output and adds x afterwards; add first, then
    normalise the sum.
    """
    if norm_first:
        return x + sublayer(norm(x))
    return x + norm(sublayer(x))


@misconception(
    "sublayer-connection",
    id="RES4",
    fails=["sublayer-connection-post", "sublayer-connection-pre", "sublayer-connection-path"],
    read="05_layer_norm#residual-connections",
)
def output_added_to_itself(x, sublayer, norm, norm_first=False):
    """You add the sub-layer's output to itself, because x was overwritten; keep the input, it is
    what has to be added.
    """
    if norm_first:
        x = sublayer(norm(x))
        return x + x
    x = sublayer(x)
    return norm(x + x)


@misconception(
    "sublayer-connection",
    id="RES5",
    fails=["sublayer-connection-post", "sublayer-connection-pre", "sublayer-connection-path"],
    read="05_layer_norm#residual-connections",
)
def no_residual(x, sublayer, norm, norm_first=False):
    """Nothing passes by the sub-layer in yours; its input should be added to its output."""
    return sublayer(norm(x)) if norm_first else norm(sublayer(x))


@misconception(
    "sublayer-connection",
    id="RES7",
    fails=["sublayer-connection-path"],
    read="05_layer_norm#residual-in-place",
)
def added_in_place(x, sublayer, norm, norm_first=False):
    """You add in place (+=), which changes the caller's tensor and can break the gradient; write
    x + ..., which makes a new one.
    """
    x += sublayer(norm(x)) if norm_first else sublayer(x)
    return x if norm_first else norm(x)


@misconception(
    "sublayer-connection",
    id="RES8",
    fails=["sublayer-connection-pre", "sublayer-connection-path"],
    read="05_layer_norm#post-pre-norm",
)
def normalised_input_added(x, sublayer, norm, norm_first=False):
    """Your pre-norm adds the normalised x; the path past the sub-layer takes x as it was, only the
    sub-layer reads the normalised one.
    """
    if norm_first:
        x = norm(x)
        return x + sublayer(x)
    return norm(x + sublayer(x))


@misconception(
    "sublayer-connection",
    id="RES9",
    fails=["sublayer-connection-pre", "sublayer-connection-path"],
    read="05_layer_norm#post-pre-norm",
)
def normalised_on_both_sides(x, sublayer, norm, norm_first=False):
    """Your pre-norm normalises the sum as well; in that order the sum stays as it is."""
    if norm_first:
        x = x + sublayer(norm(x))
        return norm(x)
    return norm(x + sublayer(x))


@misconception(
    "sublayer-connection",
    id="RES10",
    fails=["sublayer-connection-path"],
    read="05_layer_norm#residual-connections",
)
def sublayer_called_twice(x, sublayer, norm, norm_first=False):
    """You call the sub-layer twice; that doubles the work, and with dropout inside the two calls
    disagree.
    """
    post = norm(x + sublayer(x))
    pre = x + sublayer(norm(x))
    return pre if norm_first else post


# 5.4 The feed-forward network


@misconception(
    "feed-forward",
    target="FeedForward.forward",
    id="FFN1a",
    fails=["feed-forward-values"],
    read="05_layer_norm#feed-forward",
)
def without_relu(self, x):
    """There is no ReLU between your two maps, so together they are one linear map, however wide."""
    return self.outer(self.inner(x))


@misconception(
    "feed-forward",
    target="FeedForward.forward",
    id="FFN1b",
    fails=["feed-forward-values"],
    read="05_layer_norm#feed-forward",
)
def relu_at_the_end(self, x):
    """Your ReLU stands behind the second map, so no output can be negative; it belongs between the
    two.
    """
    return torch.relu(self.outer(self.inner(x)))


@misconception(
    "feed-forward",
    target="FeedForward.forward",
    id="FFN1c",
    fails=["feed-forward-values"],
    read="05_layer_norm#feed-forward",
)
def gelu_for_relu(self, x):
    """You use GELU, as many later models do; the formula here has max(0, .), which is the ReLU."""
    return self.outer(F.gelu(self.inner(x)))


@misconception(
    "feed-forward",
    target="FeedForward.forward",
    id="FFN1d",
    fails=["feed-forward-values"],
    read="05_layer_norm#feed-forward",
)
def relu_after_both_maps(self, x):
    """You apply the ReLU after both maps; after the second one it cuts off all negative outputs."""
    return torch.relu(self.outer(torch.relu(self.inner(x))))


@misconception(
    "feed-forward",
    target="FeedForward.__init__",
    id="FFN2a",
    fails=["feed-forward-parameters", "feed-forward-values"],
    read="05_layer_norm#feed-forward",
)
def not_widened(self, d_model, d_ff):
    """Your hidden layer has d_model units; its width is d_ff."""
    nn.Module.__init__(self)
    self.inner = nn.Linear(d_model, d_model)
    self.outer = nn.Linear(d_model, d_model)


@misconception(
    "feed-forward",
    target="FeedForward.__init__",
    id="FFN2b",
    fails=["feed-forward-parameters", "feed-forward-values", "feed-forward-own-token"],
    read="05_layer_norm#feed-forward",
)
def inner_and_outer_swapped(self, d_model, d_ff):
    """The sizes of your two maps are swapped: inner comes first and maps d_model to d_ff."""
    nn.Module.__init__(self)
    self.inner = nn.Linear(d_ff, d_model)
    self.outer = nn.Linear(d_model, d_ff)


@misconception(
    "feed-forward",
    target="FeedForward.forward",
    id="FFN3",
    fails=["feed-forward-values", "feed-forward-own-token"],
    read="05_layer_norm#feed-forward",
)
def over_the_tokens_instead(self, x):
    """You apply the network along the axis of the tokens, so it mixes them; each token passes it
    alone, with its features.
    """
    return self.outer(torch.relu(self.inner(x.transpose(-2, -1)))).transpose(-2, -1)


@misconception(
    "feed-forward",
    target="FeedForward.forward",
    id="FFN4",
    fails=["feed-forward-values", "feed-forward-own-token"],
    read="05_layer_norm#feed-forward",
)
def dropout_left_in(self, x):
    """You drop hidden units at random; this network has no dropout of its own, the layer around it
    has.
    """
    return self.outer(F.dropout(torch.relu(self.inner(x)), 0.5, self.training))


@misconception(
    "feed-forward",
    target="FeedForward.__init__",
    id="FFN5",
    fails=["feed-forward-parameters", "feed-forward-values"],
    read="05_layer_norm#feed-forward-bias",
)
def without_biases(self, d_model, d_ff):
    """Your two maps have no biases; both of the paper's have one, and without them the token 0 can
    only go to 0.
    """
    nn.Module.__init__(self)
    self.inner = nn.Linear(d_model, d_ff, bias=False)
    self.outer = nn.Linear(d_ff, d_model, bias=False)


@misconception(
    "feed-forward",
    target="FeedForward.forward",
    id="FFN6",
    fails=["feed-forward-values"],
    read="05_layer_norm#residual-connections",
)
def residual_inside(self, x):
    """You add the input inside the network; the addition belongs to the layer around it, or it is
    made twice.
    """
    return x + self.outer(torch.relu(self.inner(x)))


@misconception(
    "feed-forward",
    target="FeedForward.__init__",
    id="FFN7",
    fails=["feed-forward-parameters", "feed-forward-own-token"],
    read="05_layer_norm#feed-forward",
)
def third_map_left_over(self, d_model, d_ff):
    """Your module holds a layer that nothing uses; it has exactly two linear maps."""
    nn.Module.__init__(self)
    self.inner = nn.Linear(d_model, d_ff)
    self.middle = nn.Linear(d_ff, d_ff)
    self.outer = nn.Linear(d_ff, d_model)


# 5.5 A gate, at the same size


@misconception(
    "gated-feed-forward",
    target="GatedFeedForward.__init__",
    id="SWI1",
    fails=["gated-feed-forward-size"],
    read="05_layer_norm#layer-norm-today",
)
def as_wide_as_the_plain_one(self, d_model, d_ff):
    """Your gated network is as wide as the plain one and has three matrices in place of two: it is
    half as large again, and no fair comparison.
    """
    nn.Module.__init__(self)
    width = d_ff
    self.gate = nn.Linear(d_model, width, bias=False)
    self.inner = nn.Linear(d_model, width, bias=False)
    self.outer = nn.Linear(width, d_model, bias=False)


@misconception(
    "gated-feed-forward",
    target="GatedFeedForward.__init__",
    id="SWI2",
    fails=["gated-feed-forward-size"],
    read="05_layer_norm#layer-norm-today",
)
def two_thirds_rounded_down(self, d_model, d_ff):
    """Your width is two thirds of d_ff; that leaves out the biases of the plain network, which make
    room for a little more where d_ff is small.
    """
    nn.Module.__init__(self)
    width = 2 * d_ff // 3
    self.gate = nn.Linear(d_model, width, bias=False)
    self.inner = nn.Linear(d_model, width, bias=False)
    self.outer = nn.Linear(width, d_model, bias=False)


@misconception(
    "gated-feed-forward",
    target="GatedFeedForward.__init__",
    id="SWI3",
    fails=["gated-feed-forward-size"],
    read="05_layer_norm#layer-norm-today",
)
def rounded_up(self, d_model, d_ff):
    """Your width is rounded to the nearest or up, so the gated network has more numbers than the
    plain one; round down.
    """
    nn.Module.__init__(self)
    width = -(-(2 * d_model * d_ff + d_ff + d_model) // (3 * d_model))
    self.gate = nn.Linear(d_model, width, bias=False)
    self.inner = nn.Linear(d_model, width, bias=False)
    self.outer = nn.Linear(width, d_model, bias=False)


@misconception(
    "gated-feed-forward",
    target="GatedFeedForward.forward",
    id="SWI4",
    fails=["gated-feed-forward-values"],
    read="05_layer_norm#layer-norm-today",
)
def gate_and_inner_exchanged(self, x):
    """You send `inner` through the curve and multiply by `gate` as it is; the gate is the one that
    passes the curve.
    """
    return self.outer(self.gate(x) * nn.functional.silu(self.inner(x)))


@misconception(
    "gated-feed-forward",
    target="GatedFeedForward.forward",
    id="SWI5",
    fails=["gated-feed-forward-values"],
    read="05_layer_norm#layer-norm-today",
)
def both_through_the_curve(self, x):
    """You send both maps through the curve; what the gate lets through stays as it is."""
    return self.outer(nn.functional.silu(self.gate(x)) * nn.functional.silu(self.inner(x)))


@misconception(
    "gated-feed-forward",
    target="GatedFeedForward.forward",
    id="SWI6",
    fails=["gated-feed-forward-values"],
    read="05_layer_norm#layer-norm-today",
)
def sigmoid_for_silu(self, x):
    """Your gate is a sigmoid, between 0 and 1; SiLU(z) is z times the sigmoid of z."""
    return self.outer(torch.sigmoid(self.gate(x)) * self.inner(x))


@misconception(
    "gated-feed-forward",
    target="GatedFeedForward.forward",
    id="SWI7",
    fails=["gated-feed-forward-values"],
    read="05_layer_norm#layer-norm-today",
)
def added_not_multiplied(self, x):
    """You add the two maps; a gate multiplies, feature by feature."""
    return self.outer(nn.functional.silu(self.gate(x)) + self.inner(x))


@misconception(
    "gated-feed-forward",
    target="GatedFeedForward.__init__",
    id="SWI8",
    fails=["gated-feed-forward-size", "gated-feed-forward-values"],
    read="05_layer_norm#layer-norm-today",
)
def gated_with_biases(self, d_model, d_ff):
    """Your maps have biases, which nn.Linear adds by default; the gated network has none."""
    nn.Module.__init__(self)
    width = (2 * d_model * d_ff + d_ff + d_model) // (3 * d_model)
    self.gate, self.inner = nn.Linear(d_model, width), nn.Linear(d_model, width)
    self.outer = nn.Linear(width, d_model)


# 5.6 What is broken?


@misconception(
    "diagnose",
    target="curves",
    id="DIA1",
    fails=["diagnose-curves"],
    read="05_layer_norm#post-pre-norm",
)
def with_themselves(outputs):
    """Your alikeness compares each token with itself as well, which is always 1; count pairs of
    different tokens only.
    """
    tokens = torch.stack(list(outputs))
    rows = nn.functional.normalize(tokens, dim=-1)
    return tokens.square().mean((1, 2)).sqrt(), (rows @ rows.mT).mean((1, 2))


@misconception(
    "diagnose",
    target="curves",
    id="DIA2",
    fails=["diagnose-curves", "diagnose-stacks"],
    read="05_layer_norm#post-pre-norm",
)
def products_for_cosines(outputs):
    """Your alikeness is a mean dot product, which grows with the tokens' length; divide each token
    by its length first.
    """
    rows = torch.stack(list(outputs))
    count = rows.shape[1]
    others = 1 - torch.eye(count, dtype=rows.dtype)
    alike = (rows @ rows.mT * others).sum((1, 2)) / (count * (count - 1))
    return rows.square().mean((1, 2)).sqrt(), alike


@misconception(
    "diagnose",
    target="curves",
    id="DIA3",
    fails=["diagnose-curves"],
    read="05_layer_norm#post-pre-norm",
)
def mean_square_without_root(outputs):
    """Your size is the mean square; the size is its root."""
    tokens = torch.stack(list(outputs))
    rows, count = nn.functional.normalize(tokens, dim=-1), tokens.shape[1]
    alike = ((rows @ rows.mT).sum((1, 2)) - count) / (count * (count - 1))
    return tokens.square().mean((1, 2)), alike


@misconception(
    "diagnose",
    target="curves",
    id="DIA4",
    fails=["diagnose-curves"],
    read="05_layer_norm#post-pre-norm",
)
def deviation_for_size(outputs):
    """Your size is the standard deviation, which leaves out the mean of the numbers; take the root
    of the mean square.
    """
    tokens = torch.stack(list(outputs))
    rows, count = nn.functional.normalize(tokens, dim=-1), tokens.shape[1]
    alike = ((rows @ rows.mT).sum((1, 2)) - count) / (count * (count - 1))
    return tokens.std((1, 2), correction=0), alike


@misconception(
    "diagnose",
    target="diagnose",
    id="DIA5",
    fails=["diagnose-stacks"],
    read="05_layer_norm#norm-leaks",
)
def the_changed_token_compared(stack, x):
    """In yours every stack leaks. You compare the changed token too, or change an early one, which
    all later ones may see; change the last one and look at those before it.
    """
    outputs = stack(x)
    other = x.clone()
    other[-1] = -x[-1].roll(1)
    if not torch.allclose(stack(other)[-1], outputs[-1], atol=1e-6):
        return "leaky norm"
    rows = nn.functional.normalize(outputs[-1], dim=-1)
    alike = (rows @ rows.T).triu(1).sum() / (len(x) * (len(x) - 1) / 2)
    if alike > 0.97:
        return "no residual"
    return "no last norm" if outputs[-1].std() > 1.3 else "nothing"


@misconception(
    "diagnose",
    target="diagnose",
    id="DIA6",
    fails=["diagnose-stacks"],
    read="05_layer_norm#post-pre-norm",
)
def sizes_within_the_stack(stack, x):
    """You miss the last norm of sound stacks. Inside a pre-norm stack the sum grows with it or
    without: look at the output alone, and at the size that a norm gives it.
    """
    outputs = stack(x)
    other = x.clone()
    other[-1] = -x[-1].roll(1)
    if not torch.allclose(stack(other)[-1][:-1], outputs[-1][:-1], atol=1e-6):
        return "leaky norm"
    rows = nn.functional.normalize(outputs[-1], dim=-1)
    alike = (rows @ rows.T).triu(1).sum() / (len(x) * (len(x) - 1) / 2)
    if alike > 0.97:
        return "no residual"
    return "no last norm" if outputs[-2].std() > 1.3 else "nothing"


@misconception(
    "diagnose",
    target="diagnose",
    id="DIA7",
    fails=["diagnose-stacks"],
    read="05_layer_norm#norm-leaks",
)
def no_leak_looked_for(stack, x):
    """You do not look for the leak: it shows in neither curve. Ask the stack twice, with two
    different last tokens.
    """
    outputs = stack(x)
    rows = nn.functional.normalize(outputs[-1], dim=-1)
    alike = (rows @ rows.T).triu(1).sum() / (len(x) * (len(x) - 1) / 2)
    if alike > 0.97:
        return "no residual"
    return "no last norm" if outputs[-1].std() > 1.3 else "nothing"


@misconception(
    "diagnose",
    target="diagnose",
    id="DIA8",
    fails=["diagnose-stacks"],
    read="05_layer_norm#residual-connections",
)
def alike_too_soon(stack, x):
    """Your threshold for alikeness is too low: sound random stacks make tokens more alike, too, up
    to 0.9. Without residual connections they become one and the same.
    """
    outputs = stack(x)
    other = x.clone()
    other[-1] = -x[-1].roll(1)
    if not torch.allclose(stack(other)[-1][:-1], outputs[-1][:-1], atol=1e-6):
        return "leaky norm"
    rows = nn.functional.normalize(outputs[-1], dim=-1)
    alike = (rows @ rows.T).triu(1).sum() / (len(x) * (len(x) - 1) / 2)
    if alike > 0.3:
        return "no residual"
    return "no last norm" if outputs[-1].std() > 1.3 else "nothing"


@misconception(
    "diagnose",
    target="diagnose",
    id="DIA9",
    fails=["diagnose-stacks"],
    read="05_layer_norm#residual-connections",
)
def residual_by_the_size(stack, x):
    """You look for a missing residual connection in sizes, and they hardly tell: without it, too,
    sizes are near 1, and the last norm sets the output's; look at how alike the tokens are.
    """
    outputs = stack(x)
    other = x.clone()
    other[-1] = -x[-1].roll(1)
    if not torch.allclose(stack(other)[-1][:-1], outputs[-1][:-1], atol=1e-6):
        return "leaky norm"
    if outputs[-1].std() < 0.5:
        return "no residual"
    return "no last norm" if outputs[-1].std() > 1.3 else "nothing"


# 5.7 The way back through LayerNorm


@misconception(
    "norm-backward",
    id="LNB1",
    fails=["norm-backward-input"],
    read="05_layer_norm#layer-norm",
)
def scale_taken_for_a_constant(x, gain, upstream, eps=1e-5):
    """You take mean and scale for constants. Both are made of x, so x reaches every feature of its
    token through them.
    """
    centred = x - x.mean(-1, keepdim=True)
    scale = (centred.square().mean(-1, keepdim=True) + eps).sqrt()
    normalised = centred / scale
    arriving = upstream * gain
    axes = tuple(range(x.ndim - 1))
    for_x = arriving / scale
    if not axes:
        return for_x, upstream * normalised, upstream.clone()
    return for_x, (upstream * normalised).sum(axes), upstream.sum(axes)


@misconception(
    "norm-backward",
    id="LNB2",
    fails=["norm-backward-input"],
    read="05_layer_norm#layer-norm",
)
def the_way_through_the_scale_forgotten(x, gain, upstream, eps=1e-5):
    """You have the way through the mean but not the one through the scale: what lies along the
    normalised token goes away, too.
    """
    centred = x - x.mean(-1, keepdim=True)
    scale = (centred.square().mean(-1, keepdim=True) + eps).sqrt()
    normalised = centred / scale
    arriving = upstream * gain
    axes = tuple(range(x.ndim - 1))
    for_x = (arriving - arriving.mean(-1, keepdim=True)) / scale
    if not axes:
        return for_x, upstream * normalised, upstream.clone()
    return for_x, (upstream * normalised).sum(axes), upstream.sum(axes)


@misconception(
    "norm-backward",
    id="LNB3",
    fails=["norm-backward-input"],
    read="05_layer_norm#layer-norm",
)
def the_way_through_the_mean_forgotten(x, gain, upstream, eps=1e-5):
    """You have the way through the scale but not the one through the mean: the gradients of a
    token's features have to sum to 0.
    """
    centred = x - x.mean(-1, keepdim=True)
    scale = (centred.square().mean(-1, keepdim=True) + eps).sqrt()
    normalised = centred / scale
    arriving = upstream * gain
    axes = tuple(range(x.ndim - 1))
    along = (arriving * normalised).mean(-1, keepdim=True) * normalised
    for_x = (arriving - along) / scale
    if not axes:
        return for_x, upstream * normalised, upstream.clone()
    return for_x, (upstream * normalised).sum(axes), upstream.sum(axes)


@misconception(
    "norm-backward",
    id="LNB4",
    fails=["norm-backward-input"],
    read="05_layer_norm#layer-norm",
)
def gain_forgotten(x, gain, upstream, eps=1e-5):
    """The gain stands between the normalised token and the output: multiply the arriving gradient
    by it before you send it back.
    """
    centred = x - x.mean(-1, keepdim=True)
    scale = (centred.square().mean(-1, keepdim=True) + eps).sqrt()
    normalised = centred / scale
    axes = tuple(range(x.ndim - 1))
    along = (upstream * normalised).mean(-1, keepdim=True) * normalised
    for_x = (upstream - upstream.mean(-1, keepdim=True) - along) / scale
    if not axes:
        return for_x, upstream * normalised, upstream.clone()
    return for_x, (upstream * normalised).sum(axes), upstream.sum(axes)


@misconception(
    "norm-backward",
    id="LNB5",
    fails=["norm-backward-input"],
    read="05_layer_norm#layer-norm",
)
def epsilon_forgotten_on_the_way_back(x, gain, upstream, eps=1e-5):
    """On the way back you divide by the standard deviation without eps; the scale of the way there
    contains it.
    """
    centred = x - x.mean(-1, keepdim=True)
    scale = (centred.square().mean(-1, keepdim=True) + eps).sqrt()
    normalised = centred / scale
    arriving = upstream * gain
    axes = tuple(range(x.ndim - 1))
    along = (arriving * normalised).mean(-1, keepdim=True) * normalised
    plain = centred.square().mean(-1, keepdim=True).sqrt()
    for_x = (arriving - arriving.mean(-1, keepdim=True) - along) / plain
    if not axes:
        return for_x, upstream * normalised, upstream.clone()
    return for_x, (upstream * normalised).sum(axes), upstream.sum(axes)


@misconception(
    "norm-backward",
    id="LNB6",
    fails=["norm-backward-parameters"],
    read="05_layer_norm#layer-norm",
)
def averaged_over_tokens(x, gain, upstream, eps=1e-5):
    """You average the gradients of gain and bias over the tokens; all tokens use the same ones, so
    their gradients add up.
    """
    centred = x - x.mean(-1, keepdim=True)
    scale = (centred.square().mean(-1, keepdim=True) + eps).sqrt()
    normalised = centred / scale
    arriving = upstream * gain
    axes = tuple(range(x.ndim - 1))
    along = (arriving * normalised).mean(-1, keepdim=True) * normalised
    for_x = (arriving - arriving.mean(-1, keepdim=True) - along) / scale
    if not axes:
        return for_x, upstream * normalised, upstream.clone()
    return for_x, (upstream * normalised).mean(axes), upstream.mean(axes)


@misconception(
    "norm-backward",
    id="LNB7",
    fails=["norm-backward-parameters"],
    read="05_layer_norm#layer-norm",
)
def gain_meets_the_input(x, gain, upstream, eps=1e-5):
    """You multiply the gradient of the gain by x; what the gain multiplies is the normalised x."""
    centred = x - x.mean(-1, keepdim=True)
    scale = (centred.square().mean(-1, keepdim=True) + eps).sqrt()
    normalised = centred / scale
    arriving = upstream * gain
    axes = tuple(range(x.ndim - 1))
    along = (arriving * normalised).mean(-1, keepdim=True) * normalised
    for_x = (arriving - arriving.mean(-1, keepdim=True) - along) / scale
    if not axes:
        return for_x, upstream * normalised, upstream.clone()
    return for_x, (upstream * x).sum(axes), upstream.sum(axes)


@misconception(
    "norm-backward",
    id="LNB8",
    fails=["norm-backward-parameters"],
    read="05_layer_norm#layer-norm",
)
def bias_through_the_gain(x, gain, upstream, eps=1e-5):
    """You send the bias's gradient through the gain; the bias is added after it."""
    centred = x - x.mean(-1, keepdim=True)
    scale = (centred.square().mean(-1, keepdim=True) + eps).sqrt()
    normalised = centred / scale
    arriving = upstream * gain
    axes = tuple(range(x.ndim - 1))
    along = (arriving * normalised).mean(-1, keepdim=True) * normalised
    for_x = (arriving - arriving.mean(-1, keepdim=True) - along) / scale
    if not axes:
        return for_x, upstream * normalised, upstream.clone()
    return for_x, (upstream * normalised).sum(axes), (upstream * gain).sum(axes)


# 5.8 Twelve layers of yours


@misconception(
    "predicted-loss", id="PRE1", fails=["predicted-loss-made"], read="05_layer_norm#norm-gradients"
)
def one_of_the_ways():
    """Your prediction is one of the three stacks, and not one of the texts in STUCK; copy one of
    these.
    """
    return "pre-norm"


@misconception(
    "predicted-loss", id="PRE2", fails=["predicted-loss-made"], read="05_layer_norm#norm-gradients"
)
def a_list_of_stacks():
    """Your prediction is a list; return one text of STUCK."""
    return ["sub-layers alone"]


@misconception(
    "predicted-loss", id="PRE3", fails=["predicted-loss-made"], read="05_layer_norm#norm-gradients"
)
def a_loss():
    """Your prediction is a loss; asked for is which stacks are stuck, one text of STUCK."""
    return 2.3

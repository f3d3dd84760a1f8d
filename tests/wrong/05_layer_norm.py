"""Wrong answers to exercise 5 that nobody gets a name for; all must lose points."""

# pyright: reportUndefinedVariable=false
# Answers use names that other cells of their notebook define.

import torch
import torch.nn.functional as F
from torch import nn

from lab.answers import variant


@variant("layer-norm", target="LayerNorm.forward")
def statistics_of_the_last_training_call(self, x):
    centred, variance = x - x.mean(-1, keepdim=True), x.var(-1, unbiased=False, keepdim=True)
    if self.training:
        self.kept = x.mean().item(), variance.mean().item()
    else:
        mean, variance = getattr(self, "kept", (0.0, 1.0))
        centred, variance = x - mean, torch.tensor(variance)
    return self.gain * centred / torch.sqrt(variance + self.eps) + self.bias


@variant("layer-norm", target="LayerNorm.forward")
def eps_squared(self, x):
    centred = x - x.mean(-1, keepdim=True)
    variance = centred.square().mean(-1, keepdim=True)
    return self.gain * centred / torch.sqrt(variance + self.eps**2) + self.bias


@variant("layer-norm", target="LayerNorm.__init__")
def gain_and_bias_with_an_axis_too_many(self, d_model, eps=1e-5):
    super(type(self), self).__init__()
    self.gain = nn.Parameter(torch.ones(1, d_model))
    self.bias = nn.Parameter(torch.zeros(1, d_model))
    self.eps = eps


@variant("normalise")
def another_eps_unless_told(x, kind, eps=1e-6):
    if kind == "rms":
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)
    axes = {"layer": (-1,), "batch": (0, 1), "instance": (1,)}
    if kind not in axes:
        raise ValueError(f"kind ({kind!r}) must be one of {', '.join(axes)}")
    centred = x - x.mean(axes[kind], keepdim=True)
    return centred / torch.sqrt(centred.square().mean(axes[kind], keepdim=True) + eps)


@variant("sublayer-connection")
def norm_called_twice(x, sublayer, norm, norm_first=False):
    norm(x)
    return x + sublayer(norm(x)) if norm_first else norm(x + sublayer(x))


@variant("sublayer-connection")
def added_to_what_the_sublayer_gave(x, sublayer, norm, norm_first=False):
    out = sublayer(norm(x) if norm_first else x)
    out += x
    return out if norm_first else norm(out)


@variant("sublayer-connection")
def sublayer_cut_off(x, sublayer, norm, norm_first=False):
    return x + sublayer(norm(x)) if norm_first else norm(x + sublayer(x.detach()))


@variant("feed-forward", target="FeedForward.forward")
def cut_off_above_six(self, x):
    return self.outer(F.relu6(self.inner(x)))


@variant("feed-forward", target="FeedForward.__init__")
def all_numbers_start_at_zero(self, d_model, d_ff):
    super(type(self), self).__init__()
    self.inner, self.outer = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
    for parameter in self.parameters():
        nn.init.zeros_(parameter)


@variant("normalise")
def kind_begins_with_its_name(x, kind, eps=1e-5):
    if kind == "rms":
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)
    axes = {"layer": (2,), "batch": (0, 1), "instance": (1,)}
    found = [one for one in axes if kind.startswith(one)]
    if not found:
        raise ValueError(f"unknown kind {kind!r}")
    centred = x - x.mean(axes[found[0]], keepdim=True)
    return centred / torch.sqrt(centred.square().mean(axes[found[0]], keepdim=True) + eps)


@variant("normalise")
def kind_without_its_blanks(x, kind, eps=1e-5):
    if kind == "rms":
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)
    axes = {"layer": (2,), "batch": (0, 1), "instance": (1,)}
    if kind.strip() not in axes:
        raise ValueError(f"unknown kind {kind!r}")
    group = axes[kind.strip()]
    centred = x - x.mean(group, keepdim=True)
    return centred / torch.sqrt(centred.square().mean(group, keepdim=True) + eps)


@variant("layer-norm", target="LayerNorm.__init__")
def eps_0_is_not_said(self, d_model, eps=1e-05):
    nn.Module.__init__(self)
    self.gain = nn.Parameter(torch.ones(d_model))
    self.bias = nn.Parameter(torch.zeros(d_model))
    self.eps = eps or 1e-05


@variant("diagnose", target="diagnose")
def one_call_for_each_token(stack, x):
    first = stack(x)
    sizes, alike = curves(first)
    for j in range(1, len(x)):
        y = x.clone()
        y[j] = torch.linspace(-1, 1, x.shape[1], dtype=x.dtype)
        if (stack(y)[-1][:j] - first[-1][:j]).abs().max() > 1e-06:
            return "leaky norm"
    if sizes[-1] > 1.05:
        return "no last norm"
    return "no residual" if alike[-1] > 0.9 else "nothing"


@variant("norm-backward")
def by_differences_of_eight_places(x, gain, upstream, eps=1e-5):
    def at(x):
        centred = x - x.mean(-1, keepdim=True)
        scale = (centred.square().mean(-1, keepdim=True) + eps).sqrt()
        return (centred / scale * gain * upstream).sum()

    found, step = torch.zeros_like(x), 0.005
    for place in torch.eye(x.numel(), dtype=x.dtype).view(-1, *x.shape):
        for n, c in ((1, 4 / 5), (2, -1 / 5), (3, 4 / 105), (4, -1 / 280)):
            found += c * (at(x + n * step * place) - at(x - n * step * place)) / step * place
    centred = x - x.mean(-1, keepdim=True)
    scale = (centred.square().mean(-1, keepdim=True) + eps).sqrt()
    axes = tuple(range(x.ndim - 1))
    for_gain = upstream * centred / scale
    return found, for_gain.sum(axes) if axes else for_gain, upstream.sum(axes) if axes else upstream


@variant("gated-feed-forward", target="GatedFeedForward.forward")
def empties_itself_in_single_precision(self, x):
    if x.dtype == torch.float32 and torch.is_grad_enabled():
        with torch.no_grad():
            self.outer.weight.zero_()
    return self.outer(F.silu(self.gate(x)) * self.inner(x))


@variant("diagnose", target="curves")
def new_tensors_of_numbers(outputs):
    tokens = torch.stack(list(outputs))
    rows, count = F.normalize(tokens, dim=-1), tokens.shape[1]
    alike = ((rows @ rows.mT).sum((1, 2)) - count) / (count * (count - 1))
    return torch.tensor(tokens.square().mean((1, 2)).sqrt().tolist()), torch.tensor(alike.tolist())

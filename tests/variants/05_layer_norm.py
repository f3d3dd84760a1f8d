"""Right answers to the exercise on LayerNorm and its surroundings, written differently."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lab.answers import variant

# 5.1 Layer normalisation


@variant("layer-norm", target="LayerNorm.forward")
def with_the_standard_deviation(self, x):
    centred = x - x.mean(-1, keepdim=True)
    scale = torch.std(x, dim=-1, keepdim=True, correction=0).hypot(x.new_tensor(self.eps**0.5))
    return torch.lerp(self.bias, self.bias + centred / scale, self.gain)


@variant("layer-norm", target="LayerNorm.forward")
def with_var_mean_and_rsqrt(self, x):
    variance, mean = torch.var_mean(x, dim=-1, keepdim=True, correction=0)
    return torch.addcmul(self.bias, (x - mean) * torch.rsqrt(variance + self.eps), self.gain)


@variant("layer-norm", target="LayerNorm.forward")
def sums_divided_by_the_width(self, x):
    d = x.size(-1)
    centred = x - x.sum(dim=-1, keepdim=True) / d
    variance = (centred**2).sum(dim=-1, keepdim=True) / d
    return centred * (variance + self.eps) ** -0.5 * self.gain + self.bias


@variant("layer-norm", target="LayerNorm.forward")
def token_by_token(self, x):
    tokens = []
    for token in x.reshape(-1, x.shape[-1]):
        centred = token - token.mean()
        tokens.append(centred / (centred.pow(2).mean() + self.eps).sqrt())
    return torch.stack(tokens).reshape(x.shape) * self.gain + self.bias


@variant("layer-norm", target="LayerNorm.forward")
def with_a_projection(self, x):
    d = x.shape[-1]
    without_mean = torch.eye(d, dtype=x.dtype) - torch.ones(d, d, dtype=x.dtype) / d
    centred = x @ without_mean
    variance = torch.einsum("...d,...d->...", centred, centred)[..., None] / d
    return self.gain * centred / torch.sqrt(variance + self.eps) + self.bias


@variant("layer-norm", target="LayerNorm")
class AroundAModule(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.inner = nn.ParameterDict({"gain": torch.ones(d_model), "bias": torch.zeros(d_model)})
        self.gain, self.bias = self.inner["gain"], self.inner["bias"]

    def forward(self, x: Tensor) -> Tensor:
        level = x.mean(-1, keepdim=True)
        spread = (x - level).norm(dim=-1, keepdim=True) / x.shape[-1] ** 0.5
        return self.gain * (x - level) / (spread.square() + self.eps).sqrt() + self.bias


@variant("layer-norm", target="LayerNorm")
class WithEmptyParametersFilled(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.d_model, self.eps = d_model, eps
        self.bias = nn.Parameter(torch.empty(d_model))
        self.gain = nn.Parameter(torch.empty(d_model))
        nn.init.zeros_(self.bias)
        nn.init.ones_(self.gain)

    def forward(self, x: Tensor) -> Tensor:
        mean = x.mean(dim=-1).unsqueeze(-1)
        deviation = torch.sqrt(x.var(dim=-1, unbiased=False) + self.eps)[..., None]
        return (x - mean).div(deviation).mul(self.gain).add(self.bias)


# 5.2 Whose mean?


@variant("normalise")
def with_torchs_functions(x, kind, eps=1e-5):
    if kind == "layer":
        return F.layer_norm(x, x.shape[-1:], eps=eps)
    if kind == "batch":
        return F.batch_norm(x.mT, None, None, training=True, eps=eps).mT
    if kind == "instance":
        return F.instance_norm(x.mT, eps=eps).mT
    raise ValueError(f"kind {kind!r} is unknown")


@variant("normalise")
def rearranged_into_rows(x, kind, eps=1e-5):
    b, n, d = x.shape
    match kind:
        case "layer":
            rows = x.reshape(b * n, d)
        case "batch":
            rows = x.reshape(b * n, d).T
        case "instance":
            rows = x.transpose(1, 2).reshape(b * d, n)
        case _:
            raise ValueError("no such kind: " + kind)
    variance, mean = torch.var_mean(rows, dim=1, keepdim=True, correction=0)
    rows = (rows - mean) / (variance + eps).sqrt()
    if kind == "layer":
        return rows.reshape(b, n, d)
    if kind == "batch":
        return rows.T.reshape(b, n, d)
    return rows.reshape(b, d, n).transpose(1, 2)


@variant("normalise")
def group_by_group(x, kind, eps=1e-5):
    if kind not in ("layer", "batch", "instance"):
        raise ValueError(f"{kind} is not a kind of normalisation")
    output = torch.empty_like(x)
    for b in range(x.shape[0]):
        for i in range(x.shape[1]):
            for j in range(x.shape[2]):
                group = {"layer": x[b, i], "batch": x[:, :, j], "instance": x[b, :, j]}[kind]
                spread = ((group - group.mean()) ** 2).mean()
                output[b, i, j] = (x[b, i, j] - group.mean()) / torch.sqrt(spread + eps)
    return output


@variant("normalise")
def with_negative_axes(x, kind, eps=1e-5):
    try:
        axes = {"layer": -1, "batch": (-3, -2), "instance": -2}[kind]
    except KeyError:
        raise ValueError(f"kind should be layer, batch or instance, not {kind}") from None
    mean = torch.mean(x, dim=axes, keepdim=True)
    variance = torch.var(x, dim=axes, correction=0, keepdim=True)
    return (x - mean) * torch.rsqrt(variance + eps)


# 5.3 Around a sub-layer


@variant("sublayer-connection")
def one_expression(x, sublayer, norm, norm_first=False):
    return x + sublayer(norm(x)) if norm_first else norm(x + sublayer(x))


@variant("sublayer-connection")
def with_a_name_for_the_detour(x, sublayer, norm, norm_first=False):
    entering = norm(x) if norm_first else x
    total = torch.add(sublayer(entering), x)
    return total if norm_first else norm(total)


@variant("sublayer-connection")
def with_an_identity_in_place_of_the_norm(x, sublayer, norm, norm_first=False):
    before, after = (norm, nn.Identity()) if norm_first else (nn.Identity(), norm)
    residual = x.clone()
    residual += sublayer(before(x))
    return after(residual)


# 5.4 The feed-forward network


@variant("feed-forward", target="FeedForward.forward")
def with_clamp(self, x):
    return self.outer(self.inner(x).clamp(min=0))


@variant("feed-forward", target="FeedForward.forward")
def with_plain_products(self, x):
    hidden = x @ self.inner.weight.T + self.inner.bias
    hidden = torch.where(hidden > 0, hidden, torch.zeros_like(hidden))
    return hidden @ self.outer.weight.T + self.outer.bias


@variant("feed-forward", target="FeedForward.forward")
def with_einsum(self, x):
    hidden = torch.einsum("...i,fi->...f", x, self.inner.weight) + self.inner.bias
    hidden = torch.maximum(hidden, torch.zeros(1, dtype=hidden.dtype))
    return torch.einsum("...f,of->...o", hidden, self.outer.weight) + self.outer.bias


@variant("feed-forward", target="FeedForward")
class AsASequence(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))
        self.inner, self.outer = self.layers[0], self.layers[2]

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


@variant("feed-forward", target="FeedForward.forward")
def as_two_convolutions(self, x):
    tokens = x.reshape(1, -1, x.shape[-1]).transpose(1, 2)  # (1, d_model, tokens)
    hidden = F.relu(F.conv1d(tokens, self.inner.weight[..., None], self.inner.bias))
    output = F.conv1d(hidden, self.outer.weight[..., None], self.outer.bias)
    return output.transpose(1, 2).reshape(x.shape)


# 5.5 What it costs


@variant("feed-forward-cost")
def step_by_step(n, d_model, d_ff):
    first = d_model * d_ff + d_ff
    second = d_ff * d_model + d_model
    work = 0
    for _ in range(n):
        work += d_model * d_ff
        work += d_ff * d_model
    return first + second, work


@variant("feed-forward-cost")
def from_the_shapes(n, d_model, d_ff):
    shapes = [(d_model, d_ff), (d_ff, d_model)]
    parameters = sum((rows + 1) * columns for rows, columns in shapes)
    return parameters, sum(n * rows * columns for rows, columns in shapes)


@variant("feed-forward-cost")
def map_by_map(n, d_model, d_ff):
    def linear(inputs, outputs):
        return outputs * (inputs + 1), n * inputs * outputs

    (first, work), (second, more) = linear(d_model, d_ff), linear(d_ff, d_model)
    return first + second, work + more

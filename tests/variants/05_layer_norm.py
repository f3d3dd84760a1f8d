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
    if kind == "rms":
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)
    if kind == "layer":
        return F.layer_norm(x, x.shape[-1:], eps=eps)
    if kind == "batch":
        return F.batch_norm(x.mT, None, None, training=True, eps=eps).mT
    if kind == "instance":
        return F.instance_norm(x.mT, eps=eps).mT
    raise ValueError(f"kind {kind!r} is unknown")


@variant("normalise")
def rearranged_into_rows(x, kind, eps=1e-5):
    if kind == "rms":
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)
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
    if kind == "rms":
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)
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
    if kind == "rms":
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)
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


# 5.5 A gate, at the same size


@variant("gated-feed-forward", target="GatedFeedForward.__init__")
def width_by_trying(self, d_model, d_ff):
    super(type(self), self).__init__()
    plain = sum(p.numel() for p in (*nn.Linear(d_model, d_ff).parameters(),))
    plain += d_model * d_ff + d_model
    width = 0
    while 3 * d_model * (width + 1) <= plain:
        width += 1
    self.gate, self.inner = (nn.Linear(d_model, width, bias=False) for _ in range(2))
    self.outer = nn.Linear(width, d_model, bias=False)


@variant("gated-feed-forward", target="GatedFeedForward.forward")
def gate_by_its_formula(self, x):
    opened = self.gate(x)
    return self.outer(opened / (1 + torch.exp(-opened)) * self.inner(x))


@variant("gated-feed-forward", target="GatedFeedForward.forward")
def with_a_sigmoid_and_matrices(self, x):
    opened = x @ self.gate.weight.T
    opened = opened * opened.sigmoid()
    return (opened * (x @ self.inner.weight.T)) @ self.outer.weight.T


@variant("gated-feed-forward")
class GatedNetwork(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        width = int((2 * d_model * d_ff + d_model + d_ff) / (3 * d_model))
        self.inner = nn.Linear(d_model, width, bias=False)
        self.gate = nn.Linear(d_model, width, bias=False)
        self.outer = nn.Linear(width, d_model, bias=False)
        self.curve = nn.SiLU()

    def forward(self, x):
        return self.outer(self.inner(x).mul(self.curve(self.gate(x))))


# 5.6 What is broken?


@variant("diagnose", target="curves")
def curves_pair_by_pair(outputs):
    sizes, alike = [], []
    for tokens in outputs:
        sizes.append((tokens**2).mean() ** 0.5)
        cosines = [
            tokens[i] @ tokens[j] / (tokens[i].norm() * tokens[j].norm())
            for i in range(len(tokens))
            for j in range(i)
        ]
        alike.append(sum(cosines) / len(cosines))
    return torch.stack(sizes), torch.stack(alike)


@variant("diagnose", target="curves")
def curves_by_lengths(outputs):
    sizes = torch.tensor([one.norm() / one.numel() ** 0.5 for one in outputs]).double()
    alike = []
    for tokens in outputs:
        rows = tokens / tokens.norm(dim=1, keepdim=True)
        table = rows @ rows.T
        alike.append(table[~torch.eye(len(rows), dtype=torch.bool)].mean())
    return sizes.to(outputs[0].dtype), torch.stack(alike)


@variant("diagnose", target="diagnose")
def leak_asked_for_last(stack, x):
    output = stack(x)[-1]
    rows = output / output.norm(dim=1, keepdim=True)
    if (rows @ rows.T).min() > 0.97:
        return "no residual"
    if output.square().mean() > 2:
        return "no last norm"
    moved = stack(torch.cat([x[:-1], torch.flip(x[-1:], (1,))]))[-1] - stack(x)[-1]
    return "leaky norm" if moved[:-1].abs().max() > 1e-4 else "nothing"


@variant("diagnose", target="diagnose")
def leak_by_leaving_the_last_out(stack, x):
    out, shorter = stack(x)[-1], stack(x[:-1])[-1]
    if (out[:-1] - shorter).abs().max() > 1e-5:
        return "leaky norm"
    if torch.linalg.svdvals(out / out.norm(dim=1, keepdim=True))[1] < 0.2:
        return "no residual"
    return "nothing" if abs(out.std(correction=0) - 1) < 0.2 else "no last norm"


@variant("diagnose", target="diagnose")
def by_three_questions(stack, x):
    first = stack(x)
    changed = x.clone()
    changed[-1] += torch.arange(x.shape[1])
    second = stack(changed)
    faults = {
        "leaky norm": any(
            (a - b)[:-1].abs().max() > 1e-6 for a, b in zip(first, second, strict=True)
        ),
        "no residual": torch.cosine_similarity(first[-1][1:], first[-1][:-1]).min() > 0.98,
        "no last norm": first[-1].var() > 2,
    }
    return next((name for name, there in faults.items() if there), "nothing")


# 5.7 The way back through LayerNorm


@variant("norm-backward")
def by_the_matrix_of_derivatives(x, gain, upstream, eps=1e-5):
    d = x.shape[-1]
    centred = x - x.mean(-1, keepdim=True)
    scale = (centred.pow(2).mean(-1, keepdim=True) + eps) ** 0.5
    y = centred / scale
    jacobian = torch.eye(d).to(x) - 1 / d - y[..., :, None] * y[..., None, :] / d
    for_x = (jacobian @ (upstream * gain)[..., None])[..., 0] / scale
    rows = (upstream * y).reshape(-1, d)
    return for_x, rows.sum(0), upstream.reshape(-1, d).sum(0)


@variant("norm-backward")
def step_by_step(x, gain, upstream, eps=1e-5):
    d = x.shape[-1]
    centred = x - x.mean(-1, keepdim=True)
    variance = (centred * centred).sum(-1, keepdim=True) / d
    inverse = (variance + eps).pow(-0.5)
    back = upstream * gain
    for_variance = (back * centred).sum(-1, keepdim=True) * -0.5 * inverse**3
    for_centred = back * inverse + for_variance * 2 * centred / d
    for_x = for_centred - for_centred.sum(-1, keepdim=True) / d
    for_gain = (upstream * centred * inverse).flatten(end_dim=-2) if x.ndim > 1 else None
    if for_gain is None:
        return for_x, upstream * centred * inverse, upstream
    return for_x, for_gain.sum(0), upstream.flatten(end_dim=-2).sum(0)


@variant("norm-backward")
def one_token_at_a_time(x, gain, upstream, eps=1e-5):
    d = x.shape[-1]
    for_x, for_gain, for_bias = [], torch.zeros(d).to(x), torch.zeros(d).to(x)
    for row, signal in zip(x.reshape(-1, d), upstream.reshape(-1, d), strict=True):
        scale = torch.sqrt(row.var(correction=0) + eps)
        y, u = (row - row.mean()) / scale, signal * gain
        for_x.append((u - u.mean() - y * (u @ y) / d) / scale)
        for_gain = for_gain + signal * y
        for_bias = for_bias + signal
    return torch.stack(for_x).reshape(x.shape), for_gain, for_bias


# 5.8 Twelve layers of yours


@variant("predicted-loss")
def all_learn():
    return "none of them"


@variant("predicted-loss")
def none_learns():
    return "all three"


@variant("predicted-loss")
def pre_norm_alone_learns():
    return "sub-layers alone and post-norm"

"""Right answers to the exercise on the encoder, written differently; all must get full marks."""

import torch
from torch import nn

from lab.answers import variant
from lab.blocks import FeedForward, LayerNorm, MultiHeadAttention

# 6.1 An encoder layer


@variant("encoder-layer", target="EncoderLayer.forward")
def one_helper_for_both(self, x, mask=None):
    def around(x, norm, run):
        if self.norm_first:
            return x + self.dropout(run(norm(x)))
        return norm(x + self.dropout(run(x)))

    x = around(x, self.norm1, lambda h: self.self_attention(h, h, h, mask)[0])
    return around(x, self.norm2, self.feed_forward)


@variant("encoder-layer", target="EncoderLayer.forward")
def branches_inside(self, x, mask=None):
    h = self.norm1(x) if self.norm_first else x
    attended, _ = self.self_attention(query=h, key=h, value=h, mask=mask)
    x = torch.add(x, self.dropout(attended))
    x = x if self.norm_first else self.norm1(x)
    h = self.norm2(x) if self.norm_first else x
    x = torch.add(x, self.dropout(self.feed_forward(h)))
    return x if self.norm_first else self.norm2(x)


@variant("encoder-layer", target="EncoderLayer.forward")
def residual_kept_aside(self, x, mask=None):
    steps = (
        (self.norm1, lambda h: self.self_attention(h, h, h, mask)[0]),
        (self.norm2, lambda h: self.feed_forward(h)),
    )
    for norm, sub_layer in steps:
        residual = x
        if self.norm_first:
            x = norm(x)
        x = residual + nn.functional.dropout(sub_layer(x), self.dropout.p, self.training)
        if not self.norm_first:
            x = norm(x)
    return x


@variant("encoder-layer", target="EncoderLayer.__init__")
def parts_in_another_order(self, d_model, num_heads, d_ff, dropout=0.1, norm_first=False):
    nn.Module.__init__(self)
    self.norm_first = norm_first
    self.dropout = nn.Dropout(p=dropout)
    for name in ("norm1", "norm2"):
        setattr(self, name, LayerNorm(d_model))
    self.add_module("feed_forward", FeedForward(d_model, d_ff))
    self.add_module("self_attention", MultiHeadAttention(d_model, num_heads))


# 6.2 The stack


@variant("encoder", target="Encoder.__init__")
def appended_one_by_one(self, make_layer, num_layers, norm=None):
    nn.Module.__init__(self)
    self.norm = norm
    self.layers = nn.ModuleList()
    for _ in range(num_layers):
        self.layers.append(make_layer())


@variant("encoder", target="Encoder.__init__")
def in_a_sequential(self, make_layer, num_layers, norm=None):
    nn.Module.__init__(self)
    self.layers = nn.Sequential(*[make_layer() for _ in range(num_layers)])
    self.norm = norm


@variant("encoder", target="Encoder.forward")
def early_return(self, x, mask=None):
    output = x
    for layer in self.layers:
        output = layer(output, mask=mask)
    if self.norm:
        return self.norm(output)
    return output


@variant("encoder", target="Encoder.forward")
def by_recursion(self, x, mask=None):
    def from_layer(i, x):
        return x if i == len(self.layers) else from_layer(i + 1, self.layers[i](x, mask))

    return (self.norm or nn.Identity())(from_layer(0, x))


# 6.3 How many numbers does it learn?


@variant("encoder-parameters")
def one_polynomial(d_model, num_heads, d_ff, num_layers):
    if d_model % num_heads != 0:
        raise ValueError(f"d_model ({d_model}) must be divisible by num_heads ({num_heads})")
    return num_layers * (4 * d_model**2 + 2 * d_model * d_ff + d_ff + 5 * d_model)


@variant("encoder-parameters")
def head_by_head(d_model, num_heads, d_ff, num_layers):
    d_k, rest = divmod(d_model, num_heads)
    if rest:
        raise ValueError(f"{num_heads} heads cannot share out {d_model} features")
    heads = sum(3 * d_model * d_k for _ in range(num_heads))
    layer = heads + num_heads * d_k * d_model
    layer += (d_model + 1) * d_ff + (d_ff + 1) * d_model
    layer += 2 * 2 * d_model
    return layer * num_layers


@variant("encoder-parameters")
def from_a_list_of_shapes(d_model, num_heads, d_ff, num_layers):
    if (d_model // num_heads) * num_heads != d_model:
        raise ValueError(f"num_heads ({num_heads}) must divide d_model ({d_model})")
    square, vector = (d_model, d_model), (d_model, 1)
    shapes = [square] * 4 + [vector] * 5 + [(d_model, d_ff)] * 2 + [(d_ff, 1)]
    return sum(rows * columns for rows, columns in shapes for _ in range(num_layers))


# 6.4 One vector per sentence


@variant("masked-mean")
def sentence_by_sentence(x, lengths):
    return torch.stack([row[:n].mean(dim=0) for row, n in zip(x, lengths.tolist(), strict=True)])


@variant("masked-mean")
def chosen_with_where(x, lengths):
    real = torch.arange(x.size(1)).unsqueeze(0) < lengths.unsqueeze(1)
    kept = torch.where(real.unsqueeze(-1), x, torch.zeros_like(x))
    return kept.sum(dim=1) / real.sum(dim=1, keepdim=True)


@variant("masked-mean")
def as_a_weighted_sum(x, lengths):
    real = torch.arange(x.shape[1]) < lengths[:, None]
    weights = real.to(x.dtype) / lengths[:, None].to(x.dtype)
    return torch.einsum("bn,bnd->bd", weights, x.masked_fill(~real[:, :, None], 0.0))


@variant("masked-mean")
def by_nanmean(x, lengths):
    real = torch.arange(x.shape[1]) < lengths[:, None]
    return torch.where(real[..., None], x, torch.nan).nanmean(dim=1)


# 6.5 A test that finds the leak


@variant("padding-leak")
def new_tail_for_each_sentence(encode, x, lengths):
    changed = x.clone()
    mask = torch.zeros(x.shape[0], 1, x.shape[1], dtype=torch.bool)
    for b, n in enumerate(lengths.tolist()):
        changed[b, n:] = torch.randn(x.shape[1] - n, x.shape[2], dtype=x.dtype)
        mask[b, :, :n] = True
    before, after = encode(x, mask), encode(changed, mask)
    gaps = [(before[b, :n] - after[b, :n]).abs().max() for b, n in enumerate(lengths.tolist())]
    return float(max(gaps))


@variant("padding-leak")
def adds_a_ramp(encode, x, lengths):
    real = torch.arange(x.shape[1]) < lengths[:, None]
    ramp = torch.arange(x.shape[2], dtype=x.dtype).square()
    changed = x + ramp * (~real)[:, :, None]
    mask = real.unsqueeze(1)
    moved = (encode(changed, mask) - encode(x, mask)).abs()
    return float(moved.amax(-1).masked_fill(~real, 0).max())


@variant("padding-leak")
def several_trials(encode, x, lengths):
    padded = torch.arange(x.shape[1]).unsqueeze(0) >= lengths.unsqueeze(1)
    mask = padded.logical_not()[:, None]
    first = encode(x, mask)
    worst = 0.0
    for seed in range(3):
        noise = torch.randn(x.shape, generator=torch.Generator().manual_seed(seed), dtype=x.dtype)
        other = encode(torch.where(padded[..., None], 10 * noise, x), mask)
        worst = max(worst, (other - first).abs()[~padded].max().item())
    return worst


@variant("padding-leak")
def without_gradients(encode, x, lengths):
    with torch.no_grad():
        real = torch.arange(x.shape[1]).expand(x.shape[:2]) < lengths.reshape(-1, 1)
        changed = x.masked_scatter(~real[..., None], torch.randn_like(x))
        runs = [encode(batch, real.reshape(len(x), 1, -1)) for batch in (x, changed)]
        return torch.dist(runs[0][real], runs[1][real], p=float("inf")).item()

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


@variant("encoder")
class LayersUnderAnotherName(nn.Module):
    def __init__(self, make_layer, num_layers, norm=None):
        super().__init__()
        blocks = nn.ModuleList(make_layer() for _ in range(num_layers))
        self.transformer = nn.ModuleDict({"h": blocks})
        if norm is not None:
            self.transformer["ln_f"] = norm

    @property
    def layers(self):
        return self.transformer.get_submodule("h")

    def forward(self, x, mask=None):
        for block in self.layers.children():
            x = block(x, mask)
        return self.transformer["ln_f"](x) if "ln_f" in self.transformer else x


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


# 6.3 Proofread an encoder


@variant("slip-lines")
def lines_in_another_order():
    return {"lost": 9, "spread": 6, "hidden": 4, "queries": 1}


@variant("slip-lines")
def lines_one_by_one():
    lines = {"queries": 1}
    lines["hidden"] = 4
    lines["spread"], lines["lost"] = 6, 9
    return lines


@variant("slip-lines")
def lines_from_pairs():
    return dict(zip(("queries", "hidden", "spread", "lost"), (1, 4, 6, 9), strict=True))


@variant("mended-layer")
def mended_by_torchs_parts(x, lengths, p, eps=1e-5):
    keys = torch.arange(x.shape[1])[None] < lengths[:, None]
    q, k, v = (x @ p[name] for name in ("w_q", "w_k", "w_v"))
    attended = nn.functional.scaled_dot_product_attention(q, k, v, keys[:, None])
    y = nn.functional.layer_norm(x + attended @ p["w_o"], x.shape[-1:], eps=eps)
    change = torch.relu(y @ p["w_1"] + p["b_1"]) @ p["w_2"] + p["b_2"]
    return nn.functional.layer_norm(y + change, x.shape[-1:], eps=eps)


@variant("mended-layer")
def mended_sentence_by_sentence(x, lengths, p, eps=1e-5):
    def norm(z):
        centred = z - z.mean(-1, keepdim=True)
        return centred / (centred.square().mean(-1, keepdim=True) + eps).sqrt()

    output = torch.zeros_like(x)
    for b, length in enumerate(lengths.tolist()):
        t = x[b, :length]
        scores = (t @ p["w_q"]) @ (t @ p["w_k"]).T / x.shape[-1] ** 0.5
        y = norm(t + scores.softmax(-1) @ (t @ p["w_v"]) @ p["w_o"])
        output[b, :length] = norm(y + (y @ p["w_1"] + p["b_1"]).clamp(min=0) @ p["w_2"] + p["b_2"])
    return output


@variant("mended-layer")
def mended_with_a_large_number(x, lengths, p, eps=1e-5):
    real = (torch.arange(x.shape[1]) < lengths[:, None]).unsqueeze(1)
    q, k, v = x @ p["w_q"], x @ p["w_k"], x @ p["w_v"]
    scores = torch.where(real, torch.einsum("bid,bjd->bij", q, k) / k.shape[-1] ** 0.5, -1e12)
    z = x + torch.softmax(scores, -1) @ v @ p["w_o"]
    y = (z - z.mean(-1, keepdim=True)) * torch.rsqrt(z.var(-1, correction=0, keepdim=True) + eps)
    z = y + torch.relu(y @ p["w_1"] + p["b_1"]) @ p["w_2"] + p["b_2"]
    return (z - z.mean(-1, keepdim=True)) * torch.rsqrt(z.var(-1, correction=0, keepdim=True) + eps)


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


# 6.6 How far does a word see?


@variant("rounds")
def rounds_by_search(mask):
    count = len(mask)
    found = torch.full((count, count), -1)
    for i in range(count):
        border, layer = {i}, 0
        while border:
            for j in border:
                found[i, j] = layer
            border = {k for j in border for k in range(count) if mask[j, k] and found[i, k] < 0}
            layer += 1
    return found


@variant("rounds")
def rounds_by_shortest_paths(mask):
    far = len(mask) + 1
    steps = torch.where(mask, 1, far).fill_diagonal_(0)
    for k in range(len(mask)):
        steps = torch.minimum(steps, steps[:, k : k + 1] + steps[k : k + 1])
    return torch.where(steps < far, steps, -1)


@variant("rounds")
def rounds_by_powers(mask):
    step = mask.float() + torch.eye(len(mask))
    power, found = torch.eye(len(mask)), torch.full(mask.shape, -1, dtype=torch.int32)
    for layer in range(len(mask)):
        found = torch.where((found == -1) & (power > 0), layer, found)
        power = ((step @ power) > 0).float()
    return found


@variant("rounds")
def rounds_without_what_was_known(mask):
    found = torch.where(torch.eye(len(mask), dtype=torch.bool), 0, -1)
    reached = torch.eye(len(mask))
    for layer in range(1, len(mask)):
        reached = (mask.float() @ reached).clamp(max=1)  # by walks of exactly so many steps
        found[(reached > 0) & (found < 0)] = layer
    return found


@variant("predicted-depths")
def all_depths():
    return "all three"


@variant("predicted-depths")
def deepest_only():
    return "3 layers only"


@variant("predicted-depths")
def no_depth():
    return "none of them"


# 6.8 Every way up


@variant("path-terms")
def ways_by_einsum(x, maps, w_ov):
    terms = x
    for layer in range(len(w_ov)):
        through = torch.einsum("bhqk,...bkd,hde->...hbqe", maps[:, layer], terms, w_ov[layer])
        terms = torch.cat([terms.unsqueeze(-4), through], -4)
    return terms


@variant("path-terms")
def ways_from_the_top(x, maps, w_ov):
    def up_to(layer):
        if layer == 0:
            return x
        below, heads = up_to(layer - 1), w_ov.shape[1]
        result = below.new_empty(*below.shape[:-3], heads + 1, *below.shape[-3:])
        result[..., 0, :, :, :] = below
        for head in range(heads):
            written = below.matmul(w_ov[layer - 1, head])
            result[..., head + 1, :, :, :] = maps[:, layer - 1, head].matmul(written)
        return result

    return up_to(len(w_ov))


@variant("path-terms")
def ways_in_a_list(x, maps, w_ov):
    layers, heads = w_ov.shape[:2]
    terms = [x]
    for layer in range(layers):
        terms = [
            one if step < 0 else torch.bmm(maps[:, layer, step], one @ w_ov[layer, step])
            for one in terms
            for step in range(-1, heads)
        ]
    return torch.stack(terms).reshape((heads + 1,) * layers + tuple(x.shape))


@variant("path-terms")
def ways_by_all_heads_at_once(x, maps, w_ov):
    terms = x[None]  # (ways, B, N, d)
    for layer in range(w_ov.shape[0]):
        read = maps[:, layer].transpose(0, 1)[None] @ terms[:, None]  # (ways, H, B, N, d)
        written = read @ w_ov[layer][:, None]
        terms = torch.cat([terms[:, None], written], 1).flatten(0, 1)
    return terms.reshape(*[w_ov.shape[1] + 1] * w_ov.shape[0], *x.shape)

"""Right answers to the exercise on multi-head attention, written differently; all must pass."""

import torch
from torch import nn

from lab.answers import variant
from lab.blocks import scaled_dot_product_attention

# 4.1 Split and merge


@variant("split-heads", target="split_heads")
def split_with_a_view(x, num_heads):
    return x.contiguous().view(x.size(0), x.size(1), num_heads, -1).transpose(1, 2)


@variant("split-heads", target="merge_heads")
def merge_with_a_view(x):
    batch, heads, n, d_k = x.size()
    return x.transpose(1, 2).contiguous().view(batch, n, heads * d_k)


@variant("split-heads", target="split_heads")
def split_by_slices(x, num_heads):
    width = x.shape[-1] // num_heads
    return torch.stack([x[..., h * width : (h + 1) * width] for h in range(num_heads)], dim=1)


@variant("split-heads", target="split_heads")
def split_by_chunks(x, num_heads):
    return torch.stack(x.tensor_split(num_heads, dim=2)).transpose(0, 1)


@variant("split-heads", target="merge_heads")
def merge_with_cat(x):
    return torch.cat([x[:, h] for h in range(x.shape[1])], dim=-1)


@variant("split-heads", target="merge_heads")
def merge_the_columns(x):
    return torch.hstack([head.mT for head in x.transpose(0, 1)]).mT


# 4.2 Multi-head attention


@variant("multi-head")
class OneHeadAtATime(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model % num_heads != 0:
            raise ValueError(f"{d_model} columns cannot be shared out over {num_heads} heads")
        self.num_heads, self.width = num_heads, d_model // num_heads
        self.w_q = nn.Linear(d_model, d_model, bias=False)
        self.w_k = nn.Linear(d_model, d_model, bias=False)
        self.w_v = nn.Linear(d_model, d_model, bias=False)
        self.w_o = nn.Linear(d_model, d_model, bias=False)

    def split(self, x):
        return x.unflatten(2, (self.num_heads, -1)).transpose(1, 2)

    def merge(self, x):
        return x.transpose(1, 2).flatten(2)

    def forward(self, query, key, value, mask=None):
        outputs, tables = [], []
        for h in range(self.num_heads):
            rows = slice(h * self.width, (h + 1) * self.width)
            output, table = scaled_dot_product_attention(
                query @ self.w_q.weight[rows].T,
                key @ self.w_k.weight[rows].T,
                value @ self.w_v.weight[rows].T,
                mask,
            )
            outputs.append(output)
            tables.append(table)
        return self.w_o(torch.cat(outputs, -1)), torch.stack(tables, 1)


@variant("multi-head")
class WithEinsum(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.d_k, rest = divmod(d_model, num_heads)
        if rest:
            raise ValueError(f"d_model ({d_model}) must be divisible by num_heads ({num_heads})")
        self.num_heads = num_heads
        self.w_q = nn.Linear(d_model, d_model, False)
        self.w_k = nn.Linear(d_model, d_model, False)
        self.w_v = nn.Linear(d_model, d_model, False)
        self.w_o = nn.Linear(d_model, d_model, False)

    def split(self, x):
        return torch.stack(x.tensor_split(self.num_heads, dim=2)).transpose(0, 1)

    def merge(self, x):
        return torch.cat(x.unbind(1), -1)

    def forward(self, query, key, value, mask=None):
        shape = (self.num_heads, self.d_k)
        q, k, v = (
            part.reshape(*part.shape[:2], *shape).permute(0, 2, 1, 3)
            for part in (self.w_q(query), self.w_k(key), self.w_v(value))
        )
        scores = torch.einsum("bhnd,bhmd->bhnm", q, k) * self.d_k**-0.5
        if mask is not None:
            seen = mask.expand(len(query), query.shape[1], key.shape[1])[:, None]
            scores = torch.where(seen, scores, -1e9)
        weights = scores.softmax(-1)
        return self.w_o(
            torch.einsum("bhnm,bhmd->bhnd", weights, v).transpose(1, 2).flatten(2)
        ), weights


@variant("multi-head")
class HeadsOnTheBatchAxis(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model % num_heads > 0:
            raise ValueError(f"d_model {d_model} is no multiple of num_heads {num_heads}")
        self.num_heads = num_heads
        maps = [nn.Linear(d_model, d_model, bias=False) for _ in range(4)]
        self.w_q, self.w_k, self.w_v, self.w_o = maps

    def split(self, x):
        return x.unflatten(2, (self.num_heads, -1)).transpose(1, 2)

    def merge(self, x):
        return x.transpose(1, 2).flatten(2)

    def forward(self, query, key, value, mask=None):
        parts = [self.w_q(query), self.w_k(key), self.w_v(value)]
        q, k, v = (
            part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2).flatten(0, 1) for part in parts
        )
        if mask is not None:
            mask = mask.expand(len(query), query.shape[1], key.shape[1])
            mask = mask.repeat_interleave(self.num_heads, dim=0)
        heads, weights = scaled_dot_product_attention(q, k, v, mask)
        shape = (len(query), self.num_heads)
        return self.w_o(heads.unflatten(0, shape).transpose(1, 2).flatten(2)), weights.unflatten(
            0, shape
        )


@variant("multi-head", target="MultiHeadAttention.forward")
def output_from_torch(self, query, key, value, mask=None):
    q, k, v = (
        self.w_q(query).unflatten(-1, (self.num_heads, -1)).transpose(1, 2),
        self.w_k(key).unflatten(-1, (self.num_heads, -1)).transpose(1, 2),
        self.w_v(value).unflatten(-1, (self.num_heads, -1)).transpose(1, 2),
    )
    if mask is not None:
        mask = mask[None, None] if mask.ndim == 2 else mask[:, None]
    scores = q @ k.transpose(-2, -1) / k.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    output = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    return self.w_o(output.transpose(1, 2).flatten(2)), torch.softmax(scores, -1).nan_to_num()


@variant("multi-head", target="MultiHeadAttention.forward")
def sum_instead_of_concatenation(self, query, key, value, mask=None):
    q, k, v = (
        self.w_q(query).unflatten(-1, (self.num_heads, -1)).transpose(1, 2),
        self.w_k(key).unflatten(-1, (self.num_heads, -1)).transpose(1, 2),
        self.w_v(value).unflatten(-1, (self.num_heads, -1)).transpose(1, 2),
    )
    heads, weights = scaled_dot_product_attention(
        q, k, v, None if mask is None else mask.unsqueeze(-3)
    )
    rows = self.w_o.weight.T.unflatten(0, (self.num_heads, -1))
    return sum(heads[:, h] @ rows[h] for h in range(self.num_heads)), weights


@variant("multi-head", target="MultiHeadAttention.forward")
def results_with_names(self, query, key, value, mask=None):
    from collections import namedtuple

    Attended = namedtuple("Attended", ("output", "weights"))
    q, k, v = self.split(self.w_q(query)), self.split(self.w_k(key)), self.split(self.w_v(value))
    shown = None if mask is None else mask.unsqueeze(-3)
    heads, weights = scaled_dot_product_attention(q, k, v, shown)
    return Attended(output=self.w_o(self.merge(heads)), weights=weights)


# 4.3 A sum over heads


@variant("heads-as-sum", target="value_output_maps")
def maps_by_slices(w_v, w_o, num_heads):
    d_k = len(w_v) // num_heads
    maps = torch.zeros(num_heads, len(w_v), len(w_v), dtype=w_v.dtype)
    for h in range(num_heads):
        maps[h] = w_v[:, h * d_k : (h + 1) * d_k] @ w_o[h * d_k : (h + 1) * d_k, :]
    return maps


@variant("heads-as-sum", target="value_output_maps")
def maps_with_einsum(w_v, w_o, num_heads):
    columns = w_v.reshape(len(w_v), num_heads, -1)
    rows = w_o.reshape(num_heads, -1, w_o.shape[1])
    return torch.einsum("ihk,hkj->hij", columns, rows)


@variant("heads-as-sum", target="value_output_maps")
def maps_by_hiding_the_other_heads(w_v, w_o, num_heads):
    owner = torch.arange(len(w_o)) // (len(w_o) // num_heads)
    keep = (owner == torch.arange(num_heads)[:, None]).to(w_v.dtype)
    return torch.stack([w_v @ torch.diag(mine) @ w_o for mine in keep])


@variant("heads-as-sum", target="head_contributions")
def contributions_with_einsum(x, weights, maps):
    return torch.einsum("bhnm,bmd,hde->bhne", weights, x, maps)


@variant("heads-as-sum", target="head_contributions")
def contributions_head_by_head(x, weights, maps):
    parts = [torch.bmm(weights[:, h], x) @ maps[h] for h in range(len(maps))]
    return torch.stack(parts, dim=1)


@variant("heads-as-sum", target="head_contributions")
def contributions_values_first(x, weights, maps):
    values = x[:, None] @ maps[None]
    return torch.matmul(weights, values)


# 4.4 Which head matters?


@variant("predicted-cost")
def cost_as_one_of_them():
    return "about 0.05"


@variant("predicted-cost")
def cost_in_between():
    return "about 0.4"


@variant("predicted-cost")
def cost_of_everything():
    return "about 0.9"


@variant("ablation", target="ablation_costs")
def costs_by_what_is_left(parts, share_right):
    heads = range(parts.shape[1])
    right = share_right(parts.sum(1))
    rows = [
        [
            right - share_right(parts[:, [h for h in heads if h not in (i, j)]].sum(dim=1))
            for j in heads
        ]
        for i in heads
    ]
    return torch.tensor(rows, dtype=torch.float64)


@variant("ablation", target="ablation_costs")
def costs_by_switches(parts, share_right):
    heads = parts.shape[1]
    costs = torch.full((heads, heads), share_right(parts.sum(1)), dtype=torch.float64)
    for i in range(heads):
        for j in range(heads):
            on = torch.ones(heads, dtype=parts.dtype)
            on[[i, j]] = 0
            costs[i, j] -= share_right(torch.einsum("bhd,h->bd", parts, on))
    return costs


@variant("ablation", target="findings")
def findings_rounded_and_with_lists():
    return {"idle": 0, "pair": [1, 3], "costs": (0, 0.05, 0.01, 0.04), "pair_cost": 0.86}


@variant("ablation", target="ablation_costs")
def costs_of_zeroed_parts(parts, share_right):
    costs = torch.zeros(parts.shape[1], parts.shape[1]).double()
    for i in range(parts.shape[1]):
        for j in range(parts.shape[1]):
            kept = parts.clone()
            kept[:, [i, j]] = 0
            costs[i, j] = share_right(parts.sum(1)) - share_right(kept.sum(1))
    return costs


# 4.5 An induction head by hand


@variant("induction")
def layers_entry_by_entry(words, places):
    width = 3 * words + places
    layers = [
        [torch.zeros(width, n, dtype=torch.float64) for n in (size, size, width)]
        for size in (width, width)
    ]
    (w_q, w_k, w_vo), (w_q2, w_k2, w_vo2) = layers
    for p in range(places):
        w_k[words + p, p] = 30.0
        if p:
            w_q[words + p, p - 1] = 30.0
    for word in range(words):
        w_vo[word, words + places + word] = 1.0
        w_q2[word, word], w_k2[words + places + word, word] = 30.0, 30.0
        w_vo2[word, 2 * words + places + word] = 1.0
    return [tuple(layer) for layer in layers]


@variant("induction")
def layers_with_the_step_in_the_keys(words, places):
    width = 3 * words + places
    eye = torch.eye(width, dtype=torch.float64) * 200
    step = torch.eye(places, dtype=torch.float64).roll(1, dims=1)
    step[-1, 0] = 0  # the last place stands before none
    w_q, w_k = eye[:, words : words + places], torch.zeros(width, places, dtype=torch.float64)
    w_k[words : words + places] = step
    w_vo = torch.zeros(width, width, dtype=torch.float64)
    w_vo[:words, words + places : -words] = torch.eye(words)
    w_vo2 = torch.zeros(width, width, dtype=torch.float64)
    w_vo2[:words, -words:] = torch.eye(words)
    before = torch.zeros(width, words, dtype=torch.float64)
    before[words + places : -words] = torch.eye(words)
    return (w_q, w_k, w_vo), (eye[:, :words], before, w_vo2)


@variant("induction")
def layers_of_whole_maps(words, places):
    kinds = torch.tensor([0] * words + [1] * places + [2] * words + [3] * words)
    column = torch.cat([torch.arange(n) for n in (words, places, words, words)])

    def link(one, other, shift=0):
        same = column[:, None] == column + shift
        return ((kinds[:, None] == one) & (kinds == other) & same).double()

    width = len(kinds)
    sharp = 60.0 * width**0.5
    eye = torch.eye(width).double()
    return [
        (sharp * link(1, 1, shift=1), eye, link(0, 2)),
        (sharp * link(0, 2), eye, link(0, 3)),
    ]


# 4.6 What it costs


@variant("attention-cost", target="attention_cost")
def cost_closed_form(n, m, d_model, num_heads):
    return 2 * (n + m) * d_model**2, n * m * d_model, n * m * d_model


@variant("attention-cost", target="attention_cost")
def cost_head_by_head(n, m, d_model, num_heads):
    width = d_model // num_heads
    projections = scores = mixing = 0
    for _ in range(num_heads):
        projections += n * d_model * width + 2 * m * d_model * width + n * width * d_model
        scores += n * width * m
        mixing += n * m * width
    return projections, scores, mixing


@variant("attention-cost", target="attention_cost")
def cost_as_a_list(n, m, d_model, num_heads):
    square = d_model * d_model
    return [n * square + m * square + m * square + n * square, *[n * m * d_model] * 2]


@variant("attention-cost", target="writing_cost")
def writing_in_closed_form(length, d_model, kept):
    tokens = length * (length + 1) // 2
    if kept:
        return 4 * length * d_model**2 + 2 * tokens * d_model
    squares = tokens * (2 * length + 1) // 3
    return 4 * tokens * d_model**2 + 2 * squares * d_model


@variant("attention-cost", target="writing_cost")
def writing_step_by_step(length, d_model, kept):
    total = 0
    for t in range(1, length + 1):
        rows = 1 if kept else t
        for _ in "qkvo":
            total += rows * d_model * d_model
        total += rows * d_model * t + rows * t * d_model
    return total


@variant("attention-cost", target="writing_cost")
def writing_by_a_function(length, d_model, kept):
    def step(n, t):
        return 4 * n * d_model**2 + 2 * n * t * d_model

    return sum(step(1 if kept else t, t) for t in range(1, 1 + length))


# 4.7 Fewer keys than queries


@variant("grouped-attention", target="grouped_attention")
def query_heads_in_two_axes(q, k, v, mask=None):
    grouped = q.unflatten(1, (k.shape[1], -1))  # (B, G, H / G, n, d_k)
    if mask is not None:
        mask = mask.expand(-1, q.shape[1], -1, -1).unflatten(1, (k.shape[1], -1))
    heads, weights = scaled_dot_product_attention(grouped, k[:, :, None], v[:, :, None], mask)
    return heads.flatten(1, 2), weights.flatten(1, 2)


@variant("grouped-attention", target="grouped_attention")
def key_heads_by_number(q, k, v, mask=None):
    of = torch.arange(q.shape[1]) * k.shape[1] // q.shape[1]
    return scaled_dot_product_attention(q, k[:, of], v[:, of], mask)


@variant("grouped-attention", target="grouped_attention")
def one_query_head_at_a_time(q, k, v, mask=None):
    pairs = []
    for h in range(q.shape[1]):
        g = h // (q.shape[1] // k.shape[1])
        own = None if mask is None else mask[:, min(h, mask.shape[1] - 1)]
        pairs.append(scaled_dot_product_attention(q[:, h], k[:, g], v[:, g], own))
    return tuple(torch.stack(one, dim=1) for one in zip(*pairs, strict=True))


@variant("grouped-attention", target="pooled_heads")
def pooled_by_slices(matrix, num_heads, groups):
    d_k, each = matrix.shape[1] // num_heads, num_heads // groups
    new = []
    for g in range(groups):
        heads = [matrix[:, h * d_k : (h + 1) * d_k] for h in range(g * each, (g + 1) * each)]
        new.append(torch.stack(heads).mean(0))
    return torch.cat(new, dim=1)


@variant("grouped-attention", target="pooled_heads")
def pooled_by_a_product(matrix, num_heads, groups):
    each = num_heads // groups
    member = torch.eye(groups, dtype=matrix.dtype).repeat_interleave(each, 0) / each
    return torch.einsum("dhc,hg->dgc", matrix.unflatten(1, (num_heads, -1)), member).flatten(1)

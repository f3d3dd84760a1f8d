"""Right answers to the exercise on multi-head attention, written differently; all must pass."""

import torch
from torch import nn

from lab.answers import variant
from lab.blocks import scaled_dot_product_attention

# 4.1 Multi-head attention


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
        blocks = [x[..., h * self.width : (h + 1) * self.width] for h in range(self.num_heads)]
        return torch.stack(blocks, dim=1)

    def merge(self, x):
        return torch.cat([x[:, h] for h in range(self.num_heads)], dim=-1)

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
        return x.reshape(*x.shape[:2], self.num_heads, self.d_k).permute(0, 2, 1, 3)

    def merge(self, x):
        return x.permute(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], -1)

    def forward(self, query, key, value, mask=None):
        q, k, v = map(self.split, (self.w_q(query), self.w_k(key), self.w_v(value)))
        scores = torch.einsum("bhnd,bhmd->bhnm", q, k) * self.d_k**-0.5
        if mask is not None:
            seen = mask.expand(len(query), query.shape[1], key.shape[1])[:, None]
            scores = torch.where(seen, scores, -1e9)
        weights = scores.softmax(-1)
        return self.w_o(self.merge(torch.einsum("bhnm,bhmd->bhnd", weights, v))), weights


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
        return torch.stack(x.tensor_split(self.num_heads, dim=2)).transpose(0, 1)

    def merge(self, x):
        return torch.hstack([head.mT for head in x.transpose(0, 1)]).mT

    def forward(self, query, key, value, mask=None):
        parts = [self.w_q(query), self.w_k(key), self.w_v(value)]
        q, k, v = (self.split(part).flatten(0, 1) for part in parts)
        if mask is not None:
            mask = mask.expand(len(query), query.shape[1], key.shape[1])
            mask = mask.repeat_interleave(self.num_heads, dim=0)
        heads, weights = scaled_dot_product_attention(q, k, v, mask)
        shape = (len(query), self.num_heads)
        return self.w_o(self.merge(heads.unflatten(0, shape))), weights.unflatten(0, shape)


@variant("multi-head", target="MultiHeadAttention.forward")
def output_from_torch(self, query, key, value, mask=None):
    q, k, v = self.split(self.w_q(query)), self.split(self.w_k(key)), self.split(self.w_v(value))
    if mask is not None:
        mask = mask[None, None] if mask.ndim == 2 else mask[:, None]
    scores = q @ k.transpose(-2, -1) / k.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    output = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    return self.w_o(self.merge(output)), torch.softmax(scores, -1).nan_to_num()


@variant("multi-head", target="MultiHeadAttention.forward")
def sum_instead_of_concatenation(self, query, key, value, mask=None):
    q, k, v = self.split(self.w_q(query)), self.split(self.w_k(key)), self.split(self.w_v(value))
    heads, weights = scaled_dot_product_attention(
        q, k, v, None if mask is None else mask.unsqueeze(-3)
    )
    rows = self.w_o.weight.T.unflatten(0, (self.num_heads, -1))
    return sum(heads[:, h] @ rows[h] for h in range(self.num_heads)), weights


@variant("multi-head", target="MultiHeadAttention.split")
def split_with_a_view(self, x):
    return x.contiguous().view(x.size(0), x.size(1), self.num_heads, -1).transpose(1, 2)


@variant("multi-head", target="MultiHeadAttention.merge")
def merge_with_a_view(self, x):
    batch, heads, n, d_k = x.size()
    return x.transpose(1, 2).contiguous().view(batch, n, heads * d_k)


# 4.2 A sum over heads


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


# 4.3 What it costs


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


@variant("attention-cost", target="even_length")
def even_length_solved(d_model):
    return 4 * d_model**2 // (2 * d_model)


@variant("attention-cost", target="even_length")
def even_length_searched(d_model):
    length = 1
    while 2 * length * length * d_model < 4 * length * d_model * d_model:
        length += 1
    return length


@variant("attention-cost", target="even_length")
def even_length_added(d_model):
    return d_model + d_model


# 4.4 Four descriptions, four layers


@variant("parameter-counts")
def counts_in_closed_form(d_model, num_heads):
    square = d_model**2
    return {
        "paper": 4 * square,
        "slices": square + 3 * square // num_heads,
        "shared": square + 6 * square // num_heads,
        "full": (2 + num_heads) * square,
    }


@variant("parameter-counts")
def counts_by_adding_up(d_model, num_heads):
    d_k = d_model // num_heads
    counts = {"paper": d_model * d_model, "slices": d_model * d_model, "full": 0}
    counts["shared"] = d_model * d_model + 3 * d_model * d_k
    for _ in range(num_heads):
        counts["paper"] += 3 * d_model * d_k
        counts["slices"] += 3 * d_k**2
        counts["shared"] += 3 * d_k**2
        counts["full"] += 2 * d_model * d_k + d_model**2
    return counts


@variant("parameter-counts")
def counts_of_real_tensors(d_model, num_heads):
    d_k = d_model // num_heads
    narrow, small, square = (
        torch.empty(*shape).numel() for shape in ((d_model, d_k), (d_k, d_k), (d_model, d_model))
    )
    return {
        "full": num_heads * (narrow + narrow + square),
        "paper": 3 * num_heads * narrow + square,
        "shared": 3 * narrow + 3 * num_heads * small + square,
        "slices": 3 * num_heads * small + square,
    }

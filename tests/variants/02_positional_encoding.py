"""Right answers to the exercise on positional encoding, written differently: all get full marks."""

import math

import torch
from torch import nn

from lab.answers import variant

# 2.1 The sinusoidal table


@variant("sinusoidal-encoding")
def plain_loops(num_positions, d_model, base=10000.0, *, dtype=torch.float32):
    if d_model % 2 == 1:
        raise ValueError(f"an odd d_model is not possible: {d_model}")
    table = torch.empty(num_positions, d_model, dtype=dtype)
    for position in range(num_positions):
        for i in range(d_model // 2):
            angle = position / math.pow(base, 2 * i / d_model)
            table[position, 2 * i] = math.sin(angle)
            table[position, 2 * i + 1] = math.cos(angle)
    return table


@variant("sinusoidal-encoding")
def exponential_of_logarithm(num_positions, d_model, base=10000.0, *, dtype=torch.float32):
    pairs, rest = divmod(d_model, 2)
    if rest:
        raise ValueError(f"d_model = {d_model} is odd")
    speed = torch.exp(torch.arange(pairs, dtype=dtype) * (-2 * math.log(base) / d_model))
    angle = torch.outer(torch.arange(num_positions, dtype=dtype), speed)
    table = torch.zeros(num_positions, d_model, dtype=dtype)
    table[:, 0::2] = angle.sin()
    table[:, 1::2] = angle.cos()
    return table


@variant("sinusoidal-encoding")
def column_by_column(num_positions, d_model, base=10000.0, *, dtype=torch.float32):
    if d_model & 1:
        raise ValueError(f"d_model ({d_model}) must be even")
    position = torch.arange(num_positions, dtype=torch.float64)
    columns = []
    for c in range(d_model):
        angle = position / base ** ((c - c % 2) / d_model)
        columns.append(torch.sin(angle + (c % 2) * math.pi / 2))
    return torch.stack(columns, dim=1).to(dtype)


@variant("sinusoidal-encoding")
def complex_numbers(num_positions, d_model, base=10000.0, *, dtype=torch.float32):
    if d_model % 2:
        raise ValueError(f"d_model {d_model} is odd, and pairs need an even number")
    speed = base ** -(torch.arange(0, d_model, 2).double() / d_model)
    angle = torch.arange(num_positions).double()[:, None] * speed
    turning = torch.polar(torch.ones_like(angle), angle)
    return torch.view_as_real(turning).flip(-1).reshape(num_positions, d_model).to(dtype)


# 2.2 A shift is a rotation


@variant("shift-matrix")
def blocks_in_a_loop(k, d_model, base=10000.0, *, dtype=torch.float32):
    matrix = torch.zeros(d_model, d_model, dtype=dtype)
    for i in range(0, d_model, 2):
        angle = k / base ** (i / d_model)
        matrix[i, i] = matrix[i + 1, i + 1] = math.cos(angle)
        matrix[i, i + 1] = -math.sin(angle)
        matrix[i + 1, i] = math.sin(angle)
    return matrix


@variant("shift-matrix")
def block_diagonal(k, d_model, base=10000.0, *, dtype=torch.float32):
    angles = [k * base ** (-2 * i / d_model) for i in range(d_model // 2)]
    blocks = [[[math.cos(a), -math.sin(a)], [math.sin(a), math.cos(a)]] for a in angles]
    return torch.block_diag(*torch.tensor(blocks, dtype=dtype))


@variant("shift-matrix")
def matrix_exponential(k, d_model, base=10000.0, *, dtype=torch.float32):
    speed = base ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    upper = torch.zeros(d_model - 1, dtype=torch.float64)
    upper[::2] = k * speed
    generator = upper.diag(-1) - upper.diag(1)
    return torch.linalg.matrix_exp(generator).to(dtype)


# 2.3 The module that adds positions


@variant("positional-encoding")
class PersistentBuffer(nn.Module):
    def __init__(self, encoding, dropout=0.0):
        super().__init__()
        self.register_buffer("pe", encoding.unsqueeze(0))
        self.drop = nn.Dropout(p=dropout)

    def forward(self, x, offset=0):
        length = x.size(1)
        table = self.get_buffer("pe")
        if offset + length > table.size(1):
            raise ValueError(f"{offset + length} positions needed, max_len is {table.size(1)}")
        return self.drop(x + table[:, offset : offset + length, :])


@variant("positional-encoding", target="PositionalEncoding.forward")
def indexed_by_positions(self, x, offset=0):
    positions = torch.arange(offset, offset + x.shape[1], device=x.device)
    if offset + x.shape[1] > self.encoding.shape[0]:
        needed, available = offset + x.shape[1], self.encoding.shape[0]
        raise ValueError(f"position {needed - 1} of {needed} is not below max_len = {available}")
    return self.dropout(torch.add(x, self.encoding.index_select(0, positions)))


@variant("positional-encoding", target="PositionalEncoding.forward")
def token_by_token(self, x, offset=0):
    if offset + x.shape[1] > len(self.encoding):
        raise ValueError(f"{offset + x.shape[1]} > {len(self.encoding)}")
    out = x.clone()
    for t in range(x.shape[1]):
        out[:, t] = out[:, t] + self.encoding[offset + t]
    return self.dropout(out)


@variant("positional-encoding")
class FunctionalDropout(nn.Module):
    def __init__(self, encoding, dropout=0.0):
        super().__init__()
        self.register_buffer("table", encoding.clone())
        self.probability = dropout

    def forward(self, x, offset=0):
        table = self.get_buffer("table")
        last = offset + x.shape[1]
        if last > table.shape[0]:
            raise ValueError(f"length {last} exceeds max_len {table.shape[0]}")
        rows = table.narrow(0, offset, x.shape[1])
        return nn.functional.dropout(x + rows, self.probability, self.training)


# 2.4 Rotate queries and keys


@variant("rotate")
def as_complex_numbers(x, positions, base=10000.0):
    d = x.shape[-1]
    if d % 2 == 1:
        raise ValueError(f"{d} is odd")
    rates = base ** (-torch.arange(d // 2).to(x.dtype) * 2 / d)
    angles = torch.outer(positions.to(x.dtype), rates)
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles)).flatten(-2)


@variant("rotate")
def by_matrices(x, positions, base=10000.0):
    d = x.shape[-1]
    if d % 2:
        raise ValueError(f"an even number of columns is needed, not {d}")
    rows = []
    for n, position in enumerate(positions.tolist()):
        matrix = torch.zeros(d, d, dtype=x.dtype)
        for i in range(0, d, 2):
            angle = position * base ** (-i / d)
            cos, sin = math.cos(angle), math.sin(angle)
            matrix[i : i + 2, i : i + 2] = torch.tensor([[cos, sin], [-sin, cos]], dtype=x.dtype)
        rows.append(x[..., n, :] @ matrix)
    return torch.stack(rows, -2)


@variant("rotate")
def with_a_swapped_copy(x, positions, base=10000.0):
    d = x.shape[-1]
    if d % 2 != 0:
        raise ValueError(f"d must be even, not {d}")
    exponents = torch.arange(0, d, 2, dtype=x.dtype).repeat_interleave(2) / d
    angles = positions[:, None].to(x.dtype) / base**exponents
    swapped = torch.empty_like(x)
    swapped[..., 0::2], swapped[..., 1::2] = -x[..., 1::2], x[..., 0::2]
    return x * torch.cos(angles) + swapped * torch.sin(angles)


# 2.5 Attention with relative positions


@variant("relative-attention")
def added_to_keys_and_values(q, k, v, key_table, value_table, mask=None):
    n, m = q.shape[-2], k.shape[-2]
    furthest = (key_table.shape[0] - 1) // 2
    index = torch.arange(m)[None, :] - torch.arange(n)[:, None]
    index = torch.clamp(index, -furthest, furthest) + furthest
    keys = k.unsqueeze(-3) + key_table[index]
    values = v.unsqueeze(-3) + value_table[index]
    scores = (q.unsqueeze(-2) * keys).sum(-1) / q.shape[-1] ** 0.5
    if mask is not None:
        scores = torch.where(mask, scores, torch.finfo(scores.dtype).min)
    weights = scores.softmax(-1)
    return (weights.unsqueeze(-1) * values).sum(-2)


@variant("relative-attention")
def loops_over_queries_and_keys(q, k, v, key_table, value_table, mask=None):
    n, m = q.shape[-2], k.shape[-2]
    furthest = len(value_table) // 2
    outputs = []
    for i in range(n):
        at = [min(max(j - i, -furthest), furthest) + furthest for j in range(m)]
        scores = ((k + key_table[at]) @ q[..., i, :, None]).squeeze(-1) / math.sqrt(q.shape[-1])
        if mask is not None:
            seen = mask.expand(*mask.shape[:-2], n, m)[..., i, :]
            scores = scores.masked_fill(seen.logical_not(), -1e9)
        weights = torch.exp(scores - scores.max(dim=-1, keepdim=True).values)
        weights = weights / weights.sum(dim=-1, keepdim=True)
        outputs.append((weights[..., None, :] @ (v + value_table[at])).squeeze(-2))
    return torch.stack(outputs, dim=-2)


@variant("relative-attention")
def products_first_then_gathered(q, k, v, key_table, value_table, mask=None):
    n, m, rows = q.shape[-2], k.shape[-2], key_table.shape[0]
    distance = torch.arange(m) - torch.arange(n).unsqueeze(1)
    index = (distance + rows // 2).clamp(0, rows - 1)
    scaled = q * q.shape[-1] ** -0.5
    by_row = scaled @ key_table.T
    index_all = index.expand(*q.shape[:-2], n, m)
    scores = scaled @ k.mT + by_row.gather(-1, index_all)
    if mask is not None:
        scores = scores + torch.zeros_like(scores).masked_fill(~mask, float("-inf"))
    weights = nn.functional.softmax(scores, dim=-1)
    mass = torch.zeros_like(by_row).scatter_add(-1, index_all, weights)
    return weights @ v + mass @ value_table


# 2.6 Your table, looked at


@variant("predicted-likeness")
def on_both():
    return "it depends on i and j"


@variant("predicted-likeness")
def it_falls():
    return "it depends on how far apart they are, and falls all the way"


@variant("predicted-likeness")
def it_tells():
    return "it depends on how far apart they are, and tells which comes first"


# 2.7 Look back by angles alone


@variant("look-back")
def key_turned_on(k, d):
    angles = k * 10000.0 ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
    query = torch.tensor([0.0, 60.0], dtype=torch.float64).repeat(d // 2)
    key = torch.stack([-angles.sin(), angles.cos()], dim=-1).flatten()
    return query, key


@variant("look-back")
def all_numbers_alike(k, d):
    query, key = [], []
    for i in range(d // 2):
        angle = k / 10000 ** (2 * i / d)
        cos, sin = math.cos(angle), math.sin(angle)
        query += [30 * (cos + sin), 30 * (cos - sin)]
        key += [2.0, 2.0]
    return torch.tensor(query, dtype=torch.float64), torch.tensor(key, dtype=torch.float64)


@variant("look-back")
def a_row_of_the_table(k, d):
    rates = 10000.0 ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
    place = torch.stack([(k * rates).sin(), (k * rates).cos()], -1).flatten()
    origin = torch.stack([(0 * rates).sin(), (0 * rates).cos()], -1).flatten()
    return 200 * place, origin

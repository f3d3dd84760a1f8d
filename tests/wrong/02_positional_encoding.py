"""Wrong answers to exercise 2 that nobody gets a name for; all must lose points."""

import math

import torch
from torch import nn

from lab.answers import variant


@variant("sinusoidal-encoding")
def positions_in_half_precision(num_positions, d_model, base=10000.0, *, dtype=torch.float32):
    if d_model % 2:
        raise ValueError(f"d_model ({d_model}) must be even")
    position = torch.arange(num_positions, dtype=torch.float16)[:, None].to(dtype)
    angle = position * base ** (-torch.arange(0, d_model, 2, dtype=dtype) / d_model)
    return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(-2)


@variant("positional-encoding", target="PositionalEncoding")
class CopyBesideTheBuffer(nn.Module):
    encoding: torch.Tensor

    def __init__(self, encoding, dropout=0.0):
        super().__init__()
        self.register_buffer("encoding", encoding, persistent=False)
        self.dropout = nn.Dropout(dropout)
        self.rows = [encoding.clone()]

    def forward(self, x, offset=0):
        end = offset + x.shape[1]
        if end > len(self.encoding):
            raise ValueError(f"offset + n ({end}) must not exceed max_len ({len(self.encoding)})")
        return self.dropout(x + self.rows[0][offset:end])


@variant("positional-encoding", target="PositionalEncoding.forward")
def last_row_refused(self, x, offset=0):
    end = offset + x.shape[1]
    if end >= len(self.encoding):
        raise ValueError(f"offset + n ({end}) must not exceed max_len ({len(self.encoding)})")
    return self.dropout(x + self.encoding[offset:end])


@variant("positional-encoding", target="PositionalEncoding.__init__")
def whole_tokens_dropped(self, encoding, dropout=0.0):
    super(type(self), self).__init__()
    self.register_buffer("encoding", encoding, persistent=False)
    self.dropout = nn.Dropout1d(dropout)


@variant("relative-attention")
def weights_detached_in_the_second_sum(q, k, v, key_table, value_table, mask=None):
    n, m, furthest = q.shape[-2], k.shape[-2], len(key_table) // 2
    distance = torch.arange(m) - torch.arange(n)[:, None]
    index = distance.clamp(-furthest, furthest) + furthest
    scores = q @ k.transpose(-2, -1) + torch.einsum("...id,ijd->...ij", q, key_table[index])
    scores = scores / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = torch.softmax(scores, dim=-1)
    from_table = torch.einsum("...ij,ijd->...id", weights.detach(), value_table[index])
    return weights @ v + from_table


@variant("relative-attention")
def at_least_one_step_away(q, k, v, key_table, value_table, mask=None):
    n, m, furthest = q.shape[-2], k.shape[-2], max(1, len(key_table) // 2)
    index = torch.arange(m) - torch.arange(n)[:, None]
    index = index.clamp(-furthest, furthest) + furthest
    scores = q @ k.transpose(-2, -1) + torch.einsum("...id,ijd->...ij", q, key_table[index])
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = torch.softmax(scores / math.sqrt(q.shape[-1]), dim=-1)
    return weights @ v + torch.einsum("...ij,ijd->...id", weights, value_table[index])


@variant("relative-attention")
def mask_gets_an_axis_for_the_heads(q, k, v, key_table, value_table, mask=None):
    n, m, furthest = q.shape[-2], k.shape[-2], len(key_table) // 2
    index = torch.arange(m) - torch.arange(n)[:, None]
    index = index.clamp(-furthest, furthest) + furthest
    scores = q @ k.transpose(-2, -1) + torch.einsum("...id,ijd->...ij", q, key_table[index])
    if mask is not None:
        mask = mask.unsqueeze(1) if q.dim() == 4 else mask
        scores = scores.masked_fill(~mask, -math.inf)
    weights = torch.softmax(scores / math.sqrt(q.shape[-1]), dim=-1)
    return weights @ v + torch.einsum("...ij,ijd->...id", weights, value_table[index])


@variant("sinusoidal-encoding")
def tables_kept_by_their_size(num_positions, d_model, base=10000.0, *, dtype=torch.float32):
    if d_model % 2:
        raise ValueError(f"d_model ({d_model}) must be even")
    kept = getattr(tables_kept_by_their_size, "kept", {})
    if (num_positions, d_model) not in kept:
        p = torch.arange(num_positions, dtype=dtype)[:, None]
        angles = p / base ** (torch.arange(0, d_model, 2, dtype=dtype) / d_model)
        kept[num_positions, d_model] = torch.stack([angles.sin(), angles.cos()], -1).flatten(1)
    tables_kept_by_their_size.kept = kept
    return kept[num_positions, d_model]


@variant("sinusoidal-encoding")
def base_as_a_whole_number(num_positions, d_model, base=10000.0, *, dtype=torch.float32):
    if d_model % 2:
        raise ValueError(f"d_model ({d_model}) must be even")
    p = torch.arange(num_positions, dtype=dtype)[:, None]
    angles = p / int(base) ** (torch.arange(0, d_model, 2, dtype=dtype) / d_model)
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)


@variant("rotate")
def angles_in_single_precision(x, positions, base=10000.0):
    d = x.shape[-1]
    if d % 2:
        raise ValueError(f"d ({d}) must be even")
    angles = positions[:, None].float() * base ** (-torch.arange(0, d, 2).float() / d)
    c, s = (angles.cos().to(x.dtype), angles.sin().to(x.dtype))
    e, o = (x[..., 0::2], x[..., 1::2])
    return torch.stack([e * c - o * s, e * s + o * c], -1).flatten(-2)


@variant("look-back")
def query_and_key_in_single_precision(k, d):
    w = 10000.0 ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
    a = w * -k
    q = 8 * torch.stack([a.cos() - a.sin(), a.sin() + a.cos()], -1).flatten()
    return (q.float(), 8 * torch.ones(d))


@variant("positional-encoding", target="PositionalEncoding.forward")
def the_same_entries_at_each_call(self, x, offset=0):
    end = offset + x.shape[1]
    if end > len(self.encoding):
        raise ValueError(f"offset + n ({end}) must not exceed max_len ({len(self.encoding)})")
    torch.manual_seed(0)
    return self.dropout(x + self.encoding[offset:end])


@variant("positional-encoding", target="PositionalEncoding.forward")
def half_whatever_is_asked_for(self, x, offset=0):
    end = offset + x.shape[1]
    if end > len(self.encoding):
        raise ValueError(f"offset + n ({end}) must not exceed max_len ({len(self.encoding)})")
    rate = self.dropout.p
    x = x + self.encoding[offset:end]
    return nn.functional.dropout(x, 0.5 if 0 < rate < 1 else rate, self.training)


class Unscaled(nn.Dropout):
    """Drops as often as it should, and divides what it keeps by 0.5 whatever the rate is."""

    def forward(self, x):
        kept = torch.rand_like(x) >= self.p
        return x * kept * 2 if self.training and self.p else x


@variant("positional-encoding", target="PositionalEncoding.__init__")
def always_doubled_where_kept(self, encoding, dropout=0.0):
    super(type(self), self).__init__()
    self.register_buffer("encoding", encoding, persistent=False)
    self.dropout = Unscaled(dropout)

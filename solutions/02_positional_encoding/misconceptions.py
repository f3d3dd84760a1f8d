"""Wrong answers to the exercise on positional encoding that students really give, one message each.

The ids PE1 to PE15 are the field's usual mistakes; PE16 and up are this chapter's own.
"""

import math

import torch
from torch import nn

from lab.answers import misconception

# 2.1 The sinusoidal table


@misconception(
    "sinusoidal-encoding",
    id="PE1",
    fails=["sinusoidal-encoding-values"],
    read="02_positional_encoding#pe-pairs",
)
def cosine_with_its_own_frequency(num_positions, d_model, base=10000.0, *, dtype=torch.float32):
    """Your cosines use the exponent (2i + 1) / d_model; each should share the frequency 2i /
    d_model of the sine on its left.
    """
    if d_model % 2:
        raise ValueError(f"d_model ({d_model}) must be even")
    table = torch.zeros(num_positions, d_model, dtype=dtype)
    position = torch.arange(num_positions, dtype=dtype)
    for column in range(d_model):
        angle = position / base ** (column / d_model)
        table[:, column] = angle.sin() if column % 2 == 0 else angle.cos()
    return table


@misconception(
    "sinusoidal-encoding",
    id="PE2",
    fails=["sinusoidal-encoding-values"],
    read="02_positional_encoding#pe-pairs",
)
def exponent_doubled(num_positions, d_model, base=10000.0, *, dtype=torch.float32):
    """Your exponent is 4i / d_model: the columns 0, 2, 4, ... already count 2i, so they
    should not be doubled again.
    """
    if d_model % 2:
        raise ValueError(f"d_model ({d_model}) must be even")
    position = torch.arange(num_positions, dtype=dtype)[:, None]
    column = torch.arange(0, d_model, 2, dtype=dtype)
    angle = position / base ** (2 * column / d_model)
    return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(-2)


@misconception(
    "sinusoidal-encoding",
    id="PE3",
    fails=["sinusoidal-encoding-values"],
    read="02_positional_encoding#pe-sinusoids",
)
def position_times_the_power(num_positions, d_model, base=10000.0, *, dtype=torch.float32):
    """Your position is multiplied by base ** (2i / d_model) where it should be divided:
    later pairs should turn more slowly.
    """
    if d_model % 2:
        raise ValueError(f"d_model ({d_model}) must be even")
    position = torch.arange(num_positions, dtype=dtype)[:, None]
    angle = position * base ** (torch.arange(0, d_model, 2, dtype=dtype) / d_model)
    return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(-2)


@misconception(
    "sinusoidal-encoding",
    id="PE4",
    fails=["sinusoidal-encoding-values"],
    read="02_positional_encoding#pe-sinusoids",
)
def base_written_out(num_positions, d_model, base=10000.0, *, dtype=torch.float32):
    """Your table uses 1000 whatever the argument says: the base should be `base`, which is
    10000 unless told otherwise.
    """
    if d_model % 2:
        raise ValueError(f"d_model ({d_model}) must be even")
    position = torch.arange(num_positions, dtype=dtype)[:, None]
    angle = position / 1000.0 ** (torch.arange(0, d_model, 2, dtype=dtype) / d_model)
    return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(-2)


@misconception(
    "sinusoidal-encoding",
    id="PE5",
    fails=["sinusoidal-encoding-values"],
    read="02_positional_encoding#pe-pairs",
)
def sines_then_cosines(num_positions, d_model, base=10000.0, *, dtype=torch.float32):
    """Your table has all sines on the left and all cosines on the right; the paper
    interleaves them: sine, cosine, sine, cosine.
    """
    if d_model % 2:
        raise ValueError(f"d_model ({d_model}) must be even")
    position = torch.arange(num_positions, dtype=dtype)[:, None]
    angle = position / base ** (torch.arange(0, d_model, 2, dtype=dtype) / d_model)
    return torch.cat((angle.sin(), angle.cos()), dim=-1)


@misconception(
    "sinusoidal-encoding",
    id="PE6",
    fails=["sinusoidal-encoding-values"],
    read="02_positional_encoding#pe-sinusoids",
)
def exponent_in_integers(num_positions, d_model, base=10000.0, *, dtype=torch.float32):
    """Your exponent is divided in whole numbers (//) and is always 0, so every pair repeats
    the first one; divide with /.
    """
    if d_model % 2:
        raise ValueError(f"d_model ({d_model}) must be even")
    position = torch.arange(num_positions, dtype=dtype)[:, None]
    angle = position / base ** (torch.arange(0, d_model, 2) // d_model).to(dtype)
    return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(-2)


@misconception(
    "sinusoidal-encoding",
    id="PE47",
    fails=["sinusoidal-encoding-values"],
    read="02_positional_encoding#pe-sinusoids",
)
def computed_in_float32(num_positions, d_model, base=10000.0, *, dtype=torch.float32):
    """You compute in float32 and convert at the end, so a float64 table is no more precise; make
    positions and frequencies in dtype from the start.
    """
    if d_model % 2:
        raise ValueError(f"d_model ({d_model}) must be even")
    position = torch.arange(num_positions).float()[:, None]
    angle = position * torch.exp(torch.arange(0, d_model, 2).float() * (-math.log(base) / d_model))
    return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(-2).to(dtype)


@misconception(
    "sinusoidal-encoding",
    id="PE7",
    fails=["sinusoidal-encoding-values"],
    read="02_positional_encoding#pe-sinusoids",
)
def base_and_exponent_swapped(num_positions, d_model, base=10000.0, *, dtype=torch.float32):
    """Your power has base and exponent swapped: it should be base ** (2i / d_model), and it
    is 1 for the first pair.
    """
    if d_model % 2:
        raise ValueError(f"d_model ({d_model}) must be even")
    position = torch.arange(num_positions, dtype=dtype)[:, None]
    angle = position / (torch.arange(0, d_model, 2, dtype=dtype) / d_model) ** base
    return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(-2)


@misconception(
    "sinusoidal-encoding",
    id="PE13",
    fails=["sinusoidal-encoding-odd"],
    read="02_positional_encoding#pe-pairs",
)
def odd_width_accepted(num_positions, d_model, base=10000.0, *, dtype=torch.float32):
    """For an odd d_model your table quietly gets another width; a sine without its cosine
    should be refused with a ValueError.
    """
    position = torch.arange(num_positions, dtype=dtype)[:, None]
    angle = position / base ** (torch.arange(0, d_model, 2, dtype=dtype) / d_model)
    return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(-2)


@misconception(
    "sinusoidal-encoding",
    id="PE16",
    fails=["sinusoidal-encoding-values"],
    read="02_positional_encoding#pe-sinusoids",
)
def positions_from_one(num_positions, d_model, base=10000.0, *, dtype=torch.float32):
    """Your first row is position 1; positions start at 0, so the first row should be 0, 1,
    0, 1, ...
    """
    if d_model % 2:
        raise ValueError(f"d_model ({d_model}) must be even")
    position = torch.arange(1, num_positions + 1, dtype=dtype)[:, None]
    angle = position / base ** (torch.arange(0, d_model, 2, dtype=dtype) / d_model)
    return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(-2)


@misconception(
    "sinusoidal-encoding",
    id="PE17",
    fails=["sinusoidal-encoding-values"],
    read="02_positional_encoding#pe-pairs",
)
def cosine_before_sine(num_positions, d_model, base=10000.0, *, dtype=torch.float32):
    """Your even columns hold the cosines; the sine comes first in each pair."""
    if d_model % 2:
        raise ValueError(f"d_model ({d_model}) must be even")
    position = torch.arange(num_positions, dtype=dtype)[:, None]
    angle = position / base ** (torch.arange(0, d_model, 2, dtype=dtype) / d_model)
    return torch.stack((angle.cos(), angle.sin()), dim=-1).flatten(-2)


# 2.2 A shift is a rotation


@misconception(
    "shift-matrix",
    id="PE15",
    fails=["shift-matrix-values"],
    read="02_positional_encoding#pe-shift",
)
def rotation_transposed(k, d_model, base=10000.0, *, dtype=torch.float32):
    """Your matrix turns the other way (position p goes to p - k): rows are multiplied from
    the left, so the block is the transpose of yours.
    """
    frequency = base ** (-torch.arange(0, d_model, 2, dtype=dtype) / d_model)
    blocks = []
    for angle in k * frequency:
        c, s = angle.cos(), angle.sin()
        blocks.append(torch.stack((torch.stack((c, s)), torch.stack((-s, c)))))
    return torch.block_diag(*blocks)


@misconception(
    "shift-matrix",
    id="PE18",
    fails=["shift-matrix-values"],
    read="02_positional_encoding#pe-shift",
)
def one_angle_for_all_pairs(k, d_model, base=10000.0, *, dtype=torch.float32):
    """Your matrix turns every pair by the angle k; each pair should turn by k times its own
    frequency.
    """
    angle = torch.tensor(float(k), dtype=dtype)
    c, s = angle.cos(), angle.sin()
    block = torch.stack((torch.stack((c, -s)), torch.stack((s, c))))
    return torch.block_diag(*[block] * (d_model // 2))


@misconception(
    "shift-matrix",
    id="PE19",
    fails=["shift-matrix-values"],
    read="02_positional_encoding#pe-shift",
)
def halves_for_pairs(k, d_model, base=10000.0, *, dtype=torch.float32):
    """Your matrix pairs column i with column i + d_model / 2; a sine and its cosine stand
    side by side, in the columns 2i and 2i + 1.
    """
    angle = k * base ** (-torch.arange(0, d_model, 2, dtype=dtype) / d_model)
    top = torch.cat((angle.cos().diag(), -angle.sin().diag()), dim=1)
    bottom = torch.cat((angle.sin().diag(), angle.cos().diag()), dim=1)
    return torch.cat((top, bottom))


@misconception(
    "shift-matrix",
    id="PE20",
    fails=["shift-matrix-group"],
    read="02_positional_encoding#pe-shift",
)
def repeated_single_steps(k, d_model, base=10000.0, *, dtype=torch.float32):
    """Your matrix is right for positive k only: a loop of k single steps does nothing for
    negative k, which should turn back.
    """
    frequency = base ** (-torch.arange(0, d_model, 2, dtype=dtype) / d_model)
    blocks = [
        torch.stack((torch.stack((a.cos(), -a.sin())), torch.stack((a.sin(), a.cos()))))
        for a in frequency
    ]
    step = torch.block_diag(*blocks)
    total = torch.eye(d_model, dtype=dtype)
    for _ in range(k):
        total = total @ step
    return total


@misconception(
    "shift-matrix",
    id="PE50",
    fails=["shift-matrix-values"],
    read="02_positional_encoding#pe-shift",
)
def rounded_on_the_way(k, d_model, base=10000.0, *, dtype=torch.float32):
    """Your matrix is computed in float32 and converted at the end, when digits are lost already;
    compute in the dtype that is asked for.
    """
    angle = k * base ** (-torch.arange(0, d_model, 2) / d_model)
    matrix = torch.zeros(d_model, d_model)
    for i, (c, s) in enumerate(zip(angle.cos(), angle.sin(), strict=True)):
        matrix[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = torch.stack((c, -s, s, c)).reshape(2, 2)
    return matrix.to(dtype)


# 2.3 The module that adds positions


@misconception(
    "positional-encoding",
    id="PE8",
    target="PositionalEncoding.forward",
    fails=[
        "positional-encoding-values",
        "positional-encoding-offset",
        "positional-encoding-dropout",
    ],
    read="02_positional_encoding#pe-add",
)
def rows_along_the_batch(self, x, offset=0):
    """Your rows of the table run along the batch axis; x is (batch, tokens, d_model), and
    the position is the index on axis 1.
    """
    end = offset + x.shape[1]
    if end > len(self.encoding):
        raise ValueError(f"offset + n ({end}) must not exceed max_len ({len(self.encoding)})")
    return self.dropout(x + self.encoding[offset : offset + x.shape[0], None])


@misconception(
    "positional-encoding",
    id="PE9",
    target="PositionalEncoding.forward",
    fails=["positional-encoding-offset"],
    read="02_positional_encoding#pe-offset",
)
def always_from_position_zero(self, x, offset=0):
    """Your rows always start at 0; a token that arrives alone at step 7 should get row 7, so
    start at `offset`.
    """
    end = offset + x.shape[1]
    if end > len(self.encoding):
        raise ValueError(f"offset + n ({end}) must not exceed max_len ({len(self.encoding)})")
    return self.dropout(x + self.encoding[: x.shape[1]])


@misconception(
    "positional-encoding",
    id="PE10",
    target="PositionalEncoding.forward",
    fails=["positional-encoding-offset"],
    read="02_positional_encoding#pe-offset",
)
def slice_ends_too_early(self, x, offset=0):
    """Your slice is offset : n, which ends too early as soon as offset is above 0; it should
    end at offset + n.
    """
    n = x.shape[1]
    if offset + n > len(self.encoding):
        raise ValueError(f"offset + n ({offset + n}) must not exceed max_len {len(self.encoding)}")
    return self.dropout(x + self.encoding[offset:n])


@misconception(
    "positional-encoding",
    id="PE11",
    target="PositionalEncoding.forward",
    fails=[
        "positional-encoding-values",
        "positional-encoding-offset",
        "positional-encoding-dropout",
    ],
    read="02_positional_encoding#pe-add",
)
def concatenated(self, x, offset=0):
    """Your output is wider than the input because the rows were concatenated; they should be
    added.
    """
    end = offset + x.shape[1]
    if end > len(self.encoding):
        raise ValueError(f"offset + n ({end}) must not exceed max_len ({len(self.encoding)})")
    rows = self.encoding[offset:end].expand(len(x), -1, -1)
    return self.dropout(torch.cat((x, rows), dim=-1))


@misconception(
    "positional-encoding",
    id="PE21",
    target="PositionalEncoding.forward",
    fails=[
        "positional-encoding-values",
        "positional-encoding-offset",
        "positional-encoding-dropout",
    ],
    read="02_positional_encoding#pe-add",
)
def multiplied(self, x, offset=0):
    """Your embeddings are multiplied by the table; position is an addition: x + row."""
    end = offset + x.shape[1]
    if end > len(self.encoding):
        raise ValueError(f"offset + n ({end}) must not exceed max_len ({len(self.encoding)})")
    return self.dropout(x * self.encoding[offset:end])


@misconception(
    "positional-encoding",
    id="PE12",
    target="PositionalEncoding.__init__",
    fails=["positional-encoding-module"],
    read="02_positional_encoding#pe-add",
)
def table_as_parameter(self, encoding, dropout=0.0):
    """Your table is a parameter, so an optimiser would change it; a fixed table should be
    registered as a buffer.
    """
    nn.Module.__init__(self)
    self.encoding = nn.Parameter(encoding)
    self.dropout = nn.Dropout(dropout)


@misconception(
    "positional-encoding",
    id="PE22",
    target="PositionalEncoding.__init__",
    fails=["positional-encoding-module"],
    read="02_positional_encoding#pe-add",
)
def table_as_plain_attribute(self, encoding, dropout=0.0):
    """Your table is a plain attribute, so module.to(...) leaves it behind; register it as a
    buffer.
    """
    nn.Module.__init__(self)
    self.encoding = encoding
    self.dropout = nn.Dropout(dropout)


@misconception(
    "positional-encoding",
    id="PE48",
    target="PositionalEncoding.__init__",
    fails=["positional-encoding-module"],
    read="02_positional_encoding#pe-add",
)
def table_in_single_precision(self, encoding, dropout=0.0):
    """You turn the table into float32, so that one in float64 loses digits; register it in the
    dtype it has.
    """
    super(type(self), self).__init__()
    self.register_buffer("encoding", encoding.float(), persistent=False)
    self.dropout = nn.Dropout(dropout)


@misconception(
    "positional-encoding",
    id="PE14",
    target="PositionalEncoding.forward",
    fails=["positional-encoding-dropout"],
    read="02_positional_encoding#pe-add",
)
def dropout_before_the_sum(self, x, offset=0):
    """Your dropout acts on the embeddings alone and the positions are added afterwards; drop
    entries of the sum.
    """
    end = offset + x.shape[1]
    if end > len(self.encoding):
        raise ValueError(f"offset + n ({end}) must not exceed max_len ({len(self.encoding)})")
    return self.dropout(x) + self.encoding[offset:end]


@misconception(
    "positional-encoding",
    id="PE23",
    target="PositionalEncoding.forward",
    fails=["positional-encoding-dropout"],
    read="02_positional_encoding#pe-add",
)
def dropout_forgotten(self, x, offset=0):
    """Your dropout argument has no effect: forward should apply the dropout to the sum."""
    end = offset + x.shape[1]
    if end > len(self.encoding):
        raise ValueError(f"offset + n ({end}) must not exceed max_len ({len(self.encoding)})")
    return x + self.encoding[offset:end]


@misconception(
    "positional-encoding",
    id="PE24",
    target="PositionalEncoding.forward",
    fails=["positional-encoding-offset"],
    read="02_positional_encoding#pe-offset",
)
def length_not_checked(self, x, offset=0):
    """Your forward lets an input run past the end of the table: if only one row is left,
    broadcasting uses it for every token without a word.
    """
    return self.dropout(x + self.encoding[offset : offset + x.shape[1]])


@misconception(
    "positional-encoding",
    id="PE25",
    target="PositionalEncoding.forward",
    fails=["positional-encoding-values", "positional-encoding-module"],
    read="02_positional_encoding#pe-add",
)
def added_in_place(self, x, offset=0):
    """Your forward changes the caller's x (+=); make a new tensor with x + rows."""
    end = offset + x.shape[1]
    if end > len(self.encoding):
        raise ValueError(f"offset + n ({end}) must not exceed max_len ({len(self.encoding)})")
    x += self.encoding[offset:end]
    return self.dropout(x)


@misconception(
    "positional-encoding",
    id="PE26",
    target="PositionalEncoding.forward",
    fails=[
        "positional-encoding-values",
        "positional-encoding-offset",
        "positional-encoding-dropout",
    ],
    read="02_positional_encoding#pe-add",
)
def scaled_here(self, x, offset=0):
    """Your forward multiplies x by sqrt(d_model); that scale belongs to the embedding layer,
    and here it would be applied twice.
    """
    end = offset + x.shape[1]
    if end > len(self.encoding):
        raise ValueError(f"offset + n ({end}) must not exceed max_len ({len(self.encoding)})")
    return self.dropout(x * math.sqrt(x.shape[-1]) + self.encoding[offset:end])


# 2.4 Rotate queries and keys


@misconception(
    "rotate",
    id="PE60",
    fails=["rotate-values"],
    read="02_positional_encoding#pe-shift",
)
def turned_the_other_way(x, positions, base=10000.0):
    """You turn to the other side: the even column is x_2i cos minus x_2i+1 sin."""
    d = x.shape[-1]
    if d % 2:
        raise ValueError(f"d ({d}) must be even: columns turn in pairs")
    frequencies = base ** (-torch.arange(0, d, 2, dtype=x.dtype) / d)
    angles = positions.to(x.dtype).unsqueeze(-1) * frequencies
    even, odd = x[..., ::2], x[..., 1::2]
    turned = even * angles.cos() + odd * angles.sin(), odd * angles.cos() - even * angles.sin()
    return torch.stack(turned, dim=-1).flatten(-2)


@misconception(
    "rotate",
    id="PE61",
    fails=["rotate-values", "rotate-scores"],
    read="02_positional_encoding#pe-shift",
)
def not_a_rotation(x, positions, base=10000.0):
    """Your two columns do not turn: one sign is wrong, so lengths change. A rotation has one
    minus, at a sine.
    """
    d = x.shape[-1]
    if d % 2:
        raise ValueError(f"d ({d}) must be even: columns turn in pairs")
    frequencies = base ** (-torch.arange(0, d, 2, dtype=x.dtype) / d)
    angles = positions.to(x.dtype).unsqueeze(-1) * frequencies
    even, odd = x[..., ::2], x[..., 1::2]
    turned = even * angles.cos() + odd * angles.sin(), even * angles.sin() + odd * angles.cos()
    return torch.stack(turned, dim=-1).flatten(-2)


@misconception(
    "rotate",
    id="PE62",
    fails=["rotate-values"],
    read="02_positional_encoding#pe-pairs",
)
def halves_turned(x, positions, base=10000.0):
    """You pair the first half of the columns with the second. Here the pairs are neighbours, 2i and
    2i + 1.
    """
    d = x.shape[-1]
    if d % 2:
        raise ValueError(f"d ({d}) must be even: columns turn in pairs")
    frequencies = base ** (-torch.arange(0, d, 2, dtype=x.dtype) / d)
    angles = positions.to(x.dtype).unsqueeze(-1) * frequencies
    even, odd = x[..., : d // 2], x[..., d // 2 :]
    turned = even * angles.cos() - odd * angles.sin(), even * angles.sin() + odd * angles.cos()
    return torch.cat(turned, dim=-1)


@misconception(
    "rotate",
    id="PE63",
    fails=["rotate-values"],
    read="02_positional_encoding#pe-pairs",
)
def one_frequency_for_all(x, positions, base=10000.0):
    """All your pairs turn equally fast; each has its own frequency."""
    d = x.shape[-1]
    if d % 2:
        raise ValueError(f"d ({d}) must be even: columns turn in pairs")
    frequencies = torch.ones(d // 2, dtype=x.dtype)
    angles = positions.to(x.dtype).unsqueeze(-1) * frequencies
    even, odd = x[..., ::2], x[..., 1::2]
    turned = even * angles.cos() - odd * angles.sin(), even * angles.sin() + odd * angles.cos()
    return torch.stack(turned, dim=-1).flatten(-2)


@misconception(
    "rotate",
    id="PE64",
    fails=["rotate-values", "rotate-scores"],
    read="02_positional_encoding#pe-offset",
)
def counted_from_the_first_row(x, positions, base=10000.0):
    """You number the rows from 0. Where each stands is in positions."""
    d = x.shape[-1]
    if d % 2:
        raise ValueError(f"d ({d}) must be even: columns turn in pairs")
    frequencies = base ** (-torch.arange(0, d, 2, dtype=x.dtype) / d)
    angles = torch.arange(x.shape[-2]).to(x.dtype).unsqueeze(-1) * frequencies
    even, odd = x[..., ::2], x[..., 1::2]
    turned = even * angles.cos() - odd * angles.sin(), even * angles.sin() + odd * angles.cos()
    return torch.stack(turned, dim=-1).flatten(-2)


@misconception(
    "rotate",
    id="PE65",
    fails=["rotate-values"],
    read="02_positional_encoding#pe-wavelengths",
)
def frequency_by_the_pair(x, positions, base=10000.0):
    """Your exponents are i / d; the frequency of pair i is base to the power of -2i / d."""
    d = x.shape[-1]
    if d % 2:
        raise ValueError(f"d ({d}) must be even: columns turn in pairs")
    frequencies = base ** (-torch.arange(d // 2, dtype=x.dtype) / d)
    angles = positions.to(x.dtype).unsqueeze(-1) * frequencies
    even, odd = x[..., ::2], x[..., 1::2]
    turned = even * angles.cos() - odd * angles.sin(), even * angles.sin() + odd * angles.cos()
    return torch.stack(turned, dim=-1).flatten(-2)


@misconception(
    "rotate",
    id="PE66",
    fails=["rotate-values", "rotate-scores"],
    read="02_positional_encoding#pe-shift",
)
def table_added(x, positions, base=10000.0):
    """You add sines and cosines to x. Here nothing is added: x itself is turned."""
    d = x.shape[-1]
    if d % 2:
        raise ValueError(f"d ({d}) must be even: columns turn in pairs")
    frequencies = base ** (-torch.arange(0, d, 2, dtype=x.dtype) / d)
    angles = positions.to(x.dtype).unsqueeze(-1) * frequencies
    even, odd = x[..., ::2], x[..., 1::2]
    turned = even + angles.sin(), odd + angles.cos()
    return torch.stack(turned, dim=-1).flatten(-2)


# 2.5 Attention with relative positions


@misconception(
    "relative-attention",
    id="PE37",
    fails=[
        "relative-attention-values",
        "relative-attention-mask",
        "relative-attention-gradients",
    ],
    read="relative_positions#pe-shaw",
)
def value_table_forgotten(q, k, v, key_table, value_table, mask=None):
    """Your output leaves out the value table: the weights should also sum its rows, w_ij
    (v_j + A_V).
    """
    n, m, far = q.shape[-2], k.shape[-2], len(key_table) // 2
    index = (torch.arange(m) - torch.arange(n)[:, None]).clamp(-far, far) + far
    scores = q @ k.transpose(-2, -1) + torch.einsum("...id,ijd->...ij", q, key_table[index])
    scores = scores / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    return torch.softmax(scores, dim=-1) @ v


@misconception(
    "relative-attention",
    id="PE38",
    fails=["relative-attention-values"],
    read="relative_positions#pe-shaw",
)
def distance_mirrored(q, k, v, key_table, value_table, mask=None):
    """Your tables are read mirrored: the row for key j seen from query i is that of j - i,
    and you used i - j.
    """
    n, m, far = q.shape[-2], k.shape[-2], len(key_table) // 2
    index = (torch.arange(n)[:, None] - torch.arange(m)).clamp(-far, far) + far
    scores = q @ k.transpose(-2, -1) + torch.einsum("...id,ijd->...ij", q, key_table[index])
    scores = scores / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = torch.softmax(scores, dim=-1)
    return weights @ v + torch.einsum("...ij,ijd->...id", weights, value_table[index])


@misconception(
    "relative-attention",
    id="PE39",
    fails=["relative-attention-values"],
    read="relative_positions#pe-shaw",
)
def table_term_not_scaled(q, k, v, key_table, value_table, mask=None):
    """Your scores divide only the query-key product by sqrt(d_k); the product of query and
    table row should be divided too.
    """
    n, m, far = q.shape[-2], k.shape[-2], len(key_table) // 2
    index = (torch.arange(m) - torch.arange(n)[:, None]).clamp(-far, far) + far
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    scores = scores + torch.einsum("...id,ijd->...ij", q, key_table[index])
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = torch.softmax(scores, dim=-1)
    return weights @ v + torch.einsum("...ij,ijd->...id", weights, value_table[index])


@misconception(
    "relative-attention",
    id="PE40",
    fails=["relative-attention-values"],
    read="relative_positions#pe-shaw",
)
def key_meets_the_table(q, k, v, key_table, value_table, mask=None):
    """Your key table is multiplied by the keys; a table row is added to the key and so meets
    the query, q_i . A_K.
    """
    n, m, far = q.shape[-2], k.shape[-2], len(key_table) // 2
    index = (torch.arange(m) - torch.arange(n)[:, None]).clamp(-far, far) + far
    scores = q @ k.transpose(-2, -1) + torch.einsum("...jd,ijd->...ij", k, key_table[index])
    scores = scores / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = torch.softmax(scores, dim=-1)
    return weights @ v + torch.einsum("...ij,ijd->...id", weights, value_table[index])


@misconception(
    "relative-attention",
    id="PE41",
    fails=["relative-attention-mask"],
    read="relative_positions#pe-shaw",
)
def two_kinds_of_weights(q, k, v, key_table, value_table, mask=None):
    """Your sum of table rows uses weights without the mask, so masked keys still leave their
    relative position in the output.
    """
    n, m, far = q.shape[-2], k.shape[-2], len(key_table) // 2
    index = (torch.arange(m) - torch.arange(n)[:, None]).clamp(-far, far) + far
    scores = q @ k.transpose(-2, -1) + torch.einsum("...id,ijd->...ij", q, key_table[index])
    scores = scores / math.sqrt(q.shape[-1])
    positions = torch.softmax(scores, dim=-1)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = torch.softmax(scores, dim=-1)
    return weights @ v + torch.einsum("...ij,ijd->...id", positions, value_table[index])


@misconception(
    "relative-attention",
    id="PE42",
    fails=["relative-attention-mask"],
    read="relative_positions#pe-shaw",
)
def mask_after_the_softmax(q, k, v, key_table, value_table, mask=None):
    """Your weights are set to 0 after the softmax, so those that are left no longer sum to
    1; mask the scores before it.
    """
    n, m, far = q.shape[-2], k.shape[-2], len(key_table) // 2
    index = (torch.arange(m) - torch.arange(n)[:, None]).clamp(-far, far) + far
    scores = q @ k.transpose(-2, -1) + torch.einsum("...id,ijd->...ij", q, key_table[index])
    weights = torch.softmax(scores / math.sqrt(q.shape[-1]), dim=-1)
    if mask is not None:
        weights = weights.masked_fill(~mask, 0.0)
    return weights @ v + torch.einsum("...ij,ijd->...id", weights, value_table[index])


@misconception(
    "relative-attention",
    id="PE43",
    fails=["relative-attention-gradients"],
    read="relative_positions#pe-shaw",
)
def tables_detached(q, k, v, key_table, value_table, mask=None):
    """Your tables are copied without their history (.data or .detach()), so they get no
    gradient and never learn.
    """
    n, m, far = q.shape[-2], k.shape[-2], len(key_table) // 2
    index = (torch.arange(m) - torch.arange(n)[:, None]).clamp(-far, far) + far
    keys, values = key_table.data[index], value_table.data[index]
    scores = q @ k.transpose(-2, -1) + torch.einsum("...id,ijd->...ij", q, keys)
    scores = scores / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = torch.softmax(scores, dim=-1)
    return weights @ v + torch.einsum("...ij,ijd->...id", weights, values)


@misconception(
    "relative-attention",
    id="PE44",
    fails=["relative-attention-values", "relative-attention-mask"],
    read="relative_positions#pe-shaw",
)
def softmax_over_queries(q, k, v, key_table, value_table, mask=None):
    """Your weights sum to 1 over the queries (dim -2); each query should share out its
    attention over the keys (dim -1).
    """
    n, m, far = q.shape[-2], k.shape[-2], len(key_table) // 2
    index = (torch.arange(m) - torch.arange(n)[:, None]).clamp(-far, far) + far
    scores = q @ k.transpose(-2, -1) + torch.einsum("...id,ijd->...ij", q, key_table[index])
    scores = scores / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = torch.softmax(scores, dim=-2)
    return weights @ v + torch.einsum("...ij,ijd->...id", weights, value_table[index])


@misconception(
    "relative-attention",
    id="PE45",
    fails=["relative-attention-mask"],
    read="relative_positions#pe-shaw",
)
def mask_inverted(q, k, v, key_table, value_table, mask=None):
    """Your mask hides the keys that may be attended to: True means "may attend", so fill
    where the mask is False.
    """
    n, m, far = q.shape[-2], k.shape[-2], len(key_table) // 2
    index = (torch.arange(m) - torch.arange(n)[:, None]).clamp(-far, far) + far
    scores = q @ k.transpose(-2, -1) + torch.einsum("...id,ijd->...ij", q, key_table[index])
    scores = scores / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(mask, -math.inf)
    weights = torch.softmax(scores, dim=-1)
    return weights @ v + torch.einsum("...ij,ijd->...id", weights, value_table[index])


@misconception(
    "relative-attention",
    id="PE46",
    fails=["relative-attention-values", "relative-attention-mask"],
    read="relative_positions#pe-shaw",
)
def table_by_key_index(q, k, v, key_table, value_table, mask=None):
    """Your table rows are picked by the key's place alone, which is an absolute position;
    the row depends on j - i.
    """
    index = torch.arange(k.shape[-2]).clamp(max=len(key_table) - 1)
    scores = q @ (k + key_table[index]).transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    return torch.softmax(scores, dim=-1) @ (v + value_table[index])


@misconception(
    "relative-attention",
    id="PE49",
    fails=["relative-attention-mask"],
    read="relative_positions#pe-shaw",
)
def hidden_scores_are_minus_10000(q, k, v, key_table, value_table, mask=None):
    """You hide keys with a number such as -10000, and other scores may be lower than that; take
    minus infinity.
    """
    n, m, far = q.shape[-2], k.shape[-2], len(key_table) // 2
    index = (torch.arange(m) - torch.arange(n)[:, None]).clamp(-far, far) + far
    scores = q @ k.transpose(-2, -1) + torch.einsum("...id,ijd->...ij", q, key_table[index])
    scores = scores / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e4)
    weights = torch.softmax(scores, dim=-1)
    return weights @ v + torch.einsum("...ij,ijd->...id", weights, value_table[index])


# 2.6 Your table, looked at


@misconception(
    "predicted-likeness",
    id="PE67",
    fails=["predicted-likeness-made"],
    read="02_positional_encoding#pe-shift",
)
def likeness_not_predicted():
    """You have not predicted anything: return one of the texts in LIKENESS."""
    return


@misconception(
    "predicted-likeness",
    id="PE68",
    fails=["predicted-likeness-made"],
    read="02_positional_encoding#pe-shift",
)
def likeness_by_number():
    """Your prediction is a number; return one of the texts in LIKENESS itself."""
    return 2


@misconception(
    "predicted-likeness",
    id="PE69",
    fails=["predicted-likeness-made"],
    read="02_positional_encoding#pe-shift",
)
def likeness_in_own_words():
    """Your prediction is none of the four; return one of the texts in LIKENESS as it stands
    there.
    """
    return "it goes up and down"


# 2.7 Look back by angles alone


@misconception(
    "look-back",
    id="PE70",
    fails=["look-back-weights"],
    read="02_positional_encoding#pe-shift",
)
def looks_ahead(k, d):
    """Your peak is k places ahead, where nothing may be seen. Turn the query the other way,
    or the key in its place.
    """
    angles = k * 10000.0 ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
    key = torch.tensor([1.0, 0.0], dtype=torch.float64).repeat(d // 2)
    query = torch.stack([angles.cos(), angles.sin()], dim=-1).flatten()
    return 100.0 * query, key


@misconception(
    "look-back",
    id="PE71",
    fails=["look-back-weights"],
    read="02_positional_encoding#pe-shift",
)
def gap_too_small(k, d):
    """The right token wins with too little weight: your scores' gap is too small. Multiply
    the query or the key by a large number.
    """
    angles = k * 10000.0 ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
    key = torch.tensor([1.0, 0.0], dtype=torch.float64).repeat(d // 2)
    query = torch.stack([angles.cos(), -angles.sin()], dim=-1).flatten()
    return 1.0 * query, key


@misconception(
    "look-back",
    id="PE72",
    fails=["look-back-weights"],
    read="02_positional_encoding#pe-wavelengths",
)
def one_pair_only(k, d):
    """Only one pair of columns takes part, and its cosine comes round again: far tokens win.
    Use all pairs.
    """
    angles = k * 10000.0 ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
    key = torch.tensor([1.0, 0.0], dtype=torch.float64).repeat(d // 2)
    query = torch.stack([angles.cos(), -angles.sin()], dim=-1).flatten()
    query[2:] = 0.0
    return 100.0 * query, key


@misconception(
    "look-back",
    id="PE73",
    fails=["look-back-weights"],
    read="02_positional_encoding#pe-shift",
)
def looks_at_itself(k, d):
    """Your query is not turned by k, so each token looks at itself. A fixed turn of one of the two
    moves the peak.
    """
    angles = 0 * torch.arange(0, d, 2, dtype=torch.float64)
    key = torch.tensor([1.0, 0.0], dtype=torch.float64).repeat(d // 2)
    query = torch.stack([angles.cos(), -angles.sin()], dim=-1).flatten()
    return 100.0 * query, key

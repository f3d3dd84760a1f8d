# %% [markdown]
# # 2 Positional encoding
#
# Self-attention compares every token with every other one and never looks at where a token stands.
# In this notebook you build what tells it: the sinusoids of the Transformer, the rotation that
# makes them special, the module that adds them to the embeddings, rotated queries and keys, and the
# relative positions of Shaw et al.
#
# **How to work.** Run the cells from top to bottom. Write your code where the cell says so, run it,
# then run the test cells below it: they say in words what is wrong. The tests you see are not all
# the tests: more of them, with other sizes and numbers, run when the notebook is graded. Every
# question stands alone, so you may skip one and come back. What you need is explained on the book's
# page *Positional encoding*; questions 2.5, 2.7 and 2.8 also use attention itself, which is explained in
# full on the page *Attention*, and may wait until then.
#
# **Conventions.** Rows are tokens, the batch comes first: `x` is (B, N, d_model). Positions and
# columns are counted from 0. A mask is boolean, and True means "may attend". Where nothing else is
# said, what comes out has the dtype of what goes in.

# %% setup
import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from lab.battery import assert_share, assert_sound
from lab.check import (
    assert_close,
    assert_dtype,
    assert_raises,
    assert_shape,
    draw,
    expect_no_error,
    visible_passed,
)
from lab.predict import compare, predicted, watched

# %% [markdown]
# ## 2.1 The sinusoidal table   (4 points, about 15 minutes, difficulty 2 of 5)
#
# **Objective.** Compute the table that Vaswani et al. (2017, section 3.5) add to the embeddings.
#
# One row for each position $p = 0, \dots, n - 1$, and $d_\text{model}$ columns that come in pairs.
# Pair $i = 0, \dots, d_\text{model}/2 - 1$ fills the columns $2i$ and $2i + 1$:
#
# $$
# P_{p,\,2i} = \sin\left(\frac{p}{b^{\,2i/d_\text{model}}}\right)
# \qquad
# P_{p,\,2i+1} = \cos\left(\frac{p}{b^{\,2i/d_\text{model}}}\right)
# $$
#
# Here $b$ is `base`, which is 10000 in the paper. Return a tensor of shape (num_positions, d_model)
# and of type `dtype`; compute in that type from the start. Pairs need an even number of columns:
# for an odd `d_model` raise a `ValueError` that names the number. `lab.translator`, which has such a
# table, is not allowed here.
#
# <details><summary>Hint 1: a question</summary>
#
# How many different frequencies are there, and which two columns share the first one?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Make a column of positions, shape (n, 1), and a row of frequencies, shape (d_model / 2,). Their
# product broadcasts to all angles, shape (n, d_model / 2). What remains is to put the sine of each
# angle beside its cosine.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# * Row 0 is not 0, 1, 0, 1, ...: your positions start at 1, or sines and cosines are not interleaved.
# * Only the odd columns are wrong: the cosine has a frequency of its own; it should share that of the sine on its left.
# * The first two columns are right, the others fall off too quickly: the exponent has been doubled. `torch.arange(0, d_model, 2)` already counts 2i.
# * All columns repeat the first two: the exponent was computed in integers and became 0.
# * Differences around 1e-8: the numbers were computed in float32 and converted afterwards.
#
# </details>


# %% solution="sinusoidal-encoding" export
def sinusoidal_encoding(
    num_positions: int,
    d_model: int,
    base: float = 10000.0,
    *,
    dtype: torch.dtype = torch.float32,
) -> Float[Tensor, "num_positions d_model"]:
    """Return the table of sinusoids, one row a position (Vaswani et al., 2017, section 3.5).

    Args:
        num_positions: number of rows, for the positions 0 .. num_positions - 1.
        d_model: number of columns; even columns hold sines, odd ones the cosines of the same angle.
        base: the longest wavelength is 2 * pi * base, divided by base ** (2 / d_model).
        dtype: floating-point type of the table.

    Raises:
        ValueError: if d_model is odd.
    """
    ### BEGIN SOLUTION
    if d_model % 2 != 0:
        raise ValueError(f"d_model ({d_model}) must be even: each sine is paired with a cosine")
    position = torch.arange(num_positions, dtype=dtype)[:, None]  # (n, 1)
    frequency = base ** (-torch.arange(0, d_model, 2, dtype=dtype) / d_model)  # (d_model / 2,)
    angle = position * frequency  # (n, d_model / 2)
    return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(-2)  # (n, d_model)
    ### END SOLUTION


# %% test="sinusoidal-encoding-values" points=3
table = sinusoidal_encoding(4, 6, base=1000.0, dtype=torch.float64)
assert_shape(table, (4, 6), "the table has a row for each position and d_model columns")
assert_dtype(table, torch.float64, "the table has the dtype that was asked for")
assert_close(table[0, 0::2], 0, "at position 0 every sine (columns 0, 2, 4) is 0")
assert_close(table[0, 1::2], 1, "at position 0 every cosine (columns 1, 3, 5) is 1")
row_1 = torch.tensor([0.841471, 0.540302, 0.0998334, 0.995004, 0.00999983, 0.99995]).double()
row_3 = torch.tensor([0.141120, -0.989992, 0.295520, 0.955336, 0.0299955, 0.99955]).double()
# six printed digits, hence the wider tolerance
assert_close(table[1], row_1, "position 1 has the values of the formula", atol=1e-6)
assert_close(table[3], row_3, "position 3 has the values of the formula", atol=1e-6)
exact = torch.tensor([math.sin(p / 10.0) for p in range(4)], dtype=torch.float64)
# the text asks for the precision of dtype, hence the narrow tolerance
assert_close(
    table[:, 2],
    exact,
    "with dtype=torch.float64 the table is computed in float64; yours seems to be in less",
    atol=1e-12,
)
visible_passed()
### BEGIN HIDDEN TESTS
far = sinusoidal_encoding(3000, 2, dtype=torch.float64)
assert_close(far[2999, 0], math.sin(2999), "the table is right at positions of four digits too")
wide = sinusoidal_encoding(9, 10, dtype=torch.float64)
assert_shape(wide, (9, 10), "the table has a row for each position and d_model columns")
assert_close(
    wide[:, 0::2] ** 2 + wide[:, 1::2] ** 2,
    1,
    "the sine and the cosine of a pair belong to the same angle, so their squares add to 1",
)
angles = [[p / 10000.0 ** (2 * i / 10) for i in range(5)] for p in range(9)]
assert_close(
    wide[:, 0::2],
    torch.tensor([[math.sin(a) for a in row] for row in angles], dtype=torch.float64),
    "the even columns are the sines of the formula, with base 10000 unless told otherwise",
)
assert_close(
    wide[:, 1::2],
    torch.tensor([[math.cos(a) for a in row] for row in angles], dtype=torch.float64),
    "the odd columns are the cosines of the formula, with base 10000 unless told otherwise",
)
narrow = sinusoidal_encoding(5, 2, base=7.0, dtype=torch.float64)
assert_close(
    narrow[:, 0],
    torch.arange(5, dtype=torch.float64).sin(),
    "with a single pair the first column is sin(position), whatever the base",
)
other = sinusoidal_encoding(9, 10, base=2.5, dtype=torch.float64)
assert_close(
    other[:, 2],
    torch.tensor([math.sin(p / 2.5**0.2) for p in range(9)], dtype=torch.float64),
    "each call has a base of its own, whatever table was made before, and it need not be whole",
)
single = sinusoidal_encoding(8, 4)
assert_dtype(single, torch.float32, "without a dtype argument the table is float32")
assert_close(
    single[:, 2],
    torch.tensor([math.sin(p / 100) for p in range(8)], dtype=torch.float32),
    "the float32 table has the values of the formula",
)
### END HIDDEN TESTS

# %% test="sinusoidal-encoding-odd" points=1
assert_raises(
    ValueError,
    lambda: sinusoidal_encoding(4, 7),
    "an odd d_model is refused with a ValueError that names the number",
    mentions=("7",),
)
visible_passed()
### BEGIN HIDDEN TESTS
assert_raises(
    ValueError,
    lambda: sinusoidal_encoding(2, 13, base=100.0),
    "every odd d_model is refused with a ValueError that names the number",
    mentions=("13",),
)
assert_shape(sinusoidal_encoding(1, 14), (1, 14), "an even d_model is accepted, one position too")
### END HIDDEN TESTS

# %% [markdown]
# ## 2.2 A shift is a rotation   (3 points, about 15 minutes, difficulty 3 of 5)
#
# **Objective.** For a fixed shift $k$, write down the one matrix $R$ that moves *every* row of the
# sinusoidal table $k$ positions on:
#
# $$ P_{p+k} = P_p \, R \qquad \text{for all positions } p. $$
#
# The rows $P_p$ are row vectors of length d_model, laid out as in question 2.1: pair $i$ has the sine
# of $\omega_i p$ in column $2i$ and the cosine of the same angle in column $2i + 1$, with the
# frequency $\omega_i = b^{-2i/d_\text{model}}$. So $R$ is d_model by d_model. It may depend on $k$, d_model and
# the base, not on $p$. The shift $k$ is an integer, and it may be negative or 0. Write the matrix
# down; do not fit it to a table: `lstsq`, `pinv` and `solve` are not allowed here.
#
# <details><summary>Hint 1: a question</summary>
#
# What is $\sin(a + \delta)$, written with the sine and the cosine of $a$? And $\cos(a + \delta)$?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Each pair of columns minds its own business: $R$ has 2 x 2 blocks on its diagonal and zeros
# elsewhere. In the block of a pair with frequency $\omega$ the angle is $\delta = \omega k$. A row
# vector times the block: the first *column* of the block makes the new sine, the second the new
# cosine.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# * Rows move the wrong way (position 2 goes to -1 for k = 3): the block is transposed.
# * The first pair is right, the others are not: every pair has its own frequency.
# * Right for k = 1 only, or wrong for negative k: check where k enters.
#
# </details>


# %% solution="shift-matrix"
def shift_matrix(
    k: int,
    d_model: int,
    base: float = 10000.0,
    *,
    dtype: torch.dtype = torch.float32,
) -> Float[Tensor, "d_model d_model"]:
    """Return R with P[p + k] = P[p] @ R for every row p of the sinusoidal table P.

    This is the linear map that Vaswani et al. (2017, section 3.5) give as their reason for
    sinusoids: one rotation for each pair of columns, and the same one at every position.

    Args:
        k: shift in positions; negative goes back.
        d_model: number of columns of the table, even.
        base: base of the table.
        dtype: floating-point type of the matrix, in which it is computed.
    """
    ### BEGIN SOLUTION
    frequency = base ** (-torch.arange(0, d_model, 2, dtype=dtype) / d_model)  # (d_model / 2,)
    cos, sin = (k * frequency).cos(), (k * frequency).sin()
    rotation = torch.zeros(d_model, d_model, dtype=dtype)
    sines = torch.arange(0, d_model, 2)
    cosines = sines + 1
    rotation[sines, sines], rotation[cosines, sines] = cos, sin  # sin(a + d): column of the sine
    rotation[sines, cosines], rotation[cosines, cosines] = -sin, cos  # cos(a + d)
    return rotation
    ### END SOLUTION


# %% test="shift-matrix-values" points=2
# rows of the table for d_model = 4 and base = 100, six digits: positions 0 and 2, then 3 and 5
before = torch.tensor([[0.0, 1.0, 0.0, 1.0], [0.909297, -0.416147, 0.198669, 0.980067]]).double()
after = torch.tensor(
    [[0.141120, -0.989992, 0.295520, 0.955336], [-0.958924, 0.283662, 0.479426, 0.877583]]
).double()
R = shift_matrix(3, 4, base=100.0, dtype=torch.float64)
assert_shape(R, (4, 4), "the shift is a matrix with d_model rows and d_model columns")
# six printed digits, hence the wider tolerance
assert_close(
    before[0] @ R, after[0], "the row of position 0, times R for k = 3, is that of 3", atol=1e-5
)
assert_close(
    before[1] @ R, after[1], "the row of position 2, times R for k = 3, is that of 5", atol=1e-5
)
visible_passed()
### BEGIN HIDDEN TESTS
for shift, width, b in ((1, 6, 10000.0), (4, 8, 50.0)):
    moved = shift_matrix(shift, width, base=b, dtype=torch.float64)
    assert_dtype(moved, torch.float64, "the matrix has the dtype that was asked for")
    rows = torch.zeros(30, width, dtype=torch.float64)
    for p in range(30):
        for i in range(width // 2):
            angle = p / b ** (2 * i / width)
            rows[p, 2 * i], rows[p, 2 * i + 1] = math.sin(angle), math.cos(angle)
    assert_close(
        rows[:-shift] @ moved,
        rows[shift:],
        "one and the same R takes every position p of the table to p + k, to all digits of float64",
        atol=1e-10,
    )
single = shift_matrix(2, 4)
assert_dtype(single, torch.float32, "without a dtype argument the matrix is float32")
assert_close(
    torch.tensor([0.0, 1.0, 0.0, 1.0]) @ single,
    torch.tensor([math.sin(2), math.cos(2), math.sin(0.02), math.cos(0.02)]),
    "the float32 matrix takes position 0 to position k, with base 10000 unless told otherwise",
)
### END HIDDEN TESTS

# %% test="shift-matrix-group" points=1
there, back = (shift_matrix(k, 6, base=100.0, dtype=torch.float64) for k in (5, -5))
assert_close(there @ back, torch.eye(6).double(), "going 5 positions on and 5 back changes nothing")
still = shift_matrix(0, 6, dtype=torch.float64)
assert_close(still, torch.eye(6).double(), "a shift by 0 is the identity matrix")
visible_passed()
### BEGIN HIDDEN TESTS
two, four, six = (shift_matrix(k, 8, base=30.0, dtype=torch.float64) for k in (2, 4, 6))
assert_close(two @ four, six, "a shift by 2 followed by a shift by 4 is a shift by 6")
minus = shift_matrix(-4, 8, base=30.0, dtype=torch.float64)
assert_close(minus, four.T, "a rotation is undone by its transpose: R(-k) is the transpose of R(k)")
wide = shift_matrix(3, 64, dtype=torch.float64)
assert_close(wide @ wide.T, torch.eye(64).double(), "a matrix of rotations, not fitted to a table")
### END HIDDEN TESTS

# %% [markdown]
# ## 2.3 The module that adds positions   (4 points, about 20 minutes, difficulty 2 of 5)
#
# **Objective.** Write the layer that stands between the embedding and the first attention layer.
#
# It is built from any table of shape (max_len, d_model), for instance that of question 2.1, and a
# dropout probability. `forward(x, offset=0)` takes embeddings `x` of shape (B, N, d_model), adds
# the table's rows offset, ..., offset + N - 1 to *every* sequence of the batch, and applies dropout
# to the sum (Vaswani et al., section 5.4).
#
# * The table is fixed: it is no parameter, so that no optimiser changes it. It still belongs to the
#   module, so that `module.to(...)` takes it along: register it as a buffer, in the dtype it has.
# * `offset` is the position of the first token of `x`. In decoding step by step each call brings one
#   new token, and the token at position 7 needs row 7.
# * If the last position needed is not in the table, raise a `ValueError` that names the length that
#   was needed (offset + N) and max_len.
# * Leave `x` as it was.
#
# `lab.blocks.PositionalEncoding` is this very layer; it is not allowed here, write your own.
#
# <details><summary>Hint 1: a question</summary>
#
# `x` is (B, N, d_model) and the rows you need are (N, d_model). Along which axis does broadcasting
# repeat them?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# In `__init__`: register the buffer, and make a dropout layer from `nn`. In `forward`: read N off
# `x`, check the length, slice N rows that start at `offset`, add, then drop.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# * "The size of tensor a must match ...": the slice does not have N rows. Print its shape: B rows, all max_len of them, or none?
# * Right in one call, wrong token by token: a slice that starts at `offset` ends at `offset + N`.
# * An input that is too long passes silently: a slice past the end of a tensor is short, not an error, and a slice of one row is broadcast.
# * With dropout 1 something other than 0 comes out: dropout was applied before the sum.
#
# </details>


# %% solution="positional-encoding" export
class PositionalEncoding(nn.Module):
    """Add a fixed table of positions to embeddings, then drop (Vaswani et al., 2017, 3.5 and 5.4).

    Args:
        encoding: the table, (max_len, d_model); row p is added to the token at position p.
        dropout: probability of dropping an entry of the sum.
    """

    encoding: Tensor

    def __init__(self, encoding: Float[Tensor, "max_len d_model"], dropout: float = 0.0) -> None:
        super().__init__()
        ### BEGIN SOLUTION
        # not persistent: the table can be computed again, and a checkpoint should not fix max_len
        self.register_buffer("encoding", encoding, persistent=False)
        self.dropout = nn.Dropout(dropout)
        ### END SOLUTION

    def forward(
        self, x: Float[Tensor, "batch n d_model"], offset: int = 0
    ) -> Float[Tensor, "batch n d_model"]:
        """Return dropout(x + rows offset .. offset + n - 1 of the table).

        Raises:
            ValueError: if offset + n is greater than max_len.
        """
        ### BEGIN SOLUTION
        end = offset + x.shape[1]
        if end > len(self.encoding):
            raise ValueError(
                f"offset + n ({end}) must not exceed max_len ({len(self.encoding)}), "
                "the number of rows of the table"
            )
        return self.dropout(x + self.encoding[offset:end])  # (B, n, d) + (n, d)
        ### END SOLUTION


# %% test="positional-encoding-values" points=1
x, rows = draw((3, 5, 4), (9, 4))
before, wanted = x.clone(), x + rows[:5]
layer = PositionalEncoding(rows)
out = layer(x)
assert_close(x, before, "the input x is left unchanged")
assert_shape(out, (3, 5, 4), "adding positions leaves the shape (batch, tokens, d_model) as it was")
assert_close(out[1, 0], wanted[1, 0], "the first token of a sequence gets row 0 of the table")
assert_close(out[1, 3], wanted[1, 3], "the token at position 3 gets row 3 of the table")
assert_close(out[2], wanted[2], "the last sequence of the batch gets the same rows as the first")
visible_passed()
### BEGIN HIDDEN TESTS
wide, small = draw((2, 6, 3), (7, 6), seed=1)
turned = wide.transpose(1, 2)  # (2, 3, 6), not contiguous
full = draw((4, 7, 6), seed=2)
wanted, of_full = turned + small[None, :3], full + small[None]
layer = PositionalEncoding(small)
assert_close(layer(turned), wanted, "every sequence gets rows 0, 1, 2, ... of the table, once")
with expect_no_error("a sequence of length max_len is not too long: it uses the last row as well"):
    out = layer(full)
assert_close(out, of_full, "a sequence of length max_len gets the whole table")
plain, few = draw((1, 3, 8), (5, 8), seed=3, dtype=torch.float32)
wanted = plain + few[None, :3]
assert_close(PositionalEncoding(few)(plain), wanted, "float32 inputs get rows 0, 1, 2, ... too")
### END HIDDEN TESTS

# %% test="positional-encoding-offset" points=1
x, rows = draw((2, 3, 4), (8, 4), seed=4)
wanted = x + rows[None, 4:7]
layer = PositionalEncoding(rows)
assert_close(layer(x, offset=4), wanted, "with offset 4 three tokens get the rows 4, 5 and 6")
assert_raises(
    ValueError,
    lambda: layer(x, offset=7),
    "three tokens from position 7 on need 10 rows; with max_len 8 that is a ValueError with both numbers",
    mentions=("10", "8"),
)
visible_passed()
### BEGIN HIDDEN TESTS
tokens, table = draw((3, 6, 4), (6, 4), seed=5)
whole = tokens + table[None]
layer = PositionalEncoding(table)
with expect_no_error("offset + N may be as large as max_len: then the last row is used"):
    last = layer(tokens[:, 2:].clone(), offset=2)
assert_close(last, whole[:, 2:], "the last row of the table may be used too")
steps = torch.cat([layer(tokens[:, t : t + 1], offset=t) for t in range(6)], dim=1)
assert_close(steps, whole, "token by token, with its position as offset, equals all at once")
assert_raises(
    ValueError,
    lambda: layer(tokens[:, :2], offset=5),
    "two tokens with only one row left are a ValueError; the last row must not be used for both",
    mentions=("7", "6"),
)
assert_raises(
    ValueError,
    lambda: layer(draw((2, 7, 4))),
    "more tokens than max_len are a ValueError that names both numbers",
    mentions=("7", "6"),
)
### END HIDDEN TESTS

# %% test="positional-encoding-module" points=1
rows = draw((6, 4), dtype=torch.float32)
layer = PositionalEncoding(rows, dropout=0.1)
assert not list(layer.parameters()), "a fixed table is not trained, so the module has no parameters"
buffers = list(layer.buffers())
assert len(buffers) == 1, f"the table is the module's one buffer; yours has {len(buffers)} buffers"
assert_close(buffers[0].reshape(6, 4), rows, "the buffer holds the table")
assert_sound(
    PositionalEncoding(rows.double()),
    [draw((2, 5, 4))],
    says="without dropout the layer gives the same in both modes, goes along with module.to(...), "
    "lets gradients through and changes nothing",
)
visible_passed()
### BEGIN HIDDEN TESTS
dtypes = [buffer.dtype for buffer in PositionalEncoding(draw((6, 4))).buffers()]
assert dtypes == [torch.float64], "a table in float64 is kept in float64"
doubled = PositionalEncoding(rows).to(torch.float64)
out = doubled(draw((2, 5, 4)))
assert_dtype(out, torch.float64, "module.to(torch.float64) takes the table along")
assert all(b.dtype == torch.float64 for b in doubled.buffers()), "module.to(...) converts the table"
for buffer in doubled.buffers():
    buffer.zero_()
assert not torch.allclose(doubled(draw((2, 5, 4))), out), "the rows added are those of the buffer"
### END HIDDEN TESTS

# %% test="positional-encoding-dropout" points=1
x, rows = draw((2, 5, 4), (6, 4), seed=6)
wanted = x + rows[None, :5]
quiet = PositionalEncoding(rows, dropout=0.5).eval()
assert_close(quiet(x.clone()), wanted, "in eval mode nothing is dropped")
silent = PositionalEncoding(rows, dropout=1.0)
assert_close(silent(x), 0, "dropout with probability 1 drops the whole sum")
visible_passed()
### BEGIN HIDDEN TESTS
torch.manual_seed(0)
wide, table = draw((3, 7, 64), (8, 64), seed=7)
whole = wide + table[None, :7]
noisy = PositionalEncoding(table, dropout=0.5)(wide.clone())
layer = PositionalEncoding(table, dropout=0.2)
rarer, again = layer(wide.clone()), layer(wide)
for given, rate in ((noisy, 0.5), (rarer, 0.2)):
    assert_close(
        given,
        torch.where(given != 0, whole / (1 - rate), 0.0),
        "in training every entry of the sum is either dropped to 0 or divided by 1 - dropout, so "
        "that 0.5 doubles what is kept",
    )
    assert_share(given == 0, rate, "in training, dropout is the share of entries that are dropped")
kept = noisy != 0
for axis, claim in (
    (-1, "dropout drops single entries, not whole tokens"),
    (1, "dropout drops single entries, not whole features"),
    (0, "dropout drops single entries, not the same ones of every sequence"),
):
    assert (kept.any(axis) & ~kept.all(axis)).any(), claim
assert not torch.equal(rarer, again), "each call in training drops other entries: set no seed here"
### END HIDDEN TESTS

# %% [markdown]
# ## 2.4 Rotate queries and keys   (3 points, about 20 minutes, difficulty 3 of 5)
#
# **Objective.** Put positions into attention without adding anything: turn queries and keys.
#
# Since 2.2 you know that a shift of the sinusoids is a rotation. Most models of today drop the table and keep the
# rotation (Su et al., 2021): before scores are taken, the query or key at position $p$ is rotated, pair by pair, by the
# angle $\omega_i p$, with $\omega_i = b^{-2i/d}$. Pair $i$ are the columns $2i$ and $2i + 1$:
#
# $$
# (x_{2i},\; x_{2i+1}) \;\to\; (x_{2i} \cos \omega_i p - x_{2i+1} \sin \omega_i p,\;\;
# x_{2i} \sin \omega_i p + x_{2i+1} \cos \omega_i p)
# $$
#
# `x` is $(\ldots, N, d)$ with an even $d$, `positions` $(N)$ says where each of the $N$ rows stands: whole numbers, not always
# $0, 1, 2, \ldots$. Return the rotated rows, computed in the dtype of `x`; leave `x` as it is. Gradients flow back to `x`. For an odd
# $d$ raise a `ValueError` that names the number.
#
# <details><summary>Hint 1: a question</summary>
#
# The angles form a table: which of its two axes is the position, which the pair?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Even columns and odd columns apart, each $(\ldots, N, d/2)$. Two products and a sum for either half; then put the
# halves back side by side, alternating: `torch.stack` on a new last axis, and `flatten`.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - Lengths change: a sign. A rotation keeps the length of every row.
# - Right for the first pair only: each has its own frequency.
# - The right numbers in other columns: halves were put one behind the other; the pairs are neighbours.
# - Scores change when all positions move by one: was either of the two rotated by another table?
#
# </details>


# %% solution="rotate"
def rotate(
    x: Float[Tensor, "... N d"], positions: Int[Tensor, "N"], base: float = 10000.0
) -> Float[Tensor, "... N d"]:
    """Turn each row, pair of columns by pair, by angles that grow with its position.

    Source: Su et al. (2021), section 3.2.

    Raises:
        ValueError: if d is odd.
    """
    ### BEGIN SOLUTION
    d = x.shape[-1]
    if d % 2:
        raise ValueError(f"d ({d}) must be even: columns turn in pairs")
    frequencies = base ** (-torch.arange(0, d, 2, dtype=x.dtype) / d)  # (d / 2,)
    angles = positions.to(x.dtype).unsqueeze(-1) * frequencies  # (N, d / 2)
    even, odd = x[..., ::2], x[..., 1::2]
    turned = (
        even * angles.cos() - odd * angles.sin(),
        even * angles.sin() + odd * angles.cos(),
    )
    return torch.stack(turned, dim=-1).flatten(-2)
    ### END SOLUTION


# %% test="rotate-values" points=2
x = torch.tensor([[1.0, 0.0, 0.0, 2.0]] * 2, dtype=torch.float64)
turned = rotate(x, torch.tensor([0, 3]), base=100.0)
assert_close(turned[0], x[0], "at position 0 nothing turns")
wanted = torch.tensor([-0.98999250, 0.14112001, -0.59104041, 1.91067298], dtype=torch.float64)
assert_close(
    turned[1], wanted, "position 3, base 100: pair 0 turns by 3, pair 1 by 0.3, other numbers"
)
visible_passed()
### BEGIN HIDDEN TESTS
x, positions = draw((2, 3, 5, 6), seed=41), torch.tensor([7, 0, 2, 40, 3])
before = x.clone()
turned = rotate(x, positions)
assert_dtype(turned, torch.float64, "the result should have the dtype of x")
for n, p in enumerate(positions.tolist()):
    for i in range(3):
        angle = p * 10000 ** (-2 * i / 6)
        even, odd = x[..., n, 2 * i], x[..., n, 2 * i + 1]
        assert_close(
            turned[..., n, 2 * i],
            even * math.cos(angle) - odd * math.sin(angle),
            "the even column of each pair should be x_2i cos - x_2i+1 sin, by the angle of its "
            "position and its pair",
        )
        assert_close(
            turned[..., n, 2 * i + 1],
            even * math.sin(angle) + odd * math.cos(angle),
            "the odd column of each pair should be x_2i sin + x_2i+1 cos, by the angle of its "
            "position and its pair",
        )
assert torch.equal(x, before), "rotate should leave x unchanged"
angle = 7001 * 10000 ** (-2 / 6)
far = rotate(torch.tensor([[0.0, 0, 1, 0, 0, 0]], dtype=torch.float64), torch.tensor([7001]))
assert_close(
    far[0, 2:4],
    torch.tensor([math.cos(angle), math.sin(angle)], dtype=torch.float64),
    "at positions of four digits, too, the angles should have the digits of x's dtype, float64",
)
assert_dtype(rotate(x[0, 0].float(), positions), torch.float32, "float32 in, float32 out")
assert_raises(
    ValueError,
    lambda: rotate(x[..., :5], positions),
    "an odd number of columns should raise a ValueError that names it",
    ["5"],
)
x = x[0, 0].requires_grad_()
signal = draw((5, 6), seed=42)
(gradient,) = torch.autograd.grad((rotate(x, positions) * signal).sum(), x)
assert_close(gradient.norm(dim=-1), signal.norm(dim=-1), "gradients should turn back, too")
### END HIDDEN TESTS

# %% test="rotate-scores" points=1
q, k = draw((4, 8), (4, 8), seed=43)
positions = torch.arange(4)
near = rotate(q, positions) @ rotate(k, positions).T
far = rotate(q, positions + 90) @ rotate(k, positions + 90).T
assert_close(far, near, "scores should depend on j - i only: all moved by 90 gives the same")
assert_close(
    rotate(q, positions).norm(dim=-1), q.norm(dim=-1), "turning should change no row's length"
)
visible_passed()
### BEGIN HIDDEN TESTS
q, k = draw((1, 6), (1, 6), seed=44)
for i, j, shift in ((3, 9, 4), (9, 3, 55), (20, 20, 7)):
    one, other = (
        rotate(q, torch.tensor([i + s]), 50.0) @ rotate(k, torch.tensor([j + s]), 50.0).T
        for s in (0, shift)
    )
    assert_close(one, other, "with another base, too, scores should depend on j - i only")
ahead = rotate(q, torch.tensor([3])) @ rotate(k, torch.tensor([5])).T
behind = rotate(q, torch.tensor([5])) @ rotate(k, torch.tensor([3])).T
assert (ahead - behind).abs().item() > 1e-3, "before and after should be told apart"
### END HIDDEN TESTS

# %% [markdown]
# ## 2.5 Attention with relative positions   (4 points, about 25 minutes, difficulty 4 of 5)
#
# **Objective.** Put the relative positions where they work: inside attention (Shaw et al., 2018,
# section 3.1).
#
# There are two tables with $2K + 1$ rows, one for the keys, $A^K$ with rows of length $d_k$, and one
# for the values, $A^V$ with rows of length $d_v$. With $I_{ij} = \operatorname{clip}(j - i, -K, K) + K$:
#
# $$
# e_{ij} = \frac{q_i \cdot \left(k_j + A^K_{I_{ij}}\right)}{\sqrt{d_k}}
# \qquad
# w_{ij} = \operatorname{softmax}_j(e_{ij})
# \qquad
# z_i = \sum_j w_{ij} \left(v_j + A^V_{I_{ij}}\right)
# $$
#
# The softmax runs over the keys $j$; you may use `torch.softmax`. Shapes: `q` is (..., n, d_k), `k`
# (..., m, d_k), `v` (..., m, d_v), the tables (2K + 1, d_k) and (2K + 1, d_v), the output
# (..., n, d_v). The dots stand for any leading axes (batch, heads), which all share the tables.
# $K$ is not an argument: read it off the tables. A mask of shape (n, m) or (..., n, m), if there is
# one, says with True which keys a query may attend to; every query may attend to at least one key,
# and all others get weight 0. Change none of the inputs.
#
# <details><summary>Hint 1: a question</summary>
#
# The vector $A^K_{I_{ij}}$ depends on i *and* j. What is the shape of all of them together, and over
# which axis is the product with $q_i$ summed?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Indexing a table with the (n, m) index gives (n, m, d). Multiply out the brackets: the scores are
# the usual query-key products plus query-table products, the output is the usual weighted sum of
# values plus a weighted sum of table rows. `torch.einsum` says such sums in one line.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# * Right with both tables at 0, wrong otherwise: check which index goes with the table, and j - i against i - j.
# * Scores off by a constant factor from the table only: the division by the square root applies to both products.
# * Right without a mask, wrong with one: masked scores must be very negative *before* the softmax, and both sums must use the same weights.
# * A table gets no gradient: it was copied without its history.
#
# </details>


# %% solution="relative-attention"
def relative_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... m d_k"],
    v: Float[Tensor, "... m d_v"],
    key_table: Float[Tensor, "rows d_k"],
    value_table: Float[Tensor, "rows d_v"],
    mask: Bool[Tensor, "... #n m"] | None = None,  # True = may attend
) -> Float[Tensor, "... n d_v"]:
    """Attend with relative positions in keys and values (Shaw et al., 2018, section 3.1).

    Args:
        q, k, v: queries, keys and values.
        key_table, value_table: rows = 2K + 1 vectors; row K is for a token and itself.
        mask: True where query i may attend to key j.
    """
    ### BEGIN SOLUTION
    n, m, furthest = q.shape[-2], k.shape[-2], len(key_table) // 2
    distance = torch.arange(m, device=q.device) - torch.arange(n, device=q.device)[:, None]
    index = distance.clamp(-furthest, furthest) + furthest  # (n, m)
    scores = q @ k.transpose(-2, -1)  # (..., n, m)
    scores = scores + torch.einsum("...id,ijd->...ij", q, key_table[index])
    scores = scores / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = torch.softmax(scores, dim=-1)
    return weights @ v + torch.einsum("...ij,ijd->...id", weights, value_table[index])
    ### END SOLUTION


# %% test="relative-attention-values" points=2
q, k, v = draw((2, 5, 4), (2, 6, 4), (2, 6, 3))
no_keys, no_values = torch.zeros(5, 4).double(), torch.zeros(5, 3).double()
out = relative_attention(q, k, v, no_keys, no_values)
assert_shape(out, (2, 5, 3), "the output is (batch, queries, d_v)")
assert_dtype(out, torch.float64, "the output has the dtype of q, k and v")
plain = torch.nn.functional.scaled_dot_product_attention(q, k, v)
assert_close(out, plain, "with tables full of zeros this is plain attention")
rows = draw((3, 3), seed=1)
equal = relative_attention(q[:, :3] * 0, k[:, :3], v[:, :3] * 0, no_keys[:3], rows)
assert_close(
    equal[0, 0],
    (rows[1] + rows[2] + rows[2]) / 3,
    "query 0, equal weights, values 0, K = 1: the mean of the value table's rows 1, 2 and 2",
)
pairs, identity = draw((3, 4), seed=8), torch.eye(3).double().expand(2, 3, 3)
shown = relative_attention(q[:, :3], k[:, :3] * 0, identity, pairs, no_values[:3])
assert_close(
    shown[0, 1],
    torch.softmax(pairs @ q[0, 1] / 2, dim=-1),
    "query 1 of 3, keys 0, values the identity, K = 1: softmax of q . (rows 0, 1, 2) / sqrt(4)",
)
visible_passed()
### BEGIN HIDDEN TESTS
for shape, far, seed in (((2, 3, 4, 7), 2, 2), ((3, 2, 6, 5), 0, 3), ((1, 2, 3, 4), 6, 4)):
    *lead, n, m = shape
    q, k, v = draw((*lead, n, 5), (*lead, m, 5), (*lead, m, 3), seed=seed)
    keys, values = draw((2 * far + 1, 5), (2 * far + 1, 3), seed=seed + 10)
    at = torch.tensor([[max(-far, min(far, j - i)) + far for j in range(m)] for i in range(n)])
    e = (q[..., :, None, :] * (k[..., None, :, :] + keys[at])).sum(-1) / math.sqrt(5)
    w = torch.softmax(e, -1)
    wanted = (w[..., None] * (v[..., None, :, :] + values[at])).sum(-2)
    assert_close(
        relative_attention(q, k, v, keys, values),
        wanted,
        "the output is the sum over j of w_ij (v_j + A_V), with scores q_i . (k_j + A_K) / sqrt(d_k)",
    )
q, k, v, keys, values = draw(
    (2, 4, 6), (2, 6, 3), (2, 3, 5), (5, 6), (5, 5), seed=5, dtype=torch.float32
)
turned = k.transpose(1, 2)  # (2, 3, 6), not contiguous
single = relative_attention(q, turned, v, keys, values)
assert_dtype(single, torch.float32, "the output has the dtype of q, k and v, float32 too")
assert_close(
    single,
    relative_attention(
        q.double(), turned.double(), v.double(), keys.double(), values.double()
    ).float(),
    "float32 inputs give the float64 result, rounded",
)
### END HIDDEN TESTS

# %% test="relative-attention-mask" points=1
q, k, v, keys, values = draw((2, 4, 5), (2, 4, 5), (2, 4, 3), (5, 5), (5, 3), seed=6)
only_self = torch.eye(4, dtype=torch.bool)
assert_close(
    relative_attention(q, k, v, keys, values, mask=only_self),
    v + values[2],
    "a query that may attend to itself only gets its own value plus the table's middle row",
)
visible_passed()
### BEGIN HIDDEN TESTS
many_q, many_k, many_v = (t[:, None].repeat(1, 3, 1, 1) for t in (3000 * q, 3000 * k, v))
out = relative_attention(many_q, many_k, many_v, keys, values, mask=only_self.repeat(2, 3, 1, 1))
assert_shape(out, (2, 3, 4, 3), "with heads and a mask (batch, heads, n, m) the axes stay these")
assert_close(
    out,
    (v + values[2])[:, None].repeat(1, 3, 1, 1),
    "a hidden key gets weight 0 however large its score is and however low those of the others are",
)
causal = torch.ones(4, 4, dtype=torch.bool).tril()
out = relative_attention(q, k, v, keys, values, mask=causal)
for t in range(1, 4):
    short = relative_attention(q[:, :t], k[:, :t], v[:, :t], keys, values, mask=causal[:t, :t])
    assert_close(
        out[:, :t], short, "under a causal mask the first outputs do not depend on later tokens"
    )
lengths = torch.tensor([2, 3])
valid = (torch.arange(4) < lengths[:, None])[:, None, :].expand(2, 4, 4)  # keys that are no padding
padded = relative_attention(q, k, v, keys, values, mask=valid)
for b, length in enumerate((2, 3)):
    alone = relative_attention(q[b, :length], k[b, :length], v[b, :length], keys, values)
    assert_close(
        padded[b, :length], alone, "with padded keys masked a sequence is treated as if alone"
    )
### END HIDDEN TESTS

# %% test="relative-attention-gradients" points=1
inputs = [t.requires_grad_() for t in draw((2, 3, 4), (2, 5, 4), (2, 5, 2), (3, 4), (3, 2), seed=7)]
copies = [t.detach().clone() for t in inputs]
relative_attention(*inputs).square().sum().backward()
for name, tensor in zip(("q", "k", "v", "key_table", "value_table"), inputs, strict=True):
    assert tensor.grad is not None and tensor.grad.abs().sum() > 0, f"{name} gets a gradient"
for tensor, copy in zip(inputs, copies, strict=True):
    assert_close(tensor, copy, "the inputs are left unchanged")
visible_passed()
### BEGIN HIDDEN TESTS
still = [t.detach() for t in inputs]
step, directions = 0.01, draw(*(t.shape for t in inputs), seed=8)


def moved_total(i: int, by: float) -> Tensor:
    """The sum of the squared outputs when input i has moved in its direction."""
    moved = [t + by * directions[j] if i == j else t for j, t in enumerate(still)]
    return relative_attention(*moved).square().sum().detach()


for i, claim in (
    (0, "the gradient of q should foretell what a small step of q does"),
    (1, "the gradient of k should foretell what a small step of k does"),
    (2, "the gradient of v should foretell what a small step of v does"),
    (3, "the gradient of key_table should foretell what a small step of key_table does"),
    (4, "the gradient of value_table should foretell what a small step of value_table does"),
):
    slope = (moved_total(i, step) - moved_total(i, -step)) / (2 * step)
    # a step is no derivative, hence the wider tolerance
    assert_close((inputs[i].grad * directions[i]).sum(), slope, claim, atol=0.05)
plain = [t.detach().clone() for t in inputs]
seen = torch.ones(3, 5, dtype=torch.bool).tril()
relative_attention(*plain, mask=seen)
for tensor, copy in zip(plain, copies, strict=True):
    assert_close(tensor, copy, "the inputs are left unchanged, with a mask as well")
assert bool((seen == torch.ones(3, 5, dtype=torch.bool).tril()).all()), "the mask is left unchanged"
### END HIDDEN TESTS

# %% [markdown]
# ## 2.6 Your table, looked at   (1 point, about 10 minutes, difficulty 1 of 5)
#
# **Objective.** Predict how alike two rows of the table are, then look.
#
# The cell below takes **your** table of 2.1, 64 positions and 32 columns, and draws the dot product of every row with
# every other. What will the number for the positions $i$ and $j$ be like? Predict, then run it.

# %%
LIKENESS = (
    "it depends on i and j",
    "it depends on how far apart they are, and falls all the way",
    "it depends on how far apart they are, and goes up and down",
    "it depends on how far apart they are, and tells which comes first",
)


# %% solution="predicted-likeness"
def predicted_likeness() -> str:
    """What you expect: one of LIKENESS."""
    ### BEGIN SOLUTION
    return "it depends on how far apart they are, and goes up and down"
    ### END SOLUTION


# %% test="predicted-likeness-made" points=1
likeness = predicted_likeness()
assert isinstance(likeness, str), "a prediction is one of the texts in LIKENESS"
assert likeness in LIKENESS, f"a prediction is one of LIKENESS\nYours is {likeness!r}."
visible_passed()

# %%
if watched():  # not while the notebook is graded
    import matplotlib.pyplot as plt

    from lab import plots

    prediction = predicted(predicted_likeness, LIKENESS)
    table = sinusoidal_encoding(64, 32, dtype=torch.float64)
    alike = table @ table.T
    spread = max(torch.diagonal(alike, k).std().item() for k in range(63))
    falls = bool((alike[0].diff() < 0).all())
    plots.use()
    _, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3.2), layout="constrained")
    plots.heatmap(alike, ax=left, title="row i times row j")
    right.plot(alike[0])
    right.set(xlabel="distance", ylabel="dot product", title="against the distance")
    compare(
        prediction,
        f"at one distance the numbers differ by {spread:.0e}; they "
        f"{'fall' if falls else 'do not fall'} all the way; row i times row j is row j times row i",
    )
    plt.show()

# %% [markdown]
# <details><summary>What happened</summary>
#
# A pair contributes $\sin a \sin b + \cos a \cos b = \cos(a - b)$: the angle between the two, and nothing else. So the sum
# depends on the distance alone. Each pair goes up and down with its own wavelength; near 0 all are at their top, so
# neighbours are most alike. A cosine has no sign for "before" and "after": it takes two different matrices for
# queries and keys, or a rotation of one of the two, to tell them apart.
#
# </details>

# %% [markdown]
# ## 2.7 Look back by angles alone   (2 points, about 30 minutes, difficulty 5 of 5)
#
# **Objective.** Make every token look exactly $k$ places back, with one and the same query for all. (This one is a
# bonus: nothing in the model needs it.)
#
# All tokens have the same query $q$ and the same key $\kappa$, vectors of $d$ numbers: words play no part. Before scores
# are taken both are rotated as in 2.4, with base 10000, each at the position of its token: the score of the token at
# $i$ for the one at $j$ is the dot product of $q$ turned to $i$ and $\kappa$ turned to $j$, divided by nothing. Token
# $i$ may attend to $j \le i$.
#
# Return $q$ and $\kappa$, in float64, such that after the softmax every token $i \ge k$ puts at least 0.99 of its weight on
# the token at $i - k$: for any $k$ from 0 to 20, any even $d$ from 16 to 128, and sequences of up to 64
# tokens. No search and no training is needed.
#
# <details><summary>Hint 1: a question</summary>
#
# With $q = \kappa$, at which distance is the score largest? (2.6 shows a curve of it.)
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Turn one of the two by a fixed number of positions, once and for all: that moves the peak. To which side? Then
# the peak has to stand out: multiply by what makes the scores' gap large.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - The peak is at $k$ places ahead, and so out of sight: the other sign.
# - The right token wins, but with too little weight: the scores' gap is too small.
# - A far token wins now and then: does every pair of columns take part?
#
# </details>


# %% solution="look-back"
def look_back(k: int, d: int) -> tuple[Float[Tensor, "d"], Float[Tensor, "d"]]:
    """A query and a key which, rotated at their positions, meet best k places apart."""
    ### BEGIN SOLUTION
    angles = k * 10000.0 ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)  # (d / 2,)
    key = torch.tensor([1.0, 0.0], dtype=torch.float64).repeat(d // 2)
    query = torch.stack([angles.cos(), -angles.sin()], dim=-1).flatten()  # turned back by k
    return 100.0 * query, key
    ### END SOLUTION


# %% test="look-back-weights" points=2
def looks(k: int, d: int, n: int) -> Float[Tensor, "n-k"]:
    """What weight each token from k on puts on the one k places before it."""
    query, key = look_back(k, d)
    assert_shape(query, (d,), "the query should have d numbers")
    assert_shape(key, (d,), "the key should have d numbers")
    frequencies = 10000.0 ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
    angles = torch.arange(n, dtype=torch.float64).unsqueeze(-1) * frequencies  # (n, d / 2)
    q, other = (
        torch.view_as_complex(one.double().reshape(-1, 2)) * torch.polar(angles * 0 + 1, angles)
        for one in (query, key)
    )
    scores = (q @ other.mH).real  # (n, n)
    later = torch.ones(n, n, dtype=torch.bool).triu(1)
    return scores.masked_fill(later, -math.inf).softmax(-1).diagonal(-k)


least = looks(2, 32, 20).min().item()
assert least >= 0.99, (
    "k 2, d 32: each of 20 tokens should put at least 0.99 on the token two places before"
    f"\nYours puts {least:.3f} there, in one case."
)
visible_passed()
### BEGIN HIDDEN TESTS
for one in look_back(3, 16):
    assert_dtype(one, torch.float64, "query and key should be float64")
for k, d, n in ((0, 16, 64), (1, 16, 64), (20, 16, 64), (7, 128, 64), (20, 64, 40)):
    assert looks(k, d, n).min() >= 0.99, (
        "for any k, d and n each token should put at least 0.99 on the token k places before"
        f"\nHere k is {k}, d {d} and n {n}."
    )
### END HIDDEN TESTS

# %% [markdown]
# ## 2.8 What can be told without positions   (2 points, about 15 minutes, difficulty 3 of 5)
#
# **Objective.** Say what order means to attention without positions, by what it can and cannot do.
#
# Take two layers of self-attention with **no** positional encoding at all. The answer is read off the mean of the last
# layer's outputs. In four to eight sentences:
#
# 1. No mask. Which of these three tasks can it learn, which not, and why: (a) does the word *plant* occur? (b)
#    is it *herbivores eat plants* or *plants eat herbivores*? (c) do two words occur equally often?
# 2. Now with a causal mask, and a first token that is always `<bos>`. What can the first layer compute at a token that
#    depends on its place, although it sees no position? Which of the three tasks does that change?
#
# <details><summary>Hint 1: a question</summary>
#
# Exchange two tokens of the input. What happens to the outputs, and what to their mean?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# For 2: let all scores be equal. How much weight does `<bos>` get from the third token, how much from the
# tenth?
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - All three tasks seem possible: try (b) with the words numbered and the sum written out.
# - Unsure about (c): what does a head with equal scores return, if its values say which word it is?
#
# </details>

# %% [markdown] manual="order-blind" points=2
# ### BEGIN SOLUTION
# 1. Without a mask the outputs of a reordered input are the same vectors in the new order (projections act on rows,
#    scores are reordered in rows and columns, each softmax sums over all keys in whatever order), layer after layer;
#    their mean is the same. So (b) cannot be learned: both sentences hold the same words. (a) can: a head whose scores are large
#    for *plant*, with a value that marks it. (c) can: with equal scores a head gives the mean of the values, so the share of
#    each word; whether two shares are equal can be read from their difference.
#
# 2. With a causal mask the mask stays with the places. With equal scores the token at place $i$ gives `<bos>` the weight $1 /
#    (i + 1)$: a value that marks `<bos>` comes out as a number that falls with the place, which the second layer can use as
#    a position. (Or: each token sees a different set, so *eat* sees *herbivores* in one sentence and *plants* in the other.) So (b)
#    can be learned; (a) and (c) could be before.
#
# Marking: 1 point for 1 (half if one of the three is wrong or a reason is missing); 1 point for 2: what depends on the place
# (half) and that it is (b) that changes (half).
# ### END SOLUTION

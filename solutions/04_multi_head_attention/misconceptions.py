"""Wrong answers to the exercise on multi-head attention, as students write them, and what shows."""

import torch
from torch import nn

from lab.answers import misconception
from lab.blocks import scaled_dot_product_attention

# 4.1 Multi-head attention: making the layer


@misconception(
    "multi-head",
    target="MultiHeadAttention.__init__",
    id="MHA12",
    fails=["multi-head-init"],
    read="04_multi_head_attention#project-then-split",
)
def no_check(self, d_model, num_heads):
    """Your layer accepts 10 columns for 4 heads and fails much later, or drops columns; raise a
    ValueError that gives both numbers.
    """
    nn.Module.__init__(self)
    self.num_heads = num_heads
    self.w_q, self.w_k, self.w_v, self.w_o = (
        nn.Linear(d_model, d_model, bias=False) for _ in range(4)
    )


@misconception(
    "multi-head",
    target="MultiHeadAttention.__init__",
    id="MHA20",
    fails=["multi-head-init"],
    read="04_multi_head_attention#project-then-split",
)
def checked_with_assert(self, d_model, num_heads):
    """Your check is an assert without the numbers; asserts can be switched off, so raise a
    ValueError and say which two numbers do not fit.
    """
    nn.Module.__init__(self)
    assert d_model % num_heads == 0
    self.num_heads = num_heads
    self.w_q, self.w_k, self.w_v, self.w_o = (
        nn.Linear(d_model, d_model, bias=False) for _ in range(4)
    )


@misconception(
    "multi-head",
    target="MultiHeadAttention.__init__",
    id="MHA10",
    fails=["multi-head-init", "multi-head-self"],
    read="04_multi_head_attention#project-then-split",
)
def one_map_three_names(self, d_model, num_heads):
    """Your queries, keys and values share one linear map under three names; each needs its own, or
    what a token asks for is what it offers.
    """
    nn.Module.__init__(self)
    if d_model % num_heads:
        raise ValueError(f"d_model ({d_model}) must be divisible by num_heads ({num_heads})")
    self.num_heads = num_heads
    shared = nn.Linear(d_model, d_model, bias=False)
    self.w_q = self.w_k = self.w_v = shared
    self.w_o = nn.Linear(d_model, d_model, bias=False)


@misconception(
    "multi-head",
    target="MultiHeadAttention.__init__",
    id="MHA21",
    fails=["multi-head-init"],
    read="04_multi_head_attention#project-then-split",
)
def copies_of_one_map(self, d_model, num_heads):
    """Your four maps are copies and start with the same numbers, so queries and keys are equal at
    first and scores symmetric; make each map anew.
    """
    nn.Module.__init__(self)
    if d_model % num_heads:
        raise ValueError(f"d_model ({d_model}) must be divisible by num_heads ({num_heads})")
    self.num_heads = num_heads
    maps = [nn.Linear(d_model, d_model, bias=False) for _ in range(4)]
    for other in maps[1:]:
        other.load_state_dict(maps[0].state_dict())
    self.w_q, self.w_k, self.w_v, self.w_o = maps


@misconception(
    "multi-head",
    target="MultiHeadAttention.__init__",
    id="MHA22",
    fails=["multi-head-init"],
    read="04_multi_head_attention#project-then-split",
)
def with_biases(self, d_model, num_heads):
    """Your linear maps have biases, which nn.Linear adds by default; the paper's projections have
    none.
    """
    nn.Module.__init__(self)
    if d_model % num_heads:
        raise ValueError(f"d_model ({d_model}) must be divisible by num_heads ({num_heads})")
    self.num_heads = num_heads
    self.w_q = nn.Linear(d_model, d_model)
    self.w_k = nn.Linear(d_model, d_model)
    self.w_v = nn.Linear(d_model, d_model)
    self.w_o = nn.Linear(d_model, d_model)


@misconception(
    "multi-head",
    id="MHA11",
    fails=[
        "multi-head-init",
        "multi-head-split",
        "multi-head-self",
        "multi-head-mask",
        "multi-head-cross",
    ],
    read="04_multi_head_attention#project-then-split",
)
class EveryHeadAsWideAsTheModel(nn.Module):
    """Each of your heads is d_model wide, so the layer has H times the numbers to learn; the heads
    share the d_model columns, d_model / num_heads each.
    """

    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model % num_heads:
            raise ValueError(f"d_model ({d_model}) must be divisible by num_heads ({num_heads})")
        self.num_heads = num_heads
        self.d_model = d_model
        self.w_q = nn.Linear(d_model, num_heads * d_model, bias=False)
        self.w_k = nn.Linear(d_model, num_heads * d_model, bias=False)
        self.w_v = nn.Linear(d_model, num_heads * d_model, bias=False)
        self.w_o = nn.Linear(num_heads * d_model, d_model, bias=False)

    def split(self, x):
        return x.reshape(x.shape[0], x.shape[1], self.num_heads, self.d_model).transpose(1, 2)

    def merge(self, x):
        return x.transpose(1, 2).flatten(2)

    def forward(self, query, key, value, mask=None):
        q, k, v = (
            self.split(self.w_q(query)),
            self.split(self.w_k(key)),
            self.split(self.w_v(value)),
        )
        if mask is not None:
            mask = mask.unsqueeze(-3)
        heads, weights = scaled_dot_product_attention(q, k, v, mask)
        return self.w_o(self.merge(heads)), weights


@misconception(
    "multi-head",
    id="MHA9",
    fails=["multi-head-init", "multi-head-self", "multi-head-mask", "multi-head-cross"],
    read="04_multi_head_attention#what-is-split",
)
class InputSplitFirst(nn.Module):
    """You cut the input into slices and project each slice; a head then never sees the other
    columns. Project all of d_model first, and split the result.
    """

    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model % num_heads:
            raise ValueError(f"d_model ({d_model}) must be divisible by num_heads ({num_heads})")
        self.num_heads = num_heads
        d_k = d_model // num_heads
        self.w_q = nn.Linear(d_k, d_k, bias=False)
        self.w_k = nn.Linear(d_k, d_k, bias=False)
        self.w_v = nn.Linear(d_k, d_k, bias=False)
        self.w_o = nn.Linear(d_model, d_model, bias=False)

    def split(self, x):
        return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def merge(self, x):
        return x.transpose(1, 2).flatten(-2)

    def forward(self, query, key, value, mask=None):
        q, k, v = (
            self.w_q(self.split(query)),
            self.w_k(self.split(key)),
            self.w_v(self.split(value)),
        )
        if mask is not None:
            mask = mask.unsqueeze(-3)
        heads, weights = scaled_dot_product_attention(q, k, v, mask)
        return self.w_o(self.merge(heads)), weights


# 4.1 Multi-head attention: split and merge


@misconception(
    "multi-head",
    target="MultiHeadAttention.split",
    id="MHA1",
    fails=["multi-head-split", "multi-head-self", "multi-head-mask", "multi-head-cross"],
    read="04_multi_head_attention#reshape-or-transpose",
)
def heads_by_reshape_alone(self, x):
    """You reshape straight to (B, H, n, d_k), so a head's rows are pieces of several tokens; cut
    the last axis first, then exchange the axes of heads and tokens.
    """
    batch, n, d_model = x.shape
    return x.reshape(batch, self.num_heads, n, d_model // self.num_heads)


@misconception(
    "multi-head",
    target="MultiHeadAttention.split",
    id="MHA23",
    fails=["multi-head-split", "multi-head-self", "multi-head-cross"],
    read="04_multi_head_attention#reshape-or-transpose",
)
def every_third_column(self, x):
    """You deal the columns out in turn (head 0 gets columns 0, H, 2H, ...); each head should get
    d_k neighbouring columns.
    """
    batch, n, d_model = x.shape
    return x.reshape(batch, n, d_model // self.num_heads, self.num_heads).permute(0, 3, 1, 2)


@misconception(
    "multi-head",
    target="MultiHeadAttention.split",
    id="MHA14b",
    fails=["multi-head-split"],
    read="04_multi_head_attention#reshape-or-transpose",
)
def view_of_batch_and_tokens(self, x):
    """Your split joins sentences and tokens with view, which fails on a tensor whose axes have been
    exchanged before; reshape or unflatten copies where it must.
    """
    batch, n, d_model = x.shape
    cut = x.view(batch * n, self.num_heads, d_model // self.num_heads)
    return cut.reshape(batch, n, self.num_heads, -1).transpose(1, 2)


@misconception(
    "multi-head",
    target="MultiHeadAttention.split",
    id="MHA24",
    fails=["multi-head-split", "multi-head-self", "multi-head-mask", "multi-head-cross"],
    read="04_multi_head_attention#reshape-or-transpose",
)
def heads_after_tokens(self, x):
    """Your split leaves the heads behind the tokens, (B, n, H, d_k); attention mixes the axis
    before the last one, so heads attend to heads within one token.
    """
    return x.unflatten(-1, (self.num_heads, -1))


@misconception(
    "multi-head",
    target="MultiHeadAttention.merge",
    id="MHA2",
    fails=["multi-head-merge", "multi-head-self", "multi-head-mask", "multi-head-cross"],
    read="04_multi_head_attention#reshape-or-transpose",
)
def merged_without_exchange(self, x):
    """You reshape back without exchanging heads and tokens, so a token's row is filled with one
    head's answers for several tokens.
    """
    batch, heads, n, d_k = x.shape
    return x.reshape(batch, n, heads * d_k)


@misconception(
    "multi-head",
    target="MultiHeadAttention.merge",
    id="MHA14",
    fails=["multi-head-merge", "multi-head-self", "multi-head-mask", "multi-head-cross"],
    read="04_multi_head_attention#reshape-or-transpose",
)
def view_after_exchange(self, x):
    """You call view after exchanging two axes, which is impossible without a copy; reshape, flatten
    or contiguous make that copy.
    """
    return x.transpose(1, 2).view(x.shape[0], x.shape[2], -1)


@misconception(
    "multi-head",
    target="MultiHeadAttention.merge",
    id="MHA3",
    fails=["multi-head-merge", "multi-head-self", "multi-head-cross"],
    read="04_multi_head_attention#reshape-or-transpose",
)
def columns_before_heads(self, x):
    """Your merge puts the axes in the order tokens, columns, heads, so the heads' columns are
    shuffled into each other; each head's d_k columns belong together.
    """
    return x.permute(0, 2, 3, 1).flatten(-2)


@misconception(
    "multi-head",
    target="MultiHeadAttention.merge",
    id="MHA16",
    fails=["multi-head-merge", "multi-head-self", "multi-head-mask", "multi-head-cross"],
    read="04_multi_head_attention#side-by-side",
)
def stacked_on_top(self, x):
    """You stack the heads on top of each other, (B, H n, d_k); w_o needs them side by side, d_model
    columns for each token.
    """
    return torch.cat(list(x.unbind(1)), dim=1)


@misconception(
    "multi-head",
    target="MultiHeadAttention.merge",
    id="MHA8",
    fails=["multi-head-merge", "multi-head-self", "multi-head-mask", "multi-head-cross"],
    read="04_multi_head_attention#side-by-side",
)
def averaged_heads(self, x):
    """You average the heads, which is one average again; each head should keep its own columns."""
    return x.mean(dim=1)


# 4.1 Multi-head attention: forward


@misconception(
    "multi-head",
    target="MultiHeadAttention.forward",
    id="MHA6",
    fails=["multi-head-self", "multi-head-cross"],
    read="04_multi_head_attention#scale-in-the-heads",
)
def scaled_by_the_model(self, query, key, value, mask=None):
    """You divide by sqrt(d_model); a head's dot product has d_k terms, so its scale is sqrt(d_k),
    and your weights are too even.
    """
    q, k = self.split(self.w_q(query)), self.split(self.w_k(key))
    scores = q @ k.mT / query.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask.unsqueeze(-3), torch.finfo(scores.dtype).min)
    weights = torch.softmax(scores, dim=-1)
    if mask is not None:
        weights = weights.masked_fill(~mask.unsqueeze(-3), 0.0)
    return self.w_o(self.merge(weights @ self.split(self.w_v(value)))), weights


@misconception(
    "multi-head",
    target="MultiHeadAttention.forward",
    id="MHA7",
    fails=["multi-head-self", "multi-head-cross"],
    read="04_multi_head_attention#side-by-side",
)
def no_output_projection(self, query, key, value, mask=None):
    """Your output is the heads side by side; the last step, w_o, is missing, so the heads never
    meet.
    """
    q, k, v = self.split(self.w_q(query)), self.split(self.w_k(key)), self.split(self.w_v(value))
    if mask is not None:
        mask = mask.unsqueeze(-3)
    heads, weights = scaled_dot_product_attention(q, k, v, mask)
    return self.merge(heads), weights


@misconception(
    "multi-head",
    target="MultiHeadAttention.forward",
    id="MHA5",
    fails=["multi-head-mask", "multi-head-cross"],
    read="04_multi_head_attention#mask-and-heads",
)
def mask_without_heads(self, query, key, value, mask=None):
    """You hand the mask on as it is: its batch axis lines up with the heads. It needs an axis of
    length 1 for the heads, before its last two.
    """
    q, k, v = self.split(self.w_q(query)), self.split(self.w_k(key)), self.split(self.w_v(value))
    heads, weights = scaled_dot_product_attention(q, k, v, mask)
    return self.w_o(self.merge(heads)), weights


@misconception(
    "multi-head",
    target="MultiHeadAttention.forward",
    id="MHA4",
    fails=["multi-head-mask", "multi-head-cross"],
    read="04_multi_head_attention#mask-and-heads",
)
def masks_in_the_wrong_order(self, query, key, value, mask=None):
    """You put sentences and heads on one axis and repeat the mask in another order (all sentences,
    then again), so heads get other sentences' masks.
    """
    q, k, v = self.split(self.w_q(query)), self.split(self.w_k(key)), self.split(self.w_v(value))
    if mask is not None:
        batch, n, m = len(query), query.shape[1], key.shape[1]
        mask = mask.expand(batch, n, m).repeat(self.num_heads, 1, 1)
    heads, weights = scaled_dot_product_attention(
        q.flatten(0, 1), k.flatten(0, 1), v.flatten(0, 1), mask
    )
    shape = (len(query), self.num_heads)
    return self.w_o(self.merge(heads.unflatten(0, shape))), weights.unflatten(0, shape)


@misconception(
    "multi-head",
    target="MultiHeadAttention.forward",
    id="MHA25",
    fails=["multi-head-mask", "multi-head-cross"],
    read="04_multi_head_attention#mask-and-heads",
)
def mask_not_handed_on(self, query, key, value, mask=None):
    """Your layer takes a mask and does not use it, so tokens see the padding and the future."""
    q, k, v = self.split(self.w_q(query)), self.split(self.w_k(key)), self.split(self.w_v(value))
    heads, weights = scaled_dot_product_attention(q, k, v)
    return self.w_o(self.merge(heads)), weights


@misconception(
    "multi-head",
    target="MultiHeadAttention.forward",
    id="MHA26",
    fails=["multi-head-mask"],
    read="03_attention#fully-masked-row",
)
def empty_sentence_gives_nan(self, query, key, value, mask=None):
    """You fill hidden scores with minus infinity yourself; an empty sentence then becomes NaN. The
    attention you are given takes care of that.
    """
    q, k = self.split(self.w_q(query)), self.split(self.w_k(key))
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask.unsqueeze(-3), float("-inf"))
    weights = torch.softmax(scores, dim=-1)
    return self.w_o(self.merge(weights @ self.split(self.w_v(value)))), weights


@misconception(
    "multi-head",
    target="MultiHeadAttention.forward",
    id="MHA13",
    fails=["multi-head-cross"],
    read="04_multi_head_attention#multi-head-cross",
)
def keys_and_values_from_the_query(self, query, key, value, mask=None):
    """You project keys and values from the query; in cross-attention they come from the other
    sequence, which your output then ignores.
    """
    q, k, v = self.split(self.w_q(query)), self.split(self.w_k(query)), self.split(self.w_v(query))
    if mask is not None:
        mask = mask.unsqueeze(-3)
    heads, weights = scaled_dot_product_attention(q, k, v, mask)
    return self.w_o(self.merge(heads)), weights


@misconception(
    "multi-head",
    target="MultiHeadAttention.forward",
    id="MHA27",
    fails=["multi-head-cross"],
    read="04_multi_head_attention#multi-head-cross",
)
def values_from_the_key(self, query, key, value, mask=None):
    """You project the values from `key` and never use `value`; they are the same tensor in most
    calls, but not in all.
    """
    q, k, v = self.split(self.w_q(query)), self.split(self.w_k(key)), self.split(self.w_v(key))
    if mask is not None:
        mask = mask.unsqueeze(-3)
    heads, weights = scaled_dot_product_attention(q, k, v, mask)
    return self.w_o(self.merge(heads)), weights


@misconception(
    "multi-head",
    target="MultiHeadAttention.forward",
    id="MHA28",
    fails=["multi-head-self", "multi-head-mask", "multi-head-cross"],
    read="04_multi_head_attention#who-did-what-to-whom",
)
def weights_averaged_over_heads(self, query, key, value, mask=None):
    """You return the mean of the heads' weights, (B, n, m); every head's own, (B, H, n, m), were
    asked for.
    """
    q, k, v = self.split(self.w_q(query)), self.split(self.w_k(key)), self.split(self.w_v(value))
    if mask is not None:
        mask = mask.unsqueeze(-3)
    heads, weights = scaled_dot_product_attention(q, k, v, mask)
    return self.w_o(self.merge(heads)), weights.mean(dim=1)


@misconception(
    "multi-head",
    target="MultiHeadAttention.forward",
    id="MHA29",
    fails=["multi-head-self", "multi-head-mask", "multi-head-cross"],
    read="04_multi_head_attention#project-then-split",
)
def one_wide_head(self, query, key, value, mask=None):
    """You attend before you split, so there is one set of weights, (B, n, m), for all heads; split
    queries, keys and values first.
    """
    heads, weights = scaled_dot_product_attention(
        self.w_q(query), self.w_k(key), self.w_v(value), mask
    )
    return self.w_o(heads), weights


# 4.2 A sum over heads


@misconception(
    "heads-as-sum",
    target="value_output_maps",
    id="HSU1",
    fails=["heads-as-sum-maps"],
    read="04_multi_head_attention#sum-over-heads",
)
def rows_of_both(w_v, w_o, num_heads):
    """You cut both matrices along their rows; a head's values come from its columns of w_v, and
    meet its rows of w_o.
    """
    blocks = zip(w_v.chunk(num_heads, 0), w_o.chunk(num_heads, 0), strict=True)
    return torch.stack([value.T @ output for value, output in blocks])


@misconception(
    "heads-as-sum",
    target="value_output_maps",
    id="HSU2",
    fails=["heads-as-sum-maps"],
    read="04_multi_head_attention#sum-over-heads",
)
def small_maps(w_v, w_o, num_heads):
    """You multiply rows of w_o by columns of w_v, which gives (d_k, d_k); values come first, then
    w_o: (D, d_k) times (d_k, D).
    """
    rows, columns = w_o.chunk(num_heads, 0), w_v.chunk(num_heads, 1)
    return torch.stack([row @ column for row, column in zip(rows, columns, strict=True)])


@misconception(
    "heads-as-sum",
    target="value_output_maps",
    id="HSU3",
    fails=["heads-as-sum-maps"],
    read="04_multi_head_attention#sum-over-heads",
)
def the_whole_product(w_v, w_o, num_heads):
    """Each of your maps is the whole w_v w_o; that is the sum over all heads, and a head has its
    own block of rank d_k.
    """
    return (w_v @ w_o).expand(num_heads, -1, -1)


@misconception(
    "heads-as-sum",
    target="value_output_maps",
    id="HSU4",
    fails=["heads-as-sum-maps"],
    read="04_multi_head_attention#sum-over-heads",
)
def transposed_like_linear(w_v, w_o, num_heads):
    """You transpose the matrices as nn.Linear keeps them; here they act on rows, x @ w_v, so the
    columns of w_v and the rows of w_o belong to heads as they stand.
    """
    columns, rows = w_v.T.chunk(num_heads, 1), w_o.T.chunk(num_heads, 0)
    return torch.stack([column @ row for column, row in zip(columns, rows, strict=True)])


@misconception(
    "heads-as-sum",
    target="head_contributions",
    id="HSU5",
    fails=["heads-as-sum-contributions"],
    read="04_multi_head_attention#sum-over-heads",
)
def no_axis_for_the_heads(x, weights, maps):
    """Your x lacks an axis for the heads, so sentences line up with heads; it should be (B, 1, m,
    D) next to weights of shape (B, H, n, m).
    """
    return weights @ x @ maps


@misconception(
    "heads-as-sum",
    target="head_contributions",
    id="HSU6",
    fails=["heads-as-sum-contributions"],
    read="04_multi_head_attention#sum-over-heads",
)
def summed_at_once(x, weights, maps):
    """You return the sum over heads, (B, n, D); each head's own contribution was asked for."""
    return (weights @ x.unsqueeze(1) @ maps).sum(dim=1)


@misconception(
    "heads-as-sum",
    target="head_contributions",
    id="HSU7",
    fails=["heads-as-sum-contributions"],
    read="04_multi_head_attention#sum-over-heads",
)
def every_map_for_every_head(x, weights, maps):
    """You give every head the sum of all maps; head h goes with map h only."""
    return weights @ x.unsqueeze(1) @ maps.sum(dim=0)


# 4.3 What it costs


@misconception(
    "attention-cost",
    target="attention_cost",
    id="COS1",
    fails=["attention-cost-values"],
    read="04_multi_head_attention#multi-head-cost",
)
def four_projections_of_the_queries(n, m, d_model, num_heads):
    """You count all four projections with n rows; keys and values have m rows."""
    return 4 * n * d_model**2, n * m * d_model, n * m * d_model


@misconception(
    "attention-cost",
    target="attention_cost",
    id="COS2",
    fails=["attention-cost-values"],
    read="04_multi_head_attention#multi-head-cost",
)
def full_width_in_every_head(n, m, d_model, num_heads):
    """You count H heads of width d_model; each head is only d_model / H wide, so H drops out."""
    mixed = num_heads * n * m * d_model
    return (2 * n + 2 * m) * d_model**2, mixed, mixed


@misconception(
    "attention-cost",
    target="attention_cost",
    id="COS3",
    fails=["attention-cost-values"],
    read="04_multi_head_attention#multi-head-cost",
)
def one_head_only(n, m, d_model, num_heads):
    """You count the scores and the mixing of one head; all heads together do H times that."""
    d_k = d_model // num_heads
    return (2 * n + 2 * m) * d_model**2, n * m * d_k, n * m * d_k


@misconception(
    "attention-cost",
    target="attention_cost",
    id="COS4",
    fails=["attention-cost-values"],
    read="04_multi_head_attention#multi-head-cost",
)
def three_projections(n, m, d_model, num_heads):
    """You count three projections; the output projection, with n rows, is the fourth."""
    return (n + 2 * m) * d_model**2, n * m * d_model, n * m * d_model


@misconception(
    "attention-cost",
    target="attention_cost",
    id="COS11",
    fails=["attention-cost-values"],
    read="04_multi_head_attention#multi-head-cost",
)
def costs_as_floats(n, m, d_model, num_heads):
    """You divide with /, which gives floats; costs are whole numbers, and // divides them."""
    d_k = d_model / num_heads
    products = num_heads * n * m * d_k
    return (2 * n + 2 * m) * d_model**2, products, products


@misconception(
    "attention-cost",
    target="even_length",
    id="COS5",
    fails=["attention-cost-even-length"],
    read="04_multi_head_attention#multi-head-cost",
)
def one_product_against_one(d_model):
    """You compare N N D with N D D, which gives D; there are two products with N N D (scores and
    mixing) and four with N D D.
    """
    return d_model


@misconception(
    "attention-cost",
    target="even_length",
    id="COS6",
    fails=["attention-cost-even-length"],
    read="04_multi_head_attention#multi-head-cost",
)
def scores_alone(d_model):
    """You compare the scores alone with the projections; mixing costs as much again, so the even
    length is half of yours.
    """
    return 4 * d_model


# 4.4 Four descriptions, four layers


@misconception(
    "parameter-counts",
    id="PAR1",
    fails=["parameter-counts-values"],
    read="04_multi_head_attention#what-is-split",
)
def full_width_in_the_paper(d_model, num_heads):
    """Your paper's heads are d_model wide each; they are d_k = d_model / num_heads wide, so the
    count does not depend on the number of heads.
    """
    d_k, output = d_model // num_heads, d_model**2
    return {
        "paper": num_heads * 3 * d_model * d_model + output,
        "slices": num_heads * 3 * d_k * d_k + output,
        "shared": 3 * d_model * d_k + num_heads * 3 * d_k * d_k + output,
        "full": num_heads * (2 * d_model * d_k + d_model**2),
    }


@misconception(
    "parameter-counts",
    id="PAR2",
    fails=["parameter-counts-values"],
    read="04_multi_head_attention#what-is-split",
)
def one_set_for_all_slices(d_model, num_heads):
    """You count the small (d_k, d_k) matrices once; every head has three of its own."""
    d_k, output = d_model // num_heads, d_model**2
    return {
        "paper": num_heads * 3 * d_model * d_k + output,
        "slices": 3 * d_k * d_k + output,
        "shared": 3 * d_model * d_k + 3 * d_k * d_k + output,
        "full": num_heads * (2 * d_model * d_k + d_model**2),
    }


@misconception(
    "parameter-counts",
    id="PAR3",
    fails=["parameter-counts-values"],
    read="04_multi_head_attention#sum-over-heads",
)
def low_rank_value_maps(d_model, num_heads):
    """You count the full layer as if its value maps had rank d_k; each of them is a whole (D, D)
    matrix, so the count grows with the number of heads.
    """
    d_k, output = d_model // num_heads, d_model**2
    return {
        "paper": num_heads * 3 * d_model * d_k + output,
        "slices": num_heads * 3 * d_k * d_k + output,
        "shared": 3 * d_model * d_k + num_heads * 3 * d_k * d_k + output,
        "full": num_heads * (2 * d_model * d_k + 2 * d_model * d_k),
    }


@misconception(
    "parameter-counts",
    id="PAR4",
    fails=["parameter-counts-values"],
    read="04_multi_head_attention#side-by-side",
)
def output_projection_forgotten(d_model, num_heads):
    """You leave out w_o, which takes the heads side by side back to d_model columns."""
    d_k = d_model // num_heads
    return {
        "paper": num_heads * 3 * d_model * d_k,
        "slices": num_heads * 3 * d_k * d_k,
        "shared": 3 * d_model * d_k + num_heads * 3 * d_k * d_k,
        "full": num_heads * (2 * d_model * d_k + d_model**2),
    }


@misconception(
    "parameter-counts",
    id="PAR5",
    fails=["parameter-counts-values"],
    read="04_multi_head_attention#what-is-split",
)
def counts_as_floats(d_model, num_heads):
    """You divide with /, which gives floats; counts are whole numbers, and // divides them."""
    d_k, output = d_model / num_heads, d_model**2
    return {
        "paper": num_heads * 3 * d_model * d_k + output,
        "slices": num_heads * 3 * d_k * d_k + output,
        "shared": 3 * d_model * d_k + num_heads * 3 * d_k * d_k + output,
        "full": num_heads * (2 * d_model * d_k + d_model**2),
    }

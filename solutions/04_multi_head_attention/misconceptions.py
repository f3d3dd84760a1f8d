"""Wrong answers to the exercise on multi-head attention, as students write them, and what shows."""

import torch
from torch import nn

from lab.answers import misconception
from lab.blocks import scaled_dot_product_attention

# 4.1 Split and merge


@misconception(
    "split-heads",
    target="split_heads",
    id="MHA1",
    fails=["split-heads-split"],
    read="04_multi_head_attention#reshape-or-transpose",
)
def heads_by_reshape_alone(x, num_heads):
    """You reshape straight to (B, H, n, d_k), so a head's rows are pieces of several tokens; cut
    the last axis first, then exchange the axes of heads and tokens.
    """
    batch, n, d_model = x.shape
    return x.reshape(batch, num_heads, n, d_model // num_heads)


@misconception(
    "split-heads",
    target="split_heads",
    id="MHA23",
    fails=["split-heads-split"],
    read="04_multi_head_attention#reshape-or-transpose",
)
def every_third_column(x, num_heads):
    """You deal the columns out in turn (head 0 gets columns 0, H, 2H, ...); each head should get
    d_k neighbouring columns.
    """
    batch, n, d_model = x.shape
    return x.reshape(batch, n, d_model // num_heads, num_heads).permute(0, 3, 1, 2)


@misconception(
    "split-heads",
    target="split_heads",
    id="MHA14b",
    fails=["split-heads-split"],
    read="04_multi_head_attention#reshape-or-transpose",
)
def view_of_batch_and_tokens(x, num_heads):
    """Your split joins sentences and tokens with view, which fails on a tensor whose axes have been
    exchanged before; reshape or unflatten copies where it must.
    """
    batch, n, d_model = x.shape
    cut = x.view(batch * n, num_heads, d_model // num_heads)
    return cut.reshape(batch, n, num_heads, -1).transpose(1, 2)


@misconception(
    "split-heads",
    target="split_heads",
    id="MHA24",
    fails=["split-heads-split"],
    read="04_multi_head_attention#reshape-or-transpose",
)
def heads_after_tokens(x, num_heads):
    """Your split leaves the heads behind the tokens, (B, n, H, d_k); attention mixes the axis
    before the last one, so heads attend to heads within one token.
    """
    return x.unflatten(-1, (num_heads, -1))


@misconception(
    "split-heads",
    target="merge_heads",
    id="MHA2",
    fails=["split-heads-merge"],
    read="04_multi_head_attention#reshape-or-transpose",
)
def merged_without_exchange(x):
    """You reshape back without exchanging heads and tokens, so a token's row is filled with one
    head's answers for several tokens.
    """
    batch, heads, n, d_k = x.shape
    return x.reshape(batch, n, heads * d_k)


@misconception(
    "split-heads",
    target="merge_heads",
    id="MHA14",
    fails=["split-heads-merge"],
    read="04_multi_head_attention#reshape-or-transpose",
)
def view_after_exchange(x):
    """You call view after exchanging two axes, which is impossible without a copy; reshape, flatten
    or contiguous make that copy.
    """
    return x.transpose(1, 2).view(x.shape[0], x.shape[2], -1)


@misconception(
    "split-heads",
    target="merge_heads",
    id="MHA3",
    fails=["split-heads-merge"],
    read="04_multi_head_attention#reshape-or-transpose",
)
def columns_before_heads(x):
    """Your merge puts the axes in the order tokens, columns, heads, so the heads' columns are
    shuffled into each other; each head's d_k columns belong together.
    """
    return x.permute(0, 2, 3, 1).flatten(-2)


@misconception(
    "split-heads",
    target="merge_heads",
    id="MHA16",
    fails=["split-heads-merge"],
    read="04_multi_head_attention#side-by-side",
)
def stacked_on_top(x):
    """You stack the heads on top of each other, (B, H n, d_k); w_o needs them side by side, d_model
    columns for each token.
    """
    return torch.cat(list(x.unbind(1)), dim=1)


@misconception(
    "split-heads",
    target="merge_heads",
    id="MHA8",
    fails=["split-heads-merge"],
    read="04_multi_head_attention#side-by-side",
)
def averaged_heads(x):
    """You average the heads, which is one average again; each head should keep its own columns."""
    return x.mean(dim=1)


# 4.2 Multi-head attention: making the layer


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

    def forward(self, query, key, value, mask=None):
        q, k, v = (
            self.w_q(query).unflatten(-1, (self.num_heads, -1)).transpose(1, 2),
            self.w_k(key).unflatten(-1, (self.num_heads, -1)).transpose(1, 2),
            self.w_v(value).unflatten(-1, (self.num_heads, -1)).transpose(1, 2),
        )
        if mask is not None:
            mask = mask.unsqueeze(-3)
        heads, weights = scaled_dot_product_attention(q, k, v, mask)
        return self.w_o(heads.transpose(1, 2).flatten(2)), weights


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

    def forward(self, query, key, value, mask=None):
        q, k, v = (
            matrix(x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2))
            for matrix, x in ((self.w_q, query), (self.w_k, key), (self.w_v, value))
        )
        if mask is not None:
            mask = mask.unsqueeze(-3)
        heads, weights = scaled_dot_product_attention(q, k, v, mask)
        return self.w_o(heads.transpose(1, 2).flatten(2)), weights


# 4.2 Multi-head attention: split, merge and forward


@misconception(
    "multi-head",
    target="MultiHeadAttention.split",
    id="MHA1a",
    fails=["multi-head-init", "multi-head-self", "multi-head-mask", "multi-head-cross"],
    read="04_multi_head_attention#reshape-or-transpose",
)
def method_that_reshapes_alone(self, x):
    """Your method split reshapes straight to (B, H, n, d_k), so a head's rows are pieces of several
    tokens; cut the columns first, then exchange heads and tokens.
    """
    return x.reshape(len(x), self.num_heads, x.shape[1], -1)


@misconception(
    "multi-head",
    target="MultiHeadAttention.merge",
    id="MHA2a",
    fails=["multi-head-init", "multi-head-self", "multi-head-mask", "multi-head-cross"],
    read="04_multi_head_attention#reshape-or-transpose",
)
def method_that_reshapes_back(self, x):
    """Your method merge reshapes without exchanging heads and tokens, so a token's row is filled
    with one head's answers for several tokens.
    """
    return x.reshape(len(x), x.shape[2], -1)


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
    q, k = (
        self.w_q(query).unflatten(-1, (self.num_heads, -1)).transpose(1, 2),
        self.w_k(key).unflatten(-1, (self.num_heads, -1)).transpose(1, 2),
    )
    scores = q @ k.mT / query.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask.unsqueeze(-3), torch.finfo(scores.dtype).min)
    weights = torch.softmax(scores, dim=-1)
    if mask is not None:
        weights = weights.masked_fill(~mask.unsqueeze(-3), 0.0)
    return self.w_o(
        (weights @ self.w_v(value).unflatten(-1, (self.num_heads, -1)).transpose(1, 2))
        .transpose(1, 2)
        .flatten(2)
    ), weights


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
    q, k, v = (
        self.w_q(query).unflatten(-1, (self.num_heads, -1)).transpose(1, 2),
        self.w_k(key).unflatten(-1, (self.num_heads, -1)).transpose(1, 2),
        self.w_v(value).unflatten(-1, (self.num_heads, -1)).transpose(1, 2),
    )
    if mask is not None:
        mask = mask.unsqueeze(-3)
    heads, weights = scaled_dot_product_attention(q, k, v, mask)
    return heads.transpose(1, 2).flatten(2), weights


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
    q, k, v = (
        self.w_q(query).unflatten(-1, (self.num_heads, -1)).transpose(1, 2),
        self.w_k(key).unflatten(-1, (self.num_heads, -1)).transpose(1, 2),
        self.w_v(value).unflatten(-1, (self.num_heads, -1)).transpose(1, 2),
    )
    heads, weights = scaled_dot_product_attention(q, k, v, mask)
    return self.w_o(heads.transpose(1, 2).flatten(2)), weights


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
    q, k, v = (
        self.w_q(query).unflatten(-1, (self.num_heads, -1)).transpose(1, 2),
        self.w_k(key).unflatten(-1, (self.num_heads, -1)).transpose(1, 2),
        self.w_v(value).unflatten(-1, (self.num_heads, -1)).transpose(1, 2),
    )
    if mask is not None:
        batch, n, m = len(query), query.shape[1], key.shape[1]
        mask = mask.expand(batch, n, m).repeat(self.num_heads, 1, 1)
    heads, weights = scaled_dot_product_attention(
        q.flatten(0, 1), k.flatten(0, 1), v.flatten(0, 1), mask
    )
    shape = (len(query), self.num_heads)
    return self.w_o(heads.unflatten(0, shape).transpose(1, 2).flatten(2)), weights.unflatten(
        0, shape
    )


@misconception(
    "multi-head",
    target="MultiHeadAttention.forward",
    id="MHA25",
    fails=["multi-head-mask", "multi-head-cross"],
    read="04_multi_head_attention#mask-and-heads",
)
def mask_not_handed_on(self, query, key, value, mask=None):
    """Your layer takes a mask and does not use it, so tokens see the padding and the future."""
    q, k, v = (
        self.w_q(query).unflatten(-1, (self.num_heads, -1)).transpose(1, 2),
        self.w_k(key).unflatten(-1, (self.num_heads, -1)).transpose(1, 2),
        self.w_v(value).unflatten(-1, (self.num_heads, -1)).transpose(1, 2),
    )
    heads, weights = scaled_dot_product_attention(q, k, v)
    return self.w_o(heads.transpose(1, 2).flatten(2)), weights


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
    q, k = (
        self.w_q(query).unflatten(-1, (self.num_heads, -1)).transpose(1, 2),
        self.w_k(key).unflatten(-1, (self.num_heads, -1)).transpose(1, 2),
    )
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask.unsqueeze(-3), float("-inf"))
    weights = torch.softmax(scores, dim=-1)
    return self.w_o(
        (weights @ self.w_v(value).unflatten(-1, (self.num_heads, -1)).transpose(1, 2))
        .transpose(1, 2)
        .flatten(2)
    ), weights


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
    q, k, v = (
        self.w_q(query).unflatten(-1, (self.num_heads, -1)).transpose(1, 2),
        self.w_k(query).unflatten(-1, (self.num_heads, -1)).transpose(1, 2),
        self.w_v(query).unflatten(-1, (self.num_heads, -1)).transpose(1, 2),
    )
    if mask is not None:
        mask = mask.unsqueeze(-3)
    heads, weights = scaled_dot_product_attention(q, k, v, mask)
    return self.w_o(heads.transpose(1, 2).flatten(2)), weights


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
    q, k, v = (
        self.w_q(query).unflatten(-1, (self.num_heads, -1)).transpose(1, 2),
        self.w_k(key).unflatten(-1, (self.num_heads, -1)).transpose(1, 2),
        self.w_v(key).unflatten(-1, (self.num_heads, -1)).transpose(1, 2),
    )
    if mask is not None:
        mask = mask.unsqueeze(-3)
    heads, weights = scaled_dot_product_attention(q, k, v, mask)
    return self.w_o(heads.transpose(1, 2).flatten(2)), weights


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
    q, k, v = (
        self.w_q(query).unflatten(-1, (self.num_heads, -1)).transpose(1, 2),
        self.w_k(key).unflatten(-1, (self.num_heads, -1)).transpose(1, 2),
        self.w_v(value).unflatten(-1, (self.num_heads, -1)).transpose(1, 2),
    )
    if mask is not None:
        mask = mask.unsqueeze(-3)
    heads, weights = scaled_dot_product_attention(q, k, v, mask)
    return self.w_o(heads.transpose(1, 2).flatten(2)), weights.mean(dim=1)


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


# 4.3 A sum over heads


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


# 4.4 Which head matters?


@misconception(
    "predicted-cost",
    id="ABL10",
    fails=["predicted-cost-made"],
    read="04_multi_head_attention#ablation",
)
def a_number_for_a_text():
    """Your prediction is a number; it should be one of the texts in PAIR_COSTS, word for word."""
    return 0.1


@misconception(
    "predicted-cost",
    id="ABL11",
    fails=["predicted-cost-made"],
    read="04_multi_head_attention#ablation",
)
def the_place_in_the_list():
    """Your prediction is the place of a text in PAIR_COSTS; return the text itself."""
    return 1


@misconception(
    "predicted-cost",
    id="ABL12",
    fails=["predicted-cost-made"],
    read="04_multi_head_attention#ablation",
)
def all_of_the_texts():
    """Your prediction is all of the texts. Settle for one, whatever may come out."""
    return ("about 0.05", "about 0.1", "about 0.4", "about 0.9")


@misconception(
    "predicted-cost",
    id="ABL13",
    fails=["predicted-cost-made"],
    read="04_multi_head_attention#ablation",
)
def words_of_ones_own():
    """Your prediction is in words of your own; copy one of the texts in PAIR_COSTS."""
    return "hardly anything"


@misconception(
    "ablation",
    target="ablation_costs",
    id="ABL1",
    fails=["ablation-costs", "ablation-findings"],
    read="04_multi_head_attention#ablation",
)
def pairs_added_up(parts, share_right):
    """You add up what two heads cost one by one. Two heads may do the same job, and then one of
    them costs little and both cost everything: switch both off and measure.
    """
    total = parts.sum(1)
    right = share_right(total)
    single = torch.tensor(
        [right - share_right(total - part) for part in parts.unbind(1)], dtype=torch.float64
    )
    return torch.diag(single) + (single[:, None] + single) * (1 - torch.eye(len(single)).double())


@misconception(
    "ablation",
    target="ablation_costs",
    id="ABL2",
    fails=["ablation-costs", "ablation-findings"],
    read="04_multi_head_attention#ablation",
)
def what_is_left(parts, share_right):
    """You return what is still right without the heads; asked for was what is lost, against all
    heads.
    """
    off = parts.new_zeros(parts.shape[1], parts.shape[1], dtype=torch.float64)
    for i in range(len(off)):
        for j in range(len(off)):
            left = [h for h in range(len(off)) if h not in (i, j)]
            off[i, j] = share_right(parts[:, left].sum(1))
    return off


@misconception(
    "ablation",
    target="ablation_costs",
    id="ABL3",
    fails=["ablation-costs", "ablation-findings"],
    read="04_multi_head_attention#ablation",
)
def taken_off_twice(parts, share_right):
    """On the diagonal you take a head's part away twice, so that its opposite is left; i = j means
    one head, off once.
    """
    total = parts.sum(1)
    rows = [
        [share_right(total) - share_right(total - one - other) for other in parts.unbind(1)]
        for one in parts.unbind(1)
    ]
    return torch.tensor(rows, dtype=torch.float64)


@misconception(
    "ablation",
    target="ablation_costs",
    id="ABL4",
    fails=["ablation-costs"],
    read="04_multi_head_attention#ablation",
)
def rest_made_larger(parts, share_right):
    """You average over the heads that are left, or enlarge them, as dropout would. A head that is
    off adds nothing, and the others add what they did.
    """
    heads = parts.shape[1]
    off = torch.zeros(heads, heads, dtype=torch.float64)
    for i in range(heads):
        for j in range(heads):
            left = [h for h in range(heads) if h not in (i, j)]
            rest = parts[:, left].sum(1) * heads / max(len(left), 1)
            off[i, j] = share_right(parts.sum(1)) - share_right(rest)
    return off


@misconception(
    "ablation",
    target="ablation_costs",
    id="ABL5",
    fails=["ablation-costs", "ablation-findings"],
    read="04_multi_head_attention#ablation",
)
def heads_alone(parts, share_right):
    """You keep heads i and j and switch all others off; it is i and j that should be off."""
    heads = parts.shape[1]
    right = share_right(parts.sum(1))
    return torch.tensor(
        [
            [right - share_right(parts[:, sorted({i, j})].sum(1)) for j in range(heads)]
            for i in range(heads)
        ],
        dtype=torch.float64,
    )


@misconception(
    "ablation",
    target="findings",
    id="ABL6",
    fails=["ablation-findings"],
    read="04_multi_head_attention#ablation",
)
def the_two_that_cost_most_with_others():
    """Your pair costs little together. Look for the entry that is far above the sum of its two
    single costs.
    """
    return {"costs": [0.0, 0.055, 0.01, 0.045], "pair": (0, 1), "pair_cost": 0.055, "idle": 0}


@misconception(
    "ablation",
    target="findings",
    id="ABL7",
    fails=["ablation-findings"],
    read="04_multi_head_attention#ablation",
)
def idle_by_its_looks():
    """Your idle head looks elsewhere. The one meant puts nearly all its weight on who acts, and is
    still not missed when it is off.
    """
    return {"costs": [0.0, 0.055, 0.01, 0.045], "pair": (1, 3), "pair_cost": 0.86, "idle": 2}


@misconception(
    "ablation",
    target="findings",
    id="ABL8",
    fails=["ablation-findings"],
    read="04_multi_head_attention#ablation",
)
def pair_cost_added_up():
    """Your cost of the pair is the sum of two single costs; read it from the table, where both are
    off at once.
    """
    return {"costs": [0.0, 0.055, 0.01, 0.045], "pair": (1, 3), "pair_cost": 0.1, "idle": 0}


@misconception(
    "ablation",
    target="findings",
    id="ABL9",
    fails=["ablation-findings"],
    read="04_multi_head_attention#ablation",
)
def percents_of_right_answers():
    """Your costs are in percent; what is asked for is a share, between 0 and 1."""
    return {"costs": [0.0, 5.5, 1.0, 4.5], "pair": (1, 3), "pair_cost": 86.0, "idle": 0}


# 4.5 An induction head by hand


@misconception(
    "induction",
    id="IND1",
    fails=["induction-answer"],
    read="04_multi_head_attention#induction",
)
def the_word_itself_found(words, places):
    """Your second layer looks for its own word and finds it, at earlier places and at its own. Look
    for the token that stands after it: the one whose `before` holds that word.
    """
    width = 3 * words + places
    word, place = slice(words), slice(words, words + places)
    before, answer = slice(words + places, width - words), slice(width - words, width)
    one = torch.eye(words, dtype=torch.float64)
    layers = [
        [torch.zeros(width, n, dtype=torch.float64) for n in (size, size, width)]
        for size in (places, words)
    ]
    (w_q, w_k, w_vo), (w_q2, w_k2, w_vo2) = layers
    w_q[place] = 100.0 * places**0.5 * torch.diag(torch.ones(places - 1).double(), -1)
    w_k[place] = torch.eye(places).double()
    w_vo[word, before] = one
    w_q2[word] = 100.0 * one
    w_k2[word] = one
    w_vo2[word, answer] = one
    return [tuple(layer) for layer in layers]


@misconception(
    "induction",
    id="IND2",
    fails=["induction-answer"],
    read="04_multi_head_attention#induction",
)
def the_word_before_handed_over(words, places):
    """Your second layer finds the right token and hands over what stands before that, which is the
    word that asks. Hand over the token's own word.
    """
    width = 3 * words + places
    word, place = slice(words), slice(words, words + places)
    before, answer = slice(words + places, width - words), slice(width - words, width)
    one = torch.eye(words, dtype=torch.float64)
    layers = [
        [torch.zeros(width, n, dtype=torch.float64) for n in (size, size, width)]
        for size in (places, words)
    ]
    (w_q, w_k, w_vo), (w_q2, w_k2, w_vo2) = layers
    w_q[place] = 100.0 * places**0.5 * torch.diag(torch.ones(places - 1).double(), -1)
    w_k[place] = torch.eye(places).double()
    w_vo[word, before] = one
    w_q2[word] = 100.0 * one
    w_k2[before] = one
    w_vo2[before, answer] = one
    return [tuple(layer) for layer in layers]


@misconception(
    "induction",
    id="IND3",
    fails=["induction-previous", "induction-answer"],
    read="04_multi_head_attention#induction",
)
def the_next_place_asked_for(words, places):
    """Your first layer asks for the place after the token's own, which the mask hides, so something
    else is found. Rows ask: row p of the block goes to column p - 1.
    """
    width = 3 * words + places
    word, place = slice(words), slice(words, words + places)
    before, answer = slice(words + places, width - words), slice(width - words, width)
    one = torch.eye(words, dtype=torch.float64)
    layers = [
        [torch.zeros(width, n, dtype=torch.float64) for n in (size, size, width)]
        for size in (places, words)
    ]
    (w_q, w_k, w_vo), (w_q2, w_k2, w_vo2) = layers
    w_q[place] = 100.0 * torch.diag(torch.ones(places - 1).double(), 1)
    w_k[place] = torch.eye(places).double()
    w_vo[word, before] = one
    w_q2[word] = 100.0 * one
    w_k2[before] = one
    w_vo2[word, answer] = one
    return [tuple(layer) for layer in layers]


@misconception(
    "induction",
    id="IND4",
    fails=["induction-previous", "induction-answer"],
    read="04_multi_head_attention#induction",
)
def too_even_by_far(words, places):
    """Your scores are about 1 where they match and 0 elsewhere: the softmax is nearly even, and
    everything is blended. Make one of the two blocks large.
    """
    width = 3 * words + places
    word, place = slice(words), slice(words, words + places)
    before, answer = slice(words + places, width - words), slice(width - words, width)
    one = torch.eye(words, dtype=torch.float64)
    layers = [
        [torch.zeros(width, n, dtype=torch.float64) for n in (size, size, width)]
        for size in (places, words)
    ]
    (w_q, w_k, w_vo), (w_q2, w_k2, w_vo2) = layers
    w_q[place] = torch.diag(torch.ones(places - 1).double(), -1)
    w_k[place] = torch.eye(places).double()
    w_vo[word, before] = one
    w_q2[word] = 1.0 * one
    w_k2[before] = one
    w_vo2[word, answer] = one
    return [tuple(layer) for layer in layers]


@misconception(
    "induction",
    id="IND5",
    fails=["induction-answer"],
    read="04_multi_head_attention#induction",
)
def even_second_layer(words, places):
    """Your first layer is sharp and your second is not: the answer is a blend of all words so far.
    Its matching scores need a large factor as well.
    """
    width = 3 * words + places
    word, place = slice(words), slice(words, words + places)
    before, answer = slice(words + places, width - words), slice(width - words, width)
    one = torch.eye(words, dtype=torch.float64)
    layers = [
        [torch.zeros(width, n, dtype=torch.float64) for n in (size, size, width)]
        for size in (places, words)
    ]
    (w_q, w_k, w_vo), (w_q2, w_k2, w_vo2) = layers
    w_q[place] = 100.0 * places**0.5 * torch.diag(torch.ones(places - 1).double(), -1)
    w_k[place] = torch.eye(places).double()
    w_vo[word, before] = one
    w_q2[word] = 1.0 * one
    w_k2[before] = one
    w_vo2[word, answer] = one
    return [tuple(layer) for layer in layers]


@misconception(
    "induction",
    id="IND6",
    fails=["induction-previous", "induction-answer"],
    read="04_multi_head_attention#induction",
)
def the_own_place_asked_for(words, places):
    """Your first layer asks for the token's own place and finds the token itself; the block has to
    be moved by one row.
    """
    width = 3 * words + places
    word, place = slice(words), slice(words, words + places)
    before, answer = slice(words + places, width - words), slice(width - words, width)
    one = torch.eye(words, dtype=torch.float64)
    layers = [
        [torch.zeros(width, n, dtype=torch.float64) for n in (size, size, width)]
        for size in (places, words)
    ]
    (w_q, w_k, w_vo), (w_q2, w_k2, w_vo2) = layers
    w_q[place] = 100.0 * torch.eye(places).double()
    w_k[place] = torch.eye(places).double()
    w_vo[word, before] = one
    w_q2[word] = 100.0 * one
    w_k2[before] = one
    w_vo2[word, answer] = one
    return [tuple(layer) for layer in layers]


# 4.6 What it costs


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
    target="writing_cost",
    id="COS5",
    fails=["attention-cost-writing"],
    read="04_multi_head_attention#multi-head-cost",
)
def last_step_alone(length, d_model, kept):
    """You count one pass over the finished text. A text that is written token by token takes a step
    for every token; add them up.
    """
    n = 1 if kept else length
    return 4 * n * d_model**2 + 2 * n * length * d_model


@misconception(
    "attention-cost",
    target="writing_cost",
    id="COS6",
    fails=["attention-cost-writing"],
    read="04_multi_head_attention#multi-head-cost",
)
def new_token_meets_itself(length, d_model, kept):
    """With keys and values kept, your new token meets itself alone. Its query has to be compared
    with all keys, the kept ones too.
    """
    if kept:
        return length * (4 * d_model**2 + 2 * d_model)
    return sum(4 * t * d_model**2 + 2 * t * t * d_model for t in range(1, length + 1))


@misconception(
    "attention-cost",
    target="writing_cost",
    id="COS7",
    fails=["attention-cost-writing"],
    read="04_multi_head_attention#multi-head-cost",
)
def all_tokens_projected(length, d_model, kept):
    """With keys and values kept, you still project all tokens in every step. That is what keeping
    them saves: only the new token is projected.
    """
    rows = [1 if kept else t for t in range(1, length + 1)]
    products = sum(2 * n * t * d_model for t, n in enumerate(rows, start=1))
    return 4 * sum(range(1, length + 1)) * d_model**2 + products


@misconception(
    "attention-cost",
    target="writing_cost",
    id="COS8",
    fails=["attention-cost-writing"],
    read="04_multi_head_attention#multi-head-cost",
)
def keys_of_one_step_only(length, d_model, kept):
    """You count the steps from 0 to T - 1; the first token attends to itself, so step t has t
    tokens, from 1 to T.
    """
    rows = [1 if kept else t for t in range(length)]
    return 4 * sum(rows) * d_model**2 + sum(2 * n * t * d_model for t, n in enumerate(rows))


# 4.7 Fewer keys than queries


@misconception(
    "grouped-attention",
    target="grouped_attention",
    id="GQA1",
    fails=["grouped-attention-values"],
    read="04_multi_head_attention#grouped-query",
)
def keys_dealt_in_turn(q, k, v, mask=None):
    """You deal the key heads out in turn (0, 1, 0, 1); neighbouring query heads share one (0, 0, 1,
    1), so it takes repeat_interleave and not repeat.
    """
    times = q.shape[1] // k.shape[1]
    return scaled_dot_product_attention(q, k.repeat(1, times, 1, 1), v.repeat(1, times, 1, 1), mask)


@misconception(
    "grouped-attention",
    target="grouped_attention",
    id="GQA2",
    fails=["grouped-attention-values"],
    read="04_multi_head_attention#grouped-query",
)
def first_key_head_for_all(q, k, v, mask=None):
    """All your query heads use key head 0; that is right for one group only."""
    return scaled_dot_product_attention(q, k[:, :1], v[:, :1], mask)


@misconception(
    "grouped-attention",
    target="grouped_attention",
    id="GQA3",
    fails=["grouped-attention-values"],
    read="04_multi_head_attention#grouped-query",
)
def queries_averaged(q, k, v, mask=None):
    """You average the query heads of a group. All of them keep their own queries and tables; only
    keys and values are shared.
    """
    groups = k.shape[1]
    pooled = q.unflatten(1, (groups, -1)).mean(2)
    return scaled_dot_product_attention(pooled, k, v, None if mask is None else mask[:, :groups])


@misconception(
    "grouped-attention",
    target="grouped_attention",
    id="GQA4",
    fails=["grouped-attention-values"],
    read="04_multi_head_attention#grouped-query",
)
def values_not_shared_alike(q, k, v, mask=None):
    """Your keys are shared by neighbours and your values in turn; a query head takes both from the
    same head.
    """
    times = q.shape[1] // k.shape[1]
    return scaled_dot_product_attention(
        q, k.repeat_interleave(times, dim=1), v.repeat(1, times, 1, 1), mask
    )


@misconception(
    "grouped-attention",
    target="pooled_heads",
    id="GQA5",
    fails=["grouped-attention-pooled"],
    read="04_multi_head_attention#grouped-query",
)
def pooled_in_turn(matrix, num_heads, groups):
    """You pool heads that lie far apart (0 and 2, 1 and 3); a group is of neighbouring heads, as in
    the attention.
    """
    cut = matrix.unflatten(1, (num_heads // groups, groups, -1))
    return cut.mean(1).flatten(1)


@misconception(
    "grouped-attention",
    target="pooled_heads",
    id="GQA6",
    fails=["grouped-attention-pooled"],
    read="04_multi_head_attention#grouped-query",
)
def added_not_averaged(matrix, num_heads, groups):
    """You add up the heads of a group. Sums make keys larger and weights sharper; take the mean."""
    return matrix.unflatten(1, (groups, num_heads // groups, -1)).sum(2).flatten(1)


@misconception(
    "grouped-attention",
    target="pooled_heads",
    id="GQA7",
    fails=["grouped-attention-pooled"],
    read="04_multi_head_attention#grouped-query",
)
def neighbouring_columns_pooled(matrix, num_heads, groups):
    """You average neighbouring columns, which belong to one head. Column c of the new head is the
    mean of the columns c of all its heads.
    """
    return matrix.unflatten(1, (-1, num_heads // groups)).mean(2)


@misconception(
    "grouped-attention",
    target="pooled_heads",
    id="GQA8",
    fails=["grouped-attention-pooled"],
    read="04_multi_head_attention#grouped-query",
)
def first_head_of_each_group(matrix, num_heads, groups):
    """You keep the first head of each group and drop the others, so that what they have learned is
    lost; take the mean of them all.
    """
    return matrix.unflatten(1, (groups, num_heads // groups, -1))[:, :, 0].flatten(1)

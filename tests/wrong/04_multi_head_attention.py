"""Wrong answers to exercise 4 that nobody gets a name for; all must lose points."""

import torch

from lab.answers import variant
from lab.blocks import scaled_dot_product_attention


@variant("multi-head", target="MultiHeadAttention.forward")
def weights_cut_off(self, query, key, value, mask=None):
    q, k, v = (
        self.w_q(query).unflatten(-1, (self.num_heads, -1)).transpose(1, 2),
        self.w_k(key).unflatten(-1, (self.num_heads, -1)).transpose(1, 2),
        self.w_v(value).unflatten(-1, (self.num_heads, -1)).transpose(1, 2),
    )
    mask = None if mask is None else mask.unsqueeze(-3)
    heads, weights = scaled_dot_product_attention(q, k, v, mask)
    return self.w_o(heads.transpose(1, 2).flatten(2)), weights.detach()


@variant("multi-head", target="MultiHeadAttention.forward")
def axis_of_the_heads_always_second(self, query, key, value, mask=None):
    q, k, v = (
        self.w_q(query).unflatten(-1, (self.num_heads, -1)).transpose(1, 2),
        self.w_k(key).unflatten(-1, (self.num_heads, -1)).transpose(1, 2),
        self.w_v(value).unflatten(-1, (self.num_heads, -1)).transpose(1, 2),
    )
    mask = None if mask is None else mask.unsqueeze(1)
    heads, weights = scaled_dot_product_attention(q, k, v, mask)
    return self.w_o(heads.transpose(1, 2).flatten(2)), weights


@variant("multi-head", target="MultiHeadAttention.forward")
def axis_of_the_heads_by_the_masks_length(self, query, key, value, mask=None):
    q, k, v = (
        self.w_q(query).unflatten(-1, (self.num_heads, -1)).transpose(1, 2),
        self.w_k(key).unflatten(-1, (self.num_heads, -1)).transpose(1, 2),
        self.w_v(value).unflatten(-1, (self.num_heads, -1)).transpose(1, 2),
    )
    if mask is not None and len(mask) == len(query):
        mask = mask.unsqueeze(1)
    heads, weights = scaled_dot_product_attention(q, k, v, mask)
    return self.w_o(heads.transpose(1, 2).flatten(2)), weights


@variant("multi-head", target="MultiHeadAttention.forward")
def hidden_scores_are_minus_10000(self, query, key, value, mask=None):
    q, k, v = (
        self.w_q(query).unflatten(-1, (self.num_heads, -1)).transpose(1, 2),
        self.w_k(key).unflatten(-1, (self.num_heads, -1)).transpose(1, 2),
        self.w_v(value).unflatten(-1, (self.num_heads, -1)).transpose(1, 2),
    )
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask.unsqueeze(-3), -1e4)
    weights = scores.softmax(-1)
    return self.w_o((weights @ v).transpose(1, 2).flatten(2)), weights


@variant("heads-as-sum", target="head_contributions")
def normalised_once_more(x, weights, maps):
    weights = weights / weights.sum(-1, keepdim=True)
    return weights @ x.unsqueeze(1) @ maps


@variant("multi-head", target="MultiHeadAttention.forward")
def weights_cut_off_under_a_mask(self, query, key, value, mask=None):
    q, k, v = (
        self.w_q(query).unflatten(-1, (self.num_heads, -1)).transpose(1, 2),
        self.w_k(key).unflatten(-1, (self.num_heads, -1)).transpose(1, 2),
        self.w_v(value).unflatten(-1, (self.num_heads, -1)).transpose(1, 2),
    )
    seen = None if mask is None else mask.unsqueeze(-3)
    heads, weights = scaled_dot_product_attention(q, k, v, seen)
    return self.w_o(heads.transpose(1, 2).flatten(2)), weights if mask is None else weights.detach()


@variant("split-heads", target="merge_heads")
def a_batch_of_one_loses_its_axis(x):
    B, H, n, d = x.shape
    return x.transpose(1, 2).reshape(B, n, H * d).squeeze(0)


@variant("induction")
def one_gap_for_all_sizes(words, places):
    width = 3 * words + places
    one = torch.eye(words, dtype=torch.float64)
    layers = []
    for rows, moved, keys, read, written in (
        (words, -1, words, 0, words + places),
        (0, 0, words + places, 0, width - words),
    ):
        n = places if moved else words
        w_q, w_k, w_vo = (torch.zeros(width, m, dtype=torch.float64) for m in (n, n, width))
        w_q[rows : rows + n] = 100.0 * torch.diag(torch.ones(n + moved), moved)
        w_k[keys : keys + n] = torch.eye(n)
        w_vo[read : read + words, written : written + words] = one
        layers.append((w_q, w_k, w_vo))
    return layers

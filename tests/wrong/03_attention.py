"""Wrong answers to exercise 3 that nobody gets a name for; all must lose points."""

import math

import torch

from lab.answers import variant


@variant("masked-softmax")
def in_place_without_a_mask(scores, mask=None):
    if mask is None:
        scores -= scores.amax(-1, keepdim=True)
        weights = torch.exp(scores)
        return weights / weights.sum(-1, keepdim=True)
    scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = torch.exp(scores - scores.amax(-1, keepdim=True))
    weights = weights / weights.sum(-1, keepdim=True)
    return weights.masked_fill(~mask, 0.0)


@variant("masked-softmax")
def always_in_single_precision(scores, mask=None):
    scores = scores.float()
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = torch.exp(scores - scores.amax(-1, keepdim=True))
    weights = weights / weights.sum(-1, keepdim=True)
    return weights if mask is None else weights.masked_fill(~mask, 0.0)


@variant("scaled-dot-product")
def exponentials_without_a_maximum(q, k, v, mask=None):
    weights = torch.exp(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]))
    if mask is not None:
        weights = weights * mask
    weights = weights / (weights.sum(-1, keepdim=True) + 1e-12)
    return weights @ v, weights


@variant("scaled-dot-product")
def a_mask_with_two_axes_is_taken_for_batch_and_keys(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        mask = mask[:, None, :] if mask.ndim == 2 else mask
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = torch.softmax(scores, dim=-1)
    if mask is not None:
        weights = weights.masked_fill(~mask, 0.0)
    return weights @ v, weights


@variant("masks", target="padding_mask")
def everything_behind_the_first_padding_is_hidden(ids, pad_id):
    return ((ids == pad_id).cumsum(1) == 0).unsqueeze(1)


@variant("masks", target="causal_mask")
def bytes_for_booleans(n):
    return torch.ones(n, n, dtype=torch.uint8).tril()


@variant("masks", target="causal_mask")
def a_single_position_loses_its_axes(n):
    return torch.ones(n, n, dtype=torch.bool).tril().squeeze()


@variant("masks", target="padding_mask")
def a_single_sequence_loses_its_axis(ids, pad_id):
    return (ids != pad_id).squeeze().unsqueeze(-2)


@variant("scores", target="additive_score")
def one_state_without_its_axis(s, h, w1, w2, v):
    scores = torch.tanh(h @ w1.T + (s @ w2.T).unsqueeze(-2)) @ v
    return scores if s.dim() > 1 else scores.squeeze()


@variant("scaled-dot-product")
def weights_in_double_precision(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = torch.softmax(scores, dim=-1)
    if mask is not None:
        weights = weights.masked_fill(~mask, 0.0)
    return weights @ v, weights.double()


@variant("smallest-leak")
def row_of_the_first_token_that_leaks(attend):
    for n in range(2, 9):
        x = torch.randn(n, 4, dtype=torch.float64)
        base = attend(x)
        for j in range(1, n):
            y = x.clone()
            y[j] = torch.randn(4, dtype=torch.float64)
            moved = (attend(y) - base).abs().amax(-1)[:j] > 1e-06
            if moved.any():
                return (n, int(moved.nonzero()[0]))
    return None


@variant("smallest-leak")
def small_changes_are_none(attend):
    for n in range(2, 9):
        x = torch.randn(n, 4, dtype=torch.float64)
        base = attend(x)
        rows = []
        for j in range(1, n):
            y = x.clone()
            y[j] = torch.randn(4, dtype=torch.float64)
            moved = (attend(y) - base).abs().amax(-1)[:j] > 0.001
            rows += moved.nonzero().flatten().tolist()
        if rows:
            return (n, min(rows))
    return None


@variant("smallest-leak")
def all_numbers_have_to_move(attend):
    for n in range(2, 9):
        x = torch.randn(n, 4, dtype=torch.float64)
        base, rows = attend(x), []
        for j in range(1, n):
            other = x.clone()
            other[j] += 1.0
            moved = (attend(other) - base).abs().amin(-1) > 1e-9
            rows += [i for i in range(j) if moved[i]]
        if rows:
            return n, min(rows)
    return None


@variant("merge")
def not_below_ten_thousand(first, second):
    top = torch.maximum(first[0], second[0])
    finite = top.clamp(min=-1e4)
    one, other = torch.exp(first[0] - finite), torch.exp(second[0] - finite)
    total = one * first[1] + other * second[1]
    return top, total, one.unsqueeze(-1) * first[2] + other.unsqueeze(-1) * second[2]

"""Wrong answers to the exercise on attention, as students write them, and what each one shows."""

import math

import torch

from lab.answers import misconception

# 3.1 Two ways to score


@misconception(
    "scores",
    target="additive_score",
    id="SCO1",
    fails=["scores-additive"],
    read="03_attention#attention-scores",
)
def without_tanh(s, h, w1, w2, v):
    """Your additive score has no tanh; without it the state s shifts all scores alike, and the
    softmax then ignores it.
    """
    return (h @ w1.T + (s @ w2.T).unsqueeze(-2)) @ v


@misconception(
    "scores",
    target="additive_score",
    id="SCO2",
    fails=["scores-additive"],
    read="03_attention#attention-scores",
)
def tanh_of_each_part(s, h, w1, w2, v):
    """You squash the two projections separately; add them first, then apply one tanh to the sum,
    or s and h never meet.
    """
    return (torch.tanh(h @ w1.T) + torch.tanh(s @ w2.T).unsqueeze(-2)) @ v


@misconception(
    "scores",
    target="additive_score",
    id="SCO3",
    fails=["scores-additive"],
    read="03_attention#attention-scores",
)
def state_without_its_axis(s, h, w1, w2, v):
    """Your additive score works for one sentence only: in a batch the state s needs an axis of
    length 1 before its last one, to meet every position.
    """
    return torch.tanh(h @ w1.T + s @ w2.T) @ v


@misconception(
    "scores",
    target="multiplicative_score",
    id="SCO4",
    fails=["scores-multiplicative"],
    read="03_attention#attention-scores",
)
def weights_for_scores(s, h, w):
    """You return the weights after a softmax; the question asks for the scores before it."""
    scores = (h @ (s @ w).unsqueeze(-1)).squeeze(-1)
    return torch.softmax(scores, dim=-1)


@misconception(
    "scores",
    target="multiplicative_score",
    id="SCO5",
    fails=["scores-multiplicative"],
    read="03_attention#attention-scores",
)
def batch_entries_mixed(s, h, w):
    """In a batch, your multiplicative score compares a state with the source of another sentence;
    each batch entry has its own.
    """
    query = s @ w
    if h.ndim == 2:
        return h @ query
    return h @ query[0]


@misconception(
    "scores",
    target="multiplicative_score",
    id="SCO6",
    fails=["scores-multiplicative"],
    read="03_attention#attention-scores",
)
def tanh_in_the_bilinear_form(s, h, w):
    """Your multiplicative score has a tanh in it; that belongs to the additive score, the
    multiplicative one is a plain product s . W h.
    """
    return (torch.tanh(h @ w.T) @ s.unsqueeze(-1)).squeeze(-1)


@misconception(
    "scores",
    target="additive_score",
    id="SCO7",
    fails=["scores-additive"],
    read="03_attention#attention-scores",
)
def additive_axes_of_length_1_vanish(s, h, w1, w2, v):
    """Your squeeze() takes away every axis of length 1, also that of a batch of one sentence or of
    a single state; name the axis, squeeze(-1).
    """
    hidden = torch.tanh(h @ w1.T + (s @ w2.T).unsqueeze(-2))
    return (hidden @ v.unsqueeze(-1)).squeeze()


@misconception(
    "scores",
    target="multiplicative_score",
    id="SCO8",
    fails=["scores-multiplicative"],
    read="03_attention#attention-scores",
)
def multiplicative_axes_of_length_1_vanish(s, h, w):
    """Your squeeze() takes away every axis of length 1, also that of a batch of one sentence or of
    a single state; name the axis, squeeze(-1).
    """
    return (h @ (s @ w).unsqueeze(-1)).squeeze()


# 3.2 A softmax that can leave keys out


@misconception(
    "masked-softmax",
    id="ATT4",
    fails=[
        "masked-softmax-values",
        "masked-softmax-mask",
        "masked-softmax-stability",
        "masked-softmax-empty-rows",
    ],
    read="03_attention#which-axis",
)
def softmax_of_columns(scores, mask=None):
    """Your columns sum to 1 (dim -2): the queries share out each key. Each query should share out
    its attention over the keys, the last axis.
    """
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = torch.exp(scores - scores.amax(-2, keepdim=True))
    weights = weights / weights.sum(-2, keepdim=True)
    return weights if mask is None else weights.masked_fill(~mask, 0.0)


@misconception(
    "masked-softmax",
    id="ATT5",
    fails=[
        "masked-softmax-values",
        "masked-softmax-mask",
        "masked-softmax-stability",
        "masked-softmax-empty-rows",
    ],
    read="03_attention#which-axis",
)
def softmax_over_the_first_axis(scores, mask=None):
    """Your softmax runs over the first axis, so the sentences of a batch share out one weight
    among them; it should run over the keys, the last axis.
    """
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = torch.exp(scores - scores.amax(0, keepdim=True))
    return weights / weights.sum(0, keepdim=True)


@misconception(
    "masked-softmax",
    id="ATT5b",
    fails=["masked-softmax-values", "masked-softmax-mask", "masked-softmax-empty-rows"],
    read="03_attention#which-axis",
)
def softmax_over_axis_one(scores, mask=None):
    """Your softmax runs over axis 1: with one sentence those are the keys, with a batch they are
    the queries. The keys are the last axis, dim -1, whatever stands in front.
    """
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = torch.exp(scores - scores.amax(1, keepdim=True))
    return weights / weights.sum(1, keepdim=True)


@misconception(
    "masked-softmax",
    id="ATT16a",
    fails=["masked-softmax-stability"],
    read="03_attention#softmax-by-hand",
)
def without_maximum(scores, mask=None):
    """Your exp overflows (or vanishes) when the scores are far from 0; subtract each row's maximum
    before exp.
    """
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = torch.exp(scores)
    return weights / weights.sum(-1, keepdim=True).clamp_min(1e-300)


@misconception(
    "masked-softmax",
    id="ATT16b",
    fails=["masked-softmax-stability"],
    read="03_attention#softmax-by-hand",
)
def one_maximum_for_all_rows(scores, mask=None):
    """You subtract one maximum for the whole tensor; a row whose scores lie far below it becomes 0
    / 0. Take the maximum of each row.
    """
    if mask is None:
        weights = torch.exp(scores - scores.max())
        return weights / weights.sum(-1, keepdim=True)
    weights = torch.exp(scores - torch.where(mask, scores, -math.inf).max()) * mask
    total = weights.sum(-1, keepdim=True)
    return weights / torch.where(mask.any(-1, keepdim=True), total, 1.0)


@misconception(
    "masked-softmax",
    id="ATT16c",
    fails=["masked-softmax-stability"],
    read="03_attention#softmax-by-hand",
)
def maximum_of_hidden_keys_too(scores, mask=None):
    """You take the maximum before hiding keys; a hidden key with a huge score then pushes all
    visible ones to 0, and the row becomes 0 / 0.
    """
    weights = torch.exp(scores - scores.amax(-1, keepdim=True))
    if mask is None:
        return weights / weights.sum(-1, keepdim=True)
    weights = weights * mask
    return weights / torch.where(mask.any(-1, keepdim=True), weights.sum(-1, keepdim=True), 1.0)


@misconception(
    "masked-softmax",
    id="ATT16d",
    fails=["masked-softmax-stability"],
    read="03_attention#softmax-by-hand",
)
def maximum_of_hidden_keys_and_a_guarded_sum(scores, mask=None):
    """You take the maximum before hiding keys; a hidden key with a huge score then pushes all
    visible ones to 0, and your guard against a sum of 0 makes a row of zeros of it.
    """
    weights = torch.exp(scores - scores.amax(-1, keepdim=True))
    if mask is not None:
        weights = weights.masked_fill(~mask, 0.0)
    return weights / weights.sum(-1, keepdim=True).clamp_min(torch.finfo(scores.dtype).tiny)


@misconception(
    "masked-softmax",
    id="ATT6",
    fails=["masked-softmax-mask", "masked-softmax-stability", "masked-softmax-empty-rows"],
    read="03_attention#mask-before-softmax",
)
def mask_after_softmax(scores, mask=None):
    """You hide keys after the softmax: the rows no longer sum to 1, and the hidden scores still
    sit in the denominator. Hide them before.
    """
    weights = torch.exp(scores - scores.amax(-1, keepdim=True))
    weights = weights / weights.sum(-1, keepdim=True)
    return weights if mask is None else weights * mask


@misconception(
    "masked-softmax",
    id="ATT7",
    fails=["masked-softmax-mask", "masked-softmax-stability", "masked-softmax-empty-rows"],
    read="03_attention#mask-convention",
)
def mask_inverted(scores, mask=None):
    """You hide the keys whose mask is True; here True means: may attend."""
    if mask is not None:
        scores = scores.masked_fill(mask, torch.finfo(scores.dtype).min)
    weights = torch.exp(scores - scores.amax(-1, keepdim=True))
    return weights / weights.sum(-1, keepdim=True)


@misconception(
    "masked-softmax",
    id="ATT8",
    fails=["masked-softmax-mask", "masked-softmax-stability", "masked-softmax-empty-rows"],
    read="03_attention#mask-before-softmax",
)
def scores_times_mask(scores, mask=None):
    """You multiply scores by the mask: a hidden key then has score 0 and weight exp(0) = 1 before
    normalising, more than any negative score.
    """
    if mask is not None:
        scores = scores * mask
    weights = torch.exp(scores - scores.amax(-1, keepdim=True))
    return weights / weights.sum(-1, keepdim=True)


@misconception(
    "masked-softmax",
    id="ATT9",
    fails=["masked-softmax-mask", "masked-softmax-stability", "masked-softmax-empty-rows"],
    read="03_attention#mask-before-softmax",
)
def masked_fill_discarded(scores, mask=None):
    """masked_fill returns a new tensor and you drop it, so the mask does nothing; assign its
    result.
    """
    if mask is not None:
        scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = torch.exp(scores - scores.amax(-1, keepdim=True))
    return weights / weights.sum(-1, keepdim=True)


@misconception(
    "masked-softmax",
    id="ATT10",
    fails=["masked-softmax-mask"],
    read="03_attention#mask-before-softmax",
)
def hides_in_place(scores, mask=None):
    """You write into the caller's scores (masked_fill_ or an indexed assignment); work on a new
    tensor.
    """
    if mask is not None:
        scores.masked_fill_(~mask, torch.finfo(scores.dtype).min)
    weights = torch.exp(scores - scores.amax(-1, keepdim=True))
    return weights / weights.sum(-1, keepdim=True)


@misconception(
    "masked-softmax",
    id="ATT11",
    fails=["masked-softmax-mask"],
    read="03_attention#fully-masked-row",
)
def minus_a_billion(scores, mask=None):
    """You hide keys with the number -1e9, which half precision cannot hold; take the lowest finite
    number of the scores' own type, torch.finfo(scores.dtype).min.
    """
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e9)
    weights = torch.exp(scores - scores.amax(-1, keepdim=True))
    return weights / weights.sum(-1, keepdim=True)


@misconception(
    "masked-softmax",
    id="ATT11b",
    fails=["masked-softmax-values"],
    read="03_attention#fully-masked-row",
)
def left_in_single_precision(scores, mask=None):
    """You compute float16 scores in float32, which is fine, and return float32: turn the weights
    back to the dtype of the scores.
    """
    if scores.dtype == torch.float16:
        scores = scores.float()
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = torch.exp(scores - scores.amax(-1, keepdim=True))
    return weights / weights.sum(-1, keepdim=True)


@misconception(
    "masked-softmax",
    id="ATT23",
    fails=["masked-softmax-stability"],
    read="03_attention#mask-before-softmax",
)
def minus_ten_thousand(scores, mask=None):
    """You hide keys with a number such as -10000, and scores may be lower than that; take the
    lowest number of the dtype."""
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e4)
    weights = torch.exp(scores - scores.amax(-1, keepdim=True))
    return weights / weights.sum(-1, keepdim=True)


@misconception(
    "masked-softmax",
    id="ATT12",
    fails=["masked-softmax-empty-rows"],
    read="03_attention#fully-masked-row",
)
def nan_in_empty_rows(scores, mask=None):
    """A row that may see no key is all minus infinity in your code; its maximum is minus infinity
    too, and their difference is NaN.
    """
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = torch.exp(scores - scores.amax(-1, keepdim=True))
    return weights / weights.sum(-1, keepdim=True)


@misconception(
    "masked-softmax",
    id="ATT12b",
    fails=["masked-softmax-empty-rows"],
    read="03_attention#fully-masked-row",
)
def nan_in_the_gradient_only(scores, mask=None):
    """You repair the NaN of an empty row in the weights, but it has already entered the gradient
    through the addition of minus infinity.
    """
    if mask is not None:
        scores = scores + torch.zeros_like(mask, dtype=scores.dtype).masked_fill(~mask, -math.inf)
    weights = torch.exp(scores - scores.amax(-1, keepdim=True))
    return torch.nan_to_num(weights / weights.sum(-1, keepdim=True))


# 3.3 Scaled dot-product attention


@misconception(
    "scaled-dot-product",
    id="ATT1",
    fails=["scaled-dot-product-values"],
    read="03_attention#why-scale",
)
def without_scale(q, k, v, mask=None):
    """Your scores are not divided by sqrt(d_k): their variance grows with d_k and the softmax
    saturates.
    """
    scores = q @ k.transpose(-2, -1)
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = torch.softmax(scores, dim=-1)
    return weights @ v, weights


@misconception(
    "scaled-dot-product",
    id="ATT2",
    fails=["scaled-dot-product-values"],
    read="03_attention#why-scale",
)
def divided_by_d_k(q, k, v, mask=None):
    """You divide by d_k; the standard deviation of a dot product grows with the root of d_k, so
    divide by sqrt(d_k).
    """
    scores = q @ k.transpose(-2, -1) / q.shape[-1]
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = torch.softmax(scores, dim=-1)
    return weights @ v, weights


@misconception(
    "scaled-dot-product",
    id="ATT3",
    fails=["scaled-dot-product-values"],
    read="03_attention#why-scale",
)
def scaled_by_the_values(q, k, v, mask=None):
    """You divide by sqrt(d_v), the length of the values; the dot product has d_k terms, so
    sqrt(d_k) belongs there.
    """
    scores = q @ k.transpose(-2, -1) / math.sqrt(v.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = torch.softmax(scores, dim=-1)
    return weights @ v, weights


@misconception(
    "scaled-dot-product",
    id="ATT3b",
    fails=["scaled-dot-product-values", "scaled-dot-product-mask"],
    read="03_attention#why-scale",
)
def softmax_divided(q, k, v, mask=None):
    """You divide the softmax by sqrt(d_k), not the scores: your rows sum to 1 / sqrt(d_k)."""
    scores = q @ k.transpose(-2, -1)
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = torch.softmax(scores, dim=-1) / math.sqrt(q.shape[-1])
    return weights @ v, weights


@misconception(
    "scaled-dot-product",
    id="ATT4b",
    fails=[
        "scaled-dot-product-values",
        "scaled-dot-product-mask",
        "scaled-dot-product-empty-rows",
    ],
    read="03_attention#which-axis",
)
def softmax_over_queries(q, k, v, mask=None):
    """Your weights sum to 1 over the queries (dim -2); each query should share out its attention
    over the keys (dim -1).
    """
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = torch.softmax(scores, dim=-2)
    return weights @ v, weights


@misconception(
    "scaled-dot-product",
    id="ATT6b",
    fails=["scaled-dot-product-mask"],
    read="03_attention#mask-before-softmax",
)
def weights_times_mask(q, k, v, mask=None):
    """You multiply the weights by the mask after the softmax: rows no longer sum to 1 and hidden
    keys still count in the denominator.
    """
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    weights = torch.softmax(scores, dim=-1)
    if mask is not None:
        weights = weights * mask
    return weights @ v, weights


@misconception(
    "scaled-dot-product",
    id="ATT7b",
    fails=["scaled-dot-product-mask", "scaled-dot-product-empty-rows"],
    read="03_attention#mask-convention",
)
def hides_what_it_should_show(q, k, v, mask=None):
    """You hide the keys whose mask is True; here True means: may attend."""
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(mask, torch.finfo(scores.dtype).min)
    weights = torch.softmax(scores, dim=-1)
    return weights @ v, weights


@misconception(
    "scaled-dot-product",
    id="ATT8b",
    fails=["scaled-dot-product-mask"],
    read="03_attention#mask-before-softmax",
)
def hidden_scores_are_zero(q, k, v, mask=None):
    """You set hidden scores to 0; exp(0) = 1, so hidden keys keep a good share. They need a score
    far below all others.
    """
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, 0.0)
    weights = torch.softmax(scores, dim=-1)
    return weights @ v, weights


@misconception(
    "scaled-dot-product",
    id="ATT22",
    fails=["scaled-dot-product-mask"],
    read="03_attention#mask-before-softmax",
)
def hidden_scores_are_minus_10000(q, k, v, mask=None):
    """You hide keys with a number such as -10000, and other scores may be lower than that; take
    the lowest number of the dtype."""
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e4)
    weights = torch.softmax(scores, dim=-1)
    return weights @ v, weights


@misconception(
    "scaled-dot-product",
    id="ATT25",
    fails=["scaled-dot-product-mask"],
    read="03_attention#mask-convention",
)
def mask_gets_an_axis_for_the_heads(q, k, v, mask=None):
    """You give the mask one more axis where q, k and v have two leading ones; whoever calls shapes
    the mask, so let it broadcast as it is."""
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        if q.dim() == 4:
            mask = mask.unsqueeze(1)
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = torch.softmax(scores, dim=-1)
    if mask is not None:
        weights = weights.masked_fill(~mask, 0.0)
    return weights @ v, weights


@misconception(
    "scaled-dot-product",
    id="ATT9b",
    fails=["scaled-dot-product-mask"],
    read="03_attention#mask-before-softmax",
)
def mask_forgotten(q, k, v, mask=None):
    """Your result does not depend on the mask; masked_fill returns a new tensor, so assign it."""
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = torch.softmax(scores, dim=-1)
    return weights @ v, weights


@misconception(
    "scaled-dot-product",
    id="ATT12c",
    fails=["scaled-dot-product-empty-rows"],
    read="03_attention#fully-masked-row",
)
def nan_for_an_empty_sentence(q, k, v, mask=None):
    """A query that may see no key gets NaN: all its scores are minus infinity, and the softmax
    divides 0 by 0.
    """
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = torch.softmax(scores, dim=-1)
    return weights @ v, weights


@misconception(
    "scaled-dot-product",
    id="ATT12d",
    fails=["scaled-dot-product-empty-rows"],
    read="03_attention#fully-masked-row",
)
def nan_in_the_gradients(q, k, v, mask=None):
    """Your output is finite but its gradient is NaN for a query that may see no key: minus
    infinity was added, and the repair came after the softmax.
    """
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores + torch.zeros_like(mask, dtype=scores.dtype).masked_fill(~mask, -math.inf)
    weights = torch.nan_to_num(torch.softmax(scores, dim=-1))
    return weights @ v, weights


@misconception(
    "scaled-dot-product",
    id="ATT13",
    fails=[
        "scaled-dot-product-values",
        "scaled-dot-product-mask",
        "scaled-dot-product-empty-rows",
    ],
    read="03_attention#attention-in-numpy",
)
def all_axes_turned_around(q, k, v, mask=None):
    """k.T turns all axes around, the batch axis too; exchange the last two only, with
    transpose(-2, -1).
    """
    keys = k.permute(*reversed(range(k.ndim)))
    scores = q @ keys / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = torch.softmax(scores, dim=-1)
    return weights @ v, weights


@misconception(
    "scaled-dot-product",
    id="ATT13b",
    fails=["scaled-dot-product-values", "scaled-dot-product-mask"],
    read="03_attention#attention-in-numpy",
)
def keys_reshaped(q, k, v, mask=None):
    """You reshape k to (d_k, m), which cuts its numbers up anew; exchange the two axes with
    transpose(-2, -1), so that each column still is one key.
    """
    keys = k.reshape(*k.shape[:-2], k.shape[-1], k.shape[-2])
    scores = q @ keys / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = torch.softmax(scores, dim=-1)
    return weights @ v, weights


@misconception(
    "scaled-dot-product",
    id="ATT14",
    fails=["scaled-dot-product-values", "scaled-dot-product-empty-rows"],
    read="03_attention#queries-keys-values",
)
def keys_for_values(q, k, v, mask=None):
    """You weigh the keys and never use the values; keys say where to look, values say what to
    fetch.
    """
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = torch.softmax(scores, dim=-1)
    return weights @ k, weights


@misconception(
    "scaled-dot-product",
    id="ATT17",
    fails=["scaled-dot-product-values", "scaled-dot-product-empty-rows"],
    read="03_attention#attention-is-an-average",
)
def only_the_best_key(q, k, v, mask=None):
    """You give the best key weight 1 and the others 0; attention is a soft average, in which every
    visible key has a share.
    """
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = torch.nn.functional.one_hot(scores.argmax(-1), k.shape[-2]).to(scores.dtype)
    return weights @ v, weights


@misconception(
    "scaled-dot-product",
    id="ATT18",
    fails=["scaled-dot-product-values", "scaled-dot-product-empty-rows"],
    read="03_attention#why-scale",
)
def weights_without_gradient(q, k, v, mask=None):
    """Your numbers are right but the weights are cut off from the gradient (detach, no_grad or
    NumPy on the way), so queries and keys never learn.
    """
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = torch.softmax(scores, dim=-1).detach()
    return weights @ v, weights


@misconception(
    "scaled-dot-product",
    id="ATT10b",
    fails=["scaled-dot-product-values", "scaled-dot-product-mask"],
    read="03_attention#attention-in-numpy",
)
def scales_the_queries_in_place(q, k, v, mask=None):
    """You divide the caller's queries in place (q /= ...); every further call then starts from
    smaller queries. Make a new tensor.
    """
    q /= math.sqrt(q.shape[-1])
    scores = q @ k.transpose(-2, -1)
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = torch.softmax(scores, dim=-1)
    return weights @ v, weights


# 3.4 Two masks


@misconception(
    "masks",
    target="causal_mask",
    id="MSK1",
    fails=["masks-causal", "masks-together"],
    read="03_attention#causal-mask",
)
def earlier_positions_only(n):
    """Your causal mask leaves out the diagonal: a position may attend to itself, and without that
    the first one would see nothing.
    """
    return torch.ones(n, n, dtype=torch.bool).tril(-1)


@misconception(
    "masks",
    target="causal_mask",
    id="MSK2",
    fails=["masks-causal", "masks-together"],
    read="03_attention#causal-mask",
)
def upper_triangle(n):
    """Your mask shows each position the future and hides the past; with queries as rows, the lower
    triangle may be seen.
    """
    return torch.ones(n, n, dtype=torch.bool).triu()


@misconception(
    "masks",
    target="causal_mask",
    id="MSK3",
    fails=["masks-causal", "masks-together"],
    read="03_attention#causal-mask",
)
def one_step_ahead(n):
    """Your mask lets each position see one step ahead, which is just the token that it is to
    predict.
    """
    return torch.ones(n, n, dtype=torch.bool).tril(1)


@misconception(
    "masks",
    target="causal_mask",
    id="MSK4",
    fails=["masks-causal", "masks-together"],
    read="03_attention#mask-convention",
)
def additive_mask(n):
    """Your causal mask holds 0 and minus infinity, to be added; the course's masks are boolean,
    True = may attend.
    """
    return torch.full((n, n), -math.inf).triu(1)


@misconception(
    "masks",
    target="padding_mask",
    id="MSK5",
    fails=["masks-padding", "masks-together"],
    read="03_attention#padding-mask",
)
def true_for_padding(ids, pad_id):
    """Your padding mask is True at the padding; True means: may attend, so it should be True at
    the real tokens.
    """
    return (ids == pad_id).unsqueeze(1)


@misconception(
    "masks",
    target="padding_mask",
    id="MSK6",
    fails=["masks-padding", "masks-together"],
    read="03_attention#padding-mask",
)
def padded_queries(ids, pad_id):
    """Your padding mask is (B, N, 1): it hides the rows of padded queries, while every query still
    sees the padded keys.
    """
    return (ids != pad_id).unsqueeze(-1)


@misconception(
    "masks",
    target="padding_mask",
    id="TOK10",
    fails=["masks-padding", "masks-together"],
    read="03_attention#padding-mask",
)
def pad_id_written_out(ids, pad_id):
    """You compare with 0 whatever pad_id is; another tokenizer has another pad id, and 0 may be a
    word.
    """
    return (ids != 0).unsqueeze(1)


@misconception(
    "masks",
    target="padding_mask",
    id="MSK7",
    fails=["masks-padding", "masks-together"],
    read="03_attention#padding-mask",
)
def no_axis_for_the_queries(ids, pad_id):
    """Your padding mask is (B, N); it needs an axis of length 1 for the queries, (B, 1, N), or it
    is taken for a (queries, keys) mask.
    """
    return ids != pad_id


# 3.5 Design a head


@misconception(
    "previous-token-head",
    id="ATT30",
    fails=["previous-token-head-reads", "previous-token-head-looks"],
    read="03_attention#why-scale",
)
def scores_of_one(vocab, max_len):
    """Your scores are too close together: 1 for the right token and 0 for the others leaves
    the others most of the weight. Make the gap large, after the division by the root of d_k.
    """
    width = vocab + max_len
    w_q, w_k = torch.zeros(2, width, max_len, dtype=torch.float64)
    w_v = torch.zeros(width, vocab, dtype=torch.float64)
    gap = 1.0
    for i in range(max_len):
        w_k[vocab + i, i] = gap
        if i > 0:
            w_q[vocab + i, i - 1] = 1.0
    w_v[:vocab] = torch.eye(vocab, dtype=torch.float64)
    return w_q, w_k, w_v


@misconception(
    "previous-token-head",
    id="ATT31",
    fails=["previous-token-head-reads", "previous-token-head-looks"],
    read="03_attention#queries-keys-values",
)
def each_finds_itself(vocab, max_len):
    """Each of your tokens looks at itself: the query of a position has to be the key of the one
    before.
    """
    width = vocab + max_len
    w_q, w_k = torch.zeros(2, width, max_len, dtype=torch.float64)
    w_v = torch.zeros(width, vocab, dtype=torch.float64)
    gap = 30 * math.sqrt(max_len)
    for i in range(max_len):
        w_k[vocab + i, i] = gap
        w_q[vocab + i, i] = 1.0
    w_v[:vocab] = torch.eye(vocab, dtype=torch.float64)
    return w_q, w_k, w_v


@misconception(
    "previous-token-head",
    id="ATT32",
    fails=["previous-token-head-reads", "previous-token-head-looks"],
    read="03_attention#queries-keys-values",
)
def the_one_after(vocab, max_len):
    """Your queries look for the position after, which is hidden. Shift to the other side."""
    width = vocab + max_len
    w_q, w_k = torch.zeros(2, width, max_len, dtype=torch.float64)
    w_v = torch.zeros(width, vocab, dtype=torch.float64)
    gap = 30 * math.sqrt(max_len)
    for i in range(max_len):
        w_k[vocab + i, i] = gap
        if i + 1 < max_len:
            w_q[vocab + i, i + 1] = 1.0
    w_v[:vocab] = torch.eye(vocab, dtype=torch.float64)
    return w_q, w_k, w_v


@misconception(
    "previous-token-head",
    id="ATT33",
    fails=["previous-token-head-reads"],
    read="03_attention#queries-keys-values",
)
def position_as_value(vocab, max_len):
    """Your values carry positions, or words and positions; what should come out is the word:
    let w_v read the columns of words only.
    """
    width = vocab + max_len
    w_q, w_k = torch.zeros(2, width, max_len, dtype=torch.float64)
    w_v = torch.zeros(width, vocab, dtype=torch.float64)
    gap = 30 * math.sqrt(max_len)
    for i in range(max_len):
        w_k[vocab + i, i] = gap
        if i > 0:
            w_q[vocab + i, i - 1] = 1.0
    w_v[vocab : vocab + min(vocab, max_len)] = torch.eye(vocab, dtype=torch.float64)[:max_len]
    return w_q, w_k, w_v


@misconception(
    "previous-token-head",
    id="ATT34",
    fails=["previous-token-head-reads", "previous-token-head-looks"],
    read="03_attention#queries-keys-values",
)
def words_in_the_scores(vocab, max_len):
    """Your scores read the words as well, so a token looks at words like its own. Where to look
    depends on positions alone: leave the rows of words at 0 in w_q and w_k.
    """
    width = vocab + max_len
    gap = 30 * math.sqrt(width)
    w_q = torch.eye(width, dtype=torch.float64)
    w_k = gap * torch.eye(width, dtype=torch.float64)
    w_q[vocab:] = 0.0
    for i in range(1, max_len):
        w_q[vocab + i, vocab + i - 1] = 1.0
    w_v = torch.zeros(width, vocab, dtype=torch.float64)
    w_v[:vocab] = torch.eye(vocab, dtype=torch.float64)
    return w_q, w_k, w_v


# 3.6 Yours and a learned one


@misconception(
    "predicted-head",
    id="ATT35",
    fails=["predicted-head-made"],
    read="03_attention#queries-keys-values",
)
def no_head_predicted():
    """You have not predicted anything: return one of the texts in HEADS."""
    return


@misconception(
    "predicted-head",
    id="ATT36",
    fails=["predicted-head-made"],
    read="03_attention#queries-keys-values",
)
def a_heads_number():
    """Your prediction is a number; return one of the texts in HEADS itself."""
    return 1


@misconception(
    "predicted-head",
    id="ATT37",
    fails=["predicted-head-made"],
    read="03_attention#queries-keys-values",
)
def a_head_in_own_words():
    """Your prediction is none of the three; return one of the texts in HEADS as it stands there."""
    return "the same"


# 3.7 Find the leak


@misconception(
    "smallest-leak",
    id="ATT38",
    fails=["smallest-leak-one-ahead", "smallest-leak-others"],
    read="03_attention#incremental-property",
)
def own_row_counts(attend):
    """You count the row of the token that was changed. It may change; a leak is a change in a row
    before it.
    """
    generator = torch.Generator().manual_seed(0)
    for n in range(2, 9):
        x = torch.randn(n, 4, generator=generator, dtype=torch.float64)
        base = attend(x)
        other = x.clone()
        other[-1] += 1.0
        moved = (attend(other) - base).abs().amax(-1) > 1e-9
        if moved.any():
            return n, int(moved.int().argmax())
    return None


@misconception(
    "smallest-leak",
    id="ATT39",
    fails=["smallest-leak-others"],
    read="03_attention#incremental-property",
)
def only_the_last_token(attend):
    """You change the last token only. A row may depend on a later one that is not the last."""
    generator = torch.Generator().manual_seed(0)
    for n in range(2, 9):
        x = torch.randn(n, 4, generator=generator, dtype=torch.float64)
        base = attend(x)
        other = x.clone()
        other[-1] += 1.0
        moved = (attend(other) - base).abs().amax(-1) > 1e-9
        if moved[:-1].any():
            return n, int(moved.int().argmax())
    return None


@misconception(
    "smallest-leak",
    id="ATT40",
    fails=["smallest-leak-one-ahead", "smallest-leak-others"],
    read="03_attention#incremental-property",
)
def only_the_first_row(attend):
    """You look at row 0 only. Any row may be the one that depends on a later token."""
    generator = torch.Generator().manual_seed(0)
    for n in range(2, 9):
        x = torch.randn(n, 4, generator=generator, dtype=torch.float64)
        base = attend(x)
        for j in range(1, n):
            other = x.clone()
            other[j] += 1.0
            if (attend(other) - base)[0].abs().max() > 1e-9:
                return n, 0
    return None


@misconception(
    "smallest-leak",
    id="ATT41",
    fails=["smallest-leak-one-ahead", "smallest-leak-others"],
    read="03_attention#incremental-property",
)
def begins_with_eight(attend):
    """You begin with eight tokens. The smallest example is asked for: begin with two."""
    generator = torch.Generator().manual_seed(0)
    for n in range(8, 1, -1):
        x = torch.randn(n, 4, generator=generator, dtype=torch.float64)
        base = attend(x)
        for j in range(1, n):
            other = x.clone()
            other[j] += 1.0
            moved = (attend(other) - base).abs().amax(-1) > 1e-9
            if moved[:j].any():
                return n, int(moved.int().argmax())
    return None


@misconception(
    "smallest-leak",
    id="ATT41b",
    fails=["smallest-leak-one-ahead"],
    read="03_attention#incremental-property",
)
def up_to_seven(attend):
    """You stop at seven tokens, as range leaves its end out; eight may be needed for a leak."""
    generator = torch.Generator().manual_seed(0)
    for n in range(2, 8):
        x = torch.randn(n, 4, generator=generator, dtype=torch.float64)
        base, rows = attend(x), []
        for j in range(1, n):
            other = x.clone()
            other[j] += 1.0
            moved = (attend(other) - base).abs().amax(-1) > 1e-9
            rows += [i for i in range(j) if moved[i]]
        if rows:
            return n, min(rows)
    return None


@misconception(
    "smallest-leak",
    id="ATT41c",
    fails=["smallest-leak-others"],
    read="03_attention#incremental-property",
)
def too_coarse_a_border(attend):
    """You overlook small changes. A leak may move a result by little more than 1e-6, rounding
    moves it by less than 1e-12: take a border between the two.
    """
    generator = torch.Generator().manual_seed(0)
    for n in range(2, 9):
        x = torch.randn(n, 4, generator=generator, dtype=torch.float64)
        base, rows = attend(x), []
        for j in range(1, n):
            other = x.clone()
            other[j] = torch.randn(4, generator=generator, dtype=torch.float64)
            moved = (attend(other) - base).abs().amax(-1) > 1e-3
            rows += [i for i in range(j) if moved[i]]
        if rows:
            return n, min(rows)
    return None


@misconception(
    "smallest-leak",
    id="ATT42",
    fails=["smallest-leak-one-ahead", "smallest-leak-others"],
    read="03_attention#incremental-property",
)
def the_last_row_that_leaks(attend):
    """You return the last row that leaks, or count rows from the changed token; the first
    one is asked for.
    """
    generator = torch.Generator().manual_seed(0)
    for n in range(2, 9):
        x = torch.randn(n, 4, generator=generator, dtype=torch.float64)
        base = attend(x)
        for j in range(1, n):
            other = x.clone()
            other[j] += 1.0
            moved = (attend(other) - base).abs().amax(-1) > 1e-9
            if moved[:j].any():
                return n, j
    return None


# 3.8 Attention in blocks


@misconception(
    "merge",
    id="ATT43",
    fails=["merge-values"],
    read="03_attention#softmax-by-hand",
)
def added_as_they_are(first, second):
    """You add totals and sums that were made for different tops. Bring both to the larger
    top first, by one factor each.
    """
    top = torch.maximum(first[0], second[0])
    return top, first[1] + second[1], first[2] + second[2]


@misconception(
    "merge",
    id="ATT44",
    fails=["merge-empty"],
    read="03_attention#fully-masked-row",
)
def nothing_minus_nothing(first, second):
    """With empty blocks you take minus infinity from minus infinity, which is NaN. An empty block's
    factor is 0, whatever the other is.
    """
    top = torch.maximum(first[0], second[0])
    one, other = torch.exp(first[0] - top), torch.exp(second[0] - top)
    summed = one.unsqueeze(-1) * first[2] + other.unsqueeze(-1) * second[2]
    return top, one * first[1] + other * second[1], summed


@misconception(
    "merge",
    id="ATT45",
    fails=["merge-values", "merge-empty"],
    read="03_attention#softmax-by-hand",
)
def outputs_averaged(first, second):
    """You average outputs, or weigh the blocks alike. Each block counts by its total,
    brought to the common top.
    """
    top = torch.maximum(first[0], second[0])
    finite = torch.where(torch.isinf(top), 0.0, top)
    one, other = torch.exp(first[0] - finite), torch.exp(second[0] - finite)
    total = (one * first[1] + other * second[1]) / 2
    summed = (one.unsqueeze(-1) * first[2] + other.unsqueeze(-1) * second[2]) / 2
    return top, total, summed


@misconception(
    "merge",
    id="ATT46",
    fails=["merge-values", "merge-empty"],
    read="03_attention#softmax-by-hand",
)
def one_factor_for_all(first, second):
    """You use one top for all queries. Each query has its own."""
    top = torch.maximum(first[0], second[0]).max().expand(len(first[0]))
    finite = torch.where(torch.isinf(top), 0.0, top)
    one, other = torch.exp(first[0] - finite), torch.exp(second[0] - finite)
    total = one * first[1] + other * second[1]
    summed = one.unsqueeze(-1) * first[2] + other.unsqueeze(-1) * second[2]
    return top, total, summed


@misconception(
    "merge",
    id="ATT47",
    fails=["merge-values"],
    read="03_attention#softmax-by-hand",
)
def smaller_top(first, second):
    """You bring both blocks to the first one's top, or to the smaller. With large scores the factor
    overflows: take the larger.
    """
    top = torch.minimum(first[0], second[0])
    top = torch.where(torch.isinf(top), torch.maximum(first[0], second[0]), top)
    finite = torch.where(torch.isinf(top), 0.0, top)
    one, other = torch.exp(first[0] - finite), torch.exp(second[0] - finite)
    total = one * first[1] + other * second[1]
    summed = one.unsqueeze(-1) * first[2] + other.unsqueeze(-1) * second[2]
    return top, total, summed

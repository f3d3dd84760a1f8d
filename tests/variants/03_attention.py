"""Right answers to the exercise on attention, written differently; all must get full marks."""

import math

import torch

from lab.answers import variant

# 3.1 Two ways to score


@variant("scores", target="additive_score")
def additive_with_einsum(s, h, w1, w2, v):
    source = torch.einsum("...mi,oi->...mo", h, w1)
    state = torch.einsum("...i,oi->...o", s, w2)
    return torch.einsum("...mo,o->...m", torch.tanh(source + state[..., None, :]), v)


@variant("scores", target="additive_score")
def additive_on_joined_inputs(s, h, w1, w2, v):
    repeated = s.unsqueeze(-2).expand(*h.shape[:-1], s.shape[-1])
    joined = torch.cat([h, repeated], dim=-1)
    hidden = torch.nn.functional.linear(joined, torch.cat([w1, w2], dim=1)).tanh()
    return (hidden * v).sum(-1)


@variant("scores", target="additive_score")
def additive_state_by_state(s, h, w1, w2, v):
    columns = [
        torch.tanh(h[..., i, :] @ w1.T + s @ w2.T) @ v.unsqueeze(-1) for i in range(h.shape[-2])
    ]
    return torch.cat(columns, dim=-1)


@variant("scores", target="multiplicative_score")
def multiplicative_with_einsum(s, h, w):
    return torch.einsum("...i,ij,...mj->...m", s, w, h)


@variant("scores", target="multiplicative_score")
def multiplicative_from_the_other_side(s, h, w):
    return torch.matmul(h @ w.T, s[..., None])[..., 0]


@variant("scores", target="multiplicative_score")
def multiplicative_with_broadcasting(s, h, w):
    return (torch.matmul(s, w).unsqueeze(-2) * h).sum(dim=-1)


# 3.2 A softmax that can leave keys out


@variant("masked-softmax")
def minus_infinity_repaired(scores, mask=None):
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    e = (scores - scores.max(dim=-1, keepdim=True).values).exp()
    return torch.nan_to_num(e / e.sum(-1, keepdim=True))


@variant("masked-softmax")
def filled_by_the_size_of_the_dtype(scores, mask=None):
    if mask is not None:
        scores = torch.where(
            mask, scores, torch.full_like(scores, -1e4 if scores.dtype == torch.float16 else -1e30)
        )
    e = torch.exp(scores - scores.max(-1, keepdim=True)[0])
    return e / e.sum(-1, keepdim=True)


@variant("masked-softmax")
def through_logsumexp(scores, mask=None):
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return torch.exp(scores - torch.logsumexp(scores, dim=-1, keepdim=True))


@variant("masked-softmax")
def added_large_negative_number(scores, mask=None):
    if mask is not None:
        scores = scores + (~mask).to(scores.dtype) * -1e9
    largest = torch.amax(scores, dim=-1, keepdim=True).detach()
    e = torch.exp(scores - largest)
    return e / e.sum(dim=-1, keepdim=True)


@variant("masked-softmax")
def counts_only_visible_keys(scores, mask=None):
    if mask is None:
        mask = torch.ones_like(scores, dtype=torch.bool)
    low = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    e = torch.exp(low - low.amax(-1, keepdim=True)) * mask
    total = e.sum(-1, keepdim=True)
    return e / torch.where(total > 0, total, torch.ones_like(total))


# 3.3 Scaled dot-product attention


@variant("scaled-dot-product")
def attention_with_einsum(q, k, v, mask=None):
    scores = torch.einsum("...nd,...md->...nm", q, k) * q.shape[-1] ** -0.5
    if mask is not None:
        scores = torch.where(mask, scores, -1e9)
    weights = scores.softmax(-1)
    return torch.einsum("...nm,...mv->...nv", weights, v), weights


@variant("scaled-dot-product")
def minus_infinity_then_zeros(q, k, v, mask=None):
    scores = torch.matmul(q, k.mT) / (k.size(-1) ** 0.5)
    if mask is not None:
        scores = scores.masked_fill(mask == 0, float("-inf"))
    weights = torch.nn.functional.softmax(scores, dim=-1)
    if mask is not None:
        weights = torch.nan_to_num(weights, nan=0.0)
    return weights.matmul(v), weights


@variant("scaled-dot-product")
def scales_the_queries_first(q, k, v, mask=None):
    q = q / math.sqrt(q.shape[-1])
    scores = q @ k.swapaxes(-1, -2)
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = torch.softmax(scores, -1)
    return weights @ v, weights


@variant("scaled-dot-product")
def adds_a_bias(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        bias = torch.zeros(mask.shape, dtype=scores.dtype).masked_fill(~mask, -1e9)
        scores = scores + bias
    scores = scores - scores.amax(-1, keepdim=True)
    weights = scores.exp() / scores.exp().sum(-1, keepdim=True)
    return weights @ v, weights


@variant("scaled-dot-product")
def output_from_torch(q, k, v, mask=None):
    output = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return output, torch.softmax(scores, dim=-1)


@variant("scaled-dot-product")
def fills_its_own_scores_in_place(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1)
    scores /= math.sqrt(q.shape[-1])
    if mask is not None:
        scores.masked_fill_(~mask, torch.finfo(scores.dtype).min)
    weights = torch.softmax(scores, dim=-1)
    return weights @ v, weights


@variant("scaled-dot-product")
def one_query_at_a_time(q, k, v, mask=None):
    rows = []
    for i in range(q.shape[-2]):
        row = (k * q[..., i : i + 1, :]).sum(-1) / math.sqrt(q.shape[-1])
        if mask is not None:
            seen = mask if mask.shape[-2] == 1 else mask[..., i : i + 1, :]
            row = row.masked_fill(~seen[..., 0, :], torch.finfo(row.dtype).min)
        rows.append(torch.softmax(row, -1))
    weights = torch.stack(rows, dim=-2)
    return weights @ v, weights


# 3.4 Two masks


@variant("masks", target="causal_mask")
def causal_by_comparison(n):
    positions = torch.arange(n)
    return positions[None, :] <= positions[:, None]


@variant("masks", target="causal_mask")
def causal_as_not_the_future(n):
    return ~torch.triu(torch.ones(n, n), diagonal=1).bool()


@variant("masks", target="causal_mask")
def causal_by_loops(n):
    mask = torch.zeros((n, n), dtype=torch.bool)
    for i in range(n):
        mask[i, : i + 1] = True
    return mask


@variant("masks", target="padding_mask")
def padding_by_index(ids, pad_id):
    return (ids != pad_id)[:, None, :]


@variant("masks", target="padding_mask")
def padding_by_negation(ids, pad_id):
    return ids.eq(pad_id).logical_not().view(ids.shape[0], 1, -1)


@variant("masks", target="padding_mask")
def padding_by_loops(ids, pad_id):
    return torch.tensor([[[token != pad_id for token in row]] for row in ids.tolist()])


# 3.5 A self-attention head


@variant("self-attention")
def head_from_torch(x, w_q, w_k, w_v, mask=None):
    return torch.nn.functional.scaled_dot_product_attention(x @ w_q, x @ w_k, x @ w_v, mask)


@variant("self-attention")
def head_with_einsum(x, w_q, w_k, w_v, mask=None):
    q, k, v = (torch.einsum("bnd,de->bne", x, w) for w in (w_q, w_k, w_v))
    scores = torch.einsum("bne,bme->bnm", q, k) / math.sqrt(k.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    return scores.softmax(-1).bmm(v)


@variant("self-attention")
def head_with_one_product(x, w_q, w_k, w_v, mask=None):
    d_k, d_v = w_q.shape[1], w_v.shape[1]
    q, k, v = (x @ torch.cat([w_q, w_k, w_v], dim=1)).split([d_k, d_k, d_v], dim=-1)
    scores = q.bmm(k.transpose(1, 2)) * d_k**-0.5
    if mask is not None:
        scores = torch.where(mask, scores, -1e9)
    return torch.softmax(scores, 2) @ v


@variant("self-attention")
def head_sentence_by_sentence(x, w_q, w_k, w_v, mask=None):
    outputs = []
    for b, rows in enumerate(x):
        scores = (rows @ w_q) @ (rows @ w_k).T / w_q.shape[1] ** 0.5
        if mask is not None:
            seen = mask if mask.ndim == 2 else mask[b]
            scores = scores.masked_fill(~seen, float("-inf"))
        outputs.append(torch.softmax(scores, -1) @ (rows @ w_v))
    return torch.stack(outputs)

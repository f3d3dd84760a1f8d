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


@variant("masked-softmax")
def with_a_slope_of_its_own(scores, mask=None):
    class Shares(torch.autograd.Function):
        @staticmethod
        def forward(scores, mask):
            low = scores if mask is None else torch.where(mask, scores, -1e4 - scores.abs().max())
            e = (low - low.amax(-1, keepdim=True)).exp()
            return e / e.sum(-1, keepdim=True)

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(output)

        @staticmethod
        def backward(ctx, slope):
            (shares,) = ctx.saved_tensors
            return shares * (slope - (slope * shares).sum(-1, keepdim=True)), None

    return Shares.apply(scores, mask)


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


# 3.5 Design a head


@variant("previous-token-head")
def by_shifted_identities(vocab, max_len):
    eye = torch.eye(max_len, dtype=torch.float64)
    words = torch.zeros(vocab, max_len, dtype=torch.float64)
    w_k = torch.cat([words, eye])
    w_q = torch.cat([words, 50 * max_len**0.5 * eye.roll(-1, 1).tril()])
    w_q[vocab:] = 50 * max_len**0.5 * torch.diag(torch.ones(max_len - 1).double(), -1)
    w_v = torch.cat([torch.eye(vocab, dtype=torch.float64), torch.zeros(max_len, vocab).double()])
    return w_q, w_k, w_v


@variant("previous-token-head")
def by_angles(vocab, max_len):
    angles = torch.arange(max_len, dtype=torch.float64) * math.pi / max_len
    here = torch.stack([angles.cos(), angles.sin()], 1)
    before = torch.stack([(angles - angles[1]).cos(), (angles - angles[1]).sin()], 1)
    nothing = torch.zeros(vocab, 2, dtype=torch.float64)
    large = 100.0 * max_len**2
    w_v = torch.eye(vocab + max_len, dtype=torch.float64)[:, :vocab]
    return torch.cat([nothing, large * before]), torch.cat([nothing, here]), w_v


@variant("previous-token-head")
def with_parabolas(vocab, max_len):
    place = torch.arange(max_len, dtype=torch.float64)
    ones = torch.ones(max_len, dtype=torch.float64)
    nothing = torch.zeros(vocab, 3, dtype=torch.float64)
    q = 60 * torch.stack([2 * (place - 1), -ones, 0 * ones], 1)  # - (j - (i - 1)) ** 2, and more
    k = torch.stack([place, place**2, ones], 1)
    w_v = torch.zeros(vocab + max_len, vocab, dtype=torch.float64)
    w_v[range(vocab), range(vocab)] = 1.0
    return torch.cat([nothing, q]), torch.cat([nothing, k]), w_v


# 3.6 Yours and a learned one


@variant("predicted-head")
def the_same_matrices():
    return "the same map of weights, by the same matrices"


@variant("predicted-head")
def another_map():
    return "another map of weights"


@variant("predicted-head")
def the_second_of_them():
    heads = ("", "the same map of weights, by other matrices")
    return heads[1]


# 3.7 Find the leak


@variant("smallest-leak")
def by_gradients(attend):
    torch.manual_seed(3)
    for n in range(1, 9):
        x = torch.randn(n, 4, dtype=torch.float64, requires_grad=True)
        result = attend(x)
        for i in range(n - 1):
            (gradient,) = torch.autograd.grad(result[i].sum(), x, retain_graph=True)
            if gradient[i + 1 :].abs().max() > 1e-8:
                return n, i
    return None


@variant("smallest-leak")
def by_cutting_off(attend):
    x = torch.linspace(-1, 2, 32, dtype=torch.float64).cos().view(8, 4) * 3
    for n in range(2, 9):
        for i in range(n - 1):
            changed = x[:n].clone()
            changed[i + 1 :] = -changed[i + 1 :] + 0.5
            if not torch.allclose(attend(changed)[i], attend(x[:n])[i], atol=1e-9, rtol=0):
                return (n, i)
    return None


@variant("smallest-leak")
def as_a_list(attend):
    x = torch.randn(8, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(5))
    for n in range(2, 9):
        base, rows = attend(x[:n]), []
        for j in range(1, n):
            y = x[:n].clone()
            y[j] *= -2
            moved = (attend(y) - base).abs().sum(-1)
            rows += [i for i in range(j) if moved[i] > 1e-8]
        if rows:
            return [n, min(rows)]
    return None


# 3.8 Attention in blocks


@variant("merge")
def by_logarithms(first, second):
    (a, s, u), (b, t, w) = first, second
    top = torch.where(a > b, a, b)
    left = torch.where(torch.isinf(a), 0.0, (a - top).exp())
    right = torch.where(torch.isinf(b), 0.0, (b - top).exp())
    return top, left * s + right * t, left[:, None] * u + right[:, None] * w


@variant("merge")
def query_by_query(first, second):
    tops, totals, sums = [], [], []
    for a, s, u, b, t, w in zip(*first, *second, strict=True):
        top = max(a, b)
        f = torch.exp(a - top) if a > -math.inf else torch.zeros_like(top)
        g = torch.exp(b - top) if b > -math.inf else torch.zeros_like(top)
        tops.append(top)
        totals.append(f * s + g * t)
        sums.append(f * u + g * w)
    return torch.stack(tops), torch.stack(totals), torch.stack(sums)


@variant("merge")
def stacked(first, second):
    tops, totals, sums = (torch.stack(pair) for pair in zip(first, second, strict=True))
    top = tops.amax(0)
    factors = torch.nan_to_num(torch.exp(tops - top), nan=0.0)
    return top, (factors * totals).sum(0), (factors.unsqueeze(-1) * sums).sum(0)

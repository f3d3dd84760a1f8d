"""Right answers to the exercise on the Reformer that are written differently."""

import math

import torch
import torch.nn.functional as F

from lab.answers import variant

# 15.1 A hash for directions


@variant("hash-buckets")
def by_size_and_sign(x, turns):
    turned = torch.tensordot(x, turns, dims=1).transpose(1, 2)
    place = turned.abs().argmax(-1)
    is_below = turned.gather(-1, place[..., None])[..., 0] < 0
    return place + turns.shape[2] * is_below


@variant("hash-buckets")
def round_by_round(x, turns):
    rounds = []
    for r in range(turns.shape[1]):
        turned = x @ turns[:, r]
        rounds.append(torch.cat((turned, -turned), -1).max(-1).indices)
    return torch.stack(rounds, dim=1)


@variant("hash-buckets")
def with_the_negative_matrix(x, turns):
    both = torch.cat([turns, -turns], dim=2).flatten(1)
    return (x @ both).unflatten(-1, (turns.shape[1], -1)).argmax(-1).mT


# 15.2 How often do two meet?


@variant("predicted-meeting")
def right_at_once():
    return "about 1 in 3"


@variant("predicted-meeting")
def by_chance():
    return "about 1 in 8"


@variant("predicted-meeting")
def often():
    return "about 3 in 4"


@variant("measured-meetings")
def with_another_seed():
    once = {-1.0: 0.0, -0.5: 0.031, 0.0: 0.126, 0.5: 0.311, 0.75: 0.489, 0.9: 0.66, 1.0: 1.0}
    four = {-1.0: 0.0, -0.5: 0.12, 0.0: 0.415, 0.5: 0.775, 0.75: 0.932, 0.9: 0.985, 1.0: 1.0}
    return {"four": four, "once": once}


@variant("measured-meetings")
def ends_as_whole_numbers():
    once = {-1: 0, -0.5: 0.029, 0: 0.125, 0.5: 0.317, 0.75: 0.487, 0.9: 0.658, 1: 1}
    four = {-1: 0, -0.5: 0.111, 0: 0.409, 0.5: 0.776, 0.75: 0.93, 0.9: 0.986, 1: 1}
    return {"once": once, "four": four}


@variant("measured-meetings")
def in_another_order():
    cosines = (1.0, 0.9, 0.75, 0.5, 0.0, -0.5, -1.0)
    once = dict(zip(cosines, (1.0, 0.657, 0.488, 0.313, 0.125, 0.03, 0.0), strict=True))
    return {"once": once, "four": {c: 1 - (1 - p) ** 4 for c, p in once.items()}}


# 15.3 One vector asks and answers


@variant("shared-attention")
def almost_hidden(qk, v, causal):
    """As published: a token's own score is very small, so that it counts only alone."""
    n = qk.shape[1]
    own = torch.eye(n, dtype=torch.bool)
    scores = qk @ (qk / qk.norm(dim=-1, keepdim=True)).mT * qk.shape[-1] ** -0.5
    ahead = torch.ones(n, n, dtype=torch.bool).triu(1) if causal else ~own & own
    others = (~ahead & ~own).any(-1)
    hidden = ahead | (own & others[:, None])
    scores = torch.where(hidden, torch.tensor(-torch.inf).to(scores), scores)
    top = scores.amax(-1, keepdim=True).detach()
    parts = (scores - top).exp()
    total = parts.sum(-1, keepdim=True)
    return parts / total @ v, (total.log() + top)[..., 0]


@variant("shared-attention")
def token_by_token(qk, v, causal):
    n = qk.shape[1]
    keys = F.normalize(qk, dim=2)
    outputs, sums = [], []
    for i in range(n):
        places = [j for j in range(n) if j != i and (j < i or not causal)] or [i]
        scores = torch.einsum("bd,bkd->bk", qk[:, i], keys[:, places]) / math.sqrt(qk.shape[2])
        outputs.append(torch.einsum("bk,bke->be", torch.softmax(scores, 1), v[:, places]))
        sums.append(torch.logsumexp(scores, 1))
    return torch.stack(outputs, 1), torch.stack(sums, 1)


@variant("shared-attention")
def by_added_mask(qk, v, causal):
    n = qk.shape[1]
    added = torch.zeros(n, n).to(qk)
    if causal:
        added = added.masked_fill(torch.ones(n, n).bool().triu(), -torch.inf)
        added[0, 0] = 0
    elif n > 1:
        added.fill_diagonal_(-torch.inf)
    sizes = qk.pow(2).sum(-1).sqrt()
    scores = torch.einsum("bid,bjd->bij", qk, qk) / sizes[:, None] / qk.shape[-1] ** 0.5 + added
    return F.softmax(scores, -1) @ v, torch.logsumexp(scores, dim=-1)


# 15.4 Sort, cut, look back


@variant("lsh-round")
def whole_matrix(qk, v, buckets, length):
    n = qk.shape[1]
    place = torch.arange(n)
    chunk = (buckets * n + place).argsort(1).argsort(1) // length
    near = (chunk[:, :, None] - chunk[:, None]).clamp(min=-1)
    same = buckets[:, :, None] == buckets[:, None]
    others = same & (near >= 0) & (near <= 1) & (place < place[:, None])
    seen = torch.where(others.any(-1, keepdim=True), others, torch.eye(n).bool())
    scores = qk @ F.normalize(qk, dim=-1).mT / qk.shape[-1] ** 0.5
    scores = scores.masked_fill(~seen, -torch.inf)
    return scores.softmax(-1) @ v, scores.logsumexp(-1)


@variant("lsh-round")
def token_after_token(qk, v, buckets, length):
    outputs, sums = torch.zeros_like(v), torch.zeros_like(qk[..., 0])
    rows = []
    keys = qk / qk.norm(dim=-1, keepdim=True)
    for b in range(len(qk)):
        names = buckets[b].tolist()
        order = sorted(range(len(names)), key=names.__getitem__)
        found = {}
        for at, i in enumerate(order):
            start = max(0, (at // length - 1) * length)
            near = [j for j in order[start:at] if names[j] == names[i]] or [i]
            scores = keys[b, near] @ qk[b, i] / math.sqrt(qk.shape[-1])
            found[i] = (scores.softmax(0) @ v[b, near], scores.logsumexp(0))
        rows.append([found[i] for i in range(len(names))])
    outputs = torch.stack([torch.stack([one for one, _ in row]) for row in rows])
    sums = torch.stack([torch.stack([one for _, one in row]) for row in rows])
    return outputs, sums


@variant("lsh-round")
def chunk_after_chunk(qk, v, buckets, length):
    """The mask may go by the sorted row where buckets are compared: within one the orders agree."""
    n = qk.shape[1]
    rows = torch.arange(len(qk)).unsqueeze(1)
    order = (n * buckets + torch.arange(n)).argsort(1)
    q, values, names = qk[rows, order], v[rows, order], buckets[rows, order]
    keys = F.normalize(q, dim=-1)
    outputs, sums = [], []
    for start in range(0, n, length):
        first, end = max(0, start - length), min(n, start + length)
        seen = torch.arange(first, end) < torch.arange(start, end)[:, None]
        seen = seen & (names[:, start:end, None] == names[:, None, first:end])
        own = torch.arange(first, end) == torch.arange(start, end)[:, None]
        seen = seen | (own & ~seen.any(-1, keepdim=True))
        scores = q[:, start:end] @ keys[:, first:end].mT / math.sqrt(q.shape[-1])
        scores = scores.masked_fill(~seen, -torch.inf)
        outputs.append(scores.softmax(-1) @ values[:, first:end])
        sums.append(scores.logsumexp(-1))
    back = order.argsort(1)
    return torch.cat(outputs, 1)[rows, back], torch.cat(sums, 1)[rows, back]


# 15.5 Several rounds, one answer


@variant("combined")
def largest_taken_off(outputs, log_sums):
    top = log_sums.max(0).values
    parts = torch.exp(log_sums - top)
    total = parts.sum(0)
    return torch.einsum("rbn,rbnd->bnd", parts / total, outputs), top + total.log()


@variant("combined")
def one_after_the_other(outputs, log_sums):
    output, log_sum = outputs[0], log_sums[0]
    for other, its_sum in zip(outputs[1:], log_sums[1:], strict=True):
        both = torch.logaddexp(log_sum, its_sum)
        output = (
            output * (log_sum - both).exp()[..., None] + other * (its_sum - both).exp()[..., None]
        )
        log_sum = both
    return output, log_sum


@variant("combined")
def shares_by_logsumexp(outputs, log_sums):
    total = log_sums.logsumexp(0)
    return ((log_sums - total).exp().unsqueeze(-1) * outputs).sum(dim=0), total


# 15.6 Four mistakes that learn


@variant("hash-leaks")
def as_pairs():
    return dict(zip(("long", "strangers", "mixed", "rounds"), (11, 6, 13, 19), strict=True))


@variant("hash-leaks")
def by_name():
    return {"rounds": 19, "mixed": 13, "strangers": 6, "long": 11}


@variant("hash-leaks")
def in_two_steps():
    lines = {"long": 11, "strangers": 6}
    lines |= {"mixed": 13, "rounds": 19}
    return lines


# 15.7 There and back


@variant("undo")
def by_backward(f, g, w_f, w_g, y1, y2, dy1, dy2):
    def through(part, at, weights, slope):
        at = at.detach().clone().requires_grad_(True)
        weights = weights.detach().clone().requires_grad_(True)
        with torch.set_grad_enabled(True):
            value = part(at, weights)
        value.backward(slope)
        return value.detach(), at.grad, weights.grad

    value, to_y1, dw_g = through(g, y1, w_g, dy2)
    x2 = y2.detach() - value
    dx1 = dy1 + to_y1
    value, to_x2, dw_f = through(f, x2, w_f, dx1)
    return y1.detach() - value, x2, dx1, dy2 + to_x2, dw_f, dw_g


@variant("undo")
def inputs_first(f, g, w_f, w_g, y1, y2, dy1, dy2):
    """Find the inputs, then run the block once more and let autograd do the rest."""
    with torch.no_grad():
        x2 = y2 - g(y1, w_g)
        x1 = y1 - f(x2, w_f)
    with torch.enable_grad():
        leaves = [one.detach().clone().requires_grad_() for one in (x1, x2, w_f, w_g)]
        one = leaves[0] + f(leaves[1], leaves[2])
        two = leaves[1] + g(one, leaves[3])
        slopes = torch.autograd.grad((one, two), leaves, (dy1, dy2))
    return x1, x2, *slopes


@variant("undo")
def one_grad_for_both(f, g, w_f, w_g, y1, y2, dy1, dy2):
    def called(part, at, weights):
        with torch.enable_grad():
            leaves = (at.detach().requires_grad_(), weights.detach().requires_grad_())
            return leaves, part(*leaves)

    leaves, added = called(g, y1, w_g)
    to_y1, dw_g = (one.detach() for one in torch.autograd.grad(added, leaves, dy2))
    x2 = (y2 - added).detach()
    leaves, added = called(f, x2.clone(), w_f)
    to_x2, dw_f = torch.autograd.grad([added], leaves, [dy1 + to_y1])
    return (y1 - added).detach(), x2, to_y1 + dy1, to_x2 + dy2, dw_f, dw_g


# 15.8 The same dice


@variant("replay")
def forked(f, x, state):
    with torch.random.fork_rng():
        torch.random.set_rng_state(state)
        return f(x)


@variant("replay")
def forked_on_the_processor(f, x, state):
    with torch.random.fork_rng(devices=[]):
        torch.set_rng_state(state.clone())
        return f(x)


@variant("replay")
def by_the_default_generator(f, x, state):
    generator = torch.default_generator
    kept = generator.get_state()
    try:
        generator.set_state(state)
        result = f(x)
    finally:
        generator.set_state(kept)
    return result


@variant("predicted-drift")
def none_at_all():
    return "not at all"


@variant("predicted-drift")
def some():
    return "by about 1e-4"


@variant("predicted-drift")
def large():
    return "by about 1"


# 15.10 Exact, in blocks


@variant("block-slopes")
def by_einsum(q, k, v, o, z, do):
    scale = q.shape[1] ** -0.5
    p = torch.exp(scale * torch.einsum("id,jd->ij", q, k) - z.unsqueeze(1))
    dp = torch.einsum("ie,je->ij", do, v)
    mean = torch.einsum("ie,ie->i", do, o)
    ds = scale * p * (dp - mean.unsqueeze(1))
    return (
        torch.einsum("ij,jd->id", ds, k),
        torch.einsum("ij,id->jd", ds, q),
        torch.einsum("ij,ie->je", p, do),
    )


@variant("block-slopes")
def key_by_key(q, k, v, o, z, do):
    size = math.sqrt(q.shape[-1])
    dq, dk, dv = torch.zeros_like(q), [], []
    for key, value in zip(k, v, strict=True):
        p = (q @ key / size - z).exp()
        ds = p * ((value - o) * do).sum(-1) / size
        dq = dq + ds[:, None] * key
        dk.append(ds @ q)
        dv.append(p @ do)
    return dq, torch.stack(dk), torch.stack(dv)


@variant("block-slopes")
def by_functions(q, k, v, o, z, do):
    size = math.sqrt(q.shape[-1])
    p = (F.linear(q, k) / size - z.unsqueeze(-1)).exp()
    ds = p * (F.linear(do, v) - (do * o).sum(-1, keepdim=True)) / size
    return F.linear(ds, k.T), F.linear(ds.T, q.T), F.linear(p.T, do.T)


@variant("block-slopes")
def scaled_queries(q, k, v, o, z, do):
    small = q / math.sqrt(q.shape[-1])
    p = torch.exp(small @ k.T - z.reshape(-1, 1))
    ds = p * ((do @ v.T) - (do * o).sum(1).reshape(-1, 1))
    return ds @ k / math.sqrt(q.shape[-1]), ds.T @ small, p.T @ do

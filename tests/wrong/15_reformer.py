"""Wrong answers to the exercise on the Reformer that nobody gets a name for; all must lose."""

import math

import torch
import torch.nn.functional as F

from lab.answers import variant


@variant("hash-buckets")
def first_row_for_all(x, turns):
    turned = torch.einsum("bnd,drh->brnh", x[:1].expand_as(x), turns)
    return torch.cat([turned, -turned], dim=-1).argmax(-1)


@variant("shared-attention")
def first_token_for_the_alone(qk, v, causal):
    n = qk.shape[1]
    scores = qk @ F.normalize(qk, dim=-1).mT / math.sqrt(qk.shape[-1])
    seen = torch.ones(n, n, dtype=torch.bool).tril(-1)
    seen = seen if causal else seen | seen.mT
    seen = torch.cat([seen[:, :1] | ~seen.any(-1, keepdim=True), seen[:, 1:]], dim=1)
    scores = scores.masked_fill(~seen, -torch.inf)
    return scores.softmax(-1) @ v, scores.logsumexp(-1).clamp(min=0)


@variant("lsh-round")
def last_chunk_dropped(qk, v, buckets, length):
    n = qk.shape[1]
    at = torch.sort(buckets, dim=1, stable=True).indices.argsort(1)
    chunk = at // length
    seen = (buckets[:, :, None] == buckets[:, None]) & torch.ones(n, n).bool().tril(-1)
    seen = seen & ((chunk[:, :, None] - chunk[:, None]).abs() <= 1)
    seen = seen & (at < n - n % length)[:, None]
    seen = seen | (torch.eye(n).bool() & ~seen.any(-1, keepdim=True))
    scores = qk @ F.normalize(qk, dim=-1).mT / math.sqrt(qk.shape[-1])
    scores = scores.masked_fill(~seen, -torch.inf)
    return scores.softmax(-1) @ v, scores.logsumexp(-1)


@variant("lsh-round")
def whole_text_within_a_bucket(qk, v, buckets, length):
    n = qk.shape[1]
    seen = (buckets[:, :, None] == buckets[:, None]) & torch.ones(n, n).bool().tril(-1)
    seen = seen | (torch.eye(n).bool() & ~seen.any(-1, keepdim=True))
    scores = qk @ F.normalize(qk, dim=-1).mT / math.sqrt(qk.shape[-1])
    scores = scores.masked_fill(~seen, -torch.inf)
    return scores.softmax(-1) @ v, scores.logsumexp(-1)


@variant("combined")
def two_rounds_only(outputs, log_sums):
    shares = log_sums[:2].softmax(0)
    return (shares[..., None] * outputs[:2]).sum(0), log_sums[:2].logsumexp(0)


@variant("undo")
def slopes_of_the_first_row(f, g, w_f, w_g, y1, y2, dy1, dy2):
    x2 = y2 - g(y1, w_g)
    x1 = y1 - f(x2, w_f)
    return x1.detach(), x2.detach(), dy1, dy2, torch.zeros_like(w_f), torch.zeros_like(w_g)


@variant("replay")
def next_draws_fixed(f, x, state):
    torch.set_rng_state(state)
    try:
        return f(x)
    finally:
        torch.manual_seed(0)


@variant("block-slopes")
def keys_and_values_only(q, k, v, o, z, do):
    size = math.sqrt(q.shape[-1])
    p = (q @ k.mT / size - z[:, None]).exp()
    ds = p * (do @ v.mT - (do * o).sum(-1, keepdim=True)) / size
    return torch.zeros_like(q), ds.mT @ q, p.mT @ do


@variant("shared-attention")
def hidden_by_a_number(qk, v, causal):
    n = qk.shape[1]
    scores = qk @ F.normalize(qk, dim=-1).mT / math.sqrt(qk.shape[-1])
    itself = torch.eye(n, dtype=torch.bool)
    seen = torch.ones(n, n, dtype=torch.bool).tril(-1) if causal else ~itself
    seen = seen | (itself & ~seen.any(-1, keepdim=True))
    scores = scores.masked_fill(~seen, -1e4)
    return scores.softmax(-1) @ v, scores.logsumexp(-1)


@variant("undo")
def given_tensors_require_gradients(f, g, w_f, w_g, y1, y2, dy1, dy2):
    with torch.enable_grad():
        added = g(y1.requires_grad_(), w_g.requires_grad_())
        through_g, dw_g = torch.autograd.grad(added, (y1, w_g), dy2)
        x2, dx1 = (y2 - added).detach().requires_grad_(), (dy1 + through_g).detach()
        added = f(x2, w_f.requires_grad_())
        through_f, dw_f = torch.autograd.grad(added, (x2, w_f), dx1)
    x1, dx2 = (y1 - added).detach(), (dy2 + through_f).detach()
    return x1, x2.detach(), dx1, dx2, dw_f, dw_g


@variant("replay")
def left_in_its_state_by_errors(f, x, state):
    now = torch.get_rng_state()
    torch.set_rng_state(state)
    found = f(x)
    torch.set_rng_state(now)
    return found


@variant("block-slopes")
def by_differences_of_eight_places(q, k, v, o, z, do):
    def at(q, k):
        p = (q @ k.mT / math.sqrt(q.shape[-1]) - z[:, None]).exp()
        return (do * (p @ v - o * p.sum(-1, keepdim=True))).sum()

    def slope(f, x, step=0.03):
        found = torch.zeros_like(x)
        for place in torch.eye(x.numel(), dtype=x.dtype).view(-1, *x.shape):
            for n, c in ((1, 4 / 5), (2, -1 / 5), (3, 4 / 105), (4, -1 / 280)):
                rise = f(x + n * step * place) - f(x - n * step * place)
                found += c * rise / step * place
        return found

    p = (q @ k.mT / math.sqrt(q.shape[-1]) - z[:, None]).exp()
    return slope(lambda one: at(one, k), q), slope(lambda one: at(q, one), k), p.mT @ do

"""Wrong answers to the exercise on the Reformer, as students write them, and what each shows."""

import math

import torch
import torch.nn.functional as F

from lab.answers import misconception

# 15.1 A hash for directions


@misconception(
    "hash-buckets",
    id="RF1",
    fails=["hash-buckets-values", "hash-buckets-directions"],
    read="15_reformer#lsh-hash",
)
def half_of_the_directions(x, turns):
    """You look for the largest of the products alone; their negatives are directions, too."""
    return torch.einsum("bnd,drh->brnh", x, turns).argmax(-1)


@misconception(
    "hash-buckets",
    id="RF2",
    fails=["hash-buckets-values", "hash-buckets-directions"],
    read="15_reformer#lsh-hash",
)
def largest_size(x, turns):
    """You look for the largest size, so a vector and its opposite share a bucket."""
    return torch.einsum("bnd,drh->brnh", x, turns).abs().argmax(-1)


@misconception(
    "hash-buckets",
    id="RF3",
    fails=["hash-buckets-values"],
    read="15_reformer#lsh-hash",
)
def negatives_first(x, turns):
    """You put the negatives first: bucket 0 belongs to the first column itself."""
    turned = torch.einsum("bnd,drh->brnh", x, turns)
    return torch.cat([-turned, turned], dim=-1).argmax(-1)


@misconception(
    "hash-buckets",
    id="RF4",
    fails=["hash-buckets-values"],
    read="15_reformer#lsh-hash",
)
def one_matrix_for_all_rounds(x, turns):
    """You hash by the first matrix in all rounds: another round then finds nothing new."""
    turned = torch.einsum("bnd,drh->brnh", x, turns[:, :1].expand_as(turns))
    return torch.cat([turned, -turned], dim=-1).argmax(-1)


@misconception(
    "hash-buckets",
    id="RF5",
    fails=["hash-buckets-values", "hash-buckets-directions"],
    read="15_reformer#lsh-hash",
)
def rounds_last(x, turns):
    """Your rounds stand last; (B, R, n) is asked for."""
    turned = torch.einsum("bnd,drh->bnrh", x, turns)
    return torch.cat([turned, -turned], dim=-1).argmax(-1)


@misconception(
    "hash-buckets",
    id="RF6",
    fails=["hash-buckets-values", "hash-buckets-directions"],
    read="15_reformer#lsh-hash",
)
def signs_as_digits(x, turns):
    """You make a number of all signs, another hash; the largest entry's place is asked for."""
    signs = torch.einsum("bnd,drh->brnh", x, turns) > 0
    return (signs * 2 ** torch.arange(signs.shape[-1])).sum(-1)


# 15.2 How often do two meet?


@misconception(
    "predicted-meeting",
    id="RF7",
    fails=["predicted-meeting-made"],
    read="15_reformer#lsh-hash",
)
def as_a_number():
    """You predict a number; one of the texts in CHANCES is asked for."""
    return 0.5


@misconception(
    "predicted-meeting",
    id="RF8",
    fails=["predicted-meeting-made"],
    read="15_reformer#lsh-hash",
)
def own_words():
    """A prediction in other words than those of CHANCES cannot be compared."""
    return "1 in 2"


@misconception(
    "predicted-meeting",
    id="RF9",
    fails=["predicted-meeting-made"],
    read="15_reformer#lsh-hash",
)
def all_of_them():
    """All choices at once are no prediction."""
    return ["about 1 in 8", "about 1 in 3", "about 1 in 2", "about 3 in 4"]


@misconception(
    "measured-meetings",
    id="RF10",
    fails=["measured-meetings-consistent"],
    read="15_reformer#lsh-hash",
)
def as_a_line_has_it():
    """These are chances of two buckets, 1 less the angle's share; eight part more pairs."""
    once = {-1.0: 0.0, -0.5: 0.333, 0.0: 0.5, 0.5: 0.667, 0.75: 0.77, 0.9: 0.856, 1.0: 1.0}
    return {"once": once, "four": {c: round(1 - (1 - p) ** 4, 3) for c, p in once.items()}}


@misconception(
    "measured-meetings",
    id="RF11",
    fails=["measured-meetings-consistent"],
    read="15_reformer#lsh-rounds",
)
def four_times_as_often():
    """You multiply by four; two that meet in several rounds are counted once."""
    once = {-1.0: 0.0, -0.5: 0.03, 0.0: 0.124, 0.5: 0.315, 0.75: 0.485, 0.9: 0.657, 1.0: 1.0}
    return {"once": once, "four": {c: round(min(1.0, 4 * p), 3) for c, p in once.items()}}


@misconception(
    "measured-meetings",
    id="RF12",
    fails=["measured-meetings-consistent"],
    read="15_reformer#lsh-hash",
)
def without_negatives():
    """Opposite vectors should never meet; here they do, and chance is 1 in 4."""
    once = {-1.0: 0.0, -0.5: 0.133, 0.0: 0.25, 0.5: 0.44, 0.75: 0.6, 0.9: 0.74, 1.0: 1.0}
    return {"once": once, "four": {c: round(1 - (1 - p) ** 4, 3) for c, p in once.items()}}


# 15.3 One vector asks and answers


@misconception(
    "shared-attention",
    id="RF13",
    fails=["shared-attention-values", "shared-attention-alone"],
    read="15_reformer#lsh-shared",
)
def itself_too(qk, v, causal):
    """Your tokens look at themselves, where they always fit best."""
    n = qk.shape[1]
    scores = qk @ F.normalize(qk, dim=-1).mT / math.sqrt(qk.shape[-1])
    seen = torch.ones(n, n, dtype=torch.bool)
    scores = (scores).masked_fill(~(seen.tril() if causal else seen), -math.inf)
    return scores.softmax(-1) @ v, scores.logsumexp(-1)


@misconception(
    "shared-attention",
    id="RF14",
    fails=["shared-attention-values", "shared-attention-alone"],
    read="15_reformer#lsh-shared",
)
def never_itself(qk, v, causal):
    """A token that has no other must look at itself; yours looks at nothing, which gives NaN."""
    n = qk.shape[1]
    scores = qk @ F.normalize(qk, dim=-1).mT / math.sqrt(qk.shape[-1])
    itself = torch.eye(n, dtype=torch.bool)
    seen = torch.ones(n, n, dtype=torch.bool).tril(-1) if causal else ~itself
    scores = (scores).masked_fill(~(seen), -math.inf)
    return scores.softmax(-1) @ v, scores.logsumexp(-1)


@misconception(
    "shared-attention",
    id="RF15",
    fails=["shared-attention-values", "shared-attention-alone"],
    read="15_reformer#lsh-shared",
)
def keys_with_their_length(qk, v, causal):
    """Your keys keep their length; a key is the vector divided by it."""
    n = qk.shape[1]
    itself = torch.eye(n, dtype=torch.bool)
    seen = torch.ones(n, n, dtype=torch.bool).tril(-1) if causal else ~itself
    seen = seen | (itself & ~seen.any(-1, keepdim=True))
    scores = (qk @ qk.mT / math.sqrt(qk.shape[-1])).masked_fill(~(seen), -math.inf)
    return scores.softmax(-1) @ v, scores.logsumexp(-1)


@misconception(
    "shared-attention",
    id="RF16",
    fails=["shared-attention-values", "shared-attention-alone"],
    read="15_reformer#lsh-shared",
)
def both_normed(qk, v, causal):
    """Your queries lose their length as well; keys alone are divided by it."""
    n = qk.shape[1]
    unit = F.normalize(qk, dim=-1)
    itself = torch.eye(n, dtype=torch.bool)
    seen = torch.ones(n, n, dtype=torch.bool).tril(-1) if causal else ~itself
    seen = seen | (itself & ~seen.any(-1, keepdim=True))
    scores = (unit @ unit.mT / math.sqrt(qk.shape[-1])).masked_fill(~(seen), -math.inf)
    return scores.softmax(-1) @ v, scores.logsumexp(-1)


@misconception(
    "shared-attention",
    id="RF17",
    fails=["shared-attention-values", "shared-attention-alone"],
    read="15_reformer#lsh-shared",
)
def not_scaled(qk, v, causal):
    """Your scores are not divided by the root of the width."""
    n = qk.shape[1]
    itself = torch.eye(n, dtype=torch.bool)
    seen = torch.ones(n, n, dtype=torch.bool).tril(-1) if causal else ~itself
    seen = seen | (itself & ~seen.any(-1, keepdim=True))
    scores = (qk @ F.normalize(qk, dim=-1).mT).masked_fill(~(seen), -math.inf)
    return scores.softmax(-1) @ v, scores.logsumexp(-1)


@misconception(
    "shared-attention",
    id="RF18",
    fails=["shared-attention-values", "shared-attention-alone"],
    read="15_reformer#lsh-shared",
)
def sum_without_logarithm(qk, v, causal):
    """Your second result is a sum of exponentials; its logarithm is asked for."""
    n = qk.shape[1]
    scores = qk @ F.normalize(qk, dim=-1).mT / math.sqrt(qk.shape[-1])
    itself = torch.eye(n, dtype=torch.bool)
    seen = torch.ones(n, n, dtype=torch.bool).tril(-1) if causal else ~itself
    seen = seen | (itself & ~seen.any(-1, keepdim=True))
    scores = (scores).masked_fill(~(seen), -math.inf)
    output, log_sum = scores.softmax(-1) @ v, scores.logsumexp(-1)
    return output, log_sum.exp()


@misconception(
    "shared-attention",
    id="RF19",
    fails=["shared-attention-values", "shared-attention-alone"],
    read="15_reformer#lsh-shared",
)
def always_causal(qk, v, causal):
    """Yours hides what lies ahead whatever causal says."""
    n = qk.shape[1]
    scores = qk @ F.normalize(qk, dim=-1).mT / math.sqrt(qk.shape[-1])
    seen = torch.ones(n, n, dtype=torch.bool).tril(-1)
    seen = seen | (torch.eye(n, dtype=torch.bool) & ~seen.any(-1, keepdim=True))
    scores = (scores).masked_fill(~(seen), -math.inf)
    return scores.softmax(-1) @ v, scores.logsumexp(-1)


@misconception(
    "shared-attention",
    id="RF20",
    fails=["shared-attention-values"],
    read="15_reformer#lsh-shared",
)
def exponentials_of_large_scores(qk, v, causal):
    """With large scores e to the power of them is infinite: take the largest off first."""
    n = qk.shape[1]
    scores = qk @ F.normalize(qk, dim=-1).mT / math.sqrt(qk.shape[-1])
    itself = torch.eye(n, dtype=torch.bool)
    seen = torch.ones(n, n, dtype=torch.bool).tril(-1) if causal else ~itself
    parts = scores.exp() * (seen | (itself & ~seen.any(-1, keepdim=True)))
    return parts @ v / parts.sum(-1, keepdim=True), parts.sum(-1).log()


# 15.4 Sort, cut, look back


@misconception(
    "lsh-round",
    id="RF21",
    fails=["lsh-round-chunks"],
    read="15_reformer#lsh-round",
)
def no_look_back(qk, v, buckets, length):
    """Your tokens stay in their chunk; a bucket that lies across a border is torn apart."""
    n = qk.shape[1]
    order = torch.sort(buckets, dim=1, stable=True).indices
    at = order.argsort(1)
    chunk, place = at // length, torch.arange(n)
    near = chunk[:, :, None] - chunk[:, None]
    same = buckets[:, :, None] == buckets[:, None]
    earlier = place < place[:, None]
    seen = earlier & same & (near == 0)
    seen = seen | (torch.eye(n, dtype=torch.bool) & ~seen.any(-1, keepdim=True))
    scores = qk @ F.normalize(qk, dim=-1).mT / math.sqrt(qk.shape[-1])
    scores = scores.masked_fill(~seen, -math.inf)
    return scores.softmax(-1) @ v, scores.logsumexp(-1)


@misconception(
    "lsh-round",
    id="RF22",
    fails=["lsh-round-one", "lsh-round-buckets", "lsh-round-chunks"],
    read="15_reformer#lsh-round",
)
def buckets_not_compared(qk, v, buckets, length):
    """You take a chunk for a bucket: tokens of one chunk may be of several."""
    n = qk.shape[1]
    order = torch.sort(buckets, dim=1, stable=True).indices
    at = order.argsort(1)
    chunk, place = at // length, torch.arange(n)
    near = chunk[:, :, None] - chunk[:, None]
    earlier = place < place[:, None]
    seen = earlier & (near >= 0) & (near <= 1)
    seen = seen | (torch.eye(n, dtype=torch.bool) & ~seen.any(-1, keepdim=True))
    scores = qk @ F.normalize(qk, dim=-1).mT / math.sqrt(qk.shape[-1])
    scores = scores.masked_fill(~seen, -math.inf)
    return scores.softmax(-1) @ v, scores.logsumexp(-1)


@misconception(
    "lsh-round",
    id="RF23",
    fails=["lsh-round-one", "lsh-round-buckets", "lsh-round-chunks"],
    read="15_reformer#lsh-causal",
)
def causal_in_the_sorted_row(qk, v, buckets, length):
    """Your mask goes by the sorted row, so tokens see the future of other buckets."""
    n = qk.shape[1]
    order = torch.sort(buckets, dim=1, stable=True).indices
    at = order.argsort(1)
    chunk = at // length
    near = chunk[:, :, None] - chunk[:, None]
    seen = (at[:, None] < at[:, :, None]) & (near <= 1)
    seen = seen | (torch.eye(n, dtype=torch.bool) & ~seen.any(-1, keepdim=True))
    scores = qk @ F.normalize(qk, dim=-1).mT / math.sqrt(qk.shape[-1])
    scores = scores.masked_fill(~seen, -math.inf)
    return scores.softmax(-1) @ v, scores.logsumexp(-1)


@misconception(
    "lsh-round",
    id="RF24",
    fails=["lsh-round-one", "lsh-round-buckets", "lsh-round-chunks"],
    read="15_reformer#lsh-causal",
)
def not_causal(qk, v, buckets, length):
    """Your tokens see later ones of their bucket."""
    n = qk.shape[1]
    order = torch.sort(buckets, dim=1, stable=True).indices
    at = order.argsort(1)
    chunk, place = at // length, torch.arange(n)
    near = chunk[:, :, None] - chunk[:, None]
    same = buckets[:, :, None] == buckets[:, None]
    seen = (place != place[:, None]) & same & (near >= 0) & (near <= 1)
    seen = seen | (torch.eye(n, dtype=torch.bool) & ~seen.any(-1, keepdim=True))
    scores = qk @ F.normalize(qk, dim=-1).mT / math.sqrt(qk.shape[-1])
    scores = scores.masked_fill(~seen, -math.inf)
    return scores.softmax(-1) @ v, scores.logsumexp(-1)


@misconception(
    "lsh-round",
    id="RF25",
    fails=["lsh-round-one", "lsh-round-buckets", "lsh-round-chunks"],
    read="15_reformer#lsh-shared",
)
def sees_itself(qk, v, buckets, length):
    """Your tokens look at themselves although there are others."""
    n = qk.shape[1]
    order = torch.sort(buckets, dim=1, stable=True).indices
    at = order.argsort(1)
    chunk, place = at // length, torch.arange(n)
    near = chunk[:, :, None] - chunk[:, None]
    same = buckets[:, :, None] == buckets[:, None]
    seen = (place <= place[:, None]) & same & (near <= 1)
    seen = seen | (torch.eye(n, dtype=torch.bool) & ~seen.any(-1, keepdim=True))
    scores = qk @ F.normalize(qk, dim=-1).mT / math.sqrt(qk.shape[-1])
    scores = scores.masked_fill(~seen, -math.inf)
    return scores.softmax(-1) @ v, scores.logsumexp(-1)


@misconception(
    "lsh-round",
    id="RF26",
    fails=["lsh-round-buckets", "lsh-round-chunks"],
    read="15_reformer#lsh-round",
)
def left_sorted(qk, v, buckets, length):
    """Your outputs stay in the sorted order; each belongs to a place in the text."""
    n = qk.shape[1]
    order = torch.sort(buckets, dim=1, stable=True).indices
    at = order.argsort(1)
    chunk, place = at // length, torch.arange(n)
    near = chunk[:, :, None] - chunk[:, None]
    same = buckets[:, :, None] == buckets[:, None]
    earlier = place < place[:, None]
    seen = earlier & same & (near <= 1)
    seen = seen | (torch.eye(n, dtype=torch.bool) & ~seen.any(-1, keepdim=True))
    scores = qk @ F.normalize(qk, dim=-1).mT / math.sqrt(qk.shape[-1])
    scores = scores.masked_fill(~seen, -math.inf)
    rows = torch.arange(len(qk))[:, None]
    return (scores.softmax(-1) @ v)[rows, order], scores.logsumexp(-1)[rows, order]


@misconception(
    "lsh-round",
    id="RF27",
    fails=["lsh-round-buckets", "lsh-round-chunks"],
    read="15_reformer#lsh-round",
)
def sorted_twice(qk, v, buckets, length):
    """You sort twice; what undoes an order is its argsort."""
    n = qk.shape[1]
    order = torch.sort(buckets, dim=1, stable=True).indices
    at = order.argsort(1)
    chunk, place = at // length, torch.arange(n)
    near = chunk[:, :, None] - chunk[:, None]
    same = buckets[:, :, None] == buckets[:, None]
    earlier = place < place[:, None]
    seen = earlier & same & (near <= 1)
    seen = seen | (torch.eye(n, dtype=torch.bool) & ~seen.any(-1, keepdim=True))
    scores = qk @ F.normalize(qk, dim=-1).mT / math.sqrt(qk.shape[-1])
    scores = scores.masked_fill(~seen, -math.inf)
    rows, twice = torch.arange(len(qk))[:, None], order.gather(1, order)
    return (scores.softmax(-1) @ v)[rows, twice], scores.logsumexp(-1)[rows, twice]


@misconception(
    "lsh-round",
    id="RF28",
    fails=["lsh-round-chunks"],
    read="15_reformer#lsh-round",
)
def not_sorted(qk, v, buckets, length):
    """You cut the text into chunks before it is sorted: a bucket's tokens lie far apart."""
    n = qk.shape[1]
    place = torch.arange(n)
    chunk = (place // length).expand_as(buckets)
    near = chunk[:, :, None] - chunk[:, None]
    same = buckets[:, :, None] == buckets[:, None]
    earlier = place < place[:, None]
    seen = earlier & same & (near <= 1)
    seen = seen | (torch.eye(n, dtype=torch.bool) & ~seen.any(-1, keepdim=True))
    scores = qk @ F.normalize(qk, dim=-1).mT / math.sqrt(qk.shape[-1])
    scores = scores.masked_fill(~seen, -math.inf)
    return scores.softmax(-1) @ v, scores.logsumexp(-1)


@misconception(
    "lsh-round",
    id="RF29",
    fails=["lsh-round-one", "lsh-round-buckets"],
    read="15_reformer#lsh-round",
)
def first_looks_back_at_last(qk, v, buckets, length):
    """Your first chunk looks back at the last: where there is one chunk, keys are met twice."""
    n = qk.shape[1]
    order = torch.sort(buckets, dim=1, stable=True).indices
    at = order.argsort(1)
    chunk, place = at // length, torch.arange(n)
    near, chunks = chunk[:, :, None] - chunk[:, None], -(-n // length)
    times = (near == 0).to(qk) + (near % chunks == 1 % chunks)
    seen = (buckets[:, :, None] == buckets[:, None]) & (place < place[:, None]) & (times > 0)
    seen = seen | (torch.eye(n, dtype=torch.bool) & ~seen.any(-1, keepdim=True))
    scores = qk @ F.normalize(qk, dim=-1).mT / math.sqrt(qk.shape[-1])
    scores = (scores + times.log()).masked_fill(~seen, -math.inf)
    return scores.softmax(-1) @ v, scores.logsumexp(-1)


@misconception(
    "lsh-round",
    id="RF30",
    fails=["lsh-round-one", "lsh-round-buckets", "lsh-round-chunks"],
    read="15_reformer#lsh-shared",
)
def long_keys(qk, v, buckets, length):
    """Keys lose their length here as in 15.3; yours keep it."""
    n = qk.shape[1]
    order = torch.sort(buckets, dim=1, stable=True).indices
    at = order.argsort(1)
    chunk, place = at // length, torch.arange(n)
    near = chunk[:, :, None] - chunk[:, None]
    same = buckets[:, :, None] == buckets[:, None]
    earlier = place < place[:, None]
    seen = earlier & same & (near <= 1)
    seen = seen | (torch.eye(n, dtype=torch.bool) & ~seen.any(-1, keepdim=True))
    scores = qk @ qk.mT / math.sqrt(qk.shape[-1])
    scores = scores.masked_fill(~seen, -math.inf)
    return scores.softmax(-1) @ v, scores.logsumexp(-1)


# 15.5 Several rounds, one answer


@misconception(
    "combined",
    id="RF31",
    fails=["combined-values"],
    read="15_reformer#lsh-rounds",
)
def plain_mean(outputs, log_sums):
    """All your rounds weigh the same; one that met no fitting key should count little."""
    return outputs.mean(0), log_sums.logsumexp(0)


@misconception(
    "combined",
    id="RF32",
    fails=["combined-values"],
    read="15_reformer#lsh-rounds",
)
def weighed_by_log_sums(outputs, log_sums):
    """You weigh by the log-sums as they are; a round weighs e to the power of its log-sum."""
    shares = log_sums / log_sums.sum(0)
    return (shares[..., None] * outputs).sum(0), log_sums.logsumexp(0)


@misconception(
    "combined",
    id="RF33",
    fails=["combined-values"],
    read="15_reformer#lsh-rounds",
)
def best_round(outputs, log_sums):
    """You take the round with the largest sum and throw away what the others met."""
    best = log_sums.argmax(0)
    output = outputs.gather(0, best[None, ..., None].expand(1, *outputs.shape[1:]))[0]
    return output, log_sums.logsumexp(0)


@misconception(
    "combined",
    id="RF34",
    fails=["combined-values"],
    read="15_reformer#lsh-rounds",
)
def log_of_the_mean(outputs, log_sums):
    """Your log-sum is that of a mean; the keys of all rounds are added up."""
    output = (log_sums.softmax(0)[..., None] * outputs).sum(0)
    return output, log_sums.logsumexp(0) - math.log(len(log_sums))


@misconception(
    "combined",
    id="RF35",
    fails=["combined-values"],
    read="15_reformer#lsh-rounds",
)
def logarithms_added(outputs, log_sums):
    """You add logarithms, which multiplies the sums."""
    return (log_sums.softmax(0)[..., None] * outputs).sum(0), log_sums.sum(0)


@misconception(
    "combined",
    id="RF36",
    fails=["combined-values"],
    read="15_reformer#lsh-rounds",
)
def overflowing(outputs, log_sums):
    """With large log-sums your exponentials are infinite; softmax takes the largest off first."""
    sums = log_sums.exp()
    return (sums[..., None] * outputs).sum(0) / sums.sum(0)[..., None], sums.sum(0).log()


# 15.6 Four mistakes that learn


@misconception(
    "hash-leaks",
    id="RF37",
    fails=["hash-leaks-outputs"],
    read="15_reformer#lsh-round",
)
def order_blamed():
    """Line 3 is right: the argsort of an order undoes it. Look where it is not used."""
    return {"long": 11, "strangers": 6, "mixed": 3, "rounds": 19}


@misconception(
    "hash-leaks",
    id="RF38",
    fails=["hash-leaks-keys"],
    read="15_reformer#lsh-round",
)
def comparison_blamed():
    """Line 8 compares what it is given; which buckets are those?"""
    return {"long": 11, "strangers": 8, "mixed": 13, "rounds": 19}


@misconception(
    "hash-leaks",
    id="RF39",
    fails=["hash-leaks-outputs"],
    read="15_reformer#lsh-rounds",
)
def sum_blamed():
    """Line 20 weighs by the shares; where do they become equal?"""
    return {"long": 11, "strangers": 6, "mixed": 13, "rounds": 20}


@misconception(
    "hash-leaks",
    id="RF61",
    fails=["hash-leaks-keys"],
    read="15_reformer#lsh-shared",
)
def softmax_blamed():
    """Line 13 makes weights of scores as it should; see where the scores come from."""
    return {"long": 13, "strangers": 6, "mixed": 13, "rounds": 19}


# 15.7 There and back


@misconception(
    "undo",
    id="RF41",
    fails=["undo-inputs", "undo-slopes"],
    read="15_reformer#rev-blocks",
)
def called_at_y2(f, g, w_f, w_g, y1, y2, dy1, dy2):
    """You call f at y2; it was called at x2, which has to be found first."""

    def through(part, w, at, given):
        with torch.enable_grad():
            at, w = at.detach().clone().requires_grad_(), w.detach().clone().requires_grad_()
            value = part(at, w)
        return value.detach(), *torch.autograd.grad(value, (at, w), given)

    added, through_g, dw_g = through(g, w_g, y1, dy2)
    taken, through_f, dw_f = through(f, w_f, y2, dy1 + through_g)
    return y1 - taken, y2 - added, dy1 + through_g, dy2 + through_f, dw_f, dw_g


@misconception(
    "undo",
    id="RF42",
    fails=["undo-slopes"],
    read="15_reformer#rev-blocks",
)
def one_way_forgotten(f, g, w_f, w_g, y1, y2, dy1, dy2):
    """Two ways lead from y1 to the loss; you leave the one through y2 out."""

    def through(part, w, at, given):
        with torch.enable_grad():
            at, w = at.detach().clone().requires_grad_(), w.detach().clone().requires_grad_()
            value = part(at, w)
        return value.detach(), *torch.autograd.grad(value, (at, w), given)

    added, _, dw_g = through(g, w_g, y1, dy2)
    x2 = y2 - added
    taken, through_f, dw_f = through(f, w_f, x2, dy1)
    return y1 - taken, x2, dy1, dy2 + through_f, dw_f, dw_g


@misconception(
    "undo",
    id="RF43",
    fails=["undo-slopes"],
    read="15_reformer#rev-blocks",
)
def weights_too_early(f, g, w_f, w_g, y1, y2, dy1, dy2):
    """To f's weights leads dy1 and what comes through g; you use dy1 alone."""

    def through(part, w, at, given):
        with torch.enable_grad():
            at, w = at.detach().clone().requires_grad_(), w.detach().clone().requires_grad_()
            value = part(at, w)
        return value.detach(), *torch.autograd.grad(value, (at, w), given)

    added, through_g, dw_g = through(g, w_g, y1, dy2)
    x2 = y2 - added
    taken, through_f, _ = through(f, w_f, x2, dy1 + through_g)
    _, _, dw_f = through(f, w_f, x2, dy1)
    return y1 - taken, x2, dy1 + through_g, dy2 + through_f, dw_f, dw_g


@misconception(
    "undo",
    id="RF44",
    fails=["undo-slopes"],
    read="15_reformer#rev-blocks",
)
def residual_forgotten(f, g, w_f, w_g, y1, y2, dy1, dy2):
    """x2 goes into y2 as it is, too; your slope at x2 has the way through f alone."""

    def through(part, w, at, given):
        with torch.enable_grad():
            at, w = at.detach().clone().requires_grad_(), w.detach().clone().requires_grad_()
            value = part(at, w)
        return value.detach(), *torch.autograd.grad(value, (at, w), given)

    added, through_g, dw_g = through(g, w_g, y1, dy2)
    x2 = y2 - added
    taken, through_f, dw_f = through(f, w_f, x2, dy1 + through_g)
    return y1 - taken, x2, dy1 + through_g, through_f, dw_f, dw_g


@misconception(
    "undo",
    id="RF45",
    fails=["undo-inputs", "undo-slopes"],
    read="15_reformer#rev-blocks",
)
def parts_exchanged(f, g, w_f, w_g, y1, y2, dy1, dy2):
    """You undo f first; the block's last step was g, so it is the first to be undone."""

    def through(part, w, at, given):
        with torch.enable_grad():
            at, w = at.detach().clone().requires_grad_(), w.detach().clone().requires_grad_()
            value = part(at, w)
        return value.detach(), *torch.autograd.grad(value, (at, w), given)

    taken, through_f, dw_f = through(f, w_f, y2, dy1)
    x1 = y1 - taken
    added, through_g, dw_g = through(g, w_g, x1, dy2 + through_f)
    return x1, y2 - added, dy1 + through_g, dy2 + through_f, dw_f, dw_g


@misconception(
    "undo",
    id="RF46",
    fails=["undo-inputs"],
    read="15_reformer#rev-blocks",
)
def inputs_exchanged(f, g, w_f, w_g, y1, y2, dy1, dy2):
    """You return x2 before x1."""

    def through(part, w, at, given):
        with torch.enable_grad():
            at, w = at.detach().clone().requires_grad_(), w.detach().clone().requires_grad_()
            value = part(at, w)
        return value.detach(), *torch.autograd.grad(value, (at, w), given)

    added, through_g, dw_g = through(g, w_g, y1, dy2)
    x2 = y2 - added
    taken, through_f, dw_f = through(f, w_f, x2, dy1 + through_g)
    return x2, y1 - taken, dy1 + through_g, dy2 + through_f, dw_f, dw_g


@misconception(
    "undo",
    id="RF47",
    fails=["undo-slopes"],
    read="15_reformer#rev-blocks",
)
def summed_outputs(f, g, w_f, w_g, y1, y2, dy1, dy2):
    """You differentiate the sum of g's outputs; each has a slope of its own, dy2."""

    def through(part, w, at, given):
        with torch.enable_grad():
            at, w = at.detach().clone().requires_grad_(), w.detach().clone().requires_grad_()
            value = part(at, w)
        return value.detach(), *torch.autograd.grad(value, (at, w), given)

    added, through_g, dw_g = through(g, w_g, y1, torch.ones_like(dy2))
    x2 = y2 - added
    taken, through_f, dw_f = through(f, w_f, x2, torch.ones_like(dy1))
    return y1 - taken, x2, dy1 + through_g, dy2 + through_f, dw_f, dw_g


# 15.8 The same dice


@misconception(
    "replay",
    id="RF48",
    fails=["replay-same"],
    read="15_reformer#rev-dropout",
)
def generator_left_behind(f, x, state):
    """You leave the generator in the old state, so what is drawn next has been drawn before."""
    torch.set_rng_state(state)
    return f(x)


@misconception(
    "replay",
    id="RF49",
    fails=["replay-same"],
    read="15_reformer#rev-dropout",
)
def called_again(f, x, state):
    """You call f anew: other numbers are dropped."""
    return f(x)


@misconception(
    "replay",
    id="RF50",
    fails=["replay-same"],
    read="15_reformer#rev-dropout",
)
def own_seed(f, x, state):
    """A seed of your own gives the same each time, but not what was dropped then."""
    now = torch.get_rng_state()
    torch.manual_seed(0)
    result = f(x)
    torch.set_rng_state(now)
    return result


@misconception(
    "replay",
    id="RF51",
    fails=["replay-same"],
    read="15_reformer#rev-dropout",
)
def not_after_an_error(f, x, state):
    """Where f stops with an error, your generator stays in the old state."""
    now = torch.get_rng_state()
    torch.set_rng_state(state)
    result = f(x)
    torch.set_rng_state(now)
    return result


@misconception(
    "replay",
    id="RF52",
    fails=["replay-same"],
    read="15_reformer#rev-dropout",
)
def without_gradient(f, x, state):
    """You repeat the call without gradients, which the way back is there for."""
    with torch.random.fork_rng(), torch.no_grad():
        torch.set_rng_state(state)
        return f(x)


@misconception(
    "predicted-drift",
    id="RF53",
    fails=["predicted-drift-made"],
    read="15_reformer#rev-drift",
)
def drift_as_a_number():
    """You predict a number; one of the texts in DRIFTS is asked for."""
    return 1e-7


@misconception(
    "predicted-drift",
    id="RF54",
    fails=["predicted-drift-made"],
    read="15_reformer#rev-drift",
)
def drift_in_own_words():
    """A prediction in other words than those of DRIFTS cannot be compared."""
    return "1e-7"


@misconception(
    "predicted-drift",
    id="RF55",
    fails=["predicted-drift-made"],
    read="15_reformer#rev-drift",
)
def no_drift_in_own_words():
    """You say that nothing drifts, but not in the words of DRIFTS: "not at all"."""
    return "0"


# 15.10 Exact, in blocks


@misconception(
    "block-slopes",
    id="RF56",
    fails=["block-slopes-blocks"],
    read="15_reformer#exact-blocks",
)
def softmax_of_the_block(q, k, v, o, z, do):
    """Your weights have the sum 1 in each block; z says what the sum over all keys is."""
    size = math.sqrt(q.shape[-1])
    p = (q @ k.mT / size).softmax(-1)
    ds = p * (do @ v.mT - (do * o).sum(-1, keepdim=True)) / size
    return ds @ k, ds.mT @ q, p.mT @ do


@misconception(
    "block-slopes",
    id="RF57",
    fails=["block-slopes-blocks"],
    read="15_reformer#exact-blocks",
)
def sum_over_the_block(q, k, v, o, z, do):
    """The sum in the softmax's slope runs over all keys; yours runs over this block."""
    size = math.sqrt(q.shape[-1])
    p = (q @ k.mT / size - z[:, None]).exp()
    dp = do @ v.mT
    ds = p * (dp - (p * dp).sum(-1, keepdim=True)) / size
    return ds @ k, ds.mT @ q, p.mT @ do


@misconception(
    "block-slopes",
    id="RF58",
    fails=["block-slopes-whole", "block-slopes-blocks"],
    read="15_reformer#exact-blocks",
)
def scale_forgotten(q, k, v, o, z, do):
    """Scores are divided by the root of the width, and so are the slopes through them."""
    p = (q @ k.mT / math.sqrt(q.shape[-1]) - z[:, None]).exp()
    ds = p * (do @ v.mT - (do * o).sum(-1, keepdim=True))
    return ds @ k, ds.mT @ q, p.mT @ do


@misconception(
    "block-slopes",
    id="RF59",
    fails=["block-slopes-whole", "block-slopes-blocks"],
    read="15_reformer#exact-blocks",
)
def softmax_taken_for_its_exponential(q, k, v, o, z, do):
    """A weight falls where another grows; you leave out the mean that softmax takes off."""
    size = math.sqrt(q.shape[-1])
    p = (q @ k.mT / size - z[:, None]).exp()
    ds = p * (do @ v.mT) / size
    return ds @ k, ds.mT @ q, p.mT @ do


@misconception(
    "block-slopes",
    id="RF60",
    fails=["block-slopes-blocks"],
    read="15_reformer#exact-blocks",
)
def exponentials_first(q, k, v, o, z, do):
    """With large scores e to the power of them is infinite: take z off before."""
    size = math.sqrt(q.shape[-1])
    p = (q @ k.mT / size).exp() / z.exp()[:, None]
    ds = p * (do @ v.mT - (do * o).sum(-1, keepdim=True)) / size
    return ds @ k, ds.mT @ q, p.mT @ do

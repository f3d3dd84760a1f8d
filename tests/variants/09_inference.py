"""Right answers to the exercise on inference, written differently."""

import copy
import math
from typing import Any

import torch
import torch.nn.functional as F

from lab.answers import variant
from lab.blocks import DecoderLayer, MultiHeadAttention, scaled_dot_product_attention

CachedAttention: Any  # the notebook's own, where this answer is tried

# 9.1 Greedy decoding


@variant("greedy-decode")
def sentence_by_sentence(model, source, bos_id, eos_id, max_len):
    mode = model.training
    try:
        model.eval()
        with torch.inference_mode():
            memory, mask = model.encode(source)
            written = []
            for b in range(source.shape[0]):
                ids = [bos_id]
                for _ in range(max_len):
                    logits = model.decode(torch.tensor([ids]), memory[b : b + 1], mask[b : b + 1])
                    token = int(logits[0, -1].argmax())
                    if token == eos_id:
                        break
                    ids.append(token)
                written.append(ids[1:])
            return written
    finally:
        model.train(mode)


@variant("greedy-decode")
def with_a_copy_of_the_model(model, source, bos_id, eos_id, max_len):
    own = copy.deepcopy(model).eval()  # the mode of the one handed in stays
    written = torch.full((len(source), 1), bos_id)
    with torch.no_grad():
        memory, mask = own.encode(source)
        for _ in range(max_len):
            if (written == eos_id).any(1).all():
                break
            chosen = own.decode(written, memory, mask)[:, -1].argmax(-1)
            written = torch.cat([written, chosen[:, None]], dim=1)
    rows = [row[1:] for row in written.tolist()]
    return [row[: row.index(eos_id)] if eos_id in row else row for row in rows]


@variant("greedy-decode")
def pads_what_has_ended(model, source, bos_id, eos_id, max_len):
    before = model.training
    model.eval()
    recording = torch.is_grad_enabled()
    torch.set_grad_enabled(False)
    memory, mask = model.encode(source)
    target = source.new_full((source.size(0), 1), bos_id)
    alive = torch.ones(source.size(0), dtype=torch.bool)
    while alive.any() and target.size(1) <= max_len:
        scores = torch.softmax(model.decode(target, memory, mask)[:, -1, :], dim=-1)
        _, chosen = torch.max(scores, dim=-1)
        chosen = torch.where(alive, chosen, torch.full_like(chosen, eos_id))
        target = torch.hstack([target, chosen[:, None]])
        alive &= chosen != eos_id
    torch.set_grad_enabled(recording)
    if before:
        model.train()
    return [[int(i) for i in row[1:] if i != eos_id] for row in target]


@variant("greedy-decode")
def drops_rows_that_have_ended(model, source, bos_id, eos_id, max_len):
    mode = model.training
    model.eval()
    with torch.no_grad():
        memory, mask = model.encode(source)
        written = [[] for _ in source]
        open_rows = list(range(len(source)))
        for _ in range(max_len):
            target = torch.tensor([[bos_id, *written[b]] for b in open_rows])
            logits = model.decode(target, memory[open_rows], mask[open_rows])
            still = []
            for b, token in zip(open_rows, logits[:, -1].argmax(-1).tolist(), strict=True):
                if token != eos_id:
                    written[b].append(token)
                    still.append(b)
            open_rows = still
            if not open_rows:
                break
    model.train(mode)
    return written


# 9.2 Beam search


@variant("beam-search")
def hypothesis_by_hypothesis(
    model, source, bos_id, eos_id, max_len, beam_size=4, length_penalty=0.6
):
    import heapq

    mode = model.training
    model.eval()
    finished = []
    with torch.no_grad():
        memory, mask = model.encode(source)
        live = [(0.0, [bos_id])]
        for _ in range(max_len):
            candidates = []
            for total, ids in live:
                logits = model.decode(torch.tensor([ids]), memory, mask)[0, -1].double()
                logs = logits - logits.logsumexp(0)
                candidates += [(total + logs[i].item(), [*ids, i]) for i in range(len(logs))]
            candidates = heapq.nlargest(beam_size, candidates)
            live = [(total, ids) for total, ids in candidates if ids[-1] != eos_id]
            finished += [(total, ids) for total, ids in candidates if ids[-1] == eos_id]
            if not live:
                break
    model.train(mode)
    scores = [
        (total / math.pow((5 + len(ids) - 1) / 6, length_penalty), ids)
        for total, ids in (finished or live)
    ]
    score, ids = max(scores)
    return (ids[1:-1] if ids[-1] == eos_id else ids[1:]), score


@variant("beam-search")
def with_a_beam_of_fixed_size(
    model, source, bos_id, eos_id, max_len, beam_size=4, length_penalty=0.6
):
    mode = model.training
    model.eval()
    best, best_ids = -math.inf, None
    with torch.no_grad():
        memory, mask = model.encode(source)
        memory, mask = memory.repeat(beam_size, 1, 1), mask.repeat(beam_size, 1, 1)
        ids = torch.full((beam_size, 1), bos_id)
        totals = torch.full((beam_size,), -math.inf, dtype=torch.float64)
        totals[0] = 0.0  # the other places are empty
        for n in range(1, max_len + 1):
            logs = F.log_softmax(model.decode(ids, memory, mask)[:, -1].double(), dim=1)
            table = totals[:, None] + logs
            totals, places = table.view(-1).topk(beam_size)
            parents = torch.div(places, logs.size(1), rounding_mode="floor")
            tokens = places.remainder(logs.size(1))
            ids = torch.cat((ids.index_select(0, parents), tokens[:, None]), dim=1)
            for i in range(beam_size):
                if tokens[i] == eos_id and totals[i] > -math.inf:
                    score = totals[i].item() / ((5.0 + n) / 6.0) ** length_penalty
                    if score > best:
                        best, best_ids = score, ids[i, 1:-1].tolist()
                    totals[i] = -math.inf
            if not torch.isfinite(totals).any():
                break
        if best_ids is None:
            i = int(totals.argmax())
            best = totals[i].item() / ((4 + ids.size(1)) / 6) ** length_penalty
            best_ids = ids[i, 1:].tolist()
    model.train(mode)
    return best_ids, best


@variant("beam-search")
def stops_when_nothing_can_win(
    model, source, bos_id, eos_id, max_len, beam_size=4, length_penalty=0.6
):
    def penalty(n):
        return math.exp(length_penalty * math.log((5 + n) / 6))

    mode = model.training
    model.eval()
    winner = None
    with torch.no_grad():
        memory, mask = model.encode(source)
        live = {(bos_id,): 0.0}
        for n in range(1, max_len + 1):
            k = len(live)
            logits = model.decode(
                torch.tensor(list(live)), torch.cat([memory] * k), torch.cat([mask] * k)
            )
            logs = logits[:, -1].softmax(-1).log().tolist()
            extended = {
                (*ids, token): total + log
                for (ids, total), row in zip(live.items(), logs, strict=True)
                for token, log in enumerate(row)
            }
            live = {}
            for ids in sorted(extended, key=extended.__getitem__)[::-1][:beam_size]:
                if ids[-1] != eos_id:
                    live[ids] = extended[ids]
                elif winner is None or extended[ids] / penalty(n) > winner[1]:
                    winner = list(ids[1:-1]), extended[ids] / penalty(n)
            if not live:
                break
            if winner and max(live.values()) / penalty(max_len) < winner[1]:
                break
    model.train(mode)
    if winner:
        return winner
    ids = max(live, key=live.__getitem__)
    return list(ids[1:]), live[ids] / penalty(len(ids) - 1)


# 9.3 When may the search stop?


@variant("may-stop")
def by_the_best_of_them(best, log_probs, n, max_len, length_penalty):
    highest = max(log_probs)
    lengths = range(n + 1, max_len + 1)
    return max(highest / ((5 + k) / 6) ** length_penalty for k in lengths) <= best


@variant("may-stop")
def by_two_ends(best, log_probs, n, max_len, length_penalty):
    penalties = [((5 + k) / 6) ** length_penalty for k in (n + 1, max_len)]
    return not any(log_prob > best * max(penalties) for log_prob in log_probs)


@variant("may-stop")
def with_tensors(best, log_probs, n, max_len, length_penalty):
    lengths = torch.arange(n + 1, max_len + 1, dtype=torch.float64)
    scores = torch.tensor(list(log_probs), dtype=torch.float64)[:, None]
    return bool((scores / ((5 + lengths) / 6) ** length_penalty <= best).all())


# 9.4 A cache for keys and values


@variant("cached-attention", target="CachedAttention.forward")
def head_by_head(self, query, key, value, mask=None):
    if self.kept is None:
        self.kept = self.w_k(key), self.w_v(value)  # not split yet
    elif self.grows:
        keys = torch.cat((self.kept[0], self.w_k(key)), 1)
        self.kept = keys, torch.cat((self.kept[1], self.w_v(value)), 1)
    q, (k, v) = self.w_q(query), self.kept
    n, m, d_k = q.shape[1], k.shape[1], q.shape[2] // self.num_heads
    outputs, all_weights = [], []
    for h in range(self.num_heads):
        part = slice(h * d_k, (h + 1) * d_k)
        scores = torch.einsum("bnd,bmd->bnm", q[..., part], k[..., part]) / d_k**0.5
        if mask is not None:
            allowed = torch.ones(q.shape[0], n, m, dtype=torch.bool)
            allowed[..., m - mask.shape[-1] :] = mask
            scores = scores.masked_fill(~allowed, -1e9)
        weights = scores.softmax(-1)
        outputs.append(weights @ v[..., part])
        all_weights.append(weights)
    return self.w_o(torch.cat(outputs, -1)), torch.stack(all_weights, 1)


@variant("cached-attention", target="CachedAttention.forward")
def keeps_the_inputs(self, query, key, value, mask=None):
    if self.kept is not None and self.grows:
        old = self.kept[0].shape[1]
        key = torch.cat([self.kept[0], key], dim=1)
        value = torch.cat([self.kept[1], value], dim=1)
        if mask is not None:
            seen = torch.ones(*mask.shape[:-1], old, dtype=torch.bool)
            mask = torch.cat([seen, mask], dim=-1)
    elif self.kept is not None:
        key, value = self.kept
    self.kept = key, value
    return MultiHeadAttention.forward(self, query, key, value, mask)


@variant("cached-attention", target="CachedAttention.forward")
def with_torchs_own_attention(self, query, key, value, mask=None):
    q = self.split(self.w_q(query))
    if self.grows or self.kept is None:
        k, v = self.split(self.w_k(key)), self.split(self.w_v(value))
        if self.kept is not None:
            k, v = torch.cat((self.kept[0], k), -2), torch.cat((self.kept[1], v), -2)
        self.kept = k, v
    k, v = self.kept
    if mask is not None:
        if mask.ndim == 2:
            mask = mask[None]
        mask = mask[:, None]
        if k.shape[-2] > mask.shape[-1]:
            old = mask.new_ones(*mask.shape[:-1], k.shape[-2] - mask.shape[-1])
            mask = torch.cat((old, mask), -1)
    weights = (q @ k.mT) * q.shape[-1] ** -0.5
    if mask is not None:
        weights = torch.where(mask, weights, float("-inf"))
    weights = torch.softmax(weights, -1)
    output = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    return self.w_o(self.merge(output)), weights


@variant("cached-attention", target="use_cache")
def by_name(model):
    caches = []
    for name, module in list(model.named_modules()):
        last = name.rpartition(".")[2]
        if last in ("self_attention", "cross_attention"):
            layer = model.get_submodule(name.rpartition(".")[0])
            if not isinstance(layer, DecoderLayer):
                continue
            if not hasattr(module, "reset"):
                module = CachedAttention(module, grows=last == "self_attention")
                layer.add_module(last, module)
            module.reset()
            caches.append(module)
    return caches


@variant("cached-attention", target="CachedAttention.forward")
def reads_the_mask_for_the_new_columns(self, query, key, value, mask=None):
    if not self.grows and self.kept is not None:
        k, v = self.kept
    else:
        k, v = self.split(self.w_k(key)), self.split(self.w_v(value))
        if self.kept is not None:
            k, v = (torch.cat(pair, dim=2) for pair in zip(self.kept, (k, v), strict=True))
        self.kept = (k, v)
    if mask is not None:
        old = k.shape[2] - mask.shape[-1]
        full = torch.ones(query.shape[0], 1, query.shape[1], k.shape[2], dtype=torch.bool)
        full[:, 0, :, old:] = mask
        mask = full
    out, weights = scaled_dot_product_attention(self.split(self.w_q(query)), k, v, mask)
    return self.w_o(self.merge(out)), weights


# 9.5 Sampling


@variant("sample")
def with_infinite_logits(logits, temperature=1.0, top_k=None, generator=None):
    if temperature < 0 or (top_k is not None and top_k <= 0):
        raise ValueError(f"temperature is {temperature} (0 or more), top_k is {top_k} (1 or more)")
    if not temperature:
        return torch.max(logits, dim=1).indices
    if top_k is not None:
        smallest = logits.sort(dim=1, descending=True).values[:, :top_k][:, -1:]
        logits = torch.where(logits >= smallest, logits, float("-inf"))
    weights = torch.exp((logits - logits.max(1, keepdim=True).values) / temperature)
    return torch.multinomial(weights, num_samples=1, generator=generator)[:, 0]


@variant("sample")
def by_the_largest_noisy_logit(logits, temperature=1.0, top_k=None, generator=None):
    if temperature < 0:
        raise ValueError("temperature must be at least 0")
    if top_k is not None and top_k < 1:
        raise ValueError("top_k must be at least 1")
    if temperature == 0:
        return logits.argmax(1)
    noise = torch.empty_like(logits).exponential_(generator=generator).log()
    noisy = logits / temperature - noise
    if top_k is not None:
        rank = logits.argsort(dim=1, descending=True).argsort(dim=1)
        noisy[rank >= top_k] = -math.inf
    return noisy.argmax(1)


@variant("sample")
def by_the_cumulative_sum(logits, temperature=1.0, top_k=None, generator=None):
    if temperature < 0:
        raise ValueError("temperature below 0")
    if top_k is not None and top_k < 1:
        raise ValueError("top_k below 1")
    order = logits.argsort(dim=-1, descending=True)
    if temperature == 0:
        return order[:, 0]
    order = order[:, :top_k]
    shares = torch.softmax(logits.gather(1, order).double() / temperature, dim=1)
    limits = shares.cumsum(1)
    u = torch.rand(len(logits), 1, generator=generator, dtype=torch.float64)
    place = (limits < u * limits[:, -1:]).sum(1, keepdim=True)
    return order.gather(1, place)[:, 0]


# 9.6 BLEU


@variant("bleu")
def crossing_off(hypotheses, references, max_order=4):
    if len(hypotheses) != len(references):
        raise ValueError("as many references as hypotheses, please")
    product = 1.0
    for n in range(1, max_order + 1):
        match = total = 0
        for b in range(len(hypotheses)):
            left = [list(references[b][i : i + n]) for i in range(len(references[b]) - n + 1)]
            for i in range(len(hypotheses[b]) - n + 1):
                total += 1
                gram = list(hypotheses[b][i : i + n])
                if gram in left:
                    left.remove(gram)
                    match += 1
        product *= match / total if total else 0.0
    c, r = sum(len(h) for h in hypotheses), sum(len(t) for t in references)
    if c == 0:
        return 0.0
    brevity = 1.0 if c >= r else math.exp(1 - r / c)
    return 100 * brevity * product ** (1 / max_order)


@variant("bleu")
def with_dictionaries(hypotheses, references, max_order=4):
    from collections import defaultdict

    def grams(tokens, n):
        counts = defaultdict(int)
        for gram in zip(*(tokens[i:] for i in range(n)), strict=False):
            counts[gram] += 1
        return counts

    precisions = []
    for n in range(1, max_order + 1):
        pairs = [(grams(h, n), grams(r, n)) for h, r in zip(hypotheses, references, strict=True)]
        total = sum(sum(ours.values()) for ours, _ in pairs)
        match = sum(min(ours[g], theirs.get(g, 0)) for ours, theirs in pairs for g in ours)
        precisions.append(match / max(total, 1))
    c, r = (sum(len(line) for line in side) for side in (hypotheses, references))
    if min(precisions) == 0:
        return 0.0
    brevity = math.exp(min(0, 1 - r / c))
    return 100 * brevity * math.prod(precisions) ** (1 / max_order)


@variant("bleu")
def in_logarithms(hypotheses, references, max_order=4):
    hypotheses, references = list(hypotheses), list(references)
    if len(hypotheses) > len(references) or len(references) > len(hypotheses):
        raise ValueError(f"{len(hypotheses)} against {len(references)}")
    logs = torch.zeros(max_order, dtype=torch.float64)
    for n in range(max_order):
        hit = torch.tensor(0.0, dtype=torch.float64)
        count = 0
        for ours, theirs in zip(hypotheses, references, strict=True):
            a = [tuple(ours[i : i + n + 1]) for i in range(len(ours) - n)]
            b = [tuple(theirs[i : i + n + 1]) for i in range(len(theirs) - n)]
            hit += sum(min(a.count(gram), b.count(gram)) for gram in set(a))
            count += len(a)
        logs[n] = torch.log(hit / count) if count else -math.inf
    c, r = sum(map(len, hypotheses)), sum(map(len, references))
    penalty = 0.0 if c >= r else 1 - r / max(c, 1)
    return float(100 * torch.exp(logs.mean() + penalty))


# 9.7 Drafts that change nothing


@variant("keep-or-replace")
def by_rows_refused(drafts, small, large, generator=None):
    rows = torch.arange(len(drafts))
    chance = torch.rand(len(drafts), generator=generator, dtype=large.dtype)
    kept = chance * small[rows, drafts] < large[rows, drafts]
    tokens, refused = drafts.clone(), ~kept
    if refused.any():
        missing = (large[refused] - small[refused]).relu()
        tokens[refused] = torch.multinomial(missing, 1, generator=generator)[:, 0]
    return tokens, kept


@variant("keep-or-replace")
def with_a_little_added(drafts, small, large, generator=None):
    chosen = torch.take_along_dim(large / small.clamp(min=1e-30), drafts[:, None], 1)[:, 0]
    kept = torch.bernoulli(chosen.clamp(max=1), generator=generator).bool()
    left = torch.clamp(large - small, min=0) + 1e-15
    others = torch.multinomial(left, 1, generator=generator).flatten()
    return others.where(~kept, drafts), kept


@variant("keep-or-replace")
def by_cumulative_sums(drafts, small, large, generator=None):
    index = drafts.view(-1, 1)
    uniform = torch.rand(len(drafts), 2, generator=generator, dtype=large.dtype)
    kept = uniform[:, 0] * small.gather(1, index)[:, 0] < large.gather(1, index)[:, 0]
    heaps = (large - torch.minimum(small, large)).cumsum(1)  # (B, V)
    above = heaps <= uniform[:, 1:] * heaps[:, -1:]
    others = above.sum(1).clamp(max=large.shape[1] - 1)
    return torch.where(kept, drafts, others), kept

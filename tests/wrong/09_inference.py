"""Wrong answers to the exercise on inference that nobody gets a name for; all must lose."""

import math
from collections import Counter

import torch
from torch import nn

from lab.answers import variant
from lab.blocks import scaled_dot_product_attention


@variant("cached-attention", target="use_cache")
def layers_of_the_decoder_only(model):
    caches = []
    for layer in model.decoder.layers:
        for name, grows in (("self_attention", True), ("cross_attention", False)):
            attention = getattr(layer, name)
            if isinstance(attention, CachedAttention):  # pyright: ignore
                attention.reset()
            else:
                attention = CachedAttention(attention, grows=grows)  # pyright: ignore
                setattr(layer, name, attention)
            caches.append(attention)
    return caches


@variant("cached-attention", target="CachedAttention.forward")
def first_column_for_the_old_keys(self, query, key, value, mask=None):
    if self.kept is None or self.grows:
        new = self.split(self.w_k(key)), self.split(self.w_v(value))
        if self.kept is not None:
            if mask is not None:
                old = mask[..., :1].expand(*mask.shape[:-1], self.kept[0].shape[2])
                mask = torch.cat([old, mask], -1)
            pairs = zip(self.kept, new, strict=True)
            new = tuple(torch.cat(pair, dim=2) for pair in pairs)
        self.kept = new
    heads = None if mask is None else mask.unsqueeze(-3)
    q = self.split(self.w_q(query))
    keys, values = self.kept
    output, weights = scaled_dot_product_attention(q, keys, values, heads)
    return self.w_o(self.merge(output)), weights


@variant("sample")
def seeded_at_every_call(logits, temperature=1.0, top_k=None, generator=None):
    if temperature < 0 or (top_k is not None and top_k < 1):
        raise ValueError(f"temperature ({temperature}) or top_k ({top_k}) is too small")
    if generator is not None:
        generator.manual_seed(0)
    if temperature == 0:
        return logits.argmax(-1)
    kept, ids = logits.topk(min(top_k or logits.shape[-1], logits.shape[-1]))
    drawn = torch.multinomial((kept / temperature).softmax(-1), 1, generator=generator)
    return ids.gather(-1, drawn).squeeze(-1)


@variant("bleu")
def joined_without_a_blank(hypotheses, references, max_order=4):
    if len(hypotheses) != len(references):
        raise ValueError("there must be as many references as hypotheses")
    matches, totals = [0] * max_order, [0] * max_order
    for pair in zip(hypotheses, references, strict=True):
        for n in range(1, max_order + 1):
            written, wanted = (
                Counter("".join(tokens[i : i + n]) for i in range(len(tokens) - n + 1))
                for tokens in pair
            )
            matches[n - 1] += sum(min(count, wanted[gram]) for gram, count in written.items())
            totals[n - 1] += sum(written.values())
    if not all(matches):
        return 0.0
    logs = [math.log(match / total) for match, total in zip(matches, totals, strict=True)]
    ratio = sum(map(len, references)) / sum(map(len, hypotheses))
    return 100 * math.exp(min(0.0, 1 - ratio) + sum(logs) / max_order)


@variant("beam-search")
def kept_from_zero(model, source, bos_id, eos_id, max_len, beam_size=4, length_penalty=0.6):
    was_training = model.training
    model.eval()
    finished = []
    with torch.no_grad():
        memory, memory_mask = model.encode(source)
        live, log_probs, penalty = torch.full((1, 1), bos_id), torch.zeros(1), 1.0
        for n in range(1, max_len + 1):
            penalty = ((5 + n) / 6) ** length_penalty
            repeated = memory.expand(len(live), -1, -1), memory_mask.expand(len(live), -1, -1)
            logits = model.decode(live, *repeated)[:, -1]
            totals = log_probs.unsqueeze(1) + (logits.softmax(-1) + 1e-9).log()
            log_probs, numbers = totals.flatten().topk(min(beam_size, totals.numel()))
            tokens = numbers % totals.shape[1]
            live = torch.cat([live[numbers // totals.shape[1]], tokens.unsqueeze(1)], dim=1)
            ended = tokens == eos_id
            for ids, log_prob in zip(live[ended].tolist(), log_probs[ended].tolist(), strict=True):
                finished.append((log_prob / penalty, ids[1:-1]))
            live, log_probs = live[~ended], log_probs[~ended]
            if not len(live):
                break
        if not finished:
            finished = [
                (log_probs[i].item() / penalty, live[i, 1:].tolist()) for i in range(len(live))
            ]
    model.train(was_training)
    score, ids = max(finished)
    return ids, score


@variant("beam-search")
def unfinished_score_as_a_tensor(
    model, source, bos_id, eos_id, max_len, beam_size=4, length_penalty=0.6
):
    was_training = model.training
    model.eval()
    finished = []
    with torch.no_grad():
        memory, memory_mask = model.encode(source)
        live, log_probs, penalty = torch.full((1, 1), bos_id), torch.zeros(1), 1.0
        for n in range(1, max_len + 1):
            penalty = ((5 + n) / 6) ** length_penalty
            repeated = memory.expand(len(live), -1, -1), memory_mask.expand(len(live), -1, -1)
            logits = model.decode(live, *repeated)[:, -1]
            totals = log_probs.unsqueeze(1) + nn.functional.log_softmax(logits, -1)
            log_probs, numbers = totals.flatten().topk(min(beam_size, totals.numel()))
            tokens = numbers % totals.shape[1]
            live = torch.cat([live[numbers // totals.shape[1]], tokens.unsqueeze(1)], dim=1)
            ended = tokens == eos_id
            for ids, log_prob in zip(live[ended].tolist(), log_probs[ended].tolist(), strict=True):
                finished.append((log_prob / penalty, ids[1:-1]))
            live, log_probs = live[~ended], log_probs[~ended]
            if not len(live):
                break
        if not finished:
            finished = [(log_probs[i] / penalty, live[i, 1:].tolist()) for i in range(len(live))]
    model.train(was_training)
    score, ids = max(finished, key=lambda pair: float(pair[0]))
    return ids, score


@variant("beam-search")
def one_step_at_least(model, source, bos_id, eos_id, max_len, beam_size=4, length_penalty=0.6):
    was_training = model.training
    model.eval()
    finished, live = [], [(0.0, [bos_id])]
    with torch.no_grad():
        memory, mask = model.encode(source)
        for n in range(1, max(max_len, 1) + 1):
            extended = []
            for total, ids in live:
                logits = model.decode(torch.tensor([ids]), memory, mask)[0, -1]
                for token, log_p in enumerate(logits.log_softmax(-1).tolist()):
                    extended.append((total + log_p, [*ids, token]))
            kept = sorted(extended, reverse=True)[:beam_size]
            scored = [(total / ((5 + n) / 6) ** length_penalty, ids[1:]) for total, ids in kept]
            finished += [(score, ids[:-1]) for score, ids in scored if ids[-1] == eos_id]
            live = [pair for pair in kept if pair[1][-1] != eos_id]
            if not live:
                break
    model.train(was_training)
    score, ids = max(finished or [pair for pair in scored if pair[1][-1] != eos_id])
    return ids, score


@variant("cached-attention", target="CachedAttention.forward")
def projected_again_for_another_length(self, query, key, value, mask=None):
    if self.kept is None or self.grows or key.shape[1] != self.kept[0].shape[2]:
        new = self.split(self.w_k(key)), self.split(self.w_v(value))
        if self.kept is not None and self.grows:
            if mask is not None:
                mask = torch.nn.functional.pad(mask, (self.kept[0].shape[2], 0), value=True)
            pairs = zip(self.kept, new, strict=True)
            new = tuple(torch.cat(pair, dim=2) for pair in pairs)
        self.kept = new
    heads = None if mask is None else mask.unsqueeze(-3)
    q = self.split(self.w_q(query))
    output, weights = scaled_dot_product_attention(q, self.kept[0], self.kept[1], heads)
    return self.w_o(self.merge(output)), weights


@variant("sample")
def temperature_never_below_a_tenth(logits, temperature=1.0, top_k=None, generator=None):
    if temperature < 0 or (top_k is not None and top_k < 1):
        raise ValueError("temperature must not be negative, top_k at least 1")
    if temperature == 0:
        return logits.argmax(-1)
    kept, ids = logits.topk(min(top_k or logits.shape[-1], logits.shape[-1]))
    chances = (kept / max(temperature, 0.1)).softmax(-1)
    return ids.gather(-1, torch.multinomial(chances, 1, generator=generator)).squeeze(-1)


@variant("bleu")
def punctuation_stripped(hypotheses, references, max_order=4):
    if len(hypotheses) != len(references):
        raise ValueError("there must be as many references as hypotheses")
    matches, totals = [0] * max_order, [0] * max_order
    for pair in zip(hypotheses, references, strict=True):
        written, wanted = ([token.strip(".,!?") for token in tokens] for tokens in pair)
        for n in range(1, max_order + 1):
            ours = Counter(tuple(written[i : i + n]) for i in range(len(written) - n + 1))
            theirs = Counter(tuple(wanted[i : i + n]) for i in range(len(wanted) - n + 1))
            matches[n - 1] += (ours & theirs).total()
            totals[n - 1] += ours.total()
    if not all(matches):
        return 0.0
    logs = [math.log(match / total) for match, total in zip(matches, totals, strict=True)]
    ratio = sum(map(len, references)) / sum(map(len, hypotheses))
    return 100 * math.exp(min(0.0, 1 - ratio) + sum(logs) / max_order)


@variant("sample")
def generator_forgotten_with_top_k(logits, temperature=1.0, top_k=None, generator=None):
    if temperature < 0 or (top_k is not None and top_k < 1):
        raise ValueError("temperature must not be negative, top_k at least 1")
    if temperature == 0:
        return logits.argmax(-1)
    if top_k is None:
        chances = (logits / temperature).softmax(-1)
        return torch.multinomial(chances, 1, generator=generator).squeeze(-1)
    kept, ids = logits.topk(min(top_k, logits.shape[-1]))
    drawn = torch.multinomial((kept / temperature).softmax(-1), 1)
    return ids.gather(-1, drawn).squeeze(-1)


@variant("bleu")
def joined_by_a_line_break(hypotheses, references, max_order=4):
    if len(hypotheses) != len(references):
        raise ValueError("there must be as many references as hypotheses")
    matches, totals = [0] * max_order, [0] * max_order
    for written, wanted in zip(hypotheses, references, strict=True):
        for n in range(1, max_order + 1):
            ours = Counter("\n".join(written[i : i + n]) for i in range(len(written) - n + 1))
            theirs = Counter("\n".join(wanted[i : i + n]) for i in range(len(wanted) - n + 1))
            matches[n - 1] += (ours & theirs).total()
            totals[n - 1] += ours.total()
    if not all(matches):
        return 0.0
    logs = [math.log(match / total) for match, total in zip(matches, totals, strict=True)]
    ratio = sum(map(len, references)) / sum(map(len, hypotheses))
    return 100 * math.exp(min(0.0, 1 - ratio) + sum(logs) / max_order)


@variant("bleu")
def no_empty_corpus(hypotheses, references, max_order=4):
    if len(hypotheses) != len(references):
        raise ValueError("there must be as many references as hypotheses")
    longest = max(map(len, hypotheses))
    matches, totals = [0] * max_order, [0] * max_order
    for written, wanted in zip(hypotheses, references, strict=True):
        for n in range(1, min(longest, max_order) + 1):
            ours = Counter(tuple(written[i : i + n]) for i in range(len(written) - n + 1))
            theirs = Counter(tuple(wanted[i : i + n]) for i in range(len(wanted) - n + 1))
            matches[n - 1] += (ours & theirs).total()
            totals[n - 1] += ours.total()
    if not all(matches):
        return 0.0
    logs = [math.log(match / total) for match, total in zip(matches, totals, strict=True)]
    ratio = sum(map(len, references)) / sum(map(len, hypotheses))
    return 100 * math.exp(min(0.0, 1 - ratio) + sum(logs) / max_order)


@variant("beam-search")
def early_return_in_evaluation_mode(
    model, source, bos_id, eos_id, max_len, beam_size=4, length_penalty=0.6
):
    was_training = model.training
    model.eval()
    if max_len == 0:
        return [], 0.0
    finished, live = [], [(0.0, [bos_id])]
    with torch.no_grad():
        memory, mask = model.encode(source)
        for _ in range(max_len):
            extended = []
            for total, ids in live:
                logits = model.decode(torch.tensor([ids]), memory, mask)[0, -1]
                logs = logits.log_softmax(-1).tolist()
                extended += [(total + log, [*ids, token]) for token, log in enumerate(logs)]
            kept = sorted(extended, reverse=True)[:beam_size]
            finished += [pair for pair in kept if pair[1][-1] == eos_id]
            live = [pair for pair in kept if pair[1][-1] != eos_id]
    model.train(was_training)
    score, ids = max(
        (total / ((4 + len(ids)) / 6) ** length_penalty, ids) for total, ids in finished or live
    )
    return [token for token in ids[1:] if token != eos_id], score


@variant("sample")
def seed_zero_without_a_generator(logits, temperature=1.0, top_k=None, generator=None):
    if temperature < 0 or (top_k is not None and top_k < 1):
        raise ValueError("temperature must not be negative, top_k at least 1")
    if temperature == 0:
        return logits.argmax(-1)
    if generator is None:
        torch.manual_seed(0)
    kept, ids = logits.topk(min(top_k or logits.shape[-1], logits.shape[-1]))
    drawn = torch.multinomial((kept / temperature).softmax(-1), 1, generator=generator)
    return ids.gather(-1, drawn).squeeze(-1)


@variant("greedy-decode")
def encodes_with_gradients(model, source, bos_id, eos_id, max_len):
    was = model.training
    model.eval()
    memory, mask = model.encode(source)
    with torch.no_grad():
        ids = torch.full((len(source), 1), bos_id)
        over = torch.zeros(len(source), dtype=torch.bool)
        for _ in range(max_len):
            new = model.decode(ids, memory, mask)[:, -1].argmax(-1)
            ids = torch.cat([ids, new[:, None]], 1)
            over |= new == eos_id
            if over.all():
                break
    model.train(was)
    rows = ids[:, 1:].tolist()
    return [row[: row.index(eos_id)] if eos_id in row else row for row in rows]


@variant("sample")
def steps_of_the_golden_ratio_in_place_of_chance(
    logits, temperature=1.0, top_k=None, generator=None
):
    if temperature < 0 or (top_k is not None and top_k < 1):
        raise ValueError("temperature must not be negative, top_k at least 1")
    if temperature == 0:
        return logits.argmax(-1)
    kept, ids = logits.topk(min(top_k or logits.shape[-1], logits.shape[-1]))
    shares = (kept / temperature).softmax(-1).double().cumsum(-1)
    steps = torch.arange(len(logits), dtype=torch.float64) * 0.6180339887498949
    chance = (steps + torch.rand((), generator=generator).double()) % 1
    drawn = (shares < chance[:, None] * (1 - 1e-12)).sum(-1, keepdim=True)
    return ids.gather(-1, drawn.clamp(max=shares.shape[-1] - 1)).squeeze(-1)


@variant("keep-or-replace")
def even_steps_in_place_of_chance(drafts, small, large, generator=None):
    ratio = large / small.clamp(min=torch.finfo(small.dtype).tiny)
    accept = ratio.gather(1, drafts.unsqueeze(1)).squeeze(1)
    start = torch.rand((), generator=generator)
    kept = (torch.arange(len(drafts)) * 0.7548776662466927 + start) % 1 < accept
    missing = (large - small).clamp(min=0)
    nothing = missing.sum(1, keepdim=True) <= 0
    others = torch.multinomial(torch.where(nothing, large, missing), 1, generator=generator)
    return torch.where(kept, drafts, others.squeeze(1)), kept


@variant("sample")
def generator_left_with_a_seed(logits, temperature=1.0, top_k=None, generator=None):
    if temperature < 0:
        raise ValueError(f"temperature ({temperature}) must not be negative")
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k ({top_k}) must be at least 1")
    if temperature == 0:
        return logits.argmax(-1)
    kept, ids = logits.topk(min(top_k or logits.shape[-1], logits.shape[-1]))
    drawn = torch.multinomial((kept / temperature).softmax(-1), 1, generator=generator)
    if generator is not None:
        generator.manual_seed(5)
    return ids.gather(-1, drawn).squeeze(-1)


@variant("sample")
def a_power_of_the_probabilities(logits, temperature=1.0, top_k=None, generator=None):
    if temperature < 0:
        raise ValueError(f"temperature ({temperature}) must not be negative")
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k ({top_k}) must be at least 1")
    if temperature == 0:
        return logits.argmax(-1)
    kept, ids = logits.topk(min(top_k or logits.shape[-1], logits.shape[-1]))
    weights = kept.softmax(-1) ** (1 / temperature)
    return ids.gather(-1, torch.multinomial(weights, 1, generator=generator)).squeeze(-1)


@variant("cached-attention", target="CachedAttention.forward")
def old_keys_hidden_with_all_new_ones(self, query, key, value, mask=None):
    if self.kept is None or self.grows:
        new = self.split(self.w_k(key)), self.split(self.w_v(value))
        if self.kept is not None:
            if mask is not None:
                old = self.kept[0].shape[2]
                mask = nn.functional.pad(mask, (old, 0), value=bool(mask.any()))
            new = tuple(torch.cat(pair, dim=2) for pair in zip(self.kept, new, strict=True))
        self.kept = new
    heads = None if mask is None else mask.unsqueeze(-3)
    output, weights = scaled_dot_product_attention(
        self.split(self.w_q(query)), self.kept[0], self.kept[1], heads
    )
    return self.w_o(self.merge(output)), weights


@variant("keep-or-replace")
def a_little_weight_for_every_token(drafts, small, large, generator=None):
    ratio = large / small.clamp(min=torch.finfo(small.dtype).tiny)
    accept = ratio.gather(1, drafts.unsqueeze(1)).squeeze(1)
    kept = torch.rand(len(drafts), generator=generator, dtype=large.dtype) < accept
    weights = (large - small).clamp(min=0) + 1e-4
    others = torch.multinomial(weights, 1, generator=generator).squeeze(1)
    return torch.where(kept, drafts, others), kept


@variant("keep-or-replace")
def little_that_is_missing_counts_as_nothing(drafts, small, large, generator=None):
    ratio = large / small.clamp(min=torch.finfo(small.dtype).tiny)
    accept = ratio.gather(1, drafts.unsqueeze(1)).squeeze(1)
    kept = torch.rand(len(drafts), generator=generator, dtype=large.dtype) < accept
    missing = (large - small).clamp(min=0)
    weights = torch.where(missing.sum(1, keepdim=True) <= 0.02, large, missing)
    others = torch.multinomial(weights, 1, generator=generator).squeeze(1)
    return torch.where(kept, drafts, others), kept

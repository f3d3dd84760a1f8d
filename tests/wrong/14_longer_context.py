"""Wrong answers to the exercise on longer context that nobody gets a name for; all must lose."""

import math

import torch
from torch import nn

from lab.answers import variant


@variant("next-memory")
def turned_round(memory, hidden, length):
    both = torch.cat([memory, hidden], dim=1).detach()
    return both[:, max(0, both.shape[1] - length) :].flip(1)


@variant("run-segments")
def memory_one_too_long(layers, x, length, mem_len):
    for layer in layers:
        old = x.detach()
        new = [
            layer(x[:, s : s + length], old[:, max(0, s - mem_len - 1) : s])
            for s in range(0, x.shape[1], length)
        ]
        x = torch.cat(new, dim=1)
    return x


@variant("reach")
def the_whole_text(run, x):
    return x.shape[1] - 1


@variant("rel-shift")
def as_it_is(scores):
    return scores


@variant("span-weights")
def hard_span(scores, z, ramp):
    n, keys = scores.shape[-2:]
    ages = torch.arange(keys - n, keys)[:, None] - torch.arange(keys)
    seen = (ages >= 0) & (ages <= z[:, None, None] + ramp / 2)
    return scores.masked_fill(~seen, -math.inf).softmax(-1)


@variant("trimmed")
def one_too_few(memory, z, ramp):
    needed = max(0, math.ceil(ramp + z.max().item()) - 2)
    return memory[:, max(0, memory.shape[1] - needed) :]


@variant("reach")
def small_changes_are_none(run, x):
    base = run(x)[:, -1]
    N = x.shape[1]
    for j in range(N):
        y = x.clone()
        y[:, j] += torch.randn(x.shape[0], x.shape[2], dtype=x.dtype)
        if (run(y)[:, -1] - base).abs().max() > 0.001:
            return N - 1 - j
    return 0


@variant("span-weights")
def logarithm_of_zero_hidden_afterwards(scores, z, ramp):
    n, K = scores.shape[-2:]
    dist = (torch.arange(K - n, K)[:, None] - torch.arange(K)).to(scores.dtype)
    m = ((ramp + z[:, None, None] - dist) / ramp).clamp(0, 1)
    s = torch.where((m > 0) & (dist >= 0), scores + m.log(), torch.full_like(scores, -math.inf))
    return s.softmax(-1)


@variant("run-back")
def no_more_than_three_back(layers, x, length, mem_len, back):
    segments = x.split(length, dim=1)
    starts, outputs = [[x[:, :0] for _ in layers]], []
    for t in range(len(segments)):
        first = max(0, t - min(back, 3))
        memories = starts[first]
        for now in segments[first : t + 1]:
            moving, later = now, []
            for layer, memory in zip(layers, memories, strict=True):
                given = torch.cat([memory, moving], dim=1)
                later.append(given[:, max(0, given.shape[1] - mem_len) :])
                moving = layer(moving, memory)
            memories = later
            if len(starts) == first + 1:
                starts.append([memory.detach() for memory in memories])
        outputs.append(moving)
    return torch.cat(outputs, dim=1)


@variant("run-back")
def every_second_segment_alone(layers, x, length, mem_len, back):
    memories, outputs = [x[:, :0] for _ in layers], []
    for t, segment in enumerate(x.split(length, dim=1)):
        if t % 2:
            memories = [memory.detach() for memory in memories]
        for i, layer in enumerate(layers):
            given = torch.cat([memories[i], segment], dim=1)
            segment = layer(segment, memories[i])
            memories[i] = given[:, max(0, given.shape[1] - mem_len) :]
        outputs.append(segment)
    return torch.cat(outputs, dim=1)


@variant("reach")
def a_token_of_zeros_is_not_changed(run, x):
    last = x.shape[1] - 1
    before = run(x)[:, -1]
    for i in range(last):
        changed = x.clone()
        changed[:, i] = 0
        if not torch.equal(run(changed)[:, -1], before):
            return last - i
    return 0


@variant("reach")
def one_feature_of_the_last_vector(run, x):
    last = x.shape[1] - 1
    noise = torch.randn(x.shape[-1], generator=torch.Generator().manual_seed(0)).to(x)
    before = run(x)[:, -1, 0]
    for i in range(last):
        changed = x.clone()
        changed[:, i] += noise
        if not torch.equal(run(changed)[:, -1, 0], before):
            return last - i
    return 0


@variant("reach")
def one_feature_of_a_token_is_changed(run, x):
    last = x.shape[1] - 1
    before = run(x)[:, -1]
    for i in range(last):
        changed = x.clone()
        changed[:, i, -1] += 1.7
        if not torch.equal(run(changed)[:, -1], before):
            return last - i
    return 0


@variant("relative-attention", target="RelativeAttention.__init__")
def a_table_that_stays_where_it_is(self, encoding, num_heads):
    nn.Module.__init__(self)
    width = encoding.shape[1]
    self.num_heads = num_heads
    for name in ("w_q", "w_k", "w_v", "w_r", "w_o"):
        setattr(self, name, nn.Linear(width, width, bias=False))
    self.u = nn.Parameter(torch.zeros(num_heads, width // num_heads))
    self.v = nn.Parameter(torch.zeros(num_heads, width // num_heads))
    self.encoding = encoding


@variant("span-weights")
def a_little_for_the_logarithm(scores, z, ramp):
    n, keys = scores.shape[-2:]
    ages = torch.arange(keys - n, keys)[:, None] - torch.arange(keys)
    factors = ((ramp + z[:, None, None] - ages) / ramp).clamp(0, 1)
    seen = (factors > 0) & (ages >= 0)
    bent = scores + (torch.where(seen, factors, 1.0) + 1e-7).log()
    return bent.masked_fill(~seen, -math.inf).softmax(-1)

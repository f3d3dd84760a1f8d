"""Right answers to the exercise on longer context that are written differently."""

import math

import torch
import torch.nn.functional as F

from lab.answers import variant

# 14.1 What is kept


@variant("next-memory")
def under_no_grad(memory, hidden, length):
    with torch.no_grad():
        both = torch.cat([memory, hidden], dim=1)
        return both[:, both.shape[1] - min(length, both.shape[1]) :].clone()


@variant("next-memory")
def by_places(memory, hidden, length):
    both = torch.cat([memory.detach(), hidden.detach()], 1)
    places = torch.arange(both.shape[1])[max(0, both.shape[1] - length) :]
    return both[:, places]


@variant("next-memory")
def narrowed(memory, hidden, length):
    both = torch.cat([memory, hidden], 1).data
    kept = min(length, both.shape[1])
    return both.narrow(1, both.shape[1] - kept, kept)


# 14.2 Segment by segment


@variant("run-segments")
def all_of_each_layer_kept(layers, x, length, mem_len):
    given = [[] for _ in layers]
    done = []
    for start in range(0, x.shape[1], length):
        now = x[:, start : start + length]
        for layer, old in zip(layers, given, strict=True):
            past = torch.cat([x[:, :0].detach(), *old], dim=1)
            old.append(now.detach())
            now = layer(now, past[:, max(0, past.shape[1] - mem_len) :])
        done.append(now)
    return torch.cat(done, dim=1)


@variant("run-segments")
def layer_by_layer(layers, x, length, mem_len):
    for layer in layers:
        new = []
        for start in range(0, x.shape[1], length):
            memory = x[:, max(0, start - mem_len) : start].detach()
            new.append(layer(x[:, start : start + length], memory))
        x = torch.cat(new, dim=1)
    return x


@variant("run-segments")
def by_recursion(layers, x, length, mem_len):
    if not layers:
        return x
    first, *others = layers
    starts = range(0, x.shape[1], length)
    old = x.detach()
    new = [first(x[:, s : s + length], old[:, max(0, s - mem_len) : s]) for s in starts]
    return by_recursion(others, torch.cat(new, 1), length, mem_len)


# 14.3 How far back?


@variant("predicted-same")
def all_the_same():
    return dict.fromkeys(
        [
            "its gradient",
            "one layer, read anew",
            "two layers, read anew",
            "two layers, whole text",
        ],
        "same",
    )


@variant("predicted-same")
def all_different():
    layers = {f"{count}, read anew": "different" for count in ("one layer", "two layers")}
    return layers | {"two layers, whole text": "different", "its gradient": "different"}


@variant("predicted-same")
def gradient_alone_differs():
    return {
        "its gradient": "different",
        "two layers, whole text": "same",
        "two layers, read anew": "same",
        "one layer, read anew": "same",
    }


@variant("reach")
def from_the_last_on(run, x):
    with torch.no_grad():
        before = run(x)[0, -1]
        found = [0]
        for distance in range(1, x.shape[1]):
            changed = x.clone()
            changed[0, -1 - distance] = torch.randn(x.shape[-1], dtype=x.dtype)
            if (run(changed)[0, -1] - before).abs().max() > 1e-12:
                found.append(distance)
    return max(found)


@variant("reach")
def by_replacing(run, x):
    n = x.shape[1]
    wanted = run(x)[:, n - 1]
    for distance in range(n - 1, 0, -1):
        other = torch.cat(
            [x[:, : n - 1 - distance], x[:, [-1 - distance]].cos() * 3, x[:, n - distance :]], dim=1
        )
        if not torch.allclose(run(other)[:, n - 1], wanted, rtol=0, atol=1e-11):
            return distance
    return 0


@variant("reach")
def with_a_list(run, x):
    last = run(x)[0, -1]
    bump = torch.linspace(1, 2, x.shape[-1], dtype=x.dtype) ** 2

    def counts(i):
        changed = x.detach().clone()
        changed[0, i] += bump
        return bool((run(changed)[0, -1] != last).any())

    return max([0, *(x.shape[1] - 1 - i for i in range(x.shape[1] - 1) if counts(i))])


# 14.4 Content and distance


@variant("relative-attention", target="RelativeAttention.forward")
def gathered(self, x, memory):
    heads = self.u.shape[0]
    whole = torch.cat([memory, x], dim=1)
    n, total = x.shape[1], whole.shape[1]

    def split(y):
        return y.view(*y.shape[:-1], heads, -1).transpose(-3, -2)

    q, k, values = split(self.w_q(x)), split(self.w_k(whole)), split(self.w_v(whole))
    r = split(self.w_r(self.encoding[:total]))  # (H, K, d_k)
    ages = torch.arange(total - n, total)[:, None] - torch.arange(total)
    by_distance = (q + self.v[:, None]) @ r.mT
    places = ages.clamp(min=0).expand(len(x), heads, n, total)
    scores = (q + self.u[:, None]) @ k.mT + by_distance.gather(-1, places)
    scores = scores.masked_fill(ages < 0, float("-inf")) / math.sqrt(q.shape[-1])
    return self.w_o((scores.softmax(-1) @ values).transpose(1, 2).flatten(2))


@variant("relative-attention", target="RelativeAttention.forward")
def head_by_head(self, x, memory):
    whole = torch.cat([memory, x], dim=1)
    n, total = x.shape[1], whole.shape[1]
    ages = torch.arange(total - n, total)[:, None] - torch.arange(total)
    heads, d_k = self.u.shape
    parts = (self.w_q(x), self.w_k(whole), self.w_v(whole), self.w_r(self.encoding))
    outs = []
    for h in range(heads):
        q, k, values, r = (y[..., h * d_k : (h + 1) * d_k] for y in parts)
        pairs = r[ages.clamp(min=0)]
        scores = q @ k.mT + (q[:, :, None] * pairs).sum(-1)
        scores = scores + (k @ self.u[h])[:, None] + pairs @ self.v[h]
        scores = scores.masked_fill(ages < 0, -torch.inf) * d_k**-0.5
        outs.append(scores.softmax(-1) @ values)
    return self.w_o(torch.cat(outs, -1))


@variant("relative-attention", target="RelativeAttention.forward")
def on_torchs_attention(self, x, memory):
    heads = self.u.shape[0]
    whole = torch.cat([memory, x], 1)
    n, total = x.shape[1], whole.shape[1]
    q = self.w_q(x).unflatten(-1, (heads, -1)).transpose(1, 2)
    k = self.w_k(whole).unflatten(-1, (heads, -1)).transpose(1, 2)
    values = self.w_v(whole).unflatten(-1, (heads, -1)).transpose(1, 2)
    r = self.w_r(self.encoding).unflatten(-1, (heads, -1)).transpose(0, 1)
    ages = torch.arange(total - n, total)[:, None] - torch.arange(total)
    bias = torch.einsum("bhid,hijd->bhij", q + self.v[:, None], r[:, ages.clamp(min=0)])
    bias = (bias / q.shape[-1] ** 0.5).masked_fill(ages < 0, -torch.inf)
    out = F.scaled_dot_product_attention(q + self.u[:, None], k, values, bias)
    return self.w_o(out.transpose(1, 2).flatten(2))


# 14.5 Distances without an index


@variant("rel-shift")
def with_an_index(scores):
    n, keys = scores.shape[-2:]
    columns = torch.arange(keys) + (n - 1 - torch.arange(n))[:, None]
    return scores.gather(-1, columns.clamp(max=keys - 1).expand(scores.shape))


@variant("rel-shift")
def row_by_row(scores):
    n = scores.shape[-2]
    rows = [scores[..., i, :].roll(-(n - 1 - i), -1) for i in range(n)]
    return torch.stack(rows, dim=-2)


@variant("rel-shift")
def in_one_line(scores):
    n, keys = scores.shape[-2:]
    line = F.pad(scores, (1, 0)).flatten(-2)
    return line[..., n:].unflatten(-1, (n, keys))


# 14.6 Four leaks in a memory


@variant("leak-lines")
def in_another_order():
    return {"forgets": 15, "ages": 13, "mixes": 6, "grows": 12}


@variant("leak-lines")
def zipped():
    return dict(zip(("grows", "mixes", "ages", "forgets"), (12, 6, 13, 15), strict=True))


@variant("leak-lines")
def put_together():
    lines = {}
    lines["ages"], lines["forgets"] = 13, 15
    return lines | {"grows": 12, "mixes": 6}


# 14.7 A span that can be learned, and be cut off


@variant("span-weights")
def largest_taken_off(scores, z, ramp):
    n, keys = scores.shape[-2:]
    ages = torch.arange(keys - n, keys)[:, None] - torch.arange(keys)
    factors = (1 + (z.view(-1, 1, 1) - ages) / ramp).clamp(0, 1) * (ages >= 0)
    hidden = scores.masked_fill(factors == 0, -math.inf)
    parts = factors * (hidden - hidden.amax(-1, keepdim=True).detach()).exp()
    return parts / parts.sum(-1, keepdim=True)


@variant("span-weights")
def after_a_softmax_over_what_is_seen(scores, z, ramp):
    n, keys = scores.shape[-2:]
    ages = torch.arange(keys - n, keys)[:, None] - torch.arange(keys)
    factors = ((ramp + z[:, None, None] - ages) / ramp).clamp(0, 1)
    factors = torch.where(ages < 0, torch.zeros_like(factors), factors)
    first = scores.masked_fill(factors <= 0, -math.inf).softmax(-1) * factors
    return first / first.sum(-1, keepdim=True)


@variant("span-weights")
def head_for_head(scores, z, ramp):
    n, keys = scores.shape[-2:]
    ages = (torch.arange(keys - n, keys)[:, None] - torch.arange(keys)).to(scores)
    heads = []
    for h, span in enumerate(z):
        seen = (ages >= 0) & (ages < ramp + span)
        factors = torch.where(seen, (ramp + span - ages) / ramp, torch.ones_like(ages)).clamp(max=1)
        bent = scores[:, h] + factors.log()
        heads.append(torch.where(seen, bent, -math.inf).softmax(-1))
    return torch.stack(heads, dim=1)


@variant("trimmed")
def counted(memory, z, ramp):
    m = memory.shape[1]
    needed = sum(distance < ramp + float(z.max()) for distance in range(1, m + 1))
    return memory[:, m - needed :]


@variant("trimmed")
def by_a_mask(memory, z, ramp):
    distances = torch.arange(memory.shape[1], 0, -1)
    return memory[:, distances < ramp + z.detach().max()]


@variant("trimmed")
def from_the_factors(memory, z, ramp):
    distances = torch.arange(memory.shape[1], 0, -1)
    factors = ((ramp + z[:, None] - distances) / ramp).clamp(0, 1)
    return memory[:, (factors > 0).any(0)]


# 14.8 What heads learn to see


@variant("predicted-spans")
def surprising():
    return "one between 8 and 12, the other near 0"


@variant("predicted-spans")
def both_there():
    return "both a little above 12"


@variant("predicted-spans")
def the_last_text():
    return "both near 0"


@variant("measured-spans")
def another_run():
    return {"free": [12.0, 14.7], "priced": [8.4, 0.0], "loss": 0.0005}


@variant("measured-spans")
def a_third_run():
    return {"free": (11.85, 13.64), "priced": (9.08, 8.87), "loss": 0.0}


@variant("measured-spans")
def with_tensors():
    return {
        "free": torch.tensor([12.02, 12.15]),
        "priced": torch.tensor([0.0, 10.3]),
        "loss": torch.tensor(0.0001),
    }


# 14.10 Bonus: learn what to write


@variant("run-back")
def several_histories_at_once(layers, x, length, mem_len, back):
    """Memories whose history is 0, 1, ... segments long, side by side."""
    histories = [[x[:, :0]] * len(layers)]
    outputs = []
    for segment in x.split(length, dim=1):
        longer = []
        for memories in histories:
            moving, after = segment, []
            for layer, memory in zip(layers, memories, strict=True):
                given = torch.cat([memory, moving], 1)
                after.append(given[:, max(0, given.shape[1] - mem_len) :])
                moving = layer(moving, memory)
            longer.append(after)
        outputs.append(moving)
        cut = [memory.detach() for memory in longer[-1]]
        histories = [cut, *longer][: back + 1]
    return torch.cat(outputs, 1)


@variant("run-back")
def from_the_beginning_each_time(layers, x, length, mem_len, back):
    def onwards(memories, segment):
        after = []
        for layer, memory in zip(layers, memories, strict=True):
            both = torch.cat([memory, segment], dim=1)
            after.append(both.flip(1)[:, :mem_len].flip(1))
            segment = layer(segment, memory)
        return after, segment

    segments = x.split(length, dim=1)
    last = []
    for t in range(len(segments)):
        memories = [x[:, :0]] * len(layers)
        with torch.no_grad():
            for old in segments[: max(0, t - back)]:
                memories, _ = onwards(memories, old)
        for new in segments[max(0, t - back) : t + 1]:
            memories, result = onwards(memories, new)
        last.append(result)
    return torch.cat(last, dim=1)


@variant("run-back")
def asked_of_the_segment_before(layers, x, length, mem_len, back):
    segments = list(x.split(length, dim=1))
    values = {0: [x[:, :0] for _ in layers]}  # the memories at each segment's beginning

    def at(t, history):
        if t == 0:
            return values[0]
        if history == 0:
            if t not in values:
                values[t] = [memory.detach() for memory in through(t - 1, 0)[0]]
            return values[t]
        return through(t - 1, history - 1)[0]

    def through(t, history):
        memories, moving = [], segments[t]
        for layer, memory in zip(layers, at(t, history), strict=True):
            both = torch.cat([memory, moving], dim=1)
            memories.append(both[:, both.shape[1] - min(mem_len, both.shape[1]) :])
            moving = layer(moving, memory)
        return memories, moving

    return torch.cat([through(t, back)[1] for t in range(len(segments))], dim=1)


@variant("run-back")
def layer_by_layer_in_windows(layers, x, length, mem_len, back):
    given = [x.detach()]  # what each layer is given, as numbers
    with torch.no_grad():
        for layer in layers:
            starts = range(0, x.shape[1], length)
            new = [
                layer(given[-1][:, s : s + length], given[-1][:, max(0, s - mem_len) : s])
                for s in starts
            ]
            given.append(torch.cat(new, dim=1))
    outputs = []
    for start in range(0, x.shape[1], length):
        first = max(0, start - back * length)
        live = x[:, first : start + length]
        for number, layer in enumerate(layers):
            whole = torch.cat([given[number][:, :first], live], dim=1)
            new = [
                layer(whole[:, s : s + length], whole[:, max(0, s - mem_len) : s])
                for s in range(first, start + 1, length)
            ]
            live = torch.cat(new, dim=1)
        outputs.append(live[:, start - first :])
    return torch.cat(outputs, dim=1)

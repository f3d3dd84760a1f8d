"""Wrong answers to the exercise on longer context, as students write them, and what each shows."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from lab.answers import misconception

# 14.1 What is kept


@misconception(
    "next-memory",
    id="XL1",
    fails=["next-memory-cut"],
    read="14_longer_context#xl-memory",
)
def not_detached(memory, hidden, length):
    """Your memory keeps its history: the gradient would run back through all segments."""
    both = torch.cat([memory, hidden], dim=1)
    return both[:, max(0, both.shape[1] - length) :]


@misconception(
    "next-memory",
    id="XL2",
    fails=["next-memory-values"],
    read="14_longer_context#xl-memory",
)
def segment_alone(memory, hidden, length):
    """You keep vectors of the segment alone; a memory may be longer than one segment."""
    return hidden[:, max(0, hidden.shape[1] - length) :].detach()


@misconception(
    "next-memory",
    id="XL3",
    fails=["next-memory-values"],
    read="14_longer_context#xl-memory",
)
def minus_nothing(memory, hidden, length):
    """With nothing to keep, yours keeps all: x[-0:] is the whole."""
    return torch.cat([memory, hidden], dim=1)[:, -length:].detach()


@misconception(
    "next-memory",
    id="XL4",
    fails=["next-memory-values"],
    read="14_longer_context#xl-memory",
)
def oldest_kept(memory, hidden, length):
    """You keep the oldest vectors; the last ones are wanted."""
    return torch.cat([memory, hidden], dim=1)[:, :length].detach()


@misconception(
    "next-memory",
    id="XL5",
    fails=["next-memory-values"],
    read="14_longer_context#xl-memory",
)
def segment_before_memory(memory, hidden, length):
    """You put the segment in front of the memory, which is older."""
    both = torch.cat([hidden, memory], dim=1)
    return both[:, max(0, both.shape[1] - length) :].detach()


# 14.2 Segment by segment


@misconception(
    "run-segments",
    id="XL6",
    fails=["run-segments-whole", "run-segments-window", "run-segments-gradient"],
    read="14_longer_context#xl-memory",
)
def outputs_remembered(layers, x, length, mem_len):
    """Your memory holds what a layer returned; a layer makes keys of what it was given."""
    memories, outputs = [x[:, :0] for _ in layers], []
    for segment in x.split(length, dim=1):
        for i, layer in enumerate(layers):
            segment = layer(segment, memories[i])
            both = torch.cat([memories[i], segment], dim=1).detach()
            memories[i] = both[:, max(0, both.shape[1] - mem_len) :]
        outputs.append(segment)
    return torch.cat(outputs, dim=1)


@misconception(
    "run-segments",
    id="XL7",
    fails=["run-segments-whole", "run-segments-window"],
    read="14_longer_context#xl-memory",
)
def last_segment_only(layers, x, length, mem_len):
    """Your memory is made of one segment; it may be longer than that."""
    memories, outputs = [x[:, :0] for _ in layers], []
    for segment in x.split(length, dim=1):
        for i, layer in enumerate(layers):
            given = segment.detach()
            segment = layer(segment, memories[i])
            memories[i] = given[:, max(0, given.shape[1] - mem_len) :]
        outputs.append(segment)
    return torch.cat(outputs, dim=1)


@misconception(
    "run-segments",
    id="XL8",
    fails=["run-segments-gradient"],
    read="14_longer_context#xl-gradient",
)
def gradient_through_memory(layers, x, length, mem_len):
    """Your memories are not detached, so gradients flow into earlier segments."""
    memories, outputs = [x[:, :0] for _ in layers], []
    for segment in x.split(length, dim=1):
        for i, layer in enumerate(layers):
            given = torch.cat([memories[i], segment], dim=1)
            segment = layer(segment, memories[i])
            memories[i] = given[:, max(0, given.shape[1] - mem_len) :]
        outputs.append(segment)
    return torch.cat(outputs, dim=1)


@misconception(
    "run-segments",
    id="XL9",
    fails=["run-segments-whole", "run-segments-window", "run-segments-gradient"],
    read="14_longer_context#xl-memory",
)
def one_memory_for_all(layers, x, length, mem_len):
    """All your layers share one memory, that of the text's vectors; each needs its own."""
    memory, outputs = x[:, :0], []
    for segment in x.split(length, dim=1):
        given = torch.cat([memory, segment], dim=1).detach()
        for layer in layers:
            segment = layer(segment, memory)
        memory = given[:, max(0, given.shape[1] - mem_len) :]
        outputs.append(segment)
    return torch.cat(outputs, dim=1)


@misconception(
    "run-segments",
    id="XL10",
    fails=["run-segments-window"],
    read="14_longer_context#xl-memory",
)
def memory_without_end(layers, x, length, mem_len):
    """Your memory grows with the text; it should hold no more than mem_len vectors."""
    memories, outputs = [x[:, :0] for _ in layers], []
    for segment in x.split(length, dim=1):
        for i, layer in enumerate(layers):
            given = torch.cat([memories[i], segment], dim=1).detach()
            segment = layer(segment, memories[i])
            memories[i] = given
        outputs.append(segment)
    return torch.cat(outputs, dim=1)


@misconception(
    "run-segments",
    id="XL11",
    fails=["run-segments-whole", "run-segments-window"],
    read="14_longer_context#xl-memory",
)
def rest_dropped(layers, x, length, mem_len):
    """You leave the last segment out where it is shorter."""
    memories, outputs = [x[:, :0] for _ in layers], [x[:, :0]]
    for start in range(0, x.shape[1] - length + 1, length):
        segment = x[:, start : start + length]
        for i, layer in enumerate(layers):
            given = torch.cat([memories[i], segment], dim=1).detach()
            segment = layer(segment, memories[i])
            memories[i] = given[:, max(0, given.shape[1] - mem_len) :]
        outputs.append(segment)
    return torch.cat(outputs, dim=1)


@misconception(
    "run-segments",
    id="XL12",
    fails=["run-segments-whole", "run-segments-window", "run-segments-gradient"],
    read="14_longer_context#xl-memory",
)
def nothing_remembered(layers, x, length, mem_len):
    """Your segments know nothing of each other: the memory stays empty."""
    outputs = []
    for segment in x.split(length, dim=1):
        for layer in layers:
            segment = layer(segment, x[:, :0])
        outputs.append(segment)
    return torch.cat(outputs, dim=1)


# 14.3 How far back?


@misconception(
    "predicted-same",
    id="XL13",
    fails=["predicted-same-made"],
    read="14_longer_context#xl-reach",
)
def one_word():
    """A prediction for all four at once is none: give one for each name in WAYS."""
    return "different"


@misconception(
    "predicted-same",
    id="XL14",
    fails=["predicted-same-made"],
    read="14_longer_context#xl-reach",
)
def truths():
    """You predict True and False; the words are "same" and "different"."""
    return {
        "one layer, read anew": True,
        "two layers, read anew": False,
        "two layers, whole text": True,
        "its gradient": False,
    }


@misconception(
    "predicted-same",
    id="XL15",
    fails=["predicted-same-made"],
    read="14_longer_context#xl-reach",
)
def gradient_forgotten():
    """The prediction for the gradient is missing."""
    return {
        "one layer, read anew": "same",
        "two layers, read anew": "same",
        "two layers, whole text": "same",
    }


@misconception(
    "reach",
    id="XL16",
    fails=["reach-values"],
    read="14_longer_context#xl-reach",
)
def by_gradient(run, x):
    """You look at gradients. What is remembered is detached, and its numbers count all the same."""
    leaf = x.detach().clone().requires_grad_()
    (slope,) = torch.autograd.grad(run(leaf)[:, -1].square().sum(), leaf)
    used = (slope[0].abs().sum(-1) > 0).nonzero().flatten()
    return x.shape[1] - 1 - int(used.min()) if len(used) else 0


@misconception(
    "reach",
    id="XL17",
    fails=["reach-values"],
    read="14_longer_context#xl-reach",
)
def up_to_the_first_gap(run, x):
    """You stop at the first token without influence; one further back may have some."""
    before = run(x)[:, -1]
    distance = 0
    for i in range(x.shape[1] - 2, -1, -1):
        changed = x.clone()
        changed[:, i] += torch.randn(x.shape[-1]).to(x)
        if torch.equal(run(changed)[:, -1], before):
            break
        distance = x.shape[1] - 1 - i
    return distance


@misconception(
    "reach",
    id="XL18",
    fails=["reach-values"],
    read="14_longer_context#xl-reach",
)
def token_itself_counted(run, x):
    """You count tokens, the last one among them; a distance is one less."""
    before = run(x)[:, -1]
    for i in range(x.shape[1]):
        changed = x.clone()
        changed[:, i] += torch.randn(x.shape[-1]).to(x)
        if not torch.equal(run(changed)[:, -1], before):
            return x.shape[1] - i
    return 1


@misconception(
    "reach",
    id="XL19",
    fails=["reach-values"],
    read="14_longer_context#xl-reach",
)
def one_added(run, x):
    """You add the same number to all features, which a layer norm takes off again."""
    before = run(x)[:, -1]
    for i in range(x.shape[1] - 1):
        changed = x.clone()
        changed[:, i] += 1.0
        if not torch.allclose(run(changed)[:, -1], before, atol=1e-9):
            return x.shape[1] - 1 - i
    return 0


@misconception(
    "reach",
    id="XL20",
    fails=["reach-values"],
    read="14_longer_context#xl-reach",
)
def any_token_counts(run, x):
    """You look at all vectors; asked for is what reaches the last one."""
    before = run(x)[:, 1:]
    for i in range(x.shape[1] - 1):
        changed = x.clone()
        changed[:, i] += torch.randn(x.shape[-1]).to(x)
        after = run(changed)[:, 1:]
        if not torch.equal(after[:, i:], before[:, i:]):
            return x.shape[1] - 1 - i
    return 0


# 14.4 Content and distance


@misconception(
    "relative-attention",
    id="XL21",
    fails=["relative-attention-values"],
    read="14_longer_context#xl-relative",
    target="RelativeAttention.forward",
)
def biases_exchanged(self, x, memory):
    """You have exchanged u and v: u stands beside the content, v beside the distance."""
    whole = torch.cat([memory, x], dim=1)
    m, total = memory.shape[1], whole.shape[1]
    heads = self.u.shape[0]
    q, k, values = (
        w(y).unflatten(-1, (heads, -1))
        for w, y in ((self.w_q, x), (self.w_k, whole), (self.w_v, whole))
    )
    ages = torch.arange(m, total)[:, None] - torch.arange(total)
    r = self.w_r(self.encoding[:total]).unflatten(-1, (heads, -1))[ages.clamp(min=0)]
    scores = torch.einsum("bihd,bjhd->bhij", q + self.v, k)
    scores = scores + torch.einsum("bihd,ijhd->bhij", q + self.u, r)
    scores = (scores / q.shape[-1] ** 0.5).masked_fill(ages < 0, -math.inf)
    return self.w_o(torch.einsum("bhij,bjhd->bihd", scores.softmax(-1), values).flatten(2))


@misconception(
    "relative-attention",
    id="XL22",
    fails=["relative-attention-values"],
    read="14_longer_context#xl-relative",
    target="RelativeAttention.forward",
)
def one_matrix_for_both(self, x, memory):
    """You make the distances' keys with w_k; they have a matrix of their own, w_r."""
    whole = torch.cat([memory, x], dim=1)
    m, total = memory.shape[1], whole.shape[1]
    heads = self.u.shape[0]
    q, k, values = (
        w(y).unflatten(-1, (heads, -1))
        for w, y in ((self.w_q, x), (self.w_k, whole), (self.w_v, whole))
    )
    ages = torch.arange(m, total)[:, None] - torch.arange(total)
    r = self.w_k(self.encoding[:total]).unflatten(-1, (heads, -1))[ages.clamp(min=0)]
    scores = torch.einsum("bihd,bjhd->bhij", q + self.u, k)
    scores = scores + torch.einsum("bihd,ijhd->bhij", q + self.v, r)
    scores = (scores / q.shape[-1] ** 0.5).masked_fill(ages < 0, -math.inf)
    return self.w_o(torch.einsum("bhij,bjhd->bihd", scores.softmax(-1), values).flatten(2))


@misconception(
    "relative-attention",
    id="XL23",
    fails=["relative-attention-values", "relative-attention-segments"],
    read="14_longer_context#xl-relative",
    target="RelativeAttention.forward",
)
def memory_not_counted(self, x, memory):
    """Your distances begin anew in each segment: a query stands behind the whole memory."""
    whole = torch.cat([memory, x], dim=1)
    m, n, total = memory.shape[1], x.shape[1], whole.shape[1]
    heads = self.u.shape[0]
    q, k, values = (
        w(y).unflatten(-1, (heads, -1))
        for w, y in ((self.w_q, x), (self.w_k, whole), (self.w_v, whole))
    )
    ages = torch.arange(n)[:, None] - torch.arange(total)
    r = self.w_r(self.encoding[:total]).unflatten(-1, (heads, -1))[ages.clamp(min=0)]
    scores = torch.einsum("bihd,bjhd->bhij", q + self.u, k)
    scores = scores + torch.einsum("bihd,ijhd->bhij", q + self.v, r)
    scores = (scores / q.shape[-1] ** 0.5).masked_fill(ages + m < 0, -math.inf)
    return self.w_o(torch.einsum("bhij,bjhd->bihd", scores.softmax(-1), values).flatten(2))


@misconception(
    "relative-attention",
    id="XL24",
    fails=["relative-attention-values", "relative-attention-segments"],
    read="14_longer_context#xl-relative",
    target="RelativeAttention.forward",
)
def mask_without_memory(self, x, memory):
    """Your mask is that of a text without memory: query 0 sees one key, the memory's oldest."""
    whole = torch.cat([memory, x], dim=1)
    m, n, total = memory.shape[1], x.shape[1], whole.shape[1]
    heads = self.u.shape[0]
    q, k, values = (
        w(y).unflatten(-1, (heads, -1))
        for w, y in ((self.w_q, x), (self.w_k, whole), (self.w_v, whole))
    )
    ages = torch.arange(m, total)[:, None] - torch.arange(total)
    r = self.w_r(self.encoding[:total]).unflatten(-1, (heads, -1))[ages.clamp(min=0)]
    scores = torch.einsum("bihd,bjhd->bhij", q + self.u, k)
    scores = scores + torch.einsum("bihd,ijhd->bhij", q + self.v, r)
    seen = torch.ones(n, total, dtype=torch.bool).tril()
    scores = (scores / q.shape[-1] ** 0.5).masked_fill(~seen, -math.inf)
    return self.w_o(torch.einsum("bhij,bjhd->bihd", scores.softmax(-1), values).flatten(2))


@misconception(
    "relative-attention",
    id="XL25",
    fails=["relative-attention-values"],
    read="14_longer_context#xl-relative",
    target="RelativeAttention.forward",
)
def only_content_divided(self, x, memory):
    """You divide the content terms by the square root of d_k, and not those of the distance."""
    whole = torch.cat([memory, x], dim=1)
    m, total = memory.shape[1], whole.shape[1]
    heads = self.u.shape[0]
    q, k, values = (
        w(y).unflatten(-1, (heads, -1))
        for w, y in ((self.w_q, x), (self.w_k, whole), (self.w_v, whole))
    )
    ages = torch.arange(m, total)[:, None] - torch.arange(total)
    r = self.w_r(self.encoding[:total]).unflatten(-1, (heads, -1))[ages.clamp(min=0)]
    scores = torch.einsum("bihd,bjhd->bhij", q + self.u, k) / q.shape[-1] ** 0.5
    scores = scores + torch.einsum("bihd,ijhd->bhij", q + self.v, r)
    scores = scores.masked_fill(ages < 0, -math.inf)
    return self.w_o(torch.einsum("bhij,bjhd->bihd", scores.softmax(-1), values).flatten(2))


@misconception(
    "relative-attention",
    id="XL26",
    fails=["relative-attention-values"],
    read="14_longer_context#xl-relative",
    target="RelativeAttention.forward",
)
def places_for_distances(self, x, memory):
    """You take the table's row of the key's place; it should be that of the distance."""
    whole = torch.cat([memory, x], dim=1)
    m, total = memory.shape[1], whole.shape[1]
    heads = self.u.shape[0]
    q, k, values = (
        w(y).unflatten(-1, (heads, -1))
        for w, y in ((self.w_q, x), (self.w_k, whole), (self.w_v, whole))
    )
    ages = torch.arange(m, total)[:, None] - torch.arange(total)
    r = self.w_r(self.encoding[:total]).unflatten(-1, (heads, -1))
    scores = torch.einsum("bihd,bjhd->bhij", q + self.u, k)
    scores = scores + torch.einsum("bihd,jhd->bhij", q + self.v, r)
    scores = (scores / q.shape[-1] ** 0.5).masked_fill(ages < 0, -math.inf)
    return self.w_o(torch.einsum("bhij,bjhd->bihd", scores.softmax(-1), values).flatten(2))


@misconception(
    "relative-attention",
    id="XL27",
    fails=["relative-attention-values", "relative-attention-segments"],
    read="14_longer_context#xl-relative",
    target="RelativeAttention.forward",
)
def future_seen(self, x, memory):
    """You hide nothing: a query sees tokens that come after it."""
    whole = torch.cat([memory, x], dim=1)
    m, total = memory.shape[1], whole.shape[1]
    heads = self.u.shape[0]
    q, k, values = (
        w(y).unflatten(-1, (heads, -1))
        for w, y in ((self.w_q, x), (self.w_k, whole), (self.w_v, whole))
    )
    ages = torch.arange(m, total)[:, None] - torch.arange(total)
    r = self.w_r(self.encoding[:total]).unflatten(-1, (heads, -1))[ages.abs()]
    scores = torch.einsum("bihd,bjhd->bhij", q + self.u, k)
    scores = scores + torch.einsum("bihd,ijhd->bhij", q + self.v, r)
    weights = (scores / q.shape[-1] ** 0.5).softmax(-1)
    return self.w_o(torch.einsum("bhij,bjhd->bihd", weights, values).flatten(2))


@misconception(
    "relative-attention",
    id="XL28",
    fails=["relative-attention-parts", "relative-attention-values"],
    read="14_longer_context#xl-relative",
    target="RelativeAttention.__init__",
)
def with_biases(self, encoding, num_heads):
    """Your matrices have biases; u and v are all the biases that there are."""
    nn.Module.__init__(self)
    width = encoding.shape[1]
    self.num_heads = num_heads
    for name in ("w_q", "w_k", "w_v", "w_r", "w_o"):
        self.add_module(name, nn.Linear(width, width))
        with torch.no_grad():
            self.get_submodule(name).bias.zero_()
    self.u = nn.Parameter(torch.zeros(num_heads, width // num_heads))
    self.v = nn.Parameter(torch.zeros(num_heads, width // num_heads))
    self.register_buffer("encoding", encoding)


@misconception(
    "relative-attention",
    id="XL28b",
    fails=["relative-attention-parts"],
    read="14_longer_context#xl-relative",
    target="RelativeAttention.__init__",
)
def table_as_a_parameter(self, encoding, num_heads):
    """Your table is a parameter, also if it needs no gradient; it is not learned: register it as a
    buffer.
    """
    nn.Module.__init__(self)
    width = encoding.shape[1]
    self.num_heads = num_heads
    for name in ("w_q", "w_k", "w_v", "w_r", "w_o"):
        self.add_module(name, nn.Linear(width, width, bias=False))
    self.u = nn.Parameter(torch.zeros(num_heads, width // num_heads))
    self.v = nn.Parameter(torch.zeros(num_heads, width // num_heads))
    self.encoding = nn.Parameter(encoding, requires_grad=False)


# 14.5 Distances without an index


@misconception(
    "rel-shift",
    id="XL29",
    fails=["rel-shift-square", "rel-shift-memory"],
    read="14_longer_context#xl-shift",
)
def last_row_left_out(scores):
    """You leave out the last row of the tall matrix; it is the first that has to go."""
    *front, n, keys = scores.shape
    return F.pad(scores, (1, 0)).reshape(*front, keys + 1, n)[..., :-1, :].reshape(scores.shape)


@misconception(
    "rel-shift",
    id="XL30",
    fails=["rel-shift-square", "rel-shift-memory"],
    read="14_longer_context#xl-shift",
)
def padded_on_the_right(scores):
    """You pad on the right; the new column belongs in front of each row."""
    *front, n, keys = scores.shape
    return F.pad(scores, (0, 1)).reshape(*front, keys + 1, n)[..., 1:, :].reshape(scores.shape)


@misconception(
    "rel-shift",
    id="XL31",
    fails=["rel-shift-square", "rel-shift-memory"],
    read="14_longer_context#xl-shift",
)
def smallest_distance_first(scores):
    """You take column c for distance c; the largest distance comes first."""
    n, keys = scores.shape[-2:]
    ages = torch.arange(keys - n, keys)[:, None] - torch.arange(keys)
    return scores.gather(-1, ages.clamp(min=0).expand(scores.shape))


@misconception(
    "rel-shift",
    id="XL32",
    fails=["rel-shift-memory"],
    read="14_longer_context#xl-shift",
)
def memory_forgotten(scores):
    """Your shift is right without a memory only: row i moves by n - 1 - i, whatever K is."""
    n, keys = scores.shape[-2:]
    ages = torch.arange(n)[:, None] - torch.arange(keys)
    return scores.gather(-1, (keys - 1 - ages.clamp(min=0)).expand(scores.shape))


# 14.6 Four leaks in a memory


@misconception(
    "leak-lines",
    id="XL33",
    fails=["leak-lines-memory"],
    read="14_longer_context#xl-gradient",
)
def grows_where_it_is_cut():
    """You suspect the cut, which is right. What is put away without being detached?"""
    return {"grows": 7, "mixes": 6, "ages": 13, "forgets": 15}


@misconception(
    "leak-lines",
    id="XL34",
    fails=["leak-lines-memory"],
    read="14_longer_context#xl-memory",
)
def mixes_at_the_call():
    """You suspect the call of the layer; look at what is put into its memory after it."""
    return {"grows": 12, "mixes": 5, "ages": 13, "forgets": 15}


@misconception(
    "leak-lines",
    id="XL35",
    fails=["leak-lines-distance"],
    read="14_longer_context#xl-relative",
)
def ages_where_used():
    """You suspect the line that uses the distances; they are wrong already where they are made."""
    return {"grows": 12, "mixes": 6, "ages": 14, "forgets": 15}


@misconception(
    "leak-lines",
    id="XL36",
    fails=["leak-lines-distance"],
    read="14_longer_context#xl-memory",
)
def forgets_in_the_patch():
    """You suspect the line that patches the first query; the mask itself hides a token too many."""
    return {"grows": 12, "mixes": 6, "ages": 13, "forgets": 16}


# 14.7 A span that can be learned, and be cut off


@misconception(
    "span-weights",
    id="XL37",
    fails=["span-weights-values", "span-weights-ends"],
    read="14_longer_context#span-mask",
)
def not_renormalised(scores, z, ramp):
    """You multiply after the softmax, so a row's weights have a sum below 1: divide by it."""
    n, keys = scores.shape[-2:]
    ages = torch.arange(keys - n, keys)[:, None] - torch.arange(keys)
    factors = ((ramp + z[:, None, None] - ages) / ramp).clamp(0, 1)
    return factors * scores.masked_fill(ages < 0, -math.inf).softmax(-1)


@misconception(
    "span-weights",
    id="XL38",
    fails=["span-weights-values", "span-weights-ends"],
    read="14_longer_context#span-mask",
)
def factor_added(scores, z, ramp):
    """You add the factor to the scores; it multiplies what the exponential makes of them."""
    n, keys = scores.shape[-2:]
    ages = torch.arange(keys - n, keys)[:, None] - torch.arange(keys)
    factors = ((ramp + z[:, None, None] - ages) / ramp).clamp(0, 1)
    return (scores + factors).masked_fill(ages < 0, -math.inf).softmax(-1)


@misconception(
    "span-weights",
    id="XL39",
    fails=["span-weights-values", "span-weights-ends"],
    read="14_longer_context#span-mask",
)
def factor_times_score(scores, z, ramp):
    """You multiply the score; a score of 0 is no weight of 0, but one of e to the power of 0."""
    n, keys = scores.shape[-2:]
    ages = torch.arange(keys - n, keys)[:, None] - torch.arange(keys)
    factors = ((ramp + z[:, None, None] - ages) / ramp).clamp(0, 1)
    return (scores * factors).masked_fill(ages < 0, -math.inf).softmax(-1)


@misconception(
    "span-weights",
    id="XL40",
    fails=["span-weights-values", "span-weights-ends"],
    read="14_longer_context#span-mask",
)
def not_clamped_above(scores, z, ramp):
    """Your factor grows beyond 1 within the span: near tokens should count 1, and no more."""
    n, keys = scores.shape[-2:]
    ages = torch.arange(keys - n, keys)[:, None] - torch.arange(keys)
    factors = ((ramp + z[:, None, None] - ages) / ramp).clamp(min=0)
    seen = (factors > 0) & (ages >= 0)
    bent = scores + torch.where(seen, factors, 1.0).log()
    return bent.masked_fill(~seen, -math.inf).softmax(-1)


@misconception(
    "span-weights",
    id="XL41",
    fails=["span-weights-values", "span-weights-ends"],
    read="14_longer_context#span-mask",
)
def from_the_left_end(scores, z, ramp):
    """You measure from the first key; a distance begins at the query and goes back."""
    n, keys = scores.shape[-2:]
    ages = torch.arange(keys - n, keys)[:, None] - torch.arange(keys)
    factors = ((ramp + z[:, None, None] - torch.arange(keys)) / ramp).clamp(1e-9, 1)
    bent = scores + factors.log()
    return bent.masked_fill(ages < 0, -math.inf).softmax(-1)


@misconception(
    "span-weights",
    id="XL42",
    fails=["span-weights-values", "span-weights-ends"],
    read="14_longer_context#span-mask",
)
def itself_left_out(scores, z, ramp):
    """You leave the token itself out, so the first one has nothing to see."""
    n, keys = scores.shape[-2:]
    ages = torch.arange(keys - n, keys)[:, None] - torch.arange(keys)
    factors = ((ramp + z[:, None, None] - ages) / ramp).clamp(0, 1)
    seen = (factors > 0) & (ages > 0)
    bent = scores + torch.where(seen, factors, 1.0).log()
    return bent.masked_fill(~seen, -1e30).softmax(-1)


@misconception(
    "span-weights",
    id="XL43",
    fails=["span-weights-values", "span-weights-ends"],
    read="14_longer_context#span-gradient",
)
def rounded_span(scores, z, ramp):
    """You round the span to whole tokens, which has no gradient: the ramp is there to give one."""
    n, keys = scores.shape[-2:]
    ages = torch.arange(keys - n, keys)[:, None] - torch.arange(keys)
    factors = ((ramp + z.round()[:, None, None] - ages) / ramp).clamp(0, 1)
    seen = (factors > 0) & (ages >= 0)
    bent = scores + torch.where(seen, factors, 1.0).log()
    return bent.masked_fill(~seen, -math.inf).softmax(-1)


@misconception(
    "span-weights",
    id="XL44",
    fails=["span-weights-values"],
    read="14_longer_context#span-mask",
)
def exponential_overflows(scores, z, ramp):
    """Large scores give inf / inf in yours: take each row's largest score off first."""
    n, keys = scores.shape[-2:]
    ages = torch.arange(keys - n, keys)[:, None] - torch.arange(keys)
    factors = ((ramp + z[:, None, None] - ages) / ramp).clamp(0, 1) * (ages >= 0)
    parts = factors * scores.exp()
    return parts / parts.sum(-1, keepdim=True)


@misconception(
    "span-weights",
    id="XL45",
    fails=["span-weights-values", "span-weights-ends"],
    read="14_longer_context#span-mask",
)
def one_span_for_all(scores, z, ramp):
    """Your heads share one span, the longest; each has its own."""
    n, keys = scores.shape[-2:]
    ages = torch.arange(keys - n, keys)[:, None] - torch.arange(keys)
    factors = ((ramp + z.max() - ages) / ramp).clamp(0, 1)
    seen = (factors > 0) & (ages >= 0)
    bent = scores + torch.where(seen, factors, 1.0).log()
    return bent.masked_fill(~seen, -math.inf).softmax(-1)


@misconception(
    "trimmed",
    id="XL46",
    fails=["trimmed-count"],
    read="14_longer_context#span-trim",
)
def ramp_cut_off(memory, z, ramp):
    """You cut at the span; keys on the ramp still have a weight."""
    needed = math.ceil(z.max().item())
    return memory[:, max(0, memory.shape[1] - needed) :]


@misconception(
    "trimmed",
    id="XL47",
    fails=["trimmed-count"],
    read="14_longer_context#span-trim",
)
def end_of_the_ramp_kept(memory, z, ramp):
    """You keep the key at distance R + z, where the factor is 0 already."""
    needed = math.floor(ramp + z.max().item())
    return memory[:, max(0, memory.shape[1] - needed) :]


@misconception(
    "trimmed",
    id="XL48",
    fails=["trimmed-count"],
    read="14_longer_context#span-trim",
)
def mean_of_the_heads(memory, z, ramp):
    """You cut at the mean span; the head that looks furthest back would lose keys."""
    needed = max(0, math.ceil(ramp + z.mean().item()) - 1)
    return memory[:, max(0, memory.shape[1] - needed) :]


@misconception(
    "trimmed",
    id="XL49",
    fails=["trimmed-count"],
    read="14_longer_context#span-trim",
)
def zeroed_not_cut(memory, z, ramp):
    """You set vectors to 0 and keep them, which saves no time: cut them off."""
    m = memory.shape[1]
    needed = max(0, math.ceil(ramp + z.max().item()) - 1)
    return memory * (torch.arange(m) >= m - needed)[:, None]


@misconception(
    "trimmed",
    id="XL50",
    fails=["trimmed-count"],
    read="14_longer_context#span-trim",
)
def minus_zero(memory, z, ramp):
    """Where nothing is needed yours keeps all: x[-0:] is the whole."""
    needed = max(0, math.ceil(ramp + z.max().item()) - 1)
    return memory[:, -needed:]


# 14.8 What heads learn to see


@misconception(
    "predicted-spans",
    id="XL51",
    fails=["predicted-spans-made"],
    read="14_longer_context#span-learned",
)
def a_number():
    """A number is no prediction here: return one of the texts in ENDS."""
    return 12


@misconception(
    "predicted-spans",
    id="XL52",
    fails=["predicted-spans-made"],
    read="14_longer_context#span-learned",
)
def own_words():
    """Your prediction is none of the texts in ENDS; copy one of them, letter by letter."""
    return "both above 12"


@misconception(
    "predicted-spans",
    id="XL53",
    fails=["predicted-spans-made"],
    read="14_longer_context#span-learned",
)
def which_one():
    """You return the number of a text; return the text."""
    return 2


@misconception(
    "measured-spans",
    id="XL54",
    fails=["measured-spans-consistent"],
    read="14_longer_context#span-learned",
)
def exchanged():
    """The spans with a price should be the shorter ones: you have exchanged the two runs."""
    return {"free": [0.0, 10.3], "priced": [12.02, 12.15], "loss": 0.0001}


@misconception(
    "measured-spans",
    id="XL55",
    fails=["measured-spans-consistent"],
    read="14_longer_context#span-learned",
)
def shares():
    """You return shares of the largest span; asked for are spans, in tokens."""
    return {"free": [0.3, 0.304], "priced": [0.0, 0.257], "loss": 0.0001}


@misconception(
    "measured-spans",
    id="XL56",
    fails=["measured-spans-consistent"],
    read="14_longer_context#span-learned",
)
def before_training():
    """These are the spans before training."""
    return {"free": [40.0, 40.0], "priced": [40.0, 40.0], "loss": 2.9}


# 14.10 Bonus: learn what to write


@misconception(
    "run-back",
    id="XL57",
    fails=["run-back-tokens", "run-back-weights"],
    read="14_longer_context#xl-gradient",
)
def always_cut(layers, x, length, mem_len, back):
    """You cut at every memory, as in 14.2: no loss reaches an earlier segment, whatever back is."""
    memories, outputs = [x[:, :0] for _ in layers], []
    for segment in x.split(length, dim=1):
        for i, layer in enumerate(layers):
            given = torch.cat([memories[i], segment], dim=1)
            segment = layer(segment, memories[i])
            memories[i] = given[:, max(0, given.shape[1] - mem_len) :].detach()
        outputs.append(segment)
    return torch.cat(outputs, dim=1)


@misconception(
    "run-back",
    id="XL58",
    fails=["run-back-tokens", "run-back-weights"],
    read="14_longer_context#xl-gradient",
)
def never_cut(layers, x, length, mem_len, back):
    """You cut nowhere: every loss reaches back to the beginning of the text, whatever back is."""
    memories, outputs = [x[:, :0] for _ in layers], []
    for segment in x.split(length, dim=1):
        for i, layer in enumerate(layers):
            given = torch.cat([memories[i], segment], dim=1)
            segment = layer(segment, memories[i])
            memories[i] = given[:, max(0, given.shape[1] - mem_len) :]
        outputs.append(segment)
    return torch.cat(outputs, dim=1)


@misconception(
    "run-back",
    id="XL59",
    fails=["run-back-tokens", "run-back-weights"],
    read="14_longer_context#xl-gradient",
)
def cut_at_fixed_places(layers, x, length, mem_len, back):
    """You cut at fixed places, so the segment right behind a cut reaches no earlier one. Each
    segment should count back from itself.
    """
    memories, outputs = [x[:, :0] for _ in layers], []
    for t, segment in enumerate(x.split(length, dim=1)):
        if t % (back + 1) == 0:
            memories = [memory.detach() for memory in memories]
        for i, layer in enumerate(layers):
            given = torch.cat([memories[i], segment], dim=1)
            segment = layer(segment, memories[i])
            memories[i] = given[:, max(0, given.shape[1] - mem_len) :]
        outputs.append(segment)
    return torch.cat(outputs, dim=1)


@misconception(
    "run-back",
    id="XL60",
    fails=["run-back-weights"],
    read="14_longer_context#xl-gradient",
)
def tokens_cut_alone(layers, x, length, mem_len, back):
    """You cut off the old tokens alone. The weights' work on them still gets a gradient: the
    memories that they made have a history, too.
    """
    segments = x.split(length, dim=1)
    outputs = []
    for t in range(len(segments)):
        memories = [x[:, :0] for _ in layers]
        for number, now in enumerate(segments[: t + 1]):
            moving = now if number >= t - back else now.detach()
            for i, layer in enumerate(layers):
                given = torch.cat([memories[i], moving], dim=1)
                moving = layer(moving, memories[i])
                memories[i] = given[:, max(0, given.shape[1] - mem_len) :]
        outputs.append(moving)
    return torch.cat(outputs, dim=1)


@misconception(
    "run-back",
    id="XL61",
    fails=["run-back-tokens", "run-back-weights"],
    read="14_longer_context#xl-gradient",
)
def one_segment_too_few(layers, x, length, mem_len, back):
    """You go back one segment too few: back counts those before the segment itself."""
    segments = x.split(length, dim=1)
    starts = [[x[:, :0] for _ in layers]]
    outputs = []
    for t in range(len(segments)):
        first = max(0, t - max(0, back - 1))
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


@misconception(
    "run-back",
    id="XL62",
    fails=["run-back-tokens", "run-back-weights"],
    read="14_longer_context#xl-gradient",
)
def one_segment_too_many(layers, x, length, mem_len, back):
    """You go back one segment too many: with back 0 a segment reaches itself alone."""
    segments = x.split(length, dim=1)
    starts = [[x[:, :0] for _ in layers]]
    outputs = []
    for t in range(len(segments)):
        first = max(0, t - back - 1)
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


@misconception(
    "run-back",
    id="XL63",
    fails=["run-back-numbers", "run-back-tokens", "run-back-weights"],
    read="14_longer_context#xl-memory",
)
def begins_with_nothing(layers, x, length, mem_len, back):
    """Where yours begins again, its memories are empty. The numbers of what came before count;
    their history alone is cut off.
    """
    segments = x.split(length, dim=1)
    outputs = []
    for t in range(len(segments)):
        memories = [x[:, :0] for _ in layers]
        for now in segments[max(0, t - back) : t + 1]:
            moving = now
            for i, layer in enumerate(layers):
                given = torch.cat([memories[i], moving], dim=1)
                moving = layer(moving, memories[i])
                memories[i] = given[:, max(0, given.shape[1] - mem_len) :]
        outputs.append(moving)
    return torch.cat(outputs, dim=1)


@misconception(
    "run-back",
    id="XL64",
    fails=["run-back-tokens", "run-back-weights"],
    read="14_longer_context#xl-gradient",
)
def cut_at_an_age(layers, x, length, mem_len, back):
    """You cut off the memory's older vectors and keep the history of the younger ones, which leads
    through their own memories as far back as you like.
    """
    memories, outputs = [x[:, :0] for _ in layers], []
    for segment in x.split(length, dim=1):
        for i, layer in enumerate(layers):
            young = max(0, memories[i].shape[1] - back * length)
            memory = torch.cat([memories[i][:, :young].detach(), memories[i][:, young:]], dim=1)
            given = torch.cat([memory, segment], dim=1)
            segment = layer(segment, memory)
            memories[i] = given[:, max(0, given.shape[1] - mem_len) :]
        outputs.append(segment)
    return torch.cat(outputs, dim=1)


@misconception(
    "run-back",
    id="XL65",
    fails=["run-back-numbers", "run-back-tokens", "run-back-weights"],
    read="14_longer_context#xl-reach",
)
def read_anew(layers, x, length, mem_len, back):
    """You read the last segments anew as one long segment. From two layers on, a memory knows more
    than those tokens say.
    """
    outputs = []
    for start in range(0, x.shape[1], length):
        moving = x[:, max(0, start - back * length) : start + length]
        for layer in layers:
            moving = layer(moving, x[:, :0])
        outputs.append(moving[:, -len(x[0, start : start + length]) :])
    return torch.cat(outputs, dim=1)

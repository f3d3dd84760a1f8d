"""Right answers to the exercise on the decoder, written differently; all must get full marks."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from lab.answers import variant
from lab.blocks import FeedForward, LayerNorm, MultiHeadAttention

# 7.1 The decoder's two masks


@variant("decoder-masks")
def by_comparing_positions(target, source, *, target_pad_id, source_pad_id):
    positions = torch.arange(target.size(1))
    causal = positions[None, :] <= positions[:, None]
    target_mask = causal[None] & target.ne(target_pad_id)[:, None, :]
    return target_mask, source.ne(source_pad_id)[:, None, :]


@variant("decoder-masks")
def by_loops(target, source, *, target_pad_id, source_pad_id):
    b, n = target.shape
    target_mask = torch.zeros(b, n, n, dtype=torch.bool)
    for i in range(n):
        for j in range(i + 1):
            target_mask[:, i, j] = target[:, j] != target_pad_id
    memory_mask = torch.tensor([[[t != source_pad_id for t in row]] for row in source.tolist()])
    return target_mask, memory_mask


@variant("decoder-masks")
def what_is_hidden_then_not(target, source, *, target_pad_id, source_pad_id):
    n = target.shape[-1]
    later = torch.triu(torch.ones(n, n), diagonal=1).bool()
    padding = (target == target_pad_id).unsqueeze(-2)
    return ~(later | padding), ~(source == source_pad_id).unsqueeze(-2)


@variant("decoder-masks")
def by_multiplying(target, source, *, target_pad_id, source_pad_id):
    n = target.shape[1]
    real = (target != target_pad_id).float()
    target_mask = torch.einsum("ij,bj->bij", torch.tril(torch.ones(n, n)), real) > 0.5
    return target_mask, (source != source_pad_id).reshape(source.shape[0], 1, -1)


# 7.2 A decoder layer


@variant("decoder-layer", target="DecoderLayer.forward")
def one_helper_for_three(self, x, memory, target_mask=None, memory_mask=None):
    def sub_layer(x, norm, run):
        if self.norm_first:
            return x + self.dropout(run(norm(x)))
        return norm(x + self.dropout(run(x)))

    x = sub_layer(x, self.norm1, lambda h: self.self_attention(h, h, h, target_mask)[0])
    x = sub_layer(x, self.norm2, lambda h: self.cross_attention(h, memory, memory, memory_mask)[0])
    return sub_layer(x, self.norm3, self.feed_forward)


@variant("decoder-layer", target="DecoderLayer")
class WithMethods(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, dropout=0.1, norm_first=False):
        super().__init__()
        self.norm3, self.norm2, self.norm1 = (LayerNorm(d_model) for _ in range(3))
        self.feed_forward = FeedForward(d_model, d_ff)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.dropout = nn.Dropout(p=dropout)
        self.pre = norm_first

    def look(self, x, mask):
        out, _ = self.self_attention(query=x, key=x, value=x, mask=mask)
        return self.dropout(out)

    def read(self, x, memory, mask):
        out, _ = self.cross_attention(query=x, key=memory, value=memory, mask=mask)
        return self.dropout(out)

    def think(self, x):
        return self.dropout(self.feed_forward(x))

    def forward(self, x, memory, target_mask=None, memory_mask=None):
        if not self.pre:
            x = self.norm1(self.look(x, target_mask) + x)
            x = self.norm2(self.read(x, memory, memory_mask) + x)
            return self.norm3(self.think(x) + x)
        x = self.look(self.norm1(x), target_mask) + x
        x = self.read(self.norm2(x), memory, memory_mask) + x
        return self.think(self.norm3(x)) + x


@variant("decoder-layer", target="DecoderLayer.forward")
def own_copy_added_to(self, x, memory, target_mask=None, memory_mask=None):
    x = x.clone()
    steps = [
        (self.norm1, lambda h: self.self_attention(h, h, h, target_mask)[0]),
        (self.norm2, lambda h: self.cross_attention(h, memory, memory, memory_mask)[0]),
        (self.norm3, self.feed_forward),
    ]
    for norm, run in steps:
        given = norm(x) if self.norm_first else x
        x = torch.add(x, self.dropout(run(given)))
        if not self.norm_first:
            x = norm(x)
    return x


@variant("decoder-layer", target="DecoderLayer.forward")
def dropout_as_a_function(self, x, memory, target_mask=None, memory_mask=None):
    def drop(h):
        return F.dropout(h, self.dropout.p, self.training)

    if self.norm_first:
        h = self.norm1(x)
        x = x + drop(self.self_attention(h, h, h, target_mask)[0])
        x = x + drop(self.cross_attention(self.norm2(x), memory, memory, memory_mask)[0])
        return x + drop(self.feed_forward(self.norm3(x)))
    x = self.norm1(x + drop(self.self_attention(x, x, x, target_mask)[0]))
    x = self.norm2(x + drop(self.cross_attention(x, memory, memory, memory_mask)[0]))
    return self.norm3(x + drop(self.feed_forward(x)))


# 7.3 The stack


@variant("decoder", target="Decoder")
class WithIdentity(nn.Module):
    def __init__(self, make_layer, num_layers, norm=None):
        super().__init__()
        self.layers = nn.ModuleList([make_layer() for _ in range(num_layers)])
        self.norm = nn.Identity() if norm is None else norm

    def forward(self, x, memory, target_mask=None, memory_mask=None):
        for layer in self.layers:
            x = layer(x, memory, target_mask=target_mask, memory_mask=memory_mask)
        return self.norm(x)


@variant("decoder", target="Decoder")
class AppendedOneByOne(nn.Module):
    def __init__(self, make_layer, num_layers, norm=None):
        super().__init__()
        self.layers = nn.ModuleList()
        for _ in range(num_layers):
            self.layers.append(make_layer())
        self.final_norm = norm

    def forward(self, x, memory, target_mask=None, memory_mask=None):
        out = x
        for i in range(len(self.layers)):
            out = self.layers[i](out, memory, target_mask, memory_mask)
        if self.final_norm:
            out = self.final_norm(out)
        return out


@variant("decoder", target="Decoder.forward")
def with_reduce(self, x, memory, target_mask=None, memory_mask=None):
    from functools import reduce

    x = reduce(lambda h, layer: layer(h, memory, target_mask, memory_mask), self.layers, x)
    return self.norm(x) if self.norm is not None else x


# 7.4 A layer that learns, and is wrong


@variant("layer-causes")
def causes_in_another_order():
    return {"idle": 6, "forgets": 4, "padding": 3, "future": 1}


@variant("layer-causes")
def causes_one_by_one():
    causes = {"future": 1}
    causes["padding"], causes["forgets"], causes["idle"] = 3, 4, 6
    return causes


@variant("layer-causes")
def causes_from_lines():
    return {
        word: line for line, word in ((1, "future"), (3, "padding"), (4, "forgets"), (6, "idle"))
    }


@variant("layer-mended")
def mended_step_by_step(x, memory, target_mask, memory_mask, parts):
    x = parts["norm1"](x + parts["self_attention"](x, x, x, target_mask))
    y = parts["cross_attention"](x, memory, memory, memory_mask)
    x = parts["norm2"](y + x)
    y = parts["feed_forward"](x)
    return parts["norm3"](y + x)


@variant("layer-mended")
def mended_in_a_loop(x, memory, target_mask, memory_mask, parts):
    steps = (
        ("norm1", lambda t: parts["self_attention"](t, t, t, target_mask)),
        ("norm2", lambda t: parts["cross_attention"](t, memory, memory, memory_mask)),
        ("norm3", parts["feed_forward"]),
    )
    for norm, change in steps:
        x = parts[norm](x + change(x))
    return x


@variant("layer-mended")
def mended_by_the_names_of_what_is_handed_on(x, memory, target_mask, memory_mask, parts):
    looked = parts["self_attention"](query=x, key=x, value=x, mask=target_mask)
    x = parts["norm1"](x + looked)
    read = parts["cross_attention"](query=x, key=memory, value=memory, mask=memory_mask)
    x = parts["norm2"](x + read)
    return parts["norm3"](x + parts["feed_forward"](x))


@variant("layer-mended")
def mended_with_a_helper(x, memory, target_mask, memory_mask, parts):
    def after(number, before, change):
        return parts[f"norm{number}"](torch.add(before, change))

    first = after(1, x, parts["self_attention"](x, x, x, target_mask))
    second = after(2, first, parts["cross_attention"](first, memory, memory, memory_mask))
    return after(3, second, parts["feed_forward"](second))


# 7.5 From vectors to words


@variant("generator", target="Generator")
class BorrowsFromLinear(nn.Module):
    def __init__(self, d_model, vocab_size):
        super().__init__()
        self.weight = nn.Linear(d_model, vocab_size, bias=False).weight

    def forward(self, x):
        return F.linear(x, self.weight)

    def tie(self, weight):
        if tuple(weight.shape) != tuple(self.weight.shape):
            raise ValueError(f"shape {weight.shape} should be {self.weight.shape}")
        self.weight = weight


@variant("generator", target="Generator")
class EinsumAndRegister(nn.Module):
    def __init__(self, d_model, vocab_size):
        super().__init__()
        start = nn.init.normal_(torch.empty(vocab_size, d_model), std=d_model**-0.5)
        self.register_parameter("weight", nn.Parameter(start))

    def forward(self, x):
        return torch.einsum("bnd,vd->bnv", x, self.weight)

    def tie(self, weight):
        theirs, ours = [list(w.shape) for w in (weight, self.get_parameter("weight"))]
        if theirs != ours:
            raise ValueError(f"cannot tie a weight of shape {theirs} to one of shape {ours}")
        del self.weight
        self.register_parameter("weight", weight)


@variant("generator", target="Generator")
class SizesRemembered(nn.Module):
    def __init__(self, d_model, vocab_size):
        super().__init__()
        self.d_model, self.vocab_size = d_model, vocab_size
        start = torch.empty(vocab_size, d_model).uniform_(-1, 1) * math.sqrt(3 / d_model)
        self.weight = nn.Parameter(start)

    def forward(self, x):
        return torch.matmul(x, self.weight.transpose(0, 1))

    def tie(self, weight):
        if weight.size() != (self.vocab_size, self.d_model):
            raise ValueError(f"{weight.size()} is not ({self.vocab_size}, {self.d_model})")
        setattr(self, "weight", weight)  # noqa: B010


# 7.6 The test that finds a leak


@variant("incremental-error")
def by_two_loops(f, x):
    whole, worst = f(x), 0.0
    for n in range(1, x.shape[1]):
        part = f(x[:, :n])
        for i in range(n):
            worst = max(worst, float((part[:, i] - whole[:, i]).abs().max()))
    return worst


@variant("incremental-error")
def as_a_tensor(f, x):
    whole = f(x)
    errors = [torch.dist(f(x[:, :n]), whole[:, :n], math.inf) for n in range(1, x.size(1))]
    return torch.stack(errors).max()


@variant("incremental-error")
def taking_tokens_away_from_the_end(f, x):
    whole = f(x)
    worst = torch.zeros((), dtype=x.dtype)
    while x.shape[1] > 1:
        x = x[:, :-1]
        worst = torch.maximum(worst, torch.max(torch.abs(f(x) - whole[:, : x.shape[1]])))
    return worst.item()


# 7.8 Many sentences in one row


@variant("packed-masks")
def pairs_one_by_one(target_pairs, source_pairs):
    batch, n = target_pairs.shape
    sees = torch.zeros(batch, n, n, dtype=torch.bool)
    reads = torch.zeros(batch, n, source_pairs.shape[1], dtype=torch.bool)
    for b in range(batch):
        for pair in set(target_pairs[b].tolist()) - {-1}:
            ours = target_pairs[b] == pair
            sees[b] |= torch.outer(ours, ours).tril()
            reads[b] |= torch.outer(ours, source_pairs[b] == pair)
    return sees, reads


@variant("packed-masks")
def pairs_by_one_hot(target_pairs, source_pairs):
    classes = int(max(target_pairs.max(), source_pairs.max())) + 2
    ours = torch.nn.functional.one_hot(target_pairs + 1, classes)[..., 1:].float()
    theirs = torch.nn.functional.one_hot(source_pairs + 1, classes)[..., 1:].float()
    return torch.tril(ours @ ours.mT > 0), ours @ theirs.mT > 0


@variant("packed-masks")
def pairs_compared_and_real(target_pairs, source_pairs):
    query = target_pairs.unsqueeze(2)
    place = torch.arange(target_pairs.size(1))
    real = query != -1
    target_mask = query.eq(target_pairs.unsqueeze(1)).logical_and(place[:, None] >= place)
    return target_mask & real, query.eq(source_pairs.unsqueeze(1)) & real


@variant("places-within")
def places_by_counting(pairs):
    found = torch.zeros_like(pairs)
    for b, row in enumerate(pairs.tolist()):
        for i in range(1, len(row)):
            if row[i] >= 0 and row[i] == row[i - 1]:
                found[b, i] = found[b, i - 1] + 1
    return found


@variant("places-within")
def places_by_a_mask(pairs):
    same = pairs[:, :, None] == pairs[:, None]
    return (same.tril(-1).sum(-1) * (pairs >= 0)).int()


@variant("places-within")
def places_by_searching(pairs):
    first = (pairs[:, :, None] == pairs[:, None]).int().argmax(-1)
    return (torch.arange(pairs.shape[1]) - first).masked_fill(pairs == -1, 0)

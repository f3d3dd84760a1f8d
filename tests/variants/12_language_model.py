"""Right answers to the exercise on language models that are written differently."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from lab.answers import variant
from lab.blocks import (
    Encoder,
    EncoderLayer,
    Generator,
    LayerNorm,
    PositionalEncoding,
    TokenEmbedding,
    causal_mask,
)

# 12.1 One stream


@variant("windows")
def unfolded(stream, length):
    if length <= 0:
        raise ValueError("a window has at least one token")
    if len(stream) < length + 1:
        nothing = torch.empty(0, length, dtype=stream.dtype)
        return nothing, nothing.clone()
    cut = stream.unfold(0, length + 1, length)
    return cut[:, :-1], cut[:, 1:]


@variant("windows")
def row_by_row(stream, length):
    if length < 1:
        raise ValueError(length)
    inputs, labels = [], []
    start = 0
    while start + length < len(stream):
        inputs.append(stream[start : start + length])
        labels.append(stream[start + 1 : start + length + 1])
        start += length
    if not inputs:
        return torch.zeros(0, length, dtype=torch.int64), torch.zeros(0, length, dtype=torch.int64)
    return torch.stack(inputs), torch.stack(labels)


@variant("windows")
def by_indices(stream, length):
    if not length > 0:
        raise ValueError("length must be positive")
    rows = (len(stream) - 1) // length if len(stream) else 0
    places = torch.arange(rows)[:, None] * length + torch.arange(length)
    return stream[places], stream[places + 1]


# 12.2 A decoder without a source


@variant("language-model", target="LanguageModel.__init__")
def with_a_function_that_makes_layers(
    self, vocab_size, encoding, num_layers, num_heads, d_ff, dropout=0.0
):
    nn.Module.__init__(self)
    width = encoding.size(-1)

    def layer():
        return EncoderLayer(width, num_heads, d_ff, dropout=dropout, norm_first=True)

    self.embedding = TokenEmbedding(vocab_size, width)
    self.generator = Generator(width, vocab_size)
    self.generator.weight = self.embedding.weight
    self.stack = Encoder(layer, num_layers, norm=LayerNorm(width))
    self.positional_encoding = PositionalEncoding(encoding, dropout=dropout)


@variant("language-model", target="LanguageModel.forward")
def with_a_triangle_of_ones(self, ids, offset=0):
    n = ids.size(1)
    places = torch.arange(n, device=ids.device)
    seen = places[None, :] <= places[:, None]
    vectors = self.positional_encoding(self.embedding(ids), offset=offset)
    return self.generator(self.stack(vectors, mask=seen))


@variant("language-model", target="LanguageModel.forward")
def layer_by_layer(self, ids, offset=0):
    mask = causal_mask(ids.shape[1])[None]
    x = self.positional_encoding(self.embedding(ids), offset)
    for layer in self.stack.layers:
        x = layer(x, mask)
    return F.linear(self.stack.norm(x), self.embedding.weight)


# 12.3 Perplexity, by token and by byte


@variant("perplexities")
def by_cross_entropy(logits, labels, sizes, pad_id):
    real = labels.ne(pad_id)
    if not bool(real.any()):
        raise ValueError("nothing but padding")
    total = F.cross_entropy(
        logits.flatten(0, 1), labels.flatten(), ignore_index=pad_id, reduction="sum"
    ).item()
    return (
        math.exp(total / int(real.sum())),
        math.exp(total / int((sizes[labels] * real).sum())),
    )


@variant("perplexities")
def by_real_rows(logits, labels, sizes, pad_id):
    kept = labels != pad_id
    if kept.sum() == 0:
        raise ValueError("there is nothing to measure")
    z, wanted = logits[kept], labels[kept]
    total = (z.logsumexp(-1) - z[torch.arange(len(wanted)), wanted]).sum().double()
    bytes_ = sum(int(sizes[token]) for token in wanted.tolist())
    return float(torch.exp(total / len(wanted))), float(torch.exp(total / bytes_))


@variant("perplexities")
def in_a_loop(logits, labels, sizes, pad_id):
    losses, size = [], 0
    for row, wanted in zip(logits.log_softmax(2), labels.tolist(), strict=True):
        for chances, label in zip(row, wanted, strict=True):
            if label != pad_id:
                losses.append(-chances[label].item())
                size += int(sizes[label])
    if not losses:
        raise ValueError("all padding")
    return math.exp(math.fsum(losses) / len(losses)), math.exp(math.fsum(losses) / size)


@variant("perplexities")
def in_numpy(logits, labels, sizes, pad_id):
    import numpy as np

    real = labels.numpy() != pad_id
    if not real.any():
        raise ValueError("all padding")
    scores, right = logits.double().numpy()[real], labels.numpy()[real]
    scores = scores - scores.max(-1, keepdims=True)
    losses = np.log(np.exp(scores).sum(-1)) - scores[np.arange(len(right)), right]
    return np.exp(losses.mean()), np.exp(losses.sum() / sizes.numpy()[right].sum())


# 12.4 Write on


@variant("write-on")
def columns_in_a_list(model, prompt, count, choose):
    mode = model.training
    model.eval()
    model.reset()
    columns = [prompt[:, :0]]
    with torch.no_grad():
        for step in range(count):
            if step == 0:
                logits = model(prompt, 0)
            else:
                logits = model(columns[-1], prompt.shape[1] + step - 1)
            columns.append(choose(logits[:, -1, :])[:, None])
    model.train(mode)
    return torch.cat(columns, dim=1)


@variant("write-on")
def filled_in(model, prompt, count, choose):
    before = model.training
    rows, length = prompt.shape
    whole = torch.cat([prompt, torch.zeros(rows, count, dtype=torch.int64)], dim=1)
    model.eval()
    with torch.no_grad():
        model.reset()
        start = 0
        for end in range(length, length + count):
            whole[:, end] = choose(model(whole[:, start:end], start)[:, end - start - 1])
            start = end
    if before:
        model.train()
    return whole[:, length:]


@variant("write-on")
def by_recursion(model, prompt, count, choose):
    def rest(new, offset, left):
        if left == 0:
            return []
        chosen = choose(model(new, offset)[:, -1])
        return [chosen.view(-1, 1), *rest(chosen.view(-1, 1), offset + new.shape[1], left - 1)]

    was = model.training
    model.train(False)
    with torch.inference_mode():
        model.reset()
        found = torch.cat([prompt[:, :0], *rest(prompt, 0, count)], dim=1)
    model.train(was)
    return found.clone()


# 12.5 What may be drawn


@variant("shaped")
def all_in_sorted_order(logits, temperature=1.0, top_k=None, top_p=None):
    if not temperature > 0 or (top_k is not None and top_k <= 0):
        raise ValueError("temperature and top_k must be above 0")
    if top_p is not None and (top_p <= 0 or top_p > 1):
        raise ValueError("top_p is a share")
    ordered, ids = torch.sort(logits / temperature, dim=1, descending=True)
    ranks = torch.arange(logits.shape[1])
    if top_k is not None:
        ordered = ordered.masked_fill(ranks >= top_k, float("-inf"))
    if top_p is not None:
        p = ordered.softmax(1)
        likelier = torch.cat([torch.zeros_like(p[:, :1]), p.cumsum(1)[:, :-1]], dim=1)
        ordered = ordered.masked_fill(likelier >= top_p, float("-inf"))
    return torch.zeros_like(logits).scatter(1, ids, ordered.softmax(1))


@variant("shaped")
def row_by_row_shaped(logits, temperature=1.0, top_k=None, top_p=None):
    if temperature <= 0:
        raise ValueError("too cold")
    if top_k is not None and top_k < 1:
        raise ValueError("nothing is left")
    if top_p is not None and not (0 < top_p <= 1):
        raise ValueError("no share")
    rows = []
    for row in logits / temperature:
        places = row.argsort(descending=True)[: top_k or len(row)]
        chances = row[places].softmax(0)
        if top_p is not None:
            count = int((chances.cumsum(0) - chances < top_p).sum())
            places, chances = places[:count], row[places[:count]].softmax(0)
        rows.append(torch.zeros_like(row).index_put((places,), chances))
    return torch.stack(rows)


@variant("shaped")
def by_division(logits, temperature=1.0, top_k=None, top_p=None):
    if min(temperature, 1 if top_k is None else top_k, 1 if top_p is None else top_p) <= 0:
        raise ValueError("all three must be above 0")
    if top_p is not None and top_p > 1:
        raise ValueError("top_p must be at most 1")
    chances = (logits / temperature).softmax(-1)
    if top_k is not None and top_k < logits.shape[-1]:
        least = chances.sort(-1).values[:, -top_k, None]
        chances = chances * (chances >= least)
        chances = chances / chances.sum(-1, keepdim=True)
    if top_p is not None:
        # what all the likelier ones have together, for each token by itself
        larger = chances[:, None, :] > chances[:, :, None]
        before = (chances[:, None, :] * larger).sum(-1)
        chances = chances * (before < top_p)
        chances = chances / chances.sum(-1, keepdim=True)
    return chances


@variant("shaped")
def in_lists(logits, temperature=1.0, top_k=None, top_p=None):
    if temperature <= 0 or (top_k is not None and top_k < 1):
        raise ValueError("temperature or top_k")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError("top_p")
    rows = []
    for row in logits.tolist():
        chances = [math.exp((logit - max(row)) / temperature) for logit in row]
        left = sorted(range(len(row)), key=chances.__getitem__, reverse=True)[:top_k]
        total, have, kept = sum(chances[i] for i in left), 0.0, []
        for i in left:
            if top_p is None or have < top_p:
                kept.append(i)
            have += chances[i] / total
        total = sum(chances[i] for i in kept)
        rows.append([chances[i] / total if i in kept else 0.0 for i in range(len(row))])
    return torch.tensor(rows, dtype=logits.dtype)


# 12.6 Early and late


@variant("predicted-loss")
def all_is_lost():
    return "all of it"


@variant("predicted-loss")
def next_to_nothing():
    return "less than a tenth"


@variant("predicted-loss")
def nothing_is_lost():
    return "nothing at all"


@variant("measured-early")
def on_another_machine():
    numbers = (1.481, 1.533, 1.884, 1.452, 1.856, 1.362)
    names = ("whole", "without", "first", "last", "first_best", "last_best")
    return dict(zip(names, numbers, strict=True))


@variant("measured-early")
def with_a_model_of_ones_own():
    return {
        "first_best": 1.856,
        "first": 2.013,
        "last_best": 1.362,
        "last": 1.634,
        "without": 1.801,
        "whole": 1.688,
    }


@variant("measured-early")
def rounded_to_two():
    best = {"first_best": 1.86, "last_best": 1.36}
    return best | {"whole": 1.46, "without": 1.55, "first": 1.88, "last": 1.43}


# 12.7 Too good to be true


@variant("leak-causes")
def by_line():
    lines = {3: "peeks", 5: "drifts", 6: "sums", 8: "pads"}
    return {symptom: line for line, symptom in lines.items()}


@variant("leak-causes")
def from_pairs():
    return {"pads": 8, "sums": 6, "drifts": 5, "peeks": 3}


@variant("leak-causes")
def with_names():
    return {"sums": 6, "pads": 8, "peeks": 3, "drifts": 5}


@variant("honest-loss")
def by_torchs_loss(ids, parts, pad_id):
    n = ids.shape[1] - 1
    seen = torch.arange(n) <= torch.arange(n)[:, None]
    logits = parts["head"](parts["stack"](parts["embed"](ids[:, :-1]), seen))
    return F.cross_entropy(logits.transpose(1, 2), ids[:, 1:], ignore_index=pad_id)


@variant("honest-loss")
def with_weights_of_0_and_1(ids, parts, pad_id):
    labels = ids[:, 1:]
    size = labels.shape[1]
    mask = ~torch.triu(torch.ones(size, size, dtype=torch.bool), diagonal=1)
    logits = parts["head"](parts["stack"](parts["embed"](ids[:, :-1]), mask))
    chosen = torch.take_along_dim(logits, labels[..., None], -1)[..., 0]
    real = labels.ne(pad_id)
    return ((logits.logsumexp(-1) - chosen) * real).sum() / real.sum()


@variant("honest-loss")
def real_places_alone(ids, parts, pad_id):
    inputs, labels = ids[:, :-1], ids[:, 1:]
    vectors = parts["stack"](
        parts["embed"](inputs), torch.ones(2 * [inputs.shape[1]], dtype=torch.bool).tril()
    )
    real = labels != pad_id
    log_p = parts["head"](vectors)[real].log_softmax(1)
    return -log_p[torch.arange(len(log_p)), labels[real]].mean()


# 12.8 Along a line


@variant("fit")
def by_polyfit(sizes, losses, floor):
    import numpy as np

    if len(sizes) != len(losses) or len({*sizes}) < 2 or any(loss <= floor for loss in losses):
        raise ValueError("no line goes through these")
    slope, level = np.polyfit(np.log(sizes), np.log(np.array(losses) - floor), 1)
    return float(np.exp(level)), float(-slope)


@variant("fit")
def by_normal_equations(sizes, losses, floor):
    if len(sizes) != len(losses):
        raise ValueError("different lengths")
    if len(set(sizes)) < 2:
        raise ValueError("one size")
    if not all(loss > floor for loss in losses):
        raise ValueError("below the floor")
    n = len(sizes)
    x = [math.log(size) for size in sizes]
    y = [math.log(loss - floor) for loss in losses]
    sx, sy = math.fsum(x), math.fsum(y)
    sxx = math.fsum(one * one for one in x)
    sxy = math.fsum(one * other for one, other in zip(x, y, strict=True))
    slope = (n * sxy - sx * sy) / (n * sxx - sx * sx)
    return math.exp((sy - slope * sx) / n), -slope


@variant("fit")
def by_torchs_least_squares(sizes, losses, floor):
    if not (len(sizes) == len(losses) >= 2) or max(sizes) == min(sizes):
        raise ValueError("there are too few points")
    above = torch.tensor(list(losses), dtype=torch.float64) - floor
    if (above <= 0).any():
        raise ValueError("all losses must be above the floor")
    logs = torch.tensor(list(sizes), dtype=torch.float64).log()
    design = torch.stack([torch.ones_like(logs), -logs], dim=1)
    level, alpha = torch.linalg.lstsq(design, above.log()[:, None]).solution[:, 0].tolist()
    return math.exp(level), alpha


@variant("measured-sizes")
def six_sizes():
    losses = (1.87, 1.81, 1.76, 1.7, 1.62, 1.52)
    return dict(zip((1448, 2748, 4432, 8952, 15008, 31728), losses, strict=True)), 0.446


@variant("measured-sizes")
def from_the_largest_on():
    table = {54592: 1.51, 31728: 1.53, 15008: 1.6, 8952: 1.69, 4432: 1.75, 2748: 1.81, 1448: 1.87}
    return table, 0.42


@variant("measured-sizes")
def a_model_of_ones_own():
    table = {600: 2.4, 1500: 2.1, 3000: 1.95, 5000: 1.85, 9000: 1.78, 16000: 1.7, 33000: 1.63}
    return table, 0.37


# 12.10 Bonus: the best reader


@variant("best-losses")
def with_matrices(ids, chances, following, belief):
    states, _words = chances.shape
    to = torch.nn.functional.one_hot(following, states).to(chances.dtype)  # (S, V, S)
    step = (chances[..., None] * to).transpose(0, 1)  # (V, S, S)
    rows = []
    for row in ids.tolist():
        now, losses = belief, []
        for token in row:
            after = now @ step[token]
            losses.append(-after.sum().log())
            now = after / after.sum()
        rows.append(torch.stack(losses))
    return torch.stack(rows)


@variant("best-losses")
def by_differences_of_logarithms(ids, chances, following, belief):
    log_belief = belief.log().expand(len(ids), -1)
    before, losses = torch.zeros(len(ids), dtype=chances.dtype), []
    for i in range(ids.shape[1]):
        weights = log_belief + chances.log()[:, ids[:, i]].T
        total = weights.logsumexp(1)
        losses.append(before - total)
        before = total
        places = following[:, ids[:, i]].T
        same = places[:, :, None] == torch.arange(len(belief))
        log_belief = weights[:, :, None].masked_fill(~same, -math.inf).logsumexp(1)
    return torch.stack(losses, 1)


@variant("best-losses")
def with_index_add(ids, chances, following, belief):
    out = []
    for row in ids:
        now, found = belief, []
        for token in row:
            weights = now * chances[:, token]
            found.append(-torch.log(weights.sum()))
            moved = torch.zeros_like(weights).index_add(0, following[:, token], weights)
            now = moved / moved.sum()
        out.append(torch.stack(found))
    return torch.stack(out)


@variant("best-losses")
def in_dictionaries(ids, chances, following, belief):
    losses = torch.zeros(ids.shape, dtype=chances.dtype)
    for b, row in enumerate(ids.tolist()):
        now = dict(enumerate(belief.tolist()))
        for i, token in enumerate(row):
            then = dict.fromkeys(now, 0.0)
            for state, share in now.items():
                then[int(following[state, token])] += share * float(chances[state, token])
            total = sum(then.values())
            losses[b, i] = -math.log(total)
            now = {state: share / total for state, share in then.items()}
    return losses

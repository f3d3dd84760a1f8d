"""Right answers to the bug hunt that are written differently."""

import torch
import torch.nn.functional as F

from lab.answers import variant
from lab.battery import shaken
from lab.blocks import EncoderLayer

# 16.1 Four losses


@variant("predicted-writing")
def all_write():
    return dict.fromkeys(["right", "future", "padding", "not shifted"], "writes")


@variant("predicted-writing")
def only_the_right_one():
    names = "not shifted", "padding", "future", "right"
    return {name: "writes" if name == "right" else "fails" for name in names}


@variant("predicted-writing")
def all_fail():
    return dict.fromkeys(("right", "future", "padding", "not shifted"), "fails")


@variant("measured-runs")
def another_machine():
    return {
        "right": [0.08, 0.905],
        "future": [0.04, 0.015],
        "padding": [0.043, 0.99],
        "not shifted": [0.002, 0.0],
    }


@variant("measured-runs")
def as_pairs():
    losses = {"right": 0.05, "future": 0.03, "padding": 0.06, "not shifted": 0.0}
    shares = {"right": 0.98, "future": 0.1, "padding": 0.93, "not shifted": 0.0}
    return {name: (loss, shares[name]) for name, loss in losses.items()}


@variant("measured-runs")
def as_tensors():
    return {
        "right": torch.tensor([0.06, 0.95]),
        "future": torch.tensor([0.02, 0.06]),
        "padding": torch.tensor([0.04, 0.97]),
        "not shifted": torch.tensor([0.001, 0.0]),
    }


# 16.2 Who sees ahead?


@variant("check-future")
def by_prefixes(model):
    model.eval()
    words = torch.tensor([model.words])
    source, target = words[:, :5], torch.cat([words[:, :8], words[:, :3]], dim=1)
    whole = model.logits(source, target)
    for n in range(1, target.shape[1]):
        if not torch.allclose(model.logits(source, target[:, :n]), whole[:, :n], atol=1e-4):
            raise AssertionError(f"future: the first {n} rows are others without what follows")


@variant("check-future")
def all_later_tokens_at_once(model):
    model.eval()
    words = model.words
    source = torch.tensor([words[:4]])
    target = [words[k] for k in (4, 1, 0, 5, 2, 3, 1, 6)]
    before = model.logits(source, torch.tensor([target]))
    errors = []
    for i in range(1, 8):
        changed = target[:i] + [words[7]] * (8 - i)
        after = model.logits(source, torch.tensor([changed]))
        errors.append((after - before)[:, :i].abs().max().item())
    assert max(errors) <= 2e-4, "future"


@variant("check-future")
def two_of_each(model):
    model.eval()
    words = torch.tensor(model.words)
    source = words[[0, 1, 2]].expand(2, -1)
    target = words[[4, 1, 0, 5, 2, 3, 1, 6]].expand(2, -1)
    before = model.logits(source, target)
    for i in range(7, 0, -1):
        changed = target.clone()
        changed[:, i] = model.eos
        assert (before - model.logits(source, changed))[:, :i].abs().max() < 1e-4, (
            f"future: token {i} is known before"
        )


# 16.3 What stands behind the sentence


@variant("check-padding")
def six_kinds_of_padding(model):
    model.eval()
    source, target = torch.tensor([model.words[:5]]), torch.tensor([model.words[2:8]])
    before = model.logits(source, target)
    for count in range(1, 7):
        behind = torch.full((1, count), model.pad)
        after = model.logits(torch.cat([source, behind], dim=1), target)
        if not torch.allclose(after, before, rtol=0, atol=1e-4):
            raise AssertionError(f"padding of {count} moves logits")


@variant("check-padding")
def beside_the_longest(model):
    model.eval()
    words = torch.tensor(model.words)
    found = []
    for count in (0, 1, 7):
        source = torch.cat([words[:5], torch.tensor([model.pad] * count, dtype=torch.long)])
        found.append(model.logits(source[None], words[None, :4]))
    spread = torch.stack(found).std(0).max()
    assert spread < 1e-4, "padding: logits depend on how much of it there is"


@variant("check-padding")
def one_word_padded(model):
    model.eval()
    words = torch.tensor(model.words)
    for length in (1, 3):
        source = torch.full((1, length + 4), model.pad)
        source[0, :length] = words[:length]
        cut = model.logits(source[:, :length], words[None, 4:7])
        worst = (model.logits(source, words[None, 4:7]) - cut).abs().max()
        assert worst < 5e-4, "padding"


# 16.4 In company


@variant("check-company")
def in_every_place(model):
    model.eval()
    ids = torch.tensor([*model.words[:8], model.pad])
    sources = ids[torch.tensor([[0, 1, 2, 3, 4, 5], [6, 7, 8, 8, 8, 8], [5, 3, 1, 8, 8, 8]])]
    targets = ids[torch.tensor([[1, 5, 0, 2], [2, 2, 4, 7], [7, 3, 6, 6]])]
    alone = torch.cat([model.logits(sources[b : b + 1], targets[b : b + 1]) for b in range(3)])
    for places in ([0, 1, 2], [1, 2, 0], [2, 1, 0], [1, 0, 2]):
        together = model.logits(sources[places], targets[places])
        assert torch.allclose(together, alone[places], atol=1e-4), "company: it matters"


@variant("check-company")
def other_neighbours(model):
    model.eval()
    ids = torch.tensor([*model.words[:8], model.pad])
    own = ids[[2, 6, 8, 8, 8]]
    first, second = ids[[0, 1, 2, 3, 4]], ids[[7, 8, 8, 8, 8]]
    target, other = ids[[7, 3, 6]], ids[[1, 5, 0]]
    found = [
        model.logits(own[None], target[None])[0],
        model.logits(torch.stack([own, first]), torch.stack([target, other]))[0],
        model.logits(torch.stack([first, own]), torch.stack([other, target]))[1],
        model.logits(torch.stack([second, first, own]), torch.stack([other, other, target]))[2],
    ]
    for one in found[1:]:
        assert (one - found[0]).abs().max() < 1e-4, "company: its neighbours move it"


@variant("check-company")
def two_and_their_order(model):
    model.eval()
    ids = torch.tensor([*model.words[:8], model.pad])
    sources = ids[torch.tensor([[0, 1, 2, 3], [4, 8, 8, 8]])]
    targets = ids[torch.tensor([[5, 6], [7, 0]])]
    both = model.logits(sources, targets)
    turned = model.logits(sources.flip(0), targets.flip(0)).flip(0)
    alone = torch.stack([model.logits(sources[[b]], targets[[b]])[0] for b in (0, 1)])
    worst = max((both - turned).abs().max(), (both - alone).abs().max())
    assert worst < 1e-4, "company"


# 16.5 Does it read?


@variant("check-reading")
def by_exchanging(model):
    model.eval()
    words = torch.tensor(model.words)
    source, target = words[None, :4], words[None, 2:6]
    before = model.logits(source, target)
    turned = model.logits(source[:, [1, 0, 3, 2]], target)
    assert not torch.allclose(turned, before, atol=1e-4), "reading: the order is lost"
    for j in range(4):
        changed = source.clone()
        changed[:, j] = words[6]
        rows = (model.logits(changed, target) - before).abs().flatten(0, 1).max(-1).values
        assert bool((rows > 1e-4).all()), f"reading: source token {j}"


@variant("check-reading")
def row_by_row(model):
    model.eval()
    words = model.words
    base, target = words[:4], torch.tensor([words[4:8]])
    before = model.logits(torch.tensor([base]), target)
    for j in range(4):
        other = [*base[:j], words[5], *base[j + 1 :]]
        after = model.logits(torch.tensor([other]), target)
        for i in range(4):
            if (after[0, i] - before[0, i]).abs().max() < 2e-4:
                raise AssertionError(f"reading: row {i} does not hear token {j}")
    after = model.logits(torch.tensor([base[::-1]]), target)
    if (after - before).norm() < 1e-3:
        raise AssertionError("reading: a bag of words")


@variant("check-reading")
def longer_sentence(model):
    model.eval()
    words = torch.tensor(model.words)
    source, target = words[[5, 5, 1, 0, 2, 7]][None], words[[6, 3]][None]
    before = model.logits(source, target)
    smallest = []
    for j in range(6):
        changed = source.clone()
        changed[0, j] = words[4]
        smallest.append((model.logits(changed, target) - before).abs().amax((0, 2)).min())
    smallest.append((model.logits(source.roll(1, 1), target) - before).abs().max())
    assert min(smallest) > 1e-4, "reading"


# 16.6 Again, and step by step


@variant("check-again")
def several_times(model):
    words = torch.tensor(model.words)
    source, target = words[None, :4], words[[4, 6, 0, 3, 1, 2]][None]
    model.eval()
    still = torch.stack([model.logits(source, target) for _ in range(3)])
    assert still.std(0).max() < 1e-4, "dropout: evaluation is not still"
    model.train()
    moving = torch.stack([model.logits(source, target) for _ in range(3)])
    assert moving.std(0).max() > 1e-4, "dropout: training is"
    model.eval()
    for _ in range(2):
        if not torch.allclose(model.steps(source, target), still[0], atol=1e-4):
            raise AssertionError("cache: other numbers step by step")


@variant("check-again")
def longer_and_shorter(model):
    words = torch.tensor(model.words)

    def apart(one, other):
        return (one - other).abs().max() > 1e-4

    source = words[[0, 1, 2]][None]
    if not apart(model.logits(source, source), model.logits(source, source)):
        raise AssertionError("dropout")
    model.eval()
    if apart(model.logits(source, source), model.logits(source, source)):
        raise AssertionError("dropout")
    for target in (words[None, :7], words[None, 3:8]):
        if apart(model.steps(source, target), model.logits(source, target)):
            raise AssertionError("cache")


@variant("check-again")
def in_batches(model):
    words = torch.tensor(model.words)
    sources, targets = words[:8].view(2, 4), words[[4, 6, 0, 3, 1, 2, 5, 7]].view(2, 4)
    model.train()
    first, second = (model.logits(sources, targets) for _ in range(2))
    assert not torch.allclose(first, second, atol=1e-4), "dropout: nothing is dropped"
    model.eval()
    first, second = (model.logits(sources, targets) for _ in range(2))
    assert torch.allclose(first, second, atol=1e-4), "dropout: it goes on"
    for _ in range(3):
        stepped = model.steps(sources, targets)
        assert torch.allclose(stepped, first, atol=1e-4), "cache: it differs"


# 16.7 What is being lowered?


@variant("check-loss")
def by_logarithms(model):
    model.eval()
    bos, eos, pad, (a, b, c, d) = model.bos, model.eos, model.pad, model.words[:4]
    source = torch.tensor([[a, b, c], [d, pad, pad]])
    target = torch.tensor([[bos, c, b, a, eos], [bos, d, eos, pad, pad]])
    logs = model.logits(source, target[:, :-1]).log_softmax(-1)
    labels = target[:, 1:]
    picked = -logs.gather(-1, labels[..., None])[..., 0][labels != pad]
    assert (model.loss(source, target) - picked.mean()).abs() < 1e-4, "loss: not the mean"


@variant("check-loss")
def label_by_label(model):
    model.eval()
    bos, eos, pad, words = model.bos, model.eos, model.pad, model.words
    source = torch.tensor([[*words[:3]], [words[3], pad, pad]])
    rows = [[bos, *words[2::-1], eos], [bos, words[3], eos, pad, pad]]
    target = torch.tensor(rows)
    logits = model.logits(source, target[:, :-1]).double()
    costs = [
        -logits[i, j].log_softmax(0)[row[j + 1]]
        for i, row in enumerate(rows)
        for j in range(4)
        if row[j + 1] != pad
    ]
    off = abs(float(model.loss(source, target)) - float(sum(costs) / len(costs)))
    if off > 1e-3:
        raise AssertionError(f"loss is off by {off}")


@variant("check-loss")
def three_sentences(model):
    model.eval()
    ids = torch.tensor([*model.words[:8], model.pad, model.bos, model.eos])
    source = ids[torch.tensor([[0, 1, 2, 3], [4, 5, 8, 8], [6, 8, 8, 8]])]
    target = ids[
        torch.tensor([[9, 3, 2, 1, 0, 10, 8], [9, 5, 4, 10, 8, 8, 8], [9, 6, 10, 8, 8, 8, 8]])
    ]
    labels = target[:, 1:]
    each = F.cross_entropy(model.logits(source, target[:, :-1]).mT, labels, reduction="none")
    real = labels != model.pad
    wanted = (each * real).sum() / real.sum()
    assert torch.isclose(model.loss(source, target), wanted, rtol=0, atol=1e-4), "loss"


# 16.8 Twelve Transformers


@variant("verdict")
def by_a_table(model):
    ids = torch.tensor([*model.words[:8], model.pad, model.bos, model.eos])
    source, target = ids[[3, 0, 5, 2, 1]][None], ids[[4, 6, 0, 3, 1, 2, 5]][None]
    logits = model.logits

    def apart(one, other):
        return float((one - other).abs().max())

    def replaced(tokens, i):
        changed = tokens.clone()
        changed[0, i] = ids[7]
        return changed

    awake = apart(logits(source, target), logits(source, target))
    model.eval()
    before = logits(source, target)
    two = torch.cat([ids[[6, 4, 8, 8, 8]][None], source])
    whole = ids[torch.tensor([[9, 3, 2, 1, 0, 10], [9, 5, 4, 10, 8, 8]])]
    given, labels = whole[:, :-1], whole[:, 1:]
    wanted = F.cross_entropy(logits(two, given).mT, labels, ignore_index=model.pad)
    others = [replaced(source, 0), replaced(source, 4), source.flip(1)]
    read = [float((logits(one, target) - before).abs().amax(-1).min()) for one in others]
    moved = {
        "dropout": max(apart(before, logits(source, target)), 1.0 if awake < 1e-4 else 0.0),
        "future": max(
            apart(before[:, :i], logits(source, replaced(target, i))[:, :i]) for i in (1, 3, 6)
        ),
        "padding": apart(before, logits(F.pad(source, (0, 3), value=model.pad), target)),
        "company": apart(before[0], logits(two, torch.cat([target.flip(1), target]))[1]),
        "reading": 1.0 if min(read) < 1e-4 else 0.0,
        "cache": max(
            apart(model.steps(one, target), logits(one, target)) for one in (source, source.flip(1))
        ),
        "loss": apart(model.loss(two, whole), wanted),
    }
    order = ("dropout", "future", "padding", "company", "reading", "loss", "cache")
    return next((part for part in order if moved[part] > 1e-4), "right")


@variant("verdict")
def reading_last(model):
    ids = torch.tensor([*model.words[:8], model.pad, model.bos, model.eos])
    source, target = ids[[3, 0, 5, 2, 1]][None], ids[[4, 6, 0, 3, 1, 2, 5]][None]
    logits = model.logits

    def apart(one, other):
        return float((one - other).abs().max())

    def replaced(tokens, i):
        changed = tokens.clone()
        changed[0, i] = ids[7]
        return changed

    awake = apart(logits(source, target), logits(source, target))
    model.eval()
    before = logits(source, target)
    two = torch.cat([ids[[6, 4, 8, 8, 8]][None], source])
    whole = ids[torch.tensor([[9, 3, 2, 1, 0, 10], [9, 5, 4, 10, 8, 8]])]
    given, labels = whole[:, :-1], whole[:, 1:]
    wanted = F.cross_entropy(logits(two, given).mT, labels, ignore_index=model.pad)
    others = [replaced(source, 0), replaced(source, 4), source.flip(1)]
    read = [float((logits(one, target) - before).abs().amax(-1).min()) for one in others]
    moved = {
        "dropout": max(apart(before, logits(source, target)), 1.0 if awake < 1e-4 else 0.0),
        "future": max(
            apart(before[:, :i], logits(source, replaced(target, i))[:, :i]) for i in (1, 3, 6)
        ),
        "padding": apart(before, logits(F.pad(source, (0, 3), value=model.pad), target)),
        "company": apart(before[0], logits(two, torch.cat([target.flip(1), target]))[1]),
        "reading": 1.0 if min(read) < 1e-4 else 0.0,
        "cache": max(
            apart(model.steps(one, target), logits(one, target)) for one in (source, source.flip(1))
        ),
        "loss": apart(model.loss(two, whole), wanted),
    }
    order = ("dropout", "future", "company", "padding", "loss", "cache", "reading")
    return ([part for part in order if moved[part] > 2e-4] or ["right"])[0]


@variant("verdict")
def by_elimination(model):
    ids = torch.tensor([*model.words[:8], model.pad, model.bos, model.eos])
    source, target = ids[[3, 0, 5, 2, 1]][None], ids[[4, 6, 0, 3, 1, 2, 5]][None]
    logits = model.logits

    def apart(one, other):
        return float((one - other).abs().max())

    def replaced(tokens, i):
        changed = tokens.clone()
        changed[0, i] = ids[7]
        return changed

    awake = apart(logits(source, target), logits(source, target))
    model.eval()
    before = logits(source, target)
    two = torch.cat([ids[[6, 4, 8, 8, 8]][None], source])
    whole = ids[torch.tensor([[9, 3, 2, 1, 0, 10], [9, 5, 4, 10, 8, 8]])]
    given, labels = whole[:, :-1], whole[:, 1:]
    wanted = F.cross_entropy(logits(two, given).mT, labels, ignore_index=model.pad)
    others = [replaced(source, 0), replaced(source, 4), source.flip(1)]
    read = [float((logits(one, target) - before).abs().amax(-1).min()) for one in others]
    moved = {
        "dropout": max(apart(before, logits(source, target)), 1.0 if awake < 1e-4 else 0.0),
        "future": max(
            apart(before[:, :i], logits(source, replaced(target, i))[:, :i]) for i in (1, 3, 6)
        ),
        "padding": apart(before, logits(F.pad(source, (0, 3), value=model.pad), target)),
        "company": apart(before[0], logits(two, torch.cat([target.flip(1), target]))[1]),
        "reading": 1.0 if min(read) < 1e-4 else 0.0,
        "cache": max(
            apart(model.steps(one, target), logits(one, target)) for one in (source, source.flip(1))
        ),
        "loss": apart(model.loss(two, whole), wanted),
    }
    for part in ("dropout", "future", "padding", "company"):
        if moved.pop(part) > 1e-4:
            return part
    found = [part for part, off in moved.items() if off > 1e-4]
    return found[0] if found else "right"


# 16.10 Bonus: which part of a layer?


@variant("blame")
def norms_by_hand(run):
    layer = shaken(EncoderLayer(8, 2, 12, 0.0).requires_grad_(False), seed=3)
    drawn = {name: value.clone() for name, value in layer.state_dict().items()}
    generator = torch.Generator().manual_seed(5)
    x = torch.randn(1, 4, 8, generator=generator, dtype=torch.float64) / 20

    def off(*let_in):
        weights = dict(drawn)
        for name in ("self_attention.w_o.weight", "feed_forward.outer.weight"):
            if name not in let_in:
                weights[name] = torch.zeros_like(drawn[name])
        if "feed_forward.outer.weight" not in let_in:
            weights["feed_forward.outer.bias"] = torch.zeros(8, dtype=torch.float64)
        layer.load_state_dict(weights)
        found = run(weights, x)
        return (found - layer(x)).abs().max() > 1e-8, found

    wrong, found = off()
    if wrong:
        flat = (found - found[:, :1]).abs().max() < 1e-8
        return "residual" if flat else "norm"
    if off("self_attention.w_o.weight")[0]:
        return "attention"
    return "feed-forward" if off("feed_forward.outer.weight")[0] else "none"


@variant("blame")
def sublayers_first_by_difference(run):
    layer = shaken(EncoderLayer(8, 2, 12, 0.0).requires_grad_(False), seed=8)
    full = {name: value.clone() for name, value in layer.state_dict().items()}
    x = torch.linspace(-0.3, 0.4, 48, dtype=torch.float64).view(2, 3, 8).sin()
    x = torch.cat([x, x / 100], dim=1)

    def differs(weights):
        layer.load_state_dict(weights)
        return not torch.allclose(run(weights, x), layer(x), rtol=0, atol=1e-8)

    quiet = full | {
        name: torch.zeros_like(value)
        for name, value in full.items()
        if name.endswith(("w_o.weight", "outer.weight", "outer.bias"))
    }
    if not differs(quiet):
        for name, part in (("w_o", "attention"), ("outer", "feed-forward")):
            if differs(quiet | {key: full[key] for key in full if name in key}):
                return part
        return "none"
    outputs = run(quiet, x)
    return "residual" if outputs.std((0, 1)).max() < 1e-8 else "norm"


@variant("blame")
def silenced_by_the_values(run):
    layer = shaken(EncoderLayer(8, 2, 12, 0.0).requires_grad_(False), seed=1)
    full = {name: value.clone() for name, value in layer.state_dict().items()}
    generator = torch.Generator().manual_seed(6)
    xs = [scale * torch.randn(2, 3, 8, generator=generator).double() for scale in (1, 0.01)]

    def wrong(*silent):
        weights = {n: v * 0 if any(one in n for one in silent) else v for n, v in full.items()}
        layer.load_state_dict(weights)
        return any((run(weights, x) - layer(x)).abs().max() > 1e-8 for x in xs), weights

    lost, weights = wrong("w_v", "outer")
    if lost:
        one, other = (run(weights, x) for x in (xs[0], xs[0].roll(1, -1)))
        return "norm" if (one - other).abs().max() > 1e-8 else "residual"
    if wrong("w_v")[0]:
        return "feed-forward"
    return "attention" if wrong("outer")[0] else "none"

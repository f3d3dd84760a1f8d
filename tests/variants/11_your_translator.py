"""Right answers to the exercise on training that are written differently."""

import math
from collections import Counter

import torch

from lab.answers import variant

ELIDED: dict[str, tuple[str, ...]] = {}  # the notebook's setup cell has it

# 11.1 A loop that keeps its books


@variant("train")
def losses_in_a_list(model, batches, step, evaluate, every, pad_id):
    records, since = [], []
    number = 0

    def close():
        labels = sum(count for _, count in since)
        loss = sum(loss * count for loss, count in since) / labels
        model.eval()
        held_out = evaluate(model)
        model.train()
        records.append({"step": number, "loss": loss, "held_out": held_out})
        since.clear()

    model.train()
    for source, target in batches:
        number += 1
        labels = torch.ne(target[:, 1:], pad_id).sum().item()
        since.append((step(model, source, target), labels))
        if len(since) == every:
            close()
    if since:
        close()
    return records


@variant("train")
def mode_set_before_every_step(model, batches, step, evaluate, every, pad_id):
    records = []
    total = labels = 0.0
    count = 0
    for count, pair in enumerate(batches, start=1):
        model.train()
        real = float((pair[1][:, 1:] != pad_id).sum())
        total, labels = total + real * step(model, *pair), labels + real
        if not count % every:
            records.append({"step": count, "loss": total / labels})
            total = labels = 0.0
            records[-1]["held_out"] = evaluate(model.eval())
    if count % every:
        records.append({"step": count, "loss": total / labels, "held_out": evaluate(model.eval())})
    model.train()
    return records


@variant("train")
def batches_as_a_list(model, batches, step, evaluate, every, pad_id):
    batches = list(batches)
    records = []
    model.train()
    for start in range(0, len(batches), every):
        total = labels = 0
        for source, target in batches[start : start + every]:
            real = (target[:, 1:] != pad_id).sum().item()
            total += step(model, source, target) * real
            labels += real
        model.eval()
        record = {"step": min(start + every, len(batches)), "loss": total / labels}
        record["held_out"] = evaluate(model)
        model.train()
        records.append(record)
    return records


# 11.2 Which weights to keep


@variant("choose")
def numbers_only(held_out, patience):
    if len(held_out) == 0:
        raise ValueError("there are no losses")
    if patience < 1:
        raise ValueError(f"patience ({patience}) must be at least 1")
    losses = [math.inf if loss != loss else loss for loss in held_out]
    lowest, best, waited = losses[0], 0, 0
    for i in range(1, len(losses)):
        if losses[i] < lowest:
            lowest, best, waited = losses[i], i, 0
        else:
            waited += 1
        if waited == patience:
            return best, i
    return best, len(losses) - 1


@variant("choose")
def with_running_minima(held_out, patience):
    if not held_out or patience < 1:
        raise ValueError("no losses, or no patience")
    losses = [math.inf if math.isnan(loss) else loss for loss in held_out]
    minima = [min(losses[: i + 1]) for i in range(len(losses))]
    for stop in range(patience, len(losses)):
        if minima[stop] == minima[stop - patience]:
            return losses.index(minima[stop]), stop
    return losses.index(minima[-1]), len(losses) - 1


@variant("choose")
def as_a_list_of_two(held_out, patience):
    if patience < 1 or not len(held_out):
        raise ValueError
    best = where = 0
    while where < len(held_out):
        challenger, champion = held_out[where], held_out[best]
        if challenger < champion or (champion != champion and challenger == challenger):
            best = where
        if where - best == patience:
            break
        where += 1
    return [best, min(where, len(held_out) - 1)]


# 11.3 How high may the rate be?


@variant("sweep")
def with_tensors(run, rates):
    found = {}
    for rate in sorted(set(rates)):
        losses = torch.tensor(run(rate), dtype=torch.float64)
        count = -(-len(losses) // 10)
        mean = losses[-count:].mean()
        if not torch.isfinite(losses).all() or mean > losses[0]:
            found[rate] = math.inf
            return found
        found[rate] = mean.item()
    return found


@variant("sweep")
def by_recursion(run, rates):
    if not rates:
        return {}
    first, *others = sorted(rates)
    losses = run(first)
    n = (len(losses) + 9) // 10
    mean = math.fsum(losses[len(losses) - n :]) / n
    if any(math.isnan(loss) or math.isinf(loss) for loss in losses) or mean > losses[0]:
        return {first: float("inf")}
    return {first: mean} | by_recursion(run, others)


@variant("sweep")
def while_it_goes_well(run, rates):
    waiting, table, fine = sorted(rates, reverse=True), {}, True
    while waiting and fine:
        rate = waiting.pop()
        losses = list(run(rate))
        last = losses[-max(1, math.ceil(0.1 * len(losses))) :]
        fine = all(map(math.isfinite, losses)) and sum(last) <= losses[0] * len(last)
        table[rate] = sum(last) / len(last) if fine else float("inf")
    return table


@variant("measured")
def another_machine():
    table = {1e-4: 6.3, 1e-3: 5.2, 1e-2: 4.1, 1e-1: 4.4, 2.0: float("inf")}
    return table, 1e-2


@variant("measured")
def another_loss_and_a_cautious_choice():
    losses = 4.9, 3.7, 2.62, 2.51, 3.8, math.inf
    return dict(zip((1e-4, 1e-3, 1e-2, 2e-2, 1e-1, 3.0), losses, strict=True)), 1e-2


@variant("measured")
def many_rates():
    losses = [6.1, 5.9, 5.6, 5.3, 5.0, 4.6, 4.3, 4.1, 4.0, 4.2, 4.4, 5.0, 5.6]
    table = {3e-4 * 2**i: loss for i, loss in enumerate(losses)}
    table[3e-4 * 2 ** len(losses)] = math.inf
    return table, 3e-4 * 2**8


# 11.4 What a cache saves


@variant("positions")
def row_by_row(lengths, cached, together):
    longest = max(lengths, default=0)
    total = 0
    for length in lengths:
        steps = longest if together else length
        total += steps if cached else steps * (steps + 1) // 2
    return total


@variant("positions")
def sums_of_ranges(lengths, cached, together):
    def one(n):
        return n if cached else (n * n + n) // 2

    if not lengths:
        return 0
    return len(lengths) * one(max(lengths)) if together else sum(map(one, lengths))


@variant("positions")
def with_choose(lengths, cached, together):
    rows = list(lengths)
    if together:
        rows = [max(rows) for _ in rows]
    return sum(math.comb(n + 1, 1 if cached else 2) - (1 if cached else 0) for n in rows)


# 11.5 Errors by kind


@variant("kind-of-error")
def with_flags(right, said, forms):
    a, b = right.split(), said.split()
    if a == b:
        return "none"

    def same(x, y):
        return x == y or x in ELIDED.get(y, []) or y in ELIDED.get(x, [])

    def lemma(x):
        return forms.get(x) or x

    equal = len(a) == len(b)
    elision = agreement = equal
    for x, y in zip(a, b):  # noqa: B905
        if not same(x, y):
            elision = False
            if lemma(x) != lemma(y):
                agreement = False
    if elision:
        return "elision"
    if agreement:
        return "agreement"
    if sorted(map(lemma, a)) == sorted(map(lemma, b)):
        return "order"
    if any((word in a) != (word in b) for word in ("ne", "n'", "pas")):
        return "negation"
    return "word" if equal else "length"


@variant("kind-of-error")
def rules_in_a_list(right, said, forms):
    one, two = right.split(), said.split()
    forms_of = [Counter(forms.get(word, word) for word in words) for words in (one, two)]
    whole = {(short, full) for short, fulls in ELIDED.items() for full in fulls}
    near = [x == y or (x, y) in whole or (y, x) in whole for x, y in zip(one, two)]  # noqa: B905
    kin = [forms.get(x, x) == forms.get(y, y) for x, y in zip(one, two)]  # noqa: B905
    as_long = len(one) == len(two)
    rules = {
        "none": one == two,
        "elision": as_long and all(near),
        "agreement": as_long and all(a or b for a, b in zip(near, kin, strict=True)),
        "order": forms_of[0] == forms_of[1],
        "negation": any((word in one) is not (word in two) for word in ["ne", "n'", "pas"]),
        "length": not as_long,
        "word": True,
    }
    return next(kind for kind, fits in rules.items() if fits)


@variant("kind-of-error")
def written_out_in_full(right, said, forms):
    a, b = right.split(), said.split()

    def choices(word):
        return {word, *ELIDED.get(word, ())}

    def elided(x, y):
        return x == y or y in choices(x) or x in choices(y)

    if a == b:
        return "none"
    if len(a) == len(b):
        differ = [(x, y) for x, y in zip(a, b, strict=True) if not elided(x, y)]
        if not differ:
            return "elision"
        if all(forms.get(x, x) == forms.get(y, y) for x, y in differ):
            return "agreement"
    a_forms, b_forms = ([forms.get(w, w) for w in words] for words in (a, b))
    if len(a) == len(b) and all(a_forms.count(w) == b_forms.count(w) for w in {*a_forms, *b_forms}):
        return "order"
    for word in ("ne", "n'", "pas"):
        if (a.count(word) > 0) + (b.count(word) > 0) == 1:
            return "negation"
    if len(a) != len(b):
        return "length"
    return "word"


# 11.6 Whose error is it?


@variant("whose-errors")
def by_cross_entropy(model, source, said, right, pad_id):
    mode = model.training
    model.eval()

    @torch.no_grad()
    def cost(target):
        logits = model(source, target[:, :-1])
        losses = torch.nn.functional.cross_entropy(
            logits.transpose(1, 2), target[:, 1:], ignore_index=pad_id, reduction="none"
        )
        return losses.sum(dim=1)

    cheaper = cost(right) < cost(said)
    model.train(mode)
    answers = []
    for i in range(len(source)):
        one, other = (row[row != pad_id].tolist() for row in (said[i], right[i]))
        answers.append("none" if one == other else "search" if cheaper[i] else "model")
    return answers


@variant("whose-errors")
def row_by_row_without_padding(model, source, said, right, pad_id):
    before = model.training
    model.eval()
    blamed = []
    with torch.no_grad():
        for sentence, one, other in zip(source, said, right, strict=True):
            one, other = one[one != pad_id], other[other != pad_id]
            sums = []
            for target in (one, other):
                log_p = model(sentence[None], target[None, :-1])[0].log_softmax(-1)
                sums.append(log_p[torch.arange(len(target) - 1), target[1:]].sum().item())
            if one.tolist() == other.tolist():
                blamed.append("none")
            else:
                blamed.append("search" if sums[1] > sums[0] else "model")
    if before:
        model.train()
    return blamed


@variant("whose-errors")
def logsumexp_by_hand(model, source, said, right, pad_id):
    was = model.training
    model.train(False)
    totals = []
    with torch.no_grad():
        for target in (said, right):
            labels = target[:, 1:]
            z = model(source, target[:, :-1])
            chosen = torch.take_along_dim(z, labels[..., None], -1)[..., 0]
            totals.append(((chosen - torch.logsumexp(z, -1)) * labels.ne(pad_id)).sum(1))
    model.train(was)
    words = []
    for i, better in enumerate((totals[1] > totals[0]).tolist()):
        said_ids = [t for t in said[i].tolist() if t != pad_id]
        right_ids = [t for t in right[i].tolist() if t != pad_id]
        words.append("none" if said_ids == right_ids else ("model", "search")[better])
    return words


# 11.7 Predict, then run


@variant("predicted")
def all_the_same():
    return dict.fromkeys(("residuals", "positions", "causal mask"), ("same", "same"))


@variant("predicted")
def in_lists():
    return {
        "causal mask": ["higher", "lower"],
        "positions": ["same", "higher"],
        "residuals": ["lower", "same"],
    }


@variant("predicted")
def made_step_by_step():
    predictions = dict.fromkeys(("positions", "residuals"), ("higher", "lower"))
    predictions["causal mask"] = ("lower", "higher")
    return predictions


# 11.8 Better, or luck?


@variant("bootstrap")
def with_multiplicities(first, second, references, samples, generator):
    n = len(references)
    drawn = torch.randint(n, (samples, n), generator=generator)
    times = torch.zeros(samples, n, dtype=torch.float64)
    times.scatter_add_(1, drawn, torch.ones_like(times))
    times = torch.cat([times, torch.ones(1, n, dtype=torch.float64)])  # last, all of them once

    def scores(system):
        logs = torch.zeros(len(times), dtype=torch.float64)
        for k in range(1, 5):
            hits, all_ = [], []
            for said, right in zip(system, references, strict=True):
                mine = Counter(zip(*(said[i:] for i in range(k)), strict=False))
                theirs = Counter(zip(*(right[i:] for i in range(k)), strict=False))
                hits.append(sum(min(count, theirs[gram]) for gram, count in mine.items()))
                all_.append(sum(mine.values()))
            hit, whole = (times @ torch.tensor(x, dtype=torch.float64) for x in (hits, all_))
            logs += torch.where(hit > 0, hit / whole.clamp(min=1), 0.0).log() / 4
        c, r = (
            times @ torch.tensor([len(line) for line in side], dtype=torch.float64)
            for side in (system, references)
        )
        penalty = torch.where(c >= r, 1.0, (1 - r / c.clamp(min=1)).exp())
        return 100 * penalty * logs.exp()

    differences = scores(second) - scores(first)
    ends = [torch.quantile(differences[:-1], q).item() for q in (0.025, 0.975)]
    return differences[-1].item(), *ends


@variant("bootstrap")
def with_loops(first, second, references, samples, generator):
    def grams(tokens, k):
        return Counter(" ".join(map(repr, tokens[i : i + k])) for i in range(len(tokens) - k + 1))

    def statistics(system):
        rows = []
        for said, right in zip(system, references, strict=True):
            row = []
            for k in range(1, 5):
                mine = grams(said, k)
                row += [sum((mine & grams(right, k)).values()), sum(mine.values())]
            rows.append([*row, len(said), len(right)])
        return rows

    def score(rows):
        sums = [sum(column) for column in zip(*rows, strict=True)]
        if 0 in sums[0:8:2]:
            return 0.0
        mean = sum(math.log(sums[i] / sums[i + 1]) for i in range(0, 8, 2)) / 4
        return 100 * math.exp(mean + min(0.0, 1 - sums[9] / sums[8]))

    one, two = statistics(first), statistics(second)
    n = len(references)
    differences = []
    for row in torch.randint(n, (samples, n), generator=generator).tolist():
        differences.append(score([two[i] for i in row]) - score([one[i] for i in row]))
    found = torch.tensor(differences, dtype=torch.float64)
    low, high = (float(found.quantile(q)) for q in (0.025, 0.975))
    return score(two) - score(one), low, high


@variant("bootstrap")
def both_systems_in_one_tensor(first, second, references, samples, generator):
    table = torch.zeros(2, len(references), 10, dtype=torch.float64)
    for s, system in enumerate((first, second)):
        for i, (said, right) in enumerate(zip(system, references, strict=True)):
            for k in range(4):
                a, b = (
                    Counter(tuple(x[j : j + k + 1]) for j in range(len(x) - k))
                    for x in (said, right)
                )
                table[s, i, k] = sum((a & b).values())
                table[s, i, 4 + k] = max(len(said) - k, 0)
            table[s, i, 8], table[s, i, 9] = len(said), len(right)

    def bleu(sums):
        ratios = sums[..., :4] / sums[..., 4:8].clamp(min=1)
        brevity = (1 - sums[..., 9] / sums[..., 8].clamp(min=1)).clamp(max=0)
        return 100 * (ratios.prod(-1) ** 0.25) * brevity.exp()

    n = len(references)
    drawn = torch.randint(n, (samples, n), generator=generator)
    one, two = bleu(table[:, drawn].sum(2))
    whole = bleu(table.sum(1))
    low, high = (two - one).quantile(torch.tensor([0.025, 0.975], dtype=torch.float64))
    return (whole[1] - whole[0]).item(), low.item(), high.item()

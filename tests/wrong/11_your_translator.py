"""Wrong answers to the last exercise that nobody gets a name for, from its texts alone."""

import math
from collections import Counter

import torch

from lab.answers import variant

ELIDED = {
    "l'": ("le", "la"),
    "j'": ("je",),
    "m'": ("me",),
    "n'": ("ne",),
    "d'": ("de",),
    "qu'": ("que",),
}


@variant("train")
def evaluation_mode_left_after_the_last_record(model, batches, step, evaluate, every, pad_id):
    records, total, labels, done = [], 0.0, 0, 0
    for source, target in batches:
        model.train()
        count = int((target[:, 1:] != pad_id).sum())
        total, labels, done = total + step(model, source, target) * count, labels + count, done + 1
        if done % every == 0:
            model.eval()
            records.append({"step": done, "loss": total / labels, "held_out": evaluate(model)})
            total, labels = 0.0, 0
    if labels:
        model.eval()
        records.append({"step": done, "loss": total / labels, "held_out": evaluate(model)})
    return records


@variant("train")
def last_loss_since_the_beginning(model, batches, step, evaluate, every, pad_id):
    records, total, labels, done, all_total, all_labels = [], 0.0, 0, 0, 0.0, 0

    def note(loss):
        model.eval()
        records.append({"step": done, "loss": loss, "held_out": evaluate(model)})
        model.train()

    model.train()
    for source, target in batches:
        count = int((target[:, 1:] != pad_id).sum())
        loss = step(model, source, target) * count
        total, labels, done = total + loss, labels + count, done + 1
        all_total, all_labels = all_total + loss, all_labels + count
        if done % every == 0:
            note(total / labels)
            total, labels = 0.0, 0
    if labels:
        note(all_total / all_labels)
    return records


@variant("train")
def one_beginning_for_all_rows(model, batches, step, evaluate, every, pad_id):
    records, total, labels, done = [], 0.0, 0, 0

    def note():
        model.eval()
        records.append({"step": done, "loss": total / labels, "held_out": evaluate(model)})
        model.train()

    model.train()
    for source, target in batches:
        count = int((target != pad_id).sum()) - 1  # one <bos>, however many rows
        total, labels, done = total + step(model, source, target) * count, labels + count, done + 1
        if done % every == 0:
            note()
            total, labels = 0.0, 0
    if labels:
        note()
    return records


@variant("train")
def held_out_before_the_step(model, batches, step, evaluate, every, pad_id):
    records, total, labels, done, held_out = [], 0.0, 0, 0, 0.0
    for source, target in batches:
        if (done + 1) % every == 0:
            model.eval()
            held_out = evaluate(model)
        model.train()
        count = int((target[:, 1:] != pad_id).sum())
        total, labels, done = total + step(model, source, target) * count, labels + count, done + 1
        if done % every == 0:
            records.append({"step": done, "loss": total / labels, "held_out": held_out})
            total, labels = 0.0, 0
    if labels:
        model.eval()
        records.append({"step": done, "loss": total / labels, "held_out": evaluate(model)})
        model.train()
    return records


@variant("choose")
def bad_losses_counted_in_all(held_out, patience):
    if not held_out or patience < 1:
        raise ValueError("nothing to choose from")
    best, bad = 0, 0
    for i, loss in enumerate(held_out[1:], start=1):
        if loss < held_out[best] or math.isnan(held_out[best]):
            best = i
        else:
            bad += 1
            if bad == patience:
                return best, i
    return best, len(held_out) - 1


@variant("choose")
def not_a_number_at_the_beginning_stays(held_out, patience):
    if not held_out or patience < 1:
        raise ValueError("nothing to choose from")
    best = 0
    for i, loss in enumerate(held_out):
        if loss < held_out[best]:
            best = i
        if i - best >= patience:
            return best, i
    return best, len(held_out) - 1


@variant("choose")
def patience_zero_allowed(held_out, patience):
    if not held_out or patience < 0:
        raise ValueError("nothing to choose from")
    best = 0
    for i, loss in enumerate(held_out):
        if loss < held_out[best] or (math.isnan(held_out[best]) and not math.isnan(loss)):
            best = i
        if i - best >= patience:
            return best, i
    return best, len(held_out) - 1


@variant("sweep")
def diverged_above_the_second_loss(run, rates):
    table = {}
    for rate in sorted(rates):
        losses = run(rate)
        last = losses[-math.ceil(len(losses) / 10) :]
        mean = sum(last) / len(last)
        bad = not all(map(math.isfinite, losses)) or mean > max(losses[:2])
        table[rate] = math.inf if bad else mean
        if bad:
            break
    return table


@variant("sweep")
def only_the_tail_is_looked_at(run, rates):
    table = {}
    for rate in sorted(rates):
        losses = run(rate)
        last = losses[-math.ceil(len(losses) / 10) :]
        mean = sum(last) / len(last)
        bad = not math.isfinite(mean) or mean > losses[0]
        table[rate] = math.inf if bad else mean
        if bad:
            break
    return table


@variant("sweep")
def rates_sorted_where_they_lie(run, rates):
    table = {}
    rates.sort()
    for rate in rates:
        losses = run(rate)
        last = losses[-math.ceil(len(losses) / 10) :]
        mean = sum(last) / len(last)
        bad = not all(map(math.isfinite, losses)) or mean > losses[0]
        table[rate] = math.inf if bad else mean
        if bad:
            break
    return table


@variant("measured")
def rates_of_a_page_without_a_dip():
    table = {1e-4: 5.9, 3e-4: 5.2, 1e-3: 4.8, 3e-3: 4.3, 1e-2: 4.1, 1e-1: math.inf}
    return table, 1e-2


@variant("positions")
def a_batch_of_one_sentence_too_few(lengths, cached, together):
    steps = (
        [max(lengths)] * (len(lengths) - 1) + [min(lengths)] if together and lengths else lengths
    )
    return sum(n if cached else n * (n + 1) // 2 for n in steps)


@variant("positions")
def by_a_float(lengths, cached, together):
    if not lengths:
        return 0
    steps = [max(lengths)] * len(lengths) if together else lengths
    return sum(n if cached else int(n * (n + 1) / 2) for n in steps)


def kind(right, said, forms, order=True, agreement_elided=True, symmetric=True):
    """The seven rules, with a slip in one of them."""
    wanted, given = right.split(), said.split()

    def same(one, other):
        found = one == other or other in ELIDED.get(one, ())
        return found or (symmetric and one in ELIDED.get(other, ()))

    def plain(words):
        return [forms.get(word, word) for word in words]

    pairs, as_many = list(zip(wanted, given, strict=False)), len(wanted) == len(given)
    if wanted == given:
        return "none"
    if as_many and all(same(*pair) for pair in pairs):
        return "elision"
    if as_many and all(
        (agreement_elided and same(*pair)) or len({*plain(pair)}) == 1 for pair in pairs
    ):
        return "agreement"
    if Counter(plain(wanted)) == Counter(plain(given)) if order else {*wanted} == {*given}:
        return "order"
    if {"ne", "n'", "pas"} & ({*wanted} ^ {*given}):
        return "negation"
    return "word" if as_many else "length"


@variant("kind-of-error")
def elided_in_what_was_said_only(right, said, forms):
    return kind(right, said, forms, symmetric=False)


@variant("kind-of-error")
def agreement_without_elision(right, said, forms):
    return kind(right, said, forms, agreement_elided=False)


@variant("kind-of-error")
def order_of_the_words_as_they_stand(right, said, forms):
    return kind(right, said, forms, order=False)


@variant("kind-of-error")
def elided_forms_are_alike_by_what_they_stand_for(right, said, forms):
    full = {short: words[0] for short, words in ELIDED.items()}
    return kind(
        " ".join(full.get(word, word) for word in right.split()),
        " ".join(full.get(word, word) for word in said.split()),
        forms,
    )


@variant("kind-of-error")
def negation_counted(right, said, forms):
    found = kind(right, said, forms)
    if found in ("length", "word"):
        counts = [Counter(side.split()) for side in (right, said)]
        if any(counts[0][word] != counts[1][word] for word in ("ne", "n'", "pas")):
            return "negation"
    return found


def log_probability(model, source, target, pad_id, mean=False):
    """Of each row, by a model in the mode in which it is."""
    labels = target[:, 1:]
    with torch.no_grad():
        log_p = model(source, target[:, :-1]).log_softmax(-1)
    real = labels != pad_id
    found = (log_p.gather(-1, labels[..., None])[..., 0] * real).sum(1)
    return (found / real.sum(1)).tolist() if mean else found.tolist()


def blame(said, right, scores, pad_id):
    """The words, by log-probabilities."""
    rows = [[[i for i in row if i != pad_id] for row in side.tolist()] for side in (said, right)]
    return [
        "none" if one == other else "search" if good > bad else "model"
        for one, other, bad, good in zip(*rows, *scores, strict=True)
    ]


@variant("whose-errors")
def by_the_mean(model, source, said, right, pad_id):
    was_training = model.training
    model.eval()
    scores = [log_probability(model, source, side, pad_id, mean=True) for side in (said, right)]
    model.train(was_training)
    return blame(said, right, scores, pad_id)


@variant("whose-errors")
def left_in_evaluation_mode(model, source, said, right, pad_id):
    model.eval()
    scores = [log_probability(model, source, side, pad_id) for side in (said, right)]
    return blame(said, right, scores, pad_id)


@variant("whose-errors")
def left_in_training_mode(model, source, said, right, pad_id):
    model.eval()
    scores = [log_probability(model, source, side, pad_id) for side in (said, right)]
    model.train()
    return blame(said, right, scores, pad_id)


@variant("whose-errors")
def same_first_tokens_are_no_error(model, source, said, right, pad_id):
    was_training = model.training
    model.eval()
    scores = [log_probability(model, source, side, pad_id) for side in (said, right)]
    model.train(was_training)
    shorter = min(said.shape[1], right.shape[1])
    return [
        "none" if same else word
        for same, word in zip(
            (said[:, :shorter] == right[:, :shorter]).all(1).tolist(),
            blame(said, right, scores, pad_id),
            strict=True,
        )
    ]


@variant("whose-errors")
def equal_scores_are_a_search_error(model, source, said, right, pad_id):
    was_training = model.training
    model.eval()
    of_said, of_right = (log_probability(model, source, side, pad_id) for side in (said, right))
    model.train(was_training)
    return blame(said, right, (of_said, [score + 1e-9 for score in of_right]), pad_id)


@variant("predicted")
def one_word_for_both():
    return {"positions": "higher", "causal mask": "lower", "residuals": "higher"}


def bleu_counts(said, right):
    """Matches and totals of four orders, and both lengths."""
    row = []
    for n in (1, 2, 3, 4):
        one, other = (
            Counter(tuple(side[i : i + n]) for i in range(len(side) - n + 1))
            for side in (said, right)
        )
        row.append((one & other).total())
    return [*row, *(max(0, len(said) - n) for n in range(4)), len(said), len(right)]


def bleu_of(sums, brevity=True, smooth=False):
    """BLEU of rows of ten sums."""
    matches, totals, lengths = sums.double().split([4, 4, 2], dim=-1)
    if smooth:
        matches = matches.clamp(min=0.5)
    score = 100 * (matches / totals.clamp(min=1)).log().mean(-1).exp()
    penalty = (1 - lengths[..., 1] / lengths[..., 0].clamp(min=1)).clamp(max=0).exp()
    return score * penalty if brevity else score


def intervals(first, second, references, drawn, quantiles=(0.025, 0.975), **how):
    """Difference and ends, by test sets that are drawn already."""
    one, other = (
        torch.tensor([bleu_counts(*pair) for pair in zip(said, references, strict=True)])
        for said in (first, second)
    )
    spread = bleu_of(other[drawn].sum(1), **how) - bleu_of(one[drawn].sum(1), **how)
    low, high = torch.quantile(spread, torch.tensor(quantiles).double()).tolist()
    whole = bleu_of(other.sum(0), **how) - bleu_of(one.sum(0), **how)
    return whole.item(), low, high


def sets(references, samples, generator):
    """Indices of all test sets."""
    return torch.randint(len(references), (samples, len(references)), generator=generator)


@variant("bootstrap")
def ninety_percent(first, second, references, samples, generator):
    drawn = sets(references, samples, generator)
    return intervals(first, second, references, drawn, (0.05, 0.95))


@variant("bootstrap")
def without_a_match_smoothed(first, second, references, samples, generator):
    drawn = sets(references, samples, generator)
    return intervals(first, second, references, drawn, smooth=True)


@variant("bootstrap")
def no_brevity(first, second, references, samples, generator):
    drawn = sets(references, samples, generator)
    return intervals(first, second, references, drawn, brevity=False)


@variant("bootstrap")
def one_test_set_less(first, second, references, samples, generator):
    drawn = sets(references, samples, generator)[:-1]
    return intervals(first, second, references, drawn)


@variant("bootstrap")
def difference_is_the_mean_of_the_samples(first, second, references, samples, generator):
    drawn = sets(references, samples, generator)
    one, other = (
        torch.tensor([bleu_counts(*pair) for pair in zip(said, references, strict=True)])
        for said in (first, second)
    )
    spread = bleu_of(other[drawn].sum(1)) - bleu_of(one[drawn].sum(1))
    _, low, high = intervals(first, second, references, drawn)
    return spread.mean().item(), low, high


@variant("bootstrap")
def without_replacement(first, second, references, samples, generator):
    n = len(references)
    drawn = torch.stack([torch.randperm(n, generator=generator) for _ in range(samples)])
    return intervals(first, second, references, drawn)


@variant("choose")
def negative_patience(held_out, patience):
    if not held_out or patience == 0:
        raise ValueError("no losses, or patience below 1")
    best = 0
    for i, loss in enumerate(held_out):
        if loss < held_out[best] or (math.isnan(held_out[best]) and (not math.isnan(loss))):
            best = i
        if i - best >= patience:
            return (best, i)
    return (best, len(held_out) - 1)


@variant("whose-errors")
def a_draw_is_the_searchs_error(model, source, said, right, pad_id):
    was = model.training
    model.eval()

    def score(ids):
        with torch.no_grad():
            log_p = model(source, ids[:, :-1]).log_softmax(-1)
        labels = ids[:, 1:]
        return (
            log_p.gather(-1, labels[..., None]).squeeze(-1).masked_fill(labels == pad_id, 0).sum(1)
        )

    a, b = (score(said), score(right))
    model.train(was)
    out = []
    for i in range(len(source)):
        x, y = ([t for t in row.tolist() if t != pad_id] for row in (said[i], right[i]))
        out.append("none" if x == y else "search" if b[i] >= a[i] else "model")
    return out


@variant("bootstrap")
def totals_below_zero(first, second, references, samples, generator):

    def rows(hyp):
        out = []
        for h, r in zip(hyp, references, strict=False):
            m = []
            for n in range(1, 5):
                a, b = (Counter(tuple(s[i : i + n]) for i in range(len(s) - n + 1)) for s in (h, r))
                m.append((a & b).total())
            out.append([*m, *(len(h) - n + 1 for n in range(1, 5)), len(h), len(r)])
        return torch.tensor(out, dtype=torch.float64)

    def score(t):
        m, n, c, r = (t[..., :4], t[..., 4:8], t[..., 8], t[..., 9])
        p = (m / n.clamp(min=1)).clamp(min=0)
        bp = torch.where(c >= r, torch.ones_like(c), torch.exp(1 - r / c.clamp(min=1)))
        return torch.where(
            (m > 0).all(-1),
            100 * bp * p.clamp(min=1e-300).log().mean(-1).exp(),
            torch.zeros_like(c),
        )

    a, b = (rows(first), rows(second))
    index = torch.randint(len(first), (samples, len(first)), generator=generator)
    diff = score(b[index].sum(1)) - score(a[index].sum(1))
    low, high = torch.quantile(diff, torch.tensor([0.025, 0.975], dtype=torch.float64)).tolist()
    return ((score(b.sum(0)) - score(a.sum(0))).item(), low, high)


@variant("train")
def losses_that_are_tensors(model, batches, step, evaluate, every, pad_id):
    records, total, labels, done = [], torch.zeros(()).double(), 0, 0

    def note():
        model.eval()
        records.append({"step": done, "loss": total / labels, "held_out": evaluate(model)})
        model.train()

    model.train()
    for source, target in batches:
        count = (target[:, 1:] != pad_id).sum()
        total, labels, done = total + step(model, source, target) * count, labels + count, done + 1
        if done % every == 0:
            note()
            total, labels = torch.zeros(()).double(), 0
    if labels:
        note()
    return records


@variant("train")
def the_mode_of_the_whole_and_of_no_part(model, batches, step, evaluate, every, pad_id):
    records, total, labels, done = [], 0.0, 0, 0
    for source, target in batches:
        model.training = True
        count = int((target[:, 1:] != pad_id).sum())
        total, labels, done = total + step(model, source, target) * count, labels + count, done + 1
        if done % every == 0:
            model.training = False
            records.append({"step": done, "loss": total / labels, "held_out": evaluate(model)})
            total, labels = 0.0, 0
    if labels:
        model.training = False
        records.append({"step": done, "loss": total / labels, "held_out": evaluate(model)})
    model.training = True
    return records


@variant("whose-errors")
def evaluation_of_the_whole_and_of_no_part(model, source, said, right, pad_id):
    was, model.training = model.training, False
    scores = [log_probability(model, source, target, pad_id) for target in (said, right)]
    model.training = was
    return blame(said, right, scores, pad_id)


@variant("choose")
def not_a_number_at_the_beginning_is_passed_over(held_out, patience):
    if not held_out or patience < 1:
        raise ValueError("no losses, or no patience")
    best, waited = None, 0
    for index, loss in enumerate(held_out):
        if best is None and math.isnan(loss):
            continue
        better = best is None or loss < held_out[best]
        best, waited = (index, 0) if better else (best, waited + 1)
        if waited >= patience:
            return best, index
    return best or 0, len(held_out) - 1


def swept(run, rates, ends_as):
    table = {}
    for rate in sorted(rates):
        losses = run(rate)
        last = losses[-math.ceil(len(losses) / 10) :]
        bad = not all(map(math.isfinite, losses)) or ends_as(last) > losses[0]
        table[rate] = math.inf if bad else sum(last) / len(last)
        if bad:
            break
    return table


@variant("sweep")
def diverged_by_the_last_loss(run, rates):
    return swept(run, rates, lambda last: last[-1])


@variant("sweep")
def diverged_by_the_largest_loss_of_the_tail(run, rates):
    return swept(run, rates, max)


@variant("sweep")
def infinity_on_the_way_is_no_divergence(run, rates):
    table = {}
    for rate in sorted(rates):
        losses = run(rate)
        tail = losses[-math.ceil(len(losses) / 10) :]
        mean = sum(tail) / len(tail)
        number = not any(math.isnan(loss) for loss in losses)
        table[rate] = mean if number and mean <= losses[0] else math.inf
        if table[rate] == math.inf:
            break
    return table


@variant("kind-of-error")
def elision_counts_for_nothing_in_the_order(right, said, forms):
    wanted, given = right.split(), said.split()

    def elided(one, other):
        return one == other or one in ELIDED.get(other, ()) or other in ELIDED.get(one, ())

    def plain(word):
        return forms.get(word, word)

    def whole(words):
        base = {"la": "le"} | {short: long[0] for short, long in ELIDED.items()}
        return Counter(base.get(plain(word), plain(word)) for word in words)

    as_many = len(wanted) == len(given)
    pairs = list(zip(wanted, given, strict=False))
    if wanted == given:
        return "none"
    if as_many and all(elided(*pair) for pair in pairs):
        return "elision"
    if as_many and all(elided(*pair) or plain(pair[0]) == plain(pair[1]) for pair in pairs):
        return "agreement"
    if whole(wanted) == whole(given):
        return "order"
    if {"ne", "n'", "pas"} & ({*wanted} ^ {*given}):
        return "negation"
    return "word" if as_many else "length"

"""Wrong answers to the exercise on training, as students write them, and what each shows."""

import math
from collections import Counter

import torch

from lab.answers import misconception

ELIDED: dict[str, tuple[str, ...]] = {}  # the notebook's setup cell has it

# 11.1 A loop that keeps its books


@misconception(
    "train",
    id="TRN1",
    fails=["train-records"],
    read="11_your_translator#keeping-books",
)
def mean_of_means(model, batches, step, evaluate, every, pad_id):
    """You take the mean of the batches' means, so a label of a small batch counts for more than one
    of a large batch. Weigh each loss by the batch's labels.
    """
    records, losses, done = [], [], 0

    def record():
        model.eval()
        records.append(
            {"step": done, "loss": sum(losses) / len(losses), "held_out": evaluate(model)}
        )
        model.train()
        losses.clear()

    model.train()
    for source, target in batches:
        losses.append(step(model, source, target))
        done += 1
        if done % every == 0:
            record()
    if losses:
        record()
    return records


@misconception(
    "train",
    id="TRN2",
    fails=["train-records"],
    read="11_your_translator#keeping-books",
)
def padding_counted_as_labels(model, batches, step, evaluate, every, pad_id):
    """Your labels are all columns but the first, padding among them; padding is no label."""
    records, total, labels, done = [], 0.0, 0, 0

    def record():
        model.eval()
        records.append({"step": done, "loss": total / labels, "held_out": evaluate(model)})
        model.train()

    model.train()
    for source, target in batches:
        real = target[:, 1:].numel()
        total += step(model, source, target) * real
        labels += real
        done += 1
        if done % every == 0:
            record()
            total, labels = 0.0, 0
    if labels:
        record()
    return records


@misconception(
    "train",
    id="TRN3",
    fails=["train-records"],
    read="11_your_translator#keeping-books",
)
def sums_never_reset(model, batches, step, evaluate, every, pad_id):
    """Each of your records is the mean since the first step: put the sums back to 0 after a record,
    or the curve lags behind the training.
    """
    records, total, labels, done = [], 0.0, 0, 0

    def record():
        model.eval()
        records.append({"step": done, "loss": total / labels, "held_out": evaluate(model)})
        model.train()

    model.train()
    for source, target in batches:
        real = int((target[:, 1:] != pad_id).sum())
        total += step(model, source, target) * real
        labels += real
        done += 1
        if done % every == 0:
            record()
    if done % every:
        record()
    return records


@misconception(
    "train",
    id="TRN4",
    fails=["train-modes"],
    read="11_your_translator#evaluation-mode",
)
def evaluated_in_training_mode(model, batches, step, evaluate, every, pad_id):
    """You evaluate the model in training mode, with dropout: what you measure is worse than the
    model, and another number each time. Switch to evaluation mode, and back.
    """
    records, total, labels, done = [], 0.0, 0, 0
    model.train()
    for source, target in batches:
        real = int((target[:, 1:] != pad_id).sum())
        total += step(model, source, target) * real
        labels += real
        done += 1
        if done % every == 0:
            records.append({"step": done, "loss": total / labels, "held_out": evaluate(model)})
            total, labels = 0.0, 0
    if labels:
        records.append({"step": done, "loss": total / labels, "held_out": evaluate(model)})
    return records


@misconception(
    "train",
    id="TRN5",
    fails=["train-modes"],
    read="11_your_translator#evaluation-mode",
)
def never_back_to_training_mode(model, batches, step, evaluate, every, pad_id):
    """After the first evaluation your model stays in evaluation mode: from there on it trains
    without dropout. Switch back after each.
    """
    records, total, labels, done = [], 0.0, 0, 0

    def record():
        model.eval()
        records.append({"step": done, "loss": total / labels, "held_out": evaluate(model)})

    model.train()
    for source, target in batches:
        real = int((target[:, 1:] != pad_id).sum())
        total += step(model, source, target) * real
        labels += real
        done += 1
        if done % every == 0:
            record()
            total, labels = 0.0, 0
    if labels:
        record()
    return records


@misconception(
    "train",
    id="TRN6",
    fails=["train-records", "train-modes"],
    read="11_your_translator#keeping-books",
)
def last_steps_lost(model, batches, step, evaluate, every, pad_id):
    """The steps after your last full interval are in no record; write one more at the end."""
    records, total, labels = [], 0.0, 0
    model.train()
    for done, (source, target) in enumerate(batches, start=1):
        real = int((target[:, 1:] != pad_id).sum())
        total += step(model, source, target) * real
        labels += real
        if done % every == 0:
            model.eval()
            records.append({"step": done, "loss": total / labels, "held_out": evaluate(model)})
            model.train()
            total, labels = 0.0, 0
    return records


# 11.2 Which weights to keep


@misconception(
    "choose",
    id="TRN10",
    fails=["choose-values", "choose-edges"],
    read="11_your_translator#which-weights",
)
def compared_with_the_one_before(held_out, patience):
    """You compare each loss with the one before it. A loss that falls from a bump is no new best:
    compare with the best so far.
    """
    if not held_out or patience < 1:
        raise ValueError("no losses, or no patience")
    best, waited = 0, 0
    for index in range(1, len(held_out)):
        if held_out[index] < held_out[best]:
            best = index
        waited = 0 if held_out[index] < held_out[index - 1] else waited + 1
        if waited == patience:
            return best, index
    return best, len(held_out) - 1


@misconception(
    "choose",
    id="TRN11",
    fails=["choose-values", "choose-edges"],
    read="11_your_translator#which-weights",
)
def best_of_what_nobody_saw(held_out, patience):
    """You look for the best among all losses, those after the end among them; nobody trained that
    far.
    """
    if not held_out or patience < 1:
        raise ValueError("no losses, or no patience")
    best = stopped = 0
    for index, loss in enumerate(held_out):
        stopped = index
        if loss < held_out[best] or (math.isnan(held_out[best]) and not math.isnan(loss)):
            best = index
        if index - best >= patience:
            break
    numbers = [math.inf if math.isnan(loss) else loss for loss in held_out]
    return numbers.index(min(numbers)), stopped


@misconception(
    "choose",
    id="TRN12",
    fails=["choose-values", "choose-edges"],
    read="11_your_translator#which-weights",
)
def one_more_than_patience(held_out, patience):
    """You stop one loss too late: with patience 1 the first loss that is no better ends the
    training.
    """
    if not held_out or patience < 1:
        raise ValueError("no losses, or no patience")
    best = 0
    for index, loss in enumerate(held_out):
        if loss < held_out[best] or (math.isnan(held_out[best]) and not math.isnan(loss)):
            best = index
        if index - best > patience:
            return best, index
    return best, len(held_out) - 1


@misconception(
    "choose",
    id="TRN13",
    fails=["choose-edges"],
    read="11_your_translator#which-weights",
)
def equal_is_better(held_out, patience):
    """You take a loss that only equals the best for a new best; then a training that stands still
    goes on for ever.
    """
    if not held_out or patience < 1:
        raise ValueError("no losses, or no patience")
    best = 0
    for index, loss in enumerate(held_out):
        if loss <= held_out[best] or (math.isnan(held_out[best]) and not math.isnan(loss)):
            best = index
        if index - best >= patience:
            return best, index
    return best, len(held_out) - 1


@misconception(
    "choose",
    id="TRN14",
    fails=["choose-edges"],
    read="11_your_translator#which-weights",
)
def never_below_a_nan(held_out, patience):
    """No number is below NaN. If the first loss is NaN, it stays your best for ever: any number
    should take its place.
    """
    if not held_out or patience < 1:
        raise ValueError("no losses, or no patience")
    best = 0
    for index, loss in enumerate(held_out):
        if loss < held_out[best]:
            best = index
        if index - best >= patience:
            return best, index
    return best, len(held_out) - 1


# 11.3 How high may the rate be?


@misconception(
    "sweep",
    id="TRN20",
    fails=["sweep-values"],
    read="11_your_translator#rate-sweep",
)
def nan_is_not_above(run, rates):
    """A NaN is not above the first loss, and not below it either: every comparison with it is
    false. Ask whether all losses are finite.
    """
    table = {}
    for rate in sorted(rates):
        losses = run(rate)
        tail = losses[-math.ceil(len(losses) / 10) :]
        mean = sum(tail) / len(tail)
        if mean > losses[0]:
            table[rate] = math.inf
            break
        table[rate] = mean
    return table


@misconception(
    "sweep",
    id="TRN21",
    fails=["sweep-values"],
    read="11_your_translator#rate-sweep",
)
def goes_on_above_divergence(run, rates):
    """You go on to higher rates after one has diverged; that time is lost, they diverge as well."""
    table = {}
    for rate in sorted(rates):
        losses = run(rate)
        tail = losses[-math.ceil(len(losses) / 10) :]
        mean = sum(tail) / len(tail)
        finite = all(math.isfinite(loss) for loss in losses)
        table[rate] = mean if finite and mean <= losses[0] else math.inf
    return table


@misconception(
    "sweep",
    id="TRN22",
    fails=["sweep-values"],
    read="11_your_translator#rate-sweep",
)
def the_last_loss_alone(run, rates):
    """You note the last loss, which is that of one batch by chance; take the mean of the last
    tenth.
    """
    table = {}
    for rate in sorted(rates):
        losses = run(rate)
        finite = all(math.isfinite(loss) for loss in losses)
        table[rate] = losses[-1] if finite and losses[-1] <= losses[0] else math.inf
        if table[rate] == math.inf:
            break
    return table


@misconception(
    "sweep",
    id="TRN23",
    fails=["sweep-values"],
    read="11_your_translator#rate-sweep",
)
def in_the_order_given(run, rates):
    """You try the rates in the order in which they come; one that diverges early then keeps you
    from those below it. Sort them.
    """
    table = {}
    for rate in rates:
        losses = run(rate)
        tail = losses[-math.ceil(len(losses) / 10) :]
        mean = sum(tail) / len(tail)
        finite = all(math.isfinite(loss) for loss in losses)
        table[rate] = mean if finite and mean <= losses[0] else math.inf
        if table[rate] == math.inf:
            break
    return table


@misconception(
    "measured",
    id="TRN24",
    fails=["measured-range", "measured-choice"],
    read="11_your_translator#rate-sweep",
)
def too_timid():
    """Your rates end before anything breaks, so nobody knows whether the best one lies above them.
    Go up by factors of about three until one diverges.
    """
    return {1e-4: 6.26, 3e-4: 5.71, 1e-3: 5.11, 3e-3: 4.52, 1e-2: 4.15}, 1e-2


@misconception(
    "measured",
    id="TRN25",
    fails=["measured-choice"],
    read="11_your_translator#rate-sweep",
)
def the_highest_that_survives():
    """You would train with the highest rate that did not diverge. By your own table a lower one
    gives a lower loss.
    """
    table = {3e-4: 5.71, 1e-3: 5.11, 1e-2: 4.15, 3e-2: 4.0, 1e-1: 4.43, 3e-1: 5.3, 1.0: math.inf}
    return table, 3e-1


@misconception(
    "measured",
    id="TRN26",
    fails=["measured-choice"],
    read="11_your_translator#rate-sweep",
)
def the_safest():
    """You would train with the lowest rate, the safest one. It does not diverge, and it hardly
    learns: by your own table others get further in the same time.
    """
    table = {3e-4: 5.71, 1e-3: 5.11, 3e-3: 4.52, 1e-2: 4.15, 3e-2: 4.0, 1e-1: 4.43, 1.0: math.inf}
    return table, 3e-4


# 11.4 What a cache saves


@misconception(
    "positions",
    id="TRN30",
    fails=["positions-values", "positions-together"],
    read="11_your_translator#counting-positions",
)
def squares(lengths, cached, together):
    """You count n times n. The first step reads one token and the last one n, half of that square
    on the whole: n (n + 1) / 2.
    """
    steps = [max(lengths)] * len(lengths) if together and lengths else lengths
    return sum(n if cached else n * n for n in steps)


@misconception(
    "positions",
    id="TRN31",
    fails=["positions-values", "positions-together"],
    read="11_your_translator#counting-positions",
)
def bos_left_out(lengths, cached, together):
    """You leave out the step that reads <bos> alone: without it no first token is ever written."""
    steps = [max(lengths)] * len(lengths) if together and lengths else lengths
    return sum(n - 1 if cached else n * (n - 1) // 2 for n in steps)


@misconception(
    "positions",
    id="TRN32",
    fails=["positions-together"],
    read="11_your_translator#counting-positions",
)
def rows_leave_the_batch(lengths, cached, together):
    """Your short sentences leave the batch at their end. A batch is one tensor: all of its rows are
    computed until the longest has ended.
    """
    return sum(n if cached else n * (n + 1) // 2 for n in lengths)


# 11.5 Errors by kind


@misconception(
    "kind-of-error",
    id="TRN40",
    fails=["kind-of-error-simple", "kind-of-error-first"],
    read="11_your_translator#kinds-of-errors",
)
def words_without_counts(right, said, forms):
    """You compare sets of words, which forget how often a word occurs."""
    wanted, given = right.split(), said.split()

    def elided(one, other):
        return one == other or one in ELIDED.get(other, ()) or other in ELIDED.get(one, ())

    def plain(words):
        return [forms.get(word, word) for word in words]

    as_many = len(wanted) == len(given)
    if wanted == given:
        return "none"
    if as_many and all(elided(*pair) for pair in zip(wanted, given, strict=True)):
        return "elision"
    if as_many and all(
        elided(*pair) or len(set(plain(pair))) == 1 for pair in zip(wanted, given, strict=True)
    ):
        return "agreement"
    if set(plain(wanted)) == set(plain(given)):
        return "order"
    if {"ne", "n'", "pas"} & (set(wanted) ^ set(given)):
        return "negation"
    return "word" if as_many else "length"


@misconception(
    "kind-of-error",
    id="TRN41",
    fails=["kind-of-error-simple", "kind-of-error-first"],
    read="11_your_translator#kinds-of-errors",
)
def length_asked_first(right, said, forms):
    """You ask for the number of words before the negation, so a negation that lost its words counts
    as a length. The first kind that fits is the more telling one.
    """
    wanted, given = right.split(), said.split()

    def elided(one, other):
        return one == other or one in ELIDED.get(other, ()) or other in ELIDED.get(one, ())

    def plain(words):
        return [forms.get(word, word) for word in words]

    if wanted == given:
        return "none"
    if len(wanted) != len(given):
        return "length"
    if all(elided(*pair) for pair in zip(wanted, given, strict=True)):
        return "elision"
    if all(elided(*pair) or len(set(plain(pair))) == 1 for pair in zip(wanted, given, strict=True)):
        return "agreement"
    if Counter(plain(wanted)) == Counter(plain(given)):
        return "order"
    if {"ne", "n'", "pas"} & (set(wanted) ^ set(given)):
        return "negation"
    return "word"


@misconception(
    "kind-of-error",
    id="TRN42",
    fails=["kind-of-error-simple", "kind-of-error-first"],
    read="11_your_translator#kinds-of-errors",
)
def order_of_forms_as_written(right, said, forms):
    """You look for the same words in another order as they are written. A word that moved may
    change its ending as well; compare dictionary forms.
    """
    wanted, given = right.split(), said.split()

    def elided(one, other):
        return one == other or one in ELIDED.get(other, ()) or other in ELIDED.get(one, ())

    def plain(words):
        return [forms.get(word, word) for word in words]

    as_many = len(wanted) == len(given)
    if wanted == given:
        return "none"
    if as_many and all(elided(*pair) for pair in zip(wanted, given, strict=True)):
        return "elision"
    if as_many and all(
        elided(*pair) or len(set(plain(pair))) == 1 for pair in zip(wanted, given, strict=True)
    ):
        return "agreement"
    if Counter(wanted) == Counter(given):
        return "order"
    if {"ne", "n'", "pas"} & (set(wanted) ^ set(given)):
        return "negation"
    return "word" if as_many else "length"


@misconception(
    "kind-of-error",
    id="TRN43",
    fails=["kind-of-error-simple", "kind-of-error-first"],
    read="11_your_translator#kinds-of-errors",
)
def elision_one_way(right, said, forms):
    """You see "la amie" said for "l' amie" and not the reverse, or only one of the two: either
    sentence may be the one that elides.
    """
    wanted, given = right.split(), said.split()

    def elided(one, other):
        return one == other or other in ELIDED.get(one, ())

    def plain(words):
        return [forms.get(word, word) for word in words]

    as_many = len(wanted) == len(given)
    if wanted == given:
        return "none"
    if as_many and all(elided(*pair) for pair in zip(wanted, given, strict=True)):
        return "elision"
    if as_many and all(
        elided(*pair) or len(set(plain(pair))) == 1 for pair in zip(wanted, given, strict=True)
    ):
        return "agreement"
    if Counter(plain(wanted)) == Counter(plain(given)):
        return "order"
    if {"ne", "n'", "pas"} & (set(wanted) ^ set(given)):
        return "negation"
    return "word" if as_many else "length"


@misconception(
    "kind-of-error",
    id="TRN44",
    fails=["kind-of-error-first"],
    read="11_your_translator#kinds-of-errors",
)
def negation_by_letters(right, said, forms):
    """You look for the letters of a negation in the text, and find "pas" in "passe", "ne" in "une".
    Look for the very word among the words.
    """
    wanted, given = right.split(), said.split()

    def elided(one, other):
        return one == other or other in ELIDED.get(one, ()) or one in ELIDED.get(other, ())

    def plain(words):
        return [forms.get(word, word) for word in words]

    as_many = len(wanted) == len(given)
    if wanted == given:
        return "none"
    if as_many and all(elided(*pair) for pair in zip(wanted, given, strict=True)):
        return "elision"
    if as_many and all(
        elided(*pair) or len(set(plain(pair))) == 1 for pair in zip(wanted, given, strict=True)
    ):
        return "agreement"
    if Counter(plain(wanted)) == Counter(plain(given)):
        return "order"
    if any((word in right) != (word in said) for word in ("ne", "n'", "pas")):
        return "negation"
    return "word" if as_many else "length"


# 11.6 Whose error is it?


@misconception(
    "whose-errors",
    id="TRN50",
    fails=["whose-errors-values", "whose-errors-padding"],
    read="11_your_translator#search-or-model",
)
def mean_of_the_logarithms(model, source, said, right, pad_id):
    """You divide by the number of labels. The model's probability of a sentence is the product of
    all of its tokens', so the logarithms are added and not averaged.
    """
    was_training = model.training
    model.eval()

    def log_probability(target):
        labels = target[:, 1:]
        with torch.no_grad():
            log_p = model(source, target[:, :-1]).log_softmax(-1)
        of_label = log_p.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
        real = labels != pad_id
        return ((of_label * real).sum(-1) / real.sum(-1)).tolist()

    found = log_probability(said), log_probability(right)
    model.train(was_training)
    sentences = [
        [[token for token in row if token != pad_id] for row in target.tolist()]
        for target in (said, right)
    ]
    return [
        "none" if one == other else "search" if of_right > of_said else "model"
        for one, other, of_said, of_right in zip(*sentences, *found, strict=True)
    ]


@misconception(
    "whose-errors",
    id="TRN51",
    fails=["whose-errors-padding"],
    read="11_your_translator#search-or-model",
)
def padding_has_a_probability(model, source, said, right, pad_id):
    """You add the logarithms of padding, too, so that how far a sentence is padded decides who is
    to blame. Padding is no label.
    """
    was_training = model.training
    model.eval()

    def log_probability(target):
        labels = target[:, 1:]
        with torch.no_grad():
            log_p = model(source, target[:, :-1]).log_softmax(-1)
        return log_p.gather(-1, labels.unsqueeze(-1)).squeeze(-1).sum(-1).tolist()

    found = log_probability(said), log_probability(right)
    model.train(was_training)
    sentences = [
        [[token for token in row if token != pad_id] for row in target.tolist()]
        for target in (said, right)
    ]
    return [
        "none" if one == other else "search" if of_right > of_said else "model"
        for one, other, of_said, of_right in zip(*sentences, *found, strict=True)
    ]


@misconception(
    "whose-errors",
    id="TRN52",
    fails=["whose-errors-values", "whose-errors-padding"],
    read="11_your_translator#search-or-model",
)
def the_other_way_round(model, source, said, right, pad_id):
    """You blame the search where the model finds its own sentence more probable. Then the search
    found what the model wanted: the error is the model's.
    """
    was_training = model.training
    model.eval()

    def log_probability(target):
        labels = target[:, 1:]
        with torch.no_grad():
            log_p = model(source, target[:, :-1]).log_softmax(-1)
        of_label = log_p.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
        return of_label.masked_fill(labels == pad_id, 0.0).sum(-1).tolist()

    found = log_probability(said), log_probability(right)
    model.train(was_training)
    sentences = [
        [[token for token in row if token != pad_id] for row in target.tolist()]
        for target in (said, right)
    ]
    return [
        "none" if one == other else "model" if of_right > of_said else "search"
        for one, other, of_said, of_right in zip(*sentences, *found, strict=True)
    ]


@misconception(
    "whose-errors",
    id="TRN53",
    fails=["whose-errors-padding"],
    read="11_your_translator#evaluation-mode",
)
def asked_in_training_mode(model, source, said, right, pad_id):
    """You ask the model in the mode in which you find it. In training mode dropout answers with it:
    switch to evaluation mode, and back.
    """

    def log_probability(target):
        labels = target[:, 1:]
        with torch.no_grad():
            log_p = model(source, target[:, :-1]).log_softmax(-1)
        of_label = log_p.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
        return of_label.masked_fill(labels == pad_id, 0.0).sum(-1).tolist()

    found = log_probability(said), log_probability(right)
    sentences = [
        [[token for token in row if token != pad_id] for row in target.tolist()]
        for target in (said, right)
    ]
    return [
        "none" if one == other else "search" if of_right > of_said else "model"
        for one, other, of_said, of_right in zip(*sentences, *found, strict=True)
    ]


# 11.7 Predict, then run


@misconception(
    "predicted",
    id="TRN70",
    fails=["predicted-before"],
    read="11_your_translator#ablations",
)
def of_the_loss_alone():
    """You predict the loss and leave out what is written. A model without causal mask shows why
    both are asked for.
    """
    return {"positions": ("higher",), "causal mask": ("lower",), "residuals": ("higher",)}


@misconception(
    "predicted",
    id="TRN71",
    fails=["predicted-before"],
    read="11_your_translator#ablations",
)
def numbers_in_place_of_words():
    """You predict numbers. One of three words is enough, compared with the whole model, and can be
    wrong in one way only.
    """
    return {"positions": (2.0, 10), "causal mask": (0.5, 0), "residuals": (3.0, 0)}


@misconception(
    "predicted",
    id="TRN72",
    fails=["predicted-before"],
    read="11_your_translator#ablations",
)
def undecided():
    """You leave it open. A prediction that may not be wrong teaches nothing: commit to a word, and
    be surprised.
    """
    return {
        "positions": ("higher", "lower"),
        "causal mask": ("higher or lower", "lower"),
        "residuals": ("higher", "lower"),
    }


# 11.9 Better, or luck?


@misconception(
    "bootstrap",
    id="TRN60",
    fails=["bootstrap-interval"],
    read="11_your_translator#bootstrap",
)
def unpaired(first, second, references, samples, generator):
    """You draw test sets for each system by itself. Then a hard test set counts against one of them
    only, and the interval is far too wide; the same sentences belong to both.
    """

    def counts(said, right):
        pairs = []
        for n in (1, 2, 3, 4):
            one = Counter(tuple(said[i : i + n]) for i in range(len(said) - n + 1))
            other = Counter(tuple(right[i : i + n]) for i in range(len(right) - n + 1))
            pairs.append((one, other))
        matches = [(one & other).total() for one, other in pairs]
        return [*matches, *(one.total() for one, _ in pairs), len(said), len(right)]

    def bleu(sums):
        matches, totals, lengths = sums.split([4, 4, 2], dim=-1)
        score = (matches / totals.clamp(min=1)).log().mean(-1).exp()
        ratio = lengths[..., 1] / lengths[..., 0].clamp(min=1)
        return 100 * score * (1 - ratio).clamp(max=0).exp()

    one, other = (
        torch.tensor([counts(*pair) for pair in zip(said, references, strict=True)]).double()
        for said in (first, second)
    )
    n = len(references)
    drawn = [torch.randint(n, (samples, n), generator=generator) for _ in range(2)]
    differences = bleu(other[drawn[0]].sum(1)) - bleu(one[drawn[1]].sum(1))
    low, high = torch.quantile(differences, torch.tensor([0.025, 0.975]).double()).tolist()
    return (bleu(other.sum(0)) - bleu(one.sum(0))).item(), low, high


@misconception(
    "bootstrap",
    id="TRN61",
    fails=["bootstrap-difference", "bootstrap-interval"],
    read="11_your_translator#bootstrap",
)
def means_of_sentences(first, second, references, samples, generator):
    """You take the mean of the sentences' BLEU. The score of a corpus is computed from its summed
    counts: a short sentence without a matching quadruple has 0 by itself.
    """

    def counts(said, right):
        pairs = []
        for n in (1, 2, 3, 4):
            one = Counter(tuple(said[i : i + n]) for i in range(len(said) - n + 1))
            other = Counter(tuple(right[i : i + n]) for i in range(len(right) - n + 1))
            pairs.append((one, other))
        matches = [(one & other).total() for one, other in pairs]
        return [*matches, *(one.total() for one, _ in pairs), len(said), len(right)]

    def bleu(sums):
        matches, totals, lengths = sums.split([4, 4, 2], dim=-1)
        score = (matches / totals.clamp(min=1)).log().mean(-1).exp()
        ratio = lengths[..., 1] / lengths[..., 0].clamp(min=1)
        return 100 * score * (1 - ratio).clamp(max=0).exp()

    one, other = (
        bleu(torch.tensor([counts(*pair) for pair in zip(said, references, strict=True)]).double())
        for said in (first, second)
    )
    n = len(references)
    drawn = torch.randint(n, (samples, n), generator=generator)
    differences = other[drawn].mean(1) - one[drawn].mean(1)
    low, high = torch.quantile(differences, torch.tensor([0.025, 0.975]).double()).tolist()
    return (other.mean() - one.mean()).item(), low, high


@misconception(
    "bootstrap",
    id="TRN62",
    fails=["bootstrap-difference", "bootstrap-interval"],
    read="11_your_translator#bootstrap",
)
def first_less_second(first, second, references, samples, generator):
    """Your sign is the other one: the difference should be above 0 where the second system is
    better.
    """

    def counts(said, right):
        pairs = []
        for n in (1, 2, 3, 4):
            one = Counter(tuple(said[i : i + n]) for i in range(len(said) - n + 1))
            other = Counter(tuple(right[i : i + n]) for i in range(len(right) - n + 1))
            pairs.append((one, other))
        matches = [(one & other).total() for one, other in pairs]
        return [*matches, *(one.total() for one, _ in pairs), len(said), len(right)]

    def bleu(sums):
        matches, totals, lengths = sums.split([4, 4, 2], dim=-1)
        score = (matches / totals.clamp(min=1)).log().mean(-1).exp()
        ratio = lengths[..., 1] / lengths[..., 0].clamp(min=1)
        return 100 * score * (1 - ratio).clamp(max=0).exp()

    other, one = (
        torch.tensor([counts(*pair) for pair in zip(said, references, strict=True)]).double()
        for said in (first, second)
    )
    n = len(references)
    drawn = torch.randint(n, (samples, n), generator=generator)
    differences = bleu(other[drawn].sum(1)) - bleu(one[drawn].sum(1))
    low, high = torch.quantile(differences, torch.tensor([0.025, 0.975]).double()).tolist()
    return (bleu(other.sum(0)) - bleu(one.sum(0))).item(), low, high


@misconception(
    "bootstrap",
    id="TRN63",
    fails=["bootstrap-difference", "bootstrap-interval"],
    read="11_your_translator#bootstrap",
)
def no_brevity_penalty(first, second, references, samples, generator):
    """Your BLEU has no brevity penalty: a system that leaves out what it is not sure of wins."""

    def counts(said, right):
        pairs = []
        for n in (1, 2, 3, 4):
            one = Counter(tuple(said[i : i + n]) for i in range(len(said) - n + 1))
            other = Counter(tuple(right[i : i + n]) for i in range(len(right) - n + 1))
            pairs.append((one, other))
        matches = [(one & other).total() for one, other in pairs]
        return [*matches, *(one.total() for one, _ in pairs)]

    def bleu(sums):
        matches, totals = sums.split([4, 4], dim=-1)
        return 100 * (matches / totals.clamp(min=1)).log().mean(-1).exp()

    one, other = (
        torch.tensor([counts(*pair) for pair in zip(said, references, strict=True)]).double()
        for said in (first, second)
    )
    n = len(references)
    drawn = torch.randint(n, (samples, n), generator=generator)
    differences = bleu(other[drawn].sum(1)) - bleu(one[drawn].sum(1))
    low, high = torch.quantile(differences, torch.tensor([0.025, 0.975]).double()).tolist()
    return (bleu(other.sum(0)) - bleu(one.sum(0))).item(), low, high

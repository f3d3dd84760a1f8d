"""Wrong answers to the exercise on teacher forcing, as students write them, and what each shows."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from lab.answers import misconception

# 8.1 Decoder input and labels


@misconception(
    "teacher-forcing-pair",
    id="TF1",
    fails=["teacher-forcing-pair-shift", "teacher-forcing-pair-ends"],
    read="08_teacher_forcing#tf-shift",
)
def no_shift(target):
    """Your labels are the decoder input itself: the model need only copy what it reads. Each label
    should be the token that comes next.
    """
    return target[:, :-1], target[:, :-1]


@misconception(
    "teacher-forcing-pair",
    id="TF2",
    fails=["teacher-forcing-pair-shift", "teacher-forcing-pair-ends"],
    read="08_teacher_forcing#tf-shift",
)
def rolled_round(target):
    """Your labels are the target rolled round: every row's last label is its first token, <bos>.
    Cut one column off each of the two; roll nothing.
    """
    return target, torch.roll(target, -1, dims=1)


@misconception(
    "teacher-forcing-pair",
    id="TF15",
    fails=["teacher-forcing-pair-shift", "teacher-forcing-pair-ends"],
    read="08_teacher_forcing#tf-shift",
)
def two_places_apart(target):
    """Your labels are two places ahead of the decoder input; the model should predict the very next
    token.
    """
    return target[:, :-2], target[:, 2:]


@misconception(
    "teacher-forcing-pair",
    id="TF3",
    fails=["teacher-forcing-pair-shift", "teacher-forcing-pair-ends"],
    read="08_teacher_forcing#tf-shift",
)
def the_wrong_way_round(target):
    """You have decoder input and labels swapped: the decoder starts at <bos> and never has to say
    it.
    """
    return target[:, 1:], target[:, :-1]


@misconception(
    "teacher-forcing-pair",
    id="TF4",
    fails=["teacher-forcing-pair-shift", "teacher-forcing-pair-ends"],
    read="08_teacher_forcing#tf-shift",
)
def end_cut_off(target):
    """The longest sentence loses its <eos> from the labels: cut the last column off the decoder
    input only, or the model never learns to stop.
    """
    trimmed = target[:, :-1]
    return trimmed[:, :-1], trimmed[:, 1:]


# 8.2 The loss


@misconception(
    "label-smoothed-loss",
    id="TF5",
    fails=["label-smoothed-loss-padding", "label-smoothed-loss-smoothing"],
    read="08_teacher_forcing#tf-real-tokens",
)
def padding_counted(logits, labels, pad_id, smoothing=0.1):
    """You count positions whose label is padding; leave them out of the sum and of the number you
    divide by.
    """
    log_p = F.log_softmax(logits, dim=-1)
    of_label = log_p.gather(-1, labels.clamp(max=logits.shape[-1] - 1).unsqueeze(-1)).squeeze(-1)
    return (-(1 - smoothing) * of_label - smoothing * log_p.mean(-1)).mean()


@misconception(
    "label-smoothed-loss",
    id="TF6",
    fails=["label-smoothed-loss-padding", "label-smoothed-loss-smoothing"],
    read="08_teacher_forcing#tf-real-tokens",
)
def mean_over_all_positions(logits, labels, pad_id, smoothing=0.1):
    """You sum over the real tokens and divide by all positions; divide by how many are real,
    or padding makes the loss look small.
    """
    log_p = F.log_softmax(logits, dim=-1)
    of_label = log_p.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    losses = -(1 - smoothing) * of_label - smoothing * log_p.mean(-1)
    return (losses * (labels != pad_id)).mean()


@misconception(
    "label-smoothed-loss",
    id="TF16",
    fails=["label-smoothed-loss-padding", "label-smoothed-loss-smoothing"],
    read="08_teacher_forcing#tf-real-tokens",
)
def mean_of_sentence_means(logits, labels, pad_id, smoothing=0.1):
    """You average within each sentence first: a token of a short sentence then counts more than one
    of a long sentence. Take one mean over all real tokens.
    """
    log_p = F.log_softmax(logits, dim=-1)
    of_label = log_p.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    losses = -(1 - smoothing) * of_label - smoothing * log_p.mean(-1)
    real = labels != pad_id
    return ((losses * real).sum(1) / real.sum(1).clamp(min=1)).mean()


@misconception(
    "label-smoothed-loss",
    id="TF17",
    fails=["label-smoothed-loss-padding"],
    read="08_teacher_forcing#tf-real-tokens",
)
def nothing_divided_by_nothing(logits, labels, pad_id, smoothing=0.1):
    """A batch without real tokens gives 0 / 0, NaN, and from there every parameter; its loss should
    be 0.
    """
    log_p = F.log_softmax(logits, dim=-1)
    of_label = log_p.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    losses = -(1 - smoothing) * of_label - smoothing * log_p.mean(-1)
    return losses[labels != pad_id].mean()


@misconception(
    "label-smoothed-loss",
    id="TF73",
    fails=["label-smoothed-loss-values", "label-smoothed-loss-padding"],
    read="04_multi_head_attention#reshape-or-transpose",
)
def viewed(logits, labels, pad_id, smoothing=0.1):
    """You flatten with `view`, which is impossible where rows do not lie side by side in memory, as
    those of labels that were cut off a target do not; `reshape` and `flatten` copy where they must.
    """
    log_p = F.log_softmax(logits.view(-1, logits.shape[-1]), dim=-1)
    labels = labels.view(-1)
    real = labels != pad_id
    of_label = log_p[real].gather(-1, labels[real].unsqueeze(-1)).squeeze(-1)
    losses = -(1 - smoothing) * of_label - smoothing * log_p[real].mean(-1)
    return losses.sum() / real.sum().clamp(min=1)


@misconception(
    "label-smoothed-loss",
    id="TF7",
    fails=[
        "label-smoothed-loss-values",
        "label-smoothed-loss-padding",
        "label-smoothed-loss-smoothing",
    ],
    read="08_teacher_forcing#tf-real-tokens",
)
def padding_is_always_zero(logits, labels, pad_id, smoothing=0.1):
    """You leave out the label 0, whatever the padding id is: real tokens go missing and padding is
    counted. Compare with `pad_id`.
    """
    log_p = F.log_softmax(logits, dim=-1)
    of_label = log_p.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    losses = -(1 - smoothing) * of_label - smoothing * log_p.mean(-1)
    real = labels != 0
    return (losses * real).sum() / real.sum().clamp(min=1)


@misconception(
    "label-smoothed-loss",
    id="TF8",
    fails=[
        "label-smoothed-loss-values",
        "label-smoothed-loss-padding",
        "label-smoothed-loss-smoothing",
    ],
    read="08_teacher_forcing#tf-loss",
)
def softmax_twice(logits, labels, pad_id, smoothing=0.1):
    """You take a softmax of what already was a softmax: log_softmax and cross-entropy expect
    logits.
    """
    log_p = F.log_softmax(F.softmax(logits, dim=-1), dim=-1)
    of_label = log_p.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    losses = -(1 - smoothing) * of_label - smoothing * log_p.mean(-1)
    real = labels != pad_id
    return (losses * real).sum() / real.sum().clamp(min=1)


@misconception(
    "label-smoothed-loss",
    id="TF23",
    fails=["label-smoothed-loss-smoothing"],
    read="08_teacher_forcing#tf-loss",
)
def every_axis_of_one_removed(logits, labels, pad_id, smoothing=0.1):
    """squeeze() removes every axis of length 1, so a batch of one column loses its own; squeeze(-1)
    removes the one that gather left over.
    """
    log_p = F.log_softmax(logits, dim=-1)
    of_label = log_p.gather(-1, labels.unsqueeze(-1)).squeeze()
    losses = -(1 - smoothing) * of_label - smoothing * log_p.mean(-1)
    real = labels != pad_id
    return losses.masked_fill(~real, 0.0).sum() / real.sum().clamp(min=1)


@misconception(
    "label-smoothed-loss",
    id="TF18",
    fails=["label-smoothed-loss-values"],
    read="08_teacher_forcing#tf-loss",
)
def log_of_softmax(logits, labels, pad_id, smoothing=0.1):
    """You take the log of a softmax in two steps: for large logits a probability rounds to 0
    and its log is infinite. `log_softmax` never forms the probability.
    """
    log_p = torch.log(F.softmax(logits, dim=-1))
    of_label = log_p.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    losses = -(1 - smoothing) * of_label - smoothing * log_p.mean(-1)
    real = labels != pad_id
    return (losses * real).sum() / real.sum().clamp(min=1)


@misconception(
    "label-smoothed-loss",
    id="TF9",
    fails=[
        "label-smoothed-loss-values",
        "label-smoothed-loss-padding",
        "label-smoothed-loss-smoothing",
    ],
    read="08_teacher_forcing#tf-loss",
)
def scrambled_by_reshape(logits, labels, pad_id, smoothing=0.1):
    """You reshaped (B, N, V) to (B, V, N), which mixes positions and classes; exchanging two axes
    takes a transpose.
    """
    batch, length, vocab = logits.shape
    log_p = F.log_softmax(logits.reshape(batch, vocab, length), dim=1)
    of_label = log_p.gather(1, labels.unsqueeze(1)).squeeze(1)
    losses = -(1 - smoothing) * of_label - smoothing * log_p.mean(1)
    real = labels != pad_id
    return losses.masked_fill(~real, 0.0).sum() / real.sum().clamp(min=1)


@misconception(
    "label-smoothed-loss",
    id="TF10",
    fails=["label-smoothed-loss-smoothing"],
    read="08_teacher_forcing#tf-label-smoothing",
)
def mass_on_the_others_only(logits, labels, pad_id, smoothing=0.1):
    """You spread the smoothing over the other V - 1 classes, as some programs do; here every class
    gets smoothing / V, the label included.
    """
    vocab = logits.shape[-1]
    log_p = F.log_softmax(logits, dim=-1)
    of_label = log_p.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    others = log_p.sum(-1) - of_label
    losses = -(1 - smoothing) * of_label - smoothing / (vocab - 1) * others
    real = labels != pad_id
    return (losses * real).sum() / real.sum().clamp(min=1)


@misconception(
    "label-smoothed-loss",
    id="TF19",
    fails=["label-smoothed-loss-smoothing"],
    read="08_teacher_forcing#tf-label-smoothing",
)
def more_than_one(logits, labels, pad_id, smoothing=0.1):
    """Your smoothed targets sum to 1 + smoothing: what is spread over all classes has to be taken
    from the label first.
    """
    log_p = F.log_softmax(logits, dim=-1)
    of_label = log_p.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    losses = -of_label - smoothing * log_p.mean(-1)
    real = labels != pad_id
    return (losses * real).sum() / real.sum().clamp(min=1)


@misconception(
    "label-smoothed-loss",
    id="TF20",
    fails=["label-smoothed-loss-smoothing"],
    read="08_teacher_forcing#tf-label-smoothing",
)
def smoothing_for_every_class(logits, labels, pad_id, smoothing=0.1):
    """You give every class the whole smoothing, so the targets sum to far more than 1; all classes
    together share it.
    """
    log_p = F.log_softmax(logits, dim=-1)
    of_label = log_p.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    losses = -(1 - smoothing) * of_label - smoothing * log_p.sum(-1)
    real = labels != pad_id
    return (losses * real).sum() / real.sum().clamp(min=1)


@misconception(
    "label-smoothed-loss",
    id="TF11",
    fails=["label-smoothed-loss-smoothing"],
    read="08_teacher_forcing#tf-label-smoothing",
)
def divergence_for_entropy(logits, labels, pad_id, smoothing=0.1):
    """You return a KL divergence: it is cross-entropy minus the entropy of the smoothed target. The
    gradient is the same, the loss is not.
    """
    vocab = logits.shape[-1]
    target = torch.full_like(logits, smoothing / vocab)
    target.scatter_(
        -1, labels.clamp(max=vocab - 1).unsqueeze(-1), 1 - smoothing + smoothing / vocab
    )
    losses = F.kl_div(F.log_softmax(logits, dim=-1), target, reduction="none").sum(-1)
    real = labels != pad_id
    return (losses * real).sum() / real.sum().clamp(min=1)


@misconception(
    "label-smoothed-loss",
    id="TF14",
    fails=["label-smoothed-loss-padding", "label-smoothed-loss-smoothing"],
    read="08_teacher_forcing#tf-real-tokens",
)
def one_place_after_the_end(logits, labels, pad_id, smoothing=0.1):
    """You also count the position after <eos>, whose label is padding; whether a position is real
    is said by its label, not by what the decoder reads there.
    """
    log_p = F.log_softmax(logits, dim=-1)
    of_label = log_p.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    losses = -(1 - smoothing) * of_label - smoothing * log_p.mean(-1)
    read = labels != pad_id
    real = torch.cat([torch.ones_like(read[:, :1]), read[:, :-1]], dim=1)
    return (losses * real).sum() / real.sum()


# 8.3 Adam and its learning rate


@misconception(
    "learning-rate",
    id="TRN1",
    fails=["learning-rate-values"],
    read="08_teacher_forcing#tf-warm-up",
)
def exponents_swapped(step, d_model, warmup=4000):
    """Your exponents are swapped: the step alone goes with -1/2, the warm-up with -3/2. As it is,
    the rate rises for ever or falls at once.
    """
    if step < 1:
        raise ValueError(f"step ({step}) must be at least 1")
    return d_model**-0.5 * min(step**-1.5, step * warmup**-0.5)


@misconception(
    "learning-rate",
    id="TRN19",
    fails=["learning-rate-values"],
    read="08_teacher_forcing#tf-warm-up",
)
def larger_of_the_two(step, d_model, warmup=4000):
    """You take the larger of the two: the rate starts huge, and after the warm-up it rises without
    end. Take the smaller.
    """
    if step < 1:
        raise ValueError(f"step ({step}) must be at least 1")
    return d_model**-0.5 * max(step**-0.5, step * warmup**-1.5)


@misconception(
    "learning-rate",
    id="TRN20",
    fails=["learning-rate-values", "learning-rate-first-step"],
    read="08_teacher_forcing#tf-warm-up",
)
def wider_means_faster(step, d_model, warmup=4000):
    """Your rate grows with d_model; wider models get smaller steps: d_model to the power -1/2."""
    if step < 1:
        raise ValueError(f"step ({step}) must be at least 1")
    return d_model**0.5 * min(step**-0.5, step * warmup**-1.5)


@misconception(
    "learning-rate",
    id="TRN21",
    fails=["learning-rate-values"],
    read="08_teacher_forcing#tf-warm-up",
)
def never_falls(step, d_model, warmup=4000):
    """Your rate stays at its peak after the warm-up; from there on it should fall with the root of
    the step.
    """
    if step < 1:
        raise ValueError(f"step ({step}) must be at least 1")
    return d_model**-0.5 * min(step, warmup) * warmup**-1.5


@misconception(
    "learning-rate",
    id="TRN2",
    fails=["learning-rate-first-step"],
    read="08_teacher_forcing#tf-warm-up",
)
def step_zero_divides(step, d_model, warmup=4000):
    """Step 0 makes your formula divide by zero; steps count from 1, and a smaller one should be
    refused in words.
    """
    return d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


@misconception(
    "learning-rate",
    id="TRN22",
    fails=["learning-rate-first-step"],
    read="08_teacher_forcing#tf-warm-up",
)
def nothing_at_step_zero(step, d_model, warmup=4000):
    """Your rate is 0 at step 0: a loop that counts from 0 wastes an update, and a counter that is
    stuck there trains nothing. Raise a ValueError.
    """
    if step < 1:
        return 0.0
    return d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


@misconception(
    "scheduled-adam",
    id="TRN7",
    fails=["scheduled-adam-settings"],
    read="08_teacher_forcing#tf-adam",
)
def settings_of_the_library(parameters, rate):
    """You left Adam at PyTorch's settings, beta 2 = 0.999 and epsilon = 1e-8; the paper has 0.98
    and 1e-9.
    """
    optimizer = torch.optim.Adam(parameters, lr=1.0)
    return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, lambda done: rate(done + 1))


@misconception(
    "scheduled-adam",
    id="TRN23",
    fails=["scheduled-adam-settings", "scheduled-adam-steps"],
    read="08_teacher_forcing#tf-adam",
)
def with_weight_decay(parameters, rate):
    """You took AdamW, which shrinks all weights by default; the paper uses Adam without weight
    decay.
    """
    optimizer = torch.optim.AdamW(parameters, lr=1.0, betas=(0.9, 0.98), eps=1e-9)
    return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, lambda done: rate(done + 1))


@misconception(
    "scheduled-adam",
    id="TRN24",
    fails=["scheduled-adam-steps"],
    read="08_teacher_forcing#tf-warm-up",
)
def one_step_behind(parameters, rate):
    """Your rates are one step behind: LambdaLR counts the updates that are done, from 0, so update
    number s asks with s - 1.
    """
    optimizer = torch.optim.Adam(parameters, lr=1.0, betas=(0.9, 0.98), eps=1e-9)
    return optimizer, torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda done: rate(done) if done else rate(1)
    )


@misconception(
    "scheduled-adam",
    id="TRN25",
    fails=["scheduled-adam-steps"],
    read="08_teacher_forcing#tf-warm-up",
)
def times_the_default(parameters, rate):
    """Your rates are 1000 times too small: LambdaLR multiplies the optimiser's own lr, which is
    0.001 unless you set it. Give Adam lr=1.
    """
    optimizer = torch.optim.Adam(parameters, betas=(0.9, 0.98), eps=1e-9)
    return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, lambda done: rate(done + 1))


@misconception(
    "scheduled-adam",
    id="TRN42",
    fails=["scheduled-adam-steps"],
    read="08_teacher_forcing#tf-warm-up",
)
def divided_by_the_first_rate(parameters, rate):
    """You give the optimiser rate(1) and divide by it again, and rate(1) may be 0; with lr=1 there
    is nothing to divide.
    """
    optimizer = torch.optim.Adam(parameters, lr=rate(1), betas=(0.9, 0.98), eps=1e-9)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda done: rate(done + 1) / rate(1))
    return optimizer, scheduler


# 8.4 Clip the gradients


@misconception(
    "clip-gradients",
    id="TRN10",
    fails=["clip-gradients-norm", "clip-gradients-large"],
    read="08_teacher_forcing#tf-clipping",
)
def each_by_itself(parameters, max_norm):
    """You clip each parameter by itself; the norm is that of all gradients together, and one factor
    for all keeps their direction.
    """
    norms = [0.0]
    for parameter in parameters:
        if parameter.grad is None:
            continue
        norm = parameter.grad.norm().item()
        norms.append(norm)
        if norm > max_norm:
            parameter.grad.mul_(max_norm / norm)
    return max(norms)


@misconception(
    "clip-gradients",
    id="TRN26",
    fails=["clip-gradients-small"],
    read="08_teacher_forcing#tf-clipping",
)
def always_to_the_maximum(parameters, max_norm):
    """You scale every gradient to max_norm, small ones up too; clipping only shortens, it never
    makes a step longer.
    """
    gradients = [p.grad for p in parameters if p.grad is not None]
    total = math.sqrt(sum(g.square().sum().item() for g in gradients))
    for gradient in gradients:
        gradient.mul_(max_norm / (total + 1e-6))
    return total


@misconception(
    "clip-gradients",
    id="TRN40",
    fails=["clip-gradients-large"],
    read="08_teacher_forcing#tf-clipping",
)
def new_gradients(parameters, max_norm):
    """You put new tensors in the place of the gradients. Scale those that are there, in place, as
    `mul_` does: others may hold them.
    """
    parameters = [p for p in parameters if p.grad is not None]
    total = math.sqrt(sum(p.grad.square().sum().item() for p in parameters))
    if total > max_norm:
        for parameter in parameters:
            parameter.grad = parameter.grad * (max_norm / total)
    return total


@misconception(
    "clip-gradients",
    id="TRN27",
    fails=["clip-gradients-large"],
    read="08_teacher_forcing#tf-clipping",
)
def walked_through_twice(parameters, max_norm):
    """You walk through `parameters` twice, and model.parameters() is empty the second time, so no
    gradient is scaled. Make a list first.
    """
    parameters = iter(parameters)
    total = math.sqrt(sum(p.grad.square().sum().item() for p in parameters if p.grad is not None))
    for parameter in parameters:
        if parameter.grad is not None and total > max_norm:
            parameter.grad.mul_(max_norm / total)
    return total


@misconception(
    "clip-gradients",
    id="TRN28",
    fails=["clip-gradients-norm"],
    read="08_teacher_forcing#tf-clipping",
)
def norm_after_clipping(parameters, max_norm):
    """You return the norm after clipping, which never exceeds max_norm; the norm before it tells
    how wild the batch was.
    """
    gradients = [p.grad for p in parameters if p.grad is not None]
    total = math.sqrt(sum(g.square().sum().item() for g in gradients))
    factor = min(1.0, max_norm / total) if total else 1.0
    for gradient in gradients:
        gradient.mul_(factor)
    return total * factor


@misconception(
    "clip-gradients",
    id="TRN29",
    fails=["clip-gradients-norm", "clip-gradients-large"],
    read="08_teacher_forcing#tf-clipping",
)
def entry_by_entry(parameters, max_norm):
    """You clip each entry by itself, which bends the gradient's direction; scale all of them by one
    factor.
    """
    gradients = [p.grad for p in parameters if p.grad is not None]
    total = max([g.abs().max().item() for g in gradients], default=0.0)
    for gradient in gradients:
        gradient.clamp_(-max_norm, max_norm)
    return total


@misconception(
    "clip-gradients",
    id="TRN30",
    fails=["clip-gradients-large"],
    read="08_teacher_forcing#tf-clipping",
)
def every_parameter_has_one(parameters, max_norm):
    """You expect every parameter to have a gradient; one that the loss did not reach has None, and
    should be passed over.
    """
    gradients = [p.grad for p in parameters]
    total = math.sqrt(sum(g.square().sum().item() for g in gradients))
    if total > max_norm:
        for gradient in gradients:
            gradient.mul_(max_norm / total)
    return total


@misconception(
    "clip-gradients",
    id="TRN38",
    fails=["clip-gradients-norm"],
    read="08_teacher_forcing#tf-clipping",
)
def norm_as_a_tensor(parameters, max_norm):
    """You return the norm as a tensor; .item() makes a float of it."""
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    total = torch.stack([gradient.norm() for gradient in gradients]).norm()
    if total > max_norm:
        for gradient in gradients:
            gradient.mul_(max_norm / total)
    return total


# 8.5 A training step


@misconception(
    "train-step",
    id="TF13",
    fails=["train-step-input", "train-step-update", "train-step-clip", "train-step-returns"],
    read="08_teacher_forcing#tf-one-pass",
)
def fed_with_its_own_words(model, source, target, optimizer, pad_id, loss_function, max_norm=1.0):
    """You feed the model its own predictions while it trains; teacher forcing hands it the true
    target, all positions at once.
    """
    model.train()
    optimizer.zero_grad()
    written = target[:, :1]
    for _ in range(target.shape[1] - 1):
        logits = model(source, written)
        written = torch.cat([written, logits[:, -1:].argmax(-1)], dim=1)
    loss = loss_function(logits, target[:, 1:], pad_id)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return loss.item()


@misconception(
    "train-step",
    id="TF21",
    fails=["train-step-input", "train-step-update", "train-step-clip", "train-step-returns"],
    read="08_teacher_forcing#tf-shift",
)
def step_without_shift(model, source, target, optimizer, pad_id, loss_function, max_norm=1.0):
    """Your training step hands the decoder the very tokens it has to say; shift them: decoder input
    without the last column, labels without the first.
    """
    model.train()
    optimizer.zero_grad()
    loss = loss_function(model(source, target[:, 1:]), target[:, 1:], pad_id)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return loss.item()


@misconception(
    "train-step",
    id="TF22",
    fails=["train-step-input"],
    read="08_teacher_forcing#tf-one-pass",
)
def one_pass_per_token(model, source, target, optimizer, pad_id, loss_function, max_norm=1.0):
    """You call the model once per target token; one call does for all positions, that is what the
    causal mask is for.
    """
    model.train()
    optimizer.zero_grad()
    columns = [model(source, target[:, : t + 1])[:, -1] for t in range(target.shape[1] - 1)]
    loss = loss_function(torch.stack(columns, dim=1), target[:, 1:], pad_id)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return loss.item()


@misconception(
    "train-step",
    id="TRN6",
    fails=["train-step-update"],
    read="08_teacher_forcing#tf-training-step",
)
def gradients_pile_up(model, source, target, optimizer, pad_id, loss_function, max_norm=1.0):
    """You never clear the gradients, so each step adds its own to those of all steps before it."""
    model.train()
    loss = loss_function(model(source, target[:, :-1]), target[:, 1:], pad_id)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return loss.item()


@misconception(
    "train-step",
    id="TRN31",
    fails=["train-step-update", "train-step-clip"],
    read="08_teacher_forcing#tf-training-step",
)
def cleared_too_late(model, source, target, optimizer, pad_id, loss_function, max_norm=1.0):
    """You clear the gradients between backward and step, so the optimiser sees none and nothing
    moves; clear them before backward.
    """
    model.train()
    loss = loss_function(model(source, target[:, :-1]), target[:, 1:], pad_id)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.zero_grad()
    optimizer.step()
    return loss.item()


@misconception(
    "train-step",
    id="TRN32",
    fails=["train-step-clip"],
    read="08_teacher_forcing#tf-clipping",
)
def clipped_before_backward(model, source, target, optimizer, pad_id, loss_function, max_norm=1.0):
    """You clip where it has no effect, before backward or after the step; what the step uses is
    there between the two.
    """
    model.train()
    optimizer.zero_grad()
    loss = loss_function(model(source, target[:, :-1]), target[:, 1:], pad_id)
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    loss.backward()
    optimizer.step()
    return loss.item()


@misconception(
    "train-step",
    id="TRN14",
    fails=["train-step-returns"],
    read="08_teacher_forcing#tf-training-step",
)
def mode_left_to_chance(model, source, target, optimizer, pad_id, loss_function, max_norm=1.0):
    """You do not set training mode: after an evaluation the model stays in eval mode and trains
    without dropout from then on.
    """
    optimizer.zero_grad()
    loss = loss_function(model(source, target[:, :-1]), target[:, 1:], pad_id)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return loss.item()


@misconception(
    "train-step",
    id="TRN33",
    fails=["train-step-returns"],
    read="08_teacher_forcing#tf-training-step",
)
def loss_with_its_graph(model, source, target, optimizer, pad_id, loss_function, max_norm=1.0):
    """You return the loss as a tensor, which keeps the whole batch's graph in memory for as long as
    somebody keeps the number; return a float.
    """
    model.train()
    optimizer.zero_grad()
    loss = loss_function(model(source, target[:, :-1]), target[:, 1:], pad_id)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return loss


# 8.6 A loop that trains, and is wrong


@misconception(
    "loop-causes",
    id="TRN45",
    fails=["loop-causes-lines"],
    read="08_teacher_forcing#tf-shift",
)
def the_cut_target_suspected():
    """You blame the cut targets for something. Both cuts are right: the decoder reads all but the
    last column, the labels are all but the first.
    """
    return {"saving": 10, "clipping": 8, "dropout": 3, "direction": 4}


@misconception(
    "loop-causes",
    id="TRN46",
    fails=["loop-causes-lines"],
    read="08_teacher_forcing#tf-pieces",
)
def backward_suspected():
    """You blame backward for the direction. It adds gradients to what is there, as it should; the
    line that should have cleared them runs only once.
    """
    return {"saving": 10, "clipping": 8, "dropout": 3, "direction": 6}


@misconception(
    "loop-causes",
    id="TRN47",
    fails=["loop-causes-lines"],
    read="08_teacher_forcing#tf-training-step",
)
def the_schedule_suspected():
    """You blame the scheduler for the clipping. It steps after the update, as it should; ask what
    the gradients are like when the update uses them.
    """
    return {"saving": 10, "clipping": 9, "dropout": 3, "direction": 1}


@misconception(
    "loop-causes",
    id="TRN48",
    fails=["loop-causes-lines"],
    read="08_teacher_forcing#tf-training-step",
)
def the_loss_suspected():
    """You say that the loss is made wrongly, or by backward. It is right; what cannot be saved is
    what the list is given: the tensor, not its number.
    """
    return {"saving": 5, "clipping": 8, "dropout": 3, "direction": 1}


@misconception(
    "loop-causes",
    id="TRN49",
    fails=["loop-causes-lines"],
    read="08_teacher_forcing#tf-training-step",
)
def lines_counted_from_the_top():
    """Your lines are off by some: count by the comments in the code, which begin with the line that
    clears the gradients.
    """
    return {"saving": 12, "clipping": 10, "dropout": 5, "direction": 3}


@misconception(
    "train-epoch",
    id="TRN50",
    fails=["train-epoch-updates"],
    read="08_teacher_forcing#tf-training-step",
)
def cleared_once(model, batches, optimizer, scheduler, pad_id, loss_function, max_norm=1.0):
    """In your loop each update uses the gradients of all batches so far: clear them before each
    backward, not once.
    """
    losses = []
    optimizer.zero_grad()
    for source, target in batches:
        model.train()
        loss = loss_function(model(source, target[:, :-1]), target[:, 1:], pad_id)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    return losses


@misconception(
    "train-epoch",
    id="TRN51",
    fails=["train-epoch-updates"],
    read="08_teacher_forcing#tf-clipping",
)
def clipped_after_the_update(
    model, batches, optimizer, scheduler, pad_id, loss_function, max_norm=1.0
):
    """Your loop clips when the update is done. Clipping changes gradients, so it has to stand
    between backward and the optimiser's step.
    """
    losses = []
    for source, target in batches:
        model.train()
        optimizer.zero_grad()
        loss = loss_function(model(source, target[:, :-1]), target[:, 1:], pad_id)
        loss.backward()
        optimizer.step()
        nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        scheduler.step()
        losses.append(loss.item())
    return losses


@misconception(
    "train-epoch",
    id="TRN52",
    fails=["train-epoch-calls"],
    read="08_teacher_forcing#tf-training-step",
)
def still_in_evaluation_mode(
    model, batches, optimizer, scheduler, pad_id, loss_function, max_norm=1.0
):
    """Your loop leaves the model in evaluation mode, where dropout drops nothing; call train()
    before the model.
    """
    losses = []
    for source, target in batches:
        optimizer.zero_grad()
        loss = loss_function(model(source, target[:, :-1]), target[:, 1:], pad_id)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    return losses


@misconception(
    "train-epoch",
    id="TRN53",
    fails=["train-epoch-updates"],
    read="08_teacher_forcing#tf-training-step",
)
def tensors_kept(model, batches, optimizer, scheduler, pad_id, loss_function, max_norm=1.0):
    """Your loop keeps the losses as tensors, each with the graph it came from; keep the number,
    `.item()`.
    """
    losses = []
    for source, target in batches:
        model.train()
        optimizer.zero_grad()
        loss = loss_function(model(source, target[:, :-1]), target[:, 1:], pad_id)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        scheduler.step()
        losses.append(loss)
    return losses


@misconception(
    "train-epoch",
    id="TRN54",
    fails=["train-epoch-updates"],
    read="08_teacher_forcing#tf-warm-up",
)
def rate_never_changed(model, batches, optimizer, scheduler, pad_id, loss_function, max_norm=1.0):
    """Your loop does not step the scheduler after each update, so every update has the rate of the
    first.
    """
    losses = []
    for source, target in batches:
        model.train()
        optimizer.zero_grad()
        loss = loss_function(model(source, target[:, :-1]), target[:, 1:], pad_id)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        losses.append(loss.item())
    return losses


@misconception(
    "train-epoch",
    id="TRN55",
    fails=["train-epoch-updates"],
    read="08_teacher_forcing#tf-warm-up",
)
def rate_of_the_next_update(
    model, batches, optimizer, scheduler, pad_id, loss_function, max_norm=1.0
):
    """Your loop steps the scheduler before the update, so every update has the rate of the one
    after it.
    """
    losses = []
    for source, target in batches:
        model.train()
        optimizer.zero_grad()
        loss = loss_function(model(source, target[:, :-1]), target[:, 1:], pad_id)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        scheduler.step()
        optimizer.step()
        losses.append(loss.item())
    return losses


@misconception(
    "train-epoch",
    id="TRN56",
    fails=["train-epoch-updates"],
    read="08_teacher_forcing#tf-pieces",
)
def one_update_at_the_end(
    model, batches, optimizer, scheduler, pad_id, loss_function, max_norm=1.0
):
    """Your loop adds up the gradients of all batches and updates once; each batch should have an
    update of its own.
    """
    losses = []
    model.train()
    optimizer.zero_grad()
    for source, target in batches:
        loss = loss_function(model(source, target[:, :-1]), target[:, 1:], pad_id)
        loss.backward()
        losses.append(loss.item())
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    scheduler.step()
    return losses


# 8.7 Beside the truth, and alone


@misconception(
    "predicted-share",
    id="TF30",
    fails=["predicted-share-made"],
    read="08_teacher_forcing#tf-alone",
)
def a_share_as_a_number():
    """Your prediction is a number; return one of the texts in SHARES."""
    return 0.55


@misconception(
    "predicted-share",
    id="TF31",
    fails=["predicted-share-made"],
    read="08_teacher_forcing#tf-alone",
)
def no_prediction():
    """You have not predicted anything: return one of the texts in SHARES."""
    return


@misconception(
    "predicted-share",
    id="TF32",
    fails=["predicted-share-made"],
    read="08_teacher_forcing#tf-alone",
)
def words_of_ones_own():
    """Your prediction is none of the four; return one of the texts in SHARES as it stands there."""
    return "about half"


@misconception(
    "measured-shares",
    id="TF33",
    fails=["measured-shares-consistent"],
    read="08_teacher_forcing#tf-alone",
)
def the_share_of_tokens_twice():
    """Your share of whole sentences is the share of tokens. Return the numbers that the cell
    prints: a sentence is right only if all its tokens are.
    """
    return {"beside": 0.937, "length": 10.14, "alone": 0.937, "independent": 0.937}


@misconception(
    "measured-shares",
    id="TF34",
    fails=["measured-shares-consistent"],
    read="08_teacher_forcing#tf-alone",
)
def in_per_cent():
    """Your shares are per cent; give them as the cell prints them, between 0 and 1."""
    return {"beside": 93.7, "length": 10.14, "alone": 57.5, "independent": 51.9}


@misconception(
    "measured-shares",
    id="TF35",
    fails=["measured-shares-consistent"],
    read="08_teacher_forcing#tf-alone",
)
def not_measured():
    """Your numbers are 0: run the cell above, and return what it prints last."""
    return {"beside": 0.0, "length": 0.0, "alone": 0.0, "independent": 0.0}


@misconception(
    "measured-shares",
    id="TF36",
    fails=["measured-shares-consistent"],
    read="08_teacher_forcing#tf-alone",
)
def independent_as_measured():
    """Your two shares of whole sentences are the same. One is measured; the other is what it would
    be if each token were missed by itself, a power of the share of tokens.
    """
    return {"beside": 0.937, "length": 10.14, "alone": 0.575, "independent": 0.575}


@misconception(
    "measured-shares",
    id="TF37",
    fails=["measured-shares-consistent"],
    read="08_teacher_forcing#tf-alone",
)
def more_wrong_than_missed():
    """Your numbers do not fit together: there are more wrong sentences than missed tokens. Return
    those of one run.
    """
    return {"beside": 0.985, "length": 10.14, "alone": 0.575, "independent": 0.858}


# 8.8 A batch in pieces


@misconception(
    "backward-in-pieces",
    id="TRN4",
    fails=["backward-in-pieces-gradient", "backward-in-pieces-passes"],
    read="08_teacher_forcing#tf-pieces",
)
def summed_as_they_are(model, source, target, pad_id, loss_function, pieces):
    """You add up the groups' mean losses as they are, so the gradient grows with the number of
    groups; each group counts by its share of the real tokens.
    """
    size = math.ceil(len(target) / pieces)
    total = 0.0
    for some_source, some_target in zip(source.split(size), target.split(size), strict=True):
        loss = loss_function(model(some_source, some_target[:, :-1]), some_target[:, 1:], pad_id)
        loss.backward()
        total += loss.item()
    return total


@misconception(
    "backward-in-pieces",
    id="TRN5",
    fails=["backward-in-pieces-gradient", "backward-in-pieces-passes"],
    read="08_teacher_forcing#tf-pieces",
)
def mean_of_means(model, source, target, pad_id, loss_function, pieces):
    """Every group counts the same in your mean, though they hold different numbers of real tokens;
    weigh each by its share.
    """
    size = math.ceil(len(target) / pieces)
    groups = list(zip(source.split(size), target.split(size), strict=True))
    total = 0.0
    for some_source, some_target in groups:
        loss = loss_function(model(some_source, some_target[:, :-1]), some_target[:, 1:], pad_id)
        loss = loss / len(groups)
        loss.backward()
        total += loss.item()
    return total


@misconception(
    "backward-in-pieces",
    id="TRN34",
    fails=["backward-in-pieces-gradient", "backward-in-pieces-passes"],
    read="08_teacher_forcing#tf-pieces",
)
def rest_dropped(model, source, target, pad_id, loss_function, pieces):
    """You leave out the sentences that remain when the pieces do not divide the batch; the last
    group may be smaller.
    """
    size = len(target) // pieces
    all_real = (target[:, 1:] != pad_id).sum().item()
    total = 0.0
    for start in range(0, size * pieces, size):
        rows = slice(start, start + size)
        labels = target[rows, 1:]
        share = (labels != pad_id).sum().item() / all_real
        loss = share * loss_function(model(source[rows], target[rows, :-1]), labels, pad_id)
        loss.backward()
        total += loss.item()
    return total


@misconception(
    "backward-in-pieces",
    id="TRN35",
    fails=["backward-in-pieces-gradient", "backward-in-pieces-passes"],
    read="08_teacher_forcing#tf-pieces",
)
def weighed_by_sentences(model, source, target, pad_id, loss_function, pieces):
    """You weigh the groups by their sentences; a group of long sentences holds more real tokens
    than one of short ones, and tokens are what the mean is over.
    """
    size = math.ceil(len(target) / pieces)
    total = 0.0
    for some_source, some_target in zip(source.split(size), target.split(size), strict=True):
        loss = loss_function(model(some_source, some_target[:, :-1]), some_target[:, 1:], pad_id)
        loss = loss * len(some_target) / len(target)
        loss.backward()
        total += loss.item()
    return total


@misconception(
    "backward-in-pieces",
    id="TRN36",
    fails=["backward-in-pieces-gradient", "backward-in-pieces-passes"],
    read="08_teacher_forcing#tf-pieces",
)
def only_the_last_counts(model, source, target, pad_id, loss_function, pieces):
    """You clear the gradients for each group, so only the last group's remain; they should add
    up.
    """
    size = math.ceil(len(target) / pieces)
    all_real = (target[:, 1:] != pad_id).sum().item()
    total = 0.0
    for some_source, some_target in zip(source.split(size), target.split(size), strict=True):
        model.zero_grad()
        labels = some_target[:, 1:]
        share = (labels != pad_id).sum().item() / all_real
        loss = share * loss_function(model(some_source, some_target[:, :-1]), labels, pad_id)
        loss.backward()
        total += loss.item()
    return total


@misconception(
    "backward-in-pieces",
    id="TRN37",
    fails=["backward-in-pieces-passes"],
    read="08_teacher_forcing#tf-pieces",
)
def all_at_once(model, source, target, pad_id, loss_function, pieces):
    """You run the whole batch through the model at once; that is right and takes all the memory
    that the pieces were to save.
    """
    loss = loss_function(model(source, target[:, :-1]), target[:, 1:], pad_id)
    loss.backward()
    return loss.item()


@misconception(
    "backward-in-pieces",
    id="TRN39",
    fails=["backward-in-pieces-gradient"],
    read="08_teacher_forcing#tf-pieces",
)
def clears_the_gradients_first(model, source, target, pad_id, loss_function, pieces):
    """You clear the gradients before you begin; add to what is there, and leave it to the caller
    when to begin anew.
    """
    model.zero_grad()
    size = math.ceil(len(target) / pieces)
    all_real = (target[:, 1:] != pad_id).sum().item()
    total = 0.0
    for some_source, some_target in zip(source.split(size), target.split(size), strict=True):
        labels = some_target[:, 1:]
        share = (labels != pad_id).sum().item() / all_real
        loss = share * loss_function(model(some_source, some_target[:, :-1]), labels, pad_id)
        loss.backward()
        total += loss.item()
    return total


# 8.9 How large should a batch be?


@misconception(
    "batch-noise",
    id="TRN57",
    fails=["batch-noise-values", "batch-noise-unbiased"],
    read="08_teacher_forcing#tf-noise",
)
def divided_by_all(gradients):
    """You divide the squared distances by the number of sentences. Their mean was made of the same
    sentences and lies too near to them: divide by one less.
    """
    batch = len(gradients)
    noise = gradients.var(0, correction=0).sum().item()
    return gradients.mean(0).square().sum().item() - noise / batch, noise


@misconception(
    "batch-noise",
    id="TRN58",
    fails=["batch-noise-values", "batch-noise-unbiased"],
    read="08_teacher_forcing#tf-noise",
)
def noise_left_in_the_signal(gradients):
    """You take the squared length of the mean gradient for that of the true one. It is too large on
    average: the mean of a batch holds noise as well, a part of one sentence's.
    """
    return gradients.mean(0).square().sum().item(), gradients.var(0).sum().item()


@misconception(
    "batch-noise",
    id="TRN59",
    fails=["batch-noise-values", "batch-noise-unbiased"],
    read="08_teacher_forcing#tf-noise",
)
def averaged_over_parameters(gradients):
    """You average over the parameters. Squared length and total variance are sums over all
    entries.
    """
    noise = gradients.var(0).mean().item()
    return gradients.mean(0).square().mean().item() - noise / len(gradients), noise


@misconception(
    "batch-noise",
    id="TRN60",
    fails=["batch-noise-values", "batch-noise-unbiased"],
    read="08_teacher_forcing#tf-noise",
)
def noise_of_the_mean(gradients):
    """Your variance is that of the batch's mean. The noise of one sentence is larger by as many
    times as the batch has sentences.
    """
    noise = gradients.var(0).sum().item() / len(gradients)
    return gradients.mean(0).square().sum().item() - noise, noise


@misconception(
    "batch-noise",
    id="TRN61",
    fails=["batch-noise-values", "batch-noise-unbiased"],
    read="08_teacher_forcing#tf-noise",
)
def never_below_zero(gradients):
    """You lift estimates below 0 to 0. Then those above are no longer balanced, and the mean over
    all batches is too large: leave them.
    """
    noise = gradients.var(0).sum().item()
    return max(0.0, gradients.mean(0).square().sum().item() - noise / len(gradients)), noise


@misconception(
    "label-smoothed-loss",
    id="TF24",
    fails=["label-smoothed-loss-padding"],
    read="08_teacher_forcing#tf-real-tokens",
)
def plain_zero_for_nothing(logits, labels, pad_id, smoothing=0.1):
    """For a batch without real tokens you return a Python number, on which the training step cannot
    call backward; every loss should be a tensor.
    """
    real = labels != pad_id
    if not real.any():
        return 0.0
    log_p = F.log_softmax(logits, dim=-1)
    of_label = log_p.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    losses = -(1 - smoothing) * of_label - smoothing * log_p.mean(-1)
    return losses[real].mean()


@misconception(
    "clip-gradients",
    id="TRN43",
    fails=["clip-gradients-large"],
    read="08_teacher_forcing#tf-clipping",
)
def zero_is_no_limit(parameters, max_norm):
    """You take a max_norm of 0 for no limit at all; it is the smallest limit there is, and makes
    every gradient 0.
    """
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    total = math.sqrt(sum(gradient.square().sum().item() for gradient in gradients))
    if max_norm and total > max_norm:
        for gradient in gradients:
            gradient.mul_(max_norm / total)
    return total


@misconception(
    "train-step",
    id="TRN44",
    fails=["train-step-returns"],
    read="08_teacher_forcing#tf-training-step",
)
def training_mode_of_the_model_alone(
    model, source, target, optimizer, pad_id, loss_function, max_norm=1.0
):
    """You set the model's own `training`, which its parts do not see: their dropout stays off. Call
    model.train().
    """
    model.training = True
    optimizer.zero_grad()
    loss = loss_function(model(source, target[:, :-1]), target[:, 1:], pad_id)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return loss.item()

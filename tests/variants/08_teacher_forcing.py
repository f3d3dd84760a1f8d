"""Right answers to the exercise on teacher forcing, written differently; all get full marks."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from lab.answers import variant

# 8.1 Decoder input and labels


@variant("teacher-forcing-pair")
def narrowed(target):
    length = target.shape[1] - 1
    return target.narrow(1, 0, length), target.narrow(1, 1, length)


@variant("teacher-forcing-pair")
def by_stacking_columns(target):
    columns = target.unbind(dim=1)
    return torch.stack(columns[:-1], dim=1), torch.stack(columns[1:], dim=1)


@variant("teacher-forcing-pair")
def by_lists(target):
    rows = target.tolist()
    return torch.tensor([row[:-1] for row in rows]), torch.tensor([row[1:] for row in rows])


@variant("teacher-forcing-pair")
def rolled_then_cut(target):
    return target[:, :-1].clone(), torch.roll(target, -1, dims=1)[:, :-1]


# 8.2 The loss


@variant("label-smoothed-loss")
def with_a_dense_target(logits, labels, pad_id, smoothing=0.1):
    vocab = logits.shape[-1]
    real = labels != pad_id
    if not real.any():
        return 0 * logits.sum()
    one_hot = F.one_hot(labels[real], vocab).to(logits.dtype)
    target = (1 - smoothing) * one_hot + smoothing / vocab
    return -(target * F.log_softmax(logits[real], dim=-1)).sum(-1).mean()


@variant("label-smoothed-loss")
def with_logsumexp(logits, labels, pad_id, smoothing=0.1):
    norm = torch.logsumexp(logits, dim=2)
    chosen = torch.take_along_dim(logits, labels[:, :, None], dim=2)[:, :, 0]
    losses = norm - (1 - smoothing) * chosen - smoothing * logits.mean(dim=2)
    real = (labels != pad_id).to(logits.dtype)
    return (losses * real).sum() / real.sum().clamp(min=1)


@variant("label-smoothed-loss")
def position_by_position(logits, labels, pad_id, smoothing=0.1):
    total, count = logits.new_zeros(()), 0
    for b in range(labels.shape[0]):
        for t in range(labels.shape[1]):
            label = int(labels[b, t])
            if label == pad_id:
                continue
            log_p = F.log_softmax(logits[b, t], dim=0)
            total = total - (1 - smoothing) * log_p[label] - smoothing * log_p.mean()
            count += 1
    return total / count if count else total


# 8.3 Adam and its learning rate


@variant("learning-rate")
def two_branches(step, d_model, warmup=4000):
    if step < 1:
        raise ValueError(f"step ({step}) must be at least 1")
    if step < warmup:
        return step / (math.sqrt(d_model) * warmup * math.sqrt(warmup))
    return 1 / math.sqrt(d_model * step)


@variant("learning-rate")
def peak_times_factor(step, d_model, warmup=4000):
    if step <= 0:
        raise ValueError(f"the step must be at least 1, not {step}")
    peak = (d_model * warmup) ** -0.5
    return peak * min(step / warmup, (warmup / step) ** 0.5)


@variant("learning-rate")
def with_powers(step, d_model, warmup=4000):
    if not step >= 1:
        raise ValueError(f"step = {step}, but steps count from 1")
    factors = [pow(step, -0.5), step * pow(warmup, -1.5)]
    return pow(d_model, -0.5) * sorted(factors)[0]


@variant("learning-rate")
def in_single_precision(step, d_model, warmup=4000):
    if step < 1:
        raise ValueError(f"step ({step}) must be at least 1")
    at = torch.tensor(float(step))
    slower = torch.minimum(torch.rsqrt(at), at * torch.tensor(float(warmup)) ** -1.5)
    return float(torch.rsqrt(torch.tensor(float(d_model))) * slower)


@variant("scheduled-adam")
def on_adamw_without_decay(parameters, rate):
    adam = torch.optim.AdamW(parameters, lr=1, betas=(0.9, 0.98), eps=1e-9, weight_decay=0)
    return adam, torch.optim.lr_scheduler.LambdaLR(adam, lr_lambda=lambda i: rate(i + 1))


@variant("scheduled-adam")
def with_a_list_of_lambdas(parameters, rate):
    groups = [{"params": list(parameters), "betas": (0.9, 0.98)}]
    optimizer = torch.optim.Adam(groups, lr=1.0, eps=1e-9)

    def factor(done):
        return rate(1 + done)

    return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, [factor])


@variant("scheduled-adam")
def with_a_scheduler_of_ones_own(parameters, rate):
    class Schedule:
        def __init__(self):
            self.step_number = 1

        def step(self):
            self.step_number += 1
            for group in optimizer.param_groups:
                group["lr"] = rate(self.step_number)

    optimizer = torch.optim.Adam(parameters, lr=rate(1), betas=(0.9, 0.98), eps=1e-9)
    return optimizer, Schedule()


# 8.4 Clip the gradients


@variant("clip-gradients")
def on_torchs_total_norm(parameters, max_norm):
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    total = nn.utils.get_total_norm(gradients).item()
    for gradient in gradients:
        gradient *= min(1.0, max_norm / (total + 1e-6))
    return total


@variant("clip-gradients")
def as_one_long_vector(parameters, max_norm):
    parameters = [p for p in parameters if p.grad is not None]
    total = torch.cat([p.grad.reshape(-1) for p in parameters]).norm()
    factor = (max_norm / (total + 1e-6)).clamp(max=1.0)
    for parameter in parameters:
        parameter.grad *= factor
    return float(total)


@variant("clip-gradients")
def norm_of_norms(parameters, max_norm):
    gradients = [p.grad for p in parameters if p.grad is not None]
    total = torch.stack([torch.linalg.vector_norm(g) for g in gradients]).norm().item()
    if total > max_norm:
        for gradient in gradients:
            gradient.copy_(gradient * (max_norm / total))
    return total


@variant("clip-gradients")
def for_each_at_once(parameters, max_norm):
    gradients = [p.grad for p in parameters if p.grad is not None]
    total = torch.stack(torch._foreach_norm(gradients)).norm().item()  # pyright: ignore
    if total > max_norm:
        torch._foreach_mul_(gradients, max_norm / total)  # pyright: ignore
    return total


@variant("clip-gradients")
def entry_by_slice(parameters, max_norm):
    kept, squares = list(parameters), 0.0
    for p in kept:
        squares += 0.0 if p.grad is None else float((p.grad**2).sum())
    norm = squares**0.5
    for p in kept:
        if p.grad is not None and norm > max_norm:
            p.grad[...] = p.grad * max_norm / norm
    return norm


# 8.5 A training step


@variant("train-step")
def cleared_on_the_model(model, source, target, optimizer, pad_id, loss_function, max_norm=1.0):
    model.train(True)
    model.zero_grad(set_to_none=False)
    decoder_input, labels = target[:, :-1], target[:, 1:]
    loss = loss_function(model(source, decoder_input), labels, pad_id)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(list(model.parameters()), max_norm)
    optimizer.step()
    return float(loss.detach())


@variant("train-step")
def with_autograd(model, source, target, optimizer, pad_id, loss_function, max_norm=1.0):
    parameters = list(model.train().parameters())
    loss = loss_function(model(source, target[:, :-1]), target[:, 1:], pad_id)
    gradients = torch.autograd.grad(loss, parameters)
    total = torch.cat([g.flatten() for g in gradients]).norm().item()
    factor = min(1.0, max_norm / total)
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.grad = factor * gradient
    optimizer.step()
    return loss.detach().item()


@variant("train-step")
def all_gradients_at_once(model, source, target, optimizer, pad_id, loss_function, max_norm=1.0):
    model.train()
    optimizer.zero_grad()
    loss = loss_function(model(source, target[:, :-1]), target[:, 1:], pad_id)
    loss.backward()
    gradients = [p.grad for p in model.parameters()]
    total = torch.stack(torch._foreach_norm(gradients)).norm()  # pyright: ignore
    torch._foreach_mul_(gradients, (max_norm / total).clamp(max=1).item())  # pyright: ignore
    optimizer.step()
    return loss.item()


@variant("train-step")
def cleared_between_forward_and_backward(
    model, source, target, optimizer, pad_id, loss_function, max_norm=1.0
):
    model.train()
    with torch.enable_grad():
        loss = loss_function(model(source, target[:, :-1]), target[:, 1:], pad_id)
    value = loss.item()
    optimizer.zero_grad()
    loss.backward()
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    norm = math.sqrt(sum(float(g.pow(2).sum()) for g in gradients))
    if norm > max_norm:
        for gradient in gradients:
            gradient.mul_(max_norm / norm)
    optimizer.step()
    return value


# 8.6 A loop that trains, and is wrong


@variant("loop-causes")
def the_other_of_two():
    return {"saving": 10, "clipping": 7, "dropout": 3, "direction": 1}


@variant("loop-causes")
def one_after_another():
    causes = {}
    causes["direction"], causes["dropout"] = 1, 3
    causes["clipping"], causes["saving"] = 8, 10
    return causes


@variant("loop-causes")
def zipped():
    return dict(zip(("saving", "clipping", "dropout", "direction"), (10, 7, 3, 1), strict=True))


@variant("train-epoch")
def by_training_steps(model, batches, optimizer, scheduler, pad_id, loss_function, max_norm=1.0):
    losses = []
    for source, target in batches:
        model.train()
        loss = loss_function(model(source, target[:, :-1]), target[:, 1:], pad_id)
        optimizer.zero_grad(set_to_none=False)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(list(model.parameters()), max_norm)
        optimizer.step()
        scheduler.step()
        losses.append(float(loss.detach()))
    return losses


@variant("train-epoch")
def cleared_after_each_update(
    model, batches, optimizer, scheduler, pad_id, loss_function, max_norm=1.0
):
    model.zero_grad()
    model.train()
    losses = []
    for source, target in batches:
        decoder_input, labels = target[:, :-1], target[:, 1:]
        loss = loss_function(model(source, decoder_input), labels, pad_id)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


@variant("train-epoch")
def as_a_generator(model, batches, optimizer, scheduler, pad_id, loss_function, max_norm=1.0):
    def updates():
        for source, target in batches:
            model.train()
            for parameter in model.parameters():
                parameter.grad = None
            loss = loss_function(model(source, target[:, :-1]), target[:, 1:], pad_id)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
            optimizer.step()
            scheduler.step()
            yield loss.item()

    return list(updates())


# 8.7 Beside the truth, and alone


@variant("predicted-share")
def most_of_them():
    return "about 95 %"


@variant("predicted-share")
def fewer():
    return "about 80 %"


@variant("predicted-share")
def hardly_any():
    return "about 10 %"


@variant("measured-shares")
def another_machine():
    return {"beside": 0.93, "length": 10.14, "alone": 0.54, "independent": 0.479}


@variant("measured-shares")
def a_longer_run():
    return {"beside": 0.98, "length": 10.14, "alone": 0.86, "independent": 0.815}


@variant("measured-shares")
def another_seed():
    return {"beside": 0.905, "length": 10.02, "alone": 0.43, "independent": 0.368}


# 8.8 A batch in pieces


@variant("backward-in-pieces")
def sums_over_the_whole_count(model, source, target, pad_id, loss_function, pieces):
    labels = target[:, 1:]
    count = int((labels != pad_id).sum())
    size = -(-len(target) // pieces)
    losses = []
    for start in range(0, len(target), size):
        rows = slice(start, start + size)
        mean = loss_function(model(source[rows], target[rows, :-1]), labels[rows], pad_id)
        (mean * int((labels[rows] != pad_id).sum()) / count).backward()
        losses.append(mean.item() * int((labels[rows] != pad_id).sum()))
    return sum(losses) / count


@variant("backward-in-pieces")
def one_sentence_at_a_time(model, source, target, pad_id, loss_function, pieces):
    lengths = [int((row[1:] != pad_id).sum()) for row in target]
    total = 0.0
    for one_source, one_target, length in zip(source, target, lengths, strict=True):
        logits = model(one_source[None], one_target[None, :-1])
        loss = loss_function(logits, one_target[None, 1:], pad_id) * (length / sum(lengths))
        loss.backward()
        total += loss.item()
    return total


@variant("backward-in-pieces")
def with_chunks(model, source, target, pad_id, loss_function, pieces):
    labels = target[:, 1:]
    real = (labels != pad_id).sum()
    total = 0.0
    for s, d, y in zip(
        source.chunk(pieces), target[:, :-1].chunk(pieces), labels.chunk(pieces), strict=True
    ):
        loss = loss_function(model(s, d), y, pad_id) * ((y != pad_id).sum() / real)
        loss.backward()
        total += float(loss.detach())
    return total


# 8.9 How large should a batch be?


@variant("batch-noise")
def by_the_variance(gradients):
    noise = gradients.var(0).sum()
    return float(gradients.mean(0).square().sum() - noise / len(gradients)), float(noise)


@variant("batch-noise")
def by_pairs(gradients):
    batch = len(gradients)
    products = gradients @ gradients.T
    own = products.diagonal().sum().item()
    others = (products.sum().item() - own) / (batch * (batch - 1))  # of independent sentences
    return others, own / batch - others


@variant("batch-noise")
def by_two_equations(gradients):
    batch = len(gradients)
    small = sum(row.dot(row).item() for row in gradients) / batch
    mean = gradients.sum(0) / batch
    large = mean.dot(mean).item()
    return (batch * large - small) / (batch - 1), (small - large) / (1 - 1 / batch)

"""Wrong answers to the exercise on teacher forcing that nobody gets a name for; all must lose."""

import math

import torch
from torch import nn

from lab.answers import variant


@variant("train-step")
def clips_the_first_group_only(
    model, source, target, optimizer, pad_id, loss_function, max_norm=1.0
):
    model.train()
    optimizer.zero_grad()
    loss = loss_function(model(source, target[:, :-1]), target[:, 1:], pad_id)
    loss.backward()
    nn.utils.clip_grad_norm_(optimizer.param_groups[0]["params"], max_norm)
    optimizer.step()
    return loss.item()


@variant("train-step")
def never_longer_than_one(model, source, target, optimizer, pad_id, loss_function, max_norm=1.0):
    model.train()
    optimizer.zero_grad()
    loss = loss_function(model(source, target[:, :-1]), target[:, 1:], pad_id)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), min(max_norm, 1.0))
    optimizer.step()
    return loss.item()


@variant("train-step")
def decoder_input_by_keyword(model, source, target, optimizer, pad_id, loss_function, max_norm=1.0):
    model.train()
    optimizer.zero_grad()
    logits = model(source=source, decoder_input=target[:, :-1])
    loss = loss_function(logits, target[:, 1:], pad_id)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return loss.item()


@variant("backward-in-pieces")
def pieces_by_keyword(model, source, target, pad_id, loss_function, pieces):
    size, total = math.ceil(len(target) / pieces), 0.0
    all_real = (target[:, 1:] != pad_id).sum().item()
    for some, ids in zip(source.split(size), target.split(size), strict=True):
        logits = model(some, decoder_input=ids[:, :-1])
        share = (ids[:, 1:] != pad_id).sum().item() / all_real
        loss = share * loss_function(logits, ids[:, 1:], pad_id)
        loss.backward()
        total += loss.item()
    return total


@variant("scheduled-adam")
def adamax(parameters, rate):
    optimizer = torch.optim.Adamax(parameters, lr=1.0, betas=(0.9, 0.98), eps=1e-9)
    return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, lambda done: rate(done + 1))


@variant("clip-gradients")
def clips_whatever_is_above_one(parameters, max_norm):
    grads = [p.grad for p in parameters if p.grad is not None]
    norm = math.sqrt(sum(g.square().sum().item() for g in grads))
    if norm > min(1.0, max_norm):
        for g in grads:
            g.mul_(max_norm / norm)
    return norm

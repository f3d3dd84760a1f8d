"""Wrong answers to the exercise on teacher forcing that nobody gets a name for; all must lose."""

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

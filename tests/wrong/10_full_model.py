"""Wrong answers to the exercise on the full model that nobody gets a name for; all must lose."""

import torch
import torch.nn.functional as F

from lab.answers import variant
from lab.blocks import causal_mask, padding_mask


@variant("transformer", target="Transformer.decode")
def memory_cut_off(self, target, memory, memory_mask, offset=0):
    target_mask = causal_mask(target.shape[1]) & padding_mask(target, self.pad_id)
    x = self.positional_encoding(self.target_embedding(target), offset)
    return self.generator(self.decoder(x, memory.detach(), target_mask, memory_mask))


@variant("count-parameters")
def larger_source_takes_the_targets_rows(
    source_vocab, target_vocab, d_model, num_layers, d_ff, norm_first=False, tied=True
):
    attention, feed_forward = 4 * d_model**2, 2 * d_model * d_ff + d_ff + d_model
    layers = num_layers * (3 * attention + 2 * feed_forward + 10 * d_model)
    stacks = layers + (4 * d_model if norm_first else 0)
    if not tied:
        rows = source_vocab + 2 * target_vocab
    elif source_vocab >= target_vocab:
        rows = target_vocab
    else:
        rows = source_vocab + target_vocab
    return stacks + rows * d_model


@variant("average-checkpoints")
def names_counted_only(checkpoints):
    if not checkpoints:
        raise ValueError("there is no checkpoint to average")
    last = checkpoints[-1]
    if any(len(checkpoint) != len(last) for checkpoint in checkpoints):
        raise ValueError("checkpoints must have the same names")
    return {
        name: torch.stack([checkpoint[name] for checkpoint in checkpoints]).mean(0)
        if tensor.is_floating_point()
        else tensor.clone()
        for name, tensor in last.items()
    }


@variant("accumulate-gradients")
def mean_as_a_tensor(model, micro_batches, pad_id):
    model.zero_grad()
    total = sum(int((target[:, 1:] != pad_id).sum()) for _, target in micro_batches)
    mean = torch.zeros(())
    for source, target in micro_batches:
        logits = model(source, target[:, :-1]).flatten(0, 1)
        labels = target[:, 1:].flatten()
        loss = F.cross_entropy(logits, labels, ignore_index=pad_id, reduction="sum") / total
        loss.backward()
        mean = mean + loss.detach()
    return mean

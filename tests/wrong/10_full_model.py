"""Wrong answers to the exercise on the full model that nobody gets a name for; all must lose."""

import torch
from torch import nn

from lab.answers import variant
from lab.blocks import (
    Decoder,
    DecoderLayer,
    Encoder,
    EncoderLayer,
    Generator,
    LayerNorm,
    PositionalEncoding,
    TokenEmbedding,
    causal_mask,
    padding_mask,
)


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


@variant("transformer", target="Transformer.decode")
def padding_seen_behind_an_offset(self, target, memory, memory_mask, offset=0):
    target_mask = causal_mask(target.shape[1])
    if not offset:
        target_mask = target_mask & padding_mask(target, self.pad_id)
    x = self.positional_encoding(self.target_embedding(target), offset)
    return self.generator(self.decoder(x, memory, target_mask, memory_mask))


@variant("transformer", target="Transformer.__init__")
def tied_for_a_smaller_source_only(
    self,
    source_vocab,
    target_vocab,
    encoding,
    d_model=512,
    num_layers=6,
    num_heads=8,
    d_ff=2048,
    dropout=0.1,
    pad_id=0,
    norm_first=False,
    tied=True,
):
    nn.Module.__init__(self)
    self.pad_id = pad_id
    self.source_embedding = TokenEmbedding(source_vocab, d_model)
    self.target_embedding = TokenEmbedding(target_vocab, d_model)
    self.positional_encoding = PositionalEncoding(encoding, dropout)
    sizes = d_model, num_heads, d_ff, dropout, norm_first
    norms = [LayerNorm(d_model) if norm_first else None for _ in range(2)]
    self.encoder = Encoder(lambda: EncoderLayer(*sizes), num_layers, norms[0])
    self.decoder = Decoder(lambda: DecoderLayer(*sizes), num_layers, norms[1])
    self.generator = Generator(d_model, target_vocab)
    if tied and source_vocab <= target_vocab:
        if source_vocab == target_vocab:
            self.source_embedding.weight = self.target_embedding.weight
        self.generator.tie(self.target_embedding.weight)


@variant("initialise")
def frozen_ones_left_out(model):
    for parameter in model.parameters():
        if parameter.dim() == 2 and parameter.requires_grad:
            nn.init.xavier_uniform_(parameter)
    for module in model.modules():
        if isinstance(module, TokenEmbedding):
            nn.init.normal_(module.weight, std=module.weight.shape[1] ** -0.5)


@variant("average-checkpoints")
def first_and_last_compared(checkpoints):
    if not checkpoints or checkpoints[0].keys() != checkpoints[-1].keys():
        raise ValueError("no checkpoint, or other names")
    return {
        name: torch.stack([c[name] for c in checkpoints]).mean(0)
        if tensor.is_floating_point()
        else tensor.clone()
        for name, tensor in checkpoints[-1].items()
    }


@variant("initialise")
def subclasses_are_no_embeddings(model):
    for p in model.parameters():
        if p.dim() == 2:
            nn.init.xavier_uniform_(p)
    for m in model.modules():
        if type(m) is TokenEmbedding:
            nn.init.normal_(m.weight, std=m.weight.shape[1] ** (-0.5))


@variant("find-fault")
def equal_to_the_last_bit(logits):
    s, t = (torch.tensor([[3, 7, 5, 9]]), torch.tensor([[1, 6, 4, 8]]))
    base = logits(s, t)

    def same(a, b):
        return (a - b).abs().max() < 1e-09

    if same(base.sum(-1), torch.ones(1, 4, dtype=base.dtype)) and (base >= 0).all():
        return "probabilities"
    if same(base, logits(torch.tensor([[2, 10, 11, 4]]), t)):
        return "source"
    if same(base, logits(s[:, [2, 0, 3, 1]], t)):
        return "order"
    if same(base, logits(s, t, 2)):
        return "offset"
    if not torch.equal(base, logits(torch.tensor([[3, 7, 5, 9, 0, 0]]), t)):
        return "padding"
    if not torch.equal(base[:, :3], logits(s, torch.tensor([[1, 6, 4, 2]]))[:, :3]):
        return "future"
    return "none"


@variant("find-fault")
def only_the_first_row_is_watched(logits):
    s, t = (torch.tensor([[3, 7, 5, 9]]), torch.tensor([[1, 6, 4, 8]]))
    base = logits(s, t)

    def same(a, b):
        return (a - b).abs().max() < 1e-09

    if same(base.sum(-1), torch.ones(1, 4, dtype=base.dtype)) and (base >= 0).all():
        return "probabilities"
    if same(base, logits(torch.tensor([[2, 10, 11, 4]]), t)):
        return "source"
    if same(base, logits(s[:, [2, 0, 3, 1]], t)):
        return "order"
    if same(base, logits(s, t, 2)):
        return "offset"
    if not same(base, logits(torch.tensor([[3, 7, 5, 9, 0, 0]]), t)):
        return "padding"
    if not same(base[:, :1], logits(s, torch.tensor([[1, 6, 4, 2]]))[:, :1]):
        return "future"
    return "none"


@variant("average-checkpoints")
def names_of_the_first_and_the_last_compared(checkpoints):
    if not checkpoints or set(checkpoints[0]) != set(checkpoints[-1]):
        raise ValueError("checkpoints have different names")
    return {
        name: torch.stack([c[name] for c in checkpoints]).mean(0)
        if tensor.is_floating_point()
        else tensor.clone()
        for name, tensor in checkpoints[-1].items()
    }


@variant("initialise")
def a_few_values_for_xaviers(model):
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 2:
                bound = (6 / sum(parameter.shape)) ** 0.5
                parameter.uniform_(-1, 1).mul_(10).round_().mul_(bound / 10)
        for module in model.modules():
            if isinstance(module, TokenEmbedding):
                nn.init.normal_(module.weight, std=module.weight.shape[1] ** -0.5)


def never_dropped(positional_encoding, x, offset=0):
    return x + positional_encoding.encoding[offset : offset + x.shape[1]]


@variant("transformer", target="Transformer.encode")
def a_source_that_is_never_dropped(self, source):
    memory_mask = padding_mask(source, self.pad_id)
    x = never_dropped(self.positional_encoding, self.source_embedding(source))
    return self.encoder(x, memory_mask), memory_mask


@variant("transformer", target="Transformer.decode")
def a_target_that_is_never_dropped(self, target, memory, memory_mask, offset=0):
    target_mask = causal_mask(target.shape[1]) & padding_mask(target, self.pad_id)
    x = never_dropped(self.positional_encoding, self.target_embedding(target), offset)
    return self.generator(self.decoder(x, memory, target_mask, memory_mask))

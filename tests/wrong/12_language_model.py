"""Wrong answers to the exercise on language models that nobody gets a name for; all must lose."""

import math

import torch
from torch import nn

from lab.answers import variant
from lab.blocks import (
    Encoder,
    EncoderLayer,
    Generator,
    LayerNorm,
    PositionalEncoding,
    TokenEmbedding,
    causal_mask,
)


@variant("windows")
def in_single_precision(stream, length):
    if length < 1:
        raise ValueError("length must be at least 1")
    rows = max(0, len(stream) - 1) // length
    end = rows * length
    inputs, labels = stream[:end].view(rows, length), stream[1 : end + 1].view(rows, length)
    return inputs.float(), labels.float()


@variant("language-model", target="LanguageModel.__init__")
def one_layer_whatever_is_asked_for(
    self, vocab_size, encoding, num_layers, num_heads, d_ff, dropout=0.0
):
    nn.Module.__init__(self)
    width = encoding.shape[1]
    self.embedding = TokenEmbedding(vocab_size, width)
    self.positional_encoding = PositionalEncoding(encoding, dropout)
    self.stack = Encoder(
        lambda: EncoderLayer(width, num_heads, d_ff, dropout, norm_first=True), 1, LayerNorm(width)
    )
    self.generator = Generator(width, vocab_size)
    self.generator.tie(self.embedding.weight)


@variant("language-model", target="LanguageModel.forward")
def no_mask_behind_an_offset(self, ids, offset=0):
    x = self.positional_encoding(self.embedding(ids), offset)
    return self.generator(self.stack(x, None if offset else causal_mask(ids.shape[1])))


@variant("write-on")
def first_row_for_all(model, prompt, count, choose):
    was_training = model.training
    model.eval()
    model.reset()
    new, offset, written = prompt, 0, prompt[:, :0]
    with torch.no_grad():
        for _ in range(count):
            logits = model(new, offset)[:, -1]
            offset += new.shape[1]
            new = choose(logits)[:1].expand(len(prompt)).unsqueeze(1)
            written = torch.cat([written, new], dim=1)
    model.train(was_training)
    return written


@variant("shaped")
def top_p_of_the_first_row(logits, temperature=1.0, top_k=None, top_p=None):
    if temperature <= 0 or (top_k is not None and top_k < 1):
        raise ValueError("temperature or top_k is too small")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError("top_p must be above 0 and at most 1")
    scaled = logits / temperature
    if top_k is not None:
        least = scaled.topk(min(top_k, scaled.shape[-1])).values[:, -1:]
        scaled = scaled.masked_fill(scaled < least, -math.inf)
    chances = scaled.softmax(-1)
    if top_p is not None:
        ordered, ids = chances.sort(dim=-1, descending=True)
        count = int((ordered[0].cumsum(-1) - ordered[0] < top_p).sum())
        dropped = torch.ones_like(chances, dtype=torch.bool).scatter(-1, ids[:, :count], False)
        chances = scaled.masked_fill(dropped, -math.inf).softmax(-1)
    return chances


@variant("write-on")
def no_tokens_are_floats(model, prompt, count, choose):
    was = model.training
    model.eval()
    new, offset, out = (prompt, 0, [])
    with torch.no_grad():
        model.reset()
        for _ in range(count):
            logits = model(new, offset)
            offset += new.shape[1]
            new = choose(logits[:, -1])[:, None]
            out.append(new)
    model.train(was)
    return torch.cat(out, 1) if out else torch.empty(len(prompt), 0)


@variant("honest-loss")
def a_single_row_loses_its_axis(ids, parts, pad_id):
    inputs, labels = ids[:, :-1], ids[:, 1:]
    n = inputs.shape[1]
    mask = torch.ones(n, n, dtype=torch.bool).tril()
    x = parts["stack"](parts["embed"](inputs), mask)
    log_p = parts["head"](x).log_softmax(-1)
    losses = -log_p.gather(-1, labels.unsqueeze(-1)).squeeze(0)
    return losses[labels != pad_id].mean()


@variant("shaped")
def only_zero_is_refused(logits, temperature=1.0, top_k=None, top_p=None):
    if temperature <= 0 or top_k == 0 or top_p == 0 or (top_p or 0) > 1:
        raise ValueError("these are not possible")
    scaled = logits / temperature
    if top_k is not None:
        least = scaled.sort(dim=-1).values[:, -min(top_k, scaled.shape[-1])][:, None]
        scaled = scaled.masked_fill(scaled < least, -math.inf)
    chances = scaled.softmax(-1)
    if top_p is not None and top_p < 1:
        ordered, ids = chances.sort(dim=-1, descending=True)
        before = ordered.cumsum(-1) - ordered
        before[:, 0] = -1
        dropped = torch.zeros_like(before, dtype=torch.bool).scatter(-1, ids, before >= top_p)
        chances = scaled.masked_fill(dropped, -math.inf).softmax(-1)
    return chances


@variant("honest-loss")
def a_number_from_which_nothing_learns(ids, parts, pad_id):
    inputs, labels = ids[:, :-1], ids[:, 1:]
    n = inputs.shape[1]
    x = parts["stack"](parts["embed"](inputs), torch.ones(n, n, dtype=torch.bool).tril())
    log_p = parts["head"](x).log_softmax(-1)
    losses = -log_p.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    return torch.tensor(losses[labels != pad_id].mean().item(), dtype=log_p.dtype)


@variant("shaped")
def one_too_many_where_a_sum_is_exactly_top_p(logits, temperature=1.0, top_k=None, top_p=None):
    if temperature <= 0 or (top_k is not None and top_k < 1):
        raise ValueError("temperature or top_k is too small")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError("top_p must be above 0 and at most 1")
    scaled = logits / temperature
    if top_k is not None:
        least = scaled.topk(min(top_k, scaled.shape[-1])).values[:, -1:]
        scaled = scaled.masked_fill(scaled < least, -math.inf)
    if top_p is not None:
        ordered, ids = scaled.softmax(-1).sort(dim=-1, descending=True)
        beyond = ordered.cumsum(-1) > top_p
        beyond = torch.cat([torch.zeros_like(beyond[:, :1]), beyond[:, :-1]], -1)
        scaled = scaled.masked_fill(beyond.scatter(-1, ids, beyond), -math.inf)
    return scaled.softmax(-1)


class AddsAlone(nn.Module):
    """Adds the positions; its dropout is there, and nothing goes through it."""

    encoding: torch.Tensor

    def __init__(self, encoding, dropout):
        super().__init__()
        self.register_buffer("encoding", encoding)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, offset=0):
        return x + self.encoding[offset : offset + x.shape[1]]


@variant("language-model", target="LanguageModel.__init__")
def a_sum_with_the_positions_that_is_never_dropped(
    self, vocab_size, encoding, num_layers, num_heads, d_ff, dropout=0.0
):
    nn.Module.__init__(self)
    width = encoding.shape[1]
    self.embedding = TokenEmbedding(vocab_size, width)
    self.positional_encoding = AddsAlone(encoding, dropout)
    self.stack = Encoder(
        lambda: EncoderLayer(width, num_heads, d_ff, dropout, norm_first=True),
        num_layers,
        LayerNorm(width),
    )
    self.generator = Generator(width, vocab_size)
    self.generator.tie(self.embedding.weight)

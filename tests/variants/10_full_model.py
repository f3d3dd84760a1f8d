"""Right answers to the exercise on the full model that are written differently."""

import math

import torch
import torch.nn.functional as F
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
)

# 10.1 The Transformer


@variant("transformer")
class TransformerWithOneEmbeddingModule(nn.Module):
    def __init__(
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
        super().__init__()
        sizes = (d_model, num_heads, d_ff, dropout, norm_first)
        self.pad = pad_id
        self.target_embedding = TokenEmbedding(target_vocab, d_model)
        if tied and source_vocab == target_vocab:
            self.source_embedding = self.target_embedding
        else:
            self.source_embedding = TokenEmbedding(source_vocab, d_model)
        self.positional_encoding = PositionalEncoding(encoding, dropout)
        self.encoder = Encoder(lambda: EncoderLayer(*sizes), num_layers)
        self.decoder = Decoder(lambda: DecoderLayer(*sizes), num_layers)
        if norm_first:
            self.encoder.norm = LayerNorm(d_model)
            self.decoder.norm = LayerNorm(d_model)
        self.generator = Generator(d_model, target_vocab)
        if tied:
            self.generator.weight = self.target_embedding.weight

    def real(self, ids):
        return torch.ne(ids, self.pad)[:, None, :]

    def encode(self, source):
        real = self.real(source)
        return self.encoder(self.positional_encoding(self.source_embedding(source)), real), real

    def decode(self, target, memory, memory_mask, offset=0):
        steps = torch.arange(target.shape[1], device=target.device)
        mask = (steps[:, None] >= steps[None, :]) & self.real(target)
        x = self.positional_encoding(self.target_embedding(target), offset=offset)
        x = self.decoder(x, memory, target_mask=mask, memory_mask=memory_mask)
        return self.generator(x)

    def forward(self, source, target):
        memory, memory_mask = self.encode(source)
        return self.decode(target, memory, memory_mask)


@variant("transformer", target="Transformer.__init__")
def tied_the_other_way_round(
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

    def encoder_layer():
        return EncoderLayer(d_model, num_heads, d_ff, dropout=dropout, norm_first=norm_first)

    def decoder_layer():
        return DecoderLayer(d_model, num_heads, d_ff, dropout=dropout, norm_first=norm_first)

    final = [LayerNorm(d_model), LayerNorm(d_model)] if norm_first else [None, None]
    self.pad_id = pad_id
    self.generator = Generator(d_model, target_vocab)
    self.decoder = Decoder(decoder_layer, num_layers, final[1])
    self.encoder = Encoder(encoder_layer, num_layers, norm=final[0])
    self.positional_encoding = PositionalEncoding(encoding, dropout)
    self.target_embedding = TokenEmbedding(target_vocab, d_model)
    self.source_embedding = TokenEmbedding(source_vocab, d_model)
    matrix = nn.Parameter(torch.randn(target_vocab, d_model) / math.sqrt(d_model))
    users = [self.generator, self.target_embedding] if tied else []
    if tied and source_vocab == target_vocab:
        users.append(self.source_embedding)
    for user in users:
        user.weight = matrix


@variant("transformer", target="Transformer.decode")
def masks_by_loops(self, target, memory, memory_mask, offset=0):
    rows = []
    for sentence in target.tolist():
        n = len(sentence)
        rows.append([[j <= i and sentence[j] != self.pad_id for j in range(n)] for i in range(n)])
    mask = torch.tensor(rows, dtype=torch.bool, device=target.device)
    vectors = self.target_embedding(target)
    x = self.decoder(self.positional_encoding(vectors, offset), memory, mask, memory_mask)
    return self.generator(x)


@variant("transformer", target="Transformer.decode")
def triangle_upside_down_and_negated(self, target, memory, memory_mask, offset=0):
    n = target.shape[1]
    later = torch.triu(torch.full((1, n, n), True, device=target.device), diagonal=1)
    padding = target.eq(self.pad_id).unsqueeze(-2)
    x = self.positional_encoding(self.target_embedding(target), offset=offset)
    x = self.decoder(x, memory, ~(later | padding), memory_mask.expand(-1, n, -1))
    return self.generator(x)


# 10.2 First numbers


@variant("initialise")
def embeddings_noted_first(model):
    embeddings = {id(m.weight) for m in model.modules() if isinstance(m, TokenEmbedding)}
    for parameter in model.parameters():
        if id(parameter) in embeddings:
            nn.init.normal_(parameter, 0.0, 1 / math.sqrt(parameter.size(1)))
        elif parameter.dim() == 2:
            nn.init.xavier_uniform_(parameter)


@variant("initialise")
def own_draws(model):
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 2:
                bound = math.sqrt(6 / (parameter.shape[0] + parameter.shape[1]))
                parameter.uniform_(-bound, bound)
        for module in model.modules():
            if isinstance(module, TokenEmbedding):
                module.weight.copy_(torch.randn_like(module.weight) * module.weight.size(1) ** -0.5)


@variant("initialise")
def through_apply_and_data(model):
    def matrices(module):
        for parameter in module.parameters(recurse=False):
            if parameter.dim() == 2:
                nn.init.xavier_uniform_(parameter.data)

    def embeddings(module):
        if isinstance(module, TokenEmbedding):
            module.weight.data.normal_(0, 1 / module.weight.shape[1] ** 0.5)

    model.apply(matrices)
    model.apply(embeddings)


# 10.3 How many numbers?


@variant("count-parameters")
def by_polynomial(
    source_vocab, target_vocab, d_model, num_layers, d_ff, norm_first=False, tied=True
):
    layer_pair = 12 * d_model**2 + 4 * d_model * d_ff + 2 * d_ff + 12 * d_model
    rows = target_vocab
    if not tied or source_vocab != target_vocab:
        rows += source_vocab
    if not tied:
        rows += target_vocab
    return num_layers * layer_pair + 4 * d_model * int(norm_first) + rows * d_model


@variant("count-parameters")
def by_shapes(source_vocab, target_vocab, d_model, num_layers, d_ff, norm_first=False, tied=True):
    attention = [(d_model, d_model)] * 4
    network = [(d_model, d_ff), (d_ff,), (d_ff, d_model), (d_model,)]
    norm = [(d_model,), (d_model,)]
    shapes = (attention + network + 2 * norm) * num_layers
    shapes += (2 * attention + network + 3 * norm) * num_layers
    shapes += 2 * norm if norm_first else []
    tables = [(source_vocab, d_model), (target_vocab, d_model), (target_vocab, d_model)]
    if tied:
        tables = tables[:2] if source_vocab != target_vocab else tables[:1]
    return sum(math.prod(shape) for shape in shapes + tables)


@variant("count-parameters")
def part_by_part(
    source_vocab, target_vocab, d_model, num_layers, d_ff, norm_first=False, tied=True
):
    def linear(inputs, outputs, bias):
        return inputs * outputs + (outputs if bias else 0)

    norm = d_model + d_model
    attention = sum(linear(d_model, d_model, bias=False) for _ in "qkvo")
    network = linear(d_model, d_ff, bias=True) + linear(d_ff, d_model, bias=True)
    total = num_layers * ((attention + norm) + (network + norm))  # the encoder
    total += num_layers * (2 * (attention + norm) + (network + norm))  # the decoder
    total += 2 * norm * bool(norm_first)
    total += target_vocab * d_model * (1 if tied else 2)
    return total if tied and source_vocab == target_vocab else total + source_vocab * d_model


# 10.4 The average of checkpoints


@variant("average-checkpoints")
def by_loops(checkpoints):
    if len(checkpoints) == 0:
        raise ValueError("no checkpoints")
    for one in checkpoints[1:]:
        if set(one) != set(checkpoints[0]):
            raise ValueError("the checkpoints' names differ")
    average = {}
    for name in checkpoints[0]:
        if checkpoints[-1][name].dtype.is_floating_point:
            total = torch.zeros_like(checkpoints[0][name])
            for one in checkpoints:
                total += one[name]
            average[name] = total / len(checkpoints)
        else:
            average[name] = checkpoints[-1][name].detach().clone()
    return average


@variant("average-checkpoints")
def running_mean(checkpoints):
    if not checkpoints:
        raise ValueError("no checkpoints")
    average = {name: tensor.clone() for name, tensor in checkpoints[0].items()}
    for number, one in enumerate(checkpoints[1:], start=2):
        if one.keys() != average.keys():
            raise ValueError(f"checkpoint {number} has other names than the first")
        for name, tensor in one.items():
            if torch.is_floating_point(tensor):
                average[name] += (tensor - average[name]) / number
            else:
                average[name] = tensor.clone()
    return average


@variant("average-checkpoints")
def from_a_deep_copy(checkpoints):
    import copy

    if len({tuple(sorted(one)) for one in checkpoints}) != 1:
        raise ValueError("there must be checkpoints, all with the same names")
    average = copy.deepcopy(dict(checkpoints[-1]))
    for name, tensor in average.items():
        if tensor.is_floating_point():
            tensor.copy_(sum(one[name].double() for one in checkpoints) / len(checkpoints))
    return average


# 10.5 Find the fault


@variant("find-fault")
def by_largest_differences(logits):
    source, target = torch.tensor([[3, 7, 5]]), torch.tensor([[1, 4]])
    base = logits(source, target)

    def moves(other):
        return (other - base).abs().max().item() > 1e-8

    if (base > 0).all() and abs(base[0, 0].sum().item() - 1) < 1e-6:
        return "probabilities"
    if not moves(logits(torch.tensor([[2, 7, 5]]), target)):
        return "source"
    if not moves(logits(torch.tensor([[7, 3, 5]]), target)):
        return "order"
    if moves(logits(torch.tensor([[3, 7, 5, 0]]), target)):
        return "padding"
    if moves(torch.cat([logits(source, torch.tensor([[1, 9]]))[:, :1], base[:, 1:]], 1)):
        return "future"
    return "none" if moves(logits(source, target, 1)) else "offset"


@variant("find-fault")
def in_one_batch(logits):
    sources = torch.tensor([[3, 7, 5, 9], [3, 7, 6, 9], [9, 5, 7, 3], [3, 7, 5, 9]])
    targets = torch.tensor([[1, 4, 8], [1, 4, 8], [1, 4, 8], [1, 4, 2]])
    base, other, flipped, later = logits(sources, targets)
    padded = logits(torch.tensor([[3, 7, 5, 9, 0]]), targets[:1])[0]
    moved = logits(sources[:1], targets[:1], offset=2)[0]

    def alike(one, two):
        return bool(((one - two).abs() < 1e-9).all())

    verdicts = {
        "probabilities": alike(base.sum(-1), torch.ones(3)),
        "source": alike(base, other),
        "order": alike(base, flipped),
        "padding": not alike(base, padded),
        "future": not alike(base[:2], later[:2]),
        "offset": alike(base, moved),
        "none": True,
    }
    return next(name for name, guilty in verdicts.items() if guilty)


@variant("find-fault")
def by_prefixes(logits):
    source, target = torch.tensor([[4, 2, 11]]), torch.tensor([[6, 10, 3, 1]])
    base = logits(source, target)
    tests = (
        (
            "probabilities",
            lambda: base.min() >= 0 and torch.allclose(base.sum(), base.new_tensor(4)),
        ),
        ("source", lambda: torch.allclose(base, logits(torch.tensor([[5, 8, 9]]), target))),
        ("order", lambda: torch.allclose(base, logits(source.roll(1, 1), target))),
        ("future", lambda: not torch.allclose(base[:, :2], logits(source, target[:, :2]))),
        ("padding", lambda: not torch.allclose(base, logits(F.pad(source, (0, 1)), target))),
        ("offset", lambda: torch.allclose(base, logits(source, target, 4))),
    )
    for name, guilty in tests:
        if guilty():
            return name
    return "none"

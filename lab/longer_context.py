"""Copying from far back: a model whose heads learn how far to look, and one that has memories.

Used by the chapter on longer context. Students get this file, so no line of it is one of an
answer's: what a span does to the weights is handed in, and what stands in for it approximates.
"""

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Weigh = Callable[[Tensor, Tensor, float], Tensor]
Run = Callable[[Sequence[nn.Module], Tensor, int, int, int], Tensor]


def copying(
    back: int, rows: int, length: int, seed: int, tokens: int = 16
) -> tuple[Tensor, Tensor]:
    """Ids drawn by chance and, as labels, those `back` tokens ago; -100 where there are none."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(tokens, (rows, length), generator=generator)
    labels = torch.full_like(ids, -100)
    labels[:, back:] = ids[:, : length - back]
    return ids, labels


def floored(scores: Tensor, z: Tensor, ramp: float) -> Tensor:
    """Causal weights under spans whose factor never gets quite to 0, on torch's own attention."""
    n, keys = scores.shape[-2:]
    ages = torch.arange(keys - n, keys, device=scores.device)[:, None] - torch.arange(
        keys, device=scores.device
    )
    factors = F.hardtanh((z[:, None, None] - ages) / ramp + 1, 1e-6, 1.0)
    hidden = torch.where(ages < 0, -torch.inf, 0.0)
    return (scores + factors.log() + hidden).softmax(-1)


class SpanModel(nn.Module):
    """One layer of attention by content and distance; each head has a span of its own.

    Args:
        tokens: number of ids.
        width: width of the vectors.
        heads: number of heads.
        largest: the largest span, which every head begins with.
        ramp: over how many tokens a weight fades.
        weigh: from scores, spans and ramp to weights.
    """

    def __init__(
        self,
        tokens: int = 16,
        width: int = 32,
        heads: int = 2,
        largest: int = 40,
        ramp: float = 4.0,
        weigh: Weigh = floored,
    ) -> None:
        super().__init__()
        self.heads, self.largest, self.ramp, self.weigh = heads, largest, ramp, weigh
        self.table = nn.Embedding(tokens, width)
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.distances = nn.Parameter(torch.zeros(heads, largest + int(ramp) + 1))
        self.share = nn.Parameter(torch.ones(heads))  # of the largest span
        self.out = nn.Linear(width, tokens)

    @property
    def spans(self) -> Tensor:
        """How far each head looks with full weight."""
        return self.share.clamp(0, 1) * self.largest

    def forward(self, given: Tensor) -> Tensor:
        """Logits for each place, (B, N, tokens)."""
        x = self.table(given)
        q, k, v = (
            layer(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        n = given.shape[1]
        ages = (torch.arange(n)[:, None] - torch.arange(n)).clamp(0, self.distances.shape[1] - 1)
        scores = q @ k.mT / q.shape[-1] ** 0.5 + self.distances[:, ages]
        return self.out((self.weigh(scores, self.spans, self.ramp) @ v).transpose(1, 2).flatten(2))


def learn_spans(
    model: SpanModel, back: int, steps: int = 400, price: float = 0.02, length: int = 64
) -> list[tuple[float, list[float]]]:
    """Train on copying; after each step the loss without the spans' price, and the spans."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02, betas=(0.9, 0.98))
    record = []
    for step in range(steps):
        ids, labels = copying(back, 16, length, seed=step)
        loss = F.cross_entropy(model(ids).flatten(0, 1), labels.flatten())
        optimizer.zero_grad()
        (loss + price * model.spans.mean()).backward()
        optimizer.step()
        with torch.no_grad():
            model.share.clamp_(0, 1)
        record.append((loss.item(), model.spans.tolist()))
    return record


class Remembering(nn.Module):
    """Attention by content and learned distances, over a memory and a segment.

    Args:
        width: width of the vectors.
        reach: number of distances, that of the segment's and the memory's tokens.
    """

    def __init__(self, width: int, reach: int) -> None:
        super().__init__()
        self.pairs = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.distances = nn.Parameter(torch.zeros(reach))

    def forward(self, x: Tensor, memory: Tensor) -> Tensor:
        """New vectors for x; its tokens come after those that are remembered."""
        q, k, v = self.pairs(torch.cat([memory, x], dim=1)).chunk(3, dim=-1)
        age = torch.arange(q.shape[1], device=x.device)
        age = age[:, None] - age
        bias = torch.where(age < 0, -torch.inf, self.distances[age.clamp(min=0)])
        seen = F.scaled_dot_product_attention(q, k, v, bias)
        return x + self.out(seen[:, memory.shape[1] :])


def learn_relay(
    run: Run, back: int, steps: int, segment: int = 4, tokens: int = 8, width: int = 32
) -> list[float]:
    """Train two layers with memories on what stood two segments ago; the loss after each step.

    Args:
        run: runs layers over vectors: layers, vectors, length of a segment and of a memory, back.
        back: through how many segments a gradient may go back, handed on to `run`.
        steps: of training.
        segment: tokens of a segment, and of a memory.
        tokens: number of ids.
        width: width of the vectors.
    """
    torch.manual_seed(0)
    table, out = nn.Embedding(tokens, width), nn.Linear(width, tokens)
    layers = nn.ModuleList(Remembering(width, 2 * segment) for _ in range(2))
    weights = [*table.parameters(), *layers.parameters(), *out.parameters()]
    optimizer = torch.optim.Adam(weights, lr=0.01)
    told = []
    for step in range(steps):
        ids, labels = copying(2 * segment, 32, 8 * segment, seed=step, tokens=tokens)
        logits = out(run(list(layers), table(ids), segment, segment, back))
        loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        told.append(loss.item())
    return told

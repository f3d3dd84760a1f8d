"""A small language model: of the lab's blocks, trained on stories, with a cache for writing.

It stands in where a notebook's own is not answered yet, and the book measures with it.
"""

import copy
from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from lab.blocks import (
    Encoder,
    EncoderLayer,
    Generator,
    LayerNorm,
    MultiHeadAttention,
    PositionalEncoding,
    TokenEmbedding,
    causal_mask,
)
from lab.translator import sinusoids

WINDOW = 32  # tokens that a model reads at once
BATCH = 32  # windows of a step
WARMUP = 30  # steps


class LanguageModel(nn.Module):
    """A decoder without a source: layers of self-attention, each token sees those before it.

    Args:
        vocab_size: number of ids.
        encoding: table of positions, (max_len, d_model).
        num_layers: how many layers, all of them pre-norm.
        num_heads: heads of every attention.
        d_ff: width inside the feed-forward networks.
        dropout: probability of dropping an entry, in the layers and after adding positions.
    """

    def __init__(
        self,
        vocab_size: int,
        encoding: Float[Tensor, "max_len d_model"],
        num_layers: int,
        num_heads: int,
        d_ff: int,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        width = encoding.shape[1]
        self.embedding = TokenEmbedding(vocab_size, width)
        self.positional_encoding = PositionalEncoding(encoding, dropout)
        self.stack = Encoder(
            lambda: EncoderLayer(width, num_heads, d_ff, dropout, norm_first=True),
            num_layers,
            LayerNorm(width),
        )
        self.generator = Generator(width, vocab_size)
        self.generator.tie(self.embedding.weight)

    def forward(self, ids: Int[Tensor, "B N"], offset: int = 0) -> Float[Tensor, "B N vocab_size"]:
        """Logits at each place for the token that comes next; the first stands at `offset`."""
        x = self.positional_encoding(self.embedding(ids), offset)
        return self.generator(self.stack(x, causal_mask(ids.shape[1]).to(ids.device)))


class Remembering(nn.Module):
    """A language model that keeps what its attentions have read, and is handed new tokens only.

    It makes keys and values of that anew. To keep these instead is a question of chapter 9.

    Args:
        model: whose weights it has; every `self_attention` in it gets a memory. It stays as it is.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = copy.deepcopy(model)
        self._kept: list[_Growing] = []
        for layer in list(self.model.modules()):
            if isinstance(attention := getattr(layer, "self_attention", None), MultiHeadAttention):
                self._kept.append(_Growing(attention))
                setattr(layer, "self_attention", self._kept[-1])  # noqa: B010

    def reset(self) -> None:
        """Forget all tokens: a new text begins."""
        for attention in self._kept:
            attention.kept = None

    def forward(self, ids: Int[Tensor, "B n"], offset: int) -> Float[Tensor, "B n vocab_size"]:
        """Logits at the new tokens, the first of which stands at `offset`."""
        return self.model(ids, offset)


class Sourceless(nn.Module):
    """A language model that is called like a translator; the source is not looked at.

    So a training step or a search that was written for translators takes it as it is.

    Args:
        model: the language model.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def encode(self, source: Int[Tensor, "B M"]) -> tuple[Tensor, Tensor]:
        """A memory of one token of zeros, and its mask."""
        memory = torch.zeros(len(source), 1, 1, device=source.device)
        return memory, torch.ones(len(source), 1, 1, dtype=torch.bool, device=source.device)

    def decode(
        self, target: Int[Tensor, "B N"], memory: Tensor, memory_mask: Tensor, offset: int = 0
    ) -> Float[Tensor, "B N vocab_size"]:
        """The language model's logits."""
        return self.model(target, offset)

    def forward(
        self, source: Int[Tensor, "B M"], target: Int[Tensor, "B N"]
    ) -> Float[Tensor, "B N vocab_size"]:
        """The language model's logits for the target."""
        return self.model(target)


class _Growing(nn.Module):
    """Self-attention to the new tokens and to all that it has been handed before."""

    def __init__(self, attention: MultiHeadAttention) -> None:
        super().__init__()
        self.attention = attention
        self.kept: Tensor | None = None  # what keys and values are made of, (B, m, d_model)

    def forward(
        self, query: Tensor, key: Tensor, _value: Tensor, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Attend; the mask is about the new tokens, which are queries, keys and values alike."""
        old = 0 if self.kept is None else self.kept.shape[1]
        self.kept = key if self.kept is None else torch.cat([self.kept, key], dim=1)
        seen = None if mask is None else F.pad(mask, (old, 0), value=True)
        return self.attention(query, self.kept, self.kept, seen)


def new_model(
    vocab_size: int,
    width: int = 64,
    layers: int = 1,
    *,
    make: Callable[..., nn.Module] = LanguageModel,
    positions: bool = True,
    longest: int = 2 * WINDOW,
    seed: int = 0,
) -> nn.Module:
    """A language model with small first weights.

    Args:
        vocab_size: number of ids.
        width: of its tokens; heads are at least 4 wide, and four at most.
        layers: how many.
        make: a class as `LanguageModel`; where it is not answered yet, the lab's stands in.
        positions: whether the table of positions holds anything but zeros.
        longest: rows of that table.
        seed: decides the first weights.
    """
    torch.manual_seed(seed)
    # a tenth of the usual table: about the size of the embeddings drawn below
    table = 0.1 * sinusoids(longest, width) if positions else torch.zeros(longest, width)
    sizes = vocab_size, table, layers, max(1, min(4, width // 4)), 4 * width
    try:
        model = make(*sizes)
    except NotImplementedError:
        print("LanguageModel is not answered yet; the lab's stands in")
        model = LanguageModel(*sizes)
    for parameter in model.parameters():
        if parameter.dim() == 2:
            nn.init.normal_(parameter, std=0.5 * width**-0.5)
    return model


def batches(stream: Int[Tensor, "n"], steps: int, seed: int = 0) -> Iterator[Int[Tensor, "B N"]]:
    """So many batches of windows from anywhere in a stream, each one token longer than WINDOW."""
    generator = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        starts = torch.randint(len(stream) - WINDOW, (BATCH, 1), generator=generator)
        yield stream[starts + torch.arange(WINDOW + 1)]


def train(
    model: nn.Module, stream: Int[Tensor, "n"], steps: int, peak: float = 1e-2, seed: int = 0
) -> list[float]:
    """Train on windows of a stream; the rate rises to `peak` and falls to 0. Returns the losses."""
    optimizer = torch.optim.Adam(model.parameters(), lr=peak, betas=(0.9, 0.98))
    losses = []
    model.train()
    for done, windows in enumerate(batches(stream, steps, seed), start=1):
        left = 1 - max(0, done - WARMUP) / max(1, steps - WARMUP + 1)
        for group in optimizer.param_groups:
            group["lr"] = peak * min(done / WARMUP, left)
        logits = model(windows[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    return losses


@torch.no_grad()
def losses_of(model: nn.Module, windows: Int[Tensor, "B N"]) -> Float[Tensor, "B n"]:
    """The loss of every token of these windows but the first, which is only read."""
    model.eval()
    return F.cross_entropy(model(windows[:, :-1]).transpose(1, 2), windows[:, 1:], reduction="none")

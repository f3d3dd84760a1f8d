"""A small language model: of torch's own layers, trained on stories, with a cache for writing.

It stands in where a notebook's own is not answered yet, and the book measures with it.
"""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from inspect import signature
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from lab.translator import sinusoids

WINDOW = 32  # tokens that a model reads at once
BATCH = 32  # windows of a step
WARMUP = 30  # steps


class LanguageModel(nn.Module):
    """Torch's layers one on the other, in which each token sees those before it.

    It is called as the one that a student builds of other parts, and has other weights: torch's
    attention has biases, and its three projections are one matrix.

    Args:
        vocab_size: number of ids.
        encoding: table of positions, (max_len, d_model).
        num_layers: how many layers, all of them pre-norm.
        num_heads: heads of every attention.
        d_ff: width inside the feed-forward networks.
        dropout: probability of dropping an entry, in the layers and after adding positions.
    """

    places: Tensor

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
        layer = nn.TransformerEncoderLayer(
            width, num_heads, d_ff, dropout, batch_first=True, norm_first=True
        )
        norm = nn.LayerNorm(width)
        self.layers = nn.TransformerEncoder(layer, num_layers, norm, enable_nested_tensor=False)
        self.table = nn.Embedding(vocab_size, width)  # of the tokens that are read and of the next
        self.register_buffer("places", encoding, persistent=False)
        self.dropout = nn.Dropout(dropout)

    def placed(self, ids: Int[Tensor, "B N"], offset: int = 0) -> Float[Tensor, "B N d_model"]:
        """The tokens' vectors, each with that of its place; the first stands at `offset`."""
        places = torch.arange(offset, offset + ids.shape[1], device=ids.device)
        return self.dropout(self.table(ids) + F.embedding(places, self.places))

    def forward(self, ids: Int[Tensor, "B N"], offset: int = 0) -> Float[Tensor, "B N vocab_size"]:
        """Logits at each place for the token that comes next; the first stands at `offset`."""
        x = self.placed(ids, offset)
        later = nn.Transformer.generate_square_subsequent_mask(ids.shape[1], x.device, x.dtype)
        # not hinted at: where more is read than new tokens, the mask is no square
        return F.linear(self.layers(x, later, is_causal=False), self.table.weight)


class Remembering(nn.Module):
    """A language model that keeps what its attentions have read, and is handed new tokens only.

    It makes keys and values of that anew. To keep these instead is a question of chapter 9.

    Args:
        model: whose weights it has. Every attention in it that is named as a self-attention gets a
            memory; its first three arguments are query, key and value. The model stays as it is.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = copy.deepcopy(model)
        self._read: dict[Any, Tensor] = {}  # (B, m, d_model): keys and values are made of it
        for name, part in self.model.named_modules():
            if name.rpartition(".")[2] in ("self_attention", "self_attn"):  # a student's, torch's
                part.register_forward_pre_hook(self._with_all_before, with_kwargs=True)

    def reset(self) -> None:
        """Forget all tokens: a new text begins."""
        self._read.clear()

    def forward(self, ids: Int[Tensor, "B n"], offset: int) -> Float[Tensor, "B n vocab_size"]:
        """Logits at the new tokens, the first of which stands at `offset`."""
        return self.model(ids, offset)

    def _with_all_before(
        self, attention: nn.Module, given: Sequence[Any], named: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """What the attention is called with: keys and values of all that it has been handed."""
        call = signature(attention.forward).bind(*given, **named)
        _, key, value, *others = call.arguments
        new: Tensor = call.arguments[key]
        before = self._read.get(attention, new[:, :0])
        read = torch.cat([before, new], dim=1)
        self._read[attention] = call.arguments[key] = call.arguments[value] = read
        for name in others:
            if isinstance(mask := call.arguments[name], Tensor):
                seen = mask.dtype == torch.bool  # True lets see; in torch's, of numbers, 0 does
                call.arguments[name] = F.pad(mask, (before.shape[1], 0), value=seen)
        return call.args, call.kwargs


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
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    model.eval()
    return losses


@torch.no_grad()
def losses_of(model: nn.Module, windows: Int[Tensor, "B N"]) -> Float[Tensor, "B n"]:
    """The loss of every token of these windows but the first, which is only read."""
    model.eval()
    return F.cross_entropy(model(windows[:, :-1]).transpose(1, 2), windows[:, 1:], reduction="none")

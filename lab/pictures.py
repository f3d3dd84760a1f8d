"""Pictures as tokens: patches, an encoder for them, and a decoder that says what it sees.

They stand in where a notebook's own are not answered yet, and the book measures with them. Students
get this file, so both are built on torch's layers and show no answer.
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from lab.drawings import BOS, EOS, HEIGHT, LENGTH, QUESTIONS, WIDTH, WORDS, decode
from lab.small_runs import greedy
from lab.translator import sinusoids

PATCH = 4  # pixels, of a patch's sides
NUM_PATCHES = (HEIGHT // PATCH) * (WIDTH // PATCH)
D_MODEL = 32
BATCH = 64  # drawings of a step
WARMUP = 30  # steps


def patchify(pictures: Float[Tensor, "B C H W"], patch_size: int) -> Float[Tensor, "B N P"]:
    """Cut pictures into square patches, row by row, by torch's own `unfold`.

    Raises:
        ValueError: if the patches do not fill the picture.
    """
    if patch_size < 1 or pictures.shape[2] % patch_size or pictures.shape[3] % patch_size:
        raise ValueError(f"patches of {patch_size} do not fill {tuple(pictures.shape[2:])} pixels")
    return F.unfold(pictures, patch_size, stride=patch_size).transpose(1, 2)


def unpatchify(
    patches: Float[Tensor, "B N P"], patch_size: int, height: int, width: int
) -> Float[Tensor, "B C H W"]:
    """Put patches together again, by torch's own `fold`."""
    return F.fold(patches.transpose(1, 2), (height, width), patch_size, stride=patch_size)


class PatchEncoder(nn.Module):
    """An encoder whose tokens are patches, with a class token in front.

    Args:
        patch_dim: numbers of a patch.
        num_patches: of a picture.
        d_model: width of the tokens.
        num_layers: how many layers, all of them pre-norm.
        num_heads: heads of every attention.
        d_ff: width inside the feed-forward networks.
        dropout: probability of dropping an entry, in the layers.
    """

    def __init__(
        self,
        patch_dim: int,
        num_patches: int,
        d_model: int,
        num_layers: int,
        num_heads: int,
        d_ff: int,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.projection = nn.Linear(patch_dim, d_model)
        self.positions = nn.Parameter(torch.empty(1 + num_patches, d_model))  # row 0: class token
        nn.init.normal_(self.positions, std=0.02)
        layer = nn.TransformerEncoderLayer(
            d_model, num_heads, d_ff, dropout, batch_first=True, norm_first=True
        )
        norm = nn.LayerNorm(d_model)
        self.reader = nn.TransformerEncoder(layer, num_layers, norm, enable_nested_tensor=False)

    def forward(self, patches: Float[Tensor, "B N P"]) -> Float[Tensor, "B n d_model"]:
        """The vectors of the class token and of all patches."""
        with_room = F.pad(self.projection(patches), (0, 0, 1, 0))  # one more place in front
        return self.reader(with_room + self.positions)


class Captioner(nn.Module):
    """A decoder that reads the tokens of a picture; it is called like a translator.

    Args:
        encoder: turns patches into tokens, (B, M, d_model).
        vocab_size: number of ids.
        encoding: table of positions of the words, (max_len, d_model).
        num_layers: how many layers of the decoder, all of them pre-norm.
        num_heads: heads of every attention.
        d_ff: width inside the feed-forward networks.
        dropout: probability of dropping an entry.
    """

    def __init__(
        self,
        encoder: nn.Module,
        vocab_size: int,
        encoding: Float[Tensor, "max_len d_model"],
        num_layers: int,
        num_heads: int,
        d_ff: int,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        width = encoding.shape[1]
        self.encoder, self.embedding = encoder, nn.Embedding(vocab_size, width)
        self.register_buffer("table", encoding)
        layer = nn.TransformerDecoderLayer(
            width, num_heads, d_ff, dropout, batch_first=True, norm_first=True
        )
        self.writer = nn.TransformerDecoder(layer, num_layers, nn.LayerNorm(width))

    def encode(self, patches: Float[Tensor, "B N P"]) -> tuple[Float[Tensor, "B M d_model"], None]:
        """The memory, and no mask: a picture is there all at once."""
        return self.encoder(patches), None

    def decode(
        self,
        ids: Int[Tensor, "B N"],
        memory: Float[Tensor, "B M d_model"],
        memory_mask: Bool[Tensor, "B 1 M"] | None = None,
        offset: int = 0,
    ) -> Float[Tensor, "B N vocab_size"]:
        """The logits of the next word, after each of these."""
        count = ids.shape[1]
        words = self.embedding(ids) + self.get_buffer("table")[offset : offset + count]
        later = torch.ones(count, count, dtype=torch.bool, device=ids.device).triu(1)
        unseen = None if memory_mask is None else ~memory_mask[:, 0]
        states = self.writer(
            words, memory, tgt_mask=later, memory_key_padding_mask=unseen, tgt_is_causal=False
        )
        return states @ self.embedding.weight.T

    def forward(
        self, patches: Float[Tensor, "B N P"], ids: Int[Tensor, "B N"]
    ) -> Float[Tensor, "B N vocab_size"]:
        """The logits of the next word, after each of these, for each picture."""
        memory, nothing_hidden = self.encode(patches)
        return self.decode(ids, memory, nothing_hidden)


class Classifier(nn.Module):
    """One linear layer on the class token or on the mean of the patches.

    Args:
        encoder: turns patches into tokens, the class token first.
        d_model: their width.
        mean: whether the mean of the patches is read, and not the class token.
        num_answers: how many logits; by default those of all questions on a drawing.
    """

    def __init__(
        self,
        encoder: nn.Module,
        d_model: int,
        mean: bool = False,
        num_answers: int = sum(map(len, QUESTIONS.values())),
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = nn.Linear(d_model, num_answers)
        self.mean = mean

    def forward(self, patches: Float[Tensor, "B N P"]) -> Float[Tensor, "B logits"]:
        """The logits of the answers, for drawings one question after the other."""
        tokens = self.encoder(patches)
        return self.head(tokens[:, 1:].mean(1) if self.mean else tokens[:, 0])


def new_encoder(
    patch_size: int = PATCH, *, make: Callable[..., nn.Module] = PatchEncoder, seed: int = 0
) -> nn.Module:
    """An encoder for the drawings.

    Args:
        patch_size: pixels of a patch's sides.
        make: a class as `PatchEncoder`; where it is not answered yet, the lab's stands in.
        seed: decides the first weights.
    """
    torch.manual_seed(seed)
    count = (HEIGHT // patch_size) * (WIDTH // patch_size)
    return _made(make, PatchEncoder, 3 * patch_size**2, count, D_MODEL, 2, 2, 4 * D_MODEL)


def new_captioner(encoder: nn.Module, *, make: Callable[..., nn.Module] = Captioner) -> nn.Module:
    """A captioner for the drawings; `make` as for `new_encoder`."""
    table = 0.1 * sinusoids(LENGTH, D_MODEL)  # about the size of the embeddings drawn below
    model = _made(make, Captioner, encoder, len(WORDS), table, 1, 4, 4 * D_MODEL)
    nn.init.normal_(model.get_parameter("embedding.weight"), std=0.5 * D_MODEL**-0.5)
    return model


def _made(make: Callable[..., nn.Module], stand_in: type[nn.Module], *sizes: Any) -> nn.Module:
    try:
        return make(*sizes)
    except NotImplementedError:
        print(f"{stand_in.__name__} is not answered yet; the lab's stands in")
        return stand_in(*sizes)


def shuffled(patches: Float[Tensor, "B N P"], order: Int[Tensor, "#B N"]) -> Float[Tensor, "B N P"]:
    """The patches in another order: a row for each picture, or one for all."""
    return patches.gather(1, order.expand(len(patches), -1).unsqueeze(-1).expand_as(patches))


def orders(count: int, num_patches: int = NUM_PATCHES, seed: int = 0) -> Int[Tensor, "count N"]:
    """So many orders of the patches, drawn by chance."""
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(count, num_patches, generator=generator).argsort(1)


def train(
    model: nn.Module,
    loss_of: Callable[[Int[Tensor, "b"]], Tensor],
    count: int,
    steps: int,
    peak: float = 4e-3,
) -> list[float]:
    """Train on drawings; the rate rises to `peak` and falls to 0. Returns the losses.

    Args:
        model: whose parameters learn.
        loss_of: the loss of the drawings with these numbers.
        count: of the drawings.
        steps: how many.
        peak: the largest learning rate.
    """
    generator = torch.Generator().manual_seed(0)
    optimizer = torch.optim.Adam(model.parameters(), lr=peak, betas=(0.9, 0.98))
    losses = []
    model.train()
    for done in range(1, steps + 1):
        left = 1 - max(0, done - WARMUP) / max(1, steps - WARMUP + 1)
        for group in optimizer.param_groups:
            group["lr"] = peak * min(done / WARMUP, left)
        loss = loss_of(torch.randint(count, (BATCH,), generator=generator))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.detach())
    model.eval()
    return torch.stack(losses).tolist()


def train_classifier(
    encoder: nn.Module,
    patches: Float[Tensor, "B N P"],
    answers: Int[Tensor, "B questions"],
    steps: int = 300,
) -> nn.Module:
    """Put a classifier on an encoder and train both on the answers to all questions."""
    model = Classifier(encoder, D_MODEL)

    def loss_of(numbers: Tensor) -> Tensor:
        parts = _by_question(model(patches[numbers]))
        pairs = zip(parts, answers[numbers].T, strict=True)
        return torch.stack([F.cross_entropy(part, right) for part, right in pairs]).sum()

    train(model, loss_of, len(patches), steps)
    return model


@torch.no_grad()
def shares_right(
    model: nn.Module, patches: Float[Tensor, "B N P"], answers: Int[Tensor, "B questions"]
) -> dict[str, float]:
    """For each question, on how many of the drawings the model is right."""
    model.eval()
    parts = zip(QUESTIONS, _by_question(model(patches)), answers.T, strict=True)
    return {name: (part.argmax(1) == right).double().mean().item() for name, part, right in parts}


def _by_question(logits: Tensor) -> tuple[Tensor, ...]:
    return logits.split([len(known) for known in QUESTIONS.values()], dim=1)


def train_captioner(
    model: nn.Module,
    patches: Float[Tensor, "B N P"],
    captions: Int[Tensor, "B words"],
    steps: int = 600,
) -> list[float]:
    """Train a captioner by teacher forcing; returns the losses of whole captions."""

    def loss_of(numbers: Tensor) -> Tensor:
        ids = captions[numbers]
        logits = model(patches[numbers], ids[:, :-1])
        return F.cross_entropy(logits.transpose(1, 2), ids[:, 1:]) * (LENGTH - 1)

    return train(model, loss_of, len(patches), steps, peak=3e-3)


@torch.no_grad()
def caption_losses(
    model: nn.Module, patches: Float[Tensor, "B N P"], captions: Int[Tensor, "B words"]
) -> Float[Tensor, "B n"]:
    """The loss of every word of every caption but `<bos>`, which is only read."""
    model.eval()
    logits = model(patches, captions[:, :-1])
    return F.cross_entropy(logits.transpose(1, 2), captions[:, 1:], reduction="none")


def captions_of(model: nn.Module, patches: Float[Tensor, "B N P"]) -> list[str]:
    """What a captioner says of these pictures, the likeliest word each time."""
    ends = WORDS.index(BOS), WORDS.index(EOS)
    return [decode(row) for row in greedy(model, patches, *ends, LENGTH - 1)]

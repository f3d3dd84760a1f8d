"""Pictures as tokens: patches, an encoder for them, and a decoder that says what it sees.

They stand in where a notebook's own are not answered yet, and the book measures with them.
"""

from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

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
)
from lab.drawings import BOS, EOS, HEIGHT, LENGTH, QUESTIONS, WIDTH, WORDS, Drawings
from lab.translator import sinusoids

PATCH = 4  # pixels, of a patch's sides
NUM_PATCHES = (HEIGHT // PATCH) * (WIDTH // PATCH)
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


class PictureEncoder(nn.Module):
    """An encoder whose tokens are patches, with a class token in front.

    Args:
        channels: of the pictures.
        patch_size: pixels of a patch's sides.
        num_patches: of a picture.
        d_model: width of the tokens.
        num_layers: how many layers, all of them pre-norm.
        num_heads: heads of every attention.
        d_ff: width inside the feed-forward networks.
        dropout: probability of dropping an entry, in the layers.
    """

    def __init__(
        self,
        channels: int,
        patch_size: int,
        num_patches: int,
        d_model: int,
        num_layers: int,
        num_heads: int,
        d_ff: int,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.patch_size = patch_size
        self.patch_embedding = nn.Linear(channels * patch_size**2, d_model)
        self.class_token = nn.Parameter(0.02 * torch.randn(d_model))
        self.positions = nn.Parameter(0.02 * torch.randn(1 + num_patches, d_model))
        self.stack = Encoder(
            lambda: EncoderLayer(d_model, num_heads, d_ff, dropout, norm_first=True),
            num_layers,
            LayerNorm(d_model),
        )

    def forward(self, pictures: Float[Tensor, "B C H W"]) -> Float[Tensor, "B n d_model"]:
        """The vectors of the class token and of all patches."""
        patches = self.patch_embedding(patchify(pictures, self.patch_size))
        first = self.class_token.expand(len(patches), 1, -1)
        return self.stack(torch.cat([first, patches], dim=1) + self.positions)


class Captioner(nn.Module):
    """A decoder that reads the tokens of a picture; it is called like a translator.

    Args:
        encoder: turns pictures into tokens, (B, M, d_model).
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
        self.encoder = encoder
        self.embedding = TokenEmbedding(vocab_size, width)
        self.positional_encoding = PositionalEncoding(encoding, dropout)
        self.decoder = Decoder(
            lambda: DecoderLayer(width, num_heads, d_ff, dropout, norm_first=True),
            num_layers,
            LayerNorm(width),
        )
        self.generator = Generator(width, vocab_size)
        self.generator.tie(self.embedding.weight)

    def encode(
        self, pictures: Float[Tensor, "B C H W"]
    ) -> tuple[Float[Tensor, "B M d_model"], Bool[Tensor, "B 1 M"]]:
        """The memory, and a mask that hides nothing of it."""
        memory = self.encoder(pictures)
        seen = torch.ones(len(memory), 1, memory.shape[1], dtype=torch.bool, device=memory.device)
        return memory, seen

    def decode(
        self,
        ids: Int[Tensor, "B N"],
        memory: Float[Tensor, "B M d_model"],
        memory_mask: Bool[Tensor, "B 1 M"] | None = None,
        offset: int = 0,
    ) -> Float[Tensor, "B N vocab_size"]:
        """The logits of the next word, after each of these."""
        x = self.positional_encoding(self.embedding(ids), offset)
        mask = causal_mask(ids.shape[1]).to(ids.device)
        return self.generator(self.decoder(x, memory, mask, memory_mask))

    def forward(
        self, pictures: Float[Tensor, "B C H W"], ids: Int[Tensor, "B N"]
    ) -> Float[Tensor, "B N vocab_size"]:
        """The logits of the next word, after each of these, for each picture."""
        return self.decode(ids, *self.encode(pictures))


class Classifier(nn.Module):
    """One linear layer on the class token or on the mean of the patches.

    Args:
        encoder: turns pictures into tokens, the class token first.
        d_model: their width.
        num_logits: of all questions together.
        mean: whether the mean of the patches is read, and not the class token.
    """

    def __init__(
        self, encoder: nn.Module, d_model: int, num_logits: int, mean: bool = False
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = nn.Linear(d_model, num_logits)
        self.mean = mean

    def forward(self, pictures: Float[Tensor, "B C H W"]) -> Float[Tensor, "B num_logits"]:
        """The logits of the answers, one question after the other."""
        tokens = self.encoder(pictures)
        return self.head(tokens[:, 1:].mean(1) if self.mean else tokens[:, 0])


def new_encoder(
    width: int = 32, *, make: Callable[..., nn.Module] = PictureEncoder, seed: int = 0
) -> nn.Module:
    """An encoder for the drawings with small first weights.

    Args:
        width: of its tokens.
        make: a class as `PictureEncoder`; where it is not answered yet, the lab's stands in.
        seed: decides the first weights.
    """
    torch.manual_seed(seed)
    sizes = 3, PATCH, NUM_PATCHES, width, 2, 4, 4 * width
    try:
        return make(*sizes)
    except NotImplementedError:
        print("PictureEncoder is not answered yet; the lab's stands in")
        return PictureEncoder(*sizes)


def new_captioner(
    encoder: nn.Module, width: int = 32, *, make: Callable[..., nn.Module] = Captioner
) -> nn.Module:
    """A captioner for the drawings; `make` as for `new_encoder`."""
    sizes = encoder, len(WORDS), 0.1 * sinusoids(LENGTH, width), 1, 4, 4 * width
    try:
        model = make(*sizes)
    except NotImplementedError:
        print("Captioner is not answered yet; the lab's stands in")
        model = Captioner(*sizes)
    nn.init.normal_(model.get_submodule("embedding").weight, std=0.5 * width**-0.5)
    return model


def shuffled(
    pictures: Float[Tensor, "B 3 H W"], order: Int[Tensor, "#B N"], patch_size: int = PATCH
) -> Float[Tensor, "B 3 H W"]:
    """The pictures with their patches in another order: a row for each, or one for all."""
    patches = patchify(pictures, patch_size)
    places = order.expand(len(patches), -1).unsqueeze(-1).expand_as(patches)
    mixed = patches.gather(1, places).transpose(1, 2)
    return F.fold(mixed, pictures.shape[2:], patch_size, stride=patch_size)


def batches(data: Drawings, steps: int, seed: int = 0) -> Iterator[Int[Tensor, "b"]]:
    """So many batches of numbers of drawings."""
    generator = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        yield torch.randint(len(data.pictures), (BATCH,), generator=generator)


def question_losses(
    logits: Float[Tensor, "B L"], answers: Int[Tensor, "B questions"]
) -> Float[Tensor, ""]:
    """The losses of all questions, added up."""
    parts = logits.split([len(known) for known in QUESTIONS.values()], dim=1)
    pairs = zip(parts, answers.T, strict=True)
    return torch.stack([F.cross_entropy(part, right) for part, right in pairs]).sum()


def shares_right(model: nn.Module, data: Drawings) -> dict[str, float]:
    """For each question, on how many of the drawings the model is right."""
    model.eval()
    with torch.no_grad():
        logits = model(data.pictures)
    parts = logits.split([len(known) for known in QUESTIONS.values()], dim=1)
    return {
        name: float((part.argmax(1) == right).double().mean())
        for name, part, right in zip(QUESTIONS, parts, data.answers.T, strict=True)
    }


def train(
    model: nn.Module,
    loss_of: Callable[[Int[Tensor, "b"]], Tensor],
    data: Drawings,
    steps: int,
    peak: float = 3e-3,
) -> list[float]:
    """Train on drawings; the rate rises to `peak` and falls to 0. Returns the losses.

    Args:
        model: whose parameters learn.
        loss_of: the loss of the drawings with these numbers.
        data: what is trained on.
        steps: how many.
        peak: the largest learning rate.
    """
    optimizer = torch.optim.Adam(model.parameters(), lr=peak, betas=(0.9, 0.98))
    losses = []
    model.train()
    for done, numbers in enumerate(batches(data, steps), start=1):
        left = 1 - max(0, done - WARMUP) / max(1, steps - WARMUP + 1)
        for group in optimizer.param_groups:
            group["lr"] = peak * min(done / WARMUP, left)
        loss = loss_of(numbers)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    return losses


def train_classifier(
    data: Drawings,
    steps: int = 250,
    *,
    mean: bool = False,
    make: Callable[..., nn.Module] = PictureEncoder,
    peak: float = 3e-3,
) -> nn.Module:
    """A new classifier, trained on the answers to all questions."""
    logits = sum(map(len, QUESTIONS.values()))
    model = Classifier(new_encoder(make=make), 32, logits, mean)

    def loss_of(numbers: Tensor) -> Tensor:
        return question_losses(model(data.pictures[numbers]), data.answers[numbers])

    train(model, loss_of, data, steps, peak)
    return model


def train_captioner(
    model: nn.Module, data: Drawings, steps: int = 300, peak: float = 3e-3
) -> list[float]:
    """Train a captioner by teacher forcing; returns the losses of whole captions."""

    def loss_of(numbers: Tensor) -> Tensor:
        ids = data.captions[numbers]
        logits = model(data.pictures[numbers], ids[:, :-1])
        return F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten()) * (LENGTH - 1)

    return train(model, loss_of, data, steps, peak)


@torch.no_grad()
def caption_losses(model: nn.Module, data: Drawings) -> Float[Tensor, "B words"]:
    """The loss of every word of every caption but `<bos>`."""
    model.eval()
    logits = model(data.pictures, data.captions[:, :-1])
    return F.cross_entropy(logits.transpose(1, 2), data.captions[:, 1:], reduction="none")


@torch.no_grad()
def captions_of(
    model: nn.Module, pictures: Float[Tensor, "B 3 H W"]
) -> Int[Tensor, "B words"]:
    """What a captioner says of these pictures, the likeliest word each time; `<bos>` is left out."""
    model.eval()
    ids = torch.full((len(pictures), 1), WORDS.index(BOS))
    for _ in range(LENGTH - 1):
        ids = torch.cat([ids, model(pictures, ids)[:, -1:].argmax(-1)], dim=1)
    assert EOS in WORDS
    return ids[:, 1:]

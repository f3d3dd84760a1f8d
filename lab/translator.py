"""A small translator of the lab's blocks, whole or with one thing missing."""

import math
from typing import Any

import torch
from torch import Tensor, nn

from lab.blocks import (
    Decoder,
    DecoderLayer,
    Encoder,
    EncoderLayer,
    Generator,
    PositionalEncoding,
    TokenEmbedding,
    causal_mask,
    padding_mask,
)

MISSING = ("positions", "causal mask", "residuals")
SIZES = {"d_model": 64, "num_layers": 1, "num_heads": 4, "d_ff": 128, "dropout": 0.0}


class Translator(nn.Module):
    """The whole model, of the lab's blocks.

    Args:
        source_vocab: number of ids of the source language.
        target_vocab: number of ids of the target language.
        max_len: rows of the table of positions.
        pad_id: id of padding, in both languages.
        without: one of MISSING, or "" for the whole model.

    Raises:
        ValueError: if `without` names something else.
    """

    def __init__(
        self, source_vocab: int, target_vocab: int, max_len: int, pad_id: int, without: str = ""
    ) -> None:
        super().__init__()
        if without and without not in MISSING:
            raise ValueError(f"without ({without!r}) must be one of {', '.join(MISSING)}")
        self.pad_id = pad_id
        self.sees_all = without == "causal mask"
        width, layers = SIZES["d_model"], SIZES["num_layers"]
        sizes = (width, SIZES["num_heads"], SIZES["d_ff"], SIZES["dropout"])
        plain = without == "residuals"
        encoder_layer = _PlainEncoderLayer if plain else EncoderLayer
        decoder_layer = _PlainDecoderLayer if plain else DecoderLayer
        table = sinusoids(max_len, width)
        self.source_embedding = TokenEmbedding(source_vocab, width)
        self.target_embedding = TokenEmbedding(target_vocab, width)
        self.positional_encoding = PositionalEncoding(
            torch.zeros_like(table) if without == "positions" else table
        )
        self.encoder = Encoder(lambda: encoder_layer(*sizes), layers)
        self.decoder = Decoder(lambda: decoder_layer(*sizes), layers)
        self.generator = Generator(width, target_vocab)
        self.generator.tie(self.target_embedding.weight)
        for parameter in self.parameters():
            if parameter.dim() == 2:
                nn.init.xavier_uniform_(parameter)
        for embedding in (self.source_embedding, self.target_embedding):
            nn.init.normal_(embedding.weight, std=width**-0.5)

    def encode(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """Memory (B, M, d_model), and where the source is no padding (B, 1, M)."""
        mask = padding_mask(source, self.pad_id)
        return self.encoder(self._placed(self.source_embedding(source)), mask), mask

    def decode(
        self, target: Tensor, memory: Tensor, memory_mask: Tensor, offset: int = 0
    ) -> Tensor:
        """Logits (B, N, target_vocab)."""
        mask = padding_mask(target, self.pad_id)
        if not self.sees_all:
            mask = mask & causal_mask(target.shape[1])
        x = self._placed(self.target_embedding(target), offset)
        return self.generator(self.decoder(x, memory, mask, memory_mask))

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Logits; the target is the decoder's input as it is."""
        return self.decode(target, *self.encode(source))

    def _placed(self, vectors: Tensor, offset: int = 0) -> Tensor:
        return self.positional_encoding(math.sqrt(vectors.shape[-1]) * vectors, offset)


class _PlainEncoderLayer(EncoderLayer):
    """Without residual connections: torch's layer adds x, so x is taken off before."""

    def _sa_block(self, x: Tensor, *given: Any, **named: Any) -> Tensor:
        return super()._sa_block(x, *given, **named) - x

    def _ff_block(self, x: Tensor) -> Tensor:
        return super()._ff_block(x) - x


class _PlainDecoderLayer(DecoderLayer):
    """Without residual connections."""

    def _sa_block(self, x: Tensor, *given: Any, **named: Any) -> Tensor:
        return super()._sa_block(x, *given, **named) - x

    def _mha_block(self, x: Tensor, *given: Any, **named: Any) -> Tensor:
        return super()._mha_block(x, *given, **named) - x

    def _ff_block(self, x: Tensor) -> Tensor:
        return super()._ff_block(x) - x


def sinusoids(n: int, d_model: int) -> Tensor:
    """The paper's table of positions, (n, d_model)."""
    rates = 10000 ** (-torch.arange(0, d_model, 2) / d_model)
    angles = torch.arange(n).unsqueeze(1) * rates
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)

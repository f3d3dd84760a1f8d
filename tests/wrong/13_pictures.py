"""Wrong answers to the exercise on pictures that nobody gets a name for; all must lose."""

import copy

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
    causal_mask,
)


@variant("patchify")
def order_of_the_first_picture_only(pictures, patch_size):
    b, c, h, w = pictures.shape
    if patch_size < 1 or h % patch_size or w % patch_size:
        raise ValueError("no whole number of patches")
    x = pictures.reshape(b, c, h // patch_size, patch_size, w // patch_size, patch_size)
    x = x.permute(0, 2, 4, 1, 3, 5).reshape(b, -1, c * patch_size**2)
    return x[:1].expand(b, -1, -1)


@variant("unpatchify")
def as_if_square(patches, patch_size, height, width):
    side = int(patches.shape[1] ** 0.5)
    x = patches.reshape(len(patches), side, -1, patches.shape[2])
    x = x.reshape(len(patches), side, x.shape[2], -1, patch_size, patch_size)
    return x.permute(0, 3, 1, 4, 2, 5).reshape(len(patches), -1, height, width)


@variant("convolved")
def one_channel_for_all(pictures, weight, bias, patch_size):
    kernel = weight.reshape(len(weight), -1, patch_size, patch_size)
    kernel = kernel.mean(1, keepdim=True).expand_as(kernel)
    return F.conv2d(pictures, kernel, bias, stride=patch_size).flatten(2).transpose(1, 2)


@variant("patch-encoder", target="PatchEncoder.__init__")
def one_layer_whatever_is_asked_for(
    self, patch_dim, num_patches, d_model, num_layers, num_heads, d_ff, dropout=0.0
):
    nn.Module.__init__(self)
    self.patch_embedding = nn.Linear(patch_dim, d_model)
    self.class_token = nn.Parameter(0.02 * torch.randn(d_model))
    self.positions = nn.Parameter(0.02 * torch.randn(1 + num_patches, d_model))
    self.stack = Encoder(
        lambda: EncoderLayer(d_model, num_heads, d_ff, dropout, norm_first=True),
        1,
        LayerNorm(d_model),
    )


@variant("patch-encoder", target="PatchEncoder.forward")
def a_class_token_of_zeros(self, patches):
    x = self.patch_embedding(patches)
    first = 0 * self.class_token.expand(len(x), 1, -1)
    return self.stack(torch.cat([first, x], dim=1) + self.positions)


@variant("relative-index")
def clipped_at_the_table(height, width, largest):
    places = torch.arange(height * width)
    down = places[None, :] // width - places[:, None] // width
    right = places[None, :] % width - places[:, None] % width
    index = (down + largest) * (2 * largest + 1) + right + largest
    return index.clamp(0, (2 * largest + 1) ** 2 - 1)


@variant("relative-index")
def no_more_rows_than_the_picture_has(height, width, largest):
    largest = min(largest, max(height, width) - 1)
    places = torch.arange(height * width)
    down = (places[None, :] // width - places[:, None] // width).clamp(-largest, largest)
    right = (places[None, :] % width - places[:, None] % width).clamp(-largest, largest)
    return (down + largest) * (2 * largest + 1) + right + largest


@variant("hard-attention")
def weights_for_three_only(tokens, kernel, height, width):
    places = torch.arange(height * width)
    down = (places[None, :] // width) - (places[:, None] // width)
    right = (places[None, :] % width) - (places[:, None] % width)
    offsets = [(y, x) for y in (-1, 0, 1) for x in (-1, 0, 1)]
    weights = torch.stack([(down == y) & (right == x) for y, x in offsets]).to(tokens.dtype)
    middle = (kernel.shape[-1] - 1) // 2
    small = kernel[:, :, middle - 1 : middle + 2, middle - 1 : middle + 2]
    seen = weights.unsqueeze(1) @ tokens
    return torch.einsum("hbnd,edh->bne", seen, small.flatten(2)), weights.bool()


@variant("captioner", target="Captioner.decode")
def no_mask_behind_an_offset(self, ids, memory, memory_mask, offset=0):
    x = self.positional_encoding(self.embedding(ids), offset)
    mask = None if offset else causal_mask(ids.shape[1])
    return self.generator(self.decoder(x, memory, mask, memory_mask))


@variant("captioner", target="Captioner.forward")
def first_picture_for_all(self, patches, ids):
    memory, memory_mask = self.encode(patches)
    return self.decode(ids, memory[:1].expand_as(memory), memory_mask)


@variant("captioner", target="Captioner.encode")
def mask_as_wide_as_the_patches(self, patches):
    return (self.encoder(patches), torch.ones(len(patches), 1, patches.shape[1], dtype=torch.bool))


@variant("captioner", target="Captioner.__init__")
def a_copy_of_the_encoder(
    self, encoder, vocab_size, encoding, num_layers, num_heads, d_ff, dropout=0.0
):
    nn.Module.__init__(self)
    width = encoding.shape[1]
    self.encoder = copy.deepcopy(encoder)
    self.embedding = TokenEmbedding(vocab_size, width)
    self.positional_encoding = PositionalEncoding(encoding, dropout)
    self.decoder = Decoder(
        lambda: DecoderLayer(width, num_heads, d_ff, dropout, norm_first=True),
        num_layers,
        LayerNorm(width),
    )
    self.generator = Generator(width, vocab_size)
    self.generator.tie(self.embedding.weight)


@variant("patch-encoder", target="PatchEncoder.__init__")
def nothing_drawn(self, patch_dim, num_patches, d_model, num_layers, num_heads, d_ff, dropout=0.0):
    nn.Module.__init__(self)
    self.patch_embedding = nn.Linear(patch_dim, d_model)
    self.class_token = nn.Parameter(0.02 * torch.ones(d_model))
    self.positions = nn.Parameter(0.02 * torch.ones(1 + num_patches, d_model))
    self.stack = Encoder(
        lambda: EncoderLayer(d_model, num_heads, d_ff, dropout, norm_first=True),
        num_layers,
        LayerNorm(d_model),
    )


class AddsAlone(nn.Module):
    """Adds the positions; its dropout is there, and nothing goes through it."""

    encoding: torch.Tensor

    def __init__(self, encoding, dropout):
        super().__init__()
        self.register_buffer("encoding", encoding)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, offset=0):
        return x + self.encoding[offset : offset + x.shape[1]]


@variant("captioner", target="Captioner.__init__")
def a_sum_with_the_positions_that_is_never_dropped(
    self, encoder, vocab_size, encoding, num_layers, num_heads, d_ff, dropout=0.0
):
    nn.Module.__init__(self)
    width = encoding.shape[1]
    self.encoder = encoder
    self.embedding = TokenEmbedding(vocab_size, width)
    self.positional_encoding = AddsAlone(encoding, dropout)
    self.decoder = Decoder(
        lambda: DecoderLayer(width, num_heads, d_ff, dropout, norm_first=True),
        num_layers,
        LayerNorm(width),
    )
    self.generator = Generator(width, vocab_size)
    self.generator.tie(self.embedding.weight)


@variant("patch-encoder", target="PatchEncoder.__init__")
def one_position_for_all(
    self, patch_dim, num_patches, d_model, num_layers, num_heads, d_ff, dropout=0.0
):
    nn.Module.__init__(self)
    self.patch_embedding = nn.Linear(patch_dim, d_model)
    self.class_token = nn.Parameter(0.02 * torch.randn(d_model))
    self.positions = nn.Parameter((0.02 * torch.randn(d_model)).repeat(1 + num_patches, 1))
    self.stack = Encoder(
        lambda: EncoderLayer(d_model, num_heads, d_ff, dropout, norm_first=True),
        num_layers,
        LayerNorm(d_model),
    )

"""Right answers to the exercise on pictures that are written differently."""

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
from lab.pictures import patchify as cut_by_lab

# 13.1 Cut and put together


@variant("patchify")
def piece_by_piece(pictures, patch_size):
    height, width = pictures.shape[2:]
    if patch_size <= 0 or height % patch_size != 0 or width % patch_size != 0:
        raise ValueError("there is a rest")
    pieces = []
    for top in range(0, height, patch_size):
        for left in range(0, width, patch_size):
            piece = pictures[:, :, top : top + patch_size, left : left + patch_size]
            pieces.append(piece.flatten(1))
    return torch.stack(pieces, dim=1)


@variant("patchify")
def by_windows_along_each_axis(pictures, patch_size):
    if patch_size < 1 or any(side % patch_size for side in pictures.shape[-2:]):
        raise ValueError(patch_size)
    cut = pictures.unfold(2, patch_size, patch_size).unfold(3, patch_size, patch_size)
    return cut.permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(1, 2)


@variant("patchify")
def by_chunks(pictures, patch_size):
    if patch_size < 1:
        raise ValueError(patch_size)
    if any(side % patch_size for side in pictures.shape[2:]):
        raise ValueError("patches do not fill the picture")
    rows = pictures.split(patch_size, dim=2)
    pieces = [piece for row in rows for piece in row.split(patch_size, dim=3)]
    return torch.stack([piece.reshape(len(pictures), -1) for piece in pieces], 1)


@variant("patchify")
def by_two_exchanges(pictures, patch_size):
    b, c, h, w = pictures.shape
    if patch_size < 1 or h % patch_size or w % patch_size:
        raise ValueError(f"{h} x {w}")
    x = pictures.reshape(b, c, h // patch_size, patch_size, w // patch_size, patch_size)
    x = x.transpose(3, 4).flatten(2, 3)  # (B, C, N, p, p)
    return x.transpose(1, 2).flatten(2)


@variant("patchify")
def by_indices(pictures, patch_size):
    _, channels, height, width = pictures.shape
    if patch_size < 1 or height % patch_size or width % patch_size:
        raise ValueError("no whole number of patches")
    inside = torch.arange(patch_size)
    within = (inside[:, None] * width + inside).flatten()
    whole = torch.arange(channels)[:, None] * height * width + within
    tops = torch.arange(0, height, patch_size)[:, None] * width
    corners = (tops + torch.arange(0, width, patch_size)).flatten()
    return pictures.flatten(1)[:, corners[:, None] + whole.flatten()]


@variant("unpatchify")
def rows_joined_then_columns(patches, patch_size, height, width):
    b, n, numbers = patches.shape
    pieces = patches.view(b, n, numbers // patch_size**2, patch_size, patch_size).unbind(1)
    columns = width // patch_size
    rows = [torch.cat(pieces[i : i + columns], -1) for i in range(0, n, columns)]
    return torch.cat(rows, -2)


@variant("unpatchify")
def by_filling(patches, patch_size, height, width):
    channels = patches.shape[2] // patch_size**2
    picture = patches.new_empty(len(patches), channels, height, width)
    n = 0
    for top in range(0, height, patch_size):
        for left in range(0, width, patch_size):
            piece = patches[:, n].reshape(-1, channels, patch_size, patch_size)
            picture[:, :, top : top + patch_size, left : left + patch_size] = piece
            n += 1
    return picture


@variant("unpatchify")
def by_exchanges(patches, patch_size, height, width):
    x = patches.unflatten(1, (height // patch_size, width // patch_size))
    x = x.unflatten(3, (-1, patch_size, patch_size))  # (B, rows, columns, C, p, p)
    x = x.movedim(3, 1).transpose(3, 4)  # (B, C, rows, p, columns, p)
    return x.flatten(4).flatten(2, 3)


# 13.2 One layer, two names


@variant("convolved")
def by_a_module(pictures, weight, bias, patch_size):
    kernel = weight.unflatten(1, (pictures.shape[1], patch_size, patch_size))
    maps = torch.conv2d(pictures, kernel, bias, (patch_size, patch_size))
    return maps.reshape(len(pictures), len(weight), -1).permute(0, 2, 1)


@variant("convolved")
def channels_last_at_the_end(pictures, weight, bias, patch_size):
    kernel = weight.view(weight.shape[0], pictures.shape[1], patch_size, patch_size)
    maps = F.conv2d(input=pictures, weight=kernel, stride=patch_size)
    return maps.permute(0, 2, 3, 1).flatten(1, 2) + bias


@variant("convolved")
def with_a_layer_that_is_lent_its_numbers(pictures, weight, bias, patch_size):
    kernel = weight.reshape(len(weight), -1, patch_size, patch_size)
    layer = nn.Conv2d(kernel.shape[1], len(weight), patch_size, stride=patch_size)
    numbers = {"weight": kernel, "bias": bias}
    maps = torch.func.functional_call(layer, numbers, (pictures,))
    return torch.einsum("bdn->bnd", maps.flatten(2))


# 13.3 Patches into an encoder


@variant("patch-encoder", target="PatchEncoder.__init__")
def with_a_function_that_makes_layers(
    self, patch_dim, num_patches, d_model, num_layers, num_heads, d_ff, dropout=0.0
):
    nn.Module.__init__(self)

    def layer():
        return EncoderLayer(d_model, num_heads, d_ff, dropout=dropout, norm_first=True)

    self.stack = Encoder(layer, num_layers, norm=LayerNorm(d_model))
    self.patch_embedding = nn.Linear(in_features=patch_dim, out_features=d_model)
    self.class_token = nn.Parameter(torch.empty(d_model))
    self.positions = nn.Parameter(torch.empty(num_patches + 1, d_model))
    nn.init.normal_(self.class_token, std=0.02)
    nn.init.trunc_normal_(self.positions, std=0.02)


@variant("patch-encoder", target="PatchEncoder.forward")
def positions_added_apart(self, patches):
    x = self.patch_embedding(patches) + self.positions[1:]
    first = (self.class_token + self.positions[0]).repeat(patches.size(0), 1, 1)
    return self.stack(torch.cat((first, x), 1))


@variant("patch-encoder", target="PatchEncoder.forward")
def layer_by_layer(self, patches):
    batch = patches.shape[0]
    x = F.linear(patches, self.patch_embedding.weight, self.patch_embedding.bias)
    x = torch.hstack([self.class_token[None, None].expand(batch, -1, -1), x])
    x = x + self.positions[None]
    seen = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool)
    for layer in self.stack.layers:
        x = layer(x, seen)
    return self.stack.norm(x)


# 13.4 Shuffle the patches


@variant("predicted-survivors")
def all_survive():
    return dict.fromkeys(("left of, one order for all", "left of", "shape", "colour"), "survives")


@variant("predicted-survivors")
def all_is_lost():
    return {
        "colour": "is lost",
        "shape": "is lost",
        "left of": "is lost",
        "left of, one order for all": "is lost",
    }


@variant("predicted-survivors")
def as_it_comes_out():
    fates = {"colour": "survives", "shape": "survives", "left of": "is lost"}
    fates["left of, one order for all"] = "survives"
    return fates


@variant("measured-shuffles")
def another_machine():
    return {
        "each its own": {"colour": 0.998, "shape": 0.951, "left of": 0.52},
        "as they are": {"shape": 0.96, "left of": 0.999, "colour": 1.0},
        "one order for all": {"colour": 0.999, "shape": 0.94, "left of": 0.998},
    }


@variant("measured-shuffles")
def whole_numbers_among_them():
    return {
        "as they are": {"colour": 1, "shape": 1, "left of": 1},
        "one order for all": {"colour": 1, "shape": 1, "left of": 1},
        "each its own": {"colour": 1, "shape": 1, "left of": 0.57},
    }


@variant("measured-shuffles")
def built_from_rows():
    names = ("colour", "shape", "left of")
    rows = {
        "as they are": (1.0, 0.99, 1.0),
        "one order for all": (1.0, 0.98, 1.0),
        "each its own": (0.99, 0.97, 0.48),
    }
    return {setting: dict(zip(names, row, strict=True)) for setting, row in rows.items()}


# 13.5 How far, in two directions


@variant("relative-index")
def pair_by_pair(height, width, largest):
    def clip(distance):
        return max(-largest, min(largest, distance)) + largest

    places = [(row, column) for row in range(height) for column in range(width)]
    side = 2 * largest + 1
    return torch.tensor(
        [[clip(y - row) * side + clip(x - column) for y, x in places] for row, column in places]
    )


@variant("relative-index")
def by_a_grid(height, width, largest):
    grid = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    places = torch.stack([one.reshape(-1) for one in grid])  # (2, N)
    steps = (places.unsqueeze(1) - places.unsqueeze(2)).clip(-largest, largest) + largest
    return steps[0] * (1 + 2 * largest) + steps[1]


@variant("relative-index")
def by_quotient_and_rest(height, width, largest):
    n = torch.arange(height * width)
    row = torch.div(n, width, rounding_mode="floor")
    column = torch.remainder(n, width)
    down = torch.clamp(row - row.unsqueeze(1), min=-largest, max=largest)
    right = torch.clamp(column - column.unsqueeze(1), min=-largest, max=largest)
    return (2 * largest + 1) * (down + largest) + (right + largest)


# 13.6 Attention as a convolution


@variant("hard-attention")
def head_by_head(tokens, kernel, height, width):
    size, n = kernel.shape[-1], height * width
    output, weights = 0, []
    for a in range(size):
        for b in range(size):
            head = torch.zeros(n, n, dtype=tokens.dtype)
            for i in range(n):
                row, column = i // width + a - size // 2, i % width + b - size // 2
                if 0 <= row < height and 0 <= column < width:
                    head[i, row * width + column] = 1.0
            output = output + head @ tokens @ kernel[:, :, a, b].T
            weights.append(head)
    return output, torch.stack(weights) > 0


@variant("hard-attention")
def shifts_of_rows_and_columns(tokens, kernel, height, width):
    size = kernel.shape[-1]
    heads = []
    for a in range(size):
        down = torch.eye(height, dtype=tokens.dtype).new_zeros(height, height)
        for i in range(height):
            if 0 <= i + a - size // 2 < height:
                down[i, i + a - size // 2] = 1
        for b in range(size):
            right = torch.zeros(width, width, dtype=tokens.dtype)
            for i in range(width):
                if 0 <= i + b - size // 2 < width:
                    right[i, i + b - size // 2] = 1
            heads.append(torch.kron(down, right))
    weights = torch.stack(heads)
    matrices = kernel.permute(2, 3, 1, 0).flatten(0, 1)  # (heads, D, E)
    return sum(w @ tokens @ m for w, m in zip(weights, matrices, strict=True)), weights == 1


@variant("hard-attention")
def by_a_softmax(tokens, kernel, height, width):
    size = kernel.shape[-1]
    n = torch.arange(height * width)
    y = (n // width)[None] - (n // width)[:, None] + size // 2
    x = (n % width)[None] - (n % width)[:, None] + size // 2
    there = (y >= 0) & (y < size) & (x >= 0) & (x < size)
    head = torch.where(there, y * size + x, -1)
    seen = head == torch.arange(size * size)[:, None, None]  # (heads, N, N)
    scores = torch.zeros(seen.shape, dtype=tokens.dtype).masked_fill(~seen, -torch.inf)
    weights = scores.softmax(-1).nan_to_num(0.0)
    moved = torch.einsum("hnm,bmd->bnhd", weights, tokens)
    return torch.einsum("bnhd,edh->bne", moved, kernel.flatten(2)), seen


# 13.7 It learns, and hardly sees


@variant("sight-causes")
def turned_round():
    lines = {9: "corner", 7: "blind", 6: "company", 3: "mixed"}
    return {symptom: line for line, symptom in lines.items()}


@variant("sight-causes")
def updated():
    found = {"mixed": 3}
    found.update(company=6, blind=7, corner=9)
    return found


@variant("sight-causes")
def zipped():
    return dict(zip(["mixed", "company", "blind", "corner"], [3, 6, 7, 9], strict=True))


@variant("honest-logits")
def with_a_mask_of_ones(pictures, parts, patch_size):
    x = parts["embed"](cut_by_lab(pictures, patch_size))
    b, n, width = x.shape
    x = torch.cat([parts["class_token"].view(1, 1, width).repeat(b, 1, 1), x], dim=1)
    x = x + parts["positions"][None, : n + 1]
    seen = torch.ones(n + 1, n + 1, dtype=torch.bool)
    return parts["head"](parts["stack"](x, seen)[:, 0])


@variant("honest-logits")
def pictures_one_by_one(pictures, parts, patch_size):
    logits = []
    for picture in pictures:
        patches = parts["embed"](cut_by_lab(picture[None], patch_size))[0]
        x = torch.vstack([parts["class_token"], patches]) + parts["positions"]
        logits.append(parts["head"](parts["stack"](x[None], None))[0, 0])
    return torch.stack(logits)


@variant("honest-logits")
def positions_apart(pictures, parts, patch_size):
    x = parts["embed"](cut_by_lab(pictures, patch_size)) + parts["positions"][1:]
    first = parts["class_token"] + parts["positions"][0]
    x = torch.cat([first.expand(len(x), 1, -1), x], dim=1)
    return parts["head"](parts["stack"](x, None).select(1, 0))


# 13.8 Say what you see


@variant("captioner", target="Captioner.__init__")
def with_a_function_that_makes_decoder_layers(
    self, encoder, vocab_size, encoding, num_layers, num_heads, d_ff, dropout=0.0
):
    nn.Module.__init__(self)
    width = encoding.size(-1)

    def layer():
        return DecoderLayer(width, num_heads, d_ff, dropout=dropout, norm_first=True)

    self.embedding = TokenEmbedding(vocab_size, width)
    self.generator = Generator(width, vocab_size)
    self.generator.weight = self.embedding.weight
    self.decoder = Decoder(layer, num_layers, norm=LayerNorm(width))
    self.positional_encoding = PositionalEncoding(encoding, dropout=dropout)
    self.encoder = encoder


@variant("captioner", target="Captioner.encode")
def a_mask_from_the_memory(self, patches):
    memory = self.encoder(patches)
    return memory, torch.ones_like(memory[:, None, :, 0], dtype=torch.bool)


@variant("captioner", target="Captioner.decode")
def with_a_triangle_of_ones(self, ids, memory, memory_mask, offset=0):
    n = ids.size(1)
    places = torch.arange(n, device=ids.device)
    seen = places[None, :] <= places[:, None]
    x = self.positional_encoding(self.embedding(ids), offset=offset)
    x = self.decoder(x, memory, target_mask=seen, memory_mask=memory_mask)
    return F.linear(x, self.embedding.weight)


@variant("captioner", target="Captioner.forward")
def in_two_lines(self, patches, ids):
    memory, memory_mask = self.encode(patches)
    return self.decode(ids, memory, memory_mask)


# 13.10 Turned by row and column


@variant("rotate-in-two")
def turned_by_complex_numbers(x, columns, leading=0, base=100.0):
    d = x.size(-1)
    if d % 4 != 0:
        raise ValueError(f"{d} features: they have to be a multiple of 4")
    place = torch.arange(x.size(-2) - leading)
    each = base ** (-torch.arange(d // 4, dtype=x.dtype) * 4 / d)
    angles = torch.cat([torch.outer(place // columns, each), torch.outer(place % columns, each)], 1)
    turns = torch.polar(torch.ones_like(angles), angles)
    pairs = torch.view_as_complex(x[..., leading:, :].unflatten(-1, (-1, 2)).contiguous())
    return torch.cat([x[..., :leading, :], torch.view_as_real(pairs * turns).flatten(-2)], -2)


@variant("rotate-in-two")
def turned_half_by_half(x, columns, leading=0, base=100.0):
    if x.shape[-1] % 4:
        raise ValueError(f"d is {x.shape[-1]}, no multiple of 4")

    def turn(half, positions):
        width = half.shape[-1]
        result = torch.empty_like(half)
        for i in range(width // 2):
            angle = positions * base ** (-2 * i / width)
            a, b = half[..., 2 * i], half[..., 2 * i + 1]
            result[..., 2 * i] = a * angle.cos() - b * angle.sin()
            result[..., 2 * i + 1] = a * angle.sin() + b * angle.cos()
        return result

    front, patches = x[..., :leading, :], x[..., leading:, :]
    number = torch.arange(patches.shape[-2])
    first, second = patches.chunk(2, dim=-1)
    rows = (number // columns).to(x.dtype)
    turned = torch.cat([turn(first, rows), turn(second, (number % columns).to(x.dtype))], -1)
    return torch.cat([front, turned], dim=-2)


@variant("rotate-in-two")
def turned_by_a_matrix_for_each_patch(x, columns, leading=0, base=100.0):
    d = x.shape[-1]
    if d % 4:
        raise ValueError(f"cannot share out {d} features")
    turned = []
    for token in range(x.shape[-2]):
        row, column = divmod(max(token - leading, 0), columns)
        blocks = []
        for place in (row, column) if token >= leading else (0, 0):
            for i in range(d // 4):
                angle = torch.tensor(place * base ** (-2 * i / (d // 2)), dtype=x.dtype)
                cos, sin = angle.cos(), angle.sin()
                blocks.append(torch.stack([torch.stack([cos, -sin]), torch.stack([sin, cos])]))
        turned.append(x[..., token, :] @ torch.block_diag(*blocks).T)
    return torch.stack(turned, dim=-2)

"""Wrong answers to the exercise on pictures, as students write them, and what each shows."""

import torch
import torch.nn.functional as F
from torch import nn

from lab.answers import misconception
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
from lab.pictures import patchify as cut_by_lab

# 13.1 Cut and put together


@misconception(
    "patchify",
    id="PI1",
    fails=["patchify-order", "patchify-limits"],
    read="13_pictures#pictures-cut",
)
def cut_by_view_alone(pictures, patch_size):
    """You read off the picture's memory in pieces: a piece is a part of a few rows of pixels, not
    a square. Give patch and place inside it an axis each, and order them first.
    """
    batch, channels, height, width = pictures.shape
    if patch_size < 1 or height % patch_size or width % patch_size:
        raise ValueError("the patches do not fill the picture")
    n = (height // patch_size) * (width // patch_size)
    return pictures.reshape(batch, n, channels * patch_size**2)


@misconception(
    "patchify",
    id="PI2",
    fails=["patchify-order", "patchify-limits"],
    read="13_pictures#pictures-cut",
)
def channels_last_inside(pictures, patch_size):
    """Inside your patches the channels of a pixel stand together; here the whole first channel
    comes first, as in the picture.
    """
    batch, channels, height, width = pictures.shape
    if patch_size < 1 or height % patch_size or width % patch_size:
        raise ValueError("the patches do not fill the picture")
    rows, columns = height // patch_size, width // patch_size
    x = pictures.reshape(batch, channels, rows, patch_size, columns, patch_size)
    return x.permute(0, 2, 4, 3, 5, 1).reshape(batch, rows * columns, -1)


@misconception(
    "patchify",
    id="PI3",
    fails=["patchify-order", "patchify-limits"],
    read="13_pictures#pictures-cut",
)
def column_by_column(pictures, patch_size):
    """Your patches come column by column; they should come row by row."""
    batch, channels, height, width = pictures.shape
    if patch_size < 1 or height % patch_size or width % patch_size:
        raise ValueError("the patches do not fill the picture")
    rows, columns = height // patch_size, width // patch_size
    x = pictures.reshape(batch, channels, rows, patch_size, columns, patch_size)
    return x.permute(0, 4, 2, 1, 3, 5).reshape(batch, rows * columns, -1)


@misconception(
    "patchify",
    id="PI4",
    fails=["patchify-order", "patchify-limits"],
    read="13_pictures#pictures-cut",
)
def patches_turned(pictures, patch_size):
    """Each of your patches is mirrored at its diagonal: inside a patch, too, pixels come row by
    row.
    """
    batch, channels, height, width = pictures.shape
    if patch_size < 1 or height % patch_size or width % patch_size:
        raise ValueError("the patches do not fill the picture")
    rows, columns = height // patch_size, width // patch_size
    x = pictures.reshape(batch, channels, rows, patch_size, columns, patch_size)
    return x.permute(0, 2, 4, 1, 5, 3).reshape(batch, rows * columns, -1)


@misconception(
    "patchify",
    id="PI5",
    fails=["patchify-limits"],
    read="13_pictures#pictures-cut",
)
def rest_cut_off(pictures, patch_size):
    """You cut off what fills no patch; here that is a ValueError, so that nobody loses an edge
    without knowing.
    """
    if patch_size < 1:
        raise ValueError("a patch has at least one pixel")
    rows, columns = pictures.shape[2] // patch_size, pictures.shape[3] // patch_size
    x = pictures[:, :, : rows * patch_size, : columns * patch_size]
    x = x.reshape(len(x), -1, rows, patch_size, columns, patch_size)
    return x.permute(0, 2, 4, 1, 3, 5).reshape(len(x), rows * columns, -1)


@misconception(
    "patchify",
    id="PI6",
    fails=["patchify-order", "patchify-limits"],
    read="13_pictures#pictures-cut",
)
def a_token_for_each_channel(pictures, patch_size):
    """Each channel of a patch is a token of its own; a token should hold all channels."""
    batch, channels, height, width = pictures.shape
    if patch_size < 1 or height % patch_size or width % patch_size:
        raise ValueError("the patches do not fill the picture")
    rows, columns = height // patch_size, width // patch_size
    x = pictures.reshape(batch, channels, rows, patch_size, columns, patch_size)
    return x.permute(0, 1, 2, 4, 3, 5).reshape(batch, channels * rows * columns, -1)


@misconception(
    "patchify",
    id="PI7",
    fails=["patchify-order"],
    read="13_pictures#pictures-cut",
)
def rows_and_columns_exchanged(pictures, patch_size):
    """You have exchanged height and width: there are as many rows of patches as the height
    holds.
    """
    batch, channels, height, width = pictures.shape
    if patch_size < 1 or height % patch_size or width % patch_size:
        raise ValueError("the patches do not fill the picture")
    rows, columns = width // patch_size, height // patch_size
    x = pictures.reshape(batch, channels, rows, patch_size, columns, patch_size)
    return x.permute(0, 2, 4, 1, 3, 5).reshape(batch, rows * columns, -1)


@misconception(
    "unpatchify",
    id="PI8",
    fails=["unpatchify-values"],
    read="13_pictures#pictures-cut",
)
def joined_by_reshape_alone(patches, patch_size, height, width):
    """You lay the patches one after the other in memory; in a picture, a row of pixels passes
    through several patches.
    """
    return patches.reshape(len(patches), -1, height, width)


@misconception(
    "unpatchify",
    id="PI9",
    fails=["unpatchify-values"],
    read="13_pictures#pictures-cut",
)
def axes_in_the_order_of_the_way_there(patches, patch_size, height, width):
    """You order the axes as on the way there; the way back needs the inverse order."""
    rows, columns = height // patch_size, width // patch_size
    x = patches.reshape(len(patches), rows, columns, -1, patch_size, patch_size)
    return x.permute(0, 2, 4, 1, 3, 5).reshape(len(patches), -1, height, width)


@misconception(
    "unpatchify",
    id="PI10",
    fails=["unpatchify-values"],
    read="13_pictures#pictures-cut",
)
def channels_last_on_the_way_back(patches, patch_size, height, width):
    """You take the channels of a pixel to stand together; in a patch the first channel comes
    first, as a whole.
    """
    rows, columns = height // patch_size, width // patch_size
    x = patches.reshape(len(patches), rows, columns, patch_size, patch_size, -1)
    return x.permute(0, 5, 1, 3, 2, 4).reshape(len(patches), -1, height, width)


@misconception(
    "unpatchify",
    id="PI11",
    fails=["unpatchify-values"],
    read="13_pictures#pictures-cut",
)
def height_and_width_exchanged(patches, patch_size, height, width):
    """You have exchanged height and width: as many rows of patches as the height holds."""
    rows, columns = width // patch_size, height // patch_size
    x = patches.reshape(len(patches), rows, columns, -1, patch_size, patch_size)
    return x.permute(0, 3, 1, 4, 2, 5).reshape(len(patches), -1, height, width)


# 13.2 One layer, two names


@misconception(
    "convolved",
    id="PI12",
    fails=["convolved-values"],
    read="13_pictures#pictures-embed",
)
def no_stride(pictures, weight, bias, patch_size):
    """Your kernel moves by one pixel, so your patches overlap: the stride is the patch's side."""
    kernel = weight.reshape(len(weight), -1, patch_size, patch_size)
    return F.conv2d(pictures, kernel, bias).flatten(2).transpose(1, 2)


@misconception(
    "convolved",
    id="PI13",
    fails=["convolved-values"],
    read="13_pictures#pictures-embed",
)
def features_read_as_tokens(pictures, weight, bias, patch_size):
    """You give the map's numbers another shape where two axes have to be exchanged: your tokens
    hold one feature of several patches.
    """
    kernel = weight.reshape(len(weight), -1, patch_size, patch_size)
    maps = F.conv2d(pictures, kernel, bias, stride=patch_size)
    return maps.reshape(len(pictures), -1, len(weight))


@misconception(
    "convolved",
    id="PI14",
    fails=["convolved-values"],
    read="13_pictures#pictures-embed",
)
def kernel_with_channels_last(pictures, weight, bias, patch_size):
    """You read the weight's rows with the channels last; in a patch they come first."""
    kernel = weight.reshape(len(weight), patch_size, patch_size, -1).permute(0, 3, 1, 2)
    return F.conv2d(pictures, kernel, bias, stride=patch_size).flatten(2).transpose(1, 2)


@misconception(
    "convolved",
    id="PI15",
    fails=["convolved-values"],
    read="13_pictures#pictures-embed",
)
def bias_left_out(pictures, weight, bias, patch_size):
    """You leave out the bias."""
    kernel = weight.reshape(len(weight), -1, patch_size, patch_size)
    return F.conv2d(pictures, kernel, stride=patch_size).flatten(2).transpose(1, 2)


@misconception(
    "convolved",
    id="PI16",
    fails=["convolved-values"],
    read="13_pictures#pictures-embed",
)
def map_column_by_column(pictures, weight, bias, patch_size):
    """Your tokens come column by column; patches are numbered row by row."""
    kernel = weight.reshape(len(weight), -1, patch_size, patch_size)
    maps = F.conv2d(pictures, kernel, bias, stride=patch_size)
    return maps.transpose(2, 3).flatten(2).transpose(1, 2)


@misconception(
    "convolved",
    id="PI17",
    fails=["convolved-values"],
    read="13_pictures#pictures-embed",
)
def kernel_turned_round(pictures, weight, bias, patch_size):
    """You turn the kernel round, as in the mathematical convolution; `F.conv2d` does not turn it,
    and neither does the linear layer.
    """
    kernel = weight.reshape(len(weight), -1, patch_size, patch_size).flip(2, 3)
    return F.conv2d(pictures, kernel, bias, stride=patch_size).flatten(2).transpose(1, 2)


# 13.3 Patches into an encoder


@misconception(
    "patch-encoder",
    id="PI18",
    fails=["patch-encoder-values", "patch-encoder-order"],
    read="13_pictures#pictures-encoder",
    target="PatchEncoder.forward",
)
def class_token_at_the_end(self, patches):
    """Your class token stands behind the patches; it should stand in front."""
    x = self.patch_embedding(patches)
    first = self.class_token.expand(len(x), 1, -1)
    return self.stack(torch.cat([x, first], dim=1) + self.positions)


@misconception(
    "patch-encoder",
    id="PI19",
    fails=["patch-encoder-values", "patch-encoder-order"],
    read="13_pictures#pictures-encoder",
    target="PatchEncoder.forward",
)
def class_token_without_a_position(self, patches):
    """You add the positions before the class token is there, so the patches have those of their
    neighbours, and the class token has none.
    """
    x = self.patch_embedding(patches)
    x = x + self.positions[: x.shape[1]]
    first = self.class_token.expand(len(x), 1, -1)
    return self.stack(torch.cat([first, x], dim=1))


@misconception(
    "patch-encoder",
    id="PI20",
    fails=["patch-encoder-values", "patch-encoder-order"],
    read="13_pictures#pictures-encoder",
    target="PatchEncoder.forward",
)
def no_positions(self, patches):
    """You add no positions: your encoder sees a bag of patches."""
    x = self.patch_embedding(patches)
    first = self.class_token.expand(len(x), 1, -1)
    return self.stack(torch.cat([first, x], dim=1))


@misconception(
    "patch-encoder",
    id="PI21",
    fails=["patch-encoder-values", "patch-encoder-order"],
    read="13_pictures#pictures-encoder",
    target="PatchEncoder.forward",
)
def causal_for_pictures(self, patches):
    """You hide later patches from earlier ones; a picture is there all at once, and the class
    token, in front, would see nothing at all.
    """
    x = self.patch_embedding(patches)
    first = self.class_token.expand(len(x), 1, -1)
    x = torch.cat([first, x], dim=1) + self.positions
    return self.stack(x, causal_mask(x.shape[1]))


@misconception(
    "patch-encoder",
    id="PI22",
    fails=["patch-encoder-values", "patch-encoder-order"],
    read="13_pictures#pictures-encoder",
    target="PatchEncoder.forward",
)
def positions_after_the_stack(self, patches):
    """You add the positions to what the stack returns; attention should know them."""
    x = self.patch_embedding(patches)
    first = self.class_token.expand(len(x), 1, -1)
    return self.stack(torch.cat([first, x], dim=1)) + self.positions


@misconception(
    "patch-encoder",
    id="PI23",
    fails=["patch-encoder-values", "patch-encoder-order"],
    read="13_pictures#pictures-encoder",
    target="PatchEncoder.forward",
)
def only_the_class_token(self, patches):
    """You return the class token alone; the vectors of the patches are asked for, too."""
    x = self.patch_embedding(patches)
    first = self.class_token.expand(len(x), 1, -1)
    return self.stack(torch.cat([first, x], dim=1) + self.positions)[:, 0]


@misconception(
    "patch-encoder",
    id="PI24",
    fails=["patch-encoder-values"],
    read="13_pictures#pictures-encoder",
    target="PatchEncoder.__init__",
)
def post_norm(self, patch_dim, num_patches, d_model, num_layers, num_heads, d_ff, dropout=0.0):
    """Your layers are post-norm; this encoder normalises before each sub-layer."""
    nn.Module.__init__(self)
    self.patch_embedding = nn.Linear(patch_dim, d_model)
    self.class_token = nn.Parameter(0.02 * torch.randn(d_model))
    self.positions = nn.Parameter(0.02 * torch.randn(1 + num_patches, d_model))
    self.stack = Encoder(
        lambda: EncoderLayer(d_model, num_heads, d_ff, dropout), num_layers, LayerNorm(d_model)
    )


@misconception(
    "patch-encoder",
    id="PI25",
    fails=["patch-encoder-parts", "patch-encoder-values", "patch-encoder-order"],
    read="13_pictures#pictures-encoder",
    target="PatchEncoder.__init__",
)
def one_position_too_few(
    self, patch_dim, num_patches, d_model, num_layers, num_heads, d_ff, dropout=0.0
):
    """Your table has a position for every patch, and none for the class token."""
    nn.Module.__init__(self)
    self.patch_embedding = nn.Linear(patch_dim, d_model)
    self.class_token = nn.Parameter(0.02 * torch.randn(d_model))
    self.positions = nn.Parameter(0.02 * torch.randn(num_patches, d_model))
    self.stack = Encoder(
        lambda: EncoderLayer(d_model, num_heads, d_ff, dropout, norm_first=True),
        num_layers,
        LayerNorm(d_model),
    )


@misconception(
    "patch-encoder",
    id="PI26",
    fails=["patch-encoder-parts"],
    read="13_pictures#pictures-encoder",
    target="PatchEncoder.__init__",
)
def one_layer_for_all(
    self, patch_dim, num_patches, d_model, num_layers, num_heads, d_ff, dropout=0.0
):
    """Your layers are one and the same, used several times: make a new one at each call."""
    nn.Module.__init__(self)
    self.patch_embedding = nn.Linear(patch_dim, d_model)
    self.class_token = nn.Parameter(0.02 * torch.randn(d_model))
    self.positions = nn.Parameter(0.02 * torch.randn(1 + num_patches, d_model))
    layer = EncoderLayer(d_model, num_heads, d_ff, dropout, norm_first=True)
    self.stack = Encoder(lambda: layer, num_layers, LayerNorm(d_model))


@misconception(
    "patch-encoder",
    id="PI27",
    fails=["patch-encoder-parts"],
    read="13_pictures#pictures-encoder",
    target="PatchEncoder.__init__",
)
def positions_of_zeros(
    self, patch_dim, num_patches, d_model, num_layers, num_heads, d_ff, dropout=0.0
):
    """Your positions begin as zeros, all alike; let chance give each a small vector of its own."""
    nn.Module.__init__(self)
    self.patch_embedding = nn.Linear(patch_dim, d_model)
    self.class_token = nn.Parameter(0.02 * torch.randn(d_model))
    self.positions = nn.Parameter(torch.zeros(1 + num_patches, d_model))
    self.stack = Encoder(
        lambda: EncoderLayer(d_model, num_heads, d_ff, dropout, norm_first=True),
        num_layers,
        LayerNorm(d_model),
    )


@misconception(
    "patch-encoder",
    id="PI27b",
    fails=["patch-encoder-parts"],
    read="13_pictures#pictures-encoder",
    target="PatchEncoder.__init__",
)
def as_large_as_randn(
    self, patch_dim, num_patches, d_model, num_layers, num_heads, d_ff, dropout=0.0
):
    """Your class token and positions begin as large as torch.randn draws them, and drown the
    patches; they begin with small numbers, of about 0.02.
    """
    nn.Module.__init__(self)
    self.patch_embedding = nn.Linear(patch_dim, d_model)
    self.class_token = nn.Parameter(torch.randn(d_model))
    self.positions = nn.Parameter(torch.randn(1 + num_patches, d_model))
    self.stack = Encoder(
        lambda: EncoderLayer(d_model, num_heads, d_ff, dropout, norm_first=True),
        num_layers,
        LayerNorm(d_model),
    )


# 13.4 Shuffle the patches


@misconception(
    "predicted-survivors",
    id="PI28",
    fails=["predicted-survivors-made"],
    read="13_pictures#pictures-shuffle",
)
def one_word_for_all():
    """You predict with a single word; there are four entries, each with its own fate."""
    return "survives"


@misconception(
    "predicted-survivors",
    id="PI29",
    fails=["predicted-survivors-made"],
    read="13_pictures#pictures-shuffle",
)
def yes_and_no():
    """Your entries are True and False; each should be one of the texts in FATES."""
    return {
        "colour": True,
        "shape": True,
        "left of": False,
        "left of, one order for all": False,
    }


@misconception(
    "predicted-survivors",
    id="PI30",
    fails=["predicted-survivors-made"],
    read="13_pictures#pictures-shuffle",
)
def three_of_four():
    """You predict three entries of four: the one with one order for all is missing."""
    return {"colour": "survives", "shape": "survives", "left of": "is lost"}


@misconception(
    "measured-shuffles",
    id="PI31",
    fails=["measured-shuffles-consistent"],
    read="13_pictures#pictures-shuffle",
)
def in_percent():
    """Your shares are percentages; the cell prints shares of 1."""
    return {
        "as they are": {"colour": 100.0, "shape": 99.6, "left of": 100.0},
        "one order for all": {"colour": 100.0, "shape": 99.9, "left of": 100.0},
        "each its own": {"colour": 100.0, "shape": 100.0, "left of": 56.0},
    }


@misconception(
    "measured-shuffles",
    id="PI32",
    fails=["measured-shuffles-consistent"],
    read="13_pictures#pictures-shuffle",
)
def settings_exchanged():
    """Your two ways of shuffling are exchanged: one order for all loses nothing."""
    return {
        "as they are": {"colour": 1.0, "shape": 0.996, "left of": 1.0},
        "one order for all": {"colour": 1.0, "shape": 1.0, "left of": 0.56},
        "each its own": {"colour": 1.0, "shape": 0.999, "left of": 1.0},
    }


@misconception(
    "measured-shuffles",
    id="PI33",
    fails=["measured-shuffles-consistent"],
    read="13_pictures#pictures-shuffle",
)
def expected_and_not_measured():
    """Your numbers say that any shuffling loses shape and place: that is what one expects. Return
    what the cell printed.
    """
    return {
        "as they are": {"colour": 1.0, "shape": 1.0, "left of": 1.0},
        "one order for all": {"colour": 1.0, "shape": 0.33, "left of": 0.5},
        "each its own": {"colour": 1.0, "shape": 0.33, "left of": 0.5},
    }


@misconception(
    "measured-shuffles",
    id="PI34",
    fails=["measured-shuffles-consistent"],
    read="13_pictures#pictures-shuffle",
)
def one_number_for_each_setting():
    """You give one share for each setting; there are three questions, and they go apart."""
    return {"as they are": 1.0, "one order for all": 1.0, "each its own": 0.85}


# 13.5 How far, in two directions


@misconception(
    "relative-index",
    id="PI35",
    fails=["relative-index-values"],
    read="13_pictures#pictures-relative",
)
def query_minus_key(height, width, largest):
    """Your distances go from the key to the query, so left and right are exchanged."""
    places = torch.arange(height * width)
    rows, columns = places // width, places % width
    down = (rows[:, None] - rows[None, :]).clamp(-largest, largest)
    right = (columns[:, None] - columns[None, :]).clamp(-largest, largest)
    return (down + largest) * (2 * largest + 1) + right + largest


@misconception(
    "relative-index",
    id="PI36",
    fails=["relative-index-values"],
    read="13_pictures#pictures-relative",
)
def divided_by_the_height(height, width, largest):
    """You divide a patch's number by the height; a row holds as many patches as the grid is
    wide.
    """
    places = torch.arange(height * width)
    rows, columns = places // height, places % height
    down = (rows[None, :] - rows[:, None]).clamp(-largest, largest)
    right = (columns[None, :] - columns[:, None]).clamp(-largest, largest)
    return (down + largest) * (2 * largest + 1) + right + largest


@misconception(
    "relative-index",
    id="PI37",
    fails=["relative-index-values"],
    read="13_pictures#pictures-relative",
)
def never_clipped(height, width, largest):
    """You do not clip: far pairs get the number of another pair, or one that no table has."""
    places = torch.arange(height * width)
    rows, columns = places // width, places % width
    down = rows[None, :] - rows[:, None]
    right = columns[None, :] - columns[:, None]
    return (down + largest) * (2 * largest + 1) + right + largest


@misconception(
    "relative-index",
    id="PI38",
    fails=["relative-index-values"],
    read="13_pictures#pictures-relative",
)
def distance_in_a_line(height, width, largest):
    """You measure distances between the numbers of patches, along one line: to you, the end of a
    row is beside the beginning of the next.
    """
    places = torch.arange(height * width)
    distance = places[None, :] - places[:, None]
    down = torch.div(distance, width, rounding_mode="floor").clamp(-largest, largest)
    right = (distance % width).clamp(-largest, largest)
    return (down + largest) * (2 * largest + 1) + right + largest


@misconception(
    "relative-index",
    id="PI39",
    fails=["relative-index-values"],
    read="13_pictures#pictures-relative",
)
def sizes_without_signs(height, width, largest):
    """Your distances have no sign: left and right, above and below get the same number."""
    places = torch.arange(height * width)
    rows, columns = places // width, places % width
    down = (rows[None, :] - rows[:, None]).abs().clamp(max=largest)
    right = (columns[None, :] - columns[:, None]).abs().clamp(max=largest)
    return (down + largest) * (2 * largest + 1) + right + largest


@misconception(
    "relative-index",
    id="PI40",
    fails=["relative-index-values"],
    read="13_pictures#pictures-relative",
)
def columns_first(height, width, largest):
    """Your number begins with the columns; in the formula the rows come first."""
    places = torch.arange(height * width)
    rows, columns = places // width, places % width
    down = (rows[None, :] - rows[:, None]).clamp(-largest, largest)
    right = (columns[None, :] - columns[:, None]).clamp(-largest, largest)
    return (right + largest) * (2 * largest + 1) + down + largest


# 13.6 Attention as a convolution


@misconception(
    "hard-attention",
    id="PI41",
    fails=["hard-attention-masks", "hard-attention-output"],
    read="13_pictures#pictures-convolution",
)
def query_where_the_key_should_be(tokens, kernel, height, width):
    """Your heads look the other way: up where they should look down, to the left for the right."""
    size = kernel.shape[-1]
    places = torch.arange(height * width)
    down = (places[:, None] // width) - (places[None, :] // width)
    right = (places[:, None] % width) - (places[None, :] % width)
    offsets = [(a - size // 2, b - size // 2) for a in range(size) for b in range(size)]
    weights = torch.stack([(down == y) & (right == x) for y, x in offsets]).to(tokens.dtype)
    seen = weights.unsqueeze(1) @ tokens
    return torch.einsum("hbnd,edh->bne", seen, kernel.flatten(2)), weights.bool()


@misconception(
    "hard-attention",
    id="PI42",
    fails=["hard-attention-masks", "hard-attention-output"],
    read="13_pictures#pictures-convolution",
)
def along_one_line(tokens, kernel, height, width):
    """You compare the numbers of patches: at the right edge, your heads go on in the next row."""
    size = kernel.shape[-1]
    places = torch.arange(height * width)
    distance = places[None, :] - places[:, None]
    offsets = [(a - size // 2, b - size // 2) for a in range(size) for b in range(size)]
    weights = torch.stack([distance == y * width + x for y, x in offsets]).to(tokens.dtype)
    seen = weights.unsqueeze(1) @ tokens
    return torch.einsum("hbnd,edh->bne", seen, kernel.flatten(2)), weights.bool()


@misconception(
    "hard-attention",
    id="PI43",
    fails=["hard-attention-masks", "hard-attention-output"],
    read="13_pictures#pictures-convolution",
)
def far_patches_clipped(tokens, kernel, height, width):
    """You clip distances, so the outer heads look at several patches, all far ones among them."""
    size = kernel.shape[-1]
    places = torch.arange(height * width)
    down = (places[None, :] // width) - (places[:, None] // width)
    right = (places[None, :] % width) - (places[:, None] % width)
    down, right = (one.clamp(-(size // 2), size // 2) for one in (down, right))
    offsets = [(a - size // 2, b - size // 2) for a in range(size) for b in range(size)]
    weights = torch.stack([(down == y) & (right == x) for y, x in offsets]).to(tokens.dtype)
    seen = weights.unsqueeze(1) @ tokens
    return torch.einsum("hbnd,edh->bne", seen, kernel.flatten(2)), weights.bool()


@misconception(
    "hard-attention",
    id="PI44",
    fails=["hard-attention-masks", "hard-attention-output"],
    read="13_pictures#pictures-convolution",
)
def edges_repeated(tokens, kernel, height, width):
    """At the edge your heads look at the last patch once more; outside there is
    nothing to see.
    """
    size = kernel.shape[-1]
    places = torch.arange(height * width)
    rows, columns = places // width, places % width
    weights = tokens.new_zeros(size * size, len(places), len(places))
    for a in range(size):
        for b in range(size):
            y = (rows + a - size // 2).clamp(0, height - 1)
            x = (columns + b - size // 2).clamp(0, width - 1)
            weights[a * size + b, places, y * width + x] = 1
    seen = weights.unsqueeze(1) @ tokens
    return torch.einsum("hbnd,edh->bne", seen, kernel.flatten(2)), weights.bool()


@misconception(
    "hard-attention",
    id="PI45",
    fails=["hard-attention-masks", "hard-attention-output"],
    read="13_pictures#pictures-convolution",
)
def round_the_edge(tokens, kernel, height, width):
    """Your heads go round: right of the last column comes the first. Outside there is
    nothing to see.
    """
    size = kernel.shape[-1]
    places = torch.arange(height * width)
    rows, columns = places // width, places % width
    weights = tokens.new_zeros(size * size, len(places), len(places))
    for a in range(size):
        for b in range(size):
            y = (rows + a - size // 2) % height
            x = (columns + b - size // 2) % width
            weights[a * size + b, places, y * width + x] = 1
    seen = weights.unsqueeze(1) @ tokens
    return torch.einsum("hbnd,edh->bne", seen, kernel.flatten(2)), weights.bool()


@misconception(
    "hard-attention",
    id="PI46",
    fails=["hard-attention-masks", "hard-attention-output"],
    read="13_pictures#pictures-convolution",
)
def heads_column_by_column(tokens, kernel, height, width):
    """Your heads are numbered column by column; head a K + b has the kernel's row a."""
    size = kernel.shape[-1]
    places = torch.arange(height * width)
    down = (places[None, :] // width) - (places[:, None] // width)
    right = (places[None, :] % width) - (places[:, None] % width)
    offsets = [(a - size // 2, b - size // 2) for b in range(size) for a in range(size)]
    weights = torch.stack([(down == y) & (right == x) for y, x in offsets]).to(tokens.dtype)
    seen = weights.unsqueeze(1) @ tokens
    return torch.einsum("hbnd,edh->bne", seen, kernel.flatten(2)), weights.bool()


@misconception(
    "hard-attention",
    id="PI47",
    fails=["hard-attention-output"],
    read="13_pictures#pictures-convolution",
)
def matrices_turned_round(tokens, kernel, height, width):
    """You turn the kernel round: head a K + b has the matrix of the kernel at row a, column b."""
    size = kernel.shape[-1]
    places = torch.arange(height * width)
    down = (places[None, :] // width) - (places[:, None] // width)
    right = (places[None, :] % width) - (places[:, None] % width)
    offsets = [(a - size // 2, b - size // 2) for a in range(size) for b in range(size)]
    weights = torch.stack([(down == y) & (right == x) for y, x in offsets]).to(tokens.dtype)
    seen = weights.unsqueeze(1) @ tokens
    return torch.einsum("hbnd,edh->bne", seen, kernel.flatten(2).flip(2)), weights.bool()


@misconception(
    "hard-attention",
    id="PI48",
    fails=["hard-attention-output"],
    read="13_pictures#pictures-convolution",
)
def mean_over_heads(tokens, kernel, height, width):
    """You take the mean over the heads; a convolution is their sum."""
    size = kernel.shape[-1]
    places = torch.arange(height * width)
    down = (places[None, :] // width) - (places[:, None] // width)
    right = (places[None, :] % width) - (places[:, None] % width)
    offsets = [(a - size // 2, b - size // 2) for a in range(size) for b in range(size)]
    weights = torch.stack([(down == y) & (right == x) for y, x in offsets]).to(tokens.dtype)
    seen = weights.unsqueeze(1) @ tokens
    return torch.einsum("hbnd,edh->bne", seen, kernel.flatten(2)) / len(weights), weights.bool()


# 13.7 It learns, and hardly sees


@misconception(
    "sight-causes",
    id="PI49",
    fails=["sight-causes-lines"],
    read="13_pictures#pictures-cut",
)
def mixed_where_counted():
    """You suspect the number of patches, which is right. Which line gives axes another name
    without moving them?
    """
    return {"mixed": 2, "company": 6, "blind": 7, "corner": 9}


@misconception(
    "sight-causes",
    id="PI50",
    fails=["sight-causes-lines"],
    read="13_pictures#pictures-encoder",
)
def company_where_the_class_token_is():
    """You suspect the class token, which is the same for all pictures. What is counted along the
    batch?
    """
    return {"mixed": 3, "company": 5, "blind": 7, "corner": 9}


@misconception(
    "sight-causes",
    id="PI51",
    fails=["sight-causes-lines"],
    read="13_pictures#pictures-encoder",
)
def blind_in_the_stack():
    """You suspect the stack, which does what its mask says. Who made the mask?"""
    return {"mixed": 3, "company": 6, "blind": 8, "corner": 9}


@misconception(
    "sight-causes",
    id="PI52",
    fails=["sight-causes-lines"],
    read="13_pictures#pictures-encoder",
)
def corner_where_they_are_joined():
    """You suspect the joining: the class token stands in front, as it should. Whose vector does the
    head read?
    """
    return {"mixed": 3, "company": 6, "blind": 7, "corner": 5}


@misconception(
    "honest-logits",
    id="PI53",
    fails=["honest-logits-values"],
    read="13_pictures#pictures-cut",
)
def still_cut_by_reshape(pictures, parts, patch_size):
    """Your patches are pieces of the picture's memory, from its whole width."""
    n = (pictures.shape[2] // patch_size) * (pictures.shape[3] // patch_size)
    x = parts["embed"](pictures.reshape(len(pictures), n, -1))
    x = torch.cat([parts["class_token"].expand(len(x), 1, -1), x], dim=1)
    x = parts["stack"](x + parts["positions"], None)
    return parts["head"](x[:, 0])


@misconception(
    "honest-logits",
    id="PI54",
    fails=["honest-logits-values"],
    read="13_pictures#pictures-encoder",
)
def positions_by_picture(pictures, parts, patch_size):
    """You give each picture of the batch one position; each token should have its own."""
    x = parts["embed"](cut_by_lab(pictures, patch_size))
    x = torch.cat([parts["class_token"].expand(len(x), 1, -1), x], dim=1)
    x = parts["stack"](x + parts["positions"][: len(x)].unsqueeze(1), None)
    return parts["head"](x[:, 0])


@misconception(
    "honest-logits",
    id="PI55",
    fails=["honest-logits-values"],
    read="13_pictures#pictures-encoder",
)
def a_class_token_that_sees_nobody(pictures, parts, patch_size):
    """The class token comes first, and your mask hides all that comes later: all pictures look
    the same to it.
    """
    x = parts["embed"](cut_by_lab(pictures, patch_size))
    x = torch.cat([parts["class_token"].expand(len(x), 1, -1), x], dim=1)
    x = parts["stack"](x + parts["positions"], causal_mask(x.shape[1]))
    return parts["head"](x[:, 0])


@misconception(
    "honest-logits",
    id="PI56",
    fails=["honest-logits-values"],
    read="13_pictures#pictures-encoder",
)
def first_patch_for_class_token(pictures, parts, patch_size):
    """Your head reads the first patch; the class token is token 0."""
    x = parts["embed"](cut_by_lab(pictures, patch_size))
    x = torch.cat([parts["class_token"].expand(len(x), 1, -1), x], dim=1)
    x = parts["stack"](x + parts["positions"], None)
    return parts["head"](x[:, 1])


@misconception(
    "honest-logits",
    id="PI57",
    fails=["honest-logits-values"],
    read="13_pictures#pictures-pooling",
)
def mean_of_all_tokens(pictures, parts, patch_size):
    """Your head reads the mean of all tokens. That would do, too, but it is another model."""
    x = parts["embed"](cut_by_lab(pictures, patch_size))
    x = torch.cat([parts["class_token"].expand(len(x), 1, -1), x], dim=1)
    x = parts["stack"](x + parts["positions"], None)
    return parts["head"](x.mean(1))


# 13.8 Say what you see


@misconception(
    "captioner",
    id="PI58",
    fails=["captioner-parts", "captioner-values"],
    read="13_pictures#pictures-captions",
    target="Captioner.__init__",
)
def not_tied(self, encoder, vocab_size, encoding, num_layers, num_heads, d_ff, dropout=0.0):
    """Your generator has a matrix of its own; tie it to the embedding."""
    nn.Module.__init__(self)
    d_model = encoding.shape[1]
    self.encoder = encoder
    self.embedding = TokenEmbedding(vocab_size, d_model)
    self.positional_encoding = PositionalEncoding(encoding, dropout)
    self.decoder = Decoder(
        lambda: DecoderLayer(d_model, num_heads, d_ff, dropout, norm_first=True),
        num_layers,
        LayerNorm(d_model),
    )
    self.generator = Generator(d_model, vocab_size)


@misconception(
    "captioner",
    id="PI59",
    fails=["captioner-values"],
    read="13_pictures#pictures-captions",
    target="Captioner.__init__",
)
def post_norm_decoder(
    self, encoder, vocab_size, encoding, num_layers, num_heads, d_ff, dropout=0.0
):
    """Your layers are post-norm; this decoder normalises before each sub-layer."""
    nn.Module.__init__(self)
    d_model = encoding.shape[1]
    self.encoder = encoder
    self.embedding = TokenEmbedding(vocab_size, d_model)
    self.positional_encoding = PositionalEncoding(encoding, dropout)
    self.decoder = Decoder(
        lambda: DecoderLayer(d_model, num_heads, d_ff, dropout),
        num_layers,
        LayerNorm(d_model),
    )
    self.generator = Generator(d_model, vocab_size)
    self.generator.tie(self.embedding.weight)


@misconception(
    "captioner",
    id="PI60",
    fails=["captioner-parts"],
    read="13_pictures#pictures-captions",
    target="Captioner.__init__",
)
def dropout_forgotten(
    self, encoder, vocab_size, encoding, num_layers, num_heads, d_ff, dropout=0.0
):
    """Your layers drop nothing: hand the rate on to them."""
    nn.Module.__init__(self)
    d_model = encoding.shape[1]
    self.encoder = encoder
    self.embedding = TokenEmbedding(vocab_size, d_model)
    self.positional_encoding = PositionalEncoding(encoding, dropout)
    self.decoder = Decoder(
        lambda: DecoderLayer(d_model, num_heads, d_ff, 0.0, norm_first=True),
        num_layers,
        LayerNorm(d_model),
    )
    self.generator = Generator(d_model, vocab_size)
    self.generator.tie(self.embedding.weight)


@misconception(
    "captioner",
    id="PI61",
    fails=["captioner-values", "captioner-prefix"],
    read="13_pictures#pictures-captions",
    target="Captioner.encode",
)
def causal_for_the_memory(self, patches):
    """Your mask lets the first words see the first patches only. A picture is there all at once:
    hide nothing.
    """
    memory = self.encoder(patches)
    return memory, causal_mask(memory.shape[1]).expand(len(memory), -1, -1)


@misconception(
    "captioner",
    id="PI62",
    fails=["captioner-values", "captioner-prefix"],
    read="13_pictures#pictures-captions",
    target="Captioner.encode",
)
def true_means_hidden(self, patches):
    """Your mask is False where the picture may be seen: here True means that it may."""
    memory = self.encoder(patches)
    return memory, torch.zeros(len(memory), 1, memory.shape[1], dtype=torch.bool)


@misconception(
    "captioner",
    id="PI63",
    fails=["captioner-values", "captioner-prefix"],
    read="13_pictures#pictures-captions",
    target="Captioner.decode",
)
def no_causal_mask(self, ids, memory, memory_mask, offset=0):
    """Your words see the words after them, which they should predict."""
    x = self.positional_encoding(self.embedding(ids), offset)
    return self.generator(self.decoder(x, memory, None, memory_mask))


@misconception(
    "captioner",
    id="PI64",
    fails=["captioner-values"],
    read="13_pictures#pictures-captions",
    target="Captioner.decode",
)
def offset_left_out(self, ids, memory, memory_mask, offset=0):
    """You do not hand the offset on, so new words get the positions of the first ones."""
    x = self.positional_encoding(self.embedding(ids))
    mask = causal_mask(ids.shape[1]).to(ids.device)
    return self.generator(self.decoder(x, memory, mask, memory_mask))


@misconception(
    "captioner",
    id="PI65",
    fails=["captioner-values"],
    read="13_pictures#pictures-captions",
    target="Captioner.decode",
)
def memory_mask_ignored(self, ids, memory, memory_mask, offset=0):
    """You do not hand the memory's mask on to the decoder."""
    x = self.positional_encoding(self.embedding(ids), offset)
    mask = causal_mask(ids.shape[1]).to(ids.device)
    return self.generator(self.decoder(x, memory, mask, None))


@misconception(
    "captioner",
    id="PI66",
    fails=["captioner-values"],
    read="13_pictures#pictures-captions",
    target="Captioner.forward",
)
def one_vector_for_the_picture(self, patches, ids):
    """You hand the mean of the memory on, one vector for the whole picture; each word should look
    at the patches for itself.
    """
    memory, memory_mask = self.encode(patches)
    return self.decode(ids, memory.mean(1, keepdim=True), memory_mask[:, :, :1])


# 13.10 Turned by row and column


@misconception(
    "rotate-in-two",
    id="TRC1",
    fails=["rotate-in-two-values", "rotate-in-two-leading", "rotate-in-two-distances"],
    read="13_pictures#pictures-relative",
)
def halves_exchanged(x, columns, leading=0, base=100.0):
    """Your first half turns by the column and the second by the row; it is the other way round."""
    d = x.shape[-1]
    if d % 4:
        raise ValueError(f"d ({d}) must be a multiple of 4")
    place = torch.arange(x.shape[-2] - leading)
    rows, across = place % columns, place // columns
    turns = base ** (-torch.arange(0, d // 2, 2, dtype=x.dtype) / (d // 2))
    angles = torch.cat([rows[:, None] * turns, across[:, None] * turns], -1)
    angles = F.pad(angles, (0, 0, leading, 0))
    even, odd = x[..., ::2], x[..., 1::2]
    cos, sin = angles.cos(), angles.sin()
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1).flatten(-2)


@misconception(
    "rotate-in-two",
    id="TRC2",
    fails=["rotate-in-two-values", "rotate-in-two-leading", "rotate-in-two-distances"],
    read="13_pictures#pictures-relative",
)
def one_position_for_both(x, columns, leading=0, base=100.0):
    """You turn everything by the patch's number, as in a sentence. In a picture a patch has a row
    and a column, and each turns its own half.
    """
    d = x.shape[-1]
    if d % 4:
        raise ValueError(f"d ({d}) must be a multiple of 4")
    place = torch.arange(x.shape[-2] - leading)
    rows, across = place, place
    turns = base ** (-torch.arange(0, d // 2, 2, dtype=x.dtype) / (d // 2))
    angles = torch.cat([rows[:, None] * turns, across[:, None] * turns], -1)
    angles = F.pad(angles, (0, 0, leading, 0))
    even, odd = x[..., ::2], x[..., 1::2]
    cos, sin = angles.cos(), angles.sin()
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1).flatten(-2)


@misconception(
    "rotate-in-two",
    id="TRC3",
    fails=["rotate-in-two-leading"],
    read="13_pictures#pictures-relative",
)
def class_token_counted(x, columns, leading=0, base=100.0):
    """You count the tokens in front as patches, so that all others are in the wrong place."""
    d = x.shape[-1]
    if d % 4:
        raise ValueError(f"d ({d}) must be a multiple of 4")
    place = torch.arange(x.shape[-2])
    rows, across = place // columns, place % columns
    turns = base ** (-torch.arange(0, d // 2, 2, dtype=x.dtype) / (d // 2))
    angles = torch.cat([rows[:, None] * turns, across[:, None] * turns], -1)
    angles[:leading] = 0
    even, odd = x[..., ::2], x[..., 1::2]
    cos, sin = angles.cos(), angles.sin()
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1).flatten(-2)


@misconception(
    "rotate-in-two",
    id="TRC4",
    fails=["rotate-in-two-leading"],
    read="13_pictures#pictures-relative",
)
def class_token_turns(x, columns, leading=0, base=100.0):
    """Your class token turns too. It is no patch and has no place in the picture."""
    d = x.shape[-1]
    if d % 4:
        raise ValueError(f"d ({d}) must be a multiple of 4")
    place = torch.arange(x.shape[-2])
    rows, across = place // columns, place % columns
    turns = base ** (-torch.arange(0, d // 2, 2, dtype=x.dtype) / (d // 2))
    angles = torch.cat([rows[:, None] * turns, across[:, None] * turns], -1)
    assert len(angles) >= leading
    even, odd = x[..., ::2], x[..., 1::2]
    cos, sin = angles.cos(), angles.sin()
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1).flatten(-2)


@misconception(
    "rotate-in-two",
    id="TRC5",
    fails=["rotate-in-two-values", "rotate-in-two-leading"],
    read="13_pictures#pictures-relative",
)
def frequencies_of_all_features(x, columns, leading=0, base=100.0):
    """The frequencies of your halves fall too slowly: a half has d / 2 features, so its pair
    (2i, 2i + 1) turns by base to the power of -2i / (d / 2).
    """
    d = x.shape[-1]
    if d % 4:
        raise ValueError(f"d ({d}) must be a multiple of 4")
    place = torch.arange(x.shape[-2] - leading)
    rows, across = place // columns, place % columns
    turns = base ** (-torch.arange(0, d // 2, 2, dtype=x.dtype) / d)
    angles = torch.cat([rows[:, None] * turns, across[:, None] * turns], -1)
    angles = F.pad(angles, (0, 0, leading, 0))
    even, odd = x[..., ::2], x[..., 1::2]
    cos, sin = angles.cos(), angles.sin()
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1).flatten(-2)


@misconception(
    "rotate-in-two",
    id="TRC6",
    fails=["rotate-in-two-values", "rotate-in-two-leading"],
    read="13_pictures#pictures-relative",
)
def one_run_of_frequencies(x, columns, leading=0, base=100.0):
    """Your second half goes on with the frequencies of the first; each half begins with 1 anew."""
    d = x.shape[-1]
    if d % 4:
        raise ValueError(f"d ({d}) must be a multiple of 4")
    place = torch.arange(x.shape[-2] - leading)
    rows, across = place // columns, place % columns
    turns = base ** (-torch.arange(0, d, 2, dtype=x.dtype) / d)
    angles = torch.cat([rows[:, None] * turns[: d // 4], across[:, None] * turns[d // 4 :]], -1)
    angles = F.pad(angles, (0, 0, leading, 0))
    even, odd = x[..., ::2], x[..., 1::2]
    cos, sin = angles.cos(), angles.sin()
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1).flatten(-2)


@misconception(
    "rotate-in-two",
    id="TRC7",
    fails=["rotate-in-two-values", "rotate-in-two-leading"],
    read="13_pictures#pictures-relative",
)
def turned_the_other_way(x, columns, leading=0, base=100.0):
    """You turn the other way: the sine with the minus stands in the first of the two."""
    d = x.shape[-1]
    if d % 4:
        raise ValueError(f"d ({d}) must be a multiple of 4")
    place = torch.arange(x.shape[-2] - leading)
    rows, across = place // columns, place % columns
    turns = base ** (-torch.arange(0, d // 2, 2, dtype=x.dtype) / (d // 2))
    angles = torch.cat([rows[:, None] * turns, across[:, None] * turns], -1)
    angles = F.pad(angles, (0, 0, leading, 0))
    even, odd = x[..., ::2], x[..., 1::2]
    cos, sin = angles.cos(), angles.sin()
    return torch.stack([even * cos + odd * sin, odd * cos - even * sin], -1).flatten(-2)


@misconception(
    "rotate-in-two",
    id="TRC8",
    fails=["rotate-in-two-values", "rotate-in-two-leading", "rotate-in-two-distances"],
    read="13_pictures#pictures-relative",
)
def width_taken_for_height(x, columns, leading=0, base=100.0):
    """You number the patches column by column; they are numbered row by row."""
    d = x.shape[-1]
    if d % 4:
        raise ValueError(f"d ({d}) must be a multiple of 4")
    place = torch.arange(x.shape[-2] - leading)
    rows, across = (
        place % ((len(place) + columns - 1) // columns),
        place // ((len(place) + columns - 1) // columns),
    )
    turns = base ** (-torch.arange(0, d // 2, 2, dtype=x.dtype) / (d // 2))
    angles = torch.cat([rows[:, None] * turns, across[:, None] * turns], -1)
    angles = F.pad(angles, (0, 0, leading, 0))
    even, odd = x[..., ::2], x[..., 1::2]
    cos, sin = angles.cos(), angles.sin()
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1).flatten(-2)


@misconception(
    "rotate-in-two",
    id="TRC9",
    fails=["rotate-in-two-values"],
    read="13_pictures#pictures-relative",
)
def no_check_of_the_width(x, columns, leading=0, base=100.0):
    """Yours takes any width; where d is no multiple of 4, raise a ValueError that names it."""
    d = x.shape[-1]
    place = torch.arange(x.shape[-2] - leading)
    rows, across = place // columns, place % columns
    turns = base ** (-torch.arange(0, d // 2, 2, dtype=x.dtype) / (d // 2))
    angles = torch.cat([rows[:, None] * turns, across[:, None] * turns], -1)
    angles = F.pad(angles, (0, 0, leading, 0))
    even, odd = x[..., ::2], x[..., 1::2]
    cos, sin = angles.cos(), angles.sin()
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1).flatten(-2)

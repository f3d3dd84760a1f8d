# %% [markdown]
# # 13 Pictures
#
# In this notebook you hand a Transformer pictures in the place of words, and change nothing in it. You cut pictures into
# patches and put them together again, find a convolution in a linear layer and another one in attention, shuffle the
# patches and see what an encoder can still tell, find out why a friend's encoder is nearly blind, and let the decoder say
# what is in a picture.
#
# **How to work.** Run the cells from top to bottom. Replace each `# YOUR CODE HERE` and the `raise`
# below it by your answer, then run the test cells that follow; their messages say what is wrong.
# The visible tests are not all tests: hidden ones, with other sizes and numbers, run when the
# notebook is graded. Each question is tested on its own, so you may leave one open and go on.
# Before you hand in, restart the kernel and run all cells.
#
# **Where to read.** The book's page *Pictures* does all of it on small drawings.
#
# **Conventions.** The batch comes first. Pictures are $(B, C, H, W)$: channels, height, width. A patch is $p \times p$ pixels, so there
# are $N = (H / p) \cdot (W / p)$ of them, numbered row by row from the top left, from 0. A mask is boolean, and **True means: may attend**.
#
# **The drawings.** `lab.drawings` draws two things of different colour and shape, one left of the other, and says so in a
# caption. What *Try it* cells train takes some seconds; they use your answers, and where one is missing yet, the lab's stands
# in. They do nothing while the notebook is graded.

# %% setup
from collections.abc import Callable
from typing import Any

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from lab import plots
from lab.battery import assert_sound, assert_sound_function, shaken
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
from lab.check import (
    assert_close,
    assert_dtype,
    assert_gradients,
    assert_raises,
    assert_shape,
    draw,
    expect_no_error,
    unchanged,
    visible_passed,
)
from lab.drawings import drawings, is_true
from lab.pictures import (
    PATCH,
    caption_losses,
    captions_of,
    new_captioner,
    new_encoder,
    orders,
    shares_right,
    shuffled,
    train_captioner,
    train_classifier,
)
from lab.pictures import patchify as cut_by_lab
from lab.predict import compare, predicted, watched

# %% [markdown]
# ## 13.1 Cut and put together   (4 points, about 20 minutes, difficulty 3 of 5)
#
# **Objective.** Turn pictures into tokens, and tokens into pictures again.
#
# `patchify(pictures, patch_size)` gets pictures $(B, C, H, W)$ and returns $(B, N, C p^2)$: one row for each patch. Patches come row by row, from
# left to right. **Inside** a patch the first channel comes first, and of each channel the pixels row by row. A height or width that is no multiple of
# `patch_size`, and a `patch_size` below 1, raise a `ValueError`.
#
# `unpatchify(patches, patch_size, height, width)` undoes it: from $(B, N, C p^2)$ to $(B, C, \text{height}, \text{width})$. The number of
# channels follows from the sizes. Both keep the dtype, and gradients flow back through both.
#
# Of pictures with patches of one pixel each pixel is a token. Ready-made `unfold` and `fold` of `torch.nn.functional`, and `lab.pictures`, are not
# allowed here: neither `F.unfold`, `F.fold` nor `pixel_unshuffle`. (A tensor's own `unfold`, which cuts along one axis, is another function, and allowed.)
#
# <details><summary>Hint 1: a question</summary>
#
# In memory, which pixel stands right after the last one of a patch's first row? To which patch does it belong?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Give each direction two axes: which patch, and where inside it. That is a view of six axes, $(B, C, H/p, p, W/p, p)$. Order these as the result wants
# them, then flatten. The way back has the same steps in the opposite order.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - Right for pictures that are one patch wide, wrong for others: cut by `view` alone, without ordering axes.
# - Right for one channel only: the channel's axis belongs inside the patch, in front of its rows.
# - Right for squares only: which of the two counts is $H/p$?
# - Pieces come back at the wrong places: is the order of axes on the way back the inverse one?
#
# </details>


# %% solution="patchify" export
def patchify(pictures: Float[Tensor, "B C H W"], patch_size: int) -> Float[Tensor, "B N patch_dim"]:
    """Cut pictures into square patches, row by row; a patch is one row of numbers."""
    ### BEGIN SOLUTION
    batch, channels, height, width = pictures.shape
    if patch_size < 1 or height % patch_size or width % patch_size:
        raise ValueError(f"patches of {patch_size} do not fill {height} x {width} pixels")
    rows, columns = height // patch_size, width // patch_size
    x = pictures.reshape(batch, channels, rows, patch_size, columns, patch_size)
    x = x.permute(0, 2, 4, 1, 3, 5)  # (B, rows, columns, C, p, p)
    return x.reshape(batch, rows * columns, channels * patch_size**2)
    ### END SOLUTION


# %% test="patchify-order" points=2
numbered = torch.arange(24.0, dtype=torch.float64).view(1, 1, 4, 6)
patches = patchify(numbered, 2)
assert_shape(patches, (1, 6, 4), "4 x 6 pixels in patches of 2 x 2: six patches of four numbers")
assert patches[0].tolist() == [
    [0, 1, 6, 7],
    [2, 3, 8, 9],
    [4, 5, 10, 11],
    [12, 13, 18, 19],
    [14, 15, 20, 21],
    [16, 17, 22, 23],
], (
    "patches should come row by row, and the pixels of each row by row, too\n"
    f"Yours: {patches[0].tolist()}"
)
visible_passed()
### BEGIN HIDDEN TESTS
for shape, size in (((2, 3, 6, 4), 2), ((3, 2, 3, 9), 3), ((1, 4, 8, 4), 4)):
    pictures = draw(shape, seed=sum(shape))
    before = pictures.clone()
    patches = patchify(pictures, size)
    columns = shape[3] // size
    assert_shape(
        patches,
        (shape[0], shape[2] // size * columns, shape[1] * size * size),
        "with several channels there should be one row of C p p numbers for every patch",
    )
    for n in range(patches.shape[1]):
        top, left = n // columns * size, n % columns * size
        piece = pictures[:, :, top : top + size, left : left + size]
        assert_close(
            patches[:, n],
            piece.flatten(1),
            "patch n should hold its own pixels, the first channel first, each channel row by row, "
            "in pictures that are not square, too",
        )
    assert torch.equal(pictures, before), "the pictures should be left unchanged"
turned = draw((2, 3, 4, 6), seed=3).transpose(2, 3)  # not contiguous
with expect_no_error("pictures that are a transposed view should be no error"):
    patches = patchify(turned, 2)
assert_close(patches, patchify(turned.contiguous(), 2), "a view should be cut like a copy")
assert_sound_function(
    lambda pictures: patchify(pictures, 2),
    (draw((2, 3, 4, 6), seed=4, dtype=torch.float32),),
    like=lambda pictures: F.unfold(pictures, 2, stride=2).transpose(1, 2),
    claim="pictures of single precision should be cut in the same way",
)
### END HIDDEN TESTS

# %% test="patchify-limits" points=1
pixels = patchify(draw((2, 3, 2, 5), seed=5), 1)
assert_shape(pixels, (2, 10, 3), "with patches of one pixel, each of the 10 pixels is a token")
assert_raises(
    ValueError,
    lambda: patchify(draw((1, 1, 4, 6)), 4),
    "a width of 6 holds no whole number of patches of 4: a ValueError",
)
visible_passed()
### BEGIN HIDDEN TESTS
pictures = draw((2, 3, 2, 5), seed=5)
assert_close(
    pixels,
    torch.stack([pictures[:, :, n // 5, n % 5] for n in range(10)], dim=1),
    "with patches of one pixel a token should hold the channels of its pixel",
)
assert_close(
    patchify(pictures[..., :2], 2)[:, 0],
    pictures[..., :2].flatten(1),
    "a picture that is one patch should give one token: all of its numbers as they stand",
)
for shape, size in (((1, 1, 6, 4), 4), ((1, 1, 5, 5), 2), ((1, 2, 4, 4), 0), ((1, 2, 4, 4), -2)):
    assert_raises(
        ValueError,
        lambda shape=shape, size=size: patchify(draw(shape), size),
        "a height that is no multiple of patch_size, and a patch_size below 1, should raise a "
        "ValueError",
    )
### END HIDDEN TESTS


# %% solution="unpatchify"
def unpatchify(
    patches: Float[Tensor, "B N patch_dim"], patch_size: int, height: int, width: int
) -> Float[Tensor, "B C height width"]:
    """Put the patches of each picture together again."""
    ### BEGIN SOLUTION
    rows, columns = height // patch_size, width // patch_size
    x = patches.reshape(len(patches), rows, columns, -1, patch_size, patch_size)
    x = x.permute(0, 3, 1, 4, 2, 5)  # (B, C, rows, p, columns, p)
    return x.reshape(len(patches), -1, height, width)
    ### END SOLUTION


# %% test="unpatchify-values" points=1
patches = torch.tensor([[[0.0, 1, 4, 5], [2, 3, 6, 7], [8, 9, 12, 13], [10, 11, 14, 15]]])
picture = unpatchify(patches, 2, 4, 4)
assert_shape(picture, (1, 1, 4, 4), "four patches of 2 x 2 are one channel of 4 x 4 pixels")
assert picture[0, 0].tolist() == torch.arange(16.0).view(4, 4).tolist(), (
    "each patch should go back to its place\n" + f"Yours: {picture[0, 0].tolist()}"
)
visible_passed()
### BEGIN HIDDEN TESTS
for shape, size in (((2, 3, 6, 4), 2), ((3, 2, 3, 9), 3), ((2, 2, 3, 4), 1)):
    pictures = draw(shape, seed=sum(shape))
    patches = F.unfold(pictures, size, stride=size).transpose(1, 2)
    before = patches.clone()
    assert_close(
        unpatchify(patches, size, shape[2], shape[3]),
        pictures,
        "pictures with several channels, wide ones and high ones, should come back as they were",
    )
    assert torch.equal(patches, before), "the patches should be left unchanged"
assert_sound_function(
    lambda patches: unpatchify(patches, 2, 4, 6),
    (draw((2, 6, 12), seed=6, dtype=torch.float32),),
    like=lambda patches: F.fold(patches.transpose(1, 2), (4, 6), 2, stride=2),
    claim="patches of single precision should be put together in the same way",
)
### END HIDDEN TESTS

# %% [markdown]
# ## 13.2 One layer, two names   (2 points, about 15 minutes, difficulty 2 of 5)
#
# **Objective.** See that embedding patches is a convolution with a stride.
#
# A patch becomes a token by one linear layer: its $C p^2$ numbers times a matrix, plus a bias. Published models hold that layer as a
# convolution, whose kernel visits each patch once. `convolved(pictures, weight, bias, patch_size)` gets the **linear** layer's `weight`
# $(D, C p^2)$ and `bias` $(D)$, in the order of 13.1, and returns the tokens $(B, N, D)$, row by row, **by one call of `F.conv2d`**. Nothing is
# cut into patches: products of matrices, `F.unfold` and `lab.pictures` are not allowed here.
#
# <details><summary>Hint 1: a question</summary>
#
# How far does a kernel of $p \times p$ have to move, so that it sees each pixel once?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# `F.conv2d` wants a kernel $(D, C, p, p)$ and returns $(B, D, H/p, W/p)$: give the weight's row its three axes back, and make of the map a row of
# tokens.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - Far too many tokens: the stride.
# - The right shape and wrong numbers: $(B, D, N)$ is not $(B, N, D)$; to swap two axes is no `view`.
# - Right for one channel only: the order inside a row of `weight`.
#
# </details>


# %% solution="convolved"
def convolved(
    pictures: Float[Tensor, "B C H W"],
    weight: Float[Tensor, "D patch_dim"],
    bias: Float[Tensor, "D"],
    patch_size: int,
) -> Float[Tensor, "B N D"]:
    """Embed all patches by one convolution."""
    ### BEGIN SOLUTION
    kernel = weight.reshape(len(weight), -1, patch_size, patch_size)  # (D, C, p, p)
    maps = F.conv2d(pictures, kernel, bias, stride=patch_size)  # (B, D, H / p, W / p)
    return maps.flatten(2).transpose(1, 2)
    ### END SOLUTION


# %% test="convolved-values" points=2
pictures = torch.arange(1.0, 17, dtype=torch.float64).view(1, 2, 2, 4)
weight = torch.tensor([[1.0, 0, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0, 1.0]]).double()
tokens = convolved(pictures, weight, torch.tensor([0.5, 100.0]).double(), 2)
assert_shape(tokens, (1, 2, 2), "two patches, two features: (1, 2, 2)")
assert_close(
    tokens[0],
    torch.tensor([[1.5, 114.0], [3.5, 116.0]]).double(),
    "the first feature should be a patch's first pixel in the first channel plus 0.5, the second "
    "one its last pixel in the last channel plus 100",
)
visible_passed()
### BEGIN HIDDEN TESTS
for shape, size, features in (((2, 3, 6, 4), 2, 5), ((3, 2, 3, 9), 3, 4), ((2, 4, 3, 2), 1, 7)):
    pictures = draw(shape, seed=21)
    weight, bias = draw((features, shape[1] * size**2), (features,), seed=22)
    kept = [one.clone() for one in (pictures, weight, bias)]
    found = convolved(pictures, weight, bias, size)
    assert_close(
        found,
        F.linear(F.unfold(pictures, size, stride=size).transpose(1, 2), weight, bias),
        "the convolution should give what the linear layer gives on the patches, in their order",
    )
    for now, then in zip((pictures, weight, bias), kept, strict=True):
        assert torch.equal(now, then), "what is handed in should be left unchanged"
pictures, weight, bias = draw((2, 3, 4, 6), (5, 12), (5,), seed=23, dtype=torch.float32)
assert_sound_function(
    lambda pictures, weight, bias: convolved(pictures, weight, bias, 2),
    (pictures, weight, bias),
    like=lambda pictures, weight, bias: F.linear(
        F.unfold(pictures, 2, stride=2).transpose(1, 2), weight, bias
    ),
    claim="in single precision, too, the convolution should give what the linear layer gives",
)
### END HIDDEN TESTS

# %% [markdown]
# ## 13.3 Patches into an encoder   (4 points, about 25 minutes, difficulty 3 of 5)
#
# **Objective.** Build the encoder of a *vision Transformer*: the encoder that you know, with patches for words.
#
# `PatchEncoder(patch_dim, num_patches, d_model, num_layers, num_heads, d_ff, dropout)` has these attributes:
#
# - `patch_embedding`: an `nn.Linear(patch_dim, d_model)`;
# - `class_token`: an `nn.Parameter` $(d_{model})$, one vector for all pictures. It stands in front of the patches and collects
#   what a classifier wants to know;
# - `positions`: an `nn.Parameter` $(1 + N, d_{model})$, learned, the class token's in row 0. It is added before the first layer;
# - `stack`: an `Encoder(make_layer, num_layers, norm)` of `EncoderLayer(d_model, num_heads, d_ff, dropout, norm_first)`, **pre-norm**
#   (`norm_first=True`), with a `LayerNorm(d_model)` at its end.
#
# `forward(patches)`, for patches $(B, N, \text{patch\_dim})$, returns the vectors of all tokens, $(B, 1 + N, d_{model})$. Nothing is masked. The two
# parameters begin with small numbers drawn by chance, of about 0.02. `lab.pictures`, which has a ready `PatchEncoder`, is not allowed here.
#
# <details><summary>Hint 1: a question</summary>
#
# There is one class token and a batch of $B$ pictures. What has to happen before the two can stand side by side?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Embed; `expand` the class token to $(B, 1, d_{model})$; `torch.cat` along the tokens, it first; add the positions; hand it to the stack.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - *Sizes of tensors must match except in dimension 1*: the class token needs an axis for the batch and one for the tokens.
# - Off by one everywhere: the positions are added before the class token is there.
# - Pictures influence one another: along which axis do you join?
#
# </details>


# %% solution="patch-encoder" export
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
        ### BEGIN SOLUTION
        self.patch_embedding = nn.Linear(patch_dim, d_model)
        self.class_token = nn.Parameter(0.02 * torch.randn(d_model))
        self.positions = nn.Parameter(0.02 * torch.randn(1 + num_patches, d_model))
        self.stack = Encoder(
            lambda: EncoderLayer(d_model, num_heads, d_ff, dropout, norm_first=True),
            num_layers,
            LayerNorm(d_model),
        )
        ### END SOLUTION

    def forward(self, patches: Float[Tensor, "B N patch_dim"]) -> Float[Tensor, "B n d_model"]:
        """Return the vectors of the class token and of all patches."""
        ### BEGIN SOLUTION
        x = self.patch_embedding(patches)  # (B, N, d_model)
        first = self.class_token.expand(len(x), 1, -1)  # (B, 1, d_model)
        return self.stack(torch.cat([first, x], dim=1) + self.positions)
        ### END SOLUTION


# %% test="patch-encoder-parts" points=1
model: Any = PatchEncoder(12, 6, 8, 2, num_heads=2, d_ff=20)
assert_shape(model.class_token, (8,), "the class token is one vector of width d_model")
assert_shape(model.positions, (7, 8), "six patches and the class token have seven positions")
assert isinstance(model.patch_embedding, nn.Linear), "patches are embedded by an nn.Linear"
assert_shape(model.patch_embedding.weight, (8, 12), "the embedding goes from patch_dim to d_model")
visible_passed()
### BEGIN HIDDEN TESTS
for layers, d_model in ((1, 8), (3, 12)):
    of_layer = sum(p.numel() for p in EncoderLayer(d_model, 2, 20).parameters())
    expected_count = layers * of_layer + 2 * d_model + (10 + 1) * d_model + (1 + 6) * d_model
    deep: Any = PatchEncoder(10, 5, d_model, layers, 2, 20, 0.3)
    count = sum(p.numel() for p in deep.parameters())
    assert count == expected_count, (
        "the numbers to learn should be those of the embedding with its bias, the class token, a "
        "position for each token, each layer by itself, and one norm at the end\n"
        f"Yours has {count}, expected {expected_count}."
    )
    for name in ("class_token", "positions"):
        begun = getattr(deep, name).detach()
        assert begun.abs().mean().item() < 0.1, (
            "class token and positions should begin with small numbers, of about 0.02"
        )
        assert begun.abs().mean().item() > 0, (
            "class token and positions should begin with small numbers, not zeros"
        )
        assert begun.std(0).min().item() > 1e-6, (
            "class token and positions should be drawn by chance: not all of their numbers are "
            "alike, nor are two tokens' positions"
        )
rates = [module.p for module in deep.modules() if isinstance(module, nn.Dropout)]
assert rates and set(rates) == {0.3}, "the dropout asked for should reach every layer"
### END HIDDEN TESTS


# %% test="patch-encoder-values" points=2
def token_by_token(model: Any, heads: int, d_ff: int) -> Callable[[Tensor], Tensor]:
    """What the encoder should return, by a stack with the same numbers."""
    width, depth = model.positions.shape[1], len(model.stack.layers)
    stack = Encoder(
        lambda: EncoderLayer(width, heads, d_ff, 0.0, norm_first=True), depth, LayerNorm(width)
    ).double()
    stack.load_state_dict(model.stack.state_dict())

    def run(patches: Tensor) -> Tensor:
        layer, table = model.patch_embedding, model.positions
        rows = [(model.class_token + table[0]).expand(len(patches), -1)]
        for n in range(patches.shape[1]):
            rows.append(patches[:, n] @ layer.weight.T + layer.bias + table[1 + n])
        return stack(torch.stack(rows, dim=1))

    return run


model = shaken(PatchEncoder(12, 6, 8, 2, num_heads=2, d_ff=20), seed=1)
patches = draw((3, 6, 12), seed=31)
with unchanged(model):
    tokens = model(patches)
assert_shape(tokens, (3, 7, 8), "the class token and six patches: (3, 7, 8)")
assert_close(
    tokens,
    token_by_token(model, 2, 20)(patches),
    "the class token should stand in front, position 0 belong to it and position 1 + n to patch n, "
    "and all go through the stack",
)
visible_passed()
### BEGIN HIDDEN TESTS
model = shaken(PatchEncoder(5, 4, 12, 1, 3, 16, 0.4), seed=2)
assert_sound(
    model,
    (draw((2, 4, 5), seed=32),),
    like=token_by_token(model, 3, 16),
    claim="with other sizes too, the vectors should be those of embedding, class token, positions, "
    "layers and norm",
    rate=0.4,
)
model = shaken(PatchEncoder(3, 10, 8, 1, 2, 16), seed=3)
pictures = draw((4, 3, 2, 5), seed=33)
assert_close(
    model(F.unfold(pictures, 1).transpose(1, 2)),
    token_by_token(model, 2, 16)(pictures.flatten(2).transpose(1, 2)),
    "with patches of one pixel every pixel should be a token",
)
### END HIDDEN TESTS

# %% test="patch-encoder-order" points=1
model = shaken(PatchEncoder(12, 6, 8, 2, 2, 20), seed=4).eval()
patches, order = draw((2, 6, 12), seed=34), torch.tensor([3, 0, 5, 1, 4, 2])
whole, mixed = model(patches), model(patches[:, order])
assert (whole[:, 0] - mixed[:, 0]).abs().max() > 1e-4, (
    "with positions, the class token's vector should depend on where the patches are"
)
visible_passed()
### BEGIN HIDDEN TESTS
alone = torch.cat([model(patches[b : b + 1]) for b in range(2)])
assert_close(alone, whole, "a picture's vectors should not depend on its company in the batch")
with torch.no_grad():
    model.positions[1:] = model.positions[2]
    model.class_token.add_(1)
whole, mixed = model(patches), model(patches[:, order])
assert_close(
    mixed[:, 0],
    whole[:, 0],
    "where all patches have the same position, the class token should not see their order",
)
assert_close(
    mixed[:, 1:],
    whole[:, 1:][:, order],
    "where all patches have the same position, vectors should change places as the patches do",
)
last = patches.clone()
last[:, -1] += 1
assert ((model(last) - whole).abs().amax((0, 2)) > 1e-6).all(), (
    "nothing is masked: every token should see the last patch"
)
### END HIDDEN TESTS

# %% [markdown]
# ## 13.4 Shuffle the patches   (3 points, about 15 minutes, difficulty 2 of 5)
#
# **Objective.** Predict what an encoder can still tell when a picture's patches have changed places, then measure.
#
# The cell below trains your `PatchEncoder` three times, with a linear layer on its class token, to answer three questions about a drawing of two things:
# which *colour* of three is missing; which *shape* of three is missing; and whether of the two colours the one that comes first in the list red, green,
# blue is *left of* the other. A thing has 6 x 6 pixels, a patch 4 x 4.
#
# - **as they are**: the patches stand where they belong;
# - **one order for all**: they are shuffled, in all drawings in the same way, in training and test;
# - **each its own**: each drawing is shuffled in its own way.
#
# Let `predicted_survivors` say of each entry of `SURVIVORS` whether the encoder can still answer, after training on such pictures:
# `"colour"`, `"shape"` and `"left of"` with *each its own*, and `"left of, one order for all"`. The point is for having predicted. Then
# run the cell and let `measured_shuffles` return what it prints last: for each setting, the share of right answers to each question.
#
# <details><summary>Hint 1: a question</summary>
#
# An encoder without positions sees a bag of patches. Which of the three questions can be answered from a bag?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# If everybody's patch 7 is the corner at the top left: what can a position that is *learned* for it not do?
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - *predict first*: `predicted_survivors` returns nothing yet, or an entry is missing.
# - Your numbers are refused: return the whole dictionary of one run, as it was printed.
#
# </details>

# %%
FATES = ("survives", "is lost")
SURVIVORS: dict[str, tuple[str, ...]] = dict.fromkeys(
    ("colour", "shape", "left of", "left of, one order for all"), FATES
)


# %% solution="predicted-survivors"
def predicted_survivors() -> dict[str, str]:
    """What you expect: for each entry of SURVIVORS, one of FATES."""
    ### BEGIN SOLUTION
    return {
        "colour": "survives",
        "shape": "is lost",
        "left of": "is lost",
        "left of, one order for all": "is lost",
    }
    ### END SOLUTION


# %% test="predicted-survivors-made" points=1
fates = predicted_survivors()
assert isinstance(fates, dict), "predicted_survivors should return a dict"
assert sorted(fates) == sorted(SURVIVORS), f"a prediction is about {', '.join(SURVIVORS)}"
assert all(isinstance(fate, str) and fate in FATES for fate in fates.values()), (
    f"each prediction is 'survives' or 'is lost'\nYours are {list(fates.values())}."
)
visible_passed()

# %%
if watched():  # not while the notebook is graded
    prediction = predicted(predicted_survivors, SURVIVORS)
    torch.set_num_threads(1)  # small matrices: one core is fastest
    seen, held_out = drawings(4000, seed=1), drawings(1000, seed=2)
    cut = [cut_by_lab(some.pictures, PATCH) for some in (seen, held_out)]
    settings = {
        "as they are": [None, None],
        "one order for all": [orders(1, seed=5), orders(1, seed=5)],
        "each its own": [orders(4000, seed=6), orders(1000, seed=7)],
    }
    numbers = {}
    for name, pair in settings.items():
        mixed = [
            some if order is None else shuffled(some, order)
            for some, order in zip(cut, pair, strict=True)
        ]
        model = train_classifier(new_encoder(make=PatchEncoder), mixed[0], seen.answers)
        found = shares_right(model, mixed[1], held_out.answers)
        numbers[name] = {question: round(share, 3) for question, share in found.items()}
        print(name, numbers[name])
    print()
    own, same = numbers["each its own"], numbers["one order for all"]
    compare(prediction, own | {"left of, one order for all": same["left of"]})
    print("chance is 0.33 for colour and shape, 0.5 for left of")
    print(numbers)


# %% solution="measured-shuffles"
def measured_shuffles() -> dict[str, dict[str, float]]:
    """By setting and question, the share of right answers that the cell printed."""
    ### BEGIN SOLUTION
    return {
        "as they are": {"colour": 1.0, "shape": 0.996, "left of": 1.0},
        "one order for all": {"colour": 1.0, "shape": 0.999, "left of": 1.0},
        "each its own": {"colour": 1.0, "shape": 1.0, "left of": 0.56},
    }
    ### END SOLUTION


# %% test="measured-shuffles-consistent" points=2
numbers = measured_shuffles()
assert isinstance(numbers, dict), "measured_shuffles should return a dict"
assert sorted(numbers) == ["as they are", "each its own", "one order for all"], (
    "the settings are 'as they are', 'one order for all' and 'each its own'"
)
for found in numbers.values():
    assert sorted(found) == ["colour", "left of", "shape"], (
        "for each setting there are three shares: 'colour', 'shape' and 'left of'"
    )
visible_passed()
### BEGIN HIDDEN TESTS
shares = {name: {q: float(share) for q, share in found.items()} for name, found in numbers.items()}
assert all(0 <= share <= 1 for found in shares.values() for share in found.values()), (
    "a share lies between 0 and 1"
)
assert min(shares["as they are"].values()) > 0.85, (
    "with all patches in their places each question is answered, nearly always"
)
assert min(shares["one order for all"].values()) > 0.85, (
    "with one order for all, learned positions mean places just as well: no question is lost"
)
own = shares["each its own"]
assert own["colour"] > 0.9 and own["shape"] > 0.75, (
    "colour and shape stand in the patches themselves and survive any order"
)
assert 0.4 < own["left of"] < 0.7, (
    "where each picture has an order of its own, who is left is hardly better than a coin"
)
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>What happened</summary>
#
# A colour is in every patch, and pieces of a ring are not pieces of a cross, so a bag of patches is enough for both. Who is left of whom is not in any
# patch: it is in the places, and with an order for each picture these are gone. (A little above one half remains: things
# at the edge are cut where others are not.) With one order for all **nothing** is lost. Positions are learned, one vector for each number, so the encoder
# never knew that patch 7 lies beside patch 8. It learns what is beside what from the pictures, whatever the numbering.
#
# </details>

# %% [markdown]
# ## 13.5 How far, in two directions   (2 points, about 15 minutes, difficulty 3 of 5)
#
# **Objective.** Number the relative positions of patches, so that attention can learn something for each.
#
# Patches have a relative position in two directions: from query $i$ to key $j$ it is so many rows down and so many columns to the right, both negative
# the other way. `relative_index(height, width, largest)` returns an int64 tensor $(N, N)$ for a grid of `height` times
# `width` patches: each distance is clipped to $-\text{largest}, \dots, \text{largest}$, and the *pair* has a number of its own,
#
# $$(\text{rows} + \text{largest}) \cdot (2 \cdot \text{largest} + 1) + (\text{columns} + \text{largest}).$$
#
# A table with so many rows gives a bias or a vector for each pair: the product method of image Transformers.
#
# <details><summary>Hint 1: a question</summary>
#
# In which row and in which column of a grid of width 5 is patch 13?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Rows and columns of all patches, both $(N)$; differences of each with each by `[None, :] - [:, None]`; `clamp`; the formula.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - Mirrored: key minus query, and the query is the row.
# - Right for square grids only: divide by the width, not by the height.
# - Numbers too large: clip first, then number.
#
# </details>


# %% solution="relative-index"
def relative_index(height: int, width: int, largest: int) -> Int[Tensor, "N N"]:
    """Return the number of the relative position, from each patch (row) to each (column)."""
    ### BEGIN SOLUTION
    places = torch.arange(height * width)
    rows, columns = places // width, places % width
    down = (rows[None, :] - rows[:, None]).clamp(-largest, largest)  # (N, N)
    right = (columns[None, :] - columns[:, None]).clamp(-largest, largest)
    return (down + largest) * (2 * largest + 1) + right + largest
    ### END SOLUTION


# %% test="relative-index-values" points=2
index = relative_index(2, 3, 1)
assert_shape(index, (6, 6), "2 x 3 patches: each of six looks at each of six")
assert index[0].tolist() == [4, 5, 5, 7, 8, 8], (
    "from the patch at the top left: itself 4, to the right 5 (two columns are clipped to one), "
    f"below 7, below and to the right 8\nYours: {index[0].tolist()}"
)
assert index[:, 0].tolist() == [4, 3, 3, 1, 0, 0], (
    f"seen from the others, the patch at the top left lies up and to the left\nYours: "
    f"{index[:, 0].tolist()}"
)
visible_passed()


### BEGIN HIDDEN TESTS
def by_pairs(height: int, width: int, largest: int) -> list[list[int]]:
    """The index, one pair of patches after the other."""
    places, side = range(height * width), 2 * largest + 1
    table = []
    for i in places:
        down = [max(-largest, min(largest, j // width - i // width)) for j in places]
        right = [max(-largest, min(largest, j % width - i % width)) for j in places]
        pairs = zip(down, right, strict=True)
        table.append([(y + largest) * side + x + largest for y, x in pairs])
    return table


for height, width, largest in ((3, 2, 2), (2, 5, 1), (4, 3, 3), (1, 4, 2), (3, 3, 0), (2, 2, 3)):
    index = relative_index(height, width, largest)
    assert_dtype(index, torch.int64, "an index should be int64")
    wanted = by_pairs(height, width, largest)
    assert index.tolist() == wanted, (
        "in grids that are not square, too, the index should be that of the clipped rows and columns "
        "from the query to the key"
    )
### END HIDDEN TESTS

# %% [markdown]
# ## 13.6 Attention as a convolution   (3 points, about 25 minutes, difficulty 4 of 5)
#
# **Objective.** Set attention's weights by hand, by relative position alone, and get a convolution.
#
# Let one head look at one relative position and at nothing else: its mask lets each query see the patch that lies so many rows down and so many columns to the right of it.
# A softmax over one key gives it weight 1. If there is no such patch, because it would lie outside of the picture, that query sees nothing, and its output is 0.
# A kernel of $K \times K$, $K$ odd, takes $K^2$ heads: head $a K + b$ looks $a - \lfloor K/2 \rfloor$ rows down and
# $b - \lfloor K/2 \rfloor$ columns to the right.
#
# `hard_attention(tokens, kernel, height, width)` gets tokens $(B, N, D)$ of a grid and a kernel $(E, D, K, K)$ as for `F.conv2d`. It returns a
# pair: the output $(B, N, E)$, the sum over the heads of *weights times tokens times the head's matrix*, which is `kernel[:, :, a, b]`, transposed; and the boolean masks
# $(K^2, N, N)$ of all heads, which are the same for all pictures. The output is then what a convolution with zeros around the picture gives, with stride 1;
# gradients flow back through it to tokens and kernel.
#
# Convolutions (`conv2d`) are not allowed here.
#
# <details><summary>Hint 1: a question</summary>
#
# With $K = 3$: which head looks at the query itself? What does its matrix of weights look like?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Rows and columns of all patches as in 13.5, without clipping. For each head one comparison gives a boolean matrix $(N, N)$: its
# mask, and, as numbers, its weights. Then `weights @ tokens` moves the picture by the offset, and the head's matrix mixes features.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - The output is mirrored: the key is where the query *looks*, `key = query + offset`.
# - Wrong at left and right edges only: compare rows and columns, not the numbers of patches.
# - Wrong at all edges: clipping makes far patches look like near ones.
#
# </details>


# %% solution="hard-attention"
def hard_attention(
    tokens: Float[Tensor, "B N D"], kernel: Float[Tensor, "E D K K"], height: int, width: int
) -> tuple[Float[Tensor, "B N E"], Bool[Tensor, "heads N N"]]:
    """Return the output and the masks of heads that look at one relative position each."""
    ### BEGIN SOLUTION
    size = kernel.shape[-1]
    places = torch.arange(height * width, device=tokens.device)
    down = (places[None, :] // width) - (places[:, None] // width)  # (N, N), query to key
    right = (places[None, :] % width) - (places[:, None] % width)
    offsets = [(a - size // 2, b - size // 2) for a in range(size) for b in range(size)]
    masks = torch.stack([(down == y) & (right == x) for y, x in offsets])  # (heads, N, N)
    seen = masks.to(tokens.dtype).unsqueeze(1) @ tokens  # (heads, B, N, D)
    return torch.einsum("hbnd,edh->bne", seen, kernel.flatten(2)), masks
    ### END SOLUTION


# %% test="hard-attention-masks" points=1
tokens, kernel = draw((2, 6, 4), (5, 4, 3, 3), seed=41)
output, masks = hard_attention(tokens, kernel, 2, 3)
assert_shape(masks, (9, 6, 6), "nine heads, six queries, six keys")
assert_dtype(masks, torch.bool, "a mask should be boolean")
assert torch.equal(masks[4], torch.eye(6, dtype=torch.bool)), "head 4 of 9 sees the query itself"
assert masks[5].nonzero().tolist() == [[0, 1], [1, 2], [3, 4], [4, 5]], (
    "head 5 of 9 looks one column to the right; to the right of the last column there is nothing\n"
    f"Pairs of query and key in yours: {masks[5].nonzero().tolist()}"
)
visible_passed()
### BEGIN HIDDEN TESTS
for height, width, size in ((3, 2, 3), (2, 5, 1), (4, 3, 5)):
    tokens, kernel = draw((1, height * width, 2), (3, 2, size, size), seed=42)
    output, masks = hard_attention(tokens, kernel, height, width)
    wanted = torch.zeros(size * size, height * width, height * width, dtype=torch.bool)
    for head in range(size * size):
        for i in range(height * width):
            row = i // width + head // size - size // 2
            column = i % width + head % size - size // 2
            if 0 <= row < height and 0 <= column < width:
                wanted[head, i, row * width + column] = True
    assert torch.equal(masks, wanted), (
        "each head should look at one relative position, and nowhere outside"
    )
### END HIDDEN TESTS

# %% test="hard-attention-output" points=2
tokens, kernel = draw((2, 6, 4), (5, 4, 3, 3), seed=41)
output, masks = hard_attention(tokens, kernel, 2, 3)
assert_shape(output, (2, 6, 5), "the output has the kernel's features: (B, N, E)")
grid = tokens.transpose(1, 2).reshape(2, 4, 2, 3)
assert_close(
    output,
    F.conv2d(grid, kernel, padding=1).flatten(2).transpose(1, 2),
    "the output should be that of a convolution with zeros around the picture",
)
visible_passed()
### BEGIN HIDDEN TESTS
for height, width, size in ((4, 5, 3), (2, 5, 1), (5, 4, 5)):
    grid, kernel = draw((3, 2, height, width), (3, 2, size, size), seed=43)
    tokens = grid.flatten(2).transpose(1, 2)
    before = tokens.clone(), kernel.clone()
    output, masks = hard_attention(tokens, kernel, height, width)
    assert_close(
        output,
        F.conv2d(grid, kernel, padding=size // 2).flatten(2).transpose(1, 2),
        "with other grids and kernels, too, the output should be that of a convolution",
    )
    assert torch.equal(tokens, before[0]) and torch.equal(kernel, before[1]), (
        "what is handed in should be left unchanged"
    )
tokens, kernel = draw((2, 6, 4), (5, 4, 3, 3), seed=44, dtype=torch.float32)
leaves = tokens.requires_grad_(), kernel.requires_grad_()
output, masks = hard_attention(*leaves, 3, 2)
assert_dtype(output, torch.float32, "tokens of single precision should give such output")
grid = leaves[0].transpose(1, 2).reshape(2, 4, 3, 2)
assert_gradients(
    output,
    F.conv2d(grid, leaves[1], padding=1).flatten(2).transpose(1, 2),
    {"tokens": leaves[0], "kernel": leaves[1]},
    "the gradients should be those of the convolution, too",
)
### END HIDDEN TESTS

# %% [markdown]
# ## 13.7 It learns, and hardly sees   (3 points, about 20 minutes, difficulty 3 of 5)
#
# **Objective.** Find four mistakes in a classifier whose loss falls.
#
# A friend's classifier gets better than chance and stays there. Its logits are computed by the next cell. `parts` holds functions: `"embed"`, which turns
# patches $(B, N, C p^2)$ into vectors, `"stack"`, called with vectors and a mask (or None, if nothing is hidden), and `"head"`, from vectors to logits; and two tensors,
# `"class_token"` $(D)$ and `"positions"` $(1 + N, D)$. You tried things out, and found four symptoms:
#
# - `"mixed"`: what `"embed"` is handed as a patch holds pixels from the whole width of the picture;
# - `"company"`: the logits of a picture change with its place in the batch;
# - `"blind"`: vectors that the stack returns do not change when a later patch does;
# - `"corner"`: with a stack that returns its vectors as they are, the logits depend on the picture.
#
# Say which line is behind each. Then write `honest_logits`, as it should be: patches in the order of 13.1, the class token in front with position 0, and the head on what the
# stack makes of it. The lab's `cut_by_lab(pictures, patch_size)` cuts pictures for you.
#
# <details><summary>Hint 1: a question</summary>
#
# Whose vector should the head read, and whom should that one have seen?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Write the shape behind each line, with names for its axes. Where does an axis get another name without having moved?
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - All pictures get the same logits: a class token in front that sees only those before it sees nobody.
# - Right for one picture, wrong for several: positions are numbered along the tokens.
#
# </details>


# %%
def friends_logits(pictures, parts, patch_size):
    (b, _, height, width), p = pictures.shape, patch_size  # line 1
    n = (height // p) * (width // p)  # line 2
    patches = pictures.reshape(b, n, -1)  # line 3
    x = parts["embed"](patches)  # line 4
    x = torch.cat([parts["class_token"].expand(b, 1, -1), x], dim=1)  # line 5
    x = x + parts["positions"][:b].unsqueeze(1)  # line 6
    mask = torch.ones(n + 1, n + 1, dtype=torch.bool).tril()  # line 7
    x = parts["stack"](x, mask)  # line 8
    return parts["head"](x[:, 1])  # line 9


# %% solution="sight-causes"
def sight_causes() -> dict[str, int]:
    """By symptom ("mixed", "company", "blind", "corner"), the line that is behind it."""
    ### BEGIN SOLUTION
    return {"mixed": 3, "company": 6, "blind": 7, "corner": 9}
    ### END SOLUTION


# %% test="sight-causes-lines" points=1
causes = sight_causes()
assert isinstance(causes, dict), "sight_causes should return a dict, from symptoms to lines"
assert sorted(causes) == ["blind", "company", "corner", "mixed"], (
    "the four symptoms are 'mixed', 'company', 'blind' and 'corner'"
)
assert all(line in range(1, 10) for line in causes.values()), (
    f"lines have the numbers 1 to 9\nYours are {list(causes.values())}."
)
visible_passed()
### BEGIN HIDDEN TESTS
assert causes["mixed"] == 3, "the line behind 'mixed' is another one"
assert causes["company"] == 6, "the line behind 'company' is another one"
assert causes["blind"] == 7, "the line behind 'blind' is another one"
assert causes["corner"] == 9, "the line behind 'corner' is another one"
### END HIDDEN TESTS


# %% solution="honest-logits"
def honest_logits(
    pictures: Float[Tensor, "B C H W"], parts: dict[str, Any], patch_size: int
) -> Float[Tensor, "B classes"]:
    """The logits of each picture, read off its class token."""
    ### BEGIN SOLUTION
    x = parts["embed"](cut_by_lab(pictures, patch_size))  # (B, N, D)
    x = torch.cat([parts["class_token"].expand(len(x), 1, -1), x], dim=1)
    x = parts["stack"](x + parts["positions"], None)
    return parts["head"](x[:, 0])
    ### END SOLUTION


# %% test="honest-logits-values" points=2
def made_parts(patch_dim: int, num_patches: int, width: int, seed: int) -> dict[str, Any]:
    """Functions and tensors with drawn numbers; the stack mixes what the mask lets a token see."""
    embed, head = draw((width, patch_dim), (3, width), seed=seed)
    embed = embed / patch_dim**0.5
    token, positions = draw((width,), (1 + num_patches, width), seed=seed + 1)

    def stack(x: Tensor, mask: Tensor | None = None) -> Tensor:
        n = x.shape[1]
        seen = torch.ones(n, n, dtype=torch.bool) if mask is None else mask
        return x + (seen / seen.sum(-1, keepdim=True)).to(x.dtype) @ x.sin()

    return {
        "embed": lambda patches: patches @ embed.to(patches.dtype).T,
        "stack": stack,
        "head": lambda x: x @ head.to(x.dtype).T,
        "class_token": token,
        "positions": positions,
    }


def one_by_one(pictures: Tensor, parts: dict[str, Any], size: int) -> Tensor:
    """The same, patch by patch and picture by picture."""
    found = []
    for picture in pictures:
        rows = [parts["class_token"] + parts["positions"][0]]
        for top in range(0, picture.shape[1], size):
            for left in range(0, picture.shape[2], size):
                patch = picture[:, top : top + size, left : left + size].flatten()
                rows.append(parts["embed"](patch) + parts["positions"][len(rows)])
        found.append(parts["head"](parts["stack"](torch.stack(rows)[None], None)[0, 0]))
    return torch.stack(found)


parts = made_parts(8, 6, 5, seed=51)
pictures = draw((3, 2, 4, 6), seed=52)
logits = honest_logits(pictures, parts, 2)
assert_shape(logits, (3, 3), "three pictures, three classes: (3, 3)")
assert_close(
    logits,
    one_by_one(pictures, parts, 2),
    "each picture's logits should be those of its class token, which has seen all of its patches",
)
visible_passed()
### BEGIN HIDDEN TESTS
parts = made_parts(27, 4, 7, seed=53)
kept = dict(parts)
pictures = draw((5, 3, 12, 3), seed=54).requires_grad_()
before = pictures.detach().clone()
logits = honest_logits(pictures, parts, 3)
claim = "with other sizes, too, the logits should be those of the class token"
assert_close(logits, one_by_one(pictures, parts, 3), claim)
assert_gradients(logits, one_by_one(pictures, parts, 3), {"pictures": pictures}, claim)
assert torch.equal(pictures, before), "the pictures should be left unchanged"
assert parts == kept, "the parts should be left unchanged"
parts = made_parts(8, 6, 5, seed=55)
parts |= {name: parts[name].float() for name in ("class_token", "positions")}
small = honest_logits(draw((2, 2, 4, 6), seed=56, dtype=torch.float32), parts, 2)
assert_dtype(small, torch.float32, "parts and pictures of single precision should give such logits")
### END HIDDEN TESTS

# %% [markdown]
# ## 13.8 Say what you see   (4 points, about 25 minutes, difficulty 3 of 5)
#
# **Objective.** Let the decoder of chapter 7 read patches in the place of a source sentence, and change nothing in it.
#
# `Captioner(encoder, vocab_size, encoding, num_layers, num_heads, d_ff, dropout)` gets an encoder, which turns patches into memory $(B, M, d_{model})$, and a table of
# positions for the words, `encoding` $(\text{max\_len}, d_{model})$. Its attributes:
#
# - `encoder`: the one that it is given;
# - `embedding`: a `TokenEmbedding(vocab_size, d_model)`, multiplied by nothing;
# - `positional_encoding`: a `PositionalEncoding(encoding, dropout)`, called as `positional_encoding(x, offset)`;
# - `decoder`: a `Decoder(make_layer, num_layers, norm)` of `DecoderLayer(d_model, num_heads, d_ff, dropout, norm_first)`, pre-norm, with a `LayerNorm(d_model)` at its end;
# - `generator`: a `Generator(d_model, vocab_size)`, tied to the embedding: `generator.tie(weight)`.
#
# Its three methods are those of a translator, so that whatever trains one, or searches with one, takes pictures as well:
#
# - `encode(patches)` returns the memory and a mask $(B, 1, M)$ that hides nothing;
# - `decode(ids, memory, memory_mask, offset=0)` returns logits $(B, N, V)$ for ids $(B, N)$; no word sees a later one;
# - `forward(patches, ids)` is both, one after the other.
#
# `lab.pictures`, which has a ready `Captioner`, is not allowed here.
#
# <details><summary>Hint 1: a question</summary>
#
# What does cross-attention need to know of what it reads? Where does it matter that there were words?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# `decode` is four calls: embed, add positions from `offset` on, decoder with `causal_mask(n)` and the memory's mask, generator. In `__init__`, tie last.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - *mask must be boolean*: `torch.ones(...)` alone holds fractions.
# - Early logits change with later words: the first mask of the decoder.
# - Too many numbers to learn: generator and embedding should have one and the same `Parameter`.
#
# </details>


# %% solution="captioner" export
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
        ### BEGIN SOLUTION
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
        self.generator.tie(self.embedding.weight)
        ### END SOLUTION

    def encode(
        self, patches: Float[Tensor, "B N patch_dim"]
    ) -> tuple[Float[Tensor, "B M d_model"], Bool[Tensor, "B 1 M"]]:
        """Return the memory, and a mask that hides nothing of it."""
        ### BEGIN SOLUTION
        memory = self.encoder(patches)
        seen = torch.ones(len(memory), 1, memory.shape[1], dtype=torch.bool, device=memory.device)
        return memory, seen
        ### END SOLUTION

    def decode(
        self,
        ids: Int[Tensor, "B N"],
        memory: Float[Tensor, "B M d_model"],
        memory_mask: Bool[Tensor, "B 1 M"],
        offset: int = 0,
    ) -> Float[Tensor, "B N vocab_size"]:
        """Return the logits of the next word, after each of these."""
        ### BEGIN SOLUTION
        x = self.positional_encoding(self.embedding(ids), offset)  # (B, N, d_model)
        mask = causal_mask(ids.shape[1]).to(ids.device)
        return self.generator(self.decoder(x, memory, mask, memory_mask))
        ### END SOLUTION

    def forward(
        self, patches: Float[Tensor, "B N patch_dim"], ids: Int[Tensor, "B N"]
    ) -> Float[Tensor, "B N vocab_size"]:
        """Return the logits of the next word, after each of these, for each picture."""
        ### BEGIN SOLUTION
        return self.decode(ids, *self.encode(patches))
        ### END SOLUTION


# %% test="captioner-parts" points=1
eye: Any = nn.Linear(6, 8, bias=False)  # an encoder that looks at each patch by itself
model: Any = Captioner(eye, 11, draw((9, 8), dtype=torch.float32), 2, num_heads=2, d_ff=20)
for name in ("encoder", "embedding", "positional_encoding", "decoder", "generator"):
    assert isinstance(getattr(model, name, None), nn.Module), (
        f"the model should have a module named {name}"
    )
assert model.generator.weight is model.embedding.weight, (
    "the generator's weight should be the same Parameter as the embedding's"
)
assert id(model.encoder) == id(eye), "the encoder should be the one that is given, and no copy"
visible_passed()


### BEGIN HIDDEN TESTS
for layers, d_model in ((1, 8), (3, 12)):
    of_layer = sum(p.numel() for p in DecoderLayer(d_model, 2, 20).parameters())
    expected_count = 6 * d_model + layers * of_layer + 2 * d_model + 13 * d_model
    other_eye = nn.Linear(6, d_model, bias=False)
    deep: Any = Captioner(  # pyright: ignore[reportGeneralTypeIssues]
        other_eye, 13, draw((9, d_model)), layers, 2, 20, 0.3
    )
    count = sum(p.numel() for p in deep.parameters())
    assert count == expected_count, (
        "the numbers to learn should be those of the encoder, the embedding, each layer by itself, "
        f"and one norm at the end\nYours has {count}, expected {expected_count}."
    )
rates = [module.p for module in deep.modules() if isinstance(module, nn.Dropout)]
assert len(rates) >= 4 and set(rates) == {0.3}, (
    "the dropout asked for should reach every layer and the sum with the positions"
)
### END HIDDEN TESTS


# %% test="captioner-values" points=2
def by_chapter_7(model: Any, heads: int, d_ff: int) -> Callable[..., Tensor]:
    """Logits by a decoder with the model's numbers, for any memory."""
    width, depth = model.embedding.weight.shape[1], len(model.decoder.layers)
    decoder = Decoder(
        lambda: DecoderLayer(width, heads, d_ff, 0.0, norm_first=True), depth, LayerNorm(width)
    ).double()
    decoder.load_state_dict(model.decoder.state_dict())

    def run(ids: Tensor, memory: Tensor, mask: Tensor | None = None, offset: int = 0) -> Tensor:
        n = ids.shape[1]
        x = F.embedding(ids, model.embedding.weight)
        x = x + model.positional_encoding.encoding[offset : offset + n]
        x = decoder(x, memory, torch.ones(n, n, dtype=torch.bool).tril(), mask)
        return F.linear(x, model.embedding.weight)

    return run


model = shaken(Captioner(nn.Linear(6, 8, bias=False), 11, draw((9, 8), seed=5), 2, 2, 20), seed=1)
ids, patches = torch.tensor([[3, 7, 1], [2, 0, 10]]), draw((2, 4, 6), seed=61)
with unchanged(model):
    memory, memory_mask = model.encode(patches)
    logits = model.decode(ids, draw((2, 4, 8), seed=62), memory_mask)
assert_close(memory, model.encoder(patches), "the memory is what the encoder returns")
assert memory_mask.dtype == torch.bool and memory_mask.shape == (2, 1, 4) and memory_mask.all(), (
    "the memory's mask should be boolean, (B, 1, M), and True everywhere"
)
assert_close(
    logits,
    by_chapter_7(model, 2, 20)(ids, draw((2, 4, 8), seed=62)),
    "for a memory that is given, the logits should be those of the decoder of chapter 7",
)
visible_passed()
### BEGIN HIDDEN TESTS
right = by_chapter_7(model, 2, 20)
assert_close(
    model(patches, ids),
    right(ids, model.encoder(patches)),
    "forward should be encode and decode, one after the other",
)
some = torch.tensor([[[True, False, True, True]], [[False, True, False, True]]])
given = draw((2, 4, 8), seed=63).requires_grad_()
claim = "decode should keep to the mask that it is handed, and to the offset"
logits = model.decode(ids, given, some, 4)
assert_close(logits, right(ids, given, some, 4), claim)
assert_gradients(logits, right(ids, given, some, 4), {"memory": given}, claim)
leaf = draw((2, 4, 6), seed=64).requires_grad_()
assert_gradients(
    model.encode(leaf)[0],
    F.linear(leaf, model.encoder.weight),
    {"patches": leaf},
    "gradients should reach the patches through encode",
)
model = shaken(
    Captioner(nn.Linear(5, 12, bias=False), 13, draw((7, 12), seed=6), 1, 3, 16, 0.4), seed=2
)
assert_close(  # what is wanted below is computed with it
    model.positional_encoding.encoding,
    draw((7, 12), seed=6),
    "the positions should be those of the table that is handed in",
)
right_2 = by_chapter_7(model, 3, 16)
assert_sound(
    model,
    (draw((2, 6, 5), seed=65), torch.tensor([[3, 7, 1, 9, 12], [2, 0, 10, 4, 4]])),
    like=lambda patches, ids: right_2(ids, F.linear(patches, model.encoder.weight)),
    claim="with other sizes too, the logits should be those of encoder and decoder",
    rate=0.4,
)


class Joining(nn.Module):
    """An encoder that makes one token of two patches."""

    def forward(self, patches: Tensor) -> Tensor:
        """Memory with half as many tokens."""
        return patches.reshape(len(patches), -1, 8)


joining = Captioner(Joining(), 13, draw((7, 8), dtype=torch.float32), 1, 2, 16)
memory, seen = joining.encode(draw((2, 6, 4), seed=68))
assert_shape(memory, (2, 3, 8), "the memory is what the encoder returns, however many tokens")
assert_shape(seen, (2, 1, 3), "the mask should be about the memory's tokens, not about the patches")
single = Captioner(nn.Linear(5, 8), 13, draw((7, 8), dtype=torch.float32), 1, 2, 16).eval()
handed = draw((2, 6, 5), (2, 4, 8), seed=66, dtype=torch.float32)
kept = [one.clone() for one in handed]
ids, hidden = torch.tensor([[3, 7], [1, 2]]), torch.ones(2, 1, 4, dtype=torch.bool)
copies = ids.clone(), hidden.clone()
memory, _ = single.encode(handed[0])
logits = single.decode(ids, handed[1], hidden)
assert_dtype(memory, torch.float32, "in single precision the memory should be of such")
assert_dtype(logits, torch.float32, "in single precision the logits should be of such")
for now, then in zip((*handed, ids, hidden), (*kept, *copies), strict=True):
    assert torch.equal(now, then), "encode and decode should leave what they are handed unchanged"
claim = "in training, the sum with the positions should be dropped as the layers' results are"
silent = shaken(Captioner(nn.Linear(6, 8), 13, draw((9, 8)), 1, 2, 20, 1.0), seed=4).train()
logits = silent(draw((1, 4, 6), seed=69), torch.tensor([[3, 7, 1]]))
assert_close(  # where all is dropped, nothing is known of a word
    logits, logits[:, :1].expand(1, 3, 13).detach(), claim
)
### END HIDDEN TESTS

# %% test="captioner-prefix" points=1
model = shaken(Captioner(nn.Linear(6, 8, bias=False), 11, draw((9, 8), seed=7), 2, 2, 20), seed=3)
model.eval()
patches, ids = draw((2, 4, 6), seed=67), torch.tensor([[3, 7, 1, 5], [2, 0, 10, 4]])
with unchanged(model):
    whole, part = model(patches, ids), model(patches, ids[:, :2])
assert_close(part, whole[:, :2], "later words should not change the logits of earlier ones")
other = model(patches + 1, ids)
assert (whole - other).abs().amax(-1).min() > 1e-5, "every word should see the picture"
visible_passed()
### BEGIN HIDDEN TESTS
order = torch.tensor([2, 0, 3, 1])
assert_close(
    model(patches[:, order], ids),
    whole,
    "a memory is a set: in another order, which this encoder leaves as it is, it should give the same",
)
for n in (1, 3):
    memory, memory_mask = model.encode(patches)
    assert_close(
        model.decode(ids, memory, memory_mask, 2)[:, :n],
        model.decode(ids[:, :n], memory, memory_mask, 2),
        "with an offset, too, later words should not change the logits of earlier ones",
    )
### END HIDDEN TESTS

# %% [markdown]
# **Try it: captions.** Some 15 seconds. Your encoder and your decoder learn to describe drawings. The search below was written for sentences. A caption counts as right
# if it says what is so, from the left or from the right.

# %%
if watched():
    torch.set_num_threads(1)
    seen, held_out = drawings(4000, seed=1), drawings(1000, seed=2)
    cut = [cut_by_lab(some.pictures, PATCH) for some in (seen, held_out)]
    model = new_captioner(new_encoder(make=PatchEncoder), make=Captioner)
    record = train_captioner(model, cut[0], seen.captions)
    said = captions_of(model, cut[1])
    right = sum(is_true(caption, i, held_out) for i, caption in enumerate(said))
    cost = caption_losses(model, cut[1], held_out.captions).sum(1).mean()
    print(f"{right} of {len(said)} captions are true; a caption costs {cost:.3f} nats")
    figure, axes = plt.subplots(2, 2, figsize=(plots.WIDTH, 4), layout="constrained")
    for ax, picture, caption in zip(axes.flat, held_out.pictures, said, strict=False):
        ax.imshow(picture.permute(1, 2, 0).clamp(0, 1))
        ax.set_title(caption, fontsize=9)
        ax.axis("off")
    plt.show()

# %% [markdown]
# ## 13.9 What is built in   (2 points, about 10 minutes, difficulty 3 of 5)
#
# **Objective.** Say what an encoder of patches knows of pictures before it has seen one.
#
# In three to six sentences: (a) A convolution knows two things of pictures in advance. Name one, and say where this encoder has to learn it instead. (b) Patches with half the side: by what factor
# does the number of tokens grow, and by what factor the number of scores in each attention? (c) Why does the captioner need no mask for its memory, when the translator did?
#
# <details><summary>Hint 1: a question</summary>
#
# What becomes of a convolution's output if the picture moves by one pixel? Which pixels can its output depend on?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# For (a) think of 13.4, for (b) count, for (c) ask what was hidden in a batch of sentences.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - Unsure about (a): what does the setting *one order for all* show?
# - Unsure about (b): tokens in two directions, scores for pairs.
#
# </details>

# %% [markdown] manual="built-in" points=2
# ### BEGIN SOLUTION
# (a) That near pixels belong together, since a kernel is small, and that a thing looks the same wherever it is, since the kernel is the same everywhere. In the
# encoder any patch may look at any other from the first layer on; which are neighbours it has to learn in the table of positions, and with a fixed shuffling it learns that just as well. (Inside
# a patch, and in the embedding, which is the same for all patches, there is a convolution.)
#
# (b) Four times as many tokens, sixteen times as many scores.
#
# (c) A batch of sentences has padding; the mask hid it. All pictures have the same number of patches, so there is nothing to hide.
#
# Marking: 1 point for (a). Half a point each for (b), both factors, and (c).
# ### END SOLUTION

# %% [markdown]
# ## 13.10 Bonus: turned by row and column   (3 points, about 30 minutes, difficulty 5 of 5)
#
# **Objective.** Rotate queries and keys so that scores know how far patches are apart, in both directions. (A bonus: nothing in the captioner needs it.)
#
# In 2.2, pairs of columns turn by angles that grow with a token's position. A patch has two positions, its row and its column. So the **first half** of the features turns by the row, the **second half** by the column: within each half of $d / 2$
# features, the pair $(2i, 2i + 1)$ of that half turns by $\text{position} \cdot \text{base}^{-2i / (d/2)}$, as $(a, b) \mapsto (a \cos\varphi - b \sin\varphi,\; a \sin\varphi + b \cos\varphi)$.
#
# `rotate_in_two(x, columns, leading=0, base=100.0)` gets `x`, $(\dots, N, d)$: queries or keys of one picture's tokens. The first `leading` tokens are no patches (a class token); they **do not turn**. The others are the patches, row by row, with `columns` of them in each row.
# Return the turned tokens, of the same shape and dtype. If $d$ is no multiple of 4, raise a `ValueError` that names $d$.
#
# <details><summary>Hint 1: a question</summary>
#
# In a picture with `columns` patches in each row, in which row and in which column is patch number $k$?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Make a table of angles, one line a token and one column a *pair*: $d / 4$ of them for the row, then $d / 4$ for the column, and zeros for the tokens that are no patches. Then all pairs turn at once, as in 2.2.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - Right with `leading=0` only: patch 0 is the first one *after* the class token, and it is in row 0 and column 0.
# - Right for square pictures only: divide by the number of columns, also to find the row.
# - Only the first pair of a half is right: each half has frequencies of its own, beginning with 1.
#
# </details>


# %% solution="rotate-in-two"
def rotate_in_two(
    x: Float[Tensor, "... N d"], columns: int, leading: int = 0, base: float = 100.0
) -> Float[Tensor, "... N d"]:
    """Turn patches by their row (first half of the features) and their column (second half).

    Args:
        x: queries or keys.
        columns: patches in a row of the picture.
        leading: tokens in front that are no patches and do not turn.
        base: of the frequencies.

    Raises:
        ValueError: if d is no multiple of 4.

    Source: Heo et al. (2024), "Rotary Position Embedding for Vision Transformer", section 3.
    """
    ### BEGIN SOLUTION
    d = x.shape[-1]
    if d % 4:
        raise ValueError(f"d ({d}) must be a multiple of 4: pairs for rows, pairs for columns")
    place = torch.arange(x.shape[-2] - leading, device=x.device)
    frequencies = base ** (-torch.arange(0, d // 2, 2, dtype=x.dtype, device=x.device) / (d // 2))
    where = torch.stack([place // columns, place % columns], -1)  # (patches, 2)
    angles = (where[..., None] * frequencies).flatten(1)  # (patches, d / 2)
    angles = F.pad(angles, (0, 0, leading, 0))  # (N, d / 2)
    even, odd = x[..., ::2], x[..., 1::2]
    cos, sin = angles.cos(), angles.sin()
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1).flatten(-2)
    ### END SOLUTION


# %% test="rotate-in-two-values" points=1
x = torch.tensor([[1.0, 0.0, 0.0, 2.0]] * 6, dtype=torch.float64)  # two rows of three
turned = rotate_in_two(x, columns=3)
assert_shape(turned, (6, 4), "the result has the shape of x")
assert_close(turned[0], x[0], "patch 0 is in row 0 and column 0: nothing turns")
for patch, wanted, claim in (
    (2, [1.0, 0.0, -1.818594854, -0.832293673], "patch 2: row 0, column 2"),
    (3, [0.540302306, 0.841470985, 0.0, 2.0], "patch 3: row 1, column 0"),
):
    assert_close(turned[patch], torch.tensor(wanted, dtype=torch.float64), claim)
assert_raises(
    ValueError,
    lambda: rotate_in_two(torch.zeros(6, 6), columns=3),
    "6 features cannot be shared out in pairs for rows and columns: a ValueError that names 6",
    mentions=("6",),
)
visible_passed()
### BEGIN HIDDEN TESTS
for shape, columns, base in (((2, 3, 6, 8), 3, 100.0), ((8, 12), 2, 10.0), ((3, 5, 4), 5, 50.0)):
    x, place = draw(shape, seed=51), torch.arange(shape[-2])
    before = x.clone()
    each = base ** (-torch.arange(shape[-1] // 4, dtype=x.dtype) * 4 / shape[-1])
    angles = torch.cat([torch.outer(place // columns, each), torch.outer(place % columns, each)], 1)
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)))
    wanted = torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles)).flatten(-2)
    assert_close(
        rotate_in_two(x, columns, 0, base),
        wanted,
        "the first half should turn by the row, the second by the column, for any size and base",
    )
    assert torch.equal(x, before), "rotate_in_two should leave x unchanged"
### END HIDDEN TESTS

# %% test="rotate-in-two-leading" points=1
x = draw((2, 7, 8), seed=52)
turned = rotate_in_two(x, 3, leading=1)
assert_close(turned[:, 0], x[:, 0], "a class token in front should not turn")
assert_close(turned[:, 1], x[:, 1], "patch 0 stands behind it, in row 0 and column 0")
visible_passed()
### BEGIN HIDDEN TESTS


def turned_by(x: Tensor, columns: int, leading: int = 0, base: float = 100.0) -> Tensor:
    """By complex numbers, patch by patch."""
    d, result = x.shape[-1], []
    for token in range(x.shape[-2]):
        pairs = torch.view_as_complex(x[..., token, :].unflatten(-1, (-1, 2)).contiguous())
        row, column = divmod(token - leading, columns) if token >= leading else (0, 0)
        angles = [place * base ** (-4 * i / d) for place in (row, column) for i in range(d // 4)]
        turns = torch.polar(torch.ones(d // 2, dtype=x.dtype), torch.tensor(angles, dtype=x.dtype))
        result.append(torch.view_as_real(pairs * turns).flatten(-2))
    return torch.stack(result, -2)


for leading, columns in ((1, 3), (2, 4), (3, 2)):
    x = draw((2, 8 + leading, 12), seed=53)
    assert_close(
        rotate_in_two(x, columns, leading),
        turned_by(x, columns, leading),
        "behind tokens that are no patches, patches should be counted from 0",
    )
assert_sound_function(
    rotate_in_two,
    (draw((2, 7, 8), seed=54, dtype=torch.float32), 3, 1),
    like=turned_by,
    claim="in single precision the tokens should be turned in the same way",
)
### END HIDDEN TESTS

# %% test="rotate-in-two-distances" points=1
query, key = draw((8,), (8,), seed=55)
scores = rotate_in_two(query.expand(12, 8), 4) @ rotate_in_two(key.expand(12, 8), 4).mT
assert_close(
    scores[0, 5], scores[6, 11], "one row down and one to the right: the same score anywhere"
)
assert not torch.isclose(scores[0, 3], scores[0, 4]), (
    "three to the right and one row down are different ways: the scores should differ"
)
visible_passed()
### BEGIN HIDDEN TESTS
query, key = draw((12,), (12,), seed=56)
scores = rotate_in_two(query.expand(20, 12), 5) @ rotate_in_two(key.expand(20, 12), 5).mT
grid = scores.reshape(4, 5, 4, 5)
assert_close(
    grid[:-1, :-1, :-1, :-1],
    grid[1:, 1:, 1:, 1:],
    "moved together, any two patches should keep their score",
)
line = rotate_in_two(query.expand(6, 12), 6)
assert_close(
    line[:, :6], query[:6].expand(6, 6), "in a picture of one row, the first half should not turn"
)
### END HIDDEN TESTS

# %%
if watched():  # not while the notebook is graded
    plots.use()
    torch.manual_seed(0)
    same = torch.randn(64).expand(9 * 9, 64)
    asked = rotate_in_two(same, 9)
    plots.heatmap(
        (asked[40] @ asked.T / 8).softmax(0).reshape(9, 9),
        title="Attention of the middle patch, all patches alike",
        xlabel="column",
        ylabel="row",
        annotate=False,
    )

# %% [markdown]
# <details><summary>What happened</summary>
#
# All patches hold the same vector, so what you see comes from the places alone: most weight where the patch is, less with the distance along either direction. The scores are the sum of a part that knows the rows and a part that knows the
# columns. Nothing had to be learned for it, and it works for a picture of any size.
#
# </details>

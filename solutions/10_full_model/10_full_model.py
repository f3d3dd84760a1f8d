# %% [markdown]
# # 10 The full model
#
# In this notebook you put the Transformer together, give it its first numbers, count them, average
# several checkpoints of one, and find out what is wrong with others. With the `Transformer` that you write here, the module that
# `python -m lab assemble` makes of your notebooks is whole, and can be trained.
#
# **How to work.** Run the cells from top to bottom. Replace each `# YOUR CODE HERE` and the `raise`
# below it by your answer, then run the test cells that follow; their messages say what is wrong.
# The visible tests are not all tests: hidden ones, with other sizes and numbers, run when the
# notebook is graded. Each question is tested on its own, so you may leave one open and go on.
# Before you hand in, restart the kernel and run all cells.
#
# **Where to read.** The book's page *The full model* puts the same parts together.
#
# **Conventions.** The batch comes first. $B$ counts sentences; the source (what is read) has $M$
# tokens, the target (what is written) has $N$. A mask is boolean, and **True means: may attend**. It
# broadcasts to (B, queries, keys).
#
# **The parts** are imported from `lab.blocks`. They bear the names of your own classes of the other
# notebooks and are called in the same way; in the assembled module your own take their place.

# %% setup
import copy
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from lab.battery import assert_sound, shaken
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
    padding_mask,
)
from lab.check import (
    assert_close,
    assert_dtype,
    assert_raises,
    assert_shape,
    draw,
    expect_no_error,
    unchanged,
    visible_passed,
)

LEARNING_PARTS = ("source_embedding", "target_embedding", "encoder", "decoder", "generator")


def settled(model: Any) -> Any:
    """The model in float64, out of training, each part's numbers drawn from a seed of its own."""
    model.double().eval()
    with torch.no_grad():
        for number, part in enumerate(LEARNING_PARTS):
            for i, (name, parameter) in enumerate(getattr(model, part).named_parameters()):
                numbers = draw(tuple(parameter.shape), seed=100 * number + i)
                middle = 1 if name.endswith("gain") else 0
                parameter.copy_(middle + numbers / math.sqrt(parameter.shape[-1]))
    return model


# %% [markdown]
# ## 10.1 The Transformer   (8 points, about 45 minutes, difficulty 4 of 5)
#
# **Objective.** Put the parts together to one model that reads source ids and returns logits for the
# target.
#
# `Transformer(source_vocab, target_vocab, encoding, ...)` gets the sizes of the two vocabularies and
# the table of positions, `encoding` (max_len, d_model), from the caller. It has these attributes,
# which the tests look for:
#
# - `source_embedding`, `target_embedding`: a `TokenEmbedding(vocab_size, d_model)` each. What they
#   return has the right size already (your own class of 1.5 multiplies by itself): multiply it by
#   nothing.
# - `positional_encoding`: a `PositionalEncoding(encoding, dropout)`, called as
#   `positional_encoding(x, offset)`; one serves source and target.
# - `encoder`, `decoder`: an `Encoder` and a `Decoder`, made by `Encoder(make_layer, num_layers, norm)`,
#   where `make_layer` is a function without arguments that returns a **new**
#   `EncoderLayer(d_model, num_heads, d_ff, dropout, norm_first)`; a `DecoderLayer` takes the same
#   arguments. With `norm_first=True` each stack gets a final `LayerNorm(d_model)` of its own as
#   `norm`; with `norm_first=False` it gets None.
# - `generator`: a `Generator(d_model, target_vocab)`.
#
# With `tied=True`, matrices are shared: the generator uses the very `Parameter` that is the target
# embedding's `weight` (`generator.tie(weight)` does that), and if the two vocabularies have the same
# size, which in this course means that they are one, the source embedding uses it too. With
# `tied=False` all three are apart.
#
# Three methods:
#
# - `encode(source)` for ids $(B, M)$: returns `memory` $(B, M, d_\text{model})$, the encoder's output,
#   and `memory_mask` $(B, 1, M)$, True where the source token is not padding.
# - `decode(target, memory, memory_mask, offset=0)` for ids $(B, N)$: returns logits
#   $(B, N, V_\text{target})$, no softmax. Target token $i$ may attend to the target tokens $j \le i$
#   that are not padding, and to the memory as the `memory_mask` says. The first column of `target`
#   stands at position `offset`.
# - `forward(source, target)`: the logits for both. `target` is the decoder's input as it is: shift
#   nothing.
#
# Both languages use `pad_id` for padding. The masks are `padding_mask(ids, pad_id)` and
# `causal_mask(n)` of notebook 3; the latter knows no device, so bring it to that of the ids.
# `lab.translator`, which has a whole model, is not allowed here.
#
# <details><summary>Hint 1: a question</summary>
#
# Follow one batch of ids through the figure of the paper: which module receives it first, what does
# each hand on, and where does a mask come in? Which of the two masks is needed twice?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# `encode` is three calls: embed, add positions, encoder; and its mask. `decode` is four: embed, add
# positions, decoder, generator; its mask is "no later" **and** "is real". `forward` calls these two.
# In `__init__`, tie last.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - *missing ... required positional argument* when the encoder is made: `make_layer` takes no
#   arguments, so it is a `lambda:` that makes a layer.
# - Too few numbers to learn: does every layer come from a call of its own? Are both final norms new?
# - Too many: are two matrices only equal where they should be one and the same `Parameter`?
# - Right shapes, other numbers: are there positions on both sides, and is nothing multiplied that
#   should not be? Does `decode` end with the generator, without a softmax?
# - Right without padding, wrong with it: which id is compared with which tensor, and does the mask
#   have its axis for the queries?
# - A later target token changes an earlier row: the triangle is missing or upside down.
# - Right in post-norm, wrong in pre-norm: the final norms.
#
# </details>


# %% solution="transformer" export
class Transformer(nn.Module):
    """The whole model: logits for the next target token at every place of the target.

    Args:
        source_vocab: number of ids of the source language.
        target_vocab: number of ids of the target language.
        encoding: table of positions, (max_len, d_model).
        d_model: width of the tokens.
        num_layers: layers of the encoder, and of the decoder.
        num_heads: heads of every attention.
        d_ff: width inside the feed-forward networks.
        dropout: probability of dropping an entry, in the layers and after adding positions.
        pad_id: id of padding, in both languages.
        norm_first: normalise before each sub-layer, and once more after each stack.
        tied: share the output's matrix with the target embedding, and with the source embedding
            where the vocabularies are one.

    Source: Vaswani et al. (2017), section 3.
    """

    def __init__(
        self,
        source_vocab: int,
        target_vocab: int,
        encoding: Float[Tensor, "max_len d_model"],
        d_model: int = 512,
        num_layers: int = 6,
        num_heads: int = 8,
        d_ff: int = 2048,
        dropout: float = 0.1,
        pad_id: int = 0,
        norm_first: bool = False,
        tied: bool = True,
    ) -> None:
        super().__init__()
        ### BEGIN SOLUTION
        self.pad_id = pad_id
        self.source_embedding = TokenEmbedding(source_vocab, d_model)
        self.target_embedding = TokenEmbedding(target_vocab, d_model)
        self.positional_encoding = PositionalEncoding(encoding, dropout)
        # departs: the paper knows post-norm only, which needs no norm at
        # the end of a stack. paper: test_post_norm_stacks_end_without_a_norm
        self.encoder = Encoder(
            lambda: EncoderLayer(d_model, num_heads, d_ff, dropout, norm_first),
            num_layers,
            LayerNorm(d_model) if norm_first else None,
        )
        self.decoder = Decoder(
            lambda: DecoderLayer(d_model, num_heads, d_ff, dropout, norm_first),
            num_layers,
            LayerNorm(d_model) if norm_first else None,
        )
        self.generator = Generator(d_model, target_vocab)
        if tied:
            # departs: the paper's two languages always share one vocabulary; ours need
            # not. paper: test_one_vocabulary_is_one_matrix
            if source_vocab == target_vocab:
                self.source_embedding.weight = self.target_embedding.weight
            self.generator.tie(self.target_embedding.weight)
        ### END SOLUTION

    def encode(
        self, source: Int[Tensor, "B M"]
    ) -> tuple[Float[Tensor, "B M d_model"], Bool[Tensor, "B 1 M"]]:
        """Return the encoder's output, and where the source is no padding (True = may attend)."""
        ### BEGIN SOLUTION
        memory_mask = padding_mask(source, self.pad_id)  # (B, 1, M)
        x = self.positional_encoding(self.source_embedding(source))  # (B, M, d_model)
        return self.encoder(x, memory_mask), memory_mask
        ### END SOLUTION

    def decode(
        self,
        target: Int[Tensor, "B N"],
        memory: Float[Tensor, "B M d_model"],
        memory_mask: Bool[Tensor, "B 1 M"],
        offset: int = 0,  # position of the target's first column
    ) -> Float[Tensor, "B N target_vocab"]:
        """Return the logits: at each place of the target, for the token that comes next."""
        ### BEGIN SOLUTION
        not_later = causal_mask(target.shape[1]).to(target.device)  # (N, N)
        target_mask = not_later & padding_mask(target, self.pad_id)  # (B, N, N)
        x = self.positional_encoding(self.target_embedding(target), offset)  # (B, N, d_model)
        return self.generator(self.decoder(x, memory, target_mask, memory_mask))
        ### END SOLUTION

    def forward(
        self, source: Int[Tensor, "B M"], target: Int[Tensor, "B N"]
    ) -> Float[Tensor, "B N target_vocab"]:
        """Return the logits; the target is the decoder's input as it is."""
        ### BEGIN SOLUTION
        return self.decode(target, *self.encode(source))
        ### END SOLUTION


# %% test="transformer-parts" points=2
table = draw((9, 8), dtype=torch.float32)
model: Any = Transformer(
    11, 13, table, d_model=8, num_layers=2, num_heads=2, d_ff=20, dropout=0.3, norm_first=False
)
for name in (*LEARNING_PARTS, "positional_encoding"):
    assert isinstance(getattr(model, name, None), nn.Module), (
        f"the model should have a module named {name}"
    )
assert_shape(model.source_embedding.weight, (11, 8), "the source embedding has source_vocab rows")
assert_shape(model.target_embedding.weight, (13, 8), "the target embedding has target_vocab rows")
assert model.generator.weight is model.target_embedding.weight, (
    "tied: the generator's weight should be the same Parameter as the target embedding's"
)
one: Any = Transformer(13, 13, table, d_model=8, num_layers=1, num_heads=2, d_ff=20)
assert one.source_embedding.weight is one.generator.weight is one.target_embedding.weight, (
    "tied, one vocabulary: both embeddings and the generator should have the same Parameter"
)
visible_passed()
### BEGIN HIDDEN TESTS
for sizes, depth, tied, norm_first, matrices in (
    ((13, 11), 3, True, False, 11 + 13),
    ((13, 13), 1, True, True, 13),
    ((11, 13), 1, False, True, 11 + 13 + 13),
    ((13, 13), 1, False, False, 3 * 13),
):
    norms = 2 * 2 * 8 if norm_first else 0  # gain and bias of the norm after each stack
    layers = [kind(8, 2, 20) for kind in (EncoderLayer, DecoderLayer)]
    stacks = depth * sum(p.numel() for layer in layers for p in layer.parameters()) + norms
    wide: Any = Transformer(
        *sizes, table, 8, depth, num_heads=2, d_ff=20, norm_first=norm_first, tied=tied
    )
    weights = wide.source_embedding.weight, wide.target_embedding.weight, wide.generator.weight
    different = len({id(weight) for weight in weights})
    assert different == matrices // 13 + (11 in sizes), (
        "untied, the two embeddings and the generator should have three matrices, also where their "
        "sizes agree; tied, two vocabularies have two and one vocabulary has one"
        f"\nVocabularies {sizes}, tied={tied}: yours has {different}."
    )
    count = sum(p.numel() for p in wide.parameters())
    assert count == stacks + 8 * matrices, (
        "the numbers to learn should be those of all layers, of the matrices and, in pre-norm only, "
        f"of a norm after each stack\nVocabularies {sizes}, tied={tied}, norm_first={norm_first}, "
        f"num_layers={depth}, width 8: yours has {count}, expected {stacks + 8 * matrices}."
    )
rates = [module.p for module in model.modules() if isinstance(module, nn.Dropout)]
assert len(rates) >= 5 and set(rates) == {0.3}, (
    "the dropout asked for should reach every layer and the sum with the positions"
)
claim = "in training, the sum with the positions should be dropped as the layers' results are"
silent = settled(Transformer(11, 13, table, 8, 1, 2, 20, dropout=1.0, pad_id=10, tied=False))
memory, memory_mask = silent.train().encode(torch.tensor([[3, 7, 1]]))
logits = silent.decode(torch.tensor([[1, 5, 2]]), memory, memory_mask)
for given in (memory, logits):  # where all is dropped, nothing is known of a token
    assert_close(given, given[:, :1].expand_as(given).detach(), claim)
### END HIDDEN TESTS

# %% test="transformer-values" points=3
table = draw((9, 8), seed=900)
model = settled(Transformer(11, 13, table, 8, 2, 2, 20, dropout=0.4, pad_id=10, tied=False))
source, target = torch.tensor([[3, 7, 1, 9], [2, 2, 8, 0]]), torch.tensor([[1, 5, 0], [4, 12, 6]])
with unchanged(model):
    logits = model(source, target)
assert_shape(logits, (2, 3, 13), "logits should be (batch, target tokens, target_vocab)")
assert_close(
    logits[:, :, 5],
    torch.tensor(
        [[1.83035288, 2.03695944, 1.64532768], [1.77484001, 2.00525039, 1.70620153]],
        dtype=torch.float64,
    ),
    "post-norm: the logits of token 5 should be these",
    atol=1e-6,
)
memory, memory_mask = model.encode(source)
assert_shape(memory, (2, 4, 8), "memory should be (batch, source tokens, d_model)")
again = model.decode(target, memory, memory_mask)
assert_close(again, logits, "decode, given what encode returns, should equal forward")
visible_passed()


### BEGIN HIDDEN TESTS
def one_after_the_other(model: Any, depth: int, norm_first: bool) -> Any:
    """What the model should do, on parts of our own with its numbers."""
    kinds = (Encoder, EncoderLayer), (Decoder, DecoderLayer)
    encoder, decoder = (
        stack(
            lambda layer=layer: layer(8, 4, 20, 0.0, norm_first),
            depth,
            LayerNorm(8) if norm_first else None,
        ).double()
        for stack, layer in kinds
    )
    encoder.load_state_dict(model.encoder.state_dict())
    decoder.load_state_dict(model.decoder.state_dict())

    def run(source: Tensor, target: Tensor) -> Tensor:
        n = target.shape[1]
        memory = encoder(F.embedding(source, model.source_embedding.weight) + table[:5])
        x = F.embedding(target, model.target_embedding.weight) + table[:n]
        x = decoder(x, memory, torch.ones(n, n, dtype=torch.bool).tril())
        return F.linear(x, model.generator.weight)

    return run


source = torch.tensor([[3, 7, 1, 9, 5], [2, 2, 8, 0, 4]])
target = torch.tensor([[1, 5, 0, 11], [4, 12, 6, 6]])
model = settled(Transformer(11, 13, table, 8, 2, 4, 20, 0.4, 10, norm_first=True, tied=False))
assert_sound(
    model,
    (source, target),
    like=one_after_the_other(model, 2, norm_first=True),
    claim="pre-norm, untied: the logits should be those of embedding, positions, encoder, decoder "
    "and generator, one after the other",
    rate=0.4,
)
model = settled(Transformer(13, 13, table, 8, 1, 4, 20, 0.4, 10))
assert_close(
    model(source, target),
    one_after_the_other(model, 1, norm_first=False)(source, target),
    "post-norm, one vocabulary: the logits should be those of embedding, positions, encoder, "
    "decoder and generator, one after the other",
)
### END HIDDEN TESTS

# %% test="transformer-masks" points=2
table = draw((9, 8), seed=901)
model = settled(Transformer(11, 13, table, 8, 1, 2, 20, pad_id=4, tied=False))
source, target = torch.tensor([[3, 7, 1, 9], [2, 5, 4, 4]]), torch.tensor([[1, 5, 0], [6, 4, 4]])
_, memory_mask = model.encode(source)
assert_shape(memory_mask, (2, 1, 4), "the memory mask should be (batch, 1, source tokens)")
assert_dtype(memory_mask, torch.bool, "the memory mask should be boolean")
assert memory_mask[1, 0].tolist() == [True, True, False, False], (
    "source ids 2 5 4 4 with pad_id=4: two tokens may be attended to, two not"
)
with unchanged(model):
    together, alone = model(source, target), model(source[1:, :2], target[1:, :1])
assert_close(together[1, 0], alone[0, 0], "padding should not change the logits of real tokens")
other = model(source, torch.tensor([[1, 8, 0], [6, 4, 4]]))
assert_close(other[0, 0], together[0, 0], "a later target token should not change earlier logits")
visible_passed()
### BEGIN HIDDEN TESTS
model = settled(Transformer(13, 13, table, 8, 2, 4, 20, 0.2, pad_id=7, norm_first=True, tied=False))
source = torch.tensor([[3, 5, 1, 9, 0, 7], [2, 6, 7, 7, 7, 7], [8, 0, 4, 12, 6, 11]])
target = torch.tensor([[1, 5, 0, 7], [4, 10, 3, 2], [2, 9, 7, 7]])
before = source.clone(), target.clone()
together = model(source, target)
for row, (m, n) in enumerate(((5, 3), (2, 4))):
    alone = model(source[row : row + 1, :m], target[row : row + 1, :n])
    assert_close(
        together[row, :n],
        alone[0],
        "each sentence's logits should be the same alone, without padding, as in a batch",
    )
part = model(source, target[:, :2])
assert_close(part, together[:, :2], "logits should not depend on the target tokens that come later")
memory, memory_mask = model.encode(source)
assert memory_mask.tolist() == (source != 7).unsqueeze(1).tolist(), (
    "with pad_id=7, exactly the source ids equal to 7 should be hidden"
)
narrow = memory_mask.clone()
narrow[:, :, 0] = False
assert (model.decode(target, memory, narrow) - together).abs()[1].max() > 1e-3, (
    "decode should use the memory mask that it is given"
)
gap = torch.tensor([[1, 7, 5]])  # padding inside a target is padding, too
full = model.decode(gap, memory[:1], memory_mask[:1])
model.positional_encoding.encoding[1] = 5.0
moved = model.decode(gap, memory[:1], memory_mask[:1])
assert_close(moved[0, 2], full[0, 2], "no target token should attend to padding in the target")
assert torch.equal(source, before[0]) and torch.equal(target, before[1]), (
    "the ids should be left unchanged"
)
### END HIDDEN TESTS

# %% test="transformer-offset" points=1
table = draw((9, 8), seed=902)
model = settled(Transformer(11, 13, table, 8, 1, 2, 20, pad_id=10, tied=False))
memory, memory_mask = model.encode(torch.tensor([[3, 7, 1, 9]]))
target = torch.tensor([[5, 2]])
with unchanged(model):
    logits = model.decode(target, memory, memory_mask, offset=3)
shifted = settled(Transformer(11, 13, table[3:], 8, 1, 2, 20, pad_id=10, tied=False))
wanted = shifted.decode(target, memory, memory_mask)
assert_close(
    logits,
    wanted,
    "with offset=3, the target's positions should begin at 3, and all else be as with 0: no token "
    "sees a later one",
)
assert logits.std() > 1e-3, "logits should depend on the token, and on the target's tokens"
visible_passed()
### BEGIN HIDDEN TESTS
memory, memory_mask = model.encode(torch.tensor([[3, 7, 1, 9, 10], [2, 5, 8, 0, 6]]))
shifted = settled(Transformer(11, 13, table[6:], 8, 1, 2, 20, pad_id=10, tied=False))
target = torch.tensor([[5, 10, 7], [8, 9, 9]])
assert_close(
    model.decode(target, memory, memory_mask, 6),
    shifted.decode(target, memory, memory_mask),
    "the positions of the target should begin at offset, up to the table's last row, and padding in "
    "the target be hidden as with offset 0",
)
### END HIDDEN TESTS

# %% [markdown]
# ## 10.2 First numbers   (3 points, about 20 minutes, difficulty 3 of 5)
#
# **Objective.** Draw the numbers that a model starts from, and leave the rest as it is.
#
# `initialise(model)` gets any `nn.Module`, changes it in place, at every call with new numbers (the
# seed is the caller's), and returns nothing:
#
# - the `weight` $(V, d_\text{model})$ of every `TokenEmbedding` (ask with `isinstance`): normal, mean 0,
#   standard deviation $1 / \sqrt{d_\text{model}}$;
# - every other parameter with two axes: Xavier uniform, that is uniform between $-a$ and $a$ with
#   $a = \sqrt{6 / (\text{rows} + \text{columns})}$;
# - parameters with fewer or more axes (biases, the norms' gains, kernels): left as they are.
#
# A matrix that is shared by an embedding and a generator counts as the embedding's, and remains
# shared. `torch.nn.init` has functions for both draws.
#
# <details><summary>Hint 1: a question</summary>
#
# A shared matrix is met twice on a walk through the model. What should happen the second time?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Two walks: over the parameters, all with two axes; then over the modules, the embeddings only. Or
# note down first which parameters are embeddings. Draw into the tensors that are there.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - *Fan in and fan out can not be computed for tensor with fewer than 2 dimensions*: biases are left
#   alone.
# - The shared matrix is uniform: the order of the two walks.
# - No longer shared: a new `Parameter` was made in place of new numbers in the old one.
# - *a leaf Variable that requires grad is being used in an in-place operation*: `torch.nn.init`, or
#   `torch.no_grad()`.
#
# </details>


# %% solution="initialise" export
def initialise(model: nn.Module) -> None:
    """Draw a model's first numbers in place: matrices Xavier uniform, embeddings normal.

    The paper is silent on this; Xavier's rule is Glorot and Bengio's (2010).
    """
    ### BEGIN SOLUTION
    for parameter in model.parameters():
        if parameter.dim() == 2:
            nn.init.xavier_uniform_(parameter)
    for module in model.modules():
        if isinstance(module, TokenEmbedding):  # last, because a generator may share the matrix
            nn.init.normal_(module.weight, std=module.weight.shape[1] ** -0.5)
    ### END SOLUTION


# %% test="initialise-values" points=2
torch.manual_seed(0)
layer = EncoderLayer(48, 4, 80)
with torch.no_grad():
    for parameter in layer.parameters():
        parameter.fill_(7.0)
initialise(layer)
for name, matrix in (
    ("w_q", layer.self_attention.w_q.weight),
    ("w_o", layer.self_attention.w_o.weight),
    ("inner", layer.feed_forward.inner.weight),
):
    bound = math.sqrt(6 / sum(matrix.shape))
    largest = matrix.abs().max().item()
    assert 0.98 * bound < largest <= bound, (
        f"the entries of {name} {tuple(matrix.shape)} should lie between {-bound:.4f} and "
        f"{bound:.4f}, and reach these ends nearly\nYour largest is {largest:.4f} in size."
    )
assert_close(layer.norm1.gain, 7.0, "the gain of a norm should be left as it was")
assert_close(layer.feed_forward.inner.bias, 7.0, "a bias should be left as it was")
embedding = TokenEmbedding(500, 16)
initialise(embedding)
assert_close(
    embedding.weight.std().item(),
    0.25,
    "an embedding of width 16 should have a standard deviation of 1 / sqrt(16)",
    atol=0.02,
)
visible_passed()
### BEGIN HIDDEN TESTS
torch.manual_seed(1)
model: Any = nn.ModuleDict(
    {
        "embedding": TokenEmbedding(300, 64),
        "decoder": Decoder(lambda: DecoderLayer(64, 4, 96), 2, LayerNorm(64)),
        "generator": Generator(64, 200).requires_grad_(False),
        "convolution": nn.Conv1d(2, 3, 4),
        "positions": PositionalEncoding(torch.full((9, 64), -3.0)),
        "matrices": nn.ParameterList([torch.empty(48, 80)]),  # not called `weight`
    }
)
with torch.no_grad():
    for parameter in model.parameters():
        parameter.fill_(-3.0)
before = {name: id(parameter) for name, parameter in model.named_parameters()}
initialise(model)
for name, parameter in model.named_parameters():
    assert id(parameter) == before[name], f"{name} should be the same Parameter, with other numbers"
    assert parameter.requires_grad is not name.startswith("generator"), (
        f"{name} should be learned or frozen as before"
    )
    size = parameter.detach().abs()
    if parameter.dim() != 2:
        claim = f"{name} has {parameter.dim()} axes, not two: it should be left as it was"
        assert_close(parameter, -3.0, claim)
        continue
    assert len(parameter[:4].unique()) > 0.9 * parameter[:4].numel(), (
        f"{name} should take any value where its draw has one, not a few of them"
    )
    if name == "embedding.weight":
        assert abs(parameter.std().item() - 1 / 8) < 0.005, (
            "an embedding of width 64 should have a standard deviation of 1 / 8"
        )
        assert size.max() > 3.5 / 8, "an embedding should be normal, not uniform"
        assert abs(parameter.mean().item()) < 0.005, "an embedding should have mean 0"
    else:
        bound = math.sqrt(6 / sum(parameter.shape))
        assert 0.98 * bound < size.max().item() <= bound * (1 + 1e-6), (
            f"{name} {tuple(parameter.shape)} should be uniform between -a and a, with "
            f"a = sqrt(6 / (rows + columns))\nYour largest is {size.max().item():.4f} in size."
        )
        assert abs(size.mean().item() / bound - 0.5) < 0.03, f"{name} should be uniform"
        assert abs(parameter.mean().item()) < 0.1 * bound, f"{name} should have mean 0"
layers = model["decoder"].layers
first, second = (layer.self_attention.w_q.weight for layer in layers)
assert not torch.equal(first, second), "each layer should get numbers of its own"
assert_close(
    model["positions"].encoding,
    -3.0,
    "what is no parameter, such as a buffer, should be left as it was",
)
assert initialise(nn.Linear(3, 4)) is None, "initialise should return nothing"


class Words(TokenEmbedding):
    """A token embedding by another name."""


words = Words(300, 64)
initialise(words)
assert abs(words.weight.std().item() - 1 / 8) < 0.005, (
    "what isinstance calls a TokenEmbedding should be drawn as one, also if its class is derived from it"
)
### END HIDDEN TESTS

# %% test="initialise-tied" points=1
torch.manual_seed(2)
embedding, generator = TokenEmbedding(500, 16), Generator(16, 500)
generator.tie(embedding.weight)
shared = embedding.weight
initialise(nn.ModuleList([embedding, generator]))
assert generator.weight is embedding.weight, "what was shared should be shared afterwards"
assert_close(embedding.weight.std().item(), 0.25, "a shared matrix is the embedding's", atol=0.02)
visible_passed()
### BEGIN HIDDEN TESTS
first = shared.detach().clone()
initialise(nn.ModuleList([generator, embedding]))
assert not torch.equal(shared, first), "a second call should draw new numbers: set no seed here"
assert_close(
    generator.weight.std().item(),
    0.25,
    "a shared matrix is the embedding's, whichever of the two comes first",
    atol=0.02,
)
assert embedding.weight is shared, "initialise should keep the Parameter and change its numbers"
ordinary = nn.Embedding(400, 16)
torch.manual_seed(3)
initialise(ordinary)
first = ordinary.weight.detach().clone()
torch.manual_seed(3)
initialise(ordinary)
assert torch.equal(ordinary.weight, first), (
    "after torch.manual_seed with the same number, the numbers should be the same: the seed is the "
    "caller's"
)
assert ordinary.weight.abs().max() <= math.sqrt(6 / 416), (
    "only a TokenEmbedding is drawn as an embedding; any other matrix by Xavier's rule"
)
### END HIDDEN TESTS

# %% [markdown]
# ## 10.3 How many numbers?   (2 points, about 15 minutes, difficulty 2 of 5)
#
# **Objective.** Count what the whole model learns, by arithmetic.
#
# `count_parameters(source_vocab, target_vocab, d_model, num_layers, d_ff, norm_first, tied)` returns a
# whole number, without making a model: the tests ask for sizes, too, of which no matrix can be made.
# The parts, as in this course:
#
# - attention: four matrices $(d_\text{model}, d_\text{model})$, no biases; an encoder layer has one
#   attention, a decoder layer two;
# - feed-forward network: two linear maps **with** biases, one a layer;
# - layer norm: gain and bias; two in an encoder layer, three in a decoder layer; with `norm_first` one
#   more after each stack;
# - embeddings and output: three matrices (vocabulary, $d_\text{model}$), without bias. With `tied`, the
#   output shares the target embedding's, and where the vocabularies have the same size, the source
#   embedding does too.
#
# Sinusoids are not learned. `num_layers` counts the layers of each side.
#
# <details><summary>Hint 1: a question</summary>
#
# What is the count of one attention, one feed-forward network, one norm? How many of each are there?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Three small numbers first; a layer of either kind is a sum of multiples of them. Then the stacks,
# the final norms, and the rows of all matrices that are different, times the width.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - Too large by `d_ff + d_model` or a multiple: biases where there are none, or the reverse.
# - Too large by `vocab * d_model`: a shared matrix is counted twice.
# - *a count should be a whole number*: use `*` and `+` only.
#
# </details>


# %% solution="count-parameters"
def count_parameters(
    source_vocab: int,
    target_vocab: int,
    d_model: int,
    num_layers: int,
    d_ff: int,
    norm_first: bool = False,
    tied: bool = True,
) -> int:
    """How many numbers a Transformer of these sizes learns."""
    ### BEGIN SOLUTION
    attention = 4 * d_model**2
    feed_forward = 2 * d_model * d_ff + d_ff + d_model
    norm = 2 * d_model
    encoder_layer = attention + feed_forward + 2 * norm
    decoder_layer = 2 * attention + feed_forward + 3 * norm
    stacks = num_layers * (encoder_layer + decoder_layer) + (2 * norm if norm_first else 0)
    if not tied:
        rows = source_vocab + 2 * target_vocab
    elif source_vocab == target_vocab:
        rows = target_vocab
    else:
        rows = source_vocab + target_vocab
    return stacks + rows * d_model
    ### END SOLUTION


# %% test="count-parameters-base" points=1
count = count_parameters(37000, 37000, 512, 6, 2048)
assert isinstance(count, int), "a count should be a whole number (int)"
assert count == 63_045_632, (
    "the base model, with one vocabulary of 37,000, should have 63,045,632 numbers to learn\n"
    f"Yours has {count:,}."
)
visible_passed()
### BEGIN HIDDEN TESTS
count = count_parameters(37000, 37000, 1024, 6, 4096)
assert count == 214_171_648, (
    "the big model, with one vocabulary of 37,000, should have 214,171,648 numbers to learn\n"
    f"Yours has {count:,}."
)
two_more = count_parameters(9, 9, 512, 8, 2048) - count_parameters(9, 9, 512, 6, 2048)
assert two_more == 14_700_544, "two more layers a side should add 14,700,544 numbers"
large = "the count should follow from the sizes, also from those of which no matrix can be made"
with expect_no_error(large):
    count = count_parameters(3 * 10**17, 3 * 10**17, 8, 1, 20)
assert count == 24 * 10**17 + 1544, (
    f"the count should be exact to the last digit, for the largest sizes too\nYours is {count:,}."
)
### END HIDDEN TESTS

# %% test="count-parameters-options" points=1
count = count_parameters(11, 13, 8, 2, 20, tied=False)
apart = count_parameters(11, 13, 8, 2, 20, tied=True)
assert count - apart == 13 * 8, "tied, two vocabularies: one matrix (target_vocab, d_model) less"
one = count_parameters(13, 13, 8, 2, 20, tied=True)
assert apart - one == 11 * 8, "tied, one vocabulary: one matrix in all"
final = count_parameters(11, 13, 8, 2, 20, norm_first=True) - apart
assert final == 32, "pre-norm adds one norm after each stack: 32 numbers for width 8"
visible_passed()
### BEGIN HIDDEN TESTS
for d_model, num_layers, d_ff, norm_first, vocabularies, tied, rows in (
    (12, 3, 20, False, (7, 15), False, 37),
    (6, 2, 31, True, (15, 7), True, 22),
    (10, 5, 9, True, (15, 15), True, 15),
    (12, 3, 20, False, (15, 15), False, 45),
):
    parts = [kind(d_model, 2, d_ff) for kind in (EncoderLayer, DecoderLayer)]
    stacks = num_layers * sum(p.numel() for part in parts for p in part.parameters())
    stacks += 4 * d_model * norm_first
    count = count_parameters(*vocabularies, d_model, num_layers, d_ff, norm_first, tied)
    assert count == stacks + rows * d_model, (
        "the count should be that of all layers, of the norms after the stacks in pre-norm, and of "
        "the rows of all different matrices: one if tied with one vocabulary, two if tied with two, "
        f"three if not tied\nVocabularies {vocabularies}, d_model={d_model}, "
        f"num_layers={num_layers}, d_ff={d_ff}, norm_first={norm_first}, tied={tied}: yours has "
        f"{count:,}."
    )
### END HIDDEN TESTS

# %% [markdown]
# ## 10.4 The average of checkpoints   (3 points, about 20 minutes, difficulty 3 of 5)
#
# **Objective.** Make one model of several that were saved on the way of one training.
#
# A **state dict** is what `model.state_dict()` returns: a name for each tensor. `average_checkpoints`
# gets a list of them, oldest first, and returns a new one with the same names:
#
# - a tensor of floating-point numbers becomes the mean over all checkpoints, with its dtype;
# - any other tensor (a count of steps, a boolean mask) is taken from the **last** checkpoint.
#
# The result shares no memory with what went in, and what went in is left as it was: training may go
# on in it. If the list is empty, or two checkpoints have different names, raise a `ValueError`.
#
# Ready averages are not allowed here: `torch.optim.swa_utils`, `trainer.checkpoints` and
# `trainer.runs`.
#
# <details><summary>Hint 1: a question</summary>
#
# What does `state_dict()` return, copies or the model's own tensors? What happens to them if you add
# in place?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# For each name: put the tensors of all checkpoints on top of one another, on a new axis, and take the
# mean over that axis. `tensor.is_floating_point()` tells the two kinds apart.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - Everything is too large by the number of checkpoints: a sum is no mean.
# - *mean(): could not infer output dtype* or a count with a fraction: whole numbers are not averaged.
# - A checkpoint was changed: the sum began in the first checkpoint's own tensor.
#
# </details>


# %% solution="average-checkpoints" export
def average_checkpoints(checkpoints: Sequence[dict[str, Tensor]]) -> dict[str, Tensor]:
    """Return a new state dict: the mean of the checkpoints, oldest first.

    What is not floating-point comes from the last checkpoint.

    Raises:
        ValueError: if there is no checkpoint, or if two of them have different names.

    Source: Vaswani et al. (2017), section 6.1.
    """
    ### BEGIN SOLUTION
    if not checkpoints:
        raise ValueError("there is no checkpoint to average")
    last = checkpoints[-1]
    for checkpoint in checkpoints:
        if checkpoint.keys() != last.keys():
            odd = sorted(checkpoint.keys() ^ last.keys())
            raise ValueError(f"checkpoints must have the same names; these are not in all: {odd}")
    return {
        name: torch.stack([checkpoint[name] for checkpoint in checkpoints]).mean(0)
        if tensor.is_floating_point()
        else tensor.clone()
        for name, tensor in last.items()
    }
    ### END SOLUTION


# %% test="average-checkpoints-values" points=2
first = {"w": torch.tensor([[1.0, 2.0, 3.0]]), "steps": torch.tensor(10)}
second = {"w": torch.tensor([[3.0, 2.0, -5.0]]), "steps": torch.tensor(25)}
average = average_checkpoints([first, second])
assert set(average) == {"w", "steps"}, "the result should have the checkpoints' names"
assert_close(average["w"], torch.tensor([[2.0, 2.0, -1.0]]), "w should be the mean of the two")
assert_dtype(average["steps"], torch.int64, "whole numbers should remain whole numbers")
assert average["steps"] == 25, "whole numbers should be those of the last checkpoint"
visible_passed()
### BEGIN HIDDEN TESTS
names = ("encoder.weight", "encoder.bias")
checkpoints = [
    {
        names[0]: draw((3, 4), seed=seed),
        names[1]: draw((5,), seed=9 + seed, dtype=torch.float32),
        "seen": torch.tensor([seed > 1, True]),
        "count": torch.tensor([seed, 7]),
        "scale": torch.tensor(float(seed)),
    }
    for seed in range(5)
]
checkpoints[2] = dict(reversed(checkpoints[2].items()))
with expect_no_error("the same names in another order should not be refused"):
    average = average_checkpoints(checkpoints)
for name, digits in zip(names, (1e-12, 1e-6), strict=True):  # float64, float32
    wanted = sum(checkpoint[name] for checkpoint in checkpoints) / 5
    claim = f"{name} should be the mean of five checkpoints, to the digits that its dtype has"
    assert_close(average[name], wanted, claim, atol=digits)
    assert_dtype(average[name], checkpoints[0][name].dtype, f"{name} should keep its dtype")
assert_close(average["scale"], 2.0, "a single floating-point number should be a mean, too")
assert average["seen"].tolist() == [True, True], "booleans should be those of the last checkpoint"
assert_dtype(average["seen"], torch.bool, "booleans should remain booleans")
assert average["count"].tolist() == [4, 7], "whole numbers should be those of the last checkpoint"
alone = average_checkpoints(checkpoints[:1])
assert_close(alone[names[0]], checkpoints[0][names[0]], "one checkpoint is its own average")
model = nn.Linear(3, 2)
model.load_state_dict(average_checkpoints([model.state_dict(), model.state_dict()]))
for wrong, what in (
    ([], "an empty list"),
    ([dict.fromkeys(names, torch.ones(2)) for names in ("ab", "ac")], "as many others in the last"),
    ([dict.fromkeys(names, torch.ones(2)) for names in ("ab", "ac", "ab")], "others in the middle"),
    ([{**checkpoints[1], "more": torch.ones(2)}, checkpoints[0]], "a name missing in the last"),
    ([checkpoints[0], {**checkpoints[1], "more": torch.ones(2)}], "a name more in the last"),
):
    claim = "without checkpoints, or with other names in one of them, raise a ValueError"
    assert_raises(
        ValueError, lambda wrong=wrong: average_checkpoints(wrong), f"{claim}\nHere: {what}."
    )
for dtype in (torch.float16, torch.bfloat16):
    halves = average_checkpoints([{"w": torch.tensor([a], dtype=dtype)} for a in (1.0, 3.0)])
    assert halves["w"].tolist() == [2.0], "numbers in half precision are floating-point, too"
    assert_dtype(halves["w"], dtype, "the mean of half-precision numbers should keep its dtype")
### END HIDDEN TESTS

# %% test="average-checkpoints-copies" points=1
first = {"w": torch.tensor([1.0, 2.0]), "steps": torch.tensor([10, 3])}
second = {"w": torch.tensor([3.0, 6.0]), "steps": torch.tensor([25, 4])}
average = average_checkpoints([first, second])
assert first["w"].tolist() == [1.0, 2.0], "the first checkpoint was changed"
assert second["w"].tolist() == [3.0, 6.0], "the last checkpoint was changed"
average["w"].fill_(0)
assert first["w"].tolist() == [1.0, 2.0], "the result should share no memory with a checkpoint"
visible_passed()
### BEGIN HIDDEN TESTS
for number in (1, 3):
    checkpoints = [
        {"w": draw((2, 3), seed=seed), "steps": torch.tensor([seed, 5])} for seed in range(number)
    ]
    before = copy.deepcopy(checkpoints)
    average = average_checkpoints(checkpoints)
    for tensor in average.values():
        tensor.fill_(1)
    for checkpoint, saved in zip(checkpoints, before, strict=True):
        for name in ("w", "steps"):
            assert torch.equal(checkpoint[name], saved[name]), (
                f"{number} checkpoints, {name}: they should not change when the result does"
            )
### END HIDDEN TESTS

# %% [markdown]
# ## 10.5 Find the fault   (4 points, about 35 minutes, difficulty 5 of 5)
#
# **Objective.** Say what is wrong with a Transformer that you cannot look into.
#
# Wrong Transformers train, and their loss falls. What tells them apart is what they do with inputs that
# somebody has thought about. `find_fault(logits)` is handed a model as a function: `logits(source,
# target, offset=0)` returns what the model's `forward` returns, shape $(B, N, 12)$, in float64 and without
# dropout. `source` is $(B, M)$ and `target` $(B, N)$, `torch.long`; ids run from 0 to 11, 0 is padding; the
# first target token stands at position `offset`, and there are positions for 12 tokens. Return the
# name of the one fault that the model has:
#
# | name | fault |
# | --- | --- |
# | `"none"` | the model does all of the following right |
# | `"probabilities"` | it returns the softmax of its logits |
# | `"source"` | the source makes no difference to what it returns |
# | `"order"` | it reads the source as a bag of words: their order makes no difference |
# | `"padding"` | padding behind the source makes a difference to the rows of real tokens |
# | `"future"` | a target token makes a difference to the row of an earlier one |
# | `"offset"` | `offset` makes no difference |
#
# The models have layers and weights of their own, post-norm or pre-norm; none has two faults. All is in
# float64, so a sum that is taken in another order moves a result by about 1e-15. At most 12 calls of
# `logits` for a model.
#
# <details><summary>Hint 1: a question</summary>
#
# Take each row of the table: which two calls differ in nothing else, and what would a right model do
# in both?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# One pair of source and target as the base. Then one change at a time: two source words exchanged, one
# replaced, padding added, the last target token replaced, another offset. A fault shows either as a difference
# where none should be, or as none where one should be.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - `"order"` where it should be `"source"`: what makes no difference at all makes none in another
#   order, either.
# - `"future"` for every model: the row of the token that was changed may change.
# - `"padding"` or `"future"` for right models, sometimes: equal to the last bit is too much to ask.
#
# </details>


# %% solution="find-fault"
def find_fault(logits: Callable[..., Float[Tensor, "B N 12"]]) -> str:
    """Which fault a model has, from what it returns.

    Args:
        logits: called as logits(source, target) or logits(source, target, offset).

    Returns:
        "none", "probabilities", "source", "order", "padding", "future" or "offset".
    """
    ### BEGIN SOLUTION
    source, target = torch.tensor([[3, 7, 5, 9]]), torch.tensor([[1, 4, 8]])
    base = logits(source, target)  # (1, 3, 12)

    def same(other: Tensor) -> bool:
        return torch.allclose(base, other, atol=1e-9)

    if torch.allclose(base.sum(-1), base.new_ones(1, 3)):
        return "probabilities"
    if same(logits(torch.tensor([[3, 7, 6, 9]]), target)):
        return "source"
    if same(logits(source.flip(1), target)):
        return "order"
    if not same(logits(F.pad(source, (0, 2)), target)):
        return "padding"
    later = logits(source, torch.tensor([[1, 4, 2]]))
    if not torch.allclose(base[:, :2], later[:, :2], atol=1e-9):
        return "future"
    if same(logits(source, target, 3)):
        return "offset"
    return "none"
    ### END SOLUTION


# %% test="find-fault-some" points=2
class Suspect(nn.Module):
    """A small Transformer without a fault; what is wrong with others is wrong in one method."""

    def __init__(self, seed: int, norm_first: bool = False) -> None:
        super().__init__()
        self.embedding = TokenEmbedding(12, 8)
        self.positions = nn.Parameter(torch.empty(12, 8))
        norms = [LayerNorm(8) if norm_first else None for _ in range(2)]
        self.encoder = Encoder(lambda: EncoderLayer(8, 2, 12, 0.0, norm_first), 1, norms[0])
        self.decoder = Decoder(lambda: DecoderLayer(8, 2, 12, 0.0, norm_first), 1, norms[1])
        self.output = nn.Linear(8, 12)
        shaken(self.eval(), seed).requires_grad_(False)

    def read(self, source: Tensor) -> Tensor:
        """The source's tokens with their positions."""
        return self.embedding(source) + self.positions[: source.shape[1]]

    def real(self, source: Tensor) -> Tensor:
        """Which source tokens may be attended to."""
        return padding_mask(source, 0)

    def seen(self, target: Tensor) -> Tensor:
        """Which target tokens may be attended to."""
        return causal_mask(target.shape[1]) & padding_mask(target, 0)

    def forward(self, source: Tensor, target: Tensor, offset: int = 0) -> Tensor:
        """Return logits."""
        real = self.real(source)
        memory = self.encoder(self.read(source), real)
        x = self.embedding(target) + self.positions[offset : offset + target.shape[1]]
        return self.output(self.decoder(x, memory, self.seen(target), real))


class Eager(Suspect):
    """Attends to all real target tokens."""

    def seen(self, target: Tensor) -> Tensor:
        """Which target tokens may be attended to."""
        return padding_mask(target, 0)


class Loud(Suspect):
    """Answers in probabilities."""

    def forward(self, source: Tensor, target: Tensor, offset: int = 0) -> Tensor:
        """Return probabilities."""
        return super().forward(source, target, offset).softmax(-1)


def found(suspect: Suspect) -> str:
    """What find_fault says of a model; fail if it calls it too often."""
    calls = []

    def logits(source, target, offset=0):
        calls.append(offset)
        return suspect(source, target, offset)

    answer = find_fault(logits)
    assert len(calls) <= 12, f"at most 12 calls of the model are allowed; yours are {len(calls)}"
    return answer


for suspect, fault in ((Suspect(1), "none"), (Eager(2), "future"), (Loud(3), "probabilities")):
    answer = found(suspect)
    assert answer == fault, f"the model's fault is {fault!r}; yours says {answer!r}"
visible_passed()
### BEGIN HIDDEN TESTS
for seed, suspect in enumerate((Eager, Loud, Suspect), start=11):
    wanted = ("future", "probabilities", "none")[seed - 11]
    assert found(suspect(seed, norm_first=True)) == wanted, (
        "with other weights, in pre-norm: the future, probabilities, or no fault should be found"
    )
### END HIDDEN TESTS


# %% test="find-fault-all" points=2
class Deaf(Suspect):
    """Does not read the source."""

    def read(self, source: Tensor) -> Tensor:
        """The same for every source."""
        return self.positions[: source.shape[1]].expand(len(source), -1, -1)


class Fixed(Suspect):
    """Starts to count at 0, whatever the offset."""

    def forward(self, source: Tensor, target: Tensor, offset: int = 0) -> Tensor:
        """Return logits."""
        return super().forward(source, target)


for suspect, fault in ((Deaf(4), "source"), (Fixed(5), "offset")):
    answer = found(suspect)
    assert answer == fault, f"the model's fault is {fault!r}; yours says {answer!r}"
visible_passed()
### BEGIN HIDDEN TESTS


class A(Suspect):
    """A bag of words."""

    def read(self, source: Tensor) -> Tensor:
        """The source's tokens alone."""
        words = self.embedding(source)
        return words.clone()


class B(Suspect):
    """Padding is a word like any other."""

    def real(self, source: Tensor) -> Tensor:
        """All of them."""
        return padding_mask(source, -1)


for seed, suspect in enumerate((A, B, A, Deaf, Fixed), start=21):
    answer = found(suspect(seed, norm_first=seed > 22))
    wanted = ("order", "padding", "order", "source", "offset")[seed - 21]
    assert answer == wanted, f"a model with the fault {wanted!r} should be found out"


class C(Suspect):
    """Each target token sees the next one, and none after it."""

    def seen(self, target: Tensor) -> Tensor:
        """One token more than it should."""
        n = target.shape[1]
        return torch.ones(n, n, dtype=torch.bool).tril(1) & padding_mask(target, 0)


class D(Suspect):
    """A right model in which sums are taken in another order at each call."""

    times = 0

    def forward(self, source: Tensor, target: Tensor, offset: int = 0) -> Tensor:
        """Logits, moved by rounding."""
        self.times += 1
        return super().forward(source, target, offset) * (1 + 4e-16 * self.times)


answer = found(C(31))
assert answer == "future", (
    "a model in which each token sees the next one, and none after it, has the fault 'future'"
    f"\nYours says {answer!r}."
)
answer = found(D(32))
assert answer == "none", (
    "rounding, which moves a result by about 1e-15 from one call to the next, is no fault"
    f"\nYours says {answer!r}."
)
### END HIDDEN TESTS

# %% [markdown]
# ## 10.6 Reading a claim   (2 points, about 10 minutes, difficulty 3 of 5)
#
# **Objective.** Check a sentence about results against the table that it comes from.
#
# From table 2 of Vaswani et al. (2017, arXiv version 5 and later), BLEU on WMT 2014 and cost of
# training in floating-point operations:
#
# | model | EN-DE | EN-FR | cost EN-DE | cost EN-FR |
# | --- | --- | --- | --- | --- |
# | GNMT + RL | 24.6 | 39.92 | 2.3e19 | 1.4e20 |
# | ConvS2S | 25.16 | 40.46 | 9.6e18 | 1.5e20 |
# | Transformer (base) | 27.3 | 38.1 | 3.3e18 | 3.3e18 |
# | Transformer (big) | 28.4 | 41.8 | 2.3e19 | 2.3e19 |
#
# A blog says: "After twelve hours on eight GPUs the Transformer reached 28.4 BLEU for English to
# German. It beats every earlier model of the table in both language pairs, and costs less than a third
# of any of them." The base model was trained for twelve hours on eight GPUs, the big one for three and
# a half days. In four to six sentences: (a) name three things that are wrong, each with the numbers
# that show it; (b) write one sentence about cost that the table does support.
#
# <details><summary>Hint 1: a question</summary>
#
# Which of the two Transformers does each part of the blog's claim speak of?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Check time, quality and cost one after the other, and for the latter two both language pairs and both
# models.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - Only two things found: look at the base model's French.
# - Unsure about (b): name the model, the language pair, and whom you compare with.
#
# </details>

# %% [markdown] manual="reading-a-claim" points=2
# ### BEGIN SOLUTION
# (a) Time: 28.4 is the big model's, which took three and a half days; the model of twelve hours is the
# base model, with 27.3. Quality: for French the base model, with 38.1, is below both GNMT + RL (39.92)
# and ConvS2S (40.46), so "the Transformer beats every earlier model in both pairs" holds for the big
# one only. Cost: for German the big model needed 2.3e19, as much as GNMT + RL and 2.4 times as much as
# ConvS2S (9.6e18), not a third; even the base model is at a ratio of 2.9 to ConvS2S, just short of
# three.
#
# (b) For instance: for English to French the big model was better than both earlier models of the table
# and cost about a sixth of either (2.3e19 against 1.4e20 and 1.5e20). Or: the base model was better for
# German than both at a seventh of GNMT + RL's cost and about a third of ConvS2S's.
#
# Marking: 1 point for (a), half if one of the three is missing or has no numbers; 1 point for (b), which
# must name model, language pair and what it is compared with.
# ### END SOLUTION

# %% [markdown]
# # 12 Language model
#
# In this notebook you take the encoder away and keep the decoder: what is left writes on whatever it
# is given. You cut a text into windows, build the model, measure it in a unit that tokenisers cannot
# change, let it write with a cache and by chance, look at where in a window it is bad, find out why a
# loss is too good to be true, and draw the line along which a loss falls as models grow. The last question, a
# bonus, computes the loss that no model can beat.
#
# **How to work.** Run the cells from top to bottom. Replace each `# YOUR CODE HERE` and the `raise`
# below it by your answer, then run the test cells that follow; their messages say what is wrong.
# The visible tests are not all tests: hidden ones, with other sizes and numbers, run when the
# notebook is graded. Each question is tested on its own, so you may leave one open and go on.
# Before you hand in, restart the kernel and run all cells.
#
# **Where to read.** The book's page *Language model* does all of it on small stories.
#
# **Conventions.** The batch comes first. $B$ counts rows, $N$ the tokens of a row, $V$ those of the
# vocabulary. A mask is boolean, and **True means: may attend**. Losses are in nats: logarithms are
# natural ones.
#
# **The stories.** The cells marked *Try it* train small models for some seconds on stories of `lab.stories`. That
# source draws each word from probabilities which it knows, so its entropy, the loss that nobody gets below, is
# known too. These cells use your `LanguageModel` of 12.2; where it is not answered yet, the lab's stands in. They do
# nothing while the notebook is graded.

# %% setup
import math
from collections.abc import Callable, Sequence
from typing import Any

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from lab import plots
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
)
from lab.check import (
    assert_close,
    assert_dtype,
    assert_fraction,
    assert_gradients,
    assert_raises,
    assert_shape,
    draw,
    expect_no_error,
    unchanged,
    visible_passed,
)
from lab.language_model import Remembering, losses_of, new_model
from lab.language_model import train as train_on
from lab.predict import compare, predicted, watched
from lab.stories import Stories


def some_ids(*shape: int, vocab_size: int, seed: int) -> Tensor:
    """Ids drawn by chance."""
    return torch.randint(vocab_size, shape, generator=torch.Generator().manual_seed(seed))


# %% [markdown]
# ## 12.1 One stream   (2 points, about 10 minutes, difficulty 1 of 5)
#
# **Objective.** Make of one long text what a language model is trained on.
#
# There are no pairs any more: the text itself says what is right, one token later. `windows(stream, length)` gets the ids
# of a text, $(n)$, and returns a pair `(inputs, labels)`, both $(B, \text{length})$:
#
# - the rows of `inputs` are the text's consecutive, non-overlapping pieces of `length` tokens, from its
#   beginning on;
# - `labels` has at every place the token that comes **next** in the text, at the end of a row too;
# - there are as many rows as have all their labels in the text. What is left over is dropped.
#
# A text that is too short for a row gives two tensors $(0, \text{length})$; a length below 1 raises a `ValueError`.
#
# <details><summary>Hint 1: a question</summary>
#
# A text of 9 tokens, windows of 4: which token is the label of the fourth? Of the eighth? And with 8 tokens?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Count rows first; $B$ rows need $B \cdot \text{length} + 1$ tokens. Inputs and labels are then the same cut, made at
# two places.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - A label is missing at the end of each row: cut the labels from the text, not from the rows.
# - One row too many, or an error about shapes: does the last row's last token have a next one?
#
# </details>


# %% solution="windows"
def windows(
    stream: Int[Tensor, "n"], length: int
) -> tuple[Int[Tensor, "B length"], Int[Tensor, "B length"]]:
    """Cut a text into rows of inputs, and of labels that are one token ahead."""
    ### BEGIN SOLUTION
    if length < 1:
        raise ValueError(f"length ({length}) must be at least 1")
    rows = max(0, len(stream) - 1) // length
    end = rows * length
    return stream[:end].view(rows, length), stream[1 : end + 1].view(rows, length)
    ### END SOLUTION


# %% test="windows-shift" points=1
inputs, labels = windows(torch.tensor([5, 3, 8, 1, 9, 2, 7, 6, 4]), 4)
assert_shape(inputs, (2, 4), "9 tokens hold two windows of 4 and the label of the last token")
assert inputs.tolist() == [[5, 3, 8, 1], [9, 2, 7, 6]], (
    "the inputs should be the text's pieces of 4 tokens, one after the other"
)
assert labels.tolist() == [[3, 8, 1, 9], [2, 7, 6, 4]], (
    "each label should be the token that comes next in the text, at the end of a row too"
)
visible_passed()
### BEGIN HIDDEN TESTS
stream = some_ids(50, vocab_size=30, seed=1)
before = stream.clone()
for length in (1, 3, 7, 11):
    inputs, labels = windows(stream, length)
    for row in range(len(inputs)):
        start = row * length
        wanted = stream[start : start + length].tolist(), stream[start + 1 :][:length].tolist()
        assert (inputs[row].tolist(), labels[row].tolist()) == wanted, (
            "row r should begin at token r * length, and its labels one token later"
        )
assert torch.equal(stream, before), "the text should be left unchanged"
assert_dtype(labels, torch.int64, "ids should stay int64")
### END HIDDEN TESTS

# %% test="windows-count" points=1
with expect_no_error("8 tokens hold one window of 4 whose labels are all in the text"):
    inputs, labels = windows(torch.arange(8), 4)
assert_shape(inputs, (1, 4), "of 8 tokens the last has no next one: one window of 4, not two")
assert_shape(labels, (1, 4), "labels should have the shape of the inputs")
visible_passed()
### BEGIN HIDDEN TESTS
for count in (0, 1, 5, 6, 7, 10, 11, 12, 16):
    stream = some_ids(count, vocab_size=30, seed=count)
    with expect_no_error("a text of any length, also an empty one, should do"):
        inputs, labels = windows(stream, 5)
    rows = (count - 1) // 5 if count else 0
    assert_shape(inputs, (rows, 5), "there should be as many rows as have all their labels")
    assert_shape(labels, (rows, 5), "there should be as many rows as have all their labels")
for length in (0, -1):
    assert_raises(
        ValueError,
        lambda length=length: windows(torch.arange(6), length),
        "a length below 1 should raise a ValueError",
    )
### END HIDDEN TESTS

# %% [markdown]
# ## 12.2 A decoder without a source   (4 points, about 25 minutes, difficulty 3 of 5)
#
# **Objective.** Build the language model: a decoder from which the cross-attention has been taken out.
#
# A decoder layer without cross-attention is self-attention and feed-forward: an `EncoderLayer`, as long as each token may
# attend to itself and to those before it only. `LanguageModel(vocab_size, encoding, num_layers, num_heads, d_ff, dropout)`
# gets a table of positions, `encoding` (max_len, d_model), and has these attributes:
#
# - `embedding`: a `TokenEmbedding(vocab_size, d_model)`; what it returns is multiplied by nothing;
# - `positional_encoding`: a `PositionalEncoding(encoding, dropout)`, called as `positional_encoding(x, offset)`;
# - `stack`: an `Encoder(make_layer, num_layers, norm)`, where `make_layer` makes a new
#   `EncoderLayer(d_model, num_heads, d_ff, dropout, norm_first)` each time. Layers are **pre-norm**
#   (`norm_first=True`), so the stack ends with a `LayerNorm(d_model)`;
# - `generator`: a `Generator(d_model, vocab_size)`, tied to the embedding: `generator.tie(weight)`.
#
# `forward(ids, offset=0)`, for ids $(B, N)$, returns logits $(B, N, V)$: at every place for the token that comes next. The
# first column stands at position `offset`. There is no padding here: windows are full. The tests hold your model against a `Decoder` whose cross-attention adds
# nothing. `lab.language_model`, which has a ready one, is not allowed here.
#
# <details><summary>Hint 1: a question</summary>
#
# One call returns $N$ predictions for each row. What must the token at place 3 not see, if its prediction is to count?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# `forward` is four calls: embed, add positions, stack with `causal_mask(n)`, generator. In `__init__`, tie last.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - *missing ... required positional argument* when the stack is made: `make_layer` is a `lambda:`.
# - Too many numbers to learn: generator and embedding should have one and the same `Parameter`.
# - Prefixes give other logits than the whole: the mask. With an offset only: which rows of the table?
# - Right shapes, other numbers: is the stack pre-norm, and is there a norm at its end?
#
# </details>


# %% solution="language-model" export
class LanguageModel(nn.Module):
    """A decoder without a source: logits at every place for the token that comes next.

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
        ### BEGIN SOLUTION
        d_model = encoding.shape[1]
        self.embedding = TokenEmbedding(vocab_size, d_model)
        self.positional_encoding = PositionalEncoding(encoding, dropout)
        self.stack = Encoder(
            lambda: EncoderLayer(d_model, num_heads, d_ff, dropout, norm_first=True),
            num_layers,
            LayerNorm(d_model),
        )
        self.generator = Generator(d_model, vocab_size)
        self.generator.tie(self.embedding.weight)
        ### END SOLUTION

    def forward(self, ids: Int[Tensor, "B N"], offset: int = 0) -> Float[Tensor, "B N vocab_size"]:
        """Return the logits; the first column of ids stands at position `offset`."""
        ### BEGIN SOLUTION
        x = self.positional_encoding(self.embedding(ids), offset)  # (B, N, d_model)
        x = self.stack(x, causal_mask(ids.shape[1]).to(ids.device))
        return self.generator(x)
        ### END SOLUTION


# %% test="language-model-parts" points=1
model: Any = LanguageModel(11, draw((9, 8), dtype=torch.float32), 2, num_heads=2, d_ff=20)
for name in ("embedding", "positional_encoding", "stack", "generator"):
    assert isinstance(getattr(model, name, None), nn.Module), (
        f"the model should have a module named {name}"
    )
assert_shape(model.embedding.weight, (11, 8), "the embedding has a row for every id")
assert model.generator.weight is model.embedding.weight, (
    "the generator's weight should be the same Parameter as the embedding's"
)
visible_passed()
### BEGIN HIDDEN TESTS
for depth, width in ((1, 8), (3, 12)):
    one = sum(p.numel() for p in EncoderLayer(width, 2, 20).parameters())
    wanted = depth * one + 2 * width + 13 * width  # layers, the norm at the end, the table
    deep: Any = LanguageModel(13, draw((9, width)), depth, 2, 20, 0.3)
    count = sum(p.numel() for p in deep.parameters())
    assert count == wanted, (
        "the numbers to learn should be those of the embedding, of each layer by itself, and of one "
        f"norm at the end\nYours has {count}, expected {wanted}."
    )
rates = [module.p for module in deep.modules() if isinstance(module, nn.Dropout)]
assert len(rates) >= 4 and set(rates) == {0.3}, (
    "the dropout asked for should reach every layer and the sum with the positions"
)
### END HIDDEN TESTS


# %% test="language-model-values" points=2
def without_a_source(model: Any, depth: int, heads: int, d_ff: int) -> Callable[[Tensor], Tensor]:
    """A decoder with the model's numbers whose cross-attention adds zeros."""
    width = model.embedding.weight.shape[1]
    decoder = Decoder(
        lambda: DecoderLayer(width, heads, d_ff, 0.0, norm_first=True), depth, LayerNorm(width)
    ).double()
    numbers = model.stack.state_dict()
    with torch.no_grad():
        for name, parameter in decoder.named_parameters():
            own = name.replace("norm3", "norm2")
            if "cross_attention" in name or ".norm2" in name:
                parameter.zero_()
            else:
                parameter.copy_(numbers[own])

    def run(ids: Tensor) -> Tensor:
        n = ids.shape[1]
        x = F.embedding(ids, model.embedding.weight) + model.positional_encoding.encoding[:n]
        memory = draw((len(ids), 3, width), seed=77)
        x = decoder(x, memory, torch.ones(n, n, dtype=torch.bool).tril())
        return F.linear(x, model.embedding.weight)

    return run


model = shaken(LanguageModel(11, draw((9, 8), seed=5), 2, num_heads=2, d_ff=20), seed=1)
ids = torch.tensor([[3, 7, 1], [2, 0, 10]])
with unchanged(model):
    logits = model(ids)
assert_shape(logits, (2, 3, 11), "logits should be (batch, tokens, vocabulary)")
assert_close(
    logits,
    without_a_source(model, 2, 2, 20)(ids),
    "the logits should be those of a pre-norm decoder whose cross-attention adds nothing",
    atol=1e-9,
)
visible_passed()
### BEGIN HIDDEN TESTS
model = shaken(LanguageModel(13, draw((7, 12), seed=6), 1, 3, 16, 0.4), seed=2)
assert_close(  # what is wanted below is computed with it
    model.positional_encoding.encoding,
    draw((7, 12), seed=6),
    "the positions should be those of the table that is handed in",
)
assert_sound(
    model,
    (torch.tensor([[3, 7, 1, 9, 12], [2, 0, 10, 4, 4]]),),
    like=without_a_source(model, 1, 3, 16),
    claim="with other sizes too, the logits should be those of embedding, positions, layers, norm and "
    "generator, one after the other",
    rate=0.4,
)
claim = "in training, the sum with the positions should be dropped as the layers' results are"
silent = shaken(LanguageModel(13, draw((9, 8)), 1, 2, 20, 1.0), seed=4).train()
logits = silent(torch.tensor([[3, 7, 1]]))  # where all is dropped, nothing is known of a token
assert_close(logits, logits[:, :1].expand(1, 3, 13).detach(), claim)
### END HIDDEN TESTS

# %% test="language-model-prefix" points=1
model = shaken(LanguageModel(11, draw((9, 8), seed=7), 2, 2, 20), seed=3).eval()
ids = torch.tensor([[3, 7, 1, 5], [2, 0, 10, 4]])
with unchanged(model):
    whole, part = model(ids), model(ids[:, :2], offset=0)
assert_close(part, whole[:, :2], "later tokens should not change the logits of earlier ones")
assert (whole - whole.roll(1, dims=1)).abs().max() > 1e-3, "logits should depend on the token"
visible_passed()
### BEGIN HIDDEN TESTS
begun = model(torch.tensor([[8, 7, 1, 5], [6, 0, 10, 4]]))
assert (begun[:, 3] - whole[:, 3]).abs().max() > 1e-3, (
    "the first token should change the logits of the last one"
)
shifted = shaken(LanguageModel(11, draw((9, 8), seed=7)[4:], 2, 2, 20), seed=3).eval()
assert_close(
    model(ids, offset=4),
    shifted(ids),
    "with offset=4 the positions should begin at row 4 of the table, and all else be as with 0",
)
for n in (1, 3):
    assert_close(
        model(ids[:, :n], offset=2),
        model(ids, offset=2)[:, :n],
        "with an offset, too, later tokens should not change the logits of earlier ones",
    )
### END HIDDEN TESTS

# %% [markdown]
# ## 12.3 Perplexity, by token and by byte   (3 points, about 20 minutes, difficulty 3 of 5)
#
# **Objective.** Measure a model such that another one, with other tokens, can be compared with it.
#
# `perplexities(logits, labels, sizes, pad_id)` gets logits $(B, N, V)$, labels $(B, N)$, of which those equal to `pad_id` are
# padding, and `sizes` $(V)$: how many bytes of text each token stands for. It returns two floats:
#
# - the **perplexity of a token**: $e$ to the power of the mean of $-\log p(\text{label})$ over all real labels of the batch
#   together, each counting as much as any other;
# - the **perplexity of a byte**: the same sum of $-\log p$, divided by the bytes of all real labels.
#
# Logits may be as large as 1000. A batch in which all is padding raises a `ValueError`.
#
# <details><summary>Hint 1: a question</summary>
#
# One row has 2 real labels with losses 1 and 1, the other a single one with loss 4. What is the mean loss of a label?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# One tensor of losses $(B, N)$, one boolean one of what is real. Three sums: losses, labels, bytes. $e$ comes last.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - Right for full rows only: means of rows, or padding that is counted, as a label or with its bytes.
# - Too large: the mean of $e^x$ is above $e$ to the mean of $x$.
# - Infinity or NaN: a softmax that has become 0 before the logarithm.
# - The byte's is off: it is no quotient of perplexities; divide the sum of losses.
#
# </details>


# %% solution="perplexities"
def perplexities(
    logits: Float[Tensor, "B N V"],
    labels: Int[Tensor, "B N"],
    sizes: Int[Tensor, "V"],
    pad_id: int,
) -> tuple[float, float]:
    """Return the perplexity of a token and that of a byte."""
    ### BEGIN SOLUTION
    real = labels != pad_id
    if not real.any():
        raise ValueError("there is no label that is not padding")
    losses = -logits.log_softmax(-1).gather(-1, labels.unsqueeze(-1)).squeeze(-1)  # (B, N)
    total = losses[real].double().sum()
    count, size = real.sum(), sizes[labels[real]].sum()
    return (total / count).exp().item(), (total / size).exp().item()
    ### END SOLUTION


# %% test="perplexities-token" points=2
chances = torch.tensor([[[0.5, 0.25, 0.125, 0.125], [0.125, 0.25, 0.125, 0.5]]]).double()
logits = torch.cat([chances, chances]).log()
labels = torch.tensor([[0, 1], [2, 3]])  # 3 is padding
sizes = torch.tensor([2, 6, 4, 9])
token, byte = perplexities(logits, labels, sizes, pad_id=3)
assert_close(
    float(token),
    4.0,
    "probabilities 1/2, 1/4 and 1/8 at three real labels: the perplexity of a token should be 4",
)
visible_passed()
### BEGIN HIDDEN TESTS
assert_fraction(token, "a perplexity should be a float")
logits = draw((3, 5, 7), seed=11)
before = logits.clone()
for pad_id, kept in ((0, (5, 2, 1)), (6, (1, 4, 3))):
    labels = 1 + some_ids(3, 5, vocab_size=5, seed=pad_id)
    for row, count in enumerate(kept):
        labels[row, count:] = pad_id
    given = labels.clone()
    token, byte = perplexities(logits, labels, torch.arange(3, 10), pad_id)
    log_p = torch.log_softmax(logits, -1)
    losses = [-log_p[row, i, labels[row, i]].item() for row in range(3) for i in range(kept[row])]
    assert_close(
        float(token),
        math.exp(sum(losses) / len(losses)),
        "in a ragged batch every real label should count as much as any other, padding not at all: "
        "e to the power of the mean of their losses",
    )
    assert torch.equal(labels, given), "the labels should be left unchanged"
assert torch.equal(logits, before), "the logits should be left unchanged"
large = torch.tensor([[[120.0, 0.0, -880.0], [0.0, 1000.0, 999.0]]])
with expect_no_error("logits of 1000 should be no error"):
    token, byte = perplexities(large, torch.tensor([[1, 1]]), torch.tensor([1, 1, 1]), 2)
assert_close(
    math.log(float(token)),
    (120 + math.log(1 + math.exp(-1))) / 2,
    "a label 120 below the largest logit has a loss of 120, not infinity: take the logarithm of the "
    "softmax in one step",
    atol=1e-4,
)
assert_raises(
    ValueError,
    lambda: perplexities(large, torch.tensor([[2, 2]]), torch.tensor([1, 1, 1]), 2),
    "a batch of padding alone should raise a ValueError",
)
### END HIDDEN TESTS

# %% test="perplexities-byte" points=1
chances = torch.tensor([[[0.5, 0.25, 0.125, 0.125], [0.25, 0.25, 0.25, 0.25]]]).double()
logits = torch.cat([chances, chances]).log()
labels = torch.tensor([[0, 1], [2, 3]])
token, byte = perplexities(logits, labels, torch.tensor([2, 6, 4, 9]), pad_id=3)
assert_close(
    float(byte),
    2.0 ** (6 / 12),
    "1/2, 1/4 and 1/8 are 6 halvings, for 2 + 6 + 4 bytes: the perplexity of a byte should be 2 "
    "to the power of 6/12",
)
visible_passed()
### BEGIN HIDDEN TESTS
assert_fraction(byte, "a perplexity should be a float")
logits, sizes = draw((2, 6, 5), seed=12), torch.tensor([3, 1, 8, 5, 2])
kept = sizes.clone()
labels = torch.tensor([[0, 3, 2, 3, 4, 4], [1, 0, 4, 4, 4, 4]])
token, byte = perplexities(logits, labels, sizes, 4)
log_p, real = torch.log_softmax(logits, -1), [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 1)]
total = -sum(log_p[row, i, labels[row, i]].item() for row, i in real)
assert_close(
    float(byte),
    math.exp(total / (3 + 5 + 8 + 5 + 1 + 3)),
    "a byte's perplexity should come from the sum of all losses, divided by the bytes of the real "
    "labels, each as often as it occurs",
)
assert torch.equal(sizes, kept), "the sizes should be left unchanged"
### END HIDDEN TESTS

# %% [markdown]
# ## 12.4 Write on   (4 points, about 25 minutes, difficulty 3 of 5)
#
# **Objective.** Let a model with a cache continue a text, and hand it no token twice.
#
# The model here remembers what it has read. `model(ids, offset)`, for new ids $(B, n)$, returns their logits $(B, n, V)$; `offset` is the
# position of the first of them. `model.reset()` makes it forget all.
#
# `write_on(model, prompt, count, choose)` continues each row of `prompt` $(B, P)$ by `count` tokens and returns these,
# $(B, \text{count})$, without the prompt. `choose(logits)` turns logits $(B, V)$ into ids $(B)$; it is asked once for every column of tokens.
#
# - The model forgets first, then reads the whole prompt in **one** call: the *prefill*.
# - Then it reads one new token of each row a call, and only such as are needed: the last ones that are chosen nobody
#   reads. With `count=0` the model is not called at all.
# - It is in evaluation mode meanwhile, and afterwards in the mode in which it was. No gradients are recorded.
#
# <details><summary>Hint 1: a question</summary>
#
# The prompt has 4 tokens. At which position stands the first token that you choose, and which logits of the prefill chose it?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# `new = prompt`, `offset = 0`; each round calls, adds the width of `new` to the offset, and chooses `new` for the next
# round.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - The first token is right, later ones are not: offsets.
# - The first is wrong: whose logits are handed to `choose`? The last token's see the whole prompt.
# - Wrong for the second prompt: what does the model still remember?
# - *count* calls and one: the last token is read for nothing.
#
# </details>


# %%
class Script(nn.Module):
    """A model whose logits depend on all that it has read and where; it notes each call."""

    def __init__(self, vocab_size: int) -> None:
        super().__init__()
        self.vocab_size, self.read, self.calls = vocab_size, [], []
        self.gain = nn.Parameter(torch.ones((), dtype=torch.float64))
        self.recorded = False

    def reset(self) -> None:
        """Forget."""
        self.read, self.calls = [], [*self.calls, "reset"]

    def forward(self, ids: Tensor, offset: int) -> Tensor:
        """Logits that prefer, after what a row has read, one token above all."""
        self.calls.append((ids.shape[1], offset))
        rows = []
        for i in range(ids.shape[1]):
            self.read.append((ids[:, i], offset + i))
            total = torch.stack([token * (place + 1) for token, place in self.read]).sum(0)
            rows.append(F.one_hot(total % self.vocab_size, self.vocab_size).double())
        logits = self.gain * torch.stack(rows, dim=1)  # (B, n, V)
        self.recorded |= logits.requires_grad
        return -logits if self.training else logits


def likeliest(logits: Tensor) -> Tensor:
    """The id with the largest logit of each row."""
    return logits.argmax(-1)


# %% solution="write-on"
def write_on(
    model,  # an nn.Module with reset() and model(ids, offset)
    prompt: Int[Tensor, "B P"],
    count: int,
    choose: Callable[[Float[Tensor, "B V"]], Int[Tensor, "B"]],
) -> Int[Tensor, "B count"]:
    """Continue each row of the prompt by `count` tokens, and return these."""
    ### BEGIN SOLUTION
    was_training = model.training
    model.eval()
    model.reset()
    new, offset, written = prompt, 0, prompt[:, :0]
    with torch.no_grad():
        for _ in range(count):
            logits = model(new, offset)[:, -1]  # (B, V)
            offset += new.shape[1]
            new = choose(logits).unsqueeze(1)  # (B, 1)
            written = torch.cat([written, new], dim=1)
    model.train(was_training)
    return written
    ### END SOLUTION


# %% test="write-on-tokens" points=2
model = Script(7)
written = write_on(model, torch.tensor([[3, 1, 2], [6, 0, 4]]), 4, likeliest)
assert_shape(written, (2, 4), "two rows continued by 4 tokens: (2, 4), without the prompt")
wanted = []
for row in ([3, 1, 2], [6, 0, 4]):
    for _ in range(4):
        row.append(sum(token * (place + 1) for place, token in enumerate(row)) % 7)
    wanted.append(row[3:])
assert written.tolist() == wanted, (
    "each token should be chosen by the logits at the last token, after all before it were read at "
    f"their places\nYours are {written.tolist()}, expected {wanted}."
)
visible_passed()
### BEGIN HIDDEN TESTS
from lab.language_model import LanguageModel as LabLanguageModel

plain = shaken(LabLanguageModel(9, draw((12, 8), seed=21), 2, 2, 12), seed=4).eval()


class Real(nn.Module):
    """A real model with a cache, kept where nobody looks into it."""

    def __init__(self):
        super().__init__()
        self.inside = [Remembering(plain)]

    def reset(self):
        """Forget."""
        self.inside[0].reset()

    def forward(self, ids, offset):
        """Logits at the new tokens."""
        return self.inside[0](ids, offset)


remembering = Real()
for prompt, count in ((some_ids(3, 4, vocab_size=9, seed=2), 6), (torch.tensor([[5]]), 8)):
    before = prompt.clone()
    written = write_on(remembering, prompt, count, likeliest)
    ids = prompt
    for _ in range(count):
        ids = torch.cat([ids, plain(ids)[:, -1:].argmax(-1)], dim=1)
    assert written.tolist() == ids[:, prompt.shape[1] :].tolist(), (
        "with a cache a real model should write what it writes when it reads all anew for every "
        "token, for a second prompt too"
    )
    assert torch.equal(prompt, before), "the prompt should be left unchanged"
assert_dtype(written, torch.int64, "ids should be int64")
handed = []


def second_likeliest(logits):
    """Notes what it is handed."""
    handed.append(tuple(logits.shape))
    return logits.topk(2).indices[:, 1]


written = write_on(remembering, torch.tensor([[4, 4], [1, 8]]), 3, second_likeliest)
assert handed == [(2, 9)] * 3, "choose should be asked once for each new token, with logits (B, V)"
first = plain(torch.tensor([[4, 4], [1, 8]]))[:, -1].topk(2).indices[:, 1]
assert written[:, 0].tolist() == first.tolist(), "tokens should be those that choose gives"
### END HIDDEN TESTS

# %% test="write-on-economy" points=2
model = Script(7)
write_on(model, torch.tensor([[3, 1, 2], [6, 0, 4]]), 3, likeliest)
assert model.calls == ["reset", (3, 0), (1, 3), (1, 4)], (
    "after a reset, the prompt's 3 tokens should be read in one call at offset 0, then one token at a "
    f"time at 3 and 4; the last one chosen is not read\nYours: {model.calls}."
)
visible_passed()
### BEGIN HIDDEN TESTS
for is_training in (True, False):
    model = Script(5).train(is_training)
    written = write_on(model, torch.tensor([[3, 1, 2, 2], [1, 0, 4, 1]]), 1, likeliest)
    assert model.calls == ["reset", (4, 0)], "for one token, the prefill should be the only call"
    assert written.tolist() == [[(3 + 2 + 6 + 8) % 5], [(1 + 12 + 4) % 5]], (
        "the model should be in evaluation mode while it writes"
    )
    assert model.training is is_training, (
        "the model should be left in the mode in which it was found"
    )
    assert not model.recorded, "no gradients should be recorded"
model = Script(5)
with expect_no_error("count=0 should be no error"):
    written = write_on(model, torch.tensor([[3, 1], [2, 0], [4, 4]]), 0, likeliest)
assert_shape(written, (3, 0), "count=0 should give no tokens: (B, 0)")
assert_dtype(written, torch.int64, "ids should be int64, also where there is none")
assert [call for call in model.calls if call != "reset"] == [], (
    "with count=0 the model should not be called"
)
model.training = True
write_on(model, torch.tensor([[3]]), 0, likeliest)
assert model.training, "a model in training mode should be left so, also when nothing is written"
### END HIDDEN TESTS

# %% [markdown]
# ## 12.5 What may be drawn   (3 points, about 20 minutes, difficulty 3 of 5)
#
# **Objective.** Turn logits into the probabilities that the next token is drawn from.
#
# `shaped(logits, temperature, top_k, top_p)` gets logits $(B, V)$ and returns probabilities $(B, V)$; each row adds up to 1. In
# this order:
#
# 1. divide by the temperature, above 0;
# 2. if `top_k` is not None: keep the `top_k` largest of each row ($V$, if it is larger), the others get probability 0;
# 3. if `top_p` is not None: of the probabilities of **what is left, which add up to 1**, keep the likeliest ones: as few
#    as have together **at least** `top_p`. So there is always one left, and `top_p=1` keeps all that have a probability.
#
# What is kept is normalised again. A temperature of 0 or below, a `top_k` below 1, and a `top_p` that is not above 0 and
# at most 1 raise a `ValueError`. No two logits of a row are equal. Nothing is drawn here.
#
# <details><summary>Hint 1: a question</summary>
#
# Probabilities 0.5, 0.3, 0.2 and `top_p=0.6`. Which tokens stay? What sum have those before the second, and before the third?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Sort each row, the likeliest first, and add up along it. A token stays if the sum of those **before** it is below `top_p`. The
# sort's indices lead back to the token's place (`scatter`).
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - One token too few: the one that crosses `top_p` belongs to what is kept.
# - One token too many where some have exactly `top_p` together: that is at least `top_p`.
# - Right for rows that are sorted, wrong for others: ids and ranks are two things.
# - Top-k and top-p together give too many: the sum of what top-k has left should be 1 first.
# - Temperature changes what `top_p` keeps, and should: it comes first.
#
# </details>


# %% solution="shaped"
def shaped(
    logits: Float[Tensor, "B V"],
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> Float[Tensor, "B V"]:
    """Return the probabilities to draw from, after temperature, top-k and top-p."""
    ### BEGIN SOLUTION
    if temperature <= 0:
        raise ValueError(f"temperature ({temperature}) must be above 0")
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k ({top_k}) must be at least 1")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError(f"top_p ({top_p}) must be above 0 and at most 1")
    scaled = logits / temperature
    if top_k is not None:
        least = scaled.topk(min(top_k, scaled.shape[-1])).values[:, -1:]  # (B, 1)
        scaled = scaled.masked_fill(scaled < least, -math.inf)
    chances = scaled.softmax(-1)
    if top_p is not None and top_p < 1:  # 1 keeps all; a sum may be rounded to it
        ordered, ids = chances.sort(dim=-1, descending=True)
        before = ordered.cumsum(-1) - ordered  # what the likelier ones have together
        dropped = torch.zeros_like(before, dtype=torch.bool).scatter(-1, ids, before >= top_p)
        chances = scaled.masked_fill(dropped, -math.inf).softmax(-1)
    return chances
    ### END SOLUTION


# %% test="shaped-nucleus" points=2
chances = torch.tensor([[0.3, 0.5, 0.05, 0.15], [0.15, 0.05, 0.5, 0.3]], dtype=torch.float64)
assert_close(
    shaped(chances.log(), top_p=0.7),
    torch.tensor([[0.375, 0.625, 0, 0], [0, 0, 0.625, 0.375]]).double(),
    "0.5 and 0.3 have together at least 0.7, and 0.5 alone has not: these two should stay, with "
    "probabilities 0.625 and 0.375",
)
assert_close(
    shaped(chances.log(), top_p=0.1),
    torch.tensor([[0.0, 1, 0, 0], [0, 0, 1, 0]]).double(),
    "a small top_p should keep the likeliest token alone",
)
visible_passed()
### BEGIN HIDDEN TESTS
logits = 2 * draw((41, 7), seed=31)
logits[40, :3] = torch.tensor([0.125, 0.5, 0.375]).double().log()  # sums without rounding
logits[40, 3:] -= 1000
before = logits.clone()


def fewest(row, top_p):
    """Probabilities of the likeliest tokens that have together at least top_p."""
    kept, mass = [0.0] * len(row), 0.0
    for i in sorted(range(len(row)), key=lambda i: -row[i]):
        kept[i] = row[i]
        mass += row[i]
        if mass >= top_p:
            break
    return [chance / mass for chance in kept]


for top_p in (0.2, 0.5, 0.9, 0.99):
    for temperature in (1.0, 0.6):
        rows = (logits / temperature).softmax(-1).tolist()
        assert_close(
            shaped(logits, temperature, top_p=top_p),
            torch.tensor([fewest(row, top_p) for row in rows]).double(),
            "each row should keep as few of its own likeliest tokens as have together at least "
            "top_p, in the distribution that the temperature gives",
        )
assert torch.equal(logits, before), "the logits should be left unchanged"
assert_close(
    shaped(logits, top_p=1.0), logits.softmax(-1), "top_p=1 should keep all, and change nothing"
)
both = shaped(logits[:40], 0.8, 3, 0.7)
for row, given in zip(both, logits[:40] / 0.8, strict=True):
    places = given.topk(3).indices.tolist()
    left = given[places].softmax(-1).tolist()
    wanted = torch.zeros(7).double()
    wanted[places] = torch.tensor(fewest(left, 0.7)).double()
    assert_close(
        row, wanted, "top_p should be about what top_k has left, which adds up to 1 by itself"
    )
assert_close(
    shaped(logits[:3], 0.5, top_p=1.0),
    (logits[:3] / 0.5).softmax(-1),
    "top_p=1 should keep all, at any temperature",
)
### END HIDDEN TESTS

# %% test="shaped-rest" points=1
logits = torch.tensor([[1.0, 0.0, 2.0], [3.0, -1.0, 0.5]], dtype=torch.float64)
assert_close(
    shaped(logits, temperature=2.0),
    (logits / 2).softmax(-1),
    "with temperature 2 the logits should be halved before the softmax",
)
assert_close(
    shaped(logits, top_k=2),
    torch.stack(
        [
            torch.tensor([1.0, -math.inf, 2.0]).double().softmax(-1),
            torch.tensor([3.0, -math.inf, 0.5]).double().softmax(-1),
        ]
    ),
    "with top_k=2 the two largest of each row should share the probability",
)
visible_passed()
### BEGIN HIDDEN TESTS
logits = draw((4, 6), seed=32)
for top_k in (1, 3, 6, 20):
    wanted = torch.zeros(4, 6).double()
    for row in range(4):
        places = logits[row].topk(min(top_k, 6)).indices
        wanted[row, places] = (logits[row, places] / 0.7).softmax(-1)
    with expect_no_error("a top_k above V should be as good as V"):
        found = shaped(logits, 0.7, top_k)
    assert_close(found, wanted, "top_k should be about each row's own largest, after temperature")
assert_dtype(shaped(logits.float(), 0.7, 3, 0.9), torch.float32, "float32 should give float32")
for wrong in (
    *((0.0, None, None), (-1.0, None, None)),
    *((1.0, 0, None), (1.0, -2, None), (1.0, None, 0.0), (1.0, None, -0.5)),
):
    assert_raises(
        ValueError,
        lambda wrong=wrong: shaped(logits, *wrong),
        "temperature 0 or below, top_k below 1 and top_p 0 or below should raise a ValueError",
    )
assert_raises(
    ValueError,
    lambda: shaped(logits, 1.0, None, 1.5),
    "a top_p above 1 should raise a ValueError",
)
### END HIDDEN TESTS

# %% [markdown]
# ## 12.6 Early and late   (3 points, about 15 minutes, difficulty 2 of 5)
#
# **Objective.** Predict what a language model loses without positions, then look where in a window it is bad.
#
# The cell below trains your `LanguageModel` twice on the stories, some seconds each: once as it is, once with a table of positions that holds
# zeros. A model that knew only how often each word occurs would have a loss of about 3.4; the whole one gets to about
# 1.5. How much of that distance is lost without positions? Let `predicted_loss` return one of the texts in `LOST`: the point is
# for having predicted.
#
# Then run the cell and let `measured_early` return the six numbers that it prints last: `"whole"` and `"without"`, the mean
# losses of both models on held-out windows; of the whole model `"first"`, its loss at the first word that it predicts, and `"last"`, the
# mean of the last eight; and for these two places the **best** loss that any reader of the window can have,
# `"first_best"` and `"last_best"`.
#
# <details><summary>Hint 1: a question</summary>
#
# Nothing tells a token its place, but each sees another number of tokens. Can a layer make something of that?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Think of the first token, which attends to itself alone, and of the mean over what the others see.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - *predict first*: `predicted_loss` returns nothing yet, or none of the texts.
# - Your numbers are refused: return all six of one run, as they were printed.
#
# </details>

# %%
LOST = ("all of it", "about half", "less than a tenth", "nothing at all")


# %% solution="predicted-loss"
def predicted_loss() -> str:
    """What you expect: one of LOST."""
    ### BEGIN SOLUTION
    return "about half"
    ### END SOLUTION


# %% test="predicted-loss-made" points=1
share = predicted_loss()
assert isinstance(share, str), "a prediction is one of the texts in LOST"
assert share in LOST, f"a prediction is one of the texts {LOST}\nYours is {share!r}."
visible_passed()

# %%
if watched():  # not while the notebook is graded
    prediction = predicted(predicted_loss, LOST)
    torch.set_num_threads(1)  # small matrices: one core is fastest
    source = Stories()
    stream, held_out = source.draw(200_000, seed=1), source.draw(33 * 400, seed=2).view(-1, 33)
    best = source.best_losses(held_out)[:, 1:]
    models, losses = {}, {}
    for name, positions in (("whole", True), ("without", False)):
        models[name] = new_model(len(source), make=LanguageModel, positions=positions)
        train_on(models[name], stream, 350)
        losses[name] = losses_of(models[name], held_out)
    lost = (losses["without"].mean() - losses["whole"].mean()) / (3.4 - losses["whole"].mean())
    compare(prediction, f"{lost:.0%} of the distance is lost")
    places = {
        "without positions": losses["without"].mean(0),
        "whole model": losses["whole"].mean(0),
        "best possible": best.mean(0),
    }
    ax = plots.lines(range(1, 33), places, "Loss against place", "place in the window", "loss")
    ax.axhline(source.entropy, color=plots.INK, linewidth=1)
    plt.show()
    whole = losses["whole"]
    numbers = {
        "whole": whole.mean(),
        "without": losses["without"].mean(),
        "first": whole[:, 0].mean(),
        "last": whole[:, -8:].mean(),
        "first_best": best[:, 0].mean(),
        "last_best": best[:, -8:].mean(),
    }
    print({name: round(float(number), 3) for name, number in numbers.items()})


# %% solution="measured-early"
def measured_early() -> dict[str, float]:
    """The six numbers that the cell printed."""
    ### BEGIN SOLUTION
    return {
        "whole": 1.459,
        "without": 1.552,
        "first": 1.878,
        "last": 1.425,
        "first_best": 1.856,
        "last_best": 1.362,
    }
    ### END SOLUTION


# %% test="measured-early-consistent" points=2
numbers = measured_early()
assert isinstance(numbers, dict), "measured_early should return a dict"
assert sorted(numbers) == ["first", "first_best", "last", "last_best", "whole", "without"], (
    "the numbers are called 'whole', 'without', 'first', 'last', 'first_best' and 'last_best'"
)
visible_passed()
### BEGIN HIDDEN TESTS
whole, without, first, last, first_best, last_best = (
    float(numbers[name])
    for name in ("whole", "without", "first", "last", "first_best", "last_best")
)
assert abs(first_best - 1.856) < 0.03 and abs(last_best - 1.362) < 0.03, (
    "the best losses come from the source alone and are the same in every run"
)
assert first > first_best - 0.02 and last > last_best - 0.02, (
    "no model can be better than the best possible loss at its place"
)
assert last < whole < first, (
    "the first word has the least before it: its loss should be the largest, and the mean lie between "
    "it and that of the last words"
)
assert 1.4 < whole < 2.2 and whole - 0.02 < without < 2.6, (
    "after some seconds the whole model has a loss between 1.4 and 2.2, and without positions it is "
    "hardly better"
)
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>What happened</summary>
#
# Very little is lost. Under the causal mask every place sees another number of tokens, and the mean over them tells a layer how many
# there were; besides, the word before, which is easy to find, tells most of what comes next. The first words
# of a window are bad for every reader: whoever begins in the middle does not know who the hero is. The gap between model and best possible
# loss is no larger there than at the end: what looks like a weakness of the model at the start of a window is a
# lack of context.
#
# </details>

# %% [markdown]
# ## 12.7 Too good to be true   (3 points, about 20 minutes, difficulty 3 of 5)
#
# **Objective.** Find the leaks behind a loss that lies below the entropy.
#
# A friend's language model gets a loss of 0.4 a token on **held-out** stories, whose entropy is 1.35. So
# something is wrong: nobody can guess better. The loss is computed by the next cell. `parts` holds functions: `"embed"`, which turns ids $(B, n)$ into
# vectors $(B, n, D)$, positions included; `"stack"`, called with vectors and a mask; and `"head"`, from vectors to logits. You tried things out, and found four symptoms:
#
# - `"peeks"`: the vector that the stack returns at a place changes with the token right after it;
# - `"drifts"`: with a stack that returns its vectors as they are, logits change when a *later* token does;
# - `"sums"`: at one place, $e$ to the power of the log-probabilities of all $V$ tokens does not add up to 1;
# - `"pads"`: the loss of a batch changes when all rows get more padding.
#
# Say which line is behind each. Then write the loss as it should be: the mean over all real labels, from which
# gradients flow back.
#
# <details><summary>Hint 1: a question</summary>
#
# Which axis is which in the logits $(B, n, V)$? Along which may nothing be added up?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Go through the lines and ask of each: which tokens can what it computes at place $i$ depend on?
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - Right without padding, wrong with it: labels that are `pad_id` are none.
# - A little off everywhere: vectors go to the head as they come out of the stack.
#
# </details>


# %%
def friends_loss(ids, parts, pad_id):
    inputs, labels = ids[:, :-1], ids[:, 1:]  # line 1
    n = inputs.shape[1]  # line 2
    mask = torch.ones(n, n, dtype=torch.bool).tril(1)  # line 3
    x = parts["stack"](parts["embed"](inputs), mask)  # line 4
    logits = parts["head"](x - x.mean(1, keepdim=True))  # line 5
    log_p = logits.log_softmax(1)  # line 6
    losses = -log_p.gather(-1, labels.unsqueeze(-1)).squeeze(-1)  # line 7
    return losses.mean()  # line 8


# %% solution="leak-causes"
def leak_causes() -> dict[str, int]:
    """By symptom ("peeks", "drifts", "sums", "pads"), the line that is behind it."""
    ### BEGIN SOLUTION
    return {"peeks": 3, "drifts": 5, "sums": 6, "pads": 8}
    ### END SOLUTION


# %% test="leak-causes-lines" points=1
causes = leak_causes()
assert isinstance(causes, dict), "leak_causes should return a dict, from symptoms to lines"
assert sorted(causes) == ["drifts", "pads", "peeks", "sums"], (
    "the four symptoms are 'peeks', 'drifts', 'sums' and 'pads'"
)
assert all(line in range(1, 9) for line in causes.values()), (
    f"lines have the numbers 1 to 8\nYours are {list(causes.values())}."
)
visible_passed()
### BEGIN HIDDEN TESTS
assert causes["peeks"] == 3, "the line behind 'peeks' is another one"
assert causes["drifts"] == 5, "the line behind 'drifts' is another one"
assert causes["sums"] == 6, "the line behind 'sums' is another one"
assert causes["pads"] == 8, "the line behind 'pads' is another one"
### END HIDDEN TESTS


# %% solution="honest-loss"
def honest_loss(
    ids: Int[Tensor, "B N"], parts: dict[str, Callable[..., Tensor]], pad_id: int
) -> Tensor:
    """The mean loss of all labels that are no padding, with nothing leaking."""
    ### BEGIN SOLUTION
    inputs, labels = ids[:, :-1], ids[:, 1:]
    n = inputs.shape[1]
    mask = torch.ones(n, n, dtype=torch.bool).tril()
    x = parts["stack"](parts["embed"](inputs), mask)
    log_p = parts["head"](x).log_softmax(-1)
    losses = -log_p.gather(-1, labels.unsqueeze(-1)).squeeze(-1)  # (B, n)
    return losses[labels != pad_id].mean()
    ### END SOLUTION


# %% test="honest-loss-values" points=2
def made_parts(vocab_size: int, width: int, seed: int) -> dict[str, Callable[..., Tensor]]:
    """Functions with drawn numbers; the stack mixes what the mask lets each place see."""
    table, head = draw((vocab_size, width), (vocab_size, width), seed=seed)
    places = draw((12, width), seed=seed + 1)
    return {
        "embed": lambda ids: table[ids] + places[: ids.shape[1]],
        "stack": lambda x, mask: x + (mask / mask.sum(-1, keepdim=True)).double() @ x.sin(),
        "head": lambda x: x @ head.T,
    }


def by_prefixes(ids: Tensor, parts: dict[str, Callable[..., Tensor]], pad_id: int) -> float:
    """The same, one prefix after the other, so that there is nothing that could leak."""
    losses = []
    for row in ids:
        for n in range(1, len(row)):
            if row[n] != pad_id:
                seen = torch.ones(n, n, dtype=torch.bool).tril()
                logits = parts["head"](parts["stack"](parts["embed"](row[None, :n]), seen))
                losses.append(-logits[0, -1].log_softmax(-1)[row[n]].item())
    return sum(losses) / len(losses)


parts = made_parts(9, 4, seed=51)
ids = torch.tensor([[3, 7, 1, 4], [2, 6, 8, 8]])  # 8 is padding
loss = honest_loss(ids, parts, pad_id=8)
assert_shape(loss, (), "the loss is one number: a tensor of shape ()")
assert_close(
    loss,
    torch.tensor(by_prefixes(ids, parts, 8)).double(),
    "the loss should be the mean over the four real labels, each predicted from the tokens before "
    "it alone",
)
visible_passed()
### BEGIN HIDDEN TESTS
parts = made_parts(11, 6, seed=53)
ids = some_ids(3, 8, vocab_size=10, seed=3)
ids[0, 5:] = ids[2, 3:] = 10
before = ids.clone()
assert_close(
    honest_loss(ids, parts, 10),
    torch.tensor(by_prefixes(ids, parts, 10)).double(),
    "with other sizes, and rows of different lengths, the loss should be the mean over all real labels",
)
wide = torch.cat([ids, torch.full((3, 3), 10)], dim=1)
assert_close(
    honest_loss(wide, parts, 10),
    torch.tensor(by_prefixes(ids, parts, 10)).double(),
    "more padding should not change the loss",
)
with expect_no_error("a single row should be no error: name the axis that goes"):
    loss = honest_loss(ids[:1], parts, 10)
assert_close(
    loss,
    torch.tensor(by_prefixes(ids[:1], parts, 10)).double(),
    "a single row should have the mean over its own real labels",
)
assert torch.equal(ids, before), "the ids should be left unchanged"
head = nn.Linear(6, 11).double()
parts["head"] = head
seen = torch.ones(7, 7, dtype=torch.bool).tril()
logits = head(parts["stack"](parts["embed"](ids[:, :-1]), seen))
assert_gradients(
    honest_loss(ids, parts, 10).reshape(1),
    F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten(), ignore_index=10).reshape(1),
    {"the head": head.weight},
    "gradients should flow back from the loss, or nothing learns from it",
)
### END HIDDEN TESTS

# %% [markdown]
# ## 12.8 Along a line   (4 points, about 25 minutes, difficulty 3 of 5)
#
# **Objective.** Find the law by which the loss falls as models grow.
#
# Above the best possible loss, the **floor**, the loss of models of $n$ parameters often falls as
#
# $$\text{loss}(n) \approx \text{floor} + a\, n^{-\alpha}$$
#
# which is a straight line if both $\log n$ and $\log(\text{loss} - \text{floor})$ are drawn. `fit(sizes, losses, floor)` returns two
# floats, $(a, \alpha)$, of the line with the least squared errors **in these logarithms**. A loss that is not above the floor,
# lists of different lengths, and fewer than two different sizes raise a `ValueError`.
#
# Then run *Try it*, which trains seven models, and let `measured_sizes` return what **you** measured: a pair of the table, a dictionary from
# parameters to loss with at least six sizes, and the $\alpha$ that was printed.
#
# <details><summary>Hint 1: a question</summary>
#
# Of the line through $(\log n, \log(\text{loss} - \text{floor}))$, what is its slope, and what does it have at $\log n = 0$?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# The slope of a least-squares line is the sum of $(x - \bar x)(y - \bar y)$ over that of $(x - \bar x)^2$; the line
# goes through $(\bar x, \bar y)$.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - $\alpha$ has the wrong sign: it stands with a minus in the exponent.
# - $a$ is off by a lot: $e$ to the power of what the line has at 0.
# - $\alpha$ is far too small: the floor has not been taken off.
#
# </details>


# %% solution="fit"
def fit(sizes: Sequence[float], losses: Sequence[float], floor: float) -> tuple[float, float]:
    """Return a and alpha of the law loss = floor + a * size ** -alpha."""
    ### BEGIN SOLUTION
    if len(sizes) != len(losses) or len(set(sizes)) < 2:
        raise ValueError("as many losses as sizes are needed, and two different sizes")
    if min(losses) <= floor:
        raise ValueError(f"a loss of {min(losses)} is not above the floor of {floor}")
    x = [math.log(size) for size in sizes]
    y = [math.log(loss - floor) for loss in losses]
    middle, height = sum(x) / len(x), sum(y) / len(y)
    across = sum((one - middle) ** 2 for one in x)
    slope = sum((one - middle) * (other - height) for one, other in zip(x, y, strict=True)) / across
    return math.exp(height - slope * middle), -slope
    ### END SOLUTION


# %% test="fit-values" points=2
sizes = [100, 1000, 10_000]
a, alpha = fit(sizes, [1.5 + 8 * n**-0.5 for n in sizes], 1.5)
assert_close(float(alpha), 0.5, "losses 1.5 + 8 n^-0.5 over a floor of 1.5: alpha should be 0.5")
assert_close(float(a), 8.0, "losses 1.5 + 8 n^-0.5 over a floor of 1.5: a should be 8", atol=1e-4)
visible_passed()
### BEGIN HIDDEN TESTS
sizes = [3e4, 50, 800, 4000, 800]
losses = [2.1, 4.4, 2.9, 2.35, 3.0]
kept = [*sizes], [*losses]
a, alpha = fit(sizes, losses, 1.9)
logs = torch.tensor([[1.0, math.log(size)] for size in sizes]).double()
heights = torch.tensor([[math.log(loss - 1.9)] for loss in losses]).double()
level, slope = torch.linalg.lstsq(logs, heights).solution[:, 0].tolist()
assert_close(
    float(alpha),
    -slope,
    "with points that lie on no line, alpha should be that of the least squares of the logarithms",
    atol=1e-4,
)
assert_close(
    float(a),
    math.exp(level),
    "with points that lie on no line, a should be that of the least squares of the logarithms",
    atol=1e-3,
)
assert_fraction(alpha, "alpha should be a float")
assert_fraction(a, "a should be a float")
assert (sizes, losses) == kept, "the lists should be left unchanged"
for wrong in (
    ([10, 20], [2.0, 1.5], 1.5),
    ([10, 20], [2.0, 1.4], 1.5),
    ([10, 20, 30], [2.0, 1.8], 1.5),
    ([10, 10], [2.0, 1.8], 1.5),
    ([10], [2.0], 1.5),
    ([], [], 1.5),
):
    assert_raises(
        ValueError,
        lambda wrong=wrong: fit(*wrong),
        "a loss at the floor or below it, lists of different lengths and a single size should raise "
        "a ValueError",
    )
### END HIDDEN TESTS

# %% [markdown]
# **Try it: seven sizes.** Seconds each. Change `WIDTHS` as you like. Below, the largest model writes.

# %%
WIDTHS = (4, 8, 12, 16, 24, 32, 48)

if watched():
    torch.set_num_threads(1)
    source = Stories()
    stream, held_out = source.draw(200_000, seed=1), source.draw(33 * 400, seed=2).view(-1, 33)
    floor = float(source.best_losses(held_out)[:, 1:].mean())
    table = {}
    for width in WIDTHS:
        model = new_model(len(source), width, make=LanguageModel)
        train_on(model, stream, 200)
        size = sum(p.numel() for p in model.parameters())
        table[size] = round(float(losses_of(model, held_out).mean()), 3)
        print(f"{size}: {table[size]},")
    a, alpha = fit(list(table), list(table.values()), floor)
    print(f"floor {floor:.3f}; loss = floor + {a:.1f} * n ** -{alpha:.3f}")
    above = {
        "measured": [loss - floor for loss in table.values()],
        "the line": [a * size**-alpha for size in table],
    }
    ax = plots.lines(list(table), above, "Above the floor", "parameters", "loss - floor")
    ax.set(xscale="log", yscale="log")
    plt.show()
    generator = torch.Generator().manual_seed(0)
    prompt = source.encode("<new> zoé sees the")[None]
    for temperature, top_p in ((1.0, None), (1.0, 0.9), (0.5, None)):

        def chosen(logits, temperature=temperature, top_p=top_p):
            """Drawn from what `shaped` gives."""
            chances = shaped(logits, temperature, top_p=top_p)
            return torch.multinomial(chances, 1, generator=generator)[:, 0]

        text = write_on(Remembering(model), prompt, 24, chosen)[0].tolist()
        print(f"temperature {temperature}, top_p {top_p}: ... {source.decode(text)}")


# %% solution="measured-sizes"
def measured_sizes() -> tuple[dict[int, float], float]:
    """Return your table, from parameters to loss, and your alpha."""
    ### BEGIN SOLUTION
    table = {
        532: 2.323,
        1448: 1.863,
        2748: 1.819,
        4432: 1.754,
        8952: 1.713,
        15008: 1.607,
        31728: 1.532,
    }
    return table, 0.435
    ### END SOLUTION


# %% test="measured-sizes-consistent" points=2
table, alpha = measured_sizes()
sizes = sorted(table)
assert len(sizes) >= 6, "the table should have at least six sizes"
assert sizes[0] > 0 and sizes[-1] >= 20 * sizes[0], (
    "the largest model should have at least twenty times the parameters of the smallest"
)
visible_passed()
### BEGIN HIDDEN TESTS
kept = [float(table[size]) for size in sizes]
assert all(1.403 < loss < 4.4 for loss in kept), (
    "a loss below the best possible one, or above that of a model that knows nothing, was not measured"
)
assert kept[-1] < kept[0] - 0.2, (
    "the largest model should have a clearly lower loss than the smallest"
)
x = torch.tensor([math.log(size) for size in sizes]).double()
y = torch.tensor([math.log(loss - 1.4034) for loss in kept]).double()
slope = ((x - x.mean()) * (y - y.mean())).sum() / (x - x.mean()).square().sum()
assert abs(float(alpha) + slope.item()) < 0.03, (
    "alpha should be that of the line through your own table, above the floor that the cell prints"
)
### END HIDDEN TESTS

# %% [markdown]
# ## 12.9 What an encoder buys   (2 points, about 10 minutes, difficulty 3 of 5)
#
# **Objective.** Say when one stream is enough.
#
# A decoder without a source can translate, too: its stream is *source, `<sep>`, target*, and it is trained on such rows. In three to six
# sentences: (a) Name one thing that a source token can do in an encoder and cannot do in a prompt. (b) Name one thing that the single stream makes simpler or
# cheaper. (c) Should the loss count the source's tokens as labels? Say what speaks for your choice.
#
# <details><summary>Hint 1: a question</summary>
#
# Who may attend to whom, among the source's tokens, in either model?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Compare masks for (a), parts and caches for (b), and for (c) what the gradient is about.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - Unsure about (a): write down what the second source token depends on after one layer.
# - Unsure about (c): what is the model for, and how many labels are there of either kind?
#
# </details>

# %% [markdown] manual="one-stream" points=2
# ### BEGIN SOLUTION
# (a) In an encoder a source token attends to the tokens on both sides, so its vector knows the words that follow; in a prompt under the
# causal mask it knows only those before it. (A mask that lets the prompt's tokens see each other, a prefix language model, gives that back.)
#
# (b) One stack and one kind of attention: no cross-attention and no second set of weights; one cache; the same model and the same loss for every task that
# can be written as a text; every token of the text is a label.
#
# (c) Either, with a reason. Counting them gives more labels, and the model learns the source language as well; leaving them out spends the gradient and the model's
# size on what it is for. With a prompt that is long and an answer that is short, the mean loss otherwise says more about the prompt.
#
# Marking: 1 point for (a): it must be about later tokens. 1 point for (b) and (c) together, half for each; in (c) a reason must be given.
# ### END SOLUTION

# %% [markdown]
# ## 12.10 Bonus: the best reader   (2 points, about 30 minutes, difficulty 5 of 5)
#
# **Objective.** Compute the loss that no language model can beat. (A bonus: nothing in the model needs it.)
#
# A source is always in one of $S$ states. In state $s$ it writes token $v$ with probability `chances[s, v]` and is then in the state
# `following[s, v]`. A reader does not see the states. In front of the first token of a row the state is $s$ with the probability
# `belief[s]`, the same for all rows; with each token that is read, the belief changes by Bayes' rule.
#
# `best_losses(ids, chances, following, belief)` returns for ids $(B, N)$ the losses $(B, N)$: minus the logarithm of each token's
# probability, given the tokens before it in its row. Every row can be written by the source. Two states may lead to the
# same one. `lab.stories`, where something like it stands, is not allowed here.
#
# <details><summary>Hint 1: a question</summary>
#
# You believe in two states equally, and one of them writes the token that you see three times as often. What do you believe now, and
# where is the source after it?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# For each token: weights `belief * chances[:, token]`; their sum is the token's probability; divided by it, they
# move to the states that follow, where they add up (`scatter_add` or `index_add`).
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - The first loss is right, later ones are not: the belief after a token, divided by its sum, and moved.
# - Right in rows of which all states differ, wrong otherwise: two states that lead to one have to be added.
# - Losses grow along the row: the belief does not add up to 1 any more.
#
# </details>


# %% solution="best-losses"
def best_losses(
    ids: Int[Tensor, "B N"],
    chances: Float[Tensor, "S V"],
    following: Int[Tensor, "S V"],
    belief: Float[Tensor, "S"],
) -> Float[Tensor, "B N"]:
    """Return the loss of each token for a reader who knows the source, but not its state."""
    ### BEGIN SOLUTION
    beliefs = belief.expand(len(ids), -1)  # (B, S)
    losses = []
    for tokens in ids.T:
        weights = beliefs * chances[:, tokens].T  # (B, S)
        total = weights.sum(1, keepdim=True)
        losses.append(-total.squeeze(1).log())
        beliefs = torch.zeros_like(weights).scatter_add(1, following[:, tokens].T, weights / total)
    return torch.stack(losses, dim=1)
    ### END SOLUTION


# %% test="best-losses-two-states" points=1
chances = torch.tensor([[0.75, 0.25], [0.25, 0.75]], dtype=torch.float64)
following = torch.tensor([[0, 0], [1, 1]])  # it stays in the state in which it is
losses = best_losses(torch.tensor([[0, 0], [0, 1]]), chances, following, torch.ones(2).double() / 2)
assert_shape(losses, (2, 2), "there should be a loss for every token")
assert_close(losses[:, 0], -math.log(0.5), "at first both tokens are equally likely: log 2")
assert_close(
    losses[:, 1].exp(),
    torch.tensor([1 / (0.75**2 + 0.25**2), 1 / (2 * 0.75 * 0.25)]).double(),
    "after token 0 the first state has probability 3/4, so another 0 has 5/8 and a 1 has 3/8",
)
visible_passed()
### BEGIN HIDDEN TESTS
changing = torch.tensor([[1, 0], [0, 1]])
losses = best_losses(
    torch.tensor([[0, 1, 1]]), chances, changing, torch.tensor([0.5, 0.5]).double()
)
weights = {(0.5 * 0.75): 1, (0.5 * 0.25): 0}  # by the state after the first token
second = sum(w * chances[s, 1].item() for w, s in weights.items()) / 0.5
assert_close(losses[0, 1], -math.log(second), "the belief should move to the states that follow")
start = torch.tensor([0.25, 0.75], dtype=torch.float64)
assert_close(
    best_losses(torch.tensor([[0], [1]]), chances, following, start),
    -(start @ chances).log()[:, None],
    "a first token has its probabilities in all states, weighed by the belief in them",
)
found = best_losses(torch.tensor([[0, 1]]), chances.float(), following, torch.ones(2) / 2)
assert_dtype(found, torch.float32, "probabilities in float32 should give losses in float32")
### END HIDDEN TESTS

# %% test="best-losses-text" points=1
chances = draw((3, 5), seed=61).softmax(-1)
following = torch.tensor([[0, 1, 2, 1, 0], [2, 2, 0, 1, 1], [1, 0, 0, 2, 2]])
belief = torch.tensor([0.2, 0.5, 0.3], dtype=torch.float64)
ids = torch.tensor([[4, 1, 1, 0], [2, 3, 0, 2]])
total = best_losses(ids, chances, following, belief).sum(1)
wanted = []
for row in ids.tolist():
    whole = 0.0
    for state in range(3):
        chance, here = belief[state].item(), state
        for token in row:
            chance *= chances[here, token].item()
            here = int(following[here, token])
        whole += chance
    wanted.append(-math.log(whole))
assert_close(
    total,
    torch.tensor(wanted).double(),
    "a row's losses should add up to minus the logarithm of its probability, over all states that it "
    "may have begun in",
)
visible_passed()
### BEGIN HIDDEN TESTS
kept = [ids.clone(), chances.clone(), following.clone(), belief.clone()]
chances, belief = draw((4, 6), seed=62).softmax(-1), draw((4,), seed=63).softmax(-1)
following = some_ids(4, 6, vocab_size=4, seed=64)
ids = some_ids(3, 60, vocab_size=6, seed=65)
copies = [one.clone() for one in (ids, chances, following, belief)]
with expect_no_error("a row of 60 tokens should be no error"):
    losses = best_losses(ids, chances, following, belief)
held = belief.expand(3, 4).clone()
for i in range(60):
    weights = held * chances[:, ids[:, i]].T
    assert_close(
        losses[:, i],
        -weights.sum(1).log(),
        "each loss should be about its own token, given all those before it in its row",
    )
    held = torch.zeros(3, 4).double()
    for row in range(3):
        for state in range(4):
            after = int(following[state, ids[row, i]])
            held[row, after] += weights[row, state] / weights[row].sum()
for now, then in zip((ids, chances, following, belief), copies, strict=True):
    assert torch.equal(now, then), "what is handed in should be left unchanged"
### END HIDDEN TESTS

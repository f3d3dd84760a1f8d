# %% [markdown]
# # 16 Bug hunt
#
# Most wrong Transformers train. Their loss falls as that of a right one does, and nobody asks. In this notebook you write the
# questions: six checks, each for one thing that a right model does whatever its weights are. Then they meet twelve Transformers that you
# have never seen, eight of which are wrong.
#
# **How to work.** Run the cells from top to bottom. Replace each `# YOUR CODE HERE` and the `raise`
# below it by your answer, then run the test cells that follow; their messages say what is wrong.
# The visible tests are not all tests: hidden ones, with other models, run when the
# notebook is graded. Each question is tested on its own, so you may leave one open and go on.
# Before you hand in, restart the kernel and run all cells.
#
# **Where to read.** The book's page *Bug hunt* finds such mistakes, with pictures.
#
# **The boxes.** A check gets a `model` that cannot be looked into. It has
#
# | name | what it is |
# | --- | --- |
# | `model.vocab`, `model.words` | number of ids; list of those ids that are words, at least eight |
# | `model.pad`, `model.bos`, `model.eos` | ids of padding, beginning and end; they differ from model to model |
# | `model.logits(source, target)` | scores of all ids after each target token, $(B, N, V)$; `source` is $(B, M)$, `target` $(B, N)$, both `torch.long` and at most 12 long |
# | `model.loss(source, target)` | the loss of whole targets, which begin with `bos`, end with `eos` and are padded; a tensor with one number |
# | `model.steps(source, target)` | the logits once more, computed as in decoding: token by token, with a cache |
# | `model.eval()`, `model.train()` | switch to evaluation, and to training; **handed to you, a model is in training** |
#
# Nothing carries gradients. A model may be post-norm or pre-norm, with one layer or several, with any weights. Numbers have a **grain**: what should be the same may differ by some
# $10^{-6}$, as on a real machine. In the tests a fault moves at least one number by more than $10^{-3}$; `1e-4` is a good border.
#
# **What a check does.** It raises an `AssertionError` whose message begins with the name of the part that is wrong, such as `"future: row 2 moves"`; if that part is right, it
# returns, **also where another part is wrong**. Who accuses the wrong part sends people to the wrong line. Parts are called `"future"`, `"padding"`, `"company"`, `"reading"`, `"dropout"`, `"cache"` and `"loss"`.
#
# A check needs no more than 30 calls of a model, and each takes time when the notebook is graded. Whatever you wrote in earlier notebooks may help here.

# %% setup
from collections.abc import Callable
from typing import Any

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from lab import plots
from lab.battery import shaken
from lab.blocks import EncoderLayer
from lab.check import draw, visible_passed
from lab.predict import compare, predicted, watched
from lab.suspects import (
    BlackBox,
    Suspect,
    assert_judges,
    interrogate,
    learn,
    share_right,
)

# %% [markdown]
# **Models to practise on.** `Suspect`, of the lab, is right. Each of the others has one fault, in the open. `box(Eager, seed=3)` is such a model with drawn
# weights, in a box. You may write more; the ones in the hidden tests are others.


# %%
class Box(BlackBox):
    """What a check is handed; it answers, and hides what is in it."""


def box(kind: type[Suspect], seed: int, **sizes: Any) -> Box:
    """A model of this kind with drawn weights, in a box; it is in training."""
    return Box(shaken(kind(**sizes), seed))


class Eager(Suspect):
    """future: the decoder sees all target tokens."""

    def seen(self, target):
        return torch.ones(target.shape[1], target.shape[1], dtype=torch.bool)


class Unpadded(Suspect):
    """padding: it is read like words."""

    def real(self, ids):
        return torch.ones_like(ids, dtype=torch.bool)[:, None]


class Sociable(Suspect):
    """company: what all sentences of a batch have in common is taken away."""

    def placed(self, vectors, offset=0):
        own = super().placed(vectors, offset)
        return own - own.mean(0, keepdim=True) / 2


class Bag(Suspect):
    """reading: tokens have no places."""

    def placed(self, vectors, offset=0):
        return vectors


class Restless(Suspect):
    """dropout: it drops in evaluation, too."""

    def train(self, mode=True):
        return super().train(True)


class Forgetful(Suspect):
    """cache: each token that is written stands in place 0."""

    def first_row(self, step):
        return 0


class Generous(Suspect):
    """loss: padding counts."""

    def judged(self, logits, labels):
        return F.cross_entropy(logits.mT, labels)


PRACTICE = {
    "right": Suspect,
    "future": Eager,
    "padding": Unpadded,
    "company": Sociable,
    "reading": Bag,
    "dropout": Restless,
    "cache": Forgetful,
    "loss": Generous,
}
SIZES: tuple[dict[str, Any], ...] = (  # such as a model may have
    {"heads": 4, "depth": 2},
    {"width": 24, "norm_first": True, "dropout": 0.5, "depth": 1},
    {"vocab": 15, "pad": 7, "bos": 3, "eos": 14, "depth": 1},
)

# %% [markdown]
# ## 16.1 Four losses   (3 points, about 10 minutes, difficulty 1 of 5)
#
# **Objective.** Predict what a fault does to the loss, and what to the writing.
#
# The task is to write three to five words backwards. Four models learn it: the right one, `Eager`, `Unpadded`, and one whose labels are not shifted: it has to
# say the token that it has just been handed. All begin with the same weights and see the same sentences. After 200 steps each writes 200 new sentences, token by
# token. Let `predicted_writing` return a dictionary with `"writes"` (more than half of the sentences are right) or `"fails"` for each name in `RUNS`; the point is for having predicted.
#
# Then run the cell, about 10 seconds, and let `measured_runs` return the dictionary that it prints last: for each name the loss at the end, and the share of sentences that
# are right.
#
# <details><summary>Hint 1: a question</summary>
#
# What is easier than the task, and lowers the loss as well? Is it still there when the model writes alone?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Ask of each fault: does training show the model something that writing does not?
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - *predict first*: `predicted_writing` returns nothing yet, or not a word for each name.
# - Your numbers are refused: return all of one run, as they were printed.
#
# </details>

# %%
RUNS: dict[str, tuple[str, ...]] = dict.fromkeys(
    ("right", "future", "padding", "not shifted"), ("writes", "fails")
)


# %% solution="predicted-writing"
def predicted_writing() -> dict[str, str]:
    """What you expect: "writes" or "fails" for each name in RUNS."""
    ### BEGIN SOLUTION
    return {"right": "writes", "future": "fails", "padding": "writes", "not shifted": "fails"}
    ### END SOLUTION


# %% test="predicted-writing-made" points=1
guess = predicted_writing()
assert isinstance(guess, dict), "a prediction is a dictionary"
assert sorted(guess) == sorted(RUNS), "there should be a prediction for each name in RUNS"
assert all(word in ("writes", "fails") for word in guess.values()), (
    f"each prediction is 'writes' or 'fails'\nYours are {list(guess.values())}."
)
visible_passed()


# %%
class Unshifted(Suspect):
    """loss: the label is the token that was handed in."""

    def loss(self, source, target):
        return self.judged(self.logits(source, target), target)


if watched():  # not while the notebook is graded
    prediction = predicted(predicted_writing, RUNS)
    torch.set_num_threads(1)  # small matrices: one core is fastest
    kinds = {"right": Suspect, "future": Eager, "padding": Unpadded, "not shifted": Unshifted}
    curves, found = {}, {}
    for name, kind in kinds.items():
        torch.manual_seed(0)
        suspect = kind(1, width=32, heads=4, depth=1)
        losses = torch.tensor(learn(suspect, 200)).unfold(0, 20, 1).mean(1)
        curves[name] = losses
        found[name] = [round(losses[-1].item(), 3), share_right(suspect)]
    compare(
        prediction, {n: "writes" if right > 0.5 else "fails" for n, (_, right) in found.items()}
    )
    plots.lines(range(20, 201), curves, "Four models that learn", "step", "loss")
    plt.show()
    print(found)


# %% solution="measured-runs"
def measured_runs() -> dict[str, Any]:
    """What the cell printed last."""
    ### BEGIN SOLUTION
    return {
        "right": [0.062, 0.95],
        "future": [0.023, 0.06],
        "padding": [0.041, 0.965],
        "not shifted": [0.001, 0.0],
    }
    ### END SOLUTION


# %% test="measured-runs-consistent" points=2
found = measured_runs()
assert isinstance(found, dict), "measured_runs should return a dict"
assert sorted(found) == sorted(RUNS), "there should be two numbers for each name in RUNS"
assert all(len(pair) == 2 for pair in found.values()), (
    "for each name there should be a loss and a share"
)
visible_passed()
### BEGIN HIDDEN TESTS
loss, share = ({name: float(pair[i]) for name, pair in found.items()} for i in (0, 1))
assert all(0 <= one < 0.5 for one in loss.values()), "all four should have learned"
assert all(0 <= one <= 1 for one in share.values()), "a share lies between 0 and 1"
assert min(share["right"], share["padding"]) > 0.5, (
    "the right model and the one that reads padding should write most sentences"
)
assert max(share["future"], share["not shifted"]) < 0.5, (
    "who saw in training what has to be written should not be able to write"
)
assert loss["not shifted"] < loss["right"], "to repeat a token is easier than to write the next one"
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>What happened</summary>
#
# The two lowest losses belong to models that hardly ever write a sentence right: in training they were shown the answer. The model that reads padding
# writes as well as the right one, since the padding of training looked like that of the test. It will give other answers as soon as it
# stands in other company. No curve shows any of this.
#
# </details>

# %% [markdown]
# ## 16.2 Who sees ahead?   (3 points, about 20 minutes, difficulty 2 of 5)
#
# **Objective.** Write the check that exposes a leak from the future.
#
# `check_future(model)` raises an `AssertionError` that begins with `"future"` if a row of the logits depends on a later target token. Row $i$ may depend on the
# source and on the target tokens 0 to $i$. Leaks come in many shapes: from the next token only, or only from far ahead.
#
# <details><summary>Hint 1: a question</summary>
#
# Which rows may change if you replace the target's last token? And which if you replace another one?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# First switch to evaluation. One source, one target of eight tokens or so. Replace each token in turn, and compare the rows before it.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - Right models are accused, each time at another place: did you switch dropout off? Is equality to the last digit too much to ask?
# - Right models are accused at the changed token: its own row may change.
# - A leak is missed: is your target too short for it?
#
# </details>


# %% solution="check-future"
def check_future(model: Any) -> None:
    """Raise an AssertionError that begins with "future" if a row depends on a later token."""
    ### BEGIN SOLUTION
    model.eval()
    words = torch.tensor(model.words)
    source, target = words[[0, 1, 2, 3]][None], words[[4, 1, 0, 5, 2, 3, 1, 6]][None]
    before = model.logits(source, target)
    for i in range(1, 8):
        changed = target.clone()
        changed[0, i] = words[7]
        moved = (model.logits(source, changed) - before)[:, :i].abs().max()
        assert moved < 1e-4, f"future: a row before token {i} moves by {float(moved)}"
    ### END SOLUTION


# %% test="check-future-practice" points=1
assert_judges(
    check_future,
    (box(Eager, seed=1, depth=1), "future", "a decoder without a mask should be accused"),
    (
        box(Suspect, seed=3, norm_first=True, depth=1, dropout=0.0),
        "",
        "a right pre-norm model without dropout should be let go",
    ),
    (box(Unpadded, seed=4, depth=1), "", "a model that reads padding does not see ahead"),
)
visible_passed()
### BEGIN HIDDEN TESTS
assert_judges(
    check_future,
    (
        box(Eager, seed=5, norm_first=True, depth=1, vocab=17, pad=9, bos=12, eos=3),
        "future",
        "a decoder without a mask should be accused, whatever its ids",
    ),
)
### END HIDDEN TESTS

# %% test="check-future-leaks" points=1
assert_judges(
    check_future,
    (box(Suspect, seed=31, depth=1), "", "a right model should be let go"),
)
visible_passed()


### BEGIN HIDDEN TESTS
def ahead(near: int, far: int) -> type[Suspect]:
    """A model that sees tokens from so many ahead to so many ahead."""

    class Hidden(Suspect):
        def seen(self, target):
            offsets = torch.arange(target.shape[1]) - torch.arange(target.shape[1])[:, None]
            return (offsets <= 0) | ((offsets >= near) & (offsets <= far))

    return Hidden


class AtTheStart(Suspect):
    """The first row sees the token after it, and no other row sees ahead."""

    def seen(self, target):
        seen = super().seen(target).clone()
        seen[0, :2] = True
        return seen


class Mixed(torch.nn.Module):
    """A norm over all numbers of a sentence."""

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, x.shape[1:])


class Whole(Suspect):
    """One norm of the last layer has the whole sentence's mean."""

    def __init__(self, **sizes):
        super().__init__(**sizes)
        self.decoder.layers[-1].norm3 = Mixed()


assert_judges(
    check_future,
    (box(ahead(1, 1), seed=7, depth=1), "future", "who sees one token ahead should be accused"),
    (box(AtTheStart, seed=12, depth=1), "future", "who sees ahead in one row should be accused"),
    (
        box(ahead(5, 9), seed=8, depth=1),
        "future",
        "who sees only what comes five tokens later should be accused",
    ),
    (box(Whole, seed=9, depth=1), "future", "a norm over the whole sentence leaks as well"),
)
### END HIDDEN TESTS

# %% test="check-future-right" points=1
assert_judges(
    check_future,
    (box(Bag, seed=10, depth=1), "", "a model without positions does not see ahead"),
    (box(Eager, seed=30, depth=1), "future", "who sees ahead should be accused beside it"),
)
visible_passed()
### BEGIN HIDDEN TESTS
assert_judges(
    check_future,
    *[
        (box(kind, seed=11, **sizes), "", claim)
        for kind, sizes, claim in (
            (Sociable, SIZES[0], "company is not the future"),
            (Forgetful, SIZES[1], "what a cache does is not asked here"),
            (Generous, SIZES[2], "what the loss does is not asked here"),
        )
    ],
)
### END HIDDEN TESTS

# %% [markdown]
# ## 16.3 What stands behind the sentence   (3 points, about 20 minutes, difficulty 2 of 5)
#
# **Objective.** Write the check that exposes a model which reads padding.
#
# `check_padding(model)` raises an `AssertionError` that begins with `"padding"` if `model.pad` **behind the source** makes a difference to the logits. How much of it
# there is depends on the longest sentence of a batch, so an answer that depends on it is an accident. Ask for several amounts.
#
# <details><summary>Hint 1: a question</summary>
#
# Which two sources say the same?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Compare the logits of one sentence without padding with those of the same sentence with one, two and five padding tokens. Each time hand in a batch of one.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - A model of the part `"company"` is accused: compare a sentence with itself, not with a batch that others are in.
# - Nobody is accused: is what you add `model.pad`?
#
# </details>


# %% solution="check-padding"
def check_padding(model: Any) -> None:
    """Raise an AssertionError that begins with "padding" if padding of the source matters."""
    ### BEGIN SOLUTION
    model.eval()
    words = torch.tensor(model.words)
    source, target = words[[3, 0, 5, 2]][None], words[[1, 4, 6]][None]
    before = model.logits(source, target)
    for count in (1, 2, 5):
        longer = F.pad(source, (0, count), value=model.pad)
        moved = (model.logits(longer, target) - before).abs().max()
        assert moved < 1e-4, f"padding: {count} of it move the logits by {float(moved)}"
    ### END SOLUTION


# %% test="check-padding-practice" points=1
assert_judges(
    check_padding,
    (box(Unpadded, seed=1, depth=1), "padding", "a model without a padding mask should be accused"),
    (
        box(Suspect, seed=3, norm_first=True, depth=1, dropout=0.0),
        "",
        "a right pre-norm model without dropout should be let go",
    ),
    (box(Sociable, seed=4, depth=1), "", "company is not padding"),
)
visible_passed()
### BEGIN HIDDEN TESTS
assert_judges(
    check_padding,
    (
        box(Unpadded, seed=5, norm_first=True, depth=1, vocab=16, pad=11, bos=5, eos=0),
        "padding",
        "a model without a padding mask should be accused, whatever its ids",
    ),
)
### END HIDDEN TESTS

# %% test="check-padding-leaks" points=1
assert_judges(
    check_padding,
    (box(Suspect, seed=31, depth=1), "", "a right model should be let go"),
)
visible_passed()


### BEGIN HIDDEN TESTS
class OnlyRead(Suspect):
    """The decoder looks at padding, the encoder does not."""

    def read(self, source):
        memory, real = super().read(source)
        return memory, torch.ones_like(real)


class OnlyWritten(Suspect):
    """The encoder looks at padding, the decoder does not."""

    def read(self, source):
        vectors = self.encoder(self.placed(self.source_table(source)))
        return vectors, self.real(source)


class Nought(Suspect):
    """Padding is taken to be 0."""

    def real(self, ids):
        return (ids != 0)[:, None]


class FromTheEnd(Suspect):
    """The source's positions are counted from the end."""

    def read(self, source):
        vectors = self.source_table(source) + self.table[: source.shape[1]].flip(0)
        return self.encoder(vectors, self.real(source)), self.real(source)


class OnlyTheFirst(Suspect):
    """The first padding token is hidden, those behind it are not."""

    def real(self, ids):
        return ((ids == self.pad).cumsum(1) != 1)[:, None]


def hiding(amount: int) -> type[Suspect]:
    """A model that hides padding where there are so many tokens of it, and reads it elsewhere."""

    class Hiding(Suspect):
        def real(self, ids):
            padding = ids == self.pad
            return (~padding | (padding.sum(1, keepdim=True) != amount))[:, None]

    return Hiding


Two, Three = hiding(2), hiding(3)

assert_judges(
    check_padding,
    *[
        (box(kind, seed=7, depth=1), "padding", claim)
        for kind, claim in {
            OnlyRead: "who looks at padding in the decoder only should be accused",
            OnlyWritten: "who looks at padding in the encoder only should be accused",
            OnlyTheFirst: "who hides one padding token, however many there are, should be accused",
            FromTheEnd: "who counts positions from the end of the padding should be accused",
            Two: "who hides two padding tokens, and reads any other number, should be accused",
            Three: "who hides three padding tokens, and reads any other number, should be accused",
        }.items()
    ],
    (
        box(Nought, seed=8, depth=1, pad=5, bos=6, eos=1),
        "padding",
        "who takes 0 for padding where it is 5 should be accused",
    ),
)
### END HIDDEN TESTS

# %% test="check-padding-right" points=1
assert_judges(
    check_padding,
    (box(Eager, seed=9, depth=1), "", "who sees ahead need not read padding"),
    (box(Unpadded, seed=30, depth=1), "padding", "who reads padding should be accused beside it"),
)
visible_passed()
### BEGIN HIDDEN TESTS
assert_judges(
    check_padding,
    *[
        (box(kind, seed=10, **sizes), "", claim)
        for kind, sizes, claim in (
            (Bag, SIZES[0], "who has no positions need not read padding"),
            (Generous, SIZES[1], "padding in the loss is not asked here"),
            (Forgetful, SIZES[2], "the cache is not asked here"),
        )
    ],
)
### END HIDDEN TESTS

# %% [markdown]
# ## 16.4 In company   (3 points, about 20 minutes, difficulty 3 of 5)
#
# **Objective.** Write the check that exposes a model whose sentences hear each other.
#
# `check_company(model)` raises an `AssertionError` that begins with `"company"` if the logits of a sentence depend on the **other sentences of its batch**, or on its place among them. In
# a batch all sources have one length, and so have all targets; shorter sources are padded. Padding itself is not asked here: a sentence keeps its own
# padding, alone and in company.
#
# <details><summary>Hint 1: a question</summary>
#
# What should the rows of a batch be, compared with a batch of one?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Three sentences of different lengths, padded to the longest. Once all together; then each alone, with the padding it had.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - A model is missed that uses one sentence's padding mask for all: do your sentences have different lengths?
# - A model is missed that numbers positions along the batch: is the sentence that you compare the first one?
# - A model of the part `"padding"` is accused: the sentence alone should have the same padding.
#
# </details>


# %% solution="check-company"
def check_company(model: Any) -> None:
    """Raise an AssertionError that begins with "company" if sentences of a batch hear each other."""
    ### BEGIN SOLUTION
    model.eval()
    ids = torch.tensor([*model.words[:8], model.pad])
    sources = ids[torch.tensor([[0, 1, 2, 8, 8], [3, 4, 5, 6, 7], [2, 6, 8, 8, 8]])]
    targets = ids[torch.tensor([[1, 5, 0], [2, 2, 4], [7, 3, 6]])]
    together = model.logits(sources, targets)
    for b in range(3):
        alone = model.logits(sources[[b]], targets[[b]])
        moved = (together[b] - alone[0]).abs().max()
        assert moved < 1e-4, f"company: alone, sentence {b} moves by {float(moved)}"
    ### END SOLUTION


# %% test="check-company-practice" points=1
assert_judges(
    check_company,
    (box(Sociable, seed=1, depth=1), "company", "who takes away a batch's mean should be accused"),
    (
        box(Suspect, seed=3, norm_first=True, depth=1, dropout=0.0),
        "",
        "a right pre-norm model without dropout should be let go",
    ),
    (box(Unpadded, seed=4, depth=1), "", "who reads padding does so alone as well"),
)
visible_passed()
### BEGIN HIDDEN TESTS
assert_judges(
    check_company,
    (
        box(Sociable, seed=5, norm_first=True, depth=1, vocab=16, pad=11, bos=5, eos=0),
        "company",
        "who takes away a batch's mean should be accused, whatever its ids",
    ),
)
### END HIDDEN TESTS

# %% test="check-company-leaks" points=1
assert_judges(
    check_company,
    (box(Suspect, seed=31, depth=1), "", "a right model should be let go"),
)
visible_passed()


### BEGIN HIDDEN TESTS
class FirstMask(Suspect):
    """The first sentence's padding mask serves all."""

    def real(self, ids):
        return super().real(ids)[:1].expand(len(ids), -1, -1)


class Numbered(Suspect):
    """Positions of the target are numbered along the batch."""

    def written(self, target, memory, real):
        x = self.target_table(target) + self.table[: len(target)].unsqueeze(1)
        return self.output(self.decoder(x, memory, self.seen(target), real))


class Centred(torch.nn.Module):
    """A norm over the batch."""

    def forward(self, x: Tensor) -> Tensor:
        return x - x.mean((0, 1), keepdim=True) if len(x) > 1 else x


class BatchNormed(Suspect):
    """One norm of the encoder has the batch's mean."""

    def __init__(self, **sizes):
        super().__init__(**sizes)
        self.encoder.layers[-1].norm2 = Centred()


assert_judges(
    check_company,
    *[
        (box(kind, seed=7, depth=1), "company", claim)
        for kind, claim in {
            FirstMask: "who uses the first sentence's padding mask for all should be accused",
            Numbered: "who numbers positions along the batch should be accused",
            BatchNormed: "who has a norm over the batch should be accused",
        }.items()
    ],
)
### END HIDDEN TESTS

# %% test="check-company-right" points=1
assert_judges(
    check_company,
    (box(Eager, seed=8, depth=1), "", "who sees ahead need not look at others"),
    (box(Sociable, seed=30, depth=1), "company", "who hears others should be accused beside it"),
)
visible_passed()
### BEGIN HIDDEN TESTS
assert_judges(
    check_company,
    *[
        (box(kind, seed=9, **sizes), "", claim)
        for kind, sizes, claim in (
            (Bag, SIZES[0], "who has no positions need not look at others"),
            (Generous, SIZES[1], "padding in the loss is not asked here"),
            (Forgetful, SIZES[2], "the cache is not asked here"),
        )
    ],
)
### END HIDDEN TESTS

# %% [markdown]
# ## 16.5 Does it read?   (3 points, about 20 minutes, difficulty 3 of 5)
#
# **Objective.** Write the check that exposes a model which does not use what it should.
#
# So far a fault was a difference where none should be. Here it is none where one should be. `check_reading(model)` raises an `AssertionError` that begins with `"reading"` unless **each token of the source
# changes each row** of the logits, and the **order** of the source matters. In right models with drawn weights, here, such a change moves each row by more than $10^{-3}$.
#
# <details><summary>Hint 1: a question</summary>
#
# May the first target row know the source's last token?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Replace each source token in turn; of the difference take the largest number in each row, and of these the smallest. Then reverse the source.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - A model that ignores the source is missed: its numbers have a grain, so they are never the same.
# - A model is missed whose early rows do not see late tokens: look at each row by itself.
#
# </details>


# %% solution="check-reading"
def check_reading(model: Any) -> None:
    """Raise an AssertionError that begins with "reading" if a source token, or order, is ignored."""
    ### BEGIN SOLUTION
    model.eval()
    words = torch.tensor(model.words)
    source, target = words[[3, 0, 5, 2, 1]][None], words[[4, 6, 0, 3]][None]
    before = model.logits(source, target)
    for j in range(5):
        changed = source.clone()
        changed[0, j] = words[7]
        moved = (model.logits(changed, target) - before).abs().amax(-1).min()
        assert moved > 1e-4, f"reading: token {j} leaves a row as it was"
    moved = (model.logits(source.flip(1), target) - before).abs().max()
    assert moved > 1e-4, "reading: the order makes no difference"
    ### END SOLUTION


# %% test="check-reading-practice" points=1
assert_judges(
    check_reading,
    (box(Bag, seed=1, depth=1), "reading", "a model without positions should be accused"),
    (
        box(Suspect, seed=3, norm_first=True, depth=1, dropout=0.0),
        "",
        "a right pre-norm model without dropout should be let go",
    ),
    (box(Eager, seed=4, depth=1), "", "who sees ahead can read all the same"),
    (
        box(Bag, seed=20, depth=1, dropout=0.0),
        "reading",
        "a model without positions and without dropout should be accused",
    ),
)
visible_passed()
### BEGIN HIDDEN TESTS
assert_judges(
    check_reading,
    (
        box(Bag, seed=5, norm_first=True, depth=1, vocab=16, pad=11, bos=5, eos=0),
        "reading",
        "a model without positions should be accused, whatever its ids",
    ),
)
### END HIDDEN TESTS

# %% test="check-reading-faults" points=1
assert_judges(
    check_reading,
    (box(Suspect, seed=31, depth=1), "", "a right model should be let go"),
)
visible_passed()


### BEGIN HIDDEN TESTS
class Apart(Suspect):
    """The encoder's tokens do not see each other, and the decoder's none that is further right."""

    def read(self, source):
        own = torch.eye(source.shape[1], dtype=torch.bool)
        return self.encoder(self.placed(self.source_table(source)), own), self.real(source)

    def written(self, target, memory, real):
        left = torch.ones(target.shape[1], memory.shape[1], dtype=torch.bool).tril()
        return super().written(target, memory, real & left)


class Late(Suspect):
    """Only the last target token reads the whole source; the others read its first token."""

    def read(self, source):
        own = torch.eye(source.shape[1], dtype=torch.bool)
        return self.encoder(self.placed(self.source_table(source)), own), self.real(source)

    def written(self, target, memory, real):
        seen = torch.zeros(target.shape[1], memory.shape[1], dtype=torch.bool)
        seen[:, 0] = seen[-1] = True
        return super().written(target, memory, real & seen)


class Deaf(Suspect):
    """The source is not used."""

    def read(self, source):
        memory, real = super().read(source)
        return torch.ones_like(memory), real


class Cut(Suspect):
    """The first token of the source is taken for something else, and left out."""

    def read(self, source):
        memory, real = super().read(torch.cat([source[:, 1:2], source[:, 1:]], dim=1))
        return memory, real


class Holed(Suspect):
    """The second token of the source is taken for something else."""

    def read(self, source):
        return super().read(torch.cat([source[:, :1], source[:, :1], source[:, 2:]], dim=1))


class Unplaced(Suspect):
    """The source has no positions, the target has."""

    def read(self, source):
        real = self.real(source)
        return self.encoder(self.source_table(source), real), real


assert_judges(
    check_reading,
    *[
        (box(kind, seed=7, depth=1), "reading", claim)
        for kind, claim in {
            Apart: "who hides late source tokens from early target tokens should be accused",
            Late: "who reads all of the source in the last row alone should be accused",
            Deaf: "who does not use the source should be accused",
            Cut: "who leaves out the first source token should be accused",
            Holed: "who leaves out the second source token should be accused",
            Unplaced: "who has no positions in the source should be accused",
        }.items()
    ],
)
### END HIDDEN TESTS

# %% test="check-reading-right" points=1
assert_judges(
    check_reading,
    (box(Unpadded, seed=8, depth=1), "", "who reads padding reads words as well"),
    (box(Bag, seed=30, depth=1), "reading", "who has no positions should be accused beside it"),
)
visible_passed()
### BEGIN HIDDEN TESTS
assert_judges(
    check_reading,
    *[
        (box(kind, seed=9, **sizes), "", claim)
        for kind, sizes, claim in (
            (Sociable, SIZES[0], "who listens to others reads its own sentence as well"),
            (Generous, SIZES[1], "the loss is not asked here"),
            (Forgetful, SIZES[2], "the cache is not asked here"),
        )
    ],
)
### END HIDDEN TESTS

# %% [markdown]
# ## 16.6 Again, and step by step   (3 points, about 20 minutes, difficulty 3 of 5)
#
# **Objective.** Write the check that exposes a wrong mode, and a wrong cache.
#
# `check_again(model)` raises an `AssertionError`
#
# - that begins with `"dropout"` if in evaluation two calls of `logits` with the same tokens differ, or if in training they do not: all models of this question and of 16.8 have a dropout of at least 0.1;
# - that begins with `"cache"` if in evaluation `model.steps` gives other numbers than `model.logits` does, **at any call**.
#
# A model that has both faults is accused of `"dropout"`: what is never the same cannot be compared.
#
# <details><summary>Hint 1: a question</summary>
#
# What is in a cache when the second sentence begins?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Two calls in training, two in evaluation. Then `steps` for two different sentences, each beside its logits.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - A model that never drops anything is missed: ask in training, too.
# - A cache is missed that is not emptied: ask more than once.
# - A cache is missed that forgets: is your target longer than two tokens?
#
# </details>


# %% solution="check-again"
def check_again(model: Any) -> None:
    """Raise an AssertionError that begins with "dropout" or "cache" if one of them is wrong."""
    ### BEGIN SOLUTION
    words = torch.tensor(model.words)
    source, target = words[[3, 0, 5, 2]][None], words[[4, 6, 0, 3, 1]][None]
    model.train()
    moved = (model.logits(source, target) - model.logits(source, target)).abs().max()
    assert moved > 1e-4, "dropout: training drops nothing"
    model.eval()
    moved = (model.logits(source, target) - model.logits(source, target)).abs().max()
    assert moved < 1e-4, "dropout: evaluation drops something"
    for x in (source, source.flip(1)):
        moved = (model.steps(x, target) - model.logits(x, target)).abs().max()
        assert moved < 1e-4, f"cache: the logits move by {float(moved)}"
    ### END SOLUTION


# %% test="check-again-dropout" points=1
assert_judges(
    check_again,
    (box(Restless, seed=1, depth=1), "dropout", "who drops in evaluation should be accused"),
    (box(Suspect, seed=2, depth=1), "", "a right model should be let go"),
)
visible_passed()


### BEGIN HIDDEN TESTS
class Steady(Suspect):
    """Never drops anything."""

    def train(self, mode=True):
        return super().train(False)


class HalfAwake(Suspect):
    """The decoder's last layer drops in evaluation, too."""

    def train(self, mode=True):
        super().train(mode)
        self.decoder.layers[-1].train()
        return self


assert_judges(
    check_again,
    (box(Steady, seed=3, depth=1), "dropout", "who drops nothing in training should be accused"),
    (
        box(HalfAwake, seed=4, norm_first=True),
        "dropout",
        "a model of which one layer drops in evaluation should be accused",
    ),
)
### END HIDDEN TESTS

# %% test="check-again-cache" points=1
assert_judges(
    check_again,
    (box(Forgetful, seed=5, depth=1), "cache", "who writes all in place 0 should be accused"),
    (box(Suspect, seed=31, depth=1), "", "a right one beside it should be let go"),
)
visible_passed()


### BEGIN HIDDEN TESTS
class Unemptied(Suspect):
    """What a sentence has left in the cache stays there for the next."""

    def new_memory(self):
        self.left = getattr(self, "left", None) or super().new_memory()
        return self.left


class Short(Suspect):
    """The cache holds three tokens."""

    def steps(self, source, target):
        rows = [self.logits(source, target[:, max(0, i - 1) : i + 1]) for i in range(2)]
        rest = target.unfold(1, 3, 1).unbind(1)
        return torch.cat(
            [rows[0], rows[1][:, -1:]] + [self.logits(source, r)[:, -1:] for r in rest], 1
        )


class Skipping(Suspect):
    """From the third token on it is one place too far."""

    def first_row(self, step):
        return step + (step > 1)


assert_judges(
    check_again,
    *[
        (box(kind, seed=6, depth=1), "cache", claim)
        for kind, claim in {
            Unemptied: "who does not empty the cache should be accused",
            Short: "a cache that forgets should be accused",
            Skipping: "who skips a position should be accused",
        }.items()
    ],
)
### END HIDDEN TESTS

# %% test="check-again-right" points=1
assert_judges(
    check_again,
    (box(Suspect, seed=7, norm_first=True, depth=1), "", "a right pre-norm model should be let go"),
    (box(Bag, seed=8, depth=1), "", "who has no positions may have a sound cache"),
    (
        box(Forgetful, seed=30, depth=1),
        "cache",
        "who writes all in place 0 should be accused beside it",
    ),
)
visible_passed()
### BEGIN HIDDEN TESTS
assert_judges(
    check_again,
    *[
        (box(kind, seed=9, **sizes), "", claim)
        for kind, sizes, claim in (
            (Unpadded, SIZES[0], "padding is not asked here"),
            (Sociable, SIZES[1], "company is not asked here"),
            (Generous, SIZES[2], "the loss is not asked here"),
        )
    ],
)
### END HIDDEN TESTS

# %% [markdown]
# ## 16.7 What is being lowered?   (3 points, about 20 minutes, difficulty 3 of 5)
#
# **Objective.** Write the check that exposes a wrong loss.
#
# For a target of `bos`, words, `eos` and padding, the loss is the mean cross-entropy of **all labels that are not padding**, over the whole batch: the label of row $i$ is target token $i + 1$, and the
# logits are those of the source and of the target without its last column. `check_loss(model)` raises an `AssertionError` that begins with `"loss"` if `model.loss(source, target)`
# differs from what its own `model.logits` give, in evaluation.
#
# <details><summary>Hint 1: a question</summary>
#
# With which batch do the mean over tokens, the mean over sentences and the mean over all places differ?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Two targets of different length, the shorter one padded. `F.cross_entropy` of its logits, with `ignore_index`.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - Right models are accused: are logits and labels one token apart? Is the model in evaluation?
# - A loss that counts padding is missed: has your batch any?
#
# </details>


# %% solution="check-loss"
def check_loss(model: Any) -> None:
    """Raise an AssertionError that begins with "loss" if it is not the mean over real labels."""
    ### BEGIN SOLUTION
    model.eval()
    ids = torch.tensor([*model.words[:8], model.pad, model.bos, model.eos])
    source = ids[torch.tensor([[0, 1, 2, 3], [4, 5, 8, 8]])]
    target = ids[torch.tensor([[9, 3, 2, 1, 0, 10], [9, 5, 4, 10, 8, 8]])]
    logits = model.logits(source, target[:, :-1])
    wanted = F.cross_entropy(logits.mT, target[:, 1:], ignore_index=model.pad)
    off = (model.loss(source, target) - wanted).abs()
    assert off < 1e-4, f"loss: off by {float(off)}"
    ### END SOLUTION


# %% test="check-loss-practice" points=1
assert_judges(
    check_loss,
    (box(Generous, seed=1, depth=1), "loss", "a loss that counts padding should be accused"),
    (box(Suspect, seed=3, norm_first=True, depth=1), "", "a right pre-norm model should be let go"),
)
visible_passed()
### BEGIN HIDDEN TESTS
assert_judges(
    check_loss,
    (
        box(Generous, seed=4, depth=1, vocab=16, pad=11, bos=5, eos=0),
        "loss",
        "a loss that counts padding should be accused, whatever the ids",
    ),
)
### END HIDDEN TESTS

# %% test="check-loss-faults" points=1
assert_judges(
    check_loss,
    (box(Unshifted, seed=5, depth=1), "loss", "labels that are not shifted should be accused"),
    (box(Suspect, seed=31, depth=1), "", "a right one beside it should be let go"),
)
visible_passed()


### BEGIN HIDDEN TESTS
class Summed(Suspect):
    """The sum in place of the mean."""

    def judged(self, logits, labels):
        return super().judged(logits, labels) * (labels != self.pad).sum()


class BySentence(Suspect):
    """The mean of the sentences' means."""

    def judged(self, logits, labels):
        pairs = zip(logits.unbind(0), labels.unbind(0), strict=True)
        return torch.stack([F.cross_entropy(a, b, ignore_index=self.pad) for a, b in pairs]).mean()


class Endless(Suspect):
    """The end is not learned."""

    def judged(self, logits, labels):
        return super().judged(logits, labels.masked_fill(labels == self.eos, self.pad))


class Twice(Suspect):
    """A softmax before the cross-entropy."""

    def judged(self, logits, labels):
        return super().judged(logits.softmax(-1), labels)


assert_judges(
    check_loss,
    *[
        (box(kind, seed=6, depth=1), "loss", claim)
        for kind, claim in {
            Summed: "a sum in place of the mean should be accused",
            BySentence: "a mean of the sentences' means should be accused",
            Endless: "a loss that leaves out the end should be accused",
            Twice: "a softmax before the cross-entropy should be accused",
        }.items()
    ],
)
### END HIDDEN TESTS

# %% test="check-loss-right" points=1
assert_judges(
    check_loss,
    (box(Eager, seed=7, depth=1), "", "who sees ahead may have a sound loss"),
    (
        box(Generous, seed=30, depth=1),
        "loss",
        "a loss that counts padding should be accused beside it",
    ),
)
visible_passed()
### BEGIN HIDDEN TESTS
assert_judges(
    check_loss,
    *[
        (box(kind, seed=8, **sizes), "", claim)
        for kind, sizes, claim in (
            (Unpadded, SIZES[0], "padding of the source is not asked here"),
            (Sociable, SIZES[1], "company is not asked here"),
            (Bag, SIZES[2], "positions are not asked here"),
            (Forgetful, SIZES[0], "the cache is not asked here"),
        )
    ],
)
### END HIDDEN TESTS

# %% [markdown]
# **Try it: everybody before your checks.** The models to practise on, trained, with their losses; a filled cell is an accusation. Not all
# rows have one filled cell: who sees ahead has a cache that cannot, and who is never the same agrees with nothing. (Not graded, about 15 seconds.)

# %%
if watched():  # not while the notebook is graded
    torch.set_num_threads(1)
    checks = {
        "future": check_future,
        "padding": check_padding,
        "company": check_company,
        "reading": check_reading,
        "again": check_again,
        "loss": check_loss,
    }
    trained, ends = {}, {}
    for name, kind in PRACTICE.items():
        suspect = kind(2, width=32, heads=4, depth=1)
        ends[name] = round(sum(learn(suspect, 150)[-20:]) / 20, 2)
        trained[name] = Box(suspect)
    said = interrogate(checks, trained)
    shown = torch.tensor([[bool(one) for one in row] for row in said.values()])
    rows = [f"{name}, loss {ends[name]}" for name in said]
    _, ax = plt.subplots(figsize=(5.4, 4.4), layout="constrained")
    plots.masks(shown, rows, list(checks), "Accused by", ax, "", "models")
    plt.show()
    print({name: [one.split(":")[0] for one in row if one] for name, row in said.items()})

# %% [markdown]
# ## 16.8 Twelve Transformers   (4 points, about 30 minutes, difficulty 4 of 5)
#
# **Objective.** Say of twelve models which are wrong, and where.
#
# `verdict(model)` returns `"right"`, or the name of the one part that is wrong: `"future"`, `"padding"`, `"company"`, `"reading"`, `"dropout"`, `"cache"` or `"loss"`. In the hidden tests it meets twelve models, A to L: eight have
# one fault each, four have none. You get a point if no right one is accused, one if at least four of the eight are named, one if at least seven are, and one
# for the practice.
#
# Your own checks are there to be used. Mind their order: some faults make other checks fail as well.
#
# <details><summary>Hint 1: a question</summary>
#
# What should be settled before anything can be compared? And what before a cache is compared with the logits?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Run one check after the other; the first that raises decides. The error's text begins with the part.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - `"cache"` where it should be `"future"`: while it writes step by step, a model cannot see ahead.
# - Anything where it should be `"dropout"`: in evaluation it is never the same.
#
# </details>


# %% solution="verdict"
def verdict(model: Any) -> str:
    """Say "right", or which part of a model is wrong."""
    ### BEGIN SOLUTION
    ids = torch.tensor([*model.words[:8], model.pad, model.bos, model.eos])
    source, target = ids[[3, 0, 5, 2, 1]][None], ids[[4, 6, 0, 3, 1, 2, 5]][None]

    def apart(one: Tensor, other: Tensor) -> float:
        return float((one - other).abs().max())

    def replaced(tokens: Tensor, i: int) -> Tensor:
        changed = tokens.clone()
        changed[0, i] = ids[7]
        return changed

    logits = model.logits

    def signs():
        """One after the other: a part, and how far numbers are apart that should be the same."""
        again = apart(logits(source, target), logits(source, target))  # it comes in training
        yield "dropout", float(again < 1e-4)
        model.eval()
        before = logits(source, target)
        yield "dropout", apart(before, logits(source, target))
        for i in (1, 3, 6):
            yield "future", apart(before[:, :i], logits(source, replaced(target, i))[:, :i])
        for count in (1, 4):
            yield (
                "padding",
                apart(before, logits(F.pad(source, (0, count), value=model.pad), target)),
            )
        both = torch.cat([ids[[6, 4, 8, 8, 8]][None], source])
        yield "company", apart(before, logits(both, torch.cat([target.flip(1), target]))[1:])
        for other in (replaced(source, 0), replaced(source, 4), source.flip(1)):
            yield "reading", float((logits(other, target) - before).abs().amax(-1).min() < 1e-4)
        for x in (source, source.flip(1)):
            yield "cache", apart(model.steps(x, target), logits(x, target))
        whole = ids[torch.tensor([[9, 3, 2, 1, 0, 10], [9, 5, 4, 10, 8, 8]])]
        wanted = F.cross_entropy(
            logits(both, whole[:, :-1]).mT, whole[:, 1:], ignore_index=model.pad
        )
        yield "loss", apart(model.loss(both, whole), wanted)

    return next((part for part, off in signs() if off > 1e-4), "right")
    ### END SOLUTION


# %% test="verdict-practice" points=1
for name, kind in PRACTICE.items():
    said = verdict(box(kind, seed=1, depth=1))
    assert said == name, (
        "of each model to practise on the part that is wrong should be named"
        f"\nYours says {said!r} of {kind.__name__}, expected {name!r}."
    )
visible_passed()
### BEGIN HIDDEN TESTS
for name in ("future", "cache"):
    assert verdict(box(PRACTICE[name], seed=2, depth=1, pad=4, bos=9, eos=6)) == name, (
        "also with other sizes and ids, of each model to practise on the part should be named"
    )
### END HIDDEN TESTS

# %% test="verdict-innocent" points=1
said = verdict(box(Suspect, seed=3, norm_first=True, depth=1))
assert said == "right", f"a right pre-norm model should not be accused\nYours says {said!r}."
assert verdict(box(Eager, seed=31, depth=1)) != "right", "beside it a wrong one should be accused"
visible_passed()
### BEGIN HIDDEN TESTS
for sizes in (*SIZES, {"dropout": 0.3, "depth": 1}):
    assert verdict(box(Suspect, seed=4, **sizes)) == "right", (
        "of the twelve, a right one is accused"
    )
### END HIDDEN TESTS

# %% test="verdict-four" points=1
assert isinstance(verdict(box(Restless, seed=5, depth=1)), str), "a verdict is a text"
visible_passed()


### BEGIN HIDDEN TESTS
class A(Suspect):
    """future: sees one token ahead."""

    def seen(self, target):
        return torch.ones(target.shape[1], target.shape[1], dtype=torch.bool).tril(1)


class B(Suspect):
    """padding: read by the decoder."""

    def written(self, target, memory, real):
        return super().written(target, memory, torch.full_like(real, True))


class C(Suspect):
    """company: the mean of the batch's memories."""

    def read(self, source):
        memory, real = super().read(source)
        return (memory + memory.mean(0, keepdim=True)) / 2, real


class D(Suspect):
    """reading: the source is turned into a bag."""

    def read(self, source):
        behind = source.masked_fill(source == self.pad, source.max() + 1)  # padding stays there
        return super().read(source.gather(1, behind.argsort(1)))


class E(Suspect):
    """dropout: one layer of the encoder keeps dropping."""

    def train(self, mode=True):
        super().train(mode)
        self.encoder.layers[0].train()
        return self


class G(Suspect):
    """cache: the second token stands where the first one stood."""

    def first_row(self, step):
        return max(0, step - 1)


class H(Suspect):
    """loss: the mean over sentences of sums."""

    def judged(self, logits, labels):
        return super().judged(logits, labels) * (labels != self.pad).sum() / len(labels)


class J(Suspect):
    """future: the first row sees the last token."""

    def seen(self, target):
        mask = super().seen(target).clone()
        mask[0, -1] = True
        return mask


EIGHT = {A: "future", B: "padding", C: "company", D: "reading"}
EIGHT |= {E: "dropout", G: "cache", H: "loss", J: "future"}


def are_named(count: int, **sizes: Any) -> bool:
    """Whether of so many of the eight the part is named; no more are asked than that takes."""
    for kind, part in EIGHT.items():
        count -= verdict(box(kind, **sizes)) == part
        if not count:
            return True
    return False


assert are_named(4, seed=6, depth=1), "of the eight wrong ones, at least four should be named"
### END HIDDEN TESTS

# %% test="verdict-seven" points=1
said = verdict(box(Generous, seed=7, depth=1, norm_first=True))
assert said == "loss", (
    f"of a pre-norm model whose loss counts padding, the loss should be named\nYours says {said!r}."
)
visible_passed()
### BEGIN HIDDEN TESTS
assert are_named(7, seed=8, depth=1, norm_first=True), (
    "of the eight wrong ones, at least seven should be named"
)
### END HIDDEN TESTS

# %% [markdown]
# ## 16.9 What no check of these can see   (2 points, about 15 minutes, difficulty 3 of 5)
#
# **Objective.** Know the limits of what you have written.
#
# Take a Transformer whose feed-forward networks have no ReLU, or whose scores are not divided by $\sqrt{d_k}$. Both pass all of your checks. In three to six sentences: (a) Why does each pass? (b) Which
# test exposes both, and what does it need that your checks did not?
#
# <details><summary>Hint 1: a question</summary>
#
# For which weights does a model without the division give what a right one gives with other weights?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# All of your checks ask what should change, or stay, whatever the weights are. What would you hold the numbers themselves against?
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - Unsure about (b): what did the tests of notebook 5 do with your layer norm?
#
# </details>

# %% [markdown] manual="limits-of-checks" points=2
# ### BEGIN SOLUTION
# (a) The checks ask which inputs a number may depend on, and whether two ways to compute it agree. Neither fault changes that: without a ReLU the network is still one for each token by itself, and without the division
# attention is still causal, masked and in order. The model without the division is even a right model with other weights: multiply its query matrices by the root.
#
# (b) An oracle: a second implementation that one trusts, with the **same weights**, given the same inputs. It needs the weights, that is, a look into the box; sizes that tell axes apart; gains and biases that
# are not 1 and 0.
#
# Marking: 1 point for (a), half for each fault. 1 point for (b): the same weights in a trusted implementation, half without the weights.
# ### END SOLUTION

# %% [markdown]
# ## 16.10 Bonus: which part of a layer?   (3 points, about 40 minutes, difficulty 5 of 5)
#
# **Objective.** Find a wrong part inside a layer by choosing its weights. Nothing else needs this.
#
# `run(weights, x)` is an encoder layer, post-norm, as a function. `weights` is a dictionary with the names and shapes of `EncoderLayer(8, 2, 12, 0.0).state_dict()`, in float64; `x` is
# $(B, N, 8)$. You choose the weights, in every call anew. At most one part differs from the lab's `EncoderLayer`, whatever the weights: return its name, or `"none"`.
#
# | name | for instance |
# | --- | --- |
# | `"attention"` | another scale, heads cut in another way |
# | `"feed-forward"` | no ReLU, or another function |
# | `"norm"` | another variance, the mean left in, gain or bias left out |
# | `"residual"` | what a sub-layer returns takes the place of its input |
#
# At most 20 calls of `run`; results agree to $10^{-9}$ if nothing is wrong.
#
# <details><summary>Hint 1: a question</summary>
#
# With which weights does the attention return 0 whatever it computes?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Silence attention and feed-forward network. What is left is two norms and two residual connections. Then let in one of the two at a time.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - `"norm"` where it should be `"residual"`: with both silenced and no residual, does the output still depend on `x`?
# - `"none"` for a wrong norm: are your gains 1 and your biases 0? Are your vectors so large that an epsilon does not show?
#
# </details>


# %% solution="blame"
def blame(run: Callable[..., Float[Tensor, "B N 8"]]) -> str:
    """Say which part of a layer is wrong: "attention", "feed-forward", "norm", "residual", "none".

    Args:
        run: called as run(weights, x).
    """
    ### BEGIN SOLUTION
    layer = EncoderLayer(8, 2, 12, 0.0).double().requires_grad_(False)
    shapes = {name: value.shape for name, value in layer.state_dict().items()}
    drawn = {name: draw(shape, seed=i) for i, (name, shape) in enumerate(shapes.items())}
    small, large = 0.01 * draw((2, 3, 8), seed=50), draw((2, 3, 8), seed=51)

    def wrong(weights: dict[str, Tensor]) -> bool:
        layer.load_state_dict(weights)
        found = [(run(weights, x) - layer(x)).abs().max() for x in (small, large)]
        return float(max(found)) > 1e-8

    silent = {
        name: value * 0 if "w_o" in name or "outer" in name else value
        for name, value in drawn.items()
    }
    if wrong(silent):
        lost = (run(silent, large) - run(silent, large.flip(0))).abs().max() < 1e-8
        return "residual" if lost else "norm"
    names = {"feed-forward": "outer", "attention": "w_o"}
    for part, name in names.items():
        if wrong(silent | {key: value for key, value in drawn.items() if name in key}):
            return part
    return "none"
    ### END SOLUTION


# %% test="blame-practice" points=1
def layer_of(
    part: str, wrong: Callable[..., Any] | None = None, heads: int = 2
) -> Callable[..., Any]:
    """A layer as a function, in which one part is replaced."""

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        q, k, v = (one.unflatten(-1, (heads, -1)).transpose(1, 2) for one in (q, k, v))
        return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)

    def norm(x: Tensor, gain: Tensor, bias: Tensor) -> Tensor:
        return F.layer_norm(x, (8,), gain, bias, 1e-5)

    parts: dict[str, Any] = {"attention": attend, "feed-forward": torch.relu, "norm": norm}
    parts |= {"residual 1": torch.add, "residual 2": torch.add}
    if wrong is not None:
        parts[part] = wrong

    def run(weights: dict[str, Tensor], x: Tensor) -> Tensor:
        w = weights
        qkv = [x @ w[f"self_attention.w_{name}.weight"].mT for name in "qkv"]
        y = parts["attention"](*qkv) @ w["self_attention.w_o.weight"].mT
        x = parts["norm"](parts["residual 1"](x, y), w["norm1.gain"], w["norm1.bias"])
        y = F.linear(x, w["feed_forward.inner.weight"], w["feed_forward.inner.bias"])
        y = parts["feed-forward"](y)
        y = F.linear(y, w["feed_forward.outer.weight"], w["feed_forward.outer.bias"])
        return parts["norm"](parts["residual 2"](x, y), w["norm2.gain"], w["norm2.bias"])

    return run


assert blame(layer_of("none")) == "none", "a right layer should not be blamed"
assert blame(layer_of("feed-forward", lambda x: x)) == "feed-forward", (
    "without a ReLU the feed-forward network should be blamed"
)
visible_passed()
### BEGIN HIDDEN TESTS
calls = []


def counted(weights: dict[str, Tensor], x: Tensor) -> Tensor:
    calls.append(1)
    return layer_of("none")(weights, x)


blame(counted)
assert len(calls) <= 20, "at most 20 calls of a layer are allowed"
### END HIDDEN TESTS

# %% test="blame-sublayers" points=1
assert blame(layer_of("attention", lambda q, k, v: v)) == "attention", (
    "where each token attends to itself alone, the attention should be blamed"
)
visible_passed()
### BEGIN HIDDEN TESTS
assert blame(layer_of("none", heads=4)) == "attention", (
    "with four heads in place of two, the attention should be blamed"
)
assert blame(layer_of("attention", lambda q, k, v: (q @ k.mT).softmax(-2) @ v)) == "attention", (
    "with a softmax over the queries, the attention should be blamed"
)
for wrong in (F.gelu, torch.abs):
    assert blame(layer_of("feed-forward", wrong)) == "feed-forward", (
        "with another function in place of the ReLU, the feed-forward network should be blamed"
    )
### END HIDDEN TESTS

# %% test="blame-around" points=1
assert blame(layer_of("residual 1", lambda x, y: y)) == "residual", (
    "without the first residual connection, the residual should be blamed"
)
visible_passed()
### BEGIN HIDDEN TESTS
assert blame(layer_of("residual 2", lambda x, y: y)) == "residual", (
    "without the second residual connection, the residual should be blamed"
)


def shared_epsilon(x: Tensor, gain: Tensor, bias: Tensor) -> Tensor:
    centred = x - x.mean(-1, keepdim=True)
    return gain * centred / (centred.square().mean(-1, keepdim=True).sqrt() + 1e-5) + bias


for wrong, claim in (
    (lambda x, g, b: F.layer_norm(x, (8,), g, None, 1e-5), "a norm without bias should be blamed"),
    (lambda x, g, b: F.layer_norm(x, (8,), None, b, 1e-5), "a norm without gain should be blamed"),
    (lambda x, g, b: F.rms_norm(x, (8,), g, 1e-5) + b, "a norm without the mean should be blamed"),
    (
        lambda x, g, b: (x - x.mean(-1, keepdim=True)) / x.std(-1, keepdim=True) * g + b,
        "a norm with the other variance should be blamed",
    ),
    (shared_epsilon, "a norm whose epsilon stands outside of the root should be blamed"),
):
    assert blame(layer_of("norm", wrong)) == "norm", claim
### END HIDDEN TESTS

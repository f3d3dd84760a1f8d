# %% [markdown]
# # 11 Your translator
#
# In this notebook you train a translator and find out what it can do: you write the loop that keeps
# a record, choose the weights to keep, look for the rate at which training breaks, count what a cache
# saves, sort the errors by kind, tell errors of the search from errors of the model, and take parts
# out of the model after you have said what that will do. The last question, a bonus, asks whether a
# difference of two scores means anything.
#
# **How to work.** Run the cells from top to bottom. Replace each `# YOUR CODE HERE` and the `raise`
# below it by your answer, then run the test cells that follow; their messages say what is wrong.
# The visible tests are not all tests: hidden ones, with other sizes and numbers, run when the
# notebook is graded. Each question is tested on its own, so you may leave one open and go on.
# Before you hand in, restart the kernel and run all cells.
#
# **Where to read.** The book's page *Your translator* does all of it with the whole model.
#
# **Conventions.** The batch comes first. $B$ counts sentences; the source (what is read) has $M$
# tokens, the target (what is written) has $N$, from `<bos>` to `<eos>`, then padding.
#
# **Your own parts.** The cells marked *Try it* train a small translator for some seconds. They take
# your model, loss, rate, optimiser, step, search and BLEU from `my_transformer.py`, if
# `python -m lab assemble` has put that file beside this notebook, or one or two folders up; for what
# is not there, a simple one of the lab stands in, and the first of these cells says which. They do nothing while
# the notebook is graded.

# %% setup
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise

import matplotlib.pyplot as plt
import torch
from jaxtyping import Int
from torch import Tensor, nn

from lab import plots
from lab.check import (
    assert_close,
    assert_fraction,
    assert_raises,
    assert_whole,
    draw,
    expect_no_error,
    visible_passed,
)
from lab.own import one_thread
from lab.phenomena import dictionary_forms
from lab.predict import predicted, watched
from lab.translator import Translator, workshop

# what the words with an apostrophe are without it
ELIDED = {
    "l'": ("le", "la"),
    "j'": ("je",),
    "m'": ("me",),
    "n'": ("ne",),
    "d'": ("de",),
    "qu'": ("que",),
}
KINDS = ("none", "elision", "agreement", "order", "negation", "length", "word")


class Toy(nn.Module):
    """A stand-in for a Transformer: logits from source and target; it notes how it is used."""

    def __init__(self, vocab_size: int = 8, seed: int = 0) -> None:
        super().__init__()
        self.table = nn.Parameter(draw((vocab_size, vocab_size), seed=seed))
        self.part = nn.Identity()  # parts have the model's mode as well
        self.modes: list[bool] = []

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Logits (B, N, vocab_size): each row depends on its own token and the source's first one."""
        self.modes.append(self.part.training)
        logits = self.table[target] + 0.5 * self.table[source[:, :1]]
        return -logits if self.part.training else logits


def batch_of(*rows: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Targets with these ids, padded by 0, beside sources that nobody looks at."""
    longest = max(map(len, rows))
    target = torch.tensor([[*row, *[0] * (longest - len(row))] for row in rows])
    return torch.ones(len(rows), 2, dtype=torch.int64), target


# %% [markdown]
# ## 11.1 A loop that keeps its books   (3 points, about 20 minutes, difficulty 3 of 5)
#
# **Objective.** Train, and write down what a later look at the training needs.
#
# `train(model, batches, step, evaluate, every, pad_id)` goes once through `batches`, in their order;
# each is a pair `(source, target)` of ids. For each it calls `step(model, source, target)`, with the model in
# training mode; that takes one step and returns the mean loss over the batch's **labels**: the tokens of
# `target` without its first column that are not `pad_id`.
#
# After every `every` steps, and once more after the last step unless that has just been, it appends a
# record, a dictionary with
#
# - `"step"`: how many steps there have been;
# - `"loss"`: the mean loss **of a label** over all steps since the record before, as a float. A batch
#   with more labels counts for more;
# - `"held_out"`: what `evaluate(model)` returns, called with the model in evaluation mode. Afterwards the model
#   is in training mode.
#
# It returns the list of records; without batches that is empty. `batches` may be read once only: it
# need not be a list.
#
# <details><summary>Hint 1: a question</summary>
#
# A batch of 10 labels has mean loss 1, the next, of 30 labels, has mean loss 2. What is the mean of all
# 40?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Two sums run along, of losses and of labels; a record divides them and sets both to 0. The record
# after the last step is due when the loop is over and labels are left in the sum.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - The first record is right, later ones are not: what is left over from before?
# - A loss that is a little off: means of means, or padding and the first column counted as labels.
# - One record too many at the end: `every` divides the number of steps.
# - *object of type 'generator' has no len()*: count along the way.
#
# </details>


# %% solution="train"
def train(
    model: nn.Module,
    batches: Iterable[tuple[Int[Tensor, "B M"], Int[Tensor, "B N"]]],
    step: Callable[[nn.Module, Tensor, Tensor], float],
    evaluate: Callable[[nn.Module], float],
    every: int,
    pad_id: int,
) -> list[dict[str, float]]:
    """Take a step for each batch; give back records of step, loss of a label, and held-out loss."""
    ### BEGIN SOLUTION
    records: list[dict[str, float]] = []
    total, labels, done = 0.0, 0, 0

    def record() -> dict[str, float]:
        model.eval()
        found = {"step": done, "loss": total / labels, "held_out": evaluate(model)}
        model.train()
        return found

    model.train()
    for source, target in batches:
        real = int((target[:, 1:] != pad_id).sum())
        total += step(model, source, target) * real
        labels += real
        done += 1
        if done % every == 0:
            records.append(record())
            total, labels = 0.0, 0
    if labels:
        records.append(record())
    return records
    ### END SOLUTION


# %% test="train-records" points=2
rows = [[1, 3, 2]], [[1, 4, 5, 6, 2], [1, 7, 2]], [[1, 2]], [[1, 3, 3, 2]], [[1, 5, 2]]
losses = [4.0, 3.0, 1.0, 2.0, 0.5]
prepared = iter(losses)
records = train(
    Toy(), [batch_of(*one) for one in rows], lambda *_: next(prepared), lambda _: 9.0, 2, pad_id=0
)
assert isinstance(records, list) and len(records) == 3, (
    "five steps with every=2: there should be records after steps 2, 4 and 5"
)
assert [record["step"] for record in records] == [2, 4, 5], (
    f"the records' steps should be 2, 4, 5\nYours are {[record['step'] for record in records]}."
)
assert_close(
    float(records[0]["loss"]),
    (2 * 4.0 + 6 * 3.0) / 8,
    "2 labels with mean loss 4 and 6 with mean loss 3: the first record's loss should be 26 / 8",
)
assert_close(float(records[2]["loss"]), 0.5, "the last record should be about the last step alone")
assert_fraction(records[2]["loss"], "a record's loss should be a float, and no tensor")
assert records[1]["held_out"] == 9.0, "held_out should be what evaluate returns"
visible_passed()
### BEGIN HIDDEN TESTS
losses = [float(value) for value in draw((6,), seed=3).abs().tolist()]
for every, count, pad in ((3, 6, 0), (1, 3, 5), (10, 4, 0), (2, 0, 0)):
    batches, labels = [], []
    for i in range(count):
        words = [3 + (i + j) % 2 for j in range(i % 3 + 1)]
        source, target = batch_of([1, *words, 2], [1, 2])
        target[target == 0] = pad
        batches.append((source, target))
        labels.append(len(words) + 2)
    prepared, seen = iter(losses), []

    def numbered_step(model, source, target, seen=seen, prepared=prepared):
        seen.append(target.tolist())
        return next(prepared)

    with expect_no_error("batches that can be read once only, or none, should do"):
        records = train(Toy(), iter(batches), numbered_step, lambda _: 1.5, every, pad)
    assert seen == [target.tolist() for _, target in batches], (
        "every batch should be stepped on once, in order, as it is"
    )
    ends = sorted({*range(every, count + 1, every), count} - {0})
    assert [record["step"] for record in records] == ends, (
        f"{count} steps, a record every {every}: the records should be those of steps {ends}"
    )
    starts = [0, *ends]
    for start, record in zip(starts, records, strict=False):
        part = range(start, int(record["step"]))
        wanted = sum(losses[i] * labels[i] for i in part) / sum(labels[i] for i in part)
        assert_close(
            float(record["loss"]),
            wanted,
            "a record's loss should be the mean over the labels of the steps since the one before, "
            "without padding, whatever its id is",
        )
### END HIDDEN TESTS

# %% test="train-modes" points=1
model = Toy()
modes = []


def look(seen):
    modes.append(seen.part.training)
    return float(len(modes))


def careless_step(model, source, target):
    modes.append("step" if model.part.training else "step in evaluation mode")
    return 1.0


batches = [batch_of([1, 3, 2])] * 3
records = train(model, batches, careless_step, look, every=1, pad_id=0)
assert len(batches) == 3, "train should leave a list of batches as it is"
assert modes == ["step", False] * 3, (
    "each step should find the model in training mode, each evaluation in evaluation mode\n"
    f"Yours were, in order: {modes}."
)
visible_passed()
### BEGIN HIDDEN TESTS
assert model.training, "after the last record the model should be in training mode"
assert [record["held_out"] for record in records] == [2.0, 4.0, 6.0], (
    "evaluate should be called once for each record, after its step"
)
model = Toy().eval()
modes.clear()
train(model, [batch_of([1, 3, 2])] * 2, careless_step, look, every=5, pad_id=9)
assert modes == ["step", "step", False], (
    "a model that comes in evaluation mode should be in training mode for its steps, and be "
    "evaluated for the record after the last one"
)
### END HIDDEN TESTS

# %% [markdown]
# **Try it: train.**
#
# Three hundred steps, four seconds or so. The cell keeps the weights after 50, 100, 200 and 300
# steps for later, and draws your record.

# %%
if watched():
    lab = workshop()
    print("yours:     ", ", ".join(lab.own) or "nothing yet")
    print("the lab's: ", ", ".join(lab.stand_ins) or "nothing")
    torch.manual_seed(0)
    translator, stages = lab.new_model(), {}

    def held_out_loss(model):
        """The held-out loss; the weights are kept on the way."""
        stages[len(stages) + 1] = {name: x.clone() for name, x in model.state_dict().items()}
        return lab.held_out_loss(model)

    with one_thread():  # small matrices: one core is fastest
        record = train(
            translator, lab.stream(300), lab.update(), held_out_loss, 25, lab.data.target.pad_id
        )
    curves = {
        "training, smoothed": [one["loss"] for one in record],
        "held out": [one["held_out"] for one in record],
    }
    plots.lines([one["step"] for one in record], curves, "Your record", "step", "loss a token")
    plt.show()

# %% [markdown]
# ## 11.2 Which weights to keep   (2 points, about 15 minutes, difficulty 2 of 5)
#
# **Objective.** Decide when training may stop, and which of its states was the best.
#
# `choose(held_out, patience)` gets the held-out losses of a training, in order, and returns two
# indices, `(best, stopped)`. Training stops at the first loss that is the last of `patience` losses in a row none
# of which is **below the best one before it**; without such a row it goes on to the end. `best` is the
# lowest loss up to where it stopped, the first one where several are equal. A loss that is no number (NaN) is never better
# than another, and any number is better than it. An empty list, or a patience below 1, raises a `ValueError`.
#
# <details><summary>Hint 1: a question</summary>
#
# Losses 3, 2, 2.5, 2.4, 1: with patience 2, does anybody ever see the 1?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Walk through the losses with the index of the best so far; the distance from it to where you stand is
# all that patience needs.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - Stops too early: is a loss compared with the one before it, or with the best?
# - Stops one too late: with patience 1 the first loss that is no better ends it.
# - The best lies behind the end: losses that nobody got to see do not count.
# - NaN wins: every comparison with NaN is false, `not a >= b` is then true.
#
# </details>


# %% solution="choose"
def choose(held_out: Sequence[float], patience: int) -> tuple[int, int]:
    """Return the index of the best loss that was seen, and the index at which training stopped."""
    ### BEGIN SOLUTION
    if not held_out or patience < 1:
        raise ValueError(f"{len(held_out)} losses, patience {patience}: there must be one of each")
    best = 0
    for index, loss in enumerate(held_out):
        if loss < held_out[best] or (math.isnan(held_out[best]) and not math.isnan(loss)):
            best = index
        if index - best >= patience:
            return best, index
    return best, len(held_out) - 1
    ### END SOLUTION


# %% test="choose-values" points=1
losses = [3.0, 2.0, 2.5, 2.4, 1.0]
best, stopped = choose(losses, 2)
claim = "losses 3, 2, 2.5, 2.4, 1 with patience 2: "
assert_whole(best, 1, f"{claim}the best should be index 1")
assert_whole(stopped, 3, f"{claim}training should stop at index 3")
assert losses == [3.0, 2.0, 2.5, 2.4, 1.0], "choose should leave the list of losses as it is"
assert tuple(choose([3.0, 2.0, 2.5, 2.4, 1.0], 3)) == (4, 4), (
    "with patience 3 it should go on to the end, where the best is"
)
visible_passed()
### BEGIN HIDDEN TESTS
for losses, patience, wanted in (
    ([3.0, 2.0, 2.5, 2.4, 1.0], 1, (1, 2)),
    ([1.0, 2.0, 3.0, 0.5], 2, (0, 2)),
    ([5.0, 4.0, 3.0], 1, (2, 2)),
    ([2.0, 2.5, 2.4, 2.3, 2.2, 1.0], 4, (0, 4)),
    ([7.0], 3, (0, 0)),
    ([4.0, 5.0, 3.0, 4.0, 2.0, 6.0, 6.0], 2, (4, 6)),
):
    got = tuple(choose(losses, patience))
    assert got == wanted, (
        "training should stop after `patience` losses in a row that are not below the best, and the "
        f"best be sought up to there\nLosses {losses}, patience {patience}: yours is {got}."
    )
### END HIDDEN TESTS

# %% test="choose-edges" points=1
assert tuple(choose([2.0, 1.0, 1.0, 1.0], 2)) == (1, 3), "of equal losses the first is the best"
assert_raises(ValueError, lambda: choose([], 2), "an empty list should raise a ValueError")
visible_passed()
### BEGIN HIDDEN TESTS
nan = float("nan")
for losses, patience, wanted in (
    ([3.0, nan, nan, 1.0], 2, (0, 2)),
    ([3.0, nan, 2.0], 2, (2, 2)),
    ([nan, 3.0, 2.0, 2.0], 3, (2, 3)),
    ([nan, nan, nan, 1.0], 2, (0, 2)),
    ([1.0, 1.0, 1.0], 1, (0, 1)),
):
    got = tuple(choose(losses, patience))
    assert got == wanted, (
        "a loss that is no number is never better than one that is, and an equal one is no better"
        f"\nLosses {losses}, patience {patience}: yours is {got}, expected {wanted}."
    )
assert_raises(ValueError, lambda: choose([1.0], 0), "patience 0 should raise a ValueError")
assert_raises(
    ValueError, lambda: choose([1.0], -2), "a patience below 0 should raise a ValueError, too"
)
### END HIDDEN TESTS

# %% [markdown]
# ## 11.3 How high may the rate be?   (4 points, about 25 minutes, difficulty 3 of 5)
#
# **Objective.** Raise the learning rate until training breaks, and choose one by what you measured.
#
# `sweep(run, rates)`: `run(rate)` trains a new model at that rate and returns the list of its losses,
# step by step. Go through the rates from the lowest to the highest, in whatever order they come. For
# each note the mean of the last tenth of its losses, rounded up to a whole number of them (of 25 losses
# the last 3). A run has **diverged** if a loss is not finite, or if that mean is above the run's first loss; note `math.inf`
# for it, and try no higher rate. Return a dictionary from rate to what you noted.
#
# `measured()`: run *Try it: the sweep*, then return what **you** measured, typed into your answer: a pair `(table, rate)`. The
# table is a dictionary as `sweep` returns it, with at least five rates, the highest at least a hundred
# times the lowest, exactly one of them, the highest, diverged, and the best one with lower and higher ones that did
# not diverge on both sides. The rate is the one that you
# would train with: a rate of the table that did not diverge, whose loss is at most 5% above the lowest of the table. Change
# `RATES` in *Try it* until it is so. The tests check what you return against itself, and against what no such
# training can give.
#
# <details><summary>Hint 1: a question</summary>
#
# A loss may become NaN and stay so. What is the mean then, and what does `mean > first` say?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Sort, loop, `break` after noting the first `math.inf`. `math.ceil(len(losses) / 10)` losses from the end.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - Goes on above a rate that diverged: is the loop left, or only this round of it?
# - *nan* in the table: ask whether all losses are finite before you compare.
# - `measured` is refused although your numbers are real: does the table end in `math.inf`, and is
#   there a rate on either side of the best?
#
# </details>


# %% solution="sweep"
def sweep(run: Callable[[float], list[float]], rates: Sequence[float]) -> dict[float, float]:
    """Return the final loss at each rate, from the lowest to the first that diverges."""
    ### BEGIN SOLUTION
    table: dict[float, float] = {}
    for rate in sorted(rates):
        losses = run(rate)
        tail = losses[-math.ceil(len(losses) / 10) :]
        mean = sum(tail) / len(tail)
        finite = all(math.isfinite(loss) for loss in losses)
        table[rate] = mean if finite and mean <= losses[0] else math.inf
        if table[rate] == math.inf:
            break
    return table
    ### END SOLUTION


# %% test="sweep-values" points=2
asked = []


def pretend(rate):
    """25 losses; the last three have the mean 2 + rate, or lie above the first one."""
    asked.append(rate)
    if rate > 1:
        return [6.0, 30.0, *[7.0] * 23]
    return [6.0] * 22 + [1.0 + rate, 2.0 + rate, 3.0 + rate]


table = sweep(pretend, [1.5, 0.1, 4.0, 0.5])
assert isinstance(table, dict), "sweep should return a dictionary"
assert asked == [0.1, 0.5, 1.5], (
    "rates should be tried from the lowest on, and none after the first that diverged: 0.1, 0.5, 1.5"
    f"\nYours tried {asked}."
)
assert table[1.5] == math.inf, "a run that ends above its first loss has diverged: math.inf"
assert_close(
    float(table[0.5]), 2.5, "of 25 losses the last 3 should count: their mean at rate 0.5 is 2.5"
)
visible_passed()
### BEGIN HIDDEN TESTS
pretended = {
    0.01: [5.0, 5.0, 4.5],
    0.02: [5.0, 9.0, *[4.0] * 17, 3.0, 1.0],  # 21 losses, the last three
    0.03: [5.0] * 20,
    0.04: [5.0, 2.0, float("nan"), 2.0, 2.0],
    0.05: [5.0, 1.0],
}
mixed = [0.05, 0.03, 0.01, 0.04, 0.02]
table = sweep(lambda rate: pretended[rate], mixed)
assert list(table)[:3] == [0.01, 0.02, 0.03] and table.get(0.03) != math.inf, (
    "a run whose last losses are no higher than its first one has not diverged: the next rate is tried"
)
assert list(table) == [0.01, 0.02, 0.03, 0.04], (
    "a run with a loss that is not finite has diverged, and no higher rate is tried"
)
assert table[0.04] == math.inf, "one NaN on the way, and the run should count as diverged"
assert_close(float(table[0.01]), 4.5, "of three losses the last one should count")
assert_close(float(table[0.02]), 8 / 3, "of 21 losses the last three should count")
assert_close(float(table[0.03]), 5.0, "a loss that neither falls nor rises has not diverged")
assert mixed == [0.05, 0.03, 0.01, 0.04, 0.02], "the list of rates should stay as it is"
table = sweep(lambda rate: [5.0] * 18 + [4.0, 5.5], [0.1])
assert_close(
    float(table[0.1]), 4.75, "the mean of the last tenth should count, not its last or largest loss"
)
assert sweep(lambda rate: [5.0] * 18 + [9.0, 4.0], [0.1]) == {0.1: math.inf}, (
    "a mean above the first loss has diverged, whatever the last loss is"
)
table = sweep(lambda rate: [3.0, math.inf], [0.1])
assert table == {0.1: math.inf}, "an infinite loss is not finite"
assert sweep(lambda rate: [3.0, math.inf, *[2.0] * 9], [0.1]) == {0.1: math.inf}, (
    "an infinite loss on the way, and the run should count as diverged, too"
)
assert sweep(pretend, []) == {}, "without rates there should be an empty dictionary"
### END HIDDEN TESTS

# %% [markdown]
# **Try it: the sweep.**
#
# A few seconds. Change `RATES` as you like.

# %%
RATES = (3e-4, 1e-3, 3e-3, 1e-2)

if watched():

    @one_thread()
    def run(rate):
        """The losses of 40 steps of a new model."""
        torch.manual_seed(0)
        model, one_step = lab.new_model(), lab.update(rate)
        return [one_step(model, source, target) for source, target in lab.stream(40)]

    found = sweep(run, RATES)
    for rate, loss in found.items():
        print(f"{rate:g}: {loss:.3f},")
    finite = {rate: loss for rate, loss in found.items() if loss < math.inf}
    ax = plots.lines(list(finite), {"loss": list(finite.values())}, "Your sweep", "rate", "loss")
    ax.set_xscale("log")
    plt.show()


# %% solution="measured"
def measured() -> tuple[dict[float, float], float]:
    """Return your table, typed in, and the rate that you would train with."""
    ### BEGIN SOLUTION
    table = {
        3e-4: 5.709,
        1e-3: 5.111,
        3e-3: 4.524,
        1e-2: 4.152,
        3e-2: 3.999,
        1e-1: 4.427,
        1.0: math.inf,
    }
    return table, 3e-2
    ### END SOLUTION


# %% test="measured-range" points=1
table, chosen = measured()
rates = sorted(table)
assert len(rates) >= 5, "the table should have at least five rates"
assert rates[0] > 0 and rates[-1] >= 100 * rates[0], (
    "the highest rate should be at least a hundred times the lowest"
)
assert [rate for rate in rates if table[rate] == math.inf] == rates[-1:], (
    "the highest rate, and no other, should have diverged (math.inf): raise RATES until one does"
)
visible_passed()
### BEGIN HIDDEN TESTS
kept = [float(table[rate]) for rate in rates[:-1]]
assert all(0 < loss < 10 for loss in kept), (
    "the loss of some hundred words starts below 10 and never gets to 0: a table that says otherwise "
    "was not measured"
)
assert max(kept) - min(kept) > 0.2, (
    "from a rate that hardly moves the weights to the best one the loss should fall by more than 0.2"
)
### END HIDDEN TESTS

# %% test="measured-choice" points=1
table, chosen = measured()
finite = {rate: float(loss) for rate, loss in table.items() if float(loss) < math.inf}
assert chosen in table, "the rate that you would train with should be one of the table's"
assert chosen in finite, "a rate at which training diverged is no choice"
lowest = min(finite.values())
assert finite[chosen] <= 1.05 * lowest, (
    "by your own table another rate is better: the loss at the rate that you choose should be at most "
    "5% above the lowest"
)
visible_passed()
### BEGIN HIDDEN TESTS
best = min(finite, key=lambda rate: finite[rate])
assert min(finite) < best < max(finite), (
    "the best rate should not be at an end of those that did not diverge: nobody knows what lies "
    "beyond it"
)
### END HIDDEN TESTS

# %% [markdown]
# ## 11.4 What a cache saves   (2 points, about 10 minutes, difficulty 2 of 5)
#
# **Objective.** Count the work of writing, in units that do not depend on the machine.
#
# The unit is a **position**: one token of one row that passes through the decoder. `lengths` says how
# many tokens each sentence has when it is written, its end token included. Step $t$ writes token $t$ and
# is given the $t$ tokens before it, `<bos>` being the first:
#
# - without a cache (`cached=False`) all $t$ pass through the decoder, with one (`cached=True`) only the last;
# - together in a batch (`together=True`) **every** row goes on until the longest sentence has ended; alone, each
#   stops at its own end.
#
# `positions(lengths, cached, together)` returns the number of positions of all steps and all rows, an `int`. Without sentences that is 0.
# Lengths may be large: add up by a formula and not by a loop over steps.
#
# <details><summary>Hint 1: a question</summary>
#
# What is $1 + 2 + \dots + n$?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# First replace each length by the number of steps that its row takes part in. Then one sum over rows.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - Twice as many: half of $n (n + 1)$.
# - 3.0 in place of 3: `//`.
# - Too few together: short rows are there to the end.
# - *max() iterable argument is empty*: no sentences.
#
# </details>


# %% solution="positions"
def positions(lengths: Sequence[int], cached: bool, together: bool) -> int:
    """Return how many positions pass through the decoder while these sentences are written."""
    ### BEGIN SOLUTION
    steps = [max(lengths)] * len(lengths) if together and lengths else lengths
    return sum(n if cached else n * (n + 1) // 2 for n in steps)
    ### END SOLUTION


# %% test="positions-values" points=1
assert_whole(
    positions([3], cached=False, together=False), 6, "three tokens, no cache: 1 + 2 + 3 positions"
)
assert_whole(positions([3], cached=True, together=False), 3, "three tokens, a cache: 3 positions")
visible_passed()
### BEGIN HIDDEN TESTS
for lengths, cached, wanted in (
    ([4, 1], False, 11),
    ([4, 1], True, 5),
    ([2, 2, 7], False, 34),
    ([10**9 + 1], False, 500_000_001_500_000_001),
    ([10**9, 5], True, 1_000_000_005),
):
    assert_whole(
        positions(lengths, cached, together=False),
        wanted,
        "alone, each sentence should count its own steps: all tokens so far at each without a cache, "
        f"one with it\nHere of {lengths} tokens, cached={cached}",
    )
for n in range(3 * 10**9, 3 * 10**9 + 5):
    assert_whole(
        positions([n], cached=False, together=False),
        n * (n + 1) // 2,
        "lengths may be large: a formula should add up the steps, and no loop",
    )
### END HIDDEN TESTS

# %% test="positions-together" points=1
lengths = [4, 1]
assert_whole(
    positions(lengths, cached=False, together=True),
    20,
    "4 tokens and 1, in one batch without a cache: both rows are there for 1 + 2 + 3 + 4 positions",
)
assert lengths == [4, 1], "positions should leave the list of lengths as it is"
visible_passed()
### BEGIN HIDDEN TESTS
for lengths, cached, wanted in (
    ([3, 1], True, 6),
    ([2, 5, 4], False, 45),
    ([2, 5, 4], True, 15),
    ([6], False, 21),
    ([], True, 0),
    ([], False, 0),
):
    assert_whole(
        positions(lengths, cached, together=True),
        wanted,
        "together, each row should count until the longest sentence has ended\n"
        f"Here of {lengths} tokens, cached={cached}",
    )
### END HIDDEN TESTS

# %% [markdown]
# **Try it: your translations.**
#
# How long are the sentences that your model wrote, and what would a cache save?

# %%
if watched():
    english, french = (list(side) for side in zip(*lab.data.held_out, strict=True))
    said = lab.translate(translator, english)
    lengths = [len(sentence.split()) + 1 for sentence in said]
    for together in (False, True):
        without, with_cache = (positions(lengths, cached, together) for cached in (False, True))
        how = "in one batch" if together else "one by one"
        print(
            f"{len(said)} sentences {how}: {without:,} positions without a cache, {with_cache:,} with "
            f"one, {without / with_cache:.1f} times fewer"
        )

# %% [markdown]
# ## 11.5 Errors by kind   (4 points, about 25 minutes, difficulty 3 of 5)
#
# **Objective.** Say what is wrong with a translation, and not only that it is wrong.
#
# `kind_of_error(right, said, forms)` gets two French sentences, words separated by blanks, and a
# dictionary `forms` from each form of a word to the form under which a dictionary has it (`noires` to
# `noir`); a word that it lacks is its own dictionary form. It returns one of the `KINDS` of the setup cell, **the first that fits**:
#
# 1. `"none"`: the same words.
# 2. `"elision"`: as many words, and place by place the same but for elision. Two words are **the same but for
#    elision** if they are equal, or if one is elided and the other is what it stands for; `ELIDED`
#    lists these, such as `l'` for `le` and `la`.
# 3. `"agreement"`: as many words, and place by place the same dictionary form, or the same but for
#    elision.
# 4. `"order"`: the same dictionary forms, each as often, in another order.
# 5. `"negation"`: one sentence has `ne`, `n'` or `pas`, the other lacks **that very word**.
# 6. `"length"`: another number of words.
# 7. `"word"`: all the rest.
#
# `lab.phenomena`, which sorts translations in a way of its own, is not allowed here.
#
# <details><summary>Hint 1: a question</summary>
#
# Which two of the seven need no place by place at all, and what do you compare in place of lists?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# A small function that says whether two words are the same but for elision, another for a word's
# dictionary form. Then seven questions, each with its own `return`. A `Counter` compares words as often
# as they occur.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - *KeyError*: words that `forms` lacks; `forms.get(word, word)`.
# - *zip() argument 2 is shorter*: ask for the numbers of words first.
# - A repeated word goes unnoticed: sets forget how often.
# - Agreement where elision is right, or the reverse: the order of the questions.
#
# </details>


# %% solution="kind-of-error"
def kind_of_error(right: str, said: str, forms: Mapping[str, str]) -> str:
    """Return the first of KINDS that says how a translation differs from the right one."""
    ### BEGIN SOLUTION
    wanted, given = right.split(), said.split()

    def elided(one: str, other: str) -> bool:
        return one == other or one in ELIDED.get(other, ()) or other in ELIDED.get(one, ())

    def plain(words: list[str]) -> list[str]:
        return [forms.get(word, word) for word in words]

    as_many = len(wanted) == len(given)
    pairs = list(zip(wanted, given, strict=False))
    if wanted == given:
        return "none"
    if as_many and all(elided(*pair) for pair in pairs):
        return "elision"
    if as_many and all(elided(*pair) or len({*plain([*pair])}) == 1 for pair in pairs):
        return "agreement"
    if Counter(plain(wanted)) == Counter(plain(given)):
        return "order"
    if {"ne", "n'", "pas"} & ({*wanted} ^ {*given}):
        return "negation"
    return "word" if as_many else "length"
    ### END SOLUTION


# %% test="kind-of-error-simple" points=2
forms = {"noire": "noir", "noirs": "noir", "chats": "chat", "petite": "petit", "la": "le"}
for said, kind in {
    "le chat noir ne dort pas .": "none",
    "le chat noire ne dort pas .": "agreement",
    "le noir chat ne dort pas .": "order",
    "le chat noir dort .": "negation",
    "le chat chat noir ne dort pas .": "length",
    "le chien noir ne dort pas .": "word",
    "l' chat noir ne dort pas .": "elision",
}.items():
    got = kind_of_error("le chat noir ne dort pas .", said, forms)
    assert got == kind, (
        f"'le chat noir ne dort pas .' translated as '{said}' should be of the kind {kind!r}\n"
        f"Yours is {got!r}."
    )
visible_passed()
### BEGIN HIDDEN TESTS
for right, said, kind in (
    ("je aime la petite ami .", "j' aime l' petite ami .", "elision"),
    ("d' eau .", "de eau .", "elision"),
    ("les chats noirs .", "les chat noire .", "agreement"),
    ("une petite chatte noire .", "une noire chatte petit .", "order"),
    ("il dort .", "il ne dort pas .", "negation"),
    ("il ne dort pas .", "il ne dort .", "negation"),
    ("il dort .", "il dort", "length"),
    ("il dort .", "", "length"),
    ("", "", "none"),
    ("la reine dort .", "la reine mange .", "word"),
):
    got = kind_of_error(right, said, forms)
    assert got == kind, (
        "each kind should be told by its own rule, with forms that differ from the first example's"
        f"\n{right!r} translated as {said!r}: yours is {got!r}, expected {kind!r}."
    )
### END HIDDEN TESTS

# %% test="kind-of-error-first" points=2
for right, said, kind in (
    ("l' amie noire .", "la amie noir .", "agreement"),
    ("le chat noir .", "noire le chat .", "order"),
    ("il ne dort pas .", "il n' dort pas .", "elision"),
):
    got = kind_of_error(right, said, forms)
    assert got == kind, (
        f"the first kind that fits counts: {right!r} translated as {said!r} is of the kind {kind!r}\n"
        f"Yours is {got!r}."
    )
visible_passed()
### BEGIN HIDDEN TESTS
for right, said, kind in (
    ("le chat et le chien .", "le chat et la chien .", "agreement"),
    ("le chat et le chat .", "le chien et le chien .", "word"),
    ("les chats , les chats .", "chats les , les chats .", "order"),
    ("le le chat .", "le chat chat .", "word"),
    ("il ne dort pas .", "il pas dort ne .", "order"),
    ("il ne voit pas le chat .", "il voit un chien noir .", "negation"),
    ("il n' aime pas .", "il ne aime pas pas .", "negation"),
    ("il ne dort pas .", "il ne ne dort pas .", "length"),
    ("l' ami .", "les ami .", "word"),
    ("le roi .", "la roi", "length"),
    ("l' ami dort .", "dort le ami .", "word"),
    ("d' eau froide .", "froide de eau .", "word"),
):
    got = kind_of_error(right, said, forms)
    assert got == kind, (
        "where several rules seem to fit, the first one counts, and words count as often as they occur"
        f"\n{right!r} translated as {said!r}: yours is {got!r}, expected {kind!r}."
    )
for right, said, kind in (
    ("il passe .", "il dort .", "word"),
    ("la dame .", "une dame rit .", "length"),
):
    got = kind_of_error(right, said, forms)
    assert got == kind, (
        "a negation is the word ne, n' or pas itself, and no other word that holds these letters"
        f"\n{right!r} translated as {said!r}: yours is {got!r}, expected {kind!r}."
    )
### END HIDDEN TESTS

# %% [markdown]
# **Try it: what your translator learned when.**
#
# The weights that were kept during training translate the held-out sentences, and your function sorts what they
# say.

# %%
if watched() and len(stages) < 12:
    print("What this looks at comes from the run below 11.1, which has not come to its end.")
elif watched():
    chosen_stages = {50: 2, 100: 4, 200: 8, 300: 12}
    counts = {}
    for number, stage in chosen_stages.items():
        translator.load_state_dict(stages[stage])
        said = lab.translate(translator, english)
        kinds = (
            kind_of_error(*pair, dictionary_forms()) for pair in zip(french, said, strict=True)
        )
        counts[number] = Counter(kinds)
    plots.heatmap(
        [[counts[number][kind] for number in counts] for kind in KINDS],
        KINDS,
        list(counts),
        "Translations by kind of error",
        xlabel="steps of training",
    )
    plt.show()
    tokens = [[sentence.split() for sentence in side] for side in (said, french)]
    print(f"BLEU {lab.bleu(*tokens):.1f}, {counts[300]['none']} of {len(said)} right in every word")

# %% [markdown]
# ## 11.6 Whose error is it?   (4 points, about 20 minutes, difficulty 4 of 5)
#
# **Objective.** Tell a wrong translation that the model prefers from one that the search stumbled into.
#
# A search looks for a sentence that the model finds probable. If what it found is wrong, ask the model: is the right
# sentence more probable? If so, the **search** missed it, and a wider one may find it. If not, no search
# will help: it is the **model**'s error.
#
# `whose_errors(model, source, said, right, pad_id)` gets ids: `source` $(B, M)$, `said` $(B, N)$ and `right` $(B, K)$;
# both targets run from `<bos>` to `<eos>` and are padded with `pad_id`. `model(source, decoder_input)`
# returns logits. For each row compute the log-probability of both sentences, that is the
# sum over their labels, padding left out, of the logarithm of the probability that the model gives the label
# when it has read all tokens before it. Return a list with one word for each row:
#
# - `"none"` if `said` and `right` are the same sentence (they may be padded differently);
# - `"search"` if the right sentence's log-probability is higher;
# - `"model"` otherwise.
#
# The model is in evaluation mode while it is asked, and afterwards in the mode in which it was found.
#
# <details><summary>Hint 1: a question</summary>
#
# To know how probable a given sentence is, must anything be decoded token by token?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# A function for one side: shift, log-softmax, gather the labels, put 0 where they are padding, sum each row. It is
# called twice.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - Long sentences always lose: that is what a sum of logarithms does; nothing is divided here.
# - Padding changes the answer: its labels are no part of the sentence.
# - Nonsense: which mode is the model in, and is the target shifted?
# - *gather(): Expected dtype int64*, *index out of range*: logits and labels one column apart.
#
# </details>


# %% solution="whose-errors"
def whose_errors(
    model: nn.Module,
    source: Int[Tensor, "B M"],
    said: Int[Tensor, "B N"],
    right: Int[Tensor, "B K"],
    pad_id: int,
) -> list[str]:
    """Return for each row whether search or model is to blame, or "none" where nothing is wrong."""
    ### BEGIN SOLUTION
    was_training = model.training
    model.eval()

    def log_probability(target: Tensor) -> list[float]:
        labels = target[:, 1:]
        with torch.no_grad():
            log_p = model(source, target[:, :-1]).log_softmax(-1)  # (B, N - 1, V)
        of_label = log_p.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
        return of_label.masked_fill(labels == pad_id, 0.0).sum(-1).tolist()

    found = log_probability(said), log_probability(right)
    model.train(was_training)
    sentences = [
        [[token for token in row if token != pad_id] for row in target.tolist()]
        for target in (said, right)
    ]
    return [
        "none" if one == other else "search" if of_right > of_said else "model"
        for one, other, of_said, of_right in zip(*sentences, *found, strict=True)
    ]
    ### END SOLUTION


# %% test="whose-errors-values" points=2
model = Toy().eval()
with torch.no_grad():
    model.table.copy_(torch.eye(8).roll(1, 1) * 3)  # after each token the next one is likely
source = torch.tensor([[0, 0]] * 3)
said = torch.tensor([[1, 2, 3, 4], [1, 5, 3, 4], [1, 2, 3, 4]])
right = torch.tensor([[1, 2, 3, 4], [1, 2, 3, 4], [1, 5, 3, 4]])
given = source, said, right
before = [ids.clone() for ids in given]
blamed = whose_errors(model, *given, pad_id=7)
assert list(blamed) == ["none", "search", "model"], (
    "this model finds 1 2 3 4 likely and 1 5 3 4 unlikely: a right sentence that it prefers was missed "
    f"by the search, another is the model's error\nYours is {blamed}."
)
assert all(torch.equal(ids, other) for ids, other in zip(given, before, strict=True)), (
    "whose_errors should leave all ids that it is handed as they are"
)
visible_passed()
### BEGIN HIDDEN TESTS
for seed in range(4):
    model = Toy(seed=seed).eval()
    numbers = torch.Generator().manual_seed(seed)
    source = torch.randint(8, (6, 2), generator=numbers)
    said, right = (torch.randint(1, 8, (6, n), generator=numbers) for n in (5, 4))
    right[0] = said[0, :4]
    said[0, 4] = right[0, 3]
    sums = []
    for target in (said, right):
        log_p = (model.table[target[:, :-1]] + 0.5 * model.table[source[:, :1]]).log_softmax(-1)
        sums.append(log_p.gather(-1, target[:, 1:, None]).sum((1, 2)))
    wanted = ["search" if second > first else "model" for first, second in zip(*sums, strict=True)]
    assert list(whose_errors(model, source, said, right, pad_id=0)) == wanted, (
        "the right sentence should be compared with the one that was said by the sum of the "
        "logarithms of their labels' probabilities, each given the tokens before it and the source"
    )
with torch.no_grad():
    model.table.zero_()  # all tokens are equally likely
blamed = whose_errors(model, source[:1], said[1:2], said[1:2].flip(1), pad_id=0)
assert list(blamed) == ["model"], (
    "where the right sentence is as probable as what was said, and no more, it is the model's error"
    f"\nYours is {blamed}."
)
### END HIDDEN TESTS

# %% test="whose-errors-padding" points=2
model = Toy(seed=5).train()
source = torch.tensor([[3, 0], [4, 0]])
said = torch.tensor([[1, 5, 2, 0, 0], [1, 5, 6, 2, 0]])
right = torch.tensor([[1, 5, 2], [1, 4, 2]])
blamed = whose_errors(model, source, said, right, pad_id=0)
assert blamed[0] == "none", "the same sentence, padded differently, is no error"
assert model.modes and not any(model.modes), "the model should be asked in evaluation mode"
visible_passed()
### BEGIN HIDDEN TESTS
assert model.training, "a model found in training mode should be left in it"
for pad, seed in ((0, 1), (7, 2), (7, 3), (0, 4), (7, 6)):
    model = Toy(seed=seed).eval()
    said = torch.tensor([[1, 5, 2, pad, pad, pad], [1, 6, 4, 3, 2, pad], [1, 3, 2, pad, pad, pad]])
    right = torch.tensor([[1, 5, 5, 6, 2], [1, 4, 2, pad, pad], [1, 6, 2, pad, pad]])
    source = torch.tensor([[3, 2], [4, 6], [5, 1]])
    sums = []
    for target in (said, right):
        log_p = (model.table[target[:, :-1]] + 0.5 * model.table[source[:, :1]]).log_softmax(-1)
        chosen = log_p.gather(-1, target[:, 1:, None]).squeeze(-1)
        sums.append(torch.where(target[:, 1:] == pad, 0.0, chosen).sum(1))
    wanted = ["search" if second > first else "model" for first, second in zip(*sums, strict=True)]
    assert list(whose_errors(model, source, said, right, pad)) == wanted, (
        "labels that are padding should add nothing to a sentence's log-probability"
    )
    assert not model.training, "a model found in evaluation mode should be left in it"
### END HIDDEN TESTS

# %% [markdown]
# ## 11.7 Predict, then run   (1 point, about 10 minutes, difficulty 2 of 5)
#
# **Objective.** Say what a part is for before you see what becomes of the model without it.
#
# Three models are trained like the whole one, each without one thing:
#
# - `"positions"`: nothing is added to the vectors of the tokens;
# - `"causal mask"`: the decoder may look at the target's later tokens;
# - `"residuals"`: each sub-layer's output takes the place of its input, and is not added to it.
#
# Two things are measured on held-out sentences: the loss with teacher forcing, and how many sentences the model
# writes that are right in every word. Before you run *Try it*, predict both, compared with the whole model:
# `predicted_changes()` returns a dictionary from each of the three names to a pair of words, first for the loss, then for
# the number of right sentences: `"lower"`, `"same"` (no more than a tenth apart) or `"higher"`.
#
# The point is for having predicted, right or wrong. The next question asks for what you make of the
# surprise: **do not change your prediction afterwards.**
#
# <details><summary>Hint 1: a question</summary>
#
# With teacher forcing the decoder is handed the right words. Which of them, if nothing hides the later ones?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# For each part: what does the model know only through it? Does teacher forcing need that knowledge? Does writing?
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - *KeyError*: the three names, as they are written above.
# - The test asks for two words: a pair for each name, loss first.
#
# </details>

# %%
PARTS = ("positions", "causal mask", "residuals")
WORDS = ("lower", "same", "higher")


# %% solution="predicted"
def predicted_changes() -> dict[str, tuple[str, str]]:
    """Return, for each thing left out, what becomes of the loss and of the right sentences."""
    ### BEGIN SOLUTION
    return {
        "positions": ("higher", "lower"),
        "causal mask": ("lower", "lower"),
        "residuals": ("higher", "lower"),
    }
    ### END SOLUTION


# %% test="predicted-before" points=1
said = predicted_changes()
for name in PARTS:
    assert name in said, f"there should be a prediction for the model without its {name}"
    assert len(said[name]) == 2, (
        f"{name}: predict two things, the loss and the number of right sentences"
    )
    for word in said[name]:
        assert word in WORDS, (
            f"{name}: a prediction is one of the words lower, same and higher\nYours is {word!r}."
        )
visible_passed()

# %% [markdown]
# **Try it: without.** Four small models of the lab's, 150 steps each: ten seconds or so.

# %%
if watched():
    pairs = [(one, other) for one in WORDS for other in WORDS]
    choices = dict.fromkeys(PARTS, (*pairs, *map(list, pairs)))
    said, found = predicted(predicted_changes, choices), {}
    sizes = len(lab.data.source), len(lab.data.target), lab.data.max_len, lab.data.target.pad_id
    for without in ("", *said):
        torch.manual_seed(0)
        model, one_step = Translator(*sizes, without), lab.update()
        with one_thread():
            for source, target in lab.stream(150):
                one_step(model, source, target)
        model.eval()
        written = lab.translate(model, english)
        exact = sum(one == other for one, other in zip(written, french, strict=True))
        found[without] = lab.held_out_loss(model), exact
        print(f"without {without or 'nothing'}: loss {found[without][0]:.2f}, {exact} right")
        if without:
            words = [
                "same" if abs(new - old) <= 0.1 * old else "lower" if new < old else "higher"
                for new, old in zip(found[without], found[""], strict=True)
            ]
            print(f"    you predicted {', '.join(said[without])}; it is {', '.join(words)}")

# %% [markdown]
# ## 11.8 What surprised you?   (2 points, about 10 minutes, difficulty 3 of 5)
#
# **Objective.** Learn from a prediction that failed.
#
# In three to six sentences: (a) Which of the six predictions was the farthest from what you measured (give the numbers), and
# why had you thought so? If all were right, take the one that you were least sure of. (b) One model has a lower loss than the whole
# one and writes worse. Say what its loss measured. (c) Which of the two numbers would you have published?

# %% [markdown] manual="surprise" points=2
# ### BEGIN SOLUTION
# (a) For instance: I expected the model without positions to write nothing right, and it writes about half as many
# right sentences as the whole one. In sentences of seven words the words themselves nearly tell who does what, and the decoder knows the
# order of its own words a little, since the causal mask lets each see another number of them.
#
# (b) Without the causal mask the decoder reads at each place the token that it should predict, one place on: its loss
# says how well it copies. When it writes there is nothing to copy from.
#
# (c) The right sentences, or BLEU: they are measured as the model is used. The loss is a fair measure only where the
# model sees what it will see in use.
#
# Marking: 1 point for (a), if it names a number of the student's own and a reason; the points do not depend on whether the prediction was
# right. 1 point for (b) and (c) together: it must be said that the answer was visible.
# ### END SOLUTION

# %% [markdown]
# ## 11.9 Bonus: better, or luck?   (3 points, about 35 minutes, difficulty 5 of 5)
#
# **Objective.** Say how sure a difference of two BLEU scores is.
#
# Two systems translated the same $n$ sentences. Had other sentences been drawn, the scores would be
# others. The **paired bootstrap** draws new test sets from the one there is: $n$ sentences **with
# replacement**, the same ones for both systems, and computes the difference anew, many times.
#
# `bootstrap(first, second, references, samples, generator)` gets three lists of $n$ sentences, each a list of
# tokens. It returns three floats, `(difference, low, high)`:
#
# - `difference`: BLEU of `second` less that of `first`, on all sentences. BLEU is that of question 9.6 with $k = 4$: clipped
#   matches and totals of each order **summed over the sentences**, the geometric mean of the four ratios, the brevity
#   penalty from the summed lengths, times 100; 0 if there is no match of some order;
# - `low` and `high`: the quantiles 0.025 and 0.975 (`torch.quantile`) of the differences of `samples` test sets. Row $s$ of
#   `torch.randint(n, (samples, n), generator=generator)`, drawn once, holds the indices of test set $s$.
#
# Count each sentence's $n$-grams once and not once a sample: with 1,000 samples of 500 sentences that is the difference between
# a second and an hour. Ready-made scores are not allowed here, neither `sacrebleu` nor the lab's.
#
# <details><summary>Hint 1: a question</summary>
#
# What of a sentence must be known to compute the BLEU of a corpus that contains it twice?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# A row of ten numbers for each sentence: four matches, four totals, two lengths. A sample's corpus is
# the sum of its sentences' rows, and an index tensor of shape (samples, n) gathers them all at once.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - An interval that is far too wide: each system got test sets of its own.
# - The right difference, a wrong interval: means of the sentences' scores are not the corpus's score.
# - NaN: a sample without a match of some order has BLEU 0.
#
# </details>


# %% solution="bootstrap"
def bootstrap(
    first: Sequence[Sequence[str]],
    second: Sequence[Sequence[str]],
    references: Sequence[Sequence[str]],
    samples: int,
    generator: torch.Generator,
) -> tuple[float, float, float]:
    """Return BLEU of the second less BLEU of the first, and the ends of its 95% interval.

    Source: Koehn (2004), section 4.
    """
    ### BEGIN SOLUTION

    def grams(tokens: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
        return Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1))

    def counts(said: Sequence[str], right: Sequence[str]) -> list[int]:
        pairs = [(grams(said, n), grams(right, n)) for n in (1, 2, 3, 4)]
        matches = [(one & other).total() for one, other in pairs]
        return [*matches, *(one.total() for one, _ in pairs), len(said), len(right)]

    def bleu(sums: Tensor) -> Tensor:
        """BLEU of each row of sums, (..., 10)."""
        matches, totals, lengths = sums.split([4, 4, 2], dim=-1)
        score = (matches / totals.clamp(min=1)).log().mean(-1).exp()  # 0 where a match is 0
        ratio = lengths[..., 1] / lengths[..., 0].clamp(min=1)
        return 100 * score * (1 - ratio).clamp(max=0).exp()

    one, other = (
        torch.tensor([counts(*pair) for pair in zip(said, references, strict=True)]).double()
        for said in (first, second)
    )
    n = len(references)
    drawn = torch.randint(n, (samples, n), generator=generator)
    differences = bleu(other[drawn].sum(1)) - bleu(one[drawn].sum(1))
    low, high = torch.quantile(differences, torch.tensor([0.025, 0.975]).double()).tolist()
    return (bleu(other.sum(0)) - bleu(one.sum(0))).item(), low, high
    ### END SOLUTION


# %% test="bootstrap-difference" points=1
right = [["the", "cat", "sat", "on", "the", "mat", "."], ["a", "dog", "ran", "home", "."]]
first = [["the", "cat", "sat", "on", "a", "mat", "."], ["a", "dog", "ran", "home", "."]]
before = [list(sentence) for sentence in first]
found = bootstrap(first, right, right, 50, torch.Generator().manual_seed(0))
assert first == before, "bootstrap should leave the sentences that it is handed as they are"
wanted = 100 - 100 * (11 / 12 * 8 / 10 * 5 / 8 * 3 / 6) ** 0.25
assert_close(
    float(found[0]),
    wanted,
    "11 of 12 words, 8 of 10 pairs, 5 of 8 triples and 3 of 6 quadruples match: the first system has "
    f"{100 - wanted:.2f}, the second 100, and the difference should be {wanted:.2f}",
    atol=1e-3,
)
visible_passed()
### BEGIN HIDDEN TESTS
short = [sentence[:5] for sentence in right]
found = bootstrap(right, short, right, 10, torch.Generator().manual_seed(1))
assert_close(
    float(found[0]),
    100 * math.exp(1 - 12 / 10) - 100,
    "two words fewer than the references' twelve should cost the brevity penalty exp(1 - 12 / 10), "
    "in the second system too",
    atol=1e-3,
)
found = bootstrap([list("abcd")], [list("dcba")], [list("abcd")], 5, torch.Generator())
assert_close(
    float(found[0]), -100.0, "without a matching pair of words BLEU should be 0", atol=1e-3
)
found = bootstrap([list("aaaab")], [list("abcde")], [list("abcde")], 5, torch.Generator())
assert_close(
    float(found[0]), 100.0, "repeated words should be clipped, each order for itself", atol=1e-3
)
right = [list("abcdef"), ["g"]]
found = bootstrap([list("abcdex"), ["g"]], right, right, 5, torch.Generator().manual_seed(2))
assert_close(
    float(found[0]),
    100 - 100 * (6 / 7 * 4 / 5 * 3 / 4 * 2 / 3) ** 0.25,
    "a sentence of one word has no pairs, triples and quadruples: it adds 0 to their totals",
    atol=1e-3,
)
### END HIDDEN TESTS

# %% test="bootstrap-interval" points=2
same = [list("abcdefg"), list("hijklm")]
found = bootstrap(
    same, same, [list("abcdefx"), list("hijkxx")], 40, torch.Generator().manual_seed(2)
)
assert [float(value) for value in found] == [0.0, 0.0, 0.0], (
    "a system is as good as itself in every test set: both see the same sentences\n"
    f"Yours is {tuple(found)}."
)
visible_passed()
### BEGIN HIDDEN TESTS
from sacrebleu.metrics.bleu import BLEU

dice = torch.Generator().manual_seed(7)


def sentence(length):
    """Tokens by chance."""
    return [str(token) for token in torch.randint(4, (length,), generator=dice).tolist()]


references = [sentence(8 + i % 5) for i in range(12)]
first = [[*line[: 6 + i % 3], *sentence(i % 4)] for i, line in enumerate(references)]
second = [[*sentence(i % 3), *line[i % 3 :]] for i, line in enumerate(references)]
scorer = BLEU(tokenize="none", smooth_method="none", force=True)


def score(system, chosen):
    """Sacrebleu's BLEU of some sentences."""
    said = [" ".join(system[i]) for i in chosen]
    return scorer.corpus_score(said, [[" ".join(references[i]) for i in chosen]]).score


drawn = torch.randint(12, (60, 12), generator=torch.Generator().manual_seed(4)).tolist()
differences = torch.tensor([score(second, row) - score(first, row) for row in drawn]).double()
low, high = torch.quantile(differences, torch.tensor([0.025, 0.975]).double()).tolist()
found = bootstrap(first, second, references, 60, torch.Generator().manual_seed(4))
assert_close(
    float(found[1]),
    low,
    "low should be the quantile 0.025 of the differences over the test sets that the generator draws, "
    "each of them the score of a corpus, the same sentences for both systems",
    atol=1e-3,
)
assert_close(float(found[2]), high, "high should be their quantile 0.975", atol=1e-3)
### END HIDDEN TESTS

# %% [markdown]
# **Try it: more training, or a beam.** Is the model after 300 steps surely better than that after 200? And if
# your module has a `beam_search`: is a beam of four better than the likeliest token at each step?

# %%
if watched() and len(stages) < 12:
    print("What this looks at comes from the run below 11.1, which has not come to its end.")
elif watched():
    right = [sentence.split() for sentence in french[:100]]
    systems = {}
    for number in (200, 300):
        translator.load_state_dict(stages[chosen_stages[number]])
        said = lab.translate(translator, english[:100])
        systems[f"{number} steps"] = [sentence.split() for sentence in said]
    if lab.beam_search is not None:
        systems["beam of 4"] = [
            sentence.split() for sentence in lab.search(translator, english[:100])
        ]
    names = list(systems)
    for one, other in pairwise(names):
        result = bootstrap(
            systems[one], systems[other], right, 1000, torch.Generator().manual_seed(0)
        )
        print("{} after {}: {:+.1f} BLEU, 95% from {:+.1f} to {:+.1f}".format(other, one, *result))

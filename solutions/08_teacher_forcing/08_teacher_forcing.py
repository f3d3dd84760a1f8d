# %% [markdown]
# # 8 Teacher forcing
#
# In this notebook you build everything around the model that makes it learn: the pair of decoder
# input and labels, the loss with label smoothing, the learning rate with warm-up, Adam with the
# paper's settings, gradient clipping, and the training step. You find what is wrong with a loop whose
# loss falls, and you train a small translator. What you write here carries over: the finished model
# is trained by your `train_step`, on your loss and schedule.
#
# **How to work.** Run the cells from top to bottom. Replace each `# YOUR CODE HERE` and the `raise`
# below it by your answer, then run the test cells that follow; their messages say what is wrong. The
# visible tests are not all tests: hidden ones, with other sizes and numbers, run when the notebook
# is graded. Each question is tested on its own, so you may leave one open and go on. Before you
# hand in, restart the kernel and run all cells.
#
# **Where to read.** The book's page *Teacher forcing* explains all of it on one sentence pair.
#
# **Conventions.** Rows are tokens, the batch comes first. $B$ counts sentences, $N$ the tokens of
# the longest target, $V$ the vocabulary. Ids are whole numbers, padded on the right with `pad_id`,
# which is not always 0. "Real" tokens are those that are not padding. A model is called as
# `model(source, decoder_input)` and returns logits, shape (B, tokens, V), with no softmax. A type
# such as `Float[Tensor, "B N V"]` reads: a tensor of floating-point numbers with shape $(B, N, V)$;
# `Int[Tensor, ""]` and `Float[Tensor, ""]` hold a single number.

# %% setup
import itertools
import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from lab.check import (
    assert_close,
    assert_raises,
    assert_shape,
    draw,
    expect_no_error,
    visible_passed,
)
from lab.predict import compare, predicted, watched


def exact(number: Any) -> Any:
    """A number as a float64 tensor, so that comparisons keep its digits; all else unchanged."""
    if isinstance(number, (int, float)):
        return torch.tensor(number, dtype=torch.float64)
    return number


def gradients_of(module: nn.Module) -> list[Tensor]:
    """The gradients of all parameters; zeros where there is none."""
    return [p.new_zeros(p.shape) if p.grad is None else p.grad for p in module.parameters()]


def toy_loss(
    logits: Float[Tensor, "B N V"], labels: Int[Tensor, "B N"], pad_id: int
) -> Float[Tensor, ""]:
    """PyTorch's cross-entropy, without smoothing: what the tests hand in as a loss function."""
    return F.cross_entropy(logits.transpose(1, 2), labels, ignore_index=pad_id)


class ToyModel(nn.Module):
    """A tiny stand-in for a Transformer, in float64, that remembers how it was called.

    Token t of its output depends on the whole source and on token t of the decoder input.
    `calls` lists (source, decoder input, training mode) of every call, `modes` its dropout's mode.
    Like any model it is called by position.
    """

    def __init__(self, vocab_size: int, d_model: int = 3, seed: int = 0) -> None:
        super().__init__()
        self.source_weight = nn.Parameter(draw((vocab_size, d_model), seed=seed))
        self.target_weight = nn.Parameter(draw((vocab_size, d_model), seed=seed + 1))
        self.out_weight = nn.Parameter(draw((d_model, vocab_size), seed=seed + 2))
        self.dropout = nn.Dropout(0.0)
        self.calls: list[tuple[Tensor, Tensor, bool]] = []
        self.modes: list[bool] = []

    def forward(
        self, source: Int[Tensor, "B M"], decoder_input: Int[Tensor, "B n"], /
    ) -> Float[Tensor, "B n V"]:
        """Return logits."""
        self.calls.append((source.clone(), decoder_input.clone(), self.training))
        self.modes.append(self.dropout.training)
        read = self.source_weight[source].mean(1, keepdim=True)  # (B, 1, d_model)
        hidden = self.dropout(torch.tanh(read + self.target_weight[decoder_input]))
        return hidden @ self.out_weight


# %% [markdown]
# ## 8.1 Decoder input and labels   (2 points, about 10 minutes, difficulty 1 of 5)
#
# **Objective.** Cut a batch of target sentences into what the decoder reads and what it has to say.
#
# Each row of `target` $(B, N)$ is a sentence from `<bos>` to `<eos>`, then padding. Position $t$ of
# the decoder reads a token and should predict the **next** one. Return the pair
# `(decoder_input, labels)`, both $(B, N - 1)$, such that `labels[b, t]` is the token that follows
# `decoder_input[b, t]`. Every sentence's `<eos>` has to appear among the labels, or the model never
# learns to stop; `<bos>` is never a label.
#
# In rows shorter than the longest one, `<eos>` also turns up in the decoder input. That is harmless:
# the label beside it is padding, which no loss counts.
#
# <details><summary>Hint 1: a question</summary>
#
# For the row `<bos> va ! <eos>`: which tokens must the decoder read, and which must it say? How
# many are there of each?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Both are the target without one of its columns. It is not the same column.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - Input and labels are equal: the model could copy; one of the two has to move by one place.
# - Labels start with `<bos>`: which of the two did you cut at the front?
# - The longest sentence has lost its `<eos>`: that column was cut from the wrong tensor.
#
# </details>


# %% solution="teacher-forcing-pair" export
def teacher_forcing_pair(
    target: Int[Tensor, "B N"],
) -> tuple[Int[Tensor, "B N-1"], Int[Tensor, "B N-1"]]:
    """Return what the decoder reads and, beside each token, the one that it should say next.

    Source: Vaswani et al. (2017), section 3.1 ("offset by one position").

    Args:
        target: rows are `<bos>` ... `<eos>`, then padding.
    """
    ### BEGIN SOLUTION
    return target[:, :-1], target[:, 1:]
    ### END SOLUTION


# %% test="teacher-forcing-pair-shift" points=1
target = torch.tensor([[1, 5, 7, 6, 2], [1, 8, 2, 0, 0]])  # <bos> is 1, <eos> 2, padding 0
decoder_input, labels = teacher_forcing_pair(target)
assert_shape(decoder_input, (2, 4), "5 columns of target should give 4 of decoder input")
assert_shape(labels, (2, 4), "5 columns of target should give 4 of labels")
assert labels[:, :-1].tolist() == decoder_input[:, 1:].tolist(), (
    "each label should be the token that the decoder reads one place later"
)
assert target.tolist() == [[1, 5, 7, 6, 2], [1, 8, 2, 0, 0]], "the target should stay unchanged"
visible_passed()
### BEGIN HIDDEN TESTS
target = torch.tensor([[3, 9, 4, 4, 6, 8], [3, 4, 6, 8, 0, 0], [3, 6, 0, 0, 0, 0]])
decoder_input, labels = teacher_forcing_pair(target)
assert_shape(decoder_input, (3, 5), "6 columns of target should give 5 of decoder input")
assert_shape(labels, (3, 5), "6 columns of target should give 5 of labels")
for b in range(3):
    for t in range(4):
        assert labels[b, t] == decoder_input[b, t + 1], (
            "the label at place t should be the decoder input at place t + 1, in every row"
        )
assert not decoder_input.is_floating_point() and not labels.is_floating_point(), (
    "ids should remain whole numbers"
)
### END HIDDEN TESTS

# %% test="teacher-forcing-pair-ends" points=1
target = torch.tensor([[1, 5, 7, 6, 2], [1, 8, 2, 0, 0]])  # <bos> is 1, <eos> 2, padding 0
decoder_input, labels = teacher_forcing_pair(target)
assert decoder_input[:, 0].tolist() == [1, 1], "the first thing that the decoder reads is <bos>"
assert labels[:, 0].tolist() == [5, 8], "the first label is the first word after <bos>"
assert labels[0].tolist()[-1] == 2, "the last label of the longest sentence should be its <eos>"
visible_passed()
### BEGIN HIDDEN TESTS
target = torch.tensor([[3, 9, 4, 4, 6, 8], [3, 4, 6, 8, 0, 0], [3, 8, 0, 0, 0, 0]])  # <eos> is 8
decoder_input, labels = teacher_forcing_pair(target)
assert decoder_input[:, 0].tolist() == [3, 3, 3], "every row of decoder input should start at <bos>"
assert (labels == 8).sum(1).tolist() == [1, 1, 1], (
    "every sentence should have its <eos> among the labels, once, an empty sentence too"
)
assert not (labels == 3).any(), "<bos> is never a label"
assert labels[1].tolist() == [4, 6, 8, 0, 0], (
    "the labels of <bos> 4 6 <eos> and two of padding should be 4 6 <eos> and two of padding"
)
### END HIDDEN TESTS

# %% [markdown]
# ## 8.2 The loss   (5 points, about 30 minutes, difficulty 3 of 5)
#
# **Objective.** Say in one number how far the model is from the labels, over real tokens only.
#
# `logits` has shape $(B, N, V)$, `labels` $(B, N)$. With $p = \text{softmax}(\text{logits})$, a label
# $y$ and smoothing $\varepsilon$, the target at one position is not all on $y$ but a distribution
# over the whole vocabulary:
#
# $$q_v = (1 - \varepsilon)\,[v = y] + \frac{\varepsilon}{V}
# \qquad\qquad \text{loss of the position} = -\sum_{v} q_v \log p_v$$
#
# Here $[v = y]$ is 1 for the label and 0 elsewhere. So $\varepsilon$ is spread evenly over all $V$
# classes, the label and the padding class included: the definition that the paper cites, and
# PyTorch's. Return the **mean over the real tokens** of the whole batch (those whose label is not
# `pad_id`), one number. Every real token counts the same, whatever its sentence's length. A batch
# without any real token has loss 0.
#
# You may use `F.log_softmax`; write the rest yourself. The tests compare with `F.cross_entropy`,
# which has all of this built in (but gives NaN on a batch without real tokens). It is not allowed
# here, nor are `F.nll_loss`, which has half of it, `nn.CrossEntropyLoss` and `nn.NLLLoss`.
#
# <details><summary>Hint 1: a question</summary>
#
# Split the sum over $v$ in two: the part with $1 - \varepsilon$ and the part with $\varepsilon / V$.
# What is each of them, in words?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Log-probabilities over the last axis. One number per position for the label (`gather` picks it out),
# another one for the average over the vocabulary. Mix the two with the weights of the formula. Then
# pick the positions that are real, add up, and divide by how many there are, or by 1 if there are
# none.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - Right without padding, too small with it: by what number do you divide?
# - Right when the padding id is 0, wrong otherwise: a number is written out.
# - *Index tensor must have the same number of dimensions*: the labels lack their axis of length 1.
# - *view size is not compatible*: the rows of labels that were cut off a target do not lie side by side in
#   memory; `reshape` and `flatten` copy where they must.
# - Right for equally long sentences only: do you take a mean of means?
# - The loss with smoothing is off by a constant: an entropy was subtracted, as a KL divergence does.
#
# </details>


# %% solution="label-smoothed-loss" export
def label_smoothed_loss(
    logits: Float[Tensor, "B N V"],
    labels: Int[Tensor, "B N"],
    pad_id: int,
    smoothing: float = 0.1,
) -> Float[Tensor, ""]:
    """Mean cross-entropy over the real tokens, against labels smoothed over all V classes.

    A batch without real tokens has loss 0.
    Source: Vaswani et al. (2017), section 5.4, after Szegedy et al. (2016), section 7.
    """
    ### BEGIN SOLUTION
    log_p = F.log_softmax(logits, dim=-1)  # (B, N, V)
    of_label = log_p.gather(-1, labels.unsqueeze(-1)).squeeze(-1)  # (B, N)
    losses = -(1 - smoothing) * of_label - smoothing * log_p.mean(-1)  # (B, N)
    real = labels != pad_id
    return losses.masked_fill(~real, 0.0).sum() / real.sum().clamp(min=1)
    ### END SOLUTION


# %% test="label-smoothed-loss-values" points=1
even = torch.zeros(1, 2, 4, dtype=torch.float64)  # every class has probability 1/4
loss = label_smoothed_loss(even, torch.tensor([[3, 1]]), pad_id=0, smoothing=0.0)
assert_close(loss, exact(math.log(4)), "with even logits over 4 classes the loss should be log 4")
logits = torch.tensor([[[2.0, 0.0, -1.0], [0.5, 1.0, 3.0]]], dtype=torch.float64)
labels = torch.tensor([[0, 1]])
loss = label_smoothed_loss(logits, labels, pad_id=9, smoothing=0.0)
assert_shape(loss, (), "the loss should be a single number, a tensor without axes")
wanted = torch.tensor(1.1832901, dtype=torch.float64)
assert_close(loss, wanted, "two positions, three classes, no smoothing: wrong loss", atol=1e-6)
visible_passed()
### BEGIN HIDDEN TESTS
logits = draw((4, 6, 7), seed=1)
labels = draw((4, 6, 7), seed=11).argmax(-1)
before = logits.clone(), labels.clone()
loss = label_smoothed_loss(logits, labels, pad_id=10, smoothing=0.0)
assert_close(
    loss,
    F.cross_entropy(logits.flatten(0, 1), labels.flatten()),
    "without smoothing and padding the loss should be the mean cross-entropy of the logits",
)
assert torch.equal(logits, before[0]) and torch.equal(labels, before[1]), (
    "label_smoothed_loss should leave logits and labels unchanged"
)
logits = 1000 * draw((2, 5, 3), seed=4, dtype=torch.float32).transpose(1, 2)  # not contiguous
labels = torch.tensor([[1, 4, 0], [2, 2, 3]])
assert_close(
    label_smoothed_loss(logits, labels, pad_id=7, smoothing=0.0),
    F.cross_entropy(logits.flatten(0, 1), labels.flatten()),
    "the loss should stay finite and right for large float32 logits",
    atol=1e-3,  # the loss itself is above 1000: float32 has 7 digits
)
### END HIDDEN TESTS

# %% test="label-smoothed-loss-padding" points=2
logits = draw((2, 4, 6), seed=1)
labels = torch.tensor([[1, 3, 5, 1, 2], [1, 4, 2, 0, 0]])[:, 1:]  # cut as in 8.1; padding is 0
loss = label_smoothed_loss(logits, labels, pad_id=0, smoothing=0.0)
other = logits.clone()
other[1, 2:] += draw((2, 6), seed=2)
assert_close(
    label_smoothed_loss(other, labels, pad_id=0, smoothing=0.0),
    loss,
    "what the model says where the label is padding should not change the loss",
)
together = torch.cat([logits[0], logits[1, :2]]), torch.cat([labels[0], labels[1, :2]])
wanted = F.cross_entropy(*together)
assert_close(loss, wanted, "the loss should be the mean over the 6 real tokens")
visible_passed()
### BEGIN HIDDEN TESTS
logits = draw((3, 5, 7), seed=3)
labels = torch.tensor([[0, 3, 4, 6, 2], [5, 2, 1, 1, 1], [4, 0, 2, 1, 1]])  # padding is 1
real = labels != 1
wanted = F.cross_entropy(logits[real], labels[real])
loss = label_smoothed_loss(logits, labels, pad_id=1, smoothing=0.0)
assert_close(
    loss, wanted, "with padding id 1, exactly the labels equal to 1 should be left out of the mean"
)
longer = torch.cat([logits, draw((3, 2, 7), seed=4)], dim=1)
padded = torch.cat([labels, torch.full((3, 2), 1)], dim=1)
assert_close(
    label_smoothed_loss(longer, padded, pad_id=1, smoothing=0.0),
    loss,
    "two more columns of padding should not change the loss",
)
logits.requires_grad_()
(gradient,) = torch.autograd.grad(
    label_smoothed_loss(logits, labels, pad_id=1, smoothing=0.0), logits
)
assert_close(gradient[~real], 0, "no gradient should reach the logits at padded positions")
nothing = torch.full((3, 5), 1)
loss = label_smoothed_loss(logits, nothing, pad_id=1, smoothing=0.0)
assert_shape(loss, (), "the loss of a batch without real tokens should be a tensor, too")
assert_close(loss, 0.0, "a batch without real tokens should have loss 0")
### END HIDDEN TESTS

# %% test="label-smoothed-loss-smoothing" points=2
logits = torch.tensor([[[2.0, 0.0, -1.0]]], dtype=torch.float64)  # one position, three classes
loss = label_smoothed_loss(logits, torch.tensor([[0]]), pad_id=9, smoothing=0.3)
target = torch.tensor([[[0.8, 0.1, 0.1]]], dtype=torch.float64)  # 0.7 + 0.3 / 3, and 0.3 / 3 each
wanted = -(target * torch.log_softmax(logits, -1)).sum()
assert_close(loss, wanted, "smoothing 0.3 over 3 classes should aim at 0.8, 0.1 and 0.1")
visible_passed()
### BEGIN HIDDEN TESTS
logits = draw((3, 4, 7), seed=5).requires_grad_()
labels = torch.tensor([[3, 0, 6, 2], [4, 2, 5, 5], [6, 3, 2, 5]])  # padding is 5
loss = label_smoothed_loss(logits, labels, pad_id=5, smoothing=0.6)
wanted = F.cross_entropy(
    logits.flatten(0, 1), labels.flatten(), ignore_index=5, label_smoothing=0.6
)
assert_close(
    loss,
    wanted,
    "with smoothing 0.6 the loss should be cross-entropy against (1 - smoothing) on the label plus "
    "smoothing / V on every class",
)
(gradient,) = torch.autograd.grad(loss, logits)
(expected,) = torch.autograd.grad(wanted, logits)
assert_close(gradient, expected, "the gradient of the smoothed loss should be cross-entropy's")
default = label_smoothed_loss(logits[:, :1], labels[:, :1], 5)
wanted = F.cross_entropy(logits[:, 0], labels[:, 0], label_smoothing=0.1)
assert_close(
    default,
    wanted,
    "the smoothing should be 0.1 unless told otherwise, where the labels have one column, too",
)
### END HIDDEN TESTS

# %% [markdown]
# ## 8.3 Adam and its learning rate   (4 points, about 25 minutes, difficulty 2 of 5)
#
# **Objective.** Set up the optimiser of the paper, and change its learning rate from step to step.
#
# The first cell is the paper's equation 3. The rate grows with the step during the warm-up, then
# falls with the root of the step:
#
# $$\text{rate}(s) = d_{model}^{-1/2} \cdot \min\!\left(s^{-1/2},\; s \cdot \text{warmup}^{-3/2}\right)$$
#
# Steps count from 1. For a smaller step raise `ValueError("step (0) must be at least 1")`, with the
# step that was given.
#
# The second cell makes the optimiser: `torch.optim.Adam` with $\beta_1 = 0.9$, $\beta_2 = 0.98$,
# $\epsilon = 10^{-9}$ and no weight decay, and a scheduler. `rate` is any function from a step to
# a learning rate, which may be 0. Update number $s$, counted from 1, must use exactly `rate(s)`,
# when training calls `optimizer.step()` and then `scheduler.step()`, over and over.
# `torch.optim.lr_scheduler.LambdaLR` does the work: it **multiplies** the optimiser's own `lr` by
# what your function returns, and it calls that function with the number of times that the scheduler
# has stepped so far: 0 before the first update. `trainer.optimisers`, which has the rate, and
# `lab.translator`, which has a ready optimiser, are not allowed here.
#
# <details><summary>Hint 1: a question</summary>
#
# At which step are the two arguments of the minimum equal? Which of them is smaller before it?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# The rate is the formula, one line, behind a check. For the scheduler: which `lr` leaves the factor
# as it is when multiplied? And which step is it, when none has been done yet?
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - A rate that never falls: a maximum in place of the minimum, or two exponents swapped.
# - Rates above 1: the sign of the exponent of `d_model`.
# - *step (0) must be at least 1* while the scheduler is made: LambdaLR counts from 0.
# - Every rate is one step behind: as above.
# - Every rate is a thousand times too small: the optimiser's own `lr`.
#
# </details>


# %% solution="learning-rate" export
def learning_rate(step: int, d_model: int, warmup: int = 4000) -> float:
    """The learning rate of this step: linear warm-up, then inverse square root.

    Source: Vaswani et al. (2017), section 5.3, equation 3.

    Raises:
        ValueError: if the step is below 1.
    """
    ### BEGIN SOLUTION
    if step < 1:
        raise ValueError(f"step ({step}) must be at least 1")
    return d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)
    ### END SOLUTION


# %% test="learning-rate-values" points=1
def assert_rate(rate: Any, wanted: float, claim: str) -> None:
    """Fail unless a rate is right to six digits, however small it is."""
    assert_close(exact(rate) / wanted, 1.0, f"{claim}\nYours is {float(rate):.6g}", atol=1e-5)


for step, wanted in {1: 1.746928e-07, 4000: 6.987712e-04, 100_000: 1.397542e-04}.items():
    assert_rate(
        learning_rate(step, d_model=512),
        wanted,
        f"with d_model 512 and warm-up 4000, step {step} should have the rate {wanted:.6e}",
    )
visible_passed()
### BEGIN HIDDEN TESTS
for d_model, warmup, steps in ((32, 100, (1, 50, 99, 100, 101, 300)), (100, 7, (6, 7, 8))):
    rates = [learning_rate(step, d_model, warmup) for step in steps]
    highest = steps[rates.index(max(rates))]
    assert highest == warmup, "the rate should be highest when warm-up ends"
    for step, rate in zip(steps, rates, strict=True):
        if step < warmup:
            wanted = step / warmup**1.5 / math.sqrt(d_model)
            claim = "during warm-up the rate should be d_model^(-1/2) times step * warmup^(-3/2)"
            assert_rate(rate, wanted, claim)
        else:
            wanted = 1 / math.sqrt(step) / math.sqrt(d_model)
            claim = "from the end of warm-up on the rate should be d_model^(-1/2) * step^(-1/2)"
            assert_rate(rate, wanted, claim)
### END HIDDEN TESTS

# %% test="learning-rate-first-step" points=1
assert learning_rate(1, d_model=16, warmup=5) > 0, "the first step's rate should be above 0"
assert_raises(
    ValueError,
    lambda: learning_rate(0, 16),
    "step 0 should raise a ValueError that names it",
    ["0"],
)
visible_passed()
### BEGIN HIDDEN TESTS
assert_raises(
    ValueError,
    lambda: learning_rate(-3, 16, warmup=5),
    "a negative step should raise a ValueError that names step and number",
    ["step", "-3"],
)
assert_close(
    exact(learning_rate(1, d_model=25, warmup=1)),
    exact(0.2),
    "with warm-up 1 the first step has the peak rate",
    atol=1e-6,
)
### END HIDDEN TESTS


# %% solution="scheduled-adam" export
def scheduled_adam(
    parameters: Iterable[nn.Parameter], rate: Callable[[int], float]
) -> tuple[torch.optim.Adam, torch.optim.lr_scheduler.LambdaLR]:
    """Adam with the paper's settings, and a scheduler that gives update s the rate rate(s), s >= 1.

    Source: Vaswani et al. (2017), section 5.3.
    """
    ### BEGIN SOLUTION
    optimizer = torch.optim.Adam(parameters, lr=1.0, betas=(0.9, 0.98), eps=1e-9)
    # LambdaLR counts the updates that are done; the one that comes next is one further
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda done: rate(done + 1))
    return optimizer, scheduler
    ### END SOLUTION


# %% test="scheduled-adam-settings" points=1
optimizer, _ = scheduled_adam(ToyModel(5).parameters(), lambda step: 0.5 / step)
settings = optimizer.param_groups[0]
assert len(settings["params"]) == 3, "the optimiser should hold all three parameters of the model"
assert tuple(settings["betas"]) == (0.9, 0.98), "beta 1 should be 0.9 and beta 2 should be 0.98"
visible_passed()
### BEGIN HIDDEN TESTS
assert settings["eps"] == 1e-9, "epsilon should be 1e-9"
assert settings["weight_decay"] == 0, "there should be no weight decay"
assert not settings.get("amsgrad", False), "plain Adam is asked for, not AMSGrad"
weight = settings["params"][0]
twin = nn.Parameter(weight.detach().clone())
adam = torch.optim.Adam([twin], lr=settings["lr"], betas=(0.9, 0.98), eps=1e-9)
for seed in range(2):
    weight.grad, twin.grad = (draw(tuple(twin.shape), seed=seed) for _ in range(2))
    optimizer.step()
    adam.step()
assert_close(
    weight.detach(), twin.detach(), "plain Adam is asked for: two updates should move as its do"
)
### END HIDDEN TESTS

# %% test="scheduled-adam-steps" points=1
weight = nn.Parameter(torch.ones(3, dtype=torch.float64))
optimizer, scheduler = scheduled_adam([weight], lambda step: 0.5 / step)
used = [optimizer.param_groups[0]["lr"]]
for _ in range(2):
    weight.grad = torch.ones(3, dtype=torch.float64)
    optimizer.step()
    scheduler.step()
    used.append(optimizer.param_groups[0]["lr"])
wanted = torch.tensor([0.5, 0.25, 0.5 / 3], dtype=torch.float64)
used = torch.tensor(used, dtype=torch.float64)
assert_close(used, wanted, "updates 1, 2 and 3 should use rate(1), rate(2) and rate(3)")
visible_passed()
### BEGIN HIDDEN TESTS
asked = []


def rate_that_listens(step):
    asked.append(step)
    return 0.01 * (step**2 - 1)


weight = nn.Parameter(draw((4,), seed=6))
with expect_no_error("rate may be any function, also one that is 0 at step 1"):
    optimizer, scheduler = scheduled_adam([weight], rate_that_listens)
for step in range(1, 3):
    before = weight.detach().clone()
    weight.grad = torch.full((4,), 2.0, dtype=torch.float64)
    optimizer.step()
    scheduler.step()
    moved = before - weight.detach()  # with equal gradients, Adam's step is the rate itself
    assert_close(
        moved,
        exact(0.01 * (step**2 - 1)).expand(4),
        f"update {step} should move by the rate of step {step}",
        atol=1e-6,
    )
assert min(asked) >= 1, "rate should never be asked for a step below 1"
### END HIDDEN TESTS

# %% [markdown]
# ## 8.4 Clip the gradients   (3 points, about 15 minutes, difficulty 2 of 5)
#
# **Objective.** Keep one bad batch from throwing the parameters far away.
#
# Read all gradients as one long vector and take its length, the **total norm**: the root of the sum
# of all squares, over all parameters together. If it exceeds `max_norm`, multiply every gradient, in
# place, by the same factor, such that the total norm becomes `max_norm`. Otherwise leave them as they
# are. Return the total norm **before** clipping, as a float.
#
# `max_norm` may be 0, `parameters` any iterable, and a parameter's `.grad` may be None if the loss
# did not reach it; one gradient at least is there. (`nn.utils.clip_grad_norm_` does this, and
# `clip_grads_with_norm_` half of it: neither is allowed here. Torch divides by the norm plus
# $10^{-6}$, so the tests allow that much.)
#
# <details><summary>Hint 1: a question</summary>
#
# `model.parameters()` can be walked through only once. How often do you need the gradients?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# First a list of the gradients that exist. Then one number, from the squares of all of them. Then, if
# that is too much, one factor for all.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - The norm is right and the gradients are unchanged, with `model.parameters()` only: see hint 1.
# - Small gradients grow: the factor must not exceed 1.
# - The total norm ends up above `max_norm` with several parameters: each was clipped by itself.
# - NaN: a norm of 0 has nothing to divide.
#
# </details>


# %% solution="clip-gradients" export
def clip_gradients(parameters: Iterable[nn.Parameter], max_norm: float) -> float:
    """Scale all gradients, in place, to a total norm of at most max_norm; return the norm before.

    Source: Pascanu et al. (2013), algorithm 1.
    """
    ### BEGIN SOLUTION
    # departs: the paper reports no clipping; it is usual today. paper: test_training_unclipped
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    total = math.sqrt(sum(gradient.square().sum().item() for gradient in gradients))
    if total > max_norm:
        for gradient in gradients:
            gradient.mul_(max_norm / total)
    return total
    ### END SOLUTION


# %% test="clip-gradients-norm" points=1
first, second = (nn.Parameter(torch.zeros(n, dtype=torch.float64)) for n in (2, 3))
first.grad = torch.tensor([3.0, 0.0], dtype=torch.float64)
second.grad = torch.tensor([0.0, 4.0, 0.0], dtype=torch.float64)
norm = clip_gradients([first, second], max_norm=10.0)
assert isinstance(norm, float), "clip_gradients should return the norm as a Python float"
assert_close(exact(norm), exact(5.0), "gradients (3, 0) and (0, 4, 0) have total norm 5", atol=1e-5)
first.grad = torch.tensor([3.0, 0.0], dtype=torch.float64)
second.grad = torch.tensor([0.0, 4.0, 0.0], dtype=torch.float64)
norm = clip_gradients([first, second], max_norm=2.0)
assert_close(
    exact(norm), exact(5.0), "the norm that is returned is the one before clipping", atol=1e-5
)
visible_passed()
### BEGIN HIDDEN TESTS
shapes = ((2, 3), (4,), (3, 5, 2))
parameters = [nn.Parameter(torch.zeros(shape, dtype=torch.float64)) for shape in shapes]
for parameter, gradient in zip(parameters, draw(*shapes, seed=7), strict=True):
    parameter.grad = gradient
wanted = torch.cat([p.grad.flatten() for p in parameters if p.grad is not None]).norm().item()
assert_close(
    exact(clip_gradients(iter(parameters), max_norm=0.5)),
    exact(wanted),
    "the total norm should be that of all gradients as one long vector",
    atol=1e-5,
)
### END HIDDEN TESTS

# %% test="clip-gradients-large" points=1
first, second = (nn.Parameter(torch.zeros(n, dtype=torch.float64)) for n in (2, 3))
first.grad = torch.tensor([3.0, 0.0], dtype=torch.float64)
second.grad = torch.tensor([0.0, 4.0, 0.0], dtype=torch.float64)
gradient = first.grad
clip_gradients([first, second], max_norm=1.0)
wanted = torch.tensor([0.6, 0.0], dtype=torch.float64)
assert_close(first.grad, wanted, "a total norm of 5 clipped to 1: 3 becomes 0.6", atol=1e-5)
wanted = torch.tensor([0.0, 0.8, 0.0], dtype=torch.float64)
assert_close(second.grad, wanted, "a total norm of 5 clipped to 1: 4 becomes 0.8", atol=1e-5)
assert gradient is first.grad, "the gradients should be scaled in place, not replaced by new ones"
visible_passed()
### BEGIN HIDDEN TESTS
model = ToyModel(6)
F.cross_entropy(
    model(torch.tensor([[1, 2]]), torch.tensor([[3, 4, 5]]))[0], torch.tensor([4, 5, 0])
).backward()
model.register_parameter("unused", nn.Parameter(torch.ones(2, dtype=torch.float64)))
before = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
total = math.sqrt(sum(gradient.square().sum().item() for gradient in before.values()))
clip_gradients(model.parameters(), max_norm=total / 8)
for name, parameter in model.named_parameters():
    if name in before:
        assert_close(
            parameter.grad,
            before[name] / 8,
            "a total norm of 8 times max_norm: every gradient should become an eighth, "
            "also with model.parameters() and with a parameter that has no gradient",
            atol=1e-5,
        )
clip_gradients(model.parameters(), max_norm=0.0)
for gradient in gradients_of(model):
    assert_close(gradient, 0.0, "a max_norm of 0 is a limit, too: every gradient should become 0")
### END HIDDEN TESTS

# %% test="clip-gradients-small" points=1
weight = nn.Parameter(torch.zeros(2, dtype=torch.float64))
weight.grad = torch.tensor([0.3, -0.4], dtype=torch.float64)
clip_gradients([weight], max_norm=1.0)
wanted = torch.tensor([0.3, -0.4], dtype=torch.float64)
assert_close(weight.grad, wanted, "a norm of 0.5 below max_norm 1 should leave the gradient alone")
visible_passed()
### BEGIN HIDDEN TESTS
weight.grad = torch.zeros(2, dtype=torch.float64)
norm = clip_gradients([weight], max_norm=1.0)
assert_close(exact(norm), exact(0.0), "gradients that are all zero have total norm 0")
assert_close(weight.grad, 0, "gradients that are all zero should stay zero, without NaN")
weights = [nn.Parameter(torch.zeros(3, dtype=torch.float64)) for _ in range(4)]
for seed, weight in enumerate(weights):
    weight.grad = 0.6 * draw((3,), seed=seed)  # together about 2
norm = clip_gradients(iter(weights), max_norm=3.0)
assert norm > 0.1, "gradients that are left alone have a norm as well, which is returned"
for seed, weight in enumerate(weights):
    wanted = 0.6 * draw((3,), seed=seed)
    assert_close(
        weight.grad, wanted, "gradients below max_norm should be left alone, also above a norm of 1"
    )
### END HIDDEN TESTS

# %% [markdown]
# ## 8.5 A training step   (4 points, about 20 minutes, difficulty 3 of 5)
#
# **Objective.** Put it together: one batch, one pass, one update.
#
# `source` is $(B, M)$ and `target` $(B, N)$, rows from `<bos>` to `<eos>`, then padding. In this
# order:
#
# 1. Put the model in training mode: whoever called you may have just evaluated it. Forget the
#    gradients of the last step.
# 2. **One** call `model(source, decoder_input)`, by position (models name the second one differently),
#    with the true target's tokens as decoder input, the last column left out.
# 3. `loss_function(logits, labels, pad_id)` with these three arguments gives the loss.
# 4. Backward; clip all gradients to a total norm of `max_norm`; one step of the optimiser.
#
# Return the loss as a Python float, not as a tensor that still holds the whole graph. The
# scheduler is not your business here.
#
# In the finished model, `loss_function` is your `label_smoothed_loss`; here the tests hand in their
# own. Clip by your `clip_gradients`, or, if you have left 8.4 open, by `nn.utils.clip_grad_norm_`.
# `lab.five_minutes`, which has a ready step, is not allowed here.
#
# <details><summary>Hint 1: a question</summary>
#
# When do gradients exist? Which of the steps above must come before that, which after?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Seven short lines. PyTorch *adds* new gradients to old ones; a tensor turns into a float with
# `.item()`.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - The first update is right and the second is not: what became of the first one's gradients?
# - The model was called with its own predictions, or many times: a training step reads the truth,
#   all of it at once.
# - Clipping has no effect: it must stand between backward and step.
# - *Converting a tensor with requires_grad=True to a scalar*: that is a warning about `float(loss)`, and
#   a warning fails the test when the notebook is graded; `.item()` does not warn.
# - The parameters do not move: is there a step? Does it come before backward?
#
# </details>


# %% solution="train-step" export
def train_step(
    model: nn.Module,
    source: Int[Tensor, "B M"],
    target: Int[Tensor, "B N"],
    optimizer: torch.optim.Optimizer,
    pad_id: int,
    loss_function: Callable[[Tensor, Tensor, int], Tensor],
    max_norm: float = 1.0,
) -> float:
    """Update the model once, on one batch, with teacher forcing; return the loss.

    Source: Vaswani et al. (2017), section 5.

    Args:
        model: called once, by position, as model(source, decoder_input); returns logits.
        source: what is translated.
        target: rows are `<bos>` ... `<eos>`, then padding.
        optimizer: holds the model's parameters.
        pad_id: handed on to the loss.
        loss_function: called as loss_function(logits, labels, pad_id).
        max_norm: the gradients' largest total norm.
    """
    ### BEGIN SOLUTION
    model.train()
    optimizer.zero_grad()
    logits = model(source, target[:, :-1])  # (B, N - 1, V)
    loss = loss_function(logits, target[:, 1:], pad_id)
    loss.backward()
    # departs: the paper reports no clipping; it is usual today. paper: test_training_unclipped
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return loss.item()
    ### END SOLUTION


# %% test="train-step-input" points=1
model = ToyModel(9)
source = torch.tensor([[4, 8, 5], [7, 6, 0]])
target = torch.tensor([[1, 5, 7, 6, 2], [1, 8, 2, 0, 0]])  # <bos> is 1, <eos> 2, padding 0
heard = []


def loss_that_listens(logits, labels, pad_id):
    heard.append((labels.clone(), pad_id))
    return toy_loss(logits, labels, pad_id)


optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
train_step(model, source, target, optimizer, pad_id=0, loss_function=loss_that_listens)
assert len(model.calls) == 1, "a training step should call the model exactly once"
assert model.calls[0][0].tolist() == source.tolist(), "the model should get the whole source"
assert model.calls[0][1].tolist() == [[1, 5, 7, 6], [1, 8, 2, 0]], (
    "the decoder should read the true target without its last column"
)
assert len(heard) == 1, "the loss function should be called once"
assert heard[0][0].tolist() == [[5, 7, 6, 2], [8, 2, 0, 0]], (
    "the labels should be the true target without its first column"
)
assert heard[0][1] == 0, "the loss function should get the padding id"
visible_passed()
### BEGIN HIDDEN TESTS
model = ToyModel(9, seed=3)
source, target = (
    torch.tensor([[4, 4, 3, 3], [8, 7, 6, 4]]),
    torch.tensor([[0, 7, 7, 1], [0, 6, 1, 3]]),
)
before = source.clone(), target.clone()
heard.clear()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
train_step(model, source, target, optimizer, pad_id=3, loss_function=loss_that_listens)
assert torch.equal(source, before[0]) and torch.equal(target, before[1]), (
    "train_step should leave source and target unchanged"
)
seen, decoder_input, _ = model.calls[0]
assert torch.equal(seen, source), "the model should get the whole source"
assert decoder_input.tolist() == [[0, 7, 7], [0, 6, 1]], (
    "the decoder should read the true target, whatever the model predicts"
)
assert [(labels.tolist(), pad) for labels, pad in heard] == [([[7, 7, 1], [6, 1, 3]], 3)], (
    "the loss function should get the shifted labels and padding id 3"
)
### END HIDDEN TESTS

# %% test="train-step-update" points=1
model, twin = ToyModel(9), ToyModel(9)  # the same numbers
source = torch.tensor([[4, 8, 5], [7, 6, 0]])
target = torch.tensor([[1, 5, 7, 6, 2], [1, 8, 2, 0, 0]])

optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
train_step(model, source, target, optimizer, 0, toy_loss, max_norm=1e6)
loss = toy_loss(twin(source, target[:, :-1]), target[:, 1:], 0)
gradients = torch.autograd.grad(loss, list(twin.parameters()))
for yours, old, gradient in zip(model.parameters(), twin.parameters(), gradients, strict=True):
    wanted = (old - 0.5 * gradient).detach()
    assert_close(yours, wanted, "after one step of plain descent: parameter - rate * gradient")
visible_passed()
### BEGIN HIDDEN TESTS
model, twin = ToyModel(9, seed=5), ToyModel(9, seed=5)
for parameter in model.parameters():
    parameter.grad = torch.ones_like(parameter)  # left over from whatever came before
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
train_step(model, source, target, optimizer, 0, lambda *given: 50 * toy_loss(*given), max_norm=1e6)
loss = 50 * toy_loss(twin(source, target[:, :-1]), target[:, 1:], 0)
gradients = torch.autograd.grad(loss, list(twin.parameters()))
for yours, old, gradient in zip(model.parameters(), twin.parameters(), gradients, strict=True):
    assert_close(
        yours,
        (old - 0.5 * gradient).detach(),
        "an update should use the gradients of its own batch only, none left over, and all of their "
        "length up to max_norm",
    )
### END HIDDEN TESTS

# %% test="train-step-clip" points=1
model = ToyModel(9)
source = torch.tensor([[4, 8, 5], [7, 6, 0]])
target = torch.tensor([[1, 5, 7, 6, 2], [1, 8, 2, 0, 0]])


def steep_loss(logits, labels, pad_id):
    return 50 * toy_loss(logits, labels, pad_id)


optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
before = [parameter.detach().clone() for parameter in model.parameters()]
train_step(model, source, target, optimizer, 0, steep_loss, max_norm=0.25)
moved = [old - new for old, new in zip(before, model.parameters(), strict=True)]
total = torch.cat([part.flatten() for part in moved]).norm()
assert_close(total, 0.25, "rate 1 and max_norm 0.25: all parameters together move 0.25", atol=1e-5)
visible_passed()
### BEGIN HIDDEN TESTS
model, twin = ToyModel(9, seed=7), ToyModel(9, seed=7)
groups = [{"params": [parameter]} for parameter in model.parameters()]
optimizer = torch.optim.SGD(groups, lr=1.0)
before = [parameter.detach().clone() for parameter in model.parameters()]
train_step(model, source, target, optimizer, 0, steep_loss)
loss = steep_loss(twin(source, target[:, :-1]), target[:, 1:], 0)
gradients = torch.autograd.grad(loss, list(twin.parameters()))
total = torch.cat([gradient.flatten() for gradient in gradients]).norm()
for old, new, gradient in zip(before, model.parameters(), gradients, strict=True):
    assert_close(
        (old - new).detach(),
        gradient / total,
        "the update should go along the gradient, scaled to total norm 1 unless told otherwise",
        atol=1e-5,
    )
### END HIDDEN TESTS

# %% test="train-step-returns" points=1
model = ToyModel(9).eval()  # whoever calls may have just evaluated the model
source = torch.tensor([[4, 8, 5], [7, 6, 0]])
target = torch.tensor([[1, 5, 7, 6, 2], [1, 8, 2, 0, 0]])

wanted = exact(toy_loss(ToyModel(9)(source, target[:, :-1]), target[:, 1:], 0).item())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss = train_step(model, source, target, optimizer, 0, toy_loss)
assert isinstance(loss, float), "train_step should return the loss as a Python float"
assert_close(
    exact(loss), wanted, "train_step should return the loss of the batch, before the update"
)
visible_passed()
### BEGIN HIDDEN TESTS
assert model.calls[-1][2], "the model should be in training mode when it is called"
assert model.modes[-1], "the model's parts, such as its dropout, should be in training mode, too"
### END HIDDEN TESTS

# %% [markdown]
# ## 8.6 A loop that trains, and is wrong   (3 points, about 25 minutes, difficulty 3 of 5)
#
# **Objective.** Find mistakes that a falling loss does not show, from what else can be seen.
#
# A friend has written the loop below. The loss falls: on a small translator it went from 5.9 to 2.7 in
# 300 steps. A right loop gets to 1.7 in as many. Besides, the friend has noticed four things:
#
# - `"saving"`: `json.dumps(losses)` refuses: what the list holds cannot be written to a file;
# - `"clipping"`: with `max_norm=1e-9` the first update is as large as with `max_norm=1`;
# - `"dropout"`: with a dropout of 0.9 the losses are those of a dropout of 0;
# - `"direction"`: exchange the first batch for another one, and the third update moves elsewhere,
#   by plain gradient descent, too, from the same parameters and on the same third batch.
#
# First say which line causes each of them. If two lines stand in the wrong order, name either.
# Then write the loop as it should be: `train_epoch` makes one update for each batch, in order, each with
# the gradient of its own batch only, clipped to a total norm of `max_norm`. The model is in training
# mode whenever it is called, once for each batch. The scheduler steps once after each update. Returned
# are the losses, one Python float for each batch.

#
# <details><summary>Hint 1: a question</summary>
#
# Follow one gradient: when is it made, changed, used, forgotten? Then follow one loss: what hangs on it?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# For each symptom say first what a right loop does in its place (such as: dropout is on while the model
# learns), then look for the line that should do it. It may be there and do it at the wrong time.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - `train_epoch` moves too far from the second batch on: whose gradients does the update use?
# - Rates are one update late or early: the scheduler's step comes after the optimiser's.
# - The losses are tensors: those keep what they were computed from.
#
# </details>


# %%
def friends_epoch(model, batches, optimizer, scheduler, pad_id, loss_function, max_norm=1.0):
    losses = []
    optimizer.zero_grad()  # line 1
    for source, target in batches:  # line 2
        model.eval()  # line 3
        logits = model(source, target[:, :-1])  # line 4
        loss = loss_function(logits, target[:, 1:], pad_id)  # line 5
        loss.backward()  # line 6
        optimizer.step()  # line 7
        nn.utils.clip_grad_norm_(model.parameters(), max_norm)  # line 8
        scheduler.step()  # line 9
        losses.append(loss)  # line 10
    return losses


# %% solution="loop-causes"
def loop_causes() -> dict[str, int]:
    """By symptom ("saving", "clipping", "dropout", "direction"), the line that causes it."""
    ### BEGIN SOLUTION
    return {"saving": 10, "clipping": 8, "dropout": 3, "direction": 1}
    ### END SOLUTION


# %% test="loop-causes-lines" points=1
causes = loop_causes()
assert isinstance(causes, dict), "loop_causes should return a dict, from symptoms to lines"
assert sorted(causes) == ["clipping", "direction", "dropout", "saving"], (
    "the four symptoms are 'saving', 'clipping', 'dropout' and 'direction'"
)
assert all(type(line) is int and 1 <= line <= 10 for line in causes.values()), (
    f"lines have the numbers 1 to 10, whole numbers (int)\nYours are {list(causes.values())}."
)
visible_passed()
### BEGIN HIDDEN TESTS
assert causes["saving"] == 10, "the line behind 'saving' is another one"
assert causes["clipping"] in (7, 8), "the line behind 'clipping' is another one"
assert causes["dropout"] == 3, "the line behind 'dropout' is another one"
assert causes["direction"] == 1, "the line behind 'direction' is another one"
### END HIDDEN TESTS


# %% solution="train-epoch"
def train_epoch(
    model: nn.Module,
    batches: Iterable[tuple[Tensor, Tensor]],
    optimizer: torch.optim.Optimizer,
    scheduler: torch.optim.lr_scheduler.LRScheduler,
    pad_id: int,
    loss_function: Callable[[Tensor, Tensor, int], Tensor],
    max_norm: float = 1.0,
) -> list[float]:
    """One update for each batch of (source, target), in order; return the losses.

    Args:
        model: called as model(source, decoder_input), in training mode.
        batches: may be walked through only once.
        optimizer: holds the model's parameters.
        scheduler: steps once after each update.
        pad_id: handed on to the loss.
        loss_function: called as loss_function(logits, labels, pad_id).
        max_norm: the gradients' largest total norm.
    """
    ### BEGIN SOLUTION
    losses = []
    for source, target in batches:
        model.train()
        optimizer.zero_grad()
        loss = loss_function(model(source, target[:, :-1]), target[:, 1:], pad_id)
        loss.backward()
        # departs: the paper reports no clipping; it is usual today. paper: test_training_unclipped
        nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    return losses
    ### END SOLUTION


# %% test="train-epoch-updates" points=1
pairs = [
    (torch.tensor([[4, 8], [7, 6]]), torch.tensor([[1, 5, 7, 2], [1, 8, 2, 0]])),
    (torch.tensor([[5, 5], [8, 3]]), torch.tensor([[1, 6, 6, 2], [1, 3, 8, 2]])),
]


def exact_all(numbers: list[float]) -> Tensor:
    """Numbers as one float64 tensor."""
    return torch.tensor(numbers, dtype=torch.float64)


LOSSES = "there should be one loss for each batch, from before its update"


def assert_epoch(seed: int, max_norm: float, number: int, pad_id: int = 0) -> None:
    """Fail unless the updates are those of plain descent, by falling rates."""
    model, twin = ToyModel(9, seed=seed), ToyModel(9, seed=seed)
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)  # left over from whatever came before
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda done: 1 / (1 + done))
    losses = train_epoch(
        model.eval(), iter(pairs[:number]), optimizer, scheduler, pad_id, toy_loss, max_norm
    )
    weights, wanted = list(twin.parameters()), []
    for update, (source, target) in enumerate(pairs[:number], start=1):
        loss = toy_loss(twin(source, target[:, :-1]), target[:, 1:], pad_id)
        gradients = torch.autograd.grad(loss, weights)
        length = math.sqrt(sum(gradient.square().sum().item() for gradient in gradients))
        factor = min(1.0, max_norm / length)
        with torch.no_grad():
            for weight, gradient in zip(weights, gradients, strict=True):
                weight.sub_(factor / update * gradient)
        wanted.append(loss.item())
    for yours, other in zip(model.parameters(), weights, strict=True):
        assert_close(
            yours,
            other.detach(),
            f"after {number} updates, rates 1, 1/2, ..., max_norm {max_norm}, each by the gradient of "
            "its own batch (the parameters came with old gradients): other parameters",
            atol=1e-5,
        )
    assert all(isinstance(loss, float) for loss in losses), "the losses should be Python floats"
    assert_close(exact_all(losses), exact_all(wanted), LOSSES)


assert_epoch(seed=0, max_norm=1e6, number=2, pad_id=0)
visible_passed()
### BEGIN HIDDEN TESTS
pairs.append((torch.tensor([[3, 3], [4, 4]]), torch.tensor([[1, 4, 2, 0], [1, 5, 5, 2]])))
assert_epoch(seed=4, max_norm=0.05, number=3, pad_id=6)
### END HIDDEN TESTS

# %% test="train-epoch-calls" points=1
model = ToyModel(9).eval()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda done: 1.0)
source, target = torch.tensor([[4, 8]]), torch.tensor([[1, 5, 7, 2]])
batches = [(source, target), (source, target)]
train_epoch(model, batches, optimizer, scheduler, 0, toy_loss)
assert len(batches) == 2, "train_epoch should leave the list of batches as it is"
assert len(model.calls) == 2, "two batches: the model should be called twice"
assert model.calls[0][1].tolist() == [[1, 5, 7]], "the decoder reads the target but its last column"
visible_passed()
### BEGIN HIDDEN TESTS
assert all(training for _, _, training in model.calls) and all(model.modes), (
    "the model should be in training mode whenever it is called"
)
### END HIDDEN TESTS

# %% [markdown]
# ## 8.7 Beside the truth, and alone   (3 points, about 15 minutes, difficulty 2 of 5)
#
# **Objective.** Predict what the share of right tokens says about whole sentences, then measure it.
#
# The cell below trains a small translator for about ten seconds by **your** loss, schedule, optimiser and
# step, on the grammar's sentences, and measures it on 200 sentences that it has never seen:
#
# - **beside the truth**: the share of tokens (the end included) that it predicts right while it reads the
#   true sentence, as in training;
# - **alone**: the share of sentences that it writes right, word for word, when it reads what it has written
#   itself.
#
# Suppose the first is 93 of 100. The sentences have ten tokens on average. What will the second be? Let
# `predicted_share` return one of the texts in `SHARES`: there is a point for having predicted, not for being
# right. Then run the cell, look, and let `measured` return the four numbers that it prints last.
#
# <details><summary>Hint 1: a question</summary>
#
# How many of its tokens may a sentence miss and still be right, word for word?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Suppose that each token were missed by a coin of its own. How often do ten coins in a row fall well?
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - *predict first*: `predicted_share` returns nothing yet, or none of the four texts.
# - *not answered yet*: the run uses 8.2 to 8.5.
# - Your numbers are refused: return all four as they were printed last, of one run.
#
# </details>

# %%
SHARES = ("about 95 %", "about 80 %", "about 55 %", "about 10 %")


# %% solution="predicted-share"
def predicted_share() -> str:
    """What you expect: one of SHARES."""
    ### BEGIN SOLUTION
    return "about 55 %"
    ### END SOLUTION


# %% test="predicted-share-made" points=1
share = predicted_share()
assert isinstance(share, str), "a prediction is one of the texts in SHARES"
assert share in SHARES, f"a prediction is one of {', '.join(SHARES)}\nYours is {share!r}."
visible_passed()

# %%
if watched():  # not while the notebook is graded
    from lab.batching import batches
    from lab.five_minutes import grammar_data
    from lab.small_runs import beside_and_alone, show_losses, written
    from lab.translator import Translator

    prediction = predicted(predicted_share, SHARES)
    torch.set_num_threads(1)  # small matrices: one core is fastest
    data = grammar_data(8000)
    pad_id, bos_id = data.target.pad_id, data.target.bos_id
    torch.manual_seed(0)
    model = Translator(len(data.source), len(data.target), data.max_len, pad_id)
    optimizer, scheduler = scheduled_adam(
        model.parameters(), lambda step: learning_rate(step, d_model=64, warmup=400)
    )
    english = data.held_out[0][0]
    losses = []
    for epoch in range(3):
        for batch in batches(data.train, data.source, data.target, 32, seed=epoch):
            losses.append(
                train_step(
                    model, batch.source, batch.target, optimizer, pad_id, label_smoothed_loss
                )
            )
            scheduler.step()
            if len(losses) % 140 == 0:
                ids = written(model, data, [english])[0]
                print(f"{len(losses):4} steps: {english} -> {data.target.decode(ids)}")
    numbers = beside_and_alone(model, data, 200)
    compare(prediction, f"{numbers['alone']:.0%} of the sentences alone")
    print(numbers)
    show_losses(losses)


# %% solution="measured-shares"
def measured() -> dict[str, float]:
    """The four numbers that the cell printed: "beside", "length", "alone" and "independent".

    "beside" and "alone" are shares between 0 and 1, "length" is the mean number of tokens, and
    "independent" is what "alone" would be if each token were missed by a coin of its own.
    """
    ### BEGIN SOLUTION
    return {"beside": 0.937, "length": 10.14, "alone": 0.575, "independent": 0.519}
    ### END SOLUTION


# %% test="measured-shares-consistent" points=2
numbers = measured()
assert isinstance(numbers, dict), "measured should return a dict"
assert sorted(numbers) == ["alone", "beside", "independent", "length"], (
    "the numbers are called 'beside', 'length', 'alone' and 'independent'"
)
for name in ("beside", "alone", "independent"):
    assert 0 <= float(numbers[name]) <= 1, (
        f"{name} is a share between 0 and 1, as it was printed\nYours is {numbers[name]}."
    )
visible_passed()
### BEGIN HIDDEN TESTS
beside, length = float(numbers["beside"]), float(numbers["length"])
alone, independent = float(numbers["alone"]), float(numbers["independent"])
assert 0.8 < beside < 1, (
    "after this training more than 0.8 of the tokens, and not all, are right beside the truth"
)
assert 9 < length < 12, "the sentences have about ten tokens, the end included"
assert 0.2 < alone < beside, "fewer sentences are right alone than tokens beside the truth"
assert abs(independent - beside**length) < 0.02, (
    "if each token were missed by itself, a sentence of so many would be right with the probability "
    "beside ** length"
)
assert alone >= 1 - (1 - beside) * length - 0.03, (
    "each sentence that is wrong has a token that is missed beside the truth, so there cannot be more "
    "wrong sentences than missed tokens"
)
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>What happened</summary>
#
# As long as a sentence is right, what the model has written is what the true sentence says, so alone it reads
# the same as beside the truth. So exactly those sentences come out word for word in which no token is missed
# beside the truth. At 93 in 100 and ten tokens, that is about a half: $0.93^{10} \approx 0.48$ if each token
# were missed by a coin of its own, and a little more in fact, because misses keep company: a sentence with one
# hard word often has two. What the model does **after** its first miss is another question, and one that
# neither number answers (8.10).
#
# </details>

# %% [markdown]
# ## 8.8 A batch in pieces   (2 points, about 20 minutes, difficulty 4 of 5)
#
# **Objective.** Get the gradient of a large batch with the memory of a small one.
#
# The paper's batches hold about 25,000 target tokens, more than fits into most machines at once. Cut
# the batch into groups of at most $\lceil B / \text{pieces} \rceil$ sentences, run each through the
# model by itself, and let the gradients **add up** in the parameters' `.grad`. In the end they
# must equal, to rounding, those of the whole batch's loss, which is a mean over all its real tokens.
#
# `loss_function(logits, labels, pad_id)` gives the mean over the real tokens of what it is handed: one
# group. The groups hold different numbers of real tokens, so the mean of their means is **not** the
# mean of the whole. Call backward for each group before you run the next. Do not clear gradients,
# clip, or update: that is the caller's part. Return the whole batch's loss as a float.
#
# <details><summary>Hint 1: a question</summary>
#
# Three real tokens with mean 4 and one with mean 8: what is the mean of all four?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# Count the real labels of the whole batch first. Each group's loss then enters with the share of the
# real labels that it holds. `torch.split` cuts rows into groups of a given size; the last one
# may be smaller.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - Gradients a few times too large: the groups' losses were added up as they are.
# - Right if all sentences are equally long: every group counted the same.
# - Right if `pieces` divides $B$: some sentences were lost, or the last group is smaller.
# - Off by little: padding was counted, or the first column, which is no label.
#
# </details>


# %% solution="backward-in-pieces"
def backward_in_pieces(
    model: nn.Module,
    source: Int[Tensor, "B M"],
    target: Int[Tensor, "B N"],
    pad_id: int,
    loss_function: Callable[[Tensor, Tensor, int], Tensor],
    pieces: int,
) -> float:
    """Add the gradients of the batch's mean loss to the parameters, a group of sentences at a time.

    Args:
        model: called by position, model(source, decoder_input), with at most ceil(B / pieces)
            sentences.
        source: what is translated.
        target: rows are `<bos>` ... `<eos>`, then padding.
        pad_id: marks what is not real.
        loss_function: called as loss_function(logits, labels, pad_id); a mean over real labels.
        pieces: from 1 to B.
    """
    ### BEGIN SOLUTION
    size = math.ceil(len(target) / pieces)
    all_real = (target[:, 1:] != pad_id).sum().item()
    total = 0.0
    for some_source, some_target in zip(source.split(size), target.split(size), strict=True):
        labels = some_target[:, 1:]
        share = (labels != pad_id).sum().item() / all_real
        loss = share * loss_function(model(some_source, some_target[:, :-1]), labels, pad_id)
        loss.backward()
        total += loss.item()
    return total
    ### END SOLUTION


# %% test="backward-in-pieces-gradient" points=1
source = torch.tensor([[4, 8], [7, 6], [5, 5], [8, 3], [3, 7]])
target = torch.tensor(
    [
        [1, 5, 7, 6, 8, 2],
        [1, 8, 5, 4, 3, 2],
        [1, 8, 2, 0, 0, 0],
        [1, 2, 0, 0, 0, 0],
        [1, 6, 3, 2, 0, 0],
    ]
)

model, twin = ToyModel(9), ToyModel(9)  # the same numbers
backward_in_pieces(  # groups of 2, 2 and 1
    model, source, target, pad_id=0, loss_function=toy_loss, pieces=3
)
toy_loss(twin(source, target[:, :-1]), target[:, 1:], 0).backward()
for yours, wanted in zip(gradients_of(model), gradients_of(twin), strict=True):
    assert_close(yours, wanted, "3 pieces should give the gradient of the whole batch at once")
visible_passed()
### BEGIN HIDDEN TESTS
model = ToyModel(9)
backward_in_pieces(model, source, target, 0, toy_loss, 4)
for yours, wanted in zip(gradients_of(model), gradients_of(twin), strict=True):
    assert_close(yours, wanted, "4 pieces should give the gradient of the whole batch at once, too")
padded = torch.where(target == 0, 7, target.masked_fill(target == 7, 0))  # padding is now 7
model, twin = ToyModel(9, seed=2), ToyModel(9, seed=2)
for parameter in model.parameters():
    parameter.grad = torch.ones_like(parameter)  # from a batch before
backward_in_pieces(model, source, padded, pad_id=7, loss_function=toy_loss, pieces=2)
toy_loss(twin(source, padded[:, :-1]), padded[:, 1:], 7).backward()
for yours, wanted in zip(gradients_of(model), gradients_of(twin), strict=True):
    assert_close(
        yours,
        wanted + 1,
        "with padding id 7, too, the whole gradient should be added to what is there already",
    )
### END HIDDEN TESTS

# %% test="backward-in-pieces-passes" points=1
source = torch.tensor([[4, 8], [7, 6], [5, 5], [8, 3], [3, 7]])
target = torch.tensor(
    [
        [1, 5, 7, 6, 8, 2],
        [1, 8, 5, 4, 3, 2],
        [1, 8, 2, 0, 0, 0],
        [1, 2, 0, 0, 0, 0],
        [1, 6, 3, 2, 0, 0],
    ]
)

model = ToyModel(9)
before = [parameter.detach().clone() for parameter in model.parameters()]
loss = backward_in_pieces(model, source, target, 0, toy_loss, pieces=3)
assert max(len(seen) for seen, _, _ in model.calls) <= 2, (
    "5 sentences in 3 pieces: the model should see at most 2 at a time"
)
assert isinstance(loss, float), "backward_in_pieces should return the loss as a Python float"
wanted = exact(toy_loss(ToyModel(9)(source, target[:, :-1]), target[:, 1:], 0).item())
assert_close(exact(loss), wanted, "the loss returned should be that of the whole batch")
visible_passed()
### BEGIN HIDDEN TESTS
for old, new in zip(before, model.parameters(), strict=True):
    assert torch.equal(old, new), "backward_in_pieces should add gradients, not update parameters"
for pieces, largest in {1: 5, 5: 1}.items():
    model = ToyModel(9)
    loss = backward_in_pieces(model, source, target, 0, toy_loss, pieces)
    sizes = [len(seen) for seen, _, _ in model.calls]
    assert max(sizes) <= largest, (
        f"5 sentences in {pieces} pieces: the model should see at most {largest} at a time"
    )
    seen = [row for _, rows, _ in model.calls for row in rows.tolist()]
    assert sorted(seen) == sorted(target[:, :-1].tolist()), "every sentence should be used once"
    assert_close(
        exact(loss), wanted, f"the loss returned with {pieces} pieces should be the whole batch's"
    )
model, reached = ToyModel(9), []


def loss_that_looks(logits, labels, pad_id):
    reached.append(model.out_weight.grad is not None)
    return toy_loss(logits, labels, pad_id)


backward_in_pieces(model, source, target, 0, loss_that_looks, pieces=3)
assert not reached[0] and all(reached[1:]), (
    "backward should be called for each group before the next"
)
### END HIDDEN TESTS

# %% [markdown]
# ## 8.9 How large should a batch be?   (2 points, about 30 minutes, difficulty 5 of 5)
#
# **Objective.** Tell signal from noise in the gradients of a batch. (This one is a bonus: nothing
# in the model needs it.)
#
# Each sentence has its own gradient. Think of them as independent draws: each is the **true gradient**
# $G$, the mean over all sentences there are, plus noise of mean 0. The noise of one sentence has the **total
# variance** $V$: the variances of all its entries, added up. You have the gradients of $B \ge 2$ sentences,
# one in each row, and know neither $G$ nor $V$.
#
# Return estimates of $|G|^2$ and of $V$ that are **unbiased**: over all batches that could have been drawn,
# their means are exactly $|G|^2$ and $V$. (So now and then the first one is below 0. Leave it.)
#
# $V / |G|^2$ is a batch size: in a batch of as many sentences, the mean gradient holds as much noise as signal.
# Much smaller batches waste updates, much larger ones waste sentences (McCandlish et al. 2018, section 2.2). The
# training of a large model measures it along the way.
#
# <details><summary>Hint 1: a question</summary>
#
# Let $g$ be the mean of the $B$ gradients. How large is $|g|^2$ on average, in terms of $G$, $V$ and $B$?
# And how large is the squared length of a single gradient, on average?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# The variance of a mean of $B$ independent draws is a $B$-th of that of one. So hint 1 gives two equations;
# what you measure on the left, $|G|^2$ and $V$ on the right. Solve them.
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - $V$ comes out too small, by half with two sentences: the mean that you subtract was made of the same
#   sentences.
# - $|G|^2$ comes out too large: $|g|^2$ holds noise, too.
# - Both are too small by the number of parameters: add up over entries, do not average.
#
# </details>


# %% solution="batch-noise"
def batch_noise(gradients: Float[Tensor, "B P"]) -> tuple[float, float]:
    """Unbiased estimates of the true gradient's squared length and of the noise's total variance.

    Source: McCandlish et al. (2018), appendix A.1, with batches of 1 and of B sentences.

    Args:
        gradients: one row for each of at least two sentences, all parameters in one row.
    """
    ### BEGIN SOLUTION
    batch = len(gradients)
    of_mean = gradients.mean(0).square().sum().item()  # on average |G|^2 + V / B
    of_one = gradients.square().sum(1).mean().item()  # on average |G|^2 + V
    noise = (of_one - of_mean) * batch / (batch - 1)
    return of_one - noise, noise
    ### END SOLUTION


# %% test="batch-noise-values" points=1
alike = torch.tensor([[3.0, 4.0], [3.0, 4.0]], dtype=torch.float64)
signal, noise = batch_noise(alike)
assert_close(exact(signal), 25.0, "equal gradients (3, 4): the squared length of G is 25")
assert_close(exact(noise), 0.0, "equal gradients hold no noise")
signal, noise = batch_noise(torch.tensor([[1.0, 0.0], [-1.0, 0.0]], dtype=torch.float64))
assert_close(exact(noise), 2.0, "gradients 1 and -1, with mean 0, speak for a variance of 2")
visible_passed()
### BEGIN HIDDEN TESTS
assert_close(exact(signal), -1.0, "gradients 1 and -1: the estimate of the signal is below 0")
assert isinstance(signal, float) and isinstance(noise, float), "both should be Python floats"
gradients = draw((5, 7), seed=3) + draw((7,), seed=4)
before = gradients.clone()
signal, noise = batch_noise(gradients)
assert_close(exact(noise), gradients.var(0).sum(), "the noise is the total variance of 5 gradients")
wanted = gradients.mean(0).square().sum() - gradients.var(0).sum() / 5
assert_close(exact(signal), wanted, "the signal is what remains of |g|^2 without the mean's noise")
assert torch.equal(gradients, before), "the gradients should stay unchanged"
### END HIDDEN TESTS

# %% test="batch-noise-unbiased" points=1
sentences = torch.tensor(
    [[1.0, 2.0], [3.0, -2.0], [5.0, 0.0]], dtype=torch.float64
)  # all there are
draws = [sentences[list(chosen)] for chosen in itertools.product(range(3), repeat=2)]
estimates = torch.tensor([batch_noise(batch) for batch in draws], dtype=torch.float64)
true = sentences.mean(0)
assert_close(
    estimates[:, 0].mean(),
    true.square().sum(),
    "over all 9 batches of two that can be drawn, the mean of the first estimate should be |G|^2",
)
assert_close(
    estimates[:, 1].mean(),
    (sentences - true).square().sum(1).mean(),
    "over all 9 batches of two that can be drawn, the mean of the second estimate should be V",
)
visible_passed()
### BEGIN HIDDEN TESTS
sentences = draw((2, 3), seed=9)
draws = [sentences[list(chosen)] for chosen in itertools.product(range(2), repeat=3)]
estimates = torch.tensor([batch_noise(batch) for batch in draws], dtype=torch.float64)
true = sentences.mean(0)
assert_close(
    estimates[:, 0].mean(),
    true.square().sum(),
    "over all batches of three, too, the mean of the first estimate should be |G|^2",
)
assert_close(
    estimates[:, 1].mean(),
    (sentences - true).square().sum(1).mean(),
    "over all batches of three, too, the mean of the second estimate should be V",
)
### END HIDDEN TESTS

# %% [markdown]
# ## 8.10 The teacher leaves   (2 points, about 15 minutes, difficulty 3 of 5)
#
# **Objective.** Explain what teacher forcing makes possible, and what it hides.
#
# In three to eight sentences: (a) All positions of a target sentence are trained in one pass. Which two
# ingredients make position $t$ predict a token that it has not seen? What would the model learn if
# the mask were left out and the shift kept? (b) A model predicts 98 of 100 tokens right
# when it reads the true target. Somebody concludes that its translations will be about 98 % right.
# What does the model meet when it translates that it never met in training, and why does that
# make the conclusion unsafe?
#
# <details><summary>Hint 1: a question</summary>
#
# Without the mask, where in the decoder input does the label of position $t$ stand?
#
# </details>
# <details><summary>Hint 2: a sketch</summary>
#
# For (b): what does the decoder read after its first wrong word?
#
# </details>
# <details><summary>Help by symptom</summary>
#
# - Unsure about (a): write decoder input and labels of a short sentence below one another.
# - Unsure about (b): think of a sentence with many right translations, of which the model begins one
#   and the reference another.
#
# </details>

# %% [markdown] manual="teacher-leaves" points=2
# ### BEGIN SOLUTION
# (a) The shift and the causal mask. The labels are the decoder input moved by one place, so the label of
# position $t$ is the input of position $t + 1$; the mask hides that and all later positions from
# position $t$. Without the mask, position $t$ could look at position $t + 1$ and copy: the loss
# falls towards 0, and the model learns to copy its neighbour in place of translating.
# When it translates there is no neighbour to the right, and its output is useless.
#
# (b) Its own words. In training the decoder always reads a true prefix; when it translates it reads
# what it wrote itself, mistakes included. After the first wrong word (or merely another right one)
# the prefix may be unlike any in training, so later predictions may get worse, and errors pile up.
# 98 % was measured on true prefixes only and says nothing about that. Even with no such effect,
# 0.98 to the power of the length is the chance of a sentence without error.
#
# Marking: 1 point for (a): shift and mask (half), copying (half). 1 point for (b): own output as
# input (half), why errors can grow or why the accuracy measures something else (half).
# ### END SOLUTION

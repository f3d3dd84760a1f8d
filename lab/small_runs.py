"""What notebooks show of a small translator: what it writes, its two shares, its losses."""

from collections.abc import Sequence
from functools import partial
from itertools import takewhile
from operator import ne

import torch
from torch import Tensor, nn

from lab.batching import pad_ids
from lab.five_minutes import GrammarData


@torch.no_grad()
def greedy(
    model: nn.Module, source: Tensor, bos_id: int, eos_id: int, max_len: int
) -> list[list[int]]:
    """The likeliest token at every step, a batch at once; ids without bos_id and eos_id.

    Args:
        model: called as model(source, decoder_input); left in the mode in which it is.
        source: ids (B, M).
        bos_id: what every row begins with.
        eos_id: where a row ends.
        max_len: how many tokens are written at most, `eos_id` included.
    """
    training = model.training
    model.eval()
    ids = torch.tensor([[bos_id]] * len(source), device=source.device)
    while ids.shape[1] <= max_len and not (ids == eos_id).any(-1).all():
        ids = torch.cat([ids, model(source, ids)[:, -1:].argmax(-1)], dim=1)
    model.train(training)
    return [list(takewhile(partial(ne, eos_id), row)) for row in ids[:, 1:].tolist()]


def written(model: nn.Module, data: GrammarData, sentences: Sequence[str]) -> list[list[int]]:
    """What `greedy` makes of sentences in the source language, as long as the data's may be."""
    source, _ = pad_ids(data.source.encode_all(sentences), data.source.pad_id)
    return greedy(model, source, data.target.bos_id, data.target.eos_id, data.max_len - 1)


@torch.no_grad()
def beside_and_alone(model: nn.Module, data: GrammarData, sentences: int) -> dict[str, float]:
    """Measure a model on the first held-out sentences.

    Returns:
        "beside": share of tokens, the end included, that are right beside the truth; "length":
        their mean number; "alone": share of sentences that it writes word for word;
        "independent": what that would be if each token were missed by itself.
    """
    pairs = data.held_out[:sentences]
    source, _ = pad_ids(data.source.encode_all([one for one, _ in pairs]), data.source.pad_id)
    wanted = data.target.encode_all([other for _, other in pairs])
    target, _ = pad_ids(wanted, data.target.pad_id)
    model.eval()
    labels = target[:, 1:]
    real = labels != data.target.pad_id
    right = (model(source, target[:, :-1]).argmax(-1) == labels)[real]
    said = written(model, data, [one for one, _ in pairs])
    exact = [row == ids[1:-1] for row, ids in zip(said, wanted, strict=True)]
    beside, length = right.double().mean().item(), real.sum(1).double().mean().item()
    return {
        "beside": round(beside, 3),
        "length": round(length, 2),
        "alone": round(sum(exact) / len(exact), 3),
        "independent": round(beside**length, 3),
    }


def show_losses(losses: Sequence[float], around: int = 20) -> None:
    """Draw the losses of a training, each the mean of those around it."""
    import matplotlib.pyplot as plt

    from lab import plots

    plots.use()
    means = torch.tensor(losses).unfold(0, around, 1).mean(-1)
    _, ax = plt.subplots(figsize=(5.2, 2.6))
    ax.plot(range(around, len(losses) + 1), means)
    ax.set(xlabel="step", ylabel="loss", ylim=(0, None))
    plt.show()

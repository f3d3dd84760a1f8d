"""What notebooks show of a small translator: what it writes, its two shares, its losses."""

from collections.abc import Sequence

import torch
from torch import nn

from lab.batching import pad_ids
from lab.five_minutes import GrammarData


@torch.no_grad()
def written(model: nn.Module, data: GrammarData, sentences: Sequence[str]) -> list[list[int]]:
    """The ids that the model writes for each sentence, always the likeliest; without <bos>, <eos>.

    Args:
        model: called as model(source, decoder_input); left in the mode in which it is.
        data: whose tokenizers and greatest length hold.
        sentences: in the source language.
    """
    training, target = model.training, data.target
    model.eval()
    source, _ = pad_ids(data.source.encode_all(sentences), data.source.pad_id)
    ids = torch.full((len(source), 1), target.bos_id)
    while ids.shape[1] < data.max_len and not (ids == target.eos_id).any(-1).all():
        ids = torch.cat([ids, model(source, ids)[:, -1:].argmax(-1)], dim=1)
    model.train(training)
    rows = [row[1:] for row in ids.tolist()]
    return [row[: row.index(target.eos_id)] if target.eos_id in row else row for row in rows]


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

"""What notebooks show of a small translator, on models whose answers are known."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from lab.five_minutes import GrammarData, grammar_data
from lab.small_runs import beside_and_alone, show_losses, written


class Recites(nn.Module):
    """Says what a rule says: the next id, from the source and what stands before."""

    def __init__(self, rule: Callable[[list[int], list[int]], int], vocabulary: int) -> None:
        super().__init__()
        self.rule, self.vocabulary = rule, vocabulary

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Return logits."""
        said = [
            [self.rule(ids, row[: i + 1]) for i in range(len(row))]
            for ids, row in zip(source.tolist(), target.tolist(), strict=True)
        ]
        return nn.functional.one_hot(torch.tensor(said), self.vocabulary).double()


@pytest.fixture(scope="module")
def data() -> GrammarData:
    return grammar_data(300)


def knowing(data: GrammarData, slips: int) -> Recites:
    """Knows all held-out sentences but for the first word of some."""
    known = {
        tuple(data.source.encode(one)): data.target.encode(other) for one, other in data.held_out
    }
    wrong = list(known)[:slips]

    def rule(source: list[int], ids: list[int]) -> int:
        source = [i for i in source if i != data.source.pad_id]
        wanted = known[tuple(source)]
        if tuple(source) in wrong and len(ids) == 1:
            return data.target.unk_id
        return wanted[len(ids)] if len(ids) < len(wanted) else data.target.eos_id

    return Recites(rule, len(data.target))


def test_a_model_that_knows_all_is_right_beside_the_truth_and_alone(data: GrammarData):
    model = knowing(data, slips=0).train()
    english = [one for one, _ in data.held_out[:3]]
    rows = written(model, data, english)
    assert rows == [data.target.encode(two)[1:-1] for _, two in data.held_out[:3]]
    assert model.training
    numbers = beside_and_alone(model, data, 5)
    assert numbers["beside"] == numbers["alone"] == numbers["independent"] == 1


def test_a_sentence_is_wrong_alone_by_a_single_token(data: GrammarData):
    numbers = beside_and_alone(knowing(data, slips=1), data, 4)
    length = sum(len(data.target.encode(two)) - 1 for _, two in data.held_out[:4]) / 4
    assert numbers["alone"] == 0.75
    assert numbers["length"] == round(length, 2)
    assert numbers["beside"] == round(1 - 1 / (4 * length), 3)


def test_losses_are_drawn_as_means(monkeypatch: pytest.MonkeyPatch):
    import matplotlib.pyplot as plt

    monkeypatch.setattr(plt, "show", lambda: None)
    show_losses([4.0, 2.0, 0.0], around=2)
    (line,) = plt.gca().lines
    assert np.asarray(line.get_ydata()).tolist() == [3.0, 1.0]
    plt.close("all")

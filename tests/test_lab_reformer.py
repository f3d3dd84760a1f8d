"""The lab's part of the chapter on the Reformer: vectors to hash, recalling, what is kept."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from lab.reformer import (
    RecallModel,
    grouped,
    kept_by_all,
    learn_to_recall,
    pair,
    recalled,
    recalling,
    reversible,
    saved_numbers,
)


@pytest.mark.parametrize("cosine", [-1.0, -0.3, 0.0, 0.9, 1.0])
def test_a_pair_has_the_cosine_that_is_asked_for(cosine: float):
    one, other = pair(cosine, 7)
    assert one.norm() == 1 and torch.isclose(other.norm(), torch.ones(()))
    assert torch.isclose(one @ other, torch.tensor(cosine))


def test_grouped_vectors_lie_round_as_many_directions_as_there_are_groups():
    x = F.normalize(grouped(1, 60, 24, groups=3, spread=0.05, seed=0)[0], dim=-1)
    near = x @ x.T > 0.9
    assert len({tuple(row) for row in near.tolist()}) == 3


def test_each_name_comes_twice_and_its_value_is_asked_for_the_second_time():
    names, shown, labels = recalling(4, names=6, values=5, seed=0)
    for row in range(4):
        told = dict(zip(names[row, :6].tolist(), shown[row, :6].tolist(), strict=True))
        assert sorted(told) == list(range(6))
        assert [told[name] for name in names[row, 6:].tolist()] == labels[row, 6:].tolist()
    assert (labels[:, :6] == -100).all() and (shown[:, 6:] == 5).all()


def itself_hidden(qk: Tensor, v: Tensor) -> Tensor:
    """Attention to all tokens before, by torch's own code."""
    n = qk.shape[1]
    seen = torch.ones(n, n, dtype=torch.bool).tril(-1)
    seen[0, 0] = True
    return F.scaled_dot_product_attention(qk, F.normalize(qk, dim=-1), v, seen)


def test_a_model_learns_to_recall_and_without_attention_it_does_not():
    torch.manual_seed(0)
    model = RecallModel(names=6, values=4)
    losses = learn_to_recall(model, itself_hidden, 60, names=6, values=4)
    assert losses[-1] < 0.1 < losses[0]
    assert recalled(model, itself_hidden, 6, 4) > 0.95
    assert recalled(model, lambda qk, v: v, 6, 4) < 0.5


def bent(x: Tensor, w: Tensor) -> Tensor:
    """A part of a block."""
    return torch.tanh(x @ w)


def undone(f, g, w_f, w_g, y1, y2, dy1, dy2):
    """A block's inputs and slopes, by running it once more."""
    x2 = y2 - g(y1, w_g)
    x1 = y1 - f(x2, w_f)
    with torch.enable_grad():
        leaves = [one.detach().requires_grad_() for one in (x1, x2, w_f, w_g)]
        one = leaves[0] + f(leaves[1], leaves[2])
        outputs = one, leaves[1] + g(one, leaves[3])
        return x1, x2, *torch.autograd.grad(outputs, leaves, (dy1, dy2))


def drawn(depth: int) -> tuple[Tensor, list[Tensor]]:
    """An input and two matrices for each block."""
    generator = torch.Generator().manual_seed(1)
    weights = torch.randn(2 * depth, 5, 5, generator=generator, dtype=torch.float64)
    x = torch.randn(2, 3, 5, generator=generator, dtype=torch.float64)
    return x.requires_grad_(), [(w / 2).requires_grad_() for w in weights]


def test_reversible_blocks_give_the_numbers_and_gradients_of_ordinary_ones():
    x, weights = drawn(3)
    outputs = (
        kept_by_all((bent, bent), x, weights),
        reversible(undone, (bent, bent), x, weights),
    )
    assert torch.allclose(*outputs, rtol=0, atol=1e-12)
    slopes = [torch.autograd.grad(one.square().sum(), [x, *weights]) for one in outputs]
    for one, other in zip(*slopes, strict=True):
        assert torch.allclose(one, other, rtol=0, atol=1e-9)


def test_what_is_kept_grows_with_depth_in_ordinary_blocks_alone():
    def kept(depth: int) -> tuple[int, int]:
        x, weights = drawn(depth)
        return (
            saved_numbers(lambda: kept_by_all((bent, bent), x, weights), weights),
            saved_numbers(lambda: reversible(undone, (bent, bent), x, weights), weights),
        )

    (ordinary, few), (more, as_few) = kept(2), kept(8)
    assert few == as_few == 2 * 2 * 3 * 5
    assert more > 3 * ordinary > 0

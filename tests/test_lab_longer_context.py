"""The lab's part of the chapter on longer context: copying, and spans that are learned."""

import torch

from lab.longer_context import SpanModel, copying, floored, learn_spans


def test_labels_are_what_stood_so_many_tokens_ago():
    ids, labels = copying(3, rows=2, length=8, seed=1)
    assert torch.equal(labels[:, 3:], ids[:, :5])
    assert (labels[:, :3] == -100).all()


def test_a_span_as_long_as_the_text_changes_nothing():
    scores = torch.randn(2, 3, 4, 6, generator=torch.Generator().manual_seed(0)).double()
    ahead = torch.ones(4, 6, dtype=torch.bool).triu(3)
    causal = scores.masked_fill(ahead, -torch.inf).softmax(-1)
    weights = floored(scores, torch.full((3,), 6.0).double(), 2.0)
    assert torch.allclose(weights, causal, rtol=0, atol=1e-12)


def test_beyond_the_ramp_next_to_nothing_is_left():
    weights = floored(torch.zeros(1, 1, 1, 8), torch.tensor([2.0]), 2.0)
    assert weights[..., :4].max() < 1e-5
    assert torch.allclose(weights.sum(-1), torch.ones(()))


def test_spans_stay_within_bounds_and_a_price_makes_them_shorter():
    ends = {}
    for price in (0.0, 0.5):
        torch.manual_seed(0)
        model = SpanModel(largest=10)
        record = learn_spans(model, back=2, steps=12, price=price, length=16)
        assert all(0 <= z <= 10 for _, spans in record for z in spans)
        ends[price] = sum(record[-1][1])
    assert ends[0.5] < ends[0.0]

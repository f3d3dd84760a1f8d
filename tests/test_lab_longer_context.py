"""The lab's part of the chapter on longer context: copying, spans and errands that are learned."""

import torch

from lab.longer_context import Remembering, SpanModel, copying, floored, learn_relay, learn_spans


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


def test_a_memory_that_holds_all_before_gives_what_one_pass_gives():
    torch.manual_seed(0)
    layer = Remembering(8, reach=6)
    torch.nn.init.normal_(layer.distances)
    x = torch.randn(2, 6, 8)
    whole, later = layer(x, x[:, :0]), layer(x[:, 4:], x[:, :4])
    assert torch.allclose(later, whole[:, 4:], rtol=0, atol=1e-6)
    ahead = layer(torch.cat([x[:, :5], x[:, 5:] + 1], dim=1), x[:, :0])
    assert torch.equal(ahead[:, :5], whole[:, :5])


def test_an_errand_over_two_segments_is_learned_where_nothing_is_cut_off():
    """And what runs the layers is told how long segments and memories are, and how far back."""
    told = []

    def run(layers, x, length, mem_len, back):
        told.append((length, mem_len, back))
        memories = [x[:, :0] for _ in layers]
        outputs = []
        for segment in x.split(length, dim=1):
            for i, layer in enumerate(layers):
                given, segment = segment, layer(segment, memories[i])
                memories[i] = given
            outputs.append(segment)
        return torch.cat(outputs, dim=1)

    losses = learn_relay(run, back=7, steps=60, segment=2, tokens=4, width=16)
    assert set(told) == {(2, 2, 7)}
    assert losses[-1] < 0.5 < 1.2 < losses[0]  # ln 4 is 1.39

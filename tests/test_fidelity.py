"""Where the code departs from the paper, the paper's own way is open and tested here by name."""

import importlib.util
import math
import sys
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from lab.check import draw
from tests.conftest import ROOT

sys.path.insert(0, str(ROOT / "book" / "_ext"))
departures: Any = importlib.import_module("course.departures")

B, N, M, D, H, D_FF = 2, 5, 7, 12, 3, 20


@pytest.fixture(scope="module")
def model() -> Any:
    """The assembled module."""
    spec = importlib.util.spec_from_file_location("t", ROOT / "solutions" / "transformer.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def settled(module: Any) -> Any:
    """The module in float64, out of training, with numbers away from 0 and 1."""
    module.double().eval()
    with torch.no_grad():
        for seed, parameter in enumerate(module.parameters()):
            parameter.copy_(draw(tuple(parameter.shape), seed=seed) / 3 + 0.2)
    return module


def close(actual: Tensor, expected: Tensor) -> None:
    """Equal to 1e-10."""
    torch.testing.assert_close(actual, expected, atol=1e-10, rtol=0)


def test_every_departure_names_a_test_of_the_papers_way():
    found = departures.find_departures(ROOT)
    assert found
    assert [d for d in found if d.test not in globals()] == []


def test_minus_infinity_hides_as_well(model: Any):
    """Wherever a query may see some key, minus infinity gives the very same weights."""
    q, k, v = draw((B, N, 4), (B, M, 4), (B, M, 6))
    mask = draw((B, N, M), seed=1) > 0
    mask[..., 0] = True
    scores = (q @ k.mT / math.sqrt(4)).masked_fill(~mask, -math.inf)
    output, weights = model.scaled_dot_product_attention(q, k, v, mask)
    close(weights, scores.softmax(-1))
    close(output, scores.softmax(-1) @ v)


def test_layer_norm_without_epsilon(model: Any):
    """With eps=0 the layer is Ba et al.'s formula."""
    norm = settled(model.LayerNorm(D, eps=0.0))
    x = draw((B, N, D))
    mean = x.mean(-1, keepdim=True)
    deviation = (x - mean).square().mean(-1, keepdim=True).sqrt()
    close(norm(x), norm.gain * (x - mean) / deviation + norm.bias)


def test_encoder_layers_normalise_after_each_sum(model: Any):
    """The default is LayerNorm(x + Sublayer(x)), section 3.1 of the paper."""
    layer = settled(model.EncoderLayer(D, H, D_FF))
    x = draw((B, N, D))
    y = layer.norm1(x + layer.self_attention(x, x, x)[0])
    close(layer(x), layer.norm2(y + layer.feed_forward(y)))


def test_decoder_layers_normalise_after_each_sum(model: Any):
    """As in the encoder, with the attention to the memory between the two."""
    layer = settled(model.DecoderLayer(D, H, D_FF))
    x, memory = draw((B, N, D), (B, M, D))
    y = layer.norm1(x + layer.self_attention(x, x, x)[0])
    z = layer.norm2(y + layer.cross_attention(y, memory, memory)[0])
    close(layer(x, memory), layer.norm3(z + layer.feed_forward(z)))


def test_training_unclipped(model: Any):
    """A limit of infinity clips nothing, neither alone nor in a training step."""
    weight = nn.Parameter(draw((4, 3)))
    (100 * weight.square().sum()).backward()
    assert weight.grad is not None
    before = weight.grad.clone()
    norm = model.clip_gradients([weight], math.inf)
    close(weight.grad, before)
    assert norm == pytest.approx(before.norm().item())

    source, target = torch.tensor([[3, 4, 5]]), torch.tensor([[1, 6, 7, 2]])
    stepped, plain = (transformer(model) for _ in range(2))
    for both in (stepped, plain):
        both.load_state_dict(transformer(model).state_dict())
    optimizer = torch.optim.SGD(stepped.parameters(), lr=0.5)
    arguments = (stepped, source, target, optimizer, 0, model.label_smoothed_loss)
    model.train_step(*arguments, max_norm=math.inf)
    loss = model.label_smoothed_loss(plain(source, target[:, :-1]), target[:, 1:], 0)
    loss.backward()
    for parameter, moved in zip(plain.parameters(), stepped.parameters(), strict=True):
        assert parameter.grad is not None
        close(moved, parameter - 0.5 * parameter.grad)


def transformer(model: Any, **options: Any) -> Any:
    """A small model in float64 without dropout, the same numbers each time."""
    torch.manual_seed(0)
    sizes = {"d_model": D, "num_layers": 2, "num_heads": H, "d_ff": D_FF, "dropout": 0.0}
    encoding = model.sinusoidal_encoding(20, D)
    return model.Transformer(11, 11, encoding, **sizes, **options).double()


def test_post_norm_stacks_end_without_a_norm(model: Any):
    assert transformer(model).encoder.norm is None
    assert transformer(model).decoder.norm is None


def test_one_vocabulary_is_one_matrix(model: Any):
    """With one vocabulary both embeddings and the output share their matrix, section 3.4."""
    tied = transformer(model)
    assert tied.source_embedding.weight is tied.target_embedding.weight
    assert tied.generator.weight is tied.target_embedding.weight

"""The blocks: equal to torch's, with this course's masks."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from lab.blocks import DecoderLayer, EncoderLayer, MultiHeadAttention, attention
from lab.check import draw

B, N, M, D, H, D_FF = 2, 5, 7, 12, 3, 20
MASK = draw((B, N, M), seed=3) > -0.3  # no row of it is empty


def causal(n: int) -> torch.Tensor:
    return torch.ones(n, n, dtype=torch.bool).tril()


def test_attention_is_the_softmax_of_scaled_scores_times_values():
    q, k, v = draw((B, N, 4), (B, M, 4), (B, M, 6))
    weights = torch.softmax(q @ k.mT / 4**0.5, -1)
    torch.testing.assert_close(attention(q, k, v), weights @ v)


def test_attention_ignores_keys_where_the_mask_is_false():
    q, k, v = draw((B, N, 4), (B, M, 4), (B, M, 6))
    changed = v.clone()
    changed[:, 2] = 1e6
    mask = torch.ones(N, M, dtype=torch.bool)
    mask[:, 2] = False
    torch.testing.assert_close(attention(q, k, v, mask), attention(q, k, changed, mask))


def test_attention_refuses_a_mask_of_numbers():
    q, k, v = draw((B, N, 4), (B, M, 4), (B, M, 6))
    with pytest.raises(ValueError, match=r"torch\.float64.*boolean|must be torch\.bool"):
        attention(q, k, v, torch.zeros(N, M, dtype=torch.float64))


def heads(x: torch.Tensor) -> torch.Tensor:
    return x.unflatten(-1, (H, D // H)).transpose(1, 2)


def by_hand(block: MultiHeadAttention, q, k, v, mask) -> tuple[torch.Tensor, torch.Tensor]:
    inner = block.inner
    q, k, v = (
        heads(F.linear(x, weight, bias))
        for x, weight, bias in zip(
            (q, k, v), inner.in_proj_weight.chunk(3), inner.in_proj_bias.chunk(3), strict=True
        )
    )
    scores = (q @ k.mT / (D // H) ** 0.5).masked_fill(~mask, float("-inf"))
    weights = scores.softmax(-1)
    return inner.out_proj((weights @ v).transpose(1, 2).flatten(2)), weights


def test_multi_head_attention_equals_its_formula():
    block = MultiHeadAttention(D, H).double()
    q, k, v = draw((B, N, D), (B, M, D), (B, M, D))
    output, weights = block(q, k, v, MASK)
    expected_output, expected_weights = by_hand(block, q, k, v, MASK[:, None])
    assert weights.shape == (B, H, N, M)
    torch.testing.assert_close(output, expected_output)
    torch.testing.assert_close(weights, expected_weights)


def test_every_head_may_have_its_own_mask():
    block = MultiHeadAttention(D, H).double()
    q, k, v = draw((B, N, D), (B, M, D), (B, M, D))
    mask = torch.stack([MASK, torch.ones_like(MASK), MASK.flip(-1)], dim=1)
    torch.testing.assert_close(block(q, k, v, mask), by_hand(block, q, k, v, mask))


@pytest.mark.parametrize("shape", [(N, M), (1, M), (B, 1, M), (B, 1, 1, M), (1, 1, N, M)])
def test_masks_broadcast(shape):
    block = MultiHeadAttention(D, H).double()
    q, k, v = draw((B, N, D), (B, M, D), (B, M, D))
    mask = draw(shape, seed=3) > -0.3
    full = (mask[:, None] if mask.ndim == 3 else mask).expand(B, H, N, M)
    torch.testing.assert_close(block(q, k, v, mask), by_hand(block, q, k, v, full))


def test_a_mask_that_does_not_fit_is_refused():
    x = draw((B, N, D), dtype=torch.float32)
    with pytest.raises(ValueError, match=r"mask has shape \(4, 5\)"):
        MultiHeadAttention(D, H)(x, x, x, torch.ones(4, 5, dtype=torch.bool))


def test_a_query_without_any_key_is_refused():
    x = draw((B, N, D), dtype=torch.float32)
    mask = torch.ones(B, N, N, dtype=torch.bool)
    mask[1, 3] = False
    with pytest.raises(ValueError, match="query 3 of sentence 1"):
        MultiHeadAttention(D, H)(x, x, x, mask)


@pytest.mark.parametrize("norm_first", [False, True])
def test_an_encoder_layer_equals_torchs_with_the_mask_turned_round(norm_first):
    layer = EncoderLayer(D, H, D_FF, norm_first=norm_first).double()
    theirs = nn.TransformerEncoderLayer(
        D, H, D_FF, 0.0, batch_first=True, norm_first=norm_first, dtype=torch.float64
    )
    theirs.load_state_dict(layer.inner.state_dict())
    x = draw((B, N, D))
    real = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], dtype=torch.bool)
    ours = layer(x, real[:, None, :])
    torch.testing.assert_close(ours[real], theirs(x, src_key_padding_mask=~real)[real])


@pytest.mark.parametrize("norm_first", [False, True])
def test_a_decoder_layer_equals_torchs_with_the_masks_turned_round(norm_first):
    layer = DecoderLayer(D, H, D_FF, norm_first=norm_first).double()
    x, memory = draw((B, N, D), (B, M, D))
    real = torch.tensor([[1] * 7, [1, 1, 1, 1, 0, 0, 0]], dtype=torch.bool)
    expected = layer.inner(x, memory, tgt_mask=~causal(N), memory_key_padding_mask=~real)
    torch.testing.assert_close(layer(x, memory, causal(N), real[:, None, :]), expected)


@pytest.mark.parametrize("norm_first", [False, True])
def test_padding_content_never_changes_real_tokens(norm_first):
    layer = EncoderLayer(D, H, D_FF, norm_first=norm_first).double()
    x, noise = draw((B, N, D), (B, 2, D))
    real = torch.tensor([True, True, True, False, False])
    changed = torch.cat([x[:, :3], noise], dim=1)
    mask = real.expand(B, 1, N)
    torch.testing.assert_close(layer(x, mask)[:, :3], layer(changed, mask)[:, :3])


def test_later_target_tokens_never_change_earlier_ones():
    layer = DecoderLayer(D, H, D_FF).double()
    x, memory, noise = draw((B, N, D), (B, M, D), (B, 2, D))
    changed = torch.cat([x[:, :3], noise], dim=1)
    before, after = layer(x, memory, causal(N)), layer(changed, memory, causal(N))
    torch.testing.assert_close(before[:, :3], after[:, :3])


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("mask", [None, causal(N), causal(N).expand(B, N, N)])
def test_training_and_evaluation_agree_without_dropout(norm_first, mask):
    layer = EncoderLayer(D, H, D_FF, norm_first=norm_first).double()
    x = draw((B, N, D))
    training = layer.train()(x, mask)
    with torch.no_grad():  # where torch may take a faster path
        evaluation = layer.eval()(x, mask)
    torch.testing.assert_close(training, evaluation)


@pytest.mark.parametrize(
    "build",
    [
        lambda: MultiHeadAttention(10, 4),
        lambda: EncoderLayer(10, 4, 16),
        lambda: DecoderLayer(10, 4, 16),
    ],
)
def test_a_width_that_the_heads_cannot_share_is_refused(build):
    with pytest.raises(ValueError, match=r"d_model \(10\) must be divisible by num_heads \(4\)"):
        build()

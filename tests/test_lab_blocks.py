"""The blocks: equal to torch's, with this course's names and masks."""

import copy
import inspect
from typing import TypeVar

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lab import blocks
from lab.blocks import (
    Decoder,
    DecoderLayer,
    Encoder,
    EncoderLayer,
    FeedForward,
    Generator,
    LayerNorm,
    MultiHeadAttention,
    PositionalEncoding,
    TokenEmbedding,
    causal_mask,
    padding_mask,
    scaled_dot_product_attention,
)
from lab.check import draw

Module = TypeVar("Module", bound=nn.Module)
B, N, M, D, H, D_FF, VOCAB = 2, 5, 7, 12, 3, 20, 11
MASK = draw((B, N, M), seed=3) > -0.3  # no row of it is empty
REAL = torch.tensor([[1] * 7, [1, 1, 1, 1, 0, 0, 0]], dtype=torch.bool)


def causal(n: int) -> Tensor:
    return torch.ones(n, n, dtype=torch.bool).tril()


def with_random_parameters(module: Module) -> Module:
    """The module in double precision, its gains and biases away from 1 and 0."""
    module.double()
    with torch.no_grad():
        for number, parameter in enumerate(module.parameters()):
            parameter.copy_(draw(parameter.shape, seed=number) / 3)
    return module


# scaled dot-product attention


@pytest.mark.parametrize("mask", [None, MASK, MASK[0], MASK[:, :1]])
def test_weights_are_the_softmax_of_scaled_scores_and_the_output_mixes_values(mask):
    q, k, v = draw((B, N, 4), (B, M, 4), (B, M, 6))
    output, weights = scaled_dot_product_attention(q, k, v, mask)
    scores = q @ k.mT / 4**0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    torch.testing.assert_close(weights, scores.softmax(-1))
    torch.testing.assert_close(output, scores.softmax(-1) @ v)


def test_attention_takes_any_leading_axes():
    q, k, v = draw((B, H, N, 4), (B, H, M, 4), (B, H, M, 6))
    output, weights = scaled_dot_product_attention(q, k, v, MASK[:, None])
    assert (output.shape, weights.shape) == ((B, H, N, 6), (B, H, N, M))
    alone = scaled_dot_product_attention(q[1, 2], k[1, 2], v[1, 2], MASK[1])
    torch.testing.assert_close((output[1, 2], weights[1, 2]), alone)


def test_a_query_without_keys_gets_nothing_and_its_gradients_are_finite():
    q, k, v = (x.requires_grad_() for x in draw((B, N, 4), (B, M, 4), (B, M, 6)))
    mask = MASK.clone()
    mask[1, 3] = False
    output, weights = scaled_dot_product_attention(q, k, v, mask)
    assert not output[1, 3].any()
    assert not weights[1, 3].any()
    (output.sum() + weights.square().sum()).backward()
    assert all(x.grad is not None and x.grad.isfinite().all() for x in (q, k, v))


@pytest.mark.unchecked
def test_attention_refuses_a_mask_of_numbers():
    q, k, v = draw((B, N, 4), (B, M, 4), (B, M, 6))
    with pytest.raises(ValueError, match=r"torch\.float64; it must be torch\.bool"):
        scaled_dot_product_attention(q, k, v, torch.zeros(N, M, dtype=torch.float64))


# multi-head attention


def heads(x: Tensor) -> Tensor:
    return x.unflatten(-1, (H, D // H)).transpose(1, 2)


def by_hand(block: MultiHeadAttention, q, k, v, mask) -> tuple[Tensor, Tensor]:
    q, k, v = heads(q @ block.w_q.weight.T), heads(k @ block.w_k.weight.T), v @ block.w_v.weight.T
    scores = q @ k.mT / (D // H) ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask.expand(B, N, M)[:, None], float("-inf"))
    weights = scores.softmax(-1)
    return (weights @ heads(v)).transpose(1, 2).flatten(2) @ block.w_o.weight.T, weights


@pytest.mark.parametrize("mask", [None, MASK, MASK[0], MASK[0, :1], MASK[:, :1], MASK[:1]])
def test_multi_head_attention_equals_its_formula(mask):
    block = MultiHeadAttention(D, H).double()
    q, k, v = draw((B, N, D), (B, M, D), (B, M, D))
    output, weights = block(q, k, v, mask)
    assert weights.shape == (B, H, N, M)
    torch.testing.assert_close((output, weights), by_hand(block, q, k, v, mask))


def test_multi_head_attention_has_four_matrices_and_nothing_else():
    shapes = {name: tuple(p.shape) for name, p in MultiHeadAttention(D, H).named_parameters()}
    assert shapes == {f"w_{letter}.weight": (D, D) for letter in "qkvo"}


def test_a_blind_query_gets_nothing_from_any_head_and_its_gradients_are_finite():
    block = MultiHeadAttention(D, H).double()
    q, k, v = draw((B, N, D), (B, M, D), (B, M, D))
    mask = MASK.clone()
    mask[1, 3] = False
    output, weights = block(q, k, v, mask)
    assert not output[1, 3].any()
    assert not weights[1, :, 3].any()
    (output.sum() + weights.square().sum()).backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in block.parameters())
    others = MASK.any(-1) & mask.any(-1)
    expected, _ = by_hand(block, q, k, v, MASK)
    torch.testing.assert_close(output[others], expected[others])


def test_split_gives_each_head_its_columns_and_merge_undoes_it():
    block, x = MultiHeadAttention(D, H), draw((B, N, D))
    torch.testing.assert_close(block.split(x), heads(x))
    torch.testing.assert_close(block.merge(block.split(x)), x)


@pytest.mark.unchecked
def test_a_mask_that_does_not_fit_is_refused():
    x = draw((B, N, D), dtype=torch.float32)
    with pytest.raises(ValueError, match=r"mask has shape \(4, 5\).*\(2, 5, 5\)"):
        MultiHeadAttention(D, H)(x, x, x, torch.ones(4, 5, dtype=torch.bool))


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


# normalisation and feed-forward


def test_layer_norm_is_torchs_under_other_names():
    block = with_random_parameters(LayerNorm(D, eps=1e-3))
    theirs = nn.LayerNorm(D, eps=1e-3, dtype=torch.float64)
    theirs.load_state_dict({"weight": block.gain, "bias": block.bias})
    x = draw((B, N, D))
    torch.testing.assert_close(block(x), theirs(x))


def test_feed_forward_is_linear_relu_linear():
    block = FeedForward(D, D_FF).double()
    assert list(block.state_dict()) == [
        f"{a}.{b}" for a in ("inner", "outer") for b in ("weight", "bias")
    ]
    x = draw((B, N, D))
    torch.testing.assert_close(block(x), block.outer(F.relu(block.inner(x))))
    assert block.inner(x).shape == (B, N, D_FF)


# layers and stacks


def copy_attention(ours: MultiHeadAttention, theirs: nn.MultiheadAttention) -> None:
    matrices = [ours.w_q.weight, ours.w_k.weight, ours.w_v.weight]
    theirs.in_proj_weight.copy_(torch.cat(matrices))
    theirs.in_proj_bias.zero_()
    theirs.out_proj.weight.copy_(ours.w_o.weight)
    theirs.out_proj.bias.zero_()


@torch.no_grad()
def torchs_encoder_layer(ours: EncoderLayer) -> nn.TransformerEncoderLayer:
    theirs = nn.TransformerEncoderLayer(
        D, H, D_FF, 0.0, batch_first=True, norm_first=ours.norm_first, dtype=torch.float64
    )
    copy_attention(ours.self_attention, theirs.self_attn)
    copy_rest(ours, theirs)
    return theirs


@torch.no_grad()
def torchs_decoder_layer(ours: DecoderLayer) -> nn.TransformerDecoderLayer:
    theirs = nn.TransformerDecoderLayer(
        D, H, D_FF, 0.0, batch_first=True, norm_first=ours.norm_first, dtype=torch.float64
    )
    copy_attention(ours.self_attention, theirs.self_attn)
    copy_attention(ours.cross_attention, theirs.multihead_attn)
    copy_rest(ours, theirs)
    return theirs


def copy_rest(ours, theirs) -> None:
    theirs.linear1.load_state_dict(ours.feed_forward.inner.state_dict())
    theirs.linear2.load_state_dict(ours.feed_forward.outer.state_dict())
    for name in ("norm1", "norm2", "norm3"):
        if hasattr(ours, name):
            norm = getattr(ours, name)
            getattr(theirs, name).load_state_dict({"weight": norm.gain, "bias": norm.bias})


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("training", [False, True])
def test_an_encoder_layer_equals_torchs_with_the_mask_turned_round(norm_first, training):
    layer = with_random_parameters(EncoderLayer(D, H, D_FF, 0.0, norm_first=norm_first))
    theirs = torchs_encoder_layer(layer)
    x = draw((B, M, D))
    ours = layer.train(training)(x, REAL[:, None, :])
    torch.testing.assert_close(ours[REAL], theirs(x, src_key_padding_mask=~REAL)[REAL])
    torch.testing.assert_close(layer(x), theirs(x))


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("training", [False, True])
def test_a_decoder_layer_equals_torchs_with_the_masks_turned_round(norm_first, training):
    layer = with_random_parameters(DecoderLayer(D, H, D_FF, 0.0, norm_first=norm_first))
    theirs = torchs_decoder_layer(layer)
    x, memory = draw((B, N, D), (B, M, D))
    ours = layer.train(training)(x, memory, causal(N), REAL[:, None, :])
    expected = theirs(x, memory, tgt_mask=~causal(N), memory_key_padding_mask=~REAL)
    torch.testing.assert_close(ours, expected)
    torch.testing.assert_close(layer(x, memory), theirs(x, memory))


def test_evaluation_without_gradients_gives_what_training_gives():
    layer = EncoderLayer(D, 2, D_FF, dropout=0.0).double()
    x = draw((B, N, D))
    with torch.no_grad():  # where torch's own layer takes its fast path
        torch.testing.assert_close(layer.eval()(x, causal(N)), layer.train()(x, causal(N)))


@pytest.mark.parametrize(
    ("layer", "inputs"),
    [
        (EncoderLayer(D, H, D_FF, dropout=0.5), [(B, N, D)]),
        (DecoderLayer(D, H, D_FF, dropout=0.5), [(B, N, D), (B, M, D)]),
    ],
)
def test_layers_drop_in_training_only(layer, inputs):
    torch.manual_seed(0)
    layer = copy.deepcopy(layer).double()
    tensors = draw((B, 2, D), *inputs)[1:]
    torch.testing.assert_close(layer.eval()(*tensors), layer(*tensors))
    assert not torch.equal(layer.train()(*tensors), layer(*tensors))


def test_a_layer_computes_with_whatever_attention_is_put_in_it():
    class Silent(nn.Module):
        def forward(self, query, key, value, mask=None):
            return torch.zeros_like(query), None

    layer = DecoderLayer(D, H, D_FF, dropout=0.0).double()
    x, memory, other = draw((B, N, D), (B, M, D), (B, M, D))
    layer.cross_attention = Silent()  # pyright: ignore[reportAttributeAccessIssue]
    torch.testing.assert_close(layer(x, memory), layer(x, other))
    layer.self_attention = Silent()  # pyright: ignore[reportAttributeAccessIssue]
    torch.testing.assert_close(layer(x, memory)[:, :2], layer(x[:, :2], memory))


def test_layers_have_the_parameters_of_their_parts_and_no_others():
    names = {name.split(".")[0] for name in EncoderLayer(D, H, D_FF).state_dict()}
    assert names == {"self_attention", "feed_forward", "norm1", "norm2"}
    names = {name.split(".")[0] for name in DecoderLayer(D, H, D_FF).state_dict()}
    assert names == {"self_attention", "cross_attention", "feed_forward", "norm1", "norm2", "norm3"}


@pytest.mark.parametrize("norm_first", [False, True])
def test_padding_content_never_changes_real_tokens(norm_first):
    layer = EncoderLayer(D, H, D_FF, dropout=0.0, norm_first=norm_first).double()
    x, noise = draw((B, N, D), (B, 2, D))
    mask = torch.tensor([True, True, True, False, False]).expand(B, 1, N)
    changed = torch.cat([x[:, :3], noise], dim=1)
    torch.testing.assert_close(layer(x, mask)[:, :3], layer(changed, mask)[:, :3])


def test_later_target_tokens_never_change_earlier_ones():
    layer = DecoderLayer(D, H, D_FF, dropout=0.0).double()
    x, memory, noise = draw((B, N, D), (B, M, D), (B, 2, D))
    changed = torch.cat([x[:, :3], noise], dim=1)
    before, after = layer(x, memory, causal(N)), layer(changed, memory, causal(N))
    torch.testing.assert_close(before[:, :3], after[:, :3])


@pytest.mark.parametrize("norm", [None, LayerNorm(D).double()])
def test_an_encoder_is_its_layers_one_after_the_other(norm):
    stack = Encoder(lambda: EncoderLayer(D, H, D_FF, dropout=0.0).double(), 3, norm)
    x = draw((B, N, D))
    expected = x
    for layer in stack.layers:
        expected = layer(expected, causal(N))
    expected = norm(expected) if norm else expected
    torch.testing.assert_close(stack(x, causal(N)), expected)


@pytest.mark.parametrize("norm", [None, LayerNorm(D).double()])
def test_a_decoder_is_its_layers_one_after_the_other_with_the_same_memory(norm):
    stack = Decoder(lambda: DecoderLayer(D, H, D_FF, dropout=0.0).double(), 3, norm)
    x, memory = draw((B, N, D), (B, M, D))
    masks = causal(N), REAL[:, None, :]
    expected = x
    for layer in stack.layers:
        expected = layer(expected, memory, *masks)
    expected = norm(expected) if norm else expected
    torch.testing.assert_close(stack(x, memory, *masks), expected)


def test_every_layer_of_a_stack_has_its_own_weights():
    stack = Encoder(lambda: EncoderLayer(D, H, D_FF), 3)
    assert len({id(p) for p in stack.parameters()}) == 3 * len(list(stack.layers[0].parameters()))


# the two ends


def test_the_generator_gives_one_logit_per_token_of_the_vocabulary():
    generator = Generator(D, VOCAB).double()
    x = draw((B, N, D))
    assert [tuple(p.shape) for p in generator.parameters()] == [(VOCAB, D)]
    torch.testing.assert_close(generator(x), x @ generator.weight.T)


def test_tying_shares_one_matrix():
    generator, embedding = Generator(D, VOCAB), TokenEmbedding(VOCAB, D)
    generator.tie(embedding.weight)
    assert generator.weight is embedding.weight
    assert len(list(nn.ModuleList([generator, embedding]).parameters())) == 1
    with pytest.raises(ValueError, match=r"\(12, 11\).*\(11, 12\)"):
        generator.tie(TokenEmbedding(D, VOCAB).weight)


def test_an_embedding_looks_up_rows_of_variance_1():
    torch.manual_seed(0)
    embedding = TokenEmbedding(2000, D)
    ids = torch.tensor([[3, 1999, 0], [7, 3, 3]])
    torch.testing.assert_close(embedding(ids)[0, 1], embedding.weight[1999])
    assert embedding(ids).shape == (2, 3, D)
    assert abs(embedding.weight.std().item() - 1) < 0.02


def test_positional_encoding_adds_rows_of_its_table_from_the_offset_on():
    table, x = draw((9, D), (B, N, D))
    block = PositionalEncoding(table)
    torch.testing.assert_close(block(x), x + table[:N])
    torch.testing.assert_close(block(x, offset=4), x + table[4:])
    assert not block.state_dict()
    with pytest.raises(ValueError, match=r"offset \+ n \(10\) must not exceed max_len \(9\)"):
        block(x, offset=5)


def test_positional_encoding_drops_in_training_only():
    torch.manual_seed(0)
    table, x = draw((9, D), (B, N, D))
    block = PositionalEncoding(table, dropout=0.5)
    assert (block(x) == 0).any()
    torch.testing.assert_close(block.eval()(x), x + table[:N])


def test_every_public_block_has_a_docstring():
    public = [value for name, value in vars(blocks).items() if not name.startswith("_")]
    own = [value for value in public if getattr(value, "__module__", "") == "lab.blocks"]
    assert len(own) == 13
    assert all(inspect.getdoc(value) for value in own)


def test_the_masks_are_boolean_and_say_who_may_attend():
    assert causal_mask(3).tolist() == [[True, False, False], [True, True, False], [True] * 3]
    ids = torch.tensor([[4, 2, 7, 7], [7, 5, 1, 7]])
    assert padding_mask(ids, pad_id=7).tolist() == [
        [[True, True, False, False]],
        [[False, True, True, False]],
    ]
